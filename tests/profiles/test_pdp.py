"""Partial dependence, ICE, M-plots, SHAP dependence, and the verbs on them."""

from __future__ import annotations

import builtins

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy import stats
from sklearn.ensemble import GradientBoostingClassifier, RandomForestRegressor
from sklearn.inspection import partial_dependence
from sklearn.linear_model import LogisticRegression

import rhale_stats as rs
from rhale_stats.arrays import profiles as kernel
from rhale_stats.models import differences
from rhale_stats.profiles.rows import rows_behind
from tests.helpers import in_turn, through_a_file


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(5)
    table = pd.DataFrame(rng.normal(size=(200, 3)), columns=["a", "b", "c"])
    table["k"] = pd.Categorical(rng.choice(["u", "v", "w"], 200), categories=["w", "u", "v", "z"])
    table["t"] = rng.choice(["red", "green"], 200)
    table["yes"] = rng.random(200) < 0.3
    table["i"] = rng.integers(0, 40, 200)
    return table


def f(X):
    own = np.asarray(X["a"] * X["b"] + np.sin(X["c"]), dtype=float)
    return own + np.where(X["k"] == "u", 2.0, 0.0) + np.where(X["yes"], 1.0, 0.0) + 0.1 * X["i"]


def product(X):
    return X[:, 0] * X[:, 1]


def same(a, b, tolerance=1e-12):
    for name in a.data_vars:
        if "obs" in a[name].dims:  # rows themselves: repeated, there are more of them
            continue
        np.testing.assert_allclose(
            a[name].values, b[name].values, rtol=tolerance, atol=tolerance, err_msg=name
        )


# --- oracles --------------------------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize("weighted", [False, True])
def test_pdp_and_ice_are_those_of_scikit_learn(X, weighted):
    table = X[["a", "b", "c"]]
    model = RandomForestRegressor(10, random_state=0).fit(table, f(X))
    weight = np.random.default_rng(0).uniform(0.5, 2, len(X)) if weighted else None
    found = rs.pdp(model, table, features="b", centering="none", n_grid=13, weights=weight)
    curves = rs.ice(model, table, features="b", n_grid=13, weights=weight)
    z = found["grid_value"].values[0]
    kind = {"kind": "average", "sample_weight": weight} if weighted else {"kind": "both"}
    oracle = partial_dependence(model, table, ["b"], custom_values={"b": z}, method="brute", **kind)
    np.testing.assert_allclose(found["curve"].values[0], oracle["average"][0], rtol=0, atol=1e-10)
    if not weighted:
        np.testing.assert_allclose(
            curves["ice"].values[0].T, oracle["individual"][0], rtol=0, atol=1e-10
        )


@pytest.mark.thorough
def test_every_class_of_a_classifier_from_one_pass(X):
    table = X[["a", "b"]]
    y = np.digitize(table["a"] + table["b"], [-0.5, 0.5])
    model = GradientBoostingClassifier(n_estimators=5).fit(table, y)
    found = rs.pdp(model, table, features=["a", "b"], centering="none", n_grid=7)
    assert found["curve"].dims == ("output", "feature", "grid")
    assert found["grid_value"].dims == ("feature", "grid")
    # Of both features, after three calls that show that the model answers alike.
    assert found.attrs["model_calls"] == 3 + 1
    for number, name in enumerate(["a", "b"]):
        oracle = partial_dependence(
            model,
            table,
            [name],
            custom_values={name: found["grid_value"].values[number]},
            method="brute",
            response_method="predict_proba",
        )
        np.testing.assert_allclose(
            found["curve"].values[:, number], oracle["average"], rtol=0, atol=1e-10
        )
    one = rs.pdp(model, table, output=2, n_grid=7, centering="none")
    np.testing.assert_array_equal(one["curve"].values, found["curve"].values[2])
    np.testing.assert_allclose(found["curve"].sum("output"), 1, rtol=1e-12)


# --- closed forms ---------------------------------------------------------------------------------


def test_a_product():
    X = np.random.default_rng(0).normal([0, 0.5], size=(400, 2))
    found = rs.pdp(product, X, centering="start", grid={"x0": [-1.0, 0, 2]}, n_grid=5)
    row = found.sel(feature="x0").isel(grid=slice(3))
    away = np.array([0.0, 1, 3])
    # ICE of row i is x1_i (z - z_0).
    np.testing.assert_allclose(row["curve"], away * X[:, 1].mean(), rtol=1e-12)
    np.testing.assert_allclose(row["curve_std"], away * X[:, 1].std(ddof=1), rtol=1e-12)
    np.testing.assert_allclose(row["curve_se"], row["curve_std"] / 20, rtol=1e-12)
    np.testing.assert_allclose(
        row["curve_cov"].isel(grid_other=slice(3)),
        np.outer(away, away) * X[:, 1].var(ddof=1) / 400,
        rtol=1e-12,
    )
    np.testing.assert_allclose(row["curve_offset"], -X[:, 1].mean(), rtol=1e-12)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("centering", "kind"),
    in_turn(["mean", "none", "start", "integral"], ["precision", "frequency", None]),
)
def test_blocks_of_rows_are_one_table(monkeypatch, kind, centering):
    """In blocks, the last of one row, all estimates are those of one pass, and so are errors."""
    rng = np.random.default_rng(7)
    X = pd.DataFrame({"a": np.sort(rng.normal(size=91)), "b": rng.normal(size=91)})
    X.loc[::9, "a"] = np.nan
    weights = {"precision": rng.exponential(size=91), "frequency": rng.integers(1, 4, 91)}
    more = {"centering": centering, "missing": "bin", "n_grid": 7, "features": ["a"]}
    if kind is not None:
        more |= {"weights": weights[kind], "weight_kind": kind}

    def model(X):
        a = X["a"].fillna(1.5)
        return (1e6 + a**2 * (1 + X["b"]) + 3 * X["b"]).to_numpy()

    whole = rs.pdp(model, X, **more)
    curves = rs.ice(model, X, **{**more, "centering": "none"})
    monkeypatch.setattr(differences, "BATCH_ROWS", 15)
    found = rs.pdp(model, X, **more)
    for name in found.data_vars:
        np.testing.assert_allclose(found[name], whole[name], rtol=1e-8, atol=1e-10, err_msg=name)
    again = rs.ice(model, X, **{**more, "centering": "none"})
    np.testing.assert_array_equal(again["ice"], curves["ice"])
    # The covariance is that of the influences of the rows, which replicates know, multiplied out.
    rows = rows_behind(curves, "a")
    own = rows.influences(centering)
    error = kernel.sample(own, rows.weight, frequency=kind == "frequency")
    expected = error.covariance / error.n_effective
    if kind == "precision":
        # The sandwich, with a factor that makes it unbiased for equal variances.
        share = rows.weight / rows.weight.sum()
        rest = np.eye(len(share)) - share
        factor = np.sum(share**2) / np.sum(share**2 * np.diagonal(rest @ rest.T))
        moved = share[:, None] * (own - share @ own)
        expected = factor * moved.T @ moved
    np.testing.assert_allclose(whole["curve_cov"][0], expected, rtol=1e-6, atol=1e-9)


def test_derivative_ice_of_a_parabola():
    X = np.random.default_rng(0).uniform(-1, 1, (50, 2))
    found = rs.ice(
        lambda X: X[:, 0] ** 2 * X[:, 1],
        X,
        features=0,
        kind="derivative",
        grid=[-1.0, -0.5, 0.25, 1.0],
    )
    # Central differences on uneven steps are exact for a parabola; at the ends one step.
    expected = np.array([-1.5, -1.0, 0.5, 1.25])
    np.testing.assert_allclose(found["ice"][0], np.outer(expected, X[:, 1]), atol=1e-12)
    np.testing.assert_allclose(found["curve_std"][0], np.abs(expected) * X[:, 1].std(ddof=1))
    assert found["ice"].attrs["units"] == "output units per feature unit"
    assert rs.confint(found)["curve_ci"].attrs["units"] == "output units per feature unit"


