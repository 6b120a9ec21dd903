"""The check of Theorem 1, what it does to the heterogeneity, and the check for jumps."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from statsmodels.stats.multitest import multipletests

import rhale_stats as rs
from rhale_stats import simulate
from rhale_stats.arrays import bin_error
from rhale_stats.arrays.resample import honest_split
from rhale_stats.diagnostics.checks import FACTS as CHECKS
from rhale_stats.effects.tables import columns_of_checks, share_along_axis
from rhale_stats.inference.adjustment import ADJUSTMENTS
from rhale_stats.inference.meaning import linear_bin_error
from rhale_stats.local import chunks
from rhale_stats.schema.feature_result import one_feature
from rhale_stats.schema.variables import EFFECT_VARIABLES
from tests.bins.test_rule import frozen
from tests.helpers import Counting, in_turn
from tests.helpers import weighted_mean_with_error as along

EDGES = np.array([0, 0.2, 0.5, 0.6, 1])
ADJUSTED = ("bin_error_pvalue_adjusted", "rank_pvalue_adjusted")
# Whose units are not those of a local effect, and of its square.
UNIT_FREE = (
    "bin_error_share",
    "bin_error_share_axis",
    "von_neumann_ratio",
    "rank_ratio",
    "bin_error_pvalue",
    "rank_pvalue",
    *ADJUSTED,
)
LINEAR = ("heterogeneity_within", "heterogeneity_within_se", "density_bias_se")
SQUARE = ("sigma2_star", "bin_error", "bin_error_se")


def local_of(x, g, **options):
    """One feature ``x`` with local effects ``g``."""
    X = pd.DataFrame({"x": np.asarray(x)})
    return rs.local_effects(
        None, X, jacobian=np.asarray(g)[:, None], features="x", progress=False, **options
    )


def checked(x, g, edges=EDGES, *, check=None, weighting="rows", **options):
    """`check_unbiased` of one feature on given bins, by rows: else crowding has no bias."""
    local = local_of(x, g, **options)
    effect = rs.std_error(rs.rhale(local, bins=rs.GivenBins(edges), weighting=weighting))
    return complete(rs.check_unbiased(local, effect, **({"rng": 0} | (check or {}))))


def complete(check):
    """A check of one feature with what tables compute from it."""
    row = one_feature(check, 0)
    columns = {name: (("feature", "bin"), v[None]) for name, v in columns_of_checks(row).items()}
    new = {name: column for name, column in columns.items() if name not in check}
    return check.assign(new | {"bin_error_share_axis": ("feature", [share_along_axis(row)])})


def base(rng, n=400):
    """Distinct x on [0, 1] off the edges; a slope, a wave, and noise of one sign of skewness."""
    x = rng.permutation(np.linspace(0.0007, 0.9993, n))
    return frozen(x), frozen(3 * x + np.sin(20 * x) / 2 + rng.standard_gamma(2, n) / 2)


# --- by hand -------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighting", ["axis", "rows"])
def test_toy_by_hand(weighting):
    """One bin: 1, 3, 2, 6 at 0.1, 0.2, 0.3, 0.8; squared differences 4, 1, 16 (math [13])."""
    row = checked([0.3, 0.1, 0.8, 0.2], [2, 1, 6, 3], [0, 1], weighting=weighting).isel(feature=0)
    assert_allclose(row["sigma2_star"], [14 / 3], rtol=1e-12)
    assert_allclose(row["heterogeneity_within"] ** 2, [3.5], rtol=1e-12)
    assert_allclose(row["bin_error"], [14 / 3 - 3.5], rtol=1e-12)
    assert_allclose(row["bin_error_share"], [0.25], rtol=1e-12)
    assert_allclose(row["bin_error_share_axis"], 0.25, rtol=1e-12)
    assert_allclose(row["von_neumann_ratio"], [1.5], rtol=1e-12)
    # Ranks 1, 3, 2, 4: squared differences 4, 1, 4, squared deviations 5.
    assert_allclose(row["rank_ratio"], [9 / 5], rtol=1e-12)
    # x has mean 0.35 and variance 0.0725 (over n), covariance with g of 0.475. An average along
    # the axis has no such bias.
    expected = 0.475 / 0.0725 * (0.35 - 0.5) if weighting == "rows" else 0.0
    assert_allclose(row["density_bias"], [expected], rtol=1e-12)
    assert np.isnan(row["bin_error_pvalue"]).all()
    assert row["verdict"].values.tolist() == ["too few rows"]


def test_weighting_changes_the_bias_of_crowding_alone(rng):
    x, g = base(rng)
    rows, axis = (checked(x**2, g, weighting=weighting) for weighting in ("rows", "axis"))
    for name in (*UNIT_FREE, *SQUARE, "heterogeneity_within", "heterogeneity_within_se"):
        assert_allclose(axis[name], rows[name], rtol=1e-12)
    assert (rows["density_bias"] != 0).all()
    assert (axis["density_bias"] == 0).all()
    assert (axis["density_bias_se"] == 0).all()


def test_bin_error_share_is_not_below_zero(rng):
    """Neighbours that differ more than others: the estimate is negative, and stays so."""
    x = np.linspace(0.01, 0.99, 40)
    row = checked(x, np.tile([1.0, -1.0], 20), [0, 1]).isel(feature=0)
    assert float(row["bin_error"][0]) < -0.9
    assert row["bin_error_share"].values.tolist() == [0]
    assert row["bin_error_share_axis"] == 0
    assert float(row["bin_error_pvalue"][0]) > 0.999
    assert row["verdict"].values.tolist() == ["fine"]


def test_share_along_the_axis_by_hand(rng):
    """Bin errors and variances count by the widths of their bins."""
    row = checked(*base(rng)).isel(feature=0)
    width = np.diff(EDGES)
    expected = np.sum(row["bin_error"] * width) / np.sum(row["sigma2_star"] * width)
    assert_allclose(row["bin_error_share_axis"], expected, rtol=1e-12)


# --- another route -------------------------------------------------------------------------------


def test_agrees_with_pandas(rng):
    x, g = base(rng)
    row = checked(x, g).isel(feature=0)
    table = pd.DataFrame({"x": x, "g": g, "bin": np.searchsorted(EDGES, x, side="right") - 1})
    table = table.sort_values("x")
    table["d"] = table.groupby("bin")["g"].diff()
    bins = table.groupby("bin")
    within = bins["d"].apply(lambda d: (d**2).mean() / 2)
    # Sums of 160 terms at most.
    assert_allclose(row["sigma2_star"], bins["g"].var(), rtol=1e-12)
    assert_allclose(row["heterogeneity_within"] ** 2, within, rtol=1e-12)
    assert_allclose(row["bin_error"], bins["g"].var() - within, rtol=1e-10)
    assert_allclose(row["von_neumann_ratio"], 2 * within / bins["g"].var(), rtol=1e-12)
    table["rank"] = bins["g"].rank()
    ranks = table.groupby("bin")["rank"]
    ratio = ranks.apply(lambda r: (r.diff() ** 2).sum() / ((r - r.mean()) ** 2).sum())
    assert_allclose(row["rank_ratio"], ratio, rtol=1e-12)


@pytest.mark.thorough
@pytest.mark.parametrize("adjust", ADJUSTMENTS)
def test_adjusted_over_bins_and_features_together(rng, adjust):
    """By statsmodels; bins without a p-value do not count."""
    X = rng.uniform(size=(300, 3))
    g = np.column_stack([rng.normal(size=300) + s * X[:, i] for i, s in enumerate((0, 2, 0.5))])
    local = rs.local_effects(None, X, jacobian=g)
    edges = {"x0": [0, 0.5, 1], "x1": [0, 0.02, 0.5, 1], "x2": [0, 0.3, 0.4, 1]}
    check = rs.check_unbiased(
        local, rs.rhale(local, bins=rs.GivenBins(edges)), adjust=adjust, rng=0
    )
    for name in ("bin_error_pvalue", "rank_pvalue"):
        plain = check[name].values
        known = np.isfinite(plain)
        assert known.sum() == 2 + 2 + 3  # the first bin of x1 has 6 rows
        expected = (
            plain[known] if adjust == "none" else multipletests(plain[known], method=adjust)[1]
        )
        adjusted = check[f"{name}_adjusted"]
        assert_array_equal(np.isfinite(adjusted), known)
        assert_allclose(adjusted.values[known], expected, rtol=1e-14)
        assert adjusted.attrs["adjust"] == adjust


def test_what_a_p_value_decides(rng):
    """Verdicts follow the adjusted p-value, and the size of the bias."""
    x, g = base(rng)
    check = checked(x, g)
    bias = check["heterogeneity"] - check["heterogeneity_within"]
    p = check["bin_error_pvalue_adjusted"]
    expected = np.where(p < 0.05, "biased upwards", "fine")
    large = (p < 0.05) & (bias > check["heterogeneity_se"])
    expected = np.where(large, "bias larger than standard error", expected)
    assert_array_equal(check["verdict"], expected)
    assert len(np.unique(expected)) > 1
    # A level between two p-values parts them.
    level = float(np.sort(p.values.ravel())[:2].mean())
    strict = checked(x, g, check={"significance": level})
    assert (strict["verdict"] != "fine").sum() == 1
    assert strict["verdict"].attrs["significance"] == level
    # A p-value of the level itself rejects nothing.
    limit = checked(x, g, check={"significance": float(p.min())})
    assert (limit["verdict"] == "fine").all()
    xr.testing.assert_equal(strict[list(CHECKS)], check[list(CHECKS)])


@pytest.mark.thorough
def test_biased_but_by_less_than_a_standard_error():
    """Heavy tails: that a slope is there is surer than how large the spread is."""
    rng = np.random.default_rng(0)
    x = rng.permutation(np.linspace(0.001, 0.999, 4000))
    noise = rng.laplace(size=4000)
    found = [
        checked(x, slope * x + noise, [0, 1])["verdict"].item() for slope in np.linspace(0, 2, 21)
    ]
    changes = [phrase for at, phrase in enumerate(found) if at == 0 or found[at - 1] != phrase]
    assert changes == ["fine", "biased upwards", "bias larger than standard error"]


def test_standard_errors_are_those_that_the_effect_has(rng):
    """Whether they are there or not, the check is the same."""
    x, g = base(rng)
    local = local_of(x, g)
    effect = rs.rhale(local, bins=rs.GivenBins(EDGES))
    check = rs.check_unbiased(local, effect, rng=0)
    errors = rs.std_error(effect)
    whole = rs.check_unbiased(local, errors, rng=0)
    xr.testing.assert_identical(whole[list(check.data_vars)], check)
    xr.testing.assert_identical(
        whole[list(errors.data_vars)], errors.assign_attrs(seed=check.attrs["seed"])
    )
    assert set(check.data_vars) == {*effect.data_vars, *CHECKS, *ADJUSTED, "verdict"}
    for verb in (rs.tidy, rs.glance):
        pd.testing.assert_frame_equal(verb(check), verb(whole))
    assert str(rs.summary(check)) == str(rs.summary(whole))
    xr.testing.assert_identical(rs.debias(effect, check), rs.debias(errors, whole))


def test_linear_bin_error_agrees_with_the_rows(rng):
    """A line is what the moments see: flagged where the rows say so, and where they do not bend."""
    x = rng.permutation(np.linspace(0.0007, 0.9993, 800))
    wave = np.cos(2 * np.pi * x / 0.5)  # whole periods in each of two bins
    g = np.where(x < 0.5, 0.0, 8 * x) + rng.normal(size=800) / 2
    edges = [0, 0.5, 1]
    for values, by_line, by_rows in ((g, [0, 1], [0, 1]), (g + 2 * wave, [0, 1], [1, 1])):
        check = checked(x, values, edges)
        found = linear_bin_error(check, significance=0.05)
        assert found.dims == ("feature", "bin")
        assert_array_equal(found[0], np.array(by_line, dtype=bool))
        assert_array_equal(check["verdict"][0] != "fine", np.array(by_rows, dtype=bool))


# --- invariants ----------------------------------------------------------------------------------


def assert_scaled(found, plain, size, *, order=slice(None), sign=1.0):
    """Local effects times ``sign * size``: squares scale, shares and p-values do not."""
    for name in (*UNIT_FREE, *LINEAR, *SQUARE):
        power = 0 if name in UNIT_FREE else 1 if name in LINEAR else 2
        theirs = found[name].isel(bin=order) if "bin" in found[name].dims else found[name]
        ours = plain[name] * size**power
        # Sums of 160 terms, and differences of variances that are a tenth of these.
        assert_allclose(theirs, ours, rtol=1e-9, atol=1e-12 * size**power, err_msg=name)
    assert_allclose(
        found["density_bias"].isel(bin=order), plain["density_bias"] * sign * size, rtol=1e-8
    )
    assert_array_equal(found["verdict"].isel(bin=order), plain["verdict"])


@pytest.mark.parametrize("a", [3.0, -3.0, 1e9, -1e-9])
def test_scale_of_the_output(rng, a):
    """f -> a f + b: b drops out of local effects."""
    x, g = base(rng)
    assert_scaled(checked(x, a * g), checked(x, g), abs(a), sign=np.sign(a))


@pytest.mark.parametrize(("c", "d"), [(100.0, 1.7e9), (1e-6, 0.0), (1e9, -5.0)])
def test_shift_and_scale_of_the_feature(rng, c, d):
    x, g = base(rng)
    found, plain = checked(c * x + d, g / c, c * EDGES + d), checked(x, g)
    if d == 1.7e9:
        # Time stamps: where rows are within 100 is known to nine digits; their order is not.
        for name in ("density_bias", "density_bias_se"):
            assert_allclose(found[name], plain[name] / c, rtol=1e-5, atol=1e-8)
            found[name] = plain[name] / c
    assert_scaled(found, plain, 1 / c)


def test_mirror_of_the_feature(rng):
    """f(-x): local effects change their sign, bins their order."""
    x, g = base(rng)
    found = checked(-x, -g, -EDGES[::-1])
    assert_scaled(found, checked(x, g), 1.0, order=slice(None, None, -1), sign=-1.0)


def test_order_of_rows_means_nothing(rng):
    x, g = base(rng)
    order = rng.permutation(len(x))
    assert_scaled(checked(x[order], g[order]), checked(x, g), 1.0)


@pytest.mark.thorough
def test_other_features_mean_nothing_to_the_numbers(rng):
    """But for the adjustment."""
    X, g = rng.uniform(size=(2, 200, 3))
    rule = rs.GivenBins([0, 0.5, 1])
    local = rs.local_effects(None, X, jacobian=g)
    every = rs.check_unbiased(local, rs.rhale(local, bins=rule), rng=0)
    one = local.isel(feature=[1])
    alone = rs.check_unbiased(one, rs.rhale(one, bins=rule), rng=0)
    for name in CHECKS:
        assert_array_equal(every[name].isel(feature=[1]), alone[name], err_msg=name)
    # Features of the effect may be fewer, and in another order.
    swapped = rs.check_unbiased(local, rs.rhale(local, bins=rule).isel(feature=[2, 0]), rng=0)
    for name in CHECKS:
        assert_array_equal(swapped[name], every[name].isel(feature=[2, 0]), err_msg=name)


def test_frequency_weights_are_repeated_rows(rng):
    """Repeats of a row are ties, in random order; being the same rows, they lie the same."""
    x, g = base(rng)
    weights = rng.integers(0, 4, len(x))
    weighted = checked(x, g, weights=weights, weight_kind="frequency")
    repeated = checked(np.repeat(x, weights), np.repeat(g, weights))
    assert_array_equal(weighted["n_obs"], repeated["n_obs"])
    assert_scaled(weighted, repeated, 1.0)


def test_equal_weights_change_nothing(rng):
    x, g = base(rng)
    plain = checked(x, g)
    for weights in (np.ones(len(x)), np.full(len(x), 0.3)):
        found = checked(x, g, weights=weights)
        for name in (*CHECKS, *ADJUSTED, "verdict"):
            xr.testing.assert_identical(found[name], plain[name])


def test_nearly_equal_weights_change_nearly_nothing(rng):
    """Precision weights go another way through the code; it leads to the same place."""
    x, g = base(rng)
    weights = 1 + 1e-9 * rng.uniform(size=len(x))
    found, plain = checked(x, g, weights=weights), checked(x, g)
    for name in (*CHECKS, *ADJUSTED):
        assert_allclose(found[name], plain[name], rtol=1e-5, atol=1e-7, err_msg=name)


def test_scale_of_precision_weights_means_nothing(rng):
    x, g = base(rng)
    weights = rng.uniform(0.5, 2, len(x))
    assert_scaled(checked(x, g, weights=1e6 * weights), checked(x, g, weights=weights), 1.0)


def test_rows_of_weight_zero_are_absent(rng):
    x, g = base(rng)
    weights = rng.integers(0, 3, len(x)).astype(float)
    there = weights > 0
    wild = np.where(there, g, 1e6)
    assert_scaled(
        checked(x, wild, weights=weights), checked(x[there], g[there], weights=weights[there]), 1.0
    )


@pytest.mark.thorough
def test_ties_are_ordered_at_random(rng):
    """The seed decides, and only where there are ties."""
    x, g = np.round(rng.uniform(0.05, 0.95, 200), 2), rng.normal(size=200)
    g = np.sort(g)  # a table in the order of its effects must not look like a slope
    edges = [0, 0.33, 0.66, 1]
    first = checked(x, g, edges, check={"rng": 1})
    generator = np.random.default_rng(1)
    by_generator = checked(x, g, edges, check={"rng": generator})
    xr.testing.assert_identical(by_generator.assign_attrs(seed=1), first)
    other = checked(x, g, edges, check={"rng": 2})
    assert (other["bin_error"] != first["bin_error"]).all()
    xr.testing.assert_identical(other["density_bias"], first["density_bias"])
    shares = [
        float(checked(x, g, [0, 1], check={"rng": seed})["bin_error"][0, 0]) for seed in range(20)
    ]
    assert abs(np.mean(shares)) < 4 * np.std(shares) / np.sqrt(20) + 0.05
    distinct = base(rng)
    xr.testing.assert_identical(
        checked(*distinct, check={"rng": 1}).assign_attrs(seed=2),
        checked(*distinct, check={"rng": 2}),
    )


@pytest.mark.thorough
def test_threads_change_nothing(rng, monkeypatch):
    X, g = np.round(rng.uniform(size=(2, 500, 5)), 2)
    local = rs.local_effects(None, X, jacobian=g)
    effect = rs.rhale(local, bins=rs.QuantileBins(4))
    monkeypatch.setattr("rhale_stats.diagnostics.checks.THREADS_FROM", 10**9)
    alone = rs.check_unbiased(local, effect, rng=0)
    monkeypatch.setattr("rhale_stats.diagnostics.checks.THREADS_FROM", 0)
    xr.testing.assert_identical(rs.check_unbiased(local, effect, rng=0), alone)


# --- degenerate ----------------------------------------------------------------------------------


def test_fewer_than_ten_rows_have_no_p_value(rng):
    x, g = rng.permutation(np.linspace(0.001, 0.499, 10)), rng.normal(size=10)
    x = np.concatenate([x, np.linspace(0.501, 0.999, 9)])
    check = checked(x, np.concatenate([g, 100 * x[10:]]), [0, 0.5, 1]).isel(feature=0)
    for name in ("bin_error_pvalue", "rank_pvalue", *ADJUSTED):
        assert np.isnan(check[name].values).tolist() == [False, True], name
        assert "fewer than 10" in check[name].attrs["missing"]
    assert (check["verdict"] == "too few rows").values.tolist() == [False, True]
    assert np.isfinite(check["bin_error"]).all()
    assert float(check["von_neumann_ratio"][1]) < 1


def test_effective_rows_decide(rng):
    """Twenty rows, of which one has all the weight."""
    x, g = np.linspace(0.01, 0.99, 20), rng.normal(size=20)
    check = checked(x, g, [0, 1], weights=np.r_[1000.0, np.ones(19)])
    assert check.rhale.in_bins()["n_effective"].item() < 2
    assert np.isnan(check["bin_error_pvalue"]).all()
    assert check["verdict"].values.tolist() == [["too few rows"]]


@pytest.mark.parametrize(
    ("slope", "how"),
    in_turn([0.0, 0.1, -1 / 3, 1e9], ["jacobian", "central differences", "weights", "one value"]),
)
def test_no_spread_is_fine(rng, slope, how):
    x = rng.uniform(size=200)
    X = pd.DataFrame({"x": x, "y": rng.normal(size=200)})
    weights = rng.uniform(0.1, 2, 200) if how == "weights" else None
    model = jacobian = None
    if how == "central differences":
        model = lambda X: slope * X["x"] + np.sin(X["y"])  # noqa: E731
    else:
        jacobian = np.full((200, 2), slope)
    local = rs.local_effects(model, X, jacobian=jacobian, features="x", weights=weights)
    check = rs.check_unbiased(local, rs.rhale(local, bins=rs.EqualWidthBins(3)), rng=0)
    check = complete(check).isel(feature=0)
    assert check["verdict"].values.tolist() == ["fine"] * 3
    for name in ("von_neumann_ratio", "rank_ratio", "bin_error_pvalue", "rank_pvalue", *ADJUSTED):
        assert check[name].isnull().all(), name
    assert_array_equal(check["bin_error_share"], 0)
    if how == "one value":
        assert check["bin_error_share_axis"] == 0
    # Rounding, or the error of differences, whichever it came from.
    error = float(check["local_effect_error"]) + 1e-12 * abs(slope)
    assert_allclose(check["heterogeneity_within"], 0, atol=error)
    assert_allclose(check["bin_error"], 0, atol=error**2)


def test_a_constant_feature(rng):
    X = np.column_stack([rng.uniform(size=100), np.full(100, 3.0)])
    local = rs.local_effects(None, X, jacobian=rng.normal(size=(100, 2)))
    check = rs.check_unbiased(local, rs.rhale(local, bins=rs.EqualWidthBins(2)), rng=0)
    for name in (*CHECKS, *ADJUSTED):
        assert check[name].isel(feature=1).isnull().all(), name
        assert check[name].isel(feature=0).notnull().all(), name
    assert check["verdict"].isel(feature=1).values.tolist() == ["", ""]
    only = local.isel(feature=[1])
    alone = rs.check_unbiased(only, rs.rhale(only), rng=0)
    assert alone["verdict"].values.tolist() == [[""]]
    assert rs.debias(rs.rhale(only), alone)["heterogeneity_index"].isnull().all()


def test_bins_beyond_a_features_last_say_nothing(rng):
    X = rng.uniform(size=(100, 2))
    local = rs.local_effects(None, X, jacobian=rng.normal(size=(100, 2)))
    edges = {"x0": [0, 0.5, 1], "x1": [0, 1]}
    check = rs.check_unbiased(local, rs.rhale(local, bins=rs.GivenBins(edges)), rng=0)
    assert check["verdict"].values[1].tolist() == ["fine", ""]
    assert check["bin_error"].isnull().values.tolist() == [[False, False], [False, True]]


def test_an_empty_bin_and_one_row(rng):
    x = np.concatenate([rng.uniform(0, 0.2, 50), [0.55], rng.uniform(0.6, 1, 50)])
    with pytest.warns(UserWarning, match=r"'x' \(1 of 4\)"):
        check = checked(x, rng.normal(size=101)).isel(feature=0)
    assert check["n_obs"].values.tolist() == [50, 0, 1, 50]
    for name in ("bin_error", "bin_error_share", "bin_error_pvalue", "sigma2_star"):
        assert np.isnan(check[name].values).tolist() == [False, True, True, False], name
    assert check["verdict"].values[1:3].tolist() == ["too few rows"] * 2
    assert np.isfinite(check["bin_error_share_axis"])


def test_nothing_is_known_of_bins_of_one_row():
    """Not that the share of bin error along the axis is 0."""
    check = checked([0.1, 0.4, 0.55, 0.8], [1, 2, 3, 4]).isel(feature=0)
    assert check["n_obs"].values.tolist() == [1, 1, 1, 1]
    assert check["bin_error"].isnull().all()
    assert np.isnan(check["bin_error_share_axis"])


def test_a_feature_of_few_levels(rng):
    """Bins of one step: a slope across it is one number a row, without an order of rows."""
    x, g = rng.integers(0, 3, 300).astype(float), rng.normal(size=300)
    check = checked(x, g, [0, 1, 2]).isel(feature=0)
    assert (check["verdict"] != "biased").all()


def test_two_point_effects_that_are_all_equal_in_a_bin(rng):
    """Eq. 1: a bin in which all rows have one sign has no spread."""
    x = np.linspace(0.005, 0.995, 100)
    g = np.where(x < 0.5, 5.0, np.tile([5.0, -5.0], 50))
    check = checked(x, g, [0, 0.5, 1]).isel(feature=0)
    assert np.isnan(check["von_neumann_ratio"].values).tolist() == [True, False]
    assert check["verdict"].values[0] == "fine"


# --- honest bins ---------------------------------------------------------------------------------


def test_honest_effects_are_checked_on_the_half_that_estimates(rng):
    x, g = np.round(rng.uniform(size=(2, 300)), 3)
    local = local_of(x, g)
    effect = rs.rhale(local, bins=rs.OptimalBins(20), honest=True, rng=4)
    check = rs.check_unbiased(local, effect, rng=0)
    rest = local.isel(obs=~honest_split(300, 0.5, effect.attrs["honest_seed"]))
    expected = rs.check_unbiased(rest, rs.rhale(rest, bins=rs.GivenBins(effect)), rng=0)
    for name in (*CHECKS, *ADJUSTED):
        assert_allclose(check[name], expected[name], rtol=1e-9, atol=1e-12, err_msg=name)
    assert_array_equal(check["verdict"], expected["verdict"])
    better = rs.debias(effect, check)
    assert better.attrs["honest_seed"] == effect.attrs["honest_seed"]


# --- labels --------------------------------------------------------------------------------------


def test_schema(rng):
    local = local_of(*base(rng))
    effect = rs.rhale(local, bins=rs.GivenBins(EDGES))
    check = rs.check_unbiased(local, effect, rng=0)
    jumps = rs.jump_check(lambda X: X["x"] ** 2, local, effect)
    for found in (check, rs.debias(effect, check), jumps):
        for name, array in found.data_vars.items():
            dims, long_name, units = EFFECT_VARIABLES[name]
            assert array.dims == dims
            assert array.attrs["long_name"] == long_name
            assert array.attrs["units"] == units
        for attributes in (found.attrs, *(v.attrs for v in found.variables.values())):
            assert all(isinstance(value, str | int | float) for value in attributes.values())


# --- refused -------------------------------------------------------------------------------------


def test_refused_arguments(rng):
    x, g = base(rng)
    local = local_of(x, g)
    effect = rs.rhale(local, bins=rs.GivenBins(EDGES))
    with pytest.raises(TypeError, match="local must be the Dataset that local_effects.*; got list"):
        rs.check_unbiased([1.0], effect)
    with pytest.raises(TypeError, match="effect must be the Dataset that rhale.*; got NoneType"):
        rs.check_unbiased(local, None)
    with pytest.raises(ValueError, match=r"local must .*got effects in bins, which rhale"):
        rs.check_unbiased(effect, effect)
    with pytest.raises(ValueError, match="adjust must be one of 'holm', .*; got 'tukey'"):
        rs.check_unbiased(local, effect, adjust="tukey")
    for significance in (0, 1, -0.1, 5, np.nan):
        with pytest.raises(ValueError, match=f"between 0 and 1.*got {significance}"):
            rs.check_unbiased(local, effect, significance=significance)
    with pytest.raises(KeyError, match="feature must be one of 'y'.*got 'x'"):
        rs.check_unbiased(local.assign_coords(feature=["y"]), effect)


def test_other_local_effects_are_refused(rng):
    x, g = base(rng)
    local = local_of(x, g)
    effect = rs.rhale(local, bins=rs.GivenBins(EDGES))
    more, other = local_of(*base(rng, 500)), local_of(rng.uniform(size=400), g)
    fewer, beyond = local.isel(obs=slice(399)), local_of(2 * x, g)
    for wrong, n in ((more, 500), (other, 400), (fewer, 399), (beyond, 400)):
        message = f"bins of feature 'x' have 400 rows in effect; the {n} rows of local give them"
        for check in (rs.check_unbiased, lambda *two: rs.jump_check(lambda X: X["x"], *two)):
            with pytest.raises(ValueError, match=message):
                check(wrong, effect)
    # Rows selected after the fact: of an honest effect too.
    honest = rs.rhale(local, bins=rs.GivenBins(EDGES), honest=True, rng=0)
    with pytest.raises(ValueError, match="200 rows in effect; the 150 rows of local"):
        rs.check_unbiased(local.isel(obs=slice(300)), honest)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_local_effects_broken_after_the_fact_are_refused(rng, bad):
    x, g = base(rng)
    local = local_of(x, g)
    effect = rs.rhale(local, bins=rs.GivenBins(EDGES))
    broken = local.copy(deep=True)
    broken["local_effect"].values[7] = bad
    with pytest.raises(ValueError, match="Local effects of feature 'x' must be finite"):
        rs.check_unbiased(broken, effect)


def test_a_debiased_effect_is_refused(rng):
    """Its heterogeneity is no longer sigma*, which the check is about."""
    local = local_of(*base(rng))
    effect = rs.rhale(local, bins=rs.GivenBins(EDGES))
    better = rs.debias(effect, rs.check_unbiased(local, effect, rng=0))
    with pytest.raises(ValueError, match="debias"):
        rs.check_unbiased(local, better)


# --- debias --------------------------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize("centering", ["mean", "start", "integral"])
def test_debias_by_hand(rng, centering):
    local = local_of(*base(rng))
    effect = rs.std_error(rs.rhale(local, bins=rs.GivenBins(EDGES), centering=centering))
    check = rs.check_unbiased(local, effect, rng=0)
    better = rs.debias(effect, check)
    within, width = check["heterogeneity_within"].values[0], np.diff(EDGES)
    assert_array_equal(better["heterogeneity"][0], within)
    assert_array_equal(better["heterogeneity_se"], check["heterogeneity_within_se"])
    of_bins = better.rhale.in_bins()
    assert_allclose(of_bins["curve_std_sum"][0], np.r_[0, np.cumsum(within * width)], rtol=1e-12)
    expected = np.sqrt(np.r_[0, np.cumsum((within * width) ** 2)])
    assert_allclose(of_bins["curve_std"][0], expected, rtol=1e-12)
    assert_allclose(better["heterogeneity_index"], [np.sum(within**2 * width)], rtol=1e-12)
    share = effect["n_obs"].values[0] / 400
    x = local["x"].values[:, 0]
    assert_allclose(
        better["heterogeneity_output"], [np.std(x, ddof=1) * np.sqrt(np.sum(share * within**2))],
        rtol=1e-10,
    )  # fmt: skip
    for name in ("effect", "effect_se", "curve", "curve_se", "curve_se_start", "average_effect_se"):
        xr.testing.assert_identical(better[name], effect[name])
    assert_array_equal(better["sigma2_star"], effect["heterogeneity"] ** 2)
    names = ["bin_error_share", "von_neumann_ratio"]
    assert_array_equal(rs.tidy(better)[names], rs.tidy(check)[names])
    for name in (*CHECKS, *ADJUSTED, "verdict", "n_obs", "moments"):
        xr.testing.assert_identical(better[name], check[name])
    assert "neighbouring rows" in better["heterogeneity"].attrs["estimator"]
    assert "math [13]" in better.attrs["debiased"]
    # Other ways to the same.
    xr.testing.assert_identical(rs.debias(check, check), better)
    plain = rs.rhale(local, bins=rs.GivenBins(EDGES), centering=centering)
    xr.testing.assert_identical(rs.debias(plain, check), better)


def test_debias_does_nothing_where_there_is_no_bin_error():
    """A constant effect: both estimate the same spread, within four standard errors of each."""
    rng = np.random.default_rng(1)
    x, g = rng.uniform(size=4000), rng.normal(0, 2, 4000)
    check = checked(x, g)
    better = rs.debias(check, check)
    difference = np.abs(better["heterogeneity"] - check["heterogeneity"])
    assert (difference < 4 * check["heterogeneity_within_se"]).all()
    assert_allclose(better["heterogeneity_index"], 4, rtol=0.1)


@pytest.mark.filterwarnings("ignore:Bins without rows")
def test_debias_beside_a_gap(rng):
    """The curve's spread is given where the curve is."""
    x = np.concatenate([rng.uniform(0, 0.2, 30), rng.uniform(0.5, 1, 90)])
    local = local_of(x, rng.normal(size=120))
    effect = rs.rhale(local, bins=rs.GivenBins(EDGES))
    check = rs.check_unbiased(local, effect, rng=0)
    better = rs.debias(effect, check)
    for name in ("curve_std", "curve_std_sum"):
        of_bins = better.rhale.in_bins()[name]
        assert_array_equal(of_bins.isnull(), effect.rhale.in_bins()[name].isnull())
        assert of_bins[0].dropna("edge")[0] == 0
    within, width = check["heterogeneity_within"].values[0], np.diff(EDGES)
    assert_allclose(better["heterogeneity_index"], np.nansum(within**2 * width), rtol=1e-12)


