"""The command `compare`: two files, two values of a column, and what cannot be compared."""

from __future__ import annotations

import json
import re
import shutil

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import rhale_stats as rs
from rhale_stats.cli.main import main
from tests.cli.conftest import FORMULA


def test_levels_are_compared(table, tmp_path, capsys, fitted):
    words = ["compare", str(table), "--by", "sex", "--formula", FORMULA, "--features", "age"]
    assert main([*words, "--no-progress", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["a"], answer["b"]) == ("sex = f", "sex = m")
    model, rows = fitted
    effects = []
    for sex in ("f", "m"):
        own = rows[rows["sex"] == sex].reset_index(drop=True)
        local = rs.local_effects(model, own, features=["age"], progress=False)
        # Of other rows than those of the fit, so that variances are added.
        effects.append(rs.std_error(rs.rhale(local), local, model=model, X=own, progress=False))
    expected = rs.glance(rs.compare(*effects, rng=0))
    assert answer["tests"][0]["largest"] == pytest.approx(float(expected["largest"].iloc[0]))


@pytest.mark.thorough
def test_equal_effects_of_two_groups_are_seldom_told_apart(tmp_path, capsys):
    """Five samples without a difference, a formula that allows for one: each was rejected."""
    rejected = 0
    for seed in range(5):
        rng = np.random.default_rng(seed)
        rows = pd.DataFrame({"x": rng.uniform(0, 9, 200), "g": rng.integers(0, 2, 200)})
        rows["y"] = rows["x"] / 2 + rng.normal(size=200)
        path = tmp_path / f"{seed}.csv"
        rows.to_csv(path, index=False)
        words = ["compare", str(path), "--by", "g", "--formula", "y ~ x * g + I(x ** 2)"]
        assert main([*words, "--features", "x", "--no-progress", "--json"]) == 0
        rejected += json.loads(capsys.readouterr().out)["tests"][0]["p_value"] < 0.05
    assert rejected <= 2  # 3 or more of 5 at 5 %: probability 0.001


def test_files_are_compared(table, tmp_path, capsys):
    words = ["fit", str(table), "--formula", FORMULA, "--out", str(tmp_path / "a"), "--quiet"]
    assert main(words) == 0
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    paths = [str(tmp_path / name / "rhale-effects.nc") for name in ("a", "b")]
    assert main(["compare", *paths]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"a: {paths[0]}\nb: {paths[1]}\n\n")
    assert "no difference between the curves" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["DATA"], "compare must be given two files of effects, or one of .*; got 1 files"),
        (["DATA", "DATA"], "A and B must be a .nc or .zarr file of this package; got .*data.csv"),
        (["DATA", "DATA", "--formula", "y ~ age"], "--formula must come with --by COLUMN"),
        (
            ["DATA", "DATA", "--by", "sex", "--formula", "y ~ age"],
            "compare --by must be given one file .*2",
        ),
        (["DATA", "--by", "z", "--formula", "y ~ age"], "--by must be a column of .*; got z."),
        (
            ["DATA", "--by", "clinic", "--formula", "y ~ age"],
            "--levels must be two values of clinic; got none. It has 0, 1, 10, 11",
        ),
        (
            ["DATA", "--by", "sex", "--levels", "f", "x", "--formula", "y ~ age"],
            "--levels must be two values of sex; got f, x. It has f, m.",
        ),
    ],
)
def test_comparisons_that_cannot_be_made(table, capsys, words, message):
    words = [str(table) if word == "DATA" else word for word in words]
    assert main(["compare", *words, "--quiet"]) == 2
    error = capsys.readouterr().err
    assert re.fullmatch(f"rhale-stats: {message}.*\n", error), error


def test_files_without_effects_are_refused(tmp_path, capsys):
    paths = [str(tmp_path / name) for name in ("a.nc", "b.nc")]
    for path in paths:
        xr.Dataset({"height": ("x", [1.0])}).to_netcdf(path, engine="h5netcdf")
    assert main(["compare", *paths]) == 2
    assert "a.nc does not. It has height." in capsys.readouterr().err
