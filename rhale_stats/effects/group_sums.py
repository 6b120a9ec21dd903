"""Sums over rows by group and unit: all that errors by groups need to know of the rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rhale_stats.arrays import accumulate, influence, leverage
from rhale_stats.arrays.binning import bin_index
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.effects.grouped import GroupWeights
from rhale_stats.local.rows import Rows

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
        group, unit, *values = (
            np.concatenate(each)
            for each in zip(*((part[0], part[1], *part[4:]) for part in parts), strict=True)
        )
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
        shared, slope = (
            weights.table(
                share * np.divide(sums, unit_sd**power, out=np.zeros(len(sums)), where=unit_sd > 0),
                self.unit,
                self.n_units,
            )
            for power, sums in ((1, self.d), (2, self.dd))
        )
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
        weight, d, dd, first, second = (np.zeros(shape) for _ in range(5))
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
