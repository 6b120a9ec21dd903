"""Local effects of a model, and RHALE: their mean and spread along each axis.

`local_effects` is the only function that asks the model. `rhale` and everything after it is
arithmetic on what it returned.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike, NDArray
from tqdm import tqdm

from rhale_stats import models
from rhale_stats.arrays import accumulate, binning
from rhale_stats.arrays import moments as sums
from rhale_stats.arrays.moments import Axis, FloatArray, IntArray, Moments, ResidualMoments
from rhale_stats.bins import BinRule, Candidates, Column, OptimalBins, describe
from rhale_stats.schema import (
    EFFECT_UNITS,
    X_UNITS,
    check_effect,
    check_local,
    feature_names,
    feature_position,
    one_feature,
    padded,
    software,
    unit_mapping,
    unknown_feature,
    variable,
)
from rhale_stats.validate import as_weights, check_choice, check_finite

METHODS = ("auto", "jacobian", "central_difference", "finite_difference")
CENTERINGS = ("mean", "start", "integral")
# Cells of the grid on which method="finite_difference" takes its differences.
DIFFERENCE_CELLS = 100
# Seconds after which a progress bar appears.
PROGRESS_DELAY = 2.0
SELECT_ROWS = "Select the rows first: local.isel(obs=...)."
# Below this many values threads cost more than they save.
THREADS_FROM = 200_000

T = TypeVar("T")
S = TypeVar("S")


def local_effects(
    model: models.Model,
    X: Any,  # noqa: N803
    *,
    jacobian: Any = None,
    features: str | int | Sequence[str | int] | None = None,
    weights: ArrayLike | None = None,
    weight_kind: str = "precision",
    method: str = "auto",
    progress: bool = True,
) -> xr.Dataset:
    r"""Local effects of a model: how its output moves with one feature, row by row.

    The only function that calls the model.

    Parameters
    ----------
    model : callable, object with ``predict``, or statsmodels results
        Called with whole tables in the form of ``X``, never row by row, at most twice a feature.
        Returns one number a row. May be None when ``jacobian`` is given.
    X : DataFrame or array_like of shape (n_rows, n_columns)
        Rows at which effects are taken. A formula model needs a DataFrame with all its columns.
        Units are read from ``X.attrs["units"]``, a mapping from column to unit; name and unit of
        the output from ``X.attrs["output_name"]`` and ``X.attrs["output_units"]``.
    jacobian : callable or array_like of shape (n_rows, n_columns), optional
        Derivatives of the output with respect to every column, or a function of ``X`` that
        returns them. A DataFrame needs the columns of ``features`` only.
    features : name, number, or sequence of them, optional
        Columns to take. By default all that are numeric and not discrete; a warning names the
        others. A column of numbers is discrete when it has at most 12 distinct values, two rows
        each on average. Named columns are taken as they are, if they are numeric.
    weights : array_like of shape (n_rows,), optional
        Row weights, math [6]. Rows of weight zero count as absent.
    weight_kind : {"precision", "frequency"}, default "precision"
        Survey and precision weights, or counts of repeated rows.
    method : {"auto", "jacobian", "central_difference", "finite_difference"}, default "auto"
        "auto" takes ``jacobian`` where given and else central differences. "finite_difference"
        takes the slope across the row's cell, on a grid of 100 equal cells (math [2]): right for
        trees and other models that jump.
    progress : bool, default True
        Show a bar on work over two seconds.

    Returns
    -------
    Dataset
        ``x``, ``local_effect`` of dims (obs, feature), one contiguous column a feature;
        ``local_effect_error`` (feature), the size of differences that rounding alone can make;
        ``weight`` (obs) where given. Coordinates ``feature``, ``feature_kind``,
        ``feature_units``, and ``obs``.

    Raises
    ------
    ValueError
        Missing or infinite values in ``X`` or in local effects, no rows, repeated column names, a
        Jacobian of another shape, unusable weights, a model without a useful derivative.
    KeyError
        Unknown feature.
    TypeError
        No numeric feature, or a model that cannot be called.
    ModelError
        The model raised, or returned something else than one number a row.

    Notes
    -----
    The step of central differences is chosen for every feature from its standard deviation s and
    the precision eps in which the model answers: h = s (A eps)^(1/3) with A = max(1, max|x|/s).
    The error, relative to how the output varies over s, is about (A eps)^(2/3): 4e-11 in double
    precision, 2e-5 for models in single precision, 2e-6 for time stamps of 1.7e9 with a spread
    of 100. Arguments are kept within the observed range, so that rows within h of its ends get
    one-sided differences, with an error of order h.

    References
    ----------
    Gkolemis et al. (2023), *RHALE*, Eq. 2 and 4; Apley and Zhu (2020), Eq. 11, for
    ``method="finite_difference"``.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    >>> local = rs.local_effects(lambda X: X[:, 0] ** 2 + X[:, 1], X)
    >>> bool(np.allclose(local["local_effect"].sel(feature="x0"), 2 * X[:, 0], atol=1e-5))
    True
    """
    table = models.as_table(X)
    check_choice("method", method, METHODS)
    if method == "auto":
        method = "central_difference" if jacobian is None else "jacobian"
    if (method == "jacobian") != (jacobian is not None):
        raise ValueError(
            f"method={method!r} and jacobian={'None' if jacobian is None else '...'} contradict "
            f"each other: pass a jacobian with method='jacobian' or 'auto', and none otherwise."
        )
    weight = None if weights is None else as_weights(weights, table.n_rows, weight_kind)
    check_choice("weight_kind", weight_kind, ("precision", "frequency"))
    positions = _positions(table, features)
    names = [table.names[position] for position in positions]
    shape = (table.n_rows, len(positions))
    x = np.empty(shape, order="F")
    effect = np.empty(shape, order="F")
    error = np.zeros(len(positions))
    for column, position in enumerate(positions):
        x[:, column] = models.check_column(table, position)

    if method == "jacobian":
        derivatives = models.jacobian_columns(jacobian, table, positions)
        for column, position in enumerate(positions):
            effect[:, column] = derivatives[position]
    else:
        quotients = models.DifferenceQuotients(model, table)
        bar = tqdm(
            positions, "local effects", unit="feature", disable=not progress, delay=PROGRESS_DELAY
        )
        for column, position in enumerate(bar):
            if x[:, column].min() == x[:, column].max():
                effect[:, column] = np.nan  # a constant feature has no effect to estimate
                continue
            differences = (
                quotients.central(position)
                if method == "central_difference"
                else quotients.finite(position, DIFFERENCE_CELLS)
            )
            effect[:, column], error[column] = differences.local_effect, differences.error
    for column, name in enumerate(names):
        if x[:, column].min() < x[:, column].max():
            check_finite(
                effect[:, column], "Local effects", name, "See what the model returns at these rows."
            )

    attrs = getattr(X, "attrs", {})
    units = unit_mapping(attrs)
    coordinates: dict[str, Any] = {
        "feature": ("feature", np.array(names), {"long_name": "feature"}),
        "feature_kind": (
            "feature",
            np.array(["discrete" if table.is_discrete(p) else "continuous" for p in positions]),
        ),
        "feature_units": ("feature", np.array([units.get(name, "") for name in names])),
    }
    index = getattr(X, "index", None)
    if isinstance(index, pd.Index) and index.nlevels == 1 and index.is_unique:
        coordinates["obs"] = ("obs", index.to_numpy())
    else:
        coordinates["obs"] = ("obs", np.arange(table.n_rows))
    data: dict[str, Any] = {
        "x": (("obs", "feature"), x, {"long_name": "value of the feature", "units": X_UNITS}),
        "local_effect": (
            ("obs", "feature"),
            effect,
            {"long_name": "local effect", "units": EFFECT_UNITS},
        ),
        "local_effect_error": variable("local_effect_error", error),
    }
    if weight is not None:
        data["weight"] = ("obs", weight, {"long_name": f"{weight_kind} weight", "units": "1"})
    return xr.Dataset(
        data,
        coordinates,
        {
            "local_effect_method": method,
            "weight_kind": weight_kind if weight is not None else "none",
            "output_name": str(attrs.get("output_name", "output")),
            "output_units": str(attrs.get("output_units", "")),
            "n_rows": table.n_rows,
            "software": software(),
        },
    )


def _positions(
    table: models.Table, features: str | int | Sequence[str | int] | None
) -> list[int]:
    """Columns chosen by name or number; by default all numeric ones that are not discrete."""
    everything = range(len(table.names))
    if features is None:
        text = [p for p in everything if not table.is_numeric(p)]
        discrete = [p for p in everything if p not in text and table.is_discrete(p)]
        chosen = [p for p in everything if p not in text and p not in discrete]
        reasons = []
        for left_out, why in ((text, "not numeric"), (discrete, "discrete")):
            if left_out:
                named = ", ".join(repr(table.names[p]) for p in left_out)
                reasons.append(f"{named} ({why})")
        if not chosen:
            raise TypeError(
                f"X must have at least one continuous numeric column; got {'; '.join(reasons)}. "
                f"Name discrete columns in features= to take them all the same."
            )
        if reasons:
            warnings.warn(
                f"Left out: {'; '.join(reasons)}. Name discrete columns in features= to take them.",
                stacklevel=3,
            )
        return chosen
    asked = [features] if isinstance(features, str | int | np.integer) else list(features)
    if not asked:
        raise ValueError("features must name at least one column; got none.")
    positions = []
    for feature in asked:
        if isinstance(feature, str) and feature in table.names:
            position = table.names.index(feature)
        elif (
            isinstance(feature, int | np.integer)
            and not isinstance(feature, bool)
            and -len(table.names) <= feature < len(table.names)
        ):
            position = int(feature) % len(table.names)
        else:
            raise KeyError(unknown_feature(feature, table.names))
        if not table.is_numeric(position):
            raise TypeError(
                f"features must be numeric; column {table.names[position]!r} is not. Leave it out: "
                f"the model still receives it."
            )
        if position in positions:
            raise ValueError(f"features must be distinct; got {table.names[position]!r} twice.")
        positions.append(position)
    return positions


class _Estimate(NamedTuple):
    """RHALE of one feature, at the length that its bins have."""

    edges: FloatArray
    bins: Moments
    curve: FloatArray
    offset: float
    residuals: ResidualMoments | None


def rhale(
    local: xr.Dataset,
    *,
    bins: BinRule | None = None,
    centering: str = "mean",
    std_error_moments: bool = True,
) -> xr.Dataset:
    r"""RHALE: average effect and heterogeneity in bins, and the curve that they accumulate to.

    Parameters
    ----------
    local : Dataset
        What `local_effects` returned.
    bins : bin rule, optional
        `OptimalBins` (the default: the paper's), `EqualWidthBins`, `QuantileBins`, `GivenBins`.
    centering : {"mean", "start", "integral"}, default "mean"
        Where the curve is zero: on average over the rows (the convention of ALE), at the left
        end, or on average over the axis (math [8]). ``curve_offset`` keeps the constant.
    std_error_moments : bool, default True
        Take the moments of higher order that `std_error` needs for the heterogeneity and for a
        curve centred at its mean. They need a second pass over the rows.

    Returns
    -------
    Dataset
        Over (feature, bin): ``effect`` (math [5]), ``heterogeneity`` (math [6], the standard
        deviation, ddof 1), ``n_obs``, ``n_effective``, ``weight_share``, ``x_mean`` and, for
        `std_error`, ``fourth_moment``, ``x_variance``, ``x_covariance``. Over (feature, edge):
        ``curve`` (math [7]), ``curve_std`` and ``curve_std_sum`` (math [9]). Over (feature):
        ``average_effect``, ``heterogeneity_index`` (math [10]), ``heterogeneity_output``,
        ``curve_offset``, ``local_effect_error``.
        Coordinates: ``feature``, ``bin``, ``edge``, ``bin_left``, ``bin_right``, ``edge_value``,
        ``n_bins``, ``feature_kind``, ``feature_units``. Beyond a feature's ``n_bins`` values are
        NaN and ``n_obs`` is 0. A constant feature has ``n_bins`` 0 and ``feature_kind``
        "constant".

    Raises
    ------
    ValueError
        Missing or infinite values, fewer rows than the rule needs, unsuitable edges.
    TypeError
        ``local`` or ``bins`` is something else.

    Warns
    -----
    UserWarning
        A bin without rows: its effect is NaN, and the curve is unknown beyond it.

    Notes
    -----
    ``curve_std`` (Eq. 16 of the paper) depends on the partition: sigma = 5 everywhere on
    [-1, 1] gives 10, 4.5 and 1.4 at the right end for 1, 5 and 50 bins. ``curve_std_sum`` does
    not; it is what the paper's figures show, and what `plot_effect` draws.

    References
    ----------
    Gkolemis, Dalamagas, Ntoutsi and Diou (2023), *RHALE: Robust and Heterogeneity-aware
    Accumulated Local Effects*, Eq. 9 to 16.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> local = rs.local_effects(lambda X: 2 * X[:, 0] + 4 * X[:, 0] * X[:, 1], X)
    >>> effect = rs.rhale(local, bins=rs.EqualWidthBins(4))
    >>> effect["n_obs"].sel(feature="x0").values
    array([120, 122, 131, 127])
    """
    local = check_local(local)
    check_choice("centering", centering, CENTERINGS)
    rule: BinRule = OptimalBins() if bins is None else bins
    if not isinstance(rule, BinRule) or isinstance(rule, type):
        raise TypeError(
            f"bins must be a rule such as OptimalBins() or EqualWidthBins(20); got {bins!r}. "
            f"Edges go into GivenBins(edges)."
        )
    names = feature_names(local)
    rows = _rows(local)
    threads = 1 if rows.size < THREADS_FROM else (os.cpu_count() or 1)

    def first_pass(position: int) -> _Cells:
        name, x, g = names[position], rows.x[position], rows.local_effect[position]
        column = Column(name, x, float(x.min()), float(x.max()), rows.weight)
        if not np.isfinite([column.low, column.high]).all():
            check_finite(x, "x", name, SELECT_ROWS)
        if column.low == column.high:
            return _Cells(column, None, None)
        axis = rule.cells(column)
        moments = sums.cell_moments(axis, x, g, rows.weight, frequency=rows.frequency)
        if not np.isfinite(moments.m2).all():
            check_finite(g, "Local effects", name, SELECT_ROWS)
            raise ValueError(
                f"Local effects of feature {name!r} must be small enough to be squared; "
                f"got up to {np.abs(g).max():.3g}. Rescale the output."
            )
        return _Cells(column, axis, moments)

    cells = _map(first_pass, range(len(names)), threads)
    errors = local["local_effect_error"].values
    candidates = {
        position: Candidates(
            column.name,
            moments,
            column.low,
            column.high,
            _resolution(moments, float(errors[position])),
        )
        for position, (column, _, moments) in enumerate(cells)
        if moments is not None
    }
    starts = dict(zip(candidates, rule.choose(list(candidates.values())), strict=True))

    def second_pass(position: int) -> _Estimate:
        column, axis, moments = cells[position]
        assert axis is not None and moments is not None  # noqa: S101, PT018
        merged = sums.merge(moments, starts[position])
        edges = binning.bin_edges(axis, starts[position], column.low, column.high)
        residuals = None
        if std_error_moments:
            residuals = sums.residual_moments(
                axis,
                starts[position],
                merged,
                rows.x[position],
                rows.local_effect[position],
                rows.weight,
            )
        return _estimate(edges, merged, residuals, centering)

    # Without the second pass over the rows there is nothing to share out.
    threads = threads if std_error_moments else 1
    estimates = dict(zip(starts, _map(second_pass, starts, threads), strict=True))
    _warn_of_empty_bins({names[p]: e for p, e in estimates.items()})
    return _effects_dataset(local, rule, centering, estimates, rows)


class _Cells(NamedTuple):
    """Fine cells of one feature; none for a constant one."""

    column: Column
    axis: Axis | None
    moments: Moments | None


class _Rows(NamedTuple):
    x: list[FloatArray]
    local_effect: list[FloatArray]
    weight: FloatArray | None
    frequency: bool
    n_rows: int

    @property
    def size(self) -> int:
        return self.n_rows * len(self.x)


def _rows(local: xr.Dataset) -> _Rows:
    """Columns of the local effects; weights scaled to 1 at most and dropped where all are equal."""
    x, g = (local[name].transpose("obs", "feature").values for name in ("x", "local_effect"))
    if not len(x):
        raise ValueError("local must have at least one row; got none.")
    weight: FloatArray | None = None
    frequency = local.attrs.get("weight_kind") == "frequency"
    if "weight" in local:
        weight = np.ascontiguousarray(local["weight"].values, dtype=np.float64)
        present = weight > 0
        if not present.all():
            x, g, weight = x[present], g[present], weight[present]
        if not frequency:
            weight = weight / weight.max()
        if (weight == 1).all():
            weight = None

    def contiguous(table: NDArray[Any]) -> list[FloatArray]:
        return [
            np.ascontiguousarray(table[:, column], dtype=np.float64)
            for column in range(table.shape[1])
        ]

    return _Rows(contiguous(x), contiguous(g), weight, frequency, len(x))


def _map(function: Callable[[S], T], items: Iterable[S], threads: int) -> list[T]:
    if threads == 1:
        return [function(item) for item in items]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(function, items))


def _resolution(cells: Moments, error: float) -> float:
    """Local effects that differ by less than this are equal: rounding, or the model's own error."""
    return max(error, 16 * float(np.spacing(np.nanmax(np.abs(cells.mean)))))


def _estimate(
    edges: FloatArray, bins: Moments, residuals: ResidualMoments | None, centering: str
) -> _Estimate:
    width = np.diff(edges)
    curve = accumulate.accumulate(bins.mean, width)
    offset = 0.0
    if centering == "mean":
        share = bins.weight / bins.weight.sum()
        offset = accumulate.mean_of_curve(curve, bins.mean, edges, bins.x_mean, share)
    elif centering == "integral":
        offset = accumulate.integral_of_curve(curve, width)
    return _Estimate(edges, bins, curve - offset, offset, residuals)


def _warn_of_empty_bins(estimates: dict[str, _Estimate]) -> None:
    empty = {name: int((e.bins.weight == 0).sum()) for name, e in estimates.items()}
    found = [f"{name!r} ({n} of {len(estimates[name].bins.mean)})" for name, n in empty.items() if n]
    if found:
        warnings.warn(
            f"Bins without rows: {', '.join(found)}. Their effects are NaN, and so is the curve "
            f"wherever it would have to cross them. Use fewer bins, QuantileBins or OptimalBins.",
            stacklevel=3,
        )


def _effects_dataset(
    local: xr.Dataset,
    rule: BinRule,
    centering: str,
    estimates: dict[int, _Estimate],
    rows: _Rows,
) -> xr.Dataset:
    n_features = len(rows.x)
    n_bins = np.array(
        [len(estimates[p].bins.mean) if p in estimates else 0 for p in range(n_features)]
    )
    most = max(int(n_bins.max()), 1)
    nothing = np.empty(0)

    def by_bin(pick: Callable[[_Estimate], FloatArray]) -> FloatArray:
        parts = [pick(estimates[p]) if p in estimates else nothing for p in range(n_features)]
        return padded(parts, most)

    def by_edge(pick: Callable[[_Estimate], FloatArray]) -> FloatArray:
        parts = [pick(estimates[p]) if p in estimates else nothing for p in range(n_features)]
        return padded(parts, most + 1)

    def by_feature(pick: Callable[[_Estimate], float]) -> FloatArray:
        return np.array(
            [pick(estimates[p]) if p in estimates else np.nan for p in range(n_features)]
        )

    def spread(e: _Estimate) -> FloatArray:
        return np.sqrt(sums.variance(e.bins, 1))

    def share(e: _Estimate) -> FloatArray:
        return e.bins.weight / e.bins.weight.sum()

    edges = by_edge(lambda e: e.edges)
    rule_name, parameters = describe(rule)
    facts: dict[str, str | int | float] = {"estimator": "mean of local effects, math [5]"}
    data = {
        "effect": variable("effect", by_bin(lambda e: e.bins.mean), **facts),
        "heterogeneity": variable("heterogeneity", by_bin(spread), ddof=1),
        "n_obs": variable("n_obs", _counts(by_bin(lambda e: e.bins.n_obs))),
        "n_effective": variable(
            "n_effective", np.nan_to_num(by_bin(lambda e: sums.n_effective(e.bins)))
        ),
        "weight_share": variable("weight_share", np.nan_to_num(by_bin(share))),
        "x_mean": variable("x_mean", by_bin(lambda e: e.bins.x_mean)),
        "curve": variable("curve", by_edge(lambda e: e.curve), centering=centering),
        "curve_std": variable(
            "curve_std", by_edge(lambda e: accumulate.curve_std(spread(e), np.diff(e.edges)))
        ),
        "curve_std_sum": variable(
            "curve_std_sum",
            by_edge(lambda e: accumulate.curve_std_sum(spread(e), np.diff(e.edges))),
        ),
        "curve_offset": variable("curve_offset", by_feature(lambda e: e.offset)),
        "average_effect": variable("average_effect", by_feature(_average_effect)),
        "heterogeneity_index": variable("heterogeneity_index", by_feature(_heterogeneity_index)),
        "local_effect_error": local["local_effect_error"],
    }
    if all(e.residuals is not None for e in estimates.values()):
        data["heterogeneity_output"] = variable(
            "heterogeneity_output", by_feature(_heterogeneity_output)
        )
        for position, name in enumerate(ResidualMoments._fields):
            data[name] = variable(
                name, by_bin(lambda e, at=position: e.residuals[at])  # type: ignore[misc,index]
            )
    kinds = [
        str(kind) if p in estimates else "constant"
        for p, kind in enumerate(local["feature_kind"].values)
    ]
    coordinates = {
        "feature": local["feature"],
        "bin": ("bin", np.arange(most), {"long_name": "bin"}),
        "edge": ("edge", np.arange(most + 1), {"long_name": "edge of a bin"}),
        "bin_left": (("feature", "bin"), edges[:, :-1], {"long_name": "left edge of the bin"}),
        "bin_right": (
            ("feature", "bin"),
            np.where(np.arange(most) < n_bins[:, None], edges[:, 1:], np.nan),
            {"long_name": "right edge of the bin"},
        ),
        "edge_value": (("feature", "edge"), edges, {"long_name": "position of the edge"}),
        "n_bins": ("feature", n_bins, {"long_name": "number of bins"}),
        "feature_kind": ("feature", np.array(kinds)),
        "feature_units": local["feature_units"],
    }
    coordinates["bin_left"] = (
        ("feature", "bin"),
        np.where(np.arange(most) < n_bins[:, None], edges[:, :-1], np.nan),
        {"long_name": "left edge of the bin"},
    )
    attrs = {
        "method": "rhale",
        "bin_rule": rule_name,
        "bin_parameters": parameters,
        "closed": "left; the last bin on both sides",
        "centering": centering,
        "local_effect_method": local.attrs.get("local_effect_method", "unknown"),
        "weight_kind": local.attrs.get("weight_kind", "none"),
        "output_name": local.attrs.get("output_name", "output"),
        "output_units": local.attrs.get("output_units", ""),
        "n_rows": rows.n_rows,
        "software": software(),
    }
    return xr.Dataset(data, coordinates, attrs)


def _counts(values: FloatArray) -> IntArray:
    return np.nan_to_num(values).astype(np.int64)


def _average_effect(e: _Estimate) -> float:
    return float(np.nansum(e.bins.weight * e.bins.mean) / e.bins.weight.sum())


def _heterogeneity_index(e: _Estimate) -> float:
    """math [10]: sum of width times mean squared deviation; a bin without rows adds nothing."""
    occupied = e.bins.weight > 0
    return float(
        np.sum((np.diff(e.edges) * e.bins.m2)[occupied] / e.bins.weight[occupied])
    )


def _heterogeneity_output(e: _Estimate) -> float:
    """math [10]: std(x) sqrt(mean of the bins' variances over rows), in units of the output."""
    assert e.residuals is not None  # noqa: S101
    share = e.bins.weight / e.bins.weight.sum()
    x_mean = np.nansum(share * e.bins.x_mean)
    n = float(sums.n_effective(_sum_of_weights(e.bins)))
    x_variance = (
        np.nansum(share * (e.residuals.x_variance + (e.bins.x_mean - x_mean) ** 2)) * n / (n - 1)
    )
    within = sums.variance(e.bins, 1)
    known = ~np.isnan(within)
    mean_variance = np.sum((share * within)[known]) / np.sum(share[known])
    return float(np.sqrt(x_variance * mean_variance))


def _sum_of_weights(bins: Moments) -> Moments:
    return Moments(*(np.sum(part) for part in bins))


def predict(effect: xr.Dataset, x: ArrayLike, feature: str | int) -> xr.DataArray:
    """Evaluate the curve of one feature; linear within a bin, NaN outside the range of the rows.

    Parameters
    ----------
    effect : Dataset
        What `rhale` returned.
    x : array_like or DataArray
        Values of the feature, in its own units.
    feature : str or int
        Name or number.

    Returns
    -------
    DataArray
        The curve at ``x``, in units of the output, centred as ``effect`` is. One-dimensional
        ``x`` gets the dimension "grid" with coordinate ``x``; a DataArray keeps its dimensions.

    Raises
    ------
    KeyError
        Unknown feature.

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
    """
    effect = check_effect(effect)
    row = one_feature(effect, feature)
    name = feature_names(effect)[feature_position(effect, feature)]
    at = x if isinstance(x, xr.DataArray) else xr.DataArray(np.asarray(x, dtype=np.float64))
    if not isinstance(x, xr.DataArray) and at.ndim == 1:
        at = xr.DataArray(at.values, dims="grid")
    edges, curve = row["edge_value"].values, row["curve"].values
    if len(edges):
        values = np.interp(at.values, edges, curve, left=np.nan, right=np.nan)
    else:
        values = np.full(at.shape, np.nan)
    out = xr.DataArray(values, dims=at.dims, coords=at.coords, name="curve")
    out.attrs = {**effect["curve"].attrs, "feature": name}
    if "x" not in out.coords:
        out = out.assign_coords(x=(at.dims, at.values))
    return out
