"""Tables of all libraries: read as pandas or NumPy, and given to the model in their own form."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import xarray as xr

from rhale_stats.arguments.words import listed, warn
from rhale_stats.models.form import ARRAY, PANDAS, Data, Form, as_is
from rhale_stats.models.frames import read_narwhals
from rhale_stats.models.labelled import read_columns, read_data_array, read_dataset, read_structured

# Libraries of models whose ``predict`` is documented for pandas and NumPy.
PANDAS_MODELS = ("sklearn", "xgboost", "lightgbm", "catboost", "statsmodels")
# Of these, those that know the types of NumPy and pandas, and none of Arrow.
NUMPY_MODELS = ("lightgbm", "statsmodels")


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
        return read_dataset(X, parameter)
    if isinstance(X, xr.DataArray):
        return read_data_array(X, parameter)
    if isinstance(X, np.ndarray) and X.dtype.names is not None:
        return read_structured(X, parameter)
    if isinstance(X, Mapping):
        return read_columns(X, parameter)
    table = nw.from_native(X, pass_through=True)
    if isinstance(table, nw.LazyFrame):
        table = table.collect()
    if isinstance(table, nw.DataFrame):
        return read_narwhals(table)
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
    columns = _known_columns(owner)
    if not isinstance(data, pd.DataFrame):
        if "sklearn" not in libraries or columns is None or len(columns) != data.shape[1]:
            return as_is
        warn(
            f"X has no names of columns; they are taken in the order of the fit: {listed(columns)}."
        )
        return lambda rows: pd.DataFrame(rows, columns=columns)
    if columns is not None and _selects(owner):
        return as_is
    if columns is not None:
        present = [name for name in columns if name in data.columns]
        if present:
            unknown = [n for n in data.columns if n not in set(columns)]
            give = _columns_of_fit(present, unknown, data)
            of_numpy = libraries & set(NUMPY_MODELS)
            return (lambda rows: without_arrow(give(rows))) if of_numpy else give
    if not libraries & set(PANDAS_MODELS):
        return form.give
    if libraries & set(NUMPY_MODELS):
        return without_arrow
    of_fit = hasattr(owner, "n_features_in_") and libraries & {"sklearn"} and columns is None
    return _array if of_fit and form.name != PANDAS.name else as_is


def without_arrow(rows: Any) -> Any:
    """Columns of Arrow types in those of NumPy: numbers, truth values, text, categories."""
    if not isinstance(rows, pd.DataFrame):
        return rows
    plain = {
        position: _plain_column(rows.iloc[:, position])
        for position, dtype in enumerate(rows.dtypes)
        if _is_of_arrow(dtype)
    }
    if not plain:
        return rows
    columns = {
        position: plain.get(position, rows.iloc[:, position]) for position in range(rows.shape[1])
    }
    return pd.DataFrame(columns, index=rows.index).set_axis(rows.columns, axis=1)


def _is_of_arrow(dtype: Any) -> bool:
    categories = getattr(dtype, "categories", None)
    return isinstance(dtype if categories is None else categories.dtype, pd.ArrowDtype)


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


def _known_columns(model: Any) -> list[Any] | None:
    """Names of the columns of the fit, of a model of scikit-learn's kind."""
    try:
        names = getattr(model, "feature_names_in_", None)
    except Exception:  # some models raise errors of their own before they are fitted
        return None
    return None if names is None or np.ndim(names) != 1 else list(names)


def _selects(model: Any) -> bool:
    """Whether a model of scikit-learn takes its columns by name, whatever else there is."""
    fitted = getattr(model, "best_estimator_", model)
    steps = getattr(fitted, "steps", None)
    first = steps[0][1] if steps else fitted
    return type(first).__name__ == "ColumnTransformer"


def _columns_of_fit(
    present: Sequence[Any], unknown: Sequence[Any], data: pd.DataFrame
) -> Callable[[Data], Any]:
    if list(data.columns) == list(present):
        return as_is
    if unknown:
        warn(
            f"Columns that the model was not fitted with are not given to it: "
            f"{', '.join(map(repr, unknown))}. They have no effect."
        )

    def of_fit(rows: Data) -> Any:
        return rows[list(present)] if isinstance(rows, pd.DataFrame) else rows

    return of_fit


def _array(rows: Data) -> Any:
    return rows.to_numpy() if isinstance(rows, pd.DataFrame) else rows


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
    table = nw.from_native(answer, pass_through=True, allow_series=True)
    if isinstance(table, nw.LazyFrame):
        table = table.collect()
    if isinstance(table, nw.Series):
        return table.to_numpy()
    if isinstance(table, nw.DataFrame):
        return pd.DataFrame({name: table[name].to_numpy() for name in table.columns})
    return answer
