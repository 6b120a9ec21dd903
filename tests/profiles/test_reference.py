"""A profile relative to one of its values: differences of the curves of the rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import rhale_stats as rs
from rhale_stats.profiles.inference import one_relative

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
    # All of the curve moves as one, with b: the band is the interval.
    assert_allclose(wide, 2 * half, atol=1e-9)
    if part == 0:
        assert se[3] == 0
        assert_array_equal(found["curve_band"].values[3], [0, 0])
    # The variance of the mean of differences is at least that of the rows' own differences.
    assert_allclose(se, apart.std(axis=0, ddof=1) / np.sqrt(N), rtol=0.5, atol=1e-9)


def test_without_a_value_a_profile_stays_as_it_is(profile):
    assert_array_equal(one_relative(profile, "a", None)["curve"], profile["curve"].isel(feature=0))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("part", [0.0, 0.25, 1.0])
def test_errors_of_differences_are_those_of_the_rows(weighted, part):
    """ICE curves that are not centred: the difference of two points has their variance.

    One row has no curve.
    """
    rng = np.random.default_rng(7)
    X = pd.DataFrame(rng.uniform(-1, 1, (12, 2)), columns=["a", "b"])
    X.loc[3, "a"] = np.nan
    w = rng.uniform(0.5, 2, 12) if weighted else np.ones(12)
    given = {"weights": w} if weighted else {}
    found = rs.ice(lambda X: np.exp(X["a"]) * X["b"], X, features="a", grid=[-1.0, 0.0, 0.5, 2.0],
                   missing="drop", **given)  # fmt: skip
    value = 0.5 * part
    row = one_relative(rs.confint(found, level=0.9), "a", value)
    curves = found["ice"].isel(feature=0).transpose("obs", "grid").values
    there, w = np.isfinite(curves).all(axis=1), w[np.isfinite(curves).all(axis=1)]
    apart = curves - ((1 - part) * curves[:, 1] + part * curves[:, 2])[:, None]
    mean = np.average(apart[there], axis=0, weights=w)
    assert_allclose(row["curve"], mean, atol=1e-12)
    assert_allclose(row["ice"], apart, atol=1e-12)
    squares = (apart[there] - mean) ** 2
    assert_allclose(row["curve_std"], np.sqrt(np.average(squares, axis=0, weights=w)), atol=1e-12)
    assert row.attrs["reference"] == f"a = {value:.4g}"
    covariance = found["curve_cov"].values[0]
    at = np.array([0, 1 - part, part, 0])
    variance = [(one - at) @ covariance @ (one - at) for one in np.eye(4)]
    assert_allclose(row["curve_se"], np.sqrt(np.maximum(variance, 0)), atol=1e-9)
    if not weighted:
        by_rows = apart[there].std(axis=0, ddof=1) / np.sqrt(there.sum())
        assert_allclose(row["curve_se"], by_rows, atol=1e-9)
    degrees = w.sum() ** 2 / np.sum(w**2) - 1
    half = stats.t.ppf(0.95, degrees) * row["curve_se"].values
    ends = np.stack([mean - half, mean + half], axis=-1)
    assert_allclose(row["curve_ci"], ends, atol=1e-7)
    assert row["curve_ci"].attrs["ci_prob"] == 0.9
    assert "curve_band" not in row


def test_numbers_of_one_grid_relative_to_a_value(known):
    """Points of independent errors: variances add up, that of the reference itself is 0."""
    degrees = np.array([[3.0, 7.0, 5.0], [4.0, 6.0, np.nan], [np.nan] * 3])
    known = known.assign(curve_df=(("feature", "grid"), degrees)).transpose("feature", ...)
    known = rs.confint(known, level=0.8)
    known["curve_se_rows"] = known["curve_se"]
    row = one_relative(known, "a", 2.5)
    assert_allclose(row["curve"], [-1.5, 0, 1.5])
    se = np.array([np.hypot(0.1, 0.2), 0, np.hypot(0.4, 0.2)])
    assert_allclose(row["curve_se"], se)
    assert "curve_se_rows" not in row
    assert row["curve_std"].isnull().all()
    assert row.attrs["reference"] == "a = 2.5"
    # No more degrees of freedom than the reference has.
    half = stats.t.ppf(0.9, [3, 7, 5]) * se
    assert_allclose(row["curve_ci"][:, 0], [-1.5 - half[0], 0, 1.5 - half[2]])
    # Between two points of 7 and 5 degrees the smaller number counts.
    between = one_relative(known, "a", 3.25)
    assert_allclose(between["curve"], [-2.25, -0.75, 0.75])
    variance = [0.01 + (0.04 + 0.16) / 4, (0.04 + 0.16) / 4, (0.04 + 0.16) / 4]
    assert_allclose(between["curve_se"] ** 2, variance)
    half = stats.t.ppf(0.9, [3, 5, 5]) * np.sqrt(variance)
    assert_allclose(between["curve_ci"][:, 1], between["curve"] + half)
    # Intervals that do not say their level have 95 %.
    known["curve_ci"].attrs.pop("ci_prob")
    half = stats.t.ppf(0.975, 3) * np.hypot(0.1, 0.2)
    assert_allclose(one_relative(known, "a", 2.5)["curve_ci"][0], [-1.5 - half, -1.5 + half])
    level = one_relative(known, "k", "v")
    assert_allclose(level["curve"], [1.0, 0.0])
    assert_allclose(level["curve_se"], [np.hypot(0.05, 0.08), 0])
    assert level.attrs["reference"] == "k = v"


def test_values_that_are_no_reference_are_refused(known):
    for value in (0.99, 4.01):
        said = f"reference must be a value of 'a' within the grid, 1 to 4; got {value}"
        with pytest.raises(ValueError, match=said):
            one_relative(known, "a", value)
    for value in (1.0, 4.0):  # the ends belong to the grid
        assert 0 in one_relative(known, "a", value)["curve"]
    with pytest.raises(ValueError, match="reference must be a level of 'k', 'u', 'v'; got 'w'"):
        one_relative(known, "k", "w")
    with pytest.raises(ValueError, match="reference must be None for 'one', which is constant"):
        one_relative(known, "one", 1.0)
