"""H-statistics: by the formulas as they stand, closed forms, weights, categories, bad input."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import rhale_stats as rs
from rhale_stats.h_statistics import statistic
from rhale_stats.models import differences
from tests.helpers import rows_of_probe, through_a_file


def model(X):
    return np.sin(X[:, 0] * X[:, 1]) + X[:, 2] * X[:, 0] + X[:, 1] ** 2


def slow(f, X, w):
    """Friedman and Popescu's Eq. 44 to 46, one partial dependence after the other."""
    n, p = X.shape

    def centred(values):
        return values - np.average(values, weights=w)

    def dependence(columns):
        out = np.empty(n)
        for i in range(n):
            table = X.copy()
            table[:, columns] = X[i, columns]
            out[i] = np.average(f(table), weights=w)
        return centred(out)

    def square(values):
        return np.average(values**2, weights=w)

    whole = centred(f(X))
    own = [dependence([j]) for j in range(p)]
    rest = [dependence([k for k in range(p) if k != j]) for j in range(p)]
    total = square(whole - sum(own))
    overall = np.array([square(whole - own[j] - rest[j]) for j in range(p)])
    upper, lower = np.full((2, p, p), np.nan)
    for j, k in combinations(range(p), 2):
        both = dependence([j, k])
        upper[j, k] = upper[k, j] = square(both - own[j] - own[k])
        lower[j, k] = lower[k, j] = square(both)
    return total, overall, square(whole), upper, lower


