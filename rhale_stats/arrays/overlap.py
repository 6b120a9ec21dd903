"""Comparison of functions along an axis that are constant in different cells."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rhale_stats.arrays.moments import FloatArray


class TrueCells(NamedTuple):
    """A truth that is constant in narrow cells.

    ``noise`` is the variance of ``mean``, 0 if the mean is exact; ``share`` is the share of the
    rows.
    """

    edges: FloatArray
    mean: FloatArray
    variance: FloatArray
    noise: FloatArray
    share: FloatArray


def over_bins(
    cells: TrueCells, edges: FloatArray, linear: NDArray[np.bool_]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """math [33]: mean, variance and bin error of the bins, with cells weighted by their overlap.

    In ``linear`` bins the bin error is about the best line. Noise in the means of cells increases
    the bin error; its variance is subtracted.
    """
    lower = np.maximum(cells.edges[:-1], edges[:-1, None])
    upper = np.minimum(cells.edges[1:], edges[1:, None])
    share = np.maximum(upper - lower, 0.0)
    share /= share.sum(axis=1, keepdims=True)
    mean = share @ cells.mean
    rho = cells.mean - mean[:, None]
    noise = share - share**2
    if linear.any():
        middle = (lower + upper) / 2
        away = middle - np.sum(share * middle, axis=1, keepdims=True)
        length = np.sum(share * away**2, axis=1)
        usable = linear & (length > 0)
        length[~usable] = np.inf
        slope = np.sum(share * rho * away, axis=1) / length
        rho = rho - slope[:, None] * away
        noise -= (share * away) ** 2 / length[:, None]
    return mean, share @ cells.variance, np.sum(share * rho**2, axis=1) - noise @ cells.noise


def step_distance(
    edges_a: FloatArray,
    values_a: FloatArray,
    edges_b: FloatArray,
    values_b: FloatArray,
    slope_b: FloatArray | None = None,
) -> float:
    """math [35]: mean along the second axis of |a - b|, both constant in cells of their own.

    With slopes, b is linear in its cells, with the given values in the middle. Its means between
    neighbouring edges are compared, because a has means, too.
    """
    grid = union_grid(edges_a, edges_b)
    middle = (grid[:-1] + grid[1:]) / 2
    b = step_at(edges_b, values_b, middle)
    if slope_b is not None:
        away = middle - step_at(edges_b, (edges_b[:-1] + edges_b[1:]) / 2, middle)
        b = b + step_at(edges_b, slope_b, middle) * away
    difference = np.abs(step_at(edges_a, values_a, middle) - b)
    return float(np.sum(np.diff(grid) * difference) / (grid[-1] - grid[0]))


def curve_distance(
    grid: FloatArray, curve_a: FloatArray, curve_b: FloatArray
) -> tuple[float, float]:
    """math [35]: largest and mean |a - b| of two curves that are linear between grid points."""
    left, right = np.abs((curve_a - curve_b)[:-1]), np.abs((curve_a - curve_b)[1:])
    crosses = (curve_a - curve_b)[:-1] * (curve_a - curve_b)[1:] < 0
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(crosses, (left**2 + right**2) / (left + right), left + right) / 2
    length = np.diff(grid)
    largest = float(np.max(np.abs(curve_a - curve_b)))
    return largest, float(np.sum(length * mean) / length.sum())


def union_grid(cells: FloatArray, edges: FloatArray) -> FloatArray:
    """Edges of both functions within the range of the second."""
    inside = cells[(cells > edges[0]) & (cells < edges[-1])]
    return np.union1d(inside, edges)


def step_at(edges: FloatArray, values: FloatArray, z: FloatArray) -> FloatArray:
    """Value of the cell that ``z`` lies in."""
    return np.asarray(values[np.searchsorted(edges[1:-1], z, side="right")])


def accumulated_at(cells: TrueCells, z: FloatArray) -> FloatArray:
    """Integral of the cells' mean from the first of the increasing ``z``."""
    total = np.concatenate([[0.0], np.cumsum(cells.mean * np.diff(cells.edges))])
    values = np.interp(z, cells.edges, total)
    return np.asarray(values - values[0])


def mass_between(edges: FloatArray, share: FloatArray, z: FloatArray) -> FloatArray:
    """Share of the rows between neighbouring ``z``, rows being uniform in a cell."""
    total = np.concatenate([[0.0], np.cumsum(share)])
    return np.diff(np.interp(z, edges, total))
