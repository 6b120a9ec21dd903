"""Sizes of effects as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import xarray as xr

from rhale_stats.inference.notes import bins_note
from rhale_stats.printing.text import holds_model, number_text, pvalue_text
from rhale_stats.schema.features import feature_names
from rhale_stats.schema.notes import with_notes

if TYPE_CHECKING:
    from statsmodels.iolib.summary import Summary

# Columns of sizes that were compared with those by chance.
BY_CHANCE = ("threshold", "chance_p_value")
HEADS = {"p_value": "P", "chance_p_value": "P chance"}


def tidy_sizes(sizes: xr.Dataset, _level: float) -> pd.DataFrame:
    """`tidy` of sizes: a line a size of a feature."""
    names = [str(name) for name in sizes.data_vars if sizes[name].dims == ("feature",)]
    tested = any(str(name).endswith("_p_value") for name in sizes.data_vars)
    lines = []
    for number, term in enumerate(feature_names(sizes)):
        row = sizes.isel(feature=number)
        for name in names:
            if name.endswith(("_corrected", "_p_value", "_threshold")):
                continue
            line = {"term": term, "size": name, "estimate": float(row[name])}
            if f"{name}_corrected" in sizes:
                line["corrected"] = float(row[f"{name}_corrected"])
            low, high = row[f"{name}_ci"].values if f"{name}_ci" in sizes else (np.nan, np.nan)
            line |= {"conf_low": float(low), "conf_high": float(high)}
            known = f"{name}_p_value" in sizes
            if tested:
                line["p_value"] = float(row[f"{name}_p_value"]) if known else np.nan
            if "chance" in sizes.attrs:
                line |= {column: float(row.get(f"{name}_{column}", np.nan)) for column in BY_CHANCE}
            lines.append(line)
    return pd.DataFrame(lines)


def _chance_notes(sizes: xr.Dataset) -> list[str]:
    """How sizes by chance were found, where they were."""
    attrs = sizes.attrs
    if "chance" not in attrs:
        return []
    level = float(sizes["importance_threshold"].attrs["level"])
    failed = int(sizes["failed"].sum())
    of = "an added random column" if attrs["chance"] == "added column" else "the column permuted"
    lost = f" ({failed} fits failed)" if failed else ""
    return [
        f"threshold, P chance: sizes in {attrs['n_resamples']} fits{lost} of the model with {of}; "
        f"larger sizes than the threshold have P of at most {1 - level:.3g}. They include "
        f"overfitting; P does not."
    ]


def sizes_summary(sizes: xr.Dataset, _feature: object, level: float) -> Summary:
    """Sizes of effects, a line a size."""
    from statsmodels.iolib.table import SimpleTable
    from statsmodels.iolib.tableformatting import fmt_params

    attrs, table = sizes.attrs, tidy_sizes(sizes, level)
    names = [str(name) for name in table.columns if name not in ("term", "size")]
    heads = [HEADS.get(name, name) for name in names]
    lines = [
        [(pvalue_text if name in HEADS else number_text)(line[name]) for name in names]
        for _, line in table.iterrows()
    ]
    stubs = [f"{line['term']}: {line['size']}" for _, line in table.iterrows()]
    several = "aled" not in sizes
    notes = [
        "importance: standard deviation of the curve over the rows."
        + ("" if several else " aled: mean distance of the curve from its mean."),
        ("" if several else "aler: lowest and highest value of the curve. ")
        + "heterogeneity_output: heterogeneity in the bins (root mean square) times the standard "
        "deviation of the feature.",
    ]
    if "naled" in sizes:
        notes.append(
            "naled, naler: aled and aler on the scale of the outcomes, from -50 (below all of "
            "them) over 0 (their median) to 50."
        )
    if "bin_rule" in attrs:
        notes.append(bins_note(attrs))
    intervals = [str(name) for name in sizes.data_vars if str(name).endswith("_ci")]
    if intervals:
        facts = sizes[intervals[0]].attrs
        given = "" if holds_model(str(facts["source"])) else " They treat the model as given."
        said = [f"Intervals: {facts['ci_prob']:.3g}, {facts['method']}.{given}"]
        if "corrected" in table:
            said.append(
                "corrected: without the part of sampling noise. P: of the hypothesis that the "
                "curve is flat."
            )
        notes = [*said, *notes]
    notes = [*_chance_notes(sizes), *notes]
    title = f"Sizes of the effects on {attrs['output_name']}"
    return with_notes([SimpleTable(lines, heads, stubs, title, txt_fmt=fmt_params)], notes)
