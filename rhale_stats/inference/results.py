"""Results of tests, and differences of two curves, labelled alike for all kinds of results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from rhale_stats.arrays import intervals, quadratic
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.inference import meaning
from rhale_stats.inference.adjustment import adjusted
from rhale_stats.inference.estimate import (
    BOUNDS,
    BY_ERRORS,
    Facts,
    Joint,
    Variable,
    against_zero,
    band,
    interval,
)
from rhale_stats.schema.features import feature_names, labels_kept
from rhale_stats.schema.padding import padded
from rhale_stats.schema.variables import (
    GRID_VALUE,
    OUTPUT_UNITS,
    X_UNITS,
    dataset_of,
    software,
    with_variables,
)

EXACT = "the local effects of both vary by numerical error only, so there is no sampling error"
CONSTANT = "the feature is constant"
# Of the intervals of the sizes that tests give.
SIZE_LEVEL = 0.95
BY_NONCENTRAL = "inversion of a noncentral F test, math [32]"
NO_ERROR = "the difference has no standard error at some points"


# Names of the results of a test in words, and their units where they have some.
LONG_NAMES = {
    "statistic": "test statistic",
    "df": "degrees of freedom",
    "df_denominator": "degrees of freedom of the denominator of F",
    "p_value": "p-value",
    "p_value_adjusted": "p-value, adjusted over features",
    "reason": "why there is no p-value",
    "largest": "largest absolute difference",
    "largest_at": "point of the largest difference",
}
# Profiles have no bins.
BINS = ("bin_rule", "bin_parameters")
UNITS = {"largest": OUTPUT_UNITS, "largest_at": X_UNITS}


class Size(NamedTuple):
    """What the size of what is tested is."""

    long_name: str
    units: str
    level: float = SIZE_LEVEL
    method: str = BY_NONCENTRAL


class ComparisonOptions(NamedTuple):
    """What a user asked of `compare`, by the names of its parameters."""

    paired: Any
    groups: ArrayLike | None
    level: float
    n_draws: int
    rng: Any
    adjust: str


class Wald(NamedTuple):
    """Result of a test of one feature, or the reason why there is none."""

    statistic: float = float("nan")
    df: float = float("nan")
    p_value: float = float("nan")
    reason: str = ""
    df_denominator: float = float("nan")
    size: float = float("nan")
    size_ci: tuple[float, float] = (float("nan"), float("nan"))


def against_f(form: quadratic.QuadraticForm, denominator: float, rows: float) -> Wald:
    """The test, with the root mean square of what it tests (math [31])."""
    if not denominator > 0:
        return Wald(df=0.0, reason=meaning.NO_ROWS)
    p_value = intervals.f_tail(form.statistic, form.degrees, denominator)
    square = form.square(denominator)
    low, high = square.interval(SIZE_LEVEL) / np.sqrt(rows)
    size = square.size / np.sqrt(rows)
    return Wald(form.statistic, form.degrees, p_value, "", denominator, size, (low, high))


def fields_of_tests(rows: Sequence[Wald], *, of_f: bool = False) -> dict[str, Any]:
    """Tests of all features, as arrays by name; ``of_f`` with the degrees of the denominator."""
    tests = {name: np.array(values) for name, *values in zip(Wald._fields, *rows, strict=True)}
    left_out = set() if of_f else {"df_denominator"}
    if np.isnan(tests["size"]).all():
        left_out |= {"size", "size_ci"}
    names = ("statistic", "df", "df_denominator", "p_value", "reason", "size", "size_ci")
    return {name: tests[name] for name in names if name not in left_out}


def labelled_test(
    effect: xr.Dataset,
    values: dict[str, Any],
    adjust: str,
    *,
    size: Size | None = None,
    **facts: str | float,
) -> xr.Dataset:
    """Results of a test, over features; ``reason`` says why there is no p-value.

    ``size`` says what the values of that name are, and their intervals ``size_ci``, if there are.
    """
    nothing = np.full(len(values["p_value"]), "")
    of_size = ("reason", "size", "size_ci")
    shown = {name: array for name, array in values.items() if name not in of_size}
    shown["p_value_adjusted"] = adjusted(values["p_value"], adjust)
    shown["reason"] = values.get("reason", nothing)
    data: dict[str, Any] = {}
    for name, array in shown.items():
        about = {"long_name": LONG_NAMES.get(name, name), "units": UNITS.get(name, "1")}
        data[name] = ("feature", array, about)
    dims = {"feature", *effect.variables["feature_kind"].dims}
    coords: dict[Any, Any] = {
        name: effect.variables[name]
        for name in effect.coords
        if dims.issuperset(effect.variables[name].dims)
    }
    if size is not None and "size" in values:
        about = {"long_name": size.long_name, "units": size.units}
        data["size"] = ("feature", values["size"], about)
    if size is not None and "size_ci" in values:
        target = Facts(
            ("feature",), size.long_name, size.units, size.long_name, str(facts["source"])
        )
        data["size_ci"] = interval(target, values["size_ci"], size.level, size.method)
        coords |= BOUNDS
    return dataset_of(
        data,
        coords,
        {
            "method": "test",
            "adjust": adjust,
            **facts,
            "output_name": effect.attrs.get("output_name", "output"),
            "output_units": effect.attrs.get("output_units", ""),
            **labels_kept(effect),
            **{name: effect.attrs[name] for name in BINS if name in effect.attrs},
            "n_rows": effect.attrs.get("n_rows", 0),
            "software": software(),
        },
    )


class Difference(NamedTuple):
    """Two curves of one feature compared, by the names of the results."""

    grid_value: FloatArray
    difference: FloatArray
    difference_se: FloatArray
    difference_ci: FloatArray
    difference_band: FloatArray
    statistic: float
    p_value: float
    reason: str
    size: float = float("nan")
    size_ci: tuple[float, float] = (float("nan"), float("nan"))
    largest: float = float("nan")
    largest_at: float = float("nan")


def features_in_common(
    a: xr.Dataset, b: xr.Dataset, facts: Sequence[str] = ("centering",)
) -> list[str]:
    """Names of the features of both, whose curves can be compared where these facts are the same.

    Raises
    ------
    ValueError
        A fact differs, or no feature is in both.
    """
    for name in facts:
        # Rows of ICE are compared with the means of PDP.
        kinds = [str(result.attrs.get(name, "")).replace("ice", "pdp") for result in (a, b)]
        if kinds[0] != kinds[1]:
            raise ValueError(
                f"a and b must have the same {name}; got {kinds[0]!r} and {kinds[1]!r}. Make both "
                f"with the same."
            )
    names = [name for name in feature_names(a) if name in feature_names(b)]
    if not names:
        raise ValueError(
            f"a and b must have a feature in common; got {', '.join(feature_names(a))} and "
            f"{', '.join(feature_names(b))}."
        )
    return names


def no_difference(reason: str) -> Difference:
    """Empty difference of a feature, with the reason."""
    none, bounds = np.full(0, np.nan), np.full((0, 2), np.nan)
    return Difference(none, none, none, bounds, bounds, np.nan, np.nan, reason)


def labelled_differences(
    differences: Sequence[Difference],
    a: xr.Dataset,
    b: xr.Dataset,
    names: list[str],
    source: str,
    request: ComparisonOptions,
) -> xr.Dataset:
    """Differences of all features, with the tests."""
    # What is labelled by feature, without all estimates.
    features = a["feature"].coords.to_dataset().assign_attrs(a.attrs).sel(feature=names)
    tested = labelled_test(
        features,
        {
            name: np.array([getattr(difference, name) for difference in differences])
            for name in Difference._fields[5:]
        },
        request.adjust,
        size=Size(
            "root mean square difference along the axis, without the part of noise",
            OUTPUT_UNITS,
            request.level,
        ),
        null="no difference between the curves",
        source=source,
        test="compare, largest standardised difference",
        centering=str(a.attrs["centering"]),
    )
    points, *numbers = (
        padded([getattr(difference, name) for difference in differences])
        for name in Difference._fields[:5]
    )
    of_curves = Facts(
        ("feature", "grid"), "a less b", OUTPUT_UNITS, "difference of the curves", source
    )
    return with_variables(
        _with_regions(tested, a, b),
        difference_variables("difference", of_curves, numbers, request.level),
        dataset_of({}, {"grid_value": (("feature", "grid"), points, GRID_VALUE)}, {}),
    )


def difference_variables(
    name: str, facts: Facts, numbers: Sequence[FloatArray], level: float, shape: str = "curve"
) -> dict[str, Variable]:
    """Differences, their standard errors, intervals and bands as variables."""
    values, se, ends, bands = numbers
    about = {"units": facts.units, "target": facts.target}
    error_name = f"standard error of {facts.long_name}"
    return {
        name: (facts.dims, values, {"long_name": facts.long_name, **about}),
        f"{name}_se": (facts.dims, se, {"long_name": error_name, **about}),
        f"{name}_ci": interval(facts, ends, level, BY_ERRORS),
        f"{name}_band": band(facts, bands, level, shape),
    }


def _with_regions(tested: xr.Dataset, a: xr.Dataset, b: xr.Dataset) -> xr.Dataset:
    """With the rules of the regions that ``a`` and ``b`` are of, where they are of regions."""
    rules = {
        f"region_of_{side}": str(effect["region_rule"].values)
        for side, effect in (("a", a), ("b", b))
        if "region_rule" in effect.coords
    }
    if len(set(rules.values())) > 1:
        # The difference belongs to neither region, so their labels are dropped.
        tested = tested.drop_vars(
            [name for name in tested.coords if str(name).startswith("region")]
        )
    return tested.assign_attrs(rules)


def difference_of(
    z: FloatArray,
    values: tuple[FloatArray, FloatArray],
    covariance: FloatArray,
    degrees: FloatArray | float,
    request: ComparisonOptions,
    rng: np.random.Generator,
    least: float = 0.0,
) -> Difference:
    """The difference of two curves at points, with the covariance of its error.

    ``degrees`` are of freedom: one number for groups, else one for every point. Up to ``least``
    there is nothing but numerical error.
    """
    difference = values[0] - values[1]
    se = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
    degrees_of_places = np.broadcast_to(degrees, se.shape)
    # Without sampling error, as at the start of a curve, a zero difference has statistic 0.
    least = max(least, 1e-12 * float(np.abs(np.array(values)).max(initial=0.0)))
    with np.errstate(invalid="ignore", divide="ignore"):
        scaled = np.where(np.abs(difference) <= least, 0.0, np.abs(difference) / se)
    statistic, reason = float(scaled.max()), ""
    largest = float(intervals.normal_score(scaled, degrees_of_places).max())
    if np.isnan(statistic):
        reason = NO_ERROR
    elif statistic > 0 and (se <= least).all():
        statistic, reason, largest = float("nan"), EXACT, float("nan")
    joint = Joint(covariance, degrees)
    zero = against_zero(
        difference, se, degrees_of_places, joint, largest, request.level, request.n_draws, rng
    )
    tested = Difference(
        z, difference, se, zero.interval, zero.band, statistic, zero.p_value, reason
    )
    return _with_size(tested, covariance, float(np.min(degrees_of_places)), request.level)


def along_axis(z: FloatArray) -> FloatArray:
    """Lengths of the axis that points stand for, in the trapezoidal rule."""
    width = np.diff(z, prepend=z[0], append=z[-1])
    return np.asarray((width[:-1] + width[1:]) / 2)


def _with_size(
    tested: Difference, covariance: FloatArray, degrees: float, level: float
) -> Difference:
    """With the root mean square of the difference along the axis, and with its largest value."""
    z, difference = tested.grid_value, tested.difference
    largest = int(np.argmax(np.abs(difference)))
    length = along_axis(z)
    share = length / length.sum() if length.sum() > 0 else np.full(len(z), 1 / len(z))
    square = quadratic.square(difference, np.diag(share), covariance, degrees)
    low, high = square.interval(level)
    # Up to rounding there is no difference at all.
    size = square.size if tested.statistic > 0 or tested.reason else 0.0
    return tested._replace(
        size=size,
        size_ci=(float(low), float(high)),
        largest=float(abs(difference[largest])),
        largest_at=float(z[largest]),
    )
