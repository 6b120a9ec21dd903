"""What `show` prints of effects, and the ends of their curves."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import rhale_stats as rs
from rhale_stats.effects.tables import curve_extents
from rhale_stats.effects.values import importances
from tests.effects.mixed import mixed_effect
from tests.helpers import local_of


def names_in_order(effect, most=10):
    """Names of the lines that are shown."""
    return list(rs.show(effect, max_features=most).head.tables[1].stubs)


def test_features_of_every_kind():
    """The largest first, no effect after all others, with the numbers of `summary`."""
    effect = mixed_effect()
    whole, shown = rs.summary(effect).tables[1], rs.show(effect).head.tables[1]
    assert shown.stubs == ["a", "m", "l", "z", "c"]
    lines = dict(zip(whole.stubs, whole.lines, strict=True))
    assert shown.lines == [lines[name] for name in shown.stubs]
    assert lines["c"][:2] == ["0", "constant"]


def test_the_largest_of_many_features():
    assert names_in_order(mixed_effect(), 2) == ["a", "m"]
    text = str(rs.show(mixed_effect(), max_features=2))
    assert "2 of 5 lines, the most important." in text
    assert text.endswith("More: summary(result), plot(result), tidy(result)")


def test_intervals_are_those_of_the_result():
    effect = mixed_effect()
    assert "0.975]" in str(rs.show(effect))
    assert "0.95]" in str(rs.show(rs.confint(effect, level=0.9)))


def extents(effect):
    return [tuple(ends) for ends in curve_extents(effect).tolist()]


def test_ends_of_curves():
    """Of a parabola inside its bin; 0 where it is 0 up to rounding; none of a constant feature."""
    x = np.linspace(-1, 3, 201)
    X = np.column_stack([x, x, np.ones(201)])
    g = np.column_stack([2 * x, 1e-18 * x, x])
    effect = rs.rhale(local_of(X, g), bins=rs.AdaptiveBins(20), weighting="rows")
    assert effect["slope"].values[0, 0] == pytest.approx(2)
    mean = np.mean(x**2)
    nan = np.nan
    assert_allclose(extents(effect), [[-mean, 9 - mean], [0, 0], [nan, nan]], atol=1e-12)
    # The same in cells, whose edges do not include the turn.
    along = rs.rhale(local_of(X, g), bins=rs.AdaptiveBins(20))
    curve = along["curve"].values[0]
    expected = [[np.nanmin(curve), np.nanmax(curve)], [0, 0], [nan, nan]]
    assert_allclose(extents(along), expected, atol=1e-12)


def test_a_curve_within_the_numerical_error_is_flat():
    """A range below so many errors of the local effects, in bins that are all 0 up to them."""
    x = np.linspace(-1, 1, 40)
    local = local_of(np.column_stack([x, x]), np.column_stack([1e-10 * x, 1 + x]))
    effect = rs.rhale(local, bins=rs.GivenBins([-1, 0, 1]), weighting="rows")
    effect["local_effect_error"] = ("feature", [1e-9, 1e-9])
    found = extents(effect)
    assert found[0] == (0, 0)
    curve = effect["curve"].values[1]
    assert_allclose(found[1], [curve.min(), curve.max()])
    assert names_in_order(effect) == ["x1", "x0"]


def test_order_by_the_rows_and_not_by_the_range():
    """Few rows are where the longer curve is steep."""
    rng = np.random.default_rng(0)
    x = np.column_stack([np.append(rng.uniform(0, 1, 99), 9), rng.uniform(0, 5, 100), np.ones(100)])
    effect = rs.rhale(local_of(x, np.ones_like(x)), bins=rs.EqualWidthBins(1), weighting="rows")
    assert names_in_order(effect) == ["x1", "x0", "x2"]
    assert importances(effect)[1] > importances(effect)[0]
