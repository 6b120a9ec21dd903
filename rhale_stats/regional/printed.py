"""Trees of regions as printed tables and pages."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from rhale_stats.printing.text import (
    INDENT,
    STARS,
    count_text,
    percent,
    permutation_text,
    stars,
    text_of,
    with_facts,
)
from rhale_stats.regional.tables import (
    ABOVE_LEVEL,
    BELOW_DROP,
    LEFT,
    LOSS_NAMES,
    LOSSES_LEFT,
    PRUNED,
    UNCONFIRMED,
    drop_text,
    loss_places,
    loss_text,
    loss_units,
    outcome,
    rejected,
    setting,
    thresholds,
    trees_of,
)
from rhale_stats.schema.features import feature_position, position_of, with_units
from rhale_stats.schema.notes import with_notes

if TYPE_CHECKING:
    from statsmodels.iolib.summary import Summary
    from statsmodels.iolib.table import SimpleTable

from rhale_stats.printing.pages import Page, largest_first, output, table_of
from rhale_stats.regional.tables import (
    glance_trees,
    tidy_interactions,
)


def trees_summary(trees: xr.Dataset, feature: str | int | None, _level: float) -> Summary:
    """Trees, one after the other, with a line a node."""
    every = trees_of(trees)
    if feature is not None:
        every = [every[position_of(feature, [str(tree["feature"].values) for tree in every])]]
    alone = len(every) == 1
    stubs, lines = node_lines(every)
    heads = ["rows", "loss", "best split", "drop", "P", ""]
    output = with_units(trees.attrs["output_name"], trees.attrs["output_units"])
    title = f"Regions: effects on {output}"
    if alone:
        feature_text = with_units(
            str(every[0]["feature"].values), str(every[0]["feature_units"].values)
        )
        title = f"Regions: effect of {feature_text} on {output}"
    tables = with_facts(_region_facts(every), title, lines, heads, stubs, "rrrrrl")
    attrs = trees.attrs
    notes = [
        *_region_test_notes(attrs),
        f"loss: {LOSSES_LEFT.get(attrs['loss_kind'], LEFT)}. drop: the part of it that the split "
        f"removes, over both sides.",
    ]
    if any((tree["best"] == "").any() for tree in every):
        within = ""
        if "min_share" in attrs:
            within = f"less than {setting(attrs['min_share'])} of the variance left within bins, "
        notes.append(
            f"Empty best split: no split was tried (maximum depth of {attrs['max_depth']}, "
            f"{within}or fewer than {attrs['min_obs']} rows on one side)."
        )
    if attrs.get("n_folds", 0):
        notes.append(
            "Pruned: minimal cost-complexity pruning with the one-standard-error rule, "
            f"{attrs['n_folds']}-fold cross-validation."
        )
        if alone:
            tables.append(_pruning_table(every[0]))
    notes.append("best split: condition of the left side.")
    if "bin_rule" in attrs:
        notes.append(
            f"Bins, chosen again in every node: {attrs['bin_rule']}({attrs['bin_parameters']})."
        )
    words = (_no_regions(every[0]), "") if alone and every[0].sizes["node"] == 1 else ()
    return with_notes(tables, notes, words)


def node_lines(trees: list[xr.Dataset]) -> tuple[list[str], list[list[str]]]:
    """Names of the nodes of trees, and a line for each."""
    stubs: list[str] = []
    lines: list[list[str]] = []
    for tree in trees:
        for number in range(tree.sizes["node"]):
            node = tree.isel(node=number)
            text = INDENT * int(node["depth"]) + text_of(node, "condition")
            stubs.append(str(tree["feature"].values) if number == 0 and len(trees) > 1 else text)
            drop = "loss_drop" if node["region"] < 0 else "best_drop"
            lines.append(
                [
                    str(int(node["n_obs"])),
                    loss_text(float(node["loss"])),
                    text_of(node, "best"),
                    drop_text(float(node[drop])),
                    permutation_text(float(node["pvalue"])),
                    outcome(node, alone=tree.sizes["node"] == 1),
                ]
            )
    return stubs, lines


def _pruning_table(tree: xr.Dataset) -> SimpleTable:
    """The trees that were compared, the largest first."""
    from statsmodels.iolib.table import SimpleTable
    from statsmodels.iolib.tableformatting import fmt_params

    sequence = tree.isel(pruning=np.flatnonzero(tree["pruning_n_regions"].values > 0))
    n_regions = sequence["pruning_n_regions"].values
    chosen = int((tree["region"] >= 0).sum())
    values = ("pruning_price", "pruning_loss", "pruning_loss_se")
    lines = [
        [
            *(loss_text(float(sequence[name][position])) for name in values),
            "chosen" if n_regions[position] == chosen else "",
        ]
        for position in range(len(n_regions))
    ]
    heads = ["penalty", "held-out loss", "std err", ""]
    stubs = [count_text(int(number), "region") for number in n_regions]
    form = fmt_params | {"data_aligns": "rrrl"}
    return SimpleTable(lines, heads, stubs, "Pruning", txt_fmt=form)


def _no_regions(tree: xr.Dataset) -> str:
    """A tree without splits in words."""
    root = tree.isel(node=0)
    text = f"The effect of {tree['feature'].values!s} has no regions: "
    if np.isnan(float(root["loss"])):
        return text + "the feature does not vary."
    if not text_of(root, "best"):
        return text + "no split was tried (see the notes)."
    drop = drop_text(float(root["best_drop"]))
    text += f"the best split, {text_of(root, 'best')}, would lower the loss by {drop}, "
    why = {
        BELOW_DROP: f"less than the required {setting(tree.attrs['min_drop'])}.",
        ABOVE_LEVEL: f"which is not significant (P {permutation_text(float(root['pvalue']))}).",
        UNCONFIRMED: "but not by enough on the other rows.",
        PRUNED: "but not by more than a standard error on held-out rows.",
    }
    return text + why[rejected(root)]


def _region_facts(trees: list[xr.Dataset]) -> list[list[str]]:
    """How trees were grown, for the header."""
    attrs = trees[0].attrs
    units = {str(tree["feature_units"].values) for tree in trees}
    test = attrs["test"]
    if test != "none":
        test += f", level {attrs['level']:g}"
    return [
        ["Rows:", str(attrs["n_rows"]), "Loss:", LOSS_NAMES[attrs["loss_kind"]]],
        [
            *loss_places(trees[0]),
            *("Its units:", loss_units(trees[0], units.pop() if len(units) == 1 else "")),
        ],
        ["Test:", test, "Splits above a region:", f"at most {attrs['max_depth']}"],
        [
            *("Thresholds:", thresholds(attrs)),
            *("Rows of a region:", f"at least {attrs['min_obs']}"),
        ],
    ]


def _region_test_notes(attrs: dict[Hashable, Any]) -> list[str]:
    """What P means, and what was required of a split."""
    required = f"A split was made where its drop is at least {setting(attrs['min_drop'])}"
    if attrs["test"] == "none":
        return [
            "No test was made. Without a test, splits are also found in noise.",
            f"{required}.",
        ]
    notes = [
        f"{required} and P at most {attrs['level']:g}.",
        f"P: permutation p-value (at most {attrs['n_permutations']} permutations) of the "
        "hypothesis that no column conditions the mean of the local effects.",
    ]
    if attrs["test"] == "honest":
        return [
            *notes,
            f"Splits were searched on {setting(attrs['honest_fraction'])} of the rows. Rows, "
            "losses, and the drops and P of splits that were made are those of the other rows.",
            "Not confirmed: on the other rows the drop of the split is too small.",
        ]
    notes[-1] += (
        " Each permutation repeats the search over all splits. A P below what permutations can "
        "give is an upper bound."
    )
    return notes


def interactions_summary(matrix: xr.Dataset, feature: str | int | None, _level: float) -> Summary:
    """Drops of all pairs, a line a feature."""
    if feature is not None:
        matrix = matrix.isel(feature=[feature_position(matrix, feature)])
    attrs = matrix.attrs
    names, columns = (matrix[dim].values.astype(str) for dim in ("feature", "conditioning"))
    drop, pvalue = matrix["loss_drop"].values, matrix["pvalue_adjusted"].values
    tested = bool(np.isfinite(pvalue).any())
    room = max(len(mark) for _, mark in STARS) if tested else 0
    lines = [
        [
            loss_text(float(matrix["loss"][row])),
            *(
                percent(drop[row, column]) + f"{stars(pvalue[row, column]):{room}}"
                if np.isfinite(drop[row, column])
                else ""
                for column in range(len(columns))
            ),
        ]
        for row in range(len(names))
    ]
    # Heads stand over the numbers, not over their stars.
    heads = ["loss", *(f"{name}{'':{room}}" for name in columns)]
    output = with_units(attrs["output_name"], attrs.get("output_units", ""))
    title = f"Interactions: effects on {output}, split by other columns"
    cells = [
        ["Rows:", str(attrs["n_rows"]), "Loss:", LOSS_NAMES[attrs["loss_kind"]]],
        ["Bins:", attrs["bin_rule"], "Its units:", loss_units(matrix, "")],
        [
            *("Permutations:", str(attrs["n_permutations"] or "none")),
            *("Thresholds:", thresholds(attrs)),
        ],
    ]
    notes = [
        "Each line: share of the loss of a feature that the best split by each column removes. The "
        "loss is the heterogeneity in the bins of the feature.",
        "If the loss is near 0, even a large share is unimportant.",
        f"Blank: the feature itself, or no split leaves {attrs['min_obs']} rows on each side.",
        f"Bins, chosen again on both sides: {attrs['bin_rule']}({attrs['bin_parameters']}).",
    ]
    if tested:
        codes = ", ".join(f"{mark} P ≤ {bound:g}" for bound, mark in STARS)
        adjust = matrix["pvalue_adjusted"].attrs["adjust"]
        notes.insert(
            0,
            f"{codes}: permutation p-value of the hypothesis that the column does not condition "
            f"the effect, from {attrs['n_permutations']} permutations, adjusted ({adjust}) for all "
            "pairs.",
        )
    else:
        notes.insert(0, "No test was made: a drop may be due to chance (see n_permutations).")
    return with_notes(with_facts(cells, title, lines, heads, names.tolist()), notes)


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
            "summary(tree), plot(tree), regional_rhale(local, tree)",
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
        f"summary(trees, {table['term'].iloc[order[0]]!r}), plot(trees.isel(feature=0))",
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
        "summary(result), plot(result), tidy(result)",
    )