def test_centring_by_the_rows_the_start_and_the_axis():
    X = np.array([[0.0, 1], [1, 2], [1, 3], [4, 4]])
    made = {
        how: rs.pdp(lambda X: X[:, 0] + X[:, 1], X, features=0, grid=[0.0, 1, 4], centering=how)
        for how in ("mean", "start", "integral", "none")
    }
    curves = {how: one["curve"].values[0] for how, one in made.items()}
    np.testing.assert_allclose(curves["none"], [2.5, 3.5, 6.5])
    np.testing.assert_allclose(curves["start"], [0, 1, 4])
    np.testing.assert_allclose(curves["mean"], [-1.5, -0.5, 2.5])
    np.testing.assert_allclose(curves["integral"], [-2, -1, 2])
    for one in made.values():
        np.testing.assert_allclose(one["curve"] + one["curve_offset"], [[2.5, 3.5, 6.5]])
        # Nothing differs between the rows but their level.
        np.testing.assert_allclose(one["curve_std"], 0, atol=1e-12)
    np.testing.assert_allclose(made["none"]["curve_se"], np.std([1, 2, 3, 4], ddof=1) / 2)
    np.testing.assert_allclose(made["start"]["curve_se"], 0, atol=1e-12)
    # Known but for where the rows are: the standard error of their mean place.
    np.testing.assert_allclose(made["mean"]["curve_se"], np.std([0, 1, 1, 4], ddof=1) / 2)


def test_rows_between_points_of_the_grid_count_for_both():
    X = np.array([[0.0], [1], [3], [9]])
    found = rs.pdp(lambda X: X[:, 0], X, grid=[0.0, 4, 8])
    np.testing.assert_allclose(found["weight_share"][0], [(1 + 0.75 + 0.25) / 4, 1 / 4, 1 / 4])


def test_m_plot_is_a_mean_in_bins(X):
    found = rs.m_plot(f, X, features="a", bins=rs.QuantileBins(5), centering="none")
    y = pd.Series(f(X))
    inner = found["bin_right"].values[0][:-1]
    groups = y.groupby(np.digitize(X["a"], inner))
    np.testing.assert_allclose(found["curve"][0], groups.mean(), rtol=1e-12)
    np.testing.assert_allclose(found["curve_std"][0], groups.std(), rtol=1e-12)
    np.testing.assert_array_equal(found["n_obs"][0], groups.size())
    np.testing.assert_allclose(found["curve_se"][0], groups.sem(), rtol=1e-12)
    places = X["a"].groupby(np.digitize(X["a"], inner)).mean()
    np.testing.assert_allclose(found["grid_value"][0], places)
    assert found.attrs["model_calls"] == 3 + 1
    centred = rs.m_plot(f, X, features=["a", "k"], bins=rs.QuantileBins(5))
    np.testing.assert_allclose(centred["curve_offset"], y.mean(), rtol=1e-12)
    by_level = y.groupby(X["k"], observed=True).mean() - y.mean()
    levels = centred["level"].values[1][:3]
    np.testing.assert_allclose(centred["curve"][1, :3], by_level[levels], rtol=1e-11)


def test_shapley_values_of_an_additive_model():
    X = np.random.default_rng(0).normal(size=(40, 2))
    found = rs.shap_dependence(
        lambda X: 2 * X[:, 0] - X[:, 1],
        X,
        background=X,
        centering="none",
        n_grid=9,
        rng=0,
    )
    exact = (X - X.mean(axis=0)) * [2, -1]
    np.testing.assert_allclose(found["shap_value"].T, exact, atol=1e-12)
    expected = (found["grid_value"] - X.mean(axis=0)[:, None]) * np.array([[2], [-1]])
    np.testing.assert_allclose(found["curve"], expected, atol=1e-10)
    np.testing.assert_allclose(found["curve_std"], 0, atol=1e-10)
    assert found.attrs["shapley"] == "exact: all subsets of columns"
    assert found.attrs["n_background"] == 40
    given = rs.shap_dependence(None, X, shap_values=exact, centering="none", n_grid=9)
    np.testing.assert_allclose(given["curve"], expected, atol=1e-10)
    assert given.attrs["shapley"] == "given"


def _by_level(X):
    """Additive in a number and a category, both of which may be missing."""
    levels = X["k"].astype(object).map({"u": 0.0, "v": 1.0}).fillna(7.0)
    return 2 * X["a"].fillna(5.0).to_numpy() + levels.to_numpy(dtype=float)


@pytest.mark.parametrize("dtype", ["category", "object", "str"])
def test_shapley_values_of_categories_and_of_rows_without_a_value(dtype):
    """Of an additive model they are its parts, centred over the background: here the rows."""
    rng = np.random.default_rng(2)
    X = pd.DataFrame(
        {"a": rng.normal(size=60), "k": pd.Series(rng.choice(["u", "v"], 60)).astype(dtype)}
    )
    X.loc[rng.random(60) < 0.3, "a"] = np.nan
    X.loc[rng.random(60) < 0.3, "k"] = None
    numbers, texts = 2 * X["a"].fillna(5.0), _by_level(X) - 2 * X["a"].fillna(5.0)
    found = rs.shap_dependence(_by_level, X, background=X, missing="bin", n_grid=5, rng=0)
    np.testing.assert_allclose(
        found["shap_value"], [numbers - numbers.mean(), texts - texts.mean()], atol=1e-12
    )
    # Beside the axis: the rows without a value, over those with one, whose mean is the zero.
    gone = X["a"].isna()
    there = numbers[~gone]
    np.testing.assert_allclose(found["missing_curve"], [10 - there.mean(), np.nan], rtol=1e-10)
    error = there.std() / np.sqrt(len(there))
    np.testing.assert_allclose(found["missing_curve_se"], [error, np.nan], rtol=1e-6)
    assert found["n_missing"].values.tolist() == [gone.sum(), X["k"].isna().sum()]
    by_level = (texts - texts.mean()).groupby(X["k"].astype(object).fillna("missing")).mean()
    assert found["level"].values[1, :3].tolist() == ["u", "v", "missing"]
    np.testing.assert_allclose(found["curve"][1, :3], by_level[["u", "v", "missing"]], atol=1e-12)
    dropped = rs.shap_dependence(_by_level, X, background=X, missing="drop", n_grid=5, rng=0)
    assert "missing_curve" not in dropped
    np.testing.assert_allclose(dropped["curve"][0], found["curve"][0], atol=1e-12)
    with pytest.raises(ValueError, match="'a'.*missing"):
        rs.shap_dependence(_by_level, X, background=X)


def test_a_background_of_other_levels_is_refused():
    X = pd.DataFrame({"a": [0.0, 1.0, 2.0, 3.0], "k": pd.Categorical(list("uvuv"))})
    with pytest.raises(ValueError, match="background of 'k' must hold levels .* got 'q'"):
        rs.shap_dependence(_by_level, X, background=X.assign(k="q"))


@pytest.mark.thorough
def test_by_default_all_columns_but_identifiers():
    X = pd.DataFrame({"a": np.arange(20.0), "n": [0, 1] * 10, "k": list("uv") * 10})
    model = lambda X: X["a"] + X["n"] * (X["k"] == "u")  # noqa: E731
    for make in (rs.pdp, rs.ice, rs.m_plot):
        assert make(model, X)["feature"].values.tolist() == ["a", "n", "k"]
    assert rs.ice(model, X, kind="derivative")["feature"].values.tolist() == ["a", "n"]
    X["key"] = [f"id {number}" for number in range(20)]
    X["day"] = pd.Timestamp("2020-01-01")
    with pytest.warns(UserWarning, match="Left out: 'key' ") as warned:
        rs.pdp(model, X)
    assert warned[0].filename == __file__
    with pytest.raises(TypeError, match="X must have a column with an effect; got 'key'"):
        rs.pdp(model, X[["key"]])
    with pytest.raises(TypeError, match="X must have a column of numbers for derivatives"):
        rs.ice(model, X[["k"]], kind="derivative")


def test_more_than_ten_columns_are_sampled_and_it_says_so():
    X = np.random.default_rng(0).normal(size=(6, 11))
    found = rs.shap_dependence(lambda X: X[:, 0], X, features=0, background=3, rng=0)
    assert found.attrs["shapley"] == "sampled: 132 permutations of the columns a row, in pairs"


def test_the_spline_finds_a_curve_in_noise_and_its_spread():
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, 4000)
    phi = np.sin(2 * x) + rng.normal(0, 0.3, 4000)
    found = rs.shap_dependence(None, x[:, None], shap_values=phi, centering="none")
    z = found["grid_value"].values[0]
    # 0.3 times the root of some 15 degrees of freedom over 4000 rows is 0.02.
    assert np.abs(found["curve"].values[0] - np.sin(2 * z))[1:-1].max() < 0.06
    np.testing.assert_allclose(found["curve_std"][0], 0.3, rtol=0.2)
    np.testing.assert_allclose(found["heterogeneity_output"], 0.3, rtol=0.05)


# --- categories -----------------------------------------------------------------------------------


