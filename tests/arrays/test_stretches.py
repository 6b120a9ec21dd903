"""Sorted rows: their order, the stretches of their cells, and the same sums as in any order."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rhale_stats.arrays import binning, moments, spread
from rhale_stats.arrays.moments import cell_index, stretches
from rhale_stats.arrays.stretches import BLOCK_ROWS, PACKED_FROM, Stretches, ascends, sorting

N = 2 * BLOCK_ROWS + 77


def columns_of(rng):
    return {
        "uniform": rng.uniform(size=N),
        "few": rng.uniform(size=PACKED_FROM - 1),
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


def test_cells_are_those_of_the_axis_where_values_are_edges_but_for_rounding(rng):
    at = 0.1 * 3 + np.arange(1001) * 0.1
    x = np.sort(np.concatenate([at, np.nextafter(at, 99), np.nextafter(at, -99), at]))
    for axis in (binning.regular_axis(x[0], x[-1], 1000), binning.variable_axis(np.unique(at))):
        x = x[x >= axis.edges[0]]
        cell = np.minimum(cell_index(axis, x), len(axis) - 1)
        found = stretches(axis, x)
        assert_array_equal(np.repeat(found.cell, found.n_obs.astype(int)), cell)


@pytest.mark.parametrize("weighting", ["none", "frequency", "precision"])
@pytest.mark.parametrize("kind", ["uniform", "skewed", "ties", "few"])
def test_sums_are_those_of_rows_in_any_order(rng, kind, weighting):
    x = np.sort(columns_of(rng)[kind])
    g = np.sin(x) + rng.normal(size=len(x))
    weight = {
        "none": None,
        "frequency": rng.integers(1, 5, len(x)).astype(float),
        "precision": rng.exponential(size=len(x)),
    }[weighting]
    frequency = weighting == "frequency"
    axis = binning.regular_axis(x[0], x[-1], 57)
    of_row = stretches(axis, x)
    known = moments.cell_moments(axis, x, g, weight, frequency=frequency)
    found = moments.cell_moments(axis, x, g, weight, frequency=frequency, of_row=of_row)
    for one, other in zip(found, known, strict=True):
        assert_allclose(one, other, rtol=1e-12, atol=1e-14)
    starts = np.array([0, 3, 20])
    bins, slope = moments.merge(known, starts), np.array([0.0, 0.3, -0.2])
    arguments = axis, starts, bins, x, g, weight, slope
    for one, other in zip(
        moments.residual_moments(*arguments, of_row),
        moments.residual_moments(*arguments),
        strict=True,
    ):
        # Sums of odd powers cancel: by the size of their terms.
        assert_allclose(one, other, rtol=1e-11, atol=1e-12 * np.nanmax(np.abs(other)))
    edges = np.unique(np.quantile(x, np.linspace(0, 1, 30)))
    cell, k = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, None), len(edges) - 1
    parts = rng.normal(size=(3, k))
    by_row = spread.Means(cell, *parts, np.full(k, 0.9))
    sorted_ = by_row._replace(of_row=Stretches.between(edges, x))
    for one, other in zip(
        spread.residuals(axis, sorted_, x, g, weight, frequency=frequency),
        spread.residuals(axis, by_row, x, g, weight, frequency=frequency),
        strict=True,
    ):
        assert_allclose(one, other, rtol=1e-11, atol=1e-13 * np.abs(other).max())


def test_equal_local_effects_have_no_spread(rng):
    x = np.sort(rng.uniform(size=N))
    axis = binning.regular_axis(0.0, 1.0, 10)
    found = moments.cell_moments(
        axis, x, np.full(N, 0.1), None, frequency=False, of_row=stretches(axis, x)
    )
    assert_array_equal(found.m2, 0)
    assert_array_equal(found.mean, 0.1)


def test_offset_of_local_effects_costs_no_digits(rng):
    x, g = np.sort(rng.uniform(size=N)), rng.integers(-8, 9, N) / 8
    axis = binning.regular_axis(0.0, 1.0, 10)
    near, far = (
        moments.cell_moments(axis, x, g + by, None, frequency=False, of_row=stretches(axis, x))
        for by in (0.0, 2.0**40)
    )
    assert_allclose(far.m2, near.m2, rtol=1e-12)


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
