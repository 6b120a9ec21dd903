"""Shapley values over a background: of trees exactly, of any model from permutations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from rhale_stats.arrays.moments import FloatArray, IntArray

BoolArray = NDArray[np.bool_]

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

    def leaves(self, *tables: FloatArray) -> Iterator[tuple[int, dict[int, list[BoolArray]]]]:
        """Leaves, and by feature which rows of every table meet all its conditions on the way."""
        waiting: list[tuple[int, dict[int, list[BoolArray]]]] = [(0, {})]
        while waiting:
            node, met = waiting.pop()
            if self.left[node] < 0:
                yield node, met
                continue
            feature = int(self.feature[node])
            to_left = [self._goes_left(node, rows[:, feature]) for rows in tables]
            for child, sides in (
                (self.left[node], to_left),
                (self.right[node], [~side for side in to_left]),
            ):
                before = met.get(feature)
                both = sides if before is None else list(map(np.logical_and, before, sides))
                waiting.append((int(child), {**met, feature: both}))

    def _goes_left(self, node: int, x: FloatArray) -> BoolArray:
        with np.errstate(invalid="ignore"):
            left = x <= self.threshold[node]
        if self.default[node] == self.left[node]:
            left |= np.isnan(x)
        return np.asarray(left)


def add_tree(total: FloatArray, tree: Tree, rows: FloatArray, background: FloatArray) -> None:
    """math [88]: add the Shapley values of one tree to ``total`` (row, column, output).

    A leaf is a product of conditions, one a feature. Rows that meet the same ones have the same
    values, so that all pairs of rows are compared by which conditions both meet.
    """
    for leaf, met in tree.leaves(rows, background):
        if not met:
            continue  # a tree of one leaf
        mine, others = [_pattern([each[side] for each in met.values()]) for side in (0, 1)]
        patterns, which = _distinct(mine, len(met))
        of_pattern = leaf_values(patterns, *np.unique(others, return_counts=True), len(met))
        for column, values in zip(met, of_pattern.T, strict=True):
            if values.any():
                total[:, column] += values[which, None] * tree.value[leaf]


def _pattern(met: list[BoolArray]) -> IntArray:
    """Conditions that every row meets, as the bits of a number."""
    out = np.zeros(len(met[0]), dtype=np.int64)
    for bit, condition in enumerate(met):
        out |= condition.astype(np.int64) << bit
    return out


def _distinct(patterns: IntArray, n_bits: int) -> tuple[IntArray, IntArray]:
    """Patterns that occur, and which each row has; without a sort where there can be few."""
    if n_bits > 12:
        return np.unique(patterns, return_inverse=True)
    occurs = np.flatnonzero(np.bincount(patterns))
    number = np.zeros(1 << n_bits, dtype=np.int64)
    number[occurs] = np.arange(len(occurs))
    return occurs, number[patterns]


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