def test_levels_are_a_grid(X):
    names = ["k", "t", "yes", "a"]
    found = rs.pdp(f, X, features=names, centering="none", n_grid=4)
    assert found["feature_kind"].values.tolist() == ["nominal"] * 3 + ["continuous"]
    assert found["n_grid"].values.tolist() == [3, 2, 2, 4]
    # In the order of the category, only levels that rows have.
    assert found["level"].values[0, :3].tolist() == ["w", "u", "v"]
    assert found["level"].values[1, :2].tolist() == ["green", "red"]
    assert found["level"].values[2, :2].tolist() == ["False", "True"]
    for number, name in enumerate(names[:3]):
        column = X[name]
        for at in range(int(found["n_grid"][number])):
            level = found["level"].values[number, at]
            other = X.copy()
            values = [one for one in column.unique() if str(one) == level]
            other[name] = pd.Series(values * len(X), index=X.index).astype(column.dtype)
            np.testing.assert_allclose(found["curve"][number, at], f(other).mean(), rtol=1e-12)
            share = (column.astype(str) == level).mean()
            np.testing.assert_allclose(found["weight_share"][number, at], share)
    curve = found["curve"].values[0, :3]
    assert rs.predict(found, ["u", "w"], "k").values.tolist() == curve[[1, 0]].tolist()
    chosen = rs.pdp(f, X, features="k", grid=["v", "w", "u"], centering="none")
    np.testing.assert_array_equal(chosen["curve"][0], curve[[2, 0, 1]])


def test_whole_numbers_stay_whole_for_the_model(X):
    kinds = []

    def model(X):
        kinds.append(X["i"].dtype)
        return f(X)

    rs.pdp(model, X, features="i")
    assert set(kinds) == {X["i"].dtype}


