"""Corrections for leverage: errors of equal variance row by row, and matrices written out."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import inv, sqrtm

from rhale_stats.arrays import leverage as kernel
from rhale_stats.arrays.influence import RowSums

GROUP = np.array([0, 0, 1, 1, 1, 2, 2, 3, 3, 3, 3, 3])
UNIT = np.array([0, 1, 0, 0, 1, 1, 1, 0, 0, 0, 1, 2])


def shares_of(weight, group=GROUP, unit=UNIT, *, frequency=False):
    shape = group.max() + 1, unit.max() + 1
    square = weight if frequency else weight**2
    return kernel.Shares.from_sums(
        *(kernel.table(one, group, unit, *shape) for one in (weight, square))
    )


def residuals(weight, unit=UNIT):
    """Weighted residuals as a matrix times errors, (row, error)."""
    same = unit[:, None] == unit
    means = same * weight / (same @ weight)[:, None]
    return weight[:, None] * (np.eye(len(weight)) - means)


def test_factors_make_squares_of_residuals_unbiased(rng):
    weight = rng.uniform(0.5, 2.0, len(GROUP))
    found = shares_of(weight)
    left = residuals(weight)
    for k in range(3):
        for g in range(4):
            here = (g == GROUP) & (k == UNIT)
            if not here.any():
                assert found.weight[g, k] == found.factor[g, k] == 0
                continue
            of_unit = k == UNIT
            assert_allclose(found.weight[g, k], weight[here].sum() / weight[of_unit].sum())
            squares = weight**2
            assert_allclose(found.square[g, k], squares[here].sum() / squares[of_unit].sum())
            seen = np.sum(left[here].sum(axis=0) ** 2)
            # Unit 2 has rows of one group only, whose residuals add up to 0.
            expected = 1.0 if k == 2 else np.sqrt(squares[here].sum() / seen)
            assert_allclose(found.factor[g, k], expected, rtol=1e-12)


def test_frequencies_are_repeated_rows(rng):
    times = rng.integers(1, 4, len(GROUP))
    ours = shares_of(times.astype(float), frequency=True)
    group, unit = np.repeat(GROUP, times), np.repeat(UNIT, times)
    expected = shares_of(np.ones(len(group)), group, unit)
    for one, other in zip(ours, expected, strict=True):
        assert_allclose(one.toarray(), other.toarray(), rtol=1e-12)


def test_a_group_may_be_several_with_equal_parts():
    """Group 1 is three groups of four rows each."""
    group = np.repeat([0, 1, 2], [5, 12, 3])
    apart = np.append(np.repeat([0, 1, 2, 3], [5, 4, 4, 4]), [4, 4, 4])
    one, weight = np.zeros(20, int), np.ones(20)
    rows = kernel.table(weight, group, one, 3, 1)
    found = kernel.Shares.from_sums(rows, rows, np.array([1.0, 3.0, 1.0]))
    expected = kernel.of_mean(apart, weight, frequency=False)
    for ours, theirs in zip(found, expected, strict=True):
        assert_allclose(ours.toarray()[:, 0], theirs.toarray()[[0, 1, 4], 0], rtol=1e-12)


@pytest.mark.parametrize("frequency", [False, True])
def test_degrees_of_one_mean_are_those_of_bell_and_mccaffrey(rng, frequency):
    """(trace G)^2 / trace(G^2), G the products of the groups' sums of residuals."""
    times = rng.integers(1, 4, len(GROUP)) if frequency else np.ones(len(GROUP), int)
    shares = kernel.of_mean(GROUP, times.astype(float), frequency=frequency)
    group = np.repeat(GROUP, times)
    one = np.zeros(len(group), int)
    left = residuals(np.ones(len(group)), one)
    factor = shares.factor.toarray()[:, 0]
    sums = np.array([factor[g] * left[group == g].sum(axis=0) for g in range(4)])
    products = sums @ sums.T
    expected = np.trace(products) ** 2 / np.sum(products**2)
    assert_allclose(kernel.mean_degrees(shares), expected, rtol=1e-12)


def test_degrees_of_a_weighted_mean(rng):
    shares = kernel.of_mean(GROUP, rng.uniform(0.5, 2.0, len(GROUP)), frequency=False)
    q, factor = shares.square.toarray()[:, 0], shares.factor.toarray()[:, 0]
    overlap = sum(
        q[g] ** 2 if g == h else (factor[g] * factor[h] * q[g] * q[h]) ** 2
        for g in range(4)
        for h in range(4)
    )
    assert_allclose(kernel.mean_degrees(shares), 1 / overlap, rtol=1e-12)


def test_equal_groups_have_their_number_less_one_as_degrees():
    for n in (2, 5):
        shares = kernel.of_mean(np.repeat(np.arange(n), 3), np.ones(3 * n), frequency=False)
        assert_allclose(kernel.mean_degrees(shares), n - 1, rtol=1e-12)


def test_overlap_of_units_and_degrees_of_parts():
    lost = kernel.table(
        np.array([0.5, 0.2, 0.3, 0.4]), np.array([0, 1, 1, 2]), np.array([0, 0, 1, 1]), 3, 2
    )
    dense = lost.toarray()
    assert_allclose(kernel.products(lost), dense.T @ dense)
    expected = [
        [
            sum(
                dense[g, j] * dense[g, k] * dense[h, j] * dense[h, k]
                for g in range(3)
                for h in range(3)
                if g != h
            )
            for k in range(2)
        ]
        for j in range(2)
    ]
    assert_allclose(kernel.between(lost), expected, atol=1e-16)
    parts, overlap = np.array([[1.0, 2.0], [0.0, 0.0], [3.0, 0.0]]), [[0.5, 0.1], [0.1, 0.25]]
    # (1 + 2)^2 / (0.5 + 2 (1)(2) 0.1 + 4 (0.25)) and 9 / (9 (0.5)).
    assert_allclose(kernel.degrees(parts, np.array(overlap)), [9 / 1.9, np.inf, 2.0])


