"""The search of adaptive bins against all partitions there are, fitted row by row."""

from __future__ import annotations

from itertools import combinations, pairwise, product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rhale_stats.arrays import adaptive
from rhale_stats.arrays.adaptive import (
    FINE,
    MIN_NOISE,
    MIN_SHARE,
    NOISE_ROWS,
    FineCells,
    Penalties,
    _PartitionSearch,
    adaptive_partition,
)
from rhale_stats.arrays.binning import regular_axis
from rhale_stats.arrays.moments import cell_index
from tests.arrays.made import cell_moments
from tests.helpers import in_turn

KINDS = ("none", "frequency", "precision")


# --- an independent programme: least squares on the rows of every bin ----------------------------


class Problem:
    """Rows of one feature on fine cells, and what bins of them cost, from these rows."""

    def __init__(
        self, x, g, *, weight=None, kind="none", low=0.0, high=1.0, n_coarse=8, risk, min_obs=4
    ):
        self.x, self.g = np.asarray(x), np.asarray(g)
        self.weight, self.frequency = weight, kind == "frequency"
        self.low, self.high, self.n_cells = low, high, FINE * n_coarse
        self.risk, self.min_obs = risk, min_obs
        axis = regular_axis(low, high, self.n_cells)
        self.cell = np.minimum(cell_index(axis, self.x), self.n_cells - 1)
        self.cells = cell_moments(axis, self.x, self.g, weight, frequency=self.frequency)
        w = np.ones(len(self.g)) if weight is None else weight
        self.variance = np.average((self.g - np.average(self.g, weights=w)) ** 2, weights=w)
        self.set_noise(0.2)

    def set_noise(self, noise):
        """Noise variances of the cells, at least the shares that the search takes as least."""
        self.noise_of_cells = np.full(self.n_cells, noise)
        noise = np.maximum(self.noise_of_cells, MIN_NOISE * self.variance)
        average = np.average(noise, weights=self.cells.weight)
        self.noise = np.maximum(noise, MIN_SHARE * average)
        self.known = {}

    def search(self, resolution=0.0):
        search = self.without_noise(resolution)
        search.set_noise(self.noise_of_cells)
        return search

    def without_noise(self, resolution=0.0):
        return _PartitionSearch(
            self.cells,
            FineCells(np.linspace(self.low, self.high, self.n_cells + 1)),
            self.risk,
            self.min_obs,
            resolution,
        )

    def partition(self, resolution=0.0):
        return adaptive_partition(
            self.cells,
            FineCells(np.linspace(self.low, self.high, self.n_cells + 1)),
            penalties=self.risk,
            min_obs=self.min_obs,
            resolution=resolution,
        )

    def rows(self, begin, end):
        here = (self.cell >= begin) & (self.cell < end)
        w = np.ones(here.sum()) if self.weight is None else self.weight[here]
        # Exact: offsets are not the thing tested here.
        x, g, v = self.x[here] - self.low, self.g[here] - np.median(self.g), self.noise
        v = v[self.cell[here]]
        if self.frequency:
            w = w.astype(int)
            x, g, v, w = np.repeat(x, w), np.repeat(g, w), np.repeat(v, w), np.ones(w.sum())
        return x, g, w, v

    def fit(self, begin, end):
        """Effective rows, and squares about the mean and the line, in noise variances.

        They are by weights over noise, and add up as if so many rows counted one each.
        """
        if (begin, end) not in self.known:
            x, g, w, v = self.rows(begin, end)
            squares = [0.0, 0.0]
            n = w.sum() ** 2 / (w**2).sum() if len(w) else 0.0
            if len(x):
                u = w / v * n / w.sum()
                d, r = x - np.average(x, weights=u), g - np.average(g, weights=u)
                spread = u @ d**2 if np.ptp(x) > 0 else np.inf
                squares = [u @ r**2, u @ (r - (u @ (d * r)) / spread * d) ** 2]
            self.known[begin, end] = n, *squares
        return self.known[begin, end]

    def cost(self, begin, end):
        """math [22] of one bin, and whether it is linear."""
        n, constant, line = self.fit(begin, end)
        if n < max(self.min_obs, 2) * (1 - 1e-12):
            return np.inf, False
        penalty = self.risk.edge + self.risk.parameter
        cost, linear = constant + penalty * max(constant / (n - 1), 1), False
        if self.risk.lines and n > 2:
            penalty += self.risk.parameter
            sloped = line + penalty * max(line / (n - 2), 1)
            if sloped < cost:
                cost, linear = sloped, True
        return cost, linear

    def all_costs(self, begin, end):
        costs, linear = zip(
            *(self.cost(*pair) for pair in zip(begin, end, strict=True)), strict=True
        )
        return np.array(costs), np.array(linear)

    def total(self, edges):
        return sum(self.cost(*pair)[0] for pair in pairwise(edges))

    def coarse(self):
        """Cheapest of all 2^(M-1) partitions of the coarse grid."""
        inner = range(FINE, self.n_cells, FINE)
        every = (
            (0, *chosen, self.n_cells)
            for n_inner in range(len(inner) + 1)
            for chosen in combinations(inner, n_inner)
        )
        return min(every, key=lambda edges: self.total(edges))

    def refined(self, edges):
        """Cheapest of all partitions whose edges are less than a coarse cell from these."""
        moves = [range(edge - FINE + 1, edge + FINE) for edge in edges[1:-1]]
        every = (
            (0, *inner, self.n_cells)
            for inner in product(*moves)
            if all(a < b for a, b in pairwise((0, *inner, self.n_cells)))
        )
        return min(every, key=lambda edges: self.total(edges))

    def gain(self, begin, middle, end):
        """How much worse one fit to two bins is than two, in noise, a parameter."""
        n_both, constant, line = self.fit(begin, end)
        w_both = self.rows(begin, end)[2].sum()
        apart, parameters, parts, variances = 0.0, 0, [], []
        for pair in ((begin, middle), (middle, end)):
            linear = self.cost(*pair)[1]
            n, *squares = self.fit(*pair)
            parameters += 1 + linear
            # Squares in rows of the union, which count one each.
            apart += squares[linear] * self.rows(*pair)[2].sum() / n * n_both / w_both
            parts.append(1 / n)
            variances.append(max(squares[linear] / (n - 1 - linear), 1))
        noise = np.average(variances, weights=parts)
        gains = [(constant - apart) / noise / (parameters - 1)]
        if self.risk.lines:
            gains.append((line - apart) / noise / max(parameters - 2, 1))
        return min(gains)

    def gains(self, edges):
        return [self.gain(*three) for three in zip(edges, edges[1:], edges[2:], strict=False)]

    def pruned(self, edges):
        """One edge after the other, the weakest first."""
        edges = list(edges)
        while len(edges) > 2:
            gains = self.gains(edges)
            if min(gains) >= self.risk.split:
                break
            del edges[1 + int(np.argmin(gains))]
        return edges


