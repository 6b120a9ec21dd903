"""A tree of regions as a labelled Dataset, the region of every row, and pruning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike

from rhale_stats.arguments.words import first_rows, shown, warn
from rhale_stats.arrays.moments import FloatArray, IntArray, merge, selected
from rhale_stats.bins.description import describe
from rhale_stats.local.rows import columns
from rhale_stats.regional.losses import LOSSES, Problem, Searchable
from rhale_stats.regional.search import SplitTree, TreeNode, Verdict, Work
from rhale_stats.regional.splits import ROOT_RULE, Condition, as_json, frame_of, of_json, rule_text
from rhale_stats.schema.checks import is_chunked
from rhale_stats.schema.dimensions import ROWS
from rhale_stats.schema.features import feature_names, feature_position, labels_kept
from rhale_stats.schema.identity import (
    MODEL_FACTS,
    as_attribute,
    check_same_output,
    fingerprint_of,
    same_rows,
)
from rhale_stats.schema.kinds import TREE, kind_of
from rhale_stats.schema.validation import validated
from rhale_stats.schema.variable_table import NODE_VARIABLES
from rhale_stats.schema.variables import dataset_of, software, variable


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


def pruned(problem: Problem, tree: SplitTree, rows: IntArray, n_folds: int) -> PruningPath:
    """The smallest tree whose loss on held-out rows is within a standard error of the least."""
    sequence = weakest_links(tree.nodes)
    prices = np.array([price for price, _ in sequence])
    # Between two penalties the tree is the same: a middle one represents it in the folds.
    typical = np.append(np.sqrt(prices[:-1] * prices[1:]), np.inf)
    losses = np.empty((n_folds, len(prices)))
    untested = replace(tree.settings, test=None)
    for fold, held_out_rows in enumerate(_folds(rows, tree.groups, n_folds, tree.rng)):
        training_rows = np.setdiff1d(rows, held_out_rows)
        grown = SplitTree(problem, tree.conditioning, untested, tree.rng)
        grown.grow(training_rows, None)
        fold_sequence = weakest_links(grown.nodes)
        of_price = np.searchsorted([price for price, _ in fold_sequence], typical, side="right") - 1
        numbers, of_price = np.unique(of_price, return_inverse=True)
        loss_of_tree = [
            held_out_loss(problem, grown, fold_sequence[number][1], training_rows, held_out_rows)
            for number in numbers
        ]
        losses[fold] = np.take(loss_of_tree, of_price)
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
    tree: SplitTree, regions: frozenset[int]
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
    parent = nodes[number].parent
    return set() if parent < 0 else {parent, *_above(nodes, parent)}


def held_out_loss(
    problem: Problem,
    tree: SplitTree,
    regions: frozenset[int],
    training_rows: IntArray,
    held_out_rows: IntArray,
) -> float:
    """Mean loss of held-out rows about the effects that the kept rows have in their regions."""
    total, weight = 0.0, 0.0
    for region in regions:
        path = tree.nodes[region].path
        training, held_out = [tree.within(path, rows) for rows in (training_rows, held_out_rows)]
        if len(held_out):
            share = float(_weights(problem, held_out).sum())
            loss = _distance(problem, training, held_out)
            if np.isfinite(loss):
                total += share * loss
                weight += share
    return total / weight if weight else np.nan


def _weights(problem: Problem, rows: IntArray) -> FloatArray:
    return np.ones(len(rows)) if problem.weight is None else problem.weight[rows]


def _distance(problem: Problem, training_rows: IntArray, held_out_rows: IntArray) -> float:
    """The loss with squares about other rows' bins; bins without held-out rows count as others."""
    node = problem.node(training_rows, 0.0)
    codes = np.zeros(len(training_rows), dtype=np.uint8)
    cells = node.rows.moments(node.rows.table(codes, 1))
    first_cells = np.flatnonzero(node.starts)
    bins = merge(selected(cells, 0), first_cells)
    k = np.cumsum(node.starts)[problem.cell[held_out_rows]] - 1
    residual = problem.g[held_out_rows] - bins.mean[k]
    if bins.x_m2 is not None and bins.xg is not None and node.linear is not None:
        is_sloped = node.linear[first_cells] & (bins.x_m2 > 0)
        slope = np.where(is_sloped, bins.xg / np.where(bins.x_m2 > 0, bins.x_m2, 1.0), 0.0)
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
        "price": ("smallest penalty per region at which the tree is optimal", units),
        "n_regions": ("regions of the tree", "1"),
        "loss": ("cross-validated loss of the tree", units),
        "loss_se": ("standard error of the cross-validated loss", units),
    }
    return {
        f"pruning_{name}": xr.Variable(
            "pruning", getattr(pruning, name), {"long_name": text, "units": unit}
        )
        for name, (text, unit) in about.items()
    }


