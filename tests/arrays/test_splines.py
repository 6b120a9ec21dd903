"""What smoothed curves take from single rows."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.interpolate import make_smoothing_spline
from scipy.linalg import inv, sqrtm

from rhale_stats.arrays import splines as kernel
from tests.helpers import frozen


def test_a_level_of_one_row_leaves_the_other_levels_known():
    """A mean has the influences (y - mean) / n of its rows; that of one row has none."""
    level = frozen([0, 0, 0, 1, 2, 2])
    y = frozen([1.0, 2.0, 6.0, 4.0, 5.0, 7.0])
    basis = kernel.level_basis(level, 3)
    residual = y - np.array([3.0, 4.0, 6.0])[level]
    found = kernel.influences(basis, residual, None, 0.0, frequency=False)
    alone = level == 1
    assert np.isnan(found[alone, 1]).all()
    assert_array_equal(found[alone][:, [0, 2]], 0)
    for k, n in ((0, 3), (2, 2)):
        rows = level == k
        # HC2: residuals over the root of one less 1/n.
        expected = residual[rows] / np.sqrt(1 - 1 / n) * len(y) / n
        assert_allclose(found[rows, k], expected, rtol=1e-12)
        assert_array_equal(found[~rows & ~alone, k], 0)


def test_rows_without_weight_may_be_where_the_curve_is_not_known():
    near = kernel.near_levels(frozen([0, 0, 1, 1]), 2)
    residual = frozen([[3.0], [np.nan], [1.0], [2.0]])
    found = near.spread(residual, frozen([[2.0], [0.0], [1.0], [3.0]]))
    assert_allclose(found[:, 0], [3, np.sqrt(13 / 4)], rtol=1e-14)


def smoothing_spline(x, y, weight, smoothing, at):
    """That of SciPy on an axis from 0 to 1, straight beyond both ends."""
    low, span = x.min(), np.ptp(x)
    z, cell = np.unique((x - low) / span, return_inverse=True)
    total = np.bincount(cell, weight)
    mean = np.bincount(cell, weight * y) / total
    found = make_smoothing_spline(z, mean, total / total.sum(), smoothing)
    at = (at - low) / span
    inside = np.clip(at, 0, 1)
    return found(inside) + found(inside, 1) * (at - inside)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_smoothing_spline_is_that_of_scipy(rng, weighted):
    """Places are multiples of 1/1024 of the axis; some are those of several rows."""
    x = np.concatenate([[0, 1024], rng.integers(0, 1025, 40), [512, 512]]) / 256 + 3
    y = np.sin(x) + rng.normal(0, 0.3, len(x))
    weight = rng.uniform(0.5, 2.0, len(x)) if weighted else None
    grid = np.array([1.0, 2.9, 3.0, 3.3, 5.0, 6.99, 7.0, 7.5, 12.0])
    basis = kernel.spline_basis(x, weight, grid)
    w = np.ones(len(x)) if weight is None else weight
    for smoothing in (1e-7, 1e-4, 1e-2):
        found = kernel.smooth(basis, y, weight, smoothing, frequency=False)
        expected = smoothing_spline(x, y, w, smoothing, grid)
        assert_allclose(found.curve, expected, rtol=1e-7, atol=1e-9)
        expected = y - smoothing_spline(x, y, w, smoothing, x)
        assert_allclose(found.residual, expected, rtol=1e-6, atol=1e-9)
        assert found.smoothing == smoothing


@pytest.mark.thorough
def test_the_smoothing_parameter_minimises_generalised_cross_validation(rng):
    """The criterion by a matrix of leverage that is written out."""
    x = np.linspace(0, 4, 33)  # multiples of 1/1024 of the axis
    y = np.sin(2 * x) + rng.normal(0, 0.3, 33)
    basis = kernel.spline_basis(x, None, x)
    found = kernel.smooth(basis, y, None, None, frequency=False)

    def criterion(smoothing):
        hat = np.array([smoothing_spline(x, e, np.ones(33), smoothing, x) for e in np.eye(33)]).T
        return np.mean((y - hat @ y) ** 2) / (1 - np.trace(hat) / 33) ** 2

    best = criterion(found.smoothing)
    for factor in (0.5, 0.9, 1.1, 2.0):
        assert criterion(factor * found.smoothing) > best


def test_influences_of_rows_on_the_spline(rng):
    """A row's influence is its effect on the curve times its residual over (1 - leverage)^(1/2)."""
    x = np.linspace(0, 4, 33)
    y, grid = rng.normal(size=33), np.array([0.1, 2.0, 3.9])
    basis = kernel.spline_basis(x, None, grid)
    found = kernel.smooth(basis, y, None, 1e-4, frequency=False)
    effect = np.array([smoothing_spline(x, e, np.ones(33), 1e-4, grid) for e in np.eye(33)])
    hat = np.array([smoothing_spline(x, e, np.ones(33), 1e-4, x) for e in np.eye(33)])
    expected = effect * (found.residual / np.sqrt(1 - np.diag(hat)))[:, None] * 33
    moved = kernel.influences(basis, found.residual, None, 1e-4, frequency=False)
    assert_allclose(moved, expected, rtol=1e-6, atol=1e-9)
    # Replicates: rows that are there several times, at the same places.
    times = rng.integers(1, 4, (33, 2)).astype(float)
    curves, residuals = kernel.replicate_curves(basis, y, times, 1e-4)
    for draw in range(2):
        expected = smoothing_spline(x, y, times[:, draw], 1e-4, grid)
        assert_allclose(curves[:, draw], expected, rtol=1e-7, atol=1e-9)
        expected = y - smoothing_spline(x, y, times[:, draw], 1e-4, x)
        assert_allclose(residuals[:, draw], expected, rtol=1e-6, atol=1e-9)


