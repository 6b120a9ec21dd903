"""All variables of effects in bins: dimensions, long names, units."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TypeAlias

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rhale_stats._version import __version__

EFFECT_UNITS = "output units per feature unit"
EFFECT_SQUARE_UNITS = "(output units per feature unit)^2"
SLOPE_UNITS = "output units per feature unit^2"
OUTPUT_UNITS = "output units"
X_UNITS = "feature units"
# Name -> (dims, long_name, units) of everything that an effects Dataset may hold.
EFFECT_VARIABLES: dict[str, tuple[tuple[str, ...], str, str]] = {
    "effect": (("feature", "bin"), "average effect in the bin", EFFECT_UNITS),
    "heterogeneity": (("feature", "bin"), "standard deviation of local effects", EFFECT_UNITS),
    "slope": (("feature", "bin"), "slope of the effect in the bin", SLOPE_UNITS),
    "n_obs": (("feature", "bin"), "rows in the bin", "rows"),
    "n_effective": (("feature", "bin"), "effective number of rows in the bin", "rows"),
    "weight_share": (("feature", "bin"), "share of the total weight in the bin", "1"),
    "x_mean": (("feature", "bin"), "mean of the feature in the bin", X_UNITS),
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
    "local_effect_error": (("feature",), "numerical error of a local effect", EFFECT_UNITS),
    "fourth_moment": (
        ("feature", "bin"),
        "fourth central moment of local effects",
        "(output units per feature unit)^4",
    ),
    "x_variance": (("feature", "bin"), "variance of the feature in the bin", "(feature units)^2"),
    "x_covariance": (
        ("feature", "bin"),
        "covariance of the feature with its local effects in the bin",
        OUTPUT_UNITS,
    ),
    "line_moments": (
        ("feature", "bin", "line_moment"),
        "mean products of the feature and the residuals in a linear bin",
        "powers of the units of the two",
    ),
    "bin_error": (
        ("feature", "bin"),
        "mean squared distance of the effect from its average over the bin",
        EFFECT_SQUARE_UNITS,
    ),
    "effect_rows": (("feature", "bin"), "mean of the local effects of the rows", EFFECT_UNITS),
    "cell_effect": (("feature", "cell"), "average effect in the cell", EFFECT_UNITS),
    "cell_curve": (("feature", "cell_edge"), "accumulated effect at the cell's edge", OUTPUT_UNITS),
    "cell_curve_se": (
        ("feature", "cell_edge"),
        "standard error of the curve at the cell's edge",
        OUTPUT_UNITS,
    ),
    "cell_share": (("feature", "cell"), "share of the total weight in the cell", "1"),
    "cell_n_effective": (("feature", "cell"), "effective number of rows in the cell", "rows"),
    "cell_degrees": (
        ("feature", "cell"),
        "degrees of freedom of the variance in the cell",
        "1",
    ),
    "cell_x_mean": (("feature", "cell"), "mean of the feature in the cell", X_UNITS),
    "cell_x_variance": (
        ("feature", "cell"),
        "variance of the feature in the cell",
        "(feature units)^2",
    ),
    "cell_x_covariance": (
        ("feature", "cell"),
        "covariance of the feature with its local effects in the cell",
        OUTPUT_UNITS,
    ),
    "cell_value": (("feature", "cell_edge"), "position of the edge of a cell", X_UNITS),
    "cell_heterogeneity": (
        ("feature", "cell"),
        "standard deviation of local effects in the cell",
        EFFECT_UNITS,
    ),
    "bin_loss": (
        ("feature", "n_bins_tried"),
        "accumulated spread of bins of one width",
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
    "curve_se_start": (
        ("feature", "edge"),
        "standard error of the zero-start curve",
        OUTPUT_UNITS,
    ),
    "average_effect_se": (
        ("feature",),
        "standard error of the average effect over the rows",
        EFFECT_UNITS,
    ),
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
    "rank_pvalue_adjusted": (
        ("feature", "bin"),
        "adjusted p-value of no bin error, by ranks",
        "1",
    ),
    "density_bias": (
        ("feature", "bin"),
        "bias of the average effect where rows are denser on one side of the bin",
        EFFECT_UNITS,
    ),
    "density_bias_se": (
        ("feature", "bin"),
        "standard error of the density bias",
        EFFECT_UNITS,
    ),
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
    "third_moment": (
        ("feature", "bin"),
        "third central moment of local effects",
        "(output units per feature unit)^3",
    ),
    "effect_cov": (
        ("feature", "bin", "bin_other"),
        "covariance of the average effects",
        EFFECT_SQUARE_UNITS,
    ),
    "curve_cov": (
        ("feature", "edge", "edge_other"),
        "covariance of the curve",
        "(output units)^2",
    ),
    "effect_slope_covariance": (
        ("feature", "bin"),
        "covariance of the average effect in the bin with its slope",
        "(output units)^2 per feature unit^3",
    ),
    "cell_curve_cov": (
        ("feature", "cell_edge", "cell_edge_other"),
        "covariance of the curve at the edges of the cells",
        "(output units)^2",
    ),
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
    "importance": (("feature",), "standard deviation of the curve over the rows", OUTPUT_UNITS),
    "aled": (("feature",), "mean absolute value of the curve over the rows", OUTPUT_UNITS),
    "aler_min": (("feature",), "smallest value of the curve", OUTPUT_UNITS),
    "aler_max": (("feature",), "largest value of the curve", OUTPUT_UNITS),
    "naled": (("feature",), "mean absolute value of the curve, per cent of outcomes", "%"),
    "naler_min": (("feature",), "smallest value of the curve, per cent of outcomes", "%"),
    "naler_max": (("feature",), "largest value of the curve, per cent of outcomes", "%"),
    "curve_mean": (("feature",), "mean of the curve over the rows", OUTPUT_UNITS),
    "n_empty": (("feature",), "bins without an estimate", "bins"),
    "n_bins": (("feature",), "number of bins", "bins"),
}
# Intervals, bands, and sizes without their bias, of what they are made of.
for _name in (
    "effect", "slope", "heterogeneity", "curve", "cell_curve", "average_effect",
    "heterogeneity_index",
    "heterogeneity_output", "importance", "aled", "aler_min", "aler_max", "naled", "naler_min",
    "naler_max", "missing_effect",
):  # fmt: skip
    _dims, _long_name, _units = EFFECT_VARIABLES[_name]
    EFFECT_VARIABLES |= {
        f"{_name}_ci": ((*_dims, "ci_bound"), f"confidence interval of {_long_name}", _units),
        f"{_name}_band": ((*_dims, "ci_bound"), f"simultaneous band of {_long_name}", _units),
        f"{_name}_corrected": (_dims, f"{_long_name}, bias-corrected", _units),
        f"{_name}_acceleration": (_dims, f"acceleration of {_long_name}", "1"),
    }
# Products that ``line_moments`` holds: of d, the distance from ``x_mean``, and of the residual r.
LINE_MOMENTS = ("d^3", "d^4", "d^2 r", "d^3 r", "d r^2", "d^2 r^2")
# Sizes of bins: nothing is there, not something unknown, where a feature has no bin.
COUNTS = (
    *("n_obs", "n_effective", "weight_share"),
    *("n_level", "n_level_effective", "level_share"),
)
# Order of the dimensions in every result; of local effects rows come first.
DIMENSIONS = (
    *("pair", "replicate", "chain", "repeat", "draw", "fold", "region", "effect_method", "output"),
    *("feature", "bin_a", "edge_a", "cell", "cell_edge", "bin", "edge", "node", "n_bins_tried"),
    *("conditioning", "feature_other", "pruning", "bin_b", "edge_b", "bin_other", "line_moment"),
    *(
        "edge_other",
        "cell_edge_other",
        "grid",
        "obs",
        "grid_other",
        "ci_bound",
        "side_a",
        "obs_background",
        "side_b",
    ),
)
Values: TypeAlias = NDArray[np.float64] | NDArray[np.int64] | NDArray[np.str_]


def variable(
    name: str, values: Values, **facts: str | int | float
) -> tuple[tuple[str, ...], Values, dict[str, str | int | float]]:
    """A variable of an effects Dataset with its dims, names, units and the estimator's facts."""
    dims, long_name, units = EFFECT_VARIABLES[name]
    return dims, values, {"long_name": long_name, "units": units, **facts}


def software() -> str:
    """Name and version of the package, as stored in every result."""
    return f"rhale_stats {__version__}"


def in_order(dataset: xr.Dataset) -> xr.Dataset:
    """The same with dimensions in their order, after `transpose` for instance."""
    local = any(name in dataset for name in ("local_effect", "difference_up"))
    order = ("obs", *DIMENSIONS) if local else DIMENSIONS
    known = [dim for dim in dict.fromkeys(order) if dim in dataset.dims]
    rank = {dim: number for number, dim in enumerate(known)}
    for one in dataset.variables.values():
        ranks = [rank[dim] for dim in one.dims if dim in rank]
        if ranks != sorted(ranks):
            return dataset.transpose(*known, ...)
    return dataset


def unit_mapping(attrs: Mapping[Hashable, object]) -> dict[str, str]:
    """Units per column from ``X.attrs["units"]``, where a DataFrame carries them."""
    units = attrs.get("units", {})
    if not isinstance(units, Mapping):
        raise TypeError(
            f"X.attrs['units'] must map column names to units; got {type(units).__name__}."
        )
    return {str(name): str(unit) for name, unit in units.items()}
