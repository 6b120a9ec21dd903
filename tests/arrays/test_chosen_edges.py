"""What the choice of edges adds to the variance of bin effects: cases by hand, and invariances."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from rhale_stats.arrays.adaptive import OF_MAXIMUM, Along, added_variance

EDGES = np.linspace(0, 1, 401)
MIDDLES = (EDGES[1:] + EDGES[:-1]) / 2
# Variance of the integral per unit of the axis.
V = 1e-4
# Within a cell the effect counts as constant: relative error of integrals over 1/10 or more.
INSIDE = 1e-3
MANY = 1e9


def along(mean, v=V, rows=MANY, edges=EDGES):
    """Cells of equal width with these means."""
    width = np.diff(edges)
    return Along.from_cells(edges, mean, v / width, np.full(len(width), rows / len(width)))


def two_bins(mean, fits, slopes=(0.0, 0.0), **given):
    """Two bins that meet at 1/2; the values of their fits are given there."""
    at_edges = np.array([[np.nan, fits[1]], [fits[0], np.nan]])
    return added_variance(along(mean, **given), np.repeat([0, 1], 200), at_edges, np.array(slopes))


def test_one_bin_has_no_chosen_edge():
    added = added_variance(along(MIDDLES), np.zeros(400, int), np.zeros((2, 1)), np.zeros(1))
    assert_allclose(added, [0.0])


def test_constant_bins_of_a_line():
    """Slope 3 throughout: rho = (2 sqrt(v) / 3)^(2/3), and half the axis is one bin."""
    added = two_bins(3 * MIDDLES, (0.75, 2.25))
    rho = (2 * np.sqrt(V) / 3) ** (2 / 3)
    assert_allclose(added, np.full(2, OF_MAXIMUM * V * rho / 0.5**2), rtol=INSIDE)


def test_two_lines_that_cross():
    """Slopes -1 and 3: half their difference, 2, takes the place of the slope."""
    mean = np.where(MIDDLES < 0.5, 0.5 - MIDDLES, 3 * (MIDDLES - 0.5))
    added = two_bins(mean, (0.0, 0.0), (-1.0, 3.0))
    rho = (2 * np.sqrt(V) / 2) ** (2 / 3)
    assert_allclose(added, np.full(2, OF_MAXIMUM * V * rho / 0.5**2), rtol=INSIDE)


def test_jump_between_two_rows():
    """The place of a jump by 5 among 1000 rows is known to 1/1000."""
    added = two_bins(5.0 * (MIDDLES > 0.5), (0.0, 5.0), v=1e-12, rows=1000)
    assert_allclose(added, np.full(2, (5 / 1000) ** 2 / 0.5**2), rtol=1e-3)


def test_no_change_at_an_edge_counts_the_narrower_bin():
    added = two_bins(np.ones(400), (1.0, 1.0))
    assert_allclose(added, np.full(2, OF_MAXIMUM * V * 0.5 / 0.5**2))


def test_edges_between_three_bins_of_unequal_width():
    """Each edge is chosen alone, and the bin in the middle has both parts."""
    bin_of = np.repeat([0, 1, 2], [80, 200, 120])
    # A line of slope 3 through constant fits at the means of the bins: edges at 0.2 and 0.7.
    means = 3 * np.array([0.1, 0.45, 0.85])
    added = added_variance(along(3 * MIDDLES), bin_of, np.stack([means, means]), np.zeros(3))
    # The fits on both sides are as far from the line at 0.2, (0.3 + 1.35) / 2 = 0.825, as their
    # mean is; the slope of the line does not depend on it.
    own = OF_MAXIMUM * V * (2 * np.sqrt(V) / 3) ** (2 / 3)
    parts = [own / 0.2**2, 2 * own / 0.5**2, own / 0.3**2]
    assert_allclose(added, parts, rtol=INSIDE)


def test_units_of_effect_and_axis():
    rng = np.random.default_rng(0)
    mean = 2 * MIDDLES + rng.normal(size=400)
    fits, slopes = (0.4, 1.4), (0.3, 0.2)
    once = two_bins(mean, fits, slopes)
    scaled = two_bins(7 * mean, [7 * fit for fit in fits], [7 * s for s in slopes], v=49 * V)
    assert_allclose(scaled, 49 * once)
    # An axis in units of 1/10: integrals are ten times as large, their variance per unit too.
    wide = two_bins(mean, fits, [s / 10 for s in slopes], v=10 * V, edges=10 * EDGES)
    assert_allclose(wide, once)


def test_reversal():
    mean, slopes = np.sin(3 * MIDDLES), (2.0, 0.5)
    once = two_bins(mean, (0.8, 1.1), slopes)
    back = two_bins(mean[::-1], (1.1, 0.8), (-0.5, -2.0))
    assert_allclose(back[::-1], once)


def test_cells_without_rows():
    mean = 3 * MIDDLES
    mean[100:110] = np.nan
    assert np.isfinite(two_bins(mean, (0.75, 2.25))).all()


def test_constant_of_the_maximum():
    """E B(Z)^2 by simulation; steps of 1/100 make it a little too small."""
    rng = np.random.default_rng(0)
    n, step = 8000, 0.01
    t = step * np.arange(1, 301)
    sides = np.cumsum(rng.normal(0, np.sqrt(step), (2, n, len(t))), axis=-1)
    # The best place on each side, or the edge itself.
    place = np.argmax(sides - t**2, axis=-1)
    value = np.take_along_axis(sides, place[..., None], axis=-1)[..., 0]
    gain = value - t[place] ** 2
    chosen = np.where(gain[0] > gain[1], value[0], value[1])
    chosen = np.where(gain.max(axis=0) > 0, chosen, 0.0)
    squares = chosen**2
    assert np.mean(squares) == pytest.approx(
        OF_MAXIMUM, abs=5 * np.std(squares) / np.sqrt(n) + 0.05
    )
