"""Errors of second-order effects by groups of rows, math [98]."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rhale_stats.arrays import leverage
from rhale_stats.arrays import second_order as kernel
from rhale_stats.arrays.moments import FloatArray, IntArray


class GroupSums(NamedTuple):
    """What groups do to the means of cells, and their weights at places.

    ``means`` (group, cell) are sums of weights times residuals over the weight of the cell, times
    the factor for leverage. ``places`` (group, place of a times place of b) are sums of weights,
    times the factor of a mean over all rows.
    """

    means: sparse.csr_array
    places: sparse.csr_array
    shares: leverage.Shares
    every: float

    @property
    def alone(self) -> NDArray[np.bool_]:
        """Cells with rows of one group, which have no variance between groups, (cell,)."""
        return np.asarray(self.n_groups == 1)

    @property
    def n_groups(self) -> IntArray:
        """Number of groups in every cell."""
        return np.bincount(self.means.indices, minlength=self.means.shape[1])

    @property
    def variance(self) -> FloatArray:
        """Of the means of cells, NaN with fewer than two groups, (cell,)."""
        squares = np.bincount(self.means.indices, self.means.data**2, self.means.shape[1])
        return np.where(self.n_groups > 1, squares, np.nan)

    @property
    def overlap(self) -> FloatArray:
        """What the degrees of freedom of two cells have in common, (cell, cell), math [26]."""
        lost = leverage.like(self.shares.square, self.shares.square.data * self.shares.factor.data)
        return leverage.products(self.shares.square) + leverage.between(lost)

    def degrees(self) -> FloatArray:
        """Degrees of freedom of the means of cells, 0 with fewer than two groups."""
        overlap = np.diagonal(self.overlap)
        usable = (self.n_groups > 1) & (overlap > 0)
        return np.divide(1.0, overlap, out=np.zeros(len(overlap)), where=usable)

    def covariance(self) -> FloatArray:
        """Of the means of cells, NaN with fewer than two groups, (cell, cell)."""
        out = np.asarray((self.means.T @ self.means).toarray(), dtype=np.float64)
        unknown = self.n_groups < 2
        out[unknown] = out[:, unknown] = np.nan
        return out


def group_sums(influence: kernel.Influence, rows: kernel.Rows, group: IntArray) -> GroupSums:
    """Sums over the rows of every group; ``group`` (row,) are numbers from 0."""
    cells, n_groups = influence.cells, int(group.max(initial=-1)) + 1
    row, number, residual, w = rows.residuals(cells)

    def table(values: FloatArray) -> sparse.csr_array:
        return leverage.table(values, group[row], number, n_groups, cells.mean.size)

    shares = leverage.Shares.from_sums(table(w), table(w if rows.frequency else w**2))
    sums = table(w * residual / cells.weight.ravel()[number])
    every = leverage.of_mean(group, rows.weight, frequency=rows.frequency)
    n_places = rows.a.n_places * rows.b.n_places
    by_place = rows.weight * every.factor.toarray()[group, 0]
    places = leverage.table(by_place, group, rows.place, n_groups, n_places)
    return GroupSums(
        leverage.like(sums, sums.data * shares.factor.data),
        places,
        shares,
        leverage.mean_degrees(every),
    )


def noise_factors(influence: kernel.Influence, groups: GroupSums) -> Iterator[FloatArray]:
    """math [98]: blocks (group, edges of both) whose products add up to the covariance.

    A cell of one group has the pooled variance of single differences, as if all of its rows had
    the same error.
    """
    size = influence.a.n_edges * influence.b.n_edges
    supported = np.flatnonzero(influence.cells.supported.ravel())
    by_cell = np.zeros((groups.means.shape[1], size))
    by_cell[supported] = influence.by_means(supported).reshape(len(supported), size)
    places = np.unique(groups.places.indices).astype(np.int64)
    by_place = np.zeros((groups.places.shape[1], size))
    n_b = influence.b.n_places
    by_place[places] = influence.of_places(places // n_b, places % n_b).reshape(-1, size)
    step = max(1, kernel.BLOCK // size)
    for begin in range(0, groups.means.shape[0], step):
        part = slice(begin, begin + step)
        yield np.asarray(groups.means[part] @ by_cell + groups.places[part] @ by_place)
    alone = np.flatnonzero(groups.alone)
    yield np.sqrt(kernel.pooled(influence.cells)[0]) * by_cell[alone]


def surface_degrees(
    influence: kernel.Influence, groups: GroupSums, variance: FloatArray
) -> FloatArray:
    """Degrees of freedom of ``variance`` (edge, edge), from the overlap of the cells' groups.

    What is left of the variance, by the places of the groups and by what cells have in common, has
    those of a mean over all rows.
    """
    of_cells, overlap, alone = np.nan_to_num(groups.variance), groups.overlap, groups.alone
    of_cells[alone] = kernel.pooled(influence.cells)[0]
    overlap[alone] = overlap[:, alone] = 0.0
    overlap[alone, alone] = 1 / max(groups.every, 1.0)
    supported = np.flatnonzero(influence.cells.supported.ravel())
    moved = influence.by_means(supported).reshape(len(supported), -1)
    parts = (moved**2 * of_cells[supported][:, None]).T
    squares = np.sum((parts @ overlap[np.ix_(supported, supported)]) * parts, axis=1)
    total = variance.ravel()
    squares += np.maximum(total - parts.sum(axis=1), 0.0) ** 2 / max(groups.every, 1.0)
    out = np.full(len(total), np.inf)
    np.divide(total**2, squares, out=out, where=squares > 0)
    return out.reshape(variance.shape)
