"""From bins to the curve: toy numbers, closed forms, and influence functions row by row."""

from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.integrate import quad

from rhale_stats.arrays import accumulate as acc

EPS = np.finfo(float).eps
NAN = np.nan


def frozen(*values):
    array = np.array(values, dtype=float)
    array.setflags(write=False)
    return array


# --- toy numbers -------------------------------------------------------------------------------


def test_curve_by_hand():
    assert_array_equal(acc.accumulate(frozen(1, -1), frozen(0.5, 2)), [0, 0.5, -1.5])


def test_spread_by_hand():
    sigma, width = frozen(3, 4), frozen(1, 1)
    assert_array_equal(acc.curve_std(sigma, width), [0, 3, 5])
    assert_array_equal(acc.curve_std_sum(sigma, width), [0, 3, 7])


@pytest.mark.parametrize(("n_bins", "at_the_end"), [(1, 10), (5, 4.47), (50, 1.41)])
def test_spread_depends_on_the_partition(n_bins, at_the_end):
    """math [9]: sigma = 5 everywhere on [-1, 1]."""
    sigma, width = np.full(n_bins, 5.0), np.full(n_bins, 2 / n_bins)
    assert acc.curve_std(sigma, width)[-1] == pytest.approx(10 / np.sqrt(n_bins), rel=1e-14)
    assert round(acc.curve_std(sigma, width)[-1], 2) == at_the_end
    assert acc.curve_std_sum(sigma, width)[-1] == pytest.approx(10, rel=1e-14)


def test_an_unknown_bin_is_not_stepped_across():
    effect, width = frozen(1, NAN, 2), np.ones(3)
    for statistic in (acc.accumulate, acc.curve_std, acc.curve_std_sum):
        assert_array_equal(np.isnan(statistic(effect, width)), [False, False, True, True])


# --- rows in bins, straight from the rows --------------------------------------------------------


