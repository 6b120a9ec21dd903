"""What changes of local effects do to estimates, by numerical derivatives."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import rhale_stats as rs
from rhale_stats.arrays import categories
from rhale_stats.arrays.accumulate import Pieces
from rhale_stats.effects.cluster_robust import Clusters
from rhale_stats.effects.delta_method import (
    ALONE,
    PAIRS,
    Gradients,
    Weights,
    added,
    estimate_changes,
    group_influences,
    products,
)
from rhale_stats.schema.feature_result import one_feature
from tests.bins.test_adaptive import Lines
from tests.helpers import changed, local_of

N, STEP = 40, 1e-6
RNG = np.random.default_rng(6)
EDGES = np.array([0.0, 1, 2, 4])
X = np.sort(RNG.uniform(0, 4, N))
K = np.minimum(X.astype(int), 2)
G = RNG.normal(size=N)
W = RNG.integers(1, 5, N).astype(float)
LINEAR = np.array([False, True, False])


def _derivatives(of, g):
    """Of estimates by the local effect of every row, (estimate, row)."""
    return np.array([(of(g + STEP * e) - of(g - STEP * e)) / (2 * STEP) for e in np.eye(len(g))]).T


@pytest.mark.parametrize("weighted", [False, True])
def test_weights_of_bins_along_an_axis(weighted):
    w = W if weighted else np.ones(N)
    n = np.array([w[b == K].sum() ** 2 / np.sum(w[b == K] ** 2) for b in range(3)])

    def estimates(g):
        out = np.zeros((3, 3))
        for b in range(3):
            x, own, v = X[b == K], g[b == K], w[b == K]
            d = x - np.average(x, weights=v)
            mean = np.average(own, weights=v)
            slope = np.sum(v * d * own) / np.sum(v * d**2) if LINEAR[b] else 0
            square = np.average((own - mean - slope * d) ** 2, weights=v)
            out[:, b] = mean, slope, square / (1 - (1 + LINEAR[b]) / n[b])
        return np.append(out.ravel(), np.average(g, weights=w))

    mean, slope, *_ = estimates(G)[:9].reshape(3, 3)
    x_mean = np.array([np.average(X[b == K], weights=w[b == K]) for b in range(3)])
    x_variance = np.array([
        np.average((X[b == K] - x_mean[b]) ** 2, weights=w[b == K]) for b in range(3)
    ])  # fmt: skip
    pieces = Pieces(EDGES, mean, slope, x_mean, x_variance, np.ones(3) / 3)
    found = Weights.of_rows(pieces, X, G, W if weighted else None, n)
    expected = _derivatives(estimates, G)
    own = [part.toarray() for part in (found.mean, found.slope, found.variance)]
    assert_allclose(np.vstack([*own, found.average]), expected, atol=1e-8)
    # Gradients of some rows add up to those of all.
    change = RNG.normal(size=(N, 2))
    parts = [found.applied(rows, change[rows]) for rows in (slice(0, 7), slice(7, N))]
    whole = (expected @ change).T
    assert_allclose(np.hstack([np.reshape(a + b, (2, -1)) for a, b in zip(*parts, strict=True)]),
                    whole, atol=1e-7)  # fmt: skip


@pytest.mark.parametrize("weighted", [False, True])
def test_weights_of_steps_between_levels(weighted):
    code, w = RNG.integers(0, 3, N), W if weighted else np.ones(N)
    steps = categories.steps(code, G, G[::-1].copy(), 3)
    weight, k = w[steps.row], steps.step
    n = np.bincount(k, weight) ** 2 / np.bincount(k, weight**2)

    def estimates(g):
        mean = np.bincount(k, weight * g) / np.bincount(k, weight)
        square = np.bincount(k, weight * (g - mean[k]) ** 2) / np.bincount(k, weight)
        return np.concatenate([mean, square / (1 - 1 / n), [np.average(g, weights=weight)]])

    mean = estimates(steps.difference)[:2]
    found = Weights.of_steps(steps, mean, W if weighted else None, n)
    own = [part.toarray() for part in (found.mean, found.variance)]
    expected = _derivatives(estimates, steps.difference)
    assert_allclose(np.vstack([*own, found.average]), expected, atol=1e-8)
    assert not found.slope.toarray().any()


def test_a_bin_of_one_row_has_no_variance_to_change():
    pieces = Pieces(np.array([0.0, 1, 2]), np.zeros(2), np.zeros(2), np.array([0.5, 1.5]),
                    np.ones(2), np.ones(2) / 2)  # fmt: skip
    found = Weights.of_rows(
        pieces, np.array([0.5, 1.2, 1.8]), np.ones(3), None, np.array([1.0, 2.0])
    )
    assert_allclose(found.variance.toarray(), [[0, 0, 0], [0, 2, 2]])


def _estimated(seed):
    rng = np.random.default_rng(seed)
    return Gradients(*(rng.normal(size=(4, n)) for n in (3, 3, 3, 9, 9, 1, 2)))


def test_products_of_estimates_over_directions():
    one, other = _estimated(0), _estimated(1)
    found = products(one, other)
    assert set(found) == {*PAIRS, *ALONE}
    assert_allclose(found["effect_slope"], one.effect.T @ other.slope)
    assert_allclose(found["curve_slope"], one.curve.T @ other.slope)
    for name in ("effect", "slope", "curve"):
        assert_allclose(found[name], getattr(one, name).T @ getattr(other, name))
    for name in ALONE:
        assert_allclose(found[name], np.diagonal(getattr(one, name).T @ getattr(other, name)))


def test_rows_and_parameters_together():
    """The square of the sum of both: of rows, of parameters, and twice what they share."""
    model, shared = _estimated(0), _estimated(1)
    squares = np.cov(np.random.default_rng(2).normal(size=(4, 9)))
    rows = {name: np.full_like(values, 0.5) for name, values in products(model, model).items()}
    nothing = Gradients(*(0 * changes for changes in shared))
    alone = added(rows, model, nothing, squares)
    both = added(rows, model, shared, squares)
    for name, (one, other) in PAIRS.items():
        a, b, c, d = (getattr(of, key) for of in (model, shared) for key in (one, other))
        expected = 0.5 + a.T @ squares @ b
        assert_allclose(alone[name], expected)
        assert_allclose(both[name], expected + a.T @ d + c.T @ b)
    for name in ALONE:
        a, c = getattr(model, name), getattr(shared, name)
        expected = 0.5 + np.diagonal(a.T @ squares @ a)
        assert_allclose(alone[name], expected)
        assert_allclose(both[name], expected + 2 * np.diagonal(a.T @ c))


@pytest.mark.parametrize("kind", ["bins", "lines", "levels"])
def test_estimates_follow_from_means_and_slopes(kind):
    """Influences of groups: the curve from its start is the sum of effects times widths."""
    rng = np.random.default_rng(2)
    if kind == "levels":
        X = np.column_stack([rng.integers(0, 3, 60), rng.normal(size=60)])
        local = rs.ale_local_effects(lambda X: X[:, 0] * X[:, 1], X, features=0, categorical=0)
        effect = rs.ale_from_local(local)
    else:
        x = rng.uniform(0, 2, (60, 1))
        x[:2, 0] = 0, 2
        local = local_of(x, 4 * x + rng.normal(size=x.shape))
        linear = kind == "lines"
        effect = rs.rhale(local, bins=Lines((0.0, 1, 2), (False, linear)), weighting="rows")
    effect = rs.std_error(effect)
    row = one_feature(effect, 0)
    fit = row.fit
    for groups in (np.arange(60) // 3, np.arange(60)):
        clusters = Clusters.of_effect(local, effect, groups)
        moved = group_influences(row, fit, clusters)
        found = estimate_changes(moved, row, fit)
        steps = np.cumsum(found.effect, axis=1)
        assert_allclose(found.start, np.pad(steps, ((0, 0), (1, 0))), atol=1e-14)
        spread = row["heterogeneity"].values
        assert_allclose(found.heterogeneity, moved.bins.variance.toarray() / (2 * spread))
        assert_allclose(found.average_effect[:, 0], moved.cells.average)
        away = np.diff(found.curve, axis=1)
        assert_allclose(away, found.effect, atol=1e-14)
        if kind == "lines":
            assert found.slope[:, 1].any()
            assert not found.slope[:, 0].any()
        own = moved.contracted(np.ones((len(moved.cells.average), 1)))
        assert_allclose(
            estimate_changes(own, row, fit).effect[0], found.effect.sum(axis=0), atol=1e-13
        )
        assert_allclose(own.cells.places, moved.cells.places.sum(), atol=1e-14)
        assert_allclose(own.spread, moved.spread.sum(axis=0, keepdims=True), atol=1e-13)
        none = changed(row, heterogeneity=0 * row["heterogeneity"])
        assert not estimate_changes(moved, none, fit).heterogeneity.any()
