"""Windows, jumps and noise: by hand, and one row after the other."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rhale_stats.arrays import probes
from tests.helpers import frozen


def test_rows_spread_evenly_in_ranks():
    x = frozen([5.0, 1.0, 3.0, 2.0, 4.0])
    assert_array_equal(x[probes.spread_rows(x, 5)], [1, 2, 3, 4, 5])
    assert_array_equal(x[probes.spread_rows(x, 3)], [1, 3, 5])
    assert_array_equal(x[probes.spread_rows(x, 2)], [1, 5])


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("n", [7, 1000])
def test_windows_reach_over_half_a_percent_of_the_rows_and_to_other_values(rng, n, ties):
    x = frozen(np.sort(rng.integers(0, 400, n) / 8 if ties else rng.normal(size=n)))
    left, right = probes.windows(x)
    reach = max(1, round(0.005 * n))
    for i in range(n):
        below, above = x[x < x[i]], x[x > x[i]]
        assert left[i] == min(x[max(i - reach, 0)], below.max(initial=x[0]))
        assert right[i] == max(x[min(i + reach, n - 1)], above.min(initial=x[-1]))


def test_inner_windows():
    assert_array_equal(probes.inner(5, 0.01), [False, True, True, True, False])
    assert probes.inner(400, 0.01).sum() == 392
    assert_array_equal(np.flatnonzero(~probes.inner(400, 0.01)), [0, 1, 2, 3, 396, 397, 398, 399])
    both = probes.strata(300)
    assert [one.sum() for one in both] == [300, 294]


def test_changes_that_derivatives_miss():
    """x² from one row below to one above: by the derivative in the middle, and by all of them."""
    x = frozen([0.0, 1.0, 3.0, 4.0])
    left, right = frozen([0.0, 0.0, 1.0, 3.0]), frozen([1.0, 3.0, 4.0, 4.0])
    change = (right**2 - left**2)[:, None]
    # The trapezoid of 2x is exact.
    assert_allclose(probes.unexplained(x, 2 * x[:, None], left, right, change), 0, atol=1e-12)
    # The row's own derivative is: rows have functions of their own.
    slope = frozen([3.0, -1.0, 2.0, 5.0])[:, None]
    own = slope * (right - left)[:, None]
    assert_allclose(probes.unexplained(x, slope, left, right, own), 0, atol=1e-12)
    # Neither: 1 more than the nearer of the two. Integrals by trapezoids: 0, 1, 2, 5.5.
    across = np.array([1.0, 2.0, 4.5, 3.5])
    change = np.maximum(own[:, 0], across) + 1
    expected = np.minimum(np.abs(change - own[:, 0]), np.abs(change - across))
    found = probes.unexplained(x, slope, left, right, change[:, None])
    assert_allclose(found[:, 0], expected)
    assert_allclose(found[:, 0], 1.0)


def test_whole_change_by_hand():
    """Curve of mean slopes: 0, 1, 1, 4, a range of 4; windows of 9 in all over a span of 4."""
    x = frozen([0.0, 1.0, 3.0, 4.0])
    left, right = frozen([0.0, 0.0, 1.0, 3.0]), frozen([1.0, 3.0, 4.0, 5.0])
    slope = np.array([1.0, 1.0, -1.0, 7.0])
    change = (slope * (right - left))[:, None]
    assert_allclose(probes.whole_change(x, left, right, change), [1 + 3 + 3 + 14])
    # An output that oscillates: 10 ranges of its curve, times 9 / 4.
    wild = np.array([1.0, -1.0, 1.0, -1.0]) * 100
    change = (wild * (right - left))[:, None]
    assert_allclose(probes.whole_change(x, left, right, change), [0.0])
    wild[0] = 101.0
    change = (wild * (right - left))[:, None]
    # Trapezoids: 0, 0.5, 0.5, 0.5.
    assert_allclose(probes.whole_change(x, left, right, change), [10 * 9 / 4 * 0.5])
    # Rows at one place.
    same = frozen([2.0, 2.0])
    change = np.array([[3.0], [-4.0]])
    assert_allclose(probes.whole_change(same, same - 1, same + 1, change), [7.0])


def test_large_rows_are_always_sampled():
    size = frozen([0.0, 1.0, 10.0, 1.0, 0.0])
    # Marks at 2, 6, 10 of 12.
    assert_array_equal(probes.sampled(size, 3), [2, 2, 2])
    assert_array_equal(probes.sampled(frozen(np.ones(4)), 4), [0, 1, 2, 3])
    assert_array_equal(probes.sampled(frozen(np.ones(4)), 2), [0, 2])
    assert len(probes.sampled(np.zeros(3), 2)) == 0
    assert len(probes.sampled(np.zeros(0), 2)) == 0


def jump_of_row(increments):
    """The same for one row."""
    n = len(increments)
    surprise = np.empty(n)
    for k in range(n):
        first = min(max(k - 2, 0), n - 5)
        surprise[k] = abs(increments[k] - np.median(increments[first : first + 5]))
    piece = int(np.argmax(surprise))
    if piece == 0:
        kink = 2 * abs(increments[1] - increments[2])
    elif piece == n - 1:
        kink = 2 * abs(increments[-2] - increments[-3])
    else:
        kink = abs(increments[piece + 1] - increments[piece - 1])
    return piece, max(surprise[piece] - 10 * np.median(surprise) - kink, 0.0)


def test_jumps_one_row_after_the_other(rng):
    increments = 1 + 0.01 * rng.normal(size=(40, 16))
    increments[np.arange(32), np.arange(32) % 16] += np.linspace(-4, 4, 32)
    increments[:8, 8:] += 0.4  # kinks
    piece, size = probes.jump_of(frozen(increments))
    for row, found in enumerate(zip(piece, size, strict=True)):
        assert found == pytest.approx(jump_of_row(increments[row]))
    assert (size > 0).sum() > 20


def test_third_difference_of_a_cubic():
    """h³ f'''/4: f''' of x³ is 6, and quadratic parts vanish."""
    x, h = np.array([-1.0, 0.5, 2.0]), 0.2

    def f(x):
        return x**3 - 4 * x**2 + x

    found = probes.third_difference((f(x + h), f(x - h)), (f(x + h / 2), f(x - h / 2)))
    assert_allclose(found, h**3 * 6 / 4, rtol=1e-10)


def test_noise_relative_to_the_output(rng):
    """Third differences of noise of deviation s have deviation s √10."""
    noise = rng.normal(0, 0.01, (4, 4000, 2)) * [1.0, 5.0]
    third = probes.third_difference((noise[0], noise[1]), (noise[2], noise[3]))
    found = probes.relative_noise(third, np.full((4000, 2), [2.0, 50.0]))
    # The larger is 0.01 / 2; the error of a median of 4000.
    assert found == pytest.approx(0.005, rel=4 * 1.17 / np.sqrt(4000))
    assert probes.relative_noise(np.zeros((3, 1)), np.zeros((3, 1))) == 0.0
    # An output of 0 has no relative noise.
    assert probes.relative_noise(np.ones((3, 1)), np.zeros((3, 1))) == 0.0


def test_root_mean_squares_of_any_size():
    values = np.array([[3e200, 3e-200, 0.0], [-4e200, 4e-200, 0.0]])
    expected = np.sqrt(12.5) * np.array([1e200, 1e-200, 0.0])
    assert_allclose(probes.rms(values), expected, rtol=1e-14)


def test_shares_of_nothing():
    found = probes.share(np.array([1.0, 0.0, 3.0]), np.array([4.0, 0.0, 0.0]))
    assert_array_equal(found, [0.25, 0.0, 1.0])


def test_rows_that_differ():
    """By more than a share of the largest number; NaN and infinity equal themselves."""
    nan, inf = np.nan, np.inf
    a = np.array([[1.0, 8.0], [1.0, 2.0], [nan, 2.0], [nan, 2.0], [inf, 2.0], [inf, 2.0]])
    b = np.array([[1.7, 8.0], [1.9, 2.0], [nan, 2.0], [1.0, 2.0], [inf, 2.0], [-inf, 2.0]])
    expected = [False, True, False, True, False, True]
    assert_array_equal(probes.differing(a, b, 0.1), expected)
    assert probes.differing(a, b, 0.05).tolist() == [True, True, False, True, False, True]