class Rows:
    """A sample with its bins and moments, taken with numpy row by row (variances with ddof 0)."""

    def __init__(self, seed=0, n=400, weight=None, linear=(0, 0, 0, 0, 0)):
        rng = np.random.default_rng(seed)
        self.edges = frozen(-1, -0.6, -0.1, 0, 0.7, 1)
        self.width = np.diff(self.edges)
        self.x = rng.uniform(-1, 1, n) ** 3  # not uniform inside a bin
        self.g = 1 + 3 * self.x + (1 + self.x**2) * rng.standard_gamma(1, n)
        self.bin = np.clip(np.searchsorted(self.edges, self.x, side="right") - 1, 0, 4)
        # Weights that are equal inside a bin, where Kish's formula is exact.
        self.weight = np.ones(n) if weight is None else np.asarray(weight)[self.bin]
        self.n = self.each(lambda rows: rows.sum())
        self.share = self.each(lambda rows: self.weight[rows].sum()) / self.weight.sum()
        self.mean = self.each(lambda rows: self.g[rows].mean())
        self.x_mean = self.each(lambda rows: self.x[rows].mean())
        self.x_variance = self.each(lambda rows: self.x[rows].var())
        self.linear = np.array(linear, dtype=bool)
        line = self.each(lambda rows: np.polyfit(self.x[rows], self.g[rows], 1)[0])
        self.slope = np.where(self.linear, line, 0.0)
        d, r = self.away(), self.residual()
        self.variance = self.each(lambda rows: np.mean(r[rows] ** 2))
        self.x_covariance = self.each(lambda rows: np.mean(d[rows] * r[rows]))
        terms = np.stack([d**3, d**4, d**2 * r, d**3 * r, d * r**2, d**2 * r**2])
        self.line = np.array([terms[:, self.bin == k].mean(axis=1) for k in range(5)])
        self.pieces = acc.Pieces(
            self.edges, self.mean, self.slope, self.x_mean, self.x_variance, self.share
        )
        # Of the effect in the middle of the bin.
        self.middle = (self.edges[1:] + self.edges[:-1]) / 2
        self.effect = self.mean + self.slope * (self.middle - self.x_mean)
        self.curve = acc.accumulate(self.effect, self.width)

    def each(self, statistic):
        return np.array([statistic(self.bin == k) for k in range(5)], dtype=float)

    def away(self):
        return self.x - self.x_mean[self.bin]

    def residual(self):
        return self.g - self.mean[self.bin] - self.slope[self.bin] * self.away()

    def noise(self):
        """Of means and slopes by their influence, without degrees of freedom."""
        spread = np.where(self.linear, self.x_variance, np.inf)
        *_, xr2, x2r2 = self.line.T
        parts = (self.variance, xr2 / spread, x2r2 / spread**2)
        return acc.Noise(*(part / self.n for part in parts))

    def unbiased(self):
        """Variances of the residuals with their degrees of freedom."""
        return self.variance * self.n / (self.n - 1 - self.linear)

    def line_noise(self):
        """As the package has it, with degrees of freedom."""
        return acc.line_noise(
            self.unbiased(), self.pieces.slope, self.pieces.x_variance, self.line, self.n
        )

    def gains(self, z):
        """What a unit of the mean, and of the slope, of every bin adds to the curve at ``z``."""
        z = np.clip(np.asarray(z)[..., None], self.edges[:-1], self.edges[1:])
        begin = self.edges[:-1] - self.x_mean
        return z - self.edges[:-1], ((z - self.x_mean) ** 2 - begin**2) / 2

    def moves(self, gains):
        """Influence of each row on the mean and the slope of its bin, times their gains."""
        k, (of_mean, of_slope) = self.bin, gains
        spread = np.where(self.linear, self.x_variance, np.inf)[k]
        steps = of_mean[..., k] + of_slope[..., k] * self.away() / spread
        return np.moveaxis(steps * self.residual() / self.share[k], -1, 0)

    def steps(self):
        """Influence of each row on the curve at each edge, zero-start: (row, edge), math [26]."""
        return self.moves(self.gains(self.edges))

    def standard_error(self, influence):
        """Root of sum w^2 psi^2 / (sum w)^2: with equal weights mean(psi^2) / N."""
        squares = (self.weight[:, None] * influence) ** 2
        return np.sqrt(squares.sum(axis=0)) / self.weight.sum()


WEIGHTS = pytest.mark.parametrize("weight", [None, frozen(1, 0.2, 3, 1, 0.5)])
LINES = pytest.mark.parametrize("linear", [(0, 0, 0, 0, 0), (1, 0, 0, 1, 1), (1, 1, 1, 1, 1)])


def integral_of_effect(rows, z):
    """From the left end to ``z``: length times the line in the middle of what is crossed."""
    z = np.clip(z[:, None], rows.edges[:-1], rows.edges[1:])
    middle = (z + rows.edges[:-1]) / 2
    line = rows.mean + rows.slope * (middle - rows.x_mean)
    return np.sum((z - rows.edges[:-1]) * line, axis=1)


@LINES
def test_curve_is_the_integral_of_the_effect(linear):
    rows = Rows(linear=linear)
    z = np.concatenate([rows.edges, rows.middle, np.linspace(-1, 1, 301), rows.x])
    found = acc.curve_at(rows.edges, rows.curve, rows.slope, z)
    assert_allclose(found, integral_of_effect(rows, z), atol=64 * EPS)
    assert_array_equal(found[:6], rows.curve)
    beyond = acc.curve_at(rows.edges, rows.curve, rows.slope, frozen(-1.01, 0.5, 1.01))
    assert_array_equal(np.isnan(beyond), [True, False, True])


def test_curve_of_a_line_by_hand():
    """Effect 2 z on [0, 2], then 1 on [2, 3]: z^2, then 4 + (z - 2)."""
    edges, slope = frozen(0, 2, 3), frozen(2, 0)
    curve = acc.accumulate(frozen(2, 1), np.diff(edges))
    assert_array_equal(acc.curve_at(edges, curve, slope, frozen(0.5, 1, 1.5, 2.5)), [
        0.25, 1, 2.25, 4.5,
    ])  # fmt: skip


