"""Moments of local effects in the cells of one axis, in one compiled pass, and how they add up.

The compiled pass is boost-histogram's Welford accumulator: it centres before it squares, so that
an offset of 1e8 in the local effects costs no digits, and it releases the interpreter lock, so
that features run on threads.
"""

from __future__ import annotations

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


class ResidualMoments(NamedTuple):
    """Second pass, about the bin means: what standard errors need beyond the variance."""

    fourth_moment: FloatArray
    x_variance: FloatArray
    x_covariance: FloatArray


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


def variance(moments: Moments, ddof: int) -> FloatArray:
    """math [6]; NaN where there are too few rows to tell.

    ddof 1: sum w (g - mean)^2 / (sum w - sum w^2 / sum w); ddof 0: the same over sum w.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        denominator = moments.weight - ddof * moments.weight_sq / moments.weight
        return np.where(n_effective(moments) > ddof, moments.m2 / denominator, np.nan)


def residual_moments(
    axis: Axis,
    starts: IntArray,
    bins: Moments,
    x: FloatArray,
    g: FloatArray,
    weight: FloatArray | None,
) -> ResidualMoments:
    """Fourth central moment of g, variance of x and covariance of x with g, per bin.

    A second pass about the means of the first, so that nothing cancels. All three are averages
    (weighted, over sum w): the fourth moment is the m4 of math [24], the other two enter the
    variance of the centred curve, math [26].
    """
    # One more cell for the overflow: the rows at the upper end belong to the last bin.
    n_cells = len(axis) + 1
    length = np.diff(np.append(starts, n_cells))
    mean, x_mean = np.repeat(bins.mean, length), np.repeat(bins.x_mean, length)
    sums = np.zeros((3, n_cells))
    # Fresh columns in every block would cost more than the arithmetic on them.
    columns = np.empty((3, min(len(x), BLOCK_ROWS)))
    for begin in range(0, len(x), BLOCK_ROWS):
        block = slice(begin, begin + BLOCK_ROWS)
        cell = cell_index(axis, x[block])
        fourth, distance, residual = columns[:, : len(cell)]
        mean.take(cell, mode="clip", out=residual)
        np.subtract(g[block], residual, out=residual)
        x_mean.take(cell, mode="clip", out=distance)
        np.subtract(x[block], distance, out=distance)
        np.square(residual, out=fourth)
        np.square(fourth, out=fourth)
        residual *= distance
        np.square(distance, out=distance)
        for total, term in zip(sums, (fourth, distance, residual), strict=True):
            if weight is not None:
                term *= weight[block]
            total += np.bincount(cell, term, n_cells)
    with np.errstate(invalid="ignore", divide="ignore"):
        return ResidualMoments(*(np.add.reduceat(sums, starts, axis=1) / bins.weight))
