"""Printed tables and pages of several models: every cell, by the numbers of the tables."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import rhale_stats as rs
from rhale_stats.printing.text import number_text, pvalue_text
from tests.ensembles.made import FOLDS, REFITS, constant, ensemble, side_by_side, with_levels

CURVES = np.random.default_rng(4).standard_normal((41, 5))
BARE = ["average_effect", "importance", "effect", "heterogeneity"]


def mixed(**attrs):
    """An axis, a constant feature, and levels."""
    attrs = {"se_rows": 0.3} | attrs
    return side_by_side(
        x=ensemble(CURVES, **attrs),
        c=constant(41, **attrs),
        k=with_levels(ensemble(2 * CURVES, **attrs), *"abcde"),
    )


def as_profiles(made):
    """Without what profiles do not have."""
    return made.drop_vars([*BARE, *(f"{name}_estimate" for name in BARE)])


def cells(summary):
    heads, *lines = summary.tables[1].rows
    return heads[1:], {line[0]: line[1:] for line in lines}


@pytest.mark.parametrize("attrs", [{}, REFITS, {"source": "models", "se_rows": None}, FOLDS])
def test_a_line_a_feature(attrs):
    made = mixed(**attrs)
    if attrs is REFITS:
        made["average_effect_se_rows"] = 0.1 * np.abs(made["average_effect"])
        made["heterogeneity_output"] = made["importance"]
    table, (heads, lines) = rs.glance(made, level=0.9), cells(rs.summary(made, level=0.9))
    columns = {"avg effect": "estimate", "std err": "std_error"}
    if attrs is REFITS:
        columns |= {"of model": "std_error_model", "of rows": "std_error_rows"}
    if attrs in (REFITS, FOLDS):
        columns |= {"t": "statistic", "P": "p_value"}
    columns |= {"[0.05": "conf_low", "0.95]": "conf_high", "importance": "importance"}
    if attrs is REFITS:
        columns |= {"H": "heterogeneity_output"}
    assert heads == list(columns)
    for at, name in ((0, "x"), (2, "k")):
        said = [
            (pvalue_text if head == "P" else number_text)(float(table[column][at]))
            for head, column in columns.items()
        ]
        assert lines[name] == said
    assert lines["c"] == ["constant", *[""] * (len(heads) - 1)]
    assert table["kind"].tolist() == ["continuous", "constant", "nominal"]


def test_a_line_a_feature_of_profiles():
    made = as_profiles(mixed())
    summary = rs.summary(made)
    heads, lines = cells(summary)
    assert heads == ["lowest", "highest"]
    mean = CURVES.mean(axis=0)
    assert lines["x"] == [number_text(mean.min()), number_text(mean.max())]
    assert lines["k"] == [number_text(2 * mean.min()), number_text(2 * mean.max())]
    assert lines["c"] == ["constant", ""]
    assert "importance:" not in summary.as_text()
    assert "importance: standard deviation of the curve over the rows" in str(rs.summary(mixed()))


def test_a_line_a_point():
    made = mixed()
    summary = rs.summary(made, "k", level=0.9)
    heads, lines = cells(summary)
    columns = {
        "curve": "estimate",
        "std err": "std_error",
        "of model": "std_error_model",
        "of rows": "std_error_rows",
        "[0.05": "conf_low",
        "0.95]": "conf_high",
        "effect": "effect",
        "heterog.": "heterogeneity",
    }
    assert heads == list(columns)
    table = rs.tidy(made, level=0.9)
    for level, line in table[table["term"] == "k"].set_index("level").iterrows():
        assert lines[level] == [number_text(line[column]) for column in columns.values()]
    assert "points of the grid" not in summary.as_text()
    _, lines = cells(rs.summary(made, "x"))
    assert list(lines) == [number_text(x) for x in np.linspace(0, 1, 5)]
    _, lines = cells(rs.summary(made, "c"))
    assert lines == {"c": ["constant", *[""] * 7]}


def test_of_many_points_some_at_equal_distances():
    curves = np.random.default_rng(0).standard_normal((11, 41))
    summary = rs.summary(ensemble(curves), "x")
    _, lines = cells(summary)
    assert list(lines) == [number_text(x) for x in np.linspace(0, 1, 41)[::2]]
    assert "21 of 41 points of the grid; tidy(effect) gives all." in summary.as_text()
    exact = rs.summary(ensemble(curves[:, :21]), "x")
    assert len(cells(exact)[1]) == 21
    assert "points of the grid" not in exact.as_text()


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("attrs", "title", "words", "uncertainty"),
    [
        ({}, "Draws of the parameters", "Draws:", "draws of the parameters and rows"),
        ({"se_rows": None}, "Draws of the parameters", "Draws:", "draws of the parameters"),
        ({"source": "models"}, "Several models", "Models:", "spread of the models and rows"),
        (REFITS, "Refits (bootstrap)", "Replicates:", "refits"),
        (FOLDS, "Cross-fitting", "Folds:", "refits of folds"),
        (
            REFITS | {"variance": "subsampling", "source": "refits, groups of rows"},
            "Refits (subsamples)",
            "Replicates:",
            "refits, groups of rows",
        ),
    ],
)
def test_facts(attrs, title, words, uncertainty):
    made = mixed(effect_method="rhale", weight_kind="precision", **attrs)
    summary = rs.summary(made)
    assert summary.tables[0].rows == [
        ["Rows:", "100", words, "41"],
        ["Weights:", "precision", "Curve centred at:", "mean"],
        ["Uncertainty:", uncertainty, "", ""],
    ]
    assert f"{title}: RHALE: effects on y" in summary.as_text()
    assert f"{title}: RHALE: effect of x on y" in rs.summary(made, "x").as_text()


def test_the_largest_effects_are_shown_first():
    for made in (mixed(), as_profiles(mixed())):
        table = rs.show(made, max_features=2).head.tables[1]
        assert table.stubs == ["k", "x"]
        whole = rs.summary(made).tables[1]
        lines = dict(zip(whole.stubs, whole.lines, strict=True))
        assert table.lines == [lines["k"], lines["x"]]
        assert "2 of 3 lines, the most important." in str(rs.show(made, max_features=2))


def test_members_that_failed():
    made = ensemble(CURVES, first_failure="RuntimeError: no luck")
    assert "failed" not in rs.summary(made).as_text()
    made["failed"][0, [3, 5, 8]] = 1.0
    summary = rs.summary(made)
    assert summary.tables[0].rows[0][3] == "41 (3 failed)"
    assert "3 of 41 failed: RuntimeError: no luck" in summary.as_text()


# --- frames ---------------------------------------------------------------------------------------


def test_glance_by_hand():
    made = mixed(**REFITS)
    made["failed"][0, :3] = 1.0
    table = rs.glance(made, level=0.8).set_index("term")
    average = CURVES.mean(axis=1)
    se = average.std(ddof=1)
    x = table.loc["x"]
    assert_allclose(x["estimate"], average.mean())
    assert_allclose(x["std_error"], se)
    assert_allclose(x["statistic"], average.mean() / se)
    assert_allclose(x["p_value"], 2 * stats.norm.sf(abs(average.mean()) / se))
    assert_allclose(
        [x["conf_low"], x["conf_high"]], np.quantile(average, [0.1, 0.9], method="weibull")
    )
    assert_allclose(table["importance"], np.outer([1, np.nan, 2], CURVES.std(axis=1).mean())[:, 0])
    mean = CURVES.mean(axis=0)
    assert_allclose(table["curve_min"], [mean.min(), np.nan, 2 * mean.min()])
    assert_allclose(table["curve_max"], [mean.max(), np.nan, 2 * mean.max()])
    # An average over steps between levels without an order of their own is none.
    of_levels = table.loc["k", ["estimate", "std_error", "conf_low", "statistic", "p_value"]]
    assert of_levels.isna().all()
    assert table["n_members"].tolist() == [41] * 3
    assert table["n_failed"].tolist() == [3] * 3
    ordered = made.assign_coords(feature_kind=("feature", ["continuous", "constant", "ordinal"]))
    assert_allclose(rs.glance(ordered)["estimate"], [average.mean(), np.nan, 2 * average.mean()])


def test_no_statistic_without_an_error():
    made = ensemble(np.ones((9, 5)), **REFITS)
    line = rs.glance(made).iloc[0]
    assert line["std_error"] == 0
    assert np.isnan(line["statistic"])
    assert np.isnan(line["p_value"])
    folds = rs.glance(ensemble(CURVES[:10], **FOLDS)).iloc[0]
    assert_allclose(folds["p_value"], 2 * stats.t.sf(abs(folds["statistic"]), 9))


def test_tidy_by_hand():
    table = rs.tidy(mixed(), level=0.8)
    assert table.index.tolist() == list(range(10))
    assert table["term"].tolist() == ["x"] * 5 + ["k"] * 5
    assert table["level"].tolist() == [""] * 5 + list("abcde")
    assert_allclose(table["x"], [0, 0.25, 0.5, 0.75, 1, 0, 1, 2, 3, 4])
    both = np.concatenate([CURVES, 2 * CURVES], axis=1)
    assert_allclose(table["estimate"], both.mean(axis=0))
    assert_allclose(table["std_error"], np.sqrt(both.var(axis=0, ddof=1) + 0.09))
    assert_allclose(table["std_error_model"], both.std(axis=0, ddof=1))
    assert_allclose(table["std_error_rows"], 0.3)
    assert_allclose(table["effect"], both.mean(axis=0))
    assert_allclose(table["effect_se"], both.std(axis=0, ddof=1))
    assert_allclose(table["heterogeneity"], np.abs(both).mean(axis=0))
    ends = np.quantile(both, [0.1, 0.9], axis=0)
    assert_allclose(table[["conf_low", "conf_high"]], ends.T)
    assert "level" not in rs.tidy(ensemble(CURVES))
    assert "effect" not in rs.tidy(as_profiles(ensemble(CURVES)))


def test_a_forest_draws_one_number_a_feature():
    from rhale_stats.ensembles.tables import one_number

    found = one_number(mixed(), "importance", 0.8)
    own = CURVES.std(axis=1)
    assert_allclose(found["importance"], [own.mean(), np.nan, 2 * own.mean()])
    assert_allclose(found["importance_ci"][0], np.quantile(own, [0.1, 0.9]))
    with pytest.raises(ValueError, match="got 'curve'. There are average_effect, importance"):
        one_number(mixed(), "curve", 0.8)


# --- values and sizes -----------------------------------------------------------------------------


def test_values_at_levels_and_between_points():
    made = mixed()
    mean = CURVES.mean(axis=0)
    found = rs.predict(made, ["c", "a", "c"], "k")
    assert_allclose(found, 2 * mean[[2, 0, 2]])
    assert found.dims == ("grid",)
    assert found["x"].values.tolist() == ["c", "a", "c"]
    with pytest.raises(ValueError, match=r"levels of feature 'k', a, b, c, d, e; got y, z\."):
        rs.predict(made, ["z", "a", "y"], "k")
    assert np.isnan(rs.predict(made, [1.0, 2.0], "c")).all()
    found = rs.predict(made, np.array([[0.0, 0.125], [-1.0, 1.0]]), "x")
    assert_allclose(found, [[mean[0], (mean[0] + mean[1]) / 2], [np.nan, mean[4]]])
    named = rs.predict(made, rs.predict(made, [0.5], "x")["x"], "x")
    assert_array_equal(named, mean[[2]])
    assert named.attrs["feature"] == "x"
    with pytest.raises(ValueError, match="what must be 'curve' for profiles"):
        rs.predict(as_profiles(made), 0.5, "x", "effect")


def test_sizes():
    made = mixed().assign_attrs(bin_rule="AdaptiveBins", unknown=3)
    sizes = rs.effect_sizes(made, level=0.8)
    assert list(sizes.data_vars) == ["importance", "importance_ci"]
    own = CURVES.std(axis=1)
    assert_allclose(sizes["importance"], [own.mean(), np.nan, 2 * own.mean()])
    assert_allclose(sizes["importance_ci"][2], 2 * np.quantile(own, [0.1, 0.9]))
    assert sizes["feature_kind"].values.tolist() == ["continuous", "constant", "nominal"]
    assert sizes.attrs == {
        "method": "effect sizes",
        "output_name": "y",
        "output_units": "",
        "bin_rule": "AdaptiveBins",
        "n_rows": 100,
        "software": "rhale_stats",
    }
