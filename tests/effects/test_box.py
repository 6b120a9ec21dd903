"""Tests of steps between levels, which share rows, by dense matrices."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import rhale_stats as rs
from rhale_stats.effects.box import MOST_DEGREES, _degrees_together, box
from rhale_stats.effects.fit import bin_degrees, group_overlap
from rhale_stats.effects.hypotheses import _correlated, _degrees_of_matrix, _moved
from rhale_stats.schema.features import one_feature


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
    d, n, v = row["effect"].values, row["n_effective"].values, row["effect_cov"].values
    w = np.diag(n) if null == "zero" else np.diag(n) - np.outer(n, n) / n.sum()
    whole = np.trace(w @ v)
    return d @ w @ d / whole, whole**2 / np.trace(w @ v @ w @ v), w, whole


@pytest.mark.parametrize("null", ["zero", "constant"])
def test_box_of_steps(levels, null):
    row = levels[0]
    statistic, degrees, w, whole = expected_box(row, null)
    own = np.diagonal(w) * np.diagonal(row["effect_cov"].values)
    denominator = whole**2 / np.sum(own**2 / bin_degrees(row))
    found = box(row, null)
    assert_allclose(
        [found.statistic, found.df, found.df_denominator], [statistic, degrees, denominator]
    )
    assert found.p_value == pytest.approx(stats.f.sf(statistic, degrees, denominator))
    # What is left of the square without noise, by row.
    left = (statistic - 1) * whole / row["n_effective"].values.sum()
    assert found.size == pytest.approx(np.sqrt(max(left, 0)))


@pytest.mark.parametrize("null", ["zero", "constant"])
def test_box_of_steps_by_groups(levels, null):
    row = levels[1]
    statistic, degrees, w, whole = expected_box(row, null)
    parts = np.diagonal(w @ row["effect_cov"].values)
    found = box(row, null)
    assert_allclose([found.statistic, found.df], [statistic, degrees])
    denominator = whole**2 / (parts @ group_overlap(row) @ parts)
    assert found.df_denominator == pytest.approx(denominator)


def test_degrees_together_are_finite(levels):
    row = levels[1]
    parts = np.array([1.0, 2.0, 0.5])
    assert_allclose(_degrees_together(row, parts), 3.5**2 / (parts @ group_overlap(row) @ parts))
    none = row.assign(effect_overlap=row["effect_overlap"] * 0)
    assert _degrees_together(none, parts) == MOST_DEGREES


@pytest.mark.parametrize("null", ["zero", "constant"])
def test_normal_scores_of_steps_with_their_correlation(levels, null):
    """Normal values with the p-values of Student's t, and chi-squared."""
    row = levels[0]
    d, v = row["effect"].values, row["effect_cov"].values
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
    none = np.zeros(3, dtype=bool)
    expected = 12 / (overlap.sum() + np.trace(overlap))
    assert_allclose(_degrees_of_matrix(row, np.eye(3), none), expected)
    steps = np.array([[-1.0, 1, 0], [0, -1, 1]])
    mixed = np.abs(steps) / 2 @ overlap @ np.abs(steps).T / 2
    expected = 6 / (mixed.sum() + np.trace(mixed))
    assert_allclose(_degrees_of_matrix(row, steps, none), expected)
