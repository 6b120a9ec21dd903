"""The page of effects, part by part."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import rhale_stats as rs
from rhale_stats.effects.tables import curve_extents, effect_page
from rhale_stats.effects.values import importances
from rhale_stats.printing.text import number_text
from tests.effects.mixed import mixed_effect
from tests.helpers import local_of

MEANT = (
    "importance: standard deviation of the curve over the rows. H: heterogeneity in the bins times "
    "the standard deviation of the feature. lowest, highest: of the curve. Sizes of curves are "
    "over the inner 98 % of the rows."
)
MORE = "summary(effect, {0!r}), plot(effect, {0!r}), tidy(effect)"


def columns_of(effect):
    """The numbers of the columns by their heads, from the variables of the effect."""
    curve = effect["curve"].values
    known = np.isfinite(curve)
    ordered = effect["feature_kind"].values != "nominal"
    ends = np.where(known, curve, np.inf).min(axis=1), np.where(known, curve, -np.inf).max(axis=1)
    named = {"H": "heterogeneity_output", "avg effect": "average_effect",
             "std err": "average_effect_se"}  # fmt: skip
    found = {"importance": importances(effect)}
    found |= {head: np.where(ordered, effect[name], np.nan) for head, name in named.items()}
    if "average_effect_ci" in effect:
        bounds = effect["average_effect_ci"].values
        for end, head in enumerate(("[0.05", "0.95]")):
            found[head] = np.where(ordered, bounds[:, end], np.nan)
    return found | dict(zip(("lowest", "highest"), ends, strict=True))


@pytest.mark.parametrize("with_intervals", [False, True])
def test_page_of_features_of_every_kind(with_intervals):
    """The largest first, no effect after all others but the constant feature."""
    effect = mixed_effect()
    if with_intervals:
        effect = rs.confint(effect, level=0.9)
    page = effect_page(effect, 10)
    assert page.title == "ALE: effects on output"
    assert page.facts == (
        "60 rows; 5 features; local effects: finite_difference; bins: EqualWidthBins",
        "Uncertainty: rows (model as given)",
    )
    assert page.more == MORE.format("a")
    (table,) = page.tables
    columns = columns_of(effect)
    assert table.heads == ["", *columns]
    assert table.notes == (MEANT,)
    assert [line[0] for line in table.lines] == ["a", "m", "l", "z", "c"]
    names = effect["feature"].values.tolist()
    for line in table.lines[:3]:
        at = names.index(line[0])
        assert line[1:] == [number_text(values[at]) for values in columns.values()]
    assert table.lines[3] == ["z", *["0"] * len(columns)]
    assert table.lines[4] == ["c", "constant", *[""] * (len(columns) - 1)]


def test_the_largest_of_many_features():
    page = effect_page(mixed_effect(), 2)
    (table,) = page.tables
    assert [line[0] for line in table.lines] == ["a", "m"]
    assert table.notes == ("2 of 5 features.", MEANT)


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
    (table,) = effect_page(effect, 5).tables
    assert [line[0] for line in table.lines] == ["x1", "x0"]


def test_order_by_the_rows_and_not_by_the_range():
    """Few rows are where the longer curve is steep."""
    rng = np.random.default_rng(0)
    x = np.column_stack([np.append(rng.uniform(0, 1, 99), 9), rng.uniform(0, 5, 100), np.ones(100)])
    effect = rs.rhale(local_of(x, np.ones_like(x)), bins=rs.EqualWidthBins(1), weighting="rows")
    (table,) = effect_page(effect, 5).tables
    assert [line[0] for line in table.lines] == ["x1", "x0", "x2"]
    assert importances(effect)[1] > importances(effect)[0]
