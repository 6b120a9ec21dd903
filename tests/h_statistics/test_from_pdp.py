"""Partial dependence at the rows: calls of the model, copies of rows, what is not finite."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import rhale_stats as rs
from rhale_stats.h_statistics.estimates import predictions, with_columns_of
from rhale_stats.models import differences
from rhale_stats.models.differences import DifferenceQuotients
from rhale_stats.models.table import as_table
from tests.helpers import rows_of_probe


@pytest.mark.parametrize(("batch", "together"), [(36, 3), (47, 3), (48, 4), (12, 1), (5, 1)])
def test_versions_are_asked_for_together(batch, together, monkeypatch):
    """So many versions of the 12 rows in a call as it has room for; one at least."""
    X = np.random.default_rng(0).normal(size=(12, 2))
    calls = []

    def model(X):
        calls.append(len(X))
        return X[:, 0] * X[:, 1]

    whole = rs.h_statistic(model, X, pairwise=False)
    calls.clear()
    monkeypatch.setattr(differences, "BATCH_ROWS", batch)
    found = rs.h_statistic(model, X, pairwise=False)
    assert sum(calls) == 12 + 2 * 144 + sum(rows_of_probe(12))
    assert max(calls) <= batch
    if batch >= 12:
        assert calls[4:] == 2 * [12 * min(together, 12 - at) for at in range(0, 12, together)]
    np.testing.assert_allclose(found["h2_overall"], whole["h2_overall"], rtol=1e-12)


@pytest.mark.parametrize("frame", [False, True])
def test_rows_with_values_of_other_rows(frame):
    table = np.arange(12.0).reshape(4, 3)
    given = pd.DataFrame(table, columns=list("abc"), index=list("wxyz")) if frame else table
    rows, source = np.tile(np.arange(4), 2), np.repeat([3, 1], 4)
    found = np.asarray(with_columns_of(as_table(given), rows, {0: source, 2: source}))
    expected = np.concatenate([table, table])
    expected[:4, [0, 2]], expected[4:, [0, 2]] = table[3, [0, 2]], table[1, [0, 2]]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("sign", [1, -1])
def test_what_rounding_makes_of_the_output(sign):
    X = np.array([[1.0, 2.0], [3.0, 8.0]])
    asked = DifferenceQuotients(lambda X: sign * X, as_table(X))
    found, least = predictions(asked)
    np.testing.assert_array_equal(found, sign * X)
    np.testing.assert_allclose(least, (8.0 * asked.precision * np.array([3.0, 8.0])) ** 2)


def test_answers_that_are_not_finite_are_counted():
    X = np.random.default_rng(0).normal(size=(10, 2))
    first, second = X[:2, 0]

    def model(X):
        out = X.copy()
        out[X[:, 0] == first, 1] = np.nan
        out[X[:, 0] == second, 1] = np.inf
        return out

    said = "The model must return finite numbers; got 2 that are not, for 10 rows"
    with pytest.raises(ValueError, match=said):
        rs.h_statistic(model, X)
