"""Intervals and bands as arrays: brute force, SciPy's bootstrap, degenerate cases."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import optimize, stats

from rhale_stats.arrays import intervals

INF, NAN = np.inf, np.nan


def of_rows(g, level=0.95, **change):
    """The interval of the standard deviation of ``g``."""
    n, d = len(g), g - g.mean()
    given = {
        "deviation": np.array([g.std(ddof=1)]),
        "third": np.array([np.mean(d**3)]),
        "fourth": np.array([np.mean(d**4)]),
        "n": np.array([float(n)]),
        "degrees": np.array([n - 1.0]),
    } | change
    return intervals.of_deviation(**given, level=level)[0]


SAMPLES = {
    "normal": lambda rng: rng.normal(size=60),
    "skewed": lambda rng: rng.standard_gamma(1, 60),
    "two-point": lambda rng: rng.permutation(np.repeat([5.0, -5.0], 30)),
    "lopsided": lambda rng: np.where(rng.random(60) < 0.15, 5.0, -5.0),
    "few": lambda rng: rng.normal(size=5),
}
EACH = pytest.mark.parametrize("kind", SAMPLES)


def test_quantiles_of_student():
    found = intervals.student(0.9, np.array([3.0, 50, INF, 0, -1, NAN]))
    expected = [*stats.t.ppf(0.95, [3, 50]), stats.norm.ppf(0.95), NAN, NAN, NAN]
    assert_allclose(found, expected, rtol=1e-14)


def test_around_and_log_scale_by_hand():
    estimate, half = np.array([4.0, 0.0, NAN]), np.array([2.0, 0.0, 1.0])
    assert_array_equal(intervals.around(estimate, half), [[2, 6], [0, 0], [NAN, NAN]])
    factor = np.exp(0.5)
    expected = [[4 / factor, 4 * factor], [0, 0], [NAN, NAN]]
    assert_allclose(intervals.log_scale(estimate, half), expected, rtol=1e-14)


# --- standard deviations -------------------------------------------------------------------------


@pytest.mark.thorough
@EACH
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_interval_of_a_deviation_inverts_its_test(kind, level, rng):
    """All (u, s0) of a fine grid for which the stated statistic is below its quantile."""
    g = SAMPLES[kind](rng)
    n, m2, d = len(g), g.var(), g - g.mean()
    within = stats.t.ppf(0.5 + level / 2, n - 1) ** 2 / n
    u = np.linspace(-1, 1, 1601)[:, None] * np.sqrt(within * m2)
    low, high = of_rows(g, level)
    # Beyond the ends, to see that nothing there is plausible.
    s0 = np.linspace(low**2 * 0.7, min(high**2 * 1.3, 100 * m2), 2401)
    about = np.array([np.mean((d - v) ** 2) for v in u[::100, 0]])
    a = m2 + u**2
    assert_allclose(a[::100, 0], about, rtol=1e-12)
    # Covariance of g - mu and (g - mu)^2, and the variance of the latter, with mu a step u away.
    b = np.mean(d**3) + 2 * u * m2
    c = np.mean(d**4) + 4 * u * np.mean(d**3) + 4 * u**2 * m2 - m2**2 - b**2 / m2
    c = np.maximum(c, intervals.MIN_SPREAD * m2**2 / n)
    statistic = u**2 / m2 + ((a / s0 - 1) * a - b * u / m2) ** 2 / c
    plausible = s0[(statistic <= within).any(axis=0)]
    step = s0[1] - s0[0]
    assert plausible.min() == pytest.approx(low**2, abs=1.5 * step)
    if high < np.inf:
        # The estimate, with N - 1, may lie above what any mean makes plausible.
        assert max(plausible.max(), g.var(ddof=1)) == pytest.approx(high**2, abs=1.5 * step)
    else:
        assert plausible.max() == s0[-1]
    # And no hole between.
    assert_array_equal(np.diff(plausible) < 1.5 * step, True)


@pytest.mark.thorough
@EACH
@pytest.mark.parametrize("level", [0.1, 0.95, 0.999])
def test_interval_of_a_deviation_holds_the_estimate(kind, level, rng):
    for _ in range(20):
        g = SAMPLES[kind](rng)
        low, high = of_rows(g, level)
        assert 0 < low < g.std(ddof=1) <= high


@EACH
def test_interval_of_a_deviation_knows_no_units_and_no_direction(kind, rng):
    g = SAMPLES[kind](rng)
    expected = of_rows(g)
    for scale, shift in ((1e-6, 0), (-1e6, 0), (-1, 0), (8, 1)):
        assert_allclose(of_rows(scale * g + shift), np.abs(scale) * expected, rtol=1e-9)


@EACH
def test_interval_of_a_deviation_grows_with_the_level(kind, rng):
    g = SAMPLES[kind](rng)
    lows, highs = np.array([of_rows(g, level) for level in (0.5, 0.8, 0.95, 0.99)]).T
    assert (np.diff(lows) < 0).all()
    assert (np.diff(highs[np.isfinite(highs)]) >= 0).all()


def test_interval_of_a_deviation_in_degenerate_bins():
    """No spread, one row, no row."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = intervals.of_deviation(
            np.array([0.0, NAN, NAN]),
            np.array([0.0, 0.0, NAN]),
            np.array([0.0, 0.0, NAN]),
            np.array([9.0, 1.0, 0.0]),
            np.array([8.0, 0.0, 0.0]),
            0.95,
        )
    assert_array_equal(found, [[0, 0], [NAN, NAN], [NAN, NAN]])


