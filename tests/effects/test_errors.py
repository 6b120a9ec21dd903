"""Standard errors with groups, covariances, intervals and bands: other people's, and by hand."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import statsmodels.api as sm
import xarray as xr
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import rhale_stats as rs
from rhale_stats.arrays.intervals import shared_error
from rhale_stats.effects.fit import SKEWNESS, includes_choice
from rhale_stats.schema.feature_result import one_feature
from tests.helpers import bell_mccaffrey, cr2, daily, unpacked

CENTERINGS = pytest.mark.parametrize("centering", ["mean", "start", "integral"])
WEIGHTINGS = pytest.mark.parametrize("weighting", ["axis", "rows"])
EDGES = np.array([-1, -0.5, 0.1, 0.4, 1])
N = 400


# Means over rows, whose errors are known by hand and from regressions.
of_rows = partial(rs.rhale, weighting="rows")


def sample(rng, n=N):
    """Two features; local effects of the first depend on its value, and on groups of rows."""
    X = rng.uniform(-1, 1, (n, 2))
    group = rng.integers(40, size=n)
    shared = rng.normal(size=40)[group]
    first = 1 + 3 * X[:, 0] + (1 + X[:, 0] ** 2) * rng.standard_gamma(1, n) + shared
    return X, np.column_stack([first, X[:, 0] + rng.normal(size=n)]), group


@pytest.fixture
def table(rng):
    return sample(rng)


def local_of(X, g, **options):
    return rs.local_effects(None, X, jacobian=g, **options)


def lines(local, centering="mean", weighting="axis"):
    """An effect with constant and linear bins, which `AdaptiveBins` finds."""
    bins = rs.AdaptiveBins(20, min_obs=30, penalty=0.5)
    effect = rs.rhale(local, bins=bins, centering=centering, weighting=weighting)
    slope = effect["slope"].isel(feature=0).values
    assert (slope != 0).any()
    return effect


def of_kind(kind, local, centering="mean", weighting="axis"):
    if kind == "linear":
        return lines(local, centering, weighting)
    return rs.rhale(local, bins=rs.GivenBins(EDGES), centering=centering, weighting=weighting)


def cells_of(row):
    """Cells of one feature: edges, bins, variances, their degrees of freedom, and rows."""
    of = np.searchsorted(row.bin_edges[1:-1], row.edges[:-1], side="right")
    cells = row.curve_cells
    return row.edges, of, cells.variance, cells.degrees, cells.n_effective


def along(edges, of):
    """Weights of cells in the averages along their bins, (bin, cell)."""
    width = np.diff(edges) * (of == np.arange(of[-1] + 1)[:, None])
    return width / width.sum(axis=1, keepdims=True)


KINDS = pytest.mark.parametrize("kind", ["constant", "linear"])

# --- covariances ---------------------------------------------------------------------------------


@pytest.mark.thorough
@KINDS
@CENTERINGS
@WEIGHTINGS
def test_covariances_have_the_squares_of_standard_errors_on_their_diagonals(
    kind, centering, weighting, table
):
    effect = rs.std_error(of_kind(kind, local_of(*table[:2]), centering, weighting))
    for name in effect["feature"].values:
        row = one_feature(effect, str(name))
        for of, dim in (("curve", "edge"), ("effect", "bin")):
            found = rs.vcov(effect, name, of=of)
            assert found.dims == (dim, f"{dim}_other")
            assert_allclose(np.sqrt(np.diagonal(found)), row[f"{of}_se"], rtol=1e-9, atol=1e-12)
            assert found.attrs["source"] == "rows"
            assert found.attrs["target"] == effect[f"{of}_se"].attrs["target"]
        # Between edges, too.
        fit = row.fit
        z = np.sort(np.concatenate([fit.pieces.edges, [-0.3, 0.2, 0.77]]))
        assert_allclose(fit.variance(z), np.diagonal(fit.covariance(z)), rtol=1e-9, atol=1e-15)
        at_edges = np.isin(z, row["edge_value"])
        assert_allclose(np.sqrt(fit.variance(z[at_edges])), row["curve_se"], atol=1e-8)


def test_errors_along_the_axis_by_brute_force(table):
    """Cells are independent; an effect is their average by widths, the curve their sum."""
    X, g, _ = table
    effect = rs.std_error(rs.rhale(local_of(X, g), bins=rs.GivenBins(EDGES), centering="start"))
    for number in (0, 1):
        row = one_feature(effect, number)
        edges, of, variance, degrees, n = cells_of(row)
        k = np.clip(np.searchsorted(edges, X[:, number], side="right") - 1, 0, len(n) - 1)
        rows = [g[k == cell, number] for cell in range(len(n))]
        assert len(n) > 20
        assert_array_equal([len(own) for own in rows], n)
        # Cells of fewer than 8 rows take their variance together with their neighbours.
        many = n >= 8
        assert many.sum() > 20
        assert_allclose(variance[many], [own.var(ddof=1) for own in rows if len(own) >= 8])
        assert_array_equal(degrees[many], n[many] - 1)
        assert (degrees[~many] >= 12).all()
        noise = variance / n
        assert_allclose(row["effect_se"] ** 2, along(edges, of) ** 2 @ noise, rtol=1e-9)
        total = np.concatenate([[0], np.cumsum(np.diff(edges) ** 2 * noise)])
        assert_allclose(row["curve_se"] ** 2, total, rtol=1e-9)
        assert_allclose(row["curve_se_start"], row["curve_se"], rtol=1e-12)
        # Steps of the zero-start curve over different bins have nothing in common.
        expected = np.minimum(*np.meshgrid(total, total))
        assert_allclose(rs.vcov(effect, number), expected, rtol=1e-9)


def shared_squares(parts, degrees, n):
    """Half the variance of a sum of estimated variances, those of small cells from neighbours.

    Pair by pair: two estimates have in common the sums of squares that are in both, of cells (with
    one degree of freedom less than rows) and of steps between neighbours (with two thirds).
    """
    reach = np.zeros(len(n), dtype=int)
    for cell in np.flatnonzero(n < 8):
        while True:
            reach[cell] += 1
            near = np.arange(max(cell - reach[cell], 0), min(cell + reach[cell] + 1, len(n)))
            if np.isclose((n[near] - 1).sum() + (len(near) - 1) * 2 / 3, degrees[cell]):
                break
    ends = np.stack([np.arange(len(n)) - reach, np.arange(len(n)) + reach]).clip(0, len(n) - 1)
    total = 0.0
    for a in range(len(n)):
        for b in range(len(n)):
            low, high = max(ends[0, a], ends[0, b]), min(ends[1, a], ends[1, b])
            if low > high:
                continue
            common = (n[low : high + 1] - 1).sum() + (high - low) * 2 / 3
            total += parts[a] * parts[b] * common / (degrees[a] * degrees[b])
    return total


def shared_degrees(parts, degrees, n):
    """Satterthwaite's degrees of freedom of the sums over cells, (point, cell)."""
    return np.array([one.sum() ** 2 / shared_squares(one, degrees, n) for one in parts])


def symmetric(effect):
    """With standard errors, and without the skewness of errors: intervals are Student's."""
    return rs.std_error(effect).drop_vars(SKEWNESS, errors="ignore")


def test_degrees_along_the_axis_by_brute_force(table):
    """Satterthwaite's of the sum of cells, of which small ones have squares in common."""
    X, g, _ = table
    effect = symmetric(rs.rhale(local_of(X, g), bins=rs.GivenBins(EDGES)))
    found = rs.confint(effect, level=0.9)
    assert (unpacked(effect)["cell_n_effective"].fillna(8) < 8).any()
    for number in (0, 1):
        row = one_feature(effect, number)
        edges, of, variance, own, n = cells_of(row)
        parts = along(edges, of) ** 2 * variance / n
        degrees = shared_degrees(parts, own, n)
        # As if they had nothing in common there would be more.
        assert (degrees <= parts.sum(axis=1) ** 2 / (parts**2 / own).sum(axis=1) + 1e-9).all()
        half = stats.t.ppf(0.95, degrees) * row["effect_se"].values
        ends = np.stack([row["effect"] - half, row["effect"] + half], axis=-1)
        assert_allclose(found["effect_ci"][number], ends, rtol=1e-9)


