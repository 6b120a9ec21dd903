"""The ANOVA-type test of zero and constant effects, by Box's approximation (math [31])."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy import sparse

from rhale_stats.arrays import quadratic
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.effects.fit import bin_degrees, group_overlap, noise_in_the_middle
from rhale_stats.inference import meaning
from rhale_stats.inference.results import SIZE_LEVEL
from rhale_stats.schema.curves import CurveCells, curve_cells, pieces_of
from rhale_stats.schema.features import resolution, slopes, stores_errors
from rhale_stats.schema.levels import is_categorical
from rhale_stats.schema.moments import has_cells

# Largest correlation of an effect and its slope in the weights; Kish's rows may overstate it.
MOST_CORRELATED = 0.95
# The F distribution with more degrees is that of chi-squared to all digits.
MOST_DEGREES = 1e9
# A smaller share of a variance is the numerical error of derivatives by parameters.
RIGID = 1e-10


class Wald(NamedTuple):
    """Result of a test of one feature, or the reason why there is none."""

    statistic: float = float("nan")
    df: float = float("nan")
    p_value: float = float("nan")
    reason: str = ""
    df_denominator: float = float("nan")
    size: float = float("nan")
    size_low: float = float("nan")
    size_high: float = float("nan")


def anova_test(row: xr.Dataset, null: str) -> Wald:
    """Test that all effects of one feature are 0, or equal."""
    if is_categorical(row):
        return _of_steps(row, null)
    return _of_groups(row, null) if stores_errors(row) else _of_bins(row, null)


def with_spread(cells: CurveCells, least: float) -> CurveCells | None:
    """Cells of one feature; those without spread take that of the others. None if none is known.

    A few rows may be equal by chance.
    """
    variance, degrees = cells.variance, cells.degrees
    known = (degrees > 0) & (variance >= 0)
    if not known.any():
        return None
    pooled = np.average(variance[known], weights=degrees[known])
    return cells._replace(variance=np.where(variance <= least**2, pooled, variance))


def least_of_cells(row: xr.Dataset, cells: CurveCells) -> float:
    """Numerical limit of one feature, from the means of its cells."""
    return resolution(cells.pieces.mean, float(row["local_effect_error"]))


class Places(NamedTuple):
    """Which bins of a feature are tested, which of them have slopes, and the widths of these.

    A slope times the width of its bin has the units of effects.
    """

    known: NDArray[np.bool_]
    at: NDArray[np.intp]
    width: FloatArray

    @classmethod
    def of(cls, row: xr.Dataset, known: NDArray[np.bool_]) -> Places:
        """Of one feature, given the bins to test."""
        sloped = (slopes(row) != 0)[known]
        width = np.diff(row["edge_value"].values)[known]
        return cls(known, np.flatnonzero(sloped), width[sloped])

    def values(self, row: xr.Dataset) -> FloatArray:
        """Effects, then slopes."""
        slope = slopes(row)[self.known][self.at] * self.width
        return np.concatenate([row["effect"].values[self.known], slope])

    def level(self, null: str) -> FloatArray | None:
        """What a common effect adds to these, for the null hypothesis that has one."""
        ones = np.ones(int(self.known.sum())), np.zeros(len(self.at))
        return np.concatenate(ones) if null == "constant" else None

    def dimension(self, null: str) -> int:
        """Number of values that are 0 under the null hypothesis."""
        return int(self.known.sum()) + len(self.at) - (null == "constant")

    def of_slopes(self, values: FloatArray) -> FloatArray:
        """Values of the bins with slopes."""
        return np.asarray(values[self.known][self.at])


def _weights(row: xr.Dataset, cells: CurveCells, places: Places) -> sparse.csr_array:
    """Inverse covariance of effects and slopes if all rows had variance 1."""
    bins, n = pieces_of(row), row["n_effective"].values
    known, at, width = places
    with np.errstate(invalid="ignore", divide="ignore"):
        of_slope = 1 / (n * bins.x_variance)
        level, _ = cells.loading
        squares = np.where(level > 0, level**2 / cells.n_effective, 0.0)
        effect = np.bincount(cells.bin, squares, len(n))
        if has_cells(row):
            away = np.where(level > 0, level * (cells.pieces.x_mean - bins.x_mean[cells.bin]), 0.0)
            away = np.bincount(cells.bin, away, len(n))
        else:
            away = bins.away()
            effect = effect + np.where(slopes(row) != 0, away**2 * of_slope, 0.0)
        shared = away * of_slope
    level = np.asarray(effect[known], dtype=np.float64)
    slope = places.of_slopes(of_slope) * width**2
    most = MOST_CORRELATED * np.sqrt(level[at] * slope)
    shared = np.clip(places.of_slopes(shared) * width, -most, most)
    return quadratic.inverse(level, shared, slope, at)


def _of_bins(row: xr.Dataset, null: str) -> Wald:
    """Test with independent bins."""
    fine = curve_cells(row)
    least = least_of_cells(row, fine)
    cells = with_spread(fine, least)
    if cells is None:
        return Wald(reason=meaning.NO_ROWS)
    variance = cells.effect_variance()
    places = Places.of(row, (bin_degrees(row, cells) > 0) & (variance >= 0))
    if places.dimension(null) <= 0:
        return Wald(df=0.0, reason=meaning.NO_ROWS)
    noise = noise_in_the_middle(row)
    known, at, width = places
    covariance = quadratic.blocks(
        np.maximum(variance[known], least**2),
        places.of_slopes(noise.covariance) * width,
        np.maximum(places.of_slopes(noise.slope) * width**2, least**2),
        at,
    )
    weight, value = _weights(row, cells, places), places.values(row)
    found = quadratic.form(value, weight, covariance, places.level(null))
    # What every bin adds to the denominator is divided among its cells as its variance is.
    of_bin = np.zeros(len(known))
    number = np.flatnonzero(known)
    np.add.at(of_bin, np.concatenate([number, number[at]]), found.parts)
    there = known[cells.bin] & (variance[cells.bin] > 0)
    shares = np.zeros(len(cells.bin))
    np.divide(cells.of_effects, variance[cells.bin], out=shares, where=there)
    sources = cells.sources((of_bin[cells.bin] * shares)[None, :])
    denominator = float(sources.satterthwaite(np.array([found.expected]))[0])
    return _against_f(found, denominator, _rows_in(weight, places))


def _of_groups(row: xr.Dataset, null: str) -> Wald:
    """Test with groups of rows, which may be in several bins."""
    places = Places.of(row, np.ones(row.sizes["bin"], dtype=bool))
    _, at, width = places
    least = resolution(row["effect"].values, float(row["local_effect_error"]))
    covariance = row["effect_cov"].values
    if len(at):
        mixed = row["effect_slope_cov"].values[:, at] * width
        own = row["slope_cov"].values[np.ix_(at, at)] * np.outer(width, width)
        covariance = np.block([[covariance, mixed], [mixed.T, own]])
    covariance = covariance + least**2 * np.eye(len(covariance))
    weight = _weights(row, curve_cells(row), places)
    found = quadratic.form(
        places.values(row), weight, sparse.csr_array(covariance), places.level(null)
    )
    if null == "constant" and found.expected <= RIGID * float((weight @ covariance).trace()):
        return Wald(df=0.0, reason=meaning.RIGID)
    of_bin = found.parts[: row.sizes["bin"]].copy()
    np.add.at(of_bin, at, found.parts[row.sizes["bin"] :])
    return _against_f(found, _degrees_together(row, of_bin), _rows_in(weight, places))


def _degrees_together(row: xr.Dataset, parts: FloatArray) -> float:
    """Degrees of freedom of a sum of variances by groups, with what each bin adds to it.

    A group counts as one degree in all bins, because its effects may depend on each other.
    """
    shared = float(parts @ group_overlap(row) @ parts)
    if shared * MOST_DEGREES <= parts.sum() ** 2:
        return MOST_DEGREES
    return float(parts.sum() ** 2 / shared)


def _of_steps(row: xr.Dataset, null: str) -> Wald:
    """Test of steps between levels, which share rows."""
    value, n = row["effect"].values, row["n_effective"].values
    least = resolution(value, float(row["local_effect_error"]))
    covariance = row["effect_cov"].values + least**2 * np.eye(len(value))
    level = np.ones(len(value)) if null == "constant" else None
    weight = sparse.diags_array(n).tocsr()
    found = quadratic.form(value, weight, sparse.csr_array(covariance), level)
    if stores_errors(row):
        return _against_f(found, _degrees_together(row, found.parts), float(n.sum()))
    # Satterthwaite's degrees of freedom, as if steps were independent.
    own = (n if level is None else n * (1 - n / n.sum())) * np.diagonal(covariance)
    denominator = float(found.expected**2 / np.sum(own**2 / bin_degrees(row)))
    return _against_f(found, denominator, float(n.sum()))


def _rows_in(weight: sparse.csr_array, places: Places) -> float:
    """Number of rows that the weights of all effects represent."""
    level = np.concatenate([np.ones(int(places.known.sum())), np.zeros(len(places.at))])
    return float(level @ (weight @ level))


def _against_f(found: quadratic.Form, denominator: float, rows: float) -> Wald:
    """The test, with the root mean square of what it tests (math [31])."""
    from scipy import stats

    if not denominator > 0:
        return Wald(df=0.0, reason=meaning.NO_ROWS)
    p_value = float(stats.f.sf(found.statistic, found.degrees, denominator))
    square = found.square(denominator)
    low, high = square.interval(SIZE_LEVEL) / np.sqrt(rows)
    size = square.size / np.sqrt(rows)
    return Wald(
        found.statistic, found.degrees, p_value, "", denominator, size, float(low), float(high)
    )
