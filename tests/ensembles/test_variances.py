"""Errors of an estimate and its parts: every kind of members, by loops over the members."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from numpy.testing import assert_allclose, assert_array_equal

from rhale_stats.ensembles.labelled import deviations, error_of
from tests.ensembles.made import FOLDS, GRID, REFITS, ensemble

RNG = np.random.default_rng(1)
K, R, SIZE = 4, 3, 5
OWN, OTHER = RNG.standard_normal((2, R, K, SIZE)) * np.arange(1, SIZE + 1)
SE = RNG.uniform(0.5, 1, (R, K, SIZE))
MEMBERS = OWN.reshape(R * K, SIZE)
MANY = {"n_folds": K, "n_repeats": R, "n_units": 50, "source": "cross-fitting"}


def folds(own=OWN, other=OTHER, se=SE, **attrs):
    """Folds of one feature, (repeat, fold, point)."""
    found = {"curve": (GRID, own[:, :, None])}
    if other is not None:
        found["curve_other_model"] = (GRID, other[:, :, None])
    if se is not None:
        found["curve_se_rows"] = (GRID, se[:, :, None])
    return xr.Dataset(found, attrs={**MANY, "variance": "jackknife", **attrs})


def of_models(own=OWN, other=OTHER):
    """math [83]: half the mean squared difference of two models on the same rows."""
    return np.nanmean((own - other) ** 2, axis=(0, 1)) / 2


def test_of_refits_rows_are_within_the_spread_of_the_members():
    se = np.linspace(0.1, 5, SIZE)
    made = ensemble(MEMBERS, se_rows=se, **REFITS)
    error, variance = error_of(made, "curve"), MEMBERS.var(axis=0, ddof=1)
    assert made.attrs["variance"] == "bootstrap"
    assert_allclose(error.variance[0], variance)
    assert_allclose(error.rows[0], se**2)
    assert_allclose(error.model[0], np.maximum(variance - se**2, 0))
    assert (error.model[0] == 0).any()
    assert (error.model[0] > 0).any()
    assert_array_equal(error.degrees, np.full((1, SIZE), np.inf))


def test_of_subsamples_all_is_scaled():
    attrs = REFITS | {"variance": "subsampling", "variance_factor": 3.0, "rows_factor": 0.5}
    made = ensemble(MEMBERS, se_rows=0.8, **attrs)
    error, variance = error_of(made, "curve"), 3 * MEMBERS.var(axis=0, ddof=1)
    assert_allclose(error.variance[0], variance)
    assert_allclose(error.rows[0], 0.32)
    assert_allclose(error.model[0], variance - 0.32)
    away = deviations(made, "curve")[:, 0]
    assert_allclose(away.T @ away, 3 * np.cov(MEMBERS.T))


def test_of_draws_the_rows_come_on_top():
    error, variance = error_of(ensemble(MEMBERS, se_rows=2.0), "curve"), MEMBERS.var(0, ddof=1)
    assert_allclose(error.variance[0], variance + 4)
    assert_allclose(error.rows[0], 4)
    assert_allclose(error.model[0], variance)
    assert_array_equal(error.degrees, np.full((1, SIZE), np.inf))
    unknown = error_of(ensemble(MEMBERS), "curve")
    assert_allclose(unknown.variance[0], variance)
    assert np.isnan(unknown.rows).all()
    assert unknown.rows.shape == (1, SIZE)


def test_deviations_are_about_the_mean_of_the_known_members():
    gaps = MEMBERS.copy()
    gaps[:4, 0] = np.nan
    away = deviations(ensemble(gaps, estimate=np.zeros(SIZE)), "curve")[:, 0]
    assert away.shape == MEMBERS.shape
    assert_array_equal(away[:4, 0], 0)
    assert_allclose(np.sum(away**2, axis=0), np.nanvar(gaps, axis=0, ddof=1))
    # A single member has no spread, and no division by 0.
    assert_array_equal(deviations(ensemble(MEMBERS[:1]), "curve"), np.zeros((1, 1, SIZE)))


def test_of_folds_with_two_models():
    """math [83]: (k - 1)² / k times the part of the models, and the rows of k folds."""
    error = error_of(folds(), "curve")
    model, rows = (K - 1) ** 2 / K * of_models(), np.mean(SE**2, axis=(0, 1)) / K
    assert_allclose(error.model[0], model)
    assert_allclose(error.rows[0], rows)
    assert_allclose(error.variance[0], model + rows)
    # 2k/3 degrees a repeat, and one less than the units.
    degrees = (model + rows) ** 2 / (model**2 / (R * 2 * K / 3) + rows**2 / 49)
    assert_allclose(error.degrees[0], degrees)
    few = error_of(folds(n_units=5), "curve")
    assert_allclose(few.degrees[0], (model + rows) ** 2 / (model**2 / 4 + rows**2 / 4))


@pytest.mark.parametrize("source", ["cross-fitting, groups of rows", "cross-fitting"])
def test_of_folds_without_errors_by_rows(source):
    """Of groups, or unknown: what is left of the variance within repeats, 0 at least."""
    own = OWN * np.array([1, 1, 1, 0.1, 0.1])  # little is left of the last two
    found = folds(own, se=SE if "groups" in source else None, source=source)
    error, between = error_of(found, "curve"), of_models(own)
    left = np.mean([one.var(axis=0, ddof=1) for one in own], axis=0) - between
    assert (left < 0).any()
    assert (left > 0).any()
    rows, model = np.maximum(left, 0) / K, (K - 1) ** 2 / K * between
    assert_allclose(error.rows[0], rows)
    assert_allclose(error.variance[0], model + rows)
    of_rows = K - 1 if "groups" in source else 49
    degrees = (model + rows) ** 2 / (model**2 / (R * 2 * K / 3) + rows**2 / of_rows)
    assert_allclose(error.degrees[0], degrees)


def test_deviations_of_folds_are_those_of_rows_and_of_models():
    """Rows: within repeats, over the folds. Models: differences on the same rows."""
    own, other = OWN.copy(), OTHER.copy()
    own[1, 2, 0] = other[0, 1, 3] = np.nan
    expected = np.zeros((SIZE, SIZE))
    for repeat in range(R):
        mean = np.nanmean(own[repeat], axis=0)
        for fold in range(K):
            away = np.nan_to_num(own[repeat, fold] - mean)
            expected += np.outer(away, away) / (K * R * (K - 1))
            apart = np.nan_to_num(own[repeat, fold] - other[repeat, fold])
            expected += (K - 1) ** 2 / K * np.outer(apart, apart) / (2 * R * K)
    found = deviations(folds(own, other), "curve")[:, 0]
    assert found.shape == (2 * R * K, SIZE)
    assert_allclose(found.T @ found, expected)
    alone = deviations(folds(own, None), "curve")[:, 0]
    assert_array_equal(alone, found[: R * K])


def test_two_folds_divide_by_one():
    own = OWN[:, :2]
    found = deviations(folds(own, None, None), "curve")[:, 0]
    apart = (own[:, 0] - own[:, 1]) / 2
    assert_allclose(np.sum(found**2, axis=0), 2 * np.sum(apart**2, axis=0) / (2 * R))
    alone = deviations(folds(own[:, :1], None, None), "curve")
    assert_array_equal(alone, np.zeros((R, 1, SIZE)))


def test_the_corrected_variance():
    """math [84], with a point that some members do not reach, and one that nearly none does."""
    curves, n = MEMBERS[:10].copy(), np.array([10, 7, 1, 10, 10])
    curves[:3, 1], curves[1:, 2] = np.nan, np.nan
    se = np.array([0.1, 0.1, 0.1, 30.0, 0.1])
    made = ensemble(curves, se_rows=se, estimate=np.zeros(5), **FOLDS)
    error = error_of(made, "curve")
    own = [curves[np.isfinite(curves[:, at]), at] for at in range(5)]
    variances = [one.var(ddof=1) if len(one) > 1 else np.nan for one in own]
    total = (1 / n + 1 / 4) * np.array(variances)
    assert_allclose(error.variance[0], total)
    assert_allclose(error.rows[0], [0.002, 0.002, 0.002, 180, 0.002])
    assert_allclose(error.model[0], np.maximum(total - error.rows[0], 0))
    assert error.model[0, 3] == 0
    assert_array_equal(error.degrees[0], [9, 6, 0, 9, 9])
