"""Combinations of estimates: tests of statsmodels and SciPy, delta method, refusals."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from numpy.testing import assert_allclose
from scipy import stats

import rhale_stats as rs
from tests.helpers import CARS

FIT = smf.ols("mpg ~ hp + wt + cyl", CARS).fit()


@pytest.fixture(scope="module")
def slopes():
    """Average slopes of a line: they are its coefficients."""
    found = rs.averages(FIT, CARS[["hp", "wt", "cyl"]], uncertainty="parameters")
    return found.sel(term=found["kind"] == "slope")


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("hp = wt", "hp = wt"),
        ("b1 - 2 * b2 + 1", "hp - 2 * wt = -1"),
        (["hp = 0", "`wt` = -3"], "hp = 0, wt = -3"),
        ([[1, 0, -0.5], [0, 1, 1]], "hp - 0.5 * cyl = 0, wt + cyl = 0"),
        (None, "hp = 0, wt = 0, cyl = 0"),
        ("sequential", "wt - hp = 0, cyl - wt = 0"),
        ("reference", "wt - hp = 0, cyl - hp = 0"),
    ],
    ids=str,
)
def test_tests_are_those_of_statsmodels(slopes, ours, theirs):
    found = rs.hypotheses(slopes, ours, adjust="none")
    single, joint = FIT.t_test(theirs), FIT.f_test(theirs)
    table = rs.tidy(found)
    assert_allclose(table["estimate"], np.ravel(single.effect) - np.ravel(theirs_null(single)))
    assert_allclose(table["std_error"], np.ravel(single.sd), rtol=1e-6)
    assert_allclose(table["p_value"], np.ravel(single.pvalue), rtol=1e-5)
    assert_allclose(found["p_value_adjusted"], table["p_value"])
    ends = single.conf_int() - np.reshape(theirs_null(single), (-1, 1))
    assert_allclose(table[["conf_low", "conf_high"]], ends, rtol=1e-6)
    facts = [found.attrs[f"joint_{name}"] for name in ("statistic", "df", "df_denominator")]
    assert_allclose(facts, [float(joint.fvalue), joint.df_num, joint.df_denom], rtol=1e-6)
    assert_allclose(found.attrs["joint_p_value"], float(joint.pvalue), rtol=1e-5)


def theirs_null(result):
    """Right sides, as statsmodels tests them."""
    return np.ravel(np.ravel(result.effect) - np.ravel(result.tvalue) * np.ravel(result.sd))


def test_pairs_that_follow_from_others_add_nothing_to_the_joint_test(slopes):
    pairs, sequential = (rs.hypotheses(slopes, kind) for kind in ("pairwise", "sequential"))
    assert pairs.sizes["term"] == 3
    for name in ("joint_statistic", "joint_df", "joint_p_value"):
        assert_allclose(pairs.attrs[name], sequential.attrs[name])
    raw = rs.hypotheses(slopes, "pairwise", adjust="none")["p_value_adjusted"].values
    assert_allclose(pairs["p_value_adjusted"].values.min(), min(1, 3 * raw.min()))


def test_functions_go_by_the_delta_method(slopes):
    a, b = slopes["average"].values[:2]
    covariance = rs.vcov(slopes).values[:2, :2]
    for text, gradient, value in (
        ("hp / wt = 1", [1 / b, -a / b**2], a / b - 1),
        ("exp(hp) * wt ** 2", [np.exp(a) * b**2, 2 * np.exp(a) * b], np.exp(a) * b**2),
        ("-log(-wt) + sqrt(2)", [0, -1 / b], -np.log(-b) + np.sqrt(2)),
    ):
        found = rs.hypotheses(slopes, text)
        assert_allclose(found["average"].item(), value, rtol=1e-12)
        error = np.sqrt(np.array(gradient) @ covariance @ gradient)
        assert_allclose(found["average_se"].item(), error, rtol=1e-9)


def test_equivalence_is_two_one_sided_tests(slopes):
    found = rs.hypotheses(slopes, "hp", margin=0.05)
    value, se, df = (found[f"average{end}"].item() for end in ("", "_se", "_df"))
    expected = max(stats.t.sf((value + 0.05) / se, df), stats.t.cdf((value - 0.05) / se, df))
    assert_allclose(found["p_equivalence"].item(), expected, rtol=1e-9)
    uneven = rs.hypotheses(slopes, "hp", margin=(-1, 0.05))["p_equivalence"].item()
    assert_allclose(uneven, stats.t.cdf((value - 0.05) / se, df), rtol=1e-9)
    assert "P equiv" in str(rs.summary(found))


def test_differences_of_bins_are_those_of_two_samples():
    """Bins are separate rows: Welch's test."""
    rng = np.random.default_rng(0)
    x, g = rng.uniform(size=200), rng.exponential(size=200)
    local = rs.local_effects(None, x[:, None], jacobian=g[:, None])
    bins = rs.GivenBins([0, 0.3, 1])
    effect = rs.rhale(local, bins=bins, weighting="rows")
    found = rs.hypotheses(rs.std_error(effect), "pairwise", adjust="none")
    low, high = g[x < 0.3], g[x >= 0.3]
    welch = stats.ttest_ind(high, low, equal_var=False)
    assert_allclose(found["average"].item(), high.mean() - low.mean())
    assert_allclose(found["average_df"].item(), welch.df)
    assert_allclose(rs.tidy(found)["p_value"], welch.pvalue)
    assert found["term"].item() == "[0.3, 1] - [0, 0.3)"


