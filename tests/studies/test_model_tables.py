"""The study of models and tables sees wrong local effects, and finds none."""

from __future__ import annotations

import warnings
from importlib.util import find_spec

import numpy as np
import pytest

import rhale_stats as rs
from studies.model_tables import (
    DIFFERS,
    LEFT_OUT,
    RAISED,
    REFUSED,
    SAME,
    TABLES,
    cell,
    deviation,
)
from studies.model_tables_kinds import KINDS, LEVELS, Data, Kind


@pytest.fixture
def data(rng):
    return Data.drawn(rng)


def function(X):
    return np.sin(X["width"]) * X["depth"]


def steps(X):
    return np.floor(3 * X["width"]) * X["depth"]


@pytest.mark.parametrize(
    ("model", "method"), [(function, "central_difference"), (steps, "finite_difference")]
)
def test_a_wrong_effect_is_seen(data, model, method):
    X = data.numbers
    local = rs.local_effects(model, X, features="width", method=method)
    assert deviation(local, model, X, "width") < 1e-8
    found = deviation(local, lambda X: 1.01 * model(X), X, "width")
    np.testing.assert_allclose(found, 0.01 / 1.01, rtol=1e-6)


def test_outcomes(data):
    kind, X = Kind(lambda _: None), data.numbers
    pandas, array = TABLES["pandas"], TABLES["NumPy"]

    def raises(X):
        raise ZeroDivisionError

    def by_name(X):
        return X["width"] + X["age"]

    assert cell(kind, by_name, by_name, X, pandas)[::2] == (SAME, 1)
    assert cell(kind, by_name, lambda X: 2 * by_name(X), X, pandas)[0] == DIFFERS
    assert cell(kind, raises, raises, X, pandas)[0] == RAISED
    assert cell(kind, object(), by_name, X, pandas)[0] == REFUSED
    assert cell(kind._replace(levels="str"), by_name, by_name, X, array)[0] == LEFT_OUT


def outcome(kind, data, table):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of libraries on their fits, and of jumps
        model, answer = kind.fit(data)
        X = data.mixed.astype({LEVELS: kind.levels}) if kind.levels else data.numbers
        return cell(kind, model, answer, X, TABLES[table])


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_every_model_has_its_own_numbers(name, data):
    kind = KINDS[name]
    if find_spec(kind.library) is None:
        pytest.skip(f"{kind.library} is not installed")
    assert outcome(kind, data, "pandas")[0] == SAME
    # An array has no text, and no columns of a formula: these are refused.
    assert outcome(kind, data, "NumPy")[0] != DIFFERS


@pytest.mark.parametrize("name", ["Adapter with gradient", "PoissonRegressor, scaled"])
def test_gradients_are_taken(name, data):
    assert outcome(KINDS[name], data, "pandas")[2] == 0
