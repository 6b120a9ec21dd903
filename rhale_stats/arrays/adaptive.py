"""Bins by penalised squares, math [22], and what the choice of their edges adds to variances."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rhale_stats.arrays.binning import backtrack
from rhale_stats.arrays.moments import (
    FloatArray,
    IntArray,
    Moments,
    merge,
    n_effective,
    selected,
)

# E B(Z)^2 for two-sided Brownian motion B and Z the place of the maximum of B(t) - t^2.
OF_MAXIMUM = 1.5
# Rounds in which the distance over which the slope at an edge is taken settles; it shrinks by this
# factor in a round at most.
ROUNDS, SHRINKS = 4, 8


class Along(NamedTuple):
    """Running sums along an axis at the edges of cells: of the effect, its noise, and rows."""

    edges: FloatArray
    area: FloatArray
    noise: FloatArray
    rows: FloatArray

    @classmethod
    def from_cells(
        cls, edges: FloatArray, mean: FloatArray, variance: FloatArray, rows: FloatArray
    ) -> Along:
        """From the means of the cells, the variances of these means, and their rows."""
        width = np.diff(edges)
        finite = np.isfinite(mean) & np.isfinite(variance)
        parts = np.stack([mean * width, variance * width**2, rows])
        running = np.cumsum(np.where(finite, parts, 0.0), axis=1)
        return cls(edges, *np.pad(running, ((0, 0), (1, 0))))

    def added(self, ends: FloatArray, fits: FloatArray, widest: FloatArray) -> FloatArray:
        """Added variances of the integral on either side of edges between two fits.

        ``fits`` are the values of the two fits at every edge, and their slopes, (2, 2, edge).
        """
        (level, line), (step, bend) = fits.mean(axis=1), np.diff(fits, axis=1)[:, 0]
        away = widest
        for _ in range(ROUNDS):
            places = ends + away * np.array([[-1.0], [0.0], [1.0]])
            noise, rows = [
                np.diff(np.interp(places[::2], self.edges, running), axis=0)[0] / (2 * away)
                for running in (self.noise, self.rows)
            ]
            # Averages on both sides less the mean of the fits, signed as the second fit less the
            # first one is there.
            sides = np.diff(np.interp(places, self.edges, self.area), axis=0) / away - level
            sides += np.array([[0.5], [-0.5]]) * line * away
            second_less_first = step + np.array([[-0.5], [0.5]]) * bend * away
            before, after = np.where(second_less_first >= 0, sides, -sides)
            apart = np.maximum(after - before, 0.0)
            far = np.full(len(ends), np.inf)
            reach = np.divide(2 * np.sqrt(noise) * away, apart, out=far, where=apart > 0)
            reach = np.minimum(reach ** (2 / 3), widest)
            between = np.divide(apart, rows, out=np.zeros(len(ends)), where=rows > 0)
            added = OF_MAXIMUM * noise * reach + between**2
            away = np.minimum(np.maximum(2 * reach, away / SHRINKS), widest)
        return np.asarray(added)


def added_variance(
    along: Along, bin_of: IntArray, at_edges: FloatArray, slope: FloatArray
) -> FloatArray:
    """Added variance of the average of every bin.

    ``slope`` are those of the fits to the bins, ``at_edges`` their values at the left and the right
    edge of each bin, (2, bin).
    """
    first = np.flatnonzero(np.diff(bin_of, prepend=-1))
    inner = along.edges[first[1:]]
    width = np.diff(along.edges[first], append=along.edges[-1])
    fits = np.array([[at_edges[1, :-1], at_edges[0, 1:]], [slope[:-1], slope[1:]]])
    of_edges = along.added(inner, fits, np.minimum(width[:-1], width[1:]))
    # The ends of a gap are not chosen.
    of_edges = np.where(np.isfinite(fits).all(axis=(0, 1)), of_edges, 0.0)
    return np.asarray((np.append(of_edges, 0.0) + np.append(0.0, of_edges)) / width**2)


# --- bins by penalised squares --------------------------------------------------------------------


# Cells of the fine grid in a cell of the coarse one, on which the programme runs.
FINE = 10
# Number of last cells that the dynamic programme handles at a time: 64 x 1000 bins are half a
# megabyte for each array.
BLOCK_CELLS = 64
# The noise variance of a cell is that of so many rows around it, or of this share of all rows.
NOISE_ROWS, NOISE_SHARE = 100.0, 0.05
# It is at least this share of the variance of all local effects: a smooth effect without noise is
# told to a few hundredths of its spread, and not by as many bins as there may be.
MIN_NOISE = 1e-3
# And this share of the average noise: where the noise is least, bins are no finer than a reader of
# the whole axis has use for.
MIN_SHARE = 0.3
# Running sums of squares are exact to about this share of all of them.
ROUNDING = 8 * float(np.finfo(np.float64).eps)


class Penalties(NamedTuple):
    """Penalties besides the squared residuals, in noise variances.

    ``edge`` is the lambda of math [22], ``parameter`` what each parameter of a bin costs.
    ``lines``: bins may be linear. Neighbours are not joined if one fit to both is worse by
    ``split`` noise variances for each parameter that is saved. ``refine``: edges move on the fine
    grid.
    """

    edge: float
    split: float
    parameter: float = 4.0
    lines: bool = True
    refine: bool = True


class FineCells(NamedTuple):
    """The cells of one feature: their edges, and the number of cells to a coarse one.

    ``gaps`` are the cells that no row of all is in (math [11]); no bin reaches over them.
    """

    edges: FloatArray
    fine: int = FINE
    gaps: NDArray[np.bool_] | None = None

    def stretches(self) -> list[slice]:
        """The cells between gaps, and each gap by itself."""
        n_cells = len(self.edges) - 1
        gap = np.flatnonzero(self.gaps) if self.gaps is not None else np.zeros(0, dtype=np.int64)
        bounds = np.unique(np.concatenate([[0], gap, gap + 1, [n_cells]])).tolist()
        return [slice(begin, end) for begin, end in pairwise(bounds)]


class Sums(NamedTuple):
    """Sums over rows: w, w^2; and of 1, z, z^2, g, z g, g^2, each times w / v; any shape.

    v is the noise variance where the row is.
    """

    weight: FloatArray
    weight_sq: FloatArray
    per_noise: FloatArray
    z: FloatArray
    zz: FloatArray
    g: FloatArray
    zg: FloatArray
    gg: FloatArray


class Fits(NamedTuple):
    """The mean and the straight line fitted to bins, by their effective rows and squared residuals.

    ``rows`` is Kish's number (math [6]). Residuals are in units of the noise around them, and are
    summed as if so many rows counted 1 each.
    """

    rows: FloatArray
    constant: FloatArray
    line: FloatArray


def adaptive_partition(
    cells: Moments,
    grid: FineCells,
    *,
    penalties: Penalties,
    min_obs: float,
    resolution: float,
) -> tuple[IntArray, NDArray[np.bool_]]:
    """First cells of the bins of one feature, and which of the bins are linear.

    Parameters
    ----------
    cells : Moments
        Of shape (fine * coarse cells,).
    grid : FineCells
    penalties : Penalties
    min_obs, resolution : float
        Smallest effective number of rows of a bin; difference below which local effects are equal.
    """
    starts, linear = [], []
    for part in grid.stretches():
        moments = selected(cells, part)
        own_grid = FineCells(grid.edges[part.start : part.stop + 1], grid.fine)
        if not moments.weight.any():
            starts.append(np.array([part.start]))
            linear.append(np.array([False]))
            continue
        partition = _partition(_PartitionSearch(moments, own_grid, penalties, min_obs, resolution))
        starts.append(part.start + partition[0])
        linear.append(partition[1])
    return np.concatenate(starts), np.concatenate(linear)


def _partition(search: _PartitionSearch) -> tuple[IntArray, NDArray[np.bool_]]:
    """First cells of the bins of a stretch without gaps, and which of them are linear."""
    if search.rows < search.needed:
        return np.zeros(1, dtype=np.int64), np.zeros(1, dtype=bool)
    edges = search.partition()
    # Where the effect is steep, neighbours differ by more than noise. Search again with the noise
    # of the fit.
    of_fit = search.noise_of_fit(edges)
    if (of_fit < search.noise).any():
        search.set_noise(np.minimum(search.noise, of_fit))
        edges = search.partition()
    return edges[:-1], search.is_linear(edges)


class _PartitionSearch:
    """Running sums of one feature, which give the sums of any bin between edges of fine cells."""

    def __init__(
        self,
        cells: Moments,
        grid: FineCells,
        penalties: Penalties,
        min_obs: float,
        resolution: float,
    ) -> None:
        everything = merge(cells, np.array([0]))
        occupied = cells.weight > 0
        low, span = grid.edges[0], grid.edges[-1] - grid.edges[0]
        z = np.where(occupied, (cells.x_mean - low) / span - 0.5, 0.0)
        g = np.where(occupied, cells.mean - everything.mean, 0.0)
        w = cells.weight
        none = np.zeros(len(w))
        x_m2, xg = [none if part is None else part for part in (cells.x_m2, cells.xg)]
        # Sums of w times the products of `Sums`, before they are divided by the noise.
        self.plain = np.stack(
            [
                w,
                w * z,
                w * z**2 + x_m2 / span / span,
                w * g,
                w * z * g + xg / span,
                w * g**2 + cells.m2,
            ]
        )
        self.weights, self.occupied = np.stack([w, cells.weight_sq]), occupied
        self.n_cells, self.fine = len(w), grid.fine
        n_coarse = max(len(w) // grid.fine, 1)
        half = np.arange(n_coarse // 2 + 1) * len(w) // n_coarse
        # The same from either end.
        self.coarse_ends = np.union1d(half, len(w) - half)
        self.weighted = not np.array_equal(cells.weight, cells.weight_sq)
        self.penalties = penalties
        # A little below, so that rounding in a sum of weights does not make a bin infeasible.
        self.needed = max(min_obs, 2) * (1 - 1e-12)
        # With many rows the rounding of running sums exceeds that, and what rounding may have made
        # is no reason for an edge.
        spread = float(everything.m2[0] / everything.weight[0])
        self.rows = float(n_effective(everything)[0])
        self.floor = resolution**2 + max(MIN_NOISE, ROUNDING * self.rows) * spread
        self.floor += (ROUNDING * float(everything.mean[0])) ** 2
        self.set_noise(self.noise_of_neighbours())

    def set_noise(self, noise: FloatArray) -> None:
        """Take this as the noise variance of the cells."""
        self.noise = noise
        # Without any spread there is nothing to tell apart.
        noise = np.maximum(noise, self.floor or 1.0)
        noise = np.maximum(noise, MIN_SHARE * np.average(noise, weights=self.weights[0]))
        self.cells = Sums(*self.weights, *(self.plain / noise))
        self.running = np.zeros((len(self.cells), self.n_cells + 1))
        np.cumsum(self.cells, axis=1, out=self.running[:, 1:])
        # What rounding leaves of the spread of places that are all the same.
        self.no_spread = 64 * np.finfo(np.float64).eps * self.running[4, -1]

    def between(self, begin: IntArray, end: IntArray) -> Sums:
        """Sums over cells ``begin`` to ``end``, which may be arrays to broadcast."""
        if not self.weighted:
            return Sums(*(self.running.take(end, axis=1) - self.running.take(begin, axis=1)))
        begin, end = np.broadcast_arrays(begin, end)
        # Weights may differ by many powers of ten: every bin is summed by itself.
        bounds = np.stack([begin, end], axis=-1)
        sums = np.add.reduceat(np.pad(self.cells, ((0, 0), (0, 1))), bounds.ravel(), axis=1)
        return Sums(*sums[:, ::2].reshape(-1, *bounds.shape[:-1]))

    def fits(self, sums: Sums) -> Fits:
        """Mean and line of bins, from their sums."""
        w, w2, per_noise, z, zz, g, zg, gg = sums
        with np.errstate(invalid="ignore", divide="ignore"):
            to_rows = w / w2
            spread = zz - z * z / per_noise
            constant = np.maximum(gg - g * g / per_noise, 0.0)
            explained = (zg - z * g / per_noise) ** 2 / spread
            explained[~(spread > self.no_spread)] = 0.0
            line = np.maximum(constant - explained, 0.0)
            return Fits(w * to_rows, constant * to_rows, line * to_rows)

    def costs(self, fits: Fits) -> tuple[FloatArray, NDArray[np.bool_]]:
        """math [22]: costs of bins, infinite where rows are too few, and which are linear."""
        n, penalties = fits.rows, self.penalties
        with np.errstate(invalid="ignore", divide="ignore"):
            penalty = penalties.edge + penalties.parameter
            cost = fits.constant + penalty * np.maximum(fits.constant / (n - 1), 1.0)
            linear = np.zeros(n.shape, dtype=bool)
            if penalties.lines:
                penalty += penalties.parameter
                sloped = fits.line + penalty * np.maximum(fits.line / (n - 2), 1.0)
                linear = (sloped < cost) & (n > 2 * (1 + 1e-12))
                cost = np.where(linear, sloped, cost)
            return np.where(n >= self.needed, cost, np.inf), linear

    def is_linear(self, edges: IntArray) -> NDArray[np.bool_]:
        """Which of the bins between these edges are linear."""
        return self.costs(self.fits(self.between(edges[:-1], edges[1:])))[1]

    def noise_of_neighbours(self) -> FloatArray:
        """math [13]: variance within cells and between means of neighbours, around every cell."""
        w, _, _, g, _, gg = self.plain[:, self.occupied]
        rows, mean = self._rows(), g / w
        # Of every cell, and of every step between two, in their order.
        squares, degrees = np.ones((2, 2 * len(w) - 1))
        squares[::2], degrees[::2] = np.maximum(gg - w * mean**2, 0.0) * rows / w, rows - 1
        squares[1::2] = np.diff(mean) ** 2 / (1 / rows[1:] + 1 / rows[:-1])
        return self._around(squares, degrees, 2)

    def noise_of_fit(self, edges: IntArray) -> FloatArray:
        """Variance of the residuals of the bins, around every cell."""
        bins = self.between(edges[:-1], edges[1:])
        fits = self.fits(bins)
        linear = self.costs(fits)[1]
        with np.errstate(invalid="ignore", divide="ignore"):
            slope = bins.zg - bins.z * bins.g / bins.per_noise
            slope = np.where(linear, slope / (bins.zz - bins.z**2 / bins.per_noise), 0.0)
            level = (bins.g - slope * bins.z) / bins.per_noise
            free = 1 - (1 + linear) / fits.rows
        bin_of = np.repeat(np.arange(len(edges) - 1), np.diff(edges))[self.occupied]
        a, b = level[bin_of], slope[bin_of]
        w, z, zz, g, zg, gg = self.plain[:, self.occupied]
        squares = gg - 2 * (a * g + b * zg) + a * a * w + 2 * a * b * z + b * b * zz
        rows = self._rows()
        return self._around(np.maximum(squares, 0.0) * rows / w, rows * free[bin_of], 1)

    def _rows(self) -> FloatArray:
        """Effective rows of the cells with rows."""
        w, w2 = self.weights[:, self.occupied]
        return np.asarray(w**2 / w2)

    def _around(self, squares: FloatArray, degrees: FloatArray, step: int) -> FloatArray:
        """Variance around every cell, from squares of which every ``step``-th is that of a cell."""
        total, sums = [np.append(0.0, np.cumsum(part)) for part in (degrees, squares)]
        most = total[-1]
        window = min(max(NOISE_ROWS, NOISE_SHARE * most), most)
        noise = np.full(self.n_cells, self.floor)
        if window > 0:
            low = np.clip((total[1:] + total[:-1] - window)[::step] / 2, 0.0, most - window)
            before, until = np.interp([low, low + window], total, sums)
            noise[self.occupied] = np.maximum((until - before) / window, self.floor)
        return noise

    def partition(self) -> IntArray:
        """Edges of the bins, given the noise."""
        edges = self.centred(self.coarse())
        if self.penalties.refine:
            edges = self.centred(self.refined(edges))
        return self.pruned(edges)

    def coarse(self) -> IntArray:
        """The exact optimum with edges on the coarse grid, by T(j) = min_l T(l) + B(l, j)."""
        n_coarse = len(self.coarse_ends) - 1
        best = np.full(n_coarse + 1, np.inf)
        best[0] = 0.0
        previous = np.zeros(n_coarse + 1, dtype=np.int64)
        for ends, fits in self._coarse_fits(n_coarse):
            costs = self.costs(fits)[0]
            for row, end in enumerate(ends):
                total = costs[row, :end] + best[:end]
                start = int(total.argmin())
                previous[end], best[end] = start, total[start]
        return np.asarray(self.coarse_ends[np.append(backtrack(previous), n_coarse)])

    def _coarse_fits(self, n_coarse: int) -> Iterator[tuple[list[int], Fits]]:
        """Fits of all bins on the coarse grid, (end, begin), by blocks of ends."""
        for first in range(0, n_coarse, BLOCK_CELLS):
            ends = np.arange(first + 1, min(first + BLOCK_CELLS, n_coarse) + 1)
            yield ends.tolist(), self.fits(self._block(np.arange(ends[-1]), ends))

    def _block(self, begins: IntArray, ends: IntArray) -> Sums:
        """Sums of all bins from ``begins`` to ``ends`` on the coarse grid, (end, begin)."""
        if not self.weighted:
            return self.between(self.coarse_ends[begins][None, :], self.coarse_ends[ends][:, None])
        # Sums without differences of running sums, for all bins with the same end at once.
        inside = begins < ends[:, None]
        sums = []
        for part in self.cells:
            coarse = np.add.reduceat(part, self.coarse_ends[:-1])[: len(begins)]
            terms = np.where(inside, coarse, 0.0)
            sums.append(np.cumsum(terms[:, ::-1], axis=1)[:, ::-1])
        return Sums(*sums)

    def refined(self, edges: IntArray) -> IntArray:
        """The exact optimum if every edge may move by less than a coarse cell."""
        if len(edges) == 2:
            return edges
        shift = np.arange(1 - self.fine, self.fine)
        places = edges[:, None] + shift
        places[0], places[-1] = edges[0], edges[-1]
        is_place = (places >= 0) & (places <= self.n_cells)
        places = np.where(is_place, places, 0)
        begin, end = places[:-1, :, None], places[1:, None, :]
        allowed = (begin < end) & is_place[:-1, :, None] & is_place[1:, None, :]
        costs, _ = self.costs(self.fits(self.between(begin, end)))
        costs[~allowed] = np.inf
        best = np.zeros(len(shift))
        previous = []
        for cost in costs:
            total = best[:, None] + cost
            previous.append(total.argmin(axis=0))
            best = total.min(axis=0)
        candidate = int(best.argmin())
        moved = [int(places[-1, candidate])]
        for place, back in zip(places[-2::-1], previous[::-1], strict=True):
            candidate = int(back[candidate])
            moved.append(int(place[candidate]))
        return np.array(moved[::-1])

    def centred(self, edges: IntArray) -> IntArray:
        """Edges among cells without rows, where all places cost the same, in their middle."""
        occupied = np.flatnonzero(self.occupied)
        following = np.searchsorted(occupied, edges[1:-1])
        both = occupied[following - 1] + 1 + occupied[following]
        # The same from either end.
        inner = np.where(both > self.n_cells, both // 2, (both + 1) // 2)
        return np.concatenate([edges[:1], inner, edges[-1:]])

    def pruned(self, edges: IntArray) -> IntArray:
        """Edges that a test of one fit against two fits keeps; the weakest are removed first."""
        while len(edges) > 2:
            sums = np.array(self.between(edges[:-1], edges[1:]))
            gain = self._gain(sums)
            weakest = int(gain.argmin())
            if gain[weakest] >= self.penalties.split:
                break
            edges = np.delete(edges, weakest + 1)
        return edges

    def _gain(self, sums: FloatArray) -> FloatArray:
        """How much worse one fit to two neighbouring bins is, in noise variances per parameter."""
        fits = self.fits(Sums(*sums))
        linear = self.costs(fits)[1]
        residual = np.where(linear, fits.line, fits.constant)
        variance = np.maximum(residual / (fits.rows - 1 - linear), 1.0)
        union = Sums(*(sums[:, 1:] + sums[:, :-1]))
        together = self.fits(union)
        # Residuals of both, in units of rows of the union.
        raw = residual * sums[1] / sums[0]
        apart = (raw[1:] + raw[:-1]) * union.weight / union.weight_sq
        # A step between two bins is as uncertain as their means.
        parts = 1 / fits.rows
        noise = (variance[1:] * parts[1:] + variance[:-1] * parts[:-1]) / (parts[1:] + parts[:-1])
        n_apart = 2 + linear[1:].astype(int) + linear[:-1]
        gain = (together.constant - apart) / noise / (n_apart - 1)
        if self.penalties.lines:
            gain = np.minimum(gain, (together.line - apart) / noise / np.maximum(n_apart - 2, 1))
        return np.asarray(gain)
