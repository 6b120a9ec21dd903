"""Estimates of groups of rows side by side, by ``by=``."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
import xarray as xr

import rhale_stats as rs

N = 300


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(5)
    table = pd.DataFrame(rng.uniform(-1, 1, (N, 2)), columns=["a", "b"])
    return table.assign(k=rng.choice(["u", "v"], N, p=[0.7, 0.3])).set_index(np.arange(N)[::-1])


def model(rows):
    return (np.where(rows["k"] == "u", 2.0, -1.0) * rows["a"] + rows["a"] * rows["b"]).to_numpy()


def check_group(found, label, expected):
    """Of one group all numbers are those of the rows of the group alone."""
    one = found.sel(region=label)
    for name in expected.data_vars:
        own = {dim: slice(size) for dim, size in expected[name].sizes.items() if dim != "feature"}
        own = own if "feature" not in expected[name].dims else {**own, "feature": found.feature}
        wanted = expected[name].sel(feature=found.feature) if "feature" in own else expected[name]
        own.pop("feature", None)
        values = one[name].isel({dim: part for dim, part in own.items() if dim in one[name].dims})
        np.testing.assert_allclose(values, wanted.transpose(*values.dims), err_msg=name)


@pytest.mark.thorough
@pytest.mark.parametrize("function", [rs.rhale, rs.ale])
@pytest.mark.filterwarnings("ignore:Left out")
def test_of_every_group_the_numbers_are_those_of_its_rows(X, function):
    weights = pd.Series(np.random.default_rng(0).uniform(1, 2, N), index=X.index)
    effect = function(model, X, by="k", weights=weights)
    assert effect["region"].values.tolist() == ["u", "v"]
    assert effect["region_rule"].values.tolist() == ["k = u", "k = v"]
    assert effect["feature"].values.tolist() == ["a", "b"]
    for label in "uv":
        rows = X["k"] == label
        check_group(effect, label, function(model, X[rows], weights=weights[rows]))


@pytest.mark.thorough
def test_partial_dependence_of_groups_has_one_grid(X):
    profile = rs.pdp(model, X, by="k", n_grid=7)
    grid = rs.pdp(model, X, n_grid=7)["grid_value"].sel(feature=["a", "b"]).values
    points = dict(zip("ab", grid, strict=True))
    for label in "uv":
        by_hand = rs.pdp(model, X[X["k"] == label], ["a", "b"], grid=points)
        check_group(profile, label, by_hand)
    # The closed form: the slope of the group, and no interaction on average but by chance.
    slope = np.gradient(profile["curve"].sel(feature="a", region="u"), points["a"])
    np.testing.assert_allclose(slope, 2 + X["b"][X["k"] == "u"].mean())


@pytest.mark.thorough
@pytest.mark.parametrize("function", [rs.rhale, rs.ale, rs.pdp])
def test_their_difference_is_that_of_two_results(X, function):
    effect = function(model, X, ["a"], by=X["k"])
    difference = rs.compare(effect, rng=0)
    other = rs.compare(effect.sel(region="u"), effect.sel(region="v"), rng=0)
    xr.testing.assert_equal(difference.reset_coords(drop=True), other.reset_coords(drop=True))
    assert difference["p_value"].item() < 0.001
    assert difference.attrs["n_rows"] == (X["k"] == "u").sum()
    assert difference.attrs["n_rows_b"] == (X["k"] == "v").sum()


def test_tables_text_and_pictures(X):
    for effect in (rs.ale(model, X, by="k"), rs.pdp(model, X, by="k")):
        table = rs.tidy(effect)
        assert set(table["rule"]) == {"k = u", "k = v"}
        assert "where k = v" in str(rs.summary(effect))
        panels = rs.plot(effect)
        assert [panel.get_title() for panel in panels] == ["a", "b"]
        texts = [text.get_text() for text in panels[0].figure.legends[0].get_texts()]
        assert texts[:2] == ["k = u", "k = v"]
        assert all(text.startswith("95 % interval") for text in texts[2:])
        assert len(rs.plot(effect, "a")) == 1
        plt.close("all")


def test_local_effects_know_the_groups_of_their_rows(X):
    local = rs.local_effects(model, X[["a", "b", "k"]], ["a", "b"])
    effect = rs.rhale(local, by=X["k"])
    inside = local.isel(obs=np.flatnonzero(X["k"] == "v"))
    check_group(effect.drop_vars("region_of_row"), "v", rs.rhale(inside))
    boot = rs.bootstrap(local, effect, n_resamples=9, rng=0)
    by_hand = rs.bootstrap(inside, rs.rhale(inside), n_resamples=9, rng=0)
    np.testing.assert_allclose(boot["effect"].sel(region="v"), by_hand["effect"])
    halves = rs.rhale(local, by="b")
    assert (halves["n_obs"].isel(bin=0) > 0).all()
    assert halves["region"].values.tolist()[0].startswith("≤ ")


@pytest.mark.thorough
def test_groups_of_dependent_rows_are_divided_too(X):
    groups = np.arange(N) // 3
    effect = rs.ale(model, X, ["a"], by="k", bins=4, groups=groups)
    rows = (X["k"] == "u").to_numpy()
    by_hand = rs.ale(model, X[rows], ["a"], bins=4, groups=groups[rows])
    np.testing.assert_allclose(effect["curve_se"].sel(region="u"), by_hand["curve_se"])


@pytest.mark.thorough
def test_several_outputs_of_groups(X):
    def both(rows):
        return np.column_stack([model(rows), 2 * model(rows)])

    effect = rs.ale(both, X, ["a"], by="k", bins=3)
    assert effect["effect"].dims[:2] == ("output", "region")
    one = rs.ale(model, X, ["a"], by="k", bins=3)
    np.testing.assert_allclose(effect["effect"].isel(output=1), 2 * one["effect"])


@pytest.mark.parametrize(
    ("by", "error", "words"),
    [
        ("nothing", KeyError, "nothing"),
        (np.zeros(3), ValueError, "by must"),
        (np.zeros(N), ValueError, "by must have 2 to 10 levels.*got 1"),
        ([f"level {number % 20}" for number in range(N)], ValueError, "got 20"),
    ],
)
def test_what_makes_no_groups_is_refused(X, by, error, words):
    with pytest.raises(error, match=words):
        rs.ale(model, X, "a", by=by)


def test_two_groups_are_needed_for_a_difference(X):
    effect = rs.ale(model, X, "a", by=np.arange(N) % 3)
    with pytest.raises(ValueError, match="got one of 3 groups"):
        rs.compare(effect)
    with pytest.raises(ValueError, match="got no groups"):
        rs.compare(rs.ale(model, X, "a"))


def test_local_effects_that_are_not_whole_are_refused(X):
    local = rs.local_effects(model, X, ["a", "b"])
    del local.attrs["answer_offset"]
    with pytest.raises(ValueError, match="local must be whole.*has no attribute 'answer_offset'"):
        rs.rhale(local)


def test_rows_without_a_group_are_left_out(X):
    by = X["k"].where(X["a"] < 0.9)
    with pytest.warns(UserWarning, match="in no group"):
        effect = rs.pdp(model, X, "b", by=by)
    assert effect["n_obs"].sum() == by.notna().sum()


@pytest.mark.thorough
@pytest.mark.parametrize("of_table", [True, False])
def test_groups_of_categories_are_in_their_order(of_table):
    rng = np.random.default_rng(3)
    sizes = pd.Categorical(rng.choice(["low", "mid", "high"], 200), ["low", "mid", "high", "top"])
    X = pd.DataFrame({"a": rng.uniform(size=200), "size": sizes})
    y = 2 * X["a"] + (X["size"] == "mid") + rng.normal(size=200)
    by = "size" if of_table else X["size"]
    curves = rs.ale(lambda X: X["a"] ** 2, X, "a", by=by)
    assert curves["region"].values.tolist() == ["low", "mid", "high"]
    fit = smf.ols("y ~ a", X.assign(y=y)).fit()
    found = rs.averages(fit, X, "a", by=by)
    assert found["by"].values.tolist() == ["low", "mid", "high"]
    means = pd.Series(fit.predict(X)).groupby(sizes, observed=True).mean()
    np.testing.assert_allclose(found["average"].sel(term="prediction"), means)
