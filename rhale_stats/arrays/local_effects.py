"""Local effects by differences of the model's output: steps, arguments, cells, errors."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial.chebyshev import chebvander
from numpy.typing import NDArray

from rhale_stats.arrays.binning import bin_index
from rhale_stats.arrays.moments import FloatArray, IntArray

# Errors of rows are summarised by their 99 % quantile.
ERROR_QUANTILE = 0.99
# The precision is that of a coarser type if all numbers fit into it and this share uses its last
# digit.
LAST_DIGIT_SHARE = 0.1
# A value and the one before it have so many rows, or share a cell.
ROWS_OF_A_CELL = 5
# A feature has ties if it has so many rows of each value, on average.
ROWS_OF_A_VALUE = 3
# Rows of one value that differ by less than this share of the range of the means do so by rounding.
NO_NOISE = 1e-9
# Polynomials that smooth means are of so high a degree at most.
MAX_DEGREE = 15
# With fewer values a smoothing spline has nothing to choose by.
MIN_TO_SMOOTH = 5
# No weight at all.
TINY = float(np.finfo(np.float64).tiny)
# Unit of rounding of bfloat16.
BRAIN_FLOAT = 2.0**-7


def robust_scale(x: FloatArray) -> float:
    """Scale of most values: the interquartile range over 1.349, that of a normal distribution.

    If half of the values are equal, it is the median distance of the other values from them. A few
    coded values (999999) change neither.
    """
    low, middle, high = np.quantile(x, [0.25, 0.5, 0.75])
    if high > low:
        return float((high - low) / 1.349)
    away = np.abs(x - middle)
    return float(np.median(away[away > 0])) if (away > 0).any() else 0.0


def central_step(x: FloatArray, precision: float) -> FloatArray:
    """Step of the central difference at every row, from the scale of the feature.

    With s the `robust_scale` of x and A = |x| / s (at least 1), the truncation error is about
    h^2 f'''/6 and the rounding error about A eps |f| / h; both are balanced at h = s (A eps)^(1/3),
    where the error relative to f's own variation over s is about (A eps)^(2/3): 4e-11 in double
    precision, 2e-5 where the model answers in single precision, 2e-6 for time stamps of 1.7e9 with
    a spread of 100.
    """
    return step_at(x, robust_scale(x), precision)


def step_at(x: FloatArray, scale: float, precision: float) -> FloatArray:
    """Step of the central difference at every row, for a scale of the feature that is known."""
    return np.asarray(scale * np.cbrt(precision * offset(x, scale)))


def offset(x: FloatArray, scale: float) -> FloatArray:
    """A = |x| / s, at least 1: by how much rounding of x exceeds that of its scale."""
    if not scale:
        return np.ones(len(x))
    return np.maximum(1.0, np.abs(x / scale))


def central_arguments(
    x: FloatArray, step: FloatArray, low: float, high: float
) -> tuple[FloatArray, FloatArray]:
    """Upper and lower arguments x + h and x - h, kept within the observed range.

    Spline bases refuse values beyond their outermost knots, and there are no data outside. At the
    two ends the difference is one-sided, with an error of order h instead of h^2.
    """
    return np.minimum(x + step, high), np.maximum(x - step, low)


def difference_quotient(f_upper: FloatArray, f_lower: FloatArray, step: FloatArray) -> FloatArray:
    """Slope between the arguments as the model received them, free of the rounding of x + h."""
    return np.asarray((f_upper - f_lower) / step)


def rounding_error(
    f_upper: FloatArray, f_lower: FloatArray, step: float, precision: float
) -> FloatArray:
    """Error of a difference quotient from rounding in the model: 8 eps max|f| / h.

    For every output: (row, output) -> (output,).
    """
    largest = np.maximum(np.abs(f_upper).max(axis=0), np.abs(f_lower).max(axis=0))
    return np.asarray(8 * precision * largest / step)


def quotient_error(
    f_upper: FloatArray, f_lower: FloatArray, step: FloatArray, precision: float
) -> FloatArray:
    """`rounding_error` row by row, as most rows have it: (row, output), steps (row,) -> (output,).

    Coded values have other outputs and steps than the other rows.
    """
    moved = step > 0
    if not moved.any():
        return np.zeros(f_upper.shape[1])
    # In place, because there may be very many rows.
    error = np.abs(f_upper)
    np.maximum(error, np.abs(f_lower), out=error)
    if not moved.all():
        error, step = error[moved], step[moved]
    error *= 8 * precision
    error /= step[:, None]
    return typical_error(error, overwrite=True)


def typical_error(errors: FloatArray, *, overwrite: bool = False) -> FloatArray:
    """99 % quantile over the rows of the errors (row, output): (output,)."""
    return np.asarray(
        np.quantile(
            errors, ERROR_QUANTILE, axis=0, method="inverted_cdf", overwrite_input=overwrite
        )
    )


def precision_held(values: NDArray[Any]) -> float:
    """Unit of rounding of the coarsest type that holds all numbers: half, single, or their own.

    Models that compute in single precision often answer in double precision. A few whole numbers
    fit into any type: the last digit of the coarser type must be in use.
    """
    if not np.issubdtype(values.dtype, np.floating):
        return float(np.finfo(np.float64).eps)
    if _are_brain_floats(values):
        return BRAIN_FLOAT
    for coarse, bits in ((np.float16, np.uint16), (np.float32, np.uint32)):
        if np.dtype(coarse).itemsize >= values.dtype.itemsize:
            break
        # Some of the values are checked first, which is faster.
        some = values.ravel()[:: max(1, values.size // 256)]
        for these in (some, values):
            with np.errstate(over="ignore"):
                rounded = these.astype(coarse)
            if not np.array_equal(rounded, these, equal_nan=True):
                break
        else:
            last = rounded[np.isfinite(rounded) & (rounded != 0)].view(bits) & 1
            if len(last) and last.mean() >= LAST_DIGIT_SHARE:
                return float(np.finfo(coarse).eps)
    return float(np.finfo(values.dtype).eps)


def _are_brain_floats(values: NDArray[Any]) -> bool:
    """Whether numbers have the eight binary digits of bfloat16, which NumPy does not have."""
    if values.dtype.itemsize < 4:
        return False
    some = values.ravel()[:: max(1, values.size // 256)]
    for these in (some, values):
        with np.errstate(over="ignore"):
            single = np.ascontiguousarray(these, dtype=np.float32)
        digits = single.view(np.uint32)
        if (digits & 0xFFFF).any() or not np.array_equal(single, these, equal_nan=True):
            return False
    nonzero = np.isfinite(single) & (single != 0)
    # Whole numbers say nothing of the type.
    nonzero &= single != np.round(single)
    last = (digits[nonzero] >> 16) & 1
    return bool(len(last) and last.mean() >= LAST_DIGIT_SHARE)


def cell_ends(edges: FloatArray, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Lower and upper end of every row's cell, the arguments of math [2]; closed on the left.

    Rows beyond the edges, which have no weight, get the nearest cell.
    """
    if len(edges) < 2:
        return np.full_like(x, edges[0]), np.full_like(x, edges[0])
    cell = bin_index(edges, x)
    return edges[cell], edges[cell + 1]


def on_edges(edges: FloatArray, x: FloatArray) -> tuple[IntArray, IntArray]:
    """Rows on an edge between two cells, and the cells to the left of them."""
    edge = np.searchsorted(edges, x)
    inner = (edge > 0) & (edge < len(edges) - 1)
    inner &= edges[np.minimum(edge, len(edges) - 1)] == x
    rows = np.flatnonzero(inner)
    return rows, edge[rows] - 1


def are_repeated(x: FloatArray, counts: FloatArray | None) -> bool:
    """Whether values are of 3 rows or more on average, by frequency weights if there are any."""
    n_rows = len(x) if counts is None else float(counts.sum())
    # Of a continuous feature, a third of the rows has too many values already.
    some = np.unique(x[: int(n_rows // ROWS_OF_A_VALUE) + 1])
    if ROWS_OF_A_VALUE * len(some) > n_rows:
        return False
    return ROWS_OF_A_VALUE * len(np.unique(x)) <= n_rows


class Halves(NamedTuple):
    """Rows in which those on the edges of cells count half in either cell, math [2].

    ``row`` has the number of every row that they come from, ``share`` the share of its weight;
    ``at_mean`` are halves that have the mean of their cell and deviations of their own.
    """

    row: IntArray
    x: FloatArray
    local_effect: FloatArray
    share: FloatArray
    at_mean: NDArray[np.bool_]


def halves(
    edges: FloatArray, x: FloatArray, g: FloatArray, left: FloatArray, weight: FloatArray | None
) -> Halves:
    """Rows on an edge as a half in the cell to the right and one in the cell to the left.

    ``left`` are slopes across the cell to the left, NaN at rows on no edge between two cells. Rows
    on an outermost edge count half, too, where their cell is between two values, so that its mean
    is that of the step between two levels. Their other halves have the mean of the cell and their
    own deviations, and so change no mean, and let every row count once.
    """
    on_edge = ~np.isnan(left)
    at_ends = [
        x == end
        for end, beside in ((edges[0], edges[1]), (edges[-1], edges[-2]))
        if not ((x > min(end, beside)) & (x < max(end, beside))).any()
    ]
    ends = np.flatnonzero(np.any(at_ends, axis=0)) if at_ends else np.zeros(0, dtype=np.int64)
    inner = np.flatnonzero(on_edge)
    row = np.concatenate([np.arange(len(x)), inner, ends])
    share = np.where(on_edge, 0.5, 1.0)
    share[ends] = 0.5
    share = share[row]
    # Just left of the edge, in the cell that the half counts in.
    places = np.concatenate([x, np.nextafter(x[inner], -np.inf), x[ends]])
    at_mean = np.arange(len(row)) >= len(row) - len(ends)
    values = np.concatenate([g, left[inner], g[ends]])
    w = share if weight is None else share * weight[row]
    move_to_means(values, edges, places, at_mean, w)
    return Halves(row, places, values, share, at_mean)


def move_to_means(
    values: FloatArray,
    edges: FloatArray,
    x: FloatArray,
    at_mean: NDArray[np.bool_],
    weight: FloatArray | None,
) -> None:
    """Move values (row, ...) of halves ``at_mean``, in place: their mean is that of the cell."""
    cell = bin_index(edges, x)
    for number in np.unique(cell[at_mean]):
        means = []
        for rows in (~at_mean & (cell == number), at_mean & (cell == number)):
            row_weight = None if weight is None else weight[rows]
            means.append(np.average(values[rows], axis=0, weights=row_weight))
        values[rows] += means[0] - means[1]


def on_both_sides(edges: FloatArray, x: FloatArray, *ordered_by: FloatArray) -> FloatArray:
    """Values in which every second row of those on an edge is just left of it.

    Every second in the order of these other columns, or else of the rows.
    """
    rows = on_edges(edges, x)[0]
    to_left = rows[np.lexsort([column[rows] for column in (*ordered_by[::-1], x)])][1::2]
    x = x.copy()
    x[to_left] = np.nextafter(x[to_left], -np.inf)
    return x


def sides(
    edges: FloatArray, x: FloatArray, g: FloatArray, left: FloatArray, weight: FloatArray
) -> Halves:
    """As `halves`, with whole rows on either side, whatever the order of the rows is.

    For precision weights that differ: two halves of a row would pass for two measurements.
    """
    places = on_both_sides(edges, x, weight, g)
    g = np.where((places < x) & ~np.isnan(left), left, g)
    return Halves(np.arange(len(x)), places, g, np.ones(len(x)), np.zeros(len(x), dtype=bool))


def in_the_middle(edges: FloatArray, places: FloatArray, x: FloatArray) -> FloatArray:
    """Places of halves of rows whose values ``x`` are edges: the middle of their cell.

    That is where the mean of a cell is the effect, so that a line through cells has its slope.
    """
    cell = bin_index(edges, places)
    return np.where(np.isin(x, edges), (edges[cell] + edges[cell + 1]) / 2, places)


def cells_around(values: FloatArray, n_rows: FloatArray) -> FloatArray:
    """Edges of cells around distinct values: midway to their neighbours, and at the values.

    A value that has a cell of its own, and half of its rows on either side, has 5 rows together
    with the one before, and so have it and all behind it; others share that of the one before.
    """
    enough = ROWS_OF_A_CELL if len(values) >= MIN_TO_SMOOTH else 0
    firsts = [0]
    for number in range(1, len(values)):
        if min(n_rows[firsts[-1] : number + 1].sum(), n_rows[number:].sum()) >= enough:
            firsts.append(number)
    starts = np.array(firsts)
    alone = np.diff(starts, append=len(values)) == 1
    alone &= (starts > 0) & (starts < len(values) - 1)
    midway = (values[starts[1:]] + values[starts[1:] - 1]) / 2
    return np.unique(np.concatenate([values[[0, -1]], midway, values[starts[alone]]]))


def between_values(
    edges: FloatArray, x: FloatArray, g: FloatArray, weight: FloatArray | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Slopes across cells around values, from derivatives at the values alone, math [2].

    Rows of a value stand for the axis halfway to the neighbouring values. To their derivatives is
    added what the mean over a cell differs from that at its rows, by a cubic spline through the
    means of the values, smoothed by their rows (generalised cross-validation): a spline through
    noisy means of few rows would carry their noise into the curve.

    Parameters
    ----------
    edges, x, g : ndarray of shape (edge,), (row,), (row, output)
        Edges as by `cells_around`.
    weight : ndarray of shape (row,), or None

    Returns
    -------
    right, left : ndarray of shape (row, output)
        Slopes across the cell, and across that to the left of rows on an edge (NaN elsewhere).
    error : ndarray of shape (output,)
        Largest error of the curve, over the range of the feature: by Richardson the fifteenth part
        of what the integral changes by if every second value is left out, the order being 4.
    """
    # Imported where derivatives are known at few values: these take longer than most calls.
    from scipy.integrate import cumulative_trapezoid
    from scipy.interpolate import CubicSpline

    values, value_of = np.unique(x, return_inverse=True)
    w = np.ones(len(x)) if weight is None else weight
    total = np.bincount(value_of, w).astype(np.float64)
    weighted = total > 0  # rows without weight have values of their own
    means = np.stack([np.bincount(value_of, w * column) for column in g.T], axis=1).astype(float)
    means[weighted] /= total[weighted, None]
    places, smooth = values[weighted], means[weighted]
    # Means without noise are interpolated as they are.
    away = g - means[value_of]
    if np.abs(w[:, None] * away).max() > NO_NOISE * np.ptp(smooth):
        noise = w @ away**2 / max(np.count_nonzero(w) - len(places), 1)
        smooth = _smoothed(places, smooth, total[weighted], noise, w.sum() ** 2 / (w @ w))
    # About the first value, so that an offset costs no digits.
    spline = CubicSpline(places - places[0], smooth)
    integral = spline.antiderivative()
    away, order = integral(places - places[0]), 1
    if len(places) > 4:
        coarse = CubicSpline(places[::2] - places[0], smooth[::2]).antiderivative()
        away, order = away[::2] - coarse(places[::2] - places[0]), 15
    else:
        away = away - cumulative_trapezoid(smooth, places, axis=0, initial=0)
    error = np.ptp(away, axis=0) / order / np.ptp(places)
    slope = np.diff(integral(edges - places[0]), axis=0) / np.diff(edges)[:, None]
    # Less the mean of the spline over the rows of a cell, those on an edge being halves.
    cell = bin_index(edges, values)
    on_edge = np.isin(values, edges)
    inner = on_edge & (values > edges[0]) & (values < edges[-1])
    cells = np.concatenate([cell, cell[inner] - 1])
    rows = np.concatenate([np.where(on_edge, total / 2, total), total[inner] / 2])
    weights = np.maximum(np.bincount(cells, rows, len(slope)), TINY)
    at_values = spline(values - places[0])
    for output, column in enumerate(at_values.T):
        sums = np.bincount(cells, rows * np.concatenate([column, column[inner]]), len(slope))
        slope[:, output] -= sums / weights
    left, tied = np.full_like(g, np.nan), inner[value_of]
    left[tied] = g[tied] + slope[cell[value_of[tied]] - 1]
    return g + slope[cell[value_of]], left, error


def _smoothed(
    values: FloatArray, means: FloatArray, total: FloatArray, noise: FloatArray, n_rows: float
) -> FloatArray:
    """Means (value, output) smoothed by their weights; as they are where they are few.

    By the polynomial with the least BIC, ``noise`` being the variance of a row of weight 1; where
    none fits, by a smoothing spline (generalised cross-validation), which carries more noise.
    """
    if len(values) < MIN_TO_SMOOTH:
        return means
    from scipy.interpolate import make_smoothing_spline

    # In units in which the criteria are the same for any scale of the feature.
    place = (values - values[0]) / np.ptp(values)
    degrees = range(min(len(values) - 1, MAX_DEGREE + 1))
    basis, _ = np.linalg.qr(np.sqrt(total)[:, None] * chebvander(2 * place - 1, degrees[-1]))
    smooth = np.empty_like(means)
    for output, mean in enumerate(means.T):
        weighted = np.sqrt(total) * mean
        coefficients = basis.T @ weighted
        misfit = weighted @ weighted - np.cumsum(coefficients**2)
        misfit /= max(noise[output], TINY)
        best = int(np.argmin(misfit + np.log(n_rows) * np.arange(1, len(degrees) + 1)))
        free = len(values) - best - 1
        if misfit[best] <= free + 3 * np.sqrt(2 * free):
            fit = basis[:, : best + 1] @ coefficients[: best + 1]
            smooth[:, output] = fit / np.sqrt(total)
        else:
            smooth[:, output] = make_smoothing_spline(place, mean, total / total.mean())(place)
    return smooth
