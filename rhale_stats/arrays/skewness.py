"""Skewness of the errors of estimates, and intervals that allow for it (math [24]).

Under skewed local effects the mean of a cell and its own variance are correlated, and Student's t
is off on one side. Hall's (1992) transformation takes this off, given the skewness of the error.
That of few rows is poorly known, and is as large under symmetric heavy tails as under skewness; so
it is taken together from neighbouring cells, and only where these agree on its sign.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from rhale_stats.arrays.accumulate import sums_at_edges
from rhale_stats.arrays.binning import sorting
from rhale_stats.arrays.moments import MIN_REMAINING, FloatArray, IntArray
from rhale_stats.arrays.pooled_variance import Occupied

# Neighbouring cells whose skewness is taken together, the smallest number of them, and the cells
# whose variance is taken together; chosen by simulation (tests/arrays/test_skewness.py).
POOLED_CELLS, MIN_CELLS, SMOOTHED_CELLS = 20, 5, 6
# Neighbouring cells about whose mean the sign of the skewness is tested.
CENTRED = 3
# Chance of a correction where the local effects are symmetric: from stretches of cells, and from
# all rows together.
SIGNIFICANCE, OF_ALL = 0.01, 0.05
# Rows below which a cell says nothing of its skewness.
MIN_ROWS = 3
# Smallest degrees of freedom of the test of a sign.
MIN_DEGREES = 1.0


def third_cumulant(third_moment: FloatArray, n: FloatArray) -> FloatArray:
    """Unbiased third cumulant of rows from their third central moment (over n); NaN for few."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(n >= MIN_ROWS, third_moment * n**2 / ((n - 1) * (n - 2)), np.nan)


def of_cells(
    third: FloatArray,
    variance: FloatArray,
    n: FloatArray,
    sign: float | FloatArray | None = None,
) -> FloatArray:
    """Skewness of the local effects around each cell, (..., cell); 0 where it is not clear.

    ``third`` are the third cumulants of the cells, ``variance`` their variances. Whether it is
    clear is decided by the cells, or is known: ``sign`` is that of the skewness, 0 if unclear, and
    NaN of a feature whose cells decide.
    """
    if n.ndim == 1:
        third, variance, n = third[None], variance[None], n[None]
        return np.asarray(of_cells(third, variance, n, sign)[0])
    out = np.zeros(n.shape)
    usable = np.isfinite(third) & (variance > 0) & (n >= MIN_ROWS)
    if not usable.any():
        return out
    cells = Occupied.of_cells(usable)
    k3, v, rows = map(cells.first, (third, variance, n))
    width, few = (np.minimum(cells.n, most) for most in (POOLED_CELLS, SMOOTHED_CELLS))
    with np.errstate(invalid="ignore", divide="ignore"):
        common = np.divide(*_around(np.stack([rows * v, rows]), few, cells.n))
        third = np.nan_to_num(rows * k3 / common**1.5)
        estimate = np.divide(*_around(np.stack([third, rows]), width, cells.n))
        known_sign = np.asarray(np.nan if sign is None else sign)
        agreed = _agreed(k3, v, rows, width, cells.n)
        clear = np.where(np.isnan(known_sign), agreed, estimate * known_sign > 0)
    estimate = np.where(clear & np.isfinite(estimate), estimate, 0.0)
    np.put_along_axis(out, cells.place, estimate, axis=-1)
    return np.where(usable, out, 0.0)


def _agreed(
    k3: FloatArray, v: FloatArray, rows: FloatArray, width: IntArray, n: IntArray
) -> NDArray[np.bool_]:
    """Whether the cells around each, of the ``n`` first, agree on the sign of their skewness."""
    # Standardised by the cell's own variance: bounded, so that one row does not decide on the sign.
    with np.errstate(over="ignore"):
        bounded = np.nan_to_num(k3 / v**1.5 * (rows - 2) / np.sqrt(rows * (rows - 1)))
    over = np.maximum(width, 1)[:, None]
    mean, square = _around(np.stack([bounded, bounded**2]), width, n) / over
    spread = np.sqrt(np.maximum(square - mean**2, 0.0) / (over - 1))
    # Divided among stretches that have no cells in common.
    tail = SIGNIFICANCE * width / np.maximum(n, 1) / 2
    limit = special.stdtrit(over - 1, 1 - tail[:, None])
    return np.asarray((np.abs(mean) > limit * spread) & (n >= MIN_CELLS)[:, None])


