"""Tests of effects against hand computation, SciPy and the influences of rows."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import rhale_stats as rs
from rhale_stats.schema import one_feature

EDGES = np.array([-1, -0.5, 0.1, 0.4, 1])
N = 300


def local_of(x, g):
    x, g = np.asarray(x), np.asarray(g)
    return rs.local_effects(None, x, jacobian=g, features=list(range(x.shape[1])))


def table(seed=0, n=N):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (n, 3))
    noise = rng.standard_gamma(2, (n, 3)) - 2
    return x, noise + np.column_stack([0.2 * np.ones(n), 0.5 * (x[:, 1] > 0.1), np.zeros(n)])


def effect_of(x, g, bins=None, **options):
    return rs.rhale(local_of(x, g), bins=bins or rs.GivenBins(EDGES), **options)


def in_bins(x, g):
    k = np.clip(np.searchsorted(EDGES, x, side="right") - 1, 0, 3)
    return [g[k == number] for number in range(4)]


# --- Wald ----------------------------------------------------------------------------------------


def test_no_effect_by_hand():
    x, g = table()
    found = rs.wald_test(effect_of(x, g))
    for number in range(3):
        t = [stats.ttest_1samp(rows, 0).pvalue for rows in in_bins(x[:, number], g[:, number])]
        expected = np.sum(stats.norm.isf(np.array(t) / 2) ** 2)
        assert found["statistic"][number].item() == pytest.approx(expected, rel=1e-9)
        p = found["p_value"][number].item()
        assert p == pytest.approx(stats.chi2.sf(expected, 4), rel=1e-9)
    assert_array_equal(found["df"], 4)
    assert found.attrs["null"] == "all effects are 0"
    assert found.attrs["source"] == "rows"


def test_constant_effect_is_that_of_alexander_and_govern():
    x, g = table()
    found = rs.wald_test(effect_of(x, g), "constant")
    for number in range(3):
        theirs = stats.alexandergovern(*in_bins(x[:, number], g[:, number]))
        # They take Hill's (1970) series in place of the exact quantile; 50 rows a bin at least.
        ours = found["statistic"][number].item()
        assert ours == pytest.approx(theirs.statistic, rel=1e-4)
        assert found["p_value"][number].item() == pytest.approx(theirs.pvalue, rel=1e-3)
    assert_array_equal(found["df"], 3)
    # A constant added to all effects is nothing.
    moved = rs.wald_test(effect_of(x, g + 100), "constant")
    assert_allclose(moved["statistic"], found["statistic"], rtol=1e-8)


def test_linear_bins_have_a_slope_to_test():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (N, 2))
    g = np.column_stack([3 * x[:, 0], np.zeros(N)]) + rng.normal(size=(N, 2))
    effect = effect_of(x, g, rs.AdaptiveBins())
    found = rs.wald_test(effect), rs.wald_test(effect, "constant")
    row = one_feature(effect, 0)
    assert row.sizes["bin"] == 1
    assert row["slope"] != 0
    assert_array_equal([test["df"].values[0] for test in found], [2, 1])
    assert all(test["p_value"].values[0] < 1e-10 for test in found)
    # Slope 3, of which the mean effect, 0, says nothing.
    assert one_feature(effect, 1)["slope"] == 0
    assert_array_equal([test["df"].values[1] for test in found], [1, 0])
    assert found[1]["p_value"].values[1] == 1


def test_homogeneous_effects_are_no_question_of_chance():
    x, _ = table()
    g = np.column_stack([np.full(N, 3.0), np.full(N, 3.0), np.full(N, 0.0)])
    g[7, 1] += 1e-9
    found = rs.wald_test(effect_of(x, g), "homogeneous")
    assert_array_equal(found["p_value"], [1, 0, 1])
    bare = effect_of(x, g, std_error_moments=False)
    assert_array_equal(rs.wald_test(bare, "homogeneous")["p_value"], [1, 0, 1])
    # Central differences err; the error is not a spread.
    local = rs.local_effects(lambda X: np.exp(X[:, 0] + 0 * X[:, 1]) + X[:, 1], x[:, :2])
    found = rs.wald_test(rs.rhale(local, bins=rs.GivenBins(EDGES)), "homogeneous")
    assert_array_equal(found["p_value"], [0, 1])


def test_effects_that_are_known_exactly():
    x, _ = table()
    effect = effect_of(x, np.tile([3.0, 0.0, 3.0], (N, 1)))
    grouped = rs.std_error(
        effect, local_of(x, np.tile([3.0, 0.0, 3.0], (N, 1))), groups=np.arange(N) // 10
    )
    for one in (effect, grouped):
        assert_allclose(rs.wald_test(one)["p_value"], [0, 1, 0], atol=1e-12)
        assert (rs.wald_test(one, "constant")["p_value"] > 0.9).all()


def test_groups_by_hand():
    x, g = table()
    group = np.random.default_rng(1).integers(30, size=N)
    effect = rs.std_error(effect_of(x, g), local_of(x, g), groups=group)
    for null, contrast in (("zero", np.eye(4)), ("constant", np.diff(np.eye(4), axis=0))):
        found = rs.wald_test(effect, null)
        for number in range(3):
            row = one_feature(effect, number)
            mean = contrast @ row["effect"].values
            covariance = contrast @ row["effect_cov"].values @ contrast.T
            wald = mean @ np.linalg.solve(covariance, mean)
            df = len(mean)
            assert found["statistic"][number].item() == pytest.approx(wald, rel=1e-9)
            left = 29 - df + 1
            p = stats.f.sf(wald * left / (29 * df), df, left)
            assert found["p_value"][number].item() == pytest.approx(p, rel=1e-9)
        assert found.attrs["source"] == "rows in 30 groups"
    few = rs.std_error(effect_of(x, g), local_of(x, g), groups=np.arange(N) % 3)
    assert np.isnan(rs.wald_test(few)["p_value"]).all()


def test_adjustment_over_features():
    x, g = table()
    effect = effect_of(x, g)
    p = np.sort(rs.wald_test(effect)["p_value"])
    holm = np.minimum(np.maximum.accumulate(p * [3, 2, 1]), 1)
    assert_allclose(np.sort(rs.wald_test(effect)["p_value_adjusted"]), holm, rtol=1e-12)
    found = rs.wald_test(effect, adjust="bonferroni")
    assert_allclose(found["p_value_adjusted"], np.minimum(3 * found["p_value"], 1), rtol=1e-12)
    found = rs.wald_test(effect, adjust="none")
    assert_array_equal(found["p_value_adjusted"], found["p_value"])
    assert found.attrs["adjust"] == "none"


def test_features_that_cannot_be_tested():
    """A constant one; one with a row in every bin."""
    x = np.column_stack([np.ones(4), [0.0, 1, 2, 3]])
    g = np.random.default_rng(0).normal(size=(4, 2))
    edges = {"x0": [0, 1], "x1": [0, 0.5, 1.5, 2.5, 3]}
    effect = effect_of(x, g, rs.GivenBins(edges))
    for null in ("zero", "constant"):
        found = rs.wald_test(effect, null)
        assert np.isnan(found["p_value"]).all()
    assert np.isnan(rs.wald_test(effect, "homogeneous")["p_value"][0])
    found = rs.equivalence_test(effect, 1.0)
    assert np.isnan(found["p_value"]).all()
    other = effect_of(x, 2 * g, rs.GivenBins(edges))
    assert np.isnan(rs.compare(effect, other)["p_value"]).all()


# --- equivalence ---------------------------------------------------------------------------------


def test_equivalence_is_two_t_tests_a_bin():
    x, g = table()
    delta = 0.6
    found = rs.equivalence_test(effect_of(x, g), delta)
    for number in range(3):
        tests = [
            max(
                stats.ttest_1samp(rows, delta, alternative="less").pvalue,
                stats.ttest_1samp(rows, -delta, alternative="greater").pvalue,
            )
            for rows in in_bins(x[:, number], g[:, number])
        ]
        decides = int(np.argmax(tests))
        assert found["p_value"][number].item() == pytest.approx(tests[decides], rel=1e-9)
        rows = in_bins(x[:, number], g[:, number])[decides]
        assert found["df"][number] == len(rows) - 1
        distance = (delta - abs(rows.mean())) / stats.sem(rows)
        assert found["statistic"][number].item() == pytest.approx(distance, rel=1e-9)
    assert "0.6" in found.attrs["null"]


def test_equivalence_in_a_linear_bin_is_at_both_ends():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (N, 1))
    effect = effect_of(x, 3 * x + rng.normal(size=(N, 1)), rs.AdaptiveBins())
    assert effect["n_bins"] == 1
    # In the middle the effect is 0, and surely less than 2.
    assert rs.equivalence_test(effect, 2.0)["p_value"][0] > 0.99
    assert rs.equivalence_test(effect, 4.0)["p_value"][0] < 0.01


def test_equivalence_of_groups_has_their_degrees_of_freedom():
    x, g = table()
    effect = rs.std_error(effect_of(x, g), local_of(x, g), groups=np.arange(N) // 10)
    found = rs.equivalence_test(effect, 0.6)
    assert_array_equal(found["df"], 29)
    distance = ((0.6 - abs(effect["effect"])) / effect["effect_se"]).min("bin")
    assert_allclose(found["p_value"], stats.t.sf(distance, 29), rtol=1e-9)


# --- two curves ----------------------------------------------------------------------------------


def test_errors_of_independent_curves_add():
    a, b = (rs.std_error(effect_of(*table(seed))) for seed in (0, 1))
    found = rs.compare(a, b)
    for number in range(3):
        rows = one_feature(a, number), one_feature(b, number)
        assert_allclose(found["grid_value"][number], EDGES, rtol=1e-12)
        difference = rows[0]["curve"].values - rows[1]["curve"].values
        se = np.sqrt(rows[0]["curve_se"].values ** 2 + rows[1]["curve_se"].values ** 2)
        assert_allclose(found["difference"][number], difference, atol=1e-12)
        assert_allclose(found["difference_se"][number], se, rtol=1e-9)
        statistic = np.max(np.abs(difference) / se)
        assert found["statistic"][number].item() == pytest.approx(statistic, rel=1e-9)
        # No more than the smallest p-value of an edge, times the number of edges.
        p = 2 * stats.norm.sf(statistic)
        assert p * 0.9 < found["p_value"][number] < 5 * p + 0.01
    band, interval = (np.diff(found[f"difference_{name}"])[..., 0] for name in ("band", "ci"))
    assert (band > interval).all()
    assert_allclose(found["difference_ci"].mean("ci_bound"), found["difference"], atol=1e-12)
    assert found["difference_band"].attrs["kind"] == "simultaneous over the axis"
    xr.testing.assert_identical(found, rs.compare(a, b))
    other = rs.compare(b, a)
    assert_allclose(other["difference"], -found["difference"], atol=1e-12)


def test_curves_of_other_bins_and_ranges_are_compared_where_both_are():
    x, g = table()
    a = effect_of(x, g)
    inside = (x > -0.6).all(axis=1)
    b = effect_of(x[inside], g[inside], rs.EqualWidthBins(3))
    found = rs.compare(a, b)
    for number in range(3):
        z = found["grid_value"].values[number]
        z = z[np.isfinite(z)]
        edges = one_feature(b, number)["edge_value"].values
        expected = np.unique(np.concatenate([EDGES, edges]))
        expected = expected[(expected >= edges[0]) & (expected <= min(edges[-1], 1))]
        assert_array_equal(z, expected)
        curves = [rs.predict(one, z, number).values for one in (a, b)]
        difference = found["difference"].values[number, : len(z)]
        assert_allclose(difference, curves[0] - curves[1], atol=1e-12)
        assert np.isfinite(found["difference_se"].values[number, : len(z)]).all()


@pytest.mark.parametrize("centering", ["mean", "start", "integral"])
def test_the_same_model_twice_does_not_differ(centering):
    x, g = table()
    effect, local = effect_of(x, g, centering=centering), local_of(x, g)
    found = rs.compare(effect, effect, paired=(local, local))
    for name in ("difference", "difference_se", "difference_ci", "difference_band", "statistic"):
        assert_array_equal(found[name], 0)
    assert_array_equal(found["p_value"], 1)
    assert found.attrs["source"] == "pairs of rows"


def jackknifed(centering, x, g, h, bins):
    """Standard error of the difference of two curves, from leaving out each row in turn."""
    n = len(x)
    kept = np.array([np.delete(np.arange(n), row) for row in range(n)]).T
    a, b = (
        rs.rhale(local_of(x[kept, 0], one[kept, 0]), bins=rule, centering=centering)
        for one, rule in ((g, bins[0]), (h, bins[1]))
    )
    z = np.unique(np.concatenate([a["edge_value"].values[0], b["edge_value"].values[0]]))
    curves = np.array(
        [rs.predict(a, z, row).values - rs.predict(b, z, row).values for row in range(n)]
    )
    return np.sqrt(np.sum((curves - curves.mean(axis=0)) ** 2, axis=0) * (n - 1) / n)


@pytest.mark.parametrize("centering", ["mean", "start", "integral"])
def test_error_of_a_paired_difference_is_that_of_leaving_out_rows(centering):
    rng = np.random.default_rng(2)
    n = 120
    x = np.concatenate([[-1, 1], rng.uniform(-1, 1, n - 2)])[:, None]
    shared = rng.normal(size=(n, 1))
    g, h = x + 3 * shared, 0.5 - x + 3 * shared + 0.3 * rng.normal(size=(n, 1))
    bins = rs.GivenBins([-1, 0, 1]), rs.GivenBins([-1, 0.2, 1])
    locals_ = local_of(x, g), local_of(x, h)
    effects = [
        rs.rhale(local, bins=rule, centering=centering)
        for local, rule in zip(locals_, bins, strict=True)
    ]
    found = rs.compare(*effects, paired=locals_)
    expected = jackknifed(centering, x, g, h, bins)
    # They differ by leverages, 1 / n_k on average with 50 rows a bin.
    assert_allclose(found["difference_se"][0], expected, rtol=0.05, atol=1e-9)
    alone = rs.compare(*effects)["difference_se"].values[0]
    assert (found["difference_se"].values[0][-1] < 0.8 * alone[-1]).all()


@pytest.mark.filterwarnings("ignore:Bins without rows")
def test_pairs_beside_a_gap():
    """As if the rows beyond it were not there."""
    rng = np.random.default_rng(2)
    x = np.concatenate([rng.uniform(0, 1, 20), rng.uniform(2, 4, 80)])[:, None]
    g, h = rng.normal(size=(2, 100, 1))
    whole = [effect_of(x, one, rs.GivenBins([0, 1, 2, 3, 4])) for one in (g, h)]
    part = [effect_of(x[20:], one[20:], rs.GivenBins([2, 3, 4])) for one in (g, h)]
    found = rs.compare(*whole, paired=(local_of(x, g), local_of(x, h)))
    expected = rs.compare(*part, paired=(local_of(x[20:], g[20:]), local_of(x[20:], h[20:])))
    assert_array_equal(found["grid_value"][0], [2, 3, 4])
    assert_allclose(found["difference"], expected["difference"], atol=1e-12)
    # n / (n - 1) of 100 rows against that of 80.
    assert_allclose(found["difference_se"], expected["difference_se"], rtol=0.002)


def test_groups_in_a_comparison():
    x, g = table()
    y, h = table(1)
    group = np.arange(N) // 30
    a = rs.std_error(effect_of(x, g), local_of(x, g), groups=group)
    b = effect_of(y, h)
    found = rs.compare(a, b)
    se = np.sqrt(a["curve_se"] ** 2 + rs.std_error(b)["curve_se"] ** 2)
    assert_allclose(found["difference_se"], se, rtol=1e-9)
    ratio = np.diff(found["difference_ci"])[..., 0] / 2 / found["difference_se"]
    assert_allclose(ratio, stats.t.ppf(0.975, 9), rtol=1e-9)
    with pytest.raises(ValueError, match="paired takes effects without groups"):
        rs.compare(a, b, paired=(local_of(x, g), local_of(y, h)))


# --- unusable input ------------------------------------------------------------------------------


def test_unusable_tests():
    x, g = table()
    effect, local = effect_of(x, g), local_of(x, g)
    with pytest.raises(ValueError, match="null must be one of 'zero', .*; got 'none'"):
        rs.wald_test(effect, "none")
    for test in (
        rs.wald_test,
        lambda e, **options: rs.equivalence_test(e, 1.0, **options),
        lambda e, **options: rs.compare(e, e, **options),
    ):
        with pytest.raises(ValueError, match="adjust must be one of 'holm', .*; got 'tukey'"):
            test(effect, adjust="tukey")
        with pytest.raises(ValueError, match="std_error_moments=False"):
            test(effect_of(x, g, std_error_moments=False))
        with pytest.raises(ValueError, match="this one is from debias"):
            test(rs.debias(effect, rs.check_unbiased(local, effect)))
        with pytest.raises(TypeError, match="got int"):
            test(5)
    for delta in (0, -1, np.inf, np.nan):
        with pytest.raises(ValueError, match=f"delta must be positive and finite; got {delta}"):
            rs.equivalence_test(effect, delta)


def test_unusable_comparisons():
    x, g = table()
    effect, local = effect_of(x, g), local_of(x, g)
    with pytest.raises(ValueError, match="one centring; got 'mean' and 'start'"):
        rs.compare(effect, effect_of(x, g, centering="start"))
    with pytest.raises(ValueError, match="feature in common; got x0, x1, x2 and a, b, c"):
        rs.compare(effect, effect.assign_coords(feature=["a", "b", "c"]))
    with pytest.raises(ValueError, match="must overlap; feature 'x0' has no values in both"):
        rs.compare(effect, effect_of(x + 5, g, rs.EqualWidthBins(2)))
    with pytest.raises(ValueError, match="level must lie"):
        rs.compare(effect, effect, level=1)
    with pytest.raises(ValueError, match="n_draws must be at least 1"):
        rs.compare(effect, effect, n_draws=0)
    short = local_of(x[1:], g[1:])
    with pytest.raises(ValueError, match="same rows; got 300 and 299 rows"):
        rs.compare(effect, effect, paired=(local, short))
    with pytest.raises(ValueError, match="fall into them otherwise"):
        rs.compare(effect, effect, paired=(local, local_of(x + 0.5, g)))
    weighted = local.assign(weight=("obs", np.ones(N)))
    with pytest.raises(ValueError, match="paired takes rows without weights"):
        rs.compare(effect, effect, paired=(weighted, weighted))


@pytest.mark.filterwarnings("ignore:Bins without rows")
def test_a_bin_whose_rows_happen_to_be_alike_counts_with_the_spread_of_the_others():
    """Two values, +5 and -5: in small bins chance makes all rows alike."""
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(200, 300))
    g = rng.choice([-5.0, 5.0], x.shape)
    local = rs.local_effects(None, x, jacobian=g, features=list(range(300)))
    effect = rs.std_error(rs.rhale(local, bins=rs.EqualWidthBins(40)))
    alike = effect["heterogeneity"] == 0
    assert int(alike.any("bin").sum()) > 100
    p = rs.wald_test(effect, adjust="none")["p_value"]
    # Bins of five rows with two values are no normal samples: no more than that is claimed.
    assert float((p < 1e-6).mean()) == 0


@pytest.mark.parametrize("test", [rs.wald_test, lambda e: rs.equivalence_test(e, 1.0)])
def test_groups_with_linear_bins_are_refused(rng, test):
    x = rng.uniform(size=(200, 1))
    local = rs.local_effects(None, x, jacobian=9 * x + rng.normal(size=x.shape), features=0)
    effect = rs.std_error(
        rs.rhale(local, bins=rs.AdaptiveBins()), local, groups=np.arange(200) // 4
    )
    with pytest.raises(ValueError, match=r"constant bins for tests by groups.*degree=0"):
        test(effect)
