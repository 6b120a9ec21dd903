"""What effects hold of one feature, and what follows from it."""

from __future__ import annotations

from collections.abc import Hashable
from functools import cached_property
from itertools import filterfalse, repeat
from typing import Any, TypeAlias

import numpy as np
import xarray as xr

from rhale_stats.arrays import accumulate, influence, skewness
from rhale_stats.arrays import cells as cell_kernel
from rhale_stats.arrays.accumulate import Noise, Pieces
from rhale_stats.arrays.binning import bin_index
from rhale_stats.arrays.cell_moments import CellMoments, residual_moments
from rhale_stats.arrays.moments import OF_LINES, FloatArray, IntArray, ResidualMoments
from rhale_stats.schema.curves import CurveCells, CurveErrors, FeatureCurve, SpreadPieces
from rhale_stats.schema.features import OWN_FACTS, feature_position, stores_errors
from rhale_stats.schema.layout import MOMENTS
from rhale_stats.schema.levels import CATEGORICAL
from rhale_stats.schema.variables import LINE_MOMENTS, selected

# What features on an axis have where precision weights differ.
OF_UNEQUAL_WEIGHTS = frozenset(
    {
        *("squares", "robust_variance", "robust_third_cumulant", "error_rows", "skewness_sign"),
        *("cell_squares", "cell_robust_variance", "cell_robust_third_cumulant", "cell_degrees"),
    }
)
# A result, or what it holds of one feature: both are read by name.
Result: TypeAlias = "xr.Dataset | FeatureResult"


def one_feature(dataset: xr.Dataset, feature: str | int) -> FeatureResult:
    """One feature of an effects Dataset, without the padding of its bins and edges."""
    return FeatureResult(dataset, feature_position(dataset, feature))


def each_feature(dataset: xr.Dataset) -> list[FeatureResult]:
    """All features of an effects Dataset, each as `one_feature` gives it."""
    return [FeatureResult(dataset, position) for position in range(dataset.sizes["feature"])]


