"""Influences on H-statistics: by numerical derivatives and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rhale_stats.arrays import h_statistics as kernel
from rhale_stats.arrays import second_order
from tests.arrays.test_second_order import KINDS, drawn, pure, rows_of
from tests.helpers import frozen, in_turn

N = 7


def pdp_squares(prediction, features, pairs, of_pairs, share):
    """Squares of draws, from answers."""
    return kernel.pdp_squares(
        prediction[:, None],
        [answers.along(share) for answers in features],
        [answers.rest(share) for answers in features],
        pairs,
        [answers.along(share) for answers in of_pairs],
        share,
    )


@pytest.fixture
def answers(rng):
    """Of two columns and of both: (version, k), where two rows share a version."""
    version = np.array([0, 1, 2, 0, 3, 4, 5])
    return [
        kernel.Answers(frozen(rng.normal(size=(6, N))), version),
        kernel.Answers(frozen(rng.normal(size=(N, N))), np.arange(N)),
        kernel.Answers(frozen(rng.normal(size=(N, N))), np.arange(N)),
    ]


def test_means_over_rows_and_over_the_others(answers, rng):
    of, share = answers[0], rng.dirichlet(np.ones(N))
    whole = of.values[of.version]
    assert_allclose(of.along(share), whole @ share)
    assert_allclose(of.rest(share), share @ whole)


def numerators(prediction, first, second, both, p):
    """math [60], row by row: numerators and denominators for shares p."""

    def centred(v):
        return v - p @ v

    whole = centred(prediction)
    own = [centred(of.values[of.version] @ p) for of in (first, second)]
    rest = [centred(p @ of.values[of.version]) for of in (first, second)]
    joint = centred(both.values @ p)
    return {
        "total": p @ (whole - own[0] - own[1]) ** 2,
        "overall": np.array([p @ (whole - o - r) ** 2 for o, r in zip(own, rest, strict=True)]),
        "variance": p @ whole**2,
        "pair": p @ (joint - own[0] - own[1]) ** 2,
        "joint": p @ joint**2,
    }


def test_squares_row_by_row(answers, rng):
    first, second, both = answers
    prediction, share = rng.normal(size=N), rng.dirichlet(np.ones(N), size=3).T
    found = pdp_squares(prediction, [first, second], [(0, 1)], [both], share)
    for draw, p in enumerate(share.T):
        expected = numerators(prediction, first, second, both, p)
        assert_allclose(found.total[draw], expected["total"])
        assert_allclose(found.overall[:, draw], expected["overall"])
        assert_allclose(found.variance[draw], expected["variance"])
        assert_allclose(found.pair[0, draw], expected["pair"])
        assert_allclose(found.joint[0, draw], expected["joint"])


def test_influences_are_derivatives_in_the_shares(answers, rng):
    first, second, both = answers
    prediction, p = rng.normal(size=N), rng.dirichlet(np.full(N, 5.0))

    def at(shares):
        parts = numerators(prediction, first, second, both, shares)
        return np.concatenate([np.atleast_1d(value) for value in parts.values()])

    # Weight is moved to a row from all others in proportion.
    eps = 1e-6
    slope = np.array(
        [(at(p + eps * (e - p)) - at(p - eps * (e - p))) / (2 * eps) for e in np.eye(N)]
    ).T
    total, overall, variance = kernel.pdp_influences(prediction, [first, second], p)
    pair, joint = kernel.pdp_pair_influences(both, first, second, p)
    assert_allclose(np.vstack([total, overall, variance, pair, joint]), slope, atol=1e-8)


def test_influences_on_a_ratio_and_on_a_root(rng):
    upper, lower = np.array([2.0, 0.0, 1.0]), np.array([8.0, 1.0, 0.0])
    of_upper, of_lower = rng.normal(size=(2, 3, 4))
    share, root = kernel.ratio_and_root(upper, lower, of_upper, of_lower)
    assert_allclose(share[0], of_upper[0] / 8 - 2 * of_lower[0] / 64)
    assert_allclose(root[0], of_upper[0] / (2 * np.sqrt(2)))
    assert_array_equal(share[1:], 0)
    assert_array_equal(root[1], 0)
    assert_allclose(root[2], of_upper[2] / 2)


def test_contributions_of_rows_to_the_error(rng):
    influence, w = rng.normal(size=(2, 5)), np.array([1.0, 2.0, 1.0, 3.0, 1.0])
    found = kernel.moved_by_rows(influence, np.ones(5), frequency=False)
    assert_allclose(np.sum(found**2, axis=1), np.sum(influence**2, axis=1) / 5 / 4)
    found = kernel.moved_by_rows(influence, w, frequency=True)
    assert_allclose(np.sum(found**2, axis=1), influence**2 @ w / 8 / 7)
    found = kernel.moved_by_rows(influence, w, frequency=False)
    n = 64 / 16
    assert_allclose(np.sum(found**2, axis=1), influence**2 @ w**2 / 64 * n / (n - 1))
    assert np.isnan(kernel.moved_by_rows(influence[:, :1], np.ones(1), frequency=False)).all()
    # Groups of one row are rows, and of two equal rows half as many.
    influence = influence - influence.mean(axis=1, keepdims=True)
    alone = kernel.moved_by_groups(influence, np.ones(5), np.arange(5), frequency=False)
    rows = kernel.moved_by_rows(influence, np.ones(5), frequency=False)
    assert_allclose(np.sum(alone**2, axis=1), np.sum(rows**2, axis=1))
    twice = kernel.moved_by_groups(
        np.repeat(influence, 2, axis=1), np.ones(10), np.repeat(np.arange(5), 2), frequency=False
    )
    assert_allclose(np.sum(twice**2, axis=1), np.sum(rows**2, axis=1))


@pytest.mark.parametrize("fraction", [None, np.array([0.0, 0.25, 1.0])])
def test_interpolation_between_edges(fraction):
    place, values = np.array([0, 2, 1]), np.array([1.0, 3.0, 7.0, 0.0])
    found = kernel.interpolation(4, place, fraction) @ values
    assert_allclose(found, [1, 7, 3] if fraction is None else [1, 7 - 7 / 4, 7])


@pytest.mark.parametrize(("kinds", "n"), in_turn(KINDS, [25, 200]))
def test_derivatives_of_sums_of_surfaces(kinds, n, rng):
    """Of sum_i by_i surface_i, by the weight of every row: by central differences."""
    a, b, place_a, place_b, delta = drawn(rng, kinds, n=n)
    w, by = rng.uniform(0.5, 2, n), rng.normal(size=(n, 2))
    at_a, at_b = (
        kernel.interpolation(axis.n_edges, place, None if axis.levels else rng.uniform(size=n))
        for axis, place in ((a, place_a), (b, place_b))
    )
    rows = rows_of(a, b, place_a, place_b, delta, w)
    influence = second_order.Influence.from_rows(rows, rows.cells())
    pair = kernel.Pair(influence, rows, at_a, at_b)

    def sums(weight):
        surface = pure(a, b, place_a, place_b, delta, weight, fill=influence.fill)
        return np.sum((at_a @ surface) * at_b.toarray(), axis=1) @ by

    h = 1e-5
    numerical = [(sums(w + h * e) - sums(w - h * e)) / (2 * h) for e in np.eye(n)]
    # Central differences: h² and eps / h.
    assert_allclose(pair.moved(by), numerical, atol=1e-7)


@pytest.mark.parametrize("levels", [False, True])
def test_derivatives_of_sums_of_curves(levels, rng):
    n = 40
    axis = second_order.Axis(4, levels=levels)
    place, w = rng.integers(axis.n_places, size=n), rng.uniform(0.5, 2, n)
    change, by = rng.normal(size=(n, len(axis.sides))), rng.normal(size=n)
    at = kernel.interpolation(4, place, None if levels else rng.uniform(size=n))

    def steps(weight):
        total, mass = np.zeros((2, axis.n_bins))
        for number, side in enumerate(axis.sides):
            step = place + side
            inside = (step >= 0) & (step < axis.n_bins)
            np.add.at(total, step[inside], (weight * change[:, number])[inside])
            np.add.at(mass, step[inside], weight[inside])
        return total / mass, mass

    def sums(weight):
        return by @ (at @ np.append(0, np.cumsum(steps(weight)[0])))

    curve = kernel.Curve(axis, place, change, *steps(w), at)
    h = 1e-5
    numerical = [(sums(w + h * e) - sums(w - h * e)) / (2 * h) for e in np.eye(n)]
    assert_allclose(curve.moved(by), numerical, atol=1e-8)


def test_squares_of_several_pairs(answers, rng):
    first, second, both = answers
    prediction, share = rng.normal(size=N), rng.dirichlet(np.ones(N), size=3).T
    one = pdp_squares(prediction, [first, second], [(0, 1)], [both], share)
    found = pdp_squares(prediction, [first, second], [(0, 1), (1, 0)], [both, both], share)
    for part, whole in ((found.pair, one.pair), (found.joint, one.joint)):
        assert part.shape == (2, 3)
        assert_allclose(part, np.repeat(whole, 2, axis=0))
    none = pdp_squares(prediction, [first, second], [], [], share)
    assert none.pair.shape == none.joint.shape == (0, 3)
