"""Sums of residuals, and the search for bins of the spread (math [66])."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rhale_stats.arrays import binning, spread
from rhale_stats.arrays.moments import stretches

EDGES = np.linspace(0, 1, 21)


def means_of(x, g, n_cells):
    """Means in equal cells, each of which takes one degree of freedom."""
    cell = np.minimum((x * n_cells).astype(np.int32), n_cells - 1)
    n = np.bincount(cell, minlength=n_cells)
    mean, x_mean = (np.bincount(cell, part, n_cells) / n for part in (g, x))
    return spread.Means(cell, mean, x_mean, np.zeros(n_cells), 1 - 1 / n)


def residuals(x, g, n_cells=4, weight=None, frequency=False):
    axis = binning.variable_axis(EDGES)
    means = means_of(x, g, n_cells)
    return spread.residuals(axis, means, x, g, weight, frequency=frequency)


def sums_of(mean, n=50):
    """Cells of ``n`` rows whose |r| have these means and a variation of 0.75."""
    mean, n = np.asarray(mean, dtype=float), np.full(len(mean), float(n))
    square = n * mean**2 * 1.5625
    return spread.Residuals(n, n, n, n, n * mean, square, 0 * n, 3 * square)


def starts(sums, **more):
    given = {"fine": 1, "penalty": 11.0, "min_obs": 30, "resolution": 0.0, "in_cells": False}
    return spread.spread_starts(sums, **(given | more))


def test_toy_residuals_by_hand():
    """Two rows of -1 and 1 about their mean: one degree of freedom, variance 2."""
    x, g = np.array([0.1, 0.2, 0.6, 0.7]), np.array([4.0, 6.0, -3.0, 3.0])
    found = residuals(x, g, 2).merged(np.array([0, 10]))
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
    each = [np.repeat(values, count) for values in (x, g)]
    means = means_of(*each, 4)
    own = means._replace(of_row=np.minimum((x * 4).astype(np.int32), 3))
    axis = binning.variable_axis(EDGES)
    counted = spread.residuals(axis, own, x, g, count.astype(float), frequency=True)
    repeated = spread.residuals(axis, means, *each, None, frequency=False)
    for a, b in zip(counted, repeated, strict=True):
        assert_allclose(a, b, rtol=1e-12)


def test_rows_that_are_fitted_exactly_have_no_weight():
    x, g = np.array([0.1, 0.3, 0.35, 0.6, 0.9]), np.array([5.0, 1.0, 2.0, 7.0, 7.5])
    found = residuals(x, g).merged(np.array([0, 5, 10]))
    assert_array_equal(found.n_obs, [1, 2, 2])
    assert_allclose(found.moment("square"), [np.nan, 0.5, np.nan])


def test_a_step_is_found_where_it_is():
    assert_array_equal(starts(sums_of([1] * 7 + [2] * 13)), [0, 7])
    assert_array_equal(starts(sums_of([1] * 20)), [0])
    assert_array_equal(starts(sums_of([1] * 5 + [3] * 4 + [1] * 11)), [0, 5, 9])


def test_edges_move_among_fine_cells():
    """Places are every tenth cell and ends of stretches; the step is at neither."""
    mean = np.repeat([1.0, 3.0], [137, 163])
    assert_array_equal(starts(sums_of(mean, 9), fine=10), [0, 137])


def test_no_bin_has_fewer_rows_than_asked():
    mean = [1] * 9 + [5] + [1] * 10
    assert_array_equal(starts(sums_of(mean)), [0, 9, 10])
    found = starts(sums_of(mean), min_obs=120)
    assert np.diff([*found, 20]).min() >= 3


@pytest.mark.parametrize("mean", [[0] * 20, [1e-9] * 10 + [2e-9] * 10])
def test_spread_below_the_resolution_is_none(mean):
    assert_array_equal(starts(sums_of(mean), resolution=1e-6), [0])


def test_the_search_is_the_best_of_all_partitions(rng):
    """Brute force over all partitions of eight cells."""
    for _ in range(20):
        search = spread._Search(sums_of(rng.uniform(1, 4, 8), 20), 30, 0.0, in_cells=False)

        def cost(edges, search=search):
            own = np.array(edges)
            return np.sum(search.cost(own[:-1], own[1:])) + 3.0 * (len(own) - 1)

        every = [
            (0, *inner, 8) for k in range(8) for inner in itertools.combinations(range(1, 8), k)
        ]
        best = min(every, key=cost)
        assert_array_equal(search.best(np.arange(9), 3.0), best)


def test_edges_between_bins_of_nearly_equal_spread_are_removed():
    """gain = (ln of the ratio of means)² over the noise of both bins, weakest first."""
    search = spread._Search(sums_of([2.0, 2.2, 5.0, 5.1], 64), 1, 0.0, in_cells=False)
    search.phi = 0.0
    # Of 64 rows with mean square 1.5625 mean²: noise 0.5625 · 64 / 63 / 64 for a bin of one cell.
    noise = 0.5625 / 63
    gains = np.log([1.1, 5 / 2.2, 1.02]) ** 2 / (2 * noise)
    edges = np.arange(5)

    def kept(penalty):
        return search.pruned(edges, penalty).tolist()

    assert kept(0.99 * gains[2]) == [0, 1, 2, 3, 4]
    assert kept(1.01 * gains[2]) == [0, 1, 2, 4]
    # Two cells as one bin: mean 5.05, mean square 1.5625 · (25 + 26.01) / 2, 128 rows.
    pooled = (1.5625 * (25 + 26.01) / 2 / 5.05**2 - 1) / 127
    assert gains[0] < np.log(5.05 / 2.2) ** 2 / (noise + pooled)
    assert kept(0.99 * gains[0]) == [0, 1, 2, 4]
    assert kept(1.01 * gains[0]) == [0, 2, 4]
    assert kept(np.inf) == [0, 4]


def test_noise_is_the_variation_within_stretches():
    """0.5625 of the square of the mean in all stretches, by n / (n - 1)."""
    search = spread._Search(sums_of([1.0, 3.0, 1.0, 3.0], 50), 1, 0.0, in_cells=False)
    cells = np.array([0, 1, 2, 3, 4])
    search.stretches = cells
    assert_allclose(search._noise(), 0.5625 * 50 / 49)
    search.floor = 2.0  # two of the stretches have a smaller mean: no noise is known of them
    assert_allclose(search._noise(), 0.5625 * 50 / 49)
    search.floor = 4.0
    assert search._noise() == 0.0


@pytest.mark.parametrize("sorted_rows", [False, True])
@pytest.mark.parametrize("kind", ["none", "precision", "frequency"])
def test_sums_of_residuals_row_by_row(rng, kind, sorted_rows):
    """About lines in four cells, of which the last is fitted exactly."""
    n = 200
    x, g = np.concatenate([rng.uniform(0, 0.99, n - 1), [1.0]]), rng.normal(size=n)
    if sorted_rows:
        x.sort()
    weight = {"none": None, "precision": rng.uniform(0.5, 2, n),
              "frequency": rng.integers(1, 4, n).astype(float)}[kind]  # fmt: skip
    cell = np.minimum((x * 4).astype(np.int32), 3)
    mean, x_mean, slope = rng.normal(size=4), np.array([0.1, 0.4, 0.6, 0.9]), rng.normal(size=4)
    left = np.array([0.9, 0.8, 0.95, 0.0])
    place = cell
    if sorted_rows:
        place = stretches(binning.variable_axis(np.linspace(0, 1, 5)), x)
    means = spread.Means(place, mean, x_mean, slope, left)
    axis, frequency = binning.variable_axis(EDGES), kind == "frequency"
    found = spread.residuals(axis, means, x, g, weight, frequency=frequency)
    w, free = np.ones(n) if weight is None else weight, left[cell]
    r = (g - mean[cell] - slope[cell] * (x - x_mean[cell])) / np.sqrt(np.where(free > 0, free, 1))
    counts = weight is None or frequency
    columns = [
        w if counts else np.ones(n), w, w * free, w * free * (1 if counts else w),
        *(w * free * part for part in (np.abs(r), r**2, r**3, r**4)),
    ]  # fmt: skip
    at = np.minimum(np.searchsorted(EDGES, x, side="right") - 1, 19)
    for values, column in zip(found, columns, strict=True):
        assert_allclose(values, np.bincount(at, column, 20), rtol=1e-11, atol=1e-13)
    both = spread.residuals_of_all([found, found])
    assert_allclose(both.square, 2 * found.square)
    assert_allclose(both.degrees, 2 * found.degrees)


def test_noise_between_stretches_without_the_largest_jump():
    """Of ten differences of ln(mean) the largest is left out; the larger of both noises counts."""
    mean = np.exp(np.cumsum([0.0, 0.3, -0.2, 0.4, 0.1, -0.3, 0.2, 3.0, -0.1, 0.25, 0.5]))
    search = spread._Search(sums_of(mean, 50), 1, 0.0, in_cells=True)
    search.stretches = np.arange(12)
    apart = np.array([0.3, 0.2, 0.4, 0.1, 0.3, 0.2, 0.1, 0.25, 0.5]) ** 2 / (1 / 50 + 1 / 50)
    assert apart.mean() > 0.5625 * 50 / 49
    assert_allclose(search._noise(), apart.mean())
    # Within stretches the noise is larger than between equal ones.
    search = spread._Search(sums_of(np.ones(11), 50), 1, 0.0, in_cells=True)
    search.stretches = np.arange(12)
    assert_allclose(search._noise(), 0.5625 * 50 / 49)


def unequal(rng, n_cells):
    """Sums over rows with weights, of which some variance is left; some cells have no rows."""
    n = rng.integers(0, 12, n_cells)
    cell = np.repeat(np.arange(n_cells), n)
    w, left = rng.uniform(0.5, 2, len(cell)), rng.uniform(0.5, 1, len(cell))
    r = np.abs(rng.normal(size=len(cell))) * (1 + cell // 20)

    def sums(values):
        return np.bincount(cell, values, n_cells)

    parts = (np.ones(len(cell)), w, w * left, w**2 * left, *(w * left * r**p for p in (1, 2, 3, 4)))
    return spread.Residuals(*(sums(part) for part in parts))


@pytest.mark.parametrize("in_cells", [False, True])
def test_rows_stretches_noise_and_costs_under_weights(rng, in_cells):
    """Effective rows (sum w l)^2 / sum w^2 l; stretches of 15; noise within and between them."""
    sums = unequal(rng, 60)
    search = spread._Search(sums, 20.0, 0.0, in_cells=in_cells)
    free, square = sums.free, sums.free_sq
    assert_allclose(search.rows, free.sum() ** 2 / square.sum())
    # The ends of equal shares of the weight, at the first cell that reaches them.
    n = int(search.rows // 15)
    total = np.append(0, np.cumsum(free))
    ends = [np.flatnonzero(total >= total[-1] * k / n * (1 - 1e-9))[0] for k in range(1, n)]
    assert_array_equal(search.stretches, np.unique([0, *ends, 60]))
    assert_array_equal(search.places(7), np.union1d(np.arange(0, 61, 7), search.stretches))

    def of(begin, end):
        """Effective rows, mean of |r| and its squared deviations."""
        f, q, a, s = (part[begin:end].sum() for part in sums[2:6])
        rows = f**2 / q
        return rows, a / f, (s / f - (a / f) ** 2) * rows

    parts = [of(*ends) for ends in itertools.pairwise(search.stretches)]
    rows, mean, squares = np.array(parts).T
    noise = np.sum(squares / mean**2) / np.sum(rows - 1)
    if in_cells:
        apart = np.diff(np.log(mean)) ** 2 / (1 / rows[1:] + 1 / rows[:-1])
        few = int(np.ceil(0.1 * len(apart)))
        noise = max(noise, np.mean(np.sort(apart)[: len(apart) - few]))
    assert_allclose(search.phi, noise)
    for begin, end in ((0, 10), (5, 30), (30, 60)):
        n_rows, level, _ = of(begin, end)
        found = search.cost(np.array(begin), np.array(end))
        assert_allclose(found, 2 * n_rows * np.log(level) / noise)
    assert search.cost(np.array(0), np.array(1)) == np.inf
    # Edges are removed one after the other, the weakest first.
    edges = [0, 6, 12, 20, 26, 33, 40, 45, 52, 60]
    while len(edges) > 2:
        rows, mean, squares = np.array([of(*ends) for ends in itertools.pairwise(edges)]).T
        own = np.maximum(squares / mean**2 / (rows - 1), noise) / rows
        gain = np.diff(np.log(mean)) ** 2 / (own[1:] + own[:-1])
        if gain.min() >= 4.0:
            break
        del edges[int(gain.argmin()) + 1]
    found = search.pruned(np.array([0, 6, 12, 20, 26, 33, 40, 45, 52, 60]), 4.0)
    assert_array_equal(found, edges)
    assert 2 < len(edges) < 10


def test_the_floor_of_means_and_no_rows():
    sums = sums_of([1.0, 3.0, 8.0], 50)
    assert_allclose(spread._Search(sums, 1, 0.0, in_cells=False).floor, 0.05 * 4)
    assert spread._Search(sums, 1, 0.5, in_cells=False).floor == 0.5
    none = spread._Search(spread.Residuals(*np.zeros((8, 3))), 1, 0.0, in_cells=False)
    assert (none.rows, none.phi) == (0, 0)
