"""Trees of regions of one feature, or of all, of rows in chunks too, and RHALE in each region."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike

from rhale_stats.arguments.checks import check_choice, is_in_chunks
from rhale_stats.arguments.progress import progress_bar
from rhale_stats.arguments.rows import of_rows
from rhale_stats.arguments.seeds import source_of
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.bins.description import describe, rule_of
from rhale_stats.bins.rule import BinRule
from rhale_stats.chunks import listed, of_all
from rhale_stats.effects.rhale import rhale
from rhale_stats.inference.adjustment import ADJUSTMENTS, adjusted
from rhale_stats.local.chunks import Sampled, cached, sampled
from rhale_stats.models.chunked import chunks_of
from rhale_stats.models.outputs import Model
from rhale_stats.regional.losses import DRAWS, LOSSES, TIE, Node, Problem, split_losses
from rhale_stats.regional.search import SplitSearch, Work, null_rows, tried_of, work_of
from rhale_stats.regional.splits import (
    Conditioning,
    SplitCandidates,
    checked_table,
    conditioning_columns,
    frame_of,
    sides_of,
)
from rhale_stats.regional.trees import (
    check_rows_of_tree,
    check_tree,
    labelled_tree,
    region_of_rows,
)
from rhale_stats.schema.checks import check_local, is_chunked
from rhale_stats.schema.dimensions import ROWS
from rhale_stats.schema.features import feature_names, feature_position
from rhale_stats.schema.identity import as_attribute, row_labels, with_joint_fingerprints
from rhale_stats.schema.kinds import INTERACTIONS
from rhale_stats.schema.padding import stack
from rhale_stats.schema.validation import refuse_fields, validated
from rhale_stats.schema.variables import dataset_of, software, variable, with_variables


class SearchRows(NamedTuple):
    """The rows that splits are searched on, with their columns and groups.

    ``some`` is None where they are all rows, in memory. Else ``whole`` and ``whole_conditioning``
    are the local effects and conditioning of all rows, and ``whole_search`` is the search that was
    asked for.
    """

    local: xr.Dataset
    conditioning: Any
    groups: Any
    search: SplitSearch
    some: Sampled | None
    whole: xr.Dataset
    whole_conditioning: Any
    whole_search: SplitSearch

    @classmethod
    def from_arguments(
        cls, local: xr.Dataset, conditioning: Any, groups: Any, search: SplitSearch
    ) -> SearchRows:
        """Rows in memory as they are; of rows in chunks all, or some where they are many."""
        local = check_local(local, in_chunks=True)
        if not is_chunked(local):
            return cls(local, conditioning, groups, search, None, local, conditioning, search)
        some = sampled(local, "rows to be searched")
        n_rows, used_search, table = sum(some.source.lengths), search, None
        if search.min_obs is not None:
            share = len(some.rows) / n_rows
            used_search = replace(search, min_obs=max(int(np.ceil(search.min_obs * share)), 1))
        if conditioning is not None:
            if not is_in_chunks(conditioning):
                conditioning = checked_table(local, conditioning)
            table, labels = _rows_of(conditioning, some.rows, n_rows), row_labels(some.local)
            table.index = pd.RangeIndex(len(table)) if labels is None else pd.Index(labels)
        if groups is not None:
            groups = groups.compute() if is_in_chunks(groups) else groups
            groups = np.asarray(of_rows(groups, row_labels(local), n_rows, "groups"))[some.rows]
        return cls(some.local, table, groups, used_search, some, local, conditioning, search)

    @property
    def facts(self) -> dict[str, int]:
        """What a result says, as an attribute, if some of the rows were searched."""
        return {} if self.some is None else self.some.facts

    def n_rows(self, in_memory: int) -> int:
        """Number of all rows of positive weight."""
        return in_memory if self.some is None else self.some.source.n_rows

    def of_all_rows(self, tree: xr.Dataset) -> xr.Dataset:
        """The tree with the regions of all rows, and nodes that count them."""
        if self.some is None:
            return tree
        labels = self.whole["obs"].values
        region = np.full(len(labels), -1) if self.some.every else self._placed(tree)
        # Rows on which honest splits were searched stay without a region.
        region[self.some.rows] = tree[ROWS].values
        if "weight" in self.whole:
            region[~(self.whole["weight"].values > 0)] = -1
        out = tree.drop_vars([ROWS, "obs"]).assign_coords(obs=("obs", labels))
        out = out.assign({ROWS: ("obs", region, tree[ROWS].attrs)})
        name, source = str(tree["feature"].values), self.some.source
        facts: dict[str, Any] = self.facts | {"n_rows": source.n_rows}
        facts |= as_attribute({name: source.fingerprint(feature_position(self.whole, name))})
        return (out if self.some.every else self._counted(out)).assign_attrs(facts)

    def _counted(self, tree: xr.Dataset) -> xr.Dataset:
        """With the rows of every node counted, of which there may be very many."""
        leaves, parent, region = [tree[name].values for name in ("region", "parent", ROWS)]
        inside = region >= 0

        def of_nodes(weight: FloatArray | None) -> FloatArray:
            of_region = np.bincount(region[inside], weight, int(leaves.max()) + 1)
            totals = np.where(leaves >= 0, of_region[leaves], 0.0)
            for number in range(len(parent) - 1, 0, -1):
                totals[parent[number]] += totals[number]
            return totals

        share = of_nodes(self.whole["weight"].values[inside] if "weight" in self.whole else None)
        counted = self.whole.attrs.get("weight_kind") == "frequency"
        count = share if counted else of_nodes(None)
        node_counts = {"n_obs": count.astype(np.int64), "weight_share": share / share[0]}
        min_obs = self.whole_search.min_obs or max(int(count[0]) // 20, 10)
        tree = tree.assign({name: tree[name].copy(data=data) for name, data in node_counts.items()})
        return tree.assign_attrs(min_obs=min_obs)

    def _placed(self, tree: xr.Dataset) -> IntArray:
        """Region of every row, by the rules."""
        rules = tree.drop_dims("obs")
        if self.whole_conditioning is None:
            names = feature_names(self.whole)
            x = self.whole["x"].transpose("obs", "feature").data.rechunk({1: -1})
            chunks = [(chunk, names) for chunk in x.to_delayed(optimize_graph=False).ravel()]
        elif is_in_chunks(self.whole_conditioning):
            chunks = [(chunk, []) for chunk in chunks_of(self.whole_conditioning) or ()]
        else:
            return region_of_rows(rules, self.whole_conditioning)

        def placed(chunk: Any, names: list[str]) -> IntArray:
            table = frame_of(chunk, "conditioning")
            return region_of_rows(rules, table.set_axis(names, axis=1) if names else table)

        regions: IntArray = of_all(chunks, placed, np.concatenate, "rows in regions")
        return regions


def _rows_of(conditioning: Any, rows: IntArray, n_rows: int) -> pd.DataFrame:
    """Rows of a table by their numbers, in memory or in chunks."""
    if isinstance(conditioning, pd.DataFrame):
        return conditioning.iloc[rows]
    chunks = chunks_of(conditioning) or []
    lengths = of_all([(chunk,) for chunk in chunks], lambda chunk: [len(chunk)], listed)
    if sum(lengths) != n_rows:
        raise ValueError(
            f"conditioning must have a row for each of the {n_rows} rows of local; got "
            f"{sum(lengths)}."
        )
    ends = np.cumsum(lengths)
    of_chunks = np.split(rows, np.searchsorted(rows, ends[:-1]))
    numbers = [some - begin for some, begin in zip(of_chunks, ends - lengths, strict=True)]
    parts = list(zip(chunks, numbers, strict=True))
    table: pd.DataFrame = of_all(
        parts, lambda chunk, some: frame_of(chunk, "conditioning").iloc[some], pd.concat
    )
    return table


@validated
def regional_rhale(
    local: xr.Dataset,
    tree: xr.Dataset,
    *,
    bins: BinRule | None = None,
    centering: str = "mean",
    weighting: str = "axis",
) -> xr.Dataset:
    """RHALE effects in every region of a tree, with a dimension ``region``.

    Parameters
    ----------
    local : Dataset
        What the tree was made from.
    %(tree)s
    bins : bin rule, optional
        By default that of the tree; `OptimalBins` if it has none, as that of `regional_pdp`.
    centering, weighting
        As in `rhale`; "mean" is the mean over the rows of the region.

    Returns
    -------
    Dataset
        As `rhale` for the one feature, with the first dimension ``region``. ``region_rule`` and
        ``region_node`` (region) describe each region, and ``region_of_row`` (obs) is the region of
        each row. The axis of a region is the range of its rows. `std_error`, `confint`, `confband`,
        `bootstrap`, `check_unbiased`, `tidy`, `summary` and the other functions of effects work
        region by region; ``effect.isel(region=0)`` is an ordinary effect of the rows of that
        region.

    Raises
    ------
    ValueError
        ``local`` has other rows than the tree; the bin rule of the tree cannot be reconstructed.
    TypeError
        ``tree`` is not a tree of regions.

    Notes
    -----
    Unless the tree is honest, the same rows choose the regions and estimate their effects. The
    heterogeneity in the regions is then biased downwards, and the differences between regions are
    biased upwards.

    Examples
    --------
    >>> import rhale_stats as rs
    >>> example = rs.simulate.TwoRegimes()
    >>> local = rs.local_effects(None, example.sample(500, rng=0), jacobian=example.jacobian)
    >>> effect = rs.regional_rhale(local, rs.regions(local, "x1"))
    >>> effect["average_effect"].to_series().round(2).to_dict()
    {(0, 'x1'): -3.0, (1, 'x1'): 3.0}
    """
    local, tree = check_local(local, in_chunks=True), check_tree(tree)
    name = str(tree["feature"].values)
    check_rows_of_tree(local, tree)
    if bins is None and "bin_rule" in tree.attrs:
        bins = rule_of(str(tree.attrs["bin_rule"]), str(tree.attrs["bin_parameters"]))
    feature_local = local.isel(feature=[feature_position(local, name)])
    estimate = partial(rhale, bins=bins, centering=centering, weighting=weighting)
    with cached(feature_local) as same:
        return effects_of_regions(same, tree, estimate)


def effects_of_regions(
    local: xr.Dataset, tree: xr.Dataset, estimate: Callable[[xr.Dataset], xr.Dataset]
) -> xr.Dataset:
    """Effects of one feature that ``estimate`` makes of the rows of every region of its tree."""
    region_of_row = tree[ROWS].values
    leaves = tree.isel(node=np.flatnonzero(tree["region"].values >= 0))
    numbers = leaves["region"].values
    parts = [local.isel(obs=np.flatnonzero(region_of_row == number)) for number in numbers]
    out = stack(list(map(estimate, parts)), "region")
    coords: dict[Hashable, Any] = {
        "region": ("region", leaves["region"].values, {"long_name": "region of the rows"}),
        "region_rule": ("region", leaves["rule"].values, {"long_name": "what the rows have"}),
        "region_node": ("region", leaves["node"].values, {"long_name": "node of the tree"}),
    }
    # Labels of the rows.
    for rows in (tree[ROWS], local["obs"]):
        labels = {name: coord.variable for name, coord in rows.coords.items()}
        coords |= {name: label for name, label in labels.items() if label.dims == ("obs",)}
    return with_variables(out, {ROWS: tree.variables[ROWS]}, dataset_of({}, coords, {}))


@validated
def regions(
    local: xr.Dataset | Model,
    X: Any = None,
    feature: str | int | None = None,
    *,
    conditioning: pd.DataFrame | ArrayLike | None = None,
    search: SplitSearch = SplitSearch(),
    bins: BinRule | None = None,
    loss: str = "index",
    n_folds: int | None = None,
    groups: ArrayLike | None = None,
    rng: np.random.Generator | int | None = None,
    **fields: Any,
) -> xr.Dataset:
    r"""Regions in which an effect is less heterogeneous, as a tree of splits by other columns.

    Parameters
    ----------
    local : Dataset, or model
        What `local_effects` returned; or a model, with ``X``. Local effects of the feature are then
        made with their defaults. Values of other columns may be missing; after
        ``local_effects(..., missing="drop")`` those of the feature, too, and the rows have no
        region then.
    X : table, optional
        Rows of the model. Left out after local effects.
    feature : str or int
        Whose effect, by name or number; it must be given.
    conditioning : table, or array_like of shape (n_rows, n_columns), optional
        Columns to split by, those that the model does not use included; by default the other
        features of ``local``, and with a model all columns of ``X``. Numbers and ordered
        categories are split at thresholds. Other categories, texts, booleans and columns of two
        values are split into sets of levels: up to 12 levels every one, beyond that each level
        against the rest. A column named as the feature is left out.
    search : SplitSearch, optional
        How splits are searched for, and which are made. Its fields can be given directly, as in
        ``max_depth=1``.
    bins : bin rule, optional
        Of all nodes, `OptimalBins` by default. They are chosen again for every candidate, among the
        cells of the rule for all rows (`QuantileBins` therefore stay what they are). By default
        local effects count as distances from the average effect of all rows (math [38]): what all
        rows have in common, as a jump, is no heterogeneity. With a rule they count as they are, as
        in the paper.
    loss : {"index", "output"}, default "index"
        Measure of heterogeneity: the index (math [10]), or its counterpart in units of the output;
        both with unbiased variances (ddof 1), unless the rule has its own ddof.
    n_folds : int, optional
        Minimal cost-complexity pruning with the one-standard-error rule, by cross-validation over
        so many folds. Not with honest trees.
    groups : array_like of shape (n_rows,), optional
        Group of every row, such as a patient, where rows of a group depend on each other. Groups
        stay together in tests, honest halves and folds. Tests change the sign of the residuals of
        whole groups instead of exchanging rows: groups may differ in size and columns may be
        constant in them, but the residuals of groups must be independent and symmetric, or the
        groups many.
    rng : Generator, int or None
        Source of permutations, honest halves and folds, or its seed. None draws anew; ``seed`` in
        the attributes of the result reproduces them (-1 with a Generator).

    Returns
    -------
    Dataset
        Over ``node``, the root first and left sides before right ones: ``parent``, ``depth``,
        ``condition`` with ``condition_feature``, ``operator``, ``threshold`` and ``levels``;
        ``rule``, all conditions in words; ``n_obs``, ``weight_share``, ``loss``; ``loss_drop``, by
        the split that was made; ``best`` and ``best_drop``, the best split, whether or not it was
        made; ``pvalue`` of the test, NaN where none was made; ``region``, 0, 1, ... for leaves.
        Over ``obs``: ``region_of_row``, -1 for rows on which honest splits were searched, for rows
        of weight zero, and where the feature has no value. A tree without splits has one node. With
        ``n_folds`` also ``pruning_n_regions``, ``pruning_price``, ``pruning_loss`` and
        ``pruning_loss_se`` over ``pruning``, the trees compared.

    Raises
    ------
    ValueError
        Infinite values, or missing ones that were not dropped; conditioning with other rows;
        settings out of range.
    %(unknown feature)s
    TypeError
        Conditioning that is neither numbers, nor categories, nor text.

    Notes
    -----
    In every node the axis, and so the width over which the index sums, is that of all rows. A
    region is therefore not less heterogeneous only because it covers a part of the axis. Its empty
    part counts with the bins that extend over it.

    With the default ``test="permutation"`` the probability that the root is split although no
    column conditions the mean of the local effects is about ``level``, also if their spread depends
    on the columns (math [39] has simulated sizes, from 100 rows on). The same holds in every node
    below. This is one test of the largest studentised drop over all columns. Permutations stop when
    the answer is known. None are made, and ``pvalue`` is an upper bound for normal effects, where
    this bound is below 1e-8; below 0.001, 39 permutations (at level 0.05) are enough if none is as
    good, and ``pvalue`` is 1/40. With 1,000 rows or more and clear regions the test adds 5 to 20 %
    to the search; a node between clear and noise costs as much as 2 to 15 searches.
    ``test=None`` finds splits in noise, too, see the study ``regions``. `interaction_matrix` tests
    the columns one by one; its notes explain why the two can disagree.

    Of more than 1,048,576 rows in chunks so many are searched, evenly among all (the attribute
    ``n_rows_read``): losses and p-values are theirs, ``min_obs`` counts in proportion. The rules
    then give all rows their region, and ``n_obs`` and ``weight_share`` count all of them.
    ``conditioning`` may be in chunks too.

    Simulated sizes by kind of process, and what to use where this fails: docs/validity.md.

    References
    ----------
    Gkolemis, Diou, Ntoutsi, Dalamagas, Bischl, Herbinger and Casalicchio (2024), *RegionalRHALE*,
    section 2. Herbinger, Bischl and Casalicchio (2023). Besag and Clifford (1991), *Biometrika* 78,
    301-304, for stopping early. Szekely and Bakirov (2003), *Probability Theory and Related Fields*
    126, 184-202, for the bound. Chung and Romano (2013), *Annals of Statistics* 41, 484-507, for
    studentised permutation tests. Canay, Romano and Shaikh (2017), *Econometrica* 85, 1013-1030,
    for signs of groups.

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
    del X  # `validated` has made local effects of it
    if feature is None:
        raise TypeError(
            "feature must be given, as in regions(model, X, 'age'), or take all_regions."
        )
    searched = SearchRows.from_arguments(local, conditioning, groups, search)
    work = work_of(searched.local, bins, searched.search, loss, n_folds, rng, searched.groups)
    position = feature_position(work.local, feature)
    (work,) = work.of_features([position])
    return searched.of_all_rows(labelled_tree(work, position, searched.conditioning))


