"""Bins of the spread sigma(z), chosen from the residuals of the effect in cells, math [66]."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import special

from rhale_stats.arrays.cell_moments import CellMoments, Line
from rhale_stats.arrays.moments import FloatArray, IntArray, n_effective

# A share of the variance below this is rounding.
NO_SHARE = 1e-9
# Parameters of a cell: its mean takes one, and the error of the slope puts a part of one back.
OF_CELL = 1 - 1 / 24
# Exponents of the residuals in their moments.
OF_RESIDUALS = ((0, 1), (0, 2), (0, 3), (0, 4))
# A spread counts as at least this share of that of all rows: where there is next to none, what is
# left is the error of the fitted effect.
MIN_SPREAD = 0.05
# So many cells have neighbours enough to compare; the largest of their differences, which are
# jumps, are left out.
MIN_CELLS, TRIM = 5, 0.1
# The mean of the squares of normal errors, of which the largest tenth is left out. Light tails have
# less noise than normal ones, as many cells can tell.
OF_TRIMMED, MIN_NOISE, MANY_CELLS = 0.62, 0.5, 100
# Number of runs of cells between which the programme chooses before it does among all cells beside.
PLACES = 100


class Residuals(NamedTuple):
    """Sums over rows in cells, last axis: cells.

    ``n_obs`` are rows, ``weight`` sums of w. With l the share of variance left in the residual of a
    row and r this residual over the root of l, ``free`` and ``free_sq`` are sums of w l and w^2 l,
    the others those of w l times r, r^2, r^3 and r^4.
    """

    n_obs: FloatArray
    weight: FloatArray
    free: FloatArray
    free_sq: FloatArray
    first: FloatArray
    square: FloatArray
    third: FloatArray
    fourth: FloatArray

    def merged(self, starts: IntArray) -> Residuals:
        """Sums of unions of neighbouring cells, which begin at ``starts``."""
        return Residuals(*[np.add.reduceat(part, starts) for part in self])

    @property
    def degrees(self) -> FloatArray:
        """Degrees of freedom: effective rows less what the effect has taken; 0 without rows."""
        return np.asarray(_ratio(self.free**2, self.free_sq))

    def moment(self, name: str) -> FloatArray:
        """The mean of a power of the residuals, NaN without degrees of freedom."""
        return np.asarray(_ratio(getattr(self, name), self.free, np.nan))


def _ratio(part: FloatArray, over: FloatArray, otherwise: float = 0.0) -> FloatArray:
    out = np.full(np.shape(part), otherwise)
    np.divide(part, over, out=out, where=over > 0)
    return out


def effect_in_cells(cells: CellMoments, sloped: Sequence[slice]) -> tuple[Line, FloatArray]:
    """The effect in cells, and the share of the variance of the rows that it leaves there.

    It is the mean of each cell and its slope, which cells have that are ``sloped``, by feature.
    """
    means, slope = cells.means(), np.zeros(len(cells.weight))
    for part in sloped:
        slope[part] = slopes_along(means.mean[part], means.x_mean[part])
    return Line.through(means, slope), share_left(n_effective(means), OF_CELL)


def share_left(rows: FloatArray, parameters: FloatArray | float) -> FloatArray:
    """Share of the variance that is left where so many parameters are fitted to so many rows."""
    left = 1 - parameters / np.where(rows > 0, rows, np.inf)
    return np.where((rows > 0) & (left > NO_SHARE), left, 0.0)


def slopes_along(mean: FloatArray, x_mean: FloatArray) -> FloatArray:
    """Slope of the effect in every cell, from the means of the cells around it; 0 in two cells.

    Where n rows are even in cells of width h, its variance is sigma^2 / (2 n h^2). Times that of x
    in the cell, h^2 / 12, this is a twenty-fourth of the variance of the mean of the cell.
    """
    out, occupied = np.zeros(len(mean)), np.flatnonzero(np.isfinite(mean))
    if len(occupied) > 2 and (np.diff(x_mean[occupied]) > 0).all():
        out[occupied] = np.gradient(mean[occupied], x_mean[occupied])
    return out


def residuals(cells: CellMoments, effect: Line, left: FloatArray) -> Residuals:
    """math [66]: sums of powers of the residuals from the fitted effect in cells.

    ``left`` is the share of the variance that is left in the residuals of a cell, 0 where its rows
    are fitted exactly.
    """
    scale = 1 / np.sqrt(np.where(left > 0, left, np.inf))
    powers = effect.sums(cells, OF_RESIDUALS) * left * scale ** np.array([[1], [2], [3], [4]])
    free, free_sq = cells.weight * left, cells.weight_sq * left
    return Residuals(cells.n_obs, cells.weight, free, free_sq, *powers)


def spread_starts(
    fine: Residuals, of_cells: IntArray, *, penalty: float, min_obs: float, resolution: float
) -> IntArray:
    """math [66]: first fine cells of the bins of the spread, from the log variances of cells.

    ``of_cells`` are the first fine cells of the cells. Minimises the sum over bins of the squared
    deviations of the log variances of cells from their mean, in units of their noise, plus
    ``penalty`` for every bin: first between runs of cells, then among all cells beside the edges.
    Neighbours are joined that differ by less than ``penalty`` noise variances, and by half as much
    where edges have been `refined`: a cell in which the spread jumps may have been a bin between
    two edges. The largest difference must be larger, the more cells a run has.
    """
    overall = float(fine.square.sum() / fine.free.sum()) if fine.free.any() else 0.0
    if not overall > resolution**2:
        return np.zeros(1, dtype=np.int64)
    floor = max(MIN_SPREAD**2 * overall, resolution**2)
    search = _SpreadSearch.of_cells(fine.merged(of_cells), min_obs, floor)
    edges = search.best(search.places(), penalty)
    if len(edges) > 2:
        edges = search.pruned(search.best(search.beside(edges), penalty), penalty)
    # Edges may be between all cells, which are more places than the penalty counts.
    if len(search.pruned(edges, penalty + 2 * np.log(search.step))) == 2:
        return of_cells[:1]
    starts, moved = edges[:-1], of_cells.copy()
    moved[starts] = refined(starts, of_cells, fine, min_obs=min_obs, resolution=resolution)
    if len(starts) == 2:
        return moved[starts]
    search = _SpreadSearch.of_cells(fine.merged(moved), min_obs, floor)
    remaining = search.pruned(edges, penalty / 2)[:-1]
    if len(remaining) == len(starts):
        return moved[starts]
    return refined(remaining, of_cells, fine, min_obs=min_obs, resolution=resolution)


def refined(
    starts: IntArray, of_cells: IntArray, fine: Residuals, *, min_obs: float, resolution: float
) -> IntArray:
    """First fine cells of bins, each edge moved by less than a cell to where variances differ most.

    ``starts`` are the first cells of the bins, ``of_cells`` the first fine cells of the cells. The
    place has the largest likelihood of normal residuals with one variance on either side, among
    those that leave ``min_obs`` rows on both. The cell that it divides has a mean on either side:
    from one mean, residuals where the spread is small would be as large as the error of that mean.
    """
    running = np.zeros((4, len(fine.free) + 1))
    sums = fine.free, fine.free_sq, fine.square, fine.first
    np.cumsum(sums, axis=1, out=running[:, 1:])
    ends = np.append(of_cells, len(fine.free))
    edges = np.append(of_cells[starts], len(fine.free))
    for number, cell in enumerate(starts[1:], 1):
        before, after = edges[number - 1], edges[number + 1]
        among = np.arange(max(ends[cell - 1], before) + 1, min(ends[cell + 1], after))
        right = np.searchsorted(ends, among)
        part_ends = np.stack([np.maximum(ends[right - 1], before), ends[right]])
        # On the left and on the right of every place: the rows of the bin, and of the divided cell.
        bins, parts = [
            np.abs(running[:, None, among] - running[:, beyond])
            for beyond in (np.array([[before], [after]]), part_ends)
        ]
        square = bins[2] - _ratio(parts[3] ** 2, parts[0])
        variance = np.maximum(_ratio(square, bins[0]), resolution**2 + np.finfo(float).tiny)
        enough = _ratio(bins[0] ** 2, bins[1]) >= min_obs * (1 - 1e-12)
        cost = np.where(enough, bins[0] * np.log(variance), np.inf).sum(axis=0)
        if np.isfinite(cost).any():
            edges[number] = among[cost.argmin()]
    return edges[:-1]


class _SpreadSearch:
    """Running sums of one feature, which give the cost of any bin between edges of cells."""

    def __init__(self, occupied: IntArray, n_cells: int, sums: FloatArray, min_obs: float) -> None:
        self.n_cells = n_cells
        self.running = np.zeros((len(sums), n_cells + 1))
        self.running[:, occupied + 1] = sums
        np.cumsum(self.running, axis=1, out=self.running)
        self.step = max(n_cells // PLACES, 1)
        self.needed = min_obs * (1 - 1e-12)

    @classmethod
    def of_cells(cls, cells: Residuals, min_obs: float, floor: float) -> _SpreadSearch:
        """The search between these cells, whose variances count as ``floor`` at least.

        The logarithm of a variance of d degrees of freedom has the mean and the variance of that of
        normal rows; where tails are heavier the noise is as neighbouring cells differ.
        """
        degrees, variance = cells.degrees, _ratio(cells.square, cells.free)
        occupied = np.flatnonzero(degrees > 0)
        half = degrees[occupied] / 2
        level = np.log(np.maximum(variance[occupied], floor)) - special.digamma(half) + np.log(half)
        weight = 1 / special.polygamma(1, half)
        if len(occupied) >= MIN_CELLS:
            apart = np.sort(np.diff(level) ** 2 / (1 / weight[1:] + 1 / weight[:-1]))
            usual = float(apart[: len(apart) - int(np.ceil(TRIM * len(apart)))].mean()) / OF_TRIMMED
            weight = weight / max(usual, MIN_NOISE if len(occupied) >= MANY_CELLS else 1.0)
        sums = np.stack([degrees[occupied], weight, weight * level])
        return cls(occupied, len(degrees), sums, min_obs)

    def places(self) -> IntArray:
        """Places of edges: the ends of runs of cells."""
        return np.append(np.arange(0, self.n_cells, self.step), self.n_cells)

    def cost(self, begin: IntArray, end: IntArray) -> FloatArray:
        """Cost of bins without the penalty; infinite where rows are too few.

        The sum of squares of all cells, which all partitions have in common, is left out.
        """
        rows, weight, level = self.running[:, end] - self.running[:, begin]
        return np.where(rows >= self.needed, -_ratio(level**2, weight), np.inf)

    def best(self, places: IntArray, penalty: float) -> IntArray:
        """The exact optimum with edges at ``places``, by T(j) = min_l T(l) + B(l, j)."""
        n = len(places) - 1
        costs = self.cost(places[None, :-1], places[1:, None]) + penalty
        total, previous = np.full(n + 1, np.inf), np.zeros(n + 1, dtype=np.int64)
        total[0] = 0.0
        for end in range(1, n + 1):
            reached = total[:end] + costs[end - 1, :end]
            start = int(reached.argmin())
            previous[end], total[end] = start, reached[start]
        edges = [n]
        while edges[-1] > 0:
            edges.append(int(previous[edges[-1]]) if np.isfinite(total[edges[-1]]) else 0)
        return places[edges[::-1]]

    def beside(self, edges: IntArray) -> IntArray:
        """Places of edges: all cells within a run of cells from these edges."""
        places = edges[1:-1, None] + np.arange(1 - self.step, self.step)
        return np.unique(np.append([0, self.n_cells], places.clip(0, self.n_cells)))

    def pruned(self, edges: IntArray, penalty: float) -> IntArray:
        """Edges on whose two sides the log variance differs, by the noise of the two bins."""
        while len(edges) > 2:
            _, weight, level = np.diff(self.running[:, edges], axis=1)
            gain = np.diff(level / weight) ** 2 / (1 / weight[1:] + 1 / weight[:-1])
            weakest = int(gain.argmin())
            if gain[weakest] >= penalty:
                break
            edges = np.delete(edges, weakest + 1)
        return edges
