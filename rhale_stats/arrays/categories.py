"""Levels of a category: their order on a line, steps between them, covariance of curves.

Levels are numbered 0..L-1 along their order; step j goes from level j to level j + 1. A row at
level j takes part in step j - 1 and in step j, so that neighbouring steps share rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from rhale_stats.arrays import moments as sums
from rhale_stats.arrays.influence import Loadings, RowSums
from rhale_stats.arrays.moments import FloatArray, IntArray, Moments

# Number of quantiles at which distribution functions are compared if there are more distinct
# values.
GRID = 1000
# Eigenvalues, and places on the line, that differ by this share of the largest are equal.
EQUAL = 1e-9

# --- order: distances between levels, and one-dimensional scaling ---------------------------------


def ks_distance(x: FloatArray, code: IntArray, weight: FloatArray, n_levels: int) -> FloatArray:
    """Largest difference of the distribution functions of x given the level, (level, level).

    Missing values of x lie below all others.
    """
    x = np.where(np.isnan(x), -np.inf, x)
    grid, cell = np.unique(x, return_inverse=True)
    if len(grid) > GRID:
        behind = np.cumsum(np.bincount(cell, weight))
        rank = np.searchsorted(behind, behind[-1] * np.arange(1, GRID + 1) / GRID * (1 - EQUAL))
        grid = grid[np.unique(np.minimum(rank, len(grid) - 1))]
        cell = np.searchsorted(grid, x)
    table = _table(cell, code, weight, len(grid) + 1, n_levels)
    below = np.cumsum(table, axis=1)
    return np.array([np.abs(below - row).max(axis=1) for row in below])


def share_distance(
    other: IntArray, n_other: int, code: IntArray, weight: FloatArray, n_levels: int
) -> FloatArray:
    """Half the sum of differences of the shares of another category given the level."""
    table = _table(other, code, weight, n_other, n_levels)
    return np.array([np.abs(table - row).sum(axis=1) / 2 for row in table])


def _table(
    cell: IntArray, code: IntArray, weight: FloatArray, n_cells: int, n_levels: int
) -> FloatArray:
    """Distribution over cells given the level, (level, cell)."""
    counts = np.bincount(code * n_cells + cell, weight, n_levels * n_cells)
    table = counts.reshape(n_levels, n_cells)
    return np.asarray(table / table.sum(axis=1, keepdims=True))


def line_order(distance: FloatArray) -> IntArray:
    """Levels in their order on the line of classical scaling: the first eigenvector (Torgerson).

    If the largest eigenvalue is multiple, the line is the direction among its eigenvectors that is
    nearest to the numbers of the levels. The first level that is not in the middle lies to the left
    of it. Levels at one place are ordered by number.
    """
    n = len(distance)
    centre = np.eye(n) - 1 / n
    values, vectors = np.linalg.eigh(-centre @ distance**2 @ centre / 2)
    if values[-1] <= EQUAL * np.max(distance**2, initial=0.0):
        return np.arange(n)
    same = vectors[:, values >= values[-1] * (1 - EQUAL)]
    along = np.arange(n) - (n - 1) / 2
    line = same @ (same.T @ along)
    if np.linalg.norm(line) <= EQUAL * np.linalg.norm(along):
        line = same[:, 0]
    line = line / np.abs(line).max()
    away = np.flatnonzero(np.abs(line) > EQUAL)
    line = -line if line[away[0]] > 0 else line
    order = np.argsort(line, kind="stable")
    place = np.cumsum(np.diff(line[order], prepend=line[order[0]]) > EQUAL)
    return np.asarray(order[np.lexsort((order, place))])


# --- steps ---------------------------------------------------------------------------------------


class Steps(NamedTuple):
    """All pairs of a row and one of its steps: row, step, and the difference across the step."""

    row: IntArray
    step: IntArray
    difference: FloatArray


def steps(code: IntArray, up: FloatArray, down: FloatArray, n_levels: int) -> Steps:
    """All pairs: a row has the step above its level and the step below it, if these exist."""
    rising, risen = np.flatnonzero(code < n_levels - 1), np.flatnonzero(code > 0)
    return Steps(
        np.concatenate([rising, risen]),
        np.concatenate([code[rising], code[risen] - 1]),
        np.concatenate([up[rising], down[risen]]),
    )


class StepMoments(NamedTuple):
    """Moments of the differences of every step; higher ones are central, over the sum of w."""

    bins: Moments
    third: FloatArray
    fourth: FloatArray


def step_moments(
    steps: Steps, code: IntArray, weight: FloatArray | None, n_steps: int, *, frequency: bool
) -> StepMoments:
    """math [5] and [6] of the rows of both levels."""
    k, d = steps.step, steps.difference
    w = np.ones(len(k)) if weight is None else weight[steps.row]

    def added(values: FloatArray) -> FloatArray:
        return np.asarray(np.bincount(k, values, n_steps), dtype=np.float64)

    total = added(w)
    squares = total if frequency else added(w**2)
    mean = added(w * d) / total
    r = d - mean[k]
    rows = total if frequency else added(np.ones(len(k)))
    bins = Moments(rows, total, squares, mean, added(w * r**2), added(w * code[steps.row]) / total)
    return StepMoments(bins, added(w * r**3) / total, added(w * r**4) / total)


def loadings(share: FloatArray, z: FloatArray, centering: str) -> Loadings:
    """Derivatives of the centred curve by the steps' effects, at points between the levels.

    With "mean", levels are weighted by their shares of rows; with "integral", equally.
    """
    n_levels = len(share)
    level = np.clip(z[:, None] - np.arange(n_levels - 1), 0.0, 1.0)
    if centering == "mean":
        level = level - (1 - np.cumsum(share)[:-1])
    elif centering == "integral":
        level = level - np.arange(n_levels - 1, 0, -1) / n_levels
    return Loadings(level, np.zeros_like(level))


def curve(effect: FloatArray, share: FloatArray, centering: str) -> tuple[FloatArray, FloatArray]:
    """Accumulated effects at the levels, centred, and what was subtracted; any leading axes."""
    start = np.zeros((*effect.shape[:-1], effect.shape[-1] + 1))
    np.cumsum(effect, axis=-1, out=start[..., 1:])
    offset = np.zeros(effect.shape[:-1])
    if centering == "mean":
        offset = np.sum(share * start, axis=-1)
    elif centering == "integral":
        offset = np.mean(start, axis=-1)
    return start - offset[..., None], offset


# --- influences of rows ---------------------------------------------------------------------------


def row_sums(
    steps: Steps,
    code: IntArray,
    at_levels: FloatArray,
    weight: FloatArray | None,
    group: IntArray,
    n_groups: int,
) -> RowSums:
    """Influences of all rows on steps, on the mean of the curve and on that of all differences.

    They are summed by group. A row is in two steps, and its influence includes both.
    """
    n_steps, n_rows = len(at_levels) - 1, len(code)
    w = np.ones(n_rows) if weight is None else weight
    k, g, step_weight = steps.step, steps.difference, w[steps.row]
    total = np.bincount(k, step_weight, n_steps)
    mean = np.bincount(k, step_weight * g, n_steps) / total
    r, share = g - mean[k], step_weight / total[k]
    spread = np.bincount(k, step_weight * r**2, n_steps) / total

    def table(values: FloatArray) -> sparse.csr_array:
        return sparse.coo_array((values, (group[steps.row], k)), (n_groups, n_steps)).tocsr()

    level = at_levels[code] - np.average(at_levels[code], weights=w)
    average = g - np.average(g, weights=step_weight)
    return RowSums(
        table(share * r),
        table(np.zeros(len(k))),
        table(share * (r**2 - spread[k])),
        _added(group, w / w.sum() * level, n_groups),
        _added(group[steps.row], step_weight / step_weight.sum() * average, n_groups),
    )


def _added(group: IntArray, values: FloatArray, n_groups: int) -> FloatArray:
    return np.asarray(np.bincount(group, values, n_groups), dtype=np.float64)


def level_covariance(
    moved: RowSums,
    loadings: Loadings,
    size: FloatArray,
    n_effective: FloatArray,
    *,
    population: bool,
) -> FloatArray:
    """Covariance of the curve, of the rows' influences, each row standing for ``size`` rows.

    Residuals of a step are multiplied by sqrt(n / (n - 1)), so that its variance is that of math
    [24]. It is a sum of squares, so that no variance is negative.
    """
    by_size = sparse.diags_array(1 / size)
    with np.errstate(divide="ignore", invalid="ignore"):
        # A step with one row has no variance: infinity times 0.
        stretch = np.sqrt(n_effective / (n_effective - 1))
        effect = (moved.mean.T @ by_size @ moved.mean).toarray() * np.outer(stretch, stretch)
        total = loadings.level @ effect @ loadings.level.T
        if population:
            shared = loadings.level @ (stretch * (moved.mean.T @ (moved.places / size)))
            total = total + np.sum(moved.places**2 / size) - shared[:, None] - shared
    return np.asarray(total)


def average_se(moved: RowSums, size: FloatArray, n_effective: float) -> float:
    """Standard error of the mean of all differences, a ratio of sums over rows."""
    if n_effective <= 1 + 1e-12:
        return float("nan")
    return float(np.sqrt(np.sum(moved.average**2 / size) * n_effective / (n_effective - 1)))


# --- sizes ---------------------------------------------------------------------------------------


def sizes(at_levels: FloatArray, share: FloatArray) -> tuple[FloatArray, ...]:
    """Importance, ALED and both ends of ALER (math [32]) of curves at levels, (..., level)."""
    centred = at_levels - np.sum(share * at_levels, axis=-1, keepdims=True)
    return (
        np.sqrt(np.sum(share * centred**2, axis=-1)),
        np.sum(share * np.abs(centred), axis=-1),
        np.min(centred, axis=-1),
        np.max(centred, axis=-1),
    )


def heterogeneity_output(
    variance: FloatArray, weight: FloatArray, share: FloatArray, n_effective: FloatArray | float
) -> FloatArray:
    """math [10] with the numbers of the levels as the feature; any leading axes."""
    number = np.arange(share.shape[-1])
    mean = np.sum(share * number, axis=-1, keepdims=True)
    spread = np.sum(share * (number - mean) ** 2, axis=-1)
    finite = np.isfinite(variance)
    weight = np.where(finite, weight, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        squares = np.sum(weight * np.where(finite, variance, 0.0), axis=-1) / weight.sum(axis=-1)
        return np.asarray(np.sqrt(spread * n_effective / (n_effective - 1) * squares))


def n_effective_of(weight: FloatArray | None, n_rows: int, *, frequency: bool) -> float:
    """Effective number of all rows, math [6]."""
    if weight is None:
        return float(n_rows)
    return float(weight.sum() if frequency else weight.sum() ** 2 / np.sum(weight**2))


def spread_of(bins: Moments) -> FloatArray:
    """Standard deviation of the differences of each step, ddof 1."""
    return np.sqrt(sums.variance(bins, np.ones(len(bins.mean), dtype=np.int64)))
