"""Results of statsmodels answer for the columns of their fit, whatever else a table holds."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf
from numpy.testing import assert_allclose
from statsmodels.gam.api import BSplines, GLMGam
from statsmodels.miscmodels.ordinal_model import OrderedModel

import rhale_stats as rs
from tests.helpers import in_turn


@pytest.fixture
def X(rng):
    return pd.DataFrame(
        {
            "a": rng.normal(size=200),
            "b": rng.uniform(0, 2, 200),
            "n": rng.integers(0, 5, 200),
            "other": rng.normal(size=200),
        }
    )


@pytest.fixture
def y(X, rng):
    return (X["a"] + X["b"] ** 2 + 0.2 * X["n"] + rng.normal(size=200)).to_numpy()


def slopes(local, name):
    return local["local_effect"].sel(feature=name).values


def test_features_of_a_formula_are_its_regressors(X, y):
    model = smf.ols("y ~ a + np.log(b + 1) + n", X.assign(y=y)).fit()
    local = rs.local_effects(model, X.assign(y=y))
    assert local["feature"].values.tolist() == ["a", "b", "n"]
    assert_allclose(slopes(local, "n"), model.params["n"], rtol=1e-6)


def test_features_of_a_table_are_its_columns(X, y):
    model = sm.OLS(y, X[["a", "b"]]).fit()
    local = rs.local_effects(model, X.assign(y=y)[["y", "other", "b", "a"]])
    assert local["feature"].values.tolist() == ["b", "a"]


@pytest.mark.parametrize("types", [None, "numpy_nullable", "pyarrow"])
def test_columns_of_a_fit_without_a_formula_go_by_name(X, y, types):
    # statsmodels multiplies the columns as they come, and the numbers were those of others.
    model = sm.OLS(y, X[["a", "b"]]).fit()
    table = X[["b", "other", "a"]]
    table = table if types is None else table.convert_dtypes(dtype_backend=types)
    local = rs.local_effects(model, table)
    for name in ("a", "b"):
        assert_allclose(slopes(local, name), model.params[name], rtol=1e-6)


def test_columns_under_other_names_go_by_number(X, y):
    model = sm.OLS(y, X[["a", "b"]]).fit()
    local = rs.local_effects(model, X[["a", "b"]].rename(columns={"a": "p", "b": "q"}))
    assert_allclose(slopes(local, "q"), model.params["b"], rtol=1e-6)


def test_an_offset_stays_with_its_row_in_whatever_order_columns_are(X, rng):
    level = rng.normal(size=200)
    count = rng.poisson(np.exp(0.3 * X["a"] + level))
    model = sm.GLM(count, X[["a", "b"]], family=sm.families.Poisson(), offset=level).fit()
    local = rs.local_effects(model, X[["b", "a"]])
    expected = model.params["a"] * model.predict(X[["a", "b"]], offset=level)
    # Differences of the first and the last row on the axis are one-sided, of order one.
    assert_allclose(slopes(local, "a"), expected, rtol=1e-5)


@pytest.mark.parametrize(("offset", "formula"), in_turn([False, True], [False, True]))
def test_hazards_answer_with_their_logarithm(X, y, offset, formula):
    # What predict takes first is the time, and it returns standard errors besides.
    time, level = np.exp(-y / 5), {"offset": np.linspace(0, 1, 200)} if offset else {}
    if formula:
        model = smf.phreg("time ~ a + b", X.assign(time=time), **level).fit()
    else:
        model = sm.PHReg(time, X[["a", "b"]], **level).fit()
    local = rs.local_effects(model, X, features=["a", "b"])
    for name, slope in zip(("a", "b"), model.params, strict=True):
        assert_allclose(slopes(local, name), slope, rtol=1e-6)


@pytest.mark.parametrize("formula", [False, True])
def test_hazards_have_errors_of_their_parameters(X, y, formula):
    time = np.exp(-y / 5)
    if formula:
        model = smf.phreg("time ~ a + I(a**2) + b", X.assign(time=time)).fit()
        design = np.array([[1, 2 * X["a"].mean(), 0], [0, 0, 1]])
    else:
        model, design = sm.PHReg(time, X[["a", "b"]]).fit(), np.eye(2)
    expected = np.sqrt(np.diag(design @ model.cov_params() @ design.T))
    found = rs.averages(model, X[["a", "b"]], uncertainty="parameters")
    assert_allclose(rs.tidy(found)["std_error"][-2:], expected, rtol=1e-5)
    X, at = X[["a", "b"]], [-1.0, 1.0]
    profile = rs.pdp(model, X, "a", grid={"a": at}, centering="none")
    profile = rs.std_error(profile, model=model, X=X, uncertainty="parameters")

    def curve(params):
        return [model.model.predict(params, model_rows(X.assign(a=z))) for z in at]

    def model_rows(rows):
        squares = [rows["a"] ** 2] if formula else []
        return np.column_stack([rows["a"], *squares, rows["b"]])

    steps = 1e-5 * np.eye(len(model.params))
    mean = lambda params: np.array([f.predicted_values.mean() for f in curve(params)])  # noqa: E731
    slope = np.array([mean(model.params + s) - mean(model.params - s) for s in steps]) / 2e-5
    covariance = slope.T @ model.cov_params() @ slope
    assert_allclose(profile["curve_cov"].isel(feature=0), covariance, rtol=1e-5)


def test_ordered_outcomes_are_outputs(X, y):
    levels = np.searchsorted(np.quantile(y, [0.3, 0.7]), y)
    model = OrderedModel(levels, X[["a", "b"]], distr="logit").fit(disp=0)
    local = rs.local_effects(model, X[["b", "a"]])
    assert local.sizes["output"] == 3
    assert_allclose(local["local_effect"].sum("output"), 0, atol=1e-7)
    h, own = 1e-5, X[["a", "b"]]
    up, down = (np.asarray(model.predict(own.assign(a=own["a"] + s))) for s in (h, -h))
    found = local["local_effect"].sel(feature="a").transpose("obs", "output")
    # One-sided for the first and the last row, as above.
    assert_allclose(found, (up - down) / (2 * h), rtol=1e-5, atol=1e-7)


def test_additive_models_get_the_columns_of_their_splines(X, y):
    smoother = BSplines(X[["b"]], df=[5], degree=[3])
    model = GLMGam.from_formula("y ~ a", X.assign(y=y), smoother=smoother, alpha=[1.0]).fit()
    local = rs.local_effects(model, X[["b", "a"]], features=["a", "b"])
    assert_allclose(slopes(local, "a"), model.params["a"], rtol=1e-6)
    # Splines have no value beyond their outermost knots.
    ends = X["b"].min(), X["b"].max()
    inner = X["b"].between(*ends, inclusive="neither").to_numpy()
    up, down = (
        np.asarray(model.predict(one, exog_smooth=one[["b"]]))
        for one in (X.assign(b=np.clip(X["b"] + s, *ends)) for s in (1e-5, -1e-5))
    )
    assert_allclose(slopes(local, "b")[inner], (up - down)[inner] / 2e-5, atol=1e-3)
