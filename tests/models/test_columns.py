"""Tables as they come: text that holds numbers and dates, placeholders, objects, gaps."""

from __future__ import annotations

import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf

import rhale_stats as rs
from rhale_stats.cli import main
from tests.helpers import in_turn

N = 300
RNG = np.random.default_rng(0)
A = RNG.normal(size=N)
DAYS = RNG.permutation(N)
DATES = pd.Timestamp("2020-01-01") + pd.to_timedelta(DAYS, unit="D")


def slope(column, back):
    """Slope of a model that reads the column itself, by local effects across cells."""
    X = pd.DataFrame({"o": column})
    kind = type(X["o"].iloc[0])

    def model(rows):
        assert isinstance(rows["o"].iloc[0], kind)
        return 3 * back(rows["o"])

    with pytest.warns(UserWarning, match="Column 'o' is read as"):
        effect = rs.ale(model, X, bins=rs.EqualWidthBins(5))
    assert effect["feature_kind"].item() == "continuous"
    return effect["effect"].values[0]


def days_of(column):
    return days_since(pd.to_datetime(column.map(str)))


def days_since(when):
    return ((when - pd.Timestamp("2020-01-01")) / pd.Timedelta("1D")).to_numpy()


def heard(call):
    """What a call returns, and all that it warns of."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        found = call()
    return found, " ".join(str(one.message) for one in warned)


@pytest.mark.parametrize(
    ("column", "back"),
    [
        (pd.Series(A, dtype=object), lambda c: c.to_numpy(float)),
        ([Decimal(repr(float(one))) for one in A], lambda c: c.map(float).to_numpy()),
        ([repr(float(one)) for one in A], lambda c: pd.to_numeric(c).to_numpy()),
        ([one.date() for one in DATES], days_of),
        ([str(one.date()) for one in DATES], days_of),
        (DATES.strftime("%d/%m/%Y"), lambda c: days_of(pd.to_datetime(c, format="%d/%m/%Y"))),
        (pd.Series(list(DATES), dtype=object), lambda c: days_since(pd.to_datetime(c))),
        (pd.PeriodIndex(DATES, freq="D"), days_of),
    ],
    ids=["object", "Decimal", "text", "date", "ISO", "European", "datetime", "Period"],
)
def test_objects_and_text_are_the_numbers_or_dates_that_they_hold(column, back):
    np.testing.assert_allclose(slope(column, back), 3, rtol=1e-6)


@pytest.mark.thorough
@pytest.mark.parametrize("gap", ["?", "NA", "", "n/a"])
def test_placeholders_are_missing_and_the_model_gets_them_as_they_were(gap):
    text = [gap if at % 50 == 0 else repr(float(one)) for at, one in enumerate(A)]

    seen = set()

    def model(rows):
        seen.update(rows["o"])
        return 2 * pd.to_numeric(rows["o"], errors="coerce").fillna(0).to_numpy()

    X = pd.DataFrame({"o": text, "a": A})
    effect, said = heard(lambda: rs.ale(model, X, features="o"))
    assert rs.glance(effect)["n_obs"].item() == N - 6
    np.testing.assert_allclose(effect["effect"].values[0], 2)
    assert gap in seen
    assert f"read as numbers; {gap!r} in 6 rows is missing" in said
    assert "effects of 'o': 6 rows" in said


@pytest.mark.parametrize(
    "levels",
    [[f"{one:03d}" for one in range(20)], ["1", "2", "3"], ["red", "4", "5.5"], [("a", 1), ("b",)]],
)
def test_codes_and_words_stay_levels(levels):
    X = pd.DataFrame({"o": [levels[at % len(levels)] for at in range(N)], "a": A})
    effect = rs.ale(lambda rows: rows["a"] + (rows["o"] == levels[0]), X, features="o")
    assert effect["feature_kind"].item() == "nominal"


TABLE = np.sin(np.arange(60))


@pytest.mark.thorough
@pytest.mark.parametrize(("n_values", "dtype"), in_turn([6, 60], [np.int64, np.uint8, "Int64"]))
def test_columns_of_integers_reach_the_model_as_integers(n_values, dtype):
    X = pd.DataFrame({"k": np.arange(N) % n_values, "a": A}).astype({"k": dtype})

    def model(rows):
        assert rows["k"].dtype == X["k"].dtype
        return TABLE[rows["k"].to_numpy(X["k"].to_numpy().dtype)] + rows["a"].to_numpy()

    for verb in (rs.ale, rs.pdp, rs.m_plot):
        curve = verb(model, X, features=["k"], centering="start")
        last = curve["curve"].values[0][~np.isnan(curve["curve"].values[0])][-1]
        if verb is not rs.m_plot:
            assert last == pytest.approx(TABLE[n_values - 1] - TABLE[0])
    found = rs.local_effects(model, X, features=["k", "a"])
    assert found["local_effect_method"].values[0] == "finite_difference"


def test_arrays_of_integers_reach_the_model_as_integers():
    X = np.column_stack([np.arange(N) % 60, np.arange(N) % 7])
    curve = rs.pdp(lambda rows: TABLE[rows[:, 0]], X, features=[0], centering="start")["curve"]
    np.testing.assert_allclose(curve.values[0, -1], TABLE[59] - TABLE[0])


def test_sparse_tables_are_named():
    from scipy import sparse

    with pytest.raises(TypeError, match=r"sparse csr_matrix of shape \(3, 3\). Pass X.toarray"):
        rs.ale(lambda X: X[:, 0], sparse.csr_matrix(np.eye(3)))


# --- a table without any cleaning -----------------------------------------------------------------


def messy(n=N):
    rng = np.random.default_rng(3)
    x = rng.normal(size=n)
    return pd.DataFrame(
        {
            "age": rng.integers(20, 80, n),
            "score": [("?" if at % 30 == 0 else f"{one:.3f}") for at, one in enumerate(x)],
            "seen": [str(one.date()) for one in pd.date_range("2021-01-20", periods=n)],
            "arm": np.where(np.arange(n) % 25 == 0, None, rng.choice(["a", "b", "c"], n)),
            "town": rng.choice([f"town {k}" for k in range(40)], n),
            "one": 1.0,
            "id": [f"id {k}" for k in range(n)],
            "y": 2 * x + rng.normal(size=n),
        }
    )


def cleaned(rows):
    score = pd.to_numeric(rows["score"], errors="coerce").fillna(0.0)
    seen = (pd.to_datetime(rows["seen"]) - pd.Timestamp("2021-01-01")).dt.days
    return (2 * score + seen / 100 + (rows["arm"] == "a") + rows["age"] / 50).to_numpy()


WHAT = ("'score' is read as numbers; '?' in 10 rows", "'seen' is read as dates", "'id' (more than")
KINDS = {
    "age": "continuous",
    "score": "continuous",
    "seen": "continuous",
    "arm": "nominal",
    "town": "nominal",
}


def test_a_table_without_any_cleaning_is_explained_and_reported(tmp_path):
    X = messy().drop(columns="y")
    found = rs.explain(cleaned, X, messy()[["y"]], rng=0, progress=False, budget=None)
    assert dict(zip(found["effect"]["feature"].values, found["effect"]["feature_kind"].values,
                    strict=True)) == KINDS  # fmt: skip
    said = found.attrs["notes"]
    for one in (*WHAT, "'one' (one value)", "effects of 'score': 10 rows; effects of 'arm': 12"):
        assert one in said
    assert "dayfirst" not in said  # pandas says it of days above 12
    rs.report(found, tmp_path / "page.html")
    assert "town 7" in (tmp_path / "page.html").read_text()
    effect, said = heard(lambda: rs.ale(cleaned, X))
    assert dict(zip(effect["feature"].values, effect["feature_kind"].values, strict=True)) == (
        KINDS | {"one": "constant"}
    )
    for one in (*WHAT, "effects of 'score': 10 rows; effects of 'arm': 12"):
        assert one in said
    score = effect.sel(feature="score")
    known = score["effect"].values[~np.isnan(score["effect"].values)]
    np.testing.assert_allclose(known, 2, rtol=1e-6)


def test_averages_of_a_table_without_any_cleaning():
    data = messy().assign(dose=np.where(np.arange(N) % 10 == 0, np.nan, A))
    fit = smf.ols("y ~ dose + C(arm) + age", data).fit()
    found, said = heard(lambda: rs.averages(fit, data))
    assert "left out, of 300: of all effects: 36 rows" in said
    assert found["average"].sel(term="dose").item() == pytest.approx(fit.params["dose"])
    assert found.attrs["n_rows"] == int(fit.nobs)


def test_the_command_line_takes_a_table_without_any_cleaning(tmp_path, capsys):
    messy().to_csv(tmp_path / "messy.csv", index=False)
    formula = "y ~ score + seen + C(arm) + age"
    assert main.main(["explain", str(tmp_path / "messy.csv"), "--formula", formula]) == 0
    said = capsys.readouterr().out
    for one in (
        "Column 'score' is read as numbers; '?' in 10 rows is missing.",
        "Column 'seen' is read as dates.",
        "20 of 300 rows have missing values and are dropped.",
        "* score from ",
    ):
        assert one in said


@pytest.mark.filterwarnings("ignore:Column 'a' is read as numbers", "ignore:Rows with missing")
@pytest.mark.parametrize("function", [rs.ale, rs.averages])
def test_a_model_that_was_fitted_to_numbers_and_gets_text(function):
    """Its own error says little of the cause."""
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"a": rng.normal(size=60), "y": rng.normal(size=60)})
    fit = smf.ols("y ~ np.exp(a)", data).fit()
    text = data.astype({"a": str})
    text.loc[3, "a"] = "?"
    with pytest.raises(rs.ModelError, match=r"columns of text as they are.*pd\.to_numeric"):
        function(fit, text)
