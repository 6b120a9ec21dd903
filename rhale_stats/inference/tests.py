"""Results of tests, and replicates, as tables and pages."""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from rhale_stats.arguments.times import shown_values
from rhale_stats.inference.notes import because, bins_note, reasons_of, rows_of
from rhale_stats.printing.text import (
    number_text,
    output_text,
    table_lines,
    uncertainty,
    variables_table,
    with_facts,
)
from rhale_stats.schema.dimensions import PARTS
from rhale_stats.schema.features import axis_units, feature_names
from rhale_stats.schema.notes import PrintedTable, Summary

COLUMNS = (
    *("statistic", "df", "df_denominator", "p_value", "p_value_adjusted"),
    *("largest", "largest_at", "size"),
)
# Columns of the page, and of the summary, with their heads.
TESTED = {
    "statistic": "statistic",
    "df": "df",
    "df_denominator": "df, denominator",
    "p_value": "P",
    "p_value_adjusted": "P, adjusted ({adjust})",
}
SIZES = {"size": "size", "size_low": "low", "size_high": "high", "largest": "largest"}
QUANTILES = (0.025, 0.5, 0.975)
# Variables whose quantiles are shown for replicates; the first that exists is taken.
REPLICATED = ("importance", "average_effect", "h2_overall", "h_overall", "n_bins", "h2", "h")


def glance(test: xr.Dataset, _level: float) -> pd.DataFrame:
    """`glance` of a test: a line a feature."""
    names = [name for name in COLUMNS if name in test]
    table = {"term": feature_names(test), **{name: test[name].values for name in names}}
    if "largest_at" in table:
        rows = [test.isel(feature=[number]) for number in range(test.sizes["feature"])]
        shown = [shown_values(r["largest_at"].values, axis_units(r.squeeze())) for r in rows]
        table["largest_at"] = pd.concat(list(map(pd.Series, shown)), ignore_index=True)
    if "size_ci" in test:
        low, high = test["size_ci"].transpose(..., "ci_bound").values.T
        table |= {"size_low": low, "size_high": high}
    if "reason" in test and not (test["reason"] == "").all():
        table["reason"] = test["reason"].values
    return pd.DataFrame(table)


def tidy(test: xr.Dataset, level: float) -> pd.DataFrame:
    """`tidy` of a test: a line a feature, or a line a point of a difference."""
    if "difference" not in test:
        return glance(test, level)
    frames = []
    for number, name in enumerate(feature_names(test)):
        row = test.isel(feature=number)
        has_place = row["grid_value"].notnull().values
        x = shown_values(row["grid_value"].values[has_place], axis_units(row))
        columns = {"term": name, "x": x}
        frames.append(pd.DataFrame(columns | difference_columns(row, (has_place,))))
    return pd.concat(frames, ignore_index=True)


def difference_columns(
    result: xr.Dataset, places: tuple[NDArray[Any], ...]
) -> dict[str, NDArray[np.float64]]:
    """The difference of two results at some places, with its error, interval and band."""
    columns = {"estimate": "difference", "std_error": "difference_se"}
    ends = {
        f"{prefix}_{end}": result[f"difference_{kind}"].values[(*places, bound)]
        for prefix, kind in (("conf", "ci"), ("band", "band"))
        for bound, end in enumerate(("low", "high"))
    }
    return {column: result[name].values[places] for column, name in columns.items()} | ends


def _heads(table: pd.DataFrame, columns: dict[str, str], adjust: str) -> dict[str, str]:
    """Heads of the columns that a table has."""
    return {name: head.format(adjust=adjust) for name, head in columns.items() if name in table}


def summary(test: xr.Dataset, _feature: object, level: float) -> Summary:
    """A test, a line a feature."""
    attrs, table = test.attrs, glance(test, level)
    heads = _heads(table, TESTED | SIZES, attrs["adjust"])
    lines = table_lines(table, heads)
    rules = dict.fromkeys(str(attrs[key]) for key in ("bin_rule", "bin_rule_b") if key in attrs)
    bins = re.sub(r"\([^)]*\)", "", " and ".join(rules))
    cells = [
        ["Rows:", rows_of(attrs), *(("Bins:", bins) if rules else ("", ""))],
        ["Uncertainty:", uncertainty(str(attrs["source"])), "", ""],
    ]
    intervals = [
        f"{name}: {test[name].attrs['ci_prob']:.3g}, {test[name].attrs['kind']}."
        for name in ("difference_ci", "difference_band")
        if name in test
    ]
    regions = {side: attrs[f"region_of_{side}"] for side in "ab" if f"region_of_{side}" in attrs}
    sides = (
        [f"Difference a less b, {'; '.join(map(': '.join, regions.items()))}."] if regions else []
    )
    if "size" in test:
        ends = ""
        if "size_ci" in test:
            ends = f"; low, high: its {100 * test['size_ci'].attrs['ci_prob']:.3g} % interval"
        intervals.insert(0, f"size: {test['size'].attrs['long_name']}{ends}.")
    notes = [
        *because(table["term"].tolist(), reasons_of(table)),
        f"Null hypothesis: {attrs['null']}.",
        *sides,
        *intervals,
        *([bins_note(attrs)] if rules else []),
    ]
    title = f"Test on {attrs['output_name']}: {attrs['test']}"
    stubs = table["term"].tolist()
    # The smallest P first.
    sizes = (-table["p_value"]).to_numpy
    return Summary(with_facts(cells, title, lines, [*heads.values()], stubs, sizes=sizes), notes)


def replicates_summary(boot: xr.Dataset, _feature: object, _level: float) -> Summary:
    """Replicates: quantiles of one size; else the variables."""
    attrs = boot.attrs
    order = [dim for dim in ("chain", "draw") if dim in boot.dims]
    name = next(
        (name_of_size for name_of_size in REPLICATED if name_of_size in boot.data_vars), None
    )
    table = variables_table(boot)
    if name is not None and set(boot[name].dims) <= {*order, "feature", *PARTS}:
        values = boot[name].stack(all_draws=order).transpose(..., "all_draws")
        draws = values.values.reshape(-1, values.sizes["all_draws"])
        with np.errstate(all="ignore"):
            some = np.isfinite(draws).any(axis=1)
            ends = np.full((len(draws), 3), np.nan)
            ends[some] = np.nanquantile(draws[some], QUANTILES, axis=1).T
        lines = [[*map(number_text, line)] for line in ends]
        heads = [f"{100 * share:g} %" for share in QUANTILES]
        labels = _labels(values.isel(all_draws=0, drop=True))
        title = f"Replicates of {name} ({attrs.get('method', 'bootstrap')}) on {output_text(boot)}"
        table = PrintedTable(lines, heads, labels, title, sizes=np.abs(ends[:, 1]).copy)
    sizes = " × ".join(f"{boot.sizes[dim]} {dim}s" for dim in order)
    source = uncertainty(str(attrs.get("source", "rows")))
    return Summary([table], [], (f"{sizes}. Uncertainty: {source}.",))


def _labels(values: xr.DataArray) -> list[str]:
    """A name for every number of an array over features, outputs and regions."""
    each = [
        values[dim].values if dim in values.coords else range(n) for dim, n in values.sizes.items()
    ]
    return [", ".join(map(str, parts)) or str(values.name) for parts in product(*each)]
