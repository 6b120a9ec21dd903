"""Drop of the heterogeneity of each effect by one split of each column (math [37])."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from rhale_stats.arguments.checks import check_choice
from rhale_stats.arguments.progress import progress_bar
from rhale_stats.arguments.seeds import source_of
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.arrays.regions import NodeRows
from rhale_stats.bins.description import describe
from rhale_stats.bins.rule import BinRule
from rhale_stats.inference.adjustment import ADJUSTMENTS, adjusted
from rhale_stats.models.outputs import Model
from rhale_stats.regional.losses import (
    DRAWS,
    LOSSES,
    TIE,
    Node,
    Problem,
    drawn_statistics,
    node_of,
    split_losses,
    split_statistics,
)
from rhale_stats.regional.regions import SearchRows
from rhale_stats.regional.search import (
    SplitSearch,
    Work,
    largest_of,
    least_of,
    null_rows,
    tried_of,
    work_of,
)
from rhale_stats.regional.splits import SplitCandidates, conditioning_columns, sides_of
from rhale_stats.schema.features import feature_names
from rhale_stats.schema.kinds import INTERACTIONS
from rhale_stats.schema.validation import refuse_fields, validated
from rhale_stats.schema.variables import software, variable

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
    >>> found = rs.interaction_matrix(local, n_permutations=0)
    >>> found["loss_drop"].to_pandas().round(2)
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
    conditioning, names = searched.conditioning, feature_names(work.local)
    columns = names
    if conditioning is not None:
        columns = [column.name for column in conditioning_columns(work.local, conditioning, None)]
    shape = (len(names), len(columns))
    drop, pvalue = np.full(shape, np.nan), np.full(shape, np.nan)
    best = np.full(shape, "", dtype=object)
    losses = np.full(len(names), np.nan)
    bar = progress_bar(len(names), "interactions", "feature", progress=progress)
    for position in range(len(names)):
        splits = _best_splits(work, position, conditioning, n_permutations)
        bar.update()
        if splits is not None:
            positions = [columns.index(column) for column in splits.columns]
            losses[position], drop[position, positions] = splits.loss, splits.drop
            best[position, positions], pvalue[position, positions] = splits.text, splits.pvalue
    bar.close()
    out = _labelled(drop, best.astype(str), pvalue, losses, adjust)
    out["loss"].attrs["units"] = LOSSES[loss]
    rule_name, parameters = describe(work.rule)
    return out.assign_coords(
        feature=work.local["feature"].variable,
        conditioning=("conditioning", np.array(columns), {"long_name": "conditioning column"}),
    ).assign_attrs(
        {
            "method": "interaction matrix",
            "loss_kind": loss,
            "n_permutations": n_permutations,
            "thresholds": search.thresholds,
            "n_thresholds": search.n_thresholds,
            "min_obs": work.min_obs,
            "bin_rule": rule_name,
            "bin_parameters": parameters,
            "output_name": local.attrs.get("output_name", "output"),
            "output_units": local.attrs.get("output_units", ""),
            "n_rows": searched.n_rows(work.rows.n_rows),
            **searched.facts,
            **({"seed": seed} if n_permutations else {}),
            **{fact: work.facts[fact] for fact in ("n_groups",) if fact in work.facts},
            "software": software(),
        }
    )


class _BestSplits(NamedTuple):
    """The best split by every conditioning column, for the effect of one feature.

    ``loss`` is that of all rows; the others are given column by column.
    """

    columns: list[str]
    loss: float
    drop: FloatArray
    text: list[str]
    pvalue: FloatArray


def _best_splits(
    work: Work, position: int, table: pd.DataFrame | ArrayLike | None, n_permutations: int
) -> _BestSplits | None:
    """math [37] of one feature; None if it is constant."""
    work = work.of_feature(position)
    problem = work.problem(position)
    if problem is None:
        return None
    node = node_of(problem, work.search, 0.0)
    conditioning = work.conditioning(table, feature_names(work.local)[position])
    columns = [column.name for column in conditioning]
    tried = tried_of(conditioning, node, work.settings, work.of_root)
    losses = split_losses(problem, node, node.rows, tried)
    least = np.array([least_of([column_losses]) for column_losses in losses])
    allowed = np.isfinite(least)
    no_pvalue = np.full(len(columns), np.nan)
    if not node.worth:
        pvalue = np.where(allowed, 1.0, np.nan) if n_permutations else no_pvalue
        drop = np.where(allowed, 0.0, np.nan)
        return _BestSplits(columns, node.loss, drop, [""] * len(columns), pvalue)
    drop = np.where(allowed, np.maximum(1 - least / node.loss, 0.0), np.nan)
    text = [
        sides_of(column, candidates, int(np.argmin(column_losses)), node.row_numbers)[0].text
        if possible
        else ""
        for column, candidates, column_losses, possible in zip(
            conditioning, tried, losses, allowed, strict=True
        )
    ]
    pvalue = no_pvalue
    if n_permutations:
        by_chance = _pvalues(problem, node, tried, n_permutations, work.rng, work.groups)
        pvalue = np.where(allowed, by_chance, np.nan)
    return _BestSplits(columns, node.loss, drop, text, pvalue)


def _pvalues(
    problem: Problem,
    node: Node[NodeRows],
    tried: Sequence[SplitCandidates],
    n_permutations: int,
    rng: np.random.Generator,
    groups: IntArray | None,
) -> FloatArray:
    """P-value of every column separately: how often permuted rows have a split at least as good."""
    problem, node = problem.coarse(node)
    statistics = split_statistics(problem, node, node.rows, tried)
    observed = np.array([largest_of([column_statistics]) for column_statistics in statistics])
    at_least_as_good = np.zeros(len(tried))
    draw, order = null_rows(problem, node, groups, rng)
    in_order = [candidates.take(order) for candidates in tried]
    for begin in range(0, n_permutations, DRAWS):
        n_draws = min(DRAWS, n_permutations - begin)
        drawn = drawn_statistics(problem, node, draw, n_draws, in_order)
        for column, of_draws in enumerate(drawn):
            largest = of_draws.max(axis=1, initial=-np.inf)
            at_least_as_good[column] += np.sum(largest >= observed[column] * (1 - TIE))
    return (at_least_as_good + 1) / (n_permutations + 1)


def _labelled(
    drop: FloatArray, best: NDArray[np.str_], pvalue: FloatArray, losses: FloatArray, adjust: str
) -> xr.Dataset:
    """The matrix as a Dataset, with p-values adjusted for the number of pairs."""
    tested = np.isfinite(pvalue)
    adjusted_pvalue = np.full(pvalue.shape, np.nan)
    if tested.any():
        adjusted_pvalue[tested] = adjusted(pvalue[tested], adjust)
    values: dict[str, NDArray[Any]] = {
        "loss_drop": drop,
        "best": best,
        "pvalue": pvalue,
        "pvalue_adjusted": adjusted_pvalue,
        "loss": losses,
    }
    out = {name: variable(name, array, INTERACTIONS) for name, array in values.items()}
    out["pvalue_adjusted"][2]["adjust"] = adjust
    return xr.Dataset(out)
