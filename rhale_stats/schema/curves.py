"""What the curve of one feature is accumulated from: its fine cells, or its bins."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rhale_stats.arrays import accumulate, categories, influence
from rhale_stats.arrays import cells as kernel
from rhale_stats.arrays.accumulate import Noise, Pieces
from rhale_stats.arrays.intervals import Sources
from rhale_stats.arrays.moments import OF_LINES, FloatArray, IntArray
from rhale_stats.arrays.pooled_variance import VarianceSources
from rhale_stats.arrays.skewness import Skewness

# Averages of an effect's bins: along the axis (math [12]), or over the rows (math [5]).
WEIGHTINGS = ("axis", "rows")


@dataclass(frozen=True, eq=False)
class CurveCells:
    """Cells of a feature, or (feature, cell) of all; ``bin`` says which of ``n_bins`` each is in.

    ``variance`` is that of local effects (or of residuals from a line), ``n_effective`` the rows,
    ``degrees`` the degrees of freedom of the variance, which neighbours have partly in common
    where they are ``shared``, ``has_curve`` the run of cells without gaps that has a curve.
    """

    pieces: Pieces
    bin: IntArray
    n_bins: int
    variance: FloatArray
    n_effective: FloatArray
    degrees: FloatArray
    x_covariance: FloatArray
    line: FloatArray
    has_curve: NDArray[np.bool_]
    shared: bool
    # By squared precision weights; ``variance`` and ``third`` are then of these.
    squares: FloatArray | None = None
    # Third cumulants; None where they are not known.
    third: FloatArray | None = None
    # Sign of the skewness under weights; None where the cells decide whether it is clear.
    sign: FloatArray | None = None

    def of_feature(self, feature: int, n_cells: int, bins: slice) -> CurveCells:
        """The first cells of one feature, whose ``bins`` are so of all."""
        place = feature, slice(n_cells)
        edges, mean, slope, x_mean, x_variance, share = self.pieces
        return CurveCells(
            Pieces(
                *(edges[feature, : n_cells + 1], mean[place], slope[place]),
                *(x_mean[place], x_variance[place], share[place]),
            ),
            self.bin[place] - bins.start,
            bins.stop - bins.start,
            self.variance[place],
            self.n_effective[place],
            self.degrees[place],
            self.x_covariance[place],
            self.line[place],
            self.has_curve[place],
            self.shared,
            None if self.squares is None else self.squares[place],
            None if self.third is None else self.third[place],
            None if self.sign is None else self.sign[feature],
        )

    @cached_property
    def stretch(self) -> slice:
        """The cells of one feature that have a curve."""
        places = np.flatnonzero(self.has_curve)
        return slice(int(places[0]), int(places[-1]) + 1)

    @property
    def edge_stretch(self) -> slice:
        """Edges of the cells that have a curve."""
        return slice(self.stretch.start, self.stretch.stop + 1)

    def at_edges(self, values: FloatArray) -> FloatArray:
        """Values at the edges that have a curve, (edge, ...), at all edges; NaN elsewhere."""
        return accumulate.at_edges(values, self.stretch, len(self.bin))

    @cached_property
    def noise(self) -> Noise:
        """Variances of the cells' means and slopes."""
        pieces = self.pieces
        return accumulate.line_noise(
            self.variance, pieces.slope, pieces.x_variance, self.noise_line, self.n_effective
        )

    @property
    def noise_line(self) -> FloatArray:
        """Products of places and residuals that standard errors need."""
        return self.line if self.squares is None else self.squares[..., OF_LINES]

    @cached_property
    def loading(self) -> tuple[FloatArray, FloatArray]:
        """Weight of every cell's mean, and of its slope, in the effect of its bin."""
        width, share = np.diff(self.pieces.edges, axis=-1), self.pieces.share
        level = kernel.along_axis(width.ravel(), share.ravel(), self.bin.ravel())
        level = level.reshape(share.shape)
        return level, level * np.nan_to_num(self.pieces.away())

    @cached_property
    def effect_parts(self) -> FloatArray:
        """Parts of the variance of every bin's effect, by cell."""
        parts = self.noise.variance_along(*self.loading)
        return np.where(self.pieces.share > 0, parts, 0.0)

    def skewness(self) -> Skewness | None:
        """Skewness of the errors of the cells' means; None if it is not clear anywhere."""
        if self.third is None:
            return None
        sign = None if self.sign is None else self.sign[..., None]
        variance = np.nan_to_num(self.variance)
        return Skewness.from_cumulants(self.third, variance, self.n_effective, sign)

    def in_bins(self, values: NDArray[Any]) -> FloatArray:
        """Sums over the cells of every bin, (bin,)."""
        total = np.bincount(self.bin.ravel(), values.ravel(), self.n_bins)
        return np.asarray(total[: self.n_bins], dtype=np.float64)

    def effect_variance(self) -> FloatArray:
        """Variances of the effects of the bins; NaN where a bin has one row, or none."""
        return np.where(self._has_rows(), self.in_bins(self.effect_parts), np.nan)

    def _has_rows(self) -> NDArray[np.bool_]:
        """Which bins have two rows or more: a variance that is borrowed whole is none of theirs."""
        return np.asarray(self.in_bins(self.n_effective) > 1 + 1e-12)

    @property
    def _have_own_variances(self) -> bool:
        """Whether the variance of no cell counts as estimated together with its neighbours."""
        return not self.shared or self.squares is not None

    def sources(self, parts: FloatArray) -> Sources:
        """What variances are estimated from, given their parts by cell, (point, cell)."""
        if self._have_own_variances:
            return Sources(parts, self.degrees)
        entries = self.variance_sources
        return Sources(parts @ entries.matrix(), entries.degrees)

    @cached_property
    def variance_sources(self) -> VarianceSources:
        """What variances of cells are estimated from."""
        if self._have_own_variances:
            return VarianceSources.of_cells(np.atleast_2d(self.degrees))
        return VarianceSources.of_neighbours(np.atleast_2d(self.n_effective))

    def effect_degrees(self) -> FloatArray:
        """Satterthwaite's degrees of freedom of these; those of a bin that is one cell."""
        if not (self.shared and self.n_bins):
            return self.in_bins(self.degrees)
        occupied = self.pieces.share > 0
        largest = np.zeros(self.n_bins)
        np.maximum.at(largest, self.bin.ravel(), np.where(occupied, self.degrees, 0.0).ravel())
        pooled = self.variance_sources.degrees_in_bins(self.effect_parts, self.bin, self.n_bins)
        # Without any spread all rows tell of it.
        pooled = np.where(np.isfinite(pooled), pooled, self.in_bins(self.degrees))
        pooled = np.where(self.in_bins(occupied) <= 1, largest, pooled)
        return np.asarray(np.where(self._has_rows(), pooled, 0.0))


