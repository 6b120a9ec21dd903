"""Values of a surface at pairs of values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from rhale_stats.arrays import second_order as kernel
from rhale_stats.arrays.binning import bin_index
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.schema.dimensions import with_part_facts
from rhale_stats.schema.levels import level_text


def pair_name(surface: xr.Dataset) -> str:
    """Both features, as they are called in tables."""
    return f"{surface.attrs['feature_a']}:{surface.attrs['feature_b']}"


def predict(surface: xr.Dataset, values: Any, feature: object) -> xr.DataArray:
    """`predict` of a surface: bilinear between edges, by level for categories, else NaN."""
    if feature is not None:
        raise ValueError(
            f"feature must be left out for a surface, which is of two; got {feature!r}. Pass "
            f"values of both: predict(surface, (values_a, values_b))."
        )
    if "chain" in surface.dims:
        raise ValueError("effect must be what ale2 or std_error returned; got replicates.")
    surface = with_part_facts(surface)
    pair = xr.broadcast(*_pair(surface, values))
    columns = [np.asarray(column.values) for column in pair]
    places = [
        _place(surface, side, column.ravel()) for side, column in zip("ab", columns, strict=True)
    ]
    (a, t_a, near_a, in_a), (b, t_b, near_b, in_b) = places
    # A value on an edge, or a level, belongs to the cells on both of its sides.
    supported = surface["supported"].values == 1
    is_supported = np.zeros(len(a), dtype=bool)
    for k in near_a:
        for m in near_b:
            is_supported |= supported[k, m]
    at_values = kernel.surface_at_values(np.nan_to_num(surface["surface"].values), a, b, t_a, t_b)
    out = np.where(is_supported & in_a & in_b, at_values, np.nan).reshape(columns[0].shape)
    coords = {
        str(surface.attrs[f"feature_{s}"]): (pair[0].dims, column)
        for s, column in zip("ab", columns, strict=True)
    }
    facts = {key: surface.attrs[key] for key in ("feature_a", "feature_b")}
    array = xr.DataArray(out, pair[0].coords, pair[0].dims, "surface", surface["surface"].attrs)
    new = {
        name: column
        for name, column in coords.items()
        if name not in array.coords and name not in array.dims
    }
    return array.assign_coords(new).assign_attrs(facts)


def _pair(surface: xr.Dataset, values: Any) -> tuple[xr.DataArray, xr.DataArray]:
    """Values of both features as arrays that go together."""
    names = [str(surface.attrs[f"feature_{side}"]) for side in "ab"]
    if isinstance(values, pd.DataFrame):
        absent = [name for name in names if name not in map(str, values.columns)]
        if absent:
            raise KeyError(
                f"x must have the columns {names[0]!r} and {names[1]!r}; got "
                f"{', '.join(map(repr, values.columns))}."
            )
        by_name = values.set_axis([str(name) for name in values.columns], axis=1)
        columns: list[Any] = [by_name[name].to_numpy() for name in names]
    elif isinstance(values, tuple):
        columns = list(values)
    else:
        rows: NDArray[Any] = np.asarray(values)
        columns = [rows[:, 0], rows[:, 1]] if rows.ndim == 2 and rows.shape[1] == 2 else []
    if len(columns) != 2:
        got = f"a tuple of {len(columns)}" if isinstance(values, tuple) else type(values).__name__
        if not isinstance(values, tuple | pd.DataFrame):
            got += f" of shape {np.shape(values)}"
        raise ValueError(
            f"x must be values of {names[0]!r} and of {names[1]!r}, for a surface: a tuple of two, "
            f"an array of two columns, or a DataFrame with both; got {got}."
        )
    plain: list[NDArray[Any]] = [
        np.asarray(column) for column in columns if not isinstance(column, xr.DataArray)
    ]
    try:
        shaped = iter(np.broadcast_arrays(*plain))
    except ValueError:
        raise ValueError(
            f"x must be as many values of {names[0]!r} as of {names[1]!r}; got shapes "
            f"{plain[0].shape} and {plain[1].shape}. For all pairs pass DataArrays of different "
            f"dims."
        ) from None
    out = [
        column if isinstance(column, xr.DataArray) else _labelled(next(shaped))
        for column in columns
    ]
    return out[0], out[1]


def _labelled(values: NDArray[Any]) -> xr.DataArray:
    return xr.DataArray(values, dims="grid") if values.ndim == 1 else xr.DataArray(values)


def _place(
    surface: xr.Dataset, side: str, values: NDArray[Any]
) -> tuple[IntArray, FloatArray | None, list[IntArray], NDArray[np.bool_]]:
    """Edges or levels that values have, their share of the bin, the steps beside, whether there."""
    last = surface.sizes[f"bin_{side}"] - 1
    name = surface.attrs[f"feature_{side}"]
    if f"level_{side}" in surface.coords:
        levels = [level_text(level) for level in surface[f"level_{side}"].values.tolist()]
        texts = [level_text(value) for value in values.tolist()]
        unknown = sorted(set(texts) - set(levels))
        if unknown:
            raise ValueError(
                f"x must hold levels of feature {name!r}, {', '.join(map(repr, levels))}; got "
                f"{', '.join(map(repr, unknown))}."
            )
        number = np.array([levels.index(text) for text in texts], dtype=np.int64)
        beside = [np.clip(number - 1, 0, last), np.clip(number, 0, last)]
        return number, None, beside, np.ones(len(number), dtype=bool)
    try:
        x = values.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"x must hold numbers of feature {name!r}; got {values.dtype} values."
        ) from None
    edges = surface[f"edge_value_{side}"].values
    inside = (x >= edges[0]) & (x <= edges[-1])
    x = np.where(inside, x, edges[0])
    place = bin_index(edges, x).astype(np.int64)
    share = (x - edges[place]) / np.diff(edges)[place]
    return place, share, [np.where(share == 0, np.maximum(place - 1, 0), place), place], inside