ABOUT_REGION = {"long_name": "region of the row, -1 for none"}


def labelled_tree(work: Work, position: int, table: pd.DataFrame | ArrayLike | None) -> xr.Dataset:
    """The tree of one feature by its local effects."""
    return tree_of(work, position, table, work.problem(position), LOSSES[work.loss])


def tree_of(
    work: Work,
    position: int,
    table: pd.DataFrame | ArrayLike | None,
    problem: Searchable | None,
    loss_units: str,
) -> xr.Dataset:
    """The tree of one feature, whatever its loss; a node alone where there is nothing to search."""
    name = feature_names(work.local)[position]
    conditioning = work.conditioning(table, name)
    n_rows, weight = work.rows.n_rows, work.rows.weight
    n_obs = float(n_rows if weight is None or not work.rows.frequency else weight.sum())
    # The tree of a constant feature: all rows.
    nodes = [TreeNode(-1, (), n_obs, 1.0, np.nan, Verdict())]
    leaves, pruning = {0: np.arange(n_rows)}, ROOT_ALONE
    if problem is not None:
        tree = SplitTree(problem, conditioning, work.settings, work.rng, work.of_root, work.groups)
        tree.grow(work.search, work.judge)
        nodes, leaves = tree.nodes, tree.leaves
        if work.n_folds is not None and isinstance(problem, Problem):
            pruning = pruned(problem, tree, work.search, work.n_folds)
            nodes, leaves = cut_back(tree, weakest_links(nodes)[pruning.chosen][1])
    variables = _of_nodes(nodes, leaves)
    variables["loss"].attrs["units"] = loss_units
    if work.n_folds is not None:
        variables |= as_variables(pruning, loss_units)
    # Rows without weight have no region.
    region = np.full(work.local.sizes["obs"], -1, dtype=np.int64)
    rows = np.flatnonzero(work.present)
    for number, leaf_rows in enumerate(leaves.values()):
        region[rows[leaf_rows]] = number
    return dataset_of(
        {**variables, ROWS: ("obs", region, dict(ABOUT_REGION))},
        {
            **{key: coord.variable for key, coord in work.local["obs"].coords.items()},
            "obs": work.local["obs"].variable,  # also where the rows have no labels
            "node": ("node", np.arange(len(nodes)), {"long_name": "node"}),
            "feature": ((), name),
            "feature_units": ((), str(work.local["feature_units"].values[position])),
        },
        _facts(work, position, ", ".join(column.name for column in conditioning)),
    )


