"""Scores against a truth: by hand, on a fine grid, and two truths against each other."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from numpy.testing import assert_allclose, assert_array_equal

import rhale_stats as rs
from rhale_stats import simulate
from rhale_stats.schema.feature_result import one_feature
from rhale_stats.simulate.scores import SCORES, _cells
from tests.helpers import in_turn

CENTERINGS = ["mean", "start", "integral"]


def effect_of(x, g, edges, **options):
    local = rs.local_effects(
        None, pd.DataFrame({"x": x}), jacobian=np.asarray(g, dtype=float)[:, None], features="x"
    )
    return rs.rhale(local, bins=rs.GivenBins(edges), **options)


def first_of(result):
    """The first feature of a result."""
    return one_feature(result, 0)


def steps(edges, mean, sigma, **options):
    """An effect of four rows a bin, with this mean and this heterogeneity, at even places.

    By rows: cells of four would take their variance together.
    """
    edges, mean, sigma = (np.asarray(array, dtype=float) for array in (edges, mean, sigma))
    places = edges[:-1, None] + np.diff(edges)[:, None] * np.array([0.2, 0.4, 0.6, 0.8])
    # Squares of +-1 sum to 4, of which 3 make the variance.
    g = mean[:, None] + sigma[:, None] * np.sqrt(3 / 4) * np.array([1, -1, -1, 1])
    return effect_of(places.ravel(), g.ravel(), edges, weighting="rows", **options)


def sampled(example, n, bins, *, rng=0, **options):
    X = example.sample(n, rng=rng)
    local = rs.local_effects(None, X, jacobian=example.jacobian, features="x1")
    return rs.rhale(local, bins=bins, **options)


def score(effect, truth):
    return {name: float(array[0]) for name, array in rs.simulate.mae(effect, truth).items()}


# --- by hand -------------------------------------------------------------------------------------


def test_two_bins_by_hand():
    """Effects 1, 3 and spreads 1, 2 on [0, 1), [1, 2]; the truth is on four bins of 0.5."""
    effect = steps([0, 1, 2], [1, 3], [1, 2], centering="start")
    truth = steps([0, 0.5, 1, 1.5, 2], [1, 2, 3, 5], [1, 2, 0, 4], centering="mean")
    found = score(effect, truth)
    # mu(a, b) is 1.5 and 4, sigma^2(a, b) is 2.5 and 8, the bin error 1/4 and 1.
    assert found["L_mu"] == pytest.approx((0.5 + 1) / 2)
    expected = (np.sqrt(2.5) - 1 + np.sqrt(8) - 2) / 2
    assert found["L_sigma"] == pytest.approx(expected)
    assert found["L_rho"] == pytest.approx((0.5 + 1) / 2)
    assert found["ISE_mu"] == pytest.approx((0 + 1 + 0 + 2) / 4)
    assert found["ISE_sigma"] == pytest.approx((0 + 1 + 2 + 2) / 4)
    # Curves 0, .5, 1, 2.5, 4 and 0, .5, 1.5, 3, 5.5.
    assert found["curve_max_error"] == pytest.approx(1.5)
    assert found["curve_mean_error"] == pytest.approx((0 + 0.25 + 0.5 + 1) / 4)
    assert found["n_missing"] == 0


@pytest.mark.thorough
@pytest.mark.parametrize("of_truth", CENTERINGS)
@pytest.mark.parametrize(
    ("centering", "offset"),
    [
        ("start", 0.0),
        # Means of the curves above along the axis, 1.5 and 1.9375, which rows at even places share.
        ("integral", 0.4375),
        ("mean", 0.4375),
    ],
)
def test_centering_by_hand(centering, offset, of_truth):
    """The truth is centred as the effect is, however it was made."""
    effect = steps([0, 1, 2], [1, 3], [1, 2], centering=centering)
    truth = steps([0, 0.5, 1, 1.5, 2], [1, 2, 3, 5], [1, 2, 0, 4], centering=of_truth)
    distance = np.abs(np.array([0, 0, 0.5, 0.5, 1.5]) - offset)
    assert score(effect, truth)["curve_max_error"] == pytest.approx(distance.max())
    assert effect["curve"].attrs["centering"] == centering


@pytest.mark.parametrize("edges", [[0, 1], [0, 0.5, 1], [0, 0.9, 1]])
def test_a_curve_bends_inside_its_bins(edges):
    """Up for half of the axis and down again: 1/2 from a flat curve at most, 1/4 on average.

    Where the mean effect of a bin is 0, the bin does not show the bend. Its cells do.
    """
    x = np.linspace(0.0025, 0.9975, 200)
    g = np.where(x < 0.5, 1.0, -1.0)
    effect = effect_of(np.r_[0, x, 1], np.r_[1, g, -1], edges, centering="start")
    truth = steps([0, 1], [0], [1], centering="start")
    found = score(effect, truth)
    # The bend is at an edge of cells, of which there are some dozens.
    assert found["curve_max_error"] == pytest.approx(0.5, abs=0.02)
    assert found["curve_mean_error"] == pytest.approx(0.25, abs=0.02)


def test_an_effect_is_no_distance_from_itself():
    effect = steps([0, 0.3, 1, 2], [1, -3, 2], [1, 2, 0])
    for name, value in score(effect, effect).items():
        assert value == pytest.approx(0, abs=1e-12), name


def test_noise_of_a_dense_truth_is_no_bin_error():
    """math [33]: two cells whose means have variance v add v / 2 to the bin error."""
    effect = steps([0, 1], [1], [1])
    truth = steps([0, 0.5, 1], [1, 2], [1, 1])
    assert score(effect, truth)["L_rho"] == pytest.approx(0.5)
    noisy = rs.std_error(truth)  # standard errors of 1 / 2 each
    assert_allclose(noisy["effect_se"], 0.5, rtol=1e-12)
    assert score(effect, noisy)["L_rho"] == pytest.approx(np.sqrt(1 / 4 - 1 / 8))


@pytest.mark.thorough
def test_an_effect_is_a_truth_by_its_bins():
    """Its cells have few rows each, so that noise would pass for bin error."""
    rng = np.random.default_rng(0)
    x = rng.uniform(size=600) ** 2
    g = 3 * x + rng.normal(size=600)
    truth = rs.std_error(effect_of(x, g, np.linspace(0, 1, 11)))
    by_bins = rs.std_error(effect_of(x, g, np.linspace(0, 1, 11), weighting="rows"))
    by_bins = by_bins.assign({name: truth[name] for name in ("effect", "effect_se")})
    for centering in CENTERINGS:
        effect = effect_of(x, g + 1, [0, 0.15, 1], centering=centering)
        of_cells, of_bins = score(effect, truth), score(effect, by_bins)
        assert of_cells == pytest.approx(of_bins)


# --- another route -------------------------------------------------------------------------------

FINE = 400_000


def brute_force(example, effect, centering):
    """Scores along the axis from functions on a fine grid of midpoints."""
    row, marginal = one_feature(effect, 0), example._marginals()["x1"]
    edges = row.bin_edges
    grid = np.linspace(edges[0], edges[-1], FINE + 1)
    z = (grid[1:] + grid[:-1]) / 2
    k = np.searchsorted(edges[1:-1], z, side="right")
    mu = marginal.mean(z)
    curve = np.concatenate([[0], np.cumsum(mu * np.diff(grid))])
    curve = (curve[1:] + curve[:-1]) / 2
    if centering == "mean":
        curve = curve - np.average(curve, weights=np.diff(marginal.cdf(grid)))
    elif centering == "integral":
        curve = curve - curve.mean()
    else:
        curve = curve - curve[0]
    distance = np.abs(curve - np.interp(z, row.edges, row["curve"].values))
    return {
        "ISE_mu": np.abs(mu - row["effect"].values[k]).mean(),
        "ISE_sigma": np.abs(np.sqrt(marginal.variance(z)) - row["heterogeneity"].values[k]).mean(),
        "curve_max_error": distance.max(),
        "curve_mean_error": distance.mean(),
    }


@pytest.mark.thorough
@pytest.mark.parametrize("centering", CENTERINGS)
@pytest.mark.parametrize(
    "example",
    [
        simulate.Quadratic(sd=0.5),
        simulate.PiecewiseLinear(),
        simulate.PiecewiseLinear.independent(
            (4, -3, 0.5), (20, 40), dense_until=40, dense_share=0.8
        ),
        simulate.RunningExample(noise=0.1),
    ],
    ids=lambda example: type(example).__name__,
)
@pytest.mark.parametrize("weighting", ["axis", "rows"])
def test_scores_along_the_axis_agree_with_a_fine_grid(example, centering, weighting):
    effect = sampled(example, 400, rs.QuantileBins(7), centering=centering, weighting=weighting)
    found = score(effect, example.truth(effect))
    expected = brute_force(example, effect, centering)
    edges = effect["edge_value"].values[0]
    # The truth's 2000 cells stand for points: in each, mu may be off by what it moves there.
    moves = np.abs(np.diff(example._marginals()["x1"].mean(np.linspace(*edges[[0, -1]], FINE))))
    size = moves.sum() / 2000
    for name, value in expected.items():
        slack = size * (np.ptp(edges) if "curve" in name else 1)
        assert found[name] == pytest.approx(value, abs=slack), name


@pytest.mark.parametrize("centering", CENTERINGS)
def test_scores_on_bins_are_differences_from_the_truth(centering):
    """math [34], Eq. 18 and 19."""
    example = simulate.PiecewiseLinear()
    effect = sampled(example, 400, rs.EqualWidthBins(6), centering=centering)
    truth = example.truth(effect)
    found = score(effect, truth)
    for name, variable in (("L_mu", "effect"), ("L_sigma", "heterogeneity")):
        expected = np.abs(effect[variable] - truth[variable]).mean()
        assert found[name] == pytest.approx(float(expected), rel=1e-12)
    assert found["L_rho"] == pytest.approx(float(np.sqrt(truth["bin_error"]).mean()), rel=1e-12)
    # At edges the curves are where the truth says that they are.
    at_edges = float(np.abs(effect["curve"] - truth["curve"]).max())
    assert found["curve_max_error"] >= at_edges - 1e-9


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("centering", "example"),
    in_turn(CENTERINGS, [simulate.Quadratic(sd=0.5), simulate.PiecewiseLinear()]),
    ids=repr,
)
def test_dense_and_exact_truth_agree(example, centering):
    """400,000 rows in 200 cells: their means have standard errors of 0.011, or 0.016."""
    effect = sampled(example, 500, rs.EqualWidthBins(5), centering=centering)
    X = example.sample(400_000, rng=1)
    dense = rs.simulate.dense_truth(example.model, example.jacobian, X, 200, features="x1")
    found, expected = score(effect, dense), score(effect, example.truth(effect))
    for name in SCORES:
        # Cells that lie across a break of the truth are a few of 200, jumps of up to 15.
        slack = 0.03 if name.startswith("ISE") else 0.01
        assert found[name] == pytest.approx(expected[name], abs=slack), name


@pytest.mark.parametrize("centering", CENTERINGS)
def test_the_exact_truth_of_other_bins_serves_as_well(centering):
    """One truth for several partitions of the same rows."""
    example = simulate.Quadratic(sd=0.5)
    X = example.sample(400, rng=0)
    local = rs.local_effects(None, X, jacobian=example.jacobian, features="x1")
    two, seven = (rs.rhale(local, bins=rs.EqualWidthBins(k), centering=centering) for k in (2, 7))
    found, expected = score(two, example.truth(seven)), score(two, example.truth(two))
    for name in SCORES:
        assert found[name] == pytest.approx(expected[name], abs=0.01), name


def test_partitions_cannot_flatter_the_scores_along_the_axis():
    """math [35]: few bins have the smaller error on their own bins."""
    example = simulate.Quadratic(sd=0.5)
    coarse, fine = (sampled(example, 500, rs.EqualWidthBins(k)) for k in (2, 20))
    coarse, fine = (score(effect, example.truth(effect)) for effect in (coarse, fine))
    assert coarse["L_mu"] < fine["L_mu"]
    assert coarse["ISE_mu"] > 5 * fine["ISE_mu"]
    assert coarse["L_rho"] == pytest.approx(9 * 0.5 / np.sqrt(12), rel=0.01)


# --- dimensions ----------------------------------------------------------------------------------


def test_schema():
    example = simulate.OppositeGroups()
    X = example.sample(200, rng=0)
    local = rs.local_effects(None, X, jacobian=example.jacobian)
    effect = rs.rhale(local, bins=rs.EqualWidthBins(4))
    scores = rs.simulate.mae(effect, example.truth(effect))
    assert set(scores.data_vars) == set(SCORES)
    for array in scores.values():
        assert array.dims == ("feature",)
        assert array.attrs["long_name"]
        assert array.attrs["units"]
    assert scores.attrs["method"] == "mae"
    assert scores.attrs["truth"] == "truth"
    assert scores.attrs["bin_rule"] == "EqualWidthBins"
    assert_array_equal(scores["feature"], effect["feature"])
    # Features by name, whatever their order.
    swapped = rs.simulate.mae(effect.isel(feature=[2, 0]), example.truth(effect))
    for name in SCORES:
        assert_array_equal(swapped[name], scores[name].isel(feature=[2, 0]))


@pytest.mark.parametrize("same_truth", [False, True])
def test_replicates_are_scored_one_by_one(same_truth):
    """Also where they have other numbers of bins."""
    example = simulate.PiecewiseLinear()
    effects = [sampled(example, 300, rs.OptimalBins(30), rng=seed) for seed in range(4)]
    assert len({effect.sizes["bin"] for effect in effects}) > 1
    dense = rs.simulate.dense_truth(
        None, example.jacobian, example.sample(50_000, rng=9), 50, features="x1"
    )
    truths = [dense if same_truth else example.truth(effect) for effect in effects]
    replicate = pd.Index(range(10, 14), name="replicate")
    together = xr.concat(effects, replicate, join="outer")
    truth = dense if same_truth else xr.concat(truths, replicate, join="outer")
    scores = rs.simulate.mae(together, truth)
    assert_array_equal(scores["replicate"], replicate)
    for number, (effect, true) in enumerate(zip(effects, truths, strict=True)):
        alone = rs.simulate.mae(effect, true)
        for name in SCORES:
            found = scores[name].isel(replicate=number)
            assert_allclose(found, alone[name], rtol=1e-12, err_msg=name)
            assert scores[name].attrs["units"] == alone[name].attrs["units"]
    error = rs.simulate.mcse(scores)
    expected = np.std(scores["ISE_mu"].values, axis=0, ddof=1) / 2
    assert_allclose(error["ISE_mu"], expected.ravel(), rtol=1e-12)


@pytest.mark.thorough
@pytest.mark.parametrize(("a", "c", "d"), [(3.0, 1.0, 0.0), (-2.0, 100.0, 1e4), (1.0, 1e-3, 5.0)])
def test_shift_and_scale(a, c, d):
    """f -> a f + b, x -> c x + d: scores by their units."""

    def scores(a, c, d):
        effect = steps(c * np.array([0, 1, 2]) + d, a / c * np.array([1, 3]), [abs(a / c), 0])
        edges = c * np.array([0, 0.5, 1, 1.5, 2]) + d
        sigma = abs(a / c) * np.array([1, 2, 0, 4])
        return score(effect, steps(edges, a / c * np.array([1, 2, 3, 5]), sigma))

    found, plain = scores(a, c, d), scores(1.0, 1.0, 0.0)
    for name in SCORES:
        unit = abs(a) if "curve" in name else 1 if name == "n_missing" else abs(a / c)
        assert found[name] == pytest.approx(plain[name] * unit, rel=1e-8), name


# --- what is missing -----------------------------------------------------------------------------


def test_a_bin_without_rows_is_counted_and_not_left_out():
    x = np.concatenate([np.linspace(0.02, 0.48, 40), np.linspace(0.76, 0.98, 40)])
    with pytest.warns(UserWarning, match=r"'x' \(1 of 4\)"):
        effect = effect_of(x, 9 * x, np.linspace(0, 1, 5))
    truth = steps(np.linspace(0, 1, 21), 9 * np.linspace(0.025, 0.975, 20), np.full(20, 0.1))
    found = score(effect, truth)
    assert found["n_missing"] == 1
    for name in SCORES:
        # What the truth alone decides is known.
        assert np.isnan(found[name]) == (name not in ("n_missing", "L_rho")), name


def test_a_bin_of_one_row_has_an_effect_and_no_spread():
    effect = effect_of([0.1, 0.2, 0.3, 0.7], [1, 2, 3, 4], [0, 0.5, 1])
    found = score(effect, steps([0, 0.25, 0.5, 0.75, 1], [1, 2, 3, 5], [1, 2, 0, 4]))
    assert found["n_missing"] == 1
    missing = [name for name, value in found.items() if np.isnan(value)]
    assert missing == ["L_sigma", "ISE_sigma"]


def test_a_constant_feature_has_no_score():
    X = np.column_stack([np.linspace(0, 1, 40), np.ones(40)])
    effect = rs.rhale(rs.local_effects(None, X, jacobian=X), bins=rs.EqualWidthBins(2))
    scores = rs.simulate.mae(effect, effect)
    for name in SCORES:
        assert scores[name].isnull().values.tolist() == [False, True], name
    with pytest.raises(ValueError, match="truth must vary in feature 'x0'; there it is constant"):
        rs.simulate.mae(effect, effect.assign_coords(feature=["x1", "x0"]))


@pytest.mark.filterwarnings("ignore:Bins without rows")
def test_holes_of_a_dense_truth_beyond_the_bins_do_not_matter():
    """Tails of a normal feature: cells without rows, or with one, where the effect has no bins."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=20_000), "y": rng.normal(size=20_000)})
    X.iloc[:2] = [[-9.0, 0.0], [9.0, 0.0]]  # alone out there
    jacobian = np.column_stack([2 * X["x"] + X["y"], X["x"]])
    dense = rs.simulate.dense_truth(None, jacobian, X, 180, features="x")
    assert dense["effect"].isnull().any()
    inner = X[np.abs(X["x"]) < 1.5][:500]
    local = rs.local_effects(None, inner, jacobian=jacobian[inner.index], features="x")
    effect = rs.rhale(local, bins=rs.EqualWidthBins(3))
    found = score(effect, dense)
    assert np.isfinite(list(found.values())).all()
    # mu(z) = 2 z and sigma = 1: steps of width 1 miss |2 u|, u in (-0.5, 0.5), by 1/2 on average.
    assert found["ISE_mu"] == pytest.approx(0.5, abs=0.05)
    assert found["L_mu"] < 0.3
    # The standard deviation of 2 u is 1 / sqrt(3).
    assert found["L_rho"] == pytest.approx(1 / np.sqrt(3), abs=0.05)
    assert found["curve_mean_error"] < 0.3


