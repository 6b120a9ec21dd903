"""Arrays of single features, and results of single parts, put together."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from rhale_stats.arrays.cell_moments import FIELDS
from rhale_stats.schema.dimensions import OUTPUT, PARTS, REGION, ROWS
from rhale_stats.schema.features import feature_names
from rhale_stats.schema.identity import FINGERPRINT, with_joint_fingerprints
from rhale_stats.schema.layout import METHOD, method_as_attribute, method_by_feature
from rhale_stats.schema.notes import Summary, joint_notes
from rhale_stats.schema.variables import (
    COUNTS,
    EFFECT_VARIABLES,
    SQUARE_MOMENTS,
    WEIGHT_PRODUCTS,
    dataset_of,
    with_variables,
)

Estimates: TypeAlias = Mapping[str, NDArray[np.float64] | float]


def padded(
    each: Sequence[Any],
    shape: Sequence[int] | None = None,
    *,
    missing: Any = np.nan,
    dtype: Any = np.float64,
) -> NDArray[Any]:
    """Arrays of several features as one, along a new first axis; behind their ends, ``missing``.

    ``shape`` is that of each, and by default that of the longest. A single number is everywhere.
    """
    arrays = list(map(np.asarray, each))
    if shape is None:
        shape = np.max([array.shape for array in arrays], axis=0)
    out = np.full((len(arrays), *shape), missing, dtype=dtype)
    for number, array in enumerate(arrays):
        part: tuple[int | slice, ...] = (number, *map(slice, array.shape))
        out[part] = array
    return out


def pad_features(
    rows: Sequence[Estimates], sizes: Mapping[Hashable, int], **more: int
) -> dict[str, NDArray[Any]]:
    """Estimates of several features as arrays over ``feature`` and what else their name says.

    A row has a feature's estimates by name, at the length that its bins have; a constant feature
    has NaN in their place, and so has one that lacks a name. What a row does not reach is NaN, and
    0 where rows are counted. ``sizes`` are those of ``bin`` and ``edge``, and ``more`` of others.
    """
    lengths: dict[str, int] = {"moment": len(FIELDS), "ci_bound": 2}
    lengths |= {"square_moment": len(SQUARE_MOMENTS), "weight_product": len(WEIGHT_PRODUCTS)}
    for dim in ("bin", "edge"):
        lengths |= {dim: sizes[dim], f"{dim}_other": sizes[dim]}
    lengths |= more
    out: dict[str, NDArray[Any]] = {}
    for number, row in enumerate(rows):
        for name, values in row.items():
            if name not in out:
                shape = map(lengths.__getitem__, EFFECT_VARIABLES[name][0][1:])
                out[name] = np.full((len(rows), *shape), np.nan)
            place: tuple[int | slice, ...] = (number, *map(slice, np.shape(values)))
            out[name][place] = values
    for name in filter(COUNTS.__contains__, list(out)):
        out[name] = np.nan_to_num(out[name])
        if name in ("n_obs", "n_level"):
            # Rows on edges count half in two cells.
            out[name] = np.rint(out[name]).astype(np.int64)
    return out


def stack(
    datasets: Sequence[xr.Dataset], dim: str, *, integer: int = 0, varies: Collection[Hashable] = ()
) -> xr.Dataset:
    """Results of the same kind along a new first dimension, padded to the longest of them.

    What one of them does not have, or does not reach, is NaN, the empty text, ``integer``, and 0
    where rows are counted. Coordinates of features and attributes that are the same everywhere stay
    as they are, unless named in ``varies``; other attributes become coordinates.
    """
    datasets = _alike(datasets)
    first = datasets[0]
    longest = {axis: max(datasets, key=lambda dataset: dataset.sizes[axis]) for axis in first.dims}
    sizes = {axis: dataset.sizes[axis] for axis, dataset in longest.items()}

    def as_one(name: Hashable) -> xr.Variable:
        arrays, attrs = [], []
        for dataset in datasets:
            arrays.append(dataset.variables[name].values)
            attrs.append(dataset.variables[name].attrs)
        dims = first.variables[name].dims
        dtype = np.result_type(*arrays)
        missing = {"f": np.nan, "U": "", "i": integer}.get(dtype.kind, 0)
        missing = 0 if name in COUNTS else missing
        shape = [sizes[axis] for axis in dims]
        values = padded(arrays, shape, missing=missing, dtype=dtype)
        return xr.Variable((dim, *dims), values, joined_attrs(attrs))

    coords = {}
    for name in first.coords:
        every = [dataset.variables[name] for dataset in datasets]
        always = str(name).startswith(dim) or name in varies
        always |= set(every[0].dims) > {"feature"}
        if name in first.dims:
            coords[name] = longest[name].variables[name]
        elif not always and all(
            np.array_equal(other.values, every[0].values) for other in every[1:]
        ):
            coords[name] = every[0]
        else:
            coords[name] = as_one(name)
    attrs, different = {}, {}
    for key, value in first.attrs.items():
        values = [dataset.attrs.get(key, "") for dataset in datasets]
        if all(np.array_equal(other, value) for other in values):
            attrs[key] = value
        else:
            different[f"{dim}_{key}"] = (dim, np.array(values), {"long_name": str(key)})
    return dataset_of({name: as_one(name) for name in first.data_vars}, coords | different, attrs)


def joined_attrs(each: Sequence[Mapping[Any, Any]]) -> dict[Any, Any]:
    """Attributes of the first; texts that differ are joined by semicolons."""
    first = dict(each[0])
    for key, value in first.items():
        if isinstance(value, str):
            # Attributes of one part may be joint ones already.
            texts = "; ".join([str(attrs.get(key, value)) for attrs in each]).split("; ")
            first[key] = "; ".join(dict.fromkeys(texts))
    return first


def together(results: Sequence[Any], source: xr.Dataset, dim: str) -> Any:
    """Results of all parts as one."""
    first = results[0]
    if isinstance(first, xr.Dataset):
        parts = [result.drop_vars([ROWS, "obs"], errors="ignore") for result in results]
        out = stack(parts, dim)
        # The rows of all outputs are the same; those of regions say which they are in.
        of_outputs = dim == OUTPUT and "obs" in out.dims
        sources = [dim, *["obs"] * of_outputs, *[ROWS] * (ROWS in first and dim == REGION)]
        sources = [name for name in sources if name in source]
        rows = {name: source.variables[name] for name in sources if name == ROWS}
        coords = {
            name: coord.variable
            for about in sources
            for name, coord in source[about].coords.items()
        }
        out = out.drop_vars(coords, errors="ignore")
        out = with_variables(out, rows, dataset_of({}, coords, {}))
        return out.transpose("chain", "draw", ...) if "draw" in out.dims else out
    if isinstance(first, xr.DataArray):
        return xr.concat(results, dim, combine_attrs="drop_conflicts", join="exact")
    if isinstance(first, pd.DataFrame):
        parts = []
        for number, frame in enumerate(results):
            part = source.isel({dim: number})
            frame.insert(0, dim, part[dim].item())
            if dim == REGION:
                frame.insert(1, "rule", str(part["region_rule"].values))
            parts.append(frame)
        return pd.concat(parts, ignore_index=True)

    if isinstance(first, Summary):
        names = [f"{dim} {source[dim].values[number]}" for number in range(len(results))]
        return Summary(
            [table for result in results for table in result.tables],
            joint_notes([result.notes for result in results], names),
            tuple(dict.fromkeys(line for result in results for line in result.words)),
        )
    raise TypeError(f"results of {dim}s cannot be put together; got {type(first).__name__}.")


def by_feature(results: Sequence[xr.Dataset], names: Sequence[str]) -> xr.Dataset:
    """Results of groups of features as one, features in their order.

    What only some groups have is NaN for the others, and 0 where rows are counted.
    """
    of_all = any(METHOD in result.attrs for result in results)
    results = with_joint_fingerprints(_alike([method_by_feature(result) for result in results]))
    first = results[0]
    varies = {name for name, variable in first.variables.items() if "feature" in variable.dims}
    single = {
        name: result.drop_vars([ROWS, "obs"], errors="ignore").sel(feature=name)
        for result in results
        for name in feature_names(result)
    }
    out = stack([single[name] for name in names if name in single], "feature", varies=varies)
    if "n_rows" in first.attrs:
        out.attrs["n_rows"] = max(result.attrs["n_rows"] for result in results)
    out = method_as_attribute(out) if of_all else out
    return out.transpose("chain", "draw", ...) if "draw" in out.dims else out


def _alike(results: Sequence[xr.Dataset]) -> list[xr.Dataset]:
    """Results each of which has all variables of the others, NaN where it had none."""
    alike = list(results)
    if len({(frozenset(result.variables), frozenset(result.dims)) for result in alike}) == 1:
        return alike
    for other in results:
        alike = [_filled(result, other) for result in alike]
    return alike


def _filled(dataset: xr.Dataset, other: xr.Dataset) -> xr.Dataset:
    """The Dataset with all variables and coordinates that the other has."""
    absent = [name for name in other.variables if name not in dataset.variables]
    if not absent and not any(dim in other.dims and dim not in dataset.dims for dim in PARTS):
        return dataset
    sizes = {**other.sizes, **dataset.sizes}

    def nothing(name: Any) -> tuple[Any, NDArray[Any], dict[Any, Any]]:
        template = other.variables[name]
        # No bin of theirs is sloped.
        if name == "slope":
            return template.dims, np.zeros([sizes[dim] for dim in template.dims]), template.attrs
        missing: Any = {"U": "", "i": 0}.get(template.dtype.kind, 0 if name in COUNTS else np.nan)
        values = np.full([sizes[dim] for dim in template.dims], missing, dtype=template.dtype)
        return template.dims, values, template.attrs

    for dim in PARTS:
        # The model was not asked for a feature that is constant, nor how many outputs it has.
        if dim in other.dims and dim not in dataset.dims:
            both = dataset.data_vars.keys() & other.data_vars.keys()
            each = [name for name in both if dim in other[name].dims]
            expanded = {name: dataset[name].expand_dims({dim: other.sizes[dim]}) for name in each}
            dataset = dataset.assign(expanded)
    filling = {name: nothing(name) for name in absent if name not in other.dims}
    data = {name: filling[name] for name in filling if name in other.data_vars}
    coords = {name: filling[name] for name in filling if name in other.coords}
    dims = {name: other.variables[name] for name in absent if name in other.dims}
    return dataset.assign(data).assign_coords({**coords, **dims})


def as_regions(results: Mapping[Any, xr.Dataset], name: str = "") -> xr.Dataset:
    """Results of one kind by their labels, as those of regions are: along ``region``."""
    parts = [part.drop_vars("obs", errors="ignore") for part in results.values()]
    before = f"{name} = " if name else ""
    labels = [str(label) for label in results]
    out = stack(parts, REGION)
    return out.assign_coords(
        region=(REGION, labels, {"long_name": name or "result"}),
        region_rule=(REGION, [f"{before}{label}" for label in labels], {"long_name": "result"}),
    )


def concatenated(dataset: xr.Dataset, dim: str) -> xr.Dataset:
    """Results that a user put together along a dimension, as those of regions are.

    They have the attributes of the first; the numbers of their rows are counted again.
    """
    labels = dataset[dim].values if dim in dataset.coords else np.arange(dataset.sizes[dim])
    parts = {}
    for number, label in enumerate(labels):
        part = dataset.isel({dim: number}).drop_vars(dim, errors="ignore")
        counts = {name: part[name].fillna(0) for name in COUNTS if name in part.data_vars}
        whole = {name: count.astype(np.int64) for name, count in counts.items() if name == "n_obs"}
        part = part.assign(counts | whole)
        if "n_obs" in part and "n_rows" in part.attrs:
            n_obs = part["n_obs"]
            over = [axis for axis in n_obs.dims if axis != "feature"]
            part = part.assign_attrs(n_rows=int(n_obs.sum(over).max()))
        part.attrs.pop(FINGERPRINT, None)
        parts[label] = part
    return as_regions(parts, dim)


# --- with numeric features -----------------------------------------------------------------------


def concat_features(parts: Sequence[xr.Dataset], names: Sequence[str]) -> xr.Dataset:
    """Local effects, or effects, of features with an axis and of others with levels as one."""
    if len(parts) == 1:
        return parts[0]
    weight = parts[0].get("weight")
    obs = parts[0].coords.get("obs")
    # One description for both: that of the features with an axis.
    parts = with_joint_fingerprints(parts)
    attrs = {**parts[1].attrs, **parts[0].attrs}
    out = by_feature(
        [part.drop_vars("weight", errors="ignore").assign_attrs(attrs) for part in parts], names
    )
    front = [dim for dim in (OUTPUT, "obs") if dim in out.dims]
    out = out.transpose(*front, ...)
    out = out if obs is None else out.assign_coords(obs=obs)
    return out if weight is None else out.assign(weight=weight)
