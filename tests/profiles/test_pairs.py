"""Two-way partial dependence: pairs of features."""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestRegressor
from sklearn.inspection import partial_dependence
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import rhale_stats as rs

N = 250


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(2)
    table = pd.DataFrame(rng.uniform(-1, 1, (N, 3)), columns=list("abc"))
    return table.assign(k=rng.choice(["u", "v", "w"], N), m=rng.choice(["p", "q"], N))


def model(rows):
    high = (rows["k"] == "u").to_numpy() * (rows["m"] == "q").to_numpy()
    return (rows["a"] * rows["b"] + rows["c"] * rows["a"]).to_numpy() + high * rows["b"].to_numpy()


def points(profile, name="a:b"):
    row = profile.sel(feature=name)
    return [np.unique(row[f"grid_value_{side}"].dropna("grid")) for side in "ab"]


@pytest.mark.thorough
@pytest.mark.parametrize("pair", [("a", "b"), ("a", "k"), ("k", "m")])
def test_averages_are_those_of_scikit_learn(X, pair):
    encoder = make_column_transformer((OneHotEncoder(), ["k", "m"]), remainder="passthrough")
    fitted = make_pipeline(encoder, RandomForestRegressor(10, random_state=0)).fit(X, model(X))
    profile = rs.pdp(fitted, X, [pair], n_grid=6, centering="none")
    grid = {
        name: np.unique(profile[f"level_{side}"].values)
        if name in "km"
        else points(profile, ":".join(pair))["ab".index(side)]
        for name, side in zip(pair, "ab", strict=True)
    }
    theirs = partial_dependence(
        fitted, X, list(pair), custom_values=grid, kind="average", method="brute",
        categorical_features=["k", "m"],
    )["average"]  # fmt: skip
    np.testing.assert_allclose(profile["curve"].values.ravel(), theirs.ravel(), rtol=1e-10)


def test_averages_and_their_errors_by_hand(X):
    """Means of the outputs at all pairs, with the standard error of a mean over the rows."""
    profile = rs.pdp(model, X, [("a", "b")], n_grid=4, centering="none")
    outputs = np.array(
        [
            model(X.assign(a=value_a, b=value_b))
            for value_a in points(profile)[0]
            for value_b in points(profile)[1]
        ]
    )
    np.testing.assert_allclose(profile["curve"].values[0], outputs.mean(axis=1), atol=1e-12)
    np.testing.assert_allclose(profile["curve_cov"].values[0], np.cov(outputs) / N, atol=1e-12)
    np.testing.assert_allclose(
        profile["curve_se"].values[0], outputs.std(axis=1, ddof=1) / np.sqrt(N)
    )


