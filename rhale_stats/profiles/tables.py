"""Profiles as pandas frames: a line a point of the grid, or a line a feature."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from rhale_stats.arguments.rows import as_numbers
from rhale_stats.inference.estimate import ends_in_table, student
from rhale_stats.printing.text import holds_model
from rhale_stats.profiles.data import check_profile, is_nominal, one_profile, pair_of
from rhale_stats.profiles.inference import degrees_of
from rhale_stats.schema.features import feature_names, feature_position, given_feature
from rhale_stats.schema.levels import level_text


def tidy(profile: xr.Dataset, level: float) -> pd.DataFrame:
    """A line a point of the grid."""
    profile = check_profile(profile)
    frames = []
    for name in feature_names(profile):
        row = one_profile(profile, name)
        lines: dict[str, object] = {"term": name, "x": row["grid_value"].values}
        if "level" in row.coords:
            lines["level"] = (
                row["level"].values if is_nominal(row) else np.full(row.sizes["grid"], "")
            )
        for side in "ab" if "feature_b" in profile.coords else "":
            levels = row[f"level_{side}"].values
            values = row[f"grid_value_{side}"].values
            lines[f"x_{side}"] = levels if (levels != "").any() else values
        if "grid" in row["n_obs"].dims:
            lines["n_obs"] = row["n_obs"].values
        lines |= {"weight_share": row["weight_share"].values, "estimate": row["curve"].values}
        if "curve_se" in row:
            se = row["curve_se"].values
            ends = ends_in_table(row, "curve", se, degrees_of(row), level)
            lines |= {"std_error": se}
            if holds_model(str(row["curve_se"].attrs["source"])):
                lines |= student(row["curve"].values, se, degrees_of(row))
            lines |= {"conf_low": ends[:, 0], "conf_high": ends[:, 1]}
        frames.append(pd.DataFrame(lines | {"spread": row["curve_std"].values}))
    return pd.concat(frames, ignore_index=True)


def glance(profile: xr.Dataset, _level: float) -> pd.DataFrame:
    """A line a feature."""
    profile = check_profile(profile)
    n_obs = profile["n_obs"]
    curve = profile["curve"].transpose("feature", "grid")
    return pd.DataFrame(
        {
            "term": feature_names(profile),
            "kind": profile["feature_kind"].values.astype(str),
            "n_grid": profile["n_grid"].values,
            "n_obs": (n_obs.sum("grid") if "grid" in n_obs.dims else n_obs).values,
            "importance": profile["importance"].values,
            "heterogeneity_output": profile["heterogeneity_output"].values,
            "curve_min": curve.min("grid").values,
            "curve_max": curve.max("grid").values,
        }
    )


def predict(profile: xr.Dataset, x: Any, feature: str | int | None) -> xr.DataArray:
    """A profile at values of its feature, straight between the points of its grid; or at levels."""
    feature = given_feature(feature, "predict(effect, x, 'dose')")
    profile = check_profile(profile)
    row = one_profile(profile, feature)
    name = feature_names(profile)[feature_position(profile, feature)]
    values_at = x if isinstance(x, xr.DataArray) else xr.DataArray(np.asarray(x))
    if not isinstance(x, xr.DataArray) and values_at.ndim == 1:
        values_at = xr.DataArray(values_at.values, dims="grid")
    grid, curve = row["grid_value"].values, row["curve"].values
    if pair_of(row):
        raise ValueError(
            f"feature must be a single feature; {name!r} is a pair. tidy(profile) has the "
            f"values at its points."
        )
    if is_nominal(row):
        levels = row["level"].values.tolist()
        texts = np.vectorize(level_text, otypes=[str])(values_at.values)
        unknown = sorted(set(texts.ravel().tolist()) - set(levels))
        if unknown:
            raise ValueError(
                f"x must be levels of feature {name!r}, {', '.join(levels)}; got "
                f"{', '.join(unknown)}."
            )
        values = curve[np.vectorize(levels.index, otypes=[np.intp])(texts)]
        values_at = values_at.astype(str)
    elif len(grid):
        values = np.interp(as_numbers(values_at.values, "x"), grid, curve, np.nan, np.nan)
    else:
        values = np.full(values_at.shape, np.nan)
    out = xr.DataArray(values, dims=values_at.dims, coords=values_at.coords, name="curve")
    out.attrs = {**profile["curve"].attrs, "feature": name}
    return out if "x" in out.coords else out.assign_coords(x=(values_at.dims, values_at.values))
