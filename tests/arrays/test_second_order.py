"""Second-order effects on arrays: by hand, by brute force, and influences by differentiation."""

from __future__ import annotations

import numpy as np
import pytest

from rhale_stats.arrays import second_order as kernel

NUMBERS, LEVELS = {"levels": False}, {"levels": True}
KINDS = [(NUMBERS, NUMBERS), (NUMBERS, LEVELS), (LEVELS, NUMBERS), (LEVELS, LEVELS)]


def drawn(rng, kinds, n=60, n_edges=(4, 5)):
    """Axes, and rows in all of their places."""
    a, b = (kernel.Axis(n_edge, **kind) for n_edge, kind in zip(n_edges, kinds, strict=True))
    place_a, place_b = rng.integers(a.n_places, size=n), rng.integers(b.n_places, size=n)
    delta = rng.normal(size=(n, len(a.sides), len(b.sides)))
    return a, b, place_a, place_b, delta


def estimate(a, b, place_a, place_b, delta, weight, fill=None):
    """The pure surface, all steps in a row."""
    cell = kernel.members(a, b, place_a, place_b)
    cells = kernel.cells(a, b, cell, delta, weight, frequency=False)
    fill = kernel.filling(cells.supported) if fill is None else fill
    table = kernel.table(a, b, place_a, place_b, weight)
    return cells, fill, table, kernel.surface(a, b, kernel.filled(fill, cells.mean), table)


def slow(a, b, place_a, place_b, delta, w):
    """math [55], [57] and [58] by loops over rows, every cell having some."""
    sums = np.zeros((2, a.n_bins, b.n_bins))
    steps_a, steps_b = [], []
    for i in range(len(w)):
        for s, off_a in enumerate(a.sides):
            for t, off_b in enumerate(b.sides):
                k, m = place_a[i] + off_a, place_b[i] + off_b
                if 0 <= k < a.n_bins and 0 <= m < b.n_bins:
                    sums[:, k, m] += w[i] * delta[i, s, t], w[i]
    start = np.zeros((a.n_edges, b.n_edges))
    for k in range(1, a.n_edges):
        for m in range(1, b.n_edges):
            start[k, m] = (sums[0] / sums[1])[:k, :m].sum()

    def at(axis, values, place):
        return values[place] if axis.levels else (values[place] + values[place + 1]) / 2

    for axis, other, own, rest, values, steps in (
        (a, b, place_a, place_b, start, steps_a),
        (b, a, place_b, place_a, start.T, steps_b),
    ):
        for k in range(axis.n_bins):
            total = mass = 0.0
            for i in range(len(w)):
                if k in [own[i] + off for off in axis.sides]:
                    total += w[i] * at(other, values[k + 1] - values[k], rest[i])
                    mass += w[i]
            steps.append(total / mass)
    main_a = np.concatenate([[0], np.cumsum(steps_a)])
    main_b = np.concatenate([[0], np.cumsum(steps_b)])
    pure = start - main_a[:, None] - main_b
    rows = [
        at(a, np.array([at(b, line, place_b[i]) for line in pure]), place_a[i])
        for i in range(len(w))
    ]
    return pure - np.average(rows, weights=w)


@pytest.mark.parametrize("kinds", KINDS)
def test_surface_is_that_of_the_definition_by_loops(kinds, rng):
    a, b, place_a, place_b, delta = drawn(rng, kinds, n=200)
    w = rng.uniform(0.5, 2, 200)
    *_, found = estimate(a, b, place_a, place_b, delta, w)
    # Sums of 200 numbers in another order.
    np.testing.assert_allclose(found.pure, slow(a, b, place_a, place_b, delta, w), atol=1e-12)


@pytest.mark.parametrize("kinds", KINDS)
def test_transposed_features_have_the_transposed_surface(kinds, rng):
    a, b, place_a, place_b, delta = drawn(rng, kinds)
    w = np.ones(60)
    *_, found = estimate(a, b, place_a, place_b, delta, w)
    *_, other = estimate(b, a, place_b, place_a, delta.swapaxes(1, 2), w)
    np.testing.assert_allclose(other.pure, found.pure.T, atol=1e-13)


@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize("n", [25, 80])  # with empty cells, and without
def test_influence_is_the_derivative_by_the_weight_of_a_row(kinds, n, rng):
    a, b, place_a, place_b, delta = drawn(rng, kinds, n=n)
    w = rng.uniform(0.5, 2, n)
    cells, fill, table, found = estimate(a, b, place_a, place_b, delta, w)
    of = kernel.Influence(a, b, fill, table, found, cells, centred=True)
    cell = kernel.members(a, b, place_a, place_b)
    for i in range(0, n, 7):
        moved = of.of_places(place_a[[i]], place_b[[i]])[0]
        for s, t in np.ndindex(cell.shape[1:]):
            at = cell[i, s, t]
            if at >= 0:
                moved = (
                    moved + (delta[i, s, t] - cells.mean.flat[at]) * of.of_cells(np.array([at]))[0]
                )
        h = 1e-5
        up, down = w.copy(), w.copy()
        up[i] += h
        down[i] -= h
        numerical = (
            estimate(a, b, place_a, place_b, delta, up, fill)[-1].pure
            - estimate(a, b, place_a, place_b, delta, down, fill)[-1].pure
        ) / (2 * h)
        # Central differences: h^2 and eps / h.
        np.testing.assert_allclose(moved, numerical, atol=1e-8)


