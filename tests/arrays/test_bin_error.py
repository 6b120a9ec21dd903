"""Differences of neighbouring rows against toy numbers, all orders, SciPy and statsmodels."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from rhale_stats.arrays import bin_error
from rhale_stats.arrays.bin_error import OrderedRows
from tests.helpers import frozen

EPS = np.finfo(float).eps


def in_bins(*values, weight=None):
    """Rows whose local effects are given bin by bin, in order of x."""
    g = np.concatenate([np.asarray(v, dtype=float) for v in values])
    k = np.repeat(np.arange(len(values)), [len(v) for v in values])
    w = None if weight is None else frozen(np.concatenate(weight).astype(float))
    return OrderedRows(frozen(k), frozen(np.arange(len(g), dtype=float)), frozen(g), w)


def means(*values, weight=None):
    weight = [None] * len(values) if weight is None else weight
    return np.array(
        [
            np.average(v, weights=w) if len(v) else np.nan
            for v, w in zip(values, weight, strict=True)
        ]
    )


def weighted_variance(v, w):
    """math [6]."""
    v, w = np.asarray(v, dtype=float), np.asarray(w, dtype=float)
    mean = np.average(v, weights=w)
    return np.sum(w * (v - mean) ** 2) / (w.sum() - np.sum(w**2) / w.sum())


# --- differences ---------------------------------------------------------------------------------

TOY = ([1, 2, 4, 5], [1, 3, 2, 6])


def test_toy_by_hand():
    """Squared differences 1, 4, 1 and 4, 1, 16; residuals -2, -1, 1, 2 and -2, 0, -1, 3."""
    found = bin_error.differences(in_bins(*TOY), means(*TOY))
    assert_allclose(found.variance, [6 / 6, 21 / 6], rtol=4 * EPS)
    # Of three differences the first and the last have no row in common.
    assert_allclose(found.fourth, [1 * 1 / 4, 4 * 16 / 4], rtol=4 * EPS)
    assert_allclose(found.square, [18 / 6, 273 / 6], rtol=4 * EPS)
    assert_allclose(found.rho_fourth, [2 * 2, 0 * -3], rtol=4 * EPS)


def test_standard_errors_by_hand():
    found = bin_error.differences(in_bins(*TOY), means(*TOY))
    n = np.array([4.0, 4.0])
    plain = bin_error.PairWeights(1 / n, 1 / n, 1 / n, 0 * n)
    # sigma^2 - sigma^2_diff = 10/3 - 1 and 14/3 - 3.5; 4 - (7/3)^2 < 0 counts as 0.
    excess = np.array([7 / 3, 7 / 6])
    expected = np.sqrt([(0.25 + 4 * 7 / 3) / 4, (16 + 4 * 3.5 * 7 / 6) / 4])
    assert_allclose(bin_error.bin_error_se(found, excess, plain), expected, rtol=8 * EPS)
    # A negative bin error counts as none.
    expected = np.sqrt([(0.25 + 4) / 4, 16 / 4])
    assert_allclose(bin_error.bin_error_se(found, -excess, plain), expected, rtol=8 * EPS)
    # Unequal weights add squares: 3 - 0.75 - 1 of them, and none of 45.5 - 48 - 12.25 < 0.
    uneven = plain._replace(excess=np.array([0.5, 0.25]))
    squares = bin_error.bin_error_se(found, excess, uneven) ** 2
    squares -= bin_error.bin_error_se(found, excess, plain) ** 2
    assert_allclose(squares, [0.5 * 1.25, 0], atol=1e-14)
    # Beside these 0.25 and 16 of products.
    expected = np.sqrt([1.5 / 4, 16 / 4]) / (2 * np.sqrt([1, 3.5]))
    assert_allclose(bin_error.within_se(found, plain), expected, rtol=8 * EPS)


def test_weights_of_pairs_by_hand():
    """Weights 1, 2, 1: pairs 1/2 each, of rows 1/4, 1/2, 1/4 in the differences.

    In the variance a row counts w / (4 - 6/4) = 0.4, 0.8, 0.4.
    """
    rows = in_bins([1, 2, 3], weight=[[1, 2, 1]])
    found = bin_error.pair_weights(rows, 1)
    assert_allclose(found.pairs, 0.5, rtol=4 * EPS)
    assert_allclose(found.rows, 6 / 16, rtol=4 * EPS)
    assert_allclose(found.squares, 0.96, rtol=4 * EPS)
    assert_allclose(found.excess, 2 * 0.15**2 + 0.3**2, rtol=8 * EPS)
    # Without weights only the ends count for less in the differences, by 1 / (2 (n - 1)).
    equal = bin_error.pair_weights(in_bins(range(10)), 1)
    assert_allclose([equal.pairs, equal.squares, equal.excess], [[1 / 9], [10 / 81], [2 / 18**2]])


def test_von_neumann_ratio_by_hand():
    rows, mean = in_bins(*TOY), means(*TOY)
    variance = np.array([10 / 3, 14 / 3])
    within = bin_error.differences(rows, mean).variance
    ratio, pvalue = bin_error.von_neumann(
        rows, mean, variance, within, bin_error.pair_weights(rows, len(mean))
    )
    assert_allclose(ratio, [6 / 10, 21 / 14], rtol=8 * EPS)
    assert ((pvalue > 0) & (pvalue < 0.5)).all()


def test_differences_agree_with_numpy_bin_by_bin(rng):
    values = [rng.standard_gamma(2, n) for n in (4, 9, 50, 300)]
    found = bin_error.differences(in_bins(*values), means(*values))
    for k, g in enumerate(values):
        d, r = np.diff(g), g - g.mean()
        p = r[1:] * r[:-1]
        # Sums of at most 300 terms, of one sign but for the last.
        of_sums = 300 * EPS
        assert_allclose(found.variance[k], np.mean(d**2) / 2, rtol=of_sums)
        assert_allclose(found.fourth[k], np.mean(d[2:] ** 2 * d[:-2] ** 2) / 4, rtol=of_sums)
        assert_allclose(found.square[k], np.mean(d**4) / 2, rtol=of_sums)
        assert_allclose(
            found.rho_fourth[k], np.mean(p[2:] * p[:-2]), rtol=0, atol=of_sums * np.max(p**2)
        )


def test_pairs_weigh_the_product_of_their_weights(rng):
    values, weight = [rng.normal(size=n) for n in (2, 7, 40)], []
    weight = [rng.uniform(0.1, 3, len(v)) for v in values]
    rows, mean = in_bins(*values, weight=weight), means(*values, weight=weight)
    found = bin_error.differences(rows, mean).variance
    for k, (g, w) in enumerate(zip(values, weight, strict=True)):
        pair = w[1:] * w[:-1]
        assert_allclose(found[k], np.average(np.diff(g) ** 2 / 2, weights=pair), rtol=100 * EPS)
    # Two rows are all pairs there are: math [6].
    assert_allclose(found[0], weighted_variance(values[0], weight[0]), rtol=100 * EPS)


def test_a_weighted_variance_is_a_mean_over_all_pairs(rng):
    """What makes the product of the weights right: math [6] as a mean of (g_i - g_j)^2 / 2."""
    g, w = rng.normal(size=12), rng.uniform(0.1, 3, 12)
    i, j = np.triu_indices(12, 1)
    over_pairs = np.average((g[i] - g[j]) ** 2 / 2, weights=w[i] * w[j])
    assert_allclose(over_pairs, weighted_variance(g, w), rtol=100 * EPS)


def test_neighbours_in_other_bins_are_no_neighbours():
    values = ([0, 0, 0, 0], [1e6, 1e6, 1e6, 1e6], [0, 1, 0, 1])
    found = bin_error.differences(in_bins(*values), means(*values))
    assert_array_equal(found.variance, [0, 0, 0.5])
    assert_array_equal(found.fourth, [0, 0, 0.25])


@pytest.mark.parametrize("shift", [0.0, 1e8])
def test_shift_and_scale(rng, shift):
    values = [rng.normal(size=n) for n in (10, 60)]
    plain = bin_error.differences(in_bins(*values), means(*values))
    moved = [-3 * v + shift for v in values]
    found = bin_error.differences(in_bins(*moved), means(*moved))
    # A shift of 1e8 leaves nine digits of the values, and fewer of products near 0.
    rtol = 1e-12 if shift == 0 else 1e-5
    for name, power in (("variance", 2), ("fourth", 4), ("square", 4), ("rho_fourth", 4)):
        scaled = getattr(plain, name) * 3.0**power
        assert_allclose(getattr(found, name), scaled, rtol=rtol, err_msg=name)


def test_few_rows_and_none():
    """Without a warning: nothing is known of one row, and no standard error of three."""
    values = ([], [3.0], [1.0, 2.0], [1.0, 2.0, 4.0], [5.0] * 6)
    rows, mean = in_bins(*values), means(*values)
    found = bin_error.differences(rows, mean)
    assert_allclose(found.variance, [np.nan, np.nan, 0.5, 1.25, 0], rtol=4 * EPS)
    assert_array_equal(np.isnan(found.fourth), [True, True, True, True, False])
    with np.errstate(invalid="ignore", divide="ignore"):
        weights = bin_error.pair_weights(rows, 5)
        se = bin_error.bin_error_se(found, np.zeros(5), weights)
    assert_array_equal(np.isfinite(se), [False, False, False, False, True])
    assert bin_error.within_se(found, weights)[-1] == 0
    variance = np.array([np.nan, np.nan, 0.5, 7 / 3, 0])
    ratio, pvalue = bin_error.von_neumann(
        rows, mean, variance, found.variance, bin_error.pair_weights(rows, len(mean))
    )
    assert_allclose(ratio, [np.nan, np.nan, 2, 15 / 14, np.nan], rtol=8 * EPS)
    assert np.isnan(pvalue[[0, 1, 4]]).all()
    assert np.isnan(bin_error.rank_von_neumann(rows, 5)[0][[0, 1, 4]]).all()
    assert np.isnan(bin_error.slope_se(rows, mean, mean, np.zeros(5))[:2]).all()


# --- the test ------------------------------------------------------------------------------------

SETS = {
    "distinct": [0.3, -1.2, 4.0, 2.2, -0.7, 0.1],
    "ties": [1.0, 1, 1, 2, 2, 7, 7],
    "two values": [0.0, 0, 0, 1, 1, 1],
    "an outlier": [0.0, 0.1, -0.1, 0.2, -0.2, 0.05, 50],
    "four": [0.0, 1, 3, 9],
}


def ratios_of_all_orders(values):
    orders = np.array(list(permutations(values)))
    return np.sum(np.diff(orders) ** 2, axis=1) / np.sum((orders - np.mean(values)) ** 2, axis=1)


@pytest.mark.parametrize("values", SETS.values(), ids=SETS.keys())
def test_permutation_variance_is_that_of_all_orders(values):
    r = np.asarray(values) - np.mean(values)
    ratios = ratios_of_all_orders(values)
    found = bin_error.permutation_variance(np.sum(r**2), np.sum(r**4), float(len(r)))
    assert_allclose(ratios.mean(), 2, rtol=1e-12)
    assert_allclose(found, ratios.var(), rtol=1e-12)


@pytest.mark.parametrize("n", [10, 25, 100])
@pytest.mark.slow
def test_permutation_variance_of_normal_values(rng, n):
    """math [14]: 4 (n - 2) / (n^2 - 1) on average."""
    g = rng.normal(size=(20_000, n))
    r = g - g.mean(axis=1, keepdims=True)
    found = bin_error.permutation_variance(np.sum(r**2, 1), np.sum(r**4, 1), float(n))
    error = found.std(ddof=1) / np.sqrt(len(found))
    assert abs(found.mean() - 4 * (n - 2) / (n**2 - 1)) < 4 * error
    assert error < 0.001 * found.mean()


def test_ratio_pvalue_is_a_beta_distribution_of_mean_2():
    null = np.array([0.04, 0.15, 0.5])
    shape = (4 / null - 1) / 2
    beta = stats.beta(shape, shape, scale=4)
    assert_allclose(beta.mean(), 2, rtol=1e-12)
    assert_allclose(beta.var(), null, rtol=1e-12)
    for ratio in (0.0, 0.3, 1.0, 2.0, 3.3, 4.0):
        found = bin_error.ratio_pvalue(np.full(3, ratio), null)
        assert_allclose(found, beta.cdf(ratio), rtol=1e-10, atol=1e-300)
    assert_allclose(bin_error.ratio_pvalue(np.array([2.0]), null[:1]), 0.5, rtol=1e-12)
    assert_array_equal(bin_error.ratio_pvalue(np.array([-1e-17, 4.1]), null[:2]), [0, 1])


@pytest.mark.parametrize("n", [10, 25])
@pytest.mark.parametrize("seed", range(3))
def test_pvalue_is_near_the_share_of_orders_with_a_smaller_ratio(seed, n):
    """20,000 random orders: a share has a Monte-Carlo error of at most 0.0035."""
    rng = np.random.default_rng(seed)
    r = rng.standard_gamma(3, n)
    r -= r.mean()
    orders = rng.permuted(np.tile(r, (20_000, 1)), axis=1)
    ratios = np.sort(np.sum(np.diff(orders) ** 2, axis=1) / np.sum(r**2))
    null = bin_error.permutation_variance(np.sum(r**2), np.sum(r**4), float(n))
    found = bin_error.ratio_pvalue(ratios, np.full(len(ratios), null))
    share = np.arange(1, len(ratios) + 1) / len(ratios)
    assert np.abs(found - share).max() < (0.06 if n == 10 else 0.03)
    at_5_percent = found[int(0.05 * len(ratios))]
    assert 0.035 < at_5_percent < 0.065


def ratio_test(*values, weight=None, by=bin_error.von_neumann):
    rows, mean = in_bins(*values, weight=weight), means(*values, weight=weight)
    if weight is None:
        weight = [np.ones(len(v)) for v in values]
    variance = np.array([weighted_variance(v, w) for v, w in zip(values, weight, strict=True)])
    within = bin_error.differences(rows, mean).variance
    return by(rows, mean, variance, within, bin_error.pair_weights(rows, len(mean)))


TESTS = pytest.mark.parametrize("by", [bin_error.von_neumann, bin_error.tested])


def test_products_of_neighbours_are_tested_by_a_t_test(rng):
    """Mean of the products over its standard error, and the larger of both p-values."""
    values = [rng.normal(size=12) * np.arange(12), np.linspace(0, 1, 30) + rng.normal(size=30) / 2]
    weight = [rng.uniform(0.5, 2, len(v)) for v in values]
    for w in (None, weight):
        rows, mean = in_bins(*values, weight=w), means(*values, weight=w)
        expected = []
        for k, v in enumerate(values):
            r = (v - mean[k]) * (1 if w is None else w[k])
            product = r[1:] * r[:-1]
            expected.append(stats.ttest_1samp(product, 0, alternative="greater").pvalue)
        assert_allclose(bin_error.product_pvalue(rows, mean), expected, rtol=1e-10)
        larger = np.maximum(expected, ratio_test(*values, weight=w)[1])
        assert_allclose(ratio_test(*values, weight=w, by=bin_error.tested)[1], larger, rtol=1e-10)


@TESTS
def test_pvalue_does_not_know_scale_shift_or_direction(rng, by):
    values = [rng.standard_gamma(1, n) for n in (10, 30, 200)]
    expected = ratio_test(*values, by=by)
    for moved in ([5 - 3e4 * v for v in values], [v[::-1] for v in values]):
        for found, plain in zip(ratio_test(*moved, by=by), expected, strict=True):
            assert_allclose(found, plain, rtol=1e-9)  # sums of 200 terms


@TESTS
def test_equal_weights_change_no_pvalue(rng, by):
    values = [rng.standard_gamma(1, n) for n in (10, 30, 200)]
    found = ratio_test(*values, weight=[np.full(len(v), 0.7) for v in values], by=by)
    for of_weights, plain in zip(found, ratio_test(*values, by=by), strict=True):
        assert_allclose(of_weights, plain, rtol=1e-9)


def test_ranks_are_those_of_scipy(rng):
    """Ties get their mean rank, each bin its own ranks."""
    values = [rng.normal(size=12), rng.integers(0, 4, 30), np.repeat([1, 5, 2, 9], 5)]
    ratio, pvalue = bin_error.rank_von_neumann(in_bins(*values), 3)
    ranks = [stats.rankdata(v) for v in values]
    expected_ratio, expected = ratio_test(*ranks, by=bin_error.tested)
    assert_allclose(ratio, expected_ratio, rtol=1e-12)
    assert_allclose(pvalue, expected, rtol=1e-10)
    for k, r in enumerate(ranks):
        of_bartels = np.sum(np.diff(r) ** 2) / np.sum((r - r.mean()) ** 2)
        assert_allclose(ratio[k], of_bartels, rtol=1e-12)


def test_ranks_know_nothing_of_size_and_weights(rng):
    values = [rng.normal(size=15), rng.normal(size=40)]
    weight = [rng.uniform(0.1, 1, len(v)) for v in values]
    plain = bin_error.rank_von_neumann(in_bins(*values), 2)
    for other in (
        in_bins(*(np.exp(v) for v in values)),
        in_bins(*values, weight=weight),
    ):
        assert_array_equal(bin_error.rank_von_neumann(other, 2), plain)
    # An empty bin in between takes no rank.
    with_gap = bin_error.rank_von_neumann(in_bins(values[0], [], values[1]), 3)
    assert_array_equal(np.array(with_gap)[:, [0, 2]], plain)


# --- the line ------------------------------------------------------------------------------------


def in_order(rng, sizes, weighted):
    """Rows with another slope in every bin, and more spread on one side of it."""
    x = [np.sort(rng.uniform(k, k + 1, n)) for k, n in enumerate(sizes)]
    g = [rng.normal() * v + rng.normal(size=len(v)) * (0.2 + (v - k)) for k, v in enumerate(x)]
    w = [rng.uniform(0.1, 2, n) for n in sizes] if weighted else [np.ones(n) for n in sizes]
    rows = in_bins(*g, weight=w if weighted else None)
    return rows._replace(x=frozen(np.concatenate(x))), x, g, w


@pytest.mark.parametrize("weighted", [False, True])
def test_slope_se_is_that_of_statsmodels(rng, weighted):
    rows, x, g, w = in_order(rng, (5, 30, 200), weighted)
    fits = [
        sm.WLS(v, sm.add_constant(u), weights=p).fit(cov_type="HC1")
        for u, v, p in zip(x, g, w, strict=True)
    ]
    slope = np.array([fit.params[1] for fit in fits])
    found = bin_error.slope_se(rows, means(*g, weight=w), means(*x, weight=w), slope)
    # statsmodels inverts a matrix whose columns, 1 and x near 2.5, are nearly parallel.
    assert_allclose(found, [fit.bse[1] for fit in fits], rtol=1e-9)


def test_two_rows_have_no_error_of_a_slope():
    rows = in_bins([1.0, 2.0], [3.0] * 4)
    found = bin_error.slope_se(rows, np.array([1.5, 3]), np.array([0.5, 3.5]), np.array([1.0, 0]))
    assert not np.isfinite(found[0]) or found[0] == 0
    assert found[1] == 0


def test_linear_part_is_that_of_statsmodels(rng):
    _, x, g, _ = in_order(rng, (5, 30, 200), False)
    fits = [sm.OLS(v, sm.add_constant(u)).fit() for u, v in zip(x, g, strict=True)]
    n = np.array([5.0, 30, 200])
    line, statistic = bin_error.linear_part(
        np.array([np.var(v, ddof=1) for v in g]),
        np.array([np.var(u) for u in x]),
        np.array([np.cov(u, v, ddof=0)[0, 1] for u, v in zip(x, g, strict=True)]),
        n,
    )
    assert_allclose(statistic, [fit.fvalue for fit in fits], rtol=1e-9)
    explained = [fit.params[1] ** 2 * np.var(u) for fit, u in zip(fits, x, strict=True)]
    noise = [fit.mse_resid for fit in fits]
    assert_allclose(line, explained - np.array(noise) / n, rtol=1e-8)


def test_linear_part_of_a_line_and_of_nothing():
    """g = 3 x on x = 0, 1, 2, 3: variance 15, of which 9 * 1.25 is the line's; and no spread."""
    line, statistic = bin_error.linear_part(
        np.array([15.0, 0, np.nan]),
        np.array([1.25, 1.25, np.nan]),
        np.array([3.75, 0, np.nan]),
        np.array([4.0, 4, 0]),
    )
    assert_allclose(line, [11.25, 0, np.nan], rtol=4 * EPS)
    assert statistic[0] == np.inf
    assert np.isnan(statistic[1:]).all()


