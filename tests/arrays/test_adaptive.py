"""The search of adaptive bins against all partitions there are, fitted row by row."""

from __future__ import annotations

from itertools import combinations, pairwise, product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rhale_stats.arrays import adaptive
from rhale_stats.arrays.adaptive import FINE, Grid, Risk, _Search, adaptive_partition
from rhale_stats.arrays.binning import regular_axis
from rhale_stats.arrays.moments import cell_index, cell_moments, comoments

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
        self.comoments = comoments(axis, self.cells, self.x, self.g, weight)
        w = np.ones(len(self.g)) if weight is None else weight
        self.variance = np.average((self.g - np.average(self.g, weights=w)) ** 2, weights=w)
        self.known = {}

    def search(self, resolution=0.0):
        return _Search(
            self.cells,
            self.comoments,
            Grid(np.linspace(self.low, self.high, self.n_cells + 1)),
            self.risk,
            self.min_obs,
            resolution,
        )

    def partition(self, resolution=0.0):
        return adaptive_partition(
            self.cells,
            self.comoments if self.risk.slope is not None else None,
            Grid(np.linspace(self.low, self.high, self.n_cells + 1)),
            risk=self.risk,
            min_obs=self.min_obs,
            resolution=resolution,
        )

    def rows(self, begin, end):
        here = (self.cell >= begin) & (self.cell < end)
        w = np.ones(here.sum()) if self.weight is None else self.weight[here]
        # Exact: offsets are not the thing tested here.
        x, g = self.x[here] - self.low, self.g[here] - np.median(self.g)
        if self.frequency:
            w = w.astype(int)
            x, g, w = np.repeat(x, w), np.repeat(g, w), np.ones(w.sum())
        return x, g, w

    def fit(self, begin, end):
        """Effective rows, sum of w, and weighted squares about the mean and about the line."""
        if (begin, end) not in self.known:
            x, g, w = self.rows(begin, end)
            squares = [0.0, 0.0]
            if len(x):
                d, r = x - np.average(x, weights=w), g - np.average(g, weights=w)
                spread = w @ d**2 if np.ptp(x) > 0 else np.inf
                squares = [w @ r**2, w @ (r - (w @ (d * r)) / spread * d) ** 2]
            n = w.sum() ** 2 / (w**2).sum() if len(w) else 0.0
            self.known[begin, end] = n, w.sum(), *squares
        return self.known[begin, end]

    def variances(self, begin, end):
        """math [6] about the mean and about the line; of the line NaN where it goes through."""
        n, total, constant, line = self.fit(begin, end)
        return constant / (total - total / n), line / (total - 2 * total / n) if n > 2 else np.nan

    def cost(self, begin, end, noise):
        """math [22] of one bin, and whether it is linear."""
        n = self.fit(begin, end)[0]
        if n < max(self.min_obs, 2) * (1 - 1e-12):
            return np.inf, False
        least = noise if self.risk.pooled else 1e-12 * self.variance
        constant, line = self.variances(begin, end)
        cost, linear = constant + self.risk.edge * max(constant, least) / n, False
        if self.risk.slope is not None and n > 2:
            sloped = line + (self.risk.edge + self.risk.slope) * max(line, least) / n
            if sloped < cost:
                cost, linear = sloped, True
        return cost * (end - begin), linear

    def all_costs(self, begin, end, noise):
        costs, linear = zip(
            *(self.cost(*pair, noise) for pair in zip(begin, end, strict=True)), strict=True
        )
        return np.array(costs), np.array(linear)

    def total(self, edges, noise):
        return sum(self.cost(*pair, noise)[0] for pair in pairwise(edges))

    def coarse(self, noise):
        """Cheapest of all 2^(M-1) partitions of the coarse grid."""
        inner = range(FINE, self.n_cells, FINE)
        every = (
            (0, *chosen, self.n_cells)
            for n_inner in range(len(inner) + 1)
            for chosen in combinations(inner, n_inner)
        )
        return min(every, key=lambda edges: self.total(edges, noise))

    def refined(self, edges, noise):
        """Cheapest of all partitions whose edges are less than a coarse cell from these."""
        moves = [range(edge - FINE + 1, edge + FINE) for edge in edges[1:-1]]
        every = (
            (0, *inner, self.n_cells)
            for inner in product(*moves)
            if all(a < b for a, b in pairwise((0, *inner, self.n_cells)))
        )
        return min(every, key=lambda edges: self.total(edges, noise))

    def gain(self, begin, middle, end, noise):
        """How much worse one fit to two bins is than two, in noise, a parameter."""
        n_both, w_both, constant, line = self.fit(begin, end)
        apart, parameters, known, own = 0.0, 0, [], []
        for pair in ((begin, middle), (middle, end)):
            linear = self.cost(*pair, noise)[1]
            n, _, *squares = self.fit(*pair)
            parameters += 1 + linear
            apart += squares[linear]
            known.append(1 / n)
            own.append(max(self.variances(*pair)[linear], noise))
        # Squares in rows of the union, which count one each.
        per_row = n_both / w_both
        here = np.average(own, weights=known)
        gains = [(constant - apart) * per_row / here / (parameters - 1)]
        if self.risk.slope is not None:
            gains.append((line - apart) * per_row / here / max(parameters - 2, 1))
        return min(gains)

    def gains(self, edges, noise):
        return [
            self.gain(*three, noise) for three in zip(edges, edges[1:], edges[2:], strict=False)
        ]

    def pruned(self, edges, noise):
        """One edge after the other, the weakest first."""
        edges = list(edges)
        while len(edges) > 2:
            gains = self.gains(edges, noise)
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


