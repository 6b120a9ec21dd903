"""What curves say in words: ranges, shapes, spreads between rows."""

import numpy as np
import pytest
from scipy import stats

from rhale_stats.arrays import answers
from rhale_stats.arrays.answers import (
    half_width_of_places,
    half_widths,
    hidden_in,
    shape_of,
    spread_of_rows,
    stretches,
    verdict,
    with_places,
)


def range_of(curve, covariance, level, rng, degrees=np.inf):
    return answers.range_of(curve, half_widths(covariance, level, rng, degrees))


# --- ranges ---------------------------------------------------------------------------------------


def test_the_range_of_a_curve_without_noise_is_itself():
    found = range_of(np.array([1.0, 4, -2]), np.zeros((3, 3)), 0.95, np.random.default_rng(0))
    assert found == (2, 1, 6.0, 6.0, 6.0)


def test_the_interval_of_a_range_of_two_places_is_that_of_a_difference():
    """One pair: Student's or the normal quantile, both places' covariance taken in."""
    covariance = np.array([[0.5, 0.2], [0.2, 0.3]])
    found = range_of(np.array([0.0, 3.0]), covariance, 0.95, np.random.default_rng(0))
    half = 1.96 * np.sqrt(0.5 + 0.3 - 0.4)
    assert (found.lower, found.upper) == pytest.approx((3 - half, 3 + half), abs=0.05)


@pytest.mark.thorough
def test_intervals_of_ranges_hold_the_truth():
    """Of a flat curve and of one that rises, 10 places, 400 samples: at least 95 % (error 1 %)."""
    rng = np.random.default_rng(1)
    steps = rng.normal(size=(10, 10)) / 4
    covariance = steps @ steps.T
    root = np.linalg.cholesky(covariance + 1e-12 * np.eye(10))
    for truth in (np.zeros(10), np.linspace(0, 3, 10)):
        held = 0
        for _ in range(400):
            found = range_of(truth + root @ rng.normal(size=10), covariance, 0.95, rng)
            held += found.lower <= np.ptp(truth) <= found.upper
        assert held / 400 >= 0.93


def test_unknown_errors_give_no_interval():
    covariance = np.full((2, 2), np.nan)
    found = range_of(np.array([0.0, 1.0]), covariance, 0.95, np.random.default_rng(0))
    assert found.range == 1
    assert np.isnan([found.lower, found.upper]).all()


def test_few_groups_widen_the_interval():
    covariance = np.diag([0.1, 0.1, 0.1])
    curve = np.array([0.0, 1, 2])
    wide, narrow = (
        range_of(curve, covariance, 0.95, np.random.default_rng(0), degrees)
        for degrees in (3.0, np.inf)
    )
    assert wide.lower < narrow.lower
    assert wide.upper > narrow.upper


def test_rounding_between_places_that_move_together_widens_no_interval():
    steps = np.random.default_rng(0).normal(size=(3, 5))
    covariance = (steps @ steps.T)[np.ix_([0, 0, 1, 2], [0, 0, 1, 2])]
    covariance[0, 1] = covariance[1, 0] = covariance[0, 0] * (1 - 1e-15)
    half = half_widths(covariance, 0.95, np.random.default_rng(1))
    alone = half_widths(steps @ steps.T, 0.95, np.random.default_rng(1))
    assert half[0, 1] == 0
    np.testing.assert_allclose(half[1:, 1:], alone, rtol=0.05)


# --- shapes ---------------------------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("curve", "least", "legs", "turns"),
    [
        ([0, 1, 2, 3], 1, [1], []),
        ([3, 2, 0], 1, [-1], []),
        ([0, 2, 4, 3, 1], 1, [1, -1], [2]),
        # A step back that is no longer than `least` is no turn.
        ([0, 2, 1.5, 4], 1, [1], []),
        ([0, 2, 1, 4], 1, [1], []),
        ([0, 2, 0.9, 4], 1, [1, -1, 1], [1, 2]),
        # At the threshold there is no leg.
        ([0, 1], 1, [], []),
        ([0.0, 0, 0], 0, [], []),
        ([5], 1, [], []),
    ],
)
def test_shapes(curve, least, legs, turns):
    assert shape_of(np.array(curve, dtype=float), least) == (legs, turns)


