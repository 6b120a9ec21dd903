"""Variables of profiles."""

from __future__ import annotations

from rhale_stats.schema.tables.units import OUTPUT_UNITS, SE_PARTS, X_UNITS, Table

ON_GRID, SQUARE = ("feature", "grid"), "(output units)^2"
PROFILE_VARIABLES: Table = {
    "curve": (ON_GRID, "average output along the feature", OUTPUT_UNITS),
    "curve_std": (ON_GRID, "spread about the curve", OUTPUT_UNITS),
    "curve_se": (ON_GRID, "standard error of the curve", OUTPUT_UNITS),
    **{
        f"curve_se_{part}": (ON_GRID, f"standard error of the curve, {origin}", OUTPUT_UNITS)
        for part, origin in SE_PARTS.items()
    },
    "curve_df": (ON_GRID, "degrees of freedom of the curve", "1"),
    "curve_cov": ((*ON_GRID, "grid_other"), "covariance of the curve", SQUARE),
    "curve_ci": ((*ON_GRID, "ci_bound"), "confidence interval of the curve", OUTPUT_UNITS),
    "curve_band": ((*ON_GRID, "ci_bound"), "simultaneous band of the curve", OUTPUT_UNITS),
    "curve_acceleration": (ON_GRID, "acceleration of the curve", "1"),
    "curve_offset": (("feature",), "constant subtracted from the curve", OUTPUT_UNITS),
    "weight_share": (ON_GRID, "share of the rows at the point", "1"),
    "n_obs": (("feature",), "rows", "rows"),
    "n_effective": (("feature",), "effective number of rows", "rows"),
    "n_missing": (("feature",), "rows without a value of the feature", "rows"),
    "n_beyond": (("feature",), "rows beyond the bins, left out of the feature", "rows"),
    "missing_curve": (
        ("feature",),
        "average output without a value, on the scale of the curve",
        OUTPUT_UNITS,
    ),
    "missing_curve_se": (
        ("feature",),
        "standard error of the output without a value",
        OUTPUT_UNITS,
    ),
    "heterogeneity_output": (("feature",), "spread about the curve over the rows", OUTPUT_UNITS),
    "importance": (("feature",), "standard deviation of the curve over the rows", OUTPUT_UNITS),
    "output_error": (("feature",), "change of the output that rounding can make", OUTPUT_UNITS),
    "ice": ((*ON_GRID, "obs"), "output of a row along the feature", OUTPUT_UNITS),
    "shap_value": (("feature", "obs"), "Shapley value", OUTPUT_UNITS),
    "shap_value_error": (
        ("feature", "obs"),
        "Monte-Carlo standard error of the Shapley value",
        OUTPUT_UNITS,
    ),
    "output_value": (("obs",), "output of the row", OUTPUT_UNITS),
    "smoothing": (("feature",), "smoothing parameter, of an axis and weights of sum 1", "1"),
    "n_empty": (("feature",), "points that a replicate left without a curve", "points"),
    "bin_left": (ON_GRID, "left end of the bin", X_UNITS),
    "bin_right": (ON_GRID, "right end of the bin", X_UNITS),
    "x": (("feature", "obs"), "value of the feature", X_UNITS),
}
