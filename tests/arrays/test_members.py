"""Variances over members: all subsamples and all divisions into folds of a few numbers."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rhale_stats.arrays import members

Y = np.array([3.0, -1.0, 4.0, 1.0, -5.0, 9.0])
# The variance of their mean, unbiased.
OF_MEAN = Y.var(ddof=1) / len(Y)


@pytest.mark.parametrize("m", [1, 2, 3, 5])
def test_subsamples_of_all_kinds_have_the_variance_of_all_rows(m):
    means = [Y[list(some)].mean() for some in combinations(range(len(Y)), m)]
    assert_allclose(members.subsampling_factor(m, len(Y)) * np.var(means), OF_MEAN)


def divisions(n_folds):
    """All orders of the numbers, as folds: (division, fold, number)."""
    return np.array([np.split(np.array(order), n_folds) for order in permutations(Y)])


def trained(folds):
    """Means of the numbers outside every fold, (division, fold)."""
    inside = folds.sum(axis=2)
    return (Y.sum() - inside) / (len(Y) - folds.shape[2])


@pytest.mark.parametrize("n_folds", [2, 3, 6])
def test_models_of_neighbouring_folds_have_the_variance_of_all_rows(n_folds):
    """Over all divisions exactly, for a statistic that is linear in the training rows."""
    models = trained(divisions(n_folds))
    found = members.variance_of_models(models, np.roll(models, -1, axis=1))
    factor = members.jackknife_factor(n_folds)
    assert_allclose(factor * found.mean(), OF_MEAN)
    # As does the jackknife that leaves out groups, by all folds of a division.
    assert_allclose(factor * members.variance_within(models[:, :, None]), OF_MEAN)


@pytest.mark.parametrize("n_folds", [2, 3, 6])
def test_the_corrected_variance_is_too_small_for_models(n_folds):
    models = trained(divisions(n_folds))
    factor = members.corrected_factor(np.array(n_folds), 1 / (n_folds - 1))
    expected = (2 * n_folds - 1) / (n_folds - 1) ** 3 * OF_MEAN
    assert_allclose(factor * np.mean([members.variance(one) for one in models]), expected)


@pytest.mark.parametrize(("n_folds", "n_repeats"), [(2, 1), (2, 5), (3, 1), (5, 4), (8, 2)])
def test_degrees_are_those_of_the_quadratic_form(n_folds, n_repeats):
    """2 (sum of eigenvalues)^2 / variance of the form, which is 2 times the sum of squares."""
    step = np.eye(n_folds) - np.roll(np.eye(n_folds), 1, axis=1)
    values = np.linalg.eigvalsh(step.T @ step)
    expected = n_repeats * values.sum() ** 2 / (values**2).sum()
    assert_allclose(members.paired_degrees(n_folds, n_repeats), expected)


def test_unknown_members_are_left_out_and_fewer_than_half_are_too_few():
    nan = np.nan
    values = np.array([[1.0, nan, nan], [2.0, 5.0, nan], [6.0, 7.0, nan], [3.0, nan, 1.0]])
    assert_array_equal(members.n_known(values), [4, 2, 0])
    assert_allclose(members.mean(values), [3, 6, nan])
    assert_allclose(members.mean(values, np.array([1.0, 3.0, 1.0, 0.0])), [13 / 5, 22 / 4, nan])
    assert_allclose(members.variance(values), [np.var([1, 2, 6, 3], ddof=1), 2, nan])
    # One member has no variance.
    assert_allclose(members.variance(values[:1]), [nan] * 3)


def test_variance_within_repeats():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(3, 5, 2)) + 100 * np.arange(3)[:, None, None]
    expected = values.var(axis=1, ddof=1).mean(axis=0)
    assert_allclose(members.variance_within(values), expected)
    values[0, 0, 0] = np.nan
    own = [values[0, 1:, 0], values[1, :, 0], values[2, :, 0]]
    squares = sum(((one - one.mean()) ** 2).sum() for one in own)
    assert_allclose(members.variance_within(values)[0], squares / 11)
