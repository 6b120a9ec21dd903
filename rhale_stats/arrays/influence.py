"""How a curve depends on the means and slopes of its bins and on its rows: covariances.

A curve is linear in the parameters of its bins. Its centred value at z is sum_k (level_k(z) mean_k
+ tilt_k(z) slope_k) less, for a population mean, what the rows' own places add; `loadings` are
level and tilt, (points, bins). All errors of the curve follow from these.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
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

    def less(self, other: Loadings) -> Loadings:
        """The difference of two."""
        return Loadings(self.level - other.level, self.tilt - other.tilt)


def loadings(pieces: Pieces, z: FloatArray, centering: str) -> Loadings:
    """math [26] and [25] at any points within the pieces; those by slopes are 0 without slopes.

    A ``centering`` that is a number, as text, is the point at which the curve is 0.
    """
    return _behind(pieces, z[:, None]).less(_subtracted(pieces, centering))


def edge_loadings(pieces: Pieces, centering: str) -> tuple[Loadings, Loadings]:
    """The same at the edges of the pieces, (..., bin): of bins on the left of an edge, and others.

    At all edges on one side of a bin the curve depends on the bin alike.
    """
    subtracted = _subtracted(pieces, centering)
    width, none = np.diff(pieces.edges, axis=-1), np.zeros(pieces.mean.shape)
    whole = Loadings(width, _area(width, pieces))
    return whole.less(subtracted), Loadings(none, none).less(subtracted)


def _behind(pieces: Pieces, z: FloatArray) -> Loadings:
    """Loadings of the curve that begins at 0."""
    width = np.diff(pieces.edges, axis=-1)
    level = np.clip(z - pieces.edges[..., :-1], 0.0, width)
    return Loadings(level, _area(level, pieces))


def _subtracted(pieces: Pieces, centering: str) -> Loadings:
    """Loadings of what is subtracted from the curve that begins at 0, (..., bin)."""
    left, width, share = pieces.edges[..., :-1], np.diff(pieces.edges, axis=-1), pieces.share
    if centering == "start":
        none = np.zeros(width.shape)
        return Loadings(none, none)
    if centering == "integral":
        span = width.sum(axis=-1, keepdims=True)
        right = span - np.cumsum(width, axis=-1)
        # For the slope: its full contribution in the bins to the right, its mean in its own bin.
        within = (left - pieces.x_mean) * width**2 / 2 + width**3 / 6
        return Loadings(
            (right * width + width**2 / 2) / span,
            np.where(_is_bent(pieces), right * _area(width, pieces) + within, 0.0) / span,
        )
    if centering != "mean":
        return _behind(pieces, np.array(float(centering)))
    beyond = np.cumsum(share[..., ::-1], axis=-1)[..., ::-1] - share
    reach = pieces.x_mean - left
    bend = np.where(_is_bent(pieces), share * (pieces.x_variance - reach**2) / 2, 0.0)
    return Loadings(beyond * width + share * reach, beyond * _area(width, pieces) + bend)


def _is_bent(pieces: Pieces) -> NDArray[np.bool_]:
    """Whether a curve has slopes anywhere, (..., 1)."""
    return np.asarray((pieces.slope != 0).any(axis=-1, keepdims=True))


def _area(behind: FloatArray, pieces: Pieces) -> FloatArray:
    """Integral of t - x_mean over the first part, of width ``behind``, of every bin.

    0 for a curve without slopes.
    """
    from_left = pieces.edges[..., :-1] - pieces.x_mean
    return np.where(_is_bent(pieces), behind * from_left + behind**2 / 2, 0.0)


class OwnPlaces(NamedTuple):
    """Covariance that the sampling of x adds to a curve centred at its population mean.

    ``alone`` is the variance of the mean of the curve over the rows; ``with_mean`` and
    ``with_slope`` its covariances with the bins' parameters.
    """

    alone: FloatArray
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
    x3, x4, x2r, x3r, _, _ = np.moveaxis(line, -1, 0)
    mean, bend, var, share = pieces.mean, pieces.slope / 2, pieces.x_variance, pieces.share
    away = level - np.sum(share * level, axis=-1, keepdims=True)
    x1, r, x2 = np.zeros(share.shape), np.zeros(share.shape), var
    if squares is not None:
        x1, x2, r, x_covariance = np.moveaxis(squares[..., :4], -1, 0)
    if variance is not None:
        most = np.sqrt(np.where(variance >= 0, variance * x2, np.inf))
        x_covariance = np.clip(x_covariance, -most, most)
    # The place of a row above the mean of all: away + mean d + bend (d^2 - var).
    square = away**2 + 2 * away * (mean * x1 + bend * (x2 - var)) + mean**2 * x2
    square = square + 2 * mean * bend * (x3 - var * x1) + bend**2 * (x4 - 2 * var * x2 + var**2)
    linear = pieces.slope != 0
    with_mean = away * r + mean * x_covariance + bend * (x2r - var * r)
    of_slope = away * x_covariance + mean * x2r + bend * (x3r - var * x_covariance)
    with_slope = np.divide(of_slope, var, out=np.zeros(share.shape), where=linear)
    per_row = np.divide(share, n_effective, out=np.zeros(share.shape), where=n_effective > 0)
    return OwnPlaces(
        np.sum(per_row * share * square, axis=-1), per_row * with_mean, per_row * with_slope
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
