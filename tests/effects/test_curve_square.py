"""The covariance over the rows of what a curve is a sum of, by the rows themselves."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import rhale_stats as rs
from rhale_stats.arrays import influence
from rhale_stats.arrays.accumulate import Pieces
from rhale_stats.effects.fit import curve_covariance
from rhale_stats.effects.sizes import (
    moments_of_rows,
    square_of_curve,
    square_of_levels,
)
from rhale_stats.schema.feature_result import one_feature
from tests.bins.test_adaptive import Lines
from tests.helpers import changed, local_of

EDGES = np.array([-1.0, 0.5, 1.0, 4.0])


@pytest.mark.parametrize("linear", [[], [1], [0, 2], [0, 1, 2]])
def test_moments_are_those_of_the_rows(linear, rng):
    """Of hats between edges, and of - (x - l)(r - x) / 2 in bins with a slope."""
    n_rows = [5, 30, 12]
    x = np.concatenate([low + (high - low) * rng.beta(1, 3, n) for low, high, n in
                        zip(EDGES[:-1], EDGES[1:], n_rows, strict=True)])  # fmt: skip
    k, linear = np.repeat(np.arange(3), n_rows), np.array(linear, dtype=int)
    moments = [
        np.array([np.mean((x[k == b] - x[k == b].mean()) ** power) for b in range(3)])
        for power in (2, 3, 4)
    ]
    x_mean = np.array([x[k == b].mean() for b in range(3)])
    share = np.array(n_rows) / len(x)
    slope = np.isin(np.arange(3), linear).astype(float)
    pieces = Pieces(EDGES, np.zeros(3), slope, x_mean, moments[0], share)
    hats = np.array([np.interp(x, EDGES, unit) for unit in np.eye(4)])
    bumps = [-(x - EDGES[b]) * (EDGES[b + 1] - x) / 2 * (k == b) for b in linear]
    expected = np.cov(np.vstack([hats, *bumps]), ddof=0)
    assert_allclose(moments_of_rows(pieces, moments[1], moments[2], linear), expected, atol=1e-14)


def _rows(kind, weighting="rows", centering="mean"):
    """One feature by groups of rows, with constant bins, lines, or levels."""
    rng = np.random.default_rng(1)
    if kind == "levels":
        X = np.column_stack([rng.choice(4, 90, p=[0.1, 0.2, 0.3, 0.4]), rng.normal(size=90)])
        local = rs.ale_local_effects(
            lambda X: X[:, 0] ** 1.5 * X[:, 1], X, features=0, categorical=0
        )
        effect = rs.ale_from_local(local, centering=centering)
        return local, effect, np.arange(90) // 3
    x = np.sort(rng.uniform(0, 3, 90))[:, None]
    x[[0, -1], 0] = 0, 3
    local = local_of(x, 2 * (x - 1) ** 2 + rng.normal(size=x.shape))
    rule = Lines((0.0, 1, 2, 3), (False, kind == "lines", kind == "lines"))
    effect = rs.rhale(local, bins=rule, weighting=weighting, centering=centering)
    return local, effect, rng.integers(20, size=90)


@pytest.mark.parametrize(("kind", "weighting"), [
    ("bins", "rows"), ("lines", "rows"), ("lines", "axis"), ("levels", "axis"),
])  # fmt: skip
def test_square_by_groups(kind, weighting):
    """The mean square over the rows, and its noise by the covariance of the curve at the rows."""
    local, effect, group = _rows(kind, weighting)
    row = one_feature(rs.std_error(effect, local, groups=group), 0)
    fit, x = row.fit, local["x"].values[:, 0]
    if kind == "levels":
        found, curve = square_of_levels(row), row["curve"].values[x.astype(int)]
    else:
        found, curve = square_of_curve(row, fit), rs.predict(effect, x, 0).values
    covariance = curve_covariance(row, fit, x)
    centred = np.eye(90) - 1 / 90
    covariance = centred @ covariance @ centred.T
    assert found.value == pytest.approx(np.var(curve))
    assert found.expected == pytest.approx(np.trace(covariance) / 90, rel=1e-6)
    assert found.squares == pytest.approx(np.sum(covariance**2) / 90**2, rel=1e-6)
    moved = (curve - curve.mean()) / 90
    assert found.moved == pytest.approx(moved @ covariance @ moved, rel=1e-6)
    assert found.denominator == pytest.approx(row["effect_df"].values.min())


def test_degrees_of_the_square_of_levels():
    """Satterthwaite's by steps, as if these were independent; of older results no covariance."""
    _, effect, _ = _rows("levels")
    row = one_feature(rs.std_error(effect), 0)
    share, loads = row["level_share"].values, np.tri(4, 3, -1)
    loads = loads - share @ loads
    parts = (share @ loads**2) * np.diagonal(row.effect_cov)
    degrees = parts.sum() ** 2 / np.sum(parts**2 / (row.n_effective - 1))
    found = square_of_levels(row)
    assert found.denominator == pytest.approx(degrees)
    old = square_of_levels(changed(row, drop=["curve_cov"]))
    assert old.value == pytest.approx(found.value)
    assert np.isnan(old[1:]).all()


@pytest.mark.parametrize("kind", ["bins", "lines"])
def test_degrees_of_the_square_of_a_curve(kind):
    """Satterthwaite's by bins: what each adds to the expectation by the values at edges."""
    _, effect, _ = _rows(kind)
    row = one_feature(rs.std_error(effect), 0)
    fit = row.fit
    found = square_of_curve(row, fit)
    moments = moments_of_rows(fit.pieces, np.zeros(3), np.zeros(3), np.zeros(0, dtype=int))
    at = influence.loadings(fit.pieces, fit.pieces.edges, "start").level
    parts = np.array([at[:, b] @ moments @ at[:, b] for b in range(3)]) * fit.noise.mean
    degrees = row["n_obs"].values - 1 - (row["slope"].values != 0)
    expected = parts.sum() ** 2 / np.sum(parts**2 / degrees)
    assert found.denominator == pytest.approx(expected)
