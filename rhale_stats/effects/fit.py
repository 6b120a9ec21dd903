"""What standard errors, intervals, tests and sizes of one feature are made from."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import xarray as xr

from rhale_stats.arrays import accumulate
from rhale_stats.arrays.adaptive import Along, added_variance
from rhale_stats.arrays.binning import bin_index
from rhale_stats.arrays.influence import Loadings
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.arrays.skewness import Skewness
from rhale_stats.bins.description import has_fact
from rhale_stats.schema.curves import CurveCells, CurveErrors, interpolation
from rhale_stats.schema.feature_result import FeatureResult, Result, each_feature
from rhale_stats.schema.padding import Estimates
from rhale_stats.schema.variables import EFFECT_VARIABLES

CURVE_TARGETS = {
    "mean": "curve centred at its mean over the population, math [26]",
    "start": "zero-start curve, math [25]",
    "integral": "curve centred at its mean over the axis, math [25] with fixed loadings",
}


def curve_target(centering: str) -> str:
    """What the standard error of a curve is one of."""
    return (
        CURVE_TARGETS.get(centering) or f"curve less its value at {float(centering):g}, math [25]"
    )


TARGETS = {
    "effect_se": "effect in the bin, math [24]",
    "slope_se": "slope of the effect in the bin, White (1980); 0 where it is constant",
    "heterogeneity_se": "standard deviation of the local effects in the bin, math [24]",
    "curve_se": "",  # depends on the centring
    "curve_se_start": CURVE_TARGETS["start"],
    "average_effect_se": "mean of the local effects over the rows",
}
SOURCE = "rows"
# What is stored for groups; otherwise it follows from the bins.
GROUP_COVARIANCES = (
    *("effect_cov", "slope_cov", "effect_slope_cov", "curve_cov", "curve_slope_cov"),
)


# Degrees of freedom of standard errors by groups, and how much those of two bins have in common.
GROUP_DEGREES = (
    *("effect_df", "effect_overlap", "slope_df", "heterogeneity_df", "curve_df"),
    *("average_effect_df", "effective_groups", "zero_pvalue", "constant_pvalue"),
)


# Skewness of the errors, by which intervals are longer on one side.
SKEWNESS = ("effect_skewness", "curve_skewness", "average_effect_skewness")


def source_of_errors(effect: xr.Dataset, name: str) -> str:
    """The source of the standard error of a variable: rows, replicates, or the model."""
    return str(effect.variables[f"{name}_se"].attrs.get("source", SOURCE))


def target_of(effect: xr.Dataset, name: str) -> str:
    """The quantity that a variable estimates, in words."""
    if f"{name}_se" in effect:
        return str(effect.variables[f"{name}_se"].attrs.get("target", name))
    return EFFECT_VARIABLES[name][1]


class Feature(NamedTuple):
    """One feature of an effect, unpacked; ``fit`` is None where it has no bin."""

    row: FeatureResult
    fit: CurveErrors | None


def features_of(effect: xr.Dataset) -> list[Feature]:
    """All features, each unpacked once."""
    return [Feature(row, row.fit if row.sizes["bin"] else None) for row in each_feature(effect)]


def group_degrees(row: FeatureResult, name: str) -> FloatArray:
    """Degrees of freedom of a standard error by groups."""
    return np.asarray(row[f"{name}_df"].values, dtype=np.float64)


def group_overlap(row: FeatureResult) -> FloatArray:
    """What the variances of effects by groups have in common."""
    return np.asarray(row["effect_overlap"].values, dtype=np.float64)


def curve_degrees(row: FeatureResult, fit: CurveErrors, z: FloatArray) -> FloatArray:
    """Degrees of freedom of the curve of one feature at points within its stretch."""
    if not row.stores_errors:
        return fit.curve_degrees(z)
    degrees = group_degrees(row, "curve")[fit.cells.edge_stretch]
    return np.interp(z, fit.pieces.edges, degrees)


def bends(edges: FloatArray, z: FloatArray) -> FloatArray:
    """How far below the line through both ends of its bin a curve of slope 1 is, (point, bin).

    By slope (z - l)(r - z) / 2, as in `curve_at`.
    """
    k = bin_index(edges, z)
    bend = np.zeros((len(z), len(edges) - 1))
    bend[np.arange(len(z)), k] = (z - edges[k]) * (edges[k + 1] - z) / 2
    return bend


def curve_covariance(row: FeatureResult, fit: CurveErrors, z: FloatArray) -> FloatArray:
    """Covariance of a curve at points: of groups from that at edges, and of slopes."""
    if not row.has_covariance:
        return fit.covariance(z)
    # Without the edges beyond a gap between the rows, where the curve is not known.
    stretch = fit.cells.edge_stretch
    weight = interpolation(fit.pieces.edges, z)
    total = weight @ row["curve_cov"].values[stretch, stretch] @ weight.T
    if row.has_cells or not row.slopes.any():
        return np.asarray(total)
    bend = bends(row.bin_edges, z)
    mixed = weight @ row["curve_slope_cov"].values[stretch] @ bend.T
    return np.asarray(total - mixed - mixed.T + bend @ row["slope_cov"].values @ bend.T)


def bin_degrees(row: FeatureResult, cells: CurveCells | None = None) -> FloatArray:
    """Degrees of freedom of the effects of one feature's bins, for Student's t."""
    if not row.sizes["bin"]:
        return np.zeros(0)
    if row.stores_errors:
        return group_degrees(row, "effect")
    cells = row.curve_cells if cells is None else cells
    return cells.effect_degrees() if cells.shared else cells.degrees


def spread_degrees(row: FeatureResult) -> FloatArray:
    """Degrees of freedom of the spread in one feature's bins."""
    if row.stores_errors:
        return group_degrees(row, "heterogeneity")
    n = row.n_effective
    degrees = np.maximum(n - 1 - (row.slopes != 0), 0)
    if "squares" in row:
        # The share of the rows that they are is that of their numbers.
        degrees = degrees * np.divide(spread_rows(row), n, out=np.ones(len(n)), where=n > 0)
    return np.asarray(degrees)


