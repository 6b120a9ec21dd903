"""The error of an estimate from several models, and its parts by models and by rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import xarray as xr

from rhale_stats.arrays import intervals, members
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.inference.draws import draws_of

# The attribute ``variance``: how an error is made from the members.
BOOTSTRAP, SUBSAMPLING, SPREAD = "bootstrap", "subsampling", "spread"
JACKKNIFE, CORRECTED = "jackknife", "nadeau-bengio"
CROSS_FITTED = (JACKKNIFE, CORRECTED)


class Error(NamedTuple):
    """Variance of an estimate, its parts, and degrees of freedom for Student's t, (feature, ...).

    ``rows`` is NaN where the members' errors by rows are not known. Degrees are infinite where the
    error is taken as known.
    """

    variance: FloatArray
    rows: FloatArray
    model: FloatArray
    degrees: FloatArray


def variance_kind(ensemble: xr.Dataset) -> str:
    """How errors are made."""
    return str(ensemble.attrs["variance"])


def error_of(ensemble: xr.Dataset, name: str) -> Error:
    """The error of the estimate of one variable, such as ``curve``."""
    kind, values = variance_kind(ensemble), draws_of(ensemble, name)
    if kind == JACKKNIFE:
        return _jackknife(ensemble, name)
    within = _rows(ensemble, name)
    if kind == CORRECTED:
        return _corrected(ensemble, values, within)
    between = members.variance(values)
    never = np.full(between.shape, np.inf)
    if kind == SPREAD:
        # Every member is of all rows: their sampling comes on top of what the models differ by.
        return Error(between + np.nan_to_num(within), within, between, never)
    factor = float(ensemble.attrs.get("variance_factor", 1.0))
    total, rows = factor * between, float(ensemble.attrs.get("rows_factor", 1.0)) * within
    return Error(total, rows, np.maximum(total - rows, 0.0), never)


def deviations(ensemble: xr.Dataset, name: str) -> FloatArray:
    """Deviations (n, feature, ...) whose sums of products estimate the covariance of the error.

    For the correlation between points of a curve; variances are those of `error_of`. Unknown values
    count as 0.
    """
    kind, values = variance_kind(ensemble), draws_of(ensemble, name)
    if kind not in CROSS_FITTED:
        factor = float(ensemble.attrs.get("variance_factor", 1.0))
        n = np.maximum(members.n_known(values) - 1, 1)
        return np.asarray(np.nan_to_num((values - members.mean(values)) * np.sqrt(factor / n)))
    by_repeat = _by_repeat(ensemble, name)
    with np.errstate(invalid="ignore"):
        away = values - np.repeat(_mean_of_folds(by_repeat), by_repeat.shape[1], axis=0)
    n_repeats, n_folds = by_repeat.shape[:2]
    away = np.nan_to_num(away) / np.sqrt(n_folds * n_repeats * max(n_folds - 1, 1))
    other = f"{name}_other_model"
    if other not in ensemble:
        return np.asarray(away)
    models = np.nan_to_num(values - draws_of(ensemble, other))
    factor = members.jackknife_factor(n_folds) / (2 * len(values))
    return np.concatenate([away, np.sqrt(factor) * models])


def _rows(ensemble: xr.Dataset, name: str) -> FloatArray:
    """Mean over the members of the squared standard error by rows; NaN where that is not known."""
    error_name = f"{name}_se_rows"
    if error_name not in ensemble:
        return np.full(draws_of(ensemble, name).shape[1:], np.nan)
    return members.mean(draws_of(ensemble, error_name) ** 2)


def _by_repeat(ensemble: xr.Dataset, name: str) -> FloatArray:
    """One variable over (repeat, fold, feature, ...)."""
    values = draws_of(ensemble, name)
    return values.reshape(ensemble.sizes["chain"], ensemble.sizes["draw"], *values.shape[1:])


def _mean_of_folds(values: FloatArray) -> FloatArray:
    """Mean of the known folds of every repeat, (repeat, ...)."""
    finite = np.isfinite(values)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(finite, values, 0.0).sum(axis=1) / finite.sum(axis=1))


def _jackknife(ensemble: xr.Dataset, name: str) -> Error:
    """math [83]: models by differences on the same rows; rows by their own errors, or what is left.

    Errors by rows are wrong where groups of rows were held out together.
    """
    values = draws_of(ensemble, name)
    n_folds, n_repeats = ensemble.attrs["n_folds"], ensemble.attrs["n_repeats"]
    of_models = members.variance_of_models(values, draws_of(ensemble, f"{name}_other_model"))
    left = members.variance_within(_by_repeat(ensemble, name)) - of_models
    by_groups = "groups" in str(ensemble.attrs["source"])
    within = np.full(of_models.shape, np.nan) if by_groups else _rows(ensemble, name)
    within = np.where(np.isfinite(within), within, np.maximum(left, 0.0))
    model, rows = members.jackknife_factor(n_folds) * of_models, within / n_folds
    most = float(ensemble.attrs["n_units"]) - 1
    degrees = intervals.satterthwaite(
        (model, min(members.paired_degrees(n_folds, n_repeats), most)),
        (rows, n_folds - 1.0 if by_groups else most),
    )
    return Error(model + rows, rows, model, degrees)


def _corrected(ensemble: xr.Dataset, values: FloatArray, within: FloatArray) -> Error:
    """math [84]: the variance of the members, corrected for training rows in common."""
    n = members.n_known(values)
    share = float(ensemble.attrs["test_over_train"])
    total = members.corrected_factor(n.astype(np.float64), share) * members.variance(values)
    rows = within / ensemble.attrs["n_folds"]
    return Error(total, rows, np.maximum(total - rows, 0.0), np.maximum(n - 1.0, 0.0))
