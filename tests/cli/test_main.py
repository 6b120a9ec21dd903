"""Options of all commands: help, JSON, quiet, debug."""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import rhale_stats as rs
from rhale_stats.cli.main import main
from rhale_stats.cli.parser import parser
from tests import commands


def command_names():
    """Names of all commands, from the parser."""
    (of_commands,) = (
        action for action in parser()._actions if isinstance(action, argparse._SubParsersAction)
    )
    return list(of_commands.choices)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["", *command_names()])
def test_every_help_has_examples_that_parse_and_the_exit_statuses(capsys, monkeypatch, name):
    monkeypatch.setattr(Path, "exists", lambda _path: True)
    with pytest.raises(SystemExit) as end:
        main([*name.split(), "--help"])
    assert end.value.code == 0
    text = capsys.readouterr().out
    assert "exit status: 0 success; 1 the command failed; 2" in text
    examples = re.search(r"examples:\n((?:  .*\n)+)", text)[1].splitlines()
    for example in examples:
        words = re.findall(r'"[^"]*"|\S+', example)
        assert words[0] == "rhale-stats"
        parser().parse_args([word.strip('"') for word in words[1:]])


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["explan", "x"], "explain"),
        (["plot", "x"], "fit, or explain"),
        ([__file__], f"rhale-stats explain {__file__}"),
        (["--verison"], "--version"),
        (["explain", __file__, "y ~ a"], "--formula 'y ~ x1 + x2'"),
        (["explain", __file__, "--wieghts", "w"], "--weights"),
        (["fit", __file__, "--formula", "y ~ a", "--family", "logit"], "--family binomial"),
        (["completion"], "shtab --shell=bash"),
    ],
)
def test_what_is_not_there_is_answered_with_what_is(capsys, words, meant):
    with pytest.raises(SystemExit):
        main(words)
    assert f"Did you mean {meant}" in capsys.readouterr().err


def test_help_of_a_command_without_dashes(capsys):
    with pytest.raises(SystemExit):
        main(["help", "explain"])
    assert capsys.readouterr().out.startswith("usage: rhale-stats explain")


def test_help_loads_nothing_that_fits_or_draws():
    script = """
import sys
from rhale_stats.__main__ import run
sys.argv = ["rhale-stats", "--help"]
try:
    run()
except SystemExit:
    heavy = {"statsmodels", "matplotlib", "sklearn", "scipy.stats", "arviz", "patsy", "torch"}
    sys.exit(", ".join(heavy & set(sys.modules)) or None)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=commands.PATIENCE
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_version_in_words_and_in_json(capsys):
    assert main(["version"]) == 0
    assert re.search(rf"rhale-stats +{re.escape(rs.__version__)}\n", capsys.readouterr().out)
    assert main(["version", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["rhale-stats"] == rs.__version__
    assert found["python"] == ".".join(map(str, sys.version_info[:3]))


def test_without_a_command_there_is_help_and_the_module_runs_the_demonstration(capsys, monkeypatch):
    assert main([]) == 0
    assert capsys.readouterr().out == parser().format_help()
    assert main(["--out", "results"]) == 2
    assert "a command must be named, as in `rhale-stats demo`" in capsys.readouterr().err
    ran = []
    monkeypatch.setattr("rhale_stats.cli.main._run", lambda arguments: ran.append(arguments.job))
    assert main(["--out", "results"], demo=True) == main([], demo=True) == main(["demo"]) == 0
    assert ran == ["jobs:rand_job"] * 3


def test_quiet_and_json_print_the_object(capsys):
    assert main(["version", "--quiet", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rhale-stats"] == rs.__version__


def test_quiet_prints_nothing(capsys):
    assert main(["version", "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")
    assert main(["--quiet", "version"]) == 0
    assert capsys.readouterr() == ("", "")


def test_debug_shows_the_place_of_an_error_and_the_line_last(capsys, monkeypatch):
    def fail(_):
        raise ZeroDivisionError("no\nrows")

    monkeypatch.setattr("rhale_stats.cli.main.version_of", fail)
    assert main(["version"]) == 1
    assert capsys.readouterr().err == "rhale-stats: ZeroDivisionError: no rows\n"
    assert main(["version", "--debug"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("Traceback (most recent call last):\n")
    assert error.endswith("\nrhale-stats: ZeroDivisionError: no rows\n")
