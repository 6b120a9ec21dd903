"""Quadratic forms, Box's approximation and intervals of sizes."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse, special, stats

from rhale_stats.arrays import quadratic as kernel


def symmetric(rng, n):
    root = rng.normal(size=(n, n))
    return root @ root.T


def is_form(found, value, weight, covariance):
    """The quadratic form with these full matrices."""
    product = weight @ covariance
    assert_allclose(found.expected, np.trace(product))
    assert_allclose(found.parts, np.diag(product))
    assert_allclose(found.statistic, value @ weight @ value / np.trace(product))
    assert_allclose(found.degrees, np.trace(product) ** 2 / np.trace(product @ product))
    assert_allclose(found.moved, value @ weight @ covariance @ weight @ value)


def test_a_form_by_full_matrices(rng):
    value, weight, covariance = rng.normal(size=4), symmetric(rng, 4), symmetric(rng, 4)
    found = kernel.form(value, sparse.csr_array(weight), sparse.csr_array(covariance))
    is_form(found, value, weight, covariance)
    square = found.square(7.0)
    same = kernel.square(value, weight, covariance, 7.0)
    assert_allclose(square, same)


def test_what_is_left_of_a_common_multiple(rng):
    """The same with the matrix that takes the multiple of the level out of the estimates."""
    value, weight, covariance = rng.normal(size=4), symmetric(rng, 4), symmetric(rng, 4)
    level = rng.normal(size=4)
    found = kernel.form(value, sparse.csr_array(weight), sparse.csr_array(covariance), level)
    loading = weight @ level
    rest = weight - np.outer(loading, loading) / (level @ loading)
    is_form(found, value, rest, covariance)
    # Estimates that move together only have nothing left.
    together = kernel.form(
        level, sparse.csr_array(np.eye(4)), sparse.csr_array(np.zeros((4, 4))), level
    )
    assert np.isnan(together.statistic)
    assert np.isnan(together.degrees)


def test_blocks_and_their_inverse():
    level, shared, slope = np.array([2.0, 3.0, 5.0]), np.array([0.5, -1.0]), np.array([4.0, 7.0])
    at = np.array([0, 2])
    found = kernel.blocks(level, shared, slope, at).toarray()
    expected = np.diag([2.0, 3, 5, 4, 7])
    expected[0, 3] = expected[3, 0] = 0.5
    expected[2, 4] = expected[4, 2] = -1
    assert_array_equal(found, expected)
    inverse = kernel.inverse(level, shared, slope, at).toarray()
    assert_allclose(inverse, np.linalg.inv(expected), atol=1e-15)


def test_sizes_and_their_p_values():
    """Of three equal independent estimates the statistic is F with 3 degrees of freedom."""
    one = kernel.square(np.array([3.0, 1.0, 2.0]), np.eye(3) / 3, 0.5 * np.eye(3), 20.0)
    assert one.corrected == pytest.approx(14 / 3 - 0.5)
    assert one.size == pytest.approx(np.sqrt(14 / 3 - 0.5))
    assert one.p_value() == pytest.approx(stats.f.sf(14 / 3 / 0.5, 3, 20))
    small = one._replace(value=0.3)
    assert small.corrected < 0
    assert small.size == 0
    assert np.isnan(one._replace(denominator=0.0).p_value())
    # What rounding leaves of no error.
    exact = one._replace(expected=0.0)
    assert np.isnan(exact.p_value())
    assert_allclose(exact.interval(0.9), [exact.size, exact.size])
    assert np.isnan(one._replace(denominator=0.0).interval(0.9)).all()


@pytest.mark.parametrize("value", [0.4, 2.0, 14 / 3])
def test_an_interval_of_a_size_inverts_a_noncentral_f(value):
    """With equal independent estimates: value / expected has 3 and 20 degrees of freedom."""
    one = kernel.Square(value, 0.5, 0.5**2 / 3, 0.5 / 3 * value, 20.0)
    ends = one.interval(0.9)
    scale = max(0.5 / 3, (one.moved - one.squares) / one.corrected if one.corrected > 0 else 0.0)
    degrees = 0.5 / scale
    for end, share in zip(ends, (0.95, 0.05), strict=True):
        below = special.ncfdtr(degrees, 20.0, end**2 / scale, value / 0.5)
        if end > 0:
            assert below == pytest.approx(share, abs=1e-7)
        else:
            assert below <= share
    assert ends[0] <= one.size <= ends[1]
    # The 95 % quantile of F is 3.1, value / expected 0.8, 4 or 9.3.
    assert (ends[0] > 0) == (value > 1)


def test_an_interval_of_a_large_size_is_students():
    one = kernel.Square(1e9, 1.0, 0.25, 0.5e9, 20.0)
    scale = max(0.25, (one.moved - one.squares) / one.corrected)
    half = stats.t.ppf(0.95, 20) * np.sqrt(scale)
    assert_allclose(one.interval(0.9), one.size + np.array([-half, half]), rtol=1e-9)


def test_intervals_follow_the_unit_of_estimates():
    """Values, and their covariance, in units of 100 and of 1/100."""
    for denominator in (4.0, 50.0, np.inf):
        for value in (0.5, 1.5, 6.0, 1e7):
            whole = kernel.Square(value, 1.0, 0.3, 0.3 + 0.4 * (value - 1), denominator)
            expected = whole.interval(0.9)
            for unit in (1e-4, 1e4):
                other = kernel.Square(
                    unit * value, unit, 0.3 * unit**2, whole.moved * unit**2, denominator
                )
                assert_allclose(other.interval(0.9), np.sqrt(unit) * expected, rtol=1e-6)
                assert_allclose(other.p_value(), whole.p_value(), rtol=1e-9)
                assert_allclose(other.size, np.sqrt(unit) * whole.size)
    # Known exactly, and not known at all.
    assert_allclose(kernel.Square(4.0, 0.0, 0.0, 0.0, np.inf).interval(0.9), [2, 2])
    assert np.isnan(kernel.Square(4.0, 1.0, 1.0, 1.0, 0.0).interval(0.9)).all()


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_a_form_in_other_units(rng, unit):
    value, weight, covariance = rng.normal(size=4), symmetric(rng, 4), symmetric(rng, 4)
    level = rng.normal(size=4)
    for about in (None, level):
        one = kernel.form(value, sparse.csr_array(weight), sparse.csr_array(covariance), about)
        other = kernel.form(
            unit * value,
            sparse.csr_array(weight),
            sparse.csr_array(unit**2 * covariance),
            None if about is None else unit * about,
        )
        assert_allclose(other.statistic, one.statistic)
        assert_allclose(other.degrees, one.degrees)
        assert_allclose(other.expected, unit**2 * one.expected)
        assert_allclose(other.moved, unit**4 * one.moved)
