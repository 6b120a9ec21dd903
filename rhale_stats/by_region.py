"""Functions of effects, region by region: what goes in and comes out has a ``region`` dimension.

An effect by region is a stack of effects, each of its own rows. A function that knows one of them
knows them all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import pandas as pd
import xarray as xr
from statsmodels.iolib.summary import Summary

from rhale_stats.schema import REGION, ROWS, stack

P = ParamSpec("P")
T = TypeVar("T")


def is_regional(value: object) -> bool:
    """Whether a value is a Dataset of several regions."""
    return isinstance(value, xr.Dataset) and REGION in value.dims


def each_region(function: Callable[P, T]) -> Callable[P, T]:
    """Let a function of effects take effects by region: one region after the other.

    Datasets with a ``region`` dimension are given to it a region at a time, everything else as it
    is: rows of local effects are found by ``region_of_row``. What it returns is put together.
    """

    @wraps(function)
    def over_regions(*args: P.args, **kwargs: P.kwargs) -> T:
        given: list[Any] = [*args, *kwargs.values()]
        regional = [value for value in given if is_regional(value)]
        if not regional:
            return function(*args, **kwargs)
        first = regional[0]
        if any(other.sizes[REGION] != first.sizes[REGION] for other in regional):
            sizes = " and ".join(str(each.sizes[REGION]) for each in regional)
            raise ValueError(f"All arguments must be of the same regions; got {sizes} of them.")

        def at(value: Any, number: int) -> Any:
            return value.isel({REGION: number}) if is_regional(value) else value

        call: Callable[..., Any] = function
        results = [
            call(
                *(at(value, number) for value in args),
                **{name: at(value, number) for name, value in kwargs.items()},
            )
            for number in range(first.sizes[REGION])
        ]
        whole: T = together(results, first)
        return whole

    return over_regions


def together(results: Sequence[Any], of: xr.Dataset) -> Any:
    """Results of all regions as one."""
    first = results[0]
    if isinstance(first, xr.Dataset):
        out = stack(
            [result.drop_vars([ROWS, "obs"], errors="ignore") for result in results], REGION
        )
        if "draw" in out.dims:
            out = out.transpose("chain", "draw", ...)
        return out.assign({ROWS: of[ROWS]}) if ROWS in first else out
    if isinstance(first, xr.DataArray):
        return xr.concat(results, REGION, combine_attrs="drop_conflicts", join="exact")
    if isinstance(first, pd.DataFrame):
        parts = []
        for number, frame in enumerate(results):
            one = of.isel({REGION: number})
            frame.insert(0, "region", int(one[REGION]))
            frame.insert(1, "rule", str(one["region_rule"].values))
            parts.append(frame)
        return pd.concat(parts, ignore_index=True)
    if isinstance(first, Summary):
        out = Summary()
        out.tables = [table for result in results for table in result.tables]
        # Notes that are the same in all regions are read once.
        notes = dict.fromkeys(note for result in results for note in result.extra_txt.split("\n"))
        out.add_extra_txt(list(notes))
        return out
    raise TypeError(f"results of regions cannot be put together; got {type(first).__name__}.")
