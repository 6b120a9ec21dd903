"""The page of local effects: its numbers by hand, and its order."""

from __future__ import annotations

import numpy as np
import pandas as pd
import xarray as xr
from numpy.testing import assert_allclose

from rhale_stats.local.labelled import local_page

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
    return local_page(local, most)


def test_numbers_of_every_feature():
    """By pandas, over the rows that have a value."""
    shown = page()
    assert shown.title == "Local effects on y [mg]"
    assert shown.facts == ("4 rows; 4 features; jacobian",)
    assert shown.more == "rhale(local)"
    (table,) = shown.tables
    assert table.heads == ["", "kind", "rows", "strength", "mean", "std dev"]
    lines = {line[0]: line[1:] for line in table.lines}
    for at, name in enumerate("abk"):
        own = pd.Series(G[:, at]).dropna()
        scale = 1.0 if name == "k" else pd.Series(X[:, at]).dropna().std(ddof=0)
        expected = [np.sqrt((own**2).mean()) * scale, own.mean(), own.std(ddof=0)]
        assert lines[name][:2] == [KIND[at], str(len(own))]
        assert_allclose([float(text) for text in lines[name][2:]], expected, rtol=2e-3)
    assert lines["c"][:2] == ["constant", "0"]
    assert lines["c"][2:] == ["0", "", "0"]
    assert table.notes == (
        "strength: root mean square of the local effects times the standard deviation of the "
        "feature; for levels, root mean square of the differences.",
    )


def test_the_strongest_come_first_and_constants_last():
    for order in ((0, 1, 2, 3), (3, 2, 1, 0), (2, 3, 0, 1)):
        (table,) = page(order=order).tables
        assert [line[0] for line in table.lines] == ["b", "a", "k", "c"]
    (table,) = page(most=2).tables
    assert [line[0] for line in table.lines] == ["b", "a"]
    assert table.notes[0] == "2 of 4 features."


def test_a_feature_with_one_row():
    one = slice(1, 2)
    (table,) = page(x=X[one], g=G[one], order=(3, 0, 1, 2)).tables
    # No effect is more than no rows.
    assert [line[0] for line in table.lines] == ["k", "a", "b", "c"]
    lines = {line[0]: line[1:] for line in table.lines}
    # No spread of the feature, so no strength; a step between levels has one.
    assert lines["b"] == ["continuous", "1", "0", "-10", "0"]
    assert lines["k"] == ["nominal", "1", "4", "4", "0"]
