"""Losses of the nodes of a tree, and of all candidate splits of a node (math [38])."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, NamedTuple, TypeAlias

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
    n_effective,
    part,
    union,
    variance,
)
from rhale_stats.bins.description import cells_of, starts_of
from rhale_stats.bins.rule import BinRule, Column, make_lines
from rhale_stats.bins.rules import OptimalBins
from rhale_stats.local.rows import Rows
from rhale_stats.regional.splits import SplitCandidates, cells_of_rows
from rhale_stats.schema.features import resolution

# Share of the variance about the average effect that differences of neighbours must make.
BIN_ERROR = 0.05
# Number of bin problems that are solved at once: some ten megabytes.
PROBLEMS = 2048
# Permutations of the rows that are drawn together.
DRAWS = 16


# --- what all splits of a node leave --------------------------------------------------------------


def split_losses(
    node: Node,
    rows: search.RowsOfNode,
    tried: Sequence[SplitCandidates],
    others: FloatArray | None = None,
    *,
    in_bins: bool = False,
) -> list[FloatArray]:
    """Mean loss of both sides of every split of every column, by their weight; inf if not allowed.

    math [37]: sum over children of (n_child / n_node) loss(child), all of them in few batches.
    ``others`` are sums of the node's other rows, always left and always right: (sum, side, cell).
    ``in_bins``: bins are those of the node, and not chosen again.
    """

    def mean_losses(sides: FloatArray) -> FloatArray:
        """Of all splits from their sums, (sum, side, split, cell) -> (split,)."""
        losses = np.full(sides.shape[1:3], np.inf)
        enough = (rows.effective_rows(sides) >= node.least_rows).all(axis=0)
        if enough.any():
            allowed = sides[:, :, enough].reshape(len(sides), -1, sides.shape[-1])
            losses[:, enough] = node.losses(allowed, in_bins=in_bins).reshape(2, -1)
        with np.errstate(invalid="ignore"):
            mean = (rows.total_weight(sides) / node.weight * losses).sum(axis=0)
        return np.where(np.isnan(mean), np.inf, mean)  # a side without rows

    return [losses[0] for losses in _in_batches(mean_losses, rows, tried, others=others)]


class SplitTest(NamedTuple):
    """What the test of the splits of a node needs (math [39]).

    ``statistics`` and ``degrees`` are functions of sums of ``rows`` on both sides of splits, (sum,
    side, split, bin) -> (split,): studentised drops, and degrees of freedom of their denominators.
    """

    rows: search.RowsOfNode
    least_rows: float
    statistics: Callable[[FloatArray], FloatArray]
    degrees: Callable[[FloatArray], FloatArray]

    def of_splits(
        self,
        statistic: Callable[[FloatArray], FloatArray],
        tried: Sequence[SplitCandidates],
        rows: search.RowsOfNode | None = None,
        n_draws: int = 1,
    ) -> list[FloatArray]:
        """One of the two for all splits of every column, (draw, split); -inf if not allowed.

        ``rows`` are those of several draws one behind the other, by default those of the node.
        """
        some = self.rows if rows is None else rows

        def allowed(sides: FloatArray) -> FloatArray:
            enough = some.effective_rows(sides).min(axis=0) >= self.least_rows
            return np.where(enough, statistic(sides), -np.inf)

        return _in_batches(allowed, some, tried, n_draws)

    def largest(self, tried: Sequence[SplitCandidates]) -> FloatArray:
        """The largest statistic of every column; -inf of one without splits."""
        (largest,) = _largest(self.of_splits(self.statistics, tried))
        return np.asarray(largest)

    def drawn(
        self,
        draw: Callable[[int], search.RowsOfNode],
        n_draws: int,
        tried: Sequence[SplitCandidates],
    ) -> FloatArray:
        """The largest statistic of every column in so many draws of the rows, (draw, column).

        ``draw`` gives the rows of several draws, one behind the other.
        """
        of_levels = [len(column.subsets) for column in tried if column.subsets is not None]
        most = max([column.n_codes for column in tried] + of_levels)
        at_once = max(min(BLOCK_ROWS // len(tried[0].codes), PROBLEMS // most), 1)
        at_once = at_once if most <= search.BLOCK_CODES else 1
        sizes = [min(at_once, n_draws - begin) for begin in range(0, n_draws, at_once)]
        parts = [self.of_splits(self.statistics, tried, draw(n), n) for n in sizes]
        return np.concatenate([_largest(statistics) for statistics in parts])


def _largest(statistics: Sequence[FloatArray]) -> FloatArray:
    return np.stack([values.max(axis=1, initial=-np.inf) for values in statistics], axis=1)


def _in_batches(
    function: Callable[[FloatArray], FloatArray],
    rows: search.RowsOfNode,
    tried: Sequence[SplitCandidates],
    n_draws: int = 1,
    others: FloatArray | None = None,
) -> list[FloatArray]:
    """A function of the sums on both sides of all splits of every column, (draw, split).

    With few rows calls take longer than the sums, so that many splits are handled at once.
    """
    solved: list[FloatArray] = [np.zeros(0)]
    waiting: list[FloatArray] = []
    n_waiting, n_each = 0, [0] * len(tried)
    for column, candidates in enumerate(tried):
        for children in candidates.children(rows, n_draws):
            if others is not None:
                children.sides[:] += others[:, :, None]
            waiting.append(children.sides)
            n_waiting += children.sides.shape[2]
            n_each[column] += children.sides.shape[2]
            if n_waiting >= PROBLEMS // 2:
                solved.append(function(np.concatenate(waiting, axis=2)))
                n_waiting, waiting = 0, []
    if waiting:
        solved.append(function(np.concatenate(waiting, axis=2)))
    columns = np.split(np.concatenate(solved), np.cumsum(n_each)[:-1])
    return [values.reshape(n_draws, -1) for values in columns]


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


# --- nodes by local effects -----------------------------------------------------------------------


@dataclass(frozen=True)
class NodeFacts:
    """Rows of one node, their loss, and whether splits of it are ``worth`` a search."""

    row_numbers: IntArray
    rows: search.RowsOfNode
    n_obs: float
    weight: float
    loss: float
    worth: bool
    least_rows: float


@dataclass(frozen=True)
class Problem:
    """One feature's rows, and what the loss of a set of them is.

    ``scale`` is the spread of the feature where the loss is in units of the output, else 1.
    """

    name: str
    rule: BinRule
    x: FloatArray
    g: FloatArray
    weight: FloatArray | None
    frequency: bool
    cell: NDArray[np.integer]
    edges: FloatArray
    error: float
    loss: str
    scale: float
    min_obs: float
    given_cells: bool
    gaps: NDArray[np.bool_]
    block: ClassVar[int] = BLOCK

    @property
    def width(self) -> FloatArray:
        """Widths of the cells."""
        return np.diff(self.edges)

    @property
    def ddof(self) -> int:
        """Of the variances in the loss."""
        return int(getattr(self.rule, "ddof", 1))

    @property
    def least_rows(self) -> float:
        """Minimum number of effective rows of a region, from the caller and the bin rule."""
        return max(self.min_obs, 2.0, float(getattr(self.rule, "min_obs", None) or 0)) * (1 - 1e-12)

    def node(self, row_numbers: IntArray, min_share: float) -> EffectNode:
        """The node with the rows ``row_numbers``."""
        x, g, cell = [part(values, row_numbers) for values in (self.x, self.g, self.cell)]
        w = None if self.weight is None else part(self.weight, row_numbers)
        n_cells = len(self.width)
        centre = search.means(cell, g, w, n_cells)
        place = x_centre = None
        if make_lines(self.rule):
            x_centre = search.means(cell, x, w, n_cells)
            place = search.away(x, x_centre, cell)
        effect = search.away(g, centre, cell)
        rows = search.NodeRows(cell, effect, w, self.frequency, centre, place, x_centre)
        cells = rows.moments(rows.table(np.zeros(len(row_numbers), dtype=np.uint8), 1))
        exact = resolution(cells.mean, self.error)
        starts, linear = self.starts(cells, exact)
        loss = float(self.loss_in(starts, linear, cells)[0])
        # Spread that the feature leaves unexplained, beside all there is: below that, and below
        # what the model's own rounding makes, there is nothing to be found.
        everything = union(cells)
        spread = float(variance(everything, self.ddof)[0])
        left = {
            "index": loss / float(self.width.sum()),
            "output": (loss / self.scale) ** 2,
            "variance": loss,
        }[self.loss]
        # Rounding of the distances from an average.
        loss = loss if left > exact**2 else 0.0
        worth = spread > (4 * exact) ** 2 and loss > 0 and left >= min_share * spread
        n_obs, weight = float(everything.n_obs[0]), float(everything.weight[0])
        return EffectNode(
            row_numbers, rows, n_obs, weight, loss, worth, self.least_rows,
            self, exact, starts[0], None if linear is None else linear[0],
        )  # fmt: skip

    def loss_in(
        self, starts: NDArray[np.bool_], linear: NDArray[np.bool_] | None, cells: Moments
    ) -> FloatArray:
        """Losses of many sets of rows in these bins, (problem, cell) -> (problem,)."""
        loss = search.loss(cells, self.width, starts, linear, kind=self.loss, ddof=self.ddof)
        return self.scale * loss

    def starts(
        self, cells: Moments, exact: float
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_] | None]:
        """Which cells begin a bin, and a linear one: (problem, cell)."""
        return starts_of(
            self.rule,
            cells,
            name=self.name,
            resolution=exact,
            edges=self.edges,
            equal=not self.given_cells,
            gaps=self.gaps,
        )


@dataclass(frozen=True)
class EffectNode(NodeFacts):
    """A node by local effects, with the cells that begin its bins, and which bins are linear."""

    rows: search.NodeRows
    problem: Problem
    resolution: float
    starts: NDArray[np.bool_]
    linear: NDArray[np.bool_] | None

    def losses(self, sums: FloatArray, *, in_bins: bool) -> FloatArray:
        """Losses of many sets of rows from their sums, (sum, problem, cell) -> (problem,)."""
        cells = self.rows.moments(sums)
        if in_bins:
            starts = np.broadcast_to(self.starts, cells.weight.shape)
            return self.problem.loss_in(starts, None, cells)
        return self.problem.loss_in(*self.problem.starts(cells, self.resolution), cells)

    def test(self) -> SplitTest:
        """The test in the bins of the node, which become cells: sums over fewer, without lines."""
        rows, width = self.rows.in_bins(self.starts), None
        if self.problem.loss == "index":
            width = np.add.reduceat(self.problem.width, np.flatnonzero(self.starts))
        return SplitTest(
            rows,
            self.least_rows,
            partial(search.studentised, rows, width=width, rounding=self.resolution),
            partial(search.studentised_degrees, rows, width=width),
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
    cell = cells_of_rows(axis, x, np.int16 if n_cells < 2**15 else np.int32)
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
        name, rule, x, g, weight, rows.frequency, cell, edges, error, loss, scale,
        min_obs, isinstance(axis, Variable), np.bincount(cell, minlength=n_cells) == 0,
    )  # fmt: skip


def _spread(x: FloatArray, weight: FloatArray | None, *, frequency: bool) -> float:
    """Standard deviation of a feature, math [6]."""
    if weight is None:
        return float(np.std(x, ddof=1))
    weights = {"fweights": weight.astype(np.int64)} if frequency else {"aweights": weight}
    return float(np.sqrt(np.cov(x, **weights)))


@dataclass(frozen=True)
class CurveProblem:
    """One feature's ICE curves, and what the loss of a set of them is."""

    x: FloatArray
    curves: FloatArray
    weight: FloatArray | None
    frequency: bool
    error: float
    min_obs: float

    @property
    def block(self) -> int:
        """Block size: all rows may exchange their conditioning values."""
        return len(self.x)

    def node(self, row_numbers: IntArray, min_share: float) -> CurveNode:  # noqa: ARG002
        """The node with these rows: all that differs between its curves is left in it."""
        weight = None if self.weight is None else self.weight[row_numbers]
        rows = search.NodeCurves.from_curves(
            self.curves[row_numbers], weight, frequency=self.frequency
        )
        sums = rows.table(np.zeros(len(row_numbers), dtype=np.int64), 1)
        loss, total = float(search.curve_loss(sums)[0]), float(rows.total_weight(sums)[0])
        n_obs = total if self.frequency else float(len(row_numbers))
        least_rows = max(self.min_obs, 2.0) * (1 - 1e-12)
        worth = loss > (4 * self.error) ** 2
        return CurveNode(row_numbers, rows, n_obs, total, loss, worth, least_rows)


class CurveNode(NodeFacts):
    """A node by curves, which have no bins."""

    def losses(self, sums: FloatArray, *, in_bins: bool) -> FloatArray:  # noqa: ARG002
        """Losses of many sets of rows."""
        return search.curve_loss(sums)

    def test(self) -> SplitTest:
        """The test of the curves as they are."""
        return SplitTest(
            self.rows, self.least_rows, search.studentised_curves, search.degrees_of_curves
        )


# What a tree is grown from, and its nodes.
Searchable: TypeAlias = Problem | CurveProblem
Node: TypeAlias = EffectNode | CurveNode
