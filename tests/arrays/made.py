"""Moments of rows in any order, for tests of what is made of them."""

from __future__ import annotations

import numpy as np

from rhale_stats.arrays.binning import bin_edges
from rhale_stats.arrays.cell_moments import CellMoments, RowMoments


def in_cells(edges, x, g, weight=None, *, frequency=False):
    """Moments in the cells between ``edges``."""
    order = np.argsort(x, kind="stable")
    own = None if weight is None else np.asarray(weight, dtype=float)[order]
    return CellMoments.of_rows(np.asarray(edges), x[order], g[order], own, frequency=frequency)


def rows_in_cells(edges, x, g, weight):
    """Moments by powers of unequal precision weights."""
    order = np.argsort(x, kind="stable")
    columns = np.asarray(edges), x[order], g[order], weight[order]
    return RowMoments.of_rows(*columns, frequency=False, unequal=True)


def cell_moments(axis, x, g, weight=None, *, frequency=False):
    """Weights, means and squares in the cells of an axis."""
    return on_axis(axis, x, g, weight, frequency=frequency).means()


def on_axis(axis, x, g, weight=None, *, frequency=False):
    """Moments in the cells of an axis, whose ends are those of the rows where they are regular."""
    low, high = min(x.min(), axis.edges[0]), max(x.max(), axis.edges[-1])
    edges = bin_edges(axis, np.arange(len(axis)), low, high)
    return in_cells(edges, x, g, weight, frequency=frequency)