def test_debias_refuses(rng):
    local = local_of(*base(rng))
    effect = rs.rhale(local, bins=rs.GivenBins(EDGES))
    check = rs.check_unbiased(local, effect, rng=0)
    with pytest.raises(
        ValueError, match="check must be what check_unbiased.*has no heterogeneity_w"
    ):
        rs.debias(effect, effect)
    with pytest.raises(TypeError, match="check must be the Dataset that check_unbiased.*got str"):
        rs.debias(effect, "check")
    with pytest.raises(TypeError, match="effect must be the Dataset that rhale.*got NoneType"):
        rs.debias(None, check)
    other = rs.rhale(local, bins=rs.GivenBins([0, 0.3, 1]))
    with pytest.raises(ValueError, match="check must have the bins of effect; its edges or rows"):
        rs.debias(other, check)
    moved = local_of(*base(rng, 300))
    fewer = rs.rhale(moved, bins=rs.GivenBins(EDGES))
    with pytest.raises(ValueError, match="its edges or rows differ. Run check_unbiased"):
        rs.debias(fewer, check)


# --- jumps ---------------------------------------------------------------------------------------


def uniform(rng, n=500, columns=("a", "b", "c")):
    return pd.DataFrame(rng.uniform(-1, 1, (n, len(columns))), columns=list(columns))