# --- refused -------------------------------------------------------------------------------------


def test_a_truth_that_does_not_reach():
    effect = steps([0, 1, 2], [1, 3], [1, 2])
    short = steps([0, 0.2, 0.4, 1.0], [1, 2, 3], [1, 2, 0])
    with pytest.raises(
        ValueError, match=r"'x' it covers \[0, 1\] and they \[0, 2\]. Make the truth"
    ):
        rs.simulate.mae(effect, short)
    # A sample may lie a little outside the rows of a dense truth: up to the width of a cell.
    nearly = steps(np.linspace(0.01, 1.99, 21), np.ones(20), np.ones(20))
    assert np.isfinite(score(effect, nearly)["ISE_mu"])


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("edges", "reach", "mean"),
    [
        ([0, 4], [0, 1, 2, 4], [1, 2, 3]),
        ([1, 2], [1, 2], [2]),
        ([0.5, 1.5], [0, 1, 2], [1, 2]),
        ([2, 3], [2, 4], [3]),
        # Up to the widest cell beyond the ends.
        ([-2, 6], [-2, 1, 2, 6], [1, 2, 3]),
        ([-1, 0.5], [-1, 1], [1]),
        ([3, 5], [2, 5], [3]),
    ],
)
def test_cells_of_a_truth_that_are_needed(edges, reach, mean):
    truth = first_of(rs.std_error(steps([0, 1, 2, 4], [1, 2, 3], [1, 2, 3])))
    found = _cells(truth, np.array(edges, dtype=float))
    assert_array_equal(found.edges, reach)
    mean = np.array(mean)
    assert_allclose(found.mean, mean, rtol=1e-12)
    assert_allclose(found.variance, mean**2, rtol=1e-12)  # sigma is as large as mu
    assert_allclose(found.noise, mean**2 / 4, rtol=1e-12)  # of four rows
    assert_allclose(found.share, 1 / 3, rtol=1e-12)


