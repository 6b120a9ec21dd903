"""Curves along a grid: partial dependence from ICE curves, their spread and covariance.

math [41], [42]. A row stands at its place between two points of the grid, where curves are
straight; beyond the grid they stay at its ends. A level of a category is a point.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rhale_stats.arrays.moments import FloatArray, IntArray

# Of so many products, or values, BLAS makes no threads.
BLOCK_PRODUCTS, BLOCK_VALUES = 1 << 17, 1 << 13


class Places(NamedTuple):
    """Where the rows are on a grid: the point to their left, and the part of the way beyond it.

    Rows that are not ``known``, without a value of the feature, have no place and no share.
    """

    left: IntArray
    part: FloatArray
    n_grid: int
    known: NDArray[np.bool_]

    def of_rows(self, rows: slice) -> Places:
        """Those of some rows."""
        return Places(self.left[rows], self.part[rows], self.n_grid, self.known[rows])

    @property
    def right(self) -> IntArray:
        """The point to their right."""
        return np.minimum(self.left + 1, self.n_grid - 1)

    def hats(self) -> sparse.csr_array:
        """Shares of the points in every row, (row, grid)."""
        row = np.arange(len(self.left))
        return sparse.csr_array(
            (
                np.concatenate([self.known * (1 - self.part), self.known * self.part]),
                (np.concatenate([row, row]), np.concatenate([self.left, self.right])),
            ),
            shape=(len(row), self.n_grid),
        )

    def share(self, weight: FloatArray | None) -> FloatArray:
        """Share of the rows at every point: what makes means of curves over the rows."""
        w = np.where(self.known, 1.0 if weight is None else weight, 0.0)
        total = np.bincount(self.left, w * (1 - self.part), self.n_grid)
        total += np.bincount(self.right, w * self.part, self.n_grid)
        return np.asarray(total / w.sum())

    def at_rows(self, curve: FloatArray, weight: FloatArray | None) -> FloatArray:
        """A curve at every row; over all rows its mean is that over the rows with a place."""
        values = curve[self.left] * (1 - self.part) + curve[self.right] * self.part
        return np.where(self.known, values / np.average(self.known, weights=weight), 0.0)


def places(grid: FloatArray, x: FloatArray) -> Places:
    """Rows between the points of a grid."""
    known = ~np.isnan(x)
    last = max(len(grid) - 2, 0)
    left = np.clip(np.searchsorted(grid, x, "right") - 1, 0, last)
    if len(grid) < 2:
        return Places(left, np.zeros(len(x)), len(grid), known)
    part = np.clip((x - grid[left]) / (grid[left + 1] - grid[left]), 0.0, 1.0)
    return Places(left, np.where(known, part, 0.0), len(grid), known)


def level_places(level: IntArray, n_levels: int) -> Places:
    """Rows at their levels."""
    return Places(level, np.zeros(len(level)), n_levels, np.ones(len(level), dtype=bool))


def centre_of(centering: str, grid: FloatArray, share: FloatArray) -> FloatArray:
    """Weights of the grid in the constant that centring takes off, math [8]."""
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
    return weight


class Sample(NamedTuple):
    """Mean of columns over rows, and their covariance between rows, math [5] and [6]."""

    mean: FloatArray
    covariance: FloatArray
    n_effective: float


def _blocks(values: FloatArray, n_grid: int) -> list[FloatArray]:
    """(row, grid) as (block, row, grid), and the rows that are left, as a block of their own.

    So small that BLAS starts no threads: these would wait for each other on a busy machine, and a
    curve has far more rows than points.
    """
    n_rows, width = values.shape
    size = max(min(BLOCK_PRODUCTS // max(n_grid, 1) ** 2, BLOCK_VALUES // max(n_grid, 1)), 1)
    whole = n_rows // size * size
    return [values[:whole].reshape(-1, size, width), values[whole:][None]]


class Scatter(NamedTuple):
    """Sum of weights, weighted mean of columns, and sums of squares and products about it."""

    total: float
    mean: FloatArray
    squares: FloatArray


def scatter(values: FloatArray, weight: FloatArray | None) -> Scatter:
    """Of (row, grid)."""
    w = np.ones(len(values)) if weight is None else weight
    total = float(w.sum())
    n_grid = values.shape[1]
    parts = list(zip(_blocks(values, n_grid), _blocks(w[:, None], n_grid), strict=True))
    mean = np.sum([(v.transpose(0, 2, 1) @ u).sum(axis=0)[:, 0] for v, u in parts], axis=0) / total
    # Twice, so that a large offset leaves no rounding behind.
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


def sample(values: FloatArray, weight: FloatArray | None, *, frequency: bool) -> Sample:
    """Weighted mean and covariance (ddof 1) of (row, grid); NaN covariance of a single row."""
    w = np.ones(len(values)) if weight is None else weight
    return _as_sample(scatter(values, weight), w, counts=weight is None or frequency)


def _as_sample(of: Scatter, w: FloatArray, *, counts: bool) -> Sample:
    """math [6]: of all rows together, whose weights are ``w``."""
    total = float(w.sum())
    n = total if counts else total**2 / float(w @ w)
    return Sample(of.mean, of.squares / _degrees(w, counts=counts), n)


def _degrees(w: FloatArray, *, counts: bool) -> float:
    """Divisor of a variance, math [6]; NaN of a single row."""
    total = float(w.sum())
    degrees = total - 1.0 if counts else total - float(w @ w) / total
    # Weights of one row leave rounding.
    return degrees if degrees > 1e-12 * total else np.nan


def mean_error(sample: Sample) -> float:
    """Squared standard error of the mean of a single column."""
    return float(sample.covariance[0, 0] / sample.n_effective)


class Profile(NamedTuple):
    """A mean curve as it is centred, with the spread of what it is the mean of, and its errors."""

    curve: FloatArray
    offset: float
    spread: FloatArray
    covariance: FloatArray
    n_effective: float


def influences(
    curves: FloatArray,
    grid: FloatArray,
    at: Places,
    weight: FloatArray | None,
    centering: str,
) -> FloatArray:
    """What every row adds to the centred mean curve, (row, grid), up to a constant of the grid.

    Its own curve, centred in the same way. A mean over the population is also one over places: a
    row at a place where the curve is high lifts the constant that is taken off, as in math [26].
    """
    if centering == "none":
        return curves
    share = at.share(weight)
    own: FloatArray = (
        curves - np.einsum("ij,j->i", curves, centre_of(centering, grid, share))[:, None]
    )
    if centering == "mean":
        mean = np.average(own, axis=0, weights=weight)
        own -= at.at_rows(mean, weight)[:, None]
    return own


class Moments(NamedTuple):
    """What a profile needs of ICE curves, of some rows or of all: blocks of rows add up.

    ``apart`` is of curves less each its own constant, whose mean is ``constant``; ``whole`` of the
    curves as they are. ``hats`` are mean shares of the points of the grid, and ``cross`` the sums
    of products of shares and ``apart`` about their means.
    """

    apart: Scatter
    whole: Scatter
    constant: float
    hats: FloatArray
    cross: FloatArray


def moments(
    curves: FloatArray,
    constant: FloatArray,
    at: Places,
    weight: FloatArray | None,
    *,
    levels: bool,
) -> Moments:
    """Of ICE curves (row, grid) and the constants that each is centred at by itself.

    A large offset must be off already. ``whole`` is taken only where ``levels`` of curves count.
    """
    apart = curves - constant[:, None]
    found = scatter(apart, weight)
    hats = at.hats()
    if weight is not None:
        hats = sparse.csr_array(hats.multiply(weight[:, None]))
    return Moments(
        found,
        scatter(curves, weight) if levels else found,
        float(np.average(constant, weights=weight)),
        np.asarray(hats.sum(axis=0)) / found.total,
        np.asarray(hats.T @ (apart - found.mean)),
    )


def merged(a: Moments, b: Moments) -> Moments:
    """Of the rows of both, those of ``a`` first (Chan, Golub and LeVeque 1983)."""

    def joint(one: Scatter, other: Scatter) -> Scatter:
        total, apart = one.total + other.total, other.mean - one.mean
        moved = np.outer(apart, apart) * (one.total * other.total / total)
        mean = one.mean + apart * (other.total / total)
        return Scatter(total, mean, one.squares + other.squares + moved)

    apart = joint(a.apart, b.apart)
    share = b.apart.total / apart.total
    between = np.outer(b.hats - a.hats, b.apart.mean - a.apart.mean)
    return Moments(
        apart,
        apart if a.whole is a.apart else joint(a.whole, b.whole),
        a.constant + (b.constant - a.constant) * share,
        a.hats + (b.hats - a.hats) * share,
        a.cross + b.cross + between * (a.apart.total * share),
    )


def profile(
    of: Moments,
    grid: FloatArray,
    at: Places,
    weight: FloatArray | None,
    origin: float,
    centering: str,
    *,
    frequency: bool,
) -> Profile:
    """math [41]: mean of ICE curves, with their spread and the covariance of the mean.

    The spread is that of curves centred each by itself. The covariance is that of `influences`,
    multiplied out.
    """
    w = np.ones(len(at.left)) if weight is None else weight
    counts = weight is None or frequency
    own = _as_sample(of.apart, w, counts=counts)
    error = _as_sample(of.whole if centering == "none" else of.apart, w, counts=counts)
    mean, offset = (error.mean if centering == "none" else own.mean + of.constant), 0.0
    covariance = error.covariance
    if centering != "none":
        centre = centre_of(centering, grid, at.share(weight))
        offset = float(centre @ mean)
        mean = mean - offset
    if centering == "mean":
        # What every row has along the curve, math [26], comes off all its points.
        along_curve = at.at_rows(own.mean, weight)[:, None]
        itself = scatter(along_curve, weight).squares
        with_apart = own.mean @ of.cross / np.average(at.known, weights=w)
        squares = of.apart.squares - with_apart[:, None] - with_apart + itself
        covariance = squares / _degrees(w, counts=counts)
        at_zero = np.diagonal(covariance) < 0
        covariance[at_zero, at_zero] = 0.0
    return Profile(
        mean + origin if centering == "none" else mean,
        0.0 if centering == "none" else offset + origin,
        np.sqrt(np.diagonal(own.covariance)),
        covariance / error.n_effective,
        error.n_effective,
    )


class Beside(NamedTuple):
    """One number that stands beside a curve, and its standard error."""

    value: float
    error: float


def beside(
    answers: FloatArray,
    constant: FloatArray,
    mean: FloatArray,
    at: Places,
    weight: FloatArray | None,
    centering: str,
    *,
    frequency: bool,
) -> Beside:
    """math [41]: mean answer of the rows, less the constant that the centring takes off the curve.

    ``constant`` (row,) is that of every row's curve, and ``mean`` the mean curve less its own. The
    constant is a mean over the same rows, so that errors go together, as in `influences`.
    """
    own = answers if centering == "none" else answers - constant
    value = float(np.average(own, weights=weight))
    if centering == "mean":
        own = own - at.at_rows(mean, weight)
    found = sample(own[:, None], weight, frequency=frequency)
    return Beside(value, float(np.sqrt(mean_error(found))))


def along(curves: FloatArray, grid: FloatArray) -> FloatArray:
    """Derivatives of (row, grid) along the grid: central differences, one-sided at its ends."""
    return np.asarray(np.gradient(curves, grid, axis=1))


def root_mean_square(spread: FloatArray, share: FloatArray) -> FloatArray:
    """Of a spread along the last axis, over the rows.

    Where one row is all there is a spread is not known: it is left out, as in math [10].
    """
    known = (share > 0) & ~np.isnan(spread)
    weight = np.where(known, share, 0.0)
    squares = np.sum(weight * np.where(known, spread, 0.0) ** 2, axis=-1)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.sqrt(squares / weight.sum(axis=-1)))


def importance(curve: FloatArray, share: FloatArray) -> float:
    """Standard deviation of a curve over the rows."""
    known = share > 0
    share, curve = share[known], curve[known]
    return float(np.sqrt(share @ (curve - share @ curve) ** 2))


class Replicates(NamedTuple):
    """Curves and spreads of replicates, (draw, grid), and what they come to over the rows."""

    curve: FloatArray
    spread: FloatArray
    heterogeneity: FloatArray
    importance: FloatArray


def replicates(
    curves: FloatArray,
    grid: FloatArray,
    at: Places,
    weight: FloatArray,
    centering: str,
    correction: float,
    *,
    themselves: bool,
) -> Replicates:
    """math [29]: the same statistics with weights (row, draw); variances times ``correction``.

    The spread is that of the curves ``themselves``, or of curves centred each by itself.
    """
    total = weight.sum(axis=0)[:, None]
    origin = curves.mean(axis=0)
    moved = curves - origin
    mean = weight.T @ moved / total
    share = np.asarray(weight.T @ at.hats())
    share /= share.sum(axis=1, keepdims=True)
    fixed = centre_of(centering, grid, share[0])
    centre = share if centering in ("mean", "none") else np.tile(fixed, (len(share), 1))
    own = np.zeros_like(centre) if themselves else centre
    # Of each curve less its constant, which differs a little between replicates.
    apart = moved - (moved @ own.mean(axis=0))[:, None]
    apart -= apart.mean(axis=0)
    constant = apart @ own.T
    weighted = weight * constant
    first = weight.T @ apart / total
    first -= np.sum(first * own, axis=1, keepdims=True)
    second = weight.T @ apart**2 - 2 * weighted.T @ apart
    second += np.sum(weighted * constant, axis=0)[:, None]
    variance = np.maximum(second / total - first**2, 0.0) * correction
    whole = mean + origin
    if centering != "none":
        whole = whole - np.sum(whole * centre, axis=1, keepdims=True)
    level = np.sum(share * whole, axis=1, keepdims=True)
    return Replicates(
        whole,
        np.sqrt(variance),
        np.sqrt(np.sum(share * variance, axis=1)),
        np.sqrt(np.sum(share * (whole - level) ** 2, axis=1)),
    )


# --- means in bins --------------------------------------------------------------------------------


class BinMeans(NamedTuple):
    """Mean and variance (ddof 1) of the rows of every bin, their number and share; NaN of none."""

    mean: FloatArray
    variance: FloatArray
    n_obs: FloatArray
    n_effective: FloatArray
    share: FloatArray


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
    n_obs = total if frequency else np.bincount(cell, minlength=n_bins)
    return BinMeans(
        mean + origin, variance, n_obs.astype(np.float64), np.nan_to_num(n), total / total.sum()
    )


def bin_covariance(
    variance: FloatArray, n: FloatArray, share: FloatArray, mean: FloatArray
) -> FloatArray:
    """Covariance of means of bins less the mean over all rows, which is not fixed either.

    ``n`` is effective numbers of rows. A bin goes with the whole by its share.
    """
    own = variance / n
    with_whole = share * own
    rows = 1 / np.sum(share**2 / n)
    between = share @ (mean - share @ mean) ** 2
    whole = share @ with_whole + between / rows
    return np.asarray(np.diag(own) - with_whole[:, None] - with_whole + whole)


def contrast(covariance: FloatArray, centre: FloatArray) -> FloatArray:
    """Covariance of values less a fixed mean of them."""
    less = np.eye(len(centre)) - centre
    return np.asarray(less @ covariance @ less.T)


class BinCurve(NamedTuple):
    """The constant that centring takes off means of bins, and their covariance without it."""

    offset: float
    covariance: FloatArray


def bin_curve(of: BinMeans, x: FloatArray, centering: str) -> BinCurve:
    """math [42]: bins without rows are NaN, and no part of the constant."""
    there = of.share > 0
    share, mean, variance = of.share[there], of.mean[there], of.variance[there]
    centre = centre_of(centering, x[there], share)
    error = np.diag(variance / of.n_effective[there])
    if centering == "mean":
        error = bin_covariance(variance, of.n_effective[there], share, mean)
    elif centering != "none":
        error = contrast(error, centre)
    covariance = np.full((len(x), len(x)), np.nan)
    covariance[np.ix_(there, there)] = error
    return BinCurve(float(centre @ mean), covariance)


def bin_influences(
    values: FloatArray, cell: IntArray, of: BinMeans, x: FloatArray, centering: str
) -> FloatArray:
    """What every row adds to the centred mean of every bin, (row, bin); 0 in bins without rows."""
    there = of.share > 0
    mean = np.where(there, of.mean, 0.0)
    own = np.zeros((len(values), len(x)))
    own[np.arange(len(values)), cell] = (values - mean[cell]) / of.share[cell]
    if centering == "mean":
        own -= (values - of.share @ mean)[:, None]
    elif centering != "none":
        own -= (own[:, there] @ centre_of(centering, x[there], of.share[there]))[:, None]
    own[:, ~there] = 0.0
    return own


def bin_replicates(
    values: FloatArray,
    cell: IntArray,
    of: BinMeans,
    x: FloatArray,
    centering: str,
    base: FloatArray | None,
    drawn: FloatArray,
) -> Replicates:
    """math [29]: the means of bins with rows drawn as often as ``drawn`` (row, draw) says.

    ``base`` holds precision weights: of counts it is None, and they are part of ``drawn``. A bin
    that a replicate leaves empty is NaN; so is the whole curve if a constant needs this bin.
    """
    in_bins = sparse.csr_array(
        (np.ones(len(cell)), (cell, np.arange(len(cell)))), shape=(len(x), len(cell))
    )
    weight = drawn if base is None else base[:, None] * drawn
    total = np.asarray(in_bins @ weight)
    there = of.share > 0
    rest = (values - np.where(there, of.mean, 0.0)[cell])[:, None]
    # A replicate may draw no row at all.
    with np.errstate(invalid="ignore", divide="ignore"):
        share = total / total.sum(axis=0)
        lost = 1.0 if base is None else np.asarray(in_bins @ (base[:, None] * weight)) / total
        shift = np.asarray(in_bins @ (weight * rest)) / total
        second = np.asarray(in_bins @ (weight * rest**2)) / total - shift**2
        degrees = np.where(total - lost > 1e-12 * total, total - lost, np.nan)
        variance = np.maximum(second, 0.0) * total / degrees
    mean = of.mean[:, None] + shift
    if centering == "mean":
        constant = np.sum(np.where(total > 0, share * mean, 0.0), axis=0)
    else:
        centre = np.zeros(len(x))
        centre[there] = centre_of(centering, x[there], of.share[there])
        constant = centre[centre != 0] @ mean[centre != 0]
    level = np.sum(np.where(total > 0, share * mean, 0.0), axis=0)
    apart = np.where(total > 0, share * (mean - level) ** 2, 0.0)
    return Replicates(
        (mean - constant).T,
        np.sqrt(variance).T,
        root_mean_square(np.sqrt(variance).T, share.T),
        np.sqrt(np.sum(apart, axis=0)),
    )
