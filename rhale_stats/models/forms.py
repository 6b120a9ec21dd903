"""Tables of all libraries: read as pandas or NumPy, and given to the model in their own kind."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import FunctionType
from typing import Any, TypeAlias

import narwhals as nw
import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from rhale_stats.arguments.words import listed, warn


def read_narwhals(table: nw.DataFrame[Any]) -> tuple[pd.DataFrame, TableFormat]:
    """A table column by column; without the detour of ``to_pandas``, which loses integers."""
    schema = dict(table.schema)
    columns = {name: read_series(table[name]) for name in table.columns}
    days = frozenset(position for position, kind in enumerate(schema.values()) if kind == nw.Date)
    frame = framed(columns, len(table))
    like = table.head(0)

    def give(rows: Any) -> Any:
        names = list(rows.columns)
        made = [
            native_series(rows.iloc[:, position], str(name), schema.get(name), like)
            for position, name in enumerate(names)
        ]
        first = made[0].to_frame()
        return first.with_columns(*made[1:]).to_native() if len(made) > 1 else first.to_native()

    kind = type(table.to_native())
    name = f"{kind.__module__.partition('.')[0]} {kind.__name__}"
    return frame, TableFormat(name, give, days=days)


def read_series(column: nw.Series[Any]) -> Any:
    """One column in the type of pandas that holds all of it, missing values included."""
    kind = column.dtype
    gone = column.is_null().to_numpy() if column.null_count() else None
    if gone is not None:
        for is_kind, nullable, filler in (
            (kind.is_integer(), pd.arrays.IntegerArray, 0),
            (kind.is_float(), pd.arrays.FloatingArray, 0.0),
            (kind == nw.Boolean, pd.arrays.BooleanArray, False),
        ):
            if is_kind:
                filled = np.array(column.fill_null(filler).to_numpy())
                return nullable(filled.astype(bool) if filler is False else filled, np.array(gone))
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
    made = nw.new_series(name, values, backend=backend)
    if isinstance(values, list):  # text as the categories that it was
        target = kind if kind is not None else nw.String()
        if made.dtype == target:
            return made
        if made.dtype == nw.Unknown or made.null_count() == len(made):
            made = made.cast(nw.String)
        return made.cast(target) if target != nw.String else made
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


# --- what kind of table a user has ----------------------------------------------------------------


Data: TypeAlias = pd.DataFrame | NDArray[Any]
PLAIN = (
    "A table has columns of numbers, true and false, text, categories, dates, times or durations"
)


def as_is(rows: Any) -> Any:
    """Rows as they are."""
    return rows


@dataclass(frozen=True)
class TableFormat:
    """What kind of table the user has, and how rows are brought into this kind.

    ``labelled`` says whether rows have labels of their own, by which pandas objects are aligned.
    ``days`` are the numbers of columns of dates without a time of the day. ``restore`` turns
    columns that were read as numbers or dates back into what they hold.
    """

    name: str
    give: Callable[[Data], Any] = as_is
    labelled: bool = False
    days: frozenset[int] = frozenset()
    restore: Callable[[Data], Any] = as_is

    def as_given(self, rows: Data) -> Any:
        """Rows in the form and the types of the user."""
        return self.give(self.restore(rows))


PANDAS = TableFormat("pandas DataFrame", labelled=True)
ARRAY = TableFormat("array")


def framed(columns: Mapping[Any, Any], n_rows: int) -> pd.DataFrame:
    """Columns as a DataFrame, whose rows are numbered."""
    frame = pd.DataFrame(dict(enumerate(columns.values())), index=pd.RangeIndex(n_rows))
    return frame.set_axis(pd.Index(list(columns), dtype=None if columns else object), axis=1)


# --- tables of all libraries ----------------------------------------------------------------------


# Units of times that pandas has.
UNITS = ("s", "ms", "us", "ns")
# Libraries of models whose ``predict`` is documented for pandas and NumPy.
PANDAS_MODELS = ("sklearn", "xgboost", "lightgbm", "catboost", "statsmodels")
# Of these, those that know the types of NumPy and pandas, and none of Arrow.
NUMPY_MODELS = ("lightgbm", "statsmodels")
# Modules of the package with functions that ask results of statsmodels.
OF_STATSMODELS = ("rhale_stats.models.parametric", "rhale_stats.models.adapters.statsmodels")


def read(X: Any, parameter: str = "X") -> tuple[Any, TableFormat]:
    """A table as a DataFrame, or what it is where it is none (an array), and its form.

    Columns of nested values, of different lengths, or of several dimensions are refused.
    """
    if isinstance(X, pd.DataFrame):
        return X, PANDAS
    if isinstance(X, xr.Dataset):
        return read_dataset(X, parameter)
    if isinstance(X, xr.DataArray):
        return read_data_array(X, parameter)
    if isinstance(X, np.ndarray) and X.dtype.names is not None:
        return read_structured(X, parameter)
    if isinstance(X, Mapping):
        return read_columns(X, parameter)
    table = _in_narwhals(X)
    return read_narwhals(table) if isinstance(table, nw.DataFrame) else (X, ARRAY)


def _in_narwhals(data: Any) -> Any:
    """A table or column of a library that narwhals knows, in memory; other data as they are."""
    table = nw.from_native(data, pass_through=True, allow_series=True)
    return table.collect() if isinstance(table, nw.LazyFrame) else table


def collected(X: Any) -> Any:
    """The table, in memory if it was only planned: a LazyFrame is collected once."""
    return nw.to_native(_in_narwhals(X), pass_through=True) if hasattr(X, "collect") else X


def n_rows_of(X: Any) -> int:
    """Number of rows of a table that a model was given."""
    columns = X.data_vars if isinstance(X, xr.Dataset) else X
    return len(next(iter(columns.values()), ())) if isinstance(columns, Mapping) else len(columns)


def given_to(model: Any, form: TableFormat, data: Data) -> Callable[[Any], Any]:
    """How rows are brought into the form that a model takes: that of the user, or of its fit.

    Models of scikit-learn and the like, which remember the columns of their fit, get these columns
    in this order. Those that were fitted without names get an array where they were not given a
    DataFrame.
    """
    model = model.func if isinstance(model, partial) else model
    if isinstance(model, FunctionType) and model.__module__ in OF_STATSMODELS:
        return in_numpy_types
    owner = getattr(model, "__self__", model)
    if type(owner).__module__.startswith("rhale_stats"):
        owner = getattr(owner, "estimator", owner)  # one of an ensemble
    libraries = {kind.__module__.partition(".")[0] for kind in type(owner).__mro__}
    columns = columns_of_fit(owner, getattr(data, "columns", ()))
    # Missing values of other tables are null in the nullable types of pandas.
    is_other = form.name != PANDAS.name
    plain = in_numpy_types if is_other or libraries & set(NUMPY_MODELS) else as_is
    if not isinstance(data, pd.DataFrame):
        if "sklearn" not in libraries or columns is None or len(columns) != data.shape[1]:
            return as_is
        warn(
            f"X has no names of columns; they are taken in the order of the fit: {listed(columns)}."
        )
        return lambda rows: pd.DataFrame(rows, columns=columns)
    if columns is not None:
        fitted = getattr(owner, "best_estimator_", owner)
        steps = getattr(fitted, "steps", None)
        if type(steps[0][1] if steps else fitted).__name__ == "ColumnTransformer":
            return plain  # takes its columns by name, whatever else there is
        present = [name for name in columns if name in data.columns]
        if present:
            give = _columns_of_fit(present, columns, data)
            return lambda rows: plain(give(rows))
    if not libraries & set(PANDAS_MODELS):
        return form.give
    of_fit = hasattr(owner, "n_features_in_") and libraries & {"sklearn"} and columns is None
    return (lambda rows: plain(rows).to_numpy()) if of_fit and is_other else plain


def in_numpy_types(rows: Any) -> Any:
    """Columns of Arrow or nullable types in those of NumPy: numbers, truths, text, categories."""
    if not isinstance(rows, pd.DataFrame):
        return rows
    columns = dict(enumerate(column for _, column in rows.items()))
    plain = {}
    for position, column in columns.items():
        categories = getattr(column.dtype, "categories", None)
        dtype = column.dtype if categories is None else categories.dtype
        if hasattr(dtype, "numpy_dtype"):
            plain[position] = _plain_column(column)
    if not plain:
        return rows
    return pd.DataFrame(columns | plain, index=rows.index).set_axis(rows.columns, axis=1)


def _plain_column(column: pd.Series[Any]) -> pd.Series[Any]:
    """A column of an Arrow type, or of categories of one, in a type of NumPy."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        categories = _plain_column(pd.Series(column.cat.categories))
        return column.cat.rename_categories(categories.tolist())
    if pd.api.types.is_float_dtype(column.dtype):
        values: Any = column.to_numpy(dtype=np.float64, na_value=np.nan)
    elif pd.api.types.is_numeric_dtype(column.dtype) and column.isna().any():
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    elif pd.api.types.is_string_dtype(column.dtype):
        values = column.to_numpy(dtype=object, na_value=np.nan)
    else:
        values = column.to_numpy()
    return pd.Series(values, index=column.index)


