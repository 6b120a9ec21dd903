"""Leverage of groups: CR2 corrections of their sums, and Bell and McCaffrey's degrees (math [26]).

A unit is what one mean is fitted to: a bin, a block of cells, a step, or all rows. The residuals of
a group that holds the share s of a unit are too small, because the group moves the mean towards
itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rhale_stats.arrays.influence import RowSums
from rhale_stats.arrays.moments import FloatArray, IntArray

# A group that leaves less than this of a unit to the others is its only group.
MIN_REST = 1e-10


def table(
    values: FloatArray, group: IntArray, unit: IntArray, n_groups: int, n_units: int
) -> sparse.csr_array:
    """Sums of rows by group and unit; all that are made of the same rows have the same entries."""
    shape = n_groups, n_units
    return sparse.csr_array(sparse.coo_array((values, (group, unit)), shape).tocsr())


def like(pattern: sparse.csr_array, values: FloatArray) -> sparse.csr_array:
    """Other values at the entries of a table."""
    return sparse.csr_array((values, pattern.indices, pattern.indptr), pattern.shape)


class Shares(NamedTuple):
    """Shares of the groups in every unit, (group, unit): of the weight and of its squares.

    ``factor`` is what the sum of the residuals of a group is multiplied by, so that its square is
    unbiased for equal variances.
    """

    weight: sparse.csr_array
    square: sparse.csr_array
    factor: sparse.csr_array

    @classmethod
    def from_sums(
        cls,
        weight: sparse.csr_array,
        square: sparse.csr_array,
        repeats: FloatArray | None = None,
    ) -> Shares:
        """From sums of weights and of their squares (of frequencies, the sums themselves).

        A group may stand for ``repeats`` (group,) independent ones with equal parts.
        """
        s, q = [
            shares.data / np.bincount(shares.indices, shares.data, shares.shape[1])[shares.indices]
            for shares in (weight, square)
        ]
        if repeats is not None:
            each = np.repeat(repeats, np.diff(weight.indptr))
            s, q = s / each, q / each
        # Variance of the sum of residuals over that of the sum of errors.
        rest = 1 - 2 * s + np.divide(s**2, q, out=np.zeros(len(q)), where=q > 0)
        alone = rest <= MIN_REST
        factor = np.where(alone, 1.0, 1 / np.sqrt(np.where(alone, 1.0, rest)))
        return cls(*[like(weight, values) for values in (s, q, factor)])

    def with_lines(self, lines: Lines) -> Shares:
        """For degrees of freedom where lines are fitted: the mean leverage of the two parameters.

        A surrogate; variances are corrected by the leverage matrix itself.
        """
        linear = (lines.sd > 0)[self.weight.indices]
        s = np.where(linear, (self.square.data + lines.slope.data) / 2, self.square.data)
        alone = 1 - s <= MIN_REST
        factor = np.where(alone, 1.0, 1 / np.sqrt(np.where(alone, 1.0, 1 - s)))
        factor = np.where(linear, factor, self.factor.data)
        return Shares(self.weight, like(self.weight, s), like(self.weight, factor))


def of_mean(group: IntArray, weight: FloatArray, *, frequency: bool) -> Shares:
    """Shares of groups of rows in the mean over all rows."""
    cell, n_groups = np.zeros(len(group), dtype=np.int64), int(group.max()) + 1
    square = weight if frequency else weight**2
    return Shares.from_sums(
        table(weight, group, cell, n_groups, 1), table(square, group, cell, n_groups, 1)
    )


def mean_degrees(shares: Shares) -> float:
    """Bell and McCaffrey's degrees of freedom of the variance of one mean."""
    lost = like(shares.square, shares.square.data * shares.factor.data)
    overlap = (products(shares.square) + between(lost))[0, 0]
    return float(1 / overlap) if overlap > 0 else 0.0


def products(matrix: sparse.csr_array) -> FloatArray:
    """Products of the columns of a table, summed over groups."""
    return np.asarray((matrix.T @ matrix).toarray())


