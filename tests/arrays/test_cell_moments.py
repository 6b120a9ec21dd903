"""Moments in cells against long double and pandas; their sums, shears and unions."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rhale_stats.arrays import moments as sums
from rhale_stats.arrays.binning import BLOCK_ROWS
from rhale_stats.arrays.cell_moments import (
    FIELDS,
    HEADS,
    POWERS,
    CellMoments,
    Line,
    RowMoments,
    merged,
    merged_rows,
    residual_moments,
)
from rhale_stats.arrays.moments import n_effective, variance
from tests.arrays.made import in_cells, rows_in_cells

EPS = np.finfo(float).eps
KINDS = ("none", "frequency", "precision")
EDGES = np.array([0.0, 0.1, 0.15, 0.4, 0.8, 1.0])


def weights(rng, n, kind):
    """Weights of one kind, and whether they count rows."""
    return {
        "none": (None, False),
        "frequency": (rng.integers(1, 5, n).astype(float), True),
        "precision": (rng.gamma(1, size=n) + 0.01, False),
    }[kind]


def rows(rng, n=500):
    """Rows on [0, 1] with both ends and an interior edge taken, and skewed local effects."""
    x = np.concatenate([rng.uniform(size=n - 4), [0.0, 1.0, 1.0, 0.4]])
    return x, rng.standard_gamma(2.0, size=n) - 1


def cell_of(x, edges=EDGES):
    """Left-closed cells, the last closed on both sides (math [4])."""
    return np.clip(np.searchsorted(edges, x, side="right") - 1, 0, len(edges) - 2)


def check(found, cell, x, g, w, slope=None, offset=0.0):
    """Every field against sums in long double, by the size of their terms."""
    n_cells = found.table.shape[1]
    for k in range(n_cells):
        here = cell == k
        if not here.any():
            assert not found.table[:, k].any()
            continue
        own_x, own_g, own = (part[here].astype(np.longdouble) for part in (x, g, w))
        if slope is not None:
            own_g = own_g - np.longdouble(slope[k]) * own_x
        total = own.sum()
        x_mean, mean = (own * own_x).sum() / total, (own * own_g).sum() / total
        d, r = own_x - x_mean, own_g - mean
        # An offset is known to its last digit only, and so is what is left beside it.
        known = [
            1e-11 + 1e3 * EPS * max(1.0, offset) / max(float(np.sqrt(np.mean(e**2))), 1e-300)
            for e in (d, r)
        ]
        for p, q in POWERS:
            terms = own * d**p * r**q
            size = float(np.abs(terms).sum())
            if size < 1e-20 * float(total):
                continue
            rtol = (known[0] if p else 0) + (known[1] if q else 0)
            assert abs(float(found.product(p, q)[k] - terms.sum())) <= rtol * size, (p, q)
        assert abs(float(found.x_mean[k] - x_mean)) <= 8 * EPS * max(1.0, offset)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(12))
def test_all_fields_against_long_double(kind, seed):
    """Random cells, ties and offsets to 1e6: of rows, of chunks of them, of bins, beside lines."""
    rng = np.random.default_rng(seed)
    n, offset = int(rng.integers(3, 400)), float(rng.choice([0, 1, 1e3, 1e6]))
    x = np.round(rng.normal(size=n), int(rng.integers(1, 6))) + offset
    g = rng.standard_t(3, n) + float(rng.choice([0, 1e3, 1e6]))
    weight, frequency = weights(rng, n, kind)
    w = np.ones(n) if weight is None else weight
    inner = rng.uniform(x.min(), x.max(), 10)
    edges = np.unique(np.concatenate([[x.min()], inner, [x.max() + 1e-3]]))
    cell, far = cell_of(x, edges), max(offset, float(np.abs(g).max()))
    whole = in_cells(edges, x, g, weight, frequency=frequency)
    check(whole, cell, x, g, w, offset=far)
    chunk = rng.integers(0, 3, n)
    parts = [
        in_cells(edges, x[some], g[some], None if weight is None else weight[some],
                 frequency=frequency)
        for some in (chunk == number for number in range(3)) if some.any()
    ]  # fmt: skip
    check(merged(parts), cell, x, g, w, offset=far)
    starts = np.unique(np.append(0, rng.integers(0, len(edges) - 1, 4)))
    bin_of = np.searchsorted(starts, cell, side="right") - 1
    check(whole.pooled(starts), bin_of, x, g, w, offset=far)
    slope = rng.normal(size=len(starts))
    tilt = np.repeat(slope, np.diff(starts, append=len(edges) - 1))
    lines = whole.sheared(tilt).pooled(starts)
    check(lines, bin_of, x, g, w, slope, offset=far * (1 + np.abs(slope).max()))
    pooled = whole.pooled(starts)
    for one, other in zip(pooled.table[:3], lines.table[:3], strict=True):
        assert_array_equal(one, other)


def test_toy_by_hand():
    found = in_cells([0.0, 1.0, 2.0], np.array([0.0, 0.5, 1.0, 2.0]), np.array([1.0, 3, 5, 9]))
    # [0, 1) holds 1 and 3; [1, 2] holds 5 and, closed on the right, 9.
    means = found.means()
    assert_array_equal(means.n_obs, [2, 2])
    assert_array_equal(means.mean, [2, 7])
    assert_array_equal(means.m2, [2, 8])
    assert_array_equal(means.x_mean, [0.25, 1.5])
    assert_array_equal(variance(means, 1), [2, 8])
    assert_array_equal(found.product(1, 1), [0.5, 2])
    assert_array_equal(found.product(0, 4), [2, 32])


def test_agrees_with_pandas(rng):
    x, g = rows(rng, 3000)
    found = in_cells(EDGES, x, g).means()
    table = pd.DataFrame({"x": x, "g": g}).groupby(cell_of(x))
    assert_array_equal(found.n_obs, table.size())
    assert_allclose(found.mean, table["g"].mean(), rtol=1e-12)
    assert_allclose(found.x_mean, table["x"].mean(), rtol=1e-12)
    for ddof in (0, 1):
        assert_allclose(variance(found, ddof), table["g"].var(ddof=ddof), rtol=1e-12)


def test_precision_weights_agree_with_numpy(rng):
    x, g = rows(rng)
    weight = rng.uniform(0.1, 3, len(x))
    found = in_cells(EDGES, x, g, weight).means()
    for k in range(len(EDGES) - 1):
        here = cell_of(x) == k
        w = weight[here]
        assert_allclose(n_effective(found)[k], w.sum() ** 2 / (w**2).sum(), rtol=1e-12)
        # numpy.cov divides by sum w - ddof sum w^2 / sum w, which is math [6].
        assert_allclose(variance(found, 1)[k], np.cov(g[here], aweights=w, ddof=1), rtol=1e-12)


def test_frequency_weights_are_repeated_rows(rng):
    x, g = rows(rng)
    count = rng.integers(1, 6, len(x))
    weighted = in_cells(EDGES, x, g, count, frequency=True)
    repeated = in_cells(EDGES, np.repeat(x, count), np.repeat(g, count))
    assert_allclose(weighted.table, repeated.table, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_equal_effects_have_no_spread(rng, kind):
    x, g = rng.uniform(size=200), np.full(200, 0.1)
    weight, frequency = weights(rng, 200, kind)
    found = in_cells(EDGES, x, g, weight, frequency=frequency)
    assert_array_equal(found.mean, 0.1)
    assert not any(found.product(p, q).any() for p, q in POWERS if q)


def test_many_blocks_and_an_offset_of_a_time_stamp(rng):
    n = 2 * BLOCK_ROWS + 77
    x, g = 1.7e9 + rng.uniform(size=n) * 100, rng.normal(size=n)
    edges = np.linspace(x.min(), x.max(), 6)
    found = in_cells(edges, x, g)
    expected = pd.Series(x - 1.7e9).groupby(cell_of(x, edges)).mean()
    assert_allclose(found.x_mean - 1.7e9, expected, rtol=0, atol=4 * np.spacing(1.7e9))
    assert_allclose(found.n_obs, np.bincount(cell_of(x, edges)))
    assert_allclose(found.product(0, 2).sum(), n, rtol=0.02)


def test_cells_without_rows_and_with_one():
    found = in_cells(np.arange(4.0), np.array([0.5, 2.2, 2.8]), np.array([7.0, 1, 3]))
    means = found.means()
    assert_array_equal(means.mean, [7, np.nan, 2])
    assert_array_equal(means.m2, [0, 0, 2])
    assert_array_equal(variance(means, 1), [np.nan, np.nan, 2])
    whole = found.pooled(np.array([0]))
    assert_allclose(whole.product(0, 2), np.sum((np.array([7, 1, 3]) - 11 / 3) ** 2))


def test_pooling_is_associative(rng):
    found = in_cells(np.linspace(0, 1, 201), *rows(rng, 150), weight=rng.uniform(0.1, 2, 150))
    assert (found.n_obs == 0).any()
    for _ in range(20):
        inner = np.union1d([0], rng.choice(200, rng.integers(1, 150), replace=False))
        outer = np.union1d([0], rng.choice(len(inner), rng.integers(1, len(inner) + 1)))
        one, other = found.pooled(inner).pooled(outer), found.pooled(inner[outer])
        assert_allclose(one.table, other.table, rtol=1e-9, atol=1e-11)


def test_a_line_that_fits_leaves_nothing(rng):
    """An exact line leaves 0, not the rounding of its squares; a noise of a millionth stays."""
    x = rng.uniform(size=400)
    found = in_cells(EDGES, x, 3 + 9 * x).sheared(np.full(5, 9.0))
    assert not any(found.product(p, q).any() for p, q in POWERS if q)
    noise = 1e-6 * rng.normal(size=400)
    found = in_cells(EDGES, x, 9 * x + noise).sheared(np.full(5, 9.0))
    expected = pd.Series(noise).groupby(cell_of(x)).var(ddof=0) * found.n_obs
    assert_allclose(found.product(0, 2), expected, rtol=1e-3)


def test_sums_about_any_line_row_by_row(rng):
    x, g = rows(rng)
    line = Line(rng.uniform(size=5), rng.normal(size=5), rng.normal(size=5))
    powers = ((0, 1), (1, 0), (1, 2), (0, 2), (2, 2), (0, 3))
    found = line.sums(in_cells(EDGES, x, g), powers)
    k = cell_of(x)
    d = x - line.x[k]
    r = g - line.mean[k] - line.slope[k] * d
    for values, (p, q) in zip(found, powers, strict=True):
        assert_allclose(values, np.bincount(k, d**p * r**q), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("lines", [False, True])
def test_residual_moments_row_by_row(rng, lines):
    x, g = rows(rng)
    found, starts = in_cells(EDGES, x, g), np.array([0, 2])
    slope = np.array([1.5, -3.0]) if lines else None
    moments = residual_moments(found, starts, slope)
    assert (moments.line is not None) == lines
    k = np.searchsorted(starts, cell_of(x), side="right") - 1
    for number in range(2):
        d = x[k == number] - x[k == number].mean()
        r = g[k == number] - g[k == number].mean() - (slope[number] * d if lines else 0)
        assert_allclose(moments.second_moment[number], np.mean(r**2))
        assert_allclose(moments.third_moment[number], np.mean(r**3), rtol=1e-9)
        assert_allclose(moments.fourth_moment[number], np.mean(r**4))
        assert_allclose(moments.x_variance[number], np.mean(d**2))
        assert_allclose(moments.x_covariance[number], np.mean(d * r), rtol=1e-9, atol=1e-14)
        for value, (p, q) in zip(moments.line[number] if lines else (), sums.LINE_POWERS,
                                 strict=lines):  # fmt: skip
            assert_allclose(value, np.mean(d**p * r**q), rtol=1e-9, atol=1e-13)


def test_moments_of_known_products():
    heads = np.array([3.0, 0]), np.array([3.0, 0]), np.array([3.0, 0]), np.ones(2), np.ones(2)
    found = CellMoments.of_products(heads, {(0, 2): np.array([5.0, np.nan])})
    assert found.table.shape == (len(FIELDS), 2)
    assert_array_equal(found.product(0, 2), [5, 0])
    assert_array_equal(found.product(0, 4), [0, 0])
    assert_array_equal(found.table[: len(HEADS), 1], 0)


# --- precision weights ---------------------------------------------------------------------------


@pytest.mark.parametrize("lines", [False, True])
def test_moments_by_squared_weights_bin_by_bin(rng, lines):
    x, g = rows(rng, 300)
    w, starts = rng.uniform(0.5, 2.0, 300), np.array([0, 2, 3])
    found = rows_in_cells(EDGES, x, g, w)
    bins = found.cells.pooled(starts).means()
    slope = np.array([1.5, 0.0, -2.0]) if lines else None
    made = sums.squares_of(found.square_sums(starts, bins, slope), bins, slope)
    at = np.searchsorted(starts, cell_of(x), side="right") - 1
    for k in range(3):
        own = w[at == k]
        d = x[at == k] - np.average(x[at == k], weights=own)
        r = g[at == k] - np.average(g[at == k], weights=own)
        r = r - (slope[k] * d if lines else 0)
        share = own / own.sum()
        n = 1 / np.sum(share**2)
        is_line = lines and slope[k] != 0
        used = range(len(sums.SQUARE_POWERS)) if is_line else sums.OF_CONSTANT
        for number in used:
            p, q = sums.SQUARE_POWERS[number]
            expected = np.average(d**p * r**q, weights=own**2)
            assert_allclose(made.moments[k, number], expected, rtol=1e-9, atol=1e-13)
        others = np.setdiff1d(np.arange(len(sums.SQUARE_POWERS)), used)
        assert not made.moments[k, others].any()
        # What the mean takes of squares and of cubes of independent errors, row by row.
        square = share**2 @ (1 - 2 * share + share @ share) / (share @ share)
        factor = 1 / square * ((n - 1) / (n - 2) if lines and slope[k] else 1)
        assert_allclose(made.factor[k], factor, rtol=1e-12)
        assert_allclose(made.rows[k], np.sum(own**2) ** 2 / np.sum(own**4), rtol=1e-12)
        cube = share**3 @ ((1 - share) ** 3 + share**3 - np.sum(share**3)) / np.sum(share**3)
        assert_allclose(made.third[k], n**2 * np.sum((share * r) ** 3) / cube, rtol=1e-9)
    # Of chunks of the rows they are the same.
    parts = [
        rows_in_cells(EDGES, x[some], g[some], w[some]) for some in (slice(99), slice(99, 300))
    ]
    again = merged_rows(parts).square_sums(starts, bins, slope)
    for one, other in zip(again, found.square_sums(starts, bins, slope), strict=True):
        assert_allclose(one, other, rtol=1e-10, atol=1e-12)
    pooled = found.pooled(starts)
    for one, other in zip(
        pooled.square_sums(np.arange(3), bins, None), found.square_sums(starts, bins, None),
        strict=True,
    ):  # fmt: skip
        assert_allclose(one, other, rtol=1e-10, atol=1e-12)


def test_sums_by_squared_weights_about_other_means(rng):
    x, g, w = rng.uniform(0, 1, 50), rng.gamma(1, size=50), rng.uniform(0.1, 1, 50)
    found = rows_in_cells([0.0, 0.4, 1.0], x, g, w)
    bins = found.cells.means()
    made = sums.squares_of(found.square_sums(np.arange(2), bins, None), bins)
    g_by, x_by = np.array([0.3, -2.0]), np.array([-0.1, 0.7])
    moved = sums.moved_squares(made.moments, made.products, g_by, x_by)
    for k, there in enumerate((x < 0.4, x >= 0.4)):
        own, d, r = w[there], x[there] - bins.x_mean[k] + x_by[k], g[there] - bins.mean[k] + g_by[k]
        powers = ((1, 0), (2, 0), (0, 1), (1, 1), (0, 2), (0, 4), (0, 3))
        expected = [np.sum(own**2 * d**i * r**j) for i, j in powers]
        assert_allclose(moved.by_square[:, k], expected, rtol=1e-10)
        expected = [np.sum(own**3 * r**j) for j in range(4)]
        assert_allclose(moved.by_cube[:, k], expected, rtol=1e-10)
        expected = [np.sum(own**i * (g[there] - bins.mean[k]) ** j) for i, j in sums.WEIGHT_POWERS]
        assert_allclose(made.products[k], expected, rtol=1e-10, atol=1e-12)


def test_weights_that_are_alike_need_no_squares(rng):
    x, g = rows(rng)
    order = np.argsort(x)
    columns = EDGES, x[order], g[order]
    for weight, frequency in ((None, False), (np.full(500, 2.0), True)):
        found = RowMoments.of_rows(*columns, weight, frequency=frequency, unequal=False)
        assert found.squares is None
        assert found.by_squares is found.cells
        assert merged_rows([found, found]).squares is None
