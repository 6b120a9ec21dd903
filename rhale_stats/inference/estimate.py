"""Estimates with what is known of their errors, and their intervals and bands.

All wings make intervals here. A wing says what it estimated, how its errors are known, and what the
numbers are; the formulas are those of `arrays/intervals.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import xarray as xr
from scipy import special

from rhale_stats.arguments.checks import check_choice
from rhale_stats.arrays import intervals
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.inference.draws import draws_of
from rhale_stats.printing.text import includes_model
from rhale_stats.schema.feature_result import Result
from rhale_stats.schema.variables import dataset_of, with_variables

BY_ERRORS = "standard errors, Student's t"
BY_SKEWNESS = f"{BY_ERRORS}, corrected for skewness"
ON_LOG_SCALE = f"{BY_ERRORS} on the log scale"
BY_INVERSION = "inversion of a test, math [24]"
BY_KURTOSIS = f"{BY_INVERSION}, and the log scale where tails are heavy, math [92]"
# The coordinate of the last dimension of intervals and bands.
BOUNDS = {"ci_bound": ("ci_bound", ["lower", "upper"])}
Variable: TypeAlias = tuple[tuple[str, ...], FloatArray, dict[str, Any]]


class Facts(NamedTuple):
    """What the numbers of an estimate are, as its intervals say it."""

    dims: tuple[str, ...]
    long_name: str
    units: str
    target: str
    source: str


class CentralMoments(NamedTuple):
    """Third and fourth central moments about which a standard deviation is, and of how many.

    With unequal weights ``n`` rows count in the squares, and ``n_effective`` in means.
    """

    third: FloatArray
    fourth: FloatArray
    n: FloatArray
    n_effective: FloatArray | None = None


class Replicates(NamedTuple):
    """Replicates of an estimate, (draw, ...), and what they vary over.

    Their quantiles are expanded to Student's t where ``degrees`` are known: ``shortfall`` is the
    variance of the replicates over the unbiased one. "basic" and "studentized" intervals are made
    on the log scale where ``log`` is true. ``se`` are standard errors of the replicates.
    """

    draws: FloatArray
    source: str
    degrees: FloatArray | None = None
    shortfall: FloatArray | float = 1.0
    acceleration: FloatArray | float = 0.0
    se: FloatArray | None = None
    log: bool = False


class Estimate(NamedTuple):
    """Numbers with what their intervals are made from.

    ``log``: they are positive, and the interval by standard errors is symmetric on the log scale.
    ``moments``: they are standard deviations, whose interval inverts a test. ``skewness`` is that
    of their errors: intervals and bands are longer on one side.
    """

    values: FloatArray
    facts: Facts
    se: FloatArray | None = None
    degrees: FloatArray | float = np.inf
    log: bool = False
    moments: CentralMoments | None = None
    replicates: Replicates | None = None
    skewness: FloatArray | float = 0.0


class Joint(NamedTuple):
    """How errors at several places vary together, for a band that holds all of them.

    ``degrees`` are those of each place, or one number where all have one estimate of scale.
    """

    covariance: FloatArray
    degrees: FloatArray | float
    sources: intervals.Sources | None = None


def of_one_scale(covariance: FloatArray, degrees: FloatArray) -> Joint:
    """Points whose variances are estimated from the same groups, each with its own degrees.

    Errors of the variances are drawn together, with the degrees that they have on average.
    """
    variance = np.maximum(np.nan_to_num(np.diagonal(covariance)), 0.0)
    estimated = (variance > 0) & (degrees > 0)
    share = float(np.mean(1 / degrees[estimated])) if estimated.any() else 0.0
    # Variances that are known, as those of parameters by normal theory, have infinite degrees.
    common = 1 / share if share > 0 else np.inf
    return Joint(covariance, degrees, intervals.Sources.single(variance, common))


def estimate_of(
    result: xr.Dataset,
    name: str,
    degrees: FloatArray | float = np.inf,
    *,
    long_name: str = "",
    log: bool = False,
) -> Estimate:
    """An estimate by its name: its error is ``{name}_se``, the skewness of that ``_skewness``."""
    values, se = result[name], result[f"{name}_se"]
    dims = tuple(map(str, values.dims))
    long_name = long_name or str(values.attrs["long_name"])
    units, about = str(values.attrs.get("units", "")), se.attrs
    facts = Facts(dims, long_name, units, str(about["target"]), str(about["source"]))
    skewness = result[f"{name}_skewness"].values if f"{name}_skewness" in result else 0.0
    errors = se.transpose(*dims).values
    return Estimate(values.values, facts, errors, degrees, log, skewness=skewness)


def covariance_array(
    values: FloatArray, axes: Mapping[str, Any], facts: Facts, feature: str
) -> xr.DataArray:
    """A covariance over axes, and over the same ones again with ``_other`` after their names."""
    return xr.DataArray(
        values,
        {name: places for dim, places in axes.items() for name in (dim, f"{dim}_other")},
        (*axes, *(f"{dim}_other" for dim in axes)),
        "covariance",
        {
            "long_name": f"covariance of the {facts.long_name}",
            "target": facts.target,
            "source": facts.source,
            "feature": feature,
        },
    )


# --- numbers --------------------------------------------------------------------------------------


def chosen_method(method: str | None, boot: object, allowed: Sequence[str]) -> str:
    """The method asked for, or the usual one; ``ValueError`` for one that is not allowed."""
    chosen = ("normal" if boot is None else "percentile") if method is None else method
    check_choice("method", chosen, allowed)
    return chosen


def by_errors(estimate: Estimate, level: float) -> tuple[FloatArray, str]:
    """Pointwise intervals (..., 2) by standard errors, and how they are made."""
    values, degrees = estimate.values, estimate.degrees
    if estimate.moments is not None:
        return _of_deviations(values, estimate.moments, np.asarray(degrees), level)
    assert estimate.se is not None, "an estimate has standard errors or replicates"
    student = intervals.student(level, np.asarray(degrees))
    if estimate.log:
        return intervals.log_scale(values, student * estimate.se), ON_LOG_SCALE
    skew = estimate.skewness
    how = BY_SKEWNESS if np.any(np.nan_to_num(skew)) else BY_ERRORS
    return intervals.skewed(values, estimate.se, student, skew), how


def _of_deviations(
    values: FloatArray, moments: CentralMoments, degrees: FloatArray, level: float
) -> tuple[FloatArray, str]:
    """Intervals of standard deviations, (..., bin, 2): on the log scale where tails are heavy."""
    degrees, (third, fourth, n, rows) = np.broadcast_to(degrees, values.shape), moments
    rows = n if rows is None else rows
    with np.errstate(invalid="ignore", divide="ignore"):
        second = values**2 * degrees / n
        # What the fourth moment of so many rows of equal weight would be.
        squares = second**2 + (fourth - second**2) * rows / n
    ends = intervals.of_heavy_tails(values, second, squares, rows, degrees, level)
    light = np.isnan(ends[..., 0])
    value, of_third, of_fourth, rows, free = (
        values_of_bins[light] for values_of_bins in (values, third, fourth, n, degrees)
    )
    ends[light] = intervals.of_deviation(value, of_third, of_fourth, rows, free, level)
    return ends, BY_INVERSION if light.all() else BY_KURTOSIS


def by_replicates(estimate: Estimate, level: float, method: str) -> tuple[FloatArray, str]:
    """Pointwise intervals (..., 2) by replicates, and how they are made."""
    assert estimate.replicates is not None, "the wing leaves out what has no replicates"
    values, draws = estimate.values, estimate.replicates.draws
    # Only "studentized" needs standard errors, of the estimate and of every replicate.
    se, draws_se = (
        np.full((), np.nan) if se is None else se for se in (estimate.se, estimate.replicates.se)
    )
    more: dict[str, Any] = {}
    how = f"bootstrap, {method}"
    with np.errstate(divide="ignore", invalid="ignore"):
        if method == "studentized":
            more |= {"draws_se": draws_se, "estimate_se": se}
        elif estimate.replicates.degrees is not None:
            student = intervals.student(level, estimate.replicates.degrees)
            more["score"] = student / np.sqrt(estimate.replicates.shortfall)
            how += ", expanded to Student's t"
        if method == "bca":
            more["acceleration"] = estimate.replicates.acceleration
        if estimate.replicates.log and method in ("basic", "studentized"):
            # On the log scale, on which the error hardly depends on the size.
            if method == "studentized":
                more = {"draws_se": draws_se / draws, "estimate_se": se / values}
            logs = np.where(draws > 0, np.log(draws), np.nan)
            ends = intervals.of_replicates(logs, np.log(values), level, method, **more)
            return np.where(values[..., None] == 0, 0.0, np.exp(ends)), how
    ends = intervals.of_replicates(draws, values, level, method, **more)
    return np.maximum(ends, 0.0) if estimate.log else ends, how


def with_replicates(estimates: Mapping[str, Estimate], boot: xr.Dataset) -> dict[str, Estimate]:
    """Estimates with their replicates, whose intervals are not expanded."""
    source = str(boot.attrs["source"])
    return {
        name: estimate._replace(
            replicates=Replicates(draws_of(boot, name, estimate.facts.dims), source)
        )
        for name, estimate in estimates.items()
    }


def independent_quantiles(se: FloatArray, degrees: FloatArray, level: float) -> FloatArray:
    """Student's quantiles that hold all of several independent errors, those that are ``known``.

    Each of them is held at the root of the level, by its own degrees of freedom.
    """
    n_known = int(np.isfinite(se).sum())
    return intervals.student(level ** (1 / max(n_known, 1)), degrees)


def joint_quantiles(
    joint: Joint, degrees: FloatArray, level: float, n_draws: int, rng: np.random.Generator
) -> FloatArray:
    """Student's quantiles that hold errors at all places at once, math [27]."""
    score = intervals.largest_deviation(
        joint.covariance, level, joint.degrees, n_draws, rng, joint.sources
    )
    return intervals.score_quantile(score, degrees)


