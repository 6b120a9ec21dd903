"""Where a curve is 0, with the places at which a test of 0 does not reject (math [119])."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rhale_stats.arrays.intervals import student
from rhale_stats.arrays.moments import FloatArray


class Crossings(NamedTuple):
    """Places where a curve changes its sign: their intervals (place, 2), and how it changes.

    ``gradient`` (place, point) is by the values of the curve, ``rises`` whether it becomes
    positive. An interval that reaches an end of the axis may go on beyond it.
    """

    place: FloatArray
    interval: FloatArray
    gradient: FloatArray
    rises: Sequence[bool]


def crossings(
    x: FloatArray, values: FloatArray, covariance: FloatArray, degrees: FloatArray, level: float
) -> Crossings:
    """math [119]: of a curve that is straight between points ``x``.

    Changes of sign within one interval count as one, or as none where they cancel.
    """
    quantile = student(level, np.minimum(degrees[:-1], degrees[1:]))
    begin, end = values[:-1], values[1:]
    segments = np.flatnonzero((np.sign(begin) * np.sign(end) < 0) | ((begin == 0) & (end != 0)))
    places, ends, gradients = [], [], []
    for k in segments:
        fall = begin[k] - end[k]
        share = begin[k] / fall
        gradient = np.zeros(len(x))
        gradient[[k, k + 1]] = np.array([-end[k], begin[k]]) / fall**2 * (x[k + 1] - x[k])
        places.append(x[k] + share * (x[k + 1] - x[k]))
        gradients.append(gradient)
        backwards = slice(None, None, -1)
        low = _last_kept(
            -x[backwards], values[backwards], covariance[backwards, backwards],
            quantile[backwards], len(x) - 2 - int(k), 1 - share,
        )  # fmt: skip
        high = _last_kept(x, values, covariance, quantile, int(k), share)
        ends.append((-low, high))
    interval = np.array(ends).reshape(-1, 2)
    numbers = []
    for low, high in np.unique(interval, axis=0):
        same = np.flatnonzero((interval == (low, high)).all(axis=1))
        if len(same) % 2:
            numbers.append(same[len(same) // 2])
    numbers = sorted(numbers)
    return Crossings(
        np.array(places)[numbers] if numbers else np.zeros(0),
        interval[numbers],
        np.array(gradients).reshape(-1, len(x))[numbers],
        [bool(values[segments[number] + 1] > 0) for number in numbers],
    )


def _last_kept(
    x: FloatArray,
    values: FloatArray,
    covariance: FloatArray,
    quantile: FloatArray,
    segment: int,
    share: float,
) -> float:
    """The last place behind a zero up to which a test of 0 at every place does not reject."""
    for k in range(segment, len(x) - 1):
        v, q = values[k], quantile[k] ** 2
        d = values[k + 1] - v
        (s, shared), (_, s_end) = covariance[k : k + 2, k : k + 2]
        # v(a)^2 - q var(a) at the share a of the segment, which is negative where 0 is kept.
        terms = (d**2 - q * (s - 2 * shared + s_end), 2 * (v * d - q * (shared - s)), v**2 - q * s)
        if np.polyval(terms, share) > 0:
            return float(x[k] + share * (x[k + 1] - x[k]))
        roots = np.roots(terms)
        roots = np.sort(roots[np.isreal(roots)].real)
        behind = roots[(roots > share) & (roots <= 1)]
        if len(behind):
            return float(x[k] + behind[0] * (x[k + 1] - x[k]))
        share = 0.0
    return float(x[-1])
