"""What smoothed curves take from single rows."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from rhale_stats.arrays import splines as kernel
from tests.helpers import frozen


def test_a_level_of_one_row_leaves_the_other_levels_known():
    """A mean has the influences (y - mean) / n of its rows; that of one row has none."""
    level = frozen([0, 0, 0, 1, 2, 2])
    y = frozen([1.0, 2.0, 6.0, 4.0, 5.0, 7.0])
    basis = kernel.level_basis(level, 3)
    residual = y - np.array([3.0, 4.0, 6.0])[level]
    found = kernel.influences(basis, residual, None, 0.0, frequency=False)
    alone = level == 1
    assert np.isnan(found[alone, 1]).all()
    assert_array_equal(found[alone][:, [0, 2]], 0)
    for k, n in ((0, 3), (2, 2)):
        rows = level == k
        # HC2: residuals over the root of one less 1/n.
        expected = residual[rows] / np.sqrt(1 - 1 / n) * len(y) / n
        assert_allclose(found[rows, k], expected, rtol=1e-12)
        assert_array_equal(found[~rows & ~alone, k], 0)


def test_rows_without_weight_may_be_where_the_curve_is_not_known():
    near = kernel.near_levels(frozen([0, 0, 1, 1]), 2)
    residual = frozen([[3.0], [np.nan], [1.0], [2.0]])
    found = near.spread(residual, frozen([[2.0], [0.0], [1.0], [3.0]]))
    assert_allclose(found[:, 0], [3, np.sqrt(13 / 4)], rtol=1e-14)
