"""How much the curves of single rows differ from the average curve (math [108])."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import xarray as xr

from rhale_stats.arrays.answers import Spread, spread_of_rows
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.explanation.budget import Budget
from rhale_stats.explanation.request import ExplainRequest
from rhale_stats.profiles.pdp import ice

# Rows whose own curves are made, and points of each.
N_CURVES, N_POINTS = 300, 40


class RowSpread(NamedTuple):
    """The ICE curves without the single curves, and the spread of every feature."""

    profile: xr.Dataset
    spread: FloatArray
    interval: FloatArray
    n_rows: int


def row_spread(
    request: ExplainRequest, level: float, budget: Budget, rng: np.random.Generator
) -> RowSpread:
    """ICE curves of some rows, drawn at random, of all features."""
    per_row = N_POINTS * len(request.features)
    n_curves = budget.curves(min(N_CURVES, request.table.n_rows), per_row, request.row_seconds)
    X, options, rows = request.some(n_curves, rng)
    profile = ice(
        request.model,
        X,
        features=request.features,
        n_grid=N_POINTS,
        options=options,
        progress=False,
    )
    weight = None if request.weight is None else request.weight[rows]
    group = (
        None if request.groups is None else np.unique(request.groups[rows], return_inverse=True)[1]
    )
    spreads: list[Spread] = []
    for name in profile["feature"].values:
        feature_profile = profile.sel(feature=name)
        n_grid = int(feature_profile["n_grid"])
        curves = feature_profile["ice"].transpose("obs", "grid").values[:, :n_grid]
        share = feature_profile["weight_share"].values[:n_grid]
        complete = ~np.isnan(curves).any(axis=1)
        spreads.append(
            spread_of_rows(
                np.array(curves[complete]),
                share / share.sum(),
                _places(feature_profile, n_grid)[complete],
                None if weight is None else weight[complete],
                None if group is None else np.unique(group[complete], return_inverse=True)[1],
                level,
            )
            if n_grid > 1 and complete.sum() > 1
            else Spread(0.0, 0.0, 0.0)
        )
    without_rows = profile.drop_vars(
        [variable for variable in ("ice", "x", "obs", "curve_cov") if variable in profile]
    )
    return RowSpread(
        without_rows,
        np.array([spread.spread for spread in spreads]),
        np.array([[spread.lower, spread.upper] for spread in spreads]),
        len(rows),
    )


def _places(profile: xr.Dataset, n_grid: int) -> FloatArray:
    """Where each row lies among the points of its curve, as a number between theirs."""
    x = np.nan_to_num(profile["x"].values)
    places: FloatArray = np.interp(
        x, profile["grid_value"].values[:n_grid], np.arange(float(n_grid))
    )
    return places
