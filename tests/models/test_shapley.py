"""Which way Shapley values of a model are computed, and that all ways agree."""

import numpy as np
import pandas as pd
import pytest

import rhale_stats as rs
from rhale_stats.models import shapley
from tests.helpers import in_turn, rows_of_probe

TREES, LINE, SUBSETS = "exact: trees", "exact: linear model", "exact: all subsets of columns"


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(150, 3)), columns=list("abc"))
    return X, np.sin(2 * X["a"]) * X["b"] + X["c"]


def estimate(model, X, **more):
    return rs.shap_dependence(model, X, background=9, rng=0, n_grid=5, **more)


def of_subsets(monkeypatch, model, X, **more):
    """The same without knowledge of the model."""
    with monkeypatch.context() as patched:
        for name in ("of_line", "of_trees"):
            patched.setattr(shapley, name, lambda *_: None)
        found = estimate(model, X, **more)
    assert found.attrs["shapley"] == SUBSETS
    return found["shap_value"]


def sklearn_models():
    from sklearn import ensemble, linear_model

    trees = {"max_depth": 4, "random_state": 0}
    return {
        "forest": (ensemble.RandomForestRegressor(5, **trees), {}, TREES),
        "classes": (ensemble.RandomForestClassifier(5, **trees), {}, TREES),
        "boosted": (ensemble.GradientBoostingRegressor(n_estimators=9), {}, TREES),
        "histogram": (ensemble.HistGradientBoostingRegressor(max_iter=9), {}, TREES),
        "log-odds": (
            ensemble.HistGradientBoostingClassifier(max_iter=9), {"scale": "logit"}, TREES,
        ),
        "decisions": (
            ensemble.HistGradientBoostingClassifier(max_iter=9), {"scale": "decision"}, TREES,
        ),
        "probabilities": (ensemble.HistGradientBoostingClassifier(max_iter=9), {}, SUBSETS),
        "line": (linear_model.LinearRegression(), {}, LINE),
        "logistic": (linear_model.LogisticRegression(), {"scale": "logit", "output": "low"}, LINE),
        "no line": (linear_model.LogisticRegression(), {}, SUBSETS),
        "no line either": (linear_model.PoissonRegressor(), {}, SUBSETS),
    }  # fmt: skip


@pytest.mark.parametrize(
    "name",
    [
        *("forest", "classes", "boosted", "histogram", "log-odds", "decisions", "probabilities"),
        *("line", "logistic", "no line", "no line either"),
    ],
)
def test_models_of_scikit_learn(table, monkeypatch, name):
    pytest.importorskip("sklearn")
    X, y = table
    model, options, how = sklearn_models()[name]
    if hasattr(model, "predict_proba"):
        y = np.where(y > 0, "up", "low") if name != "decisions" else pd.cut(y, 3, labels=False)
    elif "either" in name:
        y = np.exp(y)
    model.fit(X, y)
    found = estimate(model, X[:20], **options)
    assert found.attrs["shapley"] == how
    expected = of_subsets(monkeypatch, model, X[:20], **options)
    np.testing.assert_allclose(found["shap_value"], expected, atol=1e-6)
    if how != SUBSETS:
        assert found.attrs["model_rows"] == 20 + 9 + sum(rows_of_probe(20))
    if not hasattr(model, "predict_proba"):
        assert estimate(model.predict, X[:20]).attrs["shapley"] == how


@pytest.mark.parametrize(
    ("library", "gaps"), in_turn(["lightgbm", "xgboost", "catboost"], [False, True])
)
def test_boosted_trees(table, monkeypatch, library, gaps):
    module = pytest.importorskip(library)
    X, y = table
    if gaps:
        X = X.mask(np.random.default_rng(1).random(X.shape) < 0.2)
    model = {
        "lightgbm": lambda: module.LGBMRegressor(n_estimators=9, verbose=-1),
        "xgboost": lambda: module.XGBRegressor(n_estimators=9),
        "catboost": lambda: module.CatBoostRegressor(
            iterations=9, verbose=0, allow_writing_files=False
        ),
    }[library]().fit(X, y)
    options = {"missing": "drop"} if gaps else {}
    found = estimate(model, X[:20], **options)
    assert found.attrs["shapley"] == TREES
    expected = of_subsets(monkeypatch, model, X[:20], **options)
    np.testing.assert_allclose(found["shap_value"], expected, atol=1e-6)


def test_large_trees_go_through_the_library(table, monkeypatch):
    ensemble = pytest.importorskip("sklearn.ensemble")
    X, y = table
    model = ensemble.ExtraTreesRegressor(5, random_state=0).fit(X, y)
    ours = estimate(model, X[:20])["shap_value"]
    monkeypatch.setattr(shapley, "LEAF_COST", np.inf)
    np.testing.assert_allclose(estimate(model, X[:20])["shap_value"], ours, atol=1e-6)


def test_trees_that_do_not_add_up_to_the_model_are_not_used(table):
    """A wrapper around trees, as of offsets, that looks like them."""
    ensemble = pytest.importorskip("sklearn.ensemble")
    X, y = table

    class Squared(ensemble.RandomForestRegressor):
        def predict(self, X):
            return super().predict(X) ** 2

    model = Squared(5, max_depth=3, random_state=0).fit(X, y)
    assert estimate(model, X[:5]).attrs["shapley"] == SUBSETS


def test_of_many_columns_a_sample_with_its_error():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(25, 6))

    def model(X):
        return X[:, 0] * X[:, 1] * X[:, 2] + X[:, 3]

    exact = estimate(model, X)
    assert exact.attrs["shapley"] == SUBSETS
    assert "shap_value_error" not in exact
    found = estimate(model, X, max_model_rows=100)
    # 9 background rows, 8 times each.
    assert found.attrs["shapley"] == "sampled: 144 permutations of the columns a row, in pairs"
    error = found["shap_value_error"]
    np.testing.assert_allclose(error.sel(feature=["x4", "x5"]), 0)
    away = (found["shap_value"] - exact["shap_value"]).sel(feature=["x0", "x1", "x2"])
    share = np.abs(away) / error.sel(feature=["x0", "x1", "x2"])
    # 75 values; the error is stated rather too large (math [89]).
    assert share.max() < 4
    assert 0.3 < np.sqrt((share**2).mean()) < 1.1
    np.testing.assert_allclose(
        found["shap_value"].sum("feature"), exact["shap_value"].sum("feature"), atol=1e-12
    )
    text = str(rs.summary(found))
    assert "Monte-Carlo standard error of a Shapley value" in text.replace("\n", " ")
    tree = rs.regional_shap(model, X, "x0", background=9, max_model_rows=100, min_obs=5, rng=0)
    assert tree.attrs["shapley"].startswith("sampled")
    assert tree.attrs["shap_value_error"] > 0
