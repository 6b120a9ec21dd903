"""Standard errors, intervals and bands of results of several models (math [85], [86]).

Also tests of their effects (math [87]), and differences of their curves.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import xarray as xr

from rhale_stats.arguments.checks import check_choice
from rhale_stats.arrays import intervals
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.effects.errors import with_std_error
from rhale_stats.effects.fit import curve_degrees
from rhale_stats.ensembles.labelled import (
    ON_GRID,
    SIZES,
    SUBSAMPLES,
    Origin,
    Row,
    centre_of,
    check_ensemble,
    degrees_of,
    deviations,
    error_of,
    errors,
    estimated,
    facts_of,
    joint_of,
    mapped,
    mean_of,
    members_of,
    names_of,
    one_row,
    origin_of,
    own_errors,
    scaled,
)
from rhale_stats.inference.combinations import Estimates, correlated, refuse_beside
from rhale_stats.inference.estimate import (
    BOUNDS,
    Estimate,
    Variable,
    band,
    by_errors,
    covariance_array,
    interval,
    joint_quantiles,
)
from rhale_stats.inference.results import (
    CONSTANT,
    ComparisonOptions,
    Difference,
    difference_of,
    features_in_common,
    labelled_differences,
    labelled_test,
    no_difference,
)
from rhale_stats.printing.text import place_texts
from rhale_stats.profiles.data import check_profile, levels_in, one_profile
from rhale_stats.profiles.inference import degrees_of as profile_degrees
from rhale_stats.schema.checks import check_effect
from rhale_stats.schema.curves import interpolation
from rhale_stats.schema.feature_result import FeatureResult, one_feature
from rhale_stats.schema.features import feature_names, given_feature, units_of
from rhale_stats.schema.kinds import EFFECT, ENSEMBLE, PROFILE
from rhale_stats.schema.levels import level_names
from rhale_stats.schema.variables import GRID_VALUE


def std_error(
    ensemble: xr.Dataset, local: object, groups: object, fitted: object = None
) -> xr.Dataset:
    """`std_error` of all estimates, with the parts of the model and of the rows."""
    ensemble = check_ensemble(ensemble)
    for name, argument in (("local", local), ("groups", groups), ("model", fitted)):
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
        text = f"standard error of the {facts.long_name}"
        about = {"long_name": text, "units": facts.units, "target": facts.target}
        of_both = about | {"source": facts.source}
        variables[f"{name}_se"] = (facts.dims, np.sqrt(error.variance), of_both)
        if np.isfinite(error.rows).any():
            sources = {"rows": "rows", "model": facts_of(ensemble, name).source}
            for part, values in (("rows", error.rows), ("model", error.model)):
                of_part = about | {"long_name": f"{text}, by the {part}", "source": sources[part]}
                variables[f"{name}_se_{part}"] = (facts.dims, np.sqrt(values), of_part)
        if np.isfinite(error.degrees).any():
            about = {"long_name": f"degrees of freedom of the {text}", "units": "1"}
            variables[f"{name}_df"] = (facts.dims, np.asarray(error.degrees), about)
    return ensemble.assign(variables)


def vcov(ensemble: xr.Dataset, feature: str | int | None, what: str) -> xr.DataArray:
    """Covariance of the curve, or of the effect, over (grid, grid_other)."""
    ensemble = with_errors(check_ensemble(ensemble))
    feature = given_feature(feature, "vcov(effect, 'dose')", ensemble)
    if what not in estimated(ensemble):
        raise ValueError(f"of must be 'curve' for profiles of several models; got {what!r}.")
    row, facts = one_row(ensemble, feature), facts_of(ensemble, what)
    # Unknown where an error is.
    covariance = correlated(deviations(row.dataset, what)[:, 0], own_errors(row.dataset, what)[0])
    out = covariance_array(covariance, {"grid": np.arange(len(row.z))}, facts, row.name)
    return out.assign_coords(grid_value=("grid", row.z, GRID_VALUE))


def for_hypotheses(
    ensemble: xr.Dataset, feature: str | int | None, variable: str | None, local: Any, groups: Any
) -> Estimates:
    """The curve of one feature along the grid, for `hypotheses`."""
    refuse_beside("results of several models", local=local, groups=groups)
    ensemble, name = with_errors(check_ensemble(ensemble)), variable or "curve"
    feature = given_feature(feature, "hypotheses(effect, feature='dose')", ensemble)
    covariance, row = vcov(ensemble, feature, name), one_row(ensemble, feature)
    return Estimates(
        row.levels or place_texts(row.z, units_of(row.dataset, 0), 6),
        centre_of(row.dataset, name)[0],
        covariance.values,
        degrees_of(row.dataset, name)[0],
        facts_of(ensemble, name).units,
        str(covariance.attrs["source"]),
        f"the curve of {row.name}",
        places=None if row.levels else np.asarray(row.z, dtype=np.float64),
        place_units=units_of(row.dataset, 0),
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
        facts = facts_of(ensemble, name, of_rows=chosen == "normal")
        centre = centre_of(ensemble, name)
        if chosen == "normal":
            se, degrees = errors(ensemble, name), degrees_of(ensemble, name)
            estimate = Estimate(centre, facts, se, degrees, log=name in SIZES)
            ends, how = by_errors(estimate, level)
        else:
            members, how = scaled(ensemble, name), HOW[chosen]
            how += ", scaled to all rows" * (origin.kind == SUBSAMPLES)
            if chosen == "hdi":
                ends = shortest(members, level)
            elif chosen == "eti":
                ends = intervals.equal_tailed(members, level)
            else:
                ends = intervals.of_replicates(members, centre, level, chosen)
            ends = np.maximum(ends, 0.0) if name in SIZES else ends
        variables[f"{name}_ci"] = _said(interval(facts, ends, level, how), origin)
    return ensemble.assign(variables).assign_coords(BOUNDS)


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
    words = WORDS.get(origin.interval, SPREAD)
    long_name = str(attrs["long_name"]).replace(WORDS["confidence"], words)
    return dims, values, attrs | {"ci_kind": origin.interval, "long_name": long_name}


def confband(ensemble: xr.Dataset, level: float, n_draws: int, rng: Any) -> xr.Dataset:
    """`confband` of the curve and of the effect along the grid, each with a band of its own."""
    ensemble = with_errors(check_ensemble(ensemble))
    origin = origin_of(ensemble)
    names = [name for name in estimated(ensemble) if name in IN_BANDS and name in ON_GRID]
    streams = np.random.default_rng(rng).spawn(ensemble.sizes["feature"] * len(names))
    variables = {}
    for name in names:
        centre, se = centre_of(ensemble, name), own_errors(ensemble, name)
        values, degrees = members_of(ensemble, name), degrees_of(ensemble, name)
        # Standard errors within which a curve lies at all points at once.
        quantiles = np.full(centre.shape, np.nan)
        for number, free in enumerate(degrees):
            stream = streams.pop()
            if origin.is_estimated:
                joint = joint_of(deviations(ensemble, name)[:, number], se[number], free)
                quantiles[number] = joint_quantiles(joint, free, level, n_draws, stream)
            else:
                largest = largest_of(values[:, number])
                quantiles[number] = intervals.quantiles(largest, np.array(level))
        ends = intervals.around(centre, quantiles * se)
        dims, values, attrs = _said(band(facts_of(ensemble, name), ends, level), origin)
        if not origin.is_estimated:
            attrs = attrs | {"method": BY_MEMBERS}
        variables[f"{name}_band"] = dims, values, attrs
    return ensemble.assign(variables).assign_coords(BOUNDS)


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


NULLS = {
    "zero": "the effect is zero everywhere",
    "constant": "the effect is the same everywhere, so that the curve is a straight line",
}
# Draws of the largest error of means over folds, and their seed: a test has no rng.
SEED = 0
# Parts of the axis whose mean effects are tested.
N_PARTS = 5
NO_ERROR = "one point of the grid has no standard error, or there is none to compare"


def wald_test(
    ensemble: xr.Dataset, null: str, method: str, adjust: str, local: object
) -> xr.Dataset:
    """`wald_test` by the largest standardised effect along the grid."""
    ensemble = with_errors(check_ensemble(ensemble))
    origin = origin_of(ensemble)
    if not origin.is_tested:
        raise ValueError(
            f"effect must hold refits or folds for a test; this one holds {origin.kind}, which "
            f"have no distribution under a null hypothesis. Use confband(effect) and see where its "
            f"band excludes 0."
        )
    if null not in NULLS:
        raise ValueError(
            f"null must be one of 'zero', 'constant' for results of several models; got {null!r}. "
            f"Heterogeneity is of the rows: wald_test(rhale(local), 'homogeneous')."
        )
    if method != "box" or local is not None:
        raise ValueError(
            "method and local must be left out for results of several models, whose statistic is "
            "the largest effect over its standard error."
        )
    if "effect" not in estimated(ensemble):
        raise ValueError(
            "effect must hold effects for a test; profiles of several models have curves only. "
            "Use confband(effect)."
        )
    names = feature_names(ensemble)
    tests = zip(*(_tested(ensemble, name, null, origin) for name in names), strict=True)
    return labelled_test(
        names_of(ensemble),
        dict(zip(("statistic", "p_value", "reason"), map(np.array, tests), strict=True)),
        adjust,
        null=NULLS[null],
        source=origin.source,
        test="largest standardised effect along the axis",
    )


def _tested(ensemble: xr.Dataset, name: str, null: str, origin: Origin) -> tuple[float, float, str]:
    """Statistic, p-value, and why there is none, of one feature.

    The largest |effect| over its standard error is compared with its distribution. Of refits that
    is the distribution of the members about their mean; of folds that of correlated errors with
    Student's degrees.
    """
    row = one_row(ensemble, name)
    if not len(row.z):
        return np.nan, np.nan, CONSTANT
    # Over the points that all members reach.
    values = members_of(row.dataset, "effect")[:, 0]
    sound = np.isfinite(values).any(axis=1)
    common = np.isfinite(values[sound]).all(axis=0)
    if not common.any():
        return np.nan, np.nan, NO_ERROR
    # Effects at single points are too noisy to tell: means over parts of the axis.
    parts = np.array_split(np.flatnonzero(common), min(N_PARTS, int(common.sum())))
    weight = np.array([np.isin(np.arange(len(row.z)), part) / len(part) for part in parts])
    if null == "constant":
        weight = weight - common / common.sum()
    moved = mapped(row, "effect", weight)
    error, centre = error_of(moved, "effect"), centre_of(moved, "effect")[0]
    se, degrees = np.sqrt(error.variance[0]), np.asarray(error.degrees)[0]
    # Up to rounding there is nothing to test.
    least = 1e-9 * float(np.nanmax(np.abs(centre), initial=0.0))
    used = np.isfinite(centre) & (se > least)
    if not used.any():
        return np.nan, np.nan, NO_ERROR
    statistics = np.abs(centre[used]) / se[used]
    statistic = float(statistics.max())
    if not origin.is_estimated:
        largest = largest_of(members_of(moved, "effect")[:, 0][:, used])
        largest = largest[np.isfinite(largest)]
        return statistic, float((1 + np.sum(largest >= statistic)) / (1 + len(largest))), ""
    joint = joint_of(deviations(moved, "effect")[:, 0][:, used], se[used], degrees[used])
    score = float(intervals.normal_score(statistics, degrees[used]).max())
    rng = np.random.default_rng(SEED)
    p_value = intervals.largest_deviation_pvalue(
        joint.covariance, score, joint.degrees, intervals.N_DRAWS, rng
    )
    return statistic, p_value, ""


# --- differences of the curves of several models --------------------------------------------------


NO_P = "members that are no refits have no p-value; see whether the band excludes 0"
NO_RANGE = "the two curves have no points in common"
PAIRED = "of the same members, paired"
APART = "independent"


def compare(a: xr.Dataset, b: xr.Dataset, request: ComparisonOptions) -> xr.Dataset:
    """`compare` of two results of several models, or of one with the effect of one model."""
    a, b = _side(a, "a"), _side(b, "b")
    if request.groups is not None:
        raise ValueError("groups must be None for results of several models.")
    names = features_in_common(a, b)
    paired = _are_paired(a, b, request)
    streams = np.random.default_rng(request.rng).spawn(len(names))
    differences = [
        _of_feature((_curve(a, name), _curve(b, name)), name, request, stream, paired=paired)
        for name, stream in zip(names, streams, strict=True)
    ]
    origins = [origin_of(result) for result in (a, b) if ENSEMBLE.holds(result)]
    untested = [origin.interval for origin in origins if not origin.is_tested]
    if untested:
        differences = [
            difference._replace(p_value=np.nan, reason=difference.reason or NO_P)
            for difference in differences
        ]
    source = f"{_source(a)} against {_source(b)}, {PAIRED if paired else APART}"
    out = labelled_differences(differences, names_of(a), names_of(b), names, source, request)
    for name in ("difference_ci", "difference_band") if untested else ():
        out[name].attrs["ci_kind"] = untested[0]
    return out


def _side(result: xr.Dataset, parameter: str) -> xr.Dataset:
    """One of the two results, checked."""
    if ENSEMBLE.holds(result):
        return with_errors(check_ensemble(result, parameter))
    if PROFILE.holds(result):
        return check_profile(result, parameter, needs=("curve_cov",))
    if EFFECT.holds(result):
        return with_std_error(check_effect(result, parameter))
    raise ValueError(
        f"{parameter} must be a result of several models, or the effect or profile of one model, "
        f"to be compared with such a result."
    )


def _source(result: xr.Dataset) -> str:
    """What the error of one of the two results is of."""
    if ENSEMBLE.holds(result):
        return origin_of(result).source
    return str(result["curve_se"].attrs.get("source", "rows"))


def _are_paired(a: xr.Dataset, b: xr.Dataset, request: ComparisonOptions) -> bool:
    """Whether the members of both are compared one by one."""
    both = ENSEMBLE.holds(a) and ENSEMBLE.holds(b)
    sizes = [tuple(result.sizes.get(dim, 0) for dim in ("chain", "draw")) for result in (a, b)]
    alike = both and sizes[0] == sizes[1]
    if request.paired is not None and not alike:
        raise ValueError(
            f"paired must be left out unless a and b have the same members; they have (chain, "
            f"draw) {sizes[0]} and {sizes[1]}."
        )
    if request.paired is not None or not alike:
        return alike
    return _identity(a) is not None and bool(_identity(a) == _identity(b))


def _identity(result: xr.Dataset) -> Any:
    """What is the same for results of the same members; None where nothing is known."""
    attrs = result.attrs
    if "members" in attrs:
        return attrs["members"]
    seed = attrs.get("seed", -1)
    # Refits of one table by one seed are of the same rows.
    facts = ("source", "scheme", "n_rows", "n_resamples")
    return None if seed == -1 else (seed, *[attrs.get(fact) for fact in facts])


# Values of a curve at points, their covariance and degrees of freedom.
_Values: TypeAlias = tuple[FloatArray, FloatArray, FloatArray]


class _ComparedCurve(NamedTuple):
    """A curve of one feature: where it is known, its levels, and how to read it off.

    ``row`` is the feature of several models, if it is one.
    """

    z: FloatArray
    levels: list[str]
    evaluate: Callable[[FloatArray], _Values]
    row: Row | None = None


def _curve(result: xr.Dataset, name: str) -> _ComparedCurve:
    """The curve of one feature of several models, of a profile, or of an effect in bins."""
    if ENSEMBLE.holds(result):
        row = one_row(result, name)
        finite = np.isfinite(centre_of(row.dataset, "curve")[0])
        finite &= np.isfinite(errors(row.dataset, "curve")[0])
        return _ComparedCurve(row.z[finite], row.levels, partial(_of_row, row), row)
    if PROFILE.holds(result):
        profile = one_profile(result, name)
        z, evaluate = profile["grid_value"].values, partial(_of_profile, profile)
        return _ComparedCurve(z, levels_in(profile), evaluate)
    effect = one_feature(result, name)
    edges = effect.fit.pieces.edges if effect.sizes["bin"] else np.zeros(0)
    levels = level_names(effect) if effect.is_categorical else []
    return _ComparedCurve(edges, levels, partial(_of_effect, effect))


def _of_row(row: Row, z: FloatArray) -> _Values:
    """The curve of several models at points within its range."""
    at_grid = own_errors(row.dataset, "curve")[0], degrees_of(row.dataset, "curve")[0]
    se, degrees = [np.interp(z, row.z, values) for values in at_grid]
    return _of_members(_on_points(row, z), se, degrees)


def _of_profile(profile: xr.Dataset, z: FloatArray) -> _Values:
    """A profile at points within its range."""
    grid = profile["grid_value"].values
    weight = interpolation(grid, z)
    covariance = weight @ profile["curve_cov"].values @ weight.T
    degrees = np.interp(z, grid, profile_degrees(profile))
    return weight @ profile["curve"].values, covariance, degrees


def _of_effect(effect: FeatureResult, z: FloatArray) -> _Values:
    """The curve of an effect in bins at points within its range."""
    fit, values = effect.fit, effect.curve.evaluate(z)
    if effect.is_categorical:
        values = np.interp(z, fit.pieces.edges, fit.curve)
    return values, fit.covariance(z), curve_degrees(effect, fit, z)


def _on_points(row: Row, z: FloatArray) -> xr.Dataset:
    """The curves of all members at these points."""
    return mapped(row, "curve", interpolation(row.z, z))


def _of_members(curves: xr.Dataset, se: FloatArray, degrees: FloatArray) -> _Values:
    """Estimate, covariance and degrees of one curve of several models."""
    covariance = correlated(deviations(curves, "curve")[:, 0], np.nan_to_num(se))
    return centre_of(curves, "curve")[0], covariance, np.broadcast_to(degrees, se.shape)


def _of_feature(
    sides: tuple[_ComparedCurve, _ComparedCurve],
    name: str,
    request: ComparisonOptions,
    rng: np.random.Generator,
    *,
    paired: bool,
) -> Difference:
    """The difference of the curves of one feature, at points of the grid that both reach."""
    if not all(len(side.z) for side in sides):
        return no_difference(CONSTANT)
    levels = [side.levels for side in sides]
    if levels[0] != levels[1]:
        texts = [", ".join(side_levels) or "numbers" for side_levels in levels]
        raise ValueError(
            f"a and b must have the same levels of feature {name!r}; got {' and '.join(texts)}."
        )
    # Points of the first of the two that has several models, within the range of both.
    z = next(side.z for side in sides if side.row is not None)
    low, high = max(side.z[0] for side in sides), min(side.z[-1] for side in sides)
    slack = 1e-9 * (z[-1] - z[0])
    z = np.clip(z[(z >= low - slack) & (z <= high + slack)], low, high)
    if len(z) < 2:
        return no_difference(NO_RANGE)
    values, covariances, degrees = zip(*(side.evaluate(z) for side in sides), strict=True)
    rows = [side.row for side in sides if side.row is not None]
    if paired and len(rows) == 2:
        a, b = (_on_points(row, z) for row in rows)
        apart = a.assign({k: (a[k].dims, a[k].values - b[k].values) for k in a.data_vars if k in b})
        error = error_of(apart, "curve")
        both = _of_members(apart, np.sqrt(error.variance[0]), np.asarray(error.degrees)[0])
        return difference_of(z, values, *both[1:], request, rng)
    together = intervals.satterthwaite(*zip(map(np.diagonal, covariances), degrees, strict=True))
    return difference_of(z, values, sum(covariances), together, request, rng)
