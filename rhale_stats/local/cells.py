"""The cells across which finite differences are taken."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rhale_stats.arrays import binning
from rhale_stats.arrays.local_effects import are_repeated
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.bins.description import SEARCHING
from rhale_stats.bins.rule import BinRule, Column
from rhale_stats.bins.rules import GivenBins, QuantileBins

# Cells that finite differences are taken across by default: so many at most and at least, and so
# many rows in each.
MAX_CELLS, MIN_CELLS, ROWS_OF_A_CELL = 40, 5, 10
# Cells go from each value to the next where a feature has ties and so many values at most.
MAX_VALUES, ROWS_OF_A_STEP = 100, 5
# Bins of ALE by default.
ALE_BINS = QuantileBins(MAX_CELLS)


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
    adapt to the rows, and so do none and the default of ALE: from each value to the next where
    there are at most 100 values of three rows or more on average, else cells of equal numbers of
    rows, with 10 or more; ``max_bins`` of the rule at most, and 40 without one.
    """
    counts = None if weight is None or (weight == weight.max()).all() else weight[weight > 0]
    x_with_weight = x if weight is None else x[weight > 0]
    low, high = float(x_with_weight.min()), float(x_with_weight.max())
    if low == high:
        return np.array([low])
    if rule is None or rule is ALE_BINS or isinstance(rule, SEARCHING):
        # A row of frequency weight w represents w equal rows.
        repeats = None if weight is None or not counted else weight[weight > 0]
        values = repeated_values(x_with_weight, repeats)
        if values is not None:
            return values
        if rule is ALE_BINS:
            return _of_rule(rule, Column(name, x_with_weight, low, high, counts))
        most = rule.max_bins if isinstance(rule, SEARCHING) else MAX_CELLS
        n_rows = len(x_with_weight) if repeats is None else repeats.sum()
        n_cells = int(min(max(n_rows // ROWS_OF_A_CELL, MIN_CELLS), most))
        edges = binning.quantile_edges(x_with_weight, n_cells, counts)
        return np.concatenate([[low], edges[(edges > low) & (edges < high)], [high]])
    edges = _of_rule(rule, Column(name, x_with_weight, low, high, counts))
    cells = rule.cells_of(name) if isinstance(rule, GivenBins) else None
    return edges if cells is None else np.union1d(edges, cells)


def _of_rule(rule: BinRule, column: Column) -> FloatArray:
    axis = rule.cells(column)
    return binning.bin_edges(axis, np.arange(len(axis)), column.low, column.high)


def repeated_values(x: FloatArray, counts: FloatArray | None) -> FloatArray | None:
    """Edges at the distinct values, where these are few and repeated; None where they are not.

    Between two edges, and on them, are 5 rows or more, so that cells of some of the rows have rows.
    """
    if len(np.unique(x[: 2 * MAX_VALUES])) > MAX_VALUES:
        return None
    values, of_row = np.unique(x, return_inverse=True)
    if len(values) > MAX_VALUES or not are_repeated(x, counts):
        return None
    n_rows, chosen = np.bincount(of_row, counts), [0]
    for number in range(1, len(values) - 1):
        if min(n_rows[chosen[-1] : number + 1].sum(), n_rows[number:].sum()) >= ROWS_OF_A_STEP:
            chosen.append(number)
    return values[[*chosen, len(values) - 1]] if len(values) > 1 else values


def cell_edges(local: xr.Dataset) -> list[FloatArray | None]:
    """Edges of the cells of finite differences, by feature; None if derivatives were taken."""
    if "cell_value" not in local:
        return [None] * local.sizes["feature"]
    table = local["cell_value"].transpose("feature", "cell_edge").values
    edges_of_features = [edges[np.isfinite(edges)] for edges in table]
    return [edges if len(edges) else None for edges in edges_of_features]