@WEIGHTS
@LINES
def test_mean_of_the_curve_is_the_mean_over_rows(weight, linear):
    rows = Rows(weight=weight, linear=linear)
    at_rows = integral_of_effect(rows, rows.x)
    mean = acc.mean_of_curve(rows.curve, rows.pieces)
    assert mean == pytest.approx(np.average(at_rows, weights=rows.weight), rel=1e-13)
    at_rows = acc.curve_at(rows.edges, rows.curve, rows.slope, rows.x)
    assert mean == pytest.approx(np.average(at_rows, weights=rows.weight), rel=1e-13)
    by_bin = acc.mean_in_bins(rows.curve, rows.pieces)
    assert_allclose(by_bin, rows.each(lambda here: at_rows[here].mean()), rtol=1e-13)


@LINES
def test_integral_of_the_curve(linear):
    rows = Rows(linear=linear)
    found = acc.integral_of_curve(rows.curve, rows.width, rows.slope)
    if not any(linear):
        assert found == pytest.approx(np.trapezoid(rows.curve, rows.edges) / 2, rel=1e-13)
    z = -1 + (np.arange(200_000) + 0.5) / 100_000
    # The midpoint rule misses h^2 / 24 of the change of the effect, 1e-10 / 24 of about 10.
    assert found == pytest.approx(integral_of_effect(rows, z).mean(), abs=1e-9)


def test_turning_points_by_hand():
    """In their middles -1, 1, 1, 0, 0; the second would be 0 where it begins."""
    edges, effect = frozen(0, 2, 4, 6, 8, 10), frozen(-1, 1, 1, 0, 0)
    found = acc.turning_points(edges, effect, frozen(2, 1, 0, -3, 0))
    assert_array_equal(found, [1.5, 7])
    assert acc.turning_points(edges, effect, np.zeros(5)).size == 0


def test_turning_points_are_where_the_effect_changes_sign(rng):
    for _ in range(50):
        edges = np.sort(rng.uniform(-1, 1, 8))
        width, slope = np.diff(edges), np.where(rng.uniform(size=7) < 0.3, 0.0, rng.normal(size=7))
        effect = rng.normal(size=7) * width
        at_left, at_right = effect - slope * width / 2, effect + slope * width / 2
        crosses = at_left * at_right < 0
        found = acc.turning_points(edges, effect, slope)
        assert len(found) == crosses.sum()
        # Where the line from one end of the bin to the other is 0.
        expected = edges[:-1] + width * at_left / (at_left - at_right + (at_left == at_right))
        assert_allclose(found, expected[crosses], rtol=0, atol=1e-13)
        # The curve is highest, or lowest, there.
        curve = acc.accumulate(effect, width)
        step = np.minimum(found - edges[:-1][crosses], edges[1:][crosses] - found) / 2
        beside = [acc.curve_at(edges, curve, slope, found + s * step) for s in (-1, 0, 1)]
        bend = slope[crosses] * step**2 / 2
        assert_allclose(beside[0] - beside[1], bend, rtol=0, atol=1e-14)
        assert_allclose(beside[2] - beside[1], bend, rtol=0, atol=1e-14)


def test_mean_distance_of_two_halves_of_a_linear_bin(rng):
    """The curve of rows at two places is known; straight bins keep their sign here."""
    edges = np.array([0.0, 1.0, 3.0, 4.0])
    slope = np.array([0.0, 3.0, -2.0])
    x_mean, spread = np.array([0.4, 2.2, 3.3]), np.array([0.2, 0.5, 0.1])
    left, mean = np.array([1.0, -2.0, 0.7]), np.array([0.5, 1.5, -3.0])

    def curve(x):
        """``mean`` is the effect at the mean of x."""
        at_edge = edges[:-1] - x_mean
        bend = slope / 2 * ((x - x_mean) ** 2 - at_edge**2)
        return left + mean * (x - edges[:-1]) + bend

    expected = (np.abs(curve(x_mean - spread)) + np.abs(curve(x_mean + spread))) / 2
    pieces = acc.Pieces(edges, mean, slope, x_mean, spread**2, np.full(3, 1 / 3))
    found = acc.mean_distance(left, pieces)
    assert_allclose(found, expected, rtol=1e-12)


