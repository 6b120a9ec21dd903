"""Estimates of one feature from the moments of its rows: its grid of cells, bins, curve."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from boost_histogram.axis import Variable

from rhale_stats.arguments.checks import check_finite, check_size
from rhale_stats.arrays import accumulate, binning
from rhale_stats.arrays import cells as cell_kernel
from rhale_stats.arrays import moments as sums
from rhale_stats.arrays.binning import sorting
from rhale_stats.arrays.cell_moments import (
    CellMoments,
    Line,
    RowMoments,
    merged_rows,
    residual_moments,
)
from rhale_stats.arrays.moments import (
    FloatArray,
    IntArray,
    Moments,
    ResidualMoments,
    rows_of_squares,
)
from rhale_stats.bins.description import cells_of
from rhale_stats.bins.rule import BinRule, Candidates, Column, Partition, among
from rhale_stats.bins.rules import GivenBins
from rhale_stats.local.rows import SELECT_ROWS, Reduction, Rows, SortedValues, Source, is_sized
from rhale_stats.schema.features import resolution
from rhale_stats.schema.padding import Estimates

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
        means = moments.pooled(self.rule_starts, degree=2).means()
        return Candidates(
            self.column.name,
            means,
            self.column.low,
            self.column.high,
            resolution(means.mean, error),
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
        return cell_kernel.union(occupied[right], position[is_edge][:-1])


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
    places = _sorted_places(rows, position)
    if slopes_across is not None:
        if isinstance(rule, GivenBins):
            # Of other rows, too: all parts of a sample have the same bins.
            beside = 1e-9 * (slopes_across[-1] - slopes_across[0])
            first, last = rule.limits(name)
            slopes_across = _reached(slopes_across, first + beside, last - beside)
        else:
            slopes_across = _reached(slopes_across, low, high)
            slopes_across = cell_kernel.without_empty(slopes_across, places.x)
        low, high = float(slopes_across[0]), float(slopes_across[-1])
    column = Column(name, places.x, low, high, places.weight, slopes_across)
    if low == high:
        return _without_rows(column)
    gaps = cell_kernel.gap_edges(places.x, places.weight)
    column = replace(column, gaps=gaps)
    axis = cells_of(rule, column)
    rule_edges = binning.bin_edges(axis, np.arange(len(axis)), low, high)
    fixed = _fixed_cells(rule, column, rule_edges)
    equal = not isinstance(axis, Variable)
    return _grid(_without_rows(column), rule_edges, fixed, places, gaps, equal=equal)


def grid_of_others(grid: CellGrid, rows: Source, position: int) -> CellGrid:
    """The grid with the same edges for the rule, and cells of the curve for other rows."""
    fixed, places = grid.edges if grid.fixed else None, _sorted_places(rows, position)
    gaps = cell_kernel.gap_edges(places.x, places.weight)
    return _grid(grid.column, grid.rule_edges, fixed, places, gaps, equal=grid.equal)


def _sorted_places(rows: Source, position: int) -> SortedValues:
    """Where the rows of one feature are on its axis, in their order."""
    places = rows.places(position)
    if places.ordered:
        return places
    x, weight, frequency, _ = places
    order = sorting(x)
    return SortedValues(x[order], None if weight is None else weight[order], frequency, True)


def _grid(
    column: Column,
    rule_edges: FloatArray,
    fixed: FloatArray | None,
    places: SortedValues,
    gaps: FloatArray,
    *,
    equal: bool,
) -> CellGrid:
    """A grid of ``fixed`` cells, or of cells of a few rows each."""
    n_cells, least = _asked(places)
    x, weight, fine = places.x, places.weight, fixed
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


def _fixed_cells(rule: BinRule, column: Column, edges: FloatArray) -> FloatArray | None:
    """Edges of the cells of the curve where these do not follow from the rows, with those of bins.

    They are those that a rule gives, and the cells that slopes were taken across.
    """
    agreed = rule.cells_of(column.name) if isinstance(rule, GivenBins) else None
    cells = column.cells
    if cells is None:
        cells = agreed
    elif agreed is not None:
        # Agreed cells are unions of those.
        nearest, are_edges = among(cells, agreed)
        cells = nearest if are_edges.all() else cells
    elif isinstance(rule, GivenBins):
        cells = cell_kernel.without_empty(cells, column.x)
    if cells is None:
        return None
    cells = cells[(cells > edges[0]) & (cells < edges[-1])]
    # An edge that both have may differ by rounding: no cell between the two.
    _, is_edge = among(edges, cells)
    return cell_kernel.union(edges, cells[~is_edge])


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


# --- estimates of one feature from the moments of its rows ----------------------------------------


class RhaleSettings(NamedTuple):
    """What a user asks of `rhale`, apart from the rows; and whether the spread is wanted."""

    rule: BinRule
    centering: str
    weighting: str
    has_spread: bool = True


class FittedBins(NamedTuple):
    """The effect of one feature on some rows: its bins, and the cells of its curve.

    ``starts`` are the first cells of the bins among those of the curve, whose moments are ``rows``
    and whose ``edges`` are given; ``slope`` is None without lines. ``along`` are the cells that the
    curve is accumulated from, None with ``weighting="rows"``, where the cells are the bins.
    ``of_curve`` are the first of the finer cells between ``fine_edges``, whose moments are
    ``fine``, in each cell of the curve.
    """

    edges: FloatArray
    rows: RowMoments
    starts: IntArray
    bins: Moments
    slope: FloatArray | None
    along: cell_kernel.Cells | None
    column: Column
    of_curve: IntArray
    fine_edges: FloatArray
    fine: RowMoments

    @property
    def bin_edges(self) -> FloatArray:
        """Edges of the bins."""
        return np.append(self.edges[self.starts], self.edges[-1])

    @property
    def length(self) -> IntArray:
        """Number of cells of every bin."""
        return np.diff(self.starts, append=len(self.edges) - 1)

    def ending_at(self, edges: FloatArray, least: float) -> FittedBins:
        """The same bins, with cells that end at the inner ones of ``edges``, too.

        An edge that would leave a cell fewer than ``least`` rows is left out.
        """
        places = np.searchsorted(self.fine_edges[:-1], edges[1:-1])
        of_curve = cell_kernel.divided(self.of_curve, places, self.fine.cells.n_obs, least)
        if len(of_curve) == len(self.of_curve):
            return self
        edges, rows, starts = _on_cells(self.fine, self.fine_edges, of_curve, self.bin_edges)
        along = None if self.along is None else _cells_along(edges, self.bin_edges, rows)
        return self._replace(edges=edges, rows=rows, starts=starts, along=along, of_curve=of_curve)


def _on_cells(
    fine: RowMoments, fine_edges: FloatArray, of_curve: IntArray, bin_edges: FloatArray
) -> tuple[FloatArray, RowMoments, IntArray]:
    """Edges and moments of the cells that begin at these finer cells, and the first of each bin."""
    edges = np.append(fine_edges[of_curve], fine_edges[-1])
    return edges, fine.pooled(of_curve), np.searchsorted(edges, bin_edges[:-1])


def _cells_along(edges: FloatArray, bin_edges: FloatArray, rows: RowMoments) -> cell_kernel.Cells:
    """The cells that a curve is accumulated from."""
    by_squares = None
    if rows.squares is not None:
        by_squares = rows.square_sums(np.arange(len(edges) - 1), rows.cells.means(), None)
    return cell_kernel.Cells.within(bin_edges, edges, rows.cells, by_squares)


def fitted_bins(
    settings: RhaleSettings, grid: CellGrid, rows: RowMoments, partition: Partition
) -> FittedBins:
    """The bins of one feature with their lines, and the cells of its curve."""
    bin_edges = np.append(grid.rule_edges[partition.starts], grid.rule_edges[-1])
    fine_starts = grid.fine_starts(bin_edges)
    fine_edges = np.append(grid.edges[fine_starts], grid.edges[-1])
    fine = rows.pooled(fine_starts)
    if settings.weighting == "axis":
        of_curve = grid.curve_starts(fine_edges, fine.cells, bin_edges)
    else:
        of_curve = np.searchsorted(fine_edges, bin_edges[:-1])
    edges, rows, starts = _on_cells(fine, fine_edges, of_curve, bin_edges)
    bins = rows.cells.pooled(starts, degree=2)
    means, slope = bins.means(), None
    if partition.linear is not None:
        # With honest bins a bin may hold too few rows for the line that other rows asked for.
        spread = bins.product(2, 0)
        enough = sums.n_effective(means) > 2 * (1 + 1e-12)
        linear = partition.linear & enough & (spread > 0)
        slope = np.divide(bins.product(1, 1), spread, out=np.zeros(len(spread)), where=linear)
    along = _cells_along(edges, bin_edges, rows) if settings.weighting == "axis" else None
    return FittedBins(
        edges, rows, starts, means, slope, along, grid.column, of_curve, fine_edges, fine
    )


def estimates_of(settings: RhaleSettings, fitted: FittedBins) -> dict[str, FloatArray | float]:
    """RHALE of one feature, by the names of `schema.EFFECT_VARIABLES`, but for its spread."""
    rows, starts, bins, slope = fitted.rows, fitted.starts, fitted.bins, fitted.slope
    # Within the finest cells next to nothing of a line cancels.
    residuals, squares = residual_moments(fitted.fine.cells, fitted.of_curve[starts], slope), None
    if rows.squares is not None:
        squares = sums.squares_of(rows.square_sums(starts, bins, slope), bins, slope)
    estimates = feature_estimates(
        fitted.bin_edges, bins, fitted.along, slope, residuals, settings.centering, squares=squares
    )
    estimates["moments"] = rows.cells.table.T
    if fitted.along is not None and are_agreed(settings.rule):
        estimates |= own_products(fitted.along)
    if squares is not None and isinstance(settings.rule, GivenBins):
        estimates |= {"weight_products": squares.products}
    if fitted.along is not None and slope is not None and rows.squares is not None:
        lines = Line.through(bins, slope).repeated(fitted.length)
        products = lines.sums(rows.squares, sums.LEVEL_POWERS)
        along = fitted.along
        estimates["effect_slope_correlation"] = cell_kernel.slope_correlation(
            products, along.width, along.weight, along.bin, slope
        )
    return estimates


def are_agreed(rule: BinRule) -> bool:
    """Whether other rows may have the same cells, so that `merge` needs sums of their weights."""
    return isinstance(rule, GivenBins) and rule.cells_of_curve is not None


def feature_estimates(
    edges: FloatArray,
    bins: Moments,
    along: cell_kernel.Cells | None,
    slope: FloatArray | None,
    residuals: ResidualMoments,
    centering: str,
    *,
    squares: sums.SquaredWeightMoments | None = None,
) -> dict[str, FloatArray | float]:
    """RHALE of one feature, by the names of `schema.EFFECT_VARIABLES`."""
    n_effective = sums.n_effective(bins)
    fitted = _fitted(edges, bins, slope, residuals)
    pieces, bins, share = fitted.pieces, fitted.bins, fitted.pieces.share
    variance = sums.variance(bins, fitted.ddof)
    heterogeneity = np.sqrt(variance)
    fine_pieces = pieces if along is None else _pieces(along)
    estimates: dict[str, FloatArray | float] = {
        "effect": fitted.effects() if along is None else _averages(along),
        "heterogeneity": heterogeneity,
        **({} if slope is None else {"slope": slope}),
        "n_obs": bins.n_obs,
        "edge_value": edges,
        "curve": centred_curve(fine_pieces, edges, centering),
        "average_effect": float(np.nansum(share * bins.mean)),
    }
    if squares is not None:
        estimates |= {
            "squares": squares.moments,
            "robust_variance": squares.variance(),
            "robust_third_cumulant": squares.third,
            "error_rows": squares.rows,
        }
    x_variance = accumulate.total_variance(bins.x_mean, residuals.x_variance, share, n_effective)
    estimates["heterogeneity_output"] = accumulate.heterogeneity_output(variance, x_variance, share)
    if along is not None:
        cell_curve = centred_curve(fine_pieces, along.edges, centering)
        estimates |= {"cell_value": along.edges, "cell_curve": cell_curve, **_squares_of(along)}
    return estimates


class _BinFits(NamedTuple):
    """Means and lines fitted to the bins of one feature; ``m2`` of ``bins`` is of the residuals."""

    bins: Moments
    pieces: accumulate.Pieces
    ddof: IntArray

    def effects(self) -> FloatArray:
        """Mean of a constant bin, and the line of a linear bin at its middle."""
        pieces = self.pieces
        at_middle = pieces.mean + pieces.slope * pieces.away()
        return np.where(pieces.slope != 0, at_middle, pieces.mean)


def _fitted(
    edges: FloatArray, bins: Moments, slope: FloatArray | None, residuals: ResidualMoments
) -> _BinFits:
    n_bins, share = len(bins.mean), bins.weight / bins.weight.sum()
    pieces = accumulate.Pieces(
        edges, bins.mean, np.zeros(n_bins), bins.x_mean, np.zeros(n_bins), share
    )
    ddof = np.ones(n_bins, dtype=np.int64)
    if slope is None:
        return _BinFits(bins, pieces, ddof)
    pieces = pieces._replace(slope=slope, x_variance=residuals.x_variance)
    linear = slope != 0
    # Squares of residuals about lines; those about means are known from the first pass.
    squares = np.where(linear, residuals.second_moment * bins.weight, bins.m2)
    return _BinFits(bins._replace(m2=squares), pieces, ddof + linear)


def _averages(along: cell_kernel.Cells) -> FloatArray:
    """Averages of the effect along the bins (math [12])."""
    level = cell_kernel.along_axis(along.width, along.weight, along.bin)
    return cell_kernel.effects(along.means.mean, level, along.bin)


def own_products(along: cell_kernel.Cells) -> Estimates:
    """Sums of powers of precision weights in cells, which `merge` needs, by name."""
    squares = along.by_squares
    return {} if squares is None else {"cell_weight_products": squares.products}


def _squares_of(along: cell_kernel.Cells) -> dict[str, FloatArray]:
    """What standard errors need of cells with unequal precision weights, by name."""
    if along.by_squares is None:
        return {}
    variance, degrees = along.robust_variance
    return {
        "cell_squares": along.by_squares.moments,
        "cell_robust_variance": variance,
        "cell_robust_third_cumulant": along.by_squares.third,
        "cell_degrees": degrees,
    }


def _pieces(cells: cell_kernel.Cells) -> accumulate.Pieces:
    """Cells as the pieces of a curve."""
    means, none = cells.means, np.zeros(len(cells.bin))
    return accumulate.Pieces(
        cells.edges, means.mean, none, means.x_mean, cells.moment(2, 0), cells.share
    )


def centred_curve(pieces: accumulate.Pieces, edges: FloatArray, centering: str) -> FloatArray:
    """The centred curve at these edges, NaN where it is not known."""
    stretch = accumulate.known_stretch(pieces.share)
    pieces = pieces.stretch(stretch)
    width = np.diff(pieces.edges)
    curve = accumulate.accumulate(pieces.mean + pieces.slope * pieces.away(), width)
    offset = 0.0
    if centering == "mean":
        offset = accumulate.mean_of_curve(curve, pieces)
    elif centering == "integral":
        offset = accumulate.integral_of_curve(curve, width, pieces.slope)
    elif centering != "start":
        zero = np.array([float(centering)])
        offset = float(accumulate.curve_at(pieces.edges, curve, pieces.slope, zero)[0])
    return accumulate.curve_at(pieces.edges, curve - offset, pieces.slope, edges)
