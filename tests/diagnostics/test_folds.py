"""Estimates on folds: every number from the rows of its fold, by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from numpy.testing import assert_allclose, assert_array_equal

import rhale_stats as rs
from rhale_stats.schema.feature_result import one_feature
from rhale_stats.schema.variables import EFFECT_VARIABLES

N = 47


@pytest.fixture
def local(rng):
    X = pd.DataFrame({"a": rng.uniform(size=N), "b": 10 * rng.uniform(size=N)})
    return rs.local_effects(None, X, jacobian=rng.normal(size=(N, 2)) + X.to_numpy())


def at_grid(effect, grid):
    """Effect, heterogeneity and curve of an effect by rows; NaN beyond its bins."""
    out = np.full((3, *grid.shape), np.nan)
    for number in range(len(grid)):
        row = one_feature(effect, number)
        edges, z = row.bin_edges, grid[number]
        k = np.clip(np.searchsorted(edges, z, side="right") - 1, 0, len(edges) - 2)
        there = (z >= edges[0]) & (z <= edges[-1])
        for which, name in enumerate(("effect", "heterogeneity")):
            out[which, number] = np.where(there, row[name].values[k], np.nan)
        out[2, number] = np.where(there, np.interp(z, edges, row["curve"].values), np.nan)
    return out


@pytest.mark.thorough
@pytest.mark.parametrize("centering", ["mean", "start"])
def test_folds_by_hand(local, centering):
    """Two partitions into three folds, of 16, 16 and 15 rows; means and errors over the folds."""
    rule = rs.EqualWidthBins(2)
    options = {"centering": centering, "weighting": "rows"}
    found = rs.folds(local, bins=rule, n_folds=3, n_repeats=2, n_grid=7, rng=5, **options)
    x = local["x"].values
    grid = np.stack([np.linspace(x[:, at].min(), x[:, at].max(), 7) for at in (0, 1)])
    assert_allclose(found["grid_value"], grid, rtol=1e-12)
    generator = np.random.default_rng(5)
    estimates = np.empty((3, 2, 3, 2, 7))
    for repeat in range(2):
        order = generator.permutation(N)
        for fold, rows in enumerate((order[:16], order[16:32], order[32:])):
            effect = rs.rhale(local.isel(obs=np.sort(rows)), bins=rule, **options)
            estimates[:, repeat, fold] = at_grid(effect, grid)
    # Points that not all folds reach are there, and points that all reach.
    assert np.isnan(estimates).any()
    for name, values in zip(("effect", "heterogeneity", "curve"), estimates, strict=True):
        _, long_name, units = EFFECT_VARIABLES[name]
        assert found[name].dims == ("repeat", "fold", "feature", "grid")
        assert_allclose(found[name], values, rtol=1e-9, atol=1e-12)
        assert found[name].attrs == {"long_name": long_name, "units": units}
        mean, se = found[f"{name}_mean"], found[f"{name}_se"]
        assert mean.dims == se.dims == ("feature", "grid")
        assert_allclose(mean, values.mean(axis=(0, 1)), rtol=1e-9, atol=1e-12)
        each = np.std(values, axis=1, ddof=1) / np.sqrt(3)
        assert_allclose(se, each.mean(axis=0), rtol=1e-9, atol=1e-12)
        assert np.isfinite(se).any()
        assert mean.attrs == {"long_name": f"{long_name}, mean over folds", "units": units}
        assert se.attrs == {
            "long_name": f"standard error of {long_name}", "units": units, "source": "rows",
        }  # fmt: skip
    assert_array_equal(found["feature"], ["a", "b"])
    facts = {"method": "folds", "n_folds": 3, "n_repeats": 2, "centering": centering}
    facts |= {"bin_rule": "EqualWidthBins", "output_name": "output", "output_units": ""}
    assert {name: found.attrs[name] for name in facts} == facts


def test_defaults_are_five_folds_at_101_points(rng):
    x = rng.uniform(size=(60, 1))
    found = rs.folds(rs.local_effects(None, x, jacobian=x), rng=0)
    assert dict(found.sizes) == {"repeat": 1, "fold": 5, "feature": 1, "grid": 101}
    assert found.attrs["bin_rule"] == "AdaptiveBins"


def test_rows_of_weight_zero_are_in_no_fold(local):
    weights = np.arange(N) % 3 / 4
    weighted = local.assign(weight=("obs", weights)).assign_attrs(weight_kind="precision")
    options = {"bins": rs.EqualWidthBins(1), "rng": 1, "n_folds": 4}
    found = rs.folds(weighted, **options)
    there = np.flatnonzero(weights > 0)
    xr.testing.assert_identical(found, rs.folds(weighted.isel(obs=there), **options))
    assert not found["effect"].equals(rs.folds(local.isel(obs=there), **options)["effect"])


def test_as_many_folds_as_rows_at_most(local):
    few = local.isel(obs=slice(6))
    found = rs.folds(few, bins=rs.EqualWidthBins(1), n_folds=6, rng=0)
    assert found.sizes["fold"] == 6
    with pytest.raises(
        ValueError, match="n_folds must not exceed the number of rows; got 7 for 6 rows of 'a', 'b'"
    ):
        rs.folds(few, n_folds=7)


def test_folds_with_empty_bins_are_counted():
    """The bins of three rows have one, none and two of them; the other fold has no gap."""
    x = np.array([0.0, 2.9, 3.0, 0.0, 1.5, 3.0])
    local = rs.local_effects(None, x[:, None], jacobian=x[:, None], features=[0])
    rule = rs.EqualWidthBins(3)
    gaps = 0
    generator = np.random.default_rng(3)
    for _ in range(4):
        for rows in np.array_split(generator.permutation(6), 2):
            own = x[rows]
            edges = np.linspace(own.min(), own.max(), 4)
            gaps += (np.histogram(own, edges)[0] == 0).any()
    assert 0 < gaps < 8
    message = (
        f"Bins without rows in {gaps} of 8 folds: estimates are NaN there, and so are their means "
        "over folds. Use fewer bins, or fewer folds."
    )
    with pytest.warns(UserWarning, match=message):
        rs.folds(local, bins=rule, n_folds=2, n_repeats=4, rng=3)


def test_a_feature_of_fewer_bins_has_no_empty_ones(local, recwarn):
    """Bins beyond those of a feature are none."""
    x = local["x"].values
    edges = {"a": [-1.0, 0.5, 2.0], "b": [-1.0, 11.0]}
    rs.folds(local, bins=rs.GivenBins(edges), n_folds=2, rng=0)
    assert x.min() > -1
    assert not recwarn.list
