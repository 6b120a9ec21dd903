"""Functions of one effect, part by part: by output, by region, by the rows that a feature has.

Classes of a classifier and regions are a stack of effects, each of its own. Features whose values
are missing in some rows have rows of their own. A function that knows one part knows them all.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from functools import wraps
from itertools import zip_longest
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from statsmodels.iolib.summary import Summary

from rhale_stats.identity import row_labels, with_joint_fingerprints
from rhale_stats.schema import COUNTS, OUTPUT, PARTS, REGION, ROWS, feature_names, stack
from rhale_stats.validate import of_rows

# Arguments that say something of every row.
ROW_ARGUMENTS = ("groups", "strata")

# So many notes are printed below a table.
MOST_NOTES = 5
P = ParamSpec("P")
T = TypeVar("T")


def each_part(function: Callable[P, T]) -> Callable[P, T]:
    """Let a function of local effects or effects take several outputs or regions.

    Datasets with a dimension ``output`` or ``region`` are given to it one at a time, everything
    else as it is: rows of local effects are found by ``region_of_row``. What comes back is put
    together.
    """

    @wraps(function)
    def over_parts(*args: P.args, **kwargs: P.kwargs) -> T:
        given: list[Any] = [*args, *kwargs.values()]
        for dim in PARTS:
            whole = [one for one in given if isinstance(one, xr.Dataset) and dim in one.dims]
            if whole:
                call: Callable[..., Any] = over_parts
                results = [
                    call(
                        *(_at(value, dim, number) for value in some),
                        **{name: _at(value, dim, number) for name, value in named.items()},
                    )
                    for number, (some, named) in enumerate(
                        _with_same_draws(args, kwargs, _size(whole, dim))
                    )
                ]
                out: T = together(results, whole[0], dim)
                return out
        return function(*args, **kwargs)

    return over_parts


def _with_same_draws(
    args: tuple[Any, ...], kwargs: dict[str, Any], n: int
) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Arguments of so many calls that draw the same random numbers, by a seed or by a Generator.

    The first call has the Generator that was given, which moves on; the others have copies.
    """

    def copied(value: Any) -> Any:
        return deepcopy(value) if isinstance(value, np.random.Generator) else value

    others = [
        (tuple(map(copied, args)), {name: copied(value) for name, value in kwargs.items()})
        for _ in range(n - 1)
    ]
    return [(args, kwargs), *others]


def _size(whole: Sequence[xr.Dataset], dim: str) -> int:
    sizes = [one.sizes[dim] for one in whole]
    if len(set(sizes)) > 1:
        raise ValueError(
            f"All arguments must be of the same {dim}s; got {' and '.join(map(str, sizes))} of "
            f"them."
        )
    return sizes[0]


def _at(value: Any, dim: str, number: int) -> Any:
    """One part of what has them."""
    if isinstance(value, xr.Dataset) and dim in value.dims:
        return value.isel({dim: number})
    return value


def together(results: Sequence[Any], of: xr.Dataset, dim: str) -> Any:
    """Results of all parts as one."""
    first = results[0]
    if isinstance(first, xr.Dataset):
        out = stack([result.drop_vars([ROWS, "obs"], errors="ignore") for result in results], dim)
        out = out.assign_coords({dim: of[dim]}) if dim in of.coords else out
        if dim == OUTPUT and "obs" in out.dims and "obs" in of.coords:
            # The rows of all outputs are the same.
            out = out.assign_coords(obs=of["obs"])
        if "draw" in out.dims:
            out = out.transpose("chain", "draw", ...)
        return out.assign({ROWS: of[ROWS]}) if ROWS in first and dim == REGION else out
    if isinstance(first, xr.DataArray):
        return xr.concat(results, dim, combine_attrs="drop_conflicts", join="exact")
    if isinstance(first, pd.DataFrame):
        parts = []
        for number, frame in enumerate(results):
            one = of.isel({dim: number})
            frame.insert(0, dim, one[dim].item())
            if dim == REGION:
                frame.insert(1, "rule", str(one["region_rule"].values))
            parts.append(frame)
        return pd.concat(parts, ignore_index=True)
    if isinstance(first, Summary):
        names = [f"{dim} {of[dim].values[number]}" for number in range(len(results))]
        return with_notes(
            [table for result in results for table in result.tables],
            _joint_notes([result.notes for result in results], names),
            tuple(dict.fromkeys(line for result in results for line in result.words)),
        )
    raise TypeError(f"results of {dim}s cannot be put together; got {type(first).__name__}.")


