"""How a curve depends on bins and rows: derivatives by differences, closed forms, the jackknife."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rhale_stats.arrays import accumulate as acc
from rhale_stats.arrays import influence
from tests.arrays.row_influences import row_sums
from tests.arrays.test_accumulate import LINES, WEIGHTS, Rows, frozen, integral_of_effect

CENTERINGS = pytest.mark.parametrize("centering", ["start", "mean", "integral"])
Z = np.concatenate([[-1, -0.6, -0.1, 0, 0.7, 1], np.linspace(-0.97, 0.99, 23)])


def rebuilt(rows, mean, slope, z, centering):
    """The centred curve at ``z`` from means and slopes, the rows staying where they are."""
    moved = Rows.__new__(Rows)
    moved.__dict__ = {**rows.__dict__, "mean": mean, "slope": slope}
    curve = integral_of_effect(moved, z)
    if centering == "mean":
        return curve - np.average(integral_of_effect(moved, rows.x), weights=rows.weight)
    if centering == "integral":
        left, middle, right = (
            integral_of_effect(moved, at) for at in (rows.edges[:-1], rows.middle, rows.edges[1:])
        )
        return curve - np.sum(rows.width * (left + 4 * middle + right) / 6) / 2  # Simpson: exact
    return curve


@pytest.mark.thorough
@CENTERINGS
@WEIGHTS
@LINES
def test_loadings_are_derivatives(centering, weight, linear):
    """The curve is linear in its parameters, so that any step gives the derivative.

    Without slopes there are no parameters but the means.
    """
    rows = Rows(weight=weight, linear=linear)
    at = influence.loadings(rows.pieces, Z, centering)
    assert at.level.shape == at.tilt.shape == (len(Z), 5)
    here = rebuilt(rows, rows.mean, rows.slope, Z, centering)
    for k in range(5):
        step = np.eye(5)[k]
        by_mean = rebuilt(rows, rows.mean + step, rows.slope, Z, centering) - here
        by_slope = rebuilt(rows, rows.mean, rows.slope + step, Z, centering) - here
        assert_allclose(at.level[:, k], by_mean, atol=1e-13)
        assert_allclose(at.tilt[:, k], by_slope if rows.slope.any() else 0, atol=1e-13)


@pytest.mark.thorough
@CENTERINGS
@LINES
def test_loadings_times_parameters_are_the_curve(centering, linear):
    rows = Rows(linear=linear)
    at = influence.loadings(rows.pieces, Z, centering)
    curve = rebuilt(rows, rows.mean, rows.slope, Z, centering)
    assert_allclose(at.level @ rows.mean + at.tilt @ rows.slope, curve, atol=1e-13)


def places_of(rows, centering):
    if centering != "mean":
        return None
    return influence.own_places(rows.curve, rows.pieces, rows.x_covariance, rows.line, rows.n)


def influences(rows, z, centering):
    """Of every row on the curve at ``z``, straight from the rows: (row, point), math [26]."""
    steps = rows.moves(rows.gains(z))
    if centering == "mean":
        w = rows.weight / rows.weight.sum()
        # How far, on average over the rows, every bin is crossed.
        crossed = tuple(w @ gain for gain in rows.gains(rows.x))
        at_rows = integral_of_effect(rows, rows.x)
        return steps - (at_rows - w @ at_rows + rows.moves(crossed))[:, None]
    if centering == "integral":
        # Simpson's rule, which is exact for the parabolas between edges.
        at_edges = rows.steps()
        between = 2 / 3 * rows.moves(rows.gains(rows.middle))
        between = between + (at_edges[:, 1:] + at_edges[:, :-1]) / 6
        return steps - (between @ rows.width)[:, None] / 2
    return steps


@CENTERINGS
@WEIGHTS
@LINES
def test_covariance_is_that_of_influences(centering, weight, linear):
    rows = Rows(weight=weight, linear=linear)
    psi = influences(rows, Z, centering)
    w = rows.weight / rows.weight.sum()
    assert_allclose(w @ psi, 0, atol=1e-13)  # an influence function has mean 0
    at, places = influence.loadings(rows.pieces, Z, centering), places_of(rows, centering)
    found = influence.covariance(at, rows.noise(), places)
    weighted = w[:, None] * psi
    assert_allclose(found, weighted.T @ weighted, atol=1e-12 * found.max())
    assert_allclose(found, found.T, atol=1e-15 * found.max())
    variance = influence.variance(at, influence.parts(at, rows.noise()), places)
    assert_allclose(variance, np.diagonal(found), atol=1e-14 * found.max())


@CENTERINGS
@WEIGHTS
@LINES
def test_squares_of_row_sums_are_closed_forms(centering, weight, linear):
    """Every row a group of its own."""
    rows = Rows(weight=weight, linear=linear)
    n = len(rows.x)
    sums = row_sums(rows.pieces, rows.curve, rows.bin, rows.x, rows.g, rows.weight, np.arange(n), n)
    noise = rows.noise()
    assert_allclose(sums.mean.power(2).sum(axis=0), noise.mean, rtol=1e-12)
    assert_allclose(sums.slope.power(2).sum(axis=0), noise.slope, rtol=1e-12)
    both = sums.mean.multiply(sums.slope).sum(axis=0)
    assert_allclose(both, noise.covariance, rtol=1e-9, atol=1e-15)
    # The second moment of squared residuals, less that of their mean.
    m4 = rows.each(lambda here: np.mean(rows.residual()[here] ** 4))
    of_variance = (m4 - rows.variance**2) / rows.n
    assert_allclose(sums.variance.power(2).sum(axis=0), of_variance, rtol=1e-12)
    w = rows.weight / rows.weight.sum()
    average = np.sum((w * (rows.g - w @ rows.g)) ** 2)
    assert np.sum(sums.average**2) == pytest.approx(average, rel=1e-12)
    at = influence.loadings(rows.pieces, Z, centering)
    moved = sums.of_curve(at, population=centering == "mean")
    expected = w[:, None] * influences(rows, Z, centering)
    assert_allclose(moved, expected, atol=1e-13 * np.abs(expected).max() * n)
    variance = influence.variance(at, influence.parts(at, noise), places_of(rows, centering))
    assert_allclose(np.sum(moved**2, axis=0), variance, rtol=1e-10, atol=1e-14)
    part = sums.of_curve(at, population=centering == "mean", rows=slice(7, 12))
    assert_allclose(part, moved[7:12], rtol=1e-14)


@WEIGHTS
def test_row_sums_of_groups_add_up_rows(weight):
    rows = Rows(weight=weight, linear=(1, 0, 0, 1, 1))
    n, group = len(rows.x), np.random.default_rng(1).integers(30, size=len(rows.x))
    parts = (rows.pieces, rows.curve, rows.bin, rows.x, rows.g, rows.weight)
    alone = row_sums(*parts, np.arange(n), n)
    together = row_sums(*parts, group, 30)
    member = (group == np.arange(30)[:, None]).astype(float)
    for name in ("mean", "slope", "variance"):
        expected = member @ getattr(alone, name).toarray()
        assert_allclose(getattr(together, name).toarray(), expected, atol=1e-14)
    assert_allclose(together.places, member @ alone.places, atol=1e-14)
    assert_allclose(together.average, member @ alone.average, atol=1e-14)


def test_row_sums_with_a_bin_without_rows():
    rows = Rows()
    keep = rows.bin != 2
    sums = row_sums(
        rows.pieces._replace(mean=np.where(np.arange(5) == 2, np.nan, rows.mean)),
        rows.curve,
        rows.bin[keep],
        rows.x[keep],
        rows.g[keep],
        None,
        np.arange(keep.sum()),
        int(keep.sum()),
    )
    assert_array_equal(sums.mean.sum(axis=0)[2], 0)
    assert np.isfinite(sums.variance.toarray()).all()


@pytest.mark.parametrize(("centering", "known"), [("start", 3), ("integral", 0), ("mean", 0)])
def test_a_bin_of_unknown_noise_spoils_what_it_reaches(centering, known):
    """Of a zero-start curve only what lies beyond it."""
    rows = Rows()
    noise = rows.line_noise()
    unknown = noise._replace(mean=np.where(np.arange(5) == 2, np.nan, noise.mean))
    at = influence.loadings(rows.pieces, rows.edges, centering)
    places = places_of(rows, centering)
    variance = influence.variance(at, influence.parts(at, unknown), places)
    assert_array_equal(np.isfinite(variance), np.arange(6) < known)
    assert_array_equal(
        variance[:known], influence.variance(at, influence.parts(at, noise), places)[:known]
    )
    covariance = influence.covariance(at, unknown, places)
    assert_array_equal(np.isfinite(covariance), np.isfinite(variance[:, None] + variance))
    assert_allclose(np.diagonal(covariance), variance, rtol=1e-14)


def at_edges_se(rows, noise, centering):
    at = influence.loadings(rows.pieces, rows.edges, centering)
    return np.sqrt(influence.variance(at, influence.parts(at, noise), places_of(rows, centering)))


def curves_without_a_row(rows, left_out, weight):
    """Effects, slopes and curves at the edges from all rows but one, at the same edges.

    Curves begin at 0, have mean 0 over the rows, and mean 0 over the axis.
    """
    keep = np.arange(len(rows.x)) != left_out
    x, g, k, w = rows.x[keep], rows.g[keep], rows.bin[keep], weight[keep]
    total = np.bincount(k, w)
    x_mean, mean = np.bincount(k, w * x) / total, np.bincount(k, w * g) / total
    d = x - x_mean[k]
    slope = np.bincount(k, w * d * g) / np.bincount(k, w * d * d) * rows.linear
    effect = mean + slope * (rows.middle - x_mean)
    curve = np.concatenate([[0], np.cumsum(effect * rows.width)])

    def at(z, k):
        half = (z - rows.edges[k]) / 2
        return curve[k] + 2 * half * (
            effect[k] + slope[k] * (rows.edges[k] + half - rows.middle[k])
        )

    mean_of_curve = np.average(at(x, k), weights=w)
    every = np.arange(5)
    simpson = (curve[:-1] + 4 * at(rows.middle, every) + curve[1:]) / 6
    integral = np.sum(simpson * rows.width) / 2
    return np.concatenate([effect, slope, curve, curve - mean_of_curve, curve - integral])


@pytest.mark.thorough
@WEIGHTS
@pytest.mark.parametrize("linear", [(0, 0, 0, 0, 0), (1, 0, 0, 1, 1)])
def test_standard_errors_by_jackknife(weight, linear):
    """Another route: leave out each row in turn and estimate all anew."""
    rows = Rows(n=2000, weight=weight, linear=linear)
    left_out = np.array([curves_without_a_row(rows, i, rows.weight) for i in range(2000)])
    everything = curves_without_a_row(rows, 2000, rows.weight)
    effect, slope, start, mean, integral = np.split(
        np.sqrt(np.sum((left_out - everything) ** 2, axis=0)), [5, 10, 16, 22]
    )
    noise = rows.line_noise()
    effect_se = np.sqrt(noise.variance_along(np.ones(5), rows.pieces.away()))
    # The two differ at first order in leverages, and these are p / n_k on average, p parameters.
    assert rows.n.min() > 100
    close = {"rtol": (2 if any(linear) else 1) / rows.n.min()}
    assert_allclose(effect_se, effect, **close)
    assert_allclose(np.sqrt(noise.slope), slope, **close)
    assert_allclose(at_edges_se(rows, noise, "start"), start, **close)
    assert_allclose(at_edges_se(rows, noise, "mean"), mean, **close)
    assert_allclose(at_edges_se(rows, noise, "integral"), integral, **close)


@pytest.mark.parametrize("bend", [0.0, -1.5])
def test_error_of_a_known_curve_is_that_of_its_mean(bend):
    """g = 2 + bend z in every row: only the mean of the curve over the rows is uncertain."""
    rows = Rows()
    z, nothing = rows.edges, np.zeros(5)
    pieces = rows.pieces._replace(mean=2 + bend * rows.x_mean, slope=np.full(5, bend))
    line = rows.line.copy()
    line[:, 2:] = 0
    places = influence.own_places(2 * z + bend * z**2 / 2, pieces, nothing, line, rows.n)
    at = influence.loadings(pieces, z, "mean")
    variance = influence.variance(
        at, influence.parts(at, acc.Noise(nothing, nothing, nothing)), places
    )
    known = 2 * rows.x + bend * rows.x**2 / 2
    assert_allclose(np.sqrt(variance), known.std() / np.sqrt(len(known)), rtol=1e-12)


def test_rounding_leaves_no_variance_below_zero():
    at = influence.Loadings(np.ones((1, 1)), np.zeros((1, 1)))
    noise = acc.Noise(frozen(1), frozen(0), frozen(0))
    places = influence.OwnPlaces(1.0, frozen(1 + 1e-15), frozen(0))
    assert_array_equal(influence.variance(at, influence.parts(at, noise), places), 0)


@pytest.mark.parametrize("linear", [(0, 0, 0, 0, 0), (1, 0, 0, 1, 1)])
def test_places_under_precision_weights_row_by_row(rng, linear):
    """From moments by squared weights, about means and lines by the weights."""
    rows = Rows(linear=linear)
    k, x, g, w = rows.bin, rows.x, rows.g, rng.uniform(0.5, 2, len(rows.x))
    total, square = np.bincount(k, w), np.bincount(k, w**2)

    def mean_of(values, weight=w):
        return np.bincount(k, weight * values) / np.bincount(k, weight)

    mean, x_mean = mean_of(g), mean_of(x)
    d = x - x_mean[k]
    var = mean_of(d**2)
    slope = np.where(rows.linear, mean_of(d * g) / var, 0.0)
    r = g - mean[k] - slope[k] * d
    pieces = acc.Pieces(rows.edges, mean, slope, x_mean, var, total / w.sum())
    middle = (rows.edges[1:] + rows.edges[:-1]) / 2
    curve = acc.accumulate(mean + slope * (middle - x_mean), rows.width)
    powers = ((1, 0), (2, 0), (0, 1), (1, 1), (3, 0), (4, 0), (2, 1), (3, 1), (1, 2), (2, 2))
    squares = np.array([mean_of(d**a * r**b, w**2) for a, b in powers]).T
    found = influence.own_places(
        curve, pieces, mean_of(d * r), squares[:, 4:], total**2 / square, squares
    )
    level = acc.curve_at(rows.edges, curve, slope, x)
    own = w / w.sum() * (level - np.average(level, weights=w))
    assert_allclose(found.alone, np.sum(own**2), rtol=1e-9)
    of_mean = w / total[k] * r
    assert_allclose(found.with_mean, np.bincount(k, own * of_mean), rtol=1e-7, atol=1e-14)
    of_slope = np.where(rows.linear[k], of_mean * d / var[k], 0.0)
    assert_allclose(found.with_slope, np.bincount(k, own * of_slope), rtol=1e-7, atol=1e-13)


def test_groups_that_have_rows_in_bins(rng):
    rows, n = Rows(), 400
    group = rng.integers(0, 7, n)
    sums = row_sums(rows.pieces, rows.curve, rows.bin, rows.x, rows.g, None, group, 7)
    expected = [len(np.unique(group[rows.bin == k])) for k in range(5)]
    assert_array_equal(sums.n_groups(), expected)
