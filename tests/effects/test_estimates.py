"""RHALE as statistics: known truths, exact counts, coverage, equivariance.

A simulation is one Dataset: every sample is a column of X, so that one call estimates them all.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import rhale_stats as rs
from rhale_stats.arrays import accumulate
from rhale_stats.arrays import cells as cell_kernel
from rhale_stats.arrays.cell_moments import RowMoments
from rhale_stats.bins.rule import Column, Partition
from rhale_stats.effects.estimates import (
    CellGrid,
    RhaleSettings,
    _fixed_cells,
    _reached,
    are_agreed,
    fitted_bins,
)
from rhale_stats.schema.feature_result import one_feature
from tests.arrays.made import in_cells
from tests.arrays.test_binning import recount
from tests.bins.test_adaptive import Lines
from tests.helpers import daily, in_turn, unpacked

EPS = np.finfo(float).eps


def samples(x, g, bins, weights=None, **options):
    """RHALE of every column of ``x`` (row, sample) with its local effects ``g``."""
    names = list(range(x.shape[1]))
    local = rs.local_effects(None, x, jacobian=g, features=names, weights=weights)
    return rs.rhale(local, bins=bins, **options)


def bin_edges(effect):
    """Edges of the bins of one feature."""
    return np.append(effect["bin_left"], effect["bin_right"][-1])


def monte_carlo(values):
    """Mean over samples and its standard error."""
    values = np.asarray(values)
    return values.mean(), values.std(ddof=1) / np.sqrt(len(values))


# --- known truths --------------------------------------------------------------------------------


@pytest.mark.parametrize("n_bins", daily([16, 1]))
@pytest.mark.slow
def test_heterogeneity_estimates_variance_plus_bin_error(n_bins):
    """math [47]: E sigma-hat^2 = sigma^2 + bin_error = .4 + 1/(3 K^2) (Theorem 1)."""
    rng = np.random.default_rng(n_bins)
    x = rng.uniform(size=(500, 400))
    g = 1 + 2 * (x + rng.normal(0, np.sqrt(0.1), x.shape))
    # Equal bins on the known range: those of the observed range are narrower by 2 / 501.
    bins = rs.GivenBins(np.linspace(0, 1, n_bins + 1))
    effect = samples(x, g, bins)
    share = unpacked(effect)["weight_share"]
    weighted = (share * effect["heterogeneity"] ** 2).sum("bin")
    mean, error = monte_carlo(weighted)
    assert abs(mean - (0.4 + 1 / (3 * n_bins**2))) < 3 * error
    assert error < 0.0024  # a divisor of n in 16 bins would err by .013


def eq_1(n_samples, rng):
    """x2 of math [48]: f = .2 x1 - 5 x2 + 10 x2 1{x3 > 0}, N = 100."""
    x2, x3 = rng.uniform(-1, 1, (2, 100, n_samples))
    return x2, -5 + 10.0 * (x3 > 0)


@pytest.mark.thorough
def test_eq_1_of_the_paper(rng):
    """The effect of x2 is 0 with heterogeneity 5, in one bin; that of x1 is .2 with none."""
    rule = rs.OptimalBins(discount=0.5, min_obs=10)
    effect = samples(*eq_1(50, rng), rule)
    assert (effect["n_bins"] == 1).sum() >= 49  # 999 of 1000
    mean, error = monte_carlo(effect["effect"].values[:, 0])
    assert abs(mean) < 3 * error
    # sigma-hat^2 = 25 (1 - mean^2 / 25) 100/99 is 25 on average, and its root all but 5.
    mean, error = monte_carlo(effect["heterogeneity"].values[:, 0] ** 2)
    assert abs(mean - 25) < 3 * error

    x1 = samples(rng.uniform(-1, 1, (100, 50)), np.full((100, 50), 0.2), rule)
    assert (x1["n_bins"] == 1).all()
    assert_allclose(x1["effect"], 0.2, rtol=100 * EPS)
    assert_allclose(x1["heterogeneity"], 0, atol=100 * EPS)


def test_eq_1_on_the_draw_of_the_authors(rng):
    """They report mu = .40, sigma = 4.98: 54 of 100 rows have x3 > 0, and ddof is 0."""
    x = rng.uniform(-1, 1, (100, 1))
    g = rng.permutation(np.repeat([5.0, -5.0], [54, 46]))[:, None]
    rule = rs.OptimalBins(discount=0.5, min_obs=10)
    effect = samples(x, g, rule, weighting="rows").isel(feature=0)
    assert effect["n_bins"] == 1
    assert_allclose(effect["effect"], [0.4], rtol=100 * EPS)
    assert round(float(effect["heterogeneity"][0]) * np.sqrt(99 / 100), 2) == 4.98


def eq_17(x):
    """math [50], case a, with x2 = x1: the effect of x1 is 1, -1, 0 in three pieces."""
    return np.where(x < 0.25, 1.0, np.where(x < 0.5, -1.0, 0.0))


def test_eq_17_of_the_paper_on_an_even_design():
    x = np.linspace(0, 1, 401)[:, None]  # cells of 1/20 hold 20 rows each, with clean breaks
    effect = samples(x, eq_17(x), rs.OptimalBins(20)).isel(feature=0)
    assert_allclose(bin_edges(effect), [0, 0.25, 0.5, 1], atol=16 * EPS)
    assert_allclose(effect["effect"], [1, -1, 0], atol=100 * EPS)
    assert_allclose(effect["heterogeneity"], 0, atol=100 * EPS)


@pytest.mark.thorough
def test_eq_17_of_the_paper_on_random_rows(rng):
    """Edges at 0, 1/4, 1/2 and 1 within a grid cell.

    Where the cell of a break holds m rows of its other side, a bin of n rows with them costs about
    4 m / n times its width, all but the same for any width: some samples get one more bin.
    """
    x = rng.uniform(size=(500, 50))
    effect = samples(x, eq_17(x), rs.OptimalBins(20, min_obs=10))
    edges = effect.rhale.in_bins()["edge_value"].values
    distance = np.abs(edges[:, :, None] - np.array([0, 0.25, 0.5, 1]))
    assert np.nanmin(distance, axis=1).max() < 1 / 20
    assert (effect["n_bins"] == 3).sum() > 25  # 66 % of samples
    assert effect["n_bins"].max() <= 5


def eq_5(n_samples, rng):
    """x1 of math [49], N = 60: rows are dense to the left of 0 and sparse to its right."""
    shape = (60, n_samples)
    x1 = np.where(
        rng.random(shape) < 5 / 6, rng.uniform(-0.5, 0, shape), rng.uniform(0, 0.5, shape)
    )
    x2, x3 = rng.normal(0, 2, shape), rng.normal(x1, 0.01)
    return x1, 2 * np.pi * np.cos(2 * np.pi * x1) * ((x1 < 0) - 2.0 * (x3 < 0)) + x2


def mean_absolute_error_of_curves(effect, x, truth):
    """For every sample, over its range; both curves centred at their means over the rows."""
    errors, effect = [], effect.rhale.in_bins()
    for sample in range(x.shape[1]):
        grid = np.linspace(x[:, sample].min(), x[:, sample].max(), 1000)
        known = ~np.isnan(effect["edge_value"].values[sample])
        curve = np.interp(grid, effect["edge_value"][sample][known], effect["curve"][sample][known])
        errors.append(np.abs(curve - truth(grid) + truth(x[:, sample]).mean()).mean())
    return np.array(errors)


@pytest.mark.thorough
def test_eq_5_of_the_paper():
    """The authors' code errs by .134 on average over 300 draws, in seven bins."""

    def truth(x):
        return -np.sin(2 * np.pi * x) * (x < 0)

    x, g = eq_5(300, np.random.default_rng(5))
    effect = samples(x, g, rs.OptimalBins(50, min_obs=5, discount=0.1), weighting="rows")
    n_bins, error = monte_carlo(effect["n_bins"])
    assert abs(n_bins - 7) < 1
    adaptive = mean_absolute_error_of_curves(effect, x, truth)
    mean, error = monte_carlo(adaptive)
    # Two runs of 300 draws each: theirs has the same Monte-Carlo error (.005) as this one.
    assert abs(mean - 0.134) < 3 * np.sqrt(2) * error
    assert error < 0.006


