"""Edges that recount exactly, and the optimal partition against all partitions there are."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from rhale_stats.arrays.binning import (
    BLOCK_CELLS,
    MANY,
    TIE,
    bin_edges,
    equal_edges,
    greedy_partition,
    is_resolved,
    optimal_starts,
    quantile_edges,
    regular_axis,
    variable_axis,
)
from rhale_stats.arrays.moments import Moments, cell_index, merge, n_effective
from tests.arrays.made import cell_moments

EPS = np.finfo(float).eps


# --- an independent programme: every partition, every cost from the rows ------------------------


def bin_cost(inside, g, width, *, min_obs, discount, ddof, weight=None):
    """math [21] for one bin, straight from its rows; ``inside`` is a mask over all rows."""
    w = np.ones(len(g)) if weight is None else weight
    here = w[inside]
    # As many rows as min_obs asks for, and as a variance needs; the slack is rounding in sums.
    if here.sum() ** 2 < max(min_obs, 2) * (1 - 1e-12) * (here**2).sum() or not len(here):
        return np.inf
    centred = g[inside] - np.average(g[inside], weights=here)
    spread = (here * centred**2).sum() / (here.sum() - ddof * (here**2).sum() / here.sum())
    return (1 - discount * here.sum() / w.sum()) * spread * width


def all_partitions(cell, g, width, **rule):
    """(cost, starts) of all 2^(M-1) partitions that are feasible."""
    n_cells = len(width)
    costs = {
        (begin, end): bin_cost((cell >= begin) & (cell < end), g, width[begin:end].sum(), **rule)
        for begin, end in combinations(range(n_cells + 1), 2)
    }
    found = []
    for n_inner in range(n_cells):
        for inner in combinations(range(1, n_cells), n_inner):
            starts = (0, *inner)
            cost = sum(costs[pair] for pair in zip(starts, (*inner, n_cells), strict=True))
            if np.isfinite(cost):
                found.append((cost, starts))
    return found


def brute_force(cell, g, width, **rule):
    """The cheapest partition; a tie is 1e-9 of one bin's cost a bin, then the widest last bin."""
    found = all_partitions(cell, g, width, **rule)
    whole = {**rule, "discount": 0.0, "min_obs": 1}
    tie = TIE * bin_cost(np.ones(len(g), dtype=bool), g, width.sum(), **whole)
    total = [cost + tie * len(starts) for cost, starts in found]
    equal = [
        starts for (_, starts), t in zip(found, total, strict=True) if t <= min(total) + tie / 4
    ]
    return min(equal, key=lambda starts: starts[::-1])


def cells_of(cell, g, n_cells, weight=None, *, frequency=False):
    """Moments of shape (1, cells) of rows in the middles of cells."""
    axis = variable_axis(np.arange(n_cells + 1.0))
    found = cell_moments(axis, cell + 0.5, g, weight, frequency=frequency)
    return Moments(*(part[None] for part in found))


def solve(cells, width, *, min_obs=2.0, discount=0.2, ddof=1, resolution=0.0):
    """The one partition, which both ways of running the programme must find."""
    rule = {"discount": discount, "ddof": ddof}
    few, many = (
        optimal_starts(
            Moments(*(np.repeat(part, n, axis=0) for part in cells)),
            np.tile(np.asarray(width, dtype=float), (n, 1)),
            min_obs=np.full(n, float(min_obs)),
            resolution=np.full(n, resolution),
            **rule,
        )
        for n in (1, MANY)
    )
    assert_array_equal(many, np.repeat(few, MANY, axis=0))
    return np.flatnonzero(few[0])


