"""Effects on the outcome: closed forms, brute force, every verb, coverage and size."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf
import xarray as xr
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.tree import DecisionTreeRegressor

import rhale_stats as rs


def drawn(n=600, seed=0):
    """Correlated x0 and x1, levels and a count; x0 has slope 1, level "u" adds .5."""
    rng = np.random.default_rng(seed)
    x = rng.multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], n)
    X = pd.DataFrame({"x0": x[:, 0], "x1": x[:, 1], "g": rng.choice(list("uvw"), n)})
    X["k"] = rng.integers(0, 4, n)
    y = pd.Series(X.x0 + 0.5 * (X.g == "u") + rng.normal(size=n), name="sales")
    return X, y


@pytest.fixture(scope="module")
def effect():
    return rs.outcome_effects("x0 + x1 + g + k", *drawn(), rng=0, progress=False)


@pytest.mark.thorough
def test_what_it_says_of_itself(effect):
    attrs = effect.attrs
    assert (attrs["target"], attrs["learner"], attrs["seed"]) == ("outcome", "formula", 0)
    assert (attrs["n_folds"], attrs["n_repeats"], attrs["output_name"]) == (5, 2, "sales")
    assert effect["feature_kind"].values.tolist() == [
        *("continuous", "continuous", "nominal", "ordinal")
    ]
    assert effect["effect_se"].attrs["source"] == "rows and refits of the learner"


def test_an_outcome_that_pandas_named_after_a_column():
    X = drawn(100)[0][["x0", "x1"]]
    y = 2 * X.x0 + np.random.default_rng(0).normal(size=100)
    assert y.name == "x0"
    effect = rs.outcome_effects("x0 + x1", X, y, rng=0, progress=False)
    assert effect.attrs["output_name"] == "output"
    options = {"held_out": True, "outcome": False, "rng": 0, "progress": False}
    assert "output" in str(rs.explain(LinearRegression().fit(X, y), X, y, **options)).split("\n")[0]


def test_real_effects_are_found_and_others_are_not(effect):
    pvalue = rs.wald_test(effect)["p_value"]
    assert (pvalue.sel(feature=["x0", "g"]) < 0.001).all()
    assert (pvalue.sel(feature=["x1", "k"]) > 0.05).all()
    change = effect.sel(feature="x0")
    low, high = change["usual_difference_ci"].values
    assert low < float(change["usual_high"] - change["usual_low"]) < high


@pytest.mark.parametrize("weight", [7.3, 0.1, 1 / 3])
@pytest.mark.parametrize("n", [500, 600, 800])
def test_equal_weights_are_no_weights(n, weight):
    """As many bins, which rounding decided; and a logit where outcomes are 0 and 1."""
    X, y = drawn(n)
    options = {"features": ["x0"], "n_repeats": 1, "rng": 0, "progress": False}
    for outcome in (y, (y > 0).astype(int)):
        alone = rs.outcome_effects("x0 + x1", X, outcome, **options)
        weighted = rs.outcome_effects("x0 + x1", X, outcome, weights=np.full(n, weight), **options)
        assert alone.sizes["bin"] == n // 100
        for name in ("effect", "effect_se", "curve_se", "usual_difference"):
            np.testing.assert_allclose(weighted[name], alone[name], rtol=1e-6, atol=1e-9)


def test_repeated_rows_count_as_often_as_they_are():
    """A row that represents four: the errors of rows are halved, and bins are of all rows."""
    X, y = drawn(300)
    options = {"features": ["x0", "g"], "bins": 4, "rng": 0, "progress": False}
    alone = rs.outcome_effects(LinearRegression(), X.assign(g=X.g == "u"), y, **options)
    counted = rs.outcome_effects(
        LinearRegression(),
        X.assign(g=X.g == "u"),
        y,
        weights=np.full(300, 4),
        weight_kind="frequency",
        **options,
    )
    np.testing.assert_allclose(counted["effect"], alone["effect"], rtol=2e-2, atol=5e-3)
    ratio = counted["effect_se"] / alone["effect_se"]
    assert 0.45 < float(ratio.mean()) < 0.6
    assert counted.attrs["n_groups"] == 1200
    assert float(counted["effect_df"].max()) == 1199
    assert counted["n_obs"].sum("bin").max() > 1100
    # By groups it makes no difference how rows are counted.
    options["groups"] = np.arange(300) // 3
    of_weights, of_counts = [
        rs.outcome_effects(
            LinearRegression(),
            X.assign(g=X.g == "u"),
            y,
            weights=np.full(300, 4),
            weight_kind=kind,
            **options,
        )
        for kind in ("precision", "frequency")
    ]
    np.testing.assert_allclose(of_counts["effect_se"], of_weights["effect_se"], rtol=0.05)


@pytest.mark.parametrize("model", ["logit", "probit", "glm"])
def test_results_for_outcomes_of_0_and_1_are_fitted_again(model):
    """Newer statsmodels give a logit a family, which it does not take."""
    X, y = drawn(300)
    data = X.assign(won=(y > 0).astype(int))
    options = {"family": sm.families.Binomial()} if model == "glm" else {}
    quiet = {} if model == "glm" else {"disp": 0}
    fit = getattr(smf, model)("won ~ x0 + x1", data, **options).fit(**quiet)
    found = rs.outcome_effects(fit, X, data.won, ["x0"], rng=0, progress=False)
    if model != "probit":
        by_formula = rs.outcome_effects("x0 + x1", X, data.won, ["x0"], rng=0, progress=False)
        np.testing.assert_allclose(found["effect"], by_formula["effect"], rtol=1e-4)
    assert float(found["usual_difference_pvalue"][0]) < 0.001


@pytest.mark.parametrize("labels", ["twice", "panel"])
def test_outcomes_go_by_labels_that_do_not_name_rows(labels):
    X, y = drawn(200)
    groups = pd.Series(np.arange(200) // 4)
    expected = rs.outcome_effects("x0 + x1", X, y, groups=groups, rng=0, progress=False)
    index = np.arange(200) // 2
    if labels == "panel":
        index = pd.MultiIndex.from_product([range(50), range(4)])
    X.index = y.index = groups.index = index
    found = rs.outcome_effects("x0 + x1", X, y, groups=groups, rng=0, progress=False)
    np.testing.assert_array_equal(found["effect"], expected["effect"])


def test_a_learner_that_knows_the_truth_gives_the_true_differences():
    """Its residuals are noise: what the dictionary makes of them is within the standard errors."""
    X, _ = drawn()

    def fit(rows, outcomes):
        return lambda rows: np.asarray(rows.x0**2)

    effect = rs.outcome_effects(fit, X[["x0", "x1"]], X.x0**2, rng=0, progress=False)
    edges = effect["edge_value"].sel(feature="x0").values
    np.testing.assert_allclose(
        effect["effect"].sel(feature="x0"), np.diff(edges**2) / np.diff(edges), rtol=1e-10
    )
    np.testing.assert_allclose(effect["effect"].sel(feature="x1"), 0, atol=1e-10)
    curve = effect["curve"].sel(feature="x0").values
    np.testing.assert_allclose(curve - curve[0], edges**2 - edges[0] ** 2, rtol=1e-10)


@pytest.mark.parametrize("scale", [0.0, 3.0])
def test_what_a_linear_learner_has_wrong_is_corrected(scale):
    """A learner that says 0, or three times the slope: less than a tenth of its error is left.

    What is left is the product of its error and that of the dictionary with its ridge.
    """
    X, y = drawn(3000)

    def fit(rows, outcomes):
        return lambda rows: scale * np.asarray(rows.x0)

    effect = rs.outcome_effects(fit, X[["x0", "x1"]], y, rng=0, progress=False)
    row = effect.sel(feature="x0")
    truth = float(row["usual_high"] - row["usual_low"])
    assert abs(float(row["usual_difference"]) - truth) < 0.1 * abs(scale - 1) * truth


def test_long_hand():
    """The formulas of math [114] in loops, for one feature and two folds without repeats."""
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(80, 1)), rng.normal(size=80)
    fitted = []

    def fit(rows, outcomes):
        fitted.append((rows, outcomes))
        tree = DecisionTreeRegressor(max_depth=3, random_state=0).fit(rows, outcomes)
        return tree.predict

    settings = {"n_folds": 2, "n_repeats": 1, "bins": 4, "rng": 0, "progress": False}
    effect = rs.outcome_effects(fit, X, y, **settings)
    edges = effect["edge_value"].values[0]
    trees = [DecisionTreeRegressor(max_depth=3, random_state=0).fit(*data) for data in fitted]
    # The first model is without the rows of the first fold.
    seen = [set(map(float, rows[:, 0])) for rows, _ in fitted]
    own = np.array([0 if float(x) not in seen[0] else 1 for x in X[:, 0]])
    value, residual, number = np.empty(80), np.empty(80), np.empty(80, dtype=int)
    hats = np.array([np.interp(X[:, 0], edges, unit) for unit in np.eye(5)[1:]]).T
    mean, deviation = hats.mean(axis=0), hats.std(axis=0)
    for i in range(80):
        k = number[i] = min(np.searchsorted(edges, X[i, 0], side="right") - 1, 3)
        ends = trees[own[i]].predict(edges[k : k + 2, None])
        value[i] = (ends[1] - ends[0]) / (edges[k + 1] - edges[k])
        residual[i] = y[i] - trees[own[i]].predict(X[i : i + 1])[0]
    basis = np.column_stack([np.ones(80), (hats - mean) / deviation])
    gram = basis.T @ basis / 80 + np.diag([0, *[0.01] * 4]) + 1e-12 * np.eye(5)
    rho = np.linalg.solve(gram, basis.T @ residual / 80)
    for k in range(4):
        up = np.eye(4)[k] - (np.eye(4)[k - 1] if k else 0)
        change = np.r_[0, up / (edges[k + 1] - edges[k]) / deviation]
        # Rows on an edge between two bins count half in each.
        weight = (number == k) * 1.0
        weight[np.isin(X[:, 0], edges[1:-1]) & (number == k)] = 0.5
        left = np.isin(X[:, 0], edges[k + 1 : k + 2]) & (k < 3)
        total = weight @ value
        for i in np.flatnonzero(left):
            ends = trees[own[i]].predict(edges[k : k + 2, None])
            total += 0.5 * (ends[1] - ends[0]) / (edges[k + 1] - edges[k])
        expected = total / (weight.sum() + 0.5 * left.sum()) + change @ rho
        assert effect["effect"].values[0, k] == pytest.approx(expected, rel=1e-9)


@pytest.mark.thorough
def test_the_same_seed_gives_the_same_numbers_and_order_of_columns_does_not_matter():
    X, y = drawn(300)
    X = X[["x0", "x1"]]
    one = rs.outcome_effects(LinearRegression(), X, y, rng=3, progress=False)
    two = rs.outcome_effects(LinearRegression(), X, y, rng=3, progress=False)
    xr.testing.assert_identical(one, two)
    other = rs.outcome_effects(LinearRegression(), X[["x1", "x0"]], y, rng=3, progress=False)
    for name in ("effect", "effect_se", "curve_se"):
        np.testing.assert_allclose(other[name].sel(feature="x0"), one[name].sel(feature="x0"))


def test_groups_of_one_row_are_rows():
    X, y = drawn(200)
    X = X[["x0", "x1"]]
    rows = rs.outcome_effects(LinearRegression(), X, y, rng=0, progress=False)
    groups = rs.outcome_effects(
        LinearRegression(), X, y, groups=np.arange(200), rng=0, progress=False
    )
    # Folds are drawn alike.
    np.testing.assert_allclose(groups["effect_se"], rows["effect_se"])


@pytest.mark.thorough
def test_rows_that_are_repeated_in_groups_have_the_errors_of_one():
    X, y = drawn(300)
    X = X[["x0", "x1"]]
    rows = rs.outcome_effects("x0 + x1", X, y, rng=0, progress=False)
    twice, again = pd.concat([X, X], ignore_index=True), pd.concat([y, y], ignore_index=True)
    groups = np.tile(np.arange(300), 2)
    found = rs.outcome_effects(
        "x0 + x1", twice, again, bins=4, groups=groups, rng=0, progress=False
    )
    as_rows = rs.outcome_effects("x0 + x1", twice, again, bins=4, rng=0, progress=False)
    ratio = float((found["usual_difference_se"] / as_rows["usual_difference_se"]).mean())
    assert ratio == pytest.approx(np.sqrt(2), rel=0.1)
    assert found.attrs["n_groups"] == 300
    assert rows.attrs["n_groups"] == 300


def test_weights_of_zero_leave_rows_out():
    X, y = drawn(300)
    X, some = X[["x0", "x1"]], np.arange(300) < 200
    weighted = rs.outcome_effects(
        LinearRegression(), X, y, weights=1.0 * some, rng=0, progress=False
    )
    fewer = rs.outcome_effects(LinearRegression(), X[some], y[some], rng=0, progress=False)
    np.testing.assert_allclose(weighted["effect"], fewer["effect"])


def of_nothing(X, y):
    """A learner that says 0."""
    return lambda X: np.zeros(len(X))


@pytest.mark.thorough
def test_the_bins_end_where_a_hundredth_of_the_rows_is_farther_out():
    X, y = drawn(1000)
    X = X[["x0", "x1"]]
    effect = rs.outcome_effects(of_nothing, X, y, rng=0, progress=False)
    edges = effect["edge_value"].values[:, [0, -1]]
    points = np.quantile(X, [0.01, 0.99], axis=0, method="inverted_cdf").T
    np.testing.assert_array_equal(edges, points)
    # Below the 1 % point are 9 rows, above the 99 % point 10.
    assert effect["n_beyond"].values.tolist() == [19, 19]
    assert (effect["n_obs"].sum("bin") == 981).all()
    assert effect.attrs["n_rows"] == 1000
    numbered = rs.outcome_effects(of_nothing, X, y, bins=3, rng=0, progress=False)
    np.testing.assert_array_equal(numbered["edge_value"].values[:, [0, -1]], points)
    said = "which end at 1 % and 99 % of the rows, left out of their feature: x0: 19"
    for text in (str(rs.summary(effect)), str(rs.summary(effect, "x0"))):
        assert said in text
        assert "Rows beyond the bins:" in text
    assert f"{said}, x1: 19." in str(rs.summary(effect))


@pytest.mark.thorough
def test_the_points_at_the_ends_are_by_weight():
    X, y = drawn(1000)
    weights = np.where(X["x0"] > X["x0"].quantile(0.9), 0.01, 1.0)
    effect = rs.outcome_effects(
        of_nothing, X[["x0"]], y, weights=weights, rng=0, progress=False
    ).isel(feature=0)
    low, high = effect["edge_value"].values[[0, -1]]
    outside = ((X["x0"] < low) | (X["x0"] > high)).to_numpy()
    assert effect["n_beyond"] == outside.sum() > 100
    for side in (X["x0"] < low, X["x0"] > high):
        assert 0.008 <= weights[side].sum() / weights.sum() <= 0.01


@pytest.mark.thorough
def test_a_distant_row_moves_no_effect():
    """It is in no bin, and has a function of its own in the correction."""
    X, y = drawn(1000)
    X, last = X[["x0", "x1"]].copy(), X["x0"].idxmax()
    effects = []
    for value, outcome in ((5.0, 0.0), (5000.0, 0.0), (5000.0, 50.0)):
        X.loc[last, "x0"], y[last] = value, outcome
        effects.append(rs.outcome_effects(of_nothing, X, y, "x0", rng=0, progress=False))
    np.testing.assert_allclose(effects[1]["curve"], effects[0]["curve"])
    np.testing.assert_allclose(effects[1]["curve_se"], effects[0]["curve_se"])
    far = np.abs(effects[2]["curve"] - effects[0]["curve"]).max()
    assert far < 0.3 * effects[0]["curve_se"].min()


@pytest.mark.filterwarnings("ignore:Few rows carry", "ignore:Bins or levels with fewer")
def test_values_that_many_rows_have_are_not_cut_off():
    rng, n = np.random.default_rng(0), 2000
    X = pd.DataFrame({"count": rng.poisson(3, n)})
    X["age"] = np.clip(np.round(50 + 30 * rng.normal(size=n)), 20, 80)
    X["mostly"] = np.where(np.arange(n) < 15, rng.uniform(1, 2, n), 0.0)
    effect = rs.outcome_effects(of_nothing, X, rng.normal(size=n), rng=0, progress=False)
    levels = effect["level"].sel(feature="count").values
    assert [level for level in levels if level] == [f"{value}" for value in np.unique(X["count"])]
    ends = effect["edge_value"].sel(feature=["age", "mostly"])
    assert ends.min("edge").values.tolist() == [20, 0]
    # The 1 % and 99 % points are both 0: all rows stay.
    assert ends.max("edge").values.tolist() == [80, X["mostly"].max()]
    assert not effect["n_beyond"].any()
    assert "Rows beyond them" not in str(rs.summary(effect))


def test_bins_that_are_given_are_kept():
    X, y = drawn(300)
    rules = (rs.QuantileBins(4), rs.GivenBins([-9, 0, 9]))
    for rule, ends in zip(rules, ([X["x0"].min(), X["x0"].max()], [-9, 9]), strict=True):
        effect = rs.outcome_effects(of_nothing, X[["x0"]], y, bins=rule, rng=0, progress=False)
        assert effect["edge_value"].values[0, [0, -1]].tolist() == ends
        assert effect["n_beyond"] == 0


@pytest.mark.thorough
@pytest.mark.parametrize("form", ["whole numbers", "dates", "array"])
def test_rows_beyond_the_bins_of_other_columns(form):
    rng = np.random.default_rng(0)
    days = rng.integers(0, 3000, 400)
    tables = {
        "whole numbers": pd.DataFrame({"x": pd.array(days, dtype="Int64")}),
        "dates": pd.DataFrame({"x": pd.Timestamp("2020-01-01") + pd.to_timedelta(days, "D")}),
        "array": days[:, None],
    }
    effect = rs.outcome_effects(
        of_nothing, tables[form], rng.normal(size=400), rng=0, progress=False
    )
    assert effect["n_beyond"].item() == 400 - effect["n_obs"].sum("bin").item() == 7
    assert effect["feature_kind"].item() == "continuous"


def test_classes_are_probabilities():
    X, y = drawn(800)
    words = np.where(y > 0, "sold", "kept")
    effect = rs.outcome_effects(
        LogisticRegression(), X[["x0", "x1"]], words, output="sold", rng=0, progress=False
    )
    assert effect.attrs["output_label"] == "sold"
    assert effect.attrs["output_name"] == "probability of sold"
    row = effect.sel(feature="x0")
    assert 0.3 < float(row["usual_difference"]) < 0.9
    assert float(effect["usual_difference_pvalue"].sel(feature="x1")) > 0.01


@pytest.mark.thorough
def test_missing_values_take_part_in_other_features():
    X, y = drawn(400)
    X = X[["x0", "x1"]].copy()
    X.loc[:39, "x1"] = np.nan

    def fit(rows, outcomes):
        slope = np.polyfit(rows.x0, outcomes, 1)
        return lambda rows: np.polyval(slope, rows.x0)

    effect = rs.outcome_effects(fit, X, y, rng=0, progress=False)
    assert (effect["n_obs"].sum("bin") + effect["n_beyond"]).sel(feature="x0") >= 400
    assert effect["n_missing"].to_series().to_dict() == {"x0": 0, "x1": 40}
    assert effect["n_obs"].sum("bin").sel(feature="x1") < 375


@pytest.mark.parametrize(("groups", "n_groups"), [(None, 297), (np.arange(300) // 3, 99)])
def test_rows_without_a_prediction_are_left_out(groups, n_groups):
    X, y = drawn(300)
    X.loc[3:5, "x1"] = np.nan
    with pytest.warns(UserWarning, match=r"no prediction in 3 of 300 rows \(3, 4, 5\)\.$"):
        effect = rs.outcome_effects("x0 + x1", X, y, groups=groups, rng=0, progress=False)
    assert (effect.attrs["n_rows"], effect.attrs["n_groups"]) == (297, n_groups)
    assert (rs.wald_test(effect)["p_value"].sel(feature=["x0", "x1"]) < 1).all()
    with pytest.raises(ValueError, match="give none in 300 of 300 rows"):
        rs.outcome_effects(
            lambda X, y: lambda X: np.full(len(X), np.inf), X, y, rng=0, progress=False
        )


def test_the_outcome_among_the_columns_explains_nothing():
    """A table often holds the outcome, too: what the learner does not use is not held fixed."""
    X, y = drawn(400)
    settings = {"features": "x0", "rng": 0, "progress": False}
    alone = rs.outcome_effects("sales ~ x0 + x1", X[["x0", "x1"]], y, **settings)
    beside = rs.outcome_effects("sales ~ x0 + x1", X[["x0", "x1"]].assign(sales=y), y, **settings)
    np.testing.assert_allclose(beside["effect"], alone["effect"])

    def fit(rows, outcomes):  # its columns are not known
        slope = np.polyfit(rows.x0, outcomes, 1)
        return lambda rows: np.polyval(slope, rows.x0)

    with pytest.warns(UserWarning, match="it is the outcome itself: sales"):
        found = rs.outcome_effects(fit, X[["x0", "x1"]].assign(sales=y), y, **settings)
    assert found["usual_difference"].item() > 1


def test_results_of_statsmodels_are_fitted_again():
    import statsmodels.api as sm
    import statsmodels.formula.api as smf

    X, y = drawn(400)
    data = X.assign(sold=1 * (y > 0))
    fit = smf.glm("sold ~ x0 + x1", data, family=sm.families.Binomial()).fit()
    effect = rs.outcome_effects(fit, X[["x0", "x1"]], data["sold"], rng=0, progress=False)
    assert effect.attrs["learner"] == "GLM"
    assert (rs.wald_test(effect)["p_value"] < [0.001, 2]).all()
    weighted = smf.wls("y ~ x0", data.assign(y=y), weights=1 + X["k"]).fit()
    with pytest.raises(TypeError, match="without weights of single rows"):
        rs.outcome_effects(weighted, X[["x0"]], y, progress=False)


def test_an_output_of_statsmodels_is_a_number_not_a_name():
    """Output 1 of the categories 1, 2, 3 is the second: its probability rises with x0."""
    import statsmodels.formula.api as smf

    X, _ = drawn(600)
    noise = np.random.default_rng(1).logistic(size=600)
    kind = np.where(X.x0 + noise > 0, 2, np.where(noise > -1.5, 1, 3))
    fit = smf.mnlogit("kind ~ x0", X.assign(kind=kind)).fit(disp=0)
    effect = rs.outcome_effects(fit, X[["x0"]], kind, output=1, rng=0, progress=False)
    assert effect["usual_difference"].item() > 3 * effect["usual_difference_se"].item()


VERBS = {
    "std_error": rs.std_error,
    "confint": rs.confint,
    "confband": lambda effect: rs.confband(effect, rng=0),
    "vcov": lambda effect: rs.vcov(effect, "x0", of="curve"),
    "wald_test": rs.wald_test,
    "constant": lambda effect: rs.wald_test(effect, "constant"),
    "compare": lambda effect: rs.compare(effect, effect, rng=0),
    "effect_sizes": rs.effect_sizes,
    "predict": lambda effect: rs.predict(effect, [0.0, 1.0], "x0"),
    "tidy": rs.tidy,
    "glance": rs.glance,
    "summary": lambda effect: str(rs.summary(effect)),
    "summary of one": lambda effect: str(rs.summary(effect, "x0")),
    "show": lambda effect: str(rs.show(effect)),
    "plots.effect": lambda effect: rs.plots.effect(effect, "x0"),
    "plot of levels": lambda effect: rs.plots.effect(effect, "g"),
    "plots.forest": rs.plots.forest,
}


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_takes_it(effect, verb):
    assert VERBS[verb](effect) is not None


def test_a_summary_says_the_usual_change_and_what_the_errors_hold(effect):
    text = str(rs.summary(effect))
    assert "Effects on the outcome: sales" in text
    assert "Effect of x0 on the outcome: sales" in str(rs.summary(effect, "x0"))
    assert "Standard errors hold the sampling of rows and the fit of the learner" in text
    assert "Debiased effects of formula, fitted 2 × 5 times" in text
    # The spread of effects on the outcome is not estimated.
    assert "H:" not in str(rs.show(effect))


@pytest.mark.thorough
def test_a_file_holds_it(effect, tmp_path):
    effect.to_netcdf(tmp_path / "outcome.nc")
    with xr.open_dataset(tmp_path / "outcome.nc") as read:
        assert str(rs.summary(read.load())) == str(rs.summary(effect))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"fit": lambda X: X}, TypeError, "cannot be fitted again"),
        ({"fit": "x0 + nowhere"}, ValueError, "fit must be a formula of the columns of X, x0, x1"),
        ({"bins": rs.AdaptiveBins()}, ValueError, "bins must be a number or a rule that does not"),
        ({"n_folds": 1}, ValueError, "n_folds must be at least 2"),
        ({"n_folds": 200}, ValueError, "n_folds must leave at least two rows"),
        ({"y": np.r_[np.nan, np.ones(299)]}, ValueError, "y must have a value in every row"),
        ({"y": np.ones(3)}, ValueError, "y must"),
        ({"features": "nowhere"}, KeyError, "nowhere"),
    ],
)
def test_what_is_refused(options, error, message):
    X, y = drawn(300)
    asked = {"fit": LinearRegression(), "X": X[["x0", "x1"]], "y": y, "progress": False, **options}
    with pytest.raises(error, match=message):
        rs.outcome_effects(**asked)


def test_thin_levels_are_said():
    rng = np.random.default_rng(0)
    x = rng.normal(size=400)
    X = pd.DataFrame({"x0": x, "x1": x + 1e-3 * rng.normal(size=400)})
    X["rare"] = np.where(np.arange(400) < 4, "a", "b")
    with pytest.warns(UserWarning, match="fewer than 10 rows.*: rare"):
        rs.outcome_effects(
            lambda X, y: lambda X: np.asarray(X.x0), X, x + X["x1"], rng=0, progress=False
        )


@pytest.mark.slow
def test_intervals_hold_the_truth_and_noise_is_not_an_effect():
    """x0 + sin 2 x1 with correlation .7, trees of depth 4: 25 samples of 500 rows.

    A share of .95 over 25 samples of 10 bins, correlated within a sample, has a Monte-Carlo error
    of about .015; 25 tests of size .05 have .044.
    """
    rng = np.random.default_rng(0)
    held, rejected = [], []
    for seed in range(25):
        x = rng.multivariate_normal(np.zeros(3), 0.7 + 0.3 * np.eye(3), 500)
        y = 0.5 * x[:, 0] + np.sin(2 * x[:, 1]) + rng.normal(size=500)
        tree = DecisionTreeRegressor(max_depth=4, random_state=0)
        effect = rs.confint(rs.outcome_effects(tree, x, y, rng=seed, progress=False))
        ends = effect["effect_ci"].transpose("feature", "ci_bound", "bin").values
        edges = effect["edge_value"].values
        truth = [
            np.full(edges.shape[1] - 1, 0.5),
            np.diff(np.sin(2 * edges[1])) / np.diff(edges[1]),
        ]
        for low_high, true in zip(ends[:2], truth, strict=True):
            held += list((low_high[0] <= true) & (true <= low_high[1]))
        rejected.append(float(rs.wald_test(effect)["p_value"][2]) <= 0.05)
    assert 0.90 <= np.mean(held) <= 1
    assert np.mean(rejected) <= 0.05 + 3 * 0.044


@pytest.mark.thorough
def test_more_rows_have_a_finer_dictionary():
    """Of a learner that knows lines alone the bins of sin(2b) are right all the same.

    By hats at the edges alone the outermost bins were 2 standard errors off at 4,000 rows.
    """
    off = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        values = rng.multivariate_normal([0, 0], [[1, 0.7], [0.7, 1]], 4000)
        X = pd.DataFrame(values, columns=["a", "b"])
        y = np.sin(2 * X.b) + rng.normal(size=4000)
        effect = rs.outcome_effects(LinearRegression(), X, y, rng=seed, progress=False)
        edges = effect["edge_value"].sel(feature="b").values
        true = np.stack([np.zeros(8), np.diff(np.sin(2 * edges)) / np.diff(edges)])
        off.append((effect["effect"].sel(feature=["a", "b"]).values - true) / effect["effect_se"])
    # The mean of eight has a standard deviation of .35.
    assert np.abs(np.mean(off, axis=0)).max() < 1.2
