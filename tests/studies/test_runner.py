"""The runner of studies: the same numbers however they are computed, and nothing dropped."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr

import studies
from rhale_stats import files
from studies import Options, Output, Scenario, runner
from studies.report import PRINTED, mean_table, render, save
from tests.studies import toy_study

TOY = toy_study.NAME
RUNS = ("scenario", "replicate")


@pytest.fixture(autouse=True)
def toy(monkeypatch):
    """The toy study, known by its name, and as it is with default options."""
    monkeypatch.setitem(studies.STUDIES, TOY, toy_study.__name__)
    toy_study.calls.clear()
    return toy_study.study(Options())


def run(settings=None, **keywords):
    return studies.run(TOY, Options(settings=settings), **{"jobs": 1, "progress": False} | keywords)


def test_results_are_labelled():
    results = run(seed=3)
    assert results.sizes == {"scenario": 2, "replicate": 12, "level": 3}
    assert results["mean"].dims == RUNS
    assert results["quantile"].dims == (*RUNS, "level")
    assert results["quantile"].attrs == {"long_name": "empirical quantile", "units": "cm"}
    assert results["scenario"].values.tolist() == ["few", "many"]
    assert results["replicate"].values.tolist() == list(range(12))
    assert results["level"].values.tolist() == list(toy_study.LEVELS)
    assert results["n"].dims == ("scenario",)
    assert results["n"].values.tolist() == [5, 50]
    assert results["sd"].values.tolist() == [1.0, 2.0]
    assert "only_here" not in results.variables
    assert '"only_here": 1' in results["parameters"].values[0]
    assert results["done"].dtype == np.int8
    assert (results["done"] == 1).all()
    assert (results["failure"] == "").all()
    attrs = results.attrs
    assert (attrs["study"], attrs["quick"], attrs["settings"], attrs["seed"]) == (TOY, 0, "", 3)
    assert attrs["software"].startswith("rhale_stats ")
    assert attrs["numpy"] == np.__version__


def test_replicates_are_those_of_their_own_seeds_and_the_context():
    results = run(seed=7)
    for scenario, n, sd in ((0, 5, 1.0), (1, 50, 2.0)):
        for number in range(12):
            seeds = np.random.SeedSequence(7, spawn_key=(scenario, number))
            x = toy_study.SHIFT + sd * np.random.default_rng(seeds).normal(size=n)
            assert results["mean"].values[scenario, number] == x.mean()
    assert len(np.unique(results["mean"])) == 24
    assert not (run(seed=8)["mean"] == results["mean"]).any()


def test_more_replicates_extend_fewer():
    few, many = run(n_replicates=3), run(n_replicates=5)
    xr.testing.assert_identical(many.isel(replicate=slice(3)), few)


def test_mixed_parameters_stay_out_of_the_coordinates(toy, monkeypatch):
    scenarios = (Scenario("a", {"p": 1, "n": np.int64(2)}), Scenario("b", {"p": "x", "n": 3}))
    mixed = dataclasses.replace(toy, scenarios=scenarios)
    empty = runner._empty(mixed, Options(), 0, 1)
    assert "p" not in empty.variables
    assert empty["parameters"].values.tolist() == ['{"n": 2, "p": 1}', '{"n": 3, "p": "x"}']
    assert empty["n"].values.tolist() == [2, 3]


# Several processes -------------------------------------------------------------------------------


@pytest.mark.slow
def test_processes_give_the_same_numbers_also_after_an_interruption(tmp_path, monkeypatch, capfd):
    path = tmp_path / "toy.nc"
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    monkeypatch.setenv(toy_study.INTERRUPT, "50")
    with pytest.raises(KeyboardInterrupt):
        run("failing", jobs=2, path=path)
    monkeypatch.delenv(toy_study.INTERRUPT)
    assert os.environ["OMP_NUM_THREADS"] == "3"
    assert "OPENBLAS_NUM_THREADS" not in os.environ
    assert not toy_study.calls  # all in other processes
    resumed = run("failing", path=path)
    assert 50 in toy_study.calls
    xr.testing.assert_identical(resumed, run("failing"))
    assert capfd.readouterr().err == ""


def test_a_second_process_on_the_same_file_is_refused(tmp_path):
    # reliability.md 6: each deleted what the other was writing.
    path = tmp_path / "toy.nc"
    whole = run(path=path, n_replicates=1)
    with (
        files.locked(path),
        pytest.raises(RuntimeError, match=f"toy.nc must not be .*process {os.getpid()} on .* Wait"),
    ):
        run(path=path)
    xr.testing.assert_identical(run(path=path, n_replicates=1), whole)


def test_a_lock_that_was_removed_in_between_is_taken_anew(tmp_path, monkeypatch):
    path = tmp_path / "toy.nc"
    take = files._take

    def take_late(file, of):
        # The process that held it has just ended, and removed it.
        monkeypatch.setattr(files, "_take", take)
        (tmp_path / "toy.nc.lock").unlink()
        take(file, of)

    monkeypatch.setattr(files, "_take", take_late)
    with files.locked(path):
        assert str(os.getpid()) in (tmp_path / "toy.nc.lock").read_text()
        with pytest.raises(files.LockedError, match=str(os.getpid())), files.locked(path):
            pass
    assert not list(tmp_path.iterdir())


def test_chunks_are_of_one_scenario_and_leave_out_what_is_done():
    done = np.array([[0, 1, 0, 0], [1, 1, 1, 1], [1, 1, 0, 1]], dtype=np.int8)
    chunks = [(chunk.scenario, chunk.replicates) for chunk in runner._chunks(done, 2)]
    assert chunks == [(0, (0, 2)), (0, (3,)), (2, (2,))]


# The file ----------------------------------------------------------------------------------------


def test_round_trip(tmp_path):
    path = tmp_path / "new" / "folder" / "toy.nc"
    results = run("failing", path=path)
    with xr.open_dataset(path) as held:
        xr.testing.assert_identical(held.load(), results)
    assert [file.name for file in path.parent.iterdir()] == ["toy.nc"]


def test_resumption_runs_only_what_is_missing(tmp_path, monkeypatch):
    path = tmp_path / "toy.nc"
    whole = run()
    toy_study.calls.clear()
    monkeypatch.setenv(toy_study.INTERRUPT, "50")
    with pytest.raises(KeyboardInterrupt):
        run(path=path)
    with xr.open_dataset(path) as held:
        assert held["done"].sum("replicate").values.tolist() == [12, 0]
    monkeypatch.delenv(toy_study.INTERRUPT)
    toy_study.calls.clear()
    xr.testing.assert_identical(run(path=path), whole)
    assert toy_study.calls == [50] * 12
    xr.testing.assert_identical(run(path=path), whole)
    assert len(toy_study.calls) == 12


def test_resumption_after_a_kill_between_two_savings(tmp_path):
    path = tmp_path / "toy.nc"
    whole = run("failing", path=path)
    half = whole.copy(deep=True)
    half["done"].values[:, 1::2] = 0
    half["mean"].values[:, 1::2] = np.nan
    half["quantile"].values[:, 1::2] = np.nan
    half["failure"].values[:, 1::2] = ""
    half.to_netcdf(path)
    toy_study.calls.clear()
    xr.testing.assert_identical(run("failing", path=path), whole)
    assert toy_study.calls == [5] * 6 + [50] * 6


def test_more_and_fewer_replicates_than_the_file_holds(tmp_path):
    path = tmp_path / "toy.nc"
    run(path=path, n_replicates=2)
    toy_study.calls.clear()
    more = run(path=path, n_replicates=4)
    assert toy_study.calls == [5, 5, 50, 50]
    xr.testing.assert_identical(more, run(n_replicates=4))
    xr.testing.assert_identical(run(path=path, n_replicates=1), more)


def test_the_file_is_saved_on_the_way(tmp_path, monkeypatch):
    saved = []
    original = files.Checkpoint.save

    def save_and_note(file, results):
        saved.append(int(results["done"].sum()))
        original(file, results)

    monkeypatch.setattr(files.Checkpoint, "save", save_and_note)
    run(path=tmp_path / "a.nc", n_replicates=2)
    assert saved == [0, 4]
    saved.clear()
    monkeypatch.setattr(files, "SAVE_SECONDS", 0.0)
    monkeypatch.setattr(files, "SAVE_SHARE", 0)
    run(path=tmp_path / "b.nc", n_replicates=2)
    assert saved == [0, 1, 2, 3, 4, 4]


def test_a_failed_saving_leaves_the_file_whole(tmp_path, monkeypatch):
    path = tmp_path / "toy.nc"
    results = run(path=path, n_replicates=1)

    def full(path, data):
        path.write_text("half")
        raise OSError("no space left")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="no space left"):
        run(path=path, n_replicates=2)
    with xr.open_dataset(path) as held:
        xr.testing.assert_identical(held.load(), results)
    assert [file.name for file in tmp_path.iterdir()] == ["toy.nc"]


def test_versions_of_a_resumed_run_are_all_named(tmp_path):
    path = tmp_path / "toy.nc"
    run(path=path, n_replicates=1).assign_attrs(numpy="1.0").to_netcdf(path)
    assert run(path=path, n_replicates=2).attrs["numpy"] == f"1.0, {np.__version__}"
    assert run(path=path, n_replicates=2).attrs["numpy"] == f"1.0, {np.__version__}"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"attrs": {"study": "other"}}, "study is other there, toy asked for"),
        ({"attrs": {"seed": 5, "settings": "x"}}, "settings is x there, '' .*; seed is 5 there, 0"),
        ({"attrs": {"quick": 1}}, "quick is 1 there, 0 asked for"),
        ({"attrs": {"data": "a.csv"}}, "data is a.csv there, '' asked for"),
        ({"coords": {"scenario": ["few", "more"]}}, r"scenario is \['few', 'more'\] .* there"),
        ({"coords": {"level": [0.1, 0.5, 0.75]}}, r"level is \[0.1, 0.5, 0.75\] .* there"),
        ({"coords": {"n": ("scenario", [5, 51])}}, r"n is \[5, 51\] over \(scenario\) there"),
        ({"vars": {"median": (RUNS, np.zeros((2, 1)))}}, "median is over .* there, missing asked"),
        ({"vars": {"mean": ("scenario", [1, 2])}}, r"mean is over \(scenario\) there, over \(sce"),
    ],
)
def test_a_file_of_something_else_is_refused(tmp_path, change, message):
    path = tmp_path / "toy.nc"
    other = run(n_replicates=1).assign_attrs(change.get("attrs", {}))
    other = other.assign_coords(change.get("coords", {})).assign(change.get("vars", {}))
    other.to_netcdf(path)
    with pytest.raises(ValueError, match=message) as caught:
        run(path=path)
    assert "toy.nc differs: " in str(caught.value)
    assert "Choose another folder, or delete the file." in str(caught.value)


def test_long_differences_are_cut():
    assert runner._short("x" * 201) == "x" * 200 + "..."


def test_a_file_that_is_no_netcdf_is_refused(tmp_path):
    (tmp_path / "toy.nc").write_text("text")
    with pytest.raises(ValueError, match="toy.nc cannot be read: .*delete the file"):
        run(path=tmp_path / "toy.nc")
    xr.Dataset({"x": ("y", [1.0])}).to_netcdf(tmp_path / "other.nc")
    with pytest.raises(ValueError, match="other.nc differs: study is missing there, toy asked"):
        run(path=tmp_path / "other.nc")


# What goes wrong ---------------------------------------------------------------------------------


def test_failures_are_kept_and_counted():
    results = run("failing")
    complete = run()
    failed = (complete["mean"] > toy_study.SHIFT) & (complete["scenario"] == "few")
    assert 0 < failed.sum() < 12
    assert (results["done"] == 1).all()
    assert (results["failure"].where(failed, "") == results["failure"]).all()
    assert set(results["failure"].values[failed]) == {"ValueError: above the shift"}
    expected = complete["mean"].where(~failed).values
    np.testing.assert_array_equal(results["mean"], expected)
    assert results["quantile"].isnull().all("level").values.tolist() == failed.values.tolist()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("wrong-names", "the study declares, mean, quantile; got mean, median"),
        ("wrong-shape", r"'quantile' in shape \(3,\), .*; got shape \(\)"),
        ("wrong-type", "must return a mapping of outputs by name; got list"),
        ("text", "must return numbers as 'mean': could not convert string .*'one'"),
    ],
)
def test_wrong_outputs_are_a_mistake_in_the_study(settings, message):
    with pytest.raises(runner.OutputError, match=message) as caught:
        run(settings)
    assert str(caught.value).startswith("replicate 0 of scenario 'few' of study 'toy' must return")


def test_errors_of_prepare_propagate(tmp_path):
    with pytest.raises(ValueError, match="data must not be given"):
        studies.run(TOY, Options(data=tmp_path), path=tmp_path / "toy.nc")
    assert not (tmp_path / "toy.nc").exists()


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"n_replicates": 0}, "n_replicates must be at least 1; got 0"),
        ({"jobs": 0}, "jobs must be at least 1; got 0"),
        ({"seed": -1}, "seed must be at least 0; got -1"),
        ({"seed": 2**63}, "seed must be at most 9223372036854775807; got 9223372036854775808"),
        ({"settings": "none"}, "settings must be one of .*; got 'none'"),
    ],
)
def test_numbers_out_of_range(keywords, message):
    with pytest.raises(ValueError, match=message):
        run(**keywords)


def test_unknown_names(monkeypatch):
    with pytest.raises(KeyError, match="name must be one of .*toy.*; got 'unknown'"):
        studies.run("unknown")
    assert TOY in studies.names()
    monkeypatch.setitem(studies.STUDIES, "alias", toy_study.__name__)
    with pytest.raises(ValueError, match="must be named 'alias'; it is named 'toy'"):
        studies.load("alias")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scenarios": ()}, "scenarios of study 'toy' must be at least one; got none"),
        ({"scenarios": (Scenario("a", {}),) * 2}, "names of their own.*; got a twice"),
        ({"coords": {}}, "got none along level of output 'quantile'"),
        ({"outputs": {"done": Output((), "")}}, "names of their own.*; got done twice"),
        ({"scenarios": (Scenario("a", {"mean": 1}),)}, "names of their own.*; got mean twice"),
        ({"n_replicates": 0}, "n_replicates must be at least 1; got 0"),
    ],
)
def test_studies_are_checked(toy, change, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(toy, **change)


def test_parameters_are_numbers_or_text():
    with pytest.raises(TypeError, match=r"must be numbers or text; got p=\[1\] of type list"):
        Scenario("a", {"p": [1]})


def test_the_bar_counts_replicates(monkeypatch, capsys):
    monkeypatch.setattr(runner, "PROGRESS_DELAY", 0.0)
    run(n_replicates=2, progress=True)
    assert "4/4" in capsys.readouterr().err
    run(n_replicates=2)
    assert capsys.readouterr().err == ""


# The report --------------------------------------------------------------------------------------


@pytest.fixture
def by_hand():
    """Two scenarios, four replicates of which the last is not made, two levels."""
    nan = np.nan
    error = [[1.0, 2.0, 6.0, nan], [4.0, nan, 8.0, nan]]
    width = [
        [[1.0, 10.0], [1.0, np.inf], [4.0, 40.0], [nan, nan]],
        [[nan, nan], [nan, nan], [nan, 5.0], [nan, nan]],
    ]
    return xr.Dataset(
        {
            "error": (RUNS, error),
            "bias": (RUNS, [[0.0, 0.0, 3.0, nan], [1.0, 1.0, 1.0, nan]]),
            "width": ((*RUNS, "level"), width),
            "done": (RUNS, [[1, 1, 1, 0]] * 2),
            "failure": (RUNS, [[""] * 4, ["", "ValueError: no", "", ""]]),
        },
        {"scenario": ["a", "b"], "level": [0.1, 0.9]},
    )


def test_means_by_hand(by_hand):
    table = mean_table(by_hand, ["error", "bias"])
    columns = ["scenario", "runs", "failed", "error", "error_mcse", "error_valid"]
    assert table.columns.tolist() == [*columns, "bias", "bias_mcse", "bias_valid"]
    assert table["scenario"].tolist() == ["a", "b"]
    assert table["runs"].tolist() == [3, 3]
    assert table["failed"].tolist() == [0, 1]
    np.testing.assert_array_equal(table["error"], [3.0, np.nan])
    np.testing.assert_array_equal(table["error_valid"], [3.0, 6.0])
    # Squared deviations 4 + 1 + 9 = 14 over 2, over 3 runs; 4 + 4 over 1, over 2 runs.
    np.testing.assert_allclose(table["error_mcse"], [np.sqrt(7 / 3), 2.0], rtol=1e-15)
    # An output that is there in all runs has its mean over all runs.
    np.testing.assert_array_equal(table["bias"], [1.0, 1.0])
    np.testing.assert_allclose(table["bias_mcse"], [1.0, 0.0], rtol=1e-15)


def test_means_over_dimensions(by_hand):
    table = mean_table(by_hand, ["width"], by=["level"])
    assert table["scenario"].tolist() == ["a", "a", "b", "b"]
    assert table["level"].tolist() == [0.1, 0.9, 0.1, 0.9]
    assert table["runs"].tolist() == [3] * 4
    assert table["failed"].tolist() == [0, 1, 3, 2]
    np.testing.assert_array_equal(table["width"], [2.0, np.nan, np.nan, np.nan])
    np.testing.assert_array_equal(table["width_valid"], [2.0, 25.0, np.nan, 5.0])
    np.testing.assert_allclose(table["width_mcse"], [1.0, 15.0, np.nan, np.nan], rtol=1e-15)


def test_means_without_failures_have_no_column_for_them(by_hand):
    table = mean_table(by_hand.sel(scenario=["a"]), ["error"])
    assert table.columns.tolist() == ["scenario", "runs", "failed", "error", "error_mcse"]


def test_means_equal_those_of_pandas():
    results = run()
    frame = results["quantile"].to_dataframe().groupby(["scenario", "level"])["quantile"]
    table = mean_table(results, ["quantile"], by=["level"]).set_index(["scenario", "level"])
    # Sums in another order.
    np.testing.assert_allclose(table["quantile"], frame.mean(), rtol=1e-12)
    np.testing.assert_allclose(table["quantile_mcse"], frame.sem(), rtol=1e-9)


@pytest.mark.parametrize(
    ("outputs", "by", "error", "message"),
    [
        (["size"], [], KeyError, "variables of the results, error, bias, .*; got size"),
        ("error", [], ValueError, "sequence of names, as in .*; got 'error'"),
        ([], [], ValueError, r"sequence of names, as in .*; got \[\]"),
        (["width"], [], ValueError, r"dimensions of 'width' .*\(level\); got \(\)"),
        (["error"], ["level"], ValueError, r"dimensions of 'error' .*\(\); got \(level\)"),
    ],
)
def test_tables_that_cannot_be(by_hand, outputs, by, error, message):
    with pytest.raises(error, match=message):
        mean_table(by_hand, outputs, by)


def test_report(toy):
    text = render(toy, run(seed=4, n_replicates=3))
    assert text.startswith("# Means of normal numbers\n\nSource: Figure 1 of a textbook\n\n")
    assert "What it says: The mean is unbiased.\n" in text
    assert "## Findings\n\n- The mean is 100.\n" in text
    assert "## Means\n\n```text\nscenario  runs  failed  mean  mean_mcse\n" in text
    assert "## Quantiles\n\n```text\nscenario  level  runs" in text
    assert "python vignettes/studies toy --replicates 3 --seed 4\n" in text
    assert "3 replicates of 2 scenarios, seed 4. Failed runs: 0 of 6.\n" in text
    assert "rhale_stats " in text
    assert "![" not in text


def test_short_report(toy):
    """Every mean is printed; the saved page has the rows that are asked for."""
    results = run(n_replicates=3)
    rows = {"Means": "scenario == 'few'", "Quantiles": ""}
    study = dataclasses.replace(toy, rows=rows, printed_only=("The mean is 100",))
    text, printed = (render(study, results, short=short) for short in (True, False))
    assert "\n     few " in printed
    assert "\n    many " in printed
    assert "\n     few " in text
    assert "many" not in text
    assert "## Quantiles" not in text
    assert "- The mean is 100.\n" in printed
    assert "The mean is 100." not in text
    assert f"## How it was made\n\n{PRINTED}\n\n```sh" in text
    assert PRINTED not in printed
    failed = dataclasses.replace(toy, rows={"Means": "failed == 0"})
    text = render(failed, run("failing"), short=True)
    assert "mean_valid" not in text


def test_report_of_failures_and_options(toy):
    results = run("failing")
    n_failed = int((results["failure"] != "").sum())
    text = render(toy, results)
    assert "python vignettes/studies toy --settings failing --replicates 12 --seed 0" in text
    assert f"Failed runs: {n_failed} of 24:\n\n- {n_failed} × ValueError: above the shift\n" in text
    assert "nan" not in text.lower()

    results.attrs |= {"quick": 1, "data": "a file.csv"}
    results["failure"].values[:] = np.array([f"E: {i:02}" for i in range(24)]).reshape(2, 12)
    results["done"].values[1, 5:] = 0
    text = render(toy, results)
    assert "studies toy --quick --settings failing --data 'a file.csv' --replicates" in text
    assert "seed 0; only 17 of 24 runs were made." in text
    assert "- 1 × E: 09\n- and 14 other messages\n" in text


def test_numbers_in_reports(toy):
    table = mean_table(run(n_replicates=1), ["mean"])
    numbers = [123456.7, 1.23456e-5]
    shown = dataclasses.replace(
        toy,
        tables=lambda results: [
            ("Numbered", table.assign(mean=numbers)),
            ("Named", table.assign(mean=numbers).set_index("scenario")),
        ],
    )
    text = render(shown, run())
    assert "\n     few     1       0    123457\n" in text
    assert "\n    many     1       0 1.235e-05\n" in text
    assert "\nfew          1       0    123457\n" in text


def test_report_and_figure_are_saved(toy, tmp_path):
    results = run(n_replicates=2)
    report, picture = save(toy, results, tmp_path / "new", "stem")
    assert (report.name, picture.name) == ("stem.md", "stem.png")
    assert "\n![Means of normal numbers](stem.png)\n" in report.read_text(encoding="utf-8")
    assert plt.imread(picture).shape[:2] == (300, 300)
    assert not plt.get_fignums()
