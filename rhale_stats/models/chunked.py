"""Tables in chunks: dask DataFrames and arrays, chunked xarray, Parquet files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rhale_stats.arguments.checks import is_in_chunks, is_path
from rhale_stats.arguments.rows import as_weights
from rhale_stats.arguments.words import listed, one_line, shown
from rhale_stats.arrays.binning import most_of_chunk, thinned, together
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.chunks import of_all
from rhale_stats.models.forms import columns_of_fit
from rhale_stats.models.outputs import ModelError
from rhale_stats.models.table import as_table

# Memory that a partition of a Parquet file takes, about: 10^6 rows of 4 columns.
PARTITION = "32 MiB"
# Rows of the sample on which methods, steps and cells are decided, so many of a chunk at least.
SAMPLE_ROWS, MIN_OF_CHUNK = 5000, 20


def chunks_of(X: Any, model: Any = None) -> list[Any] | None:
    """Chunks of a table, delayed DataFrames or arrays; None if ``X`` is in memory.

    Of Parquet files the columns are read that the model was fitted on, where it knows these.
    """
    if is_path(X):
        X = _parquet(X, model)
    if not is_in_chunks(X):
        return None
    if type(X).__name__ == "Dataset":
        raise TypeError(
            "X must be a table; got a Dataset in chunks. Use X.to_dask_dataframe()[columns]."
        )
    X = X.data if type(X).__module__.startswith("xarray") else X
    if hasattr(X, "columns"):
        arguments = {"columns": list(X.columns), "meta": X._meta, "enforce_metadata": False}
        return list(X.map_partitions(_in_order, **arguments).to_delayed())
    if getattr(X, "ndim", 0) != 2:
        raise ValueError(
            f"X must be a DataFrame or a two-dimensional array of shape (rows, features); got "
            f"{shown(X)}."
        )
    return list(X.rechunk({1: -1}).to_delayed(optimize_graph=False).ravel())


def _in_order(
    chunk: pd.DataFrame, columns: list[Any], partition_info: dict[str, int] | None = None
) -> pd.DataFrame:
    """A chunk with the columns of the table in their order, which files need not keep."""
    if chunk.columns.tolist() == columns:
        return chunk
    absent = [name for name in columns if name not in chunk.columns]
    if absent:
        number = "one" if partition_info is None else f"chunk {partition_info['number']}"
        raise ValueError(
            f"X must have the same columns in all chunks; {number} lacks {listed(absent)}."
        )
    return chunk[columns]


def _parquet(path: Any, model: Any) -> Any:
    try:
        from dask import config
        from dask.dataframe import read_parquet
    except ImportError as error:
        raise ImportError(
            "X is the path of a Parquet file, which is read by dask: pip install "
            "'rhale-stats[dask]'. Or pass pandas.read_parquet(path)."
        ) from error
    # Columns of the types that pandas reads: the model knows these.
    with config.set({"dataframe.convert-string": False}):
        try:
            table = read_parquet(os.fspath(path), blocksize=PARTITION, split_row_groups="adaptive")
            columns = columns_of_fit(model, table.columns)
            return table if columns is None else table[list(map(str, columns))]
        except (OSError, ValueError, KeyError) as error:
            raise ValueError(
                f"X must be a table, or the path of Parquet files; {os.fspath(path)!r} cannot be "
                f"read: {one_line(error)}"
            ) from error


class Glance(NamedTuple):
    """What one look at every chunk tells of a table.

    ``lengths`` are the numbers of rows of the chunks, in order. Of every column ``low`` and
    ``high`` are its ends, NaN where it holds no numbers, and ``n_bad`` counts values that are
    missing or infinite, ``n_missing`` those that are missing. ``sample`` are some rows of every
    chunk.
    """

    lengths: list[int]
    low: FloatArray
    high: FloatArray
    n_bad: NDArray[np.int64]
    n_missing: NDArray[np.int64]
    sample: Any


@contextmanager
def of_sample(seen: Glance) -> Iterator[None]:
    """Refusals name no rows of a sample: their numbers are not those of the table."""
    try:
        yield
    except (ValueError, ModelError) as error:
        if len(seen.sample) == sum(seen.lengths):
            raise
        message = re.sub(r" \(first rows: [^)]*\)| in row \d+", "", str(error))
        raise type(error)(
            f"{message} Found in a sample of {len(seen.sample)} rows of X."
        ) from error


def glance(chunks: Sequence[Any]) -> Glance:
    """One look at all chunks."""
    most = max(SAMPLE_ROWS // len(chunks), MIN_OF_CHUNK)
    each = [(chunk, most) for chunk in chunks]
    overview: Glance = of_all(each, _glance, _together, "chunks looked at")
    if not sum(overview.lengths):
        raise ValueError("X must have at least one row; got none.")
    return overview


def _glance(chunk: Any, most: int) -> Glance:
    if not len(chunk):
        none = np.zeros(np.shape(chunk)[1])
        ends, counts = none * np.nan, none.astype(np.int64)
        return Glance([0], ends, ends, counts, counts, chunk)
    table = as_table(chunk)
    n_columns = len(table.names)
    ends, (n_bad, n_missing) = np.full((2, n_columns), np.nan), np.zeros((2, n_columns), np.int64)
    for position in filter(table.is_numeric, range(n_columns)):
        column = table.column(position)
        finite = np.isfinite(column)
        n_bad[position], n_missing[position] = len(column) - finite.sum(), np.isnan(column).sum()
        if finite.any():
            finite_values = column if finite.all() else column[finite]
            ends[:, position] = finite_values.min(), finite_values.max()
    rows = np.unique(np.linspace(0, len(chunk) - 1, min(most, len(chunk))).astype(np.int64))
    return Glance([len(chunk)], ends[0], ends[1], n_bad, n_missing, table.take(rows).data)


def _together(chunks: Sequence[Glance]) -> Glance:
    lengths, low, high, n_bad, n_missing, samples = zip(*chunks, strict=True)
    some = [sample for sample in samples if len(sample)] or [samples[0]]
    frames = isinstance(some[0], pd.DataFrame)
    return Glance(
        [length for part in lengths for length in part],
        np.fmin.reduce(low),
        np.fmax.reduce(high),
        np.sum(n_bad, axis=0),
        np.sum(n_missing, axis=0),
        pd.concat(some, ignore_index=True) if frames else np.concatenate(some),
    )


def places_of(
    chunks: Sequence[Any], lengths: Sequence[int], positions: Sequence[int], weights: Any
) -> dict[int, tuple[FloatArray, FloatArray | None]]:
    """Where the rows of columns are on their axes, with weights; a summary [97] if they are many.

    ``weights`` are None or those of all rows, in memory or a dask array.
    """
    most = most_of_chunk(len(chunks))

    def of_chunk(chunk: Any, weight: Any) -> list[tuple[FloatArray, FloatArray | None]] | None:
        """By column; None without rows of positive weight."""
        w = None if weight is None else np.asarray(weight, dtype=np.float64)
        present = np.ones(len(chunk), dtype=bool) if w is None else w > 0
        if not present.any():
            return None
        table, places = as_table(chunk), []
        for position in positions:
            x = table.column(position)
            rows = present & ~np.isnan(x)
            places.append(thinned(x[rows], None if w is None else w[rows], most))
        return places

    def of_columns(parts: Any) -> list[tuple[FloatArray, FloatArray | None]]:
        return [together(column) for column in zip(*parts, strict=True)]

    each = list(zip(chunks, weights_of_chunks(weights, lengths), strict=True))
    places = of_all(each, of_chunk, of_columns, "chunks looked at")
    if places is None:
        raise ValueError("weights must be positive in some row; got none.")
    return dict(zip(positions, places, strict=True))


def weights_of_rows(weights: Any, lengths: Sequence[int], kind: str) -> Any:
    """Weights of all rows: checked, or in chunks and checked when they are computed."""
    n_rows = sum(lengths)
    if not is_in_chunks(weights):
        return as_weights(weights, n_rows, kind)
    weights = getattr(weights, "data", weights) if hasattr(weights, "dims") else weights
    if hasattr(weights, "to_dask_array"):
        weights = weights.to_dask_array(lengths=list(lengths))
    if weights.shape != (n_rows,):
        raise ValueError(
            f"weights must hold one number a row, shape ({n_rows},); got {shown(weights)}."
        )
    return weights.map_blocks(
        lambda part: as_weights(part, len(part), kind, of_part=True), dtype=np.float64
    )


def weights_of_chunks(weights: Any, lengths: Sequence[int]) -> list[Any]:
    """Weights of the rows of each chunk, delayed if they are; None without weights."""
    if weights is None:
        return [None] * len(lengths)
    if is_in_chunks(weights):
        weights = weights.rechunk((tuple(lengths),))
        return list(weights.to_delayed(optimize_graph=False).ravel())
    return np.split(weights, np.cumsum(lengths)[:-1])
