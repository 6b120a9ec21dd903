"""The command line of the studies, ``python vignettes/studies``."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import xarray as xr

import studies
from studies.command import main
from tests.studies import toy_study

STUDIES = Path(studies.__file__).parent


@pytest.fixture
def study(monkeypatch, tmp_path):
    """Command line of the toy study, which is the only one, up to its options."""
    monkeypatch.setattr(studies, "STUDIES", {"toy": toy_study.__name__})
    return ["toy", "--jobs", "1", "--no-progress", "--out", str(tmp_path / "out")]


def test_study(study, tmp_path, capsys):
    arguments = [*study, "--quick", "--settings", "failing", "--seed", "3"]
    assert main(arguments) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.startswith("# Means of normal numbers\n")
    assert "studies toy --quick --settings failing --replicates 4 --seed 3" in out
    assert "![" not in out
    stem = tmp_path / "out" / "toy-failing-quick"
    assert f"\n{stem}.nc: the results, " in out
    assert f"\n{stem}.md: this report.\n{stem}.png: its figure.\n" in out
    with xr.open_dataset(f"{stem}.nc") as results:
        assert results.sizes["replicate"] == 4
        assert results.attrs["seed"] == 3
    assert "![Means of normal numbers](toy-failing-quick.png)" in stem.with_suffix(".md").read_text(
        encoding="utf-8"
    )
    assert stem.with_suffix(".png").exists()


def test_study_goes_on_where_it_was_interrupted(study, monkeypatch, capsys):
    monkeypatch.setenv(toy_study.INTERRUPT, "50")
    assert main(study) == 130
    assert "The same command continues the study" in capsys.readouterr().err
    monkeypatch.delenv(toy_study.INTERRUPT)
    toy_study.calls.clear()
    assert main([*study, "--replicates", "13"]) == 0
    assert toy_study.calls == [5] + [50] * 13


def test_studies_are_listed(study, capsys):
    assert main(["--list"]) == 0
    assert capsys.readouterr().out == "toy  Means of normal numbers\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--jobs", "0"], "jobs must be at least 1; got 0."),
        (["--replicates", "0"], "n_replicates must be at least 1; got 0."),
        (["--seed", "-1"], "seed must be at least 0; got -1."),
        (["--settings", "a/b"], "settings must be one of .*; got 'a/b'."),
        (["--data", __file__], "data must not be given"),
    ],
)
def test_studies_that_cannot_be_run(study, capsys, options, message):
    assert main([*study, *options]) == 2
    error = capsys.readouterr().err
    assert re.match(message, error), error


@pytest.mark.parametrize("words", [[], ["unknown", "--quick"]])
def test_unknown_studies(study, capsys, words):
    assert main(words) == 2
    assert "name must be one of toy; got " in capsys.readouterr().err


def test_results_of_another_seed_are_not_mixed(study, capsys):
    assert main([*study, "--replicates", "1"]) == 0
    assert main([*study, "--replicates", "1", "--seed", "1"]) == 2
    assert "seed is 0 there, 1 asked for. Choose another folder" in capsys.readouterr().err


@pytest.mark.slow
def test_from_a_shell():
    command = [sys.executable, str(STUDIES), "formulas", "neighbours"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    assert "neighbours, seed" in done.stdout


def test_a_command_of_its_own_says_its_options(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [str(STUDIES), "outcome", "-h"])
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "studies.outcome", raising=False)  # run, not imported again
    with pytest.raises(SystemExit, match="0"):
        runpy.run_path(str(STUDIES), run_name="__main__")
    assert "--n" in capsys.readouterr().out
