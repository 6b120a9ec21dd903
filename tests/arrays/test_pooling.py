"""Rubin's rules: numbers by hand, degenerate imputations."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from rhale_stats.arrays.members import rubin


@pytest.mark.parametrize(
    ("complete", "degrees"), [(np.inf, 2 * 49 / 16), (10.0, 1 / (16 / 98 + 7 * 13 / (3 * 110)))]
)
def test_numbers_by_hand(complete, degrees):
    # Mean variance 1, between 1: total 1 + 4/3, of which 4/7 is between.
    pooled = rubin(np.array([[1.0], [2], [3]]), np.ones((3, 1, 1)), np.full((3, 1), complete))
    assert_allclose(pooled.value, [2])
    assert_allclose(pooled.covariance, [[7 / 3]])
    assert_allclose(pooled.degrees, [degrees])


def test_covariances_are_within_and_between():
    rng = np.random.default_rng(0)
    values, root = rng.normal(size=(4, 2, 3)), rng.normal(size=(4, 2, 3, 3))
    within = root @ root.transpose(0, 1, 3, 2)
    pooled = rubin(values, within, np.full((4, 2, 3), 20.0))
    for row in range(2):
        expected = within[:, row].mean(axis=0) + 5 / 4 * np.cov(values[:, row].T)
        assert_allclose(pooled.covariance[row], expected, rtol=1e-12)


def test_equal_imputations_are_complete_data():
    covariance = np.array([[2.0, 1], [1, 3]])
    pooled = rubin(np.ones((5, 2)), np.tile(covariance, (5, 1, 1)), np.full((5, 2), 12.0))
    assert_allclose(pooled.covariance, covariance)
    # Barnard and Rubin: (df + 1) / (df + 3) of them.
    assert_allclose(pooled.degrees, 13 / 15 * 12)
    assert rubin(np.ones((2, 1)), np.zeros((2, 1, 1)), np.full((2, 1), np.inf)).degrees == np.inf
