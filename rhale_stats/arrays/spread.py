"""Bins of the spread sigma(z), chosen from the residuals of the effect, math [66].

Everything is arithmetic on sums over the cells of one fine grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rhale_stats.arrays.moments import (
    Axis,
    FloatArray,
    IntArray,
    cell_finder,
    stretches,
)
from rhale_stats.arrays.stretches import Place, Stretches

# Number of rows that are handled at a time.
BLOCK_ROWS = 1 << 15
# Number of stretches of equally many rows, and the least rows of one: their ends are places of
# edges beside those of equal width, and the noise of |r| is estimated within them.
MOST_STRETCHES, STRETCH_ROWS = 50, 15
# A mean of |r| counts as at least this share of the mean over all rows: where there is next to no
# spread, what is left is the error of the fitted effect.
LEAST_MEAN = 0.05
# So many stretches have neighbours enough to compare; the largest of their differences, which are
# jumps, are left out.
FEW_STRETCHES, TRIM = 5, 0.1
# How often every edge is moved while the others stay.
SWEEPS = 2
# Exponents of x and of the residuals in the moments of these.
OF_RESIDUALS = ((0, 2), (0, 3), (0, 4))


class Means(NamedTuple):
    """The fitted effect that residuals are taken from: means of cells, with the slope around them.

    ``of_row`` is the cell of every row, at the upper end too large by one, or the stretches of
    sorted rows. ``left`` is the share of the variance that is left in the residuals of a cell, 0
    where its rows are fitted exactly.
    """

    of_row: Place
    mean: FloatArray
    x_mean: FloatArray
    slope: FloatArray
    left: FloatArray


class Residuals(NamedTuple):
    """Sums over rows in cells, last axis: cells.

    ``n_obs`` are rows, ``weight`` sums of w. With l the share of variance left in the residual of a
    row and r this residual over the root of l, ``free`` and ``free_sq`` are sums of w l and w^2 l,
    the others those of w l times |r|, r^2, r^3 and r^4.
    """

    n_obs: FloatArray
    weight: FloatArray
    free: FloatArray
    free_sq: FloatArray
    absolute: FloatArray
    square: FloatArray
    third: FloatArray
    fourth: FloatArray

    def merged(self, starts: IntArray) -> Residuals:
        """Sums of unions of neighbouring cells, which begin at ``starts``."""
        return Residuals(*(np.add.reduceat(part, starts) for part in self))

    @property
    def degrees(self) -> FloatArray:
        """Degrees of freedom: effective rows less what the effect has taken; 0 without rows."""
        return np.asarray(_ratio(self.free**2, self.free_sq))

    def moment(self, name: str) -> FloatArray:
        """The mean of a power of the residuals, NaN without degrees of freedom."""
        return np.asarray(_ratio(getattr(self, name), self.free, np.nan))


def residuals_of_all(chunks: Sequence[Residuals]) -> Residuals:
    """Sums over all rows, from those over chunks of rows."""
    return Residuals(*(np.sum(part, axis=0) for part in zip(*chunks, strict=True)))


def _ratio(of: FloatArray, over: FloatArray, otherwise: float = 0.0) -> FloatArray:
    out = np.full(np.shape(of), otherwise)
    np.divide(of, over, out=out, where=over > 0)
    return out


def residuals(
    axis: Axis,
    means: Means,
    x: FloatArray,
    g: FloatArray,
    weight: FloatArray | None,
    *,
    frequency: bool,
) -> Residuals:
    """math [66]: sums of powers of the residuals in the cells of ``axis``."""
    known = means.left > 0
    scale = 1 / np.sqrt(np.where(known, means.left, np.inf))
    level = np.where(known, means.mean - means.slope * means.x_mean, 0.0)
    sloped = bool(means.slope.any())
    of_row = means.of_row
    if isinstance(of_row, Stretches):
        slope = means.slope if sloped else None
        lines = _Fit(of_row, level, slope, scale, means)
        cells = stretches(axis, x, of_row.pieces)
        return _sorted_residuals(cells, lines, x, g, weight, frequency=frequency)
    n_cells, last = len(axis) + 1, len(means.mean) - 1
    out = np.zeros((len(Residuals._fields), n_cells))
    find = cell_finder(axis, len(x))
    for begin in range(0, len(x), BLOCK_ROWS):
        block = slice(begin, begin + BLOCK_ROWS)
        fit = np.minimum(of_row[block], last, dtype=np.intp)
        at = find(x[block])
        r = g[block] - level.take(fit)
        if sloped:
            r -= means.slope.take(fit) * x[block]
        r *= scale.take(fit)
        free, square = means.left.take(fit), r * r
        if weight is not None:
            w = weight[block]
            free *= w
            out[0] += np.bincount(at, w if frequency else None, n_cells)
            out[1] += np.bincount(at, w, n_cells)
            out[3] += np.bincount(at, free if frequency else free * w, n_cells)
        else:
            out[0] += np.bincount(at, minlength=n_cells)
        out[2] += np.bincount(at, free, n_cells)
        square *= free
        out[4] += np.bincount(at, np.abs(r) * free, n_cells)
        for number in (5, 6, 7):
            out[number] += np.bincount(at, square, n_cells)
            square *= r
    if weight is None:
        out[1], out[3] = out[0], out[2]
    # The overflow holds the rows at the upper end.
    out[:, -2] += out[:, -1]
    return Residuals(*out[:, :-1])


class _Fit(NamedTuple):
    """A fitted effect in stretches of sorted rows: a line in each, by its level at x = 0."""

    cells: Stretches
    level: FloatArray
    slope: FloatArray | None
    scale: FloatArray
    means: Means


def _sorted_residuals(
    cells: Stretches,
    fit: _Fit,
    x: FloatArray,
    g: FloatArray,
    weight: FloatArray | None,
    *,
    frequency: bool,
) -> Residuals:
    """`residuals` of sorted rows, from sums over the parts that both kinds of cells make."""
    both, of_cells, of_fit = cells.with_parts_of(fit.cells)
    level, slope = fit.level[of_fit], None if fit.slope is None else fit.slope[of_fit]
    # Of w, w^2, w |r|, w r^2, w r^3 and w r^4, before they are scaled.
    sums = np.zeros((6, both.n_groups))
    powers = sums[3:]
    if both.pieces is not None and weight is None:
        x_mean, mean = (part[of_fit] for part in (fit.means.x_mean, fit.means.mean))
        found = both.pieces.about(both.first, x_mean, mean, slope, OF_RESIDUALS)
        if found is not None:
            powers[:], powers = found, powers[:0]
    for block in both.blocks():
        r = g[block.rows] - block.on_rows(level)
        if slope is not None:
            r -= block.on_rows(slope) * x[block.rows]
        own = r
        if weight is not None:
            w = weight[block.rows]
            block.add(sums[0], w)
            block.add(sums[1], w * w)
            own = r * w
        block.add(sums[2], np.copysign(own, 1.0))
        for total in powers:
            own = own * r
            block.add(total, own)
    n_obs = both.n_obs
    if weight is None:
        sums[0], sums[1] = n_obs, n_obs
    elif frequency:
        sums[1] = n_obs = sums[0]
    scale, left = fit.scale[of_fit], fit.means.left[of_fit]
    sums[2:] *= left * scale ** np.arange(1, 5)[:, None]
    free, free_sq = left * sums[0], left * sums[1]
    parts = n_obs, sums[0], free, free_sq, *sums[2:]
    found = np.zeros((len(parts), cells.n_cells))
    for out, part in zip(found, parts, strict=True):
        out += np.bincount(of_cells, part, cells.n_cells)
    return Residuals(*found)


def spread_starts(
    cells: Residuals,
    *,
    fine: int,
    penalty: float,
    min_obs: float,
    resolution: float,
    in_cells: bool,
) -> IntArray:
    """math [66]: first cells of the bins of the spread, by |r|.

    Minimises the sum over bins of 2 n ln(mean of |r|) / phi + ``penalty``, where phi is the squared
    coefficient of variation of |r|. Edges are ends of every ``fine``-th cell or of stretches of
    equally many rows, and then move among all cells. Last, neighbours are joined that differ by
    less than ``penalty`` noise variances. ``in_cells`` says that residuals are taken from means of
    a few rows each, so that the |r| of one cell depend on each other.
    """
    search = _Search(cells, min_obs, resolution, in_cells=in_cells)
    if not search.phi > 0:
        return np.zeros(1, dtype=np.int64)
    edges = search.best(search.places(fine), penalty)
    for _ in range(SWEEPS):
        edges = search.moved(edges, fine)
    return search.pruned(edges, penalty)[:-1]


class _Search:
    """Running sums of one feature, which give the cost of any bin between edges of cells."""

    def __init__(
        self, cells: Residuals, min_obs: float, resolution: float, *, in_cells: bool
    ) -> None:
        self.in_cells = in_cells
        self.n_cells = len(cells.free)
        self.running = np.zeros((4, self.n_cells + 1))
        np.cumsum(cells[2:6], axis=1, out=self.running[:, 1:])
        free, free_sq, absolute, _ = self.running[:, -1]
        self.rows = float(free**2 / free_sq) if free > 0 else 0.0
        overall = float(absolute / free) if free > 0 else 0.0
        self.floor = max(LEAST_MEAN * overall, resolution)
        self.needed = min_obs * (1 - 1e-12)
        self.stretches = self._stretches()
        self.phi = self._noise() if overall > resolution else 0.0

    def _stretches(self) -> IntArray:
        """Ends of stretches of about equally many rows."""
        free = self.running[0]
        n = int(min(max(self.rows // STRETCH_ROWS, 1), MOST_STRETCHES))
        at = np.searchsorted(free, free[-1] * np.arange(1, n) / n * (1 - 1e-12))
        return np.unique(np.concatenate([[0], at, [self.n_cells]]))

    def _of(self, sums: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Rows, mean of |r| and its sum of squared deviations, from running sums of bins."""
        free, free_sq, absolute, square = sums
        rows, mean = _ratio(free**2, free_sq), _ratio(absolute, free)
        return rows, mean, np.maximum(_ratio(square, free) - mean**2, 0.0) * rows

    def _noise(self) -> float:
        """Squared coefficient of variation of |r| within stretches of a few rows."""
        rows, mean, squares = self._of(np.diff(self.running[:, self.stretches], axis=1))
        rows, mean, squares = rows[rows > 0], mean[rows > 0], squares[rows > 0]
        degrees = np.where(mean > self.floor, np.maximum(rows - 1, 0.0), 0.0)
        if not degrees.any():
            return 0.0
        within = float((_ratio(squares, mean**2) * (degrees > 0)).sum() / degrees.sum())
        if not self.in_cells or len(mean) < FEW_STRETCHES:
            return within
        apart = np.diff(np.log(np.maximum(mean, self.floor))) ** 2
        between = np.sort(apart / (1 / rows[1:] + 1 / rows[:-1]))
        return max(within, float(between[: len(apart) - int(np.ceil(TRIM * len(apart)))].mean()))

    def places(self, fine: int) -> IntArray:
        """Places of edges: every ``fine``-th, and the ends of the stretches."""
        return np.union1d(np.arange(0, self.n_cells + 1, fine), self.stretches)

    def cost(self, begin: IntArray, end: IntArray) -> FloatArray:
        """Cost of bins without the penalty; infinite where rows are too few."""
        free, free_sq, absolute = self.running[:3, end] - self.running[:3, begin]
        rows = _ratio(free**2, free_sq)
        mean = np.maximum(_ratio(absolute, free), self.floor)
        return np.where(rows >= self.needed, 2 * rows * np.log(mean) / self.phi, np.inf)

    def best(self, places: IntArray, penalty: float) -> IntArray:
        """The exact optimum with edges at ``places``, by T(j) = min_l T(l) + B(l, j)."""
        n = len(places) - 1
        costs = self.cost(places[None, :-1], places[1:, None]) + penalty
        total, previous = np.full(n + 1, np.inf), np.zeros(n + 1, dtype=np.int64)
        total[0] = 0.0
        for end in range(1, n + 1):
            reached = total[:end] + costs[end - 1, :end]
            found = int(reached.argmin())
            previous[end], total[end] = found, reached[found]
        edges = [n]
        while edges[-1] > 0:
            edges.append(int(previous[edges[-1]]) if np.isfinite(total[edges[-1]]) else 0)
        return places[edges[::-1]]

    def moved(self, edges: IntArray, fine: int) -> IntArray:
        """Every edge moved by less than ``fine`` cells to its best place: every other one first."""
        edges, shift = edges.copy(), np.arange(1 - fine, fine)
        for first in (1, 2):
            inner = np.arange(first, len(edges) - 1, 2)
            before, after = edges[inner - 1][:, None], edges[inner + 1][:, None]
            among = np.clip(edges[inner][:, None] + shift, before + 1, after - 1)
            cost = self.cost(before, among) + self.cost(among, after)
            best = cost.argmin(axis=1)
            better = np.isfinite(cost[np.arange(len(inner)), best])
            edges[inner[better]] = among[better, best[better]]
        return edges

    def pruned(self, edges: IntArray, penalty: float) -> IntArray:
        """Edges on whose two sides ln(mean of |r|) differs, by the noise of the two bins."""
        while len(edges) > 2:
            rows, mean, squares = self._of(np.diff(self.running[:, edges], axis=1))
            noise = _ratio(squares, mean**2 * (rows - 1))
            noise = np.where(mean > self.floor, np.maximum(noise, self.phi), self.phi) / rows
            apart = np.diff(np.log(np.maximum(mean, self.floor)))
            gain = apart**2 / (noise[1:] + noise[:-1])
            weakest = int(gain.argmin())
            if gain[weakest] >= penalty:
                break
            edges = np.delete(edges, weakest + 1)
        return edges
