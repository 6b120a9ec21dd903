"""Effects, curves and average effects with their covariance, as `hypotheses` needs them."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from rhale_stats.arguments.survey import row_groups
from rhale_stats.arguments.times import are_dates, date_texts
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.arrays.survey import SamplingDesign
from rhale_stats.effects.clusters import Clusters
from rhale_stats.effects.directions import (
    Influences,
    estimate_changes,
    group_influences,
    row_influences,
)
from rhale_stats.effects.errors import opened, vcov
from rhale_stats.effects.fit import bin_degrees, features_of
from rhale_stats.effects.intervals import estimates
from rhale_stats.effects.parameters import row_covariances
from rhale_stats.inference.combinations import Estimates, correlated, refuse_beside
from rhale_stats.local.rows import columns, is_used_row
from rhale_stats.printing.text import bin_labels, holds_model
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
from rhale_stats.schema.parts import features_by_rows, has_own_rows

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
        influences=None
        if local is None
        else _influences(effect, *features[0], estimand, local, groups),
    )


def _influences(
    effect: xr.Dataset,
    row: FeatureResult,
    fit: CurveErrors | None,
    estimand: str,
    local: xr.Dataset,
    groups: Any,
) -> FloatArray:
    """Influences of rows, or of groups of them, on what is estimated of one feature."""
    if is_grouped(effect) != (groups is not None):
        raise ValueError("groups must be given if std_error was given them, and only then.")
    if holds_model(source := str(effect["effect_se"].attrs["source"])):
        raise ValueError(
            f"effect must have standard errors of the rows for several features or outputs; these "
            f"are of {source}. averages has both."
        )
    local, design = check_local(local), None
    n_rows = local.sizes["obs"]
    code: IntArray = np.arange(n_rows)
    if groups is not None:
        weight = local["weight"].values if "weight" in local else None
        used = np.ones(n_rows, dtype=bool)
        grouped = row_groups(groups, row_labels(local), used, "groups", weight=weight)
        if isinstance(grouped, SamplingDesign):
            design, grouped = grouped, grouped.cluster
        code = grouped
    n_units = int(code.max()) + 1
    sizes = {"effect": row.sizes["bin"], "curve": row[row.curve_name].size, "average_effect": 1}
    if fit is None:
        return np.zeros((n_units if design is None else len(design.factor), sizes[estimand]))
    if has_own_rows(local):
        rows = next(rows for rows in features_by_rows(local) if row.name in rows.names)
        local, code = rows.select(local, local), code[rows.rows]
    used = is_used_row(local, effect)
    clusters = Clusters(columns(local.isel(obs=used)), local, code[used], n_units, design)
    clusters.check(row)
    if groups is None:
        none = np.zeros((n_units, 0))
        influences = Influences(*row_influences(row, fit, clusters), none)
    else:
        influences = group_influences(row, fit, clusters)
    gradients = estimate_changes(influences, row, fit)
    out = gradients.effect if estimand == "effect" else gradients.average
    if estimand == "curve":
        out = np.zeros((len(out), sizes["curve"]))
        out[:, fit.cells.edge_stretch] = gradients.cell_curve
    if clusters.rows.frequency and groups is None:
        # A row of a frequency weight is as many rows, whose squares are added.
        counts = np.ones(n_units)
        counts[code[used]] = clusters.rows.weight
        out = out / np.sqrt(counts)[:, None]
    return out


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
    influences = np.concatenate(
        [_influences(effect, *part, "average_effect", local, groups) for part in features], axis=1
    )
    return Estimates(
        feature_names(effect),
        average.values,
        correlated(influences, np.asarray(average.se)),
        np.asarray(average.degrees, dtype=np.float64),
        average.facts.units,
        average.facts.source,
        "average effects",
        influences=influences,
    )
