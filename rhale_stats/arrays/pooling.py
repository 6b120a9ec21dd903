"""Estimates of several imputations as one: Rubin's rules (math [118])."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rhale_stats.arrays.moments import FloatArray


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
