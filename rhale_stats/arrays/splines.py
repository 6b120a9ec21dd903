"""Curves that are linear in what they smooth: natural cubic splines, straight lines, means.

math [45]. Given the smoothing parameter, a curve is a fixed matrix times the values of the rows.
Its errors and replicates are therefore those of weighted sums.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.interpolate import BSpline
from scipy.linalg import LinAlgError, eigh, solveh_banded
from scipy.optimize import minimize_scalar

from rhale_stats.arrays.moments import FloatArray, IntArray, need_squares
from rhale_stats.arrays.profiles import places

# Values that differ by less than 1 / CELLS of the axis count as one place.
CELLS = 1024
# With fewer places there is nothing to smooth. Of more places than MAX_KNOTS so many are knots: the
# decomposition takes the cube of their number.
MIN_PLACES, MAX_KNOTS = 5, 150
# Rounding errors of a straight line, relative to the largest value; digits that are kept.
ROUNDING, DIGITS = 1e-13, 12
# Smoothing parameters with which the spline is a straight line and (over the fourth power of the
# number of places) an interpolation.
STRAIGHT, NONE = 1.0, 1e-6
# Smoothing parameters tried before the best is refined.
TRIED = 12
# Below this, a row determines its part of the curve alone, and its residual has no information on
# the error.
ALONE = 1e-9


class Basis(NamedTuple):
    """Basis functions of the curve: at the places of rows, at rows, on the grid.

    ``roughness`` is the integral of products of their second derivatives over an axis from 0 to 1;
    It is None if nothing is smoothed and each place has its own function. ``place``, ``row_place``
    and ``grid_place`` are on that axis.
    """

    cell: IntArray
    at_cells: sparse.csr_array
    at_rows: sparse.csr_array
    at_grid: sparse.csr_array
    roughness: sparse.csr_array | None
    place: FloatArray
    row_place: FloatArray
    grid_place: FloatArray


def spline_basis(x: FloatArray, weight: FloatArray | None, grid: FloatArray) -> Basis:
    """Natural cubic splines with knots at places; straight lines of fewer than five places.

    Knots are at every place, or at 150 of more, evenly among them. Values of x that are equal, or
    nearly equal, are one place: their weighted mean.
    """
    low, span = float(x.min()), float(np.ptp(x)) or 1.0
    row, place = (x - low) / span, (grid - low) / span
    _, cell = np.unique(np.rint(row * CELLS), return_inverse=True)
    w = np.ones(len(x)) if weight is None else weight
    # Rounding in sums over repeated rows must not change the search for the penalty.
    z = np.round(np.bincount(cell, w * row) / np.bincount(cell, w), DIGITS)
    if len(z) < MIN_PLACES:
        cells = sparse.csr_array(sparse.eye_array(len(z)))
        rows, points = [_hats(z, places) for places in (row, place)]
        return Basis(cell, cells, rows, points, None, z, row, place)
    n_knots = min(len(z), MAX_KNOTS)
    knots = z[np.rint(np.linspace(0, len(z) - 1, n_knots)).astype(np.intp)]
    bend = _second_derivatives(knots)
    roughness = sparse.csr_array(bend.T @ _gram_of_hats(knots) @ bend)
    cells, rows, points = [_natural(knots, places) for places in (z, row, place)]
    return Basis(cell, cells, rows, points, roughness, z, row, place)


def level_basis(level: IntArray, n_levels: int) -> Basis:
    """A mean for every level."""
    cells = sparse.csr_array(sparse.eye_array(n_levels))
    place = np.arange(n_levels, dtype=np.float64)
    return Basis(level, cells, cells[level], cells, None, place, place[level], place)


def _hats(z: FloatArray, x: FloatArray) -> sparse.csr_array:
    hats = places(z, x).hats()
    hats.eliminate_zeros()
    return hats


def _extension(z: FloatArray) -> sparse.csr_array:
    """From coefficients of natural splines to those of all, (n + 2, n).

    The second derivative at an end is 0 where c_0 lies on the line through c_1 and c_2.
    """
    n = len(z)
    first = (z[1] - z[0]) / (z[2] - z[0])
    last = (z[-1] - z[-2]) / (z[-1] - z[-3])
    row = np.concatenate([[0, 0], np.arange(1, n + 1), [n + 1, n + 1]])
    column = np.concatenate([[0, 1], np.arange(n), [n - 2, n - 1]])
    value = np.concatenate([[1 + first, -first], np.ones(n), [-last, 1 + last]])
    return sparse.csr_array((value, (row, column)), shape=(n + 2, n))


def _natural(z: FloatArray, x: FloatArray) -> sparse.csr_array:
    """The functions at places, straight beyond the knots, (place, function)."""
    knots = np.concatenate([[z[0]] * 3, z, [z[-1]] * 3])
    inside = np.clip(x, z[0], z[-1])
    inner = sparse.csr_array(BSpline.design_matrix(inside, knots, 3) @ _extension(z))
    beyond = np.flatnonzero(x != inside)
    right = x[beyond] > z[-1]
    # Slope of the tangents at both ends.
    step = np.where(right, z[-1] - z[-3], z[2] - z[0])
    slope = 3 * (x - inside)[beyond] / step
    ends = np.where(right, len(z) - 2, 0)
    more = sparse.csr_array(
        (
            np.concatenate([-slope, slope]),
            (np.tile(beyond, 2), np.concatenate([ends, ends + 1])),
        ),
        shape=inner.shape,
    )
    basis = sparse.csr_array(inner + more)
    basis.eliminate_zeros()
    return basis


def _second_derivatives(z: FloatArray) -> sparse.csr_array:
    """Second derivatives at the knots, between which they are straight, (knot, function)."""
    knots = np.concatenate([[z[0]] * 3, z, [z[-1]] * 3])
    n = len(z)

    def differences(size: int, width: FloatArray) -> sparse.dia_array:
        return sparse.diags_array([-1 / width, 1 / width], offsets=(0, 1), shape=(size, size + 1))

    first = 3 * differences(n + 1, knots[4 : n + 5] - knots[1 : n + 2])
    second = 2 * differences(n, knots[4 : n + 4] - knots[2 : n + 2])
    return sparse.csr_array(second @ first @ _extension(z))


def _gram_of_hats(z: FloatArray) -> sparse.dia_array:
    step = np.diff(z)
    middle = np.concatenate([step, [0.0]]) + np.concatenate([[0.0], step])
    return sparse.diags_array([step / 6, middle / 3, step / 6], offsets=(-1, 0, 1))


def _solved(basis: Basis, share: FloatArray, smoothing: float, right: FloatArray) -> FloatArray:
    """(sum of p_c b_c b_c' + smoothing roughness)^-1 ``right``; NaN at levels without rows."""
    if basis.roughness is None:
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(right / share.reshape(-1, *(1,) * (right.ndim - 1)))
    cells = basis.at_cells
    whole = cells.T @ (cells * share[:, None]) + smoothing * basis.roughness
    bands = np.zeros((4, cells.shape[1]))
    for offset in range(4):
        bands[3 - offset, offset:] = whole.diagonal(offset)
    try:
        return np.asarray(solveh_banded(bands, right, check_finite=False))
    except LinAlgError:
        return np.full_like(right, np.nan)


def _influence_of_cells(
    basis: Basis, share: FloatArray, smoothing: float, rows: sparse.csr_array
) -> FloatArray:
    """Effect of a unit residual at a place on the curve at other places, (cell, other)."""
    return np.asarray(basis.at_cells @ _solved(basis, share, smoothing, rows.T.toarray()))


def _leverage(basis: Basis, share: FloatArray, smoothing: float) -> FloatArray:
    """b_c' A^-1 b_c of every place; times the share of a row, this is its leverage."""
    cells = basis.at_cells.T.toarray()
    return np.asarray(np.sum(cells * _solved(basis, share, smoothing, cells), axis=0))


def _chosen(basis: Basis, share: FloatArray, height: FloatArray, *, each: bool) -> float:
    """Smoothing parameter with the smallest generalised cross-validation criterion, math [45].

    With ``each`` every place is left out by its own leverage: places of much weight pull the curve
    towards themselves, and may be those of large errors (math [73]).
    """
    n, cells, roughness = len(share), basis.at_cells, basis.roughness
    assert roughness is not None, "something is smoothed"
    root = np.sqrt(share)
    # Demmler and Reinsch: one decomposition serves all smoothing parameters.
    gram = (cells.T @ (cells * share[:, None])).toarray()
    rough, vectors = eigh(roughness.toarray(), gram)
    rough = np.append([0.0, 0.0], np.maximum(rough[2:], 0.0))  # lines have none
    waves = root[:, None] * (cells @ vectors)
    parts = waves.T @ (root * height)
    # What is left however little is smoothed; none with a knot at every place.
    beyond = root * height - waves @ parts

    def criterion(log: float) -> float:
        penalty = np.exp(log) * rough
        lost = penalty / (1 + penalty)
        if each:
            rest = beyond + waves @ (lost * parts)
            leverage = waves**2 @ (1 - lost)
            return float(np.sum((rest / np.maximum(1 - leverage, ALONE)) ** 2))
        squares = beyond @ beyond + np.sum((lost * parts) ** 2)
        return float(squares / ((lost.sum() + n - len(lost)) / n) ** 2)

    tried = np.linspace(np.log(NONE / n**4), np.log(STRAIGHT), TRIED)
    best = int(np.nanargmin([criterion(log) for log in tried]))
    bounds = tried[max(best - 1, 0)], tried[min(best + 1, TRIED - 1)]
    minimum = minimize_scalar(criterion, bounds=bounds, method="bounded", options={"xatol": 1e-3})
    return float(np.exp(minimum.x))


class Smooth(NamedTuple):
    """The curve on the grid, residuals of the rows, and the smoothing parameter (NaN of means)."""

    curve: FloatArray
    residual: FloatArray
    smoothing: float


def _shares(basis: Basis, weight: FloatArray) -> FloatArray:
    total = np.bincount(basis.cell, weight, basis.at_cells.shape[0])
    return np.asarray(total / total.sum())


def smooth(
    basis: Basis,
    y: FloatArray,
    weight: FloatArray | None,
    smoothing: float | None,
    *,
    frequency: bool,
) -> Smooth:
    """The curve through y; its smoothing parameter by cross-validation where it is not given."""
    w = np.ones(len(y)) if weight is None else weight
    share = _shares(basis, w)
    mean = float(np.average(y, weights=w))
    with np.errstate(invalid="ignore"):
        height = np.bincount(basis.cell, w * (y - mean), len(share)) / w.sum() / share
    if basis.roughness is None:
        curve = mean + basis.at_grid @ height
        return Smooth(curve, y - mean - basis.at_rows @ height, float("nan"))
    # A straight line has no penalty. It is subtracted first, so that it is reproduced exactly.
    z = basis.place
    middle = float(share @ z)
    slope = float(share * (z - middle) @ height / (share @ (z - middle) ** 2))
    rest = height - slope * (z - middle)
    scale = float(np.abs(rest).max())
    beta = np.zeros(basis.at_cells.shape[1])
    if scale <= ROUNDING * float(np.abs(y).max()):
        smoothing = STRAIGHT if smoothing is None else smoothing
    else:
        rest = np.round(rest / scale, DIGITS)
        if smoothing is None:
            each = need_squares(weight, frequency=frequency)
            smoothing = _chosen(basis, share, rest, each=each)
        beta = scale * _solved(basis, share, smoothing, basis.at_cells.T @ (share * rest))
    line = [mean + slope * (place - middle) for place in (basis.grid_place, basis.row_place)]
    return Smooth(line[0] + basis.at_grid @ beta, y - line[1] - basis.at_rows @ beta, smoothing)


def influences(
    basis: Basis,
    residual: FloatArray,
    weight: FloatArray | None,
    smoothing: float,
    *,
    frequency: bool,
) -> FloatArray:
    """math [45]: influence of every row on the curve, (row, grid), up to a constant for each point.

    Residuals are divided by the root of one minus the leverage, because they are smaller than
    errors (MacKinnon and White 1985, HC2). NaN where the curve depends on one row alone.
    """
    w = np.ones(len(residual)) if weight is None else weight
    share = _shares(basis, w)
    leverage = _leverage(basis, share, smoothing)[basis.cell] / w.sum()
    free = 1 - leverage * (1.0 if frequency else w)
    with np.errstate(invalid="ignore", divide="ignore"):
        scaled = np.where(free > ALONE, residual / np.sqrt(free), np.nan)
    effect = _influence_of_cells(basis, share, smoothing, basis.at_grid)[basis.cell]
    return np.where(effect == 0, 0.0, scaled[:, None] * effect)


class GroupInfluences(NamedTuple):
    """What groups of rows do to the curve, (group, grid), and degrees of freedom, (grid,)."""

    moved: FloatArray
    degrees: FloatArray


def of_groups(
    basis: Basis,
    residual: FloatArray,
    weight: FloatArray | None,
    group: IntArray,
    smoothing: float,
    centre: FloatArray,
    *,
    frequency: bool,
) -> GroupInfluences:
    """math [99]: influences of groups on the curve less its part along ``centre`` (grid,).

    The residuals of a group are multiplied by (I - H)^(-1/2), H the block of the group in the
    matrix of leverage (CR2, Bell and McCaffrey 2002). NaN at levels with rows of one group.
    """
    w = np.ones(len(residual)) if weight is None else weight
    share, n_groups = _shares(basis, w), int(group.max(initial=-1)) + 1
    cells = basis.at_cells.T.toarray()
    whole = np.asarray(basis.at_cells @ _solved(basis, share, smoothing, cells))
    root = np.sqrt(share)
    values, vectors = np.linalg.eigh(root[:, None] * np.nan_to_num(whole) * root)
    positive = values > ALONE
    # Of all rows H is U diag(values) U' between places; of a group the same with its own weights.
    factor = vectors[:, positive] * np.sqrt(values[positive])
    effect = _influence_of_cells(basis, share, smoothing, basis.at_grid)
    effect = effect - (effect @ centre)[:, None]
    n_cells, key = len(share), group * len(share) + basis.cell
    size = n_groups * n_cells
    mass = np.bincount(key, w / w.sum(), size).reshape(n_groups, n_cells)
    sums = np.bincount(key, w / w.sum() * residual, size).reshape(n_groups, n_cells)
    moved = sums @ effect
    for number in range(n_groups):
        members = np.flatnonzero(mass[number])
        block = factor[members] * np.sqrt(mass[number, members] / share[members])[:, None]
        left, size_of, _ = np.linalg.svd(block, full_matrices=False)
        rest = 1 - size_of**2
        more = np.where(rest > ALONE, 1 / np.sqrt(np.maximum(rest, ALONE)) - 1, 0.0)
        half = np.sqrt(mass[number, members])
        added = half * (left @ (more * (left.T @ (sums[number, members] / half))))
        moved[number] += added @ effect[members]
    square = w / w.sum() ** 2 if frequency else (w / w.sum()) ** 2
    parts = np.bincount(key, square, size).reshape(n_groups, n_cells) @ effect**2
    with np.errstate(invalid="ignore", divide="ignore"):
        degrees = parts.sum(axis=0) ** 2 / np.sum(parts**2, axis=0) - 1
    if basis.roughness is None:
        alone = (np.asarray(basis.at_grid @ (mass > 0).T.astype(np.float64)) > 0).sum(axis=1) < 2
        moved[:, alone], degrees[alone] = np.nan, 0.0
    return GroupInfluences(moved, degrees)


def replicate_curves(
    basis: Basis, y: FloatArray, weight: FloatArray, smoothing: float
) -> tuple[FloatArray, FloatArray]:
    """Curves and residuals with weights (row, draw): (grid, draw), (row, draw).

    Places and smoothing parameter are fixed. NaN at levels, or between places, without rows.
    """
    n_cells = basis.at_cells.shape[0]
    of_cells = sparse.csr_array(
        (np.ones(len(y)), (basis.cell, np.arange(len(y)))), shape=(n_cells, len(y))
    )
    total = weight.sum(axis=0)
    share = np.asarray(of_cells @ weight) / total
    origin = float(y.mean())
    sums = np.asarray(of_cells @ (weight * (y - origin)[:, None])) / total
    right = np.asarray(basis.at_cells.T @ sums)
    beta = np.stack(
        [_solved(basis, p, smoothing, column) for p, column in zip(share.T, right.T, strict=True)],
        axis=1,
    )
    return (
        origin + np.asarray(basis.at_grid @ beta),
        y[:, None] - origin - np.asarray(basis.at_rows @ beta),
    )


class Near(NamedTuple):
    """Bins of neighbouring rows, and weights of the bins at the points of the grid."""

    bin: IntArray
    to_grid: sparse.csr_array

    def spread(self, residual: FloatArray, weight: FloatArray) -> FloatArray:
        """Root mean square of residuals along the grid, (row, draw) -> (grid, draw)."""
        of_bins = sparse.csr_array(
            (np.ones(len(self.bin)), (self.bin, np.arange(len(self.bin)))),
            shape=(self.to_grid.shape[1], len(self.bin)),
        )
        # A row of weight 0 may lie where the curve is not known.
        squares = np.where(weight > 0, weight * residual**2, 0.0)
        with np.errstate(invalid="ignore"):
            means = np.asarray(of_bins @ squares) / np.asarray(of_bins @ weight)
        return np.asarray(np.sqrt(self.to_grid @ means))


def near_bins(bin_of_row: IntArray, x_mean: FloatArray, grid: FloatArray) -> Near:
    """Linear interpolation between the means of x in the bins."""
    return Near(bin_of_row, _hats(x_mean, grid))


def near_levels(level: IntArray, n_levels: int) -> Near:
    """Each level is its own bin."""
    return Near(level, sparse.csr_array(sparse.eye_array(n_levels)))
