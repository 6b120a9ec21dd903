"""Which numbers of a table are meaningful, the reasons printed for the others, and bin error."""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy import special

from rhale_stats.arrays import bin_error
from rhale_stats.inference.adjustment import adjusted
from rhale_stats.models.parametric import STEP
from rhale_stats.schema.all_features import AllFeatures
from rhale_stats.schema.feature_result import Result, all_features
from rhale_stats.schema.levels import NOMINAL

# Reasons.
ORDER = "the levels have no order of their own, so this number would depend on an arbitrary order"
RIGID = "the model has one effect of this feature at all values, so that there is no difference"
ONE_BIN = "a single bin: no degree of freedom is left"
NO_ROWS = "too few rows: no degree of freedom is left"
ZERO = "0 up to the numerical error of the local effects"
ALIKE = "the local effects differ by their numerical error only, so there is no sampling error"


def is_unordered(dataset: Result) -> NDArray[np.bool_]:
    """Whether averages along a feature depend on an order of levels that is not their own."""
    if "feature_kind" not in dataset:
        return np.zeros(dataset["feature"].shape, dtype=bool)
    return np.asarray(dataset["feature_kind"].values.astype(str) == NOMINAL)


def _has_no_error(features: AllFeatures) -> NDArray[np.bool_]:
    """Bins whose effects have no sampling error up to numerical error, (feature, bin)."""
    if "effect_se_model" not in features.variables:
        return features.is_alike
    # Parameters move effects of which all rows have the same; steps along them magnify rounding.
    se = features.padded(features.at_bins("effect_se"))
    return np.asarray(se <= features.least_effects[:, None] / STEP)


def is_zero(features: AllFeatures) -> NDArray[np.bool_]:
    """Bins whose local effects are all 0 up to numerical error, (feature, bin)."""
    half = np.diff(features.bin_edges) / 2
    largest = np.abs(features.effect) + np.abs(features.padded(features.slopes)) * half
    return np.asarray(features.is_alike & (largest <= features.least_effects[:, None]))


def of_bins(features: AllFeatures) -> NDArray[np.str_]:
    """Why an effect, or its standard error, is 0 in a table, (feature, bin); empty where not."""
    return np.where(_has_no_error(features), np.where(is_zero(features), ZERO, ALIKE), "")


def of_effects(features: AllFeatures) -> NDArray[np.str_]:
    """Why effects of a feature have no sampling error, (feature,); empty where they have one."""
    unknown = np.isnan(features.effect)
    exact = ~unknown.all(axis=-1) & (_has_no_error(features) | unknown).all(axis=-1)
    zero = (is_zero(features) | unknown).all(axis=-1)
    return np.where(exact, np.where(zero, ZERO, ALIKE), "")


def of_averages(features: AllFeatures) -> NDArray[np.str_]:
    """Why an average effect is blank or has no error, (feature,); empty otherwise."""
    effect = features.effect
    apart = np.fmax.reduce(effect, axis=-1) - np.fmin.reduce(effect, axis=-1)
    sloped = (features.padded(features.slopes, 0.0) != 0).any(axis=-1)
    # If bins have different effects, the average varies between samples of rows.
    same = (apart <= 2 * features.least_effects) & ~sloped
    reasons = np.where(same, of_effects(features), "")
    return np.where(is_unordered(features.source), ORDER, reasons)


# --- bias of the heterogeneity --------------------------------------------------------------------


# With fewer rows there is no p-value: the test would have no power.
TESTED_ROWS = 10
FINE, BIASED, LARGE = "fine", "biased upwards", "bias larger than standard error"
TOO_FEW = "too few rows"


def linear_bin_error(effect: xr.Dataset, *, significance: float) -> xr.DataArray:
    """Bins whose heterogeneity is biased by more than its standard error, by a linear fit.

    Uses only the moments in ``effect``, which has standard errors: the part of the bin error that
    is linear in x, if an F test is significant (Holm over all bins). A change up and down within a
    bin is not detected. (feature, bin).
    """
    features = all_features(effect)
    rows, padded = features.residuals, features.padded
    n, x_variance, x_covariance = map(
        padded, (features.n_effective, rows.x_variance, rows.x_covariance)
    )
    variance = effect["heterogeneity"].values ** 2
    line, statistic = bin_error.linear_part(variance, x_variance, x_covariance, n)
    with np.errstate(invalid="ignore", divide="ignore"):
        pvalue = np.where(n >= TESTED_ROWS, 2 * special.stdtr(n - 2, -np.sqrt(statistic)), np.nan)
        pvalue[features.is_alike] = np.nan
        bias = np.sqrt(variance) - np.sqrt(np.maximum(variance - line, 0.0))
    large = (adjusted(pvalue, "holm") < significance) & (bias > effect["heterogeneity_se"].values)
    return effect["effect"].copy(data=large)
