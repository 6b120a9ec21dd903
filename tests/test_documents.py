"""The pages do what they say, print what they show, and name modules that are there.

``python -m tests.test_documents [FILE ...]`` runs them and writes what they print now into them.
Read the differences before you commit them.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import io
import os
import re
import sys
import tempfile
import tomllib
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import rhale_stats as rs
from rhale_stats.generics.dispatch import METHODS
from rhale_stats.schema import kinds
from studies.formulas import BLOCKS
from tests import gallery

ROOT = Path(__file__).parents[1]
# Names the file of the hourly rentals, and that of the house prices, where there is a copy.
RENTALS, HOUSES = "BIKE_SHARING", "CALIFORNIA_HOUSING"
ARCHITECTURE = ROOT / "docs" / "architecture.md"
DOCUMENTS = [
    *(ROOT / "README.md", ROOT / "docs" / "guide.md", ARCHITECTURE, ROOT / "docs" / "peers.md"),
    ROOT / "docs" / "tables-and-models.md",
    *sorted(ROOT.glob("vignettes/*.md")),
    *sorted(ROOT.glob("docs/concepts/[!R]*.md")),  # README.md lists them
    *sorted(
        path
        for path in ROOT.glob("docs/claims/[!R]*.md")
        if "```python" in path.read_text(encoding="utf-8")
    ),
]
# The code of the others takes seconds each, and runs with the slow tests.
EVERY_DAY = ("architecture.md", "rand.md")
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("vignettes/*.md")]
# Blocks that readers see, and comments in HTML with assertions that hold what the text says.
FENCE = re.compile(
    r"^(?:```(?P<language>\w+)|<!-- checks)\n(?P<content>.*?)^(?:```|-->)", re.DOTALL | re.MULTILINE
)
# A line of a table that says where something is: a question, a module, its names.
PLACE = re.compile(r"^\| [^|]+ \| `([\w/]+\.py)` \| ([^|]+) \|$", re.MULTILINE)
MODULE = re.compile(r"rhale_stats(?:/\w+)*/(?:\w+\.pyi?)?(?=`)|rhale_stats(?:\.\w+)+(?=`)")


def blocks(text):
    """Blocks of a document: (language, content); None for the language of hidden checks."""
    return [(found["language"], found["content"]) for found in FENCE.finditer(text)]


def words(table):
    return [line.split() for line in table.splitlines() if line.strip()]


def printed_by(code, names):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "document", "exec"), names)
    return printed.getvalue()


def test_there_are_documents():
    assert [path.name for path in DOCUMENTS][:2] == ["README.md", "guide.md"]
    assert len(DOCUMENTS) > 3


def test_readme_is_short_and_starts_with_its_commands():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.split()) <= 900
    lines = text.splitlines()
    assert len(lines) <= 200
    commands = [number for number, line in enumerate(lines) if line.startswith("python3 -m")]
    assert len(commands) == 2
    assert max(commands) < 20


def test_guide_is_short_and_has_a_picture_a_section():
    text = gallery.GUIDE.read_text(encoding="utf-8")
    assert len(text.split()) <= 4000
    assert all("\n![" in section for section in text.split("\n## ")[1:])
    assert all(
        (gallery.PAGE.parent / name).is_file() for _, name in gallery.blocks(gallery.GUIDE) if name
    )


def test_tasks_of_the_quick_start_take_three_lines_without_an_option():
    section = gallery.GUIDE.read_text(encoding="utf-8").partition("\n## Quick start")[2]
    tasks = blocks(section)[1][1].split("\n\n")
    tasks += [blocks(section)[3][1]]
    assert len(tasks) == 8
    for task in tasks:
        lines = [line for line in task.splitlines() if not line.startswith("#")]
        assert len(lines) <= 3
        calls = [node for node in ast.walk(ast.parse(task)) if isinstance(node, ast.Call)]
        assert not any("rs." in ast.unparse(call.func) and call.keywords for call in calls)


def test_every_picture_is_in_the_gallery():
    code = "".join(code for code, _ in gallery.blocks())
    assert set(rs.plots.__all__) == set(re.findall(r"rs\.plots\.(\w+)", code))
    assert all((gallery.PAGE.parent / name).is_file() for _, name in gallery.blocks() if name)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_pictures_of_the_gallery_are_neither_empty_nor_covered():
    found = gallery.draw()
    assert len(found) >= 18
    assert not {name: what for name, what in found.items() if what}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_figures_of_the_papers_are_neither_empty_nor_covered():
    found = gallery.draw(page=gallery.FIGURES)
    assert len(found) >= 19
    assert all((gallery.PAGE.parent / name).is_file() for name in found)
    assert not {name: what for name, what in found.items() if what}


def anchors(text):
    """Anchors that GitHub makes of the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", text), re.MULTILINE)
    bare = (re.sub(r"\[(.*?)\]\(.*?\)", r"\1", heading) for heading in headings)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in bare}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path):
    text = FENCE.sub("", path.read_text(encoding="utf-8"))
    for link in re.findall(r"\]\(([^()\s]+)\)", text):
        if link.startswith(("http:", "https:")):
            continue
        name, _, anchor = link.partition("#")
        target = path.parent / name if name else path
        assert target.exists(), link
        if anchor:
            assert anchor in anchors(target.read_text(encoding="utf-8")), link


