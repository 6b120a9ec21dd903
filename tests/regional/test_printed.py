"""Summaries of trees and interactions, word for word."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import rhale_stats as rs
from tests.regional.made import matrix, of_features, split, tree_of


def lines(text):
    """Without the spaces at the ends of lines."""
    return [line.rstrip() for line in text.strip("\n").split("\n")]


def table(summary):
    """The text above the notes."""
    return lines(summary.as_text().split("\n\nNotes:")[0])


REQUIRED = "A split was made where its drop is at least 10%"
P = (
    "P: permutation p-value (at most 199 permutations) of the hypothesis that no column conditions "
    "the mean of the local effects."
)
REPEATS = (
    " Each permutation repeats the search over all splits. A P below what permutations can give is "
    "an upper bound."
)
LOSS = (
    "loss: heterogeneity left in the bins of the node. drop: the part of it that the split "
    "removes, over both sides."
)
EMPTY = (
    "Empty best split: no split was tried (maximum depth of 2, less than 5% of the variance left "
    "within bins, or fewer than 10 rows on one side)."
)
LEFT_SIDE = "best split: condition of the left side."
BINS = "Bins, chosen again in every node: OptimalBins(max_bins=100)."
SPLIT = """
                       Regions: effect of x [m] on count [bikes]
========================================================================================
Rows:                               200   Loss:                      heterogeneity index
Bins:                       OptimalBins   Its units:                     (bikes)^2 per m
Test:           permutation, level 0.05   Splits above a region:               at most 2
Thresholds:              20 by quantile   Rows of a region:                  at least 10
========================================================================================
                  rows       loss best split       drop           P
----------------------------------------------------------------------------------------
all rows           200          8      a ≤ 1      50.0%       0.005       split
|  a ≤ 1           150          4      b = u      25.0%       0.010       split
|  |  b = u         60          2                                      region 0
|  |  b ≠ u         90      3.667      a ≤ 0       4.0%             region 1: drop < 10%
|  a > 1            50          4      b = v      30.0%       0.200 region 2: P > 0.05
========================================================================================
"""
EVERY = """
                             Regions: effects on count [bikes]
===========================================================================================
Rows:                             200   Loss:                           heterogeneity index
Bins:                     OptimalBins   Its units:               (bikes)^2 per feature unit
Test:         permutation, level 0.05   Splits above a region:                    at most 2
Thresholds:            20 by quantile   Rows of a region:                       at least 10
===========================================================================================
                     rows       loss best split       drop           P
