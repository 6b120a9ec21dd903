"""Estimates and standard errors at points: those of the bins, and between edges."""

import numpy as np
import pytest
import statsmodels.api as sm
import xarray as xr
from numpy.testing import assert_allclose

import rhale_stats as rs
from rhale_stats.arrays.cell_moments import FIELDS
from rhale_stats.effects.errors import errors_at, own_error, values_at
from rhale_stats.effects.fit import noise_in_the_middle
from rhale_stats.schema.feature_result import one_feature
from tests.helpers import changed, row_of

EDGES = np.array([-1, -0.4, 0.3, 1])
MIDDLES = (EDGES[:-1] + EDGES[1:]) / 2
NAMES = ("effect", "heterogeneity", "curve", "average_effect")


def local(n=400):
    rng = np.random.default_rng(3)
    x = rng.uniform(-1, 1, (n, 1))
    return rs.local_effects(None, x, jacobian=4 * x + rng.normal(size=(n, 1))), rng.integers(
        30, size=n
    )


@pytest.fixture(scope="module", params=["rows", "axis"])
def constant(request):
    found, group = local()
    effect = rs.rhale(found, bins=rs.GivenBins(EDGES), weighting=request.param)
    return effect, found, group


def test_errors_by_rows(constant):
    """In a bin with one effect those of the bin, and at edges those of the curve."""
    row = one_feature(rs.std_error(constant[0]), 0)
    known = one_feature(constant[0], 0)
    for z in (MIDDLES, MIDDLES + 0.1):
        found = errors_at(known, z)
        assert_allclose(found["effect"], row["effect_se"])
        assert_allclose(found["heterogeneity"], row["heterogeneity_se"])
    ends = known["edge_value"].values
    assert_allclose(errors_at(known, ends)["curve"], row["curve_se"], atol=1e-12)
    assert_allclose(errors_at(known, ends)["average_effect"], row["average_effect_se"])
    assert_allclose(errors_at(known, MIDDLES)["curve"], np.sqrt(known.fit.variance(MIDDLES)))


@pytest.mark.parametrize("grouped", [False, True])
def test_nothing_is_known_outside_of_the_bins(constant, grouped):
    effect, rows, group = constant
    effect = rs.std_error(effect, rows, groups=group) if grouped else effect
    row = one_feature(effect, 0)
    ends = row["edge_value"].values[[0, -1]]
    beyond = ends + np.array([-1e-6, 1e-6])
    found = errors_at(row, beyond)
    values = values_at(row, beyond)
    for name in NAMES[:3]:
        assert np.isnan(found[name]).all()
        assert name == "curve" or np.isnan(values[name]).all()
        assert np.isfinite(errors_at(row, ends)[name]).all()
        assert np.isfinite(values_at(row, ends)[name]).all()


def test_errors_by_groups(constant):
    effect, rows, group = constant
    row = one_feature(rs.std_error(effect, rows, groups=group), 0)
    found = errors_at(row, MIDDLES)
    assert_allclose(found["effect"], row["effect_se"])
    assert_allclose(found["heterogeneity"], row["heterogeneity_se"])
    assert found["average_effect"] == float(row["average_effect_se"])
    assert_allclose(errors_at(row, row["edge_value"].values)["curve"], row["curve_se"], atol=1e-12)
    # Without any edge where it is known.
    none = changed(row, curve_se=row["curve_se"] * np.nan)
    assert np.isnan(errors_at(none, MIDDLES)["curve"]).all()


def dense_on_the_left(weighting, grouped):
    """A line in one bin, whose rows are denser on its left side, and rows in groups."""
    rng = np.random.default_rng(3)
    n, x = 400, 2 * np.sort(rng.beta(1, 3, 400)) - 1
    group = rng.integers(30, size=n)
    g = 4 * x + rng.normal(size=n) + rng.normal(size=30)[group]
    rows = rs.local_effects(None, x[:, None], jacobian=g[:, None])
    bins = rs.AdaptiveBins(20, min_obs=30, penalty=0.5)
    effect = rs.rhale(rows, bins=bins, weighting=weighting)
    effect = rs.std_error(effect, rows, groups=group) if grouped else rs.std_error(effect)
    row = one_feature(effect, 0)
    assert row["slope"].shape == (1,)
    assert row["slope"].values.all()
    return row, x, g, group


PLACES = [-0.99, -0.5, -0.3, 0.0, 0.7]


