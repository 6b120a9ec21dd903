"""How a tree of regions grows, split by split, with tests (math [38], [39]), and from what."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from rhale_stats.arguments.checks import check_choice, check_count
from rhale_stats.arguments.rows import row_codes
from rhale_stats.arguments.seeds import seed_of, source_of
from rhale_stats.arrays import regions as search
from rhale_stats.arrays.accumulate import Pieces
from rhale_stats.arrays.binning import sorting
from rhale_stats.arrays.categories import n_effective_of
from rhale_stats.arrays.moments import FloatArray, IntArray, part
from rhale_stats.arrays.resample import honest_split
from rhale_stats.bins.adaptive import AdaptiveBins
from rhale_stats.bins.rule import BinRule, check_rule
from rhale_stats.bins.rules import OptimalBins
from rhale_stats.effects.rhale import quiet_rhale
from rhale_stats.local.rows import Rows, columns
from rhale_stats.regional.losses import (
    DRAWS,
    LOSSES,
    MIN_IN_BIN,
    TESTS,
    TIE,
    Node,
    Problem,
    Searchable,
    SplitTest,
    problem_of,
    root_bins,
    split_losses,
)
from rhale_stats.regional.splits import (
    THRESHOLDS,
    Condition,
    Conditioning,
    SplitCandidates,
    candidates_of,
    conditioning_columns,
    quantile_cuts,
    sides_of,
    thresholds_at,
)
from rhale_stats.schema.checks import check_local
from rhale_stats.schema.feature_result import each_feature
from rhale_stats.schema.features import feature_names
from rhale_stats.schema.identity import row_labels
from rhale_stats.schema.levels import refuse_categorical
from rhale_stats.schema.validation import Options


class Work(NamedTuple):
    """What trees of all features share. ``search`` and ``judge`` number the rows that count.

    ``of_root`` are the candidates of all ``search`` rows by column, as trees find them. Local
    effects count ``about_average`` where no rule for bins was given; ``average`` is of one feature.
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
    about_average: bool
    groups: IntArray | None = None
    average: Pieces | None = None

    def problem(self, position: int) -> Problem | None:
        """One feature ready to be searched; None if constant."""
        return problem_of(
            self.rows,
            position,
            feature_names(self.local)[position],
            root_bins(self.rule, _independent_rows(self.rows, self.search)),
            error=float(self.local["local_effect_error"].values[position]),
            loss=self.loss,
            min_obs=self.min_obs,
            average=self.average,
        )

    def of_features(self, positions: Sequence[int]) -> list[Work]:
        """What the tree of every feature is made from: its rows, and its average effect.

        The average effect is in bins that follow it; None of few rows or a constant feature.
        """
        works = [self._of_feature(position) for position in positions]
        enough = [k for k, work in enumerate(works) if len(work.search) >= 2 * MIN_IN_BIN]
        if not (self.about_average and enough):
            return works
        some = [positions[k] for k in enough]
        local = self.local.isel(feature=some, obs=np.flatnonzero(self.present)[self.search])
        effect = quiet_rhale(local, AdaptiveBins(), has_spread=False)
        for k, row in zip(enough, each_feature(effect), strict=True):
            works[k] = works[k]._replace(average=row.pieces if row.sizes["bin"] else None)
        return works

    def _of_feature(self, position: int) -> Work:
        """The same with the rows that have a value of one feature, where others are dropped."""
        if "n_missing" not in self.local:
            return self
        has_value = self.local["x"].isel(feature=position).notnull().values
        some = has_value[self.present]
        if some.all():
            return self
        number = np.cumsum(some) - 1

        def remaining(rows: IntArray) -> IntArray:
            return np.asarray(number[rows[some[rows]]])

        groups = None if self.groups is None else pd.factorize(self.groups[some], sort=True)[0]
        return self._replace(
            rows=columns(self.local.isel(obs=has_value)),
            present=self.present & has_value,
            search=remaining(self.search),
            judge=None if self.judge is None else remaining(self.judge),
            of_root={},
            groups=groups,
        )

    def conditioning(
        self, table: Any, feature: str, columns: Sequence[Conditioning] = ()
    ) -> list[Conditioning]:
        """Columns for splits of a feature's effect, at the rows that count; or of those read."""
        every = list(columns) or conditioning_columns(self.local, table, feature)
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
    if n_folds is not None and settings.test == "honest":
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
    least = settings.min_obs or max(int(_independent_rows(rows)) // 20, 10)
    present = local["weight"].values > 0 if "weight" in local else np.ones(rows.n_rows, dtype=bool)
    of_group: IntArray | None = None
    facts: dict[str, Any] = {}
    if groups is not None:
        of_group = row_codes(groups, row_labels(local), present, "groups")
        facts["n_groups"] = int(of_group.max()) + 1
        if facts["n_groups"] < 2:
            raise ValueError("groups must name at least two groups; got one.")
    generator, seed = source_of(rng)
    search, judge = np.arange(rows.n_rows), None
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
        facts, {}, bins is None, of_group,
    )  # fmt: skip


