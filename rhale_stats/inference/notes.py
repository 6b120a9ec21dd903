"""Notes below printed tables that several kinds of results share."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import pandas as pd
import xarray as xr

from rhale_stats.inference.estimate import kept_interval
from rhale_stats.schema.feature_result import Result

# Rules that choose edges by the local effects, and what that does to standard errors.
SEARCHED = ("AdaptiveBins", "OptimalBins", "GreedyBins", "BestEqualWidthBins")
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
    for name in effect.data_vars:
        if str(name).endswith(("_ci", "_band")):
            facts = effect[name].attrs
            how = f"{facts['ci_prob']:.3g}, {facts['kind']}, {facts['method']}; {facts['source']}"
            alike.setdefault(how, []).append(str(name))
    return [f"In the result: {', '.join(names)} ({how})." for how, names in alike.items()]
