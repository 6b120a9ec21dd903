"""Curves along a grid: partial dependence from ICE curves, their spread and covariance.

math [41], [42]. A row has a place between two points of the grid, between which curves are linear.
Beyond the grid a curve has its value at the end. A level of a category is a point of the grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rhale_stats.arrays.moments import FloatArray, IntArray, need_squares

# Numbers of products and of values for which BLAS does not start threads.
BLOCK_PRODUCTS, BLOCK_VALUES = 1 << 17, 1 << 13
# Rows of a block where there are many columns, whose products take more time to add up than to
# make, and products of all blocks that are held at once: so few that they stay in the cache.
MIN_BLOCK_ROWS, HELD_PRODUCTS = 64, 1 << 16


class Places(NamedTuple):
    """Places of rows on a grid: the point to the left, and the fraction of the way to the next.

    Rows without a value of the feature are not ``present``: they have no place and no share.
    """

    left: IntArray
    part: FloatArray
    n_grid: int
    present: NDArray[np.bool_]

    def of_rows(self, rows: slice) -> Places:
        """Places of some of the rows."""
        return Places(self.left[rows], self.part[rows], self.n_grid, self.present[rows])

    @property
    def right(self) -> IntArray:
        """The point to the right of each row."""
        return np.minimum(self.left + 1, self.n_grid - 1)

    def hats(self) -> sparse.csr_array:
        """Weights of the points in every row, (row, grid), for linear interpolation."""
        row = np.arange(len(self.left))
        return sparse.csr_array(
            (
                np.concatenate([self.present * (1 - self.part), self.present * self.part]),
                (np.concatenate([row, row]), np.concatenate([self.left, self.right])),
            ),
            shape=(len(row), self.n_grid),
        )

    def share(self, weight: FloatArray | None) -> FloatArray:
        """Share of the rows at every point, with which curves are averaged over the rows."""
        w = np.where(self.present, 1.0 if weight is None else weight, 0.0)
        total = np.bincount(self.left, w * (1 - self.part), self.n_grid)
        total += np.bincount(self.right, w * self.part, self.n_grid)
        return np.asarray(total / w.sum())

    def at_rows(self, curve: FloatArray, weight: FloatArray | None) -> FloatArray:
        """A curve at every row; the mean over all rows is that over the rows with a value."""
        values = curve[self.left] * (1 - self.part) + curve[self.right] * self.part
        return np.where(self.present, values / np.average(self.present, weights=weight), 0.0)


def places(grid: FloatArray, x: FloatArray) -> Places:
    """Places of rows between the points of a grid."""
    finite = ~np.isnan(x)
    last = max(len(grid) - 2, 0)
    left = np.clip(np.searchsorted(grid, x, "right") - 1, 0, last)
    if len(grid) < 2:
        return Places(left, np.zeros(len(x)), len(grid), finite)
    part = np.clip((x - grid[left]) / (grid[left + 1] - grid[left]), 0.0, 1.0)
    return Places(left, np.where(finite, part, 0.0), len(grid), finite)


def level_places(level: IntArray, n_levels: int) -> Places:
    """Places of rows at their levels."""
    return Places(level, np.zeros(len(level)), n_levels, np.ones(len(level), dtype=bool))


def centre_of(centering: str, grid: FloatArray, share: FloatArray) -> FloatArray:
    """Weights of the points of the grid in the constant that centring subtracts, math [8].

    A number as text is a value of the feature, at which the curve is 0.
    """
    if centering == "mean":
        return share
    weight = np.zeros(len(grid))
    if centering == "start":
        weight[0] = 1.0
    elif centering == "integral" and len(grid) > 1:
        step = np.diff(grid)
        weight[:-1] += step / 2
        weight[1:] += step / 2
        weight /= weight.sum()
    elif centering == "integral":
        weight[0] = 1.0
    elif centering != "none" and len(grid):
        value = float(centering)
        weight = np.array([np.interp(value, grid, unit) for unit in np.eye(len(grid))])
    return weight


class SampleMoments(NamedTuple):
    """Mean of columns over rows, and their covariance between rows, math [5] and [6]."""

    mean: FloatArray
    covariance: FloatArray
    n_effective: float


def _blocks(values: FloatArray, n_grid: int) -> list[FloatArray]:
    """(row, grid) as (block, row, grid), with the remaining rows as a separate block.

    Blocks of few columns are so small that BLAS starts no threads, which would wait for each other
    on a busy machine.
    """
    n_rows, width = values.shape
    few = min(BLOCK_PRODUCTS // max(n_grid, 1) ** 2, BLOCK_VALUES // max(n_grid, 1))
    size = max(few, min(MIN_BLOCK_ROWS, n_rows), 1)
    whole = n_rows // size * size
    return [values[:whole].reshape(-1, size, width), values[whole:][None]]


class Scatter(NamedTuple):
    """Sum of weights, weighted mean of columns, and sums of squares and products about it."""

    total: float
    mean: FloatArray
    squares: FloatArray


def scatter(values: FloatArray, weight: FloatArray | None) -> Scatter:
    """Scatter of values, (row, grid)."""
    w = np.ones(len(values)) if weight is None else weight
    total = float(w.sum())
    n_grid = values.shape[1]
    n_blocks = max(HELD_PRODUCTS // max(n_grid, 1) ** 2, 1)
    parts = [
        (v[begin : begin + n_blocks], u[begin : begin + n_blocks])
        for v, u in zip(_blocks(values, n_grid), _blocks(w[:, None], n_grid), strict=True)
        for begin in range(0, len(v), n_blocks)
    ]
    mean = np.sum([(v.transpose(0, 2, 1) @ u).sum(axis=0)[:, 0] for v, u in parts], axis=0) / total
    # Twice, so that a large offset causes no rounding error.
    apart = [((v - mean).transpose(0, 2, 1) @ u).sum(axis=0)[:, 0] for v, u in parts]
    mean = mean + np.sum(apart, axis=0) / total
    squares = np.zeros((n_grid, n_grid))
    for v, u in parts:
        deviation = v - mean
        if weight is not None:
            deviation *= np.sqrt(u)
        # A product with itself is symmetric to the last bit.
        squares += (deviation.transpose(0, 2, 1) @ deviation).sum(axis=0)
    return Scatter(total, mean, squares)


def sample(values: FloatArray, weight: FloatArray | None, *, frequency: bool) -> SampleMoments:
    """Weighted mean and covariance (ddof 1) of (row, grid); NaN covariance of a single row."""
    return as_sample(
        scatter(values, weight), Totals.from_weights(weight, len(values), frequency=frequency)
    )


class Totals(NamedTuple):
    """Sums of weights, of their squares and of their cubes; ``counts`` where they count rows."""

    weight: float
    square: float
    cube: float
    counts: bool

    @classmethod
    def from_weights(cls, weight: FloatArray | None, n_rows: int, *, frequency: bool) -> Totals:
        """Those of rows with these weights, or of weight 1."""
        if weight is None:
            return cls(n_rows, n_rows, n_rows, counts=True)
        sums = (float(weight.sum()), float(weight @ weight), float(np.sum(weight**3)))
        return cls(*sums, counts=frequency)

    @classmethod
    def merged(cls, parts: Sequence[Totals]) -> Totals:
        """Those of the rows of all parts."""
        weight, square, cube, _ = [sum(sums) for sums in zip(*parts, strict=True)]
        return cls(weight, square, cube, counts=parts[0].counts)

    @property
    def n_effective(self) -> float:
        """Number of independent rows."""
        return self.weight if self.counts else self.weight**2 / self.square

    @property
    def degrees(self) -> float:
        """Divisor of a variance, math [6]; NaN of a single row."""
        rest = 1.0 if self.counts else self.square / self.weight
        # With one row the difference is only rounding.
        return self.weight - rest if self.weight - rest > 1e-12 * self.weight else np.nan

    @property
    def unrelated(self) -> float:
        """Factor of a sum of squares of w r about a weighted mean, unbiased for equal variances."""
        share = self.square / self.weight**2
        rest = 1 - 2 * self.cube / (self.weight * self.square) + share
        return 1 / rest if rest > 1e-12 else np.nan


def as_sample(scattered: Scatter, rows: Totals) -> SampleMoments:
    """math [6]: mean and covariance of all rows together."""
    return SampleMoments(scattered.mean, scattered.squares / rows.degrees, rows.n_effective)


def unrelated(w: FloatArray) -> float:
    """Factor of a sum of squares of w r about a weighted mean, unbiased for equal variances."""
    return Totals.from_weights(w, len(w), frequency=False).unrelated


class Mean(NamedTuple):
    """Weighted mean of columns over rows, the covariance of its errors, and effective rows."""

    value: FloatArray
    covariance: FloatArray
    n_effective: float

    @property
    def variance(self) -> float:
        """Squared standard error of a single column."""
        return float(self.covariance[0, 0])


def mean_of_rows(values: FloatArray, weight: FloatArray | None, *, frequency: bool) -> Mean:
    """Mean of (row, grid) with its errors: a sandwich under precision weights, math [26]."""
    rows = sample(values, weight, frequency=frequency)
    if weight is None or not need_squares(weight, frequency=frequency):
        return Mean(rows.mean, rows.covariance / rows.n_effective, rows.n_effective)
    moved = weight[:, None] * (values - rows.mean)
    covariance = moved.T @ moved * (unrelated(weight) / float(weight.sum()) ** 2)
    return Mean(rows.mean, covariance, rows.n_effective)


def influences(
    curves: FloatArray,
    grid: FloatArray,
    places: Places,
    weight: FloatArray | None,
    centering: str,
) -> FloatArray:
    """Influence of every row on the centred mean curve, (row, grid), up to constants of points.

    It is the row's own curve, centred in the same way. With "mean" the subtracted constant is also
    a mean over the places of the rows: a row at a place where the curve is high increases it, as in
    math [26].
    """
    if centering == "none":
        return curves
    share = places.share(weight)
    moved: FloatArray = (
        curves - np.einsum("ij,j->i", curves, centre_of(centering, grid, share))[:, None]
    )
    if centering == "mean":
        mean = np.average(moved, axis=0, weights=weight)
        moved -= places.at_rows(mean, weight)[:, None]
    return moved


class Beside(NamedTuple):
    """A value beside a curve, such as that of missing values, and its standard error."""

    value: float
    error: float


def beside(
    answers: FloatArray,
    constant: FloatArray,
    mean: FloatArray,
    places: Places,
    weight: FloatArray | None,
    centering: str,
    *,
    frequency: bool,
) -> Beside:
    """math [41]: mean output of the rows, less the constant that centring subtracts.

    ``constant`` (row,) is the constant of every row's curve, and ``mean`` the centred mean curve.
    The constant is a mean over the same rows, so that errors are correlated, as in `influences`.
    """
    values = answers if centering == "none" else answers - constant
    value = float(np.average(values, weights=weight))
    if centering == "mean":
        values = values - places.at_rows(mean, weight)
    estimate = mean_of_rows(values[:, None], weight, frequency=frequency)
    return Beside(value, float(np.sqrt(estimate.variance)))


def along(curves: FloatArray, grid: FloatArray) -> FloatArray:
    """Derivatives of (row, grid) along the grid: central differences, one-sided at its ends."""
    return np.asarray(np.gradient(curves, grid, axis=1))


def root_mean_square(spread: FloatArray, share: FloatArray) -> FloatArray:
    """Root mean square over the rows of a spread along the last axis.

    Points with a single row have no spread and are left out, as in math [10].
    """
    usable = (share > 0) & ~np.isnan(spread)
    weight = np.where(usable, share, 0.0)
    squares = np.sum(weight * np.where(usable, spread, 0.0) ** 2, axis=-1)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.sqrt(squares / weight.sum(axis=-1)))


def importance(curve: FloatArray, share: FloatArray) -> float:
    """Standard deviation of a curve over the rows."""
    used = share > 0
    share, curve = share[used], curve[used]
    return float(np.sqrt(share @ (curve - share @ curve) ** 2))


class ProfileReplicates(NamedTuple):
    """Curves and spreads of replicates, (draw, grid), and their sizes over the rows."""

    curve: FloatArray
    spread: FloatArray
    heterogeneity: FloatArray
    importance: FloatArray

    @classmethod
    def from_draws(
        cls,
        curve: FloatArray,
        spread: FloatArray,
        heterogeneity: FloatArray,
        share: FloatArray,
        centre: FloatArray | None,
    ) -> ProfileReplicates:
        """From curves (grid, draw) and shares of the rows; ``centre`` is None for their mean."""
        level = np.sum(np.where(share > 0, share * curve, 0.0), axis=0)
        constant = level if centre is None else centre[centre != 0] @ curve[centre != 0]
        apart = np.where(share > 0, share * (curve - level) ** 2, 0.0)
        importance = np.sqrt(np.sum(apart, axis=0))
        return cls((curve - constant).T, spread.T, heterogeneity, importance)


def replicates(
    curves: FloatArray,
    grid: FloatArray,
    places: Places,
    weight: FloatArray,
    centering: str,
    correction: float,
    *,
    themselves: bool,
) -> ProfileReplicates:
    """math [29]: the same statistics with weights (row, draw); variances times ``correction``.

    The spread is that of the curves ``themselves``, or of curves of which each is centred.
    """
    total = weight.sum(axis=0)[:, None]
    origin = curves.mean(axis=0)
    moved = curves - origin
    mean = weight.T @ moved / total
    share = np.asarray(weight.T @ places.hats())
    share /= share.sum(axis=1, keepdims=True)
    fixed = centre_of(centering, grid, share[0])
    centre = share if centering in ("mean", "none") else np.tile(fixed, (len(share), 1))
    around = np.zeros_like(centre) if themselves else centre
    # Each curve less its constant, which differs a little between replicates.
    apart = moved - (moved @ around.mean(axis=0))[:, None]
    apart -= apart.mean(axis=0)
    constant = apart @ around.T
    weighted = weight * constant
    first = weight.T @ apart / total
    first -= np.sum(first * around, axis=1, keepdims=True)
    second = weight.T @ apart**2 - 2 * weighted.T @ apart
    second += np.sum(weighted * constant, axis=0)[:, None]
    variance = np.maximum(second / total - first**2, 0.0) * correction
    whole = mean + origin
    if centering != "none":
        whole = whole - np.sum(whole * centre, axis=1, keepdims=True)
    level = np.sum(share * whole, axis=1, keepdims=True)
    return ProfileReplicates(
        whole,
        np.sqrt(variance),
        np.sqrt(np.sum(share * variance, axis=1)),
        np.sqrt(np.sum(share * (whole - level) ** 2, axis=1)),
    )


# --- means in bins --------------------------------------------------------------------------------


class BinMeans(NamedTuple):
    """Mean and variance (ddof 1) in every bin, number and share of rows; NaN without rows.

    ``robust`` takes the place of the variance in standard errors with precision weights.
    """

    mean: FloatArray
    variance: FloatArray
    n_obs: FloatArray
    n_effective: FloatArray
    share: FloatArray
    robust: FloatArray | None = None


def bin_means(
    values: FloatArray,
    cell: IntArray,
    n_bins: int,
    weight: FloatArray | None,
    *,
    frequency: bool,
) -> BinMeans:
    """math [42]: weighted moments [5], [6] of rows by their bins."""
    if not n_bins:
        return BinMeans(*(np.zeros(0),) * 5)
    precise = need_squares(weight, frequency=frequency)
    w = np.ones(len(values)) if weight is None else weight
    counts = weight is None or frequency
    total, squares = np.bincount(cell, w, n_bins), np.bincount(cell, w**2, n_bins)
    origin = values.mean()
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.bincount(cell, w * (values - origin), n_bins) / total
        deviation = values - origin - mean[cell]
        degrees = total - 1 if counts else total - squares / total
        variance = np.bincount(cell, w * deviation**2, n_bins) / np.where(
            degrees > 1e-12 * total, degrees, np.nan
        )
        n = total if counts else total**2 / squares
        robust = None
        if precise:
            cubes = np.bincount(cell, w**3, n_bins)
            rest = 1 - 2 * cubes / (total * squares) + squares / total**2
            robust = np.bincount(cell, (w * deviation) ** 2, n_bins) / squares
            robust = np.where(n > 1 + 1e-12, robust / rest, np.nan)
    n_obs = total if frequency else np.bincount(cell, minlength=n_bins)
    return BinMeans(
        mean + origin,
        variance,
        n_obs.astype(np.float64),
        np.nan_to_num(n),
        total / total.sum(),
        robust,
    )


def bin_covariance(
    variance: FloatArray, n: FloatArray, share: FloatArray, mean: FloatArray
) -> FloatArray:
    """Covariance of means of bins less the mean over all rows, which is an estimate, too.

    ``n`` are effective numbers of rows. A bin has covariance with the whole by its share.
    """
    each = variance / n
    with_whole = share * each
    rows = 1 / np.sum(share**2 / n)
    between = share @ (mean - share @ mean) ** 2
    whole = share @ with_whole + between / rows
    return np.asarray(np.diag(each) - with_whole[:, None] - with_whole + whole)


def contrast(covariance: FloatArray, centre: FloatArray) -> FloatArray:
    """Covariance of values less a mean of them with fixed weights."""
    less = np.eye(len(centre)) - centre
    return np.asarray(less @ covariance @ less.T)


class BinCurve(NamedTuple):
    """The constant that centring subtracts from means of bins, and their covariance after it."""

    offset: float
    covariance: FloatArray


def bin_curve(bins: BinMeans, x: FloatArray, centering: str) -> BinCurve:
    """math [42]: bins without rows are NaN, and not included in the constant."""
    occupied = bins.share > 0
    share, mean = bins.share[occupied], bins.mean[occupied]
    variance = (bins.variance if bins.robust is None else bins.robust)[occupied]
    centre = centre_of(centering, x[occupied], share)
    error = np.diag(variance / bins.n_effective[occupied])
    if centering == "mean":
        error = bin_covariance(variance, bins.n_effective[occupied], share, mean)
    elif centering != "none":
        error = contrast(error, centre)
    covariance = np.full((len(x), len(x)), np.nan)
    covariance[np.ix_(occupied, occupied)] = error
    return BinCurve(float(centre @ mean), covariance)


def bin_influences(
    values: FloatArray, cell: IntArray, bins: BinMeans, x: FloatArray, centering: str
) -> FloatArray:
    """Influence of every row on the centred mean of every bin, (row, bin); 0 without rows."""
    occupied = bins.share > 0
    mean = np.where(occupied, bins.mean, 0.0)
    moved = np.zeros((len(values), len(x)))
    moved[np.arange(len(values)), cell] = (values - mean[cell]) / bins.share[cell]
    if centering == "mean":
        moved -= (values - bins.share @ mean)[:, None]
    elif centering != "none":
        moved -= (moved[:, occupied] @ centre_of(centering, x[occupied], bins.share[occupied]))[
            :, None
        ]
    moved[:, ~occupied] = 0.0
    return moved


def bin_replicates(
    values: FloatArray,
    cell: IntArray,
    bins: BinMeans,
    centre: FloatArray | None,
    base: FloatArray | None,
    drawn: FloatArray,
) -> ProfileReplicates:
    """math [29]: means of bins in replicates; ``drawn`` (row, draw) says how often a row is drawn.

    ``centre`` are weights of bins in the constant, None for its mean over the rows.
    ``base`` are precision weights; it is None for frequency weights, which are included in
    ``drawn``. A bin without rows in a replicate is NaN, and so is the whole curve if the constant
    needs this bin.
    """
    in_bins = sparse.csr_array(
        (np.ones(len(cell)), (cell, np.arange(len(cell)))), shape=(len(bins.mean), len(cell))
    )
    weight = drawn if base is None else base[:, None] * drawn
    total = np.asarray(in_bins @ weight)
    rest = (values - np.where(bins.share > 0, bins.mean, 0.0)[cell])[:, None]
    # A replicate may draw no row at all.
    with np.errstate(invalid="ignore", divide="ignore"):
        share = total / total.sum(axis=0)
        lost = 1.0 if base is None else np.asarray(in_bins @ (base[:, None] * weight)) / total
        shift = np.asarray(in_bins @ (weight * rest)) / total
        second = np.asarray(in_bins @ (weight * rest**2)) / total - shift**2
        degrees = np.where(total - lost > 1e-12 * total, total - lost, np.nan)
        variance = np.maximum(second, 0.0) * total / degrees
    mean = bins.mean[:, None] + shift
    spread = np.sqrt(variance)
    heterogeneity = root_mean_square(spread.T, share.T)
    return ProfileReplicates.from_draws(mean, spread, heterogeneity, share, centre)
