"""What is shown of results of several models."""

from __future__ import annotations

import xarray as xr

from rhale_stats.ensembles import tables
from rhale_stats.ensembles.members import check_ensemble, size_of
from rhale_stats.ensembles.printed import count_of, title_of, uncertainty_of
from rhale_stats.printing.pages import (
    IMPORTANCE,
    Page,
    largest_first,
    output,
    rows_text,
    table_of,
)
from rhale_stats.printing.text import number_text

LEVEL = 0.95


def ensemble_page(ensemble: xr.Dataset, most: int) -> Page:
    """The page of the features of largest importance, with the parts of their errors."""
    ensemble = tables.with_intervals(check_ensemble(ensemble), LEVEL)
    table = tables.glance(ensemble, LEVEL)
    heads = {
        "importance": "importance",
        "heterogeneity_output": "H",
        "estimate": "avg effect",
        "std_error": "std err",
        "std_error_model": "of model",
        "std_error_rows": "of rows",
        "curve_min": "lowest",
        "curve_max": "highest",
    }
    heads = {name: head for name, head in heads.items() if name in table}
    names = table["term"].tolist()
    order = largest_first(size_of(ensemble))[:most]
    lines = [
        [names[position], *(number_text(float(table[name].iloc[position])) for name in heads)]
        for position in order
    ]
    for line, position in zip(lines, order, strict=True):
        if table["kind"].iloc[position] == "constant":
            line[1] = "constant"
    note = "lowest, highest: of the curve."
    if "importance" in table:
        note = f"{IMPORTANCE}. H: how much rows differ, mean over the models. {note}"
    first = repr(lines[0][0])
    return Page(
        f"{title_of(ensemble)}: effects on {output(ensemble)}",
        (
            f"{rows_text(ensemble)}; {count_of(ensemble)} members",
            f"Uncertainty: {uncertainty_of(ensemble)}",
        ),
        (table_of(["", *heads.values()], lines, len(names), "features", note),),
        f"summary(effect, {first}), plot_effect(effect, {first}), tidy(effect)",
    )