def clear_sign(
    values: FloatArray,
    cell: IntArray,
    weight: FloatArray | None,
    unit: IntArray | None,
    *,
    fine: bool,
) -> float:
    """Sign of the skewness of all rows about the means of their cells, 0 unless it is clear.

    math [64]: a t test of the third L-moment (Hosking 1990), which heavy tails disturb little, from
    the sums of its influences by independent ``unit``, such as groups of rows; None if rows are
    independent. Means of ``fine`` cells are taken together.
    """
    weight = np.ones(len(values)) if weight is None else weight
    x = _standardised(values - values.mean(), cell, weight, CENTRED if fine else 1)
    moment, influence = third_l_moment(x, weight)
    if unit is not None:
        influence = np.bincount(unit, influence).astype(np.float64)
    square = float(np.sum(influence**2))
    if square == 0:
        return 0.0
    # Few units with most of the influence are as few units.
    degrees = square**2 / float(np.sum(influence**4)) - 1
    limit = special.stdtrit(max(degrees, MIN_DEGREES), 1 - OF_ALL / 2) * np.sqrt(square)
    return float(np.sign(moment)) if abs(moment) > limit else 0.0


def third_l_moment(x: FloatArray, weight: FloatArray) -> tuple[float, FloatArray]:
    """The third L-moment of weighted rows, and the influences of the rows on it, in their order."""
    order = sorting(x)
    y, p = x[order], weight[order] / weight.sum()
    rank = np.cumsum(p) - p / 2
    legendre = 6 * rank**2 - 6 * rank + 1
    moment = float(np.sum(p * y * legendre))
    # The second part is the change of the ranks, of the rows above and half of the row's own.
    change = p * y * (12 * rank - 6)
    influence = np.empty(len(x))
    influence[order] = y * legendre + np.cumsum(change[::-1])[::-1] - change / 2
    return moment, weight / weight.sum() * (influence - np.sum(p * influence[order]))


def _standardised(values: FloatArray, cell: IntArray, weight: FloatArray, few: int) -> FloatArray:
    """Distances from the mean of the cells around, over their standard deviation; 0 without one.

    A row with most of the weight of a fine cell would have next to no distance from its mean.
    """
    number = np.unique(cell, return_inverse=True)[1]
    n_cells = int(number.max(initial=0)) + 1
    few = min(few, n_cells)

    def around(values: FloatArray) -> FloatArray:
        in_cells = np.bincount(number, values, n_cells).astype(np.float64)
        return np.asarray(_around(in_cells[None], np.array([few]), np.array([n_cells]))[0])

    total = around(weight)
    away = values - (around(weight * values) / total)[number]
    sd = np.sqrt(around(weight * away**2) / total)[number]
    return np.divide(away, sd, out=np.zeros(len(away)), where=sd > 0)


