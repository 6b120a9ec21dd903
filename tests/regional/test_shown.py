"""Pages of `show` of trees and interactions, word for word."""

from __future__ import annotations

import numpy as np

import rhale_stats as rs
from tests.regional.made import matrix, of_features, split, tree_of

TREE = """\
Regions: effect of x on count [bikes]
200 rows; bins: OptimalBins
Test of splits: permutation

             rows   loss  best split   drop      P
all rows      200      8       a ≤ 1  50.0%  0.005                 split
|  a ≤ 1      150      4       b = u  25.0%  0.010                 split
|  |  b = u    60      2                                        region 0
|  |  b ≠ u    90  3.667       a ≤ 0   4.0%         region 1: drop < 10%
|  a > 1       50      4       b = v  30.0%  0.200    region 2: P > 0.05
drop: the part of the loss that the split removes.

More: summary(tree), plot(tree), regional_rhale(local, tree)"""
FEATURES = """\
Regions: effects on count [bikes]
200 rows; bins: OptimalBins
Test of splits: none (splits are also found in noise)

   regions   loss  loss left   drop      P  first split
x        3      8       3.25  59.4%  0.005        a ≤ 1
y        1
z        1  20000      20000   0.0%  0.200
w        2      8       8.05  -0.6%  0.005        a ≤ 1
drop: the part of the loss, the heterogeneity in bins, that the regions remove.

More: summary(trees, 'x'), plot(trees.isel(feature=0))"""
MATRIX = """\
Interactions: effects on count [bikes], split by other columns
200 rows; bins: OptimalBins
Test: 499 permutations

         drop  of loss  P, adjusted  best split
y by x  75.0%    20000        0.030       x ≤ 2
x by k  50.0%        8        0.004       k = u
x by y  25.0%        8        0.200       y ≤ 1
y by k           20000
drop: the part of the loss that the best split by that column removes.

More: summary(result), plot(result), tidy(result)"""


def shown(result, **options):
    return "\n".join(line.rstrip() for line in str(rs.show(result, **options)).split("\n"))


def left_out(text, *numbers, note):
    """The text without some of the lines of its table, and with the note that says so."""
    lines = [line for at, line in enumerate(text.split("\n")) if at not in numbers]
    at = next(at for at, line in enumerate(lines) if line.startswith("drop: "))
    return "\n".join([*lines[:at], note, *lines[at:]])


def test_a_tree_is_shown_node_by_node():
    assert shown(split()) == TREE
    assert shown(split(), max_features=2) == left_out(TREE, 9, note="4 of 5 nodes.")


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
    assert shown(trees) == FEATURES
    few = shown(trees, max_features=2).split("\n")
    assert few[4:8] == [
        "   regions  loss  loss left   drop      P  first split",
        "x        3     8       3.25  59.4%  0.005        a ≤ 1",
        "y        1",
        "2 of 4 features.",
    ]


def test_interactions_are_shown_by_the_drop_of_the_loss():
    assert shown(matrix()) == MATRIX
    assert shown(matrix(), max_features=2) == left_out(MATRIX, 7, 8, note="2 of 4 pairs.")
    untested = shown(matrix(1.0, n_permutations=0))
    assert "Test: none, so drops may be chance\n" in untested
    assert "permutations" not in untested
