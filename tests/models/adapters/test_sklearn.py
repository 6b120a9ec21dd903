"""Derivatives of pipelines, compared with central differences of their predictions."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

import rhale_stats as rs
from tests.helpers import in_turn

compose = pytest.importorskip("sklearn.compose")
from sklearn import (  # noqa: E402
    decomposition,
    discriminant_analysis,
    ensemble,
    impute,
    linear_model,
    neural_network,
    preprocessing,
)
from sklearn.pipeline import make_pipeline  # noqa: E402

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(240, 3)), columns=["a", "b", "c"])
X["c"] = np.exp(X["c"] / 2)
Y = np.sin(2 * X["a"]) + X["b"] * X["c"] + 0.1 * RNG.normal(size=len(X))
CLASS = np.digitize(Y, [-0.5, 0.7])
SCALE = preprocessing.StandardScaler
COUNTS = RNG.poisson(np.exp(0.3 * Y.clip(-2, 2)))


def columns(*steps):
    return compose.ColumnTransformer(
        [(f"part {number}", step, names) for number, (step, names) in enumerate(steps)],
        remainder="passthrough",
    )


def network(kind, activation, y):
    made = kind(hidden_layer_sizes=(8, 6), activation=activation, max_iter=30, random_state=0)
    return make_pipeline(SCALE(), made), y


REGRESSIONS = {
    "line": (linear_model.LinearRegression(), Y),
    "lasso of robust scales": (
        make_pipeline(preprocessing.RobustScaler(), linear_model.Lasso(0.01)),
        Y,
    ),
    "polynomial": (
        make_pipeline(
            preprocessing.MinMaxScaler(),
            preprocessing.PolynomialFeatures(3),
            linear_model.Ridge(),
        ),
        Y,
    ),
    "splines": (
        make_pipeline(preprocessing.SplineTransformer(), linear_model.Ridge()),
        Y,
    ),
    "splines that go on": (
        make_pipeline(
            preprocessing.SplineTransformer(
                include_bias=False,
                extrapolation="linear",
                knots=np.array([[-1.0], [0.5], [1.0]]) * [1, 1, 1],
            ),
            linear_model.Ridge(),
        ),
        Y,
    ),
    "columns": (
        make_pipeline(
            columns(
                (preprocessing.PolynomialFeatures(2), ["c", "a"]),
                (make_pipeline(SCALE(), preprocessing.SplineTransformer()), ["b"]),
            ),
            SCALE(),
            linear_model.Ridge(),
        ),
        Y,
    ),
    "principal components": (
        make_pipeline(SCALE(), decomposition.PCA(2, whiten=True), linear_model.Ridge()),
        Y,
    ),
    "powers": (
        make_pipeline(preprocessing.PowerTransformer(), linear_model.HuberRegressor()),
        Y,
    ),
    "Box-Cox": (
        make_pipeline(
            columns((preprocessing.PowerTransformer("box-cox"), ["c"])), linear_model.Ridge()
        ),
        Y,
    ),
    "imputed": (make_pipeline(impute.SimpleImputer(), linear_model.Ridge()), Y),
    "Poisson": (make_pipeline(SCALE(), linear_model.PoissonRegressor()), COUNTS),
    "gamma": (linear_model.GammaRegressor(), COUNTS + 1.0),
    "normal by Tweedie": (linear_model.TweedieRegressor(power=0), Y),
    **{
        f"network of {name}": network(neural_network.MLPRegressor, name, Y)
        for name in ("tanh", "logistic", "identity", "relu")
    },
    "two outputs": (
        make_pipeline(SCALE(), linear_model.LinearRegression()),
        np.column_stack([Y, X["a"]]),
    ),
    "network of two outputs": network(
        neural_network.MLPRegressor, "tanh", np.column_stack([Y, X["a"]])
    ),
}
CLASSIFIERS = {
    "logit": (make_pipeline(SCALE(), linear_model.LogisticRegression()), CLASS > 0),
    "multinomial logit": (linear_model.LogisticRegression(max_iter=1000), CLASS),
    "discriminant": (discriminant_analysis.LinearDiscriminantAnalysis(), CLASS),
    "network": network(neural_network.MLPClassifier, "tanh", CLASS > 0),
    "network of classes": network(neural_network.MLPClassifier, "tanh", CLASS),
}


def both(model, X, **options):
    exact = rs.local_effects(model, X, method="gradient", progress=False, **options)
    return exact, rs.local_effects(model, X, method="central_difference", progress=False, **options)


def check(exact, near, rtol=1e-5):
    assert set(exact["local_effect_method"].values) == {"gradient"}
    size = np.abs(near["local_effect"]).max().item()
    # The steps of the outermost rows are one-sided.
    inner = np.abs(exact["local_effect"] - near["local_effect"])
    assert np.quantile(inner, 0.97) < rtol * size
    assert size > 0


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", REGRESSIONS)
def test_regressions(name):
    model, y = REGRESSIONS[name]
    check(*both(model.fit(X, y), X))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("scale", "name"), in_turn(["response", "logit"], CLASSIFIERS))
def test_classifiers(name, scale):
    model, y = CLASSIFIERS[name]
    check(*both(model.fit(X, y), X, scale=scale), rtol=1e-4)


def test_decision_functions():
    model = make_pipeline(SCALE(), linear_model.RidgeClassifier()).fit(X, CLASS)
    check(*both(model, X, scale="decision"))


@pytest.mark.filterwarnings("ignore:Columns that the model was not fitted with")
def test_columns_go_by_name():
    steps = columns((preprocessing.PolynomialFeatures(2), ["c", "a"]))
    other = X.assign(unused=1.5)[["b", "unused", "c", "a"]]
    for model in (
        make_pipeline(steps, linear_model.Ridge()).fit(X, Y),
        linear_model.Ridge().fit(X.to_numpy(), Y),
    ):
        table = other if hasattr(model, "steps") else X.to_numpy()
        names = ["c", "a", "b"] if hasattr(model, "steps") else [2, 0, 1]
        exact, near = both(model, table, features=names)
        check(exact, near)


def test_encoded_columns_beside_numbers():
    table = X.assign(group=pd.Categorical.from_codes(CLASS, ["low", "mid", "high"]))
    steps = columns((preprocessing.OneHotEncoder(), ["group"]), (SCALE(), ["a"]))
    model = make_pipeline(steps, linear_model.Ridge()).fit(table, Y)
    check(*both(model, table, features=["a", "b", "c"]))


@pytest.mark.parametrize(
    "model",
    [
        make_pipeline(preprocessing.QuantileTransformer(n_quantiles=50), linear_model.Ridge()),
        make_pipeline(preprocessing.MinMaxScaler(clip=True), linear_model.Ridge()),
        ensemble.GradientBoostingRegressor(n_estimators=5),
    ],
)
def test_other_steps_have_no_gradient(model):
    with pytest.raises(ValueError, match="method='gradient' needs a model that gives its gradient"):
        rs.local_effects(model.fit(X, Y), X, method="gradient")


def test_classes_of_users_may_do_something_else():
    class Half(linear_model.LinearRegression):
        def predict(self, X):
            return super().predict(X) ** 2

    exact = rs.local_effects(Half().fit(X, Y), X, progress=False)
    assert set(exact["local_effect_method"].values) == {"central_difference"}


def test_columns_in_another_order_and_others_beside_them(rng):
    # The model is asked with the columns of its fit, and the gradient was that of other columns.
    X = pd.DataFrame(rng.normal(size=(200, 3)), columns=["a", "b", "c"])
    model = make_pipeline(preprocessing.StandardScaler(), linear_model.Ridge()).fit(
        X, X @ [1.0, 2.0, 3.0]
    )
    with warnings.catch_warnings():
        # Of the column that the model was not fitted with.
        warnings.filterwarnings("ignore", "Columns that the model was not fitted with")
        local = rs.local_effects(
            model, X.assign(d=0.5 * X["a"])[["d", "c", "b", "a"]], features=["d", "c", "a"]
        )
    scale = model[0].scale_
    assert set(local["local_effect_method"].values) == {"gradient"}
    expected = [0, model[1].coef_[2] / scale[2], model[1].coef_[0] / scale[0]]
    np.testing.assert_allclose(local["local_effect"], np.tile(expected, (200, 1)), rtol=1e-12)
