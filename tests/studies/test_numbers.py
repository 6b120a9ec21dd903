"""Numbers of pages are computed again: three of the studies and a table of formulas at a time.

Which ones are drawn by the date, so that CI comes to other numbers every day; the seed of the new
simulation is the date, too. ``RHALE_STATS_NUMBERS=20261124`` repeats those of a day. The numbers
are read from the pages: from the tables of means with their Monte-Carlo standard errors below the
command that made them, and from the tables of ``python vignettes/studies formulas``.

A new mean of k replicates differs from one of n on the page with a variance of sd² (1/n + 1/k),
and the page's error is sd / √n, an estimate from n replicates: the bound is the quantile of
Student's t with n - 1 degrees of freedom for the size 6e-5 of 4 standard errors. A number fails if
it is beyond, and again with another seed. So a right number fails in at most 1 of 16,000 cases if
means are normal. Means of rare events are not: the second seed is for these.
"""

from __future__ import annotations

import datetime
import os
import re
import shlex
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import studies
from studies import Options, formulas, runner
from studies.report import mean_table

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(path for path in (DOCS / "studies").glob("*.md") if path.name != "README.md")
COMMAND = re.compile(r"^python vignettes/(studies .*)$", re.MULTILINE)
TABLE = re.compile(r"^```text\n(.*?)^```", re.DOTALL | re.MULTILINE)
ERRORS = 4.0
SIZE = stats.norm.sf(ERRORS)
# Seconds and replicates for one number; a replicate of most studies takes less than a tenth of one.
PATIENCE, MOST = 4.0, 200
NUMBERS = 3
# Smaller means are rounding.
NOTHING = 1e-20
# Shown over the smallest mean of another output, and not as they are.
RATIOS = {"spread": {"ise_bins", "ise_spread", "ise_given"}}
# A new table of formulas has so many times fewer samples than that of the page.
FEWER = 10
# Not these: a tenth of the samples takes half a minute.
LONG = ("box",)


@dataclass(frozen=True)
class Number:
    """A mean on a page, with what is needed to compute it again."""

    page: str
    command: str
    scenario: str
    places: tuple[tuple[str, str], ...]
    output: str
    runs: int
    mean: float
    error: float

    @property
    def options(self):
        words = shlex.split(self.command)
        settings = words[words.index("--settings") + 1] if "--settings" in words else None
        return words[1], Options(quick="--quick" in words, settings=settings)


def columns(header):
    """Names of the columns of a table of right-aligned text, and where they begin and end."""
    ends = [(found.group(), found.end()) for found in re.finditer(r"\S+", header)]
    begins = [0, *(end for _, end in ends[:-1])]
    return {name: slice(begin, end) for (name, end), begin in zip(ends, begins, strict=True)}


def numbers_of(path):
    """All numbers of a page that have an error and are means of an output of the study."""
    text = path.read_text(encoding="utf-8")
    (command,) = COMMAND.findall(text)
    if "--data" in command:
        return []
    words = shlex.split(command)
    settings = words[words.index("--settings") + 1] if "--settings" in words else None
    study = studies.load(words[1], Options(settings=settings))
    scenarios = {one.name for one in study.scenarios}
    found = []
    for table in TABLE.findall(text):
        header, *lines = table.splitlines()
        at = columns(header)
        means = set(study.outputs) - RATIOS.get(study.name, set())
        names = [name for name in at if f"{name}_mcse" in at and name in means]
        if "scenario" not in at or "runs" not in at:
            continue
        for name in names:
            dims = study.outputs[name].dims
            if not set(dims) <= set(at):
                continue
            for line in lines:
                cells = {key: line[where].strip() for key, where in at.items()}
                known = cells[name] and float(cells[f"{name}_mcse"] or 0) > 0
                # What rounding leaves of 0 is no number of a study.
                known = known and abs(float(cells[name])) > NOTHING
                if known and cells["scenario"] in scenarios and cells["failed"] == "0":
                    found.append(
                        Number(
                            path.name,
                            command,
                            cells["scenario"],
                            tuple((dim, cells[dim]) for dim in dims),
                            name,
                            int(cells["runs"]),
                            float(cells[name]),
                            float(cells[f"{name}_mcse"]),
                        )
                    )
    return found


def again(number, seed, monkeypatch):
    """The mean of new replicates of its scenario alone, and how many they are."""
    name, options = number.options
    study = studies.load(name, options)
    (scenario,) = (one for one in study.scenarios if one.name == number.scenario)
    monkeypatch.setattr(runner, "load", lambda *_: replace(study, scenarios=(scenario,)))

    def mean_of(n):
        results = studies.run(name, options, n_replicates=n, jobs=1, seed=seed, progress=False)
        dims = study.outputs[number.output].dims
        table = mean_table(results, [number.output], dims)
        for dim, text in number.places:
            table = table[[_same(value, text) for value in table[dim]]]
        (value,) = table[number.output]
        return float(value)

    begin = time.perf_counter()
    mean_of(2)
    n = int(np.clip(2 * PATIENCE / (time.perf_counter() - begin), 2, min(MOST, number.runs)))
    return mean_of(n), n


