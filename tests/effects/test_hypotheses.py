"""Tests of effects against hand computation, SciPy and the influences of rows."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import xarray as xr
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.optimize import brentq
from statsmodels.stats.oneway import anova_oneway

import rhale_stats as rs
from rhale_stats.arrays.intervals import unskewed
from rhale_stats.effects.anova_test import MAX_DF
from rhale_stats.effects.comparison import _have_one_model, _source
from rhale_stats.effects.fit import SKEWNESS, noise_in_the_middle
from rhale_stats.effects.hypotheses import (
    METHODS,
    TOO_FEW_GROUPS,
    BinSelection,
    _degrees_of_matrix,
    _grouped,
    _homogeneous,
)
from rhale_stats.inference.meaning import NO_ROWS
from rhale_stats.local.rows import columns
from rhale_stats.schema.feature_result import one_feature
from tests.bins.test_adaptive import Lines
from tests.helpers import changed, cr2, daily, local_of

EDGES = np.array([-1, -0.5, 0.1, 0.4, 1])
N = 300


LINEAR = np.array([True, False, True, False])
LINES = Lines(tuple(EDGES), tuple(LINEAR))
RULES = pytest.mark.parametrize("bins", [rs.GivenBins(EDGES), LINES], ids=["constant", "linear"])
CENTERINGS = pytest.mark.parametrize("centering", ["mean", "start", "integral"])


# Means over rows, whose errors are known by hand.
of_rows = partial(rs.rhale, weighting="rows")


def table(seed=0, n=N):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (n, 3))
    noise = rng.standard_gamma(2, (n, 3)) - 2
    return x, noise + np.column_stack([0.2 * np.ones(n), 0.5 * (x[:, 1] > 0.1), np.zeros(n)])


def effect_of(x, g, bins=None, **options):
    return of_rows(local_of(x, g), bins=bins or rs.GivenBins(EDGES), **options)


def in_bins(x, g):
    k = np.clip(np.searchsorted(EDGES, x, side="right") - 1, 0, 3)
    return [g[k == number] for number in range(4)]


# --- Wald ----------------------------------------------------------------------------------------


def test_no_effect_by_hand():
    x, g = table()
    found = rs.wald_test(effect_of(x, g), method="wald")
    for number in range(3):
        t = [stats.ttest_1samp(rows, 0).pvalue for rows in in_bins(x[:, number], g[:, number])]
        expected = np.sum(stats.norm.isf(np.array(t) / 2) ** 2)
        assert found["statistic"][number].item() == pytest.approx(expected, rel=1e-9)
        p = found["p_value"][number].item()
        assert p == pytest.approx(stats.chi2.sf(expected, 4), rel=1e-9)
    assert_array_equal(found["df"], 4)
    assert found.attrs["null"] == "all effects are 0"
    assert found.attrs["source"] == "rows"


def test_constant_effect_is_that_of_alexander_and_govern():
    x, g = table()
    found = rs.wald_test(effect_of(x, g), "constant", method="wald")
    for number in range(3):
        theirs = stats.alexandergovern(*in_bins(x[:, number], g[:, number]))
        # They take Hill's (1970) series in place of the exact quantile; 50 rows a bin at least.
        ours = found["statistic"][number].item()
        assert ours == pytest.approx(theirs.statistic, rel=1e-4)
        assert found["p_value"][number].item() == pytest.approx(theirs.pvalue, rel=1e-3)
    assert_array_equal(found["df"], 3)
    # A constant added to all effects is nothing.
    moved = rs.wald_test(effect_of(x, g + 100), "constant", method="wald")
    assert_allclose(moved["statistic"], found["statistic"], rtol=1e-8)


def test_linear_bins_have_a_slope_to_test():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (N, 2))
    g = np.column_stack([3 * x[:, 0], np.zeros(N)]) + rng.normal(size=(N, 2))
    effect = effect_of(x, g, rs.AdaptiveBins())
    found = [rs.wald_test(effect, null, method="wald") for null in ("zero", "constant")]
    row = one_feature(effect, 0)
    assert row.sizes["bin"] == 1
    assert row["slope"] != 0
    assert_array_equal([test["df"].values[0] for test in found], [2, 1])
    assert all(test["p_value"].values[0] < 1e-10 for test in found)
    # Slope 3, of which the mean effect, 0, says nothing.
    assert one_feature(effect, 1)["slope"] == 0
    assert_array_equal([test["df"].values[1] for test in found], [1, 0])
    # A single constant bin has nothing to be unequal to.
    assert np.isnan(found[1]["p_value"].values[1])
    assert found[1]["reason"].values.tolist() == [
        "",
        "a single bin: no degree of freedom is left",
    ]


@pytest.mark.thorough
def test_a_p_value_needs_a_degree_of_freedom():
    """One bin, whatever the standard errors are of."""
    x, g = table()
    effect = effect_of(x, g, rs.EqualWidthBins(1))
    grouped = rs.std_error(effect, local_of(x, g), groups=np.arange(N) // 10)
    for one in (effect, grouped):
        found = rs.wald_test(one, "constant")
        assert np.isnan(found["p_value"]).all()
        assert np.isnan(found["statistic"]).all()
        assert_array_equal(found["df"], 0)
        assert "a single bin" in rs.summary(found).as_text()
        assert_allclose(rs.wald_test(one)["df"], 1, rtol=1e-12)


def test_homogeneous_effects_are_no_question_of_chance():
    x, _ = table()
    g = np.column_stack([np.full(N, 3.0), np.full(N, 3.0), np.full(N, 0.0)])
    g[7, 1] += 1e-9
    found = rs.wald_test(effect_of(x, g), "homogeneous")
    assert_array_equal(found["p_value"], [1, np.nan, 1])
    bare = effect_of(x, g)
    assert_array_equal(rs.wald_test(bare, "homogeneous")["p_value"], [1, np.nan, 1])


@pytest.mark.thorough
@pytest.mark.parametrize(
    "additive",
    [
        lambda x: np.exp(x),
        lambda x: np.sin(9 * x),
        lambda x: np.abs(x - 0.2),
        lambda x: np.maximum(x, 0.3) ** 2,
    ],
)
def test_bin_error_is_no_heterogeneity(additive):
    """What the effect does along a bin says nothing of rows that differ: issue, homogeneous."""
    x, _ = table()
    x = x[:, :2]
    local = rs.local_effects(lambda X: additive(X[:, 0]) + X[:, 1], x)
    effect = rs.rhale(local, bins=rs.GivenBins(EDGES))
    assert float(effect["heterogeneity"][0].max()) > 0.01
    alone = rs.wald_test(effect, "homogeneous")
    assert_array_equal(alone["p_value"], [np.nan, 1])
    assert "local=local" in str(alone["reason"].values[0])
    assert "local=local" in rs.summary(alone).as_text()
    found = rs.wald_test(effect, "homogeneous", local=local)
    assert float(found["p_value"][0]) > 0.4
    # Beside it, rows that do differ, by less than the effect moves in a bin.
    mixed = rs.local_effects(lambda X: additive(X[:, 0]) + 2 * X[:, 0] * X[:, 1], x)
    found = rs.wald_test(rs.rhale(mixed, bins=rs.GivenBins(EDGES)), "homogeneous", local=mixed)
    assert (found["p_value"].values < 1e-4).all()


@pytest.mark.thorough
def test_homogeneity_within_bins_has_its_size():
    """Where rows do not differ, as they cannot be told apart from a jump, it does not reject."""
    rng = np.random.default_rng(0)
    pvalues = []
    for _ in range(60):
        x = rng.uniform(-1, 1, (60, 1))
        jump, wave = rng.uniform(-1, 1), rng.uniform(0, 5)
        g = 3 * (x > jump) + np.cos(wave * x)
        effect = effect_of(x, g, rs.EqualWidthBins(2))
        pvalues.append(
            float(rs.wald_test(effect, "homogeneous", local=local_of(x, g))["p_value"][0])
        )
    assert np.mean(np.array(pvalues) < 0.05) <= 0.05


def test_homogeneity_asks_for_the_rows_of_the_effect():
    x, g = table()
    effect, local = effect_of(x, g), local_of(x, g)
    with pytest.raises(ValueError, match="local must be None, except with null 'homogeneous'"):
        rs.wald_test(effect, "zero", local=local)
    with pytest.raises(ValueError, match="rows"):
        rs.wald_test(effect, "homogeneous", local=local.isel(obs=slice(100)))
    # Slopes across the cells that are the bins, and steps between levels, need no rows.
    cells = rs.ale(lambda X: np.exp(X[:, 0]) + X[:, 1] ** 2, x[:, :2])
    assert_array_equal(rs.wald_test(cells, "homogeneous")["p_value"], [1, 1])
    cells = rs.ale(lambda X: np.exp(X[:, 0]) * X[:, 1] ** 2, x[:, :2])
    assert_array_equal(rs.wald_test(cells, "homogeneous")["p_value"], [0, 0])


def test_cells_of_derivatives_may_be_the_bins_as_well():
    """An effect changes along them, which is no heterogeneity."""
    x = np.linspace(-1, 1, 15)
    x = np.column_stack([x, np.random.default_rng(0).permutation(x)])
    local = rs.local_effects(lambda X: np.exp(X[:, 0]) + X[:, 1], x)
    effect = rs.rhale(local, bins=rs.EqualWidthBins(4))
    row = one_feature(effect, 0)
    assert_array_equal(row.edges, row.bin_edges)
    alone = rs.wald_test(effect, "homogeneous")
    assert_array_equal(alone["p_value"], [np.nan, 1])
    assert "local=local" in str(alone["reason"].values[0])
    assert float(rs.wald_test(effect, "homogeneous", local=local)["p_value"][0]) > 0.4
    # Slopes across the same cells have no spread but that of the rows.
    slopes = rs.local_effects(
        lambda X: np.exp(X[:, 0]) + X[:, 1],
        x,
        method="finite_difference",
        bins=rs.EqualWidthBins(4),
    )
    effect = rs.rhale(slopes, bins=rs.EqualWidthBins(4))
    assert_array_equal(rs.wald_test(effect, "homogeneous")["p_value"], [1, 1])


def test_effects_that_are_known_exactly():
    x, _ = table()
    effect = effect_of(x, np.tile([3.0, 0.0, 3.0], (N, 1)))
    grouped = rs.std_error(
        effect, local_of(x, np.tile([3.0, 0.0, 3.0], (N, 1))), groups=np.arange(N) // 10
    )
    for one in (effect, grouped):
        for null in ("zero", "constant"):
            found = rs.wald_test(one, null)
            assert np.isnan(found["p_value"]).all()
            assert np.isnan(found["statistic"]).all()
            assert [text.split(",")[0] for text in found["reason"].values] == [
                "the local effects differ by their numerical error only",
                "0 up to the numerical error of the local effects",
                "the local effects differ by their numerical error only",
            ]


@pytest.mark.thorough
def test_the_rounding_of_a_model_is_not_tested():
    """users.md 2: a linear model had t = 5.9e10."""
    x, _ = table()
    for scale in (1e-3, 1.0, 1e5):
        model = lambda X, scale=scale: scale * (1.17 * X[:, 0] + 3) + 0 * X[:, 1]  # noqa: E731
        effect = rs.rhale(rs.local_effects(model, x[:, :2]), bins=rs.EqualWidthBins(3))
        for null in ("zero", "constant"):
            assert np.isnan(rs.wald_test(effect, null)["p_value"]).all()
        table_ = rs.tidy(effect)
        assert (table_["std_error"] == 0).all()
        assert (table_.loc[table_["term"] == "x1", "estimate"] == 0).all()
        assert (table_["reason"] != "").all()


@pytest.mark.thorough
def test_groups_by_hand():
    x, g = table()
    group = np.random.default_rng(1).integers(30, size=N)
    effect = rs.std_error(effect_of(x, g), local_of(x, g), groups=group)
    for null, contrast in (("zero", np.eye(4)), ("constant", np.diff(np.eye(4), axis=0))):
        found = rs.wald_test(effect, null, method="wald")
        for number in range(3):
            row = one_feature(effect, number)
            mean = contrast @ row["effect"].values
            covariance = contrast @ row["effect_cov"].values @ contrast.T
            wald = mean @ np.linalg.solve(covariance, mean)
            df = len(mean)
            assert found["statistic"][number].item() == pytest.approx(wald, rel=1e-9)
            # Of the Wishart matrix whose entries have variances of the same sum.
            parts = np.abs(contrast) / np.abs(contrast).sum(axis=1, keepdims=True)
            overlap = parts @ row["effect_overlap"].values @ parts.T
            degrees = df * (df + 1) / (overlap.sum() + np.trace(overlap))
            assert 20 < degrees < 29
            left = degrees - df + 1
            p = stats.f.sf(wald * left / (degrees * df), df, left)
            assert found["p_value"][number].item() == pytest.approx(p, rel=1e-9)
        assert found.attrs["source"] == "rows in 30 groups"
    few = rs.std_error(effect_of(x, g), local_of(x, g), groups=np.arange(N) % 3)
    assert np.isnan(rs.wald_test(few, method="wald")["p_value"]).all()


def grouped_lines(seed=0):
    """Local effects on lines, with what rows of a group share; x, g, groups."""
    rng = np.random.default_rng(seed)
    x, group = rng.uniform(-1, 1, N), rng.integers(40, size=N)
    g = x + rng.standard_gamma(2, N) * (1 + x**2) + rng.normal(size=40)[group]
    return x, g, group


def design(x, linear=LINEAR, edges=EDGES):
    """Indicators of bins, and in linear ones the distance from the middle."""
    k = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, len(edges) - 2)
    inside = (k[:, None] == np.arange(len(edges) - 1)).astype(float)
    away = inside * (x[:, None] - (edges[:-1] + edges[1:]) / 2)
    return np.column_stack([inside, away[:, linear]])


@pytest.mark.parametrize("scale", [1.0, 1e9])
def test_groups_with_linear_bins_by_the_definition_of_cr2(scale):
    """Wald's statistic of the regression on pieces; whatever the feature is measured in."""
    x, g, group = grouped_lines()
    bins = Lines(tuple(scale * EDGES), tuple(LINEAR))
    local = local_of(scale * x[:, None], g[:, None] / scale)
    effect = rs.std_error(of_rows(local, bins=bins), local, groups=group)
    influences = cr2(design(x), g, group)
    params, covariance = sm.OLS(g, design(x)).fit().params, influences.T @ influences
    slopes = np.eye(6)[4:]
    equal = np.column_stack([np.diff(np.eye(4), axis=0), np.zeros((3, 2))])
    for null, contrast in (("zero", np.eye(6)), ("constant", np.vstack([equal, slopes]))):
        found = rs.wald_test(effect, null, method="wald")
        value = contrast @ params
        wald = value @ np.linalg.solve(contrast @ covariance @ contrast.T, value)
        q = len(contrast)
        assert found["statistic"].item() == pytest.approx(wald, rel=1e-8)
        assert found["df"] == q
        # Fewer degrees of freedom than 40 groups of equal size would have.
        left = found["df_denominator"].item()
        assert 20 < left + q - 1 < 39
        p = stats.f.sf(wald * left / ((left + q - 1) * q), q, left)
        assert found["p_value"].item() == pytest.approx(p, rel=1e-6)
    # The ends of the linear bins, and the middle of all.
    half = np.diff(EDGES)[LINEAR] / 2
    ends = [np.eye(6)[:4]]
    for sign in (-1, 1):
        ends.append(np.column_stack([np.eye(4)[LINEAR], sign * np.diag(half)]))
    at = np.vstack(ends)
    delta, sd = 4.5, np.sqrt(np.diagonal(at @ covariance @ at.T))
    distance = (delta - np.abs(at @ params)) / sd
    found = rs.equivalence_test(effect.drop_vars(SKEWNESS, errors="ignore"), delta / scale)
    bins = np.concatenate([np.arange(4), *2 * [np.flatnonzero(LINEAR)]])
    degrees = effect["effect_df"].values[0, bins]
    pvalue = stats.t.sf(distance, degrees)
    worst = np.argmax(pvalue)
    assert found["statistic"].item() == pytest.approx(distance[worst], rel=1e-8)
    assert found["p_value"].item() == pytest.approx(pvalue[worst], rel=1e-6)
    assert found["df"] == pytest.approx(degrees[worst])