# --- counts --------------------------------------------------------------------------------------

KINDS = {
    "random": lambda rng, n: rng.normal(size=n),
    "rounded": lambda rng, n: np.round(rng.uniform(-4, 4, n), 1),
    "integers": lambda rng, n: rng.integers(-5, 30, n).astype(float),
    "timestamps": lambda rng, n: np.round(1.7e9 + rng.uniform(0, 100, n)),
    "point mass": lambda rng, n: np.where(rng.random(n) < 0.5, 0.3, rng.normal(size=n)),
}
RULES = [
    rs.EqualWidthBins(1),
    rs.EqualWidthBins(10),
    rs.EqualWidthBins(35),
    rs.QuantileBins(10),
    rs.OptimalBins(),
    rs.OptimalBins(20, min_obs=3),
    "given",
]


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:Bins without rows", "ignore:Gaps without rows")
@pytest.mark.parametrize(("kind", "rule"), in_turn(KINDS, RULES), ids=repr)
def test_n_obs_is_a_recount_by_the_reported_edges(kind, rule):
    rng = np.random.default_rng(3)
    x = np.stack([KINDS[kind](rng, 200) for _ in range(8)], axis=1)
    if rule == "given":
        inner = np.unique(rng.choice(x.ravel(), 8, replace=False))  # edges on rows
        rule = rs.GivenBins(np.unique(np.concatenate([[x.min() - 1], inner, [x.max()]])))
    effect = samples(x, np.floor(x / 3) + rng.normal(size=x.shape), rule)
    assert_array_equal(effect["n_obs"].sum("bin"), 200)
    for column in range(8):
        n_bins = int(effect["n_bins"][column])
        edges = one_feature(effect, column).bin_edges
        assert_array_equal(effect["n_obs"].values[column, :n_bins], recount(x[:, column], edges))
        assert_array_equal(effect["bin_left"].values[column, :n_bins], edges[:-1])
        assert_array_equal(effect["bin_right"].values[column, :n_bins], edges[1:])


