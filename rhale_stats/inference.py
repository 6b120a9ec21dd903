"""Standard errors of what `rhale` estimates. Every one names its target and its source."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rhale_stats.arrays import accumulate
from rhale_stats.schema import (
    LINE_MOMENTS,
    Estimates,
    bin_means,
    check_effect,
    feature_names,
    one_feature,
    slopes,
    stacked,
    variable,
)

CURVE_TARGETS = {
    "mean": "curve centred at its mean over the population, math [26]",
    "start": "zero-start curve, math [25]",
    "integral": "curve centred at its mean over the axis, math [25] with fixed loadings",
}
TARGETS = {
    "effect_se": "effect in the bin, math [24]; where it is linear, in the middle of the bin",
    "slope_se": "slope of the effect in the bin, White (1980); 0 where it is constant",
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
        ``heterogeneity_se``, from the fourth moment (both math [24]), and from linear bins
        ``slope_se``; over (feature, edge),
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
    In a linear bin the effect is that of the line in the middle of the bin, and its standard error
    and that of the slope are heteroscedasticity-consistent (White 1980): the spread may change
    along the bin. ``heterogeneity_se`` takes the line as known.

    ``curve_se`` is not ``curve_std``: the one says how well the average curve is known and
    shrinks with the number of rows, the other how much the rows differ and does not. Nor is
    ``curve_se_start`` for a centred curve: it is 0 at the left end, where that curve is not known
    exactly, and too small or too large elsewhere.

    References
    ----------
    Note of July 2021, section 2, for sigma / sqrt(n); Apley and Zhu (2020) for the centring.
    White (1980), *Econometrica* 48, 817-838.

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
    variance = row["heterogeneity"].values ** 2
    n_bins = len(n)
    if not n_bins:
        names = [name for name in TARGETS if name != "slope_se" or "slope" in row]
        return dict.fromkeys(names, np.nan)
    pieces = accumulate.Pieces(
        row["edge_value"].values,
        bin_means(row),
        slopes(row),
        row["x_mean"].values,
        row["x_variance"].values,
        share,
    )
    line = np.zeros((n_bins, len(LINE_MOMENTS)))
    if "line_moments" in row:
        line = row["line_moments"].values
    noise = accumulate.line_noise(variance, pieces, line, n)
    effect_se = np.sqrt(noise.of(np.ones(n_bins), np.nan_to_num(pieces.away())))
    here = accumulate.known_stretch(share)
    on_curve = pieces.stretch(here)
    start = accumulate.zero_start_se(effect_se[here], np.diff(on_curve.edges))
    noise_here = accumulate.Noise(*(part[here] for part in noise))
    if centering == "mean":
        centred = accumulate.mean_centred_se(
            row["curve"].values[here.start : here.stop + 1],
            on_curve,
            noise_here,
            row["x_covariance"].values[here],
            line[here],
            n[here],
        )
    elif centering == "integral":
        centred = accumulate.integral_centred_se(on_curve, noise_here)
    else:
        centred = start
    squares = accumulate.mean_square(variance, pieces, n)
    return {
        "effect_se": effect_se,
        **({"slope_se": np.sqrt(noise.slope)} if "slope" in row else {}),
        "heterogeneity_se": accumulate.heterogeneity_se(variance, row["fourth_moment"].values, n),
        "curve_se": accumulate.at_edges(centred, here, n_bins),
        "curve_se_start": accumulate.at_edges(start, here, n_bins),
        "average_effect_se": accumulate.average_effect_se(pieces.mean, squares, share, n),
    }
