"""Which effects are 0, or have no error, up to the numerical error of local effects."""

import numpy as np
import pytest
import xarray as xr

from rhale_stats.inference.meaning import (
    ALIKE,
    ORDER,
    ZERO,
    is_unordered,
    is_zero,
    of_averages,
    of_bins,
    of_effects,
)
from tests.helpers import changed, row_of


def row(effect, heterogeneity, slope=None, error=0.1, **more):
    """One feature, with bins of width 2 and a numerical error of local effects."""
    n = len(effect)
    variables = {"effect": ("bin", effect), "heterogeneity": ("bin", heterogeneity), **more}
    if slope is not None:
        variables["slope"] = ("bin", slope)
    coords = {"feature": "x", "edge_value": ("edge", 2.0 * np.arange(n + 1))}
    return row_of(xr.Dataset(variables, coords | {"local_effect_error": error}))


class TestLeastEffect:
    """The numerical limit of one feature."""

    def test_the_error_of_local_effects(self):
        assert row([5.0, np.nan], [0.0, 0.0]).least_effect == 0.1

    def test_rounding_of_the_largest_effect(self):
        known = row([-5.0, 1.0], [0.0, 0.0], error=np.nan)
        assert known.least_effect == 16 * np.spacing(5.0)
        assert changed(known, drop=["local_effect_error"]).least_effect == 16 * np.spacing(5.0)

    def test_without_effects(self):
        assert row([np.nan], [np.nan]).least_effect == 0.1
        assert changed(row([np.nan], [np.nan]), drop=["local_effect_error"]).least_effect == 0


def test_bins_without_spread_are_alike():
    """Up to the numerical error, and that included; nothing is known of the last bin."""
    known = row([1.0, 1.0, 1.0, np.nan], [0.0, 0.1, 0.11, np.nan])
    assert known.is_alike.tolist() == [True, True, False, False]


def test_bins_are_zero_up_to_the_ends_of_their_lines():
    """A line of slope .06 goes .06 from the middle of a bin of width 2 to its ends."""
    effect = [0.1, 0.0, -0.04, -0.05, 0.11, 0.0]
    slope = [0.0, 0.1, 0.06, 0.06, 0.0, 0.0]
    spread = [0.0, 0.0, 0.0, 0.0, 0.0, 0.2]
    of_lines = row(effect, spread, slope).together
    assert is_zero(of_lines)[0].tolist() == [True, True, True, False, False, False]
    assert is_zero(row([-0.05], [0.0], [-0.06]).together)[0].tolist() == [False]
    # Widths are those of each bin.
    wide = changed(row([0.0, 0.0], [0.0, 0.0], [0.06, 0.06]), edge_value=("edge", [0, 2, 6]))
    assert is_zero(wide.together)[0].tolist() == [True, False]


def test_reasons_of_bins():
    features = row([0.0, 1.0, 1.0], [0.0, 0.05, 1.0]).together
    assert of_bins(features)[0].tolist() == [ZERO, ALIKE, ""]


def test_parameters_move_effects_that_all_rows_share():
    """Then the standard error decides, whose steps magnify rounding by 1e4."""
    se = ("bin", [0.0, 999.0, 1001.0])
    known = row([0.0, 1.0, 1.0], [0.0, 0.0, 0.0], effect_se=se, effect_se_model=se)
    assert of_bins(known.together)[0].tolist() == [ZERO, ALIKE, ""]
    by_rows = changed(known, drop=["effect_se_model"]).together
    assert of_bins(by_rows)[0].tolist() == [ZERO, ALIKE, ALIKE]


@pytest.mark.parametrize(
    ("effect", "heterogeneity", "expected"),
    [
        ([0.0, np.nan, 0.05], [0.0, np.nan, 0.0], ZERO),
        ([0.0, np.nan, 1.0], [0.0, np.nan, 0.0], ALIKE),
        ([0.0, np.nan, 1.0], [0.0, np.nan, 0.5], ""),
        ([np.nan, np.nan], [np.nan, np.nan], ""),
        ([np.nan, np.nan], [0.0, 0.0], ""),
    ],
)
def test_reasons_of_all_effects(effect, heterogeneity, expected):
    """Bins without effects do not count."""
    assert of_effects(row(effect, heterogeneity).together)[0] == expected


@pytest.mark.parametrize(
    ("effect", "slope", "expected"),
    [
        ([1.0, np.nan, 1.15], None, ALIKE),
        ([0.25, 0.05], None, ALIKE),
        ([1.0, 1.25], None, ""),
        ([1.0, 1.0], [0.5, 0.0], ""),
        ([0.05, -0.05], [0.0, 0.0], ZERO),
    ],
)
def test_an_average_varies_where_bins_have_different_effects(effect, slope, expected):
    assert of_averages(row(effect, 0 * np.array(effect), slope).together)[0] == expected


def test_an_average_of_equal_bins_with_an_error():
    assert of_averages(row([1.0, 1.0], [0.0, 1.0]).together)[0] == ""


def test_levels_without_an_order_have_no_average():
    kinds = xr.Dataset(
        coords={
            "feature": list("abc"),
            "feature_kind": ("feature", ["numeric", "nominal", "ordinal"]),
        }
    )
    assert is_unordered(kinds).tolist() == [False, True, False]
    assert is_unordered(kinds.drop_vars("feature_kind")).tolist() == [False] * 3
    known = changed(row([0.0], [0.0]), feature_kind="nominal")
    assert of_averages(known.together)[0] == ORDER
