"""The two passes of RHALE over the rows: moments in fine cells, then estimates in the bins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import xarray as xr
from boost_histogram.axis import Variable

from rhale_stats.arguments.seeds import seed_of
from rhale_stats.arrays import binning
from rhale_stats.arrays import cells as fine
from rhale_stats.arrays import moments as sums
from rhale_stats.arrays import spread as kernel
from rhale_stats.arrays.moments import FloatArray, ResidualMoments
from rhale_stats.bins.description import cells_of
from rhale_stats.bins.fixed import GivenBins
from rhale_stats.bins.rule import BinRule, Candidates, Column, Partition, make_lines
from rhale_stats.effects.estimates import (
    Cells,
    are_agreed,
    bin_moments,
    bin_slopes,
    bin_squares,
    cell_squares,
    cell_sums,
    curve_edges,
    feature_estimates,
    given_cells,
    in_bins,
    line_sums,
    own_squares,
    reached,
    slope_correlation,
)
from rhale_stats.effects.estimates import residual_sums as about_bins
from rhale_stats.effects.spread import Fitted, own_spread, residual_sums, spread_axis
from rhale_stats.local.chunks import ChunkedRows
from rhale_stats.local.reductions import Asked, Source, Steps
from rhale_stats.local.rows import choosing_rows, columns
from rhale_stats.schema.checks import is_chunked
from rhale_stats.schema.features import resolution
from rhale_stats.schema.stacking import Estimates

# Where the products that a correlation with slopes needs are among those about lines.
LEVEL_IN_LINES = tuple(sums.OF_LINES.index(power) for power in sums.LEVEL_POWERS)


class Request(NamedTuple):
    """What a user asks of `rhale`, apart from the rows."""

    rule: BinRule
    centering: str
    weighting: str
    std_error_moments: bool

    @property
    def needs_rows_again(self) -> bool:
        """Whether the second pass needs the rows, and not only the moments of the first pass."""
        return self.std_error_moments or make_lines(self.rule) or self.weighting == "axis"


class RowSplit(NamedTuple):
    """Rows on which edges are chosen, and rows on which effects are estimated.

    They are the same rows unless bins are honest; ``attrs`` are the attributes that reproduce the
    split.
    """

    for_edges: Source
    for_estimates: Source
    attrs: dict[str, float | int]

    @property
    def is_honest(self) -> bool:
        """Whether edges are chosen on other rows than effects are estimated on."""
        return self.for_edges is not self.for_estimates

    def ends(self, position: int, name: str) -> tuple[float, float]:
        """Ends of the axis of one feature over all rows; raise if they are not finite."""
        halves = (self.for_edges, self.for_estimates) if self.is_honest else (self.for_estimates,)
        low, high = zip(*(half.ends(position, name) for half in halves), strict=True)
        return min(low), max(high)


def all_rows(local: xr.Dataset) -> RowSplit:
    """All rows, for edges and for estimates."""
    rows = _source(local)
    return RowSplit(rows, rows, {})


def _source(local: xr.Dataset) -> Source:
    return ChunkedRows(local, precise=True) if is_chunked(local) else columns(local)


def honest_rows(
    local: xr.Dataset, honest_fraction: float, rng: np.random.Generator | int | None
) -> RowSplit:
    """Rows drawn at random for the edges, and the other rows for the estimates (math [16])."""
    if "n_missing" in local:
        raise ValueError(
            "honest must be False where features have different rows (missing='drop'). Select "
            "complete rows before local_effects."
        )
    seed = seed_of(rng)
    for_edges = choosing_rows(local, honest_fraction, seed)
    # The same rows in chunks as in memory, whatever the chunks are.
    estimates, edges = _source(local.isel(obs=~for_edges)), _source(local.isel(obs=for_edges))
    attrs = {
        "honest_fraction": float(honest_fraction),
        "honest_seed": seed,
        "n_rows_edges": edges.n_rows,
    }
    return RowSplit(edges, estimates, attrs)


def first_pass(
    rule: BinRule, split: RowSplit, position: int, name: str, slopes_across: FloatArray | None
) -> Steps[Cells]:
    """Moments of one feature in the finest cells that the rule considers.

    ``slopes_across`` are the edges of the cells that local effects are slopes across, if any.
    """
    low, high = split.ends(position, name)
    if slopes_across is not None:
        slopes_across = reached(slopes_across, low, high)
        low, high = float(slopes_across[0]), float(slopes_across[-1])
    places = split.for_edges.places(position)
    if slopes_across is not None and not isinstance(rule, GivenBins):
        slopes_across = fine.without_empty(slopes_across, places.x)
    column = Column(name, places.x, low, high, places.weight, slopes_across)
    if low == high:
        return Cells(column, None, None, None)
    axis = cells_of(rule, column)
    moments, within = yield from bin_moments(axis, position, name, lines=make_lines(rule))
    return Cells(column, axis, moments, within)


def chosen_bins(
    rule: BinRule, features: Sequence[Cells], errors: FloatArray
) -> dict[int, Partition]:
    """The bins of every feature that is not constant, by its number.

    ``errors`` are the numerical errors of the local effects, a number a feature.
    """
    candidates = {
        position: Candidates(
            column.name,
            moments,
            column.low,
            column.high,
            resolution(moments.mean, float(errors[position])),
            comoments,
            np.asarray(axis.edges) if isinstance(axis, Variable) else None,
            moments.weight == 0,
        )
        for position, (column, axis, moments, comoments) in enumerate(features)
        if moments is not None
    }
    return dict(zip(candidates, rule.choose(list(candidates.values())), strict=True))


def second_pass(
    request: Request,
    rows: Source,
    position: int,
    cells: Cells,
    partition: Partition | None,
    error: float,
    chosen: kernel.Residuals | None,
) -> Steps[Estimates]:
    """Estimates of one feature in its bins; none for a constant feature.

    ``error`` is the numerical error of a local effect. With honest bins ``chosen`` are the
    residuals of the rows for edges.
    """
    if cells.axis is None or partition is None:
        return {}
    fitted, residuals, squares, by_cell = yield from _fitted(
        request, rows, position, cells, partition
    )
    slope, along, bins = fitted.slope, fitted.along, fitted.bins
    estimates = feature_estimates(
        fitted.edges,
        bins,
        along,
        slope,
        residuals,
        request.centering,
        std_error_moments=request.std_error_moments,
        squares=squares,
    )
    if along is not None and request.std_error_moments and are_agreed(request.rule):
        estimates = {**estimates, **own_squares(along)}
    if squares is not None and isinstance(request.rule, GivenBins):
        estimates = {**estimates, "weight_products": squares.products}
        estimates = {**estimates, "weight_largest": rows.largest}
    asked = dict[str, Asked]()
    if squares is not None:
        asked["sign"] = fitted.of_skewness(position, rows.most_rows)
    if along is not None and slope is not None and by_cell is None:
        asked["lines"] = line_sums(along.edges, along.bin, bins, slope, position, squared=True)
    if request.std_error_moments:
        axis, _ = spread_axis(request.rule, fitted)
        asked["spread"] = residual_sums(axis, fitted, position)
    found = dict(zip(asked, (yield tuple(asked.values())), strict=True)) if asked else {}
    if "sign" in found:
        estimates = {**estimates, "skewness_sign": fitted.skewness_sign(found["sign"])}
    if along is not None and slope is not None:
        products = found["lines"] if by_cell is None else by_cell[list(LEVEL_IN_LINES)]
        correlation = slope_correlation(products, along, slope)
        estimates = {**estimates, "effect_slope_correlation": correlation}
    if "spread" in found:
        estimates = {
            **estimates,
            **own_spread(request.rule, fitted, found["spread"], error, chosen),
        }
    return estimates


def _fitted(
    request: Request,
    rows: Source,
    position: int,
    cells: Cells,
    partition: Partition,
    *,
    effect_only: bool = False,
) -> Steps[tuple[Fitted, ResidualMoments | None, sums.Squares | None, FloatArray | None]]:
    """The effect of one feature in its bins, and moments of these rows about it.

    The last are sums about the lines of bins in the cells of the curve, where rows have no
    precision weights.
    """
    column, axis, moments, comoments = cells
    assert axis is not None, "a constant feature has no bins"
    assert moments is not None, "a feature with cells has their moments"
    starts, bins = partition.starts, sums.merge(moments, partition.starts)
    slope = bin_slopes(moments, comoments, partition, bins)
    edges = binning.bin_edges(axis, starts, column.low, column.high)
    asked, own, along = dict[str, Asked](), None, None
    if request.weighting == "axis":
        own = given_cells(request.rule, column, edges)
        if own is None:
            own = curve_edges(column, edges, rows.places(position))
        asked["cells"] = cell_sums(own, position)
    if not effect_only and (request.std_error_moments or slope is not None):
        if own is not None and slope is not None and not rows.unequal:
            bin_of = binning.bin_index(edges, (own[:-1] + own[1:]) / 2)
            asked["by_cell"] = line_sums(own, bin_of, bins, slope, position)
        else:
            asked["residuals"] = about_bins(axis, starts, bins, slope, position)
        if request.std_error_moments and rows.unequal:
            asked["squares"] = bin_squares(axis, starts, bins, slope, position)
    found = dict(zip(asked, (yield tuple(asked.values())), strict=True)) if asked else {}
    if own is not None:
        known = None
        if rows.unequal:
            (known,) = yield (cell_squares(own, found["cells"], position),)
        along = fine.cells_of_sums(own, edges, found["cells"], known)
    fitted = Fitted(column, axis, edges, bins, slope, along)
    residuals, by_cell = found.get("residuals"), found.get("by_cell")
    if along is not None and by_cell is not None:
        residuals = sums.residuals_of_lines(in_bins(by_cell, along.bin), bins)
    squares = None
    if "squares" in found:
        squares = sums.squares_of(found["squares"], bins, slope)
    return fitted, residuals, squares, by_cell


def residuals_for_edges(
    request: Request, rows: Source, position: int, cells: Cells, partition: Partition | None
) -> Steps[kernel.Residuals | None]:
    """Residuals of the rows on which edges are chosen, which choose those of the spread too."""
    if cells.axis is None or partition is None:
        return None
    fitted, _, _, _ = yield from _fitted(
        request, rows, position, cells, partition, effect_only=True
    )
    axis, _ = spread_axis(request.rule, fitted)
    (found,) = yield (residual_sums(axis, fitted, position),)
    return found  # type: ignore[no-any-return]


def on_other_rows(rule: BinRule, position: int, cells: Cells) -> Steps[Cells]:
    """The same cells with the moments of other rows, as honest bins need."""
    column, axis = cells.column, cells.axis
    if axis is None:
        return cells
    moments, within = yield from bin_moments(axis, position, column.name, lines=make_lines(rule))
    return Cells(column, axis, moments, within)
