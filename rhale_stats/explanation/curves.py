"""Average curves of an explanation: effects, their errors, what is reliable about them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rhale_stats.arguments.words import warn
from rhale_stats.arrays.binning import quantile_edges
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.bins.fixed import GivenBins
from rhale_stats.diagnostics.unbiased import check_unbiased
from rhale_stats.effects.ale import ale_from_local
from rhale_stats.explanation.request import Request
from rhale_stats.generics.errors import std_error
from rhale_stats.generics.intervals import confband, confint
from rhale_stats.local.ale import ale_local_effects
from rhale_stats.local.cells import MOST_CELLS, repeated_values
from rhale_stats.models.parametric import ROW_NUMBER, has_parameters
from rhale_stats.models.table import check_column
from rhale_stats.schema.features import one_feature
from rhale_stats.schema.levels import is_categorical

# Rows that a bin of a feature with an axis has at least, where there are so many; fewest bins.
BIN_ROWS, LEAST_BINS = 30, 5
# Effective rows below which a bin is called small. A bin wider than this share of the axis is
# halved while both halves have as many rows; where its rows lie far from its middle nevertheless,
# it says nothing of the shape in it.
FEW_ROWS, WIDE, CROWDED, MOSTLY_WIDTH = 10, 0.1, 1 / 6, 0.05
YES, FEW, UNKNOWN, GAP = "yes", "few rows", "shape not known", "gap"


class Curves(NamedTuple):
    """Local effects and the effects made of them, with all that is known of their error."""

    local: xr.Dataset
    effect: xr.Dataset
    check: xr.Dataset | None


def n_bins_of(n_effective: float) -> int:
    """Bins of a feature with an axis: 40 where each has 30 rows, else fewer."""
    return int(np.clip(n_effective // BIN_ROWS, LEAST_BINS, MOST_CELLS))


def _edges(asked: Request, name: str) -> FloatArray:
    """Edges at quantiles; the wide bins where rows are rare are halved as far as rows allow."""
    position = asked.table.names.index(name)
    column = check_column(asked.table, position, missing="drop")
    known = ~np.isnan(column)
    order = np.argsort(column[known], kind="stable")
    x = column[known][order]
    counts = asked.counts
    if counts is not None:
        counts = counts[known][order]
    edges = quantile_edges(x, n_bins_of(asked.n_effective), counts)
    # Rows below each sorted value, as often as they count.
    below = np.arange(len(x) + 1) if counts is None else np.append(0, np.cumsum(counts))
    widest, number = WIDE * (x[-1] - x[0]), 0
    while number < len(edges) - 1:
        begin, end = below[np.searchsorted(x, edges[number : number + 2])]
        if edges[number + 1] - edges[number] > widest and end - begin >= 2 * FEW_ROWS:
            middle = x[np.searchsorted(below, (begin + end) // 2, side="right") - 1]
            if edges[number] < middle < edges[number + 1]:
                edges = np.insert(edges, number + 1, middle)
                continue
        number += 1
    return asked.table.whole(position, edges)


def _cells(asked: Request) -> dict[str, FloatArray]:
    """Values of the features that go from each value to the next, by feature."""
    found = {}
    for name in asked.axes:
        position = asked.table.names.index(name)
        x = asked.table.column(position)
        known = ~np.isnan(x)
        counts = None if asked.counts is None else asked.counts[known]
        values = repeated_values(x[known], counts)
        if values is not None:
            found[name] = asked.table.whole(position, values)
    return found


def curves_of(asked: Request, level: float, seed: int) -> Curves:
    """Effects of all features, with errors, intervals and bands."""
    edges = {name: at for name in asked.axes if len(at := _edges(asked, name)) > 1}
    cells = {name: at for name, at in _cells(asked).items() if name in edges}
    rule = GivenBins(edges or [0.0, 1.0], cells or None)
    local = ale_local_effects(
        asked.model,
        asked.X,
        bins=rule,
        features=asked.features,
        categorical=asked.levels or None,
        options=asked.options,
        progress=False,
    )
    effect = ale_from_local(local, bins=rule)
    model = has_parameters(asked.model)
    try:
        effect = with_errors(asked, effect, local, model=model)
    except (TypeError, ValueError) as error:
        if not model:
            raise
        warn(f"Intervals take the parameters of the model as given. {error}")
        effect = with_errors(asked, effect, local, model=False)
    effect = confband(confint(effect, level=level), level=level, rng=seed)
    axes = asked.axes
    check = None
    if axes:
        # Of features with an axis alone there is no covariance of levels.
        own = effect.sel(feature=axes)
        empty = [str(name) for name, one in own.data_vars.items() if not one.notnull().any()]
        check = check_unbiased(local.sel(feature=axes), own.drop_vars(empty), rng=seed)
    return Curves(local, effect, check)


def with_errors(
    asked: Request, effect: xr.Dataset, local: xr.Dataset, *, model: bool
) -> xr.Dataset:
    """With standard errors of the rows, and with ``model`` of its parameters (math [80]).

    Local effects of some rows have the numbers of these.
    """
    groups = asked.groups
    if model:
        return std_error(effect, local, groups=groups, model=asked.model, X=asked.X, progress=False)
    if groups is not None and ROW_NUMBER in local.coords:
        groups = groups[local[ROW_NUMBER].values]
    return std_error(effect, local, groups=groups, progress=False)


def with_reliable(curves: Curves, profile: xr.Dataset, delta: float) -> Curves:
    """With ``reliable``, what is known of the curve in each bin; ``profile`` are ICE curves.

    In a wide bin whose rows crowd at one end the shape of the curve is not known. It is not missed
    where the average of the ICE curves is straight there up to ``delta``.
    """
    effect = curves.effect
    rows = []
    for at in range(effect.sizes["feature"]):
        own = one_feature(effect, at)
        rows.append(_of_feature(own, _bends(own, profile.isel(feature=at)) > delta))
    out = np.full((len(rows), effect.sizes["bin"]), "", dtype=f"<U{len(UNKNOWN)}")
    for at, row in enumerate(rows):
        out[at, : len(row)] = row
    facts = {"long_name": "whether the curve is known in the bin", "units": ""}
    return curves._replace(effect=effect.assign(reliable=(("feature", "bin"), out, facts)))


def _bends(row: xr.Dataset, profile: xr.Dataset) -> FloatArray:
    """Largest distance of the average ICE curve from a straight line in each bin of an axis."""
    if is_categorical(row) or not row.sizes["bin"]:
        return np.zeros(row.sizes["bin"])
    n_grid = int(profile["n_grid"])
    grid, curve = profile["grid_value"].values[:n_grid], profile["curve"].values[:n_grid]
    edges = row["edge_value"].values
    ends = np.interp(edges, grid, curve)
    away = np.abs(curve - np.interp(grid, edges, ends))
    number = np.clip(np.searchsorted(edges, grid, side="right") - 1, 0, len(edges) - 2)
    out = np.full(len(edges) - 1, np.inf)  # nothing is known of a bin without a point
    for at in np.unique(number):
        out[at] = away[number == at].max()
    return out


def _of_feature(row: xr.Dataset, bent: NDArray[np.bool_]) -> NDArray[np.str_]:
    n_effective = row["n_effective"].values
    out = np.where(n_effective < FEW_ROWS, FEW, YES).astype(f"<U{len(UNKNOWN)}")
    out[n_effective == 0] = GAP
    if is_categorical(row) or not len(out):
        return out
    edges = row["edge_value"].values
    width, middle = np.diff(edges), (edges[:-1] + edges[1:]) / 2
    away = np.abs(row["x_mean"].values - middle)
    share, axis = row["weight_share"].values, width / (edges[-1] - edges[0])
    # A wide bin that hardly any rows are in is mostly width.
    out[(axis > WIDE) & (share < MOSTLY_WIDTH * axis) & (n_effective > 0)] = FEW
    crowded = (width > WIDE * (edges[-1] - edges[0])) & (away > CROWDED * width)
    out[crowded & bent & (n_effective > 0)] = UNKNOWN
    return out
