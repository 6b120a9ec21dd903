"""Trees of regions as pandas frames, with the words of their losses, and printed."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from rhale_stats.arguments.times import unit_word
from rhale_stats.printing.text import (
    INDENT,
    STARS,
    WARNING,
    count_text,
    number_text,
    output_text,
    percent,
    permutation_text,
    stars,
    table_lines,
    text_of,
    with_facts,
)
from rhale_stats.regional.trees import check_tree
from rhale_stats.schema.features import feature_position, position_of, with_units
from rhale_stats.schema.notes import PrintedTable, Summary


def trees_summary(trees: xr.Dataset, feature: str | int | None, _level: float) -> Summary:
    """Trees, one after the other, with a line a node."""
    every = trees_of(trees)
    if feature is not None:
        every = [every[position_of(feature, [str(tree["feature"].values) for tree in every])]]
    alone = len(every) == 1
    stubs, lines = node_lines(every)
    heads = ["rows", "loss", "best split", "drop", "P", ""]
    title = f"Regions: effects on {output_text(trees)}"
    if alone:
        name, units = [str(every[0][fact].values) for fact in ("feature", "feature_units")]
        title = f"Regions: effect of {with_units(name, units)} on {output_text(trees)}"
    # Short outcomes end, and long ones begin, in one place.
    lines = [[*line[:-1], f"{line[-1]:>11}"] for line in lines]
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
    return Summary(tables, notes, words)


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


def _pruning_table(tree: xr.Dataset) -> PrintedTable:
    """The trees that were compared, the largest first."""
    names = ("pruning_n_regions", "pruning_price", "pruning_loss", "pruning_loss_se")
    every = zip(*(tree[name].values for name in names), strict=True)
    # The rest is padding.
    sequence = [line for line in every if line[0] > 0]
    chosen = int((tree["region"] >= 0).sum())
    lines = [
        [*map(loss_text, numbers), "chosen" if n_regions == chosen else ""]
        for n_regions, *numbers in sequence
    ]
    heads = ["penalty", "held-out loss", "std err", ""]
    stubs = [count_text(n_regions, "region") for n_regions, *_ in sequence]
    return PrintedTable(lines, heads, stubs, "Pruning", "rrrl")


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
    common_units = units.pop() if len(units) == 1 else ""
    test = attrs["test"]
    if test != "none":
        test += f", level {attrs['level']:g}"
    return [
        ["Rows:", str(attrs["n_rows"]), "Loss:", LOSS_NAMES[attrs["loss_kind"]]],
        [*loss_places(trees[0]), "Its units:", loss_units(trees[0], common_units)],
        ["Test:", test, "Splits above a region:", f"at most {attrs['max_depth']}"],
        ["Thresholds:", thresholds(attrs), "Rows of a region:", f"at least {attrs['min_obs']}"],
    ]


def _region_test_notes(attrs: dict[Hashable, Any]) -> list[str]:
    """What P means, and what was required of a split."""
    required = f"A split was made where its drop is at least {setting(attrs['min_drop'])}"
    if attrs["test"] == "none":
        return [f"{WARNING}without a test, splits are also found in noise.", f"{required}."]
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
    names, columns = [matrix[dim].values.astype(str) for dim in ("feature", "conditioning")]
    drop, pvalue = matrix["loss_drop"].values, matrix["pvalue_adjusted"].values
    tested = bool(np.isfinite(pvalue).any())
    room = max(len(mark) for _, mark in STARS) if tested else 0
    lines = [
        [
            loss_text(float(matrix["loss"][row])),
            *[
                percent(drop[row, column]) + f"{stars(pvalue[row, column]):{room}}"
                if np.isfinite(drop[row, column])
                else ""
                for column in range(len(columns))
            ],
        ]
        for row in range(len(names))
    ]
    # Heads stand over the numbers, not over their stars.
    heads = ["loss", *[f"{name}{'':{room}}" for name in columns]]
    title = f"Interactions: effects on {output_text(matrix)}, split by other columns"
    cells = [
        ["Rows:", str(attrs["n_rows"]), "Loss:", LOSS_NAMES[attrs["loss_kind"]]],
        ["Bins:", attrs["bin_rule"], "Its units:", loss_units(matrix, "")],
        ["Permutations:", str(attrs["n_permutations"] or "none"), "Thresholds:", thresholds(attrs)],
    ]
    first = f"{WARNING}without a test, a drop may be due to chance (see n_permutations)."
    if tested:
        codes = ", ".join(f"{mark} P ≤ {bound:g}" for bound, mark in STARS)
        adjust = matrix["pvalue_adjusted"].attrs["adjust"]
        first = (
            f"{codes}: permutation p-value of the hypothesis that the column does not condition "
            f"the effect, from {attrs['n_permutations']} permutations, adjusted ({adjust}) for all "
            "pairs."
        )
    notes = [
        first,
        "Each line: share of the loss of a feature that the best split by each column removes. The "
        "loss is the heterogeneity in the bins of the feature.",
        "If the loss is near 0, even a large share is unimportant.",
        f"Blank: the feature itself, or no split leaves {attrs['min_obs']} rows on each side.",
        f"Bins, chosen again on both sides: {attrs['bin_rule']}({attrs['bin_parameters']}).",
    ]
    return Summary(with_facts(cells, title, lines, heads, names.tolist()), notes)


# Columns of the pages of several trees and of pairs of columns, with their heads.
REGIONS = {
    "n_regions": "regions",
    "loss": "loss",
    "loss_left": "loss left",
    "loss_drop": "drop",
    "p_value": "P",
    "first_split": "first split",
}
PAIRS = {
    "loss_drop": "drop",
    "loss": "of loss",
    "p_value_adjusted": "P, adjusted",
    "best_split": "best split",
}


def _cell(line: pd.Series, column: str) -> str:
    """A number of a table of regions as it is printed."""
    forms = {"loss": loss_text, "loss_left": loss_text, "loss_drop": drop_text}
    forms |= dict.fromkeys(("p_value", "p_value_adjusted"), permutation_text)
    return forms.get(column, str)(line[column])


def first_trees(trees: xr.Dataset) -> Summary:
    """What `show` prints of trees: one tree in full, or one line per feature."""
    whole, table = trees_summary(trees, None, 0.95), glance_trees(trees, 0.95)
    if len(table) == 1:
        return whole
    drop = table["loss_drop"].where(table["n_regions"] > 1, 0.0).to_numpy
    lines, names = table_lines(table, REGIONS, _cell), table["term"].tolist()
    heads, facts = [*REGIONS.values()], whole.tables[0]
    tables = with_facts(facts.lines, facts.title, lines, heads, names, sizes=drop)
    word = "drop: the part of the loss that the regions remove."
    return Summary(tables, whole.notes, (word,))


def first_interactions(matrix: xr.Dataset) -> Summary:
    """What `show` prints of an interaction matrix: a line a pair."""
    whole, table = interactions_summary(matrix, None, 0.95), tidy_interactions(matrix, 0.95)
    names = (table["term"] + " by " + table["conditioning"]).tolist()
    lines, facts = table_lines(table, PAIRS, _cell), whole.tables[0]
    drop, heads = table["loss_drop"].to_numpy, [*PAIRS.values()]
    tables = with_facts(facts.lines, facts.title, lines, heads, names, sizes=drop)
    word = "drop: the part of the loss that the best split by that column removes."
    return Summary(tables, whole.notes, (word,))


# --- trees of regions as pandas frames, and their words -------------------------------------------


# Losses of trees in words.
LEFT = "heterogeneity left in the bins of the node"
LOSS_NAMES = {
    "index": "heterogeneity index",
    "output": "heterogeneity of the output",
    "centred ICE": "spread of centred ICE curves",
    "Shapley values": "spread of Shapley values",
}
# What a loss of a node is; of the losses of bins, `LEFT`.
LOSSES_LEFT = {
    "centred ICE": "mean along the grid of the variance of the node's centred ICE curves",
    "Shapley values": "variance of the node's Shapley values about their means in bins",
}
# Why a split was not made: too small a drop, no better than chance, not so on other rows, or taken
# back by cross-validation.
BELOW_DROP, ABOVE_LEVEL, UNCONFIRMED, PRUNED = "drop", "level", "unconfirmed", "pruned"


def trees_of(results: xr.Dataset) -> list[xr.Dataset]:
    """The trees of all features, each without padding."""
    if "feature" not in results.dims:
        return [check_tree(results)]
    return [check_tree(results.isel(feature=k)) for k in range(results.sizes["feature"])]


def loss_places(trees: xr.Dataset) -> tuple[str, str]:
    """Where the loss is summed: bins of a rule, or points of a grid."""
    if "bin_rule" in trees.attrs:
        return "Bins:", str(trees.attrs["bin_rule"])
    return "Grid:", f"{trees.sizes['grid']} points"


def tidy_trees(trees: xr.Dataset, _level: float) -> pd.DataFrame:
    """`tidy` of trees: a line a node."""
    frames, names = [], ["node", "depth", "rule", "n_obs", "weight_share", "loss", "loss_drop"]
    names += ["best", "best_drop", "pvalue"]
    for tree in trees_of(trees):
        parent, region = [
            pd.Series(tree[name].values, dtype="Int64").where(tree[name].values >= 0, pd.NA)
            for name in ("parent", "region")
        ]
        columns = {name: tree[name].values for name in names}
        frames.append(pd.DataFrame({"term": str(tree["feature"].values), **columns}))
        frames[-1].insert(2, "parent", parent)
        frames[-1]["region"] = region
    frame = pd.concat(frames, ignore_index=True)
    return frame.rename(columns={"best": "best_split", "pvalue": "p_value"})


def glance_trees(trees: xr.Dataset, _level: float) -> pd.DataFrame:
    """`glance` of trees: a line a tree."""
    return pd.DataFrame([_glance_tree(tree) for tree in trees_of(trees)])


def _glance_tree(tree: xr.Dataset) -> dict[str, object]:
    leaves = tree.isel(node=np.flatnonzero(tree["region"].values >= 0))
    loss = float(tree["loss"][0])
    left = float((leaves["loss"] * leaves["weight_share"]).sum(skipna=False))
    settings = ("loss_kind", "test", "level", "max_depth", "min_obs", "min_drop", "bin_rule")
    return {
        "term": str(tree["feature"].values),
        "n_regions": leaves.sizes["node"],
        "n_obs": int(tree["n_obs"][0]),
        "loss": loss,
        "loss_left": left,
        "loss_drop": 1 - left / loss if loss > 0 else loss,
        "first_split": str(tree["best"].values[0]) if leaves.sizes["node"] > 1 else "",
        "p_value": float(tree["pvalue"][0]),
        **{name: tree.attrs.get(name, "") for name in settings},
    }


def tidy_interactions(matrix: xr.Dataset, _level: float) -> pd.DataFrame:
    """A line a pair of an effect and a conditioning column."""
    variables = matrix[["loss", "loss_drop", "best", "pvalue", "pvalue_adjusted"]]
    pairs = variables.reset_coords(drop=True).to_dataframe(["feature", "conditioning"])
    pairs.columns = ["loss", "loss_drop", "best_split", "p_value", "p_value_adjusted"]
    frame = pairs.rename_axis(index={"feature": "term"}).reset_index()
    return frame[frame["term"] != frame["conditioning"]].reset_index(drop=True)


def loss_text(loss: float) -> str:
    """Four significant digits, without an exponent where a loss is easier to read so."""
    text = number_text(loss)
    return f"{float(text):.0f}" if 1e4 <= abs(loss) < 1e7 else text


def drop_text(share: float) -> str:
    """As fine as what was asked for."""
    return "" if np.isnan(share) else f"{share:.1%}"


def setting(share: float) -> str:
    """A share as a percentage with three significant digits."""
    return f"{100 * share:.3g}%"


def outcome(node: xr.Dataset, *, alone: bool) -> str:
    """Outcome of a node, and why its best split was not made."""
    number = int(node["region"])
    if number < 0:
        return "split"
    if alone and np.isnan(float(node["loss"])):
        return "constant"
    reasons = {
        BELOW_DROP: f": drop < {setting(node.attrs['min_drop'])}",
        ABOVE_LEVEL: f": P > {node.attrs['level']:g}",
        UNCONFIRMED: ": not confirmed",
        PRUNED: ": pruned",
    }
    return ("no split" if alone else f"region {number}") + reasons.get(rejected(node), "")


def rejected(node: xr.Dataset) -> str:
    """Why the best split of a leaf was not made; empty where there is none."""
    if not text_of(node, "best"):
        return ""
    if float(node["best_drop"]) < node.attrs["min_drop"]:
        return BELOW_DROP
    if float(node["pvalue"]) > node.attrs["level"]:
        return ABOVE_LEVEL
    return PRUNED if node.attrs.get("n_folds", 0) else UNCONFIRMED


def thresholds(attrs: dict[Hashable, Any]) -> str:
    """How many thresholds were tried, in words."""
    kind = attrs["thresholds"]
    return "every value" if kind == "exact" else f"{attrs['n_thresholds']} by {kind}"


def loss_units(results: xr.Dataset, feature_units: str) -> str:
    """Units of the loss, with those that are known by their names."""
    units = str(results["loss"].attrs["units"])
    words = {
        "output units": str(results.attrs.get("output_units", "")),
        "feature unit": unit_word(feature_units),
    }
    for general, unit in words.items():
        units = units.replace(general, unit or general)
    return units