def test_a_shape_upside_down():
    rng = np.random.default_rng(2)
    for _ in range(50):
        curve = rng.normal(size=30).cumsum()
        up, down = shape_of(curve, 1.5), shape_of(-curve, 1.5)
        assert up.legs == [-one for one in down.legs]
        assert up.turns == down.turns


def test_a_leg_is_known_by_its_own_two_places():
    """Places 0 and 1 are known well and place 2 is not: the widest error is not that of the leg."""
    half = np.array([[0, 0.1, 9], [0.1, 0, 9], [9, 9, 0]])
    assert shape_of(np.array([0.0, 1, -2]), half) == ([1], [])
    assert shape_of(np.array([0.0, 1, -9]), half) == ([1, -1], [1])


def test_what_a_leg_may_hide():
    half = np.full((4, 4), 0.5) - 0.5 * np.eye(4)
    rising = np.array([0.0, 2, 1.8, 4])
    assert hidden_in(rising, half, shape_of(rising, 0.5)) == pytest.approx(0.2 + 0.5)
    peak = np.array([0.0, 2, 1.8, 0])
    # Each leg by itself: 0 to 2, and 2 to 0.
    assert hidden_in(peak, 0 * half, shape_of(peak, 0.5)) == 0


CORNERS = [
    [0, 1], [0, 0.33, -1], [0, 0.2, -1], [0, 0.1, -1], [0, 0.6, 0.4, 1], [0, 0.5, 0.2, 0.9],
    [0, 1, 0], [0, -1, -0.7], [0, -0.1, 1, 0.9], [0, 0, 1],
]  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize("noise", [0.05, 0.2])
def test_no_shape_is_told_that_is_not_there(noise):
    """Ten curves with turns of known size, 30 samples each: false in at most 5 % (error 1.3 %)."""
    rng = np.random.default_rng(5)
    steps = np.tril(np.ones((16, 16))) * noise / 4
    wrong = 0
    for corners in CORNERS:
        curve = np.interp(np.linspace(0, 1, 16), np.linspace(0, 1, len(corners)), corners)
        legs = shape_of(curve, 0.0).legs
        for _ in range(30):
            seen = curve + steps @ rng.normal(size=16)
            half = half_widths(steps @ steps.T, 0.95, rng)
            found = shape_of(seen, half)
            left = iter(legs)
            sound = all(one in left for one in found.legs)
            least = 0.05 * np.ptp(seen)
            if sound and found.legs and hidden_in(seen, half, found) <= least:
                sound = found.legs == shape_of(curve, 0.05 * np.ptp(curve)).legs
            wrong += not sound
    assert wrong <= 0.09 * 300


# --- spread between rows --------------------------------------------------------------------------


def spread(curves, place=None, weight=None, group=None, share=None):
    n_places = curves.shape[1]
    share = np.full(n_places, 1 / n_places) if share is None else share
    place = np.arange(len(curves)) % n_places if place is None else place
    return spread_of_rows(curves, share, place.astype(float), weight, group, 0.95)


def test_curves_that_differ_in_height_alone_have_no_spread():
    curves = np.sin(np.arange(8.0)) + np.arange(20.0)[:, None]
    assert spread(curves) == (0, 0, 0)


def test_the_spread_of_lines_is_that_of_their_slopes():
    rng = np.random.default_rng(3)
    slope, x = rng.normal(size=500), np.linspace(-1, 1, 21)
    expected = np.std(slope, ddof=1) * np.sqrt(np.mean(x**2))
    assert spread(slope[:, None] * x).spread == pytest.approx(expected)


def test_repeated_rows_have_the_spread_of_weights():
    rng = np.random.default_rng(4)
    curves, times = rng.normal(size=(30, 5)), rng.integers(1, 4, 30)
    weighted = spread(curves, weight=times.astype(float))
    # With the same effective number of rows.
    share = times / times.sum()
    n = 1 / (share @ share)
    repeated = spread(np.repeat(curves, times, axis=0))
    n_repeated = times.sum()
    ratio = np.sqrt(n / (n - 1) / (n_repeated / (n_repeated - 1)))
    assert weighted.spread == pytest.approx(ratio * repeated.spread)


