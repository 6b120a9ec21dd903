"""Moments of local effects in the cells of one axis: all that estimates need of the rows.

One reading of the rows gives, in every cell, the means of x and of the local effect g, and the sums
of the products of their deviations up to the fourth degree. Moments of other rows in the same
cells, of neighbouring cells together, and of residuals from lines follow from these exactly: a line
is a shear, x -> x and g -> g - slope x (math [95]).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from rhale_stats.arrays.binning import Stretches, bin_index
from rhale_stats.arrays.moments import (
    LINE_POWERS,
    POWERS_OF_CUBES,
    RESIDUAL_POWERS,
    SQUARE_POWERS,
    FloatArray,
    IntArray,
    Moments,
    ResidualMoments,
    SquareSums,
    of_squares,
)

# Exponents (p, q) of the sums of w (x - x_mean)^p (g - mean)^q.
POWERS = (
    *((2, 0), (1, 1), (0, 2)),
    *((3, 0), (2, 1), (1, 2), (0, 3)),
    *((4, 0), (3, 1), (2, 2), (1, 3), (0, 4)),
)
HEADS = ("n_obs", "weight", "weight_sq", "x_mean", "mean")
FIELDS = (*HEADS, *[f"x{p}g{q}" for p, q in POWERS])
_ROW = {power: len(HEADS) + number for number, power in enumerate(POWERS)}
DEGREE = 4
OF_X, OF_G = np.transpose(POWERS)
# Number of the products up to each degree.
N_POWERS = [int(np.sum(degree >= OF_X + OF_G)) for degree in range(DEGREE + 1)]
# A share of the squares of g below this is what rounding leaves of residuals from a line.
ROUNDING = 256 * float(np.finfo(np.float64).eps)


class CellMoments(NamedTuple):
    """Moments in cells: ``table`` has a row for each of `FIELDS`, and a column for each cell.

    ``weight`` is the sum of w, ``weight_sq`` that of w^2; frequency weights count rows, so that
    both are the number of rows then (math [6]). Means of a cell without rows are 0.
    """

    table: FloatArray

    @classmethod
    def of_rows(
        cls,
        edges: FloatArray,
        x: FloatArray,
        g: FloatArray,
        weight: FloatArray | None = None,
        *,
        frequency: bool = False,
    ) -> CellMoments:
        """Moments of rows that ascend in ``x``, in cells that are closed on the left.

        The last cell is closed on both sides; rows beyond an end belong to the cell there.
        """
        cells = Stretches.between(edges, x)
        sums = np.zeros((len(FIELDS) + 2, cells.n_groups))
        n_obs, total, total_sq, x_mean, mean = sums[: len(HEADS)]
        n_obs[:] = total[:] = total_sq[:] = cells.n_obs
        if weight is not None:
            total[:] = total_sq[:] = 0.0
        # About the first row of a cell, so that equal values have no spread, then the means.
        x_first, g_first = x[cells.first], g[cells.first]
        for block in cells.blocks():
            d = x[block.rows] - block.on_rows(x_first)
            r = g[block.rows] - block.on_rows(g_first)
            if weight is not None:
                w = weight[block.rows]
                d *= w
                r *= w
                block.add(total, w)
                block.add(total_sq, w if frequency else w * w)
            block.add(x_mean, d)
            block.add(mean, r)
        if frequency:
            n_obs[:] = total
        x_mean[:] = x_first + x_mean / total
        mean[:] = g_first + mean / total
        with np.errstate(over="ignore", invalid="ignore"):
            for block in cells.blocks():
                d = x[block.rows] - block.on_rows(x_mean)
                r = g[block.rows] - block.on_rows(mean)
                of_g = None if weight is None else weight[block.rows]
                block.add(sums[-2], d if of_g is None else d * of_g)
                for q in range(DEGREE + 1):
                    if q:
                        of_g = r if of_g is None else of_g * r
                    column = of_g
                    for p in range(DEGREE + 1 - q):
                        if p:
                            column = d if column is None else column * d
                        if p + q >= 2 and column is not None:
                            block.add(sums[_ROW[p, q]], column)
                        elif (p, q) == (0, 1) and column is not None:
                            block.add(sums[-1], column)
        # The rounding of the means is taken out.
        occupied = cls(sums[:-2])._about_rest(sums[-2] / total, sums[-1] / total)
        return cls(cells.on_cells(occupied.table))

    @classmethod
    def of_products(
        cls,
        heads: Sequence[FloatArray],
        products: Mapping[tuple[int, int], FloatArray],
    ) -> CellMoments:
        """Moments with these `HEADS` and sums of products; others, which are not known, are 0."""
        none = np.zeros(len(heads[0]))
        rows = [*heads, *[products.get(power, none) for power in POWERS]]
        return cls(np.where(heads[1] > 0, np.stack(rows), 0.0))

    def _about_rest(self, x: FloatArray, g: FloatArray) -> CellMoments:
        """With the means moved by what is left of the first sums about them."""
        table, weight = self.table.copy(), self.weight
        table[3] += x
        table[4] += g
        table[_ROW[2, 0]] -= weight * x * x
        table[_ROW[1, 1]] -= weight * x * g
        table[_ROW[0, 2]] -= weight * g * g
        return CellMoments(table)

    @property
    def n_obs(self) -> FloatArray:
        """Number of rows."""
        return np.asarray(self.table[0])

    @property
    def weight(self) -> FloatArray:
        """Sum of the weights."""
        return np.asarray(self.table[1])

    @property
    def weight_sq(self) -> FloatArray:
        """Sum of the squared weights; of the weights where these count rows."""
        return np.asarray(self.table[2])

    @property
    def x_mean(self) -> FloatArray:
        """Mean of the feature."""
        return np.asarray(self.table[3])

    @property
    def mean(self) -> FloatArray:
        """Mean of the local effects."""
        return np.asarray(self.table[4])

    def product(self, p: int, q: int) -> FloatArray:
        """Sum of w (x - x_mean)^p (g - mean)^q, of the second degree or more."""
        return np.asarray(self.table[_ROW[p, q]])

    def products(self, powers: Sequence[tuple[int, int]]) -> FloatArray:
        """The sums of all ``powers`` (p, q), (powers, cells)."""
        return np.asarray(self.table[[_ROW[power] for power in powers]])

    def part(self, cells: slice) -> CellMoments:
        """Moments of neighbouring cells."""
        return CellMoments(self.table[:, cells])

    def means(self) -> Moments:
        """Weights and means with the squares about them; means are NaN where there are no rows."""
        n_obs, weight, weight_sq = self.table[:3]
        x_mean, mean = np.where(weight > 0, self.table[3:5], np.nan)
        squares, x_squares, mixed = self.table[[_ROW[0, 2], _ROW[2, 0], _ROW[1, 1]]]
        squares = np.maximum(squares, 0.0)
        return Moments(n_obs, weight, weight_sq, mean, squares, x_mean, x_squares, mixed)

    def sums_about(
        self, x: FloatArray, g: FloatArray, powers: Sequence[tuple[int, int]]
    ) -> FloatArray:
        """Sums of w d^p r^q for all ``powers`` (p, q), with d and r from other places than means.

        Shape (powers, cells).
        """
        p, q = np.transpose(powers)
        products, (weight, _, x_mean, mean) = self._products((p + q).max()), self.table[1:5]
        if p.any():
            _add_distance(products, np.where(weight > 0, x_mean - x, 0.0))
        else:
            products = products[:1]
        _add_distance(products.swapaxes(0, 1), np.where(weight > 0, mean - g, 0.0))
        return np.asarray(products[p, q])

    def _products(self, degree: int = DEGREE) -> FloatArray:
        """Sums of w (x - x_mean)^p (g - mean)^q, (p, q, cell); 0 above the degree."""
        products = np.zeros((degree + 1, degree + 1, self.table.shape[1]))
        products[0, 0] = self.table[1]
        n = N_POWERS[degree]
        products[OF_X[:n], OF_G[:n]] = self.table[len(HEADS) : len(HEADS) + n]
        return products

    def sheared(self, slope: FloatArray) -> CellMoments:
        """Moments of x and g - ``slope`` x: of residuals from lines of these slopes."""
        if not slope.any():
            return self
        products = self._products()
        before, along = products[0, 2].copy(), slope**2 * products[2, 0]
        # By the binomial formula for (r - slope d)^q, as in `_add_distance`.
        for first in range(1, DEGREE + 1):
            for q in range(DEGREE, first - 1, -1):
                products[: DEGREE + 1 - q, q] -= slope * products[1 : DEGREE + 2 - q, q - 1]
        # What rounding leaves beside a line is none.
        none = (slope != 0) & (products[0, 2] <= ROUNDING * (before + along))
        products[:, 1:, none] = 0.0
        heads = [*self.table[:4], self.mean - slope * self.x_mean]
        return CellMoments(np.concatenate([heads, products[OF_X, OF_G]]))

    def pooled(self, starts: IntArray, degree: int = DEGREE) -> CellMoments:
        """Moments of runs of neighbouring cells, each from one of ``starts`` on.

        The pairwise update of Chan, Golub and LeVeque (1983) over whole runs, up to the ``degree``;
        moments of higher ones are 0.
        """
        weight = self.table[1]
        if len(starts) in (0, len(weight)):
            return CellMoments(self.table[:, : len(starts)])
        length = np.diff(starts, append=len(weight))
        sums = np.add.reduceat(self.table[:3], starts, axis=1)
        total = np.where(sums[1] > 0, sums[1], 1.0)
        # About one cell of each run, so that equal means keep their digits.
        occupied = np.where(weight > 0, np.arange(len(weight)), 0)
        some = np.maximum.reduceat(occupied, starts)
        centre = self.table[3:5, some]
        apart = weight * (self.table[3:5] - np.repeat(centre, length, axis=1))
        apart = np.where(weight > 0, apart, 0.0)
        means = np.where(sums[1] > 0, centre + np.add.reduceat(apart, starts, axis=1) / total, 0.0)
        with np.errstate(over="ignore", invalid="ignore"):
            x, g = np.repeat(means, length, axis=1)
            within = self.sums_about(x, g, POWERS[: N_POWERS[degree]])
            higher = np.zeros((len(POWERS) - len(within), len(starts)))
            each = sums, means, np.add.reduceat(within, starts, axis=1), higher
            return CellMoments(np.concatenate(each))


def _add_distance(products: FloatArray, distance: FloatArray) -> None:
    """Replace sums of d^p r^q, (p, q, cell), by those of (d + ``distance``)^p r^q, in place.

    The binomial formula by repeated sums, as Pascal's triangle makes its coefficients.
    """
    if not distance.any():
        return
    degree = max(products.shape[:2]) - 1
    for first in range(1, len(products)):
        for p in range(len(products) - 1, first - 1, -1):
            products[p, : degree + 1 - p] += distance * products[p - 1, : degree + 1 - p]


def merged(parts: Sequence[CellMoments]) -> CellMoments:
    """Moments of all rows, from those of parts of the rows in the same cells."""
    if len(parts) == 1:
        return parts[0]
    table = np.stack([part.table for part in parts], axis=-1)
    n_cells = table.shape[1]
    side_by_side = CellMoments(table.reshape(len(FIELDS), -1))
    return side_by_side.pooled(np.arange(n_cells) * len(parts))


class RowMoments(NamedTuple):
    """Moments of the rows of one feature, by their weights and by powers of unequal ones.

    ``squares`` and ``cubes`` are moments by w^2 and w^3, ``fifth`` the sums of w^5; None unless
    rows have precision weights that differ.
    """

    cells: CellMoments
    squares: CellMoments | None = None
    cubes: CellMoments | None = None
    fifth: FloatArray | None = None

    @classmethod
    def of_rows(
        cls,
        edges: FloatArray,
        x: FloatArray,
        g: FloatArray,
        weight: FloatArray | None,
        *,
        frequency: bool,
        unequal: bool,
    ) -> RowMoments:
        """Moments of rows that ascend in ``x``; ``unequal``: they have weights that differ."""
        cells = CellMoments.of_rows(edges, x, g, weight, frequency=frequency)
        if not unequal or weight is None:
            return cls(cells)
        squares, cubes = [CellMoments.of_rows(edges, x, g, weight**power) for power in (2, 3)]
        fifth = np.bincount(bin_index(edges, x), weight**5, len(edges) - 1)
        return cls(cells, squares, cubes, fifth.astype(np.float64))

    def pooled(self, starts: IntArray) -> RowMoments:
        """Moments of runs of neighbouring cells, each from one of ``starts`` on."""
        if self.squares is None or self.cubes is None or self.fifth is None:
            return RowMoments(self.cells.pooled(starts))
        fifth = np.add.reduceat(self.fifth, starts)
        cells, squares, cubes = [
            part.pooled(starts) for part in (self.cells, self.squares, self.cubes)
        ]
        return RowMoments(cells, squares, cubes, fifth)

    @property
    def by_squares(self) -> CellMoments:
        """Moments by the squared weights, which are the weights themselves if these are equal."""
        return self.cells if self.squares is None else self.squares

    def square_sums(self, starts: IntArray, bins: Moments, slope: FloatArray | None) -> SquareSums:
        """Sums by powers of the weights in runs of cells, about the lines of the ``bins``."""
        assert self.squares is not None, "weights differ"
        assert self.cubes is not None, "weights differ"
        assert self.fifth is not None, "weights differ"
        length = np.diff(starts, append=len(self.fifth))
        about = Line.through(bins, slope).repeated(length)
        powers = [SQUARE_POWERS[number] for number in of_squares(slope)]
        each = about.sums(self.squares, [*powers, (0, 3)]), about.sums(self.cubes, POWERS_OF_CUBES)
        more = self.squares.weight_sq, self.fifth
        return SquareSums(*[np.add.reduceat(sums, starts, axis=-1) for sums in (*each, *more)])


class Line(NamedTuple):
    """A line a cell: through ``mean`` at ``x``, with a ``slope``."""

    x: FloatArray
    mean: FloatArray
    slope: FloatArray

    @classmethod
    def through(cls, bins: Moments, slope: FloatArray | None) -> Line:
        """The lines of bins through their means."""
        tilt = np.zeros(len(bins.mean)) if slope is None else slope
        return cls(np.nan_to_num(bins.x_mean), np.nan_to_num(bins.mean), tilt)

    def repeated(self, length: IntArray) -> Line:
        """The lines of bins in each of their cells."""
        return Line(*[np.repeat(values, length) for values in self])

    def sums(self, cells: CellMoments, powers: Sequence[tuple[int, int]]) -> FloatArray:
        """Sums of w d^p r^q, d being the distance from ``x`` and r that from the line."""
        residuals = cells.sheared(self.slope)
        return residuals.sums_about(self.x, self.mean - self.slope * self.x, powers)


def residual_moments(
    cells: CellMoments, starts: IntArray, slope: FloatArray | None
) -> ResidualMoments:
    """Means over the rows of bins of powers of the residuals from their means or lines."""
    if slope is not None:
        length = np.diff(starts, append=cells.table.shape[1])
        cells = cells.sheared(np.repeat(slope, length))
    bins = cells.pooled(starts)
    weight = bins.table[1]
    with np.errstate(invalid="ignore", divide="ignore"):
        third, fourth, x_variance, x_covariance, second = (
            bins.products((*RESIDUAL_POWERS, (0, 2))) / weight
        )
        line = None if slope is None else (bins.products(LINE_POWERS) / weight).T
    mean = bins.mean if slope is None else bins.mean + slope * bins.x_mean
    mean = np.where(weight > 0, mean, np.nan)
    return ResidualMoments(second, third, fourth, x_variance, x_covariance, line, mean)


def beside(parts: Sequence[RowMoments]) -> RowMoments:
    """Moments in the cells of several features, one behind the other."""
    if len(parts) == 1:
        return parts[0]
    cells, squares, cubes, fifth = zip(*parts, strict=True)
    if squares[0] is None:
        return RowMoments(_beside(cells))
    return RowMoments(_beside(cells), _beside(squares), _beside(cubes), np.concatenate(fifth))


def _beside(parts: Sequence[CellMoments]) -> CellMoments:
    return CellMoments(np.concatenate([part.table for part in parts], axis=1))


def merged_rows(parts: Sequence[RowMoments]) -> RowMoments:
    """Moments of all rows, from those of parts of the rows in the same cells."""
    cells, squares, cubes, fifth = zip(*parts, strict=True)
    if squares[0] is None:
        return RowMoments(merged(cells))
    return RowMoments(merged(cells), merged(squares), merged(cubes), np.sum(fifth, axis=0))
