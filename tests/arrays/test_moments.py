"""Moments per cell against pandas and NumPy, and how they add up."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rhale_stats.arrays import moments
from rhale_stats.arrays.binning import regular_axis, variable_axis
from rhale_stats.arrays.moments import (
    LINE_POWERS,
    Moments,
    cell_index,
    cell_moments,
    comoments,
    edge_finder,
    merge,
    merge_comoments,
    n_effective,
    residual_moments,
    row_cells,
    union,
    variance,
)
from tests.helpers import frozen

EPS = np.finfo(float).eps
EDGES = np.array([0.0, 0.1, 0.15, 0.4, 0.8, 1.0])


def rows(rng, n=3000):
    """Rows on [0, 1] with both ends and an interior edge taken; read-only."""
    x = np.concatenate([rng.uniform(size=n - 4), [0.0, 1.0, 1.0, 0.4]])
    g = rng.standard_gamma(2.0, size=n) - 1
    return frozen(x), frozen(g)


def cell_of(x, edges=EDGES):
    """Left-closed cells, the last closed on both sides (math [4]), by searching, not by filling."""
    return np.minimum(np.searchsorted(edges, x, side="right") - 1, len(edges) - 2)


def assert_same(actual: Moments, expected: Moments, scale):
    """Counts exactly; the rest to n eps, the bound of a sum of n terms, times its terms' size."""
    n = float(expected.n_obs.sum())
    assert_array_equal(actual.n_obs, expected.n_obs)
    assert_allclose(actual.weight, expected.weight, rtol=n * EPS)
    assert_allclose(actual.weight_sq, expected.weight_sq, rtol=n * EPS)
    assert_allclose(actual.mean, expected.mean, rtol=0, atol=n * EPS * scale)
    assert_allclose(actual.x_mean, expected.x_mean, rtol=n * EPS)
    assert_allclose(actual.m2, expected.m2, rtol=n * EPS, atol=n * EPS * scale**2)


def test_toy_by_hand():
    x, g = frozen([0.0, 0.5, 1.0, 2.0]), frozen([1.0, 3.0, 5.0, 9.0])
    cells = cell_moments(regular_axis(0, 2, 2), x, g, None, frequency=False)
    # [0, 1) holds 1 and 3; [1, 2] holds 5 and, closed on the right, 9.
    assert_array_equal(cells.n_obs, [2, 2])
    assert_allclose(cells.mean, [2, 7], rtol=EPS)
    assert_allclose(cells.m2, [2, 8], rtol=EPS)
    assert_allclose(cells.x_mean, [0.25, 1.5], rtol=2 * EPS)
    assert_allclose(variance(cells, 1), [2, 8], rtol=EPS)
    assert_allclose(variance(cells, 0), [1, 4], rtol=EPS)


def test_agrees_with_pandas(rng):
    x, g = rows(rng)
    cells = cell_moments(variable_axis(EDGES), x, g, None, frequency=False)
    table = pd.DataFrame({"x": x, "g": g}).groupby(cell_of(x))
    assert_array_equal(cells.n_obs, table.size())
    assert_allclose(cells.mean, table["g"].mean(), rtol=0, atol=len(x) * EPS * g.max())
    assert_allclose(cells.x_mean, table["x"].mean(), rtol=len(x) * EPS)
    for ddof in (0, 1):
        assert_allclose(variance(cells, ddof), table["g"].var(ddof=ddof), rtol=len(x) * EPS)


def test_regular_cells_agree_with_pandas(rng):
    x, g = rng.uniform(-3, 5, 2000), rng.normal(size=2000)
    low, high = x.min(), x.max()
    cells = cell_moments(regular_axis(low, high, 13), x, g, None, frequency=False)
    # No random row lies within rounding of an edge.
    cell = np.minimum(np.floor((x - low) / (high - low) * 13), 12)
    table = pd.Series(g).groupby(cell)
    assert_array_equal(cells.n_obs, table.size())
    assert_allclose(cells.mean, table.mean(), rtol=0, atol=2000 * EPS * 4)


