"""Intervals and bands of estimates, whatever they are of."""

import numpy as np
import pytest
import xarray as xr
from scipy import stats

from rhale_stats.arrays.intervals import of_deviation, of_heavy_tails
from rhale_stats.inference.estimate import (
    BY_ERRORS,
    BY_INVERSION,
    BY_KURTOSIS,
    BY_SKEWNESS,
    ON_LOG_SCALE,
    CentralMoments,
    Estimate,
    Facts,
    Joint,
    Replicates,
    against_zero,
    band,
    by_errors,
    by_replicates,
    chosen_method,
    ends_in_table,
    independent_quantiles,
    joint_quantiles,
    kept_interval,
    of_one_scale,
    student,
    with_bands,
    with_intervals,
    with_replicates,
)

FACTS = Facts(("place",), "the mean", "m", "mean of the rows", "rows")
VALUES, SE = np.array([1.0, 2.0, -3.0]), np.array([0.5, 0.1, 2.0])
DEGREES = np.array([4.0, 30.0, np.inf])
# The integers from 1 to 99: the quantile at p is 100 p.
DRAWS = np.random.default_rng(0).permutation(np.arange(1.0, 100.0))[:, None]
ESTIMATE = Estimate(np.array([40.0]), FACTS, replicates=Replicates(DRAWS, "groups of rows"))


def test_by_errors_is_students_interval():
    ends, how = by_errors(Estimate(VALUES, FACTS, SE, DEGREES), 0.9)
    expected = stats.t.interval(0.9, DEGREES, VALUES, SE)
    np.testing.assert_allclose(ends.T, expected, rtol=1e-12)
    assert how == BY_ERRORS


def test_by_errors_on_the_log_scale():
    """Of log y the standard error is se / y; 0 is known exactly."""
    values, se = np.array([1.0, 2.0, 0.0]), np.array([0.5, 0.1, 0.0])
    ends, how = by_errors(Estimate(values, FACTS, se, 7.0, log=True), 0.95)
    t = stats.t.ppf(0.975, 7)
    half = t * se[:2] / values[:2]
    expected = np.exp(np.log(values[:2, None]) + half[:, None] * np.array([-1, 1]))
    np.testing.assert_allclose(ends[:2], expected, rtol=1e-12)
    assert ends[2].tolist() == [0, 0]
    assert how == ON_LOG_SCALE


def test_standard_deviations_with_moments_invert_a_test():
    """Whatever the dimensions: math [24] goes through all numbers one by one."""
    spread = np.array([[1.0, 2.0, 0.5], [1.5, np.nan, 3.0]])
    moments = CentralMoments(0.1 * spread**3, 2.5 * spread**4, np.full(spread.shape, 40.0))
    found = Estimate(spread, FACTS, spread, np.full(spread.shape, 39.0), moments=moments)
    ends, how = by_errors(found, 0.95)
    parts = (one[1] for one in (spread, *moments[:3], np.full(spread.shape, 39.0)))
    np.testing.assert_array_equal(ends[1], of_deviation(*parts, 0.95))
    assert np.isnan(ends[1, 1]).all()
    assert how == BY_INVERSION


@pytest.mark.parametrize(
    ("method", "expected"), [("percentile", [5, 95]), ("basic", [2 * 40 - 95, 2 * 40 - 5])]
)
def test_quantiles_of_replicates(method, expected):
    ends, how = by_replicates(ESTIMATE, 0.9, method)
    np.testing.assert_allclose(ends, [expected], rtol=1e-12)
    assert how == f"bootstrap, {method}"


def test_replicates_that_are_unknown_do_not_count():
    more = np.concatenate([DRAWS, np.full((50, 1), np.nan)])
    found = ESTIMATE._replace(replicates=Replicates(more, "rows"))
    np.testing.assert_allclose(by_replicates(found, 0.9, "percentile")[0], [[5, 95]], rtol=1e-12)


def test_expanded_quantiles():
    """Cut at Phi(-t / sqrt(s)) and Phi(t / sqrt(s)) (Hesterberg 2015); with s = 1 and no end of
    degrees of freedom that is no expansion."""
    replicates = ESTIMATE.replicates._replace(degrees=np.array([6.0]), shortfall=0.9)
    ends, how = by_replicates(ESTIMATE._replace(replicates=replicates), 0.8, "percentile")
    tail = stats.norm.sf(stats.t.ppf(0.9, 6) / np.sqrt(0.9))
    np.testing.assert_allclose(ends, [[100 * tail, 100 * (1 - tail)]], rtol=1e-12)
    assert how == "bootstrap, percentile, expanded to Student's t"
    replicates = ESTIMATE.replicates._replace(degrees=np.array([np.inf]))
    ends, _ = by_replicates(ESTIMATE._replace(replicates=replicates), 0.8, "percentile")
    np.testing.assert_allclose(ends, [[10, 90]], rtol=1e-12)


