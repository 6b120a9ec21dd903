"""The command line: the main job, a user's data, and what it says when it cannot."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
import xarray as xr

import rhale_stats as rs
from rhale_stats import files
from rhale_stats.cli import jobs
from rhale_stats.cli.jobs import Figure, sm
from rhale_stats.cli.main import main
from tests import commands
from tests.helpers import in_turn


@pytest.fixture
def data(rng, tmp_path):
    frame = pd.DataFrame({"age": rng.uniform(20, 70, 300), "sex": ["f", "m"] * 150})
    frame["time spent"] = rng.uniform(0, 1, 300)
    slope = np.where(frame["sex"] == "f", 0.5, -0.5)
    frame["y"] = slope * frame["age"] + frame["time spent"] ** 2 + rng.normal(size=300)
    frame.loc[[3, 8], "age"] = np.nan
    frame["unused"] = rng.normal(size=300)
    frame["day"] = rng.integers(1, 30, 300)
    frame["kids"] = rng.integers(0, 3, 300)
    frame["df"] = rng.normal(size=300)
    frame["one"] = 1.0
    path = tmp_path / "data.csv"
    frame.to_csv(path, index=False)
    return path


@pytest.mark.slow
def test_main_job(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["demo"]) == 0
    out, err = capsys.readouterr()
    assert "RHALE: effects on visits" in out
    assert "rhale-effects.nc: " in out
    assert "rhale-effects.png: " in out
    # Many rows have lpi = 0 or fmde = 0, and none is between that and 2.4: no jump of the model.
    assert "Warning" not in err
    assert "done" in err
    with xr.open_dataset(tmp_path / "rhale-effects.nc") as effect:
        assert effect["feature"].values.tolist() == ["disea", "lpi", "fmde"]
        assert effect["n_obs"].sum("bin").values.tolist() == [20190] * 3
        assert effect["curve_se"].attrs["source"] == "rows and parameters"
        # A model of 36 parameters is known less well than its average over 20,190 rows.
        parts = effect["average_effect_se_model"], effect["average_effect_se_rows"]
        assert (parts[0] > 3 * parts[1]).all()
    assert "Uncertainty: rows and parameters" in " ".join(out.split())
    assert "P>|t|" in out
    assert "model as given" not in out
    assert (tmp_path / "rhale-effects.png").stat().st_size > 10_000


@pytest.fixture
def fit(monkeypatch, tmp_path):
    """Fit a formula to a file: the effects that would be saved. To draw and save takes longest."""
    found = []
    monkeypatch.setattr(jobs, "_draw", lambda effect, local: None)
    save = jobs._save

    def saved(figure, paths, effect, table):
        found.append(effect) if figure is None else save(figure, paths, effect, table)

    monkeypatch.setattr(jobs, "_save", saved)

    def fit(path, formula, *words):
        words = ["fit", str(path), "--formula", formula, "--no-progress", *words]
        assert main([*words, "--out", str(tmp_path)]) == 0
        return found[0]

    return fit


FORMULA = 'y ~ bs(age, df=4) * sex + Q("time spent")'


@pytest.mark.thorough
def test_fit_on_a_users_csv(data, tmp_path, capsys):
    arguments = ["fit", str(data), "--formula", FORMULA, "--family", "gaussian"]
    assert main([*arguments, "--out", str(tmp_path / "new" / "folder"), "--no-progress"]) == 0
    out, err = capsys.readouterr()
    assert "2 of 300 rows have missing values and are dropped." in out
    assert err == ""
    with xr.open_dataset(tmp_path / "new" / "folder" / "rhale-effects.nc") as effect:
        assert effect["feature"].values.tolist() == ["age", "time spent"]
        assert effect.attrs["n_rows"] == 298
        # Slopes of plus and minus a half, mixed half and half.
        assert float(effect["heterogeneity_output"][0]) == pytest.approx(0.5 * 14.4, rel=0.2)


@pytest.mark.thorough
def test_fit_on_parquet_and_chosen_features(data, tmp_path, capsys, fit):
    pytest.importorskip("pyarrow")
    parquet = tmp_path / "data.parquet"
    pd.read_csv(data).to_parquet(parquet)
    effect = fit(parquet, FORMULA, "--family", "gaussian", "--features", "age")
    assert effect["feature"].values.tolist() == ["age"]
    assert "RHALE: effects on y" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"data": "nowhere.csv"}, "DATA must be an existing file; there is no nowhere.csv"),
        ({"--formula": "y + age"}, "--formula must look like 'y ~ x1 . x2'; got 'y . age'"),
        ({"--formula": "z ~ q"}, "--formula must name columns of the data; 'z ~ q' names none of"),
        ({"--formula": "~ age"}, "--formula must look like .*no outcome before a '~'"),
        ({"--formula": "y ~ 1"}, "--formula must name columns .*names y of age.* Name an outcome"),
        (
            {"--formula": "y ~ age +"},
            "--formula must look like .*; got 'y ~ age .': expected",
        ),
        ({"--formula": "y ~ agee"}, ".* Did you mean age[?] Name an outcome .*"),
        ({"--formula": "y ~ log(age)"}, ".*'log' is not defined. Did you mean np.log.*"),
        (
            {"--formula": "y ~ age + f(sex)"},
            "--formula must be made of .*'f' is not defined. The",
        ),
        (
            {"--formula": "y ~ age + siz"},
            "--formula must be made of .*'siz' is not defined. The",
        ),
        (
            {"--formula": "y ~ sex"},
            "--formula must have a continuous regressor.*got sex .categ",
        ),
        ({"--formula": "y ~ kids"}, "--formula must have .*kids .3 distinct.*: --features kids"),
        ({"--formula": "y ~ C(kids)"}, "--formula must have a continuous regressor.*kids .categor"),
        (
            {"--formula": "y ~ one"},
            "--formula must have a continuous regressor; got one .const",
        ),
        ({"--formula": "sex ~ age"}, r"--formula must have an outcome of numbers; sex .*np.where"),
        (
            {"--formula": "y ~ df + np.log(df * 0)"},
            "--formula must give finite numbers in every row",
        ),
        ({"--family": "gamma"}, "--family gamma needs an outcome of numbers above 0; y has values"),
        ({"--family": "cauchy"}, "argument --family: invalid choice: 'cauchy' .*'binomial', "),
        ({"--family": "binomial"}, "--family binomial needs an outcome of numbers from 0 to 1; y"),
        ({"--features": "size"}, "--features must be columns of .*; got size. It has age, sex"),
        ({"--features": "sex"}, "--features must be numeric regressors of .* are age; got sex."),
        ({"--features": "unused"}, "--features must be numeric .* are age; got unused."),
        ({"--out": __file__}, "--out must be a folder in which .*; got .*File exists. Choose"),
        ({"--out": f"{__file__}/x"}, "--out must be a folder in which .*Not a directory. Choose"),
        ({"--what": "x"}, "unrecognized arguments: --what x. .*--help"),
        ({"--target": "y"}, "unrecognized arguments: --target y. Did you mean --formula 'y ~ x1"),
        ({"--formula": "y ~ ."}, "--formula must look like .* Name the columns: y ~ age . sex"),
        ({"--groups": "clinic"}, "--groups must be a column of .*; got clinic. It has age, sex"),
        ({"--groups": "one"}, "--groups must name a column of at least two groups; one has the"),
        ({"--groups": "df"}, "--groups must name a column that several rows share; df has anoth"),
        ({"--refits": "1"}, "--refits must be at least 2; got 1."),
        ({"--uncertainty": "none"}, "argument --uncertainty: invalid choice: 'none' .*'rows', "),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")
def test_what_cannot_be_done_is_said_in_a_line_before_the_fit(
    data, tmp_path, capsys, monkeypatch, change, message
):
    # reliability.md 17; users.md, command line.
    monkeypatch.setattr(jobs.rs, "local_effects", None)
    options = {"--formula": "y ~ age", "--out": str(tmp_path / "out")} | change
    path = options.pop("data", str(data))
    flat = [word for pair in options.items() for word in pair]
    assert status(["fit", path, *flat, "--no-progress"]) == 2
    error = capsys.readouterr().err
    assert re.fullmatch(f"rhale-stats: {message}.*\n", error), error


def status(words):
    """Exit status of a command, also where argparse ends it."""
    try:
        return main(words)
    except SystemExit as end:
        return end.code


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.csv", b"", "No columns to parse"),
        ("binary.csv", b"\xff\xfe\x00\x81", "UnicodeDecodeError"),
        ("ragged.csv", b"a,b\n1,2\n1,2,3\n", "Expected 2 fields"),
        ("text.parquet", b"y,age", "[Pp]arquet"),
        ("broken.csv.gz", b"\x1f\x8b\x08\x00", ""),
        ("folder.csv", None, "directory"),
    ],
)
def test_data_that_cannot_be_read(tmp_path, capsys, name, content, message):
    path = tmp_path / name
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    assert main(["fit", str(path), "--formula", "y ~ age"]) == 2
    error = capsys.readouterr().err
    assert re.fullmatch(f"rhale-stats: DATA must be .*{name}.*{message}.*\n", error), error


def test_data_without_a_complete_row(tmp_path, capsys):
    (tmp_path / "gaps.csv").write_text("y,x\n1,\n,2\n")
    assert main(["fit", str(tmp_path / "gaps.csv"), "--formula", "y ~ x"]) == 2
    assert "DATA must have rows without missing values in y, x; " in capsys.readouterr().err


def test_infinite_values_are_counted(data, capsys):
    frame = pd.read_csv(data)
    frame.loc[:1, "time spent"] = np.inf
    frame.to_csv(data, index=False)
    arguments = ["fit", str(data), "--formula", FORMULA, "--no-progress", "--out", str(data.parent)]
    assert main(arguments) == 2
    assert "--formula must give finite numbers in every row; " in (error := capsys.readouterr().err)
    assert "in 2 of 298 rows. Remove these rows from DATA" in error


def test_errors_of_the_computation_are_a_line(data, tmp_path, capsys, monkeypatch):
    def fail(*args, **keywords):
        raise np.linalg.LinAlgError("SVD did not\nconverge")

    arguments = ["fit", str(data), "--formula", "y ~ age", "--out", str(tmp_path), "--no-progress"]
    monkeypatch.setattr(jobs.rs, "std_error", fail)
    assert main(arguments) == 1
    assert capsys.readouterr().err == "rhale-stats: LinAlgError: SVD did not converge\n"
    monkeypatch.setattr(sm.GLM, "fit", fail)
    assert main(arguments) == 1
    error = capsys.readouterr().err
    assert re.fullmatch("rhale-stats: statsmodels could not fit 'y ~ age' .*: SVD did .*\n", error)


@pytest.mark.filterwarnings("always")
def test_warnings_are_a_line_each(data, capsys, monkeypatch, fit):
    std_error = rs.std_error

    def warn(*args, **options):
        warnings.warn("first line\nsecond line", stacklevel=2)
        return std_error(*args, **options)

    monkeypatch.setattr(jobs.rs, "std_error", warn)
    fit(data, "y ~ age")
    assert "Warning: first line second line\n" in capsys.readouterr().err


# Which features ----------------------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("formula", "features", "left_out"),
    [
        ("y ~ age", ["age"], None),
        ("y ~ age + C(day)", ["age"], "day (categorical)"),
        ("y ~ C(day, Treatment(2)) * age + age:np.sin(day * age)", ["age"], "day (categorical)"),
        ("y ~ day + I(day ** 2) + sex", ["day"], "sex (categorical)"),
        (
            "day ~ age + kids",
            ["age"],
            "kids (3 distinct values). To include them: --features age kids",
        ),
        ("y ~ bs(df, df=4)", ["df"], None),
        ("np.log(age) ~ day", ["day"], None),
        ("I(y - age) ~ age", ["age"], None),
        ('y ~ age + Q("time spent")', ["age", "time spent"], None),
    ],
)
def test_features_are_the_continuous_regressors_of_the_formula(
    data, capsys, fit, formula, features, left_out
):
    # users.md: the outcome and columns that are not in the formula were taken; C(season) raised.
    assert fit(data, formula)["feature"].values.tolist() == features
    out, err = capsys.readouterr()
    assert err == ""
    if left_out is None:
        assert "left out" not in out
    else:
        assert f"\nFeatures left out: {left_out}.\n" in out


def test_types_that_may_hold_missing_values(data, tmp_path, fit):
    pytest.importorskip("pyarrow")
    frame = pd.read_csv(data)
    frame["old"] = (frame["age"] > 40).astype("boolean").mask(frame.index == 0)
    frame["day"] = frame["day"].astype("Int64")
    frame["df"] = frame["df"].astype("double[pyarrow]")
    frame.to_parquet(tmp_path / "data.parquet")
    effect = fit(tmp_path / "data.parquet", "y ~ old + day + df + sex")
    assert effect["feature"].values.tolist() == ["day", "df"]
    assert effect.attrs["n_rows"] == 299


@pytest.mark.thorough
def test_discrete_regressors_can_be_asked_for(data, fit):
    effect = fit(data, "y ~ age + kids", "--features", "kids", "kids")
    assert effect["feature"].values.tolist() == ["kids"]


@pytest.mark.thorough
def test_the_default_family_is_said(data, capsys, fit):
    fit(data, "y ~ age")
    by_default = capsys.readouterr().out
    assert "Family: gaussian (default). --family also takes binomial, gamma, " in by_default
    fit(data, "y ~ age", "--family", "gaussian")
    assert capsys.readouterr().out == re.sub("Family: .*\n", "", by_default)


@pytest.mark.thorough
def test_successes_and_failures_are_an_outcome_of_two_columns(rng, tmp_path, fit):
    """The average slope is that of logistic regression: beta p (1 - p), over the rows."""
    frame = pd.DataFrame({"x": rng.normal(size=200), "won": rng.integers(0, 5, 200)})
    frame["lost"] = 5 - frame["won"]
    frame.to_csv(tmp_path / "games.csv", index=False)
    effect = fit(tmp_path / "games.csv", "won + lost ~ x", "--family", "binomial")
    X = sm.add_constant(frame["x"])
    known = sm.GLM(frame[["won", "lost"]], X, family=sm.families.Binomial()).fit()
    expected = np.mean(known.params["x"] * known.fittedvalues * (1 - known.fittedvalues))
    assert float(effect["average_effect"][0]) == pytest.approx(expected, rel=1e-4)


@pytest.mark.thorough
def test_a_transformed_outcome_is_no_feature(data, fit):
    effect = fit(data, "np.exp(y / 100) ~ age", "--family", "gaussian")
    assert effect["feature"].values.tolist() == ["age"]
    assert effect.attrs["output_name"] == "np.exp(y / 100)"


# How sure ----------------------------------------------------------------------------------------


def by_hand(data, formula, column=None, uncertainty="both"):
    """The same effects by the functions of the package, from a file, with a clustered fit."""
    frame = pd.read_csv(data).dropna(subset="age").reset_index(drop=True)
    how, groups = {}, None
    if column is not None:
        groups = frame[column]
        codes = pd.factorize(groups)[0]
        how = {"cov_type": "cluster", "cov_kwds": {"groups": codes}}
    model = smf.glm(formula, frame).fit(**how)
    local = rs.local_effects(model, frame, features=["age"])
    held = {} if uncertainty == "rows" else {"model": model, "X": frame, "uncertainty": uncertainty}
    return rs.std_error(rs.rhale(local), local, groups=groups, **held), model


@pytest.mark.parametrize(
    ("uncertainty", "column"), in_turn(["both", "rows", "parameters"], [None, "day"])
)
def test_standard_errors_are_those_of_the_functions(data, capsys, fit, column, uncertainty):
    formula = "y ~ age + np.power(age, 2) + sex"
    words = [] if column is None else ["--groups", column]
    words += [] if uncertainty == "both" else ["--uncertainty", uncertainty]
    effect = fit(data, formula, *words)
    expected, model = by_hand(data, formula, column, uncertainty)
    for name in ("effect_se", "curve_se", "average_effect_se", "heterogeneity_se"):
        np.testing.assert_allclose(effect[name], expected[name], rtol=1e-9)
        assert effect[name].attrs["source"] == expected[name].attrs["source"]
    rows = "rows" if column is None else "rows in 29 groups"
    source = {"rows": rows, "parameters": "parameters", "both": f"{rows} and parameters"}
    assert effect["effect_se"].attrs["source"] == source[uncertainty]
    out = capsys.readouterr().out
    assert ("P>|t|" in out) == (uncertainty != "rows")
    assert ("model as given" in out) == (uncertainty == "rows")
    if uncertainty == "parameters":
        # The slope at the mean age, by the covariance of the fit.
        mean = np.array([0.0, 0.0, 1.0, 2 * pd.read_csv(data)["age"].mean()])
        se = np.sqrt(mean @ model.cov_params().values @ mean)
        assert float(effect["average_effect_se"][0]) == pytest.approx(se, rel=1e-6)


def test_rows_without_a_group_are_dropped(data, capsys, fit):
    frame = pd.read_csv(data)
    frame.loc[20:24, "day"] = np.nan
    frame.to_csv(data, index=False)
    effect = fit(data, "y ~ age", "--groups", "day")
    assert effect.attrs["n_rows"] == 293
    assert "7 of 300 rows have missing values and are dropped." in capsys.readouterr().out


@pytest.mark.thorough
def test_the_file_of_bins_says_the_source(data, tmp_path):
    arguments = ["fit", str(data), "--formula", "y ~ age * sex", "--groups", "day"]
    assert main([*arguments, "--out", str(tmp_path / "out"), "--no-progress"]) == 0
    table = pd.read_csv(tmp_path / "out" / "rhale-effects.csv")
    with xr.open_dataset(tmp_path / "out" / "rhale-effects.nc") as effect:
        assert table["uncertainty"].unique().tolist() == [effect["effect_se"].attrs["source"]]
        expected = rs.tidy(effect)
    assert table["estimand"].unique().tolist() == ["average along the bin"]
    pd.testing.assert_frame_equal(table.drop(columns=["estimand", "uncertainty"]), expected)


def test_refits_are_those_of_the_functions(data, capsys, monkeypatch, tmp_path, fit):
    # In this process: to start others takes longest.
    refit = partial(rs.bootstrap_refit, n_jobs=1)
    monkeypatch.setattr(jobs.rs, "bootstrap_refit", refit)
    fit(data, "y ~ age", "--refits", "6", "--groups", "day")
    out = capsys.readouterr().out
    assert re.search(r"Uncertainty:\s+refits, groups of rows", out)
    assert "rhale-refits.png: their curves" in out
    assert "rhale-refits.nc: the effects of 6 models, each fitted to a sample of the rows.\n" in out

    def slope(rows):
        model = smf.glm("y ~ age", rows).fit()
        return rs.rhale(rs.local_effects(model, rows, features=["age"]))

    frame = pd.read_csv(data).dropna(subset="age").reset_index(drop=True)
    expected = refit(slope, frame, n_resamples=6, groups=frame["day"], rng=0)
    with xr.open_dataset(tmp_path / "rhale-refits.nc") as found:
        np.testing.assert_allclose(found["average_effect"], expected["average_effect"])
        assert np.ptp(found["average_effect"].values) > 0


def test_many_features_are_drawn_as_curves(rng, tmp_path, monkeypatch):
    figures = []
    monkeypatch.setattr(
        Figure,
        "savefig",
        lambda figure, path, **options: figures.append(figure) or path.touch(),
    )
    frame = pd.DataFrame(rng.normal(size=(200, 6)), columns=list("abcdey"))
    frame.to_csv(tmp_path / "six.csv", index=False)
    formula = "y ~ a + b + c + d + e"
    arguments = ["fit", str(tmp_path / "six.csv"), "--formula", formula, "--family", "gaussian"]
    assert main([*arguments, "--out", str(tmp_path), "--no-progress"]) == 0
    (figure,) = figures
    assert len(figure.axes) == 5
    for panel in figure.axes:
        assert all(np.isfinite(line.get_ydata()).all() for line in panel.lines)


def test_version_is_one():
    local = rs.local_effects(None, [[0.0], [1.0]], jacobian=[[1.0], [2.0]])
    assert rs.__version__ in rs.rhale(local, bins=rs.EqualWidthBins(1)).attrs["software"]


# Help --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--version"], f"rhale-stats {rs.__version__}"),
        (["--help"], "COMMAND"),
        (["fit", "--help"], "Formulas are evaluated as Python code"),
    ],
)
def test_help(capsys, words, text):
    # reliability.md, security: that formulas run code was said nowhere.
    with pytest.raises(SystemExit) as end:
        main(words)
    assert end.value.code == 0
    assert text in " ".join(capsys.readouterr().out.split())


# Files are whole or not there, and Ctrl-C ends all -----------------------------------------------


def test_a_full_disk_leaves_earlier_results(data, tmp_path, capsys):
    # reliability.md 5. A limit on the size of files acts as a full disk does.
    resource = pytest.importorskip("resource")
    out = tmp_path / "out"
    arguments = ["fit", str(data), "--formula", "y ~ age", "--out", str(out), "--no-progress"]
    assert main(arguments) == 0
    before = {file: file.read_bytes() for file in out.iterdir()}
    assert len(before) == 3
    capsys.readouterr()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5_000, limits[1]))
    try:
        ended = main([*arguments, "--features", "age"])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert ended == 1
    error = capsys.readouterr().err
    message = "rhale-stats: .* could not be written: File too large. Existing .* --out.\n"
    assert re.fullmatch(message, error), error
    assert {file: file.read_bytes() for file in out.iterdir()} == before


def test_links_to_files_stay_links(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "a.nc").symlink_to(tmp_path / "there" / "b.nc")
    with files.whole(tmp_path / "a.nc") as unfinished:
        assert unfinished.parent == tmp_path / "there"
        unfinished.write_text("text")
    assert (tmp_path / "a.nc").is_symlink()
    assert (tmp_path / "there" / "b.nc").read_text() == "text"


def test_folders_in_the_place_of_files_are_found_before_the_fit(data, tmp_path, capsys):
    (tmp_path / "rhale-effects.nc").mkdir()
    arguments = ["fit", str(data), "--formula", "y ~ age", "--out", str(tmp_path), "--no-progress"]
    assert main(arguments) == 2
    assert "rhale-effects.nc is a folder, not a file" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")
@pytest.mark.slow
def test_an_interrupted_fit_ends_soon_with_one_line_and_no_files(data, tmp_path):
    """Also where the signal is swallowed first; `test_explain` has one that ends at once."""
    # users.md: Ctrl-C printed 33 lines. Half of a file has been written when it comes.
    out, waiting = tmp_path / "out", tmp_path / "waiting"
    out.mkdir()
    waiting.mkdir()
    before = f"""
