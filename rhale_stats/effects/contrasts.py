"""The curve of one feature as its difference from the curve at a reference value."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from rhale_stats.arguments.rows import as_numbers
from rhale_stats.arguments.times import as_values
from rhale_stats.arguments.words import shown
from rhale_stats.arrays import influence, intervals
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.effects.errors import opened
from rhale_stats.effects.fit import Feature, at_cells, at_edges, curve_covariance, curve_degrees
from rhale_stats.effects.values import predict
from rhale_stats.inference.estimate import Joint, joint_quantiles, of_one_scale
from rhale_stats.printing.text import number_text
from rhale_stats.schema.feature_result import FeatureResult, has_moments, one_feature
from rhale_stats.schema.features import label_of
from rhale_stats.schema.levels import level_names, level_text
from rhale_stats.schema.padding import padded

# Intervals about the curve as it was centred, which are computed again.
ABOUT = ("curve_ci", "curve_band", "cell_curve_ci", "cell_curve_band", "curve_ci_rows")
N_DRAWS = 10_000


def relative_to(effect: xr.Dataset, value: Any) -> xr.Dataset:
    """An effect of one feature whose curve is 0 at a value, with intervals of the difference.

    The variance of F(z) - F(r) is C(z, z) + C(r, r) - 2 C(z, r) with the covariance C of the curve,
    whatever its centring; degrees of freedom are Satterthwaite's, by groups and with parameters the
    smaller ones of both points. Intervals are
    made where standard errors are known, with the level of those that are there, and a band only
    where there was one. Its draws are those of seed 0.
    """
    row = one_feature(effect, 0)
    name = row.name
    value = _value(row, value)
    reference = float(predict(effect, [value], name).values[0])
    if not np.isfinite(reference):
        raise ValueError(
            f"reference must be a value of {name!r} at which there is a curve; got {value!r}. "
            f"{_range(row)}"
        )
    text = level_text(value) if row.is_categorical else number_text(float(value))
    out = effect.drop_vars(ABOUT, errors="ignore")
    names = [name for name in ("curve", "cell_curve", "missing_curve") if name in out]
    out = out.assign({name: out[name].copy(data=out[name].values - reference) for name in names})
    out.attrs["reference"] = f"{label_of(effect, name)} = {text}"
    target = "difference from the curve at the reference"
    if not has_moments(effect) or not row.sizes["bin"]:
        return out
    with_errors, (feature,) = opened(effect)
    results = _intervals(feature, value, effect)
    for interval, (dims, ends) in results.items():
        template = effect.get(interval, effect.get("curve_ci", effect.get("curve_band")))
        attrs = {} if template is None else dict(template.attrs)
        values = padded([ends], (effect.sizes[dims], 2))
        out[interval] = (("feature", dims, "ci_bound"), values, {**attrs, "target": target})
    return out.assign_coords(ci_bound=with_errors.get("ci_bound", ["lower", "upper"]))


def _value(row: FeatureResult, value: Any) -> Any:
    """A level, or a number; dates are days."""
    if not row.is_categorical:
        if isinstance(value, list | tuple) or np.ndim(value) > 0:
            raise TypeError(f"reference must be one value of the feature; got {shown(value)}.")
        return float(as_numbers(as_values([value]), "reference")[0])
    names = level_names(row)
    if level_text(value) not in names:
        raise ValueError(
            f"reference must be a level of {str(row['feature'].values)!r}, "
            f"{', '.join(map(repr, names))}; got {value!r}."
        )
    return value


def _range(row: FeatureResult) -> str:
    if row.is_categorical:
        return f"Its levels are {', '.join(map(repr, level_names(row)))}."
    edges = row["edge_value"].values
    edges = edges[np.isfinite(edges)]
    if not len(edges):
        return "The feature is constant."
    return f"Its bins are from {number_text(edges[0])} to {number_text(edges[-1])}."


def _intervals(
    feature: Feature, value: Any, effect: xr.Dataset
) -> dict[str, tuple[str, FloatArray]]:
    """Intervals, and bands where the effect has them, at edges of bins and of cells."""
    row, fit = feature
    assert fit is not None, "a feature with bins"
    place = level_names(row).index(level_text(value)) if row.is_categorical else float(value)
    z, reference = fit.pieces.edges, np.array([place], dtype=np.float64)
    if not z[0] <= reference[0] <= z[-1]:
        return {}
    points = np.append(z, reference)
    covariance = curve_covariance(row, fit, points)
    covariance = covariance - covariance[:, -1:] - covariance[-1:] + covariance[-1, -1]
    covariance = covariance[:-1, :-1]
    covariance[z == reference[0]] = covariance[:, z == reference[0]] = 0.0
    joint = _joint(feature, points, covariance)
    degrees = np.asarray(joint.degrees)
    se = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
    curve = np.interp(z, *_finite(row, "cell_curve" if row.has_cells else "curve"))
    curve = curve - np.interp(reference[0], z, curve)
    level = float(effect["curve_ci"].attrs.get("ci_prob", 0.95)) if "curve_ci" in effect else 0.95
    widths = {"ci": intervals.student(level, degrees) * se}
    if "curve_band" in effect:
        level = float(effect["curve_band"].attrs.get("ci_prob", 0.95))
        rng = np.random.default_rng(0)
        widths["band"] = joint_quantiles(joint, degrees, level, N_DRAWS, rng) * se
    results = {}
    for end, half in widths.items():
        half = np.where(se == 0, 0.0, half)
        ends = [curve - half, curve + half]
        if row.has_cells:
            results[f"cell_curve_{end}"] = (
                "cell_edge",
                np.stack([at_cells(end_values, fit) for end_values in ends], -1),
            )
        inside = np.searchsorted(z, fit.edges)
        bins = np.stack([at_edges(end_values[inside], fit) for end_values in ends], -1)
        results[f"curve_{end}"] = ("edge", bins)
    return results


def _joint(feature: Feature, points: FloatArray, covariance: FloatArray) -> Joint:
    """The differences between points and the last one, with what their variances are made from."""
    row, fit = feature
    assert fit is not None, "a feature with bins"
    if row.has_covariance:
        degrees = curve_degrees(row, fit, points)
        return of_one_scale(covariance, np.minimum(degrees[:-1], degrees[-1]))
    level, tilt = fit.loadings(points)
    difference = influence.Loadings(level[:-1] - level[-1], tilt[:-1] - tilt[-1])
    parts = np.zeros((len(points) - 1, len(fit.cells.bin)))
    parts[:, fit.cells.stretch] = influence.parts(difference, fit.noise)
    sources = fit.cells.sources(parts)
    return Joint(covariance, sources.satterthwaite(np.diagonal(covariance)), sources)


def _finite(row: FeatureResult, name: str) -> tuple[FloatArray, FloatArray]:
    """Places and values of a curve where there is one."""
    edges = row["cell_value" if name.startswith("cell") else "edge_value"].values
    values = row[name].values
    is_known = np.isfinite(edges) & np.isfinite(values)
    return edges[is_known], values[is_known]