@pytest.mark.parametrize("weighted", [False, True])
def test_equals_the_formulas(rng, weighted):
    X = rng.normal(size=(40, 4))
    X[:, 3] = X[:, 0] + 0.1 * X[:, 3]
    w = rng.uniform(0.5, 2, 40) if weighted else np.ones(40)
    found = rs.h_statistic(model, X, weights=w if weighted else None)
    total, overall, variance, upper, lower = slow(model, X, w)
    # A numerator that is nothing but rounding is 0.
    small = upper < 1e-25
    np.testing.assert_allclose(found["h2"], total / variance, rtol=1e-10)
    np.testing.assert_allclose(found["h2_overall"], overall / variance, rtol=1e-10, atol=1e-20)
    np.testing.assert_allclose(
        found["h2_pairwise"], np.where(small, 0, upper / lower), rtol=1e-10, atol=1e-20
    )
    np.testing.assert_allclose(found["h"], np.sqrt(total), rtol=1e-10)
    np.testing.assert_allclose(found["h_overall"], np.sqrt(overall), rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(
        found["h_pairwise"], np.where(small, 0, np.sqrt(upper)), rtol=1e-10, atol=1e-13
    )
    assert float(found["h2_overall"][3]) == 0.0


@pytest.mark.thorough
def test_the_example_of_hstats():
    """Its documented one: a linear model of iris, a category and one interaction.

    What hstats' own tests state of it: only the two features, and only their pair, are above 0.
    """
    datasets = pytest.importorskip("sklearn.datasets")
    smf = pytest.importorskip("statsmodels.formula.api")
    table = datasets.load_iris(as_frame=True)
    data = table.data.set_axis(["sl", "sw", "pl", "pw"], axis=1)
    data["species"] = pd.Categorical.from_codes(table.target, table.target_names)
    fit = smf.ols("sl ~ sw + pl + pw + species + pl:pw", data).fit()
    X = data.drop(columns="sl").iloc[::6]  # what is done slowly below takes n calls a term
    found = rs.h_statistic(fit, X)
    overall = found["h2_overall"].to_series()
    assert overall[overall > 0].index.tolist() == ["pl", "pw"]
    pairs = found["h2_pairwise"].fillna(0)
    assert int((pairs > 0).sum()) == 2  # one pair, named twice
    # By the formulas, the category as its number.
    codes = np.column_stack([X[["sw", "pl", "pw"]], X["species"].cat.codes])

    def by_codes(values):
        frame = pd.DataFrame(values[:, :3], columns=["sw", "pl", "pw"])
        frame["species"] = pd.Categorical.from_codes(values[:, 3].astype(int), table.target_names)
        return fit.predict(frame).to_numpy()

    total, of_each, variance, upper, lower = slow(by_codes, codes, np.ones(len(X)))
    np.testing.assert_allclose(found["h2"], total / variance, rtol=1e-9)
    np.testing.assert_allclose(overall, of_each / variance, rtol=1e-9, atol=1e-20)
    np.testing.assert_allclose(pairs.sel(feature="pl")[2], upper[1, 2] / lower[1, 2], rtol=1e-9)


@pytest.mark.parametrize("c", [0.0, 0.5, 3.0])
def test_a_product_of_centred_independent_features(c):
    values = np.array([-1.0, 1.0])
    X = np.array([[u, v, t] for u in values for v in values for t in (0.0, 1.0)])
    found = rs.h_statistic(lambda X: X[:, 0] + X[:, 1] + c * X[:, 0] * X[:, 1], X)
    expected = c**2 / (2 + c**2)
    assert float(found["h2"]) == pytest.approx(expected, abs=1e-14)
    np.testing.assert_allclose(found["h2_overall"], [expected, expected, 0], atol=1e-14)
    nan = np.nan
    table = [[nan, expected, 0], [expected, nan, 0], [0, 0, nan]]
    np.testing.assert_allclose(found["h2_pairwise"], table, atol=1e-14)
    np.testing.assert_allclose(found["h_overall"], [c, c, 0], atol=1e-14)


def test_ale_has_the_closed_form_of_the_product():
    middles = np.arange(8) - 3.5
    X = np.array([[u, v] for u in middles for v in middles])
    edges, variance, c = np.arange(9) - 4.0, middles.var(), 0.7
    found = rs.h_statistic(
        lambda X: X[:, 0] + X[:, 1] + c * X[:, 0] * X[:, 1], X, kind="ale", bins=rs.GivenBins(edges)
    )
    upper = c**2 * variance**2
    expected = upper / (2 * variance + upper)
    np.testing.assert_allclose(found["h2_pairwise"].values[0, 1], expected, rtol=1e-12)
    np.testing.assert_allclose(found["h2_overall"], [expected] * 2, rtol=1e-12)
    assert float(found["h"]) == pytest.approx(c * variance)


@pytest.mark.thorough
def test_both_kinds_agree_where_features_are_independent(rng):
    X = rng.uniform(-1, 1, (2000, 3))

    def f(X):
        return np.exp(X[:, 0] * X[:, 1]) + X[:, 2] * X[:, 0] + X[:, 1]

    pdp = rs.h_statistic(f, X, rng=1)
    ale = rs.h_statistic(f, X, kind="ale")
    # Shares of 500 rows and of 2000.
    np.testing.assert_allclose(ale["h2_overall"], pdp["h2_overall"], rtol=0.15)
    np.testing.assert_allclose(
        ale["h_pairwise"].values[0, 1:], pdp["h_pairwise"].values[0, 1:], rtol=0.15
    )
    assert float(ale["h2_pairwise"][1, 2]) < 1e-20


def test_dependence_separates_the_kinds(rng):
    """Two copies of a feature: products of both are seen off the data by partial dependence."""
    u = rng.normal(size=400)
    X = np.column_stack([u, u + 0.01 * rng.normal(size=400)])

    def f(X):
        return np.where(np.abs(X[:, 0] - X[:, 1]) > 0.5, 10.0, 0.0) + X[:, 0]

    assert float(rs.h_statistic(f, X)["h2_pairwise"][0, 1]) > 0.1
    # No combination that occurs is affected, but corners of wide cells are.
    assert float(rs.h_statistic(f, X, kind="ale", bins=rs.QuantileBins(100))["h"]) < 0.5


@pytest.mark.parametrize("kind", ["pdp", "ale"])
def test_frequency_weights_are_repeated_rows(kind, rng):
    X = rng.normal(size=(60, 3))
    w = rng.integers(0, 4, 60)
    found = rs.h_statistic(model, X, kind=kind, weights=w, weight_kind="frequency")
    other = rs.h_statistic(model, np.repeat(X, w, axis=0), kind=kind)
    for name in ("h2", "h2_overall", "h2_pairwise", "h", "h_overall", "h_pairwise"):
        np.testing.assert_allclose(found[name], other[name], rtol=1e-9, atol=1e-13)
        np.testing.assert_allclose(found[f"{name}_se"], other[f"{name}_se"], rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(*(rs.confint(one)["h2_ci"] for one in (found, other)), rtol=1e-8)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["pdp", "ale"])
def test_scale_and_shift_of_the_output(kind, rng):
    X = rng.normal(size=(80, 3))
    one = rs.h_statistic(model, X, kind=kind)
    other = rs.h_statistic(lambda X: 3 - 2 * model(X), X, kind=kind)
    below = rs.h_statistic(lambda X: -model(X), X, kind=kind)
    np.testing.assert_allclose(below["h_error"], one["h_error"])
    np.testing.assert_allclose(other["h2_pairwise"], one["h2_pairwise"], rtol=1e-9, atol=1e-20)
    np.testing.assert_allclose(other["h_overall"], 2 * one["h_overall"], rtol=1e-9, atol=1e-13)
    for name, unit in (("h2_pairwise_se", 1), ("h_overall_se", 2)):
        np.testing.assert_allclose(other[name], unit * one[name], rtol=1e-8, atol=1e-13)


@pytest.mark.parametrize("kind", ["pdp", "ale"])
def test_additive_models_and_constants_have_none(kind, rng):
    X = rng.normal(size=(100, 3))
    X[:, 2] = 5.0
    found = rs.h_statistic(lambda X: 1e6 + np.exp(X[:, 0]) + np.sin(X[:, 1]), X, kind=kind)
    assert float(found["h2"]) < 1e-15
    assert float(found["h2_pairwise"].max()) < 1e-15
    flat = rs.h_statistic(lambda X: np.full(len(X), 7.0), X, kind=kind)
    assert float(flat["h2"]) == 0.0
    assert float(flat["h2_pairwise"].max()) == 0.0


@pytest.mark.parametrize("kind", ["pdp", "ale"])
def test_categories(kind):
    X = pd.DataFrame(
        [(p, q, r) for p in "ab" for q in (True, False) for r in "xyz"], columns=["p", "q", "r"]
    )
    X["p"] = X["p"].astype("category")

    def f(X):
        return 2.0 * ((X["p"] == "b") ^ X["q"]) + X["r"].map({"x": 0.0, "y": 1.0, "z": 5.0})

    found = rs.h_statistic(f, X, kind=kind)
    assert found["feature"].values.tolist() == ["p", "q", "r"]
    # All of the joint effect of p and q is interaction.
    assert float(found["h2_pairwise"].sel(feature="p", feature_other="q")) == pytest.approx(1)
    assert float(found["h2_overall"].sel(feature="r")) == 0.0
    assert float(found["h_overall"].sel(feature="p")) == pytest.approx(1.0)


@pytest.mark.thorough
def test_rows_are_drawn_and_said(rng):
    X = rng.normal(size=(700, 2))
    found = rs.h_statistic(lambda X: X[:, 0] * X[:, 1], X, rng=4)
    attrs = found.attrs
    assert (attrs["n_rows"], attrs["n_rows_total"]) == (500, 700)
    drawn = np.sort(np.random.default_rng(attrs["row_seed"]).choice(700, 500, replace=False))
    again = rs.h_statistic(lambda X: X[:, 0] * X[:, 1], X[drawn])
    np.testing.assert_array_equal(found["h2"], again["h2"])
    assert again.attrs["row_seed"] == -1
    # Predictions, two features and one pair.
    assert attrs["n_model_rows"] == 500 + 3 * 500**2 + sum(rows_of_probe(500))
    assert rs.h_statistic(lambda X: X[:, 0], X, kind="ale").attrs["n_rows"] == 700
    assert rs.h_statistic(lambda X: X[:, 0], X[:60], n_rows=None).attrs["n_rows"] == 60


@pytest.mark.parametrize("kind", ["pdp", "ale"])
def test_facts_of_the_call(kind, rng):
    X = pd.DataFrame(rng.normal(size=(12, 3)), columns=["a", "b", "c"])
    X.loc[2, "a"] = np.nan
    X.loc[4, "a"] = np.nan
    weights = np.where(np.arange(12) == 4, 0.0, 2.0)

    def f(X):
        return X["a"].fillna(0) * X["b"] + X["c"]

    more = {"bins": rs.QuantileBins(3)} if kind == "ale" else {}
    found = rs.h_statistic(f, X, kind=kind, weights=weights, missing="drop", normalize=False,
                           n_rows=9, rng=3, **more)  # fmt: skip
    attrs = dict(found.attrs)
    assert len(attrs.pop("table_hash")) == 32
    assert attrs.pop("software").startswith("rhale_stats ")
    probe = sum(rows_of_probe(9))
    rows = {"n_model_calls": 3 + 7, "n_model_rows": 9 + 6 * 81 + probe}
    if kind == "ale":
        rows = {"n_model_calls": 3 + 7, "n_model_rows": 9 + 3 * 18 + 3 * 36 + probe}
        assert attrs.pop("bin_rule") == "QuantileBins"
        assert attrs.pop("bin_parameters") == "n_bins=3"
    expected = {
        "method": "H-statistics",
        "h_kind": kind,
        "estimator": {"pdp": "math [60]", "ale": "math [61]"}[kind],
        "normalize": 0,
        "n_features": 3,
        "n_rows": 9,
        "n_rows_total": 12,
        # A row of weight 0 is not missing: it is no row.
        "n_rows_missing": 1,
        "missing": "drop",
        "row_seed": 3,
        "influence": "kept",
        "n_pairs_left_out": 0,
        "pair_seed": -1,
        "weight_kind": "precision",
        **rows,
    }
    assert {name: attrs[name] for name in expected} == expected
    there = np.setdiff1d(np.arange(12), [2, 4])
    drawn = np.random.default_rng(3).choice(10, 9, replace=False)
    np.testing.assert_array_equal(found["row"], there[np.sort(drawn)])
    np.testing.assert_array_equal(found["obs"], found["row"])
    np.testing.assert_array_equal(found["weight"], np.full(9, 2.0))


def test_as_many_rows_as_there_are_need_no_draw(rng):
    X = rng.normal(size=(12, 2))
    for n_rows, seed in ((12, -1), (13, -1), (None, -1), (11, 0)):
        found = rs.h_statistic(lambda X: X[:, 0] * X[:, 1], X, n_rows=n_rows, rng=0)
        assert found.attrs["row_seed"] == seed
        assert found.attrs["n_rows"] == min(n_rows or 12, 12)


@pytest.mark.thorough
def test_limits_of_the_number_of_rows(rng, monkeypatch):
    X = rng.normal(size=(30, 2))
    monkeypatch.setattr(statistic, "MAX_PDP_ROWS", 20)
    monkeypatch.setattr(statistic, "PDP_ROWS", 10)
    assert rs.h_statistic(lambda X: X[:, 0], X).attrs["n_rows"] == 10
    assert rs.h_statistic(lambda X: X[:, 0], X, n_rows=20).attrs["n_rows"] == 20
    with pytest.raises(ValueError, match="at most 20 rows .*; got n_rows=21 of 30 rows"):
        rs.h_statistic(lambda X: X[:, 0], X, n_rows=21)
    assert rs.h_statistic(lambda X: X[:, 0], X, n_rows=21, kind="ale").attrs["n_rows"] == 21
    assert rs.h_statistic(lambda X: X[:, 0], X, n_rows=2).attrs["n_rows"] == 2
    assert rs.h_statistic(lambda X: X[:, 0], X, n_pairs=1).attrs["n_features"] == 2


@pytest.mark.parametrize("kind", ["pdp", "ale"])
def test_rows_without_any_value_are_refused(kind):
    X = pd.DataFrame({"a": [np.nan, 1.0, 2.0], "b": [1.0, np.nan, 3.0]})
    with pytest.raises(ValueError, match="rows with values of all features; got none of 2. Look"):
        rs.h_statistic(lambda X: X["b"], X, missing="drop", weights=[1, 1, 0], kind=kind)


def test_missing_levels_of_ale_are_a_level(rng):
    X = pd.DataFrame({"k": rng.choice(["u", "v"], 40), "b": rng.normal(size=40)})
    gaps = X.assign(k=X["k"].mask(X["b"] > 0.5), n=np.where(X["b"] > 1, np.nan, 1.0 * (X["b"] > 0)))

    def f(X):
        return X["b"] * X["k"].map({"u": 1.0, "v": 3.0, "z": 7.0}).fillna(7.0).astype(float)

    options = {"kind": "ale", "missing": "bin", "bins": rs.QuantileBins(3)}
    found = rs.h_statistic(f, gaps, features=["k", "b"], **options)
    other = rs.h_statistic(f, gaps.fillna({"k": "z"}), features=["k", "b"], **options)
    for name in ("h2", "h_overall", "h2_se"):
        np.testing.assert_allclose(found[name], other[name], rtol=1e-10)
    # Numbers have no place for a missing value, unless they are levels.
    said = f"along 'n', which has {int(gaps['n'].isna().sum())} in 40 rows"
    with pytest.raises(ValueError, match=said):
        rs.h_statistic(f, gaps, features=["b", "n"], **options)
    order = {"n": "as_is"}
    assert (
        rs.h_statistic(f, gaps, features=["b", "n"], order=order, **options).attrs["n_rows"] == 40
    )


def test_repeated_values_are_asked_for_once_and_in_batches(rng, monkeypatch):
    X = np.column_stack(
        [rng.integers(3, size=100), rng.integers(2, size=100), rng.normal(size=100)]
    )
    asked = []

    def f(X):
        asked.append(len(X))
        return model(X)

    monkeypatch.setattr(differences, "BATCH_ROWS", 1000)
    found = rs.h_statistic(f, X, features=[0, 1])
    assert sum(asked) == found.attrs["n_model_rows"] == 100 * (1 + 3 + 2 + 6) + 250
    assert max(asked) <= 1000
    _, overall, variance, upper, lower = slow(model, X, np.ones(100))
    np.testing.assert_allclose(found["h2_overall"], overall[:2] / variance, rtol=1e-10)
    np.testing.assert_allclose(
        found["h2_pairwise"].values[0, 1], upper[0, 1] / lower[0, 1], rtol=1e-10
    )


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["pdp", "ale"])
def test_several_outputs_and_files(kind, rng, tmp_path):
    X = rng.normal(size=(60, 3))

    def f(X):
        return np.column_stack([model(X), X[:, 0] * X[:, 2]])

    both = rs.h_statistic(f, X, kind=kind)
    one = rs.h_statistic(model, X, kind=kind)
    assert both["h2_pairwise"].dims == ("output", "feature", "feature_other")
    np.testing.assert_allclose(both["h2_pairwise"].isel(output=0), one["h2_pairwise"], rtol=1e-12)
    xr.testing.assert_identical(through_a_file(both, tmp_path), both)
    alone = rs.h_statistic(model, X, kind=kind, pairwise=False)
    assert "h2_pairwise" not in alone
    np.testing.assert_array_equal(alone["h2_overall"], one["h2_overall"])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"features": ["x0"]}, ValueError, "at least two.*got 1"),
        ({"features": "x0"}, TypeError, "sequence of two columns.*got 'x0'"),
        ({"features": np.int64(1)}, TypeError, "sequence of two columns"),
        ({"features": [0, 0]}, ValueError, "distinct"),
        ({"features": [0, 9]}, KeyError, "got 9"),
        ({"kind": "shap"}, ValueError, "'pdp', 'ale'; got 'shap'"),
        ({"n_rows": 1}, ValueError, "n_rows must be at least 2; got 1"),
        ({"n_rows": "some"}, ValueError, "got 'some'"),
        ({"bins": rs.QuantileBins(3)}, ValueError, "for kind='ale'"),
        ({"order": ["u", "v"]}, ValueError, "for kind='ale'"),
        ({"order": {"x0": "as_is"}}, ValueError, "for kind='ale'"),
        ({"kind": "ale", "bins": rs.OptimalBins()}, TypeError, "got OptimalBins"),
        ({"kind": "ale", "keep_answers": True}, ValueError, "keep_answers must be False"),
        ({"weights": np.zeros(30)}, ValueError, "not all be zero"),
    ],
)
def test_bad_arguments(rng, arguments, error, message):
    with pytest.raises(error, match=message):
        rs.h_statistic(model, rng.normal(size=(30, 3)), **arguments)


