"""Accelerations and replicates of profiles, by their definitions."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import rhale_stats as rs
from rhale_stats.profiles import inference

N = 18
RNG = np.random.default_rng(2)
X = pd.DataFrame({"a": RNG.exponential(size=N), "k": RNG.choice(["u", "v"], N), "one": 1.0})
X["b"] = RNG.exponential(size=N)
W = np.array([1.0, 2.0, 3.0] * 6)
GROUPS = np.arange(N) // 4


def f(X):
    return X["b"] ** 2 * X["a"] + X["b"] * (X["k"] == "u")


def ice(**given):
    return rs.ice(f, X, features=["a", "k", "one"], grid={"a": [0.0, 1.0, 2.0]}, **given)


def m_plot(**given):
    bins = rs.GivenBins([0.0, 0.7, 9.0])
    return rs.m_plot(f, X, features=["a", "k", "one"], bins=bins, centering="none", **given)


def influences(found, name):
    """What a row does to the mean of curves, or to the mean in its bin, times the rows' weight."""
    row = found.sel(feature=name).isel(grid=slice(int(found["n_grid"].sel(feature=name))))
    if "ice" in found:
        curves = row["ice"].transpose("obs", "grid").values
        return curves - row["curve"].values
    cell = (X["k"] == "v").to_numpy().astype(int) if name == "k" else 1 * (X["a"] >= 0.7).to_numpy()
    there = cell[:, None] == np.arange(2)
    apart = f(X).to_numpy()[:, None] - row["curve"].values
    return np.where(there, apart, 0.0) / row["weight_share"].values


@pytest.mark.parametrize("make", [ice, m_plot])
@pytest.mark.parametrize("kind", [None, "precision", "frequency"])
@pytest.mark.parametrize("grouped", [False, True])
def test_accelerations_by_their_definition(make, kind, grouped):
    """Efron (1987): sum psi³ / (6 (sum psi²)^1.5), psi the influence of what is drawn."""
    found = make(**({} if kind is None else {"weights": W, "weight_kind": kind}))
    more = {"groups": GROUPS} if grouped else {}
    boot = rs.bootstrap(found, n_resamples=2, chains=1, rng=0, **more)
    for number, name in enumerate(["a", "k"]):
        psi, code = influences(found, name), GROUPS
        if kind == "frequency":
            psi, code = (np.repeat(one, W.astype(int), axis=0) for one in (psi, GROUPS))
        elif kind == "precision":
            psi = W[:, None] * psi
        if grouped:
            psi = np.stack([psi[code == one].sum(axis=0) for one in range(5)])
        expected = np.sum(psi**3, axis=0) / (6 * np.sum(psi**2, axis=0) ** 1.5)
        found_here = boot["curve_acceleration"].values[number, : len(expected)]
        np.testing.assert_allclose(found_here, expected, rtol=1e-9)
    # A constant feature has no curve.
    assert boot["curve_acceleration"].sel(feature="one").isnull().all()
    assert boot["curve"].sel(feature="one").isnull().all()


def test_a_point_that_no_row_changes_has_no_acceleration():
    centred = rs.ice(f, X, features="a", kind="centered", grid=[0.0, 1.0])
    boot = rs.bootstrap(centred, n_resamples=2, chains=1, rng=0)
    assert boot["curve_acceleration"].values[0, 0] == 0
    assert boot["curve_acceleration"].values[0, 1] > 0


@pytest.mark.thorough
@pytest.mark.parametrize("make", [ice, m_plot])
def test_blocks_of_draws_are_one(make, monkeypatch):
    """Three draws at a time, or one where a single one is already too many."""
    found = make()
    whole = rs.bootstrap(found, n_resamples=8, chains=2, rng=1)
    for room in (3 * N, 1):
        monkeypatch.setattr(inference, "CHUNK", room)
        asked = []
        weights_of = inference.resample.weights_of

        def counting(scheme, units, seeds, n, asked=asked, weights_of=weights_of):
            asked.append(len(seeds))
            return weights_of(scheme, units, seeds, n)

        with monkeypatch.context() as patch:
            patch.setattr(inference.resample, "weights_of", counting)
            parts = rs.bootstrap(found, n_resamples=8, chains=2, rng=1)
        assert asked == ([3, 3, 2] if room > 1 else [1] * 8)
        xr.testing.assert_allclose(parts, whole)


@pytest.mark.thorough
def test_what_comes_with_replicates():
    """Facts of the points and the bins, and how many points a replicate left without a curve."""
    found = m_plot()
    boot = rs.bootstrap(rs.confint(found), n_resamples=300, scheme="multinomial", rng=0)
    assert set(boot.coords) == {"chain", "draw", "curve_acceleration", *found.coords} - {"obs"}
    rows = rs.bootstrap(ice(), n_resamples=2, chains=1, rng=0)
    assert "n_empty" not in rows
    assert rows.attrs["grid"] == boot.attrs["grid"] == "fixed"
    # A bin of one row is empty in 36 % of replicates; one that never had a row does not count.
    few = rs.m_plot(lambda X: X[:, 0], np.array([[0.5], [0.6], [0.7], [2.5]]), bins=rs.GivenBins(
        range(4)))  # fmt: skip
    boot = rs.bootstrap(few, n_resamples=200, rng=0)
    np.testing.assert_array_equal(boot["n_empty"], boot["curve"].isnull().sum("grid") - 1)
    assert 0.2 < float((boot["n_empty"] > 0).mean()) < 0.45
