"""Displays in the manner of scikit-learn's inspection module."""

import inspect

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.inspection import PartialDependenceDisplay, partial_dependence
from sklearn.linear_model import LogisticRegression

import rhale_stats as rs

EffectDisplay = rs.sklearn.EffectDisplay


@pytest.fixture(scope="module")
def data():
    X, y = make_classification(200, 4, n_informative=3, n_redundant=0, n_classes=3, random_state=0)
    return pd.DataFrame(X, columns=list("abcd")), y


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def test_partial_dependence_is_that_of_scikit_learn(data):
    X, y = data
    fitted = LogisticRegression().fit(X, y == 1)
    display = EffectDisplay.from_estimator(
        fitted, X, ["a", "b"], kind="average", grid_resolution=9, percentiles=(0.05, 0.95)
    )
    for number, name in enumerate("ab"):
        grid = display.result["grid_value"].values[number]
        theirs = partial_dependence(fitted, X, [name], custom_values={name: grid}, kind="average")
        np.testing.assert_allclose(display.result["curve"].values[number], theirs["average"][0])


@pytest.mark.parametrize("kind", ["ale", "rhale", "average", "individual", "both", "m_plot"])
def test_every_kind_is_drawn_and_drawn_again(data, kind):
    X, y = data
    fitted = LogisticRegression().fit(X, y == 1)
    display = EffectDisplay.from_estimator(fitted, X, ["a", "b"], kind=kind)
    assert len(display.axes_) == 2
    first = display.figure_
    assert display.plot() is display
    assert display.figure_ is not first
    own = plt.figure().add_subplot()
    display.plot(ax=own)
    assert display.figure_ is own.figure
    assert not own.axison


def test_options_are_those_of_our_functions(data):
    X, y = data
    fitted, weights = LogisticRegression().fit(X, y), np.arange(len(X)) % 3 + 1.0
    display = EffectDisplay.from_estimator(
        fitted, X, ["a"], sample_weight=weights, target=2, grid_resolution=6, centered=True
    )
    by_hand = rs.ale(fitted, X, ["a"], weights=weights, output=2, bins=6, centering="start")
    np.testing.assert_array_equal(display.result["curve"], by_hand["curve"])
    forest = RandomForestClassifier(5, random_state=0).fit(X, y)
    groups = EffectDisplay.from_estimator(forest, X, ["a"], target=0, by=y % 2)
    assert groups.result.sizes["region"] == 2
    pair = EffectDisplay.from_estimator(forest, X, [("a", "b")], kind="average", target=0)
    assert pair.axes_[0].get_ylabel() == "b"
    assert len(EffectDisplay.from_estimator(forest, X, ["a"], kind="ale").axes_) == 1
    with pytest.raises(ValueError, match="kind must be one of 'average'"):
        EffectDisplay.from_estimator(fitted, X, kind="shap")


def test_most_keywords_are_those_of_scikit_learn():
    theirs = inspect.signature(PartialDependenceDisplay.from_estimator).parameters
    ours = inspect.signature(EffectDisplay.from_estimator).parameters
    gone = {"feature_names", "n_jobs", "verbose", "line_kw", "ice_lines_kw", "pd_line_kw"}
    gone |= {"contour_kw", "subsample", "random_state", "method", "custom_values"}
    assert set(theirs) - gone <= set(ours)
