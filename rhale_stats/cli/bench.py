"""The command `bench`: how fast this machine is, beside other libraries that are installed."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from rhale_stats.cli.answers import as_json
from rhale_stats.cli.interruption import UsageError
from rhale_stats.cli.outputs import files_of, said_files, save
from rhale_stats.studies import bench_scaling, bench_tasks, bench_times
from rhale_stats.studies.bench_page import page

SUFFIXES = (".md", ".csv", ".json")
WIDTHS = (10, 9, 12, 22, 14, 24, 16, 7)


def bench_job(arguments: argparse.Namespace) -> dict[str, Any]:
    """Time the same work by this package and by others."""
    files = files_of(arguments, SUFFIXES)
    pages = [path for path in files if path.suffix.lower() == ".md"]
    pictures = _pictures_of(arguments, pages)
    names = arguments.tasks or list(bench_tasks.TASKS)
    wrong = [name for name in names if name not in bench_tasks.TASKS]
    if wrong:
        raise UsageError(
            f"--tasks must be of {', '.join(bench_tasks.TASKS)}; got {', '.join(wrong)}."
        )
    if arguments.list:
        print("\n".join(names))
        return {"tasks": names}
    rounds = arguments.rounds or (2 if arguments.quick else 7)
    about = bench_times.about(rounds)
    print(f"{about}\n\n{_padded(bench_times.HEAD)}")
    lines: list[dict[str, Any]] = []
    tasks = []
    for task, found in bench_times.lines_of(
        names, quick=arguments.quick, rows=arguments.rows, rounds=rounds, seed=arguments.seed
    ):
        for line in found:
            print(_padded(bench_times.cells(line)), flush=True)
        lines += found
        tasks.append(task)
    print("\nWhat both compute; what this package computes in addition:")
    for task in {task.name: task for task in tasks}.values():
        print(f"{task.name}: {task.work}; {task.ours.adds}.")
    answer: dict[str, Any] = {"machine": bench_times.machine(), "rounds": rounds, "tasks": lines}
    text = bench_times.markdown(lines, tasks, about)
    texts = [text for _ in pages]
    writers: dict[str, Callable[[Path], object]] = {
        ".md": lambda path: path.write_text(next(in_turn), encoding="utf-8"),
        ".csv": lambda path: pd.DataFrame(lines).to_csv(path, index=False),
        ".json": lambda path: path.write_text(as_json(answer) + "\n", encoding="utf-8"),
    }
    if arguments.scaling:
        sizes = bench_scaling.QUICK_SIZES if arguments.quick else bench_scaling.SIZES
        times, memory = bench_scaling.growth(sizes)
        table = bench_scaling.exponents(times, memory)
        print(f"\nExponents of cost:\n{table.to_string(index=False)}")
        answer["exponents"] = table
        texts = [page(text, lines, times, memory, shown.name) for shown in pictures]
        picture = bench_scaling.figure(times, memory)
        writers[".png"] = lambda path: picture.savefig(path, dpi=150)
    in_turn = iter(texts)
    save([*files, *pictures], writers)
    said_files([*files, *pictures])
    return {**answer, "files": [str(path) for path in (*files, *pictures)]}


def _pictures_of(arguments: argparse.Namespace, pages: list[Path]) -> list[Path]:
    """The pictures of growth, one beside every page. They can be written."""
    if not arguments.scaling:
        return []
    beside = [path.with_suffix(".png") for path in pages]
    return files_of(argparse.Namespace(out=beside, overwrite=arguments.overwrite), (".png",))


def _padded(words: list[str]) -> str:
    return "".join(f"{word:<{width}}" for word, width in zip(words, WIDTHS, strict=True)).rstrip()
