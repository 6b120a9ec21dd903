"""What standard errors of one feature are made from, by hand."""

from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr
from numpy.testing import assert_allclose

import rhale_stats as rs
from rhale_stats.effects.fit import (
    average_degrees,
    bends,
    bin_degrees,
    curve_covariance,
    curve_degrees,
    group_degrees,
    group_overlap,
    interpolation,
    noise_in_the_middle,
    row_spread_degrees,
    spread_degrees,
    spread_rows,
)
from rhale_stats.schema.curves import CurveCells
from rhale_stats.schema.feature_result import one_feature
from tests.helpers import changed, local_of, row_of

NAN = np.nan


def test_interpolation_is_that_of_numpy():
    edges, z = np.array([0.0, 1.0, 4.0]), np.array([0.0, 0.25, 1.0, 3.0, 4.0])
    curve = np.array([3.0, -1.0, 7.0])
    assert_allclose(interpolation(edges, z) @ curve, np.interp(z, edges, curve))
    assert interpolation(edges, z).shape == (5, 3)


def test_curves_of_lines_are_below_the_line_through_their_ends():
    """x^2 / 2 has slope 1: it is below its chord."""
    edges, z = np.array([0.0, 1.0, 4.0]), np.array([0.25, 1.0, 3.0, 4.0])
    chord = np.interp(z, edges, edges**2 / 2)
    found = bends(edges, z)
    assert_allclose(found.sum(axis=1), chord - z**2 / 2)
    assert (found[2:, 0] == 0).all()
    assert found[0, 1] == 0


def test_values_at_edges_are_unknown_beyond_the_curve():
    cells = SimpleNamespace(bin=np.zeros(5), stretch=slice(2, 4))
    found = CurveCells.at_edges(cells, np.array([1.0, 2.0, 3.0]))
    np.testing.assert_array_equal(found, [NAN, NAN, 1, 2, 3, NAN])


def test_degrees_of_the_spread():
    """One is of the mean of a bin and one of its slope; there are no less than none."""
    n, slopes = np.array([10.0, 10.0, 1.0, 0.0]), np.zeros(4)
    bins = SimpleNamespace(n_effective=n, slopes=slopes, squares=None)
    assert row_spread_degrees(bins).tolist() == [9, 9, 0, 0]
    bins.slopes = np.array([0.0, -2.0, 1.0, 0.0])
    assert row_spread_degrees(bins).tolist() == [9, 8, 0, 0]


def test_degrees_of_groups():
    row = row_of(
        xr.Dataset(
            {"effect_df": ("bin", [5, 6, 7]), "effect_overlap": (("bin", "other"), np.eye(3) / 6)}
        )
    )
    assert group_degrees(row, "effect").tolist() == [5, 6, 7]
    assert group_degrees(row, "effect").dtype == np.float64
    assert_allclose(group_overlap(row), np.eye(3) / 6)


def test_degrees_of_the_mean_over_the_rows():
    """Kish's number of rows less one: 1 / sum of shares^2 / n."""
    share, n = np.array([0.25, 0.75, 0.0]), np.array([10.0, 30.0, 0.0])
    features = SimpleNamespace(
        n_effective=None, padded=lambda *_: np.stack([n, n]), has_levels=np.zeros(2, dtype=bool),
        pieces=SimpleNamespace(share=np.stack([share, 0 * share])),
        source=xr.Dataset(), variables={},
    )  # fmt: skip
    assert_allclose(average_degrees(features), [39, NAN])
    # Of levels the numbers of steps do not count.
    features.has_levels = np.ones(2, dtype=bool)
    features.variables = {
        "level_share": xr.Variable(("feature", "edge"), [share, share]),
        "n_level_effective": xr.Variable(("feature", "edge"), [n, n]),
    }
    assert_allclose(average_degrees(features), [39, 39])


@pytest.mark.parametrize("centering", ["mean", "start", "integral"])
def test_the_covariance_of_a_curve_has_its_variance(centering, rng):
    """And degrees of freedom by cells are at least those with the places of the rows."""
    x = rng.uniform(-1, 1, (300, 1))
    g = 1 + x + rng.normal(size=(300, 1))
    local = rs.local_effects(None, x, jacobian=g)
    effect = rs.rhale(local, bins=rs.EqualWidthBins(3), weighting="rows", centering=centering)
    effect = rs.std_error(effect)
    row = one_feature(effect, 0)
    fit = row.fit
    z = np.array([-0.9, -0.2, 0.1, 0.8])
    assert_allclose(fit.variance(z), np.diagonal(fit.covariance(z)), rtol=1e-10)
    edges = fit.pieces.edges
    assert (fit.cells.edge_stretch, fit.cells.n_bins) == (slice(0, 4), 3)
    assert_allclose(edges, row.bin_edges)
    assert_allclose(bin_degrees(row), row["n_obs"].values - 1)
    # Of one bin alone the variance from the start has its degrees of freedom.
    if centering == "start":
        at = np.array([edges[0] + 0.3])
        n = float(row["n_obs"][0])
        assert_allclose(fit.variance(at), 0.3**2 * row["effect_se"].values[0] ** 2)
        assert_allclose(fit.degrees_by_cell(at), n - 1)
        assert_allclose(fit.curve_degrees(at), n - 1)


