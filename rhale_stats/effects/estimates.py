"""Estimates of one feature from its rows: moments, spread, curve."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rhale_stats.arguments.checks import check_finite, check_size
from rhale_stats.arrays import accumulate, binning
from rhale_stats.arrays import cells as fine
from rhale_stats.arrays import moments as sums
from rhale_stats.arrays.moments import (
    Axis,
    Comoments,
    FloatArray,
    IntArray,
    Moments,
    ResidualMoments,
)
from rhale_stats.bins.fixed import GivenBins
from rhale_stats.bins.rule import BinRule, Column, Partition, nearest_to
from rhale_stats.local.reductions import Asked, Places, Steps
from rhale_stats.local.rows import SELECT_ROWS, Rows, is_sized
from rhale_stats.schema.stacking import Estimates


def bin_moments(
    axis: Axis, position: int, name: str, *, lines: bool
) -> Steps[tuple[Moments, Comoments | None]]:
    """Moments of one feature's cells, refused where their powers are not finite."""

    def of(rows: Rows) -> tuple[Moments, Comoments | None]:
        x, g = rows.x[position], rows.local_effect[position]
        if not is_sized(g):
            check_finite(g, "Local effects", name, SELECT_ROWS)
            advice = "Take other units for the output."
            check_size(float(np.abs(g).max()), f"Local effects of feature {name!r}", advice)
        place = rows.stretches(axis, position)
        moments = sums.cell_moments(axis, x, g, rows.weight, frequency=rows.frequency, of_row=place)
        return moments, sums.comoments(axis, moments, x, g, rows.weight, place) if lines else None

    (found,) = yield (Asked(of, _moments_of_all),)
    return found  # type: ignore[no-any-return]


def _moments_of_all(
    chunks: Sequence[tuple[Moments, Comoments | None]],
) -> tuple[Moments, Comoments | None]:
    moments, within = zip(*chunks, strict=True)
    everything = sums.of_all_chunks(moments)
    if within[0] is None:
        return everything, None
    return everything, sums.comoments_of_all(moments, within, everything)


