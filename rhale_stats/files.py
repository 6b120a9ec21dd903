"""Files that are whole or not there: written beside their place, and moved into it at the end."""

from __future__ import annotations

import io
import os
import socket
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import h5netcdf
import xarray as xr
from xarray.backends import H5NetCDFStore

LOCKS = sys.platform != "win32"
if LOCKS:
    import fcntl

# Files of this process that are not yet in their place, and its locks.
_unfinished: set[Path] = set()


class LockedError(RuntimeError):
    """Another process writes the same file."""


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Name of a file to write, which takes the place of ``path`` if all goes well.

    It is in the same folder, ends like ``path`` and has the number of this process in its name.
    Whatever goes wrong, it is removed, and ``path`` is as it was.
    """
    path = Path(os.path.realpath(path))
    unfinished = path.with_name(f"{_part_of(path)}{os.getpid()}{path.suffix}")
    _unfinished.add(unfinished)
    try:
        yield unfinished
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
        _unfinished.discard(unfinished)


def _part_of(path: Path) -> str:
    """First part of the names of unfinished files that are to be ``path``."""
    return f"{path.name}.part-"


def discard_unfinished() -> None:
    """Remove what this process has begun to write, before it ends without further ado."""
    for path in list(_unfinished):
        with suppress(OSError):
            path.unlink(missing_ok=True)


def write_netcdf(dataset: xr.Dataset, path: Path) -> None:
    """Write a Dataset as netCDF, whole or not at all.

    It is made in memory: where a disk is full, HDF5 ends in errors that nobody can catch.
    """
    buffer = io.BytesIO()
    with h5netcdf.File(buffer, "w") as file:
        dataset.dump_to_store(H5NetCDFStore(file))
    with whole(path) as unfinished:
        unfinished.write_bytes(buffer.getbuffer())


def check_folder(folder: Path, names: Iterable[str]) -> None:
    """Make a folder, and raise ``OSError`` if files of these names cannot be written into it."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder):
        pass
    for name in names:
        if (folder / name).is_dir():
            raise IsADirectoryError(f"{folder / name} is a folder, where a file is to be written")


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keep other processes from writing ``path``; raise `LockedError` if one does.

    The lock is a file beside it, which is gone afterwards, and free at once if this process is
    killed. Unfinished files of processes that were killed are removed. Where the file system or
    the operating system has no locks, nothing is locked.
    """
    path = Path(os.path.realpath(path))
    lock = path.with_name(f"{path.name}.lock")
    path.parent.mkdir(parents=True, exist_ok=True)
    with _opened(lock, path) as file:
        _unfinished.add(lock)
        try:
            file.seek(0)
            file.truncate()
            file.write(f"{os.getpid()} on {socket.gethostname()}")
            file.flush()
            for left in path.parent.iterdir():
                if left.name.startswith(_part_of(path)):
                    left.unlink(missing_ok=True)
            yield
        finally:
            # Before the lock is given up, so that nobody holds a lock on a file that is gone.
            with suppress(OSError):
                lock.unlink(missing_ok=True)
            _unfinished.discard(lock)


def _opened(lock: Path, path: Path) -> IO[str]:
    """The file of a lock, opened and locked."""
    while True:
        file = lock.open("a+", encoding="utf-8")
        try:
            _take(file, path)
            if _is(file, lock):
                return file
        except BaseException:
            file.close()
            raise
        # Its last holder removed it in between, so others would lock another file.
        file.close()


def _take(file: IO[str], path: Path) -> None:
    """Lock an open file where that can be done; raise `LockedError` if another process has it."""
    if not LOCKS:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        holder = file.read() or "that has just begun"
        raise LockedError(
            f"{path} must not be in use by another process; process {holder} writes it now. "
            f"Wait until it has ended, or choose another folder."
        ) from None
    except OSError:
        # A file system without locks.
        return


def _is(file: IO[str], path: Path) -> bool:
    """Whether an open file is still the one at a path."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False
