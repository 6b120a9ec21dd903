"""Arguments that hold one value a row: numbers, weights, groups."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from rhale_stats.arguments.times import as_values
from rhale_stats.arguments.words import first_rows, shown

# How xarray says that a Dataset lacks a dimension.
NO_DIMENSION = re.compile(r"(?:Dimensions \{)?'(\w+)'\}? (?:do not exist|not found in array dim)")
DESIGNS = (
    " Designs are for averages, std_error of effects in bins and profiles, compare and hypotheses: "
    "pass the clusters themselves, or weights as weights=."
)
# Edges beyond it have distances whose squares are no numbers.
LARGEST_EDGE = 1e150


def as_numbers(values: Any, what: str) -> NDArray[np.float64]:
    """A new float array of what a user gave; ``TypeError`` unless these are real numbers."""
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "biufO":
            raise TypeError(f"numbers of dtype {array.dtype}")
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{what} must be numbers; got {shown(values)}.") from error


def evenly(n_rows: int, most: int) -> NDArray[np.int64]:
    """Numbers of at most so many rows, at equal distances in the table."""
    numbers = np.linspace(0, n_rows - 1, min(n_rows, most)).round()
    return np.unique(numbers.astype(np.int64))


def as_edges(edges: ArrayLike, what: str) -> NDArray[np.float64]:
    """Bin edges as a new float array; raise ``ValueError`` unless they strictly increase."""
    array = as_numbers(as_values(edges), what)
    if array.ndim != 1 or len(array) < 2:
        raise ValueError(
            f"{what} must be a one-dimensional sequence of at least two numbers; "
            f"got an array of shape {array.shape}."
        )
    if not np.isfinite(array).all():
        raise ValueError(f"{what} must be finite; got {array.tolist()}.")
    if np.abs(array).max() > LARGEST_EDGE:
        raise ValueError(
            f"{what} must lie between {-LARGEST_EDGE:g} and {LARGEST_EDGE:g}, so that squares of "
            f"their distances are numbers; got {array.min():g} and {array.max():g}. For an open "
            f"end take an edge just beyond the rows."
        )
    steps = np.diff(array)
    if (steps <= 0).any():
        position = int(np.argmax(steps <= 0))
        raise ValueError(
            f"{what} must increase strictly; got {float(array[position])!r} followed by "
            f"{float(array[position + 1])!r} "
            f"at positions {position} and {position + 1}. Sort the numbers and drop repeated ones."
        )
    return array


def as_weights(
    weights: ArrayLike,
    n_rows: int,
    kind: str,
    index: pd.Index[Any] | None = None,
    *,
    of_part: bool = False,
) -> NDArray[np.float64]:
    """Row weights as a new float array of length ``n_rows``, fit for their (valid) kind.

    A Series goes by the labels of ``index``, where there is one. Those ``of_part`` of the rows
    may all be zero.
    """
    if index is not None and isinstance(weights, pd.Series):
        weights = aligned(weights, np.asarray(index), "weights")
    if np.ma.is_masked(weights):
        raise ValueError(
            "weights must be plain numbers; got a masked array, whose mask would be ignored. "
            "Give masked rows the weight 0."
        )
    if np.iscomplexobj(weights):
        raise TypeError("weights must be real numbers; got complex ones.")
    array = as_numbers(weights, "weights")
    if array.shape != (n_rows,):
        raise ValueError(
            f"weights must hold one number a row, shape ({n_rows},); got shape {array.shape}."
        )
    bad = ~(np.isfinite(array) & (array >= 0))
    if bad.any():
        raise ValueError(
            f"weights must be finite and not negative; got {int(bad.sum())} that are not "
            f"(first rows: {first_rows(bad)})."
        )
    bad = array != np.round(array)
    if kind == "frequency" and bad.any():
        raise ValueError(
            f"weights with weight_kind='frequency' count repeated rows and must be whole numbers; "
            f"got {int(bad.sum())} that are not (first rows: {first_rows(bad)}). For survey or "
            f"precision weights use weight_kind='precision'."
        )
    if not (of_part or (array > 0).any()):
        raise ValueError("weights must not all be zero.")
    return array


def storable(index: pd.Index[Any]) -> NDArray[Any]:
    """Labels of rows as netCDF and Zarr can hold them: times in UTC, else numbers or text."""
    if isinstance(index, pd.DatetimeIndex) and index.tz is not None:
        index = index.tz_convert("UTC").tz_localize(None)
    values = np.asarray(index.to_numpy())
    return np.array([str(label) for label in values]) if values.dtype == object else values


def aligned(
    values: Any,
    labels: NDArray[Any] | pd.Index[Any] | None,
    parameter: str,
    error: type[Exception] = ValueError,
) -> Any:
    """Values of rows in the order of the rows, whose ``labels`` those of pandas go by.

    Raise an ``error`` for as many values as rows, under other labels.
    """
    if isinstance(values, xr.DataArray) and values.ndim == 1 and values.dims[0] in values.coords:
        values = values.to_series()
    if labels is None or not isinstance(values, pd.Series | pd.DataFrame):
        return values
    index, rows = pd.Index(storable(values.index)), pd.Index(storable(pd.Index(labels)))
    if len(index) != len(rows) or index.equals(rows):
        return values
    if index.is_unique and rows.is_unique:
        positions = index.get_indexer(rows)
        if (positions >= 0).all():
            return values.iloc[positions]
    raise error(
        f"{parameter} must have the index of the rows, in any order; its index has other labels: "
        f"{_first_labels(index)} where the rows have {_first_labels(rows)}. Give it the index of X"
        f", or pass {parameter}.to_numpy() if its order is that of the rows."
    )


def _first_labels(index: pd.Index) -> str:
    listed = ", ".join(repr(label) for label in index[:3].tolist())
    return listed + (", ..." if len(index) > 3 else "")


def row_codes(
    values: Any,
    labels: NDArray[Any] | pd.Index[Any] | None,
    used: NDArray[np.bool_],
    parameter: str,
    rows: str = "rows of local",
) -> NDArray[np.int64]:
    """Numbers from 0 for what is said of every row (its group, its stratum), for the rows used.

    ``labels`` are those of all rows; None where rows have none, and values go by position.
    """
    entries = of_rows(values, labels, len(used), parameter, rows)
    array = np.asarray(entries)
    missing = np.asarray(pd.isna(array)) & used
    if isinstance(entries, np.ma.MaskedArray):
        missing |= np.ma.getmaskarray(entries) & used
    if missing.any():
        raise ValueError(
            f"{parameter} must have an entry for every row that is used; got {int(missing.sum())} "
            f"missing (first rows: {first_rows(missing)}). Give these rows an entry, or leave them "
            f"out of local: local.isel(obs=...)."
        )
    return np.asarray(pd.factorize(array[used], sort=True)[0], dtype=np.int64)


def of_rows(
    values: Any,
    labels: NDArray[Any] | pd.Index[Any] | None,
    n_rows: int,
    parameter: str,
    rows: str = "rows of local",
) -> Any:
    """Values in the order of the rows, one each; else ``ValueError``."""
    ordered = aligned(values, labels, parameter)
    shape = np.shape(ordered)
    if shape != (n_rows,):
        advice = DESIGNS if hasattr(values, "sampling") else ""
        raise ValueError(
            f"{parameter} must have one entry for each of {n_rows} {rows}; got "
            f"{f'shape {shape}' if shape else shown(values)}.{advice}"
        )
    return ordered


def series_of_rows(
    values: Any,
    labels: NDArray[Any] | pd.Index[Any] | None,
    n_rows: int,
    parameter: str,
    rows: str = "rows of local",
) -> pd.Series[Any]:
    """The same as a Series numbered from 0; categories keep their order."""
    ordered = of_rows(values, labels, n_rows, parameter, rows)
    has_categories = isinstance(getattr(ordered, "dtype", None), pd.CategoricalDtype)
    return pd.Series(ordered if has_categories else np.asarray(ordered)).reset_index(drop=True)


def as_array(data: Any, what: str, error: type[Exception] = TypeError) -> NDArray[Any]:
    """Numbers of an array, a tensor or a table as an array; complex and masked ones are refused."""
    if hasattr(data, "detach"):
        data = data.detach()
        data = data.cpu() if hasattr(data, "cpu") else data
    if np.ma.is_masked(data):
        raise error(
            f"{what} plain numbers; got a masked array, "
            f"{int(np.sum(np.ma.getmaskarray(data)))} of {np.size(data)} masked. Fill it or drop "
            f"these rows: its mask would be ignored."
        )
    array = np.asarray(data)
    if np.iscomplexobj(array):
        raise error(
            f"{what} real numbers; got dtype {array.dtype}. Take the real part, or the absolute "
            f"value, before the call."
        )
    return array
