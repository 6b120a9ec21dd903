"""Columns that splits may use, which splits are tried, and how they read."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

import rhale_stats as rs
from rhale_stats.regional.splits import (
    Condition,
    as_json,
    candidates_of,
    conditioning_columns,
    of_json,
    quantile_cuts,
    readable,
    rule_text,
    sides_of,
    thresholds_at,
)

N = 60


@pytest.fixture
def local(rng):
    X = pd.DataFrame(rng.uniform(size=(N, 3)), columns=["a", "b", "c"])
    return rs.local_effects(None, X, jacobian=np.ones((N, 3)))


def only(local, values, name="col"):
    """One conditioning column."""
    (column,) = conditioning_columns(local, pd.DataFrame({name: values}), "a")
    return column


def cycle(*values):
    return [values[k % len(values)] for k in range(N)]


# --- kinds of columns ----------------------------------------------------------------------------


def test_the_other_features_by_default(local):
    columns = conditioning_columns(local, None, "b")
    assert [one.name for one in columns] == ["a", "c"]
    assert {one.kind for one in columns} == {"numeric"}
    for one in columns:
        assert_array_equal(one.values, local["x"].sel(feature=one.name))


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("values", "kind", "levels"),
    [
        (cycle(True, False), "nominal", (False, True)),
        (pd.array(cycle(True, False), dtype="boolean"), "nominal", (False, True)),
        (cycle(0, 1), "nominal", (0, 1)),
        (cycle(-1.5, 2.0), "nominal", (-1.5, 2)),
        (cycle("b", "a", "c"), "nominal", ("a", "b", "c")),
        (pd.array(cycle("b", "a"), dtype="string"), "nominal", ("a", "b")),
        (pd.Categorical(cycle("b", "a"), ["b", "a", "never"]), "nominal", ("b", "a")),
        (
            pd.Categorical(cycle("low", "high"), ["low", "mid", "high"], ordered=True),
            "ordinal",
            ("low", "high"),
        ),
        (pd.Categorical(cycle(3, 1, 2), ordered=True), "ordinal", (1, 2, 3)),
        (cycle(1, 2, 3), "numeric", ()),
        (np.float32(cycle(1, 2, 3)), "numeric", ()),
        (cycle(7), "numeric", ()),
    ],
)
def test_kinds(local, values, kind, levels):
    column = only(local, values)
    assert (column.kind, column.levels) == (kind, levels)
    if levels:
        assert [column.levels[code] for code in column.values] == list(values)
        # Levels are Python's own, which text can hold.
        assert of_json(as_json(levels)) == levels
        assert {type(a) for a in of_json(as_json(levels))} == {type(a) for a in levels}


def test_a_third_value_far_down_makes_a_column_numeric(rng):
    """The first rows are looked at first."""
    values = np.repeat([0.0, 1.0], 3000)
    X = pd.DataFrame({"a": rng.uniform(size=6000)})
    local = rs.local_effects(None, X, jacobian=np.ones((6000, 1)))
    assert only(local, values).kind == "nominal"
    values[-1] = 0.5
    assert only(local, values).kind == "numeric"


def test_arrays_and_mappings(local, rng):
    table = rng.uniform(size=(N, 2))
    assert [one.name for one in conditioning_columns(local, table, "a")] == ["x0", "x1"]
    given = {"u": table[:, 0], "v": cycle("p", "q")}
    assert [one.kind for one in conditioning_columns(local, given, "a")] == ["numeric", "nominal"]


def test_the_feature_itself_is_left_out(local, rng):
    given = pd.DataFrame(rng.uniform(size=(N, 2)), columns=["a", "z"])
    assert [one.name for one in conditioning_columns(local, given, "a")] == ["z"]
    assert [one.name for one in conditioning_columns(local, given, None)] == ["a", "z"]


def test_an_index_in_the_same_order(rng):
    index = [f"row {k}" for k in range(N)]
    X = pd.DataFrame({"a": rng.uniform(size=N)}, index=index)
    local = rs.local_effects(None, X, jacobian=np.ones((N, 1)))
    given = pd.DataFrame({"z": rng.uniform(size=N)}, index=index)
    assert len(conditioning_columns(local, given, "a")) == 1
    # A plain index says nothing against it.
    assert len(conditioning_columns(local, given.reset_index(drop=True), "a")) == 1
    with pytest.raises(ValueError, match=r"same order; its index differs\. Reindex it"):
        conditioning_columns(local, given.iloc[::-1], "a")


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ([None] * N, ValueError, "must have values in column 'col'; all are missing"),
        ([np.inf, *cycle(1.0, 2.0, 3.0)[1:]], ValueError, "conditioning.*'col'"),
        (cycle(1, "a"), TypeError, "'col' holds int, str. Turn all of it"),
        (cycle({"a": 1}), TypeError, "values of 'col' cannot be put in order"),
        (cycle((1, 2), (3, 4)), TypeError, "'col' holds tuple"),
    ],
)
def test_columns_refused(local, values, error, message):
    with pytest.raises(error, match=message):
        only(local, values)


def test_tables_refused(local, rng):
    with pytest.raises(ValueError, match=f"row for each of the {N} rows of local; got 5"):
        conditioning_columns(local, pd.DataFrame({"z": range(5)}), "a")
    with pytest.raises(ValueError, match="distinct column names; got 'z' more than once"):
        conditioning_columns(local, pd.DataFrame(np.ones((N, 2)), columns=["z", "z"]), "a")
    with pytest.raises(ValueError, match="a column besides 'a'; got a"):
        conditioning_columns(local, pd.DataFrame({"a": range(N)}), "a")
    with pytest.raises(ValueError, match=rf"shape \(rows, features\); got shape \({N},\)"):
        conditioning_columns(local, np.ones(N), "a")
    alone = local.sel(feature=["a"])
    with pytest.raises(ValueError, match="local holds no feature besides 'a'"):
        conditioning_columns(alone, None, "a")


# --- which splits are tried ----------------------------------------------------------------------


def test_quantile_cuts_are_values_and_leave_both_sides():
    assert_array_equal(quantile_cuts(np.arange(1.0, 10.0), 2), [3, 6])
    assert_array_equal(quantile_cuts(np.array([5.0, 1.0, 3.0]), 20), [1, 3])


def test_quantile_cuts_of_counted_rows_are_those_of_repeated_ones(rng):
    for n in (1, 5, 20):
        values, counts = rng.integers(0, 40, 70) / 4, rng.integers(1, 9, 70)
        expected = quantile_cuts(np.repeat(values, counts), n)
        assert_array_equal(quantile_cuts(values, n, counts.astype(float)), expected)


def test_quantile_cuts_with_ties():
    values = np.repeat([0.0, 1.0, 2.0], [80, 15, 5])
    # 19 quantiles of four fifths zeros: each value once, without the largest.
    assert_array_equal(quantile_cuts(values, 19), [0, 1])
    assert_array_equal(quantile_cuts(np.repeat([0.0, 1.0], [1, 99]), 19), [])
    assert_array_equal(quantile_cuts(np.ones(10), 3), [])


@pytest.mark.thorough
@pytest.mark.parametrize("n", [1, 2, 20, 63, 64, 65, 255, 256, 300])
def test_codes_of_thresholds(rng, n):
    """Comparing and searching give the same codes; a value on a threshold is on its left."""
    values = rng.integers(0, 1000, 20_000) / 8
    cuts = np.sort(rng.choice(np.unique(values), n, replace=False))
    one = thresholds_at(values, cuts)
    assert_array_equal(one.codes, np.searchsorted(cuts, values, side="left"))
    assert (one.n_codes, one.n_splits) == (n + 1, n)
    for split in (0, n - 1):
        assert_array_equal(one.goes_left(split), values <= cuts[split])


@pytest.mark.parametrize("thresholds", ["quantile", "equal_width", "exact"])
def test_thresholds_of_numbers(local, rng, thresholds):
    values = np.append(rng.normal(size=N - 2), [0.25, 0.25])
    column = only(local, values)
    one = candidates_of(column, thresholds, 7)
    n = len(np.unique(values)) - 1 if thresholds == "exact" else 7
    assert one.n_splits == len(one.thresholds) == n
    for split, cut in enumerate(one.thresholds):
        assert_array_equal(one.goes_left(split), values <= cut)
    if thresholds == "equal_width":
        expected = np.linspace(values.min(), values.max(), 9)[1:-1]
        np.testing.assert_allclose(one.thresholds, expected, rtol=1e-12)


def test_numbers_too_close_for_equal_widths_are_taken_one_by_one(local):
    values = 1e9 + 1e-7 * np.arange(N)
    one = candidates_of(only(local, values), "equal_width", 20)
    assert_array_equal(one.thresholds, np.unique(values)[:-1])


def test_a_constant_column_has_no_splits(local):
    for thresholds in ("quantile", "equal_width", "exact"):
        one = candidates_of(only(local, cycle(3.0)), thresholds, 20)
        assert (one.n_splits, one.thresholds.tolist(), one.codes.tolist()) == (0, [], [0] * N)
    assert candidates_of(only(local, cycle("a")), "quantile", 20).n_splits == 0


@pytest.mark.parametrize(("n", "n_splits"), [(2, 1), (3, 3), (4, 7), (12, 2047), (13, 13)])
def test_splits_of_levels(local, n, n_splits):
    levels = [f"level {k:02}" for k in range(n)]
    column = only(local, cycle(*levels))
    one = candidates_of(column, "quantile", 20)
    assert one.n_splits == n_splits
    assert_array_equal(one.goes_left(0), np.array(cycle(*levels)) == "level 00")


def test_splits_of_ordered_levels(local):
    values = pd.Categorical(cycle("low", "mid", "high"), ["low", "mid", "high"], ordered=True)
    column = only(local, values)
    one = candidates_of(column, "quantile", 20)
    assert one.n_splits == 2
    assert_array_equal(one.goes_left(1), np.array(cycle(True, True, False)))


def test_levels_that_left_the_node_are_not_tried(local):
    column = only(local, cycle("a", "b", "c", "d"))
    few = column.take(np.flatnonzero(column.values != 1))
    one = candidates_of(few, "quantile", 20)
    assert_array_equal(one.levels, [0, 2, 3])
    assert one.n_splits == 3


# --- in words ------------------------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (-0.3, 0.4, 0.0),
        (0.0, 1e-9, 0.0),
        (0.3381, 0.3417, 0.34),
        (14.99, 15.01, 15.0),
        (1234.5, 1234.6, 1234.5),
        (123456, 234567, 200000.0),
        (-234567, -123456, -200000.0),
        (1.0, np.nextafter(1.0, 2), 1.0),
        (0.1, 0.2, 0.15),
        (-2e-9, -1e-9, -2e-9),
        (1e-300, 3e-300, 2e-300),
        (1e300, 3e300, 2e300),
        (-1.7e308, 1.7e308, 0.0),
    ],
)
def test_readable(low, high, expected):
    found = readable(low, high)
    assert low <= found < high
    assert found == pytest.approx(expected, rel=1e-12, abs=0)


def test_readable_parts_the_same_rows(rng):
    for _ in range(300):
        low, high = np.sort(rng.normal(size=2) * 10.0 ** rng.integers(-8, 9))
        found = readable(low, high)
        assert low <= found < high
        assert float(f"{found:.15g}") == found  # what the text says is what is compared


def texts(column, one, split):
    return tuple(side.text for side in sides_of(column, one, split, np.arange(N)))


def test_sides_of_numbers(local):
    values = np.linspace(0, 1, N)  # with 20/59 = 0.339 and 21/59 = 0.356
    column = only(local, values, "temp")
    one = thresholds_at(values, np.array([0.34]))
    assert texts(column, one, 0) == ("temp ≤ 0.35", "temp > 0.35")
    for side, inside in zip(
        sides_of(column, one, 0, np.arange(N)), (values <= 0.34, values > 0.34), strict=True
    ):
        assert_array_equal(column.meets(side, np.arange(N)), inside)
        assert_array_equal(side.holds(pd.Series(values)), inside)


def test_sides_of_levels(local):
    values = np.array(cycle("a", "b", "c", "d"))
    column = only(local, values, "s")
    one = candidates_of(column, "quantile", 20)
    assert texts(column, one, 0) == ("s = a", "s ≠ a")
    assert texts(column, one, 4) == ("s in {a, b}", "s in {c, d}")
    operators = [[side.operator for side in sides_of(column, one, k, np.arange(N))] for k in (0, 4)]
    assert operators == [["==", "in"], ["in", "in"]]
    for split in range(one.n_splits):
        left = one.goes_left(split)
        for side, inside in zip(
            sides_of(column, one, split, np.arange(N)), (left, ~left), strict=True
        ):
            assert_array_equal(column.meets(side, np.arange(N)), inside)
            assert_array_equal(side.holds(pd.Series(values)), inside)


def test_sides_of_two_values_and_booleans(local):
    for values, words in (
        (cycle(0, 1), ("workingday = 0", "workingday = 1")),
        (cycle(True, False), ("workingday = False", "workingday = True")),
    ):
        column = only(local, values, "workingday")
        assert texts(column, candidates_of(column, "quantile", 20), 0) == words


def test_sides_of_ordered_levels(local):
    names = ["none", "low", "mid", "high", "top"]
    column = only(local, pd.Categorical(cycle(*names), names, ordered=True), "q")
    one = candidates_of(column, "quantile", 20)
    assert texts(column, one, 0) == ("q = none", "q ≥ low")
    assert texts(column, one, 2) == ("q ≤ mid", "q ≥ high")
    # Within q >= low, the middle is between two levels.
    rows = np.flatnonzero(column.values > 0)
    inner = column.take(rows)
    left, right = sides_of(inner, candidates_of(inner, "quantile", 20), 1, np.arange(len(rows)))
    assert (left.text, right.text) == ("low ≤ q ≤ mid", "q ≥ high")


def numeric(name, operator, cut):
    return Condition(name, operator, f"{name} {operator} {cut:g}", threshold=cut)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ([], "all rows"),
        ([numeric("x", "<=", 2)], "x ≤ 2"),
        ([numeric("x", ">", -1.5)], "x > -1.5"),
        ([numeric("x", ">", 1), numeric("x", "<=", 2)], "1 < x ≤ 2"),
        ([numeric("x", "<=", 3), numeric("x", "<=", 2)], "x ≤ 2"),
        ([numeric("x", ">", 1), numeric("y", "<=", 0), numeric("x", ">", 2)], "x > 2 and y ≤ 0"),
        (
            [Condition("s", "in", "s ≠ a", levels=("b", "c")), numeric("x", "<=", 2)],
            "s ≠ a and x ≤ 2",
        ),
        (
            [
                Condition("s", "in", "s ≠ a", levels=("b", "c")),
                Condition("s", "in", "s in {b, c}", levels=("b", "c")),
            ],
            "s in {b, c}",
        ),
    ],
)
def test_rules_in_words(path, expected):
    assert rule_text(path) == expected


def test_conditions_on_values_never_seen():
    """Neither side holds where a value is missing; a new level is on no side that names levels."""
    new = pd.Series(["a", "b", "new", None])
    one = Condition("s", "==", "s = a", levels=("a",))
    assert_array_equal(one.holds(new), [True, False, False, False])
    some = Condition("s", "in", "s in {a, b}", levels=("a", "b"))
    assert_array_equal(some.holds(new), [True, True, False, False])
    numbers = pd.Series([0.5, 2.0, np.nan])
    assert_array_equal(numeric("x", "<=", 1).holds(numbers), [True, False, False])
    assert_array_equal(numeric("x", ">", 1).holds(numbers), [False, True, False])
