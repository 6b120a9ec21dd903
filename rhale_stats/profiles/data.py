"""What a profile is: a curve of one feature at a time along a grid, as a Dataset."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rhale_stats.schema.dimensions import check_one_part, of_part
from rhale_stats.schema.features import feature_position, own_facts
from rhale_stats.schema.kinds import PROFILE
from rhale_stats.schema.variables import OUTPUT_UNITS, X_UNITS

# Printed names of the methods.
METHOD_NAMES = {
    "pdp": "Partial dependence",
    "ice": "ICE",
    "m_plot": "M-plot",
    "shap_dependence": "SHAP dependence",
}
CENTERINGS = ("mean", "start", "integral", "none")
NOMINAL = "nominal"
CURVE, SQUARE = ("feature", "grid"), "(output units)^2"
# Name -> (dims, long_name, units) of everything that a profile may hold.
VARIABLES: dict[str, tuple[tuple[str, ...], str, str]] = {
    "curve": (CURVE, "average output along the feature", OUTPUT_UNITS),
    "curve_std": (CURVE, "spread about the curve", OUTPUT_UNITS),
    "curve_se": (CURVE, "standard error of the curve", OUTPUT_UNITS),
    "curve_cov": ((*CURVE, "grid_other"), "covariance of the curve", SQUARE),
    "curve_ci": ((*CURVE, "ci_bound"), "confidence interval of the curve", OUTPUT_UNITS),
    "curve_band": ((*CURVE, "ci_bound"), "simultaneous band of the curve", OUTPUT_UNITS),
    "curve_acceleration": (CURVE, "acceleration of the curve", "1"),
    "curve_offset": (("feature",), "constant subtracted from the curve", OUTPUT_UNITS),
    "weight_share": (CURVE, "share of the rows at the point", "1"),
    "n_obs": (("feature",), "rows", "rows"),
    "n_effective": (("feature",), "effective number of rows", "rows"),
    "n_missing": (("feature",), "rows without a value of the feature", "rows"),
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
    "ice": ((*CURVE, "obs"), "output of a row along the feature", OUTPUT_UNITS),
    "shap_value": (("feature", "obs"), "Shapley value", OUTPUT_UNITS),
    "output_value": (("obs",), "output of the row", OUTPUT_UNITS),
    "smoothing": (("feature",), "smoothing parameter, of an axis and weights of sum 1", "1"),
    "n_empty": (("feature",), "points that a replicate left without a curve", "points"),
    "bin_left": (CURVE, "left end of the bin", X_UNITS),
    "bin_right": (CURVE, "right end of the bin", X_UNITS),
    "x": (("feature", "obs"), "value of the feature", X_UNITS),
}


def variable(
    name: str,
    values: NDArray[np.generic],
    dims: Sequence[str] | None = None,
    **facts: str | int | float,
) -> tuple[tuple[str, ...], NDArray[np.generic], dict[str, str | int | float]]:
    """A variable of a profile with its dims, names, units and facts."""
    own, long_name, units = VARIABLES[name]
    return tuple(dims or own), values, {"long_name": long_name, "units": units, **facts}


def check_profile(
    dataset: object,
    parameter: str = "profile",
    *,
    needs: Sequence[str] = (),
    advice: str = "",
) -> xr.Dataset:
    """The argument itself, of one output, with the variables that it needs."""
    if not isinstance(dataset, xr.Dataset):
        raise TypeError(
            f"{parameter} must be the Dataset that pdp, ice, m_plot or shap_dependence returns; "
            f"got {type(dataset).__name__}."
        )
    if not PROFILE.holds(dataset) or "curve" not in dataset:
        raise ValueError(
            f"{parameter} must be the Dataset that pdp, ice, m_plot or shap_dependence returns; "
            f"this one holds {', '.join(str(name) for name in dataset.data_vars)}."
        )
    check_one_part(dataset, parameter)
    odd = [str(dim) for dim in dataset["curve"].dims if dim not in ("feature", "grid")]
    if odd:
        raise ValueError(
            f"{parameter} must have a curve over feature and grid; this one also has the dimension "
            f"{odd[0]!r}. Select one: {parameter}.isel({odd[0]}=0)."
        )
    absent = [name for name in needs if name not in dataset]
    if absent:
        raise ValueError(
            f"{parameter} must hold {', '.join(absent)}; this one, of "
            f"{dataset.attrs['method']}, does not. {advice}".rstrip()
        )
    return of_part(dataset)


def one_profile(profile: xr.Dataset, feature: str | int) -> xr.Dataset:
    """One feature of a profile, without the padding of its grid."""
    row = profile.isel(feature=feature_position(profile, feature))
    n_grid = int(row["n_grid"])
    of_grid: dict[Hashable, slice] = {
        dim: slice(n_grid) for dim in ("grid", "grid_other") if dim in row.dims
    }
    return own_facts(row.isel(of_grid))


def is_nominal(row: xr.Dataset) -> bool:
    """Whether the grid of one feature is levels of a category."""
    return str(row["feature_kind"].values) == NOMINAL
