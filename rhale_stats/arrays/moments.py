"""Means and variances of local effects in cells of one axis, and sums by squared weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

import boost_histogram as bh
import numpy as np
from numpy.typing import NDArray

A = TypeVar("A", bound=tuple[Any, ...])
FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
Axis: TypeAlias = bh.axis.Regular | bh.axis.Variable

# Rows of a block where a pass needs temporary columns: 2 MB for each column.
BLOCK_ROWS = 1 << 18
# Exponents of d and r in the moments of `ResidualMoments`, and in those that lines need besides.
RESIDUAL_POWERS = ((0, 3), (0, 4), (2, 0), (1, 1))
LINE_POWERS = ((3, 0), (4, 0), (2, 1), (3, 1), (1, 2), (2, 2))
# Those by which the average along a bin and the slope of its line depend on each other.
LEVEL_POWERS = ((1, 2), (0, 2), (2, 2))
# Exponents in the moments by squared weights: those of lines stand where `LINE_POWERS` has them.
SQUARE_POWERS = ((1, 0), (2, 0), (0, 1), (1, 1), *LINE_POWERS, (0, 2), (0, 4))
OF_CONSTANT, OF_LINES = (0, 1, 2, 3, 10, 11), slice(4, 10)
# Powers of the residual in sums by cubed weights; and exponents of (w, r) in the sums that parts of
# weighted rows need, besides `SquaredWeightMoments`, to be put together.
POWERS_OF_CUBES = ((0, 0), (0, 1), (0, 2), (0, 3))
WEIGHT_POWERS = ((1, 0), (2, 0), (2, 3), (3, 0), (3, 1), (3, 2), (3, 3), (4, 0), (5, 0))


class Moments(NamedTuple):
    """Moments of the local effects g (and the mean of x) per cell; last axis: cells.

    ``weight`` is sum(w) and ``weight_sq`` sum(w^2) for precision weights. Without weights both are
    the number of rows; frequency weights count rows, so both are sum(w). This makes one formula of
    math [5] and [6] for all three. ``mean`` and ``x_mean`` are NaN where a cell has no rows. For
    lines there are ``x_m2`` and ``xg``, sums of w (x - x_mean)^2 and of w (x - x_mean)(g - mean).
    """

    n_obs: FloatArray
    weight: FloatArray
    weight_sq: FloatArray
    mean: FloatArray
    m2: FloatArray
    x_mean: FloatArray
    x_m2: FloatArray | None = None
    xg: FloatArray | None = None

    def each(self, function: Callable[[FloatArray], FloatArray]) -> Moments:
        """The same with a function of every array."""
        return Moments(*[None if part is None else function(part) for part in self])  # type: ignore[arg-type]


class ResidualMoments(NamedTuple):
    """Moments about the means or lines of bins, for standard errors.

    Means over the rows of a bin of powers of d, the distance of x from its mean, and of r, the
    residual. ``line`` holds those of `LINE_POWERS`, (bins, powers), where there are lines; ``mean``
    is that of the local effects.
    """

    second_moment: FloatArray
    third_moment: FloatArray
    fourth_moment: FloatArray
    x_variance: FloatArray
    x_covariance: FloatArray
    line: FloatArray | None
    mean: FloatArray


def selected(parts: A, cells: Any) -> A:
    """The same named tuple of arrays for some of its cells, None where it has none."""
    return type(parts)(*[None if part is None else part[cells] for part in parts])  # type: ignore[arg-type]


def cell_index(axis: Axis, x: FloatArray) -> IntArray:
    """Cell of every value, by the arithmetic of the axis."""
    if isinstance(axis, bh.axis.Variable):
        return np.searchsorted(np.asarray(axis.edges), x, side="right") - 1
    # boost-histogram's annotation knows single values only.
    return np.asarray(axis.index(x)).astype(np.intp)  # type: ignore[arg-type]


def part(values: NDArray[Any], rows: IntArray | NDArray[np.bool_]) -> NDArray[Any]:
    """Values at ``rows``, distinct and in order; all of them are not copied."""
    if rows.dtype != bool and len(rows) == len(values):
        return values
    return np.asarray(values[rows])


def merge(cells: Moments, starts: IntArray) -> Moments:
    """Moments of unions of neighbouring cells: bin k is cells ``starts[k]`` to ``starts[k+1]``.

    The pairwise update of Chan, Golub and LeVeque (1983) over whole groups: exact, and centred
    about the mean of the union.
    """
    weight = np.add.reduceat(cells.weight, starts)
    length = np.diff(starts, append=len(cells.weight))
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.add.reduceat(cells.weight * _or_zero(cells.mean), starts) / weight
        x_mean = np.add.reduceat(cells.weight * _or_zero(cells.x_mean), starts) / weight
    deviation = _or_zero(cells.mean - np.repeat(mean, length))
    with np.errstate(over="ignore"):  # the caller refuses moments that are not finite
        m2 = np.add.reduceat(cells.m2 + cells.weight * deviation**2, starts)
    n_obs, weight_sq = [np.add.reduceat(part, starts) for part in (cells.n_obs, cells.weight_sq)]
    bins = Moments(n_obs, weight, weight_sq, mean, m2, x_mean)
    if cells.x_m2 is None or cells.xg is None:
        return bins
    away = _or_zero(cells.x_mean - np.repeat(x_mean, length))
    x_m2, xg = cells.x_m2 + cells.weight * away**2, cells.xg + cells.weight * away * deviation
    return bins._replace(x_m2=np.add.reduceat(x_m2, starts), xg=np.add.reduceat(xg, starts))


def side_by_side(problems: Sequence[Moments]) -> Moments:
    """Moments of several features with equally many cells, (problem, cell)."""
    several = zip(*problems, strict=True)
    return Moments(*[None if each[0] is None else np.stack(each) for each in several])  # type: ignore[arg-type]


def union(cells: Moments) -> Moments:
    """Moments of all cells together, (problems, cells) -> (problems,)."""
    weight = cells.weight.sum(axis=1)
    sums = cells.weight * np.stack([cells.mean, cells.x_mean])
    mean, x_mean = np.where(np.isnan(sums), 0.0, sums).sum(axis=-1) / weight
    squares = cells.weight * (cells.mean - mean[:, None]) ** 2
    between = np.where(np.isnan(squares), 0.0, squares).sum(axis=1)
    return Moments(
        cells.n_obs.sum(axis=1),
        weight,
        cells.weight_sq.sum(axis=1),
        mean,
        cells.m2.sum(axis=1) + between,
        x_mean,
    )


def _or_zero(values: FloatArray) -> FloatArray:
    return np.where(np.isnan(values), 0.0, values)


def n_effective(moments: Moments) -> FloatArray:
    """Kish's effective number of rows, (sum w)^2 / sum w^2 (math [6]); 0 in an empty cell."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return _or_zero(moments.weight**2 / moments.weight_sq)


