"""Work on several threads or processes, and the settings of the process that this changes.

All parallel work uses `in_threads` or `in_processes`.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from threading import Lock, RLock
from typing import Any, NamedTuple, TypeAlias, TypeVar, cast

import numpy as np

S = TypeVar("S")
T = TypeVar("T")
# A warning from another process: text, category, file, line.
Warned: TypeAlias = tuple[str, type[Warning], str, int]

# Environment variables for numbers of threads, which libraries read when a process starts.
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
# Items are sent to processes in portions. Each process gets at least so many portions, so that the
# progress bar moves.
CHUNKS_PER_PROCESS = 8
# Windows has one way to end a process.
_KILL = getattr(signal, "SIGKILL", signal.SIGTERM)
# Seconds after which a worker process sees that its parent is gone.
PARENT_SECONDS = 0.5
# At most so many threads, as joblib counts them: ``n_jobs`` of a public function without processes.
THREADS: ContextVar[int | None] = ContextVar("threads", default=None)


def cpus() -> int:
    """CPUs that this process may use, by its affinity and by the limits of its container."""
    # Imported late, because the import takes a tenth of a second.
    from joblib import cpu_count

    most = THREADS.get()
    return int(cpu_count()) if most is None else n_processes(most, int(cpu_count()))


def n_processes(n_jobs: int | None, most: int) -> int:
    """Processes that ``n_jobs`` asks for, by the rules of joblib, and at most ``most``."""
    from joblib import effective_n_jobs

    return min(int(effective_n_jobs(n_jobs)), most)


def _nothing(_: Any) -> None:
    """The default action for a result: none."""


def in_threads(
    function: Callable[[S], T],
    items: Sequence[S],
    threads: int,
    done: Callable[[T], object] = _nothing,
) -> list[T]:
    """Results of ``function`` for all items, in order; ``done`` gets each in the calling thread.

    After an error, or Ctrl-C, no further item is begun.
    """
    if threads == 1:
        return [_told(function(item), done) for item in items]
    pool = ThreadPoolExecutor(threads)
    try:
        return [_told(result, done) for result in pool.map(function, items)]
    finally:
        pool.shutdown(cancel_futures=True)


def _told(result: T, done: Callable[[T], object]) -> T:
    done(result)
    return result


def in_processes(
    function: Callable[[S], T],
    items: Sequence[S],
    processes: int,
    done: Callable[[T], object] = _nothing,
) -> list[T]:
    """Results of ``function`` for all items, in order; ``done`` gets each in this process.

    The function may be a lambda or a closure. It is sent once to each process, with all that it
    refers to. With one process, nothing is sent. Warnings are filtered as in this process and
    shown here, each once. After an error, or Ctrl-C, the processes are killed.
    """
    if processes == 1:
        return [_told(function(item), done) for item in items]
    # The executor behind joblib.Parallel, which itself would send the function with every item.
    from joblib.externals.loky import ProcessPoolExecutor
    from joblib.externals.loky.backend import resource_tracker

    share = max(1, cpus() // processes)
    environment = dict.fromkeys((*THREAD_VARIABLES, "LOKY_MAX_CPU_COUNT"), str(share))
    task = _Task(function, list(warnings.filters), os.getpid())
    pool = ProcessPoolExecutor(processes, initializer=_start, initargs=(task,), env=environment)
    size = max(1, len(items) // (CHUNKS_PER_PROCESS * processes))
    registries: dict[str, dict[Any, Any]] = {}
    out = []
    try:
        # The first process would start it, and starting it lets signals through again.
        resource_tracker.ensure_running()
        with interruptions_wait():
            portions = [
                pool.submit(_run, items[first : first + size])
                for first in range(0, len(items), size)
            ]
        for portion in portions:
            results, warned = portion.result()
            for warning in warned:
                _warn_again(warning, registries)
            out += [_told(result, done) for result in results]
    except BaseException:
        # Without the executor's kill_workers, which fails in its own thread if work is waiting.
        for worker in tuple(pool._processes):
            with suppress(ProcessLookupError):
                os.kill(worker, _KILL)
        pool.shutdown()
        raise
    pool.shutdown()
    return out


# --- in a worker process --------------------------------------------------------------------------


class _Task(NamedTuple):
    """The data that a worker process gets when it starts."""

    function: Callable[[Any], Any]
    filters: list[Any]
    parent: int


_TASK: _Task | None = None


def _start(task: _Task) -> None:
    global _TASK
    _TASK = task
    # Ctrl-C reaches all processes of a terminal; the parent ends its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    warnings.resetwarnings()
    cast("list[Any]", warnings.filters).extend(task.filters)
    threading.Thread(target=_end_with_parent, args=(task.parent,), daemon=True).start()


def _end_with_parent(parent: int) -> None:
    """End this process after its parent, also if the parent was killed."""
    while os.getppid() == parent:
        time.sleep(PARENT_SECONDS)
    os._exit(1)


def _run(items: Sequence[Any]) -> tuple[list[Any], list[Warned]]:
    """Results of a portion, and the warnings that its items caused."""
    assert _TASK is not None, "a worker starts with its task"
    with warnings.catch_warnings(record=True) as caught:
        results = [_TASK.function(item) for item in items]
    warned = [
        (str(warning.message), warning.category, warning.filename, warning.lineno)
        for warning in caught
    ]
    return results, list(dict.fromkeys(warned))


def _warn_again(warned: Warned, registries: dict[str, dict[Any, Any]]) -> None:
    """Issue a warning of another process in this one."""
    text, category, filename, line = warned
    try:
        warning = category(text)
    except TypeError:  # a category that needs other arguments
        warning = UserWarning(f"{category.__name__}: {text}")
    registry = registries.setdefault(filename, {})
    warnings.warn_explicit(warning, type(warning), filename, line, registry=registry)


# --- the whole process ----------------------------------------------------------------------------


@contextmanager
def interruptions_wait() -> Iterator[None]:
    """Hold Ctrl-C back until the end of the block, and for ever in processes started inside.

    Ctrl-C reaches all processes of a terminal. Workers must ignore it: their parent ends them.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _OneBlasThread:
    """BLAS uses one thread while any caller is inside: the first sets this, the last resets it."""

    def __init__(self) -> None:
        self._lock, self._inside, self._limits = Lock(), 0, ExitStack()
        self._controller: Any = None
        self._n_modules = 0

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                from threadpoolctl import ThreadpoolController

                # To look for the libraries takes milliseconds: again only where some were loaded.
                if self._n_modules != len(sys.modules):
                    self._controller = ThreadpoolController()
                    self._n_modules = len(sys.modules)
                self._limits.enter_context(self._controller.limit(limits=1))
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._limits.close()


one_blas_thread = _OneBlasThread()
_filters, _generator = RLock(), RLock()


@contextmanager
def ignoring(category: type[Warning], message: str = "") -> Iterator[None]:
    """Suppress these warnings of other libraries. One thread at a time: keep the block short."""
    with _filters, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message, category)
        yield


@contextmanager
def numpy_state_kept() -> Iterator[None]:
    """Keep the state of NumPy's global generator, which libraries use. One thread at a time."""
    with _generator:
        state = np.random.get_state()  # noqa: NPY002
        try:
            yield
        finally:
            np.random.set_state(state)  # noqa: NPY002
