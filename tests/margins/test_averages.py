"""Averages: closed forms, statsmodels, Stata's numbers, brute force."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf
import xarray as xr
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import rhale_stats as rs
from tests.helpers import CARS, in_turn

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
    "inverse_gaussian_log": [
        (None, "prediction", 20.0243771127, 0.4869890876),
        (None, "hp", -0.0332970751, 0.0088266198),
        (None, "am", 1.2759328606, 1.3210544488),
        ("8", "hp", -0.0253266338, 0.0062971501),
    ],
    "poisson_identity": [
        (None, "prediction", 2.8125, 0.2964635306),
        (None, "hp", 0.0134618513, 0.0070162423),
        (None, "am", 1.1558510011, 0.8649011816),
    ],
    "poisson_exposure": [
        (None, "prediction", 2.8125000049, 0.2964635309),
        (None, "hp", 0.0106719416, 0.0054475044),
        (None, "am", 1.0065229596, 1.0188536699),
        ("8", "hp", 0.0142787620, 0.0079954239),
    ],
}
FAMILIES, WITH_ROWS = sm.families, CARS.assign(pop=101.0 + np.arange(32))


def glm(outcome, family, **options):
    return smf.glm(f"{outcome} ~ hp + wt + C(am)", WITH_ROWS, family=family, **options).fit(
        tol=1e-12
    )


FITS = {
    "logit": lambda: smf.logit(LOGIT, CARS).fit(disp=0, tol=1e-12),
    "gaussian_log": lambda: glm("mpg", FAMILIES.Gaussian(FAMILIES.links.Log())),
    "inverse_gaussian_log": lambda: glm("mpg", FAMILIES.InverseGaussian(FAMILIES.links.Log())),
    "poisson_identity": lambda: glm("carb", FAMILIES.Poisson(FAMILIES.links.Identity())),
    # Exposure is 100 and the number of the row.
    "poisson_exposure": lambda: glm("carb", FAMILIES.Poisson(), exposure=WITH_ROWS["pop"]),
}


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:The Identity link function")
@pytest.mark.parametrize("name", FITS)
def test_numbers_are_those_of_stata(name):
    fit = FITS[name]()
    found = {by: rs.averages(fit, by=by, uncertainty="parameters") for by in (None, "cyl")}
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


@pytest.mark.thorough
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


@pytest.mark.thorough
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


@pytest.mark.thorough
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


@pytest.mark.thorough
def test_the_average_prediction_of_a_line_with_both_is_the_mean_of_the_outcome():
    """The residuals of a line sum to 0, so that its average prediction is the mean of y."""
    rng = np.random.default_rng(2)
    data = pd.DataFrame({"x": rng.normal(size=60)})
    data["y"] = data.x**2 + rng.normal(size=60) * (1 + data.x**2)
    found = rs.averages(smf.ols("y ~ x", data).fit(cov_type="HC1"), data)
    own = data.y.std(ddof=1) / np.sqrt(60)
    # But for degrees of freedom: N - 1 of the rows, N - 2 of the fit.
    assert_allclose(found["average_se"].sel(term="prediction"), own, rtol=0.01)
    # Residuals over 1 - leverage are larger where few distant rows have most of the variance.
    found = rs.averages(smf.ols("y ~ x", data).fit(), data)
    assert own < found["average_se"].sel(term="prediction") < 1.06 * own
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
    with pytest.raises(ValueError, match="by must have .* levels of 'g', first in 'u'"):
        rs.averages(line, ROWS, by="g", groups=[1, 1, 2, 3])
    with pytest.raises(KeyError, match="by must be one of"):
        rs.averages(line, ROWS, by="nothing")
    with pytest.raises(ValueError, match="missing must be 'drop' or 'raise' for averages"):
        rs.averages(line, ROWS, missing="bin")
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


# --- everything that a result holds, written out ------------------------------------------------

SIX = pd.DataFrame(
    {"x": [1.0, 2.0, 4.0, 5.0, 7.0, 8.0], "g": list("uuvvuv"), "w": [1.0, 2.0, 1.0, 1.0, 3.0, 2.0]}
)
GROUPS = np.array([0, 1, 1, 0, 1, 0])
COVARIANCE = np.array([[0.01, 0.002], [0.002, 0.04]])


def by_hand(weights, by, groups, uncertainty):
    """All numbers of the model `square` in the six rows: estimates are (prediction, x, g) by level.

    Errors of the rows: sums of weight * residual over the units, which are rows or groups. Each is
    divided by the root of what the subtraction of the mean leaves of its variance.
    """
    x, there, w = SIX["x"].to_numpy(), (SIX["g"] == "v").to_numpy(), np.ones(6)
    w = w if weights is None else SIX["w"].to_numpy()
    values = np.stack([2 * x**2 + 3 * there, 4 * x, np.full(6, 3.0)])
    zero, one = np.zeros(6), np.ones(6)
    gradient = np.array([[x**2, there], [2 * x, zero], [zero, one]])
    levels = [~there, there] if by else [np.ones(6, dtype=bool)]
    unit = np.arange(6) if groups is None else groups
    average, means, moved, degrees = [], [], [], []
    for value, derivative in zip(values, gradient, strict=True):
        for level in levels:
            own = w * level / w[level].sum()
            average.append(own @ value)
            means.append(derivative @ own)
            sums = np.zeros(unit.max() + 1)
            for number in np.unique(unit[level]):
                here = level & (unit == number)
                square, share = np.sum(own[here] ** 2), np.sum(own[here])
                left = square * (1 - 2 * share) + share**2 * np.sum(own**2)
                sums[number] = np.sum((own * (value - average[-1]))[here]) * np.sqrt(square / left)
            moved.append(sums)
            degrees.append(1 / np.sum(own**2) - 1)
    rows, model = (
        np.array(moved) @ np.array(moved).T,
        np.array(means) @ COVARIANCE @ np.transpose(means),
    )
    total = {"rows": rows, "parameters": model, "both": rows + model}[uncertainty]
    of_rows = np.diag(rows) if uncertainty != "parameters" else np.zeros(len(rows))
    with np.errstate(divide="ignore", invalid="ignore"):
        df = np.diag(total) ** 2 / (of_rows**2 / np.array(degrees))
    share = [w[level].sum() / w.sum() for level in levels]
    return {
        "average": average,
        "average_se_rows": np.sqrt(np.diag(rows)),
        "average_se_model": np.sqrt(np.diag(model)),
        "average_se": np.sqrt(np.diag(total)),
        # The comparison of all rows is the same but for rounding.
        "average_df": np.where(of_rows > 1e-20, df, np.inf),
        "average_cov": total,
        "n_obs": [level.sum() for level in levels],
        "weight_share": share,
    }


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("uncertainty", "weights"), in_turn(["both", "rows", "parameters"], [None, "w"])
)
@pytest.mark.parametrize(
    ("by", "groups"), [(None, None), ("g", None), (None, GROUPS), ("g", GROUPS)]
)
def test_every_number_and_label_by_hand(by, groups, weights, uncertainty):
    model = rs.Parametric(square, [2.0, 3.0], COVARIANCE)
    options = {} if weights is None else {"weights": SIX["w"]}
    found = rs.averages(
        model, SIX, features=["x", "g"], by=by, groups=groups, uncertainty=uncertainty, **options
    )
    expected = by_hand(weights, by, groups, uncertainty)
    of_level = () if by is None else ("by",)
    dims = dict.fromkeys(found.data_vars, ("term", *of_level))
    dims["average_cov"] = (*dims["average"], "term_other", *(f"{one}_other" for one in of_level))
    dims["n_obs"] = dims["weight_share"] = of_level
    assert set(expected) == set(found.data_vars)
    for name, values in expected.items():
        assert found[name].dims == dims[name], name
        if name == "average_df" and groups is not None:
            continue  # Satterthwaite's, of two groups; see the next test
        # Slopes are differences: a relative error of 1e-8 at most.
        known = np.reshape(values, found[name].shape)
        assert_allclose(found[name], known, rtol=1e-6, atol=1e-9, err_msg=name)
    assert found["n_obs"].dtype == np.int64
    rows = "rows" if groups is None else "rows in 2 groups"
    whole = {"both": f"{rows} and parameters", "rows": rows, "parameters": "parameters"}[
        uncertainty
    ]
    kind = "central limit theorem" if uncertainty == "rows" else "delta method, math [80]"
    sources = {"se_rows": rows, "se_model": "parameters", "se": whole, "df": whole, "cov": whole}
    for end, source in sources.items():
        attrs = found[f"average_{end}"].attrs
        assert (attrs["source"], attrs["target"], attrs["kind"]) == (source, "average", kind), end
    for name, words in {
        "term": ["prediction", "x", "g: v - u"],
        "kind": ["prediction", "slope", "comparison"],
        "of": ["prediction", "x", "g"],
        "contrast": ["", "dY/dX", "v - u"],
    }.items():
        assert (found[name].dims, found[name].values.tolist()) == (("term",), words)
    assert ("by" in found.coords) == (by is not None)
    if by is not None:
        assert found["by"].values.tolist() == ["u", "v"]
        assert found["by"].attrs == {"long_name": "g"}
    how = {
        "both": "variances of rows and parameters added",
        "rows": "parameters held fixed",
        "parameters": "rows held fixed",
    }
    facts = {"method": "averages", "by": by or "", "parameters": how[uncertainty], "n_rows": 6}
    facts |= {"output_label": "", "output_name": "output", "output_units": ""}
    facts |= {} if groups is None else {"n_groups": 2}
    facts |= {} if weights is None else {"weight_kind": "precision"}
    assert {name: found.attrs[name] for name in facts} == facts
    assert ("n_groups" in found.attrs) == (groups is not None)


def test_two_groups_of_equal_size_have_one_degree_of_freedom():
    model = rs.Parametric(square, [2.0, 3.0], COVARIANCE)
    found = rs.averages(model, SIX, features="x", uncertainty="rows", groups=GROUPS)
    assert_allclose(found["average_df"], 1, rtol=1e-9)


def test_covariance_of_all_averages_and_its_names():
    model = rs.Parametric(square, [2.0, 3.0], COVARIANCE)
    found = rs.averages(model, SIX, features=["x", "g"], by="g")
    covariance = rs.vcov(found)
    assert covariance.name == "covariance"
    assert_array_equal(covariance, found["average_cov"])
    assert covariance["term_other"].values.tolist() == found["term"].values.tolist()
    assert covariance["by_other"].values.tolist() == ["u", "v"]
    with pytest.raises(ValueError, match="feature must be left out for averages; got 'x'"):
        rs.vcov(found, "x")
    with pytest.raises(ValueError, match="of must be left out for averages; got 'effect'"):
        rs.vcov(found, of="effect")
    with pytest.raises(ValueError, match="boot must be None for averages, which have no"):
        rs.confint(found, found)


@pytest.mark.thorough
@pytest.mark.parametrize("by", [None, "g"])
@pytest.mark.parametrize("uncertainty", ["both", "rows"])
def test_table_by_hand(by, uncertainty):
    """Line by line: levels one after the other, each with all terms; t and P with parameters."""
    model = rs.Parametric(square, [2.0, 3.0], COVARIANCE)
    found = rs.averages(model, SIX, features=["x", "g"], by=by, uncertainty=uncertainty)
    table = rs.tidy(found, level=0.9)
    assert table.index.tolist() == list(range(len(table)))
    lines = []
    for level in [None] if by is None else [0, 1]:
        part = found if level is None else found.isel(by=level)
        for number, of in enumerate(["prediction", "x", "g"]):
            estimate, se, df = (
                float(part[name][number]) for name in ("average", "average_se", "average_df")
            )
            line = {"term": of, "contrast": ["", "dY/dX", "v - u"][number]}
            line |= {} if level is None else {"by": "uv"[level]}
            line |= {"estimate": estimate, "std_error": se}
            if uncertainty == "both":
                t = estimate / se
                line |= {"statistic": t, "p_value": 2 * stats.t.sf(abs(t), df)}
            # No spread, no half-width: its degrees of freedom are infinite.
            half = stats.t.ppf(0.95, df) * se
            lines.append(line | {"conf_low": estimate - half, "conf_high": estimate + half})
    expected = pd.DataFrame(lines)
    assert table.columns.tolist() == expected.columns.tolist()
    for name in table:
        if expected[name].dtype == float:
            assert_allclose(table[name], expected[name], rtol=1e-9, atol=1e-12, err_msg=name)
        else:
            assert table[name].tolist() == expected[name].tolist()


def line(b, rows):
    return b[0] + b[1] * rows["x"]


SUMMARY = """\
                              Averages of output