class SpreadPieces(NamedTuple):
    """The spread about the effect of one feature, between the edges of both.

    ``effect`` is (piece, end), at the left and the right end.
    """

    edges: FloatArray
    effect: FloatArray
    spread: FloatArray


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


class CurveErrors(NamedTuple):
    """Inputs of standard errors for one feature: the cells with a curve, and their noise.

    ``cells`` are all cells, ``pieces`` those on the stretch with a curve, which is ``curve`` there.
    """

    cells: CurveCells
    pieces: Pieces
    noise: Noise
    places: influence.OwnPlaces | None
    curve: FloatArray
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
        loadings = self.loadings(z)
        return influence.variance(loadings, influence.parts(loadings, self.noise), self.places)

    def covariance(self, z: FloatArray) -> FloatArray:
        """Covariance of the curve between points within the stretch."""
        if self.of_levels is not None:
            weight = interpolation(self.pieces.edges, z)
            return np.asarray(weight @ self.of_levels @ weight.T)
        return influence.covariance(self.loadings(z), self.noise, self.places)

    def sources(self, z: FloatArray) -> Sources:
        """Sources from which the variances of the curve at points are estimated."""
        return self.cells.sources(self.parts(self.loadings(z)))

    def degrees_by_cell(self, z: FloatArray) -> FloatArray:
        """Degrees of freedom of a variance whose only source are the rows of each cell.

        What the places of the rows add to the variance does not count: two curves of the same rows
        have it in common.
        """
        parts = self.parts(self.loadings(z))
        by_cells = Sources(parts, np.maximum(self.cells.n_effective - 1, 0.0))
        return by_cells.satterthwaite(parts.sum(axis=1))

    def parts(self, loadings: influence.Loadings) -> FloatArray:
        """What every cell adds to the variance of a curve with these loadings, (point, cell)."""
        stretch, n_cells = self.cells.stretch, len(self.cells.bin)
        on_stretch = influence.parts(loadings, self.noise)
        return np.pad(on_stretch, ((0, 0), (stretch.start, n_cells - stretch.stop)))

    def curve_degrees(self, z: FloatArray) -> FloatArray:
        """Satterthwaite's degrees of freedom of the variance of the curve."""
        if self.of_levels is not None:
            return self.sources(z).satterthwaite(self.variance(z))
        loadings = self.loadings(z)
        parts = self.parts(loadings)
        variance = influence.variance(loadings, parts, self.places)
        return self.cells.sources(parts).satterthwaite(variance)


def interpolation(edges: FloatArray, z: FloatArray) -> FloatArray:
    """Weights of the values at edges in the straight lines between them, (point, edge)."""
    return np.array([np.interp(z, edges, unit) for unit in np.eye(len(edges))]).T