def weightings(rng, n):
    return {
        "none": (None, False),
        "frequency": (rng.integers(1, 5, n).astype(float), True),
        "precision": (rng.uniform(0.1, 2, n), False),
    }


KINDS = pytest.mark.parametrize("kind", ["none", "frequency", "precision"])


@KINDS
def test_offset_of_1e8_keeps_the_variance(rng, kind):
    x, noise = rows(rng)
    g = frozen(1e8 + noise)
    weight, frequency = weightings(rng, len(x))[kind]
    axis = variable_axis(EDGES)
    cells = cell_moments(axis, x, g, weight, frequency=frequency)
    # g - 1e8 is exact (Sterbenz): the same numbers without the offset.
    expected = variance(cell_moments(axis, x, g - 1e8, weight, frequency=frequency), 1)
    # Welford's relative error is at most n kappa eps, kappa = mean / sd (Chan, Golub and LeVeque
    # 1983); the textbook sum of squares loses kappa^2 eps, all digits.
    kappa = 1e8 / np.sqrt(expected)
    assert (np.abs(variance(cells, 1) / expected - 1) <= cells.n_obs * kappa * EPS).all()


@KINDS
def test_equal_effects_have_no_spread(rng, kind):
    """A weighted update whose first mean is 0 leaves eps g^2 behind, of either sign."""
    for _ in range(200):
        n = rng.integers(1, 20)
        x, g = rng.uniform(size=n), np.full(n, np.round(rng.uniform(0, 10), 3))
        weight, frequency = weightings(rng, n)[kind]
        cells = cell_moments(regular_axis(0, 1, 3), x, g, weight, frequency=frequency)
        assert (cells.m2 >= 0).all()
        # The square of a rounding error, not its product with the effect itself.
        assert (cells.m2 <= cells.weight * (n * EPS * g[0]) ** 2).all()


def test_offset_of_1e9_in_x_keeps_its_mean(rng):
    x, g = rows(rng)
    stamps = frozen(1.7e9 + 100 * x)
    axis = regular_axis(stamps.min(), stamps.max(), 5)
    cells = cell_moments(axis, stamps, g, None, frequency=False)
    cell = np.minimum(np.floor((stamps - stamps.min()) / (np.ptp(stamps) / 5)), 4)
    expected = pd.Series(stamps - 1.7e9).groupby(cell).mean()
    # The mean of a time stamp is known to a few units in its own last place.
    assert_allclose(cells.x_mean - 1.7e9, expected, rtol=0, atol=4 * np.spacing(1.7e9))


@pytest.mark.parametrize("axis", [variable_axis(EDGES), regular_axis(0.0, 1.0, 7)])
def test_frequency_weights_are_repeated_rows(rng, axis):
    x, g = rows(rng, 500)
    counts = frozen(rng.integers(1, 6, len(x)).astype(float))
    weighted = cell_moments(axis, x, g, counts, frequency=True)
    repeat = counts.astype(int)
    repeated = cell_moments(axis, np.repeat(x, repeat), np.repeat(g, repeat), None, frequency=False)
    assert_array_equal(weighted.weight, repeated.weight)
    assert_array_equal(weighted.weight_sq, repeated.weight_sq)
    assert_array_equal(n_effective(weighted), n_effective(repeated))
    assert_same(weighted, repeated, np.abs(g).max())


def test_precision_weights_agree_with_numpy(rng):
    x, g = rows(rng)
    weight = frozen(rng.uniform(0.1, 3, len(x)))
    cells = cell_moments(variable_axis(EDGES), x, g, weight, frequency=False)
    for k in range(len(EDGES) - 1):
        here = cell_of(x) == k
        w = weight[here]
        assert cells.n_obs[k] == here.sum()
        assert_allclose(cells.weight[k], w.sum(), rtol=here.sum() * EPS)
        assert_allclose(n_effective(cells)[k], w.sum() ** 2 / (w**2).sum(), rtol=here.sum() * EPS)
        assert_allclose(cells.mean[k], np.average(g[here], weights=w), rtol=here.sum() * EPS)
        assert_allclose(cells.x_mean[k], np.average(x[here], weights=w), rtol=here.sum() * EPS)
        for ddof in (0, 1):
            # numpy.cov divides by sum w - ddof sum w^2 / sum w, which is math [6].
            expected = np.cov(g[here], aweights=w, ddof=ddof)
            assert_allclose(variance(cells, ddof)[k], expected, rtol=here.sum() * EPS)


