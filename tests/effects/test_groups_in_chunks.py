"""Errors by groups of rows in chunks: those of the same rows in memory."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import rhale_stats as rs
from rhale_stats.arrays import binning as arrays_thinned

dd = pytest.importorskip("dask.dataframe", reason="dask is not installed")

N, N_GROUPS = 2400, 40
RNG = np.random.default_rng(5)
GROUP = RNG.integers(0, N_GROUPS, N)
SHARED = RNG.normal(size=N_GROUPS)
X = pd.DataFrame(
    {
        "a": RNG.uniform(-2, 2, N),
        "b": np.exp(RNG.normal(size=N)),
        "shared": SHARED[GROUP],
        "flat": np.ones(N),
    }
)
FEATURES = ["a", "b", "flat"]


def model(X):
    """Skewed local effects, whose spread moves."""
    return np.asarray(np.sin(2 * X["a"]) * (1 + X["b"] + X["shared"]))


def alike(chunked, whole):
    """The same variables and attributes, up to rounding."""
    assert list(chunked.variables) == list(whole.variables)
    xr.testing.assert_allclose(chunked, whole, rtol=1e-8, atol=1e-9)
    assert chunked.attrs == whole.attrs
    assert chunked["curve_se"].attrs == whole["curve_se"].attrs


@pytest.mark.parametrize(
    ("bins", "weighting", "weighted", "chunks"),
    [
        (rs.QuantileBins(5), "axis", True, 190),
        (rs.QuantileBins(5), "rows", False, -1),
        (rs.AdaptiveBins(), "axis", False, 700),
        (rs.AdaptiveBins(), "rows", True, 700),
    ],
)
def test_errors_are_those_in_memory(bins, weighting, weighted, chunks):
    memory = rs.local_effects(model, X, features=FEATURES)
    if weighted:
        weights = np.random.default_rng(1).integers(0, 4, N).astype(float)
        memory = rs.local_effects(
            model, X, features=FEATURES, weights=weights, weight_kind="frequency"
        )
    effect = rs.rhale(memory, bins=bins, weighting=weighting)
    whole = rs.std_error(effect, memory, groups=GROUP)
    found = rs.std_error(effect, memory.chunk(obs=chunks), groups=GROUP)
    alike(found, whole)
    assert (found["effect_df"].sel(feature="a") < N_GROUPS).any()


@pytest.mark.thorough
def test_all_that_follows_is_the_same():
    memory = rs.local_effects(model, X, features=FEATURES)
    whole = rs.std_error(rs.rhale(memory), memory, groups=GROUP)
    lazy = rs.local_effects(model, dd.from_pandas(X, npartitions=5), features=FEATURES)
    found = rs.std_error(rs.rhale(lazy), lazy, groups=GROUP)
    alike(rs.confint(found), rs.confint(whole))
    alike(rs.confband(found, rng=0), rs.confband(whole, rng=0))
    one, other = (rs.wald_test(each) for each in (found, whole))
    np.testing.assert_allclose(one["p_value"], other["p_value"], rtol=1e-6)


def test_groups_may_be_in_chunks_or_labels():
    lazy = rs.local_effects(model, dd.from_pandas(X, npartitions=5), features=FEATURES)
    effect = rs.rhale(lazy)
    whole = rs.std_error(effect, lazy, groups=GROUP)
    labels = np.array([f"site {code:02d}" for code in GROUP])
    alike(rs.std_error(effect, lazy, groups=labels), whole)
    alike(rs.std_error(effect, lazy, groups=dd.from_pandas(pd.Series(GROUP), npartitions=3)), whole)


def test_of_very_many_rows_some_decide_on_the_skewness(monkeypatch):
    memory = rs.local_effects(model, X, features=FEATURES)
    effect = rs.rhale(memory)
    monkeypatch.setattr(arrays_thinned, "MAX_PLACES", 600)
    monkeypatch.setattr(arrays_thinned, "MIN_PLACES", 100)
    found = rs.std_error(effect, memory.chunk(obs=500), groups=GROUP)
    whole = rs.std_error(effect, memory, groups=GROUP)
    for name in ("effect_se", "curve_se", "effect_df", "curve_df", "spread_se"):
        xr.testing.assert_allclose(found[name], whole[name], rtol=1e-8)


def test_what_is_wrong_is_said():
    memory = rs.local_effects(model, X, features=FEATURES)
    effect, lazy = rs.rhale(memory), memory.chunk(obs=500)
    with pytest.raises(ValueError, match="groups must have one entry for each of 2400 rows"):
        rs.std_error(effect, lazy, groups=GROUP[:-1])
    with pytest.raises(ValueError, match="groups must hold at least two different groups; got 1"):
        rs.std_error(effect, lazy, groups=np.zeros(N))
    with pytest.raises(ValueError, match="groups must have an entry for every row"):
        rs.std_error(effect, lazy, groups=np.where(GROUP == 3, np.nan, GROUP))
    other = rs.local_effects(lambda X: model(X) ** 2, X, features=FEATURES).chunk(obs=500)
    with pytest.raises(ValueError, match="local must be the Dataset that effect was made from"):
        rs.std_error(effect, other, groups=GROUP)
    # Without groups the effect has all that is needed.
    np.testing.assert_array_equal(
        rs.std_error(effect, lazy)["effect_se"], rs.std_error(effect)["effect_se"]
    )
