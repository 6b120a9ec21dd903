"""What standard errors of one feature are made from, by hand."""

from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr
from numpy.testing import assert_allclose

import rhale_stats as rs
from rhale_stats.effects.fit import (
    at_edges,
    bends,
    bin_degrees,
    fit_of,
    group_degrees,
    group_overlap,
    interpolation,
    row_degrees,
    spread_degrees,
)
from rhale_stats.schema.features import one_feature

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
    found = at_edges(np.array([1.0, 2.0, 3.0]), SimpleNamespace(n_bins=5, there=slice(2, 5)))
    np.testing.assert_array_equal(found, [NAN, NAN, 1, 2, 3, NAN])


def test_degrees_of_the_spread():
    """One is of the mean of a bin and one of its slope; there are no less than none."""
    row = xr.Dataset({"n_effective": ("bin", [10.0, 10.0, 1.0, 0.0])}, {"feature_kind": "numeric"})
    assert spread_degrees(row).tolist() == [9, 9, 0, 0]
    row["slope"] = "bin", [0.0, -2.0, 1.0, 0.0]
    assert spread_degrees(row).tolist() == [9, 8, 0, 0]


def test_degrees_of_groups():
    """Their own, or of older results one less than the groups."""
    row = xr.Dataset(
        {"effect": ("bin", np.zeros(3)), "heterogeneity": ("bin", np.zeros(3))},
        {"feature_kind": "numeric"},
        {"n_groups": 8},
    )
    assert group_degrees(row, "effect").tolist() == [7, 7, 7]
    assert_allclose(group_overlap(row), np.full((3, 3), 1 / 7))
    known = row.assign(
        effect_df=("bin", [5.0, 6.0, 7.0]), effect_overlap=(("bin", "other"), np.eye(3) / 6)
    )
    assert group_degrees(known, "effect").tolist() == [5, 6, 7]
    assert_allclose(group_overlap(known), np.eye(3) / 6)


def test_degrees_of_the_mean_over_the_rows():
    """Kish's number of rows less one: 1 / sum of shares^2 / n."""
    row = xr.Dataset(
        {"n_effective": ("bin", [10.0, 30.0, 0.0]), "weight_share": ("bin", [0.25, 0.75, 0.0])},
        {"feature_kind": "numeric"},
    )
    assert row_degrees(row) == pytest.approx(39)
    assert np.isnan(row_degrees(row.assign(weight_share=("bin", np.zeros(3)))))
    levels = row.rename(n_effective="n_level_effective", weight_share="level_share")
    assert row_degrees(levels.assign_coords(feature_kind="nominal")) == pytest.approx(39)


@pytest.mark.parametrize("centering", ["mean", "start", "integral"])
def test_the_covariance_of_a_curve_has_its_variance(centering, rng):
    """And degrees of freedom by cells are at least those with the places of the rows."""
    x = rng.uniform(-1, 1, (300, 1))
    g = 1 + x + rng.normal(size=(300, 1))
    local = rs.local_effects(None, x, jacobian=g)
    effect = rs.rhale(local, bins=rs.EqualWidthBins(3), weighting="rows", centering=centering)
    effect = rs.std_error(effect)
    row = one_feature(effect, 0)
    fit = fit_of(row)
    z = np.array([-0.9, -0.2, 0.1, 0.8])
    assert_allclose(fit.variance(z), np.diagonal(fit.covariance(z)), rtol=1e-10)
    assert (fit.there, fit.n_bins) == (slice(0, 4), 3)
    assert_allclose(fit.edges, row["edge_value"])
    assert_allclose(bin_degrees(row), row["n_obs"].values - 1)
    # Of one bin alone the variance from the start has its degrees of freedom.
    if centering == "start":
        at = np.array([fit.edges[0] + 0.3])
        n = float(row["n_obs"][0])
        assert_allclose(fit.variance(at), 0.3**2 * row["effect_se"].values[0] ** 2)
        assert_allclose(fit.degrees_by_cell(at), n - 1)
        assert_allclose(fit.curve_degrees(at), n - 1)
        assert_allclose(fit.variance_of_effects()[1:2], fit.variance(fit.edges[1:2]))
