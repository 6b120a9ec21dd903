"""Differences of two effects, and of an effect from its value at a reference."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rhale_stats.arguments.rows import as_numbers
from rhale_stats.arguments.survey import GroupsOrDesign, design_text
from rhale_stats.arguments.times import as_values
from rhale_stats.arguments.words import shown, warn
from rhale_stats.arrays import accumulate, influence, intervals
from rhale_stats.arrays.binning import bin_index
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.arrays.survey import SamplingDesign
from rhale_stats.effects.cluster_robust import (
    Clusters,
    Grouped,
    blocks,
    centres,
    units_of_rows,
)
from rhale_stats.effects.errors import check_has_errors, with_std_error
from rhale_stats.effects.fit import (
    CURVE_TARGETS,
    SOURCE,
    Feature,
    bends,
    curve_covariance,
    curve_degrees,
    features_of,
    source_of_errors,
)
from rhale_stats.effects.provenance import check_same_rows
from rhale_stats.effects.values import predict
from rhale_stats.inference.estimate import Joint, joint_quantiles, of_one_scale
from rhale_stats.inference.results import (
    CONSTANT,
    ComparisonOptions,
    Difference,
    along_axis,
    difference_of,
    features_in_common,
    labelled_differences,
    no_difference,
)
from rhale_stats.local.rows import columns, is_used_row
from rhale_stats.printing.text import number_text
from rhale_stats.schema.checks import check_effect, check_local
from rhale_stats.schema.curves import CurveErrors, interpolation
from rhale_stats.schema.feature_result import FeatureResult, Result, has_moments, one_feature
from rhale_stats.schema.features import feature_names, is_grouped, label_of
from rhale_stats.schema.identity import check_same_output, fingerprint_of, same_rows
from rhale_stats.schema.levels import level_names, level_text
from rhale_stats.schema.padding import padded
from rhale_stats.schema.parts import rows_of_feature

# Intervals about the curve as it was centred, which are computed again.
ABOUT = ("curve_ci", "curve_band", "curve_ci_rows")


def relative_to(effect: xr.Dataset, value: Any) -> xr.Dataset:
    """An effect of one feature whose curve is 0 at a value, with intervals of the difference.

    The variance of F(z) - F(r) is C(z, z) + C(r, r) - 2 C(z, r) with the covariance C of the curve,
    whatever its centring; degrees of freedom are Satterthwaite's, by groups and with parameters the
    smaller ones of both points. Intervals are made where standard errors are known, with the level
    of those that are there, and a band only where there was one. Its draws are those of seed 0.
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
    names = [name for name in ("curve", "missing_curve") if name in out]
    out = out.assign({name: out[name].copy(data=out[name].values - reference) for name in names})
    out.attrs["reference"] = f"{label_of(effect, name)} = {text}"
    target = "difference from the curve at the reference"
    if not has_moments(effect) or not row.sizes["bin"]:
        return out
    effect_with_errors = with_std_error(effect)
    (feature,) = features_of(effect_with_errors)
    results = _intervals(feature, value, effect)
    for interval, ends in results.items():
        template = effect.get(interval, effect.get("curve_ci", effect.get("curve_band")))
        attrs = {} if template is None else dict(template.attrs)
        values = padded([ends], (effect.sizes["edge"], 2))
        out[interval] = (("feature", "edge", "ci_bound"), values, {**attrs, "target": target})
    return out.assign_coords(ci_bound=effect_with_errors.get("ci_bound", ["lower", "upper"]))


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
    edges = row.bin_edges
    edges = edges[np.isfinite(edges)]
    if not len(edges):
        return "The feature is constant."
    return f"Its bins are from {number_text(edges[0])} to {number_text(edges[-1])}."


