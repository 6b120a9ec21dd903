"""Bin error: the part of the spread in a bin that is due to the shape of the effect."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rhale_stats.arrays import bin_error
from rhale_stats.inference.adjustment import adjusted
from rhale_stats.schema.feature_result import bin_residuals, each_feature
from rhale_stats.schema.features import resolution

# With fewer rows there is no p-value: the test would have no power.
TESTED_ROWS = 10
FINE, BIASED, LARGE = "fine", "biased upwards", "bias larger than standard error"
TOO_FEW = "too few rows"


def linear_bin_error(effect: xr.Dataset, *, significance: float) -> xr.DataArray:
    """Bins whose heterogeneity is biased by more than its standard error, by a linear fit.

    Uses only the moments in ``effect``: the part of the bin error that is linear in x, if an F test
    is significant (Holm over all bins). A change up and down within a bin is not detected.

    Parameters
    ----------
    effect : Dataset
        With standard errors.
    significance : float

    Returns
    -------
    DataArray of bool (feature, bin)
    """
    from scipy.stats import t

    n = effect["n_effective"].values
    variance = effect["heterogeneity"].values ** 2
    rows = each_feature(effect)
    x_variance, x_covariance = bin_residuals(rows, ["x_variance", "x_covariance"], n.shape[-1])
    line, statistic = bin_error.linear_part(variance, x_variance, x_covariance, n)
    least = [
        resolution(row.bin_means, float(row["local_effect_error"])) if row.sizes["bin"] else 0.0
        for row in rows
    ]
    with np.errstate(invalid="ignore", divide="ignore"):
        pvalue = np.where(n >= TESTED_ROWS, 2 * t.sf(np.sqrt(statistic), n - 2), np.nan)
        pvalue[np.sqrt(variance) <= np.array(least)[:, None]] = np.nan
        bias = np.sqrt(variance) - np.sqrt(np.maximum(variance - line, 0.0))
    large = (adjusted(pvalue, "holm") < significance) & (bias > effect["heterogeneity_se"].values)
    return effect["effect"].copy(data=large)