-------------------------------------------------------------------------------------------
z                     200      20000      b = u      30.0%       0.200 no split: P > 0.05
y                     200                                                 constant
x                     200          8      a ≤ 1      50.0%       0.005       split
|  a ≤ 1              150          4      b = u      25.0%       0.010       split
|  |  b = u            60          2                                      region 0
|  |  b ≠ u            90      3.667      a ≤ 0       4.0%             region 1: drop < 10%
|  a > 1               50          4      b = v      30.0%       0.200 region 2: P > 0.05
===========================================================================================
"""


def near(**facts):
    """A tree whose best split is as likely by chance."""
    root = {"loss": 20000.0, "best": "b = u", "best_drop": 0.3, "pvalue": 0.2}
    return tree_of(root, feature="z", **facts)


def test_one_tree():
    found = rs.summary(split())
    assert table(found) == lines(SPLIT)
    assert found.notes == [
        f"{REQUIRED} and P at most 0.05.", P + REPEATS, LOSS, EMPTY, LEFT_SIDE, BINS,
    ]  # fmt: skip


def test_trees_of_several_features():
    """One after the other, by the names of their features; the units differ."""
    trees = of_features(near(), tree_of({"loss": np.nan}, feature="y", units=""), split())
    found = rs.summary(trees)
    assert table(found) == lines(EVERY)
    assert found.notes == rs.summary(split()).notes
    alone = rs.summary(trees, "x")
    assert (table(alone), alone.notes) == (lines(SPLIT), found.notes)
    same = rs.summary(of_features(near(), split()))
    assert "(bikes)^2 per m" in same.as_text()


def test_no_note_of_empty_splits_where_there_are_none():
    """One such node is enough, of one of the features."""
    tree = split()
    tree["best"].values[2] = "b = u"
    assert EMPTY not in rs.summary(tree).notes
    assert EMPTY in rs.summary(of_features(near(), split())).notes
    assert EMPTY not in rs.summary(of_features(near(), near())).notes


def test_settings_that_a_tree_does_not_have():
    """Trees of ICE curves: a grid instead of bins, and no share of the variance."""
    curves = split(loss_kind="centred ICE").assign(grid=("grid", np.arange(7.0)))
    for name in ("bin_rule", "bin_parameters", "min_share", "n_folds"):
        del curves.attrs[name]
    found = rs.summary(curves)
    assert any(line.startswith("Grid:") and " 7 points " in line for line in table(found))
    assert found.notes[2:] == [
        "loss: mean along the grid of the variance of the node's centred ICE curves. drop: the "
        "part of it that the split removes, over both sides.",
        "Empty best split: no split was tried (maximum depth of 2, or fewer than 10 rows on one "
        "side).",
        LEFT_SIDE,
    ]


def test_what_was_tested():
    untested = rs.summary(split(test="none"))
    assert untested.notes[:3] == [
        "Warning: without a test, splits are also found in noise.", f"{REQUIRED}.", LOSS,
    ]  # fmt: skip
    assert any(line.startswith("Test:") and " none " in line for line in table(untested))
    honest = rs.summary(split(test="honest", honest_fraction=0.4))
    assert honest.notes[:4] == [
        f"{REQUIRED} and P at most 0.05.",
        P,
        "Splits were searched on 40% of the rows. Rows, losses, and the drops and P of splits that "
        "were made are those of the other rows.",
        "Not confirmed: on the other rows the drop of the split is too small.",
    ]
    assert "honest, level 0.05" in honest.as_text()


PRUNED = """
                         Pruning
=========================================================
              penalty held-out loss    std err
---------------------------------------------------------
4 regions           0           3.5       0.25
3 regions         0.1             3       0.25 chosen
1 region            4             8        0.5
=========================================================
"""


def pruned(**facts):
    """With the trees that were compared; the last is none, as where features have fewer."""
    values = {
        "pruning_price": [0.0, 0.1, 4.0, np.nan],
        "pruning_n_regions": [4, 3, 1, -1],
        "pruning_loss": [3.5, 3.0, 8.0, np.nan],
        "pruning_loss_se": [0.25, 0.25, 0.5, np.nan],
    }
    arrays = {name: ("pruning", np.array(each)) for name, each in values.items()}
    return split(n_folds=5, **facts).assign(arrays)


def test_pruned_trees():
    found = rs.summary(pruned())
    text = found.as_text()
    assert lines(text[text.index("Pruning") - 25 :].split("\n\nNotes:")[0]) == lines(PRUNED)
    note = (
        "Pruned: minimal cost-complexity pruning with the one-standard-error rule, 5-fold "
        "cross-validation."
    )
    assert found.notes[-3:] == [note, LEFT_SIDE, BINS]
    both = rs.summary(of_features(pruned(), pruned().assign_coords(feature="y")))
    assert note in both.notes
    assert "held-out loss" not in both.as_text()
    assert note not in rs.summary(split()).notes


@pytest.mark.parametrize(
    ("tree", "words"),
    [
        (tree_of({"loss": np.nan}), "the feature does not vary."),
        (tree_of({}), "no split was tried (see the notes)."),
        (
            tree_of({"best": "a ≤ 1", "best_drop": 0.04}),
            "the best split, a ≤ 1, would lower the loss by 4.0%, less than the required 10%.",
        ),
        (
            tree_of({"best": "a ≤ 1", "best_drop": 0.3, "pvalue": 0.2}),
            "the best split, a ≤ 1, would lower the loss by 30.0%, which is not significant (P "
            "0.200).",
        ),
        (
            tree_of({"best": "a ≤ 1", "best_drop": 0.3}, test="honest", honest_fraction=0.5),
            "the best split, a ≤ 1, would lower the loss by 30.0%, but not by enough on the other "
            "rows.",
        ),
    ],
)
def test_why_there_are_no_regions(tree, words):
    sentence = f"The effect of x has no regions: {words}"
    text = " ".join(rs.summary(tree).as_text().split())
    assert sentence in text
    assert "has no regions" not in rs.summary(split()).as_text()
    both = of_features(tree, near()).assign_attrs(tree.attrs)
    assert "has no regions" not in rs.summary(both).as_text()


def test_why_a_pruned_tree_has_no_regions():
    tree = tree_of({"best": "a ≤ 1", "best_drop": 0.3}, n_folds=5)
    arrays = {name: pruned()[name] for name in pruned().data_vars if name.startswith("pruning")}
    text = " ".join(rs.summary(tree.assign(arrays)).as_text().split())
    assert "lower the loss by 30.0%, but not by more than a standard error on held-out" in text


MATRIX = """
    Interactions: effects on count [bikes], split by other columns
