"""Accelerations of bootstrap intervals, by the influences of rows (math [29])."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse, stats

import rhale_stats as rs
from rhale_stats.arrays.resample import Units
from rhale_stats.effects.accelerations import _acceleration, _powers, accelerations
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
    units = Units(None, [np.arange(len(rows))], None if size is None else np.asarray(size))
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
