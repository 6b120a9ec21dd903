"""Models with parameters: their directions, derivatives and influences, against their own code."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf
from numpy.testing import assert_allclose
from statsmodels.gam.api import BSplines, GLMGam
from statsmodels.miscmodels.ordinal_model import OrderedModel

import rhale_stats as rs
from rhale_stats.models.parametric import parametric
from rhale_stats.models.table import as_table

N = 120


def table():
    rng = np.random.default_rng(4)
    X = pd.DataFrame({"a": rng.uniform(-1, 1, N), "b": rng.normal(size=N)})
    line = 0.3 + 0.5 * X.a + 0.4 * X.a * X.b
    X["years"] = rng.uniform(1, 5, N)
    X["count"] = rng.poisson(np.exp(line) * X.years)
    X["z"] = line + rng.normal(size=N)
    X["yes"] = (line + rng.logistic(size=N) > 0.3).astype(int)
    X["kind"] = np.digitize(line + rng.logistic(size=N), [-0.5, 0.8])
    X["group"] = np.arange(N) // 6
    return X


DATA = table()
POISSON = sm.families.Poisson()
BY_GROUP = {"cov_type": "cluster", "cov_kwds": {"groups": DATA.group}}


def fitted(name):
    """One model of each class, silent about its optimiser."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return FITS[name]()


FITS = {
    "OLS": lambda: smf.ols("z ~ a * b", DATA).fit(cov_type="HC0"),
    "WLS": lambda: smf.wls("z ~ a * b", DATA, weights=DATA.years).fit(cov_type="HC0"),
    "GLM": lambda: smf.glm("count ~ a * b", DATA, family=POISSON).fit(cov_type="HC0"),
    "GLM by exposure": lambda: smf.glm(
        "count ~ a * b", DATA, family=POISSON, exposure=DATA.years
    ).fit(cov_type="HC0"),
    "gamma": lambda: smf.glm(
        "np.exp(z) ~ a", DATA, family=sm.families.Gamma(sm.families.links.Log())
    ).fit(cov_type="HC0"),
    "logit": lambda: smf.logit("yes ~ a * b", DATA).fit(disp=0, cov_type="HC0"),
    "probit": lambda: smf.probit("yes ~ a * b", DATA).fit(disp=0, cov_type="HC0"),
    "Poisson": lambda: smf.poisson("count ~ a * b", DATA).fit(disp=0, cov_type="HC0"),
    "multinomial": lambda: smf.mnlogit("kind ~ a * b", DATA).fit(disp=0, cov_type="HC0"),
    "negative binomial": lambda: smf.negativebinomial("count ~ a + years", DATA).fit(disp=0),
    "ordered": lambda: OrderedModel(DATA.kind, DATA[["a", "b"]]).fit(method="bfgs", disp=0),
    "quantile": lambda: smf.quantreg("z ~ a * b", DATA).fit(q=0.3),
    "mixed": lambda: smf.mixedlm("z ~ a * b", DATA, groups=DATA.group).fit(),
    "GEE": lambda: smf.gee("count ~ a * b", "group", DATA, family=POISSON).fit(),
    "additive": lambda: GLMGam.from_formula(
        "z ~ a", DATA, smoother=BSplines(DATA[["b"]], df=[6], degree=[3]), alpha=1.0
    ).fit(),
}
ROBUST = ["OLS", "WLS", "GLM", "gamma", "logit", "probit", "Poisson", "multinomial"]
OF_SOME_COLUMNS = {"ordered": ["a", "b"]}


def predictions(name, fit, params):
    """The model's own predictions for the rows of the fit, at other parameters."""
    model = fit.model
    if name == "multinomial":
        params = params.reshape(np.shape(fit.params), order="F")
    if name == "GLM by exposure":
        return model.predict(params, model.exog, exposure=DATA.years.values)
    if name == "mixed":
        params = params[: model.k_fe]
    return np.asarray(model.predict(params, model.exog))


