"""Tests run against mutants in forks of one process, in which all tests are collected.

A fork puts the mutated code into the live function and runs the tests that execute the line. No
file of the checkout is changed. Which tests execute which lines is found once, by a trace of every
test in a fork of its own, and kept in ``.cache/mutation``.
"""

from __future__ import annotations

import gc
import hashlib
import importlib
import os
import pickle
import pkgutil
import resource
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple

import pytest

import rhale_stats
from tests.mutation.mutants import PACKAGE, Mutant, compiled

ROOT = PACKAGE.parent
CACHE = ROOT / ".cache" / "mutation" / "lines.pickle"
KILLED, SURVIVED, TIMED_OUT = "killed", "survived", "timed out"
# Imported before the forks, so that not each of them has to. None of these starts a thread.
LIBRARIES = (
    *("arviz", "dask.array", "narwhals", "scipy.optimize", "scipy.special", "scipy.stats"),
    *("seaborn", "sklearn.ensemble", "sklearn.pipeline", "statsmodels.api", "threadpoolctl"),
)
# Calls of a function in one test of which the lines are noted.
TRACED_CALLS = 30
OUT_OF_TIME = (signal.SIGPROF, signal.SIGALRM)
MEMORY = 6 << 30
# A mutant that takes so much longer than the test took before is in an endless loop.
SECONDS_OF_A_TEST, TIMES_OF_A_TEST = 5.0, 10.0


class Trace(NamedTuple):
    """What one test did: its time on a CPU, and lines of modules of the package by path."""

    seconds: float
    lines: dict[str, frozenset[int]]


class Verdict(NamedTuple):
    """What the tests said of a mutant, and which of them."""

    mutant: Mutant
    outcome: str
    test: str = ""
    n_tests: int = 0
    seconds: float = 0.0


