"""RHALE's Dataset: schema, centring, edges of use, saving, prediction, the accessor."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import xarray as xr

import rhale_stats as rs
from rhale_stats.arguments.peers import typed
from rhale_stats.arrays.resample import honest_split
from rhale_stats.effects.rhale import quiet_rhale, warn_of_gaps
from rhale_stats.schema.feature_result import one_feature
from rhale_stats.schema.variables import EFFECT_VARIABLES
from tests.helpers import local_of, public_functions


def model(X):
    return 2 * X[:, 0] + 4 * X[:, 0] * X[:, 1]


@pytest.fixture
def local(rng):
    X = np.column_stack([rng.uniform(-1, 1, (300, 2)), np.full(300, 7.0)])
    return rs.local_effects(model, X)


RULES = [
    rs.EqualWidthBins(6),
    rs.QuantileBins(6),
    rs.GivenBins(np.linspace(-1, 8, 10)),
    rs.OptimalBins(),
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
@pytest.mark.filterwarnings("ignore:Bins without rows")
def test_schema(local, rule):
    effect = rs.std_error(rs.rhale(local, bins=rule))
    for name, array in effect.data_vars.items():
        dims, long_name, units = EFFECT_VARIABLES[name]
        assert array.dims == dims
        assert array.attrs["long_name"] == long_name
        assert array.attrs["units"] == units
    for name in ("bin_left", "bin_right", "edge_value", "feature_kind", "feature_units"):
        assert name in effect.coords
    for attributes in (effect.attrs, *(v.attrs for v in effect.variables.values())):
        assert all(isinstance(value, str | int | float) for value in attributes.values())
    n_bins = effect["n_bins"].values
    for position, bins in enumerate(n_bins):
        row = effect.isel(feature=position)
        edges = row["edge_value"].values[row["edge_value"].notnull()]
        assert len(edges) > bins if bins else not len(edges)
        assert (np.diff(edges) > 0).all()
        assert np.isin([*row["bin_left"][:bins], *row["bin_right"][:bins]], edges).all()
        assert row["bin_left"].notnull().sum() == row["bin_right"].notnull().sum() == bins
        assert not row["n_obs"].values[bins:].any()
        assert row["effect"][bins:].isnull().all()


def test_constant_feature_is_a_flagged_row(local):
    effect = rs.rhale(local)
    assert effect["feature_kind"].values.tolist() == ["continuous", "continuous", "constant"]
    row = effect.rhale.in_bins().isel(feature=2)
    assert int(row["n_bins"]) == 0
    for name in ("effect", "curve", "heterogeneity", "average_effect", "curve_offset"):
        assert row[name].isnull().all()
    alone = rs.rhale(local.isel(feature=[0, 1]))
    xr.testing.assert_equal(effect.isel(feature=[0, 1]), alone)


def test_only_constant_features(local):
    effect = rs.std_error(rs.rhale(local.isel(feature=[2])))
    assert effect["n_bins"].values.tolist() == [0]
    assert effect["curve_se"].isnull().all()


@pytest.mark.parametrize("centering", ["mean", "start", "integral"])
def test_centring_can_be_undone(local, centering):
    start = rs.rhale(local, bins=rs.EqualWidthBins(7), centering="start")
    other = rs.rhale(local, bins=rs.EqualWidthBins(7), centering=centering)
    offset = other.rhale.in_bins()["curve_offset"]
    xr.testing.assert_allclose((other["curve"] + offset).drop_attrs(), start["curve"].drop_attrs())
    assert other.attrs["centering"] == other["curve"].attrs["centering"] == centering


def test_what_each_centring_makes_zero(local):
    rule = rs.QuantileBins(7)
    x = local["x"].sel(feature="x0")
    mean = rs.rhale(local, bins=rule)
    assert float(rs.predict(mean, x, "x0").mean()) == pytest.approx(0, abs=1e-12)
    start = rs.rhale(local, bins=rule, centering="start")
    assert float(rs.predict(start, x.min(), "x0")) == 0
    integral = rs.rhale(local, bins=rule, centering="integral")
    fine = np.linspace(float(x.min()), float(x.max()), 100_001)
    # The trapezoid rule on a curve with six kinks: an error of 1e-10.
    area = np.trapezoid(rs.predict(integral, fine, "x0"), fine)
    assert area == pytest.approx(0, abs=1e-8)


@pytest.mark.parametrize("weighting", ["axis", "rows"])
def test_predict_labels_and_limits(local, weighting):
    effect = rs.rhale(local, bins=rs.EqualWidthBins(5), weighting=weighting)
    edges = effect["edge_value"].sel(feature="x0").dropna("edge").values
    at_edges = rs.predict(effect, edges, "x0")
    np.testing.assert_allclose(at_edges, effect["curve"].sel(feature="x0").dropna("edge"))
    assert at_edges.dims == ("grid",)
    np.testing.assert_array_equal(at_edges["x"], edges)
    assert at_edges.attrs["feature"] == "x0"
    # The curve is linear in what it is accumulated from: cells, or bins.
    ends_of_bins = np.append(effect["bin_left"][0], effect["bin_right"][0, -1])
    if weighting == "axis":
        assert set(ends_of_bins) <= set(edges)
        assert len(edges) > 2 * len(ends_of_bins)
    else:
        np.testing.assert_array_equal(edges, ends_of_bins)
    ends = rs.predict(effect, edges, 0).values
    middle = rs.predict(effect, (edges[1:] + edges[:-1]) / 2, 0)
    np.testing.assert_allclose(middle, (ends[1:] + ends[:-1]) / 2, rtol=1e-6, atol=1e-12)
    assert np.isnan(rs.predict(effect, [edges[0] - 0.1, edges[-1] + 0.1], "x0")).all()
    assert np.isnan(rs.predict(effect, 7.0, "x2"))
    kept = rs.predict(effect, local["x"].sel(feature="x0"), "x0")
    assert kept.dims == ("obs",)
    with pytest.raises(KeyError, match="one of 'x0', 'x1', 'x2', .*; got 'age'"):
        rs.predict(effect, [0.0], "age")


@pytest.mark.parametrize("weighting", ["axis", "rows"])
def test_empty_bins_stay_empty(rng, weighting):
    x = np.concatenate([rng.uniform(0, 1, 50), rng.uniform(3, 4, 50)])[:, None]
    local = rs.local_effects(None, x, jacobian=2 * x)
    with pytest.warns(UserWarning, match=r"Bins without rows: 'x0' \(2 of 4\).*QuantileBins"):
        effect = rs.rhale(local, bins=rs.EqualWidthBins(4), centering="start", weighting=weighting)
    row = effect.rhale.in_bins().isel(feature=0)
    assert row["n_obs"].values.tolist() == [50, 0, 0, 50]
    assert np.isnan(row["effect"].values).tolist() == [False, True, True, False]
    # Nobody knows how far the curve moves across the gap; of two equal sides the first is shown.
    # By cells it ends at the last row before the gap, which is left of the edge of the bin.
    unknown = [False, weighting == "axis", True, True, True]
    assert np.isnan(row["curve"].values).tolist() == unknown
    errors = rs.std_error(effect).rhale.in_bins().isel(feature=0)
    assert np.isnan(errors["curve_se"].values).tolist() == unknown
    at = [x[:50].max(), 2.0, x[50:].min(), 3.9]
    assert np.isnan(rs.predict(effect, at, 0)).values.tolist() == [False, True, True, True]
    assert np.isfinite(errors["average_effect_se"])


@pytest.mark.filterwarnings("ignore:Bins without rows")
@pytest.mark.parametrize("weighting", ["axis", "rows"])
@pytest.mark.parametrize("centering", ["mean", "start", "integral"])
def test_the_curve_beside_a_gap_is_that_of_its_own_rows(rng, centering, weighting):
    # Rows enough for narrow cells: how narrow they must be goes by the whole axis.
    x = np.concatenate([rng.uniform(0, 1, 300), rng.uniform(2.5, 4, 900)])[:, None]
    local = rs.local_effects(None, x, jacobian=2 * x + 9 * np.cos(9 * x))
    edges = np.arange(0, 4.5, 0.5)
    options = {"centering": centering, "weighting": weighting}
    effect = rs.rhale(local, bins=rs.GivenBins(edges), **options)
    right = local.isel(obs=slice(300, None))
    own, first, names = edges[5:], 0, ("curve", "curve_se", "curve_se_start")
    if weighting == "rows":
        names += ("curve_std", "curve_std_sum")
    else:
        # The curve begins at the first row after the gap, not at the edge before it; and what is
        # summed over whole bins begins with the next one.
        own, first = np.append(x[300:].min(), own[1:]), 1
    alone = rs.rhale(right, bins=rs.GivenBins(own), **options)
    both, part = (rs.std_error(one).rhale.in_bins() for one in (effect, alone))
    assert both["curve"][0, : 5 + first].isnull().all()
    for name in names:
        np.testing.assert_allclose(
            both[name][0, 5 + first :], part[name][0, first:], rtol=1e-9, atol=1e-12
        )
    np.testing.assert_allclose(both["curve_offset"], part["curve_offset"], rtol=1e-9)
    # The average over all rows needs no curve.
    g = local["local_effect"].values
    assert float(effect["average_effect"][0]) == pytest.approx(g.mean(), rel=1e-12)


def test_one_row_in_a_bin_has_an_effect_and_no_spread():
    local = rs.local_effects(None, [[0.0], [0.1], [0.9]], jacobian=[[1.0], [3.0], [5.0]])
    row = rs.rhale(local, bins=rs.GivenBins([0, 0.5, 1])).isel(feature=0)
    assert row["effect"].values.tolist() == [2.0, 5.0]
    np.testing.assert_allclose(row["heterogeneity"], [np.sqrt(2), np.nan])


@pytest.mark.parametrize("name", ["x", "local_effect"])
def test_values_broken_after_the_fact_are_refused(local, name):
    broken = local.copy(deep=True)
    broken[name].values[[4, 9], 1] = np.nan
    what = "x" if name == "x" else "Local effects"
    with pytest.raises(
        ValueError, match=rf"{what} of feature 'x1' must be finite; got 2 NaN .*: 4, 9\)"
    ):
        rs.rhale(broken)


@pytest.mark.parametrize("size", [1e80, 1e200, 1e307, -1e200])
def test_local_effects_too_large_for_fourth_powers(local, size):
    huge = local.assign(local_effect=local["local_effect"] * size)
    with pytest.raises(ValueError, match=r"Local effects of feature .* 1e-60 and 1e\+60"):
        rs.rhale(huge)


def test_wrong_arguments(local):
    with pytest.raises(TypeError, match="local must be the Dataset that local_effects"):
        rs.rhale(np.ones((3, 2)))
    with pytest.raises(ValueError, match=r"got effects in bins, which rhale\(local\) returned"):
        rs.rhale(rs.rhale(local))
    with pytest.raises(TypeError, match="bins must be a rule such as OptimalBins.*got 2.5"):
        rs.rhale(local, bins=2.5)
    with pytest.raises(TypeError, match="bins must be a rule"):
        rs.rhale(local, bins=rs.OptimalBins)
    with pytest.raises(ValueError, match="centering must be one of 'mean', .*; got 'zero'"):
        rs.rhale(local, centering="zero")
    with pytest.raises(ValueError, match="local must have at least one row; got none"):
        rs.rhale(local.isel(obs=slice(0, 0)))


@pytest.mark.thorough
def test_threads_change_nothing(rng, monkeypatch):
    monkeypatch.setattr("rhale_stats.effects.rhale.THREADS_FROM", 10**9)
    local = rs.local_effects(None, rng.normal(size=(1000, 5)), jacobian=rng.normal(size=(1000, 5)))
    alone = rs.rhale(local)
    monkeypatch.setattr("rhale_stats.effects.rhale.THREADS_FROM", 0)
    xr.testing.assert_identical(rs.rhale(local), alone)


@pytest.mark.thorough
@pytest.mark.parametrize("backend", ["netcdf", "zarr"])
def test_saving_and_loading_is_identical(local, tmp_path, backend):
    local.attrs["output_name"] = "visits"
    for number, dataset in enumerate([local, rs.std_error(rs.rhale(local))]):
        path = tmp_path / f"{number}"
        if backend == "netcdf":
            dataset.to_netcdf(path)
            loaded = xr.open_dataset(path).load()
        else:
            pytest.importorskip("zarr")
            dataset.to_zarr(path)
            loaded = xr.open_zarr(path).load()
        xr.testing.assert_identical(dataset, loaded)
        loaded.close()


def assert_same(found, expected):
    """Equal variables; those that were written out again have no words of an estimator."""
    shared = [name for name in expected.data_vars if name in found.data_vars]
    assert set(expected.data_vars) == set(shared)
    xr.testing.assert_allclose(
        found[shared],
        expected[shared],
    )


class TestAccessor:
    def test_every_method_is_the_function(self, local):
        effect = rs.rhale(local)
        assert_same(effect.rhale.std_error(), rs.std_error(effect))
        xr.testing.assert_identical(
            effect.rhale.predict([0.1], "x0"), rs.predict(effect, [0.1], "x0")
        )
        assert str(effect.rhale.summary("x0")) == str(rs.summary(effect, "x0"))
        assert effect.rhale.tidy(level=0.5).equals(rs.tidy(effect, level=0.5))
        assert effect.rhale.to_dataframe().equals(rs.tidy(effect))
        assert effect.rhale.glance().equals(rs.glance(effect))
        assert effect.rhale.augment(local).equals(rs.augment(local, effect))
        check = effect.rhale.check_unbiased(local, rng=0)
        assert_same(check, rs.check_unbiased(local, effect, rng=0))
        assert_same(effect.rhale.debias(check), rs.debias(effect, check))
        xr.testing.assert_identical(effect.rhale.mae(effect), rs.simulate.mae(effect, effect))
        assert check.rhale.plot_bias("x0").get_xlabel() == "x0"
        assert len(effect.rhale.plot("x0", local)) == 3
        assert len(effect.rhale.plot_bins(local, "x0")) == 1
        assert len(effect.rhale.plot_all()) == 3

    def test_defaults_are_the_functions_own(self, local):
        accessor = rs.rhale(local).rhale
        names = {"plot_all": "plots.effects", "mae": "simulate.mae", "to_dataframe": "tidy"}
        functions = public_functions()
        own = ("at", "in_bins")  # no functions of the package
        names_of = vars(type(accessor))
        methods = [name for name in names_of if not name.startswith("_") and name not in own]
        assert len(methods) == 28
        datasets = {"a", "effect", "result", "boot", "check", "comparison"}
        for name in methods:
            function = functions[names.get(name, typed(name))]
            theirs = list(inspect.signature(function).parameters.values())
            ours = list(inspect.signature(getattr(accessor, name)).parameters.values())
            (own,) = [one for one in theirs if one not in ours]  # which it is a method of
            assert own.name in datasets, name
            assert ours == [one for one in theirs if one is not own], name

    def test_arguments_by_name_are_those_of_the_function(self, local):
        effect = rs.rhale(local)
        assert_same(
            effect.rhale.check_unbiased(local=local, rng=0),
            rs.check_unbiased(local, effect, rng=0),
        )
        with pytest.raises(TypeError, match="multiple values for argument 'effect'"):
            effect.rhale.check_unbiased(local=local, effect=effect)


def test_public_names_are_documented():
    for name, function in public_functions().items():
        assert inspect.getdoc(function), name
    for name in rs.__all__:
        if name != "__version__":
            assert inspect.getdoc(getattr(rs, name)), name


def test_losses_of_all_numbers_of_bins(rng):
    """Of every feature that varies; a feature for which fewer numbers were tried ends in NaN."""
    x = np.column_stack([rng.uniform(0, 1, 60), np.ones(60), rng.integers(0, 2, 60)]).astype(float)
    effect = rs.rhale(local_of(x, rng.normal(size=x.shape)), bins=rs.BestEqualWidthBins(5))
    loss = effect["bin_loss"]
    assert loss.dims == ("feature", "n_bins_tried")
    tried = effect["n_bins_tried"]
    assert tried.values.tolist() == list(range(1, loss.shape[1] + 1))
    assert tried.attrs == {"long_name": "number of bins"}
    assert loss.attrs["estimator"] == "math [19]"
    assert np.isnan(loss.values[1]).all()
    assert np.isfinite(loss.values[0]).any()
    best = int(np.nanargmin(loss.values[0])) + 1
    assert effect["n_bins"].values[0] == best
    assert "bin_loss" not in rs.rhale(local_of(x, x), bins=rs.EqualWidthBins(2))


@pytest.mark.parametrize("honest", [False, True])
def test_what_is_said_of_bins_without_rows(honest):
    """With the number of bins, and what to do about it."""
    x = np.array([0.0, 0.1, 0.2, 0.3, 3.9, 4.0, 0.05, 3.95])[:, None]
    local = local_of(np.hstack([x, x % 1]), np.ones((8, 2)))
    rule = rs.GivenBins({"x0": [0, 1, 2, 3, 4], "x1": [0, 0.5, 1]})
    better = " or a larger min_obs" if honest else ", QuantileBins or OptimalBins"
    said = (
        r"^Bins without rows: 'x0' \(2 of 4\)\. Their effects are NaN\. The curve cannot be "
        r"accumulated across them: it is reported on the stretch with the most rows and is NaN "
        rf"elsewhere\. Use fewer bins{better}\.$"
    )
    effect = quiet_rhale(local, rule)
    if honest:
        effect.attrs["honest_seed"] = 1
    with pytest.warns(UserWarning, match=said):
        warn_of_gaps(effect)


def test_what_is_said_of_gaps_inside_a_bin():
    """From the last row before the widest gap to the first beyond it, up to the cells."""
    x = np.concatenate([np.linspace(0, 1, 60), np.linspace(8, 10, 50)])[:, None]
    effect = quiet_rhale(local_of(x, np.ones_like(x)), rs.GivenBins([0, 10]))
    row = one_feature(effect, 0)
    edges, share = row.edges, row.cell_share
    at = int(np.argmax(np.where(share == 0, np.diff(edges), 0)))
    said = rf"'x0' \(from {edges[at]:.6g} to {edges[at + 1]:.6g}\)\. The curve cannot"
    with pytest.warns(UserWarning, match=f"^Gaps without rows: {said}"):
        warn_of_gaps(effect)
    assert 0.9 < edges[at] < 1.2
    assert 7.8 < edges[at + 1] < 8.1
    assert np.isfinite(row.at_bins("curve")).tolist() == [True, False]


@pytest.mark.parametrize("weights", [None, "frequency", "precision"])
def test_honest_effects_of_slopes_across_cells_know_their_rows(rng, weights):
    """Rows on edges of cells count half in either cell; whole rows are split, not halves."""
    X = np.column_stack([np.round(rng.beta(1, 2, 400), 2), rng.normal(size=400)])
    counts = rng.integers(0, 4, 400)
    options = {} if weights is None else {"weights": counts, "weight_kind": weights}

    def bent(X):
        return X[:, 0] ** 2 * (1 + X[:, 1])

    local = rs.local_effects(bent, X, **options)
    effect = rs.rhale(local, bins=rs.EqualWidthBins(4), honest=True, rng=3)
    estimated_on = ~honest_split(400, 0.5, effect.attrs["honest_seed"])
    used = estimated_on & ((counts > 0) | (weights is None))
    assert effect.attrs["n_rows"] == used.sum()
    counted = counts[estimated_on] if weights == "frequency" else used[estimated_on]
    assert effect["n_obs"].sel(feature="x0").sum() == counted.sum()
    rs.check_unbiased(effect, local, rng=0)
    rs.augment(effect, local)
    rs.jump_check(effect, local, bent, X)
    rs.wald_test(effect, "homogeneous", local=local)
    by_rows = rs.std_error(effect, local, groups=np.arange(400))
    assert by_rows.attrs["n_groups"] == used.sum()
    other = rs.local_effects(lambda X: 2 * bent(X), X, **options)
    with pytest.raises(ValueError, match="come from another model"):
        rs.check_unbiased(effect, other, rng=0)


def test_honest_rows_are_two_parts(rng):
    """Edges from some rows, estimates from the others; the axis is that of all."""
    x = rng.uniform(0, 1, (50, 1))

    def made(x):
        local = local_of(x, np.sign(x - 0.4) + rng.normal(size=x.shape) / 9)
        rule = rs.OptimalBins(max_bins=3)
        return rs.rhale(local, bins=rule, honest=True, honest_fraction=0.3, rng=4)

    # The ends of the axis are among the rows for edges.
    ends = np.flatnonzero(honest_split(50, 0.3, made(x).attrs["honest_seed"]))[:2]
    x[ends, 0] = -0.5, 1.5
    effect = made(x)
    assert effect.attrs["n_rows_edges"] == 15
    assert effect.attrs["n_rows"] == 35
    assert effect.attrs["honest_fraction"] == 0.3
    chosen = honest_split(50, 0.3, effect.attrs["honest_seed"])
    edges = one_feature(effect, 0).bin_edges
    assert (edges[0], edges[-1]) == (x.min(), x.max())
    k = np.clip(np.searchsorted(edges, x[:, 0], side="right") - 1, 0, len(edges) - 2)
    counts = np.bincount(k[~chosen])
    assert effect["n_obs"].values[0, : len(counts)].tolist() == counts.tolist()
    assert effect.attrs["seed"] == 4


def test_a_single_local_effect_that_is_too_large():
    x = np.linspace(0, 1, 9)[:, None]
    g = np.ones((9, 1))
    g[4] = 1e200
    with pytest.raises(ValueError, match="Local effects of feature 'x0'.*other units"):
        rs.rhale(local_of(x, g), bins=rs.EqualWidthBins(2))