@pytest.mark.parametrize("frequency", [True, False])
def test_weights_of_one_change_nothing(rng, frequency):
    x, g = rows(rng, 500)
    axis = variable_axis(EDGES)
    plain = cell_moments(axis, x, g, None, frequency=False)
    ones = cell_moments(axis, x, g, np.ones(len(x)), frequency=frequency)
    assert_same(ones, plain, np.abs(g).max())


def test_empty_cells_and_cells_of_one_row():
    cells = cell_moments(
        variable_axis(np.arange(4.0)), np.array([0.5, 2.2, 2.8]), np.array([7.0, 1, 3]), None,
        frequency=False,
    )  # fmt: skip
    assert_array_equal(cells.n_obs, [1, 0, 2])
    assert_array_equal(cells.mean, [7, np.nan, 2])
    assert_array_equal(cells.m2, [0, 0, 2])
    assert_array_equal(n_effective(cells), [1, 0, 2])
    assert_array_equal(variance(cells, 1), [np.nan, np.nan, 2])
    assert_array_equal(variance(cells, 0), [0, np.nan, 1])


@KINDS
def test_merged_cells_equal_coarse_ones(rng, kind):
    x, g = rows(rng)
    weight, frequency = weightings(rng, len(x))[kind]
    fine = np.unique(np.concatenate([EDGES, np.linspace(0, 1, 41)]))
    cells = cell_moments(variable_axis(fine), x, g, weight, frequency=frequency)
    direct = cell_moments(variable_axis(EDGES), x, g, weight, frequency=frequency)
    merged = merge(cells, np.searchsorted(fine, EDGES[:-1]))
    assert_same(merged, direct, np.abs(g).max())


def test_merging_is_associative(rng):
    x, g = rows(rng)
    weight = rng.uniform(0.1, 2, len(x))
    # 300 cells: some are empty, and so are some unions of two.
    cells = cell_moments(regular_axis(0, 1, 300), x[::10], g[::10], weight[::10], frequency=False)
    assert (cells.n_obs == 0).any()
    for _ in range(20):
        inner = np.union1d([0], rng.choice(300, rng.integers(1, 200), replace=False))
        outer = np.union1d([0], rng.choice(len(inner), rng.integers(1, len(inner) + 1)))
        assert_same(merge(merge(cells, inner), outer), merge(cells, inner[outer]), np.abs(g).max())


def test_merging_chunks_of_rows_equals_all_rows(rng):
    """Cells side by side or one after another: the update is the same."""
    x, g = rows(rng)
    axis = variable_axis(EDGES)
    parts = [cell_moments(axis, x[at::3], g[at::3], None, frequency=False) for at in range(3)]
    together = Moments(*(np.stack(part, axis=1).ravel() for part in zip(*parts, strict=True)))
    whole = cell_moments(axis, x, g, None, frequency=False)
    assert_same(merge(together, np.arange(0, 15, 3)), whole, np.abs(g).max())


def test_a_union_of_one_occupied_cell_keeps_its_mean(rng):
    n = 300
    count = rng.integers(0, 50, n).astype(float)
    mean = np.where(count > 0, rng.normal(size=n), np.nan)
    cells = Moments(count, count, count, mean, np.where(count > 1, 1.0, 0.0), mean)
    # (w m) / w: two roundings.
    assert_allclose(merge(cells, np.arange(n)).mean, mean, rtol=2 * EPS)