def test_estimators_are_checked_when_they_are_made():
    for bins, error in ((rs.OptimalBins(), TypeError), (3, TypeError), ([rs.QuantileBins(3)] * 3,
                        TypeError)):  # fmt: skip
        with pytest.raises(error, match="bins must be"):
            rs.HEstimator(kind="ale", bins=bins)
    assert rs.HEstimator(kind="ale", bins=rs.QuantileBins(3)).bins == rs.QuantileBins(3)


def test_differences_that_are_not_finite_are_counted_by_rows():
    """At an edge the model has no value; rows beside it are counted, whichever output it is."""
    x = np.array([0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9])
    X = np.column_stack([x, x[::-1]])

    def f(X):
        return np.column_stack([X[:, 0], np.where(X[:, 0] == 0.5, np.inf, X[:, 1])])

    bins = rs.GivenBins([0.0, 0.25, 0.5, 0.75, 1.0])
    with pytest.raises(ValueError, match="Differences of feature 'x0' must be finite; got 4 "):
        rs.h_statistic(f, X, kind="ale", bins=bins)


def test_bad_data_and_models(rng):
    X = pd.DataFrame(rng.normal(size=(30, 2)), columns=["a", "b"]).assign(k=["p", None] * 15)
    with pytest.raises(ValueError, match="'k' must have a level in every row; got 15 missing"):
        rs.h_statistic(lambda X: X["a"], X)
    with pytest.raises(ValueError, match="feature 'a' must be finite; got 30 NaN"):
        rs.h_statistic(lambda X: X["b"], X.assign(a=np.nan), features=["a", "b"])
    with pytest.raises(ValueError, match="finite numbers; got"):
        rs.h_statistic(lambda X: X["a"].where(X["a"] > 0), X, features=["a", "b"])

    def raises(X):
        if len(X) > 30:
            raise RuntimeError("too many")
        return X["a"]

    with pytest.raises(rs.ModelError, match="ValueError on all 30 rows looked at of X: could not"):
        rs.h_statistic(lambda X: X.to_numpy(float)[:, 0], X.assign(k="p"))
    with pytest.raises(rs.ModelError, match="RuntimeError for 'a', called with 900 rows"):
        rs.h_statistic(raises, X, features=["a", "b"])


