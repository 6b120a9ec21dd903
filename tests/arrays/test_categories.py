"""Order of levels, and the covariance of steps that share rows."""

import numpy as np
import pytest

from rhale_stats.arrays import categories as kernel


def test_distances_by_hand():
    code = np.array([0, 0, 1, 1])
    x = np.array([1.0, 2.0, 2.0, np.nan])
    # Missing lies below all: level 0 is 0, 1/2, 1 at (missing, 1, 2), level 1 is 1/2, 1/2, 1.
    assert kernel.ks_distance(x, code, np.ones(4), 2)[0, 1] == 0.5
    other = np.array([0, 0, 0, 1])
    assert kernel.share_distance(other, 2, code, np.ones(4), 2)[0, 1] == 0.5
    # With weights 1 and 3 in level 1 the share of the second category there is 3/4.
    weight = np.array([1.0, 1.0, 1.0, 3.0])
    assert kernel.share_distance(other, 2, code, weight, 2)[0, 1] == 0.75


def test_ks_distance_is_scipys(rng):
    stats = pytest.importorskip("scipy.stats")
    code, x = rng.integers(0, 3, 500), rng.normal(size=500)
    x[code == 1] += 0.4
    found = kernel.ks_distance(x, code, np.ones(500), 3)
    for a in range(3):
        for b in range(3):
            expected = stats.ks_2samp(x[code == a], x[code == b]).statistic
            assert found[a, b] == pytest.approx(expected, abs=1e-12)


def test_ks_distance_of_many_rows_is_that_at_a_thousand_quantiles(rng):
    stats = pytest.importorskip("scipy.stats")
    code, x = rng.integers(0, 2, 20_000), rng.normal(size=20_000)
    x[code == 1] += 0.1
    exact = stats.ks_2samp(x[code == 0], x[code == 1]).statistic
    found = kernel.ks_distance(x, code, np.ones(len(x)), 2)[0, 1]
    # Between two of 1000 quantiles no distribution of half of the rows moves by more than 0.002.
    assert exact - 0.002 <= found <= exact + 1e-12
    # Any increasing transformation keeps it.
    assert kernel.ks_distance(np.exp(x), code, np.ones(len(x)), 2)[0, 1] == found


@pytest.mark.parametrize("seed", range(5))
def test_places_on_a_line_are_found(seed):
    rng = np.random.default_rng(seed)
    place = rng.normal(size=7)
    order = kernel.line_order(np.abs(place[:, None] - place))
    expected = np.argsort(place)
    if place[0] > place.mean():
        expected = expected[::-1]  # the first level lies on the left
    assert order.tolist() == expected.tolist()


def test_ties_of_places_keep_the_order_of_levels():
    assert kernel.line_order(np.zeros((4, 4))).tolist() == [0, 1, 2, 3]
    # All equally far apart: no direction tells them apart but that of their numbers.
    assert kernel.line_order(1 - np.eye(5)).tolist() == [0, 1, 2, 3, 4]
    place = np.array([0.0, 1.0, 0.0, 2.0, 1.0])
    assert kernel.line_order(np.abs(place[:, None] - place)).tolist() == [0, 2, 1, 4, 3]


def test_covariances_are_those_of_influences_written_out(rng):
    """Another route: psi of every row and every level, one by one."""
    n, n_levels = 60, 4
    code = np.concatenate([np.arange(n_levels), rng.integers(0, n_levels, n - n_levels)])
    up, down, w = rng.normal(size=n), rng.normal(size=n), rng.uniform(0.5, 2, n)
    of = kernel.steps(code, up, down, n_levels)
    bins, _, _ = kernel.step_moments(of, code, w, n_levels - 1, frequency=False)
    share = np.bincount(code, w) / w.sum()
    curve, offset = kernel.curve(bins.mean, share, "mean")
    assert offset == pytest.approx(share @ np.append(0, np.cumsum(bins.mean)))
    n_eff = bins.weight**2 / bins.weight_sq
    stretch = np.sqrt(n_eff / (n_eff - 1))
    psi = np.zeros((n, n_levels))
    for i in range(n):
        for e in range(n_levels):
            for j in range(n_levels - 1):
                if code[i] not in (j, j + 1):
                    continue
                d = up[i] if code[i] == j else down[i]
                load = (j < e) - share[j + 1 :].sum()
                p = bins.weight[j] / w.sum()
                psi[i, e] += load * stretch[j] * (d - bins.mean[j]) / p
            psi[i, e] -= curve[code[i]]
    expected = (w[:, None] ** 2 * psi).T @ psi / w.sum() ** 2
    moved = kernel.row_sums(of, code, curve, w, np.arange(n), n)
    at = kernel.loadings(share, np.arange(n_levels, dtype=float), "mean")
    found = kernel.level_covariance(moved, at, np.ones(n), n_eff, population=True)
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    assert np.linalg.eigvalsh(found).min() > -1e-12


