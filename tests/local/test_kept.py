"""Local effects in chunks that are computed once for all passes over them."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import rhale_stats as rs
from rhale_stats.local import chunks as module
from rhale_stats.local.chunks import cached

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
N_ROWS, N_CHUNKS = 900, 3


class Counted:
    """A model that counts the rows for which it is asked."""

    def __init__(self):
        self.rows = 0

    def __call__(self, X):
        self.rows += len(X)
        return np.column_stack([X[:, 0] ** 2 + X[:, 0] * X[:, 1], np.sin(X[:, 1])])


@pytest.fixture
def table():
    """Two features."""
    return np.random.default_rng(0).normal(size=(N_ROWS, 2))


@pytest.fixture
def waiting(table):
    """Local effects of two outputs that wait for their model, and the model."""
    model = Counted()
    local = rs.local_effects(model, da.from_array(table, chunks=(N_ROWS // N_CHUNKS, 2)))
    model.rows = 0
    return local, model


@pytest.fixture(autouse=True)
def one_thread():
    """Calls are counted without a lock."""
    with dask.config.set(scheduler="sync"):
        yield


@pytest.fixture
def on_disk(monkeypatch, tmp_path):
    """All local effects go to the disk, to this folder."""
    monkeypatch.setattr(module, "MAX_IN_MEMORY", 0)
    with dask.config.set({"temporary-directory": str(tmp_path)}):
        yield tmp_path


def once(model):
    """Both edges of both features of every row."""
    assert model.rows == 4 * N_ROWS


@pytest.mark.thorough
def test_in_memory_the_model_is_called_once(waiting, table):
    local, model = waiting
    found = rs.rhale(local)
    once(model)
    whole = rs.rhale(rs.local_effects(model, table))
    xr.testing.assert_allclose(found, whole, rtol=1e-7, atol=1e-8)


@pytest.mark.thorough
def test_on_the_disk_the_model_is_called_once_and_nothing_stays(waiting, on_disk):
    local, model = waiting
    found = rs.rhale(local)
    once(model)
    assert list(on_disk.iterdir()) == []
    xr.testing.assert_identical(found, rs.rhale(local.compute().chunk(obs=N_ROWS // N_CHUNKS)))


def test_one_output_is_read_once_and_not_written(waiting, on_disk, monkeypatch):
    local, model = waiting
    monkeypatch.setattr(module, "MAX_OF_DISK", 0.0)  # else a warning
    one = local.isel(output=0)
    found = rs.rhale(one)
    once(model)
    xr.testing.assert_identical(found, rs.rhale(one.compute().chunk(obs=N_ROWS // N_CHUNKS)))


def test_regions_call_the_model_once(waiting, on_disk, table):
    local, model = waiting
    one = local.isel(output=0)
    tree = rs.regions(one, "x0", rng=0)
    assert (tree["region"] >= 0).sum() > 1
    model.rows = 0
    effect = rs.regional_rhale(one, tree)
    # All features of the rows of a chunk come together.
    once(model)
    expected = rs.regional_rhale(one.compute(), tree)
    xr.testing.assert_allclose(effect, expected, rtol=1e-9, atol=1e-10)


def test_numbers_are_those_of_the_model_and_files_are_read_for_each_pass(waiting, on_disk):
    local, model = waiting
    expected = local.compute()
    model.rows = 0
    with cached(local) as same:
        once(model)
        (folder,) = on_disk.iterdir()
        names = {f"{name}-{number}.npy" for name in module.KEPT for number in range(N_CHUNKS)}
        assert {path.name for path in folder.iterdir()} == names
        xr.testing.assert_identical(same.compute(), expected)
        assert same["local_effect"].chunks == local["local_effect"].chunks
        # What is kept is not kept again.
        with cached(same) as again:
            assert again is same
    once(model)


def test_what_a_model_does_not_compute_stays_as_it_is(waiting, on_disk, tmp_path):
    local, model = waiting
    persisted = local.persist()
    model.rows = 0
    computed = persisted.compute()
    for stored in (computed, persisted, computed.chunk(obs=100), "no Dataset"):
        with cached(stored) as same:
            assert same is stored
    assert model.rows == 0


def test_files_go_where_the_user_says_and_else_to_a_disk(monkeypatch, tmp_path):
    monkeypatch.delenv("TMPDIR", raising=False)
    assert module._place() == ("/var/tmp" if os.access("/var/tmp", os.W_OK) else None)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert module._place() is None  # tempfile reads the variable
    with dask.config.set({"temporary-directory": "/elsewhere"}):
        assert module._place() == "/elsewhere"


def test_without_space_the_model_is_called_again_and_a_warning_says_so(
    waiting, on_disk, monkeypatch
):
    local, model = waiting
    expected = rs.rhale(local)
    model.rows = 0
    monkeypatch.setattr(module, "MAX_OF_DISK", 0.0)
    with pytest.warns(UserWarning, match=r"are therefore not kept.*temporary_directory") as caught:
        found = rs.rhale(local)
    assert Path(caught[0].filename) == Path(__file__)
    # One reading for each of two outputs.
    assert model.rows == 2 * 4 * N_ROWS
    xr.testing.assert_identical(found, expected)
    assert list(on_disk.iterdir()) == []


def test_an_error_of_the_model_leaves_no_files(table, on_disk):
    def model(X):
        if len(X) and (X[:, 0] == table[-1, 0]).any() and model.armed:
            raise RuntimeError("no more")
        return X[:, 0] ** 2

    model.armed = False
    local = rs.local_effects(model, da.from_array(table, chunks=(300, 2)))
    model.armed = True
    with pytest.raises(RuntimeError, match="no more"):
        rs.rhale(local)
    assert list(on_disk.iterdir()) == []


@pytest.mark.parametrize("unusable", [{"bins": "some"}, {"centering": "end"}, {"weighting": "all"}])
def test_what_is_refused_is_refused_before_the_model_is_called(waiting, unusable):
    local, model = waiting
    with pytest.raises((TypeError, ValueError), match=next(iter(unusable))):
        rs.rhale(local, **unusable)
    assert model.rows == 0


@pytest.mark.thorough
def test_files_of_a_table_are_read_once(tmp_path, on_disk, monkeypatch):
    pytest.importorskip("pyarrow")
    folder = tmp_path / "rows"
    folder.mkdir()
    X = pd.DataFrame(np.random.default_rng(1).normal(size=(600, 2)), columns=["a", "b"])
    for number in range(2):
        X.iloc[300 * number : 300 * number + 300].to_parquet(folder / f"{number}.parquet")
    local = rs.local_effects(lambda X: X["a"] * X["b"], folder)
    with cached(local) as same:
        for path in folder.iterdir():
            path.unlink()
        found = rs.rhale(same)
    assert found.attrs["n_rows"] == 600
