"""Effects of all features as a labelled Dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rhale_stats.arrays.cell_moments import FIELDS
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.bins.description import describe
from rhale_stats.bins.rule import BinRule
from rhale_stats.effects.estimates import estimates_of
from rhale_stats.schema.all_features import AllFeatures
from rhale_stats.schema.features import labels_kept, methods_of
from rhale_stats.schema.identity import MODEL_FACTS
from rhale_stats.schema.kinds import EFFECT
from rhale_stats.schema.layout import METHOD, method_as_attribute
from rhale_stats.schema.padding import Estimates, pad_features
from rhale_stats.schema.variables import (
    SQUARE_MOMENTS,
    WEIGHT_PRODUCTS,
    counted,
    dataset_of,
    software,
    variable,
)

# Rounding is negligible below this share of the range of the answers. The error of most rows is the
# largest that rounding can make, so many times the typical one.
NEGLIGIBLE, TYPICAL = 1e-5, 20.0
# What local effects know of rows without a value, and effects hand on.
MISSING_EFFECTS = (
    "n_missing",
    "n_beyond",
    "missing_effect",
    "missing_effect_se",
    "missing_spread",
    "missing_reference",
)
# What estimates are made of, which is NaN for a constant feature; and the first of all, in order.
STATE = ("heterogeneity", "moments", "bin_left", "bin_right", "edge_value")
FIRST = ("effect", "heterogeneity", "curve", "average_effect", "heterogeneity_output", "n_obs")
# Facts about an estimator that travel with its variable, beside its names and units.
FACTS: dict[str, dict[str, str | int | float]] = {
    "effect": {"estimator": "mean of the local effects, math [5]"},
    "heterogeneity": {"estimator": "standard deviation of the residuals, math [6]", "ddof": 1},
    "spread": {"estimator": "standard deviation of residuals, math [66]"},
    "slope": {"estimator": "least squares, math [22]"},
    "heterogeneity_output": {"estimator": "math [10]", "ddof": 1},
}


def dataset(
    local: xr.Dataset,
    rule: BinRule,
    centering: str,
    weighting: str,
    states: Sequence[Estimates],
    n_rows: int,
) -> xr.Dataset:
    """Estimates from the edges and moments of all features, and these, labelled."""
    names = next((tuple(row) for row in states if row), STATE)
    arrays, n_bins = padded_estimates(states, names)
    about = {"centering": centering, "weighting": weighting}
    state = {name: variable(name, values) for name, values in arrays.items()}
    count = {"n_bins": variable("n_bins", n_bins, EFFECT, ("feature",))}
    estimates = estimates_of(AllFeatures(dataset_of(state | count, {}, about)))
    # In the order in which they are printed.
    arrays = {name: (estimates | arrays)[name] for name in dict.fromkeys([*FIRST, *arrays])}
    facts, lines = dict(FACTS), dict[str, Any]()
    if "slope" in names:
        facts |= {"heterogeneity": FACTS["heterogeneity"] | {"ddof": "1; 2 where slope is not 0"}}
    if "squares" in names:
        lines["square_moment"] = ("square_moment", list(SQUARE_MOMENTS), {"long_name": "product"})
    if "weight_products" in names:
        attrs = {"long_name": "product"}
        lines["weight_product"] = ("weight_product", list(WEIGHT_PRODUCTS), attrs)
    if weighting == "axis":
        facts |= {"effect": {"estimator": "average of the local effects along the bin, math [12]"}}
    method = Method("rhale", describe(rule), centering, n_rows, MISSING_EFFECTS)
    return effects_of(local, arrays, n_bins, facts, method, lines)


class Method(NamedTuple):
    """How the effects of a result were made.

    ``rule`` is the name of the rule for bins and its parameters, ``handed_on`` the variables of the
    local effects that belong to the effects too.
    """

    name: str
    rule: tuple[str, str]
    centering: str
    n_rows: int
    handed_on: Sequence[str]


def padded_estimates(
    rows: Sequence[Estimates], names: Sequence[str]
) -> tuple[dict[str, NDArray[Any]], IntArray]:
    """Estimates of all features, padded to the one with the most bins, and numbers of bins.

    Of a constant feature, whose row is empty, the ``names`` are NaN.
    """
    n_bins = np.array([np.size(row["bin_left"]) if row else 0 for row in rows])
    max_bins = max(int(n_bins.max()), 1)
    n_edges = max(max(np.size(row.get("edge_value", 0)) for row in rows), max_bins + 1)
    each = [row or dict.fromkeys(names, np.nan) for row in rows]
    return pad_features(each, {"bin": max_bins, "edge": n_edges}), n_bins


def effects_of(
    local: xr.Dataset,
    arrays: Mapping[str, NDArray[Any]],
    n_bins: IntArray,
    facts: Mapping[str, Mapping[str, str | int | float]],
    method: Method,
    more: Mapping[str, Any] | None = None,
) -> xr.Dataset:
    """Estimates of all features in the schema of effects.

    ``more`` are coordinates of further dimensions.
    """
    edges = arrays["edge_value"]
    max_bins, n_edges = arrays["bin_left"].shape[1], edges.shape[1]
    facts = {**facts, "curve": {"centering": method.centering}}
    variables = {
        name: variable(name, array, **facts.get(name, {})) for name, array in arrays.items()
    }
    about_bins = {name: variables.pop(name) for name in ("bin_left", "bin_right", "edge_value")}
    return method_as_attribute(
        dataset_of(
            {
                **variables,
                **_numerical_errors(local, edges, method.n_rows),
                **{name: local.variables[name] for name in method.handed_on if name in local},
                "n_bins": variable("n_bins", n_bins, EFFECT, ("feature",)),
            },
            {
                **_feature_coordinates(local, n_bins),
                "bin": counted("bin", max_bins, "bin"),
                "edge": counted("edge", n_edges, "edge of a cell"),
                **about_bins,
                "moment": ("moment", list(FIELDS), {"long_name": "sum or mean"}),
                **(more or {}),
            },
            _attributes(local, method),
        )
    )


def _numerical_errors(local: xr.Dataset, edges: FloatArray, n_rows: int) -> dict[str, xr.Variable]:
    """Below which differences of local effects are none, and the error of their means (math [1]).

    Where rounding of the answers is coarse it makes no difference 0: it is part of the spread, and
    of the mean of n rows by its root. An interpolated effect has the error of the rule.
    """
    variables = local.variables
    limit = variables["local_effect_error"]
    if "numerical_error" in variables:
        return {name: variables[name] for name in ("local_effect_error", "numerical_error")}
    error = np.nan_to_num(limit.values)
    span = np.nan_to_num(np.fmax.reduce(edges, axis=1) - np.fmin.reduce(edges, axis=1))
    answers = local.attrs.get("answer_range", 0.0) or np.inf
    coarse = error * span > NEGLIGIBLE * answers
    interpolated = np.zeros(len(error), dtype=bool)
    if "cell_value" in variables:
        cells = ~np.isnan(variables["cell_value"].transpose("feature", ...).values).all(axis=1)
        interpolated = cells & (np.array(methods_of(local)) != "finite_difference")
    bias = variables["local_effect_bias"].values if "local_effect_bias" in variables else 0 * error
    of_rows = error / (TYPICAL * np.sqrt(n_rows))
    of_mean = np.where(coarse, of_rows + bias, np.where(interpolated, bias, 0.0))
    limit = limit.copy(data=np.where(coarse | interpolated, 0.0, limit.values))
    return {
        "local_effect_error": limit,
        "numerical_error": xr.Variable(*variable("numerical_error", of_mean)),
    }


def _feature_coordinates(local: xr.Dataset, n_bins: IntArray) -> dict[str, Any]:
    # Where a feature is in the table matters to its local effects alone.
    coords = {str(name): local.variables[name] for name in local.coords if name != "feature_column"}
    kinds = np.where(n_bins > 0, coords["feature_kind"].values, "constant")
    return {
        **{name: coord for name, coord in coords.items() if {*coord.dims} <= {"feature"}},
        "feature_kind": ("feature", kinds),
        METHOD: ("feature", np.array(methods_of(local))),
    }


def _attributes(local: xr.Dataset, method: Method) -> dict[str, Any]:
    rule_name, parameters = method.rule
    return {
        "method": method.name,
        "bin_rule": rule_name,
        "bin_parameters": parameters,
        "closed": "left; the last bin on both sides",
        "centering": method.centering,
        "weight_kind": local.attrs.get("weight_kind", "none"),
        "output_name": local.attrs.get("output_name", "output"),
        "output_units": local.attrs.get("output_units", ""),
        **labels_kept(local),
        **{name: local.attrs[name] for name in MODEL_FACTS if name in local.attrs},
        "n_rows": method.n_rows,
        "software": software(),
    }
