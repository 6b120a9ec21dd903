"""Answers of tree ensembles where columns of the rows move, read from the leaves.

A leaf is a box: a set of values of every input. With one bit a leaf, the boxes that hold a value of
an input are a number, which a table has for every interval between thresholds. The bits that a row
has in all of its inputs but those that move are the leaves that it can reach; the one of these that
has the bit of the moved values as well is the leaf that answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from itertools import pairwise
from operator import iand
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.parallel import cpus, in_threads

Answer: TypeAlias = Callable[[FloatArray], FloatArray]
# Leaves in one number; larger trees take several. What a float adds to an exponent, and its digits.
BITS, BIAS, DIGITS = 64, 1023, 52
# Rows that are answered together, and those whose curves stay in the cache of a processor.
ROWS, CACHED_ROWS = 1 << 16, 1 << 11
# With so many places of a row, or fewer, each is looked up by itself.
MAX_PLACES = 4
# Bytes of the leaves of all rows that are kept, and parts of the rows that go to threads.
MAX_LEAF_BYTES, BLOCKS_IN_THREADS = 1 << 28, 4
# Nodes times intervals that are looked at together.
CELLS = 1 << 24
# The bits of all leaves, and of the first.
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


class LeafRows(NamedTuple):
    """Rows as their intervals, by input, the leaf that each is in, by tree, and (sum, row).

    Without ``leaves``, which many rows in many trees would fill much memory with, they are found
    again.
    """

    intervals: Sequence[IntArray]
    leaves: Sequence[NDArray[Any]]
    totals: FloatArray


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
        self._values = [np.ascontiguousarray(tree.value[tree.feature < 0].T) for tree in trees]
        # The sums that each tree adds to.
        self._sums = [
            slice(tree.column, tree.column + len(values))
            for tree, values in zip(trees, self._values, strict=True)
        ]
        self._used = [np.unique(tree.feature[tree.feature >= 0]).tolist() for tree in trees]
        ends = np.cumsum([0, *n_words]).tolist()
        self._words = [slice(*pair) for pair in pairwise(ends)]
        self._levels = {int(self._feature[node]) for node in self._codes}
        # Thresholds of every input, or numbers of the categories that nodes list.
        self._cuts = []
        for number in range(int(self._feature.max()) + 1):
            nodes = np.flatnonzero(self._feature == number)
            cuts = np.unique(self._threshold[nodes])
            if number in self._levels:
                most = max(int(self._codes[node][0].max(initial=0)) for node in nodes.tolist())
                cuts = np.arange(most + 1.0)
            self._cuts.append(cuts)

    @property
    def n_bytes(self) -> int:
        """Size of the bits of all intervals."""
        return int(8 * self._words[-1].stop * sum(map(self._n_intervals, range(len(self._cuts)))))

    def _n_intervals(self, number: int) -> int:
        """Intervals of an input, with that of missing values."""
        return len(self._cuts[number]) + 2 if number < len(self._cuts) else 1

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
        return [
            self._of_levels(number) if number in self._levels else self._of_ranges(number)
            for number in range(len(self._cuts))
        ]

    def _descent(self, nodes: IntArray) -> Iterator[tuple[IntArray, IntArray, IntArray]]:
        """Nodes that split, with those on their left and right: level by level from the roots."""
        while len(nodes):
            nodes = nodes[self._feature[nodes] >= 0]
            left, right = self._left[nodes], self._right[nodes]
            yield nodes, left, right
            nodes = np.concatenate([left, right])

    def _of_ranges(self, number: int) -> NDArray[np.uint64]:
        """Those of an input whose intervals are in order: every leaf holds a range of them."""
        cuts, n_nodes = self._cuts[number], len(self._feature)
        low, high = np.zeros(n_nodes, dtype=np.intp), np.full(n_nodes, len(cuts) + 1)
        missing = np.ones(n_nodes, dtype=bool)
        for nodes, left, right in self._descent(self._begins[:-1]):
            for values in (low, high, missing):
                values[left] = values[right] = values[nodes]
            splits = self._feature[nodes] == number
            split, below, above = nodes[splits], left[splits], right[splits]
            first = np.searchsorted(cuts, self._threshold[split]) + 1  # that goes right
            high[below] = np.minimum(high[below], first)
            low[above] = np.maximum(low[above], first)
            missing[below] &= self._missing_left[split]
            missing[above] &= ~self._missing_left[split]
        masks = np.zeros((self._words[-1].stop, len(cuts) + 2), dtype=np.uint64)
        leaves = np.flatnonzero(self._feature < 0)
        word, bit = np.divmod(self._slot[leaves], BITS)
        bit = FIRST << bit.astype(np.uint64)
        # Every bit is added where its range begins and taken where it ends: none is carried.
        some = low[leaves] < high[leaves]
        np.add.at(masks, (word[some], low[leaves][some]), bit[some])
        np.subtract.at(masks, (word[some], high[leaves][some]), bit[some])
        masks = np.cumsum(masks, axis=1, dtype=np.uint64)
        masks[:, -1] = 0
        some = missing[leaves]
        np.add.at(masks, (word[some], -1), bit[some])
        return masks

    def _of_levels(self, number: int) -> NDArray[np.uint64]:
        """Those of an input of categories, by parts of the trees."""
        part = self._begins[:-1] // max(CELLS // self._n_intervals(number), 1)
        ends = [*(np.flatnonzero(np.diff(part)) + 1), len(part)]
        parts = zip([0, *ends[:-1]], ends, strict=True)
        return np.concatenate([self._of_levels_in(number, *some) for some in parts])

    def _of_levels_in(self, number: int, begin: int, end: int) -> NDArray[np.uint64]:
        """Those of the trees from ``begin`` to ``end``."""
        first, last = self._begins[[begin, end]]
        n_intervals = self._n_intervals(number)
        inside = np.ones((last - first, n_intervals), dtype=bool)
        for nodes, left, right in self._descent(self._begins[begin:end]):
            inside[left - first] = inside[right - first] = inside[nodes - first]
            splits = self._feature[nodes] == number
            # Whether nodes send categories, and missing values behind them, to the left.
            goes_left = np.zeros((splits.sum(), n_intervals), dtype=bool)
            for row, node in zip(goes_left, nodes[splits].tolist(), strict=True):
                codes, listed_left = self._codes[node]
                row[:-1] = np.isin(np.arange(n_intervals - 1), codes) == listed_left
            goes_left[:, -1] = self._missing_left[nodes[splits]]
            inside[left[splits] - first] &= goes_left
            inside[right[splits] - first] &= ~goes_left
        is_leaf = self._feature[first:last] < 0
        slot = self._slot[first:last][is_leaf]
        slot -= slot[0]
        bits = np.zeros((-(-(slot[-1] + 1) // BITS) * BITS, n_intervals), dtype=bool)
        bits[slot] = inside[is_leaf]
        packed = np.packbits(bits, axis=0, bitorder="little").reshape(-1, BITS // 8, n_intervals)
        return np.ascontiguousarray(packed.transpose(0, 2, 1)).view("<u8")[..., 0]

    def rows(self, x: FloatArray) -> LeafRows:
        """Rows of inputs (row, input) with the leaves that they are in."""
        intervals = [
            self.intervals(number, column).astype(np.min_scalar_type(self._n_intervals(number)))
            for number, column in enumerate(x.T)
        ]
        totals = np.repeat(self._start[:, None], len(x), axis=1)
        types = [np.min_scalar_type(values.shape[1]) for values in self._values]
        leaves = []
        if len(x) * sum(dtype.itemsize for dtype in types) <= MAX_LEAF_BYTES:
            leaves = [np.empty(len(x), dtype) for dtype in types]

        def of_block(rows: slice) -> None:
            columns = [column[rows].astype(np.intp) for column in intervals]
            for tree, values in enumerate(self._values):
                leaf = self._leaf(tree, columns)
                totals[self._sums[tree], rows] += values.take(leaf, axis=1)
                if leaves:
                    leaves[tree][rows] = leaf

        _in_blocks(of_block, len(x))
        return LeafRows(intervals, leaves, totals)

    def sums(
        self, rows: LeafRows, moved: Mapping[int, IntArray], choice: IntArray | None = None
    ) -> FloatArray:
        """Sums over trees for rows, at versions of the inputs that are moved, by their intervals.

        Shape (sum, row, version); with ``choice`` (row, place), numbers of versions, (sum, row,
        place).
        """
        n_places = max(map(len, moved.values())) if choice is None else choice.shape[1]
        out = np.repeat(rows.totals[..., None], n_places, axis=2)
        trees = [tree for tree, used in enumerate(self._used) if not moved.keys().isdisjoint(used)]

        def of_block(part: slice) -> None:
            columns = [column[part].astype(np.intp) for column in rows.intervals]
            places = None if choice is None else choice[part]
            level = np.zeros((len(out), part.stop - part.start))
            for tree in trees:
                sums = self._sums[tree]
                leaf = rows.leaves[tree][part] if rows.leaves else self._leaf(tree, columns)
                if places is not None and n_places <= MAX_PLACES:
                    self._add_changes(out[sums, part], tree, columns, leaf, moved, places)
                else:
                    level[sums] -= self._values[tree].take(leaf, axis=1)
                    self._add(out[sums, part], tree, columns, moved, places)
            if level.any():
                out[:, part] += level[..., None]

        _in_blocks(of_block, out.shape[1])
        return out

    def _add_changes(
        self,
        out: FloatArray,
        tree: int,
        intervals: Sequence[IntArray],
        leaf: NDArray[Any],
        moved: Mapping[int, IntArray],
        choice: IntArray,
    ) -> None:
        """Add what a tree changes by at the choices of every row; most rows stay in their leaf."""
        values, word, number = self._values[tree], None, leaf.astype(np.uint64)
        if values.shape[1] > BITS:
            word, number = np.divmod(leaf.astype(np.intp), BITS)
        bit = FIRST << number.astype(np.uint64, copy=False)
        moving = [number for number in self._used[tree] if number in moved]
        for place, version in enumerate(choice.T):
            stays = bit
            for number in moving:
                masks, interval = self._masks[number][self._words[tree]], moved[number][version]
                if word is not None:
                    interval += word * masks.shape[1]
                stays = stays & masks.ravel().take(interval)
            left = np.flatnonzero(stays == 0)
            if len(left):
                columns = {number: intervals[number][left] for number in self._used[tree]}
                columns |= {number: moved[number][version[left]] for number in moving}
                change = values.take(self._leaf(tree, columns), axis=1)
                out[:, left, place] += change - values.take(leaf[left], axis=1)

    def _add(
        self,
        out: FloatArray,
        tree: int,
        intervals: Sequence[IntArray],
        moved: Mapping[int, IntArray],
        choice: IntArray | None,
    ) -> None:
        """Add the leaves of a tree at all versions, or at many choices."""
        room = np.empty((min(CACHED_ROWS, out.shape[1]), out.shape[2]))
        moving = [number for number in self._used[tree] if number in moved]
        others = [number for number in self._used[tree] if number not in moved]
        for first, masks in self._words_of(tree, [*moving, *others]):
            columns = [*(moved[n] for n in moving), *(intervals[n] for n in others)]
            bits = [mask.take(column) for mask, column in zip(masks, columns, strict=True)]
            # Rows share few sets of leaves, and versions few pieces: found without a sort.
            version, parts = pd.factorize(reduce(iand, bits[: len(moving)]))
            row, patterns = None, ALL
            if others:
                row, patterns = pd.factorize(reduce(iand, bits[len(moving) :]))
            number = _number(patterns[:, None] & parts)
            for sums, values in zip(out, self._values[tree], strict=True):
                # The last is that of no leaf.
                table = np.append(values[first : first + BITS], 0.0)[number]
                if row is None:
                    sums += table[0, version if choice is None else version[choice]]
                elif choice is None:
                    # In parts that stay in the cache.
                    at_versions = table[:, version]
                    for begin in range(0, len(row), len(room)):
                        some = row[begin : begin + len(room)]
                        np.take(at_versions, some, axis=0, out=room[: len(some)], mode="clip")
                        sums[begin : begin + len(some)] += room[: len(some)]
                else:
                    sums += table.take(row[:, None] * table.shape[1] + version[choice])

    def _leaf(self, tree: int, intervals: Sequence[IntArray] | Mapping[int, IntArray]) -> IntArray:
        """Number of the leaf of every row, by its intervals."""
        used = self._used[tree]
        if not used:
            return np.zeros(len(intervals[0]), dtype=np.intp)
        leaf = np.full(1, -1)
        for first, masks in self._words_of(tree, used):
            bits = [mask.take(intervals[n]) for n, mask in zip(used, masks, strict=True)]
            number = _number(reduce(iand, bits))
            leaf = number if not first else np.where(number < 0, leaf, number + first)
        return leaf

    def _words_of(self, tree: int, inputs: Sequence[int]) -> Iterator[tuple[int, list[Any]]]:
        """First leaf of every word of a tree, and its bits in the intervals of some inputs."""
        words = self._words[tree]
        for word in range(words.start, words.stop):
            yield BITS * (word - words.start), [self._masks[number][word] for number in inputs]


def _number(bits: NDArray[np.uint64]) -> IntArray:
    """Number of the only bit that is set, -1 of none."""
    # The exponent of a power of 2 is that number and BIAS, that of 0 is 0.
    return np.asarray(np.maximum((bits.astype(np.float64).view(np.int64) >> DIGITS) - BIAS, -1))


def _in_blocks(of_block: Callable[[slice], None], n_rows: int) -> None:
    """All rows in parts that stay in the cache of a processor, and of many rows in threads."""
    blocks = [slice(begin, min(begin + ROWS, n_rows)) for begin in range(0, n_rows, ROWS)]
    in_threads(of_block, blocks, 1 if len(blocks) < BLOCKS_IN_THREADS else cpus())
