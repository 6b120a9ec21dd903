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


def side_by_side(**ensembles):
    """Features by these names, in one result."""
    parts = []
    for name, one in ensembles.items():
        if any("level" in other.coords for other in ensembles.values()) and "level" not in one:
            none = np.full(one["grid_value"].shape, "", dtype=np.str_)
            one = one.assign_coords(level=(("feature", "grid"), none))
        parts.append(one.assign_coords(feature=[name]).drop_vars("failed"))
    whole = xr.concat(parts, "feature", data_vars="all", coords="minimal", compat="override")
    return whole.assign(failed=next(iter(ensembles.values()))["failed"])


def constant(n, size=5, **attrs):
    """A feature with one value, which has no points."""
    found = ensemble(np.full((n, size), np.nan), **attrs)
    return found.assign_coords(
        feature_kind=("feature", ["constant"]),
        grid_value=(("feature", "grid"), np.full((1, size), np.nan)),
    )


def with_levels(one, *names):
    """The same with levels in place of the points of its grid."""
    size = one.sizes["grid"]
    value = np.where(np.arange(size) < len(names), np.arange(float(size)), np.nan)
    level = np.array([*names, *[""] * (size - len(names))], dtype=np.str_)
    return one.assign_coords(
        feature_kind=("feature", ["nominal"]),
        grid_value=(("feature", "grid"), value[None]),
        level=(("feature", "grid"), level[None]),
    )
