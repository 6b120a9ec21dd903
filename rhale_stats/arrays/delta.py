"""Errors of estimates from a fitted model: what rows do, and what its parameters do (math [80]).

Parameters vary along independent directions, one standard error long. The change of the estimates
along all of them, (direction, estimate), has the estimates' covariance as its square.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rhale_stats.arrays import leverage
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.arrays.profiles import BinMeans, unrelated
from rhale_stats.arrays.survey import SamplingDesign


class Units(NamedTuple):
    """What rows, or groups of rows, do to estimates, (unit, estimate): their square is a variance.

    ``code`` is the unit of every row, ``degrees`` those of freedom of the variance of a mean. Units
    of a ``design`` are what that makes of rows.
    """

    moved: FloatArray
    code: IntArray
    degrees: float
    design: SamplingDesign | None = None


def of_rows(influence: FloatArray, weight: FloatArray | None, *, frequency: bool) -> Units:
    """math [5], [6]: rows are independent; ``influence`` (row, estimate) is of means over them."""
    w = np.ones(len(influence)) if weight is None else weight
    total = float(w.sum())
    deviation = influence - np.average(influence, axis=0, weights=w)
    if frequency:
        each = np.sqrt(w / (total - 1)) if total > 1 else np.full(len(w), np.nan)
        moved, degrees = deviation * (each / np.sqrt(total))[:, None], total - 1
    else:
        moved = deviation * (w / total * np.sqrt(unrelated(w)))[:, None]
        degrees = total**2 / float(w @ w) - 1
    return Units(moved, np.arange(len(w)), degrees)


def of_groups(
    influence: FloatArray,
    weight: FloatArray | None,
    group: IntArray | SamplingDesign,
    *,
    frequency: bool,
) -> Units:
    """math [26]: sums over groups of rows, corrected for their leverage; or math [117]."""
    w = np.ones(len(influence)) if weight is None else weight
    deviation = influence - np.average(influence, axis=0, weights=w)
    if isinstance(group, SamplingDesign):
        share = (w / w.sum())[:, None]
        moved = group.units(deviation * share, share)
        return Units(moved, group.cluster[group.rows], group.degrees, group)
    shares = leverage.of_mean(group, w, frequency=frequency)
    factor = shares.factor.toarray()[:, 0]
    moved = summed(deviation * (w / w.sum())[:, None], group) * factor[:, None]
    return Units(moved, group, leverage.mean_degrees(shares))


class BinUnits(NamedTuple):
    """`Units` of means in bins, with the degrees of freedom of each bin, and units in it."""

    units: Units
    degrees: FloatArray
    n_units: IntArray


def of_bins(
    values: FloatArray,
    cell: IntArray,
    bins: BinMeans,
    centre: FloatArray | None,
    weight: FloatArray | None,
    group: IntArray | SamplingDesign | None,
    *,
    frequency: bool = False,
) -> BinUnits:
    """math [42] by units: every bin has corrections for the leverage of its own units.

    Units are the groups of the rows, or the rows. ``centre`` are the weights of bins in the
    constant that is subtracted; None: the mean over rows.
    """
    w = np.ones(len(values)) if weight is None else weight
    if isinstance(group, SamplingDesign):
        return _of_sampled_bins(values, cell, bins, centre, w, group)
    code = np.arange(len(values)) if group is None else group
    # A row of a frequency weight is as many rows, whose squares are added.
    repeats = w if frequency and group is None else None
    n_bins, n_units = len(bins.share), int(code.max(initial=-1)) + 1
    total = np.bincount(cell, w, n_bins)
    mean = np.where(bins.share > 0, bins.mean, 0.0)
    tables = [
        leverage.table(row_values, code, cell, n_units, n_bins)
        for row_values in (w, w if frequency else w**2, w * (values - mean[cell]) / total[cell])
    ]
    shares = leverage.Shares.from_sums(tables[0], tables[1], repeats)
    moved = leverage.like(tables[2], tables[2].data * shares.factor.data).toarray()
    if repeats is not None:
        moved /= np.sqrt(repeats)[:, None]
    if centre is None:
        apart = (w / w.sum()) * (mean[cell] - bins.share @ mean)
        factor = leverage.of_mean(code, w, frequency=frequency).factor.toarray()[:, 0]
        moved -= (moved @ bins.share + summed(apart, code) * factor)[:, None]
    else:
        moved -= (moved @ centre)[:, None]
    lost = leverage.like(shares.square, shares.square.data * shares.factor.data)
    overlap = np.diagonal(leverage.products(shares.square) + leverage.between(lost))
    degrees = np.divide(1.0, overlap, out=np.zeros(n_bins), where=overlap > 0)
    if group is None:
        degrees = np.maximum(bins.n_effective - 1, 0.0)
    return BinUnits(
        Units(moved, code, np.nan), degrees, np.bincount(tables[0].indices, minlength=n_bins)
    )


def _of_sampled_bins(
    values: FloatArray,
    cell: IntArray,
    means: BinMeans,
    centre: FloatArray | None,
    w: FloatArray,
    design: SamplingDesign,
) -> BinUnits:
    """math [117] of means in bins: rows of other bins have no part in one, their clusters do."""
    n_bins, mean = len(means.share), np.where(means.share > 0, means.mean, 0.0)
    share = np.zeros((len(values), n_bins))
    share[np.arange(len(values)), cell] = w / np.bincount(cell, w, n_bins)[cell]
    moved = design.units(share * (values[:, None] - mean), np.where(means.share > 0, share, 1.0))
    if centre is None:
        apart = ((w / w.sum()) * (mean[cell] - means.share @ mean))[:, None]
        moved -= (moved @ means.share)[:, None] + design.units(apart)
    else:
        moved -= (moved @ centre)[:, None]
    pairs = np.unique(np.column_stack([cell, design.cluster[design.rows]]), axis=0)[:, 0]
    code, degrees = design.cluster[design.rows], np.full(n_bins, design.degrees)
    return BinUnits(
        Units(moved, code, design.degrees, design), degrees, np.bincount(pairs, minlength=n_bins)
    )


def summed(values: FloatArray, code: IntArray) -> FloatArray:
    """Sums over the rows of every unit, (unit, ...)."""
    out = np.zeros((int(code.max(initial=-1)) + 1, *values.shape[1:]))
    np.add.at(out, code, values)
    return out


class Covariances(NamedTuple):
    """Of estimates: from the rows, from the parameters, and what was asked for.

    The design of a survey has one number of ``degrees`` of freedom for all, and the number of
    units of equal influence, `n_equal`. Sums over groups have ``most_degrees``.
    """

    rows: FloatArray
    model: FloatArray
    total: FloatArray
    degrees: float | None = None
    n_equal: FloatArray | None = None
    most_degrees: float = np.inf


def n_equal(moved: FloatArray) -> FloatArray:
    """math [117]: degrees of freedom of the variance of every estimate, by the kurtosis of units.

    As many as there are units if these are normal, and few where a few of them decide.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.sum(moved**4, axis=0) / np.sum(moved**2, axis=0) ** 2
    return np.asarray(2 / np.maximum(share - 1 / len(moved), 1 / len(moved)))


