"""Tests of no difference between two curves."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rhale_stats.arguments.words import warn
from rhale_stats.arrays import accumulate, intervals
from rhale_stats.arrays.binning import bin_index
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.effects.errors import with_std_error
from rhale_stats.effects.fit import (
    Fit,
    bends,
    curve_covariance,
    curve_degrees,
    fit_of,
    interpolation,
)
from rhale_stats.effects.hypotheses import APART, QUARTERS
from rhale_stats.effects.paired import Pairs, paired_covariance, pairs_of
from rhale_stats.inference import meaning
from rhale_stats.inference.results import (
    CONSTANT,
    Asked,
    Difference,
    difference_of,
    features_in_common,
    labelled_differences,
    no_difference,
)
from rhale_stats.schema.checks import check_effect
from rhale_stats.schema.curves import has_cells
from rhale_stats.schema.features import one_feature, slopes
from rhale_stats.schema.identity import check_same_output
from rhale_stats.schema.levels import is_categorical, level_names


def compare(a: xr.Dataset, b: xr.Dataset, asked: Asked) -> xr.Dataset:
    """`compare` of the curves of effects in bins, feature by feature."""
    a, b = check_effect(a, "a"), check_effect(b, "b")
    names = features_in_common(a, b)
    check_same_output(a, b, ("a", "b"), facts=("scale",))
    a, b = with_std_error(a), with_std_error(b)
    pairs = None
    if asked.paired is not None:
        pairs = pairs_of((a, b), asked.paired, asked.groups, names)
    elif asked.groups is not None:
        raise ValueError(
            "groups must come with paired; got groups alone. Without pairs give them to the "
            "effects: std_error(effect, local, groups=...)."
        )
    streams = np.random.default_rng(asked.rng).spawn(len(names))
    found, apart = [], []
    for name, stream in zip(names, streams, strict=True):
        rows = one_feature(a, name), one_feature(b, name)
        if not (rows[0].sizes["bin"] and rows[1].sizes["bin"]):
            found.append(no_difference(CONSTANT))
            continue
        _check_same_levels(rows)
        fits = fit_of(rows[0]), fit_of(rows[1])
        z = points_of(fits)
        if len(z):
            found.append(_difference(rows, fits, z, pairs, asked, stream))
        else:
            found.append(no_difference(APART))
            apart.append(name)
    if apart:
        without = ", ".join(repr(name) for name in apart)
        if not any(len(one.grid_value) for one in found):
            raise ValueError(
                f"a and b must overlap; got no common value of {without}. Compare effects of rows "
                f"that share a range."
            )
        warn(f"a and b have no common value of {without}. The difference is NaN there.")
    source = _source(a, b, pairs)
    return labelled_differences(found, a, b, names, source, asked)


def _check_same_levels(rows: tuple[xr.Dataset, xr.Dataset]) -> None:
    """Raise ``ValueError`` unless both have an axis, or the same levels in the same order."""
    found = [level_names(row) if is_categorical(row) else None for row in rows]
    if found[0] != found[1]:
        name = str(rows[0]["feature"].values)
        texts = ["an axis" if one is None else ", ".join(map(repr, one)) for one in found]
        raise ValueError(
            f"a and b must have the same levels of feature {name!r} in the same order; got "
            f"{texts[0]} and {texts[1]}. Give both one order, as in order={{{name!r}: [...]}}."
        )


def _of_one_model(*rows: xr.Dataset) -> bool:
    """Whether the errors of both hold the same parameters."""
    known = [str(row.attrs.get("fitted_model", "")) for row in rows]
    return bool(known[0]) and known[0] == known[1]


def _source(a: xr.Dataset, b: xr.Dataset, pairs: Pairs | None) -> str:
    """Source of the variance of a difference of effects."""
    if pairs is not None:
        return f"{pairs.source} and parameters" if _of_one_model(a, b) else pairs.source
    if _of_one_model(a, b):
        sources = dict.fromkeys(str(one["effect_se"].attrs["source"]) for one in (a, b))
        return f"{' against '.join(sources)}, of one model"
    sources = dict.fromkeys(str(one["effect_se"].attrs["source"]) for one in (a, b))
    return f"{' against '.join(sources)}, independent"


def points_of(fits: tuple[Fit, Fit]) -> FloatArray:
    """Edges of both curves in their common range, and quarters where one is bent; or nothing."""
    edges = [fit.edges for fit in fits]
    if not all(map(len, edges)):
        return np.full(0, np.nan)
    low, high = max(one[0] for one in edges), min(one[-1] for one in edges)
    if not low < high:
        return np.full(0, np.nan)
    z = np.unique(np.concatenate(edges))
    z = z[(z >= low) & (z <= high)]
    width, middle = np.diff(z), (z[:-1] + z[1:]) / 2
    bent = np.zeros(len(width), dtype=bool)
    for fit in fits:
        inside = bin_index(fit.pieces.edges, z[:-1]) != bin_index(fit.pieces.edges, middle)
        bent |= inside | (fit.pieces.slope[bin_index(fit.pieces.edges, middle)] != 0)
    return np.union1d(z, z[:-1][bent, None] + width[bent, None] * QUARTERS)


def _difference(
    rows: tuple[xr.Dataset, xr.Dataset],
    fits: tuple[Fit, Fit],
    z: FloatArray,
    pairs: Pairs | None,
    asked: Asked,
    rng: np.random.Generator,
) -> Difference:
    """One feature: the difference at points within the range of both."""
    values = [accumulate.curve_at(fit.pieces.edges, fit.curve, fit.pieces.slope, z) for fit in fits]
    together = np.zeros((len(z), len(z)))
    if _of_one_model(*rows):
        moved = [directions_at(row, fit, z) for row, fit in zip(rows, fits, strict=True)]
        together = _of_parameters(moved, paired=pairs is not None)
    if pairs is None:
        parts = [curve_covariance(row, fit, z) for row, fit in zip(rows, fits, strict=True)]
        covariance = parts[0] + parts[1] + together
        own = [curve_degrees(row, fit, z) for row, fit in zip(rows, fits, strict=True)]
    else:
        covariance, own = paired_covariance(pairs, rows, fits, z)
        covariance = covariance + together
    degrees: FloatArray | float = np.minimum(*own)
    if pairs is None:
        degrees = intervals.welch(np.diagonal(parts[0]), np.diagonal(parts[1]), *own)
    elif pairs.grouped:
        # The same groups are in all points, so that there is one estimate of scale.
        degrees = float(1 / np.mean(1 / np.asarray(degrees)))
    least = sum(meaning.least_effect(row) for row in rows) * float(np.ptp(z))
    return difference_of(z, (values[0], values[1]), covariance, degrees, asked, rng, least)


def directions_at(row: xr.Dataset, fit: Fit, z: FloatArray) -> FloatArray:
    """What the parameters of the model do to a curve at points, (part, point, direction)."""
    if has_cells(row):
        here = slice(fit.cells.here.start, fit.cells.here.stop + 1)
        known = row["cell_curve_directions"].values[here]
        return np.asarray(np.einsum("ze,epd->pzd", interpolation(fit.pieces.edges, z), known))
    edges = row["edge_value"].values
    known = row["curve_directions"].values[fit.there]
    out = np.einsum("ze,epd->pzd", interpolation(fit.edges, z), known)
    if slopes(row).any():
        bend = bends(edges, z)
        out = out - np.einsum("zb,bpd->pzd", bend, row["slope_directions"].values)
    return np.asarray(out)


def _of_parameters(moved: list[FloatArray], *, paired: bool) -> FloatArray:
    """What two curves of one model add to the variance of their difference, (point, point).

    With pairs all that is of the parameters; else what the covariances of both do not know.
    """
    if paired:
        model, of_rows = moved[0] - moved[1]
        total: FloatArray = model @ model.T + of_rows @ model.T + model @ of_rows.T
        return total
    (first, rows_a), (second, rows_b) = moved
    shared: FloatArray = first @ second.T + rows_a @ second.T + first @ rows_b.T
    return -shared - shared.T
