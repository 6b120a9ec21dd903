"""Pooled results of imputations: by hand, of every kind that has them, refusals, coverage."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from numpy.testing import assert_allclose
from scipy import stats

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


@pytest.mark.thorough
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


@pytest.mark.thorough
def test_ratios_are_pooled_as_logarithms():
    ratios = averages(features="g", comparison="ratio")
    logs = averages(features="g", comparison="log_ratio")
    pooled, of_logs = rs.pool(ratios), rs.pool(logs)
    assert_allclose(pooled["average"][1], np.exp(of_logs["average"][1]), rtol=1e-10)
    assert_allclose(pooled["average_se"][1] / pooled["average"][1], of_logs["average_se"][1])
    ends = [rs.tidy(result)[["conf_low", "conf_high"]].iloc[1] for result in (pooled, of_logs)]
    assert_allclose(ends[0], np.exp(ends[1]), rtol=1e-10)
    assert_allclose(pooled["average_df"], of_logs["average_df"], rtol=1e-10)


@pytest.mark.thorough
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


# --- effects in bins ------------------------------------------------------------------------------

BINS = rs.GivenBins([-6, -0.5, 0.5, 6])


def effects(**options):
    results = []
    for fit, table in zip(FITS, TABLES, strict=True):
        X = table[["x", "g"]]
        local = rs.local_effects(fit, X, ["x"])
        given = {"model": fit, "X": X} if options.get("model") else {}
        groups = options.get("groups")
        results.append(rs.std_error(rs.rhale(local, bins=BINS), local, groups=groups, **given))
    return results


@pytest.mark.thorough
@pytest.mark.parametrize(
    "options", [{}, {"model": True}, {"groups": np.arange(80) // 4}], ids=["rows", "both", "groups"]
)
def test_effects_in_bins_are_pooled_by_hand(options):
    results = effects(**options)
    pooled = rs.std_error(rs.pool(results))
    z = pooled["grid_value"].values[0]
    inside = [int(np.argmin(np.abs(z - place))) for place in (-3, 0.1, 3)]
    values = np.stack([result["effect"].values[0] for result in results])
    within = np.mean([result["effect_se"].values[0] ** 2 for result in results], axis=0)
    added = 1.25 * values.var(axis=0, ddof=1)
    assert_allclose(pooled["effect_estimate"].values[0, inside], values.mean(axis=0), rtol=1e-9)
    assert_allclose(pooled["effect_se"].values[0, inside], np.sqrt(within + added), rtol=1e-9)
    complete = 19 if "groups" in options else 79
    share = added / (within + added)
    observed = (complete + 1) / (complete + 3) * complete * (1 - share)
    degrees = 1 / (share**2 / 3 + 1 / observed)
    assert_allclose(pooled["effect_df"].values[0, inside], degrees, rtol=1e-9)
    # Correlations are those of both parts together.
    covariance = rs.vcov(pooled, "x", of="effect").values[np.ix_(inside, inside)]
    parts = np.mean([rs.vcov(result, "x", of="effect") for result in results], axis=0)
    away = values - values.mean(axis=0)
    assert_allclose(covariance, parts + 1.25 * away.T @ away / 3, rtol=1e-6, atol=1e-12)
    assert "4 imputations" in pooled["effect_se"].attrs["source"]
    made = rs.confband(rs.confint(pooled), rng=0)
    half = stats.t.ppf(0.975, degrees) * np.sqrt(within + added)
    ends = made["effect_ci"].values[0, inside]
    assert_allclose(np.diff(ends, axis=1)[:, 0] / 2, half, rtol=1e-6)
    assert (np.diff(made["curve_band"])[..., 0] >= np.diff(made["curve_ci"])[..., 0] - 1e-12).all()


def test_functions_of_effects_take_the_pooled_ones():
    pooled = rs.pool(effects(model=True))
    assert "Imputations pooled: RHALE" in str(rs.summary(pooled))
    assert "Imputations:" in str(rs.summary(pooled))
    test = rs.wald_test(pooled)
    assert 0 < test["p_value"].item() < 0.05
    assert np.isfinite(rs.wald_test(pooled, "constant")["p_value"].item())
    assert rs.compare(pooled, pooled)["p_value"].item() > 0.99
    steep = rs.hypotheses(pooled, "b100 = b2", feature="x", of="curve")
    assert np.isfinite(steep["average_se"].item())
    # Where nothing was imputed the errors are those of the rows.
    same = rs.std_error(rs.pool(effects()[:1] * 3))
    place = int(np.argmin(np.abs(same["grid_value"].values[0] - 3)))
    assert_allclose(same["effect_se"][0, place], effects()[0]["effect_se"][0, 2], rtol=1e-9)


def test_levels_and_outputs_are_pooled():
    results = [
        rs.ale(fit, table[["x", "g"]], ["g"]) for fit, table in zip(FITS, TABLES, strict=True)
    ]
    pooled = rs.std_error(rs.pool(results))
    curves = np.stack([result["curve"].values[0, :2] for result in results])
    assert_allclose(pooled["curve_estimate"].values[0, :2], curves.mean(axis=0), atol=1e-12)
    turned = [rs.ale(FITS[0], TABLES[0][["x", "g"]], ["g"], order={"g": list("vu")}), results[1]]
    assert results[1]["level"].values[0, 0] == "u"
    with pytest.raises(ValueError, match="same features in the same bins.*order= of levels"):
        rs.pool(turned)
    two = [
        rs.rhale(lambda X, k=k: np.column_stack([k * X[:, 0], 2 * k * X[:, 0] ** 2]), x, bins=BINS)
        for k, x in enumerate(np.random.default_rng(0).uniform(-1, 1, (3, 90, 1)), start=1)
    ]
    both = rs.std_error(rs.pool(two))
    one = rs.std_error(rs.pool([result.isel(output=1) for result in two]))
    assert_allclose(both["curve_se"].isel(output=1), one["curve_se"])


def test_tables_of_hypotheses_are_pooled_with_their_tests():
    results = [rs.hypotheses(result) for result in effects()]
    pooled = rs.pool(results)
    values = np.stack([result["average"] for result in results])
    within = np.mean([result["average_cov"] for result in results], axis=0)
    expected = within + 1.25 * np.cov(values.T)
    assert_allclose(pooled["average_cov"], expected, rtol=1e-12)
    assert_allclose(pooled["average"], values.mean(axis=0))
    again = rs.hypotheses(pooled, "b3 = b1")
    gradient = np.array([-1, 0, 1])
    assert_allclose(again["average_se"].item() ** 2, gradient @ expected @ gradient, rtol=1e-10)
    statistic = pooled["average"].values @ np.linalg.solve(expected, pooled["average"].values) / 3
    assert_allclose(pooled.attrs["joint_statistic"], statistic, rtol=1e-8)
    assert "Rubin's rules for 4 imputations" in str(rs.summary(pooled))


@pytest.mark.parametrize(
    ("results", "message"),
    [
        (
            lambda: averages()[:1],
            "two or more results of averages, profiles, or.*got 1 of averages",
        ),
        (lambda: [*averages(), rs.pdp(FITS[0], TABLES[0], ["x"])], "got 5 of several kinds"),
        (lambda: [rs.wald_test(effects()[0])] * 2, r"got 2 of a test. hypotheses\(result\) makes"),
        (
            lambda: [rs.rhale(fit, table, ["x"]) for fit, table in zip(FITS, TABLES, strict=True)],
            "these differ. Choose the bins once: bins=rs.GivenBins",
        ),
        (
            lambda: [effects()[0], effects()[0].assign_attrs(centering="start")],
            "with one centering; these differ",
        ),
        (lambda: [averages()[0], averages(features="g")[0]], "results must be alike"),
        (
            lambda: [rs.pdp(FITS[0], table, ["x"]) for table in TABLES],
            r"on the same grid \(grid=",
        ),
        (
            lambda: [rs.hypotheses(rs.pdp(FITS[0], TABLES[0], "x"), "zero")] * 2,
            "results must be no locations",
        ),
    ],
)
def test_results_that_do_not_fit_are_refused(results, message):
    with pytest.raises(ValueError, match=message):
        rs.pool(results())