@pytest.mark.parametrize("grouped", [False, True])
def test_errors_of_lines_are_those_of_regressions(grouped):
    """They are smallest where the rows are, and not in the middle of the bin."""
    row, x, g, group = dense_on_the_left("rows", grouped)
    how = ("cluster", {"groups": group}) if grouped else ("HC2", {})
    expected = [
        sm.OLS(g, sm.add_constant(x - place)).fit(cov_type=how[0], cov_kwds=how[1]).bse[0]
        for place in PLACES
    ]
    # Corrections for small samples differ by about one in the number of rows or groups.
    found = errors_at(row, np.array(PLACES))["effect"]
    assert_allclose(found, expected, rtol=0.02 if grouped else 0.005)


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("weighting", ["rows", "axis"])
def test_errors_of_lines_by_their_covariance(weighting, grouped):
    """var(m + a s) = var(m) + 2 a cov(m, s) + a^2 var(s)."""
    row, *_ = dense_on_the_left(weighting, grouped)
    away = np.array(PLACES) - row.bin_edges.mean()
    mean, shared, slope = (float(one[0]) for one in noise_in_the_middle(row))
    expected = np.sqrt(mean + 2 * away * shared + away**2 * slope)
    assert_allclose(errors_at(row, np.array(PLACES))["effect"], expected, rtol=1e-9)


def test_errors_of_lines_whose_covariance_is_unknown():
    """As if the slope and the mean of the rows were uncorrelated, with a correlation up to 1."""
    row, x, *_ = dense_on_the_left("rows", grouped=True)
    row = changed(row, drop=["effect_slope_cov"])
    off = row.bin_edges.mean() - x.mean()
    away = np.array(PLACES) - row.bin_edges.mean()
    effect_se, slope_se = float(row["effect_se"][0]), float(row["slope_se"][0])
    shared = min(off * slope_se**2, effect_se * slope_se)
    expected = np.sqrt(effect_se**2 + 2 * away * shared + away**2 * slope_se**2)
    assert_allclose(errors_at(row, np.array(PLACES))["effect"], expected)


def test_errors_that_are_not_of_rows_are_unknown(constant):
    row = one_feature(constant[0], 0)
    assert errors_at(changed(row, attrs={"debiased": "yes"}), MIDDLES) == {}
    refitted = changed(
        row,
        attrs={"debiased": "yes"},
        curve_se=("edge", np.ones(row.sizes["edge"]), {"source": "refit"}),
    )
    assert errors_at(refitted, MIDDLES) == {}


def test_the_part_of_the_rows_is_taken():
    errors = {"average_effect_se": 3.0, "average_effect_se_rows": 2.0}
    row = row_of(xr.Dataset(errors))
    assert own_error(row, "average_effect_se") == 2
    alone = changed(row, drop=["average_effect_se_rows"])
    assert own_error(alone, "average_effect_se") == 3


def test_stored_errors_between_edges():
    """Without slopes those of the bin everywhere in it; of the curve on straight lines."""
    moments = np.zeros((3, len(FIELDS)))
    moments[:2, :4] = [[7, 7, 7, 0.5], [7, 7, 7, 2.0]]  # rows, weights, mean of x
    row = row_of(
        xr.Dataset(
            {
                "effect": ("bin", [1.0, 2.0]),
                "heterogeneity": ("bin", [0.5, 0.25]),
                "moments": (("edge", "moment"), moments),
                "effect_se": ("bin", [0.1, 0.2]),
                "heterogeneity_se": ("bin", [0.3, 0.4]),
                "curve": ("edge", [0.0, 1.0, 5.0]),
                "curve_se": ("edge", [0.0, 0.5, np.nan], {"source": "rows in 9 groups"}),
                "average_effect_se": 0.7,
            },
            {
                "edge_value": ("edge", [0.0, 1.0, 3.0]),
                "bin_left": ("bin", [0.0, 1.0]),
                "bin_right": ("bin", [1.0, 3.0]),
                "feature_kind": "numeric",
            },
            {"n_groups": 9, "method": "rhale"},
        )
    )
    z = np.array([0.0, 0.25, 0.5, 1.0, 2.9])
    found = errors_at(row, z)
    assert_allclose(found["effect"], [0.1, 0.1, 0.1, 0.2, 0.2])
    assert_allclose(found["heterogeneity"], [0.3, 0.3, 0.3, 0.4, 0.4])
    assert_allclose(found["curve"], [0, 0.125, 0.25, 0.5, np.nan])
    assert found["average_effect"] == 0.7
    # Of a line: var(m) + 2 a cov(m, s) + a^2 var(s) with the correlation of both.
    line = changed(row,
        slope=("bin", [1.0, 0.0]), slope_se=("bin", [0.4, 0.0]),
        effect_slope_correlation=("bin", [-0.5, 0.0]),
    )  # fmt: skip
    away = z[:3] - 0.5
    expected = np.sqrt(0.01 - 2 * away * 0.5 * 0.1 * 0.4 + away**2 * 0.16)
    assert_allclose(errors_at(line, z)["effect"], [*expected, 0.2, 0.2])