@pytest.mark.parametrize("edges", [[-2.01, 4], [0, 6.01]])
def test_a_truth_that_ends_before_either_end(edges):
    truth = first_of(steps([0, 1, 2, 4], [1, 2, 3], [1, 2, 3]))
    message = rf"'x' it covers \[0, 4\] and they \[{edges[0]}, {edges[1]}\]. Make the truth"
    with pytest.raises(ValueError, match=message):
        _cells(truth, np.array(edges))


def test_an_exact_truth_of_another_axis_cannot_centre_at_the_mean():
    """Where the rows are, it does not say."""
    example = simulate.Quadratic()
    wide = example.truth(sampled(example, 300, rs.GivenBins([0, 0.5, 1])))
    effect = sampled(example, 300, rs.EqualWidthBins(3))
    with pytest.raises(ValueError, match=r"for feature 'x1' it has another axis or centring. Pass"):
        rs.simulate.mae(effect, wide)
    for centering in ("start", "integral"):
        effect = sampled(example, 300, rs.EqualWidthBins(3), centering=centering)
        found, expected = score(effect, wide), score(effect, example.truth(effect))
        for name in SCORES:
            assert found[name] == pytest.approx(expected[name], abs=0.01), name


def test_refused_arguments():
    effect = steps([0, 1, 2], [1, 3], [1, 2])
    with pytest.raises(KeyError, match="feature must be one of 'y'.*got 'x'"):
        rs.simulate.mae(effect, effect.assign_coords(feature=["y"]))
    with pytest.raises(TypeError, match="truth must be the Dataset that simulator.truth.*got None"):
        rs.simulate.mae(effect, None)
    with pytest.raises(TypeError, match="effect must be the Dataset that rhale.*got float"):
        rs.simulate.mae(1.0, effect)
    with pytest.raises(ValueError, match="truth must be .*no variable 'heterogeneity'"):
        rs.simulate.mae(effect, effect.drop_vars("heterogeneity"))