def risk(edge=4.0, slope=4.0, split=6.0, pooled=True):
    return Risk(edge=edge, slope=slope, split=split, pooled=pooled)


RISKS = pytest.mark.parametrize(
    "chosen",
    [risk(), risk(slope=None), risk(0.5, 0.5), risk(9.0, 4.0, pooled=False),
     risk(1.0, None, pooled=False), risk(0.0, 0.0)],
    ids=lambda chosen: f"{chosen.edge:g}-{chosen.slope}-{chosen.pooled}",
)  # fmt: skip
WEIGHTS = pytest.mark.parametrize("kind", KINDS)


def assert_costs(case, begin, end, noise, rtol):
    """Costs of bins, and which of those that are allowed are linear."""
    search = case.search()
    costs, linear = search.costs(search.fits(search.between(begin, end)), end - begin, noise)
    expected, expected_linear = case.all_costs(begin, end, noise)
    assert_allclose(costs, expected, rtol=rtol, atol=1e-20)
    allowed = np.isfinite(expected)
    assert_array_equal(linear[allowed], expected_linear[allowed])
    if case.risk.slope is not None:
        assert 0.1 < linear[allowed].mean() < 1
    return allowed


# --- what bins cost ------------------------------------------------------------------------------


def all_pairs(n_cells, step):
    return np.array(list(combinations(range(0, n_cells + 1, step), 2))).T


@WEIGHTS
@RISKS
def test_costs_are_those_of_least_squares(kind, chosen):
    """Of all bins between every fourth fine cell; these begin and end inside coarse ones."""
    case = problem(0, kind, risk=chosen)
    begin, end = all_pairs(case.n_cells, 4)
    # Differences of running sums keep 1e-13 of the squares of all rows.
    allowed = assert_costs(case, begin, end, 0.2, rtol=1e-9)
    assert not allowed.all()


