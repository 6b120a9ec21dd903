"""What groups of rows hold of bins or cells, and their influences with leverage corrected."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from rhale_stats.arrays import accumulate, influence, leverage
from rhale_stats.arrays.leverage import like
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.effects.fit import CurveErrors


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
    shared, slope = (weights.table(share * part, unit, n_units) for part in (away, away**2))
    return leverage.Lines(shared, slope, sd)
