"""What effects in bins hold, what follows from it, and how small a result is."""

from __future__ import annotations

from functools import cache

import arviz
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from numpy.testing import assert_allclose

import rhale_stats as rs
from tests.every_kind import model, table


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
    """A result that no test changes."""
    return RESULTS[kind]()


def test_what_is_known_of_bins_is_that_of_their_rows():
    """Against pandas; the curve is that of the same result, at the edges of the bins."""
    X, weight = frame(), np.random.default_rng(0).uniform(0.2, 2, 300)
    local = rs.local_effects(output, X, features=["skewed"], weights=weight)
    effect = rs.rhale(local, bins=rs.EqualWidthBins(5))
    table = effect.rhale.in_bins().sel(feature="skewed")
    edges = np.append(table["bin_left"], table["bin_right"][-1])
    assert_allclose(table["edge_value"], edges)
    rows = pd.DataFrame(
        {"x": X["skewed"], "w": weight, "w2": weight**2, "wx": weight * X["skewed"]}
    )
    by_bin = rows.groupby(np.clip(np.digitize(rows["x"], edges) - 1, 0, 4)).sum()
    share = by_bin["w"] / by_bin["w"].sum()
    assert_allclose(table["weight_share"], share)
    assert_allclose(table["n_effective"], by_bin["w"] ** 2 / by_bin["w2"])
    assert_allclose(table["x_mean"], by_bin["wx"] / by_bin["w"])
    assert_allclose(table["curve"], rs.predict(effect, edges, "skewed"))
    spread, width = table["heterogeneity"].values, np.diff(edges)
    assert_allclose(table["curve_std"][1:], np.sqrt(np.cumsum((spread * width) ** 2)))
    assert_allclose(table["curve_std_sum"][1:], np.cumsum(spread * width))
    assert_allclose(table["curve_offset"], -table["curve"][0])
    factor = 1 - by_bin["w2"] / by_bin["w"] ** 2
    assert_allclose(table["heterogeneity_index"], np.sum(spread**2 * factor * width))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", RESULTS)
def test_every_result_has_a_table_of_its_bins(kind):
    result = made_of(kind)
    table = result.rhale.in_bins()
    assert table.sizes["edge"] == table.sizes["bin"] + 1
    assert {"moments", "spread"}.isdisjoint(table.variables)
    share = table["weight_share"].where(result["feature_kind"] != "nominal").sum("bin")
    assert_allclose(share.where(share > 0).fillna(1), 1, rtol=1e-12)
    for side, edges in (("bin_left", slice(None, -1)), ("bin_right", slice(1, None))):
        ends = table["edge_value"].isel(edge=edges).rename(edge="bin").drop_vars("bin")
        of_bins = result[side].transpose(*ends.dims)
        assert_allclose(of_bins, ends.where(of_bins.notnull()))
    for name in set(table.data_vars) & set(result.data_vars):
        assert table[name].dtype == result[name].dtype, name


def test_replicates_have_edges_of_bins_along_a_dimension_of_their_own():
    """Differences from the effect would otherwise be of other places with the same number."""
    local = rs.local_effects(output, frame(), features=NUMBERS)
    effect = rs.rhale(local, bins=rs.QuantileBins(4))
    boot = rs.bootstrap(local, effect, n_resamples=9, rng=0)
    assert boot["curve"].dims == ("chain", "draw", "feature", "bin_edge")
    of_bins = effect.rhale.in_bins()["curve"]
    assert_allclose(boot["curve"].mean(("chain", "draw")), of_bins, atol=0.3)
    some = rs.confint(effect.isel(feature=[1]), boot.isel(feature=[1]), method="bca")
    every = rs.confint(effect, boot, method="bca")
    assert_allclose(some["curve_ci"], every["curve_ci"].isel(feature=[1]))
    known = every["curve_ci"].notnull().all("ci_bound").sum("edge")
    assert_allclose(known, effect["n_bins"] + (effect["n_bins"] > 0))


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
    model = lambda X: np.sin(X).sum(axis=1) + X[:, 0] * X[:, 1]  # noqa: E731
    of_bins = {"feature", "bin", "edge", "moment"}
    for result, dims in (
        (rs.ale2(model, X, (0, 1)), {"edge_a", "edge_b", "obs", "side"}),
        (rs.rhale(model, X), of_bins),
        (rs.ale(model, X), of_bins),
    ):
        assert len(result.data_vars) <= 12
        assert len(result.coords) <= 9
        assert set(result.dims) == dims
        assert np.prod(list(result.sizes.values())) < 1e6
    assert len(result.isel(feature=[0]).to_dataframe()) == 40 * 41 * 17


@pytest.mark.thorough
def test_a_file_holds_the_same(tmp_path):
    effect = rs.confband(rs.confint(rs.ale(model, table())), rng=0)
    effect.to_netcdf(tmp_path / "effect.nc")
    with xr.open_dataset(tmp_path / "effect.nc") as loaded:
        assert str(rs.summary(loaded)) == str(rs.summary(effect))
        xr.testing.assert_allclose(loaded.rhale.in_bins(), effect.rhale.in_bins())


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
