"""Curves relative to a reference: errors of differences by brute force, and equivariance."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import rhale_stats as rs
from rhale_stats.effects.comparison import _joint, relative_to
from rhale_stats.effects.fit import features_of
from rhale_stats.profiles.inference import one_relative
from rhale_stats.schema.feature_result import one_feature
from tests.helpers import local_of

RNG = np.random.default_rng(2)
N = 600
X = pd.DataFrame(
    {"a": RNG.gamma(2, 2, N), "b": RNG.normal(size=N), "k": RNG.choice(list("uvw"), N)}
)
GROUPS = np.arange(N) // 6


def model(X):
    return (
        np.sin(X["a"]) * (1 + X["b"]) + X["k"].map({"u": 0, "v": 1, "w": 4}) * X["b"]
    ).to_numpy()


def one(effect, feature="a"):
    return effect.sel(feature=[feature])


@pytest.mark.parametrize("groups", [None, GROUPS])
def test_errors_are_those_of_differences_of_the_covariance(groups):
    local = rs.local_effects(model, X, features=["a", "b"])
    effect = rs.confband(rs.confint(rs.std_error(rs.rhale(local), local, groups=groups)), rng=1)
    row = one_feature(effect, "a")
    numbers = row.bin_edge_numbers
    found = relative_to(one(effect), float(row.bin_edges[3]))
    covariance = rs.vcov(effect, "a").values[np.ix_(numbers, numbers)]
    variance = np.diagonal(covariance) + covariance[3, 3] - 2 * covariance[3]
    half = np.ptp(found["curve_ci"].values[0, numbers], axis=1) / 2
    expected = np.sqrt(np.maximum(variance, 0))
    quantile = half / np.where(expected > 0, expected, np.nan)
    known = np.arange(len(numbers)) != 3
    # Student's quantiles, of at least a few degrees of freedom.
    assert ((quantile[known] > 1.959) & (quantile[known] < 3)).all()
    assert half[3] == 0
    assert float(found["curve"][0, numbers[3]]) == pytest.approx(0, abs=1e-12)
    band = np.ptp(found["curve_band"].values[0, numbers], axis=1) / 2
    assert (band[known] > half[known]).all()


@pytest.mark.thorough
def test_centring_does_not_matter():
    local = rs.local_effects(model, X, features=["a", "b"])
    found = [
        relative_to(one(rs.confint(rs.rhale(local, centering=how))), 2.5)
        for how in ("mean", "start")
    ]
    assert_allclose(found[0]["curve"], found[1]["curve"], atol=1e-9)
    assert_allclose(found[0]["curve_ci"], found[1]["curve_ci"], atol=1e-6)


@pytest.mark.slow
def test_pairs_of_halves_vary_as_the_errors_say():
    """The difference between two values, over 200 samples of 300 rows."""
    # Of f = a (1 + 2 b), a feature a sample.
    a, b = np.random.default_rng(5).uniform(-1, 1, (2, 300, 200))
    effect = rs.confint(
        rs.rhale(local_of(a, 1 + 2 * b), bins=rs.GivenBins([-1, -0.5, 0, 0.5, 1]), weighting="rows")
    )
    values, se = [], []
    for sample in effect["feature"].values:
        found = relative_to(one(effect, sample), -0.5)
        values.append(float(found["curve"][0, 3]))
        se.append(float(np.ptp(found["curve_ci"].values[0, 3])) / 2 / 1.96)
    # Relative error of a standard deviation of 200: 5 %; bins have 75 rows, whose t is wider.
    assert np.mean(se) == pytest.approx(np.std(values), rel=0.15)


@pytest.mark.thorough
def test_levels_and_profiles():
    effect = rs.confband(rs.ale(model, X), rng=0)
    found = relative_to(one(effect, "k"), "v")
    at = [str(name) for name in found["level"].values.ravel() if str(name)].index("v")
    assert float(found["curve"][0, at]) == 0
    assert np.ptp(found["curve_band"].values[0, at]) == 0
    profile = rs.confband(rs.confint(rs.ice(model, X, features="a")), rng=0)
    row = one_relative(profile, "a", 3.0)
    curves = row["ice"].transpose("obs", "grid").values
    grid = row["grid_value"].values
    own = [np.interp(3.0, grid, curve) for curve in curves]
    assert_allclose(own, 0, atol=1e-12)
    assert_allclose(row["curve"], curves.mean(axis=0), atol=1e-12)
    # Of a mean of independent curves, that of the differences.
    assert_allclose(row["curve_se"], curves.std(axis=0, ddof=1) / np.sqrt(N), rtol=1e-6, atol=1e-12)
    assert_allclose(row["curve_std"], curves.std(axis=0), rtol=1e-9, atol=1e-12)
    plain = one_relative(rs.pdp(model, X, features="a"), "a", 3.0)
    assert np.isnan(plain["curve_std"]).all()


def test_pictures():
    effect = rs.confband(rs.ale(model, X), rng=0)
    upper, *_ = rs.plots.effect(effect, "a", reference=2)
    assert upper.get_ylabel() == "output relative to a = 2"
    panels = rs.plots.effects(effect, list("abk"), reference={"a": 2, "k": "w"})
    assert [panel.get_title() for panel in panels] == ["a, from 2", "b", "k, from w"]
    profile = rs.plots.profile(rs.pdp(model, X), "k", reference="u")
    assert profile.get_ylabel() == "output relative to k = u"
    plt.close("all")


def test_bad_references():
    effect = rs.ale(model, X)
    with pytest.raises(ValueError, match=r"reference must be a value of 'a'.*Its bins are from"):
        rs.plots.effect(effect, "a", reference=1e9)
    with pytest.raises(ValueError, match="reference must be a level of 'k', 'u'"):
        rs.plots.effect(effect, "k", reference="z")
    with pytest.raises(TypeError, match="reference must be a mapping"):
        rs.plots.effects(effect, reference=3)
    with pytest.raises(KeyError, match="no feature"):
        rs.plots.effects(effect, reference={"no feature": 1})
    with pytest.raises(ValueError, match="reference must be a level of 'k'"):
        rs.plots.profile(rs.pdp(model, X), "k", reference="z")
    with pytest.raises(ValueError, match="reference must be a value of 'a' within the grid"):
        rs.plots.profile(rs.pdp(model, X), "a", reference=-4)
    shap = rs.shap_dependence(None, X[["b"]], shap_values=X[["b"]].to_numpy())
    with pytest.raises(ValueError, match="reference must be None for shap_dependence"):
        rs.plots.profile(shap, "b", reference=0)


@pytest.mark.thorough
def test_names_for_people_are_handed_on():
    frame = X.copy()
    frame.attrs = {"labels": {"a": "dose of the drug", "k": "clinic"}}
    local = rs.local_effects(model, frame, features=["a", "b"])
    for effect in (rs.rhale(local), rs.ale(model, frame), rs.pdp(model, frame)):
        assert rs.plots.effect(effect, "a")[-1].get_xlabel() == "dose of the drug"
    titles = {panel.get_title() for panel in rs.plots.effects(rs.rhale(local))}
    assert "dose of the drug" in titles
    tree = rs.regions(local, "a", conditioning=frame, test=None)
    assert "dose of the drug" in rs.plots.tree(tree).get_title()
    surface = rs.ale2(model, frame, ("a", "b"))
    assert rs.plots.surface(surface).get_xlabel() == "dose of the drug"
    plt.close("all")


def test_sources_of_differences_between_points_of_a_line():
    """What bins add to the variance of a difference is all of it from the start on; also where
    rows are denser on one side, so that effects and slopes are correlated."""
    x = RNG.beta(1, 3, (400, 1))
    local = rs.local_effects(None, x, jacobian=3 * x + RNG.normal(size=x.shape))
    effect = rs.std_error(
        rs.rhale(local, bins=rs.AdaptiveBins(20), weighting="rows", centering="start")
    )
    (feature,) = features_of(effect)
    assert feature.row["slope"].values.any()
    ends = feature.fit.pieces.edges[[0, -1]]
    points = ends[0] + np.array([0.1, 0.5, 0.9, 0.3]) * np.ptp(ends)
    covariance = feature.fit.covariance(points)
    apart = covariance[:-1, :-1] - covariance[:-1, -1:] - covariance[-1:, :-1] + covariance[-1, -1]
    joint = _joint(feature, points, apart)
    assert_allclose(joint.sources.parts.sum(axis=1), np.diagonal(apart), rtol=1e-9)
    assert (joint.degrees > 1).all()


@pytest.mark.parametrize("weighting", ["axis", "rows"])
def test_intervals_of_groups_by_hand(weighting):
    """Student's t with the smaller degrees of freedom of both points, at the level that is set."""
    local = rs.local_effects(model, X[:150], features=["a"])
    effect = rs.rhale(local, bins=rs.GivenBins([0, 1, 2, 4, 20]), weighting=weighting)
    effect = rs.std_error(effect, local, groups=np.arange(150) // 5)
    effect = rs.confint(effect, level=0.8)
    for at in one_feature(effect, 0).bin_edge_numbers[[0, 2]]:
        row = effect.isel(feature=0)
        z = row["edge_value"].values
        found = relative_to(effect, z[at])
        v, df = row["curve_cov"].values, row["curve_df"].values
        se = np.sqrt(np.maximum(np.diagonal(v) + v[at, at] - 2 * v[at], 0))
        se[at] = 0
        half = stats.t.ppf(0.9, np.minimum(df, df[at])) * se
        curve = row["curve"].values - row["curve"].values[at]
        ends = np.stack([curve - half, curve + half], axis=-1)
        assert_allclose(found["curve"][0], curve, atol=1e-12)
        assert_allclose(found["curve_ci"][0], ends, rtol=1e-6, atol=1e-9)
        assert found["curve_ci"].attrs["ci_prob"] == 0.8
        said = "difference from the curve at the reference"
        assert found["curve_ci"].attrs["target"] == said
        assert found["curve_ci"].dims == ("feature", "edge", "ci_bound")
        assert found.attrs["reference"] == f"a = {z[at]:.4g}"
        assert (len(z) > 5) == (weighting == "axis")
        assert "curve_band" not in found


def test_intervals_without_any_of_the_effect():
    """95 %, and the words of none."""
    local = rs.local_effects(model, X[:150], features=["a"])
    effect = rs.rhale(local, bins=rs.GivenBins([0, 1, 2, 4, 20]), weighting="rows")
    found = relative_to(effect, 1.0)
    row = rs.std_error(effect).isel(feature=0)
    covariance = rs.vcov(effect, "a").values
    se = np.sqrt(np.diagonal(covariance) + covariance[1, 1] - 2 * covariance[1])
    half = np.ptp(found["curve_ci"].values[0], axis=1) / 2
    assert half[1] == 0
    away = [0, 2, 3, 4]
    quantile = half[away] / se[away]
    n = row["n_obs"].values
    # From one edge to the next, only the bin between them counts.
    assert_allclose(quantile[:2], stats.t.ppf(0.975, [n[0] - 1, n[1] - 1]), rtol=1e-6)
    assert found["curve_ci"].attrs == {"target": "difference from the curve at the reference"}
    assert found["ci_bound"].values.tolist() == ["lower", "upper"]
    bare = rs.debias(effect, rs.check_unbiased(local, effect, rng=0))
    assert "curve_ci" not in relative_to(bare, 1.0)


def test_levels_relative_to_one():
    effect = rs.confint(rs.ale(model, X[:200], features="k"), level=0.9)
    row = effect.isel(feature=0)
    found = relative_to(effect, "v")
    at = row["level"].values.tolist().index("v")
    v = row["curve_cov"].values
    se = np.sqrt(np.maximum(np.diagonal(v) + v[at, at] - 2 * v[at], 0))
    half = np.ptp(found["curve_ci"].values[0], axis=1) / 2
    assert_allclose(found["curve"][0], row["curve"] - row["curve"][at])
    assert half[at] == 0
    others = np.arange(len(se)) != at
    assert ((half[others] / se[others] > 1.64) & (half[others] / se[others] < 1.75)).all()
    assert found.attrs["reference"] == "k = v"
    with pytest.raises(ValueError, match=r"a level of 'k', .*'u'.*; got 'z'\."):
        relative_to(effect, "z")


def test_values_without_a_curve_are_refused():
    x = np.column_stack([X["a"][:60], np.ones(60)])
    local = rs.local_effects(
        None, pd.DataFrame(x, columns=["a", "c"]), jacobian=x, features=["a", "c"]
    )
    effect = rs.rhale(local, bins=rs.GivenBins({"a": [0, 1, 20], "c": [0, 2]}))
    with pytest.raises(ValueError, match=r"got 21\.0\. Its bins are from 0 to 20\."):
        relative_to(one(effect), 21)
    with pytest.raises(ValueError, match=r"got 1\.0\. The feature is constant\."):
        relative_to(one(effect, "c"), 1)
