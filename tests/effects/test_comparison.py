"""What two curves of one model share."""

from __future__ import annotations

from numpy.testing import assert_allclose

from rhale_stats.effects.comparison import _of_parameters


def test_parameters_in_the_variance_of_a_difference(rng):
    """By the errors of both curves: those of rows are known, all products with others are not."""
    moved = list(rng.normal(size=(2, 2, 3, 4)))  # curve, part, point, direction
    (a, rows_a), (b, rows_b) = moved
    # The same rows: the square of the difference of the whole less that of the rows.
    whole, rows = a + rows_a - b - rows_b, rows_a - rows_b
    found = _of_parameters(moved, paired=True)
    assert_allclose(found, whole @ whole.T - rows @ rows.T)
    # Other rows: the products of both curves, less those of their rows.
    shared = (a + rows_a) @ (b + rows_b).T - rows_a @ rows_b.T
    found = _of_parameters(moved, paired=False)
    assert_allclose(found, -shared - shared.T)
