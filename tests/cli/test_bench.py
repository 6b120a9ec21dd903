"""The command `bench`: times of this package, and of peers if they are there."""

from __future__ import annotations

import json

import pytest

from rhale_stats.cli.main import main
from rhale_stats.studies import bench_tasks, bench_times

WORDS = ["bench", "--rows", "200", "--rounds", "2"]


def test_peers_are_timed_in_turns(capsys):
    pytest.importorskip("effector")
    pytest.importorskip("PyALE")
    assert main([*WORDS, "--tasks", "rhale", "ale", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    lines = {(line["task"], line["peer"]): line for line in answer["tasks"]}
    for key in (("rhale", "effector"), ("ale", "PyALE")):
        line = lines[key]
        assert 0 < line["seconds"] < 60
        assert 0 < line["peer_seconds"] < 60
        assert line["ratio_min"] <= line["ratio"] <= line["ratio_max"]
    assert {"cpu", "cores", "python", "numpy"} <= set(answer["machine"])


def test_a_quick_run_writes_its_tables(capsys, tmp_path):
    files = [str(tmp_path / f"times{suffix}") for suffix in (".md", ".csv", ".json")]
    assert main(["bench", "--quick", "--rounds", "1", "--out", *files]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    text = (tmp_path / "times.md").read_text(encoding="utf-8")
    for name in bench_tasks.TASKS:
        assert f"\n{name} " in out
        assert f"| {name} |" in text


def test_peers_that_are_not_there_and_peers_that_fail(capsys, monkeypatch):
    def task(rows, seed):
        def missing():
            raise ModuleNotFoundError("no", name="gone")

        def fails():
            raise OSError

        side = bench_tasks.Side(lambda: 1.0, lambda found: found)
        return bench_tasks.Task(
            "toy", "nothing", side, {"gone": missing, "bad": fails, "same": lambda: side}
        )

    monkeypatch.setitem(bench_tasks.TASKS, "toy", (task, (10, 20)))
    assert main([*WORDS, "--tasks", "toy"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "not installed (gone)" in out
    assert "failed: OSError" in out
    assert "0e+00" in out


def test_unknown_tasks_are_refused(capsys):
    assert main(["bench", "--tasks", "nothing"]) == 2
    assert "got nothing" in capsys.readouterr().err


def test_the_faster_side_is_named():
    def line(ours, theirs):
        side = bench_tasks.Side(lambda: 1.0, lambda found: found)
        task = bench_tasks.Task("toy", "nothing", side, {"peer": lambda: side})
        taken = {"rhale_stats": ours, "peer": theirs}
        values = {"rhale_stats": 1.0, "peer": 1.0}
        return bench_times._line(task, 10, "peer", taken, values, {})["faster"]

    assert line([1.0, 2.0], [2.0, 3.0]) == "rhale_stats"
    assert line([2.0, 3.0], [1.0, 2.0]) == "peer"
    assert line([1.0, 3.0], [2.0, 2.0]) == "unclear"
