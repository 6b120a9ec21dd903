"""How much the curves of single rows differ from the average curve (math [108])."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import xarray as xr

from rhale_stats.arrays.answers import Spread, spread_of_rows
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.explanation.budget import Budget
from rhale_stats.explanation.request import Request
from rhale_stats.profiles.pdp import ice

# Rows whose own curves are made, and points of each.
N_CURVES, N_POINTS = 300, 40


class RowSpread(NamedTuple):
    """The ICE curves without the single curves, and the spread of every feature."""

    profile: xr.Dataset
    spread: FloatArray
    interval: FloatArray
    n_rows: int


def row_spread(asked: Request, level: float, budget: Budget, rng: np.random.Generator) -> RowSpread:
    """ICE curves of some rows, drawn at random, of all features."""
    per_row = N_POINTS * len(asked.features)
    n_curves = budget.curves(min(N_CURVES, asked.table.n_rows), per_row, asked.row_seconds)
    X, options, rows = asked.some(n_curves, rng)
    profile = ice(
        asked.model, X, features=asked.features, n_grid=N_POINTS, options=options, progress=False
    )
    weight = None if asked.weight is None else asked.weight[rows]
    group = None if asked.groups is None else np.unique(asked.groups[rows], return_inverse=True)[1]
    found: list[Spread] = []
    for name in profile["feature"].values:
        own = profile.sel(feature=name)
        n_grid = int(own["n_grid"])
        curves = own["ice"].transpose("obs", "grid").values[:, :n_grid]
        share = own["weight_share"].values[:n_grid]
        known = ~np.isnan(curves).any(axis=1)
        found.append(
            spread_of_rows(
                np.array(curves[known]),
                share / share.sum(),
                _places(own, n_grid)[known],
                None if weight is None else weight[known],
                None if group is None else np.unique(group[known], return_inverse=True)[1],
                level,
            )
            if n_grid > 1 and known.sum() > 1
            else Spread(0.0, 0.0, 0.0)
        )
    kept = profile.drop_vars([one for one in ("ice", "x", "obs", "curve_cov") if one in profile])
    return RowSpread(
        kept,
        np.array([one.spread for one in found]),
        np.array([[one.lower, one.upper] for one in found]),
        len(rows),
    )


def _places(own: xr.Dataset, n_grid: int) -> FloatArray:
    """Where each row lies among the points of its curve, as a number between theirs."""
    x = np.nan_to_num(own["x"].values)
    found: FloatArray = np.interp(x, own["grid_value"].values[:n_grid], np.arange(float(n_grid)))
    return found
