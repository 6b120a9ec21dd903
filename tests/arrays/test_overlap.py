"""Steps and curves on cells of their own, against numbers by hand and a fine grid."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rhale_stats.arrays import overlap
from rhale_stats.arrays.overlap import TrueCells
from tests import helpers

frozen = partial(helpers.frozen, dtype=float)

EPS = np.finfo(float).eps


def cells(edges, mean, variance=None, noise=None):
    zero = np.zeros(len(mean))
    return TrueCells(
        frozen(edges),
        frozen(mean),
        frozen(zero if variance is None else variance),
        frozen(zero if noise is None else noise),
        frozen(zero),
    )


def random_cells(rng, n, low=0.0, high=1.0):
    inner = np.sort(rng.uniform(low, high, n - 1))
    edges = np.concatenate([[low], inner, [high]])
    return cells(edges, rng.normal(size=n), rng.uniform(size=n), rng.uniform(size=n) / 100)


# --- averages over bins --------------------------------------------------------------------------


def over_bins(truth, edges, linear=False):
    return overlap.over_bins(truth, edges, np.full(len(edges) - 1, linear))


LINEAR = pytest.mark.parametrize("linear", [False, True])


def test_over_bins_by_hand():
    """Bins [0, 1.5) and [1.5, 3] of cells of width 1: the middle one counts half for each."""
    truth = cells([0, 1, 2, 3], [0, 3, 9], [1, 4, 10])
    mean, variance, error = over_bins(truth, frozen([0, 1.5, 3]))
    assert_allclose(mean, [1, 7], rtol=4 * EPS)
    assert_allclose(variance, [2, 8], rtol=4 * EPS)
    assert_allclose(error, [2 / 3 * 1 + 1 / 3 * 4, 1 / 3 * 16 + 2 / 3 * 4], rtol=4 * EPS)


def test_noise_of_the_cells_is_no_bin_error():
    """Four equal cells whose means have variance 0.3: three quarters of it are among them."""
    truth = cells([0, 1, 2, 3, 4], [1, 1, 1, 1], noise=[0.3] * 4)
    assert_allclose(over_bins(truth, frozen([0, 4]))[2], -0.3 * 3 / 4, rtol=8 * EPS)
    # A line takes a quarter more.
    assert_allclose(over_bins(truth, frozen([0, 4]), True)[2], -0.3 * 2 / 4, rtol=8 * EPS)
    # A bin in one cell sees one mean, and no difference.
    assert_allclose(over_bins(truth, frozen([0, 1]))[2], 0, atol=EPS)
    assert_allclose(over_bins(truth, frozen([0, 1]), True)[2], 0, atol=EPS)


def test_bin_error_of_a_line_by_hand():
    """Means 0, 3, 9 at 0.5, 1.5, 2.5 lie on 4.5 z - 2.75 but for 1/2, -1, 1/2."""
    truth = cells([0, 1, 2, 3], [0, 3, 9])
    assert_allclose(over_bins(truth, frozen([0, 3]), True)[2], 1.5 / 3, rtol=16 * EPS)
    # One bin of two with a line, which goes through both of its cells.
    error = overlap.over_bins(
        cells([0, 1, 2, 3, 4], [0, 2, 5, 7]), frozen([0, 2, 4]), np.array([True, False])
    )[2]
    assert_allclose(error, [0, 1], rtol=8 * EPS, atol=8 * EPS)


@pytest.mark.thorough
@LINEAR
def test_noise_is_what_independent_errors_add(rng, linear):
    """Simulated: errors of the cells' means add so much to the bin error, on average."""
    truth = random_cells(rng, 6)
    edges = frozen([0, 0.4, 1])
    without = over_bins(truth._replace(noise=np.zeros(6)), edges, linear)[2]
    found = [
        over_bins(
            truth._replace(mean=truth.mean + np.sqrt(truth.noise) * rng.normal(size=6)),
            edges,
            linear,
        )[2]
        for _ in range(4000)
    ]
    error = np.std(found, axis=0, ddof=1) / np.sqrt(len(found))
    assert (np.abs(np.mean(found, axis=0) - without) < 4 * error).all()


