"""Changes of single rows along the axes: what pictures show below a curve."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rhale_stats.arrays.binning import bin_index
from rhale_stats.arrays.changes import SHARES, Changes, changes_of_rows, round_step
from rhale_stats.explanation.curves import FeatureCurves
from rhale_stats.explanation.described import described
from rhale_stats.schema.features import feature_names, feature_position, one_feature
from rhale_stats.schema.levels import is_categorical


def row_changes(curves: FeatureCurves) -> xr.Dataset | None:
    """The group ``rows``: of features with an axis or two levels; None where there are none."""
    changes: dict[str, tuple[float, Changes]] = {}
    weight = curves.local["weight"].values if "weight" in curves.local else None
    for name in feature_names(curves.effect):
        row = one_feature(curves.effect, name)
        local = curves.local.isel(feature=feature_position(curves.local, name))
        x, g = local["x"].values, local["local_effect"].values
        edges = np.array([0.0, 1.0]) if is_categorical(row) else row["edge_value"].values
        if len(edges) < 2 or (is_categorical(row) and int(row["n_levels"]) != 2):
            continue
        usable = np.isfinite(x) & np.isfinite(g)
        number = np.zeros(usable.sum(), dtype=np.int64)
        if not is_categorical(row):
            usable &= (x >= edges[0]) & (x <= edges[-1])
            number = bin_index(edges, x[usable])
        step = 1.0 if is_categorical(row) else round_step(edges[-1] - edges[0])
        own_weight = None if weight is None else weight[usable]
        changes[name] = (step, changes_of_rows(edges, number, g[usable], own_weight))
    if not changes:
        return None
    return _dataset(changes)


def _dataset(changes: dict[str, tuple[float, Changes]]) -> xr.Dataset:
    """Windows side by side, NaN beyond those of a feature."""
    n = max(len(change.mean) for _, change in changes.values())

    def padded(name: str, scaled: bool) -> np.ndarray:
        out = []
        for step, change in changes.values():
            values = np.asarray(getattr(change, name), dtype=float)
            wide = np.full((n, *values.shape[1:]), np.nan)
            wide[: len(values)] = values * (step if scaled else 1.0)
            out.append(wide)
        return np.array(out)

    dims = ("feature", "window")
    out = xr.Dataset(
        {
            "window_left": (dims, padded("left", False)),
            "window_right": (dims, padded("right", False)),
            "n_obs": (dims, np.nan_to_num(padded("n_rows", False)).astype(np.int64)),
            "change": ((*dims, "quantile"), padded("quantiles", True)),
            "change_mean": (dims, padded("mean", True)),
            "step": ("feature", [step for step, _ in changes.values()]),
        },
        {"feature": list(changes), "quantile": list(SHARES)},
    )
    out.attrs["method"] = "changes of single rows"
    return described(out)
