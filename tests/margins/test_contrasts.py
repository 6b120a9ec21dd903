"""Contrasts and ratios of averages: closed forms, tables of two by two, statsmodels."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf
from numpy.testing import assert_allclose
from scipy import special, stats

import rhale_stats as rs
from tests.helpers import CARS


def two_by_two(n=(40, 60), events=(12, 33)):
    """Outcomes of two arms with their logistic fit, which repeats their rates."""
    arm = np.repeat(["a", "b"], n)
    y = np.concatenate([np.arange(m) < e for m, e in zip(n, events, strict=True)]).astype(int)
    data = pd.DataFrame({"arm": arm, "y": y})
    return data, smf.logit("y ~ arm", data).fit(disp=0, tol=1e-12)


def test_ratios_of_a_table_of_two_by_two():
    """Delta method for rates: var log p = 1/e - 1/n, var log odds = 1/e + 1/(n - e)."""
    (n0, n1), (e0, e1) = (40, 60), (12, 33)
    data, fit = two_by_two((n0, n1), (e0, e1))
    p0, p1 = e0 / n0, e1 / n1
    log_rr, log_or = (
        np.sqrt(1 / e0 - 1 / n0 + 1 / e1 - 1 / n1),
        np.sqrt(1 / e0 + 1 / (n0 - e0) + 1 / e1 + 1 / (n1 - e1)),
    )
    odds = p1 / (1 - p1) / (p0 / (1 - p0))
    expected = {
        "difference": (p1 - p0, np.sqrt(p0 * (1 - p0) / n0 + p1 * (1 - p1) / n1), "b - a"),
        "ratio": (p1 / p0, log_rr * p1 / p0, "b / a"),
        "log_ratio": (np.log(p1 / p0), log_rr, "log(b / a)"),
        "odds_ratio": (odds, log_or * odds, "odds(b) / odds(a)"),
        "log_odds_ratio": (np.log(odds), log_or, "log(odds(b) / odds(a))"),
    }
    for comparison, (value, error, text) in expected.items():
        found = rs.averages(fit, data, comparison=comparison, uncertainty="parameters")
        line = rs.tidy(found).iloc[1]
        assert_allclose([line["estimate"], line["std_error"]], [value, error], rtol=1e-6)
        assert line["contrast"] == text
        z, ratio = value / error, comparison in ("ratio", "odds_ratio")
        if ratio:
            # About 1, on the log scale.
            z = np.log(value) / (error / value)
            ends = value * np.exp(np.array([-1, 1]) * stats.norm.ppf(0.975) * error / value)
            assert_allclose([line["conf_low"], line["conf_high"]], ends, rtol=1e-6)
        assert_allclose(line["p_value"], 2 * stats.norm.sf(abs(z)), rtol=1e-5)
        assert_allclose(
            rs.confint(found)["average_ci"].values[1], [line["conf_low"], line["conf_high"]]
        )
        assert ("compare with 1" in str(rs.summary(found))) == ratio


def test_ratios_by_level_are_those_of_the_rows_of_the_level():
    """With rows and parameters: every level by itself, on the fit of all."""
    fit = smf.logit("vs ~ hp + wt + C(am)", CARS).fit(disp=0)
    options = {"features": ["am"], "comparison": "ratio", "uncertainty": "rows"}
    found = rs.averages(fit, CARS, by="cyl", **options)
    for level in (4, 6):
        alone = rs.averages(fit, CARS[CARS.cyl == level], **options)
        of_level = found.sel(by=str(level))
        for name in ("average", "average_se", "average_df"):
            assert_allclose(of_level[name], alone[name], rtol=1e-6, err_msg=name)


def test_rows_are_averaged_by_a_column_beside_the_table():
    fit = smf.logit("vs ~ hp + wt + C(am)", CARS).fit(disp=0)
    expected = rs.averages(fit, CARS, "wt", by="cyl")
    beside = CARS["cyl"].sample(frac=1, random_state=0)  # by the labels of the rows
    for by in (beside, CARS["cyl"].to_numpy(), CARS["cyl"].to_xarray()):
        found = rs.averages(fit, CARS, "wt", by=by)
        assert found["by"].values.tolist() == ["4", "6", "8"]
        assert_allclose(found["average"], expected["average"])
        assert_allclose(found["average_se"], expected["average_se"])
    assert rs.averages(fit, CARS, "wt", by=beside)["by"].attrs["long_name"] == "cyl"
    with pytest.raises(ValueError, match="by must have one entry for each of 32 rows of X"):
        rs.averages(fit, CARS, "wt", by=[1, 2])
    with pytest.raises(ValueError, match="by must have a level for every row; got 2 missing"):
        rs.averages(fit, CARS, "wt", by=np.where(CARS["carb"] > 4, None, "few"))


STEPS = {
    "sd": lambda x: x.std(ddof=1),
    "iqr": lambda x: np.ptp(np.quantile(x, [0.25, 0.75])),
    "minmax": np.ptp,
    3: lambda _: 3,
    -0.5: lambda _: -0.5,
    (1, 5): lambda _: 4,
}


@pytest.mark.parametrize("contrast", STEPS, ids=str)
def test_steps_along_a_line_are_slopes_times_steps(contrast):
    x = np.random.default_rng(0).lognormal(size=50)
    data = pd.DataFrame({"x": x, "y": 2 * x + np.random.default_rng(1).normal(size=50)})
    fit = smf.ols("y ~ x", data).fit()
    found = rs.averages(fit, data, contrasts=contrast, uncertainty="parameters")
    step = STEPS[contrast](x)
    assert_allclose(found["average"][1], fit.params["x"] * step, rtol=1e-9)
    assert_allclose(found["average_se"][1], fit.bse["x"] * abs(step), rtol=1e-7)
    assert found["kind"].values[1] == "comparison"


def test_frequencies_count_in_the_spread_of_a_column():
    data = pd.DataFrame({"x": [0.0, 1.0, 4.0], "n": [1, 5, 2]})
    model = rs.Parametric(lambda b, rows: b[0] * rows["x"], [2.0], [[0.1]])
    written = pd.DataFrame({"x": np.repeat(data["x"], data["n"])})
    for contrast in ("sd", "iqr"):
        asked = {"features": "x", "contrasts": contrast, "uncertainty": "parameters"}
        counted = rs.averages(
            model, data[["x"]], weights=data["n"], weight_kind="frequency", **asked
        )
        assert_allclose(counted["average"], rs.averages(model, written, **asked)["average"])


def test_elasticities_of_a_loglinear_model():
    """ln y = a + b x: eyex is b times the mean of x, eydx is b, for any rows."""
    rng = np.random.default_rng(3)
    data = pd.DataFrame({"x": rng.uniform(1, 3, 80)})
    data["y"] = rng.poisson(np.exp(0.5 + 0.7 * data["x"]))
    fit = smf.glm("y ~ x", data, family=sm.families.Poisson()).fit(tol=1e-12)
    b, error = fit.params["x"], fit.bse["x"]
    for contrast, scale, text in (("eyex", data["x"].mean(), "eY/eX"), ("eydx", 1.0, "eY/dX")):
        found = rs.averages(fit, data, contrasts=contrast, uncertainty="parameters")
        assert_allclose(found["average"][1], b * scale, rtol=1e-7)
        assert_allclose(found["average_se"][1], error * scale, rtol=1e-6)
        assert found["contrast"].values[1] == text
    found = rs.averages(fit, data, contrasts="dyex", uncertainty="parameters")
    expected = np.mean(b * fit.predict(data) * data["x"])
    assert_allclose(found["average"][1], expected, rtol=1e-7)


def test_levels_pairs_and_values():
    fit = smf.ols("mpg ~ wt + C(cyl)", CARS).fit()
    b = fit.params
    of = {"4": 0.0, "6": b["C(cyl)[T.6]"], "8": b["C(cyl)[T.8]"]}
    pairs = {
        "reference": ["6 - 4", "8 - 4"],
        "sequential": ["6 - 4", "8 - 6"],
        "pairwise": ["6 - 4", "8 - 4", "8 - 6"],
    }
    for contrast, texts in pairs.items():
        found = rs.averages(fit, CARS, "cyl", contrasts=contrast, uncertainty="parameters")
        assert found["contrast"].values[1:].tolist() == texts
        expected = [of[high] - of[low] for high, low in (text.split(" - ") for text in texts)]
        assert_allclose(found["average"][1:], expected, rtol=1e-8)
    found = rs.averages(
        fit, CARS, contrasts={"cyl": "levels", "wt": [2, 3]}, uncertainty="parameters"
    )
    assert found["term"].values.tolist() == [
        *("prediction", "cyl: 4", "cyl: 6", "cyl: 8", "wt: 2", "wt: 3")
    ]
    share = CARS["cyl"].value_counts(normalize=True)
    mean = b["Intercept"] + sum(share[int(level)] * of[level] for level in of)
    assert_allclose(found["average"][4:], mean + b["wt"] * np.array([2, 3]), rtol=1e-9)
    at_level = b["Intercept"] + b["wt"] * CARS["wt"].mean() + np.array(list(of.values()))
    assert_allclose(found["average"][1:4], at_level, rtol=1e-9)
    assert set(found["kind"].values) == {"prediction"}


@pytest.mark.thorough
def test_a_word_counts_for_the_columns_that_it_fits():
    fit = smf.ols("mpg ~ wt + C(cyl)", CARS).fit()
    found = rs.averages(fit, CARS, contrasts="sd")
    assert found["contrast"].values.tolist() == ["", "6 - 4", "8 - 4", "+sd"]
    found = rs.averages(fit, CARS, contrasts="sequential")
    assert found["contrast"].values.tolist() == ["", "6 - 4", "8 - 6", "dY/dX"]


def test_contrasts_that_do_not_fit_are_refused_in_words():
    fit = smf.ols("mpg ~ wt + C(cyl)", CARS).fit()
    for contrasts, words in {
        "nonsense": "a list of values, or of levels one of 'reference', .*; got 'nonsense'",
        ("sd", 3): "contrasts must be",
        (1, 2, 3): "contrasts must be",
        0: "contrasts must be",
    }.items():
        with pytest.raises(ValueError, match=words):
            rs.averages(fit, CARS, contrasts=contrasts)
    with pytest.raises(ValueError, match="'reference', .*, as 'cyl' has levels; got 'sd'"):
        rs.averages(fit, CARS, contrasts={"cyl": "sd"})
    with pytest.raises(ValueError, match="got 'cyl', which features leaves out"):
        rs.averages(fit, CARS, "wt", contrasts={"cyl": "pairwise"})
    with pytest.raises(KeyError, match="contrasts must be one of .*; got 'nothing'"):
        rs.averages(fit, CARS, contrasts={"nothing": 1})
    with pytest.raises(ValueError, match="comparison must be one of 'difference'"):
        rs.averages(fit, CARS, comparison="rr")
    with pytest.raises(ValueError, match="needs average predictions between 0 and 1; got"):
        rs.averages(fit, CARS, comparison="odds_ratio")
    line = rs.Parametric(lambda b, rows: b[0] * rows["x"], [1.0], [[0.1]])
    X = pd.DataFrame({"x": [0.0, 1.0], "g": ["u", "v"]})
    with pytest.raises(ValueError, match="needs predictions other than 0 for x. Use 'slope'"):
        rs.averages(line, X, "x", contrasts="eyex")


@pytest.mark.slow
def test_intervals_of_marginal_comparisons_cover():
    """150 skewed samples of 150 rows: nominal 95 %, two Monte-Carlo errors of 1.78 %."""
    rng, covered = np.random.default_rng(5), []

    def rate(x, arm):
        return 1 / (1 + np.exp(0.5 - x - 0.8 * arm))

    many = rng.exponential(size=400_000)
    p0, p1 = (float(np.mean(rate(many, arm))) for arm in (0, 1))
    truth = {
        "difference": p1 - p0,
        "ratio": p1 / p0,
        "log_odds_ratio": np.log(p1 / (1 - p1)) - np.log(p0 / (1 - p0)),
    }
    for _ in range(150):
        data = pd.DataFrame({"x": rng.exponential(size=150), "arm": rng.integers(0, 2, 150)})
        data["y"] = (rng.uniform(size=150) < rate(data["x"], data["arm"])).astype(int)
        fit = smf.logit("y ~ x + C(arm)", data).fit(disp=0)
        ends = []
        for comparison, value in truth.items():
            line = rs.tidy(rs.averages(fit, data, "arm", comparison=comparison)).iloc[1]
            ends.append(line["conf_low"] <= value <= line["conf_high"])
        covered.append(ends)
    assert (np.abs(np.mean(covered, axis=0) - 0.95) <= 2 * 0.0178).all()


# --- functions, scales, several columns -----------------------------------------------------------


def binary(n=200):
    rng = np.random.default_rng(4)
    data = pd.DataFrame({"x": rng.normal(size=n), "g": rng.choice(list("ab"), n)})
    data["h"] = rng.choice(["u", "v"], n)
    data["y"] = (rng.uniform(size=n) < 1 / (1 + np.exp(-data["x"]))).astype(int)
    return smf.logit("y ~ x + g", data).fit(disp=0), data


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("ratio", lambda high, low: high / low),
        ("log_odds_ratio", lambda p, q: np.log(p / (1 - p)) - np.log(q / (1 - q))),
    ],
)
def test_functions_are_comparisons(name, function):
    fit, data = binary()
    found, expected = (rs.averages(fit, data, comparison=c) for c in (function, name))
    numbers = found.sel(term=found["kind"] == "comparison")
    assert_allclose(numbers["average"], expected["average"][2:], rtol=1e-12)
    assert_allclose(numbers["average_se"], expected["average_se"][2:], rtol=1e-9)
    assert numbers["contrast"].values.tolist() == ["f(b, a)"]
    assert numbers["null"].values.tolist() == [0.0]


def risk(high, low):
    return high - low


def test_functions_have_their_names():
    fit, data = binary()
    found = rs.averages(fit, data, {"x": (0, 1)}, comparison=risk)
    assert found["contrast"].values[1] == "risk(1, 0)"
    expected = rs.averages(fit, data, {"x": (0, 1)})
    assert_allclose(found["average_se"], expected["average_se"], rtol=1e-10)


@pytest.mark.parametrize(
    ("fit", "link"),
    [
        (lambda data: smf.logit("y ~ x + g", data).fit(disp=0), lambda p: np.log(p / (1 - p))),
        (lambda data: smf.poisson("y ~ x + g", data).fit(disp=0), np.log),
        (lambda data: smf.glm("y ~ x + g", data, family=sm.families.Poisson()).fit(), np.log),
        (lambda data: smf.ols("y ~ x + g", data).fit(), lambda mean: mean),
    ],
    ids=["logit", "poisson", "glm", "ols"],
)
def test_links_make_predictions_linear(fit, link):
    _, data = binary()
    results = fit(data)
    found = rs.averages(results, data, scale="link", uncertainty="parameters")
    # On the scale of the link slopes and contrasts are parameters.
    assert_allclose(found["average"][1:], results.params.loc[["x", "g[T.b]"]], rtol=1e-6)
    assert_allclose(found["average_se"][1:], results.bse.loc[["x", "g[T.b]"]], rtol=1e-5)
    assert_allclose(found["average"][0], np.mean(link(results.predict(data))), rtol=1e-7)
    assert found.attrs["scale"] == "link"
    function = rs.averages(results, data, scale=link, uncertainty="parameters")
    assert_allclose(function["average_se"], found["average_se"], rtol=1e-6)


def test_scales_that_are_none():
    fit, data = binary()
    with pytest.raises(TypeError, match=r"scale must be a function of NumPy such as numpy.log"):
        rs.averages(fit, data, scale=math.log)
    with pytest.raises(ValueError, match="scale must be .*'logit', 'decision'.*; got 'link'"):
        rs.rhale(fit, data, "x", scale="link")
    plain = rs.Parametric(lambda b, X: X["x"] * b[0], [1.0], [[0.1]])
    with pytest.raises(ValueError, match="scale='link' needs a model of statsmodels with a link"):
        rs.averages(plain, data[["x"]], scale="link")


def test_functions_that_are_no_comparisons():
    fit, data = binary()
    with pytest.raises(TypeError, match="comparison must be a function of NumPy of the high and"):
        rs.averages(fit, data, comparison=len)


@pytest.mark.thorough
def test_several_columns_make_cells():
    fit, data = binary()
    found = rs.averages(fit, data, "x", by=["h", "g"])
    assert found["by"].values.tolist() == ["u, a", "u, b", "v, a", "v, b"]
    assert found["by"].attrs["long_name"] == "h, g"
    alone = rs.averages(fit, data, "x", by=data["h"] + ", " + data["g"])
    assert_allclose(found["average_cov"], alone["average_cov"], rtol=1e-12)
    # Ordered categories keep their order.
    data["h"] = pd.Categorical(data["h"], ["v", "u"], ordered=True)
    turned = rs.averages(fit, data, "x", by=["h", "g"])
    assert turned["by"].values.tolist() == ["v, a", "v, b", "u, a", "u, b"]


@pytest.mark.thorough
def test_hypotheses_are_asked_at_once():
    fit, data = binary()
    found = rs.averages(fit, data, by="h", hypothesis="b1 = b4")
    assert found.equals(rs.hypotheses(rs.averages(fit, data, by="h"), "b1 = b4"))


def test_ordered_levels_are_compared_in_their_order():
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"d": pd.Categorical(rng.choice(["low", "mid", "top"], 90), ordered=True)})
    data["d"] = data["d"].cat.reorder_categories(["top", "mid", "low"])
    data["y"] = rng.normal(size=90)
    fit = smf.ols("y ~ d", data).fit()
    found = rs.averages(fit, data, contrasts="sequential")
    assert found["contrast"].values.tolist()[1:] == ["mid - top", "low - mid"]


def of_grids(n=200):
    rng = np.random.default_rng(3)
    data = pd.DataFrame(
        {"x": rng.normal(1, 2, n), "g": rng.choice(list("abc"), n, p=[0.2, 0.5, 0.3])}
    )
    data["h"] = rng.choice(["u", "v"], n, p=[0.3, 0.7])
    z = 0.4 * data["x"] + (data["g"] == "b") - 0.5 * (data["h"] == "u")
    data["y"] = (rng.uniform(size=n) < 1 / (1 + np.exp(-z))).astype(int)
    return smf.logit("y ~ x + g + h", data).fit(disp=0, tol=1e-12), data


@pytest.mark.thorough
def test_effects_at_the_mean():
    """Slope b p (1 - p) at the mean of x and the modes of the others, by the delta method."""
    fit, data = of_grids()
    found = rs.tidy(rs.averages(fit, "mean"))
    assert found["contrast"].tolist() == ["", "dY/dX", "b - a", "c - a", "v - u"]
    names, b = fit.params.index, fit.params.to_numpy()

    def row(g, h="v"):
        return np.array([1, g == "b", g == "c", h == "v", data["x"].mean()], dtype=float)

    assert names.tolist() == ["Intercept", "g[T.b]", "g[T.c]", "h[T.v]", "x"]
    p = special.expit(row("b") @ b)
    gradient = b[-1] * p * (1 - p) * (1 - 2 * p) * row("b") + p * (1 - p) * np.eye(5)[-1]
    expected = [b[-1] * p * (1 - p), np.sqrt(gradient @ fit.cov_params() @ gradient)]
    assert_allclose(found.loc[1, ["estimate", "std_error"]].astype(float), expected, rtol=1e-6)
    low, high = row("a"), row("c")
    p, q = special.expit(low @ b), special.expit(high @ b)
    gradient = q * (1 - q) * high - p * (1 - p) * low
    expected = [q - p, np.sqrt(gradient @ fit.cov_params() @ gradient)]
    assert_allclose(found.loc[3, ["estimate", "std_error"]].astype(float), expected, rtol=1e-6)
    # Named columns of a table of one row have the levels and the spread of the fit, too.
    grid = rs.datagrid(data[["x", "g", "h"]])
    alone = rs.averages(fit, grid, ["x", "g", "h"], uncertainty="parameters")
    assert_allclose(rs.tidy(alone)["std_error"], found["std_error"], rtol=1e-9)
    for contrast, step in (("sd", data["x"].std()), ("minmax", np.ptp(data["x"])), (2, 2)):
        line = rs.tidy(rs.averages(fit, "mean", "x", contrasts=contrast, scale="link")).iloc[1]
        assert_allclose(line["estimate"], b[-1] * step, rtol=1e-9)


def test_balanced_grids_have_the_means_of_emmeans():
    fit, data = of_grids()
    found = rs.averages(fit, "balanced", "x", by="g", scale="link").isel(term=[0])
    weights = np.zeros((3, 5))
    weights[:, 0], weights[:, 3], weights[:, 4] = 1, 0.5, data["x"].mean()
    weights[1, 1] = weights[2, 2] = 1
    assert found["by"].values.tolist() == ["a", "b", "c"]
    assert_allclose(found["average"][0], weights @ fit.params, rtol=1e-9)
    expected = weights @ fit.cov_params().to_numpy() @ weights.T
    assert_allclose(np.squeeze(rs.vcov(found).values), expected, rtol=1e-6)


def test_words_for_tables_are_refused_where_they_have_no_rows():
    fit, data = of_grids()
    with pytest.raises(ValueError, match="X must be a table, 'mean' or 'balanced'; got 'typical'"):
        rs.averages(fit, "typical")
    for options in ({"groups": np.arange(200)}, {"weights": np.ones(200)}):
        with pytest.raises(ValueError, match="must be left out with X='mean'"):
            rs.averages(fit, "mean", **options)
    with pytest.raises(ValueError, match="uncertainty must be 'parameters' with X='mean'"):
        rs.averages(fit, "mean", uncertainty="rows")
    plain = sm.OLS(data["y"], sm.add_constant(data["x"])).fit()
    with pytest.raises(TypeError, match="X must be a table.*the model has no rows"):
        rs.averages(plain, "mean")


def test_predictions_alone_and_rows_of_grids():
    fit, data = of_grids()
    alone = rs.averages(fit, "balanced", features=[], by=["g", "h"])
    assert alone["term"].values.tolist() == ["prediction"]
    assert alone["by"].values.tolist() == ["a, u", "a, v", "b, u", "b, v", "c, u", "c, v"]
    # Rows of a grid are no sample, also where nobody says so.
    grid = rs.datagrid(data, x=[0, 1])
    found, expected = (
        rs.averages(fit, grid, "x", **o) for o in ({}, {"uncertainty": "parameters"})
    )
    assert_allclose(found["average_se"], expected["average_se"])
    assert found["average_se"].attrs["source"] == "parameters"
    with pytest.raises(ValueError, match="got 'trt.vs.ctrl'. Did you mean 'reference'"):
        rs.averages(fit, data, hypothesis="trt.vs.ctrl")
