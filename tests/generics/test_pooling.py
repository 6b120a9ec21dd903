"""Pooled results of imputations: by hand, of every kind that has them, refusals, coverage."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from numpy.testing import assert_allclose

import rhale_stats as rs


def imputations(m=4, n=80, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    data = pd.DataFrame({"x": x, "g": rng.choice(list("uv"), n)})
    data["y"] = (rng.uniform(size=n) < 1 / (1 + np.exp(-x))).astype(int)
    # A fifth of x is drawn anew for every table.
    return [data.assign(x=np.where(np.arange(n) % 5 == 0, rng.normal(size=n), x)) for _ in range(m)]


TABLES = imputations()
FITS = [smf.logit("y ~ x + g", table).fit(disp=0) for table in TABLES]


def averages(**options):
    return [rs.averages(fit, table, **options) for fit, table in zip(FITS, TABLES, strict=True)]


def test_averages_are_pooled_by_hand():
    results = averages()
    pooled = rs.pool(results)
    values = np.stack([result["average"] for result in results])
    within = np.mean([result["average_cov"] for result in results], axis=0)
    expected = within + 5 / 4 * np.cov(values.T)
    assert_allclose(pooled["average"], values.mean(axis=0), rtol=1e-12)
    assert_allclose(pooled["average_cov"], expected, rtol=1e-12)
    assert_allclose(pooled["average_se"] ** 2, np.diagonal(expected), rtol=1e-12)
    share = 1 - np.diagonal(within) / np.diagonal(expected)
    complete = np.mean([result["average_df"] for result in results], axis=0)
    # Degrees of freedom are infinite where only the parameters vary.
    finite = np.isfinite(complete)
    observed = (complete + 1) / (complete + 3) * complete * (1 - share)
    assert_allclose(
        pooled["average_df"][finite], (1 / (share**2 / 3 + 1 / observed))[finite], rtol=1e-10
    )
    assert pooled["average_se"].attrs["source"] == "rows and parameters, 4 imputations"
    assert pooled.attrs["n_imputations"] == 4
    assert pooled["n_obs"].dtype == results[0]["n_obs"].dtype
    assert "Rubin's rules for 4 imputations" in str(rs.summary(pooled))


def test_levels_and_functions_of_averages():
    results = averages(by="g")
    pooled = rs.pool(results)
    # Each level by itself is what pooling its own averages gives.
    alone = rs.pool([result.isel(by=[1]) for result in results])
    assert_allclose(pooled["average_se"].isel(by=1), alone["average_se"].isel(by=0), rtol=1e-12)
    test = rs.hypotheses(pooled, "b1 = b2")
    line = rs.tidy(test).iloc[0]
    a, b = pooled["average"].transpose("by", "term").values.ravel()[:2]
    assert_allclose(line["estimate"], a - b)


def test_ratios_are_pooled_as_logarithms():
    ratios = averages(features="g", comparison="ratio")
    logs = averages(features="g", comparison="log_ratio")
    pooled, of_logs = rs.pool(ratios), rs.pool(logs)
    assert_allclose(pooled["average"][1], np.exp(of_logs["average"][1]), rtol=1e-10)
    assert_allclose(pooled["average_se"][1] / pooled["average"][1], of_logs["average_se"][1])
    ends = [rs.tidy(result)[["conf_low", "conf_high"]].iloc[1] for result in (pooled, of_logs)]
    assert_allclose(ends[0], np.exp(ends[1]), rtol=1e-10)
    assert_allclose(pooled["average_df"], of_logs["average_df"], rtol=1e-10)


def test_profiles_are_pooled_on_one_grid():
    results = [
        rs.std_error(rs.pdp(fit, table, ["x"], grid={"x": [-1, 0, 1]}), model=fit, X=table)
        for fit, table in zip(FITS, TABLES, strict=True)
    ]
    pooled = rs.pool(results)
    values = np.stack([result["curve"][0] for result in results])
    within = np.mean([result["curve_cov"][0] for result in results], axis=0)
    assert_allclose(pooled["curve_cov"][0], within + 5 / 4 * np.cov(values.T), rtol=1e-10)
    assert np.isfinite(rs.confband(pooled, rng=0)["curve_band"]).all()
    rows = rs.pool([rs.pdp(fit, TABLES[0], ["x"], grid={"x": [-1, 0, 1]}) for fit in FITS])
    assert (rows["curve_df"] < 80).all()
    assert rows["curve_se"].attrs["source"] == "rows, 4 imputations"


def test_several_outputs():
    def model(X):
        return np.column_stack([X[:, 0], X[:, 0] ** 2, X[:, 1]])

    X = np.random.default_rng(0).uniform(-1, 1, (2, 60, 2))
    results = [rs.pdp(model, table, grid={"x0": [-1, 0], "x1": [0, 1]}) for table in X]
    pooled = rs.pool(results)
    for output in range(3):
        alone = rs.pool([result.isel(output=output) for result in results])
        assert_allclose(pooled["curve_cov"].isel(output=output), alone["curve_cov"], atol=1e-15)
        assert_allclose(pooled["curve_df"].isel(output=output), alone["curve_df"])


@pytest.mark.parametrize(
    ("results", "message"),
    [
        (lambda: averages()[:1], "two or more results of averages, or profiles; got 1 of averages"),
        (lambda: [*averages(), rs.pdp(FITS[0], TABLES[0], ["x"])], "got 5 of several kinds"),
        (lambda: [rs.rhale(FITS[0], TABLES[0], ["x"])] * 2, "got 2 of effects in bins"),
        (lambda: [averages()[0], averages(features="g")[0]], "results must be alike"),
        (
            lambda: [rs.pdp(FITS[0], table, ["x"]) for table in TABLES],
            r"on the same grid \(grid=",
        ),
        (lambda: [rs.hypotheses(result) for result in averages()], "before hypotheses"),
    ],
)
def test_results_that_do_not_fit_are_refused(results, message):
    with pytest.raises(ValueError, match=message):
        rs.pool(results())
