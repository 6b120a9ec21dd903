"""Profiles from moments: the rows one by one, whatever the blocks that they are read in."""

from __future__ import annotations

from functools import reduce
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from rhale_stats.arrays import profiles as kernel

GRID = np.array([0.0, 1.0, 3.0, 4.0])
CENTERINGS = pytest.mark.parametrize("centering", ["none", "start", "integral", "mean"])
KINDS = pytest.mark.parametrize("kind", ["none", "precision", "frequency"])
N = 40


class Rows:
    """ICE curves of rows, some of which have no value of the feature."""

    def __init__(self, rng, kind):
        self.x = np.where(np.arange(N) % 9 == 4, np.nan, rng.uniform(-0.5, 4.5, N))
        self.curves = 2 + rng.normal(size=(N, 4)) * (1 + np.nan_to_num(self.x))[:, None]
        self.frequency = kind == "frequency"
        self.weight = {
            "none": None,
            "precision": rng.uniform(0.5, 2.0, N),
            "frequency": rng.integers(1, 4, N).astype(float),
        }[kind]
        self.w = np.ones(N) if self.weight is None else self.weight
        self.at = kernel.places(GRID, self.x)
        self.totals = kernel.Totals.from_weights(self.weight, N, frequency=self.frequency)
        # Linear interpolation: how much of a row belongs to each point.
        self.hats = np.array([np.interp(self.x, GRID, e) for e in np.eye(4)]).T
        self.hats[np.isnan(self.x)] = 0
        self.share = self.w @ self.hats / (self.w @ self.hats).sum()

    def constant(self, centering):
        centre = {"start": np.eye(4)[0], "integral": np.array([1, 3, 3, 1]) / 8}
        return self.curves @ centre.get(centering, self.share)

    def moments(self, centering, sizes, power=1):
        """Read in blocks of these sizes."""
        weight = self.weight if power == 1 else self.w**power
        ends = np.cumsum([0, *sizes])
        parts = [
            kernel.moments(
                self.curves[one], self.constant(centering)[one], self.at.of_rows(one),
                None if weight is None else weight[one], levels=centering == "none",
            )
            for one in (slice(*both) for both in pairwise(ends))
        ]  # fmt: skip
        return reduce(kernel.merged, parts)


def moved(rows, centering):
    """Influences of rows, each less what the place of the row adds."""
    if centering == "none":
        return rows.curves
    own = rows.curves - rows.constant(centering)[:, None]
    if centering == "mean":
        known = rows.w @ ~np.isnan(rows.x) / rows.w.sum()
        own = own - (rows.hats @ (rows.w @ own / rows.w.sum()))[:, None] / known
    return own


@CENTERINGS
@KINDS
@pytest.mark.parametrize("sizes", [(N,), (7, 20, 13)])
def test_profiles_are_those_of_the_rows(rng, centering, kind, sizes):
    rows = Rows(rng, kind)
    of = rows.moments(centering, sizes)
    squares = rows.moments(centering, sizes, 2) if kind == "precision" else None
    found = kernel.profile(of, GRID, rows.totals, 100.0, centering, by_squares=squares)
    w, total = rows.w, rows.w.sum()
    apart = rows.curves - rows.constant(centering)[:, None]
    mean = w @ rows.curves / total
    level = 0.0 if centering == "none" else w @ rows.constant(centering) / total
    shift = 100 if centering == "none" else 0
    assert_allclose(found.curve, mean - level + shift, rtol=1e-12, atol=1e-12)
    assert_allclose(found.offset, 0 if centering == "none" else 100 + level, rtol=1e-12)
    weights = {"fweights": w.astype(int)} if rows.frequency else {"aweights": w}
    assert_allclose(found.spread, np.sqrt(np.diag(np.cov(apart.T, **weights))), atol=1e-12)
    psi = moved(rows, centering)
    if kind == "precision":
        away = w[:, None] * (psi - w @ psi / total)
        # The mean of the sum of squares that rows of variance 1 have.
        expected = w**2 @ (1 - 2 * w / total + w @ w / total**2)
        covariance = away.T @ away * (w @ w) / expected / total**2
        n_effective = total**2 / (w @ w)
    else:
        covariance, n_effective = np.cov(psi.T, **weights) / total, total
    assert_allclose(found.covariance, covariance, rtol=1e-9, atol=1e-12)
    assert_allclose(found.n_effective, n_effective)


@KINDS
def test_precision_weights_in_the_usual_covariance(rng, kind):
    """Without moments by squares: the covariance between rows over the effective rows."""
    rows = Rows(rng, kind)
    for centering in ("none", "start", "mean"):
        found = kernel.profile(rows.moments(centering, (15, 25)), GRID, rows.totals, 0.0, centering)
        weights = {"fweights": rows.w.astype(int)} if rows.frequency else {"aweights": rows.w}
        expected = np.cov(moved(rows, centering).T, **weights) / found.n_effective
        assert_allclose(found.covariance, expected, rtol=1e-9, atol=1e-12)


@KINDS
def test_merged_moments_are_those_of_all_rows(rng, kind):
    rows = Rows(rng, kind)
    whole, parts = (rows.moments("none", sizes) for sizes in ((N,), (9, 31)))
    for one, other in zip(whole, parts, strict=True):
        for a, b in zip(
            *((of if isinstance(of, tuple) else (of,)) for of in (one, other)), strict=True
        ):
            assert_allclose(b, a, rtol=1e-10, atol=1e-10)
    w = rows.w
    known = ~np.isnan(rows.x)
    assert_allclose(whole.placed, w @ known / w.sum())
    assert_allclose(whole.share, rows.share)
    assert_allclose(whole.constant, w @ rows.constant("none") / w.sum())
    assert_allclose(whole.pairs, (w[:, None] * rows.hats).T @ rows.hats)
    curve = np.array([1.0, -2.0, 0.5, 3.0])
    at_rows = np.where(known, rows.hats @ curve, 0) / whole.placed
    expected = w @ (at_rows - w @ at_rows / w.sum()) ** 2
    assert_allclose(whole.along(curve, whole.placed), expected)
    assert whole.along(np.zeros(4), 1.0) == 0
    # A constant curve at rows that all have a place has no sum of squares, nor less than that.
    full = rows.moments("start", (N,))
    assert full.whole is full.apart


def test_rounding_leaves_no_variance_below_zero():
    """All curves are the same, far from zero."""
    curves = np.full((12, 4), 0.1) + np.array([0.3, 0.7, 1.1, 1e6])
    at = kernel.places(GRID, np.linspace(0, 4, 12))
    of = kernel.moments(curves, np.full(12, 0.4), at, None, levels=False)
    rows = kernel.Totals.from_weights(None, 12, frequency=False)
    found = kernel.profile(of, GRID, rows, 0.0, "start")
    assert_array_equal(np.diagonal(found.covariance) >= 0, True)
    assert_allclose(found.covariance, 0, atol=1e-6)
