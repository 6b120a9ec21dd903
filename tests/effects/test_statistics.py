"""Statistics of the local effects in a bin: what holds of all of them, then each by itself."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest

import rhale_stats as rs
from rhale_stats.effects.in_bins import in_bins
from rhale_stats.effects.statistics import STATISTICS, statistic_of

RNG = np.random.default_rng(5)


def value(name, g, weight=None):
    """The statistic of some numbers in any order."""
    g = np.asarray(g, dtype=float)
    order = np.argsort(g, kind="stable")
    weight = np.ones(len(g)) if weight is None else np.asarray(weight, dtype=float)
    g, weight = g[order], weight[order][:, None]
    for array in (g, weight):
        array.flags.writeable = False
    return float(STATISTICS[name].formula(g, weight)[0])


every = pytest.mark.parametrize("name", STATISTICS)


@every
def test_a_weight_is_a_number_of_rows(name):
    g, n = RNG.normal(size=15), RNG.integers(0, 4, 15)
    assert value(name, g, n) == pytest.approx(value(name, np.repeat(g, n)), rel=1e-12)


@every
def test_it_moves_with_the_local_effects(name):
    g, w = RNG.normal(size=20), RNG.exponential(size=20)
    assert value(name, 3 * g + 2, w) == pytest.approx(3 * value(name, g, w) + 2, rel=1e-12)
    assert value(name, -g, w) == pytest.approx(-value(name, g, w), rel=1e-12)
    assert value(name, g, 7 * w) == pytest.approx(value(name, g, w), rel=1e-12)
    assert value(name, g[:1]) == pytest.approx(g[0], rel=1e-12)


@every
def test_draws_are_independent_of_each_other(name):
    g, w = np.sort(RNG.normal(size=12)), RNG.exponential(size=(12, 5))
    together = STATISTICS[name].formula(g, w)
    assert together.shape == (5,)
    # A product of matrices sums in another order than one of vectors.
    np.testing.assert_allclose(
        together, [value(name, g, w[:, k]) for k in range(5)], rtol=1e-12, atol=0
    )


@every
def test_words_name_the_equation(name):
    assert ", math [" in STATISTICS[name].words
    assert STATISTICS[name].name == name


def local_effects_of(g, x):
    """Local effects of one feature with these values."""
    x = np.asarray(x, dtype=float)[:, None]
    jacobian = np.asarray(g, dtype=float)[:, None]
    return rs.local_effects(None, x, jacobian=jacobian, progress=False)


@every
def test_bins_hold_the_statistic_of_their_rows(name):
    x, g = RNG.uniform(0, 3, 90), RNG.standard_t(3, size=90)
    effect = in_bins(local_effects_of(g, x), STATISTICS[name], rs.GivenBins([0, 1, 2, 3]), "start")
    expected = [value(name, g[(x >= k) & (x < k + 1)]) for k in range(3)]
    np.testing.assert_allclose(effect["effect"][0], expected, rtol=1e-12)
    np.testing.assert_allclose(effect["curve"][0], np.cumsum([0, *expected]), rtol=1e-12)
    assert statistic_of(effect).name == name
    share = effect["weight_share"].values[0]
    assert effect["average_effect"].item() == pytest.approx(np.sum(share * expected), rel=1e-12)


@pytest.mark.slow
@every
def test_bootstrap_intervals_cover(name):
    """One bin of 100 gamma distributed local effects; the truth is that of a million."""
    rng = np.random.default_rng(17)
    truth, n_samples, hits = value(name, rng.gamma(3, size=1_000_000)), 400, 0
    # The mean by its replicates, too.
    statistic = STATISTICS[name]._replace(name=f"{name} by replicates")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(STATISTICS, statistic.name, statistic)
        for sample in range(n_samples):
            local = local_effects_of(rng.gamma(3, size=100), np.linspace(0, 1, 100))
            effect = in_bins(local, statistic, rs.EqualWidthBins(1), "start")
            boot = rs.bootstrap(local, effect, n_resamples=400, rng=sample, progress=False)
            low, high = rs.confint(effect, boot)["effect_ci"].values[0, 0]
            hits += low <= truth <= high
    # Percentile intervals of 100 rows may be short by 1.5 %: Student's t and the divisor.
    assert binomtest(hits, n_samples, 0.935, alternative="less").pvalue > 0.001
    assert binomtest(hits, n_samples, 0.95, alternative="greater").pvalue > 0.001


def test_mean_by_hand():
    assert value("mean", [1, 2, 6]) == 3
    assert value("mean", [1, 2, 6], [3, 1, 0]) == 1.25
