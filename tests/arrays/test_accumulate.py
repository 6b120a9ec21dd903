"""From bins to the curve: toy numbers, closed forms, and influence functions row by row."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

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
    assert_array_equal(acc.zero_start_se(sigma, width), [0, 3, 5])


@pytest.mark.parametrize(("n_bins", "at_the_end"), [(1, 10), (5, 4.47), (50, 1.41)])
def test_spread_depends_on_the_partition(n_bins, at_the_end):
    """math [9]: sigma = 5 everywhere on [-1, 1]."""
    sigma, width = np.full(n_bins, 5.0), np.full(n_bins, 2 / n_bins)
    assert acc.curve_std(sigma, width)[-1] == pytest.approx(10 / np.sqrt(n_bins), rel=1e-14)
    assert round(acc.curve_std(sigma, width)[-1], 2) == at_the_end
    assert acc.curve_std_sum(sigma, width)[-1] == pytest.approx(10, rel=1e-14)


def test_an_unknown_bin_is_not_stepped_across():
    effect, width = frozen(1, NAN, 2), np.ones(3)
    for statistic in (acc.accumulate, acc.curve_std, acc.curve_std_sum, acc.zero_start_se):
        assert_array_equal(np.isnan(statistic(effect, width)), [False, False, True, True])


# --- rows in bins, straight from the rows --------------------------------------------------------


class Rows:
    """A sample with its bins and moments, taken with numpy row by row (variances with ddof 0)."""

    def __init__(self, seed=0, n=400, weight=None):
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
        self.variance = self.each(lambda rows: self.g[rows].var())
        self.x_mean = self.each(lambda rows: self.x[rows].mean())
        self.x_variance = self.each(lambda rows: self.x[rows].var())
        self.x_covariance = self.each(lambda rows: np.cov(self.x[rows], self.g[rows], ddof=0)[0, 1])
        self.curve = acc.accumulate(self.mean, self.width)

    def each(self, statistic):
        return np.array([statistic(self.bin == k) for k in range(5)], dtype=float)

    def residual(self):
        return self.g - self.mean[self.bin]

    def steps(self):
        """Influence of each row on the curve at each edge, zero-start: (row, edge), math [26]."""
        inside = self.bin[:, None] < np.arange(6)
        return inside * (self.width / self.share)[self.bin, None] * self.residual()[:, None]

    def standard_error(self, influence):
        """Root of sum w^2 psi^2 / (sum w)^2: with equal weights mean(psi^2) / N."""
        squares = (self.weight[:, None] * influence) ** 2
        return np.sqrt(squares.sum(axis=0)) / self.weight.sum()

    def mean_centred_se(self):
        return acc.mean_centred_se(
            self.curve, self.mean, self.variance, self.edges, self.x_mean, self.x_variance,
            self.x_covariance, self.share, self.n,
        )  # fmt: skip


WEIGHTS = pytest.mark.parametrize("weight", [None, frozen(1, 0.2, 3, 1, 0.5)])


@WEIGHTS
def test_mean_of_the_curve_is_the_mean_over_rows(weight):
    rows = Rows(weight=weight)
    at_rows = np.interp(rows.x, rows.edges, rows.curve)
    mean = acc.mean_of_curve(rows.curve, rows.mean, rows.edges, rows.x_mean, rows.share)
    assert mean == pytest.approx(np.average(at_rows, weights=rows.weight), rel=1e-13)
    by_bin = acc.curve_at_x_mean(rows.curve, rows.mean, rows.edges, rows.x_mean)
    assert_allclose(by_bin, rows.each(lambda here: at_rows[here].mean()), rtol=1e-13)


def test_integral_of_the_curve():
    rows = Rows()
    found = acc.integral_of_curve(rows.curve, rows.width)
    assert found == pytest.approx(np.trapezoid(rows.curve, rows.edges) / 2, rel=1e-13)


@WEIGHTS
def test_zero_start_se_by_influence(weight):
    rows = Rows(weight=weight)
    se = acc.zero_start_se(np.sqrt(rows.variance / rows.n), rows.width)
    assert_allclose(se, rows.standard_error(rows.steps()), rtol=1e-12)


@WEIGHTS
def test_integral_centred_se_by_influence(weight):
    rows = Rows(weight=weight)
    steps = rows.steps()
    centre = np.trapezoid(steps, rows.edges, axis=1)[:, None] / 2  # linear between edges
    se = acc.integral_centred_se(np.sqrt(rows.variance / rows.n), rows.width)
    assert_allclose(se, rows.standard_error(steps - centre), rtol=1e-12)


@WEIGHTS
def test_mean_centred_se_by_influence(weight):
    """math [26], row by row: the row moves the bins' means, and where it stands on the curve."""
    rows = Rows(weight=weight)
    w = rows.weight / rows.weight.sum()
    # a_j: how far, on average over the rows, bin j is crossed.
    crossed = np.clip((rows.x[:, None] - rows.edges[:-1]) / rows.width, 0, 1)
    a = w @ crossed
    at_rows = np.interp(rows.x, rows.edges, rows.curve)
    centre = (at_rows - w @ at_rows) + (a * rows.width / rows.share)[rows.bin] * rows.residual()
    influence = rows.steps() - centre[:, None]
    assert_allclose(w @ influence, 0, atol=1e-13)  # an influence function has mean 0
    assert_allclose(rows.mean_centred_se(), rows.standard_error(influence), rtol=1e-12)