def between(lost: sparse.csr_array) -> FloatArray:
    """What the means that residuals are taken from add to the overlap of units, (unit, unit).

    ``lost`` are the shares of groups times their factors. With (sum v)^2 / v' overlap v degrees of
    freedom, v the parts of a variance by unit, those of one mean are Bell and McCaffrey's (2002).
    """
    squares = like(lost, lost.data**2)
    return np.asarray(np.maximum(products(lost) ** 2 - products(squares), 0.0))


def degrees(parts: FloatArray, overlap: FloatArray) -> FloatArray:
    """Degrees of freedom of variances with these parts by unit, (point, unit) -> (point,)."""
    with np.errstate(invalid="ignore", divide="ignore"):
        squares = np.sum((parts @ overlap) * parts, axis=-1)
        return np.asarray(np.where(squares > 0, parts.sum(axis=-1) ** 2 / squares, np.inf))


def of_cells(
    mean: sparse.csr_array,
    cells: Shares,
    total: FloatArray,
    block: IntArray,
    blocks: Shares,
) -> sparse.csr_array:
    """Corrected influences on means of cells, whose residuals are from the means of blocks.

    ``mean`` (group, cell) are sums of weights times residuals over ``total``, the weights of the
    cells. What a group has lost in a block is given to all of its rows there.
    """
    n_blocks = blocks.weight.shape[1]

    def keys(matrix: sparse.csr_array, unit: NDArray[np.integer]) -> NDArray[np.integer]:
        return np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr)) * n_blocks + unit

    wanted = keys(mean, block[mean.indices])
    entry = np.searchsorted(keys(blocks.weight, blocks.weight.indices), wanted)
    of_cell = total[mean.indices]
    residual = np.bincount(entry, mean.data * of_cell, len(blocks.factor.data))
    block_weight = np.bincount(entry, cells.weight.data * of_cell, len(residual))
    lost = (blocks.factor.data - 1) * np.divide(
        residual, block_weight, out=np.zeros(len(block_weight)), where=block_weight > 0
    )
    return like(mean, mean.data + lost[entry] * cells.weight.data)


class Lines(NamedTuple):
    """What a group has of the lines fitted in units, (group, unit), in orthonormal coordinates.

    ``shared`` are sums of w d / (W sd), ``slope`` of w d^2 / (W var), d the distance of x from its
    mean in the unit; ``sd`` (unit,) is its standard deviation, 0 where there is no line.
    """

    shared: sparse.csr_array
    slope: sparse.csr_array
    sd: FloatArray


def of_lines(sums: RowSums, shares: Shares, lines: Lines) -> tuple[FloatArray, FloatArray]:
    """Corrected entries of the influences on means and slopes, exact for equal variances.

    With L the leverage of a group in the coordinates of `Lines`, two by two, its sums of residuals
    are multiplied by (I - L)^(-1/2), whatever the number of its rows.
    """
    mean, slope = sums.mean.data, sums.slope.data
    sd = lines.sd[sums.mean.indices]
    rest = 1 - shares.weight.data, -lines.shared.data, 1 - lines.slope.data
    determinant = rest[0] * rest[2] - rest[1] ** 2
    linear = (sd > 0) & (determinant > MIN_REST)
    root = np.sqrt(np.where(linear, determinant, 1.0))
    size = np.sqrt(np.where(linear, rest[0] + rest[2] + 2 * root, 1.0))
    # The root of a matrix of two by two is (A + sqrt(det A) I) / size; this is its inverse.
    scale = 1 / (size * root)
    level, shared, tilt = [scale * part for part in (rest[2] + root, -rest[1], rest[0] + root)]
    sd = np.where(sd > 0, sd, 1.0)
    moved = level * mean + shared * slope * sd, shared * mean / sd + tilt * slope
    return (
        np.where(linear, moved[0], shares.factor.data * mean),
        np.where(linear, moved[1], slope),
    )
