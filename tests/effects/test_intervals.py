"""Coverage of intervals and bands, size of tests, by simulation; the full table is a study.

Every sample is a column, and thus a feature of one Dataset. A share is judged by an exact binomial
test at level 0.001, about 3 Monte-Carlo errors.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import rhale_stats as rs
from rhale_stats.arrays import resample
from rhale_stats.effects.intervals import _drawn_groups, _shortfall_of_groups, _varying
from rhale_stats.schema.feature_result import one_feature
from studies import weighting
from studies.coverage import Hits, curve_of
from tests.helpers import local_of, row_of

LEAST = 0.001
CLEAR = 1e-4
EDGES = np.linspace(-1, 1, 6)
CURVE = 2 * EDGES
N_ROWS = 200


def interaction(n_samples, seed, n=N_ROWS):
    """f = 2 x1 + 4 x1 x2 on U(-1, 1)^2: the effect of x1 is 2, with standard deviation 4/sqrt 3."""
    x1, x2 = np.random.default_rng(seed).uniform(-1, 1, (2, n, n_samples))
    return x1, 2 + 4 * x2


def fitted(x, g, edges=EDGES, **options):
    return rs.std_error(rs.rhale(local_of(x, g), bins=rs.GivenBins(edges), **options))


def holds(interval, truth):
    """Whether intervals (sample, point, 2) hold their target."""
    return (interval[..., 0] <= truth) & (truth <= interval[..., 1])


def assert_share(hits, expected):
    """The share of hits is ``expected``, point by point."""
    for column in np.atleast_2d(np.asarray(hits).T):
        n = int(column.sum())
        assert stats.binomtest(n, len(column), expected).pvalue > LEAST, n / len(column)


def assert_between(hits, low, high):
    """The share of hits is neither clearly below ``low`` nor clearly above ``high``."""
    n = int(np.sum(hits))
    assert stats.binomtest(n, len(hits), low, "less").pvalue > LEAST, n / len(hits)
    assert stats.binomtest(n, len(hits), high, "greater").pvalue > LEAST, n / len(hits)


def assert_below(hits, low):
    """The share of hits is clearly below ``low``."""
    n = int(np.sum(hits))
    assert stats.binomtest(n, len(hits), low, "less").pvalue < CLEAR, n / len(hits)


@pytest.mark.parametrize(
    ("place", "shape"), [("normal", "smooth"), ("exponential", "stepped"), ("uniform", "flat")]
)
@pytest.mark.slow
def test_bands_of_default_curves(place, shape):
    """At all edges of cells within the inner 99 % of rows; 150 samples: error 1.8 % at 95 %.

    Pointwise intervals hold the whole curve in some 70 % of samples.
    """
    n_samples, n = 150, 300
    rng = np.random.default_rng(11)
    x = np.asarray(weighting.PLACES[place](rng.uniform(size=(n, n_samples))))
    mu = weighting.EFFECTS[shape]
    effect = rs.confint(rs.rhale(local_of(x, mu(x) + rng.normal(size=x.shape))))
    effect = rs.confband(effect, n_draws=1000, rng=0)
    truth = weighting.Truth.of(place, shape)
    found = [
        weighting.scores(one_feature(effect, sample), truth, place, mu)
        for sample in range(n_samples)
    ]
    assert_between([one["band_covered"] for one in found], 0.93, 0.97)
    # All edges of a sample go together: the error of the mean is that of the means of samples.
    pointwise = np.array([one["curve_covered"] for one in found])
    error = pointwise.std(ddof=1) / np.sqrt(n_samples)
    assert 0.93 - 3 * error < pointwise.mean() < 0.97 + 3 * error


@pytest.mark.parametrize("centering", ["mean", "start"])
@pytest.mark.slow
def test_intervals_and_bands_of_fixed_bins(centering):
    effect = fitted(*interaction(200, 1), centering=centering)
    effect = rs.confband(rs.confint(effect), n_draws=2000, rng=0)
    # Rows are uniform: the mean of the curve is 0.
    curve = CURVE - CURVE[0] if centering == "start" else CURVE
    later = slice(1 if centering == "start" else 0, None)
    pointwise = holds(effect.rhale.in_bins()["curve_ci"].values, curve)
    assert_share(holds(effect["effect_ci"].values, 2), 0.95)
    assert_share(pointwise[:, later], 0.95)
    # The whole curve: at all edges of cells, which end in padding.
    edges = effect["edge_value"].values
    along = 2 * edges + 2 * (centering == "start")
    padding = np.isnan(edges)
    whole = (holds(effect["curve_band"].values, along) | padding).all(axis=1)
    assert_share(whole, 0.95)
    assert_between(holds(effect["effect_band"].values, 2).all(axis=1), 0.93, 0.97)
    # Pointwise intervals do not hold the whole curve as often, nor all bins.
    assert_below((holds(effect["curve_ci"].values, along) | padding).all(axis=1), 0.93)
    assert_below(holds(effect["effect_ci"].values, 2).all(axis=1), 0.93)


@pytest.mark.slow
def test_zero_start_error_around_the_centred_curve_is_wrong():
    effect = fitted(*interaction(200, 2, n=1000), np.linspace(-1, 1, 21)).rhale.in_bins()
    curve = np.linspace(-2, 2, 21)
    wrong = np.abs(effect["curve"].values - curve) <= 1.96 * effect["curve_se_start"].values
    assert_below(wrong[:, 0], 0.93)
    assert_below(wrong[:, 1], 0.93)
    right = np.abs(effect["curve"].values - curve) <= 1.96 * effect["curve_se"].values
    assert_share(right[:, :2], 0.95)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Replicates vary")
def test_bootstrap_intervals():
    """At every bin and edge; more samples and the zero-start curve are in the study.

    Intervals of the other schemes are those of Student's t, too: see `test_inference`.
    """
    x, g = interaction(120, 3)
    local, effect = local_of(x, g), fitted(x, g)
    boot = rs.bootstrap(local, effect, n_resamples=400, studentize=True, rng=0, progress=False)
    for method in ("percentile", "basic", "bca", "studentized"):
        found = rs.confint(effect, boot, method=method)
        effect_hits = holds(found["effect_ci"].values, 2)
        for hits in (*effect_hits.T, *holds(found.rhale.in_bins()["curve_ci"].values, CURVE).T):
            assert_between(hits, 0.93, 0.97)
        # All bins together, which are all but independent.
        assert_between(effect_hits.ravel(), 0.93, 0.97)
        # One third narrower an interval would be seen.
        middle = found["effect_ci"].mean("ci_bound")
        narrow = middle + (found["effect_ci"] - middle) * 2 / 3
        assert_below(holds(narrow.transpose(..., "ci_bound").values, 2).ravel(), 0.93)


@pytest.mark.parametrize(("kind", "n"), [("normal", 50), ("two-point", 80)])
@pytest.mark.slow
def test_intervals_of_the_heterogeneity(kind, n):
    rng = np.random.default_rng(n)
    x, g = rng.uniform(-1, 1, (n, 250)), rng.normal(size=(n, 250))
    if kind == "two-point":
        g = np.sign(g)
    effect = rs.confint(fitted(x, g, [-1, 1]))
    assert_between(holds(effect["heterogeneity_ci"].values, 1)[:, 0], 0.91, 0.98)
    # The plain interval covers 74 % of samples of 80 rows, and 89 % of those of 50.
    if kind == "two-point":
        away = np.abs(effect["heterogeneity"] - 1).values[:, 0]
        assert_below(away <= 1.96 * effect["heterogeneity_se"].values[:, 0], 0.91)


@pytest.mark.parametrize(("n", "n_bins"), [(200, 5), (500, 20)])
@pytest.mark.slow
def test_size_and_power_of_wald_tests(n, n_bins):
    """Under the null they reject at their level; 30 squared standard errors from it mostly."""
    rng = np.random.default_rng(n)
    x, noise = rng.uniform(-1, 1, (n, 200)), rng.normal(size=(n, 200))
    edges = np.linspace(-1, 1, n_bins + 1)
    shift = np.sqrt(30 / n)
    for null, mean, moved in (("zero", 0, shift), ("constant", 2, shift * np.sqrt(3) * x)):
        pvalue = rs.wald_test(fitted(x, noise + mean, edges), null)["p_value"].values
        for level in (0.01, 0.05, 0.1):
            assert_share(pvalue <= level, level)
        few = (noise + mean + moved)[:, :40]
        pvalue = rs.wald_test(fitted(x[:, :40], few, edges), null)["p_value"].values
        assert np.mean(pvalue <= 0.05) > 0.5


@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.slow
def test_size_and_power_of_compare(paired):
    rng = np.random.default_rng(4)
    shape = (N_ROWS, 200)
    x, noise, more = rng.uniform(-1, 1, shape), *rng.normal(size=(2, *shape))
    # Differences of pairs have variance 1, those of independent rows 2.
    other_x = x if paired else rng.uniform(-1, 1, shape)
    other = noise / 2 + more * np.sqrt(3 / 4) if paired else more
    # Where rows are independent, so is where the curves are centred.
    slope = np.sqrt((15 if paired else 60) / N_ROWS * 3)

    def pvalues(slope, n_samples):
        here = np.s_[:, :n_samples]
        moved = 2 + other + slope * other_x
        locals_ = local_of(x[here], 2 + noise[here]), local_of(other_x[here], moved[here])
        effects = [rs.std_error(rs.rhale(one, bins=rs.GivenBins(EDGES))) for one in locals_]
        found = rs.compare(*effects, paired=locals_ if paired else None, n_draws=2000, rng=0)
        return found["p_value"].values

    null = pvalues(0.0, 200)
    for level in (0.01, 0.05, 0.1):
        assert_share(null <= level, level)
    assert np.mean(pvalues(slope, 40) <= 0.05) > 0.5


@pytest.mark.slow
def test_size_and_power_of_equivalence():
    """One bin at delta, the others far inside; where all are at it, all must pass by chance."""
    rng = np.random.default_rng(5)
    x, noise = rng.uniform(-1, 1, (N_ROWS, 300)), rng.normal(size=(N_ROWS, 300))
    last = x >= EDGES[-2]

    def pvalues(mean, n_samples=60):
        g = (noise + mean)[:, :n_samples]
        return rs.equivalence_test(fitted(x[:, :n_samples], g), 1.0)["p_value"].values

    at_delta = pvalues(np.where(last, 1.0, 0.0), 300)
    for level in (0.01, 0.05, 0.1):
        assert_share(at_delta <= level, level)
    assert np.mean(pvalues(np.ones_like(x)) <= 0.05) < 0.02
    assert np.mean(pvalues(np.zeros_like(x)) <= 0.05) > 0.9


@pytest.mark.slow
def test_hits_are_counted_point_by_point():
    """A point without a truth does not count; an interval that is not known holds nothing."""
    hits = Hits()
    truth = np.array([[1.0, 2.0, np.nan], [1.0, 2.0, 3.0]])
    interval = np.stack([truth - 1, truth + 1], axis=-1)
    interval[1, 2] = np.nan
    hits.add("bin effect", "standard errors", interval, truth)
    hits.add_whole("all bin effects", "simultaneous band", interval, truth)
    covered = hits.covered[np.isfinite(hits.covered)]
    # The mean over samples of all points and of five places, of which 3/4 is the last of three
    # points, and then the whole.
    assert_array_equal(covered, [(1 + 2 / 3) / 2, 1, 1, 1, 0.5, 0.5, 0.5])
    assert_array_equal(hits.missing[np.isfinite(hits.missing)], [1 / 5, 1 / 2])


@pytest.mark.slow
def test_curve_of_linear_bins():
    """mu(z) = z on [0, 2]: z^2 / 2 at the edges, with mean 2/3, in one linear bin and in two."""
    for edges in (np.array([0.0, 2.0]), np.array([0.0, 0.5, 2.0])):
        middle = (edges[1:] + edges[:-1]) / 2
        curve, mean = curve_of(edges, middle, np.ones(len(middle)))
        assert curve == pytest.approx(edges**2 / 2)
        assert mean == pytest.approx(2 / 3)


# --- parts of intervals, by hand ------------------------------------------------------------------


def test_shortfalls_of_groups():
    """Of the variance of replicates: a stratum loses one of its units, half of them at most."""
    degrees = np.array([9.0, 1.0, 3.0])
    assert_allclose(_shortfall_of_groups("multinomial", degrees, 1), [0.9, 0.5, 0.75])
    assert_allclose(_shortfall_of_groups("multinomial", degrees, 2), [0.8, 0.5, 0.5])
    for scheme in ("bayesian", "poisson"):
        expected = resample.shortfall(scheme, degrees + 1, degrees, 1.0, 2)
        assert_allclose(_shortfall_of_groups(scheme, degrees, 2), expected)


def test_degrees_of_drawn_groups():
    """Those of the replicates, less the strata; a feature has as many as it has bins."""
    row = row_of(xr.Dataset({"effect": ("bin", np.zeros(2)), "curve": ("edge", np.zeros(3))}))
    boot = xr.Dataset(
        {
            "effect_df": ("bin", [5.0, 0.5, np.nan]),
            "curve_df": ("bin_edge", [4.0, 6.0, 8.0, np.nan]),
            "average_effect_df": 7.0,
        },
        attrs={"n_strata": 2, "scheme": "multinomial"},
    )
    degrees, shortfall = _drawn_groups(row, boot)
    assert set(degrees) == set(shortfall) == {"effect", "curve", "average_effect"}
    assert_allclose(degrees["effect"], [4, 0])
    assert_allclose(degrees["curve"], [3, 5, 7])
    assert_allclose(degrees["average_effect"], 6)
    assert_allclose(shortfall["effect"], [1 - 2 / 6, 0.5])
    assert_allclose(shortfall["average_effect"], 1 - 2 / 8)


@pytest.mark.parametrize("scheme", ["multinomial", "poisson"])
def test_degrees_and_shortfalls_of_replicates_of_rows(scheme):
    """Of bins by their rows; at its start a curve has no variance that could fall short."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1, (50, 1))
    local = local_of(x, rng.normal(size=x.shape))
    effect = rs.std_error(rs.rhale(local, bins=rs.GivenBins([0, 0.4, 1]), weighting="rows",
                                   centering="start"))  # fmt: skip
    row = one_feature(effect, 0)
    boot = rs.bootstrap(local, effect, n_resamples=4, rng=0, scheme=scheme, progress=False)
    degrees, shortfall = _varying(row, row.fit, boot.isel(feature=0))
    n = row["n_obs"].values
    for name in ("effect", "heterogeneity", "slope"):
        assert_allclose(degrees[name], n - 1)
        assert_allclose(shortfall[name], resample.shortfall(scheme, n, n - 1, 50.0, 1))
    assert_allclose(degrees["average_effect"], 49)
    whole = resample.shortfall(scheme, np.array(50.0), np.array(49.0), 50.0, 1)
    assert_allclose(shortfall["average_effect"], whole)
    own = row["effect_se"].values ** 2 * np.array([0.4, 0.6]) ** 2
    parts = own * shortfall["effect"]
    assert_allclose(shortfall["curve"], [1, parts[0] / own[0], parts.sum() / own.sum()])
    assert_allclose(degrees["curve"][1:], [n[0] - 1, own.sum() ** 2 / np.sum(own**2 / (n - 1))])
    none, _ = _varying(row, None, boot.isel(feature=0))
    assert set(none) == {"slope", "heterogeneity", "effect", "curve", "average_effect"}
    assert np.isnan(list(none.values())).all()


