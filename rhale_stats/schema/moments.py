"""Moments of the rows of one feature, as results hold them, and what follows from them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from rhale_stats.arrays import cells as kernel
from rhale_stats.arrays.cell_moments import CellMoments, residual_moments
from rhale_stats.arrays.moments import FloatArray, IntArray, ResidualMoments
from rhale_stats.schema.features import slopes
from rhale_stats.schema.layout import MOMENTS
from rhale_stats.schema.levels import is_categorical
from rhale_stats.schema.padding import padded


def has_moments(effect: xr.Dataset) -> bool:
    """Whether standard errors follow from the moments of the rows, which the result holds."""
    return MOMENTS in effect and "debiased" not in effect.attrs


def cell_edges(row: xr.Dataset) -> FloatArray:
    """Edges of the cells that the curve of one feature is accumulated from; none without cells."""
    edges = row.variables["cell_value"].values if "cell_effect" in row else np.zeros(0)
    return np.asarray(edges[np.isfinite(edges)])


def has_cells(row: xr.Dataset) -> bool:
    """Whether the curve of one feature is accumulated from cells finer than its bins."""
    return len(cell_edges(row)) > 0


def moments_of(row: xr.Dataset) -> CellMoments:
    """Moments in the cells of the curve of one feature; without cells, in its bins."""
    n = len(cell_edges(row)) - 1 if has_cells(row) else row.sizes["bin"]
    return CellMoments(np.ascontiguousarray(row.variables[MOMENTS].values[:n].T))


def cells_of(row: xr.Dataset) -> kernel.Cells:
    """The cells of the curve of one feature."""
    return kernel.cells_of(cell_edges(row), row.variables["edge_value"].values, moments_of(row))


def bin_starts(row: xr.Dataset) -> IntArray:
    """First cell of every bin of one feature."""
    if not has_cells(row):
        return np.arange(row.sizes["bin"])
    return np.searchsorted(cell_edges(row), row.variables["edge_value"].values[:-1])


def residuals_of(row: xr.Dataset) -> ResidualMoments:
    """Moments of the local effects of one feature about the means, or lines, of its bins.

    0 where the result, such as a true effect, does not hold them.
    """
    if MOMENTS not in row:
        none = np.zeros(row.sizes["bin"])
        return ResidualMoments(none, none, none, none, none, None, bin_means(row))
    slope = slopes(row) if "slope" in row else None
    return residual_moments(moments_of(row), bin_starts(row), slope)


def bin_residuals(
    rows: Sequence[xr.Dataset], names: Sequence[str], n_bins: int
) -> list[FloatArray]:
    """Fields of `residuals_of` of features, padded to ``n_bins``, each of shape (feature, bin)."""
    each = [residuals_of(row) for row in rows]
    return [padded([getattr(residuals, name) for residuals in each], [n_bins]) for name in names]


def bin_means(row: xr.Dataset) -> FloatArray:
    """Mean of the local effects of the rows in every bin of one feature: a line's at ``x_mean``."""
    if has_cells(row) and MOMENTS in row and not is_categorical(row):
        return moments_of(row).pooled(bin_starts(row)).means().mean
    middle = (row.variables["bin_left"].values + row.variables["bin_right"].values) / 2
    away = np.where(slopes(row) == 0, 0.0, row.variables["x_mean"].values - middle)
    return np.asarray(row.variables["effect"].values + slopes(row) * away)
