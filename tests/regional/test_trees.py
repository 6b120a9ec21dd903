"""Trees as Datasets: what is refused, regions of new rows, and of which rows a tree is."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from numpy.testing import assert_array_equal

import rhale_stats as rs
from rhale_stats.regional.search import TreeNode, Verdict
from rhale_stats.regional.splits import ABOVE, EQUAL, IN, UP_TO, Condition
from rhale_stats.regional.trees import (
    _of_nodes,
    check_rows_of_tree,
    check_tree,
    region_of_rows,
)
from rhale_stats.schema.dimensions import ROWS
from tests.regional.made import of_features, split, tree_of

UP = Condition("z", UP_TO, "z ≤ 1", threshold=1.0)
OVER = Condition("z", ABOVE, "z > 1", threshold=1.0)
IS_U = Condition("s", EQUAL, "s = u", levels=("u",))
NOT_U = Condition("s", IN, "s ≠ u", levels=("v", "w"))
MADE = Verdict("z ≤ 1", 0.5, 0.4, 0.01, True)
REFUSED = Verdict("s = u", 0.05, np.nan, 0.3)
NODES = [
    TreeNode(-1, (), 10.0, 5.0, 8.0, MADE),
    TreeNode(0, (UP,), 6.0, 3.0, 4.0, MADE._replace(best="s = u")),
    TreeNode(1, (UP, IS_U), 2.0, 1.0, 1.0, Verdict()),
    TreeNode(1, (UP, NOT_U), 4.0, 2.0, 2.0, REFUSED),
    TreeNode(0, (OVER,), 4.0, 2.0, 3.0, Verdict()),
]
LEAVES = {2: np.array([0]), 3: np.array([1]), 4: np.array([2])}


def test_nodes_by_hand():
    nan = np.nan
    expected = {
        "parent": [-1, 0, 1, 1, 0],
        "depth": [0, 1, 2, 2, 1],
        "condition": ["all rows", "z ≤ 1", "s = u", "s ≠ u", "z > 1"],
        "condition_feature": ["", "z", "s", "s", "z"],
        "operator": ["", "<=", "==", "in", ">"],
        "threshold": [nan, 1.0, nan, nan, 1.0],
        "levels": ["", "", '["u"]', '["v", "w"]', ""],
        "rule": ["all rows", "z ≤ 1", "z ≤ 1 and s = u", "z ≤ 1 and s ≠ u", "z > 1"],
        "n_obs": [10, 6, 2, 4, 4],
        "weight_share": [1.0, 0.6, 0.2, 0.4, 0.4],
        "loss": [8.0, 4.0, 1.0, 2.0, 3.0],
        "loss_drop": [0.4, 0.4, nan, nan, nan],
        "best": ["z ≤ 1", "s = u", "", "s = u", ""],
        "best_drop": [0.5, 0.5, nan, 0.05, nan],
        "pvalue": [0.01, 0.01, nan, 0.3, nan],
        "region": [-1, -1, 0, 1, 2],
    }
    found = _of_nodes(NODES, LEAVES)
    assert set(found) == set(expected)
    for name, values in expected.items():
        assert_array_equal(found[name].values, values, err_msg=name)
        assert found[name].dims == ("node",)
        assert found[name].attrs["long_name"]
    assert found["n_obs"].dtype == np.int64


def small_tree():
    variables = _of_nodes(NODES, LEAVES) | {ROWS: ("obs", np.zeros(3, dtype=np.int64))}
    return xr.Dataset(variables, {"node": np.arange(5), "obs": np.arange(3), "feature": "x"})


def test_regions_of_new_rows_by_hand():
    """On a threshold, of a level that was not seen, and where a value is missing."""
    new = pd.DataFrame(
        {"s": ["u", "v", "new", "u", None, "u"], "z": [1.0, 0.0, 1.0, 1.5, 0.0, np.nan]},
        index=list("abcdef"),
    )
    tree = small_tree()
    assert region_of_rows(tree, new).tolist() == [0, 1, -1, 2, -1, -1]
    message = (
        r"No region for 3 of 6 rows \(2, 4, 5\): a value is missing, or a level did not occur in "
        r"the rows that the tree splits\. Their region is -1\.$"
    )
    with pytest.warns(UserWarning, match=message):
        found = rs.assign(tree, new)
    assert found.values.tolist() == [0, 1, -1, 2, -1, -1]
    assert (found.name, found.dims, found["obs"].values.tolist()) == (
        "region", ("obs",), list("abcdef"),
    )  # fmt: skip
    assert found.attrs == {"long_name": "region of the row, -1 for none"}
    alone = tree_of({}).isel(obs=slice(3))
    assert rs.assign(alone, new).values.tolist() == [0] * 6
    array = small_tree()
    names = np.where(array["condition_feature"] == "z", "x1", "")
    array["condition_feature"] = ("node", names)
    flat = array.isel(node=[0, 1, 4]).assign(
        parent=("node", [-1, 0, 0]), region=("node", [-1, 0, 1])
    )
    assert rs.assign(flat, np.array([[9.0, 1.0], [9.0, 2.0]])).values.tolist() == [0, 1]
    message = r"columns that the tree splits by; got none named 's' \(it has z\)"
    with pytest.raises(KeyError, match=message):
        rs.assign(tree, new[["z"]])


def test_what_is_a_tree():
    least = split()[["parent", "region", ROWS]]
    assert check_tree(least) is least
    for lost in ("parent", "region", ROWS):
        with pytest.raises(TypeError, match="tree must be the Dataset that regions"):
            check_tree(split().drop_vars(lost))
    with pytest.raises(TypeError, match=r"regions\(local, feature\) returns; got .1. of type list"):
        check_tree([1])
    local = rs.local_effects(None, np.eye(3), jacobian=np.eye(3))
    with pytest.raises(TypeError, match="returns; got local effects"):
        check_tree(local)


def test_trees_of_one_feature_are_without_padding():
    trees = of_features(tree_of({"loss": np.nan}, feature="y"), split())
    for selected in (trees.isel(feature=[1]), trees.isel(feature=1)):
        found = check_tree(selected)
        assert (str(found["feature"].values), found.sizes["node"]) == ("x", 5)
    assert check_tree(trees.isel(feature=[0])).sizes["node"] == 1
    with pytest.raises(
        ValueError, match="tree must be of one feature; this one is of 'y', 'x'. Select one: tree"
    ):
        check_tree(trees)
    message = "tree must be as regions returned it, of one feature and all of its nodes; its dim"
    for lost in (split().isel(node=0), trees.isel(feature=1, node=0)):
        with pytest.raises(ValueError, match=message):
            check_tree(lost)


def local_of(x, g, weights=None):
    options = {} if weights is None else {"weights": weights}
    X = np.column_stack([x, np.arange(len(x)) % 7])
    return rs.local_effects(
        None, X, jacobian=np.column_stack([g, 0 * g]), features=[0, 1], **options
    )


def test_rows_of_which_a_tree_was_made(rng):
    x, g = rng.uniform(size=(2, 60))
    local = local_of(x, g)
    tree = check_tree(rs.regions(local, "x0", max_depth=0))
    check_rows_of_tree(local, tree)
    # Effects of another feature say nothing of it.
    check_rows_of_tree(local.isel(feature=[1]), tree)
    with pytest.raises(ValueError, match="other values of feature 'x0', other weights or another"):
        check_rows_of_tree(local_of(x + 1, g), tree)
    with pytest.raises(ValueError, match="other values of feature 'x0', other weights or another"):
        check_rows_of_tree(local_of(x, g, rng.uniform(size=60)), tree)
    with pytest.raises(ValueError, match="local effects of feature 'x0' come from another model"):
        check_rows_of_tree(local_of(x, g + 1), tree)
    with pytest.raises(ValueError, match="it has 59 rows and the tree 60, or they are named other"):
        check_rows_of_tree(local.isel(obs=slice(59)), tree)
    with pytest.raises(ValueError, match="it has 60 rows and the tree 60, or they are named other"):
        check_rows_of_tree(local.assign_coords(obs=np.arange(1, 61)), tree)
    # Trees of curves have other numbers than local effects, of the same rows.
    check_rows_of_tree(local_of(x, g + 1), tree.assign_attrs(method="regional_pdp"))


@pytest.mark.parametrize("n_folds", [None, 3])
@pytest.mark.parametrize("weights", [None, "precision", "frequency"])
def test_the_tree_of_a_constant_feature(weights, n_folds):
    """All rows, without a loss; with the one tree of its pruning."""
    n = 20
    w = np.arange(n) % 4
    options = {} if weights is None else {"weights": w, "weight_kind": weights}
    X = np.column_stack([np.ones(n), np.arange(n) * 1.0])
    local = rs.local_effects(None, X, jacobian=X, **options)
    tree = rs.regions(local, "x0", n_folds=n_folds, rng=0)
    there = np.ones(n, dtype=bool) if weights is None else w > 0
    n_obs = w.sum() if weights == "frequency" else there.sum()
    row = {"parent": -1, "depth": 0, "n_obs": n_obs, "weight_share": 1.0, "region": 0}
    assert {name: tree[name].item() for name in row} == row
    assert np.isnan(tree["loss"].item())
    assert_array_equal(tree[ROWS], np.where(there, 0, -1))
    assert ("pruning_price" in tree) == (n_folds is not None)
    facts = {"method": "regions", "conditioning": "x1", "test": "permutation", "max_depth": 2}
    facts |= {"n_folds": n_folds or 0, "level": 0.05, "min_drop": 0.1, "min_share": 0.05}
    facts |= {"thresholds": "quantile", "n_thresholds": 20, "n_permutations": 199, "min_obs": 10}
    facts |= {"n_rows": there.sum(), "loss_kind": "index", "output_name": "output"}
    assert {name: tree.attrs[name] for name in facts} == facts
    assert rs.regions(local, "x0", test=None).attrs["test"] == "none"
