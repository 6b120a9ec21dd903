"""Variables of effects in bins: what checks of bins and of jumps find."""

from __future__ import annotations

from rhale_stats.schema.tables.units import EFFECT_SQUARE_UNITS, EFFECT_UNITS, OUTPUT_UNITS, Table

CHECKS: Table = {
    "sigma2_star": (
        ("feature", "bin"),
        "variance of local effects, heterogeneity and bin error together",
        EFFECT_SQUARE_UNITS,
    ),
    "heterogeneity_within": (
        ("feature", "bin"),
        "standard deviation of local effects at a value of the feature",
        EFFECT_UNITS,
    ),
    "heterogeneity_within_se": (
        ("feature", "bin"),
        "standard error of the standard deviation at a value of the feature",
        EFFECT_UNITS,
    ),
    "bin_error_se": (("feature", "bin"), "standard error of the bin error", EFFECT_SQUARE_UNITS),
    "bin_error_share": (("feature", "bin"), "share of the variance that is bin error", "1"),
    "bin_error_share_axis": (
        ("feature",),
        "share of the variance along the axis that is bin error",
        "1",
    ),
    "von_neumann_ratio": (
        ("feature", "bin"),
        "squared differences of neighbours over squared deviations",
        "1",
    ),
    "bin_error_pvalue": (("feature", "bin"), "p-value of no bin error", "1"),
    "bin_error_pvalue_adjusted": (("feature", "bin"), "adjusted p-value of no bin error", "1"),
    "rank_ratio": (("feature", "bin"), "von Neumann ratio of the ranks", "1"),
    "rank_pvalue": (("feature", "bin"), "p-value of no bin error, by ranks", "1"),
    "rank_pvalue_adjusted": (("feature", "bin"), "adjusted p-value of no bin error, by ranks", "1"),
    "density_bias": (
        ("feature", "bin"),
        "bias of the average effect where rows are denser on one side of the bin",
        EFFECT_UNITS,
    ),
    "density_bias_se": (("feature", "bin"), "standard error of the density bias", EFFECT_UNITS),
    "verdict": (("feature", "bin"), "what the check says of the bin", "1"),
    "jump": (
        ("feature", "bin"),
        "change of the output across the bin that derivatives miss",
        OUTPUT_UNITS,
    ),
    "jump_se": (("feature", "bin"), "standard error of the missed change", OUTPUT_UNITS),
    "jump_spread": (
        ("feature", "bin"),
        "spread of the change across the bin that derivatives miss",
        OUTPUT_UNITS,
    ),
    "jump_pvalue": (("feature", "bin"), "p-value of the hypothesis of no missed change", "1"),
    "jump_pvalue_adjusted": (
        ("feature", "bin"),
        "adjusted p-value of the hypothesis of no missed change",
        "1",
    ),
}