class FeatureResult(dict[str, xr.Variable]):
    """What effects hold of one feature, without the padding of its bins and edges.

    Variables are read as from a Dataset, ``row["effect"].values``, and cut when they are read: a
    selection of all of them would take longer than most calculations. What follows from them is a
    property, and is computed once.
    """

    def __init__(self, source: xr.Dataset, position: int) -> None:
        super().__init__()
        self.source, self.position = source, position
        self._place: dict[Hashable, int | slice] = {"feature": position}
        counts = self["n_bins"]
        if counts.ndim:
            over = ", ".join(map(str, counts.dims))
            raise ValueError(
                f"The effect must be one at a time here; its bins are over {over} as well. Select "
                f"one, as in .isel({counts.dims[0]}=0)."
            )
        n_bins = int(counts)
        sizes = {"bin": n_bins, "edge": n_bins + 1 if n_bins else 0}
        sizes |= {f"{dim}_other": size for dim, size in sizes.items()}
        if "moment" in source.dims:
            sizes["cell"] = n_bins
        if "cell_edge" in source.dims:
            n_edges = int(np.count_nonzero(~np.isnan(self["cell_value"].values)))
            del self["cell_value"]  # its padding is not cut yet
            sizes |= {"cell_edge": n_edges, "cell_edge_other": n_edges}
            # Levels have none.
            if n_edges or "moment" not in source.dims:
                sizes["cell"] = max(n_edges - 1, 0)
        if "spread_bin" in source.dims:
            n_spread = int(self["n_spread_bins"])
            sizes |= {"spread_bin": n_spread, "spread_edge": n_spread + 1 if n_spread else 0}
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

    @cached_property
    def attrs(self) -> dict[Any, Any]:
        """Attributes of the result, with those of this feature where features have own rows."""
        present = [key for key in OWN_FACTS if f"feature_{key}" in self.source.variables]
        facts = {key: self[f"feature_{key}"].values.item() for key in present}
        return self.source.attrs | facts

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
    def slopes(self) -> FloatArray:
        """Slope of the effect in every bin; 0 where it is constant in the bin."""
        if "slope" not in self:
            return np.zeros(self.sizes["bin"])
        return np.asarray(self["slope"].values, dtype=np.float64)

    @property
    def middle(self) -> FloatArray:
        """Middle of every bin."""
        return np.asarray((self["bin_left"].values + self["bin_right"].values) / 2)

    def effect_at(self, x: FloatArray, k: IntArray) -> FloatArray:
        """Effect at values that lie in the bins ``k``."""
        away = x - self.middle[k]
        return np.asarray(self["effect"].values[k] + self.slopes[k] * away)

    @cached_property
    def residuals(self) -> ResidualMoments:
        """Moments of the local effects about the means, or lines, of the bins.

        0 where the result, such as a true effect, does not hold them.
        """
        if MOMENTS not in self:
            none = np.zeros(self.sizes["bin"])
            return ResidualMoments(none, none, none, none, none, None, self.bin_means)
        slope = self.slopes if "slope" in self else None
        return residual_moments(self.moments, self.bin_starts, slope)

    @cached_property
    def bin_means(self) -> FloatArray:
        """Mean of the local effects of the rows in every bin: a line's at ``x_mean``."""
        if self.has_cells and MOMENTS in self and not self.is_categorical:
            return self.moments.pooled(self.bin_starts, degree=2).means().mean
        away = np.where(self.slopes == 0, 0.0, self["x_mean"].values - self.middle)
        return np.asarray(self["effect"].values + self.slopes * away)

    @cached_property
    def pieces(self) -> Pieces:
        """Bins by their rows, with their lines."""
        residuals = self.residuals
        return Pieces(
            self["edge_value"].values,
            residuals.mean,
            self.slopes,
            self["x_mean"].values,
            residuals.x_variance,
            self["weight_share"].values,
        )

    @cached_property
    def squares(self) -> FloatArray | None:
        """Moments of the bins by squared precision weights, if the effect has them."""
        return np.asarray(self["squares"].values, float) if "squares" in self else None

    @cached_property
    def bin_noise(self) -> Noise:
        """Noise of the means and slopes of the bins by their rows."""
        line = self._line if self.squares is None else self.squares[:, OF_LINES]
        n_effective = self["n_effective"].values
        return accumulate.line_noise(self._variance_of_means, self.pieces, line, n_effective)

    @property
    def _line(self) -> FloatArray:
        """Products of places and residuals in linear bins; 0 from rules without them."""
        line = self.residuals.line
        return np.zeros((self.sizes["bin"], len(LINE_MOMENTS))) if line is None else line

    @property
    def _variance_of_means(self) -> FloatArray:
        """Variances of the bins as standard errors of means need them."""
        if self.squares is not None:
            return np.asarray(self["robust_variance"].values)
        return np.asarray(self["heterogeneity"].values ** 2)

    # --- cells ---

    @cached_property
    def cell_edges(self) -> FloatArray:
        """Edges of the cells that the curve is accumulated from; none without cells."""
        edges = self["cell_value"].values if "cell_effect" in self else np.zeros(0)
        return np.asarray(edges[np.isfinite(edges)])

    @cached_property
    def has_cells(self) -> bool:
        """Whether the curve is accumulated from cells finer than the bins."""
        return len(self.cell_edges) > 0

    @cached_property
    def moments(self) -> CellMoments:
        """Moments in the cells of the curve; without cells, in the bins."""
        n_cells = len(self.cell_edges) - 1 if self.has_cells else self.sizes["bin"]
        return CellMoments(np.ascontiguousarray(self[MOMENTS].values[:n_cells].T))

    @cached_property
    def bin_starts(self) -> IntArray:
        """First cell of every bin."""
        return self.bin_edge_numbers[:-1] if self.has_cells else np.arange(self.sizes["bin"])

    @cached_property
    def bin_edge_numbers(self) -> IntArray:
        """Numbers of the edges of the bins among the edges of the curve."""
        edges = self["edge_value"].values
        return np.searchsorted(self.cell_edges, edges) if self.has_cells else np.arange(len(edges))

    @cached_property
    def curve_cells(self) -> CurveCells:
        """The cells that the curve is accumulated from."""
        sign = float(self["skewness_sign"].values) if "skewness_sign" in self else None
        if not self.has_cells:
            n_rows = self["error_rows" if "error_rows" in self else "n_effective"].values
            return CurveCells(
                self.pieces,
                np.arange(self.sizes["bin"]),
                self._variance_of_means,
                self["n_effective"].values,
                np.maximum(n_rows - 1 - (self.slopes != 0), 0.0),
                self.residuals.x_covariance,
                self._line,
                accumulate.known_stretch(self.pieces.share),
                shared=False,
                squares=self.squares,
                third=self._third_of_bins,
                sign=sign,
            )
        cells = cell_kernel.Cells.within(self["edge_value"].values, self.cell_edges, self.moments)
        used = slice(0, len(cells.bin))
        share = self["cell_share"].values[used]
        means, none = cells.means, np.zeros(used.stop)
        n_effective, squares = cells.n_effective, None
        variance, degrees = cells.variance
        with np.errstate(invalid="ignore", divide="ignore"):
            products = cells.moments.products(((2, 0), (1, 1), (0, 3)))
            x_variance, x_covariance, third_moment = products / means.weight
        third = skewness.third_cumulant(third_moment, n_effective)
        if "cell_squares" in self:
            variance, degrees, squares, third = [
                np.asarray(self[f"cell_{name}"].values[used])
                for name in ("robust_variance", "degrees", "squares", "robust_third_cumulant")
            ]
        return CurveCells(
            Pieces(cells.edges, means.mean, none, means.x_mean, x_variance, share),
            cells.bin,
            variance,
            n_effective,
            degrees,
            x_covariance,
            np.zeros((used.stop, len(LINE_MOMENTS))),
            accumulate.known_stretch(share),
            shared=True,
            squares=squares,
            third=third,
            sign=sign,
        )

    @property
    def _third_of_bins(self) -> FloatArray | None:
        """Third cumulants of the bins; None where they are not known."""
        if self.squares is not None:
            name = "robust_third_cumulant"
            return np.asarray(self[name].values) if name in self else None
        if MOMENTS not in self:
            return None
        return skewness.third_cumulant(self.residuals.third_moment, self["n_effective"].values)

    # --- the curve and the spread ---

    @property
    def curve_name(self) -> str:
        """The variable with the whole curve: at its cells, where it has them."""
        return "cell_curve" if self.has_cells else "curve"

    @cached_property
    def curve(self) -> FeatureCurve:
        """The curve, from its cells where it has them."""
        if not self.has_cells:
            return FeatureCurve(self["edge_value"].values, self["curve"].values, self.slopes)
        values = self["cell_curve"].values[: len(self.cell_edges)]
        has_curve = np.isfinite(values)
        flat = np.zeros(max(int(has_curve.sum()) - 1, 0))
        return FeatureCurve(self.cell_edges[has_curve], values[has_curve], flat)

    @cached_property
    def fit(self) -> CurveErrors:
        """The inputs of standard errors of the curve, of a feature that has bins."""
        centering, levels = str(self.attrs["centering"]), self.is_categorical
        cells = self.curve_cells
        stretch, noise = cells.stretch, cells.noise
        pieces = cells.pieces.stretch(stretch)
        edges = self["edge_value"].values
        inside = np.flatnonzero((edges >= pieces.edges[0]) & (edges <= pieces.edges[-1]))
        edge_slice = slice(int(inside[0]), int(inside[-1]) + 1) if len(inside) else slice(0, 0)
        curve = self["curve"].values if levels else self.curve.values
        if not levels and not self.has_cells:
            curve = curve[cells.edge_stretch]
        places = None
        if centering == "mean" and not levels:
            places = influence.own_places(
                curve,
                pieces,
                cells.x_covariance[stretch],
                cells.noise_line[stretch],
                cells.n_effective[stretch],
                None if cells.squares is None else cells.squares[stretch],
                cells.variance[stretch],
            )
        return CurveErrors(
            cells,
            pieces,
            Noise(*[part[stretch] for part in noise]),
            places,
            curve,
            edges[edge_slice],
            edge_slice,
            len(edges) - 1,
            centering,
            self["level_share"].values if levels else None,
            self["curve_cov"].values if levels else None,
        )

    @property
    def has_spread(self) -> bool:
        """Whether the spread has bins of its own."""
        return self.sizes.get("spread_bin", 0) > 0 and self.sizes["bin"] > 0

    def spread_pieces(self) -> SpreadPieces | None:
        """The spread about the effect; None where it has no bins of its own."""
        if not self.has_spread:
            return None
        edges, spread_edges = self["edge_value"].values, self["spread_edge_value"].values
        both = np.union1d(edges, spread_edges)
        middle = (both[:-1] + both[1:]) / 2
        k, j = bin_index(edges, middle), bin_index(spread_edges, middle)
        effect = np.column_stack([self.effect_at(end, k) for end in (both[:-1], both[1:])])
        return SpreadPieces(both, effect, self["spread"].values[j])

    def accumulated_spread(self, z: FloatArray) -> FloatArray:
        """math [9]: the comonotone spread of the curve, from the spread's own bins."""
        edges = self["edge_value"].values
        has_curve = np.isfinite(self["curve"].values)
        if not self.has_spread or not has_curve.any():
            return np.asarray(np.interp(z, edges, self["curve_std_sum"].values))
        spread_edges = self["spread_edge_value"].values
        total = np.append(0.0, np.cumsum(self["spread"].values * np.diff(spread_edges)))
        low, high = edges[has_curve][[0, -1]]
        out = np.interp(z, spread_edges, total) - np.interp(low, spread_edges, total)
        return np.where((z >= low) & (z <= high), out, np.nan)


def has_moments(effect: xr.Dataset | FeatureResult) -> bool:
    """Whether standard errors follow from the moments of the rows, which the result holds."""
    return MOMENTS in effect and "debiased" not in effect.attrs
