"""Is the output differentiable along a feature? Where to look, and what is to be seen there.

Every row has a window, from some of its neighbours below it to as many above it. A jump inside a
window remains however finely the window is cut; the change of a continuous function, steep or with
kinks, shrinks with the pieces.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rhale_stats.arrays.cells import gap_edges
from rhale_stats.arrays.moments import FloatArray, IntArray

# A window reaches over this share of the rows to either side.
REACH = 0.005
# Windows apart from this share of the rows at each end are judged by themselves, too: coded
# values and heavy tails would outweigh them.
OUTER = 0.01
# A gap between rows is at least this share of the range of the inner ones. It has at least the
# other share of the rows on either side, those of a cell: the tails of distributions are no gaps.
GAP, BESIDE = 0.1, 0.025
# Pieces that a window is cut into, again and again.
PIECES, CUTS = 16, 3
# Swings over the range of the curve that count.
SWINGS = 10.0
# Noise of second differences is a multiple of their median distance from zero: what is larger than
# this multiple is none.
NOISE = 10.0


def spread_rows(x: FloatArray, most: int) -> IntArray:
    """Numbers of at most ``most`` rows, evenly over the ranks of x, both ends among them."""
    if len(x) <= most:
        return np.asarray(np.argsort(x, kind="stable"))
    # A stable sort takes ten times as long. Rows of one value are put in order afterwards where one
    # of them is taken, so that the rows are the same on every machine.
    order = np.argsort(x)
    ascending = x[order]
    ranks = np.linspace(0, len(x) - 1, most).round().astype(np.intp)
    values = np.unique(ascending[ranks])
    low, high = (np.searchsorted(ascending, values, side=side) for side in ("left", "right"))
    for tied in np.flatnonzero(high - low > 1):
        order[low[tied] : high[tied]].sort()
    return np.asarray(order[ranks])


def windows(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Ends of the window of every row; x ascends. At least to the next values on both sides."""
    n = len(x)
    reach = max(1, round(REACH * n))
    at = np.arange(n)
    left, right = x[np.maximum(at - reach, 0)], x[np.minimum(at + reach, n - 1)]
    values, which = np.unique(x, return_inverse=True)
    left = np.minimum(left, values[np.maximum(which - 1, 0)])
    right = np.maximum(right, values[np.minimum(which + 1, len(values) - 1)])
    return left, right


def inner(n: int, share: float) -> NDArray[np.bool_]:
    """Which of the windows are apart from this share of them, at least one, at each end."""
    at, outer = np.arange(n), max(1, round(share * n))
    return np.asarray((at >= outer) & (at < n - outer))


def strata(n: int) -> list[NDArray[np.bool_]]:
    """All windows, and those apart from the outer ones."""
    return [np.ones(n, dtype=np.bool_), inner(n, OUTER)]


def across_gaps(x: FloatArray, left: FloatArray, right: FloatArray) -> NDArray[np.bool_]:
    """Which windows are mostly one gap between rows, and no narrow one; x ascends."""
    gaps = np.append(np.diff(x), 0.0)
    ends = np.column_stack([np.searchsorted(x, left, side="right") - 1, np.searchsorted(x, right)])
    widest = np.maximum.reduceat(gaps, ends.ravel())[::2]
    between = inner(len(x), BESIDE)
    span = np.ptp(x[between]) if between.any() else 0.0
    return np.asarray(between & (widest > (right - left) / 2) & (widest > GAP * span))


def has_gap(x: FloatArray) -> bool:
    """Whether there is a gap between rows with enough of them on both sides; x ascends."""
    low, high = x[inner(len(x), BESIDE)][[0, -1]] if inner(len(x), BESIDE).any() else (0.0, 0.0)
    edges = gap_edges(x)
    return bool(((edges > low) & (edges < high)).any())