def _of_nodes(nodes: list[TreeNode], leaves: dict[int, IntArray]) -> dict[str, xr.Variable]:
    """Variables of the nodes, over ``node``."""
    region = np.full(len(nodes), -1)
    region[list(leaves)] = np.arange(len(leaves))
    root = Condition("", "", ROOT_RULE)
    conditions = [node.path[-1] if node.path else root for node in nodes]
    verdicts = [node.verdict for node in nodes]
    values: dict[str, Any] = {
        "parent": [node.parent for node in nodes],
        "depth": [len(node.path) for node in nodes],
        "condition": [last.text for last in conditions],
        "condition_feature": [last.feature for last in conditions],
        "operator": [last.operator for last in conditions],
        "threshold": [last.threshold for last in conditions],
        "levels": [as_json(last.levels) for last in conditions],
        "rule": [rule_text(node.path) for node in nodes],
        "n_obs": np.array([node.n_obs for node in nodes]).astype(np.int64),
        "weight_share": [node.weight / nodes[0].weight for node in nodes],
        "loss": [node.loss for node in nodes],
        "loss_drop": [verdict.drop for verdict in verdicts],
        "best": [verdict.best for verdict in verdicts],
        "best_drop": [verdict.best_drop for verdict in verdicts],
        "pvalue": [verdict.pvalue for verdict in verdicts],
        "region": region,
    }
    return {
        name: xr.Variable(*variable(name, np.asarray(values[name]), TREE))
        for name in NODE_VARIABLES
    }


def _facts(work: Work, position: int, conditioning: str) -> dict[str, Any]:
    """How the tree was made, as attributes."""
    attrs, settings = work.local.attrs, asdict(work.settings)
    del settings["honest_fraction"]  # among the facts of honest trees
    rule_name, parameters = describe(work.rule)
    return {
        "method": "regions",
        **as_attribute({feature_names(work.local)[position]: work.rows.fingerprint(position)}),
        **{fact: attrs[fact] for fact in MODEL_FACTS if fact in attrs},
        "conditioning": conditioning,
        **settings,
        "min_obs": work.min_obs,
        "test": work.settings.test or "none",
        **work.facts,
        "n_folds": work.n_folds or 0,
        "output_name": attrs.get("output_name", "output"),
        "output_units": attrs.get("output_units", ""),
        **labels_kept(work.local),
        "n_rows": work.rows.n_rows,
        "loss_kind": work.loss,
        "bin_rule": rule_name,
        "bin_parameters": parameters,
        "software": software(),
    }


# --- what is done with a tree ---------------------------------------------------------------------


def check_tree(tree: object) -> xr.Dataset:
    """The argument itself, of one feature and without padding."""
    if not isinstance(tree, xr.Dataset) or not {"parent", "region", ROWS} <= set(tree.data_vars):
        kind = kind_of(tree) if isinstance(tree, xr.Dataset) else None
        got = kind.name if kind else shown(tree)
        raise TypeError(
            f"tree must be the Dataset that regions(local, feature) returns; got {got}."
        )
    counted = set(tree["n_nodes"].dims) if "n_nodes" in tree.coords else set()
    if "node" not in tree.dims or not counted <= {"feature"}:
        raise ValueError(
            f"tree must be as regions returned it, of one feature and all of its nodes; its "
            f"dimensions are {', '.join(map(str, tree.dims))}."
        )
    if "feature" in tree.dims:
        if tree.sizes["feature"] > 1:
            names = ", ".join(repr(str(name)) for name in tree["feature"].values)
            raise ValueError(
                f"tree must be of one feature; this one is of {names}. Select one: "
                f"tree.sel(feature=...)."
            )
        tree = tree.isel(feature=0)
    if "n_nodes" in tree.coords:
        tree = tree.isel(node=slice(0, int(tree["n_nodes"])))
    return tree


def check_rows_of_tree(local: xr.Dataset, tree: xr.Dataset) -> None:
    """Raise ``ValueError`` unless the tree was made from these rows, and local effects if any."""
    name = str(tree["feature"].values)
    if not np.array_equal(local["obs"].values, tree["obs"].values):
        raise ValueError(
            f"local must be the Dataset that the tree was made from; it has {local.sizes['obs']} "
            f"rows and the tree {tree.sizes['obs']}, or they are named otherwise."
        )
    check_same_output(local, tree, ("local", "tree"))
    tree_fingerprint = fingerprint_of(tree)
    if not tree_fingerprint or name not in feature_names(local):
        return
    feature_local = local.isel(feature=[feature_position(local, name)])
    if is_chunked(local):
        return  # regions of all rows are read anyway, and their effects say what of
    if "n_missing" in local:
        feature_local = feature_local.isel(obs=feature_local["x"].notnull().values[:, 0])
    local_fingerprint = columns(feature_local).fingerprint(0)
    if not same_rows(local_fingerprint, tree_fingerprint):
        raise ValueError(
            f"local must have the rows that the tree was made from; they have other values of "
            f"feature {name!r}, other weights or another order. Pass that Dataset."
        )
    if local_fingerprint != tree_fingerprint and tree.attrs["method"] == "regions":
        raise ValueError(
            f"local must be the Dataset that the tree was made from; it has the same rows, but "
            f"its local effects of feature {name!r} come from another model, output or scale. "
            f"Pass that Dataset, or take the rows of a region by hand: "
            f"rhale(local.isel(obs=np.flatnonzero(tree.region_of_row == 0)))."
        )


