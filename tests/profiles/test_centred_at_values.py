"""Curves of partial dependence that are 0 at a value of the feature."""

import numpy as np
import pandas as pd
import pytest

import rhale_stats as rs

N, VALUE = 200, 0.3


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(7)
    table = pd.DataFrame(rng.uniform(-1, 1, (N, 2)), columns=list("ab"))
    return table.assign(k=rng.choice(["u", "v"], N))


def model(rows):
    return (rows["a"] ** 2 * (1 + rows["b"]) + (rows["k"] == "u")).to_numpy()


def test_curve_spread_and_errors_are_those_of_differences(X):
    """Of the ICE curves less their own values there: means, deviations and errors of the mean."""
    found = rs.pdp(model, X, "a", n_grid=9, centering=VALUE)
    curves = rs.ice(model, X, "a", n_grid=9)["ice"].values[0]
    grid = found["grid_value"].values[0]
    at = [np.interp(VALUE, grid, curve) for curve in curves.T]
    apart = curves - np.array(at)
    np.testing.assert_allclose(found["curve"].values[0], apart.mean(axis=1), atol=1e-12)
    np.testing.assert_allclose(found["curve_std"].values[0], apart.std(axis=1, ddof=1), atol=1e-12)
    np.testing.assert_allclose(
        found["curve_se"].values[0], apart.std(axis=1, ddof=1) / np.sqrt(N), atol=1e-12
    )
    np.testing.assert_allclose(found["curve_cov"].values[0], np.cov(apart) / N, atol=1e-12)
    assert abs(rs.predict(found, [VALUE], "a").item()) < 1e-12
    assert found.attrs["centering"] == "0.3"
    assert "0.3" in str(rs.summary(found, "a"))


def test_at_the_first_point_it_is_start(X):
    grid = np.linspace(-0.9, 0.9, 7)
    found = rs.pdp(model, X, "a", grid=grid, centering=-0.9)
    start = rs.pdp(model, X, "a", grid=grid, centering="start")
    for name in ("curve", "curve_se", "curve_std", "curve_offset"):
        np.testing.assert_allclose(found[name], start[name], atol=1e-12)
    assert found["curve_se"].values[0, 0] < 1e-12


@pytest.mark.thorough
def test_single_curves_bootstrap_and_differences(X):
    curves = rs.ice(model, X, "a", kind="centered", centering=VALUE, n_grid=9)
    profile = rs.pdp(model, X, "a", n_grid=9, centering=VALUE)
    np.testing.assert_allclose(curves["curve"], profile["curve"], atol=1e-12)
    boot = rs.bootstrap(profile, curves, n_resamples=400, rng=0)
    wide = profile["curve_se"].values > 0.01
    ratio = boot["curve"].std(("chain", "draw")).values[wide] / profile["curve_se"].values[wide]
    np.testing.assert_allclose(ratio, 1, atol=0.12)
    by = rs.pdp(model, X, "a", by="k", n_grid=9, centering=VALUE)
    assert (rs.compare(by, rng=0)["p_value"] > 0.01).all()
    grouped = rs.std_error(profile, curves, groups=np.arange(N))
    np.testing.assert_allclose(grouped["curve_se"], profile["curve_se"], rtol=0.01, atol=1e-6)


def test_several_features_and_values_that_are_not_there(X):
    both = rs.pdp(model, X, ["a", "b"], centering=0)
    assert np.allclose([rs.predict(both, [0.0], name).item() for name in "ab"], 0)
    with pytest.raises(ValueError, match=r"centering must be a value of every feature; 'a' goes"):
        rs.pdp(model, X, "a", centering=5.0)
    with pytest.raises(ValueError, match="for features with levels, such as 'k'"):
        rs.pdp(model, X, centering=0.0)
    with pytest.raises(ValueError, match="centering must be a finite value"):
        rs.pdp(model, X, "a", centering=np.nan)
    with pytest.raises(ValueError, match="with kind='plain'"):
        rs.ice(model, X, "a", centering=0.0)
