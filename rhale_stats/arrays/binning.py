"""Cells of an axis: rows in their order, and the best partition into unions of cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import boost_histogram as bh
import numpy as np
from numpy.typing import NDArray

from rhale_stats.arrays.moments import (
    Axis,
    FloatArray,
    IntArray,
    Moments,
    cell_index,
    merge,
    n_effective,
    selected,
    union,
    variance,
)

# Outermost rows that are kept at either end, and the share of the kept rows that are the ends of
# the widest distances.
ENDS, APART = 50, 8
# Places of so many rows of a feature are kept, of each chunk its part: 8 MB, and 16 with weights.
MAX_PLACES, MIN_PLACES = 1 << 20, 1000


def most_of_chunk(n_chunks: int) -> int:
    """Number of places that are kept of each of so many chunks."""
    return max(MAX_PLACES // n_chunks, MIN_PLACES)


def together(
    chunks: Sequence[tuple[FloatArray, FloatArray | None]],
) -> tuple[FloatArray, FloatArray | None]:
    """Places of several chunks with their weights."""
    x = np.concatenate([values for values, _ in chunks])
    if all(weight is None for _, weight in chunks):
        return x, None
    weights = [np.ones(len(values)) if weight is None else weight for values, weight in chunks]
    return x, np.concatenate(weights)


def thinned(
    x: FloatArray, weight: FloatArray | None, most: int
) -> tuple[FloatArray, FloatArray | None]:
    """math [97]: about ``most`` of the values, sorted, with weights; all of them if they are few.

    A kept value has the weight of the values between it and the kept value below. The rank of
    any value changes by at most 2 / ``most`` of the rows. The ends of the widest distances are
    kept, so that gaps stay where they are.
    """
    order = sorting(x) if weight is not None else None
    x = np.sort(x) if order is None else x[order]
    sorted_weight = None if weight is None or order is None else weight[order]
    if len(x) <= most:
        return x, sorted_weight
    widest = np.argpartition(np.diff(x), -max(most // APART, 1))[-max(most // APART, 1) :]
    rows = np.concatenate(
        [
            np.arange(min(ENDS, len(x))),
            np.linspace(0, len(x) - 1, most // 2).astype(np.intp),
            widest,
            widest + 1,
            np.arange(max(len(x) - ENDS, 0), len(x)),
        ]
    )
    rows = np.unique(rows)
    up_to = rows + 1.0 if sorted_weight is None else np.cumsum(sorted_weight)[rows]
    return x[rows], np.diff(up_to, prepend=0.0)


# --- rows in the order of one feature -------------------------------------------------------------


# Rows that are handled at a time, so that their temporary columns stay in the cache.
BLOCK_ROWS = 1 << 15
# Fewer rows are sorted as they are.
COUNTED_FROM = 1 << 12


def ascends(x: NDArray[np.float64]) -> bool:
    """Whether values are sorted; soon known if they are not."""
    for begin in range(0, len(x), BLOCK_ROWS):
        block = x[begin : begin + BLOCK_ROWS + 1]
        if not (block[1:] >= block[:-1]).all():
            return False
    return True


def sorting(
    x: NDArray[np.float64], out: tuple[NDArray[np.float64], NDArray[np.int64]] | None = None
) -> NDArray[np.intp]:
    """Row numbers in the order of the values, and of the rows where values are equal.

    As a stable ``argsort``, two to four times as fast: places on the axis, as whole numbers of 32
    bits, are sorted by their lower and then by their upper 16, which NumPy does by counting. Of
    values too close for this the rest is sorted then. ``out`` are columns for the values in this
    order, and for the numbers.
    """
    values, order = (np.empty(len(x)), np.empty(len(x), dtype=np.int64)) if out is None else out
    if len(x) < COUNTED_FROM or not _by_counting(x, order):
        order[:] = np.argsort(x, kind="stable")
    elif not ascends(x.take(order, out=values, mode="clip")):
        order[:] = order.take(np.argsort(values, kind="stable"))
    else:
        return order
    if out is not None:
        x.take(order, out=values, mode="clip")
    return order


def _by_counting(x: NDArray[np.float64], order: NDArray[np.int64]) -> bool:
    """Fill in the order of the values but for very close ones; False if their range has none."""
    low = x.min()
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        per_unit = np.float64(2.0**32 - 2) / (x.max() - low)
    if not 0 < per_unit < np.inf:
        return False
    keys, buffer = np.empty(len(x), dtype=np.uint32), np.empty(BLOCK_ROWS)
    for begin in range(0, len(x), BLOCK_ROWS):
        block = x[begin : begin + BLOCK_ROWS]
        place = np.subtract(block, low, out=buffer[: len(block)])
        keys[begin : begin + BLOCK_ROWS] = np.multiply(place, per_unit, out=place)
    by_lower = np.argsort(keys.astype(np.uint16), kind="stable")
    upper = (keys >> 16).astype(np.uint16)
    by_upper = np.argsort(upper.take(by_lower), kind="stable")
    by_lower.take(by_upper, out=order, mode="clip")
    return True


class Stretches(NamedTuple):
    """Cells with rows among ``n_cells``, and the first row of each of them."""

    cell: NDArray[np.intp]
    first: NDArray[np.intp]
    n_cells: int
    n_rows: int

    @classmethod
    def between(cls, edges: NDArray[np.float64], x: NDArray[np.float64]) -> Stretches:
        """Of cells closed on the left, the first and the last without end."""
        first = np.zeros(len(edges) - 1, dtype=np.intp)
        first[1:] = np.searchsorted(x, edges[1:-1])
        last = np.flatnonzero(np.diff(first, append=len(x)))
        return cls(last, first[last], len(first), len(x))

    @property
    def n_groups(self) -> int:
        """Number of cells with rows."""
        return len(self.cell)

    @property
    def n_obs(self) -> NDArray[np.float64]:
        """Number of rows of every cell with rows."""
        return np.diff(self.first, append=self.n_rows).astype(np.float64)

    def on_cells(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values of the cells with rows, (..., group), as values of all cells, 0 without rows."""
        out = np.zeros((*values.shape[:-1], self.n_cells))
        out[..., self.cell] = values
        return out

    def blocks(self) -> Iterator[Block]:
        """The rows in blocks, each with its cells."""
        begins = np.arange(0, self.n_rows, BLOCK_ROWS)
        ends = np.minimum(begins + BLOCK_ROWS, self.n_rows)
        low = np.searchsorted(self.first, begins, side="right") - 1
        high = np.searchsorted(self.first, ends)
        for begin, end, first, beyond in np.stack([begins, ends, low, high], axis=1).tolist():
            starts = self.first[first:beyond] - begin
            starts[0] = 0
            length = np.empty_like(starts)
            np.subtract(starts[1:], starts[:-1], out=length[:-1])
            length[-1] = end - begin - starts[-1]
            yield Block(slice(begin, end), slice(first, beyond), starts, length)


