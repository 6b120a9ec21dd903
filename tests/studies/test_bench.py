"""Times beside peers, if they are there: ``python -m tests.benchmarks peers``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks import scaling, tasks, times
from tests.benchmarks.peers import peers


@pytest.mark.slow
def test_the_command_runs_from_the_root_of_a_checkout():
    command = [sys.executable, "-m", "tests.benchmarks", "--help"]
    root = Path(__file__).parents[2]
    printed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    assert "peers" in printed


def test_peers_are_timed_in_turns(capsys):
    pytest.importorskip("effector")
    pytest.importorskip("PyALE")
    found = peers(["rhale", "ale"], rows=200, rounds=2)
    lines = {(line["task"], line["peer"]): line for line in found}
    for key in (("rhale", "effector"), ("ale", "PyALE")):
        line = lines[key]
        assert 0 < line["seconds"] < 60
        assert 0 < line["peer_seconds"] < 60
        assert line["ratio_min"] <= line["ratio"] <= line["ratio_max"]
    assert "effector" in capsys.readouterr().out


def test_a_quick_run_writes_its_page_and_picture(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(scaling, "QUICK_SIZES", {"rows": (60, 120, 240)})
    monkeypatch.setattr(scaling, "RUNS", 1)
    peers(["rhale"], quick=True, rows=100, rounds=1, growth=True, out=tmp_path / "growth.md")
    assert "\nrhale " in capsys.readouterr().out
    text = (tmp_path / "growth.md").read_text(encoding="utf-8")
    assert "| rhale |" in text
    assert "At 240 rows" in text
    assert "](growth.png)" in text
    assert (tmp_path / "growth.png").read_bytes().startswith(b"\x89PNG")


def test_a_quick_run_has_small_sizes_on_the_axes_of_the_whole_one():
    assert set(scaling.QUICK_SIZES) == set(scaling.SIZES)
    for axis, sizes in scaling.QUICK_SIZES.items():
        assert len(sizes) >= 3, "exponents are slopes of three points"
        assert max(sizes) < max(scaling.SIZES[axis])


def test_peers_that_are_not_there_and_peers_that_fail(capsys, monkeypatch):
    def task(rows, seed):
        def missing():
            raise ModuleNotFoundError("no", name="gone")

        def fails():
            raise OSError

        side = tasks.Side(lambda: 1.0, lambda found: found)
        return tasks.Task(
            "toy", "nothing", side, {"gone": missing, "bad": fails, "same": lambda: side}
        )

    monkeypatch.setitem(tasks.TASKS, "toy", (task, (10, 20)))
    peers(["toy"], rows=200, rounds=2)
    out = capsys.readouterr().out
    assert "not installed (gone)" in out
    assert "failed: OSError" in out
    assert "0e+00" in out


def test_the_faster_side_is_named():
    def line(ours, theirs):
        side = tasks.Side(lambda: 1.0, lambda found: found)
        task = tasks.Task("toy", "nothing", side, {"peer": lambda: side})
        taken = {"rhale_stats": ours, "peer": theirs}
        values = {"rhale_stats": 1.0, "peer": 1.0}
        return times._line(task, 10, "peer", taken, values, {})["faster"]

    assert line([1.0, 2.0], [2.0, 3.0]) == "rhale_stats"
    assert line([2.0, 3.0], [1.0, 2.0]) == "peer"
    assert line([1.0, 3.0], [2.0, 2.0]) == "unclear"
