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


@pytest.mark.parametrize("name", ESTIMATES)
def test_finite_populations_scale_all_errors(name):
    some = errors(strata=STRATUM, fpc=0.36)
    every = errors(strata=STRATUM)
    assert_allclose(some[f"{name}_se"], 0.8 * every[f"{name}_se"], rtol=1e-9)


def test_rows_without_strata_have_the_errors_of_groups_of_one():
    groups = rs.std_error(EFFECT, LOCAL, groups=np.arange(N))
    design = errors()
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


def test_chunks_have_no_design():
    pytest.importorskip("dask")
    chunks = LOCAL.chunk(obs=200)
    effect = rs.rhale(chunks, bins=rs.EqualWidthBins(3))
    with pytest.raises(ValueError, match="groups must have one entry for each of 600 rows"):
        rs.std_error(effect, chunks, groups=rs.SurveyDesign())


def test_pairs_of_profiles_have_no_design():
    ice = rs.ice(FIT, X, features=["x"])
    pdp = rs.pdp(FIT, X, features=["x"])
    with pytest.raises(ValueError, match="groups must be a column for pairs of profiles"):
        rs.compare(pdp, pdp, paired=(ice, ice), groups=rs.SurveyDesign())
