"""Results of tests, and differences of two curves, labelled alike for all kinds of results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from rhale_stats.arrays import intervals
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.inference.adjustment import adjusted
from rhale_stats.schema.variables import OUTPUT_UNITS, software

EXACT = "the local effects of both vary by numerical error only, so there is no sampling error"
CONSTANT = "the feature is constant"
GRID_POINT = "point of the grid"
NO_ERROR = "the difference has no standard error at some points"


def labelled_test(
    effect: xr.Dataset, values: dict[str, Any], adjust: str, **facts: str | float
) -> xr.Dataset:
    """Results of a test, over features; ``reason`` says why there is no p-value."""
    names = {
        "statistic": "test statistic",
        "df": "degrees of freedom",
        "p_value": "p-value",
        "p_value_adjusted": "p-value, adjusted over features",
        "reason": "why there is no p-value",
    }
    nothing = np.full(len(values["p_value"]), "")
    values = {"reason": nothing} | values
    values = values | {"p_value_adjusted": adjusted(values["p_value"], adjust)}
    return xr.Dataset(
        {
            name: ("feature", values[name], {"long_name": names.get(name, name), "units": "1"})
            for name in (*(name for name in values if name != "reason"), "reason")
        },
        {"feature": effect["feature"], "feature_kind": effect["feature_kind"]},
        {
            "method": "test",
            "adjust": adjust,
            **facts,
            "output_name": effect.attrs.get("output_name", "output"),
            "output_units": effect.attrs.get("output_units", ""),
            "bin_rule": effect.attrs.get("bin_rule", "unknown"),
            "bin_parameters": effect.attrs.get("bin_parameters", ""),
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


def no_difference(reason: str) -> Difference:
    """Empty difference of a feature, with the reason."""
    none, bounds = np.full(0, np.nan), np.full((0, 2), np.nan)
    return Difference(none, none, none, bounds, bounds, np.nan, np.nan, reason)


def labelled_differences(
    found: Sequence[Difference],
    a: xr.Dataset,
    b: xr.Dataset,
    names: list[str],
    source: str,
    level: float,
    adjust: str,
) -> xr.Dataset:
    """Differences of all features, with the tests."""
    tested = labelled_test(
        a.sel(feature=names),
        {
            "statistic": np.array([difference.statistic for difference in found]),
            "p_value": np.array([difference.p_value for difference in found]),
            "reason": np.array([difference.reason for difference in found]),
        },
        adjust,
        null="no difference between the curves",
        source=source,
        test="compare, largest standardised difference",
        centering=str(a.attrs["centering"]),
    )
    grid_value = ("feature", "grid"), _padded(found, "grid_value"), {"long_name": GRID_POINT}
    return (
        _with_regions(tested, a, b)
        .assign(_difference_variables(found, source, level))
        .assign_coords(
            grid_value=grid_value,
            ci_bound=("ci_bound", ["lower", "upper"]),
            feature_units=("feature", a.sel(feature=names)["feature_units"].values),
        )
    )


def _padded(found: Sequence[Difference], name: str) -> FloatArray:
    """One field of all differences, (feature, grid, ...), NaN beyond the grid of a feature."""
    n_grid = max(len(difference.grid_value) for difference in found)
    parts = [getattr(difference, name) for difference in found]
    out = np.full((len(found), n_grid, *parts[0].shape[1:]), np.nan)
    for number, part in enumerate(parts):
        out[number, : len(part)] = part
    return out


def _difference_variables(
    found: Sequence[Difference], source: str, level: float
) -> dict[str, tuple[tuple[str, ...], FloatArray, dict[str, str | float]]]:
    """The differences at the points of the grid, with their errors, intervals and bands."""
    facts: dict[str, str | float] = {"units": OUTPUT_UNITS, "target": "difference of the curves"}
    interval = {**facts, "source": source, "ci_prob": level, "ci_kind": "confidence"}
    attrs: dict[str, dict[str, str | float]] = {
        "difference": {"long_name": "a less b", **facts},
        "difference_se": {"long_name": "standard error of a less b", **facts},
        "difference_ci": {
            "long_name": "confidence interval of a less b",
            "kind": "pointwise",
            **interval,
        },
        "difference_band": {
            "long_name": "band of a less b",
            "kind": "simultaneous over the axis",
            **interval,
        },
    }
    dims = ("feature", "grid", "ci_bound")
    arrays = {name: _padded(found, name) for name in attrs}
    return {name: (dims[: array.ndim], array, attrs[name]) for name, array in arrays.items()}


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
    level: float,
    n_draws: int,
    rng: np.random.Generator,
    least: float = 0.0,
) -> Difference:
    """The difference of two curves at points, with the covariance of its error.

    ``degrees`` are of freedom: one number for groups, else one for every point. Up to ``least``
    there is nothing but numerical error.
    """
    difference = values[0] - values[1]
    se = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
    own = np.broadcast_to(degrees, se.shape)
    score = intervals.largest_deviation(covariance, level, degrees, n_draws, rng)
    # Without sampling error, as at the start of a curve, a zero difference has statistic 0.
    least = max(least, 1e-12 * float(np.abs(np.array(values)).max(initial=0.0)))
    with np.errstate(invalid="ignore", divide="ignore"):
        scaled = np.where(np.abs(difference) <= least, 0.0, np.abs(difference) / se)
    statistic, reason = float(scaled.max()), ""
    largest = float(intervals.normal_score(scaled, own).max())
    if np.isnan(statistic):
        reason = NO_ERROR
    elif statistic > 0 and (se <= least).all():
        statistic, reason, largest = float("nan"), EXACT, float("nan")
    return Difference(
        z,
        difference,
        se,
        intervals.around(difference, intervals.student(level, own) * se),
        intervals.around(difference, intervals.score_quantile(score, own) * se),
        statistic,
        intervals.largest_deviation_pvalue(covariance, largest, degrees, n_draws, rng),
        reason,
    )
