"""The two passes of RHALE over the rows: moments in fine cells, then estimates in the bins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import xarray as xr

from rhale_stats.arguments.checks import check_finite
from rhale_stats.arguments.seeds import seed_of
from rhale_stats.arrays import binning
from rhale_stats.arrays import moments as sums
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.bins.description import cells_of
from rhale_stats.bins.rule import BinRule, Candidates, Column, Partition, make_lines
from rhale_stats.effects.estimates import (
    Cells,
    bin_moments,
    bin_slopes,
    feature_estimates,
    fine_cells,
    reached,
    shared_noise,
)
from rhale_stats.effects.spread import Fitted, own_spread
from rhale_stats.local.rows import SELECT_ROWS, Rows, columns, honest_split
from rhale_stats.schema.features import resolution
from rhale_stats.schema.stacking import Estimates


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

    for_edges: Rows
    for_estimates: Rows
    attrs: dict[str, float | int]

    @property
    def is_honest(self) -> bool:
        """Whether edges are chosen on other rows than effects are estimated on."""
        return self.for_edges is not self.for_estimates

    def ends(self, position: int, name: str) -> tuple[float, float]:
        """Ends of the axis of one feature over all rows; raise if they are not finite."""
        halves = (self.for_edges, self.for_estimates) if self.is_honest else (self.for_estimates,)
        ends = np.array([(half.x[position].min(), half.x[position].max()) for half in halves])
        if not np.isfinite(ends).all():
            for half in halves:
                check_finite(half.x[position], "x", name, SELECT_ROWS)
        return float(ends.min()), float(ends.max())


def all_rows(local: xr.Dataset) -> RowSplit:
    """All rows, for edges and for estimates."""
    rows = columns(local)
    return RowSplit(rows, rows, {})


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
    for_edges = honest_split(local.sizes["obs"], honest_fraction, seed)
    estimates, edges = columns(local.isel(obs=~for_edges)), columns(local.isel(obs=for_edges))
    attrs = {
        "honest_fraction": float(honest_fraction),
        "honest_seed": seed,
        "n_rows_edges": edges.n_rows,
    }
    return RowSplit(edges, estimates, attrs)


def first_pass(
    rule: BinRule, split: RowSplit, position: int, name: str, slopes_across: FloatArray | None
) -> Cells:
    """Moments of one feature in the finest cells that the rule considers.

    ``slopes_across`` are the edges of the cells that local effects are slopes across, if any.
    """
    rows = split.for_edges
    low, high = split.ends(position, name)
    if slopes_across is not None:
        slopes_across = reached(slopes_across, low, high)
        low, high = float(slopes_across[0]), float(slopes_across[-1])
    column = Column(name, rows.x[position], low, high, rows.weight, slopes_across)
    if low == high:
        return Cells(column, None, None, None)
    axis = cells_of(rule, column)
    moments, comoments = bin_moments(axis, rows, position, name, lines=make_lines(rule))
    return Cells(column, axis, moments, comoments)


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
            None if column.cells is None or axis is None else np.asarray(axis.edges),
        )
        for position, (column, axis, moments, comoments) in enumerate(features)
        if moments is not None
    }
    return dict(zip(candidates, rule.choose(list(candidates.values())), strict=True))


def second_pass(
    request: Request,
    split: RowSplit,
    position: int,
    cells: Cells,
    partition: Partition | None,
    error: float,
) -> Estimates:
    """Estimates of one feature in its bins; none for a constant feature.

    ``cells`` hold the moments of the rows for edges, ``error`` is the numerical error of a local
    effect.
    """
    if cells.axis is None or partition is None:
        return {}
    rows = split.for_estimates
    own = on_other_rows(request.rule, rows, position, cells) if split.is_honest else cells
    fitted = _fitted(request, rows, position, own, partition)
    _, axis, edges, bins, slope, along = fitted
    residuals = squares = None
    if request.std_error_moments or slope is not None:
        x, g = rows.x[position], rows.local_effect[position]
        residuals = sums.residual_moments(axis, partition.starts, bins, x, g, rows.weight, slope)
        if (
            request.std_error_moments
            and rows.weight is not None
            and sums.need_squares(rows.weight, frequency=rows.frequency)
        ):
            squares = sums.squares(axis, partition.starts, bins, x, g, rows.weight, slope)
    estimates = feature_estimates(
        edges,
        bins,
        along,
        slope,
        residuals,
        request.centering,
        std_error_moments=request.std_error_moments,
        squares=squares,
    )
    if squares is not None:
        estimates = {**estimates, "skewness_sign": fitted.skewness_sign(rows, position)}
    if along is not None and slope is not None:
        shared = shared_noise(along, bins, slope, rows, position)
        estimates = {**estimates, "effect_slope_covariance": shared}
    if not request.std_error_moments:
        return estimates
    chosen_on = None
    if split.is_honest:
        others = split.for_edges
        chosen_on = _fitted(request, others, position, cells, partition), others
    spread = own_spread(request.rule, fitted, rows, position, error, chosen_on)
    return {**estimates, **spread}


def _fitted(
    request: Request, rows: Rows, position: int, cells: Cells, partition: Partition
) -> Fitted:
    """The effect of one feature in its bins, from the moments of these rows."""
    column, axis, moments, comoments = cells
    assert axis is not None, "a constant feature has no bins"
    assert moments is not None, "a feature with cells has their moments"
    bins = sums.merge(moments, partition.starts)
    slope = bin_slopes(moments, comoments, partition, bins)
    edges = binning.bin_edges(axis, partition.starts, column.low, column.high)
    along = fine_cells(column, edges, rows, position) if request.weighting == "axis" else None
    return Fitted(column, axis, edges, bins, slope, along)


def on_other_rows(rule: BinRule, rows: Rows, position: int, cells: Cells) -> Cells:
    """The same cells with the moments of other rows, as honest bins need."""
    column, axis = cells.column, cells.axis
    if axis is None:
        return cells
    moments, comoments = bin_moments(axis, rows, position, column.name, lines=make_lines(rule))
    return Cells(column, axis, moments, comoments)
