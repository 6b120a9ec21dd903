"""Tables that are not in memory: how they are recognised, and refused."""

from __future__ import annotations

import os
from typing import Any

from rhale_stats.arguments.words import shown

LIBRARIES = ("dask", "dask_expr")
TAKEN = "local_effects, and what follows from it, ale and pdp"


def is_path(X: Any) -> bool:
    """Whether a table is given by the path of its files."""
    return isinstance(X, str | os.PathLike)


def is_in_chunks(X: Any) -> bool:
    """Whether a table or an array is computed by dask when it is needed."""
    data = getattr(X, "data", X) if type(X).__module__.startswith("xarray") else X
    return type(data).__module__.partition(".")[0] in LIBRARIES or (
        type(X).__module__.startswith("xarray") and bool(getattr(X, "chunks", None))
    )


def refuse_chunks(X: Any, parameter: str) -> None:
    """Raise ``TypeError`` for tables in chunks, which may be larger than the memory."""
    if is_path(X):
        raise TypeError(
            f"{parameter} must be a DataFrame or a two-dimensional array of shape (rows, "
            f"features); got {shown(X)}. Read the file, or a sample of its rows. {TAKEN} "
            f"take paths of Parquet files."
        )
    if is_in_chunks(X):
        raise TypeError(
            f"{parameter} must be in memory here; got {type(X).__module__.partition('.')[0]} "
            f"{type(X).__name__}, which is in chunks. Use {parameter}.compute() if it fits into "
            f"memory, or a sample of its rows. {TAKEN} take tables in chunks."
        )