def test_covariance_does_not_ask_for_standard_errors_first(table):
    effect = rs.rhale(local_of(*table[:2]), bins=rs.GivenBins(EDGES))
    xr.testing.assert_identical(rs.vcov(effect, "x1"), rs.vcov(rs.std_error(effect), 1))


@pytest.mark.filterwarnings("ignore:Bins without rows")
@pytest.mark.parametrize(("centering", "known"), [("start", 2), ("mean", 0)])
def test_covariance_with_a_bin_of_one_row(centering, known):
    """Its noise is not known; what the curve by rows does before it is."""
    x = np.array([0.1, 0.2, 0.3, 0.4, 1.5, 2.1, 2.2, 3])[:, None]
    g = np.array([1.0, 3, 2, 5, 4, 4, 6, 7])[:, None]
    effect = of_rows(
        local_of(x, g, features=0), bins=rs.GivenBins([0, 1, 2, 3]), centering=centering
    )
    effect = rs.confint(rs.confband(rs.std_error(effect), n_draws=500, rng=0))
    found = np.sqrt(np.diagonal(rs.vcov(effect, 0)))
    assert_array_equal(np.isfinite(found), np.arange(4) < known)
    assert_allclose(found, effect["curve_se"].values[0], rtol=1e-12)
    for name in ("curve_ci", "curve_band"):
        bounds = effect[name].values[0]
        assert_array_equal(np.isfinite(bounds).all(axis=1), np.arange(4) < known)
    if known:
        # One bin of four rows: Student's t with three degrees of freedom.
        half = stats.t.ppf(0.975, 3) * effect["effect_se"].values[0, 0]
        assert_allclose(np.diff(effect["curve_ci"].values[0, 1]), 2 * half, rtol=1e-9)


@pytest.mark.thorough
def test_errors_along_the_axis_do_not_hang_on_order_or_units(table, rng):
    X, g, group = table
    options = {"bins": rs.EqualWidthBins(5), "centering": "mean"}
    plain = rs.rhale(local_of(X, g), **options)
    order = rng.permutation(N)
    moved = rs.rhale(local_of(1e6 * X[order] - 3e6, -2e-6 * g[order]), **options)
    found = rs.std_error(plain), rs.std_error(moved)
    grouped = (
        rs.std_error(plain, local_of(X, g), groups=group),
        rs.std_error(moved, local_of(1e6 * X[order] - 3e6, -2e-6 * g[order]), groups=group[order]),
    )
    for one, other in (found, grouped):
        assert_allclose(other["edge_value"], 1e6 * one["edge_value"] - 3e6, rtol=1e-9)
        assert_allclose(other["curve"], -2 * one["curve"], rtol=1e-7, atol=1e-9)
        assert_allclose(other["curve_se"], 2 * one["curve_se"], rtol=1e-7)
        for name in ("effect_se", "heterogeneity_se", "average_effect_se"):
            assert_allclose(other[name], 2e-6 * one[name], rtol=1e-7)


@pytest.mark.thorough
def test_counted_rows_along_the_axis_are_repeated_rows(table, rng):
    X, g, group = table
    counts = rng.integers(0, 4, N)
    again = np.repeat(np.arange(N), counts)
    counted = local_of(X, g, weights=counts, weight_kind="frequency")
    repeated = local_of(X[again], g[again])
    for groups in (None, group):
        one, two = (
            rs.std_error(
                rs.rhale(local, bins=rs.GivenBins(EDGES)),
                None if groups is None else local,
                groups=groups if groups is None else groups[rows],
            )
            for local, rows in ((counted, np.arange(N)), (repeated, again))
        )
        for name in ("edge_value", "effect", "curve", "effect_se", "curve_se", "heterogeneity_se"):
            assert_allclose(one[name], two[name], rtol=1e-9, atol=1e-12)


def test_a_curve_through_cells_of_few_rows_borrows_from_their_neighbours():
    """The spread within cells, and between their means; a bin of one row has no error itself."""
    x = np.array([0.1, 0.2, 0.3, 0.4, 1.5, 2.1, 2.2, 3])[:, None]
    g = np.array([1.0, 3, 2, 5, 4, 4, 6, 7])[:, None]
    local = local_of(x, g, features=0)
    effect = rs.std_error(rs.rhale(local, bins=rs.GivenBins([0, 1, 2, 3]), centering="start"))
    row = one_feature(effect, 0)
    edges, _, variance, degrees, n = cells_of(row)
    assert_array_equal(edges, [0, 1, 2, 3])
    assert_array_equal(n, [4, 1, 3])
    rows = g[:4, 0], g[4:5, 0], g[5:, 0]
    within = sum(np.sum((own - own.mean()) ** 2) for own in rows)
    steps = np.diff([own.mean() for own in rows]) ** 2 / (1 / n[1:] + 1 / n[:-1])
    # Of either difference two thirds of a degree of freedom.
    assert_allclose(degrees, 5 + 4 / 3, rtol=1e-12)
    together = (within + 2 / 3 * steps.sum()) / (5 + 4 / 3)
    assert_allclose(variance, together, rtol=1e-12)
    expected = np.cumsum([0, together / 4, together, together / 3])
    assert_allclose(row["curve_se"] ** 2, expected, rtol=1e-12)
    assert_array_equal(np.isfinite(row["effect_se"]), [True, False, True])


# --- groups --------------------------------------------------------------------------------------


def design(row, x):
    """Dummies of the bins, and in linear bins the distance from their middle."""
    left, right = row["bin_left"].values, row["bin_right"].values
    k = np.clip(np.searchsorted(row.bin_edges, x, side="right") - 1, 0, len(left) - 1)
    inside = (k[:, None] == np.arange(len(left))).astype(float)
    slope = row["slope"].values if "slope" in row else np.zeros(len(left))
    away = (inside * (x[:, None] - (left + right) / 2))[:, slope != 0]
    return np.column_stack([inside, away]), slope != 0


