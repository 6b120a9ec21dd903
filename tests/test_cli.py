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
from rhale_stats import cli, studies
from tests.studies import toy_study


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


@pytest.fixture
def study(monkeypatch, tmp_path):
    """Command line of the toy study, which is the only one, up to its options."""
    monkeypatch.setattr(studies, "STUDIES", {"toy": toy_study.__name__})
    return ["study", "toy", "--jobs", "1", "--no-progress", "--out", str(tmp_path / "out")]


def test_study(study, tmp_path, capsys):
    arguments = [*study, "--quick", "--settings", "failing", "--seed", "3"]
    assert cli.main(arguments) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.startswith("# Means of normal numbers\n")
    assert "study toy --quick --settings failing --replicates 4 --seed 3" in out
    assert "![" not in out
    stem = tmp_path / "out" / "toy-failing-quick"
    assert f"\n{stem}.nc: the results, " in out
    assert f"\n{stem}.md: this report.\n{stem}.png: its figure.\n" in out
    with xr.open_dataset(f"{stem}.nc") as results:
        assert results.sizes["replicate"] == 4
        assert results.attrs["seed"] == 3
    assert "![Means of normal numbers](toy-failing-quick.png)" in stem.with_suffix(".md").read_text(
        encoding="utf-8"
    )
    assert stem.with_suffix(".png").exists()


def test_study_goes_on_where_it_was_interrupted(study, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv(toy_study.INTERRUPT, "50")
    assert cli.main(study) == 130
    assert capsys.readouterr().err == (
        "rhale-stats: interrupted. The same command again goes on where this one stopped.\n"
    )
    monkeypatch.delenv(toy_study.INTERRUPT)
    toy_study.calls.clear()
    assert cli.main([*study, "--replicates", "13"]) == 0
    assert toy_study.calls == [5] + [50] * 13


def test_studies_are_listed(study, capsys):
    assert cli.main(["study", "--list"]) == 0
    assert capsys.readouterr().out == "toy  Means of normal numbers\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--jobs", "0"], "jobs must be at least 1; got 0."),
        (["--replicates", "0"], "n_replicates must be at least 1; got 0."),
        (["--seed", "-1"], "seed must be at least 0; got -1."),
        (["--settings", "a/b"], "settings must be one of .*; got 'a/b'."),
        (["--data", "nowhere.csv"], "--data must be an existing file; there is no nowhere.csv."),
        (["--data", __file__], "data must not be given"),
    ],
)
def test_studies_that_cannot_be_run(study, capsys, options, message):
    assert cli.main([*study, *options]) == 2
    error = capsys.readouterr().err
    assert re.match(f"rhale-stats: {message}", error), error


@pytest.mark.parametrize(
    ("words", "got"), [(["study"], "none"), (["study", "unknown", "--quick"], "unknown")]
)
def test_unknown_studies(study, capsys, words, got):
    assert cli.main(words) == 2
    assert f"NAME must be one of toy; got {got}. --list" in capsys.readouterr().err


def test_results_of_another_seed_are_not_mixed(study, capsys):
    assert cli.main([*study, "--replicates", "1"]) == 0
    assert cli.main([*study, "--replicates", "1", "--seed", "1"]) == 2
    assert "seed is 0 there, 1 asked for. Choose another folder" in capsys.readouterr().err
