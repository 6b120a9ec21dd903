"""Skewness of errors: by hand, invariances, and coverage by simulation (math [64])."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from rhale_stats.arrays import intervals, skewness
from tests.helpers import in_turn

N_CELLS, ROWS = 20, 15


def moments(values):
    """Third cumulants, variances and rows of cells, (cell, row) values."""
    third = np.mean((values - values.mean(axis=1, keepdims=True)) ** 3, axis=1)
    n = np.full(len(values), float(values.shape[1]))
    return skewness.third_cumulant(third, n), values.var(axis=1, ddof=1), n


def drawn(name, rng, shape):
    """Errors of mean 0 and variance 1."""
    if name == "normal":
        return rng.standard_normal(shape)
    if name == "t3":
        return rng.standard_t(3, shape) / np.sqrt(3)
    if name == "exponential":
        return rng.exponential(size=shape) - 1
    values = np.exp(rng.standard_normal(shape))
    return (values - np.exp(0.5)) / np.sqrt((np.e - 1) * np.e)


def test_third_cumulant_is_that_of_scipy(rng):
    values = rng.exponential(size=(3, 9))
    third, _, _ = moments(values)
    assert_allclose(third, [stats.kstat(row, 3) for row in values], rtol=1e-12)
    assert np.isnan(skewness.third_cumulant(np.ones(1), np.full(1, 2.0))).all()


def test_symmetric_rows_have_none(rng):
    half = rng.exponential(size=(N_CELLS, 8))
    values = np.concatenate([half, -half], axis=1)
    assert_array_equal(skewness.of_cells(*moments(values)), np.zeros(N_CELLS))


def test_few_cells_have_none(rng):
    values = rng.exponential(size=(skewness.MIN_CELLS - 1, ROWS))
    assert_array_equal(skewness.of_cells(*moments(values)), 0)


def test_skewness_does_not_depend_on_units_and_follows_the_sign(rng):
    third, variance, n = moments(rng.exponential(size=(N_CELLS, ROWS)))
    found = skewness.of_cells(third, variance, n)
    assert (found > 0.5).all()
    assert_allclose(skewness.of_cells(8 * third, 4 * variance, n), found, rtol=1e-12)
    assert_allclose(skewness.of_cells(-third, variance, n), -found, rtol=1e-12)


def test_sum_of_equal_cells_by_hand():
    """The mean of n rows has the skewness of one over the root of n."""
    # Variance 9 and skewness 2 of the rows, 25 of them in each of four cells.
    cells = skewness.Skewness(np.full(4, 9 / 25), np.full(4, 2 * 27 / 25**2))
    assert_allclose(cells.of_sums(np.full((1, 4), 0.25)), 2 / np.sqrt(100))
    alone = skewness.Skewness(cells.second[:1], cells.third[:1])
    assert_allclose(alone.of_sums(np.ones((1, 1))), 2 / np.sqrt(25))


@pytest.mark.parametrize("k", [-0.8, -0.1, 0.3, 1.5])
def test_interval_inverts_the_transformation(k):
    t = np.array([1.5, 2.0, 3.0])
    low, high = intervals.skewed(np.zeros(3), np.ones(3), t, k).T
    for error, quantile in ((-low, t), (-high, -t)):
        moved = error + k * error**2 / 3 + k**2 * error**3 / 27 + k / 6
        assert_allclose(moved, quantile, rtol=1e-10)


@pytest.mark.parametrize("k", [-0.8, 0.0, 0.3])
def test_one_sided_tests_agree_with_intervals(k):
    t = np.array([1.5, 2.0, 3.0])
    low, high = intervals.skewed(np.zeros(3), np.ones(3), t, k).T
    assert_allclose(intervals.unskewed(-low, k), t, rtol=1e-10)
    assert_allclose(intervals.unskewed(-high, k), -t, rtol=1e-10)


def test_shared_cumulants_by_brute_force(rng):
    z = rng.normal(size=(7, 4))
    found = skewness.Shared.from_influences(z)
    pair, twice, thrice = [], [], []
    for i, j, k in product(range(4), repeat=3):
        value = np.sum(z[:, i] * z[:, j] * z[:, k])
        if len({i, j, k}) == 3:
            thrice.append(value)
        elif i == j != k:
            twice.append(value)
            pair.append(np.sum(z[:, i] * z[:, k]))
    assert_allclose(found, [np.mean(part) for part in (pair, twice, thrice)], rtol=1e-12)


def test_sums_of_units_with_shared_errors_by_brute_force():
    """A sum over all pairs and all triples of units."""
    second, third, weight = np.array([1.0, 4.0, 9.0]), np.full(3, 2.0), np.array([0.5, -1.0, 0.3])
    own = skewness.Skewness(second, third, skewness.Shared(0.3, 0.2, 0.1))
    x = weight * np.sqrt(second)
    variance = sum(x[i] * x[j] * (1 if i == j else 0.3) for i, j in product(range(3), repeat=2))
    total = np.sum(weight**3 * third)
    for one in product(range(3), repeat=3):
        if len(set(one)) > 1:
            total += np.prod(x[list(one)]) * (0.2 if len(set(one)) == 2 else 0.1)
    assert_allclose(own.of_sums(weight), total / variance**1.5)
    assert_allclose(own.of_sums(weight, 100.0), total / 100.0**1.5)


def test_rows_that_are_groups_have_the_third_cumulant_of_rows(rng):
    values = rng.exponential(size=12)
    influence = (values - values.mean()) / 12 / np.sqrt(1 - 1 / 12)
    own = skewness.Skewness.of_groups(influence[:, None], np.array([11.0]), 1.0)
    assert_allclose(own.third, stats.kstat(values, 3) / 12**2)
    assert_allclose(own.second, values.var(ddof=1) / 12)
    # Of the other sign than all rows together: nothing is clear.
    assert skewness.Skewness.of_groups(influence[:, None], np.array([11.0]), -1.0) is None
    assert skewness.Skewness.of_groups(influence[:, None], np.array([11.0]), 0.0) is None


def clear_sign(values, cell=None, weight=None, unit=None):
    cell = np.zeros(len(values), dtype=int) if cell is None else cell
    return skewness.clear_sign(values, cell, weight, unit, fine=False)


def test_third_l_moment_is_that_of_its_definition(rng):
    """Its influences are those by differences: the weight of one row is changed a little."""
    x, w = rng.exponential(size=30), rng.uniform(1, 2, 30)

    def moment(w):
        at = np.argsort(x)
        p = w[at] / w.sum()
        rank = np.cumsum(p) - p / 2
        return np.sum(p * x[at] * (6 * rank**2 - 6 * rank + 1))

    step = 1e-6
    slope = [(moment(w + step * row) - moment(w - step * row)) / (2 * step) for row in np.eye(30)]
    found = skewness.third_l_moment(x, w)
    assert_allclose(found[0], moment(w), rtol=1e-12)
    # Rounding of the differences.
    assert_allclose(found[1], w * slope, atol=1e-8)


def test_sign_of_all_rows(rng):
    values = rng.exponential(size=200)
    cell = np.repeat(np.arange(10), 20)
    assert clear_sign(values, cell) == 1.0
    assert clear_sign(5 - 3 * values, cell) == -1.0
    assert clear_sign(np.concatenate([values, -values])) == 0.0
    assert clear_sign(np.zeros(10)) == 0.0
    # Copies of ten rows are ten groups, and not thousands of rows.
    few = rng.normal(size=10)
    many, group = np.tile(few, 900), np.tile(np.arange(10), 900)
    assert clear_sign(many) != 0
    assert clear_sign(many, unit=group) == clear_sign(few) == 0


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "grouped"), in_turn(["normal", "t3"], [False, True]))
def test_size_of_the_test_of_the_sign(name, grouped):
    """Symmetric errors are called skewed in 5 % at most, heavy tails of groups or not."""
    rng, n_samples = np.random.default_rng(5), 500
    group = np.repeat(np.arange(40), 8) if grouped else None
    found = 0.0
    for _ in range(n_samples):
        values = drawn(name, rng, 320)
        if grouped:
            values = values + drawn(name, rng, 40)[group]
        found += clear_sign(values, unit=group) != 0
    assert stats.binomtest(int(found), n_samples, 0.05, "greater").pvalue > 0.01


def test_no_skewness_is_students_interval():
    estimate, se, t = np.array([1.0, 2.0]), np.array([0.5, 0.1]), np.array([2.0, 3.0])
    expected = intervals.around(estimate, t * se)
    assert_array_equal(intervals.skewed(estimate, se, t, 0.0), expected)


def covered(name, seed, n_samples):
    """Shares of intervals, and of bands of 10 bins of 30 rows, that hold the mean; and its se."""
    rng = np.random.default_rng(seed)
    pointwise, joint = [], []
    sd = np.repeat(np.linspace(0.3, 1.7, N_CELLS), 1)[:, None]
    weight = np.repeat(np.eye(10) / 2, 2, axis=1)
    for _ in range(n_samples):
        values = sd * drawn(name, rng, (N_CELLS, ROWS))
        third, variance, n = moments(values)
        own = skewness.Skewness.from_cumulants(third, variance, n)
        of_bins = np.zeros(10) if own is None else own.of_sums(weight)
        mean = weight @ values.mean(axis=1)
        se = np.sqrt(weight**2 @ (variance / n))
        for level, out in ((0.95, pointwise), (0.95**0.1, joint)):
            t = np.full(10, stats.t.ppf((1 + level) / 2, 2 * (ROWS - 1)))
            low, high = intervals.skewed(mean, se, t, of_bins).T
            out.append((low <= 0) & (high >= 0))
    band = np.mean(np.all(joint, axis=1))
    return np.mean(pointwise), band, np.sqrt(band * (1 - band) / n_samples)


@pytest.mark.parametrize("name", ["normal", "t3", "exponential", "log-normal"])
@pytest.mark.slow
def test_coverage_at_thirty_rows(name):
    """Nominal 95 %; Student's intervals of log-normal effects cover 88 %, and bands 61 %."""
    pointwise, band, error = covered(name, seed=3, n_samples=600)
    assert 0.93 < pointwise < 0.97
    assert 0.93 - 2 * error < band < 0.97 + 2 * error