# --- bands ---------------------------------------------------------------------------------------

DRAWS = 40_000


def quantile(covariance, level=0.95, degrees=INF, n_draws=DRAWS):
    rng = np.random.default_rng(3)
    return intervals.largest_deviation(np.asarray(covariance), level, degrees, n_draws, rng)


def quantile_error(level):
    """Monte-Carlo error of a normal score: sqrt(p (1 - p) / n) over the density of |Z|."""
    at = stats.norm.ppf(0.5 + level / 2)
    return np.sqrt(level * (1 - level) / DRAWS) / (2 * stats.norm.pdf(at))


@pytest.mark.parametrize("degrees", [INF, 5.0])
@pytest.mark.parametrize("points", [1, 4])
def test_largest_of_one_deviation(points, degrees):
    """One point, or many that go together, of whatever size: the band is the interval."""
    size = np.arange(1.0, points + 1)
    for own in (degrees, np.full(points, degrees)):
        found = quantile(np.outer(size, size), 0.9, own)
        assert abs(found - stats.norm.ppf(0.95)) < 3 * quantile_error(0.9)
        half = intervals.score_quantile(stats.norm.ppf(0.95), np.array(degrees))
        assert_allclose(half, intervals.student(0.9, np.array(degrees)), rtol=1e-9)


def test_largest_of_independent_deviations():
    """P(max |Z| < q) = (2 Phi(q) - 1)^k."""
    exact = stats.norm.ppf(0.5 + 0.95 ** (1 / 6) / 2)
    error = np.sqrt(0.95 * 0.05 / DRAWS) / (6 * 0.95 ** (5 / 6) * 2 * stats.norm.pdf(exact))
    assert abs(quantile(np.diag([1, 4, 9, 1, 1e-6, 25.0])) - exact) < 3 * error


def test_points_known_exactly_or_not_at_all_do_not_count():
    covariance = np.diag([0.0, 2.0, 3.0])
    assert quantile(covariance) == quantile(covariance[1:, 1:])
    covariance[0] = covariance[:, 0] = NAN
    assert quantile(covariance) == quantile(covariance[1:, 1:])
    assert quantile(np.zeros((3, 3))) == 0
    assert np.isnan(quantile(np.full((3, 3), NAN)))


def shared_root(degrees, points, level):
    """P(|t| < q at all points), independent errors over one estimate of scale: by quadrature."""
    s = np.sqrt(stats.chi2.ppf((np.arange(20_000) + 0.5) / 20_000, degrees) / degrees)

    def inside(q):
        return np.mean((2 * stats.norm.cdf(q * s) - 1) ** points) - level

    return optimize.brentq(inside, 0.1, 50)


@pytest.mark.thorough
@pytest.mark.parametrize("degrees", [4.0, 30.0])
def test_points_over_one_estimate_of_scale_are_multivariate_t(degrees):
    """Groups, and grids that share their rows: Dunnett and Sobel's quantile."""
    exact = shared_root(degrees, 6, 0.9)
    expected = stats.norm.isf(stats.t.sf(exact, degrees))
    assert abs(quantile(np.eye(6), 0.9, degrees) - expected) < 4 * quantile_error(0.9)
    # As the source of all of them.
    of = intervals.Sources.single(np.ones(6), degrees)
    found = with_sources(np.eye(6), of, 0.9)
    assert abs(found - expected) < 4 * quantile_error(0.9)


def with_sources(covariance, sources, level, n_draws=DRAWS):
    degrees = sources.satterthwaite(np.diagonal(covariance))
    rng = np.random.default_rng(3)
    return intervals.largest_deviation(covariance, level, degrees, n_draws, rng, sources)


def test_every_point_has_the_tail_of_its_own_degrees():
    """Independent points with variances of their own: each is held with level^(1/k), exactly."""
    degrees, k = np.array([2.0, 3.0, 5.0, 12.0, 100.0, INF]), 6
    expected = stats.norm.ppf(0.5 + 0.95 ** (1 / k) / 2)
    error = np.sqrt(0.95 * 0.05 / DRAWS) / (k * 0.95 ** (5 / 6) * 2 * stats.norm.pdf(expected))
    finite = np.diag(np.where(np.isfinite(degrees), 1.0, 0.0))[:, :5]
    for found in (
        quantile(np.eye(k), 0.95, degrees),
        with_sources(np.eye(k), intervals.Sources(finite, degrees[:5]), 0.95),
    ):
        assert abs(found - expected) < 3 * error
    half = intervals.score_quantile(expected, degrees)
    assert_allclose(2 * stats.t.cdf(half, degrees) - 1, 0.95 ** (1 / k), rtol=1e-9)