@validated
def all_regions(
    local: xr.Dataset | Model,
    X: Any = None,
    features: str | int | Sequence[str | int] | None = None,
    *,
    conditioning: pd.DataFrame | ArrayLike | None = None,
    search: SplitSearch = SplitSearch(),
    bins: BinRule | None = None,
    loss: str = "index",
    n_folds: int | None = None,
    groups: ArrayLike | None = None,
    rng: np.random.Generator | int | None = None,
    progress: bool = True,
    **fields: Any,
) -> xr.Dataset:
    """Regions of several features: one tree per feature, as by `regions`.

    Parameters
    ----------
    local, X
        As in `regions`.
    features : name, number, or sequence of them, optional
        Whose effects; by default all in ``local``.
    conditioning, search, bins, loss, n_folds, groups, rng
        As in `regions`. Honest halves are the same for all features.
    %(progress)s

    Returns
    -------
    Dataset
        As `regions`, with ``feature`` before ``node`` and ``obs``, and ``n_nodes`` (feature).
        Select one feature for further functions: ``trees.sel(feature="x1")``.

    Raises
    ------
    ValueError, KeyError, TypeError
        As `regions`.

    Examples
    --------
    >>> import rhale_stats as rs
    >>> example = rs.simulate.TwoRegimes()
    >>> local = rs.local_effects(None, example.sample(500, rng=0), jacobian=example.jacobian)
    >>> trees = rs.all_regions(local)
    >>> trees["n_nodes"].to_series().to_dict()
    {'x1': 3, 'x2': 1, 'x3': 1}
    """
    del X  # as in `regions`
    searched = SearchRows.from_arguments(local, conditioning, groups, search)
    work = work_of(searched.local, bins, searched.search, loss, n_folds, rng, searched.groups)
    # NumPy's whole numbers are no sequences either.
    is_name = isinstance(features, str | int | np.integer)
    names: Any = feature_names(work.local) if features is None else features
    names = [names] if is_name else [*names]
    positions = [feature_position(work.local, name) for name in names]
    if not positions:
        raise ValueError("features must name at least one feature; got none.")
    if len(set(positions)) < len(positions):
        raise ValueError(f"features must be distinct; got {names!r}.")
    trees = []
    with progress_bar(len(positions), "regions", "feature", progress=progress) as bar:
        for position, feature_work in zip(positions, work.of_features(positions), strict=True):
            tree = labelled_tree(feature_work, position, searched.conditioning)
            # The root of each tree counts the rows that have a value.
            n_rows = searched.n_rows(work.rows.n_rows)
            trees.append(searched.of_all_rows(tree).assign_attrs(n_rows=n_rows))
            bar.update()
    n_nodes = [tree.sizes["node"] for tree in trees]
    out = stack(
        with_joint_fingerprints([tree.drop_vars(["feature", "feature_units"]) for tree in trees]),
        "feature",
        integer=-1,
    )
    units = work.local["feature_units"].values
    return out.assign_coords(
        feature=work.local["feature"].isel(feature=positions).variable,
        feature_units=("feature", units[positions]),
        n_nodes=("feature", n_nodes, {"long_name": "number of nodes"}),
    )


