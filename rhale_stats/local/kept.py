"""Local effects in chunks that are computed once, although estimates read them several times."""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rhale_stats.arguments.words import warn
from rhale_stats.chunks import all_see, array_of, client_of, listed, of_all
from rhale_stats.schema.checks import is_chunked

# Begins the name of the part of a dask graph that holds the model.
WAITING = "model_of_local_effects-"
# So many bytes are kept in memory, more on the disk.
MAX_IN_MEMORY = 1 << 26
# Share of the free space of the disk that may be used.
MAX_OF_DISK = 0.8
KEPT = ("x", "local_effect")
WHAT = "chunks of local effects"


@contextmanager
def cached(local: xr.Dataset) -> Iterator[xr.Dataset]:
    """The same local effects, computed once for all that the block asks of them.

    They are kept in memory if they are few, else in a temporary folder, which is removed at the
    end of the block, or by the workers of a cluster that do not all see that folder. Local effects
    without a model behind them, such as those of a file, stay as they are.
    """
    if not _wait(local):
        yield local
        return
    size = sum(local.variables[name].nbytes for name in KEPT)
    client = client_of()
    if size <= MAX_IN_MEMORY:
        yield _with_blocks(local, of_all(_chunks(local), _held, listed, WHAT))
        return
    with tempfile.TemporaryDirectory(prefix="rhale-stats-", dir=_place()) as name:
        folder = Path(name)
        if client is not None and not all_see(client, folder):
            # A cluster writes to the disks of its workers what their memory does not hold.
            stored = local.assign({name: local[name].persist() for name in KEPT})
        elif size > (free := shutil.disk_usage(folder).free) * MAX_OF_DISK:
            warn(
                f"The local effects take {size / 2**30:.3g} GiB, and {folder.parent} has "
                f"{free / 2**30:.3g} GiB free. They are therefore not kept, and the model is "
                f"called again in every pass over the rows. Name a folder with more space: "
                f"dask.config.set(temporary_directory=...)."
            )
            stored = local
        else:
            chunks = _chunks(local)
            numbered = [(*chunk, number) for number, chunk in enumerate(chunks)]
            of_all(numbered, _Writer(folder), listed, WHAT)
            stored = _with_blocks(local, _written(folder, len(chunks)))
        yield stored


def _wait(local: object) -> bool:
    """Whether these are local effects that a model computes when they are needed."""
    if not isinstance(local, xr.Dataset) or any(name not in local for name in KEPT):
        return False
    data = local.variables["local_effect"]._data if is_chunked(local) else None
    layers = getattr(getattr(data, "dask", None), "layers", {})
    return any(str(name).startswith(WAITING) for name in layers)


def _place() -> str | None:
    """The folder that a user has named for large temporary files, else one that is on a disk."""
    from dask import config

    named: str | None = config.get("temporary-directory", None)
    if named is not None or "TMPDIR" in os.environ:
        return named
    # /tmp may be in memory.
    return "/var/tmp" if os.access("/var/tmp", os.W_OK) else None


def _lengths(local: xr.Dataset) -> tuple[int, ...]:
    name = "local_effect" if local.variables["local_effect"].chunks else "x"
    return tuple(local[name].chunksizes["obs"])


def _chunks(local: xr.Dataset) -> list[tuple[Any, Any]]:
    """Blocks of x and of the local effects, rows first, of the same rows."""

    def blocks(name: str) -> list[Any]:
        whole = local.variables[name].transpose("obs", ...)
        data = whole.chunk({"obs": _lengths(local), **dict.fromkeys(whole.dims[1:], -1)}).data
        return list(data.to_delayed(optimize_graph=False).ravel())

    return list(zip(blocks("x"), blocks("local_effect"), strict=True))


def _with_blocks(local: xr.Dataset, blocks: Sequence[tuple[Any, Any]]) -> xr.Dataset:
    """The same Dataset with other blocks of x and local effects: arrays, or tasks of dask."""
    variables: dict[str, xr.Variable] = {}
    for name, of_name in zip(KEPT, zip(*blocks, strict=True), strict=True):
        whole = local.variables[name].transpose("obs", ...)
        array = array_of(f"kept-{uuid.uuid4().hex}", of_name, _lengths(local), whole.shape[1:])
        stored = xr.Variable(whole.dims, array, whole.attrs)
        variables[name] = stored.transpose(*local.variables[name].dims)
    return local.assign(variables)


# --- in a worker ----------------------------------------------------------------------------------


def _held(x: NDArray[Any], g: NDArray[Any]) -> list[tuple[NDArray[Any], NDArray[Any]]]:
    return [(np.asfortranarray(x), np.asfortranarray(g))]


def _name(folder: Path, kind: str, number: int) -> Path:
    return folder / f"{kind}-{number}.npy"


@dataclass(frozen=True)
class _Writer:
    """Writes a chunk to two files, of x and of the local effects, column by column."""

    folder: Path

    def __call__(self, x: NDArray[Any], g: NDArray[Any], number: int) -> list[int]:
        for kind, values in zip(KEPT, (x, g), strict=True):
            # A worker that dies leaves no half of a file.
            whole = _name(self.folder, kind, number)
            part = whole.with_name(f"{os.getpid()}-{whole.name}")
            np.save(part, np.asfortranarray(values))
            part.replace(whole)
        return [number]


def _written(folder: Path, n_chunks: int) -> list[tuple[Any, Any]]:
    names = ([_name(folder, kind, number) for kind in KEPT] for number in range(n_chunks))
    return [((np.load, x), (np.load, g)) for x, g in names]
