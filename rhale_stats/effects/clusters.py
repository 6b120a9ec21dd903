"""Variances that are robust against dependence within groups of rows."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy import sparse

from rhale_stats.arguments.survey import GroupsOrDesign, design_text, row_groups
from rhale_stats.arrays import accumulate, categories, influence
from rhale_stats.arrays.binning import bin_index
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.arrays.skewness import Skewness, clear_sign
from rhale_stats.arrays.survey import SamplingDesign
from rhale_stats.effects.fit import at_edges, group_skewness
from rhale_stats.effects.group_sums import Grouped, GroupWeights, UnitSums
from rhale_stats.effects.provenance import check_same_rows
from rhale_stats.effects.spread import SpreadSums
from rhale_stats.effects.targets import GROUP_COVARIANCES, GROUP_DEGREES, TARGETS
from rhale_stats.local.rows import Rows, columns, is_used_row
from rhale_stats.schema.curves import CurveCells, CurveErrors
from rhale_stats.schema.feature_result import FeatureResult
from rhale_stats.schema.features import feature_position
from rhale_stats.schema.identity import check_same_output, row_labels
from rhale_stats.schema.padding import Estimates

# Effective groups below which errors and tests by groups are doubtful.
MIN_GROUPS = 15
# Minimum number of groups over which residuals are centred.
GROUPS_OF_BLOCK = 10


class Clusters(NamedTuple):
    """Rows that an effect was estimated on, with the group of each.

    The groups of the ``design`` of a survey are its clusters.
    """

    rows: Rows
    local: xr.Dataset
    group: IntArray
    n_groups: int
    design: SamplingDesign | None = None

    @classmethod
    def of_effect(cls, local: xr.Dataset, effect: xr.Dataset, groups: GroupsOrDesign) -> Clusters:
        """Raise ``ValueError`` unless every row has a group and there are at least two groups."""
        check_same_output(local, effect, ("local", "effect"))
        used = is_used_row(local, effect)
        weight = local["weight"].values if "weight" in local else None
        group = row_groups(groups, row_labels(local), used, "groups", weight=weight)
        rows = columns(local.isel(obs=used))
        if not isinstance(group, SamplingDesign):
            return cls(rows, local, group, check_n_groups(group))
        # Halves of rows on edges are counted as well, but no repeated rows.
        if effect.attrs.get("weight_kind") == "frequency":
            raise ValueError(
                "weight_kind must be 'sampling' with the design of a survey; got 'frequency'."
            )
        return cls(rows, local, group.cluster[group.rows], group.n_clusters, group)

    @property
    def source(self) -> str:
        """The source of a standard error, in words."""
        if self.design is not None:
            return design_text(self.design)
        return f"rows in {self.n_groups} groups"

    def position(self, row: FeatureResult) -> int:
        """Which column one feature is."""
        return feature_position(self.local, row.name)

    def columns(self, row: FeatureResult) -> tuple[FloatArray, FloatArray]:
        """Values and local effects of one feature."""
        position = self.position(row)
        return self.rows.x[position], self.rows.local_effect[position]

    def sums(self, row: FeatureResult, pieces: accumulate.Pieces) -> UnitSums:
        """Sums over the rows of one feature by group, in cells or bins."""
        return UnitSums.of_rows(pieces, self.rows, self.position(row), self.group, self.n_groups)

    def bin_sums(self, row: FeatureResult) -> UnitSums:
        """Sums over the rows of one feature by group and bin."""
        return self.sums(row, row.pieces)

    def influences(self, row: FeatureResult, cells: CurveCells) -> Grouped:
        """Influences of the groups on all cells of one feature."""
        return sampled(cell_influences(row, cells, self.sums(row, cells.pieces)), self.design)

    def bin_influences(self, row: FeatureResult) -> Grouped:
        """Influences of the groups on means, slopes and variances of the bins by their rows."""
        if row.is_categorical:
            place = self.rows, self.position(row), self.group, self.n_groups
            return sampled(grouped_levels(row, *place), self.design)
        return sampled(bin_influences(row, self.bin_sums(row)), self.design)

    def sign(self, row: FeatureResult, fit: CurveErrors) -> float:
        """Sign of the skewness of the rows of one feature about their cells, 0 if unclear."""
        position, pieces = self.position(row), fit.cells.pieces
        return RowLevels.of_feature(pieces, self.rows, position, self.group).sign(row)

    def spread_sums(self, row: FeatureResult) -> SpreadSums:
        """Sums of squared residuals of one feature by group and bin of the spread."""
        return SpreadSums.of_rows(row, self.rows, self.position(row), self.group, self.n_groups)

    def check(self, row: FeatureResult) -> None:
        """Raise ``ValueError`` unless the effect of one feature was made from these rows."""
        check_same_rows(row, self.rows, self.position(row))


def check_n_groups(group: IntArray) -> int:
    """How many groups these codes have; raise ``ValueError`` for less than two."""
    n_groups = int(group.max(initial=-1)) + 1
    if n_groups < 2:
        raise ValueError(f"groups must hold at least two different groups; got {n_groups}.")
    return n_groups


class Groups(Protocol):
    """What errors by groups ask of the rows of an effect, in memory or in chunks."""

    @property
    def n_groups(self) -> int:
        """Number of groups."""

    @property
    def design(self) -> SamplingDesign | None:
        """The design of a survey, whose clusters the groups are."""

    @property
    def source(self) -> str:
        """The source of a standard error, in words."""

    def bin_sums(self, row: FeatureResult, /) -> UnitSums:
        """Sums over the rows of one feature by group and bin."""

    def influences(self, row: FeatureResult, cells: CurveCells, /) -> Grouped:
        """Influences of the groups on all cells of one feature."""

    def bin_influences(self, row: FeatureResult, /) -> Grouped:
        """Influences of the groups on means, slopes and variances of the bins by their rows."""

    def sign(self, row: FeatureResult, fit: CurveErrors, /) -> float:
        """Sign of the skewness of the rows of one feature about their cells, 0 if unclear."""

    def spread_sums(self, row: FeatureResult, /) -> SpreadSums:
        """Sums of squared residuals of one feature by group and bin of the spread."""

    def check(self, row: FeatureResult, /) -> None:
        """Raise ``ValueError`` unless the effect of one feature was made from these rows."""


class RowLevels(NamedTuple):
    """Local effects of rows without the slope of their cell, with cell, weight and group."""

    level: FloatArray
    cell: IntArray
    weight: FloatArray | None
    group: IntArray

    @classmethod
    def of_feature(
        cls, pieces: accumulate.Pieces, rows: Rows, position: int, group: IntArray
    ) -> RowLevels:
        """The levels of the rows of one feature."""
        x, g = rows.x[position], rows.local_effect[position]
        k = bin_index(pieces.edges, x)
        return cls(g - pieces.slope[k] * (x - pieces.x_mean[k]), k, rows.weight, group)

    def sign(self, row: FeatureResult) -> float:
        """Sign of their skewness about the cells, 0 if it is not clear."""
        return clear_sign(self.level, self.cell, self.weight, self.group, fine=row.has_cells)


def bin_influences(row: FeatureResult, sums: UnitSums) -> Grouped:
    """Influences of the groups on the bins of one feature, by their rows."""
    pieces = row.pieces
    return _corrected(row, pieces, sums, np.arange(len(pieces.mean)))


def cell_influences(row: FeatureResult, cells: CurveCells, sums: UnitSums) -> Grouped:
    """Influences of the groups on the cells of one feature, with residuals from their blocks."""
    pieces = cells.pieces
    block = blocks(cells, sums.unit, sums.group)
    centre = centres(pieces, block, sums.total(sums.weight))
    return _corrected(row, pieces._replace(mean=centre), sums.about(pieces, centre), block)


def _corrected(
    row: FeatureResult, pieces: accumulate.Pieces, sums: UnitSums, block: IntArray
) -> Grouped:
    row_sums = sums.row_sums(pieces, row.curve.evaluate(pieces.edges))
    return sums.group_weights().corrected(row_sums, block, sums.lines(pieces))


def sampled(grouped: Grouped, design: SamplingDesign | None) -> Grouped:
    """math [117]: influences of clusters as units of the design, with no more degrees than it."""
    if design is None:
        return grouped
    sums = grouped.sums
    mean, slope, variance = (
        sparse.csr_array(design.units_of_clusters(part.toarray()))
        for part in (sums.mean, sums.slope, sums.variance)
    )
    places, average = design.units_of_clusters(np.stack([sums.places, sums.average], axis=1)).T
    return Grouped(
        influence.RowSums(mean, slope, variance, places, average),
        np.maximum(grouped.overlap, 1 / design.degrees),
    )


def centres(pieces: accumulate.Pieces, block: IntArray, weight: FloatArray) -> FloatArray:
    """Centre of the residuals in every cell: the mean of its block, from those of cells."""
    mean = np.where(weight > 0, pieces.mean, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.bincount(block, weight * mean) / np.bincount(block, weight)
    alone = np.bincount(block)[block] == 1
    return np.where(alone, pieces.mean, means[block])


def blocks(cells: CurveCells, cell: IntArray, group: IntArray) -> IntArray:
    """Number of the block of every cell: neighbours within a bin, with enough groups together.

    If a cell has one group only, its residuals sum to 0, and its mean would appear to have no
    error. ``cell`` and ``group`` are those of rows, or of all pairs that have rows.
    """
    if len(cells.bin) == cells.n_bins():
        return np.arange(len(cells.bin))
    pairs = np.unique(np.stack([cell, group]), axis=1)
    of_cell = np.split(pairs[1], np.searchsorted(pairs[0], np.arange(1, len(cells.bin))))
    block = np.zeros(len(cells.bin), dtype=np.int64)
    begin, seen = 0, set(of_cell[0].tolist())
    for k in range(1, len(cells.bin)):
        new_bin = cells.bin[k] != cells.bin[k - 1]
        block[k] = block[k - 1] + (new_bin or len(seen) >= GROUPS_OF_BLOCK)
        if block[k] != block[k - 1]:
            # If the last block of a bin has too few groups, it is joined to the one before.
            if (
                new_bin
                and len(seen) < GROUPS_OF_BLOCK
                and begin
                and (cells.bin[begin - 1] == cells.bin[begin])
            ):
                block[begin:k] = block[begin - 1]
            begin, seen = k, set()
        seen |= set(of_cell[k].tolist())
    if len(seen) < GROUPS_OF_BLOCK and begin and cells.bin[begin - 1] == cells.bin[begin]:
        block[begin:] = block[begin - 1]
    return block


def grouped_levels(
    row: FeatureResult,
    rows: Rows,
    position: int,
    group: IntArray,
    n_groups: int,
    repeats: FloatArray | None = None,
) -> Grouped:
    """Corrected influences of groups on the steps between the levels of one feature."""
    assert rows.sides is not None
    code = rows.x[position].astype(np.int64)
    steps = categories.steps(code, *rows.sides[position], row.sizes["edge"])
    weight = None if rows.weight is None else rows.weight[steps.row]
    weights = GroupWeights.from_rows(
        steps.step, group[steps.row], n_groups, weight, rows.frequency, repeats
    )
    sums = level_sums(row, rows, position, group, n_groups)
    return weights.corrected(sums, np.arange(row.sizes["bin"]))


def level_sums(
    row: FeatureResult, rows: Rows, position: int, group: IntArray, n_groups: int
) -> influence.RowSums:
    """Influences of rows, by group, on the steps between the levels of one feature."""
    assert rows.sides is not None
    code = rows.x[position].astype(np.int64)
    steps = categories.steps(code, *rows.sides[position], row.sizes["edge"])
    return categories.row_sums(steps, code, row["curve"].values, rows.weight, group, n_groups)


def group_errors(row: FeatureResult, fit: CurveErrors | None, clusters: Groups) -> Estimates:
    """Standard errors of one feature from the influences of groups of rows."""
    name = row.name
    if fit is None:
        return _constant_feature(row)
    if np.isnan(row["curve"].values).any():
        raise ValueError(
            f"effect must have rows in all bins of feature {name!r} for standard errors by groups. "
            f"Use fewer bins."
        )
    clusters.check(row)
    # RowLevels have no cells but their steps.
    sums = None if row.is_categorical else clusters.bin_sums(row)
    of_bins = clusters.bin_influences(row) if sums is None else bin_influences(row, sums)
    linear = row.slopes != 0
    _check_enough_groups(of_bins.sums, linear, name)
    of_bins = of_bins if sums is None else sampled(of_bins, clusters.design)
    # For the curve residuals are from the means of blocks of cells, for lines and spreads from
    # those of bins.
    of_cells = of_bins if row.is_categorical else clusters.influences(row, fit.cells)
    of_effect = effect_influences(of_cells.sums, fit.cells)
    effect_cov = (of_effect.T @ of_effect).toarray()
    # At all edges of cells, because the curve is not straight within a bin.
    cell_edges = fit.pieces.edges
    of_curve = of_cells.sums.of_curve(fit.loadings(cell_edges), population=fit.centering == "mean")
    fine_cov = of_curve.T @ of_curve
    skew = {} if row.is_categorical else _skewness(row, fit, clusters, of_bins, of_cells)
    positions = np.searchsorted(cell_edges, fit.edges)
    of_curve, curve_cov = of_curve[:, positions], fine_cov[np.ix_(positions, positions)]
    zero_start = influence.loadings(fit.pieces, fit.edges, "start")
    of_start = of_cells.sums.of_curve(zero_start, population=False)
    more: dict[str, FloatArray] = {}
    if row.has_cells:
        more["cell_curve_cov"] = fine_cov
        more["cell_curve_se"] = np.sqrt(np.maximum(np.diagonal(fine_cov), 0.0))
        more["cell_curve_df"] = of_cells.curve_degrees(fit, cell_edges)
    if "slope" in row:
        more |= _slope_covariances(of_bins.sums, of_effect, of_curve)
    variance_se = np.sqrt(of_bins.sums.variance.power(2).sum(axis=0))
    spread = row["heterogeneity"].values
    with np.errstate(invalid="ignore", divide="ignore"):
        return {
            "effect_se": np.sqrt(np.diagonal(effect_cov)),
            **more,
            "heterogeneity_se": np.where(spread == 0, 0.0, variance_se / (2 * spread)),
            "curve_se": np.sqrt(np.maximum(np.diagonal(curve_cov), 0.0)),
            "curve_se_start": np.sqrt(np.sum(of_start**2, axis=0)),
            "average_effect_se": float(np.sqrt(np.sum(of_cells.sums.average**2))),
            "effect_cov": effect_cov,
            "curve_cov": curve_cov,
            **_degrees(row, fit, of_bins, of_cells),
            **skew,
            **({} if sums is None or clusters.design is not None else _few_groups(row, sums)),
        }


def _few_groups(row: FeatureResult, sums: UnitSums) -> dict[str, float]:
    """The effective number of groups; if these are few, p-values by a wild cluster bootstrap."""
    effective = sums.effective()
    pvalues = sums.wild_pvalues(row.pieces) if effective < MIN_GROUPS else {}
    return {
        "effective_groups": effective,
        **{f"{null}_pvalue": pvalues.get(null, np.nan) for null in ("zero", "constant")},
    }


def _skewness(
    row: FeatureResult, fit: CurveErrors, clusters: Groups, of_bins: Grouped, of_cells: Grouped
) -> Estimates:
    """Skewness of the errors of effects, curve and average of one feature by groups."""
    sums = of_cells.sums
    of_effect, sign = effect_influences(sums, fit.cells), clusters.sign(row, fit)
    of_effects = Skewness.of_groups(of_effect.toarray(), of_bins.degrees(), sign)
    loadings, population = fit.loadings(fit.pieces.edges), fit.centering == "mean"
    of_curve = tuple(
        np.sum(sums.of_curve(loadings, population=both) ** 2, axis=0)
        for both in (False, population)
    )
    of_rows = sums.mean @ np.nan_to_num(fit.cells.pieces.share)
    of_average = float(np.sum(of_rows**2)), float(np.sum(sums.average**2))
    return group_skewness(row, fit, of_effects, of_curve, of_average)


def degrees_of_groups(row: FeatureResult, fit: CurveErrors | None, clusters: Groups) -> Estimates:
    """Degrees of freedom of one feature's estimates by groups of rows."""
    if fit is None:
        return {}
    of_bins = clusters.bin_influences(row)
    of_cells = of_bins if row.is_categorical else clusters.influences(row, fit.cells)
    return _degrees(row, fit, of_bins, of_cells)


