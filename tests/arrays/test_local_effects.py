"""Steps of differences and their errors: by hand."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rhale_stats.arrays import local_effects as kernel
from tests.helpers import frozen

EPS = np.finfo(float).eps


def test_scale_of_most_values():
    # Quartiles 1, 2 and 3 of 0 to 4; a code beyond them changes nothing.
    assert kernel.robust_scale(frozen([0, 1, 2, 3, 4.0])) == pytest.approx(2 / 1.349)
    assert kernel.robust_scale(frozen([0, 1, 2, 3, 999999.0])) == pytest.approx(2 / 1.349)
    # Half of the values are 5: the others are 1, 2 and 4 away.
    assert kernel.robust_scale(frozen([5.0] * 9 + [4.0, 7.0, 9.0])) == 2.0
    assert kernel.robust_scale(frozen([5.0] * 4)) == 0.0


def test_steps_balance_truncation_and_rounding():
    x = frozen([0.0, 1.0, 2.0, 3.0, -400.0])
    s = kernel.robust_scale(x)
    expected = s * np.cbrt(EPS * np.maximum(np.abs(x) / s, 1))
    assert_allclose(kernel.central_step(x, EPS), expected)
    assert_allclose(
        kernel.step_at(x, 2.0, 8e-6), 2.0 * np.cbrt(8e-6 * np.maximum(np.abs(x) / 2, 1))
    )
    assert_array_equal(kernel.offset(x, 0.0), np.ones(5))


def test_arguments_stay_in_the_range():
    x, step = frozen([0.0, 1.0, 4.0]), frozen([0.5, 0.5, 2.0])
    upper, lower = kernel.central_arguments(x, step, 0.0, 5.0)
    assert_array_equal(upper, [0.5, 1.5, 5.0])
    assert_array_equal(lower, [0.0, 0.5, 2.0])
    assert_array_equal(kernel.difference_quotient(upper**2, lower**2, upper - lower), [0.5, 2, 7])


def test_error_of_quotients_from_rounding():
    upper, lower = frozen([[1.0, -3.0], [2.0, 0.0]]), frozen([[-5.0, 1.0], [0.0, 2.0]])
    found = kernel.rounding_error(upper, lower, 0.5, 1e-3)
    assert_allclose(found, 8e-3 * np.array([5.0, 3.0]) / 0.5)
    # Row by row: 5 and 3 over a step of 1/2, 2 and 2 over one of 1/4; the 99 % quantile is the
    # largest. A row that is not moved has none.
    found = kernel.quotient_error(upper, lower, frozen([0.5, 0.25]), 1e-3)
    assert_allclose(found, 8e-3 * np.array([10.0, 8.0]))
    found = kernel.quotient_error(upper, lower, frozen([0.5, 0.0]), 1e-3)
    assert_allclose(found, 8e-3 * np.array([10.0, 6.0]))
    assert_array_equal(kernel.quotient_error(upper, lower, np.zeros(2), 1e-3), [0.0, 0.0])


def test_error_of_most_rows_is_a_quantile():
    errors = frozen(np.column_stack([np.arange(1.0, 201), np.arange(200.0, 0, -1)]))
    assert_array_equal(kernel.typical_error(errors), [198.0, 198.0])


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.linspace(0, 1, 500), EPS),
        (np.linspace(0, 1, 500).astype(np.float32), np.finfo(np.float32).eps),
        (np.linspace(0, 1, 500).astype(np.float32).astype(float), np.finfo(np.float32).eps),
        (np.linspace(0, 1, 500).astype(np.float16).astype(float), np.finfo(np.float16).eps),
        (np.linspace(0, 1, 500).astype(np.float16), np.finfo(np.float16).eps),
        (np.arange(500), EPS),  # whole numbers
        (np.arange(500.0) % 8, EPS),  # few digits, none of them the last of a coarser type
        (np.zeros(5), EPS),
        (np.where(np.arange(1000) == 777, 0.1, 0.5), EPS),  # one value of a thousand
        (np.linspace(1e39, 2e39, 500), EPS),  # too large for single precision
    ],
)
def test_precision_of_answers(values, expected):
    assert kernel.precision_held(values) == expected


def test_precision_of_brain_floats():
    """Eight binary digits: single precision whose lower half is empty."""
    single = np.linspace(1, 2, 500, dtype=np.float32)
    brain = (single.view(np.uint32) & 0xFFFF0000).view(np.float32)
    assert kernel.precision_held(brain) == 2.0**-7
    assert kernel.precision_held(brain.astype(float)) == 2.0**-7
    # One number with more digits, which is not among those that are looked at first.
    brain[1] = single[1]
    assert kernel.precision_held(brain) == np.finfo(np.float32).eps
    # Whole numbers say nothing.
    assert kernel.precision_held(np.arange(129, 256, dtype=np.float32)) == np.finfo(np.float32).eps


def test_ends_of_cells():
    edges, x = frozen([0.0, 1.0, 3.0]), frozen([-1.0, 0.0, 0.5, 1.0, 3.0, 9.0])
    low, high = kernel.cell_ends(edges, x)
    assert_array_equal(low, [0, 0, 0, 1, 1, 1])
    assert_array_equal(high, [1, 1, 1, 3, 3, 3])
    assert_array_equal(kernel.cell_ends(frozen([2.0]), x), np.full((2, 6), 2.0))


def test_rounding_of_every_output_is_that_of_its_largest_row():
    upper = frozen([[1.0, -3.0, 0.5], [2.0, 0.0, 0.1]])
    lower = frozen([[-5.0, 1.0, 0.25], [0.0, 2.0, -0.75]])
    found = kernel.rounding_error(upper, lower, 0.5, 1e-3)
    assert_allclose(found, 16e-3 * np.array([5.0, 3.0, 0.75]))