def columns_of_fit(model: Any, present: Iterable[Any]) -> list[Any] | None:
    """Names of the columns of the fit, of a model of scikit-learn's kind, as the table has them."""
    try:
        names = getattr(model, "feature_names_in_", None)
        if names is None:  # lightgbm before 4.6, alone, in a search or in a vote
            inner = getattr(model, "best_estimator_", None)
            inner = inner or [*getattr(model, "estimators_", ()), model][0]
            if type(inner).__module__.startswith("lightgbm"):
                names = inner.feature_name_
                names = None if names[0].startswith("Column_") else names
    except Exception:  # some models raise errors of their own before they are fitted
        return None
    return None if names is None or np.ndim(names) != 1 else names_with_spaces(names, present)


def names_with_spaces(names: Iterable[Any], present: Iterable[Any]) -> list[Any]:
    """Columns of a fit as a table has them: lightgbm, alone or in a model, writes "_" for " "."""
    written = {re.sub(r"\s", "_", str(name)): name for name in present}
    written |= {name: name for name in present}
    return [written.get(name, name) for name in names]


def _columns_of_fit(
    present: list[Any], columns: Sequence[Any], data: pd.DataFrame
) -> Callable[[Data], Any]:
    if list(data.columns) == present:
        return as_is
    unknown = [name for name in data.columns if name not in set(columns)]
    if unknown:
        warn(
            f"Columns that the model was not fitted with are not given to it: "
            f"{', '.join(map(repr, unknown))}. They have no effect."
        )
    return lambda rows: rows[present]


