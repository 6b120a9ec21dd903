"""Pages of tests and of replicates, and which of their lines are shown."""

import numpy as np
import pytest
import xarray as xr

from rhale_stats.inference.tests import replicates_page
from rhale_stats.inference.tests import test_page as page_of_test

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
    page = page_of_test(tested, 10)
    (table,) = page.tables
    assert table.heads == ["", "statistic", "P", "P, adjusted (holm)"]
    assert [line[0] for line in table.lines] == ["e", "b", "f", "c", "a", "d"]
    assert table.lines[0] == ["e", "40", "0.010", "0.020"]
    assert table.lines[-1] == ["d", "30", "", ""]
    # Three reasons at most, of the lines that are shown.
    assert table.notes == ("e: reason e.", "b: reason b.", "f: reason f.")
    assert page.facts[0] == "30 rows; null hypothesis: nothing"
    assert page.facts[1] == "Uncertainty: rows (model as given)"
    assert page.title == "Test on price [EUR]: a test"


def test_lines_that_are_left_out_are_counted(tested):
    (table,) = page_of_test(tested, 2).tables
    assert [line[0] for line in table.lines] == ["e", "b"]
    assert table.notes == ("2 of 6 features.", "e: reason e.", "b: reason b.")


def test_tests_without_reasons(tested):
    (table,) = page_of_test(tested.drop_vars("reason"), 10).tables
    assert table.notes == ()
    tested["reason"][:] = ""
    (table,) = page_of_test(tested, 10).tables
    assert table.notes == ()


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
        {"output_name": "price", "source": "groups of rows"},
    )


def test_quantiles_of_the_replicates_the_largest_first(boot):
    page = replicates_page(boot, 10)
    (table,) = page.tables
    assert table.caption == "importance in the replicates"
    assert table.heads == ["", "2.5 %", "50 %", "97.5 %"]
    assert [line[0] for line in table.lines] == ["b", "a", "c"]
    values = boot["importance"].values.reshape(100, 3)
    for line, column in zip(table.lines[:2], (1, 0), strict=True):
        quantiles = np.nanquantile(values[:, column], [0.025, 0.5, 0.975])
        assert line[1:] == [f"{one:.4g}" for one in quantiles]
    assert table.lines[2][1:] == ["", "", ""]
    assert page.facts == ("2 chains × 50 draws", "Uncertainty: groups of rows (model as given)")


def test_as_many_lines_as_asked_for(boot):
    (table,) = replicates_page(boot, 1).tables
    assert [line[0] for line in table.lines] == ["b"]
    assert table.notes == ("1 of 3 lines.",)


def test_replicates_of_one_number_and_of_regions(boot):
    (table,) = replicates_page(boot[["importance"]].isel(feature=0), 10).tables
    assert [line[0] for line in table.lines] == ["importance"]
    both = xr.concat([boot["importance"]] * 2, "region").isel(feature=[0]).to_dataset()
    both.attrs = boot.attrs
    (table,) = replicates_page(both, 10).tables
    assert [line[0] for line in table.lines] == ["0, a", "1, a"]


def test_replicates_of_curves_alone_have_no_quantiles(boot):
    (table,) = replicates_page(boot[["curve"]], 10).tables
    assert table.heads == ["", "over", "lowest", "highest"]
    assert table.lines == [["curve", "chain, draw, feature, edge", "1", "1"]]
    of_bins = boot.rename(curve="average_effect")[["average_effect"]]
    (table,) = replicates_page(of_bins, 10).tables
    assert [line[0] for line in table.lines] == ["average_effect"]
