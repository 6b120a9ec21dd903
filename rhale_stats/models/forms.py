"""Tables of all libraries: read as pandas or NumPy, and given to the model in their own form."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import narwhals as nw
import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from rhale_stats.arguments.words import warn

Data: TypeAlias = pd.DataFrame | NDArray[Any]
# Libraries of models whose ``predict`` is documented for pandas and NumPy.
PANDAS_MODELS = ("sklearn", "xgboost", "lightgbm", "catboost", "statsmodels")
PLAIN = (
    "A table has columns of numbers, true and false, text, categories, dates, times or durations"
)


def _as_is(rows: Any) -> Any:
    return rows


@dataclass(frozen=True)
class Form:
    """What kind of table the user has, and how rows are brought into this kind.

    ``labelled`` says whether rows have labels of their own, by which pandas objects are aligned.
    ``days`` are the numbers of columns of dates without a time of the day.
    """

    name: str
    give: Callable[[Data], Any] = _as_is
    labelled: bool = False
    days: frozenset[int] = frozenset()


PANDAS = Form("pandas DataFrame", labelled=True)
ARRAY = Form("array")


def read(X: Any, parameter: str = "X") -> tuple[Any, Form]:
    """A table as a DataFrame, or what it is where it is none (an array), and its form.

    Raises
    ------
    TypeError, ValueError
        Columns of nested values, of different lengths, of several dimensions, of one name.
    """
    if isinstance(X, pd.DataFrame):
        return X, PANDAS
    if isinstance(X, xr.Dataset):
        return _read_dataset(X, parameter)
    if isinstance(X, xr.DataArray):
        return _read_data_array(X, parameter)
    if isinstance(X, np.ndarray) and X.dtype.names is not None:
        return _read_structured(X, parameter)
    if isinstance(X, Mapping):
        return _read_columns(X, parameter)
    table = nw.from_native(X, pass_through=True)
    if isinstance(table, nw.LazyFrame):
        table = table.collect()
    if isinstance(table, nw.DataFrame):
        return _read_narwhals(table, parameter)
    return X, ARRAY


def collected(X: Any) -> Any:
    """The table, in memory if it was only planned: a LazyFrame is collected once."""
    if not hasattr(X, "collect"):
        return X
    table = nw.from_native(X, pass_through=True)
    return table.collect().to_native() if isinstance(table, nw.LazyFrame) else X


def n_rows_of(X: Any) -> int:
    """Number of rows of a table that a model was given."""
    if isinstance(X, xr.Dataset):
        return int(next(iter(X.data_vars.values())).shape[0])
    return len(next(iter(X.values()))) if isinstance(X, Mapping) else len(X)


def given_to(model: Any, form: Form, data: Data) -> Callable[[Data], Any]:
    """How rows are brought into the form that a model takes: that of the user, or of its fit.

    Models of scikit-learn and the like, which remember the columns of their fit, get these columns
    in this order. Those that were fitted without names get an array where they were not given a
    DataFrame.
    """
    owner = getattr(model, "__self__", model)
    if type(owner).__module__.startswith("rhale_stats"):
        owner = getattr(owner, "estimator", owner)  # one of an ensemble
    libraries = {kind.__module__.partition(".")[0] for kind in type(owner).__mro__}
    known = _known_columns(owner)
    if not isinstance(data, pd.DataFrame):
        return _as_is
    if known is not None:
        there = [name for name in known if name in data.columns]
        if there:
            return _columns_of_fit(there, [n for n in data.columns if n not in set(known)], data)
    if not libraries & set(PANDAS_MODELS):
        return form.give
    of_fit = hasattr(owner, "n_features_in_") and libraries & {"sklearn"} and known is None
    return _array if of_fit and form is not PANDAS else _as_is


def _known_columns(model: Any) -> list[Any] | None:
    """Names of the columns of the fit, of a model of scikit-learn's kind."""
    try:
        names = getattr(model, "feature_names_in_", None)
    except Exception:  # some models raise errors of their own before they are fitted
        return None
    return None if names is None or np.ndim(names) != 1 else list(names)


def _columns_of_fit(
    there: Sequence[Any], unknown: Sequence[Any], data: pd.DataFrame
) -> Callable[[Data], Any]:
    if list(data.columns) == list(there):
        return _as_is
    if unknown:
        warn(
            f"Columns that the model was not fitted with are not given to it: "
            f"{', '.join(map(repr, unknown))}. They have no effect."
        )

    def of_fit(rows: Data) -> Any:
        return rows[list(there)] if isinstance(rows, pd.DataFrame) else rows

    return of_fit


def _array(rows: Data) -> Any:
    return rows.to_numpy() if isinstance(rows, pd.DataFrame) else rows