def variance(moments: Moments, ddof: int | IntArray) -> FloatArray:
    """math [6]; NaN if there are too few rows.

    ddof 1: sum w (g - mean)^2 / (sum w - sum w^2 / sum w); ddof 0: the same over sum w. 2, of
    squares about a line, is exact where all weights are equal, and where they do not depend on x.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        denominator = moments.weight - ddof * moments.weight_sq / moments.weight
        # A little above, because sums of weights may round up; an empty cell has NaN.
        enough = moments.weight**2 / moments.weight_sq > ddof * (1 + 1e-12)
        return np.where(enough, moments.m2 / denominator, np.nan)


# A smaller share of a third cumulant that is left in residuals says nothing of it.
MIN_REMAINING = 0.1


class SquaredWeightMoments(NamedTuple):
    """Moments by squared precision weights, for variances that do not take weights for unrelated.

    ``moments`` (bins, powers) are means over the squared weights of the products of
    `SQUARE_POWERS`; those of lines are 0 where there are none. ``factor`` makes the mean of r^2
    unbiased for equal variances, r being the residual from a mean. ``rows`` of equal weight have
    the same degrees of freedom as these weights (Bell and McCaffrey 2002, every row its own group).
    ``third`` over the square of the effective number of rows is the third cumulant of the error of
    the mean, unbiased for equal third cumulants of the rows; NaN where next to nothing is left of
    it (math [64]). ``products`` are what other parts of the rows need to put theirs beside it.
    """

    moments: FloatArray
    factor: FloatArray
    rows: FloatArray
    third: FloatArray
    products: FloatArray

    def variance(self) -> FloatArray:
        """What takes the place of the variance of the rows in standard errors; NaN of one row."""
        return np.asarray(self.factor * self.moments[:, 10])


def need_squares(weight: FloatArray | None, *, frequency: bool) -> bool:
    """Whether weights are precision weights that differ: equal ones are as none."""
    return weight is not None and not frequency and bool(weight.min() < weight.max())


def rows_of_squares(weight: FloatArray) -> float:
    """Effective number of rows in sums of squared weights, as `Squares.rows` of one bin."""
    square = (weight / weight.max()) ** 2
    return float(square.sum() ** 2 / np.sum(square**2))


class SquareSums(NamedTuple):
    """What `SquaredWeightMoments` are made of: sums over rows, which add up over chunks of them.

    ``by_square`` (powers, bins) are sums of w^2 times the products of `SQUARE_POWERS`, or of those
    without lines, and w^2 r^3; ``by_cube`` those of w^3 times 1, r, r^2 and r^3; the others of w^4
    and w^5.
    """

    by_square: FloatArray
    by_cube: FloatArray
    fourth: FloatArray
    fifth: FloatArray

    def products(self, bins: Moments) -> FloatArray:
        """Sums that other parts of the rows also need: (bins, `WEIGHT_POWERS`)."""
        parts = bins.weight, bins.weight_sq, self.by_square[-1], *self.by_cube
        return np.stack([*parts, self.fourth, self.fifth], axis=-1)


def square_sums_of_all(chunks: Sequence[SquareSums]) -> SquareSums:
    """Sums over all rows, from those over chunks about common means."""
    return SquareSums(*[np.sum(part, axis=0) for part in zip(*chunks, strict=True)])


def moved_squares(
    moments: FloatArray, products: FloatArray, g: FloatArray, x: FloatArray
) -> SquareSums:
    """Sums about other means, from those of `SquaredWeightMoments` about constant bins.

    ``g`` and ``x`` are the distances of the old means from the new ones; (bins,).
    """
    q = products[:, 1]
    s10, s20, s01, s11, s02, s04 = moments[:, OF_CONSTANT].T * q
    s03, t0, t1, t2, t3, fourth, fifth = products[:, 2:].T
    by_square = np.stack(
        [
            s10 + x * q,
            s20 + 2 * x * s10 + x**2 * q,
            s01 + g * q,
            s11 + x * s01 + g * s10 + x * g * q,
            s02 + 2 * g * s01 + g**2 * q,
            s04 + 4 * g * s03 + 6 * g**2 * s02 + 4 * g**3 * s01 + g**4 * q,
            s03 + 3 * g * s02 + 3 * g**2 * s01 + g**3 * q,
        ]
    )
    by_cube = np.stack(
        [
            t0,
            t1 + g * t0,
            t2 + 2 * g * t1 + g**2 * t0,
            t3 + 3 * g * t2 + 3 * g**2 * t1 + g**3 * t0,
        ]
    )
    return SquareSums(by_square, by_cube, fourth, fifth)


def of_squares(slope: FloatArray | None) -> IntArray:
    """Which of the products of `SQUARE_POWERS` are needed; those of lines if there are any."""
    linear = slope is not None and slope.any()
    return np.arange(len(SQUARE_POWERS)) if linear else np.array(OF_CONSTANT)


def squares_of(
    sums: SquareSums, bins: Moments, slope: FloatArray | None = None
) -> SquaredWeightMoments:
    """Moments by squared weights of the bins, from sums about their means or lines."""
    powers = of_squares(slope)
    out = np.zeros((len(bins.weight), len(SQUARE_POWERS)))
    q, w = bins.weight_sq, bins.weight
    cubes, fourth = sums.by_cube[0], sums.fourth
    with np.errstate(invalid="ignore", divide="ignore"):
        out[:, powers] = np.nan_to_num(sums.by_square[:-1] / q).T
        if slope is not None:
            out[slope == 0, OF_LINES] = 0.0
        rest = 1 - 2 * cubes / (w * q) + q / w**2
        n = w**2 / q
        factor = np.where(n > 1 + 1e-12, 1 / rest, np.nan)
        if slope is not None:
            factor = np.where(slope != 0, factor * (n - 1) / (n - 2), factor)
        n_rows = np.nan_to_num(q**2 / fourth)
        # Of sum a^3 e^3, a = w / sum w, the residuals e - sum a e keep this share.
        remaining = 1 - (3 * fourth / w - 3 * sums.fifth / w**2 + cubes**2 / w**3) / cubes
        third = np.where(remaining > MIN_REMAINING, sums.by_cube[3] * w / q**2 / remaining, np.nan)
    return SquaredWeightMoments(out, factor, n_rows, third, sums.products(bins))