# Fields of the search that are about trees.
UNUSED = ("max_depth", "min_drop", "min_share", "test", "level", "honest_fraction")


@validated
def interaction_matrix(
    local: xr.Dataset | Model,
    X: Any = None,
    *,
    conditioning: pd.DataFrame | ArrayLike | None = None,
    search: SplitSearch = SplitSearch(),
    bins: BinRule | None = None,
    loss: str = "index",
    adjust: str = "holm",
    groups: ArrayLike | None = None,
    rng: np.random.Generator | int | None = None,
    progress: bool = True,
    **fields: Any,
) -> xr.Dataset:
    """Interaction matrix: relative drop of each effect's loss by the best split of each column.

    Parameters
    ----------
    local, X
        As in `regions`.
    conditioning, bins, loss, groups, rng
        As in `regions`.
    search : SplitSearch, optional
        As in `regions`, of which ``min_obs``, ``n_thresholds``, ``thresholds`` and
        ``n_permutations`` are used. The best threshold is not refined. With ``n_permutations=0``
        there are no p-values.
    adjust : str, default "holm"
        How p-values are adjusted for the number of pairs, as in `wald_test`.
    %(progress)s

    Returns
    -------
    Dataset
        Over (feature, conditioning): ``loss_drop``, the relative drop of the loss by the best
        split, 0 if no split lowers the loss and NaN if none is allowed; ``best``, that split in
        words; ``pvalue``, the permutation p-value of the hypothesis that the column does not
        condition the effect, for each column separately; ``pvalue_adjusted``. Over feature:
        ``loss``. A drop near 1 is unimportant if ``loss`` is near 0: compare losses first.

    Raises
    ------
    ValueError, TypeError
        As `regions`.

    Notes
    -----
    A pair can have a small p-value here although `regions` makes no split, and vice versa, because
    the two functions test different hypotheses. Here the best split of each column is compared with
    the best splits of the same column after permutation, and the p-values are adjusted for the
    number of pairs. In `regions` the best split over all columns is compared with the best split
    over all columns after permutation: a column whose splits vary much by chance can hide the
    smaller effect of another column. In addition, the split must lower the loss by ``min_drop``.
    Use this matrix to find the columns that condition an effect. Use `regions` to find regions of
    rows, with ``conditioning`` limited to these columns.

    Examples
    --------
    >>> import rhale_stats as rs
    >>> example = rs.simulate.TwoRegimes()
    >>> local = rs.local_effects(None, example.sample(500, rng=0), jacobian=example.jacobian)
    >>> matrix = rs.interaction_matrix(local, n_permutations=0)
    >>> matrix["loss_drop"].to_pandas().round(2)
    conditioning   x1   x2    x3
    feature
    x1            NaN  0.0  0.95
    x2            0.0  NaN  0.00
    x3            0.0  0.0   NaN
    """
    del X  # `validated` has made local effects of it
    refuse_fields(search, UNUSED, "an interaction matrix looks at one split of every column")
    check_choice("adjust", adjust, ADJUSTMENTS)
    n_permutations = search.n_permutations
    generator, seed = source_of(rng)
    settings = replace(search, n_permutations=max(n_permutations, 1), test=None)
    searched = SearchRows.from_arguments(local, conditioning, groups, settings)
    work = work_of(searched.local, bins, searched.search, loss, None, generator, searched.groups)
    out, _ = labelled_matrix(work, searched.conditioning, n_permutations, adjust, progress=progress)
    return out.assign_attrs(
        **{"n_rows": searched.n_rows(work.rows.n_rows), **searched.facts},
        **({"seed": seed} if n_permutations else {}),
    )


