"""Means of bins made again from rows that are drawn."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose

from rhale_stats.arrays import profiles as kernel
from tests.helpers import frozen


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("centering", ["mean", "start"])
def test_replicates_of_bins_are_the_bins_of_the_rows_drawn(rng, weighted, centering):
    """Precision weights go with the rows, however often these are drawn."""
    n, n_bins = 60, 4
    values, cell = frozen(rng.normal(size=n)), frozen(np.arange(n) % n_bins)
    base = frozen(rng.uniform(0.5, 2, n)) if weighted else None
    drawn = rng.multinomial(n, np.full(n, 1 / n), size=5).T
    of = kernel.bin_means(values, cell, n_bins, base, frequency=False)
    centre = None if centering == "mean" else np.eye(n_bins)[0]
    found = kernel.bin_replicates(values, cell, of, centre, base, drawn)
    for number, times in enumerate(drawn.T):
        rows = np.repeat(np.arange(n), times)
        weight = np.ones(n) if base is None else base
        total = np.bincount(cell[rows], weight[rows])
        mean = np.bincount(cell[rows], (weight * values)[rows]) / total
        constant = mean[0] if centering == "start" else total / total.sum() @ mean
        assert_allclose(found[0][number], mean - constant, rtol=0, atol=1e-14)
        spread = [
            np.sqrt(np.cov(values[rows][at], aweights=weight[rows][at]))
            for at in (cell[rows] == k for k in range(n_bins))
        ]
        assert_allclose(found[1][number], spread, rtol=1e-12)


@pytest.mark.parametrize("n_grid", [40, 320])
def test_products_of_many_columns_are_added_up_within_bounds(n_grid):
    """Of 10,000 rows and 640 columns they were held for every row: 30 GiB."""
    values = np.random.default_rng(0).normal(5, 1, (2003, n_grid))
    tracemalloc.start()
    found = kernel.scatter(values, None)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    deviation = values - values.mean(axis=0)
    # Rounding of sums of 2,003 products.
    assert_allclose(found.squares, deviation.T @ deviation, rtol=1e-10, atol=1e-9)
    assert peak < 60e6


@pytest.mark.parametrize("kind", ["none", "precision", "frequency"])
def test_means_of_bins_row_by_row(rng, kind):
    """Bins of many rows, of one, and of none; an offset that squares would not survive."""
    cell = frozen(np.array([0] * 9 + [1] + [3] * 5))
    values = frozen(1e8 + rng.normal(size=15))
    weight = {
        "none": None,
        "precision": frozen(rng.uniform(0.5, 2.0, 15)),
        "frequency": frozen(rng.integers(1, 4, 15).astype(float)),
    }[kind]
    found = kernel.bin_means(values, cell, 5, weight, frequency=kind == "frequency")
    w = np.ones(15) if weight is None else weight
    for k in range(5):
        v, own = values[cell == k] - 1e8, w[cell == k]
        total = own.sum()
        n_obs = total if kind == "frequency" else len(own)
        assert_allclose([found.n_obs[k], found.share[k]], [n_obs, total / w.sum()])
        if not len(v):
            assert np.isnan([found.mean[k], found.variance[k]]).all()
            assert found.n_effective[k] == 0
            continue
        mean = own @ v / total
        # Rounding of values of 1e8.
        assert_allclose(found.mean[k] - 1e8, mean, rtol=0, atol=1e-7)
        n = total**2 / (own @ own) if kind == "precision" else total
        assert_allclose(found.n_effective[k], n)
        squares = own @ (v - mean) ** 2
        free = total - own @ own / total if kind == "precision" else total - 1
        assert_allclose(found.variance[k], squares / free if free > 1e-9 else np.nan, rtol=1e-6)
        if kind == "precision":
            # The mean of the squares that rows of variance 1 have.
            expected = own**2 @ (1 - 2 * own / total + own @ own / total**2)
            robust = own**2 @ (v - mean) ** 2 / expected if len(v) > 1 else np.nan
            assert_allclose(found.robust[k], robust, rtol=1e-6)
    assert (found.robust is None) == (kind != "precision")


def test_no_bins_have_no_means():
    found = kernel.bin_means(np.zeros(0), np.zeros(0, int), 0, None, frequency=False)
    assert all(len(one) == 0 for one in found[:5])


def test_scatter_with_weights_and_an_offset(rng):
    values = frozen(1e6 + rng.normal(size=(500, 3)) @ rng.normal(size=(3, 3)))
    weight = frozen(rng.uniform(0.1, 3.0, 500))
    found = kernel.scatter(values, weight)
    assert_allclose(found.total, weight.sum())
    assert_allclose(found.mean - 1e6, weight @ (values - 1e6) / weight.sum(), rtol=0, atol=1e-9)
    own = values - 1e6 - weight @ (values - 1e6) / weight.sum()
    assert_allclose(found.squares, (own * weight[:, None]).T @ own, rtol=1e-6)


def test_means_of_bins_do_not_depend_on_the_unit_of_weights(rng):
    cell, values, weight = np.repeat([0, 1, 2], [4, 1, 3]), rng.normal(size=8), rng.uniform(1, 2, 8)
    once = kernel.bin_means(values, cell, 3, weight, frequency=False)
    for unit in (1e-12, 1e12):
        found = kernel.bin_means(values, cell, 3, unit * weight, frequency=False)
        for one, other in zip(once, found, strict=True):
            assert_allclose(other, one, rtol=1e-12)


@pytest.mark.parametrize("themselves", [False, True])
@pytest.mark.parametrize("centering", ["none", "start", "mean", "integral"])
def test_replicates_of_mean_curves_are_those_of_the_rows_drawn(rng, centering, themselves):
    """Curves of 30 rows at four points of the grid, each row once to three times."""
    grid, x = np.array([0.0, 1.0, 3.0, 4.0]), rng.uniform(0, 4, 30)
    curves, times = 5 + rng.normal(size=(30, 4)), rng.integers(0, 4, (30, 3)).astype(float)
    at = kernel.places(grid, x)
    found = kernel.replicates(curves, grid, at, times, centering, 1.25, themselves=themselves)
    # Linear interpolation: how much of a row belongs to each point.
    hats = np.array([np.interp(x, grid, e) for e in np.eye(4)]).T
    for draw, w in enumerate(times.T):
        share = w @ hats / w.sum()
        of_centre = {
            "start": np.array([1.0, 0, 0, 0]),
            "integral": np.array([1.0, 3, 3, 1]) / 8,  # trapezoids
        }.get(centering, share)
        own = curves - (0 if themselves else (curves @ of_centre)[:, None])
        mean = w @ curves / w.sum()
        whole = mean if centering == "none" else mean - of_centre @ mean
        variance = 1.25 * (w @ (own - w @ own / w.sum()) ** 2) / w.sum()
        expected = (
            whole, np.sqrt(variance), np.sqrt(share @ variance),
            np.sqrt(share @ (whole - share @ whole) ** 2),
        )  # fmt: skip
        for values, one in zip(found, expected, strict=True):
            assert_allclose(values[draw], one, rtol=1e-10, atol=1e-12)


KINDS = pytest.mark.parametrize("kind", ["none", "precision", "frequency"])
GRID = np.array([0.0, 1.0, 3.0, 4.0])


def weights_of(rng, kind, n):
    return {
        "none": None,
        "precision": rng.uniform(0.5, 2.0, n),
        "frequency": rng.integers(1, 4, n).astype(float),
    }[kind]


def test_places_by_hand():
    """At points, between them, beyond both ends, and without a value."""
    x = np.array([-1.0, 0.0, 0.25, 1.0, 2.5, 4.0, 9.0, np.nan])
    at = kernel.places(GRID, x)
    assert at.left.tolist()[:7] == [0, 0, 0, 1, 1, 2, 2]
    assert at.right.tolist()[:7] == [1, 1, 1, 2, 2, 3, 3]
    assert_allclose(at.part, [0, 0, 0.25, 0, 0.75, 1, 1, 0])
    assert at.present.tolist() == [True] * 7 + [False]
    hats = at.hats().toarray()
    expected = np.array([np.interp(x, GRID, e) for e in np.eye(4)]).T
    expected[7] = 0
    assert_allclose(hats, expected)
    some = at.of_rows(slice(2, 5))
    assert_allclose(some.hats().toarray(), expected[2:5])
    weight = np.arange(1.0, 9.0)
    assert_allclose(at.share(None), expected.sum(axis=0) / 7)
    assert_allclose(at.share(weight), weight @ expected / 28)
    curve = np.array([1.0, 3.0, -1.0, 2.0])
    assert_allclose(at.at_rows(curve, None), expected @ curve * 8 / 7)
    assert_allclose(at.at_rows(curve, weight), expected @ curve * 36 / 28)


def test_places_on_one_point_and_at_levels():
    at = kernel.places(np.array([2.0]), np.array([1.0, 2.0, 5.0, np.nan]))
    assert_allclose(at.hats().toarray(), [[1], [1], [1], [0]])
    assert_allclose(at.share(None), [1])
    at = kernel.level_places(np.array([2, 0, 2, 1]), 3)
    assert_allclose(at.hats().toarray(), np.eye(3)[[2, 0, 2, 1]])
    assert_allclose(at.share(np.array([1.0, 2, 4, 1])), [0.25, 0.125, 0.625])


def test_what_centring_subtracts():
    share = np.array([0.1, 0.2, 0.3, 0.4])
    for centering, expected in (
        ("mean", share),
        ("none", [0, 0, 0, 0]),
        ("start", [1, 0, 0, 0]),
        ("integral", [1 / 8, 3 / 8, 3 / 8, 1 / 8]),
    ):
        assert_allclose(kernel.centre_of(centering, GRID, share), expected)
    for centering in ("start", "integral"):
        assert_allclose(kernel.centre_of(centering, np.array([2.0]), np.ones(1)), [1])
    two = kernel.centre_of("integral", np.array([1.0, 5.0]), np.array([0.3, 0.7]))
    assert_allclose(two, [0.5, 0.5])


@KINDS
def test_a_mean_of_rows_with_its_errors(rng, kind):
    n = 25
    values, weight = 3 + rng.normal(size=(n, 3)), weights_of(rng, kind, n)
    w, frequency = np.ones(n) if weight is None else weight, kind == "frequency"
    numpy_weights = {"fweights": w.astype(int)} if frequency else {"aweights": w}
    covariance = np.cov(values.T, **numpy_weights)
    n_effective = w.sum() if frequency else w.sum() ** 2 / (w @ w)
    found = kernel.sample(values, weight, frequency=frequency)
    assert_allclose(found.mean, np.average(values, axis=0, weights=w))
    assert_allclose(found.covariance, covariance)
    assert_allclose(found.n_effective, n_effective)
    mean = kernel.mean_of_rows(values, weight, frequency=frequency)
    assert_allclose(mean.value, found.mean)
    assert_allclose(mean.n_effective, n_effective)
    if kind == "precision":
        # Unbiased where all rows have the same variance, which is the mean over single errors.
        p = w / w.sum()
        own = [p * (one - p @ one) for one in np.eye(n)]
        factor = (p @ p) / np.sum(np.array(own) ** 2)
        moved = p[:, None] * (values - found.mean)
        assert_allclose(mean.covariance, factor * moved.T @ moved)
        assert_allclose(kernel.unrelated(w) * np.sum(np.array(own) ** 2), p @ p)
    else:
        assert_allclose(mean.covariance, covariance / n_effective)
    assert mean.variance == mean.covariance[0, 0]


def test_totals_of_parts_and_of_single_rows():
    w = np.array([1.0, 2.0, 4.0])
    parts = [kernel.Totals.from_weights(one, len(one), frequency=False) for one in (w[:1], w[1:])]
    whole = kernel.Totals.merged(parts)
    assert whole == kernel.Totals.from_weights(w, 3, frequency=False) == (7, 21, 73, False)
    assert_allclose([whole.n_effective, whole.degrees], [7 / 3, 4])
    assert_allclose(whole.unrelated, 1 / (1 - 146 / 147 + 21 / 49))
    counts = kernel.Totals.merged([kernel.Totals.from_weights(None, 2, frequency=False)] * 2)
    assert counts == (4, 4, 4, True)
    assert (counts.n_effective, counts.degrees) == (4, 3)
    times = kernel.Totals.from_weights(w, 3, frequency=True)
    assert (times.n_effective, times.degrees) == (7, 6)
    for frequency in (False, True):
        one = kernel.Totals.from_weights(np.ones(1), 1, frequency=frequency)
        assert np.isnan(one.degrees)
    assert np.isnan(parts[0].unrelated)
    assert np.isnan(kernel.Totals.from_weights(None, 1, frequency=False).degrees)


@KINDS
@pytest.mark.parametrize("centering", ["none", "start", "mean", "integral"])
def test_influences_are_derivatives_of_the_mean_curve(rng, kind, centering):
    """Of the curve and of a value beside it, by the weight of one row."""
    n = 20
    x = np.where(np.arange(n) == 3, np.nan, rng.uniform(-0.5, 4.5, n))
    curves, answers, weight = rng.normal(size=(n, 4)), rng.normal(size=n), weights_of(rng, kind, n)
    w, frequency = np.ones(n) if weight is None else weight, kind == "frequency"
    at = kernel.places(GRID, x)

    def estimate(w):
        """Centred curve and value."""
        mean, share = w @ curves / w.sum(), at.share(w)
        constant = kernel.centre_of(centering, GRID, share) @ mean
        return np.append(mean, w @ answers / w.sum()) - constant

    step, derivative = 1e-5, np.empty((n, 5))
    for i, e in enumerate(np.eye(n)):
        ends = [estimate(w * np.exp(sign * step * e)) for sign in (-1, 1)]
        derivative[i] = (ends[1] - ends[0]) / (2 * step)
    found = kernel.influences(curves, GRID, at, weight, centering)
    share = w / w.sum()
    moved = share[:, None] * (found - share @ found)
    assert_allclose(moved, derivative[:, :4], atol=1e-9)
    # A value beside the curve, less the same constant.
    centre = kernel.centre_of(centering, GRID, at.share(weight))
    constant, mean = curves @ centre, estimate(w)[:4]
    beside = kernel.beside(answers, constant, mean, at, weight, centering, frequency=frequency)
    assert_allclose(beside.value, estimate(w)[4])
    if kind == "precision":
        squares = np.sum(derivative[:, 4] ** 2) * kernel.unrelated(w)
    else:
        n_rows = w.sum()
        squares = np.sum(derivative[:, 4] ** 2 / w) * n_rows / (n_rows - 1)
    assert_allclose(beside.error, np.sqrt(squares), rtol=1e-7)


def test_sizes_of_curves_along_the_grid():
    curves = np.array([[0.0, 1.0, 5.0, 4.0]])
    # Slopes 1, 2, -1; central differences weigh the nearer side more.
    assert_allclose(kernel.along(curves, GRID), [[1, 4 / 3, 0, -1]])
    share, spread = np.array([0.5, 0.25, 0.25, 0.0]), np.array([1.0, 2.0, np.nan, 9.0])
    assert_allclose(kernel.root_mean_square(spread, share), np.sqrt(1.5 / 0.75))
    assert np.isnan(kernel.root_mean_square(np.full(4, np.nan), share))
    curve = np.array([1.0, 3.0, 5.0, np.nan])
    assert_allclose(kernel.importance(curve, share), np.sqrt(11 / 4))


@pytest.mark.parametrize("centering", ["none", "start", "mean", "integral"])
@KINDS
def test_influences_and_errors_of_means_of_bins(rng, centering, kind):
    """Derivatives by the weight of one row; an empty bin; the covariance is that of influences."""
    cell = np.array([0] * 6 + [1] * 9 + [3] * 7)
    n, x = len(cell), np.array([0.0, 1.0, 2.0, 5.0])
    values, weight, there = rng.normal(size=n) + cell, weights_of(rng, kind, n), [0, 1, 3]
    w, frequency = np.ones(n) if weight is None else weight, kind == "frequency"
    of = kernel.bin_means(values, cell, 4, weight, frequency=frequency)

    def estimate(w):
        total = np.bincount(cell, w, 4)[there]
        mean = np.bincount(cell, w * values, 4)[there] / total
        centre = {
            "none": np.zeros(3), "start": np.array([1.0, 0, 0]), "mean": total / total.sum(),
            "integral": np.array([1.0, 5.0, 4.0]) / 10,
        }[centering]  # fmt: skip
        return centre @ mean, mean - centre @ mean

    found = kernel.bin_curve(of, x, centering)
    assert_allclose(found.offset, estimate(w)[0], atol=1e-14)
    step, derivative = 1e-5, np.empty((n, 3))
    for i, e in enumerate(np.eye(n)):
        ends = [estimate(w * np.exp(sign * step * e))[1] for sign in (-1, 1)]
        derivative[i] = (ends[1] - ends[0]) / (2 * step)
    psi = kernel.bin_influences(values, cell, of, x, centering)
    assert_allclose(psi[:, there] * (w / w.sum())[:, None], derivative, atol=1e-9)
    assert_allclose(psi[:, 2], 0)
    assert np.isnan(found.covariance[2]).all()
    assert np.isnan(found.covariance[:, 2]).all()
    # The same with variances of bins: the sum over rows of one bin has its variance over n.
    total = np.bincount(cell, w, 4)[there]
    mean = np.bincount(cell, w * values, 4)[there] / total
    n_rows = total if kind != "precision" else total**2 / np.bincount(cell, w**2, 4)[there]
    variance = (of.robust if kind == "precision" else of.variance)[there]
    error, share = np.diag(variance / n_rows), total / total.sum()
    centre = {
        "none": np.zeros(3), "start": np.array([1.0, 0, 0]), "mean": share,
        "integral": np.array([1.0, 5.0, 4.0]) / 10,
    }[centering]  # fmt: skip
    less = np.eye(3) - centre
    expected = less @ error @ less.T
    if centering == "mean":
        # Shares of bins are random too.
        rows = 1 / np.sum(share**2 / n_rows)
        expected = expected + share @ (mean - share @ mean) ** 2 / rows
    assert_allclose(found.covariance[np.ix_(there, there)], expected, atol=1e-14)


@pytest.mark.thorough
@pytest.mark.parametrize("centering", ["none", "mean", "start", "integral"])
@pytest.mark.parametrize("weighted", [False, True])
def test_replicates_of_bins_some_of_which_are_empty(rng, centering, weighted):
    """Bin 2 has no rows, and bin 0 none in the first replicate."""
    cell = np.repeat([0, 1, 3], [4, 6, 5])
    values, base = rng.normal(size=15) + 3, rng.uniform(0.5, 2, 15) if weighted else None
    drawn = rng.integers(1, 4, (15, 4))
    drawn[:4, 0] = 0
    of = kernel.bin_means(values, cell, 4, base, frequency=False)
    centre = {"none": np.zeros(4), "start": np.eye(4)[0], "integral": np.array([1, 5, 0, 4]) / 10}
    found = kernel.bin_replicates(values, cell, of, centre.get(centering), base, drawn)
    for number, times in enumerate(drawn.T):
        rows = np.repeat(np.arange(15), times)
        w = np.ones(len(rows)) if base is None else base[rows]
        here = [k for k in range(4) if (cell[rows] == k).any()]
        mean, variance, share = np.full((3, 4), np.nan)
        for k in here:
            at = cell[rows] == k
            mean[k] = np.average(values[rows][at], weights=w[at])
            variance[k] = np.cov(values[rows][at], aweights=w[at])
            share[k] = w[at].sum() / w.sum()
        level = share[here] @ mean[here]
        constant = {
            "none": 0.0, "mean": level, "start": mean[0],
            "integral": mean[0] / 10 + mean[1] / 2 + mean[3] * 0.4,
        }[centering]  # fmt: skip
        assert_allclose(found.curve[number], mean - constant, rtol=1e-10, atol=1e-12)
        assert_allclose(found.spread[number], np.sqrt(variance), rtol=1e-10)
        assert_allclose(found.heterogeneity[number], np.sqrt(share[here] @ variance[here]))
        expected = np.sqrt(share[here] @ (mean[here] - level) ** 2)
        assert_allclose(found.importance[number], expected)


def test_two_rows_of_unequal_weight_have_an_error():
    """Weights 1 and 3 are 1.6 effective rows; residuals are -3/4 and 1/4 of the distance."""
    of = kernel.bin_means(
        np.array([2.0, 6.0, 1.0]), np.array([0, 0, 1]), 2, np.array([1.0, 3.0, 2.0]),
        frequency=False,
    )  # fmt: skip
    assert_allclose(of.mean, [5, 1])
    assert_allclose(of.n_effective, [1.6, 1])
    # (1 9 + 9 1) / 10, over the mean of the same squares of errors of variance 1.
    expected = 1.8 / (1 * (9 + 9) / 16 + 9 * (1 + 1) / 16) * 10
    assert_allclose(of.robust, [expected, np.nan])