def test_sizes_by_hand():
    importance, aled, low, high = kernel.sizes(np.array([1.0, 3.0]), np.array([0.25, 0.75]))
    assert (low, high) == (-1.5, 0.5)
    assert aled == pytest.approx(0.75)
    assert importance == pytest.approx(np.sqrt(0.75))


@pytest.mark.parametrize(
    ("centering", "expected"), [("start", 0.0), ("mean", 2.3), ("integral", 2.0)]
)
def test_curve_at_levels_by_hand(centering, expected):
    effect, share = np.array([[1.0, 4.0], [-1.0, -4.0]]), np.array([0.3, 0.3, 0.4])
    # 0, 1, 5: 0.3 · 1 + 0.4 · 5 by rows, 6 / 3 by levels.
    curve, subtracted = kernel.curve(effect, share, centering)
    np.testing.assert_allclose(subtracted, [expected, -expected])
    np.testing.assert_allclose(curve[0], np.array([0.0, 1.0, 5.0]) - expected)
    np.testing.assert_allclose(curve[1], -curve[0])


def test_rows_of_weights():
    weight = np.array([1.0, 3.0])
    assert kernel.n_effective_of(None, 7, frequency=False) == 7
    assert kernel.n_effective_of(weight, 2, frequency=True) == 4
    assert kernel.n_effective_of(weight, 2, frequency=False) == pytest.approx(16 / 10)


def test_heterogeneity_on_the_scale_of_the_output_by_hand():
    """Levels 0, 1, 2 with shares 1/4, 1/2, 1/4: variance 1/2; steps weighted 1 : 3."""
    share, weight = np.array([0.25, 0.5, 0.25]), np.array([1.0, 3.0])
    found = kernel.heterogeneity_output(np.array([2.0, 6.0]), weight, share, 11.0)
    assert found == pytest.approx(np.sqrt(0.5 * 11 / 10 * (2 + 18) / 4))
    # A step whose variance is not known does not count.
    found = kernel.heterogeneity_output(np.array([2.0, np.nan]), weight, share, 11.0)
    assert found == pytest.approx(np.sqrt(0.5 * 11 / 10 * 2))
    # Unequal shares: 0.3 · 1 + 0.1 · 4 - 0.5² = 0.45.
    share = np.array([0.6, 0.3, 0.1])
    found = kernel.heterogeneity_output(np.array([2.0, 2.0]), weight, share, np.array([2.0]))
    assert found == pytest.approx([np.sqrt(0.45 * 2 * 2)])


def test_error_of_the_mean_of_all_differences(rng):
    """A ratio of sums over rows, each in one or two steps: by a numerical derivative."""
    code, n = np.array([0, 0, 1, 1, 2, 2, 2]), 7
    up, down, w = rng.normal(size=n), rng.normal(size=n), rng.uniform(0.5, 2.0, n)
    of = kernel.steps(code, up, down, 3)

    def average(weight):
        return np.average(of.difference, weights=weight[of.row])

    eps = 1e-6 * w.sum()
    moved = [
        (average(w + eps * np.eye(n)[i]) - average(w - eps * np.eye(n)[i])) / (2 * eps) * w[i]
        for i in range(n)
    ]
    sums = kernel.row_sums(of, code, np.zeros(3), w, np.arange(n), n)
    np.testing.assert_allclose(sums.average, moved, rtol=1e-6)
    size = rng.uniform(1, 2, n)
    expected = np.sqrt(np.sum(sums.average**2 / size) * 5 / 4)
    assert kernel.average_se(sums, size, 5.0) == pytest.approx(expected)
    assert np.isnan(kernel.average_se(sums, size, 1.0))


@pytest.mark.parametrize("centering", ["start", "mean", "integral"])
def test_loadings_are_derivatives_by_the_steps(rng, centering):
    """At levels and between them, where curves are straight."""
    share, effect = np.array([0.1, 0.4, 0.2, 0.3]), rng.normal(size=3)
    z = np.array([0.0, 0.25, 1.0, 1.5, 2.9, 3.0])

    def at(effect):
        curve, offset = kernel.curve(effect, share, centering)
        start = np.append(0, np.cumsum(effect))
        constant = {"start": 0.0, "mean": share @ start, "integral": start.mean()}[centering]
        assert offset == pytest.approx(constant)
        np.testing.assert_allclose(curve, start - constant, atol=1e-14)
        return np.interp(z, np.arange(4), curve)

    found = kernel.loadings(share, z, centering)
    for j, step in enumerate(np.eye(3)):
        expected = at(effect + step) - at(effect)
        np.testing.assert_allclose(found.level[:, j], expected, atol=1e-14)
    assert found.tilt.shape == found.level.shape
    assert not found.tilt.any()


