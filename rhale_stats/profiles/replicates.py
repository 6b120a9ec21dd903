"""Bootstrap of profiles (math [29])."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from rhale_stats.arrays import resample
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.inference.draws import Drawn, Resampling
from rhale_stats.profiles.data import variable
from rhale_stats.profiles.inference import check_curves
from rhale_stats.profiles.rows import KEPT, BinnedOutputs, Curves, Shapley, rows_behind
from rhale_stats.schema.features import feature_names
from rhale_stats.schema.identity import OF_ESTIMATE, estimate_fingerprint, row_labels
from rhale_stats.schema.padding import padded

# Weights of this many bytes are held at once.
CHUNK_BYTES = 1 << 27
REPLICATED = ("curve", "curve_std", "heterogeneity_output", "importance")


def bootstrap(ice: xr.Dataset, profile: xr.Dataset | None, resampling: Resampling) -> Drawn:
    """`bootstrap` of a profile, from its ICE curves or from the rows kept with it."""
    resampling.refuse_choices_of_bins()
    profile = ice if profile is None else profile
    ice = check_curves(ice, profile)
    frequency = "weight" in ice and ice.attrs["weight_kind"] == "frequency"
    counts, n_rows = ice["weight"].values if frequency else None, ice.sizes["obs"]
    units = resampling.units(n_rows, counts, np.ones(n_rows, dtype=bool), row_labels(ice))
    drawn = replicates(ice, profile, resampling.scheme, units, resampling.seeds)
    facts = {"grid": "fixed", OF_ESTIMATE: estimate_fingerprint(profile, ["curve"])}
    return Drawn(drawn, units, profile, facts)


def replicates(
    ice: xr.Dataset,
    profile: xr.Dataset,
    scheme: str,
    units: resample.ResampledUnits,
    seeds: Sequence[np.random.Generator],
) -> xr.Dataset:
    """math [29]: the profile with the rows weighted anew, over (draw, feature, ...)."""
    names, centering = feature_names(profile), str(profile.attrs["centering"])
    n_rows, n_grid = ice.sizes["obs"], profile.sizes["grid"]
    over_row_sets = profile.attrs["method"] in KEPT
    features = [rows_behind(ice, name) for name in names]
    n_empty = np.zeros((len(seeds), len(names)), dtype=np.int64)
    shape = {"curve": (n_grid,), "curve_std": (n_grid,)}
    out = {
        name: np.full((len(seeds), len(names), *shape.get(name, ())), np.nan) for name in REPLICATED
    }
    size = max(1, CHUNK_BYTES // (16 * n_rows))
    for first in range(0, len(seeds), size):
        streams = seeds[first : first + size]
        drawn = resample.weights_of(scheme, units, streams, n_rows)
        done = slice(first, first + len(streams))
        for number, rows_of_feature in enumerate(features):
            if not len(rows_of_feature.grid):
                continue
            drawn_estimates = rows_of_feature.replicates(drawn, centering)
            has_curve = np.isfinite(profile["curve"].values[number, : len(rows_of_feature.grid)])
            n_empty[done, number] = np.isnan(drawn_estimates.curve[:, has_curve]).sum(axis=1)
            for name, values in zip(REPLICATED, drawn_estimates, strict=True):
                place: tuple[int | slice, ...] = (
                    done,
                    number,
                    *(slice(n) for n in values.shape[1:]),
                )
                out[name][place] = values
    acceleration = [
        _acceleration(rows_of_feature, centering, units) for rows_of_feature in features
    ]
    data = {
        name: (("draw", *variable(name, values)[0]), values, dict(profile[name].attrs))
        for name, values in out.items()
    }
    coords = {
        name: rows_of_feature
        for name, rows_of_feature in profile.coords.items()
        if not set(rows_of_feature.dims) & {"obs", "ci_bound"}
    }
    if over_row_sets:
        dims = ("draw", *variable("n_empty", n_empty)[0])
        data["n_empty"] = variable("n_empty", n_empty, dims)
    return xr.Dataset(data, coords).assign(
        curve_acceleration=variable("curve_acceleration", padded(acceleration, (n_grid,)))
    )


def _acceleration(
    rows_of_feature: Curves | BinnedOutputs | Shapley,
    centering: str,
    units: resample.ResampledUnits,
) -> FloatArray:
    """sum psi^3 / (6 (sum psi^2)^(3/2)) over units, psi the influence of a unit (Efron 1987)."""
    if not len(rows_of_feature.grid):
        return np.zeros(0)
    base = rows_of_feature.base
    psi = rows_of_feature.influences(centering)
    psi = psi - np.average(psi, axis=0, weights=base)
    size = np.ones(len(base))
    if units.unit is not None:
        moved = np.zeros((int(units.unit.max()) + 1, psi.shape[1]))
        np.add.at(moved, units.unit, base[:, None] * psi)
        size = np.ones(len(moved))
    elif rows_of_feature.frequency and rows_of_feature.weight is not None:
        moved, size = psi, base
    else:
        moved = base[:, None] * psi
    second, third = size @ moved**2, size @ moved**3
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(second > 0, third / (6 * second**1.5), 0.0)
