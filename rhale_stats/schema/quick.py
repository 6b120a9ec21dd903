"""Variables added to a Dataset and selected from one, without xarray's alignment of all of them.

Results have up to a hundred small variables, and xarray looks at each of them several times
whenever one is added or selected. With few rows this takes longer than the estimates. These
functions give what ``assign`` and ``isel`` give.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from itertools import filterfalse, repeat
from typing import Any

import numpy as np
import xarray as xr


def with_variables(
    dataset: xr.Dataset, added: Mapping[str, Any], coords: xr.Dataset | None = None
) -> xr.Dataset:
    """``dataset.assign(added)`` for variables, or tuples that make them, without coordinates.

    ``coords`` has coordinates of new dimensions, which are added too.
    """
    new: dict[Hashable, xr.Variable] = {name: xr.as_variable(added[name]) for name in added}
    present, sizes = dataset.variables, dict(dataset.sizes)
    coordinates = {} if coords is None else dict(coords.variables)
    for name, variable in (new | coordinates).items():
        sizes = {**variable.sizes, **sizes}
        fits = sizes == {**sizes, **variable.sizes}
        replaced = name in present and (name not in new or present[name].dims != variable.dims)
        if not fits or replaced or name in dataset.coords:
            # Which may remove a dimension, or is refused: xarray knows.
            return dataset.assign(added).assign_coords({} if coords is None else coords.coords)
    # Variables are shared with no other result, so that their attributes are not, either.
    out = dataset.copy()
    return out._replace(
        {**out.variables, **new, **coordinates},
        coord_names={*out.coords, *coordinates},
        dims=sizes,
        indexes=dict(out.xindexes) | ({} if coords is None else dict(coords.xindexes)),
    )


def selected(dataset: xr.Dataset, place: Mapping[Hashable, int | slice]) -> xr.Dataset:
    """``dataset.isel(place)`` for numbers and slices."""
    numbers = {dim for dim in place if isinstance(place[dim], int)}
    variables: dict[Hashable, xr.Variable] = {}
    indexes = dict(dataset.xindexes)
    for name, variable in dataset.variables.items():
        dims = variable.dims
        if place.keys().isdisjoint(dims):
            variables[name] = variable
        elif name in indexes or not isinstance(variable._data, np.ndarray):
            within = {dim: place[dim] for dim in dims if dim in place}
            variables[name] = variable.isel(within)
            index = indexes.pop(name, None)
            part = None if index is None else index.isel(within)
            if part is not None:
                indexes[name] = part
        else:
            # A single number is selected as an array, which keeps its type.
            values = variable._data[(*map(place.get, dims, repeat(slice(None))), ...)]
            left = tuple(filterfalse(numbers.__contains__, dims))
            variables[name] = xr.Variable(
                left, values, variable.attrs, variable._encoding, fastpath=True
            )
    sizes = {
        dim: len(range(size)[place[dim]]) if dim in place else size  # type: ignore[arg-type]
        for dim, size in dataset.sizes.items()
        if dim not in numbers
    }
    return dataset._replace(variables, dims=sizes, indexes=indexes)
