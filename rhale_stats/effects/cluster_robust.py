"""Standard errors by groups of rows: sums of groups, in memory and in chunks, and their errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy import sparse

from rhale_stats.arguments.checks import is_in_chunks
from rhale_stats.arguments.rows import row_codes
from rhale_stats.arguments.survey import GroupsOrDesign, design_text, row_groups
from rhale_stats.arguments.words import warn
from rhale_stats.arrays import accumulate, categories, influence, leverage
from rhale_stats.arrays.binning import bin_index, most_of_chunk
from rhale_stats.arrays.leverage import like
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.arrays.skewness import Skewness, clear_sign
from rhale_stats.arrays.survey import SamplingDesign
from rhale_stats.effects.fit import (
    GROUP_COVARIANCES,
    GROUP_DEGREES,
    TARGETS,
    choice_variance,
    group_skewness,
)
from rhale_stats.effects.provenance import check_same_chunks, check_same_rows
from rhale_stats.effects.spread import SpreadSums
from rhale_stats.local.chunks import ChunkedRows
from rhale_stats.local.rows import Rows, columns, estimation_rows, is_estimation_row, is_used_row
from rhale_stats.schema.curves import CurveCells, CurveErrors
from rhale_stats.schema.feature_result import FeatureResult, each_feature
from rhale_stats.schema.features import feature_position
from rhale_stats.schema.identity import check_same_output, row_labels
from rhale_stats.schema.levels import refuse_categorical
from rhale_stats.schema.padding import Estimates


class GroupWeights(NamedTuple):
    """Rows with the unit and the group of each, their weights, and what squares of these count.

    Frequencies count rows, so that their squares are the frequencies themselves. A group may stand
    for ``repeats`` independent ones, which have equal parts of its weight.
    """

    unit: IntArray
    group: IntArray
    n_groups: int
    weight: FloatArray
    square: FloatArray
    repeats: FloatArray | None

    def table(self, values: FloatArray, unit: IntArray, n_units: int) -> sparse.csr_array:
        """Sums by group and unit."""
        return leverage.table(values, self.group, unit, self.n_groups, n_units)

    def shares(self, unit: IntArray, n_units: int) -> leverage.Shares:
        """Shares of the groups in units."""
        weight, square = (
            self.table(values, unit, n_units) for values in (self.weight, self.square)
        )
        return leverage.Shares.from_sums(weight, square, self.repeats)

    def corrected(
        self, sums: influence.RowSums, block: IntArray, lines: leverage.Lines | None = None
    ) -> Grouped:
        """Influences by groups with their leverage corrected; ``block`` is that of every unit."""
        n_units = sums.mean.shape[1]
        of_units, every = self.shares(self.unit, n_units), self.total_shares()
        factor = every.factor.toarray()[:, 0]
        variance = like(sums.variance, sums.variance.data * of_units.factor.data)
        sums = sums._replace(
            variance=variance, places=sums.places * factor, average=sums.average * factor
        )
        n_blocks = int(block.max()) + 1
        if n_blocks < n_units:
            blocks = self.shares(block[self.unit], n_blocks)
            total = np.bincount(self.unit, self.weight, n_units).astype(np.float64)
            mean = leverage.of_cells(sums.mean, of_units, total, block, blocks)
            return Grouped(sums._replace(mean=mean), _overlap(of_units, blocks, block, every))
        if lines is None:
            mean = like(sums.mean, sums.mean.data * of_units.factor.data)
            sums = sums._replace(mean=mean)
        else:
            parts = leverage.of_lines(sums, of_units, lines)
            sums = sums._replace(mean=like(sums.mean, parts[0]), slope=like(sums.slope, parts[1]))
            of_units = of_units.with_lines(lines)
        return Grouped(sums, _overlap(of_units, of_units, block, every))

    def total_shares(self) -> leverage.Shares:
        """Shares of the groups in all rows together."""
        return self.shares(np.zeros(len(self.unit), dtype=np.int64), 1)


class Grouped(NamedTuple):
    """Influences of groups, corrected, and how much their variances have in common.

    ``overlap`` is of the units, and of all rows at the end (math [26]).
    """

    sums: influence.RowSums
    overlap: FloatArray

    def unit_overlap(self) -> FloatArray:
        """Overlap of the units."""
        return self.overlap[:-1, :-1]

    def degrees(self) -> FloatArray:
        """Degrees of freedom of the variances of single units; 0 without rows."""
        return _degrees_of(self.unit_overlap())

    def on_curve(self, fit: CurveErrors) -> Grouped:
        """Those of the cells that have a curve, without what is beyond a gap."""
        stretch = fit.cells.stretch
        units = np.append(np.arange(stretch.start, stretch.stop), -1)
        return Grouped(self.sums.within(stretch), self.overlap[np.ix_(units, units)])

    def curve_degrees(self, fit: CurveErrors, z: FloatArray) -> FloatArray:
        """Degrees of freedom of the variance of the curve at points, from those `on_curve`."""
        noise = _noise_or_equal(fit)
        parts = np.maximum(influence.parts(fit.loadings(z), noise), 0.0)
        alone = np.full((len(z), 1), 0.0)
        if fit.centering == "mean":
            alone += _place_variance(fit)
        degrees = leverage.degrees(np.hstack([parts, alone]), self.overlap)
        return np.where(np.isfinite(degrees), degrees, 1 / self.overlap[-1, -1])


def _degrees_of(overlap: FloatArray) -> FloatArray:
    """Degrees of freedom of variances that overlap so much with themselves, 0 of none."""
    shared = np.diagonal(overlap)
    return np.divide(1.0, shared, out=np.zeros(len(shared)), where=shared > 0)


def _noise_or_equal(fit: CurveErrors) -> accumulate.Noise:
    """Noise of the cells; as if all had one variance where there is no spread at all."""
    mean = np.nan_to_num(fit.noise.mean)
    if (mean > 0).any():
        return fit.noise._replace(mean=mean)
    n = fit.cells.n_effective[fit.cells.stretch]
    none = np.zeros(len(n))
    return accumulate.Noise(np.divide(1.0, n, out=none.copy(), where=n > 0), none, none)


def _place_variance(fit: CurveErrors) -> float:
    """Variance of the mean of the curve over the rows, if these were independent."""
    if fit.places is not None:
        return float(fit.places.alone)
    assert fit.level_share is not None
    centre = np.average(fit.curve, weights=fit.level_share)
    spread = float(np.average((fit.curve - centre) ** 2, weights=fit.level_share))
    n = fit.cells.n_effective
    return spread / max(float(n.max()), 1.0)


def _overlap(
    units: leverage.Shares, blocks: leverage.Shares, block: IntArray, every: leverage.Shares
) -> FloatArray:
    """Overlap of units whose residuals are from the means of blocks, and of all rows."""
    n_blocks = blocks.weight.shape[1]
    square = sparse.csr_array(sparse.hstack([units.square, every.square]))
    leverages = [like(part.square, part.square.data * part.factor.data) for part in (blocks, every)]
    positions = np.append(block, n_blocks)
    between = leverage.between(sparse.csr_array(sparse.hstack(leverages)))
    return np.asarray(leverage.products(square) + between[np.ix_(positions, positions)])


# --- sums over rows by group and unit -------------------------------------------------------------


# Webb's weights (2023) of a wild cluster bootstrap, and its number of draws.
WEBB = np.array([-np.sqrt(1.5), -1, -np.sqrt(0.5), np.sqrt(0.5), 1, np.sqrt(1.5)])
N_DRAWS = 999
# A table of all pairs is made where it has not many more cells than there are rows.
DENSE, MIN_DENSE = 4, 1 << 20


class UnitSums(NamedTuple):
    """Sums of every group in every unit that it has rows in, by group and then by unit.

    ``weight`` and ``square`` are sums of w and of w^2 (of frequencies, of w), the others of w times
    d, d^2, r, d r and r^2: d is the distance of x from its mean in the unit, r the residual about
    the mean or the line of the unit.
    """

    group: IntArray
    unit: IntArray
    n_groups: int
    n_units: int
    weight: FloatArray
    square: FloatArray
    d: FloatArray
    dd: FloatArray
    r: FloatArray
    dr: FloatArray
    rr: FloatArray

    @classmethod
    def of_rows(
        cls, pieces: accumulate.Pieces, rows: Rows, position: int, group: IntArray, n_groups: int
    ) -> UnitSums:
        """Sums over the rows of one feature, about the means or lines of ``pieces``."""
        x, g = rows.x[position], rows.local_effect[position]
        w = np.ones(len(x)) if rows.weight is None else rows.weight
        square = w if rows.weight is None or rows.frequency else w**2
        k = bin_index(pieces.edges, x)
        d = x - pieces.x_mean[k]
        r = g - pieces.mean[k] - pieces.slope[k] * d
        values = [w, square, *(w * product for product in (d, d * d, r, d * r, r * r))]
        return cls._summed(group, k, n_groups, len(pieces.mean), values)

    @classmethod
    def merged(cls, parts: Sequence[UnitSums]) -> UnitSums:
        """Sums over all rows, from those over several parts of them."""
        first = parts[0]
        if len(parts) == 1:
            return first
        group, unit, *values = [
            np.concatenate(each)
            for each in zip(*[(part[0], part[1], *part[4:]) for part in parts], strict=True)
        ]
        return cls._summed(group, unit, first.n_groups, first.n_units, values)

    @classmethod
    def _summed(
        cls,
        group: IntArray,
        unit: IntArray,
        n_groups: int,
        n_units: int,
        values: Sequence[FloatArray],
    ) -> UnitSums:
        key = group * n_units + unit
        n_pairs, sums = n_groups * n_units, list[NDArray[Any]](values)
        if n_pairs <= max(DENSE * len(key), MIN_DENSE):
            pairs = np.flatnonzero(np.bincount(key, minlength=n_pairs))
            sums = [np.bincount(key, value, n_pairs)[pairs] for value in values]
        elif (key[1:] > key[:-1]).all():
            pairs = key  # every row is a group of its own
        else:
            pairs, pair_of = np.unique(key, return_inverse=True)
            sums = [np.bincount(pair_of, value, len(pairs)) for value in values]
        totals = [total.astype(np.float64, copy=False) for total in sums]
        return cls(pairs // n_units, pairs % n_units, n_groups, n_units, *totals)

    def about(self, pieces: accumulate.Pieces, centre: FloatArray) -> UnitSums:
        """The sums with residuals about other means than those of ``pieces``."""
        shift = (pieces.mean - centre)[self.unit]
        return self._replace(
            r=self.r + shift * self.weight,
            dr=self.dr + shift * self.d,
            rr=self.rr + 2 * shift * self.r + shift**2 * self.weight,
        )

    def total(self, values: FloatArray) -> FloatArray:
        """Sums over the groups, (unit,)."""
        return np.bincount(self.unit, values, self.n_units).astype(np.float64)

    def group_weights(self, repeats: FloatArray | None = None) -> GroupWeights:
        """Weights of the groups in the units."""
        return GroupWeights(self.unit, self.group, self.n_groups, self.weight, self.square, repeats)

    def influences(
        self,
        pieces: accumulate.Pieces,
        curve: FloatArray,
        block: IntArray,
        repeats: FloatArray | None = None,
    ) -> Grouped:
        """`row_sums`, corrected for leverage; ``block`` is that of every unit."""
        weights, sums = self.group_weights(repeats), self.row_sums(pieces, curve)
        return weights.corrected(sums, block, self.lines(pieces, repeats))

    def row_sums(self, pieces: accumulate.Pieces, curve: FloatArray) -> influence.RowSums:
        """Influences of the groups: those of all rows, added up by group.

        Residuals are about the means of ``pieces``, and ``curve`` is given at its edges.
        """
        k, total = self.unit, self.total(self.weight)
        share = 1 / total[k]
        linear = (pieces.slope != 0)[k]
        var = np.where(linear, pieces.x_variance[k], 1.0)
        spread = self.total(self.rr)[k] * share
        weights = self.group_weights()
        level = self._curve_sums(pieces, curve)
        effect = self.r + pieces.mean[k] * self.weight + pieces.slope[k] * self.d
        return influence.RowSums(
            weights.table(share * self.r, k, self.n_units),
            weights.table(np.where(linear, share * self.dr / var, 0.0), k, self.n_units),
            weights.table(share * (self.rr - spread * self.weight), k, self.n_units),
            self._centred(level),
            self._centred(effect),
        )

    def _curve_sums(self, pieces: accumulate.Pieces, curve: FloatArray) -> FloatArray:
        """Sums of w times the curve at the rows, which is a polynomial of d in every unit."""
        left, right = pieces.edges[:-1], pieces.edges[1:]
        rise = np.diff(curve) / (right - left)
        before, after = pieces.x_mean - left, right - pieces.x_mean
        level = curve[:-1] + rise * before - pieces.slope * before * after / 2
        tilt = rise - pieces.slope * (after - before) / 2
        # A unit without rows may have no mean of x, and no entry.
        return np.asarray(
            level[self.unit] * self.weight
            + tilt[self.unit] * self.d
            + pieces.slope[self.unit] / 2 * self.dd
        )

    def _centred(self, values: FloatArray) -> FloatArray:
        """Influences of the groups on a mean over all rows whose values are known, by entry."""
        has_value = np.isfinite(values)
        weight, total = (
            np.bincount(self.group, np.where(has_value, part, 0.0), self.n_groups)
            for part in (self.weight, values)
        )
        every = weight.sum() or 1.0
        return np.asarray((total - weight * (total.sum() / every)) / every)

    def lines(
        self, pieces: accumulate.Pieces, repeats: FloatArray | None = None
    ) -> leverage.Lines | None:
        """What groups have of the lines of units; None where there are no lines."""
        if not pieces.slope.any():
            return None
        sd = np.where(pieces.slope != 0, np.sqrt(pieces.x_variance), 0.0)
        unit_sd = sd[self.unit]
        share = 1 / self.total(self.weight)[self.unit]
        if repeats is not None:
            share = share / repeats[self.group]
        weights = self.group_weights()
        shared, slope = [
            weights.table(
                share * np.divide(sums, unit_sd**power, out=np.zeros(len(sums)), where=unit_sd > 0),
                self.unit,
                self.n_units,
            )
            for power, sums in ((1, self.d), (2, self.dd))
        ]
        return leverage.Lines(shared, slope, sd)

    def effective(self) -> float:
        """Effective number of groups, 1 over the sum of their squared shares of the weight."""
        of_group = np.bincount(self.group, self.weight, self.n_groups)
        return float(of_group.sum() ** 2 / np.sum(of_group**2))

    def wild_pvalues(self, pieces: accumulate.Pieces) -> dict[str, float]:
        """P-values that all means and slopes are 0, and that all are one constant, math [31].

        Wild cluster bootstrap: local effects, less what the hypothesis allows, are multiplied by
        one number a group (Webb's six-point distribution), and the statistic is computed again.
        """
        shape = self.n_groups, self.n_units
        pairs = self.group, self.unit
        weight, d, dd, first, second = [np.zeros(shape) for _ in range(5)]
        slope = pieces.slope[self.unit]
        mean = pieces.mean[self.unit]
        weight[pairs], d[pairs], dd[pairs] = self.weight, self.d, self.dd
        first[pairs] = self.r + mean * self.weight + slope * self.d
        second[pairs] = self.dr + mean * self.d + slope * self.dd
        has_rows = weight.any(axis=0)  # a bin in a gap has none
        weight, d, dd, first, second = [
            part[:, has_rows] for part in (weight, d, dd, first, second)
        ]
        sloped = (pieces.slope != 0)[has_rows]
        totals = weight.sum(axis=0), np.where(sloped, dd.sum(axis=0), np.inf)
        every = weight.sum()
        draws = np.random.default_rng(0).choice(WEBB, (N_DRAWS, self.n_groups))
        pvalues = {}
        for null in ("zero", "constant"):
            level = first.sum() / every if null == "constant" else 0.0
            wild = _Wild(weight, d, dd, first - level * weight, second - level * d, *totals, null)
            observed = wild.statistic(np.ones((1, self.n_groups)))[0]
            beyond = np.sum(wild.statistic(draws) >= observed * (1 - 1e-12))
            pvalues[null] = float((1 + beyond) / (1 + N_DRAWS))
        if has_rows.sum() == 1 and not sloped.any():
            pvalues["constant"] = float("nan")  # one effect is always equal to itself
        return pvalues


class _Wild(NamedTuple):
    """Sums of a group in a unit, (group, unit), without what the hypothesis allows.

    ``first`` and ``second`` are sums of w g and of w d g, ``total`` and ``total_dd`` those of w and
    of w d^2 over the groups; the last are infinite where there is no slope.
    """

    weight: FloatArray
    d: FloatArray
    dd: FloatArray
    first: FloatArray
    second: FloatArray
    total: FloatArray
    total_dd: FloatArray
    null: str

    def statistic(self, times: FloatArray) -> FloatArray:
        """Squares of means and slopes over their expectation, local effects times (draw, group)."""
        constant, every = self.null == "constant", self.total.sum()
        means, products = times @ self.first / self.total, times @ self.second
        slopes, expected = products / self.total_dd, np.zeros(len(times))
        common = (means @ self.total / every)[:, None] if constant else 0.0
        value = ((means - common) ** 2) @ self.total + np.sum(products * slopes, axis=1)
        for group, factor in enumerate(times.T[:, :, None]):
            mean = factor * self.first[group] - self.weight[group] * means - self.d[group] * slopes
            slope = factor * self.second[group] - self.d[group] * means - self.dd[group] * slopes
            if constant:
                mean -= self.total * (mean.sum(axis=1) / every)[:, None]
            expected += (mean**2 / self.total + slope**2 / self.total_dd).sum(axis=1)
        return np.asarray(value / expected)


# Effective groups below which errors and tests by groups are doubtful.
MIN_GROUPS = 15
# Minimum number of groups over which residuals are centred.
GROUPS_OF_BLOCK = 10


class Groups:
    """Groups of the rows of an effect: what their errors ask for, from sums of every feature.

    The groups of the ``design`` of a survey are its clusters.
    """

    def __init__(self, n_groups: int, design: SamplingDesign | None = None) -> None:
        self.n_groups, self.design = n_groups, design

    def sums(self, row: FeatureResult) -> SumsOfRows | MergedSums:
        """Sums over the rows of one feature."""
        raise NotImplementedError

    def check(self, row: FeatureResult) -> None:
        """Raise ``ValueError`` unless the effect of one feature was made from these rows."""

    @property
    def source(self) -> str:
        """The source of a standard error, in words."""
        if self.design is not None:
            return design_text(self.design)
        return f"rows in {self.n_groups} groups"

    def influences(self, row: FeatureResult) -> Grouped:
        """Influences of the groups on all cells of one feature, with residuals from blocks."""
        cells, sums = row.curve_cells, self.sums(row).cells
        pieces, block = cells.pieces, blocks(cells, sums.unit, sums.group)
        centre = centres(pieces, block, sums.total(sums.weight))
        curve = row.curve.evaluate(pieces.edges)
        about = sums.about(pieces, centre)
        return sampled(about.influences(pieces._replace(mean=centre), curve, block), self.design)

    def bin_influences(self, row: FeatureResult) -> Grouped:
        """Influences of the groups on means, slopes and variances of the bins by their rows."""
        return sampled(bin_influences(row, self.sums(row).bins), self.design)

    def spread_sums(self, row: FeatureResult) -> SpreadSums:
        """Sums of squared residuals of one feature by group and bin of the spread."""
        spread = self.sums(row).spread
        assert spread is not None, "asked of features with a spread only"
        return spread


class Clusters(Groups):
    """Groups of rows in memory: rows that an effect was estimated on, with the group of each."""

    def __init__(
        self,
        rows: Rows,
        local: xr.Dataset,
        group: IntArray,
        n_groups: int,
        design: SamplingDesign | None = None,
    ) -> None:
        super().__init__(n_groups, design)
        self.rows, self.local, self.group = rows, local, group

    @classmethod
    def of_effect(cls, local: xr.Dataset, effect: xr.Dataset, groups: GroupsOrDesign) -> Clusters:
        """Raise ``ValueError`` unless every row has a group and there are at least two groups."""
        check_same_output(local, effect, ("local", "effect"))
        used = is_used_row(local, effect)
        units = units_of_rows(groups, local, used)
        # Halves of rows on edges are counted as well, but no repeated rows.
        if units[2] is not None and effect.attrs.get("weight_kind") == "frequency":
            raise ValueError(
                "weight_kind must be 'sampling' with the design of a survey; got 'frequency'."
            )
        return cls(columns(local.isel(obs=used)), local, *units)

    def position(self, row: FeatureResult) -> int:
        """Which column one feature is."""
        return feature_position(self.local, row.name)

    def columns(self, row: FeatureResult) -> tuple[FloatArray, FloatArray]:
        """Values and local effects of one feature."""
        position = self.position(row)
        return self.rows.x[position], self.rows.local_effect[position]

    def sums(self, row: FeatureResult) -> SumsOfRows:
        """Sums over the rows of one feature."""
        return SumsOfRows(row, self.rows, self.position(row), self.group, self.n_groups)

    def curve_sums(
        self, row: FeatureResult, fit: CurveErrors, pieces: accumulate.Pieces
    ) -> UnitSums:
        """Sums over the cells that have a curve, without the rows beyond a gap."""
        x, g = self.columns(row)
        cell, stretch = bin_index(fit.cells.pieces.edges, x), fit.cells.stretch
        inside = (cell >= stretch.start) & (cell < stretch.stop)
        weight = None if self.rows.weight is None else self.rows.weight[inside]
        x, g = x[inside], g[inside]
        rows = Rows([x], [g], weight, self.rows.frequency, len(x))
        return UnitSums.of_rows(pieces, rows, 0, self.group[inside], self.n_groups)

    def bin_influences(self, row: FeatureResult) -> Grouped:
        """As of all groups; levels have steps in place of bins."""
        if not row.is_categorical:
            return super().bin_influences(row)
        return sampled(self.level_influences(row), self.design)

    def level_sums(self, row: FeatureResult) -> influence.RowSums:
        """Influences of rows, by group, on the steps between the levels of one feature."""
        rows, (code, steps) = self.rows, self._steps(row)
        curve = row["curve"].values
        return categories.row_sums(steps, code, curve, rows.weight, self.group, self.n_groups)

    def level_influences(self, row: FeatureResult, repeats: FloatArray | None = None) -> Grouped:
        """The same, corrected for leverage."""
        rows, (_, steps) = self.rows, self._steps(row)
        w = np.ones(rows.n_rows) if rows.weight is None else rows.weight
        square = w if rows.weight is None or rows.frequency else w**2
        group, w, square = self.group[steps.row], w[steps.row], square[steps.row]
        weights = GroupWeights(steps.step, group, self.n_groups, w, square, repeats)
        return weights.corrected(self.level_sums(row), np.arange(row.sizes["bin"]))

    def _steps(self, row: FeatureResult) -> tuple[IntArray, categories.Steps]:
        """The level of every row, and its steps to the levels beside it."""
        rows, position = self.rows, self.position(row)
        assert rows.sides is not None
        code = rows.x[position].astype(np.int64)
        return code, categories.steps(code, *rows.sides[position], len(row.edges))

    def check(self, row: FeatureResult) -> None:
        """Raise ``ValueError`` unless the effect of one feature was made from these rows."""
        check_same_rows(row, self.rows, self.position(row))


def units_of_rows(
    groups: GroupsOrDesign, local: xr.Dataset, used: NDArray[np.bool_], rows: str = "rows of local"
) -> tuple[IntArray, int, SamplingDesign | None]:
    """Group of every used row, the number of groups, and the design whose clusters they are.

    Raises ``ValueError`` unless every row has a group and there are at least two groups.
    """
    weight = local["weight"].values if "weight" in local else None
    group = row_groups(groups, row_labels(local), used, "groups", rows, weight)
    if isinstance(group, SamplingDesign):
        return group.cluster[group.rows], group.n_clusters, group
    return group, check_n_groups(group), None


def check_n_groups(group: IntArray) -> int:
    """How many groups these codes have; raise ``ValueError`` for less than two."""
    n_groups = int(group.max(initial=-1)) + 1
    if n_groups < 2:
        raise ValueError(f"groups must hold at least two different groups; got {n_groups}.")
    return n_groups


class SumsOfRows(NamedTuple):
    """Sums of one feature by groups of rows in memory, each computed where it is asked for."""

    row: FeatureResult
    rows: Rows
    position: int
    group: IntArray
    n_groups: int

    def _in(self, pieces: accumulate.Pieces) -> UnitSums:
        return UnitSums.of_rows(pieces, self.rows, self.position, self.group, self.n_groups)

    @property
    def cells(self) -> UnitSums:
        """In the cells of the curve."""
        return self._in(self.row.curve_cells.pieces)

    @property
    def bins(self) -> UnitSums:
        """In the bins."""
        return self._in(self.row.pieces)

    @property
    def levels(self) -> RowLevels:
        """Rows about their cells."""
        pieces = self.row.curve_cells.pieces
        return RowLevels.of_feature(pieces, self.rows, self.position, self.group)

    @property
    def spread(self) -> SpreadSums | None:
        """Squared residuals in the bins of the spread, where there are some."""
        if not self.row.has_spread:
            return None
        return SpreadSums.of_rows(self.row, *self[1:])


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

    def some(self, max_rows: int) -> RowLevels:
        """Levels of at most so many rows, evenly among them."""
        n = len(self.level)
        if n <= max_rows:
            return self
        rows = np.linspace(0, n - 1, max_rows).astype(np.int64)
        weight = None if self.weight is None else self.weight[rows]
        return RowLevels(self.level[rows], self.cell[rows], weight, self.group[rows])


def bin_influences(row: FeatureResult, sums: UnitSums) -> Grouped:
    """Influences of the groups on the bins of one feature, by their rows."""
    pieces = row.pieces
    curve = row.curve.evaluate(pieces.edges)
    return sums.influences(pieces, curve, np.arange(len(pieces.mean)))


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
    if len(cells.bin) == cells.n_bins:
        return np.arange(len(cells.bin))
    pairs = np.unique(np.stack([cell, group]), axis=1)
    of_cell = np.split(pairs[1], np.searchsorted(pairs[0], np.arange(1, len(cells.bin))))
    block, number = np.zeros(len(cells.bin), dtype=np.int64), -1
    for cells_of_bin in np.split(np.arange(len(block)), np.flatnonzero(np.diff(cells.bin)) + 1):
        number += 1
        first, seen = number, set[int]()
        for k in cells_of_bin:
            if len(seen) >= GROUPS_OF_BLOCK:
                number, seen = number + 1, set()
            block[k] = number
            seen.update(of_cell[k].tolist())
        # If the last block of a bin has too few groups, it is joined to the one before.
        if len(seen) < GROUPS_OF_BLOCK and number > first:
            block[block == number] = number - 1
            number -= 1
    return block


def errors_of_groups(
    features: Sequence[tuple[FeatureResult, CurveErrors | None]], clusters: Groups
) -> list[Estimates]:
    """Standard errors of all features; a warning names bins with too few groups, which have none.

    Raises
    ------
    ValueError
        No bin has enough groups.
    """
    rows, lost, n_bins = list[Estimates](), dict[str, int](), 0
    for row, fit in features:
        rows.append(unknown_errors(row) if fit is None else group_errors(row, fit, clusters))
        if fit is not None:
            effect = row["effect"].values
            lost[row.name] = int(np.sum(np.isfinite(effect) & np.isnan(rows[-1]["effect_se"])))
            n_bins += int(np.isfinite(effect).sum())
    if few := [f"{name!r} ({number})" for name, number in lost.items() if number]:
        what = f"groups are too few in bins of {', '.join(few)}: they must outnumber the mean and "
        what += "the slope of a bin. "
        if sum(lost.values()) == n_bins:
            raise ValueError(f"{what}Use fewer bins.")
        warn(f"{what}Its errors are NaN, and those of a curve that depends on it. Use fewer bins.")
    return rows


def group_errors(row: FeatureResult, fit: CurveErrors, clusters: Groups) -> Estimates:
    """Standard errors of one feature from the influences of groups of rows."""
    clusters.check(row)
    # RowLevels have no cells but their steps.
    sums = None if row.is_categorical else clusters.sums(row).bins
    of_bins = clusters.bin_influences(row) if sums is None else bin_influences(row, sums)
    n_groups = of_bins.sums.n_groups()
    # If a bin has one group only, its influences sum to 0; two leave nothing beside a slope.
    few = n_groups <= 1 + (row.slopes != 0)
    of_bins = of_bins if sums is None else sampled(of_bins, clusters.design)
    # For the curve residuals are from the means of blocks of cells, for lines and spreads from
    # those of bins.
    of_cells = of_bins if row.is_categorical else clusters.influences(row)
    of_effect = effect_influences(of_cells.sums, fit.cells)
    effect_cov = (of_effect.T @ of_effect).toarray()
    if row.has_cells:
        of_means = np.asarray(of_cells.sums.mean.power(2).sum(axis=0), dtype=np.float64)
        chosen = choice_variance(row.together, row.position, of_means)
        effect_cov[np.diag_indices_from(effect_cov)] += chosen
    effect_cov[few] = effect_cov[:, few] = np.nan
    # At all edges of cells, because the curve is not straight within a bin.
    edges, on_curve = fit.pieces.edges, of_cells.on_curve(fit)
    loadings, zero_start = fit.loadings(edges), influence.loadings(fit.pieces, edges, "start")
    of_curve = on_curve.sums.of_curve(loadings, population=fit.centering == "mean")
    of_start = on_curve.sums.of_curve(zero_start, population=False)
    unknown = few[fit.cells.bin[fit.cells.stretch]]
    for curve, weights in ((of_curve, loadings), (of_start, zero_start)):
        curve[:, (weights.level[:, unknown] != 0).any(axis=1)] = np.nan
    curve_cov, at_edges = of_curve.T @ of_curve, fit.cells.at_edges
    skew = {} if row.is_categorical else _skewness(row, fit, clusters, of_bins, of_cells)
    more: dict[str, FloatArray] = {}
    if "slope" in row:
        more |= _slope_covariances(of_bins.sums, of_effect, of_curve, fit, few & (n_groups > 0))
    variance_se = np.where(few, np.nan, np.sqrt(of_bins.sums.variance.power(2).sum(axis=0)))
    spread = row["heterogeneity"].values
    with np.errstate(invalid="ignore", divide="ignore"):
        return {
            "effect_se": np.sqrt(np.diagonal(effect_cov)),
            **more,
            "heterogeneity_se": np.where((spread == 0) & ~few, 0.0, variance_se / (2 * spread)),
            "curve_se": at_edges(np.sqrt(np.maximum(np.diagonal(curve_cov), 0.0))),
            "curve_se_start": at_edges(np.sqrt(np.sum(of_start**2, axis=0))),
            "average_effect_se": float(np.sqrt(np.sum(of_cells.sums.average**2))),
            "effect_cov": effect_cov,
            "curve_cov": at_edges(at_edges(curve_cov).T),
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
    of_effect, sign = effect_influences(sums, fit.cells), clusters.sums(row).levels.sign(row)
    of_effects = Skewness.of_groups(of_effect.toarray(), of_bins.degrees(), sign)
    loadings, population = fit.loadings(fit.pieces.edges), fit.centering == "mean"
    on_curve = of_cells.on_curve(fit).sums
    of_curve = tuple(
        np.sum(on_curve.of_curve(loadings, population=both) ** 2, axis=0)
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
    of_cells = of_bins if row.is_categorical else clusters.influences(row)
    return _degrees(row, fit, of_bins, of_cells)


def _degrees(
    row: FeatureResult, fit: CurveErrors, of_bins: Grouped, of_cells: Grouped
) -> dict[str, Any]:
    overlap = _effect_overlap(of_cells, fit)
    return {
        "effect_df": _degrees_of(overlap),
        "effect_overlap": overlap,
        **({"slope_df": of_bins.degrees()} if "slope" in row else {}),
        "heterogeneity_df": of_bins.degrees(),
        "curve_df": fit.cells.at_edges(of_cells.on_curve(fit).curve_degrees(fit, fit.pieces.edges)),
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
    total = np.bincount(cells.bin, parts)[cells.bin]
    shares = np.zeros((cells.n_bins, len(parts)))
    shares[cells.bin, np.arange(len(parts))] = parts / np.where(total > 0, total, 1.0)
    return np.asarray(shares @ of_cells.unit_overlap() @ shares.T)


def unknown_errors(row: FeatureResult) -> Estimates:
    """NaN for all errors of a feature without bins."""
    names = [*TARGETS, *GROUP_COVARIANCES, *GROUP_DEGREES]
    return dict.fromkeys([name for name in names if "slope" in row or "slope" not in name], np.nan)


def _slope_covariances(
    sums: influence.RowSums,
    of_effect: sparse.csr_array,
    of_curve: FloatArray,
    fit: CurveErrors,
    few: NDArray[np.bool_],
) -> dict[str, FloatArray]:
    """Covariances of the slopes of the bins, with each other, the effects and the curve.

    Those of bins with ``few`` groups are NaN.
    """
    slope = sums.slope.toarray()
    slope[:, few] = np.nan
    slope_cov, effect_slope_cov = slope.T @ slope, of_effect.T @ slope
    effect_slope_cov[few] = np.nan
    return {
        "slope_se": np.sqrt(np.diagonal(slope_cov)),
        "slope_cov": slope_cov,
        "effect_slope_cov": effect_slope_cov,
        "curve_slope_cov": fit.cells.at_edges(of_curve.T @ slope),
    }


def effect_influences(sums: influence.RowSums, cells: CurveCells) -> sparse.csr_array:
    """Influences on the effects of the bins, sparse (group, bin), from those on their cells."""
    level, tilt = cells.loading
    positions = (np.arange(len(level)), cells.bin)
    of_mean, of_slope = [sparse.coo_array((part, positions)).tocsr() for part in (level, tilt)]
    return sparse.csr_array(sums.mean @ of_mean + sums.slope @ of_slope)


class MergedSums(NamedTuple):
    """The same sums of the rows of a chunk, or of several chunks together.

    Of very many rows ``levels`` are some, evenly from all chunks.
    """

    cells: UnitSums
    bins: UnitSums
    levels: RowLevels
    spread: SpreadSums | None


class GroupsInChunks(Groups):
    """Groups of the rows of an effect that are in chunks, by merged sums.

    All features are compared with their rows when the sums are made.
    """

    def __init__(self, sums: dict[str, MergedSums], n_groups: int) -> None:
        super().__init__(n_groups)
        self._sums = sums

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
        features = [row for row in each_feature(effect) if row.sizes["bin"]]
        positions = [feature_position(local, row.name) for row in features]
        max_rows = most_of_chunk(len(rows.lengths))
        codes = np.split(group, np.cumsum(rows.lengths)[:-1])
        chunk_sums = _ChunkSums(features, positions, n_groups, max_rows)
        sums = rows.merged(chunk_sums, _merged, "groups", beside=codes)
        check_same_chunks(rows, local, effect)
        return cls(dict(zip([row.name for row in features], sums, strict=True)), n_groups)

    def sums(self, row: FeatureResult) -> MergedSums:
        """Sums over the rows of one feature."""
        return self._sums[row.name]


@dataclass(frozen=True)
class _ChunkSums:
    """Sums of one chunk by group, of every feature; ``max_rows`` decide on a skewness."""

    features: Sequence[FeatureResult]
    positions: Sequence[int]
    n_groups: int
    max_rows: int

    def __call__(self, rows: Rows, group: IntArray) -> list[MergedSums]:
        out = []
        for row, position in zip(self.features, self.positions, strict=True):
            sums = SumsOfRows(row, rows, position, group, self.n_groups)
            bins = sums.bins
            cells = sums.cells if row.has_cells else bins
            out.append(MergedSums(cells, bins, sums.levels.some(self.max_rows), sums.spread))
        return out


def _merged(chunks: Sequence[list[MergedSums]]) -> list[MergedSums]:
    return [_together(each) for each in zip(*chunks, strict=True)]


def _together(parts: Sequence[MergedSums]) -> MergedSums:
    cells, bins, levels, spread = zip(*parts, strict=True)
    level, cell, weight, group = zip(*levels, strict=True)
    weights: FloatArray | None = None if weight[0] is None else np.concatenate(weight)
    spreads = [sums for sums in spread if sums is not None]
    return MergedSums(
        UnitSums.merged(cells),
        UnitSums.merged(bins),
        RowLevels(np.concatenate(level), np.concatenate(cell), weights, np.concatenate(group)),
        SpreadSums(*map(sum, zip(*spreads, strict=True))) if spreads else None,  # type: ignore[arg-type]
    )