def test_groups_of_levels():
    """Three groups with two rows each of level 0; level 1 has rows of one group only."""
    level, group = np.array([0, 0, 0, 0, 0, 0, 1, 1]), np.array([0, 0, 1, 1, 2, 2, 2, 2])
    y = np.array([1.0, 3.0, 2.0, 6.0, 0.0, 6.0, 4.0, 5.0])
    basis = kernel.level_basis(level, 2)
    residual = y - np.where(level == 0, 3.0, 4.5)
    found = kernel.of_groups(basis, residual, None, group, 0.0, np.zeros(2), frequency=False)
    # Means 2, 4, 3 of the groups: the variance of their mean, with 3 - 1 degrees of freedom.
    assert_allclose(np.sum(found.moved[:, 0] ** 2), np.var([2, 4, 3], ddof=1) / 3)
    assert_allclose(found.degrees, [2, 0])
    assert np.isnan(found.moved[:, 1]).all()
    # Less the curve at level 0, of which nothing is left there.
    centred = kernel.of_groups(
        basis, residual, None, group, 0.0, np.array([1.0, 0.0]), frequency=False
    )
    assert_allclose(centred.moved[:, 0], 0, atol=1e-15)


@pytest.mark.parametrize("kind", ["none", "precision", "frequency"])
def test_groups_of_a_spline_row_by_row(rng, kind):
    """Residuals of a group times (I - H)^(-1/2), with the matrix of leverage written out."""
    n = 40
    x = np.concatenate([[0, 1024], rng.integers(0, 1025, n - 4), [512, 512]]) / 1024
    y, group, grid = rng.normal(size=n), rng.integers(6, size=n), np.array([0.1, 0.5, 1.2])
    weight = {
        "none": None,
        "precision": rng.uniform(0.5, 2.0, n),
        "frequency": rng.integers(1, 4, n).astype(float),
    }[kind]
    w = np.ones(n) if weight is None else weight
    p, frequency = w / w.sum(), kind == "frequency"
    basis = kernel.spline_basis(x, weight, grid)
    residual = kernel.smooth(basis, y, weight, 1e-4, frequency=frequency).residual
    # Curves of unit values at one row, over the share of the row.
    hat = np.array([smoothing_spline(x, e, w, 1e-4, x) for e in np.eye(n)]) / p[:, None]
    effect = np.array([smoothing_spline(x, e, w, 1e-4, grid) for e in np.eye(n)]) / p[:, None]
    leverage = np.diag(hat) * p / (w if frequency else 1)
    found = kernel.influences(basis, residual, weight, 1e-4, frequency=frequency)
    expected = effect * (residual / np.sqrt(1 - leverage))[:, None]
    assert_allclose(found, expected, rtol=1e-5, atol=1e-8)
    centre = np.array([0.2, 0.5, 0.3])
    effect = effect - (effect @ centre)[:, None]
    found = kernel.of_groups(basis, residual, weight, group, 1e-4, centre, frequency=frequency)
    root, parts = np.sqrt(p), np.empty((6, 3))
    for g in range(6):
        here = group == g
        block = np.eye(here.sum()) - root[here, None] * hat[np.ix_(here, here)] * root[here]
        corrected = root[here] * (inv(sqrtm(block)) @ (root * residual)[here])
        assert_allclose(found.moved[g], corrected @ effect[here], rtol=1e-5, atol=1e-8)
        squares = p / w.sum() if frequency else p**2
        parts[g] = squares[here] @ effect[here] ** 2
    expected = parts.sum(axis=0) ** 2 / np.sum(parts**2, axis=0) - 1
    assert_allclose(found.degrees, expected, rtol=1e-6)