@pytest.mark.thorough
@RULES
def test_groups_of_one_row_are_tested_as_rows_are(bins):
    x, g, _ = grouped_lines()
    local = local_of(x[:, None], g[:, None])
    alone = rs.std_error(of_rows(local, bins=bins))
    each = rs.std_error(alone, local, groups=np.arange(N)).drop_vars(SKEWNESS, errors="ignore")
    alone = alone.drop_vars(SKEWNESS, errors="ignore")
    n, linear = one_feature(alone, 0)["n_obs"].values, LINEAR & (bins is LINES)
    # Variances differ by N / (N - p) against n_k / (n_k - 1): and n_k is 40 or more.
    factor = N / (N - 4 - linear.sum()) * (n - 1 - linear) / n
    largest = np.abs(np.sqrt(factor) - 1).max()
    assert largest < 0.02
    y, h, _ = grouped_lines(1)
    other = of_rows(local_of(y[:, None], h[:, None]), bins=bins)
    for test in (lambda e: rs.equivalence_test(e, 4.5), lambda e: rs.compare(e, other, rng=0)):
        ours = [test(one)["statistic"].item() for one in (alone, each)]
        assert ours[1] == pytest.approx(ours[0], rel=1.1 * largest)


def test_adjustment_over_features():
    x, g = table()
    effect = effect_of(x, g)
    p = np.sort(rs.wald_test(effect)["p_value"])
    holm = np.minimum(np.maximum.accumulate(p * [3, 2, 1]), 1)
    assert_allclose(np.sort(rs.wald_test(effect)["p_value_adjusted"]), holm, rtol=1e-12)
    found = rs.wald_test(effect, adjust="bonferroni")
    assert_allclose(found["p_value_adjusted"], np.minimum(3 * found["p_value"], 1), rtol=1e-12)
    found = rs.wald_test(effect, adjust="none")
    assert_array_equal(found["p_value_adjusted"], found["p_value"])
    assert found.attrs["adjust"] == "none"


def test_features_that_cannot_be_tested():
    """A constant one; one with a row in every bin."""
    x = np.column_stack([np.ones(4), [0.0, 1, 2, 3]])
    g = np.random.default_rng(0).normal(size=(4, 2))
    edges = {"x0": [0, 1], "x1": [0, 0.5, 1.5, 2.5, 3]}
    effect = effect_of(x, g, rs.GivenBins(edges))
    for null in ("zero", "constant"):
        found = rs.wald_test(effect, null)
        assert np.isnan(found["p_value"]).all()
    assert np.isnan(rs.wald_test(effect, "homogeneous")["p_value"][0])
    found = rs.equivalence_test(effect, 1.0)
    assert np.isnan(found["p_value"]).all()
    other = effect_of(x, 2 * g, rs.GivenBins(edges))
    assert np.isnan(rs.compare(effect, other, n_draws=500, rng=0)["p_value"]).all()


