"""The ANOVA-type test of zero and constant effects, by Box's approximation (math [31])."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rhale_stats.arrays import quadratic
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.effects.fit import bin_degrees, group_overlap, noise_in_the_middle
from rhale_stats.inference import meaning
from rhale_stats.inference.results import Wald, against_f
from rhale_stats.schema.curves import CurveCells
from rhale_stats.schema.feature_result import FeatureResult
from rhale_stats.schema.features import resolution

# Largest correlation of an effect and its slope in the weights; Kish's rows may overstate it.
MAX_CORRELATION = 0.95
# The F distribution with more degrees is that of chi-squared to all digits.
MAX_DF = 1e9
# A smaller share of a variance is the numerical error of derivatives by parameters.
RIGID = 1e-10


def anova_test(row: FeatureResult, null: str) -> Wald:
    """Test that all effects of one feature are 0, or equal."""
    if row.is_categorical:
        return _test_steps(row, null)
    return _test_grouped_bins(row, null) if row.stores_errors else _test_bins(row, null)


def fill_spread(cells: CurveCells, least: float) -> CurveCells | None:
    """Cells of one feature; those without spread take that of the others. None if none is known.

    A few rows may be equal by chance.
    """
    variance, degrees = cells.variance, cells.degrees
    has_variance = (degrees > 0) & (variance >= 0)
    if not has_variance.any():
        return None
    pooled = np.average(variance[has_variance], weights=degrees[has_variance])
    return replace(cells, variance=np.where(variance <= least**2, pooled, variance))


def least_of_cells(row: FeatureResult, cells: CurveCells) -> float:
    """Numerical limit of one feature, from the means of its cells."""
    return resolution(cells.pieces.mean, float(row["local_effect_error"]))


class BinSelection(NamedTuple):
    """Which bins of a feature are tested, which of them have slopes, and the widths of these.

    A slope times the width of its bin has the units of effects.
    """

    mask: NDArray[np.bool_]
    sloped: NDArray[np.intp]
    width: FloatArray

    @classmethod
    def of_feature(cls, row: FeatureResult, mask: NDArray[np.bool_] | None = None) -> BinSelection:
        """The bins of one feature to test, by default all with errors, and those with slopes."""
        mask = np.isfinite(np.diagonal(row.effect_cov)) if mask is None else mask
        sloped = np.flatnonzero((row.slopes != 0)[mask])
        return cls(mask, sloped, np.diff(row.bin_edges)[mask][sloped])

    def values(self, row: FeatureResult) -> FloatArray:
        """Effects, then slopes."""
        slope = row.slopes[self.mask][self.sloped] * self.width
        return np.concatenate([row["effect"].values[self.mask], slope])

    @property
    def bins(self) -> IntArray:
        """The bins of the effects, then of the slopes."""
        number = np.flatnonzero(self.mask)
        return np.concatenate([number, number[self.sloped]])

    def by_bin(self, parts: FloatArray) -> FloatArray:
        """Sums by bin of parts of effects, then of slopes; 0 in bins that are not tested."""
        return np.bincount(self.bins, parts, len(self.mask)).astype(np.float64)

    def covariance(self, row: FeatureResult) -> FloatArray:
        """Covariance of these values by groups or parameters, which the result holds."""
        effects, slopes = np.flatnonzero(self.mask), np.flatnonzero(self.mask)[self.sloped]
        total = row.effect_cov[np.ix_(effects, effects)]
        if not len(slopes):
            return np.asarray(total)
        mixed = row["effect_slope_cov"].values[np.ix_(effects, slopes)] * self.width
        scale = np.outer(self.width, self.width)
        slope_cov = row["slope_cov"].values[np.ix_(slopes, slopes)] * scale
        return np.block([[total, mixed], [mixed.T, slope_cov]])

    @property
    def common(self) -> FloatArray:
        """What a common effect adds to these values."""
        return np.concatenate([np.ones(int(self.mask.sum())), np.zeros(len(self.sloped))])

    def level(self, null: str) -> FloatArray | None:
        """The same, for the null hypothesis that has a common effect."""
        return self.common if null == "constant" else None

    def dimension(self, null: str) -> int:
        """Number of values that are 0 under the null hypothesis."""
        return len(self.common) - (null == "constant")

    def of_slopes(self, values: FloatArray) -> FloatArray:
        """Values of the bins with slopes."""
        return np.asarray(values[self.mask][self.sloped])


def _weights(row: FeatureResult, cells: CurveCells, selection: BinSelection) -> sparse.csr_array:
    """Inverse covariance of effects and slopes if all rows had variance 1."""
    bins, n = row.pieces, row.n_effective
    mask, sloped, width = selection
    with np.errstate(invalid="ignore", divide="ignore"):
        of_slope = 1 / (n * bins.x_variance)
        level, _ = cells.loading
        squares = np.where(level > 0, level**2 / cells.n_effective, 0.0)
        effect = np.bincount(cells.bin, squares, len(n))
        if row.has_cells:
            away = np.where(level > 0, level * (cells.pieces.x_mean - bins.x_mean[cells.bin]), 0.0)
            away = np.bincount(cells.bin, away, len(n))
        else:
            away = bins.away()
            effect = effect + np.where(row.slopes != 0, away**2 * of_slope, 0.0)
        shared = away * of_slope
    level = np.asarray(effect[mask], dtype=np.float64)
    slope = selection.of_slopes(of_slope) * width**2
    bound = MAX_CORRELATION * np.sqrt(level[sloped] * slope)
    shared = np.clip(selection.of_slopes(shared) * width, -bound, bound)
    return quadratic.inverse(level, shared, slope, sloped)


def _test_bins(row: FeatureResult, null: str) -> Wald:
    """Test with independent bins."""
    fine = row.curve_cells
    least = least_of_cells(row, fine)
    cells = fill_spread(fine, least)
    if cells is None:
        return Wald(reason=meaning.NO_ROWS)
    variance = cells.effect_variance()
    selection = BinSelection.of_feature(row, (cells.effect_degrees() > 0) & (variance >= 0))
    if selection.dimension(null) <= 0:
        return Wald(df=0.0, reason=meaning.NO_ROWS)
    noise = noise_in_the_middle(row)
    mask, sloped, width = selection
    covariance = quadratic.blocks(
        np.maximum(variance[mask], least**2),
        selection.of_slopes(noise.covariance) * width,
        np.maximum(selection.of_slopes(noise.slope) * width**2, least**2),
        sloped,
    )
    weight, value = _weights(row, cells, selection), selection.values(row)
    form = quadratic.form(value, weight, covariance, selection.level(null))
    # What every bin adds to the denominator is divided among its cells as its variance is.
    of_bin = selection.by_bin(form.parts)
    varies = mask[cells.bin] & (variance[cells.bin] > 0)
    shares = np.zeros(len(cells.bin))
    np.divide(cells.effect_parts, variance[cells.bin], out=shares, where=varies)
    sources = cells.sources((of_bin[cells.bin] * shares)[None, :])
    denominator = float(sources.satterthwaite(np.array([form.expected]))[0])
    return against_f(form, denominator, _rows_in(weight, selection))


def _test_grouped_bins(row: FeatureResult, null: str) -> Wald:
    """Test with groups of rows, which may be in several bins."""
    selection = BinSelection.of_feature(row)
    covariance = selection.covariance(row)
    covariance = covariance + row.least_effect**2 * np.eye(len(covariance))
    weight = _weights(row, row.curve_cells, selection)
    form = quadratic.form(
        selection.values(row), weight, sparse.csr_array(covariance), selection.level(null)
    )
    if null == "constant" and form.expected <= RIGID * float((weight @ covariance).trace()):
        return Wald(df=0.0, reason=meaning.RIGID)
    degrees = _degrees_together(row, selection.by_bin(form.parts))
    return against_f(form, degrees, _rows_in(weight, selection))


def _degrees_together(row: FeatureResult, parts: FloatArray) -> float:
    """Degrees of freedom of a sum of variances by groups, with what each bin adds to it.

    A group counts as one degree in all bins, because its effects may depend on each other.
    """
    shared = float(parts @ group_overlap(row) @ parts)
    if shared * MAX_DF <= parts.sum() ** 2:
        return MAX_DF
    return float(parts.sum() ** 2 / shared)


def _test_steps(row: FeatureResult, null: str) -> Wald:
    """Test of steps between levels, which share rows."""
    value, n = row["effect"].values, row.n_effective
    covariance = row.effect_cov + row.least_effect**2 * np.eye(len(value))
    level = np.ones(len(value)) if null == "constant" else None
    weight = sparse.diags_array(n).tocsr()
    form = quadratic.form(value, weight, sparse.csr_array(covariance), level)
    if row.stores_errors:
        return against_f(form, _degrees_together(row, form.parts), float(n.sum()))
    # Satterthwaite's degrees of freedom, as if steps were independent.
    parts = (n if level is None else n * (1 - n / n.sum())) * np.diagonal(covariance)
    denominator = float(form.expected**2 / np.sum(parts**2 / bin_degrees(row)))
    return against_f(form, denominator, float(n.sum()))


def _rows_in(weight: sparse.csr_array, selection: BinSelection) -> float:
    """Number of rows that the weights of all effects represent."""
    return float(selection.common @ (weight @ selection.common))