@pytest.mark.thorough
@KINDS
@CENTERINGS
def test_groups_by_the_definition_of_cr2(kind, centering, table):
    X, g, group = table
    local = local_of(X, g)
    effect = rs.std_error(of_kind(kind, local, centering, "rows"), local, groups=group)
    assert effect.attrs["n_groups"] == 40
    for number in (0, 1):
        row = one_feature(effect, number)
        columns, linear = design(row, X[:, number])
        fit = sm.OLS(g[:, number], columns).fit()
        influences = cr2(columns, g[:, number], group)
        covariance = influences.T @ influences
        errors = np.sqrt(np.diagonal(covariance))
        n = row.sizes["bin"]
        assert_allclose(row["effect"], fit.params[:n], rtol=1e-9, atol=1e-12)
        assert_allclose(row["effect_se"], errors[:n], rtol=1e-9)
        assert_allclose(row["effect_cov"], covariance[:n, :n], atol=1e-9 * covariance.max())
        assert_array_equal(rs.vcov(effect, number, of="effect"), row["effect_cov"])
        if "slope" in row:
            assert_allclose(row["slope"].values[linear], fit.params[n:], rtol=1e-9)
            assert_allclose(row["slope_se"].values[linear], errors[n:], rtol=1e-9)
            shared, own = (row[f"{name}_cov"].values for name in ("effect_slope", "slope"))
            rounding = 1e-9 * covariance.max()
            assert_allclose(shared[:, linear], covariance[:n, n:], atol=rounding)
            assert_allclose(own[np.ix_(linear, linear)], covariance[n:, n:], atol=rounding)
            for name in ("slope_se", "slope_cov", "effect_slope_cov", "curve_slope_cov"):
                assert_array_equal(row[name].values[..., ~linear], 0)
            # The effect in the middle of a bin is what the curve gains over its width.
            steps = np.diff(row["curve_slope_cov"], axis=0) / np.diff(row["edge_value"])[:, None]
            assert_allclose(steps, shared, atol=rounding)
        mean = cr2(np.ones((N, 1)), g[:, number], group)
        assert_allclose(row["average_effect_se"] ** 2, np.sum(mean**2), rtol=1e-10)
        degrees = bell_mccaffrey(np.ones((N, 1)), np.ones(1), group)
        assert_allclose(row["average_effect_df"], degrees, rtol=1e-9)
        for k in np.flatnonzero(~linear):
            degrees = bell_mccaffrey(columns, np.eye(columns.shape[1])[k], group)
            assert_allclose(row["effect_df"][k], degrees, rtol=1e-9)
            assert_allclose(row["heterogeneity_df"][k], degrees, rtol=1e-9)
        # The zero-start curve is a sum of effects.
        steps = np.tri(n + 1, n, -1) * np.diff(row["edge_value"])
        start = np.sqrt(np.diagonal(steps @ row["effect_cov"].values @ steps.T))
        assert_allclose(row["curve_se_start"], start, rtol=1e-9)
        if centering == "start":
            assert_allclose(row["curve_se"], start, rtol=1e-9, atol=1e-12)
        se = np.sqrt(np.diagonal(row["curve_cov"]))
        assert_allclose(row["curve_se"], se, rtol=1e-9)
        assert_array_equal(rs.vcov(effect, number), row["curve_cov"])


def test_groups_along_the_axis_by_the_definition_of_cr2(rng):
    """The regression on indicators of cells, of which an effect is an average by widths."""
    n = 1200
    X, group = rng.uniform(-1, 1, (n, 1)), rng.integers(300, size=n)
    g = X + rng.standard_gamma(1, (n, 1)) + rng.normal(size=300)[group, None]
    local = local_of(X, g, features=0)
    effect = rs.rhale(local, bins=rs.GivenBins(EDGES), centering="start")
    row = one_feature(rs.std_error(effect, local, groups=group), 0)
    edges, of, _, _, n_cell = cells_of(row)
    k = np.searchsorted(edges[1:-1], X[:, 0], side="right")
    # Enough groups in every cell: none shares its mean with its neighbours.
    assert min(len(np.unique(group[k == cell])) for cell in range(len(n_cell))) >= 10
    assert len(n_cell) > 70
    inside = (k[:, None] == np.arange(len(n_cell))).astype(float)
    influences = cr2(inside, g[:, 0], group)
    assert_allclose(
        row["effect"], along(edges, of) @ sm.OLS(g[:, 0], inside).fit().params, rtol=1e-9
    )
    moved = influences @ along(edges, of).T
    assert_allclose(row["effect_cov"], moved.T @ moved, atol=1e-12)
    steps = np.tri(len(edges), len(n_cell), -1) * np.diff(edges)
    covariance = steps @ influences.T @ influences @ steps.T
    assert_allclose(row["curve_cov"], covariance, atol=1e-9 * covariance.max())
    assert_allclose(row["curve_se"] ** 2, np.diagonal(covariance), rtol=1e-9)


def test_groups_with_precision_weights_are_unbiased_for_equal_variances(table, rng):
    """Sums of weighted residuals over the share of their variance that the mean leaves them."""
    X, g, group = table
    weights = rng.uniform(0.2, 2, N)
    weights[:7] = 0
    local = local_of(X, g, weights=weights)
    effect = rs.std_error(of_rows(local, bins=rs.GivenBins(EDGES)), local, groups=group)
    row = one_feature(effect, 0)
    inside = design(row, X[:, 0])[0].astype(bool)
    for k, own in enumerate(inside.T):
        w, y, of = weights[own], g[own, 0], group[own]
        rest = np.eye(len(w)) - np.outer(np.ones(len(w)), w / w.sum())
        variance = 0.0
        for code in np.unique(of[w > 0]):
            loads = np.where(of == code, w, 0.0)
            left = np.sum((loads @ rest) ** 2) / np.sum(loads**2)
            variance += (loads @ rest @ y / w.sum()) ** 2 / left
        assert_allclose(row["effect_se"][k] ** 2, variance, rtol=1e-9)
    assert effect.attrs["n_groups"] == len(np.unique(group[7:]))


def tilted(rng, n=N):
    """A feature, local effects, and weights that are large where local effects are."""
    x = rng.uniform(-1, 1, n)
    g = x + (1 + x**2) * rng.normal(size=n)
    return x[:, None], g[:, None], 1 + (g - x) ** 2


def test_precision_weights_have_the_sandwich_of_statsmodels(rng):
    """HC0 of weighted least squares, unbiased for equal variances; groups of one row have CR2."""
    x, g, weight = tilted(rng)
    local = local_of(x, g, features=0, weights=weight)
    effect = rs.std_error(of_rows(local, bins=rs.GivenBins(EDGES)))
    row = one_feature(effect, 0)
    inside = design(row, x[:, 0])[0]
    theirs = sm.WLS(g[:, 0], inside, weight).fit(cov_type="HC0")
    factor = []
    for own in inside.astype(bool).T:
        w = weight[own]
        rest = np.eye(len(w)) - np.outer(np.ones(len(w)), w / w.sum())
        # Of the expected squares of w r under equal variances.
        factor.append(np.sum(w**2) / np.sum(w**2 * np.diagonal(rest @ rest.T)))
    assert_allclose(row["effect_se"] ** 2, theirs.bse**2 * factor, rtol=1e-9)
    mean = sm.WLS(g[:, 0], np.ones(N), weight).fit(cov_type="HC0")
    n = weight.sum() ** 2 / np.sum(weight**2)
    assert_allclose(row["average_effect_se"] ** 2, mean.bse[0] ** 2 * n / (n - 1), rtol=1e-9)


@pytest.mark.parametrize("weighting", ["axis", "rows"])
def test_influences_of_weighted_rows_make_the_error_of_the_curve(weighting, rng):
    """Sums of squares of w (c r - (F - mean F)), with the factor of each cell at r^2."""
    x, g, weight = tilted(rng)
    local = local_of(x, g, features=0, weights=weight)
    options = {"bins": rs.GivenBins(EDGES), "weighting": weighting}
    row = one_feature(rs.std_error(rs.rhale(local, **options)), 0)
    fit = row.fit
    edges = fit.pieces.edges
    k = np.clip(np.searchsorted(edges, x[:, 0], side="right") - 1, 0, len(edges) - 2)
    total = np.bincount(k, weight)
    r = g[:, 0] - fit.pieces.mean[k]
    at = fit.loadings(edges).level
    # Cells of few rows borrow: the squares of their residuals are scaled to what they have.
    own = np.bincount(k, (weight * r) ** 2) / total**2
    scale = fit.noise.mean / own
    places = np.interp(x[:, 0], edges, fit.curve)
    places -= np.average(places, weights=weight)
    moved = at[:, k] * (weight * r / total[k])
    # What a cell has of the covariance is no more than its variances allow.
    d = x[:, 0] - fit.pieces.x_mean[k]
    xr, xx = (np.bincount(k, weight**2 * d * by) for by in (r, d))
    spread = fit.cells.variance * xx * np.bincount(k, weight**2)
    keep = np.minimum(1.0, np.sqrt(spread) / np.abs(xr))
    within = d * fit.pieces.mean[k]
    shared = weight / weight.sum() * (places - within * (1 - keep[k]))
    own_places = weight / weight.sum() * places
    expected = (moved**2) @ scale[k] - 2 * moved @ shared + np.sum(own_places**2)
    assert_allclose(fit.variance(edges), expected, rtol=1e-8)