def _degrees(
    row: FeatureResult, fit: CurveErrors, of_bins: Grouped, of_cells: Grouped
) -> dict[str, Any]:
    overlap = _effect_overlap(of_cells, fit)
    with np.errstate(divide="ignore"):
        return {
            "effect_df": 1 / np.diagonal(overlap),
            "effect_overlap": overlap,
            **({"slope_df": of_bins.degrees()} if "slope" in row else {}),
            "heterogeneity_df": of_bins.degrees(),
            "curve_df": at_edges(of_cells.curve_degrees(fit, fit.edges), fit),
            "average_effect_df": float(1 / of_cells.overlap[-1, -1]),
        }


def _effect_overlap(of_cells: Grouped, fit: CurveErrors) -> FloatArray:
    """(bin, bin): overlap of the variances of the effects of the bins, from that of cells."""
    cells = fit.cells
    parts = np.nan_to_num(cells.effect_parts)
    total = np.bincount(cells.bin, parts)[cells.bin]
    level, n = cells.loading[0], cells.n_effective
    alike = np.divide(level**2, n, out=np.zeros(len(n)), where=n > 0)
    # Without any spread, as if all rows had one variance.
    parts = np.where(total > 0, parts, alike)
    shares = np.zeros((cells.n_bins(), len(parts)))
    shares[cells.bin, np.arange(len(parts))] = parts / np.bincount(cells.bin, parts)[cells.bin]
    return np.asarray(shares @ of_cells.unit_overlap() @ shares.T)


