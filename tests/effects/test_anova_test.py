"""Tests of steps between levels, which share rows, by dense matrices."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
import xarray as xr
from numpy.testing import assert_allclose
from scipy import stats

import rhale_stats as rs
from rhale_stats.arrays import quadratic
from rhale_stats.effects.anova_test import (
    MAX_DF,
    BinSelection,
    _degrees_together,
    _rows_in,
    _weights,
    anova_test,
    fill_spread,
)
from rhale_stats.effects.fit import bin_degrees, group_overlap
from rhale_stats.effects.hypotheses import _correlated, _degrees_of_matrix, _moved
from rhale_stats.inference.meaning import NO_ROWS, RIGID
from rhale_stats.inference.results import against_f
from rhale_stats.schema.feature_result import one_feature
from tests.bins.test_adaptive import Lines
from tests.helpers import changed, local_of, row_of


@dataclass
class _Cells:
    variance: np.ndarray
    degrees: np.ndarray


@pytest.fixture(scope="module", name="levels")
def _levels():
    """Steps between four levels with other numbers of rows, as one feature of an effect."""
    rng = np.random.default_rng(2)
    X = np.column_stack([rng.choice(4, 90, p=[0.1, 0.2, 0.3, 0.4]), rng.normal(size=90)])

    def model(X):
        return 0.3 * X[:, 0] + X[:, 0] ** 1.5 * X[:, 1]

    local = rs.ale_local_effects(model, X, features=0, categorical=0)
    effect = rs.ale_from_local(local)
    grouped = rs.std_error(effect, local, groups=rng.integers(12, size=90))
    return one_feature(rs.std_error(effect), 0), one_feature(grouped, 0)


def expected_box(row, null):
    d, n, v = row["effect"].values, row.n_effective, row.effect_cov
    w = np.diag(n) if null == "zero" else np.diag(n) - np.outer(n, n) / n.sum()
    whole = np.trace(w @ v)
    return d @ w @ d / whole, whole**2 / np.trace(w @ v @ w @ v), w, whole


@pytest.mark.parametrize("null", ["zero", "constant"])
def test_box_of_steps(levels, null):
    row = levels[0]
    statistic, degrees, w, whole = expected_box(row, null)
    own = np.diagonal(w) * np.diagonal(row.effect_cov)
    denominator = whole**2 / np.sum(own**2 / bin_degrees(row))
    found = anova_test(row, null)
    assert_allclose(
        [found.statistic, found.df, found.df_denominator], [statistic, degrees, denominator]
    )
    assert found.p_value == pytest.approx(stats.f.sf(statistic, degrees, denominator))
    # What is left of the square without noise, by row.
    left = (statistic - 1) * whole / row.n_effective.sum()
    assert found.size == pytest.approx(np.sqrt(max(left, 0)))


@pytest.mark.parametrize("null", ["zero", "constant"])
def test_box_of_steps_by_groups(levels, null):
    row = levels[1]
    statistic, degrees, w, whole = expected_box(row, null)
    parts = np.diagonal(w @ row.effect_cov)
    found = anova_test(row, null)
    assert_allclose([found.statistic, found.df], [statistic, degrees])
    denominator = whole**2 / (parts @ group_overlap(row) @ parts)
    assert found.df_denominator == pytest.approx(denominator)
    left = (statistic - 1) * whole / row.n_effective.sum()
    assert found.size == pytest.approx(np.sqrt(max(left, 0)))


def test_degrees_together_are_finite(levels):
    row = levels[1]
    parts = np.array([1.0, 2.0, 0.5])
    assert_allclose(_degrees_together(row, parts), 3.5**2 / (parts @ group_overlap(row) @ parts))
    none = changed(row, effect_overlap=row["effect_overlap"] * 0)
    assert _degrees_together(none, parts) == MAX_DF


@pytest.mark.parametrize("error", [0.0, 0.3])
@pytest.mark.parametrize("null", ["zero", "constant"])
def test_normal_scores_of_steps_with_their_correlation(levels, null, error):
    """Normal values with the p-values of Student's t, and chi-squared.

    A numerical error of the local effects adds its square to every variance.
    """
    row = levels[0]
    if error:
        row = changed(row, local_effect_error=error)
    d, v = row["effect"].values, row.effect_cov + error**2 * np.eye(3)
    contrast = np.eye(3) if null == "zero" else np.array([[-1.0, 1, 0], [0, -1, 1]])
    own, free = np.diagonal(v), bin_degrees(row)
    degrees = [
        (c**2 @ own) ** 2 / sum(c[k] ** 4 * own[k] ** 2 / free[k] for k in range(3))
        for c in contrast
    ]
    value, covariance = contrast @ d, contrast @ v @ contrast.T
    se = np.sqrt(np.diagonal(covariance))
    score = stats.norm.ppf(stats.t.cdf(value / se, degrees))
    statistic = score @ np.linalg.solve(covariance / np.outer(se, se), score)
    found = _correlated(row, null)
    assert_allclose(found.statistic, statistic, rtol=1e-8)
    assert found.df == len(contrast)
    assert_allclose(found.p_value, stats.chi2.sf(statistic, len(contrast)), rtol=1e-7)


def test_directions_with_an_error_are_kept():
    """Of two estimates that move together only their sum has an error."""
    covariance = np.array([[1.0, 1.0], [1.0, 1.0 + 1e-13]])
    value, kept = _moved(np.array([3.0, 1.0]), covariance, 2.0)
    assert_allclose(kept, [[2]])
    assert_allclose(np.abs(value), [4 / np.sqrt(2)])
    value, kept = _moved(np.array([3.0, 1.0]), np.diag([1.0, 0.5]), 2.0)
    assert sorted(np.abs(value)) == [1, 3]
    # What has an error is compared with the whole variance.
    assert len(_moved(np.array([3.0, 1.0]), np.diag([1.0, 0.5]), 1e12)[0]) == 0


def test_degrees_of_a_matrix_of_independent_contrasts(levels):
    """q (q + 1) over the sum and the trace of what contrasts have in common."""
    row = levels[1]
    overlap = group_overlap(row)
    steps_alone = BinSelection.of_feature(row)
    expected = 12 / (overlap.sum() + np.trace(overlap))
    assert_allclose(_degrees_of_matrix(row, np.eye(3), steps_alone), expected)
    steps = np.array([[-1.0, 1, 0], [0, -1, 1]])
    mixed = np.abs(steps) / 2 @ overlap @ np.abs(steps).T / 2
    expected = 6 / (mixed.sum() + np.trace(mixed))
    assert_allclose(_degrees_of_matrix(row, steps, steps_alone), expected)


def test_without_degrees_of_freedom_there_is_no_test():
    found = quadratic.QuadraticForm(2.0, 3.0, 1.5, np.ones(3), 0.5)
    for denominator in (0.0, np.nan):
        none = against_f(found, denominator, 9.0)
        assert (none.df, none.reason) == (0, NO_ROWS)
        assert np.isnan([none.statistic, none.p_value, none.df_denominator, none.size]).all()
    test = against_f(found, 7.0, 9.0)
    assert (test.statistic, test.df, test.df_denominator, test.reason) == (2, 3, 7, "")
    assert test.p_value == pytest.approx(stats.f.sf(2, 3, 7))
    # The square is 3, of which 1.5 is noise, of nine rows.
    assert test.size == pytest.approx(np.sqrt(1.5 / 9))
    assert_allclose(test.size_ci, found.square(7.0).interval(0.95) / 3)


def test_cells_without_spread_take_that_of_the_others():
    """By degrees of freedom; a spread up to rounding is none, and one that is not known stays."""
    degrees, variance = np.array([1.0, 3.0, 2.0, 0.0]), np.array([4.0, 8.0, 1e-6, np.nan])
    cells = _Cells(variance, degrees)
    pooled = (4 + 24 + 2e-6) / 6
    found = fill_spread(cells, 1e-3).variance
    assert_allclose(found, [4, 8, pooled, np.nan], rtol=1e-12)
    assert_allclose(fill_spread(cells, 0.9e-3).variance, variance)
    assert fill_spread(_Cells(variance, 0 * degrees), 1e-3) is None
    assert fill_spread(_Cells(0 * variance - 1, degrees), 1e-3) is None


def test_places_of_bins_and_lines():
    """Effects of the known bins, then slopes times the widths of their bins."""
    row = row_of(
        xr.Dataset(
            {"effect": ("bin", [1.0, 2, 3, 4]), "slope": ("bin", [0.5, 0.0, -2.0, 7.0])},
            {"edge_value": ("edge", [0.0, 1, 3, 6, 10])},
        )
    )
    selection = BinSelection.of_feature(row, np.array([True, True, True, False]))
    assert selection.values(row).tolist() == [1, 2, 3, 0.5, -6]
    assert selection.level("constant").tolist() == [1, 1, 1, 0, 0]
    assert selection.level("zero") is None
    assert (selection.dimension("zero"), selection.dimension("constant")) == (5, 4)
    assert selection.of_slopes(np.arange(4.0)).tolist() == [0, 2]


def test_weights_are_the_inverse_covariance_of_rows_of_variance_one():
    """Of the fits of lines in the middle of their bins, by the columns of a regression."""
    rng = np.random.default_rng(2)
    x = np.sort(rng.uniform(0, 3, 90))[:, None]
    x[[0, -1], 0] = 0, 3
    g = np.where(x < 1, 1, np.where(x < 2, 4 * (x - 1), 9 - 4 * x)) + rng.normal(size=(90, 1)) / 20
    effect = rs.rhale(local_of(x, g), bins=rs.AdaptiveBins(3), weighting="rows")
    row = one_feature(effect, 0)
    edges, linear = row["edge_value"].values, row["slope"].values != 0
    assert linear.tolist() == [False, True, True]
    columns, widths = [], np.diff(edges)
    k = np.searchsorted(edges[1:-1], x[:, 0], side="right")
    for b in range(3):
        columns.append(k == b)
    for b in np.flatnonzero(linear):
        middle = (edges[b] + edges[b + 1]) / 2
        columns.append((k == b) * (x[:, 0] - middle) / widths[b])
    table = np.column_stack(columns).astype(float)
    selection = BinSelection.of_feature(row, np.ones(3, dtype=bool))
    found = _weights(row, row.curve_cells, selection).toarray()
    assert_allclose(found, table.T @ table, rtol=1e-9, atol=1e-9)
    assert _rows_in(_weights(row, row.curve_cells, selection), selection) == pytest.approx(90)


@pytest.mark.parametrize(("null", "error"), [("zero", 0.0), ("constant", 0.0), ("zero", 0.2)])
def test_box_of_lines_by_groups(null, error):
    """By dense matrices: estimates are effects, then slopes times the widths of their bins.

    A numerical error of the local effects adds its square to every variance.
    """
    rng = np.random.default_rng(1)
    x = np.sort(rng.uniform(0, 3, 120))[:, None]
    x[[0, -1], 0] = 0, 3
    mean = np.where(x < 1, 1, np.where(x < 2, 4 * (x - 1), 9 - 4 * x))
    local = local_of(x, mean + rng.normal(size=x.shape) / 4)
    effect = rs.rhale(local, bins=Lines((0.0, 1, 2, 3), (False, True, True)), weighting="rows")
    row = one_feature(rs.std_error(effect, local, groups=rng.integers(25, size=120)), 0)
    at = np.flatnonzero(row["slope"].values)
    assert at.tolist() == [1, 2]
    d = np.append(row["effect"].values, row["slope"].values[at])
    mixed, own = row["effect_slope_cov"].values[:, at], row["slope_cov"].values[np.ix_(at, at)]
    v = np.block([[row.effect_cov, mixed], [mixed.T, own]])
    if error:
        row, v = changed(row, local_effect_error=error), v + error**2 * np.eye(5)
    selection = BinSelection.of_feature(row, np.ones(3, dtype=bool))
    w = _weights(row, row.curve_cells, selection).toarray()
    if null == "constant":
        level = np.array([1.0, 1, 1, 0, 0])
        w = w - np.outer(w @ level, level @ w) / (level @ w @ level)
    whole, parts = np.trace(w @ v), np.diagonal(w @ v)
    by_bin = parts[:3].copy()
    by_bin[at] += parts[3:]
    found = anova_test(row, null)
    assert found.statistic == pytest.approx(d @ w @ d / whole, rel=1e-6)
    assert found.df == pytest.approx(whole**2 / np.trace(w @ v @ w @ v), rel=1e-6)
    denominator = whole**2 / (by_bin @ group_overlap(row) @ by_bin)
    assert found.df_denominator == pytest.approx(denominator, rel=1e-6)
    assert found.p_value == pytest.approx(stats.f.sf(found.statistic, found.df, denominator))


def test_differences_of_one_effect_are_rigid():
    """All effects move together: of their differences there is no error, and no test."""
    rng = np.random.default_rng(1)
    x = np.sort(rng.uniform(0, 2, 60))[:, None]
    local = local_of(x, 1 + (x > 1) + rng.normal(size=x.shape))
    effect = rs.rhale(local, bins=rs.GivenBins([0, 1, 2]), weighting="rows")
    row = one_feature(rs.std_error(effect, local, groups=np.arange(60) // 3), 0)
    one = changed(row, effect_cov=(row["effect_cov"].dims, np.full((2, 2), 0.3)))
    assert anova_test(one, "constant").reason == RIGID
    assert anova_test(one, "constant").df == 0
    assert anova_test(one, "zero").df == pytest.approx(1)
    # A thousandth of the variance is no numerical error.
    other = changed(
        row, effect_cov=(row["effect_cov"].dims, np.full((2, 2), 0.3) + 3e-4 * np.eye(2))
    )
    assert anova_test(other, "constant").reason == ""


def test_weights_of_averages_along_the_axis():
    """Cells without rows have no part in the average, and none in its variance."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(0, 0.5, 9), rng.uniform(0.5, 1, 21), rng.uniform(1, 1.5, 30)])
    rule = rs.GivenBins([0, 1, 2], cells=[0, 0.5, 1, 1.5, 2])
    x[[0, -1]] = 0, 2
    local = local_of(x[:, None], rng.normal(size=(60, 1)))
    row = one_feature(rs.rhale(local, bins=rule), 0)
    cells = row.curve_cells
    # Of the second bin, as if its last cell had no rows.
    pieces = cells.pieces._replace(share=np.append(cells.pieces.share[:-1], 0))
    cells = replace(cells, pieces=pieces, n_effective=np.append(cells.n_effective[:-1], 0))
    selection = BinSelection.of_feature(row, np.ones(2, dtype=bool))
    n = cells.n_effective
    expected = [1 / (0.25 / n[0] + 0.25 / n[1]), n[2]]
    assert_allclose(_weights(row, cells, selection).toarray(), np.diag(expected), rtol=1e-9)
