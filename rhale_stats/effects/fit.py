"""The estimate of one feature, prepared for standard errors, intervals, tests and sizes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import xarray as xr

from rhale_stats.arrays import accumulate, categories, influence, intervals
from rhale_stats.arrays.binning import bin_index
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.arrays.skewness import Skewness
from rhale_stats.schema.curves import (
    CurveCells,
    bin_noise,
    curve_cells,
    curve_of,
    pieces_of,
    squares_of,
)
from rhale_stats.schema.features import each_feature, slopes, stores_errors
from rhale_stats.schema.levels import is_categorical
from rhale_stats.schema.moments import has_cells, residuals_of
from rhale_stats.schema.padding import Estimates


def has_covariance(row: xr.Dataset) -> bool:
    """Whether the covariances of one feature are stored (they do not follow from its bins)."""
    return stores_errors(row) or is_categorical(row)


class CurveErrors(NamedTuple):
    """Inputs of standard errors for one feature: the cells with a curve, and their noise.

    ``cells`` are all cells, ``pieces`` the cells on the stretch with a curve; ``edges`` are the
    edges of the bins there, ``edge_slice`` their numbers.
    """

    cells: CurveCells
    pieces: accumulate.Pieces
    noise: accumulate.Noise
    places: influence.OwnPlaces | None
    curve: FloatArray
    edges: FloatArray
    edge_slice: slice
    n_bins: int
    centering: str
    # For features with levels: their shares, and the covariance of the curve at the levels.
    level_share: FloatArray | None = None
    of_levels: FloatArray | None = None

    def loadings(self, z: FloatArray) -> influence.Loadings:
        """Loadings of the curve at points within the stretch."""
        if self.level_share is not None:
            return categories.loadings(self.level_share, z, self.centering)
        return influence.loadings(self.pieces, z, self.centering)

    def variance(self, z: FloatArray) -> FloatArray:
        """Variance of the curve at points within the stretch."""
        if self.of_levels is not None:
            return np.maximum(np.diagonal(self.covariance(z)), 0.0)
        return influence.variance(self.loadings(z), self.noise, self.places)

    def variance_of_effects(self) -> FloatArray:
        """Variance of the curve at edges of cells, without what the places of the rows add."""
        return influence.variance(self.loadings(self.pieces.edges), self.noise, None)

    def covariance(self, z: FloatArray) -> FloatArray:
        """Covariance of the curve between points within the stretch."""
        if self.of_levels is not None:
            weight = interpolation(self.pieces.edges, z)
            return np.asarray(weight @ self.of_levels @ weight.T)
        return influence.covariance(self.loadings(z), self.noise, self.places)

    def sources(self, z: FloatArray) -> intervals.Sources:
        """Sources from which the variances of the curve at points are estimated."""
        return self.cells.sources(self._parts(z))

    def degrees_by_cell(self, z: FloatArray) -> FloatArray:
        """Degrees of freedom of a variance whose only source are the rows of each cell.

        What the places of the rows add to the variance does not count: two curves of the same rows
        have it in common.
        """
        parts = self._parts(z)
        by_cells = intervals.Sources(parts, np.maximum(self.cells.n_effective - 1, 0.0))
        return by_cells.satterthwaite(parts.sum(axis=1))

    def _parts(self, z: FloatArray) -> FloatArray:
        """What every cell adds to the variance of the curve at points, (point, cell)."""
        parts = np.zeros((len(z), len(self.cells.bin)))
        parts[:, self.cells.stretch] = influence.parts(self.loadings(z), self.noise)
        return parts

    def curve_degrees(self, z: FloatArray) -> FloatArray:
        """Satterthwaite's degrees of freedom of the variance of the curve."""
        return self.sources(z).satterthwaite(self.variance(z))


def interpolation(edges: FloatArray, z: FloatArray) -> FloatArray:
    """Weights of the values at edges in the straight lines between them, (point, edge)."""
    return np.array([np.interp(z, edges, unit) for unit in np.eye(len(edges))]).T


