"""The spread of the local effects in bins of its own, math [66]."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import xarray as xr
from scipy import sparse

from rhale_stats.arrays import binning
from rhale_stats.arrays import cells as fine
from rhale_stats.arrays import moments as sums
from rhale_stats.arrays import spread as kernel
from rhale_stats.arrays.accumulate import heterogeneity_se
from rhale_stats.arrays.binning import bin_index
from rhale_stats.arrays.moments import Axis, FloatArray, IntArray, Moments
from rhale_stats.arrays.skewness import clear_sign
from rhale_stats.arrays.stretches import Place, Stretches
from rhale_stats.bins.adaptive import AdaptiveBins
from rhale_stats.bins.description import cells_of
from rhale_stats.bins.rule import BinRule, Column
from rhale_stats.inference.estimate import Estimate, Facts
from rhale_stats.inference.estimate import Moments as CentralMoments
from rhale_stats.local.reductions import Asked
from rhale_stats.local.rows import Rows
from rhale_stats.schema.curves import cell_count, fine_of, has_cells
from rhale_stats.schema.features import (
    bin_means,
    is_grouped,
    one_feature,
    resolution,
    slopes,
)
from rhale_stats.schema.stacking import Estimates, padded
from rhale_stats.schema.variables import EFFECT_VARIABLES, counted, variable

if TYPE_CHECKING:
    from rhale_stats.effects.clusters import Groups

# A share of the variance below this is rounding.
NO_SHARE = 1e-9
# A spread below this share of the standard deviation of all local effects counts as none: what is
# left may be the error of the fitted effect.
NO_SPREAD = 0.01
# Parameters of a cell: its mean takes one, and the error of the slope puts a part of one back.
OF_CELL = 1 - 1 / 24
# What every feature has.
SPREAD = (
    *("spread", "spread_n_obs", "spread_share", "spread_degrees"),
    *("spread_third_moment", "spread_fourth_moment", "spread_edge_value"),
)
TARGET = "standard deviation of the local effects in the bin of the spread, math [66]"


class Fitted(NamedTuple):
    """The effect of one feature on some rows: its bins, their slopes, and the cells of its curve.

    ``slope`` is None without lines, ``along`` with ``weighting="rows"``.
    """

    column: Column
    axis: Axis
    edges: FloatArray
    bins: Moments
    slope: FloatArray | None
    along: fine.Cells | None

    def of_skewness(self, position: int, most: int) -> Asked:
        """What `skewness_sign` needs to know, of at most so many rows of each chunk."""
        # Of chunks this travels to all workers: without the places, which are many.
        fitted = self._replace(column=replace(self.column, x=self.column.x[:0], counts=None))

        def of(rows: Rows) -> FloatArray:
            x, g = rows.x[position], rows.local_effect[position]
            assert rows.weight is not None
            weight = rows.weight
            if len(x) > most:
                some = np.linspace(0, len(x) - 1, most).astype(np.int64)
                x, g, weight = x[some], g[some], weight[some]
            if fitted.along is not None:
                return np.stack([g, bin_index(fitted.along.edges, x), weight])
            k = bin_index(fitted.edges, x)
            if fitted.slope is not None:
                g = g - fitted.slope[k] * (x - fitted.bins.x_mean[k])
            return np.stack([g, k, weight])

        return Asked(of, partial(np.concatenate, axis=1))

    def skewness_sign(self, found: FloatArray) -> float:
        """Sign of the skewness of the local effects of weighted rows, 0 unless it is clear.

        Of very many rows in chunks it is that of some, evenly from all chunks.
        """
        values, cell, weight = found
        of_cell = cell.astype(np.int64)
        return clear_sign(values, of_cell, weight, None, fine=self.along is not None)


def own_spread(
    rule: BinRule,
    fitted: Fitted,
    found: kernel.Residuals,
    error: float,
    chosen: kernel.Residuals | None,
) -> Estimates:
    """The spread of one feature in bins of its own, by name, from the sums of its residuals.

    ``error`` is the numerical error of a local effect. Bins are chosen by the sums ``chosen``,
    where these are of other rows.
    """
    axis, adaptive = spread_axis(rule, fitted)
    starts = adaptive.choose_spread(
        found if chosen is None else chosen,
        in_grid=fitted.column.cells is None,
        in_cells=fitted.along is not None,
        resolution=max(resolution(fitted.bins.mean, error), NO_SPREAD * _deviation(fitted.bins)),
    )
    bins, edges = found.merged(starts), fitted.edges
    return {
        "spread": np.sqrt(bins.moment("square")),
        "spread_n_obs": bins.n_obs,
        "spread_share": bins.weight / bins.weight.sum(),
        "spread_degrees": bins.degrees,
        "spread_third_moment": bins.moment("third"),
        "spread_fourth_moment": bins.moment("fourth"),
        "spread_edge_value": binning.bin_edges(axis, starts, float(edges[0]), float(edges[-1])),
    }


def _deviation(bins: Moments) -> float:
    """Standard deviation of the local effects, whatever the bins."""
    everything = sums.merge(bins, np.zeros(1, dtype=np.int64))
    return float(np.sqrt(everything.m2[0] / everything.weight[0]))


def spread_axis(rule: BinRule, fitted: Fitted) -> tuple[Axis, AdaptiveBins]:
    """The cells that bins of the spread are unions of, and the rule that joins them."""
    if isinstance(rule, AdaptiveBins):
        return fitted.axis, rule
    column, adaptive = fitted.column, AdaptiveBins()
    low, high = float(fitted.edges[0]), float(fitted.edges[-1])
    whole = Column(column.name, column.x, low, high, column.counts, column.cells)
    return cells_of(adaptive, whole), adaptive


def residual_sums(axis: Axis, fitted: Fitted, position: int) -> Asked:
    """Sums of powers of the residuals of one feature in the cells of ``axis``."""
    # Of chunks this travels to all workers: without the places, which are many.
    column = replace(fitted.column, x=fitted.column.x[:0], counts=None)
    fitted = fitted._replace(column=column)

    def of(rows: Rows) -> kernel.Residuals:
        x, g = rows.x[position], rows.local_effect[position]
        means = _means(fitted, x, rows)
        return kernel.residuals(axis, means, x, g, rows.weight, frequency=rows.frequency)

    return Asked(of, kernel.residuals_of_all)


def _means(fitted: Fitted, x: FloatArray, rows: Rows) -> kernel.Means:
    """The fitted effect, and the share of the variance that it leaves to residuals.

    It is the mean of each cell of the curve, whatever the bins are: a bin that does not follow the
    effect would leave its change in the residuals. With ``weighting="rows"`` it is that of the bin.
    """
    bins, along = fitted.bins, fitted.along
    if along is None:
        axis = binning.variable_axis(fitted.edges)
        where: Place = (
            sums.stretches(axis, x, rows.pieces) if rows.ordered else sums.row_cells(axis, x)
        )
        slope = np.zeros(len(bins.mean)) if fitted.slope is None else fitted.slope
        left = _left(sums.n_effective(bins), 1 + (slope != 0))
        return kernel.Means(where, bins.mean, bins.x_mean, slope, left)
    left = _left(along.n_effective, OF_CELL)
    # A slope across a cell does not depend on where in the cell a row is.
    slope = (
        np.zeros(len(left))
        if fitted.column.cells is not None
        else _slopes_along(along.mean, along.x_mean)
    )
    return kernel.Means(along.row_cells(x), along.mean, along.x_mean, slope, left)


def _left(rows: FloatArray, parameters: FloatArray | float) -> FloatArray:
    """Share of the variance that is left where so many parameters are fitted to so many rows."""
    left = 1 - parameters / np.where(rows > 0, rows, np.inf)
    return np.where((rows > 0) & (left > NO_SHARE), left, 0.0)


def _slopes_along(mean: FloatArray, x_mean: FloatArray) -> FloatArray:
    """Slope of the effect in every cell, from the means of the cells around it; 0 in two cells.

    Where n rows are even in cells of width h, its variance is sigma^2 / (2 n h^2). Times that of x
    in the cell, h^2 / 12, this is a twenty-fourth of the variance of the mean of the cell.
    """
    out, there = np.zeros(len(mean)), np.flatnonzero(np.isfinite(mean))
    if len(there) > 2 and (np.diff(x_mean[there]) > 0).all():
        out[there] = np.gradient(mean[there], x_mean[there])
    return out


# --- labelled -------------------------------------------------------------------------------------


def spread_coordinates(edges: FloatArray, n_bins: IntArray) -> dict[str, Any]:
    """Numbers of the bins of the spread, and their edges (feature, spread_edge)."""
    most = edges.shape[1] - 1
    return {
        "spread_bin": counted("spread_bin", most, "bin of the spread"),
        "spread_edge": counted("spread_edge", most + 1, "edge of a bin of the spread"),
        "spread_edge_value": variable("spread_edge_value", edges),
        "n_spread_bins": variable("n_spread_bins", n_bins),
    }


def without_spread(effect: xr.Dataset) -> xr.Dataset:
    """Effects without the spread in bins of its own."""
    return effect.drop_dims(["spread_bin", "spread_edge"], errors="ignore").drop_vars(
        "n_spread_bins", errors="ignore"
    )


def spread_errors(effect: xr.Dataset, clusters: Groups | None) -> dict[str, Any]:
    """Standard errors of the spread, by rows or by groups of rows, as a variable by its name."""
    if "spread" not in effect:
        return {}
    facts = {"source": "rows", "kind": "central limit theorem", "target": TARGET}
    if clusters is None:
        variance, fourth = effect["spread"].values ** 2, effect["spread_fourth_moment"].values
        # As in math [24], with the degrees of freedom and one more in the place of n.
        se = heterogeneity_se(variance, fourth, effect["spread_degrees"].values + 1)
    else:
        facts["source"] = f"rows in {clusters.n_groups} groups"
        rows = [one_feature(effect, at) for at in range(effect.sizes["feature"])]
        se = padded([_group_errors(row, clusters) for row in rows], [effect.sizes["spread_bin"]])
    return {"spread_se": variable("spread_se", se, **facts)}


def _group_errors(row: xr.Dataset, clusters: Groups) -> FloatArray:
    """Standard errors of the spread of one feature, from the sums over groups of rows."""
    if not row.sizes["spread_bin"]:
        return np.zeros(0)
    n_groups = clusters.n_groups
    squares = np.sum(clusters.spread_sums(row).influences(row["spread"].values) ** 2, axis=0)
    return np.asarray(np.sqrt(squares * n_groups / (n_groups - 1)))


class _Residuals(NamedTuple):
    """Residuals of the rows of one feature, 0 where the mean has no degree of freedom left."""

    k: IntArray
    weight: FloatArray
    left: FloatArray
    value: FloatArray
    n_bins: int

    @classmethod
    def of(cls, row: xr.Dataset, rows: Rows, position: int) -> _Residuals:
        x, g = rows.x[position], rows.local_effect[position]
        weight = np.ones(len(x)) if rows.weight is None else rows.weight
        means = _stored_means(row, x)
        k = binning.bin_index(row["spread_edge_value"].values, x)
        at = means.of_row
        assert not isinstance(at, Stretches), "made by `_stored_means` from the edges"
        fit = np.nan_to_num(means.mean)[at]
        fit = fit + means.slope[at] * (x - np.nan_to_num(means.x_mean)[at])
        left = means.left[at]
        return cls(k, weight, left, np.where(left > 0, g - fit, 0.0), row.sizes["spread_bin"])


class SpreadSums(NamedTuple):
    """Sums over the rows of groups, (group, spread_bin): of w l, and of w times the residual^2.

    l is the share of the variance that is left in a residual.
    """

    free: FloatArray
    square: FloatArray

    @classmethod
    def of(
        cls, row: xr.Dataset, rows: Rows, position: int, group: IntArray, n_groups: int
    ) -> SpreadSums:
        """Of the rows of one feature."""
        of = _Residuals.of(row, rows, position)
        at = group * of.n_bins + of.k
        return cls(
            *(
                np.bincount(at, of.weight * each, n_groups * of.n_bins)
                .astype(np.float64)
                .reshape(n_groups, of.n_bins)
                for each in (of.left, of.value**2)
            )
        )

    def influences(self, spread: FloatArray) -> FloatArray:
        """Influences of the groups on the spread, (group, spread_bin); 0 without a spread."""
        by = 2 * spread * self.free.sum(axis=0)
        moved = self.square - self.free * spread**2
        return np.asarray(np.where(by > 0, moved, 0.0) / np.where(by > 0, by, 1.0))


def weights_of_rows(row: xr.Dataset, rows: Rows, position: int) -> sparse.csr_array:
    """How the spread changes with the local effect of every row, (spread_bin, row)."""
    of, spread = _Residuals.of(row, rows, position), row["spread"].values
    free = np.bincount(of.k, of.weight * of.left, of.n_bins)
    by = (2 * spread * free)[of.k]
    values = np.divide(of.weight * 2 * of.value, by, out=np.zeros(len(by)), where=by > 0)
    at = (of.k, np.arange(len(of.k)))
    return sparse.csr_array(sparse.coo_array((values, at), (of.n_bins, len(of.k))))


def _stored_means(row: xr.Dataset, x: FloatArray) -> kernel.Means:
    """The fitted effect of `_means`, from a result."""
    if not has_cells(row):
        slope = slopes(row)
        left = _left(row["n_effective"].values, 1 + (slope != 0))
        of_row = binning.bin_index(row["edge_value"].values, x)
        return kernel.Means(of_row, bin_means(row), row["x_mean"].values, slope, left)
    pieces, n = fine_of(row).pieces, row["cell_n_effective"].values[: cell_count(row)]
    left = _left(n, OF_CELL)
    slope = np.zeros(len(left))
    if str(row["local_effect_method"].values) != "finite_difference":
        slope = _slopes_along(pieces.mean, pieces.x_mean)
    return kernel.Means(binning.bin_index(pieces.edges, x), pieces.mean, pieces.x_mean, slope, left)


def spread_estimate(effect: xr.Dataset) -> dict[str, Estimate]:
    """The spread with what its intervals are made from, where it has a standard error."""
    if "spread_se" not in effect:
        return {}
    dims, long_name, units = EFFECT_VARIABLES["spread"]

    def of(name: str) -> FloatArray:
        return np.asarray(effect.variables[name].transpose(*dims).values, dtype=np.float64)

    degrees = of("spread_degrees")
    source = str(effect["spread_se"].attrs.get("source", "rows"))
    facts = Facts(dims, long_name, units, TARGET, source)
    estimate = Estimate(of("spread"), facts, of("spread_se"), degrees, log=True)
    if "spread_df" in effect:
        return {"spread": estimate._replace(degrees=of("spread_df"))}
    if is_grouped(effect):
        n_groups = effect.coords.get("feature_n_groups", effect.attrs.get("n_groups"))
        of_groups = np.broadcast_to(np.reshape(np.asarray(n_groups), (-1, 1)) - 1.0, degrees.shape)
        return {"spread": estimate._replace(degrees=of_groups)}
    moments = CentralMoments(of("spread_third_moment"), of("spread_fourth_moment"), degrees + 1)
    return {"spread": estimate._replace(moments=moments)}
