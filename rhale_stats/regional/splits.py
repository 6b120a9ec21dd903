"""Candidate splits of each column."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rhale_stats.arrays.binning import bin_edges, is_resolved, regular_axis
from rhale_stats.arrays.moments import BLOCK_ROWS, FloatArray, IntArray, cell_index, part
from rhale_stats.arrays.regions import all_subsets, one_against_rest
from rhale_stats.regional.columns import Conditioning
from rhale_stats.regional.conditions import (
    ABOVE,
    EQUAL,
    IN,
    OR_MISSING,
    UNEQUAL,
    UP_TO,
    Condition,
    levels_text,
    readable,
    threshold_text,
)
from rhale_stats.schema.levels import MISSING_LEVEL

THRESHOLDS = ("quantile", "equal_width", "exact")
# Up to this number of levels every subset is tried; beyond it, each level against the rest.
SUBSET_LEVELS = 12
# Up to this number of thresholds, direct comparison is faster than a search.
COMPARED = 64
# Rows that stay in the cache of a processor while they are compared.
BLOCK_COMPARED = 1 << 13


# --- candidate splits ----------------------------------------------------------------------------


class SplitCandidates(NamedTuple):
    """Splits of one column in one node: the code of every row, and what each split takes left.

    Without ``subsets``, split k takes codes up to k. ``thresholds`` are those of numbers,
    ``levels`` the numbers of the levels that the codes stand for.
    """

    codes: NDArray[np.integer]
    n_codes: int
    thresholds: FloatArray | None = None
    levels: NDArray[Any] | None = None
    subsets: NDArray[np.bool_] | None = None

    @property
    def n_splits(self) -> int:
        """How many splits there are."""
        return self.n_codes - 1 if self.subsets is None else len(self.subsets)

    def goes_left(self, split: int) -> NDArray[np.bool_]:
        """Rows on the left of one split."""
        if self.subsets is None:
            return np.asarray(self.codes <= split)
        return np.asarray(self.subsets[split][self.codes])

    def take(self, rows: IntArray) -> SplitCandidates:
        """The same splits of other rows."""
        return self._replace(codes=self.codes[rows])


def _smallest(n_codes: int) -> type[np.integer]:
    return np.uint8 if n_codes <= 256 else np.int32


def _small(codes: NDArray[np.integer], n_codes: int) -> NDArray[np.integer]:
    return codes.astype(_smallest(n_codes))


def candidates_of(
    column: Conditioning, thresholds: str, n_thresholds: int, counts: FloatArray | None = None
) -> SplitCandidates:
    """The splits that are tried; ``counts`` say how often a row occurs."""
    if column.kind != "numeric":
        present, codes = np.unique(column.values, return_inverse=True)
        n_codes = len(present)
        if column.kind == "ordinal":
            return SplitCandidates(_small(codes, n_codes), n_codes, levels=present)
        every = n_codes <= SUBSET_LEVELS
        subsets = np.zeros((0, n_codes), dtype=bool)
        if n_codes > 1:
            subsets = (all_subsets if every else one_against_rest)(n_codes)
        return SplitCandidates(_small(codes, n_codes), n_codes, levels=present, subsets=subsets)
    values = column.values
    finite = np.isfinite(values)
    if not finite.all():
        finite_values, finite_counts = values[finite], None if counts is None else counts[finite]
        cuts = np.unique(finite_values)
        if thresholds != "exact" and len(cuts) > 1:
            cuts = np.append(quantile_cuts(finite_values, n_thresholds, finite_counts), cuts[-1])
        return thresholds_at(values, cuts)
    low, high = float(values.min()), float(values.max())
    if low == high:
        return SplitCandidates(np.zeros(len(values), dtype=np.uint8), 1, np.zeros(0))
    if thresholds == "exact" or not is_resolved(low, high, n_thresholds + 1):
        return thresholds_at(values, np.unique(values)[:-1])
    if thresholds == "equal_width":
        # One compiled pass; an edge is the smallest number on its right.
        axis = regular_axis(low, high, n_thresholds + 1)
        codes = np.empty(len(values), dtype=_smallest(n_thresholds + 1))
        for begin in range(0, len(values), BLOCK_ROWS):
            block = slice(begin, begin + BLOCK_ROWS)
            codes[block] = np.minimum(cell_index(axis, values[block]), n_thresholds)
        edges = bin_edges(axis, np.arange(n_thresholds + 1), low, high)[1:-1]
        return SplitCandidates(codes, n_thresholds + 1, np.nextafter(edges, -np.inf))
    return thresholds_at(values, quantile_cuts(values, n_thresholds, counts))


def thresholds_at(values: FloatArray, cuts: FloatArray) -> SplitCandidates:
    """Splits at given thresholds: a value on a threshold is on its left."""
    n_codes = len(cuts) + 1
    if len(cuts) > COMPARED:
        codes = np.searchsorted(cuts, values, side="left")
        return SplitCandidates(_small(codes, n_codes), n_codes, cuts)
    above = np.zeros(len(values), dtype=np.uint8)
    for begin in range(0, len(values), BLOCK_COMPARED):
        block = slice(begin, begin + BLOCK_COMPARED)
        for cut in cuts:
            above[block] += values[block] > cut
    return SplitCandidates(above, n_codes, cuts)


def quantile_cuts(values: FloatArray, n: int, counts: FloatArray | None = None) -> FloatArray:
    """Distinct values at the k / (n + 1) quantiles, without the largest: it would split nothing."""
    k = np.arange(1, n + 1)
    if counts is None:
        # Sorting is compiled for vectors of numbers, and faster than looking for many ranks.
        ordered = np.sort(values)
        rank = np.maximum(-(-k * len(values) // (n + 1)) - 1, 0)
    else:
        order = np.argsort(values)
        ordered, below = values[order], np.cumsum(counts[order])
        rank = np.searchsorted(below * (n + 1), k * below[-1])
    cuts = np.unique(ordered[rank])
    return np.asarray(cuts[cuts < ordered[-1]])


def sides_of(
    column: Conditioning,
    candidates: SplitCandidates,
    split: int,
    rows: IntArray,
    judge: IntArray | None = None,
) -> tuple[Condition, Condition]:
    """Left and right of a split of the ``rows`` of a column.

    Levels that occur only in rows of ``judge`` join their neighbours; without an order they go
    right.
    """
    left = candidates.goes_left(split)
    if column.kind == "numeric":
        values = part(column.values, rows)
        below = float(np.max(values, where=left, initial=-np.inf))
        above = float(np.min(values, where=~left, initial=np.inf))
        cut = above if np.isinf(above) else readable(below, above)
        gone = (MISSING_LEVEL,) if np.isinf(values).any() else ()
        cut_text, name = threshold_text(cut, column.units), column.name
        texts = f"{name} ≤ {cut_text}", f"{name} > {cut_text}{OR_MISSING if gone else ''}"
        if np.isinf(cut):
            texts = f"{name} is not missing", f"{name} is missing"
        return (
            Condition(name, UP_TO, texts[0], cut, units=column.units),
            Condition(name, ABOVE, texts[1], cut, gone, column.units),
        )
    if candidates.levels is None:
        raise AssertionError("a column of levels has them")
    inside = (
        candidates.subsets[split]
        if candidates.subsets is not None
        else np.arange(candidates.n_codes) <= split
    )
    levels = (
        candidates.levels if judge is None else np.union1d(candidates.levels, column.values[judge])
    )
    is_left = np.isin(levels, candidates.levels[inside])
    if column.kind == "ordinal":
        is_left = levels <= candidates.levels[inside].max()
    return _side(column, levels[is_left], levels[~is_left]), _side(
        column, levels[~is_left], levels[is_left]
    )


def _side(column: Conditioning, codes: NDArray[Any], rest: NDArray[Any]) -> Condition:
    """The side that keeps these levels, in its shortest form."""
    levels = tuple(column.levels[level] for level in codes)
    order = column.levels if column.kind == "ordinal" else ()
    every = len(codes) + len(rest) == len(column.levels) and MISSING_LEVEL not in column.levels
    if len(codes) > 1 and len(rest) == 1 and every and not order:
        gone = (column.levels[rest[0]],)
        return Condition(column.name, UNEQUAL, f"{column.name} ≠ {gone[0]}", levels=gone)
    operator = EQUAL if len(codes) == 1 else IN
    return Condition(column.name, operator, levels_text(column.name, levels, order), levels=levels)
