"""Skewness of errors: by hand, invariances, and coverage by simulation (math [64])."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from rhale_stats.arrays import intervals, skewness

N_CELLS, ROWS = 20, 15


def moments(values):
    """Third cumulants, variances and rows of cells, (cell, row) values."""
    third = np.mean((values - values.mean(axis=1, keepdims=True)) ** 3, axis=1)
    n = np.full(len(values), float(values.shape[1]))
    return skewness.third_cumulant(third, n), values.var(axis=1, ddof=1), n


def drawn(name, rng, shape):
    """Errors of mean 0 and variance 1."""
    if name == "normal":
        return rng.standard_normal(shape)
    if name == "t3":
        return rng.standard_t(3, shape) / np.sqrt(3)
    if name == "exponential":
        return rng.exponential(size=shape) - 1
    values = np.exp(rng.standard_normal(shape))
    return (values - np.exp(0.5)) / np.sqrt((np.e - 1) * np.e)


def test_third_cumulant_is_that_of_scipy(rng):
    values = rng.exponential(size=(3, 9))
    third, _, _ = moments(values)
    assert_allclose(third, [stats.kstat(row, 3) for row in values], rtol=1e-12)
    assert np.isnan(skewness.third_cumulant(np.ones(1), np.full(1, 2.0))).all()


def test_symmetric_rows_have_none(rng):
    half = rng.exponential(size=(N_CELLS, 8))
    values = np.concatenate([half, -half], axis=1)
    assert_array_equal(skewness.of_cells(*moments(values)), np.zeros(N_CELLS))


def test_few_cells_have_none(rng):
    values = rng.exponential(size=(skewness.LEAST - 1, ROWS))
    assert_array_equal(skewness.of_cells(*moments(values)), 0)


def test_skewness_does_not_depend_on_units_and_follows_the_sign(rng):
    third, variance, n = moments(rng.exponential(size=(N_CELLS, ROWS)))
    found = skewness.of_cells(third, variance, n)
    assert (found > 0.5).all()
    assert_allclose(skewness.of_cells(8 * third, 4 * variance, n), found, rtol=1e-12)
    assert_allclose(skewness.of_cells(-third, variance, n), -found, rtol=1e-12)


def test_sum_of_equal_cells_by_hand():
    """The mean of n rows has the skewness of one over the root of n."""
    # Variance 9 and skewness 2 of the rows, 25 of them in each of four cells.
    cells = skewness.Skewness(np.full(4, 9 / 25), np.full(4, 2 * 27 / 25**2))
    assert_allclose(cells.of_sums(np.full((1, 4), 0.25)), 2 / np.sqrt(100))
    assert_allclose(cells.at(slice(0, 1)).of_sums(np.ones((1, 1))), 2 / np.sqrt(25))


@pytest.mark.parametrize("k", [-0.8, -0.1, 0.3, 1.5])
def test_interval_inverts_the_transformation(k):
    t = np.array([1.5, 2.0, 3.0])
    low, high = intervals.skewed(np.zeros(3), np.ones(3), t, k).T
    for error, quantile in ((-low, t), (-high, -t)):
        moved = error + k * error**2 / 3 + k**2 * error**3 / 27 + k / 6
        assert_allclose(moved, quantile, rtol=1e-10)


def test_no_skewness_is_students_interval():
    estimate, se, t = np.array([1.0, 2.0]), np.array([0.5, 0.1]), np.array([2.0, 3.0])
    expected = intervals.around(estimate, t * se)
    assert_array_equal(intervals.skewed(estimate, se, t, 0.0), expected)


def covered(name, seed, n_samples):
    """Shares of intervals, and of bands of 10 bins of 30 rows, that hold the mean; and its se."""
    rng = np.random.default_rng(seed)
    pointwise, joint = [], []
    sd = np.repeat(np.linspace(0.3, 1.7, N_CELLS), 1)[:, None]
    weight = np.repeat(np.eye(10) / 2, 2, axis=1)
    for _ in range(n_samples):
        values = sd * drawn(name, rng, (N_CELLS, ROWS))
        third, variance, n = moments(values)
        own = skewness.Skewness.of(third, variance, n)
        of_bins = np.zeros(10) if own is None else own.of_sums(weight)
        mean = weight @ values.mean(axis=1)
        se = np.sqrt(weight**2 @ (variance / n))
        for level, out in ((0.95, pointwise), (0.95**0.1, joint)):
            t = np.full(10, stats.t.ppf((1 + level) / 2, 2 * (ROWS - 1)))
            low, high = intervals.skewed(mean, se, t, of_bins).T
            out.append((low <= 0) & (high >= 0))
    band = np.mean(np.all(joint, axis=1))
    return np.mean(pointwise), band, np.sqrt(band * (1 - band) / n_samples)


@pytest.mark.parametrize("name", ["normal", "t3", "exponential", "log-normal"])
def test_coverage_at_thirty_rows(name):
    """Nominal 95 %; Student's intervals of log-normal effects cover 88 %, and bands 61 %."""
    pointwise, band, error = covered(name, seed=3, n_samples=600)
    assert 0.93 < pointwise < 0.97
    assert 0.93 - 2 * error < band < 0.97 + 2 * error
