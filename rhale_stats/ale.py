"""Accumulated local effects by finite differences, and DALE: RHALE's relatives (math [43], [44]).

Local effects are slopes across the cells of a grid, math [2], which see the jumps of trees and
forests; everything else is as in RHALE. With a rule that chooses bins, slopes are taken once on the
finest cells, and the rule joins these.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import xarray as xr
from numpy.typing import ArrayLike

from rhale_stats import models
from rhale_stats.bins import BinRule, EqualWidthBins, QuantileBins
from rhale_stats.effects import local_effects, rhale

# Bins of ALE, and of DALE, by default.
ALE_BINS, DALE_BINS = 40, 20


def ale(
    model: models.Model,
    X: Any,
    *,
    bins: BinRule | None = None,
    features: str | int | Sequence[str | int] | None = None,
    centering: str = "mean",
    weights: ArrayLike | None = None,
    weight_kind: str = "precision",
    output: models.OutputLabels = None,
    scale: str = "response",
    missing: str = "raise",
    std_error_moments: bool = True,
    progress: bool = True,
) -> xr.Dataset:
    """ALE: the effect of a feature by finite differences, which also see jumps.

    Parameters
    ----------
    model, X, features, weights, weight_kind, output, scale, missing, progress
        As in `local_effects`. The model is called once a feature, with two rows for each.
    bins : bin rule, optional
        40 quantiles by default. With `OptimalBins` or `AdaptiveBins` differences are taken on
        their finest cells, 100 by default, and the rule joins cells: RHALE's bins for models
        without a derivative.
    centering, std_error_moments
        As in `rhale`.

    Returns
    -------
    Dataset
        As `rhale` returns it. It is what `rhale` makes of the local effects by
        ``method="finite_difference"`` with these ``bins``. To have both, for `bootstrap` and
        whatever else asks for local effects, take the two steps by themselves, as in the example.

    Raises
    ------
    ValueError, KeyError, TypeError, ModelError
        As `local_effects` and `rhale`.

    Notes
    -----
    A bin holds its left edge, and the last one both (math [4]); the R package ALEPlot and PyALE
    put a row on an edge to the left.

    A bin that joins cells weighs their slopes by their rows, math [5]. Where rows thin out inside
    it, the curve is that of a typical row, not of a typical place; narrow bins make no difference.

    References
    ----------
    Apley and Zhu (2020), *Journal of the Royal Statistical Society B* 82, 1059-1086, Eq. 11 to 13.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> def jump(X):
    ...     return X[:, 1] * (X[:, 0] > 0.4)
    >>> effect = rs.ale(jump, X, bins=rs.EqualWidthBins(4))
    >>> effect["heterogeneity"].sel(feature="x0").round(2).values
    array([0.  , 0.  , 1.12, 0.  ])

    The same in two steps, and a bootstrap:

    >>> local = rs.local_effects(jump, X, method="finite_difference", bins=rs.EqualWidthBins(4))
    >>> same = rs.rhale(local, bins=rs.EqualWidthBins(4))
    >>> bool((same["curve"] == effect["curve"]).all())
    True
    >>> boot = rs.bootstrap(local, same, n_resamples=200, rng=0)
    """
    rule: BinRule = QuantileBins(ALE_BINS) if bins is None else bins
    local = local_effects(
        model,
        X,
        features=features,
        weights=weights,
        weight_kind=weight_kind,
        method="finite_difference",
        bins=rule,
        output=output,
        scale=scale,
        missing=missing,
        progress=progress,
    )
    effect = rhale(local, bins=rule, centering=centering, std_error_moments=std_error_moments)
    return effect.assign_attrs(method="ale")


def dale(
    local: xr.Dataset,
    n_bins: int = DALE_BINS,
    *,
    centering: str = "mean",
    std_error_moments: bool = True,
) -> xr.Dataset:
    """DALE: the effect from derivatives, in bins of one width.

    Parameters
    ----------
    local : Dataset
        What `local_effects` returned.
    n_bins : int, default 20
        Bins of each feature.
    centering, std_error_moments
        As in `rhale`.

    Returns
    -------
    Dataset
        As `rhale` returns it, with bins of one width.

    Raises
    ------
    ValueError, TypeError
        As `rhale`.

    References
    ----------
    Gkolemis, Dalamagas and Diou (2022), *DALE: Differential Accumulated Local Effects for
    efficient and accurate global explanations*.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> local = rs.local_effects(lambda X: X[:, 0] ** 2, X)
    >>> rs.dale(local, 4)["effect"].sel(feature="x0").round(1).values
    array([-1.5, -0.5,  0.5,  1.5])
    """
    effect = rhale(
        local,
        bins=EqualWidthBins(n_bins),
        centering=centering,
        std_error_moments=std_error_moments,
    )
    return effect.assign_attrs(method="dale")
