"""A profile relative to one of its values: differences of the curves of the rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import rhale_stats as rs
from rhale_stats.profiles.reference import one_relative

N = 40


@pytest.fixture(scope="module")
def profile():
    rng = np.random.default_rng(4)
    X = pd.DataFrame(rng.uniform(-1, 1, (N, 2)), columns=["a", "b"])
    model = lambda X: np.sin(2 * X["a"]) + X["a"] ** 2 * X["b"]  # noqa: E731
    found = rs.ice(model, X, features="a", kind="centered", centering="mean")
    return rs.confband(rs.confint(rs.std_error(found), level=0.9), level=0.9, rng=0)


@pytest.mark.parametrize("part", [0.0, 0.3])
def test_differences_from_the_curve_at_a_value(profile, part):
    """At a point of the grid, and between two of them."""
    row = profile.isel(feature=0)
    grid, curves = row["grid_value"].values, row["ice"].transpose("obs", "grid").values
    value = (1 - part) * grid[3] + part * grid[4]
    found = one_relative(profile, "a", value)
    at = np.array([np.interp(value, grid, curve) for curve in curves])
    apart = curves - at[:, None]
    mean = apart.mean(axis=0)
    assert_allclose(found["curve"], mean, atol=1e-12)
    assert_allclose(found["ice"].transpose("obs", "grid"), apart, atol=1e-12)
    assert_allclose(found["curve_std"], apart.std(axis=0), atol=1e-12)
    se = found["curve_se"].values
    half = stats.t.ppf(0.95, N - 1) * se
    assert_allclose(found["curve_ci"].values[:, 0], mean - half, atol=1e-9)
    assert_allclose(found["curve_ci"].values[:, 1], mean + half, atol=1e-9)
    wide = np.diff(found["curve_band"].values, axis=1)[:, 0]
    assert (wide[se > 0] > 2 * half[se > 0]).all()
    if part == 0:
        assert se[3] == 0
        assert_array_equal(found["curve_band"].values[3], [0, 0])
    # The variance of the mean of differences is at least that of the rows' own differences.
    assert_allclose(se, apart.std(axis=0, ddof=1) / np.sqrt(N), rtol=0.5, atol=1e-9)


def test_without_a_value_a_profile_stays_as_it_is(profile):
    assert_array_equal(one_relative(profile, "a", None)["curve"], profile["curve"].isel(feature=0))
