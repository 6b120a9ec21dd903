"""Trees of regions as pandas frames, and the words of their losses and outcomes."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from rhale_stats.arguments.times import unit_word
from rhale_stats.printing.text import number_text, text_of
from rhale_stats.regional.trees import check_tree

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


# --- regions and interactions ---------------------------------------------------------------------


def trees_of(results: xr.Dataset) -> list[xr.Dataset]:
    """The trees of all features, each without padding."""
    if "feature" not in results.dims:
        return [check_tree(results)]
    return [
        check_tree(results.isel(feature=position)) for position in range(results.sizes["feature"])
    ]


def loss_places(trees: xr.Dataset) -> tuple[str, str]:
    """Where the loss is summed: bins of a rule, or points of a grid."""
    if "bin_rule" in trees.attrs:
        return "Bins:", str(trees.attrs["bin_rule"])
    return "Grid:", f"{trees.sizes['grid']} points"


def tidy_trees(trees: xr.Dataset, _level: float) -> pd.DataFrame:
    """`tidy` of trees: a line a node."""
    return pd.concat([_tidy_tree(tree) for tree in trees_of(trees)], ignore_index=True)


def glance_trees(trees: xr.Dataset, _level: float) -> pd.DataFrame:
    """`glance` of trees: a line a tree."""
    return pd.DataFrame([_glance_tree(tree) for tree in trees_of(trees)])


def _tidy_tree(tree: xr.Dataset) -> pd.DataFrame:
    parent, region = (
        pd.Series(tree[name].values, dtype="Int64").where(tree[name].values >= 0, pd.NA)
        for name in ("parent", "region")
    )
    return pd.DataFrame(
        {
            "term": str(tree["feature"].values),
            "node": tree["node"].values,
            "parent": parent,
            "depth": tree["depth"].values,
            "rule": tree["rule"].values,
            "n_obs": tree["n_obs"].values,
            "weight_share": tree["weight_share"].values,
            "loss": tree["loss"].values,
            "loss_drop": tree["loss_drop"].values,
            "best_split": tree["best"].values,
            "best_drop": tree["best_drop"].values,
            "p_value": tree["pvalue"].values,
            "region": region,
        }
    )


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
    shape = matrix["loss_drop"].shape
    frame = pd.DataFrame(
        {
            "term": np.repeat(matrix["feature"].values, shape[1]),
            "conditioning": np.tile(matrix["conditioning"].values, shape[0]),
            "loss": np.repeat(matrix["loss"].values, shape[1]),
            "loss_drop": matrix["loss_drop"].values.ravel(),
            "best_split": matrix["best"].values.ravel(),
            "p_value": matrix["pvalue"].values.ravel(),
            "p_value_adjusted": matrix["pvalue_adjusted"].values.ravel(),
        }
    )
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
    replacements = (
        ("output units", results.attrs.get("output_units", "")),
        ("feature unit", unit_word(feature_units)),
    )
    for general, unit in replacements:
        if unit:
            units = units.replace(general, str(unit))
    return units
