"""What the curve of one feature is accumulated from: its fine cells, or its bins."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rhale_stats.arrays import accumulate, categories, influence
from rhale_stats.arrays import cells as kernel
from rhale_stats.arrays.accumulate import Noise, Pieces
from rhale_stats.arrays.intervals import Sources
from rhale_stats.arrays.moments import OF_LINES, FloatArray, IntArray
from rhale_stats.arrays.skewness import Skewness

# Averages of an effect's bins: along the axis (math [12]), or over the rows (math [5]).
WEIGHTINGS = ("axis", "rows")


@dataclass(frozen=True, eq=False)
class CurveCells:
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

    def at_edges(self, values: FloatArray) -> FloatArray:
        """Values at the edges that have a curve, (edge, ...), at all edges; NaN elsewhere."""
        return accumulate.at_edges(values, self.stretch, len(self.bin))

    @cached_property
    def noise(self) -> Noise:
        """Variances of the cells' means and slopes."""
        return accumulate.line_noise(self.variance, self.pieces, self.noise_line, self.n_effective)

    @property
    def noise_line(self) -> FloatArray:
        """Products of places and residuals that standard errors need."""
        return self.line if self.squares is None else self.squares[:, OF_LINES]

    @cached_property
    def loading(self) -> tuple[FloatArray, FloatArray]:
        """Weight of every cell's mean, and of its slope, in the effect of its bin."""
        width = np.diff(self.pieces.edges)
        level = kernel.along_axis(width, self.pieces.share, self.bin)
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
        weights, degrees = self._sources_of_cells
        return Sources(parts @ weights, degrees)

    @cached_property
    def _sources_of_cells(self) -> tuple[sparse.csr_array, FloatArray]:
        """What variances of cells are estimated from, and the degrees of freedom of each."""
        return kernel.variance_sources(self.n_effective)

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
        return self.variances(self.loadings(z))[0]

    def variances(self, loadings: influence.Loadings) -> tuple[FloatArray, FloatArray]:
        """Variance of a curve with these loadings, and without what the places of the rows add."""
        parts = influence.parts(loadings, self.noise)
        return (
            influence.variance(loadings, parts, self.places),
            influence.variance(loadings, parts),
        )

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
