"""Results of several models made from numbers, without models."""

from __future__ import annotations

import numpy as np
import xarray as xr

GRID = ("chain", "draw", "feature", "grid")


def ensemble(curve, effect=None, *, se_rows=None, estimate=None, **attrs):
    """One feature "x" with these curves (member, point), in the layout of `over_models`."""
    curve = np.asarray(curve, dtype=float)
    effect = curve if effect is None else np.asarray(effect, dtype=float)
    n, size = curve.shape
    found = {
        "curve": (GRID, curve[None, :, None]),
        "effect": (GRID, effect[None, :, None]),
        "heterogeneity": (GRID, np.abs(effect)[None, :, None]),
        "average_effect": (GRID[:3], effect.mean(axis=1)[None, :, None]),
        "importance": (GRID[:3], curve.std(axis=1)[None, :, None]),
        "failed": (GRID[:2], np.zeros((1, n))),
    }
    if se_rows is not None:
        found["curve_se_rows"] = (GRID, np.broadcast_to(se_rows, curve.shape)[None, :, None])
    estimates = {
        f"{name}_estimate": (dims[2:], values.mean(axis=(0, 1)))
        for name, (dims, values) in found.items()
        if name in ("curve", "effect", "heterogeneity", "average_effect", "importance")
    }
    if estimate is not None:
        estimates["curve_estimate"] = (("feature", "grid"), np.asarray(estimate)[None])
    return xr.Dataset(
        found,
        {
            **estimates,
            "feature": ["x"],
            "feature_kind": ("feature", ["continuous"]),
            "feature_units": ("feature", [""]),
            "grid_value": (("feature", "grid"), np.linspace(0, 1, size)[None]),
        },
        {
            "method": "over_models",
            "source": "draws",
            "variance": "spread",
            "centering": "mean",
            "n_rows": 100,
            "n_resamples": n,
            "output_name": "y",
            "output_units": "",
            "software": "rhale_stats",
            "first_failure": "",
            **attrs,
        },
    )


REFITS = {"method": "bootstrap_refit", "source": "refits", "variance": "bootstrap"}
FOLDS = {
    "method": "cross_effects",
    "source": "cross-fitting",
    "variance": "nadeau-bengio",
    "test_over_train": 1 / 4,
    "n_folds": 5,
    "n_repeats": 2,
    "n_units": 100,
}