@pytest.mark.parametrize("groups", [None, np.arange(120) // 4])
def test_average_effects_of_two_features_are_of_the_same_rows(groups):
    rng = np.random.default_rng(1)
    x = rng.uniform(size=(120, 2))
    g = rng.normal(size=(120, 1)) + rng.exponential(size=(120, 2)) * [1, 2]
    local = rs.local_effects(None, x, jacobian=g)
    effect = rs.rhale(local, bins=rs.EqualWidthBins(1), weighting="rows")
    effect = rs.std_error(effect, local, groups=groups)
    found = rs.hypotheses(
        effect, "x1 = x0", of="average_effect", local=local, groups=groups, adjust="none"
    )
    apart = g[:, 1] - g[:, 0]
    if groups is None:
        paired = stats.ttest_1samp(apart, 0)
        assert_allclose(found["average_df"].item(), 119)
    else:
        paired = stats.ttest_1samp(apart.reshape(-1, 4).mean(axis=1), 0)
    assert_allclose(found["average"].item(), apart.mean())
    t = found["average"].item() / found["average_se"].item()
    assert_allclose(t, paired.statistic, rtol=1e-6)


@pytest.mark.thorough
def test_a_difference_of_average_effects_has_the_error_of_the_average_difference():
    rng = np.random.default_rng(2)
    groups = np.repeat(np.arange(20), np.arange(1, 21))  # of 1 to 20 rows
    x = rng.uniform(size=(len(groups), 2))
    g = rng.normal(size=(20, 2))[groups] + rng.exponential(size=x.shape)
    kinds = {"bins": rs.EqualWidthBins(1), "weighting": "rows"}
    weights = rng.exponential(size=len(x))
    local = rs.local_effects(None, x, jacobian=g, weights=weights)
    effect = rs.std_error(rs.rhale(local, **kinds), local, groups=groups)
    found = rs.hypotheses(effect, "x1 = x0", of="average_effect", local=local, groups=groups)
    apart = rs.local_effects(None, x[:, :1], jacobian=g[:, 1:] - g[:, :1], weights=weights)
    expected = rs.std_error(rs.rhale(apart, **kinds), apart, groups=groups)
    assert_allclose(found["average_se"].item(), expected["average_effect_se"].item())
    assert_allclose(found["average"].item(), expected["average_effect"].item())


def test_curves_of_profiles_and_of_effects():
    X = pd.DataFrame({"a": np.linspace(0, 1, 60), "b": np.random.default_rng(0).normal(size=60)})

    def model(X):
        return X["a"] * (1 + X["b"])

    profile = rs.pdp(model, X, "a", progress=False)
    found = rs.hypotheses(profile, "b1 = b3")
    at = profile["curve"].values[0]
    assert_allclose(found["average"].item(), at[0] - at[2])
    covariance = rs.vcov(profile, "a").values
    expected = np.sqrt(covariance[0, 0] + covariance[2, 2] - 2 * covariance[0, 2])
    assert_allclose(found["average_se"].item(), expected)
    effect = rs.rhale(rs.local_effects(model, X, progress=False), bins=rs.EqualWidthBins(3))
    found = rs.hypotheses(effect, "b4 = b1", feature="a", of="curve")
    curve = effect["curve"].sel(feature="a").values
    assert_allclose(found["average"].item(), curve[3] - curve[0])


@pytest.mark.thorough
def test_levels_of_by_are_in_the_order_of_the_table():
    fit = smf.logit("vs ~ wt + C(am)", CARS).fit(disp=0)
    found = rs.averages(fit, CARS, "am", contrasts="levels", by="cyl")
    names = rs.hypotheses(found)["term"].values.tolist()
    assert names[:4] == [
        *("prediction, cyl = 4", "am: 0, cyl = 4", "am: 1, cyl = 4", "prediction, cyl = 6")
    ]
    assert_allclose(rs.hypotheses(found)["average"], rs.tidy(found)["estimate"])
    assert_allclose(rs.hypotheses(found)["average_se"], rs.tidy(found)["std_error"])
    # Averages over all rows are not compared with those of one level.
    assert rs.hypotheses(found, "pairwise").sizes["term"] == 15


def test_an_estimate_that_is_missing_makes_its_own_combinations_missing(slopes):
    gone = slopes.copy(deep=True)
    gone["average"][0], gone["average_cov"][0] = np.nan, np.nan
    gone["average_cov"][:, 1] = np.nan  # behind the prediction
    found = rs.hypotheses(gone, "pairwise")
    assert np.isnan(found["average"]).values.tolist() == [True, True, False]
    whole = rs.hypotheses(slopes, "pairwise")
    for name in ("average", "average_se"):
        assert_allclose(found[name][2], whole[name][2])
    assert_allclose(found.attrs["joint_df"], 1)


def test_results_are_read_again(slopes):
    found = rs.hypotheses(slopes, ["hp = wt", "wt = cyl"])
    again = rs.hypotheses(found, "b1 = b2")
    assert_allclose(again["average"], found["average"][0] - found["average"][1])
    assert_allclose(rs.vcov(found), found["average_cov"])
    assert "Hypotheses about averages of output" in str(rs.show(found))
    assert "F(2, 28) = " in str(rs.summary(found))
    ends = rs.confint(found, level=0.9)["average_ci"].values
    assert_allclose(rs.tidy(found, level=0.9)[["conf_low", "conf_high"]], ends)


def test_what_cannot_be_read_is_refused_in_words(slopes):
    for hypothesis, error, words in (
        ("b1 = nothing", KeyError, "got 'nothing'. They are 'hp', 'wt', 'cyl', or b1 to b3"),
        ("b9", KeyError, "got 'b9'"),
        ("`no` = b1", KeyError, "got 'no'"),
        ("b1 ==", ValueError, "hypothesis must be like 'b1 - b2 = 0'"),
        ("open(b1)", ValueError, "hypothesis must be made of estimates, numbers"),
        ("b1.real", ValueError, "hypothesis must be made of estimates, numbers"),
        ([1, 2], ValueError, r"numbers of shape \(n_hypotheses, 3\); got \[1, 2\]"),
        ({"a": 1}, ValueError, "hypothesis must be a text such as"),
    ):
        with pytest.raises(error, match=words):
            rs.hypotheses(slopes, hypothesis)
    with pytest.raises(ValueError, match="margin must be a positive number, or a pair"):
        rs.hypotheses(slopes, margin=-1)
    with pytest.raises(ValueError, match="needs at least two estimates; got 1"):
        rs.hypotheses(slopes.isel(term=[0]), "pairwise")
    with pytest.raises(ValueError, match="feature must be left out for averages; got 'a'"):
        rs.hypotheses(slopes, feature="a")
    local = rs.local_effects(None, np.eye(3), jacobian=np.eye(3))
    effect = rs.rhale(local, bins=rs.EqualWidthBins(1))
    with pytest.raises(ValueError, match="local must be given with of='average_effect'"):
        rs.hypotheses(effect, "pairwise", of="average_effect")
    with pytest.raises(ValueError, match="local must be given for several features or outputs"):
        rs.hypotheses(effect, "pairwise")
    with pytest.raises(ValueError, match="local must be left out for one feature of one output"):
        rs.hypotheses(effect, "b1", feature="x0", local=local)
    with pytest.raises(ValueError, match="groups must be given if std_error was given them"):
        rs.hypotheses(effect, "pairwise", local=local, groups=[0, 0, 1])


@pytest.mark.thorough
def test_cells_of_surfaces_and_curves_of_several_models():
    rng = np.random.default_rng(2)
    X = pd.DataFrame(rng.uniform(-1, 1, (200, 2)), columns=["a", "b"])

    def model(X):
        return X["a"] * X["b"] * (1 + X["b"])

    surface = rs.std_error(rs.ale2(model, X, ("a", "b"), bins=rs.QuantileBins(2)))
    found = rs.hypotheses(surface, "b1 = b4")
    cells, errors = surface["second_effect"].values, surface["second_effect_se"].values
    assert_allclose(found["average"].item(), cells[0, 0] - cells[1, 1])
    assert_allclose(found["average_se"].item(), np.hypot(errors[0, 0], errors[1, 1]), rtol=1e-6)
    assert " to " in rs.hypotheses(surface)["term"].values[0]
    models = [lambda X, by=by: by * X["a"] for by in (1.0, 1.5, 2.5)]
    several = rs.over_models(models, X, "a", method="pdp", n_grid=7, progress=False)
    found = rs.hypotheses(several, "b1 = b5")
    covariance = rs.vcov(several, "a").values[np.ix_([0, 4], [0, 4])]
    expected = np.sqrt(covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1])
    assert_allclose(found["average_se"].item(), expected, rtol=1e-9)


# --- groups of rows -------------------------------------------------------------------------------


def of_two_groups():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.uniform(-1, 1, 300), "g": rng.choice(["u", "v"], 300)})
    X["z"] = rng.normal(size=300)
    return X, lambda X: X["x"] * X["z"] + X["x"] * (X["g"] == "u")


