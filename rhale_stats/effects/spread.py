"""The spread of the local effects in bins of its own, math [66]."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import xarray as xr
from scipy import sparse

from rhale_stats.arrays import moments as sums
from rhale_stats.arrays import spread as kernel
from rhale_stats.arrays.accumulate import heterogeneity_se
from rhale_stats.arrays.binning import bin_index
from rhale_stats.arrays.cell_moments import Line
from rhale_stats.arrays.cells import distinct
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.arrays.skewness import clear_sign
from rhale_stats.bins.adaptive import AdaptiveBins
from rhale_stats.bins.rule import BinRule
from rhale_stats.effects.estimates import FittedBins
from rhale_stats.inference.estimate import CentralMoments, Estimate, Facts
from rhale_stats.local.rows import Reduction, Rows
from rhale_stats.schema.feature_result import FeatureResult, all_features, each_feature
from rhale_stats.schema.features import is_grouped, resolution
from rhale_stats.schema.padding import padded
from rhale_stats.schema.variables import EFFECT_VARIABLES, variable

if TYPE_CHECKING:
    from rhale_stats.effects.cluster_robust import Groups

# A spread below this share of the standard deviation of all local effects counts as none: what is
# left may be the error of the fitted effect.
NO_SPREAD = 0.01
TARGET = "standard deviation of the local effects in the bin of the spread, math [66]"


def skewness_rows(
    edges: FloatArray, lines: tuple[FloatArray, FloatArray] | None, position: int, max_rows: int
) -> Reduction:
    """Rows that tell the sign of the skewness of a feature: at most so many of each chunk.

    ``edges`` are those of the cells of its curve, ``lines`` the slopes and means of x of its bins
    where those have lines and are the cells; ``position`` is that of the feature in the rows.
    """

    def of_chunk(rows: Rows) -> FloatArray:
        x, g, weight = rows.x[position], rows.local_effect[position], rows.weight
        assert weight is not None, "precision weights differ"
        if len(x) > max_rows:
            some = np.linspace(0, len(x) - 1, max_rows).astype(np.int64)
            x, g, weight = x[some], g[some], weight[some]
        k = bin_index(edges, x)
        if lines is not None:
            slope, x_mean = lines
            g = g - slope[k] * (x - x_mean[k])
        return np.stack([g, k, weight])

    return Reduction(of_chunk, partial(np.concatenate, axis=1))


def skewness_sign(rows: FloatArray, *, fine: bool) -> float:
    """Sign of the skewness of the local effects of weighted rows, 0 unless it is clear.

    Of very many rows in chunks it is that of some, evenly from all chunks. The cells of the rows
    are ``fine`` ones of the curve, or bins.
    """
    values, cell, weight = rows
    return clear_sign(values, cell.astype(np.int64), weight, None, fine=fine)


def spread_edges(rule: BinRule, fitted: FittedBins, errors: Sequence[float]) -> list[FloatArray]:
    """Edges of the bins of the spread of every feature, chosen on these rows.

    ``errors`` are the numerical errors of their local effects.
    """
    adaptive = rule if isinstance(rule, AdaptiveBins) else AdaptiveBins()
    effect, left = _fitted_effect(fitted)
    length = np.diff(fitted.of_curve, append=len(fitted.left))
    residuals = kernel.residuals(
        fitted.fine.cells, effect.repeated(length), np.repeat(left, length)
    )
    of_bins = fitted.by_feature(fitted.of_bins)
    everything = sums.merge(fitted.bins, np.array([bins.start for bins in of_bins]))
    deviation = np.sqrt(everything.m2 / everything.weight)
    edges = []
    for number, (bins, fine, cells, fine_edges) in enumerate(
        zip(
            of_bins,
            fitted.by_feature(fitted.of_fine),
            fitted.by_feature(fitted.of_curve),
            fitted.edges(fitted.of_fine),
            strict=True,
        )
    ):
        least = resolution(fitted.bins.mean[bins], errors[number])
        starts = adaptive.choose_spread(
            sums.selected(residuals, fine),
            fitted.of_curve[cells] - fine.start,
            resolution=max(least, NO_SPREAD * float(deviation[number])),
        )
        edges.append(np.append(fine_edges[starts], fine_edges[-1]))
    return edges


def spread_between(edges: Sequence[FloatArray], fitted: FittedBins) -> list[dict[str, FloatArray]]:
    """The spread of every feature between its ``edges``: each at the nearest edge of a cell."""
    residuals = kernel.residuals(fitted.rows.cells, *_fitted_effect(fitted))
    spreads = []
    for wanted, cells, own_edges in zip(
        edges, fitted.by_feature(fitted.of_curve), fitted.edges(fitted.of_curve), strict=True
    ):
        middle = (own_edges[1:-2] + own_edges[2:-1]) / 2
        inner = wanted[1:-1] if len(own_edges) > 2 else wanted[:0]
        starts = distinct(np.append(0, 1 + np.searchsorted(middle, inner)))
        bins = sums.selected(residuals, cells).merged(starts)
        length = np.diff(starts, append=len(own_edges) - 1)
        spreads.append({"spread": np.repeat(np.sqrt(bins.moment("square")), length)})
    return spreads


def _fitted_effect(fitted: FittedBins) -> tuple[Line, FloatArray]:
    """The effect in the cells of the curves, and the share of the variance that it leaves there.

    It is the mean of each cell, whatever the bins are: a bin that does not follow the effect would
    leave its change in the residuals.
    """
    # A slope across a cell does not depend on where in the cell a row is.
    sloped = [
        cells
        for column, cells in zip(fitted.columns, fitted.by_feature(fitted.of_curve), strict=True)
        if column.cells is None
    ]
    return kernel.effect_in_cells(fitted.rows.cells, sloped)


# --- labelled -------------------------------------------------------------------------------------


def spread_errors(effect: xr.Dataset, clusters: Groups | None) -> dict[str, Any]:
    """Standard errors of the spread, by rows or by groups of rows, as a variable by its name."""
    if "spread" not in effect:
        return {}
    source = "rows" if clusters is None else clusters.source
    facts = {"source": source, "kind": "central limit theorem", "target": TARGET}
    if clusters is None:
        together = all_features(effect)
        sums, spread = together.spread_sums, together.spread
        # As in math [24], with the degrees of freedom and one more in the place of n.
        errors = heterogeneity_se(spread**2, sums.moment("fourth"), sums.degrees + 1)
        values = together.in_cells(errors)
    else:
        each = [row.in_cells(_group_errors(row, clusters)) for row in each_feature(effect)]
        values = padded(each, [effect.sizes["edge"]])
    return {"spread_se": variable("spread_se", values, **facts)}


def _group_errors(row: FeatureResult, clusters: Groups) -> FloatArray:
    """Standard errors of the spread of one feature from sums over groups of rows."""
    if not row.has_spread:
        return np.zeros(0)
    moved, n_groups = clusters.spread_sums(row).influences(row.spread), clusters.n_groups
    if clusters.design is not None:
        return np.asarray(np.sqrt(np.sum(clusters.design.units_of_clusters(moved) ** 2, axis=0)))
    return np.asarray(np.sqrt(np.sum(moved**2, axis=0) * n_groups / (n_groups - 1)))


class _Residuals(NamedTuple):
    """Residuals of the rows of one feature, 0 where the mean has no degree of freedom left."""

    k: IntArray
    weight: FloatArray
    left: FloatArray
    value: FloatArray
    n_bins: int

    @classmethod
    def of_rows(cls, row: FeatureResult, rows: Rows, position: int) -> _Residuals:
        x, g = rows.x[position], rows.local_effect[position]
        weight = np.ones(len(x)) if rows.weight is None else rows.weight
        line, left = row.effect_in_cells
        k, piece = bin_index(row.spread_edges, x), bin_index(row.edges, x)
        fit = line.mean[piece] + line.slope[piece] * (x - line.x[piece])
        left = left[piece]
        return cls(k, weight, left, np.where(left > 0, g - fit, 0.0), len(row.spread_starts))


class SpreadSums(NamedTuple):
    """Sums over the rows of groups, (group, stretch): of w l, and of w times the residual^2.

    l is the share of the variance that is left in a residual.
    """

    free: FloatArray
    square: FloatArray

    @classmethod
    def of_rows(
        cls, row: FeatureResult, rows: Rows, position: int, group: IntArray, n_groups: int
    ) -> SpreadSums:
        """Sums over the rows of one feature."""
        k, weight, left, value, n_bins = _Residuals.of_rows(row, rows, position)
        cell, size = group * n_bins + k, n_groups * n_bins
        sums = [np.bincount(cell, weight * part, size) for part in (left, value**2)]
        return cls(*[part.astype(np.float64).reshape(n_groups, n_bins) for part in sums])

    def influences(self, spread: FloatArray) -> FloatArray:
        """Influences of the groups on the spread, (group, stretch); 0 without a spread."""
        by = 2 * spread * self.free.sum(axis=0)
        moved = self.square - self.free * spread**2
        return np.asarray(np.where(by > 0, moved, 0.0) / np.where(by > 0, by, 1.0))


def weights_of_rows(row: FeatureResult, rows: Rows, position: int) -> sparse.csr_array:
    """How the spread changes with the local effect of every row, (stretch, row)."""
    k, weight, left, value, n_bins = _Residuals.of_rows(row, rows, position)
    free = np.bincount(k, weight * left, n_bins)
    by = (2 * row.spread * free)[k]
    values = np.divide(weight * 2 * value, by, out=np.zeros(len(by)), where=by > 0)
    return sparse.csr_array(sparse.coo_array((values, (k, np.arange(len(k)))), (n_bins, len(k))))


def spread_estimate(effect: xr.Dataset) -> dict[str, Estimate]:
    """The spread in its stretches with what intervals are made from, where it has an error."""
    if "spread_se" not in effect:
        return {}
    _, long_name, units = EFFECT_VARIABLES["spread"]
    together = all_features(effect)
    sums, shaped = together.spread_sums, together.by_feature
    source = str(effect["spread_se"].attrs.get("source", "rows"))
    facts = Facts(("feature", "stretch"), long_name, units, TARGET, source)
    values, se = [shaped(together.in_stretches(name)) for name in ("spread", "spread_se")]
    estimate = Estimate(values, facts, se, shaped(sums.degrees), log=True)
    if "spread_df" in effect:
        return {"spread": estimate._replace(degrees=shaped(together.in_stretches("spread_df")))}
    if is_grouped(effect):
        n_groups = effect.coords.get("feature_n_groups", effect.attrs.get("n_groups"))
        of_groups = np.reshape(np.asarray(n_groups, dtype=np.float64), (-1, 1)) - 1
        return {"spread": estimate._replace(degrees=np.broadcast_to(of_groups, values.shape))}
    each = sums.moment("third"), sums.moment("fourth"), sums.degrees + 1
    return {"spread": estimate._replace(moments=CentralMoments(*map(shaped, each)))}