# --- the order of rows ---------------------------------------------------------------------------


def ordered(x, g, weight=None, *, edges=(0, 1, 2), frequency=False, seed=0):
    return bin_error.ordered_rows(
        frozen(np.asarray(edges, dtype=float)),
        frozen(np.asarray(x, dtype=float)),
        frozen(np.asarray(g, dtype=float)),
        None if weight is None else frozen(np.asarray(weight, dtype=float)),
        frequency=frequency,
        rng=np.random.default_rng(seed),
    )


def test_rows_by_hand():
    rows = ordered([1.5, 0.2, 2.0, 1.0], [1, 2, 3, 4], weight=[0.1, 0.2, 0.3, 0.4])
    assert_array_equal(rows.bin, [0, 1, 1, 1])  # an inner edge belongs to its right
    assert_array_equal(rows.x, [0.2, 1.0, 1.5, 2.0])
    assert_array_equal(rows.g, [2, 4, 1, 3])
    assert_array_equal(rows.weight, [0.2, 0.4, 0.1, 0.3])


def test_frequency_weights_are_written_out():
    rows = ordered([1.5, 0.2, 2.0], [1, 2, 3], weight=[2, 0, 3], frequency=True)
    assert rows.weight is None
    assert_array_equal(rows.x, [1.5, 1.5, 2, 2, 2])
    assert_array_equal(rows.g, [1, 1, 3, 3, 3])


