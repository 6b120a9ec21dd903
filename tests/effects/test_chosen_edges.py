"""Standard errors of bin effects where the rule chose edges on the same rows."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import rhale_stats as rs
from rhale_stats.schema.feature_result import one_feature


def smooth(n, n_samples, seed=0):
    """Local effects sin 3z + z/2 with noise of variance 1, a feature a sample."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(n, n_samples))
    return rs.local_effects(None, x, jacobian=np.sin(3 * x) + x / 2 + rng.normal(size=x.shape))


def targets(effect):
    edges = effect.rhale.in_bins()["edge_value"].values
    integral = -np.cos(3 * edges) / 3 + edges**2 / 4
    return np.diff(integral, axis=1) / np.diff(edges, axis=1)


def given(local, effect, feature=0):
    """The same bins, as if they had been given."""
    bins = rs.GivenBins(one_feature(effect, feature).bin_edges)
    return rs.std_error(rs.rhale(local.isel(feature=[feature]), bins=bins))


@pytest.mark.parametrize("rule", [rs.AdaptiveBins(degree=0), rs.OptimalBins()])
def test_more_than_in_given_bins(rule):
    local = smooth(1000, 1, seed=3)
    effect = rs.std_error(rs.rhale(local, bins=rule))
    assert effect.sizes["bin"] > 1
    fixed = given(local, effect)
    assert_allclose(effect["effect"], fixed["effect"])
    assert (effect["effect_se"].values > fixed["effect_se"].values).all()
    assert_allclose(effect["curve_se"], fixed["curve_se"])
    assert_allclose(np.diagonal(rs.vcov(effect, "x0", of="effect")), effect["effect_se"][0] ** 2)


def test_same_as_in_given_bins_where_nothing_was_chosen():
    local = smooth(1000, 1)
    for options in (
        {"bins": rs.OptimalBins(), "weighting": "rows"},
        {"bins": rs.EqualWidthBins(3)},
    ):
        effect = rs.std_error(rs.rhale(local, **options))
        edges = one_feature(effect, 0).bin_edges
        weighting = options.get("weighting", "axis")
        fixed = rs.rhale(local, bins=rs.GivenBins(edges), weighting=weighting)
        assert_allclose(effect["effect_se"], rs.std_error(fixed)["effect_se"])


@pytest.mark.filterwarnings("ignore:Gaps", "ignore:Bins without rows")
def test_the_ends_of_a_gap_are_not_chosen():
    """Beside a gap a bin has the error of a given one, but for edges that were chosen."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(0, 3, 500), rng.uniform(50, 52, 300)])
    flat, steep = rng.normal(size=800), np.where((x < 1.5) | (x > 10), 0.0, 4.0)
    local = rs.local_effects(None, np.stack([x, x], 1), jacobian=np.stack([flat, flat + steep], 1))
    effect = rs.std_error(rs.rhale(local))
    assert effect["n_obs"].values.tolist() == [[500, 0, 300, 0], [*effect["n_obs"].values[1]]]
    assert (np.isfinite(effect["effect_se"]) == (effect["n_obs"] > 0)).all()
    for feature, n_bins, chosen in ((0, 3, []), (1, 4, [0, 1])):
        of_given = given(local, effect, feature)["effect_se"].values[0]
        ratio = effect["effect_se"].values[feature, :n_bins] / of_given
        assert_allclose(np.delete(ratio, [*chosen, n_bins - 2]), 1)
        assert (ratio[chosen] > 1.001).all()


@pytest.mark.thorough
def test_note_of_the_summary():
    local = smooth(1000, 1)
    included = "They include the choice of the bin edges"
    effect = rs.rhale(local)
    for chosen in (effect, rs.std_error(effect, local, groups=np.arange(1000) // 4)):
        assert included in str(rs.summary(chosen, "x0"))
    over_rows = str(rs.summary(rs.rhale(local, weighting="rows"), "x0"))
    assert "They treat the bin edges as fixed" in over_rows
    assert included not in over_rows


def test_groups_of_one_row_add_what_rows_do():
    """Up to the factors of groups, n / (n - 1) and the like."""
    local = smooth(2000, 1, seed=3)
    effect = rs.rhale(local, bins=rs.AdaptiveBins(degree=0))
    by_groups = rs.std_error(effect, local, groups=np.arange(2000))
    assert effect.sizes["bin"] > 2
    assert_allclose(by_groups["effect_se"], rs.std_error(effect)["effect_se"], rtol=0.02)
    variances = np.diagonal(rs.vcov(by_groups, "x0", of="effect"))
    assert_allclose(variances, by_groups["effect_se"][0] ** 2)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "n_groups"), [(300, 0), (1000, 0), (1000, 50)])
def test_coverage_of_chosen_bins(n, n_groups):
    """Without the choice of edges 89 to 91 %: that many samples tell the two apart."""
    local, groups = smooth(n, 250, seed=n), None
    if n_groups:
        rng = np.random.default_rng(n_groups)
        groups = rng.integers(0, n_groups, n)
        local = local.assign(
            local_effect=local["local_effect"] + rng.normal(size=(n_groups, 250))[groups] / 2
        )
    effect = rs.confint(rs.std_error(rs.rhale(local), local, groups=groups))
    truth, bounds = targets(effect), effect["effect_ci"].values
    there = np.isfinite(truth)
    hit = (bounds[..., 0] <= truth) & (truth <= bounds[..., 1])
    share = hit[there].mean()
    # Bins of one sample are correlated, so that its bins count as one.
    error = np.sqrt(0.05 * 0.95 / 250)
    assert 0.93 - 2 * error < share < 0.97 + 2 * error
    z2 = ((effect["effect"].values - truth) / effect["effect_se"].values)[there] ** 2
    assert z2.mean() < 1.25  # 1.5 without the choice of edges