@pytest.mark.thorough
def test_equal_weights_are_none_and_frequencies_are_repetitions(rng):
    x, g, _ = tilted(rng)
    plain = rs.confint(rs.std_error(rs.rhale(local_of(x, g, features=0))))
    equal = local_of(x, g, features=0, weights=np.full(N, 3.0))
    equal = rs.confint(rs.std_error(rs.rhale(equal)))
    count = rng.integers(1, 4, N)
    counted = local_of(x, g, features=0, weights=count, weight_kind="frequency")
    again = np.repeat(np.arange(N), count)
    repeated = rs.confint(rs.std_error(rs.rhale(local_of(x[again], g[again], features=0))))
    counted = rs.confint(rs.std_error(rs.rhale(counted)))
    for one, other in ((plain, equal), (counted, repeated)):
        assert "squares" not in other
        for name in ("effect_ci", "curve_ci", "heterogeneity_ci", "average_effect_ci"):
            assert_allclose(one[name], other[name], rtol=1e-8, atol=1e-12)


@pytest.mark.thorough
@pytest.mark.parametrize("weighting", daily(["axis", "rows"]))
def test_coverage_with_weights_that_follow_the_effects(weighting):
    """Inclusion by 1 of 5 where |g| is large, without any effect: model-based errors cover 84 %."""
    rng = np.random.default_rng(2)
    covered, rejected = [], []
    for _ in range(25):
        e = rng.normal(size=900)
        share = np.where(np.abs(e) > 1, 0.2, 1.0)
        kept = rng.uniform(size=900) < share
        x, w = rng.uniform(-1, 1, kept.sum()), 1 / share[kept]
        local = local_of(x[:, None], e[kept][:, None], features=0, weights=w)
        effect = rs.std_error(rs.rhale(local, bins=rs.QuantileBins(5), weighting=weighting))
        ends = rs.confint(effect)["effect_ci"].values[0]
        covered.append(np.mean((ends[:, 0] <= 0) & (ends[:, 1] >= 0)))
        rejected.append(float(rs.wald_test(effect)["p_value"].item() < 0.05))
    # Four Monte-Carlo errors below 95 %, of 125 intervals; model-based ones are 7 below.
    assert np.mean(covered) > 0.95 - 4 * np.sqrt(0.05 * 0.95 / 125)
    assert np.sum(rejected) <= 5  # of 25 at 5 %: more has probability 0.001


def test_equal_groups_have_the_factor_of_cr1(rng):
    """As statsmodels has it, but for its factor (N - 1) / (N - p); with G - 1 degrees."""
    group = np.repeat(np.arange(30), 12)
    x = np.tile(np.repeat([0.25, 0.75], 6), 30) + rng.uniform(-0.2, 0.2, 360)
    g = rng.normal(size=360) + rng.normal(size=30)[group]
    local = local_of(x[:, None], g[:, None], features=0)
    effect = of_rows(local, bins=rs.GivenBins([0, 0.5, 1]))
    row = one_feature(rs.std_error(effect, local, groups=group), 0)
    inside = np.column_stack([x < 0.5, x >= 0.5]).astype(float)
    fit = sm.OLS(g, inside).fit(cov_type="cluster", cov_kwds={"groups": group})
    assert_allclose(row["effect_cov"] * 359 / 358, fit.cov_params(), rtol=1e-9)
    assert_allclose(row["effect_df"], 29, rtol=1e-9)
    assert_allclose(row["average_effect_df"], 29, rtol=1e-9)


@KINDS
def test_groups_of_one_row_have_hc2(kind, table):
    """White's variances with (1 - leverage), which for means are those without groups."""
    X, g, _ = table
    local = local_of(X, g)
    bins = rs.std_error(of_kind(kind, local, weighting="rows"))
    effect = rs.std_error(bins, local, groups=np.arange(N))
    for number in (0, 1):
        rows = one_feature(bins, number), one_feature(effect, number)
        columns, linear = design(rows[1], X[:, number])
        theirs = sm.OLS(g[:, number], columns).fit(cov_type="HC2")
        n = rows[1].sizes["bin"]
        assert_allclose(rows[1]["effect_se"], theirs.bse[:n], rtol=1e-9)
        if kind == "linear":
            assert_allclose(rows[1]["slope_se"].values[linear], theirs.bse[n:], rtol=1e-9)
        ours = rows[0]["effect_se"].values[~linear]
        assert_allclose(rows[1]["effect_se"].values[~linear], ours, rtol=1e-9)
        degrees = rows[0]["n_obs"].values[~linear] - 1
        assert_allclose(rows[1]["effect_df"].values[~linear], degrees, rtol=1e-9)


@pytest.mark.parametrize("n", daily([100, 400]))
@pytest.mark.slow
def test_errors_along_the_axis_are_unbiased(n, rng):
    """Of noise with a variance of 1: by rows, also by groups of one row, which are the same."""
    local = local_of(rng.uniform(-1, 1, (n, 50)), rng.normal(size=(n, 50)))
    effect = rs.rhale(local, bins=rs.EqualWidthBins(4))
    found = rs.std_error(effect), rs.std_error(effect, local, groups=np.arange(n))
    exact = []
    for number in range(50):
        edges, of, _, _, rows = cells_of(one_feature(effect, number))
        exact.append(along(edges, of) ** 2 @ (1 / rows))
    for one in found:
        ratio = one["effect_se"].values ** 2 / np.array(exact)
        # Four Monte-Carlo errors: n / 4 rows of unequal weight in each of 200 bins.
        assert abs(ratio.mean() - 1) < 4 * ratio.std() / np.sqrt(200)
        assert ratio.std() < 2 * np.sqrt(2 / (n / 4))


@pytest.mark.thorough
@CENTERINGS
def test_groups_of_one_row(centering, table):
    """White's with (1 - leverage): as without groups."""
    X, g, _ = table
    local = local_of(X, g)
    alone = of_rows(local, bins=rs.GivenBins(EDGES), centering=centering)
    effect = rs.std_error(alone, local, groups=np.arange(N))
    fit = sm.OLS(g[:, 0], design(one_feature(effect, 0), X[:, 0])[0]).fit(cov_type="HC2")
    assert_allclose(effect["effect_se"][0], fit.bse, rtol=1e-10)
    bins = rs.std_error(alone)
    for name in ("effect_se", "curve_se_start"):
        assert_allclose(effect[name], bins[name], rtol=1e-9, atol=1e-12)
    # Places of rows and squares have n and n - 1 otherwise, and n_k is 50 or more.
    assert alone["n_obs"].min() >= 50
    for name in ("curve_se", "heterogeneity_se"):
        assert_allclose(effect[name], bins[name], rtol=0.02, atol=1e-12)
    assert_allclose(effect["average_effect_se"], bins["average_effect_se"], rtol=1e-10)


@pytest.mark.thorough
def test_groups_of_labels_and_of_one_another(table):
    """Names in place of numbers; every row twice, in its own group, is no more than once."""
    X, g, group = table
    local = local_of(X, g)
    effect = of_rows(local, bins=rs.GivenBins(EDGES))
    numbers = rs.std_error(effect, local, groups=group)
    names = rs.std_error(effect, local, groups=np.array([f"plot {code}" for code in group]))
    xr.testing.assert_allclose(numbers, names, rtol=1e-10)
    twice = local_of(np.tile(X, (2, 1)), np.tile(g, (2, 1)))
    pairs = np.tile(np.arange(N), 2)
    found = rs.std_error(of_rows(twice, bins=rs.GivenBins(EDGES)), twice, groups=pairs)
    once = rs.std_error(effect, local, groups=np.arange(N))
    assert_allclose(found["effect_se"], once["effect_se"], rtol=1e-9)
    naive = rs.std_error(of_rows(twice, bins=rs.GivenBins(EDGES)))
    assert (naive["effect_se"] < 0.8 * found["effect_se"]).all()


