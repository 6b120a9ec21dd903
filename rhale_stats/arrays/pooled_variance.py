"""Variances of small cells, each estimated together with its neighbours, and what they come from.

Arrays are (feature, cell). Cells without rows, which a feature has in its gaps and behind its last
cell, are passed over.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rhale_stats.arrays.accumulate import sums_at_edges
from rhale_stats.arrays.moments import (
    FloatArray,
    IntArray,
    Moments,
    SquaredWeightMoments,
    n_effective,
    variance,
)

# The variance of a small cell is estimated together with its neighbours, from so many degrees of
# freedom. A squared difference of two neighbouring cells counts as 2/3 of one.
MIN_OWN_ROWS, POOLED_DEGREES, OF_DIFFERENCE = 8, 12.0, 2 / 3
# Degrees of freedom of the variance of a cell in which a few rows have most of the weight.
MIN_DEGREES = 1.0


class Occupied(NamedTuple):
    """The cells with rows of every feature side by side: their places, and ``n`` of each feature.

    Behind the last of them are those without rows.
    """

    place: IntArray
    n: IntArray

    @classmethod
    def of_cells(cls, has_rows: NDArray[np.bool_]) -> Occupied:
        """Where ``has_rows`` is true, in order."""
        return cls(np.argsort(~has_rows, axis=-1, kind="stable"), has_rows.sum(axis=-1))

    def first(self, values: FloatArray) -> FloatArray:
        """Values of the cells with rows, and 0 behind them."""
        is_first = np.arange(self.place.shape[-1]) < self.n[..., None]
        return np.where(is_first, np.take_along_axis(values, self.place, axis=-1), 0.0)


class _Runs(NamedTuple):
    """Small cells, by ``feature`` and ``number`` among those with rows, and the cells around each.

    They are pooled with those from ``low`` to ``high``; ``degrees`` are then those of freedom.
    """

    feature: IntArray
    number: IntArray
    low: IntArray
    high: IntArray
    degrees: FloatArray

    @classmethod
    def around(cls, rows: FloatArray, n: IntArray) -> _Runs:
        """As many cells on either side as it takes; ``rows`` of the ``n`` first cells."""
        # Effective numbers of rows round where weights are nearly equal.
        small = (rows > 0) & (rows < MIN_OWN_ROWS * (1 - 1e-12)) & (n >= 2)[:, None]
        feature, number = np.nonzero(small)
        end = n[feature] - 1
        low, high, total = number.copy(), number.copy(), np.zeros(len(number))
        before = _running(np.maximum(rows - 1, 0.0))
        waiting, reach = np.arange(len(number)), 1
        while len(waiting):
            first = np.maximum(number[waiting] - reach, 0)
            last = np.minimum(number[waiting] + reach, end[waiting])
            row = feature[waiting]
            reached = before[row, last + 1] - before[row, first] + OF_DIFFERENCE * (last - first)
            low[waiting], high[waiting], total[waiting] = first, last, reached
            # Thirds add up to a whole number but for rounding.
            done = (reached >= POOLED_DEGREES * (1 - 1e-9)) | (
                (first == 0) & (last == end[waiting])
            )
            waiting, reach = waiting[~done], reach + 1
        return cls(feature, number, low, high, total)


def with_neighbours(
    n: FloatArray, mean: FloatArray, of_rows: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Variances of the cells, given those of their ``n`` rows, and degrees of freedom.

    The variance of a cell of few rows is estimated together with its neighbours, from the spread
    within cells and from the differences between neighbouring means. These include the change of
    the effect.
    """
    pooled, occupied = of_rows.copy(), Occupied.of_cells(n > 0)
    degrees = np.where(np.isnan(of_rows), 0.0, np.maximum(n - 1, 0.0))
    rows, means = occupied.first(n), occupied.first(mean)
    scatter = occupied.first(degrees * np.nan_to_num(of_rows))
    runs = _Runs.around(rows, occupied.n)
    with np.errstate(divide="ignore"):
        apart = OF_DIFFERENCE * np.diff(means) ** 2 / (1 / rows[:, 1:] + 1 / rows[:, :-1])
    # Running sums, so that any stretch of cells is a difference.
    spread, steps = _running(scatter), _running(apart)
    row, low, high = runs.feature, runs.low, runs.high
    squares = spread[row, high + 1] - spread[row, low] + steps[row, high] - steps[row, low]
    cells = row, occupied.place[row, runs.number]
    pooled[cells] = np.maximum(squares, 0.0) / runs.degrees
    degrees[cells] = runs.degrees
    return pooled, degrees


