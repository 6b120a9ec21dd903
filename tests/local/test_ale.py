"""Finite differences of ALE, in groups of columns that fit in memory."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from numpy.testing import assert_array_equal

import rhale_stats as rs
from rhale_stats.local.ale import AleRequest, _groups
from rhale_stats.models.options import ModelOptions
from rhale_stats.models.sample import Sample
from rhale_stats.schema.padding import concat_features

RNG = np.random.default_rng(0)
N = 40


def table():
    """a, b vary in all rows, c is constant, d and e have the same gaps, f has others."""
    X = pd.DataFrame(RNG.normal(size=(N, 6)), columns=list("abcdef"))
    X["c"] = 3.0
    X.loc[:4, ["d", "e"]] = np.nan
    X.loc[7, "f"] = np.nan
    return X


def model(X):
    filled = X.fillna(0.0)
    return filled["a"] * filled["b"] + filled["d"] ** 2 * filled["f"] + filled["e"]


@pytest.mark.parametrize(
    ("columns", "together", "groups"),
    [
        ("abcdef", 6, ["abcdef"]),
        ("abcdef", 1, ["a", "bc", "d", "e", "f"]),
        ("abcdef", 2, ["abc", "de", "f"]),
        ("cabd", 1, ["ca", "b", "d"]),
        ("abdc", 2, ["abc", "d"]),
        ("dafbe", 1, ["d", "e", "a", "b", "f"]),
        ("ab", 2, ["ab"]),
    ],
)
def test_groups_have_values_in_the_same_rows(columns, together, groups):
    sample = Sample.from_table(table(), ModelOptions(missing="drop"))
    sample = sample.of_columns(["abcdef".index(name) for name in columns])
    found = _groups(sample, rs.QuantileBins(4), together)
    assert ["".join("abcdef"[at] for at in group) for group in found] == groups


@pytest.mark.thorough
@pytest.mark.parametrize(("columns_at_once", "n_parts"), [(1, 5), (2, 3), (0.5, 5), (99, 1)])
def test_parts_are_those_of_the_whole(columns_at_once, n_parts):
    X = table().assign(k=np.tile(list("uvwu"), N // 4))
    bins = rs.QuantileBins(4)
    options = ModelOptions(missing="drop")
    asked = AleRequest(bins, None, None, "as_is", None, None, options, progress=False)
    # Two numbers of 8 bytes, the values and the local effects, a row and column.
    names, axes, levels = asked.parts(model, X, most_bytes=int(columns_at_once * 2 * 8 * N))
    axes, levels = list(axes), list(levels)
    assert names == [*"abcdefk"]
    assert len(axes) == n_parts
    assert [one["feature"].values.tolist() for one in levels] == [["k"]]
    whole = rs.ale_local_effects(model, X, bins=bins, order="as_is", missing="drop", progress=False)
    xr.testing.assert_identical(concat_features([*axes, *levels], names), whole)


def test_columns_of_one_kind_alone():
    X = table()[["a", "b"]].assign(k=np.tile(list("uvwu"), N // 4))
    only = lambda X: X["a"] ** 2  # noqa: E731
    numbers = rs.ale_local_effects(only, X, features=["a"], bins=rs.QuantileBins(4))
    assert numbers["feature"].values.tolist() == ["a"]
    levels = rs.ale_local_effects(only, X, features=["k"])
    assert levels["feature"].values.tolist() == ["k"]
    assert_array_equal(levels["local_effect"], np.zeros((N, 1)))
    with pytest.raises(ValueError, match="order is for .*; got 'as_is', and none among 'a', 'b'"):
        rs.ale_local_effects(only, X, features=["a", "b"], order="as_is")
    with pytest.raises(ValueError, match=r"order is for .*; got \['u'\]"):
        rs.ale_local_effects(only, X, features=["a"], order=["u"])
    # 40 cells by default, each of one row here.
    edges = rs.ale_local_effects(only, X, features=["a"])["cell_value"].values[0]
    assert edges.size == N


def test_tables_in_chunks_have_effects_of_numbers_only():
    da = pytest.importorskip("dask.array")
    X = table()[["a", "b"]].to_numpy()
    blocks = da.from_array(X, chunks=(15, 2))
    f = lambda X: X[:, 0] * X[:, 1]  # noqa: E731
    for bins in (None, rs.QuantileBins(5)):
        options = {"features": [1], "bins": bins, "progress": False}
        found = rs.ale_local_effects(f, blocks, **options).compute()
        whole = rs.ale_local_effects(f, X, **options)
        np.testing.assert_allclose(found["local_effect"], whole["local_effect"], rtol=1e-9)
        assert_array_equal(found["cell_value"], whole["cell_value"])
    for name, given in (("categorical", [0]), ("target", np.ones(N))):
        with pytest.raises(ValueError, match=f"{name} must be None where X is in chunks"):
            rs.ale_local_effects(f, blocks, **{name: given})