# --- invariants -----------------------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize("centering", ["mean", "start", "integral", "none"])
def test_frequencies_are_repeated_rows(X, centering):
    weight = np.random.default_rng(1).integers(0, 4, len(X))
    repeated = X.loc[X.index.repeat(weight)].reset_index(drop=True)
    names = ["a", "k", "i"]
    weights = {"weights": weight, "weight_kind": "frequency"}
    same(
        rs.pdp(f, X, features=names, centering=centering, n_grid=9, **weights),
        rs.pdp(f, repeated, features=names, centering=centering, n_grid=9),
    )
    rule = rs.QuantileBins(6)
    same(
        rs.m_plot(f, X, features=names, centering=centering, bins=rule, **weights),
        rs.m_plot(f, repeated, features=names, centering=centering, bins=rule),
        1e-10,
    )
    phi = np.random.default_rng(0).normal(size=X.shape)
    a = rs.shap_dependence(None, X, shap_values=phi, features=names, **weights)
    again = np.repeat(phi, weight, axis=0)
    b = rs.shap_dependence(None, repeated, shap_values=again, features=names)
    for name in ("curve", "curve_std", "importance"):
        np.testing.assert_allclose(a[name], b[name], rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("factor", [1e-6, -3.0, 1e6])
def test_equivariance(factor):
    X = np.random.default_rng(0).normal(size=(100, 2))
    for make in (rs.pdp, rs.m_plot):
        a = make(product, X)
        b = make(lambda X: factor * product(X) + 1e9 * abs(factor), X)
        np.testing.assert_allclose(b["curve"], factor * a["curve"], atol=1e-5 * abs(factor))
        for name in ("curve_std", "curve_se", "heterogeneity_output", "importance"):
            np.testing.assert_allclose(
                b[name], abs(factor) * a[name], rtol=1e-5, atol=1e-5 * abs(factor)
            )
    # The feature in other units: the same curve elsewhere.
    c = rs.pdp(lambda X: product((X - [1e6, 0]) / [10, 1]), X * [10, 1] + [1e6, 0])
    np.testing.assert_allclose(c["curve"], rs.pdp(product, X)["curve"], atol=1e-8)


def test_precision_weights_have_no_scale(X):
    weight = np.random.default_rng(1).uniform(0, 1, len(X))
    weight[:5] = 0
    a = rs.pdp(f, X, features=["a", "k"], weights=weight)
    same(a, rs.pdp(f, X, features=["a", "k"], weights=weight * 1e-200), 1e-9)
    kept = X.iloc[5:]
    same(a, rs.pdp(f, kept, features=["a", "k"], weights=weight[5:]))
    assert a.attrs["n_rows"] == len(X) - 5


def test_rows_without_a_value(X):
    gaps = X.copy()
    gaps.loc[gaps.index[:30], "a"] = np.nan
    gaps.loc[gaps.index[30:50], "k"] = np.nan

    def model(X):
        return np.nan_to_num(f(X.assign(b=X["b"])), nan=0.0)

    found = rs.pdp(model, gaps, features=["a", "k"], missing="drop", n_grid=5)
    assert found["n_missing"].values.tolist() == [30, 20]
    assert found["n_obs"].values.tolist() == [170, 180]
    alone = rs.pdp(model, gaps[30:], features="a", n_grid=5)
    for name in ("curve", "curve_std", "curve_se"):
        np.testing.assert_allclose(found[name][0], alone[name][0], rtol=1e-12)
    curves = rs.ice(model, gaps, features=["a", "k"], missing="drop", n_grid=5)
    assert int(curves["ice"].isnull().all("grid").sum()) == 50
    boot = rs.bootstrap(curves, found, n_resamples=200, rng=0)
    spread = boot["curve"].std(("chain", "draw")).values[0]
    se = found["curve_se"].values[0]
    np.testing.assert_allclose(spread, se, rtol=0.2, atol=0.05 * se.max())
    with pytest.raises(ValueError, match="feature 'a' must be finite; got 30 NaN in 200 rows"):
        rs.pdp(model, gaps, features="a")
    with pytest.raises(ValueError, match="'k' must have a level in every row; got 20 missing"):
        rs.pdp(model, gaps, features="k")


def test_a_constant_feature_has_no_curve():
    X = np.column_stack([np.ones(20), np.arange(20.0)])
    for make in (rs.pdp, rs.ice, rs.m_plot):
        found = make(lambda X: X.sum(axis=1), X, features=[0, 1])
        assert found["feature_kind"].values[0] == "constant"
        assert found["n_grid"].values[0] == 0
        assert found["curve"][0].isnull().all()
        own = slice(int(found["n_grid"][1]))
        assert np.isfinite(found["curve"][1, own]).all()
        np.testing.assert_allclose(
            np.diff(found["curve"][1, own]), np.diff(found["grid_value"][1, own])
        )
        assert np.isnan(rs.predict(found, [1.0], "x0").values).all()
        assert "constant" in str(rs.summary(found))
        panel, blank = rs.plots.effects(found)
        assert blank.texts
        assert panel.lines
    one = np.ones((5, 1))
    constant = rs.confband(rs.pdp(lambda X: X[:, 0], one, features=0), n_draws=500, rng=0)
    assert constant["curve_band"].isnull().all()


# --- the verbs ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def curves(X):
    return rs.ice(f, X, features=["a", "k"], n_grid=8)


@pytest.fixture(scope="module")
def found(X):
    return rs.pdp(f, X, features=["a", "k"], n_grid=8)


def test_kinds_of_ice_are_one(X, curves, found):
    centred = rs.ice(f, X, features=["a", "k"], n_grid=8, kind="centered")
    plain = curves["ice"]
    np.testing.assert_allclose(centred["ice"], plain - plain.isel(grid=0), atol=1e-12)
    np.testing.assert_allclose(centred["curve"], centred["ice"].mean("obs"), atol=1e-12)
    np.testing.assert_allclose(centred["curve_std"], centred["ice"].std("obs", ddof=1), atol=1e-12)
    again = rs.ice(f, X, features=["a", "k"], n_grid=8, kind="centered", centering="mean")
    for name in ("curve", "curve_std", "curve_cov"):
        np.testing.assert_allclose(again[name], found[name], atol=1e-12)
    assert plain.dims == ("feature", "grid", "obs")


def test_the_covariance_is_that_of_intervals_and_bands(found):
    assert rs.std_error(found).identical(found)
    covariance = rs.vcov(found, "a")
    se = found["curve_se"].sel(feature="a").values
    np.testing.assert_allclose(np.sqrt(np.diagonal(covariance)), se)
    made = rs.confband(rs.confint(found, level=0.9), level=0.9, rng=0)
    half = (made["curve_ci"].diff("ci_bound") / 2).squeeze("ci_bound").sel(feature="a")
    np.testing.assert_allclose(half, stats.t.ppf(0.95, 199) * se, rtol=1e-10)
    wide = (made["curve_band"].diff("ci_bound") / 2).squeeze("ci_bound").sel(feature="a") / half
    np.testing.assert_allclose(wide, wide[0], rtol=1e-10)
    assert 1 < wide[0] < np.sqrt(stats.chi2.ppf(0.9, 8)) / stats.t.ppf(0.95, 199)
    assert made["curve_band"].attrs["kind"] == "simultaneous over the axis"


def well_known(found):
    """Standard errors, but where the curves cross: there those of first order vanish."""
    se = found["curve_se"]
    return se.where(se > se.max("grid") / 3)


@pytest.mark.thorough
@pytest.mark.parametrize("scheme", ["multinomial", "bayesian", "poisson"])
def test_replicates_vary_as_the_standard_errors_say(curves, found, scheme):
    boot = rs.bootstrap(curves, found, n_resamples=1200, scheme=scheme, rng=0)
    assert boot["curve"].dims == ("chain", "draw", "feature", "grid")
    ratio = boot["curve"].std(("chain", "draw")) / well_known(found)
    # Monte-Carlo error of a standard deviation from 1200 draws: 2 %; of the first order: 1/n.
    assert float(np.abs(ratio - 1).max()) < 0.12
    for method in ("percentile", "basic", "bca"):
        made = rs.confint(found, boot, method=method)
        normal = rs.confint(found)["curve_ci"].where(well_known(found).notnull())
        width = made["curve_ci"].diff("ci_bound") / normal.diff("ci_bound")
        assert float(np.abs(width - 1).max()) < 0.2


@pytest.mark.thorough
def test_a_replicate_is_the_profile_of_its_rows(X, curves):
    """By brute force: the weights of one replicate, given as frequencies."""
    seed = np.random.default_rng(3).spawn(1)[0]
    weight = np.bincount(seed.integers(200, size=200), minlength=200)
    grid = {"a": curves["grid_value"].values[0], "k": ["w", "u", "v"]}
    for centering in ("mean", "start", "integral", "none"):
        whole = rs.pdp(f, X, features=["a", "k"], grid=grid, centering=centering)
        boot = rs.bootstrap(curves, whole, n_resamples=1, chains=1, rng=np.random.default_rng(3))
        one = boot.isel(chain=0, draw=0)
        weights = {"weights": weight, "weight_kind": "frequency"}
        direct = rs.pdp(f, X, features=["a", "k"], grid=grid, centering=centering, **weights)
        for name in ("curve", "curve_std", "heterogeneity_output", "importance"):
            np.testing.assert_allclose(one[name], direct[name], rtol=1e-10, atol=1e-12)


@pytest.mark.thorough
def test_groups_are_drawn_together(X, found, curves):
    twice = pd.concat([X, X], ignore_index=True)
    grid = {"a": found["grid_value"].values[0], "k": ["w", "u", "v"]}
    doubled = rs.ice(f, twice, features=["a", "k"], grid=grid)
    whole = rs.pdp(f, twice, features=["a", "k"], grid=grid)
    group = np.tile(np.arange(200), 2)
    boot = rs.bootstrap(doubled, whole, groups=group, n_resamples=800, rng=0)
    ratio = boot["curve"].std(("chain", "draw")) / well_known(found)
    assert float(np.abs(ratio - 1).max()) < 0.12
    assert boot.attrs["source"] == "groups of rows"


def test_two_profiles(X, found):
    grid = {"a": found["grid_value"].values[0]}

    def other(X):
        return f(X) + 0.5 * np.asarray(X["a"])

    a, b = (rs.pdp(model, X, features="a", grid=grid) for model in (f, other))
    apart = rs.compare(a, b, n_draws=500, rng=0)
    pairs = tuple(rs.ice(model, X, features="a", grid=grid) for model in (f, other))
    paired = rs.compare(a, b, paired=pairs, n_draws=500, rng=0)
    z = grid["a"]
    share = a["weight_share"].values[0]
    np.testing.assert_allclose(paired["difference"][0], -0.5 * (z - share @ z), atol=1e-12)
    # Rows differ in no more than where they are.
    place = X["a"].std() / np.sqrt(200)
    np.testing.assert_allclose(paired["difference_se"][0], 0.5 * place, rtol=0.02)
    assert float(apart["difference_se"][0, 0]) > 2 * float(paired["difference_se"][0, 0])
    assert float(paired["p_value"][0]) < 0.01
    np.testing.assert_allclose(
        apart["difference_se"], np.hypot(a["curve_se"], b["curve_se"]), rtol=1e-12
    )
    assert rs.tidy(paired)["term"].unique().tolist() == ["a"]
    with pytest.raises(ValueError, match="a and b must have one grid; those of feature 'a' differ"):
        rs.compare(a, rs.pdp(other, X, features="a", n_grid=5))


def test_tables(found):
    table = rs.tidy(found)
    assert len(table) == 11
    assert table.query("term == 'k'")["level"].tolist() == ["w", "u", "v"]
    ends = rs.confint(found)["curve_ci"].sel(feature="k").isel(grid=slice(3))
    np.testing.assert_allclose(table.query("term == 'k'")["conf_low"], ends.sel(ci_bound="lower"))
    whole = rs.glance(found)
    assert whole["n_grid"].tolist() == [8, 3]
    np.testing.assert_allclose(whole["importance"], found["importance"])
    text = str(rs.summary(found))
    assert "Partial dependence: effects on output" in text
    assert "Model asked for rows:" in text
    text = str(rs.summary(rs.confband(found, n_draws=500, rng=0), "k"))
    assert "Partial dependence: effect of k on output" in text
    assert "In the result: curve_band (0.95, simultaneous over the axis" in text


def test_predict_between_the_points(found):
    row = found.sel(feature="a")
    z = row["grid_value"].values
    middle = (z[:-1] + z[1:]) / 2
    curve = row["curve"].values
    np.testing.assert_allclose(rs.predict(found, middle, "a"), (curve[:-1] + curve[1:]) / 2)
    assert np.isnan(rs.predict(found, [z[0] - 1, z[-1] + 1], "a")).all()


def test_several_outputs_in_all_verbs(X):
    table = X[["a", "b"]]
    model = LogisticRegression().fit(table, np.digitize(table["a"] * table["b"], [-0.3, 0.3]))
    found = rs.pdp(model, table, n_grid=5)
    curves = rs.ice(model, table, n_grid=5)
    boot = rs.bootstrap(curves, found, n_resamples=20, chains=2, rng=0)
    assert boot["curve"].dims == ("chain", "draw", "output", "feature", "grid")
    made = rs.confband(rs.confint(found), n_draws=200, rng=0)
    assert made["curve_band"].dims == ("output", "feature", "grid", "ci_bound")
    single = rs.confint(rs.pdp(model, table, n_grid=5, output=1))
    np.testing.assert_allclose(made["curve_ci"].sel(output=1), single["curve_ci"])
    assert rs.tidy(found)["output"].unique().tolist() == [0, 1, 2]
    assert "probability of 2" in str(rs.summary(found))
    assert rs.m_plot(model, table)["curve"].sizes["output"] == 3
    panel = rs.plots.effect(found.isel(output=1), "a")[0]
    assert panel.get_ylabel() == "effect on probability of 1"
    with pytest.raises(ValueError, match="must be of one output here; this one is of 3"):
        rs.plots.profile(found, "a")
    shap = rs.shap_dependence(model, table[:40], background=10, n_grid=5, rng=0)
    np.testing.assert_allclose(shap["shap_value"].sum("output"), 0, atol=1e-12)


# --- methods side by side -------------------------------------------------------------------------


def test_effects_in_bins_are_compared_without_a_profile():
    """The parabola of a linear bin is there at its points, on the rows' own mean."""
    X = np.random.default_rng(3).uniform(-1, 1, (2000, 2))

    def f(X):
        return X[:, 0] ** 2 + X[:, 0] * X[:, 1]

    slopes = np.column_stack([2 * X[:, 0] + X[:, 1], X[:, 0]])
    local = rs.local_effects(None, X, jacobian=slopes)
    rhale = rs.rhale(local, bins=rs.AdaptiveBins())
    assert int(rhale["n_bins"].sel(feature="x0")) == 1
    ale = rs.ale(f, X, bins=rs.QuantileBins(20))
    found = rs.compare_methods([ale, rhale], "x0")
    assert found["effect_method"].values.tolist() == ["ALE", "RHALE"]
    z = found["grid_value"].values
    assert set(ale["edge_value"].sel(feature="x0").values) <= set(z)
    truth = z**2 - np.mean(X[:, 0] ** 2)
    for curve in found["curve"].values:
        np.testing.assert_allclose(curve, truth, atol=0.03)
    np.testing.assert_allclose((found["curve"] * found["weight_share"]).sum("grid"), 0, atol=1e-12)
    np.testing.assert_allclose(found["weight_share"].sum(), 1)
    errors = rs.confint(rhale)["curve_se"].sel(feature="x0").dropna("edge")[[0, -1]]
    np.testing.assert_allclose(found["curve_se"].sel(effect_method="RHALE")[[0, -1]], errors)
    constant = np.column_stack([X[:, 0], np.ones(len(X))])
    with pytest.raises(ValueError, match="feature must vary; 'x1' is constant"):
        rs.compare_methods([rs.ale(f, constant)], "x1")


def test_levels_are_compared_without_a_profile():
    X = pd.DataFrame({"k": list("abc") * 40})
    values = {"a": 0.0, "b": 2.0, "c": 3.0}

    def f(X):
        return X["k"].map(values).to_numpy()

    first, second = (rs.ale(f, X, order=list(order)) for order in ("abc", "cab"))
    found = rs.compare_methods([first, second], "k", names=["one", "other"])
    assert found["level"].values.tolist() == list("abc")
    np.testing.assert_allclose(found["curve"], np.array([[0.0, 2.0, 3.0]] * 2) - 5 / 3)


@pytest.mark.slow
def test_methods_agree_where_features_are_independent():
    X = np.random.default_rng(0).uniform(-1, 1, (3000, 2))

    def model(X):
        return X[:, 0] ** 2 + X[:, 1]

    local = rs.local_effects(model, X, method="finite_difference")
    results = [
        rs.pdp(model, X),
        rs.rhale(local, bins=rs.EqualWidthBins(20)),
        rs.m_plot(model, X),
        rs.shap_dependence(None, X, shap_values=np.column_stack([X[:, 0] ** 2, X[:, 1]])),
    ]
    found = rs.compare_methods(results, "x0")
    assert found["effect_method"].values.tolist() == [
        "Partial dependence",
        "ALE",
        "M-plot",
        "SHAP dependence",
    ]
    z = found["grid_value"].values
    truth = z**2 - found["weight_share"].values @ z**2
    exact = found["curve"].sel(effect_method=["Partial dependence", "ALE", "SHAP dependence"])
    np.testing.assert_allclose(exact - truth, 0, atol=0.02)
    # Of 75 rows a bin, whose other feature has a standard deviation of 0.58.
    assert np.nanmax(
        np.abs(found["curve"].sel(effect_method="M-plot") - truth)
    ) < 4 * 0.58 / np.sqrt(75)
    means = (found["curve"].fillna(0) * found["weight_share"]).sum("grid")
    np.testing.assert_allclose(means, 0, atol=1e-12)
    np.testing.assert_allclose(
        found["curve_se"].sel(effect_method="SHAP dependence"), results[3]["curve_se"][0]
    )
    np.testing.assert_allclose(
        found["curve_se"].sel(effect_method="Partial dependence"), results[0]["curve_se"][0]
    )
    panel = rs.plots.methods(found)
    assert len(panel.get_legend().get_texts()) == 4


def test_methods_that_do_not_fit(found, X):
    with pytest.raises(ValueError, match="results must hold at least one result"):
        rs.compare_methods([], "a")
    with pytest.raises(ValueError, match="names must be one a result, all different; got Partial"):
        rs.compare_methods([found, found], "a")
    assert rs.compare_methods([found, found], "a", names=["one", "two"]).sizes["effect_method"] == 2
    other = rs.pdp(f, X, features=["a"]).assign_attrs(output_name="y")
    with pytest.raises(ValueError, match="results must be of one output; got output and y"):
        rs.compare_methods([found, other], "a")
    slopes = rs.ice(f, X, features="a", kind="derivative")
    with pytest.raises(ValueError, match="results must be curves of the output; got derivatives"):
        rs.compare_methods([found, slopes], "a")


# --- pictures -------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_pictures_show_what_they_say(X, found, curves):
    panel = rs.plots.profile(curves, "a")
    assert [text.get_text() for text in panel.get_legend().get_texts()] == [
        "ICE curves",
        "± spread",
        "mean of the ICE curves",
        "± standard error",
    ]
    assert len(panel.collections[0].get_segments()) == 200
    assert panel.get_ylabel() == "mean of output"
    twice = pd.concat([X, X], ignore_index=True)
    many = rs.ice(f, twice, features="a", n_grid=5)
    label = rs.plots.profile(many, "a").get_legend().get_texts()[0].get_text()
    assert label == "ICE curves, 200 of 400"
    _, ax = plt.subplots()
    bars = rs.plots.effect(found, "k", ax=[ax])[0]
    assert bars is ax
    assert [patch.get_height() for patch in bars.patches] == found["curve"][1, :3].values.tolist()
    assert bars.get_xticklabels()[0].get_text().startswith("w\n")
    assert len(rs.plots.effects(found)) == 2


# --- rows without a value, as rows ----------------------------------------------------------------


def gapped(n, rng):
    """A feature that is missing the more the larger the other one is, and a category."""
    table = pd.DataFrame({"a": rng.normal(size=n), "b": rng.normal(size=n)})
    table["k"] = pd.Categorical(rng.choice(["u", "v"], n), categories=["v", "u", "z"])
    table.loc[rng.random(n) < 1 / (1 + np.exp(1 - table["b"])), "a"] = np.nan
    table.loc[rng.random(n) < 0.2, "k"] = np.nan
    return table


def answers(X):
    """Of the table above, for whatever is missing."""
    a, b = X["a"].to_numpy(float), X["b"].to_numpy()
    own = X["k"].astype(object).map({"u": 1.0, "v": 2.0}).astype(float).fillna(-1.0)
    return np.where(np.isnan(a), 3 + 2 * b, a * (1 + b)) + own.to_numpy() * (1 + b)


@pytest.mark.thorough
def test_rows_without_a_value_are_rows_of_the_curve():
    X = gapped(300, np.random.default_rng(1))
    there, b = X["a"].notna().to_numpy(), X["b"].to_numpy()
    level = answers(X.assign(a=0.0))
    z = np.array([-1.0, 0.5, 4.0])
    found = {
        how: rs.pdp(answers, X, features="a", grid=z, centering=how, missing="bin").isel(feature=0)
        for how in ("none", "mean", "start", "integral")
    }
    for one in found.values():
        # All rows count at every point, and without the value.
        whole = z * (1 + b.mean()) + level.mean()
        np.testing.assert_allclose(one["curve"] + one["curve_offset"], whole, rtol=1e-12)
        absent = (3 + 2 * b + level).mean()
        np.testing.assert_allclose(one["missing_curve"] + one["curve_offset"], absent, rtol=1e-12)
        assert int(one["n_obs"]) == 300
        assert int(one["n_missing"]) == (~there).sum()
    # The constant is a mean over the rows that have a place.
    place = np.interp(X["a"][there], z, z)
    np.testing.assert_allclose(
        found["mean"]["curve_offset"], place.mean() * (1 + b.mean()) + level.mean(), rtol=1e-12
    )
    # ICE curves are lines of slope 1 + b_i: differences from the start do not know the level.
    se = np.std(3 + 2 * b + 1 + b, ddof=1) / np.sqrt(300)
    np.testing.assert_allclose(found["start"]["missing_curve_se"], se, rtol=1e-12)
    np.testing.assert_allclose(
        found["integral"]["missing_curve_se"],
        np.std(3 + 2 * b - 1.5 * (1 + b), ddof=1) / np.sqrt(300),
        rtol=1e-12,
    )
    np.testing.assert_allclose(
        found["none"]["missing_curve_se"], np.std(3 + 2 * b + level, ddof=1) / np.sqrt(300)
    )
    # Where all curves are one, only the constant varies: with the places of the rows that have one.
    steep = rs.pdp(
        lambda X: np.where(X["a"].isna(), 3.0, 10 * X["a"]), X, features="a", missing="bin", grid=z
    )
    places = 10 * np.clip(X["a"][there], -1, 4)
    se = np.sqrt(places.var(ddof=0) / there.sum() * 300 / 299)
    np.testing.assert_allclose(steep["missing_curve"], 3 - places.mean(), rtol=1e-12)
    np.testing.assert_allclose(steep["missing_curve_se"], se, rtol=1e-12)
    np.testing.assert_allclose(steep["curve_se"], np.full((1, 3), se), rtol=1e-12)
    # "drop" leaves these rows out, and knows nothing of the rest.
    dropped = rs.pdp(answers, X, features="a", grid=z, centering="none", missing="drop")
    np.testing.assert_allclose(
        dropped["curve"][0], z * (1 + b[there].mean()) + level[there].mean(), rtol=1e-12
    )
    assert "missing_curve" not in dropped


@pytest.mark.thorough
def test_a_missing_level_is_a_level():
    X = gapped(300, np.random.default_rng(1))
    found = rs.pdp(answers, X, features="k", centering="none", missing="bin")
    assert found["level"].values[0].tolist() == ["v", "u", "missing"]
    expected = np.outer([2.0, 1, -1], 1 + X["b"]) + answers(X.assign(k="u")) - (1 + X["b"].values)
    np.testing.assert_allclose(found["curve"][0], expected.mean(axis=1), rtol=1e-12)
    np.testing.assert_allclose(
        found["curve_std"][0],
        np.std(expected - expected.T @ found["weight_share"].values[0], axis=1, ddof=1),
    )
    np.testing.assert_allclose(found["weight_share"][0][2], X["k"].isna().mean())
    assert found["n_missing"].values.tolist() == [X["k"].isna().sum()]
    assert "missing_curve" not in found
    named = rs.pdp(
        answers, X, features="k", centering="none", missing="bin", grid=["missing", "u", "v"]
    )
    np.testing.assert_allclose(named["curve"][0], found["curve"][0][::-1], rtol=1e-13)
    last = rs.pdp(answers, X, features="k", centering="none", missing="bin", grid=["v", "u"])
    assert last.identical(found)
    text = X.assign(k=X["k"].astype(object).where(X["k"].notna(), None))
    for column in (text["k"], text["k"].astype("string")):
        other = rs.pdp(answers, X.assign(k=column), features="k", centering="none", missing="bin")
        by_level = dict(zip(other["level"].values[0], other["curve"].values[0], strict=True))
        np.testing.assert_allclose([by_level[k] for k in ("v", "u", "missing")], found["curve"][0])
    taken = X.assign(k=X["k"].cat.rename_categories({"u": "missing"}))
    with pytest.raises(ValueError, match="'k' must not hold 'missing' with missing='bin'"):
        rs.pdp(answers, taken, features="k", missing="bin")


@pytest.mark.thorough
@pytest.mark.parametrize("centering", ["mean", "start", "none"])
def test_repeated_rows_without_a_value(centering):
    X = gapped(80, np.random.default_rng(3))
    count = np.random.default_rng(0).integers(0, 4, 80)
    X.loc[:3, "a"], count[:4] = np.nan, [2, 0, 3, 1]
    z, long = {"a": [-1.0, 0, 1]}, X.loc[np.repeat(np.arange(80), count)]
    how = {"features": ["a", "k"], "missing": "bin", "centering": centering}
    more = {"weights": count, "weight_kind": "frequency"}
    same(rs.pdp(answers, X, grid=z, **how, **more), rs.pdp(answers, long, grid=z, **how), 1e-10)
    edges = {"bins": rs.GivenBins([-4.0, 0, 4])}
    same(
        rs.m_plot(answers, X, **edges, **how, **more),
        rs.m_plot(answers, long, **edges, **how),
        1e-10,
    )


@pytest.mark.thorough
@pytest.mark.parametrize("factor", [-3.0, 1e6])
def test_the_mark_beside_the_axis_goes_with_the_output(factor):
    X = gapped(100, np.random.default_rng(3))
    weights = np.random.default_rng(0).uniform(0.1, 1, 100)
    for make in (rs.pdp, rs.m_plot):
        how = {"features": "a", "missing": "bin", "weights": weights}
        one = make(answers, X, **how)
        other = make(lambda X: factor * answers(X) + 10, X, **how)
        for name in ("curve", "missing_curve"):
            np.testing.assert_allclose(other[name], factor * one[name], rtol=1e-9)
        np.testing.assert_allclose(
            other["missing_curve_se"], abs(factor) * one["missing_curve_se"], rtol=1e-9
        )


def test_m_plot_of_rows_without_a_value():
    X = gapped(300, np.random.default_rng(1))
    there, y = X["a"].notna().to_numpy(), answers(X)
    found = rs.m_plot(answers, X, features="a", missing="bin", bins=rs.EqualWidthBins(3))
    gone, others = y[~there], y[there]
    np.testing.assert_allclose(found["missing_curve"], gone.mean() - others.mean(), rtol=1e-12)
    se = np.sqrt(gone.var(ddof=1) / len(gone) + others.var(ddof=1) / len(others))
    np.testing.assert_allclose(found["missing_curve_se"], se, rtol=1e-12)
    dropped = rs.m_plot(answers, X, features="a", missing="drop", bins=rs.EqualWidthBins(3))
    same(found[list(dropped.data_vars)], dropped)


@pytest.mark.thorough
def test_replicates_vary_as_the_errors_say_with_missing_rows():
    X = gapped(250, np.random.default_rng(1))
    z = {"a": [-1.5, 0, 1.5]}
    how = {"features": ["a", "k"], "grid": z, "missing": "bin"}
    found, curves = rs.pdp(answers, X, **how), rs.ice(answers, X, **how)
    assert curves["ice"].isel(feature=0).notnull().all()
    boot = rs.bootstrap(curves, found, n_resamples=2000, rng=0)
    ratio = boot["curve"].std(("chain", "draw")) / found["curve_se"]
    # 2000 replicates know a standard deviation to 1.6 %, and divisors differ by n / (n - 1).
    np.testing.assert_allclose(ratio, 1, atol=0.07)
    # One replicate that is the rows themselves, twice: their mean, and its errors smaller.
    twice = rs.pdp(answers, pd.concat([X, X], ignore_index=True), **how)
    for name in ("curve", "missing_curve"):
        np.testing.assert_allclose(twice[name], found[name], rtol=1e-12)
    np.testing.assert_allclose(
        twice["missing_curve_se"] / found["missing_curve_se"],
        [np.sqrt(249 / 499), np.nan],
        rtol=1e-12,
    )


@pytest.mark.slow
@pytest.mark.parametrize("make", [rs.pdp, rs.m_plot])
def test_the_error_of_the_mark_holds_its_share(make):
    rng = np.random.default_rng(8)
    draws = np.empty((120, 2))

    def steep(X):
        return answers(X) + 5 * X["a"].fillna(0).to_numpy()

    for number in range(len(draws)):
        more = {"grid": [-2.0, 0, 2]} if make is rs.pdp else {"bins": rs.EqualWidthBins(3)}
        one = make(steep, gapped(150, rng), features="a", missing="bin", **more)
        draws[number] = one["missing_curve"].item(), one["missing_curve_se"].item()
    value, se = draws.T
    # The standard deviation of 120 draws is known to 6.5 %.
    np.testing.assert_allclose(value.std() / np.sqrt(np.mean(se**2)), 1, atol=0.195)


def test_models_that_do_not_take_missing_values():
    X = gapped(100, np.random.default_rng(3))[["a", "b"]]

    def refuses(X):
        if np.isnan(X["a"]).any():
            raise ValueError("Input contains NaN")
        return X["a"] + X["b"]

    with pytest.raises(rs.ModelError, match="Input contains NaN"):
        rs.pdp(refuses, X, features="a", missing="bin")
    with pytest.raises(ValueError, match="Outputs at missing values of feature 'a' must be finite"):
        rs.pdp(lambda X: X["a"] + X["b"], X, features="a", missing="bin")
    assert rs.pdp(refuses, X, features="a", missing="drop")["curve"].notnull().all()


def test_several_outputs_and_files_and_pictures_of_missing_rows(tmp_path):
    X = gapped(100, np.random.default_rng(3))
    two = rs.pdp(
        lambda X: np.column_stack([answers(X), X["b"]]), X, features=["b", "a"], missing="bin"
    )
    assert two["missing_curve"].dims == ("output", "feature")
    assert two["n_missing"].values.tolist() == [0, X["a"].isna().sum()]
    one = rs.pdp(answers, X, features=["b", "a"], missing="bin")
    np.testing.assert_array_equal(two["missing_curve"][0], one["missing_curve"])
    assert np.isnan(one["missing_curve"].values[0])
    xr.testing.assert_identical(through_a_file(one, tmp_path), one)
    panel = rs.plots.profile(one, "a")
    mark = {line.get_label(): line for line in panel.get_lines()}["without a value"]
    assert mark.get_ydata().tolist() == [float(one["missing_curve"][1])]
    assert panel.get_ylim()[0] < float(one["missing_curve"][1]) < panel.get_ylim()[1]
    assert "without a value" not in [
        line.get_label() for line in rs.plots.profile(one, "b").get_lines()
    ]
    slopes = rs.ice(answers, X, features="a", missing="bin", kind="derivative")
    assert "missing_curve" not in slopes
    np.testing.assert_allclose(slopes["ice"][0], np.tile(1 + X["b"], (40, 1)), atol=1e-9)


@pytest.mark.thorough
def test_a_feature_that_is_constant_but_for_gaps():
    X = gapped(50, np.random.default_rng(3))
    X.loc[X["a"].notna(), "a"] = 1.0
    for make in (rs.pdp, rs.ice, rs.m_plot):
        found = make(answers, X, features=["a", "b"], missing="bin")
        assert found["n_grid"].values.tolist()[0] == 0
        assert "missing_curve" not in found
    boot = rs.bootstrap(
        rs.ice(answers, X, features=["a", "b"], missing="bin"),
        rs.pdp(answers, X, features=["a", "b"], missing="bin"),
        n_resamples=8,
        rng=0,
    )
    assert boot["curve"].notnull().all(("chain", "draw", "grid")).values.tolist() == [False, True]
    assert boot["curve"].isel(feature=0).isnull().all()


# --- methods over levels --------------------------------------------------------------------------


@pytest.mark.thorough
def test_methods_over_levels_in_any_order():
    rng = np.random.default_rng(2)
    X = pd.DataFrame(
        {"k": pd.Categorical(rng.choice(["u", "v", "w"], 400)), "b": rng.normal(size=400)}
    )
    height = {"u": 1.0, "v": 5.0, "w": 2.0}

    def model(X):
        return X["k"].map(height).astype(float).to_numpy() + X["b"].to_numpy()

    profile = rs.pdp(model, X, features="k", grid=["v", "u", "w"])
    effect = rs.ale(model, X, features="k", order=["w", "v", "u"])
    curve = rs.m_plot(model, X, features="k")
    found = rs.compare_methods([profile, effect, curve], "k")
    assert found["level"].values.tolist() == ["v", "u", "w"]
    assert found["effect_method"].values.tolist() == ["Partial dependence", "ALE", "M-plot"]
    share = X["k"].value_counts(normalize=True)[["v", "u", "w"]].to_numpy()
    np.testing.assert_allclose(found["weight_share"], share)
    # Additive: what a level does is its height, whatever the order.
    truth = np.array([5.0, 1, 2]) - share @ [5.0, 1, 2]
    exact = found["curve"].sel(effect_method=["Partial dependence", "ALE"])
    np.testing.assert_allclose(exact, np.tile(truth, (2, 1)), atol=1e-12)
    np.testing.assert_allclose(found["curve_se"][0], profile["curve_se"][0])
    np.testing.assert_allclose(
        found["curve_se"].sel(effect_method="ALE"),
        rs.std_error(effect)["curve_se"].values[0][[1, 2, 0]],
    )
    # The order is that of the first.
    turned = rs.compare_methods([effect, profile], "k")
    assert turned["level"].values.tolist() == ["w", "v", "u"]
    for name in ("curve", "curve_se", "spread"):
        np.testing.assert_allclose(
            turned[name].sel(effect_method="ALE")[[1, 2, 0]], found[name].sel(effect_method="ALE")
        )
    np.testing.assert_allclose(turned["weight_share"], share[[2, 0, 1]])
    panel = rs.plots.methods(found)
    assert [text.get_text() for text in panel.get_legend().get_texts()] == [
        "Partial dependence",
        "ALE",
        "M-plot",
        "± standard error",
    ]
    heights = [patch.get_height() for patch in panel.patches]
    assert heights == found["curve"].values.ravel().tolist()
    assert [text.get_text().split("\n")[0] for text in panel.get_xticklabels()] == ["v", "u", "w"]
    ends = [bar.lines[2][0].get_segments() for bar in panel.containers if hasattr(bar, "has_yerr")]
    np.testing.assert_allclose(
        [np.diff(one[:, 1]).item() / 2 for part in ends for one in part],
        found["curve_se"].values.ravel(),
    )


def test_levels_that_one_method_does_not_have():
    X = gapped(200, np.random.default_rng(3))
    model, more = answers, {"features": "k", "missing": "drop"}
    with pytest.warns(UserWarning, match="Levels without rows"):
        effect = rs.ale(model, X, order=["u", "v"], **more)
    profile = rs.pdp(model, X, features="k", missing="bin")
    found = rs.compare_methods([effect, profile], "k")
    assert found["level"].values.tolist() == ["u", "v", "missing"]
    assert found["curve"].isnull().sel(effect_method="ALE").values.tolist() == [False, False, True]
    assert found["curve"].sel(effect_method="Partial dependence").notnull().all()
    share = found["weight_share"].values
    means = (found["curve"] * share).sum("grid")
    np.testing.assert_allclose(means, 0, atol=1e-12)
    np.testing.assert_allclose(share, profile["weight_share"].values[0][[1, 0, 2]])
    assert len(rs.plots.methods(found).get_xticks()) == 3


def test_levels_and_numbers_do_not_go_together():
    X = pd.DataFrame(
        {"i": np.tile([0.0, 1, 2], 40), "b": np.random.default_rng(0).normal(size=120)}
    )

    def model(X):
        return np.asarray(X["i"], dtype=float) * X["b"].to_numpy()

    number = rs.pdp(model, X, features="i")
    level = rs.pdp(model, X.assign(i=X["i"].astype("category")), features="i")
    effect = rs.ale(model, X, features="i", categorical="i")
    for results in ([number, effect], [level, number], [effect, number]):
        with pytest.raises(ValueError, match="categories of feature 'i', or all numbers; got both"):
            rs.compare_methods(results, "i", names=["one", "other"])
    # Levels that are numbers have one name everywhere.
    both = rs.compare_methods([level, effect], "i")
    assert both["level"].values.tolist() == ["0", "1", "2"]
    assert both["curve"].notnull().all()
    assert rs.predict(level, [1.0], "i").item() == level["curve"].values[0, 1]


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"features": "q"}, KeyError, "features must be one of 'a', 'b'"),
        ({"features": []}, ValueError, "features must name at least one column; got none"),
        ({"features": ["a", 0]}, ValueError, "features must be distinct; got 'a' twice"),
        ({"grid": [0, 1]}, ValueError, "grid must map names to points where there are several"),
        ({"grid": {"q": [0, 1]}}, KeyError, "grid must be one of .*; got .q."),
        ({"grid": {"a": [1, 0]}}, ValueError, "grid of feature 'a' must increase strictly"),
        ({"grid": {"k": ["u", "z"]}}, ValueError, "'z' is not among the levels with rows"),
        ({"grid": {"k": ["u", "v"]}}, ValueError, "grid of feature 'k' .*; 'w' is left out"),
        ({"n_grid": 1}, ValueError, "n_grid must be at least 2; got 1"),
        ({"grid_kind": "even"}, ValueError, "grid_kind must be one of 'quantile', 'equal_width'"),
        ({"centering": "end"}, ValueError, "centering must be one of 'mean', 'start'"),
        ({"weights": [1.0]}, ValueError, r"weights must hold one number a row, shape \(200,\)"),
        ({"missing": "impute"}, ValueError, "missing must be one of 'raise', 'drop'"),
    ],
)
def test_bad_arguments(X, arguments, error, message):
    with pytest.raises(error, match=message):
        rs.pdp(f, X, **{"features": ["a", "k"], **arguments})