def _same(value, text):
    """Whether a value of a coordinate is what a page shows, with four digits."""
    try:
        return bool(np.isclose(float(value), float(text), rtol=1e-3))
    except ValueError:
        return str(value) == text


def off(number, seed, monkeypatch):
    """The difference of a new mean as a share of what is allowed."""
    mean, n = again(number, seed, monkeypatch)
    error = number.error * np.sqrt(1 + number.runs / n)
    # The page shows four digits.
    allowed = stats.t.isf(SIZE, number.runs - 1) * error + 0.5e-3 * abs(number.mean)
    return abs(mean - number.mean) / allowed


def today():
    return int(os.environ.get("RHALE_STATS_NUMBERS") or f"{datetime.date.today():%Y%m%d}")


def said(number, found):
    return (
        f"{number.page}: {number.output} {number.mean} ± {number.error} of {number.scenario} "
        f"{dict(number.places)} is {found[0]:.1f} and {found[1]:.1f} times as far from new runs as "
        f"chance allows "
        f"({number.command}; RHALE_STATS_NUMBERS={today()})"
    )


@pytest.fixture(scope="module")
def numbers():
    return [number for path in PAGES for number in numbers_of(path)]


def test_numbers_of_most_pages_can_be_computed_again(numbers):
    """Others have no tables of means: shares, times, and a study of data that are not here."""
    assert len(numbers) > 400
    assert len({number.page for number in numbers}) >= 11
    first = numbers_of(DOCS / "studies" / "trust.md")[0]
    assert (first.scenario, first.places, first.runs) == ("N = 100", (("n_bins", "3"),), 1000)


@pytest.mark.slow
@pytest.mark.parametrize("which", range(NUMBERS))
def test_a_number_of_a_page_is_within_its_error(which, numbers, monkeypatch):
    """Every page is as likely, however many numbers it has."""
    rng = np.random.default_rng([today(), which])
    page = rng.choice(sorted({number.page for number in numbers}))
    of_page = [number for number in numbers if number.page == page]
    number = of_page[rng.integers(len(of_page))]
    found = [off(number, today(), monkeypatch)]
    if found[0] > 1:
        found.append(off(number, today() + 1, monkeypatch))
    assert min(found) <= 1, said(number, found)


@pytest.mark.slow
def test_a_wrong_number_is_noticed(monkeypatch):
    """The test above can fail: a mean that is 20 standard deviations of one run away."""
    number = numbers_of(DOCS / "studies" / "density.md")[0]
    wrong = replace(number, mean=number.mean + 20 * number.error * number.runs**0.5)
    assert off(number, today(), monkeypatch) <= 1
    assert off(wrong, today(), monkeypatch) > 1


# --- tables of the formulas -----------------------------------------------------------------------

# "93.1 (0.4) → 88.3" is a share with its error, and another without.
CELL = re.compile(r"(-?[\d.]+) \(([\d.]+)\)")


def cells_of(text):
    """Means with their errors: {(row, column): (mean, error)}."""
    rows = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("|")]
    found = {}
    for number, row in enumerate(rows[2:]):
        for place, cell in enumerate(row):
            if match := CELL.search(cell):
                # The last digit of an error may be rounded from half a unit more.
                half = 0.5 * 10.0 ** -len(match[2].partition(".")[2])
                found[number, place] = float(match[1]), float(match[2]) + half
    return found


def on_the_page(block):
    text = (DOCS / "math-tables.md").read_text(encoding="utf-8")
    command = re.escape(f"python vignettes/studies formulas {block}\n")
    return cells_of(re.search(command + r"```\n\n((?:\|.*\n)+)", text)[1])


def differ(block, seed, monkeypatch):
    """Cells of a table that are further from a new one than their errors allow."""
    monkeypatch.setattr(formulas, "SEED", seed)
    there, new = (
        on_the_page(block),
        cells_of(formulas.table(block, formulas.BLOCKS[block][0] // FEWER)),
    )
    assert set(there) == set(new)
    # What a few samples say of their own error may be 0, where there are rare events.
    return {
        place
        for place, (mean, error) in there.items()
        if abs(mean - new[place][0]) > ERRORS * error * np.sqrt(1 + FEWER)
    }


@pytest.mark.parametrize("block", sorted(formulas.BLOCKS))
def test_tables_of_the_formulas_have_errors(block):
    assert on_the_page(block)


@pytest.mark.slow
def test_a_table_of_the_formulas_is_within_its_errors(monkeypatch):
    blocks = sorted(set(formulas.BLOCKS) - set(LONG))
    block = blocks[np.random.default_rng(today()).integers(len(blocks))]
    found = differ(block, today(), monkeypatch)
    if found:
        found &= differ(block, today() + 1, monkeypatch)
    assert not found, f"{block}: (row, column) {sorted(found)}; RHALE_STATS_NUMBERS={today()}"
