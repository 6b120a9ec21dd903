"""Fine cells of an axis: where their edges lie, what is estimated in them, against brute force."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from rhale_stats.arrays import cells as kernel
from rhale_stats.arrays import moments as sums
from rhale_stats.arrays.cell_moments import CellMoments
from rhale_stats.arrays.pooled_variance import (
    MIN_OWN_ROWS,
    POOLED_DEGREES,
    VarianceSources,
    robust_with_neighbours,
    with_neighbours,
)
from tests.arrays.made import in_cells, rows_in_cells
from tests.helpers import in_turn


class Made(NamedTuple):
    moments: CellMoments
    means: sums.Moments
    n_effective: np.ndarray
    variance: np.ndarray
    degrees: np.ndarray


def moments_in(edges, x, g, w):
    """The cells of a curve, from the rows, their variances and the degrees of errors."""
    rows = None if w is None else rows_in_cells(edges, x, g, w)
    cells = in_cells(edges, x, g) if rows is None else rows.cells
    means = cells.means()
    n = sums.n_effective(means)
    pooled = with_neighbours(n[None], means.mean[None], sums.variance(means, 1)[None])
    variance, degrees = (values[0] for values in pooled)
    if rows is not None:
        squares = sums.squares_of(rows.square_sums(np.arange(len(edges) - 1), means, None), means)
        degrees = robust_with_neighbours(means, squares)[1]
    return Made(cells, means, n, variance, degrees)


KINDS = {
    "even": lambda rng, n: rng.uniform(-1, 2, n),
    "crowded": lambda rng, n: rng.beta(4, 1, n),
    "rounded": lambda rng, n: np.round(rng.normal(size=n), 1),
    "point mass": lambda rng, n: np.where(rng.random(n) < 0.4, 0.3, rng.uniform(-1, 1, n)),
    "gap": lambda rng, n: np.where(rng.random(n) < 0.5, 5.0, 0.0) + rng.uniform(size=n),
}
SEEDS = st.integers(0, 2**32 - 1)


def drawn(kind, seed, n=300):
    """Values, the edges of four bins that hold them, and a number of cells."""
    rng = np.random.default_rng(seed)
    x = KINDS[kind](rng, n)
    inner = np.sort(rng.uniform(x.min(), x.max(), 3))
    return x, np.concatenate([[x.min()], inner, [x.max()]]), float(rng.integers(1, 40))


def counted(x, edges):
    """Rows of every cell, closed on the left, the last one on both sides."""
    return np.histogram(x, edges)[0]


@pytest.mark.thorough
@pytest.mark.parametrize("kind", KINDS)
@given(seed=SEEDS)
@settings(max_examples=30, deadline=None)
def test_cells_nest_in_bins_and_none_but_gaps_are_empty(kind, seed):
    x, bins, n_cells = drawn(kind, seed)
    edges = kernel.nested_edges(x, None, bins, n_cells)
    assert (np.diff(edges) > 0).all()
    assert set(bins) <= set(edges)
    gap = kernel.gap_edges(np.sort(x))
    known = np.union1d(bins, gap)
    stretch = np.searchsorted(known, edges[:-1], side="right")
    rows = counted(x, edges)
    assert rows.sum() == len(x)
    # A stretch between edges of bins and gaps is one cell where it has no rows.
    for number in np.unique(stretch):
        own = rows[stretch == number]
        assert (own > 0).all() or len(own) == 1
    # The edges between them stand midway between neighbouring values.
    own = np.setdiff1d(edges, known)
    places = np.unique(x)
    after = np.searchsorted(places, own)
    assert_allclose(own, (places[after - 1] + places[after]) / 2, rtol=1e-14, atol=1e-15)
    assert not set(own) & set(places)  # equal values are never torn apart


def test_cells_hold_equal_numbers_of_rows():
    x = np.random.default_rng(0).permutation(np.linspace(0, 1, 1000) ** 1.2)
    edges = kernel.nested_edges(x, None, np.array([0.0, 1.0]), 40)
    assert_array_equal(counted(x, edges), np.full(40, 25))


def test_where_rows_are_sparse_cells_are_narrow_and_have_fewer():
    x = np.linspace(0, 1, 1000) ** 5
    edges = kernel.nested_edges(x, None, np.array([0.0, 1.0]), 10)
    rows, width = counted(x, edges), np.diff(edges)
    assert len(rows) > 10
    assert rows.max() == 100
    low, high = np.quantile(x, [0.01, 0.99], method="inverted_cdf")
    widest = kernel.MAX_WIDTH * (high - low) * (1 + 1e-7)
    assert ((width <= widest) | (rows < 2 * kernel.MIN_ROWS)).all()
    # Halves of halves of what was asked for.
    assert set(rows) <= {100, 50, 25, 13, 12, 7, 6, 5, 4, 3}


def test_bins_share_the_cells_by_their_rows():
    x = np.linspace(0, 1, 1000)
    edges = kernel.nested_edges(x, None, np.array([0, 0.0999, 0.8, 1.0]), 40)
    held = np.histogram(edges[:-1], [0, 0.0999, 0.8, 1.0])[0]
    assert_array_equal(held, [4, 28, 8])


def test_a_bin_of_few_rows_is_one_cell():
    x = np.append(np.linspace(0, 1, 500), [1.05, 1.1])
    bins = np.array([0, 1.02, 1.1])
    edges = kernel.nested_edges(x, None, bins, 10)
    assert (edges[:-1] >= 1.02).sum() == 1


@pytest.mark.parametrize("kind", KINDS)
@given(seed=SEEDS, c=st.sampled_from([0.25, 1024.0]), d=st.sampled_from([0.0, 3.0]))
@settings(max_examples=20, deadline=None)
def test_order_scale_and_repetition(kind, seed, c, d):
    x, bins, n_cells = drawn(kind, seed)
    rng = np.random.default_rng(seed + 1)
    edges = kernel.nested_edges(x, None, bins, n_cells)
    assert_array_equal(kernel.nested_edges(rng.permutation(x), None, bins, n_cells), edges)
    # An end of a gap is next to a row, one unit in the last place above it.
    moved = kernel.nested_edges(c * x + d, None, c * bins + d, n_cells)
    assert_allclose(moved, c * edges + d, rtol=1e-13, atol=1e-13 * c)
    counts = rng.integers(1, 4, len(x))
    repeated = kernel.nested_edges(np.repeat(x, counts), None, bins, n_cells)
    weighted = kernel.nested_edges(x, counts.astype(float), bins, n_cells, frequency=True)
    assert_array_equal(weighted, repeated)
    # Weights that count no rows matter by their ratios.
    one, *others = (kernel.nested_edges(x, c * counts, bins, n_cells) for c in (1.0, 8.0, 2.0**-30))
    for other in others:
        assert_array_equal(one, other)


# --- gaps ----------------------------------------------------------------------------------------


def test_a_gap_ends_beside_its_rows():
    rng = np.random.default_rng(1)
    left, right = np.sort(rng.uniform(0, 1, 100)), np.sort(rng.uniform(4, 5, 100))
    x = np.append(left, right)
    assert_array_equal(kernel.gap_edges(x), [np.nextafter(left[-1], 9), right[0]])
    # It is wide beside the other rows, wherever on the axis they are.
    assert_array_equal(
        kernel.gap_edges(x + 512), [np.nextafter(left[-1] + 512, 999), right[0] + 512]
    )
    edges = kernel.nested_edges(x, None, np.array([x[0], 2.0, x[-1]]), 20)
    rows = counted(x, edges)
    assert rows.sum() == 200
    # An edge of a bin inside of it makes two cells of the gap.
    empty = np.flatnonzero(rows == 0)
    assert len(empty) == 2
    assert_allclose(edges[empty], [left[-1], 2.0])
    assert_allclose(edges[empty + 1], [2.0, right[0]])


@pytest.mark.parametrize("n", [30, 300, 3000])
def test_even_rows_and_equal_steps_have_no_gap(n):
    rng = np.random.default_rng(n)
    assert not any(len(kernel.gap_edges(np.sort(rng.uniform(size=n)))) for _ in range(200))
    assert len(kernel.gap_edges(np.sort(rng.integers(0, 12, n).astype(float)))) == 0


def test_few_places_have_no_gap():
    """Nothing is known of the usual distance."""
    assert len(kernel.gap_edges(np.repeat([0.0, 1, 2, 3, 100], 50))) == 0


# --- moments -------------------------------------------------------------------------------------


def brute_force(x, g, w, edges):
    """Rows, mean, unbiased variance and mean place of every cell, by pandas."""
    table = pd.DataFrame({"x": x, "g": g, "w": w})
    k = np.minimum(np.searchsorted(edges, x, side="right") - 1, len(edges) - 2)
    found = []
    for cell in range(len(edges) - 1):
        rows = table[k == cell]
        weight = rows["w"].sum()
        if not len(rows):
            found.append((0, np.nan, np.nan, np.nan))
            continue
        mean = (rows["w"] * rows["g"]).sum() / weight
        n = weight**2 / (rows["w"] ** 2).sum()
        spread = (rows["w"] * (rows["g"] - mean) ** 2).sum() / weight
        variance = spread * n / (n - 1) if n > 1 + 1e-9 else np.nan
        found.append((n, mean, variance, (rows["w"] * rows["x"]).sum() / weight))
    return tuple(np.array(found).T)


@pytest.mark.parametrize("weights", [None, "precision"])
@pytest.mark.parametrize("kind", KINDS)
def test_moments_of_cells(kind, weights):
    x, bins, _ = drawn(kind, 5)
    rng = np.random.default_rng(6)
    g = rng.normal(size=len(x))
    w = None if weights is None else rng.uniform(0.5, 2, len(x))
    edges = kernel.nested_edges(x, w, bins, 12)
    cells = moments_in(edges, x, g, w)
    n, mean, variance, x_mean = brute_force(x, g, np.ones(len(x)) if w is None else w, edges)
    assert_allclose(cells.n_effective, n, rtol=1e-12)
    assert_allclose(cells.means.mean, mean, rtol=1e-10, atol=1e-14)
    assert_allclose(cells.means.x_mean, x_mean, rtol=1e-10, atol=1e-14)
    many = n >= MIN_OWN_ROWS
    assert_allclose(cells.variance[many], variance[many], rtol=1e-10)
    k = np.minimum(np.searchsorted(edges, x, side="right") - 1, len(edges) - 2)
    # Squares of precision weights have fewer degrees of freedom than the effective rows.
    squares = np.ones(len(x)) if w is None else w**2
    rows = np.bincount(k, squares) ** 2 / np.maximum(np.bincount(k, squares**2), 1e-300)
    assert_allclose(cells.degrees[many], rows[many] - 1, rtol=1e-10)


def variance_with_neighbours(cells, cell):
    """By hand: as many neighbours on both sides as give degrees of freedom enough."""
    there = np.flatnonzero(cells.n_obs > 0)
    at = int(np.flatnonzero(there == cell)[0])
    for reach in range(1, len(there) + 1):
        near = there[max(at - reach, 0) : at + reach + 1]
        squares, degrees = 0.0, 0.0
        for one in near:
            n, own = cells.rows[one], cells.own[one]
            if n > 1:
                squares, degrees = squares + (n - 1) * own, degrees + n - 1
        for a, b in pairwise(near):
            apart = (cells.mean[a] - cells.mean[b]) ** 2
            squares += 2 / 3 * apart / (1 / cells.rows[a] + 1 / cells.rows[b])
            degrees += 2 / 3
        if degrees >= POOLED_DEGREES - 1e-6 or len(near) == len(there):
            return squares / degrees, degrees
    raise AssertionError


class Drawn(NamedTuple):
    n_obs: np.ndarray
    rows: np.ndarray
    own: np.ndarray
    mean: np.ndarray


@pytest.mark.parametrize(("kind", "n_cells"), in_turn(KINDS, [12, 60, 200]))
def test_cells_of_few_rows_take_their_variance_with_neighbours(kind, n_cells):
    x, bins, _ = drawn(kind, 7)
    g = np.random.default_rng(8).normal(size=len(x))
    edges = kernel.nested_edges(x, None, bins, n_cells)
    cells = moments_in(edges, x, g, None)
    n, mean, own, _ = brute_force(x, g, np.ones(len(x)), edges)
    by_hand = Drawn(counted(x, edges), n, own, mean)
    few = np.flatnonzero((n > 0) & (n < MIN_OWN_ROWS))
    assert n_cells < 60 or len(few)
    for cell in few:
        variance, degrees = variance_with_neighbours(by_hand, cell)
        assert_allclose(cells.variance[cell], variance, rtol=1e-9)
        assert_allclose(cells.degrees[cell], degrees, rtol=1e-9)


def test_single_rows_know_their_spread_from_each_other():
    """sigma 2, one row a cell: nothing within cells, all between them."""
    rng = np.random.default_rng(9)
    x = np.arange(4000.0)
    edges = np.append(x - 0.5, 3999.5)
    cells = moments_in(edges, x, rng.normal(0, 2, 4000), None)
    # Some 4000 / 10 independent stretches of 12 degrees: the error of the mean is 2 %.
    assert_allclose(cells.variance.mean(), 4, rtol=0.08)
    assert (cells.degrees >= POOLED_DEGREES - 1e-6).all()
    alone = moments_in(edges[:2], x[:1], np.ones(1), None)
    assert np.isnan(alone.variance).all()
    assert_array_equal(alone.degrees, [0])


# --- averages along bins -------------------------------------------------------------------------


def test_averages_along_bins_by_hand():
    width, rows = np.array([1.0, 3.0, 2.0, 5.0, 1.0]), np.array([9, 1, 0, 4, 0])
    bin_of = np.array([0, 0, 1, 1, 2])
    weight = kernel.along_axis(width, rows, bin_of)
    assert_allclose(weight, [1 / 4, 3 / 4, 0, 1, 0])
    mean = np.array([[4.0, 8.0, np.nan, 3.0, np.nan], [0.0, 4.0, np.nan, 1.0, np.nan]])
    assert_allclose(kernel.effects(mean, weight, bin_of), [[7, 3, np.nan], [3, 1, np.nan]])


def sources_of(n_effective):
    """Weights of the cells of one feature, and degrees: within its cells with rows, and between."""
    sources = VarianceSources.of_neighbours(np.array([n_effective], dtype=float))
    n_cells, n_rows = len(n_effective), np.count_nonzero(n_effective)
    some = np.append(np.arange(n_rows), n_cells + np.arange(n_rows - 1))
    return sources.matrix().toarray()[:, some], sources.degrees[some]


def test_sources_of_variances_by_hand():
    """Cells of 20, 0, 3, 4, 30 rows: small ones with neighbours, to 12 degrees at least."""
    weights, degrees = sources_of([20.0, 0, 3, 4, 30])
    # Within the four cells with rows, and between neighbours.
    assert_allclose(degrees, [19, 2, 3, 29, 2 / 3, 2 / 3, 2 / 3])
    expected = np.zeros((5, 7))
    expected[0, 0] = expected[4, 3] = 1
    expected[2] = np.array([19, 2, 3, 0, 2 / 3, 2 / 3, 0]) / (24 + 4 / 3)
    expected[3] = np.array([0, 2, 3, 29, 0, 2 / 3, 2 / 3]) / (34 + 4 / 3)
    assert_allclose(weights, expected)
    # One cell alone, one row alone, and two cells of one row.
    assert_allclose(sources_of([0.0, 5])[0], [[0], [1]])
    alone, none = sources_of([1.0])
    assert_allclose([alone[0, 0], none[0]], [0, 0])
    two, degrees = sources_of([1.0, 1.0])
    assert_allclose(two, [[0, 0, 1], [0, 0, 1]])
    assert_allclose(degrees, [0, 0, 2 / 3])


@pytest.mark.thorough
@pytest.mark.parametrize("n_cells", [12, 60, 200])
def test_variances_are_means_over_their_sources(n_cells):
    x, bins, _ = drawn("gap", 7)
    g = np.random.default_rng(8).normal(size=len(x))
    edges = kernel.nested_edges(x, None, bins, n_cells)
    cells = moments_in(edges, x, g, None)
    weights, degrees = sources_of(cells.n_effective)
    n, mean, own, _ = brute_force(x, g, np.ones(len(x)), edges)
    there = n > 0
    between = np.diff(mean[there]) ** 2 / (1 / n[there][1:] + 1 / n[there][:-1])
    sources = np.append(np.nan_to_num(own[there]), between)
    known = cells.degrees > 0
    assert_allclose((weights @ sources)[known], cells.variance[known], rtol=1e-9)
    # The degrees of a sum of independent parts.
    each = np.divide(1, degrees, out=np.zeros(len(degrees)), where=degrees > 0)
    squares = (weights**2 @ each)[known]
    assert_allclose(1 / squares, cells.degrees[known], rtol=1e-9)


def test_gaps_by_hand():
    """Places 0 to 20 in steps of 1 and 21 more behind a gap of more than 10 + 100 / 21 steps."""

    def gaps(apart, behind=21):
        x = np.append(np.arange(21.0), 20 + apart + np.arange(behind))
        return kernel.gap_edges(x), x

    found, x = gaps(14.8)
    assert_array_equal(found, [np.nextafter(20, 99), 34.8])
    assert len(gaps(14.7)[0]) == 0
    # Repeated rows change nothing.
    assert_array_equal(kernel.gap_edges(np.repeat(x, 3)), found)
    assert_array_equal(kernel.gap_edges(np.repeat(x, np.arange(42) % 3 + 1)), found)
    # Four distances on a side say nothing of the usual one: 3 (10 + 100 / 5) of the other side are
    # needed. Five do: 10 + 100 / 6 of theirs.
    for n_left, expected in ((5, 0), (6, 2)):
        x = np.append(3.0 * np.arange(n_left), 3 * n_left + 84 + np.arange(60))
        assert len(kernel.gap_edges(x)) == len(kernel.gap_edges(-x[::-1])) == expected
    # The larger of both usual distances counts.
    x = np.append(np.arange(21.0), 20 + 29 + 2 * np.arange(21))
    assert len(kernel.gap_edges(x)) == 0
    x = np.append(np.arange(21.0), 20 + 30 + 2 * np.arange(21))
    assert_array_equal(kernel.gap_edges(x), [np.nextafter(20, 99), 50])


@pytest.mark.parametrize("n", [40, 300])
@pytest.mark.parametrize("tail", ["lognormal", "exponential", "normal"])
def test_tails_have_no_gap_and_distant_groups_have_one(rng, n, tail):
    """200 samples; two groups of normal rows, 12 standard deviations apart, were one in 8 %."""
    draw = getattr(rng, tail)
    assert not any(len(kernel.gap_edges(np.sort(draw(size=n)))) for _ in range(200))
    n_missed = 0
    for _ in range(200):
        x = np.sort(np.append(rng.normal(size=n // 2), 12 + rng.normal(size=n // 2)))
        n_missed += x[n // 2] not in kernel.gap_edges(x)
    assert n_missed <= 2


def test_few_rows_beyond_a_gap_are_a_tail():
    """Of 1,000 rows with 19 or 20 behind a gap; far away fewer suffice. Weights count as rows."""

    def gaps(behind, apart, weight=None):
        x = np.append(np.linspace(0, 1, 1000 - behind), 1 + apart + np.linspace(0, 0.01, behind))
        return [
            len(kernel.gap_edges(np.sort(sign * x), None if weight is None else weight(x)[::sign]))
            for sign in (1, -1)
        ]

    assert gaps(19, 0.5) == [0, 0]
    assert gaps(20, 0.5) == [2, 2]
    assert gaps(9, 9.7) == [0, 0]
    assert gaps(9, 9.9) == [2, 2]
    assert gaps(10, 0.5, lambda x: np.where(x > 1.2, 3.0, 1.0)) == [2, 2]
    assert gaps(30, 0.5, lambda x: np.where(x > 1.2, 0.5, 1.0)) == [0, 0]


@pytest.mark.parametrize("mirrored", [False, True])
def test_ten_neighbours_on_a_side_give_the_usual_distance(mirrored):
    """Nine of 1, one of 100, and one of 1,000, which does not count: 12.5 (109 / 10) = 136.25."""
    behind = np.cumsum([0, *[1] * 9, 100, 1000, *[1] * 30])
    for apart, expected in ((136, False), (137, True)):
        x = np.append(np.arange(40.0), 39 + apart + behind)
        if mirrored:
            end = -39.0 - apart
            assert (np.nextafter(end, 0) in kernel.gap_edges(-x[::-1])) == expected
        else:
            assert (np.nextafter(39.0, 99) in kernel.gap_edges(x)) == expected


def test_weights_beyond_a_gap_are_those_of_its_rows():
    """Nine rows of weight 1 and one of 21 at the end of a gap: 30 of 1,020, more than 2 %."""
    x = np.append(np.linspace(-1, -0.99, 10), np.linspace(0, 1, 990))
    weight = np.ones(1000)
    weight[9] = 21
    bins = x[[0, -1]]
    for order in (np.arange(1000), np.arange(1000)[::-1]):
        edges = kernel.nested_edges(x[order], weight[order], bins, 20)
        assert np.nextafter(x[9], 1) in edges
    weight[9] = 10  # 19 of 1,009
    edges = kernel.nested_edges(x, weight, bins, 20)
    assert np.nextafter(x[9], 1) not in edges


def test_edges_of_cells_of_equal_weight_by_hand():
    """Four cells of weight 5 each; weights that count rows, and those on another scale."""
    x = np.arange(10.0)
    weight = np.array([1.0, 1, 3, 5, 1, 1, 1, 2, 4, 1])
    bins = np.array([0.0, 9.0])
    for unit in (1.0, 1e-3, 1e3):
        edges = kernel.nested_edges(x, unit * weight, bins, 4, least=100.0)
        assert_array_equal(edges, [0, 2.5, 3.5, 7.5, 9])


@pytest.mark.parametrize("unit", [1e-4, 1e4])
def test_variances_of_cells_in_other_units(unit):
    x, bins, _ = drawn("crowded", 7)
    g = np.random.default_rng(8).normal(size=len(x))
    edges = kernel.nested_edges(x, None, bins, 60)
    one, other = (moments_in(edges, x, c * g, None) for c in (1.0, unit))
    assert_allclose(other.variance, unit**2 * one.variance, rtol=1e-9)
    third = [made.moments.product(0, 3) / made.means.weight for made in (other, one)]
    assert_allclose(third[0], unit**3 * third[1], rtol=1e-8)
    assert_array_equal(other.degrees, one.degrees)


def test_cells_are_divided_where_enough_rows_are_left():
    rows = np.array([2.0, 2, 3, 4, 1, 5])
    divided = kernel.divided(np.array([0, 4]), np.array([1, 2, 4, 5, 9]), rows, 3)
    # The first place would leave two rows, the fourth one.
    assert_array_equal(divided, [0, 2, 4])
    assert_array_equal(kernel.divided(np.array([0]), np.array([2, 3]), rows, 3), [0, 2, 3])
    assert_array_equal(kernel.divided(np.array([0]), np.array([2, 3]), rows, 4), [0, 2])
