"""Bootstrap of effects with bins chosen again in every replicate (math [30])."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rhale_stats.arguments.progress import progress_bar
from rhale_stats.arrays import resample
from rhale_stats.arrays.binning import bin_index
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.bins.description import for_share_of_rows, rule_of
from rhale_stats.bins.rule import BinRule
from rhale_stats.effects.errors import values_at
from rhale_stats.effects.rhale import quiet_rhale
from rhale_stats.inference.draws import Resampling
from rhale_stats.parallel import cpus, in_threads
from rhale_stats.schema.features import feature_names, feature_position, one_feature
from rhale_stats.schema.kinds import EFFECT, REPLICATES
from rhale_stats.schema.variables import GRID_VALUE, variable


def with_chosen_bins(
    local: xr.Dataset, effect: xr.Dataset, units: resample.ResampledUnits, request: Resampling
) -> xr.Dataset:
    """Replicates with edges of their own, on a grid of each feature, over (draw, feature, ...)."""
    scheme, seeds, n_grid = request.scheme, request.seeds, request.n_grid
    rule = rule_of(str(effect.attrs["bin_rule"]), str(effect.attrs["bin_parameters"]))
    centering = str(effect.attrs["centering"])
    weighting = str(effect.attrs.get("weighting", "rows"))
    names = feature_names(effect)
    local = local.isel(feature=[feature_position(local, name) for name in names])
    grid = common_grid(effect, n_grid)
    base = local["weight"].values if "weight" in local else np.ones(local.sizes["obs"])
    shape = (len(seeds), len(names), n_grid)
    out = {name: np.full(shape, np.nan) for name in ("effect", "heterogeneity", "curve")}
    n_bins = np.zeros(shape[:2])
    hits = np.zeros((len(seeds), len(names), n_grid - 1), dtype=bool)

    def replicate(draw: int) -> None:
        weight = base * resample.draw_weights(scheme, units, seeds[draw])
        sample = local.assign(weight=("obs", weight)).assign_attrs(weight_kind="precision")
        own_rule = for_share_of_rows(rule, _n_effective(weight) / _n_effective(base))
        estimates = _rebinned_replicate(sample, own_rule, centering, weighting, grid)
        n_bins[draw] = estimates.pop("n_bins")
        hits[draw] = estimates.pop("hits")
        for name, values in estimates.items():
            out[name][draw] = values

    with progress_bar(len(seeds), "bootstrap", "replicate", progress=request.progress) as bar:
        in_threads(replicate, range(len(seeds)), cpus(), lambda _: bar.update(1))
    on_grid = ("draw", "feature", "grid")
    return xr.Dataset(
        {
            **{name: variable(name, values, EFFECT, on_grid) for name, values in out.items()},
            "n_bins": variable("n_bins", n_bins, EFFECT, on_grid[:2]),
            "edge_frequency": variable("edge_frequency", hits.mean(axis=0), REPLICATES),
        },
        {
            "feature": effect["feature"].variable,
            "feature_kind": effect["feature_kind"].variable,
            "feature_units": effect["feature_units"].variable,
            "grid_value": (("feature", "grid"), grid, GRID_VALUE),
        },
    )


def _n_effective(weight: FloatArray) -> float:
    """Kish's effective number of rows; about half of all rows in a bootstrap sample."""
    return float(weight.sum() ** 2 / np.sum(weight**2))


def _rebinned_replicate(
    local: xr.Dataset, rule: BinRule, centering: str, weighting: str, grid: FloatArray
) -> dict[str, NDArray[Any]]:
    """One replicate with edges of its own, evaluated on the grids of the features."""
    drawn = local.isel(obs=local["weight"].values > 0)
    effect = quiet_rhale(
        drawn, bins=rule, centering=centering, weighting=weighting, has_spread=False
    )
    shape = grid.shape
    out: dict[str, NDArray[Any]] = evaluated(effect, grid)
    out["hits"] = np.zeros((shape[0], shape[1] - 1), dtype=bool)
    out["n_bins"] = effect["n_bins"].values.astype(np.float64)
    for number in np.flatnonzero(effect["n_bins"].values):
        inner = one_feature(effect, int(number))["edge_value"].values[1:-1]
        out["hits"][number, bin_index(grid[number], inner)] = True
    return out


def common_grid(effect: xr.Dataset, n_grid: int) -> FloatArray:
    """Points along the axis of every feature, (feature, grid); NaN for a constant one."""
    grid = np.full((effect.sizes["feature"], n_grid), np.nan)
    for number in np.flatnonzero(effect["n_bins"].values):
        edges = one_feature(effect, int(number))["edge_value"].values
        grid[number] = np.linspace(edges[0], edges[-1], n_grid)
    return grid


def evaluated(effect: xr.Dataset, grid: FloatArray) -> dict[str, FloatArray]:
    """Effect, heterogeneity and curve at points of (feature, grid); NaN outside the bins."""
    out = {name: np.full(grid.shape, np.nan) for name in ("effect", "heterogeneity", "curve")}
    # Selection of a feature is slow with many variables, so only these are kept.
    needed = (*out, "slope", "cell_effect", "cell_curve", "cell_value")
    effect = effect[[name for name in needed if name in effect]]
    for number in np.flatnonzero(effect["n_bins"].values):
        for name, values in values_at(one_feature(effect, int(number)), grid[number]).items():
            out[name][number] = values
    return out