def test_bca_moves_the_levels():
    """Efron (1987), Eq. 2.3: 39.5 of 99 replicates are below 40."""
    replicates = ESTIMATE.replicates._replace(acceleration=0.05)
    ends, _ = by_replicates(ESTIMATE._replace(replicates=replicates), 0.9, "bca")
    z0 = stats.norm.ppf(39.5 / 99)
    score = z0 + stats.norm.ppf([0.05, 0.95])
    shares = stats.norm.cdf(z0 + score / (1 - 0.05 * score))
    np.testing.assert_allclose(ends, [100 * shares], rtol=1e-12)


def test_studentized_on_the_log_scale_is_that_of_logs():
    se, draws_se = np.array([4.0]), 0.1 * DRAWS
    replicates = Replicates(DRAWS, "rows", se=draws_se, log=True)
    found = ESTIMATE._replace(se=se, log=True, replicates=replicates)
    ends, _ = by_replicates(found, 0.9, "studentized")
    logs = Replicates(np.log(DRAWS), "rows", se=draws_se / DRAWS)
    plain = Estimate(np.log([40.0]), FACTS, se / 40, replicates=logs)
    np.testing.assert_allclose(
        ends, np.exp(by_replicates(plain, 0.9, "studentized")[0]), rtol=1e-12
    )


def test_basic_intervals_of_what_is_positive_end_at_zero():
    ends, _ = by_replicates(ESTIMATE._replace(log=True), 0.9, "basic")
    np.testing.assert_allclose(ends, [[0, 75]], rtol=1e-12)


def test_independent_quantiles_hold_all_errors_at_the_level():
    known = np.array([1.0, 2.0, np.nan, 3.0])
    found = independent_quantiles(known, np.full(4, np.inf), 0.95)
    assert (stats.norm.cdf(found) - stats.norm.cdf(-found))[0] ** 3 == pytest.approx(0.95)


def test_joint_quantiles_of_one_error_at_all_places_are_pointwise(rng):
    """Where errors are the same but for their scale, holding one holds all."""
    covariance = np.outer([1.0, 2.0, 5.0], [1.0, 2.0, 5.0])
    degrees = np.array([5.0, 50.0, np.inf])
    found = joint_quantiles(Joint(covariance, np.inf), degrees, 0.95, 200_000, rng)
    # The quantile of so many draws has a standard error of .0042 about 1.96.
    score = stats.norm.isf(stats.t.sf(found, degrees))
    np.testing.assert_allclose(score, 1.96, atol=0.02)


def test_no_difference_is_not_significant(rng):
    covariance = np.diag([1.0, 4.0])
    zero = against_zero(
        np.zeros(2), np.array([1.0, 2.0]), np.full(2, np.inf), Joint(covariance, np.inf), 0.0,
        0.95, 1000, rng,
    )  # fmt: skip
    assert zero.p_value == 1
    np.testing.assert_allclose(zero.interval[:, 1], stats.norm.ppf(0.975) * np.array([1, 2]))
    assert (zero.band[:, 1] > zero.interval[:, 1]).all()


def test_variables_say_what_they_are():
    result = xr.Dataset({"mean": ("place", VALUES), "other": ("one", [40.0])})
    drawn = ESTIMATE._replace(facts=FACTS._replace(dims=("one",)))
    found = {"mean": Estimate(VALUES, FACTS, SE, DEGREES), "other": drawn}
    out = with_intervals(result, found, 0.9, "percentile")
    assert out["mean_ci"].attrs == {
        "long_name": "confidence interval of the mean",
        "units": "m",
        "target": "mean of the rows",
        "source": "rows",
        "method": BY_ERRORS,  # it has no replicates
        "kind": "pointwise",
        "ci_prob": 0.9,
        "ci_kind": "confidence",
    }
    assert out["mean_ci"].dims == ("place", "ci_bound")
    assert out["ci_bound"].values.tolist() == ["lower", "upper"]
    assert out["other_ci"].attrs["source"] == "groups of rows"
    assert out["other_ci"].attrs["method"] == "bootstrap, percentile"
    assert not result.data_vars.keys() & {"mean_ci"}


