"""Errors by groups of rows in chunks: one pass, in which sums by group and unit are merged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from rhale_stats.arguments.checks import is_in_chunks
from rhale_stats.arguments.rows import row_codes
from rhale_stats.arrays import accumulate
from rhale_stats.arrays.binning import most_of_chunk
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.effects.clusters import RowLevels, bin_influences, cell_influences, check_n_groups
from rhale_stats.effects.group_sums import Grouped, UnitSums
from rhale_stats.effects.provenance import check_same_chunks
from rhale_stats.effects.spread import SpreadSums
from rhale_stats.local.chunks import ChunkedRows
from rhale_stats.local.rows import Rows, estimation_rows, is_estimation_row, is_used_row
from rhale_stats.schema.curves import CurveCells, CurveErrors
from rhale_stats.schema.feature_result import FeatureResult, one_feature
from rhale_stats.schema.features import feature_names, feature_position
from rhale_stats.schema.identity import check_same_output, row_labels
from rhale_stats.schema.levels import refuse_categorical


class FeatureSums(NamedTuple):
    """Sums of one feature by groups of rows; ``spread`` is None without bins of the spread."""

    cells: UnitSums
    bins: UnitSums
    levels: RowLevels
    spread: SpreadSums | None


class GroupsInChunks:
    """Groups of the rows of an effect that are in chunks: `Groups` by merged sums."""

    def __init__(self, sums: dict[str, FeatureSums], n_groups: int) -> None:
        self._sums = sums
        self._n_groups = n_groups

    @classmethod
    def of_effect(cls, local: xr.Dataset, effect: xr.Dataset, groups: Any) -> GroupsInChunks:
        """Raise ``ValueError`` as `Clusters` does, and for effects of other rows."""
        check_same_output(local, effect, ("local", "effect"))
        refuse_categorical(effect, "errors by groups of rows in chunks")
        if is_in_chunks(groups):
            groups = groups.compute()
        used = is_used_row(local, effect)
        group = np.zeros(len(used), dtype=np.int64)
        group[used] = row_codes(groups, row_labels(local), used, "groups")
        n_groups = check_n_groups(group)
        group = group[is_estimation_row(local, effect)]
        local = estimation_rows(local, effect)
        rows = ChunkedRows(local, precise=True)
        rows_of_features = (one_feature(effect, name) for name in feature_names(effect))
        features = [_Feature.from_row(row, local) for row in rows_of_features if row.sizes["bin"]]
        max_rows = most_of_chunk(len(rows.lengths))
        codes = np.split(group, np.cumsum(rows.lengths)[:-1])
        chunk_sums = _ChunkSums(features, n_groups, max_rows)
        sums = rows.merged(chunk_sums, _merged, "groups", beside=codes, of_rows=True)
        check_same_chunks(rows, local, effect)
        return cls(dict(zip([feature.name for feature in features], sums, strict=True)), n_groups)

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return self._n_groups

    @property
    def design(self) -> None:
        """No design of a survey."""

    @property
    def source(self) -> str:
        """The source of a standard error, in words."""
        return f"rows in {self._n_groups} groups"

    def bin_sums(self, row: FeatureResult) -> UnitSums:
        """Sums over the rows of one feature by group and bin."""
        return self._of_feature(row).bins

    def influences(self, row: FeatureResult, cells: CurveCells) -> Grouped:
        """Influences of the groups on all cells of one feature."""
        return cell_influences(row, cells, self._of_feature(row).cells)

    def bin_influences(self, row: FeatureResult) -> Grouped:
        """Influences of the groups on means, slopes and variances of the bins by their rows."""
        return bin_influences(row, self._of_feature(row).bins)

    def sign(self, row: FeatureResult, _fit: CurveErrors) -> float:
        """Sign of the skewness of the rows of one feature about their cells, 0 if unclear.

        Of very many rows it is that of some, evenly from all chunks.
        """
        return self._of_feature(row).levels.sign(row)

    def spread_sums(self, row: FeatureResult) -> SpreadSums:
        """Sums of squared residuals of one feature by group and bin of the spread."""
        spread = self._of_feature(row).spread
        assert spread is not None, "asked of features with a spread only"
        return spread

    def check(self, row: FeatureResult) -> None:
        """All features were compared with their rows when the sums were made."""

    def _of_feature(self, row: FeatureResult) -> FeatureSums:
        return self._sums[row.name]


class _Feature(NamedTuple):
    name: str
    position: int
    row: FeatureResult
    cells: accumulate.Pieces
    bins: accumulate.Pieces

    @classmethod
    def from_row(cls, row: FeatureResult, local: xr.Dataset) -> _Feature:
        name = row.name
        position = feature_position(local, name)
        return cls(name, position, row, row.curve_cells.pieces, row.pieces)


@dataclass(frozen=True)
class _ChunkSums:
    """Sums of one chunk by group, of every feature; ``max_rows`` decide on a skewness."""

    features: Sequence[_Feature]
    n_groups: int
    max_rows: int

    def __call__(self, rows: Rows, group: IntArray) -> list[FeatureSums]:
        return [self._of_feature(feature, rows, group) for feature in self.features]

    def _of_feature(self, feature: _Feature, rows: Rows, group: IntArray) -> FeatureSums:
        _, position, row, cells, bins = feature
        arguments = rows, position, group, self.n_groups
        of_cells = UnitSums.of_rows(cells, *arguments)
        of_bins = of_cells if cells is bins else UnitSums.of_rows(bins, *arguments)
        levels = _some(RowLevels.of_feature(cells, rows, position, group), self.max_rows)
        spread = SpreadSums.of_rows(row, *arguments) if row.sizes.get("spread_bin") else None
        return FeatureSums(of_cells, of_bins, levels, spread)


def _some(levels: RowLevels, max_rows: int) -> RowLevels:
    """Levels of at most so many rows, evenly among them."""
    n = len(levels.level)
    if n <= max_rows:
        return levels
    rows = np.linspace(0, n - 1, max_rows).astype(np.int64)
    weight = None if levels.weight is None else levels.weight[rows]
    return RowLevels(levels.level[rows], levels.cell[rows], weight, levels.group[rows])


def _merged(chunks: Sequence[list[FeatureSums]]) -> list[FeatureSums]:
    return [_together(each) for each in zip(*chunks, strict=True)]


def _together(parts: Sequence[FeatureSums]) -> FeatureSums:
    if len(parts) == 1:
        return parts[0]
    cells, bins, levels, spread = zip(*parts, strict=True)
    level, cell, weight, group = zip(*levels, strict=True)
    weights: FloatArray | None = None if weight[0] is None else np.concatenate(weight)
    spreads = [sums for sums in spread if sums is not None]
    return FeatureSums(
        UnitSums.merged(cells),
        UnitSums.merged(bins),
        RowLevels(np.concatenate(level), np.concatenate(cell), weights, np.concatenate(group)),
        SpreadSums(*map(sum, zip(*spreads, strict=True))) if spreads else None,  # type: ignore[arg-type]
    )