def labelled_matrix(
    work: Work,
    conditioning: pd.DataFrame | ArrayLike | None,
    n_permutations: int,
    adjust: str,
    *,
    progress: bool,
) -> tuple[xr.Dataset, list[Work]]:
    """The interaction matrix of all features, and what trees of them can be made from."""
    names = feature_names(work.local)
    works = work.of_features(range(len(names)))
    every = conditioning_columns(work.local, conditioning, None)
    columns = [column.name for column in every]
    losses, tables = [], []
    with progress_bar(len(names), "interactions", "feature", progress=progress) as bar:
        for name, position, feature_work in zip(names, range(len(names)), works, strict=True):
            some = [column for column in every if column.name != name]
            loss, splits = _best_splits(feature_work, position, conditioning, some, n_permutations)
            losses.append(loss)
            tables.append([splits.get(column, (np.nan, "", np.nan)) for column in columns])
            bar.update()
    drop, best, pvalue = [np.array([[cell[k] for cell in row] for row in tables]) for k in range(3)]
    values = {
        "loss_drop": drop,
        "best": best,
        "pvalue": pvalue,
        "pvalue_adjusted": adjusted(pvalue.ravel(), adjust).reshape(pvalue.shape),
        "loss": np.array(losses),
    }
    rule_name, parameters = describe(work.rule)
    coords = {
        "feature": work.local["feature"].variable,
        "conditioning": ("conditioning", columns, {"long_name": "conditioning column"}),
    }
    data = {name: variable(name, values[name], INTERACTIONS) for name in values}
    attrs = {
        "method": "interaction matrix",
        "loss_kind": work.loss,
        "n_permutations": n_permutations,
        "thresholds": work.settings.thresholds,
        "n_thresholds": work.settings.n_thresholds,
        "min_obs": work.min_obs,
        "bin_rule": rule_name,
        "bin_parameters": parameters,
        "output_name": work.local.attrs.get("output_name", "output"),
        "output_units": work.local.attrs.get("output_units", ""),
        "n_rows": work.rows.n_rows,
        **{fact: work.facts[fact] for fact in ("n_groups",) if fact in work.facts},
        "software": software(),
    }
    out = dataset_of(data, coords, attrs)
    out["pvalue_adjusted"].attrs["adjust"] = adjust
    out["loss"].attrs["units"] = LOSSES[work.loss]
    return out, works


