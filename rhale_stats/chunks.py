"""Functions of all chunks of a table, by dask: in threads, in processes, or on a cluster."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")
# So many results of chunks are merged by one task.
MERGED_AT_ONCE = 16


def of_all(
    chunks: Sequence[tuple[Any, ...]],
    function: Callable[..., Any],
    merge: Callable[[list[Any]], Any],
    what: str = "chunks of rows",
    *,
    delay: float = 2.0,
    most: int = MERGED_AT_ONCE,
) -> Any:
    """The merged results of a function of every chunk, whose arguments may be delayed.

    Results are merged in the order of the chunks, whoever computes them. Those that are None, as of
    a chunk without rows, are left out; None if all are. A progress bar appears after ``delay``
    seconds. ``most`` results are merged at a time: few where they are large.
    """
    from dask.delayed import delayed

    # One node of the graph each: what a function holds is sent once, and not with every chunk.
    each, together = delayed(_call), delayed(_merge)
    function, merge = (delayed(task, traverse=False) for task in (function, merge))
    results = tasks = [each(function, *chunk) for chunk in chunks]
    while True:
        results = [
            together(merge, results[first : first + most]) for first in range(0, len(results), most)
        ]
        if len(results) == 1:
            return _computed(results[0], tasks, what, delay)


def listed(chunks: Sequence[list[T]]) -> list[T]:
    """A merge of lists: one list of what all chunks have, in their order."""
    return [item for chunk in chunks for item in chunk]


def array_of(
    name: str,
    blocks: Sequence[Any],
    lengths: Sequence[int],
    shape: tuple[int, ...],
    axis: int = 0,
    delayed: Sequence[Any] = (),
) -> Any:
    """A dask array of float64 whose blocks these are, one after the other on one axis.

    A block is an array, or a task of dask: a tuple of a function and its arguments, which may be
    the keys of ``delayed`` objects. Every block is one node of the graph, because a scheduler takes
    time for each: `dask.array.concatenate` of arrays `from_delayed` has three. ``shape`` is that of
    the array without the axis.
    """
    from dask import array as dask_array
    from dask.highlevelgraph import HighLevelGraph

    graph: Any = HighLevelGraph
    zeros = (0,) * len(shape)
    nodes = {
        (name, *zeros[:axis], number, *zeros[axis:]): block for number, block in enumerate(blocks)
    }
    whole = [(n,) for n in shape]
    chunks = (*whole[:axis], tuple(lengths), *whole[axis:])
    of_blocks = graph.from_collections(name, nodes, dependencies=delayed)
    da: Any = dask_array
    return da.Array(of_blocks, name, chunks=chunks, dtype=np.float64)


def client_of() -> Any:
    """The client of a cluster, where dask computes on one; else None."""
    from dask.base import get_scheduler

    find: Any = get_scheduler
    return getattr(find(), "__self__", None)


def all_see(client: Any, folder: Path) -> bool:
    """Whether all workers of a cluster see a folder of this machine, as those of one machine do."""
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        seen = client.run(os.path.exists, file.name)
    return bool(seen) and all(seen.values())


def _computed(result: Any, tasks: Sequence[Any], what: str, delay: float) -> Any:
    """The value of a delayed result, with a progress bar that counts these of its tasks.

    It is computed where dask computes: in threads, or by the client of a cluster if there is one.
    """
    from dask.callbacks import Callback
    from tqdm import tqdm

    keys = {task.key for task in tasks}
    client = client_of()
    with tqdm(total=len(keys), desc=what, unit="chunk", disable=None, delay=delay) as bar:
        if client is None:

            def count(key: Any, *_: Any) -> None:
                bar.update(key in keys)

            callback: Any = Callback
            with callback(posttask=count):
                return result.compute()
        future, *others = client.compute([result, *tasks])
        for other in others:
            other.add_done_callback(lambda _: bar.update())
        return future.result()


def _call(function: Callable[..., Any], *chunk: Any) -> Any:
    return function(*chunk)


def _merge(merge: Callable[[list[Any]], Any], results: list[Any]) -> Any:
    present = [result for result in results if result is not None]
    return merge(present) if present else None
