"""M-plots and SHAP dependence made again from the rows that they keep."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy import stats
from scipy.interpolate import make_smoothing_spline

import rhale_stats as rs
from rhale_stats.arrays import splines
from rhale_stats.profiles.rows import rows_behind
from tests.helpers import in_turn, through_a_file

BINS = rs.GivenBins({"a": np.linspace(-4, 4, 7).tolist()})
STATISTICS = ("curve", "curve_std", "heterogeneity_output", "importance")


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(3)
    a = np.clip(rng.normal(size=300), -3.9, 3.9)
    a[:2] = -4, 4  # so that the outer bins have few rows
    return pd.DataFrame({"a": a, "b": rng.normal(size=300), "k": rng.choice(["u", "v", "w"], 300)})


def f(X):
    return np.asarray(np.sin(X["a"]) + X["a"] * X["b"] + (X["k"] == "u"), dtype=float)


def values(X):
    """Something like Shapley values of the column a."""
    return np.sin(X["a"].to_numpy()) + 0.3 * X["b"].to_numpy()


def made(kind, X, **how):
    if kind == "m_plot":
        return rs.m_plot(f, X, features=["a", "k"], bins=rs.QuantileBins(6), **how)
    phi = np.column_stack([values(X), values(X), f(X)])
    return rs.shap_dependence(None, X, features=["a", "k"], shap_values=phi, n_grid=9, **how)


@pytest.mark.parametrize("smoothing", [1e-8, 1e-5, 1e-2])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_spline_is_that_of_scipy(smoothing, weighted, monkeypatch):
    """With a knot at every place."""
    monkeypatch.setattr(splines, "MAX_KNOTS", 200)
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, 200)
    y = np.sin(2 * x) + rng.normal(0, 0.3, 200)
    weight = rng.uniform(0.5, 2, 200) if weighted else None
    grid = np.linspace(-1.9, 1.9, 31)
    basis = splines.spline_basis(x, weight, grid)
    w = np.ones(200) if weight is None else weight
    total = np.bincount(basis.cell, w)
    oracle = make_smoothing_spline(
        basis.place,
        np.bincount(basis.cell, w * y) / total,
        total / total.mean(),
        lam=smoothing * len(total),
    )
    found = splines.smooth(basis, y, weight, smoothing, frequency=False).curve
    # scipy loses digits where the penalty is large.
    np.testing.assert_allclose(found, oracle((grid - x.min()) / np.ptp(x)), atol=1e-6)


@pytest.mark.thorough
@pytest.mark.parametrize("weighted", [False, True])
def test_fewer_knots_than_places(weighted, monkeypatch):
    """The curve is as with all knots, up to a hundredth of its error."""
    rng = np.random.default_rng(0)
    x, weight = rng.uniform(-2, 2, 1200), rng.uniform(0.5, 2, 1200) if weighted else None
    y, grid = np.sin(2 * x) + rng.normal(0, 0.3, 1200), np.linspace(-1.9, 1.9, 31)

    def fitted():
        basis = splines.spline_basis(x, weight, grid)
        return basis, splines.smooth(basis, y, weight, None, frequency=False)

    basis, smooth = fitted()
    assert basis.at_cells.shape == (len(basis.place), splines.MAX_KNOTS)
    moved = splines.influences(basis, smooth.residual, weight, smooth.smoothing, frequency=False)
    w = np.ones(1200) if weight is None else weight
    error = np.sqrt(np.sum((w[:, None] / w.sum() * moved) ** 2, axis=0))
    monkeypatch.setattr(splines, "MAX_KNOTS", 1200)
    assert np.abs(smooth.curve - fitted()[1].curve).max() < error.min() / 100


def test_the_curve_is_linear_in_the_values_and_influences_are_its_derivatives():
    rng = np.random.default_rng(0)
    x, y = rng.uniform(size=(2, 60))
    weight = rng.uniform(0.5, 2, 60)
    basis = splines.spline_basis(x, weight, np.linspace(-0.1, 1.1, 7))
    found = splines.smooth(basis, y, weight, 1e-4, frequency=False)
    # The weight of a row moved a little: the fit by its definition.
    step = 1e-5
    for row in (0, 7, 31):
        ends = []
        for sign in (1, -1):
            moved = weight.copy()
            moved[row] += sign * step
            curve, _ = splines.replicate_curves(basis, y, moved[:, None], 1e-4)
            ends.append(curve[:, 0])
        slope = (ends[0] - ends[1]) / (2 * step) * weight.sum()
        own = splines._influence_of_cells(
            basis, splines._shares(basis, weight), 1e-4, basis.at_grid
        )[basis.cell]
        psi = own * found.residual[:, None]
        psi = psi - np.average(psi, axis=0, weights=weight)
        np.testing.assert_allclose(slope, psi[row], atol=2e-3 * np.abs(psi).max())


@pytest.mark.parametrize(
    ("kind", "centering"), in_turn(["m_plot", "shap"], ["mean", "start", "integral", "none"])
)
def test_replicates_with_weights_of_one_are_the_profile(X, kind, centering):
    weight = np.random.default_rng(1).uniform(0.5, 2, len(X))
    for how in ({}, {"weights": weight}):
        found = made(kind, X, centering=centering, **how)
        group = np.zeros(len(X), dtype=int)  # one group: every replicate is the sample
        boot = rs.bootstrap(found, found, n_resamples=2, chains=1, groups=group, rng=0)
        for name in STATISTICS:
            for draw in range(2):
                np.testing.assert_allclose(
                    boot[name][0, draw], found[name], rtol=1e-8, atol=1e-8, err_msg=name
                )
        assert not boot["n_empty"].any()


def test_a_replicate_is_the_m_plot_of_its_rows(X):
    seed = np.random.default_rng(3).spawn(1)[0]
    weight = np.bincount(seed.integers(300, size=300), minlength=300)
    for centering in ("mean", "none"):
        found = rs.m_plot(f, X, features="a", bins=BINS, centering=centering)
        boot = rs.bootstrap(found, found, n_resamples=1, chains=1, rng=np.random.default_rng(3))
        some = X.loc[X.index.repeat(weight)]
        cell = pd.cut(some["a"], np.linspace(-4, 4, 7), right=False, include_lowest=True)
        cell = np.clip(np.digitize(some["a"], np.linspace(-4, 4, 7)), 1, 6) - 1
        groups = pd.Series(f(some)).groupby(cell)
        constant = f(some).mean() if centering == "mean" else 0.0
        expected = (groups.mean() - constant).reindex(range(6)).to_numpy()
        np.testing.assert_allclose(boot["curve"][0, 0, 0], expected, rtol=1e-10)
        np.testing.assert_allclose(
            boot["curve_std"][0, 0, 0], groups.std().reindex(range(6)), rtol=1e-8
        )
        assert int(boot["n_empty"][0, 0, 0]) == int(np.isnan(expected).sum())


@pytest.mark.parametrize("kind", ["m_plot", "shap"])
def test_replicates_vary_as_the_standard_errors_say(X, kind):
    found = made(kind, X)
    boot = rs.bootstrap(found, found, n_resamples=1200, rng=0)
    # At the ends of the axis a spline hangs on a single row, which replicates may be without.
    inner = {"feature": 0, "grid": slice(1, -1)} if kind == "shap" else {"feature": [0, 1]}
    ratio = (boot["curve"].std(("chain", "draw")) / found["curve_se"]).isel(inner)
    # Monte-Carlo error of a standard deviation of 1200 draws is 2 %; the divisor of bins of 50
    # rows makes the rest.
    assert float(ratio.min()) > 0.85
    assert float(ratio.max()) < 1.12
    for method in ("percentile", "bca"):
        width = rs.confint(found, boot, method=method)["curve_ci"].diff("ci_bound")
        normal = rs.confint(found)["curve_ci"].diff("ci_bound")
        assert float(np.abs((width / normal).isel(inner) - 1).max()) < 0.25


def test_bins_that_replicates_leave_empty_are_counted(X):
    found = rs.m_plot(f, X, features="a", bins=BINS)
    boot = rs.bootstrap(found, found, n_resamples=200, rng=0)
    empty = np.isnan(boot["curve"]).sum("grid")
    np.testing.assert_array_equal(boot["n_empty"], empty)
    assert 0 < int(empty.sum()) < 400
    known = rs.bootstrap(found, found, n_resamples=8, scheme="bayesian", rng=0)
    assert not known["n_empty"].any()


def test_frequencies_are_repeated_rows_to_the_search_of_the_penalty(X):
    weight = np.random.default_rng(1).integers(0, 4, len(X))
    again = X.loc[X.index.repeat(weight)].reset_index(drop=True)
    kept = X[weight > 0].reset_index(drop=True)
    a = made("shap", kept, weights=weight[weight > 0], weight_kind="frequency")
    b = made("shap", again)
    for name in ("curve", "curve_se", "curve_cov", "curve_std", "smoothing"):
        np.testing.assert_allclose(a[name], b[name], rtol=1e-7, atol=1e-9, err_msg=name)


def test_levels_have_the_errors_of_means(X):
    found = made("shap", X, centering="none")
    phi = pd.Series(f(X)).groupby(X["k"])
    # HC2 is the unbiased variance of a mean; the sample of influences has n - 1 for n.
    expected = phi.sem() * np.sqrt(300 / 299)
    np.testing.assert_allclose(found["curve_se"][1, :3], expected, rtol=1e-10)
    np.testing.assert_allclose(found["curve"][1, :3], phi.mean(), rtol=1e-10)


def test_two_m_plots(X):
    def other(X):
        return f(X) + 0.5 * np.asarray(X["b"])

    a, b = (rs.m_plot(model, X, features="a", bins=rs.QuantileBins(6)) for model in (f, other))
    independent, paired = (
        rs.compare(a, b, n_draws=500, rng=0),
        rs.compare(a, b, paired=(a, b), n_draws=500, rng=0),
    )
    direct = rs.m_plot(lambda X: f(X) - other(X), X, features="a", bins=rs.QuantileBins(6))
    np.testing.assert_allclose(paired["difference"], direct["curve"], atol=1e-12)
    np.testing.assert_allclose(paired["difference_se"], direct["curve_se"], rtol=1e-10)
    se = np.sqrt(a["curve_se"] ** 2 + b["curve_se"] ** 2)
    np.testing.assert_allclose(independent["difference_se"], se, rtol=1e-10)
    # Other rows in the same bins have other means there.
    c = rs.m_plot(f, X[::2], features="a", bins=BINS)
    d = rs.m_plot(f, X[1::2], features="a", bins=BINS)
    assert np.isfinite(rs.compare(c, d, n_draws=500, rng=0)["p_value"]).all()
    with pytest.raises(ValueError, match="a and b must have the same bins; those of feature 'a'"):
        rs.compare(a, c)
    with pytest.raises(ValueError, match="paired must be of the same rows"):
        rs.compare(c, d, paired=(c, d))


def test_two_shap_dependences(X):
    x = X[["a"]].to_numpy()
    a = rs.shap_dependence(None, x, shap_values=values(X))
    b = rs.shap_dependence(None, x, shap_values=values(X) + 0.5 * x[:, 0])
    # A line more goes through every smoother: the difference is this line less its mean.
    paired = rs.compare(a, b, paired=(a, b), n_draws=500, rng=0)
    np.testing.assert_allclose(paired["difference"], a["curve"] - b["curve"])
    place = 0.5 * x.std(ddof=1) / np.sqrt(len(x))
    np.testing.assert_allclose(paired["difference_se"][0], place, rtol=0.02)
    assert (rs.compare(a, b, n_draws=500, rng=0)["difference_se"] > paired["difference_se"]).all()


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["m_plot", "shap"])
def test_several_outputs_gaps_and_files(X, kind, tmp_path):
    found = made(kind, X)
    assert through_a_file(found, tmp_path).identical(found)
    assert np.isfinite(
        rs.confband(found, n_draws=500, rng=0)["curve_band"].isel(feature=1, grid=slice(3))
    ).all()
    if kind == "m_plot":
        gaps = X.copy()
        gaps.loc[:20, "a"] = np.nan
        some = rs.m_plot(
            lambda X: np.column_stack([X["b"], X["b"] ** 2]),
            gaps,
            features=["a", "k"],
            missing="drop",
            bins=rs.QuantileBins(4),
        )
        assert some["output_value"].dims == ("output", "obs")
        boot = rs.bootstrap(some, some, n_resamples=200, rng=0)
        ratio = boot["curve"].std(("chain", "draw")) / some["curve_se"]
        assert float(ratio.min()) > 0.75
        assert float(ratio.max()) < 1.25


@pytest.mark.slow
def test_the_intervals_of_a_spline_hold_the_expected_smooth():
    """And the curve itself less often: a spline is biased where it bends."""
    rng = np.random.default_rng(0)
    n, runs, grid = 300, 100, np.linspace(-1.8, 1.8, 13)
    smooth, true = [], []
    dense = np.linspace(-2, 2, 1025)
    for _ in range(runs):
        x = rng.uniform(-2, 2, n)
        phi = np.sin(2 * x) + rng.normal(0, 0.3 + 0.1 * np.abs(x))
        found = rs.shap_dependence(None, x[:, None], shap_values=phi, grid=grid, centering="none")
        ends = rs.confint(found)["curve_ci"].values[0]
        # The same smoother on all of the population.
        basis = splines.spline_basis(dense, None, grid)
        smoothing = float(found["smoothing"][0]) * (np.ptp(x) / 4) ** 4 / (np.ptp(x) / 4)
        target = splines.smooth(basis, np.sin(2 * dense), None, smoothing, frequency=False).curve
        smooth.append((ends[:, 0] <= target) & (target <= ends[:, 1]))
        true.append((ends[:, 0] <= np.sin(2 * grid)) & (np.sin(2 * grid) <= ends[:, 1]))
    rates, error = [], []
    for held in (smooth, true):
        by_run = np.mean(held, axis=1)
        rates.append(by_run.mean())
        error.append(by_run.std(ddof=1) / np.sqrt(runs))
    # Measured 0.935 (0.005) and 0.911 (0.005): that the data chose the smoothing parameter is not
    # in the errors.
    assert abs(rates[0] - 0.95) < 0.02 + stats.norm.ppf(0.999) * error[0]
    assert 0.85 < rates[1] < rates[0] + 0.01


@pytest.mark.thorough
def test_what_has_its_rows_comes_alone():
    X = np.random.default_rng(0).normal(size=(60, 2))
    for made in (rs.m_plot(lambda X: X[:, 0] ** 2, X), rs.ice(lambda X: X[:, 0] ** 2, X)):
        alone, both = (
            rs.bootstrap(*given, n_resamples=8, rng=0) for given in ((made,), (made,) * 2)
        )
        xr.testing.assert_identical(alone, both)


def test_weights_that_are_related_to_errors_do_not_choose_an_interpolation():
    """Rows of large errors and large weights are left out by their own leverage, math [73]."""
    rng = np.random.default_rng(3)
    x, e = rng.uniform(-1, 1, 600), rng.normal(size=600)
    kept = rng.uniform(size=600) < np.where(np.abs(e) > 1, 0.2, 1.0)
    x, e = x[kept], e[kept]
    weights = np.where(np.abs(e) > 1, 5.0, 1.0)
    grid = np.linspace(-0.9, 0.9, 9)
    asked = {"shap_values": np.sin(2 * x) + e / 2, "features": [0], "grid": grid}
    found = rs.shap_dependence(None, x[:, None], weights=weights, centering="none", **asked)
    assert np.abs(found["curve"].values[0] - np.sin(2 * grid)).max() < 0.35
    assert found["smoothing"].item() > 1e-6
    # Equal weights are none, and frequencies are repeated rows.
    plain = rs.shap_dependence(None, x[:, None], centering="none", **asked)
    equal = rs.shap_dependence(None, x[:, None], weights=0 * x + 3, centering="none", **asked)
    np.testing.assert_allclose(equal["curve"], plain["curve"], rtol=1e-9)


def test_groups_of_shapley_values():
    """Of levels the errors by groups are those of an M-plot; many groups of one row those of rows.

    The curve of levels is their means, as an M-plot of the same values is.
    """
    rng = np.random.default_rng(8)
    table = pd.DataFrame({"k": rng.choice(list("pqr"), 300), "z": rng.normal(size=300)})
    groups = rng.integers(30, size=300)
    phi = rng.normal(size=30)[groups] + rng.normal(size=300) + (table["k"] == "q")
    for centering in ("mean", "none"):
        shap = rs.shap_dependence(
            None, table, features="k", shap_values=phi.to_numpy(), centering=centering
        )
        means = rs.m_plot(
            lambda X: X["phi"], table.assign(phi=phi), features="k", centering=centering
        )
        found, known = (rs.std_error(one, groups=groups) for one in (shap, means))
        np.testing.assert_allclose(found["curve_cov"], known["curve_cov"], rtol=1e-9)
        assert found["curve_se"].attrs["source"] == "rows in 30 groups"
        assert ((found["curve_df"] > 10) & (found["curve_df"] < 29)).all()
    smooth = rs.shap_dependence(
        None, table, features="z", shap_values=phi.to_numpy(), n_grid=7, centering="none"
    )
    alone = rs.std_error(smooth, groups=np.arange(300))
    # Leverages of two rows at one place differ from those of one.
    np.testing.assert_allclose(alone["curve_se"], smooth["curve_se"], rtol=0.02)
    more = rs.std_error(smooth, groups=groups)["curve_se"] / smooth["curve_se"]
    # In the middle, where a point has rows of many groups.
    assert (more[0, 2:5] > 1.3).all()
    with pytest.raises(ValueError, match="groups must be given for a shap_dependence that has"):
        rs.std_error(alone)


def test_replicates_of_curves_have_the_divisor_of_their_weights(X):
    """Replicates of ICE curves: of precision weights the divisor is W - sum w² / W."""
    w = np.random.default_rng(1).uniform(0.5, 2, len(X))
    for kind in ("precision", "frequency"):
        v = np.ceil(w) if kind == "frequency" else w
        curves = rs.ice(f, X, features="a", grid=[-1.0, 0.0, 2.0], weights=v, weight_kind=kind)
        drawn = np.random.default_rng(2).integers(0, 3, (len(X), 2)).astype(float)
        behind = rows_behind(curves, "a")
        found = behind.replicates(drawn, "none")
        values = curves["ice"].values[0].T
        base = behind.weight
        lost = 1.0 if kind == "frequency" else base @ base / base.sum()
        # Curves that are taken as they are, without constants of their own.
        alone = replace(behind, derivative=True).replicates(drawn, "none")
        for draw, counts in enumerate(drawn.T):
            each = base * counts
            mean = np.average(values, axis=0, weights=each)
            np.testing.assert_allclose(found.curve[draw], mean)
            square = np.average((values - mean) ** 2, axis=0, weights=each)
            factor = base.sum() / (base.sum() - lost)
            np.testing.assert_allclose(alone.spread[draw], np.sqrt(square * factor))


@pytest.mark.thorough
def test_influences_of_curves_of_derivatives_and_of_few_rows(X):
    one = rs.ice(f, X[:1], features="a", grid=[0.0, 1.0])
    assert np.isnan(rows_behind(one, "a").replicates(np.ones((1, 1)), "mean").spread).all()
    gaps = X.assign(a=X["a"].where(X["b"] > 0))
    curves = rs.ice(lambda X: f(X.fillna({"a": 0.0})), gaps, features=["a", "k"], n_grid=4,
                    missing="drop")  # fmt: skip
    there = gaps["a"].notna().to_numpy()
    behind = rows_behind(curves, "a")
    np.testing.assert_array_equal(behind.values, curves["ice"].values[0].T[there])
    assert len(rows_behind(curves, "k").values) == len(X)
    np.testing.assert_array_equal(behind.base, np.ones(there.sum()))
    bins = rs.m_plot(lambda X: f(X.fillna({"a": 0.0})), gaps, features=["a", "k"], missing="drop",
                     bins=BINS)  # fmt: skip
    rows = rows_behind(bins, "a")
    assert len(rows.values) == there.sum()
    edges = np.linspace(-4, 4, 7)
    cell = np.clip(np.searchsorted(edges, gaps["a"][there], side="right") - 1, 0, 5)
    np.testing.assert_array_equal(rows.cell, cell)
    np.testing.assert_array_equal(rows_behind(bins, "k").cell, X["k"].map({"u": 0, "v": 1, "w": 2}))
    constant = rs.m_plot(lambda X: X["b"], X.assign(a=1.0), features="a", bins=BINS)
    assert len(rows_behind(constant, "a").grid) == 0
