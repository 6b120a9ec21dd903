"""Replicates whose edges are chosen again, each by its own call."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import rhale_stats as rs
from rhale_stats.arrays.resample import ResampledUnits, draw_weights
from rhale_stats.bins.description import for_share_of_rows
from rhale_stats.effects.replicates import _n_effective, common_grid
from rhale_stats.schema.feature_result import one_feature
from tests.helpers import (
    local_of,
    without_spread,
)

N, GRID, DRAWS = 60, 7, 3
RNG = np.random.default_rng(8)
X = np.column_stack([RNG.uniform(0, 1, N), np.ones(N), RNG.uniform(2, 4, N)])
G = np.column_stack([np.sign(X[:, 0] - 0.5), X[:, 0], X[:, 2]]) + RNG.normal(size=(N, 3)) / 9
RULE = rs.OptimalBins(max_bins=4, min_obs=8)


def test_effective_number_of_rows():
    assert _n_effective(np.array([1.0, 1, 1])) == pytest.approx(3)
    assert _n_effective(np.array([3.0, 1, 0])) == pytest.approx(1.6)


@pytest.mark.thorough
@pytest.mark.parametrize(("weighting", "weighted"), [("axis", False), ("rows", True)])
def test_replicates_are_effects_of_the_drawn_rows(weighted, weighting):
    """On a grid from the first to the last edge; a constant feature has none."""
    weights = RNG.uniform(0.5, 2, N) if weighted else None
    options = {"weights": weights} if weighted else {}
    local = local_of(X, G, **options)
    effect = rs.rhale(local, bins=RULE, weighting=weighting, centering="start")
    boot = rs.bootstrap(
        local, effect, n_resamples=DRAWS, chains=1, rng=3, rebin=True, n_grid=GRID, progress=False
    )
    grid = common_grid(effect, GRID)
    assert_allclose(grid[::2], np.linspace(X.min(axis=0), X.max(axis=0), GRID).T[::2])
    assert np.isnan(grid[1]).all()
    assert_array_equal(boot["grid_value"], grid)
    seeds, units = np.random.default_rng(3).spawn(DRAWS), ResampledUnits(None, [np.arange(N)], None)
    hits = np.zeros((3, GRID - 1))
    base = np.ones(N) if weights is None else weights
    for draw in range(DRAWS):
        weight = base * draw_weights("multinomial", units, seeds[draw])
        own = for_share_of_rows(RULE, _n_effective(weight) / _n_effective(base))
        kept = weight > 0
        sample = local_of(X[kept], G[kept], weights=weight[kept], weight_kind="precision")
        made = rs.rhale(sample, bins=own, weighting=weighting, centering="start")
        for number in (0, 2):
            for what in ("effect", "curve", "heterogeneity"):
                bare = without_spread(made)
                expected = rs.predict(bare, grid[number], number, what=what)
                found = boot[what].isel(chain=0, draw=draw, feature=number)
                assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
            n = int(made["n_bins"][number])
            assert boot["n_bins"].values[0, draw, number] == n
            inner = one_feature(made, number).bin_edges[1:-1]
            at = np.searchsorted(grid[number], inner, side="right") - 1
            hits[number, np.unique(at)] += 1
    assert_allclose(boot["edge_frequency"][[0, 2]], hits[[0, 2]] / DRAWS)
    assert np.isnan(boot["curve"].values[0, :, 1]).all()
    assert boot.attrs["bins"] == "chosen again in every replicate"