from rhale_stats.cli import jobs

def half_written(figure, path, **keywords):
    path.write_text("half")
    commands.wait_to_be_ended(Path({str(waiting)!r}), True)

jobs.Figure.savefig = half_written
"""
    words = ["fit", data, "--formula", "y ~ age", "--out", out, "--no-progress"]
    process = commands.start(tmp_path, *words, before=before)
    commands.until(lambda: any(waiting.iterdir()), process)
    assert len(list(out.iterdir())) == 1  # the picture comes first
    start = time.monotonic()
    ended, error = commands.interrupted(process)
    assert time.monotonic() - start < 30
    assert (ended, error.strip()) == (130, "rhale-stats: interrupted.")
    assert not list(out.iterdir())


def test_output_that_nobody_reads_to_its_end_is_no_error():
    script = """
import sys, types
from rhale_stats.cli import main
# Whatever the job prints: that of the first command, without what it computes.
jobs = types.SimpleNamespace(rand_job=lambda arguments: print("a line"))
sys.modules["rhale_stats.cli.jobs"] = jobs
sys.exit(main.main(["demo"]))
"""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-c", script],
            stdout=writing,
            stderr=subprocess.PIPE,
            timeout=commands.PATIENCE,
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (1, b"")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")
def test_ctrl_c_while_the_command_is_loading_is_a_line(tmp_path):
    # The first import of the command line: what the package itself imports came before.
    script = """
import builtins, os, signal, sys
import rhale_stats
from rhale_stats.__main__ import run

original = builtins.__import__

def interrupted(name, *others, **keywords):
    if name == "rhale_stats.cli.main":
        os.kill(os.getpid(), signal.SIGINT)
    return original(name, *others, **keywords)

signal.signal(signal.SIGINT, signal.default_int_handler)
builtins.__import__ = interrupted
sys.exit(run())
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, timeout=commands.PATIENCE
    )
    assert (done.returncode, done.stderr) == (130, b"rhale-stats: interrupted.\n")
