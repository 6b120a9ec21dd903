"""Variances of small cells and their degrees of freedom, of several features at once."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from rhale_stats.arrays.accumulate import known_cells, known_stretch, sums_at_edges
from rhale_stats.arrays.intervals import Sources
from rhale_stats.arrays.pooled_variance import VarianceSources, with_neighbours

# Rows of the cells of three features, with gaps, single rows, and none behind the last cell.
ROWS = np.array(
    [
        [20.0, 3, 4, 0, 1, 2, 30, 9, 5],
        [1.0, 1, 2, 3, 12, 2, 0, 0, 0],
        [2.0, 0, 0, 0, 0, 0, 0, 0, 0],
    ]
)
# One feature counts in another unit than the others.
UNITS = np.array([[1.0], [1e12], [1e-12]])


def alone(feature):
    """The cells of one feature, up to its last one with rows."""
    return slice(feature, feature + 1), slice(int(np.flatnonzero(ROWS[feature])[-1]) + 1)


def dense_at_edges(left, right, of_source, degrees, variance):
    """Degrees at all edges of one feature, from the parts of all cells at every edge."""
    n_cells = left.shape[1]
    parts = np.where(np.arange(n_cells) < np.arange(n_cells + 1)[:, None], left, right)
    return Sources(parts @ of_source, degrees).satterthwaite(variance[0])


@pytest.mark.parametrize("kind", ["both sides", "from the left", "zero between", "unknown"])
def test_degrees_at_edges_are_those_of_all_parts(rng, kind):
    left, right = rng.uniform(0.5, 2.0, (2, *ROWS.shape)) * UNITS * (ROWS > 0)
    if kind == "from the left":
        right = 0 * right
    if kind == "zero between":  # as of a curve that is 0 at the fifth edge
        is_left = np.arange(ROWS.shape[1]) < 4
        left, right = np.where(is_left, 0.0, left), np.where(is_left, right, 0.0)
    if kind == "unknown":
        left[0, 5], right[1, 2] = np.nan, np.nan
    variance = sums_at_edges(left, right)
    sources = VarianceSources.of_neighbours(ROWS)
    degrees = sources.degrees_at_edges(left, right, variance)
    matrix = sources.matrix()
    n_cells = ROWS.shape[1]
    for feature in range(len(ROWS)):
        cells = slice(feature * n_cells, (feature + 1) * n_cells)
        one = slice(feature, feature + 1)
        expected = dense_at_edges(
            left[one], right[one], matrix[cells], sources.degrees, variance[one]
        )
        is_known = np.isfinite(variance[feature])
        assert is_known.any()
        assert_allclose(degrees[feature, is_known], expected[is_known], rtol=1e-12)


def test_sources_without_degrees_leave_none():
    left, right = np.array([[1.0, 2.0, 1.0]]), np.array([[3.0, 0.0, 1.0]])
    sources = VarianceSources.of_cells(np.array([[4.0, 0.0, 5.0]]))
    degrees = sources.degrees_at_edges(left, right, sums_at_edges(left, right))
    # The second cell adds to the variance at edges on its right.
    assert_allclose(degrees, [[16 / (9 / 4 + 1 / 5), 4 / (1 / 4 + 1 / 5), 0, 0]])
    none = VarianceSources.of_cells(np.zeros((1, 2)))
    assert_allclose(none.degrees_at_edges(*np.ones((2, 1, 2)), np.full((1, 3), 2.0)), 0.0)


def test_degrees_in_bins_are_those_of_all_parts(rng):
    parts = rng.uniform(0.5, 2.0, ROWS.shape) * UNITS * (ROWS > 0)
    bin_of = np.array([[0, 0, 0, 1, 1, 2, 2, 2, 2], [3, 3, 4, 4, 4, 4, 4, 4, 4], [5] * 9])
    sources = VarianceSources.of_neighbours(ROWS)
    in_bins = np.zeros((6, ROWS.size))
    in_bins[bin_of.ravel(), np.arange(ROWS.size)] = parts.ravel()
    dense = Sources(in_bins @ sources.matrix(), sources.degrees).satterthwaite(in_bins.sum(axis=1))
    assert_allclose(sources.degrees_in_bins(parts, bin_of, 6), dense, rtol=1e-12)


def test_features_do_not_borrow_from_each_other(rng):
    mean = rng.normal(size=ROWS.shape) * np.sqrt(UNITS)
    own = np.where(ROWS > 1, rng.uniform(0.5, 2.0, ROWS.shape) * UNITS, np.nan)
    together = with_neighbours(ROWS, mean, own)
    for feature in range(len(ROWS)):
        cells = alone(feature)
        apart = with_neighbours(ROWS[cells], mean[cells], own[cells])
        for values, expected in zip(together, apart, strict=True):
            assert_allclose(values[cells], expected, rtol=1e-12)


def test_the_heaviest_run_of_every_feature():
    weight = np.array([[1.0, 1, 0, 3, 0, 0], [0, 2, 2, 0, 4, 0], [0, 0, 0, 0, 0, 0]])
    # Of two runs that are as heavy the first.
    expected = [[0, 0, 0, 1, 0, 0], [0, 1, 1, 0, 0, 0], [0] * 6]
    assert known_cells(weight).astype(int).tolist() == expected
    assert known_stretch(weight[1]) == slice(1, 3)
