"""Averages with their intervals and covariance, and as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import xarray as xr

from rhale_stats.inference.estimate import (
    Estimate,
    Facts,
    chosen_method,
    ends_in_table,
    student,
    with_intervals,
)
from rhale_stats.inference.notes import how_made
from rhale_stats.printing.pages import Page, output, table_of, uncertainty_line
from rhale_stats.printing.text import (
    bounds_text,
    cell,
    holds_model,
    output_text,
    uncertainty,
    with_facts,
)
from rhale_stats.schema.dimensions import check_one_part, with_part_facts
from rhale_stats.schema.notes import with_notes

if TYPE_CHECKING:
    from statsmodels.iolib.summary import Summary

NUMBERS = ("estimate", "std_error", "statistic", "p_value", "conf_low", "conf_high")


def confint(found: xr.Dataset, boot: object, level: float, method: str | None) -> xr.Dataset:
    """`confint` of averages: ``average_ci``, pointwise."""
    if boot is not None:
        raise ValueError("boot must be None for averages, which have no replicates.")
    chosen_method(method, None, ("normal",))
    se = found["average_se"].attrs
    dims = tuple(map(str, found["average"].dims))
    units, target, source = (str(se[name]) for name in ("units", "target", "source"))
    facts = Facts(dims, "average over the rows", units, target, source)
    values = (found[f"average{end}"].values for end in ("", "_se", "_df"))
    average, error, degrees = values
    return with_intervals(
        found, {"average": Estimate(average, facts, error, degrees)}, level, "normal"
    )


def vcov(found: xr.Dataset, feature: object, of: str) -> xr.DataArray:
    """``average_cov``, over (term, term_other)."""
    if feature is not None:
        raise ValueError(f"feature must be left out for averages; got {feature!r}.")
    if of != "curve":
        raise ValueError(f"of must be left out for averages; got {of!r}.")
    own = found["average_cov"]
    names = [str(dim) for dim in own.dims if str(dim).endswith("_other")]
    return own.rename("covariance").assign_coords(
        {name: found[name.removesuffix("_other")].values for name in names}
    )


def tidy(found: xr.Dataset, level: float) -> pd.DataFrame:
    """`tidy` of averages: a line an average."""
    found = with_part_facts(found)
    ends = ends_in_table(
        *(found, "average", found["average_se"].values, found["average_df"].values), level
    )
    frames = []
    for number, by in enumerate(found["by"].values.tolist() if "by" in found.dims else [None]):
        row = found if by is None else found.isel(by=number)
        own = ends if by is None else ends[:, number]
        values, se = row["average"].values, row["average_se"].values
        lines: dict[str, object] = {"term": row["of"].values, "contrast": row["contrast"].values}
        lines |= {} if by is None else {"by": by}
        lines |= {"estimate": values, "std_error": se}
        if holds_model(str(row["average_se"].attrs["source"])):
            lines |= student(values, se, row["average_df"].values)
        frames.append(pd.DataFrame(lines | {"conf_low": own[:, 0], "conf_high": own[:, 1]}))
    return pd.concat(frames, ignore_index=True)


def _body(found: xr.Dataset, level: float) -> tuple[list[list[str]], list[str], list[str]]:
    table = tidy(found, level)
    names = [name for name in NUMBERS if name in table]
    heads = {"estimate": "average", "std_error": "std err", "statistic": "t", "p_value": "P"}
    ends = iter(bounds_text(level))
    lines = [[cell(line, name) for name in names] for _, line in table.iterrows()]
    stubs = [
        " ".join(part for part in (line["term"], line["contrast"], line.get("by", "")) if part)
        for _, line in table.iterrows()
    ]
    return lines, [heads.get(name) or next(ends) for name in names], stubs


def summary(found: xr.Dataset, _feature: object, level: float) -> Summary:
    """`summary` of averages: a line an average."""
    found = with_part_facts(found)
    check_one_part(found, "effect")
    attrs, se = found.attrs, found["average_se"].attrs
    cells = [
        ["Rows:", f"{attrs['n_rows']}", "Weights:", attrs["weight_kind"]],
        ["Uncertainty:", uncertainty(str(se["source"])), "By:", str(attrs["by"]) or "all rows"],
    ]
    notes = [
        f"Standard errors: {attrs['parameters']}. "
        f"Intervals: pointwise, {how_made(found, 'average', level)}.",
        "dY/dX: average slope. Levels: average prediction with the level minus that with the first "
        "level, in all rows.",
    ]
    notes += _not_estimable(found)
    lines, heads, stubs = _body(found, level)
    title = f"Averages of {output_text(found)}"
    return with_notes(with_facts(cells, title, lines, heads, stubs), notes)


def _not_estimable(found: xr.Dataset) -> list[str]:
    why = found.attrs.get("not_estimable")
    return [f"NaN: not estimable, {why}."] if why else []


def page(found: xr.Dataset, most: int) -> Page:
    """What is printed of averages."""
    lines, heads, stubs = _body(found, 0.95)
    shown = [[stub, *line] for stub, line in zip(stubs, lines, strict=True)][:most]
    return Page(
        f"Averages of {output(found)}",
        (
            f"{found.attrs['n_rows']} rows; {found.attrs['parameters']}",
            uncertainty_line(found, "average_se", estimated=bool(np.size(found["average_se"]))),
            *_not_estimable(found),
        ),
        (table_of(["", *heads], shown, len(lines), "averages", ""),),
        "summary(result), tidy(result), vcov(result)",
    )