def smooth(X):
    return X["a"] ** 2 + np.sin(X["b"]) + 3 * X["c"]


def slopes(X):
    return np.column_stack([2 * X["a"], np.cos(X["b"]), np.full(len(X), 3.0)])


def test_an_additive_smooth_model_has_none(rng):
    X = uniform(rng)
    local = rs.local_effects(smooth, X, jacobian=slopes)
    check = rs.jump_check(smooth, local, rs.rhale(local, bins=rs.EqualWidthBins(10)))
    assert (check["jump_pvalue_adjusted"] > 0.05).all()
    # Rows of an additive model differ by derivatives, not by differences across the bin.
    assert_allclose(check["jump_spread"], 0, atol=1e-9)
    assert (np.abs(check["jump"]) < 4.5 * check["jump_se"] + 1e-12).all()
    assert_allclose(check["jump"].sel(feature="c"), 0, atol=1e-12)
    assert (check["jump_pvalue"].sel(feature="c") == 1).all()


def test_interactions_are_no_jumps(rng):
    """Derivatives and differences vary together from row to row."""
    X = rng.uniform(-1, 1, (500, 2))
    local = rs.local_effects(lambda X: 5 * X[:, 0] * X[:, 1], X, progress=False)
    effect = rs.rhale(local, bins=rs.EqualWidthBins(5))
    check = rs.jump_check(lambda X: 5 * X[:, 0] * X[:, 1], local, effect)
    assert (check["jump_pvalue_adjusted"] > 0.05).all()
    assert_allclose(check["jump"], 0, atol=1e-6)