def together(
    rows: FloatArray,
    change: FloatArray,
    units: Units,
    influence: FloatArray,
    used: IntArray,
    row_factor: FloatArray,
    *,
    as_fitted: bool = False,
) -> FloatArray:
    """math [80]: covariance (estimate, estimate) by the summed influences of every row.

    ``change`` is (direction, estimate). ``influence`` (row, direction) is that of the rows of the
    fit on the directions. ``used`` are the numbers of those that the ``units`` are made of; the
    others move the parameters alone. ``as_fitted`` keeps the covariance of the parameters; else it
    is made of the influences.
    """
    influence = corrected(influence, len(units.moved), len(used), row_factor)
    by_unit = summed(influence[used], units.code) @ change
    rest = np.delete(influence, used, axis=0) @ change
    shared = units.moved.T @ by_unit
    model = change.T @ change if as_fitted else by_unit.T @ by_unit + rest.T @ rest
    return np.asarray(rows + shared + shared.T + model)


def corrected(
    influence: FloatArray, n_units: int, n_used: int, row_factor: FloatArray
) -> FloatArray:
    """Influences whose squares are a robust covariance: factors of single rows, or of groups.

    Both sides of a covariance have their factors, so that no variance of a sum is negative.
    """
    if n_units < n_used:
        return np.asarray(np.sqrt(n_units / (n_units - 1)) * influence)
    return np.asarray(row_factor[:, None] * influence)