def truth(x):
    """Constant, then a steep line, then a step down."""
    return np.where(x < 0.35, 0.0, np.where(x < 0.7, 9 * (x - 0.35), -1.0))


def sample(seed, n=90, gap=False):
    """Skewed x and noise whose spread grows along x."""
    rng = np.random.default_rng(seed)
    x = rng.beta(1.0, 1.4, n)
    if gap:  # coarse cells, and many fine ones, without rows
        x = np.where((x > 0.3) & (x < 0.52), x / 3, x)
    return x, truth(x) + (0.3 + x) * rng.standard_gamma(2.0, n) / 3


def weights(kind, n, seed=0):
    rng = np.random.default_rng(seed + 1000)
    return {
        "none": None,
        "frequency": rng.integers(1, 5, n).astype(float),
        "precision": rng.uniform(0.05, 2, n),
    }[kind]


def problem(seed, kind="none", *, n=90, gap=False, **options):
    x, g = sample(seed, n, gap)
    return Problem(x, g, weight=weights(kind, n, seed), kind=kind, **options)


def risk(edge=4.0, parameter=4.0, split=6.0, lines=True):
    return Penalties(edge=edge, parameter=parameter, split=split, lines=lines)


RISKS = pytest.mark.parametrize(
    "chosen",
    [risk(), risk(lines=False), risk(0.5, 0.5), risk(9.0), risk(1.0, lines=False), risk(0.0, 1.0)],
    ids=lambda chosen: f"{chosen.edge:g}-{chosen.parameter:g}-{chosen.lines}",
)
WEIGHTS = pytest.mark.parametrize("kind", KINDS)


