"""Inputs that the trees of all features share: checked arguments, search and judge rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from rhale_stats.arguments.checks import check_choice, check_count
from rhale_stats.arguments.rows import row_codes
from rhale_stats.arguments.seeds import seed_of, source_of
from rhale_stats.arrays.moments import IntArray
from rhale_stats.bins.rule import BinRule, check_rule
from rhale_stats.bins.rules import OptimalBins
from rhale_stats.local.rows import Rows, columns, honest_split
from rhale_stats.regional.losses import LOSSES, Problem, problem_of, root_bins
from rhale_stats.regional.search import SplitSearch
from rhale_stats.regional.splits import Conditioning, SplitCandidates, conditioning_columns
from rhale_stats.schema.checks import check_local
from rhale_stats.schema.features import feature_names
from rhale_stats.schema.identity import row_labels
from rhale_stats.schema.levels import refuse_categorical


class Work(NamedTuple):
    """What trees of all features share. ``search`` and ``judge`` number the rows that count.

    ``of_root`` are the candidates of all ``search`` rows by column, as trees find them.
    """

    local: xr.Dataset
    rows: Rows
    present: NDArray[np.bool_]
    rule: BinRule
    settings: SplitSearch
    loss: str
    min_obs: int
    search: IntArray
    judge: IntArray | None
    n_folds: int | None
    rng: np.random.Generator
    facts: dict[str, Any]
    of_root: dict[str, SplitCandidates]
    groups: IntArray | None = None

    def problem(self, position: int, loss: str | None = None) -> Problem | None:
        """One feature ready to be searched, by another loss if given; None if constant."""
        return problem_of(
            self.rows,
            position,
            feature_names(self.local)[position],
            root_bins(self.rule, _independent_rows(self.rows, self.search)),
            error=float(self.local["local_effect_error"].values[position]),
            loss=loss or self.loss,
            min_obs=self.min_obs,
        )

    def conditioning(
        self, table: pd.DataFrame | ArrayLike | None, feature: str
    ) -> list[Conditioning]:
        """Columns for splits of the effect of a feature, at the rows that count."""
        every = conditioning_columns(self.local, table, feature)
        return every if self.present.all() else [column.take(self.present) for column in every]


def work_of(
    local: xr.Dataset,
    bins: BinRule | None,
    settings: SplitSearch,
    loss: str,
    n_folds: int | None,
    rng: np.random.Generator | int | None,
    groups: ArrayLike | None = None,
) -> Work:
    """Check all arguments and divide the rows."""
    local = check_local(local)
    refuse_categorical(local, "regions")
    # 0 is for an interaction matrix without p-values.
    check_count("n_permutations", settings.n_permutations, 1)
    if settings.test is not None and settings.level * (settings.n_permutations + 1) < 1:
        raise ValueError(
            f"n_permutations must be at least 1 / level - 1 for any split to pass; got "
            f"{settings.n_permutations} at level {settings.level:g}."
        )
    check_choice("loss", loss, tuple(LOSSES))
    _check_folds(n_folds, settings.test)
    rule: BinRule = OptimalBins() if bins is None else bins
    check_rule(rule)
    rows = columns(local)
    if n_folds is not None and n_folds > rows.n_rows:
        raise ValueError(
            f"n_folds must not exceed the number of rows; got {n_folds} for {rows.n_rows}."
        )
    least = settings.min_obs or max(int(_independent_rows(rows)) // 20, 10)
    present = local["weight"].values > 0 if "weight" in local else np.ones(rows.n_rows, dtype=bool)
    of_group = None
    if groups is not None:
        of_group = row_codes(groups, row_labels(local), present, "groups")
        if len(np.unique(of_group)) < 2:
            raise ValueError("groups must name at least two groups; got one.")
    generator, seed = source_of(rng)
    search, judge = np.arange(rows.n_rows), None
    facts: dict[str, Any] = {}
    if of_group is not None:
        facts["n_groups"] = int(of_group.max()) + 1
    if settings.test is not None or n_folds is not None:
        facts["seed"] = seed
    if settings.test == "honest":
        fraction, honest_seed = settings.honest_fraction, seed_of(generator)
        search, judge = _honest_rows(present, fraction, honest_seed, of_group)
        facts |= {"honest_fraction": float(fraction), "honest_seed": honest_seed}
        if settings.min_obs is None:
            least = max(least // 2, 10)
    return Work(
        local, rows, present, rule, settings, loss, least, search, judge, n_folds, generator,
        facts, {}, of_group,
    )  # fmt: skip


def _check_folds(n_folds: int | None, test: str | None) -> None:
    """Raise unless trees can be pruned by so many folds."""
    if n_folds is not None and test == "honest":
        raise ValueError(
            "n_folds must be None with test='honest', which judges every split on other rows."
        )


def _independent_rows(rows: Rows, row_numbers: IntArray | None = None) -> float:
    """Number of rows; repeated ones by their frequency, weighted ones by Kish's formula."""
    if rows.weight is None:
        return rows.n_rows if row_numbers is None else len(row_numbers)
    weight = rows.weight if row_numbers is None else rows.weight[row_numbers]
    total = float(weight.sum())
    return total if rows.frequency else total**2 / float(np.sum(weight**2))


def _honest_rows(
    present: NDArray[np.bool_], fraction: float, seed: int, groups: IntArray | None
) -> tuple[IntArray, IntArray]:
    """Rows on which splits are searched, and rows on which they are tested."""
    if groups is None:
        chosen = honest_split(len(present), fraction, seed)[present]
    else:
        chosen = honest_split(int(groups.max()) + 1, fraction, seed)[groups]
    search, judge = np.flatnonzero(chosen), np.flatnonzero(~chosen)
    if not (len(search) and len(judge)):
        raise ValueError(
            f"honest_fraction must leave rows on both sides; of {len(chosen)} rows with a "
            f"value and a weight {len(search)} choose splits and {len(judge)} judge them. Use "
            f"more rows, or another rng."
        )
    return search, judge
