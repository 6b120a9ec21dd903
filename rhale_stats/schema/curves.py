"""What the curve of one feature is accumulated from: its fine cells, or its bins."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rhale_stats.arrays import accumulate, skewness
from rhale_stats.arrays import cells as kernel
from rhale_stats.arrays.accumulate import Noise, Pieces
from rhale_stats.arrays.binning import bin_index
from rhale_stats.arrays.intervals import Sources
from rhale_stats.arrays.moments import FloatArray, IntArray, ResidualMoments
from rhale_stats.arrays.skewness import Skewness
from rhale_stats.schema.features import effect_at, slopes
from rhale_stats.schema.layout import MOMENTS
from rhale_stats.schema.moments import cell_edges, cells_of, has_cells, residuals_of
from rhale_stats.schema.variables import LINE_MOMENTS

# Where moments by squared weights have those of lines.
OF_LINES = slice(4, 4 + len(LINE_MOMENTS))
# Averages of an effect's bins: along the axis (math [12]), or over the rows (math [5]).
WEIGHTINGS = ("axis", "rows")


class CurveCells(NamedTuple):
    """Cells of one feature, in order, each within one bin; ``bin`` says which.

    ``variance`` is that of local effects (or of residuals from a line), ``n_effective`` the rows,
    ``degrees`` the degrees of freedom of the variance, which neighbours have partly in common
    where they are ``shared``, ``stretch`` the run of cells without gaps that has a curve.
    """

    pieces: Pieces
    bin: IntArray
    variance: FloatArray
    n_effective: FloatArray
    degrees: FloatArray
    x_covariance: FloatArray
    line: FloatArray
    stretch: slice
    shared: bool
    # By squared precision weights; ``variance`` and ``third`` are then of these.
    squares: FloatArray | None = None
    # Third cumulants; None where they are not known.
    third: FloatArray | None = None
    # Sign of the skewness under weights; None where the cells decide whether it is clear.
    sign: float | None = None

    @property
    def edge_stretch(self) -> slice:
        """Edges of the cells that have a curve."""
        return slice(self.stretch.start, self.stretch.stop + 1)

    @property
    def noise(self) -> Noise:
        """Variances of the cells' means and slopes."""
        return accumulate.line_noise(self.variance, self.pieces, self.noise_line, self.n_effective)

    @property
    def noise_line(self) -> FloatArray:
        """Products of places and residuals that standard errors need."""
        return self.line if self.squares is None else self.squares[:, OF_LINES]

    @property
    def loading(self) -> tuple[FloatArray, FloatArray]:
        """Weight of every cell's mean, and of its slope, in the effect of its bin."""
        width = np.diff(self.pieces.edges)
        level = kernel.along_axis(width, self.pieces.share, self.bin)
        return level, level * np.nan_to_num(self.pieces.away())

    @property
    def effect_parts(self) -> FloatArray:
        """Parts of the variance of every bin's effect, by cell."""
        parts = self.noise.variance_along(*self.loading)
        return np.where(self.pieces.share > 0, parts, 0.0)

    def skewness(self) -> Skewness | None:
        """Skewness of the errors of the cells' means; None if it is not clear anywhere."""
        if self.third is None:
            return None
        return Skewness.from_cumulants(
            self.third, np.nan_to_num(self.variance), self.n_effective, self.sign
        )

    def n_bins(self) -> int:
        """Number of bins."""
        return int(self.bin[-1]) + 1

    def effect_variance(self) -> FloatArray:
        """Variances of the effects of the bins; NaN where a bin has one row, or none."""
        total = np.bincount(self.bin, self.effect_parts)
        return np.where(self._has_rows(), total, np.nan)

    def _has_rows(self) -> NDArray[np.bool_]:
        """Which bins have two rows or more: a variance that is borrowed whole is none of theirs."""
        return np.asarray(np.bincount(self.bin, self.n_effective) > 1 + 1e-12)

    def sources(self, parts: FloatArray) -> Sources:
        """What variances are estimated from, given their parts by cell, (point, cell)."""
        if not self.shared or self.squares is not None:
            return Sources(parts, self.degrees)
        weights, degrees = kernel.variance_sources(self.n_effective)
        return Sources(parts @ weights, degrees)

    def effect_degrees(self) -> FloatArray:
        """Satterthwaite's degrees of freedom of these; those of a bin that is one cell."""
        parts, degrees = self.effect_parts, self.degrees
        occupied = self.pieces.share > 0
        largest = np.zeros(self.n_bins())
        np.maximum.at(largest, self.bin, np.where(occupied, degrees, 0.0))
        of_bins = np.zeros((self.n_bins(), len(parts)))
        of_bins[self.bin, np.arange(len(parts))] = parts
        pooled = self.sources(of_bins).satterthwaite(of_bins.sum(axis=1))
        # Without any spread all rows tell of it.
        pooled = np.where(np.isfinite(pooled), pooled, np.bincount(self.bin, degrees))
        pooled = np.where(np.bincount(self.bin, occupied) <= 1, largest, pooled)
        return np.asarray(np.where(self._has_rows(), pooled, 0.0))


