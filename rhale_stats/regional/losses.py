"""Losses of the nodes of a tree, and of all candidate splits of a node (math [38])."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from boost_histogram.axis import Variable
from numpy.typing import NDArray

from rhale_stats.arguments.checks import check_finite
from rhale_stats.arrays import regions as search
from rhale_stats.arrays.accumulate import Pieces
from rhale_stats.arrays.binning import bin_edges, bin_index, sorting
from rhale_stats.arrays.moments import (
    BLOCK_ROWS,
    FloatArray,
    IntArray,
    Moments,
    cell_index,
    n_effective,
    part,
    union,
    variance,
)
from rhale_stats.bins.description import cells_of, starts_of
from rhale_stats.bins.rule import BinRule, Column, make_lines
from rhale_stats.bins.rules import OptimalBins
from rhale_stats.local.rows import Rows
from rhale_stats.regional.splits import SplitCandidates
from rhale_stats.schema.features import resolution

# Share of the variance about the average effect that differences of neighbours must make.
BIN_ERROR = 0.05
# Number of bin problems that are solved at once: some ten megabytes.
PROBLEMS = 2048
# Permutations of the rows that are drawn together.
DRAWS = 16


def split_losses(
    problem: Searchable[R],
    node: Node[R],
    rows: R,
    tried: Sequence[SplitCandidates],
    others: FloatArray | None = None,
) -> list[FloatArray]:
    """Mean loss of both sides of every split of every column, by their weight; inf if not allowed.

    math [37]: sum over children of (n_child / n_node) loss(child), all of them in few batches.
    ``others`` are sums of the node's other rows, always left and always right: (sum, 2, cell).
    """
    losses = [np.full(candidates.n_splits, np.inf) for candidates in tried]
    waiting: list[tuple[FloatArray, search.Children]] = []
    for candidates, out in zip(tried, losses, strict=True):
        for children in _children(candidates, rows):
            if others is not None:
                children.left[:] += others[:, :1]
                children.right[:] += others[:, 1:]
            waiting.append((out, children))
            if sum(each.left.shape[1] for _, each in waiting) >= PROBLEMS // 2:
                _solve(problem, node, rows, waiting)
                waiting = []
    _solve(problem, node, rows, waiting)
    return losses


def split_statistics(
    problem: Searchable[R], node: Node[R], rows: R, tried: Sequence[SplitCandidates]
) -> list[FloatArray]:
    """The studentised drop of every split of every column (math [39]); -inf if not allowed."""
    each = _of_splits(problem.statistics, problem.least_rows, node, rows, 1, tried)
    return [statistics[0] for statistics in each]


def drawn_statistics(
    problem: Searchable[R],
    node: Node[R],
    draw: Callable[[int], R],
    n_draws: int,
    tried: Sequence[SplitCandidates],
) -> list[FloatArray]:
    """`split_statistics` of so many draws of the rows of a node, of every column (draw, split).

    ``draw`` gives the rows of several draws, one behind the other.
    """
    most = max(max(candidates.n_codes, candidates.n_splits) for candidates in tried)
    at_once = max(min(BLOCK_ROWS // len(node.row_numbers), PROBLEMS // most), 1)
    at_once = at_once if most <= search.BLOCK_CODES else 1
    parts = []
    for begin in range(0, n_draws, at_once):
        n = min(at_once, n_draws - begin)
        least = problem.least_rows
        parts.append(_of_splits(problem.statistics, least, node, draw(n), n, tried))
    return [np.concatenate(of_column) for of_column in zip(*parts, strict=True)]


def split_degrees(
    problem: Searchable[R], node: Node[R], rows: R, tried: Sequence[SplitCandidates]
) -> list[FloatArray]:
    """Degrees of freedom of the denominators of these; -inf if not allowed."""
    each = _of_splits(problem.degrees, problem.least_rows, node, rows, 1, tried)
    return [degrees[0] for degrees in each]


def _of_splits(
    statistic: Callable[[search.Children, R, Node[R]], FloatArray],
    least: float,
    node: Node[R],
    rows: R,
    n_draws: int,
    tried: Sequence[SplitCandidates],
) -> list[FloatArray]:
    """A statistic of all splits of every column, (draw, split), of rows of several draws."""
    statistics = [np.full((n_draws, candidates.n_splits), -np.inf) for candidates in tried]
    waiting: list[tuple[FloatArray, search.Children]] = []

    def solve() -> None:
        # All at once: with few rows the calls take longer than the sums.
        left, right = [
            np.concatenate([getattr(children, side) for _, children in waiting], axis=1)
            for side in ("left", "right")
        ]
        enough = np.minimum(rows.effective_rows(left), rows.effective_rows(right))
        values = np.where(
            enough >= least, statistic(search.Children(0, left, right), rows, node), -np.inf
        )
        begin = 0
        for out, children in waiting:
            end = begin + children.left.shape[1]
            of_draws = values[begin:end].reshape(n_draws, -1)
            out[:, children.first : children.first + of_draws.shape[1]] = of_draws
            begin = end
        waiting.clear()

    for candidates, out in zip(tried, statistics, strict=True):
        for children in _children(candidates, rows, n_draws):
            waiting.append((out, children))
            if sum(each.left.shape[1] for _, each in waiting) >= PROBLEMS // 2:
                solve()
    if waiting:
        solve()
    return statistics


def _children(
    candidates: SplitCandidates, rows: search.Tabled, n_draws: int = 1
) -> Iterator[search.Children]:
    if not candidates.n_splits:
        return iter(())
    if candidates.subsets is None:
        return search.threshold_children(candidates.codes, candidates.n_codes, rows, n_draws)
    return search.subset_children(candidates.codes, candidates.subsets, rows, n_draws)


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
    # Both sides of all waiting splits.
    enough = rows.effective_rows(sides) >= problem.least_rows
    enough = np.tile(enough.reshape(2, -1).all(axis=0), 2)
    losses = np.full(len(enough), np.inf)
    if enough.any():
        allowed_sides = sides if enough.all() else sides[:, enough]
        losses[enough] = problem.losses(allowed_sides, rows, node.resolution)
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


# --- losses of the nodes of a tree ----------------------------------------------------------------


# Losses, and their units.
LOSSES = {"index": "(output units)^2 per feature unit", "output": "output units"}
TESTS = ("permutation", "honest")
# Rows of one block exchange their conditioning values. A jump of the effect inside a block could
# look like an effect of what moves along with the feature: of four rows no part is rarer than 1/6.
BLOCK = 4
# Rows of a bin in every node, unless a twentieth of the root's are fewer. The root's twentieth
# itself would leave regions of a few hundred rows without bins that follow a curved effect.
MIN_IN_BIN = 10
# A candidate replaces an earlier one only if it is better by this share of the node's loss.
TIE = 1e-9
# The form of rows that a loss takes.
R = TypeVar("R", bound=search.Tabled)


@dataclass(frozen=True)
class RootBins(OptimalBins):
    """`OptimalBins` of all nodes of a tree: a bin has ``least`` rows and a twentieth of the node's.

    A twentieth alone would allow bins of two rows in a small child, and these follow noise. A set
    with fewer rows is one bin.
    """

    least: float = 0.0

    def _least_rows(self, cells: Moments) -> FloatArray:
        n_rows = n_effective(union(cells))
        return np.minimum(np.maximum(self.least, n_rows / 20), n_rows)


def root_bins(rule: BinRule, n_rows: float) -> BinRule:
    """The rule for all nodes below a root with so many effective rows."""
    if type(rule) is not OptimalBins or rule.min_obs is not None:
        return rule
    return RootBins(rule.max_bins, None, rule.discount, rule.ddof, min(MIN_IN_BIN, n_rows / 20))


# --- what a split leaves --------------------------------------------------------------------------


class Node(NamedTuple, Generic[R]):
    """Rows of one node relative to its cell means, its loss, and the cells that begin its bins."""

    row_numbers: IntArray
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

    def node(self, row_numbers: IntArray, min_share: float) -> Node[R]:
        """The node with the rows ``row_numbers``."""

    def losses(self, sums: FloatArray, rows: R, exact: float) -> FloatArray:
        """Losses of many sets of rows, (sum, problem, cell) -> (problem,)."""

    def with_bins_of(self, node: Node[R]) -> Searchable[R]:
        """The same with the bins of a node for all sets of rows, where there are bins."""

    def statistics(self, children: search.Children, rows: R, node: Node[R]) -> FloatArray:
        """Studentised drops by many splits, in the bins of the node: (split,)."""

    def degrees(self, children: search.Children, rows: R, node: Node[R]) -> FloatArray:
        """Degrees of freedom of the variances in these, (split,)."""

    def coarse(self, node: Node[R]) -> tuple[Searchable[R], Node[R]]:
        """The same with the bins of the node as cells, where there are bins: for `statistics`."""

    def apart(self, node: Node[R], unit: IntArray) -> R:
        """Rows of a node about the means of their bins, corrected for the leverage of units."""

    def flipped(self, rows: R, sign: FloatArray) -> R:
        """The same with distances that have these signs."""


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
    gaps: NDArray[np.bool_] | None = None
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
        """Minimum number of effective rows of a region, from the caller and the bin rule."""
        return max(self.min_obs, 2.0, float(getattr(self.rule, "min_obs", None) or 0)) * (1 - 1e-12)

    def node(self, row_numbers: IntArray, min_share: float) -> Node[search.NodeRows]:
        """The node with the rows ``row_numbers``."""
        return node_of(self, row_numbers, min_share)

    def losses(self, sums: FloatArray, rows: search.NodeRows, exact: float) -> FloatArray:
        """Losses of many sets of rows, from their sums in the cells."""
        cells = search.moments(sums, rows)
        return self.loss_in(*self.starts(cells, exact), cells)

    def loss_in(
        self,
        starts: NDArray[np.bool_],
        linear: NDArray[np.bool_] | None,
        cells: Moments,
    ) -> FloatArray:
        """Losses of many sets of rows in these bins, (problem, cell) -> (problem,)."""
        loss = search.loss(cells, self.width, starts, linear, kind=self.loss, ddof=self.ddof)
        return self.scale * loss

    def statistics(
        self, children: search.Children, rows: search.NodeRows, node: Node[search.NodeRows]
    ) -> FloatArray:
        """Studentised drops by many splits, in the bins of the node: (split,)."""
        return search.studentised(*self._sides(children, rows, node), node.resolution)

    def degrees(
        self, children: search.Children, rows: search.NodeRows, node: Node[search.NodeRows]
    ) -> FloatArray:
        """Degrees of freedom of the variances in these, (split,)."""
        return search.studentised_degrees(*self._sides(children, rows, node))

    def _sides(
        self, children: search.Children, rows: search.NodeRows, node: Node[search.NodeRows]
    ) -> tuple[Moments, Moments, NDArray[np.bool_], FloatArray | None]:
        """Moments on both sides of many splits, the bins of the node, and widths if they count."""
        if node.starts is None:
            raise AssertionError("a node of local effects has bins")
        left, right = [search.moments(side, rows) for side in (children.left, children.right)]
        return left, right, node.starts, self.width if self.loss == "index" else None

    def coarse(self, node: Node[search.NodeRows]) -> tuple[Problem, Node[search.NodeRows]]:
        """The same with the bins of the node as cells: sums over fewer cells, without lines."""
        if node.starts is None:
            raise AssertionError("a node of local effects has bins")
        rows, begins = node.rows, np.flatnonzero(node.starts)
        bins = (np.cumsum(node.starts) - 1)[rows.cell]
        values = rows.centre[rows.cell] + rows.effect
        centre = search.means(bins, values, rows.weight, len(begins))
        binned = search.NodeRows(bins, values - centre[bins], rows.weight, rows.frequency, centre)
        edges = np.append(self.edges[begins], self.edges[-1])
        return (
            replace(self, edges=edges, gaps=None),
            node._replace(rows=binned, starts=np.ones(len(begins), dtype=bool)),
        )

    def apart(self, node: Node[search.NodeRows], unit: IntArray) -> search.NodeRows:
        """Rows of a node about the means of their bins, corrected for the leverage of units."""
        if node.starts is None:
            raise AssertionError("a node of local effects has bins")
        return search.apart(node.rows, node.starts, unit)

    def flipped(self, rows: search.NodeRows, sign: FloatArray) -> search.NodeRows:
        """The same with distances that have these signs."""
        return search.flipped(rows, sign)

    def with_bins_of(self, node: Node[search.NodeRows]) -> Problem:
        """The same with the bins of a node, none of which is chosen again."""
        return replace(self, bins=node.starts)

    def starts(
        self, cells: Moments, exact: float
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_] | None]:
        """Which cells begin a bin, and a linear one: (problem, cell)."""
        if self.bins is not None:
            return np.broadcast_to(self.bins, cells.weight.shape), None
        return starts_of(
            self.rule,
            cells,
            name=self.name,
            resolution=exact,
            edges=self.edges,
            equal=not self.given_cells,
            gaps=self.gaps,
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
    average: Pieces | None = None,
) -> Problem | None:
    """One feature ready to be searched; None for a constant one.

    In every node the axis is that of all rows, so that a region is not less heterogeneous only
    because it covers a part of the axis. Local effects count as their distances from ``average``,
    the effect of all rows: how much rows differ, and in which direction, whatever the average. What
    all rows have in common, as a jump, would else be most of the spread of a bin.
    """
    x, g, weight = rows.x[position], rows.local_effect[position], rows.weight
    check_finite(x, "x", name, "Select the rows first: local.isel(obs=...).")
    low, high = float(x.min()), float(x.max())
    if low == high:
        return None
    check_finite(g, "Local effects", name, "Select the rows first: local.isel(obs=...).")
    feature_cells = rows.cells[position] if rows.cells else None
    axis = cells_of(rule, Column(name, x, low, high, weight, feature_cells))
    n_cells = len(axis)
    cell: NDArray[np.integer] = np.empty(len(x), np.int16 if n_cells < 2**15 else np.int32)
    for begin in range(0, len(x), BLOCK_ROWS):
        block = slice(begin, begin + BLOCK_ROWS)
        cell[block] = np.minimum(cell_index(axis, x[block]), n_cells - 1)
    edges = bin_edges(axis, np.arange(n_cells), low, high)
    if average is not None:
        k = bin_index(average.edges, x)
        g = g - (average.mean[k] + average.slope[k] * (x - average.x_mean[k]))
        # Neighbours that are alike: what is left is how the average changes within its bins.
        steps = np.diff(g[sorting(x)])
        if steps @ steps / 2 < BIN_ERROR * (g @ g):
            g = np.zeros(len(g))
    scale = _spread(x, weight, frequency=rows.frequency) if loss == "output" else 1.0
    return Problem(
        name, rule, x, g, weight, rows.frequency, low, high, cell, edges, error,
        loss, scale, min_obs, isinstance(axis, Variable), np.bincount(cell, minlength=n_cells) == 0,
    )  # fmt: skip


def _spread(x: FloatArray, weight: FloatArray | None, *, frequency: bool) -> float:
    """Standard deviation of a feature, math [6]."""
    if weight is None:
        return float(np.std(x, ddof=1))
    weights = {"fweights": weight.astype(np.int64)} if frequency else {"aweights": weight}
    return float(np.sqrt(np.cov(x, **weights)))


def node_of(problem: Problem, row_numbers: IntArray, min_share: float) -> Node[search.NodeRows]:
    """The node with the rows ``row_numbers``."""
    x, g, cell = [part(values, row_numbers) for values in (problem.x, problem.g, problem.cell)]
    w = None if problem.weight is None else part(problem.weight, row_numbers)
    n_cells = len(problem.width)
    centre = search.means(cell, g, w, n_cells)
    place = x_centre = None
    if make_lines(problem.rule):
        x_centre = search.means(cell, x, w, n_cells)
        place = search.away(x, x_centre, cell)
    effect = search.away(g, centre, cell)
    rows = search.NodeRows(cell, effect, w, problem.frequency, centre, place, x_centre)
    sums = search.table(np.zeros(len(row_numbers), dtype=np.uint8), 1, rows)
    cells = search.moments(sums, rows)
    exact = resolution(cells.mean, problem.error)
    starts, linear = problem.starts(cells, exact)
    loss = float(problem.loss_in(starts, linear, cells)[0])
    # Spread that the feature leaves unexplained, beside all there is: below that, and below what
    # the model's own rounding makes, there is nothing to be found.
    everything = union(cells)
    spread = float(variance(everything, problem.ddof)[0])
    left = {
        "index": loss / problem.span,
        "output": (loss / problem.scale) ** 2,
        "variance": loss,
    }[problem.loss]
    # Rounding of the distances from an average.
    loss = loss if left > exact**2 else 0.0
    worth = spread > (4 * exact) ** 2 and loss > 0 and left >= min_share * spread
    n_obs, weight = float(everything.n_obs[0]), float(everything.weight[0])
    return Node(row_numbers, rows, n_obs, weight, loss, worth, exact, starts[0])