def test_ties_are_in_random_order_and_reproducible(rng):
    x, g = np.round(rng.uniform(0, 2, 400), 1), np.arange(400.0)
    first = ordered(x, g, weight=g + 1)
    assert_array_equal(first.x, np.sort(x))
    # Rows stay whole.
    assert_array_equal(x[first.g.astype(int)], first.x)
    assert_array_equal(first.weight, first.g + 1)
    assert_array_equal(ordered(x, g).g, first.g)
    assert (ordered(x, g, seed=1).g != first.g).any()
    # Their order in the table says nothing: within one value later rows come first as often.
    same = np.diff(first.x) == 0
    assert 0.4 < (np.diff(first.g)[same] > 0).mean() < 0.6  # 380 signs: 4 standard errors


def test_without_ties_nothing_is_drawn(rng):
    x, g = rng.uniform(0, 2, 50), rng.normal(size=50)
    assert_array_equal(ordered(x, g, seed=0).g, ordered(x, g, seed=1).g)


@pytest.mark.thorough
def test_every_order_of_ties_is_equally_likely():
    drawn = [tuple(ordered([1, 1, 1], [0, 1, 2], seed=seed).g) for seed in range(3000)]
    _, count = np.unique(drawn, axis=0, return_counts=True)
    assert len(count) == 6
    assert stats.chisquare(count).pvalue > 0.001


