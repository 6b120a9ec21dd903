"""Checks and errors of estimates with the parameters of a model."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from rhale_stats.arrays.delta import Covariances
from rhale_stats.inference.parameters import check_model, errors


def test_estimates_of_another_model_are_refused():
    known = np.array([1.0, -4.0, np.nan])
    check_model(np.array([1.0, -4.0, 7.0]), known, "curve")
    for other in ([1.0, -4.01, 7.0], [1.0, -3.99, 7.0], [-1.0, -4.0, 7.0]):
        with pytest.raises(ValueError, match="they give another curve"):
            check_model(np.array(other), known, "curve")
    # Relative to the largest, or as much as rounding.
    check_model(np.array([1.0 + 1e-12, 1e6]), np.array([1.0, 1e6]), "curve")
    check_model(np.array([0.01]), np.zeros(1), "curve", rounding=0.02)
    with pytest.raises(ValueError, match="they give another curve"):
        check_model(np.array([0.03]), np.zeros(1), "curve", rounding=0.02)
    check_model(np.zeros(0), np.zeros(0), "curve")


def test_errors_are_roots_of_the_diagonals():
    """A negative variance is what rounding leaves of none."""
    parts = Covariances(np.diag([4.0, 1.0]), np.diag([0.0, -1e-20]), np.diag([9.0, 1.0]))
    found = errors(parts)
    assert_allclose(found["se_rows"], [2, 1])
    assert_allclose(found["se_model"], [0, 0])
    assert_allclose(found["se"], [3, 1])
