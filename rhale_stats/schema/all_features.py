"""What follows from the moments of all features of an effect at once.

Bins of all features stand in one row, one feature behind the other: arrays (bin,). Cells are
(feature, cell) as in the Dataset; behind the last cell of a feature there are no rows.
"""

from __future__ import annotations

from copy import copy
from functools import cached_property
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rhale_stats.arrays import accumulate, influence, skewness
from rhale_stats.arrays import moments as sums
from rhale_stats.arrays import spread as spread_kernel
from rhale_stats.arrays.accumulate import Noise, Pieces
from rhale_stats.arrays.cell_moments import CellMoments, Line, residual_moments
from rhale_stats.arrays.influence import Loadings, OwnPlaces
from rhale_stats.arrays.moments import OF_LINES, FloatArray, IntArray, Moments, ResidualMoments
from rhale_stats.arrays.pooled_variance import with_neighbours
from rhale_stats.schema.curves import CurveCells
from rhale_stats.schema.layout import METHOD, MOMENTS
from rhale_stats.schema.levels import CATEGORICAL
from rhale_stats.schema.variables import LINE_MOMENTS


class AllFeatures:
    """All features of an effect of one output and one region."""

    def __init__(self, source: xr.Dataset) -> None:
        self.source, self.variables = source, source.variables
        counts = self.variables["n_bins"]
        if counts.ndim != 1:
            over = [str(dim) for dim in counts.dims if dim != "feature"]
            raise ValueError(
                f"The effect must be one at a time here; its bins are over {', '.join(over)} as "
                f"well. Select one, as in .isel({over[0]}=0)."
            )
        # Whole numbers, also after xarray has filled others with NaN.
        self.n_bins: IntArray = np.nan_to_num(counts.values).astype(np.int64)
        self.is_bin = np.arange(source.sizes["bin"]) < self.n_bins[:, None]
        self.feature: IntArray = np.nonzero(self.is_bin)[0]
        self.n_features = len(self.n_bins)
        self.edges = self.along("edge_value", "edge")
        self.n_edges = np.isfinite(self.edges).sum(axis=-1)
        self.n_cells = self.edges.shape[1] - 1
        self.is_cell = np.arange(self.n_cells) < self.n_edges[:, None] - 1
        self.along_axis = source.attrs.get("weighting") == "axis" and MOMENTS in self.variables

    def of_source(self, source: xr.Dataset) -> AllFeatures:
        """The same, read from a result with the same moments and more variables."""
        other = copy(self)
        other.source, other.variables = source, source.variables
        return other

    @cached_property
    def has_levels(self) -> NDArray[np.bool_]:
        """Which features have levels in place of an axis."""
        if "feature_kind" not in self.variables:
            return np.zeros(self.n_features, dtype=bool)
        kinds = np.broadcast_to(self.variables["feature_kind"].values, self.n_features)
        return np.isin(kinds, CATEGORICAL)

    def bins_of(self, feature: int) -> slice:
        """Which of all bins are those of a feature."""
        first = int(self.n_bins[:feature].sum())
        return slice(first, first + int(self.n_bins[feature]))

    def cells_of(self, feature: int) -> slice:
        """Which cells are those of a feature, where all stand in one row."""
        return slice(feature * self.n_cells, (feature + 1) * self.n_cells)

    def padded(
        self, in_bins: FloatArray, missing: float = np.nan, length: int | None = None
    ) -> FloatArray:
        """Values of the bins, (bin, ...), as (feature, bin, ...), or so many of each feature."""
        n_features, n_bins = self.is_bin.shape
        out = np.full((n_features, length or n_bins, *in_bins.shape[1:]), missing)
        out[:, :n_bins][self.is_bin] = in_bins
        return out

    def at_bins(self, name: str) -> FloatArray:
        """A variable over (feature, bin, ...) in the bins, (bin, ...)."""
        return np.asarray(self.along(name, "bin")[self.is_bin], dtype=np.float64)

    def along(self, name: str, dim: str) -> NDArray[Any]:
        """A variable of all features, (feature, ``dim``, ...)."""
        variable = self.variables[name]
        if "feature" not in variable.dims:  # of one feature that was selected
            values = variable.transpose(dim, ...).values
            return np.broadcast_to(values, (self.n_features, *values.shape))
        return np.asarray(variable.transpose("feature", dim, ...).values)

    # --- bins ---

    @cached_property
    def starts(self) -> IntArray:
        """First cell of every bin, among the cells of all features in one row."""
        left = self.along("bin_left", "bin")
        numbers = [
            np.searchsorted(edges[:size], at_left[:n])
            for edges, size, at_left, n in zip(
                self.edges, self.n_edges, left, self.n_bins, strict=True
            )
        ]
        starts = np.concatenate(numbers) + self.n_cells * self.feature
        starts[:1] = 0  # cells of constant features before it have no rows
        return np.asarray(starts)

    @cached_property
    def moments(self) -> CellMoments:
        """Moments in the cells of all features in one row."""
        table = np.moveaxis(self.along(MOMENTS, "edge")[:, :-1], -1, 0)
        return CellMoments(np.where(self.is_cell, table, 0.0).reshape(len(table), -1))

    @cached_property
    def bin_edges(self) -> FloatArray:
        """Edges of the bins, (feature, edge of a bin), NaN behind the last one."""
        left, right = self.along("bin_left", "bin"), self.along("bin_right", "bin")
        return np.concatenate([left[:, :1], right], axis=1)

    @cached_property
    def slopes(self) -> FloatArray:
        """Slope of the effect in every bin; 0 where it is constant in the bin."""
        has_slopes = "slope" in self.variables
        return self.at_bins("slope") if has_slopes else np.zeros(len(self.feature))

    @cached_property
    def means(self) -> Moments:
        """Weights and means of the bins by their rows."""
        return self.moments.pooled(self.starts, degree=2).means()

    @cached_property
    def n_effective(self) -> FloatArray:
        """Effective number of rows in every bin; of a result without moments, all its rows."""
        has_moments = MOMENTS in self.variables
        return sums.n_effective(self.means) if has_moments else self.at_bins("n_obs")

    @cached_property
    def residuals(self) -> ResidualMoments:
        """Moments of the local effects about the means, or lines, of the bins.

        0 where the result, such as a true effect, does not hold them.
        """
        if MOMENTS not in self.variables:
            none = np.zeros(len(self.feature))
            return ResidualMoments(none, none, none, none, none, None, self.at_bins("effect"))
        slope = self.slopes if "slope" in self.variables else None
        return residual_moments(self.moments, self.starts, slope)

    @cached_property
    def squares(self) -> FloatArray | None:
        """Moments of the bins by squared precision weights, if the effect has them.

        Those of a feature whose weights are equal are its plain ones.
        """
        if "squares" not in self.variables:
            return None
        rows, none = self.residuals, np.zeros(len(self.feature))
        parts = [none, rows.x_variance, none, rows.x_covariance, *self.line.T]
        plain = np.stack([*parts, rows.second_moment, rows.fourth_moment], axis=-1)
        return np.where(self._has_equal_weights[:, None], plain, self.at_bins("squares"))

    @cached_property
    def _has_equal_weights(self) -> NDArray[np.bool_]:
        """Bins of features without moments by squared weights, where others have them."""
        of_features = np.isnan(self.along("squares", "bin")).all(axis=(-2, -1))
        return np.asarray((of_features | self.has_levels)[self.feature])

    @cached_property
    def heterogeneity(self) -> FloatArray:
        """Heterogeneity in every bin."""
        return self.at_bins("heterogeneity")

    @cached_property
    def variance_of_means(self) -> FloatArray:
        """Variances of the bins as standard errors of means need them."""
        if self.squares is not None:
            return self._of_weights("robust_variance", self.heterogeneity**2)
        return np.asarray(self.heterogeneity**2)

    def _of_weights(self, name: str, otherwise: FloatArray) -> FloatArray:
        """A variable by unequal weights in the bins, of which some features have none."""
        return np.where(self._has_equal_weights, otherwise, self.at_bins(name))

    @cached_property
    def line(self) -> FloatArray:
        """Products of places and residuals in linear bins; 0 from rules without them."""
        line = self.residuals.line
        return np.zeros((len(self.feature), len(LINE_MOMENTS))) if line is None else line

    @cached_property
    def bin_noise(self) -> Noise:
        """Noise of the means and slopes of the bins by their rows."""
        line = self.line if self.squares is None else self.squares[:, OF_LINES]
        residuals = self.residuals
        return accumulate.line_noise(
            self.variance_of_means, self.slopes, residuals.x_variance, line, self.n_effective
        )

    @cached_property
    def cell_share(self) -> FloatArray:
        """Share of the weight of its feature in every cell, (feature, cell)."""
        if "cell_share" in self.variables:
            return np.asarray(np.nan_to_num(self.along("cell_share", "edge")[:, :-1]))
        weight = self.moments.weight.reshape(self.n_features, -1)
        total = weight.sum(axis=-1, keepdims=True)
        return weight / np.where(total > 0, total, 1.0)

    @cached_property
    def pieces(self) -> Pieces:
        """Bins by their rows with their lines, (feature, bin); 0 behind the last one."""
        return self._lines(self.bin_edges, self._bin_share)

    @property
    def _bin_share(self) -> FloatArray:
        if not self.along_axis:
            return self.cell_share[:, : self.is_bin.shape[1]]
        weight = self.padded(self.means.weight, 0.0)
        return weight / np.where(self.is_bin, weight.sum(axis=-1, keepdims=True), 1.0)

    def _lines(self, edges: FloatArray, share: FloatArray) -> Pieces:
        """The lines of the bins, to as many places for each feature as there are shares."""
        residuals = self.residuals
        mean, slope, x_mean, x_variance = [
            self.padded(values, 0.0, share.shape[1])
            for values in (residuals.mean, self.slopes, self.means.x_mean, residuals.x_variance)
        ]
        return Pieces(edges, mean, slope, x_mean, x_variance, share)

    @cached_property
    def weight_share(self) -> FloatArray:
        """Share of the weight in every bin, (feature, bin); of levels, at both ends of a step."""
        share = self._bin_share.copy()
        if self.has_levels.any():
            levels = self.along("level_share", "edge")[self.has_levels]
            steps = np.nan_to_num(levels[:, :-1] + levels[:, 1:])
            share[self.has_levels] = steps[:, : share.shape[1]]
        return share

    @cached_property
    def heterogeneity_index(self) -> FloatArray:
        """The heterogeneity index, math [10], (feature,)."""
        if "heterogeneity_index" in self.variables:
            return np.asarray(self.variables["heterogeneity_index"].values)
        bins = self.means
        with np.errstate(invalid="ignore", divide="ignore"):
            # Of the residuals, as the heterogeneity is (math [6]).
            freedom = bins.weight - (1 + (self.slopes != 0)) * bins.weight_sq / bins.weight
            squares = np.nan_to_num(self.heterogeneity**2 * freedom)
        parts = squares, bins.weight, np.diff(self.bin_edges)[self.is_bin]
        index = accumulate.heterogeneity_index(*[self.padded(part, 0.0) for part in parts])
        is_known = self.is_bin & ~np.isnan(self.along("heterogeneity", "bin"))
        return np.where(is_known.any(axis=-1), index, np.nan)

    @cached_property
    def effect(self) -> FloatArray:
        """Effects of the bins, (feature, bin)."""
        return np.where(self.is_bin, self.along("effect", "bin"), np.nan)

    @cached_property
    def least_effects(self) -> FloatArray:
        """Numerical limits, (feature,): smaller effects are 0, smaller differences are none."""
        largest = np.fmax.reduce(np.abs(self.effect), axis=-1)
        error = np.zeros(self.n_features)
        if "local_effect_error" in self.variables:
            error = np.nan_to_num(self.variables["local_effect_error"].values)
        return np.maximum(error, np.where(np.isnan(largest), 0.0, 16 * np.spacing(largest)))

    @cached_property
    def is_alike(self) -> NDArray[np.bool_]:
        """Bins in which local effects differ by numerical error only, (feature, bin)."""
        return np.asarray(self.padded(self.heterogeneity) <= self.least_effects[:, None])

    # --- cells ---

    @cached_property
    def bin_of_cells(self) -> IntArray:
        """The bin of every cell, (feature, cell)."""
        number = np.searchsorted(self.starts, np.arange(self.edges[:, 1:].size), side="right") - 1
        return np.maximum(number, 0).reshape(self.n_features, -1)

    @cached_property
    def _sign(self) -> FloatArray | None:
        has_sign = "skewness_sign" in self.variables
        return np.asarray(self.variables["skewness_sign"].values) if has_sign else None

    @cached_property
    def bins_as_cells(self) -> CurveCells:
        """The bins with their lines, of which a curve is made that has no cells of its own."""

        def in_cells(in_bins: FloatArray) -> FloatArray:
            return self.padded(in_bins, 0.0, self.n_cells)

        residuals, n_rows, third = self.residuals, self.n_effective, None
        if MOMENTS in self.variables:
            third = skewness.third_cumulant(residuals.third_moment, self.n_effective)
        if self.squares is not None:
            n_rows = self._of_weights("error_rows", self.n_effective)
            if "robust_third_cumulant" in self.variables and third is not None:
                third = self._of_weights("robust_third_cumulant", third)
        return CurveCells(
            self._lines(self.edges, self.cell_share),
            self.bin_of_cells,
            len(self.feature),
            in_cells(self.variance_of_means),
            in_cells(self.n_effective),
            in_cells(np.maximum(n_rows - 1 - (self.slopes != 0), 0.0)),
            in_cells(residuals.x_covariance),
            in_cells(self.line),
            self.has_curve,
            shared=False,
            squares=None if self.squares is None else in_cells(self.squares),
            third=None if third is None else in_cells(third),
            sign=self._sign,
        )

    @cached_property
    def _cell_means(self) -> Moments:
        return self._cell_moments.means()

    @property
    def _cell_moments(self) -> CellMoments:
        return CellMoments(self.moments.table.reshape(-1, self.n_features, self.n_cells))

    @cached_property
    def cell_pieces(self) -> Pieces:
        """The cells that the curves are accumulated from, or the bins with their lines."""
        if not self.along_axis:
            return self._lines(self.edges, self.cell_share)
        means = self._cell_means
        assert means.x_m2 is not None, "moments have squares of x"
        with np.errstate(invalid="ignore", divide="ignore"):
            x_variance = means.x_m2 / means.weight
        none = np.zeros(means.mean.shape)
        return Pieces(self.edges, means.mean, none, means.x_mean, x_variance, self.cell_share)

    @cached_property
    def has_curve(self) -> NDArray[np.bool_]:
        """The run of cells of every feature that has a curve, (feature, cell)."""
        return accumulate.known_cells(self.cell_share)

    @cached_property
    def cells(self) -> CurveCells:
        """The cells of the curves, with what errors are made from."""
        if not self.along_axis:
            return self.bins_as_cells
        means, squares = self._cell_means, None
        n_effective = sums.n_effective(means)
        variance, degrees = with_neighbours(n_effective, means.mean, sums.variance(means, 1))
        with np.errstate(invalid="ignore", divide="ignore"):
            products = self._cell_moments.products(((1, 1), (0, 3))) / means.weight
        x_covariance, third_moment = products
        third = skewness.third_cumulant(third_moment, n_effective)
        if "cell_squares" in self.variables:
            squares = self.along("cell_squares", "edge")[:, :-1].copy()
            plain = np.isnan(squares).all(axis=(1, 2))[:, None]
            every = self._cell_moments.products(((2, 0), (1, 1), (0, 2), (0, 4)))
            with np.errstate(invalid="ignore", divide="ignore"):
                of_equal = np.zeros(squares.shape)
                of_equal[..., [1, 3, 10, 11]] = np.moveaxis(every / means.weight, 0, -1)
            squares = np.where(plain[..., None], of_equal, squares)
            variance, degrees, third = [
                np.where(plain, values, self.along(f"cell_{name}", "edge")[:, :-1])
                for name, values in (
                    *(("robust_variance", variance), ("degrees", degrees)),
                    ("robust_third_cumulant", third),
                )
            ]
            degrees = np.nan_to_num(degrees)
        return CurveCells(
            self.cell_pieces,
            self.bin_of_cells,
            len(self.feature),
            variance,
            n_effective,
            degrees,
            x_covariance,
            np.zeros((*x_covariance.shape, len(LINE_MOMENTS))),
            self.has_curve,
            shared=True,
            squares=squares,
            third=third,
            sign=self._sign,
        )

    # --- the curves ---

    @cached_property
    def pieces_of_curves(self) -> Pieces:
        """The cells that have a curve; others are of no width and without rows."""
        has_curve, pieces = self.has_curve, self.cell_pieces
        first = has_curve.argmax(axis=-1)[:, None]
        last = first + has_curve.sum(axis=-1, keepdims=True)
        number = np.clip(np.arange(self.n_cells + 1), first, last)
        edges = np.nan_to_num(np.take_along_axis(pieces.edges, number, axis=-1))
        mean, slope, x_mean, x_variance, share = [
            np.where(has_curve, values, 0.0) for values in pieces[1:]
        ]
        total = share.sum(axis=-1, keepdims=True)
        return Pieces(
            edges, mean, slope, x_mean, x_variance, share / np.where(total > 0, total, 1.0)
        )

    @cached_property
    def has_curve_at_edges(self) -> NDArray[np.bool_]:
        """Where the curve is known, (feature, edge)."""
        has_curve = self.has_curve
        return np.asarray(np.pad(has_curve, ((0, 0), (0, 1))) | np.pad(has_curve, ((0, 0), (1, 0))))

    @cached_property
    def noise_of_curves(self) -> Noise:
        """Noise of the cells that have a curve, 0 in others."""
        return Noise(*[np.where(self.has_curve, part, 0.0) for part in self.cells.noise])

    @cached_property
    def places(self) -> OwnPlaces | None:
        """What the places of the rows add to curves that are centred at their means."""
        if self.source.attrs["centering"] != "mean":
            return None
        cells, has_curve = self.cells, self.has_curve
        return influence.own_places(
            np.where(self.has_curve_at_edges, self.along("curve", "edge"), 0.0),
            self.pieces_of_curves,
            np.where(has_curve, cells.x_covariance, 0.0),
            np.where(has_curve[..., None], cells.noise_line, 0.0),
            np.where(has_curve, cells.n_effective, 0.0),
            None if cells.squares is None else np.where(has_curve[..., None], cells.squares, 0.0),
            np.where(has_curve, cells.variance, 0.0),
        )

    @cached_property
    def loadings(self) -> tuple[Loadings, Loadings]:
        """Loadings of the curves at their edges: of cells to the left of an edge, and others."""
        return influence.edge_loadings(self.pieces_of_curves, str(self.source.attrs["centering"]))

    @cached_property
    def parts_at_edges(self) -> tuple[FloatArray, FloatArray]:
        """What every cell adds to the variances of its curve on its right, and on its left."""
        left, right = [influence.parts(side, self.noise_of_curves) for side in self.loadings]
        return left, right

    @cached_property
    def variance_at_edges(self) -> FloatArray:
        """Variances of the curves at their edges, (feature, edge)."""
        total = accumulate.sums_at_edges(*self.parts_at_edges)
        if self.places is None:
            return np.maximum(total, 0.0)
        shared = [
            level * self.places.with_mean + tilt * self.places.with_slope
            for level, tilt in self.loadings
        ]
        total = total + self.places.alone[:, None] - 2 * accumulate.sums_at_edges(*shared)
        return np.asarray(np.maximum(total, 0.0))

    def known_at_edges(self, values: FloatArray) -> FloatArray:
        """Values at the edges where there is a curve; NaN elsewhere."""
        return np.where(self.has_curve_at_edges, values, np.nan)

    # --- the spread ---

    @cached_property
    def effect_in_cells(self) -> tuple[Line, FloatArray]:
        """The effect in the cells, about which the spread is, and what it leaves (math [66])."""
        of_all = self.source.attrs.get(METHOD, "unknown")
        methods = self.variables[METHOD].values if METHOD in self.variables else of_all
        is_sloped = np.broadcast_to(np.asarray(methods) != "finite_difference", self.n_features)
        sloped = [self.cells_of(feature) for feature in np.flatnonzero(is_sloped).tolist()]
        return spread_kernel.effect_in_cells(self.moments, sloped)

    @cached_property
    def spread_starts(self) -> IntArray:
        """First cell of every stretch of the axis that has one spread, in one row of all cells."""
        values = self.along("spread", "edge")[:, :-1]
        unknown = np.isnan(values)
        same = (values[:, 1:] == values[:, :-1]) | (unknown[:, 1:] & unknown[:, :-1])
        begins = np.pad(~same, ((0, 0), (1, 0)), constant_values=True)
        return np.flatnonzero(begins & self.is_cell)

    @property
    def n_stretches(self) -> IntArray:
        """Number of stretches of every feature; 0 without a spread of its own."""
        if "spread" not in self.variables or not self.along_axis:
            return np.zeros(self.n_features, dtype=np.int64)
        counts = np.bincount(self.feature_of_stretches, minlength=self.n_features)
        return np.where(self.has_levels, 0, counts)

    @property
    def feature_of_stretches(self) -> IntArray:
        """Which feature every stretch is of."""
        return np.asarray(self.spread_starts // self.n_cells)

    def in_stretches(self, name: str) -> FloatArray:
        """A variable along the edges in the stretches of the spread, (stretch,)."""
        return np.asarray(self.along(name, "edge")[:, :-1].reshape(-1)[self.spread_starts])

    def by_feature(self, of_stretches: FloatArray) -> FloatArray:
        """Values of the stretches, (stretch,), as (feature, stretch); NaN behind the last one."""
        feature = self.feature_of_stretches
        number = np.arange(len(feature)) - np.searchsorted(feature, feature)
        out = np.full((self.n_features, int(number.max(initial=0)) + 1), np.nan)
        out[feature, number] = of_stretches
        return out

    def in_cells(self, of_stretches: FloatArray) -> FloatArray:
        """Values of the stretches, (stretch, ...), in all their cells: (feature, edge, ...)."""
        length = np.diff(self.spread_starts, append=self.is_cell.size)
        # Without stretches there is no cell, either.
        number = np.zeros(self.is_cell.size, dtype=np.int64)
        number[self.is_cell.size - length.sum() :] = np.repeat(np.arange(len(length)), length)
        has_spread = self.is_cell & ~self.has_levels[:, None]
        out = np.full((*self.edges.shape, *of_stretches.shape[1:]), np.nan)
        out[:, :-1][has_spread] = of_stretches[number.reshape(has_spread.shape)[has_spread]]
        return out

    @property
    def spread(self) -> FloatArray:
        """The spread of every stretch."""
        return self.in_stretches("spread")

    @cached_property
    def spread_sums(self) -> spread_kernel.Residuals:
        """Numbers, degrees of freedom and moments of the residuals in the stretches."""
        residuals = spread_kernel.residuals(self.moments, *self.effect_in_cells)
        return residuals.merged(self.spread_starts)
