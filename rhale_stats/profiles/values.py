"""Values of a profile between the points of its grid."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from rhale_stats.arguments.rows import as_numbers
from rhale_stats.profiles.data import check_profile, is_nominal, one_profile, pair_of
from rhale_stats.schema.features import feature_names, feature_position, given_feature
from rhale_stats.schema.levels import level_text


def predict(profile: xr.Dataset, x: Any, feature: str | int | None) -> xr.DataArray:
    """A profile at values of its feature, straight between the points of its grid; or at levels."""
    feature = given_feature(feature, "predict(effect, x, 'dose')")
    profile = check_profile(profile)
    row = one_profile(profile, feature)
    name = feature_names(profile)[feature_position(profile, feature)]
    at = x if isinstance(x, xr.DataArray) else xr.DataArray(np.asarray(x))
    if not isinstance(x, xr.DataArray) and at.ndim == 1:
        at = xr.DataArray(at.values, dims="grid")
    grid, curve = row["grid_value"].values, row["curve"].values
    if pair_of(row):
        raise ValueError(
            f"feature must be a single feature; {name!r} is a pair. tidy(profile) has the "
            f"values at its points."
        )
    if is_nominal(row):
        levels = row["level"].values.tolist()
        asked = np.vectorize(level_text, otypes=[str])(at.values)
        unknown = sorted(set(asked.ravel().tolist()) - set(levels))
        if unknown:
            raise ValueError(
                f"x must be levels of feature {name!r}, {', '.join(levels)}; got "
                f"{', '.join(unknown)}."
            )
        values = curve[np.vectorize(levels.index, otypes=[np.intp])(asked)]
        at = at.astype(str)
    elif len(grid):
        values = np.interp(as_numbers(at.values, "x"), grid, curve, np.nan, np.nan)
    else:
        values = np.full(at.shape, np.nan)
    out = xr.DataArray(values, dims=at.dims, coords=at.coords, name="curve")
    out.attrs = {**profile["curve"].attrs, "feature": name}
    return out if "x" in out.coords else out.assign_coords(x=(at.dims, at.values))
