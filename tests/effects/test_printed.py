"""Printed effects whose standard errors hold the parameters of a model."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
import xarray as xr

import rhale_stats as rs
from rhale_stats.effects.tables import _group_notes, _missing_notes, bias_warnings
from rhale_stats.inference.meaning import ALIKE, FINE, LARGE, ORDER, ZERO
from rhale_stats.inference.notes import CHOICE_INCLUDED
from rhale_stats.printing.text import number_text
from tests.bins.test_adaptive import Lines
from tests.effects.mixed import mixed_effect

N = 200


@pytest.fixture(scope="module", name="data")
def _data():
    rng = np.random.default_rng(5)
    data = pd.DataFrame({"a": rng.uniform(-1, 1, N), "b": rng.normal(size=N)})
    data["g"] = pd.Categorical(rng.choice(list("uvw"), N))
    line = 0.2 + 0.7 * data["a"] - 0.4 * data["b"] + 0.5 * (data["g"] == "v")
    data["yes"] = (line + rng.normal(size=N) > 0).astype(int)
    data["count"] = rng.poisson(np.exp(line))
    return data


def held(data, formula="yes ~ a + b", model="logit", **options):
    fit = getattr(smf, model)(formula, data).fit(disp=0)
    X = data[["a", "b", "g"]]
    local = rs.local_effects(fit, X, features=["a", "b"])
    effect = rs.rhale(local, bins=rs.EqualWidthBins(3))
    return fit, rs.std_error(effect, local, model=fit, X=X, **options)


def lines_of(text, *names):
    """Numbers of the lines that begin with these names, as they are printed."""
    found = {line.split()[0]: line.split()[1:] for line in text.splitlines() if line.strip()}
    return [found[name] for name in names]


@pytest.mark.thorough
@pytest.mark.parametrize("model", ["logit", "probit", "poisson"])
def test_averages_are_printed_as_margins_are(data, model):
    outcome = "count" if model == "poisson" else "yes"
    fit, effect = held(data, f"{outcome} ~ a + b", model, uncertainty="parameters")
    margins = fit.get_margeff().summary_frame()
    text = rs.summary(effect).as_text()
    assert re.search(r"Uncertainty:\s+parameters\s", text)
    for line, (_, row) in zip(lines_of(text, "a", "b"), margins.iterrows(), strict=True):
        estimate, se, z, p, low, high = row
        # To four digits, of which the last is rounded.
        printed = [float(one) for one in line[1:7]]
        np.testing.assert_allclose(printed[:2], [estimate, se], rtol=6e-4)
        np.testing.assert_allclose(printed[2:4], [z, p], rtol=1e-4, atol=6e-4)
        np.testing.assert_allclose(printed[4:], [low, high], rtol=6e-4)


@pytest.mark.thorough
@pytest.mark.parametrize("feature", [None, "a"])
@pytest.mark.parametrize(
    ("uncertainty", "source", "said"),
    [
        ("both", "rows and parameters", "of rows and parameters together, row by row"),
        ("parameters", "parameters", "of the model's parameters"),
    ],
)
def test_the_head_and_the_notes_name_what_is_held(data, feature, uncertainty, source, said):
    _, effect = held(data, uncertainty=uncertainty)
    summary = rs.summary(effect, feature)
    text = " ".join(summary.as_text().split())
    assert f"Uncertainty: {source} {'Curve range' if feature is None else '=='}" in text
    assert "P>|t|" in text
    assert "model as given" not in text
    assert not [note for note in summary.notes if "treat the model" in note]
    (note,) = [note for note in summary.notes if said in note]
    assert ("is due to the parameters" in note) == (uncertainty == "both")
    assert len(re.findall(r"\n\[\d\] ", summary.as_text())) <= 5


def test_the_share_of_the_parameters_is_that_of_the_variances(data):
    _, effect = held(data)
    for feature, name in ((None, "average_effect"), ("b", "effect")):
        of = effect if feature is None else effect.sel(feature=feature)
        model, rows = of[f"{name}_se_model"] ** 2, of[f"{name}_se_rows"] ** 2
        share = 100 * model / (model + rows)
        expected = f"{share.min():.0f} to {share.max():.0f} % is due to the parameters"
        assert any(expected in note for note in rs.summary(effect, feature).notes)


@pytest.mark.thorough
def test_levels_have_t_and_p_of_their_curve(data):
    fit = smf.logit("yes ~ a + g", data).fit(disp=0)
    X = data[["a", "b", "g"]]
    local = rs.ale_local_effects(fit, X, features="g")
    effect = rs.std_error(rs.ale_from_local(local), local, model=fit, X=X)
    row = effect.isel(feature=0)
    (table,) = [one for one in rs.summary(effect, 0).tables if one.title == "Levels"]
    text = table.as_text()
    assert "P>|t|" in text
    for at, level in enumerate(row["level"].values[: row.sizes["edge"]]):
        (line,) = lines_of(text, str(level))
        t = float(row["curve"][at] / row["curve_se"][at])
        assert line[2] == number_text(float(row["curve"][at]))
        assert float(line[4]) == pytest.approx(t, abs=6e-4)
    rows = rs.std_error(rs.ale_from_local(local), local, groups=np.arange(N) // 2)
    assert "P>|t|" not in rs.summary(rows, 0).as_text()


def test_t_and_p_are_shown_where_the_model_is_held(data):
    fit, effect = held(data)
    html = rs.show(effect)._repr_html_()
    assert "<th>t</th> <th>P&gt;|t|</th>" in html
    assert "rows and parameters" in html
    local = rs.local_effects(fit, data[["a", "b", "g"]], features=["a", "b"])
    assert "<th>t</th>" not in rs.show(rs.std_error(effect, local))._repr_html_()


@pytest.mark.thorough
def test_tails_are_not_said_to_be_allowed_for_where_they_are_not(data):
    rng = np.random.default_rng(6)
    X = np.column_stack([rng.uniform(-1, 1, N), rng.standard_t(2, N)])
    model = rs.Parametric(lambda b, X: b[0] * X[:, 0] * X[:, 1] ** 3, [1.0], [[0.01]])
    local = rs.local_effects(model, X)
    effect = rs.rhale(local, bins=rs.EqualWidthBins(2))
    allowed = "those of effects and curves allow for skewness"
    assert any(allowed in note for note in rs.summary(effect).notes)
    for uncertainty, said in (("both", True), ("parameters", False)):
        held = rs.std_error(effect, local, model=model, X=X, uncertainty=uncertainty)
        notes = rs.summary(held).notes
        assert any("heavy tails" in note for note in notes)
        assert any(allowed in note for note in notes) is said


class TestMissing:
    """Notes on rows without a value."""

    effect = xr.Dataset(
        {"n_missing": ("feature", [3.0, 0.0, 1.0])},
        {"feature": ["a", "b", "c"], "feature_kind": ("feature", ["continuous"] * 3)},
    )

    def test_rows_that_are_left_out(self):
        note = "Rows without a value, left out of their feature: "
        assert _missing_notes(self.effect) == [f"{note}a: 3, c: 1."]
        assert _missing_notes(self.effect.sel(feature=["c"])) == [f"{note}c: 1."]
        assert _missing_notes(self.effect.sel(feature=["b"])) == []
        assert _missing_notes(self.effect.drop_vars("n_missing")) == []

    def test_what_it_does_to_the_output(self):
        """With its standard error where there is one; of levels it is a level of its own."""
        known = self.effect.assign(
            missing_effect=("feature", [1.5, np.nan, -2.0]),
            missing_reference=("feature", [0.25, np.nan, 4.0]),
        )
        first = "a is missing in 3 rows: the output there differs by 1.5 from that at a = 0.25."
        last = "c is missing in 1 row: the output there differs by -2 from that at c = 4."
        assert _missing_notes(known) == [first, last]
        assert _missing_notes(known.sel(feature=["a"])) == [first]
        known["missing_effect_se"] = "feature", [np.nan, np.nan, 0.5]
        last = last.replace("-2", "-2 (std err 0.5)")
        assert _missing_notes(known) == [first, last]
        levels = known.assign(missing_effect=("feature", [np.nan, np.nan, -2.0]))
        assert _missing_notes(levels) == [last]


def test_reasons_name_their_bins():
    """The first bin has effects that are alike, the second none at all, and the third varies."""
    x = np.linspace(0, 3, 61)[:, None]
    g = np.select([x < 1, x < 2], [2.0, 0.0], 1 + np.sin(40 * x))
    effect = rs.rhale(rs.local_effects(None, x, jacobian=g), bins=rs.GivenBins([0, 1, 2, 3]))
    notes = rs.summary(effect, 0).notes
    assert f"[0, 1): {ALIKE}." in notes
    assert f"[1, 2): {ZERO}." in notes
    assert not any("[2, 3]: " in note for note in notes)


def body_of(table):
    """Cells of a printed table, line by line, without blanks at their sides."""
    return [re.split(r"\s{2,}", line.strip()) for line in table.as_text().splitlines()]


def expected_lines(table, columns):
    return [[number_text(line[name]) for name in columns] for _, line in table.iterrows()]


ERRORS, POINTWISE = "Standard errors treat the model as fixed. ", "Intervals: pointwise, "
FIXED = f"{ERRORS}They treat the bin edges as fixed. {POINTWISE}"
RANGE = ("Curve range over:", "inner 98 % of the rows")
BINS = "Bins: EqualWidthBins(n_bins=3)."
IN_BINS = "heterog.: standard deviation of the local effects in the bin."
STEPS = [
    "heterog.: standard deviation of the differences between two levels.",
    "Each effect is the mean difference between two neighbouring levels, over the rows of both. "
    "A row can enter two effects; standard errors account for it.",
]


class TestWhole:
    """Every word and number of a summary, from tables."""

    @pytest.mark.thorough
    def test_a_line_a_feature(self):
        effect = mixed_effect()
        summary, table = rs.summary(effect, level=0.9), rs.glance(effect, level=0.9)
        lines = body_of(summary)
        assert lines[0] == ["ALE: effects on output"]
        assert lines[2:5] == [
            ["Rows:", "60", "Local effects:", "finite_difference"],
            ["Weights:", "none", "Curve centred at:", "mean"],
            ["Uncertainty:", "rows (model as given)", *RANGE],
        ]
        heads = ["bins avg effect", "std err", "[0.05", "0.95]", "heterog.", "H curve range"]
        assert lines[6] == heads
        table["range"] = table["curve_max"] - table["curve_min"]
        columns = ["estimate", "std_error", "conf_low", "conf_high"]
        numbers = expected_lines(
            table, [*columns, "heterogeneity", "heterogeneity_output", "range"]
        )
        n_bins = table["n_bins"].astype(str)
        expected = [
            [name, n, *(one for one in of if one)]
            for name, n, of in zip("aczlm", n_bins, numbers, strict=True)
        ]
        expected[1] = ["c", "0", "constant"]
        assert lines[8:13] == expected
        assert summary.notes == [
            f"z: {ZERO}.",
            f"l: {ORDER}.",
            f"m: {ALIKE}.",
            f"{FIXED}Student's t.",
            "avg effect of m: of a step between levels, not of a unit.",
            "avg effect: mean of the local effects over all rows, not along the axis. heterog.: "
            "root mean square of their standard deviations in the bins.",
            "H: heterog. times the standard deviation of the feature, to compare features. It is "
            "not a part of the variance of the output, and can be larger.",
            BINS,
        ]

    @pytest.mark.parametrize("name", "azlm")
    def test_a_line_a_bin(self, name):
        effect = mixed_effect()
        row, summary = effect.sel(feature=name), rs.summary(effect, name, level=0.9)
        lines = body_of(summary)
        assert lines[0] == [f"ALE: effect of {name} on output"]
        heads = ["rows", "effect", "std err", "[0.05", "0.95]", "heterog.", "std err"]
        assert lines[6] == heads
        table = rs.tidy(effect, level=0.9).query("term == @name")
        columns = ["n_obs", "estimate", "std_error", "conf_low", "conf_high"]
        numbers = expected_lines(table, [*columns, "heterogeneity", "heterogeneity_se"])
        n = int(row["n_bins"])
        levels = row["level"].values[: n + 1]
        edges = [f"{one:.4g}" for one in row["edge_value"].values[: n + 1]]
        stubs = [f"[{edges[k]}, {edges[k + 1]}{')' if k < n - 1 else ']'}" for k in range(n)]
        if name in "lm":
            stubs = [f"{levels[k]} → {levels[k + 1]}" for k in range(n)]
        assert lines[8 : 8 + n] == [[s, *of] for s, of in zip(stubs, numbers, strict=True)]
        why = {"z": [f"all bins: {ZERO}."], "m": [f"all bins: {ALIKE}."]}.get(name, [])
        order = {"l": "as given", "m": "of the categories or the alphabet"}.get(name)
        means = [f"effect: average of the local effects along the bin. {IN_BINS}"]
        if order:
            last = f"Level order: {order}. Standard errors do not include the choice of order."
            means = [*STEPS, last]
        rule = [] if order else [BINS]
        fixed = f"{ERRORS}{POINTWISE}" if order else FIXED
        assert summary.notes == [*why, f"{fixed}Student's t.", *means, *rule]

    def test_a_constant_feature(self):
        summary = rs.summary(mixed_effect(), "c")
        assert body_of(summary)[8] == ["c", "constant"]
        assert summary.notes == ["The feature does not vary.", f"{ERRORS}{POINTWISE}Student's t."]

    def test_levels_with_their_rows(self):
        effect = mixed_effect()
        row = rs.confint(effect, level=0.9).sel(feature="l")
        tables = rs.summary(effect, "l", level=0.9).tables
        (table,) = [one for one in tables if one.title == "Levels"]
        lines = body_of(table)
        assert lines[2] == ["rows", "share", "curve", "std err", "[0.05", "0.95]"]
        for at, level in enumerate("uvw"):
            n, curve, se = (row[name].values[at] for name in ("n_level", "curve", "curve_se"))
            ends = map(number_text, row["curve_ci"].values[at])
            share = f"{n / 60:.1%}"
            own = [level, str(n), share, number_text(curve), number_text(se), *ends]
            assert lines[4 + at] == own

    def test_intervals_of_the_result_are_named(self):
        effect = rs.confint(mixed_effect(), level=0.9)
        method = effect["average_effect_ci"].attrs["method"].removeprefix("standard errors, ")
        notes = rs.summary(effect, level=0.9).notes
        assert f"{FIXED}{method}." in notes
        (said,) = [note for note in notes if note.startswith("In the result: ") and "effect_ci" in
                   note]  # fmt: skip
        assert "(0.9, pointwise, " in said
        # At another level they are not those of the table.
        assert f"{FIXED}Student's t." in rs.summary(effect, level=0.8).notes

    def test_lines_have_a_slope(self):
        x = np.linspace(0, 1, 80)[:, None]
        g = 3 * x + np.tile([[-0.1], [0.1]], (40, 1))
        local = rs.local_effects(None, x, jacobian=g)
        notes = {}
        for weighting in ("rows", "axis"):
            effect = rs.std_error(rs.rhale(local, bins=rs.AdaptiveBins(20), weighting=weighting))
            summary = rs.summary(effect, 0)
            lines, line = body_of(summary), rs.tidy(effect).iloc[0]
            assert lines[6][-4:] == ["heterog.", "std err", "slope", "std err"]
            names = ["heterogeneity", "heterogeneity_se", "slope", "slope_se"]
            assert lines[8][-4:] == [number_text(line[name]) for name in names]
            notes[weighting] = summary.notes
        assert (
            f"effect: mean of the local effects of the rows in the bin. {IN_BINS}"
            in (notes["rows"])
        )
        about = "heterog. is the standard deviation about the line."
        middle = "effect is the value of the line at mid-bin, and "
        assert f"Where there is a slope, {middle}{about}" in notes["rows"]
        assert f"Where there is a slope, {about}" in notes["axis"]

    def test_some_bins_have_a_slope_and_the_spread_has_bins(self):
        """Both are in the summary if they are anywhere, and in no other one."""
        rng = np.random.default_rng(0)
        x = rng.uniform(0, 2, (400, 2))
        g = np.where(x < 1, 1, 4 * x - 3) + np.where(x < 1, 0.2, 2) * rng.normal(size=x.shape)
        g[:, 1] = rng.normal(size=400)
        local = rs.local_effects(None, x, jacobian=g)
        effect = rs.rhale(local, bins=Lines((0.0, 1, 2), (False, True)))
        effect["slope"][1] = 0
        summary = rs.summary(effect, 0)
        assert "slope" in body_of(summary)[6]
        titles = [one.title for one in summary.tables]
        assert titles.count("Spread, in bins of its own") == 1
        other = rs.summary(effect, 1)
        assert "slope" not in body_of(other)[6]
        assert "Spread, in bins of its own" not in [one.title for one in other.tables]

    def test_where_edges_come_from(self):
        rng = np.random.default_rng(0)
        x = rng.uniform(0, 1, (80, 1))
        local = rs.local_effects(None, x, jacobian=np.sign(x - 0.5) + rng.normal(size=(80, 1)) / 9)
        searched = rs.OptimalBins(max_bins=4)
        same = rs.rhale(local, bins=searched)
        other = rs.rhale(local, bins=searched, honest=True, honest_fraction=0.25, rng=0)
        grouped = rs.std_error(same, local, groups=np.arange(80) // 2)
        for effect, said in (
            (other, "Bin edges were chosen on 20 other rows."),
            (same, CHOICE_INCLUDED),
            (grouped, CHOICE_INCLUDED),
        ):
            for feature in (None, 0):
                # One note on edges, and no second one that says something else.
                (note,) = [one for one in rs.summary(effect, feature).notes if "edges" in one]
                assert said in note
                assert note.startswith("Standard errors treat the model as fixed")
        for note in rs.summary(mixed_effect()).notes:
            assert "chosen" not in note


def test_few_groups_in_a_bin_are_warned_of():
    """Two of three features have bins with less than four degrees of freedom."""
    effect = xr.Dataset(
        {
            "effect_df": (("feature", "bin"), [[3.9, 4.0, 2.0], [5.0, 9.0, np.nan], [1.0, 4, 4]]),
            "n_bins": ("feature", [3, 2, 3]),
        },
        {"feature": ["a", "b", "c"]},
    )
    said = (
        "Warning: standard errors by groups have fewer than 4 degrees of freedom in bins of "
        "{}. A few groups have most of the rows there. Intervals and p-values of these bins are "
        "unreliable. Use fewer bins."
    )
    assert _group_notes(effect) == [said.format("a (2 of 3 bins), c (1 of 3 bins)")]
    assert _group_notes(effect.sel(feature=["c"])) == [said.format("c (1 of 3 bins)")]
    assert _group_notes(effect.sel(feature=["b"])) == []
    assert _group_notes(effect.drop_vars("effect_df")) == []


class TestBiasWarnings:
    """A warning of heterogeneity that the change of the effect makes too large."""

    effect = xr.Dataset(
        {
            "verdict": (("feature", "bin"), [[LARGE, FINE], [FINE, FINE], [LARGE, LARGE]]),
            "n_bins": ("feature", [2, 2, 2]),
        },
        {"feature": ["a", "b", "c"]},
        {"weighting": "axis"},
    )
    said = (
        "Warning: the effect changes within bins of {}. Their heterogeneity is too large by more "
        "than its standard error. Use narrower bins, or debias(effect, check_unbiased(local, "
        "effect))."
    )

    def test_by_the_check(self):
        both = "a (1 of 2 bins), c (2 of 2 bins)"
        assert bias_warnings(self.effect) == [self.said.format(both)]
        assert bias_warnings(self.effect.sel(feature=["c"])) == [
            self.said.format("c (2 of 2 bins)")
        ]
        assert bias_warnings(self.effect.sel(feature=["b"])) == []
        by_rows = self.effect.assign_attrs(weighting="rows")
        more = " The check also gives the bias of the curve."
        assert bias_warnings(by_rows) == [self.said.format(both) + more]

    def test_without_the_check_by_a_line(self):
        rng = np.random.default_rng(0)
        x = rng.uniform(0, 1, (200, 2))
        g = np.column_stack([5 * x[:, 0], 0 * x[:, 1]]) + rng.normal(size=(200, 2)) / 4
        local = rs.local_effects(None, x, jacobian=g)
        effect = rs.std_error(rs.rhale(local, bins=rs.GivenBins([0, 0.5, 1])))
        assert bias_warnings(effect) == [self.said.format("x0 (2 of 2 bins)")]
        assert bias_warnings(effect.sel(feature=["x1"])) == []
        assert bias_warnings(effect.drop_vars("moments")) == []

    def test_none_once_it_is_removed(self):
        debiased = self.effect.assign_attrs(debiased=1)
        said = "heterog. is free of bin error: it comes from differences of neighbouring rows."
        assert bias_warnings(debiased) == [said]
