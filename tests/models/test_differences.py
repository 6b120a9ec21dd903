"""Calls of the model: how many rows each has, and that results do not depend on it."""

import numpy as np
import pandas as pd
import pytest

import rhale_stats as rs
from rhale_stats.effects import ale as effects_ale
from rhale_stats.models.differences import BATCH_BYTES, BATCH_ROWS, DifferenceQuotients
from rhale_stats.models.table import as_table

COST = ("n_model_calls", "n_model_rows", "model_calls", "model_rows")


@pytest.fixture
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "a": rng.normal(size=60),
            "b": rng.normal(size=60).astype(np.float32),
            "c": rng.choice(["u", "v", "w"], size=60),
        }
    )


class Asked:
    """A model of rows one by one, which notes how many rows its calls have."""

    def __init__(self):
        self.rows = []

    def __call__(self, table):
        self.rows.append(len(table))
        assert list(table.index) == list(range(len(table)))
        a, b = (table[name].to_numpy(dtype=float) for name in ("a", "b"))
        return a**2 * (1 + (table["c"] == "v").to_numpy()) + a * b


CALLS = {
    "local_effects": lambda model, X, **more: rs.local_effects(
        model, X, features=["a", "b"], **more
    ),
    "slopes": lambda model, X, **more: rs.local_effects(
        model, X, features=["a", "b"], method="finite_difference", **more
    ),
    "ale_local_effects": rs.ale_local_effects,
    "ale": rs.ale,
    "pdp": lambda model, X, **more: rs.pdp(model, X, n_grid=9, **more),
    "ice": lambda model, X, **more: rs.ice(model, X, n_grid=5, **more),
    "m_plot": rs.m_plot,
    "ale2": lambda model, X, **more: rs.ale2(model, X, ("a", "c"), **more),
    "h_pdp": lambda model, X, **more: rs.h_statistic(model, X, n_rows=25, rng=0, **more),
    "h_ale": lambda model, X, **more: rs.h_statistic(model, X, kind="ale", **more),
    "regional_ale": lambda model, X, **more: rs.regional_ale(
        model, X, "a", max_depth=1, rng=0, **more
    ),
    "regional_pdp": lambda model, X, **more: rs.regional_pdp(
        model, X, "a", n_grid=9, max_depth=1, rng=0, **more
    ),
    "shap": lambda model, X, **more: rs.shap_dependence(model, X, background=2, rng=0, **more),
}


@pytest.mark.parametrize("name", CALLS)
def test_results_are_those_of_any_batch(table, name):
    whole = CALLS[name](Asked(), table)
    model, batch_rows = Asked(), 7
    found = CALLS[name](model, table, batch_rows=batch_rows)
    assert max(model.rows) <= batch_rows
    for attrs in (whole.attrs, found.attrs):
        for cost in COST:
            attrs.pop(cost, None)
    assert found.identical(whole)


def test_default_is_bounded_in_rows_and_in_bytes():
    narrow = DifferenceQuotients(lambda X: X[:, 0], as_table(np.zeros((4, 3))))
    assert narrow.batch_rows == BATCH_ROWS
    wide = DifferenceQuotients(lambda X: X[:, 0], as_table(np.zeros((4, 2000))))
    assert wide.batch_rows == BATCH_BYTES // (8 * 2000) < BATCH_ROWS
    asked = DifferenceQuotients(lambda X: X[:, 0], as_table(np.zeros((4, 3))), batch_rows=2)
    assert asked.batch_rows == 2


def test_an_error_of_the_model_names_batch_and_rows(table):
    def model(rows):
        if (rows["a"] == table["a"][47]).any() and (abs(rows["b"]) == 5).any():
            raise RuntimeError("out of memory")
        return rows["b"]

    text = (
        r"for feature 'b', called in batch 5 of 6 with 20 rows: rows 40 to 49 of X, 2 times, with "
        r"'b' from .*: out of memory"
    )
    with pytest.raises(rs.ModelError, match=text):
        rs.ale(model, table, features="b", bins=rs.GivenBins([-5, 0.125, 5]), batch_rows=20)

    def of_rows(rows):
        if (rows["a"] == table["a"][47]).any():
            raise RuntimeError("out of memory")
        return rows["b"]

    with pytest.raises(rs.ModelError, match=r"batch 3 of 3: rows 40 to 59 of X: out of memory"):
        rs.m_plot(of_rows, table, batch_rows=20)


def test_rows_are_those_of_the_table_that_was_given(table):
    def model(rows):
        if len(rows) > 60 and (rows["a"] == table["a"][47]).any():
            raise RuntimeError("no")
        return rows["b"]

    weights = np.where(np.arange(60) < 10, 0.0, 1.0)
    with pytest.raises(rs.ModelError, match="rows 10 to 59 of X, 9 times"):
        rs.pdp(model, table, features="b", n_grid=9, weights=weights, progress=False)
    weights[20] = 0.0
    with pytest.raises(rs.ModelError, match="49 of the rows 10 to 59 of X, 9 times"):
        rs.pdp(model, table, features="b", n_grid=9, weights=weights, progress=False)


@pytest.mark.parametrize("estimate", [rs.local_effects, rs.ale])
def test_a_model_that_looks_at_its_batch_is_refused(estimate):
    X = np.random.default_rng(0).normal(size=(100, 2))
    with pytest.raises(rs.ModelError, match=r"depends on the other rows of the call"):
        estimate(lambda X: (X - X.mean(axis=0)) @ [1.0, 2.0] / X.std(), X)


def test_precision_is_that_of_all_answers_together():
    # A few numbers fit into any type: 1/3 is the only one here that needs double precision.
    X = np.repeat([[0.5], [1.0009765625], [1 / 3]], [10, 10, 1], axis=0)
    for batch_rows in (1, 5, 100):
        asked = DifferenceQuotients(lambda X: X[:, 0], as_table(X), batch_rows=batch_rows)
        asked.at_rows()
        asked.curves(0, np.array([1.0009765625, 1 / 3]))
        asked.evaluate(0, [X[:, 0], X[::-1, 0]])
        assert asked.precision == np.finfo(float).eps
        assert asked.outputs.n_rows == 21 + 42 + 42


def test_curves_of_several_outputs_in_batches():
    X = np.random.default_rng(0).normal(size=(11, 2))
    grid = np.array([-1.0, 0.0, 2.0])

    def model(X):
        return np.column_stack([X[:, 0] * X[:, 1], X[:, 0]]).astype(np.float32)

    expected = np.stack([np.outer(X[:, 1], grid), np.tile(grid, (11, 1))], axis=-1)
    for batch_rows in (None, 1, 4, 12, 25):
        asked = DifferenceQuotients(model, as_table(X), batch_rows=batch_rows)
        curves, error = asked.curves(0, grid)
        np.testing.assert_allclose(curves, expected, rtol=1e-6)
        assert curves.dtype == float
        assert error.shape == (2,)


def test_ale_of_a_feature_at_a_time_is_that_of_all(table, monkeypatch):
    table["d"] = np.arange(60.0)
    table.loc[3:9, "d"] = np.nan
    table["e"] = 1.0
    weights = np.linspace(0, 2, 60)

    def model(rows):
        return np.column_stack([Asked()(rows), rows["d"].fillna(0) ** 3])

    def estimate():
        return rs.ale(model, table, missing="bin", weights=weights)

    whole = estimate()
    monkeypatch.setattr(effects_ale, "LOCAL_BYTES", 1)
    assert estimate().identical(whole)
