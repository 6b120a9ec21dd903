"""Sentences of an explanation: each with its rule, and at its boundaries."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import xarray as xr

from rhale_stats.answers.sentences import (
    HEADLINES,
    MAX_POINTS,
    AnswerLine,
    additive_sentence,
    answers_in,
    fit_sentences,
    fit_text,
    headline,
    main_points,
    rows_text,
    sentences,
    uncertainty_text,
)
from rhale_stats.printing.text import permutation_text

VERDICTS = ("yes", "hardly", "cannot tell")
EVIL = "<script>&\"'{0}%s"
NAN = (np.nan, np.nan)


def line(**changes) -> AnswerLine:
    """A feature that matters, about equally for all rows."""
    facts = {
        "feature": "x",
        "label": "x",
        "importance": 2.0,
        "importance_ci": (1.5, 2.5),
        "row_spread": 0.1,
        "row_spread_ci": (0.05, 0.2),
        "movement": 2.0,
        "matters": "yes",
        "rows_differ": "hardly",
        "range": 6.0,
        "range_ci": (5.0, 7.0),
        "lowest_at": "0",
        "highest_at": "10",
        "shape": "rises",
        "unreliable": "",
        "bias_share": 0.0,
        "split_tried": False,
        "split_by": "",
        "split_rule": "",
        "split_drop": np.nan,
        "split_pvalue": np.nan,
        "apart": np.nan,
        "apart_ci": NAN,
        "apart_at": "",
        "exception": "",
    }
    return AnswerLine(**{**facts, **changes})


SPLIT = {
    "matters": "yes",
    "rows_differ": "yes",
    "split_tried": True,
    "split_by": "g",
    "split_rule": "g ≤ 1",
    "split_drop": 0.4,
    "split_pvalue": 0.01,
    "apart": 3.0,
    "apart_ci": (1.0, 5.0),
    "apart_at": "7",
}


def said(**changes):
    attrs = changes.pop("attrs", {})
    return " ".join(sentences(line(**changes), attrs))


# --- headlines ------------------------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize(("matters", "rows"), list(itertools.product(VERDICTS, VERDICTS)))
def test_every_pair_of_verdicts_has_a_headline_that_says_no_more(matters, rows):
    text = headline(line(label=EVIL, matters=matters, rows_differ=rows))
    assert text.count(EVIL) == 1
    assert text.endswith(".")
    assert len(HEADLINES) == 9
    assert ("cannot tell" in text) == ("cannot tell" in (matters, rows))
    assert ("hardly matters" in text) == (matters == "hardly")


def test_an_exception_is_said_only_where_nothing_else_matters():
    text = "between 1 and 2 (3 % of the rows)"
    flat = line(matters="hardly", rows_differ="hardly", exception=text)
    assert headline(flat) == f"x hardly matters, except {text}."
    assert "except" not in headline(line(matters="hardly", rows_differ="yes", exception=text))


# --- sentences of one feature ---------------------------------------------------------------------


def test_where_the_curve_is_lowest_and_highest():
    text = said(attrs={"output_units": "kg"})
    assert "lowest at 0 and highest at 10, a difference of 6.0 [5.0, 7.0] kg." in text
    assert "It rises." in text


def test_groups_that_were_not_compared_are_not_said_to_differ():
    assert "than in the others" not in said(**{**SPLIT, "apart": np.nan, "apart_ci": NAN})


def test_no_split_is_said_only_where_one_was_looked_for_and_rows_differ():
    none = {**SPLIT, "split_by": "", "split_rule": ""}
    assert "No split of the rows" in said(**none)
    assert "No split" not in said(**{**none, "split_tried": False})
    assert "No split" not in said(**{**none, "rows_differ": "cannot tell"})


@pytest.mark.parametrize(
    ("share", "rows", "expected"),
    [(0.1, "yes", True), (0.0999, "yes", False), (np.nan, "yes", False), (0.5, "hardly", False)],
)
def test_bin_error(share, rows, expected):
    assert ("bin error" in said(bias_share=share, rows_differ=rows)) == expected


def test_what_is_not_known_and_where_the_model_is_off():
    assert "Not reliable everywhere: few rows: 1 to 2." in said(unreliable="few rows: 1 to 2")
    place = {"fit_differs": "between 1 and 2", "fit_bias": 3.0, "fit_bias_ci": (2.0, 4.0)}
    text = said(**place, attrs={"output_units": "kg"})
    assert "off between 1 and 2 by 3.0 [2.0, 4.0] kg on average (observed less predicted)" in text


WORDS = ("significant", "effect of changing", "causes", "drives", "will ")


@pytest.mark.parametrize(("matters", "rows"), list(itertools.product(VERDICTS, VERDICTS)))
def test_words_that_claim_too_much_are_not_used(matters, rows):
    own = line(**{**SPLIT, "matters": matters, "rows_differ": rows, "bias_share": 0.3})
    text = " ".join([headline(own), *sentences(own, {}), *main_points([own], {})])
    assert not [word for word in WORDS if word in text]


# --- main points ----------------------------------------------------------------------------------


def test_the_first_points_are_of_the_largest_effects_of_the_model():
    features = [line(label="a", usual_from="1", usual_to="9", usual_change=-3.0), line(label="b")]
    points = main_points(features, {"output_units": "kg"})
    assert points[0] == "a from 1 to 9: -3.00 kg."
    assert points[1] == "b: 6.0 [5.0, 7.0] kg more at 10 than at 0."


def test_a_feature_that_moves_single_rows_alone_is_said_to():
    points = main_points([line(matters="hardly", rows_differ="yes")], {})
    assert points[0] == "No average effect, but its effect differs between single rows: x."


def test_of_a_feature_whose_average_is_not_known_no_size_is_said():
    points = main_points([line(matters="cannot tell", rows_differ="yes")], {"n_rows": 100})
    assert points == ["x: cannot tell whether it matters on average."]


# --- of the outcome -------------------------------------------------------------------------------

SKILL = {
    "examined": "yes",
    "predicts": "yes",
    "skill_name": "R²",
    "skill": 0.3,
    "skill_low": 0.2,
    "skill_high": 0.4,
    "skill_loss": "mean absolute error",
    "skill_loss_value": 1.0,
    "delta": 0.5,
}


def of_data(label, word, **changes):
    known = {"in_data_change": 3.0, "in_data_ci": (1.0, 5.0), "in_data_p": 0.01}
    between = {"usual_from": "1", "usual_to": "9", "usual_change": 4.0}
    return line(**{"label": label, "in_data": word, **known, **between, **changes})


def test_an_effect_elsewhere_than_between_usual_values_is_said_to_be():
    """Its P is of no effect anywhere; the interval beside it holds 0."""
    points = main_points([of_data("a", "yes", in_data_ci=(-1.0, 7.0))], SKILL)
    assert points[0] == (
        "a: an effect in the data (P = 0.010), but none shown from 1 to 9: +3.0 [-1.0, 7.0], +4.00 "
        "in the model."
    )


def test_points_are_about_the_outcome_where_it_was_examined():
    lines = [
        of_data("a", "yes", differs_in_data="yes", **SPLIT_APART),
        of_data("b", "not shown", rows_differ="yes", differs_in_data="not shown"),
        of_data("c", "no"),
        line(label="d"),
    ]
    points = main_points(lines, SKILL)
    assert points[0] == "a from 1 to 9: +3.0 [1.0, 5.0] in the data, +4.00 in the model."
    assert points[1].startswith("The effect of a differs between rows by g, in the data too.")
    assert points[2] == (
        "Only the model treats single rows differently by b: new rows do not confirm it."
    )
    assert points[3] == "No average effect shown in the data: b, though the model uses it."
    assert points[4] == "No effect in the data as large as 0.500 on average: c."
    assert points[5] == "Not examined in the data: d."


SPLIT_APART = {"split_by": "g", "split_rule": "g ≤ 1", "apart": 3.0, "apart_ci": (1.0, 5.0)}


def test_first_of_all_is_said_that_the_model_does_not_predict():
    attrs = {**SKILL, "predicts": "no", "skill": -0.18, "skill_low": -0.3, "skill_high": -0.1}
    (first, *_) = main_points([of_data("a", "not shown")], attrs)
    assert first == (
        "The model does not predict new rows (R² -0.18 [-0.30, -0.10]): what follows describes its "
        "noise."
    )
    (first, *_) = main_points([of_data("a", "yes"), of_data("b", "not shown")], attrs)
    assert first == (
        "The model does not predict new rows (R² -0.18 [-0.30, -0.10]): its curves are largely "
        "noise. Effects in the data were found on rows kept from fits."
    )


def test_levels_without_an_order_have_no_size_in_the_data():
    unordered = of_data("c", "yes", in_data_change=np.nan, in_data_ci=NAN, in_data_p=0.0001)
    assert main_points([unordered], SKILL)[0] == (
        "c: the outcome differs between its levels (P < 0.001); the model's highest is 10, its "
        "lowest 0."
    )


@pytest.mark.parametrize(
    ("word", "text"),
    [
        ("yes", "x has an effect in the data."),
        ("not shown", "x: no effect is shown in the data, though the model uses it."),
        ("no", "x has no effect in the data that is large enough to matter, though the model"),
    ],
)
def test_headlines_of_the_data(word, text):
    assert headline(of_data("x", word)).startswith(text)


def test_a_difference_between_rows_is_of_the_data_or_of_the_model():
    yes = headline(of_data("x", "yes", rows_differ="yes", differs_in_data="yes"))
    assert yes == "x has an effect in the data, and it differs from row to row."
    alone = headline(of_data("x", "yes", rows_differ="yes", differs_in_data="not shown"))
    assert "which new rows do not confirm" in alone


def test_nothing_moves():
    flat = line(movement=0.0, matters="hardly", rows_differ="hardly")
    assert main_points([flat], {})[0] == "No feature moves the predictions."
    assert main_points([], {}) == ["No feature moves the predictions."]


def test_names_are_listed_and_counted():
    flat = [line(label=f"f{k}", matters="hardly", rows_differ="hardly") for k in range(200)]
    points = main_points([line(label="top"), *flat], {})
    assert "f0, f1, f2, f3, f4, f5, f6, f7 and 192 more: hardly matter." in points
    assert "f0: hardly matters." in main_points([line(), flat[0]], {})


def test_the_points_are_few():
    many = [
        line(**SPLIT),
        line(matters="hardly", rows_differ="yes"),
        *(line(matters="hardly", rows_differ="hardly", exception=f"at {k}") for k in range(9)),
        line(matters="cannot tell"),
    ]
    attrs = {"additive_r2": 0.5, "n_below": 3, "y_min": 0.0, "n_rows": 10}
    assert len(main_points(many, attrs)) == MAX_POINTS


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (np.nan, ""),
        (-0.01, "do not add up"),
        (0.0, "reproduce 0 %"),
        (0.9899, "reproduce 99 % of the variance of the predictions; the rest needs"),
        (0.9962, "reproduce 99.6 % of the variance of the predictions."),
        (0.9995, "the model is additive"),
    ],
)
def test_the_additive_share(share, text):
    found = additive_sentence({"additive_r2": share})
    assert text in found
    assert bool(found) == bool(text)


# --- rows and outcomes ----------------------------------------------------------------------------


def test_predictions_beyond_the_outcomes():
    attrs = {"n_rows": 1000, "n_below": 1, "n_above": 200, "y_min": 0.0, "y_max": 12.0}
    assert fit_sentences(attrs) == [
        "1 of 1,000 predictions (< 1 %) is below 0, the smallest observed value.",
        "200 of 1,000 predictions (20 %) are above 12.0, the largest observed value.",
    ]
    assert fit_sentences({"n_rows": 10, "n_below": 0}) == []


def test_fit():
    assert fit_text({}) == ""
    assert fit_text({"r2": 0.951, "mae": 25.04}) == (
        "On these rows, which the model may have been fitted to: R² 0.95, mean absolute error 25.0"
    )
    assert fit_text({**SKILL, "r2": 0.951, "mae": 25.04}).startswith(
        "On rows that it did not see: R² 0.30 [0.20, 0.40], mean absolute error 1.00. On these rows"
    )
    assert "AUC 0.90" in fit_text({"auc": 0.9, "log_loss": 0.3, "brier": 0.1})


def test_the_rows_that_were_used():
    assert rows_text({"n_rows": 5, "n_rows_given": 5}) == "5 rows"
    text = rows_text({"n_rows": 1000, "n_rows_given": 2000, "held_out": "yes"})
    assert text == "1,000 of 2,000 rows, not used to fit the model as the caller stated"
    assert "groups of rows" in uncertainty_text({"groups": "yes"})


def test_uncertainty_of_effects_in_the_data_and_in_a_model_with_parameters():
    # It said that the model was taken as given, beside intervals that held its parameters.
    text = uncertainty_text({"examined": "yes", "n_fits": 10, "parameters": "yes"})
    assert "the learner for changes in the data (debiased, on rows kept from 10 fits)" in text
    assert "sampling of the rows and the parameters of the model for effects in the model" in text
    assert "the model taken as given" not in text
    given = uncertainty_text({"examined": "yes", "n_fits": 10, "parameters": "no"})
    assert "sampling of the rows alone, the model taken as given, for the rest" in given


def test_p_values():
    assert [permutation_text(one) for one in (0.0, 0.00099, 0.001, 1.0)] == [
        *("< 0.001", "< 0.001", "0.001", "1.000")
    ]


@pytest.mark.parametrize(
    "tree", [xr.DataTree(), xr.DataTree(xr.Dataset(attrs={"method": "explain"}))]
)
def test_another_tree_is_refused(tree):
    with pytest.raises(ValueError, match="tree must be what explain"):
        answers_in(tree)
