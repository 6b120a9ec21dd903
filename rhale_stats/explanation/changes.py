"""Changes of single rows along the axes: what pictures show below a curve."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rhale_stats.arrays.binning import bin_index
from rhale_stats.arrays.changes import SHARES, Changes, changes_of_rows, round_step
from rhale_stats.explanation.curves import Curves
from rhale_stats.explanation.described import described
from rhale_stats.schema.features import feature_names, feature_position, one_feature
from rhale_stats.schema.levels import is_categorical


def row_changes(curves: Curves) -> xr.Dataset | None:
    """The group ``rows``: of features with an axis or two levels; None where there are none."""
    found: dict[str, tuple[float, Changes]] = {}
    weight = curves.local["weight"].values if "weight" in curves.local else None
    for name in feature_names(curves.effect):
        row = one_feature(curves.effect, name)
        own = curves.local.isel(feature=feature_position(curves.local, name))
        x, g = own["x"].values, own["local_effect"].values
        edges = np.array([0.0, 1.0]) if is_categorical(row) else row["edge_value"].values
        if len(edges) < 2 or (is_categorical(row) and int(row["n_levels"]) != 2):
            continue
        known = np.isfinite(x) & np.isfinite(g)
        number = np.zeros(known.sum(), dtype=np.int64)
        if not is_categorical(row):
            known &= (x >= edges[0]) & (x <= edges[-1])
            number = bin_index(edges, x[known])
        step = 1.0 if is_categorical(row) else round_step(edges[-1] - edges[0])
        own_weight = None if weight is None else weight[known]
        found[name] = (step, changes_of_rows(edges, number, g[known], own_weight))
    if not found:
        return None
    return _dataset(found)


def _dataset(found: dict[str, tuple[float, Changes]]) -> xr.Dataset:
    """Windows side by side, NaN beyond those of a feature."""
    n = max(len(one.mean) for _, one in found.values())

    def padded(name: str, scaled: bool) -> np.ndarray:
        out = []
        for step, one in found.values():
            values = np.asarray(getattr(one, name), dtype=float)
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
            "step": ("feature", [step for step, _ in found.values()]),
        },
        {"feature": list(found), "quantile": list(SHARES)},
    )
    out.attrs["method"] = "changes of single rows"
    return described(out)
