"""Profiles as pandas frames, and printed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from rhale_stats.arguments.rows import as_numbers
from rhale_stats.arguments.times import as_values, shown_values
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.inference.estimate import estimate_columns
from rhale_stats.inference.notes import how_made, interval_notes, parts_note
from rhale_stats.printing.text import (
    beyond_notes,
    bounds_text,
    includes_model,
    number_cell,
    number_text,
    output_text,
    percent,
    place_texts,
    region_text,
    source_of,
    table_lines,
    uncertainty,
    with_facts,
)
from rhale_stats.profiles.data import (
    METHOD_NAMES,
    check_profile,
    levels_in,
    one_profile,
    pair_of,
)
from rhale_stats.profiles.inference import degrees_of
from rhale_stats.schema.features import (
    axis_units,
    feature_names,
    feature_position,
    given_feature,
    rows_used,
    units_in,
    units_of,
    with_units,
)
from rhale_stats.schema.levels import level_text
from rhale_stats.schema.notes import Summary


def summary(profile: xr.Dataset, feature: str | int | None, level: float) -> Summary:
    """`summary` of a profile: one line per feature, or per grid point of one feature."""
    profile = check_profile(profile)
    attrs = profile.attrs
    method, output = METHOD_NAMES[str(attrs["method"])], output_text(profile)
    meanings = [f"Curves: {profile['curve'].attrs['estimator'].partition(', math')[0]}."]
    errors: list[str] = []
    row, part, sizes = profile, profile, None
    if feature is None:
        title = f"{method}: effects on {output}"
        table = glance(profile, level)
        heads = ["points", "rows", "importance", "heterog.", "lowest", "highest"]
        numbers = ["importance", "heterogeneity_output", "curve_min", "curve_max"]
        lines = table_lines(table, ["n_grid", "n_obs", *numbers], number_cell)
        for number in np.flatnonzero(table["kind"] == "constant"):
            lines[number] = ["0", "constant", "", "", "", ""]
        stubs, sizes = table["term"].tolist(), table["importance"].to_numpy
        meanings += [
            "importance: standard deviation of the curve over the rows. heterog.: root mean square "
            "of the spread about it. Both are in units of the output."
        ]
    else:
        name = feature_names(profile)[feature_position(profile, feature)]
        title = f"{method}: effect of {with_units(name, units_of(profile, name))} on {output}"
        row, part = profile.sel(feature=name), profile.sel(feature=[name])
        table = tidy(part, level)
        low, high = bounds_text(level)
        columns = {"estimate": "curve", "std_error": "std err", "statistic": "t", "p_value": "P"}
        columns |= {"conf_low": low, "conf_high": high, "spread": "spread"}
        numbers = [column for column in columns if column in table]
        heads = ["share", *[columns[column] for column in numbers]]
        each = zip(table["weight_share"], table_lines(table, numbers), strict=True)
        lines = [[percent(share), *line] for share, line in each]
        lines = lines or [["constant"] + [""] * (len(heads) - 1)]
        grid = one_profile(profile, name)["grid_value"].values
        stubs = levels_in(row) or place_texts(grid, units_in(row)) or [name]
        meanings += [
            "share: share of the rows at the point. Rows between two points count in part for both."
        ]
        if "std_error" in table:
            fixed = "the grid" if includes_model(profile, "curve") else "the model and the grid"
            errors += [
                f"Standard errors treat {fixed} as fixed. "
                f"Intervals: pointwise, {how_made(profile, 'curve', level)}. "
                f"{parts_note(row, 'curve', 'the curve')}".rstrip()
            ]
            if "p_value" in table and attrs["centering"] != "none":
                errors += ["P: of a curve that is 0 at the point, as it is centred."]
    model_rows = f"{attrs['model_rows']}"
    if attrs.get("answers_from", "predictions") != "predictions":
        model_rows += f", and {attrs['answers_from']} read"
    cells = [
        ["Rows:", f"{rows_used(row)}", "Model asked for rows:", model_rows],
        ["Weights:", attrs["weight_kind"], "Curve centred at:", attrs["centering"]],
    ]
    if "curve_se" in profile:
        cells.append(["Uncertainty:", uncertainty(source_of(profile, "curve")), "", ""])
    if "shapley" in attrs:
        meanings += [
            f"Shapley values: {attrs['shapley']}; {attrs['n_background']} background rows."
        ]
    if "shap_value_error" in profile:
        error = float(np.sqrt((row["shap_value_error"] ** 2).mean()))
        errors += [
            f"Monte-Carlo standard error of a Shapley value: {number_text(error)} (root mean "
            f"square). More background rows make it smaller."
        ]
    if "smoothing" in profile:
        errors += ["Standard errors treat the smoothing and the Shapley values as fixed."]
    notes = [*beyond_notes(part), *errors, *meanings, *interval_notes(profile)]
    title += region_text(profile)
    return Summary(with_facts(cells, title, lines, heads, stubs, sizes=sizes), notes)


# --- profiles as pandas frames --------------------------------------------------------------------


def tidy(profile: xr.Dataset, level: float) -> pd.DataFrame:
    """A line a point of the grid."""
    profile = check_profile(profile)
    frames = []
    for name in feature_names(profile):
        row = one_profile(profile, name)
        x = shown_values(row["grid_value"].values, axis_units(row))
        lines: dict[str, object] = {"term": name, "x": x}
        if "level" in row.coords:
            texts = levels_in(row) or [""] * row.sizes["grid"]
            lines["level"] = np.array(texts, dtype=np.str_)
        for side in "ab" if "feature_b" in profile.coords else "":
            levels = row[f"level_{side}"].values
            values = row[f"grid_value_{side}"].values
            lines[f"x_{side}"] = levels if (levels != "").any() else values
        if "grid" in row["n_obs"].dims:
            lines["n_obs"] = row["n_obs"].values
        lines |= {"weight_share": row["weight_share"].values, "estimate": row["curve"].values}
        if "curve_se" in row:
            lines |= estimate_columns(row, "curve", degrees_of(row), level)
        frames.append(pd.DataFrame(lines | {"spread": row["curve_std"].values}))
    return pd.concat(frames, ignore_index=True)


def glance(profile: xr.Dataset, _level: float) -> pd.DataFrame:
    """A line a feature."""
    profile = check_profile(profile)
    n_obs = profile["n_obs"]
    curve = profile["curve"].transpose("feature", "grid")
    return pd.DataFrame(
        {
            "term": feature_names(profile),
            "kind": profile["feature_kind"].values.astype(str),
            "n_grid": profile["n_grid"].values,
            "n_obs": (n_obs.sum("grid") if "grid" in n_obs.dims else n_obs).values,
            "importance": profile["importance"].values,
            "heterogeneity_output": profile["heterogeneity_output"].values,
            "curve_min": curve.min("grid").values,
            "curve_max": curve.max("grid").values,
        }
    )


def predict(profile: xr.Dataset, x: Any, feature: str | int | None) -> xr.DataArray:
    """A profile at values of its feature, straight between the points of its grid; or at levels."""
    profile = check_profile(profile)
    feature = given_feature(feature, "predict(effect, x, 'dose')", profile)
    row = one_profile(profile, feature)
    name = feature_names(profile)[feature_position(profile, feature)]
    if pair_of(row):
        raise ValueError(
            f"feature must be a single feature; {name!r} is a pair. tidy(profile) has the "
            f"values at its points."
        )
    out = values_on_grid(x, row["grid_value"].values, row["curve"].values, levels_in(row), name)
    return out.rename("curve").assign_attrs({**profile["curve"].attrs, "feature": name})


def values_on_grid(
    x: Any, grid: FloatArray, curve: FloatArray, levels: list[str], feature: str
) -> xr.DataArray:
    """A curve at values of its feature, straight between the points of its grid; or at levels."""
    values = x.values if isinstance(x, xr.DataArray) else x
    values = np.asarray(values) if levels else as_numbers(as_values(values), "x")
    points = x.copy(data=values) if isinstance(x, xr.DataArray) else xr.DataArray(values)
    if not isinstance(x, xr.DataArray) and points.ndim == 1:
        points = points.rename(dim_0="grid")
    if levels:
        texts = np.array([level_text(value) for value in np.ravel(points.values)])
        texts = texts.reshape(points.shape)
        unknown = sorted(set(texts.ravel().tolist()) - set(levels))
        if unknown:
            raise ValueError(
                f"x must be levels of feature {feature!r}, {', '.join(levels)}; got "
                f"{', '.join(unknown)}."
            )
        values = curve[np.vectorize(levels.index, otypes=[np.intp])(texts)]
        points = points.astype(str)
    elif len(grid):
        values = np.interp(points.values, grid, curve, np.nan, np.nan)
    else:
        values = np.full(points.shape, np.nan)
    out = xr.DataArray(values, dims=points.dims, coords=points.coords)
    return out if "x" in out.coords else out.assign_coords(x=(points.dims, points.values))
