"""Results of several models as data frames, the values of their curves, and their sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from rhale_stats.arguments.rows import as_numbers
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.ensembles.errors import with_errors
from rhale_stats.ensembles.intervals import confint
from rhale_stats.ensembles.labelled import TOTALS
from rhale_stats.ensembles.members import (
    Row,
    centre_of,
    check_ensemble,
    degrees_of,
    errors,
    estimated,
    facts_of,
    names_of,
    one_row,
    origin_of,
)
from rhale_stats.inference.estimate import BOUNDS, kept_interval
from rhale_stats.inference.meaning import is_unordered
from rhale_stats.schema.features import feature_names, given_feature
from rhale_stats.schema.levels import level_text

# What a line of `glance` says of a feature whatever its kind.
FACTS = ("term", "kind", "n_members", "n_failed")


def with_intervals(ensemble: xr.Dataset, level: float) -> xr.Dataset:
    """The ensemble with standard errors, and with intervals of this level."""
    ensemble = with_errors(check_ensemble(ensemble))
    if kept_interval(ensemble, "curve", level) is None:
        ensemble = confint(ensemble, None, level, None)
    return ensemble


def one_number(ensemble: xr.Dataset, what: str, level: float) -> xr.Dataset:
    """One number a feature with its interval, as `plots.forest` draws it."""
    ensemble = with_intervals(ensemble, level)
    totals = [name for name in estimated(ensemble) if name in TOTALS]
    if what not in totals:
        raise ValueError(
            f"what must name one number per feature of these models; got {what!r}. There are "
            f"{', '.join(totals)}."
        )
    about = ensemble[what].attrs
    return names_of(ensemble).assign(
        {
            what: ("feature", centre_of(ensemble, what), about),
            f"{what}_ci": ensemble[f"{what}_ci"].variable,
        }
    )


def tidy(ensemble: xr.Dataset, level: float) -> pd.DataFrame:
    """A line a point of the grid, with the curve as the estimate."""
    ensemble = with_intervals(ensemble, level)
    levels = "level" in ensemble.coords and bool((ensemble["level"] != "").any())
    rows = [one_row(ensemble, name) for name in feature_names(ensemble)]
    return pd.concat([_lines(row, levels=levels) for row in rows], ignore_index=True)


def _lines(row: Row, *, levels: bool) -> pd.DataFrame:
    """The points of one feature; ``levels``: with their levels, empty where it has an axis."""
    lines: dict[str, object] = {"term": [row.name] * len(row.z), "x": row.z}
    if levels:
        lines["level"] = row.levels or [""] * len(row.z)
    lines |= {"estimate": centre_of(row.dataset, "curve")[0]} | _errors(row.dataset, "curve")
    for name in ("effect", "heterogeneity"):
        if name in estimated(row.dataset):
            lines[name] = centre_of(row.dataset, name)[0]
            lines[f"{name}_se"] = row.dataset[f"{name}_se"].values[0]
    return pd.DataFrame(lines)


def _errors(result: xr.Dataset, name: str) -> dict[str, FloatArray]:
    """Standard error of an estimate, its parts, and its interval, of the first feature."""
    columns = {"std_error": result[f"{name}_se"].values}
    for part in ("model", "rows"):
        if f"{name}_se_{part}" in result:
            columns[f"std_error_{part}"] = result[f"{name}_se_{part}"].values
    ends = result[f"{name}_ci"].transpose(..., "ci_bound").values
    columns |= {"conf_low": ends[..., 0], "conf_high": ends[..., 1]}
    return {key: np.asarray(values)[0] for key, values in columns.items()}


def glance(ensemble: xr.Dataset, level: float) -> pd.DataFrame:
    """A line a feature: the average effect, sizes, and the range of the curve."""
    ensemble = with_intervals(ensemble, level)
    names, n_members = feature_names(ensemble), int(ensemble["failed"].size)
    lines: list[dict[str, object]] = []
    for number, name in enumerate(names):
        row = ensemble.isel(feature=[number])
        line: dict[str, object] = {
            "term": name,
            "kind": str(row["feature_kind"].values[0]),
            "n_members": n_members,
            "n_failed": int(row["failed"].sum()),
        }
        if "average_effect" in estimated(row):
            line |= {"estimate": float(centre_of(row, "average_effect")[0])}
            line |= {key: float(value) for key, value in _errors(row, "average_effect").items()}
            line |= _tested(row)
            if is_unordered(row)[0]:
                # An average over steps between levels without an order of their own.
                line |= {key: np.nan for key in line if key not in FACTS}
        for size in ("importance", "heterogeneity_output", "heterogeneity_index"):
            if size in estimated(row):
                line[size] = float(centre_of(row, size)[0])
        curve = centre_of(row, "curve")[0]
        finite = curve[np.isfinite(curve)]
        line["curve_min"] = float(finite.min()) if len(finite) else np.nan
        line["curve_max"] = float(finite.max()) if len(finite) else np.nan
        lines.append(line)
    return pd.DataFrame(lines)


def _tested(row: xr.Dataset) -> dict[str, float]:
    """Statistic and p-value of the average effect, where the members are refits."""
    if not origin_of(row).is_tested:
        return {}
    from scipy import stats

    name = "average_effect"
    estimate, se, degrees = (
        float(statistic_of(row, name)[0]) for statistic_of in (centre_of, errors, degrees_of)
    )
    statistic = estimate / se if se > 0 else np.nan
    return {"statistic": statistic, "p_value": float(2 * stats.t.sf(abs(statistic), degrees))}


def effect_sizes(ensemble: xr.Dataset, boot: object, y: object, level: float) -> xr.Dataset:
    """`effect_sizes`: the estimates that are one number a feature, with their intervals."""
    ensemble = check_ensemble(ensemble)
    for name, argument in (("boot", boot), ("y", y)):
        if argument is not None:
            raise ValueError(
                f"{name} must be left out for results of several models, whose members have sizes "
                f"of their own."
            )
    ensemble = with_intervals(ensemble, level)
    names = [name for name in estimated(ensemble) if name in TOTALS and name != "average_effect"]
    variables: dict[str, Any] = {}
    for name in names:
        facts = facts_of(ensemble, name)
        about = {"long_name": facts.long_name, "units": facts.units}
        variables[name] = ("feature", centre_of(ensemble, name), about)
        variables[f"{name}_ci"] = ensemble[f"{name}_ci"].variable
    attributes = ("output_name", "output_units", "bin_rule", "bin_parameters", "n_rows", "software")
    return xr.Dataset(
        variables,
        {
            "feature": ensemble["feature"].variable,
            "feature_kind": ensemble["feature_kind"].variable,
        },
        {
            "method": "effect sizes",
            **{name: ensemble.attrs[name] for name in attributes if name in ensemble.attrs},
        },
    ).assign_coords(BOUNDS)


def predict(
    ensemble: xr.Dataset, x: Any, feature: str | int | None, what: str = "curve"
) -> xr.DataArray:
    """An estimate at values of its feature, straight between grid points; or at levels."""
    feature = given_feature(feature, "predict(effect, x, 'dose')")
    ensemble = check_ensemble(ensemble)
    if what not in estimated(ensemble):
        raise ValueError(f"what must be 'curve' for profiles of several models; got {what!r}.")
    row = one_row(ensemble, feature)
    points = x if isinstance(x, xr.DataArray) else xr.DataArray(np.asarray(x))
    if not isinstance(x, xr.DataArray) and points.ndim == 1:
        points = xr.DataArray(points.values, dims="grid")
    centre = centre_of(row.dataset, what)[0]
    if row.levels:
        values, points = _at_levels(centre, points, row.levels, row.name), points.astype(str)
    elif len(row.z):
        values = np.interp(as_numbers(points.values, "x"), row.z, centre, np.nan, np.nan)
    else:
        values = np.full(points.shape, np.nan)
    facts = facts_of(ensemble, what)
    about = {"long_name": facts.long_name, "units": facts.units, "feature": row.name}
    out = xr.DataArray(values, dims=points.dims, coords=points.coords, name=what, attrs=about)
    return out if "x" in out.coords else out.assign_coords(x=(points.dims, points.values))


def _at_levels(centre: Any, points: xr.DataArray, levels: list[str], name: str) -> Any:
    texts = np.vectorize(level_text, otypes=[str])(points.values)
    unknown = sorted(set(texts.ravel().tolist()) - set(levels))
    if unknown:
        raise ValueError(
            f"x must be levels of feature {name!r}, {', '.join(levels)}; got {', '.join(unknown)}."
        )
    return centre[np.vectorize(levels.index, otypes=[np.intp])(texts)]