def unexplained(
    x: FloatArray, derivative: FloatArray, left: FloatArray, right: FloatArray, change: FloatArray
) -> FloatArray:
    """How much of the change across windows derivatives miss, (row, output); x ascends.

    By the derivative of the row or by those of all rows in the window, whichever says it better:
    the first is right where the derivative hardly moves within a window, the second where it is
    that of other rows there too.
    """
    own = np.abs(change - derivative * (right - left)[:, None])
    steps = np.diff(x)[:, None] * (derivative[1:] + derivative[:-1]) / 2
    sums = np.vstack([np.zeros((1, derivative.shape[1])), np.cumsum(steps, axis=0)])
    for output, total in enumerate(sums.T):
        across = np.interp(right, x, total) - np.interp(left, x, total)
        own[:, output] = np.minimum(own[:, output], np.abs(change[:, output] - across))
    return own


def whole_change(
    x: FloatArray, left: FloatArray, right: FloatArray, change: FloatArray
) -> FloatArray:
    """What the change across windows amounts to, for every output: what jumps are a share of.

    The sum of its size; of an output that swings to and fro, what `SWINGS` times the range of its
    average curve make in the same windows.
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
    """Of (row, piece) changes of the output: the piece that stands out, and by how much.

    What a piece is expected to change by is the median of the five around it, which a jump in one
    of them does not move. Noise stands out by a few times its median only, and a kink by the
    difference of the slopes on its two sides: both are subtracted.
    """
    n = increments.shape[1]
    around = np.clip(np.arange(n) - 2, 0, n - 5)[:, None] + np.arange(5)
    surprise = np.abs(increments - np.median(increments[:, around], axis=2))
    piece = np.argmax(surprise, axis=1)
    at = np.arange(len(piece))
    # At an end the two next ones stand for the two sides, at half the distance.
    left, right = np.where(piece == 0, 2, piece - 1), np.where(piece == n - 1, n - 3, piece + 1)
    kink = np.abs(increments[at, right] - increments[at, left])
    kink[(piece == 0) | (piece == n - 1)] *= 2
    noise = NOISE * np.median(surprise, axis=1)
    return piece, np.maximum(surprise[at, piece] - noise - kink, 0.0)


def third_difference(
    outer: tuple[FloatArray, FloatArray], inner: tuple[FloatArray, FloatArray]
) -> FloatArray:
    """Of f at x ± h and x ± h/2: h^3 f'''/4 of a smooth f, else noise."""
    return np.asarray((outer[0] - outer[1]) - 2 * (inner[0] - inner[1]))


# Standard deviation of noise from the median size of third differences, 10 = 1 + 1 + 4 + 4.
NOISE_SD = 1 / (0.6745 * np.sqrt(10.0))


def relative_noise(third: FloatArray, size: FloatArray) -> float:
    """Standard deviation of noise in an output, relative to its own size; the largest of outputs.

    (row, output). Zeros, where nothing moves, count as they are.
    """
    noise = NOISE_SD * np.median(np.abs(third), axis=0)
    typical = np.median(np.abs(size), axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        found = np.where(noise > 0, noise / typical, 0.0)
    return float(np.max(found[np.isfinite(found)], initial=0.0))


def rms(values: FloatArray) -> FloatArray:
    """Root mean square over rows, free of overflow and underflow."""
    largest = np.abs(values).max(axis=0)
    scale = np.where(largest > 0, largest, 1.0)
    return np.asarray(scale * np.sqrt(np.mean((values / scale) ** 2, axis=0)))


def share(part: FloatArray, whole: FloatArray) -> FloatArray:
    """Quotient where the whole is not 0; else 0 where there is no part, 1 where there is."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(whole > 0, part / whole, (part > 0) * 1.0))


def differing(a: NDArray[Any], b: NDArray[Any], tolerance: float) -> NDArray[np.bool_]:
    """Which rows (row, output) differ by more than a share of the largest number."""
    with np.errstate(invalid="ignore"):
        size = np.max(np.abs(a), initial=0.0, where=np.isfinite(a))
        same = (np.abs(a - b) <= tolerance * size) | (a == b) | (np.isnan(a) & np.isnan(b))
    return np.asarray(~same.all(axis=1))