def plain_answer(answer: Any) -> Any:
    """An answer of a model as pandas or NumPy, where another library made it; else as it is."""
    if isinstance(answer, xr.DataArray):
        named = answer.ndim == 2 and answer.dims[1] in answer.coords
        columns = [str(name) for name in answer[answer.dims[1]].values] if named else None
        return pd.DataFrame(answer.values, columns=columns) if named else answer.values
    if isinstance(answer, xr.Dataset):
        answer = {str(name): answer[name].values for name in answer.data_vars}
    if isinstance(answer, Mapping):
        return pd.DataFrame({name: np.asarray(column) for name, column in answer.items()})
    if isinstance(answer, np.ndarray | pd.Series | pd.DataFrame):
        return answer
    table = _in_narwhals(answer)
    if isinstance(table, nw.Series):
        return table.to_numpy()
    if isinstance(table, nw.DataFrame):
        return pd.DataFrame({name: table[name].to_numpy() for name in table.columns})
    return answer


def read_dataset(X: xr.Dataset, parameter: str) -> tuple[pd.DataFrame, TableFormat]:
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
    frame, form = read_columns({name: X[name].values for name in X.data_vars}, parameter)
    labelled = _label_rows(frame, X, row)
    frame.attrs = _attributes(X.attrs, {name: X[name].attrs for name in X.data_vars})

    def give(rows: Any) -> xr.Dataset:
        columns = form.give(rows).items()
        data = {name: (row, values, X[name].attrs) for name, values in columns}
        return xr.Dataset(data, attrs=X.attrs)

    return frame, TableFormat("xarray Dataset", give, labelled=labelled)


