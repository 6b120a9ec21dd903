"""Printed tables of the checks of bias and of jumps, by hand."""

import numpy as np
import pytest
import xarray as xr

from rhale_stats.effects.tables import UNBIASED_CURVE, bias_table, jump_table
from rhale_stats.inference.meaning import BIASED, FINE, LARGE, TOO_FEW
from rhale_stats.schema.feature_result import one_feature

NAN = np.nan
# Of four bins of widths 1, 2, 1, 4; in the last nothing is known.
OF_BINS = {
    "effect": [1.0, 1.0, 1.0, NAN],
    "heterogeneity": [2.0, 1.0, 0.0, NAN],
    "heterogeneity_within": [2.0, 1.0, 5.0, NAN],
    "bin_error": [0.5, 0.25, 0.125, NAN],
    "bin_error_se": [0.05, 0.02, 0.01, NAN],
    "bin_error_pvalue_adjusted": [0.04, 0.012, 0.5, NAN],
    "rank_pvalue_adjusted": [0.05, 0.023, 0.6, NAN],
    "density_bias": [0.5, -1.0, 7.0, NAN],
    "density_bias_se": [0.1, 0.2, 0.3, NAN],
}
JUMPS = {
    "jump": [1.0, -2.0, 3.0, NAN],
    "jump_se": [0.1, 0.2, 0.3, NAN],
    "jump_spread": [10.0, 20.0, 30.0, NAN],
    "jump_pvalue_adjusted": [0.05, 0.001, 0.04, NAN],
}


def checked(weighting="rows"):
    """Two features; of the second nothing is known."""
    every = OF_BINS | JUMPS
    both = {
        name: (("feature", "bin"), np.array([values, [NAN] * 4])) for name, values in every.items()
    }
    edges = np.array([[0.0, 1, 3, 4, 8], [0.0, 1, 3, 4, 8]])
    share = np.array([[0.5, 0.25, 0.25, 0.0, NAN], [NAN] * 5])
    verdict = [[BIASED, LARGE, FINE, TOO_FEW], [TOO_FEW] * 4]
    out = xr.Dataset(
        both
        | {
            "verdict": (("feature", "bin"), verdict, {"significance": 0.05}),
            "cell_share": (("feature", "edge"), share),
            "edge_value": (("feature", "edge"), edges),
            "bin_left": (("feature", "bin"), edges[:, :-1]),
            "bin_right": (("feature", "bin"), edges[:, 1:]),
            "n_bins": ("feature", [4, 4]),
        },
        {"feature": ["a", "b"], "feature_kind": ("feature", ["numeric"] * 2)},
        {"weighting": weighting, "output_name": "y", "output_units": "", "method": "rhale"},
    )
    out = out.assign_coords(
        local_effect_error=("feature", [0.0, 0.0]), feature_units=("feature", ["", ""])
    )
    for name in ("bin_error_pvalue_adjusted", "jump_pvalue_adjusted"):
        out[name].attrs["adjust"] = "holm"
    return out.set_coords(["edge_value", "bin_left", "bin_right"])


def cells(table):
    return [[text.strip() for text in line] for line in table.rows]


def test_bias_of_features():
    """Within: root of the mean of squares by weight, without numerical errors."""
    table, notes = bias_table(checked(), None)
    heads, first, second = cells(table)
    assert heads[1:] == [
        *("bins", "tested", "biased", "> std err", "share", "within", "smallest P", "curve bias")
    ]
    within = np.sqrt(0.5 * 4 + 0.25 * 1)
    # Bin errors and variances by width: .5 + 2 * .25 + .125 of 4 + 2 * 1 + 0.
    # The curve is off by .5, then by .5 - 2.
    assert first == ["a", "4", "3", "2", "1", "19%", f"{within:.4g}", "0.012", "1.5"]
    assert second == ["b", "4", "0", "0", "0", "", "", "", ""]
    assert "adjusted (holm)" in notes[1]
    assert UNBIASED_CURVE not in notes


def test_curves_along_the_axis_have_no_bias():
    table, notes = bias_table(checked("axis"), None)
    assert cells(table)[0][-1] == "smallest P"
    assert len(cells(table)[1]) == 8
    assert UNBIASED_CURVE in notes
    table, notes = bias_table(checked("axis"), one_feature(checked("axis"), "a"))
    assert "density bias" not in cells(table)[0]
    assert len(cells(table)[1]) == 10
    assert UNBIASED_CURVE in notes


def test_bias_of_bins():
    table, notes = bias_table(checked(), one_feature(checked(), "a"))
    heads, *lines = cells(table)
    assert heads[1:] == [
        *("sigma2*", "within", "bin error", "std err", "share", "RVN", "P", "rank P"),
        *("density bias", "std err", "verdict"),
    ]
    numbers = ["1", "1", "0.25", "0.02", "25%", "2", "0.012", "0.023", "-1", "0.2"]
    assert lines[1][1:] == [*numbers, LARGE]
    assert lines[3][1:] == [*[""] * 10, TOO_FEW]
    assert UNBIASED_CURVE not in notes


def test_the_jump_with_the_smallest_p_value():
    table, notes = jump_table(checked(), None)
    heads, first, second = cells(table)
    assert heads[1:] == ["bins", "missed", "jump", "std err", "spread", "P"]
    # Two p-values are below .05.
    assert first == ["a", "4", "2", "-2", "0.2", "20", "0.001"]
    assert second == ["b", "4", "", "", "", "", ""]
    assert len(notes) == 3


@pytest.mark.parametrize("feature", ["a", 0])
def test_jumps_of_bins(feature):
    table, notes = jump_table(checked(), one_feature(checked(), feature))
    heads, *lines = cells(table)
    assert heads[1:] == ["jump", "std err", "spread", "P"]
    assert lines[0][1:] == ["1", "0.1", "10", "0.050"]
    assert lines[3][1:] == ["", "", "", ""]
    assert len(lines) == 4
    assert len(notes) == 2