# --- tables --------------------------------------------------------------------------------------


def test_tables(rng):
    X = rng.normal(size=(80, 4))
    found = rs.h_statistic(model, X, n_rows=60, rng=3)
    table = rs.tidy(found)
    assert table["kind"].tolist() == ["overall"] * 4 + ["pair"] * 6
    overall = table[table["kind"] == "overall"].set_index("term")
    np.testing.assert_array_equal(overall["h2"], found["h2_overall"])
    np.testing.assert_array_equal(overall["h"], found["h_overall"])
    pairs = table[table["kind"] == "pair"].set_index("term")
    for a, b in combinations(found["feature"].values, 2):
        line = pairs.loc[f"{a}:{b}"]
        assert line["h2"] == found["h2_pairwise"].sel(feature=a, feature_other=b)
        assert line["h"] == found["h_pairwise"].sel(feature=a, feature_other=b)
    # Of some features, each pair once.
    some = rs.tidy(found.sel(feature=["x1", "x0"]))
    assert some["term"].tolist()[2:] == ["x1:x0", "x1:x2", "x1:x3", "x0:x2", "x0:x3"]
    line = rs.glance(found).iloc[0]
    assert line["h2"] == found["h2"]
    assert (line["kind"], line["n_rows"], line["n_rows_total"]) == ("pdp", 60, 80)
    assert line["n_model_rows"] == found.attrs["n_model_rows"]
    assert rs.tidy(rs.h_statistic(model, X, pairwise=False))["kind"].unique() == ["overall"]