def test_sources_add_up_to_satterthwaite():
    parts, degrees = np.array([[1.0, 2.0, 0.0], [0.0, 1.0, 3.0]]), np.array([4.0, 5.0, 6.0])
    variance = parts.sum(axis=1)
    sources = intervals.Sources(parts, degrees)
    expected = [9 / (1 / 4 + 4 / 5), 16 / (1 / 5 + 9 / 6)]
    assert_allclose(sources.satterthwaite(variance), expected, rtol=1e-12)
    # What is not among the parts is known: more degrees of freedom, and less spread.
    assert_allclose(sources.satterthwaite(2 * variance), 4 * np.array(expected), rtol=1e-12)
    draws = sources.ratios(variance, DRAWS, np.random.default_rng(0))
    spread = np.sqrt(2 / np.array(expected))
    assert_allclose(draws.mean(axis=0), 1, atol=4 * spread.max() / np.sqrt(DRAWS))
    # The relative error of a variance of draws is sqrt((kurtosis - 1) / n), kurtosis below 9 here.
    assert_allclose(draws.var(axis=0), spread**2, rtol=4 * np.sqrt(8 / DRAWS))
    covariance = np.cov(draws.T)[0, 1] * variance.prod()
    assert_allclose(covariance, 2 * 2.0 * 1.0 / 5, rtol=0.1)
    known = sources._replace(degrees=np.full(3, INF))
    assert_array_equal(known.satterthwaite(variance), INF)
    assert_array_equal(known.ratios(variance, 10, np.random.default_rng(0)), 1)


def test_the_score_does_not_depend_on_units():
    parts, degrees = np.random.default_rng(1).uniform(size=(4, 7)), np.full(7, 3.0)
    covariance = np.diag(parts.sum(axis=1))
    scale = np.array([2.0**-15, 1.0, 4.0, 2.0**15])  # powers of two: without rounding
    sources = intervals.Sources(parts, degrees)
    scaled = intervals.Sources(parts * scale[:, None] ** 2, degrees)
    expected = with_sources(covariance, sources, 0.9, 2000)
    found = with_sources(covariance * np.outer(scale, scale), scaled, 0.9, 2000)
    assert_allclose(found, expected, rtol=1e-9)


def test_the_p_value_of_a_score_is_the_level_of_its_band():
    parts, degrees = np.random.default_rng(1).uniform(size=(4, 7)), np.full(7, 3.0)
    covariance, sources = np.diag(parts.sum(axis=1)), intervals.Sources(parts, degrees)
    own = sources.satterthwaite(np.diagonal(covariance))
    score = with_sources(covariance, sources, 0.9)
    rng = np.random.default_rng(3)
    found = intervals.largest_deviation_pvalue(covariance, score, own, DRAWS, rng, sources)
    assert_allclose(found, 0.1, atol=2 / DRAWS)


def test_pvalue_of_the_largest_deviation():
    def pvalue(statistic, covariance=((1.0,),)):
        rng = np.random.default_rng(3)
        return intervals.largest_deviation_pvalue(np.array(covariance), statistic, INF, DRAWS, rng)

    for statistic in (0.5, 2.0):
        exact = 2 * stats.norm.sf(statistic)
        assert abs(pvalue(statistic) - exact) < 3 * np.sqrt(exact * (1 - exact) / DRAWS)
    assert pvalue(0.0) == 1
    assert pvalue(INF) == 0
    assert pvalue(0.0, np.zeros((2, 2))) == 1
    assert pvalue(1.0, np.zeros((2, 2))) == 0
    assert np.isnan(pvalue(NAN, np.full((2, 2), NAN)))


@pytest.mark.parametrize("degrees", [3.0, 30.0, 1e6, INF])
def test_tails_too_far_for_a_number_have_large_quantiles(degrees):
    """P of 37 standard errors is 1e-299; of 39 it is zero in double precision."""
    scores = [0.0, 1.0, 10.0, 30.0, 37.0, 39.0, 1e3, INF]
    found = np.array([float(intervals.score_quantile(at, np.array(degrees))) for at in scores])
    assert (np.diff(found[:4]) > 0).all()
    assert (found[1:] >= found[:-1]).all()
    assert (found >= np.array(scores) * (1 - 1e-9)).all()


# --- replicates ----------------------------------------------------------------------------------


def scipy_bootstrap(g, statistic, method, level, seed=1):
    return stats.bootstrap(
        (g,),
        statistic,
        n_resamples=999,
        confidence_level=level,
        method=method,
        rng=np.random.default_rng(seed),
    )


def mean(x, axis):
    return np.mean(x, axis=axis)


