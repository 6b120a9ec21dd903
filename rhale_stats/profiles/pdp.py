"""Partial dependence and ICE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rhale_stats.arguments.checks import centering_text, check_choice
from rhale_stats.arguments.rows import as_edges
from rhale_stats.arguments.words import warn
from rhale_stats.arrays import moments as sums
from rhale_stats.arrays import profiles as kernel
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.chunks import of_all
from rhale_stats.models.chunked import (
    chunks_of,
    glance,
    places_of,
    weights_of_chunks,
    weights_of_rows,
)
from rhale_stats.models.differences import DifferenceQuotients
from rhale_stats.models.groups import by_groups
from rhale_stats.models.options import ModelOptions
from rhale_stats.models.outputs import Model
from rhale_stats.profiles.data import (
    CENTERINGS,
    GRID_KINDS,
    N_GRID,
    Grid,
    ProfileAxis,
    check_centre,
    grids,
    split_pairs,
)
from rhale_stats.profiles.inputs import (
    BESIDE,
    Blocks,
    ProfileInputs,
    counts_of,
    estimates_of,
    grid_of,
    no_rows,
    of_outputs,
    with_bar,
    with_slopes,
)
from rhale_stats.schema.validation import validated
from rhale_stats.schema.variables import EFFECT_UNITS

ICE_KINDS = ("plain", "centered", "derivative")


def _common_grid(
    model: Model,
    X: Any,
    features: str | int | Sequence[str | int] | None = None,
    *,
    grid: Grid = None,
    n_grid: int = N_GRID,
    grid_kind: str = "quantile",
    percentiles: tuple[float, float] | None = None,
    options: ModelOptions = ModelOptions(),
    **fields: Any,
) -> dict[str, Any]:
    """The points of all numeric features, by the rows of all groups."""
    del model
    missing = fields.get("missing", options.missing)
    options = ModelOptions(weights=fields.get("weights", options.weights), missing=missing)
    singles, pairs = split_pairs(fields.get("feature", features))
    inputs = ProfileInputs.used(X, singles, options, percentiles=percentiles, pairs=pairs)
    points: dict[str, Any] = {}
    for axis in inputs.axes(grid, n_grid, grid_kind):
        if axis.pair is not None:
            points[axis.name] = [None if side.levels else side.grid for side in axis.pair]
        elif axis.levels is None and len(axis.grid) > 1:
            points[axis.name] = axis.grid
    return {"grid": points}


@by_groups(_common_grid)
@validated
def pdp(
    model: Model,
    X: Any,
    features: str | int | Sequence[str | int] | None = None,
    *,
    grid: Grid = None,
    n_grid: int = N_GRID,
    grid_kind: str = "quantile",
    percentiles: tuple[float, float] | None = None,
    centering: str | float = "mean",
    by: Any = None,
    options: ModelOptions = ModelOptions(),
    progress: bool = True,
    **fields: Any,
) -> xr.Dataset:
    r"""Partial dependence: the mean prediction over all rows, as a function of one feature.

    The model is evaluated for every row at every grid point, also for combinations that cannot
    occur.

    Parameters
    ----------
    model, X, progress
        As in `local_effects`, also tables in chunks and paths of Parquet files, of which only
        numbers have curves. Rows of weight 0 are left out.
    features : name, number, pair of them, or sequence of these, optional
        Columns to take; by default all but identifiers, which a warning names. The grid of
        categories, texts and booleans is their levels. A pair in a list, as in ``[("a", "b")]``,
        is two-way partial dependence: the feature "a:b", whose levels are all pairs of points, at
        most 20 of a number.
    grid : array_like, or mapping from names to array_like, optional
        Points of the only feature, or of some features by name, taken as they are: increasing
        numbers, or all levels in another order. Those of "a:b" are a pair of such points.
    n_grid : int, default 40
        Points of other features; all distinct values where these are no more.
    grid_kind : {"quantile", "equal_width"}, default "quantile"
        Points where the rows are, by their weights, or at equal distances; both from the smallest
        to the largest value. Of integers, points at equal distances are whole numbers.
    percentiles : pair of float, optional
        Between which percentiles of the rows a grid reaches, from 0 to 100, or shares of the rows
        as (0.05, 0.95). The mean is over all rows nevertheless.
    centering : {"mean", "start", "integral", "none"} or number, default "mean"
        Where the curve is zero: on average over the rows, at the first point, on average over the
        axis (math [8]), at this value of the feature; or the mean output itself. ``curve_offset``
        keeps the constant, so that ``curve + curve_offset`` is the mean output whatever the
        centring.
    by : name, number, or array_like of shape (n_rows,), optional
        A column of groups, as in `rhale`: the average is over the rows of each. All groups have the
        same grid of numbers, so that `compare` takes them.
    options : ModelOptions, optional
        Output and scale of the model, weights of the rows, and what to do where a feature has no
        value. Its fields can be given directly, as in ``missing="bin"``: then these rows are rows
        like the others, whose curves count at every point of the grid; only the constant of the
        centring, ``weight_share`` and what is made of it are over the rows that have a place; and
        ``missing_curve`` is the mean output of all rows without the value. Of categories "missing"
        is the last level.

    Returns
    -------
    Dataset
        In units of the output, over (feature, grid): ``curve`` (math [41]), ``curve_std``, the
        standard deviation (ddof 1) of the ICE curves, each centred like the curve (with "none", at
        its mean over the rows), ``curve_se``, and ``weight_share``, the share of the rows at
        each point: a row between two points is divided between them, by its distances.
        ``curve_cov`` (feature, grid, grid_other) is the covariance of the curve. Over (feature):
        ``heterogeneity_output``, the root mean square of ``curve_std`` over the rows,
        ``importance``, the standard deviation of the curve over the rows, ``curve_offset``,
        ``n_obs``, ``n_effective``, ``output_error``, the change of the output that rounding can
        cause, ``n_missing`` if values are missing, and with "bin" ``missing_curve``, on the scale
        of the curve, and ``missing_curve_se``. Both are NaN for categories and for features that
        have no missing values or are otherwise constant. Coordinates ``feature``, ``feature_kind``
        ("nominal" for categories), ``feature_units``, ``n_grid`` (feature), ``grid_value`` and,
        where there are categories, ``level`` (feature, grid): their grid values are 0, 1, ... With
        pairs ``feature_a`` and ``feature_b`` (feature), and ``grid_value_a``, ``level_a`` and the
        same of b (feature, grid); a row is at the pair of points nearest to its values.
        Beyond a feature's ``n_grid`` values are NaN; a constant feature has ``n_grid`` 0. With
        several outputs, variables that depend on the output have ``output`` as first dimension.

    Raises
    ------
    ValueError, KeyError, TypeError, ModelError
        As `local_effects`; a grid that does not increase, or of unknown features or levels.

    Notes
    -----
    The standard error refers to the sampling of rows: it is the standard deviation of the centred
    ICE curves divided by :math:`\sqrt n`. With ``centering="mean"`` the constant is also a mean
    over the places of the rows, and its sampling error is included, as in math [26].

    The curves of one feature are made in blocks of rows, of about 8 MiB for each output. Their
    moments are merged, those of chunks as well. Those of trees are read from the leaves, without
    predictions at the grid; ``answers_from`` says so.

    References
    ----------
    Friedman (2001), *Greedy function approximation*, section 8.2. Goldstein, Kapelner, Bleich and
    Pitkin (2015), *Peeking inside the black box*, for the spread of ICE curves. Greenwell, Boehmke
    and McCarthy (2018) for the importance.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> found = rs.pdp(lambda X: X[:, 0] ** 2 + X[:, 1], X, n_grid=5, grid_kind="equal_width")
    >>> found["curve"].sel(feature="x0").round(2).values
    array([ 0.61, -0.13, -0.37, -0.12,  0.63])
    >>> float(found["heterogeneity_output"].sel(feature="x0").round(6))  # no interaction
    0.0
    """
    del by  # `by_groups` has divided the rows
    centering = centering_text(centering, CENTERINGS)
    _check_pairs(features, centering)
    chunks = chunks_of(X, model)
    if chunks is not None:
        check_choice("grid_kind", grid_kind, GRID_KINDS)
        if percentiles is not None:
            raise ValueError(
                f"percentiles must be left out where X is in chunks; got {percentiles!r}. Give the "
                f"points: grid={{feature: points}}."
            )
        return pdp_in_chunks(model, chunks, features, grid, n_grid, grid_kind, centering, options)
    singles, pairs = split_pairs(features)
    inputs = ProfileInputs.used(X, singles, options, percentiles=percentiles, pairs=pairs)
    axes = inputs.axes(grid, n_grid, grid_kind)
    check_centre(axes, centering)
    quotients = inputs.quotients(model)
    estimates = []
    bar = with_bar(axes, "partial dependence", progress=progress)
    for axis, blocks in zip(bar, inputs.all_curves(quotients, axes), strict=True):
        mean = _average(inputs, quotients, axis, blocks, centering)
        estimates.append(mean.estimates | _beside(inputs, quotients, axis, mean, centering))
    out = inputs.labelled(axes, estimates, quotients, method="pdp", centering=centering)
    return out.assign_attrs(grid_kind=grid_kind)


@validated
def ice(
    model: Model,
    X: Any,
    features: str | int | Sequence[str | int] | None = None,
    *,
    kind: str = "plain",
    grid: Grid = None,
    n_grid: int = N_GRID,
    grid_kind: str = "quantile",
    percentiles: tuple[float, float] | None = None,
    centering: str | float | None = None,
    options: ModelOptions = ModelOptions(),
    progress: bool = True,
    **fields: Any,
) -> xr.Dataset:
    r"""ICE curves: the prediction for every row as a function of one feature, and their mean.

    Parameters
    ----------
    model, X, features, grid, n_grid, grid_kind, percentiles, options, progress
        As in `pdp`.
    kind : {"plain", "centered", "derivative"}, default "plain"
        Curves as they are; each zero at its first point (c-ICE), or as ``centering`` says; or their
        derivatives (d-ICE): central differences along the grid, one-sided at its ends.
    centering : {"start", "mean", "integral"} or number, optional
        Of "centered" curves: "start" by default, as in the paper. The others have none.

    Returns
    -------
    Dataset
        As `pdp` with the same centring: ``curve`` is the mean of the curves, ``curve_std`` their
        spread. Also ``ice`` (feature, grid, obs), NaN for rows that are left out, ``x`` (feature,
        obs), NaN for rows without a value of the feature, and ``weight`` (obs) if given. For
        "derivative" all are in units of the output per unit of the feature, ``importance`` is the
        spread of the mean derivative, and there is no ``missing_curve``.

    Raises
    ------
    ValueError, KeyError, TypeError, ModelError
        As `pdp`; a centring that the kind does not have; derivatives along levels of a category.

    Notes
    -----
    All curves are held in memory and in the result: 8 bytes per row, feature, grid point and
    output, which is 320 megabytes for 10^5 rows, 10 features and 40 points, and temporarily twice
    that. If this is too much, select rows before the call. `pdp` holds the curves of one feature
    only.

    References
    ----------
    Goldstein, Kapelner, Bleich and Pitkin (2015), *Peeking inside the black box: visualizing
    statistical learning with plots of individual conditional expectation*, sections 3 and 4.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> found = rs.ice(lambda X: X[:, 0] * X[:, 1], X, kind="derivative", features="x0")
    >>> bool(np.allclose(found["ice"].isel(feature=0), X[:, 1]))
    True
    """
    check_choice("kind", kind, ICE_KINDS)
    chosen = {"centered": "start"}.get(kind, "none") if centering is None else centering
    chosen = centering_text(chosen, CENTERINGS)
    _check_pairs(features, chosen)
    allowed = CENTERINGS[:-1] if kind == "centered" else ("none",)
    if chosen not in allowed and (kind != "centered" or chosen in CENTERINGS):
        raise ValueError(
            f"centering must be {' or '.join(map(repr, allowed))} with kind={kind!r}; got "
            f"{chosen!r}. For centred curves use kind='centered'."
        )
    every = with_slopes if kind == "derivative" else None
    singles, pairs = split_pairs(features)
    inputs = ProfileInputs.used(X, singles, options, every, percentiles, pairs)
    axes = inputs.axes(grid, n_grid, grid_kind)
    check_centre(axes, chosen)
    if kind == "derivative":
        flat = [axis.name for axis in axes if axis.levels is not None or len(axis.grid) == 1]
        if flat:
            raise ValueError(
                f"kind must not be 'derivative' for categories and grids of one point, such as "
                f"{flat[0]!r}. Leave it out of features=, or take kind='centered'."
            )
    quotients = inputs.quotients(model)
    estimates = []
    bar, derivative = with_bar(axes, "ICE", progress=progress), kind == "derivative"
    for axis, blocks in zip(bar, inputs.all_curves(quotients, axes), strict=True):
        curves_kept: list[FloatArray] = []
        mean = _average(
            inputs, quotients, axis, blocks, chosen, derivative=derivative, curves_kept=curves_kept
        )
        beside = {} if derivative else _beside(inputs, quotients, axis, mean, chosen)
        n_outputs = len(mean.estimates["curve"])
        each = np.full((n_outputs, len(axis.grid), inputs.table.n_rows), np.nan)
        if curves_kept:
            curves = np.concatenate(curves_kept, axis=1)
            if chosen != "none":
                curves -= (curves @ mean.centre)[..., None]
            each[:, :, inputs.with_curve(axis)] = curves.transpose(0, 2, 1)
        estimates.append(mean.estimates | beside | {"ice": each})
    out = inputs.labelled(axes, estimates, quotients, method="ice", centering=chosen)
    out = inputs.with_rows(out, axes).assign_attrs(grid_kind=grid_kind, ice_kind=kind)
    if kind == "derivative":
        for name in ("curve", "curve_std", "curve_se", "importance", "heterogeneity_output", "ice"):
            out[name].attrs["units"] = EFFECT_UNITS
        out["curve_cov"].attrs["units"] = f"({EFFECT_UNITS})^2"
    return out


# --- statistics -----------------------------------------------------------------------------------


def _check_pairs(features: Any, centering: str) -> None:
    """Raise ``ValueError`` where pairs of features would be centred along an axis."""
    if centering == "integral" and split_pairs(features)[1]:
        raise ValueError(
            "centering must be 'mean', 'start' or 'none' for pairs of features, which have no "
            "axis; got 'integral'."
        )


class _Mean(NamedTuple):
    """Mean curves of all outputs, and what else is a mean over the same ICE curves.

    ``centre`` makes the constant of a curve, ``constant`` (output, row) holds those of all rows.
    """

    estimates: dict[str, NDArray[Any]]
    centre: FloatArray
    constant: FloatArray


def _average(
    inputs: ProfileInputs,
    quotients: DifferenceQuotients,
    axis: ProfileAxis,
    blocks: Blocks,
    centering: str,
    *,
    derivative: bool = False,
    curves_kept: list[FloatArray] | None = None,
) -> _Mean:
    """The mean of ICE curves and their spread, in one pass; ``curves_kept`` takes the curves.

    The spread is that of curves centred each by itself, of derivatives as they are.
    """
    weight = inputs.weight_of(axis)
    n_rows = int(inputs.with_curve(axis).sum())
    totals = kernel.Totals.from_weights(weight, n_rows, frequency=inputs.frequency)
    counts = counts_of(totals, n_rows)
    if not len(axis.grid):
        n_outputs = max(len(quotients.outputs.labels), 1)
        estimates = no_rows(n_outputs) | counts | {"output_error": np.zeros(n_outputs)}
        return _Mean(estimates, np.zeros(0), np.zeros((n_outputs, 0)))
    places = inputs.places(axis)
    share = places.share(weight)
    alike = "none" if derivative else "mean" if centering == "none" else centering
    moments = kernel.MomentsOfOutputs(
        kernel.centre_of(alike, axis.grid, share),
        centering == "none",
        sums.need_squares(weight, frequency=inputs.frequency),
    )
    constants, largest = [], np.zeros(1)
    for rows, curves, error in blocks:
        if derivative:
            curves = np.stack([kernel.along(each, axis.grid) for each in curves])
        if curves_kept is not None:
            curves_kept.append(curves.copy())
        w = None if weight is None else weight[rows]
        constants.append(moments.add(curves, places.of_rows(rows), w))
        largest = np.maximum(largest, error)
    profiles = moments.profiles(axis.grid, totals, centering)
    estimates = counts | _of_profiles(profiles, share) | {"output_error": largest}
    return _Mean(estimates, moments.centre, np.concatenate(constants, axis=1))


def _of_profiles(profiles: Sequence[kernel.Profile], share: FloatArray) -> dict[str, NDArray[Any]]:
    """Estimates of one feature from the profiles of all outputs."""
    estimates = [
        estimates_of(profile.curve, profile.spread, profile.covariance, profile.offset, share)
        for profile in profiles
    ]
    return of_outputs(estimates) | {"weight_share": share}


def _beside(
    inputs: ProfileInputs,
    quotients: DifferenceQuotients,
    axis: ProfileAxis,
    mean: _Mean,
    centering: str,
) -> dict[str, NDArray[Any]]:
    """math [41]: the mean output without a value, on the scale of the curve, and its error."""
    if inputs.missing != "bin":
        return {}
    curves = mean.estimates["curve"]
    if axis.levels is not None or axis.present.all() or not len(axis.grid):
        return dict.fromkeys(BESIDE, np.full(len(curves), np.nan))
    places, weight = inputs.places(axis), inputs.weight
    values = [
        kernel.beside(
            answers, constant, curve, places, weight, centering, frequency=inputs.frequency
        )
        for answers, constant, curve in zip(
            inputs.without(quotients, axis), mean.constant, curves, strict=True
        )
    ]
    return dict(zip(BESIDE, np.array(values).T, strict=True))


# --- partial dependence of tables in chunks -------------------------------------------------------


def pdp_in_chunks(
    model: Model,
    chunks: Sequence[Any],
    features: str | int | Sequence[str | int] | None,
    grid: Grid,
    n_grid: int,
    grid_kind: str,
    centering: str,
    options: ModelOptions,
) -> xr.Dataset:
    """`pdp` of all rows. The sample says only which columns there are, and where curves are."""
    if options.missing not in (None, "raise"):
        raise ValueError(
            f"missing must be 'raise' where X is in chunks; got {options.missing!r}. Drop these "
            f"rows before the call, as in X.dropna()."
        )
    seen = glance(chunks)
    without_weights = replace(options, weights=None)
    inputs = ProfileInputs.used(seen.sample, features, without_weights, _numbers)
    columns = list(zip(inputs.names, inputs.positions, strict=True))
    for name, position in columns:
        if not inputs.table.is_numeric(position):
            raise TypeError(
                f"features must be columns of numbers where X is in chunks; column {name!r} holds "
                f"levels, which need all rows at once. Take a sample of the rows for it."
            )
        if seen.n_bad[position]:
            raise ValueError(
                f"X of feature {name!r} must be finite; got {seen.n_bad[position]} NaN or inf in "
                f"{sum(seen.lengths)} rows. Drop these rows before the call."
            )
    weights = None
    if options.weights is not None:
        weights = weights_of_rows(options.weights, seen.lengths, options.weight_kind)
    own_grids = grids(grid, inputs.names, inputs.table.names)
    free = [p for name, p in columns if name not in own_grids and seen.low[p] < seen.high[p]]
    # Of all rows, or a summary of very many.
    places, axes = places_of(chunks, seen.lengths, free, weights) if free else {}, []
    for name, position in columns:
        points = np.zeros(0)
        if name in own_grids:
            points = as_edges(own_grids[name], f"grid of feature {name!r}")
        elif position in places:
            points = grid_of(*places[position], n_grid, grid_kind)
        x, integers = inputs.table.column(position), name not in own_grids
        axes.append(inputs.axis_of_numbers(name, position, x, points, integers=integers))
    varying = [axis for axis in axes if len(axis.grid)]
    each = list(zip(chunks, weights_of_chunks(weights, seen.lengths), strict=True))
    sums = of_all(each, partial(_sums_of, varying, options.weight_kind), _sums_of_all)
    if sums is None:
        raise ValueError("weights must be positive in some row; got none.")
    n_rows, rows, at_points = sums
    shares = [weight / rows.weight for weight in at_points]
    quotients = inputs.quotients(model)
    check_centre(axes, centering)
    # Moments without any rows: where curves are centred, and a common origin from the sample.
    empty, levels = [], centering == "none"
    for axis, share in zip(varying, shares, strict=True):
        centre = kernel.centre_of("mean" if levels else centering, axis.grid, share)
        _, curves, _ = next(inputs.curves(quotients, axis._replace(values=axis.values[:1])))
        origin = curves[:, 0].mean(axis=1)
        empty.append(kernel.MomentsOfOutputs(centre, levels, not rows.counts, origin))
    work = partial(_moments_of, model, without_weights, varying, empty)
    moments, errors, n_calls, n_asked = of_all(
        each, work, _moments_of_all, "chunks of partial dependence", most=2
    )
    by_name = {}
    for axis, share, of_axis, error in zip(varying, shares, moments, errors, strict=True):
        profiles = of_axis.profiles(axis.grid, rows, centering)
        by_name[axis.name] = _of_profiles(profiles, share) | {"output_error": error}
    n_outputs = max(len(quotients.outputs.labels), 1)
    nothing = no_rows(n_outputs) | {"output_error": np.zeros(n_outputs)}
    counts = counts_of(rows, n_rows)
    every = [counts | by_name.get(axis.name, nothing) for axis in axes]
    out = inputs.labelled(axes, every, quotients, method="pdp", centering=centering)
    return out.assign_attrs(
        n_rows=n_rows,
        model_calls=quotients.outputs.n_calls + n_calls,
        model_rows=quotients.outputs.n_rows + n_asked,
        weight_kind="none" if weights is None else options.weight_kind,
        grid_kind=grid_kind,
    )


def _numbers(table: Any) -> list[int]:
    """Columns of numbers; the others, which a warning names, are left out."""
    chosen = [position for position in range(len(table.names)) if table.is_numeric(position)]
    left = [repr(name) for position, name in enumerate(table.names) if position not in chosen]
    if not chosen:
        raise TypeError("X must have a column of numbers where it is in chunks; got none.")
    if left:
        warn(
            f"Left out: {', '.join(left)} (no numbers; X is in chunks). Take a sample of the rows "
            f"for their curves."
        )
    return chosen


# --- in a worker ----------------------------------------------------------------------------------


# Number of rows, sums of their weights, and those at the points of every grid.
_Sums: TypeAlias = tuple[int, kernel.Totals, list[FloatArray]]


def _sums_of(
    axes: Sequence[ProfileAxis], weight_kind: str, chunk: Any, weight: Any
) -> _Sums | None:
    """Sums over the rows of one chunk."""
    inputs = _some(chunk, weight, ModelOptions())
    if inputs is None:
        return None
    n_rows, w = inputs.table.n_rows, inputs.weight
    totals = kernel.Totals.from_weights(w, n_rows, frequency=weight_kind == "frequency")
    at_points = [
        kernel.places(axis.grid, inputs.table.column(axis.position)).share(w) * totals.weight
        for axis in axes
    ]
    return n_rows, totals, at_points


def _sums_of_all(chunks: Sequence[_Sums]) -> _Sums:
    n_rows, totals, at_points = zip(*chunks, strict=True)
    of_axes = [np.sum(each, axis=0) for each in zip(*at_points, strict=True)]
    return sum(n_rows), kernel.Totals.merged(totals), of_axes


# Moments of all features and their errors, and calls and rows of the model.
_ChunkMoments: TypeAlias = tuple[list[kernel.MomentsOfOutputs], list[FloatArray], int, int]


def _moments_of(
    model: Any,
    options: ModelOptions,
    axes: Sequence[ProfileAxis],
    empty: Sequence[kernel.MomentsOfOutputs],
    chunk: Any,
    weight: Any,
) -> _ChunkMoments | None:
    """Moments of the ICE curves of one chunk; ``empty`` are those of no rows."""
    inputs = _some(chunk, weight, options)
    if inputs is None:
        return None
    quotients, w = inputs.quotients(model, probe=False), inputs.weight
    of_axes, errors = [], []
    for axis_of_all, of_none in zip(axes, empty, strict=True):
        axis = axis_of_all._replace(x=inputs.table.column(axis_of_all.position))
        moments = replace(of_none, by_weight=[], by_squares=[])
        places, largest = inputs.places(axis), np.zeros(1)
        for block, curves, error in inputs.curves(quotients, axis):
            moments.add(curves, places.of_rows(block), None if w is None else w[block])
            largest = np.maximum(largest, error)
        of_axes.append(moments)
        errors.append(largest)
    return of_axes, errors, quotients.outputs.n_calls, quotients.outputs.n_rows


def _moments_of_all(chunks: Sequence[_ChunkMoments]) -> _ChunkMoments:
    (whole, *others), errors, n_calls, n_rows = zip(*chunks, strict=True)
    for of_axes in others:
        for total, part in zip(whole, of_axes, strict=True):
            total.merge(part)
    largest = [np.max(each, axis=0) for each in zip(*errors, strict=True)]
    return whole, largest, sum(n_calls), sum(n_rows)


def _some(chunk: Any, weight: Any, options: ModelOptions) -> ProfileInputs | None:
    """The rows of a chunk that have weight, with their weights; None without any."""
    if not len(chunk):
        return None
    inputs = ProfileInputs.from_table(chunk, options)
    if weight is None:
        return inputs
    inputs = replace(inputs, weight=np.asarray(weight, dtype=np.float64))
    return inputs.take(inputs.present) if inputs.present.any() else None