def test_box_by_hand():
    """Two bins: variances 1 and 4 of 3 and 5 rows, means 2 and 1."""
    x = np.array([-0.9, -0.8, -0.7, 0.5, 0.6, 0.7, 0.8, 0.9])[:, None]
    g = np.array([1, 2, 3, -1, -1, 1, 3, 3.0])[:, None]
    effect = effect_of(x, g, rs.GivenBins([-1, 0, 1]))
    found = rs.tidy(rs.wald_test(effect)).iloc[0]
    # Sums of squares 3 * 4 + 5 * 1, over 1 + 4; squares of variances 1 + 16, over 2 and 4.
    assert found["statistic"] == pytest.approx(17 / 5, rel=1e-12)
    assert found["df"] == pytest.approx(25 / 17, rel=1e-12)
    assert found["df_denominator"] == pytest.approx(25 / (1 / 2 + 16 / 4), rel=1e-12)
    assert found["p_value"] == pytest.approx(stats.f.sf(17 / 5, 25 / 17, 50 / 9), rel=1e-12)
    test = rs.wald_test(effect, "constant")
    assert test.attrs["test"] == "wald_test, null 'constant', method 'box'"
    # Of two bins it is Welch's t: (n1 n2 / N) (m1 - m2)^2 over (n2 s1^2 + n1 s2^2) / N.
    welch = stats.ttest_ind(g[:3, 0], g[3:, 0], equal_var=False)
    assert test["statistic"].item() == pytest.approx(welch.statistic**2, rel=1e-12)
    assert test["df"].item() == pytest.approx(1, rel=1e-12)
    assert test["df_denominator"].item() == pytest.approx(welch.df, rel=1e-12)
    assert test["p_value"].item() == pytest.approx(welch.pvalue, rel=1e-12)
    assert "df, denominator" in rs.summary(test).as_text()


def test_box_is_the_analysis_of_variance_where_variances_are_equal():
    x = np.repeat([-0.7, 0.0, 0.3, 0.7], 10) + np.tile(np.linspace(0, 0.01, 10), 4)
    noise = np.random.default_rng(0).normal(size=10)
    g = np.tile(noise, 4) + np.repeat([0.0, 0.4, 1.0, 0.7], 10)
    effect = effect_of(x[:, None], g[:, None])
    found = rs.wald_test(effect, "constant")
    theirs = stats.f_oneway(*g.reshape(4, 10))
    assert found["statistic"].item() == pytest.approx(theirs.statistic, rel=1e-10)
    assert found["p_value"].item() == pytest.approx(theirs.pvalue, rel=1e-8)
    assert_allclose([found["df"].item(), found["df_denominator"].item()], [3, 36], rtol=1e-10)


def test_box_is_that_of_brown_and_forsythe():
    """Unequal rows and variances: statsmodels has their statistic and both degrees of freedom."""
    x, g = table()
    found = rs.wald_test(effect_of(x, g * (1.2 + x)), "constant")
    for number in range(3):
        rows = in_bins(x[:, number], (g * (1.2 + x))[:, number])
        theirs = anova_oneway(rows, use_var="bf", welch_correction=False)
        assert found["statistic"][number].item() == pytest.approx(theirs.statistic, rel=1e-9)
        assert found["df"][number].item() == pytest.approx(theirs.df_num, rel=1e-9)
        assert found["df_denominator"][number].item() == pytest.approx(theirs.df_denom, rel=1e-9)
        assert found["p_value"][number].item() == pytest.approx(theirs.pvalue, rel=1e-8)


@pytest.mark.thorough
@pytest.mark.parametrize("weighting", ["rows", "axis"])
def test_box_takes_no_notice_of_scales_and_of_what_is_added(weighting):
    x, g, group = grouped_lines()
    for bins in (rs.GivenBins(EDGES), LINES):
        for null in ("zero", "constant"):
            pairs = []
            for scale, more in ((1.0, 0.0), (1e6, 3.0 * (null == "constant"))):
                local = local_of(x[:, None], scale * (g[:, None] + more))
                effect = rs.rhale(local, bins=bins, weighting=weighting)
                by_groups = rs.std_error(effect, local, groups=group)
                pairs.append([rs.tidy(rs.wald_test(one, null)) for one in (effect, by_groups)])
            for ours, scaled in zip(*pairs, strict=True):
                names = ["statistic", "df", "df_denominator", "p_value"]
                assert_allclose(ours[names], scaled[names], rtol=1e-6)


def test_box_of_lines_is_the_sum_of_squares_of_their_regression():
    x, g, group = grouped_lines()
    local = local_of(x[:, None], g[:, None])
    effect = of_rows(local, bins=LINES)
    fit = sm.OLS(g, design(x)).fit()
    # The denominators of the two nulls, by White's variances of two lines and those of two means.
    for null, explained in (("zero", fit.uncentered_tss - fit.ssr), ("constant", fit.ess)):
        for one in (effect, rs.std_error(effect, local, groups=group)):
            found = rs.wald_test(one, null)
            trace = explained / found["statistic"].item()
            if one is effect:
                own = trace
        white = fit.get_robustcov_results("HC1").cov_params()
        inverse = design(x).T @ design(x)
        if null == "constant":
            ones = np.r_[np.ones(4), 0, 0]
            loading = inverse @ ones
            inverse = inverse - np.outer(loading, loading) / (ones @ loading)
        # HC1 has N / (N - 6) in all bins, ours n / (n - 1) or n / (n - 2) in each.
        assert own == pytest.approx(np.trace(inverse @ white), rel=0.03)
        clustered = cr2(design(x), g, group)
        assert trace == pytest.approx(np.trace(inverse @ clustered.T @ clustered), rel=1e-6)


def test_method_is_of_effects_and_of_two_nulls():
    x, g = table()
    with pytest.raises(ValueError, match="method must be left out with null 'homogeneous'"):
        rs.wald_test(effect_of(x, g), "homogeneous", method="wald")
    with pytest.raises(ValueError, match="method must be"):
        rs.wald_test(effect_of(x, g), method="f")


NOISE = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "log-normal": lambda rng, shape: rng.lognormal(size=shape) - np.exp(0.5),
    "two-point": lambda rng, shape: (rng.uniform(size=shape) < 0.1) - 0.1,
    "t3": lambda rng, shape: rng.standard_t(3, shape),
}


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["normal", "log-normal", "two-point"])
def test_size_of_box(noise):
    """Ten bins of 30 rows, spread 0.3 + 0.7 |x|: never above 5 %, also where effects are skewed."""
    rng = np.random.default_rng(5)
    x = rng.uniform(-1, 1, (300, 120))
    g = (0.3 + 0.7 * np.abs(x)) * NOISE[noise](rng, x.shape)
    effect = of_rows(local_of(x, g), bins=rs.EqualWidthBins(10))
    for null in ("zero", "constant"):
        tests = {method: rs.wald_test(effect, null, method=method) for method in METHODS}
        share = {method: (test["p_value"] < 0.05).mean() for method, test in tests.items()}
        # 0.05 and 3 Monte-Carlo errors of 2 %.
        assert share["box"] < 0.11
        if noise in ("log-normal", "two-point"):
            assert share["wald"] > 0.08


@pytest.mark.slow
def test_power_of_box():
    """As powerful as normal scores where variances are equal."""
    rng = np.random.default_rng(6)
    x = rng.uniform(-1, 1, (300, 200))
    effect = of_rows(local_of(x, rng.normal(size=x.shape) + 0.25), bins=rs.EqualWidthBins(10))
    anova_test, wald = ((rs.wald_test(effect, method=m)["p_value"] < 0.05).mean() for m in METHODS)
    assert wald > 0.6
    assert anova_test > 0.8 * wald


# --- equivalence ---------------------------------------------------------------------------------


def test_equivalence_is_two_t_tests_a_bin():
    x, g = table()
    delta = 0.6
    found = rs.equivalence_test(effect_of(x, g), delta)
    for number in range(3):
        tests = [
            max(
                stats.ttest_1samp(rows, delta, alternative="less").pvalue,
                stats.ttest_1samp(rows, -delta, alternative="greater").pvalue,
            )
            for rows in in_bins(x[:, number], g[:, number])
        ]
        decides = int(np.argmax(tests))
        assert found["p_value"][number].item() == pytest.approx(tests[decides], rel=1e-9)
        rows = in_bins(x[:, number], g[:, number])[decides]
        assert found["df"][number] == len(rows) - 1
        distance = (delta - abs(rows.mean())) / stats.sem(rows)
        assert found["statistic"][number].item() == pytest.approx(distance, rel=1e-9)
    assert "0.6" in found.attrs["null"]


def test_equivalence_in_a_linear_bin_is_at_both_ends():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (N, 1))
    effect = effect_of(x, 3 * x + rng.normal(size=(N, 1)), rs.AdaptiveBins())
    assert effect["n_bins"] == 1
    # In the middle the effect is 0, and surely less than 2.
    assert rs.equivalence_test(effect, 2.0)["p_value"][0] > 0.99
    assert rs.equivalence_test(effect, 4.0)["p_value"][0] < 0.01


