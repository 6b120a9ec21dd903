"""Weights of replicates, and estimates from them against rows that are there so many times."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from rhale_stats.arrays import resample
from rhale_stats.arrays.accumulate import Pieces
from tests.arrays.test_accumulate import Rows

SCHEMES = pytest.mark.parametrize("scheme", resample.SCHEMES)


def units(n, group=None, strata=None, size=None):
    every = [np.arange(n)] if strata is None else strata
    return resample.Units(group, every, None if size is None else np.asarray(size, float))


def many(scheme, given, n_draws=4000, seed=0):
    rng = np.random.default_rng(seed)
    return np.array([resample.draw_weights(scheme, given, rng) for _ in range(n_draws)])


@SCHEMES
@pytest.mark.parametrize("size", [None, [1, 2, 5, 1, 3, 8]])
def test_weights_are_one_on_average_with_the_variance_of_the_scheme(scheme, size):
    """A unit that stands for m has that of a mean of m."""
    weight = many(scheme, units(6, size=size))
    m = np.ones(6) if size is None else np.array(size, float)
    variance = {
        "poisson": 1 / m,
        "multinomial": (1 - m / m.sum()) / m,
        # Of a Dirichlet distribution with these parameters, times their sum over each.
        "bayesian": (1 - m / m.sum()) / m * m.sum() / (m.sum() + 1),
    }[scheme]
    assert_allclose(weight.mean(axis=0), 1, atol=4 * np.sqrt(variance.max() / 4000))
    # A sample variance errs by sqrt((kurtosis - 1) / n), and an exponential's kurtosis is 9.
    assert_allclose(weight.var(axis=0), variance, rtol=4 * np.sqrt(8 / 4000))
    if scheme != "poisson":
        assert_allclose(weight @ m, m.sum(), rtol=1e-12)
    if scheme != "bayesian":
        assert_allclose(weight * m, np.round(weight * m), atol=1e-12)
    assert (weight.min() == 0) == (scheme != "bayesian")


def test_bayesian_weights_are_uniform_on_the_simplex():
    share = many("bayesian", units(5))[:, 0] / 5
    assert stats.kstest(share, stats.beta(1, 4).cdf).pvalue > 0.001


@SCHEMES
def test_rows_of_a_group_are_drawn_together(scheme):
    group = np.array([2, 0, 1, 0, 2, 2])
    weight = many(scheme, units(3, group), 50)
    for code in range(3):
        assert (np.ptp(weight[:, group == code], axis=1) == 0).all()
    assert len(np.unique(weight[:, :3], axis=0)) > 1


@SCHEMES
def test_strata_keep_their_counts(scheme):
    strata = [np.array([0, 3, 4]), np.array([1, 2, 5, 6])]
    weight = many(scheme, units(7, strata=strata), 50)
    if scheme != "poisson":
        for members in strata:
            assert_allclose(weight[:, members].sum(axis=1), len(members), rtol=1e-12)
    assert weight.std(axis=0).min() > 0


def prepared(rows, weight=None, *, frequency=False, standard_errors=False):
    return resample.terms(
        rows.pieces,
        rows.bin,
        rows.x,
        rows.g,
        weight,
        frequency=frequency,
        standard_errors=standard_errors,
    )


@pytest.mark.parametrize("n_draws", [1, 7, 8, 21])
def test_sums_of_replicates_by_hand(n_draws, rng):
    rows = Rows(linear=(1, 0, 0, 1, 0))
    w = rng.uniform(0.5, 2, len(rows.x))
    weight = rng.poisson(1, (len(rows.x), n_draws)).astype(float)
    found = resample.replicate_sums(prepared(rows, w), weight)
    d, r = rows.away(), rows.residual()
    products = np.array([w, w**2, w * r, w * r**2, w * d, w * d**2, w * d * r, w * d**3, w * d**4])
    inside = (rows.bin == np.arange(5)[:, None]).astype(float)
    expected = np.einsum("pi,id,ki->dkp", products, weight, inside)
    assert_allclose(found, expected, atol=1e-12 * np.abs(expected).max())


def test_sums_of_a_replicate_do_not_depend_on_its_company(rng):
    """To the last bit: chunks of any size give one result."""
    rows = Rows(n=700)
    weight = rng.poisson(1, (700, 37)).astype(float)
    terms = prepared(rows)
    together = resample.replicate_sums(terms, weight)
    for size in (1, 3, 8, 16, 30):
        chunks = [weight[:, at : at + size] for at in range(0, 37, size)]
        apart = np.concatenate([resample.replicate_sums(terms, chunk) for chunk in chunks])
        assert_array_equal(apart, together)


@pytest.mark.parametrize("linear", [(0, 0, 0, 0, 0), (1, 0, 0, 1, 1)])
@pytest.mark.parametrize("centering", ["start", "mean", "integral"])
def test_equal_weights_give_the_estimate(linear, centering):
    rows = Rows(linear=linear)
    sums = resample.replicate_sums(prepared(rows), np.ones((len(rows.x), 2)))
    found = resample.replicates(rows.pieces, sums, centering)
    for draw in range(2):
        assert_allclose(found.mean[draw], rows.mean, rtol=1e-13)
        assert_allclose(found.slope[draw], rows.slope, rtol=1e-12)
        assert_allclose(found.effect[draw], rows.effect, rtol=1e-12)
        assert_allclose(found.variance[draw], rows.unbiased(), rtol=1e-12)
        assert_allclose(found.share[draw], rows.share, rtol=1e-13)
        assert_allclose(found.x_moments[0][draw], rows.x_variance, rtol=1e-12)
        if any(linear):
            assert_allclose(found.x_moments[1][draw], rows.line[:, 0], atol=1e-14)
            assert_allclose(found.x_moments[2][draw], rows.line[:, 1], atol=1e-14)
        assert_allclose(np.diff(found.curve[draw]), np.diff(rows.curve), rtol=1e-12)
        mean = found.mean_of_curve(rows.edges)[draw]
        if centering == "mean":
            assert abs(mean) < 1e-13
        else:
            assert abs(mean) > 0.1


def test_a_replicate_without_rows_in_a_bin():
    rows = Rows()
    weight = np.ones((len(rows.x), 2))
    weight[rows.bin == 2, 1] = 0
    found = resample.replicates(
        rows.pieces, resample.replicate_sums(prepared(rows), weight), "mean"
    )
    assert_array_equal(np.isnan(found.effect[1]), np.arange(5) == 2)
    assert found.share[1, 2] == 0
    assert np.isnan(found.curve[1]).all()
    assert np.isfinite(found.curve[0]).all()


@pytest.mark.parametrize("linear", [(0, 0, 0, 0, 0), (1, 0, 0, 1, 0)])
def test_sums_of_bins_are_those_of_their_cells(linear, rng):
    rows = Rows(linear=linear)
    w, weight = rng.uniform(0.5, 2, len(rows.x)), rng.poisson(1, (len(rows.x), 9)).astype(float)
    # Two cells a bin, about other means than their own.
    edges = np.interp(np.arange(11) / 2, np.arange(6), rows.edges)
    inside = np.searchsorted(edges[1:-1], rows.x, side="right")
    cells = Pieces(edges, *rng.normal(size=(4, 10)), np.full(10, 0.1))
    cells = cells._replace(slope=np.zeros(10))
    of_cells = resample.terms(
        cells, inside, rows.x, rows.g, w, frequency=False, standard_errors=False, places=True
    )
    found = resample.of_unions(
        resample.replicate_sums(of_cells, weight), cells, rows.pieces, np.arange(10) // 2
    )
    of_bins = resample.terms(
        rows.pieces, rows.bin, rows.x, rows.g, w,
        frequency=False, standard_errors=False, places=True,
    )  # fmt: skip
    expected = resample.replicate_sums(of_bins, weight)
    assert_allclose(found, expected, atol=1e-12 * np.abs(expected).max())


def test_only_counts_are_kept_in_bytes(rng):
    few = rng.poisson(1, (50, 4)).astype(float)
    every = units(50)
    assert resample.in_bytes(few, "poisson", every).dtype == np.uint8
    assert_array_equal(resample.in_bytes(few, "multinomial", every), few)
    for scheme, weight, given in (
        ("bayesian", few, every),
        ("poisson", 256 * few, every),
        ("poisson", few, every._replace(size=np.full(50, 2.0))),
    ):
        assert resample.in_bytes(weight, scheme, given) is weight
