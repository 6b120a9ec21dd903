"""Tables of xarray, structured arrays and dicts of columns, as pandas and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from rhale_stats.models.form import ARRAY, PLAIN, Data, Form, as_is, framed
from rhale_stats.models.frames import native_series, read_series


def read_dataset(X: xr.Dataset, parameter: str) -> tuple[pd.DataFrame, Form]:
    """Variables over one dimension, which is that of the rows."""
    dims = {str(name): tuple(map(str, variable.dims)) for name, variable in X.data_vars.items()}
    if not dims:
        raise ValueError(f"{parameter} must have variables, one a column; the Dataset has none.")
    distinct = set(dims.values())
    if len(distinct) > 1 or len(next(iter(distinct))) != 1:
        text = ", ".join(
            f"{name!r} over {' × '.join(variable_dims) or 'none'}"
            for name, variable_dims in dims.items()
        )
        raise ValueError(
            f"{parameter} must have variables over one dimension, that of the rows; the Dataset "
            f"has {text}. Select, stack or drop before the call, as in X[['a', 'b']]."
        )
    ((row,),) = distinct
    columns = {name: _column_of(X[name].values) for name in X.data_vars}
    frame = framed(columns, list(X.data_vars), X.sizes[row])
    labelled = row in X.indexes and X.indexes[row].nlevels == 1
    if labelled:
        frame.index = X.indexes[row]
    frame.attrs = _attributes(X.attrs, {name: X[name].attrs for name in X.data_vars})

    def give(rows: Data) -> xr.Dataset:
        assert isinstance(rows, pd.DataFrame)
        data = {
            name: (row, _own_values(rows.iloc[:, position], X[name].dtype), X[name].attrs)
            for position, name in enumerate(rows.columns)
        }
        return xr.Dataset(data, attrs=X.attrs)

    return frame, Form("xarray Dataset", give, labelled=labelled)


def read_data_array(X: xr.DataArray, parameter: str) -> tuple[Any, Form]:
    """An array of (row, column), whose columns may have names."""
    if X.ndim != 2:
        raise ValueError(
            f"{parameter} must have the dimensions (row, column); the DataArray has "
            f"{', '.join(map(str, X.dims)) or 'none'}. Stack or select before the call."
        )
    if X.dtype.kind not in "biuf":
        return X.values, ARRAY
    row, column = X.dims
    n_columns = X.sizes[column]
    names = list(X[column].values) if column in X.coords else [f"x{k}" for k in range(n_columns)]
    names = [label.item() if isinstance(label, np.generic) else label for label in names]
    frame = pd.DataFrame(X.values, columns=pd.Index(names))
    labelled = row in X.indexes and X.indexes[row].nlevels == 1
    if labelled:
        frame.index = X.indexes[row]
    frame.attrs = _attributes(X.attrs, {})
    coords = {column: X[column]} if column in X.coords else {}

    def give(rows: Data) -> xr.DataArray:
        values = rows.to_numpy(copy=True) if isinstance(rows, pd.DataFrame) else rows
        return xr.DataArray(values, dims=(row, column), coords=coords, attrs=X.attrs, name=X.name)

    return frame, Form("xarray DataArray", give, labelled=labelled)


def _attributes(
    attributes: Mapping[Any, Any], of_columns: Mapping[Any, Mapping[Any, Any]]
) -> dict[Any, Any]:
    """Attributes of a Dataset, and the units of its variables as one mapping from the columns."""
    units = {
        str(name): str(column_attributes["units"])
        for name, column_attributes in of_columns.items()
        if "units" in column_attributes
    }
    named_units = attributes.get("units")
    if isinstance(named_units, Mapping):
        units |= {str(name): str(unit) for name, unit in named_units.items()}
    without_units = {name: value for name, value in attributes.items() if name != "units"}
    return without_units | ({"units": units} if units else {})


def read_structured(X: NDArray[Any], parameter: str) -> tuple[pd.DataFrame, Form]:
    """Fields of a structured array."""
    if X.ndim != 1:
        raise ValueError(
            f"{parameter} must be one-dimensional if it is a structured array; got shape {X.shape}."
        )
    names = list(X.dtype.names or ())
    for name in names:
        if X.dtype[name].shape or X.dtype[name].names:
            raise TypeError(
                f"{parameter} column {name!r} must hold one plain value a row; got the field type "
                f"{X.dtype[name]}. {PLAIN}: split it or drop it before the call."
            )
    if np.ma.is_masked(X):
        raise TypeError(
            f"{parameter} must hold plain values; got a masked array. Fill it or drop these rows."
        )
    frame = framed({name: _column_of(X[name]) for name in names}, names, len(X))

    def give(rows: Data) -> NDArray[Any]:
        assert isinstance(rows, pd.DataFrame)
        columns = [
            _own_values(rows.iloc[:, position], X.dtype[name])
            for position, name in enumerate(rows.columns)
        ]
        fields = [(str(n), column.dtype) for n, column in zip(rows.columns, columns, strict=True)]
        out = np.empty(len(rows), dtype=fields)
        for (name, _), values in zip(fields, columns, strict=True):
            out[name] = values
        return out

    return frame, Form("structured array", give)


def read_columns(X: Mapping[Any, Any], parameter: str) -> tuple[pd.DataFrame, Form]:
    """A dict of columns, each of which may be of any library."""
    if not X:
        raise ValueError(f"{parameter} must have at least one column; got an empty dict.")
    columns, givers, lengths = {}, {}, {}
    days = set()
    for position, (name, column) in enumerate(X.items()):
        values, givers[name], is_day = _read_column(column, f"{parameter} column {name!r}")
        columns[name], lengths[name] = values, len(values)
        days |= {position} if is_day else set()
    if len(set(lengths.values())) > 1:
        text = ", ".join(f"{name!r} has {length}" for name, length in lengths.items())
        raise ValueError(
            f"{parameter} must have columns of one length; {text}. Shorten or fill them."
        )
    _check_labels(X, parameter)
    frame = framed(columns, list(X), next(iter(lengths.values())))
    indices = [series.index for series in X.values() if isinstance(series, pd.Series)]
    if indices:
        frame.index = indices[0]

    def give(rows: Data) -> dict[Any, Any]:
        assert isinstance(rows, pd.DataFrame)
        return {
            name: givers[name](rows.iloc[:, position]) for position, name in enumerate(rows.columns)
        }

    return frame, Form("dict", give, labelled=bool(indices), days=frozenset(days))


def _check_labels(X: Mapping[Any, Any], parameter: str) -> None:
    """Raise ``ValueError`` where columns of pandas have different labels of the rows."""
    series = {name: column for name, column in X.items() if isinstance(column, pd.Series)}
    first = next(iter(series.values()), None)
    for name, column in series.items():
        if first is not None and not column.index.equals(first.index):
            raise ValueError(
                f"{parameter} must have columns of pandas with one index; that of {name!r} differs "
                f"from that of {next(iter(series))!r}. Make a DataFrame of them, which aligns "
                f"them: pd.DataFrame(...)."
            )


def _read_column(column: Any, what: str) -> tuple[Any, Callable[[pd.Series[Any]], Any], bool]:
    """Values of one column, how to give it back, and whether it holds days."""
    if isinstance(column, pd.Series):
        return column.array, as_is, False
    table = nw.from_native(column, pass_through=True, allow_series=True)
    if isinstance(table, nw.Series):
        kind, like = table.dtype, table.to_frame().head(0)

        def give(rows: pd.Series[Any]) -> Any:
            return native_series(rows, table.name or "", kind, like).to_native()

        return read_series(table), give, kind == nw.Date
    detached = column.detach().cpu() if hasattr(column, "detach") else column
    if np.ma.is_masked(detached):
        raise TypeError(f"{what} must hold plain values; got a masked array. Fill or drop these.")
    array = np.asarray(detached)
    if array.ndim != 1:
        raise TypeError(
            f"{what} must hold one plain value a row; got shape {array.shape}. {PLAIN}: split it "
            f"into columns, or drop it before the call."
        )
    if isinstance(column, list | tuple):
        series = pd.Series(list(column)) if len(column) else pd.Series([], dtype=object)
        return series.array, pd.Series.tolist, False
    return _column_of(array), lambda rows: _own_values(rows, array.dtype), False


def _column_of(values: NDArray[Any]) -> Any:
    """A column of an array as pandas holds it; text as text."""
    if values.dtype.kind in "US":
        return pd.Series(values.astype(str).tolist() if values.dtype.kind == "S" else list(values))
    if values.dtype.kind == "M" and np.datetime_data(values.dtype)[0] not in (
        "s",
        "ms",
        "us",
        "ns",
    ):
        return values.astype("datetime64[s]")
    return values


def _own_values(column: pd.Series[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """A column as an array; text in the type that it had."""
    if dtype.kind in "US":
        return column.to_numpy(dtype=object).astype(dtype)
    if dtype.kind == "O":
        return column.to_numpy(dtype=object)
    return np.array(column.to_numpy())  # which the model may change
