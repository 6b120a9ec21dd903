"""What the choice of edges on the same rows adds to the variance of bin effects, math [24].

An edge between two bins lies where the local effects, with their noise, are halfway between the
fits on its two sides. Noise therefore decides on which side the rows near the edge are counted,
and pushes the two averages apart. At a jump the edge lies between two rows, but where between them
the jump is, no row tells.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from rhale_stats.arrays.moments import FloatArray, IntArray

# E B(Z)^2 for two-sided Brownian motion B and Z the place of the maximum of B(t) - t^2.
OF_MAXIMUM = 1.5
# Rounds in which the distance over which the slope at an edge is taken settles; it shrinks by this
# factor in a round at most.
ROUNDS, SHRINKS = 4, 8


class Along(NamedTuple):
    """Running sums along an axis at the edges of cells: of the effect, its noise, and rows."""

    edges: FloatArray
    area: FloatArray
    noise: FloatArray
    rows: FloatArray

    @classmethod
    def from_cells(
        cls, edges: FloatArray, mean: FloatArray, variance: FloatArray, rows: FloatArray
    ) -> Along:
        """From the means of the cells, the variances of these means, and their rows."""
        width = np.diff(edges)
        finite = np.isfinite(mean) & np.isfinite(variance)
        parts = np.stack([mean * width, variance * width**2, rows])
        running = np.cumsum(np.where(finite, parts, 0.0), axis=1)
        return cls(edges, *np.pad(running, ((0, 0), (1, 0))))

    def added(self, end: float, fits: FloatArray, widest: float) -> float:
        """Added variance of the integral on either side of an edge between two fits.

        ``fits`` are the values of the two fits at the edge, and their slopes.
        """
        (level, line), (step, bend) = fits.mean(axis=1), np.diff(fits, axis=1)[:, 0]
        away = reach = widest
        for _ in range(ROUNDS):
            places = np.array([end - away, end, end + away])
            noise, rows = (
                float(np.diff(np.interp(places[::2], self.edges, running))[0]) / (2 * away)
                for running in (self.noise, self.rows)
            )
            # Averages on both sides less the mean of the fits, signed as the second fit less the
            # first one is there.
            sides = np.diff(np.interp(places, self.edges, self.area)) / away - level
            sides += np.array([0.5, -0.5]) * line * away
            signs = np.where(step + np.array([-0.5, 0.5]) * bend * away >= 0, 1.0, -1.0)
            apart = max(float(np.sum(np.array([-1.0, 1.0]) * signs * sides)), 0.0)
            reach = widest
            if apart > 0:
                reach = min((2 * np.sqrt(noise) * away / apart) ** (2 / 3), widest)
            between = apart / rows if rows > 0 else 0.0
            added = OF_MAXIMUM * noise * reach + between**2
            away = min(max(2 * reach, away / SHRINKS), widest)
        return float(added)


def added_variance(
    along: Along, bin_of: IntArray, at_edges: FloatArray, slope: FloatArray
) -> FloatArray:
    """Added variance of the average of every bin.

    ``slope`` are those of the fits to the bins, ``at_edges`` their values at the left and the right
    edge of each bin, (2, bin).
    """
    first = np.flatnonzero(np.diff(bin_of, prepend=-1))
    ends = np.append(along.edges[first], along.edges[-1])
    added = np.zeros(len(first))
    for k, (left, right) in enumerate(pairwise(np.diff(ends))):
        fits = np.array([[at_edges[1, k], at_edges[0, k + 1]], slope[k : k + 2]])
        of_end = along.added(ends[k + 1], fits, min(left, right))
        added[k : k + 2] += of_end / np.array([left, right]) ** 2
    return added
