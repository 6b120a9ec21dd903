"""The two forms of effects in bins say the same, and a result is small."""

from __future__ import annotations

from functools import cache

import arviz
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from numpy.testing import assert_allclose

import rhale_stats as rs
from rhale_stats.schema import layout, validation
from rhale_stats.schema.layout import compact, complete, kept_complete
from tests.every_kind import model, table


def inner(make, monkeypatch):
    """A result in the form in which functions work with it."""
    with monkeypatch.context() as patch:
        patch.setattr(validation, "INSIDE", [""])
        return make()


def frame(n=300):
    """A skewed, a rounded and a constant number, and levels."""
    rng = np.random.default_rng(4)
    return pd.DataFrame(
        {
            "skewed": rng.exponential(size=n),
            "number": rng.normal(size=n).round(1),
            "same": np.ones(n),
            "level": pd.Categorical(rng.choice(list("uvw"), n)),
        }
    )


def output(X):
    one, two = (X[name].to_numpy(dtype=float) for name in ("skewed", "number"))
    return np.sin(2 * one) + np.tanh(4 * (one - 1)) * two + (X["level"].to_numpy() == "v")


NUMBERS = ["skewed", "number", "same"]
GAP = {"X": lambda X: X.assign(number=np.where(X["number"] > 0.5, X["number"] + 9, X["number"]))}