# --- standard errors -----------------------------------------------------------------------------


def test_bin_effects_err_by_sigma_over_root_n(rng):
    """math [24], from the rows of every bin."""
    x, g = rng.uniform(size=(300, 1)), rng.standard_gamma(2, (300, 1))
    rule = rs.GivenBins([0, 0.2, 0.7, 1])
    effect = rs.std_error(samples(x, g, rule, weighting="rows")).isel(feature=0)
    bins = np.split(g[np.argsort(x[:, 0]), 0], np.cumsum(effect["n_obs"].values)[:-1])
    # Sums of at most 300 terms.
    assert_allclose(effect["effect_se"], [stats.sem(rows) for rows in bins], rtol=300 * EPS)
    assert_allclose(effect["average_effect_se"], stats.sem(g[:, 0]), rtol=300 * EPS)


N_SAMPLES = 500
NORMAL = stats.norm.ppf(0.975)


def interaction(rng, slope):
    """f = 2 x1 + slope x1^2 / 2 + 4 x1 x2, U(-1, 1)^2, N = 500: mu(z) = 2 + slope z."""
    x1, x2 = rng.uniform(-1, 1, (2, 500, N_SAMPLES))
    return x1, 2 + slope * x1 + 4 * x2


def assert_covers(estimate, se, truth, quantile=NORMAL):
    """Nominal 95 %: an exact binomial test a column at level 0.001, about 3 Monte-Carlo errors.

    With 500 samples the Monte-Carlo error of a coverage is 1 %. That of the mean square of errors
    over their standard errors is 6 %: standard errors that are a tenth too small make it 1.23.
    """
    z = np.abs(estimate - truth) / (quantile / NORMAL * se)
    for n in np.atleast_1d((z <= NORMAL).sum(axis=0)):
        assert stats.binomtest(int(n), N_SAMPLES, 0.95).pvalue > 0.001, n / N_SAMPLES
    np.testing.assert_allclose((z**2).mean(axis=0), 1, atol=3.3 * np.sqrt(2 / N_SAMPLES))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("centering", "slope", "n_bins"),
    [("mean", 0, 20), ("start", 6, 20), ("integral", 6, 4)],
)
def test_coverage_of_the_curve_and_of_effects(centering, slope, n_bins):
    edges = np.linspace(-1, 1, n_bins + 1)
    x, g = interaction(np.random.default_rng(n_bins + slope), slope)
    effect = rs.std_error(samples(x, g, rs.GivenBins(edges), centering=centering))
    truth = 2 + slope * (edges[1:] + edges[:-1]) / 2
    # Student's quantile: a bin has 25 rows where there are 20, and few degrees of freedom.
    quantile, at = stats.t.ppf(0.975, effect["n_obs"].values - 1), np.arange(4) * n_bins // 4
    assert_covers(effect["effect"][:, at], effect["effect_se"][:, at], truth[at], quantile[:, at])
    assert_covers(effect["average_effect"].values, effect["average_effect_se"].values, 2)
    curve = 2 * edges + slope * edges**2 / 2
    # Rows are uniform: the population mean of the curve is its mean on the axis.
    curve -= curve[0] if centering == "start" else slope / 6
    # A quarter of the axis apart: the zero-start curve is 0 at its start, and its error beside it
    # is that of one bin of 25 rows, for which Student's quantile would be due.
    at = np.arange(centering == "start", 5) * n_bins // 4
    effect = effect.rhale.in_bins()
    assert_covers(effect["curve"][:, at], effect["curve_se"][:, at], curve[at])
    if centering == "mean" and n_bins == 20:
        # The zero-start error drawn round the centred curve: 52 % at the first inner edge.
        wrong = np.abs(effect["curve"] - curve) <= 1.96 * effect["curve_se_start"]
        assert wrong[:, 1].mean() < 0.6