def layers():
    """Lines of the contract of layers in pyproject.toml."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    (lines,) = (contract["layers"] for contract in contracts if contract["id"] == "layers")
    return lines


def test_layers_are_those_of_the_linter():
    assert "```\n" + "\n".join(layers()) + "\n```" in ARCHITECTURE.read_text(encoding="utf-8")


def test_every_layer_is_described():
    text = ARCHITECTURE.read_text(encoding="utf-8")
    described = re.findall(r"^\d+\. \*\*(.+?)\*\*", text, re.MULTILINE)
    names = [sorted(re.findall(r"\w+", line)) for line in reversed(layers())]
    assert [sorted(re.findall(r"\w+", line)) for line in described] == names


def names_in(module):
    """Functions, classes and values that a module defines."""
    names = set()
    for node in ast.parse((ROOT / "rhale_stats" / module).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names |= {node.name} | {part.name for part in node.body if hasattr(part, "name")}
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return names


def test_what_is_to_be_found_is_there():
    places = PLACE.findall(ARCHITECTURE.read_text(encoding="utf-8"))
    assert len(places) > 15
    for module, names in places:
        missing = set(re.findall(r"`(\w+)`", names)) - names_in(module)
        assert not missing, f"{module} has no {missing}"


def test_the_life_of_a_call_is_as_the_page_says():
    """Every line is called below the one that it is indented under, in this order; none lacks."""
    text = ARCHITECTURE.read_text(encoding="utf-8")
    text = text[text.index("## The life of a call") : text.index("Each step returns a new")]
    lines = re.findall(r"^( *)(\w+) +([\w/]+\.py) ", text, re.MULTILINE)
    assert 10 <= len(lines) <= 15
    X = np.random.default_rng(0).normal(size=(300, 2))
    local = rs.local_effects(lambda X: np.sin(2 * X[:, 0]) + X[:, 0] * X[:, 1], X)
    calls, stack = [], []

    def record(frame, event, _):
        module = frame.f_code.co_filename.rpartition("rhale_stats/")[2]
        if event == "call":
            stack.append((frame.f_code.co_name, module))
            calls.append(tuple(stack))
        elif event == "return" and stack:
            stack.pop()

    sys.setprofile(record)
    try:
        effect = rs.confint(rs.rhale(local))
        printed = [str(rs.summary(effect)), str(rs.summary(effect, "x0"))]
    finally:
        sys.setprofile(None)
    assert all(printed)
    above, first = [], []
    for indent, *line in lines:
        above[len(indent) // 2 :] = [tuple(line)]
        steps = [n for n, way in enumerate(calls) if way[-1] == above[-1] and {*above} <= {*way}]
        assert steps, line
        first.append(steps[0])
    assert first == sorted(first)
    called = {way[-1] for way in calls}
    steps = {way[-1] for way in calls if way[-2:-1] == (("_of_features", "effects/rhale.py"),)}
    steps = {(name, module) for name, module in steps if name in functions_in(module)}
    assert steps - {("_add_signs", "effects/rhale.py")} <= {tuple(line) for _, *line in lines}
    for module, names in PLACE.findall(text):
        assert {(name, module) for name in re.findall(r"`(\w+)`", names)} <= called


def functions_in(module):
    """Functions of a module of `effects`, but for methods; none of other modules."""
    if not module.startswith("effects/"):
        return []
    nodes = ast.parse((ROOT / "rhale_stats" / module).read_text(encoding="utf-8")).body
    return [node.name for node in nodes if isinstance(node, ast.FunctionDef)]


def test_kinds_are_in_the_wings_that_the_page_says():
    text = ARCHITECTURE.read_text(encoding="utf-8")
    said = re.findall(r"^\| ((?:`[A-Z_]+`(?:, )?)+) \| `(\w+)` \|", text, re.MULTILINE)
    said = {(kind, wing) for kinds, wing in said for kind in re.findall(r"\w+", kinds)}
    all_kinds = {name: kind for name, kind in vars(kinds).items() if isinstance(kind, kinds.Kind)}
    found = set()
    for name, kind in all_kinds.items():
        wings = Counter(function.partition(".")[0] for function in METHODS[kind].values())
        found.add((name, wings.most_common(1)[0][0]))
    assert said == found
    assert {name for name, _ in said} == set(all_kinds)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_modules_that_pages_name_are_there(path):
    text = path.read_text(encoding="utf-8")
    named = MODULE.findall(text)
    if path == ARCHITECTURE:
        inner = re.findall(r"`((?!rhale_stats/)\w+/(?:\w+\.py)?)`", text)
        named += [f"rhale_stats/{name}" for name in inner]
    for name in named:
        if "/" in name:
            assert (ROOT / name).exists(), name
        else:
            module, _, last = name.rpartition(".")
            assert hasattr(importlib.import_module(module), last) or find_spec(name), name


MATH = ROOT / "docs" / "math.md"


def formulas():
    """Numbers of the formulas in math.md, in their order, with the heading each stands under."""
    found, section = [], ""
    for line in MATH.read_text(encoding="utf-8").splitlines():
        if line.startswith("##"):
            section = line.lstrip("# ")
        elif number := re.match(r"\*\*\[(\d+)\]", line):
            found.append((int(number[1]), section))
    return found


def cited_formulas(text, *, everywhere=False):
    """Numbers after "math", with those of "math [24] to [32]"; or everywhere in brackets."""
    if everywhere:
        return {int(one) for one in re.findall(r"\[(\d+)\](?!\()", text)}
    lists = re.findall(r"math (\[\d+\](?:(?:,| to| and|, and) \[\d+\])*)", text)
    return {int(one) for found in lists for one in re.findall(r"\d+", found)}


def test_formulas_have_numbers_of_their_own():
    numbers = [number for number, _ in formulas()]
    assert len(numbers) > 80
    twice = {number for number in numbers if numbers.count(number) > 1}
    assert not twice, f"the next free number is {max(numbers) + 1}"


def test_formulas_that_are_cited_are_there():
    numbers = {number for number, _ in formulas()}
    code = [path for name in ("rhale_stats", "tests") for path in (ROOT / name).rglob("*.py")]
    cited = set()
    for path in [*code, *PAGES]:
        text = path.read_text(encoding="utf-8")
        found = cited_formulas(text, everywhere=path.name in ("math.md", "datasets.md"))
        assert found <= numbers, (path, found - numbers)
        cited |= found
    assert len(cited) > 60


def test_the_index_of_formulas_leads_to_them():
    """Every number once, at the section that it stands in."""
    text = MATH.read_text(encoding="utf-8")
    index = text[text.index("## Appendix E. Index of formulas") :]
    listed = {}
    lines = re.findall(r"^- \[([\w.]+)\]\(#([\w-]+)\): (.*)$", index, re.MULTILINE)
    for name, place, ranges in lines:
        for first, last in re.findall(r"\[(\d+)\](?: to \[(\d+)\])?", ranges):
            for number in range(int(first), int(last or first) + 1):
                assert number not in listed, number
                listed[number] = name, place
    found = dict(formulas())
    assert set(listed) == set(found)
    for number, (name, place) in listed.items():
        heading = next(
            line.lstrip("# ")
            for line in text.splitlines()
            if line.startswith("##") and place in anchors(line)
        )
        # A heading without a number belongs to the section above it.
        same = found[number] == heading or not re.match(r"\d|Appendix", found[number])
        assert same, (number, found[number], heading)
        assert heading.removeprefix("Appendix ").startswith(f"{name}.") or heading.startswith(
            f"{name} "
        ), (number, heading)


def test_tables_of_the_formulas_have_their_command():
    """Every block of the module `formulas` has its command, and a table below it."""
    text = (ROOT / "docs" / "math-tables.md").read_text(encoding="utf-8")
    command = r"^python vignettes/studies formulas ([\w-]+)\n```\n\n\|"
    assert sorted(re.findall(command, text, re.MULTILINE)) == sorted(BLOCKS)


def test_formulas_in_lines_of_their_own_are_paragraphs():
    """On the site, two dollar signs within a paragraph begin no formula."""
    text = FENCE.sub("", MATH.read_text(encoding="utf-8"))
    for paragraph in re.split(r"\n\s*\n", text):
        if "$$" in paragraph:
            assert re.fullmatch(r"\s*\$\$[^$]+\$\$\s*", paragraph), paragraph


def test_all_functions_are_in_the_list_of_the_site():
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    listed = {"": [], "plots": [], "simulate": [], "sklearn": []}
    for part in text.split("currentmodule:: rhale_stats")[1:]:
        module = re.match(r"\.?(\w*)\n", part)[1]
        listed[module] += re.findall(r"^   (\w+)$", part, re.MULTILINE)
    for module, names in listed.items():
        public = getattr(rs, module).__all__ if module else {*rs.__all__} - {*listed}
        assert sorted(names) == sorted(name for name in public if not name.startswith("__"))


def stand_in_for_rentals(path):
    """A small table with the columns of the rentals, in place of data that are not there."""
    rng = np.random.default_rng(0)
    n = 600
    columns = {"season": 5, "yr": 2, "mnth": 13, "hr": 24, "weekday": 7, "workingday": 2}
    table = pd.DataFrame({name: rng.integers(0, top, n) for name, top in columns.items()})
    table["holiday"] = (rng.random(n) < 0.03).astype(int)
    table["weathersit"] = rng.integers(1, 4, n)
    table[["temp", "hum", "windspeed"]] = rng.random((n, 3)).round(2)
    slope = np.where(table["workingday"] == 1, 20, -20)
    table["cnt"] = (slope * table["hr"] + 100 * table["temp"] + rng.normal(0, 60, n)).round() + 500
    table.to_csv(path, index=False)


def stand_in_for_houses(path, n=1600):
    """A table with the columns of the house prices."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"median_income": rng.gamma(4, 1, n).round(2)})
    table["housing_median_age"] = rng.integers(1, 53, n)
    table["median_house_value"] = 4e4 * table["median_income"] + rng.normal(0, 5e4, n).round()
    table["households"] = rng.integers(50, 800, n)
    table["total_rooms"] = (table["households"] * rng.uniform(3, 8, n)).round()
    table["population"] = (table["households"] * rng.uniform(1.5, 5, n)).round()
    table["latitude"] = rng.uniform(32.5, 42, n).round(2)
    table["longitude"] = (-89 - table["latitude"] * 0.85 + rng.normal(0, 1, n)).round(2)
    table.to_csv(path, index=False)


