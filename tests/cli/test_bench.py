"""The command `bench`: times of this package, and of peers if they are there."""

from __future__ import annotations

import json

import pytest

from rhale_stats.cli.main import main
from rhale_stats.studies import bench_scaling, bench_tasks, bench_times

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


SCALING = ["bench", "--quick", "--rows", "100", "--rounds", "1", "--scaling", "--tasks", "rhale"]


@pytest.fixture
def few_sizes(monkeypatch):
    """Growth along one axis only, for tests of what is written."""
    monkeypatch.setattr(bench_scaling, "QUICK_SIZES", {"rows": (60, 120, 240)})


def test_a_quick_run_has_small_sizes_on_the_axes_of_the_whole_one():
    assert set(bench_scaling.QUICK_SIZES) == set(bench_scaling.SIZES)
    for axis, sizes in bench_scaling.QUICK_SIZES.items():
        assert len(sizes) >= 3, "exponents are slopes of three points"
        assert max(sizes) < max(bench_scaling.SIZES[axis])


def test_growth_of_a_quick_run_is_that_of_small_sizes(capsys, tmp_path, few_sizes):
    """The whole sizes, which --quick took as well, go up to 100,000 rows."""
    page, picture = tmp_path / "growth.md", tmp_path / "growth.png"
    assert main([*SCALING, "--out", str(page)]) == 0
    assert str(picture) in capsys.readouterr().out
    assert "At 240 rows" in page.read_text(encoding="utf-8")
    assert "](growth.png)" in page.read_text(encoding="utf-8")
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_picture_that_is_there_is_kept(capsys, tmp_path, few_sizes):
    picture = tmp_path / "growth.png"
    picture.write_bytes(b"mine")
    assert main([*SCALING, "--out", str(tmp_path / "growth.md")]) == 2
    assert "growth.png" in capsys.readouterr().err
    assert picture.read_bytes() == b"mine"


def test_a_full_disk_leaves_the_earlier_page_and_picture(capsys, tmp_path, few_sizes, monkeypatch):
    """The picture was written first, and by itself: a page beside it was of other numbers."""
    for name in ("growth.md", "growth.png"):
        (tmp_path / name).write_bytes(b"earlier")

    def full(_, path, **options):
        path.write_bytes(b"half of it")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", full)
    assert main([*SCALING, "--out", str(tmp_path / "growth.md"), "--overwrite"]) == 1
    assert "No space left on device" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["growth.md", "growth.png"]
    assert {path.read_bytes() for path in tmp_path.iterdir()} == {b"earlier"}


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
