"""From bins to the curve: accumulation, spread, centring, noise of bins. Last axis: bins.

Functions take the bins of one feature and return values at its edges, one more than bins. The curve
is not accumulated across a bin without rows (math [11]): it is computed on one stretch of bins with
rows (`known_stretch`), and `at_edges` puts the values back on the whole axis.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaincinv

from rhale_stats.arrays.binning import bin_index
from rhale_stats.arrays.moments import FloatArray

# Smaller numbers count as 0.
TINY = 1e-12


class Pieces(NamedTuple):
    """Bins of one feature without gaps: in each a line through (x_mean, mean), usually of slope 0.

    ``x_variance`` is the variance of x in the bin, which is needed if there is a slope. ``share``
    is the share of the weight.
    """

    edges: FloatArray
    mean: FloatArray
    slope: FloatArray
    x_mean: FloatArray
    x_variance: FloatArray
    share: FloatArray

    def stretch(self, cells: slice) -> Pieces:
        """The bins of one stretch, their shares adding up to 1."""
        share = self.share[cells]
        return Pieces(
            self.edges[cells.start : cells.stop + 1],
            self.mean[cells],
            self.slope[cells],
            self.x_mean[cells],
            self.x_variance[cells],
            share / share.sum(),
        )

    def away(self) -> FloatArray:
        """Distance of the middle of the bin from the mean of its rows."""
        return (self.edges[..., :-1] + self.edges[..., 1:]) / 2 - self.x_mean


class Noise(NamedTuple):
    """Variances of the mean and of the slope of every bin, and their covariance."""

    mean: FloatArray
    covariance: FloatArray
    slope: FloatArray

    def variance_along(self, level: FloatArray, tilt: FloatArray) -> FloatArray:
        """Variance of level * mean + tilt * slope."""
        # Of rows at one place the slope is not known, and its part may be 0 times infinity.
        with np.errstate(invalid="ignore"):
            of_mean = level**2 * self.mean
            if not (self.covariance.any() or self.slope.any()):
                return np.asarray(of_mean)
            return np.asarray(of_mean + 2 * level * tilt * self.covariance + tilt**2 * self.slope)


def known_cells(weight: FloatArray) -> NDArray[np.bool_]:
    """The run of neighbouring cells with rows that has the largest weight, (..., cell)."""
    occupied = weight > 0
    begins = occupied.copy()
    begins[..., 1:] &= ~occupied[..., :-1]
    # Runs are counted over all features; of a feature's runs the first of the heaviest.
    run = np.cumsum(begins).reshape(weight.shape) * occupied
    total = np.bincount(run.ravel(), weight.ravel())
    total[:1] = -np.inf
    each = np.atleast_2d(run)
    heaviest = each[np.arange(len(each)), total[each].argmax(axis=-1)]
    return np.asarray(occupied & (run == heaviest.reshape((*weight.shape[:-1], 1))))


def known_stretch(weight: FloatArray) -> slice:
    """The same cells of one feature as a slice."""
    places = np.flatnonzero(known_cells(weight))
    return slice(int(places[0]), int(places[-1]) + 1)


def sums_at_edges(left: NDArray[Any], right: NDArray[Any]) -> FloatArray:
    """Sums over cells at their edges, (..., cell) -> (..., edge).

    A cell adds ``left`` at edges that it is on the left of, and ``right`` at the others.
    """
    none = np.zeros((*left.shape[:-1], 1))
    behind = np.concatenate([none, np.cumsum(left, axis=-1)], axis=-1)
    ahead = np.concatenate([none, np.cumsum(right[..., ::-1], axis=-1)], axis=-1)
    return np.asarray(behind + ahead[..., ::-1])


def at_edges(values: FloatArray, stretch: slice, n_bins: int) -> FloatArray:
    """Values at the edges of a stretch of bins, (edge, ...), as at all edges, NaN elsewhere."""
    out = np.full((n_bins + 1, *values.shape[1:]), np.nan)
    out[stretch.start : stretch.stop + 1] = values
    return out


def accumulate(effect: FloatArray, width: FloatArray) -> FloatArray:
    """math [7]: F_0 = 0, F_k = sum_{j<=k} mu_j width_j."""
    return _running_sum(effect * width)


def spread_along(
    curve: FloatArray, heterogeneity: FloatArray, width: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """``curve_std`` and ``curve_std_sum``, at the edges where the curve is known."""
    has_curve = np.isfinite(curve)
    width = np.where(has_curve[..., :-1] & has_curve[..., 1:], width, 0.0)
    heterogeneity = np.where(width > 0, heterogeneity, 0.0)
    both = curve_std(heterogeneity, width), curve_std_sum(heterogeneity, width)
    std, std_sum = np.where(has_curve, both, np.nan)
    return std, std_sum


def curve_std(heterogeneity: FloatArray, width: FloatArray) -> FloatArray:
    """math [9], Eq. 16 of the paper: sqrt(sum width^2 sigma^2). It depends on the bins."""
    return np.sqrt(_running_sum((heterogeneity * width) ** 2))


def curve_std_sum(heterogeneity: FloatArray, width: FloatArray) -> FloatArray:
    """math [9], as in the paper's figures: sum width sigma. It does not depend on the bins."""
    return _running_sum(heterogeneity * width)


