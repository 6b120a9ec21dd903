"""``python -m tests.mutation``: how many small errors in the code do the tests find?"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Iterable
from datetime import date
from functools import partial

import pytest
from scipy.stats import binomtest

from tests.few_cases import few_cases
from tests.mutation.equivalents import reason
from tests.mutation.mutants import PACKAGE, Mutant, mutants_of
from tests.mutation.running import KILLED, SURVIVED, TIMED_OUT, Trial, Verdict, traces_of, warm_up

WINGS = (
    *("effects", "inference", "local", "bins", "profiles", "surfaces", "margins", "regional"),
    *("h_statistics", "diagnostics", "ensembles"),
)
GROUPS = {"arrays": ("arrays",), "wings": WINGS, "all": ("arrays", *WINGS)}
TESTS = ("arrays", *WINGS, "generics")
# A test of time fails on a machine that has other work, whatever the mutant.
OF_TIME = "tests/generics/test_show.py::test_printing_is_fast"
# The command fails if so few mutants are found that this has at most this probability.
LEVEL = 0.01


def read_arguments(words: list[str] | None) -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser("python -m tests.mutation", description=__doc__)
    parser.add_argument("--of", default="all", help="arrays, wings, all, a package or a module")
    parser.add_argument("--n", type=int, default=200, help="number of mutants drawn")
    parser.add_argument("--seed", type=int, default=date.today().toordinal(), help="by day")
    parser.add_argument("--least", type=float, default=0.9, help="share that should be found")
    parser.add_argument(
        "--seconds", type=float, default=float("inf"), help="start none after these"
    )
    parser.add_argument("--patience", type=float, default=30, help="CPU seconds of a mutant")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--tests", nargs="*", help="folders or files of tests; by default, those of all"
    )
    parser.add_argument("--cases", type=int, default=1000, help="cases of a test, at most")
    parser.add_argument("--verbose", action="store_true", help="a line for every mutant")
    return parser.parse_args(words)


def modules_of(of: str) -> list[str]:
    """Paths of modules: of a group, a package or one module."""
    paths = []
    for part in GROUPS.get(of, (of,)):
        path = PACKAGE / part
        paths += [path] if path.is_file() else sorted(path.glob("*.py"))
    return [path.relative_to(PACKAGE).as_posix() for path in paths]


def drawn(of: str, n: int, seed: int) -> tuple[list[Mutant], int]:
    """A random sample of the mutants without the known equivalents, and the number of them all."""
    every = [mutant for path in modules_of(of) for mutant in mutants_of(path)]
    those = [mutant for mutant in every if reason(mutant) is None]
    return random.Random(seed).sample(those, min(n, len(those))), len(every)


def interval(killed: int, n: int) -> str:
    """A share with its exact 95 % interval (Clopper and Pearson)."""
    low, high = binomtest(killed, n).proportion_ci(0.95, "exact")
    return f"{killed / n:6.1%} [{low:.1%}, {high:.1%}]"


def table(verdicts: Iterable[Verdict]) -> str:
    """Verdicts counted by package."""
    counts: dict[str, Counter[str]] = {}
    for one in verdicts:
        counts.setdefault(one.mutant.path.split("/")[0], Counter())[one.outcome] += 1
    rows = [f"{'':14}{'mutants':>8}{KILLED:>8}{TIMED_OUT:>11}{SURVIVED:>10}  found"]
    groups = [*sorted(counts.items()), ("all", sum(counts.values(), Counter()))]
    for name, count in groups[: None if len(counts) > 1 else -1]:
        found = count[KILLED] + count[TIMED_OUT]
        outcomes = f"{count[KILLED]:8}{count[TIMED_OUT]:11}{count[SURVIVED]:10}"
        share = interval(found, count.total())
        rows.append(f"{name:14}{count.total():8}{outcomes}  {share}")
    return "\n".join(rows)


class Plugin:
    """Runs mutants where pytest would run its tests."""

    def __init__(self, asked: argparse.Namespace) -> None:
        self.asked = asked
        self.verdicts: list[Verdict] = []

    def pytest_configure(self) -> None:
        from hypothesis import settings  # not before pytest rewrites its assertions

        settings.register_profile("mutation", database=None, derandomize=True, deadline=None)
        settings.load_profile("mutation")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        asked = self.asked
        warm_up()
        items = few_cases(session.items, asked.cases)
        traces = traces_of(items, asked.jobs, partial(print, flush=True))
        trial = Trial(items, traces, asked.patience)
        mutants, of_all = drawn(asked.of, asked.n, asked.seed)
        print(f"{len(mutants)} of {of_all} mutants of {asked.of}, seed {asked.seed}", flush=True)
        for one in trial.verdicts(mutants, asked.jobs, asked.seconds):
            self.verdicts.append(one)
            if asked.verbose or one.outcome == SURVIVED:
                print(shown(one), flush=True)
        return True


def shown(one: Verdict) -> str:
    """A verdict on one line, as the table of equivalents needs it."""
    by = one.test or (f"{one.n_tests} tests" if one.n_tests else "no test executes it")
    return (
        f"{one.outcome}: {one.mutant.place} {one.mutant.function}: {one.mutant.text}  "
        f"({by if one.outcome != TIMED_OUT else 'time'}, {one.seconds:.1f} s)"
    )


def main(words: list[str] | None = None) -> int:
    """Print the table; 1 if significantly fewer are found than should be, at a level of 1 %."""
    asked = read_arguments(words)
    start = time.perf_counter()
    tests = asked.tests or [f"tests/{part}" for part in TESTS]
    plugin = Plugin(asked)
    options = [
        "-n",
        "0",
        "-s",
        "-qq",
        "--no-header",
        "-p",
        "no:cacheprovider",
        "-m",
        "not slow",
        "--deselect",
        OF_TIME,
    ]
    code = pytest.main([*options, *tests], [plugin])
    if not plugin.verdicts:
        return int(code) or 2
    print(table(plugin.verdicts))
    found = sum(one.outcome != SURVIVED for one in plugin.verdicts)
    test = binomtest(found, len(plugin.verdicts), asked.least, alternative="less")
    print(f"probability of so few if {asked.least:.0%} can be found: {test.pvalue:.3f}")
    print(f"{time.perf_counter() - start:.0f} s")
    return int(test.pvalue < LEVEL)


if __name__ == "__main__":
    sys.exit(main())