======================================================================
Rows:                   200   Loss:                heterogeneity index
Bins:           OptimalBins   Its units:    (bikes)^2 per feature unit
Permutations:           499   Thresholds:               20 by quantile
======================================================================
                                 loss       x          y          k
----------------------------------------------------------------------
x                                   8                25%        50%**
y                               20000     75%*        0%
======================================================================
"""
UNTESTED = """
    Interactions: effects on count [bikes], split by other columns
======================================================================
Rows:                   200   Loss:                heterogeneity index
Bins:           OptimalBins   Its units:    (bikes)^2 per feature unit
Permutations:          none   Thresholds:               20 by quantile
======================================================================
                                 loss          x          y          k
----------------------------------------------------------------------
x                                   8                   25%        50%
y                               20000        75%         0%
======================================================================
"""
OF_MATRIX = [
    "Each line: share of the loss of a feature that the best split by each column removes. The "
    "loss is the heterogeneity in the bins of the feature.",
    "If the loss is near 0, even a large share is unimportant.",
    "Blank: the feature itself, or no split leaves 10 rows on each side.",
    "Bins, chosen again on both sides: OptimalBins(max_bins=100).",
]


def test_interactions():
    found = rs.summary(matrix())
    assert table(found) == lines(MATRIX)
    stars = (
        "*** P ≤ 0.001, ** P ≤ 0.01, * P ≤ 0.05, . P ≤ 0.1: permutation p-value of the hypothesis "
        "that the column does not condition the effect, from 499 permutations, adjusted (holm) for "
        "all pairs."
    )
    assert found.notes == [stars, *OF_MATRIX]
    one = rs.summary(matrix(), "y")
    expected = [line for line in lines(MATRIX) if not line.startswith("x ")]
    assert (table(one), one.notes) == (expected, found.notes)


def test_interactions_without_a_test():
    found = rs.summary(matrix(1.0, n_permutations=0))
    assert table(found) == lines(UNTESTED)
    assert found.notes == [
        "Warning: without a test, a drop may be due to chance (see n_permutations).", *OF_MATRIX,
    ]  # fmt: skip


def test_a_matrix_whose_known_p_values_are_few_is_tested():
    some = matrix()
    values = np.where(some["loss_drop"] == 0.75, some["pvalue_adjusted"], np.nan)
    some["pvalue_adjusted"] = some["pvalue_adjusted"].copy(data=values)
    assert isinstance(some, xr.Dataset)
    assert rs.summary(some).notes[0].startswith("*** P")
