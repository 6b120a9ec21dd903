"""Surfaces as tables: frames and prints."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from rhale_stats.arrays.moments import FloatArray
from rhale_stats.inference.combinations import Estimates, refuse_beside
from rhale_stats.inference.estimate import estimate_columns, student
from rhale_stats.inference.notes import parts_note
from rhale_stats.printing.text import (
    bounds_text,
    includes_model,
    output_text,
    pvalue_text,
    source_of,
    uncertainty,
    with_facts,
)
from rhale_stats.schema.dimensions import with_part_facts
from rhale_stats.schema.notes import Summary
from rhale_stats.surfaces.ale2 import is_categorical, n_cells, pair_name
from rhale_stats.surfaces.inference import (
    cell_degrees,
    confint,
    rounding,
    size,
    vcov,
    with_std_error,
)

# Points of the surface that a printed summary shows.
SHOWN = 10
# Heads of a test at a corner, and how its numbers are printed.
TESTS = {"t": lambda value: "" if np.isnan(value) else f"{value:.3f}", "P": pvalue_text}


def tidy(surface: xr.Dataset, level: float) -> pd.DataFrame:
    """`tidy` of a surface: a line a cell with rows."""
    surface = with_std_error(with_part_facts(surface))
    at_a, at_b = np.nonzero(surface["n_obs"].values)
    frame = pd.DataFrame({"term": pair_name(surface), "bin_a": at_a, "bin_b": at_b})
    for side, bins in (("a", at_a), ("b", at_b)):
        ends = [f"bin_left_{side}", f"bin_right_{side}"]
        if is_categorical(surface, side):
            ends = [f"level_{side}", f"level_{side}_next"]
        edges = surface[f"edge_{side}"].values
        frame[ends[0]], frame[ends[1]] = edges[bins], edges[bins + 1]
    degrees = cell_degrees(surface)
    columns = estimate_columns(surface, "second_effect", degrees, level)
    if "statistic" in columns:
        # What is 0 up to rounding has no statistic.
        error = np.where(columns["std_error"] > rounding(surface), columns["std_error"], 0.0)
        columns |= student(columns["estimate"], error, degrees)
    counts, spread = surface["n_obs"].values, surface["heterogeneity"].values
    columns = {"n_obs": counts, **columns, "heterogeneity": spread}
    return frame.assign(**{name: values[at_a, at_b] for name, values in columns.items()})


def glance(surface: xr.Dataset, _level: float) -> pd.DataFrame:
    """`glance` of a surface: one line."""
    surface = with_std_error(with_part_facts(surface))
    attrs, values, se = surface.attrs, surface["surface"].values, surface["surface_se"].values
    # What is 0 up to rounding is not many standard errors from it, however small these are.
    least = rounding(surface)
    shown = (np.abs(values) > least) & (se > 0)
    z = np.divide(np.abs(values), se, where=shown, out=np.zeros(values.shape))
    return pd.DataFrame(
        {
            "term": pair_name(surface),
            "feature_a": attrs["feature_a"],
            "feature_b": attrs["feature_b"],
            "n_obs": attrs["n_rows"],
            "n_cells": n_cells(surface),
            "n_empty": attrs["n_empty"],
            "size": size(surface),
            "surface_max": float(np.nanmax(np.abs(values))),
            "z_max": float(z.max()),
        },
        index=[0],
    )


def summary(surface: xr.Dataset, _feature: object, level: float) -> Summary:
    """`summary` of a surface: its size, its cells, and where it is farthest from 0."""
    surface = with_part_facts(surface)
    with_ends = confint(surface, None, level, "normal")
    attrs, values = with_ends.attrs, with_ends["surface"].values
    chosen = sorted(farthest_corners(with_ends, SHOWN))
    tests = corner_tests(with_ends)
    heads = ["surface", "std err", *tests, *bounds_text(level)]
    lines = [
        [
            *[f"{value:.4g}" for value in (values[corner], with_ends["surface_se"].values[corner])],
            *[TESTS[head](values_of_test[corner]) for head, values_of_test in tests.items()],
            *[f"{end:.4g}" for end in with_ends["surface_ci"].values[corner]],
        ]
        for corner in chosen
    ]
    stubs = [corner_name(with_ends, corner) for corner in chosen]
    about = f"{attrs['feature_a']} and {attrs['feature_b']} on {output_text(surface)}"
    title = f"Second-order ALE: {about}"
    facts = [
        ["Rows:", str(attrs["n_rows"]), "Cells:", str(n_cells(surface))],
        ["Weights:", attrs["weight_kind"], "without rows:", str(attrs["n_empty"])],
        ["Centring:", attrs["centering"], "Spread over rows:", f"{size(surface):.4g}"],
        ["Uncertainty:", uncertainty(source_of(with_ends, "surface")), "", ""],
    ]
    notes = []
    if attrs["n_filled"]:
        share = 100 * attrs["n_filled"] / n_cells(surface)
        notes.append(
            f"{attrs['n_filled']} of {n_cells(surface)} cells ({share:.0f} %) have no rows. There "
            f"the surface takes the second difference of the nearest cell."
        )
    n_borrowed = int(with_ends["surface_se"].attrs["n_borrowed"])
    if n_borrowed:
        notes.append(
            f"{n_borrowed} cells have one row. Their variance is taken from the other cells."
        )
    fixed = "the cells" if includes_model(with_ends, "surface") else "the model and the cells"
    method = with_ends["surface_ci"].attrs["method"].removeprefix("standard errors, ")
    notes += [
        f"Standard errors treat {fixed} as fixed. Intervals: pointwise, {method}. "
        f"{parts_note(with_ends, 'surface', 'the surface')}".rstrip(),
        f"The table has the {len(chosen)} corners of cells where the surface is farthest from 0.",
        "Spread over rows: the standard deviation of the surface, in units of the output.",
        f"Bins of {attrs['feature_a']}: {attrs['bins_a']}. Bins of {attrs['feature_b']}: "
        f"{attrs['bins_b']}.",
    ]
    return Summary(with_facts(facts, title, lines, heads, stubs), notes)


def corner_tests(surface: xr.Dataset) -> dict[str, FloatArray]:
    """t and P of a surface at all corners by their heads, where its error includes the model."""
    if not includes_model(surface, "surface"):
        return {}
    # What is 0 up to rounding has no statistic.
    se = surface["surface_se"].where(surface["surface_se"] > rounding(surface), 0.0).values
    degrees = surface["surface_df"].values if "surface_df" in surface else np.inf
    tested = student(surface["surface"].values, se, degrees)
    return dict(zip(TESTS, tested.values(), strict=True))


def farthest_corners(surface: xr.Dataset, most: int) -> list[tuple[int, int]]:
    """Places of the corners of cells where the surface is farthest from 0, the farthest first."""
    size = np.abs(surface["surface"].values)
    order = np.argsort(-np.nan_to_num(size).ravel(), kind="stable")[:most]
    places = zip(*[axis.tolist() for axis in np.unravel_index(order, size.shape)], strict=True)
    return [(a, b) for a, b in places if not np.isnan(size[a, b])]


def corner_name(surface: xr.Dataset, corner: tuple[int, int]) -> str:
    """Where a corner of cells is, in words."""
    return ", ".join(
        f"{surface.attrs[f'feature_{side}']} = {_edge(surface, side, number)}"
        for side, number in zip("ab", corner, strict=True)
    )


def _edge(surface: xr.Dataset, side: str, number: int) -> str:
    edge = surface[f"edge_{side}"].values[number]
    return str(edge) if is_categorical(surface, side) else f"{edge:.4g}"


def for_hypotheses(
    surface: xr.Dataset, feature: Any, variable: str | None, local: Any, groups: Any
) -> Estimates:
    """Mean second differences of the cells with rows, for `hypotheses`."""
    refuse_beside("surfaces", feature=feature, of=variable, local=local, groups=groups)
    surface = with_part_facts(surface)
    covariance, n_rows = vcov(surface, None, "effect"), surface["n_obs"].values
    names = [
        " × ".join(
            f"{_edge(surface, side, number)} to {_edge(surface, side, number + 1)}"
            for side, number in zip("ab", cell, strict=True)
        )
        for cell in np.argwhere(n_rows)
    ]
    supported = np.flatnonzero(n_rows)
    return Estimates(
        names,
        surface["second_effect"].values.ravel()[supported],
        covariance.values.reshape([n_rows.size] * 2)[np.ix_(supported, supported)],
        cell_degrees(surface).ravel()[supported],
        str(surface["second_effect"].attrs["units"]),
        str(covariance.attrs["source"]),
        f"the second differences of {pair_name(surface)}",
    )
