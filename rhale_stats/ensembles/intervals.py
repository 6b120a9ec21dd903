"""Standard errors, intervals and bands of results of several models (math [85], [86])."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from rhale_stats.arguments.checks import check_choice
from rhale_stats.arrays import intervals
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.ensembles.labelled import (
    ON_GRID,
    SIZES,
    SUBSAMPLES,
    Origin,
    centre_of,
    check_ensemble,
    covariance_of,
    degrees_of,
    deviations,
    error_of,
    errors,
    estimated,
    facts_of,
    joint_of,
    mean_of,
    members_of,
    one_row,
    origin_of,
    own_errors,
    scaled,
)
from rhale_stats.inference.combinations import Estimates, refuse_beside
from rhale_stats.inference.estimate import (
    BOUNDS,
    BY_ERRORS,
    Variable,
    band,
    interval,
    joint_quantiles,
)
from rhale_stats.schema.features import given_feature
from rhale_stats.schema.variables import GRID_VALUE

PARTS = {"rows": "by the rows", "model": "by the model"}


def std_error(
    ensemble: xr.Dataset, local: object, groups: object, fitted: object = None
) -> xr.Dataset:
    """`std_error` of all estimates, with the parts of the model and of the rows."""
    ensemble = check_ensemble(ensemble)
    arguments = {"local": local, "groups": groups, "model": fitted}
    for name, argument in arguments.items():
        if argument is not None:
            raise ValueError(
                f"{name} must be left out for results of several models, whose spread is the "
                f"error. For groups of rows use bootstrap_refit(fit, data, groups=...)."
            )
    return with_errors(ensemble)


def with_errors(ensemble: xr.Dataset) -> xr.Dataset:
    """The ensemble with its standard errors; the same where it has them.

    Errors of single members by the rows make place for their mean over the members.
    """
    if "curve_se" in ensemble:
        return ensemble
    variables = {}
    for name in estimated(ensemble):
        facts, error = facts_of(ensemble, name, of_rows=True), error_of(ensemble, name)
        text, attributes = f"standard error of the {facts.long_name}", {"target": facts.target}
        attributes = {"units": facts.units, **attributes}
        about = {"long_name": text, **attributes, "source": facts.source}
        variables[f"{name}_se"] = (facts.dims, np.sqrt(error.variance), about)
        sources = {"rows": "rows", "model": facts_of(ensemble, name).source}
        for part, values in (("rows", error.rows), ("model", error.model)):
            if np.isfinite(error.rows).any():
                about = {
                    "long_name": f"{text}, {PARTS[part]}",
                    **attributes,
                    "source": sources[part],
                }
                variables[f"{name}_se_{part}"] = (facts.dims, np.sqrt(values), about)
        if np.isfinite(error.degrees).any():
            about = {"long_name": f"degrees of freedom of the {text}", "units": "1"}
            variables[f"{name}_df"] = (facts.dims, np.asarray(error.degrees), about)
    return ensemble.assign(variables)


def vcov(ensemble: xr.Dataset, feature: str | int | None, what: str) -> xr.DataArray:
    """Covariance of the curve, or of the effect, over (grid, grid_other)."""
    feature = given_feature(feature, "vcov(effect, 'dose')")
    ensemble = with_errors(check_ensemble(ensemble))
    if what not in estimated(ensemble):
        raise ValueError(f"of must be 'curve' for profiles of several models; got {what!r}.")
    row, facts = one_row(ensemble, feature), facts_of(ensemble, what)
    se = own_errors(row.dataset, what)[0]
    covariance = covariance_of(deviations(row.dataset, what)[:, 0], se)
    unknown = np.isnan(se)
    covariance[unknown], covariance[:, unknown] = np.nan, np.nan
    points = np.arange(len(row.z))
    return xr.DataArray(
        covariance,
        {"grid": points, "grid_other": points, "grid_value": ("grid", row.z, GRID_VALUE)},
        ("grid", "grid_other"),
        "covariance",
        {
            "long_name": f"covariance of the {facts.long_name}",
            "target": facts.target,
            "source": facts.source,
            "feature": row.name,
        },
    )


def for_hypotheses(
    ensemble: xr.Dataset, feature: str | int | None, variable: str | None, local: Any, groups: Any
) -> Estimates:
    """The curve of one feature along the grid, for `hypotheses`."""
    refuse_beside("results of several models", local=local, groups=groups)
    ensemble, name = with_errors(check_ensemble(ensemble)), variable or "curve"
    feature = given_feature(feature, "hypotheses(effect, feature='dose')", ensemble)
    covariance, row = vcov(ensemble, feature, name), one_row(ensemble, feature)
    return Estimates(
        row.levels or [f"{value:.6g}" for value in row.z],
        centre_of(row.dataset, name)[0],
        covariance.values,
        degrees_of(row.dataset, name)[0],
        facts_of(ensemble, name).units,
        str(covariance.attrs["source"]),
        f"the curve of {row.name}",
        places=None if row.levels else np.asarray(row.z, dtype=np.float64),
        slopes=name == "effect",
        influences=deviations(row.dataset, name)[:, 0],
    )


# --- intervals and bands of results of several models ---------------------------------------------


WORDS = {"confidence": "confidence interval", "credible": "credible interval"}
SPREAD = "interval of the spread of the models"
HOW = {
    "eti": "quantiles of the members, equal tails",
    "hdi": "shortest interval of the members (highest density)",
    "percentile": "refits, percentile",
    "basic": "refits, basic",
}
BY_MEMBERS = "largest standardised deviation of the members"
# Curves of which bands are made.
IN_BANDS = ("curve", "effect")


def confint(ensemble: xr.Dataset, boot: object, level: float, method: str | None) -> xr.Dataset:
    """`confint` of all estimates, pointwise."""
    ensemble = with_errors(check_ensemble(ensemble))
    if boot is not None:
        raise ValueError(
            "boot must be left out for results of several models: their members are the replicates."
        )
    origin = origin_of(ensemble)
    chosen = origin.methods[0] if method is None else method
    check_choice("method", chosen, origin.methods)
    variables = {}
    for name in estimated(ensemble):
        ends, how = _ends(ensemble, name, origin, level, chosen)
        facts = facts_of(ensemble, name, of_rows=chosen == "normal")
        variables[f"{name}_ci"] = _said(interval(facts, ends, level, how), origin)
    return ensemble.assign(variables).assign_coords(BOUNDS)


def _ends(
    ensemble: xr.Dataset, name: str, origin: Origin, level: float, method: str
) -> tuple[FloatArray, str]:
    """Ends (..., 2) of the intervals of one estimate, and how they are made."""
    centre = centre_of(ensemble, name)
    if method == "normal":
        half = intervals.student(level, degrees_of(ensemble, name)) * errors(ensemble, name)
        if name in SIZES:
            return intervals.log_scale(centre, half), f"{BY_ERRORS} on the log scale"
        return intervals.around(centre, half), BY_ERRORS
    values = scaled(ensemble, name)
    if method == "hdi":
        ends = shortest(values, level)
    elif method == "eti":
        ends = intervals.equal_tailed(values, level)
    else:
        ends = intervals.of_replicates(values, centre, level, method)
    how = f"{HOW[method]}, scaled to all rows" if origin.kind == SUBSAMPLES else HOW[method]
    return np.maximum(ends, 0.0) if name in SIZES else ends, how


def shortest(draws: FloatArray, level: float) -> FloatArray:
    """math [85]: shortest intervals with a share of the draws, (draw, ...) -> (..., 2)."""
    import arviz

    finite = np.where(np.isfinite(draws), draws, np.nan)
    dims = ("chain", "draw", *[f"dim_{number}" for number in range(draws.ndim - 1)])
    # By position: the share has another name before version 1.
    sample = xr.Dataset({"draws": (dims, finite[None])})
    interval = arviz.hdi(sample, level, skipna=True)  # type: ignore[no-untyped-call]
    return np.asarray(interval["draws"].values)


def _said(variable: Variable, origin: Origin) -> Variable:
    """The same interval or band with the words for what it is."""
    dims, values, attrs = variable
    what = str(attrs["long_name"])
    words = WORDS.get(origin.interval, SPREAD)
    return (
        dims,
        values,
        {
            **attrs,
            "ci_kind": origin.interval,
            "long_name": what.replace(WORDS["confidence"], words),
        },
    )


def confband(ensemble: xr.Dataset, level: float, n_draws: int, rng: Any) -> xr.Dataset:
    """`confband` of the curve and of the effect along the grid, each with a band of its own."""
    ensemble = with_errors(check_ensemble(ensemble))
    origin = origin_of(ensemble)
    names = [name for name in estimated(ensemble) if name in IN_BANDS and name in ON_GRID]
    streams = np.random.default_rng(rng).spawn(ensemble.sizes["feature"] * len(names))
    variables = {}
    for name in names:
        centre, se = centre_of(ensemble, name), own_errors(ensemble, name)
        quantiles = np.full(centre.shape, np.nan)
        for number in range(len(centre)):
            stream = streams.pop()
            quantiles[number] = _quantiles(ensemble, name, number, level, n_draws, stream)
        ends = intervals.around(centre, quantiles * se)
        dims, values, attrs = _said(band(facts_of(ensemble, name), ends, level), origin)
        if not origin.is_estimated:
            attrs = {**attrs, "method": BY_MEMBERS}
        variables[f"{name}_band"] = dims, values, attrs
    return ensemble.assign(variables).assign_coords(BOUNDS)


def _quantiles(
    ensemble: xr.Dataset,
    name: str,
    number: int,
    level: float,
    n_draws: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Standard errors within which the curve of one feature lies at all points at once."""
    if origin_of(ensemble).is_estimated:
        degrees = degrees_of(ensemble, name)[number]
        away = deviations(ensemble, name)[:, number]
        joint = joint_of(away, own_errors(ensemble, name)[number], degrees)
        return joint_quantiles(joint, degrees, level, n_draws, rng)
    values = members_of(ensemble, name)[:, number]
    largest = intervals.quantiles(largest_of(values), np.array(level))
    return np.full(values.shape[1:], float(largest))


def largest_of(values: FloatArray) -> FloatArray:
    """Largest deviation of every member from their mean along the curve, in standard deviations."""
    with np.errstate(invalid="ignore", divide="ignore"):
        away = np.abs(values - mean_of(values))
        scale = np.sqrt(np.nansum(away**2, axis=0) / (np.isfinite(values).sum(axis=0) - 1))
        # A point where all members agree, as the start of a curve, has no deviation.
        ratio = np.where(scale > 1e-12 * np.nanmax(scale, initial=0.0), away / scale, np.nan)
    unknown = ~np.isfinite(ratio).any(axis=1)
    largest = np.max(np.nan_to_num(ratio), axis=1)
    return np.where(unknown, np.nan, largest)