def plain_answer(answer: Any) -> Any:
    """An answer of a model as pandas or NumPy, where another library made it; else as it is."""
    if isinstance(answer, xr.DataArray):
        named = answer.ndim == 2 and answer.dims[1] in answer.coords
        columns = [str(one) for one in answer[answer.dims[1]].values] if named else None
        return pd.DataFrame(answer.values, columns=columns) if named else answer.values
    if isinstance(answer, xr.Dataset):
        answer = {str(name): answer[name].values for name in answer.data_vars}
    if isinstance(answer, Mapping):
        return pd.DataFrame({name: np.asarray(column) for name, column in answer.items()})
    if isinstance(answer, np.ndarray | pd.Series | pd.DataFrame):
        return answer
    table = nw.from_native(answer, pass_through=True, allow_series=True)
    if isinstance(table, nw.LazyFrame):
        table = table.collect()
    if isinstance(table, nw.Series):
        return table.to_numpy()
    if isinstance(table, nw.DataFrame):
        return pd.DataFrame({name: table[name].to_numpy() for name in table.columns})
    return answer


# --- polars, Arrow and what else narwhals knows --------------------------------------------------


def _read_narwhals(table: nw.DataFrame[Any], parameter: str) -> tuple[pd.DataFrame, Form]:
    """A table column by column; without the detour of ``to_pandas``, which loses integers."""
    schema = dict(table.schema)
    columns = {
        name: _read_series(table[name], f"{parameter} column {name!r}") for name in table.columns
    }
    days = frozenset(at for at, kind in enumerate(schema.values()) if kind == nw.Date)
    frame = _frame(columns, table.columns, len(table))
    like = table.head(0)

    def give(rows: Data) -> Any:
        assert isinstance(rows, pd.DataFrame)
        names = list(rows.columns)
        made = [
            _native_series(rows.iloc[:, at], str(name), schema.get(name), like)
            for at, name in enumerate(names)
        ]
        first = made[0].to_frame()
        return first.with_columns(*made[1:]).to_native() if len(made) > 1 else first.to_native()

    return frame, Form(_name_of(table), give, days=days)


def _name_of(table: nw.DataFrame[Any]) -> str:
    kind = type(table.to_native())
    return f"{kind.__module__.partition('.')[0]} {kind.__name__}"


def _frame(columns: Mapping[Any, Any], names: Sequence[Any], n_rows: int) -> pd.DataFrame:
    frame = pd.DataFrame(dict(enumerate(columns.values())), index=pd.RangeIndex(n_rows))
    return frame.set_axis(pd.Index(list(names), dtype=object if not len(names) else None), axis=1)


def _read_series(column: nw.Series[Any], what: str) -> Any:
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
    raise TypeError(
        f"{what} must hold one plain value a row; got the type {kind}. {PLAIN}: unnest it, convert "
        f"it or drop it before the call."
    )


def _native_series(column: pd.Series[Any], name: str, kind: Any, like: nw.DataFrame[Any]) -> Any:
    """A column of pandas in the library of a table, in its own type where it has not changed."""
    backend = like.implementation
    values, gone = _plain_values(column)
    if isinstance(values, list):
        target = kind if kind is not None else nw.String()
        made = nw.new_series(name, values, backend=backend)
        return made if made.dtype == target else _cast(made, target)
    made = nw.new_series(name, values, backend=backend)
    if gone is not None and gone.any():
        there = nw.new_series("there", ~gone, backend=backend)
        missing = nw.new_series(name, [None] * len(values), made.dtype, backend=backend)
        made = made.zip_with(there, missing)
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


# --- xarray, structured arrays and dicts ---------------------------------------------------------


def _read_dataset(X: xr.Dataset, parameter: str) -> tuple[pd.DataFrame, Form]:
    """Variables over one dimension, which is that of the rows."""
    dims = {str(name): tuple(map(str, one.dims)) for name, one in X.data_vars.items()}
    if not dims:
        raise ValueError(f"{parameter} must have variables, one a column; the Dataset has none.")
    found = set(dims.values())
    if len(found) > 1 or len(next(iter(found))) != 1:
        said = ", ".join(f"{name!r} over {' × '.join(one) or 'none'}" for name, one in dims.items())
        raise ValueError(
            f"{parameter} must have variables over one dimension, that of the rows; the Dataset "
            f"has {said}. Select, stack or drop before the call, as in X[['a', 'b']]."
        )
    ((row,),) = found
    columns = {name: _column_of(X[name].values) for name in X.data_vars}
    frame = _frame(columns, list(X.data_vars), X.sizes[row])
    labelled = row in X.indexes and X.indexes[row].nlevels == 1
    if labelled:
        frame.index = X.indexes[row]
    frame.attrs = _attributes(X.attrs, {name: X[name].attrs for name in X.data_vars})

    def give(rows: Data) -> xr.Dataset:
        assert isinstance(rows, pd.DataFrame)
        data = {
            name: (row, _own_values(rows.iloc[:, at], X[name].dtype), X[name].attrs)
            for at, name in enumerate(rows.columns)
        }
        return xr.Dataset(data, attrs=X.attrs)

    return frame, Form("xarray Dataset", give, labelled=labelled)


