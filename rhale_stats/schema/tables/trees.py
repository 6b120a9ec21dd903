"""Variables of trees of regions, and of interactions."""

from __future__ import annotations

from rhale_stats.schema.tables.units import Table

NODE = ("node",)
NODE_VARIABLES: Table = {
    "parent": (NODE, "node that this one is part of, -1 for the root", "1"),
    "depth": (NODE, "splits above the node", "1"),
    "condition": (NODE, "what its rows have, of those of its parent", "1"),
    "condition_feature": (NODE, "column of the condition", "1"),
    "operator": (NODE, "how the condition compares", "1"),
    "threshold": (NODE, "number that the condition compares with", "units of the column"),
    "levels": (NODE, "levels that the condition compares with, as JSON", "1"),
    "rule": (NODE, "what the rows of the node have", "1"),
    "n_obs": (NODE, "rows of the node", "rows"),
    "weight_share": (NODE, "share of the total weight in the node", "1"),
    "loss": (NODE, "heterogeneity left in the bins of the node", ""),
    "loss_drop": (NODE, "relative drop of the loss by the split of the node", "1"),
    "best": (NODE, "best split found", "1"),
    "best_drop": (NODE, "relative drop of the loss by the best split found", "1"),
    "pvalue": (
        NODE,
        "p-value of the hypothesis that no column conditions the mean of the local effects",
        "1",
    ),
    "region": (NODE, "number of the region, -1 where the node was split", "1"),
}
OF_PAIRS = ("feature", "conditioning")
INTERACTION_VARIABLES: Table = {
    "loss_drop": (OF_PAIRS, "relative drop of the loss by the best split", "1"),
    "best": (OF_PAIRS, "best split", "1"),
    "pvalue": (
        OF_PAIRS,
        "p-value of the hypothesis that the column does not condition the effect",
        "1",
    ),
    "pvalue_adjusted": (OF_PAIRS, "adjusted p-value", "1"),
    "loss": (("feature",), NODE_VARIABLES["loss"][1], ""),
}