def centred_curves(pieces: Pieces, centering: str) -> FloatArray:
    """math [7] and [8]: centred curves at the edges of their pieces, (..., edge).

    A ``centering`` that is a number, as text, is the point at which a curve is 0; one that does not
    reach so far is NaN.
    """
    width = np.diff(pieces.edges, axis=-1)
    curve = accumulate(pieces.mean + pieces.slope * pieces.away(), width)
    if centering == "start":
        return curve
    if centering == "mean":
        offset = mean_of_curve(curve, pieces)
    elif centering == "integral":
        offset = integral_of_curve(curve, width, pieces.slope)
    else:
        each = zip(*np.atleast_2d(pieces.edges, curve, pieces.slope), strict=True)
        zero = np.array([float(centering)])
        offset = np.ravel([curve_at(edges, values, slope, zero) for edges, values, slope in each])
    return np.asarray(curve - offset[..., None])


def mean_of_curve(curve: FloatArray, pieces: Pieces) -> FloatArray:
    """Mean of the curve over the rows, exact because its pieces are parabolas (math [8])."""
    return np.asarray(np.sum(pieces.share * mean_in_bins(curve, pieces), axis=-1))


def integral_of_curve(curve: FloatArray, width: FloatArray, slope: FloatArray) -> FloatArray:
    """Integral of the curve over the axis, over the length of the axis (math [8])."""
    area = width * (curve[..., :-1] + curve[..., 1:]) / 2 - slope * width**3 / 12
    with np.errstate(invalid="ignore"):
        return np.asarray(np.sum(area, axis=-1) / width.sum(axis=-1))


def mean_in_bins(curve: FloatArray, pieces: Pieces) -> FloatArray:
    """Mean of the curve over the rows of each bin."""
    reach = pieces.x_mean - pieces.edges[..., :-1]
    bend = pieces.slope / 2 * (pieces.x_variance - reach**2)
    return np.asarray(curve[..., :-1] + pieces.mean * reach + bend)


def curve_at(edges: FloatArray, curve: FloatArray, slope: FloatArray, z: FloatArray) -> FloatArray:
    """The curve at ``z``: through its values at the edges, bent where the effect has a slope.

    In a bin [l, r] it lies slope (z - l)(r - z) / 2 below the line through both ends. NaN outside.
    """
    on_lines = np.interp(z, edges, curve, left=np.nan, right=np.nan)
    if not slope.any():
        return np.asarray(on_lines)
    k = bin_index(edges, z)  # any bin for what lies outside, and is NaN
    return np.asarray(on_lines - slope[k] * (z - edges[k]) * (edges[k + 1] - z) / 2)


class Sizes(NamedTuple):
    """How large a curve is, centred at its mean over the rows; any leading axes.

    ``importance``: its standard deviation over the rows. ``aled``: its mean absolute value,
    ``aler_min`` and ``aler_max``: its extremes at edges (math [32], Okoli 2023).
    """

    importance: FloatArray
    aled: FloatArray
    aler_min: FloatArray
    aler_max: FloatArray


def sizes(curve: FloatArray, pieces: Pieces, third: FloatArray, fourth: FloatArray) -> Sizes:
    """Sizes of curves, (..., edge), from bins, (..., bin); central moments of x in them."""
    importance, centre = spread(curve, pieces, third, fourth)
    distance = mean_distance(curve[..., :-1] - centre, pieces)
    return Sizes(
        importance,
        np.sum(pieces.share * distance, axis=-1),
        np.min(curve - centre, axis=-1),
        np.max(curve - centre, axis=-1),
    )


