"""What effects hold of one feature, and what follows from it."""

from __future__ import annotations

from collections.abc import Hashable
from functools import cached_property
from itertools import filterfalse, repeat
from typing import Any, TypeAlias

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rhale_stats.arrays import accumulate
from rhale_stats.arrays import cells as cell_kernel
from rhale_stats.arrays import moments as sums
from rhale_stats.arrays import spread as spread_kernel
from rhale_stats.arrays.accumulate import Noise, Pieces
from rhale_stats.arrays.binning import bin_index
from rhale_stats.arrays.cell_moments import CellMoments, Line
from rhale_stats.arrays.influence import OwnPlaces
from rhale_stats.arrays.moments import FloatArray, IntArray, Moments, ResidualMoments
from rhale_stats.schema.all_features import AllFeatures
from rhale_stats.schema.curves import CurveCells, CurveErrors, FeatureCurve, SpreadPieces
from rhale_stats.schema.features import OWN_FACTS, feature_position, stores_errors
from rhale_stats.schema.layout import METHOD, MOMENTS, OF_UNEQUAL_WEIGHTS, rows_kept
from rhale_stats.schema.levels import CATEGORICAL
from rhale_stats.schema.variables import selected

# What is left of a difference of covariances is rounding below this share of them.
ROUNDING = 32 * np.finfo(np.float64).eps

# Where all features together are among those that were asked for.
ALL = -1
# A result, or what it holds of one feature: both are read by name.
Result: TypeAlias = "xr.Dataset | FeatureResult"


def one_feature(dataset: xr.Dataset, feature: str | int) -> FeatureResult:
    """One feature of an effects Dataset, without the padding of its bins and edges."""
    return _unpacked(dataset, feature_position(dataset, feature))


def each_feature(dataset: xr.Dataset) -> list[FeatureResult]:
    """All features of an effects Dataset, each as `one_feature` gives it."""
    return [_unpacked(dataset, position) for position in range(dataset.sizes["feature"])]


def all_features(dataset: xr.Dataset) -> AllFeatures:
    """What follows from the moments of all features of an effects Dataset."""
    rows = rows_kept(dataset)
    if ALL not in rows:
        rows[ALL] = AllFeatures(dataset)
    together: AllFeatures = rows[ALL]
    return together


def keep_features(dataset: xr.Dataset, before: xr.Dataset) -> None:
    """Keep what was computed of an effect for the same one with errors, of the same moments."""
    rows_kept(dataset)[ALL] = all_features(before).of_source(dataset)


def _unpacked(dataset: xr.Dataset, position: int) -> FeatureResult:
    rows = rows_kept(dataset)
    if position not in rows:
        rows[position] = FeatureResult(dataset, position, all_features(dataset))
    row: FeatureResult = rows[position]
    return row