class Block(NamedTuple):
    """Some sorted rows: the cells with rows that they are in, and the first row of each."""

    rows: slice
    groups: slice
    starts: NDArray[np.intp]
    length: NDArray[np.intp]

    def on_rows(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values of cells with rows, at their rows."""
        return values[self.groups].repeat(self.length)

    def add(self, total: NDArray[np.float64], column: NDArray[np.float64]) -> None:
        """Add sums of a column over the rows of each cell to the totals of cells with rows."""
        total[self.groups] += np.add.reduceat(column, self.starts)


# --- cells of a fine grid along an axis -----------------------------------------------------------


# A partition with more bins is preferred only if its cost is smaller by this share of the cost of
# one bin (math [21]).
TIE = 1e-9

# Number of points that a search for an edge evaluates at a time.
SECTION = np.linspace(0.0, 1.0, 33)
# Number of last cells that the dynamic programme handles at a time: 64 x 1000 bins are half a
# megabyte for each array.
BLOCK_CELLS = 64
# With so many problems or more, the problems are the last axis in memory.
MANY = 32


def regular_axis(low: float, high: float, n_cells: int) -> bh.axis.Regular:
    """``n_cells`` equal cells on [low, high].

    The grid stands a few units in the last place to the left of ``low + k * width``. A value that
    lies on an edge but for rounding (0.1 * 3, a shifted time stamp) then always falls in the cell
    on its right, so that x -> c x + d does not move rows between cells.
    """
    slack = 8 * np.spacing(max(abs(low), abs(high)))
    return bh.axis.Regular(n_cells, low - slack, high - slack)


def equal_edges(low: float, high: float, fractions: FloatArray) -> FloatArray:
    """Edges at fractions of [low, high], a little to the left as in `regular_axis`."""
    slack = 8 * np.spacing(max(abs(low), abs(high)))
    edges = low + fractions * (high - low) - slack
    edges[[0, -1]] = low, high
    return np.asarray(edges)


def is_resolved(low: float, high: float, n_cells: int) -> bool:
    """Whether a cell is wide enough, in units of the last place, to be told from its neighbour."""
    return bool((high - low) / n_cells > 64 * np.spacing(max(abs(low), abs(high))))


def variable_axis(edges: FloatArray) -> bh.axis.Variable:
    """Cells [e_0, e_1), ..., [e_{M-1}, e_M] for increasing ``edges``."""
    return bh.axis.Variable(edges)


def bin_edges(axis: Axis, starts: IntArray, low: float, high: float) -> FloatArray:
    """Edges of the bins that begin at cells ``starts``. Counting rows by them is exact.

    Given edges are not changed. On a regular grid the outer edges are ``low`` and ``high``, and an
    interior edge is the smallest float that the axis puts in the cell on its right, found by
    repeated section on the axis's own arithmetic. Counting rows by the reported edges therefore
    gives the number of rows exactly (math [4]).
    """
    if isinstance(axis, bh.axis.Variable):
        return np.append(axis.edges[starts], axis.edges[-1])
    inner = starts[1:]
    # The axis subtracts, divides and multiplies once each: a few units of rounding.
    reach = 24 * np.spacing(max(abs(low), abs(high)))
    left, right = axis.edges[inner] - reach, axis.edges[inner] + reach
    while (np.nextafter(left, np.inf) < right).any():
        points = left[:, None] + (right - left)[:, None] * SECTION
        points[:, -1] = right
        cell = cell_index(axis, points.ravel()).reshape(points.shape)
        first = (cell >= inner[:, None]).argmax(axis=1)
        right = np.take_along_axis(points, first[:, None], axis=1)[:, 0]
        left = np.take_along_axis(points, first[:, None] - 1, axis=1)[:, 0]
    return np.concatenate([[low], right, [high]])


def bin_index(edges: FloatArray, x: FloatArray) -> IntArray:
    """Bin of every value inside: closed on the left, the last on both sides (math [4])."""
    return np.searchsorted(edges[1:-1], x, side="right")


def optimal_starts(
    cells: Moments,
    width: FloatArray,
    *,
    min_obs: FloatArray,
    discount: float,
    ddof: int,
    resolution: FloatArray,
) -> NDArray[np.bool_]:
    """math [21], exactly, for several problems of one size at once: which cells begin a bin.

    Minimises sum_k (1 - discount W_k / W) var_k width_k subject to n_k >= min_obs, by
    T(j) = min_l T(l) + B(l, j). The number of bins is free, so the table T(i, j) of the paper
    needs one index only: O(rows + cells^2) for everything.

    Every bin has the additional cost ``TIE`` times the cost of one bin, plus the variance that
    rounding alone causes (``resolution`` squared). If partitions differ by less, the one with fewer
    bins is taken, then the one with the widest last bin.

    Parameters
    ----------
    cells : Moments
        Of shape (problems, cells).
    width : ndarray of shape (problems, cells)
    min_obs, resolution : ndarray of shape (problems,)
        Smallest effective number of rows of a bin; local effects that differ by less are equal.
    discount : float
    ddof : int

    Returns
    -------
    ndarray of shape (problems, cells)
    """
    n_problems, n_cells = cells.weight.shape
    span = width.sum(axis=1)
    tie = TIE * span * np.nan_to_num(variance(union(cells), ddof)) + span * resolution**2
    # A little below, so that rounding in a sum of weights does not make a bin infeasible.
    needed = np.maximum(min_obs, 2) * (1 - 1e-12)
    programme = _of_many if n_problems >= MANY else _of_few
    previous, cost = programme(_Problems(cells, width, needed, discount, ddof, tie))
    if not np.isfinite(cost).all():
        raise ValueError("min_obs must leave one bin with all rows feasible.")
    starts = np.zeros((n_problems, n_cells), dtype=bool)
    problems, start = np.arange(n_problems), previous[-1]
    while True:
        starts[problems, start] = True
        if not start.any():
            return starts
        start = np.where(start > 0, previous[start, problems], 0)


class _Problems(NamedTuple):
    """Problems of one size: (problem, cell), and (problem,) but for two parameters of all."""

    cells: Moments
    width: FloatArray
    needed: FloatArray
    discount: float
    ddof: int
    tie: FloatArray


def _of_few(problems: _Problems) -> tuple[IntArray, FloatArray]:
    """The programme for a few problems, perhaps of many cells.

    Where the last bin of the first j cells begins, (cells + 1, problems), and the least cost of all
    cells, (problems,).
    """
    cells, tie = problems.cells, problems.tie
    n_problems, n_cells = cells.weight.shape
    # Cost of the best partition of the first j cells, with the additional cost of the bin that
    # follows.
    best = np.full((n_problems, n_cells + 1), np.inf)
    best[:, 0] = tie
    previous = np.zeros((n_cells + 1, n_problems), dtype=np.int64)
    every = np.arange(n_problems)
    for begin in range(0, n_cells, BLOCK_CELLS):
        ends = np.arange(begin + 1, min(begin + BLOCK_CELLS, n_cells) + 1)
        costs = _bin_costs(problems, ends)
        if n_problems == 1:
            _extend(best[0], previous[:, 0], costs[0], begin, float(tie[0]))
            continue
        for column, j in enumerate(ends):
            cost = costs[:, column, :j]
            cost += best[:, :j]
            # The first l, hence the widest last bin, among equals.
            threshold = np.minimum.reduce(cost, axis=1) + tie / 2
            first = np.less_equal(cost, threshold[:, None]).argmax(axis=1)
            previous[j] = first
            best[:, j] = cost[every, first] + tie
    return previous, best[:, -1]


def _extend(
    best: FloatArray, previous: IntArray, costs: FloatArray, begin: int, tie: float
) -> None:
    """`_of_few` for one problem and one block of last cells, in fewer steps."""
    for j, cost in enumerate(costs, begin + 1):
        cost = cost[:j]
        cost += best[:j]
        first = int((cost <= cost.min() + tie / 2).argmax())
        previous[j], best[j] = first, cost[first] + tie


def _of_many(problems: _Problems) -> tuple[IntArray, FloatArray]:
    """The same for many problems of few cells, several times as fast: problems are the last axis.

    Sums over the bins that end at cell j are those that end at the cell before, and that cell.
    """
    cells, width, needed, discount, ddof, tie = problems
    n_problems, n_cells = cells.weight.shape
    everything = union(cells)
    deviation = np.where(cells.weight > 0, cells.mean - everything.mean[:, None], 0.0)
    weighted = not np.array_equal(cells.weight, cells.weight_sq)
    if (width == width[0]).all():
        width = width[:1]
    of_cell = [width, cells.weight, cells.weight * deviation]
    of_cell += [cells.m2 + cells.weight * deviation**2, *([cells.weight_sq] if weighted else [])]
    # The last is 1 less the discount of a bin.
    of_cell.append(-cells.weight * (discount / everything.weight)[:, None])
    of_cell = [np.ascontiguousarray(part.T) for part in of_cell]
    of_bins = [np.zeros_like(part) for part in of_cell]
    of_bins[-1] += 1.0
    # No bin ends where no problem has enough rows on both sides. With precision weights, Kish's
    # number of a part may exceed that of the whole.
    before = np.cumsum(of_cell[1], axis=0)
    ends = weighted | ((before >= needed) & (before[-1] - before >= needed)).any(axis=1)
    ends[-1] = True
    best = np.full((n_cells + 1, n_problems), np.inf)
    best[0] = tie
    previous = np.zeros((n_cells + 1, n_problems), dtype=np.int64)
    every = np.arange(n_problems)
    # Fresh arrays for every j would cost as much as the arithmetic.
    room, flags = np.empty((2, n_cells, n_problems)), np.empty((n_cells, n_problems), dtype=bool)
    length = np.arange(n_cells, 0, -1, dtype=np.min_scalar_type(n_cells))[:, None]
    lengths = np.empty((n_cells, n_problems), dtype=length.dtype)
    with np.errstate(invalid="ignore", divide="ignore"):
        for j in range(1, n_cells + 1):
            for total, part in zip(of_bins, of_cell, strict=True):
                total[:j] += part[j - 1]
            if not ends[j - 1]:
                continue
            span, weight = of_bins[0][:j], of_bins[1][:j]
            first, second = of_bins[2][:j], of_bins[3][:j]
            (cost, other), flag = room[:, :j], flags[:j]
            # Sums of squares times the weight, over the weight and the degrees of freedom: one
            # division. Below 0 by rounding, 1e-16 of the squares, which is far below a tie.
            np.multiply(second, weight, out=cost)
            cost -= np.multiply(first, first, out=other)
            if weighted:
                square = of_bins[4][:j]
                cost /= np.subtract(weight**2, ddof * square, out=other)
                np.greater_equal(weight**2 / square, needed, out=flag)
                np.logical_not(flag, out=flag)
            else:
                np.subtract(weight, ddof, out=other)
                other *= weight
                cost /= other
                np.less(weight, needed, out=flag)
            cost *= span
            cost *= of_bins[-1][:j]
            cost += best[:j]
            np.copyto(cost, np.inf, where=flag)
            # The first l, hence the widest last bin, among equals: numpy finds the largest length
            # many problems at a time, and the first flag one by one.
            np.less_equal(cost, np.minimum.reduce(cost, axis=0) + tie / 2, out=flag)
            np.multiply(flag, length[-j:], out=lengths[:j])
            begin = j - np.maximum.reduce(lengths[:j], axis=0).astype(np.intp)
            previous[j] = begin
            best[j] = cost[begin, every] + tie
    return previous, best[-1]


def _bin_costs(problems: _Problems, ends: IntArray) -> FloatArray:
    """Costs B(l, j) of the bins [l, j) for j in ``ends``: (problem, j, l), infinite if infeasible.

    Moments come from differences of running sums, centred about the mean of all rows. Their
    rounding, 1e-15 of the total sum of squares, is far below what counts as a tie. Weights may
    differ by many powers of ten between bins; with them every bin is summed by itself.
    """
    cells, width, needed, discount, ddof, _ = problems
    n_starts = int(ends[-1])
    centre = union(cells).mean[:, None]
    deviation = np.where(cells.weight > 0, cells.mean - centre, 0.0)

    weighted = not np.array_equal(cells.weight, cells.weight_sq)

    def sums(values: FloatArray) -> FloatArray:
        if weighted:
            inside = np.where(np.arange(n_starts) < ends[:, None], values[:, None, :n_starts], 0.0)
            return np.cumsum(inside[..., ::-1], axis=2)[..., ::-1]
        running = np.concatenate([np.zeros_like(values[:, :1]), np.cumsum(values, axis=1)], axis=1)
        return np.asarray(running[:, ends, None] - running[:, None, :n_starts])

    weight = sums(cells.weight)
    total = cells.weight.sum(axis=1)[:, None, None]
    with np.errstate(invalid="ignore", divide="ignore"):
        cost = sums(cells.weight * deviation)
        cost *= cost
        cost /= weight
        np.subtract(sums(cells.m2 + cells.weight * deviation**2), cost, out=cost)
        np.maximum(cost, 0.0, out=cost)
        n_rows, scale = weight, weight - ddof
        if weighted:
            square = sums(cells.weight_sq)
            n_rows, scale = weight**2 / square, weight - ddof * square / weight
        cost /= scale
        cost *= sums(width)
        cost *= 1 - discount / total * weight
        np.copyto(cost, np.inf, where=~((n_rows >= needed[:, None, None]) & (weight > 0)))
    return cost


def backtrack(previous: IntArray) -> IntArray:
    """First cells of the bins, traced back from the last bin to the first."""
    starts = [int(previous[-1])]
    while starts[-1] > 0:
        starts.append(int(previous[starts[-1]]))
    return np.array(starts[::-1])


def greedy_partition(
    cells: Moments,
    *,
    min_obs: float,
    discount: float,
    factor: float,
    ddof: int,
    resolution: float,
) -> IntArray:
    """math [20] for one feature: the first cells of the bins, in one sweep from left to right.

    With c_j = (1 - discount W_j / W) var_j of the open bin's first j cells, the bin is closed after
    the first j with c_{j+1} > factor c_j + tie, where both have ``min_obs`` effective rows. The tie
    is that of `optimal_starts` over a unit of width.

    Parameters
    ----------
    cells : Moments
        Of shape (cells,).
    min_obs, resolution : float
        Smallest effective number of rows of a bin; local effects that differ by less are equal.
    discount, factor : float
    ddof : int
    """
    everything = merge(cells, np.array([0]))
    tie = TIE * np.nan_to_num(variance(everything, ddof)) + resolution**2
    # A little below, so that rounding in a sum of weights does not keep a bin open.
    needed = max(min_obs, 2) * (1 - 1e-12)
    starts = [0]
    while True:
        bins = _growing(cells, starts[-1], everything.mean)
        cost = (1 - discount * bins.weight / everything.weight) * variance(bins, ddof)
        enough = n_effective(bins) >= needed
        closes = enough[:-1] & enough[1:] & (cost[1:] > factor * cost[:-1] + tie)
        if not closes.any():
            break
        starts.append(starts[-1] + 1 + int(closes.argmax()))
    while len(starts) > 1 and n_effective(merge(cells, np.array(starts)))[-1] < needed:
        starts.pop()
    return np.array(starts)


def _growing(cells: Moments, begin: int, centre: FloatArray) -> Moments:
    """Moments of the first 1, 2, ... cells from ``begin`` on; their sums are about ``centre``."""
    n_obs, weight, weight_sq, mean, m2, x_mean = selected(cells, slice(begin, None))[:6]
    occupied = weight > 0
    deviation = np.where(occupied, mean - centre, 0.0)
    total, first = np.cumsum(weight), np.cumsum(weight * deviation)
    x_first = np.cumsum(weight * np.where(occupied, x_mean, 0.0))
    with np.errstate(invalid="ignore", divide="ignore"):
        second = np.cumsum(m2 + weight * deviation**2) - first**2 / total
        return Moments(
            np.cumsum(n_obs),
            total,
            np.cumsum(weight_sq),
            centre + first / total,
            np.maximum(second, 0.0),
            x_first / total,
        )


def quantile_edges(x: FloatArray, n_bins: int, counts: FloatArray | None) -> FloatArray:
    """math [18]: edges at the k/n_bins quantiles, ties merged.

    Quantiles are values of the data (the inverse of the empirical distribution function, R's
    type 1), so that weights and repeated rows give the same edges. Ranks are compared in whole
    numbers: k/n_bins times the number of rows would round to the wrong side.
    """
    k = np.arange(n_bins + 1)
    if counts is None:
        rank = np.maximum(-(-k * len(x) // n_bins) - 1, 0)
        return np.unique(np.partition(x, np.unique(rank))[rank])
    order = sorting(x)
    below = np.cumsum(counts[order])
    # Sums of weights that are no whole numbers may round.
    rank = np.searchsorted(below * n_bins, k * below[-1] * (1 - 1e-12))
    return np.unique(x[order][rank])
