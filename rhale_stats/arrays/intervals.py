"""Intervals and bands from standard errors and from replicates; last axis: lower, upper."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import special

from rhale_stats.arrays.moments import FloatArray, IntArray

# Draws of errors, in single precision.
Draws: TypeAlias = NDArray[np.float32]
# Smaller skewness of an error is none.
MIN_SKEWNESS = 1e-9
# Methods that need replicates.
METHODS = ("percentile", "basic", "bca", "studentized")
# Number of means at which `of_deviation` evaluates the test.
OFFSETS = 401
# Lower limit of the variance of squares given the mean, in squared variances.
MIN_SPREAD = 0.02
# Quantile of Student's t from which nothing is known: powers of larger ones overflow.
LARGEST_QUANTILE = 1e50
# Kurtosis from which tails are heavy, the most that neighbours may raise it by, and what it is
# raised by where there are none; chosen by simulation (math [92]).
HEAVY, MAX_RAISED, ALONE = 3.5, 4.0, 1.5
# Neighbouring bins whose mean variance fourth moments are scaled by.
SCALED = 4
# Rows below which a bin says nothing of its kurtosis.
MIN_FOR_KURTOSIS = 4
# Log of the smallest tail that floating point can represent; scores of smaller ones are
# approximated.
MIN_TAIL = -700.0
# Draws that tell the score of a band to about .3 %.
N_DRAWS = 2_000
# Rounds in which the score of a band is found, and differences of scores that are none.
MAX_ROUNDS, SAME_SCORE = 20, 1e-6
# Sources that add less than this to half the relative variance of an estimated variance are not
# drawn: hundreds of them vary as much as a variance with several thousand degrees of freedom.
MIN_SOURCE = 1e-6
# With more degrees of freedom, the errors of estimated variances are negligible.
MANY_DEGREES = 200.0


def student(level: float, degrees: FloatArray | float) -> FloatArray:
    """Two-sided quantile of Student's t; the normal one for infinite degrees, NaN without any."""
    return np.asarray(
        np.where(degrees > 0, special.stdtrit(np.maximum(degrees, 1e-3), 0.5 + level / 2), np.nan)
    )


def of_share(share: FloatArray, n: FloatArray, level: float) -> FloatArray:
    """Clopper and Pearson's (1934) interval of a share of ``n`` rows, (...) -> (..., 2).

    It is right where none or all of the rows count, too. ``n`` need not be whole.
    """
    count, tail = share * n, (1 - level) / 2
    ends = (
        np.where(count > 0, special.betaincinv(count, n - count + 1, tail), 0.0),
        np.where(count < n, special.betaincinv(count + 1, n - count, 1 - tail), 1.0),
    )
    return np.where(np.isfinite(count)[..., None], np.stack(ends, axis=-1), np.nan)


def share_pvalue(share: FloatArray, n: FloatArray, null: FloatArray) -> FloatArray:
    """The p-value that goes with `of_share`: twice the smaller tail of the binomial."""
    count, null = share * n, np.clip(null, 0.0, 1.0)
    above = np.where(count > 0, special.betainc(count, n - count + 1, null), 1.0)
    below = np.where(count < n, special.betaincc(count + 1, n - count, null), 1.0)
    return np.where(np.isfinite(count), np.minimum(2 * np.minimum(above, below), 1.0), np.nan)


def chi2_tail(statistic: float, degrees: float) -> float:
    """Probability that chi squared is larger; NaN without a degree of freedom."""
    return float(special.chdtrc(degrees or np.nan, np.maximum(statistic, 0.0)))


def f_tail(statistic: float, degrees: float, denominator: float) -> float:
    """Probability that F is larger; that of chi squared over its degrees for infinite ones."""
    if np.isinf(denominator):
        return chi2_tail(degrees * statistic, degrees)
    return float(special.fdtrc(degrees, denominator, np.maximum(statistic, 0.0)))


def normal_score(t: FloatArray, degrees: FloatArray) -> FloatArray:
    """Standard normal value with the two-sided p-value of Student's t.

    Where the tail underflows, the approximation of Wallace (1959) takes over. It is about 1 % too
    small with 20 degrees of freedom, 0.1 % with 200, and less with more. With fewer than 20 no tail
    underflows below t = 1e15.
    """
    t, degrees = np.broadcast_arrays(np.abs(t), degrees)
    with np.errstate(divide="ignore"):
        tail = np.asarray(np.log(special.stdtr(degrees, -t)))
    exact = np.abs(special.ndtri_exp(np.maximum(tail, MIN_TAIL)))
    with np.errstate(invalid="ignore", over="ignore"):
        # log(1 + t^2 / v) without the square, which may overflow.
        logarithm = 2 * np.log(np.hypot(1.0, t / np.sqrt(degrees)))
        wallace = (8 * degrees + 1) / (8 * degrees + 3) * np.sqrt(degrees * logarithm)
    beyond = np.where(np.isinf(degrees), t, np.maximum(wallace, exact))
    return np.asarray(np.where(tail < MIN_TAIL, beyond, exact))


