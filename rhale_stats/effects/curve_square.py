"""The mean square of a curve over the rows, and what noise adds to it (math [32])."""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rhale_stats.arrays import categories, influence, quadratic
from rhale_stats.arrays.accumulate import Pieces
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.effects.fit import Fit, bin_degrees, has_covariance
from rhale_stats.schema.features import stores_errors
from rhale_stats.schema.moments import has_cells


def square_of_levels(row: xr.Dataset) -> quadratic.Square:
    """Of a feature with levels, whose curve is given at these."""
    share, curve = row["level_share"].values, row["curve"].values
    weight = np.diag(share) - np.outer(share, share)
    if "curve_cov" not in row:
        return _unknown(curve, weight)
    degrees = bin_degrees(row)
    if stores_errors(row):
        denominator = float(degrees.min())
    else:
        # As if steps were independent.
        at = categories.loadings(share, np.arange(len(share), dtype=np.float64), "mean").level
        parts = np.einsum("ek,ef,fk->k", at, weight, at) * np.diagonal(row["effect_cov"].values)
        denominator = _satterthwaite(parts, degrees)
    return quadratic.square(curve, weight, row["curve_cov"].values, denominator)


def _satterthwaite(parts: FloatArray, degrees: FloatArray) -> float:
    if not parts.any():
        return np.inf  # known without error
    with np.errstate(invalid="ignore", divide="ignore"):
        return float(parts.sum() ** 2 / np.sum(np.where(parts > 0, parts**2 / degrees, 0.0)))


def square_of_curve(row: xr.Dataset, fit: Fit) -> quadratic.Square:
    """Of a feature with an axis: of the values of the curve at edges, and of its slopes."""
    pieces = fit.pieces
    linear = np.flatnonzero(pieces.slope != 0)
    third, fourth = (fit.cells.line[fit.cells.here][:, at] for at in (0, 1))
    weight = moments_of_rows(pieces, third, fourth, linear)
    value = np.concatenate([fit.curve, pieces.slope[linear]])
    at = influence.loadings(pieces, pieces.edges, "start")
    if not has_covariance(row):
        covariance = influence.covariance(at, fit.noise, None)
        if len(linear):
            # The same sums for the slopes: each is estimated in its own bin.
            shared = at.level * fit.noise.covariance + at.tilt * fit.noise.slope
            covariance = _blocks(covariance, shared[:, linear], np.diag(fit.noise.slope[linear]))
        # What every cell adds to the expectation.
        hats = weight[: len(pieces.edges), : len(pieces.edges)]
        parts = np.einsum("ek,ef,fk->k", at.level, hats, at.level) * fit.noise.mean
        every = np.zeros((1, len(fit.cells.bin)))
        every[:, fit.cells.here] = np.nan_to_num(parts)
        expected = np.array([every.sum()])
        denominator = float(fit.cells.sources(every).satterthwaite(expected)[0])
    else:
        covariance = _stored(row, fit, linear)
        denominator = float(bin_degrees(row).min())
    return quadratic.square(value, weight, covariance, denominator)


def _stored(row: xr.Dataset, fit: Fit, linear: NDArray[np.intp]) -> FloatArray:
    """The covariance that standard errors by groups left behind."""
    if has_cells(row):
        here = slice(fit.cells.here.start, fit.cells.here.stop + 1)
        return np.asarray(row["cell_curve_cov"].values[here, here])
    here = slice(fit.cells.here.start, fit.cells.here.stop + 1)
    covariance = row["curve_cov"].values[here, here]
    if len(linear):
        bins = linear + fit.cells.here.start
        shared = row["curve_slope_cov"].values[here][:, bins]
        covariance = _blocks(covariance, shared, row["slope_cov"].values[np.ix_(bins, bins)])
    return np.asarray(covariance)


def _blocks(first: FloatArray, shared: FloatArray, second: FloatArray) -> FloatArray:
    return np.block([[first, shared], [shared.T, second]])


def _unknown(value: FloatArray, weight: FloatArray) -> quadratic.Square:
    none = float("nan")
    return quadratic.Square(float(value @ weight @ value), none, none, none, none)


def moments_of_rows(
    pieces: Pieces, third: FloatArray, fourth: FloatArray, linear: NDArray[np.intp]
) -> FloatArray:
    """Covariance over the rows of what a curve is a sum of: (edge and slope, edge and slope).

    Between two edges a curve is (1 - u) F_l + u F_r, u the place of the row, and below that by
    slope (x - l)(r - x) / 2 in a linear bin.
    """
    n, share = len(pieces.mean), pieces.share
    width, x2 = np.diff(pieces.edges), pieces.x_variance
    left, right = pieces.x_mean - pieces.edges[:-1], pieces.edges[1:] - pieces.x_mean
    both = share * (left * right - x2) / width**2
    mean = np.zeros(n + 1 + len(linear))
    mean[:n] += share * right / width
    mean[1 : n + 1] += share * left / width
    total = np.zeros((len(mean), len(mean)))
    at = np.arange(n)
    total[at, at] += share * (right**2 + x2) / width**2
    total[at + 1, at + 1] += share * (left**2 + x2) / width**2
    total[at, at + 1] = total[at + 1, at] = both
    if len(linear):
        p, a, b, v, h = (one[linear] for one in (share, left, right, x2, width))
        m3, m4 = third[linear], fourth[linear]
        bump = n + 1 + np.arange(len(linear))
        inside = a * b - v
        mean[bump] = -p * inside / 2
        square = (a * b) ** 2 + (b - a) ** 2 * v + m4 - 2 * a * b * v - 2 * (b - a) * m3
        total[bump, bump] = p * square / 4
        rising = (a * inside + (b - a) * v - m3) / h
        total[bump, linear + 1] = total[linear + 1, bump] = -p * rising / 2
        falling = inside - rising
        total[bump, linear] = total[linear, bump] = -p * falling / 2
    return np.asarray(total - np.outer(mean, mean))
