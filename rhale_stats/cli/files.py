"""Files that are read and written: tables, results, JSON."""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd
import patsy
import xarray as xr

from rhale_stats.arguments.times import as_days, is_time, time_units
from rhale_stats.arguments.words import one_line
from rhale_stats.cli.parser import FailureError, UsageError
from rhale_stats.files import check_folder, netcdf_of, whole
from rhale_stats.models.table import readings_of
from rhale_stats.printing.text import plain

# How pandas reads a table, and xarray a result, by their suffixes.
TABLE_READERS: dict[str, Callable[[Path], Any]] = {
    **dict.fromkeys((".csv", ".txt", ".dat", ""), pd.read_csv),
    ".tsv": partial(pd.read_csv, sep="\t"),
    **dict.fromkeys((".parquet", ".pq"), pd.read_parquet),
    **dict.fromkeys((".feather", ".arrow", ".ipc"), pd.read_feather),
}
COMPRESSED = (".gz", ".bz2", ".xz", ".zst", ".zip")
HOW_TO_READ: dict[str, dict[str, Any]] = {
    ".nc": {"engine": "h5netcdf"},
    ".zarr": {"engine": "zarr", "consolidated": False},
}


def reason(error: Exception) -> str:
    """Message of an error; for errors of patsy, without the lines that mark the place."""
    text = str(error.message) if isinstance(error, patsy.PatsyError) else one_line(error)
    return text.rstrip(". ")


def read_table(path: Path) -> pd.DataFrame:
    """A table of rows, in the format that the suffix says."""
    suffix = path.suffix.lower()
    if suffix in COMPRESSED:
        suffix = path.with_suffix("").suffix.lower()
    if suffix not in TABLE_READERS:
        raise UsageError(
            f"DATA must be a file whose suffix says CSV (.csv, .tsv, .txt, also compressed), "
            f"Parquet (.parquet) or Arrow (.feather, .arrow); got {path}. Save it as one of these."
        )
    try:
        table: pd.DataFrame = TABLE_READERS[suffix](path)
    except ImportError as error:
        raise UsageError(
            f"DATA must be a file that pandas can read; for Parquet and Arrow, as in {path}, it "
            f"needs pyarrow: pip install pyarrow."
        ) from error
    except Exception as error:
        raise UsageError(
            f"DATA must be a CSV, Parquet or Feather file that pandas can read; {path}: "
            f"{reason(error)}."
        ) from error
    return table


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
    """The rows that have all values needed; prints how many do not."""
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
    """A result of this package, with its groups, from netCDF or Zarr."""
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


# --- where results go: files of folders that are checked before the long work, and JSON -----------


# What writes a file, by its suffix.
Writers: TypeAlias = Mapping[str, Callable[[Path], object]]
# Libraries that a suffix needs and that need not be there.
NEEDS = {".zarr": "zarr", ".parquet": "pyarrow", ".feather": "pyarrow", ".arrow": "pyarrow"}
CONTENTS = {
    **dict.fromkeys((".nc", ".zarr"), "all results, as xarray.open_datatree reads them"),
    ".json": "the answer that --json prints",
    ".html": "the report, for a browser",
    **dict.fromkeys((".csv", ".parquet", ".feather", ".arrow"), "the table of results"),
}
# One of these is in every folder of Zarr.
OF_ZARR = ("zarr.json", ".zgroup", ".zattrs", ".zmetadata")


def folder_of(arguments: argparse.Namespace, names: Sequence[str]) -> Path:
    """The folder for the files. It is made if necessary, and it can be written to."""
    out: Path = getattr(arguments, "out", Path())
    _check_folder(out, names, f"a folder in which {', '.join(names)} can be written; got {out}")
    return out


def _check_folder(folder: Path, names: Sequence[str], expected: str) -> None:
    """Raise ``UsageError`` unless files of these names can be written to a folder."""
    try:
        check_folder(folder, names)
    except OSError as error:
        raise UsageError(
            f"--out must be {expected}: {error.strerror or error}. Choose another folder."
        ) from error


def files_of(arguments: argparse.Namespace) -> list[Path]:
    """The files of ``--out``, whose suffixes say what is written. They can be written."""
    paths: list[Path] = getattr(arguments, "out", None) or []
    for path in paths:
        library = NEEDS.get(path.suffix.lower())
        if library is not None and find_spec(library) is None:
            raise UsageError(f"--out {path} needs {library}: pip install {library}.")
        if path.exists() and not arguments.overwrite:
            raise UsageError(
                f"--out must be files that do not exist; got {path}. --overwrite replaces it."
            )
        if path.is_dir() and path.suffix.lower() != ".zarr":
            raise UsageError(f"--out must be files; got {path}, which is a folder.")
        inside = {file.name for file in path.iterdir()} if path.is_dir() else set()
        if inside and inside.isdisjoint(OF_ZARR):
            raise UsageError(
                f"--out must be a Zarr store where it is replaced; got {path}, a folder of other "
                f"files."
            )
        _check_folder(path.parent, [], f"files that can be written; got {path}")
    if len({path.resolve() for path in paths}) < len(paths):
        raise UsageError(f"--out must be different files; got {', '.join(map(str, paths))}.")
    return paths


def save(paths: Iterable[Path], writers: Writers) -> None:
    """Write all files, or none."""
    path = Path()
    try:
        with ExitStack() as unfinished:
            for path in paths:
                writers[path.suffix.lower()](unfinished.enter_context(whole(path)))
    except OSError as error:
        raise FailureError(
            f"{path} could not be written: {error.strerror or error}. Existing files are "
            f"unchanged. Free some space, or choose another folder with --out."
        ) from error


def delivered(
    paths: Sequence[Path], writers: Writers, text: str = "", answer: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Write the files, print the text and which files were written; the answer with their names."""
    save(paths, writers)
    if text:
        print(text)
    if paths:
        print()
    for path in paths:
        print(f"{path}: {CONTENTS[path.suffix.lower()]}.")
    return {**(answer or {}), "files": [str(path) for path in paths]}


def writers_of(
    tree: xr.Dataset | xr.DataTree, table: pd.DataFrame, answer: dict[str, Any]
) -> dict[str, Callable[[Path], object]]:
    """What writes a result: labelled data, a table, and an answer in JSON."""
    return {
        ".nc": lambda path: path.write_bytes(netcdf_of(tree)),
        ".zarr": partial(_write_zarr, tree),
        ".csv": lambda path: table.to_csv(path, index=False),
        ".parquet": lambda path: table.to_parquet(path, index=False),
        ".feather": table.to_feather,
        ".arrow": table.to_feather,
        ".json": lambda path: path.write_text(as_json(answer) + "\n", encoding="utf-8"),
    }


def _write_zarr(tree: xr.Dataset | xr.DataTree, path: Path) -> None:
    with warnings.catch_warnings():
        # Zarr 3 on text, which it reads back identically.
        warnings.filterwarnings("ignore", "The data type .* does not have a Zarr V3 specification")
        tree.to_zarr(path, mode="w", consolidated=False)


def as_json(answer: dict[str, Any]) -> str:
    """One JSON object; missing and infinite numbers are null, dates are text."""
    return json.dumps(plain(answer), allow_nan=False, ensure_ascii=False, indent=1)
