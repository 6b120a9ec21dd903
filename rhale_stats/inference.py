"""Standard errors of what `rhale` estimates. Every one names its target and its source."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rhale_stats.arrays import accumulate
from rhale_stats.schema import (
    Estimates,
    check_effect,
    feature_names,
    one_feature,
    stacked,
    variable,
)

CURVE_TARGETS = {
    "mean": "curve centred at its mean over the population, math [26]",
    "start": "zero-start curve, math [25]",
    "integral": "curve centred at its mean over the axis, math [25] with fixed loadings",
}
TARGETS = {
    "effect_se": "mean of the local effects in the bin, math [24]",
    "heterogeneity_se": "standard deviation of the local effects in the bin, math [24]",
    "curve_se": "",  # depends on the centring
    "curve_se_start": CURVE_TARGETS["start"],
    "average_effect_se": "mean of the local effects over the rows",
}
SOURCE = "rows"


def std_error(effect: xr.Dataset) -> xr.Dataset:
    r"""Standard errors by the central limit theorem, bins taken as fixed.

    The source of variance is the sampling of rows: the model is taken as it is. Bins that were
    chosen on the same rows make these standard errors too small; edges chosen elsewhere
    (`GivenBins`) do not.

    Parameters
    ----------
    effect : Dataset
        What `rhale` returned.

    Returns
    -------
    Dataset
        ``effect`` with, over (feature, bin), ``effect_se`` = sigma_k / sqrt(n_k) and
        ``heterogeneity_se``, from the fourth moment (both math [24]); over (feature, edge),
        ``curve_se`` of the curve as it is centred (math [26] for ``centering="mean"``) and
        ``curve_se_start`` of the zero-start curve (math [25]); over (feature),
        ``average_effect_se``. With weights n_k is the effective number of rows, math [6]. A bin
        of one row has no standard error: NaN, and NaN in the zero-start curve beyond it and in
        all of a curve centred otherwise.

    Raises
    ------
    ValueError
        ``effect`` was made with ``std_error_moments=False``, or is no effect.
    TypeError
        ``effect`` is no Dataset.

    Notes
    -----
    ``curve_se`` is not ``curve_std``: the one says how well the average curve is known and
    shrinks with the number of rows, the other how much the rows differ and does not. Nor is
    ``curve_se_start`` for a centred curve: it is 0 at the left end, where that curve is not known
    exactly, and too small or too large elsewhere.

    References
    ----------
    Note of July 2021, section 2, for sigma / sqrt(n); Apley and Zhu (2020) for the centring.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> local = rs.local_effects(lambda X: 2 * X[:, 0] + 4 * X[:, 0] * X[:, 1], X)
    >>> effect = rs.std_error(rs.rhale(local, bins=rs.EqualWidthBins(4)))
    >>> effect["effect_se"].sel(feature="x0").round(2).values
    array([0.22, 0.22, 0.19, 0.19])
    """
    effect = check_effect(effect)
    if "debiased" in effect.attrs:
        raise ValueError(
            "effect must be what rhale returned; this one is from debias, which has its standard "
            "errors already."
        )
    if "fourth_moment" not in effect:
        raise ValueError(
            "effect must hold the moments that standard errors need; this one was made by "
            "rhale(..., std_error_moments=False). Make it again without that argument."
        )
    centering = str(effect.attrs["centering"])
    rows = [_of_feature(one_feature(effect, name), centering) for name in feature_names(effect)]
    facts = {"source": SOURCE, "kind": "central limit theorem"}
    targets = TARGETS | {"curve_se": CURVE_TARGETS[centering]}
    return effect.assign(
        {
            name: variable(name, array, target=targets[name], **facts)
            for name, array in stacked(rows, effect.sizes["bin"]).items()
        }
    )


def _of_feature(row: xr.Dataset, centering: str) -> Estimates:
    """Standard errors of one feature, by name; all NaN where there is no bin."""
    n, share = row["n_effective"].values, row["weight_share"].values
    mean, variance = row["effect"].values, row["heterogeneity"].values ** 2
    if not len(n):
        return dict.fromkeys(TARGETS, np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        effect_se = np.sqrt(variance / n)
    here = accumulate.known_stretch(share)
    z = row["edge_value"].values[here.start : here.stop + 1]
    start = accumulate.zero_start_se(effect_se[here], np.diff(z))
    if centering == "mean":
        centred = accumulate.mean_centred_se(
            row["curve"].values[here.start : here.stop + 1],
            mean[here],
            variance[here],
            z,
            row["x_mean"].values[here],
            row["x_variance"].values[here],
            row["x_covariance"].values[here],
            share[here] / share[here].sum(),
            n[here],
        )
    elif centering == "integral":
        centred = accumulate.integral_centred_se(effect_se[here], np.diff(z))
    else:
        centred = start
    return {
        "effect_se": effect_se,
        "heterogeneity_se": accumulate.heterogeneity_se(variance, row["fourth_moment"].values, n),
        "curve_se": accumulate.at_edges(centred, here, len(n)),
        "curve_se_start": accumulate.at_edges(start, here, len(n)),
        "average_effect_se": accumulate.average_effect_se(mean, variance, share, n),
    }
