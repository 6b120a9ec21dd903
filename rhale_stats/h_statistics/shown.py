"""What is shown of H-statistics."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rhale_stats.h_statistics import tables as h_statistic_tables
from rhale_stats.h_statistics.labelled import pairs_of
from rhale_stats.printing import text
from rhale_stats.printing.pages import (
    Line,
    Page,
    PageTable,
    largest_first,
    output,
    table_of,
    uncertainty_line,
)
from rhale_stats.printing.text import ABOVE_ONE, number_text, pvalue_text
from rhale_stats.schema.features import feature_names


def h_statistics_page(result: xr.Dataset, most: int) -> Page:
    """What is printed of H-statistics: the largest features and pairs."""
    attrs, has_errors = result.attrs, "h2_overall_se" in result
    tables = [_h_table(result, "overall", (), feature_names(result), most)]
    if "h2_pairwise" in result:
        positions, names = pairs_of(result)
        tables.append(_h_table(result, "pairwise", tuple(positions), names, most))
    meant = (
        "H²: share of the variance of the output, or of the joint effect of a pair. size: in units "
        "of the output."
    )
    tables[-1] = replace(tables[-1], notes=(*tables[-1].notes, meant))
    h2 = number_text(float(h_statistic_tables.share(result["h2"].item()))) or ABOVE_ONE
    return Page(
        f"H-statistics: interactions in {output(result)}",
        (
            f"{attrs['n_rows']} of {attrs['n_rows_total']} rows; all interactions: H² {h2}, "
            f"size {number_text(float(result['h']))}",
            uncertainty_line(result, "h2_overall_se", estimated=has_errors),
        ),
        tuple(tables),
        "summary(result), plot_h_statistics(result), tidy(result)",
    )


def _h_table(
    result: xr.Dataset,
    suffix: str,
    positions: tuple[NDArray[np.int64], ...],
    names: Line,
    most: int,
) -> PageTable:
    """Features, or pairs at these places, the largest first."""
    columns = {"H²": f"h2_{suffix}", "size": f"h_{suffix}"}
    order = largest_first(result[columns["size"]].values[positions].ravel())[:most]
    heads, cells = [""], [[names[position] for position in order]]
    for head, name in columns.items():
        values = result[name].values[positions].ravel()[order]
        shares = h_statistic_tables.share(values) if head == "H²" else values
        above = np.isnan(shares) & ~np.isnan(values)
        heads.append(head)
        cells.append(
            [
                ABOVE_ONE if no else number_text(share)
                for share, no in zip(shares, above, strict=True)
            ]
        )
        if f"{name}_se" in result:
            errors = np.where(above, np.nan, result[f"{name}_se"].values[positions].ravel()[order])
            heads.append("std err")
            cells.append([number_text(error) for error in errors])
    lines = [list(line) for line in zip(*cells, strict=True)]
    what = "pairs" if positions else "features"
    return table_of(heads, lines, len(names), what, "", what.capitalize())


def difference_page(compared: xr.Dataset, most: int) -> Page:
    """What is printed of two H-statistics compared: the smallest p-values first."""
    table = h_statistic_tables.tidy_difference(compared, 0.95)
    order = np.argsort(table["p_value"].fillna(np.inf).to_numpy(), kind="stable")[:most]
    names = {"h2": "H²", "h": "size"}
    lines = [
        [
            f"{names[line['statistic']]}, {line['term']}",
            *(number_text(line[name]) for name in ("estimate", "std_error")),
            *(pvalue_text(line[name]) for name in ("p_value", "p_value_adjusted")),
        ]
        for _, line in table.iloc[order].iterrows()
    ]
    heads = ["", "a less b", "std err", "P", f"P, {compared.attrs['adjust']}"]
    return Page(
        f"H-statistics: difference on {output(compared)}",
        (f"Uncertainty: {text.uncertainty(str(compared.attrs['source']))}",),
        (table_of(heads, lines, len(table), "differences", "The smallest P first."),),
        "summary(result), tidy(result)",
    )
