"""Notes below printed tables that several kinds of results share, and parts of intervals."""

from __future__ import annotations

import re
from collections.abc import Hashable
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from rhale_stats.arrays.moments import FloatArray
from rhale_stats.inference.estimate import kept_interval
from rhale_stats.printing.text import holds_model, source_of
from rhale_stats.schema.feature_result import Result
from rhale_stats.schema.variables import answer_first

# What edges that were chosen by the local effects do to standard errors.
CHOSEN_BINS = (
    "They treat the bin edges as fixed, which were chosen on the same rows: intervals of bin "
    "effects are too narrow. honest=True reduces this."
)
CHOICE_INCLUDED = (
    "They include the choice of the bin edges on the same rows; intervals of the heterogeneity do "
    "not. honest=True chooses on other rows."
)


def bins_note(attrs: dict[Hashable, Any]) -> str:
    """The rule for bins and its parameters, in a sentence; of a comparison those of both."""
    rule, parameters = attrs["bin_rule"], attrs["bin_parameters"]
    description = f"{rule}({parameters})" if parameters else str(rule)
    if "bin_rule_b" in attrs or "bin_parameters_b" in attrs:
        rule, parameters = attrs.get("bin_rule_b", rule), attrs.get("bin_parameters_b", parameters)
        return f"Bins: {description} of the first, {rule}({parameters}) of the second."
    return f"Bins: {description}."


def rows_of(attrs: dict[Hashable, Any]) -> str:
    """Number of rows; of a comparison those of both, where they differ."""
    n_rows = str(attrs["n_rows"])
    return f"{n_rows} and {attrs['n_rows_b']}" if "n_rows_b" in attrs else n_rows


def reasons_of(table: pd.DataFrame) -> list[str]:
    """Why a line has a value that is 0 or missing; empty where it has none."""
    return table["reason"].tolist() if "reason" in table else [""] * len(table)


def because(names: list[str], reasons: list[str]) -> list[str]:
    """Reasons, each with the lines that it is given for."""
    names_of_reason: dict[str, list[str]] = {}
    for name, reason in zip(names, reasons, strict=True):
        if reason:
            names_of_reason.setdefault(reason, []).append(name)
    return [f"{', '.join(lines)}: {reason}." for reason, lines in names_of_reason.items()]


def how_made(result: Result, name: str, level: float) -> str:
    """How the intervals in a table were made."""
    if kept_interval(result, name, level) is None:
        return "Student's t"
    return str(result[f"{name}_ci"].attrs["method"]).removeprefix("standard errors, ")


def interval_notes(effect: xr.Dataset) -> list[str]:
    """Intervals and bands in the data: at which level, of what, by which method."""
    alike: dict[str, list[str]] = {}
    for name in answer_first(effect.data_vars):
        if str(name).endswith(("_ci", "_band")):
            facts = effect.variables[name].attrs
            how = f"{facts['ci_prob']:.3g}, {facts['kind']}, {facts['method']}; {facts['source']}"
            alike.setdefault(how, []).append(str(name))
    return [f"In the result: {', '.join(names)} ({how})." for how, names in alike.items()]


# --- parts of errors ------------------------------------------------------------------------------


# After the name of an estimate: its interval by the rows alone.
ROWS = "_ci_rows"
# A larger share of a covariance in the variance is mentioned.
SHARED = 0.01


def with_rows_alone(result: xr.Dataset) -> xr.Dataset:
    """The result with ``NAME_ci_rows`` beside every interval that holds rows and model.

    The quantile is that of the interval, so that lengths compare as standard errors do.
    """
    intervals = [str(name) for name in result.data_vars if _has_parts(result, str(name))]
    names = [name.removesuffix("_ci") for name in intervals]
    made = {f"{name}{ROWS}": _rows_alone(result, name) for name in names}
    return result.assign(made) if made else result


def _has_parts(result: xr.Dataset, interval: str) -> bool:
    """Whether a variable is an interval made of the standard error that has parts."""
    name = str(interval).removesuffix("_ci")
    if name == interval or not {name, f"{name}_se", f"{name}_se_rows"} <= set(result.data_vars):
        return False
    source = str(result[interval].attrs.get("source", ""))
    # Intervals by replicates have another source than the standard error.
    return source == source_of(result, name) and is_of_both(source)


def is_of_both(source: str) -> bool:
    """Whether a standard error of this source holds the rows and the model."""
    return holds_model(source) and "rows" in re.findall(r"\w+", source)


def parts_note(result: Result, name: str, what: str) -> str:
    """How much of the variance of estimates is due to the model, in a sentence; empty if unknown.

    Of the sum of both variances: their covariance belongs to neither.
    """
    if f"{name}_se_rows" not in result or not is_of_both(source_of(result, name)):
        return ""
    rows, model = (
        np.asarray(result[f"{name}_se_{part}"].values, dtype=np.float64) ** 2
        for part in ("rows", "model")
    )
    total = rows + model
    shares = np.divide(model, total, out=np.full(total.shape, np.nan), where=total > 0)
    if not np.isfinite(shares).any():
        return ""
    low, high = (f"{100 * end(shares):.0f}" for end in (np.nanmin, np.nanmax))
    text = low if low == high else f"{low} to {high}"
    cause = "parameters" if "parameters" in source_of(result, name) else "model"
    whole = np.asarray(result[f"{name}_se"].values, dtype=np.float64) ** 2
    shared = np.divide(whole - total, total, out=np.zeros(total.shape), where=total > 0)
    apart = ", covariance apart" if np.nanmax(np.abs(shared)) > SHARED else ""
    sentence = f"{text} % is due to the {cause} and the rest to the rows{apart}."
    return f"Of the variance of {what}, {sentence}"


def _rows_alone(result: xr.Dataset, name: str) -> xr.DataArray:
    dims = result[name].dims
    ends = result[f"{name}_ci"].transpose(*dims, "ci_bound")
    value, se, rows = (
        np.asarray(result[key].transpose(*dims).values, dtype=np.float64)[..., None]
        for key in (name, f"{name}_se", f"{name}_se_rows")
    )
    share = np.divide(rows, se, out=np.zeros(se.shape), where=se > 0)
    source = str(result[f"{name}_se_rows"].attrs.get("source", "rows"))
    shorter: FloatArray = value + share * (ends.values - value)
    return xr.DataArray(shorter, dims=ends.dims, attrs=ends.attrs | {"source": source})