def fit_of(row: xr.Dataset) -> CurveErrors:
    """The inputs of standard errors for one feature that has bins."""
    centering, levels = str(row.attrs["centering"]), is_categorical(row)
    cells = curve_cells(row)
    stretch, noise, n = cells.stretch, cells.noise, cells.n_effective
    pieces = cells.pieces.stretch(stretch)
    edges = row["edge_value"].values
    on_curve = np.flatnonzero((edges >= pieces.edges[0]) & (edges <= pieces.edges[-1]))
    edge_slice = slice(int(on_curve[0]), int(on_curve[-1]) + 1) if len(on_curve) else slice(0, 0)
    curve = row["curve"].values if levels else curve_of(row).values
    if not levels and not has_cells(row):
        curve = curve[cells.edge_stretch]
    places = None
    if centering == "mean" and not levels:
        covariance = cells.x_covariance[stretch]
        squares = None if cells.squares is None else cells.squares[stretch]
        places = influence.own_places(
            curve, pieces, covariance, cells.noise_line[stretch], n[stretch], squares
        )
    return CurveErrors(
        cells,
        pieces,
        accumulate.Noise(*[part[stretch] for part in noise]),
        places,
        curve,
        edges[edge_slice],
        edge_slice,
        len(edges) - 1,
        centering,
        row["level_share"].values if levels else None,
        row["curve_cov"].values if levels else None,
    )


class Feature(NamedTuple):
    """One feature of an effect, unpacked; ``fit`` is None where it has no bin."""

    row: xr.Dataset
    fit: CurveErrors | None


def features_of(effect: xr.Dataset) -> list[Feature]:
    """All features, each unpacked once."""
    return [Feature(row, fit_of(row) if row.sizes["bin"] else None) for row in each_feature(effect)]


def at_edges(values: FloatArray, fit: CurveErrors) -> FloatArray:
    """Values at the edges with a curve, extended to all edges of the bins by NaN."""
    out = np.full(fit.n_bins + 1, np.nan)
    out[fit.edge_slice] = values
    return out


def at_cells(values: FloatArray, fit: CurveErrors) -> FloatArray:
    """Values at the cell edges with a curve, extended to all cell edges by NaN."""
    return accumulate.at_edges(values, fit.cells.stretch, len(fit.cells.bin))


def group_degrees(row: xr.Dataset, name: str) -> FloatArray:
    """Degrees of freedom of a standard error by groups."""
    return np.asarray(row[f"{name}_df"].values, dtype=np.float64)


def group_overlap(row: xr.Dataset) -> FloatArray:
    """What the variances of effects by groups have in common."""
    return np.asarray(row["effect_overlap"].values, dtype=np.float64)


def curve_degrees(row: xr.Dataset, fit: CurveErrors, z: FloatArray) -> FloatArray:
    """Degrees of freedom of the curve of one feature at points within its stretch."""
    if not stores_errors(row):
        return fit.curve_degrees(z)
    if has_cells(row):
        degrees = group_degrees(row, "cell_curve")[fit.cells.edge_stretch]
        return np.interp(z, fit.pieces.edges, degrees)
    return np.interp(z, fit.edges, group_degrees(row, "curve")[fit.edge_slice])


def bends(edges: FloatArray, z: FloatArray) -> FloatArray:
    """How far below the line through both ends of its bin a curve of slope 1 is, (point, bin).

    By slope (z - l)(r - z) / 2, as in `curve_at`.
    """
    k = bin_index(edges, z)
    bend = np.zeros((len(z), len(edges) - 1))
    bend[np.arange(len(z)), k] = (z - edges[k]) * (edges[k + 1] - z) / 2
    return bend


