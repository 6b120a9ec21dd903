"""The command line: the main job, a user's data, and what it says when it cannot."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import rhale_stats as rs
from rhale_stats import cli


@pytest.fixture
def data(rng, tmp_path):
    frame = pd.DataFrame({"age": rng.uniform(20, 70, 300), "sex": ["f", "m"] * 150})
    frame["time spent"] = rng.uniform(0, 1, 300)
    slope = np.where(frame["sex"] == "f", 0.5, -0.5)
    frame["y"] = slope * frame["age"] + frame["time spent"] ** 2 + rng.normal(size=300)
    frame.loc[[3, 8], "age"] = np.nan
    frame["unused"] = rng.normal(size=300)
    path = tmp_path / "data.csv"
    frame.to_csv(path, index=False)
    return path


def test_main_job(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "rhale_stats"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "RHALE: effects on visits" in done.stdout
    assert "rhale-effects.nc: " in done.stdout
    assert "rhale-effects.png: " in done.stdout
    assert "Warning" not in done.stderr
    assert "done" in done.stderr
    with xr.open_dataset(tmp_path / "rhale-effects.nc") as effect:
        assert effect["feature"].values.tolist() == ["disea", "lpi", "fmde"]
        assert effect["n_obs"].sum("bin").values.tolist() == [20190] * 3
        assert "curve_se" in effect
    assert (tmp_path / "rhale-effects.png").stat().st_size > 10_000


FORMULA = 'y ~ bs(age, df=4) * sex + Q("time spent")'


def test_fit_on_a_users_csv(data, tmp_path, capsys):
    arguments = ["fit", str(data), "--formula", FORMULA, "--family", "gaussian"]
    assert cli.main([*arguments, "--out", str(tmp_path / "new" / "folder"), "--no-progress"]) == 0
    out, err = capsys.readouterr()
    assert "2 of 300 rows have missing values and are dropped." in out
    assert err == ""
    with xr.open_dataset(tmp_path / "new" / "folder" / "rhale-effects.nc") as effect:
        assert effect["feature"].values.tolist() == ["age", "time spent"]
        assert effect.attrs["n_rows"] == 298
        # Slopes of plus and minus a half, mixed half and half.
        assert float(effect["heterogeneity_output"][0]) == pytest.approx(0.5 * 14.4, rel=0.2)


def test_fit_on_parquet_and_chosen_features(data, tmp_path, capsys):
    pytest.importorskip("pyarrow")
    parquet = tmp_path / "data.parquet"
    pd.read_csv(data).to_parquet(parquet)
    arguments = ["fit", str(parquet), "--formula", FORMULA, "--family", "gaussian"]
    assert cli.main([*arguments, "--features", "age", "--out", str(tmp_path)]) == 0
    with xr.open_dataset(tmp_path / "rhale-effects.nc") as effect:
        assert effect["feature"].values.tolist() == ["age"]
    assert "RHALE: effects on y" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"data": "nowhere.csv"}, "DATA must be an existing file; there is no nowhere.csv"),
        ({"--formula": "y + age"}, "--formula must look like 'y ~ x1 . x2'; got 'y . age'"),
        ({"--formula": "z ~ q"}, "--formula must name columns of the data; 'z ~ q' names none of"),
        ({"--formula": "y ~ age +"}, "statsmodels could not fit 'y ~ age .' with family gaussian"),
        ({"--features": "size"}, "--features must be columns of .*; got size. It has age, sex"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line(data, tmp_path, capsys, change, message):
    options = {"--formula": "y ~ age", "--family": "gaussian", "--out": str(tmp_path)} | change
    path = options.pop("data", str(data))
    flat = [word for pair in options.items() for word in pair]
    assert cli.main(["fit", path, *flat]) == 2
    error = capsys.readouterr().err
    assert re.search(message, error), error


def test_a_transformed_outcome_is_no_feature(data, tmp_path, capsys):
    arguments = ["fit", str(data), "--formula", "np.exp(y / 100) ~ age", "--family", "gaussian"]
    assert cli.main([*arguments, "--out", str(tmp_path), "--no-progress"]) == 0
    with xr.open_dataset(tmp_path / "rhale-effects.nc") as effect:
        assert effect["feature"].values.tolist() == ["age"]
        assert effect.attrs["output_name"] == "np.exp(y / 100)"


def test_families_are_checked(data):
    with pytest.raises(SystemExit, match="2"):
        cli.main(["fit", str(data), "--formula", "y ~ age", "--family", "cauchy"])


def test_many_features_are_drawn_as_curves(rng, tmp_path):
    frame = pd.DataFrame(rng.normal(size=(200, 6)), columns=list("abcdey"))
    frame.to_csv(tmp_path / "six.csv", index=False)
    formula = "y ~ a + b + c + d + e"
    arguments = ["fit", str(tmp_path / "six.csv"), "--formula", formula, "--family", "gaussian"]
    assert cli.main([*arguments, "--out", str(tmp_path), "--no-progress"]) == 0
    assert (tmp_path / "rhale-effects.png").exists()


def test_version_is_one():
    assert (
        rs.__version__
        in rs.rhale(rs.local_effects(None, [[0.0], [1.0]], jacobian=[[1.0], [2.0]])).attrs[
            "software"
        ]
    )
