"""Axes of surfaces: places of rows, orders of levels, what is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import rhale_stats as rs
from rhale_stats.models.options import ModelOptions
from rhale_stats.models.sample import Sample
from rhale_stats.surfaces import ale2 as labelled

X = pd.DataFrame({"a": [0.0, 0.5, 1.0, 2.5, 3.0], "k": list("vuvwu"), "n": [2, 1, 2, 3, 3]})


def sample(X=X, **options):
    return Sample.from_table(X, ModelOptions(**options))


def test_places_in_bins():
    found = labelled.axis_of(sample(), 0, rs.GivenBins([0.0, 1.0, 3.0]), None)
    assert (found.name, found.levels) == ("a", None)
    np.testing.assert_array_equal(found.edges, [0, 1, 3])
    np.testing.assert_array_equal(found.place, [0, 0, 1, 1, 1])
    np.testing.assert_allclose(found.fraction, [0, 0.5, 0, 0.75, 1])
    np.testing.assert_array_equal(found.versions, [[0, 0, 1, 1, 1], [1, 1, 3, 3, 3]])
    assert (found.axis.n_edges, found.axis.levels) == (3, False)


@pytest.mark.parametrize(("order", "levels"), [("as_is", "uvw"), (["w", "u", "v"], "wuv")])
def test_places_at_levels(order, levels):
    found = labelled.axis_of(sample(), 1, rs.QuantileBins(3), order)
    assert (found.fraction, found.edges) == (None, None)
    assert found.levels == list(levels)
    place = [levels.index(one) for one in X["k"]]
    np.testing.assert_array_equal(found.place, place)
    for step, version in zip((-1, 0, 1), found.versions, strict=True):
        # At the ends of the order the level of the row itself.
        expected = [levels[min(max(at + step, 0), 2)] for at in place]
        assert list(version) == expected
    assert (found.axis.n_edges, found.axis.levels) == (3, True)


def test_orders_of_one_column_or_of_several():
    table = sample().table
    assert labelled.order_of("as_is", table, 0) is None
    assert labelled.order_of("as_is", table, 1) == "as_is"
    assert labelled.order_of(("u", "v", "w"), table, 1) == ["u", "v", "w"]
    assert labelled.order_of(("u", "v", "w"), table, 0) is None
    given = {"k": ("w", "u", "v"), "n": "as_is"}
    assert labelled.order_of(given, table, 1) == ["w", "u", "v"]
    assert labelled.order_of(given, table, 2) == "as_is"
    assert labelled.order_of(given, table, 0) is None
    assert labelled.order_of({"n": [3, 1, 2]}, table, 1) == "as_is"
    assert labelled.order_of({"n": [3, 1, 2]}, table, 2) == [3, 1, 2]
    with pytest.raises(KeyError, match="order must be one of .*; got 'z'"):
        labelled.order_of({"k": "as_is", "z": "as_is"}, table, 1)
    with pytest.raises(ValueError, match="order must be one of 'as_is'; got 'sorted'"):
        labelled.order_of({"k": "sorted"}, table, 1)
    labelled.check_order("as_is", table, [0, 1])
    labelled.check_order(["u"], table, [0, 1])
    labelled.check_order({"k": ["u"]}, table, [0, 2])
    both = sample(X.assign(m=X["k"])).table
    for positions, n in (([0, 2], 0), ([1, 3], 2)):
        with pytest.raises(ValueError, match=f"got {n} categorical features. Name the feature"):
            labelled.check_order(["u"], both, positions)


def test_missing_values_are_gaps_or_a_level():
    gaps = X.assign(a=X["a"].where(X["a"] != 0.5), k=X["k"].where(X["k"] != "w"))
    for position, levels, expected in ((0, False, [1]), (1, True, [3])):
        found = labelled.missing_in(sample(gaps, missing="drop"), position, levels=levels)
        assert np.flatnonzero(found).tolist() == expected
    assert not labelled.missing_in(sample(gaps, missing="bin"), 1, levels=True).any()
    assert not labelled.missing_in(sample(X, missing="bin"), 0, levels=False).any()
    with pytest.raises(
        ValueError, match=r"got 1 missing values of the numeric feature 'a' \(first"
    ):
        labelled.missing_in(sample(gaps, missing="bin"), 0, levels=False)


def test_pairs_and_rules():
    names = ["a", "k", "n"]
    assert labelled.pair_of(("n", 0), names) == (2, 0)
    for wrong in ("ab", ("a",), ("a", "k", "n"), 3):
        with pytest.raises(TypeError, match="features must be a pair of columns"):
            labelled.pair_of(wrong, names)
    with pytest.raises(ValueError, match="two different columns"):
        labelled.pair_of(("k", 1), names)
    one, two = rs.QuantileBins(3), rs.EqualWidthBins(2)
    assert labelled.check_rules(None) == [rs.QuantileBins(20)] * 2
    assert labelled.check_rules(one) == [one, one]
    assert labelled.check_rules((one, two)) == labelled.check_rules([one, two]) == [one, two]
    for few in ((one,), (one,) * 3):
        with pytest.raises(TypeError, match=f"a pair of them; got {len(few)}"):
            labelled.check_rules(few)
    with pytest.raises(TypeError, match="got GreedyBins.*searches for bins"):
        labelled.check_rules((one, rs.GreedyBins()))
    # Two levels are enough, one is not.
    labelled.axis_of(sample(X[1:3]), 1, one, "as_is")
    with pytest.raises(ValueError, match="Feature 'k' must vary; all 2 rows have 'v'"):
        labelled.axis_of(sample(X.iloc[[0, 2]]), 1, one, "as_is")
    with pytest.raises(ValueError, match="Feature 'n' must vary; all 2 rows have 3"):
        labelled.axis_of(sample(X[3:]), 2, one, None)