def cell_sizes(effect: xr.Dataset) -> dict[str, int]:
    """Sizes of the dimensions of cells, where an effect has them."""
    sizes = {dim: effect.sizes[dim] for dim in ("cell", "cell_edge") if dim in effect.sizes}
    return sizes | {f"{dim}_other": size for dim, size in sizes.items()}


def curve_name(row: xr.Dataset) -> str:
    """The variable with the whole curve of one feature: at its cells, where it has them."""
    return "cell_curve" if has_cells(row) else "curve"


def bin_edge_numbers(row: xr.Dataset) -> IntArray:
    """Numbers of the edges of one feature's bins among the edges of its curve."""
    edges, of_cells = row.variables["edge_value"].values, cell_edges(row)
    return np.searchsorted(of_cells, edges) if len(of_cells) else np.arange(len(edges))


def pieces_of(row: xr.Dataset, residuals: ResidualMoments | None = None) -> Pieces:
    """Bins of one feature by their rows, with their lines; ``residuals`` where they are known."""
    if residuals is None:
        residuals = residuals_of(row)
    return Pieces(
        row.variables["edge_value"].values,
        residuals.mean,
        slopes(row),
        row.variables["x_mean"].values,
        residuals.x_variance,
        row.variables["weight_share"].values,
    )


def line_moments_of(residuals: ResidualMoments) -> FloatArray:
    """Products of places and residuals in linear bins; 0 from rules without them."""
    none = np.zeros((len(residuals.x_variance), len(LINE_MOMENTS)))
    return none if residuals.line is None else residuals.line


def squares_of(row: xr.Dataset) -> FloatArray | None:
    """Moments of the bins by squared precision weights, if the effect has them."""
    return (
        np.asarray(row.variables["squares"].values, dtype=np.float64) if "squares" in row else None
    )


def bin_noise(row: xr.Dataset, residuals: ResidualMoments) -> Noise:
    """Noise of the means and slopes of one feature's bins by their rows."""
    squares = squares_of(row)
    line = line_moments_of(residuals) if squares is None else squares[:, OF_LINES]
    pieces, n = pieces_of(row, residuals), row.variables["n_effective"].values
    return accumulate.line_noise(_variance_of_means(row), pieces, line, n)


def _variance_of_means(row: xr.Dataset) -> FloatArray:
    """Variances of the bins as standard errors of means need them."""
    if "squares" in row:
        return np.asarray(row.variables["robust_variance"].values)
    return np.asarray(row.variables["heterogeneity"].values ** 2)


