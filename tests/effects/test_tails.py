"""Notes on tails that are too heavy for intervals of the heterogeneity (math [92])."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from numpy.testing import assert_allclose
from scipy import stats

import rhale_stats as rs
from rhale_stats.arrays.cell_moments import FIELDS
from rhale_stats.effects.tables import kurtosis, tail_notes


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
    notes = tail_notes(effect)
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
    assert not tail_notes(effect_of(np.ones(50)))


@pytest.mark.thorough
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


class TestByHand:
    """Two features of three bins: kurtosis 6 and 4 in the first, 3 in the second."""

    def effect(self, kurtosis=(6.0, 4.0, 100.0), rows=(30.0, 10.0, 3.0), **more):
        spread = np.array([[2.0, 1.0, 1.0], [1.0, 1.0, 0.0]])
        fourth = np.array([kurtosis, (3.0, 3.0, 7.0)]) * spread**4
        dims, n_rows = ("feature", "bin"), np.array([rows, (40.0, 40.0, 40.0)])
        moments, edges = np.zeros((2, 4, len(FIELDS))), np.tile(np.arange(4.0), (2, 1))
        for name in ("n_obs", "weight", "weight_sq"):
            moments[:, :3, FIELDS.index(name)] = n_rows
        moments[:, :3, FIELDS.index("x0g4")] = n_rows * fourth
        return xr.Dataset(
            {
                "heterogeneity": (dims, spread),
                "heterogeneity_se": (dims, spread),
                "moments": (("feature", "edge", "moment"), moments),
                "effect": (dims, np.zeros((2, 3))),
                "local_effect_error": ("feature", [1e-6, 1e-6]),
                **{name: (dims, np.array(one)) for name, one in more.items()},
            },
            {
                "feature": ["a", "b"],
                "n_bins": ("feature", [3, 3]),
                "feature_kind": "continuous",
                "edge_value": (("feature", "edge"), edges),
                "bin_left": (dims, edges[:, :-1]),
                "bin_right": (dims, edges[:, 1:]),
            },
        )

    def test_the_kurtosis_of_all_bins_by_their_rows(self):
        """Bins of fewer than four rows, or without spread, do not count."""
        np.testing.assert_allclose(kurtosis(self.effect()), [(6 * 30 + 4 * 10) / 40, 3])
        four = self.effect(rows=(30.0, 10.0, 4.0))
        np.testing.assert_allclose(kurtosis(four)[0], (180 + 40 + 400) / 44)
        none = self.effect()
        none["heterogeneity"] *= 1e-7
        assert np.isnan(kurtosis(none)).all()

    def test_notes(self):
        (note,) = tail_notes(self.effect())
        assert "a (5.5). Intervals of heterog. allow for it" in note
        assert "b (" not in note
        assert not tail_notes(self.effect().sel(feature=["b"]))
        assert not tail_notes(self.effect(kurtosis=(4.5, 4.5, 0.0)))
        assert not tail_notes(self.effect().drop_vars("heterogeneity_se"))

    def test_bands_where_bins_have_few_rows(self):
        skewed = {"effect_skewness": [[0.1] * 3] * 2}
        (note,) = tail_notes(self.effect(**skewed))
        assert "allow for skewness, but bands of effects are too narrow with fewer than 100" in note
        (note,) = tail_notes(self.effect(rows=(100.0, 100.0, 100.0), **skewed))
        assert note.endswith("those of effects and curves allow for skewness.")
        (note,) = tail_notes(self.effect(rows=(100.0, 100.0, 1.0), **skewed))
        assert "bands of effects are too narrow" in note
        # One bin has no band.
        (note,) = tail_notes(self.effect(rows=(30.0, 0.0, 0.0), **skewed))
        assert note.endswith("those of effects and curves allow for skewness.")

    def test_few_rows_of_large_weight(self):
        def named(rows, sign):
            light = self.effect(kurtosis=(3.0, 3.0, 3.0), error_rows=rows)
            light["skewness_sign"] = "feature", sign
            return tail_notes(light)

        nan = np.nan
        few = [[9.0, 0.0, nan], [29.0, 29.0, 31.0]]
        (note,) = named(few, [0, 1])
        assert "a (9), b (29)" in note
        # Without skewness ten rows are enough.
        (note,) = named(few, [0, 0])
        assert "a (9)" in note
        assert "b (" not in note
        assert not named([[10.0, 10.0, 10.0], [30.0, 30.0, 30.0]], [0, 1])