def test_some_of_the_replicates_are_enough():
    """Intervals of the variables that are there; others are refused."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1, (50, 1))
    local = local_of(x, rng.normal(size=x.shape))
    effect = rs.rhale(local, bins=rs.GivenBins([0, 0.4, 1]), weighting="rows")
    boot = rs.bootstrap(local, effect, n_resamples=40, rng=0, progress=False)
    whole = rs.confint(effect, boot, method="percentile")

    def only(name):
        return boot.drop_vars([one for one in boot.data_vars if one != name])

    for name in ("curve", "average_effect"):
        some = rs.confint(effect, only(name), method="percentile")
        ends = [str(one) for one in some.data_vars if str(one).endswith("_ci")]
        assert ends == [f"{name}_ci"]
        assert_allclose(some[f"{name}_ci"], whole[f"{name}_ci"])
    with pytest.raises(ValueError, match="it has no replicates of effect"):
        rs.confint(effect, only("aled"), method="percentile")
    with pytest.raises(TypeError, match="boot must be what"):
        rs.confint(effect, 3, method="percentile")


def test_the_effect_of_missing_values_has_an_interval():
    """By Student's t of its rows less one."""
    X = pd.DataFrame({"a": np.r_[np.linspace(0, 1, 40), [np.nan] * 5], "b": np.arange(45.0)})

    def model(X):
        return (X["a"].fillna(2.0) * (1 + X["b"])).to_numpy()

    effect = rs.std_error(rs.ale(model, X, features="a", bins=rs.EqualWidthBins(2), missing="bin"))
    found = rs.confint(effect, level=0.9)
    se, n = found["missing_effect_se"].item(), found["n_missing"].item()
    half = stats.t.ppf(0.95, n - 1) * se
    estimate = found["missing_effect"].item()
    assert n == 5
    assert_allclose(found["missing_effect_ci"][0], [estimate - half, estimate + half])


