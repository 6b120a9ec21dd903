"""Standard errors of effects that hold the parameters of a fitted model (math [80])."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import xarray as xr

from rhale_stats.arguments.survey import GroupsOrDesign
from rhale_stats.arrays import delta, intervals
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.effects.anova_test import RIGID
from rhale_stats.effects.clusters import Clusters
from rhale_stats.effects.directions import (
    Gradients,
    added,
    direction_influences,
    estimate_changes,
    group_influences,
)
from rhale_stats.effects.fit import (
    at_edges,
    bin_degrees,
    curve_degrees,
    features_of,
    group_degrees,
    group_overlap,
    noise_in_the_middle,
    row_degrees,
    spread_degrees,
)
from rhale_stats.effects.targets import SKEWNESS, SOURCE
from rhale_stats.inference.parameters import ADDED, KIND, ROWS_FIXED, TOGETHER, known_influence
from rhale_stats.local.parameters import Derivatives
from rhale_stats.local.rows import is_used_row, row_numbers
from rhale_stats.models.parametric import ROW_NUMBER, Fitted
from rhale_stats.schema.curves import CurveErrors, cell_sizes
from rhale_stats.schema.feature_result import FeatureResult
from rhale_stats.schema.features import is_grouped
from rhale_stats.schema.padding import Estimates, pad_features
from rhale_stats.schema.variables import variable

# What a standard error by parameters is stored with, by the name of the estimate.
NAMES = {
    "effect": "effect",
    "slope": "slope",
    "heterogeneity": "heterogeneity",
    "curve": "curve",
    "cell_curve": "cell_curve",
    "average": "average_effect",
    "spread": "spread",
}


class ErrorRequest(NamedTuple):
    """A fitted model with the rows of its effects, and which uncertainty is wanted.

    ``influence`` is that of the rows of the fit on the directions of the parameters, where it is
    known.
    """

    derivatives: Derivatives
    clusters: Clusters
    uncertainty: str
    influence: FloatArray | None
    as_fitted: bool
    # Groups of all rows of the fit.
    codes: IntArray | None

    @classmethod
    def from_fit(
        cls, effect: xr.Dataset, local: xr.Dataset, groups: GroupsOrDesign | None, fitted: Fitted
    ) -> ErrorRequest:
        """The model and the groups of the rows: without groups every row is one of its own."""
        codes = row_numbers(local) if groups is None else groups
        derivatives, both = Derivatives.from_model(fitted, local), fitted.uncertainty == "both"
        clusters = Clusters.of_effect(local, effect, codes)
        influence = fitted.influence_of_rows() if both else None
        if clusters.design is not None:
            if not both:
                raise ValueError(
                    f"uncertainty must be 'both' or 'rows' with the design of a survey; got "
                    f"{fitted.uncertainty!r}. averages has the parameters alone."
                )
            known_influence(influence)
        return cls(
            derivatives,
            clusters,
            fitted.uncertainty,
            influence,
            fitted.as_fitted,
            fitted.codes,
        )

    def source(self, rows: str) -> str:
        """The source of a standard error, in words."""
        return "parameters" if self.uncertainty == "parameters" else f"{rows} and parameters"


def with_parameters(
    effect: xr.Dataset, local: xr.Dataset, groups: GroupsOrDesign | None, fitted: Fitted
) -> xr.Dataset:
    """An effect with standard errors of its rows gets those that hold the parameters."""
    request = ErrorRequest.from_fit(effect, local, groups, fitted)
    rows = [feature_errors(*feature, request) for feature in features_of(effect)]
    sizes = {dim: effect.sizes[dim] for dim in ("spread_bin",) if dim in effect.sizes}
    sizes |= {"part": 2, "component": len(fitted.model.directions())}
    results = pad_features(rows, effect.sizes["bin"], **cell_sizes(effect), **sizes)
    skewed = [name for name in SKEWNESS if name in effect]
    out = effect.drop_vars(skewed)
    if fitted.uncertainty == "both":
        out = out.assign({name: _diluted(effect[name], results) for name in skewed})
    variables = {}
    for name, values in results.items():
        stem = name.partition("_se")[0]
        for end in ("_cov", "_df", "_directions"):
            stem = stem.removesuffix(end)
        se = f"{stem}_se"
        attrs = effect[se].attrs if se in effect else {}
        facts = {"target": attrs.get("target", ""), "kind": KIND}
        source = str(attrs.get("source", SOURCE))
        part = {"_se_rows": source, "_se_model": "parameters"}
        ends = [text for end, text in part.items() if name.endswith(end)]
        facts["source"] = ends[0] if ends else request.source(source)
        variables[name] = variable(name, values, **facts)
    mark = fitted.model.fingerprint()
    if fitted.model.design is not None:  # what is not estimable has no value either
        stems = [name for name in NAMES.values() if name in out]
        of_model = {stem: variables[f"{stem}_se_model"][1] for stem in stems}
        out = out.assign({stem: out[stem].where(~np.isnan(of_model[stem])) for stem in stems})
        out.attrs |= fitted.model.facts()
    return out.assign(variables).assign_attrs(parameters=_how(request), fitted_model=mark)


def _diluted(skewness: xr.DataArray, results: Mapping[str, FloatArray]) -> xr.DataArray:
    """Skewness of errors of rows, to which those of parameters are added, which have none."""
    name = str(skewness.name).removesuffix("_skewness")
    rows, total = results[f"{name}_se_rows"], results[f"{name}_se"]
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(total > 0, np.minimum(rows / total, 1.0), 0.0)
    return skewness.copy(data=skewness.values * share**3)


def _how(request: ErrorRequest) -> str:
    if request.uncertainty == "parameters":
        return ROWS_FIXED
    return ADDED if request.influence is None else TOGETHER


def without_parts(effect: xr.Dataset) -> xr.Dataset:
    """The effect without what errors by parameters left behind."""
    if "parameters" not in effect.attrs:
        return effect
    ends = ("_se_rows", "_se_model", "_directions")
    parts = [name for name in effect.data_vars if str(name).endswith(ends)]
    out = effect.drop_vars([*parts, "spread_df"], errors="ignore")
    for fact in ("parameters", "fitted_model"):
        out.attrs.pop(fact, None)
    return out


def feature_errors(row: FeatureResult, fit: CurveErrors | None, request: ErrorRequest) -> Estimates:
    """Standard errors, covariances and degrees of freedom of one feature, by name."""
    if fit is None:
        return {}
    model = estimate_changes(
        direction_influences(row, fit, request.clusters, request.derivatives), row, fit
    )
    model = Gradients(*map(request.derivatives.model.estimable, model))
    rows = row_covariances(row, fit)
    none = {name: np.zeros_like(values) for name, values in rows.items()}
    alone = added(none, model, None, np.eye(len(model.effect)))
    total, shared, squares = alone, None, np.eye(len(model.effect))
    if request.influence is not None:
        shared, squares = _unconditional(row, fit, request)
        total = added(rows, model, shared, squares)
    elif request.uncertainty == "both":
        total = {name: rows[name] + alone[name] for name in rows}
    directions = _directions(row, fit, model, shared, squares)
    return {**_stored(row, fit, (rows, alone, total), request), **directions}


def _unconditional(
    row: FeatureResult, fit: CurveErrors, request: ErrorRequest
) -> tuple[Gradients, FloatArray]:
    """Products of the influences of groups of rows: on estimates and directions, and on these.

    Rows of the fit that the effect is not of move the parameters alone, as their groups do.
    """
    clusters, influence = request.clusters, request.influence
    assert influence is not None, "asked where it is known"
    if clusters.design is not None:
        of_fit = clusters.design.units_of_table(influence)
        units = group_influences(row, fit, clusters).contracted(of_fit)
        return estimate_changes(units, row, fit), of_fit.T @ of_fit
    numbers = request.derivatives.local[ROW_NUMBER].values
    # A row counts once, also where it has two halves.
    used, first = np.unique(numbers[is_used_row(clusters.local, row)], return_index=True)
    factor = request.derivatives.model.row_factor
    influence = delta.corrected(influence, clusters.n_groups, len(used), factor)
    by_group = np.zeros((clusters.n_groups, influence.shape[1]))
    np.add.at(by_group, clusters.group[first], influence[used])
    shared = estimate_changes(group_influences(row, fit, clusters).contracted(by_group), row, fit)
    if request.as_fitted:
        return shared, np.eye(influence.shape[1])
    every = influence if request.codes is None else delta.summed(influence, request.codes)
    return shared, every.T @ every


def _directions(
    row: FeatureResult,
    fit: CurveErrors,
    model: Gradients,
    shared: Gradients | None,
    squares: FloatArray,
) -> dict[str, FloatArray]:
    """What errors have in common with those of other effects of the model (`shared_with`).

    Along a direction: what the parameters do to the curve, and what rows do to both. Directions
    are such that the parameters' errors along them are independent, each of variance 1.
    """
    values, vectors = np.linalg.eigh(squares)
    values = np.where(values > RIGID * values[-1], values, np.inf)
    root = (vectors * np.where(np.isfinite(values), np.sqrt(values), 0.0)) @ vectors.T
    inverse = (vectors / np.sqrt(values)) @ vectors.T
    keys = ("cell_curve",) if row.has_cells else ("curve", "slope")
    out: dict[str, FloatArray] = {}
    for key in keys:
        changes = root @ getattr(model, key)
        rows = np.zeros_like(changes) if shared is None else inverse @ getattr(shared, key)
        # (estimate, part, direction), with the estimate along all edges.
        out[f"{key}_directions"] = _placed(np.stack([changes, rows]).transpose(2, 0, 1), key, fit)
    return out


def row_covariances(row: FeatureResult, fit: CurveErrors) -> dict[str, FloatArray]:
    """Covariances from the rows alone, of the result as it is."""
    n_bins, stored = row.sizes["bin"], row.has_covariance
    edges, cell_edges = fit.edge_slice, fit.cells.edge_stretch

    def covariance(name: str, otherwise: FloatArray) -> FloatArray:
        return np.asarray(row[name].values) if stored and name in row else otherwise

    none = np.zeros((n_bins, n_bins))
    slope, shared = none, none
    if "slope" in row and not row.is_categorical:
        noise = noise_in_the_middle(row)
        slope, shared = np.diag(noise.slope), np.diag(noise.covariance)
    cells = covariance("cell_curve_cov", np.zeros(0)) if row.has_cells else np.zeros(0)
    curve, of_all = covariance("curve_cov", np.zeros(0)), np.zeros((fit.n_bins + 1, n_bins))
    return {
        "effect": covariance("effect_cov", np.diag(row["effect_se"].values ** 2)),
        "slope": covariance("slope_cov", slope),
        "effect_slope": covariance("effect_slope_cov", shared),
        "curve_slope": covariance("curve_slope_cov", of_all)[edges],
        "curve": curve[edges, edges] if curve.size else fit.covariance(fit.edges),
        "cell_curve": cells[cell_edges, cell_edges]
        if cells.size
        else fit.covariance(fit.pieces.edges),
        "heterogeneity": row["heterogeneity_se"].values ** 2,
        "start": (row["curve_se_start"].values ** 2)[edges],
        "average": np.atleast_1d(float(row["average_effect_se"]) ** 2),
        "spread": row["spread_se"].values ** 2 if "spread" in row else np.zeros(0),
    }


def _stored(
    row: FeatureResult,
    fit: CurveErrors,
    parts: tuple[dict[str, FloatArray], dict[str, FloatArray], dict[str, FloatArray]],
    request: ErrorRequest,
) -> Estimates:
    """Standard errors, their parts, degrees of freedom and covariances, at all bins and edges.

    ``parts`` are covariances of rows, of parameters, and of what was asked for.
    """
    degrees, of_model = _degrees_of_rows(row, fit), request.derivatives.model.degrees
    total, both = parts[2], request.uncertainty == "both"
    out: dict[str, FloatArray | float] = {}
    for key, name in NAMES.items():
        if not _has(row, key):
            continue
        variances = [np.maximum(_diagonal(part[key]), 0.0) for part in parts]
        of_rows = variances[0] if both else np.zeros_like(variances[0])
        together = intervals.satterthwaite((of_rows, degrees[key]), (variances[1], of_model))
        for end, values in zip(("se_rows", "se_model", "se"), np.sqrt(variances), strict=True):
            out[f"{name}_{end}"] = _placed(values, key, fit)
        out[f"{name}_df"] = _placed(together, key, fit)
    out["curve_se_start"] = at_edges(np.sqrt(np.maximum(total["start"], 0.0)), fit)
    out["effect_overlap"] = _overlap(row, parts, of_model, both=both)
    return {**out, **_covariances(row, fit, total)}


def _has(row: FeatureResult, key: str) -> bool:
    if key == "cell_curve":
        return row.has_cells
    return key not in ("slope", "spread") or key in row


def _overlap(
    row: FeatureResult, parts: Sequence[dict[str, FloatArray]], of_model: float, *, both: bool
) -> FloatArray:
    """What the variances of two effects have in common: all of the model's, and the rows'."""
    rows, model = (np.maximum(_diagonal(part["effect"]), 0.0) for part in parts[:2])
    rows = rows if both else np.zeros_like(rows)
    # A bin of one row has no degree of freedom, and no standard error.
    degrees = bin_degrees(row)
    of_rows = np.diag(np.divide(1.0, degrees, out=np.zeros(len(degrees)), where=degrees > 0))
    if row.has_covariance and "n_groups" in row.attrs:
        of_rows = group_overlap(row)
    total = np.where(rows + model > 0, rows + model, 1.0)
    a, b = rows / total, model / total
    return np.asarray(np.outer(a, a) * of_rows + np.outer(b, b) / of_model)


def _covariances(row: FeatureResult, fit: CurveErrors, total: dict[str, FloatArray]) -> Estimates:
    out: dict[str, FloatArray | float] = {"effect_cov": total["effect"]}
    out["curve_cov"] = _placed(_placed(total["curve"], "curve", fit).T, "curve", fit)
    if row.has_cells:
        cells = _placed(total["cell_curve"], "cell_curve", fit)
        out["cell_curve_cov"] = _placed(cells.T, "cell_curve", fit)
    if "slope" in row:
        out["slope_cov"], out["effect_slope_cov"] = total["slope"], total["effect_slope"]
        out["curve_slope_cov"] = _placed(total["curve_slope"], "curve", fit)
    return out


def _diagonal(values: FloatArray) -> FloatArray:
    return np.diagonal(values) if values.ndim == 2 else values


def _placed(values: FloatArray, key: str, fit: CurveErrors) -> FloatArray:
    """Along all edges, where values are on the stretch with a curve."""
    if key == "average":
        return np.asarray(values[0])
    if key not in ("curve", "cell_curve"):
        return values
    size = fit.n_bins + 1 if key == "curve" else len(fit.cells.bin) + 1
    first = fit.edge_slice.start if key == "curve" else fit.cells.stretch.start
    out = np.full((size, *values.shape[1:]), np.nan)
    out[first : first + len(values)] = values
    return out


def _degrees_of_rows(row: FeatureResult, fit: CurveErrors) -> dict[str, FloatArray]:
    in_bins = spread_degrees(row)
    return {
        "effect": bin_degrees(row, fit.cells),
        "slope": group_degrees(row, "slope") if "slope_df" in row else in_bins,
        "heterogeneity": in_bins,
        "curve": curve_degrees(row, fit, fit.edges),
        "cell_curve": curve_degrees(row, fit, fit.pieces.edges),
        "average": np.atleast_1d(row_degrees(row)),
        "spread": _degrees_of_spread(row),
    }


def _degrees_of_spread(row: FeatureResult) -> FloatArray:
    if "spread" not in row:
        return np.zeros(0)
    degrees = np.asarray(row["spread_degrees"].values, dtype=np.float64)
    return np.full(len(degrees), row.attrs["n_groups"] - 1.0) if is_grouped(row) else degrees
