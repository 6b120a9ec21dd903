"""Zeros of a curve: Fieller's interval, ends of the axis, invariants."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from rhale_stats.arrays.locations import crossings

INFINITE = np.full(9, np.inf)


def line(x, intercept, slope, covariance):
    """A line at points, with the covariance of its values."""
    rows = np.column_stack([np.ones(len(x)), x])
    return x, rows @ [intercept, slope], rows @ np.asarray(covariance) @ rows.T


def fieller(intercept, slope, covariance, quantile):
    """Both roots of (a + b x)^2 = q^2 var(a + b x)."""
    (aa, ab), (_, bb) = covariance
    q = quantile**2
    return np.sort(
        np.roots([slope**2 - q * bb, 2 * (intercept * slope - q * ab), intercept**2 - q * aa])
    )


@pytest.mark.parametrize("slope", [2.0, -2.0])
@pytest.mark.parametrize("degrees", [np.inf, 7.0])
def test_intervals_of_lines_are_those_of_fieller(slope, degrees):
    covariance = [[0.02, 0.01], [0.01, 0.05]]
    x = np.sort(np.random.default_rng(0).uniform(-3, 3, 9))
    found = crossings(*line(x, 0.5, slope, covariance), np.full(9, degrees), 0.95)
    assert_allclose(found.place, [-0.5 / slope])
    expected = fieller(0.5, slope, covariance, stats.t.ppf(0.975, degrees))
    assert_allclose(found.interval[0], expected, rtol=1e-9)
    assert found.rises == [slope > 0]
    # The delta method: the error of the value over the slope.
    variance = found.gradient[0] @ line(x, 0.5, slope, covariance)[2] @ found.gradient[0]
    rows = np.array([1, -0.5 / slope])
    assert_allclose(variance, rows @ covariance @ rows / slope**2, rtol=1e-9)


def test_gradients_are_derivatives():
    x, values = np.array([0.0, 1, 3]), np.array([-1.0, -0.5, 2])
    covariance = np.eye(3) * 1e-6
    found = crossings(x, values, covariance, np.full(3, 9.0), 0.9)
    for point in range(3):
        step = np.zeros(3)
        step[point] = 1e-6
        high, low = (
            crossings(x, values + sign * step, covariance, np.full(3, 9.0), 0.9).place[0]
            for sign in (1, -1)
        )
        assert_allclose(found.gradient[0, point], (high - low) / 2e-6, atol=1e-6)


def test_intervals_end_at_the_axis_where_zero_is_not_excluded():
    x = np.linspace(-1, 1, 9)
    found = crossings(*line(x, 0.1, 0.5, np.diag([0.5, 0.0])), INFINITE, 0.95)
    assert_allclose(found.interval, [[-1, 1]])


def test_signs_that_change_within_the_error_cancel():
    x = np.arange(7.0)
    values = np.array([-9.0, -9, 0.1, -0.1, 0.1, 9, 9])
    small, large = (
        crossings(x, values, np.eye(7) * variance, np.full(7, np.inf), 0.95)
        for variance in (1e-6, 0.25)
    )
    assert len(small.place) == 3
    assert small.rises == [True, False, True]
    # One change that is clear; the middle of the three.
    assert_allclose(large.place, [2.5])
    touched = crossings(
        x, values * [1, 1, 1, 1, 1, -1, -1], np.eye(7) * 0.25, np.full(7, np.inf), 0.95
    )
    assert len(touched.place) == 0
    assert touched.interval.shape == (0, 2)


def test_units_and_direction_of_the_axis():
    rng = np.random.default_rng(1)
    x, values, root = np.sort(rng.normal(size=9)), rng.normal(size=9), rng.normal(size=(9, 9))
    covariance, degrees = root @ root.T * 0.01, rng.uniform(5, 50, 9)
    found = crossings(x, values, covariance, degrees, 0.95)
    assert len(found.place)
    scaled = crossings(3 * x + 1, -2 * values, 4 * covariance, degrees, 0.95)
    assert_allclose(scaled.place, 3 * found.place + 1)
    assert_allclose(scaled.interval, 3 * found.interval + 1)
    assert scaled.rises == [not rises for rises in found.rises]
    back = slice(None, None, -1)
    turned = crossings(-x[back], values[back], covariance[back, back], degrees[back], 0.95)
    assert_allclose(turned.interval[back], -found.interval[:, back])


@pytest.mark.parametrize("zero", [0, 4, 8])
def test_points_that_are_zero(zero):
    values = np.arange(9.0) - zero
    found = crossings(np.arange(9.0), values, np.eye(9) * 1e-4, INFINITE, 0.95)
    # At the last point the curve does not go on.
    assert_allclose(found.place, [] if zero == 8 else [zero])