def test_the_sources_are_those_of_one_feature(X):
    """The pair with a feature that does nothing has the curve and the errors of the other."""
    alone = X.assign(z=np.tile([0.0, 1.0], N // 2))
    pair = rs.pdp(model, alone, [("a", "z")], n_grid=5, centering="start")
    single = rs.pdp(model, alone, ["a"], grid=points(pair, "a:z")[0], centering="start")
    shape = (5, 2)
    for name in ("curve", "curve_se", "curve_std"):
        values = pair[name].values.reshape(shape)
        np.testing.assert_allclose(
            values, single[name].values.reshape(5, 1).repeat(2, 1), atol=1e-9
        )
    assert pair["curve_se"].attrs["source"] == single["curve_se"].attrs["source"] == "rows"


@pytest.mark.thorough
def test_centred_at_the_mean_over_the_nearest_pairs(X):
    profile = rs.pdp(model, X, [("a", "b")], n_grid=5)
    plain = rs.pdp(model, X, [("a", "b")], n_grid=5, centering="none")
    near = [
        np.abs(X[name].to_numpy()[:, None] - values).argmin(axis=1)
        for name, values in zip("ab", points(profile), strict=True)
    ]
    share = np.bincount(near[0] * 5 + near[1], minlength=25) / N
    np.testing.assert_allclose(profile["weight_share"].values[0], share)
    centred = plain["curve"].values[0] - share @ plain["curve"].values[0]
    np.testing.assert_allclose(profile["curve"].values[0], centred, atol=1e-12)
    # The error of the constant is in those of the curve, as the bootstrap says.
    boot = rs.bootstrap(profile, rs.ice(model, X, [("a", "b")], n_grid=5), n_resamples=400, rng=0)
    ratio = boot["curve"].std(("chain", "draw")) / profile["curve_se"]
    assert 0.9 < float(ratio.mean()) < 1.1


def test_parameters_of_a_model_by_the_delta_method(X):
    y = model(X) + np.random.default_rng(0).normal(0, 0.3, N)
    fitted = smf.ols("y ~ a * b + c", X.assign(y=y)).fit()
    table = X[["a", "b", "c"]]
    profile = rs.pdp(fitted, table, ["c", ("a", "b")], n_grid=3, centering="none")
    found = rs.std_error(profile, model=fitted, X=table, uncertainty="parameters")
    a, b = np.meshgrid(*points(profile), indexing="ij")
    design = np.column_stack(
        [np.ones(9), a.ravel(), b.ravel(), (a * b).ravel(), np.full(9, X["c"].mean())]
    )
    names = ["Intercept", "a", "b", "a:b", "c"]
    covariance = fitted.cov_params().loc[names, names].to_numpy()
    expected = np.sqrt(np.einsum("ij,jk,ik->i", design, covariance, design))
    # The names of columns of the design are in the order of the formula.
    np.testing.assert_allclose(found["curve_se"].sel(feature="a:b"), expected, rtol=1e-5)


def test_beside_single_features_groups_and_outputs(X):
    profile = rs.pdp(model, X, ["c", ("a", "k")], n_grid=7)
    assert profile["feature"].values.tolist() == ["c", "a:k"]
    single = rs.pdp(model, X, ["c"], n_grid=7)
    np.testing.assert_allclose(profile["curve"].sel(feature="c")[:7], single["curve"].values[0])
    by = rs.pdp(model, X, [("a", "b")], by="k", n_grid=4)
    rows = X["k"] == "v"
    grid = {"a:b": points(by.sel(region="v"))}
    by_hand = rs.pdp(model, X[rows], [("a", "b")], grid=grid)
    np.testing.assert_allclose(by["curve"].sel(region="v"), by_hand["curve"])
    difference = rs.compare(by.sel(region="u"), by.sel(region="v"), rng=0)
    assert difference["p_value"].item() < 0.01

    def two(rows):
        return np.column_stack([model(rows), 2 * model(rows)])

    both = rs.pdp(two, X, [("a", "b")], n_grid=4)
    np.testing.assert_allclose(both["curve"][1], 2 * both["curve"][0])


def test_weights_are_rows_written_out(X):
    counts = np.random.default_rng(0).integers(0, 4, N)
    weighted = rs.pdp(model, X, [("a", "b")], weights=counts, weight_kind="frequency", n_grid=4)
    grid = {"a:b": points(weighted)}
    written = rs.pdp(model, X.loc[X.index.repeat(counts)], [("a", "b")], grid=grid)
    for name in ("curve", "curve_se", "curve_std", "weight_share"):
        np.testing.assert_allclose(weighted[name], written[name], rtol=1e-9, atol=1e-12)


def test_tables_text_and_pictures(X, tmp_path):
    profile = rs.confint(rs.pdp(model, X, ["c", ("a", "k")], n_grid=5))
    table = rs.tidy(profile).query("term == 'a:k'")
    assert table["x_b"].tolist() == ["u", "v", "w"] * 5
    assert len(table["level"].unique()) == 15
    assert (table["conf_low"] < table["estimate"]).all()
    assert "k = w" in str(rs.summary(profile, "a:k"))
    (pair,) = [panel for panel in rs.plot(profile) if panel.get_xlabel() == "a"]
    assert pair.get_ylabel() == "k"
    colours = rs.plot(profile, "a:k").collections[0].get_array()
    wanted = profile["curve"].sel(feature="a:k").values.reshape(5, 3)
    assert np.isclose(colours.max(), wanted.max())
    assert np.isclose(colours.min(), wanted.min())
    plt.close("all")
    profile.to_netcdf(tmp_path / "pairs.nc")


def test_what_is_no_pair_is_refused(X):
    with pytest.raises(TypeError, match="pairs of them"):
        rs.pdp(model, X, [("a", "b", "c")])
    with pytest.raises(KeyError, match="nothing"):
        rs.pdp(model, X, [("a", "nothing")])
    with pytest.raises(ValueError, match="must be distinct"):
        rs.pdp(model, X, [("a", "a")])
    with pytest.raises(ValueError, match="features of a pair must vary"):
        rs.pdp(model, X.assign(c=1.0), [("a", "c")])
    with pytest.raises(ValueError, match="for pairs of features, which have no axis"):
        rs.pdp(model, X, [("a", "b")], centering="integral")
    with pytest.raises(ValueError, match="at most 2,500 pairs"):
        rs.pdp(
            model, X, [("a", "b")], grid={"a": np.linspace(-1, 1, 60), "b": np.linspace(-1, 1, 60)}
        )
    with pytest.raises(ValueError, match="is a pair"):
        rs.predict(rs.pdp(model, X, [("a", "b")], n_grid=3), [0.0], "a:b")
    with pytest.raises(TypeError, match="names or numbers of columns"):
        rs.m_plot(model, X, [("a", "b")])


def test_rows_without_a_value(X):
    table = X.assign(b=X["b"].where(X["b"] < 0.8))
    gone = table["b"].isna().sum()

    def answers(rows):
        return model(rows.fillna({"b": 0.0}))

    profile = rs.pdp(answers, table, [("a", "b")], n_grid=4, missing="drop")
    assert profile["n_obs"].item() == N - gone
    assert profile["n_missing"].item() == gone
    with pytest.raises(ValueError, match="missing must be 'drop' for the pair"):
        rs.pdp(answers, table, [("a", "b")], missing="bin")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        levels = X.assign(k=X["k"].where(X["k"] != "w"))
        binned = rs.pdp(model, levels, [("a", "k")], n_grid=4, missing="bin")
    assert "missing" in binned["level_b"].values
