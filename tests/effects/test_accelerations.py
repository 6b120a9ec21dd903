"""Accelerations of bootstrap intervals, by the influences of rows (math [29])."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse, stats

import rhale_stats as rs
from rhale_stats.arrays.resample import ResampledUnits
from rhale_stats.effects.replicates import _acceleration, _powers, accelerations
from rhale_stats.local.rows import columns

RNG = np.random.default_rng(7)
X = RNG.uniform(0, 1, (90, 1))
G = 1 + RNG.standard_exponential((90, 1)) * (1 + X)
COUNTS = RNG.integers(1, 4, 90).astype(float)


def found(rows, **options):
    local = rs.local_effects(None, X[rows], jacobian=G[rows], **options)
    bins = rs.GivenBins([0, 0.3, 0.6, 1])
    effect = rs.rhale(local, bins=bins, weighting="rows", centering="start")
    size = options.get("weights")
    units = ResampledUnits(None, [np.arange(len(rows))], None if size is None else np.asarray(size))
    return accelerations(columns(local), local, effect, units)


def test_of_a_mean_it_is_the_skewness_over_six_roots_of_n():
    """As for the mean of the rows of a bin (Efron 1987)."""
    own = found(np.arange(90))["effect_acceleration"][1][0]
    k = np.digitize(X[:, 0], [0.3, 0.6])
    for number in range(3):
        g = G[k == number, 0]
        assert own[number] == pytest.approx(stats.skew(g) / (6 * np.sqrt(len(g))))


def test_of_a_spread_by_its_influences():
    """The influence on a variance is r^2 less its mean; a factor does not matter."""
    own = found(np.arange(90))["heterogeneity_acceleration"][1][0]
    k = np.digitize(X[:, 0], [0.3, 0.6])
    for number in range(3):
        square = (G[k == number, 0] - G[k == number, 0].mean()) ** 2
        expected = stats.skew(square) / (6 * np.sqrt(len(square)))
        assert own[number] == pytest.approx(expected)


def test_the_curve_at_the_end_of_the_first_bin_is_that_of_its_effect():
    own = {name: one[1][0] for name, one in found(np.arange(90)).items()}
    assert own["curve_acceleration"][0] == 0
    assert own["curve_acceleration"][1] == pytest.approx(own["effect_acceleration"][0])
    # At the last edge influences of independent bins add up, by their widths.
    k, psi = np.digitize(X[:, 0], [0.3, 0.6]), np.zeros(90)
    for number, width in enumerate((0.3, 0.3, 0.4)):
        g = G[k == number, 0]
        psi[k == number] = width * (g - g.mean()) / len(g)
    expected = np.sum(psi**3) / (6 * np.sum(psi**2) ** 1.5)
    assert own["curve_acceleration"][3] == pytest.approx(expected)


def test_frequencies_are_repeated_rows():
    repeated = found(np.repeat(np.arange(90), COUNTS.astype(int)))
    counted = found(np.arange(90), weights=COUNTS, weight_kind="frequency")
    for name, one in repeated.items():
        assert_allclose(counted[name][1], one[1], atol=1e-12)


def test_sums_of_powers_of_units_that_represent_several_rows():
    """Of k rows with 1/k of the influence each."""
    influence, size = np.array([[1.0, -2.0], [0.0, 4.0]]), np.array([2, 4])
    rows = np.repeat(influence / size[:, None], size, axis=0)
    second, third = _powers(sparse.csr_array(influence), size.astype(float))
    assert_allclose(second, np.sum(rows**2, axis=0))
    assert_allclose(third, np.sum(rows**3, axis=0))
    assert_allclose(_acceleration(second, third), third / (6 * second**1.5))
    assert _acceleration(np.zeros(1), np.zeros(1)) == [0]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("centering", ["mean", "start"])
def test_of_levels_by_the_influences_of_rows(centering, weighted):
    """By numerical derivatives of the estimates by the weights of the rows."""
    rng = np.random.default_rng(2)
    X = np.column_stack([rng.integers(0, 3, 30), rng.exponential(size=30)]).astype(float)
    counts = rng.integers(1, 4, 30) if weighted else np.ones(30, dtype=int)
    weights = {"weights": counts, "weight_kind": "frequency"} if weighted else {}

    def model(X):
        return X[:, 0] * X[:, 1] + X[:, 0] ** 2

    local = rs.ale_local_effects(model, X, features=0, categorical=0, **weights)
    effect = rs.ale_from_local(local, centering=centering)
    units = ResampledUnits(None, [np.arange(30)], counts.astype(float) if weighted else None)
    rows = columns(local)
    own = {name: one[1][0] for name, one in accelerations(rows, local, effect, units).items()}

    def estimates(w):
        code, y = X[:, 0].astype(int), X[:, 1]
        share = np.bincount(code, w) / w.sum()
        means, variances = [], []
        for step in (0, 1):
            there = (code == step) | (code == step + 1)
            g = (y + 2 * step + 1)[there]
            mean = np.average(g, weights=w[there])
            means.append(mean)
            variances.append(np.average((g - mean) ** 2, weights=w[there]))
        curve = np.array([0.0, *np.cumsum(means)])
        return np.concatenate(
            [means, variances, curve - (share @ curve if centering == "mean" else 0)]
        )

    w, h = counts.astype(float), 1e-5
    psi = np.array([
        (estimates(w + h * one) - estimates(w - h * one)) / (2 * h) for one in np.eye(30)
    ])  # fmt: skip
    # A count of k are k rows.
    second, third = (np.sum(counts[:, None] * psi**power, axis=0) for power in (2, 3))
    with np.errstate(invalid="ignore"):
        expected = np.where(second > 1e-20, third / (6 * second**1.5), 0)
    assert_allclose(own["effect_acceleration"], expected[:2], rtol=1e-6)
    assert_allclose(own["heterogeneity_acceleration"], expected[2:4], rtol=1e-6)
    assert_allclose(own["curve_acceleration"], expected[4:], rtol=1e-6, atol=1e-9)