def curve_cells(row: xr.Dataset) -> CurveCells:
    """The cells that the curve of one feature is accumulated from."""
    if not has_cells(row):
        residuals = residuals_of(row)
        pieces = pieces_of(row, residuals)
        n_rows = row.variables["error_rows" if "error_rows" in row else "n_effective"].values
        return CurveCells(
            pieces,
            np.arange(row.sizes["bin"]),
            _variance_of_means(row),
            row.variables["n_effective"].values,
            np.maximum(n_rows - 1 - (pieces.slope != 0), 0.0),
            residuals.x_covariance,
            line_moments_of(residuals),
            accumulate.known_stretch(pieces.share),
            shared=False,
            squares=squares_of(row),
            third=_third_of(row, residuals),
            sign=_sign_of(row),
        )
    cells = cells_of(row)
    used = slice(0, len(cells.mean))
    share = row.variables["cell_share"].values[used]
    none = np.zeros(used.stop)
    variance, degrees, squares = cells.variance, cells.degrees, None
    third = skewness.third_cumulant(cells.third_moment, cells.n_effective)
    if "cell_squares" in row:
        variance, degrees, squares, third = [
            np.asarray(row.variables[f"cell_{name}"].values[used])
            for name in ("robust_variance", "degrees", "squares", "robust_third_cumulant")
        ]
    return CurveCells(
        Pieces(cells.edges, cells.mean, none, cells.x_mean, cells.x_variance, share),
        cells.bin,
        variance,
        cells.n_effective,
        degrees,
        cells.x_covariance,
        np.zeros((used.stop, len(LINE_MOMENTS))),
        accumulate.known_stretch(share),
        shared=True,
        squares=squares,
        third=third,
        sign=_sign_of(row),
    )


def _sign_of(row: xr.Dataset) -> float | None:
    return float(row.variables["skewness_sign"].values) if "skewness_sign" in row else None


def _third_of(row: xr.Dataset, residuals: ResidualMoments) -> FloatArray | None:
    """Third cumulants of the bins of one feature; None where they are not known."""
    if "squares" in row:
        name = "robust_third_cumulant"
        return np.asarray(row.variables[name].values) if name in row else None
    if MOMENTS not in row:
        return None
    return skewness.third_cumulant(residuals.third_moment, row["n_effective"].values)


class SpreadPieces(NamedTuple):
    """The spread about the effect of one feature, between the edges of both.

    ``effect`` is (piece, end), at the left and the right end.
    """

    edges: FloatArray
    effect: FloatArray
    spread: FloatArray


def spread_pieces(row: xr.Dataset) -> SpreadPieces | None:
    """The spread about the effect; None where the result has no spread in bins of its own."""
    if not row.sizes.get("spread_bin", 0) or not row.sizes["bin"]:
        return None
    edges = row.variables["edge_value"].values
    spread_edges = row.variables["spread_edge_value"].values
    both = np.union1d(edges, spread_edges)
    middle = (both[:-1] + both[1:]) / 2
    k, j = bin_index(edges, middle), bin_index(spread_edges, middle)
    effect = np.column_stack([effect_at(row, end, k) for end in (both[:-1], both[1:])])
    return SpreadPieces(both, effect, row.variables["spread"].values[j])


def accumulated_spread(row: xr.Dataset, z: FloatArray) -> FloatArray:
    """math [9]: the comonotone spread of the curve of one feature, from the spread's own bins."""
    edges = row.variables["edge_value"].values
    has_curve = np.isfinite(row.variables["curve"].values)
    if not row.sizes.get("spread_bin", 0) or not has_curve.any():
        return np.asarray(np.interp(z, edges, row.variables["curve_std_sum"].values))
    spread_edges = row.variables["spread_edge_value"].values
    areas = row.variables["spread"].values * np.diff(spread_edges)
    total = np.append(0.0, np.cumsum(areas))
    low, high = edges[has_curve][[0, -1]]
    out = np.interp(z, spread_edges, total) - np.interp(low, spread_edges, total)
    return np.where((z >= low) & (z <= high), out, np.nan)


class FeatureCurve(NamedTuple):
    """The curve of one feature where it is known: its values at edges, bent between by slopes."""

    edges: FloatArray
    values: FloatArray
    slope: FloatArray

    def evaluate(self, z: FloatArray) -> FloatArray:
        """The curve at ``z``; NaN outside."""
        if not len(self.edges):
            return np.full(np.shape(z), np.nan)
        return accumulate.curve_at(self.edges, self.values, self.slope, z)


def curve_of(row: xr.Dataset) -> FeatureCurve:
    """The curve of one feature, from its cells where it has them."""
    if not has_cells(row):
        return FeatureCurve(
            row.variables["edge_value"].values, row.variables["curve"].values, slopes(row)
        )
    edges = cell_edges(row)
    values = row.variables["cell_curve"].values[: len(edges)]
    has_curve = np.isfinite(values)
    return FeatureCurve(
        edges[has_curve], values[has_curve], np.zeros(max(int(has_curve.sum()) - 1, 0))
    )
