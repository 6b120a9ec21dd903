"""Variances that are robust against dependence within groups of rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from rhale_stats.arguments.rows import row_codes
from rhale_stats.arrays import accumulate, categories, influence
from rhale_stats.arrays.binning import bin_index
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.effects.fit import Fit, rows_of_feature
from rhale_stats.effects.same import check_same_rows
from rhale_stats.effects.targets import GROUP_COVARIANCES, TARGETS
from rhale_stats.local.rows import Rows, columns, is_used_row
from rhale_stats.schema.curves import Fine, curve_of, has_cells, pieces_of
from rhale_stats.schema.features import feature_position, slopes
from rhale_stats.schema.identity import check_same_output, row_labels
from rhale_stats.schema.levels import is_categorical
from rhale_stats.schema.stacking import Estimates

# Minimum number of groups over which residuals are centred.
GROUPS_OF_BLOCK = 10


class Clusters(NamedTuple):
    """Rows that an effect was estimated on, with the group of each."""

    rows: Rows
    local: xr.Dataset
    group: IntArray
    n_groups: int

    @classmethod
    def of(cls, local: xr.Dataset, effect: xr.Dataset, groups: ArrayLike) -> Clusters:
        """Raise ``ValueError`` unless every row has a group and there are at least two groups."""
        check_same_output(local, effect, ("local", "effect"))
        used = is_used_row(local, effect)
        group = row_codes(groups, row_labels(local), used, "groups")
        n_groups = int(group.max(initial=-1)) + 1
        if n_groups < 2:
            raise ValueError(f"groups must hold at least two different groups; got {n_groups}.")
        return cls(columns(local.isel(obs=used)), local, group, n_groups)

    def position(self, row: xr.Dataset) -> int:
        """Which column one feature is."""
        return feature_position(self.local, str(row["feature"].values))

    def columns(self, row: xr.Dataset) -> tuple[FloatArray, FloatArray]:
        """Values and local effects of one feature."""
        position = self.position(row)
        return self.rows.x[position], self.rows.local_effect[position]

    def influences(self, row: xr.Dataset, cells: Fine) -> tuple[influence.RowSums, int]:
        """Influences of the groups on all cells of one feature, and the number of fitted means."""
        x, g = self.columns(row)
        k = bin_index(cells.pieces.edges, x)
        block = self.blocks(cells, k)
        pieces = cells.pieces._replace(mean=self.centres(cells, block, k, g))
        return self._sums(pieces, row, k, x, g), len(np.unique(block[k]))

    def of_bins(self, row: xr.Dataset) -> influence.RowSums:
        """Influences of the groups on means, slopes and variances of the bins by their rows."""
        if is_categorical(row):
            return level_sums(row, self.rows, self.position(row), self.group, self.n_groups)
        x, g = self.columns(row)
        pieces = pieces_of(row)
        return self._sums(pieces, row, bin_index(pieces.edges, x), x, g)

    def _sums(
        self, pieces: accumulate.Pieces, row: xr.Dataset, k: IntArray, x: FloatArray, g: FloatArray
    ) -> influence.RowSums:
        curve = curve_of(row).at(pieces.edges)
        weight = self.rows.weight
        return influence.row_sums(pieces, curve, k, x, g, weight, self.group, self.n_groups)

    def centres(self, cells: Fine, block: IntArray, k: IntArray, g: FloatArray) -> FloatArray:
        """Centre of the residuals in every cell: the mean of its block."""
        weight = np.ones(len(g)) if self.rows.weight is None else self.rows.weight
        with np.errstate(invalid="ignore", divide="ignore"):
            total = np.bincount(block[k], weight * g, len(block)).astype(np.float64)
            means = total / np.bincount(block[k], weight, len(block))
        alone = np.bincount(block)[block] == 1
        return np.where(alone, cells.pieces.mean, means[block])

    def blocks(self, cells: Fine, k: IntArray) -> IntArray:
        """Number of the block of every cell: neighbours within a bin, with enough groups together.

        If a cell has one group only, its residuals sum to 0, and its mean would appear to have no
        error.
        """
        if len(cells.bin) == cells.n_bins():
            return np.arange(len(cells.bin))
        pairs = np.unique(np.stack([k, self.group]), axis=1)
        of_cell = np.split(pairs[1], np.searchsorted(pairs[0], np.arange(1, len(cells.bin))))
        block = np.zeros(len(cells.bin), dtype=np.int64)
        begin, seen = 0, set(of_cell[0].tolist())
        for cell in range(1, len(cells.bin)):
            new_bin = cells.bin[cell] != cells.bin[cell - 1]
            block[cell] = block[cell - 1] + (new_bin or len(seen) >= GROUPS_OF_BLOCK)
            if block[cell] != block[cell - 1]:
                # If the last block of a bin has too few groups, it is joined to the one before.
                if (
                    new_bin
                    and len(seen) < GROUPS_OF_BLOCK
                    and begin
                    and (cells.bin[begin - 1] == cells.bin[begin])
                ):
                    block[begin:cell] = block[begin - 1]
                begin, seen = cell, set()
            seen |= set(of_cell[cell].tolist())
        if len(seen) < GROUPS_OF_BLOCK and begin and cells.bin[begin - 1] == cells.bin[begin]:
            block[begin:] = block[begin - 1]
        return block


def level_sums(
    row: xr.Dataset, rows: Rows, position: int, group: IntArray, n_groups: int
) -> influence.RowSums:
    """Influences of rows, by group, on the steps between the levels of one feature."""
    assert rows.sides is not None
    code = rows.x[position].astype(np.int64)
    of = categories.steps(code, *rows.sides[position], row.sizes["edge"])
    return categories.row_sums(of, code, row["curve"].values, rows.weight, group, n_groups)


def of_groups(row: xr.Dataset, fit: Fit | None, clusters: Clusters) -> Estimates:
    """Standard errors of one feature from the influences of groups of rows."""
    name, n_bins, n_groups = str(row["feature"].values), row.sizes["bin"], clusters.n_groups
    if fit is None:
        return _of_constant(row)
    if np.isnan(row["curve"].values).any():
        raise ValueError(
            f"effect must have rows in all bins of feature {name!r} for standard errors by groups. "
            f"Use fewer bins."
        )
    check_same_rows(row, clusters.rows, clusters.position(row))
    own = clusters.of_bins(row)
    linear = slopes(row) != 0
    _check_enough_groups(own, linear, name)
    # Levels have no cells but their steps.
    sums, n_means = (own, n_bins) if is_categorical(row) else clusters.influences(row, fit.cells)
    # For the curve means of blocks of cells are fitted, for lines and spreads those of bins.
    n_rows, n_slopes = rows_of_feature(row), int(np.sum(fit.cells.pieces.slope != 0))
    sums = sums.corrected(n_groups, n_rows, n_means + n_slopes)
    of_bins = influence.group_factor(n_groups, n_rows, n_bins + int(linear.sum()))
    of_effect = on_effects(sums, fit.cells)
    effect_cov = (of_effect.T @ of_effect).toarray()
    # At all edges of cells, because the curve is not straight within a bin.
    everywhere = fit.pieces.edges
    of_curve = sums.of_curve(fit.loadings(everywhere), population=fit.centering == "mean")
    fine_cov = of_curve.T @ of_curve
    at = np.searchsorted(everywhere, fit.edges)
    of_curve, curve_cov = of_curve[:, at], fine_cov[np.ix_(at, at)]
    zero_start = influence.loadings(fit.pieces, fit.edges, "start")
    of_start = sums.of_curve(zero_start, population=False)
    more: dict[str, FloatArray] = {}
    if has_cells(row):
        more["cell_curve_cov"] = fine_cov
        more["cell_curve_se"] = np.sqrt(np.maximum(np.diagonal(fine_cov), 0.0))
    if "slope" in row:
        more |= _of_slopes(own, of_bins, of_effect, of_curve)
    variance_se = np.sqrt(of_bins * own.variance.power(2).sum(axis=0))
    spread = row["heterogeneity"].values
    with np.errstate(invalid="ignore", divide="ignore"):
        return {
            "effect_se": np.sqrt(np.diagonal(effect_cov)),
            **more,
            "heterogeneity_se": np.where(spread == 0, 0.0, variance_se / (2 * spread)),
            "curve_se": np.sqrt(np.maximum(np.diagonal(curve_cov), 0.0)),
            "curve_se_start": np.sqrt(np.sum(of_start**2, axis=0)),
            "average_effect_se": float(
                np.sqrt(n_groups / (n_groups - 1) * np.sum(sums.average**2))
            ),
            "effect_cov": effect_cov,
            "curve_cov": curve_cov,
        }


def _of_constant(row: xr.Dataset) -> Estimates:
    """NaN for all estimates of a feature without bins."""
    absent = [
        part for part, name in (("slope", "slope"), ("cell", "cell_value")) if name not in row
    ]
    names = [*TARGETS, *GROUP_COVARIANCES]
    wanted = [name for name in names if not any(part in name for part in absent)]
    return dict.fromkeys(wanted, np.nan)


def _check_enough_groups(own: influence.RowSums, linear: NDArray[np.bool_], name: str) -> None:
    """Raise ``ValueError`` unless every bin has more groups than fitted parameters.

    If a bin has one group only, its influences sum to 0.
    """
    few = own.n_groups() <= 1 + linear
    if few.any():
        k = int(np.argmax(few))
        raise ValueError(
            f"groups must outnumber the means and slopes in every bin; bin {k} of feature "
            f"{name!r} has {own.n_groups()[k]} groups for {1 + linear[k]} of these. Use fewer bins."
        )


def _of_slopes(
    own: influence.RowSums, factor: float, of_effect: sparse.csr_array, of_curve: FloatArray
) -> dict[str, FloatArray]:
    """Covariances of the slopes of the bins, with each other, the effects and the curve.

    ``factor`` makes the sums of squares of the bins' own influences unbiased.
    """
    slope_cov, root = factor * (own.slope.T @ own.slope).toarray(), np.sqrt(factor)
    return {
        "slope_se": np.sqrt(np.diagonal(slope_cov)),
        "slope_cov": slope_cov,
        "effect_slope_cov": root * (of_effect.T @ own.slope).toarray(),
        "curve_slope_cov": root * of_curve.T @ own.slope,
    }


def on_effects(sums: influence.RowSums, cells: Fine) -> sparse.csr_array:
    """Influences on the effects of the bins, sparse (group, bin), from those on their cells."""
    level, tilt = cells.loading
    at = (np.arange(len(level)), cells.bin)
    of_mean, of_slope = (sparse.coo_array((part, at)).tocsr() for part in (level, tilt))
    return sparse.csr_array(sums.mean @ of_mean + sums.slope @ of_slope)
