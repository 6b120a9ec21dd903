"""The cells across which finite differences are taken."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rhale_stats.arrays import binning
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.bins.description import SEARCHING
from rhale_stats.bins.rule import BinRule, Column

# Cells that finite differences are taken across by default: so many at most and at least, and so
# many rows in each.
MOST_CELLS, LEAST_CELLS, ROWS_OF_A_CELL, ROWS_OF_A_VALUE = 40, 5, 10, 5


def difference_edges(
    rule: BinRule | None,
    name: str,
    x: FloatArray,
    weight: FloatArray | None,
    *,
    counted: bool = False,
) -> FloatArray:
    """Edges of the cells that slopes are taken across, math [2].

    Cells are those of the rule, of the rows with weight. A rule that joins cells gets cells that
    adapt to the rows, and so does none: from each distinct value to the next where these are few
    and have rows enough, else cells of equal numbers of rows, with 10 or more; ``max_bins`` of the
    rule at most, and 40 without one.
    """
    counts = None if weight is None or (weight == weight.max()).all() else weight[weight > 0]
    own = x if weight is None else x[weight > 0]
    low, high = float(own.min()), float(own.max())
    if low == high:
        return np.array([low])
    if rule is None or isinstance(rule, SEARCHING):
        most = MOST_CELLS if rule is None else rule.max_bins
        # A row of frequency weight w represents w equal rows.
        repeats = np.ones(len(own)) if weight is None or not counted else weight[weight > 0]
        values, of_row = np.unique(own, return_inverse=True)
        if len(values) <= most + 1 and np.bincount(of_row, repeats).min() >= ROWS_OF_A_VALUE:
            return values
        n_cells = int(min(max(repeats.sum() // ROWS_OF_A_CELL, LEAST_CELLS), most))
        edges = binning.quantile_edges(own, n_cells, counts)
        return np.concatenate([[low], edges[(edges > low) & (edges < high)], [high]])
    axis = rule.cells(Column(name, own, low, high, counts))
    return binning.bin_edges(axis, np.arange(len(axis)), low, high)


def cell_edges(local: xr.Dataset) -> list[FloatArray | None]:
    """Edges of the cells of finite differences, by feature; None if derivatives were taken."""
    if "cell_value" not in local:
        return [None] * local.sizes["feature"]
    table = local["cell_value"].transpose("feature", "cell_edge").values
    found = [own[np.isfinite(own)] for own in table]
    return [own if len(own) else None for own in found]