@pytest.mark.parametrize("level", [0.5, 0.95])
@pytest.mark.parametrize("method", ["percentile", "basic"])
def test_intervals_of_replicates_are_those_of_scipy(method, level, rng):
    """From the very same replicates. SciPy cuts B of them at place 1 + (B - 1) p, not (B + 1) p."""
    g = rng.standard_gamma(1, 80)
    tail, b = (1 - level) / 2, 999
    found = scipy_bootstrap(g, mean, method, 1 - 2 * ((b + 1) * tail - 1) / (b - 1))
    draws = found.bootstrap_distribution
    assert len(draws) == b
    ours = intervals.of_replicates(draws, np.array(g.mean()), level, method)
    assert_allclose(ours, found.confidence_interval, rtol=1e-10)


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_bca_cuts_the_replicates_where_scipy_does(level, rng):
    """To the next of 999 in order; of a mean the jackknife is its influence."""
    g = rng.standard_gamma(1, 80)
    found = scipy_bootstrap(g, mean, "BCa", level)
    d = g - g.mean()
    ours = intervals.of_replicates(
        found.bootstrap_distribution,
        np.array(g.mean()),
        level,
        "bca",
        acceleration=np.sum(d**3) / (6 * np.sum(d**2) ** 1.5),
    )
    ordered = np.sort(found.bootstrap_distribution)
    places = [np.searchsorted(ordered, ends) for ends in (ours, found.confidence_interval)]
    assert_allclose(*places, atol=1)


def test_quantiles_by_numpy(rng):
    draws = rng.normal(size=(57, 6))
    draws[rng.random(draws.shape) < 0.3] = NAN
    draws[0, 1], draws[:, 5] = -INF, NAN
    share = np.array([0.1, 0.5, 0.02, 0.999, NAN, 0.3])
    found = intervals.quantiles(draws, share)
    for column in range(4):
        known = draws[np.isfinite(draws[:, column]), column]
        expected = np.quantile(known, share[column], method="weibull")
        assert found[column] == pytest.approx(expected, rel=1e-13)
    assert_array_equal(np.isnan(found), [False] * 4 + [True] * 2)
    # Beyond the extremes.
    assert_array_equal(found[2:4], [np.nanmin(draws[:, 2]), np.nanmax(draws[:, 3])])


@pytest.mark.parametrize("method", ["percentile", "basic", "bca"])
def test_expanded_intervals_of_normal_replicates(method):
    """Half as wide as score standard deviations, up to the extremes."""
    b = 9999
    draws = 3 + 2 * stats.norm.ppf(np.arange(1, b + 1) / (b + 1))[:, None]
    score = np.array([1.0, 2.3, 3.0, 40.0, NAN])
    estimate = np.full(5, 3.0)
    found = intervals.of_replicates(np.repeat(draws, 5, 1), estimate, 0.95, method, score=score)
    half = np.array([2.0, 4.6, 6.0, 2 * stats.norm.isf(1 / (b + 1)), NAN])
    assert_allclose(found, intervals.around(estimate, half), rtol=1e-3)


def test_an_acceleration_without_limit_ends_at_the_extremes():
    """1 - a (z0 + z) changes its sign: the level goes to 1, not to 0."""
    draws = np.linspace(-1, 1, 99)[:, None]
    found = intervals.of_replicates(
        draws, np.zeros(1), 0.95, "bca", score=np.array([9.0]), acceleration=np.array([0.2])
    )
    assert found[0, 1] == 1
    assert -1 <= found[0, 0] < 0


def test_studentized_interval_by_hand(rng):
    draws, se = rng.normal(3, 1, 500), rng.uniform(0.8, 1.2, 500)
    low, high = np.quantile((draws - 2.5) / se, [0.1, 0.9], method="weibull")
    found = intervals.of_replicates(
        draws, np.array(2.5), 0.8, "studentized", draws_se=se, estimate_se=np.array(0.9)
    )
    assert_allclose(found, [2.5 - 0.9 * high, 2.5 - 0.9 * low], rtol=1e-12)


@pytest.mark.parametrize("method", intervals.METHODS)
def test_replicates_that_are_missing_are_left_out(method, rng):
    draws, se = rng.normal(size=(300, 3)), rng.uniform(1, 2, (300, 3))
    estimate, estimate_se = np.array([0.1, -0.2, 0.0]), np.ones(3)
    more = {"acceleration": np.array([0.0, 0.05, -0.1]), "estimate_se": estimate_se}
    draws[::3, 1] = se[::3, 1] = NAN
    draws[:, 2] = se[:, 2] = NAN
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = intervals.of_replicates(draws, estimate, 0.9, method, draws_se=se, **more)
    assert found.shape == (3, 2)
    assert np.isnan(found[2]).all()
    for column in (0, 1):
        kept = np.isfinite(draws[:, column])
        one = {name: values[column] for name, values in more.items()}
        alone = intervals.of_replicates(
            draws[kept, column], estimate[column], 0.9, method, draws_se=se[kept, column], **one
        )
        assert_allclose(found[column], alone, rtol=1e-12)


