"""Calls for several columns: fewer, with the numbers of calls for one column each."""

import numpy as np
import pandas as pd
import pytest

import rhale_stats as rs
from rhale_stats.models import differences
from rhale_stats.models.differences import DifferenceQuotients, answered, evaluated
from rhale_stats.models.table import Versions, as_table
from rhale_stats.profiles import inputs
from tests.helpers import in_turn

N = 150
COST = ("n_model_calls", "n_model_rows", "model_calls", "model_rows")


class Counted:
    def __init__(self, function):
        self.function, self.rows = function, []

    def __call__(self, table):
        self.rows.append(len(table))
        return self.function(table)


def numbers_of(table):
    """An answer of each row by itself, with jumps, curves and an interaction."""
    if isinstance(table, np.ndarray):
        columns = list(table.T)
    else:
        columns = [
            pd.factorize(column, sort=True)[0] * 0 + (column.astype(str) == "v") * 2.0
            if not pd.api.types.is_numeric_dtype(column)
            else column.to_numpy(dtype=float, na_value=np.nan)
            for _, column in table.items()
        ]
    columns = [np.nan_to_num(np.asarray(one, dtype=float), nan=7.0) for one in columns]
    out = columns[0] ** 2 + columns[1] * columns[2] + (columns[2] > 0.3)
    for number, column in enumerate(columns[3:]):
        out = out + np.sin(column) * columns[0] * (number + 1)
    return out


def tables():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 6))
    floats = pd.DataFrame(X, columns=list("abcdef"))
    floats.attrs = {"units": {"a": "m"}}
    whole = floats.assign(**{name: (10 * floats[name]).round().astype(int) for name in "abdef"})
    mixed = whole.assign(
        d=floats["d"].astype(np.float32),
        e=pd.Categorical(rng.choice(["u", "v", "w"], N)),
        f=rng.choice(["u", "v"], N),
        g=rng.normal(size=N) > 0,
    )
    gaps = floats.mask(rng.uniform(size=floats.shape) < 0.1)
    nullable = whole.convert_dtypes()
    return {
        "array": X,
        "single": X.astype(np.float32),
        "floats": floats,
        "whole": whole,
        "mixed": mixed,
        "gaps": gaps,
        "nullable": nullable,
    }


def numbers_in(X):
    return [position for position in range(6) if as_table(X).is_numeric(position)]


TABLES = tables()
CALLS = {
    "local_effects": rs.local_effects,
    "slopes": lambda model, X, **more: rs.local_effects(
        model, X, method="finite_difference", **more
    ),
    "central": lambda model, X, **more: rs.local_effects(
        model, X, features=numbers_in(X), method="central_difference", **more
    ),
    "ale": rs.ale,
    "ale_local_effects": rs.ale_local_effects,
    "pdp": lambda model, X, **more: rs.pdp(model, X, n_grid=9, **more),
    "ice": lambda model, X, **more: rs.ice(model, X, n_grid=5, **more),
}


@pytest.mark.parametrize(("name", "table"), in_turn(CALLS, TABLES, 2))
@pytest.mark.filterwarnings("ignore")
def test_results_are_those_of_calls_for_one_column(name, table, monkeypatch):
    X, more = TABLES[table], {"missing": "drop"}
    few, many = Counted(numbers_of), Counted(numbers_of)
    found = CALLS[name](few, X, **more)
    monkeypatch.setattr(differences, "MAX_CALL_ROWS", 0)
    monkeypatch.setattr(inputs, "MAX_CALL_ROWS", 0)
    expected = CALLS[name](many, X, **more)
    for attrs in (found.attrs, expected.attrs):
        for cost in COST:
            attrs.pop(cost, None)
    assert found.identical(expected)
    if table != "mixed":
        assert len(few.rows) < len(many.rows)
    # Only the test of the types asks for more rows.
    assert 0 <= sum(few.rows) - sum(many.rows) <= 2 * N


@pytest.mark.filterwarnings("ignore::rhale_stats.JumpWarning")
def test_numbers_of_calls():
    X = TABLES["array"]
    for estimate, calls in ((rs.ale, 4), (rs.local_effects, 3 + 1 + 3 + 1), (rs.pdp, 3 + 3)):
        model = Counted(numbers_of)
        estimate(model, X)
        assert len(model.rows) <= calls
        assert max(model.rows) <= differences.MAX_CALL_ROWS