def test_bad_models(X):
    with pytest.raises(rs.ModelError, match="model raised KeyError on all 200 rows looked"):
        rs.pdp(lambda X: X["nothing"], X, features="a")
    with pytest.raises(ValueError, match="ICE curves of feature 'a' must be finite; got 200 NaN"):
        rs.pdp(lambda X: np.full(len(X), np.nan), X, features="a")
    with pytest.raises(rs.ModelError, match="model raised KeyError on all 200 rows"):
        rs.m_plot(lambda X: X["nothing"], X, features="a")
    with pytest.raises(ValueError, match="model must return finite numbers; got others in 200"):
        rs.m_plot(lambda X: np.full(len(X), np.inf), X, features="a")


def test_what_cannot_be_asked(X, found, curves):
    with pytest.raises(ValueError, match="centering must be 'none' with kind='plain'"):
        rs.ice(f, X, features="a", centering="mean")
    with pytest.raises(ValueError, match="kind must not be 'derivative' for categories .* 'k'"):
        rs.ice(f, X, features=["a", "k"], kind="derivative")
    with pytest.raises(TypeError, match="bins must be QuantileBins.*; got OptimalBins"):
        rs.m_plot(f, X, features="a", bins=rs.OptimalBins())
    phi = rs.shap_dependence(None, X, shap_values=X["a"].to_numpy(), features="a")
    with pytest.raises(ValueError, match=r"must hold curve_se.*of shap_dependence, does not"):
        rs.confint(phi.drop_vars("curve_se"))
    with pytest.raises(ValueError, match="local must hold the rows that the profile was made of"):
        rs.bootstrap(phi, phi.assign(shap_value=phi["shap_value"] ** 2))
    with pytest.raises(
        ValueError, match="local must hold shap_value, x, smoothing; this one, of pdp"
    ):
        rs.bootstrap(phi, found)
    with pytest.raises(ValueError, match="shap_values must have shape"):
        rs.shap_dependence(None, X, shap_values=np.ones((200, 3)), features="a")
    with pytest.raises(ValueError, match="features must be one where shap_values are of one"):
        rs.shap_dependence(None, X, shap_values=np.ones(200), features=["a", "b"])
    m_plot = rs.m_plot(f, X, features="a")
    with pytest.raises(ValueError, match="local must hold output_value.*; this one, of ice, does"):
        rs.bootstrap(curves, m_plot)
    other = rs.ice(lambda X: -f(X), X, features=["a", "k"], n_grid=8)
    with pytest.raises(ValueError, match="local must hold the curves that the profile is the mean"):
        rs.bootstrap(other, found)
    with pytest.raises(ValueError, match="local must have the grid of the profile"):
        rs.bootstrap(rs.ice(f, X, features=["a", "k"], n_grid=5), found)
    with pytest.raises(ValueError, match="local must hold ice, x; this one, of pdp, does not"):
        rs.bootstrap(found, found)
    with pytest.raises(ValueError, match="rebin and studentize must be False for profiles"):
        rs.bootstrap(curves, found, rebin=True)
    with pytest.raises(ValueError, match="groups need the ICE curves of a profile of pdp"):
        rs.std_error(found, groups=np.arange(200))
    with pytest.raises(ValueError, match="x must be levels of feature 'k', w, u, v; got q"):
        rs.predict(found, ["q"], "k")
    with pytest.raises(ValueError, match="comparison must be what compare_methods returned"):
        rs.plots.methods(found)