@pytest.mark.parametrize("clustered", [False, True])
def test_intervals_of_the_spread_hold_the_truth(clustered):
    """Slopes and places of rows vary, by group too: 300 samples of 100 rows (error 1.3 %)."""
    rng, held = np.random.default_rng(5), 0
    grid = np.linspace(-1, 1, 11)
    for _ in range(300):
        x = rng.uniform(-1, 1, 100)
        group = np.repeat(np.arange(25), 4) if clustered else None
        slope = rng.normal(size=25)[group] if clustered else rng.normal(size=100)
        places = grid if clustered else np.quantile(x, (np.arange(11) + 0.5) / 11)
        share = np.full(11, 1 / 11)
        own = spread(slope[:, None] * places, np.interp(x, places, np.arange(11.0)), None, group)
        truth = np.sqrt(1 / 3) if not clustered else np.sqrt(share @ grid**2)
        held += own.lower <= truth <= own.upper
    assert 0.90 <= held / 300 <= 0.99


def test_one_row_has_no_spread():
    assert np.isnan(spread(np.zeros((1, 3))).spread)
    found = spread(np.arange(6.0).reshape(2, 3) ** 2, group=np.array([0, 0]))
    assert (found.lower, found.upper) == (0, np.inf)


# --- places ---------------------------------------------------------------------------------------


def test_the_half_width_of_places_is_that_of_a_standard_deviation():
    """Beside the standard deviation of sds of normal values: sd / sqrt(2 n)."""
    value = np.random.default_rng(6).normal(size=4000)
    half = half_width_of_places(value, np.full(4000, 1 / 4000), None, 0.95)
    assert half == pytest.approx(1.96 / np.sqrt(8000), rel=0.05)


def test_groups_of_equal_rows_have_the_half_width_of_single_ones():
    value = np.random.default_rng(7).normal(size=50)
    one = half_width_of_places(value, np.full(50, 1 / 50), None, 0.9)
    many = half_width_of_places(
        np.repeat(value, 4), np.full(200, 1 / 200), np.repeat(np.arange(50), 4), 0.9
    )
    assert many == pytest.approx(one)


def test_a_flat_curve_has_no_half_width_of_places():
    assert half_width_of_places(np.full(9, 1e6), np.full(9, 1 / 9), None, 0.95) == 0
    assert half_width_of_places(np.array([np.nan, 1.0]), np.full(2, 0.5), None, 0.95) == 0
    groups = np.zeros(5, dtype=int)
    assert half_width_of_places(np.arange(5.0), np.full(5, 0.2), groups, 0.95) == np.inf


def test_two_half_widths_are_added_as_squares():
    assert with_places(5.0, np.array([2.0, 9.0]), 3.0) == pytest.approx([5 - 18**0.5, 10.0])
    assert with_places(1.0, np.array([0.5, 2.0]), 3.0)[0] == 0


# --- verdicts and stretches -----------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("lower", "upper", "threshold", "expected"),
    [
        (2, 3, 1, "yes"),
        (0, 0.5, 1, "hardly"),
        (0.5, 2, 1, "cannot tell"),
        # At the threshold nothing is said.
        (1, 2, 1, "cannot tell"),
        (0, 1, 1, "cannot tell"),
        (np.nan, np.nan, 1, "cannot tell"),
        (0, np.inf, 1, "cannot tell"),
        # A model whose predictions do not vary.
        (0, 0, 0, "hardly"),
    ],
)
def test_verdicts(lower, upper, threshold, expected):
    assert verdict(lower, upper, threshold) == expected


def test_stretches():
    marked = np.array([True, True, False, False, True, False, True])
    assert stretches(marked) == [(0, 1), (4, 4), (6, 6)]
    assert stretches(np.zeros(3, dtype=bool)) == []


def test_the_half_width_of_places_row_by_row(rng):
    """Student's t times the root of the sum of squared influences of rows, or of groups."""
    value, share = rng.normal(2, 3, 12), rng.dirichlet(np.ones(12))
    value[3] = np.nan
    group = np.array([0, 0, 1, 7, 1, 1, 2, 3, 3, 4, 4, 4])
    there = np.arange(12) != 3
    w, v = share[there] / share[there].sum(), value[there]
    variance = w @ (v - w @ v) ** 2
    each = w * ((v - w @ v) ** 2 - variance)
    sums = np.array([each[group[there] == g].sum() for g in range(5)])
    for groups, parts in ((None, each), (group, sums)):
        n = len(parts)
        half = stats.t.ppf(0.95, n - 1) * np.sqrt(n / (n - 1) * np.sum(parts**2))
        found = half_width_of_places(value, share, groups, 0.9)
        assert found == pytest.approx(half / (2 * np.sqrt(variance)))