@pytest.mark.thorough
@KINDS
def test_groups_are_kept_until_there_are_rows(kind, table):
    X, g, group = table
    local = local_of(X, g)
    effect = of_kind(kind, local)
    grouped = rs.std_error(effect, local, groups=group)
    xr.testing.assert_identical(rs.std_error(grouped), grouped)
    xr.testing.assert_identical(rs.std_error(grouped, local), rs.std_error(effect))
    assert grouped.attrs["n_groups"] == 40


def test_groups_in_intervals_have_their_degrees_of_freedom(table):
    X, g, group = table
    local = local_of(X, g)
    effect = rs.std_error(rs.rhale(local, bins=rs.GivenBins(EDGES)), local, groups=group)
    effect = effect.drop_vars(SKEWNESS, errors="ignore")
    found = rs.confint(effect)
    of_bins = effect.rhale.in_bins()
    for name in ("effect", "curve", "average_effect"):
        half = np.diff(found[f"{name}_ci"])[..., 0] / 2
        quantile = stats.t.ppf(0.975, effect[f"{name}_df"])
        assert_allclose(half, quantile * effect[f"{name}_se"], rtol=1e-10)
        assert (of_bins[f"{name}_df"] < 39).all()
        assert (of_bins[f"{name}_df"] > 15).all()
    quantile = stats.t.ppf(0.975, effect["heterogeneity_df"])
    ratio = found["heterogeneity_ci"].sel(ci_bound="upper") / effect["heterogeneity"]
    own = [effect[name].values for name in ("heterogeneity", "heterogeneity_se")]
    # With a part of what neighbouring bins have (math [92]).
    shared = shared_error(*own, effect["heterogeneity_df"].values)
    assert_allclose(ratio, np.exp(quantile * shared / own[0]), rtol=1e-12)
    assert (np.abs(shared / own[1] - 1) < 0.4).all()
    for name in ("effect_ci", "curve_ci"):
        assert found[name].attrs["source"] == "rows in 40 groups"


def test_unusable_groups(table):
    X, g, group = table
    local = local_of(X, g)
    effect = rs.rhale(local, bins=rs.GivenBins(EDGES))
    with pytest.raises(ValueError, match="local must be given with groups"):
        rs.std_error(effect, groups=group)
    with pytest.raises(ValueError, match=r"each of 400 rows of local; got shape \(399,\)"):
        rs.std_error(effect, local, groups=group[1:])
    with pytest.raises(
        ValueError, match=r"groups must hold at least two different groups; got 1\."
    ):
        rs.std_error(effect, local, groups=np.zeros(N))
    with pytest.raises(ValueError, match="give them other numbers of rows"):
        rs.std_error(effect, local_of(X + 0.5, g), groups=group)
    weighted = local_of(X, g, weights=np.linspace(1, 2, N))
    with pytest.raises(ValueError, match=r"weights that effect was made with; bin \d of .*'x0'"):
        rs.std_error(effect, weighted, groups=group)


@KINDS
def test_groups_are_more_than_parameters_in_all_bins(kind, table):
    """The residuals of a bin's only group add up to 0; two leave nothing beside a slope."""
    X, g, _ = table
    local = local_of(X, g)
    effect = of_kind(kind, local)
    row = one_feature(effect, 0)
    last = X[:, 0] > row["bin_left"].values[-1]
    few = 2 if kind == "linear" and row["slope"].values[-1] else 1
    enough = rs.std_error(effect, local, groups=np.arange(N) % 20)
    group = np.where(last, np.arange(N) % few, np.arange(N) % 20)
    with pytest.warns(UserWarning, match=r"groups are too few in bins of 'x0' \(1\)"):
        found = one_feature(rs.std_error(effect, local, groups=group), 0)
    before, enough = slice(0, row.sizes["bin"] - 1), one_feature(enough, 0)
    for name in ("effect_se", "heterogeneity_se", *(("slope_se",) if kind == "linear" else ())):
        assert np.isnan(found[name].values[-1]), name
        # A chosen edge depends on the noise of both bins.
        if name != "effect_se" or not includes_choice(row):
            assert_allclose(found[name].values[before], enough[name].values[before], rtol=1e-9)
    # A curve that is 0 on the left depends on the last bin at its end alone.
    start, n_known = found["curve_se_start"].values, found.bin_starts[-1] + 1
    assert_allclose(start[:n_known], enough["curve_se_start"].values[:n_known], rtol=1e-9)
    assert np.isnan([*start[n_known:], *found["curve_se"].values]).all()


def test_groups_that_are_too_few_everywhere(table):
    local = local_of(*table[:2])
    effect = rs.rhale(local, bins=rs.GivenBins(EDGES))
    group = np.searchsorted(EDGES[1:-1], table[0][:, 0], side="right")
    with pytest.raises(ValueError, match="groups are too few in bins of 'x0'"):
        rs.std_error(effect.sel(feature=["x0"]), local, groups=group)


def test_standard_errors_of_what_has_none(table):
    local = local_of(*table[:2])
    effect = rs.rhale(local, bins=rs.GivenBins(EDGES))
    better = rs.debias(effect, rs.check_unbiased(local, effect, rng=0))
    for function in (rs.std_error, rs.confint, rs.confband, lambda e: rs.vcov(e, 0)):
        with pytest.raises(ValueError, match="what rhale .*returned; this one is from debias"):
            function(better)
        with pytest.raises(TypeError, match="got str"):
            function("effect")


def test_unusable_questions_for_a_covariance(table):
    effect = rs.rhale(local_of(*table[:2]))
    with pytest.raises(KeyError, match="'x0', 'x1'"):
        rs.vcov(effect, "x2")
    with pytest.raises(ValueError, match="of must be one of 'curve', 'effect'; got 'bins'"):
        rs.vcov(effect, "x0", of="bins")


# --- intervals -----------------------------------------------------------------------------------


@KINDS
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_normal_intervals_by_hand(kind, level, table):
    effect = symmetric(of_kind(kind, local_of(*table[:2]), weighting="rows"))
    found = rs.confint(effect, level=level)
    assert_array_equal(found["ci_bound"], ["lower", "upper"])
    slope = effect["slope"] if "slope" in effect else 0 * effect["effect"]
    degrees = unpacked(effect)["n_effective"] - 1 - (slope != 0)
    with np.errstate(invalid="ignore"):
        quantile = stats.t.ppf(0.5 + level / 2, degrees)
    for name in ("effect", "slope") if kind == "linear" else ("effect",):
        half = quantile * effect[f"{name}_se"].values
        expected = np.stack([effect[name] - half, effect[name] + half], axis=-1)
        assert_allclose(found[f"{name}_ci"], expected, rtol=1e-12)
    student = stats.t.ppf(0.5 + level / 2, N - 1)
    half = student * effect["average_effect_se"]
    expected = np.stack([effect["average_effect"] - half, effect["average_effect"] + half], -1)
    assert_allclose(found["average_effect_ci"], expected, rtol=1e-10)
    # The curve's degrees of freedom lie between those of a bin and of all rows.
    half = (found["curve_ci"].diff("ci_bound") / 2).values[..., 0]
    with np.errstate(invalid="ignore"):
        ratio = half / effect["curve_se"].values
    known = np.isfinite(ratio)
    least = np.nanmin(np.where(effect["n_obs"] > 0, degrees, np.nan))
    assert (ratio[known] <= stats.t.ppf(0.5 + level / 2, least) * (1 + 1e-12)).all()
    assert (ratio[known] >= stats.norm.ppf(0.5 + level / 2) * (1 - 1e-12)).all()