@pytest.mark.slow
def test_coverage_with_precision_weights():
    """Weights that have nothing to do with the effects: Kish's effective number of rows."""
    rng = np.random.default_rng(9)
    x, g = interaction(rng, 6)
    edges = np.linspace(-1, 1, 5)
    weights = rng.uniform(0.1, 2, 500)
    effect = rs.std_error(samples(x, g, rs.GivenBins(edges), weights))
    curve = 2 * edges + 3 * edges**2
    of_bins = effect.rhale.in_bins()
    assert_covers(of_bins["curve"], of_bins["curve_se"], curve - 1)
    assert_covers(effect["effect"], effect["effect_se"], 2 + 3 * (edges[1:] + edges[:-1]))
    assert_covers(effect["average_effect"].values, effect["average_effect_se"].values, 2)


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["two-point", "gamma"])
def test_heterogeneity_se_is_the_monte_carlo_standard_deviation(noise):
    rng = np.random.default_rng(4)
    shape = (500, N_SAMPLES)
    g = {
        "two-point": lambda: np.where(rng.random(shape) < 0.2, 5.0, -5.0),  # Eq. 1, lopsided
        "gamma": lambda: rng.standard_gamma(4, shape),
    }[noise]()
    effect = rs.std_error(samples(rng.uniform(size=shape), g, rs.EqualWidthBins(1)))
    spread = effect["heterogeneity"].values[:, 0].std(ddof=1)
    mean_se = np.sqrt((effect["heterogeneity_se"].values ** 2).mean())
    # The Monte-Carlo error of a standard deviation is 1 / sqrt(2 * 500) = 3.2 %; three of them.
    assert mean_se == pytest.approx(spread, rel=3 / np.sqrt(2 * N_SAMPLES))


# --- equivariance --------------------------------------------------------------------------------

N = 240
CELLS = 20


