"""Intervals, bands, replicates and comparisons of profiles (math section 5).

The verbs of effects hand profiles over to these. Everything comes from ``curve_cov``, whose rows
all points of the grid share, or from the rows that are kept; no model is asked again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import xarray as xr

from rhale_stats.arrays import intervals, resample
from rhale_stats.arrays import profiles as kernel
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.draws import Drawn, Resampling
from rhale_stats.identity import OF_ESTIMATE, check_boot_of, estimate_fingerprint, row_labels
from rhale_stats.profile_data import (
    check_profile,
    is_nominal,
    one_profile,
    variable,
)
from rhale_stats.profile_rows import KEPT, Outputs, Shapley, check_rows, rows_behind
from rhale_stats.schema import feature_names, feature_position, given_feature, own_facts
from rhale_stats.validate import check_choice

ERRORS = ("curve_se", "curve_cov")
NO_ERRORS = "Make it again: it is of an older version."
# Weights of this many bytes are held at once.
CHUNK_BYTES = 1 << 27
METHODS = ("percentile", "basic", "bca")
REPLICATED = ("curve", "curve_std", "heterogeneity_output", "importance")


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


def _padded(each: Sequence[FloatArray], n_grid: int) -> FloatArray:
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
        _padded(ends, profile.sizes["grid"]),
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
        _padded(ends, profile.sizes["grid"]),
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


def bootstrap(ice: xr.Dataset, profile: xr.Dataset | None, asked: Resampling) -> Drawn:
    """`bootstrap` of a profile, from its ICE curves or from the rows kept with it."""
    asked.refuse_choices_of_bins()
    profile = ice if profile is None else profile
    ice = check_curves(ice, profile)
    frequency = "weight" in ice and ice.attrs["weight_kind"] == "frequency"
    counts, n_rows = ice["weight"].values if frequency else None, ice.sizes["obs"]
    units = asked.units(n_rows, counts, np.ones(n_rows, dtype=bool), row_labels(ice))
    drawn = replicates(ice, profile, asked.scheme, units, asked.seeds)
    facts = {"grid": "fixed", OF_ESTIMATE: estimate_fingerprint(profile, ["curve"])}
    return Drawn(drawn, units, profile, facts)


def replicates(
    ice: xr.Dataset,
    profile: xr.Dataset,
    scheme: str,
    units: resample.Units,
    seeds: Sequence[np.random.Generator],
) -> xr.Dataset:
    """math [29]: the profile with the rows weighted anew, over (draw, feature, ...)."""
    names, centering = feature_names(profile), str(profile.attrs["centering"])
    n_rows, n_grid = ice.sizes["obs"], profile.sizes["grid"]
    own_rows = profile.attrs["method"] in KEPT
    features = [rows_behind(ice, name) if own_rows else curves_of(ice, name) for name in names]
    n_empty = np.zeros((len(seeds), len(names)), dtype=np.int64)
    shape = {"curve": (n_grid,), "curve_std": (n_grid,)}
    out = {
        name: np.full((len(seeds), len(names), *shape.get(name, ())), np.nan) for name in REPLICATED
    }
    size = max(1, CHUNK_BYTES // (16 * n_rows))
    derivative = ice.attrs.get("ice_kind") == "derivative"
    for first in range(0, len(seeds), size):
        streams = seeds[first : first + size]
        drawn = resample.weights_of(scheme, units, streams, n_rows)
        done = slice(first, first + len(streams))
        for number, one in enumerate(features):
            if not len(one.grid):
                continue
            found = _replicates_of(one, drawn, centering, themselves=derivative)
            known = np.isfinite(profile["curve"].values[number, : len(one.grid)])
            n_empty[done, number] = np.isnan(found.curve[:, known]).sum(axis=1)
            for name, values in zip(REPLICATED, found, strict=True):
                at: tuple[int | slice, ...] = (
                    done,
                    number,
                    *(slice(n) for n in values.shape[1:]),
                )
                out[name][at] = values
    acceleration = [_acceleration(one, centering, units) for one in features]
    data = {
        name: (("draw", *variable(name, values)[0]), values, dict(profile[name].attrs))
        for name, values in out.items()
    }
    coords = {
        name: one for name, one in profile.coords.items() if not set(one.dims) & {"obs", "ci_bound"}
    }
    if own_rows:
        dims = ("draw", *variable("n_empty", n_empty)[0])
        data["n_empty"] = variable("n_empty", n_empty, dims)
    return xr.Dataset(data, coords).assign(
        curve_acceleration=variable("curve_acceleration", _padded(acceleration, n_grid))
    )


def _replicates_of(
    one: Curves | Outputs | Shapley, drawn: FloatArray, centering: str, *, themselves: bool
) -> kernel.Replicates:
    """Statistics of one feature with its rows drawn as often as ``drawn`` (row, draw) says."""
    if not isinstance(one, Curves):
        return one.replicates(drawn, centering)
    base = one.base
    total = base.sum()
    lost = 1.0 if one.weight is None or one.frequency else base @ base / total
    correction = total / (total - lost) if total > lost else np.nan
    return kernel.replicates(
        one.curves,
        one.grid,
        one.at,
        base[:, None] * drawn,
        centering,
        correction,
        themselves=themselves,
    )


def _influences(one: Curves | Outputs | Shapley, centering: str) -> FloatArray:
    """What every row adds to the curve, (row, grid)."""
    if not isinstance(one, Curves):
        return one.influences(centering)
    return kernel.influences(one.curves, one.grid, one.at, one.weight, centering)


def _acceleration(
    one: Curves | Outputs | Shapley, centering: str, units: resample.Units
) -> FloatArray:
    """sum psi^3 / (6 (sum psi^2)^(3/2)) over units, psi the influence of a unit (Efron 1987)."""
    if not len(one.grid):
        return np.zeros(0)
    base = one.base
    psi = _influences(one, centering)
    psi = psi - np.average(psi, axis=0, weights=base)
    size = np.ones(len(base))
    if units.unit is not None:
        moved = np.zeros((int(units.unit.max()) + 1, psi.shape[1]))
        np.add.at(moved, units.unit, base[:, None] * psi)
        size = np.ones(len(moved))
    elif one.frequency and one.weight is not None:
        moved, size = psi, base
    else:
        moved = base[:, None] * psi
    second, third = size @ moved**2, size @ moved**3
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(second > 0, third / (6 * second**1.5), 0.0)


# --- two profiles ---------------------------------------------------------------------------------


class Compared(NamedTuple):
    """Values of two profiles at their common grid, with the covariance of the difference."""

    grid: FloatArray
    values: tuple[FloatArray, FloatArray]
    covariance: FloatArray
    degrees: FloatArray


def _welch(rows: tuple[xr.Dataset, xr.Dataset]) -> FloatArray:
    """Degrees of freedom of the difference of two profiles that are independent."""
    variances = [row["curve_se"].values ** 2 for row in rows]
    return intervals.welch(*variances, *map(degrees_of, rows))


def compared(
    a: xr.Dataset, b: xr.Dataset, name: str, pairs: tuple[xr.Dataset, xr.Dataset] | None
) -> Compared:
    """One feature of both; paired by the rows that both are made of."""
    rows = one_profile(a, name), one_profile(b, name)
    if a.attrs["method"] == "m_plot":
        return _compared_bins(rows, name, pairs)
    grids = [row["grid_value"].values for row in rows]
    levels = [row["level"].values.tolist() if is_nominal(row) else [] for row in rows]
    if not np.array_equal(grids[0], grids[1]) or levels[0] != levels[1]:
        raise ValueError(
            f"a and b must have one grid; those of feature {name!r} differ. Make b on the grid of "
            f"a: grid={{{name!r}: a['grid_value'].sel(feature={name!r}).dropna('grid')}}."
        )
    values = rows[0]["curve"].values, rows[1]["curve"].values
    if pairs is None:
        found = rows[0]["curve_cov"].values + rows[1]["curve_cov"].values
        return Compared(grids[0], values, found, _welch(rows))
    behind = rows_behind if a.attrs["method"] in KEPT else curves_of
    sides = [behind(one, name) for one in pairs]
    moved = [_influences(one, str(a.attrs["centering"])) for one in sides]
    error = kernel.sample(moved[0] - moved[1], sides[0].weight, frequency=sides[0].frequency)
    degrees = np.full(len(grids[0]), float(error.n_effective) - 1)
    return Compared(grids[0], values, error.covariance / error.n_effective, degrees)


def _compared_bins(
    rows: tuple[xr.Dataset, xr.Dataset], name: str, pairs: tuple[xr.Dataset, xr.Dataset] | None
) -> Compared:
    """M-plots in the same bins, those that both have rows in; at the middle of their mean places.

    Of pairs the difference is the M-plot of the difference of the outputs, math [42].
    """
    edges = [np.append(row["bin_left"].values, row["bin_right"].values[-1:]) for row in rows]
    levels = [row["level"].values.tolist() if is_nominal(row) else [] for row in rows]
    if not np.array_equal(edges[0], edges[1]) or levels[0] != levels[1]:
        raise ValueError(
            f"a and b must have the same bins; those of feature {name!r} differ. Make both with "
            f"bins=GivenBins of the same edges, and of the same levels."
        )
    known = np.all([np.isfinite(row["curve"].values) for row in rows], axis=0)
    if not known.any():
        nothing = np.zeros(0)
        return Compared(nothing, (nothing, nothing), np.zeros((0, 0)), nothing)
    grid = np.mean([row["grid_value"].values for row in rows], axis=0)[known]
    values = rows[0]["curve"].values[known], rows[1]["curve"].values[known]
    degrees = _welch(rows)
    covariance = rows[0]["curve_cov"].values + rows[1]["curve_cov"].values
    if pairs is not None:
        a, b = (rows_behind(one, name) for one in pairs)
        assert isinstance(a, Outputs), "M-plots keep outputs"
        assert isinstance(b, Outputs), "M-plots keep outputs"
        if not np.array_equal(a.cell, b.cell):
            raise ValueError(
                f"paired must have the rows in the same bins; those of feature {name!r} are in "
                f"others. Leave paired out for rows that are independent."
            )
        apart = a.means(a.values - b.values)
        covariance = kernel.bin_curve(apart, a.grid, str(pairs[0].attrs["centering"])).covariance
        degrees = np.minimum(*map(degrees_of, rows))
    return Compared(grid, values, covariance[np.ix_(known, known)], degrees[known])


def check_pairs(
    pairs: tuple[xr.Dataset, xr.Dataset], profiles: tuple[xr.Dataset, xr.Dataset]
) -> tuple[xr.Dataset, xr.Dataset]:
    """ICE curves of both profiles, of the same rows with the same weights."""
    found = [
        check_curves(one, profile, f"paired[{number}]")
        for number, (one, profile) in enumerate(zip(pairs, profiles, strict=True))
    ]
    a, b = found
    if a.sizes["obs"] != b.sizes["obs"] or not np.array_equal(a["obs"].values, b["obs"].values):
        raise ValueError(
            f"paired must be of the same rows in the same order; got {a.sizes['obs']} and "
            f"{b.sizes['obs']} rows, or other labels of them. Leave paired out for rows that are "
            f"independent."
        )
    weights = [one["weight"].values if "weight" in one else np.ones(0) for one in found]
    if (
        not np.array_equal(weights[0], weights[1])
        or a.attrs["weight_kind"] != b.attrs["weight_kind"]
    ):
        raise ValueError("paired must have the same weights; got others. Make both with one kind.")
    return a, b
