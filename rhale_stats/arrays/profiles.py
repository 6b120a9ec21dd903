"""Curves along a grid: partial dependence from ICE curves, their spread and covariance.

math [41], [42]. A row has a place between two points of the grid, between which curves are linear.
Beyond the grid a curve has its value at the end. A level of a category is a point of the grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
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
        weights = self.present[:, None] * np.stack([1 - self.part, self.part], axis=1)
        points, n_rows = np.stack([self.left, self.right], axis=1), len(self.left)
        # Two points a row, in order: nothing is to be sorted.
        parts = weights.ravel(), points.ravel(), np.arange(0, 2 * n_rows + 1, 2)
        return sparse.csr_array(parts, shape=(n_rows, self.n_grid))

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


# --- moments of ICE curves, which blocks and chunks of rows add to --------------------------------


class Profile(NamedTuple):
    """A centred mean curve, with the spread of the curves that are averaged, and its errors."""

    curve: FloatArray
    offset: float
    spread: FloatArray
    covariance: FloatArray
    n_effective: float


class CurveMoments(NamedTuple):
    """Moments of ICE curves that a profile needs, for some rows or all; blocks can be merged.

    ``apart`` is the scatter of curves after the constant of each has been subtracted; the mean of
    these constants is ``constant``. ``whole`` is the scatter of the curves without centring.
    ``hats`` are the mean weights of the points of the grid, ``pairs`` the sums of products of two
    of these weights, and ``cross`` those of their products with the centred curves about their
    means.
    """

    apart: Scatter
    whole: Scatter
    constant: float
    hats: FloatArray
    pairs: FloatArray
    cross: FloatArray

    @property
    def placed(self) -> float:
        """Share of the rows that have a place."""
        return float(self.hats.sum())

    @property
    def share(self) -> FloatArray:
        """Share of these rows at every point, with which curves are averaged over the rows."""
        return self.hats / self.placed

    def along(self, curve: FloatArray, weight: float) -> float:
        """Sum of squares of the curve at the places of all rows, about its mean.

        Rows without a place have 0, the others 1 / ``weight`` of the curve.
        """
        total = self.apart.total
        squares = float(curve @ self.pairs @ curve) - total * float(self.hats @ curve) ** 2
        return max(squares, 0.0) / weight**2


def moments(
    curves: FloatArray,
    constant: FloatArray,
    places: Places,
    weight: FloatArray | None,
    *,
    levels: bool,
) -> CurveMoments:
    """Moments of ICE curves (row, grid), given the constant at which each curve is centred.

    A large offset must have been subtracted. ``whole`` is computed only if ``levels`` is set.
    """
    apart = curves - constant[:, None]
    scattered = scatter(apart, weight)
    plain = hats = places.hats()
    if weight is not None:
        hats = sparse.csr_array(plain.multiply(weight[:, None]))
    return CurveMoments(
        scattered,
        scatter(curves, weight) if levels else scattered,
        float(np.average(constant, weights=weight)),
        np.asarray(hats.sum(axis=0)) / scattered.total,
        (hats.T @ plain).toarray(),
        np.asarray(hats.T @ apart - np.outer(hats.sum(axis=0), scattered.mean)),
    )


def merged(a: CurveMoments, b: CurveMoments) -> CurveMoments:
    """Moments of the rows of both, those of ``a`` first (Chan, Golub and LeVeque 1983)."""

    def joint(first: Scatter, other: Scatter) -> Scatter:
        total, apart = first.total + other.total, other.mean - first.mean
        moved = np.outer(apart, apart) * (first.total * other.total / total)
        mean = first.mean + apart * (other.total / total)
        return Scatter(total, mean, first.squares + other.squares + moved)

    apart = joint(a.apart, b.apart)
    share = b.apart.total / apart.total
    between = np.outer(b.hats - a.hats, b.apart.mean - a.apart.mean)
    return CurveMoments(
        apart,
        apart if a.whole is a.apart else joint(a.whole, b.whole),
        a.constant + (b.constant - a.constant) * share,
        a.hats + (b.hats - a.hats) * share,
        a.pairs + b.pairs,
        a.cross + b.cross + between * (a.apart.total * share),
    )


@dataclass
class MomentsOfOutputs:
    """Moments of the ICE curves of every output, to which blocks of rows are added.

    ``centre`` makes the constant of a curve. ``origin`` (output,) is subtracted from all curves: it
    is the mean at the first point of the first block where none is given. With ``squares`` there
    are moments by squared weights, too.
    """

    centre: FloatArray
    levels: bool
    squares: bool
    origin: FloatArray | None = None
    by_weight: list[CurveMoments] = field(default_factory=list)
    by_squares: list[CurveMoments] = field(default_factory=list)

    def add(self, curves: FloatArray, places: Places, weight: FloatArray | None) -> FloatArray:
        """Add curves (output, row, grid), which are overwritten; their constants (output, row)."""
        if self.origin is None:
            self.origin = curves[:, 0].mean(axis=1)
        # A large offset is taken off before anything is multiplied.
        curves -= self.origin[:, None, None]
        constants = curves @ self.centre
        weights = [(self.by_weight, weight)]
        if self.squares and weight is not None:
            weights.append((self.by_squares, weight**2))
        for total, w in weights:
            block = [
                moments(each, constant, places, w, levels=self.levels)
                for each, constant in zip(curves, constants, strict=True)
            ]
            total[:] = _merged_each(total, block) if total else block
        return np.asarray(constants + self.origin[:, None])

    def merge(self, other: MomentsOfOutputs) -> None:
        """Add the rows of another one about the same origin."""
        self.by_weight = _merged_each(self.by_weight, other.by_weight)
        self.by_squares = _merged_each(self.by_squares, other.by_squares)

    def profiles(self, grid: FloatArray, rows: Totals, centering: str) -> list[Profile]:
        """The profile of every output."""
        assert self.origin is not None, "rows were added"
        squares: Sequence[CurveMoments | None] = self.by_squares or [None] * len(self.by_weight)
        return [
            profile(by_weight, grid, rows, float(start), centering, by_squares=by_squares)
            for by_weight, by_squares, start in zip(
                self.by_weight, squares, self.origin, strict=True
            )
        ]


def _merged_each(
    first: Sequence[CurveMoments], second: Sequence[CurveMoments]
) -> list[CurveMoments]:
    return [merged(*both) for both in zip(first, second, strict=True)]


def profile(
    moments: CurveMoments,
    grid: FloatArray,
    rows: Totals,
    origin: float,
    centering: str,
    *,
    by_squares: CurveMoments | None = None,
) -> Profile:
    """math [41]: mean of ICE curves, with their spread and the covariance of the mean.

    The spread is that of curves of which each is centred by itself. The covariance is that of
    `influences`, multiplied out. ``by_squares`` are moments of the same curves with the squares of
    precision weights; the covariance is then that of the weighted influences. ``origin`` has been
    subtracted from all curves.
    """
    curve = as_sample(moments.apart, rows)
    error = as_sample(moments.whole if centering == "none" else moments.apart, rows)
    mean, offset = (error.mean if centering == "none" else curve.mean + moments.constant), 0.0
    covariance = error.covariance
    if centering != "none":
        offset = float(centre_of(centering, grid, moments.share) @ mean)
        mean = mean - offset
    if centering == "mean":
        # The value of the curve at the place of each row is subtracted, math [26].
        with_apart = curve.mean @ moments.cross / moments.placed
        squares = (
            moments.apart.squares
            - with_apart[:, None]
            - with_apart
            + moments.along(curve.mean, moments.placed)
        )
        covariance = _not_below_zero(squares / rows.degrees)
    covariance = covariance / error.n_effective
    if by_squares is not None:
        covariance = _by_squares(moments, by_squares, rows, centering)
    return Profile(
        mean + origin if centering == "none" else mean,
        0.0 if centering == "none" else offset + origin,
        np.sqrt(np.diagonal(curve.covariance)),
        covariance,
        error.n_effective,
    )


def _by_squares(
    moments: CurveMoments, by: CurveMoments, rows: Totals, centering: str
) -> FloatArray:
    """Sum of squares and products of weighted influences, from moments with squared weights."""
    whole = centering == "none"
    ours, theirs = [part.whole if whole else part.apart for part in (moments, by)]
    away = theirs.mean - ours.mean
    squares = theirs.squares + theirs.total * np.outer(away, away)
    if centering == "mean":
        mean, weight = ours.mean, moments.placed
        # The value of the curve at the rows, by squared weights about its mean by the weights.
        level = float(by.hats @ mean - moments.hats @ mean) / weight
        # `cross` has the curves about the mean by squared weights, and the places not centred.
        mixed = mean @ by.cross / weight + theirs.total * level * away
        along_curve = by.along(mean, weight) + theirs.total * level**2
        squares = squares - mixed[:, None] - mixed + along_curve
    return _not_below_zero(squares * (rows.unrelated / rows.weight**2))


def _not_below_zero(covariance: FloatArray) -> FloatArray:
    at_zero = np.diagonal(covariance) < 0
    covariance[at_zero, at_zero] = 0.0
    return covariance
