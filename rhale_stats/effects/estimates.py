"""Estimates of one feature from the moments of its rows: its grid of cells, bins, curve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

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
    beside,
    merged_rows,
    residual_moments,
)
from rhale_stats.arrays.moments import (
    FloatArray,
    IntArray,
    Moments,
    rows_of_squares,
    selected,
)
from rhale_stats.arrays.pooled_variance import robust_with_neighbours
from rhale_stats.bins.description import cells_of
from rhale_stats.bins.rule import BinRule, Candidates, Column, Partition, among
from rhale_stats.bins.rules import GivenBins
from rhale_stats.local.rows import SELECT_ROWS, Reduction, Rows, SortedValues, Source, is_sized
from rhale_stats.schema.all_features import AllFeatures
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


def grid_of_others(grid: CellGrid, rows: Source, position: int, partition: Partition) -> CellGrid:
    """The grid with the same bins, and cells of the curve for other rows."""
    places, edges, fixed = _sorted_places(rows, position), grid.rule_edges, None
    gaps = cell_kernel.gap_edges(places.x, places.weight)
    if grid.fixed:
        edges = np.append(edges[partition.starts], edges[-1])
        fixed = cell_kernel.without_empty(grid.edges, places.x, edges)
    # Bins are looked up among all edges of the rule.
    others = _grid(grid.column, edges, fixed, places, gaps, equal=grid.equal)
    return others._replace(rule_edges=grid.rule_edges)


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
    """The effects of several features on some rows: bins, made of the cells of the curves.

    All features stand in one row of cells, one behind the other. ``fine`` are the moments in the
    finest cells and ``left`` the left edges of these. The first fine cells of features, bins and
    cells of the curves are ``of_features``, ``of_bins`` and ``of_curve``; features end at ``ends``.
    ``rows`` are the moments in the cells of the curves, ``bins`` those in bins; ``slope`` is None
    without lines. Without ``has_cells``, with ``weighting="rows"``, the cells are the bins.
    """

    columns: Sequence[Column]
    fine: RowMoments
    left: FloatArray
    ends: Sequence[float]
    of_features: IntArray
    of_bins: IntArray
    of_curve: IntArray
    rows: RowMoments
    bins: Moments
    slope: FloatArray | None
    has_cells: bool

    def by_feature(self, starts: IntArray) -> list[slice]:
        """Which of the cells that begin at these fine cells are those of each feature."""
        first = np.searchsorted(starts, self.of_features)
        return [slice(*ends) for ends in pairwise([*first.tolist(), len(starts)])]

    def edges(self, starts: IntArray) -> list[FloatArray]:
        """Edges of the cells that begin at these fine cells, by feature."""
        parts, left = self.by_feature(starts), self.left[starts]
        return [np.append(left[part], end) for part, end in zip(parts, self.ends, strict=True)]

    @property
    def of_fine(self) -> IntArray:
        """Every fine cell."""
        return np.arange(len(self.left))

    @property
    def bin_starts(self) -> IntArray:
        """First cell of the curve of every bin."""
        return np.searchsorted(self.of_curve, self.of_bins)

    @property
    def bin_of_cells(self) -> IntArray:
        """The bin that every cell of a curve is in, of the bins of all features."""
        length = np.diff(self.bin_starts, append=len(self.of_curve))
        return np.repeat(np.arange(len(length)), length)

    def ending_at(self, edges: Sequence[FloatArray], least: Sequence[float]) -> FittedBins:
        """The same bins, with cells that end at the inner ones of each feature's ``edges``, too.

        An edge that would leave a cell fewer than ``least`` rows is left out.
        """
        divided = []
        fine, curve = [self.by_feature(starts) for starts in (self.of_fine, self.of_curve)]
        for cells, starts, inner, few in zip(fine, curve, edges, least, strict=True):
            places = np.searchsorted(self.left[cells], inner[1:-1])
            first = self.of_curve[starts] - cells.start
            n_rows = self.fine.cells.n_obs[cells]
            divided.append(cells.start + cell_kernel.divided(first, places, n_rows, few))
        of_curve = np.concatenate(divided)
        if len(of_curve) == len(self.of_curve):
            return self
        return self._replace(of_curve=of_curve, rows=self.fine.pooled(of_curve))


def fitted_bins(
    settings: RhaleSettings,
    grids: Sequence[CellGrid],
    moments: Sequence[RowMoments],
    partitions: Sequence[Partition],
) -> FittedBins:
    """The bins of several features with their lines, and the cells of their curves."""
    edges_of_bins = [
        np.append(grid.rule_edges[partition.starts], grid.rule_edges[-1])
        for grid, partition in zip(grids, partitions, strict=True)
    ]
    fine_starts = [
        grid.fine_starts(edges) for grid, edges in zip(grids, edges_of_bins, strict=True)
    ]
    fine = beside(moments).pooled(_behind(fine_starts, [len(grid.edges) - 1 for grid in grids]))
    n_fine, first_fine = [len(starts) for starts in fine_starts], 0
    left, of_bins, of_curve = list[FloatArray](), list[IntArray](), list[IntArray]()
    for grid, starts, edges in zip(grids, fine_starts, edges_of_bins, strict=True):
        left.append(grid.edges[starts])
        of_bins.append(np.searchsorted(left[-1], edges[:-1]))
        of_curve.append(of_bins[-1])
        if settings.weighting == "axis":
            cells = fine.cells.part(slice(first_fine, first_fine + len(starts)))
            of_curve[-1] = grid.curve_starts(np.append(left[-1], edges[-1]), cells, edges)
        first_fine += len(starts)
    starts = _behind(of_bins, n_fine)
    means, slope = fine.cells.pooled(starts, degree=2), None
    bins = means.means()
    if any(partition.linear is not None for partition in partitions):
        # With honest bins a bin may hold too few rows for the line that other rows asked for.
        spread = means.product(2, 0)
        enough = sums.n_effective(bins) > 2 * (1 + 1e-12)
        linear = np.concatenate([partition.is_linear for partition in partitions])
        linear &= enough & (spread > 0)
        slope = np.divide(means.product(1, 1), spread, out=np.zeros(len(spread)), where=linear)
    cells_of_curves = _behind(of_curve, n_fine)
    return FittedBins(
        [grid.column for grid in grids],
        fine,
        np.concatenate(left),
        [edges[-1] for edges in edges_of_bins],
        np.cumsum([0, *n_fine[:-1]]),
        starts,
        cells_of_curves,
        fine.pooled(cells_of_curves),
        bins,
        slope,
        settings.weighting == "axis",
    )


def _behind(starts: Sequence[IntArray], lengths: Sequence[int]) -> IntArray:
    """First cells of each feature as those in one row of so many cells of each."""
    before = np.cumsum([0, *lengths[:-1]])
    return np.concatenate([first + n for first, n in zip(starts, before, strict=True)])


def states_of(settings: RhaleSettings, fitted: FittedBins) -> list[dict[str, Any]]:
    """What the estimates of every feature are made of, by the names of `EFFECT_VARIABLES`.

    Edges and moments; and what does not follow from these: lines and the spread about them, and
    sums by powers of unequal weights.
    """
    rows, bins, slope = fitted.rows, fitted.bins, fitted.slope
    # Within the finest cells next to nothing of a line cancels.
    residuals = residual_moments(fitted.fine.cells, fitted.of_bins, slope)
    linear = np.zeros(len(bins.mean), dtype=bool) if slope is None else slope != 0
    squares_about = np.where(linear, residuals.second_moment * bins.weight, bins.m2)
    in_bins = {"heterogeneity": np.sqrt(sums.variance(bins._replace(m2=squares_about), 1 + linear))}
    in_cells: dict[str, FloatArray] = {"moments": rows.cells.table.T}
    if slope is not None:
        in_bins["slope"] = slope
    if rows.squares is not None:
        in_bins |= _by_squares(settings.rule, fitted)
        in_cells |= _cells_by_squares(settings.rule, fitted) if fitted.has_cells else {}
    parts = [fitted.by_feature(starts) for starts in (fitted.of_bins, fitted.of_curve)]
    edges = [fitted.edges(starts) for starts in (fitted.of_bins, fitted.of_curve)]
    return [
        {
            **{name: values[bins_of] for name, values in in_bins.items()},
            **{name: values[cells_of] for name, values in in_cells.items()},
            "bin_left": bin_edges[:-1],
            "bin_right": bin_edges[1:],
            "edge_value": cell_edges,
        }
        for bins_of, cells_of, bin_edges, cell_edges in zip(*parts, *edges, strict=True)
    ]


def _by_squares(rule: BinRule, fitted: FittedBins) -> dict[str, FloatArray]:
    """Of the bins: moments by squared weights, and what errors take in place of the variance."""
    rows, bins, slope = fitted.rows, fitted.bins, fitted.slope
    squares = sums.squares_of(rows.square_sums(fitted.bin_starts, bins, slope), bins, slope)
    out = {
        "squares": squares.moments,
        "robust_variance": squares.variance(),
        "robust_third_cumulant": squares.third,
        "error_rows": squares.rows,
    }
    if isinstance(rule, GivenBins):
        out["weight_products"] = squares.products
    if fitted.has_cells and slope is not None and rows.squares is not None:
        lines = selected(Line.through(bins, slope), fitted.bin_of_cells)
        products = lines.sums(rows.squares, sums.LEVEL_POWERS)
        width = np.concatenate([np.diff(edges) for edges in fitted.edges(fitted.of_curve)])
        each = products, width, rows.cells.weight, fitted.bin_of_cells, slope
        out["effect_slope_correlation"] = cell_kernel.slope_correlation(*each)
    return out


def _cells_by_squares(rule: BinRule, fitted: FittedBins) -> dict[str, FloatArray]:
    """The same of the cells; other rows in the same cells need the ``products``, too."""
    rows, means = fitted.rows, fitted.rows.cells.means()
    squares = sums.squares_of(rows.square_sums(np.arange(len(means.weight)), means, None), means)
    out = by_squares(rows.cells, squares, fitted.by_feature(fitted.of_curve))
    return out | ({"cell_weight_products": squares.products} if are_agreed(rule) else {})


def by_squares(
    cells: CellMoments, squares: sums.SquaredWeightMoments, features: Sequence[slice]
) -> dict[str, FloatArray]:
    """What standard errors need of the cells of features with unequal weights, by name."""
    each = [
        robust_with_neighbours(cells.part(part).means(), selected(squares, part))
        for part in features
    ]
    variance, degrees = [np.concatenate(values) for values in zip(*each, strict=True)]
    return {
        "cell_squares": squares.moments,
        "cell_robust_variance": variance,
        "cell_robust_third_cumulant": squares.third,
        "cell_degrees": degrees,
    }


def are_agreed(rule: BinRule) -> bool:
    """Whether other rows may have the same cells, so that `merge` needs sums of their weights."""
    return isinstance(rule, GivenBins) and rule.cells_of_curve is not None


def estimates_of(features: AllFeatures) -> dict[str, FloatArray]:
    """RHALE of all features from their moments, by name, as it is in the Dataset."""
    centering, lines = str(features.source.attrs["centering"]), features.pieces
    effect = lines.mean + lines.slope * np.where(lines.slope != 0, lines.away(), 0.0)
    if features.along_axis:
        cells, bin_of = features.cell_pieces, features.bin_of_cells.ravel()
        width, weight = [np.ravel(part) for part in (np.diff(cells.edges), cells.share)]
        level = cell_kernel.along_axis(width, weight, bin_of)
        effect = features.padded(cell_kernel.effects(cells.mean.ravel(), level, bin_of))
    share = np.where(features.is_bin, lines.share, 0.0)
    mean = features.padded(features.means.mean)
    variance = features.padded(features.heterogeneity**2)
    n = features.padded(features.n_effective, 0.0)
    x_variance = accumulate.total_variance(lines.x_mean, lines.x_variance, share, n)
    curve = accumulate.centred_curves(features.pieces_of_curves, centering)
    return {
        "effect": np.where(features.is_bin, effect, np.nan),
        "n_obs": np.rint(features.padded(features.means.n_obs, 0.0)).astype(np.int64),
        "average_effect": np.where(features.n_bins > 0, np.nansum(share * mean, axis=-1), np.nan),
        "heterogeneity_output": accumulate.heterogeneity_output(variance, x_variance, share),
        "curve": features.known_at_edges(curve),
    }
