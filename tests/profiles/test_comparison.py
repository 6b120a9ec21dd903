"""Errors of profiles under precision weights, by the numeric influence of every weight."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import rhale_stats as rs

N, STEP = 60, 1e-6
GRID = {"a": [0, 1, 2, 3]}
BINS = rs.GivenBins([0, 0.5, 1.5, 2.5, 3])
RNG = np.random.default_rng(0)
X = pd.DataFrame({"a": RNG.integers(4, size=N).astype(float), "b": RNG.normal(size=N)})
GAPS = X.assign(a=X["a"].mask(RNG.random(N) < 0.4))
# Rows that differ from the others have much weight.
WEIGHT = 0.2 + X["b"].to_numpy() ** 2
KISH = WEIGHT.sum() ** 2 / np.sum(WEIGHT**2)


def f(X):
    return ((X["a"].fillna(1) / 3 + 1) * X["b"]).to_numpy()


def g(X):
    return (X["a"].fillna(6) ** 2 / 9 + 0.2 * X["b"]).to_numpy()


def partial(model, weight, X=X, **how):
    return rs.ice(model, X, features=["a"], weights=weight, grid=GRID, progress=False, **how)


def averages(model, weight, X=X, **how):
    return rs.pdp(model, X, features=["a"], weights=weight, grid=GRID, progress=False, **how)


def smooth(model, weight, X=X, **how):
    phi = model(X)
    return rs.shap_dependence(
        None, X[["a"]], shap_values=phi, weights=weight, features=["a"], grid=GRID, **how
    )


def means(model, weight, X=X, **how):
    return rs.m_plot(model, X, features=["a"], weights=weight, bins=BINS, **how)


def by_weights(statistic):
    """Standard error from the derivatives of a statistic by all weights (HC0)."""
    here = np.squeeze(statistic(WEIGHT))
    moved = [np.squeeze(statistic(WEIGHT * (1 + step))) - here for step in STEP * np.eye(N)]
    return np.sqrt(np.sum(np.square(moved), axis=0)) / STEP


def unbiased(w):
    """Root of the factor that makes the variance of one weighted mean unbiased."""
    rest = 1 - 2 * np.sum(w**3) / (w.sum() * np.sum(w**2)) + np.sum(w**2) / w.sum() ** 2
    return 1 / np.sqrt(rest)


@pytest.mark.parametrize("make", [partial, smooth])
@pytest.mark.slow
def test_paired_differences_are_sandwiches(make):
    a, b = make(f, WEIGHT), make(g, WEIGHT)
    found = rs.compare(a, b, paired=(a, b), n_draws=50, rng=0)["difference_se"].values[0]
    expected = by_weights(lambda w: make(f, w)["curve"].values - make(g, w)["curve"].values)
    if make is partial:
        np.testing.assert_allclose(found, expected * unbiased(WEIGHT), rtol=1e-4)
        return
    # Levels with few effective rows have larger corrections of their leverage.
    ratio = found / expected
    assert (ratio >= 1).all()
    assert (ratio < 1 + 32 / KISH).all()


def test_shapley_values_have_sandwiches():
    found = smooth(f, WEIGHT)["curve_se"].values[0]
    ratio = found / by_weights(lambda w: smooth(f, w)["curve"].values)
    assert (ratio >= 1).all()
    assert (ratio < 1 + 32 / KISH).all()


@pytest.mark.parametrize(
    ("make", "centering"),
    [(averages, "mean"), (averages, "start"), (smooth, "mean"), (means, "mean"), (means, "none")],
)
def test_missing_values_beside_the_curve(make, centering):
    how = {"X": GAPS, "missing": "bin", "centering": centering}
    found = make(f, WEIGHT, **how)["missing_curve_se"].item()
    ratio = found / by_weights(lambda w: make(f, w, **how)["missing_curve"].values)
    assert 1 <= ratio < 1 + 16 / KISH


def test_effect_of_a_missing_value():
    def made(weight):
        return rs.local_effects(
            f, GAPS, features=["a"], weights=weight, missing="bin", progress=False
        )

    found = made(WEIGHT)["missing_effect_se"].item()
    expected = by_weights(lambda w: made(w)["missing_effect"].values)
    gone = WEIGHT[GAPS["a"].isna()]
    assert found == pytest.approx(expected * unbiased(gone), rel=1e-4)


@pytest.mark.parametrize("make", [averages, smooth, means])
def test_equal_precision_weights_are_none(make):
    one, none = (make(f, weight, X=GAPS, missing="bin") for weight in (np.full(N, 2.5), None))
    for name in ("curve_se", "missing_curve_se"):
        np.testing.assert_allclose(one[name], none[name], rtol=1e-9)


GROUPS = np.repeat(np.arange(12), 5)


@pytest.mark.parametrize("kind", ["pdp", "m_plot", "shap"])
@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_pairs_in_groups_have_the_errors_of_the_difference(kind, weight):
    """A profile is linear in its model, so that of f - g has the error of the difference."""
    made = {"pdp": partial, "m_plot": means, "shap": smooth}[kind]
    level = {"X": X.astype({"a": str})} if kind == "shap" else {}

    def profile(model):
        if kind == "shap":  # Levels, whose curve has no penalty that would be chosen anew.
            options = {"features": ["a"], "weights": weight}
            return rs.shap_dependence(None, level["X"][["a"]], shap_values=model(X), **options)
        return made(model, weight)

    a, b = profile(f), profile(g)
    found = rs.compare(a, b, paired=(a, b), groups=GROUPS, rng=0)
    apart = rs.std_error(profile(lambda X: f(X) - g(X)), groups=GROUPS)
    np.testing.assert_allclose(found["difference_se"], apart["curve_se"], rtol=1e-7)
    assert found.attrs["source"] == "pairs of rows in 12 groups"


def test_groups_of_profiles_need_their_pairs():
    a, b = partial(f, None), partial(g, None)
    with pytest.raises(ValueError, match="groups come with paired"):
        rs.compare(a, b, groups=GROUPS)
    with pytest.raises(ValueError, match="groups must be given for pairs of profiles"):
        rs.compare(rs.std_error(a, groups=GROUPS), b, paired=(a, b))
