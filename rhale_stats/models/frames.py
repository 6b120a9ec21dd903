"""Tables of polars, of Arrow and of what else narwhals knows, as pandas and back."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rhale_stats.models.form import Data, TableFormat, framed


def read_narwhals(table: nw.DataFrame[Any]) -> tuple[pd.DataFrame, TableFormat]:
    """A table column by column; without the detour of ``to_pandas``, which loses integers."""
    schema = dict(table.schema)
    columns = {name: read_series(table[name]) for name in table.columns}
    days = frozenset(position for position, kind in enumerate(schema.values()) if kind == nw.Date)
    frame = framed(columns, table.columns, len(table))
    like = table.head(0)

    def give(rows: Data) -> Any:
        assert isinstance(rows, pd.DataFrame)
        names = list(rows.columns)
        made = [
            native_series(rows.iloc[:, position], str(name), schema.get(name), like)
            for position, name in enumerate(names)
        ]
        first = made[0].to_frame()
        return first.with_columns(*made[1:]).to_native() if len(made) > 1 else first.to_native()

    return frame, TableFormat(_name_of(table), give, days=days)


def _name_of(table: nw.DataFrame[Any]) -> str:
    kind = type(table.to_native())
    return f"{kind.__module__.partition('.')[0]} {kind.__name__}"


def read_series(column: nw.Series[Any]) -> Any:
    """One column in the type of pandas that holds all of it, missing values included."""
    kind = column.dtype
    gone = column.is_null().to_numpy() if column.null_count() else None
    if kind.is_integer() and gone is not None:
        filled = column.fill_null(0).to_numpy()
        return pd.arrays.IntegerArray(np.array(filled), np.array(gone))
    if kind.is_float() and gone is not None:
        filled = column.fill_null(0.0).to_numpy()
        return pd.arrays.FloatingArray(np.array(filled), np.array(gone))
    if kind == nw.Boolean and gone is not None:
        filled = column.fill_null(False).to_numpy()
        return pd.arrays.BooleanArray(np.array(filled, dtype=bool), np.array(gone))
    if (kind.is_numeric() and not kind.is_decimal()) or kind == nw.Boolean:
        return column.to_numpy()
    if kind.is_decimal():
        return column.cast(nw.Float64).to_numpy()
    if isinstance(kind, nw.Enum):
        return pd.Categorical(column.to_list(), categories=list(kind.categories), ordered=True)
    if kind == nw.Categorical:
        return pd.Categorical(column.to_list())
    if kind == nw.String:
        return pd.Series(column.to_list(), dtype=None if len(column) else object)
    if kind == nw.Date:
        return pd.Series(column.cast(nw.Datetime("ms")).to_numpy())
    if isinstance(kind, nw.Datetime):
        if kind.time_zone is None:
            return pd.Series(column.to_numpy())
        utc = column.dt.convert_time_zone("UTC").dt.replace_time_zone(None).to_numpy()
        return pd.DatetimeIndex(utc).tz_localize("UTC").tz_convert(kind.time_zone)
    if isinstance(kind, nw.Duration):
        return pd.Series(column.to_numpy())
    return pd.Series(column.to_list(), dtype=object)  # the model gets it as it is


def native_series(column: pd.Series[Any], name: str, kind: Any, like: nw.DataFrame[Any]) -> Any:
    """A column of pandas in the library of a table, in its own type where it has not changed."""
    backend = like.implementation
    values, gone = _plain_values(column)
    if isinstance(values, list):
        target = kind if kind is not None else nw.String()
        made = nw.new_series(name, values, backend=backend)
        return made if made.dtype == target else _cast(made, target)
    made = nw.new_series(name, values, backend=backend)
    if gone is not None and gone.any():
        present = nw.new_series("there", ~gone, backend=backend)
        missing = nw.new_series(name, [None] * len(values), made.dtype, backend=backend)
        made = made.zip_with(present, missing)
    dtype = column.dtype
    if isinstance(dtype, pd.DatetimeTZDtype):
        made = made.dt.replace_time_zone("UTC").dt.convert_time_zone(str(dtype.tz))
    elif kind == nw.Date:
        made = made.cast(nw.Date)
    return made


def _cast(made: nw.Series[Any], kind: Any) -> nw.Series[Any]:
    """Text as the categories that it was."""
    if made.dtype == nw.Unknown or made.null_count() == len(made):
        made = made.cast(nw.String)
    return made.cast(kind) if kind != nw.String else made


def _plain_values(column: Any) -> tuple[Any, NDArray[np.bool_] | None]:
    """Values of a column as an array, or as a list of text; and where there are none."""
    dtype = column.dtype
    if isinstance(dtype, np.dtype) and dtype.kind in "biufmM":
        values = column.to_numpy()
        gone = np.isnat(values) if dtype.kind in "mM" else None
        return np.ascontiguousarray(values), gone
    if isinstance(dtype, pd.DatetimeTZDtype):
        return column.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy(), column.isna().to_numpy()
    if pd.api.types.is_numeric_dtype(dtype):  # nullable types
        numpy = np.dtype(getattr(dtype, "numpy_dtype", np.float64))
        gone = column.isna().to_numpy()
        filled = column.fillna(False if numpy.kind == "b" else 0) if gone.any() else column
        return filled.to_numpy(dtype=numpy), gone
    values = column.astype(object).where(column.notna(), None)
    return values.tolist(), None
