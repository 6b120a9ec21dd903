"""Work on several threads, and what it changes of the whole process meanwhile."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from threading import Lock, RLock

import numpy as np
from joblib import cpu_count
from threadpoolctl import threadpool_limits


def cpus() -> int:
    """CPUs that this process may use, by its affinity and by the limits of its container."""
    # Imported late: it takes a tenth of a second.

    return int(cpu_count())


class _OneBlasThread:
    """BLAS on one thread while anyone is inside: the first limits it, the last restores it."""

    def __init__(self) -> None:
        self._lock, self._inside, self._limits = Lock(), 0, ExitStack()

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._limits.enter_context(threadpool_limits(1))
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
    """Without these warnings of other libraries; one thread at a time, so keep it short."""
    with _filters, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message, category)
        yield


@contextmanager
def numpy_state_kept() -> Iterator[None]:
    """For libraries that draw from NumPy's global generator; one thread at a time."""
    with _generator:
        state = np.random.get_state()  # noqa: NPY002
        try:
            yield
        finally:
            np.random.set_state(state)  # noqa: NPY002