# --- closed forms and derivatives ----------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize("degrees", [np.inf, 8.0])
@pytest.mark.parametrize("n_places", [3, 30])
def test_ranges_of_independent_values_are_those_of_tukey(n_places, degrees):
    """All differences lie within a quantile of the studentized range; 2,000 draws: error 1 to 2 %.

    An error that all places have in common changes no difference.
    """
    curve = np.where(np.arange(n_places) == 1, 9.0, np.linspace(0, 1, n_places))
    covariance = 0.09 * np.eye(n_places) + 5.0
    rng = np.random.default_rng(0)
    found = range_of(curve, covariance, 0.9, rng, degrees)
    half = 0.3 * stats.studentized_range.ppf(0.9, n_places, min(degrees, 1e5))
    assert found[:3] == (0, 1, 9.0)
    assert found.lower == pytest.approx(9 - half, abs=0.04 * half)
    assert found.upper == pytest.approx(9 + half, abs=0.04 * half)


def test_a_range_under_errors_of_different_size():
    """The largest lower and the largest upper end may belong to different pairs of places."""
    curve, sd = np.array([0.0, 4.0, 5.0, 5.0]), np.array([0.1, 0.1, 2.0, 2.0])
    # Places 2 and 3 have the same error, so that their difference has none.
    root = np.diag(sd)
    root[3] = root[2]
    found = range_of(curve, root @ root.T, 0.95, np.random.default_rng(1))
    drawn = np.random.default_rng(2).normal(size=(50_000, 4)) @ root.T
    largest = np.zeros(50_000)
    ends = []
    pairs = [(0, 1), (0, 2), (1, 2)]
    se = {(0, 1): np.sqrt(0.02), (0, 2): np.sqrt(4.01), (1, 2): np.sqrt(4.01)}
    for a, b in pairs:
        largest = np.maximum(largest, np.abs(drawn[:, a] - drawn[:, b]) / se[a, b])
    quantile = np.quantile(largest, 0.95)
    ends = [(abs(curve[a] - curve[b]), quantile * se[a, b]) for a, b in pairs]
    assert found.lower == pytest.approx(max(d - half for d, half in ends), abs=0.03)
    assert found.upper == pytest.approx(max(d + half for d, half in ends), abs=0.3)
    flat = range_of(np.zeros(4), root @ root.T, 0.95, np.random.default_rng(1))
    assert flat.lower == 0


def squares_between_rows(curves, hats, weight):
    """Mean square of curves about their mean, each less its mean over the places of rows."""
    p = weight / weight.sum()
    share = p @ hats
    own = curves - (curves @ share)[:, None]
    own = own - p @ own
    return p @ own**2 @ share


def slopes(statistic, weight):
    """Derivatives by the logarithm of every weight."""
    step = 1e-5
    ends = [
        [statistic(weight * np.exp(sign * step * e)) for e in np.eye(len(weight))]
        for sign in (-1, 1)
    ]
    return (np.array(ends[1]) - ends[0]) / (2 * step)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("grouped", [False, True])
def test_the_interval_of_a_spread_by_differentiation(rng, weighted, grouped):
    n = 40
    curves, place = rng.normal(size=(n, 5)) * [1, 2, 1, 3, 1], rng.uniform(0, 4, n)
    hats = np.array([np.interp(place, np.arange(5), e) for e in np.eye(5)]).T
    weight = rng.uniform(0.5, 2.0, n) if weighted else None
    group = rng.integers(0, 9, n) if grouped else None
    w = np.ones(n) if weight is None else weight
    found = spread_of_rows(curves, w @ hats / w.sum(), place, weight, group, 0.9)
    square = squares_between_rows(curves, hats, w)
    n_effective = w.sum() ** 2 / (w @ w)
    value = square * n_effective / (n_effective - 1)
    assert found.spread == pytest.approx(np.sqrt(value))
    moved = slopes(lambda w: squares_between_rows(curves, hats, w), w)
    sums = moved if group is None else np.bincount(group, moved)
    units = len(sums)
    half = stats.t.ppf(0.95, min(n_effective, units) - 1)
    half *= np.sqrt(units / (units - 1) * np.sum(sums**2)) / square
    assert found.lower == pytest.approx(np.sqrt(value * np.exp(-half)), rel=1e-6)
    assert found.upper == pytest.approx(np.sqrt(value * np.exp(half)), rel=1e-6)


