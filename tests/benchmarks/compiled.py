"""What kernels compiled for the purpose would gain over the passes of NumPy and boost-histogram.

Numba comes with the library shap. The package does not use it: see docs/architecture.md.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version

import numpy as np

import rhale_stats as rs
from rhale_stats.arrays import binning, moments, spread
from rhale_stats.arrays.pieces import Pieces
from rhale_stats.arrays.stretches import sorting

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
    """The passes of `rhale` over one feature, on one thread."""
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
    loops, first_saved = 0.0, np.nan
    for name, (ours, theirs) in pairs.items():
        theirs()
        own, loop = least_seconds(ours, theirs, runs=9)
        loops += loop
        first_saved = own - loop if np.isnan(first_saved) else first_saved
        print(f"{name:>30}{1e3 * own:>9.1f} ms{1e3 * loop:>9.1f} ms{own / loop:>7.1f}x")
    local = rs.local_effects(None, x[:, None], jacobian=g[:, None], features=0)
    columns = np.empty((3, N_ROWS))

    def sorted_rows():
        order = sorting(x, (columns[0], columns[2].view(np.int64)))
        return columns[0], g.take(order, out=columns[1], mode="clip")

    in_order = sorted_rows()
    x_only, by_rows, pieces = least_seconds(
        lambda: np.sort(x), sorted_rows, lambda: Pieces(*in_order), runs=9
    )
    after = means._replace(of_row=moments.stretches(axis, in_order[0]))
    (rest,) = least_seconds(
        lambda: spread.residuals(axis, after, *in_order, None, frequency=False), runs=9
    )
    own = by_rows + pieces + rest
    print(
        f"rhale(local) sorts the rows, {1e3 * by_rows:.1f} ms, sums their pieces, "
        f"{1e3 * pieces:.1f} ms, and the residuals of sorted rows, {1e3 * rest:.1f} ms;\n"
        f"by loops: the three above, {1e3 * loops:.1f} ms, and the order of x for the cells of the "
        f"curve, {1e3 * x_only:.1f} ms."
    )
    _search_of_regions(least_seconds)
    calls = {
        "no moments": {"bins": rs.OptimalBins(), "weighting": "rows", "std_error_moments": False},
        "the paper's bins": {"bins": rs.OptimalBins(), "weighting": "rows"},
        "rhale(local)": {},
    }
    saved = (first_saved, own - loops, own - loops - x_only)
    for (name, arguments), less in zip(calls.items(), saved, strict=True):
        (whole,) = least_seconds(lambda arguments=arguments: rs.rhale(local, **arguments), runs=9)
        print(f"{name:>30}{1e3 * whole:>9.1f} ms, {1e3 * less:.1f} ms less by loops")


def _search_of_regions(least_seconds: LeastSeconds) -> None:
    """The dynamic programme of the search for a split: both sides of 171 splits, 100 cells."""
    import numba

    @numba.njit
    def programme(weight, mean, m2, width, needed, discount, best, previous):
        for problem in range(weight.shape[0]):
            best[problem, 0] = 0.0
            whole = weight[problem].sum()
            for j in range(1, N_CELLS + 1):
                n = first = second = span = 0.0
                best[problem, j] = np.inf
                for begin in range(j - 1, -1, -1):
                    w, g = weight[problem, begin], mean[problem, begin]
                    n, first = n + w, first + w * g
                    second += m2[problem, begin] + w * g * g
                    span += width[begin]
                    if n >= needed:
                        variance = (second - first * first / n) / (n - 1)
                        cost = variance * span * (1 - discount / whole * n) + best[problem, begin]
                        if cost < best[problem, j]:
                            best[problem, j], previous[problem, j] = cost, begin

    rng = np.random.default_rng(1)
    shape, least, discount = (342, N_CELLS), 10.0, 0.3
    n = rng.integers(20, 60, shape).astype(np.float64)
    mean, m2 = rng.normal(size=shape), n * rng.chisquare(5, shape) / 5
    cells = moments.Moments(n, n, n, mean, m2, n)
    width, ones = np.full(shape, 1 / N_CELLS), np.ones(len(n))
    options = {"min_obs": least * ones, "discount": discount, "ddof": 1, "resolution": 0 * ones}
    best, previous = np.empty((len(n), N_CELLS + 1)), np.zeros((len(n), N_CELLS + 1), np.int64)
    own, loop = least_seconds(
        lambda: binning.optimal_starts(cells, width, **options),
        lambda: programme(n, mean, m2, width[0], least, discount, best, previous),
        runs=9,
    )
    starts = binning.optimal_starts(cells, width, **options)
    same = [previous[row, -1] == np.flatnonzero(one)[-1] for row, one in enumerate(starts)]
    print(
        f"Search of regions, bins of {len(n)} parts of {N_CELLS} cells: {1e3 * own:.1f} ms, "
        f"{1e3 * loop:.1f} ms by a loop, the same last bin in {np.mean(same):.0%}."
    )