def assert_costs(case, begin, end, rtol):
    """Costs of bins, and which of those that are allowed are linear."""
    search = case.search()
    costs, linear = search.costs(search.fits(search.between(begin, end)))
    expected, expected_linear = case.all_costs(begin, end)
    assert_allclose(costs, expected, rtol=rtol, atol=1e-20)
    allowed = np.isfinite(expected)
    assert_array_equal(linear[allowed], expected_linear[allowed])
    if case.risk.lines:
        assert 0.1 < linear[allowed].mean() < 1
    return allowed


def assert_cheapest(case, edges, expected):
    """The same rows in every bin, or bins that cost the same; among empty cells all places do."""
    if not np.array_equal(edges, expected):
        assert_allclose(case.total(edges), case.total(expected), rtol=1e-12)


# --- what bins cost ------------------------------------------------------------------------------


def all_pairs(n_cells, step):
    return np.array(list(combinations(range(0, n_cells + 1, step), 2))).T


@pytest.mark.thorough
@WEIGHTS
@RISKS
def test_costs_are_those_of_least_squares(kind, chosen):
    """Of all bins between every fourth fine cell; these begin and end inside coarse ones."""
    case = problem(0, kind, risk=chosen)
    begin, end = all_pairs(case.n_cells, 4)
    # Differences of running sums keep 1e-13 of the squares of all rows.
    case.set_noise(np.linspace(0.1, 0.9, case.n_cells))
    allowed = assert_costs(case, begin, end, rtol=1e-9)
    assert not allowed.all()


