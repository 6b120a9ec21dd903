"""Designs of surveys: expectations over all samples, jackknife, degenerate designs."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rhale_stats.arrays.survey import SamplingDesign

POPULATION = [np.array([1.0, 2, 4, 8]), np.array([10.0, 11, 15, 16, 30])]
DRAWN = [2, 3]


def test_variances_are_unbiased_over_all_stratified_samples():
    # Every sample without replacement of both strata, drawn with equal probability.
    size = np.array([len(stratum) for stratum in POPULATION])
    samples = [combinations(values, n) for values, n in zip(POPULATION, DRAWN, strict=True)]
    means, variances = [], []
    for sample in product(*samples):
        values, stratum = np.concatenate(sample), np.repeat([0, 1], DRAWN)
        weight = (size / DRAWN)[stratum]
        means.append(float(np.average(values, weights=weight)))
        # The size of the population is known, so that the total is linear.
        influence = (weight * values / size.sum())[:, None]
        rest = 1 - (np.array(DRAWN) / size)[stratum]
        design = SamplingDesign.linearised(np.arange(5), stratum, rest)
        variances.append(float(np.sum(design.units(influence) ** 2)))
        assert design.degrees == 3
    assert len(means) == 60
    assert_allclose(np.mean(variances), np.var(means), rtol=1e-12)


def test_variances_are_unbiased_over_all_samples_of_clusters():
    clusters = [[1.0, 2], [5.0], [2.0, 2, 8], [0.0, 1]]
    totals, variances = [], []
    for sample in combinations(clusters, 2):
        code = np.repeat([0, 1], [len(cluster) for cluster in sample])
        influence = 4 / 2 * np.concatenate(sample)[:, None]
        totals.append(influence.sum())
        design = SamplingDesign.linearised(code, np.zeros(2, dtype=int), np.full(2, 0.5))
        variances.append(float(np.sum(design.units(influence) ** 2)))
    assert_allclose(np.mean(variances), np.var(totals), rtol=1e-12)


def test_the_jackknife_of_means_is_linearisation():
    rng = np.random.default_rng(0)
    n = 7
    values = rng.normal(size=(n, 2))
    influence = (values - values.mean(axis=0)) / n
    weights = (1 - np.eye(n)) * n / (n - 1)
    jackknife = SamplingDesign.replicated(weights, np.full(n, (n - 1) / n))
    plain = SamplingDesign.linearised(np.arange(n), np.zeros(n, dtype=int), np.ones(n))
    covariances = [moved.T @ moved for moved in (d.units(influence) for d in (jackknife, plain))]
    assert_allclose(*covariances, rtol=1e-12)
    assert_allclose(covariances[0], np.cov(values.T) / n, rtol=1e-12)
    assert jackknife.degrees == plain.degrees == n - 1


def test_means_over_replicate_weights_are_exact():
    rng = np.random.default_rng(1)
    values, weights = rng.normal(size=20), rng.integers(0, 3, (20, 5)).astype(float)
    design = SamplingDesign.replicated(weights, np.array([1.0, 2, 3, 4, 5]))
    share = np.full((20, 1), 1 / 20)
    moved = design.units(share * (values - values.mean())[:, None], share)[:, 0]
    means = np.array([np.average(values, weights=w) for w in weights.T])
    assert_allclose(moved, np.sqrt([1, 2, 3, 4, 5]) * (means - means.mean()), rtol=1e-10)


def test_clusters_without_rows_in_use_count():
    design = SamplingDesign.linearised(np.array([0, 1, 2, 2]), np.zeros(3, dtype=int), np.ones(3))
    influence = np.array([[2.0], [1.0], [3.0], [0.0]])
    part = design.take(np.array([True, False, False, False]))
    # Two of three clusters have 0.
    assert_allclose(np.sum(part.units(influence[:1]) ** 2), 3 * np.var([2, 0, 0], ddof=1))
    assert_allclose(part.units_of_table(influence), design.units(influence))
    assert_array_equal(part.rows, [0])


@pytest.mark.parametrize("rest", [0.0, 1.0])
def test_certainty_clusters_add_nothing(rest):
    design = SamplingDesign.linearised(
        np.arange(3), np.array([0, 0, 1]), np.array([rest, rest, 0.0])
    )
    moved = design.units(np.array([[1.0], [3.0], [100.0]]))
    assert_allclose(np.sum(moved**2), rest * 4.0)
