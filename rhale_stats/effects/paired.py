"""Comparisons of two effects of the same rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from rhale_stats.arguments.rows import row_codes
from rhale_stats.arrays import influence
from rhale_stats.arrays.binning import bin_index
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.effects.clusters import Clusters, blocks, centres, grouped_levels
from rhale_stats.effects.fit import CurveErrors
from rhale_stats.effects.grouped import Grouped, GroupWeights, lines_of
from rhale_stats.effects.provenance import check_same_rows
from rhale_stats.local.rows import columns, is_used_row
from rhale_stats.schema.checks import check_local
from rhale_stats.schema.features import feature_names, feature_position, is_grouped, one_feature
from rhale_stats.schema.identity import check_same_output, row_labels
from rhale_stats.schema.levels import is_categorical

# Parameters of `compare` that hold local effects of pairs, and the effects made from them.
PAIRED = (("paired[0]", "a"), ("paired[1]", "b"))


class Pairs(NamedTuple):
    """The rows of both effects in common units: pairs, or groups of them.

    ``repeats``: the number of independent pairs that a unit represents.
    """

    sides: tuple[Clusters, Clusters]
    repeats: FloatArray
    grouped: bool
    source: str


def pairs_of(
    effects: tuple[xr.Dataset, xr.Dataset],
    paired: tuple[xr.Dataset, xr.Dataset],
    groups: ArrayLike | None,
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
            raise ValueError(f"groups must hold at least two different groups; got {n_groups}.")
        # Rows that neither effect uses do not count in any group.
        unit = np.zeros(sizes[0], dtype=np.int64)
        unit[either] = code
        repeats = np.ones(n_groups)
        source = f"pairs of rows in {n_groups} groups"
    first, second = (
        Clusters(columns(local.isel(obs=rows)), local, unit[rows], len(repeats))
        for local, rows in zip(paired, used, strict=True)
    )
    for side, effect, names_of_pair in zip((first, second), effects, PAIRED, strict=True):
        for name in names:
            row = one_feature(effect, name)
            if row.sizes["bin"]:
                check_same_rows(row, side.rows, feature_position(side.local, name), *names_of_pair)
    _check_rows_of_pairs(paired)
    return Pairs((first, second), repeats, groups is not None, source)


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


def paired_covariance(
    pairs: Pairs,
    rows: tuple[xr.Dataset, xr.Dataset],
    fits: tuple[CurveErrors, CurveErrors],
    z: FloatArray,
) -> tuple[FloatArray, list[FloatArray]]:
    """Covariance of the difference from the influences of units, or of their groups.

    Also the degrees of freedom of both curves at the points.
    """
    influences: list[tuple[influence.RowSums, influence.Loadings, bool]] = []
    degrees: list[FloatArray] = []
    unknown = np.zeros(len(z), dtype=bool)
    for side, row, fit in zip(pairs.sides, rows, fits, strict=True):
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
    for begin in range(0, len(share), influence.BLOCK_ROWS):
        block = slice(begin, begin + influence.BLOCK_ROWS)
        first, second = (
            sums.of_curve(loadings, population=population, rows=block)
            for sums, loadings, population in influences
        )
        influence_of_units = share[block, None] * (first - second)
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
    side: Clusters, row: xr.Dataset, fit: CurveErrors, repeats: FloatArray | None
) -> Grouped:
    """Influences of units on the stretch of the curve, corrected for their leverage.

    ``repeats``: the pairs that every unit represents; None for groups, whose residuals are from the
    means of blocks of cells.
    """
    if is_categorical(row):
        return grouped_levels(
            row, side.rows, side.position(row), side.group, side.n_groups, repeats
        )
    x, g = side.columns(row)
    on_curve, every = _on_curve(x, fit), bin_index(fit.cells.pieces.edges, x)
    pieces, block = fit.pieces, np.arange(len(fit.pieces.mean))
    if repeats is None:
        block = blocks(fit.cells, every, side.group)
        total = np.bincount(every, side.rows.weight, len(block)).astype(np.float64)
        pieces = pieces._replace(mean=centres(fit.cells.pieces, block, total)[fit.cells.stretch])
        # Numbers of the blocks of the stretch, from 0 on.
        block = np.unique(block[fit.cells.stretch], return_inverse=True)[1]
    k, x, g = bin_index(fit.pieces.edges, x[on_curve]), x[on_curve], g[on_curve]
    weight = None if side.rows.weight is None else side.rows.weight[on_curve]
    weights = GroupWeights.from_rows(
        k, side.group[on_curve], side.n_groups, weight, side.rows.frequency, repeats
    )
    sums = influence.row_sums(pieces, fit.curve, k, x, g, weight, weights.group, side.n_groups)
    return weights.corrected(sums, block, lines_of(pieces, weights, x))


def _on_curve(x: FloatArray, fit: CurveErrors) -> NDArray[np.bool_]:
    """Rows that contribute to the curve; rows beyond a gap do not."""
    k = bin_index(fit.cells.pieces.edges, x)
    return np.asarray((k >= fit.cells.stretch.start) & (k < fit.cells.stretch.stop))
