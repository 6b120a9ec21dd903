"""Regions of local effects in chunks."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import rhale_stats as rs
from rhale_stats.local import sampled

dd = pytest.importorskip("dask.dataframe", reason="dask is not installed")
N = 3000
EXAMPLE = rs.simulate.TwoRegimes()
X = EXAMPLE.sample(N, rng=0)
OTHER = pd.DataFrame({"sign": np.where(X["x3"] > 0, "+", "-"), "number": np.arange(float(N))})
WEIGHT = np.random.default_rng(1).integers(0, 3, N).astype(float)


def local(**options):
    """Local effects in memory."""
    return rs.local_effects(None, X, jacobian=EXAMPLE.jacobian, **options)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"test": "honest"},
        {"conditioning": OTHER, "min_obs": 200},
        {"groups": np.arange(N) // 3},
        {"n_folds": 3},
    ],
    ids=str,
)
@pytest.mark.parametrize("weighted", [False, True])
def test_trees_are_those_of_memory(options, weighted):
    memory = local(**({"weights": WEIGHT, "weight_kind": "frequency"} if weighted else {}))
    chunked = memory.chunk(obs=701)
    whole, found = (rs.regions(one, "x1", rng=0, **options) for one in (memory, chunked))
    xr.testing.assert_identical(found, whole)
    effects = rs.regional_rhale(memory, whole), rs.regional_rhale(chunked, found)
    xr.testing.assert_allclose(effects[1].drop_attrs(), effects[0].drop_attrs(), rtol=1e-9)


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
    monkeypatch.setattr(sampled, "MOST_ROWS", 500)
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


def test_nodes_of_weighted_rows_are_counted_by_rows(monkeypatch):
    monkeypatch.setattr(sampled, "MOST_ROWS", 500)
    weights = np.where(WEIGHT > 0, 0.5 + WEIGHT / 7, 0.0)
    memory = local(weights=weights)
    tree = rs.regions(memory.chunk(obs=701), "x1", rng=0)
    region = tree["region_of_row"].values
    expected = [(region >= 0).sum(), *((region == leaf).sum() for leaf in (0, 1))]
    np.testing.assert_array_equal(tree["n_obs"], expected)
    share = [weights.sum(), *(weights[region == leaf].sum() for leaf in (0, 1))]
    np.testing.assert_allclose(tree["weight_share"], np.array(share) / share[0])


def test_rows_on_which_honest_splits_were_searched_have_no_region(monkeypatch):
    monkeypatch.setattr(sampled, "MOST_ROWS", 500)
    tree = rs.regions(local().chunk(obs=701), "x1", test="honest", rng=0)
    assert int((tree["region_of_row"] < 0).sum()) == 250
    assert int(tree["n_obs"][0]) == N - 250


def test_conditioning_in_chunks(monkeypatch):
    chunked = local().chunk(obs=701)
    monkeypatch.setattr(sampled, "MOST_ROWS", 500)
    whole = rs.regions(chunked, "x1", rng=0, conditioning=OTHER)
    given = dd.from_pandas(OTHER, npartitions=4)
    xr.testing.assert_identical(rs.regions(chunked, "x1", rng=0, conditioning=given), whole)
    with pytest.raises(ValueError, match="conditioning must have a row for each of the 3000 rows"):
        rs.regions(chunked, "x1", conditioning=dd.from_pandas(OTHER[:-1], npartitions=2))


def test_rows_are_drawn_from_all_stretches_whatever_the_chunks(monkeypatch):
    monkeypatch.setattr(sampled, "MOST_ROWS", 100)
    memory = local()
    found = [sampled.sampled(memory.chunk(obs=size), "rows").rows for size in (701, 64)]
    np.testing.assert_array_equal(*found)
    np.testing.assert_array_equal(found[0] // (N // 100), np.arange(100))
    part = sampled.sampled(memory.chunk(obs=701), "rows").local
    xr.testing.assert_identical(part, memory.isel(obs=found[0]))