def test_without_the_library_shap(X, monkeypatch):
    real = builtins.__import__

    def without(name, *arguments, **keywords):
        if name == "shap":
            raise ImportError(name)
        return real(name, *arguments, **keywords)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match="shap_dependence needs the library shap"):
        rs.shap_dependence(lambda rows: rows["a"], X[["a", "b"]])


# --- coverage -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_intervals_and_bands_hold_the_population_curve():
    """y = |x0| + (1 + x0) x1, x0 standard normal, E x1 = 1: the curve is |z| + z - sqrt(2 / pi)."""
    grid = np.array([-6, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 6])
    truth = np.abs(grid) + grid - np.sqrt(2 / np.pi)
    runs = 300
    inside, all_of_it = np.zeros((runs, len(grid))), np.zeros(runs)
    for run in range(runs):
        rng = np.random.default_rng([11, run])
        X = np.column_stack([rng.normal(size=150), rng.normal(1, 1, 150)])
        found = rs.pdp(
            lambda X: np.abs(X[:, 0]) + (1 + X[:, 0]) * X[:, 1], X, features=0, grid=grid
        )
        found = rs.confband(rs.confint(found), n_draws=2000, rng=0)
        low, high = found["curve_ci"].values[0].T
        inside[run] = (low <= truth) & (truth <= high)
        low, high = found["curve_band"].values[0].T
        all_of_it[run] = ((low <= truth) & (truth <= high)).all()
    # Monte-Carlo error of a share of 0.95 in 300 runs: 0.0126; 3.2 of them.
    assert np.abs(inside.mean(axis=0) - 0.95).max() < 0.04
    assert abs(all_of_it.mean() - 0.95) < 0.04


