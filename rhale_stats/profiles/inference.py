"""Intervals and bands of profiles (math section 5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import xarray as xr

from rhale_stats.arguments.checks import check_choice
from rhale_stats.arrays import intervals, resample
from rhale_stats.arrays import profiles as kernel
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.profiles.data import check_profile, is_nominal, one_profile, variable
from rhale_stats.profiles.rows import KEPT, check_rows
from rhale_stats.schema.features import feature_names, feature_position, given_feature, own_facts
from rhale_stats.schema.identity import check_boot_of

ERRORS = ("curve_se", "curve_cov")
NO_ERRORS = "Make it again: it is of an older version."
METHODS = ("percentile", "basic", "bca")


def with_errors(profile: xr.Dataset, parameter: str = "effect") -> xr.Dataset:
    """The profile, which has its standard errors already."""
    return check_profile(profile, parameter, needs=ERRORS, advice=NO_ERRORS)


def std_error(profile: xr.Dataset, _local: xr.Dataset | None, groups: object) -> xr.Dataset:
    """The profile itself; groups of rows are refused."""
    if groups is not None:
        raise ValueError(
            "groups must be None for profiles, whose standard errors take rows as independent. For "
            "groups of rows use bootstrap(ice, profile, groups=...) and confint(profile, boot)."
        )
    return with_errors(profile)


def vcov(profile: xr.Dataset, feature: str | int | None, of: str) -> xr.DataArray:
    """``curve_cov`` of one feature, over (grid, grid_other)."""
    feature = given_feature(feature, "vcov(effect, 'dose')")
    if of != "curve":
        raise ValueError(f"of must be 'curve' for profiles, which have no bins; got {of!r}.")
    row = one_profile(with_errors(profile), feature)
    found = row["curve_cov"]
    return xr.DataArray(
        found.values,
        {"grid": row["grid"].values, "grid_other": row["grid"].values},
        ("grid", "grid_other"),
        "covariance",
        {
            "long_name": "covariance of the curve",
            "target": found.attrs["target"],
            "source": found.attrs["source"],
            "feature": str(row["feature"].values),
        },
    )


def degrees_of(row: xr.Dataset) -> FloatArray:
    """Degrees of freedom of the curve along the grid: rows, or those of the bin, less one."""
    degrees = np.maximum(np.asarray(row["n_effective"].values, dtype=np.float64) - 1, 0.0)
    return np.array(np.broadcast_to(degrees, row.sizes["grid"]))


def padded(each: Sequence[FloatArray], n_grid: int) -> FloatArray:
    """Arrays of several features as one, NaN behind the end of the shorter ones."""
    out = np.full((len(each), n_grid, *each[0].shape[1:]), np.nan)
    for number, one in enumerate(each):
        out[number, : len(one)] = one
    return out


def confint(
    profile: xr.Dataset, boot: xr.Dataset | None, level: float, method: str | None
) -> xr.Dataset:
    """``curve_ci`` by standard errors and Student's t, or by replicates."""
    profile = with_errors(profile)
    chosen = ("normal" if boot is None else "percentile") if method is None else method
    check_choice("method", chosen, ("normal", *METHODS))
    names = feature_names(profile)
    rows = [one_profile(profile, name) for name in names]
    source = str(profile["curve_se"].attrs["source"])
    if chosen == "normal":
        how = "standard errors, Student's t"
        ends = [
            intervals.around(
                row["curve"].values,
                intervals.student(level, degrees_of(row)) * row["curve_se"].values,
            )
            for row in rows
        ]
    else:
        boot = _check_boot(profile, boot, chosen)
        how = f"bootstrap, {chosen}, expanded to Student's t"
        source = str(boot.attrs["source"])
        ends = [_of_replicates(row, boot, level, chosen) for row in rows]
    band = variable(
        "curve_ci",
        padded(ends, profile.sizes["grid"]),
        target=str(profile["curve_se"].attrs["target"]),
        source=source,
        method=how,
        kind="pointwise",
        ci_prob=level,
        ci_kind="confidence",
    )
    return profile.assign(curve_ci=band).assign_coords(ci_bound=("ci_bound", ["lower", "upper"]))


def _of_replicates(row: xr.Dataset, boot: xr.Dataset, level: float, method: str) -> FloatArray:
    """Ends of the intervals of one feature, expanded as those of effects are."""
    one = own_facts(boot.isel(feature=feature_position(boot, str(row["feature"].values))))
    n_grid = row.sizes["grid"]
    if not n_grid:
        return np.full((0, 2), np.nan)  # a constant feature has no curve
    draws = one["curve"].transpose("chain", "draw", "grid").values[..., :n_grid]
    degrees = degrees_of(row)
    n = degrees + 1
    n_units, n_strata = float(one.attrs["n_units"]), int(one.attrs["n_strata"])
    if str(boot.attrs["source"]) != "rows":
        degrees, n = np.full(n_grid, n_units - n_strata), np.full(n_grid, n_units)
    short = resample.shortfall(str(boot.attrs["scheme"]), n, degrees, n_units, n_strata)
    return intervals.of_replicates(
        draws.reshape(-1, n_grid),
        row["curve"].values,
        level,
        method,
        score=intervals.student(level, degrees) / np.sqrt(short),
        acceleration=one["curve_acceleration"].values[:n_grid] if method == "bca" else 0.0,
    )