def test_bca_without_bias_and_acceleration_is_the_percentile(rng):
    draws = rng.normal(size=(999, 2))
    estimate = np.median(draws, axis=0)
    found = intervals.of_replicates(draws, estimate, 0.95, "bca")
    percentile = intervals.of_replicates(draws, estimate, 0.95, "percentile")
    assert_allclose(found, percentile, atol=1e-12)


@pytest.mark.parametrize("beyond", [-10.0, 10.0])
def test_bca_of_an_estimate_beyond_all_replicates(beyond, rng):
    draws = rng.normal(size=999)
    found = intervals.of_replicates(draws, np.array(beyond), 0.95, "bca")
    assert np.isfinite(found).all()
    assert_allclose(found, draws.min() if beyond < 0 else draws.max(), atol=0.7)


@pytest.mark.parametrize("method", intervals.METHODS)
def test_replicates_of_what_is_known_exactly(method):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = intervals.of_replicates(
            np.full((50, 1), 3.0),
            np.array([3.0]),
            0.95,
            method,
            draws_se=np.zeros((50, 1)),
            estimate_se=np.zeros(1),
        )
    assert_array_equal(found, [[3, 3]])


def test_normal_scores_where_the_tail_of_t_underflows():
    """code.md B7: finite, increasing, and the t value itself where degrees are many."""
    # -log of the two-sided P value by mpmath with 60 digits, brought back to normal scores.
    exact = {(45.0, 9999.0): 42.94089466036877, (1e3, 200.0): 41.2472897170732}
    for (t, degrees), score in exact.items():
        assert_allclose(intervals.normal_score(t, degrees), score, rtol=1e-3)
    assert_allclose(intervals.normal_score(45.0, 9999.0), exact[45.0, 9999.0], rtol=1e-6)
    t = np.concatenate([np.linspace(0, 200, 4001), np.geomspace(200, 1e300, 200)])
    for degrees in (1.0, 3.0, 20.0, 200.0, 9999.0, 1e8, INF):
        score = intervals.normal_score(t, np.full_like(t, degrees))
        assert np.isfinite(score).all()
        assert (np.diff(score) >= 0).all()
    assert_array_equal(intervals.normal_score(np.array([38.5, 1e3]), INF), [38.5, 1e3])
    assert np.isnan(intervals.normal_score(NAN, 5.0))


def heavy_moments(values):
    """Central moments of bins, (bin, row) values, and their rows."""
    away = values - values.mean(axis=-1, keepdims=True)
    n = np.full(values.shape[:-1], float(values.shape[-1]))
    return [np.mean(away**power, axis=-1) for power in (2, 4)] + [n]


def test_kurtosis_of_two_bins_by_hand():
    """Bins of 10 rows with variances 1 and 4, and kurtosis 5 and 7."""
    second, fourth, n = np.array([1.0, 4.0]), np.array([5.0, 7 * 16.0]), np.full(2, 10.0)
    # Fourth moments over the product of the variances are (5 + 112) / 2 / 4.
    shared = 117 / 8
    expected = [max(shared, (5 + shared) / 2), shared]
    assert_allclose(intervals.heavy_kurtosis(second, fourth, n), expected, rtol=1e-12)
    # Not more than four times the average of 6, whatever the variances.
    second[1], fourth[1] = 400.0, 7 * 400.0**2
    assert_allclose(intervals.heavy_kurtosis(second, fourth, n), 24.0)
    # A bin alone.
    assert_allclose(intervals.heavy_kurtosis(second[:1], fourth[:1], n[:1]), 7.5)
    assert np.isnan(intervals.heavy_kurtosis(second, 3 * second**2, n)).all()


def test_errors_of_two_bins_by_hand():
    """Standard errors of deviations 1 and 2 by groups: of squares 0.4 and 4, of products 4."""
    deviation, se, degrees = np.array([1.0, 2.0]), np.array([0.2, 1.0]), np.full(2, 8.0)
    shared = (0.4**2 + 4**2) / 2 / 4
    usual = (0.4**2 + 4**2 / 16) / 2
    expected = np.sqrt(min(shared, 4 * usual)) * deviation / 2
    assert_allclose(intervals.shared_error(deviation, se, degrees), expected, rtol=1e-12)
    assert_allclose(intervals.shared_error(deviation, np.array([0.0, np.nan]), degrees)[0], 0)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["log-normal", "t3", "10:90"])
