"""Tables of effects, from the variables of the effects."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import rhale_stats as rs
from rhale_stats.effects.tables import curve_extents
from rhale_stats.inference.meaning import ALIKE, ORDER, ZERO
from rhale_stats.schema.feature_result import one_feature
from tests.effects.mixed import LEVELS, mixed_effect
from tests.helpers import local_of


@pytest.fixture(name="effect")
def _effect():
    return mixed_effect()


def test_a_line_for_every_bin(effect):
    level = 0.8
    table = rs.tidy(effect, level=level)
    assert list(table.columns) == [
        "term", "bin", "bin_left", "bin_right", "level_from", "level_to", "n_obs", "estimate",
        "std_error", "conf_low", "conf_high", "heterogeneity", "heterogeneity_se", "spread_min",
        "spread_max", "reason",
    ]  # fmt: skip
    whole = rs.confint(effect, level=level)
    lines = []
    for name in "azlm":
        row = one_feature(whole, name)
        n = row.sizes["bin"]
        levels = ["u", "v", "w"] if name == "l" else ["1", "2", "3"]
        of_levels = name in "lm"
        same = {"z": [0, 1, 2], "l": [], "m": [0, 1], "a": []}[name]
        reason = [ZERO if name == "z" else ALIKE if at in same else "" for at in range(n)]
        zero, alike = (np.array([one == why for one in reason]) for why in (ZERO, ALIKE))
        estimate = np.where(zero, 0, row["effect"])
        ends = row["effect_ci"].values
        lines.append(
            pd.DataFrame(
                {
                    "term": name,
                    "bin": np.arange(n),
                    "bin_left": row["edge_value"].values[:-1],
                    "bin_right": row["edge_value"].values[1:],
                    "level_from": levels[:-1] if of_levels else [""] * n,
                    "level_to": levels[1:] if of_levels else [""] * n,
                    "n_obs": row["n_obs"].values,
                    "estimate": estimate,
                    "std_error": np.where(zero | alike, 0, row["effect_se"]),
                    "conf_low": np.where(zero | alike, estimate, ends[:, 0]),
                    "conf_high": np.where(zero | alike, estimate, ends[:, 1]),
                    "heterogeneity": np.where(zero | alike, 0, row["heterogeneity"]),
                    "heterogeneity_se": np.where(zero | alike, 0, row["heterogeneity_se"]),
                    # One bin of the spread along the axis.
                    "spread_min": np.nan if of_levels else row["spread"].values[0:1].repeat(n)
                    if name == "a" else 0.0,
                    "spread_max": np.nan if of_levels else row["spread"].values[0:1].repeat(n)
                    if name == "a" else 0.0,
                    "reason": reason,
                }
            )
        )  # fmt: skip
    expected = pd.concat(lines, ignore_index=True)
    pd.testing.assert_frame_equal(table, expected, check_dtype=False, rtol=1e-9, atol=1e-10)


def test_a_line_for_every_feature(effect):
    level = 0.8
    table = rs.glance(effect, level=level).set_index("term")
    assert table.index.tolist() == ["a", "c", "z", "l", "m"]
    assert "statistic" not in table
    assert table["kind"].tolist() == ["continuous", "constant", "continuous", "nominal", "ordinal"]
    assert table["n_bins"].tolist() == [3, 0, 3, 2, 2]
    assert table["n_spread_bins"].tolist() == [1, 0, 1, 0, 0]
    # Rows between two levels count once.
    assert table["n_obs"].tolist() == [60, 0, 60, 60, 60]
    assert table["reason"].tolist() == ["", "", ZERO, ORDER, ALIKE]
    row, line = effect.rhale.in_bins().sel(feature="a"), table.loc["a"]
    n, share = row["n_effective"].values[:3], row["weight_share"].values[:3]
    degrees = 1 / np.sum(share**2 / n) - 1
    half = stats.t.ppf(0.9, degrees) * row["average_effect_se"].item()
    found = line[["estimate", "std_error", "conf_low", "conf_high"]].astype(float)
    average = row["average_effect"].item()
    expected = [average, row["average_effect_se"].item(), average - half, average + half]
    assert_allclose(found, expected, rtol=1e-10)
    spread = row["heterogeneity"].values[:3]
    assert line["heterogeneity"] == pytest.approx(np.sqrt(share @ spread**2))
    for name in ("heterogeneity_output", "heterogeneity_index"):
        assert line[name] == row[name].item()
    # Neither a constant feature nor levels without an order have an average.
    blank = ["estimate", "std_error", "conf_low", "conf_high", "heterogeneity_output"]
    assert table.loc[["c", "l"], [*blank, "heterogeneity_index"]].isna().all(axis=None)
    assert np.isnan(table.loc["c", "heterogeneity"])
    # Of levels the shares of the steps add up to more than 1.
    steps = effect.rhale.in_bins().sel(feature="l").isel(bin=slice(2))
    weight = steps["weight_share"].values
    assert weight.sum() > 1
    spread = np.sqrt(weight @ steps["heterogeneity"].values ** 2 / weight.sum())
    assert table.loc["l", "heterogeneity"] == pytest.approx(spread)
    same = ["heterogeneity", "heterogeneity_output", "heterogeneity_index", "std_error"]
    assert (table.loc[["z", "m"], same] == 0).all(axis=None)
    assert_array_equal(table.loc["z", ["estimate", "curve_min", "curve_max"]].astype(float), 0)
    assert_allclose(table.loc["m", ["estimate", "conf_low", "conf_high"]].astype(float), 3)
    for name in "alm":
        curve = effect.sel(feature=name)["curve"].values
        ends = np.nanmin(curve), np.nanmax(curve)
        assert_allclose(table.loc[name, ["curve_min", "curve_max"]].astype(float), ends)


def test_a_line_within_bins_turns_the_curve():
    """A parabola that is lowest inside its only bin."""
    x = np.linspace(-1, 3, 201)[:, None]
    effect = rs.rhale(local_of(x, 2 * x), bins=rs.AdaptiveBins(20), weighting="rows")
    row = one_feature(effect, 0)
    assert (row.sizes["bin"], row["slope"].item()) == (1, pytest.approx(2))
    # x^2 less its mean over the rows.
    mean = np.mean(x**2)
    assert_allclose(curve_extents(effect), [[-mean, 9 - mean]], atol=1e-12)
    table = rs.tidy(effect)
    assert list(table.columns[4:]) == [
        "n_obs", "estimate", "std_error", "conf_low", "conf_high", "heterogeneity",
        "heterogeneity_se", "slope", "slope_se", "reason",
    ]  # fmt: skip
    assert table["slope"].item() == pytest.approx(2)
    assert table["estimate"].item() == pytest.approx(2)
    assert table["reason"].tolist() == [ALIKE]


def test_t_and_p_where_errors_hold_the_model():
    X = np.random.default_rng(3).uniform(0, 1, (40, 2))
    model = rs.Parametric(
        lambda b, X: b[0] * X[:, 0] ** 2 + b[1] * X[:, 1], [1.5, -2.0], np.diag([0.04, 0.09])
    )
    local = rs.local_effects(model, X)
    effect = rs.rhale(local, bins=rs.EqualWidthBins(2), weighting="rows")
    effect = rs.std_error(effect, local, model=model, X=X, uncertainty="parameters")
    table = rs.tidy(effect)
    # A normal sample of parameters, without degrees of freedom.
    t = table["estimate"] / table["std_error"]
    assert_allclose(table["statistic"], t)
    assert_allclose(table["p_value"], 2 * stats.norm.sf(np.abs(t)), rtol=1e-6)
    assert_allclose(table["statistic"][2:], -2 / 0.3, rtol=1e-6)
    glance = rs.glance(effect)
    t = effect["average_effect"].values / effect["average_effect_se"].values
    assert_allclose(glance["statistic"], t)
    assert_allclose(glance["p_value"], 2 * stats.norm.sf(np.abs(t)), rtol=1e-6)


def test_rows_with_their_estimates():
    """Bins by [left, right); outside of them nothing is known. A row without weight stays."""
    x = np.array([0.0, 0.5, 1.0, 1.5, 2.0, 0.25])
    g = np.array([1.0, 3.0, -2.0, 0.0, 2.0, 2.0])
    weights = np.array([1.0, 2, 3, 4, 5, 6])
    local = local_of(x[:, None], g[:, None], weights=weights)
    effect = rs.rhale(
        local.isel(obs=slice(5)), bins=rs.GivenBins([0, 1, 2]), weighting="rows", centering="start"
    )
    means = np.array([7 / 3, 4 / 12])
    other = local_of(np.array([-0.1, 0.5, 1, 2, 2.1])[:, None], np.arange(5.0)[:, None])
    table = rs.augment(other, effect)
    assert list(table.columns) == [
        "x0", "x0.local_effect", "x0.bin", "x0.effect", "x0.residual", "x0.curve",
    ]  # fmt: skip
    assert table["x0.bin"].tolist() == [pd.NA, 0, 1, 1, pd.NA]
    expected = np.array([np.nan, means[0], means[1], means[1], np.nan])
    assert_allclose(table["x0.effect"], expected)
    assert_allclose(table["x0.residual"], np.arange(5) - expected)
    curve = [np.nan, means[0] / 2, means[0], means.sum(), np.nan]
    assert_allclose(table["x0.curve"], curve)
    assert_array_equal(table["x0.local_effect"], np.arange(5))
    own = rs.augment(local.isel(obs=slice(5)), effect)
    assert_array_equal(own["weight"], weights[:5])
    assert own.index.name == "obs"
    assert own.columns[0] == "weight"


def test_rows_of_levels():
    """A row is in two steps, so that it has no bin; a missing level has nothing."""
    X = pd.DataFrame({"l": ["v", "u", None, "w"] * 5, "k": np.arange(20.0)})

    def model(X):
        return X["l"].map({"u": 0, "v": 1, "w": 3}).to_numpy(float) * (1 + X["k"].to_numpy())

    local = rs.ale_local_effects(model, X, features="l", order={"l": LEVELS}, missing="drop")
    effect = rs.ale_from_local(local)
    table = rs.augment(local, effect)
    curve = effect["curve"].values[0]
    assert table["l"].tolist()[:4] == ["v", "u", "", "w"]
    assert_allclose(table["l.curve"][:4], [curve[1], curve[0], np.nan, curve[2]])
    assert table["l.bin"].isna().all()
    assert table[["l.effect", "l.residual"]].isna().all(axis=None)


@pytest.mark.parametrize("zone", [None, "Asia/Tokyo"])
def test_rows_of_dates_have_dates(zone):
    days = pd.date_range("2024-01-01", periods=60, tz=zone)
    X = pd.DataFrame({"day": days, "k": np.arange(60.0)})
    model = lambda X: X["day"].dt.day_of_year * X["k"]  # noqa: E731
    local = rs.ale_local_effects(model, X)
    assert rs.augment(local, rs.ale_from_local(local))["day"].tolist() == X["day"].tolist()
    # Dates have profiles by default, too.
    profile = rs.pdp(model, X)
    assert profile["feature"].values.tolist() == ["day", "k"]
    assert rs.tidy(profile)["x"][0] == days[0]
    assert "2024-01-01" in str(rs.summary(profile, "day"))
    test = rs.compare(profile, profile)
    assert rs.tidy(test)["x"][0] == rs.glance(test)["largest_at"][0] == days[0]
    at = rs.predict(profile, days[[0, 59]], "day")
    assert_allclose(at, rs.predict(profile, at["x"], "day"))


def test_numbers_of_levels_that_are_dates_stay_numbers():
    days = pd.to_datetime(["2024-01-01", "2024-01-02 12:00", "2024-01-03"] * 20, format="mixed")
    X = pd.DataFrame({"day": days, "x": np.arange(60.0)})
    effect = rs.ale(lambda X: X["day"].dt.day * X["x"], X, "day", categorical=["day"])
    assert effect["level"].values.ravel().tolist() == ["2024-01-01", str(days[1]), "2024-01-03"]
    test = rs.compare(effect, effect)
    assert rs.tidy(test)["x"].tolist() == [0, 1, 2]
    assert rs.glance(test)["largest_at"].tolist() == [0]
    at = rs.predict(effect, days[:2], "day")
    np.testing.assert_array_equal(at, effect["curve"].values[0, :2])


@pytest.mark.parametrize("make", [rs.ale, rs.pdp])
def test_places_on_an_axis_of_dates_are_dates(make):
    days = pd.date_range("2024-01-01", periods=61)
    X = pd.DataFrame({"day": np.repeat(days, 5), "k": np.tile(np.arange(5.0), 61)})
    peak = days[30]
    model = lambda X: -(((X["day"] - peak).dt.days / 10) ** 2) * (1 + X["k"])  # noqa: E731
    found = rs.hypotheses(make(model, X, "day"), "maximum", feature="day")
    line = rs.tidy(found).iloc[0]
    assert line["conf_low"] <= line["estimate"] <= line["conf_high"]
    assert abs(line["estimate"] - peak) < pd.Timedelta(days=2)
    assert "2024-01-3" in str(rs.summary(found))
    with pytest.raises(ValueError, match=r"a minimum between 2024-01-\d\d.* and 2024-0"):
        rs.hypotheses(make(model, X, "day"), "minimum", feature="day")


def test_columns_of_checks_are_in_the_table():
    """What `check_unbiased` found, bin by bin, and a rule of lines beside."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1, (60, 1))
    local = local_of(x, 5 * x + rng.normal(size=(60, 1)) / 9)
    effect = rs.check_unbiased(local, rs.rhale(local, bins=rs.GivenBins([0, 0.5, 1])))
    table = rs.tidy(effect)
    for name in ("bin_error", "bin_error_pvalue_adjusted", "rank_pvalue", "verdict"):
        assert_array_equal(table[name], effect[name].values[0])
    assert "jump" not in table
    assert table.index.tolist() == [0, 1]


def test_numerical_errors_are_no_sampling_errors():
    """Local effects differ by less than their error: estimates have no error and no width."""
    x = np.linspace(0, 1, 40)[:, None]
    noise = 1e-4 * np.tile([[1.0], [-1.0], [2.0], [-2.0]], (10, 1))
    g = np.where(x < 0.5, 3, 0) + noise
    effect = rs.std_error(rs.rhale(local_of(x, g), bins=rs.GivenBins([0, 0.5, 1])))
    effect["local_effect_error"] = ("feature", [1e-3])
    table = rs.tidy(effect)
    assert table["reason"].tolist() == [ALIKE, ZERO]
    assert_array_equal(table["estimate"], [effect["effect"].values[0, 0], 0])
    for name in ("conf_low", "conf_high"):
        assert_array_equal(table[name], table["estimate"])
    for name in ("std_error", "heterogeneity", "heterogeneity_se"):
        assert_array_equal(table[name], 0)
    known = rs.glance(effect)
    assert_array_equal(known[["heterogeneity", "heterogeneity_output"]], 0)
    # Bins have other effects, so that their average varies with the rows.
    assert known["std_error"].item() == effect["average_effect_se"].item()