def _constant_feature(row: FeatureResult) -> Estimates:
    """NaN for all estimates of a feature without bins."""
    absent = [
        part for part, name in (("slope", "slope"), ("cell", "cell_value")) if name not in row
    ]
    names = [*TARGETS, *GROUP_COVARIANCES, *GROUP_DEGREES]
    wanted = [name for name in names if not any(part in name for part in absent)]
    return dict.fromkeys(wanted, np.nan)


def _check_enough_groups(sums: influence.RowSums, linear: NDArray[np.bool_], name: str) -> None:
    """Raise ``ValueError`` unless every bin has more groups than fitted parameters.

    If a bin has one group only, its influences sum to 0.
    """
    n_groups = sums.n_groups()
    few = n_groups <= 1 + linear
    if few.any():
        k = int(np.argmax(few))
        raise ValueError(
            f"groups must outnumber the means and slopes in every bin; bin {k} of feature "
            f"{name!r} has {n_groups[k]} groups for {1 + linear[k]} of these. Use fewer bins."
        )


def _slope_covariances(
    sums: influence.RowSums, of_effect: sparse.csr_array, of_curve: FloatArray
) -> dict[str, FloatArray]:
    """Covariances of the slopes of the bins, with each other, the effects and the curve."""
    slope_cov = (sums.slope.T @ sums.slope).toarray()
    return {
        "slope_se": np.sqrt(np.diagonal(slope_cov)),
        "slope_cov": slope_cov,
        "effect_slope_cov": (of_effect.T @ sums.slope).toarray(),
        "curve_slope_cov": of_curve.T @ sums.slope,
    }


def effect_influences(sums: influence.RowSums, cells: CurveCells) -> sparse.csr_array:
    """Influences on the effects of the bins, sparse (group, bin), from those on their cells."""
    level, tilt = cells.loading
    positions = (np.arange(len(level)), cells.bin)
    of_mean, of_slope = [sparse.coo_array((part, positions)).tocsr() for part in (level, tilt)]
    return sparse.csr_array(sums.mean @ of_mean + sums.slope @ of_slope)
