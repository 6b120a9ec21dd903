"""Sums of residuals, and the search for bins of the spread (math [66])."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import special

from rhale_stats.arrays import spread
from rhale_stats.arrays.cell_moments import Line
from tests.arrays.made import in_cells

EDGES = np.linspace(0, 1, 21)


def residuals(x, g, n_cells=4, weight=None, frequency=False):
    """Residuals from the means of equal cells, each of which takes one degree of freedom."""
    cells = in_cells(np.linspace(0, 1, n_cells + 1), x, g, weight, frequency=frequency)
    n = cells.weight**2 / np.maximum(cells.weight_sq, 1e-300)
    left = np.where(n > 1, 1 - 1 / np.maximum(n, 1), 0.0)
    return spread.residuals(cells, Line.through(cells.means(), None), left)


def sums_of(deviation, degrees=50.0):
    """Cells whose variances have the logarithms that normal rows have on average."""
    deviation = np.asarray(deviation, dtype=float)
    d = np.full(len(deviation), float(degrees))
    variance = deviation**2 * np.exp(special.digamma(d / 2)) / (d / 2)
    return spread.Residuals(d, d, d, d, 0 * d, d * variance, 0 * d, 3 * d * variance**2)


def starts(sums, **more):
    given = {"penalty": 11.0, "min_obs": 30, "resolution": 0.0}
    return spread.spread_starts(sums, np.arange(len(sums.free)), **(given | more))


def test_toy_residuals_by_hand():
    """Two rows of -1 and 1 about their mean: one degree of freedom, variance 2."""
    found = residuals(np.array([0.1, 0.2, 0.6, 0.7]), np.array([4.0, 6.0, -3.0, 3.0]), 2)
    assert_array_equal(found.n_obs, [2, 2])
    assert_allclose(found.degrees, [1, 1])
    assert_allclose(found.moment("square"), [2, 18])
    # r = 1 / sqrt(1/2), so r^4 = 4; and 324 for the others.
    assert_allclose(found.moment("fourth"), [4, 324])
    assert_allclose(found.moment("third"), 0, atol=1e-12)


def test_one_bin_has_the_unbiased_variance_within_the_cells(rng):
    x, g = rng.uniform(size=200), rng.normal(size=200)
    cell = np.minimum((x * 4).astype(int), 3)
    within = sum(np.sum((g[cell == k] - g[cell == k].mean()) ** 2) for k in range(4))
    found = residuals(x, g).merged(np.array([0]))
    assert_allclose(found.moment("square"), within / 196)
    assert_allclose(found.degrees, 196)


def test_frequencies_are_rows_written_out(rng):
    x, g, count = rng.uniform(size=60), rng.normal(size=60), rng.integers(1, 4, 60)
    counted = residuals(x, g, weight=count, frequency=True)
    repeated = residuals(np.repeat(x, count), np.repeat(g, count))
    for a, b in zip(counted, repeated, strict=True):
        assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def test_rows_that_are_fitted_exactly_have_no_weight():
    x, g = np.array([0.1, 0.3, 0.35, 0.6, 0.9]), np.array([5.0, 1.0, 2.0, 7.0, 7.5])
    found = residuals(x, g).merged(np.array([0, 1, 2]))
    assert_array_equal(found.n_obs, [1, 2, 2])
    assert_allclose(found.moment("square"), [np.nan, 0.5, np.nan])


@pytest.mark.parametrize("kind", ["none", "precision", "frequency"])
def test_sums_of_residuals_row_by_row(rng, kind):
    """About lines in four cells, of which the last is fitted exactly."""
    n = 200
    x, g = np.concatenate([rng.uniform(0, 0.99, n - 1), [1.0]]), rng.normal(size=n)
    weight = {"none": None, "precision": rng.uniform(0.5, 2, n),
              "frequency": rng.integers(1, 4, n).astype(float)}[kind]  # fmt: skip
    cell = np.minimum((x * 4).astype(np.int32), 3)
    lines = Line(np.array([0.1, 0.4, 0.6, 0.9]), rng.normal(size=4), rng.normal(size=4))
    left, frequency = np.array([0.9, 0.8, 0.95, 0.0]), kind == "frequency"
    cells = in_cells(np.linspace(0, 1, 5), x, g, weight, frequency=frequency)
    found = spread.residuals(cells, lines, left)
    w, free = np.ones(n) if weight is None else weight, left[cell]
    r = g - lines.mean[cell] - lines.slope[cell] * (x - lines.x[cell])
    r = r / np.sqrt(np.where(free > 0, free, 1))
    counts = weight is None or frequency
    columns = [
        w if counts else np.ones(n), w, w * free, w * free * (1 if counts else w),
        *(w * free * part for part in (r, r**2, r**3, r**4)),
    ]  # fmt: skip
    for values, column in zip(found, columns, strict=True):
        assert_allclose(values, np.bincount(cell, column, 4), rtol=1e-10, atol=1e-12)


# --- the search ----------------------------------------------------------------------------------


def test_a_step_is_found_where_it_is():
    assert_array_equal(starts(sums_of([1] * 7 + [2] * 13)), [0, 7])
    assert_array_equal(starts(sums_of([1] * 20)), [0])
    assert_array_equal(starts(sums_of([1] * 5 + [3] * 4 + [1] * 11)), [0, 5, 9])


def test_edges_move_among_cells():
    """Places are every third cell; the step is at none of them."""
    deviation = np.repeat([1.0, 3.0], [137, 163])
    assert_array_equal(starts(sums_of(deviation, 9)), [0, 137])


def test_a_jump_within_a_run_of_cells_is_no_bin():
    """Places are every third cell. Two edges, at the ends of a run, must become one together."""
    deviation = np.repeat([1.0, 4.0, 6.0], [137, 1, 162])
    assert_array_equal(starts(sums_of(deviation, 30), min_obs=60), [0, 137])


def test_a_first_edge_counts_all_cells_as_places():
    """The gain is (difference of the means)^2 over its variance; the noise counts as one half."""
    n_cells, degrees = 300, 50
    variance = 2 * special.polygamma(1, degrees / 2) / 2 / (n_cells / 2)
    for gain, edges in ((12.0, [0]), (11 + 2 * np.log(3) + 0.5, [0, 150])):
        deviation = np.exp(np.sqrt(gain * variance) / 2 * np.repeat([0, 1], n_cells // 2))
        assert_array_equal(starts(sums_of(deviation, degrees)), edges)


def test_no_bin_has_fewer_rows_than_asked():
    deviation = [1] * 9 + [5] + [1] * 10
    assert_array_equal(starts(sums_of(deviation)), [0, 9, 10])
    found = starts(sums_of(deviation), min_obs=120)
    assert np.diff([*found, 20]).min() >= 3


@pytest.mark.parametrize("deviation", [[0] * 20, [1e-9] * 10 + [2e-9] * 10])
def test_spread_below_the_resolution_is_none(deviation):
    assert_array_equal(starts(sums_of(deviation), resolution=1e-6), [0])


def test_cells_without_rows_cost_nothing():
    sums = sums_of([1] * 7 + [2] * 13)
    empty = np.insert(np.stack(sums), [3, 7, 7], 0.0, axis=1)
    assert_array_equal(starts(spread.Residuals(*empty)), [0, 8])
    none = spread.Residuals(*np.zeros((8, 3)))
    assert_array_equal(starts(none), [0])


@pytest.mark.thorough
def test_heavy_tails_are_not_split_more_often_than_normal_ones(rng):
    """Cells of 15 rows, 100 of them, one spread: the noise is as neighbours differ."""
    found = {}
    for name, draw in {
        "normal": rng.standard_normal,
        "t3": lambda size: rng.standard_t(3, size),
        "lognormal": lambda size: rng.lognormal(size=size),
    }.items():
        n_bins = []
        for _ in range(100):
            square = np.var(draw((100, 15)), axis=1, ddof=1)
            d = np.full(100, 14.0)
            n_bins.append(len(starts(spread.Residuals(d, d, d, d, 0 * d, d * square, d, d))))
        found[name] = np.mean(np.array(n_bins) > 1)
    # Errors of these shares are up to .03.
    assert found["normal"] <= 0.1
    assert found["t3"] <= 0.15
    assert found["lognormal"] <= 0.15


def search_of(levels, weights, rows=50.0, min_obs=30):
    weights = np.asarray(weights, dtype=float)
    every = np.arange(len(weights))
    sums = np.stack([np.full(len(weights), rows), weights, weights * levels])
    return spread._SpreadSearch(every, len(weights), sums, min_obs)


def test_the_search_is_the_best_of_all_partitions(rng):
    """Brute force over all partitions of eight cells: weighted squares about the means of bins."""
    for _ in range(20):
        levels, weights = rng.normal(size=8), rng.uniform(0.5, 2, 8)
        search = search_of(levels, weights, rows=20)

        def cost(edges, levels=levels, weights=weights):
            total = 3.0 * (len(edges) - 1)
            for begin, end in itertools.pairwise(edges):
                if 20 * (end - begin) < 30:
                    return np.inf
                own, w = levels[begin:end], weights[begin:end]
                total += np.sum(w * (own - np.average(own, weights=w)) ** 2)
            return total

        every = [
            (0, *inner, 8) for k in range(8) for inner in itertools.combinations(range(1, 8), k)
        ]
        assert_array_equal(search.best(np.arange(9), 3.0), min(every, key=cost))


def test_edges_between_bins_of_nearly_equal_spread_are_removed():
    """gain = (difference of the means)^2 over the noise of both, weakest first."""
    levels, weights = np.array([0.0, 0.1, 1.0, 1.05]), np.array([10.0, 20, 10, 40])
    search = search_of(levels, weights)
    gains = np.diff(levels) ** 2 / (1 / weights[1:] + 1 / weights[:-1])

    def kept(penalty):
        return search.pruned(np.arange(5), penalty).tolist()

    assert kept(0.99 * gains[2]) == [0, 1, 2, 3, 4]
    assert kept(1.01 * gains[2]) == [0, 1, 2, 4]
    assert kept(1.01 * gains[0]) == [0, 2, 4]
    assert kept(np.inf) == [0, 4]


def test_edges_are_refined_to_the_row():
    """Residuals of 1 before row 23 and of 3 from it on; cells are ten rows each."""
    square = np.where(np.arange(60) < 23, 1.0, 9.0)
    ones = np.ones(60)
    fine = spread.Residuals(ones, ones, ones, ones, 0 * ones, square, 0 * ones, square**2)

    def refined(starts, of_cells=tuple(range(0, 60, 10)), min_obs=10):
        cells = np.array(of_cells)
        found = spread.refined(np.array(starts), cells, fine, min_obs=min_obs, resolution=0.0)
        return found.tolist()

    assert refined([0, 2]) == refined([0, 3]) == [0, 23]
    assert refined([0]) == [0]
    # No bin gets fewer rows than asked; without finer cells edges stay.
    assert refined([0, 2], min_obs=25) == [0, 25]
    assert refined([0, 2], min_obs=35) == [0, 20]
    assert refined([0, 23], np.arange(60)) == [0, 23]


def in_fine_cells(g, n_cells):
    """Residuals of rows, each a fine cell, from the means of equal cells; the first rows of these.

    The means take no degree of freedom.
    """
    n = len(g)
    x, of_cells = (np.arange(n) + 0.5) / n, np.arange(0, n, n // n_cells)
    lines = Line.through(in_cells(np.linspace(0, 1, n_cells + 1), x, g).means(), None)
    fine = in_cells(np.linspace(0, 1, n + 1), x, g)
    return spread.residuals(fine, lines.repeated(np.full(n_cells, n // n_cells)), np.ones(n)), (
        of_cells
    )


def test_a_cell_that_is_divided_has_a_mean_on_either_side():
    """The mean of the cell is 2.1, from which rows of 0.1 have larger residuals than rows of 3."""
    g = np.concatenate([np.tile([-0.1, 0.1], 12)[:23], np.full(7, 3.0), np.tile([-3.0, 3.0], 15)])
    fine, of_cells = in_fine_cells(g, 6)
    edges = spread.refined(np.array([0, 2]), of_cells, fine, min_obs=10, resolution=0.0)
    assert_array_equal(edges, [0, 23])


def test_a_divided_cell_is_no_bin(rng):
    """Cells are of 100 rows, enough for a bin whose variance is between those on both sides."""
    g = rng.normal(size=2000) * np.where(np.arange(2000) < 1037, 0.2, 2.0)
    fine, of_cells = in_fine_cells(g, 20)
    edges = spread.spread_starts(fine, of_cells, penalty=11.0, min_obs=30, resolution=0.0)
    assert len(edges) == 2
    assert abs(edges[1] - 1037) <= 3
