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
from rhale_stats.schema.checks import check_effect
from rhale_stats.schema.feature_result import FeatureResult, has_moments, one_feature
from rhale_stats.schema.features import feature_names, feature_position, given_feature
from rhale_stats.schema.levels import CATEGORICAL, is_categorical, level_names, level_text
from rhale_stats.schema.variables import GRID_VALUE, with_variables

# Between which percentiles of the rows summaries are made, unless others are asked for.
PERCENTILES = (1.0, 99.0)
AXIS_SHARE = "inner_share_of_index"


def asked_for(effect: xr.Dataset, percentiles: tuple[float, float] | None) -> xr.Dataset:
    """The effect, which remembers percentiles that were given."""
    if percentiles is None:
        return effect
    return effect.assign_attrs(percentiles=check_percentiles(percentiles))


def inner(effect: xr.Dataset) -> xr.Dataset:
    """The effect without its cells beyond the percentiles, or bins where there are no cells.

    They count as cells without rows do: the curve ends there. A cell with inner rows is kept whole.
    """
    low, high = percentiles_of(effect)
    variables, changed = effect.variables, dict[str, Any]()
    levels = np.isin(effect["feature_kind"].values.astype(str), CATEGORICAL)
    fine, of_axis = np.zeros(len(levels), dtype=bool), np.ones((2, len(levels)))
    if "cell_share" in effect:
        fine = np.isfinite(effect["cell_value"].values).any(axis=-1)
    for share, curve, place, applies in (
        ("cell_share", "cell_curve", "cell_value", fine),
        ("weight_share", "curve", "edge_value", ~fine & ~levels),
    ):
        if share not in effect or curve not in effect or not applies.any():
            continue
        below = np.nan_to_num(effect[share].values).cumsum(axis=-1)
        total, before = below[:, -1:], np.pad(below, ((0, 0), (1, 0)))[:, :-1]
        inside = below > total * low / 100 * (1 + 1e-9)
        inside &= before < total * high / 100 * (1 - 1e-9)
        inside |= ~applies[:, None]
        edges = np.pad(inside, ((0, 0), (1, 0))) | np.pad(inside, ((0, 0), (0, 1)))
        part = _share_of_axis(effect, np.where(edges, effect[place].values, np.nan))
        of_axis = np.where(applies, part, of_axis)
        changed[share] = variables[share].copy(data=np.where(inside, variables[share], 0.0))
        changed[curve] = variables[curve].copy(data=np.where(edges, variables[curve], np.nan))
    if "heterogeneity_index" in effect:
        index = variables["heterogeneity_index"]
        changed["heterogeneity_index"] = index.copy(data=index.values * of_axis[1])
    return with_variables(effect, {**changed, AXIS_SHARE: ("feature", of_axis[0])})


def _share_of_axis(effect: xr.Dataset, inner_edges: FloatArray) -> FloatArray:
    """Which part of the heterogeneity index, an integral along the axis, lies between edges.

    Shape (2, feature): of unbiased variances, and of those that are divided by the rows.
    """
    edges, square = effect["edge_value"].values, effect["heterogeneity"].values ** 2
    low, high = np.fmin.reduce(inner_edges, axis=-1), np.fmax.reduce(inner_edges, axis=-1)
    clipped = np.clip(edges, low[:, None], high[:, None])
    n = np.maximum(effect.get("n_effective", effect["n_obs"]).values, 1)
    both = np.stack([square, square * (1 - 1 / n)])
    part, whole = [np.nansum(np.diff(ends, axis=-1) * both, axis=-1) for ends in (clipped, edges)]
    return np.asarray(np.divide(part, whole, out=np.ones_like(whole), where=whole > 0))


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
            at_edges = row["cell_curve"].values if row.has_cells else curve
            out[number] = _importance(cells.pieces, at_edges, cells.line)
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
    source, edges = "effect", row["edge_value"].values
    if what == "heterogeneity":
        source = "heterogeneity"
        if row.sizes.get("spread_bin", 0):
            source, edges = "spread", row["spread_edge_value"].values
    if not len(edges):
        return np.full(np.shape(x), np.nan), source
    inside = (x >= edges[0]) & (x <= edges[-1])
    k = bin_index(edges, np.where(inside, x, edges[0]))
    values = row.effect_at(x, k) if what == "effect" else row[source].values[k]
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