class FeatureResult(dict[str, xr.Variable]):
    """What effects hold of one feature, without the padding of its bins and edges.

    Variables are read as from a Dataset, ``row["effect"].values``, and cut when they are read: a
    selection of all of them would take longer than most calculations. What follows from them is a
    property, and is computed once.
    """

    def __init__(
        self, source: xr.Dataset, position: int, together: AllFeatures | None = None
    ) -> None:
        super().__init__()
        self.source, self.position = source, position
        self.together = AllFeatures(source) if together is None else together
        self._place: dict[Hashable, int | slice] = {"feature": position}
        self._bins = self.together.bins_of(position)
        n_bins = self._bins.stop - self._bins.start
        n_edges = int(self.together.n_edges[position]) if n_bins else 0
        self.edges = self.together.edges[position, :n_edges]
        self.n_cells = max(n_edges - 1, 0)
        first = self.together.cells_of(position).start
        self._cells = slice(first, first + self.n_cells)
        sizes = {"bin": n_bins, "edge": len(self.edges)}
        sizes |= {f"{dim}_other": size for dim, size in sizes.items()}
        self.sizes: dict[Hashable, int] = {
            dim: min(size, sizes.get(str(dim), size))
            for dim, size in source.sizes.items()
            if dim != "feature"
        }
        self._place |= {
            dim: slice(0, size) for dim, size in self.sizes.items() if source.sizes[dim] > size
        }

    def __missing__(self, name: str) -> xr.Variable:
        variable, place = self.source.variables[name], self._place
        dims = variable.dims
        if not place.keys().isdisjoint(dims):
            if isinstance(variable._data, np.ndarray):
                # A single number is selected as an array, which keeps its type.
                values = variable._data[(*map(place.get, dims, repeat(slice(None))), ...)]
                left = tuple(filterfalse("feature".__eq__, dims))
                variable = xr.Variable(left, values, variable.attrs, fastpath=True)
            else:
                variable = variable.isel({dim: place[dim] for dim in dims if dim in place})
        self[name] = variable
        return variable

    def __contains__(self, name: object) -> bool:
        if name in OF_UNEQUAL_WEIGHTS and self.is_categorical:
            return False  # other features of the result have it
        return name in self.source.variables

    @property
    def variables(self) -> FeatureResult:
        """What is read by name, as of a Dataset."""
        return self

    @property
    def coords(self) -> Any:
        """Coordinates of the result."""
        return self.source.coords

    @property
    def dims(self) -> Any:
        """Dimensions."""
        return self.sizes.keys()

    @property
    def name(self) -> str:
        """Name of the feature."""
        return str(self["feature"].values)

    @property
    def attrs(self) -> dict[Any, Any]:
        """Attributes of the result, with those of this feature where features have own rows."""
        return self.source.attrs | self._own_facts if self._own_facts else self.source.attrs

    @cached_property
    def _own_facts(self) -> dict[str, Any]:
        present = [key for key in OWN_FACTS if f"feature_{key}" in self.source.variables]
        return {key: self[f"feature_{key}"].values.item() for key in present}

    def without(self, *names: str) -> FeatureResult:
        """The same without these variables and attributes."""
        source = self.source.drop_vars(names, errors="ignore")
        source.attrs = {key: value for key, value in source.attrs.items() if key not in names}
        return FeatureResult(source, self.position)

    @cached_property
    def dataset(self) -> xr.Dataset:
        """The same as a Dataset."""
        return selected(self.source, self._place).assign_attrs(self.attrs)

    @cached_property
    def is_categorical(self) -> bool:
        """Whether the feature has levels in place of an axis."""
        return "feature_kind" in self and str(self["feature_kind"].values) in CATEGORICAL

    @cached_property
    def stores_errors(self) -> bool:
        """Whether covariances and degrees of freedom are stored, by groups or parameters."""
        return stores_errors(self.source)

    @property
    def has_covariance(self) -> bool:
        """Whether covariances are stored, and do not follow from the bins."""
        return self.stores_errors or self.is_categorical

    # --- bins ---

    @cached_property
    def bin_edges(self) -> FloatArray:
        """Edges of the bins, which are among those of the cells."""
        return np.append(self["bin_left"].values, self["bin_right"].values[-1:])

    @cached_property
    def bin_edge_numbers(self) -> IntArray:
        """Numbers of the edges of the bins among those of the cells."""
        return np.searchsorted(self.edges, self.bin_edges)

    @property
    def bin_starts(self) -> IntArray:
        """First cell of every bin."""
        return self.bin_edge_numbers[:-1]

    def at_bins(self, name: str) -> FloatArray:
        """A variable along the edges of the cells, at those of the bins: (edge of a bin, ...)."""
        return np.asarray(self[name].values[self.bin_edge_numbers])

    def along_edges(self, at_bins: FloatArray) -> FloatArray:
        """Values at the edges of the bins, (edge of a bin, ...), along those of the cells."""
        out = np.full((len(self.edges), *at_bins.shape[1:]), np.nan)
        out[self.bin_edge_numbers] = at_bins
        return out

    @cached_property
    def slopes(self) -> FloatArray:
        """Slope of the effect in every bin; 0 where it is constant in the bin."""
        if "slope" not in self:
            return np.zeros(self.sizes["bin"])
        return self.together.slopes[self._bins]

    def of_bins(self, values: FloatArray) -> FloatArray:
        """Of values in the bins of all features those of this one."""
        return values[self._bins]

    @property
    def middle(self) -> FloatArray:
        """Middle of every bin."""
        return np.asarray((self["bin_left"].values + self["bin_right"].values) / 2)

    def effect_at(self, x: FloatArray, k: IntArray) -> FloatArray:
        """Effect at values that lie in the bins ``k``."""
        away = x - self.middle[k]
        return np.asarray(self["effect"].values[k] + self.slopes[k] * away)

    @cached_property
    def means(self) -> Moments:
        """Weights and means of the bins by their rows."""
        return sums.selected(self.together.means, self._bins)

    @property
    def n_effective(self) -> FloatArray:
        """Effective number of rows in every bin; of a result without moments, all its rows."""
        return self.together.n_effective[self._bins]

    @property
    def weight_share(self) -> FloatArray:
        """Share of the total weight in every bin; of levels, at both ends of every step."""
        return self.together.weight_share[self.position, : self.sizes["bin"]]

    @property
    def x_mean(self) -> FloatArray:
        """Mean of the feature in every bin."""
        return self.means.x_mean

    @cached_property
    def residuals(self) -> ResidualMoments:
        """Moments of the local effects about the means, or lines, of the bins.

        0 where the result, such as a true effect, does not hold them.
        """
        return sums.selected(self.together.residuals, self._bins)

    @cached_property
    def bin_means(self) -> FloatArray:
        """Mean of the local effects of the rows in every bin: a line's at ``x_mean``."""
        if self.has_cells:
            return self.means.mean
        away = np.where(self.slopes == 0, 0.0, self.x_mean - self.middle)
        return np.asarray(self["effect"].values + self.slopes * away)

    @cached_property
    def pieces(self) -> Pieces:
        """Bins by their rows, with their lines."""
        residuals = self.residuals
        return Pieces(
            self.bin_edges,
            residuals.mean,
            self.slopes,
            self.x_mean,
            residuals.x_variance,
            self.weight_share,
        )

    @property
    def squares(self) -> FloatArray | None:
        """Moments of the bins by squared precision weights, if the effect has them."""
        if "squares" not in self:
            return None
        squares = self.together.squares
        return None if squares is None else squares[self._bins]

    @cached_property
    def bin_noise(self) -> Noise:
        """Noise of the means and slopes of the bins by their rows."""
        return sums.selected(self.together.bin_noise, self._bins)

    @cached_property
    def effect_cov(self) -> FloatArray:
        """Covariance of the effects, which groups, parameters or levels have.

        Steps between levels are differences of the curve.
        """
        if not self.is_categorical or self.stores_errors:
            return np.asarray(self["effect_cov"].values)
        covariance = self["curve_cov"].values
        steps = np.diff(np.diff(covariance, axis=0), axis=1)
        largest = np.nanmax(np.abs(covariance), initial=0.0)
        return np.where(np.abs(steps) <= ROUNDING * largest, 0.0, steps)

    @cached_property
    def effect_slope_correlation(self) -> FloatArray | None:
        """Correlation of the effect in the middle of every bin with its slope.

        None without lines, and of means over the rows.
        """
        if "effect_slope_correlation" in self:
            return np.asarray(self["effect_slope_correlation"].values)
        if "slope" not in self or not self.has_cells or MOMENTS not in self:
            return None
        cells, bin_of = self.moments, self.bin_of_cells
        lines = sums.selected(Line.through(self.means, self.slopes), bin_of)
        products = lines.sums(cells, sums.LEVEL_POWERS)
        width = np.diff(self.edges)
        return cell_kernel.slope_correlation(products, width, cells.weight, bin_of, self.slopes)

    @property
    def heterogeneity_index(self) -> float:
        """The heterogeneity index, math [10]."""
        return float(self.together.heterogeneity_index[self.position])

    @property
    def least_effect(self) -> float:
        """Numerical limit: smaller effects are 0, smaller differences are none."""
        return float(self.together.least_effects[self.position])

    @property
    def is_alike(self) -> NDArray[np.bool_]:
        """Bins in which local effects differ by numerical error only."""
        return np.asarray(self.together.is_alike[self.position, : self.sizes["bin"]])

    @property
    def curve_offset(self) -> float:
        """What was subtracted from the curve that begins at 0."""
        values = self["curve"].values
        with_curve = values[np.isfinite(values)]
        return 0.0 - float(with_curve[0]) if len(with_curve) else float("nan")

    @cached_property
    def curve_spreads(self) -> tuple[FloatArray, FloatArray]:
        """``curve_std`` and ``curve_std_sum`` at the edges of the bins, math [9]."""
        if "curve_std" in self:
            return self.at_bins("curve_std"), self.at_bins("curve_std_sum")
        curve, heterogeneity = self.at_bins("curve"), self["heterogeneity"].values
        return accumulate.spread_along(curve, heterogeneity, np.diff(self.bin_edges))

    # --- cells ---

    @cached_property
    def has_cells(self) -> bool:
        """Whether the curve is accumulated from means of cells, and not from lines of bins.

        The effects of bins are then averages along the axis.
        """
        along_axis = str(self.attrs.get("weighting")) == "axis" and MOMENTS in self
        return along_axis and not self.is_categorical and bool(self.sizes["bin"])

    @cached_property
    def moments(self) -> CellMoments:
        """Moments in the cells."""
        return self.together.moments.part(self._cells)

    @cached_property
    def bin_of_cells(self) -> IntArray:
        """The bin of every cell."""
        return np.repeat(np.arange(self.sizes["bin"]), np.diff(self.bin_edge_numbers))

    @property
    def cell_share(self) -> FloatArray:
        """Share of the total weight in every cell; 0 where a cell is left out."""
        return self.together.cell_share[self.position, : self.n_cells]

    @cached_property
    def curve_cells(self) -> CurveCells:
        """The cells that the curve is accumulated from, or the bins with their lines."""
        cells = self.together.cells if self.has_cells else self.together.bins_as_cells
        return cells.of_feature(self.position, self.n_cells, self._bins)

    # --- the curve and the spread ---

    @cached_property
    def curve(self) -> FeatureCurve:
        """The curve where it is known: straight in cells, bent where bins have lines."""
        values = self["curve"].values
        if not self.has_cells:
            return FeatureCurve(self.edges, values, self.slopes)
        has_curve = np.isfinite(values)
        flat = np.zeros(max(int(has_curve.sum()) - 1, 0))
        return FeatureCurve(self.edges[has_curve], values[has_curve], flat)

    @cached_property
    def fit(self) -> CurveErrors:
        """The inputs of standard errors of the curve, of a feature that has bins."""
        centering, levels = str(self.attrs["centering"]), self.is_categorical
        cells = self.curve_cells
        stretch, noise = cells.stretch, cells.noise
        pieces = cells.pieces.stretch(stretch)
        curve = self["curve"].values if levels else self["curve"].values[cells.edge_stretch]
        places = None
        if centering == "mean" and not levels:
            assert self.together.places is not None, "the curve is centred at its mean"
            alone, with_mean, with_slope = self.together.places
            of_feature = self.position, stretch
            places = OwnPlaces(alone[self.position], with_mean[of_feature], with_slope[of_feature])
        return CurveErrors(
            cells,
            pieces,
            Noise(*[part[stretch] for part in noise]),
            places,
            curve,
            centering,
            self["level_share"].values if levels else None,
            self["curve_cov"].values if levels else None,
        )

    @property
    def has_spread(self) -> bool:
        """Whether the spread is known beside the heterogeneity of the bins."""
        return "spread" in self and self.has_cells

    @cached_property
    def spread_starts(self) -> IntArray:
        """First cell of every stretch of the axis that has one spread; none without a spread."""
        if not self.has_spread:
            return np.zeros(0, dtype=np.int64)
        return np.asarray(self.together.spread_starts[self._stretches] - self._cells.start)

    @property
    def _stretches(self) -> slice:
        """Which stretches of all features are those of this one."""
        ends = np.searchsorted(self.together.spread_starts, [self._cells.start, self._cells.stop])
        return slice(*ends.tolist())

    @property
    def spread_edges(self) -> FloatArray:
        """Edges of the stretches that have one spread each."""
        ends = [self.n_cells] if self.has_spread else []
        return self.edges[np.append(self.spread_starts, ends).astype(np.int64)]

    @property
    def spread(self) -> FloatArray:
        """The spread of every stretch."""
        return np.asarray(self["spread"].values[self.spread_starts])

    def in_cells(self, of_stretches: FloatArray) -> FloatArray:
        """Values of the stretches of the spread, (stretch, ...), in all their cells."""
        length = np.diff(self.spread_starts, append=self.n_cells)
        return np.repeat(of_stretches, length, axis=0)

    @cached_property
    def effect_in_cells(self) -> tuple[Line, FloatArray]:
        """The effect in the cells, about which the spread is, and what it leaves (math [66])."""
        line, left = self.together.effect_in_cells
        return sums.selected(line, self._cells), left[self._cells]

    @cached_property
    def spread_sums(self) -> spread_kernel.Residuals:
        """Numbers, degrees of freedom and moments of the residuals in the stretches."""
        return sums.selected(self.together.spread_sums, self._stretches)

    @property
    def method(self) -> str:
        """How the local effects were taken."""
        # Not by `methods_of`, which asks xarray for coordinates: many times as slow.
        of_all = self.attrs.get(METHOD, "unknown")
        return str(self[METHOD].values if METHOD in self else of_all)

    def spread_pieces(self) -> SpreadPieces | None:
        """The spread about the effect; None where it has no bins of its own."""
        if not self.has_spread:
            return None
        edges, spread_edges = self.bin_edges, self.spread_edges
        both = np.union1d(edges, spread_edges)
        middle = (both[:-1] + both[1:]) / 2
        k, j = bin_index(edges, middle), bin_index(spread_edges, middle)
        effect = np.column_stack([self.effect_at(end, k) for end in (both[:-1], both[1:])])
        return SpreadPieces(both, effect, self.spread[j])

    def accumulated_spread(self, z: FloatArray) -> FloatArray:
        """math [9]: the comonotone spread of the curve, from the spread's own bins."""
        edges = self.bin_edges
        has_curve = np.isfinite(self.at_bins("curve"))
        if not self.has_spread or not has_curve.any():
            return np.asarray(np.interp(z, edges, self.curve_spreads[1]))
        total = np.append(0.0, np.cumsum(self.spread * np.diff(self.spread_edges)))
        low, high = edges[has_curve][[0, -1]]
        out = np.interp(z, self.spread_edges, total) - np.interp(low, self.spread_edges, total)
        return np.where((z >= low) & (z <= high), out, np.nan)


def has_moments(effect: xr.Dataset | FeatureResult) -> bool:
    """Whether standard errors follow from the moments of the rows, which the result holds."""
    return MOMENTS in effect and "debiased" not in effect.attrs
