"""Fine cells of one axis, from which the curve is accumulated, whatever the bins are.

The curve is the integral of the average effect mu(z) along the axis. In a wide bin with most rows
at one end, the mean over the rows is not the average of mu(z) along the axis; in cells of a few
rows each the two agree. F at any edge is the sum of (mean of a cell) x (width of the cell), math
[7], and the effect of a bin is that sum over its own cells, divided by its width, math [12].
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from rhale_stats.arrays import binning
from rhale_stats.arrays.binning import sorting
from rhale_stats.arrays.moments import FloatArray, IntArray

T = TypeVar("T", bound=np.generic)
# Rows of a cell, and the largest number of cells of one axis; chosen by the study ``weighting``.
CELL_ROWS, MAX_CELLS = 15, 400
# A cell that is wider than this share of the inner range is divided, and has fewer rows.
MAX_WIDTH, MIN_ROWS = 0.05, 3
# Two neighbours are the ends of a gap if they are this many times as far apart as the rows around
# them, with few rows on a side more, with few places on a side, as zeros are, three times as many;
# and by more than this share of the inner range. Beyond a gap are at least this share of the rows,
# and five rows, because tails are sparse anyway. Fewer rows suffice so many inner ranges away, as
# coded values are.
GAP_SPACINGS, SPACINGS_OF_FEW, GAP_SHARE, GAP_ROWS, TAIL_SPACINGS = 10.0, 100.0, 0.1, 0.02, 10.0
# Number of neighbours on each side that give the usual distance.
NEIGHBOURS = 10


def along_axis(width: FloatArray, occupied: FloatArray, bin_of: IntArray) -> FloatArray:
    """Weight of every cell in the average along its bin: its share of the width that has rows."""
    width = np.where(occupied > 0, width, 0.0)
    total = np.bincount(bin_of, width)[bin_of]
    return np.divide(width, total, out=np.zeros(len(width)), where=total > 0)


def effects(mean: FloatArray, weight: FloatArray, bin_of: IntArray) -> FloatArray:
    """Averages along the bins from means of cells, (..., cell) -> (..., bin); NaN without rows."""
    starts = np.flatnonzero(np.diff(bin_of, prepend=-1))
    parts = np.where(weight > 0, mean, 0.0) * weight
    total = np.add.reduceat(weight, starts)
    return np.where(total > 0, np.add.reduceat(parts, starts, axis=-1), np.nan)


def sums_in_bins(sums: FloatArray, bin_of: IntArray) -> FloatArray:
    """Sums in bins from those in their cells, (..., cell) -> (..., bin)."""
    return np.add.reduceat(sums, np.flatnonzero(np.diff(bin_of, prepend=-1)), axis=-1)


def slope_correlation(
    products: FloatArray,
    width: FloatArray,
    weight: FloatArray,
    bin_of: IntArray,
    slope: FloatArray,
) -> FloatArray:
    """Correlation of the average along a bin with the slope of its line, by influences of rows.

    ``products`` are sums of the products `LEVEL_POWERS` in the cells of the curve.
    """
    level_of = along_axis(width, weight, bin_of)
    factor = np.divide(level_of, weight, out=np.zeros(len(level_of)), where=weight > 0)
    both, level, tilt = sums_in_bins(products * np.stack([factor, factor**2, factor**0]), bin_of)
    with np.errstate(invalid="ignore", divide="ignore"):
        is_sloped = (slope != 0) & (level > 0) & (tilt > 0)
        return np.where(is_sloped, np.clip(both / np.sqrt(level * tilt), -1.0, 1.0), 0.0)


def union(a: NDArray[T], b: NDArray[T]) -> NDArray[T]:
    """All values of two ascending arrays, each once: many times as fast as ``np.union1d``."""
    both = np.concatenate([a, b])
    both.sort(kind="stable")
    return distinct(both)


def distinct(values: NDArray[T]) -> NDArray[T]:
    """Ascending values, each once: ten times as fast as ``np.unique``."""
    new = np.empty(len(values), dtype=bool)
    new[:1] = True
    np.not_equal(values[1:], values[:-1], out=new[1:])
    return values[new]


def nested_edges(
    x: FloatArray,
    weight: FloatArray | None,
    bins: FloatArray,
    n_cells: float,
    *,
    frequency: bool = False,
    least: float = MIN_ROWS,
    ordered: bool = False,
    gaps: FloatArray | None = None,
    rows: FloatArray | None = None,
) -> FloatArray:
    """Edges of about ``n_cells`` cells of equal weight, every edge of ``bins`` among them.

    Weights of ``frequency`` count repeated rows, others are on any scale. Cells that would be wide
    are halved while they have rows enough, ``least`` in either half. An edge lies midway between
    two neighbouring values, so that rows stand on both sides of it alike, ties included. A gap is a
    cell of its own; no other cell inside a bin is without rows. ``ordered``: ``x`` is sorted.
    """
    if not ordered:
        order = None if weight is None else sorting(x)
        x = np.sort(x) if order is None else x[order]
        weight = None if weight is None else weight[order]
    running = _running_sums(weight, len(x))
    if gaps is None:
        gaps = gap_edges(x, weight)
    fixed = union(bins, gaps)
    fixed = fixed[(fixed >= bins[0]) & (fixed <= bins[-1])]
    first = np.searchsorted(x, fixed)
    first[-1] = len(x)
    below = running[first]
    # Cells of every stretch between fixed edges, by its share of the weight.
    mass = np.diff(below)
    n_parts = np.where(mass > 0, np.maximum(np.rint(n_cells * mass / running[-1]), 1), 0)
    n_parts = n_parts.astype(int)
    stretch = np.repeat(np.arange(len(n_parts)), n_parts)
    number = np.arange(len(stretch)) - np.repeat(np.cumsum(n_parts) - n_parts, n_parts)
    inner = number > 0
    stretch, number = stretch[inner], number[inner]
    rank = below[stretch] + mass[stretch] * number / n_parts[stretch]
    # Sums of weights that are no whole numbers may round.
    left = _rows_at(running, rank * (1 - 1e-12))
    left = np.searchsorted(x, x[left], side="right") - 1  # the last of its ties
    inside = left + 1 < first[stretch + 1]
    left = distinct(left[inside])
    edges = union(fixed, _between(x[left], x[left + 1]))
    low, high = x[_rows_at(running, running[-1] * np.array([0.01, 0.99]) * (1 - 1e-12))]
    # Widths of rounded values are the same but for rounding; edges of a grid stand beside them.
    beside = 1e-9 * (high - low) + 64 * np.spacing(np.abs(edges).max())
    if not frequency and (weight is not None or rows is not None):
        running = _running_sums(rows, len(x))
    return _halved(x, running, edges, MAX_WIDTH * (high - low) + beside, least)


def _running_sums(weight: FloatArray | None, n_rows: int) -> FloatArray:
    """Sums of the weights of the first 0, 1, ... rows; rows without weights count one each."""
    if weight is None:
        return np.arange(n_rows + 1.0)
    return np.concatenate([[0.0], np.cumsum(weight)])


def _rows_at(running: FloatArray, totals: FloatArray) -> IntArray:
    """The rows with which running sums reach these totals."""
    return np.searchsorted(running[1:], totals)


def _halved(
    x: FloatArray, running: FloatArray, edges: FloatArray, widest: float, least: float
) -> FloatArray:
    """Edges of cells no wider than ``widest``, unless they have too few rows; ``x`` ascends."""
    while True:
        first = np.searchsorted(x, edges)
        first[-1] = len(x)
        below = running[first]
        n_rows = np.diff(below)
        wide = np.flatnonzero((np.diff(edges) > widest) & (n_rows >= 2 * least))
        begin, end = below[wide], below[wide + 1]
        half = begin + n_rows[wide] // 2
        left, right = np.searchsorted(running, half - np.array([[1], [0]]), side="right") - 1
        # Rows at one place stay together.
        tied = x[left] == x[right]
        right = np.where(tied, np.searchsorted(x, x[right], side="right"), right)
        few = (running[right] - begin < least) | (end - running[right] < least)
        right = right[~few]
        if not len(right):
            return edges
        edges = union(edges, _between(x[right - 1], x[right]))


def gap_edges(x: FloatArray, weight: FloatArray | None = None) -> FloatArray:
    """Ends of the stretches without rows among sorted values, next to the rows on both sides."""
    if len(x) < NEIGHBOURS:
        return np.zeros(0)
    apart = np.diff(x)
    if apart.all():
        first, places = None, x
    else:
        first = np.append(0, np.flatnonzero(apart) + 1)
        places, apart = x[first], apart[first[1:] - 1]
    if len(places) < NEIGHBOURS:
        return np.zeros(0)
    # Distances of distinct values, so that repeated rows do not change them.
    inner = places[int(0.99 * (len(places) - 1))] - places[int(np.ceil(0.01 * (len(places) - 1)))]
    wide = np.flatnonzero(apart > GAP_SHARE * inner) if inner > 0 else np.zeros(0, dtype=np.int64)
    edges = []
    running = np.cumsum(weight) if len(wide) and weight is not None else None
    for gap in wide:
        row = gap + 1 if first is None else first[gap + 1]
        share = row / len(x) if running is None else running[row - 1] / running[-1]
        beyond = min(row, len(x) - row)
        is_tail = min(share, 1 - share) < GAP_ROWS or beyond < NEIGHBOURS // 2
        if is_tail and apart[gap] <= TAIL_SPACINGS * inner:
            continue
        sides = apart[max(gap - NEIGHBOURS, 0) : gap], apart[gap + 1 : gap + 1 + NEIGHBOURS]
        usual = [side.mean() for side in sides if len(side) >= NEIGHBOURS // 2]
        factor = (GAP_SPACINGS + SPACINGS_OF_FEW / beyond) * (1 if len(usual) == len(sides) else 3)
        if apart[gap] > factor * max(usual, default=np.inf):
            # The last value is the end of the axis, and has a cell of its own before it.
            end = (
                places[gap + 1] if gap + 2 < len(places) else np.nextafter(places[gap + 1], -np.inf)
            )
            edges += [np.nextafter(places[gap], np.inf), end]
    return np.array(edges)


def count_edges(
    x: FloatArray,
    weight: FloatArray | None,
    low: float,
    high: float,
    n_cells: int,
    *,
    gaps: FloatArray | None = None,
) -> FloatArray:
    """Edges of cells of equal weight from ``low`` to ``high``, midway between neighbouring values.

    A gap is a cell of its own. There are at most ``n_cells`` others, and as many as values.
    ``gaps`` are what `gap_edges` finds, if it is known, of values that ascend.
    """
    if gaps is None and not binning.ascends(x):
        order = sorting(x)
        x, weight = x[order], None if weight is None else weight[order]
    running = _running_sums(weight, len(x))
    if gaps is None:
        gaps = gap_edges(x, weight)
    last = _rows_at(running, running[-1] * np.arange(1, n_cells) / n_cells * (1 - 1e-12))
    last = distinct(np.searchsorted(x, x[last], side="right") - 1)
    last = last[last + 1 < len(x)]
    inner = _between(x[last], x[last + 1])
    # No edge inside a gap.
    inner = inner[np.searchsorted(gaps, inner, side="right") % 2 == 0]
    edges = union(inner, gaps)
    return np.concatenate([[low], edges[(edges > low) & (edges < high)], [high]])


def inner_ends(edges: FloatArray, weight: FloatArray) -> tuple[float, float]:
    """Ends of the cells that hold the inner 98 % of the weight."""
    below = np.cumsum(weight) / weight.sum()
    first, last = np.searchsorted(below, [0.01, 0.99])
    return float(edges[first]), float(edges[last + 1])


def without_empty(edges: FloatArray, x: FloatArray, fixed: FloatArray | None = None) -> FloatArray:
    """Edges of cells, of which those without rows are joined to the cell before; no wide stretch.

    Of a part of the rows, cells from each value to the next may have none. Edges that are ``fixed``
    stay: a cell to the right of one is joined to the cell after it.
    """
    if len(edges) < 3:
        return edges
    n_rows = np.bincount(binning.bin_index(edges, x), minlength=len(edges) - 1)
    empty = np.flatnonzero(n_rows == 0)
    if not len(empty):
        return edges
    stays = np.isin(edges, edges[[0, -1]] if fixed is None else fixed)
    joined = np.zeros(len(edges), dtype=bool)
    for run in np.split(empty, np.flatnonzero(np.diff(empty) > 1) + 1):
        if edges[run[-1] + 1] - edges[run[0]] <= GAP_SHARE * (edges[-1] - edges[0]):
            joined[run + stays[run[0]]] = True
    return edges[stays | ~joined]


def _between(left: FloatArray, right: FloatArray) -> FloatArray:
    """Midpoints, above the value on the left of each."""
    middle = left + (right - left) / 2
    return np.where(middle > left, middle, right)


def divided(starts: IntArray, places: IntArray, rows: FloatArray, least: float) -> IntArray:
    """First fine cells of the cells that begin at ``starts`` and at ``places``, too.

    A place that would leave a cell fewer than ``least`` of the ``rows`` gives way to the nearest
    start.
    """
    before = np.append(0.0, np.cumsum(rows))
    for place in places[(places > 0) & (places < len(rows))]:
        number = int(np.searchsorted(starts, place, side="right"))
        ends = np.append(starts, len(rows))[[number - 1, number]]
        if np.abs(before[ends] - before[place]).min() >= least:
            starts = np.insert(starts, number, place)
    return starts