def spread_rows(row: FeatureResult) -> FloatArray:
    """Effective number of rows that the squares of local effects count as, by bin.

    By squared precision weights the variance of a mean of squares can be another than of so many
    rows of equal weight (math [24]).
    """
    n = np.asarray(row.n_effective, dtype=np.float64)
    squares = row.squares
    if squares is None or row.is_categorical:
        return n
    with np.errstate(invalid="ignore", divide="ignore"):
        m2 = row["heterogeneity"].values ** 2 * (1 - (1 + (row.slopes != 0)) / n)
        variance = squares[:, 11] - 2 * m2 * squares[:, 10] + m2**2
        usual = row.residuals.fourth_moment - m2**2
        is_known = (usual > 1e-9 * m2**2) & (variance > 0)
        return np.where(is_known, n * usual / np.where(is_known, variance, 1.0), n)


def row_degrees(row: FeatureResult) -> float:
    """Degrees of freedom of one feature's mean over the rows."""
    if row.stores_errors:
        return float(group_degrees(row, "average_effect"))
    n, share = row.n_effective, row.weight_share
    if row.is_categorical:
        n, share = row["n_level_effective"].values, row["level_share"].values
    occupied = share > 0
    return float(1 / np.sum(share[occupied] ** 2 / n[occupied]) - 1) if occupied.any() else np.nan


def noise_in_the_middle(row: FeatureResult) -> accumulate.Noise:
    """Variances and covariance of the effect in the middle of every bin and of its slope."""
    if "slope_cov" in row:
        shared = np.diagonal(row["effect_slope_cov"].values)
        return accumulate.Noise(row["effect_se"].values ** 2, shared, row["slope_se"].values ** 2)
    noise, away = row.bin_noise, row.pieces.away()
    shared = noise.covariance + away * noise.slope
    effect_se = row["effect_se"].values
    if row.effect_slope_correlation is not None:
        # With a correlation no variance is negative; those along the axis are of other residuals.
        shared = row.effect_slope_correlation * effect_se * np.sqrt(noise.slope)
    return accumulate.Noise(effect_se**2, shared, noise.slope)


# --- variances of the effects of bins whose edges were chosen on the same rows --------------------


def includes_choice(effect: Result) -> bool:
    """Whether standard errors of bin effects include the choice of edges."""
    if "honest_seed" in effect.attrs or effect.attrs.get("weighting") != "axis":
        return False
    return has_fact(effect.attrs["bin_rule"], "places_edges")


def effect_variance(row: FeatureResult, fit: CurveErrors) -> FloatArray:
    """Variances of the effects of one feature's bins, about the targets of these bins."""
    return fit.cells.effect_variance() + choice_variance(row, fit, fit.cells.noise.mean)


def choice_variance(row: FeatureResult, fit: CurveErrors, of_means: FloatArray) -> FloatArray:
    """math [24]: what chosen edges add to the variances of the effects of one feature's bins.

    ``of_means`` are the variances of the means of the cells.
    """
    cells, bins = fit.cells, row.pieces
    if not includes_choice(row) or not row.has_cells:
        return np.zeros(row.sizes["bin"])
    along = Along.from_cells(cells.pieces.edges, cells.pieces.mean, of_means, cells.n_effective)
    ends = np.stack([bins.edges[:-1], bins.edges[1:]])
    at_ends = bins.mean + bins.slope * (ends - bins.x_mean)
    return added_variance(along, cells.bin, at_ends, bins.slope)


# --- skewness of the errors of effects ------------------------------------------------------------


def row_skewness(
    row: FeatureResult,
    fit: CurveErrors,
    cells_skewness: Skewness | None,
    loadings: Loadings,
    of_curve: tuple[FloatArray, FloatArray],
) -> Estimates:
    """Skewness of errors by rows, by name, from that of cells.

    ``loadings`` are those of the curve at edges of cells, ``of_curve`` its variances there: of the
    errors of the effects, and of all.
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
    return _named(
        row,
        fit,
        cells_skewness.of_sums(of_bins),
        on_stretch.of_sums(loadings.level) * _part(*of_curve),
        float(cells_skewness.of_sums(share) * _part(np.array(within), np.array(within + between))),
    )


def group_skewness(
    row: FeatureResult,
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
    row: FeatureResult,
    fit: CurveErrors,
    of_effect: FloatArray | None,
    of_curve: FloatArray | float = 0.0,
    of_average: float = 0.0,
) -> Estimates:
    of_curve = np.broadcast_to(of_curve, fit.pieces.edges.shape)
    return {
        "effect_skewness": np.zeros(row.sizes["bin"]) if of_effect is None else of_effect,
        "curve_skewness": fit.cells.at_edges(of_curve),
        "average_effect_skewness": of_average,
    }