def _intervals(feature: Feature, value: Any, effect: xr.Dataset) -> dict[str, FloatArray]:
    """Intervals, and bands where the effect has them, at all edges, (edge, ci_bound)."""
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
    curve = fit.curve - np.interp(reference[0], z, fit.curve)
    level = float(effect["curve_ci"].attrs.get("ci_prob", 0.95)) if "curve_ci" in effect else 0.95
    widths = {"ci": intervals.student(level, degrees) * se}
    if "curve_band" in effect:
        level = float(effect["curve_band"].attrs.get("ci_prob", 0.95))
        rng = np.random.default_rng(0)
        widths["band"] = joint_quantiles(joint, degrees, level, intervals.N_DRAWS, rng) * se
    results = {}
    for end, half in widths.items():
        half = np.where(se == 0, 0.0, half)
        results[f"curve_{end}"] = fit.cells.at_edges(np.stack([curve - half, curve + half], -1))
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
    sources = fit.cells.sources(fit.parts(difference))
    return Joint(covariance, sources.satterthwaite(np.diagonal(covariance)), sources)


# Parameters of `compare` that hold local effects of pairs, and the effects made from them.
PAIRED = (("paired[0]", "a"), ("paired[1]", "b"))


class Pairs(NamedTuple):
    """The rows of both effects in common units: pairs, or groups of them.

    ``sides`` are those of each feature, ``repeats`` the number of independent pairs that a unit
    represents.
    """

    sides: dict[str, tuple[Clusters, Clusters]]
    repeats: FloatArray
    grouped: bool
    source: str
    design: SamplingDesign | None = None


def pairs_of(
    effects: tuple[xr.Dataset, xr.Dataset],
    paired: tuple[xr.Dataset, xr.Dataset],
    groups: GroupsOrDesign | None,
    names: list[str],
) -> Pairs:
    """Raise ``ValueError`` unless rows, weights and groups of both go together."""
    paired = _local_pair(paired)
    sizes = [local.sizes["obs"] for local in paired]
    if sizes[0] != sizes[1]:
        raise ValueError(
            f"paired must be local effects of the same rows; got {sizes[0]} and {sizes[1]} rows."
        )
    for local, effect, names_of_pair in zip(paired, effects, PAIRED, strict=True):
        check_same_output(local, effect, names_of_pair)
    marks = {str(effect.attrs.get("fitted_model", "")) for effect in effects}
    if len(marks) > 1:
        raise ValueError(
            "paired must be left out where the errors of a and b hold the parameters of different "
            "models, whose errors depend on each other in a way that is not known. Make both "
            "without model=, or refit both models together."
        )
    used = [is_used_row(local, effect) for local, effect in zip(paired, effects, strict=True)]
    design: SamplingDesign | None = None
    if groups is None:
        if any(is_grouped(effect) for effect in effects):
            raise ValueError(
                "groups must be given where a or b has standard errors by groups: "
                "compare(a, b, paired=..., groups=...). Make both without groups if pairs are "
                "independent of each other."
            )
        unit, repeats, source = np.arange(sizes[0]), _multiplicity(paired), "pairs of rows"
    else:
        either = used[0] | used[1]
        code, n_groups, design = units_of_rows(groups, paired[0], either, "pairs")
        # Rows that neither effect uses do not count in any group.
        unit = np.zeros(sizes[0], dtype=np.int64)
        unit[either] = code
        repeats = np.ones(n_groups)
        source = f"pairs of rows in {n_groups} groups"
        source = source if design is None else f"pairs of {design_text(design)}"
    sides = {}
    for name in names:
        first, second = [
            _side(local, name, rows, unit, len(repeats))
            for local, rows in zip(paired, used, strict=True)
        ]
        for side, effect, names_of_pair in zip((first, second), effects, PAIRED, strict=True):
            row = one_feature(effect, name)
            if row.sizes["bin"]:
                check_same_rows(row, side.rows, 0, *names_of_pair)
        sides[name] = first, second
    _check_rows_of_pairs(paired)
    return Pairs(sides, repeats, groups is not None, source, design)


def _side(
    local: xr.Dataset, name: str, used: NDArray[np.bool_], unit: IntArray, n_units: int
) -> Clusters:
    """The ``used`` rows of one feature with their units; halves have that of their row."""
    column, numbers = rows_of_feature(local, name)
    some = used[numbers]
    return Clusters(columns(column.isel(obs=some)), column, unit[numbers[some]], n_units)


