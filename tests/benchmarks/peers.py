"""How fast this machine is beside other libraries that are installed: ``... peers``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.benchmarks import scaling, times
from tests.benchmarks.page import page
from tests.benchmarks.tasks import MODELS, TASKS

WIDTHS = (14, 9, 12, 22, 14, 24, 16, 7)


def peers(
    names: list[str] | None = None,
    *,
    quick: bool = False,
    rows: int | None = None,
    rounds: int | None = None,
    growth: bool = False,
    out: Path | None = None,
) -> list[dict[str, Any]]:
    """Time the same work by this package and by others, in turns; print, and write a page."""
    rounds = rounds or (2 if quick else 7)
    about = times.about(rounds)
    print(f"{about}\n\n{_padded(times.HEAD)}")
    lines: list[dict[str, Any]] = []
    tasks = []
    timed = times.lines_of(names or list(TASKS), quick=quick, rows=rows, rounds=rounds, seed=0)
    for task, found in timed:
        for line in found:
            print(_padded(times.cells(line)), flush=True)
        lines += found
        tasks.append(task)
    print("\nWhat both compute; what this package computes in addition:")
    for task in {task.name: task for task in tasks}.values():
        print(f"{task.name}: {task.work}; {task.ours.adds}.")
    text = times.markdown(lines, tasks, about, MODELS)
    if growth:
        of_time, of_memory = scaling.growth(scaling.QUICK_SIZES if quick else scaling.SIZES)
        exponents = scaling.exponents(of_time, of_memory)
        print(f"\nExponents of cost:\n{exponents.to_string(index=False)}")
        if out is not None:
            picture = out.with_suffix(".png")
            scaling.figure(of_time, of_memory).savefig(picture, dpi=150)
            before = out.read_text(encoding="utf-8") if out.exists() else ""
            text = page(text, lines, of_time, of_memory, picture.name, before)
    if out is not None:
        out.write_text(text, encoding="utf-8")
    return lines


def _padded(words: list[str]) -> str:
    return "".join(f"{word:<{width}}" for word, width in zip(words, WIDTHS, strict=True)).rstrip()
