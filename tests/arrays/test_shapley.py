"""Shapley values of trees, by hand and by brute force; of permutations."""

from itertools import permutations
from math import factorial

import numpy as np
import pytest

from rhale_stats.arrays import shapley


def brute_force(f, rows, background):
    """Mean over all orders of the columns and over the background, (row, column)."""
    n_columns = rows.shape[1]
    found = np.zeros(rows.shape)
    for number, row in enumerate(rows):
        for other in background:
            for order in permutations(range(n_columns)):
                here = other.copy()
                before = f(here)
                for column in order:
                    here[column] = row[column]
                    after = f(here)
                    found[number, column] += after - before
                    before = after
    return found / factorial(n_columns) / len(background)


def random_tree(rng, n_columns, depth):
    """All splits at random, a column may come again; missing values go to a random side."""
    nodes = []

    def grow(level):
        at = len(nodes)
        nodes.append(None)
        if level == depth or (level > 1 and rng.random() < 0.2):
            nodes[at] = (-1, -1, -1, -2, 0.0, rng.normal())
            return at
        left, right = grow(level + 1), grow(level + 1)
        default = left if rng.random() < 0.5 else right
        nodes[at] = (left, right, default, rng.integers(n_columns), rng.normal() / 2, 0.0)
        return at

    grow(0)
    *children, threshold, value = zip(*nodes, strict=True)
    return shapley.Tree(*map(np.array, children), np.array(threshold), np.array(value)[:, None])


def predict(tree, row):
    node = 0
    while tree.left[node] >= 0:
        x = row[tree.feature[node]]
        left = tree.default[node] == tree.left[node] if np.isnan(x) else x <= tree.threshold[node]
        node = tree.left[node] if left else tree.right[node]
    return tree.value[node, 0]


def test_one_split_by_hand():
    """f is 3 above 0 and 1 below; half of the background is above."""
    tree = shapley.Tree(
        *np.array([[1, -1, -1], [2, -1, -1], [1, -1, -1], [0, -2, -2]]),
        np.zeros(3),
        np.array([[0.0], [1.0], [3.0]]),
    )
    found = np.zeros((2, 2, 1))
    rows = np.array([[1.0, 5.0], [-1.0, 5.0]])
    shapley.add_trees(found, [tree], rows, np.array([[2.0, 0.0], [-2.0, 0.0]]))
    np.testing.assert_allclose(found[..., 0], [[1.0, 0.0], [-1.0, 0.0]])


@pytest.mark.parametrize("table_bits", [1, 6])
@pytest.mark.parametrize("seed", range(6))
def test_trees_are_those_of_brute_force(seed, table_bits, monkeypatch):
    """Of leaves with few conditions by a table, of others one by one; in several blocks."""
    monkeypatch.setattr(shapley, "TABLE_BITS", table_bits)
    monkeypatch.setattr(shapley, "CELLS", 200)
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, n_columns=4, depth=6)
    rows, background = rng.normal(size=(5, 4)), rng.normal(size=(7, 4))
    rows[1, 2] = background[3, 0] = np.nan
    for table in (rows, background):
        table.flags.writeable = False
    found = np.zeros((5, 4, 1))
    shapley.add_trees(found, [tree], rows, background)
    expected = brute_force(lambda row: predict(tree, row), rows, background)
    np.testing.assert_allclose(found[..., 0], expected, atol=1e-12)


def test_a_leaf_of_two_conditions_by_hand():
    """The row meets the first, the other the second: the product jumps up with one, not with both.

    First condition first: 0 to 1 to 0, so +1 and -1; second first: 0 to 0 to 0.
    """
    own, other = np.array([0b01]), np.array([0b10])
    np.testing.assert_allclose(
        shapley.leaf_values(own, other, np.array([3]), 2), [[0.5, -0.5]], rtol=1e-12
    )
    both = np.array([0b11])
    np.testing.assert_allclose(shapley.leaf_values(both, both, np.array([1]), 2), [[0.0, 0.0]])


def of_walks(f, rows, others, rng):
    walks = shapley.Walks.drawn(len(rows), len(others), rows.shape[1], rng)
    inner = f(walks.steps(rows, others))[..., None]
    return walks.values(inner, f(others)[:, None], f(rows)[:, None])


def test_every_walk_adds_up_to_the_whole_change():
    rng = np.random.default_rng(0)
    rows, others = rng.normal(size=(4, 5)), rng.normal(size=(6, 5))

    def f(x):
        return x[..., 0] * x[..., 1] * x[..., 2] + x[..., 3] ** 2

    found = of_walks(f, rows, others, rng)[..., 0]
    np.testing.assert_allclose(found.sum(axis=-1), f(rows)[:, None] - f(others), atol=1e-12)
    np.testing.assert_allclose(found[..., 4], 0)
    np.testing.assert_allclose(found[..., 3], rows[:, None, 3] ** 2 - others[:, 3] ** 2)


def test_two_columns_need_no_sample():
    """Forwards and backwards are all orders of two."""
    rng = np.random.default_rng(0)
    rows, others = rng.normal(size=(4, 2)), rng.normal(size=(6, 2))

    def f(x):
        return x[..., 0] * x[..., 1]

    found, _ = shapley.mean_of_pairs(of_walks(f, rows, others, rng))
    np.testing.assert_allclose(found[..., 0], brute_force(f, rows, others), atol=1e-12)


@pytest.mark.thorough
def test_the_monte_carlo_error_is_that_of_repetitions():
    rng = np.random.default_rng(0)
    row, background = rng.normal(size=(1, 4)), rng.normal(size=(3, 4))

    def f(x):
        return x[..., 0] * x[..., 1] * np.exp(x[..., 2]) + x[..., 3]

    expected = brute_force(f, row, background)[0]
    many = np.repeat(row, 2000, axis=0)
    found, error = shapley.mean_of_pairs(of_walks(f, many, np.tile(background, (30, 1)), rng))
    away = found[..., 0] - expected
    # Monte-Carlo errors of 2000 repetitions.
    assert np.all(np.abs(away.mean(axis=0)) <= 4 * away.std(axis=0) / np.sqrt(2000) + 1e-12)
    # Every background row comes equally often, so that the error is stated too large by what they
    # differ by; never too small.
    assert np.all(away.std(axis=0) <= 1.05 * np.sqrt(np.mean(error[..., 0] ** 2, axis=0)) + 1e-12)
    # Within a background row the error is exact.
    found, error = shapley.mean_of_pairs(of_walks(f, many, np.tile(background[:1], (30, 1)), rng))
    spread = found[..., 0].std(axis=0)
    np.testing.assert_allclose(
        np.sqrt(np.mean(error[..., 0] ** 2, axis=0))[:3], spread[:3], rtol=0.1
    )
