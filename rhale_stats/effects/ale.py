"""Accumulated local effects by finite differences, also of levels, and DALE (math [43], [44])."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from rhale_stats.arguments.checks import centering_text, is_in_chunks, is_path
from rhale_stats.arrays import categories as kernel
from rhale_stats.arrays import moments as sums
from rhale_stats.arrays.cell_moments import POWERS, CellMoments
from rhale_stats.arrays.moments import FloatArray, Moments
from rhale_stats.bins.rule import BinRule
from rhale_stats.bins.rules import EqualWidthBins
from rhale_stats.effects.labelled import FACTS, Method, effects_of, padded_estimates
from rhale_stats.effects.rhale import CENTERINGS, rhale
from rhale_stats.local.ale import DALE_BINS, AleRequest
from rhale_stats.local.levels import DIFFERENCES, LABELS, LEVEL_FACTS, Orders
from rhale_stats.local.rows import ALE_BINS, columns, own_columns
from rhale_stats.models.groups import by_groups
from rhale_stats.models.options import ModelOptions
from rhale_stats.models.outputs import Model
from rhale_stats.schema.checks import check_local
from rhale_stats.schema.dimensions import OUTPUT
from rhale_stats.schema.features import feature_names
from rhale_stats.schema.identity import as_attribute
from rhale_stats.schema.levels import categorical_features
from rhale_stats.schema.padding import Estimates, by_feature, concat_features
from rhale_stats.schema.parts import over_outputs
from rhale_stats.schema.validation import validated


@over_outputs
def level_ale(local: xr.Dataset, *, centering: str = "mean") -> xr.Dataset:
    """Effects of the steps between levels, their curve, and the covariance of both.

    As `rhale` returns it: ``bin`` is a step, ``edge`` a level. Also ``level_share``,
    ``n_level`` and ``n_level_effective`` (feature, edge), ``curve_cov`` (feature, edge,
    edge_other), ``average_effect_se`` (feature).
    """
    local = check_local(local)
    if centering not in CENTERINGS:
        raise ValueError(
            f"centering must be {' or '.join(map(repr, CENTERINGS))} for features with levels, "
            f"such as {feature_names(local)[0]!r}; got {centering}. Name the others in features=."
        )
    rows = [_estimates(local.isel(feature=[k]), centering) for k in range(local.sizes["feature"])]
    names = next((tuple(row) for row in rows if row), ESTIMATES)
    weighted = local["weight"].values > 0 if "weight" in local else np.ones(local.sizes["obs"])
    effect = effects_of(
        local,
        *padded_estimates(rows, names),
        FACTS | LEVEL_FACTS,
        Method(
            "ale", ("levels", ""), centering, int(np.sum(weighted > 0)), ("n_missing", "n_beyond")
        ),
    )
    stepped = [name for name, row in zip(feature_names(local), rows, strict=True) if row]
    columns_of = own_columns(local, stepped).items()
    effect.attrs |= as_attribute({name: its.fingerprint(k) for name, (its, k) in columns_of})
    max_levels, level = effect.sizes["edge"], local["level"].values
    # Some features of many may have fewer levels than the others.
    level = np.pad(level[:, :max_levels], ((0, 0), (0, max(max_levels - level.shape[1], 0))))
    return effect.assign_coords(
        {
            "level": (("feature", "edge"), level, local["level"].attrs),
            **{name: local[name].variable for name in LABELS if name != "level"},
        }
    )


ESTIMATES = (
    *("effect", "heterogeneity", "n_obs", "bin_left", "bin_right", "edge_value"),
    *("curve", "average_effect", "heterogeneity_output", "moments"),
    *("average_effect_se", "curve_cov"),
    *("level_share", "n_level", "n_level_effective"),
)


def _check_occupied(local: xr.Dataset, total: FloatArray) -> None:
    """Raise ``ValueError`` where two neighbouring levels have no rows: their step is not known."""
    empty = np.flatnonzero((total[:-1] == 0) & (total[1:] == 0))
    if len(empty):
        name = feature_names(local)[0]
        raise ValueError(
            f"local must have rows at one of any two neighbouring levels; feature {name!r} has "
            f"none at levels {empty[0]} and {empty[0] + 1}. Select other rows, or make local "
            f"effects of these rows alone: ale_local_effects(model, X.iloc[rows], ...)."
        )


def _estimates(local: xr.Dataset, centering: str) -> Estimates:
    """Everything of one feature, by name; nothing of a single level."""
    n_levels = int(local["n_levels"].item())
    if n_levels < 2:
        return {}
    rows = columns(local.isel(obs=local["x"].values[:, 0] >= 0))
    assert rows.sides is not None
    code, (up, down), weight = rows.x[0].astype(np.int64), rows.sides[0], rows.weight
    n_steps = n_levels - 1
    _check_occupied(local, np.bincount(code, weight, n_levels).astype(np.float64))
    steps = kernel.steps(code, up, down, n_levels)
    bins, third, fourth = kernel.step_moments(
        steps, code, weight, n_steps, frequency=rows.frequency
    )
    w = np.ones(rows.n_rows) if weight is None else weight
    total = np.bincount(code, w, n_levels)
    squares = total if rows.frequency else np.bincount(code, w**2, n_levels)
    share = total / w.sum()
    n_level = total if rows.frequency else np.bincount(code, minlength=n_levels)
    heterogeneity = kernel.spread_of(bins)
    curve, _ = kernel.curve(bins.mean, share, centering)
    influences = kernel.row_sums(steps, code, curve, weight, np.arange(rows.n_rows), rows.n_rows)
    size = w if rows.frequency else np.ones(rows.n_rows)
    levels = np.arange(n_levels, dtype=np.float64)
    loadings = kernel.loadings(share, levels, centering)
    n, everything = (
        sums.n_effective(bins),
        kernel.n_effective_of(weight, rows.n_rows, frequency=rows.frequency),
    )
    covariance = kernel.level_covariance(
        influences, loadings, size, n, population=centering == "mean"
    )
    return {
        "effect": bins.mean,
        "heterogeneity": heterogeneity,
        "n_obs": bins.n_obs,
        "bin_left": levels[:-1],
        "bin_right": levels[1:],
        "edge_value": levels,
        "curve": curve,
        "average_effect": float(np.average(bins.mean, weights=bins.weight)),
        "heterogeneity_output": float(
            kernel.heterogeneity_output(heterogeneity**2, bins.weight, share, everything)
        ),
        "moments": _moments(bins, third, fourth),
        "average_effect_se": kernel.average_se(influences, size, everything),
        "curve_cov": covariance,
        "level_share": share,
        "n_level": n_level,
        # A level without rows, as after a selection, gets no estimate.
        "n_level_effective": total**2 / np.where(squares > 0, squares, 1.0),
    }


def _moments(steps: Moments, third: FloatArray, fourth: FloatArray) -> FloatArray:
    """Moments of the steps, (step, moment); between levels there are no values to have a spread."""
    heads = steps.n_obs, steps.weight, steps.weight_sq, steps.x_mean, steps.mean
    products = {(0, 2): steps.m2, (0, 3): steps.weight * third, (0, 4): steps.weight * fourth}
    unknown = {power: np.full(len(third), np.nan) for power in POWERS if power[0]}
    return CellMoments.of_products(heads, products | unknown).table.T


# --- accumulated local effects by finite differences ----------------------------------------------


# Values and local effects of a feature are held until its bins are estimated, of more than one
# feature up to so many bytes.
LOCAL_BYTES = 1 << 24


@by_groups()
@validated
def ale(
    model: Model,
    X: Any,
    features: str | int | Sequence[str | int] | None = None,
    *,
    bins: BinRule | None = None,
    categorical: str | int | Sequence[str | int] | None = None,
    order: Orders = "similarity",
    target: ArrayLike | None = None,
    percentiles: tuple[float, float] | None = None,
    centering: str | float = "mean",
    by: Any = None,
    options: ModelOptions = ModelOptions(),
    progress: bool = True,
    **fields: Any,
) -> xr.Dataset:
    r"""ALE curve and bin effects of each feature, by finite differences of the model's output.

    Parameters
    ----------
    model, X, features, categorical, order, target, percentiles, options, progress
        As in `ale_local_effects`. Local effects that it made may stand in the place of the model,
        alone or with ``features``: the result is then that of `ale_from_local`. With ``groups`` of
        dependent rows the result has the errors of `std_error`.
    bins : bin rule, optional
        Of features with an axis: 40 quantiles by default. With a rule that joins cells, as
        `OptimalBins` or `AdaptiveBins`, differences are taken on cells of equal numbers of rows, at
        most its ``max_bins``: RHALE's bins for models without a derivative. A number n is
        `QuantileBins` (n); names are as in `rhale`, with 20 bins.
    centering : {"mean", "start", "integral"} or number, default "mean"
        As in `rhale`. Over levels "mean" weighs by their rows, and "integral" all the same.
    by
        As in `rhale`.

    Returns
    -------
    Dataset
        As `rhale` returns it. The result is that of `rhale` for local effects with
        ``method="finite_difference"`` and these ``bins``. Finite differences include jumps of the
        output. For functions that also need the local effects, such as `bootstrap`, take the two
        steps separately, as in the example.

        For a categorical feature (``feature_kind`` "nominal", "ordinal" or "boolean") an edge is a
        level and a bin is the step from one level to the next, of width 1: ``effect`` is the mean
        difference of the output over the rows of both levels, ``curve`` the accumulated effect at
        every level. It also has, over (feature, edge): the coordinate ``level``, and
        ``level_share``, ``n_level``, ``n_level_effective``; ``effect_cov`` (feature, bin,
        bin_other) and ``curve_cov`` (feature, edge, edge_other), since neighbouring steps share
        rows, and ``average_effect_se``; over (feature) the coordinates ``order``, ``n_levels`` and
        ``n_levels_unused``. The ``weight_share`` of the steps adds up to more than 1, because
        neighbouring steps share rows.

    Raises
    ------
    ValueError, KeyError, TypeError, ModelError, ImportError
        As `ale_local_effects` and `rhale`.

    Notes
    -----
    A row on an edge belongs to the bin on its right, except at the last edge (math [4]); where
    values are tied, half to either (math [2]). The R package ALEPlot and PyALE assign it to the bin
    on its left.

    The effect of a bin that joins cells is the average of their slopes along the axis, math [5]:
    the curve at the edges does not depend on which cells were joined.

    The curve of a nominal feature depends on the order of its levels if the feature interacts with
    others. Standard errors treat the order as given.

    Tables in chunks and paths of Parquet files are taken as by `local_effects`, numbers only
    (docs/larger-than-memory.md).

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
    del by  # `by_groups` has divided the rows
    centering = centering_text(centering, CENTERINGS)
    rule: BinRule = ALE_BINS if bins is None else bins
    request = AleRequest(
        rule, features, categorical, order, target, percentiles, options, progress=progress
    )

    def estimated(local: xr.Dataset) -> xr.Dataset:
        return ale_from_local(local, bins=rule, centering=centering)

    if is_path(X) or is_in_chunks(X):
        return estimated(request.in_chunks(model, X))
    names, *both = request.parts(model, X, most_bytes=LOCAL_BYTES)
    # Without a name that would keep a part while the next one is made.
    results = [list(map(estimated, parts)) for parts in both]
    return concat_features([_of_all(parts) for parts in results if parts], names)


