"""The facts of an explanation, one value a feature, from what was computed."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rhale_stats.answers import sentences
from rhale_stats.arrays import intervals
from rhale_stats.arrays.answers import (
    half_width_of_places,
    half_widths,
    hidden_in,
    inner_range,
    range_of,
    shape_of,
    stretches,
    verdict,
    with_places,
)
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.effects.errors import covariance_at_edges
from rhale_stats.effects.sizes import feature_sizes
from rhale_stats.effects.tables import share_along_axis
from rhale_stats.effects.values import asked_for, inner
from rhale_stats.explanation.curves import (
    GAP,
    NO_SPLITS,
    SMALL,
    SMALL_ROWS,
    UNKNOWN,
    YES,
    FeatureCurves,
    RowSpread,
    Splits,
)
from rhale_stats.explanation.described import described
from rhale_stats.explanation.outcome import SQUARES
from rhale_stats.explanation.request import ExplainRequest
from rhale_stats.models.sample import levels_of
from rhale_stats.outcome.outcome_effects import USUAL
from rhale_stats.schema.curves import interpolation
from rhale_stats.schema.feature_result import FeatureResult, Result, each_feature, one_feature
from rhale_stats.schema.features import label_of, units_in, units_of
from rhale_stats.schema.levels import NOMINAL, level_names
from rhale_stats.schema.padding import padded
from rhale_stats.schema.variables import dataset_of

# A leg of a shape is longer than this share of the range; "overall" is said where changes of this
# size against the direction of a leg are not excluded.
MIN_LEG = 0.05
# More levels that may be the highest are not named.
MAX_HIGHEST = 3
# Facts of one feature, by name.
Words = dict[str, Any]


class FactInputs(NamedTuple):
    """Everything that facts are made of; splits and outcomes come after the sizes."""

    request: ExplainRequest
    curves: FeatureCurves
    rows: RowSpread
    delta: float
    level: float
    percentiles: tuple[float, float]
    splits: Splits = NO_SPLITS
    outcome: xr.Dataset | None = None
    # What numbers in texts are multiplied by: 100 for percentage points.
    shown_times: float = 1.0


class Inner(NamedTuple):
    """A curve over the inner rows of its feature, between the percentiles asked for.

    ``half`` are half-widths of intervals of all differences of two of its values (math [109]).
    ``usual`` are the facts about the usual values of the feature, from and to, and the change of
    the curve between them; empty and NaN for levels without an order.
    """

    places: FloatArray
    texts: list[str]
    curve: FloatArray
    half: FloatArray
    usual: Words


NO_CHANGE: Words = {
    "usual_from": "",
    "usual_to": "",
    "usual_change": np.nan,
    "usual_change_ci": [np.nan, np.nan],
}


def inner_of(inputs: FactInputs, row: FeatureResult, rng: np.random.Generator) -> Inner:
    """Levels and edges beyond the percentiles are left out, and the curve ends at these."""
    name, request, level, percentiles = row.name, inputs.request, inputs.level, inputs.percentiles
    numbers_of_edges = row.bin_edge_numbers
    covariance = covariance_at_edges(row, inputs.curves.features[row.position].fit)
    covariance = covariance[np.ix_(numbers_of_edges, numbers_of_edges)]
    curve, edges, units = row.at_bins("curve"), row.bin_edges, units_in(row)
    weigh, ends = np.eye(len(curve)), np.zeros((2, len(curve)))
    if not row.is_categorical:
        x = request.table.column(request.table.names.index(name))
        low, high = inner_range(x, request.share, percentiles)
        usual = np.clip(inner_range(x, request.share, USUAL), edges[0], edges[-1])
        ends, usual_texts = interpolation(edges, usual), sentences.axis_texts(usual, units, 100)
        places = np.r_[low, edges[(edges > low) & (edges < high)], high]
        weigh, texts = interpolation(edges, places), sentences.axis_texts(places, units)
        # Bins whose shape is not known take no part.
        reliable = row["reliable"].values[np.clip(np.searchsorted(edges, places[1:]) - 1, 0, None)]
        step = np.where(np.isin(reliable, [UNKNOWN, GAP])[:, None], 0.0, np.diff(weigh, axis=0))
        weigh = np.cumsum(np.vstack([weigh[:1], step]), axis=0)
    else:
        names, places = sentences.places(row), np.arange(float(len(curve)))
        share, ordered = row["level_share"].values, str(row["feature_kind"].values) != NOMINAL
        two = (0, 1) if len(curve) == 2 else inner_range(places, share, USUAL)
        has_usual = ordered or len(curve) == 2
        usual_texts = [names[int(position)] for position in two] if has_usual else []
        ends = weigh[np.array(two, dtype=int)]
        if ordered:
            low, high = inner_range(places, share, percentiles)
            places = places[(places >= low) & (places <= high)]
            weigh = weigh[places.astype(int)]
        texts = [names[int(place)] for place in places]
    degrees = np.inf if request.groups is None else float(max(request.groups.max(), 1))
    half = half_widths(weigh @ covariance @ weigh.T, level, rng, degrees)
    usual_facts = NO_CHANGE
    if usual_texts:
        step = ends[1] - ends[0]
        # Rounding may leave a variance of no change below 0.
        error = np.sqrt(max(float(step @ covariance @ step), 0.0))
        change = float(step @ curve)
        width = float(intervals.student(level, degrees)) * error
        interval = [change - width, change + width]
        usual_facts = dict(zip(NO_CHANGE, (*usual_texts, change, interval), strict=True))
    return Inner(places, texts, weigh @ curve, half, usual_facts)


def shape_of_curve(row: FeatureResult, inner: Inner, matters: str) -> tuple[str, list[float]]:
    """Words for how the curve goes, and where it turns (math [109])."""
    if matters == "hardly":
        return "nearly flat", []
    if matters == "cannot tell":
        return "cannot tell", []
    curve, half = inner.curve, inner.half
    if row.is_categorical:
        top = int(curve.argmax())
        is_near = ~(curve[top] - curve > half[top])
        near = [inner.texts[position] for position in np.flatnonzero(is_near)]
        if len(sentences.places(row)) == 2:
            return (f"higher at {near[0]}" if len(near) == 1 else "no clear shape"), []
        if str(row["feature_kind"].values) == NOMINAL:
            highest = f"highest at {' or '.join(near)}"
            return (highest if len(near) <= MAX_HIGHEST else "differs between levels"), []
    least = MIN_LEG * float(np.ptp(curve))
    shape = shape_of(curve, np.maximum(half, least))
    if not shape.legs:
        return "no clear shape", []
    turns = [float(inner.places[turn]) for turn in shape.turns]
    if len(shape.legs) > 2:
        return f"goes up and down ({len(turns)} turns)", turns
    words = ", then ".join("rises" if leg > 0 else "falls" for leg in shape.legs)
    if not hidden_in(curve, half, shape) <= least:
        words += " overall"
        if not turns and not shape.legs[0] * (curve[-1] - curve[0]) > half[0, -1]:
            return "no clear shape", []
    return (f"{words} (turns near {inner.texts[shape.turns[0]]})" if turns else words), turns


# --- facts ----------------------------------------------------------------------------------------


MAX_STRETCHES = 3
# Share of the rows above which an exception is none.
RARE = 0.25
# Standard deviations from the 10 % to the 90 % point of a normal distribution.
NORMAL_CHANGE = 2.56


class FeatureSizes(NamedTuple):
    """How much the average curve and the rows move, before splits are looked for."""

    importance: FloatArray
    importance_ci: FloatArray
    matters: list[str]
    rows_differ: list[str]
    movement: FloatArray
    # The average curve of each feature at the places of the rows.
    at_rows: list[FloatArray]


def sizes_of(inputs: FactInputs) -> FeatureSizes:
    """Importance without noise, and verdicts."""
    request, curves, rows, delta, level, percentiles, *_ = inputs
    within = each_feature(inner(asked_for(curves.effect, percentiles)))
    sizes, squares, _ = zip(*map(feature_sizes, within), strict=True)
    importance = np.nan_to_num([of_curve["importance_corrected"] for of_curve in sizes])
    ends = np.stack([square.interval(level) for square in squares])
    widest = np.column_stack([np.zeros(len(ends)), np.where(importance > 0, np.inf, 0)])
    ends = np.where(np.isnan(ends).any(axis=1, keepdims=True), widest, ends)
    at_rows = [_curve_at_rows(request, row) for row, _ in curves.features]
    for position, values in enumerate(at_rows):
        half = half_width_of_places(values, request.share, request.groups, level, request.counts)
        ends[position] = with_places(float(importance[position]), ends[position], half)
    gone = _not_estimable(curves.effect)
    importance[gone] = rows.spread[gone] = ends[gone] = rows.interval[gone] = np.nan
    return FeatureSizes(
        importance,
        ends,
        [verdict(low, high, delta) for low, high in ends],
        [verdict(low, high, delta) for low, high in rows.interval],
        np.sqrt(np.nan_to_num(importance) ** 2 + np.nan_to_num(rows.spread) ** 2),
        at_rows,
    )


def _not_estimable(effect: Result) -> NDArray[np.bool_]:
    """Features whose curve the fit of the model does not determine (`models.design`)."""
    unknown = np.isnan(effect["curve"].values).all(axis=-1)
    return np.asarray(unknown & (effect["n_bins"].values > 0))


def answers_of(
    inputs: FactInputs, sizes: FeatureSizes, rng: np.random.Generator, in_data: list[Words]
) -> xr.Dataset:
    """The group ``answers`` of an explanation, features in the order of their movement.

    Those with an effect in the data come first, by the size of their change in the data.
    """
    effect = inputs.curves.effect
    lines = []
    for position, name in enumerate(inputs.request.features):
        row = one_feature(effect, position)
        line = {
            **_of_curve(inputs, row, sizes.matters[position], rng),
            **_of_splits(inputs, name),
            **in_data[position],
            "exception": _exception(inputs, row, position, sizes),
            "label": label_of(row, name),
            "feature_kind": str(row["feature_kind"].values),
            "feature_units": str(row["feature_units"].values),
        }
        if inputs.outcome is not None:
            line["fit_differs"] = _fit_differs(inputs, name)
        lines.append(line)
    is_in_data = np.array([line["in_data"] == "yes" for line in lines])
    change = np.abs([float(line.get("in_data_change", np.nan)) for line in lines])
    # Levels without an order have no usual values.
    change = np.where(np.isnan(change), NORMAL_CHANGE * sizes.movement, change)
    order = np.lexsort([-np.where(is_in_data, change, sizes.movement), ~is_in_data])
    rows_interval = inputs.rows.interval * (np.nan if inputs.curves.has_parameters else 1.0)
    columns = {
        "importance": sizes.importance,
        "importance_ci": sizes.importance_ci,
        "row_spread": inputs.rows.spread,
        "row_spread_ci": rows_interval,
        "movement": sizes.movement,
        "matters": sizes.matters,
        "rows_differ": sizes.rows_differ,
        **{name: [line[name] for line in lines] for name in lines[0]},
    }
    if inputs.outcome is not None:
        for name in ("permutation_importance", "permutation_importance_ci"):
            columns[name] = inputs.outcome.variables[name].values
    columns = {name: _column(name, values, order) for name, values in columns.items()}
    coords: dict[str, Any] = {name: columns.pop(name) for name in LABELS}
    coords["feature"] = ("feature", np.array(inputs.request.features)[order])
    coords["ci_bound"] = ("ci_bound", ["lower", "upper"])
    out = dataset_of(columns, coords, _attributes(inputs, sizes))
    loss = "1" if "auc" in out.attrs else SQUARES
    return described(out, permutation_importance=loss)


# What is said of a feature itself.
LABELS = ("label", "feature_kind", "feature_units")


def _column(name: str, values: Any, order: IntArray) -> tuple[Any, NDArray[Any]]:
    """Dims and values of a fact of all features in their order; turns are padded."""
    dims = ("feature", "turn") if name == "turns" else ("feature", "ci_bound")
    array = np.asarray(padded(values) if name == "turns" else values)[order]
    return dims[: array.ndim], array


def _attributes(inputs: FactInputs, sizes: FeatureSizes) -> dict[str, Any]:
    request, share = inputs.request, inputs.request.share
    mean, deviation = float(share @ request.predicted), request.deviation
    out: dict[str, Any] = {
        "delta": inputs.delta,
        "prediction_mean": mean,
        "prediction_sd": deviation,
        "additive_r2": _additive(request, np.sum(sizes.at_rows, axis=0), deviation),
    }
    for name in ("output_name", "output_units", "output_label"):
        out[name] = str(inputs.curves.effect.attrs.get(name, ""))
    out["missing"] = _missing(inputs)
    return out if inputs.outcome is None else out | inputs.outcome.attrs


def _missing(inputs: FactInputs) -> str:
    """What became of rows without a value, by feature; empty if all rows have all values."""
    table = inputs.request.table
    counts = {
        name: int(table.series(table.names.index(name)).isna().sum())
        for name in inputs.request.features
    }
    named = ", ".join(f"{name} ({count})" for name, count in counts.items() if count)
    if not named:
        return ""
    if inputs.request.options.missing == "drop":
        return f"left out of the curve of their feature: {named}"
    return f"kept, beside the axis or as a level: {named}"


def _additive(request: ExplainRequest, total: FloatArray, deviation: float) -> float:
    """Share of the variance of the predictions that ``total``, all curves together, reproduces."""
    # Rows without a value of some feature, or beside its curve, have no sum.
    finite = np.isfinite(total)
    if deviation == 0 or not finite.any():
        return float("nan")
    share = request.share[finite] / request.share[finite].sum()
    predicted = request.predicted[finite] - share @ request.predicted[finite]
    rest = predicted - (total[finite] - share @ total[finite])
    variance = float(share @ predicted**2)
    return 1 - float(share @ rest**2) / variance if variance > 0 else float("nan")


def _curve_at_rows(request: ExplainRequest, row: FeatureResult) -> FloatArray:
    """The average curve of one feature at the places of the rows."""
    position = request.table.names.index(row.name)
    if row.name not in request.levels:
        return row.curve.evaluate(request.table.column(position))
    levels, names = levels_of(request, position), level_names(row)
    if not row.sizes["bin"]:  # one level with weight
        return np.zeros(len(levels.code))
    # A row without a level has the code -1, and so the last value.
    of_level = dict(zip(names, row["curve"].values, strict=True))
    return np.array([*(of_level.get(text, np.nan) for text in levels.texts), np.nan])[levels.code]


def _of_curve(
    inputs: FactInputs, row: FeatureResult, matters: str, rng: np.random.Generator
) -> Words:
    if not row.sizes["bin"]:
        return FLAT
    if _not_estimable(row):
        none: Words = {"range": np.nan, "range_ci": [np.nan, np.nan], **NO_CHANGE}
        why = f"not estimable, {row.attrs.get('not_estimable', 'by the fit')}"
        return FLAT | none | {"shape": "cannot tell", "unreliable": why}
    inner = inner_of(inputs, row, rng)
    span, check, bias_share = range_of(inner.curve, inner.half), inputs.curves.check, np.nan
    if check is not None and row.name in check["feature"].values:
        bias_share = share_along_axis(one_feature(check, row.name))
    shape, turns = shape_of_curve(row, inner, matters)
    return {
        "range": span.range,
        "range_ci": [span.lower, span.upper],
        **inner.usual,
        "lowest_at": inner.texts[span.lowest],
        "highest_at": inner.texts[span.highest],
        "shape": shape,
        "turns": turns,
        "unreliable": _unreliable(row),
        "bias_share": bias_share,
    }


FLAT: Words = {
    "range": 0.0,
    "range_ci": [0.0, 0.0],
    **NO_CHANGE,
    "usual_change": 0.0,
    "usual_change_ci": [0.0, 0.0],
    "lowest_at": "",
    "highest_at": "",
    "shape": "nearly flat",
    "turns": [],
    "unreliable": "",
    "bias_share": np.nan,
}


def _unreliable(row: FeatureResult) -> str:
    """Stretches where the curve is not known, as text."""
    if row.is_categorical:
        levels = zip(sentences.places(row), row["n_level_effective"].values, strict=False)
        few = [text for text, n in levels if n < SMALL_ROWS]
        return f"few rows: {sentences.listed(few)}" if few else ""
    kinds = row["reliable"].values[: row.sizes["bin"]]
    if (kinds == YES).all():
        return ""
    texts, phrases = sentences.places(row), []
    for kind in (UNKNOWN, SMALL, GAP):
        runs = [f"{texts[begin]} to {texts[end + 1]}" for begin, end in stretches(kinds == kind)]
        if len(runs) == 1 and (kinds == kind).all():
            phrases.append(f"{kind}: everywhere")
        elif runs:
            phrases.append(f"{kind}: {sentences.listed(runs, MAX_STRETCHES)}")
    return "; ".join(phrases)


def _exception(inputs: FactInputs, row: FeatureResult, position: int, sizes: FeatureSizes) -> str:
    """Where a feature that hardly matters does: beyond delta from the middle of the curve."""
    verdicts = {sizes.matters[position], sizes.rows_differ[position]}
    if verdicts != {"hardly"} or not row.sizes["bin"]:
        return ""
    reach, curve = row.at_bins("curve_band"), row.at_bins("curve")
    # The median over the rows: at their levels, or by the middles of the bins.
    value, share = (curve[:-1] + curve[1:]) / 2, row.weight_share
    if row.is_categorical:
        value, share = curve, row["level_share"].values[: len(curve)]
    middle = np.quantile(value, 0.5, weights=share, method="inverted_cdf")
    far = (reach[:, 0] > middle + inputs.delta) | (reach[:, 1] < middle - inputs.delta)
    if row.is_categorical:
        total = float(share[far].sum())
        names = [text for text, is_far in zip(sentences.places(row), far, strict=True) if is_far]
        if not names or total > RARE:
            return ""
        return f"at {sentences.listed(names)} ({sentences.percent(total)} of the rows)"
    inside = far[:-1] | far[1:]
    runs = stretches(inside)
    total = float(share[inside].sum())
    if not runs or total > RARE:
        return ""
    texts = sentences.places(row)
    begin, end = max(runs, key=lambda run: share[run[0] : run[1] + 1].sum())
    part = float(share[begin : end + 1].sum())
    return f"between {texts[begin]} and {texts[end + 1]} ({sentences.percent(part)} of the rows)"


def _of_splits(inputs: FactInputs, name: str) -> Words:
    by, rule, drop, pvalue = inputs.splits.first.get(name, ("", "", np.nan, np.nan))
    out: Words = {
        "split_tried": name in inputs.splits.first,
        "split_by": by,
        "split_rule": rule,
        "split_drop": drop,
        # The permutation test takes the model as given: it does not go with the other intervals.
        "split_pvalue": np.nan if inputs.curves.has_parameters else pvalue,
    }
    split = inputs.splits.accepted.get(name)
    between = None if split is None else split.contrast
    if between is None:
        return out | {"apart": np.nan, "apart_ci": [np.nan, np.nan], "apart_at": ""}
    places, apart, *ends = between
    first, second = sentences.axis_texts(places, units_of(inputs.curves.effect, name), 100)
    return out | {"apart": apart, "apart_ci": ends, "apart_at": f"{second} instead of {first}"}


def _fit_differs(inputs: FactInputs, name: str) -> str:
    """The place where the model is off most, of those where it is by more than delta."""
    assert inputs.outcome is not None
    outcome = inputs.outcome.sel(feature=name)
    residual, ends = outcome["residual"].values, outcome["residual_ci"].values
    off = outcome["residual_pvalue_adjusted"].values <= 1 - inputs.level
    off &= np.abs(residual) > inputs.delta
    if not off.any():
        return ""
    place = int(np.nanargmax(np.where(off, np.abs(residual), np.nan)))
    times = inputs.shown_times
    size = sentences.estimate(times * float(residual[place]), times * ends[place])
    if level := str(outcome["place_level"].values[place]):
        return f"at {level} by {size}"
    edges = np.concatenate([outcome["place_left"].values, outcome["place_right"].values])
    texts = sentences.axis_texts(edges, units_of(inputs.curves.effect, name))
    return f"between {texts[place]} and {texts[len(residual) + place]} by {size}"
