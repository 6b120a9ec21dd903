"""Variances of estimates from several models, math [81] to [84]; members come first, (member, ...).

Values may be unknown in some members: where fits failed, and outside the range of a member's rows.
Imputations are members, too, each with a covariance of its own (math [118]).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rhale_stats.arrays.moments import FloatArray

# Numbers over members are unknown where fewer than this share of the members are known.
MIN_KNOWN = 0.5


def n_known(values: FloatArray) -> NDArray[np.int64]:
    """Number of members with a value, where these are enough; else 0."""
    n = np.isfinite(values).sum(axis=0)
    return np.where(n >= max(1.0, MIN_KNOWN * len(values)), n, 0)


def mean(values: FloatArray, weight: FloatArray | None = None) -> FloatArray:
    """Mean over the members that are known, weighted by ``weight`` (member,)."""
    finite = np.isfinite(values)
    w = np.ones(len(values)) if weight is None else weight
    w = np.where(finite, w.reshape(-1, *[1] * (values.ndim - 1)), 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        average = np.sum(w * np.where(finite, values, 0.0), axis=0) / w.sum(axis=0)
    return np.where(n_known(values) > 0, average, np.nan)


def variance(values: FloatArray) -> FloatArray:
    """S², with divisor J - 1 for J known members."""
    n, away = n_known(values), np.nan_to_num(values - mean(values))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(n > 1, np.sum(away**2, axis=0) / (n - 1), np.nan)


def variance_within(values: FloatArray) -> FloatArray:
    """Variance between members of one repeat, (repeat, member, ...), averaged over repeats."""
    finite = np.isfinite(values)
    n = finite.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        middle = np.where(finite, values, 0.0).sum(axis=1) / n
        away = np.where(finite, values - middle[:, None], 0.0)
        pooled = np.sum(away**2, axis=(0, 1)) / np.maximum(n - 1, 0).sum(axis=0)
    return np.where(n_known(values.reshape(-1, *values.shape[2:])) > 0, pooled, np.nan)


def variance_of_models(effect: FloatArray, other: FloatArray) -> FloatArray:
    """math [83]: half the mean squared difference of two models on the same rows."""
    return mean((effect - other) ** 2) / 2


def subsampling_factor(n_drawn: float, n_units: float) -> float:
    """math [81]: n units' variance over that of estimates from m < n of them, m / (n - m).

    A mean of m of n units has the variance (1/m - 1/n) s^2 over subsamples; that of all is s^2 / n.
    """
    return n_drawn / (n_units - n_drawn)


def jackknife_factor(n_folds: float) -> float:
    """math [83]: (k - 1)^2 / k, that of a jackknife that leaves out one of k groups."""
    return (n_folds - 1) ** 2 / n_folds


def corrected_factor(n_members: FloatArray, test_over_train: float) -> FloatArray:
    """math [84]: 1 / J + n_test / n_train (Nadeau and Bengio 2003)."""
    with np.errstate(divide="ignore"):
        return 1 / n_members + test_over_train


def paired_degrees(n_folds: float, n_repeats: float) -> float:
    """Degrees of freedom of `variance_of_models`, of folds in a ring and independent repeats.

    Differences of neighbours among k independent numbers have the variance of a variance with 2k/3
    degrees (von Neumann); two folds have one difference.
    """
    return float(n_repeats * (1.0 if n_folds == 2 else 2 * n_folds / 3))


class Pooled(NamedTuple):
    """Means over imputations, their covariance and degrees of freedom."""

    value: FloatArray
    covariance: FloatArray
    degrees: FloatArray


def rubin(values: FloatArray, covariances: FloatArray, degrees: FloatArray) -> Pooled:
    """math [118]: ``values`` (imputation, ..., estimate) with covariances in the last two axes.

    ``degrees`` (imputation, ..., estimate) are those of completed data.
    """
    m = len(values)
    value = values.mean(axis=0)
    away = values - value
    between = (1 + 1 / m) * np.einsum("m...i,m...j->...ij", away, away) / (m - 1)
    covariance = covariances.mean(axis=0) + between
    added, total = (np.diagonal(part, axis1=-2, axis2=-1) for part in (between, covariance))
    return Pooled(value, covariance, degrees_of(added, total, m, degrees.mean(axis=0)))


def degrees_of(added: FloatArray, total: FloatArray, m: int, complete: FloatArray) -> FloatArray:
    """math [118]: of a variance to which ``m`` imputations added; ``complete`` are those without.

    Barnard and Rubin (1999); those of completed data alone where nothing was imputed.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(total > 0, added / total, 0.0)
        observed = (1 + 2 / (complete + 1)) ** -1 * complete * (1 - share)
        return np.asarray(1 / (share**2 / (m - 1) + 1 / observed))