def test_heterogeneity_of_m_plots_leaves_out_bins_of_one_row():
    """code.md B17: it was NaN with them; `rhale` leaves them out."""
    x = np.concatenate([np.linspace(0, 0.9, 10), [2.5]])
    y = np.concatenate([np.tile([1.0, -1.0], 5), [7.0]])
    edges = rs.GivenBins([0, 0.45, 1, 2, 3])
    found = rs.m_plot(lambda X: X[:, 1], np.column_stack([x, y]), features=0, bins=edges)
    share = np.array([5, 5]) / 10
    spread = np.array([y[:5].std(ddof=1), y[5:10].std(ddof=1)])
    expected = np.sqrt(share @ spread**2)
    assert float(found["heterogeneity_output"][0]) == pytest.approx(expected, rel=1e-12)
    draws = rs.bootstrap(found, n_resamples=40, rng=0)["heterogeneity_output"]
    there = rs.bootstrap(found, n_resamples=40, rng=0)["curve_std"].notnull().any("grid")
    np.testing.assert_array_equal(draws.notnull(), there)
    alone = rs.m_plot(
        lambda X: X[:, 1], np.array([[0.0, 1], [1, 2]]), features=0, bins=rs.EqualWidthBins(2)
    )
    assert np.isnan(alone["heterogeneity_output"]).all()


