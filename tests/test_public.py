"""What users rely on stays as it is, or changes with a line that says so.

``python -m tests.test_public`` writes both lists as they are now. Read the differences, and say in
CHANGELOG.md what changed, before you commit them (CONTRIBUTING.md, "Names that stay").
"""

from __future__ import annotations

import inspect
import re
from operator import attrgetter
from pathlib import Path

import pytest
import xarray as xr

import rhale_stats as rs
from rhale_stats.arguments.documentation import with_shared_texts
from rhale_stats.schema.variable_table import VARIABLES
from tests.helpers import public_functions

FOLDER = Path(__file__).parent / "public"
MODULES = ("plots", "simulate", "sklearn")
MOST_NAMES, MOST_OPTIONS = 80, 10


def functions() -> str:
    """A line a public name: its parameters with their defaults, or the fields of its options."""
    lines = []
    modules = [f"{module}.{name}" for module in MODULES for name in getattr(rs, module).__all__]
    for name in sorted([*rs.__all__, *modules]):
        one = attrgetter(name)(rs)
        # What these take is theirs to say.
        others = isinstance(one, type) and issubclass(one, BaseException | xr.DataTree)
        if others or not callable(one):
            lines.append(f"{name}: {type(one).__name__}")
            continue
        signature = inspect.signature(one)
        given = []
        for parameter in signature.parameters.values():
            mark = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}.get(parameter.kind.name, "")
            only = "=" if parameter.kind.name == "KEYWORD_ONLY" else ""
            default = "" if parameter.default is parameter.empty else _text(parameter.default)
            given.append(f"{mark}{parameter.name}{only and ' (by name)'} {default}".strip())
        lines.append("\n    ".join([name, *given]))
    return "\n".join(lines) + "\n"


def _text(default: object) -> str:
    text = re.sub(r" at 0x[0-9a-f]+", "", repr(default))
    return f"= {text}"


def datasets() -> str:
    """A line a variable of every kind of result: its dims and units."""
    lines = []
    for kind, variables in VARIABLES.items():
        lines.append(f"{kind.name}")
        for name in sorted(variables):
            dims, _, units = variables[name]
            lines.append(f"    {name} ({', '.join(dims)}) [{units}]")
    return "\n".join(lines) + "\n"


LISTS = {"functions.txt": functions, "datasets.txt": datasets}


def _held(name: str) -> None:
    known = (FOLDER / name).read_text(encoding="utf-8")
    found = LISTS[name]()
    gone = sorted(set(known.splitlines()) - set(found.splitlines()))
    new = sorted(set(found.splitlines()) - set(known.splitlines()))
    assert found == known, (
        f"tests/public/{name} is another: gone {gone}, new {new}. If that is meant, run "
        f"`python -m tests.test_public`, and say it in CHANGELOG.md."
    )


def test_functions_and_their_parameters():
    _held("functions.txt")


def test_variables_of_results():
    _held("datasets.txt")


def test_names_are_few():
    assert len(rs.__all__) <= MOST_NAMES


@pytest.mark.parametrize("name", sorted(public_functions()))
def test_options_of_a_function_are_few(name):
    """Options are what is given by name only; a model, data and features are not."""
    function = public_functions()[name]
    parameters = inspect.signature(function).parameters.values()
    kinds = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD)
    assert sum(parameter.kind in kinds for parameter in parameters) <= MOST_OPTIONS


def test_pictures_are_in_one_module():
    text = Path(rs.plots.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    typed = re.findall(r"^from \.drawing\.(\w+) import plot_(\w+) as (\w+)$", text, re.MULTILINE)
    assert sorted(name for *_, name in typed) == rs.plots.__all__ == dir(rs.plots)
    for module, prefixed, name in typed:
        function = getattr(rs.plots, name)
        assert (function.__module__, function.__name__) == (
            f"rhale_stats.drawing.{module}",
            f"plot_{prefixed}",
        )


def test_shared_texts_are_in_the_docstrings():
    texts = {name: function.__doc__ for name, function in public_functions().items()}
    assert not [name for name, text in texts.items() if "%(" in (text or "")]
    lines = texts["plots.bias"].splitlines()
    start = lines.index("    feature : str or int")
    assert lines[start : start + 3] == [
        *("    feature : str or int", "        Name or number of the feature."),
        "    ax : Axes, optional",
    ]
    assert with_shared_texts(None) is None


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for file, made in LISTS.items():
        (FOLDER / file).write_text(made(), encoding="utf-8")
