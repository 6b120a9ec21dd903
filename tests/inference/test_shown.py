"""What is shown of tests and of replicates, and which of their lines."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import rhale_stats as rs

FEATURES = list("abcdef")


@pytest.fixture
def tested():
    """Six features; the fourth has no p-value, and all but the first have a reason."""
    p = np.array([0.5, 0.02, 0.3, np.nan, 0.01, 0.2])
    return xr.Dataset(
        {
            "statistic": ("feature", 10.0 * np.arange(6)),
            "p_value": ("feature", p),
            "p_value_adjusted": ("feature", np.minimum(2 * p, 1)),
            "reason": ("feature", ["", *(f"reason {name}" for name in "bcdef")]),
        },
        {"feature": FEATURES},
        {
            "method": "test",
            "bin_rule": "EqualWidthBins",
            "bin_parameters": "n_bins=3",
            "test": "a test",
            "adjust": "holm",
            "null": "nothing",
            "n_rows": 30,
            "source": "rows",
            "output_name": "price",
            "output_units": "EUR",
        },
    )


def test_the_smallest_p_values_come_first(tested):
    table = rs.show(tested).head.tables[1]
    assert table.heads == ["statistic", "P", "P, adjusted (holm)"]
    assert table.stubs == ["e", "b", "f", "c", "a", "d"]
    assert table.lines[0] == ["40.000", "0.010", "0.020"]
    assert table.lines[-1] == ["30.000", "", ""]
    shown = rs.show(tested, max_features=2).head
    assert shown.tables[1].stubs == ["e", "b"]
    assert shown.words[0] == "2 of 6 lines, the most important."


@pytest.fixture
def boot():
    """Two chains of 50 draws of one number: 0 to 99 for "a", their negative tenfold for "b"."""
    numbers = np.random.default_rng(0).permutation(np.arange(100.0)).reshape(2, 50)
    values = np.stack([numbers, -10 * numbers, np.full((2, 50), np.nan)], axis=-1)
    values[0, 0, 1] = np.nan
    return xr.Dataset(
        {
            "curve": (("chain", "draw", "feature", "edge"), np.ones((2, 50, 3, 4))),
            "importance": (("chain", "draw", "feature"), values),
            "n_bins": (("chain", "draw", "feature"), np.ones((2, 50, 3))),
        },
        {"feature": ["a", "b", "c"]},
        {"output_name": "price", "method": "bootstrap", "source": "groups of rows"},
    )


def first_lines(boot, most=10):
    """The table that is shown, and the words below it."""
    head = rs.show(boot, max_features=most).head
    return head.tables[0], head.words


def test_quantiles_of_the_replicates_the_largest_first(boot):
    table, words = first_lines(boot)
    assert table.title == "Replicates of importance (bootstrap) on price"
    assert table.heads == ["2.5 %", "50 %", "97.5 %"]
    assert table.stubs == ["b", "a", "c"]
    values = boot["importance"].values.reshape(100, 3)
    for line, column in zip(table.lines[:2], (1, 0), strict=True):
        quantiles = np.nanquantile(values[:, column], [0.025, 0.5, 0.975])
        assert line == [f"{one:.4g}" for one in quantiles]
    assert table.lines[2] == ["", "", ""]
    assert words[0] == "2 chains × 50 draws. Uncertainty: groups of rows (model as given)."


def test_as_many_lines_as_asked_for(boot):
    table, words = first_lines(boot, 1)
    assert table.stubs == ["b"]
    assert "1 of 3 lines, the most important." in words


def test_replicates_of_one_number_and_of_regions(boot):
    assert first_lines(boot[["importance"]].isel(feature=0))[0].stubs == ["a"]
    both = xr.concat([boot["importance"]] * 2, "region").isel(feature=[0]).to_dataset()
    both.attrs = boot.attrs
    assert first_lines(both)[0].stubs == ["0, a", "1, a"]


def test_replicates_of_curves_alone_have_no_quantiles(boot):
    table, _ = first_lines(boot[["curve"]])
    assert table.heads == ["over", "lowest", "highest"]
    assert table.lines == [["chain, draw, feature, edge", "1", "1"]]
    of_bins = boot.rename(curve="average_effect")[["average_effect"]]
    assert first_lines(of_bins)[0].stubs == ["average_effect"]


def test_the_two_groups_of_a_difference_are_named():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=150), "sex": ["boy"] * 60 + ["girl"] * 90})
    effect = rs.ale(lambda X: X.x * (1 + (X.sex == "boy")), X, ["x"], by="sex")
    text = str(rs.summary(rs.compare(effect.isel(region=0), effect.isel(region=1), rng=0)))
    assert "Difference a less b, a: sex = boy; b: sex = girl." in text
    assert "60 and 90" in text