class Zero(NamedTuple):
    """Differences compared with 0: pointwise intervals, a band, and the p-value of none at all."""

    interval: FloatArray
    band: FloatArray
    p_value: float


def against_zero(
    values: FloatArray,
    se: FloatArray,
    degrees: FloatArray,
    joint: Joint,
    largest: float,
    level: float,
    n_draws: int,
    rng: np.random.Generator,
) -> Zero:
    """Differences of which ``largest`` is the largest normal score, math [27]."""
    quantiles = joint_quantiles(joint, degrees, level, n_draws, rng)
    return Zero(
        intervals.around(values, intervals.student(level, degrees) * se),
        intervals.around(values, quantiles * se),
        intervals.largest_deviation_pvalue(joint.covariance, largest, joint.degrees, n_draws, rng),
    )


# --- variables ------------------------------------------------------------------------------------


def interval(facts: Facts, ends: FloatArray, level: float, method: str) -> Variable:
    """Pointwise intervals as a variable that says what is needed to read it."""
    return _labelled(facts, ends, "confidence interval", level, method, "pointwise")


def band(facts: Facts, ends: FloatArray, level: float, shape: str = "curve") -> Variable:
    """A simultaneous band of a "curve" or a "surface" as a variable."""
    axis = "axis" if shape == "curve" else "axes"
    method = f"largest standardised error of a normal {shape}"
    return _labelled(
        facts, ends, "simultaneous band", level, method, f"simultaneous over the {axis}"
    )


