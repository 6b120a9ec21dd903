"""Notes on tails that are too heavy for intervals of the heterogeneity (math [92])."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import rhale_stats as rs
from rhale_stats.effects.tails import kurtosis, tail_notes


def effect_of(g, n_bins=1):
    x = np.random.default_rng(0).permutation(np.linspace(0, 1, len(g)))[:, None]
    local = rs.local_effects(None, x, jacobian=g[:, None], features=0)
    rule = rs.EqualWidthBins(n_bins)
    return rs.std_error(rs.rhale(local, bins=rule, weighting="rows"))


def test_kurtosis_of_one_bin_is_that_of_scipy(rng):
    g = rng.exponential(size=400)
    # The heterogeneity has ddof 1.
    expected = stats.kurtosis(g, fisher=False) * (399 / 400) ** 2
    assert_allclose(kurtosis(effect_of(g)), expected, rtol=1e-10)


@pytest.mark.parametrize(
    ("draw", "heavy"),
    [("standard_normal", False), ("random", False), ("standard_exponential", True)],
)
def test_only_heavy_tails_are_noted(draw, heavy, rng):
    effect = effect_of(getattr(rng, draw)(2000), n_bins=4)
    notes = tail_notes(effect, None)
    assert bool(notes) is heavy
    assert any("heavy tails" in note for note in rs.summary(effect).notes) is heavy


def test_few_rows_of_large_weight_are_noted(rng):
    """Weights of which few are large; nearly equal ones have no note."""
    x, g = rng.uniform(size=(400, 1)), rng.normal(size=(400, 1))
    few = np.where(rng.uniform(size=400) < 0.02, 20.0, 1.0)
    for weight, noted in ((few, True), (rng.uniform(1, 2, 400), False)):
        local = rs.local_effects(None, x, jacobian=g, weights=weight)
        effect = rs.std_error(rs.rhale(local, bins=rs.EqualWidthBins(4)))
        notes = rs.summary(effect).notes
        assert any("rows of large weight" in note for note in notes) is noted


def test_a_feature_without_spread_has_no_note():
    assert not tail_notes(effect_of(np.ones(50)), None)


def test_replicates_of_spreads_are_bca_by_default(rng):
    x = rng.random((300, 1))
    local = rs.local_effects(None, x, jacobian=rng.standard_normal((300, 1)), features=0)
    effect = rs.rhale(local, bins=rs.EqualWidthBins(5))
    boot = rs.bootstrap(local, effect, n_resamples=200, rng=0, progress=False)
    usual, bca, percentile = (
        rs.confint(effect, boot, method=method) for method in (None, "bca", "percentile")
    )
    for name in ("heterogeneity_ci", "heterogeneity_index_ci"):
        assert_allclose(usual[name], bca[name])
        assert np.abs(usual[name] - percentile[name]).max() > 0
    for name in ("effect_ci", "curve_ci"):
        assert_allclose(usual[name], percentile[name])


def test_rounding_has_no_tails():
    """Local effects that are equal but for rounding, in a few rows."""
    g = np.full(600, 2.0)
    g[::50] += 4e-16
    effect = effect_of(g, 3)
    assert (effect["heterogeneity"] > 0).any()
    assert np.isnan(kurtosis(effect)).all()
    assert not any("tails" in note for note in rs.summary(effect, 0).notes)