@validated
def assign(tree: xr.Dataset, X: pd.DataFrame | ArrayLike) -> xr.DataArray:
    """Region of new rows.

    Parameters
    ----------
    %(tree)s
    X : table, or array_like of shape (n_rows, n_columns)
        Rows with the columns that the tree splits by, under the same names; ``x0``, ``x1``, ... in
        an array.

    Returns
    -------
    DataArray
        ``region`` over ``obs``, with the index of ``X``; -1 for rows that belong to no region,
        because a value is missing, or a level did not occur in the rows that a node of the tree
        splits.

    Raises
    ------
    KeyError
        A column is missing.
    TypeError
        A column that the tree compares with numbers does not hold numbers.

    Warns
    -----
    UserWarning
        Rows without a region.

    Examples
    --------
    >>> import rhale_stats as rs
    >>> example = rs.simulate.TwoRegimes()
    >>> local = rs.local_effects(None, example.sample(500, rng=0), jacobian=example.jacobian)
    >>> rs.assign(rs.regions(local, "x1"), example.sample(5, rng=1)).values
    array([1, 1, 0, 1, 0])
    """
    table = frame_of(X, "X")
    regions = region_of_rows(check_tree(tree), table)
    lost = regions < 0
    if lost.any():
        warn(
            f"No region for {int(lost.sum())} of {len(regions)} rows ({first_rows(lost)}): a value "
            f"is missing, or a level did not occur in the rows that the tree splits. Their region "
            f"is -1."
        )
    index = table.index.to_numpy()
    return xr.DataArray(regions, {"obs": index}, "obs", "region", dict(ABOUT_REGION))


def region_of_rows(tree: xr.Dataset, table: pd.DataFrame) -> IntArray:
    """Region of every row of a table by the rules of a tree of one feature, -1 for none."""
    names = ("condition_feature", "operator", "condition", "threshold", "levels", "parent")
    rules = zip(*(tree[name].values[1:].tolist() for name in names), strict=True)
    columns_given = {str(name): column for name, column in table.items()}
    inside = np.zeros((tree.sizes["node"], len(table)), dtype=bool)
    inside[0] = True
    for number, (feature, operator, text, threshold, levels, parent) in enumerate(rules, 1):
        if feature not in columns_given:
            raise KeyError(
                f"X must have the columns that the tree splits by; got none named {feature!r} (it "
                f"has {', '.join(columns_given)})."
            )
        condition = Condition(feature, operator, text, threshold, of_json(levels))
        inside[number] = inside[parent] & condition.holds(columns_given[feature])
    region, region_of_row = tree["region"].values, np.full(len(table), -1)
    for leaf in np.flatnonzero(region >= 0):
        region_of_row[inside[leaf]] = region[leaf]
    return region_of_row


def rows_of_nodes(tree: xr.Dataset) -> list[IntArray]:
    """Numbers of the rows of every node."""
    region, parent = tree["region"].values, tree["parent"].values
    inside = tree[ROWS].values == np.where(region >= 0, region, -2)[:, None]
    for number in range(len(region) - 1, 0, -1):
        inside[parent[number]] |= inside[number]
    return [np.flatnonzero(rows) for rows in inside]
