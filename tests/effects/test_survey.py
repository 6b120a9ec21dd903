"""Effects in bins and profiles under the design of a survey."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from numpy.testing import assert_allclose

import rhale_stats as rs

rng = np.random.default_rng(5)
N = 600
X = pd.DataFrame({"x": rng.uniform(-1, 1, N), "z": rng.normal(size=N)})
STRATUM = (X["z"] > 0).astype(int) + (X["z"] > 1)
DATA = X.assign(y=X["x"] * X["z"] + rng.normal(size=N))
FIT = smf.ols("y ~ x * z", DATA).fit()
LOCAL = rs.local_effects(FIT, X)
EFFECT = rs.rhale(LOCAL, bins=rs.EqualWidthBins(3))
ESTIMATES = ("effect", "curve", "heterogeneity", "spread", "average_effect")


def errors(**design):
    return rs.std_error(EFFECT, LOCAL, groups=rs.SurveyDesign(**design))


def test_average_effects_are_stratified_means():
    result = errors(strata=STRATUM)
    g = LOCAL["local_effect"].sel(feature="x").to_pandas()
    within = sum(
        len(part) / (len(part) - 1) * np.sum((part - part.mean()) ** 2)
        for _, part in g.groupby(STRATUM.to_numpy())
    )
    # Squares are corrected for the share of a row besides.
    expected = np.sqrt(within / N**2 / (1 - 1 / N))
    assert_allclose(result["average_effect_se"].sel(feature="x"), expected, rtol=1e-10)
    assert result["average_effect_se"].attrs["source"] == f"rows in {N} clusters of 3 strata"
    # The effects of x are linear in z, by which strata are made.
    assert expected < 0.6 * rs.std_error(EFFECT)["average_effect_se"].sel(feature="x")


@pytest.mark.thorough
@pytest.mark.parametrize("name", ESTIMATES)
def test_finite_populations_scale_all_errors(name):
    some = errors(strata=STRATUM, fpc=0.36)
    every = errors(strata=STRATUM)
    assert_allclose(some[f"{name}_se"], 0.8 * every[f"{name}_se"], rtol=1e-9)


@pytest.mark.thorough
def test_rows_without_strata_have_the_errors_of_groups_of_one():
    groups = rs.std_error(EFFECT, LOCAL, groups=np.arange(N)).rhale.in_bins()
    design = errors().rhale.in_bins()
    factor = np.sqrt(N / (N - 1))
    for name in ("effect", "curve", "average_effect"):
        # With factors for leverage influences no longer sum to 0 exactly, in cells of unequal size.
        assert_allclose(design[f"{name}_se"], factor * groups[f"{name}_se"], rtol=1e-4)
    # Never more than those of the design, also of what bins have in common.
    assert (design["effect_df"] <= groups["effect_df"]).all()


def test_degrees_are_not_more_than_those_of_the_design():
    clusters = rng.integers(0, 10, N)
    strata = clusters % 2
    result = errors(clusters=clusters, strata=strata)
    assert float(result["effect_df"].max()) <= 8
    assert float(result["average_effect_df"].max()) <= 8
    assert result.attrs["n_groups"] == 9
    intervals = rs.confband(rs.confint(result), rng=0)
    assert np.isfinite(intervals["effect_band"]).all()


@pytest.mark.thorough
def test_replicate_weights_reproduce_the_bootstrap():
    # 2,000 replicates: the Monte-Carlo error of a standard error is 1.6 %.
    weights = rng.multinomial(N, np.full(N, 1 / N), 2000).T.astype(float)
    result = errors(replicates=weights, scale="bootstrap")
    plain = errors()
    for name in ("effect", "average_effect"):
        assert_allclose(result[f"{name}_se"], plain[f"{name}_se"], rtol=4 * 0.016)


def test_parameters_are_added_by_the_design():
    design = rs.SurveyDesign(strata=STRATUM, fpc=0.36)
    every = rs.SurveyDesign(strata=STRATUM)
    some, whole = (rs.std_error(EFFECT, LOCAL, groups=d, model=FIT, X=X) for d in (design, every))
    for name in ("effect", "curve", "average_effect"):
        assert_allclose(some[f"{name}_se"], 0.8 * whole[f"{name}_se"], rtol=1e-7)
    # By hand: the average effect of x is b1 + b3 mean(z).
    exog = FIT.model.exog
    influence = exog * FIT.resid.to_numpy()[:, None] @ np.linalg.inv(exog.T @ exog)
    z, b = X["z"].to_numpy(), FIT.params
    total = influence @ [0, 1, 0, z.mean()] + b["x:z"] * (z - z.mean()) / N
    away = pd.Series(total).groupby(STRATUM.to_numpy())
    expected = np.sqrt(sum(len(p) / (len(p) - 1) * np.sum((p - p.mean()) ** 2) for _, p in away))
    assert_allclose(whole["average_effect_se"].sel(feature="x"), expected, rtol=2e-3)


@pytest.mark.thorough
def test_profiles_have_the_design_too():
    ice, pdp = rs.ice(FIT, X, features=["x"]), rs.pdp(FIT, X, features=["x"])
    every, some, own = (
        rs.std_error(pdp, ice, groups=rs.SurveyDesign(strata=STRATUM, fpc=fpc), **model)
        for fpc, model in ((None, {}), (0.36, {}), (0.36, {"model": FIT, "X": X}))
    )
    assert_allclose(some["curve_se"], 0.8 * every["curve_se"], rtol=1e-10)
    assert (own["curve_df"] == N - 3).all()
    assert "strata and parameters" in own["curve_se"].attrs["source"]
    bins = rs.std_error(rs.m_plot(FIT, X, features=["x"], bins=4), groups=rs.SurveyDesign(fpc=0.36))
    assert bins["curve_se"].attrs["source"] == f"rows in {N} clusters"


def test_average_effects_of_features_covary_by_the_design():
    design = rs.SurveyDesign(strata=STRATUM)
    result = rs.hypotheses(
        rs.std_error(EFFECT, LOCAL, groups=design),
        "pairwise",
        of="average_effect",
        local=LOCAL,
        groups=design,
    )
    g = LOCAL["local_effect"].to_pandas()
    away = (g["z"] - g["x"]).groupby(STRATUM.to_numpy())
    expected = sum(len(p) / (len(p) - 1) * np.sum((p - p.mean()) ** 2) for _, p in away) / N**2
    assert_allclose(result["average_se"] ** 2, expected, rtol=2 / N)


def test_repeated_rows_and_other_rows_are_refused():
    counts = rs.rhale(FIT, X, weights=np.ones(N), weight_kind="frequency")
    local = rs.local_effects(FIT, X, weights=np.ones(N), weight_kind="frequency")
    with pytest.raises(ValueError, match="weight_kind must be 'sampling'.*got 'frequency'"):
        rs.std_error(counts, local, groups=rs.SurveyDesign())
    with pytest.raises(ValueError, match="uncertainty must be 'both' or 'rows'.*got 'parameters'"):
        rs.std_error(
            *(EFFECT, LOCAL), groups=rs.SurveyDesign(), model=FIT, X=X, uncertainty="parameters"
        )
    part = rs.local_effects(FIT, X[:300])
    with pytest.raises(ValueError, match="X must hold the rows of local"):
        rs.std_error(rs.rhale(part), part, groups=rs.SurveyDesign(), model=FIT, X=X)


@pytest.mark.thorough
def test_chunks_have_no_design():
    pytest.importorskip("dask")
    chunks = LOCAL.chunk(obs=200)
    effect = rs.rhale(chunks, bins=rs.EqualWidthBins(3))
    with pytest.raises(ValueError, match="groups must have one entry for each of 600 rows"):
        rs.std_error(effect, chunks, groups=rs.SurveyDesign())


CLUSTER = np.arange(N) // 12
DESIGN = rs.SurveyDesign(clusters=CLUSTER, strata=CLUSTER % 2, fpc=80)


def by_hand(influence):
    """Covariance of totals of influences (row, ...) within two strata of 25 of 80 clusters."""
    totals = pd.DataFrame(influence).groupby(CLUSTER).sum()
    away = totals - totals.groupby(np.arange(50) % 2).transform("mean")
    return (1 - 25 / 80) * 25 / 24 * away.to_numpy().T @ away.to_numpy()


def test_pairs_have_the_design():
    other = smf.ols("y ~ x * z + I(x**2)", DATA).fit()

    def apart(X):
        return np.asarray(FIT.predict(X)) - np.asarray(other.predict(X))

    bins = {"bins": rs.EqualWidthBins(3), "weighting": "rows", "centering": "start"}
    locals_, curves = [], []
    for model in (FIT, other, apart):
        locals_.append(rs.local_effects(model, X, ["x"]))
        curves.append(rs.ice(model, X, ["x"], n_grid=4))
    effects = [rs.std_error(rs.rhale(part, **bins), part, groups=DESIGN) for part in locals_]
    found = rs.compare(*effects[:2], paired=locals_[:2], groups=DESIGN, rng=0)
    assert found.attrs["source"] == "pairs of rows in 50 clusters of 2 strata"
    # Corrections for leverage are those of either side.
    assert_allclose(found["difference_se"][0, 1:], effects[2]["curve_se"][0, 1:], rtol=1e-3)
    profiles = [rs.std_error(part, groups=DESIGN) for part in curves]
    found = rs.compare(*profiles[:2], paired=curves[:2], groups=DESIGN, rng=0)
    assert_allclose(found["difference_se"], profiles[2]["curve_se"], rtol=1e-9)
    assert found.attrs["source"] == "pairs of rows in 50 clusters of 2 strata"
    plots = [rs.m_plot(model, X, ["x"], bins=3) for model in (FIT, other, apart)]
    expected = rs.std_error(plots[2], groups=DESIGN)["curve_se"]
    plots = [rs.std_error(plot, groups=DESIGN) for plot in plots[:2]]
    found = rs.compare(*plots, paired=plots, groups=DESIGN, rng=0)
    assert_allclose(found["difference_se"], expected, rtol=1e-9)


@pytest.mark.thorough
@pytest.mark.parametrize("replicated", [False, True])
def test_parts_of_the_rows_have_the_clusters_of_all(replicated):
    part = np.where(np.arange(N) % 5 < 2, "u", "v")
    inside = part == "u"
    weights = np.linspace(1, 2, N)
    times = rng.exponential(size=(N, 40)) * weights[:, None]
    design = rs.SurveyDesign(replicates=times, scale="bootstrap") if replicated else DESIGN
    options = {"weights": weights, "weight_kind": "sampling", "centering": "none"}
    found = rs.pdp(FIT, X, ["x"], by=part, n_grid=3, groups=design, **options)
    ice = rs.ice(FIT, X, ["x"], grid={"x": np.ravel(found["grid_value"].values)[:3]}, **options)
    curves = ice["ice"].sel(feature="x").transpose("obs", "grid").values
    w = weights * inside
    mean = np.average(curves, axis=0, weights=w)
    if replicated:
        means = (times * inside[:, None]).T @ curves
        means /= (times * inside[:, None]).sum(axis=0)[:, None]
        expected = np.cov(means.T)
    else:
        expected = by_hand((w / w.sum())[:, None] * (curves - mean))
    assert_allclose(found["curve_se"].isel(region=0)[0], np.sqrt(np.diag(expected)), rtol=1e-9)
    effect = rs.rhale(FIT, X, ["x"], by=part, groups=DESIGN)
    g = LOCAL["local_effect"].sel(feature="x").values
    centred = np.where(inside, g - g[inside].mean(), 0) / inside.sum()
    # Squares are corrected for the share of a cluster besides.
    expected = np.sqrt(by_hand(centred[:, None]).item())
    assert_allclose(effect["average_effect_se"].isel(region=0), expected, rtol=0.02)


@pytest.mark.parametrize("column", ["gaps", "whole"])
def test_features_with_rows_of_their_own_have_the_design(column):
    table = X.assign(gaps=X["x"].mask(np.arange(N) % 7 == 0), whole=np.round(3 * X["x"]))

    def model(table):
        return np.asarray(np.tanh(table[column].fillna(0)) * (1 + table["z"]))

    options = {"missing": "drop", "bins": rs.EqualWidthBins(2)}
    found, groups = (
        rs.rhale(model, table[[column, "z"]], [column], **options, groups=given)
        for given in (rs.SurveyDesign(clusters=CLUSTER), CLUSTER)
    )
    assert_allclose(found["effect_se"], np.sqrt(50 / 49) * groups["effect_se"], rtol=0.02)
    assert found["effect_se"].attrs["source"] == "rows in 50 clusters"


def test_curves_of_shapley_values_have_the_design():
    shap = rs.shap_dependence(FIT, X[:120], ["x"], progress=False)
    groups = rs.std_error(shap, groups=CLUSTER[:120])
    design = rs.std_error(shap, groups=rs.SurveyDesign(clusters=CLUSTER[:120]))
    # Influences of groups sum to 0 up to the factors of their leverage.
    assert_allclose(design["curve_se"], groups["curve_se"] * np.sqrt(10 / 9), rtol=0.05)
    assert (design["curve_df"] <= 9).all()
    finite = rs.std_error(shap, groups=rs.SurveyDesign(clusters=CLUSTER[:120], fpc=0.36))
    assert_allclose(finite["curve_se"], 0.8 * design["curve_se"], rtol=1e-9)


def test_other_results_say_what_takes_a_design():
    surface = rs.ale2(FIT, X, ("x", "z"))
    with pytest.raises(ValueError, match="Designs are for averages, std_error of effects in bins"):
        rs.std_error(surface, groups=DESIGN)