def test_a_spread_of_one_group_or_of_two_rows_at_least():
    curves, share = np.array([[0.0, 2.0], [0.0, 4.0]]), np.array([0.5, 0.5])
    place = np.array([0.0, 1.0])
    # Less their means: -1, 1 and -2, 2, each 0.5 from the mean of both.
    found = spread_of_rows(curves, share, place, None, np.zeros(2, int), 0.95)
    assert found == (pytest.approx(np.sqrt(0.5)), 0, np.inf)
    assert spread_of_rows(curves, share, place, None, None, 0.95).spread == found.spread
    assert np.isnan(spread_of_rows(curves[:1], share, place[:1], None, None, 0.95)).all()


@pytest.mark.parametrize("grouped", [False, True])
def test_half_widths_of_places_by_differentiation(rng, grouped):
    """The error of the standard deviation of a curve over rows; some rows are beside the curve."""
    n = 30
    value, share = rng.normal(size=n) ** 2, rng.uniform(0.5, 2.0, n)
    value[[4, 9]] = np.nan
    group = rng.integers(0, 7, n) if grouped else None
    known = np.isfinite(value)

    def sd(w):
        return np.sqrt(np.cov(value[known], aweights=w[known], ddof=0))

    moved = slopes(sd, share)
    sums = moved[known] if group is None else np.bincount(group, moved)
    units = len(sums)
    expected = stats.t.ppf(0.975, units - 1) * np.sqrt(units / (units - 1) * np.sum(sums**2))
    found = half_width_of_places(value, share / share.sum(), group, 0.95)
    assert found == pytest.approx(expected, rel=1e-6)


def test_half_widths_of_places_in_degenerate_cases():
    share = np.full(3, 1 / 3)
    assert half_width_of_places(np.array([1.0, np.nan, np.nan]), share, None, 0.95) == 0
    assert half_width_of_places(np.array([2.0, 2.0, 2.0]), share, None, 0.95) == 0
    one_group = half_width_of_places(np.array([1.0, 2.0, 4.0]), share, np.zeros(3, int), 0.95)
    assert one_group == np.inf
    # Two rows of different weight: away 3/4 and -1/4, variance 3/16.
    found = half_width_of_places(np.array([1.0, 0.0]), np.array([0.25, 0.75]), None, 0.95)
    influence = np.array([0.25 * (9 / 16 - 3 / 16), 0.75 * (1 / 16 - 3 / 16)])
    expected = stats.t.ppf(0.975, 1) * np.sqrt(2 * np.sum(influence**2)) / (2 * np.sqrt(3 / 16))
    assert found == pytest.approx(expected)


def test_a_second_half_width_and_verdicts_by_hand():
    assert with_places(5.0, np.array([2.0, 9.0]), 4.0) == pytest.approx([0, 5 + np.sqrt(32)])
    assert with_places(5.0, np.array([2.0, 9.0]), 3.0) == pytest.approx([5 - np.sqrt(18), 10])
    for ends, expected in (
        ((1.1, 2, 1), "yes"), ((1, 2, 1), "cannot tell"), ((0, 1, 1), "cannot tell"),
        ((0, 0.9, 1), "hardly"), ((0, 0, 0), "hardly"), ((0, 0.1, 0), "cannot tell"),
    ):  # fmt: skip
        assert verdict(*ends) == expected


def test_a_range_under_correlated_errors():
    """Two places whose errors are nearly the same: their difference is known well."""
    covariance = np.array([[1.0, 0.98, 0.0], [0.98, 1.0, 0.0], [0.0, 0.0, 1.0]])
    curve, pairs = np.array([0.0, 4.0, 4.5]), [(0, 1), (0, 2), (1, 2)]
    found = range_of(curve, covariance, 0.95, np.random.default_rng(1))
    drawn = np.random.default_rng(2).multivariate_normal(np.zeros(3), covariance, 50_000)
    se = {(0, 1): 0.2, (0, 2): np.sqrt(2), (1, 2): np.sqrt(2)}
    ratios = [np.abs(drawn[:, a] - drawn[:, b]) / se[a, b] for a, b in pairs]
    quantile = np.quantile(np.max(ratios, axis=0), 0.95)
    # The error of a quantile of 2,000 draws is about 2 %.
    assert found.lower == pytest.approx(4 - 0.2 * quantile, abs=0.04)
    assert found.upper == pytest.approx(4.5 + np.sqrt(2) * quantile, abs=0.2)
