"""Printed effects whose standard errors hold the parameters of a model."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
import xarray as xr

import rhale_stats as rs
from rhale_stats.effects.printed import _missing_notes
from rhale_stats.inference.meaning import ALIKE, ZERO
from rhale_stats.printing.text import number_text

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
    assert f"Uncertainty: {source} ==" in text
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


def test_pages_have_t_and_p_where_the_model_is_held(data):
    _, effect = held(data)
    page, table = rs.show(effect), rs.glance(effect).set_index("term")
    text = repr(page)
    assert "\nUncertainty: rows and parameters\n" in text
    for name, line in zip(("a", "b"), lines_of(text, "a", "b"), strict=True):
        assert line[4:6] == [
            number_text(table.loc[name, "statistic"]),
            f"{table.loc[name, 'p_value']:.3f}",
        ]
    html = page._repr_html_()
    assert "<th>t</th><th>P</th>" in html
    assert "Uncertainty: rows and parameters" in html
    assert "<th>P</th>" not in rs.show(rs.std_error(effect))._repr_html_()


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
        assert _missing_notes(self.effect, None) == [f"{note}a: 3, c: 1."]
        assert _missing_notes(self.effect, "c") == [f"{note}c: 1."]
        assert _missing_notes(self.effect, "b") == []
        assert _missing_notes(self.effect.drop_vars("n_missing"), None) == []

    def test_what_it_does_to_the_output(self):
        """With its standard error where there is one; of levels it is a level of its own."""
        known = self.effect.assign(
            missing_effect=("feature", [1.5, np.nan, -2.0]),
            missing_reference=("feature", [0.25, np.nan, 4.0]),
        )
        first = "a is missing in 3 rows: the output there differs by 1.5 from that at a = 0.25."
        last = "c is missing in 1 row: the output there differs by -2 from that at c = 4."
        assert _missing_notes(known, None) == [first, last]
        assert _missing_notes(known, "a") == [first]
        known["missing_effect_se"] = "feature", [np.nan, np.nan, 0.5]
        last = last.replace("-2", "-2 (std err 0.5)")
        assert _missing_notes(known, None) == [first, last]
        levels = known.assign(missing_effect=("feature", [np.nan, np.nan, -2.0]))
        assert _missing_notes(levels, None) == [last]


def test_reasons_name_their_bins():
    """The first bin has effects that are alike, the second none at all, and the third varies."""
    x = np.linspace(0, 3, 61)[:, None]
    g = np.select([x < 1, x < 2], [2.0, 0.0], 1 + np.sin(40 * x))
    effect = rs.rhale(rs.local_effects(None, x, jacobian=g), bins=rs.GivenBins([0, 1, 2, 3]))
    notes = rs.summary(effect, 0).notes
    assert f"[0, 1): {ALIKE}." in notes
    assert f"[1, 2): {ZERO}." in notes
    assert not any("[2, 3]: " in note for note in notes)