def test_degrees_of_freedom_of_a_curve_through_two_bins():
    """Satterthwaite's, which for two bins is Welch's; zero-start, so that no places count."""
    rng = np.random.default_rng(3)
    x = np.concatenate([rng.uniform(0, 1, 8), rng.uniform(1, 2, 20)])[:, None]
    g = rng.normal(size=28)[:, None] * np.where(x < 1, 3, 1)
    local = local_of(x, g, features=0)
    effect = of_rows(local, bins=rs.GivenBins([0, 1, 2]), centering="start")
    found = rs.confint(effect, level=0.9)["curve_ci"].values[0, -1]
    welch = stats.ttest_ind(g[:8, 0], -g[8:, 0], equal_var=False).confidence_interval(0.9)
    assert_allclose(found, welch, rtol=1e-9)


@pytest.mark.thorough
def test_heterogeneity_interval_of_the_labelled_result(table):
    """Equal to the formula, equivariant, and [0, 0] where nothing varies."""
    X, g, _ = table
    found = rs.confint(rs.rhale(local_of(X, g), bins=rs.GivenBins(EDGES)))["heterogeneity_ci"]
    tripled = rs.confint(rs.rhale(local_of(X, -3 * g), bins=rs.GivenBins(EDGES)))
    assert_allclose(tripled["heterogeneity_ci"], 3 * found, rtol=1e-9)
    spread = rs.rhale(local_of(X, g), bins=rs.GivenBins(EDGES))["heterogeneity"]
    assert (found.sel(ci_bound="lower") < spread).all()
    assert (found.sel(ci_bound="upper") > spread).all()
    additive = rs.confint(rs.rhale(local_of(X, np.full_like(g, 2.0)), bins=rs.GivenBins(EDGES)))
    assert_array_equal(additive["heterogeneity_ci"], 0)
    assert_allclose(additive["effect_ci"], 2, rtol=1e-14)


FACTS = ("target", "source", "method", "kind", "ci_prob", "ci_kind", "long_name", "units")


@pytest.mark.thorough
@pytest.mark.parametrize("method", ["normal", "percentile", "basic", "bca", "studentized"])
def test_every_interval_says_what_it_is(method, table):
    local = local_of(*table[:2])
    effect = rs.std_error(rs.rhale(local, bins=rs.GivenBins(EDGES)))
    boot = None
    if method != "normal":
        boot = rs.bootstrap(local, effect, n_resamples=40, studentize=True, rng=0)
    found = rs.confint(effect, boot, level=0.8, method=method)
    names = [name for name in found.data_vars if str(name).endswith("_ci")]
    assert {"effect_ci", "heterogeneity_ci", "curve_ci"} <= set(names)
    assert "average_effect_ci" in names
    if boot is not None:
        # Totals have no standard error to studentize with.
        assert ("heterogeneity_index_ci" in names) == (method != "studentized")
    for name in names:
        attrs = found[name].attrs
        assert [fact for fact in FACTS if not attrs.get(fact)] == []
        assert attrs["kind"] == "pointwise"
        assert attrs["ci_prob"] == 0.8
        assert attrs["source"] == "rows"
        assert (method in attrs["method"]) == (method != "normal")
        assert found[name].dims[-1] == "ci_bound"
    band = rs.confband(effect, level=0.8, rng=0)
    for name in ("curve_band", "effect_band"):
        attrs = band[name].attrs
        assert [fact for fact in FACTS if not attrs.get(fact)] == []
        assert attrs["kind"] == "simultaneous over the axis"
    target = found["curve_ci"].attrs["target"]
    assert target == effect["curve_se"].attrs["target"] == band["curve_band"].attrs["target"]


def with_odd_features(rng):
    """A feature in five bins, one in two, and a constant one."""
    x = np.column_stack([rng.uniform(size=N), rng.integers(3, size=N), np.ones(N)])
    g = rng.normal(size=x.shape)
    local = local_of(x.astype(float), g, features=[0, 1, 2])
    edges = {"x0": [0, 0.2, 0.4, 0.6, 0.8, 1], "x1": [0, 1, 2], "x2": [0, 1]}
    return local, rs.rhale(local, bins=rs.GivenBins(edges))


