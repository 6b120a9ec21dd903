"""Tests of effects: of none, of a constant one, of equal ones, of small ones (math [31])."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray
from scipy import linalg, stats

from rhale_stats import meaning
from rhale_stats.adjustment import ADJUSTMENTS
from rhale_stats.arrays import accumulate, bin_error, influence, intervals
from rhale_stats.arrays.binning import bin_index
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.by_part import each_part
from rhale_stats.curves import fine_of, has_cells, line_moments_of, pieces_of
from rhale_stats.effects import (
    Rows,
    check_same_rows,
    columns,
    estimation_rows,
    is_used_row,
    own_columns,
    resolution,
)
from rhale_stats.identity import check_same_output, row_labels
from rhale_stats.inference import (
    Clusters,
    Fit,
    bin_degrees,
    fit_of,
    has_covariance,
    interpolation,
    level_sums,
    rows_of_feature,
    with_std_error,
)
from rhale_stats.schema import (
    check_effect,
    check_local,
    feature_names,
    feature_position,
    is_categorical,
    is_grouped,
    level_names,
    methods_of,
    one_feature,
    slopes,
)
from rhale_stats.tests_of import (
    CONSTANT,
    Difference,
    difference_of,
    labelled_differences,
    labelled_test,
    no_difference,
)
from rhale_stats.validate import check_choice, checked, row_codes, warn

NULLS = {
    "zero": "all effects are 0",
    "constant": "all effects are equal",
    "homogeneous": "all rows have the same effect at a value of the feature",
}
# Rules whose cells are the bins.
FIXED_RULES = ("EqualWidthBins", "QuantileBins", "GivenBins")
# Why there is no p-value.
APART = "no value of the feature is in the range of both"
FEW_GROUPS = "too few groups for that many effects: no degree of freedom is left"
BIN_ERROR = (
    "a change of the effect within a bin spreads its local effects as well; pass the rows: "
    "wald_test(effect, 'homogeneous', local=local)"
)

# Local effects of pairs, and the effects that were made from them, by parameter.
PAIRED = (("paired[0]", "a"), ("paired[1]", "b"))
# Points of a comparison between two edges where a curve is bent.
QUARTERS = np.array([0.25, 0.5, 0.75])


def wald_test(effect: xr.Dataset, null: str, adjust: str, local: xr.Dataset | None) -> xr.Dataset:
    """`wald_test` of effects in bins, a line a feature."""
    check_choice("null", null, tuple(NULLS))
    if local is not None and null != "homogeneous":
        raise ValueError(
            f"local must be None, except with null 'homogeneous' of effects in bins; got local "
            f"with null {null!r}. Leave it out."
        )
    effect = check_effect(effect)
    names = feature_names(effect)
    if null == "homogeneous":
        own = (
            {} if local is None else own_columns(estimation_rows(check_local(local), effect), names)
        )
        rows = [_homogeneous(one_feature(effect, name), own.get(name)) for name in names]
    else:
        effect = with_std_error(effect)
        rows = [_equal(one_feature(effect, name), null) for name in names]
    return labelled_test(
        effect,
        _by_name(rows),
        adjust,
        null=NULLS[null],
        source=str(effect["effect_se"].attrs["source"]) if "effect_se" in effect else "rows",
        test=f"wald_test, null {null!r}",
    )


class _Wald(NamedTuple):
    """A test of one feature, or why there is none."""

    statistic: float = float("nan")
    df: float = float("nan")
    p_value: float = float("nan")
    reason: str = ""


def _by_name(rows: Sequence[_Wald]) -> dict[str, Any]:
    """Tests of all features, as arrays by name."""
    return {name: np.array(values) for name, *values in zip(_Wald._fields, *rows, strict=True)}


def _equal(row: xr.Dataset, null: str) -> _Wald:
    """All effects of one feature are 0, or equal."""
    if not row.sizes["bin"]:
        return _Wald(reason=CONSTANT)
    if null == "constant":
        if meaning.is_unordered(row):
            return _Wald(reason=meaning.ORDER)
        if row.sizes["bin"] == 1 and not slopes(row).any():
            return _Wald(df=0.0, reason=meaning.ONE_BIN)
    if reason := meaning.of_effects(row):
        return _Wald(reason=reason)
    if "n_groups" in row.attrs:
        return _grouped(row, null)
    return _correlated(row, null) if is_categorical(row) else _sum_of_squares(row, null)


def _sum_of_squares(row: xr.Dataset, null: str) -> _Wald:
    """Independent bins: sums of squares of normal scores."""
    cells = fine_of(row)
    linear = slopes(row) != 0
    variance, degrees = cells.variance, cells.degrees
    known = (degrees > 0) & (variance >= 0)
    if not known.any():
        return _Wald(reason=meaning.NO_ROWS)
    least = resolution(cells.pieces.mean, float(row["local_effect_error"]))
    # A few rows may happen to be alike: where others have a spread, theirs counts.
    pooled = np.average(variance[known], weights=degrees[known])
    cells = cells._replace(variance=np.where(variance <= least**2, pooled, variance))
    variance, degrees, effect = cells.effect_variance(), bin_degrees(row), row["effect"].values
    known = (degrees > 0) & (variance >= 0)
    if not known.any():  # a variance of cells may be that of no bin: each of its bins has one row
        return _Wald(reason=meaning.NO_ROWS)
    # A mean that is known exactly differs from 0 by more than rounding, or does not.
    mean, se = effect[known], np.maximum(np.sqrt(variance[known]), least)
    centre, df = 0.0, float(known.sum())
    if null == "constant":
        centre, df = float(np.average(mean, weights=(se.min() / se) ** 2)), df - 1
    total = float(np.sum(intervals.normal_score((mean - centre) / se, degrees[known]) ** 2))
    sloped = known & linear
    if sloped.any():
        # The slope without what it shares with the mean.
        noise = _noise_in_the_middle(row)
        shared = noise.covariance[sloped] / noise.mean[sloped]
        slope = slopes(row)[sloped] - shared * (effect[sloped] - centre)
        alone = noise.slope[sloped] - shared * noise.covariance[sloped]
        width = np.diff(row["edge_value"].values)[sloped]
        alone = np.sqrt(np.maximum(alone, (least / width) ** 2))
        total += float(np.sum(intervals.normal_score(slope / alone, degrees[sloped]) ** 2))
        df += float(sloped.sum())
    if df <= 0:
        return _Wald(df=0.0, reason=meaning.NO_ROWS)
    return _Wald(total, df, float(stats.chi2.sf(total, df)))


def _correlated(row: xr.Dataset, null: str) -> _Wald:
    """Steps between levels, which share rows: normal scores with their correlation."""
    value, covariance = row["effect"].values, row["effect_cov"].values
    contrast = np.eye(len(value))
    if null == "constant":
        contrast = np.diff(contrast, axis=0)
    least = resolution(value, float(row["local_effect_error"]))
    own = np.diagonal(covariance) + least**2
    # Satterthwaite's degrees of freedom, as if steps were independent.
    degrees = (contrast**2 @ own) ** 2 / (contrast**4 @ (own**2 / bin_degrees(row)))
    value = contrast @ value
    covariance = contrast @ (covariance + least**2 * np.eye(len(own))) @ contrast.T
    se = np.sqrt(np.diagonal(covariance))
    score = np.sign(value) * intervals.normal_score(value / se, degrees)
    statistic = float(score @ np.linalg.pinv(covariance / np.outer(se, se), hermitian=True) @ score)
    return _Wald(statistic, float(len(score)), float(stats.chi2.sf(statistic, len(score))))


def _grouped(row: xr.Dataset, null: str) -> _Wald:
    """Groups of rows: Wald statistic over its degrees of freedom, compared with F."""
    value, covariance = row["effect"].values, row["effect_cov"].values
    contrast = np.eye(len(value))
    if null == "constant":
        contrast = np.diff(contrast, axis=0)
    least = resolution(value, float(row["local_effect_error"]))
    linear = slopes(row) != 0
    if linear.any():
        # What a slope adds from end to end of its bin has the units of effects.
        width = np.diff(row["edge_value"].values)[linear]
        value = np.concatenate([value, slopes(row)[linear] * width])
        mixed = row["effect_slope_cov"].values[:, linear] * width
        own = row["slope_cov"].values[np.ix_(linear, linear)] * np.outer(width, width)
        covariance = np.block([[covariance, mixed], [mixed.T, own]])
        contrast = linalg.block_diag(contrast, np.eye(len(width)))
    # What is known exactly differs from 0 by more than rounding, or does not.
    covariance = covariance + least**2 * np.eye(len(value))
    value, covariance = contrast @ value, contrast @ covariance @ contrast.T
    df = float(len(value))
    statistic = float(value @ np.linalg.pinv(covariance, hermitian=True) @ value)
    of_groups = float(row.attrs["n_groups"]) - 1
    # Hotelling's correction: the covariance has fewer degrees of freedom than its size asks for.
    left = of_groups - df + 1
    if left <= 0:
        return _Wald(statistic, df, reason=FEW_GROUPS)
    return _Wald(statistic, df, float(stats.f.sf(statistic * left / (of_groups * df), df, left)))


def _homogeneous(row: xr.Dataset, own: tuple[Rows, int] | None) -> _Wald:
    """Whether rows at a value of the feature differ; ``own``: their columns, and which is it."""
    if not row.sizes["bin"]:
        return _Wald(reason=CONSTANT)
    least = meaning.least_effect(row)
    largest = float(np.nanmax(row["heterogeneity"].values, initial=0.0)) / least
    if largest <= 1 or is_categorical(row) or _bins_are_cells(row):
        # Nothing but rows makes a spread here.
        return _Wald(largest, float(row.sizes["bin"]), 1.0 if largest <= 1 else 0.0)
    if own is None:
        return _Wald(reason=BIN_ERROR)
    rows, position = own
    x, g = rows.x[position], rows.local_effect[position]
    check_same_rows(row, rows, position)
    ordered = bin_error.ordered_rows(
        row["edge_value"].values, x, g, None, frequency=False, rng=np.random.default_rng(0)
    )
    product = bin_error.neighbour_products(ordered.g, least)
    if len(product) < 2:
        return _Wald(reason=meaning.NO_ROWS)
    variance, df = -float(product.mean()), float(len(product) - 1)
    if variance <= least**2:
        return _Wald(0.0, df, 1.0)
    statistic = variance / float(product.std(ddof=1) / np.sqrt(len(product)))
    return _Wald(statistic, df, float(stats.t.sf(statistic, df)))


def _bins_are_cells(row: xr.Dataset) -> bool:
    """Whether the bins of one feature are those that finite differences were taken across."""
    of_ale = row.attrs.get("method") == "ale" and row.attrs.get("bin_rule") in FIXED_RULES
    if "cell_value" not in row:
        return of_ale
    if methods_of(row) != ["finite_difference"]:
        # Cells of derivatives are there for the curve alone.
        return False
    cells = row["cell_value"].values
    return np.array_equal(cells[np.isfinite(cells)], row["edge_value"].values)


@checked
@each_part
def equivalence_test(effect: xr.Dataset, delta: float, *, adjust: str = "holm") -> xr.Dataset:
    r"""Test that the effect is smaller than ``delta`` everywhere: two one-sided tests in every bin.

    Parameters
    ----------
    effect : Dataset
        What `rhale` or `std_error` returned.
    delta : float
        What counts as small, in units of the effect; positive.
    adjust : str, default "holm"
        Adjustment of the p-values over features.

    Returns
    -------
    Dataset
        Over (feature): ``statistic``, the smallest distance of an effect from -delta or delta in
        standard errors, ``df`` (of the bin that decides), ``p_value`` of some effect being delta or
        more, ``p_value_adjusted``. A small p-value says that all effects are smaller.

    Raises
    ------
    ValueError
        ``delta`` is not positive.

    Notes
    -----
    Schuirmann's (1987) two one-sided tests; every bin must pass, so that no adjustment over bins is
    needed. In a linear bin the effect is tested at both ends.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> local = rs.local_effects(lambda X: 2 * X[:, 0] + 0.1 * X[:, 0] * X[:, 1], X)
    >>> effect = rs.rhale(local, bins=rs.EqualWidthBins(5))
    >>> rs.equivalence_test(effect, 0.1)["p_value"].round(3).values
    array([1., 0.])
    """
    effect = check_effect(effect)
    check_choice("adjust", adjust, ADJUSTMENTS)
    if not 0 < delta < np.inf:
        raise ValueError(f"delta must be positive and finite; got {delta!r}.")
    effect = with_std_error(effect)
    rows = []
    for number in range(effect.sizes["feature"]):
        row = one_feature(effect, number)
        rows.append(_small(row, delta) if row.sizes["bin"] else _Wald(reason=CONSTANT))
    return labelled_test(
        effect,
        _by_name(rows),
        adjust,
        null=f"some effect is {delta:g} or more, or -{delta:g} or less",
        source=str(effect["effect_se"].attrs["source"]),
        test=f"equivalence_test, delta {delta:g}",
    )


def _small(row: xr.Dataset, delta: float) -> _Wald:
    """The bin that is least surely small decides."""
    slope, half = slopes(row), np.diff(row["edge_value"].values) / 2
    linear = slope != 0
    effect, degrees = row["effect"].values, bin_degrees(row)
    n = row["n_effective"].values
    least = resolution(effect, float(row["local_effect_error"]))
    se = [row["effect_se"].values]
    values = [effect]
    if linear.any():
        noise = _noise_in_the_middle(row)
        for end in (-half, half):
            values.append(effect + slope * end)
            se.append(np.sqrt(np.maximum(noise.of(np.ones(len(n)), end * linear), 0.0)))
    value, error = np.array(values), np.maximum(np.array(se), least)
    distance = np.asarray(np.minimum(delta - value, delta + value) / error)
    pvalue = np.asarray(stats.t.sf(distance, np.broadcast_to(degrees, distance.shape)))
    if np.isnan(pvalue).all():
        return _Wald(reason=meaning.NO_ROWS)
    # A bin without a standard error may hold anything.
    if np.isnan(pvalue).any():
        return _Wald(p_value=1.0)
    place, k = np.unravel_index(int(np.argmax(pvalue)), pvalue.shape)
    return _Wald(float(distance[place, k]), float(degrees[k]), float(pvalue[place, k]))


def _noise_in_the_middle(row: xr.Dataset) -> accumulate.Noise:
    """Variances and covariance of the effect in the middle of every bin and of its slope."""
    if "slope_cov" in row:
        shared = np.diagonal(row["effect_slope_cov"].values)
        return accumulate.Noise(row["effect_se"].values ** 2, shared, row["slope_se"].values ** 2)
    pieces = pieces_of(row)
    noise = accumulate.line_noise(
        row["heterogeneity"].values ** 2, pieces, line_moments_of(row), row["n_effective"].values
    )
    away = pieces.away()
    shared = noise.covariance + away * noise.slope
    if "effect_slope_covariance" in row:
        shared = row["effect_slope_covariance"].values
    return accumulate.Noise(row["effect_se"].values ** 2, shared, noise.slope)


def compare(
    a: xr.Dataset,
    b: xr.Dataset,
    paired: tuple[xr.Dataset, xr.Dataset] | None,
    groups: ArrayLike | None,
    level: float,
    n_draws: int,
    rng: Any,
    adjust: str,
) -> xr.Dataset:
    """`compare` of the curves of effects in bins, feature by feature."""
    a, b = check_effect(a, "a"), check_effect(b, "b")
    if a.attrs["centering"] != b.attrs["centering"]:
        raise ValueError(
            f"a and b must have the same centring; got {a.attrs['centering']!r} and "
            f"{b.attrs['centering']!r}. Make both with the same centering=."
        )
    names = [name for name in feature_names(a) if name in feature_names(b)]
    if not names:
        raise ValueError(
            f"a and b must have a feature in common; got {', '.join(feature_names(a))} and "
            f"{', '.join(feature_names(b))}."
        )
    check_same_output(a, b, ("a", "b"), facts=("scale",))
    a, b = with_std_error(a), with_std_error(b)
    pairs = None if paired is None else _pairs((a, b), paired, groups, names)
    if pairs is None and groups is not None:
        raise ValueError(
            "groups must come with paired; got groups alone. Without pairs give them to the "
            "effects: std_error(effect, local, groups=...)."
        )
    streams = np.random.default_rng(rng).spawn(len(names))
    found, apart = [], []
    for name, stream in zip(names, streams, strict=True):
        rows = one_feature(a, name), one_feature(b, name)
        if not (rows[0].sizes["bin"] and rows[1].sizes["bin"]):
            found.append(no_difference(CONSTANT))
            continue
        _check_same_levels(rows)
        fits = fit_of(rows[0]), fit_of(rows[1])
        z = _grid(fits)
        if len(z):
            found.append(_difference(rows, fits, z, pairs, level, n_draws, stream))
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
    source = _independent(a, b) if pairs is None else pairs.source
    return labelled_differences(found, a, b, names, source, level, adjust)


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


def _independent(a: xr.Dataset, b: xr.Dataset) -> str:
    """Source of the variance of a difference of effects that share no rows."""
    sources = dict.fromkeys(str(one["effect_se"].attrs["source"]) for one in (a, b))
    return f"{' against '.join(sources)}, independent"


def _grid(fits: tuple[Fit, Fit]) -> FloatArray:
    """Edges of both curves within the range of both, and quarters where one is bent; or nothing."""
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
    pairs: _Pairs | None,
    level: float,
    n_draws: int,
    rng: np.random.Generator,
) -> Difference:
    """One feature: the difference at points within the range of both."""
    values = [accumulate.curve_at(fit.pieces.edges, fit.curve, fit.pieces.slope, z) for fit in fits]
    if pairs is None:
        parts = [_covariance(row, fit, z) for row, fit in zip(rows, fits, strict=True)]
        covariance = parts[0] + parts[1]
        of_groups = [row.attrs.get("n_groups") for row in rows]
    else:
        covariance, of_groups = _paired_covariance(pairs, rows, fits, z)
    own = [
        fit.curve_degrees(z) if n_groups is None else np.full(len(z), n_groups - 1.0)
        for fit, n_groups in zip(fits, of_groups, strict=True)
    ]
    degrees: FloatArray | float = np.minimum(*own)
    if pairs is None:
        degrees = intervals.welch(np.diagonal(parts[0]), np.diagonal(parts[1]), *own)
    elif None not in of_groups:
        # Groups are one estimate of scale for all points.
        degrees = float(np.min(own))
    least = sum(meaning.least_effect(row) for row in rows) * float(np.ptp(z))
    return difference_of(z, (values[0], values[1]), covariance, degrees, level, n_draws, rng, least)


def _covariance(row: xr.Dataset, fit: Fit, z: FloatArray) -> FloatArray:
    """Covariance of a curve at points: of groups from that at edges, and of slopes."""
    if not has_covariance(row):
        return fit.covariance(z)
    if has_cells(row):
        weight = interpolation(fit.pieces.edges, z)
        return np.asarray(weight @ row["cell_curve_cov"].values @ weight.T)
    edges = row["edge_value"].values
    weight = interpolation(edges, z)
    total = weight @ row["curve_cov"].values @ weight.T
    if not slopes(row).any():
        return np.asarray(total)
    # Below the line through both ends of its bin by slope (z - l)(r - z) / 2, as in `curve_at`.
    k = bin_index(edges, z)
    bend = np.zeros((len(z), len(edges) - 1))
    bend[np.arange(len(z)), k] = (z - edges[k]) * (edges[k + 1] - z) / 2
    mixed = weight @ row["curve_slope_cov"].values @ bend.T
    return np.asarray(total - mixed - mixed.T + bend @ row["slope_cov"].values @ bend.T)


class _Pairs(NamedTuple):
    """The rows of both effects in common units: pairs, or groups of them.

    ``repeats``: how many pairs a unit stands for that are independent of each other.
    """

    sides: tuple[Clusters, Clusters]
    repeats: FloatArray
    grouped: bool
    source: str


def _pairs(
    effects: tuple[xr.Dataset, xr.Dataset],
    paired: tuple[xr.Dataset, xr.Dataset],
    groups: ArrayLike | None,
    names: list[str],
) -> _Pairs:
    """Raise ``ValueError`` unless rows, weights and groups of both go together."""
    paired = _local_pair(paired)
    sizes = [local.sizes["obs"] for local in paired]
    if sizes[0] != sizes[1]:
        raise ValueError(
            f"paired must be local effects of the same rows; got {sizes[0]} and {sizes[1]} rows."
        )
    for local, effect, of in zip(paired, effects, PAIRED, strict=True):
        check_same_output(local, effect, of)
    used = [is_used_row(local, effect) for local, effect in zip(paired, effects, strict=True)]
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
        code = row_codes(groups, row_labels(paired[0]), either, "groups", "pairs")
        n_groups = int(code.max(initial=-1)) + 1
        if n_groups < 2:
            raise ValueError(f"groups must be at least two; got {n_groups}.")
        # Rows that neither effect uses are of no group that counts.
        unit = np.zeros(sizes[0], dtype=np.int64)
        unit[either] = code
        repeats = np.ones(n_groups)
        source = f"pairs of rows in {n_groups} groups"
    first, second = (
        Clusters(columns(local.isel(obs=rows)), local, unit[rows], len(repeats))
        for local, rows in zip(paired, used, strict=True)
    )
    for side, effect, of in zip((first, second), effects, PAIRED, strict=True):
        for name in names:
            row = one_feature(effect, name)
            if row.sizes["bin"]:
                check_same_rows(row, side.rows, feature_position(side.local, name), *of)
    _check_rows_of_pairs(paired)
    return _Pairs((first, second), repeats, groups is not None, source)


def _local_pair(paired: object) -> tuple[xr.Dataset, xr.Dataset]:
    """The local effects of both sides; raise ``TypeError`` for something else than two."""
    if not isinstance(paired, tuple | list) or len(paired) != 2:
        raise TypeError(
            f"paired must be two Datasets, the local effects of a and those of b; got "
            f"{type(paired).__name__}."
        )
    first, second = (check_local(one, name) for one, (name, _) in zip(paired, PAIRED, strict=True))
    return first, second


def _check_rows_of_pairs(paired: tuple[xr.Dataset, xr.Dataset]) -> None:
    """Raise ``ValueError`` where rows are named otherwise, or have other values of every feature.

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
    x = [{name: one["x"].sel(feature=name).values for name in common} for one in paired]
    if not any(np.array_equal(x[0][name], x[1][name], equal_nan=True) for name in common):
        raise ValueError(
            f"paired must be local effects of the same rows in the same order; all of their "
            f"features have different values. {advice}"
        )


