"""Thresholds that a reader can take in."""

import numpy as np
import pandas as pd
import pytest

import rhale_stats as rs
from rhale_stats.regional.splits import as_json, of_json, readable


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (-1.0, 2.0, 0.0),
        (0.0, 1.0, 0.0),
        (2.0, 3.0, 2.0),  # 2.5 is rounded to even
        (2.2, 3.0, 2.6),
        (27.31, 27.92, 27.6),
        (151.0, 249.0, 200.0),
        (-0.0341, -0.0339, -0.034),
        (1234.1, 1234.5, 1234.3),
        (0.0, 5e-324, 0.0),
        (1.0, np.nextafter(1.0, 2), 1.0),
    ],
)
def test_the_shortest_number_between_two_values(low, high, expected):
    found = readable(low, high)
    assert found == pytest.approx(expected, rel=1e-15)
    # It parts the rows at the two values as their middle does.
    assert low <= found < high


def test_levels_are_kept_as_text():
    assert of_json(as_json(("a", 1, True))) == ("a", 1, True)
    assert as_json(()) == ""
    assert of_json("") == ()


# --- missing values ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("turns", "rules"),
    [
        (lambda t: t["b"].isna(), ["b is not missing", "b is missing"]),
        (lambda t: t["b"].isna() | (t["b"] > 0.5), ["b ≤ 0.5", "b > 0.5 or missing"]),
        (lambda t: t["b"] > 0.5, ["b ≤ 0.5", "b > 0.5", "b is missing"]),
        (lambda t: t["g"].isna(), ["g = missing", "g in {x, y, z}"]),
        (
            lambda t: t["c"].map(lambda one: one.left >= 0).astype(bool),
            ["c ≤ (-1, 0]", "c ≥ (0, 1]"],
        ),
        (lambda t: t["d"] == pd.Timestamp("2020-01-01"), ["d = 2020-01-01 00:00:00"]),
    ],
)
def test_rows_split_by_missing_values_intervals_and_dates(turns, rules):
    rng = np.random.default_rng(0)
    n = 800
    X = pd.DataFrame(
        {
            "a": rng.uniform(-1, 1, n),
            "b": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
            "g": np.where(rng.random(n) < 0.2, None, rng.choice(list("xyz"), n)),
            "c": pd.cut(rng.normal(size=n), [-9, -1, 0, 1, 9]),
            "d": pd.Categorical(pd.to_datetime(rng.choice(["2020-01-01", "2021-01-01"], n))),
        }
    )
    local = rs.local_effects(
        lambda t: t["a"] * np.where(turns(t), -3, 1), X, features=["a"], method="central_difference"
    )
    tree = rs.regions(local, "a", conditioning=X, rng=0)
    found = tree["rule"].values.tolist()
    assert set(rules) <= set(found)
    placed = rs.assign(tree, X)
    np.testing.assert_array_equal(placed, tree["region_of_row"])
    effects = local["local_effect"].values[:, 0]
    for region in np.unique(placed):
        assert np.ptp(effects[placed.values == region]) < 1e-6
