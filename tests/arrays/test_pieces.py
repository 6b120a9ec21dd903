"""Sums of pieces of sorted rows: those of any cells and lines follow, as from the rows."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rhale_stats.arrays import moments, spread
from rhale_stats.arrays.moments import LINE_POWERS, OF_LINES
from rhale_stats.arrays.pieces import PIECE_ROWS, POWERS, Pieces
from rhale_stats.arrays.stretches import BLOCK_ROWS, Stretches

N = BLOCK_ROWS + 3 * PIECE_ROWS + 17


def columns_of(rng):
    uniform = np.sort(rng.uniform(size=N))
    ties = np.sort(rng.integers(0, 30, N) / 10)
    return {
        "uniform": (uniform, np.sin(6 * uniform) + rng.normal(size=N)),
        "ties": (ties, ties + rng.normal(size=N)),
        "heavy": (np.sort(rng.lognormal(0, 3, N)), rng.standard_t(2, N)),
        "short": (uniform[: PIECE_ROWS - 1], rng.normal(size=PIECE_ROWS - 1)),
        "whole": (uniform[: 2 * PIECE_ROWS], rng.normal(size=2 * PIECE_ROWS)),
    }


@pytest.fixture(params=tuple(columns_of(np.random.default_rng(0))))
def columns(request, rng):
    return columns_of(rng)[request.param]


def cells_of(x, n_cells=40):
    """Cells of equal width, many of them empty for skewed values; with pieces and without."""
    edges = np.linspace(x[0], x[-1], n_cells + 1)
    return edges, Stretches.between(edges, x)


def by_loop(cells, x, g, x_mean, mean, slope, powers):
    """The sums from the rows of each cell, in extended precision."""
    bounds = np.append(cells.first, len(x))
    out = np.empty((len(powers), cells.n_groups))
    for at, (begin, end) in enumerate(pairwise(bounds)):
        d = x[begin:end].astype(np.longdouble) - x_mean[at]
        r = g[begin:end].astype(np.longdouble) - mean[at] - slope[at] * d
        out[:, at] = [np.sum(d**i * r**j) for i, j in powers]
    return out


def sizes(cells, x, g, x_mean, mean, slope, powers):
    """Bounds of the sums, beside which errors are judged."""
    bounds = np.append(cells.first, len(x))
    out = np.empty((len(powers), cells.n_groups))
    for at, (begin, end) in enumerate(pairwise(bounds)):
        d = np.abs(x[begin:end] - x_mean[at]).max()
        r = np.abs(g[begin:end] - mean[at]).max() + np.abs(slope[at]) * d
        out[:, at] = [(end - begin) * d**i * r**j for i, j in powers]
    return out


def test_sums_about_lines_are_those_of_the_rows(columns, rng):
    x, g = columns
    _, cells = cells_of(x)
    n = cells.n_groups
    x_mean, mean = x[cells.first], rng.normal(size=n)
    pieces = Pieces(x, g)
    for slope in (np.zeros(n), rng.normal(size=n) / (x[-1] - x[0])):
        given = cells.first, x_mean, mean, slope
        found = pieces.about(*given, POWERS)
        expected = by_loop(cells, x, g, x_mean, mean, slope, POWERS)
        scale = sizes(cells, x, g, x_mean, mean, slope, POWERS)
        assert (np.abs(found - expected) <= 1e-13 * scale).all()


def test_moments_are_those_of_the_rows(columns):
    x, g = columns
    _, cells = cells_of(x)
    x_mean, mean, m2 = Pieces(x, g).moments(cells.first)
    bounds = np.append(cells.first, len(x))
    for at, (begin, end) in enumerate(pairwise(bounds)):
        own = g[begin:end].astype(np.longdouble)
        assert_allclose(x_mean[at], x[begin:end].mean(), rtol=1e-12)
        assert_allclose(mean[at], float(own.mean()), rtol=1e-12, atol=1e-14)
        expected = float(np.sum((own - own.mean()) ** 2))
        assert_allclose(m2[at], expected, rtol=1e-12, atol=1e-24)


def test_an_offset_costs_no_digits(rng):
    x, g = np.sort(rng.uniform(size=N)), rng.integers(-1000, 1000, N) / 8
    _, cells = cells_of(x)
    _, mean, m2 = Pieces(x, g).moments(cells.first)
    _, moved, moved_m2 = Pieces(x, 2.0**27 + g).moments(cells.first)
    assert_allclose(moved - 2.0**27, mean, atol=2.0**-25)
    assert_allclose(moved_m2, m2, rtol=1e-14)


def test_equal_local_effects_have_no_spread(rng):
    x = np.sort(rng.uniform(size=N))
    _, cells = cells_of(x)
    _, mean, m2 = Pieces(x, np.full(N, 1.7)).moments(cells.first)
    assert_array_equal(mean, 1.7)
    assert_array_equal(m2, 0.0)


def test_cut_pieces_begin_where_asked_and_have_the_sums_of_their_rows(columns, rng):
    x, g = columns
    pieces = Pieces(x, g)
    rows = np.unique(np.append(0, rng.integers(0, len(x), 300)))
    for _ in range(2):
        place = pieces.cut(rows)
        assert_array_equal(pieces.first[place], rows)
        assert (np.diff(pieces.first) > 0).all()
        assert np.diff(pieces.first, append=len(x)).max() <= PIECE_ROWS
    own = Stretches.of(pieces.first, len(x))
    expected = by_loop(own, x, g, pieces.x_at, pieces.g_at, np.zeros(len(own.first)), POWERS)
    scale = np.abs(expected).max(axis=1, keepdims=True)
    assert (np.abs(pieces.sums - expected) <= 1e-12 * scale).all()


def test_a_line_that_leaves_nothing_is_left_to_the_rows(rng):
    x = np.sort(rng.uniform(size=N))
    _, cells = cells_of(x)
    at = x[cells.first]
    slope = np.full(cells.n_groups, 3.0)
    assert Pieces(x, 3 * x + 2).about(cells.first, at, 3 * at + 2, slope, OF_LINES) is None


def test_functions_of_sorted_rows_agree_with_pieces_and_without(columns, rng):
    x, g = columns
    edges, cells = cells_of(x)
    axis = moments.bh.axis.Variable(edges)
    pieces = Pieces(x, g)
    divided = cells._replace(pieces=pieces)
    found, expected = (
        moments.cell_moments(axis, x, g, None, frequency=False, of_row=place)
        for place in (divided, cells)
    )
    for one, other in zip(found, expected, strict=True):
        assert_allclose(one, other, rtol=1e-10, atol=1e-14)
    slope = rng.normal(size=len(edges) - 1) / (x[-1] - x[0])
    bins = np.arange(len(edges) - 1)
    both = (
        moments.line_sums(
            axis, bins, expected, slope, moments.Located(x, g, None, place), LINE_POWERS
        )
        for place in (divided, cells)
    )
    for one, other, (i, j) in zip(*both, LINE_POWERS, strict=True):
        # Values that are equal in a cell have distances of rounding.
        scale = len(x) * (x[-1] - x[0]) ** i * np.std(g) ** j
        assert_allclose(one, other, rtol=1e-10, atol=1e-14 * scale)
    few = expected.n_obs < 3
    left = np.where(few, 0.0, 1 - 1 / np.maximum(expected.n_obs, 2))
    for tilt in (slope, 0 * slope):
        of_rows, of_pieces = (
            spread.residuals(
                moments.bh.axis.Variable(np.linspace(x[0], x[-1], 101)),
                spread.Means(place, expected.mean, expected.x_mean, tilt, left),
                x,
                g,
                None,
                frequency=False,
            )
            for place in (cells, divided)
        )
        for one, other in zip(of_pieces, of_rows, strict=True):
            assert_allclose(one, other, rtol=1e-9, atol=1e-12 * np.abs(other).max())
