"""Times of two sides that take turns, ratios with their spread, and the machine."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import platform
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from rhale_stats.parallel import cpus, one_blas_thread
from tests.benchmarks.tasks import TASKS, Side, Task

# A measurement repeats short work until it lasts so many seconds.
LEAST_SECONDS = 0.02


@contextlib.contextmanager
def one_processor() -> Iterator[None]:
    """All threads of this process on one processor, so that no side has more than the other."""
    set_affinity = getattr(os, "sched_setaffinity", None)
    with one_blas_thread:
        if set_affinity is None:
            yield
            return
        before = os.sched_getaffinity(0)
        set_affinity(0, {min(before)})
        try:
            yield
        finally:
            set_affinity(0, before)


@contextlib.contextmanager
def silent() -> Iterator[None]:
    """Nothing is shown of what libraries print, log or warn of."""
    before = logging.root.manager.disable
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stderr(io.StringIO()),
        contextlib.redirect_stdout(io.StringIO()),
    ):
        warnings.simplefilter("ignore")
        logging.disable()
        try:
            yield
        finally:
            logging.disable(before)


def seconds(run: Callable[[], Any], times: int = 1) -> float:
    """CPU time of one run, all threads of the process together: the mean of several runs."""
    start = time.process_time()
    for _ in range(times):
        run()
    return (time.process_time() - start) / times


def measured(task: Task, rows: int, rounds: int) -> list[dict[str, Any]]:
    """A line for each peer: times, and ratios of the peer to this package round by round."""
    sides: dict[str, Side] = {"rhale_stats": task.ours}
    failed: dict[str, str] = {}
    values: dict[str, Any] = {}
    times: dict[str, int] = {}
    with silent(), one_processor():
        for name, made in {"rhale_stats": lambda: task.ours, **task.peers}.items():
            try:
                side = made()
                # The first run, in which libraries compile and import, is not timed.
                values[name] = side.numbers(side.run())
                once = seconds(side.run)
            except ImportError as error:
                failed[name] = f"not installed ({error.name})"
            except Exception as error:
                if name == "rhale_stats":
                    raise
                failed[name] = f"failed: {type(error).__name__}"
            else:
                sides[name] = side
                times[name] = max(1, int(LEAST_SECONDS / max(once, 1e-6)))
        names = [name for name in sides if name not in failed]
        taken: dict[str, list[float]] = {name: [] for name in names}
        for number in range(rounds):
            for name in names if number % 2 == 0 else names[::-1]:
                taken[name].append(seconds(sides[name].run, times[name]))
    return [
        _line(task, rows, peer, taken, values, failed, sides[peer].adds if peer in sides else "")
        for peer in task.peers
    ]


def _line(
    task: Task,
    rows: int,
    peer: str,
    taken: dict[str, list[float]],
    values: dict[str, Any],
    failed: dict[str, str],
    adds: str = "",
) -> dict[str, Any]:
    line = {
        "task": task.name,
        "rows": rows,
        "seconds": float(np.median(taken["rhale_stats"])),
        "peer": peer,
        "peer_version": version_of(peer),
    }
    if peer in failed:
        return line | {"why": failed[peer]}
    ratios = np.array(taken[peer]) / np.array(taken["rhale_stats"])
    low, middle, high = float(ratios.min()), float(np.median(ratios)), float(ratios.max())
    faster = "rhale_stats" if low > 1 else peer if high < 1 else "unclear"
    return line | {
        "peer_adds": adds,
        "peer_seconds": float(np.median(taken[peer])),
        "ratio_min": low,
        "ratio": middle,
        "ratio_max": high,
        "faster": faster,
        "apart": apart(values["rhale_stats"], values[peer]),
    }


def apart(ours: Any, theirs: Any) -> float:
    """Root mean square of the difference over that of our numbers."""
    if np.shape(ours) != np.shape(theirs):
        return float("nan")
    scale = float(np.sqrt(np.mean(np.square(ours))))
    return float(np.sqrt(np.mean(np.square(np.subtract(ours, theirs)))) / scale)


def lines_of(
    names: Sequence[str], *, quick: bool, rows: int | None, rounds: int, seed: int
) -> Iterator[tuple[Task, list[dict[str, Any]]]]:
    """Task after task, with few rows and with many."""
    for name in names:
        make, sizes = TASKS[name]
        for size in (rows,) if rows else sizes[:1] if quick else sizes:
            with silent():
                task = make(size, seed)
            yield task, measured(task, size, rounds)


def version_of(name: str) -> str | None:
    """The version of an installed library, or None."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def machine() -> dict[str, Any]:
    """Processor, processors, and the versions that times depend on."""
    model = platform.processor() or platform.machine()
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    libraries = {name: version_of(name) for name in ("rhale-stats", "numpy", "pandas", "xarray")}
    return {"cpu": model, "cores": cpus(), "python": platform.python_version(), **libraries}