def robust_with_neighbours(
    means: Moments, squares: SquaredWeightMoments
) -> tuple[FloatArray, FloatArray]:
    """What standard errors have in place of these where precision weights differ, (cell,)."""
    n = n_effective(means)
    (_, degrees), (robust, _) = [
        with_neighbours(n[None], means.mean[None], values[None])
        for values in (variance(means, 1), squares.variance())
    ]
    rows = np.maximum(squares.rows - 1, MIN_DEGREES)
    return robust[0], np.where(degrees[0] > 0, rows, 0.0)


def _running(values: FloatArray) -> FloatArray:
    """Sums over the cells before each, and over all of them."""
    return np.pad(np.cumsum(values, axis=-1), ((0, 0), (1, 0)))


class VarianceSources(NamedTuple):
    """Independent sources of the variances of cells, and how much each cell has of them.

    Sources are the spread within a cell, and the difference of two neighbouring means, with
    ``degrees`` of freedom. Entry by entry, in the order of sources and cells: the variance of
    ``cell``, a number among the cells of all features, has ``weight`` of ``source``. The weights of
    a cell add up to 1, but for cells whose variance is not known.
    """

    cell: IntArray
    source: IntArray
    weight: FloatArray
    degrees: FloatArray
    shape: tuple[int, ...]

    @classmethod
    def of_neighbours(cls, n: FloatArray) -> VarianceSources:
        """Those of `with_neighbours`, (feature, cell)."""
        occupied = Occupied.of_cells(n > 0)
        rows = occupied.first(n)
        n_features, n_cells = rows.shape
        runs = _Runs.around(rows, occupied.n)
        within = np.maximum(rows - 1, 0.0).ravel()
        degrees = np.append(within, np.full(n_features * n_cells, OF_DIFFERENCE))
        is_alone = within > 0
        is_alone[runs.feature * n_cells + runs.number] = False
        alone = np.flatnonzero(is_alone)
        # Of a cell of few rows: the cells of its stretch, and the differences between these.
        n_steps = runs.high - runs.low
        first, small = runs.feature * n_cells + runs.low, np.arange(len(n_steps))
        pooled = np.concatenate([np.repeat(small, n_steps + 1), np.repeat(small, n_steps)])
        steps = n_features * n_cells + _whole_numbers(first, n_steps)
        sources = np.concatenate([_whole_numbers(first, n_steps + 1), steps])
        number = (runs.feature * n_cells + runs.number)[pooled]
        place = (occupied.place + n_cells * np.arange(n_features)[:, None]).ravel()
        cell = place[np.append(alone, number)]
        weight = np.append(np.ones(len(alone)), degrees[sources] / runs.degrees[pooled])
        source = np.append(alone, sources)
        order = np.lexsort((cell, source))
        return cls(cell[order], source[order], weight[order], degrees, n.shape)

    @classmethod
    def of_cells(cls, degrees: FloatArray) -> VarianceSources:
        """One source for every cell, with these degrees of freedom, (feature, cell)."""
        every = np.arange(degrees.size)
        return cls(every, every, np.ones(degrees.size), degrees.ravel(), degrees.shape)

    def matrix(self) -> sparse.csr_array:
        """Weights (cell, source)."""
        entries = self.weight, (self.cell, self.source)
        return sparse.csr_array(entries, (int(np.prod(self.shape)), len(self.degrees)))

    def degrees_in_bins(self, parts: FloatArray, bin_of: IntArray, n_bins: int) -> FloatArray:
        """Satterthwaite's degrees of freedom of sums over the cells of bins, (bin,).

        ``parts`` are what every cell adds to the variance of its bin.
        """
        values, bins = parts.ravel()[self.cell] * self.weight, bin_of.ravel()[self.cell]
        if not len(values):
            return np.full(n_bins, np.inf)
        changes = (np.diff(self.source) != 0) | (np.diff(bins) != 0)
        starts = np.append(0, 1 + np.flatnonzero(changes))
        total = np.add.reduceat(values, starts)
        degrees = self.degrees[self.source[starts]]
        with np.errstate(divide="ignore", invalid="ignore"):
            over = np.where(total == 0, 0.0, total**2 / np.maximum(degrees, 0.0))
            squares = np.bincount(bins[starts], over, n_bins)
            whole = np.bincount(bin_of.ravel(), parts.ravel(), n_bins)
            return np.asarray(np.where(squares > 0, whole**2 / squares, np.inf))

    def degrees_at_edges(
        self, left: FloatArray, right: FloatArray, total: FloatArray
    ) -> FloatArray:
        """Satterthwaite's degrees of freedom of ``total`` variances at edges, (feature, edge).

        A cell adds ``left`` to the variance at edges that it is on the left of, and ``right`` to
        those that it is on the right of, (feature, cell).
        """
        sides = np.stack([left, right]).reshape(2, -1)
        added = np.nan_to_num(sides)[:, self.cell] * self.weight
        has_degrees = self.degrees[self.source] > 0
        # A source without degrees of freedom leaves none, and an unknown part says nothing.
        lost = [
            np.bincount(self.cell[~has_degrees], part[~has_degrees] != 0, left.size).reshape(
                left.shape
            )
            for part in added
        ]
        unknown = np.isnan(sides).reshape(2, *left.shape)
        with np.errstate(divide="ignore", invalid="ignore"):
            degrees = total**2 / self._squares_at_edges(has_degrees, *added)
        none = sums_at_edges(np.nan_to_num(left), np.nan_to_num(right)) == 0
        degrees[none | np.isnan(degrees) | (sums_at_edges(*unknown) > 0)] = np.inf
        degrees[sums_at_edges(*lost) > 0] = 0.0
        return np.asarray(degrees)

    def _squares_at_edges(
        self, has_degrees: NDArray[np.bool_], left: FloatArray, right: FloatArray
    ) -> FloatArray:
        """Sums of squared parts over degrees of freedom, of entries that ``has_degrees`` marks."""
        cell, source = self.cell[has_degrees], self.source[has_degrees]
        if not len(cell):
            return np.zeros((self.shape[0], self.shape[1] + 1))
        is_first = np.diff(source, prepend=-1) != 0
        starts, number = np.flatnonzero(is_first), np.cumsum(is_first) - 1
        first = cell[starts]
        length = 1 + cell[np.append(starts[1:], len(cell)) - 1] - first
        # Parts of a source at the edges from its first cell to its last one: no differences of
        # sums, because parts at some edges are many times as large as at others.
        parts = np.zeros((2, len(starts), int(length.max())))
        parts[:, number, cell - first[number]] = left[has_degrees], right[has_degrees]
        squares = sums_at_edges(*parts) ** 2 / self.degrees[source[starts], None]
        ends = squares[np.arange(len(starts)), length], squares[:, 0]
        places = first + length - 1, first
        total = sums_at_edges(
            *[
                np.bincount(place, values, int(np.prod(self.shape))).reshape(self.shape)
                for place, values in zip(places, ends, strict=True)
            ]
        )
        of_source, offset = np.nonzero(np.arange(squares.shape[1]) < length[:, None])
        inner = offset > 0
        of_source, offset = of_source[inner], offset[inner]
        edge = first[of_source] + offset
        edge += edge // self.shape[1]
        between = np.bincount(edge, squares[of_source, offset], total.size)
        return np.asarray(total + between.reshape(total.shape))


def _whole_numbers(first: IntArray, length: IntArray) -> IntArray:
    """Whole numbers from each of ``first`` on, so many of each."""
    return np.repeat(first - np.cumsum(length) + length, length) + np.arange(length.sum())