def _multiplicity(paired: tuple[xr.Dataset, xr.Dataset]) -> FloatArray:
    """How many pairs every pair of rows is: more than one where weights are frequencies."""
    ones = np.ones(paired[0].sizes["obs"])
    first, second = (
        np.asarray(local["weight"].values, dtype=np.float64)
        if "weight" in local and local.attrs.get("weight_kind") == "frequency"
        else ones
        for local in paired
    )
    if not np.array_equal(first, second):
        row = int(np.flatnonzero(first != second)[0])
        raise ValueError(
            f"paired must have the same frequencies in both, as they count pairs; got "
            f"{first[row]:g} and {second[row]:g} in row {row}. Use weights of kind 'precision'."
        )
    return first


def _paired_covariance(
    pairs: _Pairs, rows: tuple[xr.Dataset, xr.Dataset], fits: tuple[Fit, Fit], z: FloatArray
) -> tuple[FloatArray, list[float | None]]:
    """Covariance of the difference from the influences of units, and their groups if there are."""
    influences: list[tuple[influence.RowSums, influence.Loadings, bool]] = []
    of_groups: list[float | None] = []
    unknown = np.zeros(len(z), dtype=bool)
    for side, row, fit in zip(pairs.sides, rows, fits, strict=True):
        sums, units, n_means = _influences(side, row, fit, grouped=pairs.grouped)
        n_units = float(pairs.repeats[units].sum())
        levels = is_categorical(row)
        n_rows = rows_of_feature(row) if levels else _rows_of_curve(side, row, fit)
        n_parameters = n_means + int(np.sum(fit.pieces.slope != 0))
        sums = sums.corrected(n_units, n_rows, n_parameters)
        at = fit.loadings(z)
        influences.append((sums, at, fit.centering == "mean"))
        of_groups.append(n_units if pairs.grouped else None)
        # Without a residual to spare, or a group, there is no noise to see.
        blind = np.isnan(fit.noise.mean)
        if pairs.grouped:
            few = _groups_of_bins(sums, fit) <= 1 + (fit.pieces.slope != 0)
            blind |= few
        unknown |= (at.level[:, blind] != 0).any(axis=1)
    covariance = np.zeros((len(z), len(z)))
    # A unit that stands for several moves what so many would, each its share.
    share = 1 / np.sqrt(np.where(pairs.repeats > 0, pairs.repeats, 1.0))
    for begin in range(0, len(share), influence.BLOCK_ROWS):
        here = slice(begin, begin + influence.BLOCK_ROWS)
        first, second = (
            sums.of_curve(at, population=population, rows=here)
            for sums, at, population in influences
        )
        moved = share[here, None] * (first - second)
        covariance += moved.T @ moved
    covariance[unknown] = covariance[:, unknown] = np.nan
    return covariance, of_groups


