"""Tests of no difference between two curves."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rhale_stats.arguments.words import warn
from rhale_stats.arrays import accumulate, intervals
from rhale_stats.arrays.binning import bin_index
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.effects.errors import with_std_error
from rhale_stats.effects.fit import (
    CurveErrors,
    bends,
    curve_covariance,
    curve_degrees,
    fit_of,
    interpolation,
)
from rhale_stats.effects.hypotheses import APART, QUARTERS
from rhale_stats.effects.paired import Pairs, paired_covariance, pairs_of
from rhale_stats.effects.targets import CURVE_TARGETS
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
from rhale_stats.schema.features import one_feature, slopes
from rhale_stats.schema.identity import check_same_output, fingerprint_of, same_rows
from rhale_stats.schema.levels import is_categorical, level_names
from rhale_stats.schema.moments import has_cells

# Draws for a band that is not asked for.
N_DRAWS = 200


def compare(a: xr.Dataset, b: xr.Dataset, request: Asked) -> xr.Dataset:
    """`compare` of the curves of effects in bins, feature by feature."""
    a, b = check_effect(a, "a"), check_effect(b, "b")
    names = features_in_common(a, b)
    check_same_output(a, b, ("a", "b"), facts=("scale",))
    a, b = with_std_error(a), with_std_error(b)
    pairs = None
    if request.paired is not None:
        pairs = pairs_of((a, b), request.paired, request.groups, names)
    elif request.groups is not None:
        raise ValueError(
            "groups must come with paired; got groups alone. Without pairs give them to the "
            "effects: std_error(effect, local, groups=...)."
        )
    streams = np.random.default_rng(request.rng).spawn(len(names))
    differences, separate = [], []
    for name, stream in zip(names, streams, strict=True):
        rows = one_feature(a, name), one_feature(b, name)
        if not (rows[0].sizes["bin"] and rows[1].sizes["bin"]):
            differences.append(no_difference(CONSTANT))
            continue
        _check_same_levels(rows)
        fits = fit_of(rows[0]), fit_of(rows[1])
        z = points_of(fits)
        if len(z):
            differences.append(_difference(rows, fits, z, pairs, request, stream))
        else:
            differences.append(no_difference(APART))
            separate.append(name)
    if separate:
        without = ", ".join(repr(name) for name in separate)
        if not any(len(difference.grid_value) for difference in differences):
            raise ValueError(
                f"a and b must overlap; got no common value of {without}. Compare effects of rows "
                f"that share a range."
            )
        warn(f"a and b have no common value of {without}. The difference is NaN there.")
    source = _source(a, b, pairs)
    return labelled_differences(differences, a, b, names, source, request)


def contrast(
    a: xr.Dataset, b: xr.Dataset, places: FloatArray, level: float
) -> tuple[float, float, float]:
    """How much more an effect of one feature changes in ``a`` than in ``b`` between two places.

    The estimate and the ends of its interval; no zero of a curve is in it.
    """
    rows = one_feature(with_std_error(a), 0), one_feature(with_std_error(b), 0)
    fits = fit_of(rows[0]), fit_of(rows[1])
    request = Asked(None, None, level, N_DRAWS, 0, "none")
    reference = CurveReference(places[:1], np.ones(1))
    difference = _difference(rows, fits, places, None, request, np.random.default_rng(0), reference)
    lower, upper = difference.difference_ci[1]
    return float(difference.difference[1]), float(lower), float(upper)


def _check_same_levels(rows: tuple[xr.Dataset, xr.Dataset]) -> None:
    """Raise ``ValueError`` unless both have an axis, or the same levels in the same order."""
    levels = [level_names(row) if is_categorical(row) else None for row in rows]
    if levels[0] != levels[1]:
        name = str(rows[0]["feature"].values)
        texts = ["an axis" if names is None else ", ".join(map(repr, names)) for names in levels]
        raise ValueError(
            f"a and b must have the same levels of feature {name!r} in the same order; got "
            f"{texts[0]} and {texts[1]}. Give both one order, as in order={{{name!r}: [...]}}."
        )


def _have_one_model(*rows: xr.Dataset) -> bool:
    """Whether the errors of both hold the same parameters."""
    models = [str(row.attrs.get("fitted_model", "")) for row in rows]
    return bool(models[0]) and models[0] == models[1]


def _source(a: xr.Dataset, b: xr.Dataset, pairs: Pairs | None) -> str:
    """Source of the variance of a difference of effects."""
    if pairs is not None:
        return f"{pairs.source} and parameters" if _have_one_model(a, b) else pairs.source
    if _have_one_model(a, b):
        sources = dict.fromkeys(str(effect["effect_se"].attrs["source"]) for effect in (a, b))
        return f"{' against '.join(sources)}, of one model"
    sources = dict.fromkeys(str(effect["effect_se"].attrs["source"]) for effect in (a, b))
    return f"{' against '.join(sources)}, independent"


def points_of(fits: tuple[CurveErrors, CurveErrors]) -> FloatArray:
    """Edges of both curves in their common range, and quarters where one is bent; or nothing."""
    edges = [fit.edges for fit in fits]
    if not all(map(len, edges)):
        return np.full(0, np.nan)
    low, high = max(e[0] for e in edges), min(e[-1] for e in edges)
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
    fits: tuple[CurveErrors, CurveErrors],
    z: FloatArray,
    pairs: Pairs | None,
    request: Asked,
    rng: np.random.Generator,
    given_reference: CurveReference | None = None,
) -> Difference:
    """One feature: the difference at points within the range of both, about a common zero."""
    reference = common_reference(rows, fits, z) if given_reference is None else given_reference
    points = np.append(z, reference.places)
    curves = [
        accumulate.curve_at(fit.pieces.edges, fit.curve, fit.pieces.slope, points) for fit in fits
    ]
    if pairs is None:
        parts = [curve_covariance(row, fit, points) for row, fit in zip(rows, fits, strict=True)]
        by_curve = [curve_degrees(row, fit, z) for row, fit in zip(rows, fits, strict=True)]
    else:
        covariance, every = paired_covariance(pairs, rows, fits, points)
        parts, by_curve = [covariance], [values[: len(z)] for values in every]
    if _have_one_model(*rows):
        directions = [directions_at(row, fit, points) for row, fit in zip(rows, fits, strict=True)]
        parts.append(_parameter_covariance(directions, paired=pairs is not None))
    has_curve = np.isfinite(np.sum(parts, axis=0).diagonal()[len(z) :])
    curves = [reference.less(curve, has_curve) for curve in curves]
    parts = [reference.covariance(part, has_curve) for part in parts]
    degrees: FloatArray | float = np.minimum(*by_curve)
    if pairs is None:
        degrees = intervals.satterthwaite(*zip(map(np.diagonal, parts), by_curve, strict=False))
    elif pairs.grouped:
        # The same groups are in all points, so that there is one estimate of scale.
        degrees = float(1 / np.mean(1 / np.asarray(degrees)))
    if _have_one_model(*rows):
        # A covariance of parameters by groups has no more degrees of freedom than these leave.
        groups = [row.attrs["n_groups"] - 1.0 for row in rows if "n_groups" in row.attrs]
        degrees = np.minimum(degrees, min(groups, default=np.inf))
    least = sum(meaning.least_effect(row) for row in rows) * float(np.ptp(z))
    covariance = np.sum(parts, axis=0)
    return difference_of(z, (curves[0], curves[1]), covariance, degrees, request, rng, least)


class CurveReference(NamedTuple):
    """A zero for two curves: their mean over places on the axis, by weights; none without places.

    What is given of a curve stands at the points of interest first, and then at these places.
    ``has_curve`` are the places where the difference has a standard error.
    """

    places: FloatArray
    weight: FloatArray

    def less(self, curve: FloatArray, has_curve: NDArray[np.bool_]) -> FloatArray:
        """The curve at the points of interest, about the reference."""
        points, places = np.split(curve, [len(curve) - len(has_curve)])
        return np.asarray(points - places[has_curve] @ self._shares(has_curve))

    def covariance(self, points_cov: FloatArray, has_curve: NDArray[np.bool_]) -> FloatArray:
        """Covariance of `less`, where values at all places have the covariance ``points_cov``."""
        n, shares = len(points_cov) - len(has_curve), self._shares(has_curve)
        mixed = points_cov[:n, n:][:, has_curve] @ shares
        both = shares @ points_cov[n:, n:][np.ix_(has_curve, has_curve)] @ shares
        return np.asarray(points_cov[:n, :n] - mixed - mixed[:, None] + both)

    def _shares(self, has_curve: NDArray[np.bool_]) -> FloatArray:
        weight = self.weight[has_curve]
        return np.asarray(weight / weight.sum())


def common_reference(
    rows: tuple[xr.Dataset, xr.Dataset], fits: tuple[CurveErrors, CurveErrors], z: FloatArray
) -> CurveReference:
    """math [113]: what the centring of both means on their common range; none if it is the same.

    Curves of rows at other places have other zeros. Equal effects would have a difference, and one
    whose standard error does not include it.
    """
    marks = [fingerprint_of(row) for row in rows]
    same, start = CurveReference(np.zeros(0), np.zeros(0)), CurveReference(z[:1], np.ones(1))
    ends = [fit.pieces.edges[[0, -1]] for fit in fits]
    if fits[0].centering not in CURVE_TARGETS:  # both are 0 at one value
        return same
    if fits[0].centering == "start":
        return same if ends[0][0] == ends[1][0] else start
    if fits[0].centering == "integral":
        width = np.diff(z, prepend=z[0], append=z[-1])
        along = CurveReference(z, (width[:-1] + width[1:]) / 2)
        return same if np.array_equal(ends[0], ends[1]) else along
    places, shares = zip(*(_places(fit) for fit in fits), strict=True)
    alike = np.array_equal(places[0], places[1])
    alike = alike and np.allclose(shares[0], shares[1], rtol=1e-9, atol=0)
    if alike or (all(marks) and same_rows(*marks)):
        return same
    n_rows = [float(np.nansum(row["n_level" if is_categorical(row) else "n_obs"])) for row in rows]
    every = np.concatenate(places)
    weight = np.concatenate([n * share for n, share in zip(n_rows, shares, strict=True)])
    within = (every >= z[0]) & (every <= z[-1])
    return CurveReference(every[within], weight[within]) if within.any() else start


def _places(fit: CurveErrors) -> tuple[FloatArray, FloatArray]:
    """Places of the rows of a curve, its levels or the means of its cells, with their shares."""
    if fit.level_share is not None:
        return fit.pieces.edges, fit.level_share
    occupied = fit.pieces.share > 0
    return fit.pieces.x_mean[occupied], fit.pieces.share[occupied]


def directions_at(row: xr.Dataset, fit: CurveErrors, z: FloatArray) -> FloatArray:
    """What the parameters of the model do to a curve at points, (part, point, direction)."""
    if has_cells(row):
        directions = row["cell_curve_directions"].values[fit.cells.edge_stretch]
        return np.asarray(np.einsum("ze,epd->pzd", interpolation(fit.pieces.edges, z), directions))
    edges = row["edge_value"].values
    directions = row["curve_directions"].values[fit.edge_slice]
    out = np.einsum("ze,epd->pzd", interpolation(fit.edges, z), directions)
    if slopes(row).any():
        bend = bends(edges, z)
        out = out - np.einsum("zb,bpd->pzd", bend, row["slope_directions"].values)
    return np.asarray(out)


def _parameter_covariance(directions: list[FloatArray], *, paired: bool) -> FloatArray:
    """What two curves of one model add to the variance of their difference, (point, point).

    With pairs all that is of the parameters; else what the covariances of both do not know.
    """
    if paired:
        model, of_rows = directions[0] - directions[1]
        total: FloatArray = model @ model.T + of_rows @ model.T + model @ of_rows.T
        return total
    (first, rows_a), (second, rows_b) = directions
    shared: FloatArray = first @ second.T + rows_a @ second.T + first @ rows_b.T
    return -shared - shared.T
