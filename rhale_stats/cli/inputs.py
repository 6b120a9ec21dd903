"""Files that are read: tables of rows, and results of this package."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import xarray as xr

from rhale_stats.arguments.times import as_days, is_time, time_units
from rhale_stats.cli.formula import reason
from rhale_stats.cli.interruption import UsageError
from rhale_stats.models.table import readings_of

OF_CSV = (".csv", ".txt", ".dat", "")
COMPRESSED = (".gz", ".bz2", ".xz", ".zst", ".zip")
OF_PARQUET = (".parquet", ".pq")
OF_ARROW = (".feather", ".arrow", ".ipc")
# How xarray reads a result, by its suffix.
HOW_TO_READ: dict[str, dict[str, Any]] = {
    ".nc": {"engine": "h5netcdf"},
    ".zarr": {"engine": "zarr", "consolidated": False},
}


def read_table(path: Path, what: str = "DATA") -> pd.DataFrame:
    """A table of rows, in the format that the suffix says.

    Raises
    ------
    UsageError
        The suffix is not known, or the file cannot be read.
    """
    suffixes = [suffix.lower() for suffix in path.suffixes] or [""]
    suffix = suffixes[-1]
    if suffix in COMPRESSED:
        suffix = suffixes[-2] if len(suffixes) > 1 else ""
    try:
        if suffix in OF_PARQUET:
            return pd.read_parquet(path)
        if suffix in OF_ARROW:
            return pd.read_feather(path)
        if suffix in (*OF_CSV, ".tsv"):
            return pd.read_csv(path, sep="\t" if suffix == ".tsv" else ",")
    except ImportError as error:
        raise UsageError(
            f"{what} must be a file that pandas can read; for Parquet and Arrow, as in {path}, it "
            f"needs pyarrow: pip install pyarrow."
        ) from error
    except Exception as error:
        raise UsageError(
            f"{what} must be a CSV, Parquet or Feather file that pandas can read; {path}: "
            f"{reason(error)}."
        ) from error
    raise UsageError(
        f"{what} must be a file whose suffix says CSV (.csv, .tsv, .txt, also compressed), Parquet "
        f"(.parquet) or Arrow (.feather, .arrow); got {path}. Save it as one of these."
    )


def with_readings(data: pd.DataFrame) -> pd.DataFrame:
    """The table with text that holds numbers or dates as numbers; dates are days. Prints which."""
    readings, lines = readings_of(data)
    data = data.copy(deep=False)
    for position, reading in readings.items():
        data.isetitem(position, reading.values.array)
    dates = {name: column for name, column in data.items() if is_time(column.dtype)}
    data.attrs["units"] = {str(name): time_units(column.dtype) for name, column in dates.items()}
    for line in lines:
        print(line)
    return data.assign(**{str(name): as_days(column.array) for name, column in dates.items()})


def without_missing(data: pd.DataFrame, needed: list[str], path: Path, advice: str) -> pd.DataFrame:
    """The rows that have all values needed; prints how many do not.

    Raises
    ------
    UsageError
        There are none.
    """
    incomplete = data[needed].isna().any(axis=1)
    if incomplete.any():
        print(f"{int(incomplete.sum())} of {len(data)} rows have missing values and are dropped.")
        data = data[~incomplete].reset_index(drop=True)
    if data.empty:
        raise UsageError(
            f"DATA must have rows without missing values in {', '.join(needed)}; {path} "
            f"has none. {advice}"
        )
    return data


def read_result(path: Path, what: str) -> xr.DataTree:
    """A result of this package, with its groups, from netCDF or Zarr.

    Raises
    ------
    UsageError
        The suffix is not known, or the file cannot be read.
    """
    how = HOW_TO_READ.get(path.suffix.lower())
    if how is None:
        raise UsageError(f"{what} must be a .nc or .zarr file of this package; got {path}.")
    try:
        with xr.open_datatree(path, **how) as tree:
            return tree.load()
    except ImportError as error:
        raise UsageError(f"{what} {path} needs zarr: pip install zarr.") from error
    except Exception as error:
        raise UsageError(
            f"{what} must be a file of results that this package wrote; {path} cannot be read: "
            f"{reason(error)}."
        ) from error
