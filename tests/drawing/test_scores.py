"""The loss of numbers of bins."""

import numpy as np
import pytest

import rhale_stats as rs
from rhale_stats.drawing import frame
from tests.helpers import labelled


def effect_of(bins):
    X = np.random.default_rng(0).uniform(-1, 1, (400, 1))
    return rs.rhale(rs.local_effects(lambda X: X[:, 0] ** 3, X), bins=bins)


def test_it_draws_the_losses_and_the_choice():
    effect = effect_of(rs.BestEqualWidthBins(12))
    panel = rs.plots.scores(effect, "x0")
    row = effect.isel(feature=0)
    known = np.isfinite(row["bin_loss"].values)
    x, y = labelled(panel, frame.LOSS).get_data()
    np.testing.assert_array_equal(x, row["n_bins_tried"].values[known])
    np.testing.assert_array_equal(y, row["bin_loss"].values[known])
    assert labelled(panel, frame.CHOSEN).get_xdata()[0] == int(row["n_bins"])


def test_other_rules_have_no_losses():
    with pytest.raises(ValueError, match="compares numbers of bins.*its rule is EqualWidthBins"):
        rs.plots.scores(effect_of(rs.EqualWidthBins(3)), "x0")
