"""Orders of levels: what is asked for, similarity by hand, encodings and their ties."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from rhale_stats.local import levels as module
from rhale_stats.local.levels import by_encoding, by_similarity, order_of, target_of_order
from rhale_stats.models.options import ModelOptions
from rhale_stats.models.sample import Sample, levels_of

# Level "v" lies between the others in x, and "w" in the text; one row has no level.
FRAME = pd.DataFrame(
    {
        "k": ["u", "u", "v", "v", "w", "w", None],
        "x": [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 9.0],
        "t": ["p", "p", "q", "q", "p", "q", "z"],
        "o": pd.Categorical(list("abcabca"), ordered=True),
    }
)


def sample_of(frame=FRAME, **options):
    return Sample.from_table(frame, ModelOptions(missing="drop", **options))


def levels(column=0, frame=FRAME, **options):
    return levels_of(sample_of(frame, **options), column)


def test_what_is_asked_for():
    nominal, ordinal = levels(0), levels(3)
    both = [nominal, ordinal]
    assert order_of("similarity", both, ["k", "o", "x"]) == {"k": "similarity", "o": "as_is"}
    assert order_of("target", both, ["k", "o", "x"]) == {"k": "target", "o": "as_is"}
    assert order_of({"o": "woe"}, both, ["k", "o", "x"]) == {"k": "similarity", "o": "woe"}
    assert order_of({"k": ["v", "u", "w"]}, both, ["k", "o", "x"]) == {
        "k": ["v", "u", "w"],
        "o": "as_is",
    }
    assert order_of(["c", "a", "b"], [ordinal], ["o"]) == {"o": ["c", "a", "b"]}
    # A wrong word is refused although no nominal feature would use it.
    for order in ("best", {"o": "best"}):
        with pytest.raises(ValueError, match="order must be one of 'as_is', .*; got 'best'"):
            order_of(order, [ordinal], ["o"])
    with pytest.raises(ValueError, match=r"one list for 'k', 'o'\. Use order={'k': \[\.\.\.\]}"):
        order_of(["u"], both, ["k", "o", "x"])
    with pytest.raises(KeyError, match="categorical features, 'k', 'o'; got 'x'"):
        order_of({"x": "as_is", "k": "as_is", 1: "as_is"}, both, ["k", "o", "x"])


def by_hand(frame, weight, column="k"):
    """Distances over the other columns of numbers and of texts, level by level."""
    own = frame[column].dropna()
    names = sorted(set(own))
    distance = np.zeros((len(names), len(names)))
    for other in frame.columns.drop(column):
        values = frame.loc[own.index, other].astype(object).fillna("none")
        if frame[other].dtype == float:
            values = frame.loc[own.index, other].fillna(-np.inf)
        grid = sorted(set(values), key=lambda one: (str(type(one)), one))
        shares = np.array(
            [[weight[own.index[(own == name) & (values == one)]].sum() for one in grid]
             for name in names]
        )  # fmt: skip
        shares = shares / shares.sum(axis=1, keepdims=True)
        for i, j in np.ndindex(distance.shape):
            apart = shares[i] - shares[j]
            numbers = frame[other].dtype == float
            distance[i, j] += np.abs(np.cumsum(apart)).max() if numbers else np.abs(apart).sum() / 2
    return distance


@pytest.mark.parametrize("weighted", [False, True])
def test_distances_are_those_of_the_distributions_in_the_other_columns(monkeypatch, weighted):
    frame = FRAME.drop(columns="o")
    frame.loc[3, "x"], frame.loc[1, "t"] = np.nan, None
    weight = np.array([1.0, 2, 1, 3, 1, 1, 50]) if weighted else np.ones(7)
    seen = []
    monkeypatch.setattr(module.kernel, "line_order", lambda distance: seen.append(distance))
    sample = sample_of(frame)
    by_similarity(sample.table, 0, levels(0, frame), weight)
    np.testing.assert_allclose(seen[0], by_hand(frame, weight))


def test_the_most_similar_levels_are_neighbours():
    frame = FRAME[["k", "x"]]
    named = frame.assign(k=frame["k"].map({"u": "b", "v": "c", "w": "a"}))
    for table, expected in ((frame, [0, 1, 2]), (named, [0, 1, 2])):
        order = by_similarity(sample_of(table).table, 0, levels(0, table), np.ones(7))
        assert order.tolist() == expected
    far = frame.assign(x=[0, 1, 9, 9, 0, 4, 5])
    assert by_similarity(sample_of(far).table, 0, levels(0, far), np.ones(7)).tolist() == [0, 2, 1]


@pytest.mark.thorough
@pytest.mark.parametrize("order", ["target", "m_estimate"])
def test_encoders_sort_by_the_outcome_and_keep_ties(order):
    pytest.importorskip("category_encoders")
    y = np.array([5.0, 7, 1, 3, 4, 8, 100])
    assert by_encoding(order, levels(0), y, None).tolist() == [1, 0, 2]
    # Means that differ by rounding only are ties.
    tied = np.array([0.1 + 0.2, 0, 0.3, 0, 0.3, 0, 1])
    for unit in (1.0, 1e9):
        assert by_encoding(order, levels(0), unit * tied, None).tolist() == [0, 1, 2]
    negative = -np.array([0.3, 0, 0.1 + 0.2, 0, 0.3, 0, 1])
    assert by_encoding(order, levels(0), negative, None).tolist() == [0, 1, 2]
    huge = 1e9 * np.array([3, 0.3, 1, 1, 0.3, 3, 0])
    assert by_encoding(order, levels(0), huge, None).tolist() == [1, 0, 2]
    near = 1e-9 * np.array([2, 2, 1, 1, 3, 3, 0]) + 5
    assert by_encoding(order, levels(0), near, None).tolist() == [1, 0, 2]
    zero = np.zeros(7)
    assert by_encoding(order, levels(0), zero, None).tolist() == [0, 1, 2]
    negative = -np.array([5.0, 5, 1, 1, 9, 9, 0])
    assert by_encoding(order, levels(0), negative, None).tolist() == [2, 0, 1]
    # Counts repeat rows; those of the row without a level do not matter.
    counts = np.array([1, 1, 1, 99, 1, 1, 500])
    y = np.array([2.0, 2, 1, 9, 3, 3, -500])
    assert by_encoding(order, levels(0), y, counts).tolist() == [0, 2, 1]


def test_weight_of_evidence_is_of_the_larger_of_two_values():
    pytest.importorskip("category_encoders")
    frame = pd.DataFrame({"k": [*"uuuuvvvvwwww", None]})
    y = np.array([7.0, 7, 7, -1, -1, -1, -1, 7, 7, 7, -1, -1, 3])
    # Shares of 7: 3/4, 1/4, 1/2; the row without a level has another value.
    assert by_encoding("woe", levels(0, frame), y, None).tolist() == [1, 2, 0]
    with pytest.raises(ValueError, match="target of two values; target has 3"):
        by_encoding("woe", levels(0, frame), np.arange(13.0) % 3, None)
    with pytest.raises(ValueError, match="target of two values; target has 1"):
        by_encoding("woe", levels(0, frame), np.ones(13), None)


def test_encodings_that_are_no_numbers_are_refused(monkeypatch):
    encoders = pytest.importorskip("category_encoders")

    class Encoder(encoders.TargetEncoder):
        """Of the first level a number, else none."""

        def transform(self, X, *_, **__):
            return pd.DataFrame({"level": np.where(X["level"] == "level 0", 1.0, np.nan)})

    monkeypatch.setattr(encoders, "TargetEncoder", Encoder)
    with pytest.raises(ValueError, match="order='target' of feature 'k' must give numbers"):
        by_encoding("target", levels(0), np.arange(7.0), None)


def test_targets():
    sample = sample_of()

    def asked(f):
        return sample.of_columns([0]).quotients(f)

    table = sample.table
    y = target_of_order(None, asked(lambda t: t["x"] ** 2), table, 0)
    assert_array_equal(y, FRAME["x"] ** 2)
    given = pd.Series(np.arange(7.0), index=range(7))[::-1]
    assert_array_equal(target_of_order(given, asked(lambda t: t["x"]), table, 0), np.arange(7.0))
    two = asked(lambda t: np.column_stack([t["x"], t["x"]]))
    with pytest.raises(ValueError, match="several outputs, here 0, 1"):
        target_of_order(None, two, table, 0)
    assert_array_equal(target_of_order(np.ones(7), two, table, 0), np.ones(7))
    with pytest.raises(ValueError, match="Output of feature 'k' must be finite|Output"):
        target_of_order(None, asked(lambda t: np.where(t["x"] == 3, np.inf, 1.0)), table, 0)
    for target, said in (
        (np.ones(6), r"got shape \(6,\)"),
        (np.ones((7, 1)), r"got shape \(7, 1\)"),
        ([1, 2, 3, np.nan, 5, 6, 7], "got values that are not finite"),
    ):
        with pytest.raises(ValueError, match=rf"a row, shape \(7,\); {said}"):
            target_of_order(target, two, table, 0)


def test_orders_of_encoders():
    assert [module.is_encoded(one) for one in ("target", "woe", "similarity", "as_is")] == [
        *(True, True, False, False)
    ]
    assert not module.is_encoded(["target"])


def test_the_mean_of_what_is_known():
    up, down = np.array([[1.0, np.nan, 4.0]]), np.array([[np.nan, 3.0, -2.0]])
    assert_array_equal(module.mean_of_known(up, down), [[1, 3, 1]])