def test_a_stretch_of_pieces():
    rows = Rows(linear=(1, 0, 1, 0, 1))
    here = rows.pieces.stretch(slice(1, 4))
    assert_array_equal(here.edges, rows.edges[1:5])
    assert_array_equal(here.slope, rows.slope[1:4])
    assert_allclose(here.share, rows.n[1:4] / rows.n[1:4].sum(), rtol=8 * EPS)
    assert_allclose(here.away(), (rows.middle - rows.x_mean)[1:4], rtol=0, atol=4 * EPS)


# --- standard errors -----------------------------------------------------------------------------


def test_standard_errors_of_lines_are_those_of_statsmodels():
    """White's, with N / (N - 2) or, in constant bins, N / (N - 1): HC1."""
    rows = Rows(linear=(1, 0, 1, 0, 1))
    noise = rows.line_noise()
    effect_se, slope_se = (
        np.sqrt(noise.variance_along(np.ones(5), rows.pieces.away())),
        np.sqrt(noise.slope),
    )
    for k in range(5):
        here = rows.bin == k
        columns = [np.ones(here.sum())]
        if rows.linear[k]:
            columns.append(rows.x[here] - rows.middle[k])
        fit = sm.OLS(rows.g[here], np.column_stack(columns)).fit(cov_type="HC1")
        assert rows.effect[k] == pytest.approx(fit.params[0], rel=1e-12)
        assert effect_se[k] == pytest.approx(fit.bse[0], rel=1e-11)
        if rows.linear[k]:
            assert rows.slope[k] == pytest.approx(fit.params[1], rel=1e-12)
            assert slope_se[k] == pytest.approx(fit.bse[1], rel=1e-11)
            # The effect at any place of the bin.
            away = rows.edges[k] - rows.x_mean[k]
            at_left = fit.get_prediction([1, rows.edges[k] - rows.middle[k]]).se_mean[0]
            ours = np.sqrt(noise.variance_along(np.ones(5), np.full(5, away)))[k]
            assert ours == pytest.approx(at_left, rel=1e-11)
        else:
            assert slope_se[k] == 0
            assert noise.covariance[k] == 0


def test_noise_of_a_line_by_hand():
    """x = -1, -1, 1, 1 and residuals -1, 1, -2, 2: slope to 10 / 4^2 times 4 / 2."""
    pieces = acc.Pieces(
        frozen(-1, 1), frozen(0), frozen(5), frozen(0), frozen(1), frozen(1)
    )  # fmt: skip
    line = np.array([[0, 1, 0, 0, 1.5, 2.5]])
    noise = acc.line_noise(frozen(5), pieces.slope, pieces.x_variance, line, frozen(4))
    assert_allclose(noise.mean, 5 / 4)
    assert_allclose(noise.covariance, 1.5 / 2)
    assert_allclose(noise.slope, 10 / 16 * 4 / 2)
    # 2 means + 3 slopes.
    assert_allclose(
        noise.variance_along(frozen(2), frozen(3)), 4 * 5 / 4 + 12 * 1.5 / 2 + 9 * 5 / 4
    )


def test_a_line_changes_the_noise_of_its_own_bin_only():
    one, other = Rows(linear=(1, 0, 0, 0, 0)).line_noise(), Rows().line_noise()
    assert one.slope[0] > 0
    assert one.mean[0] != other.mean[0]
    for with_line, without in zip(one, other, strict=True):
        assert_array_equal(with_line[1:], without[1:])
    assert not other.slope.any()


