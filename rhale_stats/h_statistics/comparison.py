"""Tests of no difference between H-statistics."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from rhale_stats.arrays.moments import FloatArray
from rhale_stats.h_statistics.inference import (
    METHOD,
    check_kept,
    degrees_of,
    degrees_of_groups,
    group_codes,
    influence_of,
    is_frequency,
    moved,
    statistics_of,
    std_error,
    weight_of,
)
from rhale_stats.h_statistics.labelled import OTHER
from rhale_stats.inference.adjustment import adjusted
from rhale_stats.inference.estimate import BOUNDS, Estimate, Facts, by_errors, interval
from rhale_stats.inference.parameters import refuse_shared
from rhale_stats.inference.results import ComparisonOptions
from rhale_stats.schema.features import feature_names
from rhale_stats.schema.kinds import H_STATISTICS
from rhale_stats.schema.variables import software

# --- two results ----------------------------------------------------------------------------------


def compare(a: xr.Dataset, b: xr.Dataset, request: ComparisonOptions) -> xr.Dataset:
    """`compare` of H-statistics: differences, a less b, with the rows of one table as pairs."""
    a, b = _comparable(a, b)
    same_table = all(a.attrs[name] == b.attrs[name] for name in ("table_hash", "n_rows_total"))
    if request.paired is not None:
        _check_paired(request.paired, a, b)
    pairs = request.paired is not None or same_table
    refuse_shared(a, b, "H-statistics", paired=pairs)
    if request.groups is not None and not pairs:
        raise ValueError(
            "groups must come with results of one table; a and b are of two. Give groups to each: "
            "std_error(found, groups=...)."
        )
    names = [name for name in statistics_of(a) if name in b]
    if pairs:
        error, degrees, source = _paired_errors(a, b, names, request.groups)
    else:
        a, b = [result if "h2_se" in result else std_error(result, None, None) for result in (a, b)]
        error = {name: np.hypot(a[f"{name}_se"].values, b[f"{name}_se"].values) for name in names}
        degrees, source = min(degrees_of(a), degrees_of(b)), "rows against rows, independent"
    data: dict[str, Any] = {}
    for name in names:
        data |= _differences(name, a, b, error[name], degrees, source, request)
    coords: dict[str, Any] = dict(BOUNDS)
    coords |= {name: a[name] for name in ("feature", OTHER) if name in a.dims}
    attributes = ("h_kind", "output_name", "output_units")
    facts = {
        "method": METHOD,
        **{name: a.attrs[name] for name in attributes},
        "n_rows_a": a.attrs["n_rows"],
        "n_rows_b": b.attrs["n_rows"],
        "source": source,
        "adjust": request.adjust,
        "software": software(),
    }
    return xr.Dataset(data, coords, facts)


def _differences(
    name: str,
    a: xr.Dataset,
    b: xr.Dataset,
    error: FloatArray,
    degrees: float,
    source: str,
    request: ComparisonOptions,
) -> dict[str, Any]:
    """The difference of one statistic with standard error, interval and p-values."""
    dims, units = tuple(map(str, a[name].dims)), str(a[name].attrs["units"])
    text = f"difference of {a[name].attrs['long_name']}"
    attributes = {"units": units, "source": source}
    facts = Facts(dims, f"the {text}", units, text, source)
    difference = a[name].values - b[name].values
    ends, method = by_errors(Estimate(difference, facts, error, degrees), request.level)
    from scipy import stats

    with np.errstate(invalid="ignore", divide="ignore"):
        statistic = np.abs(difference) / error
    p_value = np.asarray(2 * stats.t.sf(statistic, degrees))
    p_value = np.where(np.abs(difference) <= _rounding(a, b, name), 1.0, p_value)
    return {
        f"{name}_difference": (dims, difference, {"long_name": text, **attributes}),
        f"{name}_difference_se": (
            dims, error, {"long_name": f"standard error of the {text}", **attributes},
        ),
        f"{name}_difference_ci": interval(facts, ends, request.level, method),
        f"{name}_p_value": (dims, p_value, {"long_name": f"P of no {text}", "units": "1"}),
        f"{name}_p_value_adjusted": (
            dims,
            _adjusted(p_value, request.adjust),
            {"long_name": f"P of no {text}, adjusted", "units": "1", "adjust": request.adjust},
        ),
    }  # fmt: skip


def _rounding(a: xr.Dataset, b: xr.Dataset, name: str) -> FloatArray:
    """What rounding alone may make two statistics differ by."""
    size = float(a["h_error"]) + float(b["h_error"])
    if not name.startswith("h2"):
        return np.asarray(size)
    share, root = [
        np.maximum(a[variable].values, b[variable].values)
        for variable in (name, name.replace("h2", "h"))
    ]
    # A share goes with the square of its size, of which both parts round.
    relative = np.divide(size, root, out=np.zeros_like(root), where=root > 0)
    return np.asarray(4 * share * relative)


def _comparable(a: object, b: object) -> tuple[xr.Dataset, xr.Dataset]:
    """Both, features in one order; refused unless they are of the same kind and features."""
    for name, result in (("a", a), ("b", b)):
        if not H_STATISTICS.holds(result):
            raise ValueError(
                f"a and b must both be what h_statistic(model, X) returned; {name} is not."
            )
    assert isinstance(a, xr.Dataset)
    assert isinstance(b, xr.Dataset)
    if a.attrs["h_kind"] != b.attrs["h_kind"]:
        raise ValueError(
            f"a and b must be of one kind; got {a.attrs['h_kind']!r} and {b.attrs['h_kind']!r}. "
            f"Make them with one kind=."
        )
    features = feature_names(a), feature_names(b)
    if sorted(features[0]) != sorted(features[1]):
        raise ValueError(
            f"a and b must have the same features; got {', '.join(features[0])} and "
            f"{', '.join(features[1])}. Make both with one features=[...]."
        )
    order = {dim: a[dim].values for dim in ("feature", OTHER) if dim in a.dims and dim in b.dims}
    return a, b.sel(order)


def _check_paired(paired: object, a: xr.Dataset, b: xr.Dataset) -> None:
    """Refuse pairs that cannot be."""
    if not (
        isinstance(paired, tuple) and len(paired) == 2 and all(map(H_STATISTICS.holds, paired))
    ):
        raise TypeError("paired must be (a, b) for H-statistics, which have their rows with them.")
    totals = [int(result.attrs["n_rows_total"]) for result in (a, b)]
    if totals[0] != totals[1]:
        raise ValueError(
            f"paired must be of the same rows; got tables of {totals[0]} and {totals[1]} rows."
        )


def _paired_errors(
    a: xr.Dataset, b: xr.Dataset, names: list[str], groups: ArrayLike | None
) -> tuple[dict[str, FloatArray], float, str]:
    """Standard errors of differences where rows of one table move both, math [62]."""
    for parameter, result in (("a", a), ("b", b)):
        check_kept(result, "pairs of rows", parameter)
        if groups is None and "n_groups" in result.attrs:
            raise ValueError(
                f"groups must be given where a or b has standard errors by groups, as {parameter} "
                f"has: compare(a, b, groups=...)."
            )
    every = np.union1d(a["row"].values, b["row"].values)
    places = [np.searchsorted(every, result["row"].values) for result in (a, b)]
    weights = [np.zeros(len(every)), np.zeros(len(every))]
    for weight, place, result in zip(weights, places, (a, b), strict=True):
        weight[place] = weight_of(result)
    frequency = [is_frequency(result) for result in (a, b)]
    both = (weights[0] > 0) & (weights[1] > 0)
    if any(frequency) and groups is None:
        different = both & (weights[0] != weights[1])
        if different.any() or frequency[0] != frequency[1]:
            raise ValueError(
                "a and b must have the same frequencies, as these count pairs; got others. Use "
                "weights of kind 'precision'."
            )
    error, code = {}, None
    degrees, source = min(degrees_of(a), degrees_of(b)), "pairs of rows"
    if groups is not None:
        code = group_codes(groups, a, b)
        degrees = min(
            degrees_of_groups(result, code[place])
            for result, place in zip((a, b), places, strict=True)
        )
        source = f"pairs of rows in {int(code.max()) + 1} groups"
    for name in names:
        parts = []
        for result, place, weight, counted in zip((a, b), places, weights, frequency, strict=True):
            influence = np.zeros((*result[name].shape, len(every)))
            influence[..., place] = influence_of(result, name)
            parts.append(moved(influence, weight, code, frequency=counted))
        error[name] = np.sqrt(np.sum((parts[0] - parts[1]) ** 2, axis=-1))
    return error, degrees, source


def _adjusted(p_value: FloatArray, adjust: str) -> FloatArray:
    """P-values adjusted over features, or over pairs, each of which counts once."""
    if p_value.ndim < 2:
        return adjusted(np.atleast_1d(p_value), adjust).reshape(p_value.shape)
    out = np.full(p_value.shape, np.nan)
    j, k = np.triu_indices(len(p_value), 1)
    out[j, k] = out[k, j] = adjusted(p_value[j, k], adjust)
    return out