@WEIGHTS
def test_brute_force_is_that_of_polyfit(kind):
    """The other programme of these tests, checked itself."""
    case = problem(0, kind, risk=risk())
    case.set_noise(np.linspace(0.1, 0.9, case.n_cells))
    for begin, end in all_pairs(case.n_cells, 8).T:
        x, g, w, v = case.rows(begin, end)
        if len(np.unique(x)) < 2:
            continue
        lines = [np.polyval(np.polyfit(x, g, degree, w=np.sqrt(w / v)), x) for degree in (0, 1)]
        to_rows = w.sum() / np.sum(w**2)
        expected = [to_rows * np.sum(w / v * (g - line) ** 2) for line in lines]
        assert_allclose(case.fit(begin, end)[1:], expected, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize(("x_offset", "g_offset"), [(0, 1e8), (1e8, 0), (-1e8, 1e8)])
def test_running_sums_keep_their_digits_beside_an_offset(x_offset, g_offset):
    case = problem(1, risk=risk(), n=400)
    x, g = case.x + x_offset, case.g + g_offset
    moved = Problem(x, g, low=x_offset, high=x_offset + 1, risk=risk())
    assert_array_equal(moved.cell, case.cell)
    # Means of cells are known to 1.5e-8, their own last place; of their squares nothing would be.
    assert_costs(moved, *all_pairs(case.n_cells, 4), rtol=1e-6)
    for one, other in zip(moved.partition(), case.partition(), strict=True):
        assert_array_equal(one, other)


def test_bins_without_spread_of_x_have_no_line():
    """Rows at two places: a line fits a bin with both, and none of a bin with one."""
    g = np.array([0.0, 1, 2, 1, 0, 2, 5, 6, 7, 6, 5, 7])
    case = Problem(np.repeat([1 / 3, 0.9], 6), g, risk=risk(0.1, 0.1), min_obs=2)
    search = case.search()
    fits = search.fits(search.between(np.array([0, 0, 40]), np.array([80, 40, 80])))
    # Both leave their own means, which are 5 apart.
    assert_allclose(0.2 * fits.constant, [8 + 12 * 2.5**2, 4, 4], rtol=1e-12)
    assert_allclose(0.2 * fits.line, [8, 4, 4], rtol=1e-12)
    assert not search.is_linear(np.array([0, 40, 80])).any()


# --- the exact optimum on the coarse grid --------------------------------------------------------


@pytest.mark.thorough
@WEIGHTS
@RISKS
@pytest.mark.parametrize("noise", ["neighbours", "large"])
def test_coarse_is_the_best_of_all_partitions(kind, chosen, noise, monkeypatch):
    monkeypatch.setattr(adaptive, "BLOCK_CELLS", 3)  # several blocks, the last not full
    numbers = set()
    for seed, min_obs in ((0, 2), (1, 4), (2, 9.5), (3, 20), (4, 45)):
        case = problem(seed, kind, risk=chosen, min_obs=min_obs, gap=seed % 2 == 1)
        case.set_noise(case.without_noise().noise_of_neighbours() if noise == "neighbours" else 1.0)
        found = case.search().coarse()
        assert_cheapest(case, found, case.coarse())
        numbers.add(len(found))
    assert len(numbers) > 1  # more than one trivial answer


def test_min_obs_is_kept():
    for seed, min_obs in product(range(3), (2, 10, 30, 90)):
        case = problem(seed, risk=risk(0.0, 0.0, split=0.0), min_obs=min_obs)
        for edges in (case.search().coarse(), [*case.partition()[0], case.n_cells]):
            assert min(case.fit(*pair)[0] for pair in pairwise(edges)) >= min_obs
        assert min_obs < 90 or list(edges) == [0, 80]


EXTREME = {
    "everywhere": lambda x, rng: 10 ** rng.uniform(-10, 0, len(x)),
    "falling": lambda x, rng: 10 ** (-10 * np.floor(2 * x)) * rng.uniform(0.5, 1, len(x)),
    "rising": lambda x, rng: 10 ** (10 * np.floor(2 * x) - 10) * rng.uniform(0.5, 1, len(x)),
}


@pytest.mark.parametrize("how", EXTREME)
@pytest.mark.parametrize("lines", [True, False])
def test_extreme_weights(how, lines):
    """1e-10 to 1, whose squares no running sum holds: bins of small weights count as others."""
    for seed in range(3):
        x, g = sample(seed, 200)
        weight = EXTREME[how](x, np.random.default_rng(seed))
        case = Problem(
            x, g, weight=weight, kind="precision", risk=risk(lines=lines), min_obs=3, n_coarse=6
        )
        search = case.search()
        coarse = search.coarse()
        assert_cheapest(case, coarse, case.coarse())
        # Whatever else is asked of the sums.
        assert_costs(case, *all_pairs(case.n_cells, 5), rtol=1e-9)
        refined = search.refined(coarse)
        assert case.total(refined) <= case.total(coarse) * (1 + 1e-9)
        assert_array_equal(search.pruned(refined), case.pruned(refined))


def test_two_rows_of_equal_weight_have_no_line():
    """Kish's number of two equal weights may round to more than 2."""
    rng = np.random.default_rng(3)
    for weight in rng.uniform(0, 1, 40):
        case = Problem(
            np.array([0.2, 0.8]), np.array([0.0, 5.0]), weight=np.full(2, weight),
            kind="precision", risk=risk(1.0, 0.0), min_obs=2, n_coarse=1,
        )  # fmt: skip
        starts, linear = case.partition()
        assert_array_equal(starts, [0])
        assert not linear.any()


# --- edges on the fine grid ----------------------------------------------------------------------


@pytest.mark.thorough
@WEIGHTS
@pytest.mark.parametrize(
    ("chosen", "edges"),
    in_turn(
        [risk(), risk(lines=False), risk(1.0, 0.5)],
        [(0, 30, 80), (0, 20, 60, 80), (0, 30, 40, 80), (0, 10, 70, 80)],
        2,
    ),
)
def test_refined_is_the_best_of_all_moves(kind, chosen, edges):
    """Bins of one coarse cell, whose two edges may not cross, and bins at the ends."""
    case = problem(4, kind, risk=chosen, min_obs=2)
    case.set_noise(case.without_noise().noise_of_neighbours())
    assert np.isfinite(case.total(edges))
    found = case.search().refined(np.array(edges))
    assert_cheapest(case, found, case.refined(edges))
    assert (np.abs(found - edges) < FINE).all()


@WEIGHTS
def test_refined_never_costs_more(kind):
    moved = 0
    for seed in range(6):
        case = problem(seed, kind, risk=risk(1.0, 1.0), gap=seed % 2 == 1, n=200)
        case.set_noise(case.without_noise().noise_of_neighbours())
        search = case.search()
        coarse = search.coarse()
        refined = search.refined(coarse)
        assert len(refined) == len(coarse)
        before, after = case.total(coarse), case.total(refined)
        assert after <= before * (1 + 1e-12)
        moved += after < before
    assert moved >= 4


def test_one_bin_is_not_refined():
    case = problem(0, risk=risk(1e6))
    assert_array_equal(case.search().refined(np.array([0, 80])), [0, 80])


# --- neighbours that are alike -------------------------------------------------------------------


@pytest.mark.thorough
@WEIGHTS
@pytest.mark.parametrize("chosen", [risk(split=3.0), risk(lines=False), risk(split=12.0)])
def test_pruned_leaves_no_pair_that_is_alike(kind, chosen):
    removed = kept = 0
    for seed in range(4):
        case = problem(seed, kind, risk=chosen, n=200)
        case.set_noise(case.without_noise().noise_of_neighbours())
        search = case.search()
        for edges in (np.arange(0, 81, 20), np.array([0, 13, 28, 41, 56, 80])):
            found = search.pruned(edges)
            assert_array_equal(found, case.pruned(edges))
            assert all(gain >= chosen.split * (1 - 1e-9) for gain in case.gains(found))
            assert set(found) <= set(edges)
            removed += len(edges) - len(found)
            kept += len(found) - 2
    assert removed > 0
    assert kept > 0


# --- the noise -----------------------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["none", "precision"])
def test_noise_of_neighbours_is_unbiased(kind):
    """Of a constant effect with noise of variance 4, in few rows."""
    rng = np.random.default_rng(11)
    n, found, axis = 8, [], regular_axis(0, 1, 8 * FINE)
    for _ in range(700):
        x = np.round(rng.uniform(size=n), 1)  # cells with several rows, and cells without
        weight = None if kind == "none" else rng.uniform(0.2, 2, n)
        cells = cell_moments(axis, x, 5 + 2 * rng.normal(size=n), weight, frequency=False)
        grid = FineCells(np.linspace(0, 1, len(cells.weight) + 1))
        noise = _PartitionSearch(cells, grid, risk(lines=False), 2, 0.0).noise_of_neighbours()
        occupied = cells.weight > 0
        assert np.ptp(noise[occupied]) < 1e-12  # of so few rows all are around each
        found.append(noise[occupied][0])
    error = np.std(found, ddof=1) / np.sqrt(len(found))
    assert 4 * error < 4 / n  # so that one degree of freedom would be seen
    assert abs(np.mean(found) - 4) < 4 * error


def test_noise_of_neighbours_does_not_see_a_slow_effect(rng):
    """A line of range 10 beside noise of variance 1, at 300 rows: (10 / 300)^2 a step."""
    x = rng.uniform(size=300)
    noise = rng.normal(size=300)
    cases = [Problem(x, g, risk=risk(), n_coarse=50) for g in (noise, 10 * x + noise)]
    occupied = cases[0].cells.weight > 0
    flat, steep = (case.search().noise_of_neighbours()[occupied] for case in cases)
    assert_allclose(steep, flat, rtol=0.1)
    # Of differences between neighbours, as many as the window has.
    assert_allclose(flat, 1.0, atol=4 * np.sqrt(3 / NOISE_ROWS))


def test_noise_is_that_around_a_cell(rng):
    """Ten times the standard deviation on the right: each side has its own."""
    x = rng.uniform(size=2000)
    g = np.where(x < 0.5, 0.2, 2.0) * rng.normal(size=2000)
    case = Problem(x, g, risk=risk(), n_coarse=50)
    noise = case.search().noise_of_neighbours()
    place = np.linspace(0, 1, case.n_cells)
    error = np.sqrt(3 / NOISE_ROWS)
    occupied = case.cells.weight > 0
    for side, expected in ((place < 0.42, 0.04), (place > 0.58, 4.0)):
        within = noise[side & occupied]
        assert within.mean() == pytest.approx(expected, rel=3 * error / np.sqrt(8))
        assert_allclose(within, expected, rtol=4 * error)


@WEIGHTS
def test_noise_of_fit_is_that_of_the_residuals(kind):
    """Of few rows, so that all are around every cell."""
    case = problem(5, kind, risk=risk(), n=90 if kind == "none" else 30)
    search = case.search()
    edges = np.array([0, 28, 56, 80])
    squares = freedom = 0.0
    flags = [case.cost(*pair)[1] for pair in pairwise(edges)]
    for pair, linear in zip(pairwise(edges), flags, strict=True):
        n = case.fit(*pair)[0]
        x, g, w, v = case.rows(*pair)
        line = np.polyval(np.polyfit(x, g, int(linear), w=np.sqrt(w / v)), x)
        # Cell by cell in effective rows, as degrees of freedom are.
        cell = np.floor(x * case.n_cells)
        for here in (cell == number for number in np.unique(cell)):
            rows = w[here].sum() ** 2 / np.sum(w[here] ** 2)
            squares += np.sum(w[here] * (g - line)[here] ** 2) * rows / w[here].sum()
            freedom += rows * (1 - (1 + linear) / n)
    noise = search.noise_of_fit(edges)[case.cells.weight > 0]
    assert_allclose(noise, squares / freedom, rtol=1e-9)
    assert_array_equal(search.is_linear(edges), flags)


# --- the whole search ----------------------------------------------------------------------------


def test_the_noise_of_the_fit_is_used_where_it_is_smaller(rng):
    """On a steep stretch neighbours differ, and the first noise hides a step."""
    differs = 0
    for step in (0.8, 1.2, 1.6, 2.0, 2.4):
        x = rng.uniform(size=60)
        g = 60 * x + np.where(x < 0.5, 0.0, step) + 0.2 * rng.normal(size=60)
        case = Problem(x, g, risk=risk())
        search = case.search()
        first = search.noise_of_neighbours()
        search.set_noise(first)
        once = search.partition()
        second = search.noise_of_fit(once)
        assert (second < first)[case.cells.weight > 0].all()
        search.set_noise(second)
        starts, linear = case.partition()
        assert_array_equal(starts, search.partition()[:-1])
        assert_array_equal(linear, search.is_linear(np.append(starts, 80)))
        differs += not np.array_equal(starts, once[:-1])
    assert differs > 0


def test_exact_shapes(rng):
    """Without noise: one bin for a constant, one line for a line, a step on its fine edge."""
    x = rng.uniform(size=400)
    one = Problem(x, np.full(400, 3.7), risk=risk()).partition()
    assert_array_equal(one[0], [0])
    assert not one[1].any()
    line = Problem(x, 2 - 5 * x, risk=risk()).partition()
    assert_array_equal(line[0], [0])
    assert line[1].all()
    starts, linear = Problem(x, np.where(x < 37 / 80, 1.0, 4.0), risk=risk()).partition()
    assert_array_equal(starts, [0, 37])
    assert not linear.any()
    starts, linear = Problem(x, np.maximum(x - 37 / 80, 0), risk=risk()).partition()
    assert_array_equal(starts, [0, 37])
    assert_array_equal(linear, [False, True])


def test_local_effects_equal_up_to_their_resolution_are_one_bin(rng):
    x = rng.uniform(size=400)
    g = 1 + 1e-9 * np.sign(x - 0.5)
    assert_array_equal(Problem(x, g, risk=risk()).partition()[0], [0, 40])
    assert_array_equal(Problem(x, g, risk=risk()).partition(resolution=1e-6)[0], [0])


def test_without_lines_no_products_with_x_are_needed():
    case = problem(6, risk=risk(lines=False), n=200)
    case.cells = case.cells._replace(x_m2=None, xg=None)
    starts, linear = case.partition()
    assert len(starts) > 1
    assert not linear.any()
    assert_cheapest(case, case.search().coarse(), case.coarse())


@pytest.mark.thorough
@WEIGHTS
@pytest.mark.parametrize("lines", [True, False])
def test_mirrored_rows_give_mirrored_bins(kind, lines):
    for seed in range(6):
        case = problem(seed, kind, risk=risk(2.0, 4.0, 4.0, lines), n=200, gap=seed % 2 == 1)
        mirrored = Problem(1 - case.x, case.g, weight=case.weight, kind=kind, risk=case.risk)
        (starts, linear), (other, other_linear) = case.partition(), mirrored.partition()
        assert len(starts) > 1
        edges, turned = np.append(starts, 80), np.append(other, 80)
        assert_array_equal(80 - turned[::-1], edges)
        assert_array_equal(other_linear[::-1], linear)


@pytest.mark.thorough
@WEIGHTS
@pytest.mark.parametrize(
    ("a", "b", "c", "d"),
    [(1e9, 0, 1, 0), (-1e-9, 0, 1, 0), (1, 1e6, 1, 0), (1, 0, 1e-6, 3e-5), (-3, 7, 1e5, -2e6)],
)
def test_scale_and_shift_change_nothing(kind, a, b, c, d):
    """a g + b against c x + d."""
    for seed in range(4):
        case = problem(seed, kind, risk=risk(2.0, 4.0, 4.0), n=200)
        moved = Problem(
            c * case.x + d, a * case.g + b, weight=case.weight, kind=kind, risk=case.risk,
            low=d, high=c + d,
        )  # fmt: skip
        assert_array_equal(moved.cell, case.cell)
        for found, expected in zip(moved.partition(), case.partition(), strict=True):
            assert_array_equal(found, expected)


def test_weights_count_as_shares_only(rng):
    """Precision weights times a constant, frequency weights as repeated rows."""
    case = problem(7, "precision", risk=risk(), n=200)
    scaled = Problem(case.x, case.g, weight=1e-7 * case.weight, kind="precision", risk=risk())
    counted = problem(7, "frequency", risk=risk(), n=200)
    repeat = counted.weight.astype(int)
    repeated = Problem(np.repeat(counted.x, repeat), np.repeat(counted.g, repeat), risk=risk())
    for one, other in ((case, scaled), (counted, repeated)):
        assert len(one.partition()[0]) > 1
        for found, expected in zip(one.partition(), other.partition(), strict=True):
            assert_array_equal(found, expected)