@pytest.mark.thorough
def test_bands_of_m_plots_with_bins_without_rows(rng):
    """reliability.md 12: "df <= 0"."""
    x = np.r_[rng.uniform(0, 1, 50), rng.uniform(2, 4, 50)]
    X = np.column_stack([x, rng.normal(size=100)])
    m_plot = rs.m_plot(lambda X: X[:, 0] + X[:, 1], X, features=0, bins=rs.GivenBins(range(5)),
                       centering="none")  # fmt: skip
    np.testing.assert_array_equal(np.isnan(m_plot["curve"][0]), [False, True, False, False])
    band = rs.confband(m_plot, n_draws=500, rng=0)["curve_band"][0]
    interval = rs.confint(m_plot)["curve_ci"][0]
    known = m_plot["curve"][0].notnull().values
    assert (band[known, 0] < interval[known, 0]).all()
    assert (band[known, 1] > interval[known, 1]).all()
    assert band[~known].isnull().all()
    other = rs.m_plot(lambda X: X[:, 0], X, features=0, bins=rs.GivenBins(range(5)))
    for paired in (None, (m_plot, m_plot)):
        assert rs.compare(m_plot, m_plot, paired=paired, n_draws=500, rng=0)["p_value"].item() == 1
    known = other["curve"].notnull()
    assert (
        rs.confband(other, n_draws=500, rng=0)["curve_band"].notnull().all("ci_bound").equals(known)
    )
    # A bin of one row has a curve and no standard error; nothing at all is known of two such.
    few = rs.m_plot(lambda X: X[:, 0], np.array([[0.5], [2.5]]), bins=rs.GivenBins(range(4)))
    assert rs.confband(few, n_draws=500, rng=0)["curve_band"].isnull().all()


def test_replicates_of_a_constant_feature(rng):
    """reliability.md 14: "cannot reshape array of size 0"."""
    X = np.column_stack([rng.normal(size=50), np.full(50, 3.0)])

    def model(X):
        return X[:, 0] ** 2 + X[:, 1]

    ice, pdp, m_plot = (make(model, X) for make in (rs.ice, rs.pdp, rs.m_plot))
    cases = ((ice, ice), (ice, pdp), (m_plot, m_plot))
    for rows, profile in cases:
        boot = rs.bootstrap(rows, profile, n_resamples=40, rng=0)
        for method in ("percentile", "basic", "bca"):
            found = rs.confint(profile, boot, method=method)["curve_ci"]
            assert found.isel(feature=1).isnull().all()
            # Of bins of one row or two some replicates have none.
            known = found.isel(feature=0).notnull()
            assert known.any() if rows is m_plot else known.all()
    nothing = rs.compare(m_plot, m_plot, paired=(m_plot, m_plot), n_draws=500, rng=0)
    assert np.isnan(nothing["p_value"].sel(feature="x1"))


def test_paired_profiles_with_a_constant_feature():
    """Its pairs had no grid to be compared on."""
    X = np.random.default_rng(0).uniform(-1, 1, (40, 3)) * [1, 1, 0]
    a, b = (
        rs.ice(lambda X, c=c: c * X[:, 0] * X[:, 1], X, n_grid=4, progress=False) for c in (1, 2)
    )
    found = rs.compare(a, b, paired=(a, b), rng=0)
    assert found["reason"].values.tolist() == ["", "", "the feature is constant"]


def test_groups_of_rows_on_a_given_grid():
    X = pd.DataFrame({"x": np.arange(12.0), "g": list("uv") * 6})
    profile = rs.pdp(lambda X: X["x"] * 2.0, X, "x", by="g", grid={"x": [2, 4]}, centering="start")
    np.testing.assert_allclose(profile["grid_value"].isel(region=0).values[0], [2, 4])
    np.testing.assert_allclose(profile["curve"].isel(region=1).values[0], [0, 4])
