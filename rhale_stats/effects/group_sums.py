"""Sums over rows by group and unit, and influences of groups with their leverage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import sparse

from rhale_stats.arrays import accumulate, influence, leverage
from rhale_stats.arrays.binning import bin_index
from rhale_stats.arrays.leverage import like
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.local.rows import Rows
from rhale_stats.schema.curves import CurveErrors


class GroupWeights(NamedTuple):
    """Rows with the unit and the group of each, their weights, and what squares of these count."""

    unit: IntArray
    group: IntArray
    n_groups: int
    weight: FloatArray
    square: FloatArray
    repeats: FloatArray | None

    @classmethod
    def from_rows(
        cls,
        unit: IntArray,
        group: IntArray,
        n_groups: int,
        weight: FloatArray | None,
        frequency: bool,
        repeats: FloatArray | None = None,
    ) -> GroupWeights:
        """Frequencies count rows, so that their squares are the frequencies themselves.

        A group may stand for ``repeats`` independent ones, which have equal parts of its weight.
        """
        w = np.ones(len(unit)) if weight is None else weight
        square = w if weight is None or frequency else w**2
        return cls(unit, group, n_groups, w, square, repeats)

    def table(self, values: FloatArray, unit: IntArray, n_units: int) -> sparse.csr_array:
        """Sums by group and unit."""
        return leverage.table(values, self.group, unit, self.n_groups, n_units)

    def shares(self, unit: IntArray, n_units: int) -> leverage.Shares:
        """Shares of the groups in units."""
        weight = self.table(self.weight, unit, n_units)
        same = self.square is self.weight
        square = weight if same else self.table(self.square, unit, n_units)
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
        """Degrees of freedom of the variances of single units."""
        return np.asarray(1 / np.diagonal(self.unit_overlap()))

    def curve_degrees(self, fit: CurveErrors, z: FloatArray) -> FloatArray:
        """Degrees of freedom of the variance of the curve at points within its stretch."""
        noise = _noise_or_equal(fit)
        parts = np.maximum(influence.parts(fit.loadings(z), noise), 0.0)
        alone = np.full((len(z), 1), 0.0)
        if fit.centering == "mean":
            alone += _place_variance(fit)
        degrees = leverage.degrees(np.hstack([parts, alone]), self.overlap)
        return np.where(np.isfinite(degrees), degrees, 1 / self.overlap[-1, -1])


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
        return fit.places.alone
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


def lines_of(
    pieces: accumulate.Pieces, weights: GroupWeights, x: FloatArray
) -> leverage.Lines | None:
    """What groups have of the lines of units; None where there are no lines."""
    if not pieces.slope.any():
        return None
    n_units, w = len(pieces.mean), weights.weight
    sd = np.where(pieces.slope != 0, np.sqrt(pieces.x_variance), 0.0)
    unit = weights.unit
    scale = sd[unit]
    away = np.divide(x - pieces.x_mean[unit], scale, out=np.zeros(len(x)), where=scale > 0)
    share = w / np.bincount(unit, w, n_units)[unit]
    if weights.repeats is not None:
        share = share / weights.repeats[weights.group]
    shared, slope = [weights.table(share * part, unit, n_units) for part in (away, away**2)]
    return leverage.Lines(shared, slope, sd)


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
        x, g, w = rows.x[position], rows.local_effect[position], rows.weight
        k, n_units = bin_index(pieces.edges, x), len(pieces.mean)
        d = x - pieces.x_mean[k]
        r = g - pieces.mean[k] - pieces.slope[k] * d
        # Sums of w and of w^2, where these are not the same.
        values: list[FloatArray | None] = [w]
        if w is not None and not rows.frequency:
            values.append(w**2)
        n_weights = len(values)
        values += [product if w is None else w * product for product in (d, d * d, r, d * r, r * r)]
        return cls._summed(group, k, n_groups, n_units, values, n_weights)

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
        return cls._summed(group, unit, first.n_groups, first.n_units, values, 2)

    @classmethod
    def _summed(
        cls,
        group: IntArray,
        unit: IntArray,
        n_groups: int,
        n_units: int,
        values: Sequence[FloatArray | None],
        n_weights: int,
    ) -> UnitSums:
        key = group * n_units + unit
        n_pairs = n_groups * n_units
        if n_pairs <= max(DENSE * len(key), MIN_DENSE):
            pairs = np.flatnonzero(np.bincount(key, minlength=n_pairs))
            sums = [np.bincount(key, value, n_pairs)[pairs] for value in values]
        else:
            pairs, pair_of = np.unique(key, return_inverse=True)
            sums = [np.bincount(pair_of, value, len(pairs)) for value in values]
        totals: list[FloatArray] = [total.astype(np.float64, copy=False) for total in sums]
        if n_weights == 1:
            totals.insert(1, totals[0])
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

    def group_weights(self) -> GroupWeights:
        """Weights of the groups in the units."""
        return GroupWeights(self.unit, self.group, self.n_groups, self.weight, self.square, None)

    def row_sums(self, pieces: accumulate.Pieces, curve: FloatArray) -> influence.RowSums:
        """Influences of the groups, as `influence.row_sums` has them of rows.

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
        """Influences of the groups on a mean over all rows, from sums by entry."""
        weight = np.bincount(self.group, self.weight, self.n_groups).astype(np.float64)
        total = np.bincount(self.group, values, self.n_groups).astype(np.float64)
        every = weight.sum()
        return np.asarray((total - weight * (total.sum() / every)) / every)

    def lines(self, pieces: accumulate.Pieces) -> leverage.Lines | None:
        """What groups have of the lines of units; None where there are no lines."""
        if not pieces.slope.any():
            return None
        sd = np.where(pieces.slope != 0, np.sqrt(pieces.x_variance), 0.0)
        unit_sd = sd[self.unit]
        share = 1 / self.total(self.weight)[self.unit]
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
        sloped = pieces.slope != 0
        totals = weight.sum(axis=0), np.where(sloped, dd.sum(axis=0), np.inf)
        every = totals[0].sum()
        draws = np.random.default_rng(0).choice(WEBB, (N_DRAWS, self.n_groups))
        pvalues = {}
        for null in ("zero", "constant"):
            level = first.sum() / every if null == "constant" else 0.0
            wild = _Wild(weight, d, dd, first - level * weight, second - level * d, *totals, null)
            observed = wild.statistic(np.ones((1, self.n_groups)))[0]
            beyond = np.sum(wild.statistic(draws) >= observed * (1 - 1e-12))
            pvalues[null] = float((1 + beyond) / (1 + N_DRAWS))
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
