"""Answers of tree ensembles where columns of the rows move, read from the leaves.

A leaf is a box: a set of values of every input. With one bit a leaf, the boxes that hold a value of
an input are a number, which a table has for every interval between thresholds. The bits that a row
has in all of its inputs but those that move are the leaves that it can reach; the one of these that
has the bit of the moved values as well is the leaf that answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from operator import iand
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rhale_stats.arrays.moments import FloatArray, IntArray

Answer: TypeAlias = Callable[[FloatArray], FloatArray]
# Leaves in one number; larger trees take several.
BITS = 64
# Rows that are answered together, and those whose curves stay in the cache of a processor.
ROWS, CACHED_ROWS = 1 << 15, 1 << 11
# Nodes times intervals that are looked at together.
CELLS = 1 << 24
# The bits of all leaves, and of a tree that is a leaf.
ALL, FIRST = np.full(1, np.iinfo(np.uint64).max), np.ones(1, dtype=np.uint64)


@dataclass(frozen=True)
class LeafTree:
    """The nodes of a tree: the input that each splits on, -1 of leaves, and where values go.

    ``value`` (node, width) is what a leaf adds, to sums from number ``column`` on. Nodes in
    ``codes`` split categories: those listed go left, or right if the second entry is False.
    """

    feature: IntArray
    threshold: FloatArray
    left: IntArray
    right: IntArray
    missing_left: NDArray[Any]
    value: FloatArray
    column: int = 0
    codes: Mapping[int, tuple[IntArray, bool]] = field(default_factory=dict)


@dataclass(frozen=True)
class Trees:
    """Trees of a model, and how its answers are made of the sums of their leaves.

    ``start`` are the sums without trees, ``inputs`` makes an array (row, input) of rows as the
    model gets them, ``names`` are those of the columns that it takes by name. ``parts`` are the
    numbers of the inputs that each column becomes, None where it is an input itself. Values go left
    up to the threshold, or below it if ``strict``.
    """

    trees: Sequence[LeafTree]
    start: FloatArray
    inputs: Callable[[Any], FloatArray]
    answer: Answer | None = None
    names: Sequence[str] | None = None
    parts: Sequence[IntArray] | None = None
    strict: bool = False


@dataclass(frozen=True)
class Coefficients:
    """A linear predictor, ``coefficients`` (sum, input), and the other fields as in `Trees`."""

    coefficients: FloatArray
    start: FloatArray
    inputs: Callable[[Any], FloatArray]
    answer: Answer | None = None
    names: Sequence[str] | None = None
    parts: Sequence[IntArray] | None = None


class LeafTable:
    """Leaves of trees by the intervals of every input, from which rows are answered."""

    source = "leaves of its trees"

    def __init__(self, model: Trees) -> None:
        trees = model.trees
        self._start, self._strict = np.asarray(model.start, dtype=np.float64), model.strict
        self._begins = np.cumsum([0, *[len(tree.feature) for tree in trees]])
        first = np.repeat(self._begins[:-1], np.diff(self._begins))
        names = ("feature", "threshold", "left", "right", "missing_left", "value")
        every = {name: np.concatenate([getattr(tree, name) for tree in trees]) for name in names}
        self._feature, self._threshold = every["feature"].astype(np.intp), every["threshold"]
        self._left, self._right = every["left"] + first, every["right"] + first
        self._missing_left = every["missing_left"].astype(bool)
        self._codes = {
            int(begin) + node: codes
            for begin, tree in zip(self._begins[:-1], trees, strict=True)
            for node, codes in tree.codes.items()
        }
        # Where the leaves of a tree are among the bits: it has whole numbers for itself.
        is_leaf = self._feature < 0
        n_leaves = np.add.reduceat(is_leaf.astype(np.intp), self._begins[:-1])
        n_words = -(-n_leaves // BITS)
        before = BITS * (np.cumsum(n_words) - n_words) - (np.cumsum(n_leaves) - n_leaves)
        self._slot = np.cumsum(is_leaf) - 1 + np.repeat(before, np.diff(self._begins))
        word, bit = np.divmod(self._slot[is_leaf], BITS)
        # Without any bit the value is 0: only one of the numbers of a tree has the leaf.
        self._value = np.zeros((n_words.sum(), BITS + 1, every["value"].shape[1]))
        self._value[word, bit + 1] = every["value"][is_leaf]
        self._column = np.repeat([tree.column for tree in trees], n_words)
        used = [np.unique(tree.feature[tree.feature >= 0]).tolist() for tree in trees]
        self._used = [used[number] for number in np.repeat(np.arange(len(trees)), n_words)]
        self._levels = {int(self._feature[node]) for node in self._codes}
        self._cuts = [self._cuts_of(number) for number in range(int(self._feature.max()) + 1)]

    @property
    def n_bytes(self) -> int:
        """Size of the bits of all intervals."""
        return 8 * len(self._value) * sum(len(cuts) + 2 for cuts in self._cuts)

    def _cuts_of(self, number: int) -> FloatArray:
        """Thresholds of an input, or numbers of the categories that nodes list."""
        nodes = np.flatnonzero(self._feature == number)
        if number in self._levels:
            most = max(int(self._codes[node][0].max(initial=0)) for node in nodes.tolist())
            return np.arange(most + 1.0)
        return np.unique(self._threshold[nodes])

    def intervals(self, number: int, x: FloatArray) -> IntArray:
        """Intervals of values of an input; the last is that of missing ones."""
        if number >= len(self._cuts):
            return np.zeros(len(x), dtype=np.intp)  # no tree splits on it
        cuts = self._cuts[number]
        if number in self._levels:
            code = np.trunc(x)
            place = np.where((code >= 0) & (code < len(cuts)), code, len(cuts)).astype(np.intp)
        else:
            place = np.searchsorted(cuts, x, side="right" if self._strict else "left")
        return np.where(np.isnan(x), len(cuts) + 1, place)

    @cached_property
    def _masks(self) -> list[NDArray[np.uint64]]:
        """Bits of the leaves that hold the values of an interval, (word, interval), by input."""
        out = []
        for number, cuts in enumerate(self._cuts):
            part = self._begins[:-1] // max(CELLS // (len(cuts) + 2), 1)
            ends = [*(np.flatnonzero(np.diff(part)) + 1), len(part)]
            parts = zip([0, *ends[:-1]], ends, strict=True)
            out.append(np.concatenate([self._masks_of(number, *some) for some in parts]))
        return out

    def _masks_of(self, number: int, begin: int, end: int) -> NDArray[np.uint64]:
        """Those of the trees from ``begin`` to ``end``."""
        first, last = self._begins[[begin, end]]
        nodes, n_intervals = self._begins[begin:end], len(self._cuts[number]) + 2
        inside = np.ones((last - first, n_intervals), dtype=bool)
        while len(nodes):
            nodes = nodes[self._feature[nodes] >= 0]
            left, right = self._left[nodes], self._right[nodes]
            inside[left - first] = inside[right - first] = inside[nodes - first]
            splits = self._feature[nodes] == number
            goes_left = self._goes_left(number, nodes[splits])
            inside[left[splits] - first] &= goes_left
            inside[right[splits] - first] &= ~goes_left
            nodes = np.concatenate([left, right])
        is_leaf = self._feature[first:last] < 0
        slot = self._slot[first:last][is_leaf]
        slot -= slot[0]
        bits = np.zeros((-(-(slot[-1] + 1) // BITS) * BITS, n_intervals), dtype=bool)
        bits[slot] = inside[is_leaf]
        packed = np.packbits(bits, axis=0, bitorder="little").reshape(-1, BITS // 8, n_intervals)
        return np.ascontiguousarray(packed.transpose(0, 2, 1)).view("<u8")[..., 0]

    def _goes_left(self, number: int, nodes: IntArray) -> NDArray[np.bool_]:
        """Whether nodes send the values of every interval to the left, (node, interval)."""
        cuts, threshold = self._cuts[number], self._threshold[nodes, None]
        if number in self._levels:
            left = np.empty((len(nodes), len(cuts) + 1), dtype=bool)
            for row, node in enumerate(nodes.tolist()):
                codes, listed_left = self._codes[node]
                left[row] = np.isin(np.arange(len(cuts) + 1), codes) == listed_left
        elif self._strict:
            left = np.append(-np.inf, cuts) < threshold
        else:
            left = np.append(cuts, np.inf) <= threshold
        return np.column_stack([left, self._missing_left[nodes]])

    def sums(
        self,
        intervals: Sequence[IntArray],
        moved: Mapping[int, IntArray],
        n_versions: int,
        choice: IntArray | None = None,
    ) -> FloatArray:
        """Sums over trees for rows by their intervals, at versions of the inputs that are moved.

        Shape (sum, row, version); with ``choice`` (row, place), numbers of versions, (sum, row,
        place).
        """
        n_rows = len(intervals[0])
        n_places = n_versions if choice is None else choice.shape[1]
        out = np.zeros((len(self._start), n_rows, n_places))
        for begin in range(0, n_rows, ROWS):
            rows = slice(begin, min(begin + ROWS, n_rows))
            some = None if choice is None else choice[rows]
            self._add(out[:, rows], [column[rows] for column in intervals], moved, some)
        return out

    def _add(
        self,
        out: FloatArray,
        intervals: Sequence[IntArray],
        moved: Mapping[int, IntArray],
        choice: IntArray | None,
    ) -> None:
        """Add the leaves of all trees."""
        n_rows = out.shape[1]
        level = np.repeat(self._start[:, None], n_rows, axis=1)
        room = np.empty((min(CACHED_ROWS, n_rows), out.shape[2]))
        for word, used in enumerate(self._used):
            masks = [(number, self._masks[number][word]) for number in used]
            reach = _common([mask[intervals[n]] for n, mask in masks if n not in moved])
            pieces = _common([mask[moved[n]] for n, mask in masks if n in moved])
            # Rows share few sets of leaves, and versions few pieces: found without a sort.
            row, patterns = pd.factorize(ALL if reach is None else reach)
            version, parts = pd.factorize(ALL if pieces is None else pieces)
            both = patterns[:, None] & (parts if used else FIRST)
            # The exponent of a power of 2 is the number of its bit and 1, that of 0 is 0.
            values = self._value[word][np.frexp(both.astype(np.float64))[1]]
            for number in range(values.shape[2]):
                column, table = self._column[word] + number, np.array(values[..., number])
                if pieces is None:
                    level[column] += table[row, 0]
                elif reach is None:
                    out[column] += table[0, version if choice is None else version[choice]]
                elif choice is None:
                    _add_rows(out[column], table[:, version], row, room)
                else:
                    out[column] += table.take(row[:, None] * table.shape[1] + version[choice])
        out += level[..., None]


def _common(masks: list[NDArray[np.uint64]]) -> NDArray[np.uint64] | None:
    """Bits of all masks; None of none."""
    return reduce(iand, masks) if masks else None


def _add_rows(out: FloatArray, table: FloatArray, row: IntArray, room: FloatArray) -> None:
    """Add rows of a table, by their numbers, in parts that stay in the cache."""
    for begin in range(0, len(row), len(room)):
        some = row[begin : begin + len(room)]
        np.take(table, some, axis=0, out=room[: len(some)], mode="clip")
        out[begin : begin + len(some)] += room[: len(some)]