def test_groups_of_rows_are_independent():
    X, model = of_two_groups()
    effect = rs.rhale(model, X, "x", by="g", bins=rs.EqualWidthBins(2))
    line = rs.tidy(rs.hypotheses(effect, "b1 = b3")).iloc[0]
    alone = [rs.tidy(rs.hypotheses(effect.isel(region=k), "b1")).iloc[0] for k in (0, 1)]
    assert_allclose(line["estimate"], alone[0]["estimate"] - alone[1]["estimate"], rtol=1e-10)
    assert_allclose(
        line["std_error"], np.hypot(alone[0]["std_error"], alone[1]["std_error"]), rtol=1e-10
    )
    every = rs.hypotheses(effect)
    assert every.sizes["term"] == 4
    assert [str(name).rpartition(", ")[2] for name in every["term"].values] == [*"uuvv"]
    profile = rs.pdp(model, X, "x", by="g", grid={"x": [-0.5, 0.5]})
    joint = rs.hypotheses(profile, ["b1 = b3", "b2 = b4"])
    assert joint.attrs["joint_df"] == 2


def test_groups_of_rows_that_share_something_are_refused():
    X, model = of_two_groups()
    data = X.assign(y=model(X))
    fit = smf.ols("y ~ x * g + z", data).fit()
    effect = rs.rhale(fit, X, "x", by="g")
    with pytest.raises(ValueError, match="local must be left out for results of several groups"):
        rs.hypotheses(effect, of="average_effect", local=rs.local_effects(fit, X, "x"))
    shared = effect.assign_attrs(fitted_model="x")
    with pytest.raises(ValueError, match="effect must have standard errors of rows"):
        rs.hypotheses(shared)