def test_union_is_one_merge(rng):
    x, g = rows(rng)
    cells = cell_moments(regular_axis(0, 1, 50), x[:40], g[:40], None, frequency=False)
    batch = Moments(*(part[None] for part in cells))
    assert_same(union(batch), merge(cells, np.array([0])), np.abs(g).max())


# --- what lines need -----------------------------------------------------------------------------


@KINDS
@pytest.mark.parametrize("offset", [0.0, 1e8])
def test_comoments_by_brute_force(rng, kind, offset, monkeypatch):
    """About the means of cells, and then of their unions, with an offset in x and in g."""
    monkeypatch.setattr(moments, "BLOCK_ROWS", 64)
    x, g = rows(rng)
    x, g = frozen(offset + x), frozen(offset + g)
    weight, frequency = weightings(rng, len(x))[kind]
    axis = variable_axis(offset + EDGES)
    cells = cell_moments(axis, x, g, weight, frequency=frequency)
    found = comoments(axis, cells, x, g, weight)
    starts = np.array([0, 1, 3])
    bins = merge(cells, starts)
    merged = merge_comoments(cells, found, starts, bins)
    cell = np.minimum(cell_index(axis, x), len(EDGES) - 2)
    # A mean is known to a few units in its own last place; without an offset that is nothing.
    known = 8 * np.spacing(offset)
    of_bin = np.searchsorted(starts, np.arange(len(EDGES) - 1), side="right") - 1
    for actual, group, first_order in ((found, cell, 0), (merged, of_bin[cell], 2)):
        for k in range(len(actual.x_m2)):
            here = group == k
            w = np.ones(here.sum()) if weight is None else weight[here]
            # x - 1e8 is exact.
            d, r = x[here] - offset, g[here] - offset
            d, r = d - np.average(d, weights=w), r - np.average(r, weights=w)
            # Means of cells move what is between them at first order, what is inside not.
            reach = first_order * known * w.sum() * max(np.abs(d).max(), np.abs(r).max())
            for value, terms in ((actual.x_m2[k], w * d * d), (actual.xg[k], w * d * r)):
                rounding = 4 * here.sum() * EPS * np.abs(terms).sum()
                atol = rounding + w.sum() * known**2 + reach
                assert_allclose(value, terms.sum(), rtol=0, atol=atol)


def test_comoments_across_cells_without_rows():
    """Rows in the first and the third of four cells; the last bin is empty."""
    x, g = np.array([0.25, 0.75, 2.5]), np.array([1.0, 2.0, 7.0])
    axis = regular_axis(0, 4, 4)
    cells = cell_moments(axis, x, g, None, frequency=False)
    found = comoments(axis, cells, x, g, None)
    assert_allclose(found.x_m2, [0.125, 0, 0, 0], atol=EPS)
    assert_allclose(found.xg, [0.25, 0, 0, 0], atol=EPS)
    starts = np.array([0, 3])
    merged = merge_comoments(cells, found, starts, merge(cells, starts))
    assert_allclose(merged.x_m2, [3 * np.var(x), 0], rtol=8 * EPS)
    assert_allclose(merged.xg, [3 * np.cov(x, g, ddof=0)[0, 1], 0], rtol=8 * EPS)


