"""The command `report`, and `explain` with a report among its files."""

from __future__ import annotations

import json

import pytest
import xarray as xr

from rhale_stats.cli import commands
from rhale_stats.cli.main import main
from tests.cli.conftest import FORMULA


@pytest.fixture(scope="session")
def trees(table, tmp_path_factory):
    """One explanation of one feature in files of both kinds, by their suffix."""
    folder = tmp_path_factory.mktemp("tree")
    paths = {suffix: folder / f"tree{suffix}" for suffix in (".nc", ".zarr")}
    words = ["explain", str(table), "--formula", FORMULA, "--features", "age", "--quiet"]
    assert main([*words, "--out", *map(str, paths.values())]) == 0
    return paths


@pytest.fixture(scope="session")
def tree(trees):
    return trees[".nc"]


def test_a_report_from_a_table_in_one_command(table, tmp_path, capsys):
    path = tmp_path / "new" / "report.html"
    words = ["explain", str(table), "--formula", FORMULA, "--no-progress", "--out", str(path)]
    assert main(words) == 0
    assert f"\n{path}: the report, for a browser.\n" in capsys.readouterr().out
    html = path.read_text(encoding="utf-8")
    assert html.rstrip().endswith("</html>")
    assert "time spent" in html


@pytest.mark.thorough
@pytest.mark.parametrize("suffix", [".nc", ".zarr"])
def test_the_report_of_a_saved_explanation(trees, tmp_path, capsys, suffix):
    path = tmp_path / "report.html"
    words = ["report", str(trees[suffix]), "--out", str(path)]
    assert main([*words, "--title", "Ages <and> times", "--features", "age", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"files": [str(path)]}
    assert "Ages &lt;and&gt; times" in path.read_text(encoding="utf-8")


def test_options_go_to_the_report(tree, tmp_path, monkeypatch):
    found = []
    monkeypatch.setattr(
        commands.rs, "report", lambda tree, path, **options: (path.touch(), found.append(options))
    )
    words = ["report", str(tree), "--out", str(tmp_path / "a.html"), "--open", "0", "--print"]
    assert main(words) == 0
    assert found == [{"title": None, "features": None, "open_features": 0, "print": True}]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["TREE", "--features", "z"],
            "--features must be features of .*, which are .*; got z",
        ),
        (["TREE", "--out", "x.pdf"], "--out must end with one of .html, .*; got x.pdf"),
        (["TREE", "--open", "-1"], "--open must be a whole number of at least 0; got '-1'"),
        (["none.nc"], "TREE must be an existing file; there is no none.nc"),
        (["EFFECT"], "TREE must be an explanation, as .*effect.nc is not: its method is not known"),
    ],
)
def test_reports_that_cannot_be_written(tree, tmp_path, refused, monkeypatch, words, message):
    effect = tmp_path / "effect.nc"
    xr.Dataset({"height": ("x", [1.0])}).to_netcdf(effect, engine="h5netcdf")
    monkeypatch.chdir(tmp_path)
    named = {"TREE": str(tree), "EFFECT": str(effect)}
    refused(["report", *(named.get(word, word) for word in words)], message)
    assert [path.name for path in tmp_path.iterdir()] == ["effect.nc"]