def with_notes(tables: list[Any], notes: Sequence[str], words: tuple[str, ...] = ()) -> Summary:
    """Tables with their first notes below them, numbered.

    Notes come with the most important first; all of them are in the attribute ``notes`` of what is
    returned. ``words`` stand above them.
    """
    out = Summary()
    out.tables, out.notes, out.words = tables, list(notes), words
    lines = [f"[{number}] {note}" for number, note in enumerate(notes[:MOST_NOTES], start=1)]
    rest = len(notes) - MOST_NOTES
    if rest > 0:
        lines.append(f"{rest} more note{'s' if rest > 1 else ''}: see summary(...).notes")
    out.add_extra_txt([*words, "Notes:", *lines])
    return out


def _joint_notes(each: Sequence[Sequence[str]], names: Sequence[str]) -> list[str]:
    """Notes of all parts, in their order; those that not all have with the names that have them."""
    of: dict[str, list[str]] = {}
    for at_place in zip_longest(*each):
        for name, note in zip(names, at_place, strict=True):
            if note is not None:
                of.setdefault(note, []).append(name)
    everyone = len(names)
    return [n if len(who) == everyone else f"{', '.join(who)}: {n}" for n, who in of.items()]


# --- features that have rows of their own ---------------------------------------------------------


def own_rows(function: Callable[P, T]) -> Callable[P, T]:
    """Let a function of local effects give every feature the rows that have a value of it.

    It is called once for all features of the same rows, and must not look across features. Of its
    arguments Datasets and those named in ``ROW_ARGUMENTS`` have rows.
    """
    signature = inspect.signature(function)

    @wraps(function)
    def over_rows(*args: P.args, **kwargs: P.kwargs) -> T:
        given: list[Any] = [*args, *kwargs.values()]
        local = next((value for value in given if has_gaps(value)), None)
        if local is None:
            return function(*args, **kwargs)
        call: Callable[..., Any] = function
        named = signature.bind(*args, **kwargs).arguments
        _check_row_counts(named, local.sizes["obs"])
        for name in ROW_ARGUMENTS:
            if named.get(name) is not None:
                rows = of_rows(named[name], row_labels(local), local.sizes["obs"], name)
                named[name] = xr.DataArray(np.asarray(rows), dims="obs")
        groups = features_by_rows(local)
        results = [
            call(**{name: _of_group(value, *group) for name, value in some.items()})
            for group, (_, some) in zip(
                groups, _with_same_draws((), named, len(groups)), strict=True
            )
        ]
        joined: Any = by_feature(results, feature_names(local))
        return cast(T, joined)

    return over_rows


def _check_row_counts(named: Mapping[str, Any], n_rows: int) -> None:
    """Raise ``ValueError`` where a Dataset has another number of rows than the local effects."""
    for name, value in named.items():
        own = value.sizes.get("obs", n_rows) if isinstance(value, xr.Dataset) else n_rows
        if own != n_rows:
            given = " and ".join(key for key, one in named.items() if isinstance(one, xr.Dataset))
            raise ValueError(
                f"{given} must be of the same rows; {name} has {own}, the other {n_rows}. Pass the "
                f"Datasets that were made from each other."
            )


def has_gaps(value: Any) -> bool:
    """Whether these are local effects of features that not all rows have."""
    return (
        isinstance(value, xr.Dataset)
        and "n_missing" in value
        and "x" in value  # effects of regions have rows, too: which region each is in
        and "obs" in value.dims
        and not _there(value).all()
    )


