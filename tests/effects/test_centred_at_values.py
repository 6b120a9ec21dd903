"""Curves that are 0 at a value of the feature, with errors of the differences."""

import numpy as np
import pandas as pd
import pytest

import rhale_stats as rs
from rhale_stats.effects.comparison import relative_to

N, VALUE = 300, 0.3
MAKERS = [rs.rhale, rs.ale, rs.dale, rs.m_plot]


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(7)
    table = pd.DataFrame(rng.uniform(-1, 1, (N, 2)), columns=list("ab"))
    return table.assign(k=rng.choice(["u", "v"], N))


def model(rows):
    return (rows["a"] ** 2 * (1 + rows["b"]) + (rows["k"] == "u")).to_numpy()


@pytest.mark.thorough
@pytest.mark.parametrize("make", MAKERS)
def test_the_curve_is_0_there_and_otherwise_the_same(X, make):
    found, mean = make(model, X, "a", centering=VALUE), make(model, X, "a")
    assert found.attrs["centering"] == "0.3"
    assert abs(rs.predict(found, [VALUE], "a").item()) < 1e-12
    assert np.ptp((found["curve"] - mean["curve"]).values) < 1e-12
    if "bin_left" in found.coords and "grid" not in found.dims:
        found, mean = found.rhale.in_bins(), mean.rhale.in_bins()
    np.testing.assert_allclose(
        found["curve"] + found["curve_offset"], mean["curve"] + mean["curve_offset"], atol=1e-12
    )


@pytest.mark.thorough
@pytest.mark.parametrize("make", MAKERS[:3])
def test_intervals_are_those_of_the_difference(X, make):
    found = rs.confint(make(model, X, "a", centering=VALUE))
    other = relative_to(rs.confint(make(model, X, "a")), VALUE)
    for name in ("curve", "curve_ci"):
        if name in other:
            np.testing.assert_allclose(found[name], other[name], atol=1e-12)
    assert found["curve_ci"].attrs["target"] == "curve less its value at 0.3, math [25]"
    assert "0.3" in str(rs.summary(found, "a"))


def test_at_the_first_value_it_is_start(X):
    bins = rs.QuantileBins(6)
    found = rs.std_error(rs.ale(model, X, "a", bins=bins, centering=X["a"].min()))
    start = rs.std_error(rs.ale(model, X, "a", bins=bins, centering="start"))
    for name in ("curve", "curve_se"):
        np.testing.assert_allclose(found[name], start[name], atol=1e-12)
    offsets = [one.rhale.in_bins()["curve_offset"] for one in (found, start)]
    np.testing.assert_allclose(*offsets, atol=1e-12)


def test_bootstrap_groups_and_parts_of_the_rows(X):
    bins = rs.EqualWidthBins(6)
    local = rs.local_effects(model, X, "a")
    found = rs.std_error(rs.rhale(local, bins=bins, weighting="rows", centering=VALUE))
    boot = rs.bootstrap(local, found, n_resamples=400, studentize=True, rng=0)
    spread = boot["curve"].std(("chain", "draw")).values
    np.testing.assert_allclose(spread / found["curve_se"].values, 1, atol=0.12)
    named = rs.confint(found, boot, method="studentized")["curve_ci"]
    np.testing.assert_allclose(named, rs.confint(found)["curve_ci"], atol=0.03)
    grouped = rs.std_error(found, local, groups=np.arange(N))
    np.testing.assert_allclose(grouped["curve_se"], found["curve_se"], rtol=0.01, atol=1e-6)
    by = rs.rhale(model, X, "a", by="k", centering=VALUE)
    assert (rs.compare(by, rng=0)["p_value"] > 0.01).all()
    same = rs.GivenBins(found)
    halves = [
        rs.rhale(model, X[side], "a", bins=same, weighting="rows", centering=VALUE)
        for side in (X["b"] > 0, X["b"] <= 0)
    ]
    assert abs(rs.predict(rs.merge(halves), [VALUE], "a").item()) < 1e-12
    # Equal slopes on either side: no difference whatever the rows' own means are.
    line = [
        rs.rhale(lambda X: 2 * X["a"], X[X["a"] > low], "a", centering=VALUE) for low in (0, -1)
    ]
    assert abs(rs.compare(*line, rng=0)["difference"]).max() < 1e-6


def test_the_truth_of_simulators_is_centred_too():
    example = rs.simulate.PiecewiseLinear(sd=0.0)
    X = example.sample(2000, rng=0)
    effect = rs.rhale(
        example.model, X, "x1", jacobian=example.jacobian, centering=VALUE, bins=rs.QuantileBins(50)
    )
    apart = effect["curve"] - example.truth(effect)["curve"]
    mean = (
        effect["curve"]
        - rs.rhale(example.model, X, "x1", jacobian=example.jacobian, bins=rs.QuantileBins(50))[
            "curve"
        ]
    )
    assert abs(apart).max() < 0.02 < abs(mean).max()


def test_values_that_are_not_there(X):
    with pytest.raises(ValueError, match=r"centering must be a value of every feature; 'b' goes"):
        rs.rhale(model, X.assign(a=X["a"] * 9), ["a", "b"], centering=5.0)
    with pytest.raises(ValueError, match="for features with levels, such as 'k'"):
        rs.ale(model, X, centering=0.0)
    with pytest.raises(ValueError, match="centering must be a finite value"):
        rs.rhale(model, X, "a", centering=np.inf)
    with pytest.raises(ValueError, match="reference=40"):
        rs.rhale(model, X, "a", centering={"a": 0.3})
    with pytest.raises(ValueError, match="reference=40"):
        rs.shap_dependence(model, X, "a", centering=0.3)


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
