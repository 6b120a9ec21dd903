"""Sizes of effects by rows and by hand, their correction, and the scale of outcomes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import rhale_stats as rs
from rhale_stats.arrays import influence, quadratic
from rhale_stats.effects.sizes import (
    _draws,
    _of_curve,
    _Scale,
    importances,
    largest,
    square_of_curve,
)
from rhale_stats.schema.feature_result import one_feature
from tests.helpers import changed, daily, in_turn, local_of

N = 300
EDGES = np.array([-1, -0.5, 0.1, 0.4, 1])
SIZES = ("importance", "aled", "aler_min", "aler_max")


@pytest.fixture
def table(rng):
    x = rng.uniform(-1, 1, (N, 2))
    return x, np.column_stack([1 + 3 * x[:, 0], 0 * x[:, 0]]) + rng.normal(size=(N, 2))


@pytest.mark.thorough
@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("kind", ["constant", "linear"])
@pytest.mark.parametrize("centering", ["mean", "start", "integral"])
@pytest.mark.parametrize("weighting", ["axis", "rows"])
def test_sizes_are_those_over_rows(kind, centering, weights, weighting, table, rng):
    """The standard deviation (ddof 0) of the curve at the rows, whatever its centring."""
    x, g = table
    w = rng.uniform(0.2, 1, N) if weights else np.ones(N)
    rule = rs.AdaptiveBins(20) if kind == "linear" else rs.GivenBins(EDGES)
    effect = rs.rhale(
        local_of(x, g, weights=w), bins=rule, centering=centering, weighting=weighting
    )
    if kind == "linear":
        assert (effect["slope"] != 0).any()
    found = rs.effect_sizes(effect)
    for number in (0, 1):
        row = one_feature(effect, number)
        at_rows = rs.predict(effect, x[:, number], number).values
        mean = np.average(at_rows, weights=w)
        spread = np.sqrt(np.average((at_rows - mean) ** 2, weights=w))
        assert found["importance"][number].item() == pytest.approx(spread, rel=1e-9)
        # Of the rows their mean and variance in every bin are known.
        aled = np.average(np.abs(at_rows - mean), weights=w)
        assert found["aled"][number].item() == pytest.approx(aled, rel=0.03)
        # The extremes are at edges, those of the cells where there are some.
        curve = row.curve.values - mean
        assert found["aler_min"][number].item() == pytest.approx(curve.min(), rel=1e-9)
        assert found["aler_max"][number].item() == pytest.approx(curve.max(), rel=1e-9)
    effect = effect.rhale.in_bins()
    for name in ("heterogeneity_index", "heterogeneity_output"):
        assert_array_equal(found[name], effect[name])


@pytest.mark.parametrize("share", [0.5, 0.1, 0.93])
def test_aled_of_a_feature_of_two_values(share):
    """users.md: .73 of `yr`, a feature of two values that moves 82."""
    rng = np.random.default_rng(0)
    x = (rng.random((400, 1)) < share).astype(float)
    local = local_of(x, np.full((400, 1), 82.0))
    effect = rs.rhale(local, bins=rs.GivenBins([0, 1]))
    p = x.mean()
    y = rng.normal(0, 60, 501)
    found = rs.effect_sizes(effect, y=y)
    y = y - np.median(y)
    scaled = [50 * np.mean(y[y > 0] <= 82 * (1 - p)), 50 * np.mean(y[y < 0] >= -82 * p)]
    # Shares of the two values as 32 places have them.
    assert found["naled"].item() == pytest.approx(np.dot([p, 1 - p], scaled), rel=0.05)
    assert found["aled"].item() == pytest.approx(2 * 82 * p * (1 - p), rel=1e-9)
    assert found["importance"].item() == pytest.approx(82 * np.sqrt(p * (1 - p)), rel=1e-9)


@pytest.mark.parametrize(
    ("n_bins", "draw"), in_turn([1, 2, 7], ["uniform", "exponential", "normal", "beta"])
)
def test_aled_is_the_mean_over_the_rows(draw, n_bins):
    """Of one bin as of many: it was 0 of a straight line in one bin."""
    rng = np.random.default_rng(1)
    x = {
        "uniform": rng.uniform(-1, 1, 2000),
        "exponential": np.minimum(rng.exponential(1, 2000), 6),
        "normal": rng.normal(0, 1, 2000),
        "beta": rng.beta(0.3, 0.6, 2000),
    }[draw][:, None]
    effect = rs.rhale(local_of(x, 1 + x**2), bins=rs.EqualWidthBins(n_bins))
    at_rows = rs.predict(effect, x[:, 0], 0).values
    expected = np.abs(at_rows - at_rows.mean()).mean()
    # Two moments a bin: least exact for one bin of very skewed rows.
    found = rs.effect_sizes(effect, percentiles=(0, 100))
    assert found["aled"].item() == pytest.approx(expected, rel=0.06)


def test_a_few_distant_rows_decide_no_size():
    """Of 1,000 rows two are far away; sizes with and without them, by brute force."""
    rng = np.random.default_rng(2)
    x = np.append(rng.uniform(0, 1, 998), [9.5, 10])[:, None]
    effect = rs.rhale(
        local_of(x, np.where(x > 1, 5, 1) + 0.1 * rng.normal(size=x.shape)),
        bins=rs.GivenBins([0, 0.5, 1, 10]),
    )
    near = x[x < 1]
    sizes, table = rs.effect_sizes(effect), rs.glance(effect)
    assert sizes["importance"].item() == pytest.approx(near.std(), rel=0.03)
    assert (table["curve_max"] - table["curve_min"]).item() == pytest.approx(1, abs=0.02)
    # Widths 0.5 and 0.5 of the inner bins count, and not 9 of the last.
    variance = effect["heterogeneity"].values[0] ** 2
    n = effect["n_obs"].values[0]
    index = np.sum([0.5, 0.5] * (variance * (n - 1) / n)[:2])
    assert sizes["heterogeneity_index"].item() == pytest.approx(index, abs=1e-12)
    assert table["heterogeneity_index"].item() == pytest.approx(index, abs=1e-12)
    at_rows = rs.predict(effect, x[:, 0], 0).values
    whole = rs.effect_sizes(effect, percentiles=(0, 100))
    assert whole["importance"].item() == pytest.approx(at_rows.std(), rel=0.02)
    assert whole["importance"].item() > 3 * sizes["importance"].item()
    table = rs.glance(effect, percentiles=(0, 100))
    assert (table["curve_max"] - table["curve_min"]).item() == pytest.approx(
        np.ptp(effect["curve"].values)
    )
    assert "all rows" in str(rs.summary(effect, percentiles=(0, 100)))
    assert "inner 98 % of the rows" in str(rs.summary(effect))
    for wrong in ((99, 1), [[1], [1, 2]], (True, False), "ab"):
        with pytest.raises(ValueError, match="percentiles must be two numbers"):
            rs.effect_sizes(effect, percentiles=wrong)


def by_hand():
    """Effect 1, then -2, in bins of width 1 with two rows each: curve 0, 1, -1 from its start."""
    x = np.array([0.0, 0.5, 1.5, 2.0])[:, None]
    g = np.array([1.0, 1, -2, -2])[:, None]
    return local_of(x, g), rs.rhale(local_of(x, g), bins=rs.GivenBins([0, 1, 2]))


def test_sizes_by_hand():
    # At the rows 0, .5, 0, -1, with mean -1/8. In the second bin the rows' places .5 and 1, with
    # mean .75 and variance .0625, are those of a beta distribution with a = 1.5 and b = .5, and the
    # curve is 0 at .5625.
    found = rs.effect_sizes(by_hand()[1])
    assert_allclose(found["importance"], np.std([0, 0.5, 0, -1]), rtol=1e-12)
    place = stats.beta(1.5, 0.5)
    away = 2 * place.expect(lambda u: np.abs(u - 0.5625))
    assert_allclose(found["aled"], (0.375 + away) / 2, rtol=1e-6)
    assert_allclose(found["aler_min"], -0.875, rtol=1e-12)
    assert_allclose(found["aler_max"], 1.125, rtol=1e-12)


def test_sizes_on_the_scale_of_outcomes_by_hand():
    """Median 0; above it .1, .7, 3, below -.1, -.5, -.8, -2.

    The centred curve is .125, 1.125, -.875 at edges: above 1 of 3, 2 of 3, beyond 3 of 4. In the
    first bin it rises from there, and is above .7, 2 of 3, from .575 of the width on. In the second
    one it falls: below .7, .1, -.1, -.5 and -.8 from .2125, .5125, .6125, .8125 and .9625 on.
    """
    y = np.array([0.1, 0.7, 3, 0, 0, -0.1, -0.5, -0.8, -2, 0])
    assert np.median(y) == 0
    found = rs.effect_sizes(by_hand()[1], y=y)
    first, second = stats.beta(0.5, 1.5), stats.beta(1.5, 0.5)
    expected = 50 * (1 + first.sf(0.575)) / 3
    from_top = [(0, 0.2125, 2 / 3), (0.2125, 0.5125, 1 / 3)]
    from_top += [(0.6125, 0.8125, 1 / 4), (0.8125, 0.9625, 2 / 4), (0.9625, 1, 3 / 4)]
    expected += 50 * sum(share * (second.cdf(b) - second.cdf(a)) for a, b, share in from_top)
    assert_allclose(found["naled"], expected / 2, rtol=0.05)
    assert_allclose(found["naler_max"], 50 * 2 / 3, rtol=1e-12)
    assert_allclose(found["naler_min"], -50 * 3 / 4, rtol=1e-12)
    # Moved and stretched together with the effects.
    local = local_of(
        np.array([0.0, 0.5, 1.5, 2.0])[:, None], 8.0 * np.array([[1], [1], [-2], [-2]])
    )
    scaled = rs.effect_sizes(rs.rhale(local, bins=rs.GivenBins([0, 1, 2])), y=8 * y + 100)
    assert_allclose(scaled["naled"], found["naled"], rtol=1e-12)
    # Larger than all outcomes.
    far = rs.effect_sizes(by_hand()[1], y=y / 1e6)
    assert_allclose([far["naler_min"].item(), far["naler_max"].item()], [-50, 50])
    assert_allclose(far["naled"], 50)


def test_weights_of_outcomes_count_them(rng):
    X = pd.DataFrame({"x": rng.normal(size=80), "z": rng.normal(size=80)})
    y, weights = X.x + rng.normal(size=80), rng.integers(1, 30, 80)
    every = np.repeat(np.arange(80), weights)
    options = {"weights": weights, "weight_kind": "frequency"}
    bins = rs.GivenBins({"x": [-4.0, -1, 0, 1, 4]})
    effects = [
        rs.ale(lambda X: X.x * (1 + X.z), *each, ["x"], bins=bins, **more)
        for each, more in (((X,), options), ((X.iloc[every].reset_index(drop=True),), {}))
    ]
    counted = rs.effect_sizes(effects[0], y=y, weights=weights)
    written_out = rs.effect_sizes(effects[1], y=y.iloc[every])
    for name in ("aled", "naled", "naler_min", "naler_max"):
        assert_allclose(counted[name], written_out[name], rtol=1e-9)
    with pytest.raises(ValueError, match="weights must be those of y, because the effect has"):
        rs.effect_sizes(effects[0], y=y)


def test_correction_and_intervals_by_hand(table):
    x, g = table
    local = local_of(x, g)
    effect = rs.rhale(local, bins=rs.GivenBins(EDGES))
    boot = rs.bootstrap(local, effect, n_resamples=200, rng=0)
    y = x.sum(axis=1)
    found = rs.effect_sizes(effect, boot, y=y, level=0.8)
    for name in (*SIZES, "heterogeneity_index", "heterogeneity_output"):
        assert found[f"{name}_ci"].attrs["ci_prob"] == 0.8
        assert "bias-corrected" in found[f"{name}_ci"].attrs["method"]
    # All sizes are those of one curve, closer to 0.
    shrunk = found["importance_corrected"] / found["importance"]
    for name in SIZES:
        assert_allclose(found[f"{name}_corrected"], shrunk * found[name], rtol=1e-12)
    width = np.diff(EDGES)
    assert_allclose(
        found["heterogeneity_index_corrected"],
        (effect["heterogeneity"] ** 2 * width).sum("bin"),
        rtol=1e-12,
    )
    for name in ("naled", "naler_min", "naler_max"):
        bounds = found[f"{name}_ci"].values
        assert (bounds[:, 0] <= bounds[:, 1]).all()
        assert (np.abs(bounds) <= 50).all()
        assert (np.abs(found[f"{name}_corrected"]) <= 50).all()
    # Of no effect the size is noise, and smaller once corrected.
    assert found["importance_corrected"][1] < found["importance"][1]
    assert_array_equal(found["ci_bound"], ["lower", "upper"])


def rows_of_curve(effect, number, x, w):
    """Covariance of the centred curve at the rows, by its loadings there, as (row, row)."""
    fit = one_feature(effect, number).fit
    at = influence.loadings(fit.pieces, x, "start")
    at = influence.Loadings(*(part - np.average(part, axis=0, weights=w) for part in at))
    return influence.covariance(at, fit.noise, None)


@pytest.mark.thorough
@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("kind", ["constant", "linear"])
@pytest.mark.parametrize("weighting", ["axis", "rows"])
def test_noise_is_the_mean_variance_of_the_curve_over_the_rows(
    kind, weights, weighting, table, rng
):
    x, g = table
    w = rng.uniform(0.2, 1, N) if weights else np.ones(N)
    rule = rs.AdaptiveBins(20) if kind == "linear" else rs.GivenBins(EDGES)
    effect = rs.rhale(local_of(x, g, weights=w), bins=rule, weighting=weighting)
    found = rs.effect_sizes(effect)
    for number in (0, 1):
        row = one_feature(effect, number)
        square = square_of_curve(row, row.fit)
        assert square.value == pytest.approx(found["importance"][number].item() ** 2, rel=1e-9)
        covariance = rows_of_curve(effect, number, x[:, number], w)
        share = w / w.sum()
        assert square.expected == pytest.approx(share @ np.diagonal(covariance), rel=1e-9)
        assert square.squares == pytest.approx(share @ covariance**2 @ share, rel=1e-9)
        curve = rs.predict(effect, x[:, number], number).values
        curve = share * (curve - share @ curve)
        assert square.moved == pytest.approx(curve @ covariance @ curve, rel=1e-9)
        corrected = found["importance_corrected"][number].item()
        assert corrected == pytest.approx(np.sqrt(max(square.value - square.expected, 0)))


@pytest.mark.parametrize("kind", ["cells", "bins", "lines"])
def test_groups_of_one_row_have_the_noise_of_rows(kind, rng):
    """Up to the factors of groups, and to borrowed variances of cells."""
    x, g = rng.uniform(-1, 1, (600, 1)), rng.normal(size=(600, 1)) + np.linspace(0, 1, 600)[:, None]
    local = local_of(x, g)
    rule = rs.AdaptiveBins(20) if kind == "lines" else rs.EqualWidthBins(5)
    effect = rs.rhale(local, bins=rule, weighting="axis" if kind == "cells" else "rows")
    grouped = rs.std_error(effect, local, groups=np.arange(600))
    one, two = rs.effect_sizes(rs.std_error(effect)), rs.effect_sizes(grouped)
    assert_allclose(one["importance_corrected"], two["importance_corrected"], rtol=0.02)
    assert_allclose(one["importance_ci"], two["importance_ci"], rtol=0.1, atol=0.01)


def test_noise_of_levels(rng):
    X = np.column_stack([rng.integers(0, 3, 200), rng.normal(size=200)])
    effect = rs.ale(lambda X: X[:, 0] * (1 + X[:, 1]), X, features=0, categorical=0)
    row, found = one_feature(effect, 0), rs.effect_sizes(effect)
    share = row["level_share"].values
    centred = np.eye(3) - share
    variance = np.diagonal(centred @ row["curve_cov"].values @ centred.T)
    square = found["importance"].item() ** 2
    assert found["importance_corrected"].item() ** 2 == pytest.approx(square - share @ variance)
    assert found["importance_p_value"].item() < 0.001


@pytest.mark.parametrize("noise", daily(["normal", "log-normal"]))
@pytest.mark.slow
def test_without_an_effect_nothing_is_left(noise, rng):
    """150 samples: 90 % of the bias of the square are gone, and P is small as often as it says."""
    squares, left, small = [], [], 0
    for _ in range(2):
        x = rng.uniform(-1, 1, (150, 75))
        e = rng.normal(size=x.shape)
        if noise == "log-normal":
            e = np.exp(e) - np.exp(0.5)
        effect = rs.rhale(local_of(x, (0.3 + 0.7 * np.abs(x)) * e), bins=rs.GivenBins(EDGES))
        for number in range(75):
            row = one_feature(effect, number)
            square = square_of_curve(row, row.fit)
            squares.append(square.value)
            left.append(square.corrected)
            small += square.p_value() <= 0.05
    error = np.std(left) / np.sqrt(150)
    assert abs(np.mean(left)) < 0.1 * np.mean(squares) + 2 * error
    assert stats.binomtest(small, 150, 0.075, alternative="greater").pvalue > 0.001


@pytest.mark.thorough
@pytest.mark.parametrize(("direction", "size"), in_turn([0, 1, None], [0, 1, 3]))
def test_intervals_of_sizes_hold_them(direction, size, rng):
    """Noise with one large direction, and an effect along it, beside it, and along all."""
    variance = np.array([1, 0.25, 0.11, 0.06, 0.04])
    true = np.ones(5) if direction is None else np.eye(5)[direction]
    true = size * true / np.linalg.norm(true)
    covered = 0
    for _ in range(200):
        value = true + np.sqrt(variance) * rng.normal(size=5)
        found = quadratic.square(value, np.eye(5), np.diag(variance), 200.0)
        low, high = found.interval(0.95)
        covered += low <= size <= high
    assert stats.binomtest(covered, 200, 0.93, alternative="less").pvalue > 0.001


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:Bins without rows")
@pytest.mark.parametrize("weighting", ["axis", "rows"])
def test_sizes_beside_a_gap(weighting, rng):
    """As if the rows beyond it were not there; a replicate that has no curve has no size."""
    x = np.concatenate([rng.uniform(0, 1, 8), rng.uniform(2, 4, 392)])[:, None]
    g, y = rng.normal(size=(400, 1)), rng.normal(size=400)
    whole, part = local_of(x, g), local_of(x[8:], g[8:])
    effect = rs.rhale(whole, bins=rs.GivenBins([0, 1, 2, 3, 4]), weighting=weighting)
    found = rs.effect_sizes(effect, rs.bootstrap(whole, effect, n_resamples=20, rng=0), y=y)
    alone = rs.rhale(part, bins=rs.GivenBins([2, 3, 4]), weighting=weighting)
    expected = rs.effect_sizes(alone, y=y)
    # Other rows have other cells: those of whole are as wide as its own range says.
    rtol = 1e-10 if weighting == "rows" else 0.15
    for name in (*SIZES, "naled", "naler_min", "naler_max"):
        assert_allclose(found[name], expected[name], rtol=rtol)
        assert np.isfinite(found[f"{name}_ci"]).all()


@pytest.mark.parametrize("boots", [False, True])
def test_a_constant_feature_has_no_size(boots, table):
    x, g = table
    x = np.column_stack([x[:, 0], np.ones(N)])
    local = local_of(x, g)
    effect = rs.rhale(local, bins=rs.EqualWidthBins(3))
    boot = rs.bootstrap(local, effect, n_resamples=20, rng=0) if boots else None
    found = rs.effect_sizes(effect, boot, y=x[:, 0])
    for name in found.data_vars:
        assert np.isfinite(found[name][0]).all()
        assert np.isnan(found[name][1]).all()


@pytest.mark.thorough
def test_replicates_none_of_which_has_a_curve(rng):
    """Fifty bins of one or two rows: some bin is always left empty."""
    x = np.linspace(0, 1, 100)[:, None]
    local = local_of(x, rng.normal(size=(100, 1)))
    effect = rs.rhale(local, bins=rs.EqualWidthBins(50), weighting="rows")
    boot = rs.bootstrap(local, effect, n_resamples=20, rng=0)
    assert (boot["n_empty"] > 0).all()
    found = rs.effect_sizes(effect, boot, y=x[:, 0])
    assert np.isfinite(found["aled"]).all()
    for name in ("aled", "naled"):
        assert np.isnan(found[f"{name}_ci"]).all()
    for method in ("percentile", "basic", "bca"):
        assert np.isnan(rs.confint(effect, boot, method=method)["curve_ci"]).all()


def test_unusable_sizes(table):
    x, g = table
    local = local_of(x, g)
    effect = rs.rhale(local, bins=rs.GivenBins(EDGES))
    with pytest.raises(ValueError, match="moments that sizes need"):
        rs.effect_sizes(rs.debias(effect, rs.check_unbiased(local, effect)))
    boot = rs.bootstrap(local, effect, n_resamples=4, rng=0)
    with pytest.raises(ValueError, match="its edges differ"):
        rs.effect_sizes(rs.rhale(local, bins=rs.EqualWidthBins(3)), boot)
    with pytest.raises(TypeError, match="boot must be"):
        rs.effect_sizes(effect, effect)
    for y, message in (
        ([], r"shape \(0,\)"),
        ([[1.0, 2.0]], r"shape \(1, 2\)"),
        ([1.0, np.nan], "values that are not finite"),
    ):
        with pytest.raises(ValueError, match=f"y must be .* got .*{message}"):
            rs.effect_sizes(effect, y=y)


@pytest.mark.parametrize("rounding", [-2e-20, 0.0, 2e-20])
def test_a_size_known_up_to_rounding_is_known(rounding):
    """Levels with one step in every row: noise adds 1e-20 or -1e-20, and the interval is no NaN."""
    found = quadratic.Square(0.5, rounding, 5e-40, 0.0, 525.0).interval(0.95)
    assert found == pytest.approx(0.5**0.5)


@pytest.mark.thorough
def test_levels_of_one_effect_have_an_interval_without_width():
    """An additive number of few values: the errors of its steps are rounding, in either sign."""
    rng = np.random.default_rng(1)
    for scale in (1.0, 1e-3, 37.0):
        X = pd.DataFrame(
            {
                "age": rng.choice(
                    [17.5, 22, 27, 32, 37, 42], 4000, p=[0.02, 0.3, 0.3, 0.2, 0.1, 0.08]
                )
            }
        )
        X["b"] = rng.choice([1.0, 2.0, 3.0, 4.0], 4000)
        effect = rs.ale(
            lambda X, scale=scale: scale * (-0.0159 * X["age"] - 0.3 * X["b"] + 12.3), X,
            categorical=["age", "b"],
        )  # fmt: skip
        found = rs.effect_sizes(rs.std_error(effect))
        ends = found["importance_ci"].values
        np.testing.assert_allclose(ends[:, 0], found["importance"], rtol=1e-6)
        np.testing.assert_allclose(ends[:, 1], found["importance"], rtol=1e-6)


@pytest.mark.parametrize("weighting", ["rows", "axis"])
def test_importances_at_once_are_those_of_sizes(weighting, rng):
    """Of constant bins, lines, a constant feature, and levels; and their order."""
    X = np.column_stack([rng.beta(1, 2, 300), rng.uniform(-1, 1, 300), np.ones(300)])
    g = np.column_stack([0.2 + 0 * X[:, 0], 6 * X[:, 1], 0 * X[:, 0]]) + rng.normal(size=(300, 3))
    effect = rs.rhale(local_of(X, g), bins=rs.AdaptiveBins(20), weighting=weighting)
    assert effect["slope"].values[1].any()
    sizes = rs.effect_sizes(effect)
    assert_allclose(importances(effect), sizes["importance"].where(sizes["importance"] > 0))
    assert largest(effect, 2) == ["x1", "x0"]
    assert largest(sizes, 3) == ["x1", "x0", "x2"]
    # Without the moments of the rows, over the edges.
    bare = effect.drop_vars("moments")
    over_edges = [np.nanstd(curve) for curve in effect["curve"].values[:2]]
    assert largest(bare, 3) == [*(f"x{at}" for at in np.argsort(over_edges)[::-1]), "x2"]


def test_importances_of_levels_at_once(rng):
    X = np.column_stack([rng.integers(0, 3, 200), rng.normal(size=200)])
    effect = rs.ale(lambda X: X[:, 0] * (1 + X[:, 1]), X, categorical=0)
    assert_allclose(importances(effect), rs.effect_sizes(effect)["importance"])


class TestScale:
    """Distances from the median of the outcomes, in per cent of those on that side."""

    def test_by_hand(self):
        """Outcomes that are as far away count; of an uneven number, the median is in no side."""
        scale = _Scale([5.0, 1, 2, 3, 9])
        distance = [-9, -2, -1.999, -1, -0.5, 0, 1.999, 2, 6, np.inf, np.nan]
        expected = [-50, -50, -25, -25, 0, 0, 0, 25, 50, 50, np.nan]
        assert_array_equal(scale(np.array(distance)), expected)

    def test_outcomes_without_one_side(self):
        assert_array_equal(_Scale([1.0, 1])(np.array([-1.0, 0, 1])), [0, 0, 0])
        assert_array_equal(_Scale([1.0, 1, 1, 3])(np.array([-1.0, 1.9, 2])), [0, 0, 50])

    def test_of_levels(self, rng):
        """At the levels, by their shares; a correction moves all of them to the mean."""
        X = np.column_stack([rng.integers(0, 3, 200), rng.normal(size=200)])
        local = rs.ale_local_effects(
            lambda X: X[:, 0] ** 2 * (1 + X[:, 1]), X, features=0, categorical=0
        )
        effect = rs.ale_from_local(local, centering="start")
        row, y = one_feature(effect, 0), rng.normal(size=99) * 4
        share, curve = row["level_share"].values, row["curve"].values
        found = rs.effect_sizes(effect, y=y)
        shrunk = (found["importance_corrected"] / found["importance"]).item()
        assert 0.3 < shrunk < 0.999
        away = y - np.median(y)
        for end, factor in (("", 1), ("_corrected", shrunk)):
            at = [
                50 * np.mean(away[away > 0] <= d) if d >= 0 else -50 * np.mean(away[away < 0] >= d)
                for d in factor * (curve - share @ curve)
            ]
            assert_allclose(found[f"naled{end}"].item(), share @ np.abs(at))
            assert_allclose(found[f"naler_min{end}"].item(), min(at))
            assert_allclose(found[f"naler_max{end}"].item(), max(at))

    def test_of_a_line(self):
        """A parabola in one bin, at rows that are even in it."""
        x = np.linspace(-1, 3, 801)[:, None]
        effect = rs.rhale(
            local_of(x, 2 * x), bins=rs.AdaptiveBins(20), weighting="rows", centering="start"
        )
        assert effect["n_bins"].item() == 1
        y = np.linspace(-12, 12, 4001)
        away = np.abs(x**2 - np.mean(x**2))
        found = rs.effect_sizes(effect, y=y)
        assert_allclose(found["naled"].item(), np.mean(50 * away / 12), rtol=2e-3)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["levels", "lines", "bins"])
def test_replicates_of_one_curve_have_its_size(kind, rng):
    """On the scale of outcomes; a constant feature has none."""
    x, y = rng.uniform(-1, 3, (300, 1)), rng.normal(size=99) * 4
    if kind == "levels":
        X = np.column_stack([rng.integers(0, 3, 300), x[:, 0]])
        local = rs.ale_local_effects(lambda X: X[:, 0] ** 2, X, features=0, categorical=0)
        effect = rs.ale_from_local(local, centering="start")
    else:
        local = local_of(x, 2 * x)
        rule = rs.AdaptiveBins(20) if kind == "lines" else rs.GivenBins([-1, 0, 2, 3])
        effect = rs.rhale(local, bins=rule, weighting="rows", centering="start")
    boot = rs.bootstrap(local, effect, n_resamples=4, rng=0)
    row = one_feature(effect, 0)
    assert ("slope" in boot) == (kind == "lines")
    one = boot.isel(feature=0)
    for name in ("curve", "slope"):
        if name in one:
            one[name] = (one[name].dims, np.broadcast_to(effect[name].values[0], one[name].shape))
    one["curve_mean"] = 0 * one["curve_mean"] + _of_curve(row)[1]
    found = rs.effect_sizes(effect, y=y)
    names = ("aled", "naled", "naler_min", "naler_max")
    draws = _draws(row, one, _Scale(y), names)
    for name in names[1:]:
        assert_allclose(draws[name], np.full(4, found[name].item()), rtol=1e-12)
    assert_array_equal(draws["aled"], one["aled"].values.ravel())
    unknown = _draws(changed(row, curve=row["curve"] * np.nan), one, _Scale(y), names)
    assert all(np.isnan(values).all() and len(values) == 4 for values in unknown.values())
    assert set(_draws(row, one, None, names)) == {"aled"}


@pytest.mark.thorough
def test_sizes_say_what_they_are_of(table):
    x, g = table
    local = local_of(x, g)
    effect = rs.rhale(local, bins=rs.GivenBins(EDGES))
    found = rs.effect_sizes(effect, level=0.9)
    kept = ("output_name", "output_units", "bin_rule", "bin_parameters", "n_rows", "software")
    own = {"method": "effect sizes", "percentiles": (1, 99)}
    assert found.attrs == {**own, **{name: effect.attrs[name] for name in kept}}
    assert found["importance_ci"].attrs["source"] == "rows"
    assert found["importance_ci"].attrs["ci_prob"] == 0.9
    assert found["importance_p_value"].attrs["source"] == "rows"
    groups = np.arange(N) // 2
    grouped = rs.effect_sizes(rs.std_error(effect, local, groups=groups))
    for name in ("importance_ci", "importance_p_value"):
        assert grouped[name].attrs["source"] == f"rows in {N // 2} groups"
    # Features in the order of the effect, the largest first where only curves are known.
    assert largest(effect[["curve"]].assign_attrs(effect.attrs), 1) == ["x0"]


@pytest.mark.filterwarnings("ignore:Bins without rows")
@pytest.mark.parametrize("weighting", ["axis", "rows"])
def test_importances_beside_a_gap(weighting, rng):
    x = np.concatenate([rng.uniform(0, 1, 20), rng.uniform(2, 4, 80)])[:, None]
    local = local_of(x, rng.normal(size=(100, 1)))
    effect = rs.rhale(local, bins=rs.GivenBins([0, 1, 2, 3, 4]), weighting=weighting)
    assert np.isnan(effect["curve"]).any()
    sizes = rs.effect_sizes(effect)
    assert_allclose(importances(effect), sizes["importance"], rtol=1e-9)
    assert np.isfinite(sizes["importance_corrected"]).all()


def test_importances_of_features_with_other_numbers_of_cells(rng):
    X = np.column_stack([rng.uniform(0, 1, 300), rng.integers(0, 4, 300)]).astype(float)
    effect = rs.rhale(local_of(X, 1 + rng.normal(size=X.shape)), bins=rs.GivenBins({
        "x0": [0, 0.5, 1], "x1": [0, 1, 2, 3],
    }))  # fmt: skip
    n_edges = np.isfinite(effect["edge_value"]).sum("edge").values
    assert n_edges[0] != n_edges[1]
    assert_allclose(importances(effect), rs.effect_sizes(effect)["importance"], rtol=1e-9)