def _best_splits(
    work: Work, position: int, table: Any, columns: Sequence[Conditioning], n_permutations: int
) -> tuple[float, dict[str, tuple[float, str, float]]]:
    """math [37] of one feature: its loss; and drop, rule and P of the best split by every column.

    No columns, and no loss, if the feature is constant.
    """
    problem = work.problem(position)
    if problem is None:
        return np.nan, {}
    node = problem.node(work.search, 0.0)
    conditioning = work.conditioning(table, feature_names(work.local)[position], columns)
    tried = tried_of(conditioning, node, work.settings, work.of_root)
    losses = split_losses(node, node.rows, tried)
    least = np.array([column_losses.min(initial=np.inf) for column_losses in losses])
    # What a node has without splits that are worth a search.
    drop, best = np.zeros(len(tried)), [""] * len(tried)
    pvalue = np.full(len(tried), 1.0 if n_permutations else np.nan)
    if node.worth:
        drop = np.maximum(1 - least / node.loss, 0.0)
        best = [
            sides_of(column, candidates, int(np.argmin(column_losses)), node.row_numbers)[0].text
            if possible
            else ""
            for column, candidates, column_losses, possible in zip(
                conditioning, tried, losses, np.isfinite(least), strict=True
            )
        ]
        if n_permutations:
            pvalue = _pvalues(work, problem, node, tried, n_permutations)
    drop, pvalue = np.where(np.isfinite(least), (drop, pvalue), np.nan)
    cells = zip(drop.tolist(), best, pvalue.tolist(), strict=True)
    return node.loss, dict(zip([column.name for column in conditioning], cells, strict=True))


def _pvalues(
    work: Work, problem: Problem, node: Node, tried: Sequence[SplitCandidates], n_permutations: int
) -> FloatArray:
    """P-value of every column separately: how often permuted rows have a split at least as good."""
    test, at_least_as_good = node.test(), np.zeros(len(tried))
    observed = test.largest(tried)
    draw, order = null_rows(problem, node, test, work.groups, work.rng)
    in_order = [candidates.take(order) for candidates in tried]
    for begin in range(0, n_permutations, DRAWS):
        largest = test.drawn(draw, min(DRAWS, n_permutations - begin), in_order)
        at_least_as_good += np.sum(largest >= observed * (1 - TIE), axis=0)
    return (at_least_as_good + 1) / (n_permutations + 1)
