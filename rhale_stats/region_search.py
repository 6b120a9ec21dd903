"""The search for regions: losses of nodes and their splits, how a tree grows (math [37]-[39]).

The loss of a set of rows is the heterogeneity that bins chosen in it leave. All splits of a node
are worked out from one table a column; see `arrays.regions`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from rhale_stats.arrays import regions as search
from rhale_stats.arrays.binning import bin_edges
from rhale_stats.arrays.moments import (
    BLOCK_ROWS,
    Comoments,
    FloatArray,
    IntArray,
    Moments,
    cell_index,
    part,
    union,
    variance,
)
from rhale_stats.bins import (
    BinRule,
    Column,
    cells_of,
    make_lines,
    starts_of,
)
from rhale_stats.effects import (
    Rows,
    resolution,
)
from rhale_stats.splits import (
    Candidates,
    Condition,
    Conditioning,
    candidates_of,
    quantile_cuts,
    sides_of,
    thresholds_at,
)
from rhale_stats.validate import check_finite

# Losses, and their units.
LOSSES = {"index": "(output units)^2 per feature unit", "output": "output units"}
TESTS = ("permutation", "honest")
# Rows of one block exchange their conditioning values. A jump of the effect inside a block could
# look like an effect of what moves along with the feature: of four rows no part is rarer than 1/6.
BLOCK = 4
# A candidate must be better by this share of the node's loss to be preferred to one before it.
TIE = 1e-9
# Thresholds in a step of their refinement.
REFINED = 64
# Problems of bins that are solved at once: some ten megabytes.
PROBLEMS = 2048


# Rows as a loss wants them.
R = TypeVar("R", bound=search.Tabled)


# --- what a split leaves --------------------------------------------------------------------------


class Node(NamedTuple, Generic[R]):
    """Rows of one node, about its means in the cells, its loss, and which cells begin its bins."""

    at: IntArray
    rows: R
    n_obs: float
    weight: float
    loss: float
    worth: bool
    resolution: float
    starts: NDArray[np.bool_] | None = None


class Searchable(Protocol[R]):
    """What a tree needs of a feature: values along it, nodes, and the losses of sets of rows.

    Of ``block`` neighbours along the feature the permutation test exchanges rows.
    """

    @property
    def x(self) -> FloatArray:
        """The feature, row by row."""

    @property
    def block(self) -> int:
        """Rows of one block exchange their conditioning values."""

    @property
    def least_rows(self) -> float:
        """Effective rows that a region must have."""

    def node(self, at: IntArray, min_share: float) -> Node[R]:
        """The node with the rows ``at``."""

    def losses(self, sums: FloatArray, rows: R, exact: float) -> FloatArray:
        """Losses of many sets of rows, (sum, problem, cell) -> (problem,)."""

    def held(self, node: Node[R]) -> Searchable[R]:
        """The same with the bins of a node for all sets of rows, where there are bins."""


@dataclass(frozen=True)
class Problem:
    """One feature's rows, and what the loss of a set of them is.

    ``scale`` is the spread of the feature where the loss is in units of the output, else 1. Cells
    of ``bins`` begin the bins of all sets of rows, where these are given.
    """

    name: str
    rule: BinRule
    x: FloatArray
    g: FloatArray
    weight: FloatArray | None
    frequency: bool
    low: float
    high: float
    cell: NDArray[np.integer]
    edges: FloatArray
    error: float
    loss: str
    scale: float
    min_obs: float
    given_cells: bool = False
    bins: NDArray[np.bool_] | None = None
    block: ClassVar[int] = BLOCK

    @property
    def width(self) -> FloatArray:
        """Widths of the cells."""
        return np.diff(self.edges)

    @property
    def span(self) -> float:
        """Length of the axis."""
        return float(self.width.sum())

    @property
    def ddof(self) -> int:
        """Of the variances in the loss."""
        return int(getattr(self.rule, "ddof", 1))

    @property
    def least_rows(self) -> float:
        """Effective rows that a region must have: what the caller and the rule for bins ask."""
        return max(self.min_obs, 2.0, float(getattr(self.rule, "min_obs", None) or 0)) * (1 - 1e-12)

    def node(self, at: IntArray, min_share: float) -> Node[search.Rows]:
        """The node with the rows ``at``."""
        return node_of(self, at, min_share)

    def losses(self, sums: FloatArray, rows: search.Rows, exact: float) -> FloatArray:
        """Losses of many sets of rows, from their sums in the cells."""
        cells, products = search.moments(sums, rows)
        return self.loss_in(*self.starts(cells, products, exact), cells, products)

    def loss_in(
        self,
        starts: NDArray[np.bool_],
        linear: NDArray[np.bool_] | None,
        cells: Moments,
        products: Comoments | None,
    ) -> FloatArray:
        """Losses of many sets of rows in these bins, (problem, cell) -> (problem,)."""
        found = search.loss(
            cells, products, self.width, starts, linear, kind=self.loss, ddof=self.ddof
        )
        return self.scale * found

    def held(self, node: Node[search.Rows]) -> Problem:
        """The same with the bins of a node, none of which is chosen again."""
        return replace(self, bins=node.starts)

    def starts(
        self, cells: Moments, products: Comoments | None, exact: float
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_] | None]:
        """Which cells begin a bin, and a linear one: (problem, cell)."""
        if self.bins is not None:
            return np.broadcast_to(self.bins, cells.weight.shape), None
        return starts_of(
            self.rule,
            cells,
            products,
            name=self.name,
            low=self.low,
            high=self.high,
            resolution=exact,
            edges=self.edges if self.given_cells else None,
        )


def problem_of(
    rows: Rows,
    position: int,
    name: str,
    rule: BinRule,
    *,
    error: float,
    loss: str,
    min_obs: float,
) -> Problem | None:
    """One feature ready to be searched; None for a constant one.

    The axis is that of all rows, in every node: a region that reaches over a part of the axis only
    is not less heterogeneous for that.
    """
    x, g, weight = rows.x[position], rows.local_effect[position], rows.weight
    check_finite(x, "x", name, "Select the rows first: local.isel(obs=...).")
    low, high = float(x.min()), float(x.max())
    if low == high:
        return None
    check_finite(g, "Local effects", name, "Select the rows first: local.isel(obs=...).")
    given = rows.cells[position] if rows.cells else None
    axis = cells_of(rule, Column(name, x, low, high, weight, given))
    n_cells = len(axis)
    cell: NDArray[np.integer] = np.empty(len(x), np.int16 if n_cells < 2**15 else np.int32)
    for begin in range(0, len(x), BLOCK_ROWS):
        block = slice(begin, begin + BLOCK_ROWS)
        cell[block] = np.minimum(cell_index(axis, x[block]), n_cells - 1)
    edges = bin_edges(axis, np.arange(n_cells), low, high)
    scale = _spread(x, weight, frequency=rows.frequency) if loss == "output" else 1.0
    return Problem(
        name, rule, x, g, weight, rows.frequency, low, high, cell, edges, error,
        loss, scale, min_obs, given is not None,
    )  # fmt: skip


def _spread(x: FloatArray, weight: FloatArray | None, *, frequency: bool) -> float:
    """Standard deviation of a feature, math [6]."""
    if weight is None:
        return float(np.std(x, ddof=1))
    weights = {"fweights": weight.astype(np.int64)} if frequency else {"aweights": weight}
    return float(np.sqrt(np.cov(x, **weights)))


def node_of(problem: Problem, at: IntArray, min_share: float) -> Node[search.Rows]:
    """The node with the rows ``at``."""
    x, g, cell = (part(values, at) for values in (problem.x, problem.g, problem.cell))
    w = None if problem.weight is None else part(problem.weight, at)
    n_cells = len(problem.width)
    centre = search.means(cell, g, w, n_cells)
    place = x_centre = None
    if make_lines(problem.rule):
        x_centre = search.means(cell, x, w, n_cells)
        place = search.away(x, x_centre, cell)
    effect = search.away(g, centre, cell)
    rows = search.Rows(cell, effect, w, problem.frequency, centre, place, x_centre)
    sums = search.table(np.zeros(len(at), dtype=np.uint8), 1, rows)
    cells, products = search.moments(sums, rows)
    exact = resolution(cells.mean, problem.error)
    starts, linear = problem.starts(cells, products, exact)
    loss = float(problem.loss_in(starts, linear, cells, products)[0])
    # Spread that the feature leaves unexplained, beside all there is: below that, and below what
    # the model's own rounding makes, there is nothing to be found.
    everything = union(cells)
    spread = float(variance(everything, problem.ddof)[0])
    worth = spread > (4 * exact) ** 2
    if worth:
        left = {
            "index": loss / problem.span,
            "output": (loss / problem.scale) ** 2,
            "variance": loss,
        }[problem.loss]
        worth = left > 0 and left >= min_share * spread
    n_obs, weight = float(everything.n_obs[0]), float(everything.weight[0])
    return Node(at, rows, n_obs, weight, loss, worth, exact, starts[0])


def split_losses(
    problem: Searchable[R],
    node: Node[R],
    rows: R,
    tried: Sequence[Candidates],
    others: FloatArray | None = None,
) -> list[FloatArray]:
    """Mean loss of both sides of every split of every column, by their weight; inf if not allowed.

    math [37]: sum over children of (n_child / n_node) loss(child), all of them in few batches.
    ``others`` are sums of the node's other rows, always left and always right: (sum, 2, cell).
    """
    found = [np.full(one.n_splits, np.inf) for one in tried]
    waiting: list[tuple[FloatArray, search.Children]] = []
    for one, out in zip(tried, found, strict=True):
        for children in _children(one, rows):
            if others is not None:
                children.left[:] += others[:, :1]
                children.right[:] += others[:, 1:]
            waiting.append((out, children))
            if sum(each.left.shape[1] for _, each in waiting) >= PROBLEMS // 2:
                _solve(problem, node, rows, waiting)
                waiting = []
    _solve(problem, node, rows, waiting)
    return found


def _children(one: Candidates, rows: search.Tabled) -> Iterator[search.Children]:
    if not one.n_splits:
        return iter(())
    if one.subsets is None:
        return search.threshold_children(one.codes, one.n_codes, rows)
    return search.subset_children(one.codes, one.subsets, rows)


def _solve(
    problem: Searchable[R],
    node: Node[R],
    rows: R,
    waiting: list[tuple[FloatArray, search.Children]],
) -> None:
    """Fill in the losses of the splits that are waiting."""
    if not waiting:
        return
    sides = np.concatenate(
        [children.left for _, children in waiting] + [children.right for _, children in waiting],
        axis=1,
    )
    # Both sides, before anything is worked out for them.
    enough = rows.effective_rows(sides) >= problem.least_rows
    enough = np.tile(enough.reshape(2, -1).all(axis=0), 2)
    losses = np.full(len(enough), np.inf)
    if enough.any():
        asked = sides if enough.all() else sides[:, enough]
        losses[enough] = problem.losses(asked, rows, node.resolution)
    losses[np.isnan(losses)] = np.inf
    share = rows.total_weight(sides) / node.weight
    with np.errstate(invalid="ignore"):
        together = (share * losses).reshape(2, -1).sum(axis=0)
    together[np.isnan(together)] = np.inf  # a side without rows
    begin = 0
    for out, children in waiting:
        n = children.left.shape[1]
        out[children.first : children.first + n] = together[begin : begin + n]
        begin += n


def best_of(losses: Sequence[FloatArray], tie: float) -> tuple[int, int, float] | None:
    """Column, number and loss of the best split, of equal ones the first; None without any."""
    least = least_of(losses)
    if not np.isfinite(least):
        return None
    for column, one in enumerate(losses):
        good = one <= least + tie
        if good.any():
            split = int(good.argmax())
            return column, split, float(one[split])
    return None


# --- the search ----------------------------------------------------------------------------------


class Settings(NamedTuple):
    """How trees grow; see `regions`."""

    max_depth: int
    min_drop: float
    min_share: float
    n_thresholds: int
    thresholds: str
    test: str | None
    level: float
    n_permutations: int


class Verdict(NamedTuple):
    """What the search said of a node: its best split, and whether it is made."""

    best: str = ""
    best_drop: float = np.nan
    drop: float = np.nan
    pvalue: float = np.nan
    splits: bool = False


class Grown(NamedTuple):
    """One node of a tree."""

    parent: int
    path: tuple[Condition, ...]
    n_obs: float
    weight: float
    loss: float
    verdict: Verdict


class _Best(NamedTuple):
    """The best split of a node: of which column, what it leaves, its two sides, and who was beaten.

    ``least`` is the least loss of the splits ``tried``, before the best one was refined.
    """

    column: int
    loss: float
    sides: tuple[Condition, Condition]
    tried: list[Candidates]
    least: float


class Tree(Generic[R]):
    """A tree as it grows, from the root to the leaves, left sides first.

    With honest trees ``judge`` are the rows that the search does not see. ``of_root`` are the
    candidates of the root by column, which trees of other features that grow from the same rows
    know already, or will.
    """

    def __init__(
        self,
        problem: Searchable[R],
        conditioning: Sequence[Conditioning],
        settings: Settings,
        rng: np.random.Generator,
        of_root: dict[str, Candidates] | None = None,
    ) -> None:
        self.problem = problem
        self.conditioning = conditioning
        self.settings = settings
        self.rng = rng
        self.of_root = {} if of_root is None else of_root
        self.nodes: list[Grown] = []
        self.leaves: dict[int, IntArray] = {}

    def grow(
        self,
        at: IntArray,
        judge: IntArray | None,
        parent: int = -1,
        path: tuple[Condition, ...] = (),
    ) -> None:
        """Add the node of the rows ``at``, and all below it."""
        number = len(self.nodes)
        node = self.problem.node(at, self.settings.min_share)
        other = None if judge is None else self.problem.node(judge, self.settings.min_share)
        best, verdict = None, Verdict()
        if len(path) < self.settings.max_depth and node.worth:
            best = self.best(node, judge)
            if best is not None:
                verdict = self.judge(node, best, other)
        shown = other or node
        self.nodes.append(Grown(parent, path, shown.n_obs, shown.weight, shown.loss, verdict))
        if best is None or not verdict.splits:
            self.leaves[number] = shown.at
            return
        sides = best.sides
        del node, other, shown, best  # tables of rows, which those below have no use for
        for condition in sides:
            of_judge = None if judge is None else judge[self._meets(condition, judge)]
            self.grow(at[self._meets(condition, at)], of_judge, number, (*path, condition))

    def best(self, node: Node[R], judge: IntArray | None) -> _Best | None:
        """The split that leaves the least loss."""
        settings = self.settings
        known = {} if self.nodes else self.of_root
        tried = tried_of(self.conditioning, node, settings, known)
        losses = split_losses(self.problem, node, node.rows, tried)
        found = best_of(losses, TIE * node.loss)
        if found is None:
            return None
        at, number, loss = found
        split, column = tried[at], self.conditioning[at]
        if settings.thresholds == "quantile" and column.kind == "numeric":
            split, number, loss = self._refined(node, column, split, number, loss)
        sides = sides_of(column, split, number, node.at, judge)
        return _Best(at, loss, sides, tried, least_of(losses))

    def _refined(
        self, node: Node[R], column: Conditioning, split: Candidates, number: int, loss: float
    ) -> tuple[Candidates, int, float]:
        """The best of all thresholds between the neighbours of the best quantile, step by step.

        Bins are those of the node meanwhile: to choose them for every threshold would cost as much
        as the search. What is found is taken if with bins of its own it is no worse.
        """
        if split.thresholds is None:
            return split, number, loss
        values, cuts = part(column.values, node.at), split.thresholds
        low = cuts[number - 1] if number else -np.inf
        high = cuts[number + 1] if number + 1 < len(cuts) else values.max()
        cut = cuts[number]
        # The others stay on their side, and are summed once.
        side = (values > low).astype(np.uint8) + (values >= high)
        others = node.rows.table(side, 3)[:, [0, 2]]
        at = np.flatnonzero(side == 1)
        inner, rows = values[at], node.rows.take(at)
        held = self.problem.held(node)
        while True:
            between = np.unique(inner[(inner > low) & (inner < high)])
            every = len(between) <= 2 * REFINED
            finer = between if every else np.union1d(quantile_cuts(between, REFINED), cut)
            (losses,) = split_losses(held, node, rows, [thresholds_at(inner, finer)], others)
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
        (losses,) = split_losses(self.problem, node, rows, [thresholds_at(inner, only)], others)
        if losses[0] <= loss + TIE * node.loss:
            return thresholds_at(values, only), 0, float(losses[0])
        return split, number, loss

    def judge(self, node: Node[R], best: _Best, other: Node[R] | None) -> Verdict:
        """Whether the split is made, by its drop and by the test."""
        settings, text = self.settings, best.sides[0].text
        best_drop = 1 - best.loss / node.loss
        if best_drop < settings.min_drop:
            return Verdict(text, best_drop)
        drop, pvalue = best_drop, np.nan
        if other is not None:
            right = ~self._meets(best.sides[0], other.at)
            alone = [Candidates(right.astype(np.uint8), 2)]
            (losses,) = split_losses(self.problem, other, other.rows, alone)
            if not np.isfinite(losses[0]) or not other.loss > 0:
                return Verdict(text, best_drop)
            drop = 1 - losses[0] / other.loss
            pvalue = self._pvalue(other, alone, float(losses[0]))
        elif settings.test == "permutation":
            pvalue = self._pvalue(node, best.tried, best.least)
        splits = bool(drop >= settings.min_drop and not pvalue > settings.level)
        return Verdict(text, best_drop, drop if splits else np.nan, pvalue, splits)

    def within(self, path: Sequence[Condition], rows: IntArray) -> IntArray:
        """Those of the rows that meet all conditions."""
        for condition in path:
            rows = rows[self._meets(condition, rows)]
        return rows

    def _meets(self, condition: Condition, rows: IntArray) -> NDArray[np.bool_]:
        """Which of the rows are on this side."""
        (column,) = (one for one in self.conditioning if one.name == condition.feature)
        return column.meets(condition, rows)

    def _pvalue(self, node: Node[R], tried: Sequence[Candidates], least: float) -> float:
        """math [39]: how often the best of all splits is as good when conditioning is exchanged.

        Rows that are neighbours along the feature exchange all their conditioning values at once,
        which leaves the columns as dependent on each other, and on the feature, as they are. The
        search is done again each time. It stops when the answer is known (Besag and Clifford 1991).
        """
        most = self.settings.n_permutations
        enough = int(np.ceil(self.settings.level * (most + 1)))
        as_good = 0
        order = along(self.problem, node)
        tried = [one.take(order) for one in tried]
        for number in range(1, most + 1):
            mixed = exchanged(node, order, self.rng, self.problem.block)
            losses = split_losses(self.problem, node, mixed, tried)
            as_good += least_of(losses) <= least + TIE * node.loss
            if as_good == enough:
                return as_good / number
        return (as_good + 1) / (most + 1)


def tried_of(
    conditioning: Sequence[Conditioning],
    node: Node[R],
    settings: Settings,
    known: dict[str, Candidates],
) -> list[Candidates]:
    """The splits of a node that are tried, column by column; what is not ``known`` will be."""
    for column in conditioning:
        if column.name not in known:
            known[column.name] = candidates_of(
                column.take(node.at), settings.thresholds, settings.n_thresholds, node.rows.counts
            )
    return [known[column.name] for column in conditioning]


def along(problem: Searchable[R], node: Node[R]) -> IntArray:
    """Rows of a node in order of the feature."""
    return np.argsort(problem.x[node.at], kind="stable")


def exchanged(node: Node[R], order: IntArray, rng: np.random.Generator, block: int = BLOCK) -> R:
    """The rows in that order, when neighbours have exchanged all but their conditioning values."""
    return node.rows.take(order[search.shuffled(np.arange(len(order)) // block, rng)])


def least_of(losses: Sequence[FloatArray]) -> float:
    """The least loss of all splits, infinite if there are none."""
    return min((float(one.min()) for one in losses if len(one)), default=np.inf)
