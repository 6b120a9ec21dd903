"""Fine cells of one axis, from which the curve is accumulated whatever bins stand above them.

The curve is the integral of the average effect mu(z) along the axis. The mean of the rows of a wide
bin is not the average of mu(z) over it where rows crowd at one end; over cells of a few rows each
the two agree. F at any edge is the sum of (mean of a cell) x (width of the cell), math [7], and the
effect of a bin is that sum over its own cells, divided by its width, math [12].
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rhale_stats.arrays import binning
from rhale_stats.arrays import moments as sums
from rhale_stats.arrays.moments import FloatArray, IntArray, Moments

# Rows of a cell, and the largest number of cells of one axis; chosen by the study ``weighting``.
CELL_ROWS, MOST_CELLS = 15, 400
# No rows between two neighbours this many times as far apart as those around them are, and by this
# share of the inner range, is a gap. Among independent rows it has a probability of exp(-30).
GAP_SPACINGS, GAP_SHARE = 30.0, 0.1
# Neighbours on each side from which the usual distance is taken.
AROUND = 10


class Cells(NamedTuple):
    """Cells of one axis, each within one bin, and their moments; last axis: cells.

    ``bin`` is the bin of every cell. A cell without rows is a gap: its mean is NaN.
    """

    edges: FloatArray
    bin: IntArray
    n_obs: FloatArray
    weight: FloatArray
    weight_sq: FloatArray
    mean: FloatArray
    variance: FloatArray
    x_mean: FloatArray
    x_variance: FloatArray
    x_covariance: FloatArray

    @property
    def width(self) -> FloatArray:
        """Widths of the cells."""
        return np.diff(self.edges)

    @property
    def share(self) -> FloatArray:
        """Shares of the weight."""
        return np.asarray(self.weight / self.weight.sum())

    @property
    def n_effective(self) -> FloatArray:
        """Kish's effective number of rows, math [6]; 0 in an empty cell."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.nan_to_num(self.weight**2 / self.weight_sq)


def along_axis(width: FloatArray, occupied: FloatArray, bin_of: IntArray) -> FloatArray:
    """Weight of every cell in the average along its bin: its share of the bin's width with rows."""
    width = np.where(occupied > 0, width, 0.0)
    total = np.bincount(bin_of, width)[bin_of]
    return np.divide(width, total, out=np.zeros(len(width)), where=total > 0)


def effects(mean: FloatArray, weight: FloatArray, bin_of: IntArray) -> FloatArray:
    """Averages along the bins from means of cells, (..., cell) -> (..., bin); NaN without rows."""
    starts = np.flatnonzero(np.diff(bin_of, prepend=-1))
    parts = np.where(weight > 0, mean, 0.0) * weight
    total = np.add.reduceat(weight, starts)
    return np.where(total > 0, np.add.reduceat(parts, starts, axis=-1), np.nan)


def nested_edges(
    x: FloatArray, counts: FloatArray | None, bins: FloatArray, n_cells: float
) -> FloatArray:
    """Edges of about ``n_cells`` cells of equal weight, every edge of ``bins`` among them.

    An edge lies midway between two neighbouring values, so that rows stand on both sides of it
    alike, ties included. A gap is a cell of its own; no other cell inside a bin is without rows.
    """
    order = np.argsort(x) if counts is not None else None
    x = np.sort(x) if order is None else x[order]
    running = np.arange(1.0, len(x) + 1) if order is None else np.cumsum(counts[order])  # type: ignore[index]
    fixed = np.union1d(bins, gap_edges(x))
    fixed = fixed[(fixed >= bins[0]) & (fixed <= bins[-1])]
    first = np.searchsorted(x, fixed)
    first[-1] = len(x)
    below = np.concatenate([[0.0], running])[first]
    # Cells of every stretch between fixed edges, by its share of the weight.
    held = np.diff(below)
    asked = np.where(held > 0, np.maximum(np.rint(n_cells * held / running[-1]), 1), 0).astype(int)
    stretch = np.repeat(np.arange(len(asked)), asked)
    number = np.arange(len(stretch)) - np.repeat(np.cumsum(asked) - asked, asked)
    inner = number > 0
    stretch, number = stretch[inner], number[inner]
    rank = below[stretch] + held[stretch] * number / asked[stretch]
    # Sums of weights that are no whole numbers may round.
    left = np.searchsorted(running, rank * (1 - 1e-12))
    left = np.searchsorted(x, x[left], side="right") - 1  # the last of its ties
    known = left + 1 < first[stretch + 1]
    left = np.unique(left[known])
    return np.union1d(fixed, _between(x[left], x[left + 1]))


def gap_edges(x: FloatArray) -> FloatArray:
    """Ends of the stretches without rows among sorted values; the first is next to its row."""
    places = x[np.flatnonzero(np.diff(x, prepend=-np.inf))]
    if len(places) < AROUND:
        return np.zeros(0)
    inner = x[int(0.99 * (len(x) - 1))] - x[int(np.ceil(0.01 * (len(x) - 1)))]
    apart = np.diff(places)
    wide = np.flatnonzero(apart > GAP_SHARE * inner) if inner > 0 else np.zeros(0, dtype=np.int64)
    found = []
    for at in wide:
        sides = apart[max(at - AROUND, 0) : at], apart[at + 1 : at + 1 + AROUND]
        usual = max((side.mean() for side in sides if len(side) >= AROUND // 2), default=np.inf)
        if apart[at] > GAP_SPACINGS * usual:
            found += [np.nextafter(places[at], np.inf), places[at + 1]]
    return np.array(found)


def _between(left: FloatArray, right: FloatArray) -> FloatArray:
    """Midpoints, above the value on the left of each."""
    middle = left + (right - left) / 2
    return np.where(middle > left, middle, right)


def moments_in(
    edges: FloatArray,
    bins: FloatArray,
    x: FloatArray,
    g: FloatArray,
    weight: FloatArray | None,
    *,
    frequency: bool,
) -> Cells:
    """Moments of the cells between ``edges``, which hold those of the ``bins``."""
    axis = binning.variable_axis(edges)
    found = sums.cell_moments(axis, x, g, weight, frequency=frequency)
    bin_of = binning.bin_index(bins, (edges[:-1] + edges[1:]) / 2)
    within = sums.residual_moments(axis, np.arange(len(edges) - 1), found, x, g, weight)
    return Cells(
        edges,
        bin_of,
        found.n_obs,
        found.weight,
        found.weight_sq,
        found.mean,
        _with_pooled(found, bin_of),
        found.x_mean,
        within.x_variance,
        within.x_covariance,
    )


def _with_pooled(cells: Moments, bin_of: IntArray) -> FloatArray:
    """Variances of the cells, math [6]; where a cell has one row, that of its bin's cells together.

    Where no cell of its bin has two rows it is that of the nearest cell that has.
    """
    own = sums.variance(cells, 1)
    single = np.isnan(own) & (cells.weight > 0)
    if not single.any():
        return own
    n = sums.n_effective(cells)
    degrees = np.where(np.isnan(own), 0.0, n - 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        together = np.bincount(bin_of, degrees * np.nan_to_num(own)) / np.bincount(bin_of, degrees)
    found = np.where(single, together[bin_of], own)
    known = np.flatnonzero(~np.isnan(found))
    lacking = np.flatnonzero(single & np.isnan(found))
    if len(known) and len(lacking):
        found[lacking] = found[known[np.abs(lacking[:, None] - known).argmin(axis=1)]]
    return found
