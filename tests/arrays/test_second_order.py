"""Second-order effects on arrays: by hand, by brute force, and influences by differentiation."""

from __future__ import annotations

import numpy as np
import pytest

from rhale_stats.arrays import second_order as kernel
from rhale_stats.arrays.skewness import Skewness
from tests.helpers import in_turn

NUMBERS, LEVELS = {"levels": False}, {"levels": True}
KINDS = [(NUMBERS, NUMBERS), (NUMBERS, LEVELS), (LEVELS, NUMBERS), (LEVELS, LEVELS)]


def drawn(rng, kinds, n=60, n_edges=(4, 5)):
    """Axes, and rows in all of their places."""
    a, b = (kernel.Axis(n_edge, **kind) for n_edge, kind in zip(n_edges, kinds, strict=True))
    place_a, place_b = rng.integers(a.n_places, size=n), rng.integers(b.n_places, size=n)
    delta = rng.normal(size=(n, len(a.sides), len(b.sides)))
    return a, b, place_a, place_b, delta


def rows_of(a, b, place_a, place_b, delta, weight, *, frequency=False):
    places = (place_a, place_b)
    return kernel.PairRows.from_places((a, b), places, delta, weight, frequency=frequency)


def influence_of(*rows, centred=True, fill=None):
    """What rows do to the surface, all steps in a row."""
    rows = rows_of(*rows)
    return kernel.Influence.from_rows(rows, rows.cells(), centred=centred, fill=fill)


def pure(*rows, fill=None):
    """The pure surface."""
    return influence_of(*rows, fill=fill).surface.pure


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
    found = pure(a, b, place_a, place_b, delta, w)
    # Sums of 200 numbers in another order.
    np.testing.assert_allclose(found, slow(a, b, place_a, place_b, delta, w), atol=1e-12)


@pytest.mark.parametrize("kinds", KINDS)
def test_transposed_features_have_the_transposed_surface(kinds, rng):
    a, b, place_a, place_b, delta = drawn(rng, kinds)
    w = np.ones(60)
    found = pure(a, b, place_a, place_b, delta, w)
    other = pure(b, a, place_b, place_a, delta.swapaxes(1, 2), w)
    np.testing.assert_allclose(other, found.T, atol=1e-13)


@pytest.mark.thorough
@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize("n", [25, 80])  # with empty cells, and without
def test_influence_is_the_derivative_by_the_weight_of_a_row(kinds, n, rng):
    a, b, place_a, place_b, delta = drawn(rng, kinds, n=n)
    w = rng.uniform(0.5, 2, n)
    of, rows = (make(a, b, place_a, place_b, delta, w) for make in (influence_of, rows_of))
    cells, cell = of.cells, rows.cell
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
            pure(a, b, place_a, place_b, delta, up, fill=of.fill)
            - pure(a, b, place_a, place_b, delta, down, fill=of.fill)
        ) / (2 * h)
        # Central differences: h^2 and eps / h.
        np.testing.assert_allclose(moved, numerical, atol=1e-8)


@pytest.mark.thorough
@pytest.mark.parametrize(("kinds", "frequency"), in_turn(KINDS, [False, True]))
def test_variance_is_the_sum_of_squared_influences(kinds, frequency, rng):
    a, b, place_a, place_b, delta = drawn(rng, kinds, n=150)
    w = rng.integers(1, 4, 150).astype(float)
    rows = rows_of(a, b, place_a, place_b, delta, w, frequency=frequency)
    cell, cells = rows.cell, rows.cells()
    of = kernel.Influence.from_rows(rows, cells)
    factors = kernel.noise_factors(of, rows)
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
    of, rows = (make(a, b, place_a, place_b, delta, w) for make in (influence_of, rows_of))

    def variance():
        factors = kernel.noise_factors(of, rows)
        return kernel.surface_variance(of, factors)

    whole, n_borrowed = variance()
    monkeypatch.setattr(kernel, "BLOCK", 100)
    np.testing.assert_allclose(variance()[0], whole)
    assert n_borrowed > 0