def bin_slopes(
    cells: Moments, comoments: Comoments | None, partition: Partition, bins: Moments
) -> FloatArray | None:
    """Slope of the effect in every bin, 0 where it is constant; None from a rule without lines.

    With honest bins a bin may hold too few rows for the line that other rows asked for.
    """
    if comoments is None or partition.linear is None:
        return None
    x_m2, xg = sums.merge_comoments(cells, comoments, partition.starts, bins)
    known = partition.linear & (sums.n_effective(bins) > 2 * (1 + 1e-12)) & (x_m2 > 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(known, xg / x_m2, 0.0)


def reached(cells: FloatArray, low: float, high: float) -> FloatArray:
    """Edges of the cells from the first to the last one that has rows."""
    first = np.clip(np.searchsorted(cells, low, side="right") - 1, 0, len(cells) - 2)
    last = np.clip(np.searchsorted(cells, high, side="right") - 1, 0, len(cells) - 2)
    return cells[first : last + 2]


def curve_edges(column: Column, edges: FloatArray, places: Places) -> FloatArray:
    """Edges of the cells of one feature's curve: those of its slopes, or of a few rows each."""
    if column.cells is not None:
        inside = column.cells[(column.cells > edges[0]) & (column.cells < edges[-1])]
        return np.union1d(edges, inside)
    x, weight, frequency, ordered = places
    n, least = float(len(x)), float(fine.LEAST_ROWS)
    if weight is not None and frequency:
        n = float(weight.sum())
    elif weight is not None:
        n = float(weight.sum() ** 2 / np.sum(weight**2))
        # In cells with few rows of large weight the mean has the bias of a ratio, if weights depend
        # on local effects; and biases add up (math [93]).
        least *= len(x) / sums.rows_of_squares(weight)
    asked = min(max(n / fine.CELL_ROWS, 1.0), fine.MOST_CELLS)
    return fine.nested_edges(
        x, weight, edges, asked, frequency=frequency, least=least, ordered=ordered
    )


def are_agreed(rule: BinRule) -> bool:
    """Whether other rows may have the same cells, so that `merge` needs their own squares."""
    return isinstance(rule, GivenBins) and rule.cells_of_curve is not None


def given_cells(rule: BinRule, column: Column, edges: FloatArray) -> FloatArray | None:
    """Edges of the cells of the curve that a rule gives, between those of its bins."""
    if not isinstance(rule, GivenBins) or column.cells is not None:
        return None
    cells = rule.cells_of(column.name)
    if cells is None:
        return None
    cells = cells[(cells > edges[0]) & (cells < edges[-1])]
    # An edge that both have may differ by rounding: no cell between the two.
    nearest = edges[nearest_to(edges, cells)]
    apart = np.abs(nearest - cells) > 1e-9 * (edges[-1] - edges[0])
    return np.union1d(edges, cells[apart])


def cell_sums(own: FloatArray, position: int) -> Asked:
    """Sums over the rows in the cells of one feature's curve."""

    def of(rows: Rows) -> fine.CellSums:
        x, g = rows.x[position], rows.local_effect[position]
        return fine.sums_in(
            own,
            x,
            g,
            rows.weight,
            frequency=rows.frequency,
            ordered=rows.ordered,
            pieces=rows.pieces,
        )

    return Asked(of, fine.sums_of_all)


def cell_squares(own: FloatArray, found: fine.CellSums, position: int) -> Asked:
    """Sums by powers of precision weights in these cells."""

    def of(rows: Rows) -> sums.SquareSums:
        assert rows.weight is not None
        return fine.squares_in(
            own, found, rows.x[position], rows.local_effect[position], rows.weight
        )

    return Asked(of, sums.square_sums_of_all)


def residual_sums(
    axis: Axis, starts: IntArray, bins: Moments, slope: FloatArray | None, position: int
) -> Asked:
    """Moments about the means or lines of bins."""

    def of(rows: Rows) -> ResidualMoments:
        x, g = rows.x[position], rows.local_effect[position]
        of_row = rows.stretches(axis, position)
        return sums.residual_moments(axis, starts, bins, x, g, rows.weight, slope, of_row)

    return Asked(of, sums.residuals_of_all)


def bin_squares(
    axis: Axis, starts: IntArray, bins: Moments, slope: FloatArray | None, position: int
) -> Asked:
    """Sums by powers of precision weights about the means or lines of bins."""

    def of(rows: Rows) -> sums.SquareSums:
        assert rows.weight is not None
        x, g = rows.x[position], rows.local_effect[position]
        of_row = rows.stretches(axis, position)
        return sums.square_sums(axis, starts, bins, x, g, rows.weight, slope, of_row)

    return Asked(of, sums.square_sums_of_all)


def line_sums(
    cells: FloatArray,
    bin_of: IntArray,
    bins: Moments,
    slope: FloatArray,
    position: int,
    *,
    squared: bool = False,
) -> Asked:
    """Sums of the products `OF_LINES` about the lines of bins, in the cells of the curve.

    With ``squared`` weights those of `LEVEL_POWERS` only.
    """
    powers = sums.LEVEL_POWERS if squared else sums.OF_LINES

    def of(rows: Rows) -> FloatArray:
        x, g, axis = rows.x[position], rows.local_effect[position], binning.variable_axis(cells)
        weight = rows.weight**2 if squared and rows.weight is not None else rows.weight
        of_row = rows.stretches(axis, position)
        own = sums.Located(x, g, weight, of_row)
        return sums.line_sums(axis, bin_of, bins, slope, own, powers)

    return Asked(of, _added)


def _added(chunks: Sequence[FloatArray]) -> FloatArray:
    return np.asarray(np.sum(chunks, axis=0))


def in_bins(found: FloatArray, bin_of: IntArray) -> FloatArray:
    """Sums in bins from those in their cells, (..., cell) -> (..., bin)."""
    return np.add.reduceat(found, np.flatnonzero(np.diff(bin_of, prepend=-1)), axis=-1)


def slope_correlation(found: FloatArray, cells: fine.Cells, slope: FloatArray) -> FloatArray:
    """Correlation of the average along a bin with the slope of its line, by influences of rows.

    ``found`` are sums of the products `LEVEL_POWERS` in the cells of the curve.
    """
    level_of = fine.along_axis(cells.width, cells.weight, cells.bin)
    factor = np.divide(level_of, cells.weight, out=np.zeros(len(level_of)), where=cells.weight > 0)
    both, level, tilt = in_bins(found * np.stack([factor, factor**2, factor**0]), cells.bin)
    with np.errstate(invalid="ignore", divide="ignore"):
        known = (slope != 0) & (level > 0) & (tilt > 0)
        return np.where(known, np.clip(both / np.sqrt(level * tilt), -1.0, 1.0), 0.0)


class Cells(NamedTuple):
    """Fine cells of one feature; none for a constant one."""

    column: Column
    axis: Axis | None
    moments: Moments | None
    comoments: Comoments | None


def feature_estimates(
    edges: FloatArray,
    bins: Moments,
    along: fine.Cells | None,
    slope: FloatArray | None,
    residuals: ResidualMoments | None,
    centering: str,
    *,
    std_error_moments: bool,
    squares: sums.Squares | None = None,
) -> Estimates:
    """RHALE of one feature, by the names of `schema.EFFECT_VARIABLES`."""
    n_effective = sums.n_effective(bins)
    fitted = _fitted(edges, bins, slope, residuals)
    pieces, bins, share = fitted.pieces, fitted.bins, fitted.pieces.share
    variance = sums.variance(bins, fitted.ddof)
    heterogeneity = np.sqrt(variance)
    fine_pieces = pieces if along is None else _pieces(along)
    curve, offset = centred_curve(fine_pieces, edges, centering)
    std, std_sum = spread_along(curve, heterogeneity, np.diff(edges))
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
    if residuals is not None and std_error_moments:
        estimates |= _for_std_error(residuals)
        if squares is not None:
            estimates |= {
                "squares": squares.moments,
                "robust_variance": squares.variance(),
                "robust_third_cumulant": squares.third,
                "error_rows": squares.rows,
            }
        x_variance = accumulate.total_variance(
            bins.x_mean, residuals.x_variance, share, n_effective
        )
        estimates["heterogeneity_output"] = accumulate.heterogeneity_output(
            variance, x_variance, share
        )
    if along is not None:
        cell_curve, _ = centred_curve(fine_pieces, along.edges, centering)
        estimates |= {"effect_rows": bins.mean, "cell_value": along.edges, "cell_curve": cell_curve}
        estimates |= _of_cells(along, std_error_moments=std_error_moments)
    return estimates


class _Fitted(NamedTuple):
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
    edges: FloatArray, bins: Moments, slope: FloatArray | None, residuals: ResidualMoments | None
) -> _Fitted:
    n_bins, share = len(bins.mean), bins.weight / bins.weight.sum()
    pieces = accumulate.Pieces(
        edges, bins.mean, np.zeros(n_bins), bins.x_mean, np.zeros(n_bins), share
    )
    ddof = np.ones(n_bins, dtype=np.int64)
    if slope is None or residuals is None:
        return _Fitted(bins, pieces, ddof)
    pieces = pieces._replace(slope=slope, x_variance=residuals.x_variance)
    linear = slope != 0
    # Of residuals about lines; about means the first pass has it already.
    squares = np.where(linear, residuals.second_moment * bins.weight, bins.m2)
    return _Fitted(bins._replace(m2=squares), pieces, ddof + linear)