def cells(line: dict[str, Any]) -> list[str]:
    """A line of the table as text."""
    peer = f"{line['peer']} {line['peer_version'] or ''}".strip()
    first = [line["task"], f"{line['rows']:,}", _ms(line["seconds"]), peer]
    if "why" in line:
        return [*first, line["why"], "", "", ""]
    spread = f"{line['ratio']:.2g} ({line['ratio_min']:.2g} to {line['ratio_max']:.2g})"
    return [*first, _ms(line["peer_seconds"]), spread, line["faster"], f"{line['apart']:.0e}"]


def _ms(value: float) -> str:
    return f"{1e3 * value:,.1f} ms"


HEAD = ["task", "rows", "rhale_stats", "peer", "its time", "ratio (least to most)", "faster",
        "apart"]  # fmt: skip


def markdown(
    lines: Sequence[dict[str, Any]],
    tasks: Sequence[Task],
    about: str,
    models: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Tables for a page: times, and what each side computes; with ``models`` the same is done."""
    from studies.validity_table import markdown as table

    timed = [line for line in lines if "why" not in line]
    shown = pd.DataFrame([cells(line | {"peer_version": ""}) for line in timed], columns=HEAD)
    shown = shown.drop(columns=["its time", "faster"])  # the ratio says both
    versions = dict.fromkeys(f"{line['peer']} {line['peer_version']}" for line in timed)
    missing = dict.fromkeys(f"{line['peer']} ({line['why']})" for line in lines if "why" in line)
    unique = [
        task
        for name, task in {task.name: task for task in tasks}.items()
        if name.rpartition("-")[2] not in models
    ]
    adds: dict[str, list[str]] = {}
    for line in lines:
        if line.get("peer_adds"):
            said = f"{line['peer']}: {line['peer_adds']}"
            adds.setdefault(line["task"], []).append(said)
    works = pd.DataFrame(
        [
            [
                task.name,
                task.work,
                task.ours.adds,
                "; ".join(dict.fromkeys(adds.get(task.name, []))),
            ]
            for task in unique
        ],
        columns=["task", "what both compute", "rhale_stats in addition", "peer in addition"],
    )
    notes = [f"Peers: {', '.join(versions)}. Where all of the ratio is above 1, we are faster."]
    notes += [f"Not timed: {', '.join(missing)}."] if missing else []
    if models:
        of = "; ".join(f"{name}: {words}" for name, words in models.items())
        notes.append(f"Tasks that end with the name of a model are the same of it, {of}.")
    return "\n\n".join([about, table(shown), *notes, table(works)]) + "\n"


def about(rounds: int) -> str:
    """The machine and how times were taken, in words."""
    here = machine()
    versions = ", ".join(f"{name} {here[name]}" for name in ("python", "numpy", "pandas", "xarray"))
    return (
        f"{here['cpu']}, {here['cores']} processors, of which this process uses one. {versions}. "
        f"CPU time of all threads together: the median of {rounds} rounds, in which the libraries "
        "take turns. The ratio is the time of the peer over that of this package in the same "
        "round: the median, and the least and the largest. apart is the difference of the numbers "
        "that both compute, relative to ours."
    )