def test_a_step_without_rows_is_a_mean_over_all():
    a, b = kernel.Axis(4, levels=False), kernel.Axis(3, levels=False)
    place_a, place_b = np.array([0, 0, 2, 2]), np.array([0, 1, 0, 1])
    delta = np.full((4, 1, 1), 2.0)
    found = pure(a, b, place_a, place_b, delta, np.ones(4))
    # All cells are 2, so that the surface is 2 (k - 1.5) (m - 1).
    expected = 2 * np.outer(np.arange(4) - 1.5, np.arange(3) - 1)
    np.testing.assert_allclose(found, expected, atol=1e-14)


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
    of, rows = (make(a, b, place_a, place_b, delta, w) for make in (influence_of, rows_of))
    cells, factors = of.cells, kernel.noise_factors(of, rows)
    variance, _ = kernel.surface_variance(of, factors)
    own, n_rows = cells.spread().ravel() ** 2, cells.n_effective().ravel()
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
        degrees = np.sum(n_rows[there] - 1) if single[number] else n_rows[number] - 1
        part = of.by_means(np.array([number]))[0] ** 2 * noise / n_rows[number]
        by_cells += part
        squares += part**2 / degrees
    all_rows = cells.weight.sum() ** 2 / cells.weight_sq.sum() - 1
    squares += np.maximum(variance - by_cells, 0) ** 2 / all_rows
    assert single.any() == (n == 25)
    np.testing.assert_allclose(kernel.surface_degrees(of, variance), variance**2 / squares)


def of_row(i, of, cell, delta, scale):
    """Influence of a row on the surface, its residuals times the scales of their cells."""
    return sum(
        (delta[i, s, t] - of.cells.mean.flat[cell[i, s, t]])
        * scale[cell[i, s, t]]
        * of.of_cells(np.array([cell[i, s, t]]))[0]
        for s, t in np.ndindex(cell.shape[1:])
        if cell[i, s, t] >= 0
    )


@pytest.mark.parametrize(("centred", "kinds"), in_turn([True, False], KINDS))
def test_covariance_is_that_of_influences(kinds, centred, rng):
    a, b, place_a, place_b, delta = drawn(rng, kinds, n=150)
    w = rng.uniform(0.5, 2, 150)
    of = influence_of(a, b, place_a, place_b, delta, w, centred=centred)
    rows = rows_of(a, b, place_a, place_b, delta, w)
    cell = rows.cell
    n = of.cells.n_effective().ravel()
    factors = kernel.noise_factors(of, rows)
    found = kernel.surface_covariance(of, factors)
    expected = 0.0
    for i in range(150):
        moved = of.of_places(place_a[[i]], place_b[[i]])[0]
        moved = w[i] * (moved + of_row(i, of, cell, delta, np.sqrt(n / (n - 1)))).ravel()
        expected = expected + np.outer(moved, moved)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def by_cell(a, b, place_a, place_b, delta):
    """The cell of every difference, its row, and its value."""
    found = []
    for i in range(len(delta)):
        for s, off_a in enumerate(a.sides):
            for t, off_b in enumerate(b.sides):
                k, m = place_a[i] + off_a, place_b[i] + off_b
                if 0 <= k < a.n_bins and 0 <= m < b.n_bins:
                    found.append((k * b.n_bins + m, i, delta[i, s, t]))
    number, row, value = (np.array(part) for part in zip(*found, strict=True))
    return number, row, value


