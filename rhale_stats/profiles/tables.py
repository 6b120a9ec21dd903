"""Profiles as pandas frames: a line a point of the grid, or a line a feature."""

from __future__ import annotations

import numpy as np
import pandas as pd
import xarray as xr

from rhale_stats.inference.estimate import ends_in_table, student
from rhale_stats.printing.text import holds_model
from rhale_stats.profiles.data import check_profile, is_nominal, one_profile
from rhale_stats.profiles.inference import degrees_of
from rhale_stats.schema.features import feature_names


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
