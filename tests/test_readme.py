"""The README does what it says."""

from __future__ import annotations

import contextlib
import io
import os
import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"


@pytest.mark.skipif(not README.exists(), reason="README.md is not beside the tests")
def test_what_a_user_types_runs_and_prints_what_the_readme_shows(tmp_path):
    text = README.read_text(encoding="utf-8")
    code = "\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))
    shown = re.search(r"prints\n\n```text\n(.*?)```", text, re.DOTALL).group(1)
    printed = io.StringIO()
    before = Path.cwd()
    os.chdir(tmp_path)
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "README.md", "exec"), {})
    finally:
        os.chdir(before)
    assert (tmp_path / "effect.nc").exists()

    def words(table):
        return [line.split() for line in table.splitlines() if line.strip()]

    assert words(shown) == words(printed.getvalue())[: len(words(shown))]
