"""Quadratic forms of estimates over their expectation: the ANOVA-type statistic (math [31])."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rhale_stats.arrays.moments import FloatArray


class Form(NamedTuple):
    """A quadratic form over its expectation, and Box's degrees of freedom of its numerator.

    ``expected`` is the expectation under the null hypothesis, the denominator. ``parts`` are what
    each estimate adds to it: by its own variance and its covariances with others.
    """

    statistic: float
    degrees: float
    expected: float
    parts: FloatArray


def form(
    value: FloatArray,
    weight: sparse.csr_array,
    covariance: sparse.csr_array,
    level: FloatArray | None = None,
) -> Form:
    """Form of ``weight``; with ``level``, of what is left of a common multiple of it.

    The multiple is fitted by least squares with ``weight``, which must be symmetric.
    """
    product = weight @ covariance
    parts, squares = product.diagonal(), float(product.multiply(product.T).sum())
    if level is not None:
        loading = weight @ level
        total = float(level @ loading)
        value = value - level * (float(loading @ value) / total)
        shared = covariance @ loading
        taken = float(loading @ shared) / total
        squares += taken**2 - 2 * float(shared @ (weight @ shared)) / total
        parts = parts - loading * shared / total
    expected = float(parts.sum())
    statistic = float(value @ (weight @ value)) / expected
    return Form(statistic, expected**2 / squares, expected, parts)


def blocks(
    level: FloatArray, shared: FloatArray, slope: FloatArray, at: NDArray[np.intp]
) -> sparse.csr_array:
    """Matrix of independent bins, effects first; the bins ``at`` have slopes."""
    n, n_slopes = len(level), len(slope)
    below = n + np.arange(n_slopes)
    row = np.concatenate([np.arange(n), at, below, below])
    column = np.concatenate([np.arange(n), below, at, below])
    entries = np.concatenate([level, shared, shared, slope])
    return sparse.csr_array((entries, (row, column)), shape=(n + n_slopes, n + n_slopes))


def inverse(
    level: FloatArray, shared: FloatArray, slope: FloatArray, at: NDArray[np.intp]
) -> sparse.csr_array:
    """Inverse of such a matrix."""
    own = level[at] * slope - shared**2
    of_level = 1 / level
    of_level[at] = slope / own
    return blocks(of_level, -shared / own, level[at] / own, at)
