"""What the choice of edges on the same rows adds to the variance of bin effects, math [24].

An edge between two bins lies where the local effects, with their noise, are halfway between the
fits on its two sides. Noise therefore decides on which side the rows near the edge are counted,
and pushes the two averages apart.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from rhale_stats.arrays.moments import FloatArray, IntArray

# E B(Z)^2 for two-sided Brownian motion B and Z the place of the maximum of B(t) - t^2.
OF_MAXIMUM = 1.5
# Rounds in which the distance over which the slope at an edge is taken settles.
ROUNDS = 4


def added_variance(
    edges: FloatArray,
    mean: FloatArray,
    variance: FloatArray,
    bin_of: IntArray,
    slope: FloatArray,
) -> FloatArray:
    """Added variance of the average of every bin, from its cells.

    ``edges``, ``mean`` and ``variance`` (of the means) are those of the cells, ``slope`` those of
    the bins' lines.
    """
    width = np.diff(edges)
    known = np.isfinite(mean) & np.isfinite(variance)
    area = np.where(known, mean * width, 0.0)
    noise = np.where(known, variance * width**2, 0.0)
    running, spread = (np.concatenate([[0.0], np.cumsum(part)]) for part in (area, noise))
    first = np.flatnonzero(np.diff(bin_of, prepend=-1))
    ends = np.append(edges[first], edges[-1])
    added = np.zeros(len(first))
    for k, (left, right) in enumerate(pairwise(np.diff(ends))):
        at, line = ends[k + 1], (slope[k] + slope[k + 1]) / 2
        widest = min(left, right)
        away = widest
        for _ in range(ROUNDS):
            places = np.array([at - away, at, at + away])
            low, middle, high = np.interp(places, edges, running)
            v = float(np.diff(np.interp(places[[0, 2]], edges, spread))[0]) / (2 * away)
            steep = abs((high - 2 * middle + low) / away**2 - line)
            reach = min((2 * np.sqrt(v) / steep) ** (2 / 3), widest) if steep > 0 else widest
            away = min(max(2 * reach, away / 8), widest)
        added[k : k + 2] += OF_MAXIMUM * v * reach / np.array([left, right]) ** 2
    return added
