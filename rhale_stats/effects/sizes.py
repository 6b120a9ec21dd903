"""Sizes of effects: one number per feature, with an interval (math [32])."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from rhale_stats.arguments.rows import as_numbers, as_weights
from rhale_stats.arrays import accumulate, categories, influence, quadratic
from rhale_stats.arrays.accumulate import Pieces, Sizes
from rhale_stats.arrays.intervals import satterthwaite
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.arrays.quadratic import Square
from rhale_stats.effects.fit import bin_degrees
from rhale_stats.effects.intervals import MAKER, confint
from rhale_stats.effects.values import AXIS_SHARE, asked_for, importances, inner, percentiles_of
from rhale_stats.inference import meaning
from rhale_stats.inference.draws import check_boot, draws_of
from rhale_stats.inference.estimate import (
    BOUNDS,
    Estimate,
    Facts,
    Replicates,
    by_replicates,
    interval,
    kept_interval,
)
from rhale_stats.inference.notes import ROWS, with_rows_alone
from rhale_stats.inference.results import BY_NONCENTRAL
from rhale_stats.schema.checks import check_effect
from rhale_stats.schema.curves import CurveErrors
from rhale_stats.schema.feature_result import FeatureResult, each_feature, has_moments
from rhale_stats.schema.features import feature_names
from rhale_stats.schema.padding import pad_features
from rhale_stats.schema.variables import EFFECT_VARIABLES, in_order, variable

SIZES = Sizes._fields
NORMALISED = ("naled", "naler_min", "naler_max")
# Number of points in a bin at which a curve is transformed to the scale of outcomes.
PLACES = 32


def _of_curve(row: FeatureResult) -> tuple[dict[str, float], float, Square]:
    """Sizes of the curve of one feature, its mean over the rows, and its mean square; or NaN."""
    curve = row["curve"].values
    if np.isnan(curve).all():
        return dict.fromkeys(SIZES, np.nan), np.nan, Square(*(np.nan,) * 5)
    if row.is_categorical:
        share = row["level_share"].values
        values, centre = categories.sizes(curve, share), float(np.sum(share * curve))
        square = square_of_levels(row)
    else:
        fit = row.fit
        line = fit.cells.line[fit.cells.stretch]
        values = accumulate.sizes(fit.curve, fit.pieces, line[:, 0], line[:, 1])
        centre = float(accumulate.mean_of_curve(fit.curve, fit.pieces))
        square = square_of_curve(row, fit)
    sizes = {name: float(value) for name, value in zip(SIZES, values, strict=True)}
    return sizes, centre, square


def largest(result: xr.Dataset, max_features: int) -> list[str]:
    """Features whose curves vary most over the rows (without moments, over their edges)."""
    if "importance" in result:
        size = result["importance"].values
    elif has_moments(result):
        size = importances(result)
    else:
        size = result["curve"].std("edge").values
    order = np.argsort(-np.nan_to_num(size, nan=-1.0), kind="stable")
    return [feature_names(result)[position] for position in order[:max_features]]


def effect_sizes(
    effect: xr.Dataset,
    boot: xr.Dataset | None = None,
    y: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    level: float = 0.95,
) -> xr.Dataset:
    """`effect_sizes` of effects in bins."""
    effect = check_effect(effect)
    # Replicates were drawn of all rows.
    effect = inner(effect if boot is None else asked_for(effect, (0, 100)))
    if not has_moments(effect):
        raise ValueError(
            "effect must hold the moments that sizes need; make it with rhale(local), and not by "
            "debias."
        )
    if y is not None and weights is None and effect.attrs.get("weight_kind", "none") != "none":
        raise ValueError(
            "weights must be those of y, because the effect has weights; got None. Pass those of "
            "the effect, or np.ones(len(y)) where each outcome counts once."
        )
    scale = None if y is None else _Scale(y, weights)
    if boot is not None:
        boot = check_boot(effect, boot, ["effect"], MAKER)
    sizes, squares, draws = zip(
        *[
            feature_sizes(row, None if boot is None else boot.isel(feature=row.position), scale)
            for row in each_feature(effect)
        ],
        strict=True,
    )
    arrays = pad_features(sizes, effect.sizes)
    out = xr.Dataset(
        {name: variable(name, values) for name, values in arrays.items()},
        {"feature": effect["feature"], "feature_kind": effect["feature_kind"]},
    )
    if boot is not None:
        out = _with_intervals(out, draws, str(boot.attrs["source"]), level)
    else:
        ends = np.stack([square.interval(level) for square in squares])
        dims, long_name, units = EFFECT_VARIABLES["importance"]
        facts = Facts(dims, long_name, units, long_name, _source(effect))
        out = out.assign(importance_ci=interval(facts, ends, level, BY_NONCENTRAL))
        out = out.assign_coords(BOUNDS)
    out["importance_p_value"].attrs["source"] = _source(effect)
    names_kept = ("output_name", "output_units", "bin_rule", "bin_parameters", "n_rows", "software")
    return out.assign_attrs(
        {
            "method": "effect sizes",
            "percentiles": percentiles_of(effect),
            **{name: effect.attrs[name] for name in names_kept if name in effect.attrs},
        }
    )


class _Scale:
    """Distances from the median of the outcomes, in per cent of the outcomes on that side."""

    def __init__(self, y: ArrayLike, weights: ArrayLike | None = None) -> None:
        values = as_numbers(y, "y")
        if values.ndim != 1 or not len(values) or not np.isfinite(values).all():
            raise ValueError(
                f"y must be one-dimensional, finite and not empty; got shape {values.shape}"
                f"{'' if np.isfinite(values).all() else ' with values that are not finite'}."
            )
        weight = np.ones(len(values))
        if weights is not None:
            index = y.index if isinstance(y, pd.Series) else None
            weight = as_weights(weights, len(values), "precision", index)
        order = np.argsort(values, kind="stable")
        values, weight = values[order], weight[order]
        up_to = np.cumsum(weight)
        half = up_to[-1] / 2 * (1 + np.array([-1e-12, 1e-12]))
        centre = values[np.searchsorted(up_to, half)].mean()  # between two, as of repeated rows
        above, below = values > centre, values < centre
        self.above, self.of_above = values[above] - centre, _shares(weight[above])
        self.below, self.of_below = (centre - values[below])[::-1], _shares(weight[below][::-1])

    def __call__(self, distance: FloatArray) -> FloatArray:
        """Values on the scale from -50 to 50."""
        up = 50 * self.of_above[np.searchsorted(self.above, distance, "right")]
        down = 50 * self.of_below[np.searchsorted(self.below, -distance, "right")]
        return np.where(np.isnan(distance), np.nan, np.where(distance >= 0, up, -down))


def _shares(weight: FloatArray) -> FloatArray:
    """Shares of the weight of the first 0, 1, ... rows."""
    up_to = np.append(0.0, np.cumsum(weight))
    return np.asarray(up_to / np.maximum(up_to[-1:], 1e-300))


def _normalised(
    scale: _Scale, curve: FloatArray, centre: FloatArray, row: FeatureResult, slope: FloatArray
) -> dict[str, FloatArray]:
    """math [32] on the scale of the outcomes, for curves (..., edge)."""
    if row.is_categorical:
        at_edges = scale(curve - centre[..., None])
        share, distance = row["level_share"].values, np.abs(at_edges)
    else:
        stretch = accumulate.known_stretch(row.weight_share)
        pieces = row.pieces.stretch(stretch)
        width, slope = np.diff(pieces.edges), slope[..., stretch]
        centred = curve[..., stretch.start : stretch.stop + 1] - centre[..., None]
        # Places at even shares of the rows in a bin.
        place = accumulate.places(pieces, PLACES)
        rise = (centred[..., 1:] - centred[..., :-1])[..., None] * place
        bend = (slope * width**2)[..., None] / 2 * place * (1 - place)
        at_edges, at_rows = scale(centred), scale(centred[..., :-1, None] + rise - bend)
        share, distance = pieces.share / pieces.share.sum(), np.abs(at_rows).mean(axis=-1)
    ends = {"naler_min": np.min(at_edges, axis=-1), "naler_max": np.max(at_edges, axis=-1)}
    return {"naled": np.sum(share * distance, axis=-1), **ends}


def _source(effect: xr.Dataset) -> str:
    """What the errors vary over."""
    return str(effect["effect_se"].attrs["source"]) if "effect_se" in effect else "rows"


def _without_noise(row: FeatureResult, sizes: dict[str, float], square: Square) -> dict[str, float]:
    """Sizes without the part of the noise: those of the curve shrunk to its corrected square."""
    raw = sizes["importance"]
    size = square.size if np.isfinite(square.corrected) else np.nan
    shrunk = size / raw if raw > 0 else 1.0
    # Without the sign that a product with 0 may have.
    out = {f"{name}_corrected": shrunk * sizes[name] + 0.0 for name in SIZES}
    index = float(np.nansum(np.diff(row.bin_edges) * row["heterogeneity"].values ** 2))
    index *= float(row[AXIS_SHARE]) if AXIS_SHARE in row else 1.0
    index = index if np.isfinite(sizes["heterogeneity_index"]) else np.nan
    return out | {
        "heterogeneity_index_corrected": index,
        "heterogeneity_output_corrected": sizes["heterogeneity_output"],
        "importance_p_value": square.p_value(),
    }


def feature_sizes(
    row: FeatureResult, boot: xr.Dataset | None = None, scale: _Scale | None = None
) -> tuple[dict[str, float], Square, dict[str, FloatArray]]:
    """Sizes of one feature by name, the square of its curve, and replicates of the sizes."""
    sizes, centre, square = _of_curve(row)
    sizes["heterogeneity_index"] = row.heterogeneity_index
    sizes["heterogeneity_output"] = float(row["heterogeneity_output"])
    corrected = _without_noise(row, sizes, square)
    curve = row.at_bins("curve")
    if scale is not None:
        sizes |= dict.fromkeys(NORMALISED, np.nan)
        corrected |= dict.fromkeys((f"{name}_corrected" for name in NORMALISED), np.nan)
        if not np.isnan(curve).all():
            mean = np.array(centre)
            normalised = _normalised(scale, curve, mean, row, row.slopes)
            sizes |= {name: float(value) for name, value in normalised.items()}
            raw = sizes["importance"]
            shrunk = corrected["importance_corrected"] / raw if raw > 0 else 1.0
            shrunk_curve = centre + shrunk * (curve - centre)
            normalised = _normalised(scale, shrunk_curve, mean, row, shrunk * row.slopes)
            corrected |= {f"{name}_corrected": float(value) for name, value in normalised.items()}
    draws = {} if boot is None else _draws(row, boot, scale, list(sizes))
    return sizes | corrected, square, draws


def _draws(
    row: FeatureResult, boot: xr.Dataset, scale: _Scale | None, names: Sequence[str]
) -> dict[str, FloatArray]:
    has_curve = not np.isnan(row["curve"].values).all()
    draws = {name: draws_of(boot, name) for name in names if name in boot}
    if scale is not None:
        n_bins = row.sizes["bin"]
        curves = draws_of(boot, "curve")[:, : n_bins + 1]
        slope = draws_of(boot, "slope")[:, :n_bins] if "slope" in boot else np.zeros(n_bins)
        draws |= dict.fromkeys(NORMALISED, np.full(len(curves), np.nan))
        if has_curve:
            draws |= _normalised(scale, curves, draws_of(boot, "curve_mean"), row, slope)
    # A feature without a curve has no sizes, even where it has a spread.
    return {name: np.where(has_curve, values, np.nan) for name, values in draws.items()}


def _with_intervals(
    sizes: xr.Dataset, each: Sequence[Mapping[str, FloatArray]], source: str, level: float
) -> xr.Dataset:
    intervals = {}
    for name in each[0]:
        estimate, (dims, long_name, units) = sizes[name].values, EFFECT_VARIABLES[name]
        draws = np.stack([draws_of_feature[name] for draws_of_feature in each], axis=1)
        facts = Facts(dims, long_name, units, long_name, source)
        ends, _ = by_replicates(
            Estimate(estimate, facts, replicates=Replicates(draws, source)), level, "bca"
        )
        method = "bootstrap, bias-corrected percentile"
        intervals[f"{name}_ci"] = interval(facts, ends, level, method)
    return sizes.assign(intervals).assign_coords(BOUNDS)


def square_of_levels(row: FeatureResult) -> Square:
    """Mean square of the curve of a feature with levels, which is given at these."""
    share, curve = row["level_share"].values, row["curve"].values
    weight = np.diag(share) - np.outer(share, share)
    if "curve_cov" not in row:
        return _unknown(curve, weight)
    degrees = bin_degrees(row)
    if row.stores_errors:
        denominator = float(degrees.min())
    else:
        # As if steps were independent.
        at_levels = np.arange(len(share), dtype=np.float64)
        level = categories.loadings(share, at_levels, "mean").level
        variance = np.diagonal(row.effect_cov)
        parts = np.einsum("ek,ef,fk->k", level, weight, level) * variance
        denominator = float(satterthwaite(*zip(parts, degrees, strict=True)))
    return quadratic.square(curve, weight, row["curve_cov"].values, denominator)


def square_of_curve(row: FeatureResult, fit: CurveErrors) -> Square:
    """Mean square of the curve of a feature with an axis, from values at edges and slopes."""
    pieces = fit.pieces
    linear = np.flatnonzero(pieces.slope != 0)
    third, fourth = [fit.cells.line[fit.cells.stretch][:, column] for column in (0, 1)]
    weight = moments_of_rows(pieces, third, fourth, linear)
    value = np.concatenate([fit.curve, pieces.slope[linear]])
    loadings = influence.loadings(pieces, pieces.edges, "start")
    if not row.has_covariance:
        covariance = influence.covariance(loadings, fit.noise, None)
        if len(linear):
            # Sums for the slopes, each of which is estimated in its own bin.
            shared = loadings.level * fit.noise.covariance + loadings.tilt * fit.noise.slope
            covariance = _blocks(covariance, shared[:, linear], np.diag(fit.noise.slope[linear]))
        # What every cell adds to the expectation.
        hats = weight[: len(pieces.edges), : len(pieces.edges)]
        parts = np.einsum("ek,ef,fk->k", loadings.level, hats, loadings.level) * fit.noise.mean
        every = np.zeros((1, len(fit.cells.bin)))
        every[:, fit.cells.stretch] = np.nan_to_num(parts)
        expected = np.array([every.sum()])
        denominator = float(fit.cells.sources(every).satterthwaite(expected)[0])
    else:
        covariance = _stored(row, fit, linear)
        denominator = float(bin_degrees(row).min())
    return quadratic.square(value, weight, covariance, denominator)


def _stored(row: FeatureResult, fit: CurveErrors, linear: NDArray[np.intp]) -> FloatArray:
    """The covariance that standard errors by groups left behind."""
    stretch = fit.cells.edge_stretch
    covariance = row["curve_cov"].values[stretch, stretch]
    if len(linear):
        bins = linear + fit.cells.stretch.start
        shared = row["curve_slope_cov"].values[stretch][:, bins]
        covariance = _blocks(covariance, shared, row["slope_cov"].values[np.ix_(bins, bins)])
    return np.asarray(covariance)


def _blocks(first: FloatArray, shared: FloatArray, second: FloatArray) -> FloatArray:
    return np.block([[first, shared], [shared.T, second]])


def _unknown(value: FloatArray, weight: FloatArray) -> Square:
    none = float("nan")
    return Square(float(value @ weight @ value), none, none, none, none)


def moments_of_rows(
    pieces: Pieces, third: FloatArray, fourth: FloatArray, linear: NDArray[np.intp]
) -> FloatArray:
    """Covariance over the rows of what a curve is a sum of: (edge and slope, edge and slope).

    Between two edges a curve is (1 - u) F_l + u F_r, u the place of the row, and below that by
    slope (x - l)(r - x) / 2 in a linear bin.
    """
    n, share = len(pieces.mean), pieces.share
    width, x2 = np.diff(pieces.edges), pieces.x_variance
    left, right = pieces.x_mean - pieces.edges[:-1], pieces.edges[1:] - pieces.x_mean
    both = share * (left * right - x2) / width**2
    mean = np.zeros(n + 1 + len(linear))
    mean[:n] += share * right / width
    mean[1 : n + 1] += share * left / width
    total = np.zeros((len(mean), len(mean)))
    left_edge = np.arange(n)
    total[left_edge, left_edge] += share * (right**2 + x2) / width**2
    total[left_edge + 1, left_edge + 1] += share * (left**2 + x2) / width**2
    total[left_edge, left_edge + 1] = total[left_edge + 1, left_edge] = both
    if len(linear):
        p, a, b, v, h = [values[linear] for values in (share, left, right, x2, width)]
        m3, m4 = third[linear], fourth[linear]
        bump = n + 1 + np.arange(len(linear))
        inside = a * b - v
        mean[bump] = -p * inside / 2
        square = (a * b) ** 2 + (b - a) ** 2 * v + m4 - 2 * a * b * v - 2 * (b - a) * m3
        total[bump, bump] = p * square / 4
        rising = (a * inside + (b - a) * v - m3) / h
        total[bump, linear + 1] = total[linear + 1, bump] = -p * rising / 2
        falling = inside - rising
        total[bump, linear] = total[linear, bump] = -p * falling / 2
    return np.asarray(total - np.outer(mean, mean))


# What depends on the order of levels, and says nothing where that is arbitrary.
OF_THE_ORDER = ("average_effect", "heterogeneity_index", "heterogeneity_output")


class ForestData(NamedTuple):
    """Numbers (feature,) with intervals (end, feature), and from replicates (chain, feature).

    ``variable`` is what they are of, and ``order`` the places of features in it. ``unordered`` are
    features without a number because their levels have no order. ``method`` and ``source`` say how
    the intervals are made, and of what. ``rows`` are those of the rows alone, where the intervals
    hold the model too.
    """

    variable: xr.DataArray
    order: NDArray[np.intp]
    point: FloatArray
    interval: FloatArray
    chains: FloatArray | None
    unordered: NDArray[np.bool_]
    method: str
    source: str
    rows: FloatArray | None


def forest_data(result: object, what: str, level: float) -> ForestData:
    """Numbers of an effect, of its sizes, or of replicates, whoever made them."""
    if not isinstance(result, xr.Dataset):
        raise TypeError(
            f"effect must be a Dataset that rhale, effect_sizes or bootstrap returned; got "
            f"{type(result).__name__}."
        )
    effect = in_order(result)
    if has_moments(effect) and kept_interval(effect, what, level) is None:
        effect = confint(effect, level=level)
    values, chains, rows = _per_feature(effect, what), None, None
    if "draw" in values.dims:
        method, source = "quantiles of the replicates", str(effect.attrs.get("source", "rows"))
        point, interval, chains = _replicate_quantiles(effect, what, level)
    else:
        point = np.asarray(values.values, dtype=np.float64)
        stored = _interval_of(effect, what, level)
        if (of_rows := with_rows_alone(effect).get(f"{what}{ROWS}")) is not None:
            rows = np.asarray(of_rows.transpose("ci_bound", ...).values, dtype=np.float64)
        interval = np.asarray(stored.transpose("ci_bound", ...).values, dtype=np.float64)
        method = str(stored.attrs.get("method", "confidence interval"))
        source = str(stored.attrs.get("source", "rows"))
    unordered = meaning.is_unordered(effect) & (what in OF_THE_ORDER)
    unknown = unordered | np.isnan(point)
    if "feature_kind" in effect.coords:
        unknown |= effect["feature_kind"].values == "constant"
    point = np.where(unknown, np.nan, point)
    order = np.argsort(-np.abs(point), kind="stable")  # NaN comes last

    def in_turn(part: FloatArray) -> FloatArray:
        return np.where(unknown, np.nan, part)[:, order]

    return ForestData(
        values,
        order,
        point[order],
        in_turn(interval),
        None if chains is None else in_turn(chains),
        unordered[order],
        method,
        source,
        None if rows is None else in_turn(rows),
    )


def _per_feature(effect: xr.Dataset, what: str) -> xr.DataArray:
    """One variable over (feature) or (chain, draw, feature); else ``ValueError``."""
    allowed = [{"feature"}, {"chain", "draw", "feature"}]
    numbers = [
        str(name)
        for name, array in effect.data_vars.items()
        if set(array.dims) in allowed and array.dtype.kind == "f"
    ]
    if what not in numbers:
        with_intervals = [
            name
            for name in numbers
            if "draw" in effect[name].dims or f"{name}_ci" in effect or f"{name}_se" in effect
        ]
        missing = (
            "is over " + ", ".join(map(str, effect[what].dims)) if what in effect else "is not"
        )
        raise ValueError(
            f"what must name a variable of effect with one number per feature; {what!r} {missing}"
            f"{'' if what in effect else ' in it'}. Variables with intervals: "
            f"{', '.join(with_intervals) or 'none'}. Sizes are in effect_sizes(effect, boot)."
        )
    return effect[what]


def _replicate_quantiles(
    boot: xr.Dataset, what: str, level: float
) -> tuple[FloatArray, FloatArray, FloatArray | None]:
    """Medians and outer quantiles over all chains, and of several chains the median of each."""
    with warnings.catch_warnings():
        # A constant feature has no replicates.
        warnings.filterwarnings("ignore", "All-NaN slice", RuntimeWarning)
        shares = [(1 - level) / 2, 0.5, (1 + level) / 2]
        low, middle, high = np.nanquantile(draws_of(boot, what), shares, axis=0)
        chains = None
        if boot.sizes["chain"] > 1:
            of_chains = boot[what].transpose("chain", "draw", "feature").values
            chains = np.nanmedian(of_chains, axis=1)
    return middle, np.stack([low, high]), chains


def _interval_of(effect: xr.Dataset, what: str, level: float) -> xr.DataArray:
    """Interval that a Dataset has; else ``ValueError``, also where it is of another level."""
    if f"{what}_ci" not in effect:
        raise ValueError(
            f"what must have an interval; effect holds {what!r} without one. Call confint(effect), "
            f"or draw boot = bootstrap(local, effect), or effect_sizes(effect, boot)."
        )
    stored = effect[f"{what}_ci"]
    other = float(stored.attrs.get("ci_prob", np.nan))
    if not np.isclose(other, level):
        raise ValueError(
            f"level must be {other:g}, that of the intervals of {what!r} in effect; got {level:g}. "
            f"Make them again with that level, or draw the bootstrap itself."
        )
    return stored
