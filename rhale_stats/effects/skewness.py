"""Skewness of the errors of effects, curve and average of one feature (math [64])."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.arrays.skewness import Skewness
from rhale_stats.effects.fit import CurveErrors, at_cells, at_edges
from rhale_stats.schema.moments import has_cells
from rhale_stats.schema.padding import Estimates


def row_skewness(
    row: xr.Dataset, fit: CurveErrors, cells_skewness: Skewness | None, variance: FloatArray
) -> Estimates:
    """Skewness of errors by rows, by name, from that of cells.

    ``variance`` is that of the curve at edges of cells.
    """
    cells = fit.cells
    if cells_skewness is None:
        return _named(row, fit, None)
    share = np.nan_to_num(cells.pieces.share)
    within = float(np.nansum(share**2 * cells.noise.mean))
    away = (cells.pieces.mean - float(row["average_effect"])) ** 2
    between = float(np.nansum(share**2 * away / cells.n_effective))
    of_bins = _by_bin(cells.loading[0], cells.bin)
    on_stretch = cells_skewness.part(cells.stretch)
    loadings = fit.loadings(fit.pieces.edges)
    return _named(
        row,
        fit,
        cells_skewness.of_sums(of_bins),
        on_stretch.of_sums(loadings.level) * _part(fit.variance_of_effects(), variance),
        float(cells_skewness.of_sums(share) * _part(np.array(within), np.array(within + between))),
    )


def group_skewness(
    row: xr.Dataset,
    fit: CurveErrors,
    effects_skewness: Skewness | None,
    of_curve: tuple[FloatArray, FloatArray],
    of_average: tuple[float, float],
) -> Estimates:
    """Skewness of errors by groups, by name, from that of the effects of bins.

    ``of_curve``, at the edges of cells, and ``of_average`` are variances: that of the errors of the
    effects, and that of all.
    """
    if effects_skewness is None:
        return _named(row, fit, None)
    cells = fit.cells
    stretch = cells.stretch
    by_bin = _by_bin(np.ones(len(cells.bin)), cells.bin).T[stretch]
    level = fit.loadings(fit.pieces.edges).level @ by_bin
    share = np.bincount(cells.bin, np.nan_to_num(cells.pieces.share)).astype(np.float64)
    within, total = of_curve
    average = np.array(of_average[0])
    return _named(
        row,
        fit,
        effects_skewness.of_means(),
        effects_skewness.of_sums(level, within) * _part(within, total),
        float(effects_skewness.of_sums(share, average) * _part(average, np.array(of_average[1]))),
    )


def _by_bin(values: FloatArray, bin_of: IntArray) -> FloatArray:
    """Values of cells as (bin, cell), 0 outside of their bins."""
    out = np.zeros((int(bin_of[-1]) + 1, len(bin_of)))
    out[bin_of, np.arange(len(bin_of))] = values
    return out


def _part(within: FloatArray, total: FloatArray) -> FloatArray:
    """Factor of a skewness: what the places of the rows add to an error has none."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.clip(np.nan_to_num(within / total), 0.0, 1.0) ** 1.5)


def _named(
    row: xr.Dataset,
    fit: CurveErrors,
    of_effect: FloatArray | None,
    of_curve: FloatArray | float = 0.0,
    of_average: float = 0.0,
) -> Estimates:
    cell_edges = fit.pieces.edges
    of_curve = np.broadcast_to(of_curve, cell_edges.shape)
    positions = np.searchsorted(cell_edges, fit.edges)
    return {
        "effect_skewness": np.zeros(fit.n_bins) if of_effect is None else of_effect,
        "curve_skewness": at_edges(of_curve[positions], fit),
        "average_effect_skewness": of_average,
        **({"cell_curve_skewness": at_cells(of_curve, fit)} if has_cells(row) else {}),
    }