def test_equivalence_of_groups_has_their_degrees_of_freedom():
    x, g = table()
    effect = rs.std_error(effect_of(x, g), local_of(x, g), groups=np.arange(N) // 10)
    found = rs.equivalence_test(effect.drop_vars(SKEWNESS, errors="ignore"), 0.6)
    distance = (0.6 - abs(effect["effect"])) / effect["effect_se"]
    pvalue = stats.t.sf(distance, effect["effect_df"])
    assert (effect["effect_df"] < 29).all()
    assert_allclose(found["p_value"], pvalue.max(axis=1), rtol=1e-9)
    worst = np.argmax(pvalue, axis=1)
    assert_allclose(found["df"], effect["effect_df"].values[np.arange(3), worst], rtol=1e-9)


# --- two curves ----------------------------------------------------------------------------------


@pytest.mark.thorough
def test_errors_of_independent_curves_add():
    # The zero of both is the mean along the same axis.
    a, b = (rs.std_error(effect_of(*table(seed), centering="integral")) for seed in (0, 1))
    found = rs.compare(a, b, rng=0)
    for number in range(3):
        rows = one_feature(a, number), one_feature(b, number)
        assert_allclose(found["grid_value"][number], EDGES, rtol=1e-12)
        difference = rows[0]["curve"].values - rows[1]["curve"].values
        se = np.sqrt(rows[0]["curve_se"].values ** 2 + rows[1]["curve_se"].values ** 2)
        assert_allclose(found["difference"][number], difference, atol=1e-12)
        assert_allclose(found["difference_se"][number], se, rtol=1e-9)
        statistic = np.max(np.abs(difference) / se)
        assert found["statistic"][number].item() == pytest.approx(statistic, rel=1e-9)
        # No more than the smallest p-value of an edge, times the number of edges.
        p = 2 * stats.norm.sf(statistic)
        assert p * 0.9 < found["p_value"][number] < 5 * p + 0.01
    band, interval = (np.diff(found[f"difference_{name}"])[..., 0] for name in ("band", "ci"))
    assert (band > interval).all()
    assert_allclose(found["difference_ci"].mean("ci_bound"), found["difference"], atol=1e-12)
    assert found["difference_band"].attrs["kind"] == "simultaneous over the axis"
    xr.testing.assert_identical(found, rs.compare(a, b, rng=0))
    other = rs.compare(b, a, rng=0)
    assert_allclose(other["difference"], -found["difference"], atol=1e-12)


@pytest.mark.parametrize("centering", ["mean", "start", "integral"])
def test_curves_of_equal_effects_at_other_places_have_a_common_zero(centering):
    """mu(z) = 2z on (0, 1) and on (0.5, 1.5): the same curve but for its zero."""
    effects = [
        rs.rhale(local_of(x[:, None], 2 * x[:, None]), centering=centering)
        for x in (np.linspace(0, 1, 300), np.linspace(0.5, 1.5, 200))
    ]
    found = rs.compare(*effects, rng=0)
    z = found["grid_value"].values[0]
    assert (z[0], z[-1]) == (0.5, 1)
    assert_allclose(found["difference"], 0, atol=2e-3)
    # Their own zeros differ: 1/3 and 13/12; 0 and 1/4, as z^2 begins there; the first two again.
    own = [rs.predict(one, z, "x0").values for one in effects]
    constant = {"mean": 0.75, "start": 0.25, "integral": 0.75}[centering]
    assert_allclose(own[0] - own[1], constant, atol=5e-3)


def test_the_common_zero_is_the_mean_over_the_rows_of_both():
    """Means of bins by hand, each row at the mean of its bin."""
    rng = np.random.default_rng(0)
    x, y = rng.uniform(0, 1, (400, 1)), rng.beta(3, 1, (250, 1)) + 0.2
    edges = [np.linspace(x.min(), x.max(), 4), np.linspace(y.min(), y.max(), 3)]
    effects = [
        rs.std_error(
            rs.rhale(
                local_of(z, 3 * z + rng.normal(size=z.shape)),
                bins=rs.GivenBins(own),
                weighting="rows",
            )
        )
        for z, own in zip((x, y), edges, strict=True)
    ]
    found = rs.compare(*effects, rng=0)
    z, low, high = found["grid_value"].values[0], y.min(), x.max()
    inner = np.concatenate([one[1:-1] for one in edges])
    assert_allclose(z, np.unique([low, *inner[(inner > low) & (inner < high)], high]), atol=1e-12)
    rows = [one_feature(one, 0) for one in effects]
    places = np.concatenate([row.x_mean for row in rows])
    n_rows = np.concatenate([row["n_obs"].values for row in rows])
    there = (places >= low) & (places <= high)
    places, n_rows = places[there], n_rows[there]

    def about(mean, own):
        curve = np.concatenate([[0.0], np.cumsum(mean * np.diff(own))])
        return np.interp(z, own, curve) - np.average(np.interp(places, own, curve), weights=n_rows)

    own = [about(row["effect"].values, one) for row, one in zip(rows, edges, strict=True)]
    assert_allclose(found["difference"].values[0], own[0] - own[1], atol=1e-12)
    # Linear in independent effects.
    variance = np.sum(
        [
            about(unit * row["effect_se"].values, one) ** 2
            for row, one in zip(rows, edges, strict=True)
            for unit in np.eye(row.sizes["bin"])
        ],
        axis=0,
    )
    assert_allclose(found["difference_se"].values[0] ** 2, variance, rtol=1e-9)


@pytest.mark.thorough
def test_effects_of_the_same_rows_are_compared_as_they_are():
    x, g = table()
    a = effect_of(x, g)
    for b in (effect_of(x, g + x), effect_of(x, g + x, rs.EqualWidthBins(3))):
        found = rs.compare(a, b, rng=0)
        for number in range(3):
            z = found["grid_value"].values[number]
            own = [rs.predict(one, z, number).values for one in (a, b)]
            assert_allclose(found["difference"][number], own[0] - own[1], atol=1e-12)


def test_curves_of_other_bins_and_ranges_are_compared_where_both_are():
    x, g = table()
    a = effect_of(x, g)
    inside = (x > -0.6).all(axis=1)
    b = effect_of(x[inside], g[inside], rs.EqualWidthBins(3))
    found = rs.compare(a, b, rng=0)
    for number in range(3):
        z = found["grid_value"].values[number]
        z = z[np.isfinite(z)]
        edges = one_feature(b, number).bin_edges
        expected = np.unique(np.concatenate([EDGES, edges]))
        expected = expected[(expected >= edges[0]) & (expected <= min(edges[-1], 1))]
        assert_array_equal(z, expected)
        curves = [rs.predict(one, z, number).values for one in (a, b)]
        difference = found["difference"].values[number, : len(z)]
        # Up to the constant that is the common zero.
        constant = difference - (curves[0] - curves[1])
        assert_allclose(constant, constant[0], atol=1e-12)
        assert np.isfinite(found["difference_se"].values[number, : len(z)]).all()


@pytest.mark.thorough
@CENTERINGS
def test_the_same_model_twice_does_not_differ(centering):
    x, g = table()
    effect, local = effect_of(x, g, centering=centering), local_of(x, g)
    found = rs.compare(effect, effect, paired=(local, local), n_draws=500, rng=0)
    for name in ("difference", "difference_se", "difference_ci", "difference_band", "statistic"):
        assert_array_equal(found[name], 0)
    assert_array_equal(found["p_value"], 1)
    assert found.attrs["source"] == "pairs of rows"


def jackknifed(centering, x, g, h, bins):
    """Standard error of the difference of two curves, from leaving out each row in turn."""
    n = len(x)
    kept = np.array([np.delete(np.arange(n), row) for row in range(n)]).T
    a, b = (
        of_rows(local_of(x[kept, 0], one[kept, 0]), bins=rule, centering=centering)
        for one, rule in ((g, bins[0]), (h, bins[1]))
    )
    z = np.unique(np.concatenate([a["edge_value"].values[0], b["edge_value"].values[0]]))
    curves = np.array(
        [rs.predict(a, z, row).values - rs.predict(b, z, row).values for row in range(n)]
    )
    return np.sqrt(np.sum((curves - curves.mean(axis=0)) ** 2, axis=0) * (n - 1) / n)


@pytest.mark.thorough
@pytest.mark.parametrize("centering", daily(["mean", "start", "integral"]))
def test_error_of_a_paired_difference_is_that_of_leaving_out_rows(centering):
    rng = np.random.default_rng(2)
    n = 120
    x = np.concatenate([[-1, 1], rng.uniform(-1, 1, n - 2)])[:, None]
    shared = rng.normal(size=(n, 1))
    g, h = x + 3 * shared, 0.5 - x + 3 * shared + 0.3 * rng.normal(size=(n, 1))
    bins = rs.GivenBins([-1, 0, 1]), rs.GivenBins([-1, 0.2, 1])
    locals_ = local_of(x, g), local_of(x, h)
    effects = [
        of_rows(local, bins=rule, centering=centering)
        for local, rule in zip(locals_, bins, strict=True)
    ]
    found = rs.compare(*effects, paired=locals_, n_draws=500, rng=0)
    expected = jackknifed(centering, x, g, h, bins)
    # They differ by leverages, 1 / n_k on average with 50 rows a bin.
    assert_allclose(found["difference_se"][0], expected, rtol=0.05, atol=1e-9)
    alone = rs.compare(*effects, n_draws=500, rng=0)["difference_se"].values[0]
    assert (found["difference_se"].values[0][-1] < 0.8 * alone[-1]).all()


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:Bins without rows")
def test_pairs_beside_a_gap():
    """As if the rows beyond it were not there."""
    rng = np.random.default_rng(2)
    x = np.concatenate([rng.uniform(0, 1, 20), rng.uniform(2, 4, 80)])[:, None]
    g, h = rng.normal(size=(2, 100, 1))
    whole = [effect_of(x, one, rs.GivenBins([0, 1, 2, 3, 4])) for one in (g, h)]
    part = [effect_of(x[20:], one[20:], rs.GivenBins([2, 3, 4])) for one in (g, h)]
    found = rs.compare(*whole, paired=(local_of(x, g), local_of(x, h)), n_draws=500, rng=0)
    expected = rs.compare(
        *part, paired=(local_of(x[20:], g[20:]), local_of(x[20:], h[20:])), n_draws=500, rng=0
    )
    assert_array_equal(found["grid_value"][0], [2, 3, 4])
    assert_allclose(found["difference"], expected["difference"], atol=1e-12)
    assert_allclose(found["difference_se"], expected["difference_se"], rtol=1e-9)


@pytest.mark.thorough
def test_groups_in_a_comparison():
    x, g = table()
    y, h = table(1)
    group = np.arange(N) // 30
    along = {"centering": "integral"}  # the same zero for both
    a = rs.std_error(effect_of(x, g, **along), local_of(x, g), groups=group)
    b = effect_of(y, h, **along)
    found = rs.compare(a, b, rng=0)
    se = np.sqrt(a["curve_se"] ** 2 + rs.std_error(b)["curve_se"] ** 2)
    assert_allclose(found["difference_se"], se, rtol=1e-9)
    # Welch and Satterthwaite at every point: more than those of the ten groups alone.
    ratio = np.diff(found["difference_ci"])[..., 0] / 2 / found["difference_se"]
    for number in range(3):
        row = one_feature(rs.std_error(b), number)
        own = row.fit.curve_degrees(row["edge_value"].values)
        squares = a["curve_se"].values[number] ** 2, row["curve_se"].values ** 2
        groups = a["curve_df"].values[number]
        degrees = sum(squares) ** 2 / (squares[0] ** 2 / groups + squares[1] ** 2 / own)
        assert (groups <= 9 + 1e-9).all()
        assert (degrees > groups).all()
        assert_allclose(ratio[number], stats.t.ppf(0.975, degrees), rtol=1e-9)
    groups = "rows in 10 groups (worth 10.0 of one size)"
    assert found.attrs["source"] == f"{groups} against rows, independent"


def test_curves_without_a_sampling_error_are_not_compared_by_it():
    """users.md 2: the rounding of two straight lines is no standard error."""
    x, _ = table()
    lines = [
        rs.rhale(
            rs.local_effects(lambda X, k=k: k * X[:, 0] + 5, x[:, :1]),
            bins=rs.EqualWidthBins(3),
            centering="start",
        )
        for k in (1.17, 1.18)
    ]
    found = rs.compare(*lines)
    assert np.isnan(found["p_value"]).all()
    assert np.isnan(found["statistic"]).all()
    assert "no sampling error" in str(found["reason"].values[0])
    assert "no sampling error" in rs.summary(found).as_text()
    assert float(np.abs(found["difference"]).max()) > 0.01
    # Of one line with itself there is no difference, beyond doubt.
    same = rs.compare(lines[0], lines[0])
    assert (float(same["statistic"][0]), str(same["reason"].values[0])) == (0.0, "")


def pairs_of(seed=0, **options):
    """Two sets of local effects of the same rows, which go together; x, groups, both."""
    x, g, group = grouped_lines(seed)
    h = g / 2 - x**2 + np.random.default_rng(seed + 100).normal(size=N)
    return x, group, [local_of(x[:, None], one[:, None], **options) for one in (g, h)]


def steps(z, linear=LINEAR, edges=EDGES):
    """What the zero-start curve at points adds up: effects of bins, then slopes of linear ones."""
    left, middle = edges[:-1], (edges[:-1] + edges[1:]) / 2
    behind = np.clip(z[:, None] - left, 0, np.diff(edges))
    bent = ((left + behind - middle) ** 2 - (left - middle) ** 2) / 2
    return np.column_stack([behind, bent[:, linear]])


@pytest.mark.thorough
@RULES
def test_groups_of_pairs_by_the_definition_of_cr2(bins):
    """Of the regression of differences of local effects on pieces."""
    x, group, locals_ = pairs_of()
    effects = [of_rows(local, bins=bins, centering="start") for local in locals_]
    found = rs.compare(*effects, paired=locals_, groups=group, n_draws=500, rng=0).isel(feature=0)
    linear = LINEAR & (bins is LINES)
    g, h = (local["local_effect"].values[:, 0] for local in locals_)
    at = steps(found["grid_value"].values[1:], linear)
    fit = sm.OLS(g - h, design(x, linear)).fit()
    assert_allclose(found["difference"][1:], at @ fit.params, rtol=1e-9)
    moved = cr2(design(x, linear), g - h, group) @ at.T
    assert_allclose(found["difference_se"][1:], np.sqrt(np.sum(moved**2, axis=0)), rtol=1e-9)
    assert found["difference_se"][0] == 0
    ratio = np.diff(found["difference_ci"])[1:, 0] / 2 / found["difference_se"][1:]
    # One estimate of scale for all points, by fewer degrees than of groups of equal size.
    assert_allclose(ratio, ratio[0], rtol=1e-9)
    assert stats.t.ppf(0.975, 39) < ratio[0] < stats.t.ppf(0.975, 15)
    assert found.attrs["source"] == "pairs of rows in 40 groups"


@pytest.mark.thorough
def test_groups_of_pairs_in_other_bins_by_the_definition_of_cr2():
    """Both regressions at once."""
    x, group, locals_ = pairs_of()
    edges = EDGES, np.array([-1, -0.2, 0.3, 1])
    linear = LINEAR, np.array([False, False, True])
    effects = [
        of_rows(local, bins=Lines(tuple(e), tuple(which)), centering="start")
        for local, e, which in zip(locals_, edges, linear, strict=True)
    ]
    found = rs.compare(*effects, paired=locals_, groups=group, n_draws=500, rng=0).isel(feature=0)
    z = found["grid_value"].values[1:]
    moved = 0.0
    for sign, e, which, local in zip((1, -1), edges, linear, locals_, strict=True):
        influences = cr2(design(x, which, e), local["local_effect"].values[:, 0], group)
        moved = moved + sign * influences @ steps(z, which, e).T
    assert_allclose(found["difference_se"][1:], np.sqrt(np.sum(moved**2, axis=0)), rtol=1e-9)


@pytest.mark.thorough
def test_groups_of_weighted_pairs_are_those_of_the_weighted_differences():
    """With the same bins, weights and groups the difference is one effect, of g - h."""
    weights = np.random.default_rng(5).uniform(0.2, 2, N)
    weights[:7] = 0
    x, group, locals_ = pairs_of(weights=weights)
    options = {"bins": rs.GivenBins(EDGES), "centering": "start"}
    effects = [of_rows(local, **options) for local in locals_]
    found = rs.compare(*effects, paired=locals_, groups=group, n_draws=500, rng=0).isel(feature=0)
    g, h = (local["local_effect"].values for local in locals_)
    apart = local_of(x[:, None], g - h, weights=weights)
    expected = one_feature(rs.std_error(of_rows(apart, **options), apart, groups=group), 0)
    assert_allclose(found["difference_se"], expected["curve_se"], rtol=1e-9)


@pytest.mark.thorough
@RULES
@CENTERINGS
def test_against_nothing_the_error_of_a_difference_is_that_of_the_curve(bins, centering):
    """Covariances that `std_error` stores know the curve between edges, as influences do."""
    _, group, (local, _) = pairs_of()
    nothing = local.assign(local_effect=0 * local["local_effect"])
    effect, zero = (of_rows(one, bins=bins, centering=centering) for one in (local, nothing))
    grouped = rs.std_error(effect, local, groups=group)
    stored = rs.compare(grouped, zero, n_draws=500, rng=0)
    pairs = rs.compare(effect, zero, paired=(local, nothing), groups=group, n_draws=500, rng=0)
    assert_allclose(stored["difference_se"], pairs["difference_se"], rtol=1e-9, atol=1e-8)
    at_edges = np.isin(stored["grid_value"].values[0], EDGES)
    assert at_edges.sum() == 5
    expected = one_feature(grouped, 0)["curve_se"]
    assert_allclose(stored["difference_se"].values[0, at_edges], expected, rtol=1e-9, atol=1e-8)


@pytest.mark.thorough
@CENTERINGS
@pytest.mark.parametrize("weighting", ["axis", "rows"])
def test_a_paired_difference_is_the_effect_of_the_differences(centering, weighting):
    """Cells depend on the feature alone, so that one curve is accumulated from g - h."""
    _, group, locals_ = pairs_of()
    options = {"bins": rs.GivenBins(EDGES), "centering": centering, "weighting": weighting}
    effects = [rs.rhale(local, **options) for local in locals_]
    apart = locals_[0].assign(local_effect=locals_[0]["local_effect"] - locals_[1]["local_effect"])
    expected = one_feature(rs.std_error(rs.rhale(apart, **options), apart, groups=group), 0)
    found = rs.compare(*effects, paired=locals_, groups=group, n_draws=500, rng=0)
    at_edges = np.isin(found["grid_value"].values[0], expected.bin_edges)
    for name, own in (("difference", "curve"), ("difference_se", "curve_se")):
        values = found[name].values[0, at_edges]
        assert_allclose(values, expected.at_bins(own), rtol=1e-9, atol=1e-9)


@pytest.mark.thorough
@RULES
@CENTERINGS
def test_pairs_are_groups_of_one_row(bins, centering):
    _, _, locals_ = pairs_of()
    effects = [of_rows(local, bins=bins, centering=centering) for local in locals_]
    rows = rs.compare(*effects, paired=locals_, n_draws=500, rng=0)
    groups = rs.compare(*effects, paired=locals_, groups=np.arange(N), n_draws=500, rng=0)
    assert_allclose(groups["difference_se"], rows["difference_se"], rtol=1e-12)


@pytest.mark.thorough
@pytest.mark.parametrize("bins", [rs.GivenBins(EDGES), LINES], ids=["constant", "linear"])
@pytest.mark.parametrize("centering", daily(["mean", "start", "integral"]))
def test_weights_of_pairs(bins, centering):
    """Equal ones are none; those that count pairs are repeated pairs, in groups or not."""
    _, group, locals_ = pairs_of()
    counts = np.random.default_rng(3).integers(0, 4, N)
    repeated = np.repeat(np.arange(N), counts)

    def compared(locals_, groups=None):
        effects = [of_rows(local, bins=bins, centering=centering) for local in locals_]
        return rs.compare(*effects, paired=locals_, groups=groups, n_draws=100, rng=0)

    plain = compared(locals_)
    for weight, kind in ((1.0, "precision"), (0.3, "precision"), (1.0, "frequency")):
        _, _, equal = pairs_of(weights=np.full(N, weight), weight_kind=kind)
        xr.testing.assert_allclose(compared(equal), plain, rtol=1e-12)
    _, _, counted = pairs_of(weights=counts, weight_kind="frequency")
    longer = [local.isel(obs=repeated) for local in locals_]
    for groups in (None, group):
        ours = compared(counted, groups)
        expected = compared(longer, None if groups is None else groups[repeated])
        for name in ("difference", "difference_se", "difference_ci"):
            assert_allclose(ours[name], expected[name], rtol=1e-9, atol=1e-8)


def test_pairs_of_which_each_counts_on_one_side_only_are_independent():
    """Weights that leave the first half to one curve and the second to the other."""
    half = np.arange(N) < N // 2
    locals_ = [
        pairs_of(weights=weight.astype(float))[2][number]
        for number, weight in ((0, half), (1, ~half))
    ]
    effects = [of_rows(local, bins=rs.GivenBins(EDGES)) for local in locals_]
    paired = rs.compare(*effects, paired=locals_, n_draws=500, rng=0)["difference_se"]
    alone = rs.compare(*effects, n_draws=500, rng=0)["difference_se"]
    # Variances with 150 / 146 against n_k / (n_k - 1), n_k from 18 on: 3 %.
    assert min(float(effect["n_obs"].min()) for effect in effects) >= 18
    assert_allclose(paired, alone, rtol=0.02)


def test_pairs_with_a_bin_of_one_row():
    """Its noise is not known, whether or not rows are paired."""
    x = np.array([0.1, 0.2, 0.3, 0.4, 1.5, 2.1, 2.2, 3])[:, None]
    g, h = np.random.default_rng(0).normal(size=(2, 8, 1))
    locals_ = local_of(x, g), local_of(x, h)
    effects = [
        of_rows(local, bins=rs.GivenBins([0, 1, 2, 3]), centering="start") for local in locals_
    ]
    for paired in (None, locals_):
        found = rs.compare(*effects, paired=paired, n_draws=500, rng=0)
        assert_array_equal(np.isfinite(found["difference_se"][0]), [True, True, False, False])
        assert np.isnan(found["p_value"]).all()


def test_pairs_of_a_single_group_in_a_bin():
    """Its residuals add up to 0, which is no standard error."""
    x, group, locals_ = pairs_of()
    group[x > EDGES[3]] = 7
    effects = [of_rows(local, bins=rs.GivenBins(EDGES), centering="start") for local in locals_]
    found = rs.compare(*effects, paired=locals_, groups=group, n_draws=500, rng=0)
    assert_array_equal(np.isfinite(found["difference_se"][0]), [True] * 4 + [False])
    assert np.isnan(found["p_value"]).all()


def test_linear_bins_are_compared_between_edges_too():
    """Curves that meet at both edges but for chance: a parabola, and a straight one."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (N, 1))
    line, flat = (
        of_rows(
            local_of(x, slope * x + rng.normal(size=(N, 1))),
            bins=Lines((-1.0, 1.0), (linear,)),
            centering="start",
        )
        for slope, linear in ((1, True), (0, False))
    )
    found = rs.compare(line, flat, rng=0).isel(feature=0)
    z = found["grid_value"].values
    assert_array_equal(z, [-1, -0.5, 0, 0.5, 1])
    expected = rs.predict(line, z, 0) - rs.predict(flat, z, 0)
    assert_allclose(found["difference"], expected, atol=1e-12)
    # (z^2 - 1) / 2, which is 0 at the ends.
    assert abs(found["difference"][-1]) < 2 * found["difference_se"][-1]
    assert found["p_value"] < 0.001


@pytest.mark.thorough
@pytest.mark.parametrize("bins", daily([LINES, rs.GivenBins(EDGES)]))
def test_bands_of_a_comparison_hold_between_its_points(bins):
    """Where a band misses 0 along the axis it does so at a point, but where a parabola bulges.

    Straight lines through the quarters of a linear bin miss 1/16 of that: one sample in 100 here.
    """
    rng = np.random.default_rng(6)
    x = rng.uniform(-1, 1, (100, 60))
    effects = [effect_of(x, rng.normal(size=x.shape), bins) for _ in range(2)]
    found = rs.compare(*effects, n_draws=1000, level=0.5, rng=0)
    fine = np.linspace(-1, 1, 401)
    at_points, along = 0, 0
    for number in range(60):
        row = found.isel(feature=number)
        row = row.isel(grid=row["grid_value"].notnull().values)
        half = row["difference_band"].values[:, 1] - row["difference"].values
        difference = rs.predict(effects[0], fine, number) - rs.predict(effects[1], fine, number)
        at_points += bool((abs(row["difference"]) > half).any())
        along += bool((abs(difference) > np.interp(fine, row["grid_value"], half)).any())
    assert 15 < at_points < 45
    assert at_points <= along <= at_points + isinstance(bins, Lines)


def test_features_without_a_common_range_are_left_out():
    x, g = table()
    moved = x + np.array([0, 5, 0])
    a, b = effect_of(x, g), effect_of(moved, g, rs.EqualWidthBins(3))
    locals_ = local_of(x, g), local_of(moved, g)
    for paired in (None, locals_):
        with pytest.warns(
            UserWarning, match="a and b have no common value of 'x1'. The difference"
        ):
            found = rs.compare(a, b, paired=paired, n_draws=500, rng=0)
        for name in ("statistic", "p_value", "p_value_adjusted"):
            assert_array_equal(np.isfinite(found[name]), [True, False, True])
        assert_array_equal(found["difference"].notnull().any("grid"), [True, False, True])
        alone = rs.compare(
            a.isel(feature=[0]), b.isel(feature=[0]), paired=paired, n_draws=500, rng=0
        )
        known = found["grid_value"][0].notnull().values
        assert_array_equal(found["difference_se"][0, known], alone["difference_se"][0])
        # Of two tests, by Holm.
        least, other = np.sort(found["p_value"][[0, 2]])
        assert found["p_value_adjusted"].max() == min(1, max(2 * least, other))


@pytest.mark.slow
@RULES
def test_size_of_wald_tests_by_groups(bins):
    """No effect in 250 samples of 1000 rows, in 100 groups that share half of the variance."""
    rng = np.random.default_rng(3)
    n, n_groups, n_samples = 1000, 100, 250
    x, group = rng.uniform(-1, 1, (n, n_samples)), np.arange(n) % n_groups
    g = rng.normal(size=(n, n_samples)) + rng.normal(size=(n_groups, n_samples))[group]
    local = local_of(x, g)
    effect = rs.std_error(of_rows(local, bins=bins), local, groups=group)
    for null in ("zero", "constant"):
        pvalue = rs.wald_test(effect, null)["p_value"]
        for level in (0.01, 0.05, 0.1):
            rejected = int((pvalue <= level).sum())
            # At 0.001: 3 Monte-Carlo errors, of 1.4 % at 5 %.
            assert stats.binomtest(rejected, n_samples, level).pvalue > 0.001, rejected / n_samples


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bins", "grouped", "weighted"),
    [
        # Every pair of two settings once.
        *((rs.GivenBins(EDGES), False, False), (rs.GivenBins(EDGES), True, True)),
        *((LINES, False, True), (LINES, True, False)),
    ],
)
def test_size_of_a_paired_comparison(bins, grouped, weighted):
    """Two effects alike in 150 samples of 200 pairs, perhaps in 40 groups that share half."""
    rng = np.random.default_rng(7)
    n, n_samples = 200, 150
    x = rng.uniform(-1, 1, (n, n_samples))
    group = np.arange(n) % 40
    noise = rng.normal(size=(3, n, n_samples))
    if grouped:
        noise += rng.normal(size=(3, 40, n_samples))[:, group]
    mean = 3 * x * (bins is LINES)
    weights = rng.uniform(0.3, 1.7, n) if weighted else None
    locals_ = [local_of(x, mean + noise[0] + one, weights=weights) for one in noise[1:]]
    effects = [of_rows(local, bins=bins) for local in locals_]
    groups = group if grouped else None
    found = rs.compare(*effects, paired=locals_, groups=groups, n_draws=2000, rng=0)
    for level in (0.01, 0.05, 0.1):
        rejected = int((found["p_value"] <= level).sum())
        # At 0.001: 3 Monte-Carlo errors, of 1.8 % at 5 %.
        assert stats.binomtest(rejected, n_samples, level).pvalue > 0.001, rejected / n_samples


@pytest.mark.slow
@pytest.mark.parametrize("centering", ["mean", "start", "integral"])
def test_size_of_a_comparison_of_rows_at_other_places(centering):
    """Equal effects of 200 samples of 200 rows: even ones, and others at the right."""
    rng, n, n_samples = np.random.default_rng(11), 200, 200
    effects = [
        of_rows(
            local_of(x, 2 + rng.normal(size=x.shape)),
            bins=rs.EqualWidthBins(3),
            centering=centering,
        )
        for x in (rng.uniform(-1, 1, (n, n_samples)), 2 * rng.beta(3, 1, (n, n_samples)) - 1)
    ]
    found = rs.compare(*effects, n_draws=2000, rng=0)
    for level in (0.01, 0.05, 0.1):
        rejected = int((found["p_value"] <= level).sum())
        # At 0.001: 3 Monte-Carlo errors, of 1.5 % at 5 %.
        assert stats.binomtest(rejected, n_samples, level).pvalue > 0.001, rejected / n_samples


# --- unusable input ------------------------------------------------------------------------------


def test_unusable_tests():
    x, g = table()
    effect, local = effect_of(x, g), local_of(x, g)
    with pytest.raises(ValueError, match="null must be one of 'zero', .*; got 'none'"):
        rs.wald_test(effect, "none")
    for test in (
        rs.wald_test,
        lambda e, **options: rs.equivalence_test(e, 1.0, **options),
        lambda e, **options: rs.compare(e, e, **options),
    ):
        with pytest.raises(ValueError, match="adjust must be one of 'holm', .*; got 'tukey'"):
            test(effect, adjust="tukey")
        with pytest.raises(ValueError, match="this one is from debias"):
            test(rs.debias(effect, rs.check_unbiased(local, effect)))
        with pytest.raises(TypeError, match="got int"):
            test(5)
    for delta in (0, -1, np.inf, np.nan):
        with pytest.raises(ValueError, match=f"delta must be positive and finite; got {delta}"):
            rs.equivalence_test(effect, delta)


def test_unusable_comparisons():
    x, g = table()
    effect, local = effect_of(x, g), local_of(x, g)
    with pytest.raises(ValueError, match="the same centering; got 'mean' and 'start'"):
        rs.compare(effect, effect_of(x, g, centering="start"))
    with pytest.raises(ValueError, match="feature in common; got x0, x1, x2 and a, b, c"):
        rs.compare(effect, effect.assign_coords(feature=["a", "b", "c"]))
    with pytest.raises(ValueError, match="must overlap; got no common value of 'x0', 'x1', 'x2'"):
        rs.compare(effect, effect_of(x + 5, g, rs.EqualWidthBins(2)))
    short = local_of(x[1:], g[1:])
    with pytest.raises(ValueError, match="same rows; got 300 and 299 rows"):
        rs.compare(effect, effect, paired=(local, short))
    with pytest.raises(ValueError, match="give them other numbers of rows"):
        rs.compare(effect, effect, paired=(local, local_of(x + 0.5, g)))


def test_unusable_weights_and_groups_of_pairs():
    x, g = table()
    local, weights = local_of(x, g), np.arange(N) % 3 + 1.0
    effect, group = effect_of(x, g), np.arange(N) // 10
    weighted = local_of(x, g, weights=weights)
    with pytest.raises(
        ValueError, match="weights that effect was made with; bin . of feature 'x0'"
    ):
        rs.compare(effect, effect, paired=(local, weighted))
    counted = local_of(x, g, weights=weights, weight_kind="frequency")
    other = of_rows(counted, bins=rs.GivenBins(EDGES))
    with pytest.raises(ValueError, match="same frequencies in both.*got 1 and 2 in row 1"):
        rs.compare(effect, other, paired=(local, counted))
    # In groups every side may count its own rows.
    assert np.isfinite(
        rs.compare(effect, other, paired=(local, counted), groups=group, n_draws=500, rng=0)[
            "p_value"
        ]
    ).all()
    with pytest.raises(ValueError, match="groups must come with paired; got groups alone"):
        rs.compare(effect, effect, groups=group)
    grouped = rs.std_error(effect, local, groups=group)
    with pytest.raises(ValueError, match="groups must be given where a or b has standard errors"):
        rs.compare(grouped, effect, paired=(local, local))
    with pytest.raises(ValueError, match=r"each of 300 pairs; got shape \(299,\)"):
        rs.compare(effect, effect, paired=(local, local), groups=group[1:])
    with pytest.raises(
        ValueError, match=r"groups must hold at least two different groups; got 1\."
    ):
        rs.compare(effect, effect, paired=(local, local), groups=np.zeros(N))


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:Bins without rows")
def test_a_bin_whose_rows_happen_to_be_alike_counts_with_the_spread_of_the_others():
    """Two values, +5 and -5: in small bins chance makes all rows alike."""
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(200, 150))
    g = rng.choice([-5.0, 5.0], x.shape)
    local = rs.local_effects(None, x, jacobian=g, features=list(range(150)))
    effect = rs.std_error(of_rows(local, bins=rs.EqualWidthBins(40)))
    alike = effect["heterogeneity"] == 0
    assert int(alike.any("bin").sum()) > 100
    p = rs.wald_test(effect, adjust="none")["p_value"]
    # Bins of five rows with two values are no normal samples: no more than that is claimed.
    assert float((p < 1e-6).mean()) == 0


def test_wald_statistics_of_ordinary_data_are_finite():
    """code.md B7: |t| above 38 underflowed, and the statistic was inf."""
    x = np.random.default_rng(0).uniform(-1, 1, (20_000, 2))
    local = local_of(x, np.column_stack([2 + 4 * x[:, 1], 4 * x[:, 0]]))
    effect = rs.std_error(of_rows(local, bins=rs.EqualWidthBins(5)))
    found = rs.wald_test(effect, "zero", method="wald").isel(feature=0)
    t = (effect["effect"] / effect["effect_se"]).isel(feature=0).values
    assert t.max() > 38
    # Wallace (1959) with thousands of degrees of freedom.
    degrees = effect["n_obs"].isel(feature=0).values - 1
    assert_allclose(found["statistic"], np.sum(degrees * np.log1p(t**2 / degrees)), rtol=1e-3)
    assert float(found["p_value"]) == 0


def test_scores_of_a_line_are_the_chi_squared_of_its_parameters():
    """Rows are denser on the left, so that effect and slope are correlated; with 4000 rows normal
    scores are Student's t to about one in a thousand."""
    rng = np.random.default_rng(8)
    x = rng.beta(1, 3, (4000, 1))
    effect = effect_of(x, 0.03 + 0.2 * (x - 0.4) + rng.normal(size=x.shape), Lines((0, 1), (True,)))
    row = one_feature(rs.std_error(effect), 0)
    mean, shared, slope = (float(one[0]) for one in noise_in_the_middle(row))
    assert abs(shared) > 0.5 * np.sqrt(mean * slope)
    value = np.array([row["effect"].item(), row["slope"].item()])
    covariance = np.array([[mean, shared], [shared, slope]])
    expected = value @ np.linalg.solve(covariance, value)
    found = rs.wald_test(effect, "zero", method="wald")
    assert_allclose(found["statistic"], [expected], rtol=0.005)
    assert found["df"].item() == 2


class TestHomogeneous:
    """Sizes and p-values of differences between rows, by hand."""

    def test_bins_that_are_cells(self):
        """Root of the mean variance by rows; bins of one row do not count."""
        X = np.column_stack([np.repeat([0.1, 0.6, 0.9], [6, 9, 1]), np.arange(16.0) % 5])
        X = np.vstack([X, [[0, 0], [1, 1]]])
        model = lambda X: X[:, 0] * X[:, 1] ** 2  # noqa: E731
        effect = rs.ale(model, X, features=0, bins=rs.GivenBins([0, 0.5, 0.8, 1]))
        row = one_feature(effect, 0)
        n, spread = row.n_effective, row["heterogeneity"].values
        found = rs.wald_test(effect, "homogeneous")
        known = np.isfinite(spread)
        size = np.sqrt(np.sum((n * spread**2)[known]) / n[known].sum())
        assert_allclose(found["size"], size)
        assert_allclose(found["p_value"], 0)
        assert_allclose(found["df"], 3)
        alone = changed(row, heterogeneity=("bin", [spread[0], np.nan, np.nan]))
        assert_allclose(_homogeneous(alone, None).size, spread[0])
        none = changed(row, heterogeneity=("bin", [np.nan] * 3))
        test = _homogeneous(none, None)
        assert (test.size, test.statistic, test.p_value) == (0, 0, 1)

    @pytest.mark.parametrize(("n", "known"), [(5, False), (6, True)])
    def test_two_triples_of_rows_are_enough(self, n, known):
        """For the variance of their products; a single one has none."""
        x = np.arange(n, dtype=float)[:, None]
        g = np.array([1.0, 3, 0, 9, 2, 8])[:n, None]
        local = rs.local_effects(None, x, jacobian=g)
        effect = rs.rhale(local, bins=rs.GivenBins([0, n - 1]))
        found = rs.wald_test(effect, "homogeneous", local=local)
        assert np.isfinite(found["p_value"].item()) == known
        if known:
            # Products 2 * -3 and -7 * 6.
            assert_allclose(found["statistic"], 24 / 18)
            assert_allclose(found["df"], 1)

    def test_neighbouring_rows(self):
        """The covariance of neighbouring differences, by Student's t."""
        rng = np.random.default_rng(0)
        x = np.sort(rng.uniform(0, 1, 60))
        g = 3 * x + rng.normal(size=60)
        local = rs.local_effects(None, x[:, None], jacobian=g[:, None])
        effect = rs.rhale(local, bins=rs.GivenBins([0, 0.5, 1]))
        found = rs.wald_test(effect, "homogeneous", local=local)
        product = np.prod(np.diff(g.reshape(-1, 3), axis=1), axis=1)
        n = len(product)
        variance, error = -product.mean(), product.std(ddof=1) / np.sqrt(n)
        assert_allclose(found["statistic"], variance / error)
        assert_allclose(found["df"], n - 1)
        assert_allclose(found["p_value"], stats.t.sf(variance / error, n - 1))
        assert_allclose(found["size"], np.sqrt(variance))
        half = stats.t.ppf(0.975, n - 1) * error
        ends = np.sqrt(np.maximum([variance - half, variance + half], 0))
        assert_allclose(found["size_ci"][0], ends)
        assert found.attrs["test"] == "wald_test, null 'homogeneous'"
        assert found.attrs["source"] == "rows"


def test_words_of_tests():
    x, g = table()
    effect = effect_of(x, g)
    for method in ("box", "wald"):
        found = rs.wald_test(effect, "zero", method=method)
        assert found.attrs["test"] == f"wald_test, null 'zero', method {method!r}"
        assert found.attrs["null"] == "all effects are 0"
        assert ("df_denominator" in found) == (method == "box")
    with pytest.raises(ValueError, match=r"method must be left out .*; got 'wald'\."):
        rs.wald_test(effect, "homogeneous", method="wald")


def test_degrees_of_a_matrix_without_overlap():
    """Infinitely many, written as a finite number."""
    x, g = table()
    local = rs.local_effects(None, x, jacobian=g)
    effect = effect_of(x, g)
    grouped = rs.std_error(effect, local, groups=np.arange(len(x)) // 2)
    row = one_feature(grouped, 0)
    none = changed(row, effect_overlap=0 * row["effect_overlap"])
    n = row.sizes["bin"]
    every = BinSelection(np.ones(n, dtype=bool), np.zeros(0, dtype=int), np.zeros(0))
    found = _degrees_of_matrix(none, np.eye(n), every)
    assert found == pytest.approx(n * (n + 1) * MAX_DF)


def test_sums_of_normal_scores_with_a_bin_of_one_row():
    """That bin has no degree of freedom, and counts neither in the sum nor in the mean."""
    rng = np.random.default_rng(4)
    x = np.concatenate([rng.uniform(0, 1, 8), rng.uniform(1, 2, 13), [2.5]])[:, None]
    x[0], x[-1] = 0, 3
    g = np.concatenate([1 + rng.normal(size=8), 2 + 2 * rng.normal(size=13), [50.0]])[:, None]
    effect = effect_of(x, g, rs.GivenBins([0, 1, 2, 3]))
    parts = [g[:8, 0], g[8:21, 0]]
    mean = np.array([one.mean() for one in parts])
    se = np.array([one.std(ddof=1) / np.sqrt(len(one)) for one in parts])
    degrees = np.array([7, 12])
    for null, centre, df in (
        ("zero", 0.0, 2),
        ("constant", np.average(mean, weights=1 / se**2), 1),
    ):
        t = (mean - centre) / se
        score = stats.norm.isf(stats.t.sf(np.abs(t), degrees))
        found = rs.wald_test(effect, null, method="wald")
        assert_allclose(found["statistic"], np.sum(score**2), rtol=1e-8)
        assert_allclose(found["df"], df)
        assert_allclose(found["p_value"], stats.chi2.sf(np.sum(score**2), df), rtol=1e-7)


def test_nothing_is_left_to_test():
    """One row in every bin: neither spread nor degrees of freedom."""
    x = np.array([[0.0], [1.5], [3.0]])
    effect = effect_of(x, np.array([[1.0], [5.0], [2.0]]), rs.GivenBins([0, 1, 2, 3]))
    for null in ("zero", "constant"):
        for method in METHODS:
            found = rs.wald_test(effect, null, method=method)
            assert np.isnan(found["p_value"].item())
            assert found["reason"].item() == NO_ROWS


@pytest.mark.parametrize("least", [1.5, 0.9])
def test_variances_below_the_numerical_error_are_none(least):
    """A step of 2 and back in a quarter of all triples: the variance is 1, in one bin with a jump.

    The square of the error decides: p-value 1 and no size up to it.
    """
    x = (np.arange(72) + 0.5) / 72
    g = 100.0 * (x > 0.5) + 2.0 * (np.arange(72) % 12 == 1)
    local = rs.local_effects(None, x[:, None], jacobian=g[:, None])
    effect = rs.rhale(local, bins=rs.GivenBins([0, 1]))
    effect["local_effect_error"] = ("feature", [least])
    row = one_feature(effect, 0)
    assert row.least_effect == pytest.approx(least, rel=1e-6)
    found = _homogeneous(row, (columns(local), 0))
    products = np.prod(np.diff(g.reshape(-1, 3), axis=1), axis=1)
    assert (-products.mean(), len(products)) == (1, 24)
    if least > 1:
        assert (found.statistic, found.p_value, found.size, found.df) == (0, 1, 0, 23)
    else:
        assert found.statistic == pytest.approx(np.sqrt(24) / products.std(ddof=1))
        assert found.size == 1


@pytest.mark.thorough
def test_sources_of_differences():
    """Of rows against rows, of pairs, and of parameters where both have one model."""
    x, g = table()
    a, b = (effect_of(x, one) for one in (g, g + 1))
    grouped = rs.std_error(b, local_of(x, g + 1), groups=np.arange(N) // 2)
    assert rs.compare(a, b, rng=0).attrs["source"] == "rows, independent"
    mixed = rs.compare(a, grouped, rng=0).attrs["source"]
    assert mixed == f"rows against rows in {N // 2} groups, independent"
    pairs = (local_of(x, g), local_of(x, g + 1))
    assert rs.compare(a, b, paired=pairs, rng=0).attrs["source"] == "pairs of rows"
    a, b = rs.std_error(a), rs.std_error(b)
    for marks, one in (("pp", True), ("pq", False), (("", ""), False), (("p", ""), False)):
        both = [of.assign_attrs(fitted_model=mark) for of, mark in zip((a, b), marks, strict=True)]
        assert _have_one_model(*both) is one
        said = "of one model" if one else "independent"
        assert _source(*both, None) == f"rows, {said}"
        paired = SimpleNamespace(source="pairs of rows")
        more = " and parameters" if one else ""
        assert _source(*both, paired) == f"pairs of rows{more}"


def test_no_degree_of_freedom_is_left():
    """Of two effects whose variances have all in common: 1 - 2 + 1; with less in common some."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 2, (60, 1))
    local = local_of(x, 1 + rng.normal(size=x.shape))
    effect = of_rows(local, bins=rs.GivenBins([0, 1, 2]))
    row = one_feature(rs.std_error(effect, local, groups=np.arange(60) // 3), 0)
    dims = row["effect_overlap"].dims
    found = _grouped(changed(row, effect_overlap=(dims, np.ones((2, 2)))), "zero")
    assert (found.reason, found.df) == (TOO_FEW_GROUPS, 2)
    assert np.isnan(found.p_value)
    more = _grouped(changed(row, effect_overlap=(dims, np.full((2, 2), 0.5))), "zero")
    # 6 / (2 + 1) - 2 + 1 degrees of freedom.
    assert more.df_denominator == pytest.approx(1)
    assert more.p_value == pytest.approx(stats.f.sf(more.statistic / 4, 2, 1))


# --- monotone effects -----------------------------------------------------------------------------


def monotone(slope, n=400, seed=0, **options):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    local = rs.local_effects(lambda X: slope * X[:, 0] + X[:, 0] * X[:, 1], X, ["x0"])
    return rs.rhale(local, bins=rs.EqualWidthBins(4), **options)


@pytest.mark.thorough
def test_p_values_of_monotone_effects_are_those_of_the_least_bin():
    effect = rs.std_error(monotone(0.05))
    test = rs.wald_test(effect, "increasing")
    value, se = effect["effect"].values[0], effect["effect_se"].values[0]
    degrees = effect.rhale.in_bins()["n_effective"].values[0] - 1
    # Of one-sided intervals as `confint` makes them, the one that first excludes no fall.
    p_each = []
    for k in range(4):
        level = brentq(
            lambda level, k=k: rs.confint(effect, level=level)["effect_ci"].values[
                0, k, 0 if value[k] > 0 else 1
            ],
            1e-6,
            1 - 1e-9,
        )
        p_each.append((1 + level) / 2 if value[k] > 0 else (1 - level) / 2)
    assert_allclose(test["p_value"], 1 - (1 - min(p_each)) ** 4, rtol=1e-4)
    assert test["df"] == 4
    assert np.isfinite(value / se / degrees).all()


def test_signs_of_monotone_effects():
    rising = monotone(1.0)
    assert (rs.wald_test(rising, "increasing")["p_value"] > 0.5).all()
    assert (rs.wald_test(rising, "decreasing")["p_value"] < 1e-6).all()
    turned = rs.wald_test(monotone(-1.0, seed=0), "decreasing")
    assert (turned["p_value"] > 0.5).all()
    assert "no effect is negative" in str(rs.summary(rs.wald_test(rising, "increasing")))


def test_monotone_effects_without_a_p_value():
    X = pd.DataFrame({"g": list("abcd") * 20, "x": 1.0})
    effect = rs.ale(lambda X: X["g"].map({"a": 0.0, "b": 1, "c": 2, "d": 1}).to_numpy(), X, ["g"])
    test = rs.wald_test(effect, "increasing")
    assert np.isnan(test["p_value"]).all()
    assert "order" in str(test["reason"].values[0])
    with pytest.raises(ValueError, match="method must be left out with null 'increasing'"):
        rs.wald_test(effect, "increasing", method="wald")


def test_errors_of_skewed_bins_are_not_below_the_pooled_one():
    rng = np.random.default_rng(1)
    n, edges = 160, [-1, -0.5, 0, 0.5, 1]
    x = np.repeat([-0.75, -0.25, 0.25, 0.75], n // 4)
    g = rng.lognormal(size=n) - 1.6
    g[: n // 4] = 0.3 * g[: n // 4]
    effect = rs.std_error(effect_of(x[:, None], g[:, None], rs.GivenBins(edges)))
    value, se = effect["effect"].values[0], effect["effect_se"].values[0]
    skewness = effect.get("effect_skewness", 0 * effect["effect"]).values[0]
    pooled = np.maximum(se, np.sqrt(np.mean(se**2)))
    assert pooled[0] > 1.5 * se[0]

    def p_value(sign, error):
        t = sign * unskewed(value / error, skewness * (se / error) ** 3)
        scores = stats.norm.ppf(stats.t.cdf(t, n / 4 - 1))
        return 1 - stats.norm.cdf(-scores.min()) ** 4

    # A low mean of effects with a long right tail has a small error; a high one has not.
    assert_allclose(rs.wald_test(effect, "increasing")["p_value"], p_value(1, pooled), rtol=1e-6)
    assert_allclose(rs.wald_test(effect, "decreasing")["p_value"], p_value(-1, se), rtol=1e-6)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Gaps without rows")
@pytest.mark.parametrize(("noise", "n"), [("normal", 120), ("log-normal", 120)])
def test_size_of_the_test_of_monotone_effects(noise, n):
    # Effects of 0 in all bins are the least favourable.
    rng, n_samples = np.random.default_rng(1), 400
    x = rng.uniform(-1, 1, (n, n_samples))
    g = NOISE[noise](rng, x.shape)
    effect = rs.rhale(local_of(x, g), bins=rs.EqualWidthBins(4))
    rejected = int((rs.wald_test(effect, "increasing")["p_value"] < 0.05).sum())
    # At 0.001: 3 Monte-Carlo errors, of 1.1 % at 5 %.
    assert stats.binomtest(rejected, n_samples, 0.05, alternative="greater").pvalue > 1e-3
