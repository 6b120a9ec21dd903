"""Places of many rows on an axis, summarised by some of them with weights."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rhale_stats.arrays.moments import FloatArray
from rhale_stats.arrays.stretches import sorting

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
