"""Moments of unions of cells, and what unequal weights need."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rhale_stats.arrays import moments
from rhale_stats.arrays.binning import regular_axis, variable_axis
from rhale_stats.arrays.moments import Moments, cell_index, merge, union
from tests.arrays.made import cell_moments, on_axis
from tests.helpers import frozen

EPS = np.finfo(float).eps
EDGES = np.array([0.0, 0.1, 0.15, 0.4, 0.8, 1.0])
KINDS = pytest.mark.parametrize("kind", ["none", "frequency", "precision"])


def rows(rng, n=3000):
    """Rows on [0, 1] with both ends and an interior edge taken; read-only."""
    x = np.concatenate([rng.uniform(size=n - 4), [0.0, 1.0, 1.0, 0.4]])
    g = rng.standard_gamma(2.0, size=n) - 1
    return frozen(x), frozen(g)


def assert_same(actual: Moments, expected: Moments, scale):
    """Counts exactly; the rest to n eps, the bound of a sum of n terms, times its terms' size."""
    n = float(expected.n_obs.sum())
    assert_array_equal(actual.n_obs, expected.n_obs)
    assert_allclose(actual.weight, expected.weight, rtol=n * EPS)
    assert_allclose(actual.weight_sq, expected.weight_sq, rtol=n * EPS)
    assert_allclose(actual.mean, expected.mean, rtol=0, atol=n * EPS * scale)
    assert_allclose(actual.x_mean, expected.x_mean, rtol=n * EPS)
    assert_allclose(actual.m2, expected.m2, rtol=n * EPS, atol=n * EPS * scale**2)


def weightings(rng, n):
    return {
        "none": (None, False),
        "frequency": (rng.integers(1, 5, n).astype(float), True),
        "precision": (rng.uniform(0.1, 2, n), False),
    }


@KINDS
def test_merged_cells_equal_coarse_ones(rng, kind):
    x, g = rows(rng)
    weight, frequency = weightings(rng, len(x))[kind]
    fine = np.unique(np.concatenate([EDGES, np.linspace(0, 1, 41)]))
    cells = cell_moments(variable_axis(fine), x, g, weight, frequency=frequency)
    direct = cell_moments(variable_axis(EDGES), x, g, weight, frequency=frequency)
    merged = merge(cells, np.searchsorted(fine, EDGES[:-1]))
    assert_same(merged, direct, np.abs(g).max())


def test_merging_is_associative(rng):
    x, g = rows(rng)
    weight = rng.uniform(0.1, 2, len(x))
    # 300 cells: some are empty, and so are some unions of two.
    cells = cell_moments(regular_axis(0, 1, 300), x[::10], g[::10], weight[::10], frequency=False)
    assert (cells.n_obs == 0).any()
    for _ in range(20):
        inner = np.union1d([0], rng.choice(300, rng.integers(1, 200), replace=False))
        outer = np.union1d([0], rng.choice(len(inner), rng.integers(1, len(inner) + 1)))
        assert_same(merge(merge(cells, inner), outer), merge(cells, inner[outer]), np.abs(g).max())


def test_a_union_of_one_occupied_cell_keeps_its_mean(rng):
    n = 300
    count = rng.integers(0, 50, n).astype(float)
    mean = np.where(count > 0, rng.normal(size=n), np.nan)
    cells = Moments(count, count, count, mean, np.where(count > 1, 1.0, 0.0), mean)
    # (w m) / w: two roundings.
    assert_allclose(merge(cells, np.arange(n)).mean, mean, rtol=2 * EPS)


def test_union_is_one_merge(rng):
    x, g = rows(rng)
    cells = cell_moments(regular_axis(0, 1, 50), x[:40], g[:40], None, frequency=False)
    batch = Moments(*(part[None] for part in cells))
    assert_same(union(batch), merge(cells, np.array([0])), np.abs(g).max())


@KINDS
def test_products_with_x_of_unions(rng, kind):
    x, g = rows(rng, 300)
    weight, frequency = weightings(rng, len(x))[kind]
    cells = on_axis(variable_axis(EDGES), x, g, weight, frequency=frequency)
    starts = np.array([0, 1, 3])
    bins = cells.pooled(starts)
    found = merge(cells.means(), starts)
    assert_allclose(found.x_m2, bins.product(2, 0), rtol=1e-12)
    assert_allclose(found.xg, bins.product(1, 1), rtol=1e-9, atol=1e-12)


def test_products_with_x_across_cells_without_rows():
    """Rows in the first and the third of four cells; the last bin is empty."""
    x, g = np.array([0.25, 0.75, 2.5]), np.array([1.0, 2.0, 7.0])
    cells = on_axis(variable_axis(np.arange(5.0)), x, g)
    assert_allclose(cells.means().x_m2, [0.125, 0, 0, 0], atol=EPS)
    assert_allclose(cells.means().xg, [0.25, 0, 0, 0], atol=EPS)
    merged = merge(cells.means(), np.array([0, 3]))
    assert_allclose(merged.x_m2, [3 * np.var(x), 0], rtol=8 * EPS)
    assert_allclose(merged.xg, [3 * np.cov(x, g, ddof=0)[0, 1], 0], rtol=8 * EPS)


def test_cells_of_values_are_those_of_the_axis(rng):
    x, _ = rows(rng)
    axis = variable_axis(EDGES)
    assert_array_equal(cell_index(axis, x), axis.index(x))


def test_effective_rows_of_squares():
    """Squares 1, 4, 16 over their largest: 21^2 / (1 + 16 + 256), in any unit."""
    for unit in (1.0, 1e-200):
        assert moments.rows_of_squares(unit * np.array([1.0, 2.0, 4.0])) == pytest.approx(441 / 273)
    assert moments.rows_of_squares(np.full(7, 3.0)) == pytest.approx(7)


def test_only_unequal_precision_weights_need_squares():
    unequal, equal = np.array([1.0, 2.0]), np.array([2.0, 2.0])
    assert moments.need_squares(unequal, frequency=False)
    assert not moments.need_squares(unequal, frequency=True)
    assert not moments.need_squares(equal, frequency=False)
    assert not moments.need_squares(None, frequency=False)
