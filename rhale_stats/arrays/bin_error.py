"""How much of a bin's variance is bin error: differences of neighbouring rows, and their tests.

Rows are in order of bin, then of x; sums are per bin, ``(rows,) -> (bins,)``. Within a bin, the
difference of neighbours depends on the spread of the local effects and hardly on their mean, which
changes little from one row to the next.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import betainc, stdtr

from rhale_stats.arrays.binning import bin_index, sorting
from rhale_stats.arrays.moments import FloatArray, IntArray


class OrderedRows(NamedTuple):
    """Rows of one feature in order of x; ``weight`` where rows differ in weight."""

    bin: IntArray
    x: FloatArray
    g: FloatArray
    weight: FloatArray | None


class NeighbourDifferences(NamedTuple):
    """math [13] per bin: the variance from neighbours, and moments for its standard errors.

    ``variance`` is half the mean squared difference. ``fourth`` estimates E sigma^4(z), ``square``
    half the mean fourth power of differences, ``rho_fourth`` the mean of rho^4(z), the last three
    from products of independent differences, unweighted.
    """

    variance: FloatArray
    fourth: FloatArray
    square: FloatArray
    rho_fourth: FloatArray


def ordered_rows(
    edges: FloatArray,
    x: FloatArray,
    g: FloatArray,
    weight: FloatArray | None,
    *,
    frequency: bool,
    rng: np.random.Generator,
) -> OrderedRows:
    """Rows sorted by x, those with equal x in random order; frequency weights written out."""
    if weight is not None and frequency:
        x, g = [np.repeat(column, weight.astype(np.int64)) for column in (x, g)]
        weight = None
    order = sorting(x)
    in_order = x[order]
    if (in_order[1:] == in_order[:-1]).any():
        shuffled = rng.permutation(len(x))
        order = shuffled[np.argsort(x[shuffled])]
        in_order = x[order]
    return OrderedRows(
        bin_index(edges, in_order), in_order, g[order], None if weight is None else weight[order]
    )


def differences(rows: OrderedRows, mean: FloatArray) -> NeighbourDifferences:
    """math [13]: sum d^2 / (2 (n - 1)), a pair of rows weighted by the product of their weights.

    A weighted variance is a mean of (g_i - g_j)^2 / 2 over all pairs with those weights; this is
    the same mean over neighbours.
    """
    k, residual = rows.bin, rows.g - mean[rows.bin]
    square = np.diff(residual) ** 2
    product = residual[1:] * residual[:-1]
    inside = _inside(rows, 1)
    pair_weight = inside if rows.weight is None else inside * rows.weight[1:] * rows.weight[:-1]
    # Two differences without a common row: independent given x.
    apart = _inside(rows, 3)
    with np.errstate(invalid="ignore", divide="ignore"):
        n_apart = _total(k[3:], apart, len(mean))
        return NeighbourDifferences(
            variance=_total(k[1:], pair_weight * square, len(mean))
            / _total(k[1:], 2 * pair_weight, len(mean)),
            fourth=_total(k[3:], apart * square[2:] * square[:-2], len(mean)) / (4 * n_apart),
            square=_total(k[1:], inside * square**2, len(mean))
            / (2 * _total(k[1:], inside, len(mean))),
            rho_fourth=_total(k[3:], apart * product[2:] * product[:-2], len(mean)) / n_apart,
        )


def neighbour_products(g: FloatArray, least: float) -> FloatArray:
    """Products of the two differences within triples of neighbours, of local effects in order of x.

    Their mean is minus the variance at a value of x. A smooth effect adds the square of its slope,
    and a jump adds almost nothing, so that neither makes the mean negative. Differences up to
    ``least`` count as 0.
    """
    steps = np.diff(g[: len(g) // 3 * 3].reshape(-1, 3), axis=1)
    return np.asarray(np.prod(np.where(np.abs(steps) <= least, 0.0, steps), axis=1))


class PairWeights(NamedTuple):
    """Sums per bin of squared weights: about 1 / n, 1 / n, 1 / n and 0 with equal weights.

    The differences weigh a pair by w_i w_(i+1) / Omega: ``pairs`` is the sum of the squares of
    these. A row's own square counts half of its two pairs there: ``rows``. In the variance it
    counts w_i / (W - sum w^2 / W): ``squares``. The difference is c_i: ``excess``.
    """

    pairs: FloatArray
    rows: FloatArray
    squares: FloatArray
    excess: FloatArray


def pair_weights(rows: OrderedRows, n_bins: int) -> PairWeights:
    """Sums of squared weights of pairs and of rows, which measure how unequal the weights are."""
    k, w = rows.bin, rows.weight
    if w is None:
        n = _total(k, np.ones(len(k)), n_bins)
        with np.errstate(invalid="ignore", divide="ignore"):
            others = np.where(n > 1, 1 / (n - 1), np.nan)
        ends = others**2 / 2
        return PairWeights(others, (n - 2) * others**2 + ends, n * others**2, ends)
    pair = _inside(rows, 1) * w[1:] * w[:-1]
    with np.errstate(invalid="ignore", divide="ignore"):
        total, total_sq = _total(k, w, n_bins), _total(k, w**2, n_bins)
        omega = _total(k[1:], pair, n_bins)
        row_weight = np.zeros(len(w))
        row_weight[1:] += pair
        row_weight[:-1] += pair
        row_weight /= 2 * omega[k]
        square = w / (total - total_sq / total)[k]
        return PairWeights(
            _total(k[1:], pair**2, n_bins) / omega**2,
            _total(k, row_weight**2, n_bins),
            _total(k, square**2, n_bins),
            _total(k, (square - row_weight) ** 2, n_bins),
        )


def bin_error_se(
    differences: NeighbourDifferences, bin_error: FloatArray, weights: PairWeights
) -> FloatArray:
    """Standard error of sigma^2_k - sigma^2_diff,k, for rows at random places of the bin.

    To first order that difference is a mean of r_i r_(i+1), residuals of neighbours. With r = rho +
    noise its variance is [E sigma^4 + 4 sigma^2 E rho^2 + var rho^2] / n: products of noise have
    the weights of pairs, and the other terms those of rows. Unequal weights add sum c_i^2
    var(noise^2).
    """
    error = np.maximum(bin_error, 0.0)
    rho = np.maximum(differences.rho_fourth - error**2, 0.0)
    of_rows = 4 * differences.variance * error + rho
    return np.asarray(
        np.sqrt(
            differences.fourth * weights.pairs
            + of_rows * weights.squares
            + _variance_of_squares(differences) * weights.excess
        )
    )


def within_se(differences: NeighbourDifferences, weights: PairWeights) -> FloatArray:
    """Standard error of the square root of sigma^2_diff.

    The variance of sigma^2_diff is [E m4(z) + var sigma^2(z)] / n, of which E sigma^4 / n comes
    from products of neighbours and the rest from squares. E d^4 / 2 is E m4 + 3 E sigma^4, and m4
    is at least sigma^4.
    """
    of_variance = (
        _variance_of_squares(differences) * weights.rows + differences.fourth * weights.pairs
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        se = np.sqrt(of_variance) / (2 * np.sqrt(differences.variance))
    return np.where(differences.variance == 0, 0.0, se)


def _variance_of_squares(differences: NeighbourDifferences) -> FloatArray:
    """E m4(z) - (E sigma^2)^2."""
    return np.maximum(differences.square - 3 * differences.fourth - differences.variance**2, 0.0)


def permutation_variance(s2: FloatArray, s4: FloatArray, n: FloatArray) -> FloatArray:
    """Variance of sum d^2 / sum r^2 when every order of the given values is equally likely.

    ``s2``, ``s4``: sums of the squares and fourth powers of deviations from the mean. For normal
    values it is 4 (n - 2) / (n^2 - 1) on average, math [14].
    """
    kurtosis = n * s4 / s2**2
    return np.asarray((4 * n - 6 - 2 * kurtosis) / (n * (n - 1)))


def ratio_pvalue(ratio: FloatArray, null_variance: FloatArray) -> FloatArray:
    """P(RVN <= ratio) for a ratio on [0, 4] with mean 2: a beta distribution of that variance.

    The normal distribution is as accurate at 5 %, but not in the tails, which adjusted p-values
    need.
    """
    shape = (4 / null_variance - 1) / 2
    return np.asarray(betainc(shape, shape, np.clip(ratio / 4, 0.0, 1.0)))


def von_neumann(
    rows: OrderedRows,
    mean: FloatArray,
    variance: FloatArray,
    within: FloatArray,
    weights: PairWeights,
) -> tuple[FloatArray, FloatArray]:
    """math [14]: the ratio RVN = 2 sigma^2_diff / sigma^2 and its one-sided p-value, per bin."""
    k, residual = rows.bin, rows.g - mean[rows.bin]
    n = _total(k, np.ones(len(k)), len(mean))
    s2, s4 = [_total(k, residual**power, len(mean)) for power in (2, 4)]
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = 2 * within / variance
        null = permutation_variance(s2, s4, n)
        if rows.weight is not None:
            # Multiplied by the factor by which the weights increase the variance of the bin error.
            spread = n * s4 / s2**2 - 1
            equal = 1 / (n - 1) + spread / (2 * (n - 1) ** 2)
            null = null * (weights.pairs + spread * weights.excess) / equal
        return ratio, ratio_pvalue(ratio, null)


def product_pvalue(rows: OrderedRows, mean: FloatArray) -> FloatArray:
    """One-sided p-value of the mean product of neighbouring residuals, per bin, math [14].

    Without bin error products of noise have mean 0, whatever the spread does along x, and
    neighbouring ones are uncorrelated: their mean over its standard error is about Student's t.
    Those of residuals have -1 / n of the variance, about a line -2 / n: small bins are tested at
    less than the level.
    """
    residual = rows.g - mean[rows.bin]
    pair = _inside(rows, 1)
    if rows.weight is not None:
        pair = pair * rows.weight[1:] * rows.weight[:-1]
    product = pair * residual[1:] * residual[:-1]
    n = _total(rows.bin[1:], _inside(rows, 1), len(mean))
    total = _total(rows.bin[1:], product, len(mean))
    squares = _total(rows.bin[1:], product**2, len(mean))
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = np.maximum(squares - total**2 / n, 0.0) * n / (n - 1)
        return np.asarray(stdtr(n - 1, -total / np.sqrt(variance)))


def tested(
    rows: OrderedRows,
    mean: FloatArray,
    variance: FloatArray,
    within: FloatArray,
    weights: PairWeights,
) -> tuple[FloatArray, FloatArray]:
    """math [14]: the ratio RVN and the larger of the p-values of both tests, per bin.

    RVN alone finds bin error where only the spread changes; products alone are too sure in small
    bins of skewed effects.
    """
    ratio, pvalue = von_neumann(rows, mean, variance, within, weights)
    # Products that are all 0 say nothing.
    return ratio, np.fmax(pvalue, product_pvalue(rows, mean))


def rank_von_neumann(rows: OrderedRows, n_bins: int) -> tuple[FloatArray, FloatArray]:
    """Bartels (1982): the ratio of the ranks within each bin, and its p-value as in `tested`."""
    bounds = np.searchsorted(rows.bin, np.arange(n_bins + 1))
    ranked = rows._replace(g=_ranks(rows, bounds), weight=None)
    rank, n = ranked.g, np.diff(bounds).astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = (n + 1) / 2
        variance = _total(rows.bin, (rank - mean[rows.bin]) ** 2, n_bins) / (n - 1)
    within = differences(ranked, mean).variance
    return tested(ranked, mean, variance, within, pair_weights(ranked, n_bins))


def _ranks(rows: OrderedRows, bounds: IntArray) -> FloatArray:
    """Rank of g within its bin, from 1; equal values share the mean of theirs."""
    by_value = sorting(rows.g)
    # Numbers of bins are small integers, which are sorted without comparisons.
    small = rows.bin[by_value].astype(np.min_scalar_type(len(bounds)))
    order = by_value[np.argsort(small, kind="stable")]
    k, g = rows.bin[order], rows.g[order]
    is_first = np.ones(len(g), dtype=bool)
    is_first[1:] = (k[1:] != k[:-1]) | (g[1:] != g[:-1])
    first = np.flatnonzero(is_first)
    count = np.diff(np.append(first, len(g)))
    rank = np.empty(len(g))
    rank[order] = np.repeat(first - bounds[k[first]] + (count + 1) / 2, count)
    return rank


def slope_se(
    rows: OrderedRows, mean: FloatArray, x_mean: FloatArray, slope: FloatArray
) -> FloatArray:
    """Standard error of the slope of g on x in each bin; the spread may change along x (HC1)."""
    k = rows.bin
    weight = np.ones(len(k)) if rows.weight is None else rows.weight
    distance = rows.x - x_mean[k]
    residual = rows.g - mean[k] - slope[k] * distance
    n = _total(k, np.ones(len(k)), len(mean))
    with np.errstate(invalid="ignore", divide="ignore"):
        meat = _total(k, (weight * distance * residual) ** 2, len(mean))
        bread = _total(k, weight * distance**2, len(mean))
        # The residuals of a line through two rows are rounding errors.
        return np.asarray(np.where(n > 2, np.sqrt(meat * n / (n - 2)) / bread, np.nan))


def linear_part(
    variance: FloatArray, x_variance: FloatArray, x_covariance: FloatArray, n: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Bin error of a straight line: slope^2 var(x) without its noise, and the F statistic.

    A lower bound of the bin error that needs moments only, no rows.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        explained = x_covariance**2 / x_variance
        residual = (variance * (n - 1) - explained * n) / (n - 2)
        residual = np.maximum(residual, 0.0)
        return np.asarray(explained - residual / n), np.asarray(explained * n / residual)


def _inside(rows: OrderedRows, lag: int) -> FloatArray:
    """1 where a row and the one ``lag`` before it lie in one bin, 0 elsewhere."""
    return np.equal(rows.bin[lag:], rows.bin[:-lag]).astype(np.float64)


def _total(k: IntArray, values: FloatArray, n_bins: int) -> FloatArray:
    """Sum of the values of every bin, 0 for one without rows; ``k`` is in order."""
    bounds = np.searchsorted(k, np.arange(n_bins + 1))
    occupied = bounds[1:] > bounds[:-1]
    out = np.zeros(n_bins)
    if occupied.any():
        out[occupied] = np.add.reduceat(values, bounds[:-1][occupied])
    return out
