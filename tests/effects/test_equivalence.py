"""Two one-sided tests of small effects, by Student's t in every bin."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import rhale_stats as rs
from rhale_stats.effects.hypotheses import _skewness
from rhale_stats.schema.feature_result import one_feature
from tests.helpers import changed, local_of

RNG = np.random.default_rng(3)
X = RNG.uniform(0, 2, (60, 2))
G = np.column_stack([0.2 + RNG.normal(size=60), -0.4 + RNG.normal(size=60) / 2])
DELTA = 0.9


def _effect(g=G, **options):
    bins = rs.GivenBins([0, 1, 2])
    return rs.rhale(local_of(X, g), bins=bins, weighting="rows", **options)


def test_the_bin_with_the_largest_p_value():
    """Means of rows without skewed errors, by two tests of one sample in every bin."""
    effect = rs.std_error(_effect())
    effect["effect_skewness"] = 0 * effect["effect_skewness"]
    found = rs.equivalence_test(effect, DELTA, adjust="bonferroni")
    for number in range(2):
        tests = []
        for inside in (X[:, number] < 1, X[:, number] >= 1):
            g = G[inside, number]
            low = stats.ttest_1samp(g, -DELTA, alternative="greater")
            high = stats.ttest_1samp(g, DELTA, alternative="less")
            p = max(low.pvalue, high.pvalue)
            tests.append((p, min(low.statistic, -high.statistic), len(g) - 1))
        p, distance, degrees = max(tests)
        assert_allclose(found["p_value"][number], p, rtol=1e-9)
        assert_allclose(found["statistic"][number], distance, rtol=1e-9)
        assert_allclose(found["df"][number], degrees, rtol=1e-9)
        assert_allclose(found["p_value_adjusted"][number], min(2 * p, 1), rtol=1e-9)
    assert found.attrs["null"] == "some effect is 0.9 or more, or -0.9 or less"
    assert found.attrs["test"] == "equivalence_test, delta 0.9"


def test_both_ends_of_a_line():
    """The fitted line at 0 and at 2, by the covariances of its level and its slope."""
    x = np.linspace(0, 2, 101)[:, None]
    g = 0.6 * (x - 1) + 0.3 * np.tile([[1.0], [-1.0], [0.5], [-0.5]], (26, 1))[:101]
    local = local_of(x, g)
    effect = rs.rhale(local, bins=rs.AdaptiveBins(20), weighting="rows")
    assert (effect["n_bins"].item(), effect["slope"].item() != 0) == (1, True)
    grouped = rs.std_error(effect, local, groups=np.arange(101))
    row = one_feature(grouped, 0)
    mean, slope = row["effect"].item(), row["slope"].item()
    v, c, w = (row[name].item() for name in ("effect_cov", "effect_slope_cov", "slope_cov"))
    skewness = row["effect_skewness"].item() if "effect_skewness" in row else 0.0
    t = []
    for end in (-1, 1):
        se = np.sqrt(v + 2 * end * c + w)
        k = skewness * min(np.sqrt(v) / se, 1) ** 3
        for sign in (-1, 1):
            away = (mean + end * slope - sign * DELTA) / se
            away = away if abs(k) < 1e-9 else ((1 + k * away / 3) ** 3 - 1) / k + k / 6
            t.append(-sign * away)
    found = rs.equivalence_test(grouped, DELTA)
    assert_allclose(found["statistic"], min(t), rtol=1e-8)
    assert_allclose(found["p_value"], stats.t.sf(min(t), row["effect_df"].item()), rtol=1e-7)


def test_slopes_take_from_the_skewness():
    """Of the third moment of a sum, that of the slope adds none."""
    row = changed(one_feature(rs.std_error(_effect()), 0), effect_skewness=("bin", [0.5, -1.0]))
    se = np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 4.0]])
    assert_allclose(_skewness(row, se), [[0.5, -1], [0.5 / 8, -1], [0.5, -1 / 8]])
    assert_allclose(_skewness(changed(row, drop=["effect_skewness"]), se), 0)
    none = np.zeros((1, 2))
    assert_allclose(_skewness(row, none), 0)


def test_skewed_errors_are_allowed_for():
    """Hall's transformation, as in one-sided intervals."""
    effect, k = rs.std_error(_effect()), np.array([0.5, -0.8])
    effect["effect_skewness"] = ("feature", "bin"), np.stack([k, k])
    row = one_feature(effect, 0)
    se = row["effect_se"].values
    t = np.stack([(row["effect"].values - end) / se for end in (DELTA, -DELTA)])
    moved = ((1 + k * t / 3) ** 3 - 1) / k + k / 6
    distance = np.minimum(-moved[0], moved[1])
    degrees = np.array([np.sum(X[:, 0] < 1), np.sum(X[:, 0] >= 1)]) - 1
    p = stats.t.sf(distance, degrees)
    found = rs.equivalence_test(effect, DELTA)
    assert_allclose(found["p_value"][0], p.max(), rtol=1e-9)
    assert_allclose(found["statistic"][0], distance[p.argmax()], rtol=1e-9)


@pytest.mark.filterwarnings("ignore:Bins without rows")
def test_what_cannot_be_tested():
    """A constant feature; a bin of one row, of which nothing can be concluded; no such bin left."""
    x = np.array([0.0, 0.5, 0.7, 2.0])
    X = np.column_stack([x, np.ones(4), x])
    g = np.column_stack([[0.0, 0.1, -0.1, 0.0], np.ones(4), [1.0, 1, 1, 1]])
    bins = rs.GivenBins({"x0": [0, 1, 2], "x1": [0, 1, 2], "x2": [0, 2]})
    effect = rs.rhale(local_of(X, g), bins=bins, weighting="rows")
    found = rs.equivalence_test(effect, 2.0)
    assert found["p_value"].values[0] == 1
    assert np.isnan(found["p_value"].values[1])
    assert "does not vary" in str(found["reason"].values[1]) or "constant" in str(
        found["reason"].values[1]
    )
    # Without sampling error an effect of 1 is smaller than 2 beyond doubt.
    assert found["p_value"].values[2] < 1e-9
    alone = rs.rhale(local_of(x[[0, 3], None], g[[0, 3], :1]), bins=rs.GivenBins([0, 1, 2]),
                     weighting="rows")  # fmt: skip
    none = rs.equivalence_test(alone, 2.0)
    assert np.isnan(none["p_value"].item())
    assert none["reason"].item() == "too few rows: no degree of freedom is left"


@pytest.mark.parametrize("delta", [0, -1.0, np.inf, np.nan])
def test_an_unusable_margin(delta):
    message = rf"delta must be positive(?: and finite)?; got {delta!r}\."
    with pytest.raises(ValueError, match=message):
        rs.equivalence_test(_effect(), delta)
