"""Effects, curves and average effects with their covariance, as `hypotheses` needs them."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from rhale_stats.arguments.survey import row_groups
from rhale_stats.arguments.times import are_dates, date_texts
from rhale_stats.arrays import delta
from rhale_stats.effects.errors import opened, vcov
from rhale_stats.effects.fit import bin_degrees, features_of
from rhale_stats.effects.intervals import estimates
from rhale_stats.effects.parameters import row_covariances
from rhale_stats.inference.combinations import Estimates, refuse_beside
from rhale_stats.printing.text import bin_labels
from rhale_stats.schema.checks import check_effect, check_local
from rhale_stats.schema.curves import CurveErrors
from rhale_stats.schema.feature_result import FeatureResult
from rhale_stats.schema.features import (
    feature_names,
    feature_position,
    given_feature,
    is_grouped,
    units_in,
)
from rhale_stats.schema.identity import row_labels
from rhale_stats.schema.levels import level_names

# How far from the middle of a bin its ends are looked at, in halves of its width: neighbours that
# are lines do not meet at their edge.
NEAR_ENDS = 0.998


def for_hypotheses(
    effect: xr.Dataset,
    feature: str | int | None,
    estimand: str | None,
    local: xr.Dataset | None,
    groups: Any,
) -> Estimates:
    """Effects of the bins, the curve at the edges, or the average effects of all features."""
    estimand = estimand or "effect"
    if estimand == "average_effect":
        return _average_effects(effect, feature, local, groups)
    refuse_beside(f"of={estimand!r}", local=local, groups=groups)
    effect = check_effect(effect)
    feature = given_feature(feature, "hypotheses(effect, feature='dose')", effect)
    effect, features = opened(effect.isel(feature=[feature_position(effect, feature)]))
    if estimand == "slope":
        return _along_axis(effect, *features_of(effect)[0])
    covariance, row = vcov(effect, 0, estimand), features[0][0]
    names, of_row = bin_labels(row), estimand
    edges = row["edge_value"].values
    if estimand == "curve":
        of_row = row.curve_name
        edges = row["cell_value" if row.has_cells else "edge_value"].values
        names = level_names(row) if row.is_categorical else [f"{edge:.6g}" for edge in edges]
        if are_dates(units_in(row)):
            names = date_texts(edges, units_in(row))
    [name] = feature_names(effect)
    return Estimates(
        names,
        np.asarray(row[of_row].values, dtype=np.float64),
        covariance.values,
        np.asarray(estimates(effect, features)[of_row].degrees)[0][: len(covariance)],
        str(effect[estimand].attrs["units"]),
        str(covariance.attrs["source"]),
        f"the effects of {name}" if estimand == "effect" else f"the curve of {name}",
        places=None if row.is_categorical or estimand == "effect" else edges,
    )


def _along_axis(effect: xr.Dataset, row: FeatureResult, fit: CurveErrors | None) -> Estimates:
    """Effects in the middle of bins, and near both ends of those that are lines."""
    if fit is None or row.is_categorical:
        raise ValueError(
            "feature must have numbers that vary; levels and constant features have no axis."
        )
    edges, n_bins = row["edge_value"].values, row.sizes["bin"]
    middle, half, slope = (edges[:-1] + edges[1:]) / 2, np.diff(edges) / 2, row.slopes
    linear = slope != 0
    k = np.repeat(np.arange(n_bins), 1 + linear)
    away = np.where(linear[k], NEAR_ENDS * half[k], 0.0)
    away[np.flatnonzero(np.diff(k) == 0)] *= -1
    of_effect = np.eye(n_bins)[k]
    loadings = np.hstack([of_effect, away[:, None] * of_effect])
    parts, degrees = row_covariances(row, fit), np.asarray(bin_degrees(row, fit.cells))
    shared = parts["effect_slope"]
    covariance = np.block([[parts["effect"], shared], [shared.T, parts["slope"]]])
    return Estimates(
        [f"{place:.6g}" for place in middle[k] + away],
        loadings @ np.concatenate([row["effect"].values, slope]),
        loadings @ covariance @ loadings.T,
        degrees[k],
        str(effect["effect"].attrs["units"]),
        str(effect["effect_se"].attrs["source"]),
        f"the effects of {row.name}",
        places=middle[k] + away,
        slopes=True,
    )


def _average_effects(
    effect: xr.Dataset, feature: Any, local: xr.Dataset | None, groups: Any
) -> Estimates:
    """Average effects of all features; their correlations are those of the rows, or of groups."""
    effect, features = opened(effect)
    average = estimates(effect, features)["average_effect"]
    refuse_beside("of='average_effect', which is of all features", feature=feature)
    if local is None:
        raise ValueError(
            "local must be given with of='average_effect': the average effects of two features "
            "come from the same rows. Pass the local effects that effect was made from."
        )
    if is_grouped(effect) != (groups is not None):
        raise ValueError("groups must be given if std_error was given them, and only then.")
    if average.facts.source != "rows" and groups is None:
        raise ValueError(
            f"effect must have standard errors of the rows for of='average_effect'; these are of "
            f"{average.facts.source}."
        )
    local, names = check_local(local), feature_names(effect)
    values = local["local_effect"].sel(feature=names).transpose("obs", "feature").values
    weight = local["weight"].values if "weight" in local else None
    if weight is not None:
        values = np.where(weight[:, None] > 0, values, 0.0)
    if not np.isfinite(values).all():
        raise ValueError("local must hold a local effect of every row for of='average_effect'.")
    frequency = local.attrs.get("weight_kind") == "frequency"
    if groups is None:
        units = delta.of_rows(values, weight, frequency=frequency)
    else:
        used = np.ones(len(values), dtype=bool)
        code = row_groups(groups, row_labels(local), used, "groups", weight=weight)
        units = delta.of_groups(values, weight, code, frequency=frequency)
    covariance = units.moved.T @ units.moved
    size = np.sqrt(np.diagonal(covariance))
    with np.errstate(invalid="ignore", divide="ignore"):
        correlation = np.nan_to_num(covariance / np.outer(size, size))
    se = np.asarray(average.se)
    return Estimates(
        names,
        average.values,
        correlation * np.outer(se, se),
        np.asarray(average.degrees, dtype=np.float64),
        average.facts.units,
        average.facts.source,
        "average effects",
    )
