"""Tests of whether the output is differentiable along a feature: windows and their statistics.

Every row has a window, from some of its neighbours below it to as many above it. A jump inside a
window remains however finely the window is cut; the change of a continuous function, steep or with
kinks, shrinks with the pieces.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rhale_stats.arrays.binning import sorting
from rhale_stats.arrays.moments import FloatArray, IntArray

# A window reaches over this share of the rows to either side.
REACH = 0.005
# Windows without this share of the rows at each end are tested separately as well, because coded
# values and heavy tails could dominate.
OUTER = 0.01
# Number of pieces into which a window is cut in each step.
PIECES, CUTS = 16, 3
# Largest total variation that counts, in ranges of the curve.
SWINGS = 10.0
# Second differences larger than this multiple of their median size are not noise.
NOISE = 10.0


def spread_rows(x: FloatArray, most: int) -> IntArray:
    """Numbers of at most ``most`` rows, evenly spaced in the ranks of x, including both ends."""
    order = sorting(x)
    if len(x) <= most:
        return order
    return order[np.linspace(0, len(x) - 1, most).round().astype(np.intp)]


def windows(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Ends of the window of every row, at least the next values on both sides; x ascends."""
    n = len(x)
    reach = max(1, round(REACH * n))
    row = np.arange(n)
    left, right = x[np.maximum(row - reach, 0)], x[np.minimum(row + reach, n - 1)]
    values, which = np.unique(x, return_inverse=True)
    left = np.minimum(left, values[np.maximum(which - 1, 0)])
    right = np.maximum(right, values[np.minimum(which + 1, len(values) - 1)])
    return left, right


def inner(n: int, share: float) -> NDArray[np.bool_]:
    """Windows without this share of them at each end (at least one)."""
    row, outer = np.arange(n), max(1, round(share * n))
    return np.asarray((row >= outer) & (row < n - outer))


def strata(n: int) -> list[NDArray[np.bool_]]:
    """All windows, and those apart from the outer ones."""
    return [np.ones(n, dtype=np.bool_), inner(n, OUTER)]


def unexplained(
    x: FloatArray, derivative: FloatArray, left: FloatArray, right: FloatArray, change: FloatArray
) -> FloatArray:
    """Change across windows that derivatives miss, (row, output); x ascends.

    The change is predicted by the derivative of the row, and by the derivatives of all rows in the
    window; the smaller error counts. The first is right if the derivative hardly changes within a
    window, the second if it is the same function of x for all rows.
    """
    rest = np.abs(change - derivative * (right - left)[:, None])
    steps = np.diff(x)[:, None] * (derivative[1:] + derivative[:-1]) / 2
    sums = np.vstack([np.zeros((1, derivative.shape[1])), np.cumsum(steps, axis=0)])
    for output, total in enumerate(sums.T):
        across = np.interp(right, x, total) - np.interp(left, x, total)
        rest[:, output] = np.minimum(rest[:, output], np.abs(change[:, output] - across))
    return rest


def whole_change(
    x: FloatArray, left: FloatArray, right: FloatArray, change: FloatArray
) -> FloatArray:
    """Total change across windows, for every output: the denominator of the share of jumps.

    The sum of absolute changes, limited for outputs that oscillate: to the change that `SWINGS`
    times the range of the average curve makes in the same windows.
    """
    width = right - left
    slope = change / width[:, None]
    steps = np.diff(x)[:, None] * (slope[1:] + slope[:-1]) / 2
    span = float(x[-1] - x[0])
    if not span > 0:
        return np.asarray(np.abs(change).sum(axis=0))
    curve = np.vstack([np.zeros((1, slope.shape[1])), np.cumsum(steps, axis=0)])
    overlap = width.sum() / span
    swings = SWINGS * overlap * np.ptp(curve, axis=0)
    return np.asarray(np.minimum(np.abs(change).sum(axis=0), swings))


def sampled(size: FloatArray, n: int) -> IntArray:
    """About n rows, drawn systematically with probabilities in proportion to their size.

    Those with more than 1/n of the total are always among them.
    """
    total = np.cumsum(size)
    if not len(total) or not total[-1] > 0:
        return np.zeros(0, dtype=np.intp)
    marks = (np.arange(n) + 0.5) / n * total[-1]
    return np.asarray(np.minimum(np.searchsorted(total, marks), len(size) - 1))


def jump_of(increments: FloatArray) -> tuple[IntArray, FloatArray]:
    """The piece whose change deviates most, and by how much; changes are (row, piece).

    The expected change of a piece is the median of the five around it, which a jump in one of them
    does not affect. Noise deviates by a few times its median only, and a kink by the difference of
    the slopes on its two sides: both are subtracted.
    """
    n = increments.shape[1]
    around = np.clip(np.arange(n) - 2, 0, n - 5)[:, None] + np.arange(5)
    surprise = np.abs(increments - np.median(increments[:, around], axis=2))
    piece = np.argmax(surprise, axis=1)
    rows = np.arange(len(piece))
    # At an end the two next pieces replace the two sides, at half the distance.
    left, right = np.where(piece == 0, 2, piece - 1), np.where(piece == n - 1, n - 3, piece + 1)
    kink = np.abs(increments[rows, right] - increments[rows, left])
    kink[(piece == 0) | (piece == n - 1)] *= 2
    noise = NOISE * np.median(surprise, axis=1)
    return piece, np.maximum(surprise[rows, piece] - noise - kink, 0.0)


def third_difference(
    outer: tuple[FloatArray, FloatArray], inner: tuple[FloatArray, FloatArray]
) -> FloatArray:
    """Third difference from f at x ± h and x ± h/2: h^3 f'''/4 for a smooth f, otherwise noise."""
    with np.errstate(invalid="ignore"):  # infinite answers, which are refused afterwards
        return np.asarray((outer[0] - outer[1]) - 2 * (inner[0] - inner[1]))


# Standard deviation of noise from the median size of third differences, 10 = 1 + 1 + 4 + 4.
NOISE_SD = 1 / (0.6745 * np.sqrt(10.0))


def relative_noise(third: FloatArray, size: FloatArray) -> float:
    """Standard deviation of noise relative to the size of the output; the largest over outputs.

    (row, output). Differences of exactly 0 are included.
    """
    noise = NOISE_SD * np.median(np.abs(third), axis=0)
    typical = np.median(np.abs(size), axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.where(noise > 0, noise / typical, 0.0)
    return float(np.max(ratio[np.isfinite(ratio)], initial=0.0))


def rms(values: FloatArray) -> FloatArray:
    """Root mean square over rows, free of overflow and underflow."""
    largest = np.abs(values).max(axis=0)
    scale = np.where(largest > 0, largest, 1.0)
    return np.asarray(scale * np.sqrt(np.mean((values / scale) ** 2, axis=0)))


def share(part: FloatArray, whole: FloatArray) -> FloatArray:
    """Part over whole; if the whole is 0, it is 0 for a part of 0 and 1 otherwise."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(whole > 0, part / whole, (part > 0) * 1.0))


def differing(a: NDArray[Any], b: NDArray[Any], tolerance: float) -> NDArray[np.bool_]:
    """Rows whose outputs differ by more than a share of the largest number."""
    with np.errstate(invalid="ignore"):
        size = np.max(np.abs(a), initial=0.0, where=np.isfinite(a))
        same = (np.abs(a - b) <= tolerance * size) | (a == b) | (np.isnan(a) & np.isnan(b))
    return np.asarray(~same.all(axis=1))