def _local_pair(paired: object) -> tuple[xr.Dataset, xr.Dataset]:
    """The local effects of both sides; raise ``TypeError`` for something else than two."""
    if not isinstance(paired, tuple | list) or len(paired) != 2:
        raise TypeError(
            f"paired must be two Datasets, the local effects of a and those of b; got "
            f"{type(paired).__name__}."
        )
    (first, _), (second, _) = PAIRED
    return check_local(paired[0], first), check_local(paired[1], second)


def _check_rows_of_pairs(paired: tuple[xr.Dataset, xr.Dataset]) -> None:
    """Raise ``ValueError`` if rows have different labels, or different values of all features.

    Some features may have changed between two measurements of the same rows.
    """
    first, second = paired
    advice = "Leave paired out if rows are independent of each other."
    if not np.array_equal(first["obs"].values, second["obs"].values):
        raise ValueError(
            f"paired must be local effects of the same rows in the same order; their rows have "
            f"different names (coordinate obs). {advice}"
        )
    common = set(feature_names(first)) & set(feature_names(second))
    x = [{name: local["x"].sel(feature=name).values for name in common} for local in paired]
    if not any(np.array_equal(x[0][name], x[1][name], equal_nan=True) for name in common):
        raise ValueError(
            f"paired must be local effects of the same rows in the same order; all of their "
            f"features have different values. {advice}"
        )


def _multiplicity(paired: tuple[xr.Dataset, xr.Dataset]) -> FloatArray:
    """Number of pairs that every pair of rows represents: its frequency weight, or 1."""
    ones = np.ones(paired[0].sizes["obs"])
    first, second = [
        np.asarray(local["weight"].values, dtype=np.float64)
        if "weight" in local and local.attrs.get("weight_kind") == "frequency"
        else ones
        for local in paired
    ]
    if not np.array_equal(first, second):
        row = int(np.flatnonzero(first != second)[0])
        raise ValueError(
            f"paired must have the same frequencies in both, as they count pairs; got "
            f"{first[row]:g} and {second[row]:g} in row {row}. Use weights of kind 'precision'."
        )
    return first


def paired_covariance(
    pairs: Pairs,
    rows: tuple[FeatureResult, FeatureResult],
    fits: tuple[CurveErrors, CurveErrors],
    z: FloatArray,
) -> tuple[FloatArray, list[FloatArray]]:
    """Covariance of the difference from the influences of units, or of their groups.

    Also the degrees of freedom of both curves at the points.
    """
    influences: list[tuple[influence.RowSums, influence.Loadings, bool]] = []
    degrees: list[FloatArray] = []
    unknown = np.zeros(len(z), dtype=bool)
    for side, row, fit in zip(pairs.sides[rows[0].name], rows, fits, strict=True):
        grouped = _influences(side, row, fit, None if pairs.grouped else pairs.repeats)
        sums = grouped.sums
        degrees.append(grouped.curve_degrees(fit, z) if pairs.grouped else fit.degrees_by_cell(z))
        loadings = fit.loadings(z)
        influences.append((sums, loadings, fit.centering == "mean"))
        # Without a residual degree of freedom, or with one group, the noise is not estimable.
        blind = np.isnan(fit.noise.mean)
        if pairs.grouped:
            few = _groups_of_bins(sums, fit) <= 1 + (fit.pieces.slope != 0)
            blind |= few
        unknown |= (loadings.level[:, blind] != 0).any(axis=1)
    covariance = np.zeros((len(z), len(z)))
    # A unit with frequency k represents k pairs, each with 1/k of its influence.
    share = 1 / np.sqrt(np.where(pairs.repeats > 0, pairs.repeats, 1.0))
    # The clusters of a design are taken from the means of their strata, all at once.
    n_units = influence.BLOCK_ROWS if pairs.design is None else len(share)
    for begin in range(0, len(share), n_units):
        block = slice(begin, begin + n_units)
        first, second = [
            sums.of_curve(loadings, population=population, rows=block)
            for sums, loadings, population in influences
        ]
        influence_of_units = share[block, None] * (first - second)
        if pairs.design is not None:
            influence_of_units = pairs.design.units_of_clusters(influence_of_units)
            degrees = [np.minimum(part, pairs.design.degrees) for part in degrees]
        covariance += influence_of_units.T @ influence_of_units
    covariance[unknown] = covariance[:, unknown] = np.nan
    return covariance, degrees


