"""Local effects by differences of the model's output: steps, arguments, errors."""

from __future__ import annotations

import numpy as np

from rhale_stats.arrays.moments import FloatArray


def central_step(x: FloatArray, precision: float) -> float:
    """Step of the central difference for one feature, from its scale.

    With s the standard deviation of x and A = max|x| / s (at least 1), the truncation error is
    about h^2 f'''/6 and the rounding error about A eps |f| / h; both are balanced at
    h = s (A eps)^(1/3), where the error relative to f's own variation over s is about
    (A eps)^(2/3): 4e-11 in double precision, 2e-5 where the model answers in single precision,
    2e-6 for time stamps of 1.7e9 with a spread of 100.
    """
    scale = float(np.std(x))
    return float(scale * np.cbrt(precision * max(1.0, float(np.max(np.abs(x))) / scale)))


def central_arguments(x: FloatArray, step: float) -> tuple[FloatArray, FloatArray]:
    """Upper and lower arguments x + h and x - h, kept within the observed range.

    Spline bases refuse values beyond their outermost knots, and no model has been seen there; at
    the two ends the difference is one-sided, with an error of order h instead of h^2.
    """
    return np.minimum(x + step, x.max()), np.maximum(x - step, x.min())


def difference_quotient(f_upper: FloatArray, f_lower: FloatArray, step: FloatArray) -> FloatArray:
    """Slope between the arguments as the model received them, free of the rounding of x + h."""
    return np.asarray((f_upper - f_lower) / step)


def rounding_error(
    f_upper: FloatArray, f_lower: FloatArray, step: float, precision: float
) -> FloatArray:
    """What rounding in the model alone may change a difference quotient by: 8 eps max|f| / h.

    Of every output: (row, output) -> (output,).
    """
    largest = np.maximum(np.abs(f_upper).max(axis=0), np.abs(f_lower).max(axis=0))
    return np.asarray(8 * precision * largest / step)
