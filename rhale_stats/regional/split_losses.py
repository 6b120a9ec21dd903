"""Losses and statistics of all candidate splits of a node, in few batches (math [37], [39])."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from rhale_stats.arrays import regions as search
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.regional.losses import Node, R, Searchable
from rhale_stats.regional.splits import SplitCandidates

# Number of bin problems that are solved at once: some ten megabytes.
PROBLEMS = 2048


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
    return _of_splits(problem.statistics, problem.least_rows, node, rows, tried)


def split_degrees(
    problem: Searchable[R], node: Node[R], rows: R, tried: Sequence[SplitCandidates]
) -> list[FloatArray]:
    """Degrees of freedom of the denominators of these; -inf if not allowed."""
    return _of_splits(problem.degrees, problem.least_rows, node, rows, tried)


def _of_splits(
    statistic: Callable[[search.Children, R, Node[R]], FloatArray],
    least: float,
    node: Node[R],
    rows: R,
    tried: Sequence[SplitCandidates],
) -> list[FloatArray]:
    statistics = [np.full(candidates.n_splits, -np.inf) for candidates in tried]
    waiting: list[tuple[FloatArray, search.Children]] = []

    def solve() -> None:
        # All at once: with few rows the calls take longer than the sums.
        left, right = (
            np.concatenate([getattr(children, side) for _, children in waiting], axis=1)
            for side in ("left", "right")
        )
        enough = np.minimum(rows.effective_rows(left), rows.effective_rows(right))
        values = np.where(
            enough >= least, statistic(search.Children(0, left, right), rows, node), -np.inf
        )
        begin = 0
        for out, children in waiting:
            n = children.left.shape[1]
            out[children.first : children.first + n] = values[begin : begin + n]
            begin += n
        waiting.clear()

    for candidates, out in zip(tried, statistics, strict=True):
        for children in _children(candidates, rows):
            waiting.append((out, children))
            if sum(each.left.shape[1] for _, each in waiting) >= PROBLEMS // 2:
                solve()
    if waiting:
        solve()
    return statistics


def _children(candidates: SplitCandidates, rows: search.Tabled) -> Iterator[search.Children]:
    if not candidates.n_splits:
        return iter(())
    if candidates.subsets is None:
        return search.threshold_children(candidates.codes, candidates.n_codes, rows)
    return search.subset_children(candidates.codes, candidates.subsets, rows)


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
