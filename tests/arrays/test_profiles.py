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


@pytest.mark.parametrize("kind", ["none", "precision", "frequency"])
def test_means_of_bins_row_by_row(rng, kind):
    """Bins of many rows, of one, and of none; an offset that squares would not survive."""
    cell = frozen(np.array([0] * 9 + [1] + [3] * 5))
    values = frozen(1e8 + rng.normal(size=15))
    weight = {
        "none": None,
        "precision": frozen(rng.uniform(0.5, 2.0, 15)),
        "frequency": frozen(rng.integers(1, 4, 15).astype(float)),
    }[kind]
    found = kernel.bin_means(values, cell, 5, weight, frequency=kind == "frequency")
    w = np.ones(15) if weight is None else weight
    for k in range(5):
        v, own = values[cell == k] - 1e8, w[cell == k]
        total = own.sum()
        n_obs = total if kind == "frequency" else len(own)
        assert_allclose([found.n_obs[k], found.share[k]], [n_obs, total / w.sum()])
        if not len(v):
            assert np.isnan([found.mean[k], found.variance[k]]).all()
            assert found.n_effective[k] == 0
            continue
        mean = own @ v / total
        # Rounding of values of 1e8.
        assert_allclose(found.mean[k] - 1e8, mean, rtol=0, atol=1e-7)
        n = total**2 / (own @ own) if kind == "precision" else total
        assert_allclose(found.n_effective[k], n)
        squares = own @ (v - mean) ** 2
        free = total - own @ own / total if kind == "precision" else total - 1
        assert_allclose(found.variance[k], squares / free if free > 1e-9 else np.nan, rtol=1e-6)
        if kind == "precision":
            # The mean of the squares that rows of variance 1 have.
            expected = own**2 @ (1 - 2 * own / total + own @ own / total**2)
            robust = own**2 @ (v - mean) ** 2 / expected if len(v) > 1 else np.nan
            assert_allclose(found.robust[k], robust, rtol=1e-6)
    assert (found.robust is None) == (kind != "precision")


def test_no_bins_have_no_means():
    found = kernel.bin_means(np.zeros(0), np.zeros(0, int), 0, None, frequency=False)
    assert all(len(one) == 0 for one in found[:5])


def test_scatter_with_weights_and_an_offset(rng):
    values = frozen(1e6 + rng.normal(size=(500, 3)) @ rng.normal(size=(3, 3)))
    weight = frozen(rng.uniform(0.1, 3.0, 500))
    found = kernel.scatter(values, weight)
    assert_allclose(found.total, weight.sum())
    assert_allclose(found.mean - 1e6, weight @ (values - 1e6) / weight.sum(), rtol=0, atol=1e-9)
    own = values - 1e6 - weight @ (values - 1e6) / weight.sum()
    assert_allclose(found.squares, (own * weight[:, None]).T @ own, rtol=1e-6)


def test_means_of_bins_do_not_depend_on_the_unit_of_weights(rng):
    cell, values, weight = np.repeat([0, 1, 2], [4, 1, 3]), rng.normal(size=8), rng.uniform(1, 2, 8)
    once = kernel.bin_means(values, cell, 3, weight, frequency=False)
    for unit in (1e-12, 1e12):
        found = kernel.bin_means(values, cell, 3, unit * weight, frequency=False)
        for one, other in zip(once, found, strict=True):
            assert_allclose(other, one, rtol=1e-12)


@pytest.mark.parametrize("themselves", [False, True])
@pytest.mark.parametrize("centering", ["none", "start", "mean", "integral"])
def test_replicates_of_mean_curves_are_those_of_the_rows_drawn(rng, centering, themselves):
    """Curves of 30 rows at four points of the grid, each row once to three times."""
    grid, x = np.array([0.0, 1.0, 3.0, 4.0]), rng.uniform(0, 4, 30)
    curves, times = 5 + rng.normal(size=(30, 4)), rng.integers(0, 4, (30, 3)).astype(float)
    at = kernel.places(grid, x)
    found = kernel.replicates(curves, grid, at, times, centering, 1.25, themselves=themselves)
    # Linear interpolation: how much of a row belongs to each point.
    hats = np.array([np.interp(x, grid, e) for e in np.eye(4)]).T
    for draw, w in enumerate(times.T):
        share = w @ hats / w.sum()
        of_centre = {
            "start": np.array([1.0, 0, 0, 0]),
            "integral": np.array([1.0, 3, 3, 1]) / 8,  # trapezoids
        }.get(centering, share)
        own = curves - (0 if themselves else (curves @ of_centre)[:, None])
        mean = w @ curves / w.sum()
        whole = mean if centering == "none" else mean - of_centre @ mean
        variance = 1.25 * (w @ (own - w @ own / w.sum()) ** 2) / w.sum()
        expected = (
            whole, np.sqrt(variance), np.sqrt(share @ variance),
            np.sqrt(share @ (whole - share @ whole) ** 2),
        )  # fmt: skip
        for values, one in zip(found, expected, strict=True):
            assert_allclose(values[draw], one, rtol=1e-10, atol=1e-12)
