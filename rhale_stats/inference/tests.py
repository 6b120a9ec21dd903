"""Results of tests as tables."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pandas as pd
import xarray as xr

from rhale_stats.inference.notes import because, bins_note, reasons_of, rows_of
from rhale_stats.printing import text
from rhale_stats.printing.text import cell, with_facts
from rhale_stats.schema.features import feature_names
from rhale_stats.schema.notes import with_notes

if TYPE_CHECKING:
    from statsmodels.iolib.summary import Summary


COLUMNS = (
    *("statistic", "df", "df_denominator", "p_value", "p_value_adjusted"),
    *("largest", "largest_at", "size"),
)


def glance(test: xr.Dataset, _level: float) -> pd.DataFrame:
    """`glance` of a test: a line a feature."""
    names = [name for name in COLUMNS if name in test]
    table = {"term": feature_names(test), **{name: test[name].values for name in names}}
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
        bounds = {
            f"{prefix}_{end}": row[f"difference_{kind}"].values[has_place, end_number]
            for prefix, kind in (("conf", "ci"), ("band", "band"))
            for end_number, end in enumerate(("low", "high"))
        }
        frames.append(
            pd.DataFrame(
                {
                    "term": name,
                    "x": row["grid_value"].values[has_place],
                    "estimate": row["difference"].values[has_place],
                    "std_error": row["difference_se"].values[has_place],
                    **bounds,
                }
            )
        )
    return pd.concat(frames, ignore_index=True)


def summary(test: xr.Dataset, _feature: object, level: float) -> Summary:
    """A test, a line a feature."""
    attrs, table = test.attrs, glance(test, level)
    heads = {
        "statistic": "statistic",
        "df": "df",
        "df_denominator": "df, denominator",
        "p_value": "P",
        "p_value_adjusted": f"P, adjusted ({attrs['adjust']})",
        "size": "size",
        "size_low": "low",
        "size_high": "high",
        "largest": "largest",
    }
    heads = {name: head for name, head in heads.items() if name in table}
    lines = [[cell(line, name) for name in heads] for _, line in table.iterrows()]
    rules = dict.fromkeys(str(attrs[key]) for key in ("bin_rule", "bin_rule_b") if key in attrs)
    cells = [
        ["Rows:", rows_of(attrs), "Bins:", re.sub(r"\([^)]*\)", "", " and ".join(rules))],
        ["Uncertainty:", text.uncertainty(str(attrs["source"])), "", ""],
    ]
    intervals = [
        f"{name}: {test[name].attrs['ci_prob']:.3g}, {test[name].attrs['kind']}."
        for name in ("difference_ci", "difference_band")
        if name in test
    ]
    if "size" in test:
        ends = ""
        if "size_ci" in test:
            ends = f"; low, high: its {100 * test['size_ci'].attrs['ci_prob']:.3g} % interval"
        intervals.insert(0, f"size: {test['size'].attrs['long_name']}{ends}.")
    notes = [
        *because(table["term"].tolist(), reasons_of(table)),
        f"Null hypothesis: {attrs['null']}.",
        *intervals,
        bins_note(attrs),
    ]
    title = f"Test on {attrs['output_name']}: {attrs['test']}"
    stubs = table["term"].tolist()
    return with_notes(with_facts(cells, title, lines, list(heads.values()), stubs), notes)
