"""One table of the variables of all results: dimensions, long names, units.

A new variable is a line here; `variable` of `schema/variables.py` makes it. What a result knows of
itself only when it is made, such as the name of a feature, is passed to that function.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from rhale_stats.schema.kinds import (
    AVERAGES,
    EFFECT,
    H_STATISTICS,
    INTERACTIONS,
    PROFILE,
    REPLICATES,
    SURFACE,
    TREE,
    Kind,
)

# Name -> (dims, long_name, units).
Table: TypeAlias = dict[str, tuple[tuple[str, ...], str, str]]
EFFECT_UNITS = "output units per feature unit"
EFFECT_SQUARE_UNITS = "(output units per feature unit)^2"
SLOPE_UNITS = "output units per feature unit^2"
OUTPUT_UNITS = "output units"
X_UNITS = "feature units"
AT_EDGES_OF_CELLS = ("feature", "edge")
# What of a standard error comes from the rows, and from the parameters of the model.
SE_PARTS = {"rows": "by the rows", "model": "by the parameters of the model"}

ERRORS: Table = {
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
    "spread_df": (AT_EDGES_OF_CELLS, "degrees of freedom of the standard error of the spread", "1"),
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
    **{
        f"{name}_directions": (
            ("feature", dim, "part", "component"),
            f"change of the {what} along directions of the parameters, and what rows share with it",
            units,
        )
        for name, dim, what, units in (
            ("curve", "edge", "curve", OUTPUT_UNITS),
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


TERM, OF_AVERAGE = ("term",), "output units, or these per feature unit"
AVERAGE_VARIABLES: Table = {
    "average": (TERM, "average over the rows", OF_AVERAGE),
    "average_se": (TERM, "standard error of the average", OF_AVERAGE),
    **{
        f"average_se_{part}": (TERM, f"standard error of the average, {origin}", OF_AVERAGE)
        for part, origin in SE_PARTS.items()
    },
    "average_df": (TERM, "degrees of freedom of the average", "1"),
    "average_cov": (
        ("term", "term_other"),
        "covariance of the averages",
        "products of the units of two averages",
    ),
    "average_ci": (
        ("term", "ci_bound"),
        "confidence interval of average over the rows",
        OF_AVERAGE,
    ),
    "p_value_adjusted": (TERM, "p-value, adjusted for the number of hypotheses", "1"),
    "p_equivalence": (TERM, "p-value of two one-sided tests of equivalence", "1"),
    "n_obs": ((), "rows", "rows"),
    "weight_share": ((), "share of the rows", "1"),
}


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


# A cell is at the edges where it begins; at the last ones there is none.
AT_EDGES = ("edge_a", "edge_b")
SURFACE_VARIABLES: Table = {
    "second_effect": (AT_EDGES, "mean second difference in the cell", OUTPUT_UNITS),
    "heterogeneity": (AT_EDGES, "standard deviation of second differences", OUTPUT_UNITS),
    "n_obs": (AT_EDGES, "rows in the cell", "rows"),
    "n_effective": (AT_EDGES, "effective number of rows in the cell", "rows"),
    "surface": (AT_EDGES, "second-order effect", OUTPUT_UNITS),
    "second_difference": (("obs", "side"), "second difference of the output", OUTPUT_UNITS),
    "second_difference_error": ((), "numerical error of a second difference", OUTPUT_UNITS),
    "weight": (("obs",), "row weight", "1"),
}
for _stem, _what in (
    ("second_effect", "mean second difference"),
    ("surface", "second-order effect"),
):
    _error = f"standard error of the {_what}"
    SURFACE_VARIABLES |= {
        f"{_stem}_se": (AT_EDGES, _error, OUTPUT_UNITS),
        f"{_stem}_skewness": (AT_EDGES, f"skewness of the error of the {_what}", "1"),
        f"{_stem}_df": (AT_EDGES, f"degrees of freedom of the {_what}", "1"),
        f"{_stem}_change": (
            ("direction", *AT_EDGES),
            f"change of the {_what} along a direction of the parameters",
            OUTPUT_UNITS,
        ),
        **{
            f"{_stem}_se_{part}": (AT_EDGES, f"{_error}, {origin}", OUTPUT_UNITS)
            for part, origin in SE_PARTS.items()
        },
    }
for _side in "ab":
    SURFACE_VARIABLES |= {
        f"edge_{_side}": ((f"edge_{_side}",), "edge of the bins", X_UNITS),
        f"x_{_side}": (("obs",), "value of the feature", X_UNITS),
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
for _suffix, _along, _what in (
    ("", (), "all interactions"),
    ("_overall", ("feature",), "interactions of the feature"),
    ("_pairwise", ("feature", "feature_other"), "interaction of the pair"),
):
    H_VARIABLES |= {
        f"h2{_suffix}": (_along, f"H², share of the variance by {_what}", "1"),
        f"h{_suffix}": (_along, f"size of {_what}", OUTPUT_UNITS),
    }
    for _stem, _units in (("h2", "1"), ("h", OUTPUT_UNITS)):
        _text = H_VARIABLES[f"{_stem}{_suffix}"][1]
        H_VARIABLES |= {
            f"{_stem}{_suffix}_df": (_along, f"degrees of freedom of {_text}", "1"),
            **{
                f"{_stem}{_suffix}_se_{part}": (
                    _along,
                    f"standard error of {_text}, {origin}",
                    _units,
                )
                for part, origin in SE_PARTS.items()
            },
        }


ESTIMATES: Table = {
    "effect": (("feature", "bin"), "average effect in the bin", EFFECT_UNITS),
    "heterogeneity": (("feature", "bin"), "standard deviation of local effects", EFFECT_UNITS),
    "slope": (("feature", "bin"), "slope of the effect in the bin", SLOPE_UNITS),
    "spread": (
        AT_EDGES_OF_CELLS,
        "spread of the local effects to the right of the edge",
        EFFECT_UNITS,
    ),
    "spread_se": (AT_EDGES_OF_CELLS, "standard error of the spread", EFFECT_UNITS),
    "n_obs": (("feature", "bin"), "rows in the bin", "rows"),
    "n_effective": (("feature", "bin"), "effective number of rows in the bin", "rows"),
    "weight_share": (("feature", "bin"), "share of the total weight in the bin", "1"),
    "x_mean": (("feature", "bin"), "mean of the feature in the bin", X_UNITS),
    "bin_left": (("feature", "bin"), "left edge of the bin", X_UNITS),
    "bin_right": (("feature", "bin"), "right edge of the bin", X_UNITS),
    "edge_value": (("feature", "edge"), "position of the edge", X_UNITS),
    "level_share": (("feature", "edge"), "share of the total weight at the level", "1"),
    "n_level": (("feature", "edge"), "rows at the level", "rows"),
    "n_level_effective": (("feature", "edge"), "effective number of rows at the level", "rows"),
    "curve": (("feature", "edge"), "accumulated effect", OUTPUT_UNITS),
    "curve_std": (("feature", "edge"), "spread of the curve, independent bins", OUTPUT_UNITS),
    "curve_std_sum": (("feature", "edge"), "spread of the curve, comonotone bins", OUTPUT_UNITS),
    "curve_offset": (("feature",), "constant subtracted from the zero-start curve", OUTPUT_UNITS),
    "heterogeneity_output": (
        ("feature",),
        "heterogeneity times the standard deviation of the feature",
        OUTPUT_UNITS,
    ),
    "heterogeneity_index": (
        ("feature",),
        "heterogeneity index",
        "(output units)^2 per feature unit",
    ),
    "average_effect": (("feature",), "average effect over the rows", EFFECT_UNITS),
    "n_missing": (("feature",), "rows without a value of the feature", "rows"),
    "n_beyond": (("feature",), "rows beyond the bins, left out of the feature", "rows"),
    "missing_effect": (
        ("feature",),
        "change of the output as the value goes missing, in rows where it is",
        OUTPUT_UNITS,
    ),
    "missing_effect_se": (("feature",), "standard error of the missing effect", OUTPUT_UNITS),
    "missing_spread": (("feature",), "standard deviation of the missing effect", OUTPUT_UNITS),
    "missing_reference": (("feature",), "value with which a missing value is compared", X_UNITS),
    "missing_curve": (
        ("feature",),
        "output of rows without a value, on the scale of the curve",
        OUTPUT_UNITS,
    ),
    "local_effect_left": (
        ("obs", "feature"),
        "slope across the cell to the left of a row on an edge",
        EFFECT_UNITS,
    ),
    "local_effect_error": (("feature",), "numerical error of a local effect", EFFECT_UNITS),
    "local_effect_bias": (
        ("feature",),
        "numerical error that local effects have in common",
        EFFECT_UNITS,
    ),
    "numerical_error": (
        ("feature",),
        "numerical error of means of local effects, part of standard errors",
        EFFECT_UNITS,
    ),
    "squares": (
        ("feature", "bin", "square_moment"),
        "mean products of the feature and the residuals in the bin, by squared weights",
        "powers of the units of the two",
    ),
    "robust_variance": (
        ("feature", "bin"),
        "variance of local effects that standard errors of weighted means need",
        EFFECT_SQUARE_UNITS,
    ),
    "robust_third_cumulant": (
        ("feature", "bin"),
        "third cumulant of local effects that the skewness of weighted means needs",
        "(output units per feature unit)^3",
    ),
    "skewness_sign": (
        ("feature",),
        "sign of the skewness of local effects by weight, 0 where it is not clear",
        "1",
    ),
    "error_rows": (
        ("feature", "bin"),
        "rows of equal weight with the same degrees of freedom",
        "rows",
    ),
    "weight_products": (
        ("feature", "bin", "weight_product"),
        "sums of powers of the weights and the residuals in the bin",
        "powers of the units of local effects",
    ),
    "weight_largest": (("feature",), "largest weight, by which the others are divided", "1"),
    "cell_weight_products": (
        ("feature", "edge", "weight_product"),
        "sums of powers of the weights and the residuals in the cell",
        "powers of the units of local effects",
    ),
    "cell_squares": (
        ("feature", "edge", "square_moment"),
        "mean products of the feature and the residuals in the cell, by squared weights",
        "powers of the units of the two",
    ),
    "cell_robust_variance": (
        ("feature", "edge"),
        "variance of local effects in the cell that standard errors of weighted means need",
        EFFECT_SQUARE_UNITS,
    ),
    "cell_robust_third_cumulant": (
        ("feature", "edge"),
        "third cumulant of local effects in the cell that the skewness of weighted means needs",
        "(output units per feature unit)^3",
    ),
    "bin_error": (
        ("feature", "bin"),
        "mean squared distance of the effect from its average over the bin",
        EFFECT_SQUARE_UNITS,
    ),
    "cell_effect": (("feature", "cell"), "average effect in the cell", EFFECT_UNITS),
    "moments": (
        ("feature", "edge", "moment"),
        "sums over the rows of the cell to the right of the edge, and means",
        "products of those of weights, the feature and local effects",
    ),
    "cell_degrees": (("feature", "edge"), "degrees of freedom of the variance in the cell", "1"),
    "cell_value": (("feature", "cell_edge"), "position of the edge of a cell", X_UNITS),
    "cell_heterogeneity": (
        ("feature", "cell"),
        "standard deviation of local effects in the cell",
        EFFECT_UNITS,
    ),
    "bin_loss": (
        ("feature", "n_bins_tried"),
        "accumulated spread of equal-width bins",
        OUTPUT_UNITS,
    ),
    "importance": (("feature",), "standard deviation of the curve over the rows", OUTPUT_UNITS),
    "aled": (("feature",), "mean absolute value of the curve over the rows", OUTPUT_UNITS),
    "aler_min": (("feature",), "smallest value of the curve", OUTPUT_UNITS),
    "aler_max": (("feature",), "largest value of the curve", OUTPUT_UNITS),
    "naled": (("feature",), "mean absolute value of the curve, per cent of outcomes", "%"),
    "naler_min": (("feature",), "smallest value of the curve, per cent of outcomes", "%"),
    "naler_max": (("feature",), "largest value of the curve, per cent of outcomes", "%"),
    "importance_p_value": (("feature",), "p-value of a flat curve", "1"),
    "curve_mean": (("feature",), "mean of the curve over the rows", OUTPUT_UNITS),
    "n_empty": (("feature",), "bins without an estimate", "bins"),
    "n_bins": (("feature",), "number of bins", "bins"),
}


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


NODE = ("node",)
NODE_VARIABLES: Table = {
    "parent": (NODE, "node that this one is part of, -1 for the root", "1"),
    "depth": (NODE, "splits above the node", "1"),
    "condition": (NODE, "what its rows have, of those of its parent", "1"),
    "condition_feature": (NODE, "column of the condition", "1"),
    "operator": (NODE, "how the condition compares", "1"),
    "threshold": (NODE, "number that the condition compares with", "units of the column"),
    "levels": (NODE, "levels that meet the condition, as JSON", "1"),
    "rule": (NODE, "what the rows of the node have", "1"),
    "n_obs": (NODE, "rows of the node", "rows"),
    "weight_share": (NODE, "share of the total weight in the node", "1"),
    "loss": (NODE, "heterogeneity left in the bins of the node", ""),
    "loss_drop": (NODE, "relative drop of the loss by the split of the node", "1"),
    "best": (NODE, "best split found", "1"),
    "best_drop": (NODE, "relative drop of the loss by the best split found", "1"),
    "pvalue": (
        NODE,
        "p-value of the hypothesis that no column conditions the mean of the local effects",
        "1",
    ),
    "region": (NODE, "number of the region, -1 where the node was split", "1"),
}
OF_PAIRS = ("feature", "conditioning")
INTERACTION_VARIABLES: Table = {
    "loss_drop": (OF_PAIRS, "relative drop of the loss by the best split", "1"),
    "best": (OF_PAIRS, "best split", "1"),
    "pvalue": (
        OF_PAIRS,
        "p-value of the hypothesis that the column does not condition the effect",
        "1",
    ),
    "pvalue_adjusted": (OF_PAIRS, "adjusted p-value", "1"),
    "loss": (("feature",), NODE_VARIABLES["loss"][1], ""),
}


EFFECT_VARIABLES: Table = ESTIMATES | ERRORS | CHECKS
# What of a standard error comes from the rows, and from the parameters of the model.
WITH_PARTS = ("effect", "slope", "heterogeneity", "curve", "average_effect", "spread")
EFFECT_VARIABLES |= {
    f"{name}_{part}": (dims, f"{long_name}, {origin}", units)
    for name, (dims, long_name, units) in EFFECT_VARIABLES.items()
    for part, origin in SE_PARTS.items()
    if name.endswith("_se") and name.removesuffix("_se") in WITH_PARTS
}
# Intervals, bands, and sizes without their bias, of what they are made of.
for _name in (
    "effect", "slope", "heterogeneity", "spread", "curve", "average_effect",
    "heterogeneity_index",
    "heterogeneity_output", "importance", "aled", "aler_min", "aler_max", "naled", "naler_min",
    "naler_max", "missing_effect",
):  # fmt: skip
    _dims, _long_name, _units = EFFECT_VARIABLES[_name]
    EFFECT_VARIABLES |= {
        f"{_name}_ci": ((*_dims, "ci_bound"), f"confidence interval of {_long_name}", _units),
        f"{_name}_band": ((*_dims, "ci_bound"), f"simultaneous band of {_long_name}", _units),
        f"{_name}_corrected": (_dims, f"{_long_name}, without the part of noise", _units),
        f"{_name}_acceleration": (_dims, f"acceleration of {_long_name}", "1"),
    }
# Sizes of columns without information, what they say of the sizes of features (math [70]).
for _name in (
    "importance", "aled", "aler_min", "aler_max", "naled", "naler_min", "naler_max",
    "heterogeneity_output", "heterogeneity_index",
):  # fmt: skip
    _dims, _long_name, _units = EFFECT_VARIABLES[_name]
    EFFECT_VARIABLES |= {
        f"{_name}_chance": (("replicate", *_dims), f"{_long_name}, by chance", _units),
        f"{_name}_chance_p_value": (_dims, f"p-value of {_long_name}, by refits", "1"),
        f"{_name}_threshold": (_dims, f"threshold of {_long_name}", _units),
    }
# Replicates with bins of their own; all others are of the variables of their effects.
REBIN_VARIABLES: Table = {
    "edge_frequency": (
        ("feature", "grid_cell"),
        "share of replicates with an edge in the cell",
        "1",
    )
}
VARIABLES: Mapping[Kind, Table] = {
    AVERAGES: AVERAGE_VARIABLES,
    EFFECT: EFFECT_VARIABLES,
    PROFILE: PROFILE_VARIABLES,
    SURFACE: SURFACE_VARIABLES,
    H_STATISTICS: H_VARIABLES,
    TREE: NODE_VARIABLES,
    INTERACTIONS: INTERACTION_VARIABLES,
    REPLICATES: EFFECT_VARIABLES | REBIN_VARIABLES,
}
