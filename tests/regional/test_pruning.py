"""Pruning: the sequence of cheapest trees, and how large a tree cross-validation takes."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import rhale_stats as rs
from rhale_stats.local.rows import columns
from rhale_stats.regional.columns import conditioning_columns
from rhale_stats.regional.losses import problem_of
from rhale_stats.regional.pruning import held_out_loss, weakest_links
from rhale_stats.regional.search import Grown, SplitSearch, Tree, Verdict
from rhale_stats.schema.dimensions import ROWS
from tests.helpers import daily


def node(parent, weight, loss):
    return Grown(parent, (), weight, weight, loss, Verdict())


def cheapest(nodes, price):
    """By trying every tree: the least cost, and the fewest regions that have it."""
    cost = [n.weight * n.loss / nodes[0].weight for n in nodes]
    children = {k: [c for c, n in enumerate(nodes) if n.parent == k] for k in range(len(nodes))}

    def trees(number):
        yield [number]
        if children[number]:
            for parts in product(*(list(trees(child)) for child in children[number])):
                yield [leaf for part in parts for leaf in part]

    found = [(sum(cost[k] for k in tree) + price * len(tree), len(tree), tree) for tree in trees(0)]
    least = min(total for total, _, _ in found)
    return min((n, tree) for total, n, tree in found if total <= least + 1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_the_sequence_holds_the_cheapest_tree_at_every_price(seed):
    rng = np.random.default_rng(seed)
    nodes = [node(-1, 1.0, 1.0)]
    grow = [0]
    while grow:
        number = grow.pop(0)
        if len(nodes) < 14 and (number == 0 or rng.random() < 0.7):
            share = rng.uniform(0.2, 0.8)
            parent = nodes[number]
            for part in (share, 1 - share):
                loss = parent.loss * rng.uniform(0.4, 1.0)
                nodes.append(node(number, parent.weight * part, loss))
                grow.append(len(nodes) - 1)
    sequence = weakest_links(nodes)
    sizes = [len(regions) for _, regions in sequence]
    assert sizes == sorted(set(sizes), reverse=True)
    assert sizes[-1] == 1
    prices = [price for price, _ in sequence] + [np.inf]
    for number, (price, regions) in enumerate(sequence):
        between = price + min(1e-6, (prices[number + 1] - price) / 2)
        assert sorted(cheapest(nodes, between)[1]) == sorted(regions)


def sample(seed, first=0.0, second=0.0, n=600):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 4))
    g = rng.normal(size=X.shape)
    g[:, 0] += first * np.sign(X[:, 2]) + second * np.sign(X[:, 3]) * (X[:, 2] > 0)
    return rs.local_effects(None, X, jacobian=g)


WIDE = {"max_depth": 3, "min_drop": 0.02, "min_share": 0.0, "test": None}


@pytest.mark.parametrize(
    ("shift", "n_regions"), daily([((0.0, 0.0), 1), ((1.5, 1.0), 3), ((1.5, 0.0), 2)], 2)
)
@pytest.mark.slow
def test_as_many_regions_as_there_are(shift, n_regions):
    local = sample(0, *shift)
    large = rs.regions(local, 0, **WIDE)
    tree = rs.regions(local, 0, **WIDE, n_folds=5, rng=0)
    assert (large["region"] >= 0).sum() > n_regions
    assert (tree["region"] >= 0).sum() == n_regions
    # The largest tree of the sequence is the one without pruning, or costs no more.
    assert tree["pruning_n_regions"].values[0] == (large["region"] >= 0).sum()
    assert tree["pruning_n_regions"].values[-1] == 1
    chosen = int(np.flatnonzero(tree["pruning_n_regions"].values == n_regions)[0])
    best = int(tree["pruning_loss"].values.argmin())
    within = tree["pruning_loss"].values[best] + tree["pruning_loss_se"].values[best]
    assert tree["pruning_loss"].values[chosen] <= within
    assert (tree["pruning_loss"].values[chosen + 1 :] > within).all()
    # Rows, numbers and leaves still belong together.
    assert_array_equal(np.unique(tree[ROWS]), np.arange(n_regions))
    leaves = tree.isel(node=np.flatnonzero(tree["region"].values >= 0))
    assert_array_equal(np.bincount(tree[ROWS].values), leaves["n_obs"])
    assert_array_equal(rs.assign(tree, local["x"].values), tree[ROWS])
    assert np.isnan(leaves["loss_drop"]).all()


@pytest.mark.slow
def test_noise_is_pruned_and_regions_are_kept():
    """50 samples each: noise keeps a split in 10 % at most; regions are kept in 95 %."""
    kept = {}
    for name, shift, n_regions in (("noise", (0.0, 0.0), 1), ("three", (1.5, 1.0), 3)):
        sizes = []
        for seed in range(50):
            tree = rs.regions(
                sample(seed, *shift), 0, **WIDE, bins=rs.OptimalBins(20), n_folds=5, rng=seed
            )
            sizes.append(int((tree["region"] >= 0).sum()))
        kept[name] = np.mean(np.array(sizes) == n_regions)
    assert kept["noise"] >= 0.9
    assert kept["three"] >= 0.95


@pytest.mark.parametrize("loss", ["index", "output"])
@pytest.mark.parametrize(
    "rule",
    [rs.EqualWidthBins(6), rs.AdaptiveBins(), rs.OptimalBins()],
    ids=lambda r: type(r).__name__,
)
def test_held_out_loss_is_the_distance_from_the_effects_of_other_rows(rule, loss):
    """Against rhale on the kept rows, its bins read at the held-out ones."""
    local = sample(3, 1.5, 1.0)
    rows = columns(local)
    problem = problem_of(rows, 0, "x0", rule, error=0.0, loss=loss, min_obs=30)
    conditioning = conditioning_columns(local, None, "x0")
    settings = SplitSearch(min_share=0.0)
    held = np.arange(0, 600, 5)
    # The ends of the axis belong to the kept rows, so that rhale has the same cells.
    ends = [local["x"].values[:, 0].argmin(), local["x"].values[:, 0].argmax()]
    held = np.setdiff1d(held, ends)
    kept = np.setdiff1d(np.arange(600), held)
    tree = Tree(problem, conditioning, settings, np.random.default_rng(0))
    tree.grow(kept, None)
    found = held_out_loss(problem, tree, frozenset([0]), kept, held)
    effect = rs.rhale(local.isel(obs=kept, feature=[0]), bins=rule, weighting="rows")
    row = effect.isel(feature=0)
    edges = row["edge_value"].values[: int(row["n_bins"]) + 1]
    x, g = local["x"].values[held, 0], local["local_effect"].values[held, 0]
    k = np.searchsorted(edges[1:-1], x, side="right")
    mean = row["effect"].values[k]
    if "slope" in row:
        mean = mean + row["slope"].values[k] * (x - (edges[k] + edges[k + 1]) / 2)
    squares = (g - mean) ** 2
    if loss == "output":
        expected = problem.scale * np.sqrt(squares.mean())
    else:
        per_bin = np.array(
            [squares[k == b].mean() if (k == b).any() else np.nan for b in range(len(edges) - 1)]
        )
        there = np.isfinite(per_bin)
        width = np.diff(edges)
        expected = (per_bin * width)[there].sum() / width[there].sum() * width.sum()
    assert_allclose(found, expected, rtol=1e-9)


def test_pruning_and_honest_trees_do_not_go_together():
    with pytest.raises(ValueError, match="n_folds must be None with test='honest'"):
        rs.regions(sample(0), 0, test="honest", n_folds=5)
    with pytest.raises(ValueError, match="n_folds must be at least 2"):
        rs.regions(sample(0), 0, n_folds=1)


def test_more_folds_than_rows_are_refused():
    """code.md B15, reliability.md 16: ZeroDivisionError, and a KeyError of `summary`."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (30, 2))
    J = np.column_stack([X[:, 1], X[:, 0]])
    local = rs.local_effects(None, X, jacobian=J)
    one_bin = rs.EqualWidthBins(1)
    with pytest.raises(ValueError, match="n_folds must not exceed .*; got 31 for 30"):
        rs.regions(local, "x0", n_folds=31, min_obs=5)
    with pytest.raises(ValueError, match="n_folds must not exceed .*; got 3 for 2"):
        rs.regions(local.isel(obs=slice(2)), "x0", n_folds=3)
    every = rs.regions(local, "x0", n_folds=30, min_obs=5, bins=one_bin, rng=0)
    assert np.isfinite(every["pruning_loss"]).all()
    rs.summary(rs.regions(local.isel(obs=slice(2)), "x0", n_folds=2, bins=one_bin, rng=0))


def test_folds_without_rows_in_bins_of_others_are_refused():
    """Two rows, two bins: whichever is held out, nobody knows its bin."""
    local = rs.local_effects(
        None, np.array([[0.0], [1.0]]), jacobian=np.array([[1.0], [2.0]]), features=0
    )
    given = pd.DataFrame({"c": [0.0, 1.0]})
    with pytest.raises(ValueError, match="at least two folds .*; 2 folds of 2 rows have 0"):
        rs.regions(local, "x0", n_folds=2, bins=rs.EqualWidthBins(2), conditioning=given)


def test_a_constant_feature_has_one_tree_to_compare():
    X = np.column_stack([np.linspace(-1, 1, 40), np.ones(40)])
    J = np.column_stack([X[:, 0] ** 2, 0 * X[:, 0]])
    local = rs.local_effects(None, X, jacobian=J, features=[0, 1])
    trees = rs.all_regions(local, n_folds=3, rng=0, min_obs=5)
    alone = rs.regions(local, "x1", n_folds=3, rng=0)
    assert alone["pruning_n_regions"].values.tolist() == [1]
    for one in (alone, trees.sel(feature="x1"), trees):
        assert "x1" in str(rs.summary(one))
