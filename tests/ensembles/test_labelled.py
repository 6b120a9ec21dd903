"""Members on a common grid: levels by name, profiles, ranges, files of earlier versions."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import rhale_stats as rs
from rhale_stats.ensembles.labelled import check_member, common_grid, on_grid
from rhale_stats.schema.kinds import ENSEMBLE, kind_of

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
    for name in ("average_effect", "heterogeneity_index", "heterogeneity_output"):
        assert_allclose(members[0][name][:2], one[name].values[:2])
        assert_allclose(members[1][name][:2], [np.nan, other[name].values[1]])
    assert all(np.isfinite(each["importance"][0]) for each in members)
    assert_allclose(members[0]["heterogeneity"][0, :2], one["heterogeneity"].values[0, :2])


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


def test_refits_in_files_of_earlier_versions_are_of_this_kind():
    X = np.random.default_rng(0).normal(size=(40, 1))
    boot = rs.bootstrap_refit(
        lambda rows: rs.ale(lambda X: X[:, 0], rows), X, n_resamples=4, n_jobs=1, rng=0
    )
    assert kind_of(boot) is ENSEMBLE
    for source in ("refit", "refit, groups of rows"):
        old = boot.assign_attrs(method="bootstrap", source=source)
        assert kind_of(old) is ENSEMBLE
    assert kind_of(boot.assign_attrs(method="bootstrap", source="rows")) is not ENSEMBLE