@pytest.mark.parametrize(
    ("weight", "stretch"),
    [
        ([1, 2, 3], (0, 3)),
        ([5, 0, 3, 3, 0, 0, 1], (2, 4)),
        ([0, 0, 2, 0], (2, 3)),
        ([2, 0, 2], (0, 1)),
        ([1, 0, 0, 0.5, 0.6], (3, 5)),
    ],
)
def test_known_stretch_is_the_heaviest_run_of_bins_with_rows(weight, stretch):
    found = acc.known_stretch(frozen(*weight))
    assert (found.start, found.stop) == stretch


def test_values_of_a_stretch_at_all_edges():
    values = acc.at_edges(frozen(7, 8, 9), slice(1, 3), 4)
    assert_array_equal(values, [NAN, 7, 8, 9, NAN])


# --- heterogeneity and the average effect ----------------------------------------------------


def test_heterogeneity_se_by_hand():
    """Effects -1, -1, 1, 1: variance 4/3, m4 = 1, so (1 - 1/3 16/9) / 4 = 11/108."""
    se = acc.heterogeneity_se(frozen(4 / 3), frozen(1), frozen(4))
    assert_allclose(se, np.sqrt(11 / 108) / (2 * np.sqrt(4 / 3)), rtol=4 * EPS)


@pytest.mark.parametrize("n", [4, 30, 1000])
def test_heterogeneity_se_of_normal_effects(n):
    """m4 = 3 sigma^4 gives the textbook's sigma / sqrt(2 (n - 1))."""
    se = acc.heterogeneity_se(frozen(4), frozen(48), frozen(n))
    assert_allclose(se, 2 / np.sqrt(2 * (n - 1)), rtol=16 * EPS)


def test_heterogeneity_se_in_degenerate_bins():
    variance, m4 = frozen(0, NAN, NAN), frozen(0, 0, NAN)
    # No spread; one row; no row.
    assert_array_equal(acc.heterogeneity_se(variance, m4, frozen(5, 1, 0)), [0, NAN, NAN])


@WEIGHTS
@LINES
def test_average_effect_se_does_not_depend_on_bins(weight, linear):
    rows = Rows(weight=weight, linear=linear)
    squares = acc.mean_square(rows.unbiased(), rows.pieces, rows.n)
    assert_allclose(squares, rows.each(lambda here: rows.g[here].var()), rtol=1e-12)
    se = acc.average_effect_se(rows.mean, squares, rows.share, rows.n)
    w = rows.weight
    n_effective = w.sum() ** 2 / (w**2).sum()
    assert se == pytest.approx(np.sqrt(np.cov(rows.g, aweights=w) / n_effective), rel=1e-12)


def test_average_effect_se_with_empty_bins_and_bins_of_one_row():
    g = frozen(1, 3, 7, 4)
    mean, share, n = frozen(2, NAN, 7, 4), frozen(0.5, 0, 0.25, 0.25), frozen(2, 0, 1, 1)
    # Spread of x is not known where nothing is, and not needed where there is no slope.
    pieces = acc.Pieces(np.arange(5.0), mean, np.zeros(4), mean, frozen(NAN, NAN, 0, 0), share)
    squares = acc.mean_square(frozen(2, NAN, NAN, NAN), pieces, n)
    assert_array_equal(squares, [1, 0, 0, 0])
    se = acc.average_effect_se(mean, squares, share, n)
    assert se == pytest.approx(g.std(ddof=1) / 2, rel=1e-14)
    assert np.isnan(acc.average_effect_se(frozen(2), frozen(0), frozen(1), frozen(1)))


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("x_mean", "variance", "density"),
    [
        (2.0, 1 / 3, lambda x: 1 / 2),  # uniform on [1, 3]
        # Beta(2, 3) on [1, 3]: mean 1 + 2 · 2/5, variance 4 · 2 · 3 / (5² · 6).
        (1.8, 0.16, lambda x: 3 / 4 * (x - 1) * (3 - x) ** 2),
    ],
)
@pytest.mark.parametrize("left", [-0.5, -1.3, -2.9, 0.4, -3.5])
def test_mean_distance_of_a_straight_bin_is_the_integral_over_its_rows(
    x_mean, variance, density, left
):
    """A curve that rises by 3 from ``left``; it crosses 0 inside, or not."""
    pieces = acc.Pieces(*map(np.atleast_1d, ([1.0, 3.0], 1.5, 0.0, x_mean, variance, 1.0)))
    crossing = np.clip(1 - left / 1.5, 1, 3)
    expected = sum(
        quad(lambda x: density(x) * abs(left + 1.5 * (x - 1)), *ends)[0]
        for ends in ((1, crossing), (crossing, 3))
    )
    assert_allclose(acc.mean_distance(np.array([left]), pieces), [expected], rtol=1e-7)
    # The mirror image: the curve falls by 3.
    falling = pieces._replace(mean=-pieces.mean)
    assert_allclose(acc.mean_distance(np.array([-left]), falling), [expected], rtol=1e-7)


