"""The command `explain` prints and writes what the function returns."""

from __future__ import annotations

import json
import re
import sys

import joblib
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression

import rhale_stats as rs
from rhale_stats.cli.files import read_result
from rhale_stats.cli.main import main
from tests import commands
from tests.cli.conftest import FORMULA, FRAME, NUMBERS, Y


@pytest.fixture(scope="session")
def expected(fitted):
    model, rows = fitted
    return rs.explain(model, rows, rows["y"], features=["age", "sex"], rng=0, progress=False)


@pytest.mark.thorough
def test_the_answer_is_that_of_the_function(table, tmp_path, capsys, expected):
    files = [tmp_path / f"out{suffix}" for suffix in (".nc", ".csv", ".json")]
    words = ["explain", str(table), "--formula", FORMULA, "--no-progress"]
    # The files of few features have all parts, and take less time.
    words += ["--features", "age", "sex"]
    assert main([*words, "--out", *map(str, files)]) == 0
    out = capsys.readouterr().out
    answer = str(expected).partition("\n\nrs.")[0]
    # The first line after that on the family, and the table.
    assert answer.splitlines()[-5:] == out.partition("\n\n" + str(files[0]))[0].splitlines()[-5:]
    assert "rs.report" not in out
    found = read_result(files[0], "TREE")
    for group in ("answers", "effect", "regions/0/tree"):
        xr.testing.assert_allclose(found[group].to_dataset(), expected[group].to_dataset())
    lines = rs.tidy(expected)
    assert rs.tidy(found)["term"].tolist() == lines["term"].tolist()
    pd.testing.assert_series_equal(pd.read_csv(files[1])["importance"], lines["importance"])
    saved = json.loads(files[2].read_text(encoding="utf-8"))
    assert [one["term"] for one in saved["features"]] == lines["term"].tolist()
    assert saved["model"] == FORMULA
    assert saved["n_rows"] == len(FRAME)


def test_json_of_a_model_from_a_file(table, linear, capsys):
    words = ["explain", str(table), "--model", str(linear), "--trust", "--outcome", "y", "--json"]
    assert main([*words, "--held-out", "--level", "0.9", "--features", "age"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert [one["term"] for one in answer["features"]] == ["age"]
    assert (answer["held_out"], answer["level"], answer["files"]) == ("yes", 0.9, [])
    assert isinstance(answer["r2"], float)


def test_missing_values_are_dropped_or_kept(tmp_path, capsys):
    data = FRAME[NUMBERS].assign(y=Y, male=(FRAME["sex"] == "m").astype(int))
    data.loc[:9, "age"] = np.nan
    data.to_csv(tmp_path / "data.csv", index=False)
    model = HistGradientBoostingRegressor(max_iter=5).fit(data[[*NUMBERS, "male"]], Y)
    joblib.dump(model, tmp_path / "model.joblib")
    words = ["explain", str(tmp_path / "data.csv"), "--model", str(tmp_path / "model.joblib")]
    words += ["--trust", "--no-progress", "--features", "age"]
    assert main(words) == 0
    assert "10 of 400 rows have missing values and are dropped.\n" in capsys.readouterr().out
    assert main([*words, "--keep-missing", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["n_rows"] == 400
    assert answer["prediction_mean"] == pytest.approx(
        model.predict(data[[*NUMBERS, "male"]]).mean()
    )
    words = ["explain", str(tmp_path / "data.csv"), "--formula", "y ~ age", "--keep-missing"]
    assert main(words) == 2
    assert "--keep-missing must come with --model" in capsys.readouterr().err


@pytest.mark.parametrize("classes", ["yes", "number", "truth"])
def test_outcomes_of_classes_are_written_as_the_model_writes_them(tmp_path, capsys, classes):
    labels = {
        "yes": np.where(Y > 0, "yes", "no"),
        "number": np.where(Y > 0, 2, 1),
        "truth": np.asarray(Y > 0),
    }[classes]
    model = LogisticRegression().fit(FRAME[NUMBERS] / [50, 1], labels)
    joblib.dump(model, tmp_path / "model.joblib")
    data = (FRAME[NUMBERS] / [50, 1]).assign(y=labels)
    data["y"] = data["y"].astype(int) if classes == "truth" else data["y"]
    data.to_csv(tmp_path / "data.csv", index=False)
    words = ["explain", str(tmp_path / "data.csv"), "--model", str(tmp_path / "model.joblib")]
    words += ["--trust", "--outcome", "y", "--features", "age"]
    assert main([*words, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    found = rs.explain(
        model, FRAME[NUMBERS] / [50, 1], labels, features="age", rng=0, progress=False
    )
    assert answer["auc"] == pytest.approx(found.attrs["auc"])
    data.assign(y="maybe").to_csv(tmp_path / "data.csv", index=False)
    assert main(words) == 2
    assert re.search(
        r"--outcome must be .* classes, .*; y holds maybe\.\n", capsys.readouterr().err
    )


def test_outcomes_of_a_regressor_of_catboost_are_numbers(tmp_path, capsys):
    library = pytest.importorskip("catboost")
    model = library.CatBoostRegressor(iterations=9, verbose=0, allow_writing_files=False)
    model.fit(FRAME[NUMBERS], Y).save_model(str(tmp_path / "m.cbm"))
    FRAME[NUMBERS].assign(y=Y).to_csv(tmp_path / "d.csv", index=False)
    words = ["explain", str(tmp_path / "d.csv"), "--model", str(tmp_path / "m.cbm")]
    assert main([*words, "--outcome", "y", "--features", "age", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["r2"] > 0


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")
def test_an_interrupted_explanation_leaves_no_files(table, tmp_path):
    # A folder of Zarr is written and half of a table when Ctrl-C comes.
    out, waiting = tmp_path / "out", tmp_path / "waiting"
    waiting.mkdir()
    before = f"""
from rhale_stats.cli import files

def writers_of(tree, table, answer):
    def zarr(path):
        path.mkdir()
        (path / "zarr.json").write_text("half")

    def csv(path):
        path.write_text("half")
        commands.wait_to_be_ended(Path({str(waiting)!r}), False)

    return {{".zarr": zarr, ".csv": csv}}

files.writers_of = writers_of
"""
    words = ["explain", table, "--formula", FORMULA, "--family", "gaussian", "--no-progress"]
    words += ["--features", "age", "--out", out / "tree.zarr", out / "answers.csv"]
    process = commands.start(tmp_path, *words, before=before)
    commands.until(lambda: any(waiting.iterdir()), process)
    assert len(list(out.iterdir())) == 2
    ended, error = commands.interrupted(process)
    assert (ended, error.strip()) == (130, "rhale-stats: interrupted.")
    assert not list(out.iterdir())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--outcome", "sex"], "--outcome must be a column of numbers for .*; sex holds "),
        (["--features", "z"], "--features must be columns of the model, which are age, time"),
        (["--budget", "30x"], "--budget must be a time such as 30s or 2min; got '30x'"),
        (["--level", "95"], "--level must be a number between 0 and 1; got '95'"),
        (["--matters", "x"], "--matters must be a number between 0 and 1; got 'x'"),
        (["--out", "x.docx"], "--out must end with one of .html, .nc, "),
    ],
)
def test_what_cannot_be_explained(table, linear, refused, monkeypatch, words, message):
    from rhale_stats.cli import commands

    monkeypatch.setattr(commands.rs, "explain", None)
    refused(["explain", str(table), "--model", str(linear), "--trust", *words], message)
