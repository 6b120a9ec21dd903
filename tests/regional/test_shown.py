"""Pages of `show` of trees and interactions, word for word."""

from __future__ import annotations

import numpy as np

import rhale_stats as rs
from tests.regional.made import matrix, of_features, split, tree_of

FEATURES = """\
              regions       loss  loss left       drop           P first split
------------------------------------------------------------------------------
x                   3          8       3.25      59.4%       0.005       a ≤ 1
y                   1
z                   1      20000      20000       0.0%       0.200
w                   2          8       8.05      -0.6%       0.005       a ≤ 1
"""
MATRIX = """\
                                drop    of loss P, adjusted best split
----------------------------------------------------------------------
y by x                         75.0%      20000       0.030      x ≤ 2
x by k                         50.0%          8       0.004      k = u
x by y                         25.0%          8       0.200      y ≤ 1
y by k                                    20000
"""
NO_TEST = "Warning: without a test, "


def shown(result, **options):
    return "\n".join(line.rstrip() for line in str(rs.show(result, **options)).split("\n"))


def test_a_tree_is_shown_node_by_node():
    assert rs.show(split()).head.tables == rs.summary(split()).tables
    assert NO_TEST not in shown(split())
    few = rs.show(split(), max_features=2).head
    assert few.tables[1].stubs == ["all rows", "|  a ≤ 1"]
    assert "2 of 5 lines." in few.words


def test_trees_are_shown_by_the_drop_of_the_loss():
    """The loss of `w` is larger in its regions, of which there are two: 0.5 * 8.1 + 0.5 * 8."""
    worse = tree_of(
        {"best": "a ≤ 1", "pvalue": 0.005, "region": -1},
        {"parent": 0, "depth": 1, "weight_share": 0.5, "loss": 8.1, "region": 0},
        {"parent": 0, "depth": 1, "weight_share": 0.5, "loss": 8.0, "region": 1},
        feature="w",
    )
    root = {"loss": 20000.0, "best": "b = u", "best_drop": 0.3, "pvalue": 0.2}
    trees = of_features(
        worse, tree_of({"loss": np.nan}, feature="y"), tree_of(root, feature="z"), split()
    ).assign_attrs(test="none")
    # Not split, or constant: as if the regions removed nothing.
    assert FEATURES in shown(trees)
    assert NO_TEST in shown(trees)
    few = rs.show(trees, max_features=2).head
    assert few.tables[1].stubs == ["x", "y"]
    assert "2 of 4 lines, the most important." in few.words


def test_interactions_are_shown_by_the_drop_of_the_loss():
    assert MATRIX in shown(matrix())
    assert NO_TEST not in shown(matrix())
    few = rs.show(matrix(), max_features=2).head
    assert few.tables[1].stubs == ["y by x", "x by k"]
    assert "2 of 4 lines, the most important." in few.words
    assert NO_TEST in shown(matrix(1.0, n_permutations=0))
