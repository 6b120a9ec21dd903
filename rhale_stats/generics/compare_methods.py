"""Effects of one feature by several methods, side by side on one grid and centred alike."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from rhale_stats.arrays.moments import FloatArray
from rhale_stats.generics.errors import std_error
from rhale_stats.generics.values import predict
from rhale_stats.profiles.data import METHOD_NAMES, check_profile, is_nominal, one_profile
from rhale_stats.schema.checks import check_effect
from rhale_stats.schema.door import checked
from rhale_stats.schema.features import (
    feature_names,
    feature_position,
    methods_of,
    one_feature,
    units_of,
)
from rhale_stats.schema.kinds import PROFILE
from rhale_stats.schema.levels import is_categorical, level_names
from rhale_stats.schema.variables import OUTPUT_UNITS, X_UNITS, software

SPREADS = {
    "pdp": "standard deviation of the centred ICE curves",
    "ice": "standard deviation of the centred ICE curves",
    "m_plot": "standard deviation of the output in the bin",
    "shap_dependence": "root mean square of the Shapley values about the spline",
    "effect": "heterogeneity, accumulated (comonotone)",
}
# Points of a grid that no profile gives.
N_POINTS = 101
LOCAL_EFFECTS = {"finite_difference": "ALE", "ale": "ALE"}


@checked
def compare_methods(
    results: Sequence[xr.Dataset],
    feature: str | int,
    *,
    names: Sequence[str] | None = None,
) -> xr.Dataset:
    r"""Curves of one feature by several methods, on one grid and centred alike.

    Parameters
    ----------
    results : sequence of Datasets
        What `rhale`, `ale`, `pdp`, `ice`, `m_plot` and `shap_dependence` returned, of one output
        each, in any order. The first profile among them gives the grid and the rows' places;
        without one these are all edges of the bins, and points between them. Levels of a category
        are found by their names and stand in the order of the first result, those that only later
        ones have at the end.
    feature : str or int
        Name or number.
    names : sequence of str, optional
        Of the methods. By default "Partial dependence", "ICE", "M-plot", "SHAP dependence", "ALE"
        of finite differences across bins, and "RHALE" of other local effects.

    Returns
    -------
    Dataset
        Over (effect_method, grid), in units of the output: ``curve``, its ``curve_se`` where it is
        known, and ``spread``, which is what each method has for it: ``spread_kind``
        (effect_method) says what. Coordinates ``effect_method``, ``grid_value`` and
        ``weight_share`` (grid), and of categories ``level`` (grid). NaN where a method says
        nothing: beyond its bins, its grid, or of a level that it does not have. Between the points
        of a grid curves, standard errors and spreads are straight.

    Raises
    ------
    TypeError, ValueError
        Nothing, or something else, among the results; another output or unit; derivatives; levels
        in some and numbers in others; names of another number, or the same twice.
    KeyError
        Unknown feature.

    Notes
    -----
    The dimension is not called "method", which ``sel`` takes for one of its own arguments.

    Every curve has mean 0 over the rows' places along the grid where it is known. ``curve_se`` is
    that of the curve as it came: take ``centering="mean"`` in all of them, or it is left out. The
    spread of an ALE curve over levels is accumulated in the order of that curve.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> model = lambda X: 2 * X[:, 0] + X[:, 1]
    >>> effect = rs.rhale(rs.local_effects(model, X))
    >>> both = rs.compare_methods([rs.pdp(model, X), effect], "x0")
    >>> both["curve"].isel(grid=[0, -1]).round(2).values
    array([[-2.13,  1.86],
           [-2.13,  1.86]])
    """
    given = list(results)
    if not given:
        raise ValueError("results must hold at least one result; got none.")
    reference = next((one for one in given if PROFILE.holds(one)), given[0])
    one_of = check_profile if PROFILE.holds(reference) else check_effect
    reference = one_of(reference, "results")
    position = feature_position(reference, feature)
    name = feature_names(reference)[position]
    row = (one_profile if PROFILE.holds(reference) else one_feature)(reference, position)
    own = _own_levels(reference, name)
    levels = _all_levels(given, name) if own else []
    if own:
        z = np.arange(len(levels), dtype=np.float64)
        share = row["weight_share" if PROFILE.holds(reference) else "level_share"].values
        share = np.nan_to_num(_at_levels(own, share, levels))
    elif PROFILE.holds(reference):
        z, share = row["grid_value"].values, row["weight_share"].values
    else:
        z, share = _places(given, name)
    if not len(z):
        raise ValueError(f"feature must vary; {name!r} is constant.")
    attrs = [(one.attrs.get("output_name"), one.attrs.get("output_units")) for one in given]
    if len(set(attrs)) > 1:
        raise ValueError(
            f"results must be of one output; got {' and '.join(sorted({str(a[0]) for a in attrs}))}"
            f", or other units. Give all of them one X.attrs['output_name']."
        )
    labels = [_label(one, name) for one in given] if names is None else [str(one) for one in names]
    if len(labels) != len(given) or len(set(labels)) < len(labels):
        raise ValueError(
            f"names must be one a result, all different; got {', '.join(labels)} for "
            f"{len(given)} results. Pass names=[...]."
        )
    found = [
        _of_profile(one, name, z, levels)
        if PROFILE.holds(one)
        else _of_effect(one, name, z, levels)
        for one in given
    ]
    curve = np.stack([one[0] for one in found])
    weight = np.where(np.isnan(curve), 0.0, share)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.nansum(weight * np.nan_to_num(curve), axis=1) / weight.sum(axis=1)
    curve -= mean[:, None]
    kinds = ["effect" if not PROFILE.holds(one) else str(one.attrs["method"]) for one in given]
    dims = ("effect_method", "grid")
    units = {"units": OUTPUT_UNITS}
    coords = {
        "effect_method": ("effect_method", np.array(labels), {"long_name": "method"}),
        "grid": ("grid", np.arange(len(z)), {"long_name": "point of the grid"}),
        "grid_value": ("grid", z, {"long_name": "value of the feature", "units": X_UNITS}),
        "weight_share": (
            "grid",
            share,
            {"long_name": "share of the rows at the point", "units": "1"},
        ),
        "spread_kind": ("effect_method", np.array([SPREADS[kind] for kind in kinds])),
    }
    if levels:
        coords["level"] = ("grid", np.array(levels), {"long_name": "level of the category"})
    return xr.Dataset(
        {
            "curve": (dims, curve, {"long_name": "effect", **units}),
            "curve_se": (
                dims,
                np.stack([one[1] for one in found]),
                {"long_name": "standard error of the curve", **units},
            ),
            "spread": (
                dims,
                np.stack([one[2] for one in found]),
                {"long_name": "spread, of each method's own kind", **units},
            ),
        },
        coords,
        {
            "method": "comparison of methods",
            "feature": name,
            "feature_units": units_of(reference, name),
            "feature_kind": str(row["feature_kind"].values),
            "centering": "mean over the rows' places along the grid, where a curve is known",
            "output_name": str(attrs[0][0]),
            "output_units": str(attrs[0][1]),
            "software": software(),
        },
    )


def _label(result: xr.Dataset, name: str) -> str:
    if PROFILE.holds(result):
        return METHOD_NAMES[str(result.attrs["method"])]
    result = check_effect(result, "results")
    if result.attrs.get("method") == "ale":
        return "ALE"
    kind = methods_of(result)[feature_position(result, name)]
    return LOCAL_EFFECTS.get(kind, "RHALE")


def _own_levels(result: xr.Dataset, name: str) -> list[str]:
    """Levels of one feature as one result has them in order; none of numbers."""
    if PROFILE.holds(result):
        row = one_profile(check_profile(result, "results"), name)
        return [str(one) for one in row["level"].values] if is_nominal(row) else []
    row = one_feature(check_effect(result, "results"), name)
    return level_names(row) if is_categorical(row) else []


def _all_levels(results: Sequence[xr.Dataset], name: str) -> list[str]:
    """Levels in the order of the first result, those that only later ones have behind them."""
    each = [_own_levels(result, name) for result in results]
    return list(dict.fromkeys(level for own in each for level in own))


def _at_levels(own: Sequence[str], values: FloatArray, levels: Sequence[str]) -> FloatArray:
    """Values at levels in another order; NaN of those that are not there."""
    known = dict(zip(own, values.tolist(), strict=True))
    return np.array([known.get(level, np.nan) for level in levels])


def _places(effects: Sequence[xr.Dataset], name: str) -> tuple[FloatArray, FloatArray]:
    """Points along the axis of effects in bins, and the share of the rows that is nearest to each.

    Rows are taken to be spread evenly within each bin of the effect that has most of them.
    """
    rows = [one_feature(check_effect(one, "results"), name) for one in effects]
    rows = [row for row in rows if row.sizes["bin"]]
    if not rows:
        return np.empty(0), np.empty(0)
    _check_levels(any(is_categorical(row) for row in rows), [], name)
    edges = np.concatenate([row["edge_value"].values for row in rows])
    z = np.union1d(edges, np.linspace(edges.min(), edges.max(), N_POINTS))
    finest = max(rows, key=lambda row: row.sizes["bin"])
    below = np.concatenate([[0.0], np.cumsum(np.nan_to_num(finest["weight_share"].values))])
    between = np.concatenate([z[:1], (z[1:] + z[:-1]) / 2, z[-1:]])
    share = np.diff(np.interp(between, finest["edge_value"].values, below))
    return z, share / share.sum()


def _check_levels(own: bool, levels: Sequence[str], name: str) -> None:
    if own != bool(levels):
        raise ValueError(
            f"results must all hold categories of feature {name!r}, or all numbers; got both. Name "
            f"it in categorical= of ale, or make its column a category; or leave some out."
        )


def _of_profile(
    profile: xr.Dataset, name: str, z: FloatArray, levels: Sequence[str]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Curve, standard error and spread at the points of the grid, or at levels."""
    profile = check_profile(profile, "results")
    if profile.attrs.get("ice_kind") == "derivative":
        raise ValueError("results must be curves of the output; got derivatives. Use kind='plain'.")
    row = one_profile(profile, name)
    nothing = np.full(len(z), np.nan)
    _check_levels(is_nominal(row), levels, name)
    known = "curve_se" in row and profile.attrs["centering"] == "mean"
    values = [
        row["curve"].values,
        row["curve_se"].values if known else np.full(row.sizes["grid"], np.nan),
        row["curve_std"].values,
    ]
    if not row.sizes["grid"]:
        return nothing, nothing, nothing
    if levels:
        own = row["level"].values.tolist()
        curve, se, spread = (_at_levels(own, one, levels) for one in values)
        return curve, se, spread
    grid = row["grid_value"].values
    curve, se, spread = (np.interp(z, grid, one, np.nan, np.nan) for one in values)
    return curve, se, spread


def _of_effect(
    effect: xr.Dataset, name: str, z: FloatArray, levels: Sequence[str]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    effect = check_effect(effect, "results")
    _check_levels(is_categorical(one_feature(effect, name)), levels, name)
    if "curve_se" not in effect and "fourth_moment" in effect:
        effect = std_error(effect)
    row = one_feature(effect, name)
    edges, nothing = row["edge_value"].values, np.full(len(z), np.nan)
    if not len(edges):
        return nothing, nothing, nothing
    known = "curve_se" in row and effect.attrs["centering"] == "mean"
    if levels:
        own = level_names(row)
        curve, se, spread = (
            _at_levels(own, row[of].values, levels) if of in row else nothing
            for of in ("curve", "curve_se", "curve_std_sum")
        )
        return curve, se if known else nothing, spread
    curve = predict(effect, z, name).values
    spread = np.interp(z, edges, row["curve_std_sum"].values, np.nan, np.nan)
    if not known:
        return curve, nothing, spread
    return curve, np.interp(z, edges, row["curve_se"].values, np.nan, np.nan), spread