def _around(values: FloatArray, width: IntArray, n: IntArray) -> FloatArray:
    """Sums over ``width`` cells around each, (..., feature, cell); at the ends over those nearest.

    Features have the ``n`` first of the cells; what stands behind these has no meaning.
    """
    out = np.empty(values.shape)
    for size in np.unique(width).tolist():
        rows = np.flatnonzero(width == size)
        last = np.maximum(n[rows] - size, 0)[:, None]
        low = np.clip(np.arange(values.shape[-1]) - size // 2, 0, last)
        # No differences of running sums: weights may differ by many orders of magnitude.
        windows = np.lib.stride_tricks.sliding_window_view(values[..., rows, :], size, axis=-1)
        out[..., rows, :] = windows.sum(axis=-1)[..., np.arange(len(rows))[:, None], low]
    return out


def smooth_variance(variance: FloatArray, n: FloatArray) -> FloatArray:
    """Variances of cells together with their neighbours, as the skewness is standardised by."""
    if n.ndim == 1:
        return np.asarray(smooth_variance(variance[None], n[None])[0])
    usable = np.isfinite(variance) & (n > 0)
    cells, out = Occupied.of_cells(usable), np.zeros(n.shape)
    rows, values = cells.first(n), cells.first(variance)
    few = np.minimum(cells.n, SMOOTHED_CELLS)
    with np.errstate(invalid="ignore", divide="ignore"):
        smooth = np.divide(*_around(np.stack([rows * values, rows]), few, cells.n))
    np.put_along_axis(out, cells.place, smooth, axis=-1)
    return np.where(usable, out, 0.0)


class Shared(NamedTuple):
    """Cumulants that the standardised errors of different units have in common.

    Of a ``pair``; of three of which two are the same, ``twice``; of three different ones,
    ``thrice``.
    """

    pair: float
    twice: float
    thrice: float

    @classmethod
    def from_influences(cls, z: FloatArray) -> Shared:
        """From standardised influences, (group, unit): means over all choices of units."""
        n = z.shape[1]
        sum_1, sum_2, sum_3 = [np.sum(z**power, axis=1) for power in (1, 2, 3)]
        pairs, triples = n * (n - 1), n * (n - 1) * (n - 2)
        return cls(
            float(np.sum(sum_1**2 - sum_2)) / max(pairs, 1),
            float(np.sum(sum_2 * sum_1 - sum_3)) / max(pairs, 1),
            float(np.sum(sum_1**3 - 3 * sum_2 * sum_1 + 2 * sum_3)) / triples if triples else 0.0,
        )


class Skewness(NamedTuple):
    """Second and third cumulants of the errors of the means of cells, where these are skewed.

    Errors of different cells are independent, unless they have some ``shared``.
    """

    second: FloatArray
    third: FloatArray
    shared: Shared | None = None

    @classmethod
    def from_cumulants(
        cls,
        third: FloatArray,
        variance: FloatArray,
        n: FloatArray,
        sign: float | FloatArray | None = None,
    ) -> Skewness | None:
        """From third cumulants, variances and numbers of rows; None if no cell has a skewness."""
        skewness = of_cells(third, variance, n, sign)
        if not skewness.any():
            return None
        smooth = smooth_variance(variance, n)
        with np.errstate(invalid="ignore", divide="ignore"):
            return cls(
                np.where(n > 0, smooth / n, 0.0),
                np.where(n > 0, skewness * smooth**1.5 / n**2, 0.0),
            )

    @classmethod
    def of_groups(cls, influence: FloatArray, degrees: FloatArray, sign: float) -> Skewness | None:
        """From the influences of groups, corrected for their leverage, on bins: (group, bin).

        ``degrees`` are those of the variances of the bins, and groups of equal size would be one
        more.
        """
        n = np.maximum(degrees, 0.0) + 1
        # Of the third cumulant, corrected influences keep this share if groups are equal.
        with np.errstate(invalid="ignore", divide="ignore"):
            remaining = (1 - 2 / n) / np.sqrt(1 - 1 / n)
            third = np.where(
                remaining > MIN_REMAINING, np.sum(influence**3, axis=0) / remaining, np.nan
            )
        skewness = cls.from_cumulants(third * n**2, np.sum(influence**2, axis=0) * n, n, sign)
        if skewness is None:
            return None
        sd = np.sqrt(skewness.second)
        return skewness._replace(
            shared=Shared.from_influences(
                np.divide(influence, sd, out=np.zeros(influence.shape), where=sd > 0)
            )
        )

    def of_means(self) -> FloatArray:
        """Skewness of the mean of every cell."""
        return _standardised_third(self.second, self.third)

    def of_sums(self, weight: FloatArray, least: FloatArray | float = 0.0) -> FloatArray:
        """Skewness of weighted sums of the means of cells, (..., cell) -> (...).

        It is that of a variance of ``least`` at least.
        """
        square = weight * weight
        second, third = square @ self.second, (square * weight) @ self.third
        if self.shared is not None:
            x = weight * np.sqrt(self.second)
            sum_1, sum_2, sum_3 = [np.sum(x**power, axis=-1) for power in (1, 2, 3)]
            pair, twice, thrice = self.shared
            second = second + pair * (sum_1**2 - sum_2)
            third = third + 3 * twice * (sum_2 * sum_1 - sum_3)
            third = third + thrice * (sum_1**3 - 3 * sum_2 * sum_1 + 2 * sum_3)
        return _standardised_third(np.maximum(second, least), third)

    def at_edges(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """Skewness of sums at the edges of cells: of cells to the left of an edge, and others.

        These have the weights ``left`` and ``right``, (..., cell) -> (..., edge).
        """
        second = sums_at_edges(left**2 * self.second, right**2 * self.second)
        third = sums_at_edges(left**3 * self.third, right**3 * self.third)
        return _standardised_third(second, third)

    def in_bins(self, weight: FloatArray, bin_of: IntArray, n_bins: int) -> FloatArray:
        """Skewness of sums over the cells of bins, (bin,)."""
        second, third = [
            np.bincount(bin_of.ravel(), (weight**power * part).ravel(), n_bins)
            for power, part in ((2, self.second), (3, self.third))
        ]
        return _standardised_third(second, third)


def _standardised_third(second: NDArray[Any], third: NDArray[Any]) -> FloatArray:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(second > 0, third / second**1.5, 0.0)