def test_mean_centred_se_by_jackknife():
    """Another route: leave out each row in turn and estimate all anew."""
    rows = Rows(n=1000)
    at_edges = []
    for left_out in range(1000):
        keep = np.arange(1000) != left_out
        x, g, k = rows.x[keep], rows.g[keep], rows.bin[keep]
        means = np.bincount(k, g) / np.bincount(k)
        curve = np.concatenate([[0], np.cumsum(means * rows.width)])
        at_edges.append(curve - np.interp(x, rows.edges, curve).mean())
    jackknife = np.std(at_edges, axis=0) * np.sqrt(999)
    # The two differ at first order in 1 / n_k; the smallest bin has 50 rows.
    assert_allclose(rows.mean_centred_se(), jackknife, rtol=1 / rows.n.min())


def test_mean_centred_se_of_a_known_slope_is_the_error_of_the_mean_of_x():
    """g = 2 in every row: only the mean of the curve, 2 mean(x), is uncertain."""
    rows = Rows()
    edges = rows.edges
    se = acc.mean_centred_se(
        2 * (edges + 1), np.full(5, 2.0), np.zeros(5), edges, rows.x_mean, rows.x_variance,
        np.zeros(5), rows.share, rows.n,
    )  # fmt: skip
    assert_allclose(se, 2 * rows.x.std() / np.sqrt(len(rows.x)), rtol=1e-12)


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
def test_average_effect_se_does_not_depend_on_bins(weight):
    rows = Rows(weight=weight)
    unbiased = rows.variance * rows.n / (rows.n - 1)
    se = acc.average_effect_se(rows.mean, unbiased, rows.share, rows.n)
    w = rows.weight
    n_effective = w.sum() ** 2 / (w**2).sum()
    assert se == pytest.approx(np.sqrt(np.cov(rows.g, aweights=w) / n_effective), rel=1e-12)


def test_average_effect_se_with_empty_bins_and_bins_of_one_row():
    g = frozen(1, 3, 7, 4)
    se = acc.average_effect_se(
        frozen(2, NAN, 7, 4),
        frozen(2, NAN, NAN, NAN),
        frozen(0.5, 0, 0.25, 0.25),
        frozen(2, 0, 1, 1),
    )
    assert se == pytest.approx(g.std(ddof=1) / 2, rel=1e-14)
    assert np.isnan(acc.average_effect_se(frozen(2), frozen(NAN), frozen(1), frozen(1)))
