"""The rows behind profiles: ICE curves, and what M-plots and SHAP dependence keep of theirs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
import xarray as xr

from rhale_stats.arrays import delta, leverage, splines
from rhale_stats.arrays import profiles as kernel
from rhale_stats.arrays.binning import bin_edges, bin_index
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.arrays.survey import SamplingDesign
from rhale_stats.bins.rule import Column
from rhale_stats.bins.rules import EqualWidthBins, GivenBins, QuantileBins
from rhale_stats.profiles.data import check_profile, is_nominal, one_profile
from rhale_stats.profiles.inputs import SPREAD_BINS
from rhale_stats.schema.features import feature_names

# What each keeps.
KEPT = {"m_plot": ("output_value", "x"), "shap_dependence": ("shap_value", "x", "smoothing")}


class RowErrors(NamedTuple):
    """Covariance of a curve by its rows or their groups, its degrees, and what these do to it."""

    covariance: FloatArray
    degrees: FloatArray
    units: delta.Units


@dataclass(frozen=True)
class _Behind:
    """What the curve of one feature is made of, row by row, and its grid.

    ``rows`` are the numbers of these rows among all rows of the profile.
    """

    values: FloatArray
    grid: FloatArray
    weight: FloatArray | None
    frequency: bool
    rows: IntArray

    @property
    def base(self) -> FloatArray:
        """Weights of the rows, equal ones if there are none."""
        return np.ones(len(self.values)) if self.weight is None else self.weight

    def influences(self, centering: str) -> FloatArray:
        raise NotImplementedError

    def errors(self, centering: str, group: IntArray | SamplingDesign | None = None) -> RowErrors:
        """By rows, or by the groups of these rows, numbered from 0 without gaps, or a design."""
        psi = self.influences(centering)
        if group is None:
            units = delta.of_rows(psi, self.weight, frequency=self.frequency)
        else:
            units = delta.of_groups(psi, self.weight, group, frequency=self.frequency)
        covariance = units.moved.T @ units.moved
        return RowErrors(covariance, np.full(len(covariance), max(units.degrees, 0.0)), units)


@dataclass(frozen=True)
class Curves(_Behind):
    """ICE curves, (row, grid), of the rows that have one, or their derivatives."""

    places: kernel.Places
    derivative: bool

    def curve(self, centering: str) -> FloatArray:
        """Their mean."""
        mean = np.average(self.values, axis=0, weights=self.weight)
        share = self.places.share(self.weight)
        return np.asarray(mean - kernel.centre_of(centering, self.grid, share) @ mean)

    def influences(self, centering: str) -> FloatArray:
        """What every row adds to the curve, (row, grid)."""
        return kernel.influences(self.values, self.grid, self.places, self.weight, centering)

    def replicates(self, drawn: FloatArray, centering: str) -> kernel.ProfileReplicates:
        """Statistics of rows drawn as often as ``drawn`` (row, draw) says."""
        base, total = self.base, self.base.sum()
        lost = 1.0 if self.weight is None or self.frequency else base @ base / total
        correction = total / (total - lost) if total > lost else np.nan
        return kernel.replicates(
            *(self.values, self.grid, self.places, base[:, None] * drawn, centering, correction),
            themselves=self.derivative,
        )


@dataclass(frozen=True)
class BinnedOutputs(_Behind):
    """The output of the rows of an M-plot, and their bins."""

    cell: IntArray
    name: str

    @cached_property
    def means(self) -> kernel.BinMeans:
        """Means in the bins."""
        return kernel.bin_means(
            self.values, self.cell, len(self.grid), self.weight, frequency=self.frequency
        )

    def curve(self, centering: str) -> FloatArray:
        """The M-plot itself."""
        return self.means.mean - kernel.bin_curve(self.means, self.grid, centering).offset

    def influences(self, centering: str) -> FloatArray:
        """What every row adds to the curve."""
        return kernel.bin_influences(self.values, self.cell, self.means, self.grid, centering)

    def centre(self, centering: str) -> FloatArray | None:
        """Weights of bins in the constant; None of the mean over rows, 0 without a constant."""
        if centering == "mean":
            return None
        share = self.means.share
        centre, has_rows = np.zeros(len(self.grid)), share > 0
        centre[has_rows] = kernel.centre_of(centering, self.grid[has_rows], share[has_rows])
        return centre

    def errors(self, centering: str, group: IntArray | SamplingDesign | None = None) -> RowErrors:
        """Every bin has rows of its own."""
        gone, centre = self.means.share == 0, self.centre(centering)
        units, degrees, n_units = delta.of_bins(
            *(self.values, self.cell, self.means, centre, self.weight, group),
            frequency=self.frequency,
        )
        if group is None:
            covariance = kernel.bin_curve(self.means, self.grid, centering).covariance
            return RowErrors(covariance, degrees, units)
        few = np.flatnonzero((n_units < 2) & ~gone)
        if len(few):
            raise ValueError(
                f"groups must be at least two in every bin; bin {few[0]} of feature {self.name!r} "
                f"has rows of 1. Use fewer bins or larger groups of levels."
            )
        covariance = units.moved.T @ units.moved
        covariance[gone] = covariance[:, gone] = np.nan
        return RowErrors(covariance, degrees, units)

    def replicates(self, drawn: FloatArray, centering: str) -> kernel.ProfileReplicates:
        """The same statistics of rows that were drawn anew."""
        base, centre = None if self.frequency else self.weight, self.centre(centering)
        if base is None:
            drawn = self.base[:, None] * drawn
        return kernel.bin_replicates(self.values, self.cell, self.means, centre, base, drawn)


@dataclass(frozen=True)
class Shapley(_Behind):
    """The Shapley values of the rows, and what smooths them, its parameter chosen if it is None.

    ``near`` are the rows that the spread is taken over.
    """

    places: kernel.Places
    basis: splines.Basis
    near: splines.Near
    smoothing: float | None

    @cached_property
    def fit(self) -> splines.Smooth:
        """The curve that is not centred, and the residuals."""
        return splines.smooth(
            self.basis, self.values, self.weight, self.smoothing, frequency=self.frequency
        )

    def centre(self, centering: str) -> FloatArray:
        """Weights of the points in the constant that centring subtracts."""
        share = self.places.share(self.weight)
        return kernel.centre_of(centering, np.asarray(self.basis.grid_place), share)

    def smoothed(self, centering: str) -> tuple[FloatArray, FloatArray, FloatArray]:
        """math [45]: the centred curve, the spread about it, and influences of the rows on it."""
        fit, centre = self.fit, self.centre(centering)
        curve = fit.curve - centre @ fit.curve
        spread = self.near.spread(fit.residual[:, None], self.base[:, None])[:, 0]
        influence = splines.influences(
            self.basis, fit.residual, self.weight, fit.smoothing, frequency=self.frequency
        )
        if centering != "none":
            influence = influence - (influence @ centre)[:, None]
        if centering == "mean":
            # The constant is a mean over places of rows, too, as in `influences`.
            influence -= self.places.at_rows(curve, self.weight)[:, None]
        return curve, spread, influence

    def curve(self, centering: str) -> FloatArray:
        """The curve itself."""
        return self.smoothed(centering)[0]

    def influences(self, centering: str) -> FloatArray:
        """What every row adds to the curve."""
        return self.smoothed(centering)[2]

    def errors(self, centering: str, group: IntArray | SamplingDesign | None = None) -> RowErrors:
        """Groups have their leverage on splines."""
        if group is None:
            return super().errors(centering)
        moved, degrees = self.of_groups(group, centering)
        units = delta.Units(moved, np.arange(len(self.values)), np.nan)
        return RowErrors(moved.T @ moved, degrees, units)

    def of_groups(
        self, group: IntArray | SamplingDesign, centering: str
    ) -> splines.GroupInfluences:
        """What groups of rows add to the curve, math [99], or the units of a design [117]."""
        if isinstance(group, SamplingDesign):
            clusters, code = np.unique(group.cluster[group.rows], return_inverse=True)
            units = self.of_groups(code, centering)
            moved = np.zeros((group.n_clusters, units.moved.shape[1]))
            moved[clusters] = units.moved
            degrees = np.minimum(units.degrees, group.degrees)
            return units._replace(moved=group.units_of_clusters(moved), degrees=degrees)
        fit, centre = self.fit, self.centre(centering)
        units = splines.of_groups(
            *(self.basis, fit.residual, self.weight, group, fit.smoothing, centre),
            frequency=self.frequency,
        )
        if centering != "mean":
            return units
        along = self.places.at_rows(fit.curve - centre @ fit.curve, self.weight)
        of_mean = leverage.of_mean(group, self.base, frequency=self.frequency)
        places = np.bincount(group, self.base / self.base.sum() * along)
        return units._replace(
            moved=units.moved - (places * of_mean.factor.toarray()[:, 0])[:, None]
        )

    def replicates(self, drawn: FloatArray, centering: str) -> kernel.ProfileReplicates:
        """The same statistics of rows that were drawn anew."""
        weight = self.base[:, None] * drawn
        curve, residual = splines.replicate_curves(
            self.basis, self.values, weight, self.fit.smoothing
        )
        spread = self.near.spread(residual, weight)
        share = np.asarray(self.places.hats().T @ weight)
        share /= share.sum(axis=0)
        centre = None if centering == "mean" else self.centre(centering)
        heterogeneity = np.sqrt(np.sum(np.where(share > 0, share * spread**2, 0.0), axis=0))
        return kernel.ProfileReplicates.from_draws(curve, spread, heterogeneity, share, centre)


RowsBehind: TypeAlias = Curves | BinnedOutputs | Shapley


def rows_behind(profile: xr.Dataset, feature: str | int) -> RowsBehind:
    """The rows of one feature that have a value of it, or a curve."""
    row = one_profile(profile, feature)
    method, nominal = str(profile.attrs["method"]), is_nominal(row)
    x, grid = np.asarray(row["x"].values, dtype=np.float64), row["grid_value"].values
    has_curve, curves = ~np.isnan(x), None
    if method not in KEPT:
        curves = row["ice"].transpose("obs", "grid").values
        # Rows without a value have curves with missing="bin", but no place.
        has_curve = ~np.isnan(curves).any(axis=1) & (row.sizes["grid"] > 0)
    x, rows = x[has_curve], np.flatnonzero(has_curve)
    weight = row["weight"].values[has_curve] if "weight" in row else None
    frequency = profile.attrs["weight_kind"] == "frequency"
    if method == "m_plot":
        cell = np.zeros(len(x), dtype=np.intp)
        if nominal:
            cell = x.astype(np.intp)
        elif len(grid):
            edges = np.append(row["bin_left"].values, row["bin_right"].values[-1])
            cell = bin_index(edges, x)
        values, name = row["output_value"].values[has_curve], str(row["feature"].values)
        return BinnedOutputs(values, grid, weight, frequency, rows, cell, name)
    places = (
        kernel.level_places(x.astype(np.intp), len(grid)) if nominal else kernel.places(grid, x)
    )
    if curves is not None:
        derivative = profile.attrs.get("ice_kind") == "derivative"
        return Curves(curves[has_curve], grid, weight, frequency, rows, places, derivative)
    smoother = smoother_of(str(row["feature"].values), x, grid, weight, nominal=nominal)
    values, smoothing = row["shap_value"].values[has_curve], float(row["smoothing"])
    return Shapley(values, grid, weight, frequency, rows, places, *smoother, smoothing)


def check_curves(rows: object, profile: xr.Dataset, parameter: str = "local") -> xr.Dataset:
    """ICE curves, or what keeps other rows; refused unless the profile is made of them."""
    method, centering = str(profile.attrs["method"]), str(profile.attrs["centering"])
    advice = "Make it on the same grid: ice(model, X, ...)."
    if method in KEPT:
        advice = f"The rows of {method} are in its own result: pass that."
    checked = check_profile(rows, parameter, needs=KEPT.get(method, ("ice", "x")), advice=advice)
    if method in KEPT and checked.attrs["method"] != method:
        raise ValueError(
            f"{parameter} must be what {method} returned, as the profile is; got that of "
            f"{checked.attrs['method']}."
        )
    kinds = {dataset.attrs.get("ice_kind") == "derivative" for dataset in (checked, profile)}
    if len(kinds) > 1:
        raise ValueError(
            f"{parameter} and the profile must both be derivatives, or neither; take "
            f"ice(..., kind='plain') for a profile of pdp."
        )
    for name in feature_names(profile):
        row, other = one_profile(profile, name), one_profile(checked, name)
        same = np.array_equal(row["grid_value"].values, other["grid_value"].values, equal_nan=True)
        if not same and method not in KEPT:
            raise ValueError(
                f"{parameter} must have the grid of the profile; that of feature {name!r} is "
                f"another. {advice}"
            )
        if same and other.sizes["grid"]:
            behind, curve = rows_behind(checked, name), row["curve"].values
            again, has_value = behind.curve(centering), ~np.isnan(curve)
            apart = np.abs(again - curve)[has_value]
            same = bool((apart <= 1e-9 * np.abs(behind.values).max(initial=0.0)).all())
            # Without a value where parameters are not estimable; or, of M-plots, in empty bins.
            same = same and (method not in KEPT or np.array_equal(~np.isnan(again), has_value))
        if not same and method in KEPT:
            raise ValueError(
                f"{parameter} must hold the rows that the profile was made of; those of feature "
                f"{name!r} make another curve. Pass the profile itself: its rows are in it."
            )
        if not same:
            raise ValueError(
                f"{parameter} must hold the curves that the profile is the mean of; for feature "
                f"{name!r} their mean is another. Make both of one model, X and weights."
            )
    return checked


def smoother_of(
    name: str, x: FloatArray, grid: FloatArray, weight: FloatArray | None, *, nominal: bool
) -> tuple[splines.Basis, splines.Near]:
    """Splines, or means of levels; spread about them in quantile bins, or at levels."""
    if nominal:
        level = x.astype(np.intp)
        return splines.level_basis(level, len(grid)), splines.near_levels(level, len(grid))
    cell, edges = in_bins(QuantileBins(SPREAD_BINS), name, x, weight)
    means = kernel.bin_means(x, cell, max(len(edges) - 1, 1), weight, frequency=False).mean
    return splines.spline_basis(x, weight, grid), splines.near_bins(cell, means, grid)


def in_bins(
    rule: EqualWidthBins | QuantileBins | GivenBins,
    name: str,
    x: FloatArray,
    weight: FloatArray | None,
) -> tuple[IntArray, FloatArray]:
    """The bin of every row, and the edges; none of a constant feature."""
    low, high = float(x.min()), float(x.max())
    if low == high:
        return np.zeros(len(x), dtype=np.intp), np.zeros(0)
    cells = rule.cells(Column(name, x, low, high, weight))
    edges = bin_edges(cells, np.arange(len(cells)), low, high)
    return bin_index(edges, x), edges
