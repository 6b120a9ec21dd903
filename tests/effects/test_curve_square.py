"""The covariance over the rows of what a curve is a sum of, by the rows themselves."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from rhale_stats.arrays.accumulate import Pieces
from rhale_stats.effects.curve_square import _satterthwaite, moments_of_rows

EDGES = np.array([-1.0, 0.5, 1.0, 4.0])


@pytest.mark.parametrize("linear", [[], [1], [0, 2], [0, 1, 2]])
def test_moments_are_those_of_the_rows(linear, rng):
    """Of hats between edges, and of - (x - l)(r - x) / 2 in bins with a slope."""
    n_rows = [5, 30, 12]
    x = np.concatenate([low + (high - low) * rng.beta(1, 3, n) for low, high, n in
                        zip(EDGES[:-1], EDGES[1:], n_rows, strict=True)])  # fmt: skip
    k, linear = np.repeat(np.arange(3), n_rows), np.array(linear, dtype=int)
    moments = [
        np.array([np.mean((x[k == b] - x[k == b].mean()) ** power) for b in range(3)])
        for power in (2, 3, 4)
    ]
    x_mean = np.array([x[k == b].mean() for b in range(3)])
    share = np.array(n_rows) / len(x)
    slope = np.isin(np.arange(3), linear).astype(float)
    pieces = Pieces(EDGES, np.zeros(3), slope, x_mean, moments[0], share)
    hats = np.array([np.interp(x, EDGES, unit) for unit in np.eye(4)])
    bumps = [-(x - EDGES[b]) * (EDGES[b + 1] - x) / 2 * (k == b) for b in linear]
    expected = np.cov(np.vstack([hats, *bumps]), ddof=0)
    assert_allclose(moments_of_rows(pieces, moments[1], moments[2], linear), expected, atol=1e-14)


def test_degrees_of_a_sum():
    """Satterthwaite's; what is 0 does not count, with no degree of freedom either."""
    parts, degrees = np.array([4.0, 1.0, 0.0]), np.array([2.0, 5.0, 0.0])
    assert _satterthwaite(parts, degrees) == pytest.approx(25 / (16 / 2 + 1 / 5))
    assert _satterthwaite(np.zeros(2), np.ones(2)) == np.inf
