"""A tree of regions as a labelled Dataset, and the region of every row."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from rhale_stats.arguments.checks import check_choice, check_count
from rhale_stats.arguments.seeds import seed_of, source_of
from rhale_stats.arguments.words import first_rows, warn
from rhale_stats.arrays.moments import IntArray
from rhale_stats.bins.description import describe
from rhale_stats.bins.rule import BinRule, check_rule
from rhale_stats.bins.searched import OptimalBins
from rhale_stats.local.rows import Rows, columns, honest_split
from rhale_stats.regional.columns import Conditioning, conditioning_columns, frame_of
from rhale_stats.regional.conditions import Condition, as_json, of_json, rule_text
from rhale_stats.regional.losses import LOSSES, TESTS, Problem, Searchable, problem_of
from rhale_stats.regional.pruning import ROOT_ALONE, as_variables, cut_back, pruned, weakest_links
from rhale_stats.regional.search import Grown, Settings, Tree, Verdict
from rhale_stats.regional.splits import THRESHOLDS, Candidates
from rhale_stats.schema.checks import check_local
from rhale_stats.schema.dimensions import ROWS
from rhale_stats.schema.door import checked
from rhale_stats.schema.features import feature_names, feature_position
from rhale_stats.schema.identity import (
    MODEL_FACTS,
    as_attribute,
    check_same_output,
    fingerprint_of,
    same_rows,
)
from rhale_stats.schema.levels import refuse_categorical
from rhale_stats.schema.variables import software

# Name -> (long_name, units) of what a tree says of its nodes.
NODE_VARIABLES = {
    "parent": ("node that this one is part of, -1 for the root", "1"),
    "depth": ("splits above the node", "1"),
    "condition": ("what its rows have, of those of its parent", "1"),
    "condition_feature": ("column of the condition", "1"),
    "operator": ("how the condition compares", "1"),
    "threshold": ("number that the condition compares with", "units of the column"),
    "levels": ("levels that the condition compares with, as JSON", "1"),
    "rule": ("what the rows of the node have", "1"),
    "n_obs": ("rows of the node", "rows"),
    "weight_share": ("share of the total weight in the node", "1"),
    "loss": ("heterogeneity left in the bins of the node", ""),
    "loss_drop": ("relative drop of the loss by the split of the node", "1"),
    "best": ("best split found", "1"),
    "best_drop": ("relative drop of the loss by the best split found", "1"),
    "pvalue": ("p-value of no better split than by chance", "1"),
    "region": ("number of the region, -1 where the node was split", "1"),
}


class Work(NamedTuple):
    """What trees of all features share. ``search`` and ``judge`` number the rows that count.

    ``of_root`` are the candidates of all ``search`` rows by column, as trees find them.
    """

    local: xr.Dataset
    rows: Rows
    present: NDArray[np.bool_]
    rule: BinRule
    settings: Settings
    loss: str
    min_obs: int
    search: IntArray
    judge: IntArray | None
    n_folds: int | None
    rng: np.random.Generator
    facts: dict[str, Any]
    of_root: dict[str, Candidates]

    def problem(self, position: int, loss: str | None = None) -> Problem | None:
        """One feature ready to be searched, by another loss if given; None if constant."""
        return problem_of(
            self.rows,
            position,
            feature_names(self.local)[position],
            self.rule,
            error=float(self.local["local_effect_error"].values[position]),
            loss=loss or self.loss,
            min_obs=self.min_obs,
        )

    def conditioning(
        self, given: pd.DataFrame | ArrayLike | None, feature: str
    ) -> list[Conditioning]:
        """Columns for splits of the effect of a feature, at the rows that count."""
        every = conditioning_columns(self.local, given, feature)
        return every if self.present.all() else [one.take(self.present) for one in every]


def work_of(
    local: xr.Dataset,
    bins: BinRule | None,
    settings: Settings,
    loss: str,
    min_obs: int | None,
    honest_fraction: float,
    n_folds: int | None,
    rng: np.random.Generator | int | None,
) -> Work:
    """Everything checked, and the rows dealt out."""
    local = check_local(local)
    refuse_categorical(local, "regions")
    check_count("max_depth", settings.max_depth, 0)
    check_count("n_thresholds", settings.n_thresholds, 1)
    check_count("n_permutations", settings.n_permutations, 1)
    check_choice("thresholds", settings.thresholds, THRESHOLDS)
    check_choice("loss", loss, tuple(LOSSES))
    if settings.test is not None:
        check_choice("test", settings.test, TESTS)
    for name, value in (("min_drop", settings.min_drop), ("min_share", settings.min_share)):
        if not 0 <= value < 1:
            raise ValueError(
                f"{name} must lie in [0, 1): it is a share of the loss; got {value!r}."
            )
    if not 0 < settings.level < 1:
        raise ValueError(f"level must lie strictly between 0 and 1; got {settings.level!r}.")
    if settings.test is not None and settings.level * (settings.n_permutations + 1) < 1:
        raise ValueError(
            f"n_permutations must be at least 1 / level - 1 for any split to pass; got "
            f"{settings.n_permutations} at level {settings.level:g}."
        )
    if n_folds is not None:
        check_count("n_folds", n_folds, 2)
        if settings.test == "honest":
            raise ValueError(
                "n_folds must be None with test='honest', which judges every split on other rows."
            )
    rule: BinRule = OptimalBins() if bins is None else bins
    check_rule(rule)
    rows = columns(local)
    if n_folds is not None and n_folds > rows.n_rows:
        raise ValueError(
            f"n_folds must not exceed the number of rows; got {n_folds} for {rows.n_rows}."
        )
    present = local["weight"].values > 0 if "weight" in local else np.ones(rows.n_rows, dtype=bool)
    n_rows = rows.n_rows
    if rows.weight is not None:
        n_rows = int(
            rows.weight.sum() if rows.frequency else rows.weight.sum() ** 2 / np.sum(rows.weight**2)
        )
    if min_obs is not None:
        check_count("min_obs", min_obs, 1)
    least = max(n_rows // 20, 10) if min_obs is None else min_obs
    generator, seed = source_of(rng)
    search, judge = np.arange(rows.n_rows), None
    facts: dict[str, Any] = {}
    if settings.test is not None or n_folds is not None:
        facts["seed"] = seed
    if settings.test == "honest":
        honest_seed = seed_of(generator)
        chosen = honest_split(local.sizes["obs"], honest_fraction, honest_seed)[present]
        search, judge = np.flatnonzero(chosen), np.flatnonzero(~chosen)
        if not (len(search) and len(judge)):
            raise ValueError(
                f"honest_fraction must leave rows on both sides; of {len(chosen)} rows with a "
                f"value and a weight {len(search)} choose splits and {len(judge)} judge them. Use "
                f"more rows, or another rng."
            )
        facts |= {"honest_fraction": float(honest_fraction), "honest_seed": honest_seed}
        if min_obs is None:
            least = max(least // 2, 10)
    return Work(
        local, rows, present, rule, settings, loss, least, search, judge, n_folds, generator,
        facts, {},
    )  # fmt: skip


def labelled_tree(work: Work, position: int, given: pd.DataFrame | ArrayLike | None) -> xr.Dataset:
    """The tree of one feature."""
    tree = tree_of(work, position, given, work.problem(position), LOSSES[work.loss])
    rule_name, parameters = describe(work.rule)
    return tree.assign_attrs(
        loss_kind=work.loss, bin_rule=rule_name, bin_parameters=parameters, software=software()
    )


def tree_of(
    work: Work,
    position: int,
    given: pd.DataFrame | ArrayLike | None,
    problem: Searchable[Any] | None,
    loss_units: str,
) -> xr.Dataset:
    """The tree of one feature, whatever its loss; a node alone where there is nothing to search."""
    local, settings = work.local, work.settings
    name = feature_names(local)[position]
    conditioning = work.conditioning(given, name)
    pruning: dict[str, xr.Variable] = {}
    if problem is None:
        n_rows = float(work.rows.n_rows)
        if work.rows.weight is not None and work.rows.frequency:
            n_rows = float(work.rows.weight.sum())
        nodes = [Grown(-1, (), n_rows, 1.0, np.nan, Verdict())]
        leaves = {0: np.arange(work.rows.n_rows)}
        if work.n_folds is not None:
            pruning = as_variables(ROOT_ALONE, loss_units)
    else:
        tree = Tree(problem, conditioning, settings, work.rng, work.of_root)
        tree.grow(work.search, work.judge)
        nodes, leaves = tree.nodes, tree.leaves
        if work.n_folds is not None and isinstance(problem, Problem):
            found = pruned(
                problem, conditioning, settings, tree, work.search, work.n_folds, work.rng
            )
            nodes, leaves = cut_back(tree, weakest_links(nodes)[found.chosen][1])
            pruning = as_variables(found, loss_units)
    region = np.full(len(nodes), -1)
    region[list(leaves)] = np.arange(len(leaves))
    region_of_row = np.full(local.sizes["obs"], -1, dtype=np.int64)
    rows = np.flatnonzero(work.present)
    for number, at in enumerate(leaves.values()):
        region_of_row[rows[at]] = number
    last = [node.path[-1] if node.path else None for node in nodes]
    verdicts = [node.verdict for node in nodes]
    values: dict[str, Any] = {
        "parent": [node.parent for node in nodes],
        "depth": [len(node.path) for node in nodes],
        "condition": [rule_text(node.path[-1:]) for node in nodes],
        "condition_feature": [one.feature if one else "" for one in last],
        "operator": [one.operator if one else "" for one in last],
        "threshold": [one.threshold if one else np.nan for one in last],
        "levels": [as_json(one.levels) if one else "" for one in last],
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
    units = {"loss": loss_units}
    return xr.Dataset(
        {
            **{
                key: (
                    "node",
                    np.asarray(values[key]),
                    {"long_name": text, "units": units.get(key, unit)},
                )
                for key, (text, unit) in NODE_VARIABLES.items()
            },
            **pruning,
            ROWS: ("obs", region_of_row, {"long_name": "region of the row, -1 for none"}),
        },
        {
            "node": ("node", np.arange(len(nodes)), {"long_name": "node"}),
            "obs": local["obs"],
            "feature": name,
            "feature_units": str(local["feature_units"].values[position]),
        },
        {
            "method": "regions",
            **as_attribute({name: work.rows.fingerprint(position)}),
            **{fact: local.attrs[fact] for fact in MODEL_FACTS if fact in local.attrs},
            "conditioning": ", ".join(one.name for one in conditioning),
            "max_depth": settings.max_depth,
            "min_obs": work.min_obs,
            "min_drop": settings.min_drop,
            "min_share": settings.min_share,
            "thresholds": settings.thresholds,
            "n_thresholds": settings.n_thresholds,
            "test": settings.test or "none",
            "level": settings.level,
            "n_permutations": settings.n_permutations,
            **work.facts,
            "n_folds": work.n_folds or 0,
            "output_name": local.attrs.get("output_name", "output"),
            "output_units": local.attrs.get("output_units", ""),
            "n_rows": work.rows.n_rows,
        },
    )


# --- what is done with a tree ---------------------------------------------------------------------


def check_tree(tree: object) -> xr.Dataset:
    """The argument itself, of one feature and without padding."""
    if not isinstance(tree, xr.Dataset) or not {"parent", "region", ROWS} <= set(tree.data_vars):
        got = type(tree).__name__
        raise TypeError(
            f"tree must be the Dataset that regions(local, feature) returns; got {got}."
        )
    lost = [
        dim
        for dim in ("node", *(tree["n_nodes"].dims if "n_nodes" in tree.coords else ()))
        if dim not in tree.dims or dim not in ("node", "feature")
    ]
    if lost:
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
    known = fingerprint_of(tree)
    if not known or name not in feature_names(local):
        return
    found = columns(local.isel(feature=[feature_position(local, name)])).fingerprint(0)
    if not same_rows(found, known):
        raise ValueError(
            f"local must have the rows that the tree was made from; they have other values of "
            f"feature {name!r}, other weights or another order. Pass that Dataset."
        )
    if found != known and tree.attrs["method"] == "regions":
        raise ValueError(
            f"local must be the Dataset that the tree was made from; it has the same rows, but "
            f"its local effects of feature {name!r} come from another model, output or scale. "
            f"Pass that Dataset, or take the rows of a region by hand: "
            f"rhale(local.isel(obs=np.flatnonzero(tree.region_of_row == 0)))."
        )


@checked
def assign(tree: xr.Dataset, X: pd.DataFrame | ArrayLike) -> xr.DataArray:
    """Region of new rows.

    Parameters
    ----------
    tree : Dataset
        What `regions` returned, of one feature.
    X : DataFrame or array_like of shape (n_rows, n_columns)
        Rows with the columns that the tree splits by, under the same names; ``x0``, ``x1``, ... in
        an array.

    Returns
    -------
    DataArray
        ``region`` over ``obs``, with the index of ``X``; -1 where no region says what to do with a
        row: a missing value, or a level that the tree never saw.

    Raises
    ------
    KeyError
        A column is missing.
    TypeError
        A column of numbers holds something else.

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
    tree = check_tree(tree)
    table = X if isinstance(X, pd.DataFrame) else frame_of(X, "X")
    labels = {str(name): table.iloc[:, at] for at, name in enumerate(table.columns)}
    inside = np.zeros((tree.sizes["node"], len(table)), dtype=bool)
    inside[0] = True
    for number in range(1, tree.sizes["node"]):
        node = tree.isel(node=number)
        column = str(node["condition_feature"].values)
        if column not in labels:
            raise KeyError(
                f"X must have the columns that the tree splits by; got none named {column!r} (it "
                f"has {', '.join(labels)})."
            )
        condition = Condition(
            column,
            str(node["operator"].values),
            str(node["condition"].values),
            float(node["threshold"]),
            of_json(str(node["levels"].values)),
        )
        inside[number] = inside[int(node["parent"])] & condition.holds(labels[column])
    found = np.full(len(table), -1)
    for region, rows in zip(tree["region"].values, inside, strict=True):
        found[rows] = np.where(region >= 0, region, found[rows])
    lost = found < 0
    if lost.any():
        warn(
            f"No region for {int(lost.sum())} of {len(found)} rows, of missing values or levels "
            f"that the tree never saw ({first_rows(lost)}). They are -1."
        )
    return xr.DataArray(
        found,
        {"obs": table.index.to_numpy()},
        "obs",
        "region",
        {"long_name": "region of the row, -1 for none"},
    )
