"""The target of each standard error, in words."""

from __future__ import annotations

import xarray as xr

from rhale_stats.schema.variables import EFFECT_VARIABLES

CURVE_TARGETS = {
    "mean": "curve centred at its mean over the population, math [26]",
    "start": "zero-start curve, math [25]",
    "integral": "curve centred at its mean over the axis, math [25] with fixed loadings",
}


def curve_target(centering: str) -> str:
    """What the standard error of a curve is one of."""
    return (
        CURVE_TARGETS.get(centering) or f"curve less its value at {float(centering):g}, math [25]"
    )


TARGETS = {
    "effect_se": "effect in the bin, math [24]",
    "slope_se": "slope of the effect in the bin, White (1980); 0 where it is constant",
    "heterogeneity_se": "standard deviation of the local effects in the bin, math [24]",
    "curve_se": "",  # depends on the centring
    "cell_curve_se": "",
    "curve_se_start": CURVE_TARGETS["start"],
    "average_effect_se": "mean of the local effects over the rows",
}
SOURCE = "rows"
# What is stored for groups; otherwise it follows from the bins.
GROUP_COVARIANCES = (
    *("cell_curve_cov", "effect_cov", "slope_cov", "effect_slope_cov", "curve_cov"),
    "curve_slope_cov",
)


# Degrees of freedom of standard errors by groups, and how much those of two bins have in common.
GROUP_DEGREES = (
    *("effect_df", "effect_overlap", "slope_df", "heterogeneity_df", "curve_df"),
    *("cell_curve_df", "average_effect_df", "effective_groups", "zero_pvalue"),
    "constant_pvalue",
)


# Skewness of the errors, by which intervals are longer on one side.
SKEWNESS = ("effect_skewness", "curve_skewness", "cell_curve_skewness", "average_effect_skewness")


def source_of_errors(effect: xr.Dataset, name: str) -> str:
    """The source of the standard error of a variable: rows, replicates, or the model."""
    return str(effect[f"{name}_se"].attrs.get("source", SOURCE))


def target_of(effect: xr.Dataset, name: str) -> str:
    """The quantity that a variable estimates, in words."""
    if f"{name}_se" in effect:
        return str(effect[f"{name}_se"].attrs.get("target", name))
    return EFFECT_VARIABLES[name][1]