def satterthwaite(*parts: tuple[FloatArray, FloatArray | float]) -> FloatArray:
    """Degrees of freedom of a sum of independent variances (Welch 1938, Satterthwaite 1946).

    Each has its own; without variance they are infinite.
    """
    total = np.sum([variance for variance, _ in parts], axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        squares = np.sum(
            [np.where(variance > 0, variance**2 / degrees, 0.0) for variance, degrees in parts],
            axis=0,
        )
        return np.asarray(np.where(squares > 0, total**2 / squares, np.inf))


def around(estimate: FloatArray, half: FloatArray) -> FloatArray:
    """Estimate minus and plus a half-width."""
    return np.stack([estimate - half, estimate + half], axis=-1)


def skewed(
    estimate: FloatArray, se: FloatArray, quantile: FloatArray, skewness: FloatArray | float
) -> FloatArray:
    """Interval of an estimate whose error has a skewness, (..., 2), math [24].

    Hall (1992), *JRSS B* 54, 221-228: T + k T^2 / 3 + k^2 T^3 / 27 + k / 6 is nearly Student's t
    for an estimate T standard errors off, whose error has skewness k.
    """
    k = np.asarray(np.where(np.abs(skewness) < MIN_SKEWNESS, np.nan, skewness))
    with np.errstate(invalid="ignore"):
        ends = [
            estimate - se * np.where(np.isnan(k), t, 3 / k * (np.cbrt(1 + k * (t - k / 6)) - 1))
            for t in (quantile, -quantile)
        ]
    return np.stack(ends, axis=-1)


def unskewed(t: FloatArray, skewness: FloatArray | float) -> FloatArray:
    """Hall's transformation of errors ``t`` in standard errors, whose inverse makes `skewed`.

    It rises, so that one-sided tests by it agree with one-sided intervals.
    """
    k = np.where(np.abs(skewness) < MIN_SKEWNESS, np.nan, skewness)
    with np.errstate(invalid="ignore", over="ignore"):
        return np.where(np.isnan(k), t, ((1 + k * t / 3) ** 3 - 1) / k + k / 6)


def log_scale(estimate: FloatArray, half: FloatArray) -> FloatArray:
    """The same on the log scale, for positive quantities; 0 has the interval [0, 0]."""
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        factor = np.where(estimate == 0, 1.0, np.exp(half / estimate))
    return np.stack([estimate / factor, estimate * factor], axis=-1)


def of_deviation(
    deviation: FloatArray,
    third: FloatArray,
    fourth: FloatArray,
    n: FloatArray,
    degrees: FloatArray,
    level: float,
) -> FloatArray:
    """math [24]: interval of a standard deviation by inversion of a test, from central moments.

    Let u be the unknown distance of the sample's mean from the true one. Given u, the mean square
    about the truth is a = m2 + u^2; its deviation from the variance s0 is the regression on u plus
    noise of variance c. The test does not reject the pair (u, s0) if u^2/v + ((a/s0 - 1) a - b
    u/v)^2/c is below the quantile of t^2 over n. The interval is the set of all s0 that are not
    rejected for some u: for every u they are an interval, and these overlap.
    """
    quantile = student(level, degrees)
    with np.errstate(invalid="ignore"):
        factor = degrees / n
    out = np.full((len(deviation), 2), np.nan)
    for k in range(len(deviation)):
        m2 = float(deviation[k] ** 2 * factor[k])
        if m2 == 0:
            out[k] = 0.0
        if not (m2 > 0 and quantile[k] > 0):
            continue
        if quantile[k] > LARGEST_QUANTILE:
            out[k] = 0.0, np.inf
            continue
        m3, m4, within = float(third[k]), float(fourth[k]), float(quantile[k] ** 2 / n[k])
        u = np.linspace(-1.0, 1.0, OFFSETS) * np.sqrt(within * m2)
        a = m2 + u**2
        b = m3 + 2 * u * m2
        c = m4 + 4 * u * m3 + 4 * u**2 * m2 - m2**2
        c = np.maximum(c - b**2 / m2, MIN_SPREAD * m2**2 / n[k])
        left = np.sqrt(c * np.maximum(within - u**2 / m2, 0.0))
        explained = b / m2 * u
        ratios = 1 + np.stack([explained - left, explained + left]) / a
        # If both are negative, every variance is rejected with this mean.
        some = ratios[1] > 0
        if not some.any():
            continue
        a, ratios = a[some], ratios[:, some]
        out[k, 0] = np.sqrt(np.min(a / ratios[1]))
        out[k, 1] = np.sqrt(np.max(a / ratios[0])) if (ratios[0] > 0).all() else np.inf
        # Two values equally often: no mean makes m2 too small, but the estimate is more than m2.
        out[k, 1] = max(out[k, 1], deviation[k])
    return out


def heavy_kurtosis(second: FloatArray, fourth: FloatArray, n: FloatArray) -> FloatArray:
    """math [92]: kurtosis of the rows of bins, (..., bin); NaN where their tails are not heavy.

    That of few rows is too small, most of all where their variance is. The variances of two bins
    are independent, and so is their product.
    """
    estimable = (second > 0) & np.isfinite(fourth) & (n >= MIN_FOR_KURTOSIS)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        kurtosis = np.where(estimable, fourth / second**2, np.nan)
    usual, shared = _shared(second, fourth, np.where(estimable, n, 0.0))
    with np.errstate(invalid="ignore"):
        return np.where(
            estimable & (usual > HEAVY), np.maximum(shared, (kurtosis + shared) / 2), np.nan
        )


def _shared(second: FloatArray, square: FloatArray, n: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean squares over squared means, (..., 1): the average of bins, and by neighbouring bins."""
    estimable = n > 0
    second, square = [np.where(estimable, values, 0.0) for values in (second, square)]
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        sums = np.where(estimable, n * square / second**2, 0.0).sum(axis=-1, keepdims=True)
        usual = sums / n.sum(axis=-1, keepdims=True)
        # Pairs of bins with a large variance would outweigh the others.
        scale = _mean_around_pairs(second, n)
        pair = np.minimum(n[..., 1:], n[..., :-1]) / scale**2
        pair = np.where(np.isfinite(pair), pair, 0.0)
        above = np.sum(pair * (square[..., 1:] + square[..., :-1]) / 2, axis=-1, keepdims=True)
        below = np.sum(pair * second[..., 1:] * second[..., :-1], axis=-1, keepdims=True)
        shared = np.where(below > 0, above / below, ALONE * usual)
    # Where variances differ between bins, the product is too small.
    return usual, np.minimum(shared, MAX_RAISED * usual)


def _mean_around_pairs(values: FloatArray, n: FloatArray) -> FloatArray:
    """Means over the rows of the bins around every two neighbours; at the ends of those nearest.

    Ends are the first and the last bin with rows, by their number ``n``: what is beyond may be the
    padding of a feature with fewer bins than others.
    """
    n_bins = values.shape[-1]
    width = min(SCALED, n_bins)
    if n_bins < 2:
        return values[..., 1:]
    has_rows = n > 0
    first = has_rows.argmax(axis=-1)[..., None]
    last = np.maximum(n_bins - has_rows[..., ::-1].argmax(axis=-1)[..., None] - width, 0)
    begin = np.clip(np.arange(n_bins - 1) + 1 - width // 2, np.minimum(first, last), last)
    sums, rows = [
        np.lib.stride_tricks.sliding_window_view(part, width, axis=-1).sum(axis=-1)
        for part in (n * values, n)
    ]
    return np.take_along_axis(sums / rows, begin, axis=-1)


def of_heavy_tails(
    deviation: FloatArray,
    second: FloatArray,
    fourth: FloatArray,
    n: FloatArray,
    degrees: FloatArray,
    level: float,
) -> FloatArray:
    """math [92]: intervals of the standard deviations of bins, (..., bin, 2), on the log scale.

    NaN where tails are not heavy. ``second`` and ``fourth`` are central moments.
    """
    kurtosis = heavy_kurtosis(second, fourth, n)
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = np.maximum(kurtosis - (n - 3) / (n - 1), 0.0) / (n - 1)
    half = student(level, degrees) * np.sqrt(variance) / 2 * deviation
    ends = log_scale(deviation, half)
    return np.where(np.isfinite(kurtosis)[..., None], ends, np.nan)


def shared_error(deviation: FloatArray, se: FloatArray, degrees: FloatArray) -> FloatArray:
    """math [92]: standard errors of the standard deviations of bins, (..., bin), by groups.

    They are not smaller than those that neighbouring bins share. A deviation and its own error are
    correlated.
    """
    estimable = (deviation > 0) & (se >= 0) & (degrees > 0)
    free = np.where(estimable, degrees, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        # Relative variances of the squares, if each had one degree of freedom.
        square = free * (2 * deviation * se) ** 2
        shared = _shared(deviation**2, square, free)[1] / np.where(estimable, degrees, np.nan)
        square_ratio = (2 * se / deviation) ** 2
        raised = np.sqrt(np.maximum(shared, (square_ratio + shared) / 2)) * deviation / 2
    return np.where(estimable & np.isfinite(raised), raised, se)


class Sources(NamedTuple):
    """Independent sources from which the variances at points are estimated.

    ``parts`` (point, source) is what each of them adds to the variance at a point, ``degrees``
    (source,) are their degrees of freedom. The rest of a variance, beyond its parts, counts as
    known.
    """

    parts: FloatArray
    degrees: FloatArray

    @classmethod
    def single(cls, variance: FloatArray, degrees: float) -> Sources:
        """One estimate of scale for all points: their errors are multivariate t."""
        return cls(np.asarray(variance)[:, None], np.array([degrees]))

    def satterthwaite(self, variance: FloatArray) -> FloatArray:
        """Degrees of freedom of the variance at every point (Satterthwaite 1946)."""
        is_known = self.degrees > 0
        over = np.divide(1.0, self.degrees, out=np.zeros(len(self.degrees)), where=is_known)
        squares = self.parts**2 @ over
        if not is_known.all():
            squares[(self.parts[:, ~is_known] != 0).any(axis=1)] = np.inf
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(np.where(squares > 0, variance**2 / squares, np.inf))

    def ratios(self, variance: FloatArray, n_draws: int, rng: np.random.Generator) -> Draws:
        """Draws of estimated over true variance, (draw, point), for normal rows."""
        shares = np.maximum(np.nan_to_num(self.parts), 0.0) / variance[:, None]
        # Parts may exceed the variance, because other covariances are added to it.
        shares = shares / np.maximum(shares.sum(axis=1, keepdims=True), 1.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            used = ((shares**2).max(axis=0, initial=0.0) / self.degrees) > MIN_SOURCE
        # A source without degrees of freedom has no variance that could be drawn.
        used &= self.degrees > 0
        shares, degrees = shares[:, used], self.degrees[used]
        # Chi-squared, over the degrees of freedom; with next to none of these some underflow.
        half = np.asarray(degrees / 2, dtype=np.float32)
        drawn = rng.standard_gamma(half, (n_draws, len(half)), dtype=np.float32)
        np.maximum(drawn, np.finfo(np.float32).tiny, out=drawn)
        drawn /= np.maximum(half, np.finfo(np.float32).tiny)
        ratios = drawn @ np.asarray(shares.T, dtype=np.float32)
        ratios += np.asarray(1 - shares.sum(axis=1), dtype=np.float32)
        return np.maximum(ratios, np.finfo(np.float32).tiny, out=ratios)


def score_quantile(score: float, degrees: FloatArray) -> FloatArray:
    """Student's quantile at the tail of a normal score, by degrees of freedom; NaN without any."""
    tail = special.ndtr(-score)
    with np.errstate(invalid="ignore", over="ignore"):
        quantile = -special.stdtrit(degrees, tail)
        # In tails too far for SciPy's quantile its sign and NaN say nothing.
        quantile = np.where(tail > 0, np.copysign(quantile, score), np.inf)
        return np.asarray(np.where(np.isnan(score) | ~(degrees > 0), np.nan, quantile))


class _Exceedances(NamedTuple):
    """Draws of errors that are beyond a limit at one point at least, in single precision.

    In each draw it is ``point``. At all points (draw, point) errors are ``rest`` plus their
    ``correlation`` with the error there times that error. ``uniform`` says how far beyond it is.
    ``ratio`` are estimated over true standard errors, None where these are known; ``freedom`` are
    the degrees of freedom of the points.
    """

    rest: Draws
    correlation: Draws
    point: IntArray
    uniform: FloatArray
    ratio: Draws | None
    freedom: FloatArray

    def share(self, score: float) -> float:
        """Share of the sum over points of the chances to be beyond a score that some point is.

        That is the mean of one over the number of points that are beyond it at once.
        """
        limit = score_quantile(score, self.freedom)
        if self.ratio is None:
            limits, at_point = limit.astype(np.float32), limit[self.point]
        else:
            with np.errstate(over="ignore", invalid="ignore"):
                limits = limit.astype(np.float32) * self.ratio
            at_point = limits[np.arange(len(self.point)), self.point].astype(np.float64)
        chance = special.ndtr(-at_point)
        if not np.sum(chance) > 0:
            return 1.0  # no more than the sum
        error = -special.ndtri(self.uniform * chance).astype(np.float32)
        with np.errstate(invalid="ignore"):
            errors = self.correlation * error[:, None]
            errors += self.rest
            n_beyond = np.count_nonzero(np.abs(errors, out=errors) > limits, axis=1)
        # The point itself may be at the limit in single precision.
        return float(np.sum(chance / np.maximum(n_beyond, 1)) / np.sum(chance))


def largest_deviation(
    covariance: FloatArray,
    level: float,
    degrees: FloatArray | float,
    n_draws: int,
    rng: np.random.Generator,
    sources: Sources | None = None,
) -> float:
    """math [27]: the normal score whose tail, by Student's t at every point, makes a band.

    Errors are normal with this covariance, divided by standard errors that are estimated from
    ``sources``. Without sources there is one estimate for all points if ``degrees`` is a number,
    and a separate one for every point if it is an array.
    """
    exceeding = _drawn(covariance, degrees, n_draws, rng, sources)
    n_points = len(exceeding.freedom)
    if not n_points:
        return 0.0 if np.isfinite(np.diagonal(covariance)).any() else float("nan")
    share, score = 1.0, 0.0
    for _ in range(MAX_ROUNDS):
        before, score = score, -special.ndtri((1 - level) / (2 * n_points * share))
        if abs(score - before) < SAME_SCORE:
            break
        # Not less than that of one point alone.
        share = max(exceeding.share(score), 1 / n_points)
    return float(score)


def largest_deviation_pvalue(
    covariance: FloatArray,
    score: float,
    degrees: FloatArray | float,
    n_draws: int,
    rng: np.random.Generator,
    sources: Sources | None = None,
) -> float:
    """math [27]: the chance that the largest deviation has at least this normal score."""
    if np.isnan(score):
        return float("nan")
    exceeding = _drawn(covariance, degrees, n_draws, rng, sources)
    n_points = len(exceeding.freedom)
    if not n_points:
        return 0.0 if score > 0 else 1.0
    if score <= 0:
        return 1.0
    # Between that of one point and that of as many independent ones.
    share = max(exceeding.share(score), 1 / n_points)
    return float(min(2 * special.ndtr(-score) * n_points * share, 1.0))


def _drawn(
    covariance: FloatArray,
    degrees: FloatArray | float,
    n_draws: int,
    rng: np.random.Generator,
    sources: Sources | None,
) -> _Exceedances:
    """Draws of errors over their standard errors at points that have one."""
    variance = np.maximum(np.nan_to_num(np.diagonal(covariance)), 0.0)
    se = np.sqrt(variance)
    freedom = np.broadcast_to(np.asarray(degrees, dtype=np.float64), se.shape)
    estimable = (se > 1e-12 * se.max(initial=0.0)) & (freedom > 0)
    n_points, freedom = int(estimable.sum()), freedom[estimable]
    if not n_points:
        nothing = np.zeros((n_draws, 0), np.float32)
        return _Exceedances(nothing, nothing, np.zeros(0, int), np.zeros(0), None, freedom)
    if sources is None and np.ndim(degrees) == 0:
        sources = Sources.single(variance, float(degrees))
    # Without sources scores are normal at every point; their joint distribution is approximated by
    # a normal one.
    is_known = np.full(n_points, sources is None) | (freedom >= MANY_DEGREES)
    freedom = np.where(is_known, np.inf, freedom)
    correlation = covariance[np.ix_(estimable, estimable)] / np.outer(se[estimable], se[estimable])
    # The symmetric root, which rounding does not turn.
    values, vectors = np.linalg.eigh(correlation)
    root = np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T, dtype=np.float32)
    # All points in turn, from any of them on.
    point = ((np.arange(n_draws) + rng.random()) * (n_points / n_draws)).astype(np.int64)
    errors = rng.standard_normal((n_draws, n_points), dtype=np.float32) @ root
    with_point = np.asarray(correlation, dtype=np.float32)[point]
    errors -= with_point * errors[np.arange(n_draws), point][:, None]
    ratio = None
    if sources is not None and not is_known.all():
        parts = np.where(is_known[:, None], 0.0, sources.parts[estimable])
        estimated = sources._replace(parts=parts)
        ratio = np.sqrt(estimated.ratios(variance[estimable], n_draws, rng))
    return _Exceedances(errors, with_point, point, rng.random(n_draws), ratio, freedom)


def of_replicates(
    draws: FloatArray,
    estimate: FloatArray,
    level: float,
    method: str,
    *,
    score: FloatArray | None = None,
    acceleration: FloatArray | float = 0.0,
    draws_se: FloatArray | float = np.nan,
    estimate_se: FloatArray | float = np.nan,
) -> FloatArray:
    """Bootstrap intervals, (draw, ...) -> (..., 2); replicates that are NaN are left out.

    "percentile", "basic" (Davison and Hinkley 1997, 5.2), "bca" (Efron 1987), "studentized".
    The first three cut at the levels Phi(-score) and Phi(score): expanded intervals (Hesterberg
    2015, 5.3) where the score is larger than the normal quantile, which is the default.
    """
    tails = np.array([(1 - level) / 2, (1 + level) / 2])
    if method == "studentized":
        with np.errstate(invalid="ignore", divide="ignore"):
            pivot = (draws - estimate) / draws_se
        # A replicate without spread, where the estimate has some, gives no pivot.
        low, high = [quantiles(pivot, np.full(draws.shape[1:], tail)) for tail in tails]
        ends = [estimate - high * estimate_se, estimate - low * estimate_se]
        # An estimate without error has no pivot.
        return np.stack([np.where(estimate_se == 0, estimate, end) for end in ends], axis=-1)
    upper = np.broadcast_to(special.ndtri(tails[1]) if score is None else score, draws.shape[1:])
    scores = [-upper, upper]
    if method == "bca":
        with np.errstate(invalid="ignore", divide="ignore"):
            n_finite = np.isfinite(draws).sum(axis=0)
            below = (draws < estimate).sum(axis=0) + (draws == estimate).sum(axis=0) / 2
            z0 = special.ndtri(np.clip(below / n_finite, 0.5 / n_finite, 1 - 0.5 / n_finite))
            scores = [_shifted(z0 + end, acceleration) + z0 for end in scores]
    low, high = [quantiles(draws, special.ndtr(end)) for end in scores]
    if method == "basic":
        low, high = 2 * estimate - high, 2 * estimate - low
    return np.stack([low, high], axis=-1)


def _shifted(score: FloatArray, acceleration: FloatArray | float) -> FloatArray:
    """score / (1 - a score); where the correction has no limit, as far as there is."""
    rest = 1 - acceleration * score
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(rest <= 0, np.copysign(np.inf, score), score / rest)


def equal_tailed(draws: FloatArray, level: float) -> FloatArray:
    """math [85]: quantiles of draws with equal tails, (draw, ...) -> (..., 2)."""
    finite = np.isfinite(draws).any(axis=0)
    ends = np.full((*draws.shape[1:], 2), np.nan)
    shares = [(1 - level) / 2, (1 + level) / 2]
    if finite.any():  # NumPy has quantiles of none of another shape
        ends[finite] = np.nanquantile(draws[:, finite], shares, axis=0).T
    return ends


def quantiles(draws: FloatArray, share: FloatArray) -> FloatArray:
    """Quantiles of replicates, each column with its own share, at rank (B + 1) share of B known.

    So each of B replicates leaves 1 / (B + 1) beyond it (Weibull 1939; Davison and Hinkley 1997,
    2.3). Beyond the extremes it is the smallest or the largest.
    """
    ordered = np.sort(np.where(np.isfinite(draws), draws, np.nan), axis=0)
    n_finite = np.isfinite(ordered).sum(axis=0)
    rank = np.clip(share * (n_finite + 1), 1, np.maximum(n_finite, 1))
    defined = np.isfinite(rank) & (n_finite > 0)
    below = np.where(defined, rank, 1).astype(np.intp)
    ends = [
        np.take_along_axis(ordered, np.minimum(number, np.maximum(n_finite - 1, 0))[None], axis=0)[
            0
        ]
        for number in (below - 1, below)
    ]
    part = rank - below
    value = ends[0] + np.where(part > 0, part * (ends[1] - ends[0]), 0.0)
    return np.where(defined, value, np.nan)
