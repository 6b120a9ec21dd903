"""What is shown of profiles."""

from __future__ import annotations

import xarray as xr

from rhale_stats.printing.pages import (
    IMPORTANCE,
    Page,
    largest_first,
    output,
    rows_text,
    table_of,
    uncertainty_line,
)
from rhale_stats.printing.text import number_text
from rhale_stats.profiles import tables
from rhale_stats.profiles.data import METHOD_NAMES


def profile_page(profile: xr.Dataset, most: int) -> Page:
    """What is printed of a profile: the features of largest importance."""
    table = tables.glance(profile, 0.95)
    names = table["term"].tolist()
    order = largest_first(table["importance"].to_numpy())[:most]
    columns = ["importance", "heterogeneity_output", "curve_min", "curve_max"]
    heads = ["", "importance", "heterog.", "lowest", "highest"]
    known = "curve_se" in profile and bool(profile["curve_se"].notnull().any())
    if known:
        table["largest_se"] = profile["curve_se"].max("grid").values
        columns.append("largest_se")
        heads.append("std err up to")
    lines = [
        [names[at], *(number_text(float(table[column].iloc[at])) for column in columns)]
        for at in order
    ]
    for line, at in zip(lines, order, strict=True):
        if table["kind"].iloc[at] == "constant":
            line[1] = "constant"
    first = repr(lines[0][0])
    return Page(
        f"{METHOD_NAMES[str(profile.attrs['method'])]}: effects on {output(profile)}",
        (
            rows_text(profile),
            uncertainty_line(profile, "curve_se", estimated=known),
        ),
        (
            table_of(
                heads,
                lines,
                len(names),
                "features",
                f"{IMPORTANCE}. heterog.: root mean square of the spread about it. lowest, "
                "highest: of the curve.",
            ),
        ),
        f"summary(effect, {first}), plot_profile(effect, {first}), tidy(effect)",
    )