def shares(effect, feature, x, k):
    """Weights of the rows of a bin in averages along it: width over rows of their cells."""
    row = effect.sel(feature=feature)
    edges = row["edge_value"].dropna("edge").values
    cell = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, len(edges) - 2)
    inner = (edges[:-1] >= row["bin_left"].values[k]) & (edges[1:] <= row["bin_right"].values[k])
    width = np.where(inner, np.diff(edges), 0.0)
    share = (width / np.maximum(np.bincount(cell, minlength=len(width)), 1))[cell]
    return share / share.sum()


def test_eq_1_jumps_where_it_jumps():
    """math [48]: up for half of the rows, down for the others, so that the mean sees nothing."""
    example = simulate.OppositeGroups()
    X = example.sample(1000, rng=0)
    local = rs.local_effects(None, X, jacobian=example.jacobian)
    check = rs.jump_check(example.model, local, rs.rhale(local, bins=rs.EqualWidthBins(5)))
    flagged = check["jump_pvalue_adjusted"] < 0.05
    assert flagged.values.tolist() == [[False] * 5, [False] * 5, [False, False, True, False, False]]
    jump = check.sel(feature="x3").isel(bin=2)
    # 10 x2, uniform on (-10, 10).
    assert float(jump["jump_spread"]) == pytest.approx(10 / np.sqrt(3), rel=0.1)
    assert abs(float(jump["jump"])) < 4 * float(jump["jump_se"])
    # Its derivative is 0 in this bin.
    share = shares(check, "x3", X["x3"].to_numpy(), 2)
    mean, se, _ = along(share, 10 * X["x2"])
    assert_allclose(jump["jump"], mean, rtol=1e-9)
    assert_allclose(jump["jump_se"], se, rtol=1e-9)
    variance = np.sum(share * (10 * X["x2"] - mean) ** 2) / (1 - np.sum(share**2))
    assert_allclose(jump["jump_spread"], np.sqrt(variance), rtol=1e-9)


