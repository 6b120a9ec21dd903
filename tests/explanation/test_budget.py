"""Time of explanations: kept to, or refused with a number."""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
import pytest

import rhale_stats as rs


def of_levels(n_levels, n_rows):
    rng = np.random.default_rng(0)
    texts = np.array([f"L{number}" for number in range(n_levels)])
    columns = {"a": rng.normal(size=n_rows), "t": texts[rng.integers(0, n_levels, n_rows)]}
    return pd.DataFrame(columns)


def first(X):
    return np.asarray(X)[:, 0].astype(float)


def test_many_columns_are_refused_with_the_seconds_that_they_need():
    X = np.random.default_rng(0).normal(size=(200, 2500))
    begun = time.process_time()
    with pytest.raises(
        ValueError, match=r"budget must be at least \d+s for 2,500 features; got 2s"
    ):
        rs.explain(first, X, budget="2s", progress=False)
    assert time.process_time() - begun < 8


def test_splits_by_columns_keep_to_their_share():
    X = np.random.default_rng(0).normal(size=(300, 55))
    found = rs.explain(first, X, budget="1s", rng=0, progress=False)
    assert "splits by each column are of " in found.attrs["cut"]
    tested = found["interactions"]["feature"].values
    assert 20 <= len(tested) < 55
    # The feature that moves the predictions is among them.
    assert found["interactions"].sizes["conditioning"] == 55


def test_columns_of_many_levels_are_left_out_or_refused():
    X = of_levels(400, 900)
    found = rs.explain(first, X, budget="1s", progress=False)
    assert "t (" in found.attrs["cut"]
    assert list(found["answers"]["feature"]) == ["a"]
    with pytest.raises(ValueError, match=r"budget must be larger for 3\d\d levels; got 1s"):
        rs.explain(first, X, features="t", budget="1s", progress=False)


@pytest.mark.parametrize("call", [rs.ale, rs.pdp, rs.ice])
def test_ten_thousand_levels_are_refused_with_what_they_need(call):
    X = of_levels(10_000, 30_000)
    n = X["t"].nunique()
    with pytest.raises(ValueError, match=rf"column 't' has {n:,}: .* {n * len(X):,} rows for the"):
        call(first, X, features="t")
    if call is not rs.ice:
        with pytest.warns(UserWarning, match=r"'t' \(more than 2,000 levels\)"):
            assert list(call(first, X.iloc[:25_000])["feature"]) == ["a"]
        with pytest.raises(TypeError, match=r"Make columns of numbers, or of fewer levels"):
            call(lambda rows: np.zeros(len(rows)), X[["t"]].iloc[:25_000])
