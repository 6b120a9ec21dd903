"""Functions of effects by region: each region is an effect of its own rows, nothing more."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from numpy.testing import assert_allclose, assert_array_equal

import rhale_stats as rs
from rhale_stats.schema.dimensions import ROWS
from rhale_stats.schema.padding import stack
from tests.helpers import in_turn


@pytest.fixture(scope="module")
def local():
    """The effect of x0 rises where x2 > 0 and falls elsewhere; x1 has none."""
    rng = np.random.default_rng(4)
    X = rng.uniform(-1, 1, (900, 3))
    g = rng.normal(size=X.shape)
    g[:, 0] += np.where(X[:, 2] > 0, 3, -3) * (1 + X[:, 0])
    return rs.local_effects(None, X, jacobian=g)


@pytest.fixture(scope="module")
def tree(local):
    return rs.regions(local, "x0", max_depth=1)


@pytest.fixture(scope="module")
def effect(local, tree):
    return rs.std_error(rs.regional_rhale(local, tree))


def alone(local, tree, number):
    """The effect in one region, from nothing but its rows."""
    rows = np.flatnonzero(tree[ROWS].values == number)
    own = local.isel(obs=rows, feature=[0])
    return own, rs.std_error(rs.rhale(own, bins=rs.OptimalBins()))


def assert_same(regional, number, single):
    """What is known of one region, beyond whose bins there is padding."""
    part = regional.isel(region=number)
    for name in single.data_vars:
        values = part[name].values[tuple(slice(n) for n in single[name].shape)]
        if values.dtype.kind == "f":
            assert_allclose(values, single[name].values, rtol=1e-12, err_msg=name)
        else:
            assert_array_equal(values, single[name].values, err_msg=name)


FUNCTIONS = {
    "std_error": lambda local, effect: rs.std_error(effect),
    "std_error, groups": lambda local, effect: rs.std_error(
        effect, local, groups=(local["obs"].values // 3)
    ),
    "confint": lambda local, effect: rs.confint(effect),
    "confband": lambda local, effect: rs.confband(effect, n_draws=2000, rng=0),
    "bootstrap": lambda local, effect: rs.bootstrap(
        local, effect, n_resamples=20, rng=0, progress=False
    ),
    "confint of bootstrap": lambda local, effect: rs.confint(
        effect, rs.bootstrap(local, effect, n_resamples=40, rng=0, progress=False), method="basic"
    ),
    "check_unbiased": lambda local, effect: rs.check_unbiased(local, effect, rng=0),
    "debias": lambda local, effect: rs.debias(effect, rs.check_unbiased(local, effect, rng=0)),
    "effect_sizes": lambda local, effect: rs.effect_sizes(effect),
    "wald_test": lambda local, effect: rs.wald_test(effect),
    "equivalence_test": lambda local, effect: rs.equivalence_test(effect, 10.0),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", [name for name in FUNCTIONS if "groups" not in name])
def test_each_region_is_an_effect_of_its_own_rows(local, tree, effect, name):
    regional = FUNCTIONS[name](local, effect)
    assert regional.sizes["region"] == 2
    assert_array_equal(regional["region_rule"].values, effect["region_rule"].values)
    for number in range(2):
        own, single = alone(local, tree, number)
        expected = FUNCTIONS[name](own, single)
        order = ("chain", "draw") if "draw" in expected.dims else ()
        assert_same(regional.transpose("region", *order, ...), number, expected)


@pytest.mark.thorough
def test_groups_are_those_of_all_rows(local, tree, effect):
    regional = FUNCTIONS["std_error, groups"](local, effect)
    for number in range(2):
        own, single = alone(local, tree, number)
        expected = rs.std_error(single, own, groups=own["obs"].values // 3)
        assert_same(regional, number, expected)


@pytest.mark.thorough
def test_tables_name_the_region(local, tree, effect):
    for table in (rs.tidy, rs.glance):
        regional = table(effect)
        for number in range(2):
            part = regional[regional["region"] == number]
            assert set(part["rule"]) == {str(effect["region_rule"].values[number])}
            expected = table(alone(local, tree, number)[1])
            pd.testing.assert_frame_equal(
                part.drop(columns=["region", "rule"]).reset_index(drop=True), expected
            )


def test_the_summary_says_which_region(effect):
    text = str(rs.summary(effect))
    for rule in effect["region_rule"].values:
        assert f"where {rule}" in text
    assert text.count("Bins: OptimalBins") == 1  # a note that all share is read once


@pytest.mark.thorough
def test_one_region_is_an_effect_like_any_other(local, tree, effect):
    part = effect.isel(region=1)
    own, single = alone(local, tree, 1)
    assert str(rs.summary(part)).splitlines()[3:6] == str(rs.summary(single)).splitlines()[3:6]
    boot = rs.bootstrap(local, part, n_resamples=20, rng=1, progress=False)
    direct = rs.bootstrap(own, single, n_resamples=20, rng=1, progress=False)
    assert_allclose(boot["average_effect"], direct["average_effect"])


def test_two_regions_are_compared(effect):
    found = rs.compare(effect.isel(region=0), effect.isel(region=1), rng=0)
    assert float(found["p_value"].item()) < 0.001
    rules = [str(rule) for rule in effect["region_rule"].values]
    assert [found.attrs["region_of_a"], found.attrs["region_of_b"]] == rules
    assert not [name for name in found.coords if str(name).startswith("region")]
    both = rs.compare(effect, effect, n_draws=500, rng=0)
    assert_array_equal(both["region_rule"], rules)
    assert_allclose(both["p_value"], 1)


def test_predict_and_mae_by_region(local, tree, effect):
    curve = rs.predict(effect, [-0.5, 0.5], "x0")
    for number in range(2):
        single = alone(local, tree, number)[1]
        assert_allclose(curve.isel(region=number), rs.predict(single, [-0.5, 0.5], "x0"))


@pytest.mark.thorough
def test_a_tree_without_splits_has_one_region(local):
    """One region has the dimension, and its labels, as several have."""
    tree = rs.regions(local, "x1", max_depth=0)
    effect = rs.std_error(rs.regional_rhale(local, tree))
    assert effect["region_rule"].dims == ("region",)
    assert effect["bin_left"].dims == ("region", "feature", "bin")
    for regional in (
        rs.confint(effect),
        rs.wald_test(effect),
        rs.check_unbiased(local, effect, rng=0),
    ):
        assert regional["region_rule"].values.tolist() == ["all rows"]
    expected = rs.std_error(rs.rhale(local.isel(feature=[1]), bins=rs.OptimalBins()))
    assert_same(effect, 0, expected)
    assert "where all rows" in str(rs.summary(effect))


def test_nothing_left_is_no_loss_to_lower():
    """A node without any heterogeneity is not searched, whatever min_share says."""
    x = np.linspace(0, 1, 400)
    local = rs.local_effects(
        None, np.column_stack([x, x[::-1]]), jacobian=np.column_stack([x > 0.5, x]).astype(float)
    )
    tree = rs.regions(local, "x0", bins=rs.GivenBins([0, 0.5, 1]), min_share=0.0, min_drop=0.0)
    assert tree.sizes["node"] == 1
    assert tree["loss"].item() == 0


def test_other_rows_are_refused(local, effect):
    with pytest.raises(ValueError, match="got 899 rows and regions of 900"):
        rs.bootstrap(local.isel(obs=slice(899)), effect, n_resamples=20, progress=False)


def test_other_regions_are_refused(local, effect):
    boot = rs.bootstrap(local, effect, n_resamples=20, rng=0, progress=False)
    with pytest.raises(ValueError, match="got 2 and 1 of them"):
        rs.confint(effect, boot.isel(region=[0]))


def test_a_function_of_one_effect_says_so(effect):
    with pytest.raises(ValueError, match=r"effect\.isel\(region=0\)"):
        rs.plots.effect(effect, "x0")
    with pytest.raises(ValueError, match="this one is of 2"):
        rs.vcov(effect, "x0")


def test_stacked_results_keep_what_they_share():
    def one(n_bins, n_rows):
        return xr.Dataset(
            {"effect": ("bin", np.arange(n_bins) + 0.5), "n_obs": ("bin", np.arange(n_bins))},
            {"bin": np.arange(n_bins), "unit": "km"},
            {"n_rows": n_rows, "method": "rhale"},
        )

    found = stack([one(2, 10), one(3, 20)], "region")
    assert_array_equal(found["effect"], [[0.5, 1.5, np.nan], [0.5, 1.5, 2.5]])
    assert_array_equal(found["n_obs"], [[0, 1, 0], [0, 1, 2]])
    assert found["n_obs"].dtype == np.int64
    assert found["unit"].item() == "km"
    assert found.attrs == {"method": "rhale"}
    assert_array_equal(found["region_n_rows"], [10, 20])


# --- features that have rows of their own ---------------------------------------------------------


OF_OWN_ROWS = {
    "standard errors of groups": lambda local, effect, groups, boot: rs.confint(
        rs.std_error(effect, local, groups=groups)
    ),
    "Wald test of groups": lambda local, effect, groups, boot: rs.wald_test(
        rs.std_error(effect, local, groups=groups), adjust="none"
    ),
    "equivalence of groups": lambda local, effect, groups, boot: rs.equivalence_test(
        rs.std_error(effect, local, groups=groups), 0.5, adjust="none"
    ),
    "percentiles": lambda local, effect, groups, boot: rs.confint(
        effect, boot, method="percentile"
    ),
    "BCa": lambda local, effect, groups, boot: rs.confint(effect, boot, method="bca"),
}


@pytest.fixture(scope="module")
def with_gaps():
    """Local effects of one feature that all rows have, and of one that only some have."""
    rng = np.random.default_rng(8)
    X = pd.DataFrame(rng.uniform(-1, 1, (300, 2)), columns=["all", "some"])
    X.loc[rng.random(300) < 0.5, "some"] = np.nan
    g = rng.normal(1.0, 1.0, X.shape)
    local = rs.local_effects(None, X, jacobian=g, missing="drop")
    effect = rs.rhale(local, bins=rs.QuantileBins(4))
    groups = np.arange(300) // 3
    boot = rs.bootstrap(local, effect, n_resamples=100, rng=1, groups=groups, progress=False)
    return local, effect, groups, boot


@pytest.mark.parametrize(("name", "feature"), in_turn(OF_OWN_ROWS, ["all", "some"]))
def test_features_of_own_rows_keep_what_is_said_of_these(with_gaps, feature, name):
    """Groups are counted among the rows that a feature has: its degrees of freedom."""
    local, effect, groups, boot = with_gaps
    there = local["x"].sel(feature=feature).notnull().values
    own = local.sel(feature=[feature]).isel(obs=there)
    alone = OF_OWN_ROWS[name](
        own,
        effect.sel(feature=[feature]),
        groups[there],
        rs.bootstrap(
            own,
            effect.sel(feature=[feature]),
            n_resamples=100,
            rng=1,
            groups=groups[there],
            progress=False,
        ),
    )
    joint = OF_OWN_ROWS[name](local, effect, groups, boot).sel(feature=[feature])
    for variable in alone.data_vars:
        if alone[variable].dtype.kind == "U":
            assert joint[variable].values.tolist() == alone[variable].values.tolist()
            continue
        assert_allclose(joint[variable], alone[variable], rtol=1e-12, err_msg=str(variable))


def test_sources_of_features_with_own_rows_are_all_said(with_gaps):
    local, effect, groups, _ = with_gaps
    there = local["x"].sel(feature="some").notnull().values
    groups = np.where(there, groups, groups + 1000)
    found = rs.std_error(effect, local, groups=groups)
    counts = [len(np.unique(groups)), len(np.unique(groups[there]))]
    assert found["feature_n_groups"].values.tolist() == counts
    assert found["effect_se"].attrs["source"] == "; ".join(f"rows in {n} groups" for n in counts)


def test_local_effects_may_have_more_features_than_the_effect(with_gaps):
    local, effect, groups, _ = with_gaps
    for features in (["some"], ["all"], ["some", "all"]):
        part = effect.sel(feature=features)
        result = rs.std_error(part, local, groups=groups)
        assert result["feature"].values.tolist() == features
        expected = rs.std_error(effect, local, groups=groups).sel(feature=features)
        assert_allclose(result["effect_se"], expected["effect_se"], rtol=1e-12)
        draws = rs.bootstrap(local, part, n_resamples=2, rng=0)
        assert draws["feature"].values.tolist() == features
    with pytest.raises(KeyError, match="local must hold the features of effect; it lacks 'all'"):
        rs.std_error(effect, local.sel(feature=["some"]), groups=groups)


def test_outputs_of_which_only_some_have_a_size():
    """The size of an effect without a test is NaN, whichever output comes first."""
    X = np.random.default_rng(5).normal(size=(300, 2))

    def two_outputs(X):
        return np.column_stack([X[:, 0] * (1 + X[:, 1]), 2 * X[:, 0]])

    for order in ([0, 1], [1, 0]):
        local = rs.local_effects(lambda X, order=order: two_outputs(X)[:, order], X, output=None)
        tests = rs.wald_test(rs.rhale(local, bins=rs.EqualWidthBins(1)), "homogeneous")
        assert tests["size"].dims == ("output", "feature")
        for number in range(2):
            alone = rs.wald_test(
                rs.rhale(local.isel(output=number), bins=rs.EqualWidthBins(1)), "homogeneous"
            )
            expected = alone["size"] if "size" in alone else np.full(2, np.nan)
            assert_allclose(tests["size"][number], expected)
