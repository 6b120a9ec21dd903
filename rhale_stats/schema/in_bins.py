"""Effects as tables of their bins: what follows from the moments, and the curve at their edges."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import xarray as xr

from rhale_stats.schema.checks import check_curves
from rhale_stats.schema.feature_result import FeatureResult, each_feature
from rhale_stats.schema.features import is_of_outcome
from rhale_stats.schema.kinds import EFFECT
from rhale_stats.schema.layout import MOMENTS
from rhale_stats.schema.padding import padded
from rhale_stats.schema.parts import over_outputs
from rhale_stats.schema.variables import (
    COUNTS,
    EFFECT_VARIABLES,
    counted,
    dataset_of,
    variable,
    with_variables,
)

# What its variables say beside their names and units.
FACTS: dict[str, dict[str, str | int]] = {
    "curve_std": {"estimator": "math [9], Eq. 16 of the paper"},
    "curve_std_sum": {"estimator": "math [9], as in the paper's figures"},
    "heterogeneity_index": {"estimator": "math [10]", "ddof": 0},
}


@over_outputs
def in_bins(effect: xr.Dataset) -> xr.Dataset:
    """The effect with ``edge`` for the edges of its bins, and with all that follows in bins."""
    effect = check_curves(effect, "effect", "rhale(local)")
    result = at_bin_edges(effect)
    if MOMENTS not in effect or is_of_outcome(effect):
        return result
    following, variables = [_that_follow(row) for row in each_feature(effect)], dict[str, Any]()
    for name in following[0]:
        each, nothing = [values[name] for values in following], 0.0 if name in COUNTS else np.nan
        shape = [result.sizes[dim] for dim in EFFECT_VARIABLES[name][0][1:]]
        table = padded(each, shape, missing=nothing)
        variables[name] = variable(name, table, EFFECT, **FACTS.get(name, {}))
    return with_variables(result, variables)


@over_outputs
def at_bin_edges(effect: xr.Dataset) -> xr.Dataset:
    """The effect with ``edge`` for the edges of its bins, without what is known of cells alone."""
    rows = each_feature(effect)
    n_edges = effect.sizes["bin"] + 1
    out = dict[Hashable, Any]()
    for name, data in effect.variables.items():
        along = [dim for dim in data.dims if str(dim).startswith("edge")]
        if not along:
            out[name] = data
        elif name != MOMENTS and name != "edge" and not str(name).startswith(("spread", "cell_")):
            rest = [dim for dim in data.dims if dim != "feature"]
            shape = [n_edges if dim in along else data.sizes[dim] for dim in rest]
            each = [_at_bin_edges(row, str(name)) for row in rows]
            missing: Any = {"U": "", "i": 0, "b": False}.get(data.dtype.kind, np.nan)
            table = padded(each, shape, missing=missing, dtype=data.dtype)
            out[name] = xr.Variable(("feature", *rest), table, data.attrs)
    out["edge"] = counted("edge", n_edges, "edge of a bin")
    coords = {name: out[name] for name in out if name in effect.coords and name != "moment"}
    return dataset_of(
        {name: out[name] for name in out if name not in effect.coords}, coords, effect.attrs
    )


def _at_bin_edges(row: FeatureResult, name: str) -> Any:
    """A variable of one feature at the edges of its bins."""
    if name == "edge_value":
        return row.bin_edges
    values, numbers = row[name], row.bin_edge_numbers
    places = {dim: numbers for dim in values.dims if str(dim).startswith("edge")}
    # Covariances of levels alone are as long as these are many.
    within = {dim: n[n < values.sizes[dim]] for dim, n in places.items()}
    return values.isel(within).values


def _that_follow(row: FeatureResult) -> dict[str, Any]:
    """What follows from the moments of one feature, by name."""
    if not row.sizes["bin"]:
        nothing, nan = np.zeros(0), float("nan")
        in_bins_alone = dict.fromkeys(("n_effective", "weight_share", "x_mean"), nothing)
        at_edges = dict.fromkeys(("curve_std", "curve_std_sum"), nothing)
        return {**in_bins_alone, **at_edges, "curve_offset": nan, "heterogeneity_index": nan}
    std, std_sum = row.curve_spreads
    return {
        "n_effective": row.n_effective,
        "weight_share": row.weight_share,
        "x_mean": row.x_mean,
        "curve_std": std,
        "curve_std_sum": std_sum,
        "curve_offset": row.curve_offset,
        "heterogeneity_index": row.heterogeneity_index,
    }
