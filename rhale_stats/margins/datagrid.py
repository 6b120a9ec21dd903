"""Tables of chosen rows, for averages that are not over a sample."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from rhale_stats.arguments.checks import check_choice
from rhale_stats.arguments.words import listed
from rhale_stats.models.table import as_table
from rhale_stats.schema.features import position_of
from rhale_stats.schema.validation import validated

MAX_ROWS = 1_000_000
GRIDS = ("mean", "balanced")
# An attribute of the table: its rows are no sample.
GRID = "rhale_stats_grid"


@validated
def datagrid(X: Any, *, grid: str = "mean", **values: Any) -> pd.DataFrame:
    """All combinations of chosen values of some columns, with the others at typical values.

    Parameters
    ----------
    X : table, or array_like of shape (n_rows, n_columns)
        The table whose columns the rows get.
    grid : {"mean", "balanced"}
        What the other columns hold. "mean": the mean of numbers (rounded in columns of integers),
        and the most frequent value of texts, categories and booleans. "balanced": each level of
        these as well, in all combinations, which is the reference grid of ``emmeans``.
    **values : value, sequence of values, or function
        Values of columns by name; a function is called with the column and returns them.

    Returns
    -------
    DataFrame
        A row a combination, the last column named varies fastest; columns and types as in ``X``.

    Raises
    ------
    KeyError, ValueError
        A column that ``X`` lacks; more than a million rows; a column without any value.

    Examples
    --------
    >>> import pandas as pd
    >>> import rhale_stats as rs
    >>> X = pd.DataFrame({"dose": [1.0, 2.0, 6.0], "arm": ["a", "b", "b"]})
    >>> rs.datagrid(X, dose=[1, 5])
       dose arm
    0   1.0   b
    1   5.0   b
    >>> rs.datagrid(X, grid="balanced")
       dose arm
    0   3.0   a
    1   3.0   b
    """
    check_choice("grid", grid, GRIDS)
    table = as_table(X)
    frame = pd.DataFrame(table.copied(), columns=None if hasattr(X, "columns") else table.names)
    chosen = {
        table.names[position_of(name, table.names, "X")]: wanted for name, wanted in values.items()
    }
    columns = []
    for position, name in enumerate(table.names):
        series = frame.iloc[:, position]
        present = series.dropna()
        if present.empty:
            raise ValueError(f"X must have values of {name!r}; all {len(series)} are missing.")
        if name in chosen:
            wanted = chosen[name](series) if callable(chosen[name]) else chosen[name]
            columns.append(list(wanted) if pd.api.types.is_list_like(wanted) else [wanted])
            texts = [value for value in columns[-1] if isinstance(value, str)]
            if table.is_numeric(position) and texts:
                raise TypeError(
                    f"{name} must be numbers, as in {name}=[20, 40], or a function, as in "
                    f"{name}=numpy.mean; got {texts[0]!r}."
                )
        elif table.is_numeric(position):
            mean = present.mean()
            columns.append([np.rint(mean) if pd.api.types.is_integer_dtype(series) else mean])
        else:
            levels = present.value_counts(sort=False).sort_index()
            levels = levels[levels > 0]
            columns.append(list(levels.index) if grid == "balanced" else [levels.idxmax()])
    n_rows = int(np.prod([float(len(column)) for column in columns]))
    if not 0 < n_rows <= MAX_ROWS:
        raise ValueError(
            f"values must make 1 to {MAX_ROWS:,} rows; got {n_rows:,}: the columns have "
            f"{', '.join(str(len(column)) for column in columns)} values."
        )
    out = pd.DataFrame(list(product(*columns)), columns=frame.columns)
    for position, name in enumerate(frame.columns):
        dtype = frame.dtypes.iloc[position]
        fits = not pd.api.types.is_integer_dtype(dtype) or (out[name] % 1 == 0).all()
        if isinstance(dtype, pd.CategoricalDtype):
            unknown = sorted(set(map(str, out[name])) - set(map(str, dtype.categories)))
            if unknown:
                raise ValueError(f"{name} must be among its categories; got {listed(unknown)}.")
        out[name] = out[name].astype(dtype) if fits else out[name]
    out.attrs[GRID] = True
    return out