@pytest.mark.thorough
@pytest.mark.parametrize("n_bins", [1, 3, 40])
def test_over_bins_agrees_with_a_fine_grid(rng, n_bins):
    truth = random_cells(rng, 17)
    edges = random_cells(rng, n_bins).edges
    mean, variance, error = over_bins(truth._replace(noise=np.zeros(17)), edges)
    for k in range(n_bins):
        z = np.linspace(edges[k], edges[k + 1], 200_001)
        z = (z[1:] + z[:-1]) / 2
        cell = np.searchsorted(truth.edges, z, side="right") - 1
        mu = truth.mean[cell]
        # One midpoint in 200,000 beside each of at most 16 steps may be on the wrong side.
        assert_allclose(mean[k], mu.mean(), atol=1e-3)
        assert_allclose(variance[k], truth.variance[cell].mean(), atol=1e-3)
        assert_allclose(error[k], mu.var(), atol=5e-3)


def test_finer_cells_of_the_same_truth_change_nothing(rng):
    truth = random_cells(rng, 5)._replace(noise=np.zeros(5))
    halves = np.sort(np.concatenate([truth.edges, (truth.edges[1:] + truth.edges[:-1]) / 2]))
    finer = TrueCells(halves, *(np.repeat(part, 2) for part in truth[1:]))
    edges = frozen([0, 0.3, 0.31, 1])
    for found, expected in zip(over_bins(finer, edges), over_bins(truth, edges), strict=True):
        assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("n_bins", [1, 2, 5])
def test_bin_error_of_lines_is_that_of_weighted_least_squares(rng, n_bins):
    """Cells count by their overlap, in the middle of it."""
    truth = random_cells(rng, 17)._replace(noise=np.zeros(17))
    edges = frozen(np.linspace(0, 1, n_bins + 1))
    error = over_bins(truth, edges, True)[2]
    for k in range(n_bins):
        lower = np.maximum(truth.edges[:-1], edges[k])
        upper = np.minimum(truth.edges[1:], edges[k + 1])
        here = upper > lower
        length, middle = (upper - lower)[here], ((upper + lower) / 2)[here]
        line = np.polyfit(middle, truth.mean[here], 1, w=np.sqrt(length))
        residual = truth.mean[here] - np.polyval(line, middle)
        expected = np.average(residual**2, weights=length)
        assert_allclose(error[k], expected, rtol=1e-12, atol=1e-14)


# --- distances -----------------------------------------------------------------------------------


def test_step_distance_by_hand():
    """On [0, 1), [1, 1.5), [1.5, 3]: |1 - 2|, |4 - 2|, |4 - 0|."""
    found = overlap.step_distance(
        frozen([0, 1, 3]), frozen([1, 4]), frozen([0, 1.5, 3]), frozen([2, 0])
    )
    assert found == pytest.approx((1 * 1 + 0.5 * 2 + 1.5 * 4) / 3, rel=8 * EPS)


def test_step_distance_is_along_the_second_axis():
    """What lies beyond it does not count."""
    found = overlap.step_distance(
        frozen([-10, 0, 1, 10]), frozen([50, 1, 70]), frozen([0, 0.5, 1]), frozen([1, 3])
    )
    assert found == pytest.approx(1.0, rel=8 * EPS)


def test_step_distance_agrees_with_a_fine_grid(rng):
    a, b = random_cells(rng, 13), random_cells(rng, 7)
    z = (np.arange(10**6) + 0.5) / 10**6
    brute = np.abs(
        a.mean[np.searchsorted(a.edges, z, side="right") - 1]
        - b.mean[np.searchsorted(b.edges, z, side="right") - 1]
    ).mean()
    found = overlap.step_distance(a.edges, a.mean, b.edges, b.mean)
    assert found == pytest.approx(brute, abs=1e-4)  # 18 steps, each within 1e-6 of the axis
    assert found == pytest.approx(overlap.step_distance(b.edges, b.mean, a.edges, a.mean))
    assert overlap.step_distance(a.edges, a.mean, a.edges, a.mean) == 0