def curve_covariance(row: xr.Dataset, fit: CurveErrors, z: FloatArray) -> FloatArray:
    """Covariance of a curve at points: of groups from that at edges, and of slopes."""
    if not has_covariance(row):
        return fit.covariance(z)
    if has_cells(row):
        # Without the edges beyond a gap between the rows, where the curve is not known.
        stretch = fit.cells.edge_stretch
        weight = interpolation(fit.pieces.edges, z)
        return np.asarray(weight @ row["cell_curve_cov"].values[stretch, stretch] @ weight.T)
    edges = row["edge_value"].values
    weight = interpolation(fit.edges, z)
    total = weight @ row["curve_cov"].values[fit.edge_slice, fit.edge_slice] @ weight.T
    if not slopes(row).any():
        return np.asarray(total)
    bend = bends(edges, z)
    mixed = weight @ row["curve_slope_cov"].values[fit.edge_slice] @ bend.T
    return np.asarray(total - mixed - mixed.T + bend @ row["slope_cov"].values @ bend.T)


def bin_degrees(row: xr.Dataset, cells: CurveCells | None = None) -> FloatArray:
    """Degrees of freedom of the effects of one feature's bins, for Student's t."""
    if not row.sizes["bin"]:
        return np.zeros(0)
    if stores_errors(row):
        return group_degrees(row, "effect")
    cells = curve_cells(row) if cells is None else cells
    return cells.effect_degrees() if cells.shared else cells.degrees


def spread_degrees(row: xr.Dataset) -> FloatArray:
    """Degrees of freedom of the spread in one feature's bins."""
    if stores_errors(row):
        return group_degrees(row, "heterogeneity")
    n = row["n_effective"].values
    degrees = np.maximum(n - 1 - (slopes(row) != 0), 0)
    if "squares" in row:
        # The share of the rows that they are is that of their numbers.
        degrees = degrees * np.divide(spread_rows(row), n, out=np.ones(len(n)), where=n > 0)
    return np.asarray(degrees)


def spread_rows(row: xr.Dataset) -> FloatArray:
    """Effective number of rows that the squares of local effects count as, by bin.

    By squared precision weights the variance of a mean of squares can be another than of so many
    rows of equal weight (math [24]).
    """
    n = np.asarray(row["n_effective"].values, dtype=np.float64)
    squares = squares_of(row)
    if squares is None or is_categorical(row):
        return n
    with np.errstate(invalid="ignore", divide="ignore"):
        m2 = row["heterogeneity"].values ** 2 * (1 - (1 + (slopes(row) != 0)) / n)
        variance = squares[:, 11] - 2 * m2 * squares[:, 10] + m2**2
        usual = residuals_of(row).fourth_moment - m2**2
        is_known = (usual > 1e-9 * m2**2) & (variance > 0)
        return np.where(is_known, n * usual / np.where(is_known, variance, 1.0), n)


def row_degrees(row: xr.Dataset) -> float:
    """Degrees of freedom of one feature's mean over the rows."""
    if stores_errors(row):
        return float(group_degrees(row, "average_effect"))
    parts = ("n_effective", "weight_share")
    parts = ("n_level_effective", "level_share") if is_categorical(row) else parts
    n, share = [row[name].values for name in parts]
    occupied = share > 0
    return float(1 / np.sum(share[occupied] ** 2 / n[occupied]) - 1) if occupied.any() else np.nan


def noise_in_the_middle(row: xr.Dataset) -> accumulate.Noise:
    """Variances and covariance of the effect in the middle of every bin and of its slope."""
    if "slope_cov" in row:
        shared = np.diagonal(row["effect_slope_cov"].values)
        return accumulate.Noise(row["effect_se"].values ** 2, shared, row["slope_se"].values ** 2)
    residuals = residuals_of(row)
    noise, away = bin_noise(row, residuals), pieces_of(row, residuals).away()
    shared = noise.covariance + away * noise.slope
    effect_se = row["effect_se"].values
    if "effect_slope_correlation" in row:
        # With a correlation no variance is negative; those along the axis are of other residuals.
        shared = row["effect_slope_correlation"].values * effect_se * np.sqrt(noise.slope)
    return accumulate.Noise(effect_se**2, shared, noise.slope)


# --- skewness of the errors of effects ------------------------------------------------------------


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