def stand_in_for_all_houses(path):
    """As many rows as the page takes, for training and test."""
    stand_in_for_houses(path, 9000)


# Data that a document needs: variable, file, stand-in. From this block on it prints other numbers.
NEEDS = {
    "bike.md": (RENTALS, "hour.csv", stand_in_for_rentals, "def hours"),
    "california.md": (HOUSES, "blocks.csv", stand_in_for_all_houses, "def blocks"),
    "model-uncertainty.md": (HOUSES, "blocks.csv", stand_in_for_houses, "def blocks"),
}


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(
            path,
            marks=() if path.name in EVERY_DAY else pytest.mark.slow,
            id=str(path.relative_to(ROOT)),
        )
        for path in DOCUMENTS
    ],
)
def test_code_runs_and_prints_what_is_shown(path, tmp_path, monkeypatch):
    """Where a document needs data that are not there its code runs on others, unseen.

    Pictures of the guide, which it shows below their code, are neither empty nor covered.
    """
    monkeypatch.chdir(tmp_path)
    # On a slow machine budgets would leave something out.
    stopped = SimpleNamespace(perf_counter=lambda: 0.0)
    monkeypatch.setattr("rhale_stats.explanation.request.time", stopped)
    monkeypatch.setattr("rhale_stats.explanation.outcome.MAX_SECONDS", np.inf)
    names, printed, compared = {}, "", 0
    as_shown, (variable, file, stand_in, begin) = True, NEEDS.get(path.name, ("", "", None, ""))
    is_missing = stand_in is not None and variable not in os.environ
    if is_missing:
        stand_in(tmp_path / file)
        monkeypatch.setenv(variable, str(tmp_path / file))
    text = path.read_text(encoding="utf-8")
    pictures = dict(gallery.blocks(path)) if path == gallery.GUIDE else {}
    for language, content in blocks(text):
        if language is None:
            if as_shown:
                assert not printed_by(content, names), "checks print nothing"
        elif language == "python":
            as_shown &= not (is_missing and begin in content)
            if pictures:
                plt.close("all")
            printed = printed_by(content, names)
            if pictures.get(content):
                (number,) = plt.get_fignums()
                assert not gallery.problems(plt.figure(number)), pictures[content]
        elif language == "text" and printed:
            # The beginning of what was printed, but for the white space.
            if as_shown:
                assert words(content) == words(printed)[: len(words(content))]
            printed, compared = "", compared + 1
    assert compared
    writes = ".to_netcdf(" in text or "simulate.study(" in text
    assert bool(list(tmp_path.glob("*.nc"))) == writes


def as_printed_now(text):
    """A document with what its code prints now in place of what it shows."""
    names, printed = {}, ""

    def renewed(block):
        nonlocal printed
        language, content = block["language"], block["content"]
        if language is None:
            printed_by(content, names)
        elif language == "python":
            printed = printed_by(content, names)
        elif language == "text" and printed:
            # A table shown without its notes stays without them.
            now = printed if "\nNotes:" in content else printed.partition("\nNotes:")[0]
            printed = ""
            lines = [line.rstrip() for line in now.strip("\n").splitlines()]
            return "\n".join(["```text", *lines, "```"])
        return block.group()

    return FENCE.sub(renewed, text)


if __name__ == "__main__":
    for name in sys.argv[1:] or DOCUMENTS:
        page = Path(name).resolve()
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            now = as_printed_now(page.read_text(encoding="utf-8"))
        page.write_text(now, encoding="utf-8")
