"""The page of local effects: its numbers by hand, and its order."""

from __future__ import annotations

import numpy as np
import pandas as pd
import xarray as xr
from numpy.testing import assert_allclose

import rhale_stats as rs

NAN = np.nan
# Rows are 0, 1, 2, 3. Of "a" the last has no value; "k" has two levels; "c" is constant.
X = np.array([[0.0, 2.0, 0.0, 1.0], [1.0, 4.0, 1.0, 1.0], [5.0, 6.0, 1.0, 1.0], [NAN, 8, 0, 1]])
G = np.array([[1.0, 30, 2.0, NAN], [2.0, -10, 4.0, NAN], [6.0, -20, 2, NAN], [NAN, 4, -4, NAN]])
KIND = ["continuous", "continuous", "nominal", "constant"]


def page(most=10, names=("a", "b", "k", "c"), order=(0, 1, 2, 3), x=X, g=G):
    order = list(order)
    local = xr.Dataset(
        {
            "x": (("obs", "feature"), x[:, order]),
            "local_effect": (("obs", "feature"), g[:, order]),
        },
        {
            "feature": [names[at] for at in order],
            "feature_kind": ("feature", [KIND[at] for at in order]),
            "local_effect_method": ("feature", ["jacobian"] * len(order)),
        },
        {"n_rows": 4, "output_name": "y", "output_units": "mg"},
    )
    return rs.show(local, max_features=most).head


def lines_of(table):
    return dict(zip(table.stubs, table.lines, strict=True))


def test_numbers_of_every_feature():
    """By pandas, over the rows that have a value."""
    shown = page()
    (table,) = shown.tables
    assert table.title == "Local effects on y [mg]"
    assert table.heads == ["kind", "rows", "strength", "mean", "std dev"]
    lines = lines_of(table)
    for at, name in enumerate("abk"):
        own = pd.Series(G[:, at]).dropna()
        scale = 1.0 if name == "k" else pd.Series(X[:, at]).dropna().std(ddof=0)
        expected = [np.sqrt((own**2).mean()) * scale, own.mean(), own.std(ddof=0)]
        assert lines[name][:2] == [KIND[at], str(len(own))]
        assert_allclose([float(text) for text in lines[name][2:]], expected, rtol=2e-3)
    assert lines["c"][:2] == ["constant", "0"]
    assert lines["c"][2:] == ["0", "", "0"]
    assert shown.words == (
        "4 rows; 4 features; jacobian",
        "strength: root mean square of the local effects times the standard deviation of the "
        "feature; for",
        "levels, root mean square of the differences.",
        "More: rhale(result), summary(result), plot(result)",
    )


def test_the_strongest_come_first_and_constants_last():
    for order in ((0, 1, 2, 3), (3, 2, 1, 0), (2, 3, 0, 1)):
        (table,) = page(order=order).tables
        assert list(table.stubs) == ["b", "a", "k", "c"]
    (table,) = page(most=2).tables
    assert list(table.stubs) == ["b", "a"]
    assert "2 of 4 lines, the most important." in page(most=2).words


def test_a_feature_with_one_row():
    one = slice(1, 2)
    (table,) = page(x=X[one], g=G[one], order=(3, 0, 1, 2)).tables
    # No effect is more than no rows.
    assert list(table.stubs) == ["k", "a", "b", "c"]
    lines = lines_of(table)
    # No spread of the feature, so no strength; a step between levels has one.
    assert lines["b"] == ["continuous", "1", "0", "-10", "0"]
    assert lines["k"] == ["nominal", "1", "4", "4", "0"]
