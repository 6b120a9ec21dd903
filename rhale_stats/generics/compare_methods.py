"""Effects of one feature by several methods, side by side on one grid and centred alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

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
# Number of grid points where no result is a profile.
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
        each, in any order. The grid and the share of rows at each point are those of the first
        profile. Without a profile the grid is all bin edges and points between them. Levels of a
        category are matched by name. They keep the order of the first result; levels that only
        later results have come last.
    feature : str or int
        Name or number.
    names : sequence of str, optional
        Names of the methods. By default "Partial dependence", "ICE", "M-plot", "SHAP dependence",
        "ALE"
        of finite differences across bins, and "RHALE" of other local effects.

    Returns
    -------
    Dataset
        Over (effect_method, grid), in units of the output: ``curve``, its standard error
        ``curve_se`` where it is known, and ``spread``. The methods define their spread differently:
        ``spread_kind`` (effect_method) gives the definition. Coordinates ``effect_method``,
        ``grid_value`` and
        ``weight_share`` (grid), and for categories ``level`` (grid). Values are NaN where a method
        has no estimate: beyond its bins or its grid, or at a level that it does not have. Between
        grid points, curves, standard errors and spreads are interpolated linearly.

    Raises
    ------
    TypeError, ValueError
        No result, or one of another kind; results of different outputs or units; curves of
        derivatives; a feature with levels in some results and numbers in others; ``names`` of
        another length or with duplicates.
    KeyError
        Unknown feature.

    Notes
    -----
    The dimension is not called "method", because ``sel`` has an argument of that name.

    Every curve has mean 0 over the rows on the part of the grid where it is known. ``curve_se`` is
    the standard error of the curve as given: it is left out unless all results have
    ``centering="mean"``. The spread of an ALE curve over levels is accumulated in the level order
    of that result.

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
    reference = next((result for result in given if PROFILE.holds(result)), given[0])
    is_profile = PROFILE.holds(reference)
    reference = (check_profile if is_profile else check_effect)(reference, "results")
    position = feature_position(reference, feature)
    name = feature_names(reference)[position]
    row = (one_profile if is_profile else one_feature)(reference, position)
    grid = _grid(given, reference, row, name)
    output = _output_of_all(given)
    labels = _labels(given, name, names)
    curves = [
        (_of_profile if PROFILE.holds(result) else _of_effect)(result, name, grid.z, grid.levels)
        for result in given
    ]
    return _labelled(grid, labels, given, curves).assign_attrs(
        {
            "method": "comparison of methods",
            "feature": name,
            "feature_units": units_of(reference, name),
            "feature_kind": str(row["feature_kind"].values),
            "centering": "mean over the rows' places along the grid, where a curve is known",
            "output_name": str(output[0]),
            "output_units": str(output[1]),
            "software": software(),
        }
    )


class _Grid(NamedTuple):
    """Grid points common to all curves, the share of the rows at each, and levels if any."""

    z: FloatArray
    share: FloatArray
    levels: list[str]


class _Curve(NamedTuple):
    """Curve, standard error and spread at the points of the grid; NaN where they are not known."""

    curve: FloatArray
    se: FloatArray
    spread: FloatArray


def _grid(
    results: Sequence[xr.Dataset], reference: xr.Dataset, row: xr.Dataset, name: str
) -> _Grid:
    """The grid of the reference if it is a profile; otherwise all levels, or all edges."""
    own_levels = _own_levels(reference, name)
    is_profile = PROFILE.holds(reference)
    levels: list[str] = []
    if own_levels:
        levels = _all_levels(results, name)
        z = np.arange(len(levels), dtype=np.float64)
        share = row["weight_share" if is_profile else "level_share"].values
        share = np.nan_to_num(_at_levels(own_levels, share, levels))
    elif is_profile:
        z, share = row["grid_value"].values, row["weight_share"].values
    else:
        z, share = _places(results, name)
    if not len(z):
        raise ValueError(f"feature must vary; {name!r} is constant.")
    return _Grid(z, share, levels)


def _output_of_all(results: Sequence[xr.Dataset]) -> tuple[object, object]:
    """Name and units of the one output that all results are of."""
    outputs = [(one.attrs.get("output_name"), one.attrs.get("output_units")) for one in results]
    if len(set(outputs)) > 1:
        listed = " and ".join(sorted({str(output[0]) for output in outputs}))
        raise ValueError(
            f"results must be of one output; got {listed}, or other units. Give all of them one "
            f"X.attrs['output_name']."
        )
    return outputs[0]


def _labels(results: Sequence[xr.Dataset], name: str, names: Sequence[str] | None) -> list[str]:
    """Names of the methods, as given or by default, all different."""
    if names is None:
        labels = [_label(result, name) for result in results]
    else:
        labels = [str(label) for label in names]
    if len(labels) != len(results) or len(set(labels)) < len(labels):
        raise ValueError(
            f"names must be one a result, all different; got {', '.join(labels)} for "
            f"{len(results)} results. Pass names=[...]."
        )
    return labels


def _centred(curve: FloatArray, share: FloatArray) -> FloatArray:
    """Curves with mean 0 over the rows where they are known, (method, point)."""
    weight = np.where(np.isnan(curve), 0.0, share)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.nansum(weight * np.nan_to_num(curve), axis=1) / weight.sum(axis=1)
    return np.asarray(curve - mean[:, None])


def _labelled(
    grid: _Grid, labels: list[str], results: Sequence[xr.Dataset], curves: Sequence[_Curve]
) -> xr.Dataset:
    """The curves as a Dataset, without attributes."""
    kinds = [
        str(result.attrs["method"]) if PROFILE.holds(result) else "effect" for result in results
    ]
    coords = {
        "effect_method": ("effect_method", np.array(labels), {"long_name": "method"}),
        "grid": ("grid", np.arange(len(grid.z)), {"long_name": "point of the grid"}),
        "grid_value": ("grid", grid.z, {"long_name": "value of the feature", "units": X_UNITS}),
        "weight_share": (
            "grid",
            grid.share,
            {"long_name": "share of the rows at the point", "units": "1"},
        ),
        "spread_kind": ("effect_method", np.array([SPREADS[kind] for kind in kinds])),
    }
    if grid.levels:
        coords["level"] = ("grid", np.array(grid.levels), {"long_name": "level of the category"})
    curve, se, spread = (np.stack(values) for values in zip(*curves, strict=True))
    values = {
        "curve": (_centred(curve, grid.share), "effect"),
        "curve_se": (se, "standard error of the curve"),
        "spread": (spread, "spread, of each method's own kind"),
    }
    return xr.Dataset(
        {
            key: (("effect_method", "grid"), array, {"long_name": text, "units": OUTPUT_UNITS})
            for key, (array, text) in values.items()
        },
        coords,
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
    """Levels of one feature in the order of one result; none for numbers."""
    if PROFILE.holds(result):
        row = one_profile(check_profile(result, "results"), name)
        return [str(one) for one in row["level"].values] if is_nominal(row) else []
    row = one_feature(check_effect(result, "results"), name)
    return level_names(row) if is_categorical(row) else []


def _all_levels(results: Sequence[xr.Dataset], name: str) -> list[str]:
    """Levels in the order of the first result; levels that only later results have come last."""
    each = [_own_levels(result, name) for result in results]
    return list(dict.fromkeys(level for own in each for level in own))


def _at_levels(own: Sequence[str], values: FloatArray, levels: Sequence[str]) -> FloatArray:
    """Values at levels in another order; NaN at levels that are not there."""
    known = dict(zip(own, values.tolist(), strict=True))
    return np.array([known.get(level, np.nan) for level in levels])


def _places(effects: Sequence[xr.Dataset], name: str) -> tuple[FloatArray, FloatArray]:
    """Points along the axis of effects in bins, and the share of the rows nearest to each.

    Rows are assumed to be evenly spread within each bin of the effect that has the most bins.
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