def _independent_rows(rows: Rows, row_numbers: IntArray | None = None) -> float:
    """Number of rows; repeated ones by their frequency, weighted ones by Kish's formula."""
    weight, n_rows = rows.weight, rows.n_rows
    if row_numbers is not None:
        weight, n_rows = None if weight is None else weight[row_numbers], len(row_numbers)
    return n_effective_of(weight, n_rows, frequency=rows.frequency)


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


# --- how a tree of regions grows ------------------------------------------------------------------


# Number of thresholds in one step of the refinement.
REFINED = 64
# Share of the loss of all rows below which there is nothing to split.
ROUNDING = 1e-12
# No rows are exchanged where the bound of the p-value for normal errors is below the first number:
# log-normal effects do not reach it (math [39]). Below the second few permutations are enough, none
# of which is as good.
CLEAR, NEARLY = 1e-8, 1e-3
# Rows that are drawn in one step at least.
MIN_DRAWN_ROWS = 1 << 14


def best_of(losses: Sequence[FloatArray], tie: float) -> tuple[int, int, float] | None:
    """Column, number and loss of the best split, the first of equal ones; None if there is none."""
    most = min((of_column.min(initial=np.inf) for of_column in losses), default=np.inf) + tie
    for column, of_column in enumerate(losses):
        good = np.flatnonzero(of_column <= most)
        if len(good) and np.isfinite(most):
            return column, int(good[0]), float(of_column[good[0]])
    return None


@dataclass(frozen=True)
class SplitSearch(Options):
    """How splits into regions are searched for, and which of them are made.

    Parameters
    ----------
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
    test : {"permutation", "honest", None}, default "permutation"
        "permutation": some split must be better than the best one after neighbours along the
        feature exchanged their conditioning values, over all columns and thresholds (math [39]).
        Drops are studentised: the hypothesis is that no column conditions the mean of the local
        effects; their spread may differ.
        "honest": splits are found on some rows, and judged, by the same test of that one split, and
        counted on the others. None makes every split that drops the loss, also in noise.
    level : float, default 0.05
        Of the test, for every split.
    n_permutations : int, default 199
        At most; fewer where the answer is known before, and none where a bound of the p-value is
        below 1e-8.
    honest_fraction : float, default 0.5
        Share of the rows on which honest splits are found.

    Examples
    --------
    >>> import rhale_stats as rs
    >>> example = rs.simulate.TwoRegimes()
    >>> local = rs.local_effects(None, example.sample(500, rng=0), jacobian=example.jacobian)
    >>> search = rs.SplitSearch(max_depth=1, min_drop=0.2)
    >>> tree = rs.regions(local, "x1", search=search, rng=0)
    >>> tree.identical(rs.regions(local, "x1", max_depth=1, min_drop=0.2, rng=0))
    True
    """

    max_depth: int = 2
    min_obs: int | None = None
    min_drop: float = 0.1
    min_share: float = 0.05
    n_thresholds: int = 20
    thresholds: str = "quantile"
    test: str | None = "permutation"
    level: float = 0.05
    n_permutations: int = 199
    honest_fraction: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("thresholds", self.thresholds, THRESHOLDS)
        if self.test is not None:
            check_choice("test", self.test, (None, *TESTS))
        for name, value in (("min_drop", self.min_drop), ("min_share", self.min_share)):
            if not 0 <= value < 1:
                raise ValueError(
                    f"{name} must lie in [0, 1): it is a share of the loss; got {value!r}."
                )


class Verdict(NamedTuple):
    """Result of the search in a node: its best split, and whether it is made."""

    best: str = ""
    best_drop: float = np.nan
    drop: float = np.nan
    pvalue: float = np.nan
    splits: bool = False


class TreeNode(NamedTuple):
    """One node of a tree."""

    parent: int
    path: tuple[Condition, ...]
    n_obs: float
    weight: float
    loss: float
    verdict: Verdict


class _Best(NamedTuple):
    """The best split of a node: of which column, what it leaves, its two sides, and who was beaten.

    ``tried`` are the splits of all columns, before the best one was refined.
    """

    column: int
    loss: float
    sides: tuple[Condition, Condition]
    tried: list[SplitCandidates]