# --- Monte-Carlo standard error ------------------------------------------------------------------


def test_mcse_by_hand():
    """1, 2, 3, 6: squared deviations 4, 1, 0, 9 make a variance of 14/3, over 4."""
    samples = xr.DataArray([1.0, 2.0, 3.0, 6.0], dims="replicate")
    assert float(rs.simulate.mcse(samples)) == pytest.approx(np.sqrt(14 / 3 / 4))
    both = xr.Dataset({"a": samples, "b": (("study", "replicate"), [[1.0, 3.0, 1.0, 3.0]] * 2)})
    found = rs.simulate.mcse(both)
    assert found["a"].dims == ()
    assert_allclose(found["b"], [np.sqrt(4 / 3 / 4)] * 2)
    assert float(rs.simulate.mcse(samples.rename(replicate="seed"), "seed")) == pytest.approx(
        float(rs.simulate.mcse(samples))
    )


def test_mcse_of_two_replicates():
    """1 and 3: a standard deviation of the root of 2, over the root of 2."""
    assert float(rs.simulate.mcse(xr.DataArray([1.0, 3.0], dims="replicate"))) == pytest.approx(1)


def test_mcse_of_a_failure_is_unknown():
    """math [36]: never over the surviving runs only."""
    samples = xr.Dataset(
        {"a": ("replicate", [1.0, np.nan, 3.0]), "b": ("replicate", [1.0, 2.0, 3.0])}
    )
    found = rs.simulate.mcse(samples)
    assert np.isnan(found["a"])
    assert found["b"] == pytest.approx(1 / np.sqrt(3))


def test_mcse_refuses():
    samples = xr.DataArray([[1.0], [2.0]], dims=("replicate", "feature"))
    with pytest.raises(ValueError, match="one of 'replicate', 'feature'; got 'run'"):
        rs.simulate.mcse(samples, "run")
    with pytest.raises(ValueError, match="one of none; got 'replicate'"):
        rs.simulate.mcse(xr.DataArray(1.0))
    with pytest.raises(ValueError, match="at least two replicates along 'feature'; got 1"):
        rs.simulate.mcse(samples, "feature")