def base(kind, rng):
    """x on [0, 1], both ends included, and local effects with steps, a trend and noise.

    Rows keep a quarter of a cell's width from the edges of 20 equal cells, except for "integers",
    which lie on them; distinct rows are 1/1000 of a cell apart or more.
    """
    x = (rng.integers(0, CELLS, N) + rng.integers(250, 751, N) / 1000) / CELLS
    if kind == "point mass":
        x[: N // 2] = 7.4 / CELLS
    if kind == "integers":
        x = rng.integers(0, CELLS + 1, N) / CELLS
    x[-2:] = 0, 1
    return x, 2 * x - 3 * (x > 0.45) + rng.normal(size=N) / 2


signed_powers = st.builds(
    lambda sign, power: sign * 10.0**power, st.sampled_from([-1, 1]), st.floats(-6, 9)
)


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:Bins without rows")
@pytest.mark.parametrize(
    ("kind", "rule"),
    in_turn(
        ["even", "point mass", "integers"],
        [rs.OptimalBins(CELLS, min_obs=10), rs.EqualWidthBins(CELLS // 2), rs.QuantileBins(7)],
    ),
    ids=repr,
)
@given(
    seed=st.integers(0, 2**32 - 1),
    a=signed_powers,
    c=signed_powers,
    d=st.floats(-1e9, 1e9),
    weighting=st.sampled_from(["axis", "rows"]),
)
@example(seed=0, a=1.0, c=100.0, d=1.7e9, weighting="axis")  # time stamps with a spread of 100
@example(seed=0, a=1.0, c=100.0, d=1.7e9, weighting="rows")
@example(seed=128, a=-1.0, c=1.0, d=32767.0, weighting="axis")  # rows on edges, cells at a limit
@example(seed=0, a=1e9, c=1e-6, d=0.0, weighting="axis")  # slopes of 1e15
@example(seed=19, a=-1.0, c=1e9, d=0.0, weighting="axis")  # a value of few rows
@example(seed=0, a=-1e-6, c=1e9, d=1e9, weighting="axis")  # slopes of 1e-15
@settings(max_examples=2, deadline=None)
def test_equivariance(kind, rule, seed, a, c, d, weighting):
    """f -> a f + b and x -> c x + d: the same rows in every bin, everything else by its units.

    b drops out of local effects. A negative c mirrors the axis. Bins are closed on the left, so
    that this moves rows on edges: quantiles and integers always have some. So are cells, which are
    counted off from the left.
    """
    if c < 0 and (kind == "integers" or isinstance(rule, rs.QuantileBins) or weighting == "axis"):
        c = -c
    x, g = base(kind, np.random.default_rng(seed))
    moved, slopes = c * x + d, g * (a / c)
    ulp = np.spacing(np.abs(moved).max())
    assume(abs(c) / CELLS > 4000 * ulp)  # distinct rows stay distinct, and on their side of edges
    plain = samples(x[:, None], g[:, None], rule, weighting=weighting).isel(feature=0)
    effect = samples(moved[:, None], slopes[:, None], rule, weighting=weighting).isel(feature=0)
    order = slice(None, None, -1 if c < 0 else 1)
    if weighting == "axis" and 64 * ulp > 1e-9 * abs(c):
        # A cell that is wider than allowed by less than 64 units in the last place is not halved,
        # of many digits before the point a wider one (seed=83, c=0.01, d=2.0**25).
        assume(effect.sizes["edge"] == plain.sizes["edge"])

    assert effect["n_bins"] == plain["n_bins"]
    assert_array_equal(effect["n_obs"][order], plain["n_obs"])
    # Interior edges stand up to 32 units in the last place beside k / 20 of the range.
    at_edges = 64 * ulp
    edges, expected = bin_edges(effect)[order], c * bin_edges(plain) + d
    assert_allclose(edges, expected, rtol=0, atol=at_edges)
    # Means and deviations are sums of N terms.
    size = np.abs(slopes).max()
    of_sums = N * EPS * size
    if kind == "integers":
        # Halves of rows on edges stand a unit beside these. How smooth a spline is comes of a
        # search for a minimum, which rounding places no nearer than the root of a unit.
        of_sums += size * max(EPS**0.5 / 10, 4 * N * ulp / abs(c))
    # Along the axis cells count by their widths, and each of their edges stands a unit or two off.
    of_widths = 0.0
    if weighting == "axis":
        narrowest = float(np.diff(edges).min())
        of_widths = size * 4 * (effect.sizes["edge"] - 1) * ulp / narrowest
    assert_allclose(
        effect["effect"][order], plain["effect"] * (a / c), rtol=0, atol=of_sums + of_widths
    )
    assert_allclose(
        effect["heterogeneity"][order],
        plain["heterogeneity"] * abs(a / c),
        rtol=0,
        atol=of_sums,
    )
    # The curve adds up to 20 steps of slope times width, each with the errors of both.
    in_curve = 2 * CELLS * (size * at_edges + of_sums * abs(c))
    curves = [rs.predict(one, bin_edges(one), one["feature"].item()) for one in (effect, plain)]
    assert_allclose(curves[0][order], a * curves[1], rtol=0, atol=in_curve)


# --- along the axis ------------------------------------------------------------------------------


def test_rows_that_crowd_do_not_bend_the_curve():
    """mu = 9 z from 2000 rows of Beta(3, 1): 4.5 along the axis, 6.75 over the rows."""
    x = np.random.default_rng(3).beta(3, 1, (2000, 1))
    rule = rs.GivenBins([0, 1])
    axis = unpacked(samples(x, 9 * x, rule, centering="start")).isel(feature=0)
    rows = samples(x, 9 * x, rule, centering="start", weighting="rows").isel(feature=0)
    assert_allclose(axis["effect"], 4.5, rtol=0.01)
    assert_allclose(axis["effect_rows"], rows["effect"], rtol=1e-12)
    assert_allclose(rows["effect"], 6.75, rtol=0.02)
    z = np.linspace(0.1, 0.9, 9)
    line, bent = (rs.predict(one.expand_dims("feature"), z, 0).values for one in (axis, rows))
    # From the middle: nothing is known of mu before the first row, at 0.1 or so.
    truth = 4.5 * (z**2 - z[4] ** 2)
    assert_allclose(line - line[4], truth, atol=0.02)
    assert np.abs(bent - bent[4] - truth).max() > 0.5


@pytest.mark.thorough
@pytest.mark.parametrize("scheme", ["multinomial", "bayesian"])
def test_the_bootstrap_agrees_with_errors_along_the_axis(scheme):
    rng = np.random.default_rng(8)
    x = rng.uniform(size=(400, 1))
    local = rs.local_effects(None, x, jacobian=9 * x + rng.normal(0, 0.5 + x), features=[0])
    effect = rs.std_error(rs.rhale(local, bins=rs.QuantileBins(4)))
    boot = rs.bootstrap(local, effect, n_resamples=600, scheme=scheme, rng=0, progress=False)
    for name in ("effect", "curve", "average_effect"):
        spread = boot[name].std(("chain", "draw"))
        # The error of a standard deviation from 600 is 3 %. In a cell of 15 rows 1/15 of the
        # variance is lost to its mean, and 1/16 with Dirichlet weights: 6 % of its root.
        expected = effect.rhale.in_bins()[f"{name}_se"]
        assert_allclose(spread, expected, rtol=0.15, err_msg=name)


@pytest.mark.thorough
def test_groups_of_one_row_are_rows_along_the_axis():
    rng = np.random.default_rng(9)
    x = rng.uniform(size=(1500, 1))
    g = 9 * x + rng.normal(0, 0.5 + x)
    local = rs.local_effects(None, x, jacobian=g, features=[0])
    plain = rs.rhale(local, bins=rs.QuantileBins(4))
    alone = rs.std_error(plain, local, groups=np.arange(1500))
    rows = rs.std_error(plain)
    alone, rows = alone.rhale.in_bins(), rows.rhale.in_bins()
    for name in ("effect_se", "curve_se", "average_effect_se"):
        assert_allclose(alone[name], rows[name], rtol=0.06, err_msg=name)
    # Rows that are there four times over know as much as once.
    four = rs.local_effects(
        None, np.repeat(x, 4, axis=0), jacobian=np.repeat(g, 4, axis=0), features=[0]
    )
    plain = rs.rhale(four, bins=rs.GivenBins(one_feature(plain, 0).bin_edges))
    fours = rs.std_error(plain, four, groups=np.arange(6000) // 4).rhale.in_bins()
    # A cell of 15 rows then has four places and not 15; its width varies more, and with it the
    # effect: by 1/4 - 1/15 of the variance, 9 % of a standard error.
    for name in ("effect_se", "curve_se"):
        assert_allclose(fours[name], 1.05 * rows[name], rtol=0.11, err_msg=name)
    assert_allclose(fours["average_effect_se"], rows["average_effect_se"], rtol=0.01)


@pytest.mark.slow
def test_coverage_along_the_axis_where_rows_crowd():
    """Effect and curve of wide bins in which mu moves; by rows they would miss it altogether."""
    rng = np.random.default_rng(10)
    x = rng.beta(2, 1, (500, N_SAMPLES))
    g = 9 * x + rng.normal(0, 0.5 + x)
    effect = rs.std_error(samples(x, g, rs.GivenBins([0, 0.2, 0.6, 1.0])))
    # Without the first bin, whose few rows stand at its right end.
    at = slice(1, 3)
    assert_covers(effect["effect"][:, at], effect["effect_se"][:, at], np.array([3.6, 7.2]))


@pytest.mark.parametrize("weighted", [False, True])
def test_the_correlation_of_an_average_with_its_slope_by_the_rows(weighted):
    """Of the weighted means of the residuals: by the axis in the average, by x in the slope."""
    rng = np.random.default_rng(4)
    w = rng.choice([1.0, 4.0], 400) if weighted else np.ones(400)
    options = {"weights": w} if weighted else {}
    x = rng.beta(1, 3, 400)
    g = 3 * x + (1 + x) * rng.normal(size=400)
    effect = rs.rhale(
        rs.local_effects(None, x[:, None], jacobian=g[:, None], **options),
        bins=Lines((0.0, 0.3, 1.0), (True, False)),
        weighting="axis",
    )
    row = one_feature(effect, 0)
    found, cells = row.effect_slope_correlation, row.edges
    assert found[1] == 0
    inside = x < row.bin_edges[1]
    x, g, w = x[inside], g[inside], w[inside]
    k = np.searchsorted(cells, x, side="right") - 1
    width, count = np.diff(cells), np.bincount(k, w)
    residual = w * (g - np.polyval(np.polyfit(x, g, 1, w=np.sqrt(w)), x))
    level = (width[: len(count)] / width[: len(count)].sum() / count)[k] * residual
    tilt = (x - np.average(x, weights=w)) * residual
    expected = level @ tilt / np.sqrt((level @ level) * (tilt @ tilt))
    assert found[0] == pytest.approx(expected, abs=0.02)
    assert abs(found[0]) > 0.1


def test_cells_that_have_rows():
    """The first and the last value are in these cells, a value at an edge in that on its right."""
    cells = np.array([0.0, 1.0, 2.0, 3.0, 4.0])
    assert _reached(cells, 1.5, 2.5).tolist() == [1, 2, 3]
    assert _reached(cells, 1.0, 2.0).tolist() == [1, 2, 3]
    assert _reached(cells, 0.0, 4.0).tolist() == cells.tolist()
    assert _reached(cells, 3.5, 3.6).tolist() == [3, 4]


class TestParts:
    """What estimates are made of, by hand."""

    def test_edges_of_the_cells_that_are_reached(self):
        cells = np.array([0.0, 1, 2, 3, 4])
        for low, high, expected in (
            (0.0, 4.0, [0, 1, 2, 3, 4]),
            (1.0, 3.0, [1, 2, 3, 4]),
            (1.5, 2.5, [1, 2, 3]),
            (2.5, 2.6, [2, 3]),
            (4.0, 4.0, [3, 4]),
            (3.5, 4.0, [3, 4]),
            (0.0, 0.5, [0, 1]),
            # Values that differ from the ends by rounding.
            (-1e-17, 4 + 1e-15, [0, 1, 2, 3, 4]),
        ):
            assert _reached(cells, low, high).tolist() == expected

    @pytest.mark.parametrize(("n", "known"), [(2, False), (3, True)])
    def test_a_slope_needs_more_than_two_rows(self, n, known):
        """Of cells of one row each, by least squares; none where the rule asks for none."""
        x, g = np.arange(n + 1.0), np.array([1.0, 4, 3, 9])[: n + 1]
        x[-1] = 9
        edges = np.append(x, 10.0)
        column = Column("x", np.zeros(0), 0.0, 10.0, None)
        grid = CellGrid(column, edges, edges, edges, False, True, np.zeros(0), 1.0, 3.0)
        rows = RowMoments(in_cells(edges, x, g))
        request = RhaleSettings(rs.AdaptiveBins(), "mean", "axis", True)

        def slope(linear):
            partition = Partition(np.array([0, n]), None if linear is None else np.array(linear))
            return fitted_bins(request, [grid], [rows], [partition]).slope

        expected = np.polyfit(x[:n], g[:n], 1)[0] if known else 0
        assert_allclose(slope([True, True]), [expected, 0], atol=1e-12)
        assert slope([False, True]).tolist() == [0, 0]
        assert slope(None) is None

    def test_cells_that_are_given(self):
        """Between the ends of the bins; an edge that both have is there once."""
        edges = np.array([0.0, 1, 2])
        column = Column("x", np.zeros(0), 0.0, 2.0, None)
        rule = rs.GivenBins(edges, cells=[-1, 0, 0.5, 1 + 1e-12, 1.5, 2, 3])
        assert _fixed_cells(rule, column, edges).tolist() == [0, 0.5, 1, 1.5, 2]
        near = rs.GivenBins(edges, cells=[0, 1 + 1e-6, 2])
        assert _fixed_cells(near, column, edges).tolist() == [0, 1, 1 + 1e-6, 2]
        assert _fixed_cells(rs.GivenBins(edges), column, edges) is None
        assert _fixed_cells(rs.EqualWidthBins(2), column, edges) is None

    def test_cells_that_slopes_were_taken_across(self):
        """Given ones are unions of them; without given ones those without rows are joined."""
        edges, cells = np.array([0.0, 3, 6]), np.arange(7.0)
        across = Column("x", np.array([0.5, 2.5, 3.5, 4.5, 5.5]), 0.0, 6.0, None, cells)
        agreed = rs.GivenBins(edges, cells=[0, 1, 3, 4 + 1e-12, 6])
        assert _fixed_cells(agreed, across, edges).tolist() == [0, 1, 3, 4, 6]
        others = rs.GivenBins(edges, cells=[0, 1.5, 3, 6])
        assert _fixed_cells(others, across, edges).tolist() == cells.tolist()
        assert _fixed_cells(rs.EqualWidthBins(2), across, edges).tolist() == cells.tolist()
        some = replace(across, x=np.arange(0.05, 6, 0.3), cells=np.arange(0, 6.05, 0.1))
        joined = _fixed_cells(rs.GivenBins(edges), some, edges)
        assert_allclose(joined, np.append(np.arange(0, 6, 0.3), 6))

    def test_cells_are_agreed_where_they_are_given(self):
        edges = np.array([0.0, 1, 2])
        rule = rs.GivenBins(edges, cells=[0, 0.5, 1, 2])
        assert (are_agreed(rule), are_agreed(rs.GivenBins(edges))) == (True, False)

    def test_spread_along_the_known_stretch(self):
        nan = np.nan
        std, both = accumulate.spread_along(
            np.array([nan, 0.0, 1, 2, nan]), np.array([9.0, 3, 4, 9]), np.array([1.0, 1, 2, 1])
        )
        assert_allclose(std, [nan, 0, 3, np.sqrt(9 + 64), nan])
        assert_allclose(both, [nan, 0, 3, 11, nan])
        none = accumulate.spread_along(np.full(3, nan), np.ones(2), np.ones(2))
        assert np.isnan(none).all()

    @pytest.mark.parametrize("centering", ["mean", "start", "integral"])
    def test_curves_of_lines(self, centering):
        """Effects 2 z on [0, 1], and 5 - z on [1, 3]: z^2, and 1 + 5 (z - 1) - (z^2 - 1) / 2."""
        edges, z = np.array([0.0, 1, 3]), np.linspace(0, 3, 100_001)
        whole = np.where(z < 1, z**2, 1 + 5 * (z - 1) - (z**2 - 1) / 2)
        x = np.array([0.25, 0.5, 1.5, 2, 2.5])
        at = np.interp(x, z, whole)
        pieces = accumulate.Pieces(
            edges, np.array([0.75, 3]), np.array([2.0, -1]), np.array([0.375, 2.0]),
            np.array([0.125**2, 1 / 6]), np.array([0.4, 0.6]),
        )  # fmt: skip
        middle = 0.5 * (whole[:-1] + whole[1:]).mean()
        expected = {"mean": at.mean(), "start": 0.0, "integral": middle}[centering]
        curve = accumulate.centred_curves(pieces, centering)
        assert_allclose(curve, np.array([0, 1, 7]) - expected, atol=1e-6)
        assert_allclose(np.diff(curve), [1, 6], rtol=1e-12)

    def test_sums_in_bins_from_cells(self):
        found = np.arange(10.0).reshape(2, 5)
        assert cell_kernel.sums_in_bins(found, np.array([0, 0, 1, 2, 2])).tolist() == [
            [1, 2, 7],
            [11, 7, 17],
        ]
