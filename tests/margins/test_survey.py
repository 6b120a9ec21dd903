"""Averages under the design of a survey: by hand, statsmodels, refits on replicate weights."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from numpy.testing import assert_allclose

import rhale_stats as rs

rng = np.random.default_rng(3)
N = 240
DATA = pd.DataFrame(
    {
        "stratum": rng.integers(0, 4, N),
        "cluster": rng.integers(0, 6, N),
        "x": rng.normal(size=N),
        "part": rng.choice(["u", "v"], N),
        "w": rng.uniform(1, 4, N),
    }
)
DATA["y"] = DATA["x"] + 0.3 * DATA["cluster"] + DATA["stratum"] + rng.normal(size=N)
DATA["z"] = (DATA["y"] > DATA["y"].median()).astype(int)
DESIGN = rs.SurveyDesign(clusters=DATA["cluster"], strata=DATA["stratum"], fpc=12)
WEIGHTS = {"weights": DATA["w"], "weight_kind": "sampling"}


def by_hand(influence):
    """Covariance of totals of influences (row, estimate), stratum by stratum, half of 12 drawn."""
    totals = pd.DataFrame(influence).groupby([DATA["stratum"], DATA["cluster"]]).sum()
    covariance = 0.0
    for _, table in totals.groupby(level=0):
        n = len(table)
        away = (table - table.mean()).to_numpy()
        covariance = covariance + (1 - n / 12) * n / (n - 1) * away.T @ away
    return covariance


def test_means_and_domain_means_are_those_of_svymean():
    fit = smf.wls("y ~ C(stratum)", DATA, weights=DATA["w"]).fit()
    w, f = DATA["w"], fit.fittedvalues
    whole = rs.averages(fit, DATA, groups=DESIGN, uncertainty="rows", **WEIGHTS)
    mean = np.average(f, weights=w)
    assert_allclose(whole["average"][0], mean, rtol=1e-12)
    expected = by_hand((w * (f - mean) / w.sum()).to_frame())
    assert_allclose(whole["average_se"][0] ** 2, expected.squeeze(), rtol=1e-10)
    assert whole["average_df"][0] == 24 - 4
    assert whole["average_se"].attrs["source"] == "rows in 24 clusters of 4 strata"
    parts = rs.averages(fit, DATA, by="part", groups=DESIGN, uncertainty="rows", **WEIGHTS)
    influence = np.zeros((N, 2))
    for number, level in enumerate("uv"):
        inside = (DATA["part"] == level).to_numpy()
        centred = f - np.average(f[inside], weights=w[inside])
        influence[inside, number] = (w * centred / w[inside].sum())[inside]
    found = parts["average_cov"].sel(term="prediction", term_other="prediction").values
    assert_allclose(found, by_hand(influence), rtol=1e-10, atol=1e-15)


@pytest.mark.parametrize("uncertainty", ["parameters", "both"])
def test_slopes_are_those_of_svyglm(uncertainty):
    fit = smf.wls("y ~ x", DATA, weights=DATA["w"]).fit()
    exog, w = fit.model.exog, DATA["w"].to_numpy()
    influence = exog * (w * fit.resid.to_numpy())[:, None]
    influence = influence @ np.linalg.inv(exog.T @ (w[:, None] * exog))
    result = rs.averages(fit, DATA, groups=DESIGN, uncertainty=uncertainty, **WEIGHTS)
    assert_allclose(result["average_se"].sel(term="x") ** 2, by_hand(influence)[1, 1], rtol=1e-7)
    if uncertainty == "both":
        # The mean prediction is the weighted mean of y.
        centred = DATA["y"] - np.average(DATA["y"], weights=w)
        expected = by_hand((w * centred / w.sum()).to_frame()).squeeze()
        assert_allclose(result["average_se"][0] ** 2, expected, rtol=1e-7)


@pytest.mark.thorough
@pytest.mark.parametrize("clusters", [None, "cluster"])
def test_robust_errors_are_those_of_statsmodels(clusters):
    code = None if clusters is None else DATA["cluster"] + 10 * DATA["stratum"]
    kind = {"cov_type": "HC0"} if code is None else {
        "cov_type": "cluster", "cov_kwds": {"groups": code, "use_correction": False}
    }  # fmt: skip
    fit = smf.logit("z ~ x", DATA).fit(disp=0, tol=1e-12)
    robust = smf.logit("z ~ x", DATA).fit(disp=0, tol=1e-12, **kind)
    n = N if code is None else code.nunique()
    options = {"uncertainty": "parameters"}
    plain = rs.averages(robust, DATA, **options)
    found = rs.averages(fit, DATA, groups=rs.SurveyDesign(clusters=code), **options)
    assert_allclose(found["average_se"], plain["average_se"] * np.sqrt(n / (n - 1)), rtol=1e-6)


def test_replicate_weights_without_rows_in_some_give_the_means_of_the_rest():
    replicates = DATA["w"].to_numpy()[:, None] * rng.integers(0, 3, (N, 30))
    design = rs.SurveyDesign(replicates=replicates, scale="bootstrap")
    fit = smf.ols("y ~ x", DATA).fit()
    found = rs.averages(fit, DATA, by="part", groups=design, uncertainty="rows", **WEIGHTS)
    for level in "uv":
        inside = (DATA["part"] == level).to_numpy()
        means = [np.average(fit.fittedvalues[inside], weights=w[inside]) for w in replicates.T]
        assert_allclose(
            found["average_se"].sel(term="prediction", by=level), np.std(means, ddof=1), rtol=1e-10
        )
    assert (found["average_df"] == 29).all()


def test_the_jackknife_of_parameters_is_linearisation():
    weights = (1 - np.eye(N)) * N / (N - 1)
    fit = smf.logit("z ~ x", DATA).fit(disp=0)
    jackknife, plain = (
        rs.averages(fit, DATA, groups=design, uncertainty="parameters")
        for design in (rs.SurveyDesign(replicates=weights), rs.SurveyDesign())
    )
    assert_allclose(jackknife["average_cov"], plain["average_cov"], rtol=1e-9)
    assert (jackknife["average_df"] == plain["average_df"]).all()


def test_sampling_weights_are_a_design_of_rows():
    fit = smf.wls("y ~ x", DATA, weights=DATA["w"]).fit()
    found = rs.averages(fit, DATA, **WEIGHTS)
    assert found.attrs["weight_kind"] == "sampling"
    expected = rs.averages(fit, DATA, weights=DATA["w"], groups=rs.SurveyDesign())
    assert_allclose(found["average_se"], expected["average_se"], rtol=1e-12)
    clusters = rs.averages(fit, DATA, groups=DATA["cluster"], **WEIGHTS)
    expected = rs.averages(fit, DATA, groups=rs.SurveyDesign(clusters=DATA["cluster"]), **WEIGHTS)
    assert_allclose(clusters["average_se"], expected["average_se"], rtol=1e-12)
    # Neither bounded by the covariance of a model with equal variances nor by precision weights.
    precision = rs.averages(fit, DATA, weights=DATA["w"])
    assert abs(precision["average_se"] / found["average_se"] - 1).max() < 0.05


def test_tables_and_hypotheses_go_on():
    fit = smf.logit("z ~ x + part", DATA).fit(disp=0)
    result = rs.averages(fit, DATA, by="part", groups=DESIGN)
    test = rs.hypotheses(result, "pairwise")
    assert np.isfinite(rs.tidy(test)["p_value"]).all()
    assert "rows in 24 clusters of 4 strata and parameters" in str(rs.summary(result))


def test_repeated_rows_have_no_design():
    fit = smf.ols("y ~ x", DATA).fit()
    with pytest.raises(ValueError, match="weight_kind must be 'sampling' with the design"):
        rs.averages(
            fit, DATA, weights=np.ones(N), weight_kind="frequency", groups=rs.SurveyDesign()
        )


@pytest.mark.thorough
def test_few_clusters_are_said():
    fit = smf.ols("y ~ x", DATA).fit()
    few = rs.averages(fit, DATA, groups=DESIGN)
    assert "Warning: few groups (20 degrees of freedom)" in str(rs.summary(few))
    assert "Warning: few groups (20 degrees of freedom)" in str(rs.show(few))
    assert "Few groups" not in str(rs.summary(rs.averages(fit, DATA, groups=rs.SurveyDesign())))
    assert "Few groups" not in str(rs.summary(rs.averages(fit, DATA)))


@pytest.mark.thorough
def test_a_few_rows_that_decide_are_said():
    data = DATA.assign(y=np.where(np.arange(N) == 7, 400.0, DATA["y"]))
    result = rs.averages(smf.ols("y ~ x", data).fit(), data, groups=rs.SurveyDesign())
    assert "Warning: a few rows or clusters decide (worth 2.05 of equal influence)" in str(
        rs.summary(result)
    )
    assert "a few rows" in str(rs.summary(rs.hypotheses(result, "b1 = b2")))
    # The kurtosis of normal influences is 3, and as many units count as there are.
    fit = smf.ols("y ~ x", DATA).fit()
    equal = rs.averages(fit, DATA, groups=rs.SurveyDesign(fpc=0.5))
    exog = fit.model.exog
    slope = (exog * fit.resid.to_numpy()[:, None] @ np.linalg.inv(exog.T @ exog))[:, 1]
    u = np.column_stack([DATA["y"] - DATA["y"].mean(), slope])
    expected = 2 / ((u**4).sum(axis=0) / (u**2).sum(axis=0) ** 2 - 1 / N)
    assert_allclose(equal.attrs["effective_units"], expected.min(), rtol=1e-6)
    assert "decide" not in str(rs.summary(equal))


@pytest.mark.parametrize(
    ("fit", "X"),
    [
        (lambda: smf.ols("y ~ x", DATA.assign(x=DATA["x"] + 1)).fit(), DATA),
        (lambda: smf.quantreg("y ~ x", DATA).fit(), DATA),
    ],
    ids=["other rows", "no scores"],
)
def test_parameters_need_the_rows_of_the_fit(fit, X):
    results = fit()
    with pytest.raises(ValueError, match="X must hold the rows that the model was fitted to"):
        rs.averages(results, X, "x", groups=DESIGN)
    assert np.isfinite(
        rs.averages(results, X, "x", groups=DESIGN, uncertainty="rows")["average_se"]
    ).all()


def test_a_mean_of_clusters_is_that_of_a_textbook():
    """Lohr (2010), *Sampling: Design and Analysis*, example 5.2: 5 of 100 suites of 4 students."""
    grades = [
        *(3.08, 2.60, 3.44, 3.04, 2.36, 3.04, 3.28, 2.68, 2.00, 2.56, 2.52, 1.88),
        *(3.00, 2.88, 3.44, 3.64, 2.68, 1.92, 3.28, 3.20),
    ]
    data = pd.DataFrame({"grade": grades, "half": np.resize([0.0, 1.0], 20)})
    fit = smf.ols("grade ~ half", data).fit()
    design = rs.SurveyDesign(clusters=np.repeat(np.arange(5), 4), fpc=100)
    found = rs.averages(fit, data, features=[], groups=design)
    assert_allclose(found["average"], 2.826, atol=5e-4)
    assert_allclose(found["average_se"], 0.164, atol=5e-4)
    assert_allclose(found["average_se"], np.sqrt(0.95 * 2.25568 / 80), rtol=1e-6)
    assert found["average_df"] == 4
