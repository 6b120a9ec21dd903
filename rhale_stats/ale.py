"""Accumulated local effects by finite differences, and DALE: RHALE's relatives (math [43], [44]).

Local effects are slopes across the cells of a grid, math [2], which see the jumps of trees and
forests; everything else is as in RHALE. With a rule that chooses bins, slopes are taken once on the
finest cells, and the rule joins these. Categorical features have steps from level to level in their
place, math [46].
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import xarray as xr
from numpy.typing import ArrayLike

from rhale_stats import models
from rhale_stats.bins import BinRule, EqualWidthBins, QuantileBins, check_rule
from rhale_stats.categories import (
    DIFFERENCES,
    LABELS,
    Orders,
    joined,
    level_ale,
    level_effects,
    split_features,
)
from rhale_stats.effects import (
    CENTERINGS,
    MISSING,
    STD_ERROR_MOMENTS,
    local_effects,
    rhale,
)
from rhale_stats.schema import categorical_features, feature_names
from rhale_stats.validate import check_choice, checked

# Bins of ALE, and of DALE, by default.
ALE_BINS, DALE_BINS = 40, 20


@checked
def ale(
    model: models.Model,
    X: Any,
    *,
    bins: BinRule | None = None,
    features: str | int | Sequence[str | int] | None = None,
    categorical: str | int | Sequence[str | int] | None = None,
    order: Orders = "similarity",
    target: ArrayLike | None = None,
    centering: str = "mean",
    weights: ArrayLike | None = None,
    weight_kind: str = "precision",
    output: models.OutputLabels = None,
    scale: str = "response",
    missing: str = "raise",
    std_error_moments: bool = True,
    progress: bool = True,
) -> xr.Dataset:
    r"""ALE: the effect of a feature by finite differences, which also see jumps.

    Parameters
    ----------
    model, X, features, categorical, order, target, weights, weight_kind, output, scale, missing,\
    progress
        As in `ale_local_effects`.
    bins : bin rule, optional
        Of features with an axis: 40 quantiles by default. With a rule that joins cells, as
        `OptimalBins` or `AdaptiveBins`, differences are taken on cells of equal numbers of rows, at
        most its ``max_bins``: RHALE's bins for models without a derivative.
    centering : {"mean", "start", "integral"}, default "mean"
        As in `rhale`. Over levels "mean" weighs by their rows, and "integral" all the same.
    std_error_moments
        As in `rhale`.

    Returns
    -------
    Dataset
        As `rhale` returns it. It is what `rhale` makes of the local effects by
        ``method="finite_difference"`` with these ``bins``. To have both, for `bootstrap` and
        whatever else asks for local effects, take the two steps by themselves, as in the example.

        Of a categorical feature, whose ``feature_kind`` is "nominal", "ordinal" or "boolean", an
        edge is a level and a bin the step from one to the next, of width 1: ``effect`` is the mean
        difference of the output over the rows of both levels, ``curve`` the accumulated effect at
        every level. It has, beside that, over (feature, edge): coordinate ``level``, and
        ``level_share``, ``n_level``, ``n_level_effective``; ``effect_cov`` (feature, bin,
        bin_other) and ``curve_cov`` (feature, edge, edge_other), since neighbouring steps share
        rows, and ``average_effect_se``; over (feature) the coordinates ``order``, ``n_levels`` and
        ``n_levels_unused``. ``weight_share`` of steps adds up to more than 1.

    Raises
    ------
    ValueError, KeyError, TypeError, ModelError, ImportError
        As `ale_local_effects` and `rhale`.

    Notes
    -----
    A bin holds its left edge, and the last one both (math [4]); the R package ALEPlot and PyALE
    put a row on an edge to the left.

    The effect of a bin that joins cells is the average of their slopes along the axis, math [5]:
    the curve at its edges does not depend on which cells were joined.

    The curve of a nominal feature depends on the order of its levels, where the output depends on
    the feature together with others. The order is taken as given in standard errors.

    References
    ----------
    Apley and Zhu (2020), *Journal of the Royal Statistical Society B* 82, 1059-1086, Eq. 11 to 13,
    and their supplement for categories.

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

    A categorical feature:

    >>> import pandas as pd
    >>> table = pd.DataFrame({"x": X[:, 0], "size": pd.Categorical(["S", "M", "L", "M"] * 125)})
    >>> def model(table):
    ...     return table["size"].map({"S": 0.0, "M": 1.0, "L": 3.0}).astype(float) * table["x"]
    >>> effect = rs.ale(model, table, order={"size": ["S", "M", "L"]})
    >>> effect["level"].sel(feature="size").values[:3].tolist()
    ['S', 'M', 'L']
    >>> effect["n_obs"].sel(feature="size").values[:2].tolist()
    [375, 375]
    """
    check_choice("centering", centering, CENTERINGS)
    rule: BinRule = QuantileBins(ALE_BINS) if bins is None else bins
    local = _local_effects(
        model,
        X,
        bins=rule,
        features=features,
        categorical=categorical,
        order=order,
        target=target,
        weights=weights,
        weight_kind=weight_kind,
        output=output,
        scale=scale,
        missing=missing,
        progress=progress,
    )
    return ale_from_local(
        local, bins=rule, centering=centering, std_error_moments=std_error_moments
    )


@checked
def ale_local_effects(
    model: models.Model,
    X: Any,
    *,
    bins: BinRule | None = None,
    features: str | int | Sequence[str | int] | None = None,
    categorical: str | int | Sequence[str | int] | None = None,
    order: Orders = "similarity",
    target: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    weight_kind: str = "precision",
    output: models.OutputLabels = None,
    scale: str = "response",
    missing: str = "raise",
    progress: bool = True,
) -> xr.Dataset:
    r"""Local effects of ALE: slopes across cells, and differences between neighbouring levels.

    Parameters
    ----------
    model, X, weights, weight_kind, output, scale, progress
        As in `local_effects`. The model is called with two rows for each of ``X`` and a feature
        with an axis, and with at most three for a feature with levels.
    bins : bin rule, optional
        As in `ale`.
    features : name, number, or sequence of them, optional
        Columns to take, by default all. Columns of categories, text and booleans have levels;
        numbers have an axis. By default discrete numbers (see `local_effects`) and columns of
        nearly as many levels as rows are left out, which a warning says.
    categorical : name, number, or sequence of them, optional
        Columns of numbers whose values are levels, in their order. They are taken beside
        ``features``. A column of one level is "constant", as a number of one value is.
    order : str, sequence of levels, or mapping from features to these, default "similarity"
        Order of the levels of a nominal feature. "as_is": that of the categories, sorted for text.
        "similarity": levels whose rows are alike in the other columns are neighbours. By what an
        encoder of the library category_encoders makes of ``target``, ascending: "target",
        "james_stein", "glmm", "m_estimate", "woe". A sequence holds all levels with rows once. An
        ordered category, numbers and booleans keep their order, unless a mapping names them, or
        a sequence is given.
    target : array_like of shape (n_rows,), optional
        What levels are encoded by: outcomes; by default the model's own output.
    missing : {"raise", "drop", "bin"}, default "raise"
        As in `local_effects`. Of features with levels "bin" makes the rows without a value a level
        named "missing", for which the model receives the missing value of the column itself. It is
        the last level in its own order and in lists that do not name it; other orders place it like
        any level. ``n_missing`` counts these rows.

    Returns
    -------
    Dataset
        As `local_effects` returns it. Of features with levels ``x`` is the number of the level from
        0, ``difference_up`` and ``difference_down`` (obs, feature) are the changes of the output
        from the row's level to the next, and to it from the one before (NaN where there is none),
        and ``local_effect`` is their mean. Coordinates ``level`` (feature, edge), ``n_levels``,
        ``n_levels_unused`` and ``order`` (feature). `ale_from_local` and `bootstrap` take it.

    Raises
    ------
    ValueError
        As `local_effects`; an unknown ``order``, one that does not hold each level with rows once,
        a single level of a feature that was named, a level named "missing" beside missing values
        with ``missing="bin"``, "woe" with a target of more than two values,
        encoders with precision weights or several outputs without ``target``.
    KeyError, TypeError, ModelError
        As `local_effects`.
    ImportError
        An encoder without the library category_encoders.

    Warns
    -----
    UserWarning
        Columns that are left out, and levels without rows.

    Notes
    -----
    *Similarity* (Apley and Zhu). For every other column the distance between two levels is that of
    its distributions in their rows: the largest difference of the distribution functions of numbers
    (at all distinct values, or 1000 quantiles; missing is below all), half the sum of differences
    of shares of categories. Distances are added up over columns and scaled to one dimension
    (Torgerson 1952). The first level that does not lie in the middle lies on the left. Levels at
    one place stay as they are, and so do all levels where no direction tells them apart.

    References
    ----------
    Apley and Zhu (2020), *Journal of the Royal Statistical Society B* 82, 1059-1086. Torgerson
    (1952), *Psychometrika* 17, 401-419.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> import rhale_stats as rs
    >>> x = np.random.default_rng(0).uniform(-1, 1, 300)
    >>> table = pd.DataFrame({"x": x, "weekend": np.arange(300) % 7 > 4})
    >>> local = rs.ale_local_effects(lambda t: t["x"] * t["weekend"], table)
    >>> effect = rs.ale_from_local(local)
    >>> effect["feature_kind"].values.tolist()
    ['continuous', 'boolean']
    >>> boot = rs.bootstrap(local, effect, n_resamples=200, rng=0)
    """
    return _local_effects(
        model,
        X,
        bins=QuantileBins(ALE_BINS) if bins is None else bins,
        features=features,
        categorical=categorical,
        order=order,
        target=target,
        weights=weights,
        weight_kind=weight_kind,
        output=output,
        scale=scale,
        missing=missing,
        progress=progress,
    )


def _local_effects(
    model: models.Model,
    X: Any,
    *,
    bins: BinRule,
    features: str | int | Sequence[str | int] | None,
    categorical: str | int | Sequence[str | int] | None,
    order: Orders,
    target: ArrayLike | None,
    missing: str,
    **more: Any,
) -> xr.Dataset:
    """Local effects of both kinds of features, in the order of the columns."""
    check_rule(bins)
    check_choice("missing", missing, MISSING)
    check_choice("weight_kind", more["weight_kind"], ("precision", "frequency"))
    table = models.as_table(X)
    names, numbers, levels = split_features(table, features, categorical)
    if not levels and not (isinstance(order, str) and order == "similarity"):
        raise ValueError(
            f"order is for categorical features; got {order!r}, and none among "
            f"{', '.join(map(repr, names))}. Name discrete numbers in categorical=."
        )
    parts = []
    if numbers:
        parts.append(
            local_effects(
                model,
                X,
                features=numbers,
                method="finite_difference",
                bins=bins,
                missing=missing,
                **more,
            )
        )
    if levels:
        parts.append(
            level_effects(
                model,
                X,
                positions=levels,
                order=order,
                target=target,
                missing=missing,
                **more,
            )
        )
    return joined(parts, names)


@checked
def ale_from_local(
    local: xr.Dataset,
    *,
    bins: BinRule | None = None,
    centering: str = "mean",
    std_error_moments: bool = True,
) -> xr.Dataset:
    """ALE from local effects that are there already.

    Parameters
    ----------
    local : Dataset
        What `ale_local_effects` returned.
    bins : bin rule, optional
        The one that ``local`` was made with; 40 quantiles by default.
    centering, std_error_moments
        As in `ale`.

    Returns
    -------
    Dataset
        As `ale` returns it.

    Raises
    ------
    ValueError, TypeError
        As `rhale`.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> local = rs.ale_local_effects(lambda X: X[:, 0] * X[:, 1], X, bins=rs.EqualWidthBins(4))
    >>> rs.ale_from_local(local, bins=rs.EqualWidthBins(4))["n_bins"].values
    array([4, 4])
    """
    if "local_effect" not in getattr(local, "data_vars", ()):
        raise TypeError(
            f"local must be the Dataset that ale_local_effects(model, X) returns; got "
            f"{type(local).__name__}."
        )
    check_choice("centering", centering, CENTERINGS)
    rule: BinRule = QuantileBins(ALE_BINS) if bins is None else bins
    levels = categorical_features(local)
    numbers = [name for name in feature_names(local) if name not in levels]
    parts = []
    if numbers:
        own = local.sel(feature=numbers).drop_vars([*DIFFERENCES, *LABELS], errors="ignore")
        parts.append(
            rhale(own, bins=rule, centering=centering, std_error_moments=std_error_moments)
        )
    if levels:
        own = level_ale(local.sel(feature=levels), centering=centering)
        parts.append(own if std_error_moments else own.drop_vars(STD_ERROR_MOMENTS))
    return joined(parts, feature_names(local)).assign_attrs(method="ale")


@checked
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
        weighting="rows",
        std_error_moments=std_error_moments,
    )
    return effect.assign_attrs(method="dale")
