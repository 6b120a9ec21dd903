"""Bootstrap of rows with fixed bins, math [29]: weights of rows, and estimates of replicates.

A replicate is a weight for every row. It changes only weighted moments of the bins. One matrix
product for each bin therefore gives many replicates at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rhale_stats.arrays import accumulate
from rhale_stats.arrays.accumulate import Pieces, Sizes, sizes
from rhale_stats.arrays.moments import FloatArray, IntArray, need_squares

# How often rows are drawn, (row, draw): in single bytes where these are counts.
Weights: TypeAlias = FloatArray | NDArray[np.uint8]
# Draws are multiplied by a multiple of so many at a time, so that rounding is the same whatever
# comes with them, and by at most so many: more gain nothing.
BLOCK, DRAWS_OF_BLOCK = 8, 32
# A spread below this share of the squared distances from the mean of x counts as 0.
ONE_PLACE = 1e-12
# Sums of a cell that its mean, spread and place are made of.
SUMS = 7
SCHEMES = ("multinomial", "bayesian", "poisson")


class ResampledUnits(NamedTuple):
    """Units that are drawn (rows, or groups of rows), each within its stratum.

    ``unit`` is the unit of every row, ``strata`` the units of every stratum, ``size`` how many
    rows a unit counts as, if not one (frequency weights).
    """

    unit: IntArray | None
    strata: Sequence[IntArray]
    size: FloatArray | None

    @property
    def n(self) -> float:
        """Number of units that are drawn."""
        if self.size is not None:
            return float(self.size.sum())
        return float(sum(len(members) for members in self.strata))


def draw_weights(scheme: str, units: ResampledUnits, rng: np.random.Generator) -> FloatArray:
    """Weights of the rows in one replicate: how often each is drawn, 1 on average.

    "multinomial": units with replacement, as many as there are. "poisson": each unit a Poisson
    number of times. "bayesian": exponential weights, uniform on the simplex (Rubin 1981). A unit
    that represents several rows is drawn as so many units.
    """
    weight = np.empty(sum(len(members) for members in units.strata))
    for members in units.strata:
        size = None if units.size is None else units.size[members]
        weight[members] = _drawn(scheme, len(members), size, rng)
    return weight if units.unit is None else weight[units.unit]


def weights_of(
    scheme: str, units: ResampledUnits, streams: Sequence[np.random.Generator], n_rows: int
) -> FloatArray:
    """Weights of the rows in several replicates, (row, draw)."""
    # All at once, because columns are not contiguous in memory.
    return np.ascontiguousarray(_by_draw(scheme, units, streams, n_rows).T)


def counts_of(
    scheme: str, units: ResampledUnits, streams: Sequence[np.random.Generator], n_rows: int
) -> Weights:
    """The same, `in_bytes` before they are put in order."""
    drawn = _by_draw(scheme, units, streams, n_rows)
    weight = in_bytes(drawn, scheme, units)
    return weight.T.copy()


def _by_draw(
    scheme: str, units: ResampledUnits, streams: Sequence[np.random.Generator], n_rows: int
) -> FloatArray:
    """Weights of the rows in several replicates, (draw, row)."""
    drawn = np.empty((len(streams), n_rows))
    for number, stream in enumerate(streams):
        drawn[number] = draw_weights(scheme, units, stream)
    return drawn


def in_bytes(weight: FloatArray, scheme: str, units: ResampledUnits) -> Weights:
    """Weights as single bytes where they are counts: an eighth of the memory to put in order."""
    if scheme == "bayesian" or units.size is not None or weight.max() > np.iinfo(np.uint8).max:
        return weight
    return weight.astype(np.uint8)


def shortfall(
    scheme: str, n: FloatArray, degrees: FloatArray, n_units: float, n_strata: int
) -> FloatArray:
    """Variance of the replicates of a bin's mean, over the unbiased estimate of that variance.

    A replicate that draws n* of the n rows has variance m_2 / n*, m_2 with divisor n. With
    "poisson" the mean of 1 / n* is 1 / n + 1 / n^2, about, which compensates for the divisor. With
    strata the numbers of rows vary less: "multinomial" lacks H / N for N units in H strata. With
    "bayesian" shares within the bin are uniform on the simplex: it is m_2 / (n + 1).
    """
    if scheme == "bayesian":
        return np.asarray(degrees / (n + 1))
    return np.full(np.shape(n), 1 - n_strata / n_units if scheme == "multinomial" else 1.0)


def _drawn(scheme: str, n: int, size: FloatArray | None, rng: np.random.Generator) -> FloatArray:
    if scheme == "bayesian":
        # A sum of so many exponential weights is gamma distributed.
        drawn = rng.standard_exponential(n) if size is None else rng.standard_gamma(size) / size
        mean = drawn.mean() if size is None else np.sum(size * drawn) / size.sum()
        return np.asarray(drawn / mean)
    if size is None:
        if scheme == "poisson":
            return rng.poisson(1.0, n).astype(np.float64)
        return np.bincount(rng.integers(n, size=n), minlength=n).astype(np.float64)
    if scheme == "poisson":
        return np.asarray(rng.poisson(size) / size)
    return np.asarray(rng.multinomial(int(size.sum()), size / size.sum()) / size)


class Terms(NamedTuple):
    """Rows of one feature in order of bins, with the products that replicates sum.

    Lines of ``products``: w, w^2, r, r^2, d, d^2, d r, then d^3, d^4 where there are lines or
    r^3, r^4 for standard errors, all but the second times w; r is the residual from the estimate,
    d the distance from ``x_mean``. For standard errors under precision weights then w^3, and r,
    r^2, r^3, r^4, d, d^2, d r times w^2. The second line is left out where it would be the first
    again (``once``).
    """

    order: IntArray
    bounds: IntArray
    products: FloatArray
    once: bool


def terms(
    pieces: Pieces,
    k: IntArray,
    x: FloatArray,
    g: FloatArray,
    weight: FloatArray | None,
    *,
    frequency: bool,
    standard_errors: bool,
    places: bool = False,
) -> Terms:
    """Products of the rows; ``places`` asks for d^3 and d^4 where there are no lines, either."""
    order = np.argsort(k, kind="stable")
    k, x, g = k[order], x[order], g[order]
    bounds = np.searchsorted(k, np.arange(len(pieces.mean) + 1))
    w = np.ones(len(x)) if weight is None else weight[order]
    d = x - pieces.x_mean[k]
    r = g - pieces.mean[k] - pieces.slope[k] * d
    once = frequency or weight is None
    columns = [w, *(() if once else (w**2,)), w * r, w * r**2, w * d, w * d**2, w * d * r]
    if standard_errors or places or pieces.slope.any():
        more = r if standard_errors else d
        columns += [w * more**3, w * more**4]
    if standard_errors and need_squares(weight, frequency=frequency):
        columns += [w**3, *[w**2 * moment for moment in (r, r**2, r**3, r**4, d, d**2, d * r)]]
    return Terms(order, bounds, np.array(columns), once)


def replicate_sums(terms: Terms, weight: Weights) -> FloatArray:
    """Sums of the products for ``weight`` (row, draw): (draw, bin, product)."""
    n_draws = weight.shape[1]
    padded = np.pad(weight, ((0, 0), (0, -n_draws % BLOCK))) if n_draws % BLOCK else weight
    sums = np.empty((len(terms.bounds) - 1, len(terms.products), padded.shape[1]))
    in_order = padded.take(terms.order, axis=0)  # many times as fast as padded[order]
    for begin in range(0, padded.shape[1], DRAWS_OF_BLOCK):
        draws = slice(begin, begin + DRAWS_OF_BLOCK)
        for k, ends in enumerate(pairwise(terms.bounds.tolist())):
            drawn = in_order[slice(*ends), draws].astype(np.float64, copy=False)
            np.matmul(terms.products[:, slice(*ends)], drawn, out=sums[k, :, draws])
    lines = [0] * terms.once + [*range(len(terms.products))]
    # Each product by itself in memory, for what is made of it.
    return np.moveaxis(sums.T[:n_draws].take(lines, axis=1).transpose(1, 0, 2).copy(), 0, -1)


def of_unions(sums: FloatArray, cells: Pieces, bins: Pieces, bin_of: IntArray) -> FloatArray:
    """The same sums of bins from those of their cells, in which effects are constant.

    ``bin_of`` is the bin of every cell. About a bin, d is larger by a and r by c - s d, where s is
    the slope of the bin, a and c its distances at the mean of the cell.
    """
    starts = np.flatnonzero(np.diff(bin_of, prepend=-1))
    away = np.where(np.isnan(cells.mean), 0.0, cells.x_mean - bins.x_mean[bin_of])
    slope = bins.slope[bin_of]
    above = np.where(np.isnan(cells.mean), 0.0, cells.mean - bins.mean[bin_of] - slope * away)
    w, w2, r1, r2, d1, d2, dr, *places = np.moveaxis(sums, -1, 0)
    a, c, s = away, above, slope
    moved = [w, w2, r1 + c * w - s * d1]
    moved.append(r2 + c**2 * w + s**2 * d2 + 2 * (c * r1 - s * dr - c * s * d1))
    moved += [d1 + a * w, d2 + 2 * a * d1 + a**2 * w]
    moved.append(dr + c * d1 - s * d2 + a * (r1 + c * w - s * d1))
    if places:
        d3, d4 = places
        moved.append(d3 + 3 * a * d2 + 3 * a**2 * d1 + a**3 * w)
        moved.append(d4 + 4 * a * d3 + 6 * a**2 * d2 + 4 * a**3 * d1 + a**4 * w)
    sums = np.array([np.add.reduceat(part, starts, axis=1) for part in moved])
    return np.moveaxis(sums, 0, -1)


class Squared(NamedTuple):
    """Means over squared weights in replicates, (draw, bin), of d and r about the weighted means.

    ``variance`` takes the place of that of the rows in standard errors, math [26]. ``slope`` (bin,)
    are the slopes of the lines of the estimate, which r is the distance from.
    """

    d: FloatArray
    d2: FloatArray
    r: FloatArray
    dr: FloatArray
    r2: FloatArray
    r4: FloatArray
    variance: FloatArray
    slope: FloatArray


class BinReplicates(NamedTuple):
    """Estimates of replicates, (draw, bin), and curves, (draw, edge)."""

    mean: FloatArray
    slope: FloatArray
    effect: FloatArray
    variance: FloatArray
    share: FloatArray
    n_effective: FloatArray
    x_mean: FloatArray
    x_moments: tuple[FloatArray, FloatArray, FloatArray]
    x_covariance: FloatArray
    fourth_moment: FloatArray | None
    curve: FloatArray
    residual: FloatArray
    squared: Squared | None = None

    @property
    def error_variance(self) -> FloatArray:
        """Variance of the rows that standard errors are made of, (draw, bin)."""
        return self.variance if self.squared is None else self.squared.variance

    def heterogeneity_se(self) -> FloatArray:
        """Standard errors of the spreads, (draw, bin): math [24]."""
        assert self.fourth_moment is not None, "terms were made for standard errors"
        se = accumulate.heterogeneity_se(self.variance, self.fourth_moment, self.n_effective)
        if self.squared is None:
            return se
        m2 = self.residual
        with np.errstate(invalid="ignore", divide="ignore"):
            ours = self.squared.r4 - 2 * m2 * self.squared.r2 + m2**2
            usual = self.fourth_moment - m2**2
            usable = (usual > 1e-9 * m2**2) & (ours > 0)
            return np.asarray(se * np.sqrt(np.where(usable, ours / usual, 1.0)))

    def mean_of_curve(self, edges: FloatArray) -> FloatArray:
        """Means of the curves over the rows, (draw,)."""
        reach = self.x_mean - edges[:-1]
        level = self.curve[:, :-1] + self.mean * reach
        level = level + self.slope / 2 * (self.x_moments[0] - reach**2)
        return np.asarray(np.sum(self.share * level, axis=1))

    def curve_se(self, edges: FloatArray, centering: str) -> FloatArray:
        """Standard errors of the curves in constant bins, (draw, edge): math [25] and [26]."""
        width, left = np.diff(edges), edges[:-1]
        level = np.clip(edges[:, None] - left, 0.0, width)
        with np.errstate(invalid="ignore", divide="ignore"):
            noise = self.error_variance / self.n_effective
            if centering == "start":
                return _root_of_noise(level[None], noise)
            if centering == "integral":
                mean_level = (edges[-1] - edges[1:] + width / 2) * width / width.sum()
                return _root_of_noise((level - mean_level)[None], noise)
            if centering != "mean":
                at_zero = np.clip(float(centering) - left, 0.0, width)
                return _root_of_noise((level - at_zero)[None], noise)
            reach = self.x_mean - left
            beyond = np.cumsum(self.share[:, ::-1], axis=1)[:, ::-1] - self.share
            mean_level = beyond * width + self.share * reach
            # Part due to the sampling of x.
            per_row = self.share / self.n_effective
            within = self.curve[:, :-1] + self.mean * reach
            within -= np.sum(self.share * within, axis=1, keepdims=True)
            square = within**2 + self.mean**2 * self.x_moments[0]
            with_mean = per_row * self.mean * self.x_covariance
            if self.squared is not None:
                by = self.squared
                square = within**2 + 2 * within * self.mean * by.d + self.mean**2 * by.d2
                with_mean = per_row * (within * by.r + self.mean * by.dr)
            alone = np.sum(per_row * self.share * square, axis=1, keepdims=True)
            level = level - mean_level[:, None]
            places = alone - 2 * np.sum(level * with_mean[:, None], axis=2)
            return _root_of_noise(level, noise, places)

    def average_effect_se(self) -> FloatArray:
        """Standard errors of the means over all rows, (draw,)."""
        with np.errstate(invalid="ignore", divide="ignore"):
            n = 1 / np.nansum(self.share**2 / self.n_effective, axis=1)
            mean = np.nansum(self.share * self.mean, axis=1, keepdims=True)
            away = self.mean - mean
            each = self.residual + self.slope**2 * self.x_moments[0] + away**2
            squares = np.nansum(self.share * each, axis=1)
            if self.squared is not None:
                by, slope = self.squared, self.squared.slope
                each = by.r2 + slope**2 * by.d2 + 2 * slope * by.dr
                each = each + 2 * away * (by.r + slope * by.d) + away**2
                squares = n * np.nansum(self.share**2 / self.n_effective * each, axis=1)
            return np.sqrt(np.where(n > 1 + 1e-12, squares / (n - 1), np.nan))

    def sizes(self, edges: FloatArray) -> Sizes:
        """Sizes of the curves."""
        second, third, fourth = self.x_moments
        pieces = Pieces(edges, self.mean, self.slope, self.x_mean, second, self.share)
        return sizes(self.curve, pieces, third, fourth)


def _root_of_noise(
    level: FloatArray, noise: FloatArray, more: FloatArray | float = 0.0
) -> FloatArray:
    """Root of sum_k level^2 noise + more; bins on which a curve does not depend may be unknown."""
    parts = np.where(level == 0, 0.0, level**2 * noise[:, None])
    return np.asarray(np.sqrt(np.maximum(np.sum(parts, axis=2) + more, 0.0)))


def replicates(
    pieces: Pieces,
    sums: FloatArray,
    centering: str,
    keep: FloatArray | None = None,
    *,
    places: bool = True,
) -> BinReplicates:
    """Estimates of `rhale` from rows with these weights, in the same bins.

    A bin without drawn rows is NaN. A fine cell without drawn rows keeps its mean, and its variance
    of ``keep``. If ``places`` is set, the last two sums of linear bins are d^3 and d^4, not powers
    of residuals (`terms`).
    """
    w, w2, r1, r2, d1, d2, dr = np.moveaxis(sums[..., :7], -1, 0)
    linear = pieces.slope != 0
    with np.errstate(invalid="ignore", divide="ignore"):
        r_mean, d_mean = r1 / w, d1 / w
        rr, dd = np.maximum(r2 - r1 * r_mean, 0.0), np.maximum(d2 - d1 * d_mean, 0.0)
        together = dr - d1 * r_mean
        # Rows with one value of x have no line: the rest of their spread is rounding.
        line = np.where(dd > ONE_PLACE * d2, together / dd, np.nan)
        bend = np.where(linear, line, 0.0)
        residual = np.where(linear, np.maximum(rr - bend * together, 0.0), rr)
        n = w**2 / w2
        spread = residual / (w - (1 + linear) * w2 / w)
        spread = np.where(n > (1 + linear) * (1 + 1e-12), spread, np.nan)
        if keep is not None:
            none_drawn = w == 0
            r_mean, d_mean = np.where(none_drawn, 0.0, r_mean), np.where(none_drawn, 0.0, d_mean)
            spread = np.where(np.isnan(spread), keep, spread)
            n = np.where(none_drawn, 1.0, n)
        mean = pieces.mean + pieces.slope * d_mean + r_mean
        slope = pieces.slope + bend
        x_mean = pieces.x_mean + d_mean
        middle = (pieces.edges[:-1] + pieces.edges[1:]) / 2
        # With an empty bin there is no effect and no curve.
        effect = mean + slope * np.where(linear, middle - x_mean, 0.0)
        share = w / w.sum(axis=1, keepdims=True)
        x_variance = np.where(w > 0, dd / w, 0.0 if keep is not None else np.nan)
        none = np.zeros_like(w)
        fourth, x_moments = None, (x_variance, none, none)
        if sums.shape[-1] > 7 and not (linear.any() and places):
            r3, r4 = sums[..., 7], sums[..., 8]
            fourth = (r4 - 4 * r_mean * r3 + 6 * r_mean**2 * r2) / w - 3 * r_mean**4
        elif linear.any():
            d3, d4 = sums[..., 7] / w, sums[..., 8] / w
            x3 = d3 - 3 * d_mean * d2 / w + 2 * d_mean**3
            x4 = d4 - 4 * d_mean * d3 + 6 * d_mean**2 * d2 / w - 3 * d_mean**4
            x_moments = (x_variance, x3, x4)
        covariance = np.where(linear, 0.0, together / w)
        if keep is not None:
            covariance = np.nan_to_num(covariance)
        squared = None
        if sums.shape[-1] > 9:
            squared = _squared(sums[..., 9:], w, w2, r_mean, d_mean, pieces.slope)
            finite = np.isfinite(squared.variance)
            other = np.nan if keep is None else keep
            squared = squared._replace(variance=np.where(finite, squared.variance, other))
    drawn = BinReplicates(
        mean=mean,
        slope=slope,
        effect=effect,
        variance=spread,
        share=share,
        n_effective=n,
        x_mean=x_mean,
        x_moments=x_moments,
        x_covariance=covariance,
        fourth_moment=fourth,
        curve=np.empty(0),
        residual=residual / w,
        squared=squared,
    )
    return drawn._replace(curve=_curves(pieces, drawn, centering))


def _squared(
    sums: FloatArray,
    w: FloatArray,
    w2: FloatArray,
    r_mean: FloatArray,
    d_mean: FloatArray,
    slope: FloatArray,
) -> Squared:
    """Moments by squared weights about the means, from sums about the estimates; NaN of one row."""
    cubes = sums[..., 0]
    r1, r2, r3, r4, d1, d2, dr = np.moveaxis(sums[..., 1:], -1, 0) / w2
    square = r2 - 2 * r_mean * r1 + r_mean**2
    rest = 1 - 2 * cubes / (w * w2) + w2 / w**2
    return Squared(
        d1 - d_mean,
        d2 - 2 * d_mean * d1 + d_mean**2,
        r1 - r_mean,
        dr - r_mean * d1 - d_mean * r1 + r_mean * d_mean,
        square,
        r4 - 4 * r_mean * r3 + 6 * r_mean**2 * r2 - 4 * r_mean**3 * r1 + r_mean**4,
        np.where(w**2 / w2 > 1 + 1e-12, square / rest, np.nan),
        slope,
    )


def _curves(pieces: Pieces, drawn: BinReplicates, centering: str) -> FloatArray:
    """Centred curves that the effects of replicates accumulate to, (draw, edge); math [7], [8]."""
    width, slope, x_variance = np.diff(pieces.edges), drawn.slope, drawn.x_moments[0]
    curve = np.zeros((len(drawn.effect), len(width) + 1))
    np.cumsum(drawn.effect * width, axis=1, out=curve[:, 1:])
    if centering == "mean":
        reach = drawn.x_mean - pieces.edges[:-1]
        bend = np.where(pieces.slope != 0, x_variance - reach**2, 0.0)
        within = drawn.mean * reach + slope / 2 * bend
        curve -= np.sum(drawn.share * (curve[:, :-1] + within), axis=1, keepdims=True)
    elif centering == "integral":
        area = width * (curve[:, :-1] + curve[:, 1:]) / 2 - slope * width**3 / 12
        curve -= np.sum(area, axis=1, keepdims=True) / width.sum()
    elif centering != "start":
        to = np.clip(float(centering) - pieces.edges[:-1], 0.0, width)
        curve -= np.sum(drawn.effect * to - slope * to * (width - to) / 2, axis=1, keepdims=True)
    curve[np.isnan(curve).any(axis=1)] = np.nan
    return curve


def honest_split(n_obs: int, honest_fraction: float, honest_seed: int) -> NDArray[np.bool_]:
    """Rows that choose the edges, (n_obs,); the estimates use the other rows."""
    n_chosen = round(honest_fraction * n_obs)
    if not 0 < n_chosen < n_obs:
        raise ValueError(
            f"honest_fraction must leave rows on both sides; {honest_fraction!r} of {n_obs} rows "
            f"is {n_chosen}. Use 0.5."
        )
    chosen = np.zeros(n_obs, dtype=bool)
    # As `permutation`, in half the memory: all rows of a table in chunks take part.
    number = np.arange(n_obs, dtype=np.int32 if n_obs < 2**31 else np.int64)
    np.random.default_rng(honest_seed).shuffle(number)
    chosen[number[:n_chosen]] = True
    return chosen
