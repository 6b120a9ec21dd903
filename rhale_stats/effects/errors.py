"""Standard errors of effects in bins by the central limit theorem (math section 5)."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from rhale_stats.arguments.survey import GroupsOrDesign
from rhale_stats.arguments.words import warn
from rhale_stats.arrays import accumulate, influence
from rhale_stats.arrays.binning import bin_index
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.effects.cluster_robust import (
    MIN_GROUPS,
    Clusters,
    Groups,
    GroupsInChunks,
    errors_of_groups,
)
from rhale_stats.effects.delta_method import with_parameters, without_parts
from rhale_stats.effects.fit import (
    GROUP_COVARIANCES,
    GROUP_DEGREES,
    SKEWNESS,
    SOURCE,
    TARGETS,
    curve_target,
    effect_variance,
    features_of,
    row_skewness,
    spread_rows,
)
from rhale_stats.effects.spread import spread_errors
from rhale_stats.models.parametric import Fitted
from rhale_stats.schema.all_features import AllFeatures
from rhale_stats.schema.checks import check_effect, check_local, is_chunked
from rhale_stats.schema.curves import CurveErrors
from rhale_stats.schema.feature_result import (
    FeatureResult,
    Result,
    all_features,
    each_feature,
    has_moments,
    keep_features,
    one_feature,
)
from rhale_stats.schema.features import given_feature, is_of_outcome, stores_errors
from rhale_stats.schema.levels import categorical_features
from rhale_stats.schema.padding import Estimates, pad_features
from rhale_stats.schema.variables import variable, with_variables, without


def values_at(row: FeatureResult, z: FloatArray) -> dict[str, FloatArray]:
    """Effect, heterogeneity and curve of one feature; NaN outside its bins."""
    edges = row.bin_edges
    inside = (z >= edges[0]) & (z <= edges[-1])
    k = bin_index(edges, z)
    return {
        "effect": np.where(inside, row.effect_at(z, k), np.nan),
        "heterogeneity": np.where(inside, row["heterogeneity"].values[k], np.nan),
        "curve": row.curve.evaluate(z),
    }


def errors_at(row: FeatureResult, z: FloatArray) -> dict[str, Any]:
    """Standard errors of the same and of the average effect, by name, as far as they are known.

    By rows from the moments of the result; by groups of rows those that the result holds.
    """
    edges = row.bin_edges
    inside = (z >= edges[0]) & (z <= edges[-1])
    k = bin_index(edges, z)
    if has_moments(row) and "n_groups" not in row.attrs:
        fit, noise, together = row.fit, row.bin_noise, row.together
        effect_se = np.sqrt(row.of_bins(effect_variance(together)))
        slope_se = np.sqrt(noise.slope)
        shared = _covariance_of(row, effect_se, slope_se)
        if shared is None:
            shared = noise.covariance + row.pieces.away() * noise.slope
        spread_se = row.of_bins(heterogeneity_errors(together))
        average_se = float(average_errors(together)[row.position])
        ends = fit.pieces.edges
        has_curve = (z >= ends[0]) & (z <= ends[-1])
        curve_se = np.full(len(z), np.nan)
        curve_se[has_curve] = np.sqrt(np.maximum(fit.variance(z[has_curve]), 0.0))
    elif "curve_se" in row and "rows" in str(row["curve_se"].attrs.get("source", "rows")):
        effect_se, spread_se = own_error(row, "effect_se"), own_error(row, "heterogeneity_se")
        slope_se = own_error(row, "slope_se") if "slope_se" in row else np.zeros(len(edges) - 1)
        average_se, curve_se = float(own_error(row, "average_effect_se")), _between(row, z)
        shared = _stored_covariance(row, effect_se, slope_se)
    else:
        return {}
    away = z - (edges[k] + edges[k + 1]) / 2
    square = effect_se[k] ** 2 + away**2 * np.nan_to_num(slope_se)[k] ** 2
    square += 2 * away * np.nan_to_num(shared)[k]
    return {
        "effect": np.where(inside, np.sqrt(np.maximum(square, 0.0)), np.nan),
        "heterogeneity": np.where(inside, spread_se[k], np.nan),
        "curve": curve_se,
        "average_effect": average_se,
    }


def _covariance_of(
    row: FeatureResult, effect_se: FloatArray, slope_se: FloatArray
) -> FloatArray | None:
    """Covariance of the effect in the middle of every bin with its slope, of their correlation."""
    correlation = row.effect_slope_correlation
    return None if correlation is None else correlation * effect_se * slope_se


def _stored_covariance(
    row: FeatureResult, effect_se: FloatArray, slope_se: FloatArray
) -> FloatArray:
    """Covariances of effects and slopes, from errors that the result holds."""
    if "effect_slope_cov" in row and "effect_se_rows" not in row:
        return np.diagonal(row["effect_slope_cov"].values)
    covariance = _covariance_of(row, effect_se, slope_se)
    if covariance is not None:
        return covariance
    # As if slopes and the means of their rows were uncorrelated.
    bound = effect_se * slope_se
    return np.clip(row.pieces.away() * slope_se**2, -bound, bound)


def own_error(row: Result, name: str) -> FloatArray:
    """A standard error that the result holds: its part by rows, where it also has one by models."""
    part = f"{name}_rows"
    return np.asarray(row[part if part in row else name].values, dtype=np.float64)


def _between(row: FeatureResult, z: FloatArray) -> FloatArray:
    """Standard errors of the curve: between two edges at most the mean of theirs."""
    values = own_error(row, "curve_se")
    is_known = np.isfinite(values)
    if not is_known.any():
        return np.full(len(z), np.nan)
    return np.asarray(np.interp(z, row.edges[is_known], values[is_known], np.nan, np.nan))


# --- standard errors of effects in bins by the central limit theorem ------------------------------


def std_error(
    effect: xr.Dataset,
    local: xr.Dataset | None = None,
    groups: GroupsOrDesign | None = None,
    fitted: Fitted | None = None,
) -> xr.Dataset:
    """`std_error` of effects in bins, by rows or by groups of rows, and by parameters."""
    effect = check_effect(effect)
    alone = local is None and groups is None and fitted is None
    if is_of_outcome(effect) or (alone and stores_errors(effect)):
        return effect  # of the outcome, by groups or by parameters: as they were made
    if local is not None:
        local = check_local(local, in_chunks=fitted is None)
    out = _add_errors(_check_moments(without_parts(effect)), local, groups)
    if fitted is None or fitted.uncertainty == "rows":
        return out
    if local is None:
        how = "std_error(effect, local, model=results, X=X)"
        if effect.attrs["method"] == "ale":
            how = (
                f"local = ale_local_effects(results, X), effect = ale_from_local(local), then {how}"
            )
        raise ValueError(f"local must be given with model; got None. Use {how}.")
    return with_parameters(out, local, groups, fitted)


def _check_moments(effect: xr.Dataset) -> xr.Dataset:
    """The effect; raise ``ValueError`` unless it has the moments that standard errors need."""
    if "debiased" in effect.attrs:
        raise ValueError(
            "effect must be what rhale returned; this one is from debias, which has its standard "
            "errors already."
        )
    if not has_moments(effect):
        raise ValueError(
            "effect must hold the moments that standard errors need, as rhale and ale return them; "
            "this one has none."
        )
    return effect


def _add_errors(
    effect: xr.Dataset,
    local: xr.Dataset | None,
    groups: GroupsOrDesign | None,
) -> xr.Dataset:
    """The effect with standard errors of all features."""
    levels = categorical_features(effect)
    clusters: Groups | None = None
    if groups is None:
        if levels and stores_errors(effect):
            raise ValueError(
                f"effect must be what ale returned where features have levels, here "
                f"{', '.join(map(repr, levels))}; this one holds covariances by groups or "
                f"parameters. Make it again."
            )
        source = SOURCE
        arrays = _row_errors(effect)
    else:
        if local is None:
            raise ValueError(
                "local must be given with groups: std_error(effect, local, groups=groups), with "
                "local = local_effects(model, X); or rhale(model, X, groups=groups)."
            )
        kind = GroupsInChunks if is_chunked(local) else Clusters
        clusters = kind.of_effect(local, effect, groups)
        source = clusters.source
        rows = errors_of_groups(features_of(effect), clusters)
        n_each = [float(np.max(row.get("effective_groups", np.inf))) for row in rows]
        effective = min(filter(np.isfinite, n_each), default=np.inf)
        if effective < MIN_GROUPS:
            _warn_of_few(clusters.n_groups, effective)
            source += f" (worth {effective:.1f} of one size)"
        arrays = pad_features(rows, effect.sizes)
    _add_numerical_error(effect, arrays)
    facts = {"source": source, "kind": "central limit theorem"}
    of_curve = curve_target(str(effect.attrs["centering"]))
    targets = {**TARGETS, "curve_se": of_curve, "curve_cov": of_curve}
    targets["effect_cov"] = TARGETS["effect_se"]
    targets["slope_cov"] = TARGETS["slope_se"]
    targets["effect_slope_cov"] = f"{TARGETS['effect_se']}; and slope of the effect in the bin"
    targets["curve_slope_cov"] = f"{of_curve}; and slope of the effect in the bin"
    # Intervals and bands were of other standard errors.
    of_others = [str(name) for name in effect.data_vars if str(name).endswith(("_ci", "_band"))]
    of_others += SKEWNESS
    # Degrees of freedom come after what they belong to.
    last = (*GROUP_DEGREES, *SKEWNESS)
    targets |= {name: targets.get(f"{name.rpartition('_')[0]}_se", "") for name in last}
    out = with_variables(
        without(effect, *of_others),
        {
            name: variable(name, array, target=targets[name], **facts)
            for name, array in arrays.items()
        }
        | spread_errors(effect, clusters),
    )
    if clusters is not None:
        # Degrees of freedom are one less.
        design = clusters.design
        return out.assign_attrs(
            n_groups=clusters.n_groups if design is None else int(design.degrees) + 1
        )
    # What earlier groups left behind.
    out.attrs.pop("n_groups", None)
    out = without(out, "feature_n_groups", *GROUP_DEGREES)
    out = out if levels else without(out, *GROUP_COVARIANCES)
    keep_features(out, effect)
    return out


def _row_errors(effect: xr.Dataset) -> dict[str, FloatArray]:
    """Standard errors by rows of all features, by name, as they are in the Dataset."""
    together = all_features(effect)
    start = influence.edge_loadings(together.pieces_of_curves, "start")
    start_parts = [influence.parts(side, together.noise_of_curves) for side in start]
    of_bins = {
        "effect_se": np.sqrt(effect_variance(together)),
        **({"slope_se": np.sqrt(together.bin_noise.slope)} if "slope" in effect else {}),
        "heterogeneity_se": heterogeneity_errors(together),
    }
    at_edges = {
        "curve_se": together.variance_at_edges,
        "curve_se_start": accumulate.sums_at_edges(*start_parts),
    }
    errors = {
        **{name: together.padded(values) for name, values in of_bins.items()},
        **{name: together.known_at_edges(np.sqrt(values)) for name, values in at_edges.items()},
        "average_effect_se": average_errors(together),
        **row_skewness(together),
    }
    for name in SKEWNESS:
        # Steps between levels have none.
        errors[name][together.has_levels] = np.nan
        if together.has_levels.all():
            del errors[name]
    for feature in np.flatnonzero(together.has_levels).tolist():
        for name, values in _level_errors(one_feature(effect, feature)).items():
            place: tuple[int | slice, ...] = (feature, *map(slice, np.shape(values)))
            errors[name][place] = values
    return errors


def heterogeneity_errors(together: AllFeatures) -> FloatArray:
    """Standard errors of the heterogeneities of all bins, (bin,)."""
    n, fourth = together.n_effective, together.residuals.fourth_moment
    spread_se = accumulate.heterogeneity_se(together.heterogeneity**2, fourth, n)
    if together.squares is None:
        return spread_se
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(spread_se * np.sqrt(n / spread_rows(together)))


def average_errors(together: AllFeatures) -> FloatArray:
    """Standard errors of the average effects of all features, (feature,)."""
    n, bins = together.padded(together.n_effective, 0.0), together.pieces
    if together.squares is not None:
        return accumulate.weighted_average_se(bins, together.padded(together.squares, 0.0), n)
    variance = together.padded(together.heterogeneity**2)
    squares = accumulate.mean_square(variance, bins, n)
    return accumulate.average_effect_se(bins.mean, squares, bins.share, n)


def _level_errors(row: FeatureResult) -> Estimates:
    """Standard errors of steps and of the curve over levels, from what was stored with them."""
    effect_cov, curve_cov = row.effect_cov, row["curve_cov"].values
    start = np.tri(len(curve_cov), len(effect_cov), -1)
    moments = row.residuals.fourth_moment, row.n_effective
    return {
        "effect_se": np.sqrt(np.diagonal(effect_cov)),
        **({"slope_se": np.zeros(len(effect_cov))} if "slope" in row else {}),
        "heterogeneity_se": accumulate.heterogeneity_se(row["heterogeneity"].values ** 2, *moments),
        "curve_se": np.sqrt(np.maximum(np.diagonal(curve_cov), 0.0)),
        "curve_se_start": np.sqrt(np.maximum(np.diagonal(start @ effect_cov @ start.T), 0.0)),
        "average_effect_se": float(row["average_effect_se"]),
    }


def vcov(effect: xr.Dataset, feature: str | int | None = None, what: str = "curve") -> xr.DataArray:
    """`vcov` of the effects or of the curve of one feature."""
    effect = with_std_error(effect)
    feature = given_feature(feature, "vcov(effect, 'dose')", effect)
    row = one_feature(effect, feature)
    dim = "edge" if what == "curve" else "bin"
    if what == "curve":
        values = covariance_at_edges(row, row.fit if row.sizes["bin"] else None)
    elif row.has_covariance:
        values = row.effect_cov
    else:
        values = np.diag(row["effect_se"].values ** 2)
    se = row["curve_se" if what == "curve" else "effect_se"]
    numbers = np.arange(len(values))
    return xr.DataArray(
        values,
        {dim: numbers, f"{dim}_other": numbers},
        (dim, f"{dim}_other"),
        "covariance",
        {
            "long_name": f"covariance of the {what}",
            "target": se.attrs["target"],
            "source": se.attrs["source"],
            "feature": row.name,
        },
    )


def covariance_at_edges(row: FeatureResult, fit: CurveErrors | None) -> FloatArray:
    """Covariance of the curve of one feature at all edges of its cells; NaN where it has none."""
    if row.has_covariance and "curve_cov" in row:
        return np.asarray(row["curve_cov"].values)
    covariance = np.full((len(row.edges),) * 2, np.nan)
    if fit is not None:
        stretch = fit.cells.edge_stretch
        covariance[stretch, stretch] = fit.covariance(fit.pieces.edges)
    return covariance


def check_has_errors(effect: xr.Dataset) -> None:
    """Raise ``ValueError`` unless an effect has standard errors, or what they are made from."""
    _check_not_debiased(effect)
    if "curve_se" not in effect:
        _check_moments(effect)


def with_std_error(effect: xr.Dataset) -> xr.Dataset:
    """The effect with its standard errors, which may be made here."""
    effect = check_effect(effect)
    check_has_errors(effect)
    return effect if "curve_se" in effect else _add_errors(effect, None, None)


def _check_not_debiased(effect: xr.Dataset) -> None:
    if "debiased" in effect.attrs:
        raise ValueError(
            "effect must be what rhale or std_error returned; this one is from debias, which keeps "
            "no moments. Pass the effect that it was made from."
        )


def _warn_of_few(n_groups: int, effective: float) -> None:
    """Warn where groups are few, or a few of them have most of the rows."""
    warn(
        f"groups are few: {n_groups} groups of these sizes are worth {effective:.1f} of one size "
        f"(1 over the sum of squared shares of the rows). Intervals may be too short, above all "
        f"where effects of groups are skewed; P of wald_test is not below that of a wild cluster "
        f"bootstrap. Normal theory needs {MIN_GROUPS} or more."
    )


def _add_numerical_error(effect: xr.Dataset, arrays: dict[str, FloatArray]) -> None:
    """Add numerical errors of the mean to standard errors: of a curve, along the axis."""
    error = effect["numerical_error"].values if "numerical_error" in effect else np.zeros(1)
    if not error.any():
        return
    edges, how = effect["edge_value"].values, effect.attrs["centering"]
    if how in ("mean", "integral"):
        means = [float(np.nansum(row.weight_share * row.x_mean)) for row in each_feature(effect)]
        centre = np.array(means)[:, None]
    else:
        centre = edges[:, :1] if how == "start" else np.array([[float(how)]])
    arrays["curve_se"] = np.hypot(arrays["curve_se"], error[:, None] * np.abs(edges - centre))
    for name in ("effect_se", "average_effect_se"):
        along = error.reshape(-1, *[1] * (arrays[name].ndim - 1))
        arrays[name] = np.hypot(arrays[name], along)
