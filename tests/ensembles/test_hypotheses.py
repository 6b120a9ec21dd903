"""Tests of refitted models: by hand, their size, what is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import rhale_stats as rs
from rhale_stats.ensembles.intervals import NO_ERROR
from rhale_stats.inference.results import CONSTANT
from tests.ensembles.made import FOLDS, REFITS, constant, ensemble, side_by_side

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


def test_a_member_as_large_as_the_estimate_counts_as_larger():
    """Two points and five members; the largest deviations are 2, 1, 0, 1, 2 standard deviations."""
    members = np.repeat([[-2.0], [-1.0], [0.0], [1.0], [2.0]], 2, axis=1)
    for scale in (1.0, 1e-12):
        made = ensemble(scale * members, **REFITS)
        made["effect_estimate"] = (("feature", "grid"), [[-2 * scale, 0]])
        tested = rs.wald_test(made)
        assert tested["statistic"].item() == pytest.approx(2 / np.sqrt(2.5))
        assert tested["p_value"].item() == 3 / 6


def test_points_without_an_error_or_an_estimate_are_left_out():
    members = np.random.default_rng(3).standard_normal((20, 4))
    members[:, 1] = -7 - 1e-12 * members[:, 1]  # all agree, up to rounding
    made = ensemble(members, estimate=np.zeros(4), **REFITS)
    centre = np.array([0.5, -7.0, np.nan, -1.5])
    made["effect_estimate"] = (("feature", "grid"), centre[None])
    tested = rs.wald_test(made)
    used = members[:, [0, 3]]
    se = used.std(axis=0, ddof=1)
    assert tested["statistic"].item() == pytest.approx(np.max([0.5, 1.5] / se))
    largest = np.max(np.abs(used - used.mean(axis=0)) / se, axis=1)
    p = (1 + (largest >= tested["statistic"].item()).sum()) / 21
    assert tested["p_value"].item() == pytest.approx(p)


def test_deviations_are_from_the_mean_over_the_points_that_all_members_reach():
    members = 5 + np.random.default_rng(0).standard_normal((30, 5))
    members[:10, -1] = np.nan
    members[4] = np.nan  # a fit that failed
    made = ensemble(members, estimate=np.zeros(5), **REFITS)
    centre = np.array([5.0, 5.5, 2.0, 5.0, 7.0])
    made["effect_estimate"] = (("feature", "grid"), centre[None])
    tested = rs.wald_test(made, "constant")
    bent = np.delete(members, 4, axis=0)
    bent = bent - bent[:, :4].mean(axis=1, keepdims=True)
    se = np.array([np.std(one[np.isfinite(one)], ddof=1) for one in bent.T])
    assert tested["statistic"].item() == pytest.approx(
        np.max(np.abs(centre - centre[:4].mean()) / se)
    )
    assert tested.attrs["null"] == (
        "the effect is the same everywhere, so that the curve is a straight line"
    )


def test_no_point_that_all_members_reach():
    members = np.random.default_rng(0).standard_normal((4, 4)) + 5
    members[np.arange(4), np.arange(4)] = np.nan
    made = ensemble(members, estimate=np.zeros(4), **REFITS)
    made["effect_estimate"] = (("feature", "grid"), [[5.0, 5, 5, 6]])
    tested = rs.wald_test(made, "constant")
    assert np.isnan([tested["statistic"].item(), tested["p_value"].item()]).all()
    assert tested["reason"].item() == NO_ERROR
    assert rs.wald_test(made)["reason"].item() == NO_ERROR


def test_folds_with_one_point_have_the_p_of_student():
    members = np.random.default_rng(0).standard_normal((10, 1)) + np.zeros(2) + 0.8
    tested = rs.wald_test(ensemble(members, **FOLDS))
    se = np.sqrt((1 / 10 + 1 / 4) * members[:, 0].var(ddof=1))
    statistic = members[:, 0].mean() / se
    assert tested["statistic"].item() == pytest.approx(statistic)
    p = 2 * stats.t.sf(statistic, 9)
    # 20,000 draws: three Monte-Carlo errors.
    assert tested["p_value"].item() == pytest.approx(p, abs=3 * np.sqrt(p / 20_000))
    again = rs.wald_test(ensemble(members, **FOLDS))
    assert again["p_value"].item() == tested["p_value"].item()


def test_folds_of_two_points_that_move_apart_are_tested_at_once():
    """Uncorrelated points: P is that of the larger of two, up to the degrees that they share."""
    rng = np.random.default_rng(4)
    members = rng.standard_normal((400, 2))
    members -= members.mean(axis=0)
    members = members @ np.linalg.inv(np.linalg.cholesky(np.cov(members.T))).T
    folds = {**FOLDS, "test_over_train": 0.0025}
    tested = rs.wald_test(ensemble(members + np.array([0.05, 0.13]), **folds))
    statistic = 0.13 / np.sqrt(1 / 400 + 0.0025)
    assert tested["statistic"].item() == pytest.approx(statistic)
    p = 1 - (1 - 2 * stats.norm.sf(statistic)) ** 2
    assert tested["p_value"].item() == pytest.approx(p, abs=0.01)


def test_constant_features_have_no_test():
    members = np.random.default_rng(0).standard_normal((20, 5))
    made = side_by_side(c=constant(20, **REFITS), x=ensemble(members, **REFITS))
    tested = rs.wald_test(made)
    assert np.isnan(tested["p_value"].values).tolist() == [True, False]
    assert tested["reason"].values.tolist() == [CONSTANT, ""]


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
    n, rejected = 150, 0
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
    assert tested["reason"].item() == NO_ERROR
    assert rs.wald_test(ensemble(np.zeros((9, 5)), **REFITS))["reason"].item() == NO_ERROR


def test_folds_are_tested_by_means_over_parts_of_the_axis():
    """Noise of single points is no noise of the effect: each member is 1 on average."""
    rng = np.random.default_rng(6)
    waves = np.sin(2 * np.pi * rng.uniform(0, 1, (20, 1)) + 2 * np.pi * np.arange(100) / 20)
    members = 1 + 0.02 * rng.standard_normal((20, 1)) + 3 * waves
    tested = rs.wald_test(ensemble(members, **FOLDS))
    parts = members.reshape(20, 5, 20).mean(axis=2)
    # Whole waves in each part.
    assert np.ptp(parts) < 0.2
    assert tested["p_value"].item() < 0.001
    flat = rs.wald_test(ensemble(members - members.mean(axis=0), **FOLDS))
    assert not flat["p_value"].item() < 0.05


@pytest.mark.thorough
def test_a_line_without_an_average_effect_says_why():
    data = pd.DataFrame({"c": list("uvw") * 40, "y": np.arange(120.0)})
    found = rs.cross_effects(
        lambda rows: rows.groupby("c")["y"].mean(),
        lambda means, rows: rs.ale(lambda X: X["c"].map(means), rows[["c"]], progress=False),
        data, n_folds=3, n_repeats=2, n_jobs=1, rng=0, progress=False,
    )  # fmt: skip
    notes = rs.summary(found).notes
    assert "No average effect, as its levels have no order: c." in notes
    assert any("do not hold the bias of a learner" in note for note in notes)
