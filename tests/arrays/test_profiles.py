"""Means of bins made again from rows that are drawn."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose

from rhale_stats.arrays import profiles as kernel
from tests.helpers import frozen


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("centering", ["mean", "start"])
def test_replicates_of_bins_are_the_bins_of_the_rows_drawn(rng, weighted, centering):
    """Precision weights go with the rows, however often these are drawn."""
    n, n_bins = 60, 4
    values, cell = frozen(rng.normal(size=n)), frozen(np.arange(n) % n_bins)
    base = frozen(rng.uniform(0.5, 2, n)) if weighted else None
    drawn = rng.multinomial(n, np.full(n, 1 / n), size=5).T
    x = frozen(np.arange(n_bins, dtype=float))
    of = kernel.bin_means(values, cell, n_bins, base, frequency=False)
    found = kernel.bin_replicates(values, cell, of, x, centering, base, drawn)
    for number, times in enumerate(drawn.T):
        rows = np.repeat(np.arange(n), times)
        weight = np.ones(n) if base is None else base
        total = np.bincount(cell[rows], weight[rows])
        mean = np.bincount(cell[rows], (weight * values)[rows]) / total
        constant = mean[0] if centering == "start" else total / total.sum() @ mean
        assert_allclose(found[0][number], mean - constant, rtol=0, atol=1e-14)
        spread = [
            np.sqrt(np.cov(values[rows][at], aweights=weight[rows][at]))
            for at in (cell[rows] == k for k in range(n_bins))
        ]
        assert_allclose(found[1][number], spread, rtol=1e-12)


@pytest.mark.parametrize("n_grid", [40, 320])
def test_products_of_many_columns_are_added_up_within_bounds(n_grid):
    """Of 10,000 rows and 640 columns they were held for every row: 30 GiB."""
    values = np.random.default_rng(0).normal(5, 1, (2003, n_grid))
    tracemalloc.start()
    found = kernel.scatter(values, None)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    deviation = values - values.mean(axis=0)
    # Rounding of sums of 2,003 products.
    assert_allclose(found.squares, deviation.T @ deviation, rtol=1e-10, atol=1e-9)
    assert peak < 60e6
