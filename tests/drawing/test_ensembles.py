"""Pictures of several models: what is drawn is in the Dataset."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import rhale_stats as rs
from tests.ensembles.made import REFITS, ensemble

CURVES = np.random.default_rng(4).standard_normal((41, 5))


def area(panel, label):
    """The ends of a filled area, by its label in the legend."""
    found = next(one for one in panel.collections if one.get_label().startswith(label))
    points = found.get_paths()[0].vertices
    return points[:, 1].min(), points[:, 1].max()


def test_what_is_drawn_is_in_the_result():
    made = rs.confband(rs.confint(ensemble(CURVES, CURVES**2, se_rows=0.1)), rng=0)
    upper, lower = rs.plots.effect(made, "x")
    lines = {line.get_label(): line for line in upper.lines}
    assert_allclose(lines["estimate:\ncurve"].get_ydata(), made["curve_estimate"][0])
    below = lines["95 % credible interval,\npointwise"]
    assert_allclose(below.get_ydata(), made["curve_ci"][0, :, 0])
    band = next(line for label, line in lines.items() if label.startswith("95 % band"))
    assert_allclose(band.get_ydata(), made["curve_band"][0, :, 0])
    curve = made["curve_estimate"].values[0]
    for label, name in (
        ("± standard error:\nmodels", "curve_se"),
        ("± standard error:\nrows", "curve_se_rows"),
    ):
        se = made[name].values[0]
        assert_allclose(area(upper, label), [(curve - se).min(), (curve + se).max()])
    effect = made["effect_estimate"].values[0]
    spread = made["heterogeneity_estimate"].values[0]
    ends = (effect - spread).min(), (effect + spread).max()
    assert_allclose(area(lower, "± heterogeneity"), ends)
    assert lower.get_xlabel() == "x"


@pytest.mark.thorough
def test_words_of_intervals():
    for attrs, words in (
        ({"source": "models"}, "95 % spread of the models,\npointwise"),
        (REFITS, "95 % confidence interval,\npointwise"),
    ):
        upper = rs.plots.effect(ensemble(CURVES, **attrs), "x")[0]
        assert words in [line.get_label() for line in upper.lines]
        plt.close("all")


def test_features_levels_and_profiles():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.uniform(size=60), "k": rng.choice(["u", "v"], 60), "c": 1.0})
    model = lambda b, X: b * X["a"] + (X["k"] == "u") * X["a"]  # noqa: E731
    draws = np.array([1.0, 2.0, 3.0])
    found = rs.over_models(model, table, draws=draws, method="pdp", features=["a", "k", "c"])
    panels = rs.plots.effects(found)
    assert [panel.get_title() for panel in panels] == ["a", "k", "c"]
    assert [text.get_text() for text in panels[1].get_xticklabels()] == ["u", "v"]
    assert "constant" in panels[2].texts[0].get_text()
    assert len(rs.plots.effect(found, "a")) == 1
    some = rs.plots.effects(found, max_features=1)
    assert [panel.get_title() for panel in some] == ["a"]
    assert "the 1 most important of 3 features" in some[0].figure.get_supxlabel()
    with pytest.raises(ValueError, match="features must name at least one"):
        rs.plots.effects(found, [])
    with pytest.raises(KeyError, match="feature must be one of 'a', 'k', 'c'"):
        rs.plots.effect(found, "z")
    _, (upper, lower) = plt.subplots(2)
    with pytest.raises(ValueError, match="ax must be 1 matplotlib Axes"):
        rs.plots.effect(found, "a", ax=[upper, lower])


def test_forest_has_the_intervals_of_confint():
    made = ensemble(CURVES, **REFITS)
    panel = rs.plots.forest(made, "importance")
    assert panel.lines[-1].get_xdata() == pytest.approx(made["importance_estimate"].values)
    with pytest.raises(ValueError, match="got 'curve'. There are average_effect, importance"):
        rs.plots.forest(made, "curve")


def test_difference_of_draws_has_no_p():
    a, b = ensemble(CURVES), ensemble(CURVES + 1)
    assert not rs.plots.compare(rs.compare(a, b, rng=0), "x").texts
    refits = rs.compare(ensemble(CURVES, **REFITS), ensemble(CURVES + 1, **REFITS), rng=0)
    assert "p = " in rs.plots.compare(refits, "x").texts[0].get_text()