def _check_boot(profile: xr.Dataset, boot: object, method: str) -> xr.Dataset:
    """The replicates; refused unless they are of this profile."""
    if not isinstance(boot, xr.Dataset) or "draw" not in boot.dims:
        raise TypeError(
            f"boot must be what bootstrap(ice, profile) returned, for method {method!r}; got "
            f"{type(boot).__name__}."
        )
    same = "grid_value" in boot and np.array_equal(
        boot["grid_value"].values, profile["grid_value"].values, equal_nan=True
    )
    if not same or boot.attrs.get("centering") != profile.attrs["centering"]:
        raise ValueError(
            "boot must be of this profile; it has another grid or another centring. Make it again: "
            "bootstrap(ice, profile)."
        )
    return check_boot_of(profile, boot, ["curve"], "bootstrap(ice, profile)")


def confband(profile: xr.Dataset, level: float, n_draws: int, rng: object) -> xr.Dataset:
    """``curve_band``: math [27] with ``curve_cov``."""
    profile = with_errors(profile)
    streams = np.random.default_rng(rng).spawn(profile.sizes["feature"])  # type: ignore[arg-type]
    ends = []
    for number, stream in enumerate(streams):
        row = one_profile(profile, number)
        degrees = degrees_of(row)
        # All points of a grid share their rows, and bins have rows of their own.
        shared = row["n_effective"].ndim == 0
        score = intervals.largest_deviation(
            row["curve_cov"].values,
            level,
            float(degrees.max(initial=0.0)) if shared else degrees,
            n_draws,
            stream,
        )
        half = intervals.score_quantile(score, degrees) * row["curve_se"].values
        ends.append(intervals.around(row["curve"].values, half))
    band = variable(
        "curve_band",
        padded(ends, profile.sizes["grid"]),
        target=str(profile["curve_se"].attrs["target"]),
        source=str(profile["curve_se"].attrs["source"]),
        method="largest standardised error of a normal curve",
        kind="simultaneous over the axis",
        ci_prob=level,
        ci_kind="confidence",
    )
    return profile.assign(curve_band=band).assign_coords(ci_bound=("ci_bound", ["lower", "upper"]))


# --- from ICE curves ------------------------------------------------------------------------------


class Curves(NamedTuple):
    """ICE curves of one feature, (row, grid), of the rows that have one."""

    curves: FloatArray
    grid: FloatArray
    at: kernel.Places
    weight: FloatArray | None
    frequency: bool

    @property
    def base(self) -> FloatArray:
        """Weights of the rows, equal ones if there are none."""
        return np.ones(len(self.curves)) if self.weight is None else self.weight


def curves_of(ice: xr.Dataset, feature: str | int) -> Curves:
    """Those that `ice` kept."""
    row = one_profile(ice, feature)
    x = np.asarray(row["x"].values, dtype=np.float64)
    curves = row["ice"].transpose("obs", "grid").values
    # Rows without a value have curves with missing="bin", but no place.
    there = ~np.isnan(curves).any(axis=1) & (row.sizes["grid"] > 0)
    grid = row["grid_value"].values
    if is_nominal(row):
        at = kernel.level_places(x[there].astype(np.intp), len(grid))
    else:
        at = kernel.places(grid, x[there])
    weight = row["weight"].values[there] if "weight" in row else None
    return Curves(curves[there], grid, at, weight, ice.attrs["weight_kind"] == "frequency")


def check_curves(ice: object, profile: xr.Dataset, parameter: str = "local") -> xr.Dataset:
    """ICE curves; refused unless the profile is their mean."""
    if profile.attrs["method"] in KEPT:
        return check_rows(ice, profile, parameter)
    advice = "Make it on the same grid: ice(model, X, ...)."
    found = check_profile(ice, parameter, needs=("ice", "x"), advice=advice)
    derivative = found.attrs["ice_kind"] == "derivative"
    if derivative != (profile.attrs.get("ice_kind") == "derivative"):
        raise ValueError(
            f"{parameter} and the profile must both be derivatives, or neither; take "
            f"ice(..., kind='plain') for a profile of pdp."
        )
    for name in feature_names(profile):
        own, other = one_profile(profile, name), one_profile(found, name)
        if not np.array_equal(own["grid_value"].values, other["grid_value"].values):
            raise ValueError(
                f"{parameter} must have the grid of the profile; that of feature {name!r} is "
                f"another. {advice}"
            )
        if not other.sizes["grid"]:
            continue
        curves = curves_of(found, name)
        mean = np.average(curves.curves, axis=0, weights=curves.weight)
        apart = mean - own["curve"].values
        # But for a constant, the profile is the mean of the curves.
        scale = float(np.abs(curves.curves).max())
        if profile.attrs["centering"] != "none":
            apart = apart - apart.mean()
        if len(curves.curves) == 0 or np.abs(apart).max() > 1e-9 * scale:
            raise ValueError(
                f"{parameter} must hold the curves that the profile is the mean of; for feature "
                f"{name!r} their mean is another. Make both of one model, X and weights."
            )
    return found
