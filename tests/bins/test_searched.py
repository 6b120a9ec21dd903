"""Best number of equal bins (math [19]) against trying them all."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import rhale_stats as rs
from rhale_stats.arrays.moments import Moments
from rhale_stats.bins.description import describe
from rhale_stats.bins.rule import BinRule, Candidates, Column
from tests.bins.test_rule import estimate, frozen, sample
from tests.helpers import daily

rule_of = rs.BestEqualWidthBins


def brute_force(x, g, rule, **options):
    """The loss of every number of bins, each estimated by itself with `EqualWidthBins`."""
    losses = []
    for n_bins in range(1, rule.max_bins + 1):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Bins without rows")
            effect = estimate(x, g, rs.EqualWidthBins(n_bins), **options).rhale.in_bins()
        if (effect["n_effective"] < max(rule.min_obs, 2)).any():
            losses.append(np.inf)
            continue
        width = np.ptp(x) / n_bins
        share = effect["weight_share"].values
        terms = effect["heterogeneity"].values * width * (1 - rule.discount * share)
        losses.append(terms.sum())
    return np.array(losses)


# --- by hand -------------------------------------------------------------------------------------


def test_toy_by_hand():
    """x on [0, 4], local effects 0, 2, 0, 2 below 2 and 9, 11, 9, 11 above it."""
    x = frozen([0, 0.6, 1.3, 1.7, 2.4, 2.9, 3.3, 4])
    g = frozen([0, 2, 0, 2, 9, 11, 9, 11])
    effect = estimate(x, g, rule_of(max_bins=4, min_obs=2, discount=0.2))
    one = np.sqrt((8 * 4.5**2 + 8 * 1) / 7)  # eight rows, 4.5 from the middle and 1 about that
    two = np.sqrt(4 / 3)
    expected = [
        4 * one * (1 - 0.2),
        2 * (two * (1 - 0.2 / 2)) * 2,
        # Thirds: 0, 2, 0 and 2, 9 and 11, 9, 11.
        4 / 3 * (2 * np.sqrt(4 / 3) * (1 - 0.2 * 3 / 8) + np.sqrt(24.5) * (1 - 0.2 / 4)),
        # Quarters: pairs 2 apart.
        4 * np.sqrt(2) * (1 - 0.2 / 4),
    ]
    assert_allclose(effect["bin_loss"], expected, rtol=1e-12)
    assert effect["n_bins"] == 2
    assert_allclose(effect["edge_value"].dropna("edge"), [0, 2, 4], atol=1e-14)


def test_bins_with_too_few_rows_are_not_allowed():
    x = frozen([0, 0.6, 1.3, 1.7, 2.4, 2.9, 3.3, 4])
    g = frozen([0, 2, 0, 2, 9, 11, 9, 11])
    effect = estimate(x, g, rule_of(max_bins=4, min_obs=3))
    assert_array_equal(np.isfinite(effect["bin_loss"]), [True, True, False, False])


# --- another route -------------------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize(
    "rule", daily([rule_of(12, 2, 0.0), rule_of(15, 10, 0.2), rule_of(16, 5, 0.9)]), ids=repr
)
def test_losses_are_those_of_trying_every_number(rule):
    for seed in range(3):  # each of the kinds of x
        x, g = sample(seed)
        if len(x) < rule.min_obs:
            continue
        effect = estimate(x, g, rule)
        expected = brute_force(x, g, rule)
        assert_array_equal(np.isinf(effect["bin_loss"]), np.isinf(expected), err_msg=str(seed))
        assert_allclose(effect["bin_loss"], expected, rtol=1e-10, err_msg=str(seed))
        best = 1 + int(np.argmin(expected))
        assert effect["n_bins"] == best
        same = estimate(x, g, rs.EqualWidthBins(best))
        # What is stored, and what follows from it in bins.
        for one, other in ((effect, same), (effect.rhale.in_bins(), same.rhale.in_bins())):
            for name in other.data_vars:
                # Cells are merged to bins: sums of 300 terms in another order.
                assert_allclose(
                    one[name], other[name], rtol=1e-9, atol=1e-10 * np.abs(g).max(), err_msg=name
                )
            assert_allclose(one["edge_value"], other["edge_value"], rtol=0, atol=1e-12)


@pytest.mark.thorough
def test_losses_with_precision_weights(rng):
    x, g = sample(3)
    weights, rule = rng.uniform(0.2, 3, len(x)), rule_of(15, 8)
    effect = estimate(x, g, rule, weights=weights)
    assert_allclose(effect["bin_loss"], brute_force(x, g, rule, weights=weights), rtol=1e-10)


@pytest.mark.thorough
def test_several_features_each_with_its_own(rng):
    X = pd.DataFrame({name: rng.uniform(size=200) for name in "abc"}).assign(d=1.0)
    g = np.column_stack([9 * X["a"], np.sign(X["b"] - 0.5), rng.normal(size=200), X["d"]])
    rule = rule_of(20)
    effect = rs.rhale(rs.local_effects(None, X, jacobian=g), bins=rule)
    assert effect["bin_loss"].dims == ("feature", "n_bins_tried")
    assert_array_equal(effect["n_bins_tried"], np.arange(1, 21))
    assert effect["bin_loss"].attrs["long_name"]
    assert effect["bin_loss"].attrs["units"] == "output units"
    for position, name in enumerate("abc"):
        alone = estimate(X[name], g[:, position], rule)
        assert_array_equal(effect["bin_loss"].sel(feature=name), alone["bin_loss"])
        assert effect["n_bins"].sel(feature=name) == alone["n_bins"]
    assert effect["bin_loss"].sel(feature="d").isnull().all()
    assert effect["n_bins"].sel(feature="d") == 0


def test_only_constant_features_have_no_loss():
    local = rs.local_effects(None, np.ones((20, 1)), jacobian=np.ones((20, 1)))
    assert rs.rhale(local, bins=rule_of())["n_bins"].values.tolist() == [0]


# --- what it chooses -----------------------------------------------------------------------------


def test_a_steep_line_takes_many_bins_and_a_step_two(rng):
    x = rng.uniform(size=2000)
    assert estimate(x, 100 * x, rule_of(40))["n_bins"] > 30
    ends = np.concatenate([x[:-2], [0, 1]])
    step = np.where(ends < 0.5, 0.0, 10.0)
    effect = estimate(ends, step, rule_of(40))
    # No spread with any even number of bins: the fewest.
    assert effect["n_bins"] == 2
    assert_array_equal(effect["effect"], [0, 10])


# --- invariants ----------------------------------------------------------------------------------


def even(seed, n=240, cells=60):
    """x on [0, 1] with both ends, away from all edges of up to 10 bins.

    60 / K is a whole number for K = 1, 2, 3, 4, 5, 6, 10 only; rows keep away from j / K of 7 to 9
    as well.
    """
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=20 * n)
    grid = np.unique(np.concatenate([np.arange(k + 1) / k for k in range(1, 11)]))
    far = np.abs(x[:, None] - grid).min(axis=1) > 1e-3
    x = x[far][:n]
    x[:2] = 0, 1
    return x, 3 * np.sin(6 * x) + rng.normal(size=n) / 2


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("a", "c", "d"), [(1, 100, 1.7e9), (-1e-6, 1, 0), (1e9, 1e-6, -3), (2, -5, 1), (1, -1e6, 1e6)]
)
def test_shift_scale_and_reversal(seed, a, c, d):
    x, g = even(seed)
    rule = rule_of(10)
    plain, moved = estimate(x, g, rule), estimate(c * x + d, g * (a / c), rule)
    assert moved["n_bins"] == plain["n_bins"]
    order = slice(None, None, -1 if c < 0 else 1)
    assert_array_equal(moved["n_obs"][order], plain["n_obs"])
    # The range of time stamps, 100 beside 1.7e9, is known to nine digits.
    assert_allclose(moved["bin_loss"], abs(a) * plain["bin_loss"], rtol=1e-8)
    assert_allclose(moved["heterogeneity"][order], abs(a / c) * plain["heterogeneity"], rtol=1e-9)


def test_order_of_rows_means_nothing(rng):
    x, g = sample(0)
    order = rng.permutation(len(x))
    plain, other = estimate(x, g, rule_of(20)), estimate(x[order], g[order], rule_of(20))
    assert_allclose(other["bin_loss"], plain["bin_loss"], rtol=1e-10)
    assert other["n_bins"] == plain["n_bins"]


def test_frequency_weights_are_repeated_rows(rng):
    x, g = sample(1, n=150)
    weights = rng.integers(0, 4, 150)
    weights[[np.argmin(x), np.argmax(x)]] = 1  # the range stays
    weighted = estimate(x, g, rule_of(20), weights=weights, weight_kind="frequency")
    repeated = estimate(np.repeat(x, weights), np.repeat(g, weights), rule_of(20))
    assert_allclose(weighted["bin_loss"], repeated["bin_loss"], rtol=1e-10)
    assert weighted["n_bins"] == repeated["n_bins"]
    assert_array_equal(weighted["n_obs"], repeated["n_obs"])


# --- refused -------------------------------------------------------------------------------------


def test_fewer_rows_than_min_obs_are_refused(rng):
    x = rng.uniform(size=9)
    with pytest.raises(ValueError, match="feature 'x' has 9 rows and min_obs is 10. Lower min_obs"):
        estimate(x, x, rule_of())
    assert estimate(x, x, rule_of(min_obs=9))["n_bins"] == 1


@pytest.mark.parametrize("spread", [8.5e-4])
@pytest.mark.filterwarnings("ignore:Derivatives are known at few values")
def test_cells_below_the_resolution_of_floats_are_refused(rng, spread):
    """Edges of 99 and of 100 bins differ by 1 / 9900 of the range, where those of 100 by 1 / 100.

    Floats near 1e9 are 1.2e-7 apart.
    """
    x = 1e9 + spread * np.linspace(0, 1, 1000)
    with pytest.raises(ValueError, match="max_bins must leave cells.* of feature 'x' on"):
        estimate(x, rng.normal(size=1000), rule_of(100))


# --- labels --------------------------------------------------------------------------------------


def test_protocol_and_text():
    assert isinstance(rule_of(), BinRule)
    assert describe(rule_of(40)) == ("BestEqualWidthBins", "max_bins=40, min_obs=10, discount=0.2")


def test_rules_that_compare_no_numbers_of_bins_have_no_loss():
    x, g = sample(2)
    assert estimate(x, g, rule_of(15))["bin_loss"].sizes == {"n_bins_tried": 15}
    for rule in (rs.OptimalBins(), rs.GreedyBins(), rs.EqualWidthBins(3)):
        assert "bin_loss" not in estimate(x, g, rule)


class TestAmongCells:
    """Equal widths where edges must be among those of cells."""

    edges = np.array([-6.0, 0.5, 1.0, 2.0, 3.5, 4.0])

    def candidate(self, n=20):
        mean = np.array([0.0, 0.0, 0.0, 5.0, 5.0])
        rows = np.full(5, float(n))
        moments = Moments(rows, rows, rows, mean, rows - 1, (self.edges[1:] + self.edges[:-1]) / 2)
        return Candidates("x", moments, 0.0, 4.0, 0.0, edges=self.edges)

    def test_starts_are_the_nearest_cells(self):
        """Of n bins on [0, 4]; the first is the first cell, and the last begins no new cell."""
        rule = rs.BestEqualWidthBins(max_bins=9)
        for n_bins in range(1, 10):
            wanted = np.arange(n_bins) * 4 / n_bins
            nearest = np.abs(self.edges - wanted[:, None]).argmin(axis=1)
            nearest[0] = 0
            expected = sorted(set(np.minimum(nearest, 4).tolist()))
            assert rule._starts(self.candidate(), n_bins).tolist() == expected
            # The same where the axis does not begin at 0.
            moved = replace(self.candidate(), low=3.0, high=7.0, edges=self.edges + 3)
            assert rule._starts(moved, n_bins).tolist() == expected

    def test_losses_have_the_widths_between_these_edges(self):
        """Width times standard deviation times one less the discounted share."""
        rule = rs.BestEqualWidthBins(max_bins=2, discount=0.3)
        (found,) = rule.choose([self.candidate()])
        # Two bins: three cells of equal mean up to 2, and two from there; their first is at -6.
        variance = [3 * 19 / 59, 2 * 19 / 39]
        two = sum(
            width * np.sqrt(one) * (1 - 0.3 * share)
            for width, one, share in zip((8, 2), variance, (0.6, 0.4), strict=True)
        )
        between = 60 * 40 / 100 * 25
        one = 10 * np.sqrt((5 * 19 + between) / 99) * 0.7
        np.testing.assert_allclose(found.losses, [one, two])
        assert found.starts.tolist() == [0, 3]


def test_of_equal_losses_the_smallest_number_of_bins():
    """Without any spread all losses are 0, and 0 counts as equal to 0."""
    rows = np.full(12, 10.0)
    none = np.zeros(12)
    moments = Moments(rows, rows, rows, none, none, np.arange(12.0))
    (found,) = rs.BestEqualWidthBins(max_bins=4).choose([Candidates("x", moments, 0.0, 1.0, 0.0)])
    assert found.losses.tolist() == [0] * 4
    assert found.starts.tolist() == [0]


def test_one_bin_at_most_is_one_cell():
    column = Column("x", np.array([1.0, 2.0, 4.0]), 1.0, 4.0, None)
    assert np.asarray(rs.BestEqualWidthBins(max_bins=1).cells(column).edges).tolist() == [1, 4]


def test_optimal_bins_hold_a_twentieth_of_the_rows_by_default():
    cells = Moments(*(np.array([[3.0, 5.0, 12.0], [1.0, 1.0, 2.0]]),) * 6)
    assert rs.OptimalBins()._least_rows(cells).tolist() == [1, 0.2]
    assert rs.OptimalBins(min_obs=7)._least_rows(cells).tolist() == [7, 7]
