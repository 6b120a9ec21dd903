"""Variables of results: what the tables say of them, how they are added, selected and ordered."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import filterfalse, repeat
from typing import Any, TypeAlias

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from xarray.indexes import Index, PandasIndex

from rhale_stats._version import __version__
from rhale_stats.schema import variable_table as table
from rhale_stats.schema.kinds import EFFECT, Kind


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
        if not fits or replaced or name in dataset._coord_names:
            # Which may remove a dimension, or is refused: xarray knows.
            return dataset.assign(added).assign_coords({} if coords is None else coords.coords)
    # Variables are shared with no other result, so that their attributes are not, either: those of
    # effects in bins are made anew when their compact form is.
    out = dataset if "moments" in dataset.data_vars else dataset.copy()
    return out._replace(
        {**out.variables, **new, **coordinates},
        coord_names={*out._coord_names, *coordinates},
        dims=sizes,
        indexes=out._indexes | ({} if coords is None else coords._indexes),
    )


def dataset_of(
    data: Mapping[Any, Any], coords: Mapping[Any, Any], attrs: Mapping[Any, Any]
) -> xr.Dataset:
    """``xr.Dataset(data, coords, attrs)`` of variables, or tuples that make them.

    Nothing is aligned, which takes half the time: the sizes agree.
    """
    variables: dict[Hashable, xr.Variable] = {}
    indexes: dict[Hashable, Index] = {}
    sizes: dict[Hashable, int] = {}
    for name, value in (*data.items(), *coords.items()):
        variables[name] = variable = xr.as_variable(value, name=name, auto_convert=False)
        if isinstance(variable, xr.IndexVariable):
            indexes[name] = PandasIndex(variable.to_index(), name, coord_dtype=variable.dtype)
        elif name in variable.dims:
            indexes[name] = PandasIndex.from_variables({name: variable}, options={})
            variables |= indexes[name].create_variables({name: variable})
        sizes |= variable.sizes
    return xr.Dataset._construct_direct(variables, {*coords}, sizes, dict(attrs), indexes)


def without(dataset: xr.Dataset, *names: str) -> xr.Dataset:
    """The Dataset without these variables; itself where it has none of them."""
    present = [name for name in names if name in dataset.variables]
    return dataset.drop_vars(present) if present else dataset


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


# --- variables of results as their table says -----------------------------------------------------


# Of results that write their units themselves.
EFFECT_UNITS, EFFECT_SQUARE_UNITS = table.EFFECT_UNITS, table.EFFECT_SQUARE_UNITS
OUTPUT_UNITS, X_UNITS = table.OUTPUT_UNITS, table.X_UNITS
EFFECT_VARIABLES = table.EFFECT_VARIABLES
# What is known of points at which curves are compared.
GRID_VALUE = {"long_name": "value of the feature", "units": X_UNITS}
# Products in linear bins: of d, the distance from ``x_mean``, and of the residual r.
LINE_MOMENTS = ("d^3", "d^4", "d^2 r", "d^3 r", "d r^2", "d^2 r^2")
# Products that ``squares`` holds.
SQUARE_MOMENTS = ("d", "d^2", "r", "d r", *LINE_MOMENTS, "r^2", "r^4")
# Sums in ``weight_products``, over rows of weight w, divided by the largest weight.
WEIGHT_PRODUCTS = ("w", "w^2", "w^2 r^3", "w^3", "w^3 r", "w^3 r^2", "w^3 r^3", "w^4", "w^5")
# Sizes of bins: nothing is there, not something unknown, where a feature has no bin.
COUNTS = (
    *("n_obs", "n_effective", "weight_share"),
    *("n_level", "n_level_effective", "level_share"),
)
# Order of the dimensions in every result; of local effects rows come first.
DIMENSIONS = (
    *("direction", "pair", "replicate", "chain", "repeat", "draw", "fold", "region"),
    *("effect_method", "output", "feature", "edge_a", "cell", "cell_edge", "bin", "edge"),
    *("bin_edge", "node", "n_bins_tried", "part", "component"),
    *("conditioning", "feature_other", "pruning", "edge_b", "bin_other", "moment"),
    *("square_moment", "weight_product", "edge_other", "grid", "obs"),
    *("grid_other", "term", "by", "term_other", "by_other", "output_other", "ci_bound"),
    *("side", "obs_background"),
)
Values: TypeAlias = NDArray[np.float64] | NDArray[np.int64] | NDArray[np.str_]


def variable(
    name: str,
    values: NDArray[Any] | float,
    kind: Kind = EFFECT,
    dims: Sequence[str] | None = None,
    /,
    **facts: str | int | float,
) -> tuple[tuple[str, ...], Any, dict[str, str | int | float]]:
    """A variable of a kind of result with its dims, names, units and the estimator's facts.

    ``dims`` are those of this one where they are others; ``long_name`` and ``units`` among the
    facts replace those of the table.
    """
    table_dims, long_name, units = table.VARIABLES[kind][name]
    attrs = {"long_name": long_name, "units": units, **facts}
    return table_dims if dims is None else tuple(dims), values, attrs


@lru_cache(maxsize=256)
def counted(dim: str, size: int, long_name: str) -> xr.IndexVariable:
    """The coordinate of a dimension that is counted from 0; kept, as its index takes time."""
    return xr.Variable(dim, np.arange(size), {"long_name": long_name}).to_index_variable()


def software() -> str:
    """Name and version of the package, as stored in every result."""
    return f"rhale_stats {__version__}"


# Variables that come first in a printed Dataset: estimates, standard errors, intervals.
LEADING = (
    *("surface", "surface_se", "second_effect", "effect", "effect_se", "heterogeneity"),
    *("curve", "curve_se", "average_effect", "average_effect_se", "importance"),
    *("heterogeneity_output", "heterogeneity_se", "slope", "slope_se", "effect_ci", "curve_ci"),
    *("average_effect_ci", "heterogeneity_ci", "effect_band", "curve_band"),
)


def answer_first(names: Iterable[Hashable]) -> list[Hashable]:
    """Names of variables with those of `LEADING` first, as printing shows few of many."""
    names = list(names)
    return [*filter(names.__contains__, LEADING), *filterfalse(LEADING.__contains__, names)]


def in_order(dataset: xr.Dataset) -> xr.Dataset:
    """The Dataset with dimensions in their order, after `transpose` for instance."""
    local = any(name in dataset for name in ("local_effect", "difference_up"))
    order = ("obs", *DIMENSIONS) if local else DIMENSIONS
    dims = [dim for dim in dict.fromkeys(order) if dim in dataset.dims]
    rank: dict[Hashable, int] = {dim: number for number, dim in enumerate(dims)}
    for array in dataset.variables.values():
        ordered = list(filter(rank.__contains__, array.dims))
        if ordered != sorted(ordered, key=rank.__getitem__):
            return dataset.transpose(*dims, ...)
    return dataset


def unit_mapping(attrs: Mapping[Hashable, object]) -> dict[str, str]:
    """Units per column from ``X.attrs["units"]``, where a DataFrame carries them."""
    units = attrs.get("units", {})
    if not isinstance(units, Mapping):
        raise TypeError(
            f"X.attrs['units'] must map column names to units; got {type(units).__name__}."
        )
    return {str(name): str(unit) for name, unit in units.items()}