def _groups_of_bins(sums: influence.RowSums, fit: CurveErrors) -> IntArray:
    """Number of groups with rows in the bin of every cell."""
    if fit.of_levels is not None:
        return sums.n_groups()
    bin_of = fit.cells.bin[fit.cells.stretch]
    means = sums.mean.tocoo()
    pairs = np.unique(np.stack([bin_of[means.coords[1]], means.coords[0]]), axis=1)
    return np.asarray(np.bincount(pairs[0], minlength=int(bin_of.max()) + 1)[bin_of])


def _influences(
    side: Clusters, row: FeatureResult, fit: CurveErrors, repeats: FloatArray | None
) -> Grouped:
    """Influences of units on the stretch of the curve, corrected for their leverage.

    ``repeats``: the pairs that every unit represents; None for groups, whose residuals are from the
    means of blocks of cells.
    """
    if row.is_categorical:
        return side.level_influences(row, repeats)
    pieces, block = fit.pieces, np.arange(len(fit.pieces.mean))
    if repeats is None:
        cells = fit.cells
        cell = bin_index(cells.pieces.edges, side.columns(row)[0])
        block = blocks(cells, cell, side.group)
        total = np.bincount(cell, side.rows.weight, len(block)).astype(np.float64)
        pieces = pieces._replace(mean=centres(cells.pieces, block, total)[cells.stretch])
        # Numbers of the blocks of the stretch, from 0 on.
        block = np.unique(block[cells.stretch], return_inverse=True)[1]
    return side.curve_sums(row, fit, pieces).influences(pieces, fit.curve, block, repeats)


# --- tests of no difference between two curves ----------------------------------------------------


# Why there is no difference.
APART = "no value of the feature is in the range of both"
# Shares of a bin at which curves are compared between two edges where one is bent.
QUARTERS = np.array([0.25, 0.5, 0.75])


def compare(a: xr.Dataset, b: xr.Dataset, request: ComparisonOptions) -> xr.Dataset:
    """`compare` of the curves of effects in bins, feature by feature."""
    a, b = check_effect(a, "a"), check_effect(b, "b")
    names = features_in_common(a, b)
    check_same_output(a, b, ("a", "b"), facts=("scale",))
    check_has_errors(a)
    check_has_errors(b)
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
        fits = rows[0].fit, rows[1].fit
        z = points_of((rows[0].bin_edges, rows[1].bin_edges), fits)
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
    rows = one_feature(a, 0), one_feature(b, 0)
    reference = CurveReference(places[:1], np.ones(1))
    curves, covariance, degrees = _curves_compared(
        rows, (rows[0].fit, rows[1].fit), places, None, reference
    )
    change = curves[0][1] - curves[1][1]
    se = np.sqrt(max(covariance[1, 1], 0.0))
    half = intervals.student(level, np.broadcast_to(degrees, 2)[1]) * se
    lower, upper = intervals.around(change, half)
    return float(change), float(lower), float(upper)


def _check_same_levels(rows: tuple[FeatureResult, FeatureResult]) -> None:
    """Raise ``ValueError`` unless both have an axis, or the same levels in the same order."""
    levels = [level_names(row) if row.is_categorical else None for row in rows]
    if levels[0] != levels[1]:
        name = str(rows[0]["feature"].values)
        texts = ["an axis" if names is None else ", ".join(map(repr, names)) for names in levels]
        raise ValueError(
            f"a and b must have the same levels of feature {name!r} in the same order; got "
            f"{texts[0]} and {texts[1]}. Give both one order, as in order={{{name!r}: [...]}}."
        )


