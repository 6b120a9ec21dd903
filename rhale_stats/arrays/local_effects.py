"""Local effects by differences of the model's output: steps, arguments, cells, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rhale_stats.arrays.moments import FloatArray

# Errors of rows are summarised by their 99 % quantile.
ERROR_QUANTILE = 0.99
# The precision is that of a coarser type if all numbers fit into it and this share uses its last
# digit.
LAST_DIGIT_SHARE = 0.1
# Unit of rounding of bfloat16.
BRAIN_FLOAT = 2.0**-7


def robust_scale(x: FloatArray) -> float:
    """Scale of most values: the interquartile range over 1.349, that of a normal distribution.

    If half of the values are equal, it is the median distance of the other values from them. A few
    coded values (999999) change neither.
    """
    low, middle, high = np.quantile(x, [0.25, 0.5, 0.75])
    if high > low:
        return float((high - low) / 1.349)
    away = np.abs(x - middle)
    return float(np.median(away[away > 0])) if (away > 0).any() else 0.0


def central_step(x: FloatArray, precision: float) -> FloatArray:
    """Step of the central difference at every row, from the scale of the feature.

    With s the `robust_scale` of x and A = |x| / s (at least 1), the truncation error is about
    h^2 f'''/6 and the rounding error about A eps |f| / h; both are balanced at h = s (A eps)^(1/3),
    where the error relative to f's own variation over s is about (A eps)^(2/3): 4e-11 in double
    precision, 2e-5 where the model answers in single precision, 2e-6 for time stamps of 1.7e9 with
    a spread of 100.
    """
    return step_at(x, robust_scale(x), precision)


def step_at(x: FloatArray, scale: float, precision: float) -> FloatArray:
    """Step of the central difference at every row, for a scale of the feature that is known."""
    return np.asarray(scale * np.cbrt(precision * offset(x, scale)))


def offset(x: FloatArray, scale: float) -> FloatArray:
    """A = |x| / s, at least 1: by how much rounding of x exceeds that of its scale."""
    if not scale:
        return np.ones(len(x))
    return np.maximum(1.0, np.abs(x / scale))


def central_arguments(
    x: FloatArray, step: FloatArray, low: float, high: float
) -> tuple[FloatArray, FloatArray]:
    """Upper and lower arguments x + h and x - h, kept within the observed range.

    Spline bases refuse values beyond their outermost knots, and there are no data outside. At the
    two ends the difference is one-sided, with an error of order h instead of h^2.
    """
    return np.minimum(x + step, high), np.maximum(x - step, low)


def difference_quotient(f_upper: FloatArray, f_lower: FloatArray, step: FloatArray) -> FloatArray:
    """Slope between the arguments as the model received them, free of the rounding of x + h."""
    return np.asarray((f_upper - f_lower) / step)


def rounding_error(
    f_upper: FloatArray, f_lower: FloatArray, step: float, precision: float
) -> FloatArray:
    """Error of a difference quotient from rounding in the model: 8 eps max|f| / h.

    For every output: (row, output) -> (output,).
    """
    largest = np.maximum(np.abs(f_upper).max(axis=0), np.abs(f_lower).max(axis=0))
    return np.asarray(8 * precision * largest / step)


def quotient_error(
    f_upper: FloatArray, f_lower: FloatArray, step: FloatArray, precision: float
) -> FloatArray:
    """`rounding_error` row by row, as most rows have it: (row, output), steps (row,) -> (output,).

    Coded values have other outputs and steps than the other rows.
    """
    moved = step > 0
    if not moved.any():
        return np.zeros(f_upper.shape[1])
    # In place, because there may be very many rows.
    error = np.abs(f_upper)
    np.maximum(error, np.abs(f_lower), out=error)
    if not moved.all():
        error, step = error[moved], step[moved]
    error *= 8 * precision
    error /= step[:, None]
    return typical_error(error, overwrite=True)


def typical_error(errors: FloatArray, *, overwrite: bool = False) -> FloatArray:
    """99 % quantile over the rows of the errors (row, output): (output,)."""
    return np.asarray(
        np.quantile(
            errors, ERROR_QUANTILE, axis=0, method="inverted_cdf", overwrite_input=overwrite
        )
    )


def precision_held(values: NDArray[Any]) -> float:
    """Unit of rounding of the coarsest type that holds all numbers: half, single, or their own.

    Models that compute in single precision often answer in double precision. A few whole numbers
    fit into any type: the last digit of the coarser type must be in use.
    """
    if not np.issubdtype(values.dtype, np.floating):
        return float(np.finfo(np.float64).eps)
    if _are_brain_floats(values):
        return BRAIN_FLOAT
    for coarse, bits in ((np.float16, np.uint16), (np.float32, np.uint32)):
        if np.dtype(coarse).itemsize >= values.dtype.itemsize:
            break
        # Some of the values are checked first, which is faster.
        some = values.ravel()[:: max(1, values.size // 256)]
        for these in (some, values):
            with np.errstate(over="ignore"):
                held = these.astype(coarse)
            if not np.array_equal(held, these, equal_nan=True):
                break
        else:
            last = held[np.isfinite(held) & (held != 0)].view(bits) & 1
            if len(last) and last.mean() >= LAST_DIGIT_SHARE:
                return float(np.finfo(coarse).eps)
    return float(np.finfo(values.dtype).eps)


def _are_brain_floats(values: NDArray[Any]) -> bool:
    """Whether numbers have the eight binary digits of bfloat16, which NumPy does not have."""
    if values.dtype.itemsize < 4:
        return False
    some = values.ravel()[:: max(1, values.size // 256)]
    for these in (some, values):
        with np.errstate(over="ignore"):
            single = np.ascontiguousarray(these, dtype=np.float32)
        digits = single.view(np.uint32)
        if (digits & 0xFFFF).any() or not np.array_equal(single, these, equal_nan=True):
            return False
    known = np.isfinite(single) & (single != 0)
    # Whole numbers say nothing of the type.
    known &= single != np.round(single)
    last = (digits[known] >> 16) & 1
    return bool(len(last) and last.mean() >= LAST_DIGIT_SHARE)


def cell_ends(edges: FloatArray, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Lower and upper end of every row's cell, the arguments of math [2]; closed on the left.

    Rows beyond the edges, which have no weight, get the nearest cell.
    """
    if len(edges) < 2:
        return np.full_like(x, edges[0]), np.full_like(x, edges[0])
    cell = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, len(edges) - 2)
    return edges[cell], edges[cell + 1]
