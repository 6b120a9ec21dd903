"""Pages of `show` for tests and replicates."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import xarray as xr

from rhale_stats.inference.notes import rows_of
from rhale_stats.printing import text
from rhale_stats.printing.pages import (
    Line,
    Page,
    PageTable,
    largest_first,
    output,
    table_of,
    variables_table,
)
from rhale_stats.printing.text import number_text, pvalue_text
from rhale_stats.schema.dimensions import PARTS
from rhale_stats.schema.features import feature_names

QUANTILES = (0.025, 0.5, 0.975)
# Variables whose quantiles are shown for replicates; the first that exists is taken.
REPLICATED = ("importance", "average_effect", "h2_overall", "h_overall", "n_bins", "h2", "h")


def test_page(test: xr.Dataset, most: int) -> Page:
    """The page that shows a test: its facts, and a table, the smallest p-values first."""
    attrs, names = test.attrs, feature_names(test)
    heads = {"statistic": "statistic", "df": "df", "df_denominator": "df, denominator"}
    heads["p_value"] = "P"
    heads["p_value_adjusted"] = f"P, adjusted ({attrs['adjust']})"
    columns = {name: test[name].values for name in heads if name in test}
    order = np.argsort(np.nan_to_num(columns["p_value"], nan=np.inf), kind="stable")[:most]
    lines = [
        [
            names[position],
            *(
                (pvalue_text if name.startswith("p_") else number_text)(float(values[position]))
                for name, values in columns.items()
            ),
        ]
        for position in order
    ]
    reasons = test["reason"].values.astype(str) if "reason" in test else np.array([], dtype=str)
    reasons_shown = tuple(
        f"{names[position]}: {reasons[position]}."
        for position in order
        if len(reasons) and reasons[position]
    )
    table = table_of(["", *(heads[name] for name in columns)], lines, len(names), "features", "")
    return Page(
        f"Test on {output(test)}: {attrs['test']}",
        (
            f"{rows_of(attrs)} rows; null hypothesis: {attrs['null']}",
            f"Uncertainty: {text.uncertainty(str(attrs['source']))}",
        ),
        (replace(table, notes=(*table.notes, *reasons_shown[:3])),),
        "summary(result), tidy(result)",
    )


def replicates_page(boot: xr.Dataset, most: int) -> Page:
    """The page that shows replicates: facts, and quantiles of one size; else the variables."""
    attrs = boot.attrs
    order = [dim for dim in ("chain", "draw") if dim in boot.dims]
    name = next(
        (name_of_size for name_of_size in REPLICATED if name_of_size in boot.data_vars), None
    )
    tables: tuple[PageTable, ...] = (variables_table(boot, most),)
    if name is not None and set(boot[name].dims) <= {*order, "feature", *PARTS}:
        values = boot[name].stack(all_draws=order).transpose(..., "all_draws")
        draws = values.values.reshape(-1, values.sizes["all_draws"])
        with np.errstate(all="ignore"):
            some = np.isfinite(draws).any(axis=1)
            ends = np.full((len(draws), 3), np.nan)
            ends[some] = np.nanquantile(draws[some], QUANTILES, axis=1).T
        labels = _labels(values.isel(all_draws=0, drop=True))
        first = largest_first(np.abs(ends[:, 1]))[:most]
        lines = [[labels[position], *map(number_text, ends[position])] for position in first]
        heads = ["", *(f"{100 * share:g} %" for share in QUANTILES)]
        caption = f"{name} in the replicates"
        tables = (table_of(heads, lines, len(labels), "lines", "", caption),)
    sizes = " × ".join(f"{boot.sizes[dim]} {dim}s" for dim in order)
    return Page(
        f"Replicates ({attrs.get('method', 'bootstrap')}) on {output(boot)}",
        (sizes, f"Uncertainty: {text.uncertainty(str(attrs.get('source', 'rows')))}"),
        tables,
        "confint(effect, boot), effect_sizes(effect, boot)",
    )


def _labels(values: xr.DataArray) -> Line:
    """A name for every number of an array over features, outputs and regions."""
    each = [
        values[dim].values if dim in values.coords else range(n) for dim, n in values.sizes.items()
    ]
    return [", ".join(map(str, parts)) or str(values.name) for parts in product(*each)]
