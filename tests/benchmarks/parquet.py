"""Effects of Parquet files larger than memory: time a row, and memory, as rows grow."""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path

import numpy as np

# Rows of a file, of which it holds one row group each.
FILE_ROWS, GROUP_ROWS, N_FEATURES = 5_000_000, 500_000, 4


def model(X):
    """Cheap, with an interaction and a curve."""
    return X["x0"] ** 2 + X["x0"] * X["x1"] + np.sin(3 * X["x2"]) * X["x3"]


def write(folder: Path, n_rows: int) -> None:
    """Uniform features, in files of some million rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    for number, begin in enumerate(range(0, n_rows, FILE_ROWS)):
        rng, n = np.random.default_rng(number), min(FILE_ROWS, n_rows - begin)
        table = pa.table({f"x{k}": rng.uniform(-1, 1, n) for k in range(N_FEATURES)})
        pq.write_table(table, folder / f"part{number:04}.parquet", row_group_size=GROUP_ROWS)


def main(path: str, workers: int) -> None:
    """Seconds, and the largest memory in use, of one effect with its standard errors; printed.

    The effect of a few rows comes before: modules are imported once in a process.
    """
    import dask

    import rhale_stats as rs

    def seconds(place: str) -> float:
        start = time.perf_counter()
        rs.std_error(rs.rhale(rs.local_effects(model, place, progress=False)))
        return time.perf_counter() - start

    with tempfile.TemporaryDirectory() as few:
        write(Path(few), 1000)
        if not workers:
            with dask.config.set(scheduler="sync"):
                seconds(few)
                print(seconds(path), _memory())
            return
        from distributed import Client

        # docs/larger-than-memory.md: else workers ask the system for the memory of every array.
        place = "distributed.nanny.pre-spawn-environ"
        dask.config.set({f"{place}.MALLOC_MMAP_THRESHOLD_": 1 << 25})
        dask.config.set({f"{place}.MALLOC_TRIM_THRESHOLD_": 1 << 28})
        with Client(n_workers=workers, threads_per_worker=1, dashboard_address=None) as client:
            client.run(import_module, "rhale_stats")
            seconds(few)
            taken = seconds(path)
            # Of the largest worker.
            print(taken, max(client.run(_memory).values()))


def _memory() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def parquet(rows: float, workers: list[int], rounds: int) -> None:
    """The table of sizes up to ``rows``, each in a process of its own."""
    print(
        f"rhale and std_error of {N_FEATURES} features from Parquet, default bins: one look at "
        f"the table, one pass that calls the model. Medians of {rounds} rounds, in turns."
    )
    header = ("rows", "workers", "s", "us a row", "from s", "to s", "MiB resident")
    print("".join(f"{name:>14}" for name in header))
    sizes = [size for size in (10**6, 10**7, 10**8, 10**9) if size <= rows]
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        for n_rows in sizes or [int(rows)]:
            here = Path(folder) / str(n_rows)
            here.mkdir()
            write(here, n_rows)
            turns = [[_in_own_process(here, number) for number in workers] for _ in range(rounds)]
            for number, times in zip(workers, np.moveaxis(np.array(turns), 1, 0), strict=True):
                taken, memory = times.T
                middle, low, high = np.median(taken), taken.min(), taken.max()
                print(
                    f"{n_rows:>14,}{number or 'none':>14}{middle:>14.1f}"
                    f"{1e6 * middle / n_rows:>14.2f}{low:>14.1f}{high:>14.1f}{memory.max():>14.0f}",
                    flush=True,
                )
            for file in here.iterdir():
                file.unlink()


def _in_own_process(folder: Path, workers: int) -> tuple[float, float]:
    """Seconds and MiB."""
    code = f"from tests.benchmarks.parquet import main; main({str(folder)!r}, {workers})"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    seconds, memory = map(float, done.stdout.split())
    return seconds, memory


def options(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    parser.add_argument("--rows", type=float, default=1e7, help="of parquet: the largest table")
    parser.add_argument(
        "--workers",
        type=int,
        nargs="+",
        default=[0],
        help="of parquet: numbers of processes, each measured; 0 is this one",
    )
    parser.add_argument("--rounds", type=int, default=1, help="of parquet: runs of each")