# --- outputs and features, which have the same rows -----------------------------------------------


def of_three_classes(n=240, seed=4):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"x": rng.normal(size=n), "z": rng.uniform(-1, 1, n)})
    scores = np.column_stack([X["x"], X["z"], 0 * X["z"]]) + rng.gumbel(size=(n, 3))
    data = X.assign(y=np.argmax(scores, axis=1), g=rng.choice(["u", "v"], n))
    fit = smf.mnlogit("y ~ x * z", data).fit(disp=0)
    return fit, data, lambda X: np.asarray(fit.predict(X)) @ [-1, 0, 1]


@pytest.mark.parametrize(
    ("uncertainty", "groups"),
    [
        *(("rows", None), ("rows", "groups"), ("rows", "design")),
        *(("parameters", "groups"), ("both", "design")),
    ],
)
def test_averages_of_two_outputs_covary(uncertainty, groups):
    """A difference of two outputs is an output of its own."""
    fit, data, _ = of_three_classes()
    code = np.arange(len(data)) // 6
    groups = {"groups": code, "design": rs.SurveyDesign(clusters=code, fpc=100)}.get(groups)
    scores = fit.model.score_obs(fit.params.to_numpy().ravel(order="F"))
    covariance = fit.cov_params().to_numpy()

    def predicted(b, X):
        logits = (
            np.column_stack([np.ones(len(X)), X["x"], X["z"], X["x"] * X["z"]]) @ b.reshape(2, 4).T
        )
        odds = np.exp(np.column_stack([np.zeros(len(X)), logits]))
        return odds / odds.sum(axis=1, keepdims=True)

    b = fit.params.to_numpy().ravel(order="F")
    options = {"uncertainty": uncertainty, "groups": groups, "features": ["x", "z"], "by": "g"}
    X = data[["x", "z", "g"]]
    every = rs.averages(rs.Parametric(predicted, b, covariance, scores), X, **options)
    apart = rs.averages(
        rs.Parametric(lambda b, X: predicted(b, X) @ [-1, 0, 1], b, covariance, scores),
        *(X,), **options,
    )  # fmt: skip
    names = rs.hypotheses(every)["term"].values.reshape(3, -1)
    found = rs.hypotheses(every, [f"`{high}` - `{low}`" for low, high in names[[0, 2]].T])
    expected = rs.hypotheses(apart)
    assert names[0, 0] == "prediction, g = u, output = 0"
    assert_allclose(found["average"], expected["average"], atol=1e-9)
    assert_allclose(found["average_cov"], expected["average_cov"], rtol=1e-5, atol=1e-10)
    # Probabilities add up to 1.
    total = rs.hypotheses(every, " + ".join(f"`{name}`" for name in names[:, 0]))
    assert_allclose([total["average"].item(), total["average_se"].item()], [1, 0], atol=1e-7)
    # One output has its own covariance, selected or not.
    one = rs.vcov(every.isel(output=1))
    assert one.dims == ("term", "by", "term_other", "by_other")
    assert_allclose(one, every["average_cov"].isel(output=1, output_other=1))
    some = rs.hypotheses(every.isel(output=[0, 2]), f"`{names[2, 1]}` - `{names[0, 1]}`")
    assert_allclose(some["average_se"], found["average_se"][1])


