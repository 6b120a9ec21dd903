"""Influences of rows on the means, slopes and variances of bins, row by row."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from rhale_stats.arrays import accumulate
from rhale_stats.arrays.accumulate import Pieces
from rhale_stats.arrays.influence import RowSums
from rhale_stats.arrays.moments import FloatArray, IntArray


def row_sums(
    pieces: Pieces,
    curve: FloatArray,
    k: IntArray,
    x: FloatArray,
    g: FloatArray,
    weight: FloatArray | None,
    group: IntArray,
    n_groups: int,
) -> RowSums:
    """Influences of all rows, added up by group: what `UnitSums` has from sums of groups."""
    n_bins = len(pieces.mean)
    w = np.ones(len(x)) if weight is None else weight
    total = np.bincount(k, w, n_bins)
    d = x - pieces.x_mean[k]
    r = g - pieces.mean[k] - pieces.slope[k] * d
    share = w / total[k]
    with np.errstate(invalid="ignore"):
        spread = np.bincount(k, w * r**2, n_bins) / total

    def table(values: FloatArray) -> sparse.csr_array:
        return sparse.coo_array((values, (group, k)), (n_groups, n_bins)).tocsr()

    def added(values: FloatArray) -> FloatArray:
        return np.asarray(np.bincount(group, values, n_groups), dtype=np.float64)

    linear = (pieces.slope != 0)[k]
    var = np.where(linear, pieces.x_variance[k], 1.0)
    level = accumulate.curve_at(pieces.edges, curve, pieces.slope, x)
    level = level - np.average(level, weights=w)
    return RowSums(
        table(share * r),
        table(np.where(linear, share * d * r / var, 0.0)),
        table(share * (r**2 - spread[k])),
        added(w / w.sum() * level),
        added(w / w.sum() * (g - np.average(g, weights=w))),
    )