def test_a_step_is_seen_by_its_mean(rng):
    """1{x > 0}, whose derivative is 0: the jump is 1 for every row."""

    def step(X):
        return (X[:, 0] > 0).astype(float)

    X = rng.uniform(-1, 1, (200, 1))
    local = rs.local_effects(None, X, jacobian=np.zeros((200, 1)))
    effect = rs.rhale(local, bins=rs.GivenBins([-1, -0.5, 0.25, 1]))
    check = rs.jump_check(step, local, effect).isel(feature=0)
    # Shares of the rows add up to 1 but for rounding.
    assert_allclose(check["jump"], [0, 1, 0], rtol=1e-14)
    assert_allclose(check["jump_se"], 0, atol=1e-14)
    assert check["jump_spread"].values.tolist() == [0, 0, 0]
    assert check["jump_pvalue"].values.tolist() == [1, 0, 1]
    assert check["jump_pvalue_adjusted"].values.tolist() == [1, 0, 1]


def test_jumps_agree_with_brute_force(rng):
    def model(X):
        return X["a"] * X["b"] + np.where(X["a"] > 0.3, X["c"] + 0.5, 0) + X["a"] ** 3

    X = uniform(rng)
    g = (X["b"] + 3 * X["a"] ** 2).to_numpy()
    local = rs.local_effects(
        None, X, jacobian=np.column_stack([g, X["a"], X["a"] > 0.3]), features="a"
    )
    edges = np.array([-1, -0.4, 0.2, 0.5, 1])
    effect = rs.rhale(local, bins=rs.GivenBins(edges))
    check = rs.jump_check(model, local, effect, X, adjust="none").isel(feature=0)
    for k in (1, 2):  # the outer bins end at quantiles of the rows
        share = shares(check.expand_dims(feature=["a"]), "a", X["a"].to_numpy(), k)
        across = model(X.assign(a=edges[k + 1])) - model(X.assign(a=edges[k]))
        derivative = g * (edges[k + 1] - edges[k])
        mean, se, degrees = along(share, across - derivative)
        assert_allclose(check["jump"][k], mean, rtol=1e-9, atol=1e-12)
        assert_allclose(check["jump_se"][k], se, rtol=1e-9)
        of_mean = 2 * stats.t.sf(abs(mean) / se, degrees)
        squares = [(v - np.sum(share * v)) ** 2 for v in (across, derivative)]
        excess, se, degrees = along(share, squares[0] - squares[1])
        spread = np.sqrt(max(excess, 0) / (1 - np.sum(share**2)))
        assert_allclose(check["jump_spread"][k], spread, rtol=1e-9, atol=1e-12)
        of_spread = stats.t.sf(excess / se, degrees) if excess > 0 else 1.0
        expected = min(1, 2 * min(of_mean, of_spread))
        assert_allclose(check["jump_pvalue"][k], expected, rtol=1e-7)
        assert_array_equal(check["jump_pvalue_adjusted"], check["jump_pvalue"])


@pytest.mark.slow
@pytest.mark.parametrize("weighting", ["axis", "rows"])
def test_crowded_rows_are_no_jump(weighting):
    """Smooth models, exponential x, default bins: plain means over the rows flagged all of them.

    At 5 %, 40 samples: the Monte-Carlo error of 5 % is 3.5 %.
    """

    def model(X):
        return 3 * np.exp(-X[:, 0]) + X[:, 0] * X[:, 1]

    flagged = 0
    for seed in range(40):
        X = np.random.default_rng(seed).exponential(size=(1000, 2))
        local = rs.local_effects(model, X, features=[0], progress=False)
        check = rs.jump_check(model, local, rs.rhale(local, weighting=weighting), X)
        assert np.isfinite(check["jump_pvalue"][0, 0])
        flagged += bool((check["jump_pvalue_adjusted"] < 0.05).any())
    assert flagged <= 4


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rounding_of_the_output_is_no_jump(rng, dtype):
    """An output of 100 that moves by 0.001 across a bin keeps 11 digits of that; or 2."""

    def model(X):
        return (100 + 0.01 * X[:, 0] + 0 * X[:, 1]).astype(dtype)

    X = rng.uniform(size=(300, 2))
    local = rs.local_effects(None, X, jacobian=np.tile([0.01, 0.0], (300, 1)))
    check = rs.jump_check(model, local, rs.rhale(local, bins=rs.EqualWidthBins(10)))
    assert_allclose(check["jump"], 0, atol=200 * np.finfo(dtype).eps)
    assert (check["jump_pvalue_adjusted"] > 0.05).all()


def test_rows_of_the_table(rng):
    """X may be left out where local holds all columns; the model is then asked the same."""
    X = uniform(rng)
    local = rs.local_effects(smooth, X, jacobian=slopes, features=["c", "a", "b"])
    effect = rs.rhale(local, bins=rs.EqualWidthBins(4))
    with_X = rs.jump_check(smooth, local, effect, X)
    xr.testing.assert_identical(rs.jump_check(smooth, local, effect), with_X)
    some = local.sel(feature=["a", "b"])
    rest = effect.sel(feature=["a", "b"])
    with pytest.raises(ValueError, match="X must be given here: local holds some columns"):
        rs.jump_check(smooth, some, rest)
    found = rs.jump_check(smooth, some, rest, X)
    assert_array_equal(found["jump"], with_X["jump"].sel(feature=["a", "b"]))


