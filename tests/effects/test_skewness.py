"""Skewness of errors by groups and with weights: by definition, invariances, coverage."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import rhale_stats as rs
from rhale_stats.arrays import influence
from rhale_stats.effects.fit import SKEWNESS, _part, bin_degrees, row_skewness
from rhale_stats.schema.feature_result import one_feature
from studies.skewed import coverage
from studies.validity_processes import Process
from tests.helpers import local_of

N = 400
EDGES = np.linspace(-1, 1, 6)


@pytest.fixture
def table(rng):
    """Skewed local effects of rows in groups, with weights; x, g, groups, weights."""
    x, group = rng.uniform(-1, 1, (N, 1)), rng.integers(60, size=N)
    shared = rng.exponential(size=60)[group][:, None]
    g = x + shared + (1 + x**2) * rng.exponential(size=(N, 1))
    return x, g, group, rng.uniform(0.5, 2, N)


def fitted(x, g, **options):
    local = local_of(x, g, **options)
    return local, rs.rhale(local, bins=rs.GivenBins(EDGES))


def test_third_cumulant_of_weighted_cells_by_definition(table):
    x, g, _, weight = table
    row = one_feature(fitted(x, g, weights=weight)[1], 0)
    edges = row.edges
    k = np.clip(np.searchsorted(edges, x[:, 0], side="right") - 1, 0, len(edges) - 2)
    for cell, found in enumerate(row["cell_robust_third_cumulant"].values[:-1]):
        there = k == cell
        a = weight[there] / weight[there].sum()
        residual = g[there, 0] - a @ g[there, 0]
        # E (e_i - sum a_j e_j)^3, of independent errors with third cumulants of 1.
        kept = [(1 - own) ** 3 - np.sum(np.delete(a, i) ** 3) for i, own in enumerate(a)]
        expected = np.sum((a * residual) ** 3) * np.sum(a**3) / (a**3 @ kept)
        assert_allclose(found, expected / np.sum(a**2) ** 2, rtol=1e-10)


def test_nearly_equal_weights_are_as_none(table):
    x, g, _, weight = table
    without = rs.std_error(fitted(x, g)[1])
    found = rs.std_error(fitted(x, g, weights=1 + 1e-9 * weight)[1])
    assert found["skewness_sign"] == 1
    assert (without["effect_skewness"] > 0).all()
    for name in SKEWNESS:
        assert_allclose(found[name], without[name], rtol=1e-6, atol=1e-9)


def test_effects_by_groups_by_definition(table):
    """The third moment of the corrected influences, over that of the variance."""
    x, g, group, _ = table
    local = local_of(x, g)
    rule = rs.GivenBins(np.array([-1.0, 1.0]))
    effect = rs.std_error(rs.rhale(local, bins=rule, weighting="rows"), local, groups=group)
    residual = np.bincount(group, g[:, 0] - g.mean()) / N
    share = np.bincount(group) / N
    influence = residual / np.sqrt(1 - share)
    assert_allclose(effect["effect_se"], np.sqrt(np.sum(influence**2)), rtol=1e-10)
    n = effect["effect_df"].item() + 1
    kept = (1 - 2 / n) / np.sqrt(1 - 1 / n)
    expected = np.sum(influence**3) / kept / np.sum(influence**2) ** 1.5
    assert_allclose(effect["effect_skewness"], expected, rtol=1e-10)
    assert expected > 0.1


@pytest.mark.thorough
@pytest.mark.parametrize("by", ["groups", "weights"])
def test_units_and_signs(table, by):
    x, g, group, weight = table
    more = {"weights": weight} if by == "weights" else {}

    def made(x, g):
        local, effect = fitted(x, g, **more)
        return rs.std_error(effect, local, groups=group) if by == "groups" else rs.std_error(effect)

    ours, scaled, mirrored = made(x, g), made(x, 7 + 3 * g), made(x, -g)
    assert (ours["effect_skewness"] > 0).all()
    assert np.abs(ours["curve_skewness"]).max() > 0.05
    assert_allclose(scaled["effect_skewness"], ours["effect_skewness"], rtol=1e-6)
    for name in SKEWNESS:
        assert_allclose(mirrored[name], -ours[name], rtol=1e-6, atol=1e-12)


def test_symmetric_effects_have_none(table):
    """Every group has a mirrored one, at the same places."""
    x, g, group, weight = table
    x, g, weight = np.vstack([x, x]), np.vstack([g - x, x - g]), np.tile(weight, 2)
    group = np.concatenate([group, group + 60])
    local, effect = fitted(x, g)
    by_groups = rs.std_error(effect, local, groups=group)
    weighted = rs.std_error(fitted(x, g, weights=weight)[1])
    assert weighted["skewness_sign"] == 0
    for one in (by_groups, weighted):
        for name in SKEWNESS:
            assert_array_equal(one[name].fillna(0.0), np.zeros(one[name].shape))


def test_intervals_and_bands_by_groups_are_longer_on_one_side(table):
    x, g, group, _ = table
    local, effect = fitted(x, g)
    effect = rs.std_error(effect, local, groups=group)
    found = rs.confband(rs.confint(effect), rng=0)
    for name in ("effect_ci", "effect_band"):
        away = np.abs(found[name] - effect["effect"])
        assert (away.sel(ci_bound="upper") > away.sel(ci_bound="lower")).all()
    assert found["effect_ci"].attrs["method"].endswith("corrected for skewness")


@pytest.mark.parametrize("by", ["rows", "groups"])
def test_equivalence_is_that_of_intervals(table, by):
    """A bin is within delta at 5 % if its 90 % interval is."""
    x, g, group, _ = table
    local, effect = fitted(x, g - 2)
    effect = rs.std_error(effect, local, groups=group) if by == "groups" else rs.std_error(effect)
    assert (effect["effect_skewness"] != 0).all()
    ends = rs.confint(effect, level=0.9)["effect_ci"].values
    delta = float(np.abs(ends).max())
    for factor, within in ((1 + 1e-6, True), (1 - 1e-6, False)):
        p_value = rs.equivalence_test(effect, factor * delta)["p_value"].item()
        assert (p_value < 0.05) == within
    found = rs.equivalence_test(effect, 2 * delta)
    degrees = bin_degrees(one_feature(effect, 0))
    assert found["df"].item() in degrees
    assert_allclose(found["p_value"], stats.t.sf(found["statistic"], found["df"]), rtol=1e-12)


def test_cells_hold_enough_rows_of_large_weight(rng):
    """A row in fifty of weight 10: wide cells are not halved below three rows that count."""
    n, edges = 3000, np.array([-1.0, 1.0])
    weight = np.where(np.arange(n) % 50 == 0, 10.0, 1.0)
    x, g = rng.uniform(-1, 1, (n, 1)), rng.normal(size=(n, 1))
    kish = weight.sum() ** 2 / np.sum(weight**2)
    counted = np.sum(weight**2) ** 2 / np.sum(weight**4)
    for given, rows, count in ((None, n, n), (np.full(n, 2.0), n, n), (weight, kish, counted)):
        found = rs.rhale(local_of(x, g, weights=given), bins=rs.GivenBins(edges))
        cells = np.histogram(x, found["edge_value"].values[0])[0]
        # Cells of equal weight have so many rows on average; halves of them fewer.
        usual = 15 * n / rows
        assert cells.min() >= min(3 * n / count, usual / 2)
        assert len(cells) <= n / usual + (40 if given is None else 1) + 1


# Without the correction effects and their band cover about 91 and 85 %, and 91 and 76 %.
SKEWED = [
    Process(noise="log-normal", shape=1.0, n=1000, n_groups=40),
    Process(noise="log-normal", shape=0.5, n=1000, weighted=1),
]


@pytest.mark.slow
@pytest.mark.parametrize("process", SKEWED, ids=["groups", "weights"])
def test_coverage(process):
    """Intervals of effects and their band cover 91 % or more, and more than without."""
    found = [coverage(process, np.random.default_rng([7, number])) for number in range(4)]
    for name, least in (("effect", 0.91), ("effect band", 0.88)):
        without, corrected = np.mean([one[name] for one in found], axis=0)
        assert corrected > least
        assert corrected > without


def test_parts_of_an_error_without_skewness():
    """The power 3/2 of the share of the variance; nothing where there is none."""
    within, total = np.array([1.0, 4.0, 0.0, 0.0, 5.0]), np.array([4.0, 4.0, 2.0, 0.0, 4.0])
    assert_allclose(_part(within, total), [1 / 8, 1, 0, 0, 1])


def test_sums_of_cells_by_hand():
    """Effects of cells differ, which adds to the error of the average and has no skewness."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (N, 1))
    g = 3 * (x > 0) + rng.exponential(size=(N, 1))
    effect = rs.rhale(local_of(x, g), bins=rs.GivenBins([-1, 0, 1]))
    row = one_feature(effect, 0)
    fit = row.fit
    cells, own = fit.cells, fit.cells.skewness()
    share, n, mean = cells.pieces.share, cells.n_effective, cells.pieces.mean
    within = np.sum(share**2 * fit.noise.mean)
    between = np.sum(share**2 * (mean - row["average_effect"].item()) ** 2 / n)
    loadings, variance = fit.loadings(fit.pieces.edges), fit.variance(fit.pieces.edges)
    of_effects = influence.variance(loadings, influence.parts(loadings, fit.noise))
    found = {name: values[0] for name, values in row_skewness(row.together).items()}
    rest = (within / (within + between)) ** 1.5
    assert_allclose(found["average_effect_skewness"], own.of_sums(share) * rest)
    assert found["average_effect_skewness"] > 0.01
    of_bins = (cells.bin == np.arange(2)[:, None]) * cells.loading[0]
    assert_allclose(found["effect_skewness"], own.of_sums(of_bins))
    expected = own.of_sums(loadings.level) * (of_effects / variance) ** 1.5
    assert_allclose(found["curve_skewness"], expected)
    symmetric = rs.rhale(local_of(x, 0 * x), bins=rs.GivenBins([-1, 0, 1]))
    none = row_skewness(one_feature(symmetric, 0).together)
    assert all(not np.any(values) for values in none.values())
