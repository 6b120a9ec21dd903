"""Values of a curve between its edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rhale_stats.arguments.rows import as_numbers
from rhale_stats.arguments.times import as_values
from rhale_stats.arrays.binning import bin_index
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.schema.checks import check_effect
from rhale_stats.schema.feature_result import FeatureResult, one_feature
from rhale_stats.schema.features import feature_names, feature_position, given_feature
from rhale_stats.schema.levels import level_names, level_text
from rhale_stats.schema.variables import GRID_VALUE


def predict(
    effect: xr.Dataset, x: Any, feature: str | int | None, what: str = "curve"
) -> xr.DataArray:
    """`predict` of the curve of one feature, of its effect or of its heterogeneity."""
    feature = given_feature(feature, "predict(effect, x, 'dose')")
    effect = check_effect(effect)
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
