"""Files of the command line: read and written by suffix, whole or not at all."""

from __future__ import annotations

import argparse
import json

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import rhale_stats as rs
from rhale_stats import files
from rhale_stats.cli.files import (
    HOW_TO_READ,
    as_json,
    files_of,
    read_result,
    read_table,
    save,
    writers_of,
)
from rhale_stats.cli.parser import RESULTS, FailureError, UsageError

OF_TREES = tuple(HOW_TO_READ)


@pytest.fixture
def effect(rng):
    X = pd.DataFrame(rng.normal(size=(200, 2)), columns=["a", "b"])
    return rs.rhale(rs.local_effects(lambda X: X["a"] * X["b"], X))


@pytest.fixture
def tree(effect):
    tree = xr.DataTree.from_dict({"/effect": effect, "/regions/0/effect": effect.isel(feature=[1])})
    tree.attrs = {"method": "explain", "notes": ["one", "two"], "level": 0.95}
    return tree


def given(*paths, overwrite=False):
    return argparse.Namespace(out=list(paths), overwrite=overwrite)


# Reading -----------------------------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize(
    "name",
    [
        "t.csv",
        "t.CSV",
        "t.csv.gz",
        "t.txt",
        "t.tsv",
        "t.tsv.xz",
        "table",
        "t.parquet",
        "t.pq",
        "t.feather",
        "t.arrow",
        "t.ipc",
    ],
)
def test_tables_are_read_by_their_suffix(tmp_path, name):
    frame = pd.DataFrame({"x": [1.5, 2.5], "sex": ["f", "m"]})
    path = tmp_path / name
    suffix = path.suffix.lower()
    if suffix in (".parquet", ".pq"):
        frame.to_parquet(path)
    elif suffix in (".feather", ".arrow", ".ipc"):
        frame.to_feather(path)
    else:
        frame.to_csv(path, index=False, sep="\t" if ".tsv" in name else ",")
    pd.testing.assert_frame_equal(read_table(path), frame)


def test_a_table_of_unknown_suffix_is_not_guessed(tmp_path):
    (tmp_path / "t.xlsx").write_text("x,y\n1,2\n")
    with pytest.raises(UsageError, match=r"suffix says CSV .*; got .*t\.xlsx\. Save it as one"):
        read_table(tmp_path / "t.xlsx")


@pytest.mark.thorough
@pytest.mark.parametrize("suffix", OF_TREES)
def test_trees_come_back(tmp_path, tree, suffix):
    path = tmp_path / f"tree{suffix}"
    save([path], writers_of(tree, pd.DataFrame(), {}))
    found = read_result(path, "TREE")
    xr.testing.assert_identical(found["effect"].to_dataset(), tree["effect"].to_dataset())
    xr.testing.assert_identical(
        found["regions/0/effect"].to_dataset(), tree["regions/0/effect"].to_dataset()
    )
    assert found.attrs["method"] == "explain"
    assert list(found.attrs["notes"]) == ["one", "two"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("tree.txt", b"", r"TREE must be a .nc or .zarr file of this package; got .*tree.txt"),
        ("tree.nc", b"not netCDF", "TREE must be a file of results .*tree.nc cannot be read: "),
        ("tree.nc", b"", "TREE must be a file of results .*tree.nc cannot be read: "),
        ("tree.zarr", b"", "TREE must be a file of results .*tree.zarr cannot be read: "),
    ],
)
def test_results_that_cannot_be_read(tmp_path, name, content, message):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError, match=message):
        read_result(tmp_path / name, "TREE")


@pytest.mark.thorough
def test_half_of_a_result_cannot_be_read(tmp_path, effect):
    path = tmp_path / "effect.nc"
    save([path], writers_of(effect, pd.DataFrame(), {}))
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(UsageError, match="A must be a file of results .*effect.nc cannot be read"):
        read_result(path, "A")


# Writing -----------------------------------------------------------------------------------------