@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize("frequency", [False, True])
def test_variance_is_the_sum_of_squared_influences(kinds, frequency, rng):
    a, b, place_a, place_b, delta = drawn(rng, kinds, n=150)
    w = rng.integers(1, 4, 150).astype(float)
    _, fill, table, found = estimate(a, b, place_a, place_b, delta, w)
    cell = kernel.members(a, b, place_a, place_b)
    cells = kernel.cells(a, b, cell, delta, w, frequency=frequency)
    of = kernel.Influence(a, b, fill, table, found, cells, centred=True)
    factors = kernel.noise_factors(of, place_a, place_b, cell, delta, w, frequency=frequency)
    variance, n_borrowed = kernel.surface_variance(of, factors)
    n = cells.n_effective()
    expected = 0.0
    for i in range(150):
        moved = of.of_places(place_a[[i]], place_b[[i]])[0]
        for s, t in np.ndindex(cell.shape[1:]):
            at = cell[i, s, t]
            if at >= 0:
                residual = (delta[i, s, t] - cells.mean.flat[at]) * np.sqrt(
                    n.flat[at] / (n.flat[at] - 1)
                )
                moved = moved + residual * of.of_cells(np.array([at]))[0]
        expected = expected + (w[i] if frequency else w[i] ** 2) * moved**2
    assert n_borrowed == 0
    np.testing.assert_allclose(variance, expected, rtol=1e-10)


def test_an_empty_cell_takes_the_mean_of_the_nearest():
    supported = np.array([[True, False, True], [False, False, False], [False, True, False]])
    fill = kernel.filling(supported)
    mean = np.array([[1.0, 0.0, 3.0], [0.0, 0.0, 0.0], [0.0, 10.0, 0.0]])
    expected = [[1, 2, 3], [1, 10, 3], [10, 10, 10]]
    np.testing.assert_allclose(kernel.filled(fill, mean), expected)


def test_fillings_do_not_hang_on_their_blocks(rng, monkeypatch):
    supported = rng.random((9, 7)) < 0.3
    whole = kernel.filling(supported).toarray()
    monkeypatch.setattr(kernel, "BLOCK", 10)
    np.testing.assert_array_equal(kernel.filling(supported).toarray(), whole)


def test_variances_do_not_hang_on_their_blocks(rng, monkeypatch):
    a, b, place_a, place_b, delta = drawn(rng, (NUMBERS, LEVELS), n=25)
    w = np.ones(25)
    cells, fill, table, found = estimate(a, b, place_a, place_b, delta, w)
    of = kernel.Influence(a, b, fill, table, found, cells, centred=True)
    cell = kernel.members(a, b, place_a, place_b)

    def variance():
        factors = kernel.noise_factors(of, place_a, place_b, cell, delta, w, frequency=False)
        return kernel.surface_variance(of, factors)

    whole, n_borrowed = variance()
    monkeypatch.setattr(kernel, "BLOCK", 100)
    np.testing.assert_allclose(variance()[0], whole)
    assert n_borrowed > 0


def test_a_step_without_rows_is_a_mean_over_all():
    a, b = kernel.Axis(4, levels=False), kernel.Axis(3, levels=False)
    place_a, place_b = np.array([0, 0, 2, 2]), np.array([0, 1, 0, 1])
    delta = np.full((4, 1, 1), 2.0)
    *_, found = estimate(a, b, place_a, place_b, delta, np.ones(4))
    # All cells are 2, so that the surface is 2 (k - 1.5) (m - 1).
    expected = 2 * np.outer(np.arange(4) - 1.5, np.arange(3) - 1)
    np.testing.assert_allclose(found.pure, expected, atol=1e-14)


def test_interpolation_is_bilinear():
    surface = np.array([[0.0, 1.0], [2.0, 5.0]])
    place, half = np.array([0]), np.array([0.5])
    assert kernel.surface_at_values(surface, place, place, half, half) == pytest.approx(2.0)
    assert kernel.surface_at_values(surface, place + 1, place, None, half) == pytest.approx(3.5)
    assert kernel.surface_at_values(surface, place, place + 1, half, None) == pytest.approx(3.0)


@pytest.mark.parametrize("kinds", [(NUMBERS, NUMBERS), (NUMBERS, LEVELS)])
@pytest.mark.parametrize("n", [25, 150])
def test_degrees_of_freedom_cell_by_cell(kinds, n, rng):
    """Satterthwaite's, with n - 1 of each cell; the rest of a variance has those of all rows."""
    a, b, place_a, place_b, delta = drawn(rng, kinds, n=n)
    w = rng.uniform(0.5, 2, n)
    cells, fill, table, found = estimate(a, b, place_a, place_b, delta, w)
    of = kernel.Influence(a, b, fill, table, found, cells, centred=True)
    cell = kernel.members(a, b, place_a, place_b)
    factors = kernel.noise_factors(of, place_a, place_b, cell, delta, w, frequency=False)
    variance, _ = kernel.surface_variance(of, factors)
    own, rows = cells.spread().ravel() ** 2, cells.n_effective().ravel()
    single = cells.supported.ravel() & np.isnan(own)
    there = cells.supported.ravel() & ~single
    shared = cells.m2.ravel()[there].sum()
    shared /= (
        (cells.weight - cells.weight_sq / np.where(cells.weight > 0, cells.weight, 1))
        .ravel()[there]
        .sum()
    )
    by_cells, squares = np.zeros((2, *variance.shape))
    for number in np.flatnonzero(cells.supported.ravel()):
        noise = shared if single[number] else own[number]
        degrees = np.sum(rows[there] - 1) if single[number] else rows[number] - 1
        part = of.by_means(np.array([number]))[0] ** 2 * noise / rows[number]
        by_cells += part
        squares += part**2 / degrees
    all_rows = cells.weight.sum() ** 2 / cells.weight_sq.sum() - 1
    squares += np.maximum(variance - by_cells, 0) ** 2 / all_rows
    assert single.any() == (n == 25)
    np.testing.assert_allclose(kernel.surface_degrees(of, variance), variance**2 / squares)