@pytest.mark.parametrize("name", FITS)
def test_changes_are_derivatives_of_the_models_own_predictions(name):
    fit = fitted(name)
    model = parametric(fit)
    ask, data = model.changes(as_table(DATA[OF_SOME_COLUMNS.get(name, ["a", "b", "years"])]))
    answer = ask(data)
    own = predictions(name, fit, model.params)
    assert_allclose(answer[..., -1].reshape(own.shape), own, rtol=1e-9)
    for number, direction in enumerate(model.directions()):
        step = 1e-3 * direction
        upper, lower = (predictions(name, fit, model.params + s * step) for s in (1, -1))
        found = answer[..., number].reshape(own.shape)
        size = np.abs(found).max() + 1e-12
        assert_allclose(found, (upper - lower) / 2e-3, atol=1e-4 * size)


@pytest.mark.thorough
@pytest.mark.parametrize("name", FITS)
def test_directions_have_the_covariance_of_the_parameters(name):
    fit = fitted(name)
    model, cov = parametric(fit), np.asarray(fit.cov_params())
    directions = model.directions()
    found = directions.T @ directions
    if name == "mixed":  # parameters of the random effects do not enter predictions
        k = fit.model.k_fe
        assert not found[k:].any()
        cov, found = cov[:k, :k], found[:k, :k]
    assert_allclose(found, cov, atol=1e-9 * np.abs(np.diagonal(cov)).max(), rtol=1e-7)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ROBUST)
def test_squares_of_influences_are_the_robust_covariance(name):
    fit = fitted(name)
    influence = parametric(fit).influence
    assert_allclose(influence.T @ influence, fit.cov_params(), rtol=2e-5)


def test_a_covariance_without_full_rank_has_fewer_directions():
    half = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    model = rs.Parametric(lambda b, X: X @ b, [1.0, 2.0, 3.0], half)
    assert model.directions().shape == (1, 3)
    assert_allclose(model.directions().T @ model.directions(), half, atol=1e-12)


def test_predictions_that_ignore_the_parameters_are_refused():
    b = np.array([1.0, 2.0])
    X = DATA[["a", "b"]]
    ignores = rs.Parametric(lambda params, X: X @ b, b, np.eye(2))  # b, where params was meant
    effect = rs.pdp(ignores, X)
    with pytest.raises(ValueError, match="must depend on params; got the same predictions for the"):
        rs.std_error(effect, model=ignores, X=X, uncertainty="parameters")
    known = rs.Parametric(lambda params, X: X @ b, b, np.zeros((2, 2)))  # nothing to depend on
    found = rs.std_error(effect, model=known, X=X, uncertainty="parameters")
    assert not found["curve_se"].any()


def test_degrees_of_freedom_are_those_of_the_fit():
    assert parametric(fitted("logit")).degrees == np.inf
    assert parametric(smf.ols("z ~ a", DATA).fit()).degrees == N - 2
    assert parametric(smf.ols("z ~ a", DATA).fit(**BY_GROUP, use_t=True)).degrees == 19


def test_rows_and_clusters_of_the_fit_are_known():
    clustered = parametric(smf.ols("z ~ a", DATA).fit(**BY_GROUP))
    assert list(clustered.groups) == list(DATA.group)
    np.testing.assert_array_equal(clustered.numbers_in_fit(DATA[["a"]]), np.arange(N))
    turned = clustered.numbers_in_fit(DATA[["a"]].iloc[::-1])
    np.testing.assert_array_equal(turned, np.arange(N)[::-1])
    assert clustered.numbers_in_fit(DATA[["a"]].iloc[:50]) is None
    assert clustered.numbers_in_fit(DATA[["a"]] + 1) is None
    assert parametric(fitted("GEE")).groups is not None
    assert parametric(fitted("OLS")).groups is None


@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        ((1, [1.0], [[1.0]]), TypeError, "predict must be a function"),
        ((max, [[1.0]], [[1.0]]), ValueError, "params must be a row of finite numbers; got shape"),
        ((max, [np.nan], [[1.0]]), ValueError, "params must be a row of finite numbers"),
        ((max, [1.0], [[1.0, 0.0]]), ValueError, r"shape \(1, 1\).* got shape \(1, 2\)"),
        ((max, [1.0, 1.0], [[1.0, 0.5], [0.1, 1.0]]), ValueError, "cov must be symmetric"),
        ((max, [1.0, 1.0], [[1.0, 2.0], [2.0, 1.0]]), ValueError, "negative variance"),
        ((max, [1.0], [[1.0]], [[1.0, 2.0]]), ValueError, r"\(n_rows, 1\); got shape \(1, 2\)"),
    ],
)
def test_what_is_no_parametric_model_is_refused(given, error, says):
    with pytest.raises(error, match=says):
        rs.Parametric(*given)


