"""Which numbers of a table are meaningful, the reasons printed for the others, and bin error."""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy import special

from rhale_stats.arrays import bin_error
from rhale_stats.inference.adjustment import adjusted
from rhale_stats.models.parametric import STEP
from rhale_stats.schema.feature_result import FeatureResult, Result, each_feature
from rhale_stats.schema.features import resolution
from rhale_stats.schema.levels import NOMINAL
from rhale_stats.schema.padding import padded

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


def least_effect(row: FeatureResult) -> float:
    """Numerical limit of one feature: smaller effects are 0, smaller differences are none."""
    values = row["effect"].values
    error = float(np.nan_to_num(row["local_effect_error"])) if "local_effect_error" in row else 0.0
    return resolution(values, error) if np.isfinite(values).any() else error


def is_alike(row: FeatureResult) -> NDArray[np.bool_]:
    """Bins of one feature in which local effects differ by numerical error only."""
    return np.asarray(row["heterogeneity"].values <= least_effect(row))


def _has_no_error(row: FeatureResult) -> NDArray[np.bool_]:
    """Bins of one feature whose effects have no sampling error up to numerical error."""
    if "effect_se_model" not in row:
        return is_alike(row)
    # Parameters move effects of which all rows have the same; steps along them magnify rounding.
    return np.asarray(row["effect_se"].values <= least_effect(row) / STEP)


def is_zero(row: FeatureResult) -> NDArray[np.bool_]:
    """Bins of one feature whose local effects are all 0 up to numerical error."""
    half = np.diff(row.bin_edges) / 2
    largest = np.abs(row["effect"].values) + np.abs(row.slopes) * half
    return np.asarray(is_alike(row) & (largest <= least_effect(row)))


def of_bins(row: FeatureResult) -> list[str]:
    """Why the effect of a bin, or its standard error, is 0 in a table; empty where it is not."""
    exact = _has_no_error(row)
    return [
        "" if not is_exact else ZERO if nothing else ALIKE
        for is_exact, nothing in zip(exact, is_zero(row), strict=True)
    ]


def of_effects(row: FeatureResult) -> str:
    """Why the effects of one feature have no sampling error; empty where they have one."""
    estimated = ~np.isnan(row["effect"].values)
    if not estimated.any() or not _has_no_error(row)[estimated].all():
        return ""
    return ZERO if is_zero(row)[estimated].all() else ALIKE


def of_average(row: FeatureResult) -> str:
    """Why the average effect of one feature is blank or has no error; empty otherwise."""
    if is_unordered(row):
        return ORDER
    reason, values = of_effects(row), row["effect"].values
    values = values[~np.isnan(values)]
    # If bins have different effects, the average varies between samples of rows.
    same = reason and np.ptp(values) <= 2 * least_effect(row) and not row.slopes.any()
    return reason if same else ""


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
    shape = [effect.sizes["bin"]]
    of_rows = [
        (row.n_effective, part.x_variance, part.x_covariance, part.mean)
        for row, part in ((row, row.residuals) for row in each_feature(effect))
    ]
    n, x_variance, x_covariance, mean = [padded(each, shape) for each in zip(*of_rows, strict=True)]
    variance, errors = effect["heterogeneity"].values ** 2, effect["local_effect_error"].values
    line, statistic = bin_error.linear_part(variance, x_variance, x_covariance, n)
    least = [
        resolution(means, float(error)) if np.isfinite(means).any() else 0.0
        for means, error in zip(mean, errors, strict=True)
    ]
    with np.errstate(invalid="ignore", divide="ignore"):
        pvalue = np.where(n >= TESTED_ROWS, 2 * special.stdtr(n - 2, -np.sqrt(statistic)), np.nan)
        pvalue[np.sqrt(variance) <= np.array(least)[:, None]] = np.nan
        bias = np.sqrt(variance) - np.sqrt(np.maximum(variance - line, 0.0))
    large = (adjusted(pvalue, "holm") < significance) & (bias > effect["heterogeneity_se"].values)
    return effect["effect"].copy(data=large)