def around(values, width, cell):
    """Sum over ``width`` cells around a cell, or those nearest at an end."""
    first = min(max(cell - width // 2, 0), len(values) - width)
    return values[first : first + width].sum()


def test_skewness_of_cells_one_after_the_other(rng):
    """Third cumulants of 20 cells around over the mean variance of 6, to the power of 3/2."""
    n = rng.integers(4, 30, 30).astype(float)
    variance, third = rng.uniform(0.5, 2.0, 30), rng.uniform(0.5, 2.0, 30)
    n[7], variance[11], third[19] = 2.0, 0.0, np.nan
    known = np.isfinite(third) & (variance > 0) & (n > 2)
    k3, v, rows = third[known], variance[known], n[known]
    common = np.array([around(rows * v, 6, k) / around(rows, 6, k) for k in range(len(v))])
    each = rows * k3 / common**1.5
    expected = [around(each, 20, k) / around(rows, 20, k) for k in range(len(v))]
    for sign in (None, 1.0):
        found = skewness.of_cells(third, variance, n, sign)
        assert_allclose(found[known], expected, rtol=1e-12)
        assert_array_equal(found[~known], 0.0)
    assert_array_equal(skewness.of_cells(third, variance, n, -1.0), 0.0)
    assert_array_equal(skewness.of_cells(third, variance, n, 0.0), 0.0)


@pytest.mark.parametrize("width", [5, 20])
def test_cells_agree_on_a_sign_by_a_t_test(rng, width):
    """Of the bounded skewness of the cells around, at 1 % over the number of stretches."""
    n_cells = 40 if width == 20 else 5
    n = rng.integers(3, 30, n_cells).astype(float)
    variance, third = rng.uniform(0.5, 2.0, n_cells), rng.normal(0.0, 1.0, n_cells)
    third[: n_cells // 2] += 1.2
    each = [values[None] for values in (third, variance, n)]
    found = skewness._agreed(*each, np.array([width]), np.array([n_cells]))[0]
    bounded = third / variance**1.5 * (n - 2) / np.sqrt(n * (n - 1))
    level = 0.01 * width / n_cells
    for k in range(n_cells):
        first = min(max(k - width // 2, 0), n_cells - width)
        p = stats.ttest_1samp(bounded[first : first + width], 0).pvalue
        assert found[k] == (p < level)
    assert found.any() == (width == 20)
    assert not found.all()


def test_variances_together_with_their_neighbours(rng):
    variance, n = rng.uniform(0.5, 2.0, 12), rng.uniform(1, 9, 12)
    variance[3], n[8] = np.nan, 0.0
    known = np.isfinite(variance) & (n > 0)
    rows, own = n[known], variance[known]
    expected = [around(rows * own, 6, k) / around(rows, 6, k) for k in range(10)]
    found = skewness.smooth_variance(variance, n)
    assert_allclose(found[known], expected, rtol=1e-12)
    assert_array_equal(found[~known], 0.0)
    # Fewer than six: all of them.
    assert_allclose(
        skewness.smooth_variance(own[:2], rows[:2]), np.average(own[:2], weights=rows[:2])
    )
    assert_array_equal(skewness.smooth_variance(np.full(2, np.nan), np.ones(2)), 0.0)


def test_skewness_of_means_by_hand():
    cells = skewness.Skewness(np.array([4.0, 0.0]), np.array([2.0, 1.0]))
    assert_array_equal(cells.of_means(), [2.0 / 8.0, 0.0])


def near(values, width, i):
    """Those of neighbouring cells; at the ends of the nearest."""
    first = min(max(i - width // 2, 0), len(values) - width)
    return values[first : first + width]


@pytest.mark.parametrize("n_cells", [5, 12, 40])
@pytest.mark.parametrize("sign", [None, 1.0])
def test_skewness_of_cells_and_of_their_means(rng, n_cells, sign):
    """Weighted means of cumulants over a common variance; cells of one row and none are left."""
    n = rng.integers(3, 30, n_cells).astype(float)
    third, variance = rng.uniform(1, 2, n_cells), rng.uniform(0.8, 1.2, n_cells)
    n_all, third_all, variance_all = (np.insert(v, 3, w) for v, w in (
        (n, [0.0, 2.0]), (third, [np.nan, 5.0]), (variance, [np.nan, 7.0])
    ))  # fmt: skip
    found = skewness.of_cells(third_all, variance_all, n_all, sign)
    assert_array_equal(found[3:5], 0)
    width, few = min(20, n_cells), min(6, n_cells)
    clear, expected = [], []
    for i in range(n_cells):
        common = np.average(near(variance, few, i), weights=near(n, few, i))
        smooth = [
            np.average(near(variance, few, j), weights=near(n, few, j)) for j in range(n_cells)
        ]
        each = third / np.array(smooth) ** 1.5
        expected.append(np.average(near(each, width, i), weights=near(n, width, i)))
        own = near(third / variance**1.5 * (n - 2) / np.sqrt(n * (n - 1)), width, i)
        t = own.mean() / (own.std(ddof=1) / np.sqrt(width))
        tail = 0.01 * width / n_cells / 2
        clear.append(sign is not None or abs(t) > stats.t.isf(tail, width - 1))
        assert_allclose(skewness.smooth_variance(variance, n)[i], common)
    assert any(clear)
    assert_allclose(np.delete(found, [3, 4]), np.where(clear, expected, 0), rtol=1e-10)
    whole = skewness.Skewness.from_cumulants(third, variance, n, sign)
    plain, smooth = skewness.of_cells(third, variance, n, sign), np.array(smooth)
    assert_allclose(whole.second, smooth / n)
    assert_allclose(whole.third, plain * smooth**1.5 / n**2)
    assert_allclose(whole.of_means(), plain / np.sqrt(n))
    assert_array_equal(skewness.of_cells(third, variance, n, -1.0), 0)
    assert_array_equal(skewness.of_cells(third, variance, n, 0), 0)
    assert_array_equal(skewness.smooth_variance(variance_all * [np.nan], n_all), 0)