def _labelled(
    facts: Facts, ends: FloatArray, what: str, level: float, method: str, kind: str
) -> Variable:
    attrs = {
        "long_name": f"{what} of {facts.long_name}",
        "units": facts.units,
        "target": facts.target,
        "source": facts.source,
        "method": method,
        "kind": kind,
        "ci_prob": level,
        "ci_kind": "confidence",
    }
    return (*facts.dims, "ci_bound"), ends, attrs


def with_intervals(
    result: xr.Dataset, estimates: Mapping[str, Estimate], level: float, method: str
) -> xr.Dataset:
    """The result with pointwise intervals of its estimates, ``_ci``.

    What has no replicates has intervals by its standard errors, whatever the method.
    """
    variables = {}
    for name, estimate in estimates.items():
        facts = estimate.facts
        if method == "normal" or estimate.replicates is None:
            ends, how = by_errors(estimate, level)
        else:
            ends, how = by_replicates(estimate, level, method)
            facts = facts._replace(source=estimate.replicates.source)
        variables[f"{name}_ci"] = interval(facts, ends, level, how)
    return _with_ends(result, variables)


def with_bands(
    result: xr.Dataset,
    estimates: Mapping[str, Estimate],
    quantiles: Mapping[str, FloatArray],
    level: float,
    shape: str = "curve",
) -> xr.Dataset:
    """The result with simultaneous bands, ``_band``, of the estimates that have quantiles."""
    variables = {}
    for name, quantile in quantiles.items():
        estimate = estimates[name]
        assert estimate.se is not None, "a band has standard errors"
        ends = intervals.skewed(estimate.values, estimate.se, quantile, estimate.skewness)
        variables[f"{name}_band"] = band(estimate.facts, ends, level, shape)
    return _with_ends(result, variables)


