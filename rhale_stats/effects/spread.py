"""The spread of the local effects in bins of its own, math [66]."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from rhale_stats.arrays import binning
from rhale_stats.arrays import cells as fine
from rhale_stats.arrays import moments as sums
from rhale_stats.arrays import spread as kernel
from rhale_stats.arrays.accumulate import heterogeneity_se
from rhale_stats.arrays.moments import Axis, FloatArray, IntArray, Moments
from rhale_stats.bins.adaptive import AdaptiveBins
from rhale_stats.bins.description import cells_of
from rhale_stats.bins.rule import BinRule, Column
from rhale_stats.inference.estimate import Estimate, Facts
from rhale_stats.inference.estimate import Moments as CentralMoments
from rhale_stats.local.rows import Rows
from rhale_stats.schema.features import is_grouped, resolution
from rhale_stats.schema.stacking import Estimates
from rhale_stats.schema.variables import EFFECT_VARIABLES, variable

# Residuals are taken from the effect of the bins, or from the means of the cells of the curve.
BINS, CELLS = "effect of the bins", "means of the cells"
# A share of the variance below this is rounding.
NO_SHARE = 1e-9
# A spread below this share of the standard deviation of all local effects counts as none: what is
# left may be the error of the fitted effect.
NO_SPREAD = 0.01
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

    def about(self, rule: BinRule) -> str:
        """What residuals are taken from: bins that do not follow the effect leave its change in."""
        return BINS if self.along is None or isinstance(rule, AdaptiveBins) else CELLS


def own_spread(
    rule: BinRule,
    fitted: Fitted,
    rows: Rows,
    position: int,
    error: float,
    chosen_on: tuple[Fitted, Rows] | None,
) -> Estimates:
    """The spread of one feature in bins of its own, by name.

    ``error`` is the numerical error of a local effect. Bins are chosen on the rows of
    ``chosen_on``, where these are others.
    """
    axis, adaptive = _axis(rule, fitted)
    about = fitted.about(rule)
    found = _residuals(axis, fitted, about, rows, position)
    chosen = found
    if chosen_on is not None:
        of_edges, other_rows = chosen_on
        chosen = _residuals(axis, of_edges, about, other_rows, position)
    starts = adaptive.choose_spread(
        chosen,
        in_grid=fitted.column.cells is None,
        in_cells=about == CELLS,
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


def _axis(rule: BinRule, fitted: Fitted) -> tuple[Axis, AdaptiveBins]:
    """The cells that bins of the spread are unions of, and the rule that joins them."""
    if isinstance(rule, AdaptiveBins):
        return fitted.axis, rule
    column, adaptive = fitted.column, AdaptiveBins()
    low, high = float(fitted.edges[0]), float(fitted.edges[-1])
    if column.cells is None and not binning.is_resolved(low, high, adaptive.n_cells):
        return binning.variable_axis(fitted.edges), adaptive
    whole = Column(column.name, column.x, low, high, column.counts, column.cells)
    return cells_of(adaptive, whole), adaptive


def _residuals(
    axis: Axis, fitted: Fitted, about: str, rows: Rows, position: int
) -> kernel.Residuals:
    x, g = rows.x[position], rows.local_effect[position]
    means = _means(fitted, about, x)
    return kernel.residuals(axis, means, x, g, rows.weight, frequency=rows.frequency)


def _means(fitted: Fitted, about: str, x: FloatArray) -> kernel.Means:
    """The fitted effect in cells, and the share of the variance that it leaves to residuals.

    A row's leverage is 1 / n of the mean that it is in, and in a linear bin its squared distance
    from the mean of x over the sum of these.
    """
    bins, along = fitted.bins, fitted.along
    n_of_bins = sums.n_effective(bins)
    slope = np.zeros(len(bins.mean)) if fitted.slope is None else fitted.slope
    if along is None:
        of_row = sums.row_cells(binning.variable_axis(fitted.edges), x)
        left = _share(1 / _positive(n_of_bins) * (1 + (slope != 0)))
        return kernel.Means(of_row, np.nan_to_num(bins.mean), bins.x_mean, slope, left)
    if about == CELLS:
        left = np.where(along.weight > 0, _share(1 / _positive(along.n_effective)), 0.0)
        # A slope across a cell does not depend on where in the cell a row is.
        steep = np.zeros(len(left)) if fitted.column.cells is not None else _slopes_along(along)
        return kernel.Means(along.of_row, along.mean, along.x_mean, steep, left)
    k = along.bin
    distance = np.nan_to_num(along.x_variance + (along.x_mean - bins.x_mean[k]) ** 2)
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = np.bincount(k, along.weight * distance, len(bins.mean)) / bins.weight
    of_line = np.where(slope[k] != 0, distance / _positive(n_of_bins * spread)[k], 0.0)
    left = np.where(n_of_bins[k] > 0, _share(1 / _positive(n_of_bins)[k] + of_line), 0.0)
    return kernel.Means(along.of_row, bins.mean[k], bins.x_mean[k], slope[k], left)


def _slopes_along(along: fine.Cells) -> FloatArray:
    """Slope of the effect in every cell, from the means of the cells around it; 0 of a few cells.

    Its error adds a twenty-fourth to the leverage of a cell's mean.
    """
    out, there = np.zeros(len(along.mean)), np.flatnonzero(along.weight > 0)
    if len(there) > 2 and (np.diff(along.x_mean[there]) > 0).all():
        out[there] = np.gradient(along.mean[there], along.x_mean[there])
    return out


def _positive(values: FloatArray) -> FloatArray:
    return np.where(values > 0, values, np.inf)


def _share(leverage: FloatArray) -> FloatArray:
    return np.where(leverage < 1 - NO_SHARE, 1 - leverage, 0.0)


# --- labelled -------------------------------------------------------------------------------------


def spread_coordinates(edges: FloatArray, n_bins: IntArray) -> dict[str, Any]:
    """Numbers of the bins of the spread, and their edges (feature, spread_edge)."""
    most = edges.shape[1] - 1
    return {
        "spread_bin": ("spread_bin", np.arange(most), {"long_name": "bin of the spread"}),
        "spread_edge": (
            *("spread_edge", np.arange(most + 1)),
            {"long_name": "edge of a bin of the spread"},
        ),
        "spread_edge_value": variable("spread_edge_value", edges),
        "n_spread_bins": variable("n_spread_bins", n_bins),
    }


def without_spread(effect: xr.Dataset) -> xr.Dataset:
    """Effects without the spread in bins of its own."""
    return effect.drop_dims(["spread_bin", "spread_edge"], errors="ignore").drop_vars(
        "n_spread_bins", errors="ignore"
    )


def with_spread_errors(effect: xr.Dataset) -> xr.Dataset:
    """With standard errors of the spread, by rows."""
    if "spread" not in effect:
        return effect
    variance, fourth = effect["spread"].values ** 2, effect["spread_fourth_moment"].values
    # As in math [24], with the degrees of freedom and one more in the place of n.
    se = heterogeneity_se(variance, fourth, effect["spread_degrees"].values + 1)
    facts = {"source": "rows", "kind": "central limit theorem", "target": TARGET}
    return effect.assign(spread_se=variable("spread_se", se, **facts))


def spread_estimate(effect: xr.Dataset) -> dict[str, Estimate]:
    """The spread with what its intervals are made from, where it has a standard error."""
    if "spread_se" not in effect:
        return {}
    dims, long_name, units = EFFECT_VARIABLES["spread"]

    def of(name: str) -> FloatArray:
        return np.asarray(effect[name].transpose(*dims).values, dtype=np.float64)

    degrees, se = of("spread_degrees"), effect["spread_se"]
    facts = Facts(dims, long_name, units, TARGET, str(se.attrs.get("source", "rows")))
    estimate = Estimate(of("spread"), facts, of("spread_se"), degrees, log=True)
    if is_grouped(effect):
        return {"spread": estimate._replace(degrees=groups_of(effect) - 1.0)}
    moments = CentralMoments(of("spread_third_moment"), of("spread_fourth_moment"), degrees + 1)
    return {"spread": estimate._replace(moments=moments)}
