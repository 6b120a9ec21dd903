"""Columns that rows may be split by."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from rhale_stats.arguments.checks import check_finite
from rhale_stats.arguments.rows import storable
from rhale_stats.arguments.times import as_days, is_time, time_units
from rhale_stats.arrays.moments import FloatArray, IntArray, part
from rhale_stats.models.forms import read
from rhale_stats.models.table import as_table, column_names
from rhale_stats.regional.conditions import ABOVE, UNEQUAL, UP_TO, Condition
from rhale_stats.schema.features import feature_names, units_of_all
from rhale_stats.schema.identity import row_labels
from rhale_stats.schema.levels import MISSING_LEVEL

GLANCE = 1000


# --- conditioning columns ------------------------------------------------------------------------


@dataclass(frozen=True)
class Conditioning:
    """One column that splits may use: numbers, or the numbers of its levels."""

    name: str
    kind: str
    values: NDArray[Any]
    levels: tuple[Any, ...] = ()
    units: str = ""

    def take(self, rows: IntArray | NDArray[np.bool_]) -> Conditioning:
        """The column at some rows."""
        return replace(self, values=part(self.values, rows))

    def meets(self, condition: Condition, rows: IntArray) -> NDArray[np.bool_]:
        """Which of the rows are on one side of a split of this column."""
        values = part(self.values, rows)
        if condition.operator in (UP_TO, ABOVE):
            below = (values <= condition.threshold) & (values < np.inf)
            return np.asarray(below if condition.operator == UP_TO else ~below)
        inside = np.array([level in condition.levels for level in self.levels])[values]
        return np.asarray(~inside if condition.operator == UNEQUAL else inside)


def conditioning_columns(
    local: xr.Dataset, conditioning: pd.DataFrame | ArrayLike | None, feature: str | None
) -> list[Conditioning]:
    """Columns for splits of the effect of ``feature``: those given, or the other features."""
    names = feature_names(local)
    if conditioning is None:
        table = local["x"].transpose("obs", "feature").values
        units = units_of_all(local)
        columns = [
            replace(_numeric(name, table[:, position]), units=units[position])
            for position, name in enumerate(names)
            if name != feature
        ]
        if not columns:
            raise ValueError(
                f"conditioning must be given: local holds no feature besides {feature!r}. Pass a "
                f"DataFrame with a row for each row of local."
            )
        return columns
    rows = checked_table(local, conditioning)
    labels = column_names(rows, "conditioning")
    columns = [
        _column(name, rows.iloc[:, position])
        for position, name in enumerate(labels)
        if name != feature
    ]
    if not columns:
        raise ValueError(
            f"conditioning must have a column besides {feature!r}; got "
            f"{', '.join(labels) or 'none'}."
        )
    return columns


def checked_table(local: xr.Dataset, conditioning: pd.DataFrame | ArrayLike) -> pd.DataFrame:
    """The table of conditioning columns; refused unless it has the rows of ``local``."""
    rows = (
        conditioning
        if isinstance(conditioning, pd.DataFrame)
        else frame_of(conditioning, "conditioning")
    )
    if len(rows) != local.sizes["obs"]:
        raise ValueError(
            f"conditioning must have a row for each of the {local.sizes['obs']} rows of local; got "
            f"{len(rows)}."
        )
    obs = row_labels(local)
    if isinstance(conditioning, pd.DataFrame) and obs is not None:
        index, labels = pd.Index(storable(rows.index)), pd.Index(obs)
        numbers = pd.RangeIndex(len(obs))
        # Rows that are only numbered have no labels, unless those of local are numbers as well.
        unlabelled = index.equals(numbers) and not labels.sort_values().equals(numbers)
        if not (index.equals(labels) or unlabelled):
            raise ValueError(
                "conditioning must have the index of the rows of local, in the same order; its "
                "index differs. Reindex it: conditioning.loc[local['obs'].values]."
            )
    return rows


def frame_of(input_table: object, what: str) -> pd.DataFrame:
    """A table with names for its columns; arrays get ``x0``, ``x1``, ..."""
    data, _ = read(input_table, what)
    if isinstance(data, pd.DataFrame):
        return data
    table = as_table(data, what)
    return pd.DataFrame(table.data, columns=table.names)


def _column(name: str, values: pd.Series) -> Conditioning:
    gone = values.isna().to_numpy()
    numeric = pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)
    if gone.all():
        raise ValueError(f"conditioning must have values in column {name!r}; all are missing.")
    if gone.any() and (numeric or is_time(values.dtype)):
        without_missing = _column(name, values[~gone])  # which is checked
        dates = is_time(values.dtype)
        numbers = as_days(values.array) if dates else values.to_numpy(np.float64, na_value=np.nan)
        # Beyond all thresholds: the last of them parts these rows from all others.
        return Conditioning(
            name, "numeric", np.where(gone, np.inf, numbers), units=without_missing.units
        )
    if gone.any():
        values = values.astype(object).map(str).where(~gone, MISSING_LEVEL)
    if is_time(values.dtype):
        column = _numeric(name, as_days(values.array))
        return replace(column, units=time_units(values.dtype))
    if isinstance(values.dtype, pd.CategoricalDtype):
        levels = tuple(_plain(level) for level in values.cat.categories)
        if not all(isinstance(level, str | int | float | bool) for level in levels):
            levels = tuple(map(str, levels))  # intervals and dates
        kind = "ordinal" if values.cat.ordered else "nominal"
        return _with_levels(name, kind, np.asarray(values.cat.codes, dtype=np.int64), levels)
    if pd.api.types.is_bool_dtype(values.dtype):
        return _with_levels(name, "nominal", values.to_numpy(dtype=np.int64), (False, True))
    if pd.api.types.is_numeric_dtype(values.dtype):
        return _numeric(name, values.to_numpy(dtype=np.float64))
    try:
        codes, texts = pd.factorize(values, sort=True)
    except TypeError as error:
        raise TypeError(
            f"conditioning must have columns of numbers, booleans, texts or categories; the values "
            f"of {name!r} cannot be put in order ({error})."
        ) from error
    plain = tuple(_plain(level) for level in texts)
    mixed = len({isinstance(level, str) for level in plain}) > 1
    if mixed or not all(isinstance(level, str | int | float | bool) for level in plain):
        kinds = ", ".join(sorted({type(level).__name__ for level in plain}))
        raise TypeError(
            f"conditioning must have columns of numbers, booleans, texts or categories; "
            f"{name!r} holds {kinds}. Turn all of it into numbers or text."
        )
    return _with_levels(name, "nominal", codes.astype(np.int64), plain)


def _plain(level: Any) -> Any:
    """A level as Python's own, so that it can be stored as text."""
    return level.item() if isinstance(level, np.generic) else level


def _with_levels(name: str, kind: str, codes: IntArray, levels: tuple[Any, ...]) -> Conditioning:
    """Only the levels that occur."""
    present, codes = np.unique(codes, return_inverse=True)
    return Conditioning(name, kind, codes, tuple(levels[code] for code in present))


def _numeric(name: str, values: FloatArray) -> Conditioning:
    """Numbers; of two values it is said which, not on which side."""
    values = np.ascontiguousarray(values, dtype=np.float64)
    low, high = values.min(), values.max()
    if not (np.isfinite(low) and np.isfinite(high)):
        check_finite(values, "conditioning", name, "Drop these rows, or make them a level.")

    def two(some: FloatArray) -> bool:
        return bool(((some == low) | (some == high)).all())

    # A few rows settle it for most columns.
    if low < high and two(values[:GLANCE]) and two(values):
        levels = tuple(int(v) if v == int(v) else float(v) for v in (low, high))
        return Conditioning(name, "nominal", (values == high).astype(np.int64), levels)
    return Conditioning(name, "numeric", values)
