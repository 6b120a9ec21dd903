"""Estimates of groups of rows side by side: ``by=``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import wraps
from inspect import signature
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import pandas as pd
import xarray as xr

from rhale_stats.arguments.checks import check_name_or_column
from rhale_stats.arguments.rows import series_of_rows
from rhale_stats.arguments.survey import of_some_rows
from rhale_stats.arguments.words import warn
from rhale_stats.arrays.moments import IntArray
from rhale_stats.models.options import ModelOptions
from rhale_stats.models.sample import numbered
from rhale_stats.models.table import as_table
from rhale_stats.schema.dimensions import OUTPUT, REGION, ROWS
from rhale_stats.schema.features import feature_names, position_of
from rhale_stats.schema.identity import row_labels
from rhale_stats.schema.layout import method_as_attribute, method_by_feature
from rhale_stats.schema.padding import stack
from rhale_stats.schema.whole import remember_parts

F = TypeVar("F", bound=Callable[..., Any])
# Groups that can be told apart in a picture; numbers with more values are divided at their median.
MAX_GROUPS = 10
# Arguments with one entry a row, beside the table or the local effects.
OF_ROWS = ("groups", "target", "weights")


class RowGroups(NamedTuple):
    """Groups of rows: the numbers of their rows by the label of the group, and what these have.

    ``labels`` are those of all ``n_rows`` rows, which messages call ``rows_of``.
    """

    name: str
    rows: dict[str, IntArray]
    rules: list[str]
    labels: Any
    n_rows: int
    rows_of: str

    @classmethod
    def by_column(cls, by: Any, labels: Any, n_rows: int, rows_of: str) -> RowGroups:
        """By the levels of a column, or by both halves of one of many numbers."""
        values = series_of_rows(by, labels, n_rows, "by", rows_of)
        numbers = pd.Series(np.asarray(values))
        name = str(getattr(by, "name", None) or "")
        before = f"{name} " if name else ""
        if pd.api.types.is_numeric_dtype(numbers) and numbers.nunique() > MAX_GROUPS:
            middle = float(numbers.median())
            masks = {f"≤ {middle:.4g}": numbers <= middle, f"> {middle:.4g}": numbers > middle}
            rules = [f"{before}{label}" for label in masks]
        else:
            _, code, levels = numbered(values, False)
            masks = {levels[number]: code == number for number in np.unique(code[code >= 0])}
            rules = [f"{before}= {label}" if before else label for label in masks]
        if not 1 < len(masks) <= MAX_GROUPS:
            raise ValueError(
                f"by must have 2 to {MAX_GROUPS} levels, which can be told apart; got "
                f"{len(masks)}. Join some of them, or leave by out."
            )
        if values.isna().any():
            warn(f"Rows without a value of by are in no group: {int(values.isna().sum())}.")
        rows = {key: np.flatnonzero(mask) for key, mask in masks.items()}
        return cls(name, rows, rules, labels, n_rows, rows_of)


def by_groups(common: Callable[..., Mapping[str, Any]] | None = None) -> Callable[[F], F]:
    """Decorate an estimator so that ``by`` gives the estimates of groups of rows side by side.

    The function is called once a group, with its rows alone. ``common`` makes arguments that all
    groups share of the arguments of the call.
    """

    def decorator(function: F) -> F:
        first_names = [*list(signature(function).parameters)[:1], "model"]

        @wraps(function)
        def over_groups(*args: Any, by: Any = None, **named: Any) -> Any:
            if by is None:
                return function(*args, **named)
            check_name_or_column("by", by)
            arguments = list(args[:2])
            if not arguments:
                arguments = [named.pop(name) for name in first_names if name in named][:1]
            if len(arguments) == 1 and named.get("X") is not None:
                arguments.append(named.pop("X"))
            if not arguments:
                return function(*args, **named)  # which says what is missing
            rest = args[2:]
            shared = {} if common is None else common(*arguments, *rest, **named)
            groups, parts = _divided(arguments, by)
            results = [
                function(*part, *rest, **{**_of_rows(named, rows, groups), **shared})
                for part, rows in zip(parts, groups.rows.values(), strict=True)
            ]
            return _side_by_side(results, groups, arguments)

        return cast(F, over_groups)

    return decorator


def _divided(arguments: list[Any], by: Any) -> tuple[RowGroups, list[list[Any]]]:
    """Groups of the rows, and the first arguments of the calls: local effects, or model and X."""
    is_name = isinstance(by, str | int | np.integer)
    if isinstance(arguments[0], xr.Dataset):
        local = arguments[0]
        if is_name:
            position = position_of(by, feature_names(local), "by")
            by = pd.Series(local["x"].isel(feature=position).values, name=str(by))
        groups = RowGroups.by_column(by, row_labels(local), local.sizes["obs"], "local")
        return groups, [[local.isel(obs=rows), *arguments[1:]] for rows in groups.rows.values()]
    if len(arguments) < 2:
        raise TypeError("by needs the rows: X is missing, as in ale(model, X, by='group').")
    table = as_table(arguments[1])
    if is_name:
        position = position_of(by, table.names, "by")
        by = table.series(position).rename(table.names[position])
    labels = None if table.index is None else table.index.to_numpy()
    groups = RowGroups.by_column(by, labels, table.n_rows, "rows of X")
    return groups, [
        [arguments[0], table.form.as_given(table.take(rows).data)] for rows in groups.rows.values()
    ]


def _of_rows(named: Mapping[str, Any], rows: IntArray, groups: RowGroups) -> dict[str, Any]:
    """Keyword arguments, with those entries of arguments that belong to these rows."""
    out = dict(named)

    def selected(name: str, values: Any) -> Any:
        return of_some_rows(values, groups.labels, groups.n_rows, name, groups.rows_of, rows)

    for name in OF_ROWS:
        if out.get(name) is not None:
            out[name] = selected(name, out[name])
    options = out.get("options")
    if isinstance(options, ModelOptions) and options.weights is not None:
        out["options"] = replace(options, weights=selected("weights", options.weights))
    jacobian = out.get("jacobian")
    if jacobian is not None and not callable(jacobian):
        is_frame = isinstance(jacobian, pd.DataFrame)
        out["jacobian"] = jacobian.iloc[rows] if is_frame else np.asarray(jacobian)[rows]
    return out


def _side_by_side(results: list[xr.Dataset], groups: RowGroups, arguments: list[Any]) -> xr.Dataset:
    """Results of all groups along the dimension ``region``, of the features that all have."""
    names = [
        name
        for name in feature_names(results[0])
        if all(name in feature_names(other) for other in results)
        and not (name == groups.name and not groups.rules[0].startswith(f"{name} ≤"))
    ]
    if not names:
        raise ValueError(
            f"by must leave features that all groups have; {groups.name!r} leaves none."
        )
    lost = {name for result in results for name in feature_names(result)} - {*names, groups.name}
    if lost:
        warn(f"Left out, because not all groups have an effect of them: {', '.join(sorted(lost))}.")
    # Local effects may be derivatives in one group and slopes across cells in another.
    results = [
        method_by_feature(result.sel(feature=names).drop_vars("obs", errors="ignore"))
        for result in results
    ]
    out = method_as_attribute(stack(results, REGION))
    out = out.assign_coords(
        region=(REGION, list(groups.rows), {"long_name": groups.name or "group of the rows"}),
        region_rule=(REGION, groups.rules, {"long_name": "what the rows have"}),
    )
    if isinstance(arguments[0], xr.Dataset) and "obs" in arguments[0].coords:
        labels = np.full(arguments[0].sizes["obs"], "", dtype=object)
        for label, rows in groups.rows.items():
            labels[rows] = label
        about = {"long_name": "group of the row"}
        out = out.assign({ROWS: ("obs", labels.astype(str), about)})
        out = out.assign_coords(obs=arguments[0]["obs"])
    front = [dim for dim in (OUTPUT, REGION) if dim in out.dims]
    made: xr.Dataset = remember_parts(out.transpose(*front, ...))
    return made
