"""Completion in shells, as the shells themselves compute it."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from rhale_stats.cli.completion import HOW
from rhale_stats.cli.families import FAMILIES
from rhale_stats.cli.main import main
from tests.cli.test_main import command_names


@pytest.fixture
def script(capsys, tmp_path):
    def script(shell):
        assert main(["completion", shell]) == 0
        path = tmp_path / f"completion.{shell}"
        path.write_text(capsys.readouterr().out, encoding="utf-8")
        return path

    return script


def completed_by_bash(path, *words):
    """What bash would offer for the last of some words."""
    code = (
        f'source {path}; COMP_WORDS=(rhale-stats "$@"); COMP_CWORD=$#; _rhale_stats; '
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "-c", code, "bash", *words], capture_output=True, text=True, timeout=60
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ([""], set(command_names())),
        (["ex"], {"explain"}),
        (["--no-progress", "co"], {"compare", "completion"}),
        (["--js"], {"--json"}),
        (["fit", "--re"], {"--refits"}),
        (["explain", "data.csv", "--out"], {"--output", "--outcome", "--out"}),
        (["fit", "data.csv", "--family", ""], set(FAMILIES)),
        (["fit", "data.csv", "--family", "p"], {"poisson"}),
        (["completion", "z"], {"zsh"}),
        # Names of files: bash itself.
        (["fit", "dat"], set()),
        (["explain", "data.csv", "--model", "m"], set()),
    ],
)
def test_bash_completes(script, words, offered):
    assert set(completed_by_bash(script("bash"), *words)) == offered


@pytest.mark.parametrize("shell", [shell for shell in HOW if shutil.which(shell)])
def test_shells_can_read_their_script(script, shell):
    done = subprocess.run([shell, "-n", script(shell)], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def completed_by_fish(path, words):
    """What fish would offer for the last of some words."""
    code = f"source {path}; complete -C 'rhale-stats {words}'"
    done = subprocess.run(["fish", "-c", code], capture_output=True, text=True, timeout=60)
    return [line.split("\t")[0] for line in done.stdout.splitlines()]


def test_fish_completes_where_it_is_installed(script):
    path = script("fish")
    # That of the command line is the same for all: names, options, choices.
    assert path.read_text().count("complete -c rhale-stats") > 50
    if shutil.which("fish"):
        assert completed_by_fish(path, "expl") == ["explain"]
        assert completed_by_fish(path, "fit --family po") == ["poisson"]
        assert completed_by_fish(path, "explain --keep") == ["--keep-missing"]


def test_unknown_shells_are_refused(capsys):
    with pytest.raises(SystemExit):
        main(["completion", "csh"])
    assert "invalid choice: 'csh'" in capsys.readouterr().err
