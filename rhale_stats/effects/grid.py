"""The grid of cells of one feature, the moments of its rows there, and the cells of its curve."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from boost_histogram.axis import Variable

from rhale_stats.arguments.checks import check_finite, check_size
from rhale_stats.arrays import binning
from rhale_stats.arrays import cells as cell_kernel
from rhale_stats.arrays.cell_moments import CellMoments, RowMoments, merged_rows
from rhale_stats.arrays.moments import FloatArray, IntArray, rows_of_squares
from rhale_stats.arrays.stretches import sorting
from rhale_stats.bins.description import cells_of
from rhale_stats.bins.fixed import GivenBins
from rhale_stats.bins.rule import BinRule, Candidates, Column, nearest_to
from rhale_stats.local.rows import SELECT_ROWS, Reduction, Rows, SortedValues, Source, is_sized
from rhale_stats.schema.features import resolution

# Cells of equal numbers of rows, from which those of the curve and the bins of the spread are made.
MAX_FINE_CELLS = 2000


class CellGrid(NamedTuple):
    """The cells of one feature: those that a rule joins to bins, and finer ones for the curve.

    ``edges`` are those of all cells: the ``rule_edges`` that bins may have, of ``equal`` widths or
    not, and the ``fine_edges`` beside them, which do not depend on the rule. ``fixed``: each cell
    is one of the curve. ``gaps`` are the ends of the stretches without rows, ``n_cells`` is how
    many cells the curve should have, ``least_rows`` how few rows one may have.
    """

    column: Column
    edges: FloatArray
    rule_edges: FloatArray
    fine_edges: FloatArray
    equal: bool
    fixed: bool
    gaps: FloatArray
    n_cells: float
    least_rows: float

    @property
    def rule_starts(self) -> IntArray:
        """First cell of each of the cells that the rule joins."""
        return np.searchsorted(self.edges, self.rule_edges[:-1])

    def candidates(self, moments: CellMoments, error: float) -> Candidates:
        """What the rule chooses from; ``error`` is the numerical error of a local effect."""
        cells = moments.pooled(self.rule_starts)
        means = cells.means()
        return Candidates(
            self.column.name,
            means,
            self.column.low,
            self.column.high,
            resolution(means.mean, error),
            cells.comoments(),
            None if self.equal else self.rule_edges,
            means.weight == 0,
        )

    def fine_starts(self, bins: FloatArray) -> IntArray:
        """First cells of the fine ones, whatever the rule, but for the edges of its ``bins``."""
        if self.fine_edges is self.edges:
            return np.arange(len(self.edges) - 1)
        return np.searchsorted(self.edges, cell_kernel.union(self.fine_edges[:-1], bins[:-1]))

    def curve_starts(self, edges: FloatArray, moments: CellMoments, bins: FloatArray) -> IntArray:
        """First of the cells between ``edges`` of each of the cells of the curve.

        ``moments`` are those of the rows there. The same bins have the same cells, whatever rule
        they are from.
        """
        every = np.arange(len(edges) - 1)
        if self.fixed:
            return every
        occupied = np.flatnonzero(moments.weight > 0)
        place = moments.x_mean[occupied]
        # As if the rows of every cell were at one place.
        nested = cell_kernel.nested_edges(
            place,
            moments.weight[occupied],
            bins,
            self.n_cells,
            least=self.least_rows,
            ordered=True,
            gaps=self.gaps,
            rows=moments.n_obs[occupied],
        )
        position = np.searchsorted(edges, nested)
        is_edge = edges[position] == nested
        # Between two places the edge is that of the cell on the right.
        right = np.minimum(np.searchsorted(place, nested[~is_edge]), len(occupied) - 1)
        return np.union1d(occupied[right], position[is_edge][:-1])


def grid_of(
    rule: BinRule,
    rows: Source,
    position: int,
    name: str,
    ends: tuple[float, float],
    slopes_across: FloatArray | None,
) -> CellGrid | Column:
    """The grid of one feature between these ends; its column alone if it is constant.

    ``slopes_across`` are the edges of the cells that local effects are slopes across, if any.
    """
    low, high = ends
    places = rows.places(position)
    if slopes_across is not None:
        slopes_across = _reached(slopes_across, low, high)
        low, high = float(slopes_across[0]), float(slopes_across[-1])
        if not isinstance(rule, GivenBins):
            slopes_across = cell_kernel.without_empty(slopes_across, places.x)
    column = Column(name, places.x, low, high, places.weight, slopes_across)
    if low == high:
        return _without_rows(column)
    axis = cells_of(rule, column)
    rule_edges = binning.bin_edges(axis, np.arange(len(axis)), low, high)
    fixed = _given_cells(rule, column, rule_edges)
    if column.cells is not None:
        inside = (column.cells > rule_edges[0]) & (column.cells < rule_edges[-1])
        fixed = cell_kernel.union(rule_edges, column.cells[inside])
    equal = not isinstance(axis, Variable)
    return _grid(_without_rows(column), rule_edges, fixed, places, equal=equal)


def grid_of_others(grid: CellGrid, rows: Source, position: int) -> CellGrid:
    """The grid with the same edges for the rule, and cells of the curve for other rows."""
    fixed, places = grid.edges if grid.fixed else None, rows.places(position)
    return _grid(grid.column, grid.rule_edges, fixed, places, equal=grid.equal)


def _grid(
    column: Column,
    rule_edges: FloatArray,
    fixed: FloatArray | None,
    places: SortedValues,
    *,
    equal: bool,
) -> CellGrid:
    """A grid of ``fixed`` cells, or of cells of a few rows each."""
    n_cells, least = _asked(places)
    x, weight = places.x, places.weight
    if not places.ordered:
        order = sorting(x)
        x, weight = x[order], None if weight is None else weight[order]
    gaps = cell_kernel.gap_edges(x, None if weight is None else np.cumsum(weight))
    fine = fixed
    if fine is None:
        low, high = min(x[0], rule_edges[0]), max(x[-1], rule_edges[-1])
        fine = cell_kernel.nested_edges(
            x,
            weight,
            cell_kernel.count_edges(x, weight, low, high, MAX_FINE_CELLS, gaps=gaps),
            1,
            frequency=places.frequency,
            least=least,
            ordered=True,
            gaps=gaps,
        )
    edges = cell_kernel.union(fine, rule_edges)
    edges = edges[(edges >= rule_edges[0]) & (edges <= rule_edges[-1])]
    if len(edges) == len(fine):
        edges = fine
    return CellGrid(column, edges, rule_edges, fine, equal, fixed is not None, gaps, n_cells, least)


def _without_rows(column: Column) -> Column:
    """The column without its rows, which would travel to all workers."""
    return replace(column, x=column.x[:0], counts=None)


def _reached(cells: FloatArray, low: float, high: float) -> FloatArray:
    """Edges of the cells from the first to the last one that has rows."""
    first = np.clip(np.searchsorted(cells, low, side="right") - 1, 0, len(cells) - 2)
    last = np.clip(np.searchsorted(cells, high, side="right") - 1, 0, len(cells) - 2)
    return cells[first : last + 2]


def _asked(places: SortedValues) -> tuple[float, float]:
    """How many cells a curve should have, and the fewest rows of one that is halved."""
    x, weight, frequency, _ = places
    n, least = float(len(x)), float(cell_kernel.MIN_ROWS)
    if weight is not None and frequency:
        n = float(weight.sum())
    elif weight is not None:
        n = float(weight.sum() ** 2 / np.sum(weight**2))
        # In cells with few rows of large weight the mean has the bias of a ratio, if weights depend
        # on local effects; and biases add up (math [93]).
        least *= len(x) / rows_of_squares(weight)
    return min(max(n / cell_kernel.CELL_ROWS, 1.0), cell_kernel.MAX_CELLS), least


def _given_cells(rule: BinRule, column: Column, edges: FloatArray) -> FloatArray | None:
    """Edges of the cells of the curve that a rule gives, with those of its bins."""
    if not isinstance(rule, GivenBins) or column.cells is not None:
        return None
    cells = rule.cells_of(column.name)
    if cells is None:
        return None
    cells = cells[(cells > edges[0]) & (cells < edges[-1])]
    # An edge that both have may differ by rounding: no cell between the two.
    nearest = edges[nearest_to(edges, cells)]
    distinct = np.abs(nearest - cells) > 1e-9 * (edges[-1] - edges[0])
    return cell_kernel.union(edges, cells[distinct])


def moments_on(grid: CellGrid, position: int, *, unequal: bool) -> Reduction:
    """Moments of the rows of one feature in the cells of its grid."""
    name, edges = grid.column.name, grid.edges

    def of_chunk(rows: Rows) -> RowMoments:
        g = rows.local_effect[position]
        if not is_sized(g):
            check_finite(g, "Local effects", name, SELECT_ROWS)
            advice = "Take other units for the output."
            check_size(float(np.abs(g).max()), f"Local effects of feature {name!r}", advice)
        rows = rows.in_order(position)
        return RowMoments.of_rows(
            edges,
            rows.x[position],
            rows.local_effect[position],
            rows.weight,
            frequency=rows.frequency,
            unequal=unequal,
        )

    return Reduction(of_chunk, merged_rows)
