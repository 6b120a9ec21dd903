"""Accelerations of bootstrap intervals "bca", by the influence of each unit (math [29])."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from rhale_stats.arrays import influence, resample
from rhale_stats.arrays.binning import bin_index
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.effects.clusters import Clusters, degrees_of_groups, level_sums, on_effects
from rhale_stats.effects.fit import Fit, at_edges, fit_of
from rhale_stats.local.rows import Rows
from rhale_stats.schema.curves import curve_of, pieces_of
from rhale_stats.schema.features import feature_names, feature_position, one_feature
from rhale_stats.schema.levels import is_categorical
from rhale_stats.schema.moments import has_cells
from rhale_stats.schema.stacking import stacked
from rhale_stats.schema.variables import variable

ACCELERATIONS = ("effect_acceleration", "heterogeneity_acceleration", "curve_acceleration")


def accelerations(
    rows: Rows, local: xr.Dataset, effect: xr.Dataset, units: resample.Units
) -> dict[str, Any]:
    """Accelerations of all features: sum psi^3 / (6 (sum psi^2)^(3/2)) over the units."""
    unit = np.arange(rows.n_rows) if units.unit is None else units.unit
    # A unit with frequency k represents k rows, each with 1/k of its influence.
    size = np.ones(int(unit.max()) + 1) if units.size is None else units.size
    estimates: list[dict[str, Any]] = []
    for number, name in enumerate(feature_names(effect)):
        row, position = one_feature(effect, number), feature_position(local, name)
        if not row.sizes["bin"]:
            estimates.append(dict.fromkeys(ACCELERATIONS, np.nan))
            continue
        of_feature = _of_levels if is_categorical(row) else _of_axis
        values = of_feature(row, rows, position, unit, size)
        estimates.append(dict(zip(ACCELERATIONS, values, strict=True)))
        if units.unit is not None:
            clusters = Clusters(rows, local, unit, len(size))
            estimates[-1] |= degrees_of_groups(row, fit_of(row), clusters)
    arrays = stacked(estimates, effect.sizes["bin"])
    return {name: variable(name, values) for name, values in arrays.items()}


def _of_levels(
    row: xr.Dataset, rows: Rows, position: int, unit: IntArray, size: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Accelerations of the effect, the heterogeneity and the curve of a feature with levels."""
    n_units = int(unit.max()) + 1
    sums = level_sums(row, rows, position, unit, n_units)
    at = fit_of(row).loadings(row["edge_value"].values)
    moved = sums.of_curve(at, population=str(row.attrs["centering"]) == "mean")
    powers = [np.sum(moved**power / size[:, None] ** (power - 1), axis=0) for power in (2, 3)]
    return (
        _acceleration(*_powers(sums.mean, size)),
        _acceleration(*_powers(sums.variance, size)),
        _acceleration(*powers),
    )


def _of_axis(
    row: xr.Dataset, rows: Rows, position: int, unit: IntArray, size: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Accelerations of the effect, the heterogeneity and the curve of a feature with an axis."""
    x, g, n_units = rows.x[position], rows.local_effect[position], int(unit.max()) + 1
    fit, weight = fit_of(row), rows.weight
    every, curve = fit.cells.pieces, curve_of(row).at(fit.cells.pieces.edges)
    k = bin_index(every.edges, x)
    sums = influence.row_sums(every, curve, k, x, g, weight, unit, n_units)
    of_effect, of_variance = on_effects(sums, fit.cells), sums.variance
    if has_cells(row):
        bins = pieces_of(row)
        at_bins = bin_index(bins.edges, x)
        of_variance = influence.row_sums(
            bins, np.zeros(len(bins.edges)), at_bins, x, g, weight, unit, n_units
        ).variance
    here = fit.cells.here
    if len(every.share) != here.stop - here.start:
        # The curve is known only on a stretch of the axis: use the rows there.
        inside = (k >= here.start) & (k < here.stop)
        k, x, g = k[inside] - here.start, x[inside], g[inside]
        weight = None if weight is None else weight[inside]
        sums = influence.row_sums(fit.pieces, fit.curve, k, x, g, weight, unit[inside], n_units)
    return (
        _acceleration(*_powers(of_effect, size)),
        _acceleration(*_powers(of_variance, size)),
        _of_curve(fit, sums, size),
    )


def _of_curve(fit: Fit, sums: influence.RowSums, size: FloatArray) -> FloatArray:
    """Accelerations of the curve at the edges of the bins, a block of units at a time."""
    at = fit.loadings(fit.edges)
    second, third = np.zeros((2, len(fit.edges)))
    for begin in range(0, len(size), influence.BLOCK_ROWS):
        block = slice(begin, begin + influence.BLOCK_ROWS)
        moved = sums.of_curve(at, population=fit.centering == "mean", rows=block)
        share, square = 1 / size[block], moved * moved
        second += share @ square
        square *= moved
        third += share**2 @ square
    return at_edges(_acceleration(second, third), fit)


def _powers(table: Any, size: FloatArray) -> tuple[FloatArray, FloatArray]:
    return table.power(2).T @ (1 / size), table.power(3).T @ (1 / size**2)


def _acceleration(second: FloatArray, third: FloatArray) -> FloatArray:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(second > 0, third / (6 * second**1.5), 0.0)