@KINDS
@pytest.mark.parametrize("axis", ["regular", "variable"])
@pytest.mark.parametrize("lines", [False, True])
def test_residual_moments_by_brute_force(rng, kind, axis, lines, monkeypatch):
    monkeypatch.setattr(moments, "BLOCK_ROWS", 64)  # many blocks
    x, g = rows(rng, 1000)
    weight, frequency = weightings(rng, len(x))[kind]
    if axis == "regular":
        made, edges, starts = regular_axis(0, 1, 20), [0, 0.25, 0.7, 1], np.array([0, 5, 14])
        edges = np.array(edges)
    else:
        made, edges, starts = variable_axis(EDGES), EDGES[[0, 2, 5]], np.array([0, 2])
    bins = merge(cell_moments(made, x, g, weight, frequency=frequency), starts)
    # Any slopes: nothing here takes them to be least squares. One bin of them is constant.
    slope = np.array([1.5, -3.0, 0.0])[-len(starts) :] if lines else None
    found = residual_moments(made, starts, bins, x, g, weight, slope)
    assert (found.line is not None) == lines
    cell = cell_of(x, edges)
    for k in range(len(starts)):
        here = cell == k
        w = np.ones(here.sum()) if weight is None else weight[here]
        b = x[here] - np.average(x[here], weights=w)
        a = g[here] - np.average(g[here], weights=w)
        if slope is not None:
            a = a - slope[k] * b
        expected = [(found.second_moment[k], a**2), (found.fourth_moment[k], a**4)]
        expected += [(found.x_variance[k], b**2), (found.x_covariance[k], a * b)]
        if lines:
            powers = [(3, 0), (4, 0), (2, 1), (3, 1), (1, 2), (2, 2)]
            assert powers == list(LINE_POWERS)
            assert found.line.shape == (len(starts), len(powers))
            expected += [
                (value, b**p * a**q) for value, (p, q) in zip(found.line[k], powers, strict=True)
            ]
        # n eps for the sum, and as often again as there are factors that a mean's error is in.
        for actual, terms in expected:
            size = np.average(np.abs(terms), weights=w)
            assert_allclose(
                actual, np.average(terms, weights=w), rtol=0, atol=8 * here.sum() * EPS * size
            )


def test_lines_of_slope_0_are_means(rng):
    x, g = rows(rng)
    axis, starts = regular_axis(0, 1, 20), np.array([0, 4, 11])
    bins = merge(cell_moments(axis, x, g, None, frequency=False), starts)
    plain = residual_moments(axis, starts, bins, x, g, None)
    flat = residual_moments(axis, starts, bins, x, g, None, np.zeros(3))
    for name in ("fourth_moment", "x_variance", "x_covariance"):
        assert_array_equal(getattr(flat, name), getattr(plain, name))
    # One from Welford's sums, one from a second pass.
    assert_allclose(flat.second_moment, plain.second_moment, rtol=len(x) * EPS)


def test_residual_moments_of_empty_bins_are_unknown():
    x, g = np.array([0.5, 2.5, 3.0]), np.array([1.0, 2.0, 4.0])
    axis, starts = regular_axis(0, 3, 3), np.arange(3)
    bins = cell_moments(axis, x, g, None, frequency=False)
    found = residual_moments(axis, starts, bins, x, g, None)
    # The row at the upper end, x = 3, is in the last bin: residuals -1 and 1.
    assert_allclose(found.fourth_moment, [0, np.nan, 1], atol=8 * EPS)
    assert_allclose(found.x_variance, [0, np.nan, 1 / 16], atol=8 * EPS)
    assert_allclose(found.x_covariance, [0, np.nan, 1 / 4], atol=8 * EPS)
    assert_allclose(found.second_moment, [0, np.nan, 1], atol=8 * EPS)
    # About the line of slope 4 through both rows of the last bin.
    found = residual_moments(axis, starts, bins, x, g, None, np.array([0.0, 0.0, 4.0]))
    assert_allclose(found.second_moment, [0, np.nan, 0], atol=8 * EPS)
    assert np.isnan(found.line[1]).all()
    assert_allclose(found.line[2], [0, 1 / 256, 0, 0, 0, 0], atol=8 * EPS)


AXES = {
    "even": lambda rng: np.linspace(0, 1, 400),
    "one": lambda rng: np.array([0.3]),
    "two": lambda rng: np.array([-2.0, 3.0]),
    "quantiles of a heavy tail": lambda rng: np.quantile(
        rng.standard_cauchy(9999), np.arange(400) / 399
    ),
    "far outliers": lambda rng: np.append(np.linspace(0, 1, 400), [1e9, 1e300]),
    "neighbouring floats": lambda rng: 1e9 + np.spacing(1e9) * np.arange(400.0),
    "least numbers": lambda rng: np.arange(7) * 5e-324,
    "whole range": lambda rng: np.array([-1.7e308, 0.0, 1.0, 1.7e308]),
}


