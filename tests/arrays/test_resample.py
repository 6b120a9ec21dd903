"""Weights of replicates, and estimates from them against rows that are there so many times."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from rhale_stats.arrays import accumulate, resample
from rhale_stats.arrays.accumulate import Pieces
from tests.arrays.test_accumulate import Rows

SCHEMES = pytest.mark.parametrize("scheme", resample.SCHEMES)


def units(n, group=None, strata=None, size=None):
    every = [np.arange(n)] if strata is None else strata
    return resample.ResampledUnits(group, every, None if size is None else np.asarray(size, float))


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


class Drawn:
    """Rows of a replicate, each as often as it is drawn, and their estimates, bin by bin."""

    def __init__(self, rows, times, base=None):
        at = np.repeat(np.arange(len(rows.x)), times)
        self.x, self.g, self.bin = rows.x[at], rows.g[at], rows.bin[at]
        self.w = np.ones(len(at)) if base is None else base[at]
        self.edges, self.precise = rows.edges, base is not None
        self.total = self.each(lambda k: self.w[k].sum())
        self.share = self.total / self.w.sum()
        self.n = self.each(lambda k: self.w[k].sum() ** 2 / np.sum(self.w[k] ** 2))
        self.mean = self.of_rows(self.g)
        self.x_mean = self.of_rows(self.x)
        self.d = self.x - self.x_mean[self.bin]
        self.slope = np.where(rows.linear, self.of_rows(self.d * self.g), 0.0)
        self.slope /= self.of_rows(self.d**2)
        self.r = self.g - self.mean[self.bin] - self.slope[self.bin] * self.d
        # One or two parameters, of which each takes sum w² / (sum w)² of the weight.
        lost = (1 + rows.linear) / self.n
        self.variance = self.of_rows(self.r**2) / (1 - lost)
        middle = (self.edges[1:] + self.edges[:-1]) / 2
        self.effect = self.mean + self.slope * (middle - self.x_mean)
        self.start = np.append(0, np.cumsum(self.effect * np.diff(self.edges)))

    def each(self, statistic):
        return np.array([statistic(self.bin == k) for k in range(len(self.edges) - 1)])

    def of_rows(self, values):
        return self.each(lambda k: np.average(values[k], weights=self.w[k]))

    def at_rows(self):
        """The zero-start curve at the rows."""
        left = self.edges[self.bin]
        bend = self.slope[self.bin] / 2 * (self.d**2 - (left - self.x_mean[self.bin]) ** 2)
        return self.start[self.bin] + self.mean[self.bin] * (self.x - left) + bend

    def curve(self, centering):
        if centering == "start":
            return self.start
        if centering == "mean":
            return self.start - np.average(self.at_rows(), weights=self.w)
        width, middle = np.diff(self.edges), (self.edges[1:] + self.edges[:-1]) / 2
        begin = self.edges[:-1] - self.x_mean
        # Simpson's rule is exact for parabolas.
        inside = self.start[:-1] + self.mean * width / 2
        inside += self.slope / 2 * ((middle - self.x_mean) ** 2 - begin**2)
        parts = width / 6 * (self.start[:-1] + 4 * inside + self.start[1:])
        return self.start - parts.sum() / width.sum()

    def curve_se(self, centering):
        """math [25] and [26] in constant bins, from the influences of the rows."""
        w, k, width = self.w, self.bin, np.diff(self.edges)
        noise = self.variance / self.n
        if self.precise:
            share = w / self.total[k]
            squares = np.bincount(k, share**2)
            rest = np.bincount(k, share**2 * (1 - 2 * share + squares[k])) / squares
            noise = np.bincount(k, (share * self.r) ** 2) / rest
        level = np.clip(self.edges[:, None] - self.edges[:-1], 0, width)
        if centering == "start":
            return np.sqrt(level**2 @ noise)
        if centering == "integral":
            ends = np.clip(self.edges[-1] - self.edges[1:], 0, None) + width / 2
            level = level - ends * width / width.sum()
            return np.sqrt(level**2 @ noise)
        gained = np.clip(self.x[:, None] - self.edges[:-1], 0, width)
        level = level - np.average(gained, axis=0, weights=w)
        places = self.at_rows() - np.average(self.at_rows(), weights=w)
        part = (w / w.sum()) ** 2 * places
        both = level[:, k] * self.r / self.share[k] @ part
        return np.sqrt(level**2 @ noise + part @ places - 2 * both)


CENTERINGS = pytest.mark.parametrize("centering", ["start", "mean", "integral"])


def draws_of(rows, rng, n_draws=3):
    """Counts of the rows, (row, draw), at least five rows in every bin."""
    times = rng.multinomial(len(rows.x), np.full(len(rows.x), 1 / len(rows.x)), n_draws).T
    assert min(np.bincount(rows.bin, one > 0).min() for one in times.T) >= 5
    return times


@pytest.mark.thorough
@CENTERINGS
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("linear", [(0, 0, 0, 0, 0), (1, 0, 0, 1, 1)])
def test_a_replicate_is_the_estimate_of_its_rows(linear, weighted, centering, rng):
    rows = Rows(linear=linear)
    base = rng.uniform(0.5, 2, len(rows.x)) if weighted else None
    times = draws_of(rows, rng)
    sums = resample.replicate_sums(prepared(rows, base), times)
    found = resample.replicates(rows.pieces, sums, centering)
    for draw, one in enumerate(times.T):
        own = Drawn(rows, one, base)
        assert_allclose(found.mean[draw], own.mean, rtol=1e-12)
        assert_allclose(found.slope[draw], own.slope, rtol=1e-9)
        assert_allclose(found.effect[draw], own.effect, rtol=1e-10)
        assert_allclose(found.variance[draw], own.variance, rtol=1e-10)
        assert_allclose(found.share[draw], own.share, rtol=1e-12)
        assert_allclose(found.n_effective[draw], own.n, rtol=1e-12)
        assert_allclose(found.x_mean[draw], own.x_mean, rtol=1e-12)
        assert_allclose(found.residual[draw], own.of_rows(own.r**2), rtol=1e-10)
        assert_allclose(found.x_moments[0][draw], own.of_rows(own.d**2), rtol=1e-10)
        covariance = np.where(rows.linear, 0.0, own.of_rows(own.d * own.r))
        assert_allclose(found.x_covariance[draw], covariance, atol=1e-12)
        if any(linear):
            assert_allclose(found.x_moments[1][draw], own.of_rows(own.d**3), atol=1e-12)
            assert_allclose(found.x_moments[2][draw], own.of_rows(own.d**4), atol=1e-12)
        assert_allclose(found.curve[draw], own.curve(centering), rtol=1e-10, atol=1e-12)
        mean = np.average(own.at_rows(), weights=own.w) - own.start[0] + own.curve(centering)[0]
        assert_allclose(found.mean_of_curve(rows.edges)[draw], mean, rtol=1e-9, atol=1e-12)
        if not weighted:
            error = np.sqrt(own.g.var(ddof=1) / len(own.g))
            assert_allclose(found.average_effect_se()[draw], error, rtol=1e-9)


@CENTERINGS
@pytest.mark.parametrize("weighted", [False, True])
def test_standard_errors_of_a_replicate_are_those_of_its_rows(weighted, centering, rng):
    rows = Rows()
    base = rng.uniform(0.5, 2, len(rows.x)) if weighted else None
    times = draws_of(rows, rng)
    sums = resample.replicate_sums(prepared(rows, base, standard_errors=True), times)
    found = resample.replicates(rows.pieces, sums, centering)
    for draw, one in enumerate(times.T):
        own = Drawn(rows, one, base)
        assert_allclose(found.fourth_moment[draw], own.of_rows(own.r**4), rtol=1e-9)
        assert_allclose(found.curve_se(rows.edges, centering)[draw], own.curve_se(centering))
        # Of a weighted mean of all rows.
        w, away = own.w, own.g - np.average(own.g, weights=own.w)
        n = 1 / np.sum(own.share**2 / own.n)
        variance = np.sum((w * away) ** 2) / w.sum() ** 2 * n / (n - 1)
        if not weighted:
            assert variance == pytest.approx(own.g.var(ddof=1) / len(own.g))
        assert_allclose(found.average_effect_se()[draw], np.sqrt(variance))
        # Of a spread: that of math [24], by squared weights where there are weights.
        m2, m4 = own.of_rows(own.r**2), own.of_rows(own.r**4)
        expected = accumulate.heterogeneity_se(own.variance, m4, own.n)
        if weighted:
            squared = own.each(lambda k, w=w, r=own.r: np.average(
                (r[k] ** 2 - np.average(r[k] ** 2, weights=w[k])) ** 2, weights=w[k] ** 2
            ))  # fmt: skip
            expected = expected * np.sqrt(squared / (m4 - m2**2))
        assert_allclose(found.heterogeneity_se()[draw], expected, rtol=1e-9)


def test_fine_cells_without_drawn_rows_keep_their_means_and_variances(rng):
    rows = Rows()
    times = draws_of(rows, rng)
    times[rows.bin == 2, 1] = 0
    one = np.flatnonzero(rows.bin == 3)
    times[one, 1] = 0
    times[one[0], 1] = 2  # one row, twice
    keep = np.arange(1.0, 6)
    base = rng.uniform(0.5, 2, len(rows.x))
    for weight in (None, base):
        sums = resample.replicate_sums(prepared(rows, weight, standard_errors=True), times)
        found = resample.replicates(rows.pieces, sums, "start", keep)
        plain = resample.replicates(rows.pieces, sums, "start")
        for draw in (0, 2):
            assert_allclose(found.curve[draw], plain.curve[draw])
            assert_allclose(found.error_variance[draw], plain.error_variance[draw])
        assert found.mean[1, 2] == rows.mean[2]
        assert found.x_mean[1, 2] == rows.x_mean[2]
        assert found.error_variance[1, 2] == 3
        assert found.n_effective[1, 2] == 1
        assert found.x_moments[0][1, 2] == found.x_covariance[1, 2] == 0
        assert_allclose(found.mean[1, 3], rows.g[one[0]])
        assert np.isfinite(found.curve[1]).all()
        assert np.isnan(plain.curve[1]).all()
        assert np.isnan(plain.variance[1, 2])


def test_shortfall_of_the_variance_of_replicates():
    """Bayesian by simulation and in closed form; multinomial lacks H / N; Poisson nothing."""
    n, degrees = np.array([2.0, 5.0, 40.0]), np.array([1.0, 4.0, 39.0])
    found = resample.shortfall("bayesian", n, degrees, 47.0, 1)
    assert_allclose(found, [1 / 3, 4 / 6, 39 / 41])
    assert_allclose(resample.shortfall("multinomial", n, degrees, 50.0, 3), np.full(3, 0.94))
    assert_allclose(resample.shortfall("poisson", n, degrees, 50.0, 3), np.ones(3))
    # Shares of five rows are uniform on the simplex.
    rng, values = np.random.default_rng(0), np.array([1.0, 2.0, 4.0, 8.0, 0.0])
    shares = rng.dirichlet(np.ones(5), 40_000)
    ratio = np.var(shares @ values) / (np.var(values, ddof=1) / 5)
    # Error of a variance of 40,000 draws: 0.7 %.
    assert_allclose(found[1], ratio, rtol=0.03)


@pytest.mark.parametrize("kind", ["none", "precision", "frequency"])
@pytest.mark.parametrize("linear", [(0, 0, 0, 0, 0), (1, 0, 0, 1, 1)])
def test_errors_of_the_mean_of_all_rows_do_not_depend_on_lines(kind, linear, rng):
    """Each is that of a weighted mean of the rows drawn, whatever is fitted in the bins."""
    rows, frequency = Rows(linear=linear), kind == "frequency"
    base = {
        "none": None,
        "precision": rng.uniform(0.5, 2, len(rows.x)),
        "frequency": rng.integers(1, 4, len(rows.x)).astype(float),
    }[kind]
    times = draws_of(rows, rng)
    terms = prepared(rows, base, frequency=frequency, standard_errors=True)
    sums = resample.replicate_sums(terms, times)
    found = resample.replicates(rows.pieces, sums, "start", places=False)
    for draw, one in enumerate(times.T):
        own = Drawn(rows, one * base.astype(int)) if frequency else Drawn(rows, one, base)
        w, away = own.w, own.g - np.average(own.g, weights=own.w)
        n = 1 / np.sum(own.share**2 / own.n)
        variance = np.sum((w * away) ** 2) / w.sum() ** 2 * n / (n - 1)
        assert_allclose(found.average_effect_se()[draw], np.sqrt(variance), rtol=1e-9)


def test_unknown_bins_do_not_count_where_a_curve_does_not_depend_on_them():
    level = np.array([[[0.0, 2.0, 1.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]])
    noise = np.array([[np.nan, 3.0, 4.0]])
    assert_allclose(resample._root_of_noise(level, noise), [[4, np.nan, 0]])
    more = np.array([[9.0, 0.0, -1.0]])
    assert_allclose(resample._root_of_noise(level, noise, more), [[5, np.nan, 0]])