def test_bands_are_quantiles_of_standard_errors():
    result = xr.Dataset({"mean": ("place", VALUES)})
    found = {"mean": Estimate(VALUES, FACTS, SE, DEGREES)}
    out = with_bands(result, found, {"mean": np.array([2.0, 3.0, 4.0])}, 0.95, "surface")
    np.testing.assert_array_equal(out["mean_band"][:, 1], VALUES + np.array([1.0, 3.0 * 0.1, 8.0]))
    assert out["mean_band"].attrs["kind"] == "simultaneous over the axes"
    assert out["mean_band"].attrs["method"] == "largest standardised error of a normal surface"


def test_tables_have_the_interval_kept_or_one_by_errors():
    result = xr.Dataset({"mean": ("place", VALUES)})
    basic = ESTIMATE._replace(values=VALUES, replicates=Replicates(DRAWS * VALUES, "rows"))
    kept = with_intervals(result, {"mean": basic}, 0.9, "basic")
    np.testing.assert_array_equal(ends_in_table(kept, "mean", SE, DEGREES, 0.9), kept["mean_ci"])
    expected = by_errors(Estimate(VALUES, FACTS, SE, DEGREES), 0.95)[0]
    np.testing.assert_array_equal(ends_in_table(kept, "mean", SE, DEGREES, 0.95), expected)


def test_the_usual_method():
    assert chosen_method(None, None, ("normal", "percentile")) == "normal"
    assert chosen_method(None, xr.Dataset(), ("normal", "percentile")) == "percentile"
    with pytest.raises(ValueError, match="'normal', 'percentile'; got 'bca'"):
        chosen_method("bca", None, ("normal", "percentile"))


def test_points_of_one_scale_have_the_mean_of_their_inverse_degrees():
    """Points without a variance, or without degrees of freedom, do not count."""
    covariance = np.diag([4.0, 1.0, 0.0, 9.0])
    found = of_one_scale(covariance, np.array([4.0, 12.0, 1.0, 0.0]))
    assert found.sources.degrees == pytest.approx(1 / ((1 / 4 + 1 / 12) / 2))
    assert found.sources.parts[:, 0].tolist() == [4, 1, 0, 9]
    for degrees in (np.full(4, np.inf), np.zeros(4)):
        assert of_one_scale(covariance, degrees).sources.degrees == np.inf


def _spread(fourth, n_effective=None, n=200.0):
    """One standard deviation of 1.2 with 180 degrees of freedom, and the moments about it."""
    degrees = 180.0
    second = 1.2**2 * degrees / n
    moments = CentralMoments(
        np.array([0.3]),
        np.array([fourth * second**2]),
        np.array([n]),
        None if n_effective is None else np.array([n_effective]),
    )
    return Estimate(np.array([1.2]), FACTS, degrees=degrees, moments=moments), second


def test_heavy_tails_are_on_the_log_scale():
    """Where they are heavy; a bin of which nothing is known does not change the method."""
    heavy, second = _spread(9.0)
    ends, how = by_errors(heavy, 0.9)
    full = (np.array([one]) for one in (1.2, second, 9 * second**2, 200.0, 180.0))
    np.testing.assert_allclose(ends, of_heavy_tails(*full, 0.9), rtol=1e-12)
    assert np.isfinite(ends).all()
    assert how == BY_KURTOSIS
    more = CentralMoments(*(np.append(one, np.nan) for one in heavy.moments[:3]))
    found = heavy._replace(values=np.array([1.2, np.nan]), moments=more)
    together, how = by_errors(found, 0.9)
    np.testing.assert_allclose(together, [*ends, [np.nan, np.nan]])
    assert how == BY_KURTOSIS
    assert by_errors(_spread(2.0)[0], 0.9)[1] == BY_INVERSION


def test_unequal_weights_have_the_variance_of_fewer_rows_with_heavier_tails():
    """(m4 - m2^2) / n is the variance of a variance: with 200 rows that count as 100 in means, it
    is that of 100 rows with a smaller m4."""
    weighted, second = _spread(9.0, n_effective=100.0)
    fourth = second**2 + (9 * second**2 - second**2) * 100 / 200
    full = (np.array([one]) for one in (1.2, second, fourth, 100.0, 180.0))
    ends, how = by_errors(weighted, 0.9)
    np.testing.assert_allclose(ends, of_heavy_tails(*full, 0.9), rtol=1e-12)
    assert np.isfinite(ends).all()
    assert how == BY_KURTOSIS