@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize("frequency", [False, True])
def test_cells_and_their_errors_one_by_one(kinds, frequency, rng):
    """Some cells have one row and some none."""
    a, b, place_a, place_b, delta = drawn(rng, kinds, n=16, n_edges=(4, 6))
    delta = delta + 1e3
    w = rng.integers(1, 4, 16).astype(float) if frequency else rng.uniform(0.5, 2, 16)
    of_surface = rows_of(a, b, place_a, place_b, delta, w, frequency=frequency)
    cells = of_surface.cells()
    number, row, value = by_cell(a, b, place_a, place_b, delta)
    size = a.n_bins * b.n_bins
    moved = np.zeros((16, size))
    for k in range(size):
        rows, d = row[number == k], value[number == k]
        own = w[rows]
        parts = [part.flat[k] for part in cells]
        np.testing.assert_allclose(parts[0], own.sum() if frequency else len(d))
        np.testing.assert_allclose(parts[1], own.sum())
        np.testing.assert_allclose(parts[2], own.sum() if frequency else own @ own)
        assert cells.supported.flat[k] == (len(d) > 0)
        if not len(d):
            assert cells.n_effective().flat[k] == parts[4] == 0
            assert np.isnan(cells.spread().flat[k])
            moved[:, k] = np.nan
            continue
        mean = np.average(d, weights=own)
        np.testing.assert_allclose(parts[3], mean, rtol=1e-13)
        np.testing.assert_allclose(parts[4], own @ (d - mean) ** 2, rtol=1e-8, atol=1e-18)
        n = own.sum() if frequency else own.sum() ** 2 / (own @ own)
        np.testing.assert_allclose(cells.n_effective().flat[k], n)
        divisor = own.sum() - (1 if frequency else own @ own / own.sum())
        if n < 1 + 1e-9:
            assert np.isnan(cells.spread().flat[k])
            moved[:, k] = np.nan
            continue
        spread = np.sqrt(own @ (d - mean) ** 2 / divisor)
        np.testing.assert_allclose(cells.spread().flat[k], spread, rtol=1e-8)
        each = np.sqrt(own) if frequency else own
        np.add.at(moved[:, k], rows, each * (d - mean) * np.sqrt(n / (n - 1)) / own.sum())
    found = kernel.cell_covariance(cells, of_surface)
    np.testing.assert_allclose(found, moved.T @ moved, rtol=1e-7, atol=1e-12)
    if not frequency:
        error = kernel.weighted_error(cells, of_surface)
        expected = np.sqrt(np.sum(moved**2, axis=0)).reshape(error.shape)
        np.testing.assert_allclose(error, expected, rtol=1e-8)
    single = np.bincount(number, minlength=size) == 1
    if not frequency:
        np.testing.assert_array_equal(kernel.singles(cells), single)
        there = cells.supported.ravel() & ~single
        divisor = (cells.weight - cells.weight_sq / np.maximum(cells.weight, 1e-300)).ravel()
        shared, degrees = kernel.pooled(cells)
        assert shared == pytest.approx(cells.m2.ravel()[there].sum() / divisor[there].sum())
        assert degrees == pytest.approx(np.sum(cells.n_effective().ravel()[there] - 1))


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("kinds", KINDS)
def test_replicates_are_estimates_with_the_rows_drawn(kinds, centred, rng):
    a, b, place_a, place_b, delta = drawn(rng, kinds, n=40)
    w, drawn_rows = rng.uniform(0.5, 2, 40), rng.multinomial(40, np.full(40, 1 / 40), 5).T
    of = influence_of(a, b, place_a, place_b, delta, w, centred=centred)
    rows = rows_of(a, b, place_a, place_b, delta, w)
    found = kernel.replicates(of, rows, drawn_rows.astype(float))
    for draw, times in enumerate(drawn_rows.T):
        rows = np.repeat(np.arange(40), times)
        again = influence_of(a, b, place_a[rows], place_b[rows], delta[rows], w[rows])
        cells = again.cells
        mean = np.where(cells.supported, cells.mean, np.nan)
        np.testing.assert_allclose(found.mean[draw], mean, atol=1e-12)
        full = kernel.filled(again.fill, cells.mean)
        expected = (
            again.surface.pure if centred else np.pad(full.cumsum(0).cumsum(1), [(1, 0), (1, 0)])
        )
        np.testing.assert_allclose(found.surface[draw], expected, atol=1e-12)
        assert found.n_filled[draw] == (~cells.supported).sum()


