"""Moments of local effects in the cells of one axis, in one compiled pass, and their sums.

The compiled pass is boost-histogram's Welford accumulator: it centres before it squares, so that
an offset of 1e8 in the local effects costs no digits, and it releases the interpreter lock, so
that features run on threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import boost_histogram as bh
import numpy as np
from numpy.typing import NDArray

from rhale_stats.arrays.pieces import Pieces
from rhale_stats.arrays.stretches import Place, Stretches

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
CellArray: TypeAlias = NDArray[np.int32]
Axis: TypeAlias = bh.axis.Regular | bh.axis.Variable

# Rows of a block where a pass needs temporary columns: 2 MB for each column.
BLOCK_ROWS = 1 << 18
# With so many rows the temporary columns of a pass stay in the cache.
CACHED_ROWS = 1 << 15
# A centre that is needed for precision only is the median of about so many rows.
CENTRE_ROWS = 1000
# Exponents of d and r in the moments of `ResidualMoments`, and in those that lines need besides.
RESIDUAL_POWERS = ((0, 3), (0, 4), (2, 0), (1, 1))
LINE_POWERS = ((3, 0), (4, 0), (2, 1), (3, 1), (1, 2), (2, 2))
OF_LINES = (*RESIDUAL_POWERS, (0, 2), *LINE_POWERS)
# Those by which the average along a bin and the slope of its line depend on each other.
LEVEL_POWERS = ((1, 2), (0, 2), (2, 2))
# Exponents in the moments by squared weights: those of lines stand where `LINE_POWERS` has them.
SQUARE_POWERS = ((1, 0), (2, 0), (0, 1), (1, 1), *LINE_POWERS, (0, 2), (0, 4))
OF_CONSTANT = (0, 1, 2, 3, 10, 11)
# Powers of the residual in sums by cubed weights; and exponents of (w, r) in the sums that parts of
# weighted rows need, besides `Squares`, to be put together.
POWERS_OF_CUBES = ((0, 0), (0, 1), (0, 2), (0, 3))
WEIGHT_POWERS = ((1, 0), (2, 0), (2, 3), (3, 0), (3, 1), (3, 2), (3, 3), (4, 0), (5, 0))
# Values that are more than so many ranges away from 0 are summed as offsets, to keep their digits.
FAR = 16.0
# Number of cells of a table that finds places between edges, and the number of values from which it
# is faster.
TABLE_CELLS, TABLE_FROM = 1 << 13, 1 << 10
# It covers all edges, or all but one of these shares at either end: the first with which few cells
# have several edges.
TABLE_TRIMS, FEW_TOGETHER = (0.0, 0.01, 0.05), 0.02


class Moments(NamedTuple):
    """Moments of the local effects g (and the mean of x) per cell; last axis: cells.

    ``weight`` is sum(w) and ``weight_sq`` sum(w^2) for precision weights. Without weights both are
    the number of rows; frequency weights count rows, so both are sum(w). This makes one formula of
    math [5] and [6] for all three. ``mean`` and ``x_mean`` are NaN where a cell has no rows.
    """

    n_obs: FloatArray
    weight: FloatArray
    weight_sq: FloatArray
    mean: FloatArray
    m2: FloatArray
    x_mean: FloatArray


class Comoments(NamedTuple):
    """Sums of w (x - x_mean)^2 and of w (x - x_mean)(g - mean) per cell, for lines."""

    x_m2: FloatArray
    xg: FloatArray


class ResidualMoments(NamedTuple):
    """Second pass, about the means or lines of bins: moments for standard errors.

    Means over the rows of a bin of powers of d, the distance of x from its mean, and of r, the
    residual. ``line`` holds those of `LINE_POWERS`, (bins, powers), where there are lines.
    """

    second_moment: FloatArray
    third_moment: FloatArray
    fourth_moment: FloatArray
    x_variance: FloatArray
    x_covariance: FloatArray
    line: FloatArray | None


def cell_moments(
    axis: Axis,
    x: FloatArray,
    g: FloatArray,
    weight: FloatArray | None,
    *,
    frequency: bool,
    of_row: Place | None = None,
) -> Moments:
    """Moments of ``g`` in the cells that ``axis`` makes of ``x`` (rows,) -> (cells,).

    ``x`` at or above the axis's upper end belongs to the last cell (math [4]: closed on both
    sides); the axis must reach down to ``min(x)``. ``of_row`` is what `row_cells` found, if known,
    or the stretches of sorted rows.
    """
    if isinstance(of_row, Stretches):
        return _sorted_moments(of_row, _origin(axis), x, g, weight, frequency=frequency)
    fill = _Filling.of(axis, x, of_row)
    centre = 0.0
    if weight is None:
        view = fill.with_samples(bh.storage.Mean(), g)
        rows = total = total_sq = view["count"]
        mean, m2 = view["value"], view["_sum_of_deltas_squared"]
    else:
        # The weighted update rounds the first value of a cell: m2 would keep eps g^2.
        centre = float(np.median(g[:: len(g) // CENTRE_ROWS + 1]))
        if frequency:
            view = fill.with_samples(bh.storage.Mean(), g, centre, weight)
            rows = total = total_sq = view["count"]
            mean, m2 = view["value"], view["_sum_of_deltas_squared"]
        else:
            view = fill.with_samples(bh.storage.WeightedMean(), g, centre, weight)
            total, total_sq = view["sum_of_weights"], view["sum_of_weights_squared"]
            mean, m2 = view["value"], view["_sum_of_weighted_deltas_squared"]
            rows = fill.counts()
    origin = _origin(axis)
    x_sum = fill.sum_of_offsets(x, weight, origin)
    with np.errstate(invalid="ignore"):
        occupied = total > 0
        flow = Moments(
            rows,
            total,
            total_sq,
            np.where(occupied, centre + mean, np.nan),
            np.where(occupied, np.maximum(m2, 0.0), 0.0),
            np.where(occupied, origin + x_sum / total, np.nan),
        )
    # The overflow cell holds the rows at the upper end.
    return merge(flow, np.arange(len(rows) - 1))


def _sorted_moments(
    cells: Stretches,
    origin: float,
    x: FloatArray,
    g: FloatArray,
    weight: FloatArray | None,
    *,
    frequency: bool,
) -> Moments:
    """`cell_moments` of sorted rows."""
    n_obs = total = total_sq = cells.n_obs
    if cells.pieces is not None and weight is None:
        x_mean, mean, m2 = cells.pieces.moments(cells.first)
        return _with_empty_cells(cells, [n_obs, n_obs, n_obs, mean, m2, x_mean])
    if weight is not None:
        total, total_sq = np.zeros((2, cells.n_groups))
    # About the first row of a cell, so that equal local effects have no spread, then the mean.
    centre = g[cells.first]
    g_sum, x_sum, second, rest = np.zeros((4, cells.n_groups))
    for block in cells.blocks():
        w = None if weight is None else weight[block.rows]
        if w is not None:
            block.add(total, w)
            block.add(total_sq, w if frequency else w**2)
        block.add(g_sum, _weighted(g[block.rows] - block.on_rows(centre), w))
        block.add(x_sum, _weighted(x[block.rows] - origin if origin else x[block.rows], w))
    mean = centre + g_sum / total
    for block in cells.blocks():
        w = None if weight is None else weight[block.rows]
        away = g[block.rows] - block.on_rows(mean)
        own = _weighted(away, w)
        block.add(rest, own)
        block.add(second, own * away)
    second = np.maximum(second - rest**2 / total, 0.0)
    if frequency:
        n_obs = total
    x_mean = origin + x_sum / total
    return _with_empty_cells(cells, [n_obs, total, total_sq, mean + rest / total, second, x_mean])


def _with_empty_cells(cells: Stretches, moments: Sequence[FloatArray]) -> Moments:
    """Moments of all cells from those of the cells with rows."""
    found = Moments(*cells.on_cells(np.stack(moments)))
    empty = found.weight == 0
    found.mean[empty] = found.x_mean[empty] = np.nan
    return found


def _weighted(values: FloatArray, weight: FloatArray | None) -> FloatArray:
    return values if weight is None else values * weight


def stretches(axis: Axis, x: FloatArray, pieces: Pieces | None = None) -> Stretches:
    """The rows of every cell among sorted values, by the same arithmetic as `cell_index`."""
    return _stretches(axis, x)._replace(pieces=pieces)


def _stretches(axis: Axis, x: FloatArray) -> Stretches:
    edges, number = np.asarray(axis.edges), np.arange(1, len(axis))
    # One cell has no edges between cells, and boost-histogram 1.5 finds no cells of no values.
    if isinstance(axis, bh.axis.Variable) or len(axis) == 1 or not len(x):
        return Stretches.between(edges, x)
    first, n = np.searchsorted(x, edges[1:-1]), len(x)
    # A value may lie beside an edge by rounding; equal values move together.
    while True:
        below = (first < n) & (cell_index(axis, x[np.minimum(first, n - 1)]) < number)
        above = (first > 0) & (cell_index(axis, x[np.maximum(first - 1, 0)]) >= number)
        if not below.any() and not above.any():
            return Stretches.of(np.append(0, first), n)
        first[below] = np.searchsorted(x, x[first[below]], side="right")
        first[above] = np.searchsorted(x, x[first[above] - 1])


def _origin(axis: Axis) -> float:
    """Origin of sums of x: 0, unless x has a small range far from 0, as time stamps have."""
    low, high = float(axis.edges[0]), float(axis.edges[-1])
    return 0.0 if max(abs(low), abs(high)) < FAR * (high - low) else low


class _Filling(NamedTuple):
    """Histograms on one axis: the axis, what is filled into it, and the number of its cells.

    Results run from the first cell to the overflow; nothing is ever below the first cell.
    """

    axis: Axis | bh.axis.Integer
    place: FloatArray | CellArray | IntArray
    n_cells: int

    @classmethod
    def of(cls, axis: Axis, x: FloatArray, of_row: CellArray | IntArray | None) -> _Filling:
        """Filled with the values, or with their cells if these are known."""
        if of_row is None and isinstance(axis, bh.axis.Variable) and len(x) >= TABLE_FROM:
            of_row = row_cells(axis, x)
        if of_row is None:
            return cls(axis, x, len(axis))
        return cls(bh.axis.Integer(0, len(axis) + 1), of_row, len(axis))

    def with_samples(
        self,
        storage: bh.storage.Storage,
        g: FloatArray,
        centre: float = 0.0,
        weight: FloatArray | None = None,
    ) -> NDArray[Any]:
        """Moments of g - centre."""
        histogram = bh.Histogram(self.axis, storage=storage)
        if weight is None and centre == 0:
            histogram.fill(self.place, sample=g)
            return self._cells(histogram)
        for block, sample in _less(g, centre):
            histogram.fill(
                self.place[block], weight=None if weight is None else weight[block], sample=sample
            )
        return self._cells(histogram)

    def counts(self) -> FloatArray:
        """Number of rows, whatever their weight."""
        histogram = bh.Histogram(self.axis, storage=bh.storage.Int64())
        histogram.fill(self.place)
        return self._cells(histogram).astype(np.float64)

    def sum_of_offsets(self, x: FloatArray, weight: FloatArray | None, origin: float) -> FloatArray:
        """Sum of w (x - origin)."""
        histogram = bh.Histogram(self.axis, storage=bh.storage.Double())
        if weight is None and origin == 0:
            histogram.fill(self.place, weight=x)
            return self._cells(histogram)
        for block, offset in _less(x, origin):
            if weight is not None:
                offset *= weight[block]
            histogram.fill(self.place[block], weight=offset)
        return self._cells(histogram)

    def _cells(self, histogram: bh.Histogram[Any]) -> NDArray[Any]:
        return np.asarray(histogram.view(flow=True))[1 : self.n_cells + 2]


def _less(values: FloatArray, centre: float) -> Iterator[tuple[slice, FloatArray]]:
    """Blocks of rows with their distances from ``centre``, in one buffer."""
    buffer = np.empty(min(len(values), BLOCK_ROWS))
    for begin in range(0, len(values), BLOCK_ROWS):
        block = slice(begin, min(begin + BLOCK_ROWS, len(values)))
        yield block, np.subtract(values[block], centre, out=buffer[: block.stop - begin])


def cell_index(axis: Axis, x: FloatArray) -> IntArray:
    """Cell of every value, by the same compiled arithmetic that fills the cells."""
    return cell_finder(axis, len(x))(x)


def row_cells(axis: Axis, x: FloatArray) -> CellArray:
    """As `cell_index`, of many values in half the memory."""
    find, cell = cell_finder(axis, len(x)), np.empty(len(x), dtype=np.int32)
    for begin in range(0, len(x), CACHED_ROWS):
        cell[begin : begin + CACHED_ROWS] = find(x[begin : begin + CACHED_ROWS])
    return cell


def cell_finder(axis: Axis, n_rows: int) -> Callable[[FloatArray], IntArray]:
    """A function that finds the cells of values, for so many values in all."""
    if isinstance(axis, bh.axis.Variable):
        between = edge_finder(np.asarray(axis.edges), n_rows)
        return lambda x: between(x) - 1
    # boost-histogram's annotation knows single values only.
    return lambda x: np.asarray(axis.index(x)).astype(np.intp)  # type: ignore[arg-type]


def edge_finder(edges: FloatArray, n_rows: int) -> Callable[[FloatArray], IntArray]:
    """A function that counts the edges at or below values (none NaN), as ``searchsorted``."""
    if n_rows >= TABLE_FROM and len(edges):
        for trim in TABLE_TRIMS:
            table = _EdgeTable.of(edges, trim)
            if table is not None and table.together <= FEW_TOGETHER:
                return table.places
        if table is not None:
            return table.places
    return lambda x: np.searchsorted(edges, x, side="right")


class _EdgeTable(NamedTuple):
    """Equal cells along an axis: how many edges lie below each cell, and the next edge.

    Where a cell has one edge at most, a value in it is compared with that edge alone, thirty times
    as fast as a search among hundreds. The result is exact, because the number of the cell is a
    monotone function of the value. ``together`` is the share of the edges that share a cell with
    another edge.
    """

    edges: FloatArray
    low: float
    per_unit: float
    below: IntArray
    following: FloatArray
    several: NDArray[np.bool_]
    together: float

    @classmethod
    def of(cls, edges: FloatArray, trim: float) -> _EdgeTable | None:
        """Table of the edges without a share at either end; None if the range has no cells."""
        left_out = int(trim * len(edges))
        low, high = float(edges[left_out]), float(edges[-1 - left_out])
        with np.errstate(over="ignore", divide="ignore"):
            per_unit = float(np.float64(TABLE_CELLS) / (high - low))
        if not 0 < per_unit < np.inf:
            return None
        cell = _table_cell(edges, low, per_unit)
        count = np.bincount(cell, minlength=TABLE_CELLS)
        below = np.cumsum(count) - count
        following = np.append(edges, np.nan)[below]
        several = count > 1
        return cls(edges, low, per_unit, below, following, several, float(several[cell].mean()))

    def places(self, x: FloatArray) -> IntArray:
        """Number of edges at or below every value."""
        cell = _table_cell(x, self.low, self.per_unit)
        found = self.below.take(cell)
        found += self.following.take(cell) <= x
        if self.together:
            several = np.flatnonzero(self.several.take(cell))
            found[several] = np.searchsorted(self.edges, x[several], side="right")
        return found


def _table_cell(x: FloatArray, low: float, per_unit: float) -> IntArray:
    with np.errstate(over="ignore"):
        place = x - low
        place *= per_unit
    np.clip(place, 0, TABLE_CELLS - 1, out=place)
    return place.astype(np.intp)


def part(values: NDArray[Any], rows: IntArray | NDArray[np.bool_]) -> NDArray[Any]:
    """Values at ``rows``, distinct and in order; all of them are not copied."""
    if rows.dtype != bool and len(rows) == len(values):
        return values
    return np.asarray(values[rows])


def merge(cells: Moments, starts: IntArray) -> Moments:
    """Moments of unions of neighbouring cells: bin k is cells ``starts[k]`` to ``starts[k+1]``.

    The pairwise update of Chan, Golub and LeVeque (1983) over whole groups: exact, and centred
    about the mean of the union.
    """
    weight = np.add.reduceat(cells.weight, starts)
    length = np.diff(np.append(starts, len(cells.weight)))
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.add.reduceat(cells.weight * _or_zero(cells.mean), starts) / weight
        x_mean = np.add.reduceat(cells.weight * _or_zero(cells.x_mean), starts) / weight
    deviation = _or_zero(cells.mean - np.repeat(mean, length))
    with np.errstate(over="ignore"):  # the caller refuses moments that are not finite
        m2 = np.add.reduceat(cells.m2 + cells.weight * deviation**2, starts)
    return Moments(
        np.add.reduceat(cells.n_obs, starts),
        weight,
        np.add.reduceat(cells.weight_sq, starts),
        mean,
        m2,
        x_mean,
    )


def union(cells: Moments) -> Moments:
    """Moments of all cells together, (problems, cells) -> (problems,)."""
    weight = cells.weight.sum(axis=1)
    mean = np.nansum(cells.weight * cells.mean, axis=1) / weight
    x_mean = np.nansum(cells.weight * cells.x_mean, axis=1) / weight
    between = np.nansum(cells.weight * (cells.mean - mean[:, None]) ** 2, axis=1)
    return Moments(
        cells.n_obs.sum(axis=1),
        weight,
        cells.weight_sq.sum(axis=1),
        mean,
        cells.m2.sum(axis=1) + between,
        x_mean,
    )


def _or_zero(values: FloatArray) -> FloatArray:
    return np.where(np.isnan(values), 0.0, values)


def n_effective(moments: Moments) -> FloatArray:
    """Kish's effective number of rows, (sum w)^2 / sum w^2 (math [6]); 0 in an empty cell."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return _or_zero(moments.weight**2 / moments.weight_sq)


