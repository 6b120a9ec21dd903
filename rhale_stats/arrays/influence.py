"""How a curve depends on the means and slopes of its bins and on its rows: covariances.

A curve is linear in the parameters of its bins. Its centred value at z is sum_k (level_k(z) mean_k
+ tilt_k(z) slope_k) less, for a population mean, what the rows' own places add; `loadings` are
level and tilt, (points, bins). All errors of the curve follow from these.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from rhale_stats.arrays import accumulate
from rhale_stats.arrays.accumulate import Noise, Pieces
from rhale_stats.arrays.moments import FloatArray, IntArray

# Number of rows whose influences on a curve are in memory at once.
BLOCK_ROWS = 1 << 14


class Loadings(NamedTuple):
    """Derivatives of the centred curve at points by the bins' means and slopes, (point, bin)."""

    level: FloatArray
    tilt: FloatArray


def loadings(pieces: Pieces, z: FloatArray, centering: str) -> Loadings:
    """math [26] and [25] at any points within the pieces; those by slopes are 0 without slopes.

    A ``centering`` that is a number, as text, is the point at which the curve is 0.
    """
    left, width = pieces.edges[:-1], np.diff(pieces.edges)
    level = behind = np.clip(z[:, None] - left, 0.0, width)
    is_bent = bool(pieces.slope.any())
    tilt = _area(behind, pieces) if is_bent else np.zeros(behind.shape)
    if centering == "start":
        return Loadings(level, tilt)
    if centering == "integral":
        span = width.sum()
        right = span - np.cumsum(width)
        mean_level = (right * width + width**2 / 2) / span
        # For the slope: its full contribution in the bins to the right, its mean in its own bin.
        from_left = left - pieces.x_mean
        within = from_left * width**2 / 2 + width**3 / 6
        mean_tilt = (right * _area(width, pieces) + within) / span
        return Loadings(level - mean_level, tilt - mean_tilt if is_bent else tilt)
    if centering != "mean":
        at_zero = loadings(pieces, np.array([float(centering)]), "start")
        return Loadings(level - at_zero.level, tilt - at_zero.tilt)
    beyond = np.cumsum(pieces.share[::-1])[::-1] - pieces.share
    reach = pieces.x_mean - left
    mean_level = beyond * width + pieces.share * reach
    if is_bent:
        bend = pieces.share * (pieces.x_variance - reach**2) / 2
        tilt = tilt - beyond * _area(width, pieces) - bend
    return Loadings(level - mean_level, tilt)


def _area(behind: FloatArray, pieces: Pieces) -> FloatArray:
    """Integral of t - x_mean over the first part, of width ``behind``, of every bin."""
    from_left = pieces.edges[:-1] - pieces.x_mean
    return np.asarray(behind * from_left + behind**2 / 2)


class OwnPlaces(NamedTuple):
    """Covariance that the sampling of x adds to a curve centred at its population mean.

    ``alone`` is the variance of the mean of the curve over the rows; ``with_mean`` and
    ``with_slope`` its covariances with the bins' parameters.
    """

    alone: float
    with_mean: FloatArray
    with_slope: FloatArray


