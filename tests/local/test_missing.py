"""The effect of a missing value: by hand, with weights, by repeated rows, from one row."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import rhale_stats as rs
from rhale_stats.local.request import effect_of_missing
from rhale_stats.models.options import ModelOptions
from rhale_stats.models.sample import Sample

# Of the values 1, 2, 4, 9 the lower median is 2. Five rows have none.
A = np.array([4.0, np.nan, 1.0, np.nan, 9.0, np.nan, 2.0, np.nan, np.nan])
B = np.array([1.0, 2.0, 3.0, -1.0, 0.5, 4.0, 1.5, 7.0, 3.5])
GONE = np.isnan(A)
WEIGHT = np.array([1.0, 2.0, 1.0, 1.0, 1.0, 4.0, 1.0, 3.0, 2.0])


def model(X):
    """Two outputs: 5 b and b² without a value of a, a and -a b with one."""
    a, b = X["a"].to_numpy(), X["b"].to_numpy()
    gone = np.isnan(a)
    return np.column_stack([np.where(gone, 5 * b, a), np.where(gone, b**2, -a * b)])


def change(reference, b):
    return np.column_stack([5 * b - reference, b**2 + reference * b])


def found(a=A, b=B, **options):
    sample = Sample.from_table(
        pd.DataFrame({"a": a, "b": b}), ModelOptions(missing="bin", **options)
    )
    sample = sample.of_columns([0])
    return effect_of_missing(sample, sample.quotients(model), 0, a)


def test_moments_of_the_changes_against_the_median():
    effect = found()
    changes = change(2.0, B[GONE])
    assert_array_equal(effect["missing_reference"], [2, 2])
    assert_allclose(effect["missing_effect"], changes.mean(axis=0))
    assert_allclose(effect["missing_spread"], changes.std(axis=0, ddof=1))
    assert_allclose(effect["missing_effect_se"], changes.std(axis=0, ddof=1) / np.sqrt(5))


def test_precision_weights_have_a_sandwich_that_is_unbiased_for_equal_variances():
    effect = found(weights=WEIGHT)
    w, changes = WEIGHT[GONE], change(2.0, B[GONE])
    mean = np.average(changes, axis=0, weights=w)
    assert_allclose(effect["missing_effect"], mean)
    residual = changes - mean
    # What the squared residuals are on average, in units of the variance of a change.
    maker = np.eye(5) - np.outer(np.ones(5), w / w.sum())
    own = np.diagonal(maker @ maker.T)
    assert_allclose(effect["missing_spread"] ** 2, w @ residual**2 / (w @ own))
    variance = w**2 @ residual**2 / (w**2 @ own)
    assert_allclose(effect["missing_effect_se"] ** 2, variance * np.sum(w**2) / w.sum() ** 2)


def test_equal_precision_weights_are_none():
    one, other = found(weights=np.full(9, 3.0)), found()
    for name, values in other.items():
        assert_allclose(one[name], values, err_msg=name)


def test_frequencies_are_repeated_rows():
    counts = np.array([1, 2, 1, 1, 3, 4, 1, 3, 0])
    one = found(weights=counts, weight_kind="frequency")
    other = found(np.repeat(A, counts), np.repeat(B, counts))
    # The median counts them, too: of 1, 2, 4, 9, 9, 9.
    assert_array_equal(one["missing_reference"], [4, 4])
    for name, values in other.items():
        assert_allclose(one[name], values, err_msg=name)


@pytest.mark.parametrize("options", [{}, {"weights": np.arange(1.0, 4)}])
def test_one_row_without_a_value_has_no_error(options):
    effect = found(np.array([3.0, np.nan, 3.0]), np.array([1.0, 2.0, 3.0]), **options)
    assert_allclose(effect["missing_effect"], change(3.0, np.array([2.0]))[0])
    assert np.isnan(effect["missing_spread"]).all()
    assert np.isnan(effect["missing_effect_se"]).all()


def test_columns_with_missing_values_have_their_effects_and_others_have_none():
    frame = pd.DataFrame({"c": np.arange(9.0) ** 2, "b": B, "a": A})
    local = rs.local_effects(model, frame, features=["c", "a"], missing="bin")
    assert local["missing_effect"].dims == ("output", "feature")
    assert_array_equal(local["n_missing"], [0, 5])
    for name, values in found().items():
        assert_array_equal(local[name].sel(feature="a"), values, err_msg=name)
        assert local[name].sel(feature="c").isnull().all()
    dropped = rs.local_effects(model, frame, features=["c", "a"], missing="drop")
    assert_array_equal(dropped["n_missing"], [0, 5])
    assert "missing_effect" not in dropped
    assert "n_missing" not in rs.local_effects(model, frame, features=["c"], missing="bin")
