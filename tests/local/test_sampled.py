"""Rows of local effects in chunks that are read into memory."""

from __future__ import annotations

import numpy as np
import pytest

import rhale_stats as rs
from rhale_stats.local import chunks as module
from rhale_stats.local.chunks import sampled

pytest.importorskip("dask", reason="dask is not installed")
N = 1000


@pytest.fixture
def local():
    """Local effects in memory, with weights; x0 counts the rows."""
    X = np.stack([np.arange(float(N)), np.random.default_rng(0).normal(size=N)], axis=1)
    return rs.local_effects(
        lambda X: X[:, 0] * X[:, 1], X, weights=np.arange(N) % 3, weight_kind="frequency"
    )


def test_few_rows_are_all_read(local):
    found = sampled(local.chunk(obs=301), "rows")
    assert found.every
    assert found.facts == {}
    for name in ("x", "local_effect", "weight"):
        np.testing.assert_array_equal(found.local[name], local[name])


@pytest.mark.thorough
@pytest.mark.parametrize("n_chunks", [[N], [301, 301, 398], [1, 0, 999]], ids=str)
def test_of_many_rows_one_of_each_stretch_is_read_whatever_the_chunks(local, n_chunks, monkeypatch):
    monkeypatch.setattr(module, "MAX_ROWS", 100)
    found = sampled(local.chunk(obs=tuple(n_chunks)), "rows")
    assert not found.every
    assert found.facts == {"n_rows_read": 100}
    np.testing.assert_array_equal(found.rows // 10, np.arange(100))
    assert len(np.unique(found.rows % 10)) == 10
    np.testing.assert_array_equal(found.local["x"].values[:, 0], found.rows)
    np.testing.assert_array_equal(found.local["weight"], found.rows % 3)
    np.testing.assert_array_equal(
        found.rows, sampled(local.chunk(obs=77), "rows").rows, "the same draws"
    )


@pytest.mark.thorough
def test_local_effects_of_tables_in_chunks_have_no_labels_of_rows():
    """As they come from `local_effects`: "obs" is a dimension of variables in chunks only."""
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    X = np.random.default_rng(0).normal(size=(N, 2))
    chunked = rs.local_effects(lambda X: X[:, 0] * X[:, 1], da.from_array(X, chunks=(300, 2)))
    checked = rs.check_unbiased(chunked, rs.rhale(chunked), rng=0)
    whole = rs.local_effects(lambda X: X[:, 0] * X[:, 1], X)
    expected = rs.check_unbiased(whole, rs.rhale(whole), rng=0)
    np.testing.assert_array_equal(checked["verdict"], expected["verdict"])
    np.testing.assert_allclose(checked["bin_error"], expected["bin_error"], rtol=1e-6)
    np.testing.assert_array_equal(
        rs.regions(chunked, "x0", rng=0)["region_of_row"],
        rs.regions(whole, "x0", rng=0)["region_of_row"],
    )


@pytest.mark.parametrize("weighted", [False, True])
def test_rows_that_are_read_are_a_dataset_as_that_in_memory(local, monkeypatch, weighted):
    local = local if weighted else local.drop_vars("weight")
    if not weighted:
        local = local.assign_attrs(weight_kind="none")
    chunked = local.chunk(obs=301)
    monkeypatch.setattr(module, "MAX_ROWS", N)
    assert sampled(chunked, "rows").every
    monkeypatch.setattr(module, "MAX_ROWS", N - 1)
    found = sampled(chunked, "rows")
    assert len(found.rows) == N - 1
    assert found.source.n_rows == (np.arange(N) % 3 > 0).sum() if weighted else N
    expected = local.isel(obs=found.rows)
    assert found.local.attrs == local.attrs
    for name in expected.variables:
        np.testing.assert_array_equal(found.local[name], expected[name])
        assert found.local[name].attrs == expected[name].attrs
    assert set(found.local.variables) == set(expected.variables)
