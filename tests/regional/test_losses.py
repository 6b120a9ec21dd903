"""Losses of nodes by hand, and what is left to be searched in a node."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import rhale_stats as rs
from rhale_stats.local.rows import columns
from rhale_stats.regional.losses import RootBins, problem_of, root_bins

X = np.array([0.0, 0.1, 0.2, 0.8, 0.9, 1.0])
# Variances of 1 in both halves, and of 2 altogether.
G = np.array([0.0, 1.0, 2.0, -2.0, -1.0, 0.0])


def problem_with(x=X, g=G, *, rule=None, loss="index", min_obs=2, error=0.0, **options):
    local = rs.local_effects(None, x[:, None], jacobian=g[:, None], features=[0], **options)
    rule = rs.EqualWidthBins(2) if rule is None else rule
    return problem_of(columns(local), 0, "x0", rule, error=error, loss=loss, min_obs=min_obs)


@pytest.mark.parametrize(
    ("loss", "expected"), [("index", 3.0), ("output", np.std(3 * X, ddof=1)), ("variance", 1.0)]
)
def test_the_loss_of_a_node_by_hand(loss, expected):
    """On an axis of length 3: 1.5 * 1 + 1.5 * 1; the spread of x times a spread of 1; or 1."""
    problem = problem_with(3 * X, loss=loss)
    node = problem.node(np.arange(6), 0.0)
    assert_allclose(node.loss, expected, rtol=1e-12)
    assert (node.n_obs, node.weight) == (6, 6)
    assert_array_equal(node.starts, [True, True])
    assert_allclose(problem.width.sum(), 3, rtol=1e-12)


@pytest.mark.parametrize("loss", ["index", "output", "variance"])
def test_a_node_is_worth_a_search_if_its_bins_leave_enough(loss):
    """Half of the variance is left: as much as is asked for, not less."""
    problem = problem_with(3 * X, 5 * G, loss=loss)
    at = np.arange(6)
    assert problem.node(at, 0.0).worth
    assert problem.node(at, 0.499).worth
    assert not problem.node(at, 0.501).worth
    exact = problem_with(loss=loss)
    assert exact.node(at, 0.5).worth
    # Nothing is left of steps, and nothing of a constant.
    assert not problem_with(3 * X, np.repeat([1.0, 2.0], 3), loss=loss).node(at, 0.0).worth
    assert not problem_with(3 * X, np.ones(6), loss=loss).node(at, 0.0).worth


def test_a_spread_of_the_error_of_the_effects_is_nothing():
    """A standard deviation of the root of 2, beside four times the error of a difference."""
    at, spread = np.arange(6), np.sqrt(2)
    assert problem_with(error=0.99 * spread / 4).node(at, 0.0).worth
    assert not problem_with(error=1.01 * spread / 4).node(at, 0.0).worth
    scaled = problem_with(X, 1e-3 * G, error=0.99e-3 * spread / 4)
    assert scaled.node(at, 0.0).worth
    assert not problem_with(X, 1e-3 * G, error=1.01e-3 * spread / 4).node(at, 0.0).worth


def test_weights_and_cells_of_a_problem():
    weights = np.array([1, 2, 1, 3, 1, 2])
    for kind in ("precision", "frequency"):
        options = {"weights": weights, "weight_kind": kind}
        problem = problem_with(loss="output", **options)
        name = "fweights" if kind == "frequency" else "aweights"
        assert_allclose(problem.scale, np.sqrt(np.cov(X, **{name: weights})), rtol=1e-12)
        node = problem.node(np.array([0, 3, 4]), 0.0)
        assert node.n_obs == (5 if kind == "frequency" else 3)
        # Of precision weights only the ratios count.
        assert node.weight / problem.node(np.arange(6), 0.0).weight == pytest.approx(0.5)
    problem = problem_with()
    assert problem.scale == 1
    assert_array_equal(problem.cell, [0, 0, 0, 1, 1, 1])
    assert_allclose(problem.edges, [0, 0.5, 1])
    assert (problem.ddof, problem.given_cells) == (1, False)
    assert problem_with(rule=rs.OptimalBins(4, ddof=0)).ddof == 0
    assert problem_with(np.ones(6)) is None


@pytest.mark.parametrize(
    ("rule", "min_obs", "least"),
    [
        (rs.EqualWidthBins(2), 1, 2),
        (rs.EqualWidthBins(2), 3, 3),
        (rs.OptimalBins(4, min_obs=5), 3, 5),
        (rs.OptimalBins(4, min_obs=5), 7, 7),
        (rs.OptimalBins(4), 0, 2),
    ],
)
def test_least_rows_of_a_region(rule, min_obs, least):
    """Those of the caller, of the rule, and two, in spite of rounding."""
    found = problem_with(rule=rule, min_obs=min_obs).least_rows
    assert found < least
    assert found == pytest.approx(least, rel=1e-11)


def test_bins_of_all_nodes_have_rows_enough():
    """Ten, or a twentieth of the root's if these are fewer; and a twentieth of the node's."""
    rule = rs.OptimalBins(30, ddof=0)
    assert root_bins(rule, 1000) == RootBins(30, None, rule.discount, 0, 10)
    assert root_bins(rule, 200).least == 10
    assert root_bins(rule, 180).least == 9
    for other in (rs.OptimalBins(30, min_obs=4), rs.EqualWidthBins(3), RootBins(30)):
        assert root_bins(other, 180) is other
    n = 400
    x, g = np.linspace(0, 1, n), np.tile([1.0, 1.0, -1.0, -1.0], n // 4)
    problem = problem_with(x, g, rule=RootBins(200, None, least=10.0))
    starts = {size: problem.node(np.arange(size), 0.0).starts for size in (400, 100, 9)}
    cells = {size: np.bincount(problem.cell[:size], minlength=200) for size in starts}
    rows = {size: np.add.reduceat(cells[size], np.flatnonzero(starts[size])) for size in starts}
    assert rows[400].min() >= 20
    assert rows[100].min() >= 10
    assert rows[9].tolist() == [9]


def test_cells_of_a_node_are_its_bins():
    """Sums over fewer cells: the same statistics."""
    rng = np.random.default_rng(3)
    x, g = rng.uniform(size=(2, 60))
    problem = problem_with(x, g, rule=rs.OptimalBins(12))
    node = problem.node(np.arange(60), 0.0)
    begins = np.flatnonzero(node.starts)
    rows = node.test().rows
    bins = np.searchsorted(begins, problem.cell, side="right") - 1
    assert_array_equal(rows.cell, bins)
    mean = np.array([g[bins == k].mean() for k in range(len(begins))])
    assert_allclose(rows.centre, mean, rtol=1e-12)
    assert_allclose(rows.effect, g - mean[bins], atol=1e-12)