@pytest.mark.parametrize(
    ("together_rows", "n_calls"), [(differences.MAX_CALL_ROWS, (19, 6)), (0, (67, 23))]
)
def test_calls_of_the_table_of_the_page_of_models(together_rows, n_calls, monkeypatch):
    """docs/tables-and-models.md, "Large tables and slow models"."""
    X = np.random.default_rng(0).normal(size=(1000, 20))
    monkeypatch.setattr(differences, "MAX_CALL_ROWS", together_rows)
    for estimate, calls in zip((rs.local_effects, rs.ale), n_calls, strict=True):
        model = Counted(lambda X: X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + X[:, 3:8].sum(axis=1))
        estimate(model, X)
        assert len(model.rows) == calls


def test_a_table_of_many_rows_is_asked_for_one_column_at_a_time():
    X = np.random.default_rng(0).normal(size=(differences.MAX_CALL_ROWS, 3))
    model = Counted(lambda X: X[:, 0] * X[:, 1] + X[:, 2])
    rs.ale(model, X)
    assert model.rows[3:] == [2 * len(X)] * 3


def texts(table):
    """Whole numbers as levels, as a pipeline with `astype(str)` has them."""
    return table["k"].astype(str).map({"1": 0.0, "2": 1.0, "3": 5.0}).fillna(-9.0) * table["a"]


@pytest.mark.parametrize("estimate", [rs.local_effects, rs.ale, rs.pdp])
@pytest.mark.filterwarnings("ignore")
def test_types_are_kept_where_a_model_reads_them(estimate, monkeypatch):
    rng = np.random.default_rng(1)
    table = pd.DataFrame(rng.integers(0, 99, size=(N, 5)), columns=list("bcdef"))
    table = table.assign(a=rng.normal(size=N), k=rng.integers(1, 4, N))
    names = ["a", "k", *"bcdef"]
    found = estimate(texts, table, features=names)
    monkeypatch.setattr(differences, "MAX_CALL_ROWS", 0)
    monkeypatch.setattr(inputs, "MAX_CALL_ROWS", 0)
    expected = estimate(texts, table, features=names)
    for attrs in (found.attrs, expected.attrs):
        for cost in COST:
            attrs.pop(cost, None)
    assert found.identical(expected)


def test_the_type_of_columns_is_tested_once():
    table = TABLES["whole"]
    quotients = DifferenceQuotients(Counted(numbers_of), as_table(table))
    asked = [Versions(p, [np.linspace(0, 1, N)] * 2) for p in (0, 1, 3, 4, 5)]
    for _ in range(2):
        list(evaluated(quotients, asked))
    assert quotients.outputs.alike == {frozenset({0, 1, 3, 4, 5}): True}
    assert quotients.outputs.n_calls == 2 + 2
    # Three columns do not pay for it.
    few = DifferenceQuotients(Counted(numbers_of), as_table(table))
    list(evaluated(few, asked[:3]))
    assert few.outputs.n_calls == 3
    assert not few.outputs.alike


def test_answers_come_in_order_and_with_their_rows():
    X = np.arange(20.0).reshape(10, 2)
    quotients = DifferenceQuotients(lambda X: X[:, 0] + 100 * X[:, 1], as_table(X))
    mask = np.arange(10) % 2 == 0
    asked = [
        Versions(0, [np.zeros(5), np.ones(5)], mask),
        Versions(1, [np.zeros(10)]),
        Versions(1, [np.array([1.0, 2.0, 3.0])], np.array([7, 7, 0])),
    ]
    first, second, third = (outputs for outputs, _ in evaluated(quotients, asked))
    np.testing.assert_array_equal(
        [one[:, 0] for one in first], [100 * X[mask, 1], 1 + 100 * X[mask, 1]]
    )
    np.testing.assert_array_equal(second[0][:, 0], X[:, 0])
    np.testing.assert_array_equal(third[0][:, 0], [114.0, 214.0, 300.0])
    assert quotients.outputs.n_calls == 1


def test_a_model_that_takes_its_own_number_of_rows_only_is_asked_one_by_one():
    X = TABLES["array"]

    def model(X):
        if len(X) not in (N, N // 2, 2 * N):
            raise ValueError("other rows than those of the fit")
        return numbers_of(X)

    found = rs.ale(model, X)
    assert found.identical(rs.ale(numbers_of, X))


def test_an_error_names_the_feature_whose_values_raise():
    X = TABLES["floats"]

    def model(table):
        if (table["c"] == table["c"].max()).sum() > 2:
            raise RuntimeError("too large")
        return numbers_of(table)

    with pytest.raises(rs.ModelError, match=r"RuntimeError for feature 'c', called once with 300"):
        rs.ale(model, X, bins=rs.EqualWidthBins(3))


def test_steps_may_need_no_answers():
    def nothing():
        return 3
        yield

    assert answered(None, {"a": nothing()}) == {"a": 3}
