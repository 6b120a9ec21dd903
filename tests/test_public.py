"""What users rely on stays as it is, or changes with a line that says so.

``python -m tests.test_public`` writes both lists as they are now. Read the differences, and say in
CHANGELOG.md what changed, before you commit them (CONTRIBUTING.md, "Names that stay").
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import xarray as xr

import rhale_stats as rs
from rhale_stats.schema.variable_table import VARIABLES

FOLDER = Path(__file__).parent / "public"


def functions() -> str:
    """A line a public name: its parameters with their defaults, or the fields of its options."""
    lines = []
    for name in sorted(rs.__all__):
        one = getattr(rs, name)
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


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for file, made in LISTS.items():
        (FOLDER / file).write_text(made(), encoding="utf-8")