def test_intervals_of_spreads_with_heavy_tails(name):
    """10 bins of 40 rows with their own spreads; the inverted test covers 68, 78 and 91 %."""
    rng, n_samples = np.random.default_rng(8), 300
    sd, covered = np.linspace(0.3, 1.7, 10), []
    for _ in range(n_samples):
        if name == "log-normal":
            e = (np.exp(rng.normal(size=(10, 40))) - np.exp(0.5)) / np.sqrt((np.e - 1) * np.e)
        elif name == "t3":
            e = rng.standard_t(3, (10, 40)) / np.sqrt(3)
        else:
            e = ((rng.uniform(size=(10, 40)) < 0.1) - 0.1) / 0.3
        second, fourth, n = heavy_moments(sd[:, None] * e)
        ends = intervals.of_heavy_tails(np.sqrt(second * 40 / 39), second, fourth, n, n - 1, 0.95)
        covered.append(np.mean((ends[:, 0] <= sd) & (sd <= ends[:, 1])))
    error = np.std(covered) / np.sqrt(n_samples)
    # Of t3 some samples have no heavy tails; of two points 1.5 % of the bins have one value.
    assert np.mean(covered) > 0.905 - 2 * error


def around_pair(values, k):
    """Sum over four bins, one on each side of the bins k and k + 1, or the four at an end."""
    first = min(max(k - 1, 0), len(values) - 4)
    return values[first : first + 4].sum()


def test_kurtosis_of_many_bins_one_after_the_other(rng):
    second, n = rng.uniform(0.5, 2.0, 9), rng.integers(5, 60, 9).astype(float)
    kurtosis = rng.uniform(4, 9, 9)
    fourth = kurtosis * second**2

    def by_hand(n):
        pairs = [k for k in range(8) if n[k] > 0 and n[k + 1] > 0]
        scale = [around_pair(n * second, k) / around_pair(n, k) for k in pairs]
        pair = [min(n[k], n[k + 1]) / s**2 for k, s in zip(pairs, scale, strict=True)]
        above = sum(p * (fourth[k] + fourth[k + 1]) / 2 for p, k in zip(pair, pairs, strict=True))
        below = sum(p * second[k] * second[k + 1] for p, k in zip(pair, pairs, strict=True))
        shared = min(above / below, 4 * (n @ kurtosis) / n.sum())
        return np.where(n > 0, np.maximum(shared, (kurtosis + shared) / 2), np.nan)

    kurtosis_of_bins = intervals.heavy_kurtosis(second, fourth, n)
    assert_allclose(kurtosis_of_bins, by_hand(n), rtol=1e-12)
    backwards = intervals.heavy_kurtosis(second[::-1], fourth[::-1], n[::-1])
    assert_allclose(backwards[::-1], kurtosis_of_bins, rtol=1e-12)
    # Beside a feature with more bins, and with fewer than four of its own.
    for size in (9, 5, 2):
        alone = intervals.heavy_kurtosis(second[:size], fourth[:size], n[:size])
        padded = [np.pad(values[:size], (0, 12 - size)) for values in (second, fourth, n)]
        both = intervals.heavy_kurtosis(*[np.stack([values, values]) for values in padded])
        assert_allclose(both[:, :size], [alone, alone], rtol=1e-12)
    # A bin of three rows is as if it were not there, and bins beside it are still neighbours.
    few = np.where(np.arange(9) == 4, 3, n)
    without = np.where(np.arange(9) == 4, 0, n)
    assert_allclose(intervals.heavy_kurtosis(second, fourth, few), by_hand(without), rtol=1e-12)


def test_an_interval_of_heavy_tails_is_that_of_the_log(rng):
    """Variance of ln s: (kurtosis - (n - 3) / (n - 1)) / (4 (n - 1))."""
    second, n = np.array([1.0, 2.0, 1.5]), np.array([12.0, 20.0, 30.0])
    fourth = np.array([6.0, 5.0, 7.0]) * second**2
    kurtosis = intervals.heavy_kurtosis(second, fourth, n)
    deviation = np.sqrt(second * n / (n - 1))
    found = intervals.of_heavy_tails(deviation, second, fourth, n, n - 1, 0.9)
    half = stats.t.ppf(0.95, n - 1) * np.sqrt((kurtosis - (n - 3) / (n - 1)) / (n - 1)) / 2
    assert_allclose(found[:, 0], deviation * np.exp(-half), rtol=1e-12)
    assert_allclose(found[:, 1], deviation * np.exp(half), rtol=1e-12)
    light = intervals.of_heavy_tails(deviation, second, 2 * second**2, n, n - 1, 0.9)
    assert np.isnan(light).all()


def test_errors_of_spreads_where_some_are_not_known(rng):
    """Bins without an error of their own keep what they have, and are no neighbours."""
    deviation, se = rng.uniform(1, 2, 8), rng.uniform(0.1, 0.4, 8)
    degrees = rng.uniform(3, 20, 8)
    se[5], degrees[6] = np.nan, 0.0
    known = np.isfinite(se) & (degrees > 0)
    found = intervals.shared_error(deviation, se, degrees)
    assert_array_equal(found[~known], se[~known])
    free = np.where(known, degrees, 0.0)
    second = np.where(known, deviation**2, 0.0)
    square = np.where(known, free * (2 * deviation * se) ** 2, 0.0)
    above = below = 0.0
    for k in range(7):
        if known[k] and known[k + 1]:
            scale = around_pair(free * second, k) / around_pair(free, k)
            pair = min(free[k], free[k + 1]) / scale**2
            above += pair * (square[k] + square[k + 1]) / 2
            below += pair * second[k] * second[k + 1]
    usual = np.sum((free * square / deviation**4)[known]) / free.sum()
    shared = min(above / below, 4 * usual) / degrees[known]
    own = (2 * se / deviation)[known] ** 2
    expected = np.sqrt(np.maximum(shared, (own + shared) / 2)) * deviation[known] / 2
    assert_allclose(found[known], expected, rtol=1e-12)


