"""Columns that rows may be split by, and which rows are on which side."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

import rhale_stats as rs
from rhale_stats.regional.splits import (
    ABOVE,
    EQUAL,
    IN,
    UP_TO,
    Condition,
    Conditioning,
    checked_table,
    conditioning_columns,
    frame_of,
)

ROWS = np.array([4, 0, 1, 2])


def local_of(index=None, n=5):
    X = pd.DataFrame({"a": np.linspace(0, 1, n), "b": np.linspace(3, 4, n)}, index=index)
    return rs.local_effects(None, X, jacobian=np.ones((n, 2)))


def test_sides_of_numbers_and_of_levels():
    """A value on the threshold is on the left; a level that is named is inside."""
    numbers = Conditioning("z", "numeric", np.array([0.0, 1.0, 2.0, 3.0, 1.0]))
    up_to, above = (Condition("z", one, "", threshold=1.0) for one in (UP_TO, ABOVE))
    assert numbers.meets(up_to, ROWS).tolist() == [True, True, True, False]
    assert numbers.meets(above, ROWS).tolist() == [False, False, False, True]
    levels = Conditioning("z", "nominal", np.array([0, 1, 2, 0, 1]), ("u", "v", "w"))
    assert levels.meets(Condition("z", EQUAL, "", levels=("v",)), ROWS).tolist() == [
        True, False, True, False,
    ]  # fmt: skip
    assert levels.meets(Condition("z", IN, "", levels=("u", "w")), ROWS).tolist() == [
        False, True, False, True,
    ]  # fmt: skip


def test_units_of_features_and_of_times():
    local = local_of().assign_coords(feature_units=("feature", ["m", "s"]))
    assert [one.units for one in conditioning_columns(local, None, "a")] == ["s"]
    times = pd.DataFrame({"t": pd.date_range("2020-01-01", periods=5)})
    (column,) = conditioning_columns(local, times, "a")
    assert column.kind == "numeric"
    assert column.units.startswith("days")
    assert_array_equal(np.diff(column.values), 1)
    # Of one category all the same, and of two dates.
    flat = pd.DataFrame({"t": pd.Categorical(["u"] * 5), "n": [True] * 5})
    assert [one.levels for one in conditioning_columns(local, flat, "a")] == [("u",), (True,)]


def test_values_that_are_not_finite_are_refused_by_their_column():
    for bad in (np.inf, -np.inf):
        given = pd.DataFrame({"z": [1.0, 2.0, bad, 4.0, 5.0]})
        with pytest.raises(ValueError, match="conditioning.*'z'.*Drop these rows, or make them a"):
            conditioning_columns(local_of(), given, "a")


def test_rows_of_a_table_are_those_of_local_by_their_labels():
    """Rows that are only numbered have no labels, unless those of local are numbers too."""
    values = pd.DataFrame({"z": np.arange(5.0)})
    named = local_of(list("edcba"))
    assert checked_table(named, values) is values
    same = values.set_axis(list("edcba"))
    assert checked_table(named, same) is same
    for wrong in (list("abcde"), list("edcbz"), [1, 2, 3, 4, 5]):
        with pytest.raises(ValueError, match="conditioning must have the index of the rows of"):
            checked_table(named, values.set_axis(wrong))
    turned = local_of([4, 3, 2, 1, 0])
    with pytest.raises(ValueError, match="conditioning must have the index of the rows of"):
        checked_table(turned, values)
    own = values.set_axis([4, 3, 2, 1, 0])
    assert checked_table(turned, own) is own
    # Numbers that do not start at 0 are labels, and numbered rows are without.
    assert checked_table(local_of([7, 8, 9, 10, 11]), values) is values
    array = np.arange(10.0).reshape(5, 2)
    assert checked_table(named, array).columns.tolist() == ["x0", "x1"]
    with pytest.raises(ValueError, match="a row for each of the 5 rows of local; got 4"):
        checked_table(named, array[:4])


def test_arrays_get_names():
    found = frame_of(np.arange(6.0).reshape(2, 3), "conditioning")
    assert found.columns.tolist() == ["x0", "x1", "x2"]
    for shape in ((4,), (2, 2, 2)):
        with pytest.raises(ValueError, match="conditioning must be a DataFrame or a two-dim"):
            frame_of(np.zeros(shape), "conditioning")


def test_kinds_of_values_that_cannot_be_levels_are_named_in_order():
    given = pd.DataFrame({"z": [1, "u", 2.5, "v", 1]}, dtype=object)
    with pytest.raises(TypeError, match="'z'"):
        conditioning_columns(local_of(), given, "a")
    given = pd.DataFrame({"z": [(1, 2), (3, 4), (1, 2), (3, 4), (1, 2)]})
    with pytest.raises(TypeError, match="'z' holds tuple. Turn all of it into numbers or text"):
        conditioning_columns(local_of(), given, "a")
    given = pd.DataFrame({"z": [2, Fraction(1, 2), 1, Fraction(5, 2), 2]}, dtype=object)
    with pytest.raises(TypeError, match="'z' holds Fraction, int. Turn all of it into numbers"):
        conditioning_columns(local_of(), given, "a")
    # Objects that are numbers are levels.
    given = pd.DataFrame({"z": np.array([2.5, 1.5, 2.5, 1.5, 2.5], dtype=object)})
    (column,) = conditioning_columns(local_of(), given, "a")
    assert (column.kind, column.levels, column.values.tolist()) == (
        "nominal", (1.5, 2.5), [1, 0, 1, 0, 1],
    )  # fmt: skip


@pytest.mark.parametrize("at", [0, 1, 998, 999, 1000, 2999])
def test_a_third_value_anywhere_makes_a_column_numeric(at):
    n = 3000
    local = local_of(n=n)
    values = np.arange(n) % 2 / 2
    values[at] = 0.25
    (column,) = conditioning_columns(local, pd.DataFrame({"z": values}), "a")
    assert column.kind == "numeric"
    values[at] = 0.5
    (column,) = conditioning_columns(local, pd.DataFrame({"z": values}), "a")
    assert (column.kind, column.levels) == ("nominal", (0, 0.5))
    assert_array_equal(column.values, values == 0.5)
