"""Moments of local effects in the cells of one axis, in one compiled pass, and how they add up.

The compiled pass is boost-histogram's Welford accumulator: it centres before it squares, so that
an offset of 1e8 in the local effects costs no digits, and it releases the interpreter lock, so
that features run on threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import boost_histogram as bh
import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
Axis: TypeAlias = bh.axis.Regular | bh.axis.Variable

# Rows are handled in blocks of this many where a pass needs temporary columns: 2 MB a column.
BLOCK_ROWS = 1 << 18
# A centre for arithmetic, nothing else, is the median of about so many rows.
CENTRE_ROWS = 1000
# Exponents of d and r in the moments of `ResidualMoments`, and in those that lines need besides.
RESIDUAL_POWERS = ((0, 3), (0, 4), (2, 0), (1, 1))
LINE_POWERS = ((3, 0), (4, 0), (2, 1), (3, 1), (1, 2), (2, 2))
# Values this many ranges away from 0 are summed as offsets, so that they keep their digits.
FAR = 16.0


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
    """Sums of w (x - x_mean)^2 and of w (x - x_mean)(g - mean) per cell: what a line needs."""

    x_m2: FloatArray
    xg: FloatArray


class ResidualMoments(NamedTuple):
    """Second pass, about the bins' means or lines: what standard errors need beyond the variance.

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
    axis: Axis, x: FloatArray, g: FloatArray, weight: FloatArray | None, *, frequency: bool
) -> Moments:
    """Moments of ``g`` in the cells that ``axis`` makes of ``x`` (rows,) -> (cells,).

    ``x`` at or above the axis's upper end belongs to the last cell (math [4]: closed on both
    sides); the axis must reach down to ``min(x)``.
    """
    centre = 0.0
    if weight is None:
        view = _filled(axis, bh.storage.Mean(), x, sample=g)
        rows = total = total_sq = view["count"]
        mean, m2 = view["value"], view["_sum_of_deltas_squared"]
    else:
        # The weighted update rounds the first value of a cell: m2 would keep eps g^2.
        centre = float(np.median(g[:: len(g) // CENTRE_ROWS + 1]))
        if frequency:
            view = _filled(axis, bh.storage.Mean(), x, weight=weight, sample=g - centre)
            rows = total = total_sq = view["count"]
            mean, m2 = view["value"], view["_sum_of_deltas_squared"]
        else:
            view = _filled(axis, bh.storage.WeightedMean(), x, weight=weight, sample=g - centre)
            total, total_sq = view["sum_of_weights"], view["sum_of_weights_squared"]
            mean, m2 = view["value"], view["_sum_of_weighted_deltas_squared"]
            rows = _filled(axis, bh.storage.Int64(), x).astype(np.float64)
    origin = _origin(axis)
    x_sum = _sum_of_offsets(axis, x, weight, origin)
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


def _origin(axis: Axis) -> float:
    """Where sums of x start: 0, unless x is a small range far from it, as time stamps are."""
    low, high = float(axis.edges[0]), float(axis.edges[-1])
    return 0.0 if max(abs(low), abs(high)) < FAR * (high - low) else low


def _sum_of_offsets(
    axis: Axis, x: FloatArray, weight: FloatArray | None, origin: float
) -> FloatArray:
    """Sum of w (x - origin) per cell."""
    histogram = bh.Histogram(axis, storage=bh.storage.Double())
    if weight is None and origin == 0:
        histogram.fill(x, weight=x)
        return _cells(histogram)
    buffer = np.empty(min(len(x), BLOCK_ROWS))
    for begin in range(0, len(x), BLOCK_ROWS):
        block = x[begin : begin + BLOCK_ROWS]
        offset = np.subtract(block, origin, out=buffer[: len(block)])
        if weight is not None:
            offset *= weight[begin : begin + BLOCK_ROWS]
        histogram.fill(block, weight=offset)
    return _cells(histogram)


def _filled(
    axis: Axis,
    storage: bh.storage.Storage,
    x: FloatArray,
    *,
    weight: FloatArray | None = None,
    sample: FloatArray | None = None,
) -> NDArray[Any]:
    """Cells of one filled histogram, the overflow cell last."""
    histogram = bh.Histogram(axis, storage=storage)
    histogram.fill(x, weight=weight, sample=sample)
    return _cells(histogram)


def _cells(histogram: bh.Histogram[Any]) -> NDArray[Any]:
    """Contents from the first cell to the overflow; nothing is ever below the first cell."""
    return np.asarray(histogram.view(flow=True))[1:]


def cell_index(axis: Axis, x: FloatArray) -> IntArray:
    """Cell of every value, by the same compiled arithmetic that fills the cells."""
    # boost-histogram's annotation knows single values only.
    return np.asarray(axis.index(x)).astype(np.intp)  # type: ignore[arg-type]


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
    """math [6]; NaN where there are too few rows to tell.

    ddof 1: sum w (g - mean)^2 / (sum w - sum w^2 / sum w); ddof 0: the same over sum w. 2, of
    squares about a line, is exact where all weights are equal, and where they do not depend on x.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        denominator = moments.weight - ddof * moments.weight_sq / moments.weight
        # A little above: weights that make two rows may round to more.
        enough = n_effective(moments) > ddof * (1 + 1e-12)
        return np.where(enough, moments.m2 / denominator, np.nan)


def comoments(
    axis: Axis, cells: Moments, x: FloatArray, g: FloatArray, weight: FloatArray | None
) -> Comoments:
    """Spread of x and its product with g in cells, about the means that `cell_moments` found."""
    every = np.arange(len(cells.weight))
    return Comoments(*_central_sums(axis, every, cells, x, g, weight, None, ((2, 0), (1, 1))))


def merge_comoments(
    cells: Moments, within: Comoments, starts: IntArray, bins: Moments
) -> Comoments:
    """Those of unions of neighbouring cells, as `merge` makes their moments."""
    length = np.diff(np.append(starts, len(cells.weight)))
    away = _or_zero(cells.x_mean - np.repeat(bins.x_mean, length))
    above = _or_zero(cells.mean - np.repeat(bins.mean, length))
    return Comoments(
        np.add.reduceat(within.x_m2 + cells.weight * away**2, starts),
        np.add.reduceat(within.xg + cells.weight * away * above, starts),
    )


def residual_moments(
    axis: Axis,
    starts: IntArray,
    bins: Moments,
    x: FloatArray,
    g: FloatArray,
    weight: FloatArray | None,
    slope: FloatArray | None = None,
) -> ResidualMoments:
    """Moments of x and of the residuals of g, per bin; with ``slope`` those of lines as well.

    A second pass about the means of the first, so that nothing cancels. All are averages
    (weighted, over sum w): the fourth moment is the m4 of math [24], the others enter the
    variance of the centred curve, math [26].
    """
    powers = RESIDUAL_POWERS if slope is None else (*RESIDUAL_POWERS, (0, 2), *LINE_POWERS)
    with np.errstate(invalid="ignore", divide="ignore"):
        found = _central_sums(axis, starts, bins, x, g, weight, slope, powers) / bins.weight
        if slope is None:
            return ResidualMoments(bins.m2 / bins.weight, *found, None)  # type: ignore[call-arg]
        return ResidualMoments(found[4], *found[:4], found[5:].T)  # type: ignore[call-arg]


def _central_sums(
    axis: Axis,
    starts: IntArray,
    bins: Moments,
    x: FloatArray,
    g: FloatArray,
    weight: FloatArray | None,
    slope: FloatArray | None,
    powers: Sequence[tuple[int, int]],
) -> FloatArray:
    """Sum of w d^a r^b for the ``powers`` (a, b), per bin: (powers, bins)."""
    # One more cell for the overflow: the rows at the upper end belong to the last bin.
    n_cells = len(axis) + 1
    length = np.diff(np.append(starts, n_cells))
    mean, x_mean = np.repeat(bins.mean, length), np.repeat(bins.x_mean, length)
    slope = None if slope is None else np.repeat(slope, length)
    sums = np.zeros((len(powers), n_cells))
    # Fresh columns in every block would cost more than the arithmetic on them.
    columns = np.empty((5, min(len(x), BLOCK_ROWS)))
    for begin in range(0, len(x), BLOCK_ROWS):
        block = slice(begin, begin + BLOCK_ROWS)
        cell = cell_index(axis, x[block])
        d, r, d2, r2, product = columns[:, : len(cell)]
        x_mean.take(cell, mode="clip", out=d)
        np.subtract(x[block], d, out=d)
        mean.take(cell, mode="clip", out=r)
        np.subtract(g[block], r, out=r)
        if slope is not None:
            slope.take(cell, mode="clip", out=product)
            product *= d
            r -= product
        np.square(d, out=d2)
        np.square(r, out=r2)
        for total, (a, b) in zip(sums, powers, strict=True):
            factors = [d2] * (a // 2) + [d] * (a % 2) + [r2] * (b // 2) + [r] * (b % 2)
            if weight is not None:
                factors.append(weight[block])
            values = factors[0]
            for factor in factors[1:]:
                values = np.multiply(values, factor, out=product)
            total += np.bincount(cell, values, n_cells)
    return np.add.reduceat(sums, starts, axis=1)
