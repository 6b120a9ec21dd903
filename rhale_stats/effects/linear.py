"""Effects, curves and average effects with their covariance, as `hypotheses` needs them."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from rhale_stats.arguments.rows import row_codes
from rhale_stats.arguments.times import are_dates, date_texts
from rhale_stats.arrays.delta import summed
from rhale_stats.effects.errors import opened, vcov
from rhale_stats.effects.intervals import estimates
from rhale_stats.inference.combinations import Estimates, refuse_beside
from rhale_stats.inference.estimate import Estimate
from rhale_stats.printing.text import bin_labels
from rhale_stats.schema.checks import check_local
from rhale_stats.schema.features import (
    feature_names,
    feature_position,
    given_feature,
    is_grouped,
    units_in,
)
from rhale_stats.schema.identity import row_labels
from rhale_stats.schema.levels import is_categorical, level_names


def for_hypotheses(
    effect: xr.Dataset,
    feature: str | int | None,
    estimand: str | None,
    local: xr.Dataset | None,
    groups: Any,
) -> Estimates:
    """Effects of the bins, the curve at the edges, or the average effects of all features."""
    estimand = estimand or "effect"
    effect, features = opened(effect)
    every = estimates(effect, features)
    if estimand == "average_effect":
        return _average_effects(effect, every["average_effect"], feature, local, groups)
    refuse_beside(f"of={estimand!r}", local=local, groups=groups)
    if feature is None and effect.sizes["feature"] == 1:
        feature = 0
    feature = given_feature(feature, "hypotheses(effect, feature='dose')")
    position, covariance = feature_position(effect, feature), vcov(effect, feature, estimand)
    row, size = features[position][0], len(covariance)
    names = bin_labels(row)
    if estimand == "curve":
        edges = row["edge_value"].values
        names = level_names(row) if is_categorical(row) else [f"{edge:.6g}" for edge in edges]
        if are_dates(units_in(row)):
            names = date_texts(edges, units_in(row))
    name = feature_names(effect)[position]
    return Estimates(
        names,
        np.asarray(row[estimand].values, dtype=np.float64),
        covariance.values,
        np.asarray(every[estimand].degrees)[position][:size],
        str(effect[estimand].attrs["units"]),
        str(covariance.attrs["source"]),
        f"the effects of {name}" if estimand == "effect" else f"the curve of {name}",
    )


def _average_effects(
    effect: xr.Dataset, average: Estimate, feature: Any, local: xr.Dataset | None, groups: Any
) -> Estimates:
    """Average effects of all features; their correlations are those of the rows, or of groups."""
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
    weight = local["weight"].values if "weight" in local else np.ones(len(values))
    if not np.isfinite(values[weight > 0]).all():
        raise ValueError("local must hold a local effect of every row for of='average_effect'.")
    values = np.where(weight[:, None] > 0, values, 0.0)
    influences = weight[:, None] * (values - np.average(values, axis=0, weights=weight))
    if local.attrs.get("weight_kind") == "frequency":
        influences = influences / np.sqrt(np.maximum(weight, 1e-300))[:, None]
    if groups is not None:
        every = np.ones(len(values), dtype=bool)
        influences = summed(influences, row_codes(groups, row_labels(local), every, "groups"))
    size = np.sqrt(np.sum(influences**2, axis=0))
    with np.errstate(invalid="ignore", divide="ignore"):
        correlation = np.nan_to_num(influences.T @ influences / np.outer(size, size))
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