@pytest.mark.parametrize("groups", [None, "groups", "strata", "replicates"])
def test_effects_of_two_outputs_covary(groups):
    fit, data, apart = of_three_classes()
    code = np.arange(len(data)) // 6
    draws = np.random.default_rng(0).exponential(size=(len(data), 60))
    groups = {
        "groups": code,
        "strata": rs.SurveyDesign(clusters=code, strata=code % 2),
        "replicates": rs.SurveyDesign(replicates=draws, scale="bootstrap"),
    }.get(groups)
    kinds = {"bins": rs.EqualWidthBins(2), "weighting": "rows"}
    results = []
    for model in (fit, apart):
        local = rs.local_effects(model, data[["x", "z"]])
        results.append((rs.std_error(rs.rhale(local, **kinds), local, groups=groups), local))
    (effect, local), (difference, _) = results
    shared = {"local": local, "groups": groups}
    found = rs.hypotheses(effect, ["b5 - b1", "b6 - b2"], feature="x", **shared)
    assert_allclose(found["average"], difference["effect"].sel(feature="x"), rtol=1e-6)
    # Corrections for leverage are those of the two outputs, not of their difference.
    assert_allclose(found["average_se"], difference["effect_se"].sel(feature="x"), rtol=3e-4)
    curve = rs.hypotheses(effect, ["b7 - b1", "b9 - b3"], feature="x", of="curve", **shared)
    expected = difference["curve_se"].sel(feature="x").values[[0, 2]]
    assert_allclose(curve["average_se"], expected, rtol=2 / len(data) if groups is None else 0.01)
    average = rs.hypotheses(effect, "b6 - b2", of="average_effect", **shared)
    expected = difference["average_effect_se"].sel(feature="z")
    assert_allclose(average["average_se"].item(), expected, rtol=4e-3)


