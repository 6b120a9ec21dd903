"""Variables of surfaces, and of H-statistics."""

from __future__ import annotations

from rhale_stats.schema.tables.units import OUTPUT_UNITS, SE_PARTS, X_UNITS, Table

IN_CELLS, AT_EDGES = ("bin_a", "bin_b"), ("edge_a", "edge_b")
SURFACE_VARIABLES: Table = {
    "second_effect": (IN_CELLS, "mean second difference in the cell", OUTPUT_UNITS),
    "heterogeneity": (IN_CELLS, "standard deviation of second differences", OUTPUT_UNITS),
    "n_obs": (IN_CELLS, "rows in the cell", "rows"),
    "n_effective": (IN_CELLS, "effective number of rows in the cell", "rows"),
    "supported": (IN_CELLS, "whether the cell has rows", "1"),
    "surface": (AT_EDGES, "second-order effect", OUTPUT_UNITS),
    "second_effect_skewness": (IN_CELLS, "skewness of the error of the mean in the cell", "1"),
    "surface_skewness": (AT_EDGES, "skewness of the error of the surface", "1"),
    "second_difference": (
        ("obs", "side_a", "side_b"),
        "second difference of the output",
        OUTPUT_UNITS,
    ),
    "second_difference_error": ((), "numerical error of a second difference", OUTPUT_UNITS),
    "weight": (("obs",), "row weight", "1"),
    **{
        f"{stem}_se_{part}": (dims, f"standard error of the {what}, {origin}", OUTPUT_UNITS)
        for part, origin in SE_PARTS.items()
        for stem, dims, what in (
            ("second_effect", IN_CELLS, "mean second difference"),
            ("surface", AT_EDGES, "second-order effect"),
        )
    },
    "second_effect_se": (IN_CELLS, "standard error of the mean second difference", OUTPUT_UNITS),
    "surface_se": (AT_EDGES, "standard error of the second-order effect", OUTPUT_UNITS),
    "second_effect_df": (IN_CELLS, "degrees of freedom of the mean second difference", "1"),
    "surface_df": (AT_EDGES, "degrees of freedom of the second-order effect", "1"),
    "second_effect_change": (
        ("direction", *IN_CELLS),
        "change of the mean second difference along a direction of the parameters",
        OUTPUT_UNITS,
    ),
    "surface_change": (
        ("direction", *AT_EDGES),
        "change of the second-order effect along a direction of the parameters",
        OUTPUT_UNITS,
    ),
}
# Those of one of the two features.
for _side in "ab":
    SURFACE_VARIABLES |= {
        f"edge_value_{_side}": ((f"edge_{_side}",), "position of the edge", X_UNITS),
        f"bin_left_{_side}": ((f"bin_{_side}",), "left edge of the bin", X_UNITS),
        f"bin_right_{_side}": ((f"bin_{_side}",), "right edge of the bin", X_UNITS),
        f"x_{_side}": (("obs",), "value of the feature", X_UNITS),
        f"cell_{_side}": (("obs",), "bin of the row", "1"),
    }

OF_OTHER_ROWS = ("obs", "obs_background")
H_VARIABLES: Table = {
    "h_error": ((), "size that rounding alone may make", OUTPUT_UNITS),
    "h_screening": (
        ("feature", "feature_other"),
        "size of the interaction of the pair by which pairs were chosen",
        OUTPUT_UNITS,
    ),
    "answers": (
        ("feature", *OF_OTHER_ROWS),
        "output with the feature of the row and all else of the other row",
        OUTPUT_UNITS,
    ),
    "answers_pair": (
        ("pair", *OF_OTHER_ROWS),
        "output with the pair of the row and all else of the other row",
        OUTPUT_UNITS,
    ),
}
for _suffix, _dims, _what in (
    ("", (), "all interactions"),
    ("_overall", ("feature",), "interactions of the feature"),
    ("_pairwise", ("feature", "feature_other"), "interaction of the pair"),
):
    H_VARIABLES |= {
        f"h2{_suffix}": (_dims, f"H², share of the variance by {_what}", "1"),
        f"h{_suffix}": (_dims, f"size of {_what}", OUTPUT_UNITS),
    }
    for _stem, _units in (("h2", "1"), ("h", OUTPUT_UNITS)):
        _text = H_VARIABLES[f"{_stem}{_suffix}"][1]
        H_VARIABLES |= {
            f"{_stem}{_suffix}_df": (_dims, f"degrees of freedom of {_text}", "1"),
            **{
                f"{_stem}{_suffix}_se_{part}": (
                    _dims,
                    f"standard error of {_text}, {origin}",
                    _units,
                )
                for part, origin in SE_PARTS.items()
            },
        }
