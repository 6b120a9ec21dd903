"""Pages of `show` for trees of regions and interaction matrices."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rhale_stats.printing.pages import Page, largest_first, output, table_of
from rhale_stats.printing.text import permutation_text
from rhale_stats.regional.printed import node_lines
from rhale_stats.regional.tables import (
    glance_trees,
    loss_places,
    loss_text,
    tidy_interactions,
    trees_of,
)


def trees_page(trees: xr.Dataset, most: int) -> Page:
    """The page of trees: one tree in full, or one line per feature."""
    every, attrs = trees_of(trees), trees.attrs
    test = str(attrs["test"])
    test = "none (splits are also found in noise)" if test == "none" else test
    head, places = loss_places(every[0])
    facts = (f"{attrs['n_rows']} rows; {head.lower()} {places}", f"Test of splits: {test}")
    if len(every) == 1:
        stubs, lines = node_lines(every)
        heads = ["", "rows", "loss", "best split", "drop", "P", ""]
        body = [[stub, *line] for stub, line in zip(stubs, lines, strict=True)]
        name = str(every[0]["feature"].values)
        note = "drop: the part of the loss that the split removes."
        return Page(
            f"Regions: effect of {name} on {output(trees)}",
            facts,
            (table_of(heads, body[: 2 * most], len(body), "nodes", note),),
            "summary(tree), plot_tree(tree), regional_rhale(local, tree)",
        )
    table = glance_trees(trees, 0.95)
    order = largest_first(table["loss_drop"].where(table["n_regions"] > 1, 0.0).to_numpy())[:most]
    lines = [
        [
            line["term"],
            str(line["n_regions"]),
            loss_text(line["loss"]),
            loss_text(line["loss_left"]),
            "" if np.isnan(line["loss_drop"]) else f"{line['loss_drop']:.1%}",
            permutation_text(line["p_value"]),
            line["first_split"],
        ]
        for _, line in table.iloc[order].iterrows()
    ]
    heads = ["", "regions", "loss", "loss left", "drop", "P", "first split"]
    note = "drop: the part of the loss, the heterogeneity in bins, that the regions remove."
    return Page(
        f"Regions: effects on {output(trees)}",
        facts,
        (table_of(heads, lines, len(table), "features", note),),
        f"summary(trees, {table['term'].iloc[order[0]]!r}), plot_tree(trees.isel(feature=0))",
    )


def interactions_page(matrix: xr.Dataset, most: int) -> Page:
    """The page of an interaction matrix: the largest drops of the loss first."""
    table = tidy_interactions(matrix, 0.95)
    order = largest_first(table["loss_drop"].to_numpy())[:most]
    lines = [
        [
            f"{line['term']} by {line['conditioning']}",
            "" if np.isnan(line["loss_drop"]) else f"{line['loss_drop']:.1%}",
            loss_text(line["loss"]),
            permutation_text(line["p_value_adjusted"]),
            line["best_split"],
        ]
        for _, line in table.iloc[order].iterrows()
    ]
    tested = matrix.attrs["n_permutations"]
    return Page(
        f"Interactions: effects on {output(matrix)}, split by other columns",
        (
            f"{matrix.attrs['n_rows']} rows; bins: {matrix.attrs['bin_rule']}",
            f"Test: {tested} permutations" if tested else "Test: none, so drops may be chance",
        ),
        (
            table_of(
                ["", "drop", "of loss", "P, adjusted", "best split"],
                lines,
                len(table),
                "pairs",
                "drop: the part of the loss that the best split by that column removes.",
            ),
        ),
        "summary(result), plot_interactions(result), tidy(result)",
    )
