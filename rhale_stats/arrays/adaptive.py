"""Bins by penalised risk, math [22]: how many, where, and which of them need a slope.

Everything here is arithmetic on sums over the cells of one fine grid. Places are in units of the
axis, from -1/2 to 1/2, and local effects are taken about their mean, so that sums over a bin, which
are differences of running sums, keep their digits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rhale_stats.arrays.binning import backtrack
from rhale_stats.arrays.cells import GAP_SHARE, inner_ends
from rhale_stats.arrays.moments import (
    Comoments,
    FloatArray,
    IntArray,
    Moments,
    merge,
    n_effective,
)

# Cells of the fine grid in a cell of the coarse one, on which the programme runs.
FINE = 10
# Number of last cells that the dynamic programme handles at a time: 64 x 1000 bins are half a
# megabyte for each array.
BLOCK_CELLS = 64
# Of so many coarse cells the fits of all bins are kept for a second search.
FEW_CELLS = 256
# Running sums of squares are exact to about this share of all of them.
ROUNDING = 8 * float(np.finfo(np.float64).eps)


class Risk(NamedTuple):
    """Penalties besides the variance of the residuals, in variances of a mean.

    ``edge`` is the lambda of math [22], ``slope`` the same for the second parameter of a line
    (None: no lines). ``pooled``: the noise variance of a bin is at least that of all bins together.
    Neighbours are not joined if one fit to both is worse by ``split`` noise variances for each
    parameter that is saved. ``refine``: edges move on the fine grid.
    """

    edge: float
    slope: float | None
    split: float
    pooled: bool = True
    refine: bool = True


class Grid(NamedTuple):
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
    """Sums over rows: w, w^2, w z, w z^2, w g, w z g, w g^2; any shape."""

    weight: FloatArray
    weight_sq: FloatArray
    z: FloatArray
    zz: FloatArray
    g: FloatArray
    zg: FloatArray
    gg: FloatArray


class Fits(NamedTuple):
    """The mean and the straight line fitted to bins, by their effective rows and squared residuals.

    ``rows`` is Kish's number (math [6]); residuals are summed as if so many rows counted 1 each.
    """

    rows: FloatArray
    constant: FloatArray
    line: FloatArray


def adaptive_partition(
    cells: Moments,
    comoments: Comoments | None,
    grid: Grid,
    *,
    risk: Risk,
    min_obs: float,
    resolution: float,
) -> tuple[IntArray, NDArray[np.bool_]]:
    """First cells of the bins of one feature, and which of the bins are linear.

    Parameters
    ----------
    cells, comoments : Moments, Comoments
        Of shape (fine * coarse cells,). Comoments are needed for lines only.
    grid : Grid
    risk : Risk
    min_obs, resolution : float
        Smallest effective number of rows of a bin; difference below which local effects are equal.
    """
    starts, linear = [], []
    for part in grid.stretches():
        own = Moments(*(values[part] for values in cells))
        products = None if comoments is None else Comoments(*(one[part] for one in comoments))
        own_grid = Grid(grid.edges[part.start : part.stop + 1], grid.fine)
        if not own.weight.any():
            starts.append(np.array([part.start]))
            linear.append(np.array([False]))
            continue
        found = _partition(_Search(own, products, own_grid, risk, min_obs, resolution))
        starts.append(part.start + found[0])
        linear.append(found[1])
    return np.concatenate(starts), np.concatenate(linear)


def _partition(search: _Search) -> tuple[IntArray, NDArray[np.bool_]]:
    """First cells of the bins of a stretch without gaps, and which of them are linear."""
    if search.rows < search.needed:
        return np.zeros(1, dtype=np.int64), np.zeros(1, dtype=bool)
    noise = search.noise_of_neighbours()
    chosen = search.partition(noise)
    # Where the effect is steep, neighbours differ by more than noise. Search again with the noise
    # of the fit.
    of_fit = search.noise_of_fit(chosen, noise)
    if of_fit < noise:
        noise = of_fit
        chosen = search.partition(noise)
    return chosen[:-1], search.is_linear(chosen, noise)


class _Search:
    """Running sums of one feature, which give the sums of any bin between edges of fine cells."""

    def __init__(
        self,
        cells: Moments,
        comoments: Comoments | None,
        grid: Grid,
        risk: Risk,
        min_obs: float,
        resolution: float,
    ) -> None:
        everything = merge(cells, np.array([0]))
        occupied = cells.weight > 0
        low, span = grid.edges[0], grid.edges[-1] - grid.edges[0]
        z = np.where(occupied, (cells.x_mean - low) / span - 0.5, 0.0)
        g = np.where(occupied, cells.mean - everything.mean, 0.0)
        w = cells.weight
        x_m2, xg = (np.zeros(len(w)),) * 2 if comoments is None else comoments
        self.cells = Sums(
            w,
            cells.weight_sq,
            w * z,
            w * z**2 + x_m2 / span**2,
            w * g,
            w * z * g + xg / span,
            w * g**2 + cells.m2,
        )
        self.running = np.zeros((len(self.cells), len(w) + 1))
        np.cumsum(self.cells, axis=1, out=self.running[:, 1:])
        self.n_cells, self.fine = len(w), grid.fine
        # Ends of the coarse cells, and places of all edges. A cell in which one distant row stands
        # does not outweigh the others.
        n_coarse = max(len(w) // grid.fine, 1)
        half = np.arange(n_coarse // 2 + 1) * len(w) // n_coarse
        # The same from either end.
        self.coarse_ends = np.union1d(half, len(w) - half)
        low_end, high_end = inner_ends(grid.edges, w)
        width = np.minimum(np.diff(grid.edges), GAP_SHARE * (high_end - low_end))
        self.place = np.append(0.0, np.cumsum(width)) / width.mean()
        self.weighted = not np.array_equal(cells.weight, cells.weight_sq)
        # What rounding leaves of the spread of places that are all the same.
        self.no_spread = 64 * np.finfo(np.float64).eps * self.running[3, -1]
        self.risk = risk
        self.known: list[tuple[list[int], Fits, FloatArray]] | None = None
        # A little below, so that rounding in a sum of weights does not make a bin infeasible.
        self.needed = max(min_obs, 2) * (1 - 1e-12)
        # With many rows the rounding of running sums exceeds that, and what rounding may have made
        # is no reason for an edge.
        spread = float(everything.m2[0] / everything.weight[0])
        self.rows = float(n_effective(everything)[0])
        self.floor = resolution**2 + max(1e-12, ROUNDING * self.rows) * spread

    def between(self, begin: IntArray, end: IntArray) -> Sums:
        """Sums over cells ``begin`` to ``end``."""
        if not self.weighted:
            return Sums(*(self.running[:, end] - self.running[:, begin]))
        # Weights may differ by many powers of ten: every bin is summed by itself.
        bounds = np.stack([begin, end], axis=-1)
        sums = np.add.reduceat(np.pad(self.cells, ((0, 0), (0, 1))), bounds.ravel(), axis=1)
        return Sums(*sums[:, ::2].reshape(-1, *bounds.shape[:-1]))

    def fits(self, sums: Sums) -> Fits:
        """Mean and line of bins, from their sums."""
        w, w2, z, zz, g, zg, gg = sums
        with np.errstate(invalid="ignore", divide="ignore"):
            to_rows = w / w2
            spread = zz - z * z / w
            constant = np.maximum(gg - g * g / w, 0.0)
            explained = (zg - z * g / w) ** 2 / spread
            explained[~(spread > self.no_spread)] = 0.0
            line = np.maximum(constant - explained, 0.0)
            return Fits(w * to_rows, constant * to_rows, line * to_rows)

    def costs(
        self, fits: Fits, width: FloatArray, noise: float
    ) -> tuple[FloatArray, NDArray[np.bool_]]:
        """math [22]: risk of bins, infinite where rows are too few, and which are linear."""
        n, risk = fits.rows, self.risk
        least = noise if risk.pooled else self.floor
        with np.errstate(invalid="ignore", divide="ignore"):
            variance = fits.constant / (n - 1)
            cost = variance + risk.edge * np.maximum(variance, least) / n
            linear = np.zeros(n.shape, dtype=bool)
            if risk.slope is not None:
                variance = fits.line / (n - 2)
                sloped = variance + (risk.edge + risk.slope) * np.maximum(variance, least) / n
                linear = (sloped < cost) & (n > 2 * (1 + 1e-12))
                cost = np.where(linear, sloped, cost)
            cost *= width
            return np.where(n >= self.needed, cost, np.inf), linear

    def is_linear(self, edges: IntArray, noise: float) -> NDArray[np.bool_]:
        """Which of the bins between these edges are linear."""
        fits = self.fits(self.between(edges[:-1], edges[1:]))
        return self.costs(fits, np.diff(self.place[edges]), noise)[1]

    def noise_of_neighbours(self) -> float:
        """Variance within cells, and between means of neighbouring occupied cells (math [13])."""
        w, w2, _, _, g, _, gg = (part[self.cells.weight > 0] for part in self.cells)
        rows, mean = w**2 / w2, g / w
        within = np.maximum(gg - w * mean**2, 0.0) * w / w2
        apart = np.diff(mean) ** 2 / (1 / rows[1:] + 1 / rows[:-1])
        found = (within.sum() + apart.sum()) / max(float((rows - 1).sum()) + len(apart), 1.0)
        return max(float(found), self.floor)

    def noise_of_fit(self, edges: IntArray, noise: float) -> float:
        """Variance of the residuals of all bins together."""
        fits = self.fits(self.between(edges[:-1], edges[1:]))
        linear = self.costs(fits, np.diff(self.place[edges]), noise)[1]
        residual = np.where(linear, fits.line, fits.constant).sum()
        return max(float(residual / (fits.rows - 1 - linear).sum()), self.floor)

    def partition(self, noise: float) -> IntArray:
        """Edges of the bins, given the noise variance of all bins together."""
        edges = self.coarse(noise)
        if self.risk.refine:
            edges = self.refined(edges, noise)
        return self.pruned(edges, noise)

    def coarse(self, noise: float) -> IntArray:
        """The exact optimum with edges on the coarse grid, by T(j) = min_l T(l) + B(l, j)."""
        n_coarse = len(self.coarse_ends) - 1
        best = np.full(n_coarse + 1, np.inf)
        best[0] = 0.0
        previous = np.zeros(n_coarse + 1, dtype=np.int64)
        for ends, fits, width in self._coarse_fits(n_coarse):
            costs = self.costs(fits, width, noise)[0]
            for at, end in enumerate(ends):
                total = costs[at, :end] + best[:end]
                found = int(total.argmin())
                previous[end], best[end] = found, total[found]
        return np.asarray(self.coarse_ends[np.append(backtrack(previous), n_coarse)])

    def _coarse_fits(self, n_coarse: int) -> Iterable[tuple[list[int], Fits, FloatArray]]:
        """Fits of all bins on the coarse grid and their widths, (end, begin), by blocks of ends."""
        if n_coarse > FEW_CELLS:
            return self._fits_of_blocks(n_coarse)
        if self.known is None:  # the same whatever the noise is
            self.known = list(self._fits_of_blocks(n_coarse))
        return self.known

    def _fits_of_blocks(self, n_coarse: int) -> Iterator[tuple[list[int], Fits, FloatArray]]:
        place = self.place[self.coarse_ends]
        for first in range(0, n_coarse, BLOCK_CELLS):
            ends = np.arange(first + 1, min(first + BLOCK_CELLS, n_coarse) + 1)
            begins = np.arange(ends[-1])
            width = place[ends][:, None] - place[begins]
            yield ends.tolist(), self.fits(self._block(begins, ends)), width

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

    def refined(self, edges: IntArray, noise: float) -> IntArray:
        """The exact optimum if every edge may move by less than a coarse cell."""
        if len(edges) == 2:
            return edges
        shift = np.arange(1 - self.fine, self.fine)
        places = edges[:, None] + shift
        places[0], places[-1] = edges[0], edges[-1]
        begin, end = np.broadcast_arrays(places[:-1, :, None], places[1:, None, :])
        allowed = (begin < end) & (begin >= 0) & (end <= self.n_cells)
        begin, end = np.where(allowed, begin, 0), np.where(allowed, end, 0)
        width = self.place[end] - self.place[begin]
        costs, _ = self.costs(self.fits(self.between(begin, end)), width, noise)
        costs[~allowed] = np.inf
        best = np.zeros(len(shift))
        previous = []
        for cost in costs:
            total = best[:, None] + cost
            previous.append(total.argmin(axis=0))
            best = total.min(axis=0)
        at = int(best.argmin())
        moved = [int(places[-1, at])]
        for place, back in zip(places[-2::-1], previous[::-1], strict=True):
            at = int(back[at])
            moved.append(int(place[at]))
        return np.array(moved[::-1])

    def pruned(self, edges: IntArray, noise: float) -> IntArray:
        """Edges that a test of one fit against two fits keeps; the weakest are removed first."""
        while len(edges) > 2:
            sums = np.array(self.between(edges[:-1], edges[1:]))
            gain = self._gain(sums, np.diff(self.place[edges]), noise)
            weakest = int(gain.argmin())
            if gain[weakest] >= self.risk.split:
                break
            edges = np.delete(edges, weakest + 1)
        return edges

    def _gain(self, sums: FloatArray, width: FloatArray, noise: float) -> FloatArray:
        """How much worse one fit to two neighbouring bins is, in noise variances per parameter."""
        fits = self.fits(Sums(*sums))
        linear = self.costs(fits, width, noise)[1]
        residual = np.where(linear, fits.line, fits.constant)
        own = np.maximum(residual / (fits.rows - 1 - linear), noise)
        union = Sums(*(sums[:, 1:] + sums[:, :-1]))
        together = self.fits(union)
        # Residuals of both, in units of rows of the union.
        raw = residual * sums[1] / sums[0]
        apart = (raw[1:] + raw[:-1]) * union.weight / union.weight_sq
        known = 1 / fits.rows
        noise_here = (own[1:] * known[1:] + own[:-1] * known[:-1]) / (known[1:] + known[:-1])
        n_apart = 2 + linear[1:].astype(int) + linear[:-1]
        gain = (together.constant - apart) / noise_here / (n_apart - 1)
        if self.risk.slope is not None:
            sloped = (together.line - apart) / noise_here / np.maximum(n_apart - 2, 1)
            gain = np.minimum(gain, sloped)
        return np.asarray(gain)
