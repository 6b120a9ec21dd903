"""Tables of chosen rows: typical values, combinations, types; means of emmeans."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from numpy.testing import assert_allclose

import rhale_stats as rs

TABLE = pd.DataFrame(
    {
        "x": [1.0, 2.0, 6.0, np.nan],
        "n": [1, 2, 2, 6],
        "g": pd.Categorical(["b", "a", "b", "b"], ["c", "b", "a"]),
        "t": ["u", "v", "v", None],
        "k": [True, False, True, True],
    }
)


def test_typical_values_and_types():
    found = rs.datagrid(TABLE)
    assert found.dtypes.equals(TABLE.dtypes)
    assert found.to_dict("records") == [{"x": 3.0, "n": 3, "g": "b", "t": "v", "k": True}]


def test_all_combinations_with_the_last_fastest():
    found = rs.datagrid(TABLE, n=[1, 2.5], x=np.max, t=("u", "v"))
    assert found[["n", "t"]].values.tolist() == [[1.0, "u"], [1.0, "v"], [2.5, "u"], [2.5, "v"]]
    assert found["n"].dtype == float
    assert (found["x"] == 6).all()
    balanced = rs.datagrid(TABLE, grid="balanced")
    assert len(balanced) == 2 * 2 * 2
    assert balanced["g"].cat.categories.tolist() == ["c", "b", "a"]
    assert set(balanced["g"]) == {"a", "b"}


def test_arrays_and_other_tables():
    found = rs.datagrid(np.array([[1.0, 2.0], [3.0, 4.0]]), x1=[0, 1])
    assert found.values.tolist() == [[2, 0], [2, 1]]


def test_refusals():
    with pytest.raises(KeyError, match="got 'nothing'"):
        rs.datagrid(TABLE, nothing=1)
    with pytest.raises(ValueError, match="values must make 1 to 1,000,000 rows; got 4,000,000"):
        rs.datagrid(TABLE, x=range(2000), n=range(2000))
    with pytest.raises(ValueError, match="values must make 1 to 1,000,000 rows; got 0"):
        rs.datagrid(TABLE, x=[])
    with pytest.raises(ValueError, match="g must be among its categories; got 'z'"):
        rs.datagrid(TABLE, g="z")
    with pytest.raises(ValueError, match="X must have values of 'x'; all 4 are missing"):
        rs.datagrid(TABLE.assign(x=np.nan))
    with pytest.raises(ValueError, match="grid must be one of 'mean', 'balanced'"):
        rs.datagrid(TABLE, grid="all")


def test_means_of_a_balanced_grid_are_those_of_emmeans():
    """Averages of the predictions of cells with equal weight, by the design's own rows."""
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"a": rng.choice(list("uvw"), 90, p=[0.6, 0.3, 0.1])})
    data["b"] = np.where(rng.uniform(size=90) < 0.2, "s", "t")
    data["x"] = rng.exponential(size=90)
    data["y"] = rng.normal(size=90) + (data["a"] == "v") * (data["b"] == "s") + data["x"]
    fit = smf.ols("y ~ a * b + x", data).fit()
    grid = rs.datagrid(data[["a", "b", "x"]], grid="balanced")
    found = rs.averages(fit, grid, "a", contrasts="levels", uncertainty="parameters")
    for number, level in enumerate("uvw", 1):
        rows = pd.DataFrame({"a": level, "b": ["s", "t"], "x": data["x"].mean()})
        cells = fit.get_prediction(rows)
        weight = np.array([0.5, 0.5])
        assert_allclose(found["average"][number], weight @ cells.predicted_mean, rtol=1e-9)