def test_mean_distance_of_rows_at_one_place_or_at_both_edges():
    def found(x_mean, variance, left):
        pieces = acc.Pieces(*map(np.atleast_1d, ([1.0, 3.0], 1.5, 0.0, x_mean, variance, 1.0)))
        return acc.mean_distance(np.array([left]), pieces)[0]

    # All rows at 1.5, where a curve from -1 is -0.25.
    assert found(1.5, 0.0, -1.0) == pytest.approx(0.25)
    # 3/4 of the rows at the left edge, 1/4 at the right one: |-1| and |2|.
    assert found(1.5, 0.75, -1.0) == pytest.approx(0.75 * 1 + 0.25 * 2)


@WEIGHTS
@LINES
def test_spread_of_the_curve_over_the_rows(weight, linear):
    """Mean and standard deviation of the curve at the rows, which are not uniform in a bin."""
    rows = Rows(weight=weight, linear=linear)
    at_rows = acc.curve_at(rows.edges, rows.curve, rows.slope, rows.x)
    mean = np.average(at_rows, weights=rows.weight)
    expected = np.sqrt(np.average((at_rows - mean) ** 2, weights=rows.weight))
    third, fourth = rows.line[:, 0], rows.line[:, 1]
    found, centre = acc.spread(rows.curve, rows.pieces, third, fourth)
    assert_allclose(centre, [mean], rtol=1e-12)
    assert_allclose(found, expected, rtol=1e-12)


def test_the_mean_of_all_rows_by_squared_weights(rng):
    """Root of sum w² (g - mean)² / W² times n / (n - 1), from moments in bins with lines."""
    rows = Rows(linear=(1, 0, 1, 0, 1))
    k, w = rows.bin, rng.uniform(0.5, 2.0, len(rows.x))
    total, square = np.bincount(k, w), np.bincount(k, w**2)
    mean, x_mean = (np.bincount(k, w * one) / total for one in (rows.g, rows.x))
    slope = np.where(rows.linear, rng.normal(size=5), 0.0)
    d = rows.x - x_mean[k]
    r = rows.g - mean[k] - slope[k] * d
    squares = np.zeros((5, 12))
    for column, values in zip((0, 1, 2, 3, 10), (d, d**2, r, d * r, r**2), strict=True):
        squares[:, column] = np.bincount(k, w**2 * values) / square
    pieces = acc.Pieces(rows.edges, mean, slope, x_mean, NAN * mean, total / w.sum())
    found = acc.weighted_average_se(pieces, squares, total**2 / square)
    away = rows.g - np.average(rows.g, weights=w)
    n = w.sum() ** 2 / np.sum(w**2)
    expected = np.sum((w * away) ** 2) / w.sum() ** 2 * n / (n - 1)
    assert found == pytest.approx(np.sqrt(expected))
    # One row is all there is.
    alone = pieces._replace(share=np.array([0.0, 1, 0, 0, 0]))
    assert np.isnan(acc.weighted_average_se(alone, squares, np.ones(5)))