def _groups_of_bins(sums: influence.RowSums, fit: Fit) -> IntArray:
    """Groups that have rows in the bin of every cell."""
    if fit.of_levels is not None:
        return sums.n_groups()
    bin_of = fit.cells.bin[fit.cells.here]
    held = sums.mean.tocoo()
    pairs = np.unique(np.stack([bin_of[held.coords[1]], held.coords[0]]), axis=1)
    return np.asarray(np.bincount(pairs[0], minlength=int(bin_of.max()) + 1)[bin_of])


def _influences(
    side: Clusters, row: xr.Dataset, fit: Fit, *, grouped: bool
) -> tuple[influence.RowSums, IntArray, int]:
    """Influences of units on the stretch of the curve, units with rows there, number of means."""
    position = feature_position(side.local, str(row["feature"].values))
    x, g = side.rows.x[position], side.rows.local_effect[position]
    if is_categorical(row):
        sums = level_sums(row, side.rows, position, side.group, side.n_groups)
        return sums, np.unique(side.group), len(fit.pieces.mean)
    there = _on_curve(x, fit)
    k = bin_index(fit.pieces.edges, x[there])
    weight = None if side.rows.weight is None else side.rows.weight[there]
    unit = side.group[there]
    pieces, n_means = fit.pieces, len(fit.pieces.mean)
    if grouped:
        every = bin_index(fit.cells.pieces.edges, x)
        block = side.blocks(fit.cells, every)
        pieces = pieces._replace(mean=side.centres(fit.cells, block, every, g)[fit.cells.here])
        n_means = len(np.unique(block[every[there]]))
    sums = influence.row_sums(pieces, fit.curve, k, x[there], g[there], weight, unit, side.n_groups)
    if not grouped and has_cells(row):
        # Cells of few rows lose more of their spread to their means than the others: n / (n - 1)
        # each, in place of one factor for all.
        n = fit.cells.n_effective[fit.cells.here]
        lost = np.sqrt(np.divide(n, n - 1, out=np.ones(len(n)), where=n > 1 + 1e-9))
        sums, n_means = sums._replace(mean=sums.mean.multiply(lost[None, :]).tocsr()), 1
    return sums, np.unique(unit), n_means


def _on_curve(x: FloatArray, fit: Fit) -> NDArray[np.bool_]:
    """Rows that have a part in the curve: none beyond a gap."""
    k = bin_index(fit.cells.pieces.edges, x)
    return np.asarray((k >= fit.cells.here.start) & (k < fit.cells.here.stop))


def _rows_of_curve(side: Clusters, row: xr.Dataset, fit: Fit) -> float:
    """How many these are; frequencies count."""
    position = feature_position(side.local, str(row["feature"].values))
    there, rows = _on_curve(side.rows.x[position], fit), side.rows
    if rows.frequency and rows.weight is not None:
        return float(rows.weight[there].sum())
    return float(there.sum())