def _with_ends(result: xr.Dataset, variables: Mapping[str, Variable]) -> xr.Dataset:
    """With pairs of ends, and the names of the two where they are not there yet."""
    has_bounds = set(BOUNDS) <= set(result.coords)
    return with_variables(result, variables, None if has_bounds else _of_bounds())


@cache
def _of_bounds() -> xr.Dataset:
    """The names of the two ends; to make an index takes time, and imports of xarray."""
    return dataset_of({}, BOUNDS, {})


def kept_interval(result: Result, name: str, level: float) -> FloatArray | None:
    """Ends (..., 2) of the interval that `confint` gave an estimate, where it is of this level."""
    if f"{name}_ci" not in result:
        return None
    ends = result.variables[f"{name}_ci"]
    if ends.attrs.get("ci_prob") != level:
        return None
    return np.asarray(ends.transpose(..., "ci_bound").values)


def student(
    values: FloatArray, se: FloatArray, degrees: FloatArray | float
) -> dict[str, FloatArray]:
    """Student's t and its two-sided p-value, as columns of a table; NaN without an error."""
    t = np.divide(values, se, out=np.full(np.shape(values), np.nan), where=se > 0)
    return {"statistic": t, "p_value": np.asarray(2 * special.stdtr(degrees, -np.abs(t)))}


def ends_in_table(
    result: Result, name: str, se: FloatArray, degrees: FloatArray, level: float
) -> FloatArray:
    """Ends (..., 2) of the interval in a table: the one kept, or one by standard errors."""
    interval = kept_interval(result, name, level)
    if interval is not None:
        return interval
    skewness = result[f"{name}_skewness"].values if f"{name}_skewness" in result else 0.0
    return intervals.skewed(result[name].values, se, intervals.student(level, degrees), skewness)


def estimate_columns(
    result: Result, name: str, degrees: FloatArray, level: float
) -> dict[str, FloatArray]:
    """Columns of a table: an estimate, its error and interval; t and P of errors of the model."""
    values, se = result[name].values, result[f"{name}_se"].values
    ends = ends_in_table(result, name, se, degrees, level)
    columns = {"estimate": values, "std_error": se}
    if includes_model(result, name):
        columns |= student(values, se, degrees)
    return columns | {"conf_low": ends[..., 0], "conf_high": ends[..., 1]}