@pytest.mark.parametrize("groups", [None, np.arange(240) // 6, rs.SurveyDesign(fpc=0.5)], ids=str)
def test_profiles_of_two_outputs_covary(groups):
    fit, data, apart = of_three_classes()
    X, grid = data[["x", "z"]], {"x": [-1, 0, 1], "z": [0, 0.5]}
    pdp, ice = rs.pdp(fit, X, grid=grid), rs.ice(fit, X, grid=grid)
    own = rs.pdp(apart, X, grid=grid), rs.ice(apart, X, grid=grid)
    if groups is not None:
        pdp, own = rs.std_error(pdp, ice, groups=groups), rs.std_error(*own, groups=groups)
    else:
        own = own[0]
    hypothesis = ["b7 - b1", "b9 - b3"]
    found = rs.hypotheses(pdp, hypothesis, feature="x", local=ice, groups=groups)
    assert_allclose(found["average_se"], own["curve_se"].sel(feature="x").values[[0, 2]])
    with pytest.raises(ValueError, match="groups must be given if std_error was given them"):
        rs.hypotheses(
            pdp, hypothesis, feature="x", local=ice, groups=None if groups is not None else X["x"]
        )
    if groups is None:
        bins = rs.GivenBins([-5, 0, 5])
        plots = [rs.m_plot(model, X, features=["x"], bins=bins) for model in (fit, apart)]
        found = rs.hypotheses(plots[0], ["b5 - b1", "b6 - b2"])
        assert_allclose(found["average_se"], plots[1]["curve_se"][0], rtol=1e-3)


def test_effects_of_two_features_covary_by_influences():
    """As the jackknife of both at once says; rows without a value of one do not count in it."""
    rng = np.random.default_rng(3)
    x = rng.uniform(size=(60, 2))
    g = rng.normal(size=(60, 1)) + rng.normal(size=(60, 2))
    weights = rng.uniform(1, 2, 60)
    rule = {"bins": rs.GivenBins({"x0": [0, 0.5, 1], "x1": [0, 0.4, 1]}), "weighting": "rows"}

    def local_of(rows):
        return rs.local_effects(None, x[rows], jacobian=g[rows], weights=weights[rows])

    local = local_of(np.arange(60))
    effect = rs.std_error(rs.rhale(local, **rule))
    found = rs.hypotheses(effect, local=local)
    assert found["term"].values.tolist() == [
        *("[0, 0.5), x0", "[0.5, 1], x0", "[0, 0.4), x1", "[0.4, 1], x1"),
    ]
    each = np.stack(
        [
            rs.rhale(local_of(np.delete(np.arange(60), row)), **rule)["effect"].values.ravel()
            for row in range(60)
        ]
    )
    size = np.sqrt(np.diagonal(found["average_cov"]))
    expected = np.corrcoef(each.T)
    assert_allclose(found["average_cov"] / np.outer(size, size), expected, atol=0.03)
    assert abs(expected[0, 2]) > 0.1
    x[::5, 1] = np.nan
    some = rs.local_effects(None, x, jacobian=g, weights=weights, missing="drop")
    effect = rs.rhale(some, **rule)
    found = rs.hypotheses(effect, "b1 = b3", local=some)
    assert np.isfinite(found["average_se"]).all()


def test_models_share_their_members():
    X = np.random.default_rng(0).uniform(-1, 1, (100, 2))
    models = [lambda X, b=b: b * X[:, 0] - b * X[:, 1] for b in (1.0, 1.5, 2.5)]
    several = rs.over_models(models, X, method="pdp", n_grid=2, progress=False)
    found = rs.hypotheses(several)
    size = np.sqrt(np.diagonal(found["average_cov"]))
    correlation = (found["average_cov"] / np.outer(size, size)).values
    # Slopes of both features are b and -b: errors at their ends have opposite signs.
    assert_allclose(correlation, np.outer([1, -1, -1, 1], [1, -1, -1, 1]), rtol=1e-9)


def test_parameters_of_a_model_are_in_averages_alone():
    fit, data, _ = of_three_classes()
    local = rs.local_effects(fit, data[["x", "z"]])
    effect = rs.std_error(rs.rhale(local), local, model=fit, X=data[["x", "z"]])
    with pytest.raises(ValueError, match="of rows and parameters. averages has both"):
        rs.hypotheses(effect, "pairwise", local=local)
