"""A profile of one feature as its difference from the curve at a reference value."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from rhale_stats.arguments.rows import as_numbers
from rhale_stats.arguments.times import as_values
from rhale_stats.arrays import intervals
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.inference.estimate import joint_quantiles, of_one_scale
from rhale_stats.printing.text import number_text
from rhale_stats.profiles.data import is_nominal, one_profile
from rhale_stats.profiles.inference import degrees_of
from rhale_stats.schema.features import label_of
from rhale_stats.schema.levels import level_text

N_DRAWS = 10_000


def one_relative(profile: xr.Dataset, feature: str | int, value: Any) -> xr.Dataset:
    """One feature of a profile, relative to a value of it where one is given."""
    row = one_profile(profile, feature)
    return row if value is None else relative_to(row, value)


def relative_to(row: xr.Dataset, value: Any) -> xr.Dataset:
    """A profile of one feature whose curve is 0 at a value, with intervals of the difference.

    Their variances are those of F(z) - F(r), from the covariance of the curve; between two points
    of the grid the curve at the value is interpolated. ICE curves are 0 there as well, and the
    spread is theirs; without ICE curves the spread of differences is not known, and left out.
    """
    if not is_nominal(row):
        value = float(as_numbers(as_values([value]), "reference")[0])
    weight = _place(row, value)
    text = level_text(value) if is_nominal(row) else number_text(value)
    name = label_of(row, str(row["feature"].values))
    out = row.assign(curve=row["curve"] - float(weight @ row["curve"].values))
    out = out.assign(curve_std=xr.full_like(row["curve_std"], np.nan))
    out.attrs["reference"] = f"{name} = {text}"
    if "ice" in row:
        out = _with_rows(out, weight)
    covariance = row["curve_cov"].values
    shared, variance = covariance @ weight, float(weight @ covariance @ weight)
    covariance = covariance - shared[:, None] - shared + variance
    covariance[weight == 1] = covariance[:, weight == 1] = 0.0
    degrees = degrees_of(row)
    degrees = np.minimum(degrees, degrees[weight > 0].min())
    se = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
    out = out.drop_vars(["curve_se_rows", "curve_ci_rows"], errors="ignore")
    out["curve_se"] = row["curve_se"].copy(data=se)
    for end in ("curve_ci", "curve_band"):
        if end not in row:
            continue
        level = float(row[end].attrs.get("ci_prob", 0.95))
        quantile = intervals.student(level, degrees)
        if end == "curve_band":
            joint = of_one_scale(covariance, degrees)
            quantile = joint_quantiles(joint, degrees, level, N_DRAWS, np.random.default_rng(0))
        half = np.where(se == 0, 0.0, quantile * se)
        curve = out["curve"].values
        ends = np.stack([curve - half, curve + half], -1)
        out[end] = (("grid", "ci_bound"), ends, dict(row[end].attrs))
    return out


def _with_rows(out: xr.Dataset, weight: FloatArray) -> xr.Dataset:
    """ICE curves that are 0 at the reference, and their spread."""
    curves = out["ice"].transpose("obs", "grid").values
    curves = curves - (curves @ weight)[:, None]
    is_finite = np.isfinite(curves).all(axis=1)
    rows = out["weight"].values[is_finite] if "weight" in out else None
    apart = curves[is_finite] - out["curve"].values
    spread = np.sqrt(np.average(apart**2, axis=0, weights=rows))
    attrs = out["ice"].attrs
    return out.assign(
        ice=(("obs", "grid"), curves, attrs), curve_std=out["curve_std"].copy(data=spread)
    )


def _place(row: xr.Dataset, value: Any) -> FloatArray:
    """Weights of the points of the grid in the curve at a value."""
    name, grid = str(row["feature"].values), row["grid_value"].values
    if is_nominal(row):
        names = [level_text(level) for level in row["level"].values]
        if level_text(value) not in names:
            raise ValueError(
                f"reference must be a level of {name!r}, {', '.join(map(repr, names))}; got "
                f"{value!r}."
            )
        return np.asarray(np.eye(len(grid))[names.index(level_text(value))])
    if not len(grid):
        raise ValueError(f"reference must be None for {name!r}, which is constant; got {value!r}.")
    if not grid[0] <= value <= grid[-1]:
        raise ValueError(
            f"reference must be a value of {name!r} within the grid, {number_text(grid[0])} to "
            f"{number_text(grid[-1])}; got {value!r}."
        )
    return np.array([np.interp(value, grid, unit) for unit in np.eye(len(grid))])