RESULTS = {
    "default": lambda: rs.rhale(output, frame(), NUMBERS),
    "rows": lambda: rs.rhale(output, frame(), NUMBERS, weighting="rows"),
    "start": lambda: rs.rhale(output, frame(), NUMBERS, centering="start"),
    "integral": lambda: rs.rhale(output, frame(), NUMBERS, centering="integral"),
    "given": lambda: rs.rhale(output, frame(), "skewed", bins=rs.GivenBins([0, 0.5, 1.5, 9])),
    "honest": lambda: rs.rhale(output, frame(), NUMBERS, honest=True, rng=0),
    "gap": lambda: rs.rhale(output, GAP["X"](frame()), NUMBERS),
    "weights": lambda: rs.rhale(
        output, frame(), NUMBERS, weights=np.random.default_rng(0).uniform(0.2, 2, 300)
    ),
    "frequencies": lambda: rs.rhale(
        output, frame(), NUMBERS, weights=np.arange(300) % 3 + 1, weight_kind="frequency"
    ),
    "constant": lambda: rs.rhale(output, frame(), "same"),
    "ale": lambda: rs.ale(output, frame()),
    "levels": lambda: rs.ale(output, frame(), "level"),
    "outputs": lambda: rs.ale(lambda X: np.column_stack([output(X), -output(X)]), frame()),
    "groups": lambda: rs.rhale(output, frame(), NUMBERS, groups=np.arange(300) // 5),
    "levels in groups": lambda: rs.ale(output, frame(), groups=np.arange(300) // 5),
    "by": lambda: rs.rhale(output, frame(), "skewed", by=np.arange(300) % 2),
    "bands": lambda: rs.confband(rs.confint(rs.rhale(output, frame(), NUMBERS)), rng=0),
    "check": lambda: rs.check_unbiased(
        rs.local_effects(output, frame(), features=NUMBERS),
        rs.rhale(output, frame(), NUMBERS),
        rng=0,
    ),
}


@cache
def made_of(kind):
    """A result in the form that users get: no test changes it."""
    return RESULTS[kind]()


@cache
def numbers_and_effect():
    local = rs.local_effects(output, frame(), features=NUMBERS)
    return local, rs.rhale(local)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", RESULTS)
def test_what_is_left_out_follows_from_the_rest(kind, monkeypatch):
    """Every variable of the form that functions work with, by values and words."""
    expected = inner(RESULTS[kind], monkeypatch)
    made = complete(made_of(kind))
    assert "n_bins" in made.coords
    for name, variable in expected.variables.items():
        again = made.variables[name].transpose(*variable.dims)
        assert again.attrs.get("units") == variable.attrs.get("units"), name
        # Either may have more padding.
        size = tuple(slice(0, min(pair)) for pair in zip(variable.shape, again.shape, strict=True))
        a, b = again.values[size], variable.values[size]
        if b.dtype.kind == "f":
            scale = np.nanmax(np.abs(b), initial=0.0)
            assert_allclose(a, b, rtol=1e-9, atol=1e-12 * scale + 1e-30, err_msg=name)
        elif name not in ("edge", "cell", "cell_edge"):
            assert (a == b).all(), name


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["default", "rows", "ale", "outputs", "gap", "weights", "by"])
def test_functions_say_the_same_of_both_forms(kind):
    result = made_of(kind)
    whole = complete(result)
    features = result["feature"].values[:1].tolist()
    for call in (
        rs.tidy,
        rs.glance,
        lambda e: rs.tidy(rs.confint(rs.std_error(e))),
        lambda e: rs.tidy(rs.wald_test(e)),
        lambda e: rs.tidy(rs.effect_sizes(e)),
        lambda e: rs.predict(e, [0.5], features[0]).to_dataframe("value"),
    ):
        pd.testing.assert_frame_equal(call(result), call(whole), rtol=1e-9)
    assert str(rs.summary(rs.confint(result))) == str(rs.summary(rs.confint(whole)))


SAME = {
    "given bins": lambda e, local: rs.rhale(local, bins=rs.GivenBins(e)),
    "errors by groups": lambda e, local: rs.std_error(e, local, groups=np.arange(300) // 4),
    "band": lambda e, _: rs.confband(rs.confint(e), rng=0),
    "bootstrap": lambda e, local: rs.confint(e, rs.bootstrap(local, e, n_resamples=9, rng=0)),
    "check": lambda e, local: rs.debias(e, rs.check_unbiased(local, e, rng=0)),
    "difference": lambda e, _: rs.compare(
        e, rs.rhale(lambda X: -output(X), frame(), NUMBERS), rng=0
    ),
    "paired": lambda e, local: rs.compare(
        e.isel(feature=[0]), e.isel(feature=[0]), paired=(local, local), rng=0
    ),
    "sizes": lambda e, local: rs.effect_sizes(e, rs.bootstrap(local, e, n_resamples=9, rng=0)),
    "equivalence": lambda e, _: rs.equivalence_test(e, delta=1),
    "hypotheses": lambda e, _: rs.hypotheses(e, "b1 = b2", feature="number", of="curve"),
    "methods": lambda e, _: rs.compare_methods([e, rs.ale(output, frame(), NUMBERS)], "skewed"),
    "scores": lambda e, local: rs.simulate.mae(
        e, rs.rhale(local, bins=rs.EqualWidthBins(50), weighting="rows")
    ),
    "covariance": lambda e, _: rs.vcov(e, "skewed").to_dataset(name="covariance"),
    "tree": lambda e, _: next(
        node.to_dataset() for node in rs.to_datatree(e).subtree if "effect" in node.data_vars
    ),
    "merged": lambda e, local: rs.merge([rs.rhale(local, bins=rs.GivenBins(e))] * 2),
    "places": lambda e, _: e.rhale.at(0.5, "skewed"),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", SAME)
def test_functions_give_the_same_of_both_forms(call):
    local, effect = numbers_and_effect()
    effect = rs.rhale(local, bins=rs.QuantileBins(4)) if call == "merged" else effect
    one, other = (complete(SAME[call](form, local)) for form in (effect, complete(effect)))
    for name, variable in one.variables.items():
        if variable.dtype.kind == "f":
            assert_allclose(variable, other[name].variable, rtol=1e-9, atol=1e-12, err_msg=name)


def test_replicates_have_edges_of_bins_along_a_dimension_of_their_own():
    """Differences from the effect would otherwise be of other places with the same number."""
    local = rs.local_effects(output, frame(), features=NUMBERS)
    effect = rs.rhale(local, bins=rs.QuantileBins(4))
    boot = rs.bootstrap(local, effect, n_resamples=9, rng=0)
    assert boot["curve"].dims == ("chain", "draw", "feature", "bin_edge")
    whole = complete(boot)
    assert whole["curve"].dims == ("chain", "draw", "feature", "edge")
    assert_allclose(whole["edge_value"][:, :-1], effect["bin_left"])
    some = complete(boot.isel(feature=[1]))
    assert_allclose(some["effect_acceleration"], whole["effect_acceleration"].isel(feature=[1]))


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore")
def test_arviz_takes_replicates_as_they_come():
    """Of whichever version: all variables, without a choice or a change."""
    local = rs.local_effects(output, frame(), features=["skewed", "number"])
    boot = rs.bootstrap(local, rs.rhale(local, bins=3), n_resamples=40, rng=0)
    table = arviz.summary(boot)
    assert {"average_effect[skewed]", "effect[number, 2]"} <= set(table.index)


@pytest.mark.thorough
def test_a_result_is_small():
    """At most 12 variables, 9 coordinates, 4 dimensions, and a table that fits into the memory."""
    X = np.random.default_rng(0).normal(size=(1000, 10))
    for result in (
        rs.rhale(lambda X: np.sin(X).sum(axis=1) + X[:, 0] * X[:, 1], X),
        rs.ale(lambda X: np.sin(X).sum(axis=1) + X[:, 0] * X[:, 1], X),
    ):
        assert len(result.data_vars) <= 12
        assert len(result.coords) <= 9
        assert set(result.dims) == {"feature", "bin", "edge", "moment"}
        assert np.prod(list(result.sizes.values())) < 1e6
    assert len(result.isel(feature=[0]).to_dataframe()) == 40 * 41 * 17


@pytest.mark.thorough
def test_a_file_holds_the_same(tmp_path):
    effect = rs.confband(rs.confint(rs.ale(model, table())), rng=0)
    effect.to_netcdf(tmp_path / "effect.nc")
    with xr.open_dataset(tmp_path / "effect.nc") as loaded:
        assert str(rs.summary(loaded)) == str(rs.summary(effect))
        xr.testing.assert_allclose(complete(loaded), complete(effect))


def test_one_form_of_the_other_and_nothing_of_anything_else():
    effect = rs.rhale(output, frame(), NUMBERS)
    assert complete(complete(effect)).identical(complete(effect))
    xr.testing.assert_allclose(compact(complete(effect)), effect)
    assert effect.rhale.complete().identical(complete(effect))
    local = rs.local_effects(output, frame(), features=NUMBERS)
    assert complete(local) is local
    assert compact(local) is local


@pytest.mark.thorough
@pytest.mark.parametrize(
    "damage",
    [
        lambda e: e.isel(bin=slice(1)),
        lambda e: e.isel(bin=slice(1, None)),
        lambda e: e.isel(edge=slice(0, 5)),
        lambda e: e.isel(edge=slice(3, None)),
        lambda e: e.isel(edge=slice(None, None, 2)),
        lambda e: e.assign_coords(bin_left=e["bin_left"] + 0.01),
    ],
)
def test_bins_that_are_not_those_of_the_edges_are_refused(damage, tmp_path):
    rs.rhale(output, frame(), "skewed").to_netcdf(tmp_path / "effect.nc")
    with (
        xr.open_dataset(tmp_path / "effect.nc") as effect,
        pytest.raises(ValueError, match="effect must have all of its bins, in order"),
    ):
        rs.confint(damage(effect))


@pytest.mark.parametrize(
    "change",
    [
        lambda e: e["curve"].values.__setitem__((0, 1), 7.0),
        lambda e: e["effect"].attrs.__setitem__("units", "kg"),
        lambda e: e.attrs.__setitem__("output_name", "other"),
        lambda e: e.__setitem__("n_obs", 2 * e["n_obs"]),
    ],
)
def test_what_is_kept_of_a_result_is_no_longer_taken_after_a_change(change):
    effect = rs.rhale(output, frame(), "skewed")
    assert kept_complete(effect) is not None
    assert kept_complete(effect.copy()) is None
    change(effect)
    assert kept_complete(effect) is None


def test_nothing_is_kept_of_results_that_are_gone():
    effect = rs.rhale(output, frame(), "skewed")
    number = id(effect)
    assert number in layout._COMPLETE
    del effect
    assert number not in layout._COMPLETE
