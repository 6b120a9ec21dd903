"""Values of curves, effects and heterogeneities between edges, with their labels."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from numpy.testing import assert_allclose, assert_array_equal

import rhale_stats as rs
from rhale_stats.schema.feature_result import one_feature
from tests.effects.mixed import mixed_effect
from tests.helpers import local_of, without_spread

NAN = np.nan


@pytest.fixture(scope="module", name="effect")
def _effect():
    """Effects 1 and -2 in bins of widths 1 and 2; spread 0 and known."""
    x = np.array([0.0, 0.5, 0.75, 1.5, 2.0, 3.0])[:, None]
    g = np.array([1.0, 1, 1, -3, -2, -1])[:, None]
    bins = rs.GivenBins([0, 1, 3])
    effect = rs.rhale(local_of(x, g), bins=bins, weighting="rows", centering="start")
    return without_spread(effect)


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        ("curve", [NAN, 0, 0.5, 1, 0, -3, NAN]),
        ("effect", [NAN, 1, 1, -2, -2, -2, NAN]),
        ("heterogeneity", [NAN, 0, 0, 1, 1, 1, NAN]),
    ],
)
def test_values_inside_and_nan_outside(effect, what, expected):
    """A value at an inner edge belongs to the bin on its right; both ends are inside."""
    z = [-0.001, 0.0, 0.5, 1.0, 1.5, 3.0, 3.001]
    found = rs.predict(effect, z, "x0", what=what)
    assert_allclose(found, expected, atol=1e-12)
    assert (found.dims, found.name) == (("grid",), what)
    assert_array_equal(found["x"], z)
    assert found["x"].dims == ("grid",)
    assert found.attrs == {**effect[what].attrs, "feature": "x0"}


def test_the_spread_has_bins_of_its_own():
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1, (400, 1))
    g = np.where(x < 0.5, 1, 9) * rng.normal(size=(400, 1))
    effect = rs.rhale(local_of(x, g), bins=rs.GivenBins([0, 1]))
    row = one_feature(effect, 0)
    edges, spread = row.spread_edges, row.spread
    assert len(spread) == 2
    z = np.array([edges[0], edges[1] - 1e-9, edges[1], edges[2], edges[2] + 1e-9])
    found = rs.predict(effect, z, 0, what="heterogeneity")
    assert_array_equal(found, [spread[0], spread[0], spread[1], spread[1], NAN])
    assert found.attrs["long_name"] == effect["spread"].attrs["long_name"]


def test_labels_of_values_stay(effect):
    table = xr.DataArray(
        [[0.5, 1.0], [2.0, 9.0]], {"day": [1, 2]}, ("day", "place"), attrs={"units": "m"}
    )
    found = rs.predict(effect, table, "x0")
    assert found.dims == ("day", "place")
    assert_array_equal(found["day"], [1, 2])
    assert_allclose(found, [[0.5, 1], [-1, NAN]])
    assert_array_equal(found["x"], table)
    # One that has a coordinate x keeps it.
    named = xr.DataArray([0.5, 1.0], {"x": ["low", "high"]}, "x")
    assert rs.predict(effect, named, "x0")["x"].values.tolist() == ["low", "high"]
    one = rs.predict(effect, 0.5, "x0")
    assert (one.dims, one.item(), one["x"].item()) == ((), 0.5, 0.5)
    assert rs.predict(effect, [[0.5], [1.0]], "x0").shape == (2, 1)


def test_dates_are_values():
    days = pd.date_range("2020-01-01", periods=20)
    X = pd.DataFrame({"day": days})
    g = np.full((20, 1), 2.0)
    effect = rs.rhale(
        rs.local_effects(None, X, jacobian=g), bins=rs.EqualWidthBins(2), centering="start"
    )
    at = days[[0, 5, 19]]
    numbers = effect["edge_value"].values[0]
    expected = 2 * (numbers[-1] - numbers[0]) * np.array([0, 5, 19]) / 19
    assert_allclose(rs.predict(effect, at, "day"), expected)
    assert_allclose(rs.predict(effect, xr.DataArray(at, dims="t"), "day"), expected)


def test_levels_by_their_names():
    effect = mixed_effect()
    curve = effect["curve"].values[3]
    found = rs.predict(effect, ["w", "u", "v", "u"], "l")
    assert_array_equal(found, curve[[2, 0, 1, 0]])
    assert found["x"].values.tolist() == ["w", "u", "v", "u"]
    table = xr.DataArray(np.array([["w"], ["u"]], dtype=object), dims=("a", "b"))
    assert_array_equal(rs.predict(effect, table, "l"), curve[[[2], [0]]])
    assert_array_equal(rs.predict(effect, [3.0, 1], "m"), effect["curve"].values[4][[2, 0]])
    with pytest.raises(ValueError, match=r"levels of feature 'l', 'u', 'v', 'w'; got 'q', 't'\."):
        rs.predict(effect, ["t", "u", "q"], "l")
    for what in ("effect", "heterogeneity"):
        message = rf"what must be 'curve' for feature 'l', .* two levels; got '{what}'\."
        with pytest.raises(ValueError, match=message):
            rs.predict(effect, ["u"], "l", what=what)


@pytest.mark.parametrize("what", ["curve", "effect", "heterogeneity"])
def test_a_constant_feature_has_no_values(what):
    assert np.isnan(rs.predict(mixed_effect(), [1.0, 2.0], "c", what=what)).all()
