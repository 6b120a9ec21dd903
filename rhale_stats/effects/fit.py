"""What standard errors, intervals, tests and sizes of one feature are made from."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import xarray as xr

from rhale_stats.arrays import accumulate
from rhale_stats.arrays.adaptive import Along, added_variance
from rhale_stats.arrays.binning import bin_index
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.arrays.skewness import Skewness
from rhale_stats.bins.description import has_fact
from rhale_stats.schema.all_features import AllFeatures
from rhale_stats.schema.curves import CurveErrors, interpolation
from rhale_stats.schema.feature_result import FeatureResult, Result, each_feature
from rhale_stats.schema.features import stores_errors
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


def bin_degrees(row: FeatureResult) -> FloatArray:
    """Degrees of freedom of the effects of one feature's bins, for Student's t."""
    return degrees_in_bins(row.together)[row.position, : row.sizes["bin"]]


def degrees_in_bins(features: AllFeatures) -> FloatArray:
    """Degrees of freedom of the effects of all bins, for Student's t, (feature, bin)."""
    if stores_errors(features.source):
        return features.padded(features.at_bins("effect_df"))
    degrees = features.cells.effect_degrees()
    if features.has_levels.any():
        of_steps = features.bins_as_cells.effect_degrees()
        degrees = np.where(features.has_levels[features.feature], of_steps, degrees)
    return features.padded(degrees)


def spread_degrees(row: FeatureResult) -> FloatArray:
    """Degrees of freedom of the spread in one feature's bins."""
    if row.stores_errors:
        return group_degrees(row, "heterogeneity")
    return row.of_bins(row_spread_degrees(row.together))


def row_spread_degrees(together: AllFeatures) -> FloatArray:
    """Degrees of freedom of the spread by rows, of all features, (bin,)."""
    n = together.n_effective
    degrees = np.maximum(n - 1 - (together.slopes != 0), 0)
    if together.squares is not None:
        # The share of the rows that they are is that of their numbers.
        counted = spread_rows(together)
        degrees = degrees * np.divide(counted, n, out=np.ones(len(n)), where=n > 0)
    return np.asarray(degrees)


def spread_rows(together: AllFeatures) -> FloatArray:
    """Effective number of rows that the squares of local effects count as, (bin,).

    By squared precision weights the variance of a mean of squares can be another than of so many
    rows of equal weight (math [24]).
    """
    n = np.asarray(together.n_effective, dtype=np.float64)
    squares = together.squares
    if squares is None:
        return n
    with np.errstate(invalid="ignore", divide="ignore"):
        m2 = together.heterogeneity**2 * (1 - (1 + (together.slopes != 0)) / n)
        variance = squares[:, 11] - 2 * m2 * squares[:, 10] + m2**2
        usual = together.residuals.fourth_moment - m2**2
        is_known = (usual > 1e-9 * m2**2) & (variance > 0)
        counted = np.where(is_known, n * usual / np.where(is_known, variance, 1.0), n)
    return np.where(together.has_levels[together.feature], n, counted)


def average_degrees(features: AllFeatures) -> FloatArray:
    """Degrees of freedom of the means over the rows of all features, (feature,)."""
    variables = features.variables
    if stores_errors(features.source):
        return np.asarray(variables["average_effect_df"].values, dtype=np.float64)
    n = features.padded(features.n_effective, 0.0)
    rows = accumulate.rows_together(features.pieces.share, n)
    if features.has_levels.any():
        parts = [variables[name].values for name in ("level_share", "n_level_effective")]
        rows = np.where(features.has_levels, accumulate.rows_together(*parts), rows)
    return np.asarray(rows - 1)


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


def effect_variance(together: AllFeatures) -> FloatArray:
    """Variances of the effects of all bins, about the targets of these bins, (bin,)."""
    variance, of_means = together.cells.effect_variance(), together.cells.noise.mean
    for feature in np.flatnonzero((together.n_bins > 1) & ~together.has_levels).tolist():
        variance[together.bins_of(feature)] += choice_variance(
            together, feature, of_means[feature, : together.n_edges[feature] - 1]
        )
    return variance


def choice_variance(together: AllFeatures, feature: int, of_means: FloatArray) -> FloatArray:
    """math [24]: what chosen edges add to the variances of the effects of one feature's bins.

    ``of_means`` are the variances of the means of its cells.
    """
    n_bins, n_cells = int(together.n_bins[feature]), len(of_means)
    if not includes_choice(together.source) or not together.along_axis:
        return np.zeros(n_bins)
    cells, lines = together.cells, together.pieces
    mean, rows = [values[feature, :n_cells] for values in (cells.pieces.mean, cells.n_effective)]
    bin_of = cells.bin[feature, :n_cells]
    edges = lines.edges[feature, : n_bins + 1]
    level, slope, x_mean = [
        values[feature, :n_bins] for values in (lines.mean, lines.slope, lines.x_mean)
    ]
    at_ends = level + slope * (np.stack([edges[:-1], edges[1:]]) - x_mean)
    along = Along.from_cells(together.edges[feature, : n_cells + 1], mean, of_means, rows)
    return added_variance(along, bin_of - bin_of[0], at_ends, slope)


# --- skewness of the errors of effects ------------------------------------------------------------


def row_skewness(together: AllFeatures) -> dict[str, FloatArray]:
    """Skewness of errors by rows of all features, by name, as it is in the Dataset."""
    cells, skewed = together.cells, together.cells.skewness()
    sizes = len(together.feature), together.edges.shape, together.n_features
    of_bins, at_edges, of_average = [np.zeros(size) for size in sizes]
    if skewed is not None:
        left, right = together.loadings
        total = accumulate.sums_at_edges(*together.parts_at_edges)
        share = np.nan_to_num(cells.pieces.share)
        within = np.nansum(share**2 * cells.noise.mean, axis=-1)
        away = cells.pieces.mean - together.variables["average_effect"].values[:, None]
        with np.errstate(invalid="ignore", divide="ignore"):
            between = np.nansum(share**2 * away**2 / cells.n_effective, axis=-1)
        feature = np.arange(together.n_features)[:, None] + np.zeros(share.shape, dtype=np.int64)
        of_bins = skewed.in_bins(cells.loading[0], cells.bin, cells.n_bins)
        at_edges = skewed.at_edges(left.level, right.level)
        at_edges = at_edges * _part(total, together.variance_at_edges)
        of_average = skewed.in_bins(share, feature, together.n_features)
        of_average = of_average * _part(within, within + between)
    return {
        "effect_skewness": together.padded(of_bins),
        "curve_skewness": together.known_at_edges(at_edges),
        "average_effect_skewness": np.where(together.n_bins > 0, of_average, np.nan),
    }


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