def test_every_suffix_is_written(tmp_path, effect):
    paths = [tmp_path / f"out{suffix}" for suffix in RESULTS]
    table = rs.tidy(effect)
    save(files_of(given(*paths)), writers_of(effect, table, {"effects": table}))
    for path in paths:
        if path.suffix in OF_TREES:
            found = read_result(path, "A").to_dataset()
            xr.testing.assert_identical(found, effect)
        elif path.suffix == ".json":
            found = json.loads(path.read_text(encoding="utf-8"))["effects"]
            assert [line["estimate"] for line in found] == table["estimate"].tolist()
        else:
            pd.testing.assert_frame_equal(read_table(path), table)


@pytest.mark.parametrize("suffix", RESULTS)
def test_files_are_replaced_only_if_asked(tmp_path, effect, suffix):
    path = tmp_path / f"out{suffix}"
    writers = writers_of(effect, rs.tidy(effect), {})
    save(files_of(given(path)), writers)
    with pytest.raises(UsageError, match=f"that do not exist; got .*{path.name}. --overwrite"):
        files_of(given(path))
    save(files_of(given(path, overwrite=True)), writers)
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("file.csv/out.nc", "--out must be files that can be written; got .*out.nc: "),
        ("folder.csv", "--out must be files; got .*folder.csv, which is a folder"),
        (
            "others.zarr",
            "--out must be a Zarr store where it is replaced; got .*others.zarr, a f",
        ),
    ],
)
def test_outputs_that_cannot_be_written(tmp_path, name, message):
    (tmp_path / "file.csv").write_text("")
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "others.zarr").mkdir()
    (tmp_path / "others.zarr" / "thesis.txt").write_text("")
    with pytest.raises(UsageError, match=message):
        files_of(given(tmp_path / name, overwrite=True))
    assert (tmp_path / "others.zarr" / "thesis.txt").exists()


def test_one_file_twice_is_refused(tmp_path):
    path = tmp_path / "out.nc"
    with pytest.raises(UsageError, match="--out must be different files; got .*out.nc, .*out.nc"):
        files_of(given(path, tmp_path / "." / "out.nc"))


def test_a_missing_library_is_said_before_the_work(tmp_path, monkeypatch):
    monkeypatch.setattr("rhale_stats.cli.files.find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"out.zarr needs zarr: pip install zarr"):
        files_of(given(tmp_path / "out.zarr"))


@pytest.mark.parametrize("suffix", OF_TREES)
def test_no_file_is_written_if_one_cannot_be(tmp_path, effect, suffix):
    paths = [tmp_path / f"out{suffix}", tmp_path / "out.json"]
    paths[0].parent.joinpath("out.json").write_text("before")

    def full(path):
        path.write_text("half")
        raise OSError(28, "No space left on device")

    writers = {**writers_of(effect, pd.DataFrame(), {}), ".json": full}
    with pytest.raises(FailureError, match=r"out.json could not be written: No space left on dev"):
        save(paths, writers)
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"]
    assert paths[1].read_text() == "before"


def test_unfinished_folders_are_discarded(tmp_path):
    with files.whole(tmp_path / "out.zarr") as unfinished:
        unfinished.mkdir()
        (unfinished / "zarr.json").write_text("{}")
        files.discard_unfinished()
        assert not unfinished.exists()
        unfinished.mkdir()
    assert (tmp_path / "out.zarr").is_dir()


# JSON --------------------------------------------------------------------------------------------


def test_json_holds_what_json_knows():
    table = pd.DataFrame(
        {
            "x": [1.5, np.nan],
            "n": [1, 2],
            "at": pd.to_datetime(["2024-05-01", None]),
            "who": ["ä<b>", None],
        }
    )
    answer = {
        "table": table,
        "ci": np.array([[0.0, np.inf], [np.nan, 1.0]]),
        "flag": np.bool_(True),
        "n": np.int64(3),
        "day": np.datetime64("NaT", "s"),
        "of": pd.NA,
        "where": argparse.Namespace,
    }
    found = json.loads(as_json(answer))
    assert found["table"] == [
        {"x": 1.5, "n": 1, "at": "2024-05-01 00:00:00", "who": "ä<b>"},
        {"x": None, "n": 2, "at": None, "who": None},
    ]
    assert found["ci"] == [[0.0, None], [None, 1.0]]
    assert (found["flag"], found["n"], found["day"], found["of"]) == (True, 3, None, None)
    assert found["where"] == "<class 'argparse.Namespace'>"
    assert json.loads(as_json({"empty": table.iloc[:0]})) == {"empty": []}
