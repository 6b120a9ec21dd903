"""Trees of regions and interaction matrices with numbers that are written down."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from rhale_stats.schema.dimensions import ROWS
from rhale_stats.schema.kinds import INTERACTIONS, TREE
from rhale_stats.schema.padding import stack
from rhale_stats.schema.variable_table import NODE_VARIABLES
from rhale_stats.schema.variables import variable

FACTS: dict[str, Any] = {
    "method": "regions",
    "loss_kind": "index",
    "max_depth": 2,
    "min_obs": 10,
    "min_drop": 0.1,
    "min_share": 0.05,
    "thresholds": "quantile",
    "n_thresholds": 20,
    "test": "permutation",
    "level": 0.05,
    "n_permutations": 199,
    "n_folds": 0,
    "bin_rule": "OptimalBins",
    "bin_parameters": "max_bins=100",
    "output_name": "count",
    "output_units": "bikes",
    "n_rows": 200,
}
DEFAULTS: dict[str, Any] = {
    "parent": -1,
    "depth": 0,
    "condition": "all rows",
    "condition_feature": "",
    "operator": "",
    "threshold": np.nan,
    "levels": "",
    "rule": "all rows",
    "n_obs": 200,
    "weight_share": 1.0,
    "loss": 8.0,
    "loss_drop": np.nan,
    "best": "",
    "best_drop": np.nan,
    "pvalue": np.nan,
    "region": 0,
}


def tree_of(
    *nodes: dict[str, Any], feature: str = "x", units: str = "m", **facts: Any
) -> xr.Dataset:
    """A tree with these nodes; what is not given of a node is that of a root without a split."""
    every = [DEFAULTS | node for node in nodes]
    variables = {
        name: variable(name, np.array([node[name] for node in every]), TREE)
        for name in NODE_VARIABLES
    }
    out = xr.Dataset(
        variables | {ROWS: ("obs", np.zeros(200, dtype=np.int64))},
        {
            "node": ("node", np.arange(len(every))),
            "obs": ("obs", np.arange(200)),
            "feature": feature,
            "feature_units": units,
        },
        FACTS | facts,
    )
    out["loss"].attrs["units"] = "(output units)^2 per feature unit"
    return out


def of_features(*trees: xr.Dataset) -> xr.Dataset:
    """Trees of several features, as `all_regions` returns them."""
    n_nodes = [tree.sizes["node"] for tree in trees]
    out = stack([tree.drop_vars("node") for tree in trees], "feature")
    return out.assign_coords(n_nodes=("feature", n_nodes))


def child(number: int, condition: str, **values: Any) -> dict[str, Any]:
    """A node one below the root or deeper, with its condition."""
    own = {"parent": number, "depth": 1, "condition": condition, "rule": condition}
    return own | values


def split(**facts: Any) -> xr.Dataset:
    """Two splits and three regions: 60, 90 and 50 rows of 200."""
    root = {"loss": 8.0, "loss_drop": 0.5, "best": "a ≤ 1", "best_drop": 0.5, "pvalue": 0.005}
    left = {"n_obs": 150, "weight_share": 0.75, "loss": 4.0, "best": "b = u", "best_drop": 0.25}
    return tree_of(
        root | {"region": -1},
        child(0, "a ≤ 1", **left, loss_drop=0.25, pvalue=0.01, region=-1),
        child(1, "b = u", depth=2, n_obs=60, weight_share=0.3, loss=2.0, region=0),
        child(
            1, "b ≠ u", depth=2, n_obs=90, weight_share=0.45, loss=3.0 + 2 / 3, region=1,
            best="a ≤ 0", best_drop=0.04,
        ),
        child(
            0, "a > 1", n_obs=50, weight_share=0.25, loss=4.0, region=2, best="b = v",
            best_drop=0.3, pvalue=0.2,
        ),
        **facts,
    )  # fmt: skip


def matrix(pvalue: float = np.nan, **facts: Any) -> xr.Dataset:
    """Drops of two effects by three columns, of which x is the first effect's feature."""
    drop = np.array([[np.nan, 0.25, 0.5], [0.75, 0.0, np.nan]])
    best = np.array([["", "y ≤ 1", "k = u"], ["x ≤ 2", "y ≤ 3", ""]])
    p = np.where(np.isfinite(drop), np.array([[0, 0.2, 0.004], [0.03, 1, 0]]), np.nan)
    p = p if np.isnan(pvalue) else p * np.nan
    values = {"loss_drop": drop, "best": best, "pvalue": p / 2, "pvalue_adjusted": p}
    values["loss"] = np.array([8.0, 20000.0])
    out = xr.Dataset({name: variable(name, each, INTERACTIONS) for name, each in values.items()})
    out["pvalue_adjusted"].attrs["adjust"] = "holm"
    out["loss"].attrs["units"] = "(output units)^2 per feature unit"
    names = {"feature": ["x", "y"], "conditioning": ["x", "y", "k"]}
    known = {"method": "interaction matrix", "n_permutations": 499} | facts
    return out.assign_coords(names).assign_attrs(
        {name: FACTS[name] for name in FACTS if name not in ("test", "level")} | known
    )
