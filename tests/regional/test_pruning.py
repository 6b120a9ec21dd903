"""Pruning: the sequence of cheapest trees, and how large a tree cross-validation takes."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import rhale_stats as rs
from rhale_stats.local.rows import columns
from rhale_stats.regional import trees as pruning
from rhale_stats.regional.losses import problem_of
from rhale_stats.regional.search import SplitSearch, SplitTree, TreeNode, Verdict
from rhale_stats.regional.splits import conditioning_columns
from rhale_stats.regional.trees import (
    ROOT_ALONE,
    PruningPath,
    _folds,
    as_variables,
    cut_back,
    held_out_loss,
    pruned,
    weakest_links,
)
from rhale_stats.schema.dimensions import ROWS
from tests.helpers import daily


def node(parent, weight, loss):
    return TreeNode(parent, (), weight, weight, loss, Verdict())


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


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(20))
def test_the_sequence_holds_the_cheapest_tree_at_every_price(seed):
    rng = np.random.default_rng(seed)
    nodes = [node(-1, 40.0, 1.0)]  # shares of the weight count
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
    """10 samples each: noise keeps a split in 10 % at most; regions are kept in 95 %.

    One sample of noise may be split, and none of the others.
    """
    kept = {}
    for name, shift, n_regions in (("noise", (0.0, 0.0), 1), ("three", (1.5, 1.0), 3)):
        sizes = []
        for seed in range(10):
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
    [rs.OptimalBins()],
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
    tree = SplitTree(problem, conditioning, settings, np.random.default_rng(0))
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


def problem_and_columns(local, rule, loss="index", min_obs=15):
    problem = problem_of(columns(local), 0, "x0", rule, error=0.0, loss=loss, min_obs=min_obs)
    return problem, conditioning_columns(local, None, "x0")


@pytest.mark.parametrize("loss", ["index", "output"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("rule", [rs.GivenBins([-1, -0.5, 0.1, 1]), rs.AdaptiveBins()], ids=str)
def test_held_out_rows_are_compared_with_those_of_their_region(rule, weighted, loss):
    """With lines that rise, and weights; regions by the weight of their held-out rows."""
    rng = np.random.default_rng(2)
    n = 300
    X = rng.uniform(-1, 1, (n, 2))
    X[:4, 0] = [-1, 1, -1, 1]
    X[:4, 1] = [-0.5, -0.5, 0.5, 0.5]  # every region has the whole axis
    g = np.column_stack([4 * X[:, 0] + 2 * (X[:, 1] > 0) + rng.normal(size=n) / 2, 0 * X[:, 0]])
    w = rng.uniform(0.2, 3, n) if weighted else np.ones(n)
    local = rs.local_effects(None, X, jacobian=g, **({"weights": w} if weighted else {}))
    problem, conditioning = problem_and_columns(local, rule, loss)
    tree = SplitTree(problem, conditioning, SplitSearch(1, min_share=0.0, test=None), rng)
    held = np.arange(4, n, 4)
    kept = np.setdiff1d(np.arange(n), held)
    tree.grow(kept, None)
    assert len(tree.nodes) == 3
    cut = tree.nodes[1].path[0].threshold
    losses, shares = [], []
    for side in (X[:, 1] <= cut, X[:, 1] > cut):
        inside = kept[side[kept]]
        row = rs.rhale(local.isel(obs=inside, feature=[0]), bins=rule, weighting="rows")
        row = row.isel(feature=0)
        edges = row["edge_value"].values
        out = held[side[held]]
        k = np.searchsorted(edges[1:-1], X[out, 0], side="right")
        mean = row["effect"].values[k]
        if "slope" in row:
            assert (row["slope"] > 3).any()
            mean = mean + row["slope"].values[k] * (X[out, 0] - (edges[k] + edges[k + 1]) / 2)
        squares, own = (g[out, 0] - mean) ** 2, w[out]
        if loss == "output":
            spread = np.sqrt(np.cov(X[:, 0], aweights=w))
            losses.append(spread * np.sqrt(np.average(squares, weights=own)))
        else:
            each = [np.average(squares[k == b], weights=own[k == b]) for b in range(len(edges) - 1)]
            losses.append(np.sum(each * np.diff(edges)))
        shares.append(own.sum())
    found = held_out_loss(problem, tree, frozenset([1, 2]), kept, held)
    assert_allclose(found, np.average(losses, weights=shares), rtol=1e-9)
    # Where all held-out rows are in one region, it decides alone.
    left = held[X[held, 1] <= cut]
    assert_allclose(
        held_out_loss(problem, tree, frozenset([1, 2]), kept, left), losses[0], rtol=1e-9
    )
    assert np.isnan(held_out_loss(problem, tree, frozenset([1, 2]), kept, held[:0]))


def test_a_region_whose_loss_is_unknown_does_not_count():
    """Its held-out row is in a bin that none of its own rows is in."""
    x = np.array([0.1, 0.2, 0.9, 0.1, 0.2, 0.3, 0.8, 0.15])
    z = np.array([0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    g = np.array([1.0, 2.0, 9.0, 10.0, 12.0, 14.0, 30.0, 16.0])
    local = rs.local_effects(
        None, np.column_stack([x, z]), jacobian=np.column_stack([g, g]), features=[0, 1]
    )
    problem, _ = problem_and_columns(local, rs.GivenBins([0.1, 0.5, 0.9]), min_obs=2)
    (column,) = conditioning_columns(local, pd.DataFrame({"z": z}), "x0")
    tree = SplitTree(problem, [column], SplitSearch(1, min_share=0.0, test=None), None)
    kept, held = np.array([0, 1, 3, 4, 5, 6]), np.array([2, 7])
    tree.grow(kept, None)
    assert len(tree.nodes) == 3
    # The mean of 10, 12 and 14 misses 16 by 4, in the bin in which it is.
    found = held_out_loss(problem, tree, frozenset([1, 2]), kept, held)
    assert_allclose(found, 16 * 0.8, rtol=1e-9)
    assert np.isnan(held_out_loss(problem, tree, frozenset([1]), kept, held))


def test_folds_are_parts_of_rows_or_of_groups():
    rows = np.array([2, 3, 5, 7, 11, 13, 17])
    found = _folds(rows, None, 3, np.random.default_rng(1))
    order = np.random.default_rng(1).permutation(rows)
    assert [fold.tolist() for fold in found] == [p.tolist() for p in np.array_split(order, 3)]
    groups = np.arange(18) % 5
    found = _folds(rows, groups, 2, np.random.default_rng(1))
    parts = np.array_split(np.random.default_rng(1).permutation(5), 2)
    expected = [[row for row in rows if row % 5 in part] for part in parts]
    assert [fold.tolist() for fold in found] == expected
    assert sorted(np.concatenate(found)) == rows.tolist()


@pytest.mark.thorough
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_pruning_by_hand(seed, grouped):
    """Trees on the other rows, the cheapest of them by brute force, and their held-out losses."""
    local = sample(seed, 0.8, 0.6, n=160)
    problem, conditioning = problem_and_columns(local, rs.EqualWidthBins(3))
    settings = SplitSearch(2, min_drop=0.02, min_share=0.0, test=None, n_thresholds=5)
    groups = np.arange(160) // 4 if grouped else None
    rows = np.arange(160)
    tree = SplitTree(problem, conditioning, settings, None, groups=groups)
    tree.grow(rows, None)
    tested = replace(settings, test="permutation")
    asked = replace(tree, settings=tested, rng=np.random.default_rng(7))
    found = pruned(problem, asked, rows, 4)
    sequence = weakest_links(tree.nodes)
    prices = [price for price, _ in sequence]
    assert len(prices) > 2
    between = [np.sqrt(one * two) for one, two in pairwise(prices)]
    losses = []
    for held in _folds(rows, groups, 4, np.random.default_rng(7)):
        kept = np.setdiff1d(rows, held)
        grown = SplitTree(problem, conditioning, settings, None)
        grown.grow(kept, None)
        trees = [*(cheapest(grown.nodes, price)[1] for price in between), [0]]
        losses.append([held_out_loss(problem, grown, frozenset(one), kept, held) for one in trees])
    mean = np.mean(losses, axis=0)
    error = np.std(losses, axis=0, ddof=1) / 2
    assert_array_equal(found.price, prices)
    assert_array_equal(found.n_regions, [len(regions) for _, regions in sequence])
    assert_allclose(found.loss, mean, rtol=1e-12)
    assert_allclose(found.loss_se, error, rtol=1e-12)
    within = mean <= mean.min() + error[mean.argmin()]
    assert found.chosen == np.flatnonzero(within)[-1]


def scripted(monkeypatch, losses):
    """Pruned trees whose losses by fold and number of regions are given: 3, 2 or 1 regions."""
    sequence = [(0.0, frozenset({2, 3, 4})), (1.0, frozenset({1, 4})), (4.0, frozenset({0}))]
    each = iter(losses)
    current = {}

    class Grown:
        nodes, groups, conditioning, settings = (), None, [], SplitSearch()
        rng = np.random.default_rng(0)

        def __init__(self, *args, **kwargs): ...

        def grow(self, at, judge):
            current["losses"] = next(each)

    monkeypatch.setattr(pruning, "weakest_links", lambda nodes: sequence)
    monkeypatch.setattr(pruning, "SplitTree", Grown)
    monkeypatch.setattr(
        pruning, "held_out_loss", lambda p, t, regions, k, h: current["losses"][3 - len(regions)]
    )
    return pruned(None, Grown(), np.arange(12), len(losses))


def test_the_smallest_tree_within_a_standard_error(monkeypatch):
    """1 and 3 have the mean 2 and its error 1; up to 3 is within it, the limit included."""
    found = scripted(monkeypatch, [[1.0, 3.0, 4.0], [3.0, 3.0, 2.5]])
    assert found.loss.tolist() == [2, 3, 3.25]
    assert found.loss_se[:2].tolist() == [1, 0]
    assert (found.chosen, found.price.tolist(), found.n_regions.tolist()) == (
        1,
        [0, 1, 4],
        [3, 2, 1],
    )
    assert scripted(monkeypatch, [[1.0, 3.1, 3.0], [3.0, 3.1, 2.9]]).chosen == 2
    assert scripted(monkeypatch, [[1.0, 3.1, 4.0], [3.0, 3.1, 3.0]]).chosen == 0
    # The error of the best tree counts, not that of the others.
    assert scripted(monkeypatch, [[5.0, 2.0, 0.0], [5.0, 2.0, 6.0]]).chosen == 1


def test_folds_with_unknown_losses_do_not_count(monkeypatch):
    known = [[1.0, 3.0, 4.0], [3.0, 3.0, 2.5]]
    found = scripted(monkeypatch, [known[0], [np.nan, 0.0, 0.0], known[1], [0.0, 0.0, np.nan]])
    assert found.loss.tolist() == [2, 3, 3.25]
    assert found.loss_se[0] == 1
    message = "at least two folds with rows in bins of the others; 3 folds of 12 rows have 1. Use"
    with pytest.raises(ValueError, match=message):
        scripted(monkeypatch, [known[0], [np.nan] * 3, [0.0, np.nan, 0.0]])


def test_a_tree_is_cut_back_to_its_regions():
    """Nodes 2 and 3 go into 1, whose split is no longer one; the others keep theirs."""
    made = Verdict("z ≤ 0", 0.5, 0.4, 0.01, True)
    tree = SplitTree(None, [], SplitSearch(), None)
    parents, verdicts = [-1, 0, 1, 1, 0, 4, 4], [made, made, None, None, made, None, None]
    tree.nodes = [
        TreeNode(parent, (), 1.0, 1.0, float(at), verdict or Verdict("y ≤ 1", 0.2))
        for at, (parent, verdict) in enumerate(zip(parents, verdicts, strict=True))
    ]
    rows = {2: [0, 5], 3: [1], 5: [2, 4], 6: [3]}
    tree.leaves = {leaf: np.array(at) for leaf, at in rows.items()}
    nodes, leaves = cut_back(tree, frozenset({1, 5, 6}))
    assert [(node.parent, node.loss) for node in nodes] == [(-1, 0), (0, 1), (0, 4), (2, 5), (2, 6)]
    assert {leaf: at.tolist() for leaf, at in leaves.items()} == {1: [0, 1, 5], 3: [2, 4], 4: [3]}
    assert list(leaves) == [1, 3, 4]
    assert nodes[0].verdict == nodes[2].verdict == made
    one = nodes[1].verdict
    assert (one.best, one.best_drop, one.pvalue, one.splits) == ("z ≤ 0", 0.5, 0.01, False)
    assert np.isnan(one.drop)
    assert nodes[3].verdict == tree.nodes[5].verdict
    (root,), leaves = cut_back(tree, frozenset({0}))
    assert (root.parent, leaves[0].tolist()) == (-1, [0, 1, 2, 3, 4, 5])


def test_the_trees_that_were_compared_have_labels():
    price, n_regions = np.array([0.0, 2.0]), np.array([3, 1])
    found = as_variables(PruningPath(price, n_regions, price + 1, price + 2, 1), "m")
    expected = {
        "pruning_price": (price, "smallest penalty per region at which the tree is optimal", "m"),
        "pruning_n_regions": (n_regions, "regions of the tree", "1"),
        "pruning_loss": (price + 1, "cross-validated loss of the tree", "m"),
        "pruning_loss_se": (price + 2, "standard error of the cross-validated loss", "m"),
    }
    assert set(found) == set(expected)
    for name, (values, words, units) in expected.items():
        assert found[name].dims == ("pruning",)
        assert_array_equal(found[name], values)
        assert found[name].attrs == {"long_name": words, "units": units}
    assert (ROOT_ALONE.price.tolist(), ROOT_ALONE.n_regions.tolist()) == ([0], [1])
    assert ROOT_ALONE.chosen == 0


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
