"""What kernels compiled for the purpose would gain over the passes of NumPy and boost-histogram.

Numba comes with the library shap. The package does not use it: see docs/architecture.md.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version

import numpy as np

import rhale_stats as rs
from rhale_stats.arrays import binning, moments, spread

N_ROWS, N_CELLS = 1_000_000, 100
LeastSeconds = Callable[..., list[float]]


def kernels() -> tuple[Callable, Callable, Callable]:
    """One loop over the rows for each pass, into sums of cells of equal width."""
    import numba

    @numba.njit
    def first(x, g, n_cells, sums):
        for i in range(len(x)):
            k = min(int(x[i] * n_cells), n_cells - 1)
            sums[k, 0] += 1
            sums[k, 1] += g[i]
            sums[k, 2] += g[i] * g[i]
            sums[k, 3] += x[i]

    @numba.njit
    def second(x, g, n_cells, x_mean, mean, sums):
        for i in range(len(x)):
            k = min(int(x[i] * n_cells), n_cells - 1)
            d, r = x[i] - x_mean[k], g[i] - mean[k]
            sums[k, 0] += r * r * r
            sums[k, 1] += r * r * r * r
            sums[k, 2] += d * d
            sums[k, 3] += d * r

    @numba.njit
    def third(x, g, cell, n_cells, level, slope, left, scale, sums):
        for i in range(len(x)):
            k, c = min(int(x[i] * n_cells), n_cells - 1), cell[i]
            r, free = (g[i] - level[c] - slope[c] * x[i]) * scale[c], left[c]
            sums[k, 0] += 1
            sums[k, 1] += free
            sums[k, 2] += abs(r) * free
            sums[k, 3] += r * r * free
            sums[k, 4] += r * r * r * free
            sums[k, 5] += r * r * r * r * free

    return first, second, third


def compiled(least_seconds: LeastSeconds) -> None:
    """The three passes of `rhale` over one feature, on one thread."""
    rng = np.random.default_rng(0)
    x = rng.uniform(size=N_ROWS)
    g = np.sin(6 * x) + rng.normal(size=N_ROWS)
    axis = binning.regular_axis(0.0, 1.0, N_CELLS)
    cells = moments.cell_moments(axis, x, g, None, frequency=False)
    of_row = moments.row_cells(axis, x)
    ones = np.ones(N_CELLS)
    means = spread.Means(of_row, cells.mean, cells.x_mean, 0.1 * ones, 0.99 * ones)
    starts = np.arange(N_CELLS)
    first, second, third = kernels()
    sums = np.zeros((N_CELLS, 6))
    pairs = {
        "moments of cells": (
            lambda: moments.cell_moments(axis, x, g, None, frequency=False),
            lambda: first(x, g, N_CELLS, sums),
        ),
        "moments for standard errors": (
            lambda: moments.residual_moments(axis, starts, cells, x, g, None),
            lambda: second(x, g, N_CELLS, cells.x_mean, cells.mean, sums),
        ),
        "residuals of the spread": (
            lambda: spread.residuals(axis, means, x, g, None, frequency=False),
            lambda: third(x, g, of_row, N_CELLS, cells.mean, ones, ones, ones, sums),
        ),
    }
    print(f"One feature, {N_ROWS:,} rows, one thread; Numba {version('numba')}, compiled before.")
    print(f"{'pass':>30}{'ours':>12}{'Numba':>12}{'ratio':>8}")
    saved = 0.0
    for name, (ours, theirs) in pairs.items():
        theirs()
        own, loop = least_seconds(ours, theirs, runs=9)
        saved += own - loop
        print(f"{name:>30}{1e3 * own:>9.1f} ms{1e3 * loop:>9.1f} ms{own / loop:>7.1f}x")
    local = rs.local_effects(None, x[:, None], jacobian=g[:, None], features=0)
    calls = {
        "rhale(local), the paper's bins": {"bins": rs.OptimalBins(), "weighting": "rows"},
        "rhale(local)": {},
    }
    for name, arguments in calls.items():
        (whole,) = least_seconds(lambda arguments=arguments: rs.rhale(local, **arguments), runs=9)
        print(f"{name:>30}{1e3 * whole:>9.1f} ms, {1e3 * saved:.1f} ms less by these three")
