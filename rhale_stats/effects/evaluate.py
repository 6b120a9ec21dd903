"""Estimates of one feature and their standard errors at points of its axis."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from rhale_stats.arrays.binning import bin_index
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.effects.errors import effect_variance, spread_and_average_errors
from rhale_stats.effects.fit import fit_of
from rhale_stats.schema.curves import bin_noise, curve_of, pieces_of
from rhale_stats.schema.features import effect_at
from rhale_stats.schema.moments import has_cells, has_moments, residuals_of


def values_at(row: xr.Dataset, z: FloatArray) -> dict[str, FloatArray]:
    """Effect, heterogeneity and curve of one feature; NaN outside its bins."""
    edges = row["edge_value"].values
    inside = (z >= edges[0]) & (z <= edges[-1])
    k = bin_index(edges, z)
    return {
        "effect": np.where(inside, effect_at(row, z, k), np.nan),
        "heterogeneity": np.where(inside, row["heterogeneity"].values[k], np.nan),
        "curve": curve_of(row).evaluate(z),
    }


def errors_at(row: xr.Dataset, z: FloatArray) -> dict[str, Any]:
    """Standard errors of the same and of the average effect, by name, as far as they are known.

    By rows from the moments of the result; by groups of rows those that the result holds.
    """
    edges = row["edge_value"].values
    inside = (z >= edges[0]) & (z <= edges[-1])
    k = bin_index(edges, z)
    if has_moments(row) and "n_groups" not in row.attrs:
        fit = fit_of(row)
        residuals = residuals_of(row)
        noise = bin_noise(row, residuals)
        effect_se, slope_se = np.sqrt(effect_variance(row, fit)), np.sqrt(noise.slope)
        shared = _covariance_of(row, effect_se, slope_se)
        if shared is None:
            shared = noise.covariance + pieces_of(row, residuals).away() * noise.slope
        spread_se, average_se = spread_and_average_errors(row, residuals)
        ends = fit.pieces.edges
        has_curve = (z >= ends[0]) & (z <= ends[-1])
        curve_se = np.full(len(z), np.nan)
        curve_se[has_curve] = np.sqrt(np.maximum(fit.variance(z[has_curve]), 0.0))
    elif "curve_se" in row and "rows" in str(row["curve_se"].attrs.get("source", "rows")):
        effect_se, spread_se = own_error(row, "effect_se"), own_error(row, "heterogeneity_se")
        slope_se = own_error(row, "slope_se") if "slope_se" in row else np.zeros(len(edges) - 1)
        average_se, curve_se = float(own_error(row, "average_effect_se")), _between(row, z)
        shared = _stored_covariance(row, effect_se, slope_se)
    else:
        return {}
    away = z - (edges[k] + edges[k + 1]) / 2
    square = effect_se[k] ** 2 + away**2 * np.nan_to_num(slope_se)[k] ** 2
    square += 2 * away * np.nan_to_num(shared)[k]
    return {
        "effect": np.where(inside, np.sqrt(np.maximum(square, 0.0)), np.nan),
        "heterogeneity": np.where(inside, spread_se[k], np.nan),
        "curve": curve_se,
        "average_effect": average_se,
    }


def _covariance_of(
    row: xr.Dataset, effect_se: FloatArray, slope_se: FloatArray
) -> FloatArray | None:
    """Covariance of the effect in the middle of every bin with its slope, of their correlation."""
    if "effect_slope_correlation" not in row:
        return None
    return np.asarray(row["effect_slope_correlation"].values * effect_se * slope_se)


def _stored_covariance(row: xr.Dataset, effect_se: FloatArray, slope_se: FloatArray) -> FloatArray:
    """Covariances of effects and slopes, from errors that the result holds."""
    if "effect_slope_cov" in row and "effect_se_rows" not in row:
        return np.diagonal(row["effect_slope_cov"].values)
    covariance = _covariance_of(row, effect_se, slope_se)
    if covariance is not None:
        return covariance
    # As if slopes and the means of their rows were uncorrelated.
    bound = effect_se * slope_se
    return np.clip(pieces_of(row).away() * slope_se**2, -bound, bound)


def own_error(row: xr.Dataset, name: str) -> FloatArray:
    """A standard error that the result holds: its part by rows, where it also has one by models."""
    part = f"{name}_rows"
    return np.asarray(row[part if part in row else name].values, dtype=np.float64)


def _between(row: xr.Dataset, z: FloatArray) -> FloatArray:
    """Standard errors of the curve: between two edges at most the mean of theirs."""
    x_name, name = ("cell_value", "cell_curve_se") if has_cells(row) else ("edge_value", "curve_se")
    values = own_error(row, name)
    edges = row[x_name].values[: len(values)]
    is_known = np.isfinite(values) & np.isfinite(edges)
    if not is_known.any():
        return np.full(len(z), np.nan)
    return np.asarray(np.interp(z, edges[is_known], values[is_known], np.nan, np.nan))