def test_the_smoothing_parameter_under_precision_weights(rng):
    """Every place is left out by its own leverage."""
    x = np.linspace(0, 4, 33)
    y, w = np.sin(2 * x) + rng.normal(0, 0.3, 33), rng.uniform(0.3, 3.0, 33)
    basis = kernel.spline_basis(x, w, x)
    found = kernel.smooth(basis, y, w, None, frequency=False)

    def criterion(smoothing):
        hat = np.array([smoothing_spline(x, e, w, smoothing, x) for e in np.eye(33)]).T
        return w @ ((y - hat @ y) / (1 - np.diag(hat))) ** 2

    best = criterion(found.smoothing)
    for factor in (0.5, 0.9, 1.1, 2.0):
        assert criterion(factor * found.smoothing) > best
    expected = smoothing_spline(x, y, w, found.smoothing, x)
    assert_allclose(found.curve, expected, rtol=1e-6, atol=1e-8)


def test_generalised_cross_validation_under_frequency_weights(rng):
    x = np.linspace(0, 4, 33)
    y, w = np.sin(2 * x) + rng.normal(0, 0.3, 33), rng.integers(1, 6, 33).astype(float)
    found = kernel.smooth(kernel.spline_basis(x, w, x), y, w, None, frequency=True)

    def criterion(smoothing):
        hat = np.array([smoothing_spline(x, e, w, smoothing, x) for e in np.eye(33)]).T
        share = w / w.sum()
        # The mean leverage counts places, over which b' A^-1 b is averaged by share.
        return share @ (y - hat @ y) ** 2 / (1 - np.trace(hat) / 33) ** 2

    best = criterion(found.smoothing)
    for factor in (0.5, 0.9, 1.1, 2.0):
        assert criterion(factor * found.smoothing) > best


def test_near_values_are_one_place_at_their_weighted_mean():
    """2.0 and 2.0001 are nearer than 1 / 1024 of the axis from 1 to 3."""
    x = np.array([1.0, 1.2, 1.4, 1.7, 2.0, 2.0001, 3.0])
    weight = np.array([1.0, 1, 1, 1, 1, 3, 1])
    basis = kernel.spline_basis(x, weight, x)
    assert_array_equal(basis.cell, [0, 1, 2, 3, 4, 4, 5])
    assert_allclose(basis.place, [0, 0.1, 0.2, 0.35, 0.5000375, 1], rtol=1e-11)
    assert_allclose(basis.row_place, (x - 1) / 2)
    assert_allclose(basis.grid_place, (x - 1) / 2)


def test_few_places_are_joined_by_straight_lines():
    """Four places: their means, constant beyond both ends; five places are smoothed."""
    x, y = np.array([1.0, 1, 2, 4, 5]), np.array([3.0, 5, 2, 8, 6])
    weight = np.array([1.0, 3, 1, 1, 2])
    grid = np.array([0.0, 1.5, 3.0, 4.5, 9.0])
    basis = kernel.spline_basis(x, weight, grid)
    found = kernel.smooth(basis, y, weight, None, frequency=False)
    assert basis.roughness is None
    assert np.isnan(found.smoothing)
    assert_allclose(found.curve, [4.5, 3.25, 5, 7, 6], rtol=1e-12)
    assert_allclose(found.residual, [-1.5, 0.5, 0, 0, 0], atol=1e-14)
    assert kernel.spline_basis(np.arange(5.0), None, grid).roughness is not None
    # All rows at one place.
    one = kernel.spline_basis(np.full(3, 2.0), None, grid)
    assert_allclose(kernel.smooth(one, y[:3], None, None, frequency=False).curve, 10 / 3)


