"""Quadratic forms of estimates: the ANOVA-type statistic (math [31]), and sizes (math [32])."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, special

from rhale_stats.arrays import intervals
from rhale_stats.arrays.moments import FloatArray

# Above this noncentrality the root of the estimate is taken as normal.
LARGE = 30.0
# Errors below this share of the estimate are what rounding leaves of none: covariances of curves
# lose ten digits more where what the places of the rows add is taken off.
ROUNDING = 1e-9


class QuadraticForm(NamedTuple):
    """A quadratic form over its expectation, and Box's degrees of freedom of its numerator.

    ``expected`` is the expectation under the null hypothesis, the denominator. ``parts`` are what
    each estimate adds to it: by its own variance and its covariances with others. ``moved`` is the
    variance of the noise along the estimates, d'ACAd.
    """

    statistic: float
    degrees: float
    expected: float
    parts: FloatArray
    moved: float

    def square(self, denominator: float) -> Square:
        """The form itself, with the degrees of freedom of its expectation."""
        value, squares = self.statistic * self.expected, self.expected**2 / self.degrees
        return Square(value, self.expected, squares, self.moved, denominator)


def form(
    value: FloatArray,
    weight: sparse.csr_array,
    covariance: sparse.csr_array,
    level: FloatArray | None = None,
) -> QuadraticForm:
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
        part = float(loading @ shared) / total
        squares += part**2 - 2 * float(shared @ (weight @ shared)) / total
        parts = parts - loading * shared / total
    expected = float(parts.sum())
    loaded = weight @ value
    # Nothing is left of a common multiple where the estimates move together only.
    statistic = float(value @ loaded) / expected if expected > 0 else np.nan
    moved = float(loaded @ (covariance @ loaded))
    degrees = expected**2 / squares if squares > 0 else np.nan
    return QuadraticForm(statistic, degrees, expected, parts, moved)


def blocks(
    level: FloatArray, shared: FloatArray, slope: FloatArray, cell: NDArray[np.intp]
) -> sparse.csr_array:
    """Matrix of independent bins, effects first; those of ``cell`` have slopes."""
    n, n_slopes = len(level), len(slope)
    below = n + np.arange(n_slopes)
    row = np.concatenate([np.arange(n), cell, below, below])
    column = np.concatenate([np.arange(n), below, cell, below])
    entries = np.concatenate([level, shared, shared, slope])
    return sparse.csr_array((entries, (row, column)), shape=(n + n_slopes, n + n_slopes))


def inverse(
    level: FloatArray, shared: FloatArray, slope: FloatArray, cell: NDArray[np.intp]
) -> sparse.csr_array:
    """Inverse of such a matrix."""
    determinant = level[cell] * slope - shared**2
    of_level = 1 / level
    of_level[cell] = slope / determinant
    return blocks(of_level, -shared / determinant, level[cell] / determinant, cell)


class Square(NamedTuple):
    """A mean square d'Qd of estimates d with errors of covariance C, and what noise adds to it.

    ``expected`` is tr(QC), what noise alone makes of it, ``squares`` tr(QCQC), ``moved`` d'QCQd,
    and ``denominator`` the degrees of freedom of ``expected``.
    """

    value: float
    expected: float
    squares: float
    moved: float
    denominator: float

    @property
    def corrected(self) -> float:
        """Without the part of the noise; negative if there is less than noise makes on average."""
        return self.value - self.expected

    @property
    def size(self) -> float:
        """Root of the corrected square, 0 if it is negative."""
        return float(np.sqrt(max(self.corrected, 0.0)))

    def p_value(self) -> float:
        """Probability that noise alone makes as much, by Box's approximation (math [31])."""
        if not (self.expected > ROUNDING**2 * self.value and self.denominator > 0):
            return float("nan")
        degrees = self.expected**2 / self.squares
        return intervals.f_tail(self.value / self.expected, degrees, self.denominator)

    def interval(self, level: float) -> FloatArray:
        """Interval of the root of the true square, by inversion of a noncentral F (math [32])."""
        from scipy.optimize import brentq

        if self.expected <= ROUNDING**2 * self.value:
            return np.full(2, self.size)  # known exactly
        if not (self.expected > 0 and self.denominator > 0):
            return np.full(2, np.nan)
        # Variance of the noise along the estimates; at least that along all directions together.
        scale = self.squares / self.expected
        if self.corrected > 0:
            scale = max(scale, (self.moved - self.squares) / self.corrected)
        degrees, tail = self.expected / scale, (1 - level) / 2
        statistic = self.value / self.expected
        if self.value / scale > LARGE:
            half = special.stdtrit(self.denominator, 1 - tail) * np.sqrt(scale)
            return np.asarray(self.size + np.array([-half, half]))

        def beyond(noncentrality: float, share: float) -> float:
            denominator = min(self.denominator, 1e6)
            below = special.ncfdtr(degrees, denominator, noncentrality, statistic)
            # Far beyond the estimate the series fails, where there is nothing below.
            return float(np.nan_to_num(below)) - share

        ends = []
        for share in (1 - tail, tail):
            most = 4 * self.value / scale + 100.0
            end = 0.0
            if beyond(0.0, share) > 0:
                while beyond(most, share) > 0:
                    most *= 2
                end = float(brentq(beyond, 0.0, most, args=(share,)))
            ends.append(np.sqrt(end * scale))
        return np.array(ends)


def square(
    value: FloatArray, weight: FloatArray, covariance: FloatArray, denominator: float
) -> Square:
    """The square d'Qd with the symmetric matrix Q of ``weight``."""
    loading = weight @ value
    product = weight @ covariance
    return Square(
        float(value @ loading),
        float(np.trace(product)),
        float(np.sum(product * product.T)),
        float(loading @ covariance @ loading),
        denominator,
    )