@pytest.mark.parametrize(("given", "form"), in_turn(["X", "no X"], ["array", "names", "numbers"]))
def test_the_model_gets_the_table_in_the_form_that_it_knows(rng, form, given):
    """Columns by number too, as it was fitted."""
    X = uniform(rng)
    plain = rs.local_effects(smooth, X, jacobian=slopes)
    expected = rs.jump_check(smooth, plain, rs.rhale(plain, bins=rs.EqualWidthBins(4)))
    table = {"array": X.to_numpy(), "names": X, "numbers": X.set_axis([0, 1, 2], axis=1)}[form]

    def model(X):
        a, b, c = X.T if form == "array" else (X[name] for name in table.columns)
        return a**2 + np.sin(b) + 3 * c

    local = rs.local_effects(model, table, jacobian=slopes(X))
    effect = rs.rhale(local, bins=rs.EqualWidthBins(4))
    found = rs.jump_check(model, local, effect, table if given == "X" else None)
    assert_allclose(found["jump"], expected["jump"], rtol=1e-12, atol=1e-14)
    assert_allclose(found["jump_pvalue"], expected["jump_pvalue"], rtol=1e-7)


def test_rows_selected_before_the_effect(rng):
    X = uniform(rng)
    local = rs.local_effects(smooth, X, jacobian=slopes).isel(obs=slice(100, 400))
    effect = rs.rhale(local, bins=rs.EqualWidthBins(4))
    check = rs.jump_check(smooth, local, effect)
    xr.testing.assert_identical(rs.jump_check(smooth, local, effect, X.iloc[100:400]), check)
    with pytest.raises(ValueError, match="X must have the rows of local; got 500 rows for 300"):
        rs.jump_check(smooth, local, effect, X)


def test_another_table_is_refused(rng):
    X = uniform(rng)
    local = rs.local_effects(smooth, X, jacobian=slopes)
    effect = rs.rhale(local, bins=rs.EqualWidthBins(4))
    with pytest.raises(ValueError, match="X must be the table of local; column 'b' differs"):
        rs.jump_check(smooth, local, effect, X.assign(b=X["b"] + 1e-9))
    with pytest.raises(ValueError, match="adjust must be one of .*; got 'no'"):
        rs.jump_check(smooth, local, effect, adjust="no")
    with pytest.raises(TypeError, match="local must be the Dataset .*; got DataFrame"):
        rs.jump_check(smooth, X, effect)
    with pytest.raises(KeyError, match="feature must be one of 'a', 'b'.*got 'c'"):
        rs.jump_check(smooth, local.isel(feature=[0, 1]), effect, X)
    with pytest.raises(rs.ModelError, match="one number a row"):
        rs.jump_check(lambda X: 1.0, local, effect)


def test_at_most_two_calls_a_feature(rng):
    model = Counting(smooth)
    X = uniform(rng)
    local = rs.local_effects(None, X, jacobian=slopes)
    rs.jump_check(model, local, rs.rhale(local, bins=rs.EqualWidthBins(20)))
    assert len(model.rows) <= 2 * 3
    assert sum(model.rows) == 2 * 500 * 3  # both edges of every row's bin


def test_a_constant_feature_is_not_asked_about(rng):
    X = uniform(rng).assign(c=1.0)
    model = Counting(smooth)
    local = rs.local_effects(None, X, jacobian=slopes, features=["a", "c"])
    effect = rs.rhale(local, bins=rs.EqualWidthBins(3))
    check = rs.jump_check(model, local, effect, X)
    assert sum(model.rows) == 2 * 500
    assert check["jump_pvalue"].isnull().values.tolist() == [[False] * 3, [True] * 3]


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["precision", "frequency"])
def test_rows_of_weight_zero_see_no_jump(rng, kind):
    """Nor do they widen anything: as if they were not there."""
    X = uniform(rng)
    weights = rng.integers(0, 3, 500).astype(float)
    there = weights > 0
    X.loc[~there, ["a", "b", "c"]] = 50.0

    def model(X):
        return smooth(X) + np.where(X["c"] > 10, 1e6 * X["a"], 0)

    def check(X, weights):
        local = rs.local_effects(None, X, jacobian=slopes, weights=weights, weight_kind=kind)
        return rs.jump_check(model, local, rs.rhale(local, bins=rs.GivenBins([-1, 0, 0.5, 1])))

    found, expected = check(X, weights), check(X[there], weights[there])
    for name in ("jump", "jump_se", "jump_spread", "jump_pvalue", "jump_pvalue_adjusted"):
        assert_allclose(found[name], expected[name], rtol=1e-9, atol=1e-12, err_msg=name)
    if kind == "frequency":
        copies = X.loc[X.index.repeat(weights.astype(int))].reset_index(drop=True)
        repeated = check(copies, np.ones(len(copies)))
        for name in ("jump", "jump_se", "jump_spread", "jump_pvalue"):
            assert_allclose(found[name], repeated[name], rtol=1e-9, atol=1e-12, err_msg=name)


def test_honest_jumps_are_of_the_half_that_estimates(rng):
    example = simulate.OppositeGroups()
    X = example.sample(600, rng=0)
    local = rs.local_effects(None, X, jacobian=example.jacobian)
    effect = rs.rhale(local, bins=rs.EqualWidthBins(5), honest=True, rng=1)
    check = rs.jump_check(example.model, local, effect)
    rest = local.isel(obs=~honest_split(600, 0.5, effect.attrs["honest_seed"]))
    edges = {name: one_feature(effect, name).bin_edges for name in ("x1", "x2", "x3")}
    alone = rs.jump_check(example.model, rest, rs.rhale(rest, bins=rs.GivenBins(edges)))
    for name in ("jump", "jump_se", "jump_spread", "jump_pvalue"):
        assert_allclose(check[name], alone[name], rtol=1e-9, atol=1e-9, err_msg=name)


def test_few_rows_have_no_p_value(rng):
    X = rng.uniform(0, 0.5, (20, 1))
    X[:9, 0] = np.linspace(0.6, 1, 9)
    local = rs.local_effects(None, X, jacobian=np.zeros((20, 1)))
    effect = rs.rhale(local, bins=rs.GivenBins([0, 0.55, 1]))
    check = rs.jump_check(lambda X: np.sign(X[:, 0] - 0.8), local, effect).isel(feature=0)
    assert np.isnan(check["jump_pvalue"].values).tolist() == [False, True]
    assert check["jump"].values.tolist() == [0, 2]


@pytest.mark.thorough
@pytest.mark.parametrize("factor", [1e-9, 1e9])
def test_scale_of_jumps(rng, factor):
    example = simulate.OppositeGroups()
    X = example.sample(300, rng=0)

    def check(factor):
        local = rs.local_effects(None, X, jacobian=lambda X: factor * example.jacobian(X))
        effect = rs.rhale(local, bins=rs.EqualWidthBins(4))
        return rs.jump_check(lambda X: 7 + factor * example.model(X), local, effect)

    found, plain = check(factor), check(1.0)
    # Beside the constant 7 differences of 1e-9 keep seven digits, and a spread without a jump,
    # the root of a difference of squares, half of these.
    rtol, atol = (1e-5, 1e-3) if factor < 1 else (1e-9, 1e-6)
    for name in ("jump", "jump_se", "jump_spread"):
        assert_allclose(found[name] / factor, plain[name], rtol=rtol, atol=atol, err_msg=name)
    assert_array_equal(found["jump_pvalue_adjusted"] < 0.05, plain["jump_pvalue_adjusted"] < 0.05)


def test_more_repeated_rows_than_memory_holds(rng):
    x, g = rng.uniform(size=(2, 20, 1))
    weights = np.full(20, 10**7)
    local = rs.local_effects(
        None, x, jacobian=g, features=0, weights=weights, weight_kind="frequency"
    )
    with pytest.raises(ValueError, match="may be 100,000,000; got 200,000,000"):
        rs.check_unbiased(local, rs.rhale(local, bins=rs.EqualWidthBins(1)))


# --- claimed levels ------------------------------------------------------------------------------

N_SAMPLES = 2000