def _there(local: xr.Dataset) -> NDArray[np.bool_]:
    """Rows that every feature has, (feature, obs): those with a value, or else with a curve."""
    there = local["x"].notnull()
    if "ice" in local:
        known = local["ice"].notnull()
        there = there | known.any([dim for dim in known.dims if dim not in there.dims])
    return there.transpose("feature", "obs").values


def features_by_rows(local: xr.Dataset) -> list[tuple[list[str], NDArray[np.bool_]]]:
    """Features that have the same rows, and these rows."""
    there = _there(local)
    groups: dict[bytes, tuple[list[str], NDArray[np.bool_]]] = {}
    for name, rows in zip(feature_names(local), there, strict=True):
        groups.setdefault(rows.tobytes(), ([], rows))[0].append(name)
    return list(groups.values())


def _of_group(value: Any, names: list[str], rows: NDArray[np.bool_]) -> Any:
    """Features and rows of a group, of whatever has them."""
    if isinstance(value, xr.Dataset) and "feature" in value.dims:
        value = value.isel(feature=np.isin(value["feature"].values, names))
    of_obs = isinstance(value, xr.Dataset | xr.DataArray) and "obs" in value.dims
    return value.isel(obs=rows) if of_obs else value


def by_feature(results: Sequence[xr.Dataset], names: Sequence[str]) -> xr.Dataset:
    """Results of groups of features as one, features in their order.

    What only some groups have is NaN for the others, and 0 where rows are counted.
    """
    for other in results:
        results = [_filled(result, other) for result in results]
    results = with_joint_fingerprints(results)
    first = results[0]
    own = {name for name, one in first.variables.items() if "feature" in one.dims}
    single = {
        name: result.drop_vars([ROWS, "obs"], errors="ignore").sel(feature=name)
        for result in results
        for name in feature_names(result)
    }
    out = stack([single[name] for name in names if name in single], "feature", own=own)
    if "n_rows" in first.attrs:
        out.attrs["n_rows"] = max(result.attrs["n_rows"] for result in results)
    return out.transpose("chain", "draw", ...) if "draw" in out.dims else out


def _filled(dataset: xr.Dataset, other: xr.Dataset) -> xr.Dataset:
    """With all variables and coordinates that the other has."""
    sizes = {**other.sizes, **dataset.sizes}
    for dim in ("bin", "edge"):
        if dim in sizes:
            sizes[f"{dim}_other"] = sizes[dim]

    def nothing(name: Any) -> tuple[Any, NDArray[Any], dict[Any, Any]]:
        like = other.variables[name]
        # No bin of theirs is sloped.
        if name == "slope":
            return like.dims, np.zeros([sizes[dim] for dim in like.dims]), like.attrs
        missing: Any = {"U": "", "i": 0}.get(like.dtype.kind, 0 if name in COUNTS else np.nan)
        values = np.full([sizes[dim] for dim in like.dims], missing, dtype=like.dtype)
        return like.dims, values, like.attrs

    for dim in PARTS:
        # The model was not asked for a feature that is constant, nor how many outputs it has.
        if dim in other.dims and dim not in dataset.dims:
            both = dataset.data_vars.keys() & other.data_vars.keys()
            each = [name for name in both if dim in other[name].dims]
            whole = {name: dataset[name].expand_dims({dim: other.sizes[dim]}) for name in each}
            dataset = dataset.assign(whole)
    absent = [name for name in other.variables if name not in dataset.variables]
    own = {name: nothing(name) for name in absent if name not in other.dims}
    data = {name: one for name, one in own.items() if name in other.data_vars}
    coords = {name: one for name, one in own.items() if name in other.coords}
    dims = {name: other.variables[name] for name in absent if name in other.dims}
    return dataset.assign(data).assign_coords({**coords, **dims})
