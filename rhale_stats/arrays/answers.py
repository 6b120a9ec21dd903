"""What curves say in words: how far they reach, how they go, how much rows differ and change."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rhale_stats.arrays.intervals import student
from rhale_stats.arrays.moments import FloatArray, IntArray

# Quantiles of single rows: middle half, middle 80 %, median.
SHARES = (0.1, 0.25, 0.5, 0.75, 0.9)
MAX_WINDOWS = 24


class Changes(NamedTuple):
    """Windows (window,), quantiles of rows (window, share) and their mean, per unit of x."""

    left: FloatArray
    right: FloatArray
    n_rows: IntArray
    quantiles: FloatArray
    mean: FloatArray


def changes_of_rows(
    edges: FloatArray,
    number: IntArray,
    g: FloatArray,
    weight: FloatArray | None = None,
    most: int = MAX_WINDOWS,
) -> Changes:
    """Distribution of local effects ``g`` of rows in the bins ``number``, by window.

    A row of bin k counts with its share of the bin's weight times the width of the bin, so that the
    mean times the width of the window is the step of the curve across it [112]. Bins without rows
    take no part.
    """
    weight = np.ones(len(g)) if weight is None else weight
    in_bin = np.bincount(number, weight, minlength=len(edges) - 1)
    windows = windows_of(edges, most)
    window = np.searchsorted(windows, number, side="right") - 1
    width = np.diff(edges)
    share = weight * np.where(in_bin > 0, width / np.where(in_bin > 0, in_bin, 1), 0)[number]
    n_windows = len(windows) - 1
    quantiles, mean = np.full((n_windows, len(SHARES)), np.nan), np.full(n_windows, np.nan)
    used = np.flatnonzero(share > 0)
    order = used[np.lexsort((g[used], window[used]))]
    ends = np.searchsorted(window[order], np.arange(n_windows + 1))
    n_rows = np.diff(ends)
    for place in np.flatnonzero(n_rows):
        rows = order[ends[place] : ends[place + 1]]
        below = np.cumsum(share[rows])
        quantiles[place] = g[rows[np.searchsorted(below / below[-1], SHARES)]]
        mean[place] = share[rows] @ g[rows] / below[-1]
    return Changes(edges[windows[:-1]], edges[windows[1:]], n_rows, quantiles, mean)


def windows_of(edges: FloatArray, most: int) -> IntArray:
    """Numbers of the edges of at most ``most`` windows, by joining the narrowest neighbours."""
    places = list(range(len(edges)))
    while len(places) - 1 > most:
        edge = edges[places]
        del places[int(np.argmin(edge[2:] - edge[:-2])) + 1]
    return np.array(places)


def round_step(length: float) -> float:
    """A change of x to speak of: a tenth of an axis or less, as 1 or 5 times a power of ten."""
    if not length > 0:
        return 1.0
    power = 10.0 ** np.floor(np.log10(length / 10))
    return float(5 * power if 5 * power <= length / 10 * (1 + 1e-9) else power)


# --- what curves say in words ---------------------------------------------------------------------


# Draws of a curve for the quantile of its largest standardised difference.
N_DRAWS = 2000


def inner_range(
    x: FloatArray, share: FloatArray, percentiles: tuple[float, float]
) -> tuple[float, float]:
    """The values of rows at two percentiles, by their shares; all of them where these are equal."""
    finite = np.isfinite(x)
    order = np.argsort(x[finite], kind="stable")
    value, below = x[finite][order], np.cumsum(share[finite][order])
    wanted = np.array(percentiles) / 100 * below[-1] * (1 - 1e-12)
    low, high = value[np.minimum(np.searchsorted(below, wanted), len(value) - 1)]
    return (low, high) if low < high else (value[0], value[-1])


class Range(NamedTuple):
    """Places of the smallest and the largest value, their difference, and its interval."""

    lowest: int
    highest: int
    range: float
    lower: float
    upper: float


def half_widths(
    covariance: FloatArray, level: float, rng: np.random.Generator, degrees: float = np.inf
) -> FloatArray:
    """Half-widths of intervals of all differences of two values, (place, place) [109].

    All differences lie in their intervals together. 0 without noise, NaN if it is not known.
    """
    variance = np.diag(covariance)
    se = np.sqrt(np.maximum(variance[:, None] + variance - 2 * covariance, 0.0))
    if not np.isfinite(se).all():
        return np.where(np.eye(len(se), dtype=bool), 0.0, np.nan)
    # Below is what rounding leaves of equal variances.
    positive = se > 1e-7 * np.sqrt(variance.max())
    values, vectors = np.linalg.eigh(covariance)
    # The symmetric root: signs of eigenvectors, which rounding decides, do not change the draws.
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    drawn = root @ rng.standard_normal((N_DRAWS, len(covariance))).T
    if np.isfinite(degrees):
        drawn /= np.sqrt(rng.chisquare(degrees, N_DRAWS) / degrees)
    largest, precision = np.zeros(N_DRAWS), np.divide(1, se, out=np.zeros_like(se), where=positive)
    for place in range(1, len(drawn)):
        away = np.abs(drawn[:place] - drawn[place]) * precision[place, :place, None]
        np.maximum(largest, away.max(axis=0), out=largest)
    return np.where(positive, np.quantile(largest, level) * se, 0.0)


def range_of(curve: FloatArray, half: FloatArray) -> Range:
    """Largest difference of two values of a curve, by the half-widths of all differences [109].

    The largest of the true ones lies between the largest lower and the largest upper end.
    """
    lowest, highest = int(curve.argmin()), int(curve.argmax())
    difference = np.abs(curve[:, None] - curve)
    lower, upper = float((difference - half).max()), float((difference + half).max())
    return Range(lowest, highest, float(np.ptp(curve)), max(lower, 0.0), upper)


class Shape(NamedTuple):
    """Directions of the legs of a curve, 1 up and -1 down, and the places between them."""

    legs: list[int]
    turns: list[int]


def shape_of(curve: FloatArray, least: float | FloatArray) -> Shape:
    """Legs of a curve: each holds two places whose difference is larger than ``least`` of the two.

    These pairs of places follow each other, so that all legs are there where all differences are.
    """
    least = np.broadcast_to(least, (len(curve),) * 2)
    legs: list[int] = []
    turns: list[int] = []
    settled = 0  # the first place at which the last leg is known
    for place in range(1, len(curve)):
        earlier = np.arange(settled, place)
        beyond = curve[place] - curve[earlier]
        sure = beyond[np.abs(beyond) > least[earlier, place]]
        sure = sure[np.sign(sure) != (legs[-1] if legs else 0)]
        if len(sure):
            direction = int(np.sign(sure[0]))
            if legs:
                turns.append(settled + int(np.argmin(direction * curve[settled : place + 1])))
            legs.append(direction)
            settled = place
    return Shape(legs, turns)


def hidden_in(curve: FloatArray, half: FloatArray, shape: Shape) -> float:
    """Largest change against the direction of its leg that the intervals do not exclude."""
    ends = [0, *shape.turns, len(curve) - 1]
    largest = 0.0
    for leg, begin, end in zip(shape.legs, ends[:-1], ends[1:], strict=True):
        stretch = slice(begin, end + 1)
        against = leg * (curve[stretch, None] - curve[stretch]) + half[stretch, stretch]
        largest = max(largest, float(np.triu(against, 1).max(initial=0.0)))
    return largest


class Spread(NamedTuple):
    """Spread between rows and its interval."""

    spread: float
    lower: float
    upper: float


def spread_of_rows(
    curves: FloatArray,
    place_share: FloatArray,
    place: FloatArray,
    weight: FloatArray | None,
    group: IntArray | None,
    level: float,
    *,
    frequency: bool = False,
) -> Spread:
    """Standard deviation between curves (row, place), each less its own mean [108].

    A row counts twice: by its curve, and by its own ``place``, a number between those of places.
    The interval is one of Student's t for the mean of these squares, on the log scale. Weights of
    ``frequency`` count rows.
    """
    n = len(curves)
    share = np.full(n, 1 / n) if weight is None else weight / weight.sum()
    counts = weight if frequency and weight is not None else np.ones(n)
    n_effective = float(counts.sum()) if frequency else 1 / float(share @ share)
    deviations = curves - (curves @ place_share)[:, None]
    deviations -= share @ deviations
    square = (deviations * deviations) @ place_share
    scale = float(np.abs(curves).max(initial=0.0))
    mean = float(share @ square)
    if n_effective < 2:
        return Spread(np.nan, np.nan, np.nan)
    value = mean * n_effective / (n_effective - 1)
    # What rounding leaves of equal curves is no spread.
    if np.sqrt(value) <= 1e-10 * max(scale, np.finfo(float).tiny):
        return Spread(0.0, 0.0, 0.0)
    # What a row adds by its curve, and by its place: the spread between all rows there.
    square_there = np.interp(place, np.arange(curves.shape[1]), share @ (deviations * deviations))
    influence = share * (square - mean + square_there - share @ square_there)
    units, squares = float(counts.sum()), influence**2 / counts
    if group is not None:
        units, squares = group.max() + 1.0, np.bincount(group, influence) ** 2
    if units < 2:
        return Spread(float(np.sqrt(value)), 0.0, np.inf)
    variance = units / (units - 1) * float(squares.sum())
    freedom = min(n_effective, units) - 1
    half = float(student(level, np.asarray(freedom))) * np.sqrt(variance) / mean
    ends = np.sqrt(value * np.exp([-half, half]))
    return Spread(float(np.sqrt(value)), float(ends[0]), float(ends[1]))


def half_width_of_places(
    value: FloatArray,
    share: FloatArray,
    group: IntArray | None,
    level: float,
    counts: FloatArray | None = None,
) -> float:
    """Half-width of the standard deviation of a given curve over the rows, whose places vary [111].

    ``value`` is the curve at the row; rows beside the curve are NaN. ``counts`` say how often a row
    occurs, where weights are frequencies.
    """
    finite = np.isfinite(value)
    if finite.sum() < 2:
        return 0.0
    weight = share[finite] / share[finite].sum()
    away = value[finite] - weight @ value[finite]
    variance = float(weight @ away**2)
    if variance <= 1e-20 * float(np.abs(value[finite]).max() ** 2):
        return 0.0
    influence = weight * (away**2 - variance)
    repeats = np.ones(len(weight)) if counts is None else counts[finite]
    units, squares = float(repeats.sum()), influence**2 / repeats
    if group is not None:
        units = float(len(np.unique(group[finite])))
        squares = np.bincount(group[finite], influence) ** 2
    if units < 2:
        return np.inf
    square = units / (units - 1) * float(squares.sum())
    half = float(student(level, np.asarray(units - 1.0))) * np.sqrt(square)
    return float(half / (2 * np.sqrt(variance)))


def with_places(value: float, ends: FloatArray, half: float) -> FloatArray:
    """The ends of an interval with a second, independent half-width."""
    lower = value - np.hypot(value - ends[0], half)
    upper = value + np.hypot(ends[1] - value, half)
    return np.array([max(lower, 0.0), upper])


def verdict(lower: float, upper: float, threshold: float) -> str:
    """What an interval says of a quantity beside a threshold."""
    if lower > threshold:
        return "yes"
    if upper < threshold or (upper == threshold == 0):
        return "hardly"
    return "cannot tell"


def stretches(marked: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """First and last number of each run of marked places."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], marked, [False]]).astype(np.int8)))
    return [(int(a), int(b) - 1) for a, b in edges.reshape(-1, 2)]