@pytest.mark.parametrize(("normalize", "first"), [(True, "x0:x2"), (False, "x0:x1")])
def test_summary_has_the_largest_first(rng, normalize, first):
    X = rng.normal(size=(80, 4))

    def f(X):
        # The larger share is of the smaller of both interactions.
        return 3 * X[:, 0] * X[:, 1] + 9 * X[:, 1] + X[:, 0] * X[:, 2]

    found = rs.h_statistic(f, X, normalize=normalize, n_rows=60, rng=3)
    text = str(rs.summary(found))
    assert "60 of 80" in text
    assert "partial dependence" in text
    assert f"{float(found['h2']):.4g}" in text
    assert f"{found.attrs['n_model_rows']}" in text
    terms = [line.split()[0] for line in text.splitlines() if line.startswith("x")]
    assert sorted(terms) == sorted(rs.tidy(found)["term"])
    assert terms[4] == first
    one = str(rs.summary(found, "x3")).splitlines()
    assert [line.split()[0] for line in one if line.startswith("x")] == [
        *("x3", "x3:x0", "x3:x1", "x3:x2")
    ]
    with pytest.raises(KeyError, match="'x9'"):
        rs.summary(found, "x9")


@pytest.mark.thorough
def test_tables_of_several_outputs_and_many_pairs(rng):
    X = rng.normal(size=(40, 7))

    def f(X):
        return np.column_stack([model(X), X[:, 0] * X[:, 2]])

    both = rs.h_statistic(f, X, kind="ale")
    assert rs.tidy(both).groupby("output").size().tolist() == [28, 28]
    assert rs.glance(both)["output"].tolist() == [0, 1]
    assert any("The 15 largest of 21 pairs" in note for note in rs.summary(both).notes)
    assert "interactions in output 1" in str(rs.summary(both))
    assert any("QuantileBins(n_bins=10)" in note for note in rs.summary(both).notes)


@pytest.mark.parametrize("kind", ["pdp", "ale"])
def test_rounding_of_single_precision_is_no_interaction(kind):
    X = np.random.default_rng(0).normal(size=(200, 3))

    def additive(X):
        return (X[:, 0] + X[:, 1] ** 2).astype(np.float32)

    found = rs.h_statistic(additive, X, kind=kind, rng=0)
    assert float(found["h"]) == 0
    assert not found["h_overall"].any()
    assert not found["h2_pairwise"].fillna(0).any()
    assert 0 < float(found["h_error"]) < 1e-4


def test_more_rows_than_memory_are_refused():
    """users.md, reliability.md: n_rows=None took n² numbers, without a limit."""
    X = np.random.default_rng(0).normal(size=(6000, 2))

    def model(X):
        raise AssertionError("refused before the model is asked")

    for n_rows in (None, 5500):
        with pytest.raises(ValueError, match=f"at most 5000 rows .*; got n_rows={n_rows} of 6000"):
            rs.h_statistic(model, X, n_rows=n_rows)
    found = rs.h_statistic(lambda X: X[:, 0] * X[:, 1], X, n_rows=None, kind="ale", progress=False)
    assert found.attrs["n_rows"] == 6000
