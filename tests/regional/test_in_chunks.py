"""Regions of local effects in chunks."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import rhale_stats as rs
from rhale_stats.local import chunks
from rhale_stats.regional.regions import SearchRows
from tests.helpers import in_turn

dd = pytest.importorskip("dask.dataframe", reason="dask is not installed")
da = pytest.importorskip("dask.array", reason="dask is not installed")
N = 3000
EXAMPLE = rs.simulate.TwoRegimes()
X = EXAMPLE.sample(N, rng=0)
OTHER = pd.DataFrame({"sign": np.where(X["x3"] > 0, "+", "-"), "number": np.arange(float(N))})
WEIGHT = np.random.default_rng(1).integers(0, 3, N).astype(float)


def local(**options):
    """Local effects in memory."""
    return rs.local_effects(None, X, jacobian=EXAMPLE.jacobian, **options)


@pytest.mark.parametrize(
    ("options", "weighted"),
    [
        ({}, True),
        ({"test": "honest"}, True),
        ({"conditioning": OTHER, "min_obs": 200}, False),
        ({"groups": np.arange(N) // 3}, False),
        ({"n_folds": 3}, False),
    ],
    ids=str,
)
def test_trees_are_those_of_memory(options, weighted):
    memory = local(**({"weights": WEIGHT, "weight_kind": "frequency"} if weighted else {}))
    chunked = memory.chunk(obs=701)
    whole, found = (rs.regions(one, "x1", rng=0, **options) for one in (memory, chunked))
    xr.testing.assert_identical(found, whole)
    effects = rs.regional_rhale(memory, whole), rs.regional_rhale(chunked, found)
    xr.testing.assert_allclose(effects[1], effects[0], rtol=1e-9)


def test_all_features_and_interactions_too():
    memory = local()
    chunked = memory.chunk(obs=701)
    xr.testing.assert_identical(rs.all_regions(chunked, rng=0), rs.all_regions(memory, rng=0))
    one, other = (rs.interaction_matrix(each, n_permutations=0) for each in (chunked, memory))
    xr.testing.assert_identical(one, other)


@pytest.mark.parametrize(
    "options", [{}, {"conditioning": OTHER}, {"groups": np.arange(N) // 3}, {"min_obs": 300}]
)
def test_of_many_rows_some_are_searched_and_all_are_counted(options, monkeypatch):
    monkeypatch.setattr(chunks, "MAX_ROWS", 500)
    memory = local(weights=WEIGHT, weight_kind="frequency")
    tree = rs.regions(memory.chunk(obs=701), "x1", rng=0, **options)
    assert tree.attrs["n_rows_read"] == 500
    assert tree.attrs["n_rows"] == (WEIGHT > 0).sum()
    side = X["x3"].to_numpy() > 0
    expected = np.where(side, 1, 0) if "conditioning" not in options else np.where(side, 0, 1)
    np.testing.assert_array_equal(tree["region_of_row"], np.where(WEIGHT > 0, expected, -1))
    counts = [WEIGHT.sum(), *(WEIGHT[expected == region].sum() for region in (0, 1))]
    np.testing.assert_array_equal(tree["n_obs"], counts)
    np.testing.assert_allclose(tree["weight_share"], np.array(counts) / counts[0])
    assert tree.attrs["min_obs"] == options.get("min_obs", int(WEIGHT.sum()) // 20)


@pytest.mark.thorough
def test_nodes_of_weighted_rows_are_counted_by_rows(monkeypatch):
    monkeypatch.setattr(chunks, "MAX_ROWS", 500)
    weights = np.where(WEIGHT > 0, 0.5 + WEIGHT / 7, 0.0)
    memory = local(weights=weights)
    tree = rs.regions(memory.chunk(obs=701), "x1", rng=0)
    region = tree["region_of_row"].values
    expected = [(region >= 0).sum(), *((region == leaf).sum() for leaf in (0, 1))]
    np.testing.assert_array_equal(tree["n_obs"], expected)
    share = [weights.sum(), *(weights[region == leaf].sum() for leaf in (0, 1))]
    np.testing.assert_allclose(tree["weight_share"], np.array(share) / share[0])


def test_rows_on_which_honest_splits_were_searched_have_no_region(monkeypatch):
    monkeypatch.setattr(chunks, "MAX_ROWS", 500)
    tree = rs.regions(local().chunk(obs=701), "x1", test="honest", rng=0)
    assert int((tree["region_of_row"] < 0).sum()) == 250
    assert int(tree["n_obs"][0]) == N - 250


def test_conditioning_in_chunks(monkeypatch):
    chunked = local().chunk(obs=701)
    monkeypatch.setattr(chunks, "MAX_ROWS", 500)
    whole = rs.regions(chunked, "x1", rng=0, conditioning=OTHER)
    given = dd.from_pandas(OTHER, npartitions=4)
    xr.testing.assert_identical(rs.regions(chunked, "x1", rng=0, conditioning=given), whole)
    with pytest.raises(ValueError, match="conditioning must have a row for each of the 3000 rows"):
        rs.regions(chunked, "x1", conditioning=dd.from_pandas(OTHER[:-1], npartitions=2))


@pytest.mark.thorough
def test_rows_are_drawn_from_all_stretches_whatever_the_chunks(monkeypatch):
    monkeypatch.setattr(chunks, "MAX_ROWS", 100)
    memory = local()
    found = [chunks.sampled(memory.chunk(obs=size), "rows").rows for size in (701, 64)]
    np.testing.assert_array_equal(*found)
    np.testing.assert_array_equal(found[0] // (N // 100), np.arange(100))
    part = chunks.sampled(memory.chunk(obs=701), "rows").local
    xr.testing.assert_identical(part, memory.isel(obs=found[0]))


def three_regions(**options):
    """Effects of -3, 3 and 6: two splits, one below the other."""
    jacobian = np.zeros((N, 3))
    jacobian[:, 0] = np.where(X["x3"] > 0, np.where(X["x2"] > 0, 6.0, 3.0), -3.0)
    return rs.local_effects(None, X, jacobian=jacobian, **options)


REGION = np.where(X["x3"] <= 0, 0, np.where(X["x2"] <= 0, 1, 2))


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("kind", "given"), in_turn(["none", "precision", "frequency"], ["features", "table", "chunks"])
)
def test_all_rows_of_all_nodes_are_counted(kind, given, monkeypatch):
    """By hand: those of a node are those of its regions. Rows, and a share of the weight."""
    monkeypatch.setattr(chunks, "MAX_ROWS", 600)
    weights = {"none": np.ones(N), "precision": WEIGHT / 3, "frequency": WEIGHT}[kind]
    options = {} if kind == "none" else {"weights": weights, "weight_kind": kind}
    memory = three_regions(**options)
    other = {"features": None, "table": X, "chunks": dd.from_pandas(X, npartitions=5)}[given]
    tree = rs.regions(memory.chunk(obs=701), "x1", rng=0, test=None, conditioning=other)
    there = weights > 0
    assert tree["region"].values.tolist() == [-1, 0, -1, 1, 2]
    assert tree["condition_feature"].values.tolist() == ["", "x3", "x3", "x2", "x2"]
    np.testing.assert_array_equal(tree["region_of_row"], np.where(there, REGION, -1))
    inside = [there & np.isin(REGION, one) for one in ([0, 1, 2], [0], [1, 2], [1], [2])]
    counted = weights if kind == "frequency" else np.ones(N)
    np.testing.assert_array_equal(tree["n_obs"], [counted[rows].sum() for rows in inside])
    share = np.array([weights[rows].sum() for rows in inside])
    np.testing.assert_allclose(tree["weight_share"], share / share[0], rtol=1e-12)
    assert tree.attrs["min_obs"] == int(counted[there].sum()) // 20
    np.testing.assert_array_equal(tree["obs"], np.arange(N))
    assert tree.attrs["n_rows"] == there.sum()
    # Made from these local effects, as `regional_rhale` checks.
    effect = rs.regional_rhale(memory, tree)
    np.testing.assert_allclose(effect["average_effect"].values.ravel(), [-3, 3, 6], rtol=1e-9)


def searched(local, monkeypatch, *, most=600, conditioning=None, groups=None, **settings):
    monkeypatch.setattr(chunks, "MAX_ROWS", most)
    return SearchRows.from_arguments(local, conditioning, groups, rs.SplitSearch(**settings))


@pytest.mark.parametrize(
    ("min_obs", "most", "expected"),
    [(None, 600, None), (100, 600, 20), (101, 600, 21), (3, 600, 1), (100, N, 100), (1, 600, 1)],
)
def test_as_many_rows_of_a_region_as_their_share(min_obs, most, expected, monkeypatch):
    """600 of 3000 rows are a fifth: of a part of a row one is asked for."""
    chunked = local().chunk(obs=701)
    found = searched(chunked, monkeypatch, most=most, min_obs=min_obs)
    assert found.search.min_obs == expected
    assert found.whole_search.min_obs == min_obs
    assert found.n_rows(7) == N
    assert found.local.sizes["obs"] == most
    assert found.facts == ({} if most == N else {"n_rows_read": 600})
    memory = SearchRows.from_arguments(local(), None, None, rs.SplitSearch())
    assert (memory.some, memory.facts, memory.n_rows(7)) == (None, {}, 7)


@pytest.mark.thorough
@pytest.mark.parametrize("named", [False, True])
def test_columns_and_groups_of_the_rows_that_are_searched(named, monkeypatch):
    index = [f"r{k}" for k in range(N)] if named else None
    memory = rs.local_effects(None, X.set_axis(index) if named else X, jacobian=EXAMPLE.jacobian)
    chunked = memory.chunk(obs=701)
    groups, given = np.arange(N) // 3, OTHER.set_axis(index) if named else OTHER
    for table in (given, dd.from_pandas(OTHER, npartitions=4)):
        found = searched(chunked, monkeypatch, conditioning=table, groups=groups)
        rows = found.some.rows
        np.testing.assert_array_equal(found.groups, rows // 3)
        assert found.conditioning["number"].tolist() == rows.tolist()
        labels = [f"r{row}" for row in rows] if named else rows.tolist()
        assert found.conditioning.index.tolist() == labels
    lazy = da.from_array(groups, chunks=500)
    np.testing.assert_array_equal(searched(chunked, monkeypatch, groups=lazy).groups, rows // 3)
    assert searched(chunked, monkeypatch).conditioning is None


@pytest.mark.thorough
def test_small_samples_have_ten_rows_in_a_region(monkeypatch):
    few = three_regions().isel(obs=slice(210)).chunk(obs=50)
    monkeypatch.setattr(chunks, "MAX_ROWS", 150)
    assert rs.regions(few, "x1", rng=0, test=None).attrs["min_obs"] == 10