def test_largest_of_draws_of_errors_whose_variances_are_known():
    """Independent points: the normal quantile of level^(1/k), the larger of both signs."""
    level, k = 0.95, 4
    covariance = np.diag([1.0, 4.0, 0.25, 9.0])
    found = intervals.largest_deviation(covariance, level, np.inf, DRAWS, np.random.default_rng(0))
    exact = stats.norm.ppf(0.5 + level ** (1 / k) / 2)
    # Density of the largest of |z|, for the error of a quantile of draws.
    density = k * (2 * stats.norm.cdf(exact) - 1) ** (k - 1) * 2 * stats.norm.pdf(exact)
    assert abs(found - exact) < 4 * np.sqrt(level * (1 - level) / DRAWS) / density


@pytest.mark.parametrize("degrees", [np.inf, 7.0, np.array([5.0, 9.0, 30.0])])
def test_bands_do_not_depend_on_the_unit_of_the_estimates(rng, degrees):
    """The same draws for errors that are 1e-8 or 1e8 times as large."""
    root = rng.normal(size=(3, 3))
    covariance = root @ root.T

    def found(unit):
        draws = np.random.default_rng(1)
        return intervals.largest_deviation(unit**2 * covariance, 0.9, degrees, 2000, draws)

    assert_allclose([found(1e-8), found(1e8)], found(1.0), rtol=1e-5)


def test_equal_tails_of_draws_that_are_known():
    draws = np.column_stack([np.arange(101.0), np.full(101, np.nan), np.arange(101.0)])
    draws[:50, 2] = np.nan
    found = intervals.equal_tailed(draws, 0.9)
    assert_allclose(found, [[5, 95], [np.nan, np.nan], [52.5, 97.5]])


def test_degrees_of_a_sum_of_variances():
    """Satterthwaite: (3 + 1)² / (3² / 6 + 1² / 2); what is 0 does not count."""
    first, second = np.array([3.0, 0.0, 2.0]), np.array([1.0, 0.0, 0.0])
    degrees = intervals.satterthwaite((first, 6.0), (second, np.array([2.0, 2.0, 0.0])))
    assert_allclose(degrees, [16 / 2, np.inf, 6.0])
    assert_allclose(intervals.satterthwaite((first, 6.0), (first, 6.0)), [12, np.inf, 12])
    three = np.transpose([[4.0, 1.0, 0.0], [2.0, 5.0, 0.0]])
    assert_allclose(intervals.satterthwaite(*three), 25 / (16 / 2 + 1 / 5))


def test_intervals_of_tables_have_their_ends_last():
    estimate, half = np.array([[[1.0, 2.0]], [[4.0, 0.0]]]), np.array([[[0.5, 1.0]], [[2.0, 3.0]]])
    found = intervals.around(estimate, half)
    assert found.shape == (2, 1, 2, 2)
    assert_allclose(found[..., 0], estimate - half)
    assert_allclose(found[..., 1], estimate + half)
    found = intervals.log_scale(estimate, half)
    factor = np.exp(np.array([[[0.5, 0.5]], [[0.5, 0.0]]]))
    assert_allclose(found[..., 0], estimate / factor)
    assert_allclose(found[..., 1], estimate * factor)
    skewness = np.array([[[0.0, 0.5]], [[-0.5, 1.0]]])
    found = intervals.skewed(estimate, half, np.full(estimate.shape, 2.0), skewness)
    assert found.shape == (2, 1, 2, 2)
    for at in np.ndindex(2, 1, 2):
        for end, t in zip(found[at], (2.0, -2.0), strict=True):
            error = (estimate[at] - end) / half[at]
            assert_allclose(intervals.unskewed(error, skewness[at]), t, rtol=1e-10)


@pytest.mark.thorough
@pytest.mark.parametrize("score", [1e-6, 1.0, 3.0, 10.0, 30.0, 39.0])
@pytest.mark.parametrize("degrees", [np.inf, 7.0])
def test_the_chance_of_a_largest_deviation_is_known_in_every_tail(score, degrees):
    """Equal points are one; of independent ones it is 1 - (1 - p)^k, over one scale less."""
    n_draws, chance, k = 2000, 2 * stats.norm.sf(score), 4

    def found(covariance):
        rng = np.random.default_rng(3)
        return intervals.largest_deviation_pvalue(covariance, score, degrees, n_draws, rng)

    # Far out no draw of the scale is small enough: then it is the sum over points.
    together = found(np.full((k, k), 4.0))
    if score < 5 or np.isinf(degrees):
        assert_allclose(together, chance, rtol=1e-6)
    assert chance <= together * (1 + 1e-9) <= k * chance * (1 + 1e-6)
    independent = -np.expm1(k * np.log1p(-chance))
    error = 4 * chance * np.sqrt(k / n_draws)  # of a mean of numbers between 1 / k and 1
    assert found(4 * np.eye(k)) <= independent + error
    if np.isinf(degrees):
        assert found(4 * np.eye(k)) >= independent - error


