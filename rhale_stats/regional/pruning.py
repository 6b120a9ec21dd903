"""Minimal cost-complexity pruning: the size of a tree by cross-validation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import xarray as xr

from rhale_stats.arrays import regions as search
from rhale_stats.arrays.moments import (
    Comoments,
    FloatArray,
    IntArray,
    Moments,
    merge,
    merge_comoments,
)
from rhale_stats.regional.columns import Conditioning
from rhale_stats.regional.losses import Problem, node_of
from rhale_stats.regional.search import SplitSearch, SplitTree, TreeNode, Verdict


class PruningPath(NamedTuple):
    """Sequence of pruned trees, the largest first: penalty, regions, loss by cross-validation.

    ``chosen`` is the number of the tree that is taken.
    """

    price: FloatArray
    n_regions: IntArray
    loss: FloatArray
    loss_se: FloatArray
    chosen: int


def weakest_links(nodes: Sequence[TreeNode]) -> list[tuple[float, frozenset[int]]]:
    """Penalties and, from each on, the nodes that are regions of the tree with the lowest cost."""
    cost = np.array([node.weight * node.loss for node in nodes]) / nodes[0].weight
    children: dict[int, list[int]] = {}
    for number, node in enumerate(nodes):
        children.setdefault(node.parent, []).append(number)

    def regions_below(number: int) -> list[int]:
        below = [] if number in cut else children.get(number, [])
        return [leaf for child in below for leaf in regions_below(child)] or [number]

    cut: set[int] = set()
    price, sequence = 0.0, [(0.0, frozenset(regions_below(0)))]
    while len(sequence[-1][1]) > 1:
        gains = {}
        inner = [0]
        while inner:
            number = inner.pop()
            leaves = regions_below(number)
            if len(leaves) > 1:
                gains[number] = (cost[number] - cost[leaves].sum()) / (len(leaves) - 1)
                inner += children[number]
        weakest = min(gains.values())
        price = max(price, weakest)
        cut |= {number for number, gain in gains.items() if gain <= price}
        sequence.append((price, frozenset(regions_below(0))))
    return sequence


def pruned(
    problem: Problem,
    conditioning: Sequence[Conditioning],
    settings: SplitSearch,
    tree: SplitTree[search.NodeRows],
    rows: IntArray,
    n_folds: int,
    rng: np.random.Generator,
) -> PruningPath:
    """The smallest tree whose loss on held-out rows is within a standard error of the least."""
    sequence = weakest_links(tree.nodes)
    prices = np.array([price for price, _ in sequence])
    # Between two penalties the tree is the same: a middle one represents it in the folds.
    typical = np.append(np.sqrt(prices[:-1] * prices[1:]), np.inf)
    losses = np.empty((n_folds, len(prices)))
    untested = replace(settings, test=None)
    for fold, held_out_rows in enumerate(_folds(rows, tree.groups, n_folds, rng)):
        training_rows = np.setdiff1d(rows, held_out_rows)
        grown = SplitTree(problem, conditioning, untested, rng)
        grown.grow(training_rows, None)
        fold_sequence = weakest_links(grown.nodes)
        of_price = np.searchsorted([price for price, _ in fold_sequence], typical, side="right") - 1
        loss_of_tree: dict[int, float] = {}
        for number, tree_number in enumerate(of_price):
            if tree_number not in loss_of_tree:
                loss_of_tree[tree_number] = held_out_loss(
                    problem, grown, fold_sequence[tree_number][1], training_rows, held_out_rows
                )
            losses[fold, number] = loss_of_tree[tree_number]
    # A small fold may have no rows in any bin of the others.
    losses = losses[np.isfinite(losses).all(axis=1)]
    if len(losses) < 2:
        raise ValueError(
            f"n_folds must leave at least two folds with rows in bins of the others; {n_folds} "
            f"folds of {len(rows)} rows have {len(losses)}. Use fewer folds, or fewer bins."
        )
    mean, error = losses.mean(axis=0), losses.std(axis=0, ddof=1) / np.sqrt(len(losses))
    best = int(mean.argmin())
    chosen = int(np.flatnonzero(mean <= mean[best] + error[best]).max())
    n_regions = np.array([len(regions) for _, regions in sequence])
    return PruningPath(prices, n_regions, mean, error, chosen)


def _folds(
    rows: IntArray, groups: IntArray | None, n_folds: int, rng: np.random.Generator
) -> list[IntArray]:
    """Rows of every fold, whole groups if there are any."""
    if groups is None:
        return np.array_split(rng.permutation(rows), n_folds)
    folds = np.array_split(rng.permutation(int(groups.max()) + 1), n_folds)
    return [rows[np.isin(groups[rows], fold)] for fold in folds]


def cut_back(
    tree: SplitTree[search.NodeRows], regions: frozenset[int]
) -> tuple[list[TreeNode], dict[int, IntArray]]:
    """The nodes of a tree that ends at ``regions``, and the rows of these."""
    remaining = [n for n in range(len(tree.nodes)) if not _above(tree.nodes, n) & regions]
    new = {old: number for number, old in enumerate(remaining)}
    nodes = []
    for old in remaining:
        node = tree.nodes[old]
        verdict = node.verdict
        if old in regions and verdict.splits:
            verdict = Verdict(verdict.best, verdict.best_drop, pvalue=verdict.pvalue)
        nodes.append(node._replace(parent=new.get(node.parent, -1), verdict=verdict))
    rows: dict[int, IntArray] = {}
    for leaf, leaf_rows in tree.leaves.items():
        (region,) = (_above(tree.nodes, leaf) | {leaf}) & regions
        rows[new[region]] = np.append(rows.get(new[region], leaf_rows[:0]), leaf_rows)
    return nodes, {number: np.sort(rows[number]) for number in sorted(rows)}


def _above(nodes: Sequence[TreeNode], number: int) -> set[int]:
    """Nodes on the way to a node."""
    ancestors: set[int] = set()
    while nodes[number].parent >= 0:
        number = nodes[number].parent
        ancestors.add(number)
    return ancestors


def held_out_loss(
    problem: Problem,
    tree: SplitTree[search.NodeRows],
    regions: frozenset[int],
    training_rows: IntArray,
    held_out_rows: IntArray,
) -> float:
    """Mean loss of held-out rows about the effects that the kept rows have in their regions."""
    total, weight = 0.0, 0.0
    for region in regions:
        inside = [
            tree.within(tree.nodes[region].path, rows) for rows in (training_rows, held_out_rows)
        ]
        if len(inside[1]):
            share = float(_weights(problem, inside[1]).sum())
            loss = _distance(problem, *inside)
            if np.isfinite(loss):
                total += share * loss
                weight += share
    return total / weight if weight else np.nan


def _weights(problem: Problem, rows: IntArray) -> FloatArray:
    return np.ones(len(rows)) if problem.weight is None else problem.weight[rows]


def _distance(problem: Problem, training_rows: IntArray, held_out_rows: IntArray) -> float:
    """The loss with squares about other rows' bins; bins without held-out rows count as others."""
    node = node_of(problem, training_rows, 0.0)
    sums = search.table(np.zeros(len(training_rows), dtype=np.uint8), 1, node.rows)
    cells, products = search.moments(sums, node.rows)
    starts, linear = problem.starts(cells, products, node.resolution)
    first_cells = np.flatnonzero(starts[0])
    of_cells = Moments(*(part[0] for part in cells))
    bins = merge(of_cells, first_cells)
    k = np.cumsum(starts[0])[problem.cell[held_out_rows]] - 1
    residual = problem.g[held_out_rows] - bins.mean[k]
    if products is not None and linear is not None:
        within = Comoments(*(part[0] for part in products))
        x_m2, xg = merge_comoments(of_cells, within, first_cells, bins)
        slope = np.where(
            linear[0][first_cells] & (x_m2 > 0), xg / np.where(x_m2 > 0, x_m2, 1.0), 0.0
        )
        residual = residual - slope[k] * (problem.x[held_out_rows] - bins.x_mean[k])
    weight = _weights(problem, held_out_rows)
    finite = np.isfinite(residual)
    in_bins = np.bincount(k[finite], weight[finite], len(first_cells))
    squares = np.bincount(k[finite], (weight * residual**2)[finite], len(first_cells))
    if problem.loss == "output":
        with np.errstate(invalid="ignore", divide="ignore"):
            return float(problem.scale * np.sqrt(squares.sum() / in_bins.sum()))
    width = np.add.reduceat(problem.width, first_cells)
    occupied = in_bins > 0
    if not occupied.any():
        return np.nan
    mean = np.sum(width[occupied] * squares[occupied] / in_bins[occupied]) / width[occupied].sum()
    return float(mean * problem.width.sum())


# For a constant feature, which has no effect.
ROOT_ALONE = PruningPath(
    np.zeros(1), np.ones(1, dtype=np.int64), np.full(1, np.nan), np.full(1, np.nan), 0
)


def as_variables(pruning: PruningPath, units: str) -> dict[str, xr.Variable]:
    """The sequence of trees as variables over ``pruning``."""
    about = {
        "pruning_price": ("smallest penalty per region at which the tree is optimal", units),
        "pruning_n_regions": ("regions of the tree", "1"),
        "pruning_loss": ("cross-validated loss of the tree", units),
        "pruning_loss_se": ("standard error of the cross-validated loss", units),
    }
    values = (pruning.price, pruning.n_regions, pruning.loss, pruning.loss_se)
    return {
        name: xr.Variable("pruning", array, {"long_name": text, "units": unit})
        for (name, (text, unit)), array in zip(about.items(), values, strict=True)
    }