def own_places(
    curve: FloatArray,
    pieces: Pieces,
    x_covariance: FloatArray,
    line: FloatArray,
    n_effective: FloatArray,
    squares: FloatArray | None = None,
    variance: FloatArray | None = None,
) -> OwnPlaces:
    """From the moments of the bins: F is a parabola in each, so that no rows are needed.

    ``x_covariance`` is the mean of d r, ``line`` has those of `LINE_POWERS`. ``squares`` has the
    means over squared precision weights, of which d and r are not 0. Where the ``variance`` of r is
    partly that of neighbours, the covariance is at most what it allows: else the variance of a
    curve could be negative.
    """
    level = accumulate.mean_in_bins(curve, pieces)
    x3, x4, x2r, x3r, _, _ = line.T
    mean, bend, var, share = pieces.mean, pieces.slope / 2, pieces.x_variance, pieces.share
    away = level - np.sum(share * level)
    x1, r, x2 = np.zeros(len(share)), np.zeros(len(share)), var
    if squares is not None:
        x1, x2, r, x_covariance = squares.T[:4]
    if variance is not None:
        most = np.sqrt(np.where(variance >= 0, variance * x2, np.inf))
        x_covariance = np.clip(x_covariance, -most, most)
    # The place of a row above the mean of all: away + mean d + bend (d^2 - var).
    square = away**2 + 2 * away * (mean * x1 + bend * (x2 - var)) + mean**2 * x2
    square = square + 2 * mean * bend * (x3 - var * x1) + bend**2 * (x4 - 2 * var * x2 + var**2)
    linear = pieces.slope != 0
    with_mean = away * r + mean * x_covariance + bend * (x2r - var * r)
    with_slope = np.zeros(len(share))
    of_slope = away * x_covariance + mean * x2r + bend * (x3r - var * x_covariance)
    with_slope[linear] = of_slope[linear] / var[linear]
    per_row = share / n_effective
    return OwnPlaces(
        float(np.sum(per_row * share * square)), per_row * with_mean, per_row * with_slope
    )


def covariance(loadings: Loadings, noise: Noise, places: OwnPlaces | None) -> FloatArray:
    """Covariance of the curve between points, (point, point)."""
    level, tilt = loadings
    # Bins on which a curve does not depend may be unknown: 0 times NaN is 0 here.
    unknown = np.isnan(noise.mean)
    estimated = Noise(*[np.where(unknown, 0.0, part) for part in noise])
    total = (level * estimated.mean) @ level.T
    if tilt.any():
        mixed = (level * estimated.covariance) @ tilt.T
        total = total + (tilt * estimated.slope) @ tilt.T + mixed + mixed.T
    reached = ((level != 0) & unknown).any(axis=1)
    total[reached] = total[:, reached] = np.nan
    if places is not None:
        shared = level @ places.with_mean + tilt @ places.with_slope
        total = total + places.alone - shared[:, None] - shared
    return np.asarray(total)


def parts(loadings: Loadings, noise: Noise) -> FloatArray:
    """Part of every bin's noise in the variance of the curve, (point, bin)."""
    reached = (loadings.level != 0) | (loadings.tilt != 0)
    return np.where(reached, noise.variance_along(loadings.level, loadings.tilt), 0.0)


def variance(loadings: Loadings, by_bin: FloatArray, places: OwnPlaces | None = None) -> FloatArray:
    """Variance of the curve, (point,), from its `parts`; not below 0."""
    total = np.sum(by_bin, axis=1)
    if places is not None:
        total = total + places.alone
        total = total - 2 * (loadings.level @ places.with_mean + loadings.tilt @ places.with_slope)
    return np.asarray(np.maximum(total, 0.0))


class RowSums(NamedTuple):
    """Influences of groups of rows: sparse (group, bin) on the bins' mean, slope and variance.

    ``places`` is that on the mean of the curve over the rows, ``average`` that on the mean of all.

    Influences are such that their squares, summed over groups, are variances.
    """

    mean: sparse.csr_array
    slope: sparse.csr_array
    variance: sparse.csr_array
    places: FloatArray
    average: FloatArray

    def n_groups(self) -> IntArray:
        """Groups that have rows in every bin, (bin,)."""
        return np.bincount(self.mean.indices, minlength=self.mean.shape[1])

    def within(self, bins: slice) -> RowSums:
        """Those on some of the bins, and on the same means over rows."""
        mean, slope, variance = (part[:, bins] for part in (self.mean, self.slope, self.variance))
        return RowSums(mean, slope, variance, self.places, self.average)

    def of_curve(
        self, loadings: Loadings, *, population: bool, rows: slice = slice(None)
    ) -> FloatArray:
        """Influence of groups on the curve at points, (group, point)."""
        total = self.mean[rows] @ loadings.level.T + self.slope[rows] @ loadings.tilt.T
        return np.asarray(total - self.places[rows, None] if population else total)