@pytest.mark.parametrize("name", AXES)
def test_edges_are_counted_as_by_a_search(rng, name):
    edges = AXES[name](rng)
    near = np.concatenate([np.nextafter(edges, -np.inf), edges, np.nextafter(edges, np.inf)])
    with np.errstate(over="ignore"):
        inside = edges[0] + (edges[-1] / 2 - edges[0] / 2) * 2 * rng.uniform(size=3000)
        others = rng.normal(size=3000) * 3 ** rng.uniform(-40, 40, 3000)
    x = frozen(np.concatenate([near, inside, others, [-np.inf, np.inf, -1.7e308, 1.7e308]]))
    expected = np.searchsorted(edges, x, side="right")
    assert_array_equal(edge_finder(edges, len(x))(x), expected)
    # In blocks, as passes over rows do; few values are searched for without a table.
    find = edge_finder(edges, len(x))
    assert_array_equal(
        np.concatenate([find(x[at : at + 100]) for at in range(0, len(x), 100)]), expected
    )
    assert_array_equal(edge_finder(edges, 3)(x), expected)


def test_cells_of_rows_are_those_that_boost_histogram_fills(rng, monkeypatch):
    monkeypatch.setattr(moments, "CACHED_ROWS", 64)  # many blocks
    x, _ = rows(rng)
    axis = variable_axis(EDGES)
    assert_array_equal(row_cells(axis, x), axis.index(x))
    assert_array_equal(cell_index(axis, x), axis.index(x))


@pytest.mark.parametrize("kind", [None, "precision", "frequency"])
def test_moments_by_known_cells_are_the_same_to_the_last_bit(rng, kind):
    x, g = rows(rng)
    weight = None if kind is None else frozen(rng.integers(0, 4, len(x)).astype(float))
    axis, frequency = variable_axis(EDGES), kind == "frequency"
    found = cell_moments(axis, x, g, weight, frequency=frequency, of_row=row_cells(axis, x))
    few = cell_moments(axis, x[:900], g[:900], None, frequency=False)  # filled by value
    known = row_cells(axis, x[:900])
    for one, other in zip(
        [*found, *cell_moments(axis, x[:900], g[:900], None, frequency=False, of_row=known)],
        [*cell_moments(axis, x, g, weight, frequency=frequency), *few],
        strict=True,
    ):
        assert_array_equal(one, other)
    products = comoments(axis, found, x, g, weight, row_cells(axis, x))
    for one, other in zip(products, comoments(axis, found, x, g, weight), strict=True):
        assert_array_equal(one, other)