def squared_steps(n, width, left, right, jump=0.0, at=1.0):
    """E sum (mu(z_(i+1)) - mu(z_(i)))^2 / (2 (n - 1)) over n rows, uniform in a bin; exact.

    mu has slope ``left`` on the share ``at`` of the bin, jumps there, and goes on with ``right``.
    Of a rows on a stretch of length h, spacings and the ends have mean h / (a + 1) and mean square
    2 h^2 / ((a + 1) (a + 2)); the number of rows on the left is binomial.
    """
    a = np.arange(n + 1)
    b = n - a
    h, j = at * width, (1 - at) * width
    of_left, of_right = 2 * h**2 / ((a + 1) * (a + 2)), 2 * j**2 / ((b + 1) * (b + 2))
    mean_left, mean_right = h / (a + 1), j / (b + 1)
    within = left**2 * np.maximum(a - 1, 0) * of_left + right**2 * np.maximum(b - 1, 0) * of_right
    across = (
        jump**2
        + left**2 * of_left
        + right**2 * of_right
        + 2 * jump * (left * mean_left + right * mean_right)
        + 2 * left * right * mean_left * mean_right
    )
    across = np.where((a > 0) & (b > 0), across, 0.0)
    return np.sum(stats.binom.pmf(a, n, at) * (within + across)) / (2 * (n - 1))


def test_squared_steps_of_a_line_and_of_a_jump():
    """The two formulas of the documentation: m^2 h^2 / ((n + 1) (n + 2)), J^2 / (2 (n - 1))."""
    assert squared_steps(30, 0.5, 4, 4) == pytest.approx(4**2 * 0.5**2 / (31 * 32), rel=1e-12)
    # A kink without a bend is a line.
    assert squared_steps(30, 0.5, 4, 4, 0, 0.3) == pytest.approx(4 / (31 * 32), rel=1e-10)
    assert squared_steps(60, 1, 0, 0, 5, 0.4) == pytest.approx(25 / (2 * 59), rel=1e-10)


def pieces(example, edges):
    """For every bin the slopes of mu, its jump and where: one break a bin at most."""
    mu = example._marginals()["x1"].mean
    out = []
    for low, high in pairwise(edges):
        inside = [b for b in getattr(example, "breaks", ()) if low < b < high]
        cut = inside[0] if inside else high
        step = 1e-6 * (high - low)
        ends = mu(np.array([low, low + step, cut - step, cut + step, high - 2 * step, high - step]))
        left, right = (ends[1] - ends[0]) / step, (ends[5] - ends[4]) / step
        jump = ends[3] - ends[2] if inside else 0.0
        out.append((left, right, jump, (cut - low) / (high - low)))
    return out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("example", "edges"),
    [
        (simulate.Toy(), np.linspace(0, 1, 5)),
        (simulate.PiecewiseLinear(sd=0.5), [0, 0.3, 0.42, 0.48, 1]),
        (simulate.Quadratic(), np.linspace(0, 1, 5)),
        (simulate.PiecewiseLinear.independent(), [0, 30, 50, 70, 100]),
    ],
    ids=["toy", "piecewise linear", "quadratic", "independent"],
)
def test_bin_error_is_unbiased_but_for_what_is_known(example, edges):
    """math [13] and [47], [51], [52]: 2000 samples of 500 rows; 16 bins in all.

    Every mean is within three Monte-Carlo standard errors. Of 16 right ones, one would fail with
    probability 4 %; the seed is fixed.
    """
    rng = np.random.default_rng(13)
    edges = np.asarray(edges, dtype=float)
    span, side_by_side = edges[-1], 50
    n_features, n_bins = N_SAMPLES // side_by_side, len(edges) - 1
    # Fifty samples beside each other make one feature; nothing reaches from bin to bin.
    X = example.sample(500 * N_SAMPLES, rng=rng)
    g = example.jacobian(X)[:, 0].reshape(-1, n_features)
    shift = np.repeat(np.arange(side_by_side) * span, 500)[:, None]
    x = X["x1"].to_numpy().reshape(-1, n_features) + shift
    one = local_of(X["x1"][:500], g[:500, 0])
    true = example.truth(rs.rhale(one, bins=rs.GivenBins(edges)).assign_coords(feature=["x1"]))
    local = rs.local_effects(None, x, jacobian=g)
    many = np.append(
        (edges[:-1] + np.arange(side_by_side)[:, None] * span).ravel(), shift[-1] + span
    )
    found = rs.check_unbiased(local, rs.rhale(local, bins=rs.GivenBins(many)), rng=0)
    of_bins = {
        name: found[name].values.reshape(-1, n_bins)
        for name in found.data_vars
        if "bin" in found[name].dims
    }
    n_obs = of_bins["n_obs"]
    assert n_obs.shape == (N_SAMPLES, n_bins)
    for k, (left, right, jump, at) in enumerate(pieces(example, edges)):
        width = edges[k + 1] - edges[k]
        bias = {n: squared_steps(n, width, left, right, jump, at) for n in np.unique(n_obs[:, k])}
        error = of_bins["bin_error"][:, k] + [bias[n] for n in n_obs[:, k]]
        error -= float(true["bin_error"][0, k])
        mcse = error.std(ddof=1) / np.sqrt(N_SAMPLES)
        assert abs(error.mean()) < 3 * mcse, (k, error.mean() / mcse)
        # And sigma^2 with that bias: what is taken from the one is in the other.
        within = of_bins["heterogeneity_within"][:, k] ** 2 - [bias[n] for n in n_obs[:, k]]
        within -= float(true["heterogeneity"][0, k]) ** 2
        mcse = within.std(ddof=1) / np.sqrt(N_SAMPLES)
        assert abs(within.mean()) < 4 * mcse, (k, within.mean() / mcse)


ERRORS = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "two-point": lambda rng, shape: rng.choice([-1.0, 1.0], shape),
    "uniform": lambda rng, shape: rng.uniform(-np.sqrt(3), np.sqrt(3), shape),
}


class Bins:
    """So many bins of n rows each, uniform in x: what the check makes of them, at once."""

    def __init__(self, rng, n_bins, n, errors, *, ratio=0.0, weight=None):
        """``ratio``: bin error of a slope over the variance of the errors, which is 1."""
        u = np.sort(rng.uniform(size=(n_bins, n)), axis=1)
        g = np.sqrt(12 * ratio) * u + ERRORS[errors](rng, (n_bins, n))
        w = np.ones_like(g) if weight is None else weight(rng, g.shape)
        k = np.repeat(np.arange(n_bins), n)
        self.rows = bin_error.OrderedRows(
            k,
            (u + np.arange(n_bins)[:, None]).ravel(),
            g.ravel(),
            None if weight is None else w.ravel(),
        )
        total = w.sum(axis=1)
        self.mean = np.sum(w * g, axis=1) / total
        m2 = np.sum(w * (g - self.mean[:, None]) ** 2, axis=1)
        self.variance = m2 / (total - np.sum(w**2, axis=1) / total)
        self.found = bin_error.differences(self.rows, self.mean)
        self.weights = bin_error.pair_weights(self.rows, n_bins)

    def tested(self):
        """Ratios and p-values."""
        return bin_error.von_neumann(
            self.rows, self.mean, self.variance, self.found.variance, self.weights
        )

    def rejected(self):
        """Share of bins with a p-value below 5 %."""
        _, p = self.tested()
        return np.mean(p < 0.05)


@pytest.mark.slow
@pytest.mark.parametrize("n", [10, 100])
@pytest.mark.parametrize("errors", ERRORS)
def test_size_of_the_test_and_of_that_by_ranks(n, errors):
    """10,000 bins: the Monte-Carlo error of a size of 5 % is 0.22 %."""
    bins = Bins(np.random.default_rng(n), 10_000, n, errors)
    assert 0.04 < bins.rejected() < 0.06
    _, p = bin_error.rank_von_neumann(bins.rows, 10_000)
    # The larger of two p-values: below 5 % in small bins.
    assert (0.01 if n == 10 else 0.03) < np.mean(p < 0.05) < 0.07


SPREADS = {
    "proportional to z": lambda z: z,
    "proportional to its square": np.square,
    "a narrow peak": lambda z: 0.1 + 5 * (np.abs(z - 0.5) < 0.03),
}
SKEWED = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "log-normal": lambda rng, shape: np.exp(rng.normal(size=shape)) - np.exp(0.5),
    "t3": lambda rng, shape: rng.standard_t(3, shape),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spread", "errors"), [*in_turn(SPREADS, SKEWED), ("a narrow peak", "log-normal")]
)
def test_a_spread_that_moves_is_no_bin_error(spread, errors):
    """Bins of 200 rows at 5 %, in which RVN alone rejects 10 to 40 %.

    5,000 bins: a Monte-Carlo error of .3 %. With log-normal errors in a peak of 12 rows one product
    or two decide, and 10 % are rejected.
    """
    rng = np.random.default_rng(200)
    z = np.sort(rng.uniform(size=(5000, 200)), axis=1)
    g = SPREADS[spread](z) * SKEWED[errors](rng, z.shape)
    k = np.repeat(np.arange(5000), 200)
    rows = bin_error.OrderedRows(k, (z + np.arange(5000)[:, None]).ravel(), g.ravel(), None)
    mean, variance = g.mean(axis=1), g.var(axis=1, ddof=1)
    asked = (
        rows,
        mean,
        variance,
        bin_error.differences(rows, mean).variance,
        bin_error.pair_weights(rows, 5000),
    )
    assert np.mean(bin_error.von_neumann(*asked)[1] < 0.05) > 0.09
    most = 0.12 if (spread, errors) == ("a narrow peak", "log-normal") else 0.06
    assert np.mean(bin_error.tested(*asked)[1] < 0.05) < most