@pytest.mark.thorough
def test_a_smooth_curve_leaves_its_band_as_often_as_its_path_is_long():
    """Hotelling (1939): Z = cos(t) a + sin(t) b is beyond c with chance exp(-c² / 2) half a turn.

    That is the chance that the length of (a, b) is beyond c, whose direction is some t.
    """
    turn = np.linspace(0, np.pi, 200, endpoint=False)
    covariance = np.cos(turn[:, None] - turn)
    for score in (1.0, 2.5, 6.0):
        rng = np.random.default_rng(0)
        found = intervals.largest_deviation_pvalue(covariance, score, np.inf, 4000, rng)
        assert_allclose(found, np.exp(-(score**2) / 2), rtol=0.06)
    rng = np.random.default_rng(0)
    found = intervals.largest_deviation(covariance, 0.95, np.inf, 4000, rng)
    assert_allclose(found, np.sqrt(-2 * np.log(0.05)), rtol=0.01)


def test_a_sorted_share_of_draws_column_by_column(rng):
    """Quantiles by loops, some draws missing."""
    draws = rng.gamma(2, size=(41, 3, 2))
    draws[rng.random(draws.shape) < 0.1] = np.nan
    draws[:, 0, 1] = np.nan
    share = rng.uniform(0, 1, (3, 2))
    share[1, 0], share[1, 1], share[2, 0] = 0.0, 1.0, 0.5
    found = intervals.quantiles(draws, share)
    tails = intervals.equal_tailed(draws, 0.8)
    for at in np.ndindex(3, 2):
        own = np.sort(draws[(slice(None), *at)])
        own = own[np.isfinite(own)]
        if not len(own):
            assert np.isnan([found[at], *tails[at]]).all()
            continue
        ranks = np.arange(1, len(own) + 1)
        assert_allclose(found[at], np.interp(share[at] * (len(own) + 1), ranks, own))
        assert_allclose(tails[at], np.quantile(own, [0.1, 0.9]))


@pytest.mark.parametrize("n", [40, 400])
def test_bca_where_none_or_all_replicates_are_below_the_estimate(n, rng):
    """Half a replicate counts as below, and as above: the bias is that of a share of 1 / (2 B)."""
    draws = np.sort(rng.normal(size=n))
    for estimate, sign in ((-9.0, 1), (9.0, -1)):
        found = intervals.of_replicates(draws[:, None], np.array([estimate]), 0.9, "bca")[0]
        bias = sign * stats.norm.ppf(0.5 / n)
        share = stats.norm.cdf(2 * bias + stats.norm.ppf([0.05, 0.95]))
        expected = np.interp(share * (n + 1), np.arange(1, n + 1), draws)
        assert_allclose(found, expected)
    # Replicates equal to the estimate count half.
    tied = np.repeat([1.0, 2.0, 3.0], [5, 20, 15])
    found = intervals.of_replicates(tied[:, None], np.array([2.0]), 0.5, "bca")[0]
    bias = stats.norm.ppf(15 / 40)
    share = stats.norm.cdf(2 * bias + stats.norm.ppf([0.25, 0.75]))
    assert_allclose(found, np.interp(share * 41, np.arange(1, 41), tied))


def test_a_deviation_of_almost_no_degrees_of_freedom_is_unknown_without_overflow():
    one = np.ones(1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = intervals.of_deviation(one, 0 * one, 3 * one, 1.01 * one, 0.005 * one, 0.95)
    assert_array_equal(found, [[0.0, np.inf]])


def test_draws_of_nothing_have_no_ends():
    """As of a feature that is constant in all models."""
    ends = intervals.equal_tailed(np.full((5, 2, 3), np.nan), 0.9)
    assert ends.shape == (2, 3, 2)
    assert np.isnan(ends).all()


def test_shares_as_scipy_has_them():
    n, count = np.array([89, 89, 89, 1]), np.array([0, 89, 7, 1])
    ends = intervals.of_share(count / n, n, 0.95)
    found = intervals.share_pvalue(count / n, n, np.full(4, 0.08))
    for k in range(4):
        test = stats.binomtest(count[k], n[k], 0.08)
        assert_allclose(ends[k], test.proportion_ci(0.95, "exact"), rtol=1e-9)
        sides = [stats.binomtest(count[k], n[k], 0.08, side).pvalue for side in ("less", "greater")]
        assert found[k] == pytest.approx(min(2 * min(sides), 1))
    assert np.isnan(intervals.of_share(np.array([NAN]), np.array([3.0]), 0.95)).all()
