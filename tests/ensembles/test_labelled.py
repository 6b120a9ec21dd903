"""Members on a common grid: levels by name, profiles, ranges, files of earlier versions."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import rhale_stats as rs
from rhale_stats.ensembles.labelled import MemberGrid, check_member, common_grid, labelled, on_grid

RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {"k": pd.Categorical(RNG.choice(list("uvw"), 90)), "a": RNG.normal(size=90), "c": 1.0}
)
LEVEL_VALUE = {"u": 0.0, "v": 1.0, "w": 5.0}


def model(X):
    return X["k"].astype(object).map(LEVEL_VALUE).to_numpy(float) * (1 + X["a"]) + X["a"]


def effect(order=("u", "v", "w"), rows=slice(None)):
    table = TABLE.iloc[rows]
    return rs.ale(model, table, order=list(order), features=["k", "a", "c"])


@pytest.mark.thorough
def test_levels_go_by_name_and_steps_by_their_two_levels():
    one, other = effect(), effect(("w", "u", "v"))
    grid = common_grid([one, other], 7, "effects")
    assert grid.level[0].tolist()[:3] == ["u", "v", "w"]
    assert not grid.level[1:].any()
    assert_array_equal(grid.value[0], [0, 1, 2, *[np.nan] * 4])
    members = [on_grid(each, grid) for each in (one, other)]
    for each, own, at in zip(members, (one, other), ([0, 1, 2], [1, 2, 0]), strict=True):
        assert_allclose(each["curve"][0, :3], own["curve"].values[0, at])
        expected = np.sqrt(np.diagonal(own["curve_cov"].values[0])[at])
        assert_allclose(each["curve_se_rows"][0, :3], expected)
        assert np.isnan(each["curve"][0, 3:]).all()
    # u to v is a step of both; v to w is none of the order w, u, v.
    assert_allclose(members[0]["effect"][0, :2], one["effect"].values[0, :2])
    assert_allclose(members[1]["effect"][0, :2], [other["effect"].values[0, 1], np.nan])
    assert np.isnan(members[0]["effect"][0, 2:]).all()
    # Sums over steps are of other steps.
    first, second = one.rhale.in_bins(), other.rhale.in_bins()
    for name in ("average_effect", "heterogeneity_index", "heterogeneity_output"):
        assert_allclose(members[0][name][:2], first[name].values[:2])
        assert_allclose(members[1][name][:2], [np.nan, second[name].values[1]])
    assert all(np.isfinite(each["importance"][0]) for each in members)
    assert_allclose(members[0]["heterogeneity"][0, :2], one["heterogeneity"].values[0, :2])


@pytest.mark.thorough
def test_levels_and_ranges_are_those_of_all_members():
    first = TABLE["k"] != "w"
    few = TABLE[first].assign(k=TABLE.loc[first, "k"].cat.remove_unused_categories())
    some = rs.ale(model, few, features=["k", "a", "c"], order=["u", "v"])
    whole = effect(rows=np.argsort(TABLE["a"])[:60])
    grid = common_grid([some, whole], 5, "effects")
    assert [name for name in grid.level[0] if name] == ["u", "v", "w"]
    ends = [each["edge_value"].sel(feature="a") for each in (some, whole)]
    assert grid.value[1][0] == min(each.min() for each in ends)
    assert grid.value[1][-1] == max(each.max() for each in ends)
    # A constant feature has no grid.
    assert np.isnan(grid.value[2]).all()
    found = on_grid(some, grid)
    assert_array_equal(np.isnan(found["curve"][0]), [False, False, True, True, True])
    assert np.isnan(on_grid(whole, grid)["curve"][1, -1])


def test_profiles_on_one_grid_keep_it_and_others_are_interpolated():
    table = TABLE[["k", "a"]]
    one, same = (rs.pdp(model, table.iloc[rows], n_grid=4) for rows in (slice(None), slice(None)))
    grid = common_grid([one, same], 9, "profiles")
    assert_array_equal(grid.value, one["grid_value"])
    assert_array_equal(grid.level, one["level"])
    found = on_grid(one, grid)
    assert set(found) == {"curve", "curve_se_rows", "importance", "heterogeneity_output"}
    for name, own in (("curve", "curve"), ("curve_se_rows", "curve_se")):
        assert_allclose(found[name], one[own])
    other = rs.pdp(model, table.iloc[:50], n_grid=6)
    grid = common_grid([one, other], 9, "profiles")
    assert grid.value.shape == (2, 9)
    expected = rs.predict(other, grid.value[1], "a")
    assert_allclose(on_grid(other, grid)["curve"][1], expected)
    assert np.isnan(expected[-1]) or grid.value[1][-1] == other["grid_value"].sel(feature="a").max()


def test_a_feature_has_levels_in_all_members_or_in_none():
    numbers = TABLE.assign(k=np.arange(90.0))
    axis = rs.ale(lambda X: X["k"] + X["a"], numbers, features=["k", "a", "c"])
    with pytest.raises(ValueError, match="'k' in one way: it has levels in some effects and an ax"):
        common_grid([effect(), axis], 5, "models")


@pytest.mark.parametrize("other", [3, pd.DataFrame(), "text"])
def test_members_are_effects_or_profiles(other):
    with pytest.raises(TypeError, match="what fit returns must be the Dataset that .*; got"):
        check_member(other, "what fit returns")
    with pytest.raises(ValueError, match="got a surface"):
        check_member(rs.ale2(model, TABLE, ("k", "a")), "what fit returns")


def test_members_that_lack_a_level_have_no_value_and_no_step_there():
    """The level before the first of its own, between two, and at the end."""
    names = ["t", "u", "v", "w"]
    grid = MemberGrid(("k",), np.arange(4.0)[None], np.array([names]))
    for own, steps in ((["u", "v", "w"], [1, 2]), (["t", "u", "w"], [0]), (["t", "u"], [0])):
        some = TABLE[TABLE["k"].isin(["u", "v", "w"][: len(own)])]
        rename = dict(zip("uvw", own, strict=False))
        table = some.assign(k=pd.Categorical(some["k"].astype(object).map(rename), own))
        back = {new: old for old, new in rename.items()}
        f = lambda X, b=back: model(X.assign(k=X["k"].astype(object).map(b)))  # noqa: E731
        one = rs.std_error(rs.ale(f, table, order=own, features="k"))
        found = on_grid(one, grid)
        at = [names.index(name) for name in own]
        curve, effect = np.full((2, 4), np.nan)
        curve[at] = one["curve"].values[0]
        for step in steps:
            effect[step] = one["effect"].values[0, own.index(names[step])]
        assert_array_equal(found["curve"], [curve])
        assert_array_equal(found["effect"], [effect])
        assert_allclose(found["curve_se_rows"][0, at], one["curve_se"].values[0])
        known = ~np.isnan(effect)
        assert_array_equal(np.isfinite(found["effect_se_rows"][0]), known)
        assert_array_equal(np.isfinite(found["heterogeneity"][0]), known)
        assert np.isnan(found["average_effect"][0])
        assert np.isnan(found["average_effect_se_rows"][0])
    whole = rs.std_error(effect_of(TABLE))
    same = on_grid(whole, common_grid([whole], 5, "effects"))
    assert_array_equal(same["average_effect_se_rows"][0], whole["average_effect_se"][0])


def effect_of(table):
    return rs.ale(model, table, order=list("uvw"), features=["k", "a"])


def test_profiles_that_lack_a_level_have_no_value_there():
    table = TABLE[["k", "a"]]
    few = table[table["k"] != "v"]
    few = few.assign(k=few["k"].cat.remove_unused_categories())
    one, other = rs.pdp(model, table, features="k"), rs.pdp(model, few, features="k")
    grid = common_grid([one, other], 5, "profiles")
    found = on_grid(other, grid)
    at = [grid.levels(0).index(name) for name in ("u", "w")]
    own = [[str(name) for name in other["level"].values[0]].index(name) for name in ("u", "w")]
    assert_allclose(found["curve"][0, at], other["curve"].values[0, own])
    assert np.isnan(found["curve"][0]).sum() == 1
    # Of numbers, the widest range of all.
    inner = table[table["a"].between(-1, 1)]
    pair = [rs.pdp(model, rows, features="a", n_grid=4) for rows in (inner, table)]
    for order in (pair, pair[::-1]):
        ends = common_grid(order, 7, "profiles").value[0]
        assert_allclose(ends, np.linspace(table["a"].min(), table["a"].max(), 7))


def test_members_that_failed_are_unknown_and_the_first_reason_is_kept():
    whole = effect()
    grid = common_grid([whole], 3, "effects")
    sound = on_grid(whole, grid)
    members = [sound, "ValueError: first", "KeyError: second", sound]
    found = labelled(members, grid, whole, sound, 2, {"source": "refits"})
    assert found.sizes["chain"] == found.sizes["draw"] == 2
    assert_array_equal(found["failed"], [[0, 1], [1, 0]])
    assert found["failed"].attrs == {"long_name": "the fit raised", "units": "1"}
    assert (found.attrs["n_failed"], found.attrs["first_failure"]) == (2, "ValueError: first")
    for at, own in (((0, 0), True), ((0, 1), False), ((1, 0), False), ((1, 1), True)):
        values = found["curve"].values[at]
        assert_array_equal(values, sound["curve"] if own else np.full(values.shape, np.nan))
    assert_array_equal(found["curve_estimate"], sound["curve"])
    assert "draw" not in found["curve_estimate"].dims
    assert found["average_effect"].dims == ("chain", "draw", "feature")
    assert found.attrs["effect_method"] == "ale"
    assert not {"row_fingerprint", "model_calls", "seed"} & set(found.attrs)
    none = labelled([sound], grid, whole, {}, 1, {})
    assert (none.attrs["n_failed"], none.attrs["first_failure"]) == (0, "")
    name = found["curve"].attrs["long_name"]
    units = found["curve"].attrs["units"]
    said = {"long_name": f"{name}, estimate", "units": units}
    assert found["curve_estimate"].attrs == said
    said = {"long_name": f"standard error by the rows of the {name}", "units": units}
    assert found["curve_se_rows"].attrs == {**said, "source": "rows"}


def test_means_and_other_statistics_are_members():
    local = rs.local_effects(lambda X: X[:, 0] ** 2, RNG.normal(size=(60, 1)))
    median = rs.rhale(local).assign_attrs(statistic="median")
    assert check_member(median, "what fit returns") is not None