def _read_data_array(X: xr.DataArray, parameter: str) -> tuple[Any, Form]:
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
    names = [one.item() if isinstance(one, np.generic) else one for one in names]
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
    own: Mapping[Any, Any], of_columns: Mapping[Any, Mapping[Any, Any]]
) -> dict[Any, Any]:
    """Attributes of a Dataset, and the units of its variables as one mapping from the columns."""
    units = {str(name): str(one["units"]) for name, one in of_columns.items() if "units" in one}
    given = own.get("units")
    if isinstance(given, Mapping):
        units |= {str(name): str(unit) for name, unit in given.items()}
    kept = {name: value for name, value in own.items() if name != "units"}
    return kept | ({"units": units} if units else {})


def _read_structured(X: NDArray[Any], parameter: str) -> tuple[pd.DataFrame, Form]:
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
    frame = _frame({name: _column_of(X[name]) for name in names}, names, len(X))

    def give(rows: Data) -> NDArray[Any]:
        assert isinstance(rows, pd.DataFrame)
        columns = [
            _own_values(rows.iloc[:, at], X.dtype[name]) for at, name in enumerate(rows.columns)
        ]
        fields = [(str(n), one.dtype) for n, one in zip(rows.columns, columns, strict=True)]
        out = np.empty(len(rows), dtype=fields)
        for (name, _), values in zip(fields, columns, strict=True):
            out[name] = values
        return out

    return frame, Form("structured array", give)


def _read_columns(X: Mapping[Any, Any], parameter: str) -> tuple[pd.DataFrame, Form]:
    """A dict of columns, each of which may be of any library."""
    if not X:
        raise ValueError(f"{parameter} must have at least one column; got an empty dict.")
    columns, givers, lengths = {}, {}, {}
    days = set()
    for at, (name, column) in enumerate(X.items()):
        values, givers[name], is_day = _read_column(column, f"{parameter} column {name!r}")
        columns[name], lengths[name] = values, len(values)
        days |= {at} if is_day else set()
    if len(set(lengths.values())) > 1:
        said = ", ".join(f"{name!r} has {length}" for name, length in lengths.items())
        raise ValueError(
            f"{parameter} must have columns of one length; {said}. Shorten or fill them."
        )
    _check_labels(X, parameter)
    frame = _frame(columns, list(X), next(iter(lengths.values())))
    indices = [one.index for one in X.values() if isinstance(one, pd.Series)]
    if indices:
        frame.index = indices[0]

    def give(rows: Data) -> dict[Any, Any]:
        assert isinstance(rows, pd.DataFrame)
        return {name: givers[name](rows.iloc[:, at]) for at, name in enumerate(rows.columns)}

    return frame, Form("dict", give, labelled=bool(indices), days=frozenset(days))


def _check_labels(X: Mapping[Any, Any], parameter: str) -> None:
    """Raise ``ValueError`` where columns of pandas have different labels of the rows."""
    series = {name: one for name, one in X.items() if isinstance(one, pd.Series)}
    first = next(iter(series.values()), None)
    for name, one in series.items():
        if first is not None and not one.index.equals(first.index):
            raise ValueError(
                f"{parameter} must have columns of pandas with one index; that of {name!r} differs "
                f"from that of {next(iter(series))!r}. Make a DataFrame of them, which aligns "
                f"them: pd.DataFrame(...)."
            )


def _read_column(column: Any, what: str) -> tuple[Any, Callable[[pd.Series[Any]], Any], bool]:
    """Values of one column, how to give it back, and whether it holds days."""
    if isinstance(column, pd.Series):
        return column.array, _as_is, False
    table = nw.from_native(column, pass_through=True, allow_series=True)
    if isinstance(table, nw.Series):
        kind, like = table.dtype, table.to_frame().head(0)

        def give(rows: pd.Series[Any]) -> Any:
            return _native_series(rows, table.name or "", kind, like).to_native()

        return _read_series(table, what), give, kind == nw.Date
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
        kept = pd.Series(list(column)) if len(column) else pd.Series([], dtype=object)
        return kept.array, pd.Series.tolist, False
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
