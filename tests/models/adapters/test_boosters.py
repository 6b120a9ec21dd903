"""Native boosters beside the models of the same libraries, and their columns by name."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import rhale_stats as rs

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(400, 3)), columns=["a", "b b", "c"])
Y = np.sin(2 * X["a"]) + X["b b"] * (X["c"] > 0)


def xgb(X, y, **parameters):
    xgboost = pytest.importorskip("xgboost")
    return xgboost.train({"max_depth": 3} | parameters, xgboost.DMatrix(X, y), 10)


def lgb(X, y, **parameters):
    lightgbm = pytest.importorskip("lightgbm")
    return lightgbm.train({"verbose": -1} | parameters, lightgbm.Dataset(X, y), 10)


def direct(booster, X):
    """Answers of a booster without this package."""
    if hasattr(booster, "inplace_predict"):
        return booster.inplace_predict(X)
    return booster.predict(X.rename(columns=lambda name: name.replace(" ", "_")))


@pytest.mark.thorough
@pytest.mark.parametrize("train", [xgb, lgb])
def test_ale_gains_what_the_predictions_gain(train):
    booster = train(X, Y)
    effect = rs.ale(booster, X, features="a", bins=rs.GivenBins({"a": [-4, -1, 0, 1, 4]}))
    x, edges = X["a"], np.array([-4, -1, 0, 1, 4])
    for k in range(4):
        rows = X[(x >= edges[k]) & (x < edges[k + 1])]
        ends = [direct(booster, rows.assign(a=edges[at])) for at in (k, k + 1)]
        gain = np.diff(effect["curve"].values[0, k : k + 2])[0]
        assert gain == pytest.approx(np.mean(ends[1] - ends[0]), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("train", [xgb, lgb])
def test_columns_go_by_name(train):
    booster = train(X, Y)
    bins = rs.QuantileBins(4)
    whole = rs.ale(booster, X, bins=bins, features=["a", "c"])
    table = X.assign(more=1.0)[["c", "more", "a", "b b"]]
    other = rs.ale(booster, table, bins=bins, features=["a", "c"])
    assert_allclose(other["curve"], whole["curve"])
    with pytest.raises(rs.ModelError, match=r"'c' of 3 is not among 'a', 'b"):
        rs.ale(booster, X.rename(columns={"c": "d"}), features="a")


@pytest.mark.parametrize("train", [xgb, lgb])
def test_arrays_and_classes(train):
    y = np.digitize(Y, [-0.5, 0.5])
    objective = "multi:softprob" if train is xgb else "multiclass"
    booster = train(X.to_numpy(), y, objective=objective, num_class=3)
    effect = rs.pdp(booster, X.to_numpy(), features=0)
    assert effect.sizes["output"] == 3
    assert_allclose(effect["curve"].sum("output"), 0, atol=1e-5)


def test_iterations_after_the_best_are_not_used():
    xgboost = pytest.importorskip("xgboost")
    noise = RNG.normal(size=400)
    train, other = xgboost.DMatrix(X, noise), xgboost.DMatrix(X, noise[::-1])
    stop = {"early_stopping_rounds": 2, "verbose_eval": False}
    booster = xgboost.train({"max_depth": 6}, train, 30, evals=[(other, "other")], **stop)
    best = booster.best_iteration
    assert best < 29
    found = rs.pdp(booster, X, features="a", n_grid=2, centering="start")
    ends = [X.assign(a=X["a"].min()), X.assign(a=X["a"].max())]
    first, last = (booster.inplace_predict(one, iteration_range=(0, best + 1)) for one in ends)
    assert found["curve"].values[0, -1] == pytest.approx(np.mean(last - first), abs=1e-6)
