"""Rows in the order of one feature: stretches of a cell, and summaries of many rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rhale_stats.arrays.moments import FloatArray

# Outermost rows that are kept at either end, and the share of the kept rows that are the ends of
# the widest distances.
ENDS, APART = 50, 8
# Places of so many rows of a feature are kept, of each chunk its part: 8 MB, and 16 with weights.
MAX_PLACES, MIN_PLACES = 1 << 20, 1000


def most_of_chunk(n_chunks: int) -> int:
    """Number of places that are kept of each of so many chunks."""
    return max(MAX_PLACES // n_chunks, MIN_PLACES)


def together(
    chunks: Sequence[tuple[FloatArray, FloatArray | None]],
) -> tuple[FloatArray, FloatArray | None]:
    """Places of several chunks with their weights."""
    x = np.concatenate([values for values, _ in chunks])
    if all(weight is None for _, weight in chunks):
        return x, None
    weights = [np.ones(len(values)) if weight is None else weight for values, weight in chunks]
    return x, np.concatenate(weights)


def thinned(
    x: FloatArray, weight: FloatArray | None, most: int
) -> tuple[FloatArray, FloatArray | None]:
    """math [97]: about ``most`` of the values, sorted, with weights; all of them if they are few.

    A kept value has the weight of the values between it and the kept value below. The rank of
    any value changes by at most 2 / ``most`` of the rows. The ends of the widest distances are
    kept, so that gaps stay where they are.
    """
    order = sorting(x) if weight is not None else None
    x = np.sort(x) if order is None else x[order]
    sorted_weight = None if weight is None or order is None else weight[order]
    if len(x) <= most:
        return x, sorted_weight
    widest = np.argpartition(np.diff(x), -max(most // APART, 1))[-max(most // APART, 1) :]
    rows = np.concatenate(
        [
            np.arange(min(ENDS, len(x))),
            np.linspace(0, len(x) - 1, most // 2).astype(np.intp),
            widest,
            widest + 1,
            np.arange(max(len(x) - ENDS, 0), len(x)),
        ]
    )
    rows = np.unique(rows)
    up_to = rows + 1.0 if sorted_weight is None else np.cumsum(sorted_weight)[rows]
    return x[rows], np.diff(up_to, prepend=0.0)


# Rows that are handled at a time, so that their temporary columns stay in the cache.
BLOCK_ROWS = 1 << 15
# Fewer rows are sorted as they are.
PACKED_FROM = 1 << 12


def ascends(x: NDArray[np.float64]) -> bool:
    """Whether values are sorted; soon known if they are not."""
    for begin in range(0, len(x), BLOCK_ROWS):
        block = x[begin : begin + BLOCK_ROWS + 1]
        if not (block[1:] >= block[:-1]).all():
            return False
    return True


def sorting(
    x: NDArray[np.float64], out: tuple[NDArray[np.float64], NDArray[np.int64]] | None = None
) -> NDArray[np.intp]:
    """Row numbers in the order of the values, and of the rows where values are equal.

    As a stable ``argsort``, many times as fast: places on the axis, as whole numbers, are sorted
    together with the numbers of their rows. Values too close for this are nearly sorted then.
    ``out`` are columns for the values in this order, and for the numbers.
    """
    values, key = (np.empty(len(x)), np.empty(len(x), dtype=np.int64)) if out is None else out
    order = _packed_order(x, key) if len(x) >= PACKED_FROM else None
    if order is None:
        order = np.argsort(x, kind="stable")
    elif not ascends(x.take(order, out=values, mode="clip")):
        order = order.take(np.argsort(values, kind="stable"))
    else:
        return order
    if out is not None:
        x.take(order, out=values, mode="clip")
    return order


def _packed_order(x: NDArray[np.float64], key: NDArray[np.int64]) -> NDArray[np.intp] | None:
    """The order of the values but for very close ones; None if the range has no whole numbers."""
    n_bits, low = int(len(x) - 1).bit_length(), x.min()
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        per_unit = np.float64(2.0 ** (62 - n_bits)) / (x.max() - low)
    if not 0 < per_unit < np.inf:
        return None
    buffer, numbers = np.empty(BLOCK_ROWS), np.arange(BLOCK_ROWS)
    for begin in range(0, len(x), BLOCK_ROWS):
        block = key[begin : begin + BLOCK_ROWS]
        place = np.subtract(x[begin : begin + BLOCK_ROWS], low, out=buffer[: len(block)])
        np.multiply(place, per_unit, out=place)
        block[:] = place
        block <<= n_bits
        block += numbers[: len(block)] + begin
    key.sort()
    key &= (1 << n_bits) - 1
    return key


class Stretches(NamedTuple):
    """Cells with rows among ``n_cells``, and the first row of each of them."""

    cell: NDArray[np.intp]
    first: NDArray[np.intp]
    n_cells: int
    n_rows: int

    @classmethod
    def between(cls, edges: NDArray[np.float64], x: NDArray[np.float64]) -> Stretches:
        """Of cells closed on the left, the first and the last without end."""
        first = np.zeros(len(edges) - 1, dtype=np.intp)
        first[1:] = np.searchsorted(x, edges[1:-1])
        last = np.flatnonzero(np.diff(first, append=len(x)))
        return cls(last, first[last], len(first), len(x))

    @property
    def n_groups(self) -> int:
        """Number of cells with rows."""
        return len(self.cell)

    @property
    def n_obs(self) -> NDArray[np.float64]:
        """Number of rows of every cell with rows."""
        return np.diff(self.first, append=self.n_rows).astype(np.float64)

    def on_cells(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values of the cells with rows, (..., group), as values of all cells, 0 without rows."""
        out = np.zeros((*values.shape[:-1], self.n_cells))
        out[..., self.cell] = values
        return out

    def blocks(self) -> Iterator[Block]:
        """The rows in blocks, each with its cells."""
        begins = np.arange(0, self.n_rows, BLOCK_ROWS)
        ends = np.minimum(begins + BLOCK_ROWS, self.n_rows)
        low = np.searchsorted(self.first, begins, side="right") - 1
        high = np.searchsorted(self.first, ends)
        for begin, end, first, beyond in np.stack([begins, ends, low, high], axis=1).tolist():
            starts = self.first[first:beyond] - begin
            starts[0] = 0
            length = np.empty_like(starts)
            np.subtract(starts[1:], starts[:-1], out=length[:-1])
            length[-1] = end - begin - starts[-1]
            yield Block(slice(begin, end), slice(first, beyond), starts, length)


class Block(NamedTuple):
    """Some sorted rows: the cells with rows that they are in, and the first row of each."""

    rows: slice
    groups: slice
    starts: NDArray[np.intp]
    length: NDArray[np.intp]

    def on_rows(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values of cells with rows, at their rows."""
        return values[self.groups].repeat(self.length)

    def add(self, total: NDArray[np.float64], column: NDArray[np.float64]) -> None:
        """Add sums of a column over the rows of each cell to the totals of cells with rows."""
        total[self.groups] += np.add.reduceat(column, self.starts)
