"""Sizes of the effects of any result that has them."""

from __future__ import annotations

import xarray as xr
from numpy.typing import ArrayLike

from rhale_stats.effects.values import asked_for
from rhale_stats.generics.dispatch import method
from rhale_stats.schema.parts import over_outputs
from rhale_stats.schema.validation import validated


@validated
@over_outputs
def effect_sizes(
    effect: xr.Dataset,
    boot: xr.Dataset | None = None,
    *,
    y: ArrayLike | None = None,
    level: float = 0.95,
    percentiles: tuple[float, float] | None = None,
) -> xr.Dataset:
    r"""Sizes of the effects, one number per feature, with the part of the noise taken off.

    Parameters
    ----------
    effect : Dataset
        What `rhale` or `std_error` returned; or `bootstrap_refit`, `cross_effects` or
        `over_models`, of which the sizes of the members are taken, without a correction.
    boot : Dataset, optional
        Replicates of ``effect`` that `bootstrap` returned, with fixed bins, for intervals of all
        sizes. Without them only ``importance`` has an interval.
    y : array_like of shape (n,), optional
        Outcomes, for sizes in per cent of the outcomes.
    level : float, default 0.95
        Of the intervals.
    percentiles : pair of float, default (1, 99)
        Between which percentiles of the rows curves count, of effects in
        bins: a few distant rows decide nothing. Cells with inner rows count whole.
        ``boot`` has replicates of all rows.

    Returns
    -------
    Dataset
        Over (feature): ``importance``, the standard deviation of the curve over the rows; ``aled``,
        its mean absolute value over the rows (see Notes), ``aler_min`` and ``aler_max``, its
        extremes at edges (all of the curve centred at its mean over the rows);
        ``heterogeneity_index`` and ``heterogeneity_output`` (math [10]). With ``y`` ``naled``,
        ``naler_min``, ``naler_max``: the same on a scale on which +50 is above all outcomes, -50 is
        below all outcomes and 0 is their median. For each size also its value without the part of
        sampling noise (``..._corrected``), and, for ``importance`` and with ``boot`` for all, its
        interval (``..._ci``, (feature, ci_bound)). ``importance_p_value``: of the hypothesis that
        the curve is flat, so that all of ``importance`` is noise.

    Raises
    ------
    ValueError
        ``effect`` without the moments of standard errors; ``boot`` with other bins; ``y`` empty or
        not finite; ``level`` outside (0, 1).

    Notes
    -----
    ``aled`` is computed from the moments of the rows in every bin: the rows are assumed to have a
    beta distribution between the edges, with their mean and variance. This is exact for a feature
    of two values, for rows that are evenly distributed in their bin, and in every bin in which the
    curve does not change its sign. (Okoli uses the curve at the middle of the bins, where the curve
    of a two-valued feature is near 0.)

    ``heterogeneity_output`` is the standard deviation of the local effects within bins (root mean
    square over the rows), times the standard deviation of the feature. It is in units of the
    output, but it is not a part of the spread of the output, and can be larger.

    Sampling noise makes every size positive: even without any effect, E aled > 0. The mean square
    of the estimated curve is on average the mean square of the true one plus the mean variance of
    the curve over the rows, which is known from standard errors. ``importance_corrected`` is the
    root of the difference, 0 where it is negative. Before the root is taken, the correction is
    unbiased if bins are fixed: without an effect, 98 to 105 % of the bias of the square are gone in
    simulations with evenly spread rows, 74 to 86 % if the spread of the local effects grows towards
    a thin tail (math [32]). The other sizes have no unbiased correction: their corrected values are
    those of the curve multiplied by ``importance_corrected / importance``. Without an effect this
    removes two thirds of the mean of aled; with a weak effect it can remove a quarter of the noise
    too much.
    ``heterogeneity_index_corrected`` uses unbiased variances; those of ``heterogeneity_output`` are
    unbiased already.

    ``importance_p_value`` compares the mean square with its distribution if all is noise, by Box's
    approximation, as `wald_test` does with other weights: the P of a curve that varies as much as
    this one over the rows although the feature has no effect. Curves that vary little where the
    rows are, but steeply elsewhere, count little here. If `std_error` was given groups, all errors
    allow for them. Errors include the parameters of the model only if `std_error` was given the
    model; `sizes_by_chance` fits it again, and so allows for overfitting. The interval of
    ``importance`` inverts a noncentral F test and starts at 0 where the size is not significant.
    Intervals by ``boot`` are bias-corrected percentiles (Efron 1987, without acceleration); near no
    effect they do not reach 0.

    References
    ----------
    Okoli (2023), *Statistical inference using machine learning and classical techniques based on
    accumulated local effects (ALE)*, arXiv:2310.09877.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> local = rs.local_effects(lambda X: 2 * X[:, 0] + 4 * X[:, 0] * X[:, 1], X)
    >>> sizes = rs.effect_sizes(rs.rhale(local, bins=rs.EqualWidthBins(4)))
    >>> sizes["importance"].round(2).values
    array([1.12, 0.23])
    >>> sizes["importance_corrected"].round(2).values
    array([1.11, 0.21])
    """
    out: xr.Dataset = method("effect_sizes", effect)(asked_for(effect, percentiles), boot, y, level)
    return out
