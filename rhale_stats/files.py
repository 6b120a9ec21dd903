"""Files are written completely or not at all: under another name first, and then renamed."""

from __future__ import annotations

import io
import os
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import xarray as xr

LOCKS = sys.platform != "win32"
if LOCKS:
    import fcntl
# Unfinished files of this process, and its locks.
_unfinished: set[Path] = set()
# A file of work in progress is written this often, in seconds, and less often where writing takes
# long: at most one part in so many of the time is spent on it.
SAVE_SECONDS = 10.0
SAVE_SHARE = 20


class LockedError(RuntimeError):
    """Another process writes the same file."""


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Name of a temporary file or folder, which replaces ``path`` at the end of the block.

    It is in the same folder, has the suffix of ``path`` and the number of this process in its
    name. If the block raises, it is removed and ``path`` is unchanged.
    """
    path = Path(os.path.realpath(path))
    unfinished = path.with_name(f"{_part_of(path)}{os.getpid()}{path.suffix}")
    _unfinished.add(unfinished)
    try:
        yield unfinished
        if unfinished.is_dir() and path.is_dir():
            # A folder that is not empty cannot be replaced.
            shutil.rmtree(path)
        os.replace(unfinished, path)
    finally:
        _remove(unfinished)
        _unfinished.discard(unfinished)


def _remove(path: Path) -> None:
    """Remove a file, or a folder with all that is in it."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _part_of(path: Path) -> str:
    """Common beginning of the names of unfinished versions of ``path``."""
    return f"{path.name}.part-"


def discard_unfinished() -> None:
    """Remove the unfinished files and the locks of this process, which is about to end."""
    for path in list(_unfinished):
        with suppress(OSError):
            _remove(path)


def write_netcdf(dataset: xr.Dataset, path: Path) -> None:
    """Write a Dataset as netCDF, whole or not at all.

    The bytes are made in memory: on a full disk HDF5 raises errors that cannot be caught.
    """
    content = netcdf_of(dataset)
    with whole(path) as unfinished:
        unfinished.write_bytes(content)


class Checkpoint:
    """The netCDF file of work in progress, or none: always whole, and not written too often."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._due = 0.0

    @property
    def is_due(self) -> bool:
        """Whether it is time to save again."""
        return self.path is not None and time.monotonic() >= self._due

    def save(self, results: xr.Dataset) -> None:
        """Write the file, if there is one."""
        if self.path is None:
            return
        start = time.monotonic()
        write_netcdf(results, self.path)
        now = time.monotonic()
        self._due = now + max(SAVE_SECONDS, SAVE_SHARE * (now - start))


def netcdf_of(tree: xr.Dataset | xr.DataTree) -> memoryview:
    """The bytes of a netCDF file with the groups of a tree, or with one Dataset."""
    import h5netcdf  # reports are written without it
    from xarray.backends import H5NetCDFStore

    groups = tree.subtree if isinstance(tree, xr.DataTree) else [xr.DataTree(tree)]
    buffer = io.BytesIO()
    with h5netcdf.File(buffer, "w") as file:
        for node in groups:
            group = file if node.path == "/" else file.create_group(node.path)
            node.to_dataset(inherit=False).dump_to_store(H5NetCDFStore(group))
    return buffer.getbuffer()


def check_folder(folder: Path, names: Iterable[str]) -> None:
    """Make a folder, and raise ``OSError`` if files of these names cannot be written into it."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder):
        pass
    for name in names:
        if (folder / name).is_dir():
            raise IsADirectoryError(f"{folder / name} is a folder, not a file")


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Prevent other processes from writing ``path``; raise `LockedError` if one does already.

    The lock is a file beside ``path``, removed at the end of the block. If this process is killed,
    the operating system releases the lock. Unfinished files of killed processes are removed. If the
    file system or the operating system has no locks, nothing is locked.
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
            # Removed while it is still locked; `_opened` notices the removal.
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
        # The previous holder has removed it since: a lock on it would exclude nobody.
        file.close()


def _take(file: IO[str], path: Path) -> None:
    """Lock an open file if possible; raise `LockedError` if another process has the lock."""
    if not LOCKS:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        holder = file.read() or "that has just begun"
        raise LockedError(
            f"{path} must not be in use by another process; process {holder} is writing it. "
            f"Wait until it has ended, or choose another folder."
        ) from None
    except OSError:
        # The file system has no locks.
        return


def _is(file: IO[str], path: Path) -> bool:
    """Whether an open file is still the one at a path."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False
