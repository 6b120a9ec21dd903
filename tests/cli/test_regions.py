"""The command `regions` prints and writes what the functions return."""

from __future__ import annotations

import json

import pandas as pd
import pytest
import xarray as xr
from sklearn.linear_model import LinearRegression

import rhale_stats as rs
from rhale_stats.cli.files import read_result
from rhale_stats.cli.main import main
from tests.cli.conftest import FORMULA, FRAME, NUMBERS, Y


@pytest.mark.thorough
def test_regions_are_those_of_the_functions(table, tmp_path, capsys, fitted):
    files = [tmp_path / "regions.nc", tmp_path / "regions.csv", tmp_path / "regions.json"]
    words = ["regions", str(table), "--formula", FORMULA, "--feature", "age", "--no-progress"]
    assert main([*words, "--out", *map(str, files)]) == 0
    out = capsys.readouterr().out
    local = rs.local_effects(*fitted, features=["age"], progress=False)
    conditioning = fitted[1][["sex", "time spent"]]
    tree = rs.regions(local, "age", conditioning=conditioning, rng=0)
    effect = rs.std_error(
        rs.regional_rhale(local, tree), local, model=fitted[0], X=fitted[1], progress=False
    )
    # The errors hold the parameters of the formula, which the permutations of the test do not.
    shown = tree.assign(pvalue=tree["pvalue"].where(tree["pvalue"] > 0.05))
    assert str(rs.summary(shown)) in out
    assert float(tree["pvalue"][0]) < 0.05
    assert "0.001" not in str(rs.summary(shown).tables[1])
    assert "sex = f" in out
    assert "P of splits that were made is not shown" in out
    found = read_result(files[0], "TREE")
    xr.testing.assert_allclose(found["effect"].to_dataset(), effect)
    expected = rs.glance(effect)
    pd.testing.assert_frame_equal(
        pd.read_csv(files[1])[["rule", "estimate"]],
        expected[["rule", "estimate"]],
        check_dtype=False,
    )
    answer = json.loads(files[2].read_text(encoding="utf-8"))
    assert [line["rule"] for line in answer["regions"]] == expected["rule"].tolist()
    assert len(answer["notes"]) == 1
    assert [line["estimate"] for line in answer["regions"]] == pytest.approx([0.5, -0.5], rel=0.02)


def test_regions_by_other_columns_with_weights_and_groups(table, linear, capsys):
    words = ["regions", str(table), "--model", str(linear), "--trust", "--feature", "age"]
    words += ["--conditioning", "sex", "--groups", "clinic", "--weights", "weight", "--json"]
    assert main(words) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["files"] == []
    # A linear model has one effect everywhere.
    assert len(answer["regions"]) == 1
    slope = LinearRegression().fit(FRAME[NUMBERS], Y).coef_[0]
    assert answer["regions"][0]["estimate"] == pytest.approx(slope, rel=1e-4)


def test_existing_results_are_kept(table, tmp_path, capsys):
    path = tmp_path / "regions.csv"
    path.write_text("mine")
    words = ["regions", str(table), "--formula", FORMULA, "--feature", "age", "--quiet"]
    assert main([*words, "--out", str(path)]) == 2
    assert "regions.csv. --overwrite replaces it.\n" in capsys.readouterr().err
    assert path.read_text() == "mine"
    assert main([*words, "--out", str(path), "--overwrite"]) == 0
    assert capsys.readouterr() == ("", "")
    assert path.read_text() != "mine"