def test_heterogeneity_of_all_bins_by_hand():
    """Widths 2, 3 and 1; sums of squares 8 of 4 rows, 9 of 6; no rows in the last."""
    found = acc.heterogeneity_index(
        np.array([8.0, 9.0, 0.0]), np.array([4.0, 6.0, 0.0]), np.array([2.0, 3.0, 1.0])
    )
    assert found == pytest.approx(2 * 8 / 4 + 3 * 9 / 6)
    # Weighted by rows, the last of unknown variance: (1 · 2 + 3 · 4) / 4, times the variance of x.
    variance, share = np.array([2.0, 4.0, NAN]), np.array([1.0, 3.0, 1.0]) / 5
    assert acc.heterogeneity_output(variance, 9.0, share) == pytest.approx(np.sqrt(9 * 14 / 4))
    assert np.isnan(acc.heterogeneity_output(np.full(3, NAN), 9.0, share))


@LINES
def test_sizes_of_a_curve_are_those_about_its_mean(linear):
    """Of one curve, and of several that differ by a constant or in sign."""
    rows = Rows(linear=linear)
    third, fourth = rows.line[:, 0], rows.line[:, 1]
    at_rows = acc.curve_at(rows.edges, rows.curve, rows.slope, rows.x)
    mean = at_rows.mean()
    curve = np.stack([rows.curve, rows.curve + 5])
    found = acc.sizes(curve, rows.pieces, third, fourth)
    assert_allclose(found.importance, np.full(2, at_rows.std()), rtol=1e-12)
    ends = (rows.curve - mean).min(), (rows.curve - mean).max()
    distance = rows.share @ acc.mean_distance(rows.curve[:-1] - mean, rows.pieces)
    if not any(linear):
        # Rows of a bin are taken as beta distributed: 0.02 % off here.
        assert distance == pytest.approx(np.abs(at_rows - mean).mean(), rel=1e-3)
    for values, expected in zip(found[1:], (distance, *ends), strict=True):
        assert_allclose(values, np.full(2, expected), rtol=1e-9)


def test_places_of_rows_in_their_bins():
    """Quantiles of a uniform and of a beta distribution, rows at one place, and at both edges."""
    edges = np.array([0.0, 2.0, 4.0, 5.0, 6.0, 10.0])
    x_mean = np.array([1.0, 2.8, 4.3, 5.25, 8.0])
    # Beta(2, 3) on [2, 4]; a quarter of the rows at the upper edge; fifth: uniform.
    variance = np.array([4 / 12, 0.16, 0.0, 0.25 * 0.75, 16 / 12])
    none = np.zeros(5)
    pieces = acc.Pieces(edges, none, none, x_mean, variance, np.full(5, 0.2))
    found = acc.places(pieces, 8)
    share = (np.arange(8) + 0.5) / 8
    assert_allclose(found[0], share, rtol=1e-12)
    assert_allclose(found[1], stats.beta.ppf(share, 2, 3), rtol=1e-9)
    assert_allclose(found[2], 0.3, rtol=1e-12)
    assert_array_equal(found[3], [0, 0, 0, 0, 0, 0, 1, 1])
    assert_allclose(found[4], share, rtol=1e-12)
    # Means beyond an edge by rounding lie on it.
    beyond = pieces._replace(x_mean=edges[:-1] - 1e-9, x_variance=none)
    assert_array_equal(acc.places(beyond, 3), 0)


def test_variance_of_a_weighted_sum_of_mean_and_slope():
    noise = acc.Noise(frozen(2, 1), frozen(0.5, np.inf), frozen(3, np.inf))
    assert_allclose(noise.variance_along(frozen(3, 2), frozen(-1, 1))[0], 9 * 2 - 6 * 0.5 + 3)