def test_skewness_of_cells_and_of_the_surface(rng):
    """Exponential differences, of skewness 2, by moments of every cell."""
    a, b = kernel.Axis(4, levels=False), kernel.Axis(5, levels=False)
    n = 600
    place_a, place_b = rng.integers(3, size=n), rng.integers(4, size=n)
    delta, w = rng.exponential(size=(n, 1, 1)), rng.uniform(0.5, 2, n)
    of, rows = (make(a, b, place_a, place_b, delta, w) for make in (influence_of, rows_of))
    cell, own = rows.cell, kernel.cell_skewness(of.cells, rows)
    third, variance, n_rows = np.empty((3, 12))
    for k in range(12):
        here = cell.ravel() == k
        d, v = delta.ravel()[here], w[here]
        r = d - np.average(d, weights=v)
        n_rows[k] = v.sum() ** 2 / (v @ v)
        variance[k] = np.cov(d, aweights=v)
        third[k] = np.average(r**3, weights=v)
        third[k] *= n_rows[k] ** 2 / ((n_rows[k] - 1) * (n_rows[k] - 2))
    expected = Skewness.from_cumulants(third, variance, n_rows)
    np.testing.assert_allclose(own.second, expected.second, rtol=1e-10)
    np.testing.assert_allclose(own.third, expected.third, rtol=1e-10)
    assert (own.third > 0).all()
    moved = of.by_means(np.arange(12))
    second = np.einsum("k,kij->ij", own.second, moved**2)
    cubes = np.einsum("k,kij->ij", own.third, moved**3)
    for size in (0.5, 3.0):
        found = kernel.surface_skewness(of, own, size * second)
        np.testing.assert_allclose(found, cubes / (max(size, 1) * second) ** 1.5, atol=1e-12)
    none = own._replace(second=np.zeros(12), third=np.zeros(12))
    assert (kernel.surface_skewness(of, none, 0 * second) == 0).all()
    # Every difference and its mirror image.
    twice = (np.concatenate([each, each]) for each in (place_a, place_b))
    mirrored = rows_of(a, b, *twice, np.concatenate([delta, 2 - delta]), np.concatenate([w, w]))
    assert kernel.cell_skewness(mirrored.cells(), mirrored) is None


def test_corners_of_cells_with_rows(rng):
    supported = rng.random((4, 6)) < 0.3
    expected = np.zeros((5, 7), dtype=bool)
    for k, m in np.argwhere(supported):
        expected[k : k + 2, m : m + 2] = True
    np.testing.assert_array_equal(kernel.edges_of(supported), expected)


def test_curves_at_the_values_of_rows():
    curves = np.array([[0.0, 1.0], [2.0, 5.0], [4.0, 1.0]])
    place, fraction = np.array([0, 1, 1]), np.array([0.5, 0.25, 0.75])
    expected = [[1, 3], [2.5, 4], [3.5, 2]]
    np.testing.assert_allclose(kernel.at_values(curves, place, fraction), expected)
    np.testing.assert_allclose(kernel.at_values(curves, place + 1, None), curves[[1, 2, 2]])
    np.testing.assert_allclose(kernel.at_values(curves[:, 1], place, fraction), [3, 4, 2])


@pytest.mark.parametrize("repeated", [False, True])
def test_the_sign_test_by_hand(repeated):
    """Cells 0 and 1 share row 1; cell 2 has one row, whose square does not change.

    a: 1, 2 over 2^(1/2) in cell 0; 3, -1 in cell 1. Frequency weights of 2 are two rows.
    """
    cell = np.array([[0, -1], [0, 1], [-1, 1], [2, -1]])[:, None, :]
    delta = np.array([[1.0, 9], [2, 3], [9, -1], [7, 9]])[:, None, :]
    times = np.array([1, 2, 1, 1]) if repeated else np.ones(4, int)
    axes = kernel.Axis(4, levels=False), kernel.Axis(2, levels=True)
    signed = kernel.PairRows(*axes, None, None, cell, delta, times.astype(float), repeated)
    found = kernel.sign_test(signed)
    rows = np.repeat(np.arange(4), times)[:-1]
    table = np.array([[1.0, 0], [2, 3], [0, -1], [0, 0]])[rows]
    share = table / np.sqrt(len(rows) - 1)
    mean = np.sum(share**2)
    variance = 2 * (np.sum((share.T @ share) ** 2) - np.sum(np.sum(share**2, axis=1) ** 2))
    degrees = 2 * mean**2 / variance
    np.testing.assert_allclose(found, (np.sum(share.sum(axis=0) ** 2) * degrees / mean, degrees))
    alone = kernel.PairRows(*axes, None, None, cell[:1], delta[:1], np.ones(1), False)
    assert kernel.sign_test(alone) == (0, 0)