@pytest.mark.parametrize("frequency", [False, True])
def test_moments_of_steps_one_by_one(rng, frequency):
    n, n_levels = 40, 4
    code = np.concatenate([np.arange(n_levels), rng.integers(0, n_levels, n - n_levels)])
    up, down = rng.normal(size=n), rng.normal(size=n)
    w = rng.integers(1, 4, n).astype(float) if frequency else rng.uniform(0.5, 2, n)
    of = kernel.steps(code, up, down, n_levels)
    found = kernel.step_moments(of, code, w, 3, frequency=frequency)
    for j in range(3):
        d = np.append(up[code == j], down[code == j + 1])
        own = np.append(w[code == j], w[code == j + 1])
        mean = np.average(d, weights=own)
        squares = own.sum() if frequency else own @ own
        expected = (
            own.sum() if frequency else len(d), own.sum(), squares, mean, own @ (d - mean) ** 2,
            np.average(np.repeat([j, j + 1], [(code == j).sum(), (code == j + 1).sum()]),
                       weights=own),
        )  # fmt: skip
        for part, one in zip(found.bins[:6], expected, strict=True):
            assert part[j] == pytest.approx(one)
        assert found.third[j] == pytest.approx(np.average((d - mean) ** 3, weights=own))
        assert found.fourth[j] == pytest.approx(np.average((d - mean) ** 4, weights=own))
        spread = np.sqrt(own @ (d - mean) ** 2 / (own.sum() - squares / own.sum()))
        assert kernel.spread_of(found.bins)[j] == pytest.approx(spread)


def test_sizes_and_heterogeneity_of_levels_by_hand():
    share = np.array([0.25, 0.25, 0.5])
    curves = np.array([[0.0, 2.0, 1.0], [4.0, 0.0, 0.0]])
    importance, aled, low, high = kernel.sizes(curves, share)
    np.testing.assert_allclose(importance, np.sqrt([0.5, 3.0]))
    np.testing.assert_allclose(aled, [0.5, 1.5])
    np.testing.assert_allclose(low, [-1, -1])
    np.testing.assert_allclose(high, [1, 3])
    # Levels 0, 1, 2 have the mean 1.25 and the variance 11/16; n / (n - 1) = 5/4.
    variance, weight = np.array([[2.0, 4.0], [np.nan, 3.0]]), np.array([1.0, 3.0])
    found = kernel.heterogeneity_output(variance, weight, share, 5.0)
    np.testing.assert_allclose(found, np.sqrt(11 / 16 * 5 / 4 * np.array([3.5, 3.0])))
    # Shares of replicates: in the second all rows are equally often at all levels.
    shares = np.array([share, np.full(3, 1 / 3)])
    found = kernel.heterogeneity_output(variance, weight, shares, 5.0)
    np.testing.assert_allclose(found, np.sqrt(5 / 4 * np.array([11 / 16 * 3.5, 2 / 3 * 3.0])))


@pytest.mark.parametrize("centering", ["start", "mean", "integral"])
def test_curves_with_leading_axes(rng, centering):
    effect, share = rng.normal(size=(2, 5, 3)), np.array([0.1, 0.4, 0.2, 0.3])
    curves, offset = kernel.curve(effect, share, centering)
    assert curves.shape == (2, 5, 4)
    assert offset.shape == (2, 5)
    for at in np.ndindex(2, 5):
        one, constant = kernel.curve(effect[at], share, centering)
        np.testing.assert_allclose(curves[at], one)
        np.testing.assert_allclose(offset[at], constant)


def test_effective_rows_and_the_error_of_the_mean_of_all_differences(rng):
    w = np.array([1.0, 2.0, 3.0])
    assert kernel.n_effective_of(None, 7, frequency=False) == 7
    assert kernel.n_effective_of(w, 3, frequency=True) == 6
    assert kernel.n_effective_of(w, 3, frequency=False) == pytest.approx(36 / 14)
    code = rng.integers(0, 3, 30)
    of = kernel.steps(code, rng.normal(size=30), rng.normal(size=30), 3)
    moved = kernel.row_sums(of, code, np.zeros(3), None, np.arange(30), 30)
    # The derivative of a ratio of sums: every row has one or two differences.
    away = of.difference - of.difference.mean()
    each = np.bincount(of.row, away, 30) / len(of.row)
    found = kernel.average_se(moved, np.ones(30), 30.0)
    assert found == pytest.approx(np.sqrt(each @ each * 30 / 29))
    assert np.isnan(kernel.average_se(moved, np.ones(30), 1.0))
