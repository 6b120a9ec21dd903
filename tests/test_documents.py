"""The README and the vignettes do what they say, and print what they show."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", *sorted(ROOT.glob("vignettes/*.md"))]


def blocks(text):
    """Fenced blocks of a document: (language, content)."""
    return re.findall(r"^```(\w+)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def words(table):
    return [line.split() for line in table.splitlines() if line.strip()]


def printed_by(code, names):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "document", "exec"), names)
    return printed.getvalue()


def test_there_are_documents():
    assert [path.name for path in DOCUMENTS][:1] == ["README.md"]
    assert len(DOCUMENTS) > 1


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_code_runs_and_prints_what_is_shown(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names, printed, compared = {}, "", 0
    for language, content in blocks(path.read_text(encoding="utf-8")):
        if language == "python":
            printed = printed_by(content, names)
        elif language == "text" and printed:
            # The beginning of what was printed, but for the white space.
            assert words(content) == words(printed)[: len(words(content))]
            printed, compared = "", compared + 1
    assert compared
    assert list(tmp_path.glob("*.nc"))