def warm_up() -> None:
    """Import the whole package, and libraries that it imports when they are first used."""
    for module in pkgutil.walk_packages(rhale_stats.__path__, "rhale_stats."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    for name in LIBRARIES:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()


class Broken(NamedTuple):
    """An error outside of the tests."""

    why: str


# --- forks ----------------------------------------------------------------------------------------


def in_forks(
    tasks: Iterable[Any], work: Callable[[Any], Any], jobs: int
) -> Iterator[tuple[Any, Any, int]]:
    """Tasks, what ``work`` returned for each in a fork, and the status with which the fork ended.

    At most ``jobs`` forks run at a time. A fork has a group of processes of its own, which ends
    with it.
    """
    running: dict[int, tuple[Any, str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        waiting = iter(tasks)
        while True:
            while len(running) < jobs:
                task = next(waiting, None)
                if task is None:
                    break
                path = f"{folder}/{time.monotonic_ns()}"
                pid = os.fork()
                if not pid:
                    _child(work, task, path)
                running[pid] = task, path
            if not running:
                return
            pid, status = os.wait()
            if pid not in running:
                continue
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
            task, path = running.pop(pid)
            try:
                result = pickle.loads(Path(path).read_bytes())
            except (OSError, EOFError, pickle.UnpicklingError):
                result = None
            if isinstance(result, Broken):
                raise RuntimeError(f"{task}: {result.why}")
            yield task, result, status


def _child(work: Callable[[Any], Any], task: Any, path: str) -> None:
    status = 1
    try:
        os.setpgid(0, 0)
        null = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(null, stream)
        for number in OUT_OF_TIME:
            signal.signal(number, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        Path(path).write_bytes(pickle.dumps(work(task)))
        status = 0
    except BaseException:
        Path(path).write_bytes(pickle.dumps(Broken(traceback.format_exc())))
    finally:
        os._exit(status)


class _Failures:
    """Of the tests run in this process: what the first that failed says in its last line."""

    first = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.first:
            self.first = report.longreprtext.strip().splitlines()[-1]


def _end_after(seconds: float) -> None:
    """End this process after so many seconds of a CPU, or after ten times as long asleep."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, 10 * seconds)


def failure(item: pytest.Item, following: pytest.Item | None) -> str:
    """What a test says if it fails."""
    failures = _Failures()
    item.config.pluginmanager.register(failures)
    item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
    item.config.pluginmanager.unregister(failures)
    return failures.first


# --- which test executes which line ---------------------------------------------------------------


def traced(item: pytest.Item) -> Trace | str:
    """Run a test, and note the lines of the package that it executes; why it fails, if it does."""
    lines: dict[str, set[int]] = defaultdict(set)
    calls: dict[Any, int] = defaultdict(int)
    inside = f"{PACKAGE}{os.sep}"

    def call(frame: Any, event: str, _: Any) -> Any:
        code = frame.f_code
        if not code.co_filename.startswith(inside):
            return None
        calls[code] += 1
        if calls[code] > TRACED_CALLS:
            return None
        seen = lines[code.co_filename]

        def line(frame: Any, event: str, _: Any) -> Any:
            if event == "line":
                seen.add(frame.f_lineno)
            return line

        return line

    _end_after(300)
    start = time.process_time()
    threading.settrace(call)
    sys.settrace(call)
    failed = failure(item, None)
    sys.settrace(None)
    took = time.process_time() - start
    paths = {Path(path).relative_to(PACKAGE).as_posix(): some for path, some in lines.items()}
    return failed or Trace(took, {path: frozenset(some) for path, some in paths.items()})


def _checksums() -> dict[str, str]:
    return {
        path.relative_to(PACKAGE).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in PACKAGE.rglob("*.py")
    }


def traces_of(items: list[pytest.Item], jobs: int, say: Callable[[str], None]) -> dict[str, Trace]:
    """The trace of every test that passes, by its name; those of unchanged modules are kept."""
    now = _checksums()
    kept: dict[str, Trace] = {}
    if CACHE.is_file():
        before, kept = pickle.loads(CACHE.read_bytes())
        changed = {path for path in before | now if before.get(path) != now.get(path)}
        kept = {name: trace for name, trace in kept.items() if not changed & set(trace.lines)}
    new = [item for item in items if item.nodeid not in kept]
    start = time.perf_counter()
    for number, (item, trace, status) in enumerate(in_forks(new, traced, jobs), 1):
        if isinstance(trace, Trace):
            kept[item.nodeid] = trace
        else:
            say(f"left out, because it fails without a mutant: {item.nodeid}: {trace or status}")
        if number % 50 == 0 or number == len(new):
            CACHE.parent.mkdir(parents=True, exist_ok=True)
            part = CACHE.with_suffix(f".{os.getpid()}")
            part.write_bytes(pickle.dumps((now, kept)))
            part.replace(CACHE)
    if new:
        say(f"{len(new)} tests traced in {time.perf_counter() - start:.0f} s")
    return {item.nodeid: kept[item.nodeid] for item in items if item.nodeid in kept}


# --- mutants --------------------------------------------------------------------------------------


def live_functions() -> dict[tuple[str, str], list[FunctionType]]:
    """The functions of the package by path and name: those below decorators, too."""
    gc.unfreeze()
    found = defaultdict(list)
    inside = f"{PACKAGE}{os.sep}"
    for thing in gc.get_objects():
        if type(thing) is FunctionType and thing.__code__.co_filename.startswith(inside):
            path = Path(thing.__code__.co_filename).relative_to(PACKAGE).as_posix()
            found[path, thing.__code__.co_qualname].append(thing)
    gc.freeze()
    return found


def _distance(item: pytest.Item, mutant: Mutant) -> int:
    """0 for tests of the module, 1 for those of its package, 2 for others."""
    path = item.path.relative_to(ROOT / "tests")
    module = Path(mutant.path)
    if path.parent != module.parent:
        return 2
    return int(path.name != f"test_{module.name}")


class Trial:
    """Mutants tried against the tests that execute them, nearest and fastest first."""

    def __init__(self, items: list[pytest.Item], traces: dict[str, Trace], patience: float) -> None:
        self.items = [item for item in items if item.nodeid in traces]
        self.traces, self.patience = traces, patience
        self.functions = live_functions()

    def _tests(self, mutant: Mutant) -> list[pytest.Item]:
        those = [
            item
            for item in self.items
            if not self.traces[item.nodeid]
            .lines.get(mutant.path, frozenset())
            .isdisjoint(mutant.lines)
        ]
        order = {
            item: (_distance(item, mutant), self.traces[item.nodeid].seconds) for item in those
        }
        return sorted(those, key=order.__getitem__)

    def run(self, mutant: Mutant) -> tuple[str, int]:
        """In a fork: the name of the test that fails, if any, and the number of tests run."""
        code = compiled(mutant)
        functions = self.functions[mutant.path, mutant.function]
        assert functions, f"no live function {mutant.function} of {mutant.path}"
        for function in functions:
            function.__code__ = code
        tests = self._tests(mutant)
        start = time.process_time()
        for number, item in enumerate(tests, 1):
            following = tests[number] if number < len(tests) else None
            usual = self.traces[item.nodeid].seconds
            _end_after(SECONDS_OF_A_TEST + TIMES_OF_A_TEST * usual)
            if failure(item, following):
                return item.nodeid, number
            if time.process_time() - start > self.patience:
                return "", number
        return "", len(tests)

    def verdicts(self, mutants: list[Mutant], jobs: int, seconds: float) -> Iterator[Verdict]:
        """The verdict on each mutant; after so many seconds no further one is started."""
        start = time.perf_counter()
        began: dict[Mutant, float] = {}

        def in_time() -> Iterator[Mutant]:
            for mutant in mutants:
                if time.perf_counter() - start > seconds:
                    return
                began[mutant] = time.perf_counter()
                yield mutant

        for mutant, result, status in in_forks(in_time(), self.run, jobs):
            took = time.perf_counter() - began[mutant]
            if result is not None:
                test, n_tests = result
                yield Verdict(mutant, KILLED if test else SURVIVED, test, n_tests, took)
            elif os.WIFSIGNALED(status) and os.WTERMSIG(status) in OUT_OF_TIME:
                yield Verdict(mutant, TIMED_OUT, seconds=took)
            else:  # the process did not survive it
                yield Verdict(mutant, KILLED, f"status {status}", seconds=took)