def test_models_without_parameters_are_refused():
    with pytest.raises(TypeError, match="got function, whose parameters have no covariance"):
        parametric(lambda X: X[:, 0])


def clusters_with_gaps():
    """Rows in clusters that share x and an error; a tenth of the outcomes is missing."""
    rng, n, n_groups = np.random.default_rng(5), 400, 40
    group = rng.integers(0, n_groups, n)
    shared, x = rng.normal(size=(2, n_groups))
    data = pd.DataFrame({"x": x[group], "b": rng.normal(size=n), "group": group})
    data["y"] = data["x"] + data["b"] + 2 * shared[group] + rng.normal(size=n)
    data.loc[::10, "y"] = np.nan
    return data


def test_errors_by_groups_do_not_depend_on_rows_that_the_fit_left_out_or_on_their_order():
    """They were those of independent rows there, without a word."""
    data = clusters_with_gaps()
    complete = data.dropna()
    fit = smf.ols("y ~ x + b", data).fit()
    cov = {"cov_type": "cluster", "cov_kwds": {"groups": complete["group"]}}
    expected = smf.ols("y ~ x + b", data).fit(**cov).bse["x"]
    for X in (data, complete, complete.sample(frac=1, random_state=0)):
        average = rs.averages(fit, X, ["x"], groups=X["group"])
        np.testing.assert_allclose(average["average_se"].values[1], expected, rtol=3e-3)
        assert (average["average_df"].values <= 39).all()
        curve = rs.std_error(rs.pdp(fit, X, "x"), model=fit, X=X, groups=X["group"])
        slope_se = curve["curve_se"] / np.abs(curve["grid_value"] - X["x"].mean())
        assert slope_se.values[0, 0] > 0.8 * expected


def test_averages_without_a_table_are_of_the_rows_of_the_fit():
    """Rows that it had left out were there."""
    data = clusters_with_gaps()
    data.loc[data["x"] > 1, "y"] = np.nan
    fit = smf.ols("y ~ x + b", data).fit()
    for more in ((), ("mean",)):
        found = rs.averages(fit, *more)["average"].values[0]
        np.testing.assert_allclose(found, fit.fittedvalues.mean())


def test_offsets_of_fits_with_missing_values_and_of_no_column():
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"x": rng.normal(size=300), "years": rng.uniform(1, 2, 300)})
    data["y"] = rng.poisson(data["years"])
    poisson = sm.families.Poisson()
    offset = np.log(data["years"])
    beside = smf.glm("y ~ x", data.drop(columns="years"), family=poisson, offset=offset).fit()
    for X in (None, data.drop(columns="years")):
        found = rs.averages(beside, X)["average"].values[0]
        np.testing.assert_allclose(found, beside.fittedvalues.mean())
    with pytest.raises(ValueError, match="X has neither all rows of the fit nor the column"):
        rs.averages(beside, data[["x"]].iloc[:50])
    data.loc[::10, "x"] = np.nan
    fit = smf.glm("y ~ x", data, family=poisson, offset=offset).fit()
    complete = data.dropna()
    found = rs.averages(fit, complete)["average"].values[0]
    np.testing.assert_allclose(found, fit.fittedvalues.mean())
    half = complete.iloc[:100]
    found = rs.averages(fit, half)["average"].values[0]
    np.testing.assert_allclose(found, fit.fittedvalues[half.index].mean())


def test_averages_take_text_of_arrow():
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"x": rng.normal(size=60), "a": rng.choice(["p", "q"], 60)})
    data["y"] = data["x"] + (data["a"] == "p") + rng.normal(size=60)
    fit = smf.ols("y ~ x * a", data).fit()
    expected = rs.averages(fit, data)
    found = rs.averages(fit, data.convert_dtypes(dtype_backend="pyarrow"))
    assert_allclose(found["average_se"], expected["average_se"])


def test_results_without_their_data_say_so():
    fit = smf.ols("z ~ a", DATA).fit()
    fit.remove_data()
    with pytest.raises(ValueError, match="model must have the data of its fit"):
        rs.averages(fit, DATA[["a"]])
