"""Values of effects at places, and the range of the inner rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rhale_stats.arguments.checks import check_percentiles
from rhale_stats.arguments.rows import as_numbers
from rhale_stats.arguments.times import as_values
from rhale_stats.arrays import accumulate, categories
from rhale_stats.arrays.binning import bin_index
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.schema.all_features import AllFeatures
from rhale_stats.schema.checks import check_effect
from rhale_stats.schema.feature_result import (
    FeatureResult,
    all_features,
    has_moments,
    one_feature,
)
from rhale_stats.schema.features import feature_names, feature_position, given_feature
from rhale_stats.schema.layout import MOMENTS
from rhale_stats.schema.levels import is_categorical, level_names, level_text
from rhale_stats.schema.variables import GRID_VALUE, variable, with_variables

# Between which percentiles of the rows summaries are made, unless others are asked for.
PERCENTILES = (1.0, 99.0)
AXIS_SHARE = "inner_share_of_index"


def asked_for(effect: xr.Dataset, percentiles: tuple[float, float] | None) -> xr.Dataset:
    """The effect, which remembers percentiles that were given."""
    if percentiles is None:
        return effect
    return effect.assign_attrs(percentiles=check_percentiles(percentiles))


def inner(effect: xr.Dataset) -> xr.Dataset:
    """The effect with ``cell_share``, which is 0 in cells beyond the percentiles.

    They count as cells without rows do: the curve ends there. A cell with inner rows is kept whole.
    """
    if MOMENTS not in effect:
        return effect
    low, high = percentiles_of(effect)
    features, of_axis = all_features(effect), np.ones((2, effect.sizes["feature"]))
    share, is_cut = features.cell_share, (features.n_bins > 0) & ~features.has_levels
    below = share.cumsum(axis=-1)
    inside = below > below[:, -1:] * low / 100 * (1 + 1e-9)
    inside &= below - share < below[:, -1:] * high / 100 * (1 - 1e-9)
    at_edges = np.where(beside(inside), features.edges, np.nan)
    ends = [end.reduce(at_edges, axis=-1, keepdims=True) for end in (np.fmin, np.fmax)]
    of_axis[:, is_cut] = _shares_of_axis(features, *ends)[:, is_cut]
    share = np.where(is_cut[:, None] & ~inside, 0.0, share)
    in_cells = np.full(features.edges.shape, np.nan)
    in_cells[:, :-1] = np.where(features.is_cell, share, np.nan)
    index = features.heterogeneity_index * of_axis[1]
    variables = {
        "cell_share": (("feature", "edge"), in_cells),
        "heterogeneity_index": variable("heterogeneity_index", index),
        AXIS_SHARE: ("feature", of_axis[0]),
    }
    return with_variables(effect, variables)


def beside(cells: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which edges are those of marked cells, (..., cell) -> (..., edge)."""
    none = np.zeros((*cells.shape[:-1], 1), dtype=bool)
    right, left = np.concatenate([cells, none], axis=-1), np.concatenate([none, cells], axis=-1)
    return np.asarray(right | left)


def _shares_of_axis(features: AllFeatures, low: FloatArray, high: FloatArray) -> FloatArray:
    """Which part of a heterogeneity index, an integral along the axis, lies between two ends.

    Of unbiased variances, and of those that are divided by the rows: (2, feature).
    """
    edges, square = features.bin_edges, features.padded(features.heterogeneity**2)
    n = np.maximum(features.padded(features.n_effective), 1)
    both = np.stack([square, square * (1 - 1 / n)])
    part, whole = [
        np.nansum(np.diff(some) * both, axis=-1) for some in (np.clip(edges, low, high), edges)
    ]
    return np.asarray(np.divide(part, whole, out=np.ones(part.shape), where=whole > 0))


def percentiles_of(effect: xr.Dataset) -> tuple[float, float]:
    """Percentiles that were asked for, or the default."""
    low, high = effect.attrs.get("percentiles", PERCENTILES)
    return float(low), float(high)


def inner_text(effect: xr.Dataset) -> str:
    """Which rows ranges and sizes are over, in words."""
    low, high = percentiles_of(effect)
    return "all rows" if (low, high) == (0, 100) else f"inner {high - low:g} % of the rows"


