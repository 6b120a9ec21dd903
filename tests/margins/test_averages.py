"""Averages: closed forms, statsmodels, Stata's numbers, brute force."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import rhale_stats as rs
from tests.helpers import CARS

LOGIT = "vs ~ hp + wt + C(am)"
# Printed by Stata 17, margins after logit and glm: by, column, estimate, standard error.
STATA = {
    "logit": [
        (None, "prediction", 0.4375, 0.0409475846),
        (None, "hp", -0.0060312820, 0.0016998520),
        (None, "am", -0.2386167417, 0.0722398087),
        ("4", "prediction", 0.8668780334, 0.0670886455),
        ("6", "am", -0.6977828769, 0.1731488264),
        ("8", "hp", -0.0026657168, 0.0022189678),
    ],
    "gaussian_log": [
        (None, "prediction", 20.0680681442, 0.3901084523),
        (None, "hp", -0.0368628181, 0.0098197859),
        (None, "am", 0.7346874168, 1.2491489808),
        ("8", "hp", -0.0273383559, 0.0069389995),
    ],
}
FITS = {
    "logit": lambda: smf.logit(LOGIT, CARS).fit(disp=0, tol=1e-12),
    "gaussian_log": lambda: smf.glm(
        "mpg ~ hp + wt + C(am)", CARS, family=sm.families.Gaussian(sm.families.links.Log())
    ).fit(tol=1e-12),
}


@pytest.mark.parametrize("name", FITS)
def test_numbers_are_those_of_stata(name):
    fit = FITS[name]()
    found = {by: rs.averages(fit, CARS, by=by, uncertainty="parameters") for by in (None, "cyl")}
    for level, column, estimate, error in STATA[name]:
        table = rs.tidy(found[None if level is None else "cyl"])
        lines = table[table["term"] == column]
        line = (lines if level is None else lines[lines["by"] == level]).iloc[0]
        assert_allclose([line["estimate"], line["std_error"]], [estimate, error], rtol=2e-6)
        assert_allclose(line["p_value"], 2 * stats.norm.sf(abs(estimate / error)), rtol=1e-4)


def shipped(name):
    """A data set of statsmodels with the model that its pages fit."""
    data = getattr(sm.datasets, name).load_pandas()
    X = sm.add_constant(data.exog.astype(float), prepend=False)
    y = data.endog.astype(float)
    if name == "spector":
        return sm.Logit(y, X), X
    if name == "fair":
        return sm.Probit(y > 0, X), X
    if name == "randhie":
        return sm.Poisson(y[:2000], X[:2000]), X[:2000]
    if name == "anes96":
        X = sm.add_constant(data.exog[["logpopul", "selfLR", "age"]].astype(float))
        return sm.MNLogit(data.endog, X), X
    # Heart transplants: days of survival by age.
    return sm.Poisson(y, X), X


@pytest.mark.parametrize("name", ["spector", "fair", "randhie", "heart"])
def test_slopes_are_those_of_statsmodels(name):
    model, X = shipped(name)
    fit = model.fit(disp=0)
    own = fit.get_margeff(dummy=False)
    found = rs.averages(fit, X, uncertainty="parameters")
    slopes = found.sel(term=found["kind"] == "slope")
    assert slopes["of"].values.tolist() == own.summary_frame().index.tolist()
    assert_allclose(slopes["average"], own.margeff, rtol=1e-6, atol=1e-9)
    assert_allclose(slopes["average_se"], own.margeff_se, rtol=1e-6)
    # The full covariance, too.
    there = found["kind"].values == "slope"
    covariance = found["average_cov"].values[np.ix_(there, there)]
    size = np.outer(own.margeff_se, own.margeff_se)
    assert_allclose(covariance / size, own.margeff_cov / size, atol=2e-6)


def test_comparisons_are_those_of_statsmodels():
    model, X = shipped("spector")
    fit = model.fit(disp=0)
    own = fit.get_margeff(dummy=True).summary_frame().loc["PSI"]
    found = rs.tidy(rs.averages(fit, X, categorical=["PSI"], uncertainty="parameters"))
    line = found[found["term"] == "PSI"].iloc[0]
    assert line["contrast"] == "1 - 0"
    assert_allclose(line["estimate"], own["dy/dx"], rtol=1e-6)
    assert_allclose(line["std_error"], own["Std. Err."], rtol=1e-6)


def test_outputs_are_those_of_statsmodels():
    model, X = shipped("anes96")
    fit = model.fit(disp=0)
    own = fit.get_margeff()
    found = rs.averages(fit, X, uncertainty="parameters")
    slopes = found.isel(term=np.flatnonzero(found["kind"].values == "slope"))
    assert slopes["average"].dims == ("output", "term")
    assert_allclose(slopes["average"].values, own.margeff.T, rtol=1e-6, atol=1e-9)
    assert_allclose(slopes["average_se"].values, own.margeff_se.T, rtol=1e-6)
    # Probabilities sum to one.
    assert_allclose(found["average"].sum("output").values, [1, 0, 0, 0], atol=1e-9)


ROWS = pd.DataFrame({"x": [1.0, 2.0, 4.0, 5.0], "g": ["u", "u", "v", "v"], "w": [1, 2, 1, 1]})


def square(b, rows):
    return b[0] * rows["x"] ** 2 + b[1] * (rows["g"] == "v")


def test_closed_forms():
    model = rs.Parametric(square, [2.0, 3.0], [[0.01, 0.0], [0.0, 0.04]])
    found = rs.averages(model, ROWS, features=["x", "g"], uncertainty="parameters")
    mean, half = np.mean(ROWS.x), 0.5
    assert_allclose(found["average"], [2 * np.mean(ROWS.x**2) + 3 * half, 4 * mean, 3], rtol=1e-8)
    errors = [np.hypot(0.1 * np.mean(ROWS.x**2), 0.2 * half), 0.2 * mean, 0.2]
    assert_allclose(found["average_se"], errors, rtol=1e-7)
    assert found["term"].values.tolist() == ["prediction", "x", "g: v - u"]
    rows = rs.averages(model, ROWS, features=["x", "g"], uncertainty="rows")
    assert_allclose(rows["average_se"][1], 4 * np.std(ROWS.x, ddof=1) / 2, rtol=1e-7)
    # All rows have the same comparison, which has no variance and no limit to its degrees.
    assert_allclose(rows["average_df"], [3, 3, np.inf])
    assert rows["average_se"].attrs["source"] == "rows"
    assert "p_value" not in rs.tidy(rows)
    both = rs.averages(model, ROWS, features=["x", "g"])
    assert_allclose(both["average_se"] ** 2, rows["average_se"] ** 2 + found["average_se"] ** 2)
    by = rs.averages(model, ROWS, features=["x"], by="g")
    assert_allclose(by["average"].sel(term="x"), [6, 18], rtol=1e-8)
    assert_allclose(by["average_se_model"].sel(term="x"), [0.3, 0.9], rtol=1e-7)
    assert_allclose(by["average_se_rows"].sel(term="x"), 4 * np.sqrt(0.5) / np.sqrt(2), rtol=1e-7)
    assert by["n_obs"].values.tolist() == [2, 2]


def test_frequency_weights_are_repeated_rows():
    model = rs.Parametric(square, [2.0, 3.0], [[0.01, 0.0], [0.0, 0.04]])
    for by in (None, "g"):
        weighted = rs.averages(
            model, ROWS, features=["x"], by=by, weights=ROWS["w"], weight_kind="frequency"
        )
        repeated = rs.averages(model, ROWS.loc[ROWS.index.repeat(ROWS["w"])], features=["x"], by=by)
        for name in ("average", "average_se", "average_se_rows", "average_df", "average_cov"):
            assert_allclose(weighted[name], repeated[name], rtol=1e-6, err_msg=name)


def test_the_average_slope_has_the_error_of_std_error():
    rng = np.random.default_rng(3)
    data = pd.DataFrame({"hp": rng.normal(size=90), "wt": rng.normal(size=90)})
    data["y"] = (rng.uniform(size=90) < 1 / (1 + np.exp(-data.hp * (1 + data.wt / 2)))).astype(int)
    fit, X = smf.logit("y ~ hp * wt", data).fit(disp=0), data[["hp", "wt"]]
    local = rs.local_effects(fit, X)
    for groups in (None, np.arange(90) // 3):
        for uncertainty in ("both", "rows", "parameters"):
            effect = rs.std_error(
                rs.rhale(local), local, model=fit, X=X, uncertainty=uncertainty, groups=groups
            )
            found = rs.averages(fit, X, uncertainty=uncertainty, groups=groups)
            for name in ("hp", "wt"):
                assert_allclose(
                    found["average_se"].sel(term=name),
                    effect["average_effect_se"].sel(feature=name),
                    # Corrections for small samples differ where influences are added.
                    rtol=1 / 30 if uncertainty == "both" else 1e-5,
                )


def test_the_average_prediction_of_a_line_with_both_is_the_mean_of_the_outcome():
    """The residuals of a line sum to 0, so that its average prediction is the mean of y."""
    rng = np.random.default_rng(2)
    data = pd.DataFrame({"x": rng.normal(size=60)})
    data["y"] = data.x**2 + rng.normal(size=60) * (1 + data.x**2)
    found = rs.averages(smf.ols("y ~ x", data).fit(), data)
    own = data.y.std(ddof=1) / np.sqrt(60)
    # But for degrees of freedom: N - 1 of the rows, N - 2 of the fit.
    assert_allclose(found["average_se"].sel(term="prediction"), own, rtol=0.01)
    fixed = rs.averages(smf.ols("y ~ x", data).fit(), data, uncertainty="parameters")
    assert float(fixed["average_se"].sel(term="prediction")) < 0.97 * own


def test_intervals_tables_and_covariance():
    found = rs.confint(rs.averages(FITS["logit"](), CARS, by="cyl"), level=0.9)
    half = np.diff(found["average_ci"].values, axis=-1)[..., 0] / 2
    student = stats.t.ppf(0.95, found["average_df"].values)
    assert_allclose(half, student * found["average_se"].values, rtol=1e-9)
    table = rs.tidy(found, level=0.9)
    assert table.shape[0] == 4 * 3
    assert_allclose(table["conf_high"] - table["estimate"], half.T.ravel(), rtol=1e-9)
    text = rs.summary(found, level=0.9).as_text()
    for part in ("rows and parameters", "am 1 - 0 6", "dY/dX"):
        assert part in text
    covariance = rs.vcov(found)
    assert covariance.dims == ("term", "by", "term_other", "by_other")
    # Difference of two levels' comparisons, by the delta method and by hand.
    flat = covariance.values.reshape(12, 12)
    assert_allclose(np.sqrt(np.diagonal(flat)), found["average_se"].values.ravel(), rtol=1e-9)
    assert "rows and parameters" in str(rs.show(found))


def test_columns_are_those_of_the_formula_and_not_constant():
    fit = FITS["logit"]()
    assert rs.averages(fit, CARS)["of"].values.tolist() == ["prediction", "hp", "wt", "am"]
    line = rs.Parametric(lambda b, rows: rows["x"] * b[0], [1.0], [[1.0]])
    constant = ROWS.assign(one=1.0)
    assert "one" not in rs.averages(line, constant)["of"].values
    with pytest.raises(ValueError, match="features must not be constant, as 'one' is"):
        rs.averages(line, constant, features=["one"])


def test_what_cannot_be_averaged_is_refused():
    with pytest.raises(TypeError, match="parameters have no covariance"):
        rs.averages(lambda X: X[:, 0], np.ones((3, 1)))
    line = rs.Parametric(lambda b, rows: rows["x"] * b[0], [1.0], [[1.0]])
    with pytest.raises(ValueError, match="uncertainty must be one of"):
        rs.averages(line, ROWS, uncertainty="all")
    with pytest.raises(ValueError, match="at least two different groups in level 'u' of 'g'"):
        rs.averages(line, ROWS, by="g", groups=[1, 1, 2, 3])
    with pytest.raises(KeyError, match="by must be one of"):
        rs.averages(line, ROWS, by="nothing")
    with pytest.raises(ValueError, match="missing must be left out"):
        rs.averages(line, ROWS, missing="drop")
    holes = rs.Parametric(lambda b, rows: rows["x"].where(rows["x"] > 1) * b[0], [1.0], [[1.0]])
    with pytest.raises(ValueError, match="finite"):
        rs.averages(holes, ROWS)


def test_a_level_of_one_row_has_no_error_of_rows():
    model = rs.Parametric(square, [2.0, 3.0], [[0.01, 0.0], [0.0, 0.04]])
    alone = ROWS[(ROWS["g"] == "u") | (ROWS["x"] == ROWS["x"].max())]
    found = rs.averages(model, alone, features=["x"], by="g").sel(term="x")
    assert found["n_obs"].values.tolist() == [2, 1]
    assert_array_equal(np.isnan(found["average_se_rows"]), [False, True])
    assert_array_equal(np.isnan(found["average_se"]), [False, True])
    assert (found["average_se_model"] > 0).all()