@pytest.mark.parametrize("low", [0.0, 1.7e9])
@pytest.mark.parametrize("kind", ["none", "precision", "frequency"])
def test_moments_of_sorted_rows_are_those_of_rows_in_any_order(rng, kind, low):
    """Of time stamps as well, which are far from 0 for their range."""
    x, g = rows(rng, 500)
    x = low + 1000 * np.sort(x)
    weight = {"none": None, "precision": rng.uniform(0.5, 2, 500),
              "frequency": rng.integers(1, 4, 500).astype(float)}[kind]  # fmt: skip
    axis, frequency = variable_axis(low + 1000 * EDGES), kind == "frequency"
    plain = cell_moments(axis, x, g, weight, frequency=frequency)
    place = moments.stretches(axis, x)
    found = cell_moments(axis, x, g, weight, frequency=frequency, of_row=place)
    # Time stamps of 1.7e9 are known to 2e-7.
    for name, one, other in zip(Moments._fields, found, plain, strict=True):
        assert_allclose(one, other, rtol=1e-11, atol=1e-6 if name == "x_mean" else 0)
    w = np.ones(500) if weight is None else weight
    at = cell_of(x, low + 1000 * EDGES)
    expected = [np.average(x[at == k] - low, weights=w[at == k]) for k in range(5)]
    assert_allclose(found.x_mean - low, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("lines", [False, True])
def test_moments_by_squared_weights_bin_by_bin(rng, lines):
    x, g = rows(rng, 300)
    w = rng.uniform(0.5, 2.0, 300)
    axis, starts = variable_axis(EDGES), np.array([0, 2, 3])
    bins = merge(cell_moments(axis, x, g, w, frequency=False), starts)
    slope = np.array([1.5, 0.0, -2.0]) if lines else None
    sums = moments.square_sums(axis, starts, bins, x, g, w, slope)
    found = moments.squares_of(sums, bins, slope)
    at = np.searchsorted(starts, cell_of(x), side="right") - 1
    for k in range(3):
        own = w[at == k]
        d = x[at == k] - np.average(x[at == k], weights=own)
        r = g[at == k] - np.average(g[at == k], weights=own)
        r = r - (slope[k] * d if lines else 0)
        share = own / own.sum()
        n = 1 / np.sum(share**2)
        used = range(len(moments.SQUARE_POWERS)) if lines else moments.OF_CONSTANT
        for number in used:
            p, q = moments.SQUARE_POWERS[number]
            expected = np.average(d**p * r**q, weights=own**2)
            assert_allclose(found.moments[k, number], expected, rtol=1e-9, atol=1e-13)
        others = np.setdiff1d(np.arange(len(moments.SQUARE_POWERS)), used)
        assert not found.moments[k, others].any()
        # What the mean takes of squares and of cubes of independent errors, row by row.
        square = share**2 @ (1 - 2 * share + share @ share) / (share @ share)
        factor = 1 / square * ((n - 1) / (n - 2) if lines and slope[k] else 1)
        assert_allclose(found.factor[k], factor, rtol=1e-12)
        assert_allclose(found.rows[k], np.sum(own**2) ** 2 / np.sum(own**4), rtol=1e-12)
        cube = share**3 @ ((1 - share) ** 3 + share**3 - np.sum(share**3)) / np.sum(share**3)
        assert_allclose(found.third[k], n**2 * np.sum((share * r) ** 3) / cube, rtol=1e-9)


def test_sums_by_squared_weights_about_other_means():
    rng = np.random.default_rng(0)
    x, g, w = rng.uniform(0, 1, 50), rng.gamma(1, size=50), rng.uniform(0.1, 1, 50)
    axis = variable_axis(np.array([0.0, 0.4, 1.0]))
    bins = moments.cell_moments(axis, x, g, w, frequency=False)
    found = moments.square_sums(axis, np.arange(2), bins, x, g, w)
    made = moments.squares_of(found, bins)
    g_by, x_by = np.array([0.3, -2.0]), np.array([-0.1, 0.7])
    moved = moments.moved_squares(made.moments, made.products, g_by, x_by)
    for k, there in enumerate((x < 0.4, x >= 0.4)):
        own, d, r = w[there], x[there] - bins.x_mean[k] + x_by[k], g[there] - bins.mean[k] + g_by[k]
        powers = ((1, 0), (2, 0), (0, 1), (1, 1), (0, 2), (0, 4), (0, 3))
        expected = [np.sum(own**2 * d**i * r**j) for i, j in powers]
        assert_allclose(moved.by_square[:, k], expected, rtol=1e-10)
        expected = [np.sum(own**3 * r**j) for j in range(4)]
        assert_allclose(moved.by_cube[:, k], expected, rtol=1e-10)
        expected = [
            np.sum(own**i * (g[there] - bins.mean[k]) ** j) for i, j in moments.WEIGHT_POWERS
        ]
        assert_allclose(made.products[k], expected, rtol=1e-10, atol=1e-12)
    # Over chunks of rows they add up.
    parts = [
        moments.square_sums(axis, np.arange(2), bins, x[some], g[some], w[some])
        for some in (slice(9), slice(9, 50))
    ]
    for one, whole in zip(moments.square_sums_of_all(parts), found, strict=True):
        assert_allclose(one, whole, rtol=1e-12, atol=1e-14)


def in_cells(x, g, w, weighted):
    """Moments of cells of some rows."""
    weight = w if weighted else None
    return cell_moments(variable_axis(EDGES), x, g, weight, frequency=False)


@pytest.mark.parametrize("weighted", [False, True])
def test_sums_of_all_chunks_are_those_of_all_rows(rng, weighted):
    """Chunks of different means; the second has no rows in two cells."""
    chunks = []
    for n, mean, high in ((50, 0.0, 1.0), (30, 3.0, 0.4), (70, -1.0, 1.0)):
        chunks.append((rng.uniform(0, high, n), rng.gamma(2, size=n) + mean, rng.uniform(1, 2, n)))
    x, g, w = (np.concatenate(part) for part in zip(*chunks, strict=True))
    if not weighted:
        w = np.ones(len(x))
    whole = in_cells(x, g, w, weighted)
    parts = [in_cells(*chunk, weighted) for chunk in chunks]
    everything = moments.of_all_chunks(parts)
    for one, other in zip(everything, whole, strict=True):
        assert_allclose(one, other, rtol=1e-10)

    def central(x, g, w, power, of):
        k = cell_of(x)
        r, d = g - of.mean[k], x - of.x_mean[k]
        return np.bincount(k, w * r ** power[1] * d ** power[0], 5)

    def of_chunks(power):
        plain = [(x, g, w if weighted else np.ones(len(x))) for x, g, w in chunks]
        return [central(*chunk, power, part) for chunk, part in zip(plain, parts, strict=True)]

    cubes = moments.cubes_of_all(parts, of_chunks((0, 3)), everything)
    assert_allclose(cubes, central(x, g, w, (0, 3), whole), rtol=1e-9)
    fourths = moments.fourths_of_all(parts, of_chunks((0, 3)), of_chunks((0, 4)), everything)
    assert_allclose(fourths, central(x, g, w, (0, 4), whole), rtol=1e-9)
    within = [
        moments.Comoments(*both) for both in zip(of_chunks((2, 0)), of_chunks((1, 1)), strict=True)
    ]
    found = moments.comoments_of_all(parts, within, everything)
    assert_allclose(found.x_m2, central(x, g, w, (2, 0), whole), rtol=1e-9)
    assert_allclose(found.xg, central(x, g, w, (1, 1), whole), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("lines", [False, True])
def test_moments_of_residuals_of_chunks_add_up(rng, lines):
    """About the means, or lines, of all rows."""
    x, g = rows(rng, 300)
    w, axis, every = rng.uniform(1, 2, 300), variable_axis(EDGES), np.arange(5)
    bins = cell_moments(axis, x, g, w, frequency=False)
    slope = np.array([1.0, 0.0, -2.0, 0.5, 0.0]) if lines else None
    whole = residual_moments(axis, every, bins, x, g, w, slope)
    parts = [
        residual_moments(axis, every, bins, x[one], g[one], w[one], slope)
        for one in (slice(0, 100), slice(100, 170), slice(170, 300))
    ]
    found = moments.residuals_of_all(parts)
    for one, other in zip(found, whole, strict=True):
        if other is None:
            assert one is None
        else:
            assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def test_effective_rows_of_squares():
    """Squares 1, 4, 16 over their largest: 21^2 / (1 + 16 + 256), in any unit."""
    for unit in (1.0, 1e-200):
        assert moments.rows_of_squares(unit * np.array([1.0, 2.0, 4.0])) == pytest.approx(441 / 273)
    assert moments.rows_of_squares(np.full(7, 3.0)) == pytest.approx(7)


def test_only_unequal_precision_weights_need_squares():
    unequal, equal = np.array([1.0, 2.0]), np.array([2.0, 2.0])
    assert moments.need_squares(unequal, frequency=False)
    assert not moments.need_squares(unequal, frequency=True)
    assert not moments.need_squares(equal, frequency=False)
    assert not moments.need_squares(None, frequency=False)
