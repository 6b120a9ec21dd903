"""Changes of single rows in windows of bins."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rhale_stats.arrays.answers import (
    SHARES,
    changes_of_rows,
    round_step,
    windows_of,
)


@pytest.mark.thorough
@given(seed=st.integers(0, 10**6), n_bins=st.integers(1, 60), weighted=st.booleans())
def test_the_mean_times_the_width_is_the_step_of_the_curve(seed, n_bins, weighted):
    """Math [112], for bins of very different widths and numbers of rows."""
    rng = np.random.default_rng(seed)
    edges = np.concatenate([[0.0], rng.exponential(size=n_bins).cumsum()])
    number = np.concatenate([np.arange(n_bins), rng.integers(0, n_bins, 200)])
    g, weight = rng.standard_t(3, len(number)), rng.uniform(0.1, 3, len(number))
    if not weighted:
        weight = np.ones(len(number))
    found = changes_of_rows(edges, number, g, weight if weighted else None)
    assert len(found.mean) <= 24
    assert found.n_rows.sum() == len(number)
    mean = np.bincount(number, weight * g) / np.bincount(number, weight)
    curve = np.concatenate([[0.0], np.cumsum(mean * np.diff(edges))])
    step = np.interp(found.right, edges, curve) - np.interp(found.left, edges, curve)
    np.testing.assert_allclose(found.mean * (found.right - found.left), step, atol=1e-9)
    assert (np.diff(found.quantiles, axis=1) >= 0).all()


def test_pooling_without_widths_would_be_wrong():
    """Nine rows in a narrow steep bin, one in a wide flat one."""
    edges, number = np.array([0.0, 1.0, 10.0]), np.repeat([0, 1], [9, 1])
    g = np.where(number == 0, -5.0, 0.0)
    found = changes_of_rows(edges, number, g, most=1)
    assert found.mean[0] == pytest.approx(-0.5)
    assert g.mean() == -4.5
    # Nine tenths of the axis are flat.
    assert found.quantiles[0, SHARES.index(0.5)] == 0


def test_bins_without_rows_take_no_part():
    found = changes_of_rows(np.arange(4.0), np.array([0, 0, 2]), np.array([1.0, 3, 8]))
    assert found.n_rows.tolist() == [2, 0, 1]
    assert np.isnan(found.mean[1])
    assert np.isnan(found.quantiles[1]).all()
    joined = changes_of_rows(np.arange(4.0), np.array([0, 0, 2]), np.array([1.0, 3, 8]), most=1)
    assert joined.mean[0] == pytest.approx((2 + 8) / 2)


def test_the_narrowest_bins_are_joined():
    assert windows_of(np.array([0.0, 10, 11, 12, 20]), 3).tolist() == [0, 1, 3, 4]
    assert windows_of(np.arange(5.0), 10).tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("length", "step"),
    [(23, 1), (1, 0.1), (58.6, 5), (100, 10), (99, 5), (0.3, 0.01), (7e5, 5e4), (0, 1)],
)
def test_round_steps(length, step):
    assert round_step(length) == pytest.approx(step)