def _averages(along: fine.Cells) -> FloatArray:
    """Averages of the effect along the bins (math [12])."""
    level = fine.along_axis(along.width, along.weight, along.bin)
    return fine.effects(along.mean, level, along.bin)


def _for_std_error(residuals: ResidualMoments) -> dict[str, FloatArray]:
    """Moments that `std_error` needs beyond the estimates, by name."""
    moments = {name: getattr(residuals, name) for name in STD_ERROR_MOMENTS}
    return moments if residuals.line is None else {**moments, "line_moments": residuals.line}


def _of_cells(along: fine.Cells, *, std_error_moments: bool) -> dict[str, FloatArray]:
    """Estimates in the cells of a curve, by name."""
    estimates = {"cell_effect": along.mean, "cell_share": along.share}
    if not std_error_moments:
        return estimates
    return estimates | {
        "cell_heterogeneity": np.sqrt(along.variance),
        "cell_n_effective": along.n_effective,
        "cell_degrees": along.degrees,
        "cell_x_mean": along.x_mean,
        "cell_x_variance": along.x_variance,
        "cell_x_covariance": along.x_covariance,
        "cell_third_moment": along.third_moment,
        **_of_squares(along),
    }


def own_squares(along: fine.Cells) -> Estimates:
    """What `merge` needs of cells: mean squares about their own means, sums by weights, by name."""
    found: Estimates = {}
    if along.second_moment is not None:
        found = {"cell_second_moment": along.second_moment}
    return found if along.products is None else {**found, "cell_weight_products": along.products}


def _of_squares(along: fine.Cells) -> dict[str, FloatArray]:
    """What standard errors need of cells with unequal precision weights, by name."""
    if along.squares is None or along.robust is None or along.robust_third is None:
        return {}
    return {
        "cell_squares": along.squares,
        "cell_robust_variance": along.robust,
        "cell_robust_third_cumulant": along.robust_third,
    }


def spread_along(
    curve: FloatArray, heterogeneity: FloatArray, width: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """``curve_std`` and ``curve_std_sum``, at the edges where the curve is known."""
    known = np.isfinite(curve)
    there = known[:-1] & known[1:]
    std, std_sum = np.full((2, len(curve)), np.nan)
    if known.any():
        std[known] = accumulate.curve_std(heterogeneity[there], width[there])
        std_sum[known] = accumulate.curve_std_sum(heterogeneity[there], width[there])
    return std, std_sum


def _pieces(cells: fine.Cells) -> accumulate.Pieces:
    """Cells as the pieces of a curve."""
    none = np.zeros(len(cells.mean))
    return accumulate.Pieces(
        cells.edges, cells.mean, none, cells.x_mean, cells.x_variance, cells.share
    )


def centred_curve(
    pieces: accumulate.Pieces, edges: FloatArray, centering: str
) -> tuple[FloatArray, float]:
    """The centred curve at the edges of the bins, NaN where it is not known, and its offset."""
    here = accumulate.known_stretch(pieces.share)
    pieces = pieces.stretch(here)
    width = np.diff(pieces.edges)
    curve = accumulate.accumulate(pieces.mean + pieces.slope * pieces.away(), width)
    offset = 0.0
    if centering == "mean":
        offset = accumulate.mean_of_curve(curve, pieces)
    elif centering == "integral":
        offset = accumulate.integral_of_curve(curve, width, pieces.slope)
    return accumulate.curve_at(pieces.edges, curve - offset, pieces.slope, edges), offset


# What `std_error` needs beyond the estimates.
STD_ERROR_MOMENTS = ("third_moment", "fourth_moment", "x_variance", "x_covariance")
