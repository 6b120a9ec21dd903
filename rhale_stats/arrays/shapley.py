"""Shapley values over a background: of trees exactly, of any model from permutations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy import sparse
from scipy.special import gammaln

from rhale_stats.arrays.moments import FloatArray, IntArray

# Conditions of a leaf up to which values of all pairs of patterns are kept.
TABLE_BITS = 6
# Rows times conditions that are looked at together.
CELLS = 1 << 21

# --- trees ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tree:
    """A binary tree of thresholds: rows with x <= threshold go left, those without x to default.

    Arrays over nodes, ``value`` (node, output). Children of a leaf are negative.
    """

    left: IntArray
    right: IntArray
    default: IntArray
    feature: IntArray
    threshold: FloatArray
    value: FloatArray

    def boxes(self) -> Iterator[tuple[int, dict[int, Sides]]]:
        """Leaves, and by feature between which thresholds they hold values, and missing ones.

        A threshold is NaN where there is none, so that no comparison excludes a value.
        """
        waiting: list[tuple[int, dict[int, Sides]]] = [(0, {})]
        columns = self.left, self.right, self.default, self.feature, self.threshold
        left, right, default, feature, threshold = [column.tolist() for column in columns]
        while waiting:
            node, box = waiting.pop()
            if left[node] < 0:
                yield node, box
                continue
            cut, to_left = threshold[node], default[node] == left[node]
            low, high, missing = box.get(feature[node], (np.nan, np.nan, True))
            # Comparisons with NaN are false.
            above, below = low if low > cut else cut, high if high < cut else cut
            sides = (low, below, missing and to_left), (above, high, missing and not to_left)
            for child, side in zip((left[node], right[node]), sides, strict=True):
                waiting.append((child, {**box, feature[node]: side}))


# Lower and upper threshold, and whether missing values are inside.
Sides: TypeAlias = tuple[float, float, bool]


def add_trees(
    total: FloatArray, trees: Iterable[Tree], rows: FloatArray, background: FloatArray
) -> None:
    """math [88]: add the Shapley values of trees to ``total`` (row, column, output).

    A leaf is a product of conditions, one a feature. Rows that meet the same ones have the same
    values, so that all pairs of rows are compared by which conditions both meet. Leaves with
    equally many conditions are taken together.
    """
    alike: dict[int, list[tuple[dict[int, Sides], FloatArray]]] = {}
    for tree in trees:
        for leaf, box in tree.boxes():
            alike.setdefault(len(box), []).append((box, tree.value[leaf]))
    alike.pop(0, None)  # trees of one leaf
    for n_met, leaves in alike.items():
        at_once = max(CELLS // (n_met * (len(rows) + len(background))), 1)
        for begin in range(0, len(leaves), at_once):
            boxes, values = zip(*leaves[begin : begin + at_once], strict=True)
            _add_leaves(total, boxes, np.array(values), rows, background)


def _add_leaves(
    total: FloatArray,
    boxes: Sequence[dict[int, Sides]],
    value: FloatArray,
    rows: FloatArray,
    background: FloatArray,
) -> None:
    """Add leaves with equally many conditions, and the value (leaf, output) of each."""
    column = np.array([[*box] for box in boxes]).T
    sides = np.array([[*box.values()] for box in boxes]).T
    mine, others = [_patterns(column, sides, table) for table in (rows, background)]
    (n_met, n_leaves), n = column.shape, 1 << len(column)
    if n_met <= TABLE_BITS:
        first = n * np.arange(n_leaves)[:, None]
        share = np.bincount((first + others).ravel(), minlength=n * n_leaves) / len(background)
        # (condition, leaf, pattern), and at the patterns of the rows
        of_pattern = share.reshape(n_leaves, n) @ _pairs(n_met)
        each = of_pattern.reshape(n_met, -1).take(first + mine, axis=1)
    else:
        each = np.empty((n_met, *mine.shape))
        for leaf in range(n_leaves):
            patterns, which = np.unique(mine[leaf], return_inverse=True)
            counted = np.unique(others[leaf], return_counts=True)
            each[:, leaf] = leaf_values(patterns, *counted, n_met).T[:, which]
    # Sums over the leaves of a column, times their values.
    places, number = np.unique(column, return_inverse=True)
    every = np.arange(column.size)
    for output, of_leaf in enumerate(value.T):
        factor = np.broadcast_to(of_leaf, column.shape).ravel()
        sums = sparse.csr_array((factor, (number.ravel(), every)), (len(places), column.size))
        total[:, places, output] += (sums @ each.reshape(column.size, -1)).T


def _patterns(column: IntArray, sides: FloatArray, rows: FloatArray) -> IntArray:
    """Conditions that every row meets in every leaf, (leaf, row), as the bits of a number."""
    by_column = np.ascontiguousarray(rows.T)
    out = np.zeros((column.shape[1], len(rows)), dtype=np.int64)
    with np.errstate(invalid="ignore"):
        for bit, (of_leaf, low, high, missing) in enumerate(zip(column, *sides, strict=True)):
            x = by_column[of_leaf]
            met = ~((x <= low[:, None]) | (x > high[:, None]))
            met &= ~np.isnan(x) | (missing[:, None] > 0)
            out |= met.astype(np.int64) << bit
    return out


@lru_cache
def _pairs(n_met: int) -> FloatArray:
    """`leaf_values` of all patterns with one background row, (condition, its pattern, pattern)."""
    every = np.arange(1 << n_met)
    each = [leaf_values(every, every[[other]], every[1:2], n_met) for other in every]
    return np.ascontiguousarray(np.transpose(each, (2, 0, 1)))


def leaf_values(mine: IntArray, others: IntArray, counts: IntArray, n_met: int) -> FloatArray:
    """Shapley values of the conditions of a leaf of value 1, (pattern, condition).

    ``mine`` are the patterns of rows, ``others`` those of the background, with their counts.
    """
    bits = 1 << np.arange(n_met)
    has, had = [patterns[:, None] & bits > 0 for patterns in (mine, others)]
    # A condition that neither row meets leaves the leaf out of reach, whatever is replaced.
    reached = (mine[:, None] | others) == (1 << n_met) - 1
    only_other = n_met - has.sum(axis=1)[:, None]
    only_own = np.bitwise_count(mine[:, None] & ~others).astype(np.int64)
    share = reached * (counts / counts.sum())
    either = only_own + only_other
    # (a - 1)! b! / (a + b)! for a condition that the row meets alone; b and a change places for one
    # that the other meets alone.
    log_sum = gammaln(np.maximum(either, 1) + 1)
    up = np.where(
        only_own > 0,
        np.exp(gammaln(np.maximum(only_own, 1)) + gammaln(only_other + 1) - log_sum),
        0.0,
    )
    down = np.where(
        only_other > 0,
        np.exp(gammaln(only_own + 1) + gammaln(np.maximum(only_other, 1)) - log_sum),
        0.0,
    )
    gained = (share * up) @ ~had
    lost = (share * down).sum(axis=1)
    return np.asarray(np.where(has, gained, -lost[:, None]))


# --- permutations ---------------------------------------------------------------------------------


class Walks(NamedTuple):
    """Orders in which the columns of a row take the place of those of another, (row, pair, column).

    Every order is walked forwards and backwards.
    """

    rank: IntArray

    @classmethod
    def drawn(cls, n_rows: int, n_pairs: int, n_columns: int, rng: np.random.Generator) -> Walks:
        """Random orders."""
        return cls(np.argsort(rng.random((n_rows, n_pairs, n_columns)), axis=-1))

    def steps(self, rows: FloatArray, others: FloatArray) -> FloatArray:
        """Rows between both ends of the walks, (row, pair, direction, step, column).

        ``others`` (pair, column) are where they start.
        """
        n = self.rank.shape[-1]
        step = np.arange(1, n)[:, None]
        changed = np.stack(
            [self.rank[..., None, :] < step, self.rank[..., None, :] >= n - step], axis=2
        )
        return np.where(changed, rows[:, None, None, None, :], others[None, :, None, None, :])

    def values(self, inner: FloatArray, first: FloatArray, last: FloatArray) -> FloatArray:
        """math [89]: the mean change at each column's turn, (row, pair, column, output).

        From the output at `steps` (row, pair, direction, step, output), at the starts (pair,
        output) and at the rows themselves (row, output).
        """
        shape = (*inner.shape[:3], 1, inner.shape[-1])
        path = np.concatenate(
            [
                np.broadcast_to(first[None, :, None, None], shape),
                inner,
                np.broadcast_to(last[:, None, None, None], shape),
            ],
            axis=3,
        )
        change = np.diff(path, axis=3)
        n = self.rank.shape[-1]
        forwards, backwards = [
            np.take_along_axis(change[:, :, side], turn[..., None], axis=2)
            for side, turn in enumerate((self.rank, n - 1 - self.rank))
        ]
        return np.asarray((forwards + backwards) / 2)


def mean_of_pairs(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean over the pairs of walks, (row, column, output), and its Monte-Carlo standard error."""
    n = values.shape[1]
    error = np.full((values.shape[0], *values.shape[2:]), np.nan)
    if n > 1:
        error = values.std(axis=1, ddof=1) / np.sqrt(n)
    return values.mean(axis=1), error