# --- products within triples, ratios under weights -----------------------------------------------


def test_products_within_triples_by_hand():
    """Steps 1, 3 of the first triple, -2, 0.5 of the second; the eighth and last row is left."""
    g = frozen([0.0, 1, 4, 9, 7, 7.5, 3, 8])
    assert_allclose(bin_error.neighbour_products(g, 0.0), [3, -1])
    assert_allclose(bin_error.neighbour_products(g, 0.5), [3, 0])
    assert_allclose(bin_error.neighbour_products(g, 0.49), [3, -1])
    assert_allclose(bin_error.neighbour_products(g, 2.0), [0, 0])
    assert len(bin_error.neighbour_products(g[:2], 0.0)) == 0


def test_products_of_independent_effects_have_the_mean_of_minus_the_variance(rng):
    """Of steps with variance 2 each and covariance -1: the variance of products is 5."""
    products = bin_error.neighbour_products(2 * rng.normal(size=60_000), 0.0)
    assert abs(products.mean() / 4 + 1) < 4 * np.sqrt(5 / 20_000)


def test_unequal_weights_widen_the_distribution_of_the_ratio(rng):
    """The variance of the ratio over that of equal weights, from weights of pairs and rows."""
    n = 12
    g, w = rng.gamma(2, size=n), rng.uniform(0.3, 3, n)
    ratio, pvalue = (one[0] for one in ratio_test(g, weight=[w]))
    r = g - np.average(g, weights=w)
    pair = w[1:] * w[:-1]
    variance = weighted_variance(g, w)
    assert_allclose(ratio, pair @ np.diff(g) ** 2 / pair.sum() / variance)
    s2, s4 = np.sum(r**2), np.sum(r**4)
    plain = (4 * n - 6 - 2 * n * s4 / s2**2) / (n * (n - 1))
    own = np.append(pair, 0) + np.append(0, pair)
    excess = np.sum((w / (w.sum() - w @ w / w.sum()) - own / (2 * pair.sum())) ** 2)
    spread = n * s4 / s2**2 - 1
    ours = np.sum(pair**2) / pair.sum() ** 2 + spread * excess
    null = plain * ours / (1 / (n - 1) + spread / (2 * (n - 1) ** 2))
    shape = (4 / null - 1) / 2
    assert_allclose(pvalue, stats.beta.cdf(ratio / 4, shape, shape), rtol=1e-10)


def test_an_empty_bin_between_others_has_no_sums(rng):
    """Known means are given for it, as for a bin whose rows have weight 0."""
    values = [rng.normal(size=6), [], rng.normal(size=9)]
    rows, mean = in_bins(*values), np.array([values[0].mean(), 0.5, values[2].mean()])
    pairs = bin_error.pair_weights(rows, 3)
    assert np.isnan([pairs.pairs[1], pairs.squares[1]]).all()
    slope = bin_error.slope_se(rows, mean, np.array([2.5, 3.0, 10.0]), np.zeros(3))
    assert np.isnan(slope[1])
    assert np.isfinite(slope[[0, 2]]).all()
    products = bin_error.product_pvalue(rows, mean)
    assert np.isnan(products[1])
    assert_allclose(
        products[[0, 2]],
        [bin_error.product_pvalue(in_bins(v), means(v))[0] for v in (values[0], values[2])],
    )