def _of_profile(profile: xr.Dataset, name: str, z: FloatArray, levels: Sequence[str]) -> _Curve:
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
        return _Curve(nothing, nothing, nothing)
    if levels:
        own = row["level"].values.tolist()
        return _Curve(*(_at_levels(own, one, levels) for one in values))
    grid = row["grid_value"].values
    return _Curve(*(np.interp(z, grid, one, np.nan, np.nan) for one in values))


def _of_effect(effect: xr.Dataset, name: str, z: FloatArray, levels: Sequence[str]) -> _Curve:
    effect = check_effect(effect, "results")
    _check_levels(is_categorical(one_feature(effect, name)), levels, name)
    if "curve_se" not in effect and "fourth_moment" in effect:
        effect = std_error(effect)
    row = one_feature(effect, name)
    edges, nothing = row["edge_value"].values, np.full(len(z), np.nan)
    if not len(edges):
        return _Curve(nothing, nothing, nothing)
    known = "curve_se" in row and effect.attrs["centering"] == "mean"
    if levels:
        own = level_names(row)
        curve, se, spread = (
            _at_levels(own, row[of].values, levels) if of in row else nothing
            for of in ("curve", "curve_se", "curve_std_sum")
        )
        return _Curve(curve, se if known else nothing, spread)
    curve = predict(effect, z, name).values
    spread = np.interp(z, edges, row["curve_std_sum"].values, np.nan, np.nan)
    if not known:
        return _Curve(curve, nothing, spread)
    se = np.interp(z, edges, row["curve_se"].values, np.nan, np.nan)
    return _Curve(curve, se, spread)
