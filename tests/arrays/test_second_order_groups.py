"""Errors of second-order effects by groups: by differentiation, and unbiased."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rhale_stats.arrays import second_order as kernel
from tests.arrays.test_second_order import KINDS, drawn, influence_of, pure, rows_of


def sums_of(of, place_a, place_b, delta, w, group, *, frequency=False):
    rows = rows_of(of.a, of.b, place_a, place_b, delta, w, frequency=frequency)
    return kernel.group_sums(of, rows, group)


@pytest.mark.parametrize("kinds", KINDS)
def test_sums_are_derivatives_by_the_weight_of_a_group(kinds, rng):
    """But for the factors of leverage, which are near 1 where groups are many."""
    a, b, place_a, place_b, delta = drawn(rng, kinds, n=400)
    w, group = rng.uniform(0.5, 2, 400), rng.integers(60, size=400)
    of = influence_of(a, b, place_a, place_b, delta, w)
    sums = sums_of(of, place_a, place_b, delta, w, group)
    means = sums.means.copy()
    means.data = means.data / sums.shares.factor.data
    places = sums.places.copy()
    factor = [1 / np.sqrt(1 - 2 * s + s**2 / q) for s, q in shares_of(group, w)]
    places.data = places.data / np.repeat(factor, np.diff(places.indptr))
    plain = sums._replace(means=means, places=places)
    found = np.concatenate(list(kernel.group_noise_factors(of, plain)))
    step = 1e-6
    for number in (0, 17, 42):
        ends = []
        for sign in (-1, 1):
            moved = np.where(group == number, w * np.exp(sign * step), w)
            ends.append(pure(a, b, place_a, place_b, delta, moved, fill=of.fill).ravel())
        assert_allclose(found[number], (ends[1] - ends[0]) / (2 * step), atol=1e-9)


def shares_of(group, w):
    for number in range(group.max() + 1):
        own = w[group == number]
        yield own.sum() / w.sum(), np.sum(own**2) / np.sum(w**2)


def test_squares_are_unbiased_for_independent_differences():
    """Of a mean of unequal groups with weights, exactly: residuals are (I - 1 w' / W) errors."""
    rng = np.random.default_rng(3)
    group, w = np.repeat([0, 1, 2], [2, 5, 9]), rng.uniform(0.5, 2, 16)
    axis, place = kernel.Axis(2, levels=False), np.zeros(16, dtype=np.int64)
    expected = np.zeros(3)
    for unit in np.eye(16):
        delta = unit[:, None, None]
        of = influence_of(axis, axis, place, place, delta, w)
        sums = sums_of(of, place, place, delta, w, group)
        expected += sums.means.toarray()[:, 0] ** 2
    own = [np.sum((w[group == one] / w.sum()) ** 2) for one in range(3)]
    assert_allclose(expected, own, rtol=1e-12)


def test_groups_of_one_row_have_the_errors_of_rows(rng):
    """Means of cells exactly; frequencies stand for rows of one group."""
    a, b, place_a, place_b, delta = drawn(rng, KINDS[0], n=200)
    w, rows = np.ones(200), np.arange(200)
    of = influence_of(a, b, place_a, place_b, delta, w)
    sums = sums_of(of, place_a, place_b, delta, w, rows)
    cells = of.cells
    assert_allclose(np.sqrt(sums.variance), (cells.spread() / np.sqrt(cells.n_obs)).ravel())
    assert_allclose(sums.degrees(), cells.n_obs.ravel() - 1)
    factors = kernel.noise_factors(of, rows_of(a, b, place_a, place_b, delta, w))
    by_rows = kernel.surface_variance(of, factors)[0]
    by_group = kernel.surface_variance(of, kernel.group_noise_factors(of, sums))[0]
    # The part by places has the factor 200 / 199.
    assert_allclose(by_group, by_rows, rtol=0.006)
    times = rng.integers(1, 4, 200).astype(float)
    repeated = np.repeat(rows, times.astype(int))
    group = rows // 5
    whole = sums_of(
        influence_of(a, b, place_a, place_b, delta, times),
        *(place_a, place_b, delta, times, group),
        frequency=True,
    )
    again = sums_of(
        influence_of(
            a, b, place_a[repeated], place_b[repeated], delta[repeated], np.ones(len(repeated))
        ),
        *(place_a[repeated], place_b[repeated], delta[repeated], np.ones(len(repeated))),
        group[repeated],
    )
    assert_allclose(whole.variance, again.variance, rtol=1e-9)
    assert_allclose(whole.degrees(), again.degrees(), rtol=1e-9)


def test_a_cell_of_one_group_borrows_its_variance(rng):
    place = np.repeat([0, 1], [40, 6])
    delta = rng.normal(size=(46, 1, 1))
    axis_a, axis_b = kernel.Axis(3, levels=False), kernel.Axis(2, levels=False)
    group = np.append(np.arange(40) // 4, np.full(6, 10))
    of = influence_of(axis_a, axis_b, place, 0 * place, delta, np.ones(46))
    sums = sums_of(of, place, 0 * place, delta, np.ones(46), group)
    assert sums.alone.tolist() == [False, True]
    assert np.isnan(sums.variance[1])
    assert sums.degrees()[1] == 0
    blocks = list(kernel.group_noise_factors(of, sums))
    spread = np.sqrt(kernel.pooled(of.cells)[0])
    assert_allclose(blocks[-1][0], spread * of.by_means(np.array([1])).ravel())
    variance = kernel.surface_variance(of, blocks)[0]
    degrees = kernel.group_surface_degrees(of, sums, variance)
    # Each of the two cells has at most those of 11 groups.
    assert ((degrees > 5) & (degrees < 22)).all()


def test_signs_of_groups(rng):
    """The statistic of groups is that of their sums, whatever is in them."""
    n = 120
    cell, axis = rng.integers(6, size=n), kernel.Axis(2, levels=False)
    delta, w, group = rng.normal(size=(n, 1, 1)), rng.uniform(0.5, 2, n), rng.integers(20, size=n)
    rows = rows_of(kernel.Axis(7, levels=False), axis, cell, 0 * cell, delta, w)
    found = kernel.sign_test(rows, group)
    table = np.zeros((20, 6))
    np.add.at(table, (group, cell), w * delta.ravel())
    share = table / np.sqrt(np.bincount(cell, w, 6))
    mean = np.sum(share**2)
    variance = 2 * (np.sum((share.T @ share) ** 2) - np.sum((share**2).sum(axis=1) ** 2))
    degrees = 2 * mean**2 / variance
    assert_allclose(found, (np.sum(share.sum(axis=0) ** 2) * degrees / mean, degrees), rtol=1e-12)
    assert_allclose(kernel.sign_test(rows, np.arange(n)), kernel.sign_test(rows), rtol=1e-12)


@pytest.mark.parametrize("kinds", KINDS)
def test_covariances_and_degrees_of_the_surface_cell_by_cell(kinds, rng):
    """Groups of several rows; a surface is a sum of means of cells, math [99]."""
    n = 300
    a, b, place_a, place_b, delta = drawn(rng, kinds, n=n)
    w, group = rng.uniform(0.5, 2, n), rng.integers(0, 15, n)
    of = influence_of(a, b, place_a, place_b, delta, w)
    sums = sums_of(of, place_a, place_b, delta, w, group)
    moved = sums.means.toarray()
    assert_allclose(sums.covariance(), moved.T @ moved)
    assert_allclose(sums.variance, np.sum(moved**2, axis=0))
    variance = kernel.surface_variance(of, kernel.group_noise_factors(of, sums))[0]
    found = kernel.group_surface_degrees(of, sums, variance)
    by_means = of.by_means(np.arange(moved.shape[1]))
    for edge in np.ndindex(variance.shape):
        parts = by_means[(slice(None), *edge)] ** 2 * sums.variance
        rest = max(variance[edge] - parts.sum(), 0.0)
        squares = parts @ sums.overlap @ parts + rest**2 / sums.every
        assert_allclose(found[edge], variance[edge] ** 2 / squares)
    few = sums_of(of, place_a, place_b, delta, w, np.arange(n) // 299)
    assert np.isnan(few.covariance()).any()
    single = few.n_groups < 2
    assert_array_equal(np.isnan(few.covariance()), single[:, None] | single)
