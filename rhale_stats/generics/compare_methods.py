"""Effects of one feature by several methods, side by side on one grid and centred alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import xarray as xr

from rhale_stats.arrays.moments import FloatArray
from rhale_stats.generics.uncertainty import std_error
from rhale_stats.generics.values import predict
from rhale_stats.profiles.data import METHOD_NAMES, check_profile, is_nominal, one_profile
from rhale_stats.schema.checks import check_effect
from rhale_stats.schema.feature_result import FeatureResult, Result, has_moments, one_feature
from rhale_stats.schema.features import feature_position, methods_of, units_of
from rhale_stats.schema.kinds import PROFILE
from rhale_stats.schema.levels import is_categorical, level_names
from rhale_stats.schema.validation import validated
from rhale_stats.schema.variables import GRID_VALUE, OUTPUT_UNITS, software

SPREADS = {
    "pdp": "standard deviation of the centred ICE curves",
    "ice": "standard deviation of the centred ICE curves",
    "m_plot": "standard deviation of the output in the bin",
    "shap_dependence": "root mean square of the Shapley values about the spline",
    "effect": "heterogeneity, accumulated (comonotone)",
}
SHARE = {"long_name": "share of the rows at the point", "units": "1"}
# Number of grid points where no result is a profile.
N_POINTS = 101
LOCAL_EFFECTS = {"finite_difference": "ALE", "ale": "ALE"}


@validated
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
        "ALE" of finite differences across bins, and "RHALE" of other local effects.

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
    %(unknown feature)s

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
    >>> both = rs.compare_methods([rs.pdp(model, X), rs.rhale(model, X)], "x0")
    >>> both["curve"].isel(grid=[0, -1]).round(2).values
    array([[-2.13,  1.86],
           [-2.13,  1.86]])
    """
    datasets = list(results)
    if not datasets:
        raise ValueError("results must hold at least one result; got none.")
    reference = _Result.from_dataset(next(filter(PROFILE.holds, datasets), datasets[0]), feature)
    name = str(reference.row["feature"].values)
    each = [_Result.from_dataset(result, name) for result in datasets]
    z, share, levels = _grid(each, reference, name)
    outputs = [
        (result.attrs.get("output_name"), result.attrs.get("output_units")) for result in datasets
    ]
    output = outputs[0]
    if len(set(outputs)) > 1:
        listed = " and ".join(sorted({str(output_name) for output_name, _ in outputs}))
        raise ValueError(
            f"results must be of one output; got {listed}, or other units. Give all of them one "
            f"X.attrs['output_name']."
        )
    labels = [result.label for result in each] if names is None else list(map(str, names))
    if len(labels) != len(each) or len(set(labels)) < len(labels):
        raise ValueError(
            f"names must be one a result, all different; got {', '.join(labels)} for {len(each)} "
            f"results. Pass names=[...]."
        )
    curves = [result.curve_at(name, z, levels) for result in each]
    curve, se, spread = [np.stack(values) for values in zip(*curves, strict=True)]
    values = {
        "curve": (_centred(curve, share), "effect"),
        "curve_se": (se, "standard error of the curve"),
        "spread": (spread, "spread, of each method's own kind"),
    }
    coords = {
        "effect_method": ("effect_method", np.array(labels), {"long_name": "method"}),
        "grid": ("grid", np.arange(len(z)), {"long_name": "point of the grid"}),
        "grid_value": ("grid", z, GRID_VALUE),
        "weight_share": ("grid", share, SHARE),
        "spread_kind": ("effect_method", np.array([SPREADS[result.method] for result in each])),
    }
    if levels:
        coords["level"] = ("grid", np.array(levels), {"long_name": "level of the category"})
    attrs = {
        "method": "comparison of methods",
        "feature": name,
        "feature_units": units_of(reference.dataset, name),
        "feature_kind": str(reference.row["feature_kind"].values),
        "centering": "mean over the rows' places along the grid, where a curve is known",
        "output_name": str(output[0]),
        "output_units": str(output[1]),
        "software": software(),
    }
    variables = {
        key: (("effect_method", "grid"), array, {"long_name": text, "units": OUTPUT_UNITS})
        for key, (array, text) in values.items()
    }
    return xr.Dataset(variables, coords, attrs)