def _have_one_model(*rows: Result) -> bool:
    """Whether the errors of both hold the same parameters."""
    models = [str(row.attrs.get("fitted_model", "")) for row in rows]
    return bool(models[0]) and models[0] == models[1]


def _source(a: xr.Dataset, b: xr.Dataset, pairs: Pairs | None) -> str:
    """Source of the variance of a difference of effects."""
    one_model = _have_one_model(a, b)
    if pairs is not None:
        return f"{pairs.source} and parameters" if one_model else pairs.source
    sources = {
        source_of_errors(effect, "effect") if "effect_se" in effect else SOURCE: None
        for effect in (a, b)
    }
    return f"{' against '.join(sources)}, {'of one model' if one_model else 'independent'}"


def points_of(
    edges: tuple[FloatArray, FloatArray], fits: tuple[CurveErrors, CurveErrors]
) -> FloatArray:
    """Edges of the bins of both and ends of their common range, and quarters where a curve is bent.

    Nothing where they have no common range.
    """
    low = max(fit.pieces.edges[0] for fit in fits)
    high = min(fit.pieces.edges[-1] for fit in fits)
    if not low < high:
        return np.full(0, np.nan)
    z = np.unique(np.clip(np.concatenate(edges), low, high))
    width, middle = np.diff(z), (z[:-1] + z[1:]) / 2
    bent = np.zeros(len(width), dtype=bool)
    for fit in fits:
        inside = bin_index(fit.pieces.edges, z[:-1]) != bin_index(fit.pieces.edges, middle)
        bent |= inside | (fit.pieces.slope[bin_index(fit.pieces.edges, middle)] != 0)
    return np.union1d(z, z[:-1][bent, None] + width[bent, None] * QUARTERS)


def _difference(
    rows: tuple[FeatureResult, FeatureResult],
    fits: tuple[CurveErrors, CurveErrors],
    z: FloatArray,
    pairs: Pairs | None,
    request: ComparisonOptions,
    rng: np.random.Generator,
) -> Difference:
    """One feature: the difference at points within the range of both, about a common zero."""
    compared = _curves_compared(rows, fits, z, pairs, common_reference(rows, fits, z))
    least = sum(row.least_effect for row in rows) * float(np.ptp(z))
    return difference_of(z, *compared, request, rng, least)


def _curves_compared(
    rows: tuple[FeatureResult, FeatureResult],
    fits: tuple[CurveErrors, CurveErrors],
    z: FloatArray,
    pairs: Pairs | None,
    reference: CurveReference,
) -> tuple[tuple[FloatArray, FloatArray], FloatArray, FloatArray | float]:
    """Two curves at points, about a common zero; covariance and degrees of their difference."""
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
    about_zero = reference.less(curves[0], has_curve), reference.less(curves[1], has_curve)
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
    return about_zero, np.sum(parts, axis=0), degrees


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
    rows: tuple[FeatureResult, FeatureResult], fits: tuple[CurveErrors, CurveErrors], z: FloatArray
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
        same_ends = np.array_equal(ends[0], ends[1])
        return same if same_ends else CurveReference(z, along_axis(z))
    places, shares = zip(*[_places(fit) for fit in fits], strict=True)
    alike = np.array_equal(places[0], places[1])
    alike = alike and np.allclose(shares[0], shares[1], rtol=1e-9, atol=0)
    if alike or (all(marks) and same_rows(*marks)):
        return same
    n_rows = [float(np.nansum(row["n_level" if row.is_categorical else "n_obs"])) for row in rows]
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


def directions_at(row: FeatureResult, fit: CurveErrors, z: FloatArray) -> FloatArray:
    """What the parameters of the model do to a curve at points, (part, point, direction)."""
    directions = row["curve_directions"].values[fit.cells.edge_stretch]
    out = np.einsum("ze,epd->pzd", interpolation(fit.pieces.edges, z), directions)
    if not row.has_cells and row.slopes.any():
        bend = bends(row.bin_edges, z)
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
