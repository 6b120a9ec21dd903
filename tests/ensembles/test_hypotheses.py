"""Tests of refitted models: by hand, their size, what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import rhale_stats as rs
from tests.ensembles.made import FOLDS, REFITS, ensemble

Z = np.linspace(0, 1, 5)


def test_by_hand():
    """Statistic: largest |estimate| / se. P: rank among the largest deviations of the members."""
    rng = np.random.default_rng(0)
    members = 1 + rng.standard_normal((99, 1)) + 0.1 * rng.standard_normal((99, 5))
    tested = rs.wald_test(ensemble(members, **REFITS))
    se, centre = members.std(axis=0, ddof=1), members.mean(axis=0)
    statistic = np.max(np.abs(centre) / se)
    largest = np.max(np.abs(members - centre) / se, axis=1)
    assert tested["statistic"].item() == pytest.approx(statistic)
    assert tested["p_value"].item() == pytest.approx((1 + (largest >= statistic).sum()) / 100)
    assert tested.attrs["source"] == "refits"


def test_constant_effects_are_constant_and_not_zero():
    rng = np.random.default_rng(0)
    members = 5 + rng.standard_normal((99, 1)) + 0.1 * rng.standard_normal((99, 5))
    made = ensemble(members, **REFITS)
    assert rs.wald_test(made)["p_value"].item() == pytest.approx(0.01)
    # Of the test against a straight line the estimate is one of the members, by chance large.
    assert rs.wald_test(made, "constant")["p_value"].item() > 0.2
    rising = ensemble(members + 3 * Z, **REFITS)
    assert rs.wald_test(rising, "constant")["p_value"].item() == pytest.approx(0.01)


def test_points_that_some_members_do_not_reach():
    rng = np.random.default_rng(0)
    members = 5 + rng.standard_normal((99, 5))
    members[:30, -1] = np.nan
    made = ensemble(members, estimate=np.zeros(5), **REFITS)
    made["effect_estimate"] = (("feature", "grid"), np.full((1, 5), 5.0))
    for null in ("zero", "constant"):
        assert np.isfinite(rs.wald_test(made, null)["p_value"]).all()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["refits", "folds"])
def test_size(kind):
    """Members about an estimate that is normal about 0: 5 % are rejected."""
    rng = np.random.default_rng(1)
    n, rejected = 250, 0
    root = np.array([np.ones(5), Z - 0.5])
    for _ in range(n):
        if kind == "refits":
            estimate = rng.standard_normal(2) @ root
            members = estimate + rng.standard_normal((199, 2)) @ root
            made = ensemble(members, **REFITS)
            made["effect_estimate"] = (("feature", "grid"), estimate[None])
        else:
            # Correlated as the correction assumes: rho = 1/5 with a quarter of the rows tested.
            common, own = rng.standard_normal((1, 2)), rng.standard_normal((10, 2))
            made = ensemble((np.sqrt(0.2) * common + np.sqrt(0.8) * own) @ root, **FOLDS)
        rejected += rs.wald_test(made)["p_value"].item() <= 0.05
    assert stats.binomtest(rejected, n, 0.05).pvalue > 0.001, rejected


def test_what_is_refused():
    members = np.random.default_rng(0).standard_normal((20, 5))
    for source in ("draws", "models"):
        with pytest.raises(ValueError, match=rf"this one holds {source}, .* Use confband\(effect"):
            rs.wald_test(ensemble(members, source=source))
    made = ensemble(members, **REFITS)
    with pytest.raises(ValueError, match="null must be one of 'zero', 'constant' .*'homogeneous'"):
        rs.wald_test(made, "homogeneous")
    with pytest.raises(ValueError, match="method and local must be left out"):
        rs.wald_test(made, method="wald")
    with pytest.raises(ValueError, match="profiles of several models have curves only"):
        rs.wald_test(made.drop_vars(["effect", "heterogeneity"]))
    same = ensemble(np.ones((9, 5)), **REFITS)
    tested = rs.wald_test(same)
    assert np.isnan(tested["p_value"].item())
    assert "no standard error" in tested["reason"].item()