def test_what_a_group_has_lost_in_a_block_is_given_to_its_rows(rng):
    """Five cells in two blocks: r + (factor - 1) times the group's mean residual there."""
    n = 60
    group, cell = rng.integers(4, size=n), rng.integers(5, size=n)
    block = np.array([0, 0, 1, 1, 0])
    weight, residual = rng.uniform(0.5, 2.0, n), rng.normal(size=n)
    total = np.bincount(cell, weight)
    of_block = block[cell]
    cells, blocks = shares_of(weight, group, cell), shares_of(weight, group, of_block)
    mean = kernel.table(weight * residual / total[cell], group, cell, 4, 5)
    found = kernel.of_cells(mean, cells, total, block, blocks).toarray()
    expected = np.zeros((4, 5))
    for i in range(n):
        own = (group == group[i]) & (of_block == of_block[i])
        level = np.average(residual[own], weights=weight[own])
        corrected = residual[i] + (blocks.factor[group[i], of_block[i]] - 1) * level
        expected[group[i], cell[i]] += weight[i] * corrected / total[cell[i]]
    assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


def lines_of(x, group, unit, n_units):
    """What groups have of lines that are fitted to the first units, but not to the last."""
    total = np.bincount(unit)
    d = x - (np.bincount(unit, x) / total)[unit]
    sd = np.sqrt(np.bincount(unit, d**2) / total)
    shape = group.max() + 1, n_units
    part = 1 / total[unit]
    shared = kernel.table(part * d / sd[unit], group, unit, *shape)
    slope = kernel.table(part * d**2 / sd[unit] ** 2, group, unit, *shape)
    sd[-1] = 0.0
    return d, kernel.Lines(shared, slope, sd)


def test_residuals_from_lines_are_multiplied_by_the_root_of_a_matrix(rng):
    group, unit = np.tile(np.arange(4), 12), np.repeat([0, 1, 2], 16)
    x, residual = rng.normal(size=48), rng.normal(size=48)
    d, lines = lines_of(x, group, unit, 3)
    shares = shares_of(np.ones(48), group, unit)
    var = np.where(lines.sd > 0, lines.sd, 1.0) ** 2
    mean = kernel.table(residual / 16, group, unit, 4, 3)
    slope = kernel.table(d * residual / 16 / var[unit], group, unit, 4, 3)
    sums = RowSums(mean, slope, mean, np.zeros(4), np.zeros(4))
    level, tilt = (kernel.like(mean, one) for one in kernel.of_lines(sums, shares, lines))
    for g in range(4):
        for k in range(2):
            here = (group == g) & (unit == k)
            basis = np.stack([np.ones(4), d[here] / lines.sd[k]], axis=1) / 4
            root = inv(sqrtm(np.eye(2) - basis.T @ basis))
            expected = root @ [mean[g, k], slope[g, k] * lines.sd[k]]
            assert_allclose([level[g, k], tilt[g, k] * lines.sd[k]], expected, rtol=1e-10)
        assert_allclose(level[g, 2], mean[g, 2] / np.sqrt(1 - 1 / 4), rtol=1e-12)
        assert_allclose(tilt[g, 2], slope[g, 2], rtol=1e-12)


def test_a_group_that_has_a_line_alone_keeps_its_slope(rng):
    """Unit 0 has rows of group 0 only, as unit 2, without a line, of group 2."""
    group, unit = np.repeat([0, 0, 1, 2], [6, 4, 4, 4]), np.repeat([0, 1, 2], [6, 8, 4])
    x, residual = rng.normal(size=18), rng.normal(size=18)
    d, lines = lines_of(x, group, unit, 3)
    shares = shares_of(np.ones(18), group, unit)
    mean = kernel.table(residual, group, unit, 3, 3)
    slope = kernel.table(d * residual, group, unit, 3, 3)
    sums = RowSums(mean, slope, mean, np.zeros(3), np.zeros(3))
    level, tilt = (kernel.like(mean, one) for one in kernel.of_lines(sums, shares, lines))
    for g in (0, 2):
        assert_allclose([level[g, g], tilt[g, g]], [mean[g, g], slope[g, g]], rtol=1e-12)


def test_leverage_of_two_parameters_in_degrees_of_freedom(rng):
    group, unit = np.tile(np.arange(4), 12), np.repeat([0, 1, 2], 16)
    _, lines = lines_of(rng.normal(size=48), group, unit, 3)
    shares = shares_of(np.ones(48), group, unit)
    found = shares.with_lines(lines)
    expected = (0.25 + lines.slope.toarray()[:, :2]) / 2
    assert_allclose(found.square.toarray()[:, :2], expected, rtol=1e-12)
    assert_allclose(found.factor.toarray()[:, :2], 1 / np.sqrt(1 - expected), rtol=1e-12)
    for one, other in zip(found[1:], shares[1:], strict=True):
        assert_array_equal(one.toarray()[:, 2], other.toarray()[:, 2])
    assert_array_equal(found.weight.toarray(), shares.weight.toarray())
    alone = shares_of(np.ones(6), np.zeros(6, int), np.zeros(6, int))
    one = kernel.table(np.ones(1), np.zeros(1, int), np.zeros(1, int), 1, 1)
    assert alone.with_lines(kernel.Lines(one, one, np.ones(1))).factor[0, 0] == 1
    assert kernel.mean_degrees(alone) == 1
