"""Regional effects: where an effect is less heterogeneous (math [37]-[39]; RegionalRHALE).

`regions` finds subgroups by the other columns in which the local effects of a feature agree more
than in all rows; `regional_rhale` estimates the effect in each. The model is never asked again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike, NDArray
from tqdm import tqdm

from rhale_stats.arrays.moments import IntArray
from rhale_stats.bins import (
    BinRule,
    OptimalBins,
    check_rule,
    describe,
    rule_of,
)
from rhale_stats.effects import (
    PROGRESS_DELAY,
    Rows,
    columns,
    honest_split,
    rhale,
)
from rhale_stats.identity import (
    MODEL_FACTS,
    as_attribute,
    check_same_output,
    fingerprint_of,
    same_rows,
    with_joint_fingerprints,
)
from rhale_stats.pruning import ROOT_ALONE, as_variables, cut_back, pruned, weakest_links
from rhale_stats.region_search import (
    LOSSES,
    TESTS,
    Grown,
    Problem,
    Searchable,
    Settings,
    Tree,
    Verdict,
    problem_of,
)
from rhale_stats.schema import (
    ROWS,
    check_local,
    feature_names,
    feature_position,
    refuse_categorical,
    software,
    stack,
)
from rhale_stats.seeds import seed_of, source_of
from rhale_stats.splits import (
    THRESHOLDS,
    Candidates,
    Condition,
    Conditioning,
    as_json,
    conditioning_columns,
    frame_of,
    of_json,
    rule_text,
)
from rhale_stats.validate import check_choice, check_count, checked, first_rows, warn

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


@checked
def regions(
    local: xr.Dataset,
    feature: str | int,
    *,
    conditioning: pd.DataFrame | ArrayLike | None = None,
    max_depth: int = 2,
    min_obs: int | None = None,
    min_drop: float = 0.1,
    min_share: float = 0.05,
    n_thresholds: int = 20,
    thresholds: str = "quantile",
    bins: BinRule | None = None,
    loss: str = "index",
    test: str | None = None,
    level: float = 0.05,
    n_permutations: int = 199,
    honest_fraction: float = 0.5,
    n_folds: int | None = None,
    rng: np.random.Generator | int | None = None,
) -> xr.Dataset:
    r"""Regions in which an effect is less heterogeneous: a tree of splits by other columns.

    Parameters
    ----------
    local : Dataset
        What `local_effects` returned.
    feature : str or int
        Whose effect, by name or number.
    conditioning : DataFrame or array_like of shape (n_rows, n_columns), optional
        Columns to split by, those that the model does not use included; by default the other
        features of ``local``. Numbers and ordered categories are split at thresholds. Other
        categories, texts, booleans and columns of two values are split into sets of levels: up
        to 12 levels every one, beyond that each level against the rest. A column named as the
        feature is left out.
    max_depth : int, default 2
        Splits on the way to a region, at most.
    min_obs : int, optional
        Smallest number of rows of a region (with precision weights: smallest effective number); by
        default a twentieth of all rows, and at least 10. The rule for bins may ask for more.
    min_drop : float, default 0.1
        Relative drop of the loss that a split must bring.
    min_share : float, default 0.05
        Share of the variance of the local effects of a node that its bins must leave, for a split
        to be looked for: below it, the variance is mostly the effect changing inside bins.
    n_thresholds : int, default 20
        Thresholds tried for a column of numbers.
    thresholds : {"quantile", "equal_width", "exact"}, default "quantile"
        At quantiles in the node, after which the best one is refined among all values between its
        neighbours; at equal distances, as in the authors' library; or at every value.
    bins : bin rule, optional
        Of all nodes, `OptimalBins` by default. They are chosen again for every candidate, among the
        cells of the rule for all rows (`QuantileBins` therefore stay what they are).
    loss : {"index", "output"}, default "index"
        Measure of heterogeneity: the index (math [10]), or its counterpart in units of the output;
        both with unbiased variances (ddof 1), unless the rule has its own ddof.
    test : {None, "permutation", "honest"}
        "permutation": a split must be better than the best one after neighbours along the feature
        exchanged their conditioning values, all columns and thresholds searched again (math [39]).
        "honest": splits are found on some rows, and judged, by the same test of that one split, and
        counted on the others. None takes whatever drops the loss.
    level : float, default 0.05
        Of the test, for every split.
    n_permutations : int, default 199
        At most; fewer where the answer is known before.
    honest_fraction : float, default 0.5
        Share of the rows on which honest splits are found.
    n_folds : int, optional
        Minimal cost-complexity pruning with the one-standard-error rule, by cross-validation over
        so many folds. Not with honest trees.
    rng : Generator, int or None
        Source of permutations, honest halves and folds, or its seed. None draws anew; ``seed`` in
        the attributes of the result reproduces them (-1 with a Generator).

    Returns
    -------
    Dataset
        Over ``node``, the root first and left sides before right ones: ``parent``, ``depth``,
        ``condition`` with ``condition_feature``, ``operator``, ``threshold`` and ``levels``;
        ``rule``, all conditions in words; ``n_obs``, ``weight_share``, ``loss``; ``loss_drop``, by
        the split that was made; ``best`` and ``best_drop``, the best split, made or not;
        ``pvalue``; ``region``, 0, 1, ... for leaves. Over ``obs``: ``region_of_row``, -1 for rows
        that honest splits were found on, and for rows of weight zero. A tree without splits has one
        node. With ``n_folds`` also ``pruning_n_regions``, ``pruning_price``, ``pruning_loss`` and
        ``pruning_loss_se`` over ``pruning``, the trees compared.

    Raises
    ------
    ValueError
        Missing or infinite values, conditioning with other rows, settings out of range.
    KeyError
        Unknown feature.
    TypeError
        Conditioning that is neither numbers, nor categories, nor text.

    Notes
    -----
    The axis, and so the width that the index sums over, is that of all rows in every node: a region
    that holds a part of the axis only is not less heterogeneous for that. What such a region leaves
    empty counts as its bins reach over it.

    Without a test splits are found in noise, see the study ``regions``. With ``test="permutation"``
    the chance that the root is split where nothing conditions the effect is ``level``; so it is in
    every node below. It is one test of the best split over all columns; `interaction_matrix` tests
    the columns one by one, and its notes say why the two may disagree.

    References
    ----------
    Gkolemis, Diou, Ntoutsi, Dalamagas, Bischl, Herbinger and Casalicchio (2024), *RegionalRHALE*,
    section 2. Herbinger, Bischl and Casalicchio (2023). Besag and Clifford (1991), *Biometrika*
    78, 301-304, for stopping early.

    Examples
    --------
    >>> import rhale_stats as rs
    >>> example = rs.simulate.TwoRegimes()
    >>> X = example.sample(500, rng=0)
    >>> local = rs.local_effects(None, X, jacobian=example.jacobian)
    >>> tree = rs.regions(local, "x1")
    >>> tree[["rule", "n_obs", "loss"]].reset_coords(drop=True).to_dataframe().round(2)
              rule  n_obs   loss
    node
    0     all rows    500  17.98
    1      x3 ≤ 0     253   0.00
    2      x3 > 0     247   0.00
    """
    settings = Settings(
        max_depth, min_drop, min_share, n_thresholds, thresholds, test, level, n_permutations
    )
    work = work_of(local, bins, settings, loss, min_obs, honest_fraction, n_folds, rng)
    return _tree(work, feature_position(work.local, feature), conditioning)


@checked
def all_regions(
    local: xr.Dataset,
    features: str | int | Sequence[str | int] | None = None,
    *,
    conditioning: pd.DataFrame | ArrayLike | None = None,
    max_depth: int = 2,
    min_obs: int | None = None,
    min_drop: float = 0.1,
    min_share: float = 0.05,
    n_thresholds: int = 20,
    thresholds: str = "quantile",
    bins: BinRule | None = None,
    loss: str = "index",
    test: str | None = None,
    level: float = 0.05,
    n_permutations: int = 199,
    honest_fraction: float = 0.5,
    n_folds: int | None = None,
    rng: np.random.Generator | int | None = None,
    progress: bool = True,
) -> xr.Dataset:
    """Regions of several features, each a tree as `regions` grows it.

    Parameters
    ----------
    local : Dataset
        What `local_effects` returned.
    features : name, number, or sequence of them, optional
        Whose effects; by default all in ``local``.
    conditioning, max_depth, min_obs, min_drop, min_share, n_thresholds, thresholds, bins, loss, \
    test, level, n_permutations, honest_fraction, n_folds, rng
        As in `regions`. Honest halves are the same for all features.
    progress : bool, default True
        Show a bar on work over two seconds.

    Returns
    -------
    Dataset
        As `regions`, with ``feature`` in front of ``node`` and of ``obs``, and ``n_nodes``
        (feature). Select one feature to go on: ``trees.sel(feature="x1")``.

    Raises
    ------
    ValueError, KeyError, TypeError
        As `regions`.

    Examples
    --------
    >>> import rhale_stats as rs
    >>> example = rs.simulate.TwoRegimes()
    >>> local = rs.local_effects(
    ...     None, example.sample(500, rng=0), jacobian=example.jacobian
    ... )
    >>> trees = rs.all_regions(local)
    >>> trees["n_nodes"].to_series().to_dict()
    {'x1': 3, 'x2': 1, 'x3': 1}
    """
    settings = Settings(
        max_depth, min_drop, min_share, n_thresholds, thresholds, test, level, n_permutations
    )
    work = work_of(local, bins, settings, loss, min_obs, honest_fraction, n_folds, rng)
    names = feature_names(work.local)
    positions = _positions(work.local, features)
    bar = tqdm(positions, "regions", unit="feature", disable=not progress, delay=PROGRESS_DELAY)
    trees = [_tree(work, position, conditioning) for position in bar]
    n_nodes = [tree.sizes["node"] for tree in trees]
    out = stack(
        with_joint_fingerprints([tree.drop_vars(["feature", "feature_units"]) for tree in trees]),
        "feature",
        integer=-1,
    )
    units = work.local["feature_units"].values
    return out.assign_coords(
        feature=("feature", np.array([names[at] for at in positions]), {"long_name": "feature"}),
        feature_units=("feature", units[positions]),
        n_nodes=("feature", n_nodes, {"long_name": "number of nodes"}),
    )


def _positions(local: xr.Dataset, features: str | int | Sequence[str | int] | None) -> list[int]:
    """Features by name or number, one or several; all by default."""
    if features is None:
        return list(range(len(feature_names(local))))
    # NumPy's whole numbers are no sequences either.
    asked = [features] if isinstance(features, str | int | np.integer) else [*features]
    positions = [feature_position(local, name) for name in asked]
    if not positions:
        raise ValueError("features must name at least one feature; got none.")
    if len(set(positions)) < len(positions):
        raise ValueError(f"features must be distinct; got {asked!r}.")
    return positions


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


def _tree(work: Work, position: int, given: pd.DataFrame | ArrayLike | None) -> xr.Dataset:
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
def regional_rhale(
    local: xr.Dataset,
    tree: xr.Dataset,
    *,
    bins: BinRule | None = None,
    centering: str = "mean",
    weighting: str = "axis",
    std_error_moments: bool = True,
) -> xr.Dataset:
    """RHALE in every region of a tree: effects with a ``region`` dimension.

    Parameters
    ----------
    local : Dataset
        What the tree was made from.
    tree : Dataset
        What `regions` returned, of one feature.
    bins : bin rule, optional
        By default that of the tree; `OptimalBins` if it has none, as that of `regional_pdp`.
    centering, weighting, std_error_moments
        As in `rhale`; "mean" is the mean over the rows of the region.

    Returns
    -------
    Dataset
        As `rhale` for the one feature, with ``region`` in front; ``region_rule`` and
        ``region_node`` (region) say what a region is, ``region_of_row`` (obs) which rows are in it.
        A region's axis is that of its rows. `std_error`, `confint`, `confband`, `bootstrap`,
        `check_unbiased`, `tidy`, `summary` and the other functions of effects go through the
        regions one by one; ``effect.isel(region=0)`` is an effect like any other, of its rows.

    Raises
    ------
    ValueError
        ``local`` has other rows than the tree; the rule of the tree cannot be made again.
    TypeError
        ``tree`` is something else.

    Notes
    -----
    The rows that chose the regions estimate the effects in them, unless the tree is honest:
    heterogeneity is then too small, and two regions differ more than they should.

    Examples
    --------
    >>> import rhale_stats as rs
    >>> example = rs.simulate.TwoRegimes()
    >>> local = rs.local_effects(None, example.sample(500, rng=0), jacobian=example.jacobian)
    >>> effect = rs.regional_rhale(local, rs.regions(local, "x1"))
    >>> effect["average_effect"].to_series().round(2).to_dict()
    {(0, 'x1'): -3.0, (1, 'x1'): 3.0}
    """
    local, tree = check_local(local), check_tree(tree)
    name = str(tree["feature"].values)
    check_rows_of_tree(local, tree)
    if bins is None and "bin_rule" in tree.attrs:
        bins = rule_of(str(tree.attrs["bin_rule"]), str(tree.attrs["bin_parameters"]))
    own = local.isel(feature=[feature_position(local, name)])
    region_of_row = tree[ROWS].values
    leaves = tree.isel(node=np.flatnonzero(tree["region"].values >= 0))
    found = [
        rhale(
            own.isel(obs=np.flatnonzero(region_of_row == number)),
            bins=bins,
            centering=centering,
            weighting=weighting,
            std_error_moments=std_error_moments,
        )
        for number in leaves["region"].values
    ]
    out = stack(found, "region")
    about = {"long_name": "region of the rows"}
    return out.assign({ROWS: tree[ROWS]}).assign_coords(
        region=("region", leaves["region"].values, about),
        region_rule=("region", leaves["rule"].values, {"long_name": "what the rows have"}),
        region_node=("region", leaves["node"].values, {"long_name": "node of the tree"}),
        obs=local["obs"],
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