@WEIGHTS
def test_brute_force_is_that_of_polyfit(kind):
    """The other programme of these tests, checked itself."""
    case = problem(0, kind, risk=risk())
    for begin, end in all_pairs(case.n_cells, 8).T:
        x, g, w = case.rows(begin, end)
        if len(np.unique(x)) < 2:
            continue
        lines = [np.polyval(np.polyfit(x, g, degree, w=np.sqrt(w)), x) for degree in (0, 1)]
        expected = [np.sum(w * (g - line) ** 2) for line in lines]
        assert_allclose(case.fit(begin, end)[2:], expected, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize(("x_offset", "g_offset"), [(0, 1e8), (1e8, 0), (-1e8, 1e8)])
def test_running_sums_keep_their_digits_beside_an_offset(x_offset, g_offset):
    case = problem(1, risk=risk(), n=400)
    x, g = case.x + x_offset, case.g + g_offset
    moved = Problem(x, g, low=x_offset, high=x_offset + 1, risk=risk())
    assert_array_equal(moved.cell, case.cell)
    # Means of cells are known to 1.5e-8, their own last place; of their squares nothing would be.
    assert_costs(moved, *all_pairs(case.n_cells, 4), 0.2, rtol=1e-6)
    for one, other in zip(moved.partition(), case.partition(), strict=True):
        assert_array_equal(one, other)


def test_bins_without_spread_of_x_have_no_line():
    """Rows at two places: a line fits a bin with both, and none of a bin with one."""
    g = np.array([0.0, 1, 2, 1, 0, 2, 5, 6, 7, 6, 5, 7])
    case = Problem(np.repeat([1 / 3, 0.9], 6), g, risk=risk(0.1, 0.1), min_obs=2)
    search = case.search()
    fits = search.fits(search.between(np.array([0, 0, 40]), np.array([80, 40, 80])))
    # Both leave their own means, which are 5 apart.
    assert_allclose(fits.constant, [8 + 12 * 2.5**2, 4, 4], rtol=1e-12)
    assert_allclose(fits.line, [8, 4, 4], rtol=1e-12)
    assert not search.is_linear(np.array([0, 40, 80]), 0.01).any()


# --- the exact optimum on the coarse grid --------------------------------------------------------


@WEIGHTS
@RISKS
@pytest.mark.parametrize("pooled_noise", ["neighbours", "large"])
def test_coarse_is_the_best_of_all_partitions(kind, chosen, pooled_noise, monkeypatch):
    monkeypatch.setattr(adaptive, "BLOCK_CELLS", 3)  # several blocks, the last not full
    numbers = set()
    for seed, min_obs in ((0, 2), (1, 4), (2, 9.5), (3, 20)):
        case = problem(seed, kind, risk=chosen, min_obs=min_obs, gap=seed % 2 == 1)
        search = case.search()
        noise = search.noise_of_neighbours() if pooled_noise == "neighbours" else 1.0
        found = search.coarse(noise)
        assert_array_equal(found, case.coarse(noise), err_msg=str(seed))
        numbers.add(len(found))
    assert len(numbers) > 1  # more than one trivial answer


def test_min_obs_is_kept():
    for seed, min_obs in product(range(3), (2, 10, 30, 90)):
        case = problem(seed, risk=risk(0.0, 0.0, split=0.0), min_obs=min_obs)
        for edges in (case.search().coarse(0.1), [*case.partition()[0], case.n_cells]):
            assert min(case.fit(*pair)[0] for pair in pairwise(edges)) >= min_obs
        assert min_obs < 90 or list(edges) == [0, 80]


EXTREME = {
    "everywhere": lambda x, rng: 10 ** rng.uniform(-10, 0, len(x)),
    "falling": lambda x, rng: 10 ** (-10 * np.floor(2 * x)) * rng.uniform(0.5, 1, len(x)),
    "rising": lambda x, rng: 10 ** (10 * np.floor(2 * x) - 10) * rng.uniform(0.5, 1, len(x)),
}


@pytest.mark.parametrize("how", EXTREME)
@pytest.mark.parametrize("slope", [4.0, None])
def test_extreme_weights(how, slope):
    """1e-10 to 1, whose squares no running sum holds: bins of small weights count as others."""
    for seed in range(3):
        x, g = sample(seed, 200)
        weight = EXTREME[how](x, np.random.default_rng(seed))
        case = Problem(
            x, g, weight=weight, kind="precision", risk=risk(slope=slope), min_obs=3, n_coarse=6
        )
        search, noise = case.search(), 0.2
        coarse = search.coarse(noise)
        assert_array_equal(coarse, case.coarse(noise))
        # Whatever else is asked of the sums.
        assert_costs(case, *all_pairs(case.n_cells, 5), noise, rtol=1e-9)
        refined = search.refined(coarse, noise)
        assert case.total(refined, noise) <= case.total(coarse, noise) * (1 + 1e-9)
        assert_array_equal(search.pruned(refined, noise), case.pruned(refined, noise))


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


@WEIGHTS
@pytest.mark.parametrize("chosen", [risk(), risk(slope=None), risk(1.0, 0.5, pooled=False)])
@pytest.mark.parametrize("edges", [(0, 30, 80), (0, 20, 60, 80), (0, 30, 40, 80), (0, 10, 70, 80)])
def test_refined_is_the_best_of_all_moves(kind, chosen, edges):
    """Bins of one coarse cell, whose two edges may not cross, and bins at the ends."""
    case = problem(4, kind, risk=chosen, min_obs=2)
    search = case.search()
    noise = search.noise_of_neighbours()
    assert np.isfinite(case.total(edges, noise))
    found = search.refined(np.array(edges), noise)
    assert_array_equal(found, case.refined(edges, noise))
    assert (np.abs(found - edges) < FINE).all()


@WEIGHTS
def test_refined_never_costs_more(kind):
    moved = 0
    for seed in range(6):
        case = problem(seed, kind, risk=risk(1.0, 1.0), gap=seed % 2 == 1, n=200)
        search = case.search()
        noise = search.noise_of_neighbours()
        coarse = search.coarse(noise)
        refined = search.refined(coarse, noise)
        assert len(refined) == len(coarse)
        before, after = case.total(coarse, noise), case.total(refined, noise)
        assert after <= before * (1 + 1e-12)
        moved += after < before
    assert moved >= 4


def test_one_bin_is_not_refined():
    case = problem(0, risk=risk(1e6))
    assert_array_equal(case.search().refined(np.array([0, 80]), 1.0), [0, 80])


# --- neighbours that are alike -------------------------------------------------------------------


@WEIGHTS
@pytest.mark.parametrize("chosen", [risk(split=3.0), risk(slope=None), risk(split=12.0)])
def test_pruned_leaves_no_pair_that_is_alike(kind, chosen):
    removed = kept = 0
    for seed in range(4):
        case = problem(seed, kind, risk=chosen, n=200)
        search = case.search()
        noise = search.noise_of_neighbours()
        for edges in (np.arange(0, 81, 20), np.array([0, 13, 28, 41, 56, 80])):
            found = search.pruned(edges, noise)
            assert_array_equal(found, case.pruned(edges, noise))
            assert all(gain >= chosen.split * (1 - 1e-9) for gain in case.gains(found, noise))
            assert set(found) <= set(edges)
            removed += len(edges) - len(found)
            kept += len(found) - 2
    assert removed > 0
    assert kept > 0


# --- the noise -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["none", "precision"])
def test_noise_of_neighbours_is_unbiased(kind):
    """Of a constant effect with noise of variance 4, in few rows."""
    rng = np.random.default_rng(11)
    n, found, axis = 8, [], regular_axis(0, 1, 8 * FINE)
    for _ in range(700):
        x = np.round(rng.uniform(size=n), 1)  # cells with several rows, and cells without
        weight = None if kind == "none" else rng.uniform(0.2, 2, n)
        cells = cell_moments(axis, x, 5 + 2 * rng.normal(size=n), weight, frequency=False)
        found.append(
            _Search(
                cells,
                None,
                Grid(np.linspace(0, 1, len(cells.weight) + 1)),
                risk(slope=None),
                2,
                0.0,
            ).noise_of_neighbours()
        )
    error = np.std(found, ddof=1) / np.sqrt(len(found))
    assert 4 * error < 4 / n  # so that one degree of freedom would be seen
    assert abs(np.mean(found) - 4) < 4 * error


def test_noise_of_neighbours_does_not_see_a_slow_effect(rng):
    """A line of range 10 beside noise of variance 1, at 300 rows: (10 / 300)^2 a step."""
    x = rng.uniform(size=300)
    noise = rng.normal(size=300)
    flat = Problem(x, noise, risk=risk(), n_coarse=50).search().noise_of_neighbours()
    steep = Problem(x, 10 * x + noise, risk=risk(), n_coarse=50).search().noise_of_neighbours()
    assert steep == pytest.approx(flat, rel=0.1)
    assert flat == pytest.approx(1.0, rel=4 * np.sqrt(3 / 300))  # differences of neighbours


@WEIGHTS
def test_noise_of_fit_is_that_of_the_residuals(kind):
    case = problem(5, kind, risk=risk(), n=200)
    search = case.search()
    edges, noise = np.array([0, 28, 56, 80]), 0.2
    squares = freedom = 0.0
    flags = [case.cost(*pair, noise)[1] for pair in pairwise(edges)]
    for pair, linear in zip(pairwise(edges), flags, strict=True):
        n = case.fit(*pair)[0]
        freedom += n - 1 - linear
        squares += case.variances(*pair)[linear] * (n - 1 - linear)
    assert search.noise_of_fit(edges, noise) == pytest.approx(squares / freedom, rel=1e-10)
    assert_array_equal(search.is_linear(edges, noise), flags)


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
        once = search.partition(first)
        second = search.noise_of_fit(once, first)
        assert second < first
        starts, linear = case.partition()
        assert_array_equal(starts, search.partition(second)[:-1])
        assert_array_equal(linear, search.is_linear(np.append(starts, 80), second))
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


def test_without_lines_no_comoments_are_needed():
    case = problem(6, risk=risk(slope=None), n=200)
    starts, linear = case.partition()
    assert len(starts) > 1
    assert not linear.any()
    with_comoments = case.search()
    noise = with_comoments.noise_of_neighbours()
    assert_array_equal(with_comoments.coarse(noise), case.coarse(noise))


@WEIGHTS
@pytest.mark.parametrize("slope", [4.0, None])
def test_mirrored_rows_give_mirrored_bins(kind, slope):
    for seed in range(6):
        case = problem(seed, kind, risk=risk(2.0, slope, 4.0), n=200, gap=seed % 2 == 1)
        mirrored = Problem(1 - case.x, case.g, weight=case.weight, kind=kind, risk=case.risk)
        (starts, linear), (other, other_linear) = case.partition(), mirrored.partition()
        assert len(starts) > 1
        edges, turned = np.append(starts, 80), np.append(other, 80)
        assert_array_equal(80 - turned[::-1], edges)
        assert_array_equal(other_linear[::-1], linear)


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
