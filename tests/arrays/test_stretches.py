"""Sorted rows: their order, and the stretches of their cells."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from rhale_stats.arrays.binning import BLOCK_ROWS, COUNTED_FROM, Stretches, ascends, sorting

N = 2 * BLOCK_ROWS + 77


def columns_of(rng):
    return {
        "uniform": rng.uniform(size=N),
        "few": rng.uniform(size=COUNTED_FROM - 1),
        "skewed": rng.lognormal(0, 4, N),
        "tails": rng.standard_t(0.5, N),
        "ties": rng.integers(-3, 4, N) / 10,
        "far": 1e9 + rng.uniform(size=N),
        "close": np.append(rng.integers(1 << 40, size=N) * 2.0**-80, 1.0),
        "huge": np.append(rng.normal(size=N), [-1.7e308, 1.7e308]),
        "one place": np.full(N, 0.1),
    }


KINDS = tuple(columns_of(np.random.default_rng(0)))


@pytest.fixture(params=KINDS)
def x(request, rng):
    return columns_of(rng)[request.param]


def test_sorting_is_a_stable_argsort(x):
    assert_array_equal(sorting(x), np.argsort(x, kind="stable"))


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
def test_sorting_of_values_that_are_not_finite(rng, odd):
    x = rng.uniform(size=N)
    x[[5, 90]] = odd
    assert_array_equal(sorting(x), np.argsort(x, kind="stable"))


def test_stretches_by_hand():
    found = Stretches.between(np.array([0.0, 1.0, 2.0, 3.0]), np.array([0.0, 0.5, 2.0, 2.5, 3.0]))
    assert_array_equal(found.cell, [0, 2])
    assert_array_equal(found.first, [0, 2])
    assert_array_equal(found.n_obs, [2, 3])
    assert_array_equal(found.on_cells(np.array([5.0, 7.0])), [5, 0, 7])


def test_values_that_ascend():
    """Also where two blocks of rows meet, and of equal values; one that does not, anywhere."""
    n = 2 * BLOCK_ROWS + 5
    x = np.repeat(np.arange(n / 5), 5)[:n]
    assert ascends(x)
    assert ascends(x[:1])
    assert ascends(x[:0])
    for at in (1, BLOCK_ROWS - 1, BLOCK_ROWS, n - 1):
        other = x.copy()
        other[at] = -1.0
        assert not ascends(other)