def problem(seed, max_cells=9, noise="normal"):
    """A small random problem; some cells are empty, and some g are equal."""
    rng = np.random.default_rng(seed)
    n_cells, n = int(rng.integers(1, max_cells + 1)), int(rng.integers(2, 45))
    cell = rng.choice(rng.integers(0, n_cells, max(1, n_cells)), n)
    g = rng.choice([0.0, 3.0], n_cells)[cell]
    g += rng.normal(size=n) if noise == "normal" else rng.integers(0, 2, n)
    width = np.ones(n_cells) if rng.random() < 0.5 else rng.uniform(0.1, 2, n_cells)
    rule = {
        "min_obs": int(rng.integers(1, max(2, n // 3))),
        "discount": float(rng.choice([0.0, 0.2, 0.5, 0.95])),
        "ddof": int(rng.integers(0, 2)),
    }
    for array in (cell, g, width):
        array.setflags(write=False)
    return cell, g, width, rule


@pytest.mark.thorough
@pytest.mark.parametrize("noise", ["normal", "two-point"])
def test_agrees_with_all_partitions(noise):
    n_bins = []
    for seed in range(150):
        cell, g, width, rule = problem(seed, noise=noise)
        starts = solve(cells_of(cell, g, len(width)), width, **rule)
        assert tuple(starts) == brute_force(cell, g, width, **rule), f"seed {seed}: {rule}"
        n_bins.append(len(starts))
    assert len(np.unique(n_bins)) >= 5  # the problems are not all one answer


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["frequency", "precision", "precision over six decades"])
def test_agrees_with_all_partitions_under_weights(kind):
    for seed in range(100):
        cell, g, width, rule = problem(seed)
        rng = np.random.default_rng([seed, 1])
        if kind == "frequency":
            weight = rng.integers(1, 4, len(g)).astype(float)
            repeat = weight.astype(int)
            expected = brute_force(np.repeat(cell, repeat), np.repeat(g, repeat), width, **rule)
        else:
            decades = 6 if kind.endswith("decades") else 0.5
            weight = 10 ** rng.uniform(-decades, 0, len(g))
            # An effective number of rows is not whole, and all rows together must satisfy min_obs.
            n_effective = weight.sum() ** 2 / (weight**2).sum()
            if n_effective < 2:
                continue
            rule["min_obs"] = max(2.0, n_effective / 4)
            expected = brute_force(cell, g, width, weight=weight, **rule)
        cells = cells_of(cell, g, len(width), weight, frequency=kind == "frequency")
        assert tuple(solve(cells, width, **rule)) == expected, f"seed {seed}: {rule}"


def test_a_bin_of_min_obs_rows_of_small_equal_weights_is_feasible():
    """Survey strata: squared weights must not be lost in running sums a million times larger."""
    cell = np.repeat(np.arange(8), [30, 25, 40, 10, 10, 30, 30, 30])
    weight = np.where((cell == 3) | (cell == 4), 1e-3, 1.0)
    rule = {"min_obs": 10, "discount": 0.2, "ddof": 1}
    for seed in range(20):
        noise = 0.1 * np.random.default_rng(seed).normal(size=len(cell))
        g = np.select([cell == 3, cell == 4], [5.0, -5.0]) + noise
        expected = brute_force(cell, g, np.ones(8), weight=weight, **rule)
        found = solve(cells_of(cell, g, 8, weight), np.ones(8), **rule)
        assert tuple(found) == expected, f"seed {seed}"


def plain_programme(cell, g, n_cells, min_obs, discount):
    """math [21] as it is written, with numpy's own variance: for grids too fine to enumerate."""
    best, previous = [0.0], [0]
    for end in range(1, n_cells + 1):
        costs = []
        for begin in range(end):
            here = g[(cell >= begin) & (cell < end)]
            feasible = len(here) >= max(min_obs, 2)
            share = len(here) / len(g)
            cost = (1 - discount * share) * here.var(ddof=1) * (end - begin) if feasible else np.inf
            costs.append(best[begin] + cost)
        best.append(min(costs))
        previous.append(int(np.argmin(costs)))
    starts = [previous[n_cells]]
    while starts[-1]:
        starts.append(previous[starts[-1]])
    return starts[::-1]


def test_agrees_with_the_plain_programme_over_several_blocks(rng):
    n_cells = BLOCK_CELLS + 36
    cell = rng.integers(0, n_cells, 700)
    g = np.sin(cell / 12) * 3 + rng.normal(size=700)
    starts = solve(cells_of(cell, g, n_cells), np.ones(n_cells), min_obs=12, discount=0.3)
    assert len(starts) > 5
    assert_array_equal(starts, plain_programme(cell, g, n_cells, 12, 0.3))


def programme_with_two_indices(cell, g, width, **rule):
    """Eq. 14 of the paper: T(i, j), the least cost of at most i bins that end at cell j."""
    n_cells = len(width)
    cost = np.full((n_cells, n_cells + 1), np.inf)
    for begin, end in combinations(range(n_cells + 1), 2):
        inside = (cell >= begin) & (cell < end)
        cost[begin, end] = bin_cost(inside, g, width[begin:end].sum(), **rule)
    least = np.append(0.0, np.full(n_cells, np.inf))
    for _ in range(n_cells):
        least = np.minimum(least, np.min(least[:-1, None] + cost, axis=0))
    return least[-1]


@pytest.mark.thorough
def test_one_index_finds_the_minimum_of_the_two_of_the_paper():
    for seed in range(60):
        cell, g, width, rule = problem(seed)
        edges = np.append(solve(cells_of(cell, g, len(width)), width, **rule), len(width))
        costs = [
            bin_cost((cell >= begin) & (cell < end), g, width[begin:end].sum(), **rule)
            for begin, end in pairwise(edges)
        ]
        one_bin = {**rule, "discount": 0.0, "min_obs": 1}
        tie = TIE * bin_cost(np.ones(len(g), dtype=bool), g, width.sum(), **one_bin)
        expected = programme_with_two_indices(cell, g, width, **rule)
        # Of partitions that cost the same, to a billionth a bin, the one with fewer bins.
        assert sum(costs) == pytest.approx(expected, rel=1e-9, abs=len(width) * tie)


# --- invariants ------------------------------------------------------------------------------


def large_problem(rng, n_cells=30, n=400):
    cell = rng.integers(0, n_cells, n)
    g = np.where(cell < n_cells // 3, 2.0, -1.0) * cell / 10 + rng.normal(size=n)
    return cell, g


@pytest.mark.thorough
@pytest.mark.parametrize("discount", [0.0, 0.2, 0.9])
@pytest.mark.parametrize("at", [1, 3, 7])
def test_a_clean_step_is_found_exactly(at, discount):
    cell = np.repeat(np.arange(8), 5)
    g = np.where(cell < at, 0.1, 0.7)
    starts = solve(cells_of(cell, g, 8), np.ones(8), min_obs=5, discount=discount)
    assert_array_equal(starts, [0, at])


@pytest.mark.parametrize("value", [0.0, 0.1, -1e9 / 3, 1e-7])
def test_a_constant_is_one_bin(rng, value):
    cell = rng.integers(0, 100, 1000)
    # Rounding noise of a few units in the last place, as derivatives have.
    g = value + 4 * np.spacing(value) * rng.integers(-1, 2, 1000)
    cells = cells_of(cell, g, 100)
    starts = solve(cells, np.ones(100), resolution=16 * np.spacing(abs(value)))
    assert_array_equal(starts, [0])


def test_weights_are_replication(rng):
    cell, g = large_problem(rng)
    counts = rng.integers(1, 5, len(g)).astype(float)
    repeat = counts.astype(int)
    weighted = solve(cells_of(cell, g, 30, counts, frequency=True), np.ones(30), min_obs=25)
    repeated = cells_of(np.repeat(cell, repeat), np.repeat(g, repeat), 30)
    assert_array_equal(weighted, solve(repeated, np.ones(30), min_obs=25))


def test_precision_weights_have_no_scale(rng):
    cell, g = large_problem(rng)
    weight = rng.uniform(0.2, 1, len(g))
    plain = solve(cells_of(cell, g, 30, weight), np.ones(30), min_obs=15)
    for scale in (1e-6, 1e9):
        scaled = solve(cells_of(cell, g, 30, scale * weight), np.ones(30), min_obs=15)
        assert_array_equal(scaled, plain)


@pytest.mark.thorough
def test_reversal(rng):
    for _ in range(20):
        cell, g = large_problem(rng)
        width = rng.uniform(0.5, 1.5, 30)
        forward = solve(cells_of(cell, g, 30), width, min_obs=15)
        backward = solve(cells_of(29 - cell, g, 30), width[::-1], min_obs=15)
        assert_array_equal(30 - forward[1:], backward[:0:-1])


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("scale", "width"),
    [(1e-150, 1), (1e-6, 1e-9), (-1, 1e9), (1e9, 1e9), (1e-9, 1e9), (1e150, 1), (1e150, 1e-9)],
)
def test_homogeneity(rng, scale, width):
    """No cost is big in itself: infeasible is infinite, whatever the units."""
    for min_obs in (2, 25):
        cell, g = large_problem(rng)
        plain = solve(cells_of(cell, g, 30), np.ones(30), min_obs=min_obs)
        scaled = solve(cells_of(cell, scale * g, 30), np.full(30, width), min_obs=min_obs)
        assert_array_equal(scaled, plain)


@pytest.mark.thorough
@pytest.mark.parametrize("offset", [1e3, 1e8])
def test_an_offset_of_g_changes_nothing(rng, offset):
    """In units of the noise; sums are centred before they are squared."""
    for _ in range(20):
        cell, g = large_problem(rng)
        plain = solve(cells_of(cell, g, 30), np.ones(30), min_obs=15)
        assert_array_equal(solve(cells_of(cell, g + offset, 30), np.ones(30), min_obs=15), plain)


@pytest.mark.thorough
def test_more_rows_a_bin_than_a_finer_grid_has():
    """Only unions of cells reach min_obs; no bin may fall short of it, at any scale."""
    cell = np.repeat(np.arange(10), [3, 0, 0, 1, 9, 0, 2, 2, 0, 7])
    for scale in (1e-9, 1.0, 1e9, 1e150):
        g = scale * np.where(cell < 5, -1.0, 1.0) * (1 + cell)
        cells = cells_of(cell, g, 10)
        for min_obs in range(2, 25):
            starts = solve(cells, np.ones(10), min_obs=min_obs)
            assert (merge(Moments(*(p[0] for p in cells)), starts).n_obs >= min_obs).all()


def test_a_batch_is_each_problem_alone(rng):
    problems = [large_problem(rng) for _ in range(7)]
    singles = [cells_of(cell, g, 30) for cell, g in problems]
    stacked = Moments(*(np.concatenate(part) for part in zip(*singles, strict=True)))
    width = rng.uniform(0.5, 2, (7, 30))
    min_obs, resolution = np.arange(2.0, 30, 4), np.array([0, 1e-3, 0, 0, 1e-9, 0, 0.1])
    for array in (*stacked, width, min_obs, resolution):
        array.setflags(write=False)
    together = optimal_starts(
        stacked, width, min_obs=min_obs, discount=0.2, ddof=1, resolution=resolution
    )
    for k, starts in enumerate(together):
        alone = solve(singles[k], width[k], min_obs=min_obs[k], resolution=resolution[k])
        assert_array_equal(np.flatnonzero(starts), alone)


@pytest.mark.parametrize("kind", ["none", "precision", "frequency"])
def test_many_problems_go_along_memory_as_few_do(rng, kind):
    """The programme for many problems beside that for few, weights of all sizes included."""
    problems = []
    for _ in range(2 * MANY):
        cell, g = large_problem(rng)
        weight = {
            "none": None,
            "precision": 10.0 ** rng.uniform(-6, 3, len(g)),
            "frequency": rng.integers(1, 9, len(g)).astype(float),
        }[kind]
        problems.append(cells_of(cell, g, 30, weight, frequency=kind == "frequency"))
    stacked = Moments(*(np.concatenate(part) for part in zip(*problems, strict=True)))
    width, min_obs = rng.uniform(0.5, 2, (len(problems), 30)), np.full(len(problems), 5.0)
    rule = {"discount": 0.2, "ddof": 1}
    resolution = np.zeros(len(problems))
    many = optimal_starts(stacked, width, min_obs=min_obs, resolution=resolution, **rule)
    few = [
        optimal_starts(
            Moments(*(part[at] for part in stacked)),
            width[at],
            min_obs=min_obs[at],
            resolution=resolution[at],
            **rule,
        )
        for at in np.array_split(np.arange(len(problems)), 4)
    ]
    assert_array_equal(many, np.concatenate(few))
    assert (many.sum(axis=1) > 1).any()


def test_of_equal_partitions_that_with_the_widest_last_bin():
    """More cells than a byte counts: a constant effect is one bin, and an infeasible end none."""
    n_cells = 300
    cell = np.arange(n_cells)
    assert_array_equal(solve(cells_of(cell, np.ones(n_cells), n_cells), np.ones(n_cells)), [0])
    g = np.where(cell < 5, 0.0, 4.0)
    starts = solve(cells_of(cell, g, n_cells), np.ones(n_cells), discount=0.0, min_obs=5)
    assert_array_equal(starts, [0, 5])


def test_resolution_is_the_smallest_difference_that_counts():
    cell = np.repeat(np.arange(8), 5)
    g = np.where(cell < 4, 0.0, 1.0)
    # Splitting saves the variance of 0.26; one more bin costs resolution^2.
    for resolution, n_bins in ((0.4, 2), (0.6, 1)):
        starts = solve(cells_of(cell, g, 8), np.ones(8), discount=0.0, resolution=resolution)
        assert len(starts) == n_bins


@pytest.mark.parametrize(("share", "n_bins"), [(1e-8, 2), (1e-10, 1)])
def test_a_bin_more_must_save_a_billionth(share, n_bins):
    """math [21]: of the cost of one bin; two halves of +-1 whose means differ by 2 sqrt(share)."""
    cell = np.repeat([0, 1], 1000)
    g = np.tile([-1.0, 1.0], 1000) + np.sqrt(share) * (2 * cell - 1)
    assert len(solve(cells_of(cell, g, 2), np.ones(2), discount=0.0, ddof=0)) == n_bins


def test_min_obs_beyond_all_rows_is_refused():
    with pytest.raises(ValueError, match="min_obs must leave one bin with all rows feasible"):
        solve(cells_of(np.arange(5), np.arange(5.0), 5), np.ones(5), min_obs=6)


# --- from left to right ----------------------------------------------------------------------


def sweep(cells, *, min_obs=2.0, discount=0.2, factor=1.05, ddof=1, resolution=0.0):
    """The function under test, with defaults and one problem a row as `cells_of` makes it."""
    return greedy_partition(
        Moments(*(part[0] for part in cells)),
        min_obs=min_obs,
        discount=discount,
        factor=factor,
        ddof=ddof,
        resolution=resolution,
    ).tolist()


def plain_sweep(cell, g, n_cells, *, factor, weight=None, **rule):
    """math [20] as it is written, every cost straight from the rows."""

    def cost(begin, end):
        return bin_cost((cell >= begin) & (cell < end), g, 1.0, weight=weight, **rule)

    whole = {**rule, "discount": 0.0, "min_obs": 1}
    tie = TIE * bin_cost(np.ones(len(g), dtype=bool), g, 1.0, weight=weight, **whole)
    starts = [0]
    for end in range(1, n_cells):
        now, then = cost(starts[-1], end), cost(starts[-1], end + 1)
        if np.isfinite([now, then]).all() and then > factor * now + tie:
            starts.append(end)
    while len(starts) > 1 and not np.isfinite(cost(starts[-1], n_cells)):
        del starts[-1]
    return starts


def test_greedy_closes_a_bin_before_the_cell_that_makes_it_worse():
    """Two cells of 0 and 2, two of 9 and 11: variances 1 and 1, then 18.2 with the third cell."""
    cell = np.repeat(np.arange(4), 2)
    g = np.array([0.0, 2, 0, 2, 9, 11, 9, 11])
    assert sweep(cells_of(cell, g, 4)) == [0, 2]


@pytest.mark.parametrize(
    ("factor", "discount", "starts"),
    [
        (1.05, 0.0, [0, 1]),  # 1.1 exceeds 1.05 times 1
        (1.15, 0.0, [0]),
        (1.05, 0.5, [0]),  # (1 - 0.5) 1.1 is less than (1 - 0.25) 1
        (1.15, 0.1, [0]),
    ],
)
def test_greedy_by_hand(factor, discount, starts):
    """-1 and 1 have variance 1, and 1.1 together with two rows at a distance of sqrt(1.2)."""
    g = np.array([-1, 1, -np.sqrt(1.2), np.sqrt(1.2)])
    cells = cells_of(np.array([0, 0, 1, 1]), g, 2)
    assert sweep(cells, factor=factor, discount=discount, ddof=0) == starts


def test_greedy_bins_grow_until_they_have_min_obs():
    cell = np.repeat(np.arange(4), 2)
    g = np.array([0.0, 0.1, 4, 4.1, 8, 8.1, 12, 12.1])
    assert sweep(cells_of(cell, g, 4), min_obs=2) == [0, 1, 2, 3]
    assert sweep(cells_of(cell, g, 4), min_obs=3) == [0, 2]
    assert sweep(cells_of(cell, g, 4), min_obs=5) == [0]


def test_a_last_greedy_bin_with_too_few_rows_joins_its_neighbour():
    cell = np.array([0, 0, 1, 1, 2, 2, 3])
    g = np.array([0.0, 2, 0, 2, 9, 11, 30])
    assert sweep(cells_of(cell, g, 4)) == [0, 2]  # 30 would have had a bin for itself
    cell, g = np.append(cell, 3), np.append(g, 32.0)
    assert sweep(cells_of(cell, g, 4)) == [0, 2, 3]


def test_empty_cells_belong_to_the_greedy_bin_on_their_left():
    cell = np.array([2, 2, 5, 5])
    assert sweep(cells_of(cell, np.array([0.0, 2, 9, 11]), 7)) == [0, 5]


@pytest.mark.parametrize("noise", ["normal", "two-point"])
@pytest.mark.parametrize("kind", ["none", "frequency", "precision", "precision over six decades"])
@pytest.mark.slow
def test_greedy_agrees_with_the_plain_sweep(kind, noise):
    n_bins = []
    for seed in range(200):
        cell, g, width, rule = problem(seed, max_cells=25, noise=noise)
        n_cells = len(width)
        rng = np.random.default_rng([seed, 2])
        rule["factor"] = float(rng.choice([1.0, 1.05, 1.5]))
        weight = None
        if kind == "frequency":
            weight = rng.integers(1, 4, len(g)).astype(float)
            repeat = weight.astype(int)
            expected = plain_sweep(np.repeat(cell, repeat), np.repeat(g, repeat), n_cells, **rule)
        else:
            if kind != "none":
                weight = 10 ** rng.uniform(-6 if kind.endswith("decades") else -0.5, 0, len(g))
            expected = plain_sweep(cell, g, n_cells, weight=weight, **rule)
        cells = cells_of(cell, g, n_cells, weight, frequency=kind == "frequency")
        assert sweep(cells, **rule) == expected, f"seed {seed}: {rule}"
        n_bins.append(len(expected))
    assert len(np.unique(n_bins)) >= 3  # the problems are not all one answer


@pytest.mark.thorough
def test_greedy_bins_have_min_obs_effective_rows_where_weights_differ_by_decades():
    """A heavy row lowers the effective number: the last bin may have to join more than one."""
    joined = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        cell, g = np.sort(rng.integers(0, 20, 60)), rng.normal(size=60)
        weight = 10.0 ** rng.uniform(-2, 0, 60)
        weight[cell >= 18] *= 1000
        cells = cells_of(cell, g, 20, weight)
        rows = n_effective(merge(Moments(*(part[0] for part in cells)), np.array([0])))[0]
        min_obs = max(2.0, rows / 2)
        if rows < min_obs:
            continue
        starts = sweep(cells, min_obs=min_obs)
        bins = merge(Moments(*(part[0] for part in cells)), np.array(starts))
        assert (n_effective(bins) >= min_obs * (1 - 1e-12)).all(), f"seed {seed}"
        joined += len(starts) == 1
    assert joined


@pytest.mark.parametrize("value", [0.0, 0.1, -1e9 / 3, 1e-7])
def test_a_constant_is_one_greedy_bin(rng, value):
    cell = rng.integers(0, 100, 1000)
    g = value + 4 * np.spacing(value) * rng.integers(-1, 2, 1000)
    assert sweep(cells_of(cell, g, 100), resolution=16 * np.spacing(abs(value))) == [0]


@pytest.mark.thorough
@pytest.mark.parametrize("at", [1, 3, 7])
@pytest.mark.parametrize("scale", [1e-150, 1.0, -1e150])
def test_greedy_finds_a_clean_step(at, scale):
    cell = np.repeat(np.arange(8), 5)
    g = scale * np.where(cell < at, 0.1, 0.7)
    assert sweep(cells_of(cell, g, 8), min_obs=5) == [0, at]


@pytest.mark.thorough
def test_greedy_is_homogeneous_and_blind_to_offsets(rng):
    for _ in range(20):
        cell, g = large_problem(rng)
        plain = sweep(cells_of(cell, g, 30), min_obs=15)
        for other in (1e-150 * g, -1e150 * g, 1e3 + g, g - 1e8):
            assert sweep(cells_of(cell, other, 30), min_obs=15) == plain


def test_greedy_weights_have_no_scale_and_are_replication(rng):
    cell, g = large_problem(rng)
    weight = rng.uniform(0.2, 1, len(g))
    plain = sweep(cells_of(cell, g, 30, weight), min_obs=15)
    assert len(plain) > 2
    assert sweep(cells_of(cell, g, 30, 1e9 * weight), min_obs=15) == plain
    counts = rng.integers(1, 5, len(g))
    repeated = cells_of(np.repeat(cell, counts), np.repeat(g, counts), 30)
    weighted = cells_of(cell, g, 30, counts.astype(float), frequency=True)
    assert sweep(weighted, min_obs=25) == sweep(repeated, min_obs=25)


def test_greedy_resolution_is_the_smallest_difference_that_counts():
    cell = np.repeat(np.arange(8), 5)
    g = np.where(cell < 4, 0.0, 1.0)
    # The fifth cell makes a variance of 0.17 out of none.
    for resolution, n_bins in ((0.4, 2), (0.6, 1)):
        starts = sweep(cells_of(cell, g, 8), discount=0.0, resolution=resolution)
        assert len(starts) == n_bins


# --- edges -----------------------------------------------------------------------------------


def recount(x, edges):
    """Rows by reported edges: left-closed, the last bin closed on both sides (math [4])."""
    inside = [(x >= a) & (x < b) for a, b in pairwise(edges)]
    inside[-1] |= x == edges[-1]
    return np.array([rows.sum() for rows in inside])


def seeded(kind, seed, n):
    rng = np.random.default_rng(seed)
    return {
        "tenths": lambda: np.round(rng.uniform(-5, 5, n), 1),
        "integers": lambda: rng.integers(-10, 40, n).astype(float),
        "timestamps": lambda: np.round(1.7e9 + 100 * rng.uniform(size=n), 2),
        "offset": lambda: 1e9 + rng.normal(size=n),
        "small": lambda: 1e-6 * rng.normal(size=n),
        "tenths of a grid": lambda: np.linspace(0, 1, 11)[rng.integers(0, 11, n)] * 0.3 + 7,
    }[kind]()


columns = st.one_of(
    st.lists(st.floats(-1e9, 1e9), min_size=2, max_size=40).map(np.array),
    st.lists(st.floats(-1, 1), min_size=2, max_size=40).map(np.array),
    st.builds(
        seeded,
        st.sampled_from(
            ["tenths", "integers", "timestamps", "offset", "small", "tenths of a grid"]
        ),
        st.integers(0, 2**32 - 1),
        st.integers(2, 400),
    ),
)


@pytest.mark.thorough
@given(
    x=columns,
    n_cells=st.sampled_from([1, 2, 3, 7, 10, 20, 50, 100]),
    seed=st.none() | st.integers(0, 2**32 - 1),
)
@example(x=np.linspace(0, 1, 11), n_cells=10, seed=None)
@example(x=0.1 * np.arange(101), n_cells=20, seed=None)
@settings(max_examples=100, deadline=None)
def test_reported_edges_recount_exactly(x, n_cells, seed):
    low, high = x.min(), x.max()
    assume(low < high and is_resolved(low, high, n_cells))
    x.setflags(write=False)
    axis = regular_axis(low, high, n_cells)
    cells = cell_moments(axis, x, x, None, frequency=False)
    starts = np.arange(n_cells)  # every cell a bin, or some of them joined
    if seed is not None:
        chosen = np.random.default_rng(seed).random(n_cells) < 0.4
        starts = np.union1d([0], np.flatnonzero(chosen))
    edges = bin_edges(axis, starts, low, high)
    assert_array_equal(edges[[0, -1]], [low, high])
    assert (np.diff(edges) > 0).all()
    assert_array_equal(recount(x, edges), merge(cells, starts).n_obs)
    # 8 units in the last place to the left by construction, and rounding on top of them.
    nominal = low + starts[1:] * (high - low) / n_cells
    assert_allclose(edges[1:-1], nominal, rtol=0, atol=16 * np.spacing(max(abs(low), abs(high))))


@pytest.mark.thorough
@given(seed=st.integers(0, 2**32 - 1), c=st.floats(1e-6, 1e9), d=st.floats(-1e9, 1e9))
@settings(max_examples=100, deadline=None)
def test_rows_on_edges_stay_on_their_right_under_rescaling(seed, c, d):
    """Integers on a grid of integers: x -> c x + d rounds, and moves no row between cells."""
    x = np.concatenate([[0, 20], np.random.default_rng(seed).integers(0, 21, 200)]).astype(float)
    z = c * x + d
    assume(is_resolved(z.min(), z.max(), 20))
    cells = cell_moments(regular_axis(z.min(), z.max(), 20), z, x, None, frequency=False)
    assert_array_equal(cells.n_obs, [*np.bincount(x.astype(int))[:19], (x >= 19).sum()])


def test_given_edges_are_kept():
    edges = np.array([0.0, 0.1, 0.4, 1.0])
    edges.setflags(write=False)
    assert_array_equal(bin_edges(variable_axis(edges), np.arange(3), 0.0, 1.0), edges)
    assert_array_equal(bin_edges(variable_axis(edges), np.array([0, 2]), 0.0, 1.0), [0, 0.4, 1])


@pytest.mark.parametrize(
    ("low", "high", "n_cells", "resolved"),
    [(0, 1, 100, True), (1.7e9, 1.7e9 + 100, 100, True), (1e9, 1e9 + 1e-5, 20, False)],
)
def test_cells_that_floating_point_cannot_tell_apart(low, high, n_cells, resolved):
    assert is_resolved(low, high, n_cells) is resolved


def test_quantile_edges_by_hand():
    x = np.arange(1.0, 11)
    x.setflags(write=False)
    # R: quantile(1:10, (0:4)/4, type = 1) gives 1 3 5 8 10.
    assert_array_equal(quantile_edges(x, 4, None), [1, 3, 5, 8, 10])
    assert_array_equal(quantile_edges(x, 1, None), [1, 10])
    assert_array_equal(quantile_edges(x[::-1], 4, None), [1, 3, 5, 8, 10])


def test_quantiles_that_coincide_are_merged(rng):
    x = np.where(rng.random(1000) < 0.5, 3.0, rng.uniform(0, 10, 1000))
    edges = quantile_edges(x, 20, None)
    assert (np.diff(edges) > 0).all()
    assert np.isin(edges, x).all()
    assert np.isin(3.0, edges)
    assert 10 <= len(edges) < 16  # half of 20 quantiles fall on the point mass


@pytest.mark.parametrize("n_bins", [1, 3, 7, 10, 49, 100])
@pytest.mark.parametrize("n", [49, 100, 500])
def test_quantile_edges_of_weights_are_those_of_repeated_rows(rng, n, n_bins):
    x = rng.normal(size=n)
    for counts in (np.ones(n), np.full(n, 2.0), rng.integers(1, 5, n).astype(float)):
        repeated = np.repeat(x, counts.astype(int))
        weighted = quantile_edges(x, n_bins, counts)
        assert_array_equal(weighted, quantile_edges(repeated, n_bins, None))


@pytest.mark.parametrize(("n", "n_bins"), [(100, 100), (500, 20), (1000, 100)])
def test_quantile_bins_of_distinct_rows_hold_equal_counts(rng, n, n_bins):
    x = rng.permutation(np.arange(float(n)))
    counts = recount(x, quantile_edges(x, n_bins, None))
    # Edges are order statistics, so that the last bin has its closing row besides.
    size = n // n_bins
    expected = np.full(n_bins, size)
    expected[0] -= 1
    expected[-1] += 1
    assert_array_equal(counts, expected[expected > 0])


@pytest.mark.parametrize("ends", [(0.0, 3.0), (-8.0, 1.0), (1e6, 1e6 + 3), (-3.0, -1.0)])
def test_equal_edges_stand_a_few_units_in_the_last_place_to_the_left(ends):
    """Eight units of the larger end; both ends as they are."""
    low, high = ends
    fractions = np.linspace(0, 1, 7)
    found = equal_edges(low, high, fractions)
    assert (found[0], found[-1]) == ends
    exact = low + fractions * (high - low)
    unit = np.spacing(np.abs(ends).max())
    away = (exact - found)[1:-1] / unit
    assert ((away >= 7) & (away <= 9)).all()
    regular = regular_axis(low, high, 6).edges
    assert_allclose(found[1:-1], regular[1:-1], rtol=0, atol=2 * unit)
    assert_allclose(regular[[0, -1]], np.array(ends) - 8 * unit, rtol=0, atol=unit / 2)


def test_a_cell_is_resolved_if_it_is_wider_than_64_units_in_the_last_place():
    for low, high in ((1.0, 1 + 640 * EPS), (-1 - 640 * EPS, -1.0)):
        assert is_resolved(low, high, 9)
        assert not is_resolved(low, high, 10)


@pytest.mark.thorough
@pytest.mark.parametrize("ends", [(0.0, 3.0), (-1.0, 1e-9), (-7.0, 0.0), (1e6, 1e6 + 3), (-3, -1)])
@pytest.mark.parametrize("n_cells", [3, 7, 100])
def test_edges_of_bins_are_the_smallest_numbers_of_their_cells(ends, n_cells):
    low, high = ends
    axis, starts = regular_axis(low, high, n_cells), np.arange(n_cells)
    edges = bin_edges(axis, starts, low, high)
    assert (edges[0], edges[-1], len(edges)) == (low, high, n_cells + 1)
    assert_array_equal(cell_index(axis, edges[1:-1]), starts[1:])
    assert_array_equal(cell_index(axis, np.nextafter(edges[1:-1], -np.inf)), starts[:-1])
    some = np.array([0, 1, n_cells - 1])
    assert_array_equal(bin_edges(axis, some, low, high), np.append(edges[some], high))
    given = variable_axis(edges)
    assert_array_equal(bin_edges(given, some, low, high), np.append(edges[some], high))
