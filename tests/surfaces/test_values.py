"""Values of a surface: bilinear in cells, on edges and at levels, with labels."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import rhale_stats as rs
from tests.helpers import in_cells

EDGES = np.array([0.0, 1.0, 3.0]), np.array([0.0, 2.0, 3.0])


@pytest.fixture(scope="module")
def surface():
    """Rows in three of four cells: none where both features are large."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(0, 3, (60, 2)), columns=["a", "b"])
    X = X[(X["a"] < 1) | (X["b"] < 2)].assign(k=lambda X: np.where(X["b"] > 1, "v", "u"))
    bins = tuple(map(rs.GivenBins, EDGES))
    return rs.ale2(lambda X: X["a"] ** 2 * X["b"], X, ("a", "b"), bins=bins)


def bilinear(surface, x, y):
    """By the definition, in the cell whose lower edges are the last not above the value."""
    values = surface["surface"].values
    j, k = (min(int(np.sum(edges[1:] <= one)), 1) for edges, one in zip(EDGES, (x, y), strict=True))
    s = (x - EDGES[0][j]) / (EDGES[0][j + 1] - EDGES[0][j])
    t = (y - EDGES[1][k]) / (EDGES[1][k + 1] - EDGES[1][k])
    corners = values[j : j + 2, k : k + 2]
    weights = np.outer([1 - s, s], [1 - t, t])
    return float(np.sum(np.where(weights > 0, weights * corners, 0)))


def test_values_by_definition(surface):
    points = [(0.3, 0.7), (0.3, 2.2), (2.5, 0.1), (0.0, 0.0), (3.0, 0.5), (0.5, 3.0)]
    found = rs.predict(surface, np.array(points))
    np.testing.assert_allclose(found, [bilinear(surface, *one) for one in points])
    # A value on an edge belongs to the cells on both sides; inside the empty cell it is unknown.
    on_edges = [(1.0, 2.5), (2.5, 2.0), (1.0, 2.0), (1.0, 0.5)]
    np.testing.assert_allclose(
        rs.predict(surface, np.array(on_edges)), [bilinear(surface, *one) for one in on_edges]
    )
    unknown = [(1.001, 2.5), (2.5, 2.001), (3.0, 3.0), (-0.001, 1.0), (1.0, -0.001), (3.001, 1.0)]
    assert rs.predict(surface, np.array([*unknown, (0.5, 3.001)])).isnull().all()


def test_labels_of_what_was_asked(surface):
    found = rs.predict(surface, ([0.5, 0.6], [1.0, 1.1]))
    assert found.name == "surface"
    assert found.dims == ("grid",)
    assert (found.attrs["feature_a"], found.attrs["feature_b"]) == ("a", "b")
    assert found.attrs["units"] == surface["surface"].attrs["units"]
    np.testing.assert_array_equal(found["a"], [0.5, 0.6])
    np.testing.assert_array_equal(found["b"], [1.0, 1.1])
    table = rs.predict(surface, (np.full((2, 3), 0.5), 1.0))
    assert table.shape == (2, 3)
    np.testing.assert_array_equal(table["b"], np.ones((2, 3)))
    # A dimension of that name is its own coordinate.
    own = rs.predict(surface, (xr.DataArray([0.5, 0.6], dims="a"), xr.DataArray([1.0], dims="b")))
    assert own.dims == ("a", "b")
    assert "a" not in own.coords
    mixed = rs.predict(surface, (xr.DataArray([0.5, 0.6], dims="u"), 1.0))
    np.testing.assert_array_equal(mixed["a"], [0.5, 0.6])
    two = rs.predict(surface, [[0.5, 1.0]])
    assert float(two[0]) == pytest.approx(bilinear(surface, 0.5, 1.0))
    frame = pd.DataFrame({"b": [1.0], "z": [9.0], "a": [0.5]})
    assert float(rs.predict(surface, frame)[0]) == float(two[0])


def test_what_is_not_two_values_is_refused(surface):
    with pytest.raises(KeyError, match="x must have the columns 'a' and 'b'; got 'b', 'z'"):
        rs.predict(surface, pd.DataFrame({"b": [1.0], "z": [9.0]}))
    for x, got in (
        (np.zeros((2, 3)), r"ndarray of shape \(2, 3\)"),
        ([1.0, 2.0], r"list of shape \(2,\)"),
        (np.zeros((1, 2, 2)), r"ndarray of shape \(1, 2, 2\)"),
        ((1.0,), "a tuple of 1"),
    ):
        with pytest.raises(ValueError, match=f"a DataFrame with both; got {got}"):
            rs.predict(surface, x)
    boot = rs.bootstrap(surface, n_resamples=4, rng=0)
    with pytest.raises(ValueError, match="what ale2 or std_error returned; got replicates"):
        rs.predict(surface.assign_coords(chain=("chain", [0])).assign(z=("chain", [1])), [[1, 1]])
    assert "chain" in boot.dims


def test_levels_belong_to_the_steps_on_both_sides():
    X = pd.DataFrame({"k": list("uvwx") * 6, "m": list("ppppqqqqqqqq") * 2})
    # No row of u or v has q: between w and x alone both levels of m are known.
    X = X[(X["m"] == "p") | (X["k"] > "v")]
    surface = rs.ale2(lambda X: 1.0 * (X["k"] == "w") * (X["m"] == "q"), X, ("k", "m"))
    levels = surface["edge_a"].values.tolist()
    assert levels == list("uvwx")
    found = rs.predict(surface, (np.array(levels), np.full(4, "q")))
    beside = in_cells(surface["n_obs"])[:, 0] > 0
    known = [beside[max(at - 1, 0)] or beside[min(at, 2)] for at in range(4)]
    np.testing.assert_array_equal(found.notnull(), known)
    np.testing.assert_allclose(found[known], surface["surface"].values[known, 1])
    with pytest.raises(ValueError, match="levels of feature 'k', 'u', 'v', 'w', 'x'; got 'a', 'z'"):
        rs.predict(surface, (np.array(["z", "u", "a"]), np.array(["p", "p", "q"])))


def test_a_level_at_the_end_belongs_to_one_step():
    """u and v have rows at p alone: far from there nothing is known of u, of w it is."""
    X = pd.DataFrame({"k": list("uv") * 3 + ["w"] * 8, "m": ["p"] * 6 + list("pqrs") * 2})
    surface = rs.ale2(lambda X: 1.0 * (X["k"] == "w") * (X["m"] == "s"), X, ("k", "m"))
    assert (in_cells(surface["n_obs"]) > 0).tolist() == [[True, False, False], [True] * 3]
    levels = np.array(list("uvw"))
    for m, known in (("p", [1, 1, 1]), ("q", [1, 1, 1]), ("r", [0, 1, 1]), ("s", [0, 1, 1])):
        found = rs.predict(surface, (levels, np.full(3, m)))
        assert found.notnull().values.astype(int).tolist() == known
