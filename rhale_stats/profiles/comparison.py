"""Tests of no difference between two profiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import xarray as xr

from rhale_stats.arguments.survey import design_text
from rhale_stats.arrays import delta, intervals
from rhale_stats.arrays import profiles as kernel
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.arrays.survey import SamplingDesign
from rhale_stats.inference.parameters import refuse_shared
from rhale_stats.inference.results import (
    CONSTANT,
    ComparisonOptions,
    difference_of,
    features_in_common,
    labelled_differences,
    no_difference,
)
from rhale_stats.profiles import inference
from rhale_stats.profiles.data import is_nominal, one_profile
from rhale_stats.profiles.inference import check_curves, degrees_of
from rhale_stats.profiles.parameters import groups_of, of_bins
from rhale_stats.profiles.rows import BinnedOutputs, Curves, Shapley, rows_behind

# --- two profiles ---------------------------------------------------------------------------------


class CommonGrid(NamedTuple):
    """Values of two profiles on their common grid, with the covariance of the difference."""

    grid: FloatArray
    values: tuple[FloatArray, FloatArray]
    covariance: FloatArray
    degrees: FloatArray


def _welch(rows: tuple[xr.Dataset, xr.Dataset]) -> FloatArray:
    """Degrees of freedom of the difference of two profiles that are independent."""
    variances = [row["curve_se"].values ** 2 for row in rows]
    return intervals.satterthwaite(*zip(variances, map(degrees_of, rows), strict=True))


def compared(
    a: xr.Dataset,
    b: xr.Dataset,
    name: str,
    pairs: tuple[xr.Dataset, xr.Dataset] | None,
    code: IntArray | SamplingDesign | None = None,
) -> CommonGrid:
    """One feature of both profiles, paired if both are made from the same rows.

    ``code`` are the groups of the pairs, which may depend on each other within one.
    """
    rows = one_profile(a, name), one_profile(b, name)
    if a.attrs["method"] == "m_plot":
        return _compared_bins(rows, name, pairs, code)
    grids = [row["grid_value"].values for row in rows]
    levels = [row["level"].values.tolist() if is_nominal(row) else [] for row in rows]
    if not np.array_equal(grids[0], grids[1]) or levels[0] != levels[1]:
        raise ValueError(
            f"a and b must have one grid; those of feature {name!r} differ. Make b on the grid of "
            f"a: grid={{{name!r}: a['grid_value'].sel(feature={name!r}).dropna('grid')}}."
        )
    values = rows[0]["curve"].values, rows[1]["curve"].values
    if pairs is None or not len(grids[0]):  # a constant feature has no curve
        covariance = rows[0]["curve_cov"].values + rows[1]["curve_cov"].values
        return CommonGrid(grids[0], values, covariance, _welch(rows))
    sides = [rows_behind(pair_rows, name) for pair_rows in pairs]
    centering = str(a.attrs["centering"])
    group = None if code is None else _groups_at(pairs[0], name, code)
    if group is not None:
        return CommonGrid(grids[0], values, *_by_groups(sides, group, centering))
    moved = [pair_rows.influences(centering) for pair_rows in sides]
    weight, frequency = sides[0].weight, sides[0].frequency
    error = kernel.mean_of_rows(moved[0] - moved[1], weight, frequency=frequency)
    degrees = np.full(len(grids[0]), float(error.n_effective) - 1)
    return CommonGrid(grids[0], values, error.covariance, degrees)


def _groups_at(
    rows: xr.Dataset, name: str, code: IntArray | SamplingDesign
) -> IntArray | SamplingDesign:
    """Groups of the rows that a feature has, from 0 without gaps; or the design of these rows."""
    row = one_profile(rows, name)
    has_curve = ~np.isnan(row["x"].values)
    if "ice" in row:
        has_curve = ~np.isnan(row["ice"].transpose("obs", "grid").values).any(axis=1)
    if isinstance(code, SamplingDesign):
        return code.take(has_curve)
    return np.asarray(np.unique(code[has_curve], return_inverse=True)[1])


def _by_groups(
    sides: Sequence[Curves | BinnedOutputs | Shapley],
    group: IntArray | SamplingDesign,
    centering: str,
) -> tuple[FloatArray, FloatArray]:
    """Covariance of the difference of two curves of the same groups, and its degrees."""
    a, b = sides
    if isinstance(a, Shapley) and isinstance(b, Shapley):
        of_sides = [side.of_groups(group, centering) for side in (a, b)]
        moved = of_sides[0].moved - of_sides[1].moved
        return moved.T @ moved, np.minimum(of_sides[0].degrees, of_sides[1].degrees)
    apart = a.influences(centering) - b.influences(centering)
    units = delta.of_groups(apart, a.weight, group, frequency=a.frequency)
    degrees = np.full(apart.shape[1], max(units.degrees, 0.0))
    return units.moved.T @ units.moved, degrees


def _compared_bins(
    rows: tuple[xr.Dataset, xr.Dataset],
    name: str,
    pairs: tuple[xr.Dataset, xr.Dataset] | None,
    code: IntArray | SamplingDesign | None,
) -> CommonGrid:
    """M-plots in the bins where both have rows, at the midpoint of their mean places.

    For pairs the difference is the M-plot of the difference of the outputs, math [42].
    """
    edges = [np.append(row["bin_left"].values, row["bin_right"].values[-1:]) for row in rows]
    levels = [row["level"].values.tolist() if is_nominal(row) else [] for row in rows]
    if not np.array_equal(edges[0], edges[1]) or levels[0] != levels[1]:
        raise ValueError(
            f"a and b must have the same bins; those of feature {name!r} differ. Make both with "
            f"bins=GivenBins of the same edges, and of the same levels."
        )
    both_known = np.all([np.isfinite(row["curve"].values) for row in rows], axis=0)
    if not both_known.any():
        nothing = np.zeros(0)
        return CommonGrid(nothing, (nothing, nothing), np.zeros((0, 0)), nothing)
    grid = np.mean([row["grid_value"].values for row in rows], axis=0)[both_known]
    values = rows[0]["curve"].values[both_known], rows[1]["curve"].values[both_known]
    degrees = _welch(rows)
    covariance = rows[0]["curve_cov"].values + rows[1]["curve_cov"].values
    if pairs is not None:
        a, b = [rows_behind(pair_rows, name) for pair_rows in pairs]
        assert isinstance(a, BinnedOutputs), "M-plots keep outputs"
        assert isinstance(b, BinnedOutputs), "M-plots keep outputs"
        if not np.array_equal(a.cell, b.cell):
            raise ValueError(
                f"paired must have the rows in the same bins; those of feature {name!r} are in "
                f"others. Leave paired out for rows that are independent."
            )
        group = None if code is None else _groups_at(pairs[0], name, code)
        covariance, degrees, _ = of_bins(
            replace(a, values=a.values - b.values), rows[0], str(pairs[0].attrs["centering"]), group
        )
        if group is None:
            degrees = np.minimum(*map(degrees_of, rows))
    return CommonGrid(grid, values, covariance[np.ix_(both_known, both_known)], degrees[both_known])


def check_pairs(
    pairs: tuple[xr.Dataset, xr.Dataset], profiles: tuple[xr.Dataset, xr.Dataset]
) -> tuple[xr.Dataset, xr.Dataset]:
    """ICE curves of both profiles, of the same rows with the same weights."""
    checked = [
        check_curves(curves, profile, f"paired[{number}]")
        for number, (curves, profile) in enumerate(zip(pairs, profiles, strict=True))
    ]
    a, b = checked
    if a.sizes["obs"] != b.sizes["obs"] or not np.array_equal(a["obs"].values, b["obs"].values):
        raise ValueError(
            f"paired must be of the same rows in the same order; got {a.sizes['obs']} and "
            f"{b.sizes['obs']} rows, or other labels of them. Leave paired out for rows that are "
            f"independent."
        )
    weights = [curves["weight"].values if "weight" in curves else np.ones(0) for curves in checked]
    if (
        not np.array_equal(weights[0], weights[1])
        or a.attrs["weight_kind"] != b.attrs["weight_kind"]
    ):
        raise ValueError("paired must have the same weights; got others. Make both with one kind.")
    return a, b


def compare(a: xr.Dataset, b: xr.Dataset, request: ComparisonOptions) -> xr.Dataset:
    """`compare` of two profiles on one grid, optionally paired by their ICE curves."""
    a, b = inference.with_errors(a, "a"), inference.with_errors(b, "b")
    refuse_shared(a, b, "profiles", paired=request.paired is not None)
    if request.groups is not None and request.paired is None:
        raise ValueError(
            "groups come with paired, the rows of both profiles. Without pairs give each profile "
            "its own: compare(std_error(a, ice_a, groups=...), std_error(b, ice_b, groups=...))."
        )
    names = features_in_common(a, b, ("centering", "method"))
    a, b = a.sel(feature=names), b.sel(feature=names)
    pairs = None if request.paired is None else check_pairs(request.paired, (a, b))
    code, n_groups = groups_of(request.groups, None if pairs is None else pairs[0], None)
    if (
        pairs is not None
        and n_groups is None
        and any("n_groups" in comparison.attrs for comparison in (a, b))
    ):
        raise ValueError(
            "groups must be given for pairs of profiles with standard errors by groups: "
            "compare(a, b, paired=..., groups=...)."
        )
    differences = []
    streams = np.random.default_rng(request.rng).spawn(len(names))
    for name, stream in zip(names, streams, strict=True):
        comparison = compared(a, b, name, pairs, code)
        differences.append(
            difference_of(*comparison, request, stream)
            if len(comparison.grid)
            else no_difference(CONSTANT)
        )
    sides = " against ".join(str(comparison["curve_se"].attrs["source"]) for comparison in (a, b))
    source = f"{sides}, independent"
    if pairs is not None:
        source = "pairs of rows" if n_groups is None else f"pairs of rows in {n_groups} groups"
        source = f"pairs of {design_text(code)}" if isinstance(code, SamplingDesign) else source
    return labelled_differences(differences, a, b, names, source, request)
