"""From bins to the curve: accumulation, spread, centring, standard errors. Last axis: bins.

Functions take the bins of one feature and return values at its edges, one more than bins. Nothing
steps across a bin without rows (math [11]): the curve lives on one stretch of occupied bins
(`known_stretch`), and `at_edges` puts what is computed there back on the whole axis.
"""

from __future__ import annotations

import numpy as np

from rhale_stats.arrays.moments import FloatArray


def known_stretch(weight: FloatArray) -> slice:
    """Neighbouring bins with rows, among all such runs the one with the largest weight."""
    occupied = np.concatenate([[False], weight > 0, [False]])
    begins = np.flatnonzero(~occupied[:-1] & occupied[1:])
    ends = np.flatnonzero(occupied[:-1] & ~occupied[1:])
    totals = [weight[begin:end].sum() for begin, end in zip(begins, ends, strict=True)]
    heaviest = int(np.argmax(totals))
    return slice(int(begins[heaviest]), int(ends[heaviest]))


def at_edges(values: FloatArray, stretch: slice, n_bins: int) -> FloatArray:
    """Values at the edges of a stretch of bins as values at all edges, NaN elsewhere."""
    out = np.full(n_bins + 1, np.nan)
    out[stretch.start : stretch.stop + 1] = values
    return out


def accumulate(effect: FloatArray, width: FloatArray) -> FloatArray:
    """math [7]: F_0 = 0, F_k = sum_{j<=k} mu_j width_j."""
    return _running_sum(effect * width)


def curve_std(heterogeneity: FloatArray, width: FloatArray) -> FloatArray:
    """math [9], Eq. 16 of the paper: sqrt(sum width^2 sigma^2). It depends on the partition."""
    return np.sqrt(_running_sum((heterogeneity * width) ** 2))


def curve_std_sum(heterogeneity: FloatArray, width: FloatArray) -> FloatArray:
    """math [9], as the paper's figures draw it: sum width sigma, the same for any partition."""
    return _running_sum(heterogeneity * width)


def mean_of_curve(
    curve: FloatArray, effect: FloatArray, edges: FloatArray, x_mean: FloatArray, share: FloatArray
) -> float:
    """Mean of the curve over the rows, exact because the curve is linear in a bin (math [8])."""
    return float(np.sum(share * curve_at_x_mean(curve, effect, edges, x_mean)))


def integral_of_curve(curve: FloatArray, width: FloatArray) -> float:
    """Integral of the curve over the axis, over the length of the axis (math [8])."""
    return float(np.sum(width * (curve[:-1] + curve[1:]) / 2) / width.sum())


def curve_at_x_mean(
    curve: FloatArray, effect: FloatArray, edges: FloatArray, x_mean: FloatArray
) -> FloatArray:
    """Mean of the curve over the rows of each bin."""
    return np.asarray(curve[:-1] + effect * (x_mean - edges[:-1]))


def zero_start_se(effect_se: FloatArray, width: FloatArray) -> FloatArray:
    """math [25]: standard error of F(z_k) - F(z_0)."""
    return np.sqrt(_running_sum((effect_se * width) ** 2))


def integral_centred_se(effect_se: FloatArray, width: FloatArray) -> FloatArray:
    """Standard error of the curve minus its mean over the axis.

    The constant is sum_j mu_j width_j r_j with r_j the share of the axis to the right of the
    middle of bin j, so that the curve at edge e is sum_j mu_j width_j (1{j <= e} - r_j).
    """
    span = width.sum()
    right_of_middle = (span - np.cumsum(width) + width / 2) / span
    loading = _steps(len(width)) - right_of_middle
    return np.asarray(np.sqrt(np.sum((loading * width * effect_se) ** 2, axis=1)))


def mean_centred_se(
    curve: FloatArray,
    effect: FloatArray,
    variance: FloatArray,
    edges: FloatArray,
    x_mean: FloatArray,
    x_variance: FloatArray,
    x_covariance: FloatArray,
    share: FloatArray,
    n_effective: FloatArray,
) -> FloatArray:
    """math [26]: standard error of the curve centred at its mean over the population.

    The influence of row i in bin k on the curve at edge e is
    c_k(e) (g_i - mu_k) - (F(z_i) - mean F), with c_k(e) = (1{k <= e} - a_k) width_k / p_k. F is
    linear in a bin, so the variance of the influence needs no rows: within bin k it is
    c^2 var(g) - 2 c mu_k cov(x, g) + mu_k^2 var(x), and between bins the squared distance of the
    bin's mean of F from the mean of F.
    """
    width = np.diff(edges)
    to_the_right = np.cumsum(share[::-1])[::-1] - share
    a = to_the_right + share * (x_mean - edges[:-1]) / width
    c = (_steps(len(width)) - a) * width / share
    level = curve_at_x_mean(curve, effect, edges, x_mean)
    distance = level - np.sum(share * level)
    influence = (
        c**2 * variance - 2 * c * effect * x_covariance + effect**2 * x_variance + distance**2
    )
    total = np.sum(share**2 / n_effective * influence, axis=1)
    # A curve of slope mu through a bin without spread is known exactly: rounding may go below 0.
    return np.asarray(np.sqrt(np.maximum(total, 0.0)))


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
    effect: FloatArray, variance: FloatArray, share: FloatArray, n_effective: FloatArray
) -> float:
    """Standard error of the mean of g over all rows: sd(g) / sqrt(n), whatever the bins."""
    with np.errstate(invalid="ignore", divide="ignore"):
        within = variance * (1 - 1 / n_effective)  # back to the mean squared deviation
    total = total_variance(effect, np.nan_to_num(within), share, n_effective)
    return float(np.sqrt(total / _rows_together(share, n_effective)))


def total_variance(
    mean: FloatArray, mean_square: FloatArray, share: FloatArray, n_effective: FloatArray
) -> float:
    """Variance (ddof 1) over all rows from the bins' means and mean squared deviations.

    NaN where one row, or one effective row, is all there is.
    """
    occupied = share > 0
    p, m = share[occupied], mean[occupied]
    n = _rows_together(share, n_effective)
    if n <= 1:
        return float("nan")
    spread = mean_square[occupied] + (m - np.sum(p * m)) ** 2
    return float(np.sum(p * spread) * n / (n - 1))


def _rows_together(share: FloatArray, n_effective: FloatArray) -> float:
    """Effective number of rows of all bins, from n_k = W_k^2 / sum_k w^2."""
    occupied = share > 0
    return float(1 / np.sum(share[occupied] ** 2 / n_effective[occupied]))


def heterogeneity_index(m2: FloatArray, weight: FloatArray, width: FloatArray) -> float:
    """math [10]: sum of width times mean squared deviation; a bin without rows adds nothing."""
    occupied = weight > 0
    return float(np.sum((width * m2)[occupied] / weight[occupied]))


def heterogeneity_output(variance: FloatArray, x_variance: float, share: FloatArray) -> float:
    """math [10]: std(x) sqrt(mean of the bins' variances over rows), in units of the output.

    Bins of one row, whose variance is not known, are left out of the mean.
    """
    known = ~np.isnan(variance)
    if not known.any():
        return float("nan")
    return float(np.sqrt(x_variance * np.sum((share * variance)[known]) / np.sum(share[known])))


def _running_sum(steps: FloatArray) -> FloatArray:
    return np.concatenate([[0.0], np.cumsum(steps)])


def _steps(n_bins: int) -> FloatArray:
    """1{j <= e} for edges e = 0 ... K (rows) and bins j = 1 ... K (columns)."""
    return np.tri(n_bins + 1, n_bins, -1)