def importances(effect: xr.Dataset) -> FloatArray:
    """``importance`` of `effect_sizes`, (feature); NaN where the moments for it are not there."""
    effect = inner(effect)
    out = np.full(effect.sizes["feature"], np.nan)
    for number in np.flatnonzero(effect["n_bins"].values > 0):
        row = one_feature(effect, int(number))
        curve = row["curve"].values
        if np.isnan(curve).all():
            continue
        if is_categorical(row):
            out[number] = categories.sizes(curve, row["level_share"].values)[0]
        elif has_moments(row):
            cells = row.curve_cells
            out[number] = _importance(cells.pieces, curve, cells.line)
    return out


def _importance(pieces: accumulate.Pieces, curve: FloatArray, moments: FloatArray) -> float:
    """Standard deviation over the rows of a curve, given at the edges of all its pieces.

    ``moments`` are those of linear bins that the spread of a parabola needs, (piece, 2).
    """
    full = bool((pieces.share > 0).all())
    stretch = slice(0, len(pieces.share)) if full else accumulate.known_stretch(pieces.share)
    occupied = pieces.stretch(stretch)
    at_edges = curve[stretch.start : stretch.stop + 1]
    spread, _ = accumulate.spread(at_edges, occupied, moments[stretch, 0], moments[stretch, 1])
    return float(spread)


def predict(
    effect: xr.Dataset, x: Any, feature: str | int | None, what: str = "curve"
) -> xr.DataArray:
    """`predict` of the curve of one feature, of its effect or of its heterogeneity."""
    effect = check_effect(effect)
    feature = given_feature(feature, "predict(effect, x, 'dose')", effect)
    row = one_feature(effect, feature)
    name = feature_names(effect)[feature_position(effect, feature)]
    if what != "curve" and row.is_categorical:
        raise ValueError(
            f"what must be 'curve' for feature {name!r}, which has levels: its effects and their "
            f"heterogeneity are of steps between two levels; got {what!r}."
        )
    labels: NDArray[Any] = np.asarray(x)
    labelled = isinstance(x, xr.DataArray)
    values = as_numbers(
        _level_numbers(row, labels)
        if row.is_categorical
        else as_values(x.values if labelled else x),
        "x",
    )
    dims = "grid" if values.ndim == 1 else None
    points = x.copy(data=values) if labelled else xr.DataArray(values, dims=dims)
    values, source = row.curve.evaluate(points.values), "curve"
    if what != "curve":
        values, source = _bin_values(row, points.values, what)
    out = xr.DataArray(values, dims=points.dims, coords=points.coords, name=what)
    out.attrs = {**effect[source].attrs, "feature": name}
    if "x" not in out.coords:
        labels = labels.astype(str) if labels.dtype == object else labels
        texts = (labels,) if row.is_categorical else (points.values, GRID_VALUE)
        out = out.assign_coords(x=(points.dims, *texts))
    return out


def _bin_values(row: FeatureResult, x: FloatArray, what: str) -> tuple[FloatArray, str]:
    """The effect at values, or the spread in its own bins, NaN outside; and the variable used."""
    source, edges = "effect", row.bin_edges
    if what == "heterogeneity":
        source = "heterogeneity"
        if row.has_spread:
            source, edges = "spread", row.spread_edges
    if not len(edges):
        return np.full(np.shape(x), np.nan), source
    inside = (x >= edges[0]) & (x <= edges[-1])
    k = bin_index(edges, np.where(inside, x, edges[0]))
    if what == "effect":
        values = row.effect_at(x, k)
    else:
        values = (row.spread if row.has_spread else row["heterogeneity"].values)[k]
    return np.where(inside, values, np.nan), source


def _level_numbers(row: FeatureResult, labels: NDArray[Any]) -> FloatArray:
    """Numbers of levels from what a table holds, or from their names."""
    names = level_names(row)
    texts = [level_text(label) for label in np.ravel(labels)]
    unknown = sorted(set(texts) - set(names))
    if unknown:
        raise ValueError(
            f"x must hold levels of feature {str(row['feature'].values)!r}, "
            f"{', '.join(map(repr, names))}; got {', '.join(map(repr, unknown))}."
        )
    return np.array([float(names.index(text)) for text in texts]).reshape(labels.shape)
