"""Errors of means by rows, by groups and by parameters: written out row by row."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rhale_stats.arrays import delta as kernel
from rhale_stats.arrays.profiles import bin_means
from tests.helpers import frozen


def square(moved):
    return np.sum(moved**2, axis=0)


def test_a_mean_of_rows_has_its_usual_variance(rng):
    values = frozen(rng.normal(2, 1, (9, 2)))
    units = kernel.of_rows(values, None, frequency=False)
    assert_allclose(square(units.moved), values.var(axis=0, ddof=1) / 9)
    assert_array_equal(units.code, np.arange(9))
    assert units.degrees == 8


def test_a_frequency_is_a_number_of_rows(rng):
    values, times = frozen(rng.normal(2, 1, (5, 2))), frozen([1.0, 3.0, 2.0, 1.0, 4.0])
    units = kernel.of_rows(values, times, frequency=True)
    rows = np.repeat(values, times.astype(int), axis=0)
    assert_allclose(square(units.moved), rows.var(axis=0, ddof=1) / 11)
    assert units.degrees == 10
    alone = kernel.of_rows(values[:1], np.ones(1), frequency=True)
    assert np.isnan(alone.moved).all()


def test_a_weighted_mean_of_rows(rng):
    """The sum of w² (v - mean)² over W², less what the mean takes from it."""
    values, w = frozen(rng.normal(2, 1, 6)), frozen(rng.uniform(0.5, 3.0, 6))
    units = kernel.of_rows(values[:, None], w, frequency=False)
    total = w.sum()
    mean = w @ values / total
    # What the squares are on average for rows of variance 1, over the variance of the mean.
    lost = w**2 @ (1 - 2 * w / total + w @ w / total**2) / (w @ w)
    assert_allclose(square(units.moved), w**2 @ (values - mean) ** 2 / total**2 / lost)
    assert units.degrees == pytest.approx(total**2 / (w @ w) - 1)


def test_groups_of_one_row_are_rows_and_equal_groups_are_means(rng):
    values = frozen(rng.normal(size=(12, 2)))
    alone = kernel.of_groups(values, None, np.arange(12), frequency=False)
    assert_allclose(square(alone.moved), values.var(axis=0, ddof=1) / 12)
    assert alone.degrees == pytest.approx(11)
    group = np.repeat(np.arange(4), 3)
    units = kernel.of_groups(values, None, group, frequency=False)
    means = values.reshape(4, 3, 2).mean(axis=1)
    assert_allclose(square(units.moved), means.var(axis=0, ddof=1) / 4)
    assert units.degrees == pytest.approx(3)
    assert_array_equal(units.code, group)


@pytest.mark.parametrize("kind", ["none", "precision", "frequency"])
def test_means_of_bins_are_means_of_rows(rng, kind):
    """The square of a bin's own column is the variance of the mean of its rows."""
    cell = np.array([0] * 5 + [1] * 7 + [2] * 4)
    values = frozen(rng.normal(3, 1, 16))
    weight = {
        "none": None,
        "precision": frozen(rng.uniform(0.5, 2.0, 16)),
        "frequency": frozen(rng.integers(1, 4, 16).astype(float)),
    }[kind]
    frequency = kind == "frequency"
    of = bin_means(values, cell, 3, weight, frequency=frequency)
    start = np.array([1.0, 0.0, 0.0])
    found = kernel.of_bins(values, cell, of, start, weight, None, frequency=frequency)
    own = np.zeros(3)
    for k in range(3):
        v, w = values[cell == k], np.ones(16)[cell == k] if weight is None else weight[cell == k]
        share, at = w / w.sum(), v - np.average(v, weights=w)
        if kind == "precision":
            # Every residual has lost its own part of the variance.
            own[k] = share**2 @ (at**2 / (1 - 2 * share + share @ share))
        else:
            own[k] = np.sum(w * at**2) / (w.sum() - 1) / w.sum()
    # The first bin is subtracted from all: its variance is added to that of the others.
    assert_allclose(square(found.units.moved), [0, own[0] + own[1], own[0] + own[2]], atol=1e-15)
    assert_allclose(found.degrees, np.maximum(of.n_effective - 1, 0))
    assert_array_equal(found.n_units, [5, 7, 4])


def test_a_curve_of_bins_less_its_mean_over_the_rows(rng):
    """By a numerical derivative of mean_k - sum_j p_j mean_j in the weight of every row."""
    cell = np.array([0] * 30 + [1] * 50 + [2] * 20)
    values = frozen(rng.normal(cell, 1.0))
    of = bin_means(values, cell, 3, None, frequency=False)
    found = kernel.of_bins(values, cell, of, None, None, None)

    def curve(w):
        total = np.bincount(cell, w)
        mean = np.bincount(cell, w * values) / total
        return mean - total / total.sum() @ mean

    eps = 1e-6
    slope = np.array([(curve(1 + eps * e) - curve(1 - eps * e)) / (2 * eps) for e in np.eye(100)])
    # The factors n / (n - 1) of bins of 20 to 50 rows.
    assert_allclose(square(found.units.moved), square(slope), rtol=1 / 19)
    assert np.all(square(found.units.moved) > square(slope))


def test_groups_within_bins(rng):
    """Every bin has groups of its own: four of two rows, three of three."""
    values = frozen(rng.normal(size=17))
    cell = np.repeat([0, 1], [8, 9])
    group = np.concatenate([np.repeat(np.arange(4), 2), 4 + np.repeat(np.arange(3), 3)])
    of = bin_means(values, cell, 2, None, frequency=False)
    found = kernel.of_bins(values, cell, of, np.zeros(2), None, group)
    means = values[:8].reshape(4, 2).mean(axis=1), values[8:].reshape(3, 3).mean(axis=1)
    assert_allclose(square(found.units.moved), [np.var(m, ddof=1) / len(m) for m in means])
    assert_allclose(found.degrees, [3, 2])
    assert_array_equal(found.n_units, [4, 3])


def test_sums_over_units():
    values = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    assert_array_equal(kernel.summed(values, np.array([1, 0, 1])), [[3, 4], [6, 8]])


@pytest.mark.parametrize("as_fitted", [False, True])
def test_rows_and_parameters_together(rng, as_fitted):
    """Rows 0 to 3 of five enter the estimates as two groups; row 4 moves the parameters alone."""
    influence, change = frozen(rng.normal(size=(5, 2))), frozen(rng.normal(size=(2, 3)))
    code = np.array([0, 0, 1, 1])
    moved, rows = frozen(rng.normal(size=(2, 3))), frozen(np.eye(3))
    units = kernel.Units(moved, code, 1.0)
    found = kernel.together(
        rows, change, units, influence, np.arange(4), np.full(5, 9.0), as_fitted=as_fitted
    )
    each = np.sqrt(2 / (2 - 1)) * influence @ change
    own = np.stack([each[0] + each[1], each[2] + each[3]])
    model = change.T @ change if as_fitted else own.T @ own + np.outer(each[4], each[4])
    assert_allclose(found, rows + moved.T @ own + own.T @ moved + model)


def test_factors_of_robust_covariances():
    """Of single rows their own, of groups one for all."""
    influence, factor = np.ones((3, 1)), np.array([1.0, 2.0, 3.0])
    assert_allclose(kernel.corrected(influence, 3, 3, factor)[:, 0], factor)
    assert_allclose(kernel.corrected(influence, 2, 3, factor) ** 2, 2)