def test_a_straight_line_is_given_back():
    x = np.array([0.0, 1, 2, 4, 5, 8])
    weight, grid = np.array([1.0, 2, 1, 3, 1, 1]), np.array([-2.0, 0.5, 8.0, 11.0])
    basis = kernel.spline_basis(x, weight, grid)
    for smoothing in (None, 1e-3):
        found = kernel.smooth(basis, 3 - 0.5 * x, weight, smoothing, frequency=False)
        assert_allclose(found.curve, 3 - 0.5 * grid, rtol=1e-12)
        assert_allclose(found.residual, 0, atol=1e-14)
        assert found.smoothing == (kernel.STRAIGHT if smoothing is None else smoothing)


def test_curves_and_residuals_of_levels_with_weights():
    level, y = np.array([0, 0, 1, 1, 2]), np.array([1.0, 4.0, 2.0, 8.0, 5.0])
    weight = np.array([2.0, 1.0, 1.0, 3.0, 1.0])
    basis = kernel.level_basis(level, 4)
    found = kernel.smooth(basis, y, weight, None, frequency=False)
    assert_allclose(found.curve, [2, 6.5, 5, np.nan])
    assert_allclose(found.residual, [-1, 2, -4.5, 1.5, 0], atol=1e-14)
    for place in (basis.place, basis.grid_place):
        assert_array_equal(place, [0, 1, 2, 3])
    assert_array_equal(basis.row_place, level)
    times = np.array([[1.0, 0], [0, 0], [1, 2], [1, 0], [1, 1]])
    curves, residuals = kernel.replicate_curves(basis, y, times, 0.0)
    assert_allclose(curves.T, [[1, 5, 5, np.nan], [np.nan, 2, 5, np.nan]])
    assert_allclose(residuals.T, [[0, 3, -3, 3, 0], [np.nan, np.nan, 0, 6, 0]], atol=1e-14)


def test_spread_of_residuals_between_means_of_bins():
    near = kernel.near_bins(np.array([0, 0, 1]), np.array([1.0, 3.0]), np.array([0.0, 1.5, 5.0]))
    residual, weight = np.array([[1.0], [2.0], [4.0]]), np.array([[3.0], [1.0], [2.0]])
    # Mean squares 7/4 and 16; a quarter of the way between them at 1.5.
    expected = np.sqrt([7 / 4, 0.75 * 7 / 4 + 0.25 * 16, 16])
    assert_allclose(near.spread(residual, weight)[:, 0], expected, rtol=1e-14)


def test_rows_beside_the_first_and_the_last_place(rng):
    """Near values at both ends: their means are the outermost knots, beyond which it is straight.

    The first knot is therefore above 0.
    """
    x = np.concatenate([[0.0, 0.0004], np.linspace(0.1, 0.9, 9), [0.9998, 1.0]])
    y, weight = rng.normal(size=13), rng.uniform(0.5, 2.0, 13)
    grid = np.array([-0.5, 0.0, 0.0003, 0.05, 0.4, 0.95, 0.99995, 1.0, 1.5])
    basis = kernel.spline_basis(x, weight, grid)
    z = basis.place
    total = np.bincount(basis.cell, weight)
    assert z[0] > 0
    assert_allclose(z, np.bincount(basis.cell, weight * x) / total, atol=1e-12)
    mean = np.bincount(basis.cell, weight * y) / total
    found = kernel.smooth(basis, y, weight, 1e-5, frequency=False)
    spline = make_smoothing_spline(z, mean, total / total.sum(), 1e-5)

    def at(points):
        inside = np.clip(points, z[0], z[-1])
        return spline(inside) + spline(inside, 1) * (points - inside)

    assert_allclose(found.curve, at(grid), rtol=1e-6, atol=1e-8)
    assert_allclose(found.residual, y - at(x), rtol=1e-5, atol=1e-8)


def test_two_groups_of_a_level_have_one_degree_of_freedom():
    level, group = np.array([0, 0, 0, 0, 1, 1]), np.array([0, 0, 1, 1, 0, 0])
    y = np.array([1.0, 3.0, 6.0, 8.0, 4.0, 5.0])
    basis = kernel.level_basis(level, 2)
    residual = y - 4.5  # the mean of both levels
    found = kernel.of_groups(basis, residual, None, group, 0.0, np.zeros(2), frequency=False)
    # Means 2 and 7: the variance of their mean.
    assert_allclose(np.sum(found.moved[:, 0] ** 2), np.var([2, 7], ddof=1) / 2)
    assert_allclose(found.degrees, [1, 0])
    assert np.isnan(found.moved[:, 1]).all()