==============================================================================
Rows:                                       3   Weights:                  none
Uncertainty:              rows and parameters   By:                   all rows
==============================================================================
              average    std err          t          P       [0.05       0.95]
------------------------------------------------------------------------------
prediction          5       1.56      3.205      0.016       2.022       7.978
x dY/dX             2        0.5      4.000      0.000       1.178       2.822
==============================================================================
"""


def test_what_is_printed():
    """The mean of 3, 5, 7 has the variance 4 / 3 by the rows and 0.1 + 4 * 0.25 by the line."""
    X = pd.DataFrame({"x": [1.0, 2.0, 3.0]})
    found = rs.averages(rs.Parametric(line, [1.0, 2.0], np.diag([0.1, 0.25])), X)
    assert_allclose(found["average_se"], [np.sqrt(4 / 3 + 1.1), 0.5], rtol=1e-7)
    summary = rs.summary(found, level=0.9)
    lines = [line.rstrip() for line in summary.as_text().splitlines()]
    assert "\n".join(lines).startswith(SUMMARY)
    assert summary.notes == [
        "Standard errors: variances of rows and parameters added. Intervals: pointwise, Student's "
        "t.",
        "dY/dX: average slope. Levels: average prediction with the level minus that with the first "
        "level, in all rows.",
    ]
    assert rs.show(found).head.tables == rs.summary(found).tables
    shorter = str(rs.show(found, max_features=1))
    assert "prediction" in shorter
    assert "x dY/dX" not in shorter
    assert "1 of 2 lines." in shorter


# --- which columns, which rows -------------------------------------------------------------------


@pytest.mark.thorough
def test_a_formula_says_which_columns_and_which_of_them_have_levels():
    """By whole names, as `x` is none of `x2`; a column in `C( k , ...)` has levels."""
    rng = np.random.default_rng(4)
    data = pd.DataFrame(rng.normal(size=(40, 2)), columns=["x", "x2"])
    data["k"], data["m"] = np.arange(40) % 3, np.arange(40) % 2
    data["y"] = data["x2"] + data["k"] + rng.normal(size=40)
    X = data.drop(columns="y")
    fit = smf.ols("y ~ x2 + C( k , Treatment(1)) + m", data).fit()
    found = rs.averages(fit, X, uncertainty="parameters")
    assert found["term"].values.tolist() == ["prediction", "x2", "k: 1 - 0", "k: 2 - 0", "m"]
    assert_allclose(found["average"].sel(term="m"), fit.params["m"], rtol=1e-8)
    # A column that the formula does not have changes nothing, and may be asked for.
    asked = rs.averages(fit, X, features=["x", "k"], categorical="m", uncertainty="parameters")
    assert asked["term"].values.tolist() == ["prediction", "x", "k: 1 - 0", "k: 2 - 0"]
    assert_allclose(asked["average"].sel(term="x"), 0, atol=1e-9)
    levels = rs.averages(fit, X, features="m", categorical=["m", "x"], uncertainty="parameters")
    assert levels["term"].values.tolist() == ["prediction", "m: 1 - 0"]
    assert_allclose(levels["average"][1], fit.params["m"], rtol=1e-8)


@pytest.mark.thorough
def test_without_a_formula_all_columns_that_are_not_constant():
    model = rs.Parametric(lambda b, rows: b[0] * rows["x"], [1.0], [[1.0]])
    X = ROWS.assign(one=1.0, flag=[True, False, True, True])
    found = rs.averages(model, X)
    assert found["of"].values.tolist() == ["prediction", "x", "g", "w", "flag"]
    assert found["contrast"].values.tolist() == ["", "dY/dX", "v - u", "dY/dX", "True - False"]
    # Two values that are 1 apart, and two that are 1e-9 apart, are not constant.
    near = rs.averages(model, pd.DataFrame({"x": [1.0, 2.0], "z": [0.0, 1e-9]}))
    assert near["of"].values.tolist() == ["prediction", "x", "z"]
    one_level = rs.averages(model, X, features=["one", "x"], categorical="one")
    assert one_level["of"].values.tolist() == ["prediction", "x"]


@pytest.mark.thorough
@pytest.mark.parametrize("by", [None, "g"])
@pytest.mark.parametrize("groups", [None, [0, 1, 5, 1, 0, 1, 0, 7]])
def test_rows_of_weight_zero_are_absent(by, groups):
    """Whatever stands in them, in their groups as well."""
    more = pd.concat([SIX, SIX.iloc[:2]], ignore_index=True).iloc[[0, 1, 6, 2, 3, 4, 5, 7]]
    more = more.reset_index(drop=True)
    more.loc[[2, 7], ["x", "w"]] = [[100.0, 0.0], [-100.0, 0.0]]
    there = more["w"].to_numpy() > 0
    model = rs.Parametric(square, [2.0, 3.0], COVARIANCE)
    one = rs.averages(model, more, features=["x", "g"], by=by, groups=groups, weights=more["w"])
    kept = None if groups is None else np.array(groups)[there]
    two = rs.averages(
        model, more[there], features=["x", "g"], by=by, groups=kept, weights=more["w"][there]
    )
    for name in two.data_vars:
        assert_allclose(one[name], two[name], rtol=1e-9, err_msg=name)
    assert one.attrs == two.attrs


@pytest.mark.thorough
def test_groups_are_found_by_the_index():
    model = rs.Parametric(square, [2.0, 3.0], COVARIANCE)
    named = SIX.set_axis(list("abcdef"))
    turned = pd.Series(GROUPS, index=list("abcdef"))
    found = rs.averages(model, named, features="x", groups=turned)
    xr.testing.assert_identical(found, rs.averages(model, SIX, features="x", groups=GROUPS))
    again = rs.averages(model, named, features="x", groups=turned[::-1])
    xr.testing.assert_identical(again, found)
    with pytest.raises(ValueError, match="at least two different groups; got 1"):
        rs.averages(model, SIX, features="x", groups=np.zeros(6))


def test_several_outputs_have_their_names():
    """Of two outputs, the second twice the first."""
    model = rs.Parametric(
        lambda b, rows: np.outer(square(b, rows), [1.0, 2.0]), [2.0, 3.0], COVARIANCE
    )
    found = rs.averages(model, SIX, features=["x", "g"], by="g")
    assert found["average"].dims == ("output", "term", "by")
    one = rs.averages(
        rs.Parametric(square, [2.0, 3.0], COVARIANCE), SIX, features=["x", "g"], by="g"
    )
    for number, factor in enumerate((1, 2)):
        for name in ("average", "average_se", "average_se_rows", "average_se_model"):
            part = found[name].isel(output=number)
            assert_allclose(part, factor * one[name], rtol=1e-6, atol=1e-9)


@pytest.mark.thorough
def test_many_rows_are_asked_in_blocks(monkeypatch):
    """A row has four versions of three models for a slope, and as many for each of two levels."""
    asked = set()

    def counted(b, rows):
        asked.add(len(rows))
        return square(b, rows)

    model = rs.Parametric(counted, [2.0, 3.0], COVARIANCE)
    whole = rs.averages(model, SIX, features=["x", "g"], by="g")
    # Blocks of rows for the slope, which the model gets at three places, and for the levels.
    for most, of_slope, of_levels in ((1, 1, 1), (36, 3, 1), (48, 3, 2), (144, 6, 6)):
        asked.clear()
        monkeypatch.setattr("rhale_stats.margins.averages.BATCH_ANSWERS", most)
        found = rs.averages(model, SIX, features=["x", "g"], by="g")
        xr.testing.assert_allclose(found, whole, rtol=1e-9)
        # One row is asked first, then two, and all six for the average prediction.
        assert asked == {1, 2, 6, 3 * of_slope, 2 * of_levels}


def test_predictions_that_are_not_finite_are_refused_by_name():
    def holes(b, rows):
        return b[0] * np.where(rows["x"] == 2, np.nan, rows["x"])

    model = rs.Parametric(holes, [1.0], [[1.0]])
    with pytest.raises(
        ValueError, match="Predictions.*'prediction'.*1 NaN in 6 rows.*See what the model"
    ):
        rs.averages(model, SIX, features="x")

    def beside(b, rows):
        """Finite at every row, and NaN a step away from it."""
        return b[0] * np.where(np.isin(rows["x"], SIX["x"]), rows["x"], np.nan)

    with pytest.raises(ValueError, match="Predictions.*'x'"):
        rs.averages(rs.Parametric(beside, [1.0], [[1.0]]), SIX, features="x")


@pytest.mark.thorough
def test_predictions_of_any_size():
    """Averages and errors in their unit; no product of predictions is too large for a number."""

    def powers(b, rows, scale=1.0):
        return scale * sum(b[power] * rows["x"] ** power for power in range(5))

    params, cov = [1.0, 2.0, 0.5, 0.1, 0.1], np.diag([0.1, 0.2, 0.3, 0.4, 0.5])
    plain = rs.averages(rs.Parametric(powers, params, cov), SIX, features="x")
    for scale in (1e55, 1e-55):
        large = rs.Parametric(lambda b, rows, to=scale: powers(b, rows, to), params, cov)
        found = rs.averages(large, SIX, features="x")
        for name in ("average", "average_se", "average_se_rows", "average_se_model"):
            assert_allclose(found[name], scale * plain[name], rtol=1e-6)
        assert_allclose(found["average_df"], plain["average_df"], rtol=1e-6)


def test_slopes_at_the_ends_ask_nothing_beyond_the_rows():
    """A spline has no values there; the parabola through three points on one side is exact."""

    def inside(b, rows):
        x = rows["x"]
        return b[0] * np.where((x >= 1) & (x <= 8), x**2, np.nan)

    found = rs.averages(rs.Parametric(inside, [1.0], [[1.0]]), SIX, features="x")
    assert_allclose(found["average"].sel(term="x"), 2 * SIX["x"].mean(), rtol=1e-6)


# --- levels that a formula names, and extrapolation -----------------------------------------------


def test_levels_with_names_that_are_quoted():
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"my group": np.arange(90) % 3, "x": rng.normal(size=90)})
    data["y"] = data["x"] + (data["my group"] == 2) + rng.normal(size=90)
    fit = smf.ols("y ~ x + C(Q('my group'))", data).fit()
    found = rs.averages(fit, data, uncertainty="parameters")
    assert found["term"].values.tolist()[1:3] == ["my group: 1 - 0", "my group: 2 - 0"]
    assert_allclose(found["average"].values[1:3], fit.params.values[1:3])
    assert_allclose(found["average_se"].values[1:3], fit.bse.values[1:3])


def test_a_level_that_makes_the_model_extrapolate_is_named():
    data = pd.DataFrame({"west": np.arange(60) % 2, "z": np.linspace(0, 1, 60)})
    model = rs.Parametric(
        lambda p, rows: p[0] * np.where(rows["west"] == 1, 10.0 ** (200 * rows["z"]), 0.0),
        [1.0],
        [[1.0]],
    )
    data.loc[data["west"] == 1, "z"] /= 1000
    with pytest.raises(rs.ModelError, match="With west = 0 or 1 .* it extrapolates. features= le"):
        rs.averages(model, data, categorical="west")


def test_a_column_that_the_formula_lacks_is_said_in_one_line():
    data = pd.DataFrame({"x": np.linspace(0, 1, 40), "y": np.linspace(0, 2, 40)})
    fit = smf.ols("y ~ x", data).fit()
    with pytest.raises(rs.ModelError, match="^[^\\n]*name 'x' is not defined[^\\n]*$"):
        rs.local_effects(fit, data.rename(columns={"x": ""})[["", "y"]].assign(z=1.0))


def test_a_column_of_the_formula_that_the_table_lacks_is_named():
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"dose": rng.normal(size=60), "arm": rng.choice(["p", "q"], 60)})
    data["y"] = data["dose"] + rng.normal(size=60)
    fit = smf.ols("y ~ dose + arm", data).fit()
    with pytest.raises(KeyError, match="columns of the model's formula; got none named 'arm'"):
        rs.averages(fit, data[["dose"]])