def variance(moments: Moments, ddof: int | IntArray) -> FloatArray:
    """math [6]; NaN if there are too few rows.

    ddof 1: sum w (g - mean)^2 / (sum w - sum w^2 / sum w); ddof 0: the same over sum w. 2, of
    squares about a line, is exact where all weights are equal, and where they do not depend on x.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        denominator = moments.weight - ddof * moments.weight_sq / moments.weight
        # A little above, because sums of weights may round up.
        enough = n_effective(moments) > ddof * (1 + 1e-12)
        return np.where(enough, moments.m2 / denominator, np.nan)


def comoments(
    axis: Axis,
    cells: Moments,
    x: FloatArray,
    g: FloatArray,
    weight: FloatArray | None,
    of_row: Place | None = None,
) -> Comoments:
    """Spread of x and its product with g in cells, about the means that `cell_moments` found."""
    return Comoments(*central_sums(axis, cells, x, g, weight, of_row, ((2, 0), (1, 1))))


def central_sums(
    axis: Axis,
    cells: Moments,
    x: FloatArray,
    g: FloatArray,
    weight: FloatArray | None,
    of_row: Place | None,
    powers: Sequence[tuple[int, int]],
) -> FloatArray:
    """Sums of w (x - x_mean)^i (g - mean)^j in cells, for all ``powers`` (i, j)."""
    every = np.arange(len(cells.weight))
    return _central_sums(axis, every, cells, Located(x, g, weight, of_row), None, powers)


def line_sums(
    axis: Axis,
    bin_of: IntArray,
    bins: Moments,
    slope: FloatArray,
    rows: Located,
    powers: Sequence[tuple[int, int]],
) -> FloatArray:
    """Sums of w d^i r^j in cells for all ``powers`` (i, j), about the line of each cell's bin.

    d is the distance of x from the mean of the bin, r the residual from its line: (powers, cells).
    """
    every, about = np.arange(len(bin_of)), Moments(*(part[bin_of] for part in bins))
    return _central_sums(axis, every, about, rows, slope[bin_of], powers)


def merge_comoments(
    cells: Moments, within: Comoments, starts: IntArray, bins: Moments
) -> Comoments:
    """Comoments of unions of neighbouring cells, as `merge` for moments."""
    length = np.diff(np.append(starts, len(cells.weight)))
    away = _or_zero(cells.x_mean - np.repeat(bins.x_mean, length))
    above = _or_zero(cells.mean - np.repeat(bins.mean, length))
    return Comoments(
        np.add.reduceat(within.x_m2 + cells.weight * away**2, starts),
        np.add.reduceat(within.xg + cells.weight * away * above, starts),
    )


def of_all_chunks(chunks: Sequence[Moments]) -> Moments:
    """math [95]: moments of the same cells in all rows, from those in several chunks of rows."""
    return merge(*_side_by_side(chunks))


def comoments_of_all(
    chunks: Sequence[Moments], within: Sequence[Comoments], everything: Moments
) -> Comoments:
    """math [95]: comoments of the same cells in all rows, from those in chunks."""
    cells, starts = _side_by_side(chunks)
    x_m2, xg = (np.stack(part, axis=1).ravel() for part in zip(*within, strict=True))
    return merge_comoments(cells, Comoments(x_m2, xg), starts, everything)


def cubes_of_all(
    chunks: Sequence[Moments], cubes: Sequence[FloatArray], everything: Moments
) -> FloatArray:
    """math [95]: sums of w (g - mean)^3 in all rows, from those about the means of chunks."""
    total = np.zeros(len(everything.weight))
    for own, cube in zip(chunks, cubes, strict=True):
        away = _or_zero(own.mean - everything.mean)
        total += cube + 3 * away * own.m2 + own.weight * away**3
    return total


def fourths_of_all(
    chunks: Sequence[Moments],
    cubes: Sequence[FloatArray],
    fourths: Sequence[FloatArray],
    everything: Moments,
) -> FloatArray:
    """math [95]: sums of w (g - mean)^4 in all rows, from those about the means of chunks."""
    total = np.zeros(len(everything.weight))
    for own, cube, fourth in zip(chunks, cubes, fourths, strict=True):
        away = _or_zero(own.mean - everything.mean)
        total += fourth + 4 * away * cube + 6 * away**2 * own.m2 + own.weight * away**4
    return total


def _side_by_side(chunks: Sequence[Moments]) -> tuple[Moments, IntArray]:
    """Every cell of all chunks next to each other, and where the next cell begins."""
    together = Moments(*(np.stack(part, axis=1).ravel() for part in zip(*chunks, strict=True)))
    return together, np.arange(len(chunks[0].weight)) * len(chunks)


def residual_moments(
    axis: Axis,
    starts: IntArray,
    bins: Moments,
    x: FloatArray,
    g: FloatArray,
    weight: FloatArray | None,
    slope: FloatArray | None = None,
    of_row: Place | None = None,
) -> ResidualMoments:
    """Moments of x and of the residuals of g, per bin; with ``slope`` those of lines as well.

    A second pass about the means of the first, so that no digits cancel. All are averages
    (weighted, over sum w): the fourth moment is the m4 of math [24], the others enter the variance
    of the centred curve, math [26].
    """
    powers = RESIDUAL_POWERS if slope is None else OF_LINES
    with np.errstate(invalid="ignore", divide="ignore"):
        rows = Located(x, g, weight, of_row)
        found = _central_sums(axis, starts, bins, rows, slope, powers)
        if slope is not None:
            return residuals_of_lines(found, bins)
        return ResidualMoments(bins.m2 / bins.weight, *found / bins.weight, None)  # type: ignore[call-arg]


def residuals_of_lines(found: FloatArray, bins: Moments) -> ResidualMoments:
    """`residual_moments` about lines, from the sums of the products `OF_LINES`, (powers, bins)."""
    with np.errstate(invalid="ignore", divide="ignore"):
        third, fourth, x_variance, x_covariance, second, *line = found / bins.weight
    return ResidualMoments(second, third, fourth, x_variance, x_covariance, np.array(line).T)


def residuals_of_all(chunks: Sequence[ResidualMoments]) -> ResidualMoments:
    """`residual_moments` of all rows from those of chunks about common means: they add up."""
    first = chunks[0]
    square, third, fourth, x_variance, x_covariance = (
        np.sum(part, axis=0) for part in zip(*(one[:5] for one in chunks), strict=True)
    )
    if first.line is None:
        return ResidualMoments(first.second_moment, third, fourth, x_variance, x_covariance, None)
    lines = np.sum([one.line for one in chunks if one.line is not None], axis=0)
    return ResidualMoments(square, third, fourth, x_variance, x_covariance, lines)


# A smaller share of a third cumulant that is left in residuals says nothing of it.
LEAST_KEPT = 0.1


class Squares(NamedTuple):
    """Moments by squared precision weights, for variances that do not take weights for unrelated.

    ``moments`` (bins, powers) are means over the squared weights of the products of
    `SQUARE_POWERS`; those of lines are 0 where there are none. ``factor`` makes the mean of r^2
    unbiased for equal variances, r being the residual from a mean. ``rows`` of equal weight have
    the same degrees of freedom as these weights (Bell and McCaffrey 2002, every row its own group).
    ``third`` over the square of the effective number of rows is the third cumulant of the error of
    the mean, unbiased for equal third cumulants of the rows; NaN where next to nothing is left of
    it (math [64]). ``products`` are what other parts of the rows need to put theirs beside it.
    """

    moments: FloatArray
    factor: FloatArray
    rows: FloatArray
    third: FloatArray
    products: FloatArray

    def variance(self) -> FloatArray:
        """What takes the place of the variance of the rows in standard errors; NaN of one row."""
        return np.asarray(self.factor * self.moments[:, 10])


def need_squares(weight: FloatArray | None, *, frequency: bool) -> bool:
    """Whether weights are precision weights that differ: equal ones are as none."""
    return weight is not None and not frequency and bool(weight.min() < weight.max())


def rows_of_squares(weight: FloatArray) -> float:
    """Effective number of rows in sums of squared weights, as `Squares.rows` of one bin."""
    square = (weight / weight.max()) ** 2
    return float(square.sum() ** 2 / np.sum(square**2))


class SquareSums(NamedTuple):
    """What `Squares` are made of: sums over rows, which add up over chunks of them.

    ``by_square`` (powers, bins) are sums of w^2 times the products of `SQUARE_POWERS`, or of those
    without lines, and w^2 r^3; ``by_cube`` those of w^3 times 1, r, r^2 and r^3; the others of w^4
    and w^5.
    """

    by_square: FloatArray
    by_cube: FloatArray
    fourth: FloatArray
    fifth: FloatArray

    def products(self, bins: Moments) -> FloatArray:
        """What other parts of the rows need besides `Squares`: (bins, `WEIGHT_POWERS`)."""
        parts = bins.weight, bins.weight_sq, self.by_square[-1], *self.by_cube
        return np.stack([*parts, self.fourth, self.fifth], axis=-1)


def square_sums_of_all(chunks: Sequence[SquareSums]) -> SquareSums:
    """Sums over all rows, from those over chunks about common means."""
    return SquareSums(*(np.sum(part, axis=0) for part in zip(*chunks, strict=True)))


def moved_squares(
    moments: FloatArray, products: FloatArray, g: FloatArray, x: FloatArray
) -> SquareSums:
    """Sums about other means, from those of `Squares` about constant bins.

    ``g`` and ``x`` are the distances of the old means from the new ones; (bins,).
    """
    q = products[:, 1]
    s10, s20, s01, s11, s02, s04 = moments[:, OF_CONSTANT].T * q
    s03, t0, t1, t2, t3, fourth, fifth = products[:, 2:].T
    by_square = np.stack(
        [
            s10 + x * q,
            s20 + 2 * x * s10 + x**2 * q,
            s01 + g * q,
            s11 + x * s01 + g * s10 + x * g * q,
            s02 + 2 * g * s01 + g**2 * q,
            s04 + 4 * g * s03 + 6 * g**2 * s02 + 4 * g**3 * s01 + g**4 * q,
            s03 + 3 * g * s02 + 3 * g**2 * s01 + g**3 * q,
        ]
    )
    by_cube = np.stack(
        [
            t0,
            t1 + g * t0,
            t2 + 2 * g * t1 + g**2 * t0,
            t3 + 3 * g * t2 + 3 * g**2 * t1 + g**3 * t0,
        ]
    )
    return SquareSums(by_square, by_cube, fourth, fifth)


def square_sums(
    axis: Axis,
    starts: IntArray,
    bins: Moments,
    x: FloatArray,
    g: FloatArray,
    weight: FloatArray,
    slope: FloatArray | None = None,
    of_row: Place | None = None,
) -> SquareSums:
    """Sums by powers of the weights about the means or lines of bins; a pass over the rows."""
    at, slope = _of_squares(slope)
    powers = [*(SQUARE_POWERS[number] for number in at), (0, 3)]
    rows = Located(x, g, weight**2, of_row)
    by_square = _central_sums(axis, starts, bins, rows, slope, powers)
    of_cubes = rows._replace(weight=weight**3)
    by_cube = _central_sums(axis, starts, bins, of_cubes, slope, POWERS_OF_CUBES)
    fourth, fifth = (
        _central_sums(axis, starts, bins, rows._replace(weight=weight**power), None, ((0, 0),))[0]
        for power in (4, 5)
    )
    return SquareSums(by_square, by_cube, fourth, fifth)


def _of_squares(slope: FloatArray | None) -> tuple[IntArray, FloatArray | None]:
    """Which of the products of `SQUARE_POWERS` are needed, and the slopes where there are any."""
    if slope is not None and slope.any():
        return np.arange(len(SQUARE_POWERS)), slope
    return np.array(OF_CONSTANT), None


def squares_of(found: SquareSums, bins: Moments, slope: FloatArray | None = None) -> Squares:
    """Moments by squared weights of the bins, from sums about their means or lines."""
    at, slope = _of_squares(slope)
    out = np.zeros((len(bins.weight), len(SQUARE_POWERS)))
    q, w = bins.weight_sq, bins.weight
    cubes, fourth = found.by_cube[0], found.fourth
    with np.errstate(invalid="ignore", divide="ignore"):
        out[:, at] = np.nan_to_num(found.by_square[:-1] / q).T
        rest = 1 - 2 * cubes / (w * q) + q / w**2
        n = w**2 / q
        factor = np.where(n > 1 + 1e-12, 1 / rest, np.nan)
        if slope is not None:
            factor = np.where(slope != 0, factor * (n - 1) / (n - 2), factor)
        n_rows = np.nan_to_num(q**2 / fourth)
        # Of sum a^3 e^3, a = w / sum w, the residuals e - sum a e keep this share.
        kept = 1 - (3 * fourth / w - 3 * found.fifth / w**2 + cubes**2 / w**3) / cubes
        third = np.where(kept > LEAST_KEPT, found.by_cube[3] * w / q**2 / kept, np.nan)
    return Squares(out, factor, n_rows, third, found.products(bins))


class Located(NamedTuple):
    """Rows of one feature, ``of_row`` the cell of each where it is known."""

    x: FloatArray
    g: FloatArray
    weight: FloatArray | None
    of_row: Place | None


def _central_sums(
    axis: Axis,
    starts: IntArray,
    bins: Moments,
    rows: Located,
    slope: FloatArray | None,
    powers: Sequence[tuple[int, int]],
) -> FloatArray:
    """Sum of w d^a r^b for the ``powers`` (a, b), per bin: (powers, bins)."""
    x, g, weight, of_row = rows
    # One more cell for the overflow: the rows at the upper end belong to the last bin.
    length = np.diff(np.append(starts, len(axis) + 1))
    places: Stretches | _Places
    if isinstance(of_row, Stretches):
        places = of_row
        length[-1] -= 1
    else:
        places = _Places(axis, x, of_row)
    mean, x_mean = (places.of_groups(np.repeat(one, length)) for one in (bins.mean, bins.x_mean))
    slope = None if slope is None else places.of_groups(np.repeat(slope, length))
    if isinstance(places, Stretches) and places.pieces is not None and weight is None:
        found = places.pieces.about(places.first, x_mean, mean, slope, powers)
        if found is not None:
            return np.add.reduceat(places.on_cells(found), starts, axis=1)
    sums = np.zeros((len(powers), places.n_groups))
    squares_of_d, squares_of_r = (any(power[side] > 1 for power in powers) for side in (0, 1))
    # New columns in every block would take longer than the arithmetic on them.
    columns = np.empty((5, min(len(x), BLOCK_ROWS)))
    for block in places.blocks():
        here = block.rows
        d, r, d2, r2, product = columns[:, : here.stop - here.start]
        np.subtract(x[here], block.on_rows(x_mean, d), out=d)
        np.subtract(g[here], block.on_rows(mean, r), out=r)
        if slope is not None:
            np.multiply(block.on_rows(slope, product), d, out=product)
            r -= product
        if squares_of_d:
            np.square(d, out=d2)
        if squares_of_r:
            np.square(r, out=r2)
        for total, (a, b) in zip(sums, powers, strict=True):
            factors = [d2] * (a // 2) + [d] * (a % 2) + [r2] * (b // 2) + [r] * (b % 2)
            if weight is not None:
                factors.append(weight[here])
            block.add(total, _product(factors, product))
    return np.add.reduceat(places.on_cells(sums), starts, axis=1)


class _Places(NamedTuple):
    """Rows in any order, with the cell of each where it is known; has what `Stretches` has."""

    axis: Axis
    x: FloatArray
    of_row: NDArray[np.int32] | NDArray[np.int64] | None

    @property
    def n_groups(self) -> int:
        """Number of cells, the overflow included."""
        return len(self.axis) + 1

    def of_groups(self, values: FloatArray) -> FloatArray:
        """Values of the cells as they are."""
        return values

    def on_cells(self, values: FloatArray) -> FloatArray:
        """Values of the cells as they are."""
        return values

    def blocks(self) -> Iterator[_Block]:
        """The rows in blocks, each with its cells."""
        find = cell_finder(self.axis, len(self.x))
        for begin in range(0, len(self.x), BLOCK_ROWS):
            rows = slice(begin, min(begin + BLOCK_ROWS, len(self.x)))
            known = self.of_row
            cell = find(self.x[rows]) if known is None else known[rows].astype(np.intp)
            yield _Block(rows, cell)


class _Block(NamedTuple):
    """Some rows in any order, with the cell of each; has what a `Block` has."""

    rows: slice
    cell: IntArray

    def on_rows(self, values: FloatArray, out: FloatArray) -> FloatArray:
        """Values of cells at their rows, in ``out``."""
        return values.take(self.cell, mode="clip", out=out)

    def add(self, total: FloatArray, column: FloatArray) -> None:
        """Add sums of a column over the rows of each cell to the totals of all cells."""
        total += np.bincount(self.cell, column, len(total))


def _product(factors: Sequence[FloatArray], out: FloatArray) -> FloatArray:
    """Product of columns, which uses ``out`` if there are several."""
    values = factors[0]
    for factor in factors[1:]:
        values = np.multiply(values, factor, out=out)
    return values
