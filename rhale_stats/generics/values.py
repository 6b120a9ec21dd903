"""Values of a curve, a profile or a surface between its grid points, and sizes of effects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import xarray as xr
from numpy.typing import ArrayLike

from rhale_stats.arguments.checks import check_choice
from rhale_stats.effects.values import asked_for
from rhale_stats.generics.dispatch import method
from rhale_stats.schema.features import feature_names, feature_position
from rhale_stats.schema.kinds import EFFECT, ENSEMBLE, kind_of
from rhale_stats.schema.levels import categorical_features
from rhale_stats.schema.parts import over_outputs
from rhale_stats.schema.validation import validated


def values_at(effect: xr.Dataset, x: Any, feature: str | int | None = None) -> xr.Dataset:
    """Curve, and of effects in bins effect and heterogeneity, of all features at a value of each.

    A number, or several of them, along ``grid``; with ``feature`` those of one feature. Features
    with levels are left out unless ``feature`` names one.
    """
    names = feature_names(effect)
    if feature is None:
        named = [] if not isinstance(x, Mapping) else list(x)
        levels = set(categorical_features(effect))
        names = named or [name for name in names if name not in levels]
    else:
        names = [names[feature_position(effect, feature)]]
    of_features = []
    for name in names:
        of_feature = x[name] if isinstance(x, Mapping) else x
        each = {"curve": predict(effect, of_feature, name)}
        if EFFECT.holds(effect) and name not in categorical_features(effect):
            each |= {
                what: predict(effect, of_feature, name, what)
                for what in ("effect", "heterogeneity")
            }
        of_features.append(xr.Dataset(each).expand_dims(feature=[name]))
    return xr.concat(
        of_features, "feature", coords="different", compat="equals", combine_attrs="drop_conflicts"
    )


@validated
@over_outputs
def predict(
    effect: xr.Dataset, x: Any, feature: str | int | None = None, what: str = "curve"
) -> xr.DataArray:
    """Values of the curve of one feature, or of a surface of two, at given points.

    Values outside the range of the rows are NaN. The curve is linear between the edges of the cells
    from which it is accumulated, math [7]. With ``weighting="rows"`` these cells are the bins, and
    the curve is a parabola in bins where the effect has a slope. A surface is bilinear in the cells
    of numeric features; a categorical feature takes the value of the level.

    Parameters
    ----------
    effect : Dataset
        What `rhale`, `pdp` or another profile returned, or `ale2`; or effects of several models,
        whose estimates are taken.
    x : array_like or DataArray
        Values of the feature, in its own units; for a categorical feature its levels. For a
        surface, values of both features: a tuple of two (DataArrays are combined by their dims), an
        array of two columns, or a DataFrame with both features.
    feature : str or int
        Name or number; leave it out for a surface, and for a result of one feature.
    what : {"curve", "effect", "heterogeneity"}, default "curve"
        The curve, or for effects in bins of a numeric feature the effect at ``x`` (of the bin, in a
        linear bin of its line), or the standard deviation of the local effects at ``x``: the
        ``spread`` of its own bins (math [66]), or the ``heterogeneity`` of the bins of the effect
        where the result has no ``spread``.

    Returns
    -------
    DataArray
        The curve at ``x``, in units of the output, centred as ``effect`` is; effect and
        heterogeneity in output units per feature unit. One-dimensional ``x`` gets the dimension
        "grid" with coordinate ``x``; a DataArray keeps its dimensions. For a surface, the
        coordinates have the names of the features, and values in cells without rows are NaN.

    Raises
    ------
    KeyError
        Unknown feature; a DataFrame without one of the two features.
    TypeError
        No ``feature`` given for a result that is not a surface.
    ValueError
        Unknown level; for a surface, ``feature`` given or values of only one feature; ``what`` is
        not "curve" for a profile, a surface or a categorical feature.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(0, 1, (500, 1))
    >>> local = rs.local_effects(lambda X: 3 * X[:, 0], X, features=0)
    >>> effect = rs.rhale(local, centering="start")
    >>> curve = rs.predict(effect, [0.2, 0.7], "x0")
    >>> float((curve[1] - curve[0]).round(6))
    1.5
    >>> rs.predict(effect, [0.2, 0.7], "x0", what="effect").round(6).values
    array([3., 3.])
    >>> X = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    >>> surface = rs.ale2(lambda X: X[:, 0] * X[:, 1], X, (0, 1))
    >>> rs.predict(surface, ([0.8, -0.8], [0.5, 0.5])).round(1).values
    array([ 0.4, -0.4])
    """
    result: Any = effect
    if not isinstance(result, xr.Dataset) and hasattr(result, "predict"):
        raise TypeError(
            "effect must be a result, such as rhale(model, X); got a model, whose predictions are "
            "model.predict(X)."
        )
    predictor = method("predict", effect)
    check_choice("what", what, ("curve", "effect", "heterogeneity"))
    if what != "curve" and not (EFFECT.holds(effect) or ENSEMBLE.holds(effect)):
        kind = kind_of(effect)
        raise ValueError(
            f"what must be 'curve' for {kind.name if kind else 'this result'}; got {what!r}. "
            f"Effects and heterogeneity at a value are of effects in bins: rhale(local)."
        )
    # Other kinds of results have a curve alone.
    others = [] if what == "curve" else [what]
    out: xr.DataArray = predictor(effect, x, feature, *others)
    return out


# --- sizes of effects -----------------------------------------------------------------------------


@validated
@over_outputs
def effect_sizes(
    effect: xr.Dataset,
    boot: xr.Dataset | None = None,
    *,
    y: ArrayLike | None = None,
    weights: ArrayLike | None = None,
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
    weights : array_like of shape (n,), optional
        Weights of the outcomes, of any kind. Required with ``y`` where the effect has weights.
    level : float, default 0.95
        Of the intervals.
    percentiles : pair of float, default (1, 99)
        Between which percentiles of the rows curves count, of effects in bins: a few distant rows
        decide nothing. Cells with inner rows count whole. ``boot`` has replicates of all rows.

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
        not finite, or without the weights that the effect has; ``level`` outside (0, 1).

    Notes
    -----
    ``aled`` is computed from the moments of the rows in every bin, as if the rows had a beta
    distribution between the edges. This is exact for a feature of two values, for rows that are
    evenly distributed in their bin, and where the curve does not change its sign. (Okoli uses the
    curve at the middle of the bins, where the curve of a two-valued feature is near 0.)

    ``heterogeneity_output`` is the standard deviation of the local effects within bins (root mean
    square over the rows), times the standard deviation of the feature. It is in units of the
    output, but it is not a part of the spread of the output, and can be larger.

    Sampling noise makes every size positive: even without any effect, E aled > 0. The mean square
    of the estimated curve exceeds that of the true one on average by the mean variance of the curve
    over the rows, which is known from standard errors. ``importance_corrected`` is the root of the
    difference, 0 where it is negative. Before the root is taken, 98 to 105 % of the bias are gone
    in simulations without an effect and with evenly spread rows, 74 to 86 % if the spread of the
    local effects grows towards a thin tail. The other sizes have no unbiased correction: their
    corrected values are those of the curve multiplied by ``importance_corrected / importance``,
    which without an effect removes two thirds of the mean of aled.
    ``heterogeneity_index_corrected`` uses unbiased variances; those of ``heterogeneity_output`` are
    unbiased already.

    ``importance_p_value`` compares the mean square with its distribution if all is noise, by Box's
    approximation: the P of a curve that varies as much as this one over the rows although the
    feature has no effect. Curves that vary little where the rows are, but steeply elsewhere, count
    little here. If `std_error` was given groups or the model, all errors allow for them.
    `sizes_by_chance` fits the model again, and so allows for overfitting. The interval of
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
    effect = asked_for(effect, percentiles)
    out: xr.Dataset = method("effect_sizes", effect)(effect, boot, y, weights, level)
    return out