def read_data_array(X: xr.DataArray, parameter: str) -> tuple[Any, TableFormat]:
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
    labelled = _label_rows(frame, X, row)
    frame.attrs = _attributes(X.attrs, {})
    coords = {column: X[column]} if column in X.coords else {}

    def give(rows: Data) -> xr.DataArray:
        values = rows.to_numpy(copy=True) if isinstance(rows, pd.DataFrame) else rows
        return xr.DataArray(values, dims=(row, column), coords=coords, attrs=X.attrs, name=X.name)

    return frame, TableFormat("xarray DataArray", give, labelled=labelled)


def _label_rows(frame: pd.DataFrame, X: xr.Dataset | xr.DataArray, row: Any) -> bool:
    """Give a table the labels that xarray has of its rows; whether there are some."""
    labelled = row in X.indexes and X.indexes[row].nlevels == 1
    if labelled:
        frame.index = X.indexes[row]
    return labelled


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


def read_structured(X: NDArray[Any], parameter: str) -> tuple[pd.DataFrame, TableFormat]:
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
    frame, form = read_columns({name: X[name] for name in names}, parameter)

    def give(rows: Any) -> NDArray[Any]:
        columns = form.give(rows)
        out = np.empty(len(rows), [(name, values.dtype) for name, values in columns.items()])
        for name, values in columns.items():
            out[name] = values
        return out

    return frame, TableFormat("structured array", give)


def read_columns(X: Mapping[Any, Any], parameter: str) -> tuple[pd.DataFrame, TableFormat]:
    """A dict of columns, each of which may be of any library."""
    if not X:
        raise ValueError(f"{parameter} must have at least one column; got an empty dict.")
    columns, givers, days = {}, {}, set()
    for position, (name, column) in enumerate(X.items()):
        columns[name], givers[name], is_day = _read_column(column, f"{parameter} column {name!r}")
        days |= {position} if is_day else set()
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        text = ", ".join(f"{name!r} has {length}" for name, length in lengths.items())
        raise ValueError(
            f"{parameter} must have columns of one length; {text}. Shorten or fill them."
        )
    _check_labels(X, parameter)
    frame = framed(columns, next(iter(lengths.values())))
    indices = [series.index for series in X.values() if isinstance(series, pd.Series)]
    if indices:
        frame.index = indices[0]

    def give(rows: Any) -> dict[Any, Any]:
        return {
            name: givers[name](rows.iloc[:, position]) for position, name in enumerate(rows.columns)
        }

    return frame, TableFormat("dict", give, labelled=bool(indices), days=frozenset(days))


def _check_labels(X: Mapping[Any, Any], parameter: str) -> None:
    """Raise ``ValueError`` where columns of pandas have different labels of the rows."""
    series = {name: column for name, column in X.items() if isinstance(column, pd.Series)}
    for name, column in series.items():
        first = next(iter(series))
        if not column.index.equals(series[first].index):
            raise ValueError(
                f"{parameter} must have columns of pandas with one index; that of {name!r} differs "
                f"from that of {first!r}. Make a DataFrame of them, which aligns them: "
                f"pd.DataFrame(...)."
            )


def _read_column(column: Any, what: str) -> tuple[Any, Callable[[pd.Series[Any]], Any], bool]:
    """Values of one column, how to give it back, and whether it holds days."""
    if isinstance(column, pd.Series):
        return column.array, as_is, False
    table = _in_narwhals(column)
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
    if values.dtype.kind == "M" and np.datetime_data(values.dtype)[0] not in UNITS:
        return values.astype("datetime64[s]")
    return values


def _own_values(column: pd.Series[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """A column as an array; text in the type that it had."""
    if dtype.kind in "US":
        return column.to_numpy(dtype=object).astype(dtype)
    if dtype.kind == "O":
        return column.to_numpy(dtype=object)
    return np.array(column.to_numpy())  # which the model may change