@pytest.mark.slow
@pytest.mark.parametrize("errors", ERRORS)
def test_power_of_the_test(errors):
    """n = 25 and a slope whose bin error is the variance; a Monte-Carlo error of 0.4 %."""
    assert Bins(np.random.default_rng(0), 10_000, 25, errors, ratio=1.0).rejected() > 0.8


@pytest.mark.slow
@pytest.mark.parametrize(("n", "errors"), [*((25, errors) for errors in ERRORS), (100, "normal")])
def test_precision_weights_make_the_ratio_more_variable_and_keep_the_size(n, errors):
    """Weights 1 or 2, at random, that have nothing to do with the effects.

    10,000 bins: the Monte-Carlo error of a variance is 1.4 %; its formula is of first order.
    """
    bins = Bins(
        np.random.default_rng(n), 10_000, n, errors, weight=lambda rng, s: rng.choice([1.0, 2.0], s)
    )
    ratio, p = bins.tested()
    assert 0.035 < np.mean(p < 0.05) < 0.065
    assert ratio.mean() == pytest.approx(2, abs=4 * ratio.std() / np.sqrt(10_000))
    middle = (p > 0.1) & (p < 0.9)
    assert middle.mean() == pytest.approx(0.8, abs=0.02)
    unweighted = 4 * (n - 2) / (n**2 - 1)
    assert 1.05 < ratio.var() / unweighted < 1.4


def covered(estimate, se, truth):
    """The share of 4,000 intervals that hold the truth; a Monte-Carlo error of 0.35 %."""
    return np.mean(np.abs(estimate - truth) <= 1.96 * se)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "errors"), [*((100, errors) for errors in ERRORS), (400, "normal")])
def test_coverage_of_the_bin_error_and_of_the_heterogeneity_within(n, errors):
    """The bias of a line is below 0.001."""
    bins = Bins(np.random.default_rng(n), 4000, n, errors, ratio=0.75)
    excess = bins.variance - bins.found.variance
    se = bin_error.bin_error_se(bins.found, excess, bins.weights)
    assert 0.91 < covered(excess, se, 0.75) < 0.98
    if errors == "normal":
        se = bin_error.within_se(bins.found, bins.weights)
        assert 0.91 < covered(np.sqrt(bins.found.variance), se, 1) < 0.98


@pytest.mark.slow
@pytest.mark.parametrize("ratio", [0.0, 0.75])
def test_coverage_with_very_unequal_weights(ratio):
    """Exponential weights, 4,000 bins of 400 rows."""
    bins = Bins(
        np.random.default_rng(2),
        4000,
        400,
        "normal",
        ratio=ratio,
        weight=lambda rng, s: rng.exponential(size=s),
    )
    excess = bins.variance - bins.found.variance
    se = bin_error.bin_error_se(bins.found, excess, bins.weights)
    assert 0.91 < covered(excess, se, ratio) < 0.98
    se = bin_error.within_se(bins.found, bins.weights)
    assert 0.91 < covered(np.sqrt(bins.found.variance), se, 1) < 0.98


@pytest.mark.slow
def test_size_of_the_check_for_jumps():
    """100 smooth additive effects in 10 bins of 50 rows: at most 5 % of 1000.

    Averages along the bin err less than the rows of an additive model vary, so that hardly any is
    rejected; `test_a_step_is_seen_by_its_mean` and the tests beside it have what must be.
    """
    X = np.random.default_rng(5).uniform(-1, 1, (500, 100))
    local = rs.local_effects(None, X, jacobian=2 * X + np.cos(3 * X) * 3)
    effect = rs.rhale(local, bins=rs.EqualWidthBins(10))
    check = rs.jump_check(lambda X: (X**2 + np.sin(3 * X)).sum(axis=1), local, effect)
    rejected = float((check["jump_pvalue"] < 0.05).mean())
    # 5 % and three Monte-Carlo errors of 0.7 %.
    assert rejected < 0.05 + 0.021


@pytest.mark.thorough
def test_debias_drops_the_intervals_of_what_it_replaces(rng):
    """reliability.md 1: heterogeneity_output of .122 had an interval of [.838, 1.146]."""
    local = local_of(*base(rng))
    effect = rs.std_error(rs.rhale(local, bins=rs.GivenBins(EDGES)))
    boot = rs.bootstrap(local, effect, n_resamples=40, rng=0)
    known = rs.confband(rs.confint(effect, boot), rng=0)
    check = rs.check_unbiased(local, known, rng=0)
    better = rs.debias(known, check)
    intervals = {name for name in known.data_vars if name.endswith(("_ci", "_band"))}
    replaced = {
        name
        for name in ("heterogeneity", "heterogeneity_index", "heterogeneity_output")
        if name not in known or not better[name].identical(known[name])
    }
    assert len(replaced) == 3
    gone = {f"{name}_ci" for name in replaced}
    assert gone < intervals
    assert intervals & set(better.data_vars) == intervals - gone
    for name in intervals - gone:
        xr.testing.assert_identical(better[name], known[name])


@pytest.mark.parametrize("apart", [1.0, 1e6, 1e12, 1e24, 1e100])
def test_two_rows_have_no_error_of_a_density_bias(apart):
    """reliability.md 19: infinite where the weights of two rows were 1e24 apart."""
    x, g = np.array([[0.05, 0.4, 0.6, 0.9, 1.0]]).T, np.array([[1.0, 2.0, 3.0, 5.0, 4.0]]).T
    weights = np.array([1, apart, 1, 1 / apart, 1])
    local = rs.local_effects(None, x, jacobian=g, features=0, weights=weights)
    effect = rs.rhale(local, bins=rs.GivenBins([0, 0.5, 1]), weighting="rows")
    error = rs.check_unbiased(local, effect, rng=0)["density_bias_se"].values[0]
    assert np.isnan(error[0])
    assert not np.isinf(error[1])


def test_rows_in_chunks(monkeypatch):
    """All rows up to a number, then some, with their numbers named; lines are refused."""
    pytest.importorskip("dask", reason="dask is not installed")
    example = rs.simulate.Quadratic()
    rows = example.sample(4000, rng=0)
    memory = rs.local_effects(None, rows, jacobian=example.jacobian)
    chunked = memory.chunk(obs=611)
    few = rs.EqualWidthBins(4)
    effect = rs.rhale(memory, bins=few)
    whole = rs.check_unbiased(memory, effect, rng=0)
    xr.testing.assert_identical(rs.check_unbiased(chunked, effect, rng=0), whole)
    other = rs.rhale(memory.isel(obs=slice(3999)), bins=few)
    with pytest.raises(ValueError, match="local must be the Dataset that effect was made from"):
        rs.check_unbiased(chunked, other)
    monkeypatch.setattr(chunks, "MAX_ROWS", 1000)
    found = rs.check_unbiased(chunked, effect, rng=0)
    assert found.attrs["n_rows_read"] == 1000
    error = np.hypot(found["bin_error_se"], whole["bin_error_se"])
    assert (abs(found["bin_error"] - whole["bin_error"]) < 4 * error).all()
    xr.testing.assert_identical(found["heterogeneity"], whole["heterogeneity"])
    np.testing.assert_array_equal(found["verdict"], whole["verdict"])
    # Shares are of the variance of the rows that are read.
    assert "sigma2_star" not in whole
    within = found["heterogeneity_within"].values[0] ** 2
    assert_allclose(found["sigma2_star"][0], within + found["bin_error"][0], rtol=1e-12)
    share = 1 - within / found["sigma2_star"].values[0]
    assert_allclose(rs.tidy(found)["bin_error_share"][: len(share)], share, rtol=1e-9)
    better = rs.debias(effect, found)
    xr.testing.assert_identical(better["sigma2_star"], found["sigma2_star"])
    # Lines without a slope are none, and a slope may be unknown.
    flat = effect.assign(slope=(0 * effect["effect"]).where(effect["bin"] > 0))
    xr.testing.assert_identical(
        rs.check_unbiased(chunked, flat, rng=0)["bin_error"], found["bin_error"]
    )
    with pytest.raises(ValueError, match="effect must have bins without lines"):
        rs.check_unbiased(chunked, rs.rhale(memory, bins=rs.AdaptiveBins()))
