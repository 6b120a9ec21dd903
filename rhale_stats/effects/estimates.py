"""Estimates of one feature from the moments of its rows: bins, heterogeneity, curve."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rhale_stats.arrays import accumulate
from rhale_stats.arrays import cells as cell_kernel
from rhale_stats.arrays import moments as sums
from rhale_stats.arrays.cell_moments import Line, RowMoments, residual_moments
from rhale_stats.arrays.moments import FloatArray, IntArray, Moments, ResidualMoments
from rhale_stats.bins.fixed import GivenBins
from rhale_stats.bins.rule import BinRule, Column, Partition
from rhale_stats.effects.grid import CellGrid
from rhale_stats.schema.padding import Estimates


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
    curve is accumulated from, None with ``weighting="rows"``. ``of_curve`` are the first of the
    finer cells between ``fine_edges``, whose moments are ``fine``, in each cell of the curve.
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
    return cell_kernel.cells_of(edges, bin_edges, rows.cells, by_squares)


def fitted_bins(
    settings: RhaleSettings, grid: CellGrid, rows: RowMoments, partition: Partition
) -> FittedBins:
    """The bins of one feature with their lines, and the cells of its curve."""
    bin_edges = np.append(grid.rule_edges[partition.starts], grid.rule_edges[-1])
    fine_starts = grid.fine_starts(bin_edges)
    fine_edges = np.append(grid.edges[fine_starts], grid.edges[-1])
    fine = rows.pooled(fine_starts)
    of_curve = grid.curve_starts(fine_edges, fine.cells, bin_edges)
    edges, rows, starts = _on_cells(fine, fine_edges, of_curve, bin_edges)
    bins = rows.cells.pooled(starts)
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
    moments = rows.cells if fitted.along is not None else rows.cells.pooled(starts)
    estimates = feature_estimates(
        fitted.bin_edges, bins, fitted.along, slope, residuals, settings.centering, squares=squares
    )
    estimates["moments"] = moments.table.T
    if fitted.along is not None and are_agreed(settings.rule):
        estimates |= own_products(fitted.along)
    if squares is not None and isinstance(settings.rule, GivenBins):
        estimates |= {"weight_products": squares.products}
    if fitted.along is not None and slope is not None:
        lines = Line.through(bins, slope).repeated(fitted.length)
        products = lines.sums(rows.by_squares, sums.LEVEL_POWERS)
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
    curve, offset = centred_curve(fine_pieces, edges, centering)
    std, std_sum = accumulate.spread_along(curve, heterogeneity, np.diff(edges))
    estimates: dict[str, FloatArray | float] = {
        "effect": fitted.effects() if along is None else _averages(along),
        "heterogeneity": heterogeneity,
        **({} if slope is None else {"slope": slope}),
        "n_obs": bins.n_obs,
        "n_effective": n_effective,
        "weight_share": share,
        "x_mean": bins.x_mean,
        "edge_value": edges,
        "curve": curve,
        "curve_std": std,
        "curve_std_sum": std_sum,
        "curve_offset": offset,
        "average_effect": float(np.nansum(share * bins.mean)),
        "heterogeneity_index": accumulate.heterogeneity_index(bins.m2, bins.weight, np.diff(edges)),
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
        cell_curve, _ = centred_curve(fine_pieces, along.edges, centering)
        estimates |= {"cell_value": along.edges, "cell_curve": cell_curve}
        estimates |= {"cell_effect": along.mean, "cell_share": along.share, **_squares_of(along)}
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
    return cell_kernel.effects(along.mean, level, along.bin)


def own_products(along: cell_kernel.Cells) -> Estimates:
    """Sums of powers of precision weights in cells, which `merge` needs, by name."""
    return {} if along.products is None else {"cell_weight_products": along.products}


def _squares_of(along: cell_kernel.Cells) -> dict[str, FloatArray]:
    """What standard errors need of cells with unequal precision weights, by name."""
    if along.squares is None or along.robust is None or along.robust_third is None:
        return {}
    return {
        "cell_squares": along.squares,
        "cell_robust_variance": along.robust,
        "cell_robust_third_cumulant": along.robust_third,
        "cell_degrees": along.degrees,
    }


def _pieces(cells: cell_kernel.Cells) -> accumulate.Pieces:
    """Cells as the pieces of a curve."""
    none = np.zeros(len(cells.mean))
    return accumulate.Pieces(
        cells.edges, cells.mean, none, cells.x_mean, cells.x_variance, cells.share
    )


def centred_curve(
    pieces: accumulate.Pieces, edges: FloatArray, centering: str
) -> tuple[FloatArray, float]:
    """The centred curve at the edges of the bins, NaN where it is not known, and its offset."""
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
    return accumulate.curve_at(pieces.edges, curve - offset, pieces.slope, edges), offset
