"""Tables of trees and interactions, and the words of their losses and outcomes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import rhale_stats as rs
from rhale_stats.regional.tables import (
    drop_text,
    loss_text,
    loss_units,
    outcome,
    rejected,
    setting,
    thresholds,
    trees_of,
)
from tests.regional.made import FACTS, matrix, of_features, split, tree_of

NAN = np.nan


def test_a_line_a_node():
    alone = tree_of({"loss": NAN}, feature="y", units="")
    expected = pd.DataFrame(
        {
            "term": ["y", *"xxxxx"],
            "node": [0, 0, 1, 2, 3, 4],
            "parent": pd.array([pd.NA, pd.NA, 0, 1, 1, 0], dtype="Int64"),
            "depth": [0, 0, 1, 2, 2, 1],
            "rule": ["all rows", "all rows", "a ≤ 1", "b = u", "b ≠ u", "a > 1"],
            "n_obs": [200, 200, 150, 60, 90, 50],
            "weight_share": [1, 1, 0.75, 0.3, 0.45, 0.25],
            "loss": [NAN, 8, 4, 2, 3 + 2 / 3, 4],
            "loss_drop": [NAN, 0.5, 0.25, NAN, NAN, NAN],
            "best_split": ["", "a ≤ 1", "b = u", "", "a ≤ 0", "b = v"],
            "best_drop": [NAN, 0.5, 0.25, NAN, 0.04, 0.3],
            "p_value": [NAN, 0.005, 0.01, NAN, NAN, 0.2],
            "region": pd.array([0, pd.NA, pd.NA, 0, 1, 2], dtype="Int64"),
        }
    )
    pd.testing.assert_frame_equal(rs.tidy(of_features(alone, split())), expected)
    own = expected.iloc[1:].reset_index(drop=True)
    pd.testing.assert_frame_equal(rs.tidy(split()), own)


def test_a_line_a_tree():
    """The loss left is 0.3 * 2 + 0.45 * 11 / 3 + 0.25 * 4 = 3.25 of 8."""
    alone = tree_of({"loss": NAN}, feature="y")
    nothing = tree_of({"loss": 0.0}, feature="z")
    near = tree_of({"loss": 0.5, "best": "b = u", "best_drop": 0.3, "pvalue": 0.2}, feature="w")
    found = rs.glance(of_features(split(), alone, nothing, near))
    facts = ("loss_kind", "test", "level", "max_depth", "min_obs", "min_drop", "bin_rule")
    expected = pd.DataFrame(
        {
            "term": ["x", "y", "z", "w"],
            "n_regions": [3, 1, 1, 1],
            "n_obs": [200] * 4,
            "loss": [8, NAN, 0, 0.5],
            "loss_left": [3.25, NAN, 0, 0.5],
            "loss_drop": [1 - 3.25 / 8, NAN, 0, 0],
            "first_split": ["a ≤ 1", "", "", ""],
            "p_value": [0.005, NAN, NAN, 0.2],
            **{name: [FACTS[name]] * 4 for name in facts},
        }
    )
    pd.testing.assert_frame_equal(found, expected)


def test_what_is_left_is_unknown_where_that_of_a_region_is():
    tree = split()
    tree["loss"].values[3] = NAN
    assert np.isnan(rs.glance(tree)["loss_left"].item())


def test_a_line_a_pair():
    """Without the pair of a feature and itself."""
    expected = pd.DataFrame(
        {
            "term": ["x", "x", "y", "y"],
            "conditioning": ["y", "k", "x", "k"],
            "loss": [8.0, 8.0, 20000.0, 20000.0],
            "loss_drop": [0.25, 0.5, 0.75, NAN],
            "best_split": ["y ≤ 1", "k = u", "x ≤ 2", ""],
            "p_value": [0.1, 0.002, 0.015, NAN],
            "p_value_adjusted": [0.2, 0.004, 0.03, NAN],
        }
    )
    pd.testing.assert_frame_equal(rs.tidy(matrix()), expected)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("loss", "text"),
    [
        (9999.0, "9999"),
        (10000.0, "10000"),
        (10000.4, "10000"),
        (-12345.6, "-12350"),
        (9999999.0, "10000000"),
        (10000000.0, "1e+07"),
        (0.000123456, "0.0001235"),
    ],
)
def test_losses_in_words(loss, text):
    assert loss_text(loss) == text


def test_shares_in_words():
    assert [drop_text(share) for share in (0.1234, 0.0, NAN)] == ["12.3%", "0.0%", ""]
    assert [setting(share) for share in (0.1, 0.0125)] == ["10%", "1.25%"]


def test_thresholds_in_words():
    kinds = ("quantile", "equal_width", "exact")
    found = [thresholds({"thresholds": kind, "n_thresholds": 7}) for kind in kinds]
    assert found == ["7 by quantile", "7 by equal_width", "every value"]


def test_units_of_losses_are_named_where_they_are_known():
    tree = split()
    assert loss_units(tree, "m") == "(bikes)^2 per m"
    assert loss_units(tree, "") == "(bikes)^2 per feature unit"
    assert loss_units(tree.assign_attrs(output_units=""), "m") == "(output units)^2 per m"


@pytest.mark.parametrize(
    ("node", "facts", "why"),
    [
        ({}, {}, ""),
        ({"best": "a ≤ 1", "best_drop": 0.09}, {}, "drop"),
        # As much as is required, and as likely as is allowed.
        ({"best": "a ≤ 1", "best_drop": 0.1, "pvalue": 0.05}, {}, "unconfirmed"),
        ({"best": "a ≤ 1", "best_drop": 0.1, "pvalue": 0.05}, {"n_folds": 5}, "pruned"),
        ({"best": "a ≤ 1", "best_drop": 0.1, "pvalue": 0.051}, {}, "level"),
        ({"best": "a ≤ 1", "best_drop": 0.3}, {}, "unconfirmed"),
    ],
)
def test_why_a_split_was_not_made(node, facts, why):
    tree = tree_of(node, **facts)
    words = {
        "": "",
        "drop": ": drop < 10%",
        "level": ": P > 0.05",
        "unconfirmed": ": not confirmed",
        "pruned": ": pruned",
    }[why]
    (root,) = (tree.isel(node=at) for at in range(1))
    assert rejected(root) == why
    assert outcome(root, alone=False) == f"region 0{words}"
    assert outcome(root, alone=True) == f"no split{words}"
    del root.attrs["n_folds"]  # as in results of versions that did not prune
    assert rejected(root) == ("unconfirmed" if why == "pruned" else why)


def test_outcomes_of_nodes():
    tree = split()
    found = [outcome(tree.isel(node=at), alone=False) for at in range(5)]
    assert found[:3] == ["split", "split", "region 0"]
    constant = tree_of({"loss": NAN}).isel(node=0)
    assert [outcome(constant, alone=alone) for alone in (True, False)] == ["constant", "region 0"]
    assert outcome(tree_of({}).isel(node=0), alone=True) == "no split"


def test_trees_one_by_one_are_without_padding():
    alone = tree_of({"loss": NAN}, feature="y")
    found = trees_of(of_features(alone, split()))
    assert [tree.sizes["node"] for tree in found] == [1, 5]
    assert [str(tree["feature"].values) for tree in found] == ["y", "x"]
    assert [tree.sizes["node"] for tree in trees_of(split())] == [5]