def spread(
    curve: FloatArray, pieces: Pieces, third: FloatArray, fourth: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Standard deviation of curves over the rows, math [32], and their means, (..., 1)."""
    edges, mean, slope, x_mean, x2, share = pieces
    reach, bend = x_mean - edges[:-1], slope / 2
    level = curve[..., :-1] + mean * reach + bend * (x2 - reach**2)
    centre = np.sum(share * level, axis=-1, keepdims=True)
    within = mean**2 * x2 + 2 * mean * bend * third + bend**2 * (fourth - x2**2)
    variance = np.sum(share * ((level - centre) ** 2 + within), axis=-1)
    return np.sqrt(np.maximum(variance, 0.0)), centre


def mean_distance(left: FloatArray, pieces: Pieces) -> FloatArray:
    """Mean absolute value over the rows of a bin of a curve that is ``left`` at its left edge.

    Rows are assumed to have a beta distribution between the edges with their own mean and variance.
    This is exact if the curve does not change its sign in the bin, if rows are uniform, and if all
    rows lie on the edges. In a linear bin the mean is over two points, one standard deviation to
    either side of the mean of x.
    """
    edges, mean, slope, x_mean, x_variance, _ = pieces
    width = np.diff(edges)
    with np.errstate(invalid="ignore", divide="ignore"):
        position, v = np.clip((x_mean - edges[:-1]) / width, 0.0, 1.0), x_variance / width**2
        rise = mean * width
        root = np.clip(-left / rise, 0.0, 1.0)
        together = np.maximum(position * (1 - position) / v - 1, 0.0)
        a, b = np.maximum(position * together, TINY), np.maximum((1 - position) * together, TINY)
        below, moved = betainc(a, b, root), betainc(a + 1, b, root)
        away = root * (2 * below - 1) + position * (1 - 2 * moved)
        away = np.where(together <= TINY, position * (1 - root) + (1 - position) * root, away)
        away = np.where(v <= TINY, np.abs(position - root), away)
        crosses = (root > 0) & (root < 1)
        straight = np.where(crosses, np.abs(rise) * away, np.abs(left + rise * position))

    def distance(x: FloatArray) -> FloatArray:
        start = edges[:-1] - x_mean
        bend = slope / 2 * ((x - x_mean) ** 2 - start**2)
        return np.abs(left + mean * (x - edges[:-1]) + bend)

    spread = np.sqrt(np.maximum(x_variance, 0.0))
    bent = (distance(x_mean - spread) + distance(x_mean + spread)) / 2
    return np.asarray(np.where(slope == 0, straight, bent))


def places(pieces: Pieces, n: int) -> FloatArray:
    """Positions of rows in their bin, from 0 to 1 between its edges: ``n`` quantiles, (bin, n).

    Quantiles of the beta distribution with the mean and the variance of the rows.
    """
    width = np.diff(pieces.edges)
    share = (np.arange(n) + 0.5) / n
    with np.errstate(invalid="ignore", divide="ignore"):
        position = np.clip((pieces.x_mean - pieces.edges[:-1]) / width, 0.0, 1.0)[:, None]
        v = (pieces.x_variance / width**2)[:, None]
        together = np.maximum(position * (1 - position) / v - 1, 0.0)
        a, b = np.maximum(position * together, TINY), np.maximum((1 - position) * together, TINY)
        out = betaincinv(a, b, share)
    out = np.where(together <= TINY, share > 1 - position, out)
    return np.asarray(np.where(v <= TINY, position, out), dtype=np.float64)


def turning_points(edges: FloatArray, effect: FloatArray, slope: FloatArray) -> FloatArray:
    """Where the curve turns inside linear bins; ``effect`` is that in the middle of them."""
    middle, half = (edges[:-1] + edges[1:]) / 2, np.diff(edges) / 2
    inside = np.abs(effect) < np.abs(slope) * half
    return np.asarray((middle - np.divide(effect, slope, where=inside, out=half * 0))[inside])


def line_noise(
    variance: FloatArray,
    slope: FloatArray,
    x_variance: FloatArray,
    line: FloatArray,
    n_effective: FloatArray,
) -> Noise:
    """Variances and covariance of every bin's mean and slope.

    Of the slope as by White (1980), with the residuals' own spread along x; ``variance`` has its
    degrees of freedom already, and the same factor is put to the moments of residuals.
    """
    *_, xr2, x2r2 = np.moveaxis(line, -1, 0)
    linear = slope != 0
    with np.errstate(invalid="ignore", divide="ignore"):
        of_mean, factor = variance / n_effective, 1 / (n_effective - 2)
        covariance = np.where(linear, factor * xr2 / x_variance, 0.0)
        of_slope = np.where(linear, factor * x2r2 / x_variance**2, 0.0)
    return Noise(of_mean, covariance, of_slope)


def heterogeneity_se(
    variance: FloatArray, fourth_moment: FloatArray, n_effective: FloatArray
) -> FloatArray:
    """math [24]: se(var) = sqrt((m4 - (n-3)/(n-1) var^2) / n), for the standard deviation.

    By the delta method se(sd) = se(var) / (2 sd). Without spread it is 0.
    """
    n = n_effective
    with np.errstate(invalid="ignore", divide="ignore"):
        of_variance = np.sqrt(np.maximum(fourth_moment - (n - 3) / (n - 1) * variance**2, 0) / n)
        return np.where(variance == 0, 0.0, of_variance / (2 * np.sqrt(variance)))


def average_effect_se(
    mean: FloatArray, mean_square: FloatArray, share: FloatArray, n_effective: FloatArray
) -> FloatArray:
    """Standard error of the mean of g over all rows: sd(g) / sqrt(n), whatever the bins."""
    total = total_variance(mean, mean_square, share, n_effective)
    return np.asarray(np.sqrt(total / rows_together(share, n_effective)))


def weighted_average_se(pieces: Pieces, squares: FloatArray, n_effective: FloatArray) -> FloatArray:
    """The same from moments by squared weights, with the residuals from the mean of all rows."""
    share, slope, rows = pieces.share, pieces.slope, rows_together(pieces.share, n_effective)
    average = np.sum(_times_share(share, pieces.mean), axis=-1, keepdims=True)
    away = pieces.mean - average
    x1, x2, r, xr, r2 = np.moveaxis(squares[..., [0, 1, 2, 3, 10]], -1, 0)
    total = r2 + slope**2 * x2 + 2 * slope * xr + 2 * away * (r + slope * x1) + away**2
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = np.sum(_times_share(share, share / n_effective * total), axis=-1)
        return np.where(rows > 1, np.sqrt(variance * rows / (rows - 1)), np.nan)


def mean_square(variance: FloatArray, pieces: Pieces, n_effective: FloatArray) -> FloatArray:
    """Mean squared deviation of g from the bin's mean, by rows, from what is unbiased for it."""
    with np.errstate(invalid="ignore", divide="ignore"):
        of_residuals = variance * (1 - (1 + (pieces.slope != 0)) / n_effective)
    of_line = pieces.slope**2 * pieces.x_variance
    return np.asarray(np.nan_to_num(of_residuals) + np.nan_to_num(of_line))


def total_variance(
    mean: FloatArray, mean_square: FloatArray, share: FloatArray, n_effective: FloatArray
) -> FloatArray:
    """Variance (ddof 1) over all rows from the bins' means and mean squared deviations.

    NaN where one row, or one effective row, is all there is.
    """
    n = rows_together(share, n_effective)
    average = np.sum(_times_share(share, mean), axis=-1, keepdims=True)
    spread = np.sum(_times_share(share, mean_square + (mean - average) ** 2), axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(n > 1, spread * n / (n - 1), np.nan)


def rows_together(share: FloatArray, n_effective: FloatArray) -> FloatArray:
    """Effective number of rows of all bins, from n_k = W_k^2 / sum_k w^2; NaN without rows."""
    with np.errstate(invalid="ignore", divide="ignore"):
        total = np.sum(_times_share(share, share / n_effective), axis=-1)
        return np.where(total > 0, 1 / total, np.nan)


def _times_share(share: FloatArray, values: FloatArray) -> FloatArray:
    """Shares times values, 0 in bins without rows."""
    return np.where(share > 0, share * values, 0.0)


def heterogeneity_index(m2: FloatArray, weight: FloatArray, width: FloatArray) -> FloatArray:
    """math [10]: sum of width times mean squared deviation; a bin without rows adds nothing."""
    parts = np.divide(width * m2, weight, out=np.zeros(np.shape(weight)), where=weight > 0)
    return np.asarray(parts.sum(axis=-1))


def heterogeneity_output(
    variance: FloatArray, x_variance: FloatArray | float, share: FloatArray
) -> FloatArray:
    """math [10]: std(x) sqrt(mean of the bins' variances over rows), in units of the output.

    Bins of one row, whose variance is not known, are left out of the mean.
    """
    is_known = ~np.isnan(variance)
    total, weight = [
        np.where(is_known, part, 0.0).sum(axis=-1) for part in (share * variance, share)
    ]
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.sqrt(x_variance * total / weight))


def _running_sum(steps: FloatArray) -> FloatArray:
    return np.concatenate([np.zeros((*steps.shape[:-1], 1)), np.cumsum(steps, axis=-1)], axis=-1)
