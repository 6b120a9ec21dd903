"""Mean curves along a grid from moments of ICE curves, which blocks and chunks of rows add to.

math [41]. Curves and places are those of `profiles`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy import sparse

from rhale_stats.arrays.moments import FloatArray
from rhale_stats.arrays.profiles import (
    Places,
    Scatter,
    Totals,
    as_sample,
    centre_of,
    scatter,
)


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