def test_step_distance_to_lines_agrees_with_their_means(rng):
    """Of the second counts the mean between neighbouring edges of both."""
    a, b, slope = random_cells(rng, 13), random_cells(rng, 4), rng.normal(size=4)
    found = overlap.step_distance(a.edges, a.mean, b.edges, b.mean, slope)
    middle = (b.edges[1:] + b.edges[:-1]) / 2
    grid = np.unique(np.concatenate([a.edges, b.edges]))
    total = 0.0
    for left, right in pairwise(grid):
        z = left + (np.arange(100) + 0.5) / 100 * (right - left)
        k = np.searchsorted(b.edges, z, side="right") - 1
        line = (b.mean[k] + slope[k] * (z - middle[k])).mean()
        step = a.mean[np.searchsorted(a.edges, z[50], side="right") - 1]
        total += (right - left) * abs(step - line)
    assert found == pytest.approx(total, rel=1e-12)
    flat = overlap.step_distance(a.edges, a.mean, b.edges, b.mean, np.zeros(4))
    assert flat == overlap.step_distance(a.edges, a.mean, b.edges, b.mean)


def test_a_missing_step_is_not_left_out(rng):
    found = overlap.step_distance(
        frozen([0, 1, 2]), frozen([1, 2]), frozen([0, 1, 2]), frozen([1, np.nan])
    )
    assert np.isnan(found)


def test_curve_distance_by_hand():
    """Differences 0, 2, -2: a triangle, then two triangles about the crossing."""
    largest, mean = overlap.curve_distance(frozen([0, 1, 3]), frozen([0, 2, 0]), frozen([0, 0, 2]))
    assert largest == 2
    assert mean == pytest.approx((1 * 1 + 2 * 1) / 3, rel=8 * EPS)


def test_curve_distance_agrees_with_a_fine_grid(rng):
    grid = random_cells(rng, 12).edges
    a, b = rng.normal(size=(2, 13))
    z = (np.arange(10**6) + 0.5) / 10**6
    brute = np.abs(np.interp(z, grid, a) - np.interp(z, grid, b))
    largest, mean = overlap.curve_distance(grid, frozen(a), frozen(b))
    assert largest == pytest.approx(brute.max(), abs=1e-3)
    assert mean == pytest.approx(brute.mean(), abs=1e-5)
    assert overlap.curve_distance(grid, a, a) == (0, 0)


# --- along the axis ------------------------------------------------------------------------------


def test_union_grid_stays_within_the_second():
    found = overlap.union_grid(frozen([-1, 0, 0.5, 2, 5]), frozen([0, 1, 3]))
    assert_array_equal(found, [0, 0.5, 1, 2, 3])


def test_step_at_is_closed_on_the_left():
    found = overlap.step_at(frozen([0, 1, 2]), frozen([5, 7]), frozen([0, 0.999, 1, 2]))
    assert_array_equal(found, [5, 5, 7, 7])


def test_accumulated_by_hand():
    truth = cells([0, 1, 3, 4], [2, -1, 5])
    found = overlap.accumulated_at(truth, frozen([0.5, 1, 2, 4]))
    assert_allclose(found, [0, 1, 0, 4], atol=8 * EPS)


def test_accumulated_is_the_integral(rng):
    truth = random_cells(rng, 9)
    z = np.sort(rng.uniform(size=5))
    found = overlap.accumulated_at(truth, z)
    for end, value in zip(z, found, strict=True):
        fine = np.linspace(z[0], end, 100_001)
        fine = (fine[1:] + fine[:-1]) / 2
        brute = overlap.step_at(truth.edges, truth.mean, fine).mean() * (end - z[0])
        assert value == pytest.approx(brute, abs=1e-3)


def test_mass_between_by_hand():
    """Shares .2, .8 of cells [0, 1), [1, 3]: uniform in each."""
    found = overlap.mass_between(frozen([0, 1, 3]), frozen([0.2, 0.8]), frozen([0, 0.5, 2, 3]))
    assert_allclose(found, [0.1, 0.1 + 0.4, 0.4], rtol=8 * EPS)
