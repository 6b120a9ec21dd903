"""ALE by finite differences and DALE: closed forms, PyALE, weights, outputs, missing values."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from statsmodels.stats.multitest import multipletests

import rhale_stats as rs
from rhale_stats.schema.feature_result import one_feature
from tests.helpers import through_a_file


def product(X):
    X = np.asarray(X)
    return X[:, 0] * X[:, 1] + X[:, 2] ** 2


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    a = rng.normal(size=800)
    return pd.DataFrame({"a": a, "b": a + rng.normal(size=800), "c": rng.uniform(-1, 2, 800)})


class Mirrored:
    """PyALE puts a row on an edge to its left, we to its right: in the mirror both agree."""

    def __init__(self, function):
        self.function = function

    def predict(self, X):
        return self.function(-X)


@pytest.mark.parametrize("name", ["a", "b", "c"])
def test_the_curve_is_that_of_pyale_on_the_same_quantiles(X, name):
    pyale = pytest.importorskip("PyALE")
    theirs = pyale.ale(
        -X, Mirrored(product), [name], grid_size=25, include_CI=False, plot=False,
        feature_type="continuous",
    )  # fmt: skip
    edges, curve = -theirs.index.values[::-1], theirs["eff"].values[::-1]
    ours = rs.ale(product, X, features=name, bins=rs.GivenBins(edges), progress=False)
    np.testing.assert_array_equal(ours["n_obs"].values[0], theirs["size"].values[::-1][:-1])
    values = ours["curve"].values[0]
    np.testing.assert_allclose(values - values[0], curve - curve[0], atol=1e-10)
    # Theirs has mean 0 over the rows with each at the middle of its bin, ours at its place.
    middles = (values[1:] + values[:-1]) / 2
    constant = np.average(middles, weights=ours["n_obs"].values[0])
    np.testing.assert_allclose(values - constant, curve, atol=1e-10)


def test_ale_is_rhale_of_finite_differences(X):
    rule = rs.QuantileBins(40)
    local = rs.local_effects(product, X, method="finite_difference", bins=rule)
    two_steps = rs.rhale(local, bins=rule)
    xr.testing.assert_identical(rs.ale(product, X).assign_attrs(method="rhale"), two_steps)


def test_a_jump_is_where_it_is_and_as_high(X):
    effect = rs.ale(lambda X: 1.0 * (X["c"] > 0.5), X, features="c", bins=rs.EqualWidthBins(30))
    row = effect.sel(feature="c")
    inside = (row["bin_left"] <= 0.5) & (row["bin_right"] > 0.5)
    step = (row["effect"] * (row["bin_right"] - row["bin_left"])).values
    np.testing.assert_allclose(step, inside.astype(float).values, atol=1e-12)


def test_a_rule_that_joins_cells_keeps_the_jumps_of_a_step_function():
    """Flat pieces are one bin each, and every jump stays in the cell in which it was seen."""
    X = np.random.default_rng(1).uniform(0, 1, (5000, 2))

    def steps(X):
        return np.floor(4 * X[:, 0]) * X[:, 1]

    rule = rs.AdaptiveBins()
    joined = rs.ale(steps, X, features=0, bins=rule, centering="start")
    assert joined["n_bins"].item() == 7
    # In two steps the same, with the cells of the rule; every cell a bin, the same curve.
    local = rs.local_effects(steps, X, features=0, method="finite_difference", bins=rule)
    again = rs.rhale(local, bins=rule, centering="start")
    xr.testing.assert_identical(again.assign_attrs(method="ale"), joined)
    edges = local["cell_value"].values[0]
    assert set(joined["edge_value"].values[0]) <= set(edges)
    cells = rs.rhale(local, bins=rs.GivenBins(edges), centering="start", weighting="rows")
    np.testing.assert_allclose(rs.predict(joined, edges, 0), cells["curve"][0], atol=1e-12)
    # By rows, where two cells are joined, these weigh the slopes of both, of jumps of a half.
    by_rows = rs.rhale(local, bins=rule, centering="start", weighting="rows")
    np.testing.assert_allclose(rs.predict(by_rows, edges, 0), cells["curve"][0], atol=0.005)


def test_with_a_linear_model_dale_and_ale_agree(X):
    def plane(X):
        return 3 * X["a"] - 2 * X["b"]

    local = rs.local_effects(plane, X)
    derivative = rs.dale(local, 10)
    finite = rs.ale(plane, X, bins=rs.EqualWidthBins(10))
    assert (derivative.attrs["method"], finite.attrs["method"]) == ("dale", "ale")
    for name in ("effect", "curve", "n_obs"):
        np.testing.assert_allclose(derivative[name], finite[name], atol=1e-6)
    same = rs.rhale(local, bins=rs.EqualWidthBins(10), weighting="rows")
    same = same.assign_attrs(method="dale")
    xr.testing.assert_identical(derivative, same)


def test_frequency_weights_are_repeated_rows(X):
    counts = np.random.default_rng(2).integers(0, 4, len(X))
    weighted = rs.ale(product, X, weights=counts, weight_kind="frequency")
    repeated = rs.ale(product, X.loc[X.index.repeat(counts)].reset_index(drop=True))
    for name in ("effect", "curve", "edge_value", "n_obs"):
        np.testing.assert_allclose(weighted[name], repeated[name], rtol=1e-9, atol=1e-12)
    variances = (one["heterogeneity"] ** 2 for one in (weighted, repeated))
    np.testing.assert_allclose(*variances, rtol=1e-9, atol=1e-15)


def test_precision_weights_do_not_depend_on_their_unit(X):
    weights = np.random.default_rng(3).uniform(0.5, 2, len(X))
    one, other = (rs.ale(product, X, weights=unit * weights) for unit in (1, 8))
    np.testing.assert_allclose(one["curve"], other["curve"], rtol=1e-12)


def test_equivariance(X):
    plain = rs.ale(product, X)
    scaled = rs.ale(lambda X: -1e6 * product(X) + 7, X)
    np.testing.assert_allclose(scaled["curve"], -1e6 * plain["curve"], rtol=1e-7, atol=1e-3)


# --- outputs --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def iris():
    datasets = pytest.importorskip("sklearn.datasets")
    linear_model = pytest.importorskip("sklearn.linear_model")
    table = datasets.load_iris(as_frame=True)
    y = table.target_names[table.target]
    return linear_model.LogisticRegression(max_iter=1000).fit(table.data, y), table.data


class Counted:
    """A classifier that counts how often it is asked."""

    def __init__(self, model):
        self.model, self.classes_, self.n_calls = model, model.classes_, 0

    def predict(self, X):
        return self.model.predict(X)

    def predict_proba(self, X):
        self.n_calls += 1
        return self.model.predict_proba(X)


@pytest.mark.thorough
def test_all_classes_of_all_features_come_from_one_call(iris):
    model, table = iris
    counted = Counted(model)
    effect = rs.ale(counted, table, bins=rs.EqualWidthBins(5))
    # Three calls for some of the rows see whether the model answers the same each time.
    assert counted.n_calls == 1 + 3
    assert effect["output"].values.tolist() == ["setosa", "versicolor", "virginica"]
    assert effect["curve"].dims == ("output", "feature", "edge")
    # Probabilities sum to one: so do the effects to zero.
    np.testing.assert_allclose(effect["effect"].sum("output"), 0, atol=1e-12)
    for label in effect["output"].values:
        alone = rs.ale(model, table, bins=rs.EqualWidthBins(5), output=label)
        assert "output" not in alone.dims
        assert alone.attrs["output_name"] == f"probability of {label}"
        np.testing.assert_allclose(effect["curve"].sel(output=label), alone["curve"], atol=1e-13)


@pytest.mark.slow
def test_everything_works_output_by_output(iris, tmp_path):
    model, table = iris
    local = rs.local_effects(model, table)
    effect = rs.std_error(rs.rhale(local, bins=rs.EqualWidthBins(5)))
    one = rs.std_error(rs.rhale(local.sel(output="setosa"), bins=rs.EqualWidthBins(5)))
    for verb in (
        rs.confint,
        partial(rs.confband, n_draws=200, rng=0),
        rs.wald_test,
        rs.effect_sizes,
    ):
        whole, part = verb(effect), verb(one)
        for name in part.data_vars:
            ours = whole[name].sel(output="setosa")
            if part[name].dtype.kind == "U":
                np.testing.assert_array_equal(ours, part[name])
            else:
                np.testing.assert_allclose(ours, part[name], rtol=1e-12)
    boot = rs.bootstrap(local, effect, n_resamples=40, rng=0)
    assert boot["curve"].dims == ("chain", "draw", "output", "feature", "bin_edge")
    tidy = rs.tidy(effect)
    assert tidy["output"].unique().tolist() == effect["output"].values.tolist()
    assert "probability of virginica" in str(rs.summary(effect))
    assert one.attrs["output_name"] == "probability of setosa"
    xr.testing.assert_identical(through_a_file(effect, tmp_path), effect)
    with pytest.raises(ValueError, match=r"must be of one output here; .* effect.isel\(output=0\)"):
        rs.plots.effect(effect, 0)


@pytest.mark.thorough
def test_scales_of_a_classifier(iris):
    model, table = iris
    logit = rs.ale(model, table, output="setosa", scale="logit", bins=rs.EqualWidthBins(3))
    by_hand = rs.ale(
        lambda X: np.log(model.predict_proba(X)[:, 0] / (1 - model.predict_proba(X)[:, 0])),
        table, bins=rs.EqualWidthBins(3),
    )  # fmt: skip
    np.testing.assert_allclose(logit["curve"], by_hand["curve"], rtol=1e-6)
    assert logit.attrs["output_name"] == "log-odds of setosa"
    decision = rs.ale(model, table, scale="decision", bins=rs.EqualWidthBins(3))
    # The decision function is linear, and so are its effects.
    slopes = decision["effect"].mean("bin").values
    np.testing.assert_allclose(slopes, model.coef_, rtol=1e-8)


def test_of_two_classes_the_second_is_taken():
    linear_model = pytest.importorskip("sklearn.linear_model")
    svm = pytest.importorskip("sklearn.svm")
    X = np.random.default_rng(0).normal(size=(200, 2))
    y = np.where(X[:, 0] + X[:, 1] > 0, "up", "down")
    model = linear_model.LogisticRegression().fit(X, y)
    effect = rs.ale(model, X, bins=rs.EqualWidthBins(4))
    assert effect.attrs["output_name"] == "probability of up"
    assert (effect["effect"] > 0).all()
    both = rs.ale(model, X, bins=rs.EqualWidthBins(4), output=["down", "up"])
    np.testing.assert_allclose(both["effect"][0], -both["effect"][1], atol=1e-14)
    margin = rs.ale(svm.LinearSVC().fit(X, y), X, bins=rs.EqualWidthBins(4))
    assert margin.attrs["output_name"] == "decision for up"


@pytest.mark.thorough
def test_several_targets(X):
    def three(X):
        return pd.DataFrame({"sum": X["a"] + X["b"], "first": X["a"], "c": X["c"] ** 2})

    effect = rs.ale(three, X, bins=rs.EqualWidthBins(4))
    assert effect["output"].values.tolist() == ["sum", "first", "c"]
    np.testing.assert_allclose(effect["effect"].sel(output="sum", feature="b"), 1, atol=1e-12)
    np.testing.assert_allclose(effect["effect"].sel(output="first", feature="b"), 0, atol=1e-12)
    numbered = rs.ale(lambda X: three(X).to_numpy(), X, output=[2, 0], bins=rs.EqualWidthBins(4))
    np.testing.assert_array_equal(numbered["output"], [2, 0])
    np.testing.assert_array_equal(numbered["curve"][0], effect["curve"].sel(output="c"))


def test_classes_that_are_the_same_number():
    """Classes from a file may be 0.0 and 1.0; 1 asks for the second."""
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    table = rng.normal(size=(80, 2))
    model = LogisticRegression().fit(table, (table[:, 0] > 0).astype(float))
    asked = rs.ale(model, table, output=1)
    assert asked.attrs["output_name"] == "probability of 1.0"
    np.testing.assert_array_equal(asked["curve"], rs.ale(model, table, output=1.0)["curve"])
    with pytest.raises(KeyError, match=r"output must be among .*got 'x'"):
        rs.ale(model, table, output="x")


def test_outputs_that_are_not_there(iris, X):
    model, table = iris
    with pytest.raises(KeyError, match="output must be among .*setosa, .*; got 'rose'"):
        rs.ale(model, table, output="rose")
    with pytest.raises(KeyError, match=r"output must be among .*0, 1; got 5"):
        rs.ale(lambda X: np.asarray(X)[:, :2], X, output=5)
    with pytest.raises(ValueError, match="output must name each output once"):
        rs.ale(model, table, output=["setosa", "setosa"])
    with pytest.raises(ValueError, match="scale must be one of 'response', 'logit', 'decision'"):
        rs.ale(model, table, scale="odds")
    with pytest.raises(ValueError, match="scale='decision' needs a model with a decision_function"):
        rs.ale(product, X, scale="decision")
    with pytest.raises(rs.ModelError, match="strictly between 0 and 1; the model answers"):
        rs.ale(lambda X: np.clip(np.asarray(X)[:, 0], 0, 1), X, scale="logit")
    with pytest.raises(ValueError, match="a jacobian belongs to one output already"):
        rs.local_effects(None, X, jacobian=np.zeros(X.shape), output=0)
    svm = pytest.importorskip("sklearn.svm")
    machine = svm.LinearSVC().fit(table, np.arange(len(table)) > 75)
    with pytest.raises(ValueError, match="scale='logit' needs probabilities; LinearSVC has none"):
        rs.ale(machine, table, scale="logit")


def test_a_model_that_changes_its_mind(X):
    def fickle(X):
        fickle.width -= 1
        return np.asarray(X)[:, : fickle.width]

    fickle.width = 4
    with pytest.raises(rs.ModelError, match="as many outputs each time; got 2 after 3"):
        rs.ale(fickle, X)


def test_functions_of_one_output_say_so(X):
    two = rs.local_effects(lambda X: np.asarray(X)[:, :2], X)
    with pytest.raises(ValueError, match="local must be of one output here"):
        rs.regions(two, "a")
    with pytest.raises(rs.ModelError, match="has the outputs 0, 1. Choose one"):
        rs.regional_ale(lambda X: np.asarray(X)[:, :2], X, "a")


# --- missing values -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def gaps(X):
    table = X.copy()
    table.loc[np.random.default_rng(4).random(len(X)) < 0.2, "b"] = np.nan
    return table


def filled(X):
    """A model that reads a missing ``b`` as 3."""
    return product(X.fillna({"b": 3.0}))


def test_rows_without_a_value_are_left_out_of_that_effect_only(X, gaps):
    effect = rs.ale(filled, gaps, missing="drop")
    n_missing = int(gaps["b"].isna().sum())
    assert effect["n_missing"].to_series().to_dict() == {"a": 0, "b": n_missing, "c": 0}
    assert effect["n_obs"].sum("bin").values.tolist() == [800, 800 - n_missing, 800]
    complete = rs.ale(filled, gaps.dropna(), features="b")
    np.testing.assert_allclose(effect["curve"].sel(feature="b"), complete["curve"][0], atol=1e-13)
    others = rs.ale(filled, gaps, features=["a", "c"])
    np.testing.assert_array_equal(effect["curve"].sel(feature=["a", "c"]), others["curve"])


def test_everything_works_with_rows_of_their_own(gaps):
    rule = rs.EqualWidthBins(6)
    local = rs.local_effects(filled, gaps, missing="drop")
    effect = rs.std_error(rs.rhale(local, bins=rule))
    alone = rs.local_effects(filled, gaps.dropna(), features="b")
    own = rs.std_error(rs.rhale(alone, bins=rule))
    curve_se = one_feature(effect, "b")["curve_se"]
    np.testing.assert_allclose(curve_se, own["curve_se"][0], rtol=1e-6)
    boot = rs.bootstrap(local, effect, n_resamples=400, rng=0)
    spread = boot["curve"].std(("chain", "draw"))
    # At its ends a curve depends on cells of three rows, which one draw in twenty has none of.
    at_bins = effect.rhale.in_bins()["curve_se"]
    np.testing.assert_allclose(spread[:, 1:-1], at_bins[:, 1:-1], rtol=0.25)
    check = rs.check_unbiased(local, effect, rng=0)
    ours = rs.check_unbiased(alone, own, rng=0)
    np.testing.assert_allclose(
        check["bin_error"].sel(feature="b"), ours["bin_error"][0], rtol=1e-5, atol=1e-9
    )
    # p-values are adjusted over the bins of all features.
    pvalues, adjusted = (
        check[name].values.ravel() for name in ("bin_error_pvalue", "bin_error_pvalue_adjusted")
    )
    tested = ~np.isnan(pvalues)
    expected = multipletests(pvalues[tested], method="holm")[1]
    np.testing.assert_allclose(adjusted[tested], expected, rtol=1e-12)
    jump = rs.jump_check(filled, local, effect, gaps)
    own_jump = rs.jump_check(filled, alone, own, gaps.dropna())
    np.testing.assert_allclose(
        jump["jump"].sel(feature="b"), own_jump["jump"][0], rtol=1e-5, atol=1e-9
    )
    frame = rs.augment(local, effect)
    assert frame["b.effect"].isna().sum() == gaps["b"].isna().sum()
    with pytest.raises(ValueError, match="honest must be False where features have different"):
        rs.rhale(local, honest=True, rng=0)


def test_a_bin_of_missing_rows(gaps):
    effect = rs.ale(filled, gaps, features="b", missing="bin", bins=rs.EqualWidthBins(8))
    row, gone = effect.isel(feature=0), gaps["b"].isna()
    change = gaps["a"][gone] * (3.0 - float(row["missing_reference"]))
    assert float(row["missing_reference"]) == np.sort(gaps["b"].dropna())[(~gone).sum() // 2 - 1]
    np.testing.assert_allclose(row["missing_effect"], change.mean(), rtol=1e-12)
    np.testing.assert_allclose(row["missing_spread"], change.std(), rtol=1e-12)
    np.testing.assert_allclose(
        row["missing_effect_se"], change.std() / np.sqrt(gone.sum()), rtol=1e-12
    )
    at = rs.predict(effect, [float(row["missing_reference"])], "b").item()
    np.testing.assert_allclose(row["missing_curve"], at + change.mean(), rtol=1e-12)


def test_a_bin_of_missing_rows_with_weights(gaps):
    counts = np.random.default_rng(5).integers(0, 3, len(gaps))
    options = {"features": "b", "missing": "bin", "bins": rs.EqualWidthBins(8)}
    weighted = rs.ale(filled, gaps, weights=counts, weight_kind="frequency", **options)
    repeated = rs.ale(filled, gaps.loc[gaps.index.repeat(counts)].reset_index(drop=True), **options)
    for name in ("missing_effect", "missing_spread", "missing_effect_se", "missing_curve"):
        np.testing.assert_allclose(weighted[name], repeated[name], rtol=1e-9)


def test_rows_for_which_the_model_gives_no_number_are_left_out_of_all_effects():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=200), "g": rng.choice(list("xyz"), 200)})
    y = pd.Series(rng.normal(size=200), index=table.index)
    table.loc[5:14, "a"] = np.nan

    def strict(rows):
        return rows["a"] * (1 + (rows["g"] == "x"))

    for order in ({}, {"order": "target", "target": y}):
        with pytest.warns(UserWarning, match="left out, of 200: of all effects: 10 rows, which ha"):
            effect = rs.ale(strict, table, **order)
        whole = {name: one[table["a"].notna()] if name == "target" else one for name, one in
                 order.items()}  # fmt: skip
        expected = rs.ale(strict, table.dropna(), **whole)
        np.testing.assert_allclose(effect["curve"], expected["curve"])
        assert effect.attrs["n_rows"] == 190


def test_missing_values_that_cannot_be_left_out(X, gaps):
    with pytest.raises(
        ValueError, match="X of feature 'b' must be finite; got .*missing='drop'.*missing='bin'"
    ):
        rs.ale(filled, gaps, missing="raise")
    nothing = gaps.assign(b=np.nan)
    with pytest.raises(ValueError, match="X must have values of feature 'b'; all 800 are missing"):
        rs.ale(filled, nothing, missing="drop")
    with pytest.raises(ValueError, match="missing must be one of 'raise', 'drop', 'bin'"):
        rs.ale(filled, gaps, missing="ignore")
    with pytest.raises(ValueError, match="missing='bin' needs the output for missing values"):
        rs.local_effects(None, gaps, jacobian=np.zeros(gaps.shape), missing="bin")
    infinite = X.assign(b=X["b"].where(X["b"] < 1, np.inf))
    with pytest.raises(ValueError, match="feature 'b' must be finite; got .* inf"):
        rs.ale(product, infinite, missing="drop")


def test_cells_are_for_finite_differences_only(X):
    with pytest.raises(ValueError, match="unless finite differences of a model are taken; got"):
        rs.local_effects(product, X, method="central_difference", bins=rs.EqualWidthBins(4))
    with pytest.raises(ValueError, match="weights must hold one number a row"):
        rs.ale(product, X, weights=np.ones(3))
    with pytest.raises(ValueError, match="weights must be finite and not negative"):
        rs.ale(product, X, weights=-np.ones(len(X)))


def test_a_constant_feature_beside_one_with_gaps_and_lines(gaps):
    """Groups of features by rows need not have the same variables: lines, here."""
    table = gaps.assign(a=1.0)[["a", "b"]]
    local = rs.local_effects(lambda X: X["b"].fillna(0) ** 2, table, missing="drop")
    effect = rs.std_error(rs.rhale(local, bins=rs.AdaptiveBins()))
    assert effect["feature_kind"].values.tolist() == ["constant", "continuous"]
    assert effect["n_bins"].values.tolist() == [0, 1]
    assert np.isnan(effect["effect"].sel(feature="a")).all()
    alone = rs.local_effects(lambda X: X["b"] ** 2, table.dropna(), features="b")
    own = rs.std_error(rs.rhale(alone, bins=rs.AdaptiveBins()))
    for name in ("effect", "slope", "curve_se"):
        np.testing.assert_allclose(effect[name].sel(feature="b"), own[name][0], rtol=1e-5)


# --- in chunks ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bins", "weighted"),
    [(None, False), (rs.EqualWidthBins(5), True), (rs.AdaptiveBins(), True)],
    ids=repr,
)
def test_ale_in_chunks_is_that_of_memory(X, bins, weighted):
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    options = {"bins": bins}
    if weighted:
        counts = np.random.default_rng(4).integers(0, 4, len(X)).astype(float)
        options |= {"weights": counts, "weight_kind": "frequency"}

    def model(X):
        return X[:, 0] * X[:, 1] + 2.0 * (X[:, 0] > 0.3)

    rows = np.asarray(X)
    whole = rs.std_error(rs.ale(model, rows, **options))
    third = len(rows) // 3
    chunks = da.from_array(rows, chunks=((third, 0, len(rows) - third), rows.shape[1]))
    found = rs.std_error(rs.ale(model, chunks, **options))
    assert list(found) == list(whole)
    xr.testing.assert_allclose(found, whole, rtol=1e-9, atol=1e-11)


def test_ale_in_chunks_has_no_levels(X):
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    rows = da.from_array(np.asarray(X), chunks=100)
    with pytest.raises(ValueError, match="categorical must be None where X is in chunks"):
        rs.ale(product, rows, categorical=[0])
    with pytest.raises(ValueError, match="target must be None where X is in chunks"):
        rs.ale(product, rows, target=np.ones(len(X)))