def test_a_curve_between_edges_only(rng):
    """Most rows are inside of a bin, with gaps at both sides: none of its edges has a curve."""
    tail = np.linspace(0, 0.1, 5)
    x = np.concatenate([tail, rng.uniform(4.5, 5.5, 60), 9.9 + tail])[:, None]
    local = rs.local_effects(None, x, jacobian=1 + rng.normal(size=x.shape))
    with pytest.warns(UserWarning, match="Gaps without rows: 'x0' \\(from "):
        effect = rs.std_error(rs.rhale(local, bins=rs.GivenBins([0, 10])))
    row = one_feature(effect, 0)
    fit, edges = row.fit, row.fit.pieces.edges
    assert np.isnan(row.at_bins("curve")).all()
    assert np.isnan(row.at_bins("curve_se")).all()
    known = np.isfinite(row["curve_se"].values)
    assert_allclose(known.sum(), len(edges))
    assert known.sum() > 2
    np.testing.assert_array_equal(np.isfinite(row["curve"].values), known)
    assert_allclose(fit.cells.at_edges(edges)[known], edges)
    assert np.isnan(fit.cells.at_edges(edges)[~known]).all()


def test_degrees_under_precision_weights():
    """Of the spread by the rows that its squares count as; without a bin there are none."""
    rng = np.random.default_rng(0)
    x, w = rng.uniform(0, 2, 80), rng.uniform(0.2, 3, 80)
    g = rng.normal(size=80) * w
    columns = np.column_stack([x, np.ones(80)]), np.column_stack([g, g])
    local = local_of(*columns, weights=w)
    effect = rs.rhale(local, bins=rs.GivenBins({"x0": [0, 1, 2], "x1": [0, 2]}), weighting="rows")
    row, other = one_feature(effect, 0), one_feature(effect, 1)
    assert bin_degrees(other).shape == (0,)
    found, n = spread_rows(row.together), row.n_effective
    for b, there in enumerate((x < 1, x >= 1)):
        v, own = w[there] / w[there].sum(), g[there]
        square = (own - v @ own) ** 2
        usual = v @ square**2 - (v @ square) ** 2
        # By squared weights: the variance of the weighted mean of squares.
        ours = np.sum(v**2 * (square - v @ square) ** 2) / np.sum(v**2)
        assert_allclose(found[b], n[b] * usual / ours, rtol=1e-9)
    assert_allclose(spread_degrees(row), (n - 1) * found / n)
    none = changed(row, drop=["squares"])
    assert_allclose(spread_rows(none.together), n)
    assert_allclose(spread_degrees(none), n - 1)


def test_noise_in_the_middle_of_lines():
    """Stored by groups; by rows that of the mean and the slope, moved to the middle."""
    row = row_of(
        xr.Dataset(
            {
                "slope_cov": (("bin", "other"), np.diag([4.0, 9.0])),
                "effect_slope_cov": (("bin", "other"), [[0.5, 7.0], [8.0, -0.25]]),
                "effect_se": ("bin", [1.0, 2.0]),
                "slope_se": ("bin", [2.0, 3.0]),
            }
        )
    )
    found = noise_in_the_middle(row)
    assert [one.tolist() for one in found] == [[1, 4], [0.5, -0.25], [4, 9]]
    rng = np.random.default_rng(0)
    x = rng.beta(1, 3, 200)[:, None]
    local = rs.local_effects(None, x, jacobian=4 * x + rng.normal(size=x.shape) / 4)
    effect = rs.std_error(rs.rhale(local, bins=rs.AdaptiveBins(20), weighting="rows"))
    row = one_feature(effect, 0)
    noise, away = row.bin_noise, row.pieces.away()
    assert row["slope"].values.all()
    found = noise_in_the_middle(row)
    assert_allclose(found.covariance, noise.covariance + away * noise.slope)
    assert_allclose(found.slope, noise.slope)
    mean = noise.mean + 2 * away * noise.covariance + away**2 * noise.slope
    assert_allclose(found.mean, mean)
    known = changed(row, effect_slope_correlation=("bin", np.full(row.sizes["bin"], 0.25)))
    expected = 0.25 * row["effect_se"].values * np.sqrt(noise.slope)
    assert_allclose(noise_in_the_middle(known).covariance, expected)


@pytest.mark.parametrize("weighting", ["axis", "rows"])
def test_covariances_of_groups_between_edges(weighting):
    """From those at edges, which they agree with; of levels on the lines between them."""
    rng = np.random.default_rng(1)
    x = rng.uniform(0, 1, (120, 1))
    local = rs.local_effects(None, x, jacobian=4 * x + rng.normal(size=x.shape))
    effect = rs.rhale(local, bins=rs.GivenBins([0, 0.5, 1]), weighting=weighting)
    row = one_feature(rs.std_error(effect, local, groups=np.arange(120) // 4), 0)
    fit = row.fit
    edges, whole, known = fit.pieces.edges, row["curve_cov"].values, row["curve_df"].values
    assert (len(edges) > 3) == (weighting == "axis")
    assert_allclose(curve_covariance(row, fit, edges), whole, atol=1e-14)
    middle = (edges[1:] + edges[:-1]) / 2
    halves = (np.eye(len(whole))[1:] + np.eye(len(whole))[:-1]) / 2
    assert_allclose(curve_covariance(row, fit, middle), halves @ whole @ halves.T, atol=1e-14)
    assert_allclose(curve_degrees(row, fit, middle), (known[1:] + known[:-1]) / 2)
