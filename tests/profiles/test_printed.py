"""Profiles as printed: facts, lines and notes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import rhale_stats as rs
from rhale_stats.profiles.tables import summary
from tests.helpers import summary_body as body
from tests.helpers import summary_facts as facts

CURVES = "Curves: mean of the ICE curves."
SPREAD = (
    "importance: standard deviation of the curve over the rows. heterog.: root mean square of the "
    "spread about it. Both are in units of the output."
)
SHARE = "share: share of the rows at the point. Rows between two points count in part for both."


def test_a_line_for_every_feature(known):
    found = summary(known, None, 0.95)
    title, above = facts(found)
    assert title == "Partial dependence: effects on price [EUR]"
    assert above == {
        "Rows:": "10",
        "Model asked for rows:": "50",
        "Weights:": "none",
        "Curve centred at:": "mean",
        "Uncertainty:": "rows (model as given)",
    }
    heads, *lines = body(found)
    words = ["points", "rows", "importance", "heterog.", "lowest", "highest"]
    assert " ".join(heads).split() == words
    assert lines == [
        ["a", "3", "10", "1.5", "0.9", "-1", "2"],
        ["k", "2", "9", "3", "0.6", "-0.75", "0.25"],
        ["one", "0", "constant"],
    ]
    assert found.notes == [CURVES, SPREAD]
    bare = known.drop_vars(["curve_se", "curve_cov"])
    assert "Uncertainty:" not in facts(summary(bare, None, 0.95))[1]


def test_a_line_for_every_point(known):
    found = summary(known, "a", 0.9)
    assert facts(found)[0] == "Partial dependence: effect of a [mg] on price [EUR]"
    heads, *lines = body(found)
    assert heads == ["share", "curve", "std err", "[0.05", "0.95]", "spread"]
    t = stats.t.ppf(0.95, 9)
    expected = [
        (1.0, "25%", -1.0, 0.1),
        (2.5, "50%", 0.5, 0.2),
        (4.0, "25%", 2.0, 0.4),
    ]
    assert lines == [
        [
            f"{x:.4g}",
            share,
            *(f"{one:.4g}" for one in (curve, se, curve - t * se, curve + t * se, 10 * se)),
        ]
        for x, share, curve, se in expected
    ]
    assert found.notes == [
        "Standard errors treat the model and the grid as fixed. Intervals: pointwise, Student's t.",
        CURVES,
        SHARE,
    ]


def test_points_of_numbers_beside_categories_have_their_values(known):
    """They were printed without, if another feature had levels."""
    for one in (known, known.drop_vars("level")):
        assert [line[0] for line in body(summary(one, "a", 0.95))[1:]] == ["1", "2.5", "4"]
    assert [line[0] for line in body(summary(known, "k", 0.95))[1:]] == ["u", "v"]
    assert body(summary(known, 1, 0.95))[1][1:3] == ["40%", "0.25"]
    constant = summary(known, "one", 0.95)
    assert facts(constant)[0] == "Partial dependence: effect of one on price [EUR]"
    assert body(constant)[1:] == [["one", "constant"]]


def test_a_feature_without_errors(known):
    found = summary(known.drop_vars(["curve_se", "curve_cov"]), "a", 0.95)
    heads, *lines = body(found)
    assert heads == ["share", "curve", "spread"]
    assert lines[0] == ["1", "25%", "-1", "1"]
    assert found.notes == [CURVES, SHARE]


@pytest.mark.parametrize("centering", ["mean", "none"])
def test_errors_that_hold_the_model_have_tests(known, centering):
    known["curve_se"].attrs["source"] = "rows and parameters"
    known = known.assign_attrs(centering=centering)
    half = known["curve_se"] * np.sqrt(0.5)
    found = summary(known.assign(curve_se_rows=half, curve_se_model=half), "a", 0.95)
    heads, *lines = body(found)
    assert heads == ["share", "curve", "std err", "t", "P", "[0.025", "0.975]", "spread"]
    p = 2 * stats.t.sf(2.5, 9)
    assert lines[1][:6] == ["2.5", "50%", "0.5", "0.2", "2.500", f"{p:.3f}"]
    own = ["P: of a curve that is 0 at the point, as it is centred."] if centering == "mean" else []
    assert found.notes == [
        "Standard errors treat the grid as fixed. Intervals: pointwise, Student's t. Of the "
        "variance of the curve, 50 % is due to the parameters and the rest to the rows.",
        *own,
        CURVES,
        SHARE,
    ]


def test_intervals_in_the_result_are_noted(known):
    found = summary(rs.confint(known, level=0.9), "a", 0.9)
    assert found.notes[-1] == (
        "In the result: curve_ci (0.9, pointwise, standard errors, Student's t; rows)."
    )


def test_what_shapley_values_are_is_said(known):
    error = np.array([[3.0, 4.0], [0.0, 0.0], [0.0, 0.0]])
    shap = known.assign_attrs(method="shap_dependence", shapley="sampled", n_background=40)
    shap = shap.assign(
        smoothing=("feature", [0.5, np.nan, np.nan]),
        shap_value_error=(("feature", "obs"), error),
    )
    shap["curve"].attrs["estimator"] = "smoothing spline through the Shapley values, math [45]"
    held = "Standard errors treat the smoothing and the Shapley values as fixed."
    curves = "Curves: smoothing spline through the Shapley values."
    of = "Shapley values: sampled; 40 background rows."
    whole, one = (summary(shap, feature, 0.95) for feature in (None, "a"))
    assert facts(whole)[0] == "SHAP dependence: effects on price [EUR]"

    def noise(value):
        return (
            f"Monte-Carlo standard error of a Shapley value: {value} (root mean square). More "
            f"background rows make it smaller."
        )

    # Of all features: the root of 25 / 6; of one, of 25 / 2.
    assert whole.notes == [noise("2.041"), held, curves, SPREAD, of]
    assert one.notes[1:] == [noise("3.536"), held, curves, SHARE, of]
    exact = shap.drop_vars("shap_value_error")
    assert summary(exact, None, 0.95).notes == [held, curves, SPREAD, of]