def _of_all(parts: list[xr.Dataset]) -> xr.Dataset:
    """Estimates of groups of features, of one kind and of the same rows, as one."""
    if len(parts) == 1:
        return parts[0]
    precision = max(part.attrs["answer_precision"] for part in parts)
    parts = [part.assign_attrs(answer_precision=precision) for part in parts]
    names = [name for part in parts for name in feature_names(part)]
    out = by_feature(parts, names)
    return out.transpose(OUTPUT, ...) if OUTPUT in out.dims else out


@validated
def ale_from_local(
    local: xr.Dataset | Model,
    X: Any = None,
    features: str | int | Sequence[str | int] | None = None,
    *,
    bins: BinRule | None = None,
    centering: str | float = "mean",
) -> xr.Dataset:
    """ALE from local effects that were computed before.

    Parameters
    ----------
    local, X, features
        As in `rhale`, with the local effects of `ale_local_effects`.
    bins : bin rule, optional
        The rule with which ``local`` was made; 40 quantiles by default.
    centering
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
    del X, features  # `validated` has made local effects of them
    if "local_effect" not in getattr(local, "data_vars", ()):
        raise TypeError(
            f"local must be the Dataset that ale_local_effects(model, X) returns; got "
            f"{type(local).__name__}."
        )
    centering = centering_text(centering, CENTERINGS)
    rule: BinRule = ALE_BINS if bins is None else bins
    out = along_axes_and_levels(local, partial(rhale, bins=rule, centering=centering), centering)
    return out.assign_attrs(method="ale")


def along_axes_and_levels(
    local: xr.Dataset, along_axis: Callable[[xr.Dataset], xr.Dataset], centering: str
) -> xr.Dataset:
    """Effects of features with an axis by a function, and of those with levels by their steps."""
    levels = categorical_features(local)
    numbers = [name for name in feature_names(local) if name not in levels]
    parts = []
    if numbers:
        numeric = local.sel(feature=numbers).drop_vars([*DIFFERENCES, *LABELS], errors="ignore")
        parts.append(along_axis(numeric))
    if levels:
        parts.append(level_ale(local.sel(feature=levels), centering=centering))
    return concat_features(parts, feature_names(local))


@validated
def dale(
    local: xr.Dataset | Model,
    X: Any = None,
    features: str | int | Sequence[str | int] | None = None,
    *,
    n_bins: int = DALE_BINS,
    centering: str | float = "mean",
) -> xr.Dataset:
    """DALE: effects from derivatives of the model, in bins of equal width.

    Parameters
    ----------
    local, X, features
        As in `rhale`.
    n_bins : int, default 20
        Number of bins of each feature.
    centering
        As in `rhale`.

    Returns
    -------
    Dataset
        As `rhale` returns it, with bins of equal width.

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
    >>> rs.dale(local, n_bins=4)["effect"].sel(feature="x0").round(1).values
    array([-1.5, -0.5,  0.5,  1.5])
    """
    del X, features  # `validated` has made local effects of them
    effect = rhale(local, bins=EqualWidthBins(n_bins), centering=centering, weighting="rows")
    return effect.assign_attrs(method="dale")