@pytest.mark.parametrize("method", ["normal", "percentile", "basic", "bca", "studentized"])
def test_features_with_fewer_bins_and_without_any(method, rng):
    local, effect = with_odd_features(rng)
    boot = None
    if method != "normal":
        boot = rs.bootstrap(local, effect, n_resamples=40, studentize=True, rng=0)
    found = rs.confband(rs.confint(effect, boot, method=method), rng=0)
    assert_array_equal(effect["n_bins"], [5, 2, 0])
    for name in ("effect_ci", "heterogeneity_ci", "curve_ci", "effect_band", "curve_band"):
        known = np.isfinite(found[name]).all("ci_bound").sum(found[name].dims[1])
        if "curve" not in name:
            assert_array_equal(known, [5, 2, 0])
        elif name == "curve_ci" and boot is not None:  # at the edges of bins alone
            assert_array_equal(known, [6, 3, 0])
        else:
            assert_array_equal(known, np.isfinite(effect["edge_value"]).sum("edge"))
    known = np.isfinite(found["average_effect_ci"]).all("ci_bound")
    assert_array_equal(known, [True, True, False])
    if method == "normal":
        alone = rs.confint(effect.isel(feature=[1]))
        assert_array_equal(alone["effect_ci"][0], found["effect_ci"][1])
    grouped = rs.std_error(effect, local, groups=np.arange(N) // 4)
    assert_array_equal(np.isfinite(grouped["effect_se"]).sum("bin"), [5, 2, 0])
    assert rs.vcov(effect, "x2").shape == (0, 0)
    n_edges = int(np.isfinite(effect["edge_value"][1]).sum())
    assert rs.vcov(effect, "x1").shape == (n_edges, n_edges)


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:Bins without rows")
@WEIGHTINGS
@pytest.mark.parametrize("method", ["normal", "percentile", "basic", "bca", "studentized"])
def test_intervals_beside_a_gap(method, weighting, rng):
    x = np.concatenate([rng.uniform(0, 1, 50), rng.uniform(2, 4, 200)])[:, None]
    local = local_of(x, rng.normal(size=(250, 1)), features=0)
    effect = rs.rhale(local, bins=rs.GivenBins([0, 1, 2, 3, 4]), weighting=weighting)
    boot = None
    if method != "normal":
        boot = rs.bootstrap(local, effect, n_resamples=40, studentize=True, rng=0)
    found = rs.confint(effect, boot, method=method)
    for name in ("effect_ci", "heterogeneity_ci"):
        known = np.isfinite(found[name].values[0]).all(axis=-1)
        assert_array_equal(known, [True, False, True, True])
    known = np.isfinite(found.rhale.in_bins()["curve_ci"].values[0]).all(axis=-1)
    # The gap ends at the first row beyond 2, where cells know it.
    assert x[x > 1].min() > 2
    assert_array_equal(known, [False, False, weighting == "rows", True, True])


def test_unusable_intervals(table):
    local = local_of(*table[:2])
    effect = rs.rhale(local, bins=rs.GivenBins(EDGES))
    boot = rs.bootstrap(local, effect, n_resamples=8, rng=0)
    for level in (0, 1, 95):
        with pytest.raises(ValueError, match=f"level must lie .* got {level}"):
            rs.confint(effect, level=level)
        with pytest.raises(ValueError, match=f"level must lie .* got {level}"):
            rs.confband(effect, level=level)
    with pytest.raises(ValueError, match="method must be one of 'normal', .*; got 'wald'"):
        rs.confint(effect, method="wald")
    with pytest.raises(ValueError, match="standard errors for method 'studentized'"):
        rs.confint(effect, boot, method="studentized")
    again = rs.bootstrap(local, rs.rhale(local), n_resamples=4, rebin=True, rng=0)
    with pytest.raises(ValueError, match="chose them again"):
        rs.confint(effect, again)
    with pytest.raises(ValueError, match="n_draws must be at least 1; got 0"):
        rs.confband(effect, n_draws=0)


# --- bootstrap intervals against SciPy -----------------------------------------------------------


def one_bin(rng, n=60):
    """Local effects of one bin, skewed."""
    g = rng.standard_gamma(2, n)
    local = local_of(rng.uniform(size=(n, 1)), g[:, None], features=0)
    return g, local, rs.std_error(of_rows(local, bins=rs.EqualWidthBins(1)))


N_DRAWS = 4000


@pytest.fixture(scope="module")
def drawn():
    g, local, effect = one_bin(np.random.default_rng(20231))
    return g, effect, rs.bootstrap(local, effect, n_resamples=N_DRAWS, rng=1)


@pytest.mark.thorough
@pytest.mark.parametrize("method", ["percentile", "basic", "bca"])
@pytest.mark.parametrize("name", ["effect", "heterogeneity", "average_effect"])
def test_bootstrap_intervals_agree_with_scipy(method, name, drawn):
    """Draws of its own on either side: ends agree within the Monte-Carlo error of quantiles.

    Ours are expanded: SciPy is asked for the level that this comes to.
    """
    g, effect, boot = drawn
    n = N_DRAWS
    tail = stats.norm.sf(stats.t.ppf(0.95, 59) * np.sqrt(60 / 59))
    ours = rs.confint(effect, boot, level=0.9, method=method)[f"{name}_ci"].values.reshape(2)

    def statistic(x, axis):
        return np.std(x, axis=axis, ddof=1) if name == "heterogeneity" else np.mean(x, axis=axis)

    theirs = stats.bootstrap(
        (g,),
        statistic,
        n_resamples=n,
        confidence_level=1 - 2 * tail,
        method="BCa" if method == "bca" else method,
        rng=np.random.default_rng(2),
    )
    expected = np.array(theirs.confidence_interval)
    draws = theirs.bootstrap_distribution
    if name == "heterogeneity" and method == "basic":
        # Ours is on the log scale.
        expected = g.std(ddof=1) ** 2 / np.quantile(draws, [1 - tail, tail])
    if name == "average_effect" and method == "bca":
        # Ours corrects the bias only.
        expected = np.quantile(draws, [tail, 1 - tail])
        tolerance = 0.05
    else:
        # sqrt(p (1 - p) / n) over a normal density at that quantile, for both; bca shifts to one
        # further out. Accelerations differ by 1 / n: the jackknife's and the influence's.
        density = stats.norm.pdf(stats.norm.ppf(0.97)) / draws.std()
        tolerance = 4 * np.sqrt(2 * 0.05 * 0.95 / n) / density
        tolerance += (0.02 * draws.std()) * (method == "bca")
    assert_allclose(ours, expected, atol=tolerance)


def normal_bins(n=20):
    """Five bins of the same normal scores, the means of which have t intervals."""
    g = np.tile(stats.norm.ppf((np.arange(n) + 0.5) / n), 5)
    x = (np.arange(5 * n) + 0.5) / (5 * n)
    local = local_of(x[:, None], g[:, None], features=0)
    return local, rs.std_error(of_rows(local, bins=rs.EqualWidthBins(5)))


@pytest.mark.thorough
@pytest.mark.parametrize("scheme", ["multinomial", "bayesian", "poisson"])
def test_expanded_intervals_are_t_intervals_of_normal_rows(scheme):
    """By far: percentiles that are not expanded are 9 % shorter in bins of 20 rows."""
    local, effect = normal_bins()
    boot = rs.bootstrap(local, effect, n_resamples=N_DRAWS, scheme=scheme, rng=1)
    expected = rs.confint(effect)
    for method in ("percentile", "basic", "bca"):
        found = rs.confint(effect, boot, method=method)
        for name, n in (("effect_ci", 5), ("curve_ci", 6)):
            ratio = found[name].diff("ci_bound") / expected[name].diff("ci_bound")
            # Monte-Carlo error of both ends: sqrt(2 .02 .98 / 4000) / .05 / 4 = 1.6 % of the width;
            # replicates of 20 rows have somewhat heavier tails than normal ones.
            assert_allclose(ratio, 1, atol=4 * 0.016)
            assert float(ratio.mean()) == pytest.approx(1, abs=4 * 0.016 / np.sqrt(n) + 0.01)


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:Replicates vary")
@pytest.mark.parametrize("scheme", daily(["multinomial", "bayesian", "poisson"]))
def test_expanded_intervals_along_the_axis_are_t_intervals_of_normal_rows(scheme, rng):
    """In cells of five rows, which take their variance together with their neighbours."""
    local = local_of(rng.uniform(-1, 1, (60, 20)), rng.normal(size=(60, 20)))
    effect = rs.std_error(rs.rhale(local, bins=rs.EqualWidthBins(3)))
    assert float(unpacked(effect)["cell_n_effective"].median()) <= 7
    boot = rs.bootstrap(local, effect, n_resamples=400, scheme=scheme, rng=1, progress=False)
    found, expected = rs.confint(effect, boot), rs.confint(effect)
    for name in ("effect_ci", "curve_ci"):
        both = [one.rhale.in_bins()[name].diff("ci_bound") for one in (found, expected)]
        ratio = (both[0] / both[1]).values
        # Drawn numbers of n rows leave (1 - 1 / n^2) of the variance: 2 % of the width with 5.
        # Spreads of the cells' own rows and of their neighbours differ by chance, by 20 % in a bin.
        assert np.mean(ratio) == pytest.approx(1, abs=0.02 + 4 * 0.2 / np.sqrt(60))


def test_expanded_levels_by_hand():
    """Rows, and groups of rows: degrees of freedom are those of what was drawn."""
    local, effect = normal_bins()
    group = np.arange(100) % 25
    for options, degrees, factor in (
        ({}, 19, 100 / 99),
        ({"scheme": "bayesian"}, 19, 21 / 19),
        ({"scheme": "poisson"}, 19, 1.0),
        # Of the 25 groups, 20 have a row in a bin.
        ({"groups": group}, 19, 20 / 19),
        ({"groups": group, "scheme": "bayesian"}, 19, 21 / 19),
        ({"strata": np.arange(100) // 20}, 19, 100 / 95),
    ):
        boot = rs.bootstrap(local, effect, n_resamples=400, rng=1, **options)
        # Standard errors by groups do not make the replicates draw groups.
        known = rs.std_error(effect, local, groups=np.arange(100) // 2)
        tail = stats.norm.sf(stats.t.ppf(0.95, degrees) * np.sqrt(factor))
        draws = boot["effect"].values.reshape(400, 5)
        expected = np.quantile(draws, [tail, 1 - tail], axis=0, method="weibull").T
        for one in (effect, known):
            found = rs.confint(one, boot, level=0.9)["effect_ci"]
            assert_allclose(found[0], expected, rtol=1e-10)
            assert "expanded to Student's t" in found.attrs["method"]


@pytest.mark.filterwarnings("ignore:Bins without rows", "ignore:Replicates vary")
def test_levels_beyond_the_replicates_are_their_extremes():
    """Three rows: Phi(-4.3) = 9 in a million. One row has no interval, as without a bootstrap."""
    x = np.concatenate([np.linspace(0, 1, 40), [1.2, 1.5, 1.9, 2.5]])[:, None]
    local = local_of(x, np.sin(9 * x), features=0)
    effect = rs.rhale(local, bins=rs.GivenBins([0, 1.1, 2, 3]), centering="start")
    boot = rs.bootstrap(local, effect, n_resamples=200, rng=1)
    found = rs.confint(effect, boot)["effect_ci"].values[0]
    draws = boot["effect"].values.reshape(200, 3)[:, 1]
    assert_array_equal(found[1], [np.nanmin(draws), np.nanmax(draws)])
    assert np.isnan(found[2]).all()


def test_studentized_interval_agrees_with_the_t_interval(rng):
    """Of normal rows, whose pivot is Student's t, exactly; the bootstrap's is close to it."""
    g = stats.norm.ppf((np.arange(200) + 0.5) / 200)
    local = local_of(rng.permutation(np.linspace(0, 1, 200))[:, None], g[:, None], features=0)
    effect = rs.std_error(rs.rhale(local, bins=rs.EqualWidthBins(1)))
    boot = rs.bootstrap(local, effect, n_resamples=2000, studentize=True, rng=1)
    found = rs.confint(effect, boot, method="studentized")["effect_ci"].values.reshape(2)
    expected = rs.confint(effect)["effect_ci"].values.reshape(2)
    # Monte-Carlo error of a 2.5 % quantile: sqrt(.025 .975 / 2000) / .058 = .060.
    assert_allclose(found, expected, atol=4 * 0.062 * effect["effect_se"].item())


# --- bands ---------------------------------------------------------------------------------------


@pytest.mark.thorough
@KINDS
@CENTERINGS
def test_bands_are_wider_than_intervals(kind, centering, table):
    effect = rs.confband(
        rs.confint(symmetric(of_kind(kind, local_of(*table[:2]), centering))), n_draws=500, rng=0
    )
    for name in ("curve", "effect"):
        width = effect[[f"{name}_ci", f"{name}_band"]].diff("ci_bound")
        moves = (effect[f"{name}_se"] > 0).expand_dims(ci_bound=1, axis=-1).values
        band, interval = width[f"{name}_band"].values[moves], width[f"{name}_ci"].values[moves]
        # The band of a single bin is its interval.
        alone = (effect["n_bins"] == 1).values[:, None] & (name == "effect")
        alone = np.broadcast_to(alone, effect[f"{name}_se"].shape)[..., None][moves]
        assert (band > interval)[~alone].all()
        assert_allclose(band[alone], interval[alone], rtol=1e-12)
        middle = effect[f"{name}_band"].mean("ci_bound")
        assert_allclose(middle, effect[name], rtol=1e-9, atol=1e-12)


@pytest.mark.thorough
def test_bands_grow_with_the_level_and_repeat_themselves(table):
    effect = rs.std_error(rs.rhale(local_of(*table[:2]), bins=rs.GivenBins(EDGES)))
    widths = [
        rs.confband(effect, level=level, n_draws=2000, rng=0)["curve_band"].diff("ci_bound").values
        for level in (0.5, 0.8, 0.95, 0.99)
    ]
    known = np.isfinite(widths[0])  # features have other numbers of cells
    assert (np.diff(widths, axis=0) > 0)[:, known].all()
    few = partial(rs.confband, effect, n_draws=200)
    xr.testing.assert_identical(few(rng=5), few(rng=5))
    assert not few(rng=5).equals(few(rng=6))


def test_band_of_one_edge_is_the_interval(rng):
    """One bin and a zero-start curve: all that varies is its end, and its effect."""
    local = local_of(rng.uniform(size=(60, 1)), rng.normal(size=(60, 1)), features=0)
    effect = of_rows(local, bins=rs.EqualWidthBins(1), centering="start")
    n_draws = 50_000
    found = rs.confband(rs.confint(effect), n_draws=n_draws, rng=0)
    exact = stats.t(59)
    error = np.sqrt(0.05 * 0.95 / n_draws) / (2 * exact.pdf(exact.ppf(0.975)))
    for name, at in (("curve", 1), ("effect", 0)):
        band = np.diff(found[f"{name}_band"].values[0, at])
        interval = np.diff(found[f"{name}_ci"].values[0, at])
        assert_allclose(band / interval, 1, atol=4 * error / exact.ppf(0.975))
    assert_array_equal(found["curve_band"].values[0, 0], 0)


@WEIGHTINGS
def test_band_of_independent_effects(weighting, table):
    """Bins are independent: all |t| are below their q in 95 %, and each alike often."""
    effect = rs.confband(symmetric(lines(local_of(*table[:2]), weighting=weighting)), rng=0)
    row = one_feature(effect, 0)
    degrees = row.n_effective - 1 - (row["slope"].values != 0)
    if weighting == "axis":
        edges, of, variance, own, n = cells_of(row)
        degrees = shared_degrees(along(edges, of) ** 2 * variance / n, own, n)
    q = np.diff(row["effect_band"].values)[:, 0] / 2 / row["effect_se"].values
    inside = 1 - 2 * stats.t.sf(q, degrees)
    assert_allclose(inside, 0.95 ** (1 / row.sizes["bin"]), rtol=1e-11)


@pytest.mark.thorough
@pytest.mark.parametrize("centering", ["mean", "start", "integral"])
def test_bands_of_the_curve_do_not_depend_on_the_bins(centering, table):
    """They hold at all edges of cells, most of which have a wider band than interval."""
    local = local_of(*table[:2])
    bands = []
    for n_bins in (1, 2, 4):
        effect = rs.rhale(local, bins=rs.EqualWidthBins(n_bins), centering=centering)
        found = one_feature(rs.confband(rs.confint(effect), n_draws=4000, rng=0), 0)
        width = np.diff(found["curve_band"].values)[:, 0]
        narrow = np.diff(found["curve_ci"].values)[:, 0]
        assert np.isfinite(width).all()
        assert (width[narrow > 0] > narrow[narrow > 0]).all()
        bands.append(found["curve_band"].values[[0, -1]])
    # Cells of other bins have other edges, if only a few: a band is as wide to 10 %.
    for band in bands[:-1]:
        assert_allclose(np.diff(band), np.diff(bands[-1]), rtol=0.1)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["constant", "linear"])
def test_every_edge_of_a_band_has_its_own_degrees_of_freedom(kind, table):
    """One level for all edges: the tail of half the width by Student's t is everywhere the same."""
    effect = rs.confband(symmetric(of_kind(kind, local_of(*table[:2]))), rng=0)
    for number in (0, 1):
        row = one_feature(effect, number)
        fit = row.fit
        half = np.diff(row["curve_band"].values)[:, 0] / 2 / row["curve_se"].values
        tails = stats.t.sf(half, fit.curve_degrees(row["edge_value"].values))
        assert np.ptp(half) > 1e-4
        assert_allclose(tails, tails[0], rtol=1e-6)


@pytest.mark.thorough
def test_bands_follow_units(table):
    """Another scale of the feature and of the output scales the band: by powers of two, exactly."""
    X, g, _ = table
    bands = [
        rs.confband(
            rs.rhale(local_of(a * X, b * g), bins=rs.GivenBins(a * EDGES)), n_draws=500, rng=0
        )
        for a, b in ((1.0, 1.0), (4.0, 8.0))
    ]
    for name, factor in (("curve_band", 32.0), ("effect_band", 8.0)):
        assert_allclose(bands[1][name], factor * bands[0][name], rtol=1e-9)


def test_bands_of_what_is_known_exactly():
    x = np.linspace(0, 1, 50)[:, None]
    effect = rs.rhale(
        local_of(x, np.full((50, 1), 3.0), features=0),
        bins=rs.EqualWidthBins(3),
        centering="start",
    )
    found = rs.confband(rs.confint(effect), rng=0)
    assert_allclose(found["curve_band"], found["curve_ci"], atol=1e-14)
    assert_allclose(found["curve_band"].sel(ci_bound="lower"), found["curve"], atol=1e-14)
    assert_allclose(found["effect_band"], 3, rtol=1e-14)
