"""The command `bench`: times of this package, and of peers if they are there."""

from __future__ import annotations

import json

import numpy as np
import pytest

from rhale_stats.cli import bench
from rhale_stats.cli.main import main

WORDS = ["bench", "--rows", "1000", "--features", "3", "--runs", "1"]


def test_peers_are_timed(capsys):
    pytest.importorskip("effector")
    pytest.importorskip("PyALE")
    assert main([*WORDS, "--json"]) == 0
    tasks = json.loads(capsys.readouterr().out)["tasks"]
    assert [task["peer"] for task in tasks] == ["effector", "PyALE", "scikit-learn"]
    for task in tasks:
        assert 0 < task["seconds"] < 60
        assert 0 < task["peer_seconds"] < 60


def test_peers_that_are_not_there_and_peers_that_fail(capsys, monkeypatch):
    def fail(X, *others):
        def run():
            raise OSError

        return run

    monkeypatch.setattr(bench, "version_of", lambda name: {"PyALE": "1.2"}.get(name))
    monkeypatch.setattr(bench, "_of_pyale", fail)
    assert main(WORDS) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.count("not installed") == 2
    assert out.count("failed") == 1


def test_the_model_of_all_tasks_is_one():
    X = bench._rows(50, 3, 0)
    estimator_answer = bench._of_sklearn(X, [0.0, 0.5])()["individual"][0]
    expected = [bench.Smooth().predict(X.assign(x0=value)) for value in (0.0, 0.5)]
    assert estimator_answer == pytest.approx(np.stack(expected, axis=1))