@dataclass
class SplitTree:
    """A tree as it grows, from the root to the leaves, left sides first.

    With honest trees ``judge`` are the rows that are not used in the search. ``of_root`` are the
    candidates of the root by column, which trees of other features that grow from the same rows
    know already, or will. ``groups`` number the groups of all rows.
    """

    problem: Searchable
    conditioning: Sequence[Conditioning]
    settings: SplitSearch
    rng: np.random.Generator
    of_root: dict[str, SplitCandidates] = field(default_factory=dict)
    groups: IntArray | None = None
    nodes: list[TreeNode] = field(default_factory=list)
    leaves: dict[int, IntArray] = field(default_factory=dict)

    def grow(
        self,
        row_numbers: IntArray,
        judge: IntArray | None,
        parent: int = -1,
        path: tuple[Condition, ...] = (),
    ) -> None:
        """Add the node of the rows ``row_numbers``, and all below it."""
        number = len(self.nodes)
        node = self.problem.node(row_numbers, self.settings.min_share)
        other = None if judge is None else self.problem.node(judge, self.settings.min_share)
        best, verdict = None, Verdict()
        # What is left of exact groups are differences of rounding.
        exact = bool(self.nodes) and node.loss <= ROUNDING * self.nodes[0].loss
        if len(path) < self.settings.max_depth and node.worth and not exact:
            best = self.best(node, judge)
            if best is not None:
                verdict = self.judge(node, best, other)
        shown = other or node
        self.nodes.append(TreeNode(parent, path, shown.n_obs, shown.weight, shown.loss, verdict))
        if best is None or not verdict.splits:
            self.leaves[number] = shown.row_numbers
            return
        sides = best.sides
        del node, other, shown, best  # free the tables of rows, which the nodes below do not need
        for condition in sides:
            inside = self.within([condition], row_numbers)
            of_judge = None if judge is None else self.within([condition], judge)
            self.grow(inside, of_judge, number, (*path, condition))

    def best(self, node: Node, judge: IntArray | None) -> _Best | None:
        """The split that leaves the least loss."""
        settings = self.settings
        candidates = {} if self.nodes else self.of_root
        tried = tried_of(self.conditioning, node, settings, candidates)
        losses = split_losses(node, node.rows, tried)
        best = best_of(losses, TIE * node.loss)
        if best is None:
            return None
        position, number, loss = best
        split, column = tried[position], self.conditioning[position]
        if settings.thresholds == "quantile" and column.kind == "numeric":
            split, number, loss = self._refined(node, column, split, number, loss)
        sides = sides_of(column, split, number, node.row_numbers, judge)
        return _Best(position, loss, sides, tried)

    def _refined(
        self, node: Node, column: Conditioning, split: SplitCandidates, number: int, loss: float
    ) -> tuple[SplitCandidates, int, float]:
        """The best of all thresholds between the neighbours of the best quantile, step by step.

        Meanwhile the bins of the node are used, because choosing bins for every threshold would
        cost as much as the search. The refined threshold is accepted if, with its own bins, its
        loss is not larger.
        """
        assert split.thresholds is not None, "a column of numbers has thresholds"
        values, cuts = part(column.values, node.row_numbers), split.thresholds
        low = cuts[number - 1] if number else -np.inf
        high = cuts[number + 1] if number + 1 < len(cuts) else values.max()
        cut = cuts[number]
        # The other rows stay on their side; their sums are computed once.
        side = (values > low).astype(np.uint8) + (values >= high)
        others = node.rows.table(side, 3)[:, [0, 2]]
        inside = np.flatnonzero(side == 1)
        inner, rows = values[inside], node.rows.take(inside)
        while True:
            between = np.unique(inner[(inner > low) & (inner < high)])
            every = len(between) <= 2 * REFINED
            finer = between if every else np.union1d(quantile_cuts(between, REFINED), cut)
            (losses,) = split_losses(
                node, rows, [thresholds_at(inner, finer)], others, in_bins=True
            )
            better = best_of([losses], TIE * node.loss)
            if better is None:
                break
            best = better[1]
            cut = finer[best]
            if every:
                break
            low = finer[best - 1] if best else low
            high = finer[best + 1] if best + 1 < len(finer) else high
        only = np.array([cut])
        (losses,) = split_losses(node, rows, [thresholds_at(inner, only)], others)
        if losses[0] <= loss + TIE * node.loss:
            return thresholds_at(values, only), 0, float(losses[0])
        return split, number, loss

    def judge(self, node: Node, best: _Best, other: Node | None) -> Verdict:
        """Whether the split is made, by its drop and by the test."""
        settings, text = self.settings, best.sides[0].text
        best_drop = 1 - best.loss / node.loss
        if best_drop < settings.min_drop:
            return Verdict(text, best_drop)
        drop, pvalue = best_drop, np.nan
        if other is not None:
            right = ~self._meets(best.sides[0], other.row_numbers)
            alone = [SplitCandidates(right.astype(np.uint8), 2)]
            (losses,) = split_losses(other, other.rows, alone)
            if not np.isfinite(losses[0]) or not other.loss > 0:
                return Verdict(text, best_drop)
            drop = 1 - losses[0] / other.loss
            pvalue = self._pvalue(other, alone)
        elif settings.test == "permutation":
            pvalue = self._pvalue(node, best.tried)
        splits = bool(drop >= settings.min_drop and not pvalue > settings.level)
        return Verdict(text, best_drop, drop if splits else np.nan, pvalue, splits)

    def within(self, path: Sequence[Condition], rows: IntArray) -> IntArray:
        """Those of the rows that meet all conditions."""
        for condition in path:
            rows = rows[self._meets(condition, rows)]
        return rows

    def _meets(self, condition: Condition, rows: IntArray) -> NDArray[np.bool_]:
        """Which of the rows are on this side."""
        (column,) = [column for column in self.conditioning if column.name == condition.feature]
        return column.meets(condition, rows)

    def _pvalue(self, node: Node, tried: Sequence[SplitCandidates]) -> float:
        """math [39]: how often some split is as good when conditioning values are exchanged.

        Neighbours along the feature exchange all their conditioning values at once, which preserves
        the dependence of the columns on each other and on the feature. The statistic is
        studentised, so that a spread that depends on the columns is not taken for an effect that
        does. It stops when the answer is known (Besag and Clifford 1991), which a bound of the
        p-value may tell.
        """
        most = self.settings.n_permutations
        enough = int(np.ceil(self.settings.level * (most + 1)))
        test, few = node.test(), most
        observed = float(test.largest(tried).max())
        if self.groups is None:
            degrees = np.concatenate(test.of_splits(test.degrees, tried), axis=1)
            bound = search.at_most(observed, degrees[degrees > -np.inf])
            if bound <= CLEAR:
                return bound
            if bound <= NEARLY:
                few = min(int(np.ceil(2 / self.settings.level)) - 1, most)
        draw, order = null_rows(self.problem, node, test, self.groups, self.rng)
        tried = [candidates.take(order) for candidates in tried]
        as_good = number = 0
        while number < most:
            before = self.rng.bit_generator.state
            # As many as are needed whatever they tell; of few rows more, which take no longer.
            wanted = max(enough - as_good, MIN_DRAWN_ROWS // len(order))
            n_draws = min((most if as_good else few) - number, wanted, DRAWS)
            largest = test.drawn(draw, n_draws, tried).max(axis=1)
            counts = as_good + np.cumsum(largest >= observed * (1 - TIE))
            if counts[-1] >= enough:
                needed = int(np.searchsorted(counts, enough)) + 1
                if needed < n_draws:
                    # Nodes below draw what comes after the last that was needed.
                    self.rng.bit_generator.state = before
                    draw(needed)
                return enough / (number + needed)
            as_good, number = int(counts[-1]), number + n_draws
            if number == few and not as_good:
                return 1 / (few + 1)
        return (as_good + 1) / (most + 1)


def tried_of(
    conditioning: Sequence[Conditioning],
    node: Node,
    settings: SplitSearch,
    candidates: dict[str, SplitCandidates],
) -> list[SplitCandidates]:
    """The splits of a node that are tried, column by column; ``candidates`` gets the others."""
    for column in conditioning:
        if column.name not in candidates:
            candidates[column.name] = candidates_of(
                column.take(node.row_numbers),
                settings.thresholds,
                settings.n_thresholds,
                node.rows.counts,
            )
    return [candidates[column.name] for column in conditioning]


def null_rows(
    problem: Searchable,
    node: Node,
    test: SplitTest,
    groups: IntArray | None,
    rng: np.random.Generator,
) -> tuple[Callable[[int], search.RowsOfNode], IntArray]:
    """How rows are drawn so many times under the null, math [39], and the order that they come in.

    Without groups neighbours exchange all but their conditioning values. With groups the distances
    from the means of bins change their sign, all rows of a group together.
    """
    if groups is None:
        order = sorting(problem.x[node.row_numbers])
        n, block = len(order), min(problem.block, len(order))

        def exchanged(n_draws: int) -> search.RowsOfNode:
            places = [order[search.shuffled(n, block, rng)] for _ in range(n_draws)]
            return test.rows.take(np.concatenate(places))

        return exchanged, order
    present, of_row = np.unique(groups[node.row_numbers], return_inverse=True)
    apart, every = test.rows.apart(of_row), np.arange(len(of_row))

    def flipped(n_draws: int) -> search.RowsOfNode:
        signs = [rng.choice([-1.0, 1.0], len(present))[of_row] for _ in range(n_draws)]
        return apart.take(np.tile(every, n_draws)).flipped(np.concatenate(signs))

    return flipped, every