def test_bca_and_studentized_intervals_keep_what_is_unknown():
    """A size that is 0 is known exactly on the log scale; degrees matter for quantiles only."""
    replicates = Replicates(DRAWS, "rows", se=0.1 * DRAWS, log=True)
    zero = Estimate(np.array([0.0]), FACTS, np.array([0.0]), log=True, replicates=replicates)
    assert by_replicates(zero, 0.9, "studentized")[0].tolist() == [[0, 0]]
    some = ESTIMATE._replace(
        se=np.array([4.0]),
        replicates=Replicates(DRAWS, "rows", np.array([6.0]), se=0.1 * DRAWS),
    )
    assert by_replicates(some, 0.9, "studentized")[1] == "bootstrap, studentized"


def test_basic_intervals_on_the_log_scale():
    """Of draws on the log scale, turned round: y^2 / q."""
    drawn = ESTIMATE._replace(replicates=Replicates(DRAWS, "rows", log=True))
    ends, _ = by_replicates(drawn, 0.9, "basic")
    np.testing.assert_allclose(ends, [[40**2 / 95, 40**2 / 5]], rtol=1e-12)
    # Others do not change on the log scale.
    ends, _ = by_replicates(drawn, 0.9, "percentile")
    np.testing.assert_allclose(ends, [[5, 95]], rtol=1e-12)


def test_draws_that_are_not_positive_are_unknown_on_the_log_scale():
    more = np.concatenate([DRAWS, np.zeros((20, 1)), -DRAWS[:20]])
    drawn = ESTIMATE._replace(replicates=Replicates(more, "rows", log=True))
    ends, _ = by_replicates(drawn, 0.9, "basic")
    np.testing.assert_allclose(ends, [[40**2 / 95, 40**2 / 5]], rtol=1e-12)


def test_students_t_of_a_table():
    """Two-sided, and unknown without an error."""
    found = student(np.array([1.0, -4.0, 2.0, 0.0]), np.array([0.5, 2.0, 0.0, np.nan]), 7.0)
    t, p = found["statistic"], found["p_value"]
    np.testing.assert_allclose(t[:2], [2, -2])
    np.testing.assert_allclose(p[:2], 2 * stats.t.cdf(-2, 7))
    assert np.isnan([*t[2:], *p[2:]]).all()


def test_skewed_intervals_say_so():
    found = Estimate(VALUES, FACTS, SE, DEGREES, skewness=np.array([0.4, np.nan, 0.0]))
    ends, how = by_errors(found, 0.9)
    assert how == BY_SKEWNESS
    lower, upper = VALUES - ends[:, 0], ends[:, 1] - VALUES
    assert upper[0] > lower[0]
    np.testing.assert_allclose(upper[2], lower[2])
    assert by_errors(found._replace(skewness=np.array([0.0, np.nan, 0.0])), 0.9)[1] == BY_ERRORS


def test_tables_have_intervals_with_the_skewness_of_the_result():
    result = xr.Dataset({"mean": ("place", VALUES), "mean_skewness": ("place", [0.4, 0.0, -0.2])})
    found = Estimate(VALUES, FACTS, SE, DEGREES, skewness=result["mean_skewness"].values)
    ends = ends_in_table(result, "mean", SE, DEGREES, 0.95)
    np.testing.assert_array_equal(ends, by_errors(found, 0.95)[0])


def test_the_interval_kept_is_of_its_level_with_the_ends_last():
    result = xr.Dataset({"mean": ("place", VALUES)})
    assert kept_interval(result, "mean", 0.9) is None
    kept = with_intervals(result, {"mean": Estimate(VALUES, FACTS, SE, DEGREES)}, 0.9, "normal")
    assert kept_interval(kept, "mean", 0.95) is None
    turned = kept.transpose("ci_bound", "place")
    np.testing.assert_array_equal(kept_interval(turned, "mean", 0.9), kept["mean_ci"])


def test_replicates_of_estimates_by_name():
    draws = np.arange(24.0).reshape(2, 4, 3)
    boot = xr.Dataset({"mean": (("chain", "draw", "place"), draws)}, attrs={"source": "groups"})
    found = with_replicates({"mean": Estimate(VALUES, FACTS)}, boot.transpose("place", ...))
    np.testing.assert_array_equal(found["mean"].replicates.draws, draws.reshape(8, 3))
    assert found["mean"].replicates.source == "groups"


def test_bands_of_curves_along_their_axis():
    out = band(FACTS, np.zeros((3, 2)), 0.9)
    assert out[2]["kind"] == "simultaneous over the axis"
    assert out[2]["long_name"] == "simultaneous band of the mean"
    assert out[2]["ci_prob"] == 0.9


def test_independent_quantiles_of_nothing_known_are_pointwise():
    found = independent_quantiles(np.array([np.nan]), np.array([7.0]), 0.9)
    np.testing.assert_allclose(found, stats.t.ppf(0.95, 7))
