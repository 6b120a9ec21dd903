"""Tables of the regional search, both sides of every split, and the loss, against direct loops."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from rhale_stats.arrays import regions
from rhale_stats.arrays.moments import BLOCK_ROWS, Moments
from rhale_stats.arrays.regions import BLOCK_CODES, NodeCurves, NodeRows
from tests.helpers import frozen

EPS = np.finfo(float).eps
KINDS = ("none", "precision", "frequency")


def random_rows(rng, kind="none", *, lines=False, n=400, n_cells=6, offset=0.0):
    """Rows about the means of their cells; the last cell is empty."""
    cell = rng.integers(0, n_cells - 1, n).astype(np.int16)
    g, x = offset + rng.normal(size=n), rng.uniform(cell, cell + 1)
    weight = {
        "none": None,
        "precision": rng.gamma(2, size=n),
        "frequency": rng.integers(1, 5, n).astype(float),
    }[kind]
    centre = regions.means(cell, g, weight, n_cells)
    x_centre = regions.means(cell, x, weight, n_cells) if lines else None
    rows = NodeRows(
        frozen(cell),
        frozen(g - centre[cell]),
        None if weight is None else frozen(weight),
        kind == "frequency",
        frozen(centre),
        frozen(x - x_centre[cell]) if lines else None,
        frozen(x_centre) if lines else None,
    )
    return rows, g, x


def direct_moments(rows, g, x, inside):
    """Moments of every cell over some rows, one by one: (name, cell)."""
    n_cells = len(rows.centre)
    found = {name: np.zeros(n_cells) for name in Moments._fields}
    for k in range(n_cells):
        here = inside & (rows.cell == k)
        w = np.ones(len(g)) if rows.weight is None else rows.weight
        w, gk, xk = w[here], g[here], x[here]
        total = w.sum()
        mean = np.sum(w * gk) / total if total else np.nan
        x_mean = np.sum(w * xk) / total if total else np.nan
        values = {
            "n_obs": total if rows.counted else len(w),
            "weight": total,
            "weight_sq": total if rows.counted else np.sum(w**2),
            "mean": mean,
            "m2": np.sum(w * (gk - mean) ** 2),
            "x_mean": x_mean,
            "x_m2": np.sum(w * (xk - x_mean) ** 2),
            "xg": np.sum(w * (xk - x_mean) * (gk - mean)),
        }
        for name, value in values.items():
            found[name][k] = value
    return found


def assert_moments(actual, number, expected, *, lines, scale=1.0):
    """To some hundred units of rounding of sums of a few hundred terms."""
    along = ("x_mean", "x_m2", "xg")
    for name in ("n_obs", "weight", "weight_sq", "mean", "m2", *(along if lines else ())):
        values = getattr(actual, name)[number]
        assert_allclose(values, expected[name], rtol=1e-12, atol=1e3 * EPS * scale, err_msg=name)
    assert (actual.x_m2 is not None) == (actual.xg is not None) == lines


# --- tables --------------------------------------------------------------------------------------


def test_a_table_by_hand():
    rows = NodeRows(
        np.array([0, 0, 1, 1]),
        np.array([1.0, -1.0, 2.0, 3.0]),
        None,
        False,
        np.array([10.0, 20.0]),
    )
    sums = rows.table(np.array([0, 1, 1, 1], dtype=np.uint8), 3)
    assert_array_equal(sums[0], [[1, 0], [1, 2], [0, 0]])
    assert_array_equal(sums[1], [[1, 0], [-1, 5], [0, 0]])
    assert_array_equal(sums[2], [[1, 0], [1, 13], [0, 0]])
    cells = rows.moments(sums)
    assert_array_equal(cells.mean, [[11, np.nan], [9, 22.5], [np.nan, np.nan]])
    assert_array_equal(cells.m2, [[0, 0], [0, 0.5], [0, 0]])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lines", [False, True])
def test_every_entry_of_a_table(rng, kind, lines):
    rows, g, x = random_rows(rng, kind, lines=lines)
    codes = rng.integers(0, 5, len(g)).astype(np.uint8)
    actual = rows.moments(rows.table(codes, 5))
    for code in range(5):
        assert_moments(actual, code, direct_moments(rows, g, x, codes == code), lines=lines)


def test_an_offset_costs_no_digits(rng):
    """Local effects of 1e8 + noise: sums are about the means of the cells."""
    rows, g, x = random_rows(rng, offset=1e8)
    codes = rng.integers(0, 3, len(g)).astype(np.uint8)
    cells = rows.moments(rows.table(codes, 3))
    for code in range(3):
        expected = direct_moments(rows, g - 1e8, x, codes == code)
        # g itself is known to 1e8 eps.
        assert_allclose(cells.m2[code], expected["m2"], rtol=1e-6)
        assert_allclose(cells.mean[code] - 1e8, expected["mean"], atol=1e3 * 1e8 * EPS)


def test_rows_beyond_one_block(rng):
    n = BLOCK_ROWS + 77
    cell, g = rng.integers(0, 3, n).astype(np.int16), rng.normal(size=n)
    weight = rng.integers(1, 3, n).astype(float)
    centre = regions.means(cell, g, weight, 3)
    for k in range(3):
        assert_allclose(centre[k], np.average(g[cell == k], weights=weight[cell == k]), atol=1e-12)
    assert_array_equal(regions.away(g, centre, cell), g - centre[cell])
    rows = NodeRows(cell, g, weight, True, np.zeros(3))
    codes = rng.integers(0, 2, n).astype(np.uint8)
    sums = rows.table(codes, 2)
    for code in range(2):
        inside = codes == code
        assert_allclose(sums[0, code], np.bincount(cell[inside], weight[inside]), rtol=1e-12)
        assert_allclose(
            sums[2, code], np.bincount(cell[inside], weight[inside] * g[inside] ** 2), rtol=1e-10
        )


def test_the_centre_of_an_empty_cell_is_0():
    assert_array_equal(regions.means(np.array([0, 2]), np.array([3.0, 5.0]), None, 4), [3, 0, 5, 0])


# --- both sides of splits ------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_codes", [2, 7, BLOCK_CODES, BLOCK_CODES + 1, 2 * BLOCK_CODES + 3])
def test_both_sides_of_every_threshold(rng, kind, n_codes):
    """Codes beyond one block, of which many have no rows."""
    lines = kind == "precision"
    rows, g, x = random_rows(rng, kind, lines=lines)
    codes = rng.integers(0, n_codes, len(g)).astype(np.int32)
    seen = []
    for children in regions.threshold_children(codes, n_codes, rows):
        left, right = (rows.moments(children.sides[:, side]) for side in (0, 1))
        for number in range(children.sides.shape[2]):
            split = children.first + number
            seen.append(split)
            if n_codes > 10 and split % 37:
                continue
            for actual, inside in ((left, codes <= split), (right, codes > split)):
                assert_moments(actual, number, direct_moments(rows, g, x, inside), lines=lines)
    assert_array_equal(seen, np.arange(n_codes - 1))


def test_one_code_has_no_threshold(rng):
    rows, g, _ = random_rows(rng)
    (children,) = regions.threshold_children(np.zeros(len(g), dtype=np.uint8), 1, rows)
    assert children.sides.shape[1:3] == (2, 0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("make", [regions.one_against_rest, regions.all_subsets])
def test_both_sides_of_every_subset(rng, kind, make):
    rows, g, x = random_rows(rng, kind, lines=True)
    codes = rng.integers(0, 5, len(g)).astype(np.uint8)
    subsets = make(5)
    (children,) = regions.subset_children(codes, subsets, rows)
    assert children.first == 0
    left, right = (rows.moments(children.sides[:, side]) for side in (0, 1))
    for number, subset in enumerate(subsets):
        inside = subset[codes]
        assert_moments(left, number, direct_moments(rows, g, x, inside), lines=True)
        assert_moments(right, number, direct_moments(rows, g, x, ~inside), lines=True)


@pytest.mark.thorough
@pytest.mark.parametrize("n", range(2, 13))
def test_all_subsets_are_all_and_distinct(n):
    subsets = regions.all_subsets(n)
    assert subsets.shape == (2 ** (n - 1) - 1, n)
    # A partition is a set or its complement: turned so that the first level is inside.
    same_way = np.where(subsets[:, :1], subsets, ~subsets)
    assert len(np.unique(same_way, axis=0)) == len(subsets)
    assert subsets.any(axis=1).all()
    assert not subsets.all(axis=1).any()
    # The fewest levels first, never the larger part.
    sizes = subsets.sum(axis=1)
    assert (np.diff(sizes) >= 0).all()
    assert sizes.max() <= n / 2


def test_each_level_against_the_rest():
    assert_array_equal(regions.one_against_rest(3), np.eye(3, dtype=bool))
    assert_array_equal(regions.one_against_rest(2), [[True, False]])
    assert_array_equal(regions.all_subsets(2), [[True, False]])


@pytest.mark.parametrize("kind", KINDS)
def test_effective_rows(rng, kind):
    rows, g, _ = random_rows(rng, kind)
    codes = np.repeat([0, 1], [len(g) - 1, 1]).astype(np.uint8)
    found = rows.effective_rows(rows.table(codes, 3))
    w = np.ones(len(g)) if rows.weight is None else rows.weight
    first = w[:-1].sum() if rows.counted else w[:-1].sum() ** 2 / np.sum(w[:-1] ** 2)
    # One row of a precision weight is one row; no rows are none.
    last = w[-1] if rows.counted else 1
    assert_allclose(found, [first, last, 0], rtol=1e-12)


# --- the loss ------------------------------------------------------------------------------------

WIDTH = np.array([1.0, 2.0, 3.0])


def by_hand(weights=(4.0, 6.0, 10.0), means=(0.0, 0.0, 1.0), m2=(3.0, 10.0, 18.0)):
    """Variances 1, 2 and 2 with ddof 1."""
    part = np.array(weights)[None]
    return Moments(part, part, part, np.array(means)[None], np.array(m2)[None], np.zeros((1, 3)))


def loss(cells, starts, *, kind="index", ddof=1, linear=None):
    starts = np.array(starts, dtype=bool).reshape(-1, 3)
    linear = None if linear is None else np.array(linear, dtype=bool).reshape(-1, 3)
    return regions.loss(cells, WIDTH, starts, linear, kind=kind, ddof=ddof)


def test_loss_by_hand():
    # Every cell a bin: 1 * 1 + 2 * 2 + 3 * 2.
    assert_allclose(loss(by_hand(), [1, 1, 1]), [11])
    # root of (4 * 1 + 6 * 2 + 10 * 2) / 20
    assert_allclose(loss(by_hand(), [1, 1, 1], kind="output"), [np.sqrt(36 / 20)])
    # The first two joined: 13 / 9 on a width of 3.
    assert_allclose(loss(by_hand(), [1, 0, 1]), [3 * 13 / 9 + 6])
    # Divisor n: 3/4, 10/6, 18/10.
    assert_allclose(loss(by_hand(), [1, 1, 1], ddof=0), [0.75 + 2 * 10 / 6 + 3 * 1.8])
    # All in one: means differ, 10 * 10 / 20 * 1 between them.
    assert_allclose(loss(by_hand(), [1, 0, 0]), [6 * (31 + 5) / 19])


def test_bins_without_a_variance_count_as_the_others():
    cells = by_hand(weights=(1.0, 6.0, 10.0), m2=(0.0, 10.0, 18.0))
    # 2 on the known width of 5, so 2 on all 6.
    assert_allclose(loss(cells, [1, 1, 1]), [12])
    assert_allclose(loss(cells, [1, 1, 1], kind="output"), [np.sqrt(2)])
    empty = by_hand(weights=(0.0, 6.0, 10.0), means=(np.nan, 0.0, 0.0), m2=(0.0, 10.0, 18.0))
    assert_allclose(loss(empty, [1, 1, 1]), [12])
    alone = by_hand(weights=(1.0, 1.0, 0.0), means=(0.0, 0.0, np.nan), m2=(0.0, 0.0, 0.0))
    assert_array_equal(loss(alone, [1, 1, 1]), [np.nan])


def test_loss_of_lines_by_hand():
    """x -1, 0, 1, 2 in a cell with g = x + (1, -1, -1, 1): slope 1, squares 4 on 2 degrees."""
    x = np.array([-1.0, 0.0, 1.0, 2.0])
    g = x + np.array([1.0, -1.0, -1.0, 1.0])
    m2, x_m2 = np.sum((g - g.mean()) ** 2), np.sum((x - x.mean()) ** 2)
    xg = np.sum((x - x.mean()) * (g - g.mean()))
    four = np.array([[4.0, 0.0, 0.0]])
    rest = (np.array([[v, 0, 0]]) for v in (g.mean(), m2, x.mean(), x_m2, xg))
    cells = Moments(four, four, four, *rest)
    slope, intercept = np.polyfit(x, g, 1)
    residual = np.sum((g - slope * x - intercept) ** 2) / 2
    found = loss(cells, [1, 0, 0], linear=[1, 0, 0])
    assert_allclose(found, [6 * residual])
    # The same bin constant.
    assert_allclose(loss(cells, [1, 0, 0], linear=[0, 0, 0]), [6 * m2 / 3])


def test_problems_do_not_see_each_other():
    pair = by_hand().each(lambda part: np.concatenate([part, part]))
    assert_allclose(loss(pair, [[1, 1, 1], [1, 0, 1]]), [11, 3 * 13 / 9 + 6])


# --- permutations --------------------------------------------------------------------------------


def test_rows_are_shuffled_within_blocks(rng):
    block = np.arange(4003) // 4
    order = regions.shuffled(4003, 4, rng)
    assert_array_equal(np.sort(order), np.arange(4003))
    assert_array_equal(block[order], block)
    # A row stays with chance 1/4: 1001 of 4003, sd 39 for pairs that move together.
    assert abs(np.sum(order == np.arange(4003)) - 1001) < 4 * 39


# --- statistics of splits -------------------------------------------------------------------------


def bins_of(rows, g, starts, inside):
    """Of every bin of rows inside: weight, squared weights, mean, unbiased variance."""
    w = np.ones(len(g)) if rows.weight is None else rows.weight
    bins = (np.cumsum(starts) - 1)[rows.cell]
    found = []
    for k in range(int(starts.sum())):
        v, own = g[inside & (bins == k)], w[inside & (bins == k)]
        total, square = own.sum(), own.sum() if rows.frequency else own @ own
        if not total:
            found.append((0.0, 0.0, np.nan, np.nan, 0.0))
            continue
        mean = own @ v / total
        free = total - square / total
        m2 = own @ (v - mean) ** 2
        found.append((total, square, mean, m2 / free if free > 1e-9 else np.nan, m2))
    return np.array(found).T


@pytest.mark.parametrize("with_width", [False, True])
@pytest.mark.parametrize("kind", ["none", "frequency", "precision"])
def test_statistic_of_splits_bin_by_bin(rng, kind, with_width):
    """math [39]: differences of means between both sides, over the errors of these."""
    rows, g, _ = random_rows(rng, kind, n=300)
    starts = np.array([True, False, True, True, False, False])
    width = np.array([1.0, 2.0, 1.0, 3.0, 1.0, 1.0])
    codes = rng.integers(0, 5, 300)
    codes[rows.cell == 2] = 4  # a bin whose rows are all on one side
    few = np.flatnonzero(rows.cell < 2)
    codes[few] = np.maximum(codes[few], 1)
    codes[few[0]] = 0  # and a bin with one row on a side
    binned = rows.in_bins(starts)
    (children,) = regions.threshold_children(codes, 5, binned)
    given = np.add.reduceat(width, np.flatnonzero(starts)) if with_width else None
    found = regions.studentised(binned, children.sides, given, 0.0)
    degrees = regions.studentised_degrees(binned, children.sides, given)
    floored = regions.studentised(binned, children.sides, given, 10.0)
    for split in range(4):
        sides = [bins_of(rows, g, starts, codes <= split), bins_of(rows, g, starts, codes > split)]
        drop = noise = rounded = squares = 0.0
        pooled = [
            m2.sum() / np.sum((w - q / np.where(w > 0, w, 1))[w > 0]) for w, q, _, _, m2 in sides
        ]
        freedom = [np.sum(w[w > 0] ** 2 / q[w > 0] - 1) for w, q, *_ in sides]
        for k, over in enumerate([3.0, 1.0, 5.0]):
            weights = [side[0][k] for side in sides]
            if min(weights) == 0:
                continue
            share = weights[0] * weights[1] / sum(weights)
            share *= over / sum(weights) if with_width else 1
            drop += share * (sides[0][2][k] - sides[1][2][k]) ** 2
            parts, floor = [], 0.0
            for side, shared, free in zip(sides, pooled, freedom, strict=True):
                w, q, _, variance, _ = side[:, k]
                known = np.isfinite(variance)
                parts.append(share * (variance if known else shared) * q / w**2)
                squares += parts[-1] ** 2 / (w**2 / q - 1 if known else free)
                floor += share * 100.0 * q / w**2
            noise += sum(parts)
            rounded += max(sum(parts), floor)
        assert_allclose(found[split], drop / noise, rtol=1e-9)
        assert_allclose(floored[split], drop / rounded, rtol=1e-9)
        assert_allclose(degrees[split], noise**2 / squares, rtol=1e-9)


def test_splits_without_a_difference_or_without_noise():
    rows = NodeRows(np.zeros(8, dtype=int), np.repeat([0.0, 1.0], 4), None, False, np.zeros(1))
    same, other = (
        np.stack([rows.table(codes, 2), rows.table(1 - codes, 2)], axis=1)[:, :, :1]
        for codes in (np.tile([0, 1], 4), np.repeat([0, 1], 4))
    )
    assert regions.studentised(rows, same, None, 0.0) == 0
    assert regions.studentised(rows, other, None, 0.0) == np.inf
    # Rounding to 0.1 in both means: 1 / (2 · 0.01 / 4).
    assert_allclose(regions.studentised(rows, other, None, 0.1), [200.0])
    assert regions.studentised_degrees(rows, other, None) == np.inf


@pytest.mark.parametrize("kind", ["none", "frequency", "precision"])
def test_splits_of_curves_point_by_point(rng, kind):
    """The losses of both sides and the squared differences of their means, along the grid."""
    values = rng.normal(size=(30, 4)) + 5
    weight = {"none": None, "frequency": rng.integers(1, 4, 30).astype(float),
              "precision": rng.uniform(0.5, 2, 30)}[kind]  # fmt: skip
    frequency = kind == "frequency"
    rows = NodeCurves.from_curves(values, weight, frequency=frequency)
    codes = np.arange(30) % 3
    (children,) = regions.threshold_children(codes, 3, rows)
    w = np.ones(30) if weight is None else weight
    assert (rows.counts is None) == (kind != "frequency")
    for split in range(2):
        parts = []
        for inside in (codes <= split, codes > split):
            own, v = w[inside], values[inside]
            mean = np.average(v, axis=0, weights=own)
            square = own.sum() if frequency else own @ own
            loss = np.mean(own @ (v - mean) ** 2) / (own.sum() - square / own.sum())
            parts.append((mean, loss, square / own.sum() ** 2))
        for side, (_, loss, share) in zip(children.sides.swapaxes(0, 1), parts, strict=True):
            assert_allclose(regions.curve_loss(side)[split], loss)
            assert_allclose(rows.effective_rows(side)[split], 1 / share)
        noise = [loss * share for _, loss, share in parts]
        drop = np.mean((parts[0][0] - parts[1][0]) ** 2)
        found = regions.studentised_curves(children.sides)[split]
        assert_allclose(found, drop / sum(noise))
        squares = sum(n**2 / (1 / p[2] - 1) for n, p in zip(noise, parts, strict=True))
        found = regions.degrees_of_curves(children.sides)[split]
        assert_allclose(found, sum(noise) ** 2 / squares)


def test_bound_of_the_largest_statistic():
    degrees = np.array([5.0, 9.0, np.inf])
    expected = sum(2 * stats.t.sf(3.0, degrees))
    assert regions.at_most(9.0, degrees) == pytest.approx(expected)
    assert regions.at_most(0.01, degrees) == 1.0


@pytest.mark.parametrize("weighted", [False, True])
def test_units_are_apart_by_their_leverage(rng, weighted):
    """The mean of a unit is divided by the root of 1 less its share of the bin (math [72])."""
    rows, g, _ = random_rows(rng, "precision" if weighted else "none", n=60)
    starts = np.array([True, False, True, True, False, False])
    unit = np.arange(60) % 7
    unit[rows.cell == 2] = 3  # a bin of one unit
    found = rows.in_bins(starts).apart(unit)
    w = np.ones(60) if rows.weight is None else rows.weight
    bins = (np.cumsum(starts) - 1)[rows.cell]
    for k in range(3):
        here = bins == k
        mean = np.average(g[here], weights=w[here])
        assert_allclose(found.centre[k], mean)
        for u in np.unique(unit[here]):
            own = here & (unit == u)
            share = w[own].sum() / w[here].sum()
            level = np.average(g[own] - mean, weights=w[own])
            stretch = 1 / np.sqrt(1 - share) if share < 1 - 1e-9 else 1.0
            expected = g[own] - mean - level + level * stretch
            assert_allclose(found.effect[own], expected, atol=1e-12)
    sign = np.where(unit % 2, 1.0, -1.0)
    assert_array_equal(found.flipped(sign).effect, sign * found.effect)


def test_curves_of_units_are_apart_by_their_leverage(rng):
    values, unit = rng.normal(size=(6, 3)), np.array([0, 0, 1, 1, 2, 2])
    rows = NodeCurves.from_curves(values, None, frequency=False)
    found = rows.apart(unit)
    away = values - values.mean(axis=0)
    level = np.repeat(away.reshape(3, 2, 3).mean(axis=1), 2, axis=0)
    expected = away + (1 / np.sqrt(2 / 3) - 1) * level
    assert_allclose(found.columns[:, 3:], expected)
    assert_allclose(found.columns[:, 2], np.sum(expected**2, axis=1))
    assert_array_equal(found.columns[:, :2], 1)
    sign = np.array([1.0, 1, -1, -1, 1, 1])
    turned = found.flipped(sign)
    assert_allclose(turned.columns[:, 3:], sign[:, None] * expected)
    assert_array_equal(turned.columns[:, :3], found.columns[:, :3])


@pytest.mark.parametrize("unit", [1e-4, 1e4])
def test_statistics_of_splits_do_not_depend_on_the_unit_of_weights(rng, unit):
    """Bins of one row, too, which take the variance of all bins of their side."""
    cell = np.repeat([0, 1, 2, 3, 0, 1, 2, 3], [5, 1, 4, 0, 1, 6, 3, 2])
    codes = np.repeat([0, 1], [10, 12])
    effect, weight = rng.normal(size=22), rng.uniform(0.5, 2, 22)

    def numbers(weight, width):
        rows = NodeRows(cell, effect, weight, False, np.zeros(4))
        (children,) = regions.threshold_children(codes, 2, rows)
        return (
            regions.studentised(rows, children.sides, width, 0.1),
            regions.studentised_degrees(rows, children.sides, width),
        )

    for width in (None, np.array([1.0, 2.0, 1.0, 3.0])):
        found, degrees = numbers(weight, width)
        assert found > 0
        assert np.isfinite(degrees).all()
        assert_allclose(numbers(weight * unit, width), (found, degrees), rtol=1e-9)