class _Result(NamedTuple):
    """A result, the feature that is compared, and the levels of this in its own order, if any."""

    dataset: xr.Dataset
    row: Result
    is_profile: bool
    levels: list[str] | None

    @classmethod
    def from_dataset(cls, result: xr.Dataset, feature: str | int) -> _Result:
        if PROFILE.holds(result):
            profile = check_profile(result, "results")
            grid = one_profile(profile, feature)
            levels = list(map(str, grid["level"].values)) if is_nominal(grid) else None
            return cls(profile, grid, True, levels)
        effect = check_effect(result, "results")
        row = one_feature(effect, feature)
        return cls(effect, row, False, level_names(row) if row.is_categorical else None)

    @property
    def method(self) -> str:
        """Name of the method of a profile; all others are effects."""
        return str(self.dataset.attrs["method"]) if self.is_profile else "effect"

    @property
    def label(self) -> str:
        """Name of the method as it is printed."""
        if self.is_profile:
            return METHOD_NAMES[self.method]
        if self.dataset.attrs.get("method") == "ale":
            return "ALE"
        name = str(self.row["feature"].values)
        kind = methods_of(self.dataset)[feature_position(self.dataset, name)]
        return LOCAL_EFFECTS.get(kind, "RHALE")

    def curve_at(self, name: str, z: FloatArray, levels: Sequence[str]) -> list[FloatArray]:
        """Curve, standard error and spread at the points of the grid, or at levels; or NaN."""
        dataset, row, nothing = self.dataset, self.row, np.full(len(z), np.nan)
        if dataset.attrs.get("ice_kind") == "derivative":
            raise ValueError(
                "results must be curves of the output; got derivatives. Use kind='plain'."
            )
        _check_levels(self.levels is not None, levels, name)
        if not self.is_profile and "curve_se" not in dataset and has_moments(dataset):
            row = one_feature(std_error(dataset), name)
        places = row.edges if isinstance(row, FeatureResult) else row["grid_value"].values
        if not len(places):
            return [nothing] * 3

        def interpolated(at_places: FloatArray, places: FloatArray = places) -> FloatArray:
            if levels:
                return _at_levels(self.levels or [], at_places, levels)
            return np.asarray(np.interp(z, places, at_places, np.nan, np.nan))

        if isinstance(row, FeatureResult):
            std = interpolated(row.curve_spreads[1], row.bin_edges)
        else:
            std = interpolated(row["curve_std"].values)
        bent = not (levels or self.is_profile)  # in linear bins
        has_error = "curve_se" in row and dataset.attrs["centering"] == "mean"
        return [
            predict(dataset, z, name).values if bent else interpolated(row["curve"].values),
            interpolated(row["curve_se"].values) if has_error else nothing,
            std,
        ]


def _grid(
    results: Sequence[_Result], reference: _Result, name: str
) -> tuple[FloatArray, FloatArray, list[str]]:
    """Points common to all curves, the share of the rows at each, and levels if any.

    They are those of the reference if it is a profile; otherwise all levels, or all edges.
    """
    row = reference.row
    levels: list[str] = []
    if reference.levels:
        # In the order of the first result; levels that only later results have come last.
        levels = list(dict.fromkeys(level for result in results for level in result.levels or []))
        z = np.arange(len(levels), dtype=np.float64)
        share = row["weight_share" if reference.is_profile else "level_share"].values
        share = np.nan_to_num(_at_levels(reference.levels, share, levels))
    elif reference.is_profile:
        z, share = row["grid_value"].values, row["weight_share"].values
    else:
        z, share = _places([result.row for result in results], name)
    if not len(z):
        raise ValueError(f"feature must vary; {name!r} is constant.")
    return z, share, levels


def _centred(curve: FloatArray, share: FloatArray) -> FloatArray:
    """Curves with mean 0 over the rows where they are known, (method, point)."""
    weight = np.where(np.isnan(curve), 0.0, share)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.nansum(weight * np.nan_to_num(curve), axis=1) / weight.sum(axis=1)
    return np.asarray(curve - mean[:, None])


def _at_levels(own_levels: Sequence[str], values: FloatArray, levels: Sequence[str]) -> FloatArray:
    """Values at levels in another order; NaN at levels that are not there."""
    value_of_level = dict(zip(own_levels, values.tolist(), strict=True))
    return np.array([value_of_level.get(level, np.nan) for level in levels])


def _places(rows: Sequence[Result], name: str) -> tuple[FloatArray, FloatArray]:
    """Points along the axis of effects in bins, and the share of the rows nearest to each.

    Rows are assumed to be evenly spread within each bin of the effect that has the most bins.
    """
    rows = [row for row in rows if isinstance(row, FeatureResult) and row.sizes["bin"]]
    if not rows:
        return np.empty(0), np.empty(0)
    _check_levels(any(is_categorical(row) for row in rows), [], name)
    edges = np.concatenate([row.bin_edges for row in rows])
    z = np.union1d(edges, np.linspace(edges.min(), edges.max(), N_POINTS))
    finest = max(rows, key=lambda row: row.sizes["bin"])
    below = np.concatenate([[0.0], np.cumsum(np.nan_to_num(finest.weight_share))])
    between = np.concatenate([z[:1], (z[1:] + z[:-1]) / 2, z[-1:]])
    share = np.diff(np.interp(between, finest.bin_edges, below))
    return z, share / share.sum()


def _check_levels(has_levels: bool, levels: Sequence[str], name: str) -> None:
    if has_levels != bool(levels):
        raise ValueError(
            f"results must all hold categories of feature {name!r}, or all numbers; got both. Name "
            f"it in categorical= of ale, or make its column a category; or leave some out."
        )
