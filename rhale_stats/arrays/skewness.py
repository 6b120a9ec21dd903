"""Skewness of the errors of estimates, and intervals that allow for it (math [24]).

Under skewed local effects the mean of a cell and its own variance are correlated, and Student's t
is off on one side. Hall's (1992) transformation takes this off, given the skewness of the error.
That of few rows is poorly known, and is as large under symmetric heavy tails as under skewness; so
it is taken together from neighbouring cells, and only where these agree on its sign.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import special

from rhale_stats.arrays.moments import FloatArray

# Neighbouring cells whose skewness is taken together, the smallest number of them, and the cells
# whose variance is taken together; chosen by simulation (tests/arrays/test_skewness.py).
TOGETHER, LEAST, SMOOTH = 20, 5, 6
# Chance of a correction where the local effects are symmetric.
SIGNIFICANCE = 0.01
# Rows below which a cell says nothing of its skewness.
LEAST_ROWS = 3


def third_cumulant(third_moment: FloatArray, n: FloatArray) -> FloatArray:
    """Unbiased third cumulant of rows from their third central moment (over n); NaN for few."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(n >= LEAST_ROWS, third_moment * n**2 / ((n - 1) * (n - 2)), np.nan)


def of_cells(third: FloatArray, variance: FloatArray, n: FloatArray) -> FloatArray:
    """Skewness of the local effects around each cell; 0 where it is not clear.

    ``third`` are the third cumulants of the cells, ``variance`` their variances.
    """
    out = np.zeros(len(n))
    known = np.isfinite(third) & (variance > 0) & (n >= LEAST_ROWS)
    if known.sum() < LEAST:
        return out
    k3, v, rows = third[known], variance[known], n[known]
    # Standardised by the cell's own variance: bounded, so that one row does not decide on the sign.
    with np.errstate(over="ignore"):
        bounded = k3 / v**1.5 * (rows - 2) / np.sqrt(rows * (rows - 1))
    width = min(TOGETHER, len(rows))
    mean, square = _around(bounded, width) / width, _around(bounded**2, width) / width
    spread = np.sqrt(np.maximum(square - mean**2, 0.0) / (width - 1))
    # Divided among stretches that have no cells in common.
    tail = SIGNIFICANCE * width / len(rows) / 2
    clear = np.abs(mean) > special.stdtrit(width - 1, 1 - tail) * spread
    few = min(SMOOTH, len(rows))
    common = _around(rows * v, few) / _around(rows, few)
    with np.errstate(invalid="ignore", divide="ignore"):
        found = _around(rows * k3 / common**1.5, width) / _around(rows, width)
    out[known] = np.where(clear & np.isfinite(found), found, 0.0)
    return out


def _around(values: FloatArray, width: int) -> FloatArray:
    """Sums over ``width`` neighbouring cells around each; at the ends over those nearest."""
    n = len(values)
    running = np.concatenate([[0.0], np.cumsum(values)])
    low = np.clip(np.arange(n) - width // 2, 0, n - width)
    return np.asarray(running[low + width] - running[low])


def smooth_variance(variance: FloatArray, n: FloatArray) -> FloatArray:
    """Variances of cells together with their neighbours, as the skewness is standardised by."""
    known = np.isfinite(variance) & (n > 0)
    out = np.zeros(len(n))
    if known.any():
        few = min(SMOOTH, int(known.sum()))
        rows = n[known]
        out[known] = _around(rows * variance[known], few) / _around(rows, few)
    return out


class Skewness(NamedTuple):
    """Second and third cumulants of the errors of the means of cells, where these are skewed."""

    second: FloatArray
    third: FloatArray

    @classmethod
    def of(cls, third: FloatArray, variance: FloatArray, n: FloatArray) -> Skewness | None:
        """From third cumulants, variances and numbers of rows; None if no cell has a skewness."""
        found = of_cells(third, variance, n)
        if not found.any():
            return None
        smooth = smooth_variance(variance, n)
        with np.errstate(invalid="ignore", divide="ignore"):
            return cls(
                np.where(n > 0, smooth / n, 0.0),
                np.where(n > 0, found * smooth**1.5 / n**2, 0.0),
            )

    def at(self, cells: slice) -> Skewness:
        """Of some of the cells."""
        return Skewness(self.second[cells], self.third[cells])

    def of_sums(self, weight: FloatArray) -> FloatArray:
        """Skewness of weighted sums of the means of cells, (..., cell) -> (...)."""
        square = weight * weight
        total = square @ self.second
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(total > 0, (square * weight) @ self.third / total**1.5, 0.0)