@pytest.mark.filterwarnings("ignore:Gaps without rows", "ignore:Bins without rows")
def test_replicates_that_vary_too_little_are_said():
    """Percentiles covered 77 % in outer bins whose cells have a row or none."""
    rng = np.random.default_rng(3)
    X = pd.DataFrame({"a": rng.normal(size=600), "b": rng.normal(size=600)})
    local = rs.local_effects(lambda X: X["a"] * (1 + X["b"]), X, ["a"])
    edges, cells = [-4.0, -1, 0, 1, 4], np.linspace(-4, 4, 17)
    effect = rs.rhale(local, bins=rs.GivenBins({"a": edges}, cells={"a": cells}))
    boot = rs.bootstrap(local, effect, n_resamples=300, rng=0, progress=False)
    ratio = boot["effect"].std(["chain", "draw"]) / rs.std_error(effect)["effect_se"]
    assert float(ratio.min()) < 0.75
    with pytest.warns(UserWarning, match="less than 75 % of the standard errors in bins of a"):
        rs.confint(effect, boot)
    quiet = rs.rhale(local, bins=rs.GivenBins({"a": [-4.0, 0, 4]}), weighting="rows")
    rs.confint(quiet, rs.bootstrap(local, quiet, n_resamples=300, rng=0, progress=False))
