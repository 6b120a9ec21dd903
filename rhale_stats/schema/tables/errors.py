"""Variables of effects in bins: standard errors, covariances, skewness, degrees of freedom."""

from __future__ import annotations

from rhale_stats.schema.tables.units import (
    EFFECT_SQUARE_UNITS,
    EFFECT_UNITS,
    IN_SPREAD_BINS,
    OUTPUT_UNITS,
    SLOPE_UNITS,
    Table,
)

ERRORS: Table = {
    "cell_curve_se": (
        ("feature", "cell_edge"),
        "standard error of the curve at the cell's edge",
        OUTPUT_UNITS,
    ),
    "effect_se": (("feature", "bin"), "standard error of the average effect", EFFECT_UNITS),
    "slope_se": (("feature", "bin"), "standard error of the slope in the bin", SLOPE_UNITS),
    "heterogeneity_se": (
        ("feature", "bin"),
        "standard error of the standard deviation of local effects",
        EFFECT_UNITS,
    ),
    "curve_se": (("feature", "edge"), "standard error of the curve", OUTPUT_UNITS),
    "curve_se_start": (("feature", "edge"), "standard error of the zero-start curve", OUTPUT_UNITS),
    "average_effect_se": (
        ("feature",),
        "standard error of the average effect over the rows",
        EFFECT_UNITS,
    ),
    "effect_skewness": (("feature", "bin"), "skewness of the error of the average effect", "1"),
    "curve_skewness": (("feature", "edge"), "skewness of the error of the curve", "1"),
    "cell_curve_skewness": (
        ("feature", "cell_edge"),
        "skewness of the error of the curve at the cell's edge",
        "1",
    ),
    "average_effect_skewness": (
        ("feature",),
        "skewness of the error of the average effect over the rows",
        "1",
    ),
    "effect_cov": (
        ("feature", "bin", "bin_other"),
        "covariance of the average effects",
        EFFECT_SQUARE_UNITS,
    ),
    "effect_df": (
        ("feature", "bin"),
        "degrees of freedom of the standard error of the average effect",
        "1",
    ),
    "spread_df": (IN_SPREAD_BINS, "degrees of freedom of the standard error of the spread", "1"),
    "effect_overlap": (
        ("feature", "bin", "bin_other"),
        "reciprocal degrees of freedom that the variances of two effects have in common",
        "1",
    ),
    "slope_df": (
        ("feature", "bin"),
        "degrees of freedom of the standard error of the slope in the bin",
        "1",
    ),
    "heterogeneity_df": (
        ("feature", "bin"),
        "degrees of freedom of the standard error of the standard deviation of local effects",
        "1",
    ),
    "curve_df": (("feature", "edge"), "degrees of freedom of the standard error of the curve", "1"),
    "cell_curve_df": (
        ("feature", "cell_edge"),
        "degrees of freedom of the standard error of the curve at the cell's edge",
        "1",
    ),
    "average_effect_df": (
        ("feature",),
        "degrees of freedom of the standard error of the average effect over the rows",
        "1",
    ),
    "effective_groups": (("feature",), "effective number of groups", "1"),
    "zero_pvalue": (("feature",), "p-value of no effect, by wild cluster bootstrap", "1"),
    "constant_pvalue": (("feature",), "p-value of one effect, by wild cluster bootstrap", "1"),
    "curve_cov": (("feature", "edge", "edge_other"), "covariance of the curve", "(output units)^2"),
    "effect_slope_correlation": (
        ("feature", "bin"),
        "correlation of the average effect in the bin with its slope",
        "1",
    ),
    "cell_curve_cov": (
        ("feature", "cell_edge", "cell_edge_other"),
        "covariance of the curve at the edges of the cells",
        "(output units)^2",
    ),
    **{
        f"{name}_directions": (
            ("feature", dim, "part", "component"),
            f"change of the {what} along directions of the parameters, and what rows share with it",
            units,
        )
        for name, dim, what, units in (
            ("curve", "edge", "curve", OUTPUT_UNITS),
            ("cell_curve", "cell_edge", "curve at the edges of the cells", OUTPUT_UNITS),
            ("slope", "bin", "slopes", SLOPE_UNITS),
        )
    },
    "slope_cov": (
        ("feature", "bin", "bin_other"),
        "covariance of the slopes in the bins",
        "(output units per feature unit^2)^2",
    ),
    "effect_slope_cov": (
        ("feature", "bin", "bin_other"),
        "covariance of the average effects with the slopes in the bins",
        "(output units)^2 per feature unit^3",
    ),
    "curve_slope_cov": (
        ("feature", "edge", "bin_other"),
        "covariance of the curve with the slopes in the bins",
        "(output units per feature unit)^2",
    ),
}
