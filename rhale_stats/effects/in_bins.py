"""Effects in bins by any statistic of the local effects, math [63].

Of the mean there are formulas for all of this, in `rhale` and in its standard errors. Of another
statistic there is its own formula, and what replicates of it say.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from rhale_stats.arguments.checks import check_choice
from rhale_stats.arrays import resample
from rhale_stats.arrays.accumulate import Pieces
from rhale_stats.arrays.binning import bin_index
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.bins.adaptive import AdaptiveBins
from rhale_stats.bins.rule import BinRule
from rhale_stats.effects.estimates import centred_curve
from rhale_stats.effects.rhale import quiet_rhale, warn_of_gaps, with_missing
from rhale_stats.effects.spread import without_spread
from rhale_stats.inference.draws import check_boot, draws_of
from rhale_stats.inference.estimate import Estimate, Facts, Replicates, with_intervals
from rhale_stats.local.rows import Rows, columns
from rhale_stats.schema.checks import check_local, statistic_name
from rhale_stats.schema.features import one_feature
from rhale_stats.schema.levels import refuse_categorical
from rhale_stats.schema.parts import each_part, own_rows
from rhale_stats.schema.stacking import Estimates, stacked
from rhale_stats.schema.variables import EFFECT_VARIABLES, variable

# What replicates give of effects whose standard errors have no formula.
BY_REPLICATES = ("effect", "heterogeneity", "curve", "average_effect")
INTERVALS = ("percentile", "basic")
# What `rhale` gives for lines and for formulas of standard errors.
OF_MEANS_ALONE = (
    *("slope", "line_moments", "line_moment", "third_moment", "fourth_moment", "x_covariance"),
    *("squares", "square_moment", "robust_variance", "error_rows"),
    *("robust_third_cumulant", "skewness_sign"),
    *("weight_products", "weight_product", "weight_largest"),
)


class Statistic(NamedTuple):
    """A statistic of the local effects in a bin.

    ``formula(g, weight)`` takes the local effects of one bin, in rising order, and weights of its
    rows, (row, draw), each draw with some weight above 0. It returns a value a draw. ``name`` is an
    adjective before "effect"; ``words`` say what the effect is, with its number in docs/math.md.
    """

    name: str
    words: str
    formula: Callable[[FloatArray, FloatArray], FloatArray]


class RowsInOrder(NamedTuple):
    """Rows of one feature in order of bins, and in each of local effects; ``weight`` is theirs."""

    statistic: Statistic
    order: IntArray
    bounds: IntArray
    local_effect: FloatArray
    weight: FloatArray

    @classmethod
    def of(cls, statistic: Statistic, edges: FloatArray, rows: Rows, position: int) -> RowsInOrder:
        """Rows of the feature at this position."""
        x, g = rows.x[position], rows.local_effect[position]
        k = bin_index(edges, x)
        order = np.lexsort((g, k))
        weight = np.ones(len(x)) if rows.weight is None else rows.weight
        bounds = np.searchsorted(k[order], np.arange(len(edges)))
        return cls(statistic, order, bounds, g[order], weight[order])

    def effects(self, drawn: resample.Weights | None = None) -> FloatArray:
        """Effects of the bins under ``drawn`` (row, draw), or of the rows as they are: (draw, bin).

        NaN in bins without rows.
        """
        weight = self.weight[:, None]
        if drawn is not None:
            weight = weight * drawn.take(self.order, axis=0)
        out = np.full((weight.shape[1], len(self.bounds) - 1), np.nan)
        for k, (begin, end) in enumerate(zip(self.bounds[:-1], self.bounds[1:], strict=True)):
            there = weight[begin:end].sum(axis=0) > 0
            if there.any():
                own = weight[begin:end, there]
                out[there, k] = self.statistic.formula(self.local_effect[begin:end], own)
        return out


def in_bins(
    local: xr.Dataset, statistic: Statistic, bins: BinRule | None, centering: str
) -> xr.Dataset:
    """Effects of all features by a statistic, as `rhale` gives them by the mean over the rows.

    ``heterogeneity`` and all that is made of it remain standard deviations about the mean.
    """
    effect = _of_part(local, statistic, bins, centering)
    warn_of_gaps(effect)
    return effect


@each_part
@own_rows
def _of_part(
    local: xr.Dataset, statistic: Statistic, bins: BinRule | None, centering: str
) -> xr.Dataset:
    local = check_local(local)
    refuse_categorical(local, f"{statistic.name}_effect")
    effect = quiet_rhale(
        local,
        AdaptiveBins(degree=0) if bins is None else bins,
        centering=centering,
        weighting="rows",
    )
    if "slope" in effect and bool((effect["slope"] != 0).any()):
        raise ValueError(
            f"bins must be constant for the statistic {statistic.name!r}; this rule makes linear "
            f"ones. Use AdaptiveBins(degree=0)."
        )
    effect = without_spread(effect)
    effect = effect.drop_vars([name for name in OF_MEANS_ALONE if name in effect.variables])
    rows = columns(local)
    estimates = [
        _of_feature(one_feature(effect, at), rows, at, statistic, centering)
        for at in range(effect.sizes["feature"])
    ]
    words = {
        "effect": f"{statistic.name} effect in the bin",
        "curve": f"accumulated {statistic.name} effect",
        "average_effect": f"mean over the rows of the {statistic.name} effects of their bins",
    }
    found: dict[str, Any] = {}
    for name, values in stacked(estimates, effect.sizes["bin"]).items():
        facts = effect[name].attrs | ({"long_name": words[name]} if name in words else {})
        found[name] = (EFFECT_VARIABLES[name][0], values, facts)
    found["effect"][2]["estimator"] = statistic.words
    effect = effect.assign(found).assign_attrs(
        method=f"{statistic.name}_effect", statistic=statistic.name
    )
    return with_missing(effect) if "missing_effect" in effect else effect


def _of_feature(
    row: xr.Dataset, rows: Rows, position: int, statistic: Statistic, centering: str
) -> Estimates:
    """What a statistic gives in place of the means of one feature."""
    if not row.sizes["bin"]:
        return dict.fromkeys(("effect", "curve", "curve_offset", "average_effect"), np.nan)
    edges, share = row["edge_value"].values, row["weight_share"].values
    effect = RowsInOrder.of(statistic, edges, rows, position).effects()[0]
    none = np.zeros(len(effect))
    pieces = Pieces(edges, effect, none, row["x_mean"].values, none, share)
    curve, offset = centred_curve(pieces, edges, centering)
    return {
        "effect": effect,
        "curve": curve,
        "curve_offset": offset,
        "average_effect": float(np.nansum(share * effect)),
    }


# --- from replicates ------------------------------------------------------------------------------


def by_replicates(
    effect: xr.Dataset, boot: xr.Dataset | None, level: float, method: str | None
) -> xr.Dataset:
    """`confint` of effects whose standard errors have no formula, and these by their replicates."""
    chosen = "percentile" if method is None else method
    check_choice("method", chosen, INTERVALS)
    if boot is None:
        raise ValueError(
            f"boot must be given for the statistic {statistic_name(effect)!r}, which has no "
            f"formula of its standard error: boot = bootstrap(local, effect)."
        )
    boot = check_boot(effect, boot, BY_REPLICATES, "bootstrap(local, effect)", chosen)
    source = str(boot.attrs["source"])
    errors, estimates = {}, {}
    for name in BY_REPLICATES:
        dims, long_name, units = EFFECT_VARIABLES[name]
        target = str(effect[name].attrs["long_name"])
        draws = draws_of(boot, name, dims)
        more = {"target": target, "source": source, "kind": "bootstrap"}
        errors[f"{name}_se"] = variable(f"{name}_se", _spread(draws), **more)
        values = np.asarray(effect[name].transpose(*dims).values, dtype=np.float64)
        facts = Facts(dims, long_name, units, target, source)
        estimates[name] = Estimate(values, facts, replicates=Replicates(draws, source))
    return with_intervals(effect.assign(errors), estimates, level, chosen)


def _spread(draws: FloatArray) -> FloatArray:
    """Standard deviations of replicates, those that are NaN left out; NaN of fewer than two."""
    known = np.isfinite(draws)
    n = known.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(known, draws, 0.0).sum(axis=0) / n
        squares = np.where(known, (draws - mean) ** 2, 0.0).sum(axis=0)
        return np.where(n > 1, np.sqrt(squares / (n - 1)), np.nan)
