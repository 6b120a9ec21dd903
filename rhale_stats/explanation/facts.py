"""The facts of an explanation, one value a feature, from what was computed."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rhale_stats.answers import numbers
from rhale_stats.arrays.answers import (
    half_width_of_places,
    range_of,
    stretches,
    verdict,
    with_places,
)
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.explanation.curves import FEW, FEW_ROWS, GAP, UNKNOWN, Curves
from rhale_stats.explanation.described import described
from rhale_stats.explanation.outcome import SQUARES, Outcome
from rhale_stats.explanation.request import Request
from rhale_stats.explanation.rows import RowSpread
from rhale_stats.explanation.shapes import inner_of, shape_of_curve
from rhale_stats.explanation.splits import Splits
from rhale_stats.generics.sizes import effect_sizes
from rhale_stats.generics.values import predict
from rhale_stats.schema.features import one_feature, units_of
from rhale_stats.schema.levels import is_categorical, level_names

MOST_STRETCHES = 3
# Share of the rows above which an exception is none.
RARE = 0.25
# Standard deviations from the 10 % to the 90 % point of a normal distribution.
NORMAL_CHANGE = 2.56
Words = dict[str, Any]


class Found(NamedTuple):
    """Everything that facts are made of."""

    asked: Request
    curves: Curves
    rows: RowSpread
    splits: Splits
    outcome: Outcome | None
    delta: float
    level: float
    percentiles: tuple[float, float]


class Sizes(NamedTuple):
    """How much the average curve and the rows move, before splits are looked for."""

    importance: FloatArray
    importance_ci: FloatArray
    matters: list[str]
    rows_differ: list[str]
    movement: FloatArray


def sizes_of(
    asked: Request,
    curves: Curves,
    rows: RowSpread,
    delta: float,
    level: float,
    percentiles: tuple[float, float],
) -> Sizes:
    """Importance without noise, and verdicts."""
    found = effect_sizes(curves.effect, level=level, percentiles=percentiles)
    importance = np.nan_to_num(found["importance_corrected"].values)
    ends = np.array(found["importance_ci"].transpose("feature", "ci_bound").values)
    unknown = np.isnan(ends).any(axis=1)
    ends[unknown] = np.column_stack([np.zeros(len(ends)), np.where(importance > 0, np.inf, 0)])[
        unknown
    ]
    for at, name in enumerate(asked.features):
        value = _curve_at_rows(asked, curves.effect, name)
        half = half_width_of_places(value, asked.share, asked.groups, level)
        ends[at] = with_places(float(importance[at]), ends[at], half)
    gone = _not_estimable(curves.effect)
    importance[gone] = rows.spread[gone] = ends[gone] = rows.interval[gone] = np.nan
    return Sizes(
        importance,
        ends,
        [verdict(low, high, delta) for low, high in ends],
        [verdict(low, high, delta) for low, high in rows.interval],
        np.sqrt(np.nan_to_num(importance) ** 2 + np.nan_to_num(rows.spread) ** 2),
    )


def _not_estimable(effect: xr.Dataset) -> NDArray[np.bool_]:
    """Features whose curve the fit of the model does not determine (`models.design`)."""
    return np.asarray((effect["curve"].isnull().all("edge") & (effect["n_bins"] > 0)).values)


def answers_of(
    found: Found, sizes: Sizes, rng: np.random.Generator, in_data: list[Words]
) -> xr.Dataset:
    """The group ``answers`` of an explanation, features in the order of their movement.

    Those with an effect in the data come first, by the size of their change in the data.
    """
    effect = found.curves.effect
    lines = []
    for at, name in enumerate(found.asked.features):
        row = one_feature(effect, at)
        line = _of_curve(found, row, sizes.matters[at], rng) | _of_splits(found, name) | in_data[at]
        line["exception"] = _exception(found, row, at, sizes)
        line["label"] = label_of(found.asked, name)
        line["feature_kind"] = str(effect["feature_kind"].values[at])
        line["feature_units"] = str(effect["feature_units"].values[at])
        if found.outcome is not None:
            line["fit_differs"] = _fit_differs(found, name)
        lines.append(line)
    is_in_data = np.array([line["in_data"] == "yes" for line in lines])
    change = np.abs([float(line.get("in_data_change", np.nan)) for line in lines])
    # Levels without an order have no usual values.
    change = np.where(np.isnan(change), NORMAL_CHANGE * sizes.movement, change)
    order = np.lexsort([-np.where(is_in_data, change, sizes.movement), ~is_in_data])
    out = xr.Dataset(
        {
            "importance": ("feature", sizes.importance),
            "importance_ci": (("feature", "ci_bound"), sizes.importance_ci),
            "row_spread": ("feature", found.rows.spread),
            "row_spread_ci": (
                ("feature", "ci_bound"),
                found.rows.interval * (np.nan if _has_parameters(found) else 1.0),
            ),
            "movement": ("feature", sizes.movement),
            "matters": ("feature", sizes.matters),
            "rows_differ": ("feature", sizes.rows_differ),
            **_columns(lines),
        },
        {"feature": found.asked.features, "ci_bound": ["lower", "upper"]},
    )
    out = out.set_coords(["label", "feature_kind", "feature_units"])
    if found.outcome is not None:
        for name in ("permutation_importance", "permutation_importance_ci"):
            out[name] = found.outcome.dataset[name]
    out.attrs = _attributes(found)
    loss = "1" if "auc" in out.attrs else SQUARES
    return described(out, permutation_importance=loss).isel(feature=order)


def _has_parameters(found: Found) -> bool:
    """Whether the intervals hold the parameters of the model; what cannot is left out."""
    return "parameters" in found.curves.effect.attrs


def _columns(lines: list[Words]) -> dict[str, Any]:
    """Values of all features by name; turns are padded."""
    out: dict[str, Any] = {}
    n_turns = max((len(line["turns"]) for line in lines), default=0)
    for name in lines[0]:
        values = [line[name] for line in lines]
        if name == "turns":
            turns = np.full((len(lines), n_turns), np.nan)
            for at, one in enumerate(values):
                turns[at, : len(one)] = one
            out[name] = (("feature", "turn"), turns)
        elif name.endswith("_ci"):
            out[name] = (("feature", "ci_bound"), np.array(values, dtype=np.float64))
        else:
            out[name] = ("feature", np.array(values))
    return out


def _attributes(found: Found) -> dict[str, Any]:
    asked, share = found.asked, found.asked.share
    mean, deviation = float(share @ asked.predicted), asked.deviation
    out: dict[str, Any] = {
        "delta": found.delta,
        "prediction_mean": mean,
        "prediction_sd": deviation,
        "additive_r2": _additive(found, deviation),
    }
    for name in ("output_name", "output_units", "output_label"):
        out[name] = str(found.curves.effect.attrs.get(name, ""))
    out["missing"] = _missing(found)
    return out if found.outcome is None else out | found.outcome.facts


def _missing(found: Found) -> str:
    """What became of rows without a value, by feature; empty if all rows have all values."""
    table = found.asked.table
    counts = {
        name: int(table.series(table.names.index(name)).isna().sum())
        for name in found.asked.features
    }
    named = ", ".join(f"{name} ({count})" for name, count in counts.items() if count)
    if not named:
        return ""
    if found.asked.options.missing == "drop":
        return f"left out of the curve of their feature: {named}"
    return f"kept, beside the axis or as a level: {named}"


def _additive(found: Found, deviation: float) -> float:
    """Share of the variance of the predictions that the curves of single features reproduce."""
    asked, effect = found.asked, found.curves.effect
    total = np.zeros(asked.table.n_rows)
    for name in asked.features:
        total += _curve_at_rows(asked, effect, name)
    # Rows without a value of some feature, or beside its curve, have no sum.
    there = np.isfinite(total)
    if deviation == 0 or not there.any():
        return float("nan")
    share = asked.share[there] / asked.share[there].sum()
    predicted = asked.predicted[there] - share @ asked.predicted[there]
    rest = predicted - (total[there] - share @ total[there])
    variance = float(share @ predicted**2)
    return 1 - float(share @ rest**2) / variance if variance > 0 else float("nan")


def _curve_at_rows(asked: Request, effect: xr.Dataset, name: str) -> FloatArray:
    """The average curve of one feature at the places of the rows."""
    position = asked.table.names.index(name)
    if name not in asked.levels:
        return np.asarray(predict(effect, asked.table.column(position), name).values)
    row = one_feature(effect, name)
    code = _codes(asked, position, level_names(row))
    if not row.sizes["bin"]:  # one level with weight
        return np.zeros(len(code))
    return np.where(code >= 0, row["curve"].values[np.maximum(code, 0)], np.nan)


def _codes(asked: Request, position: int, names: list[str]) -> NDArray[np.int64]:
    from rhale_stats.models.levels import levels_of

    levels = levels_of(asked.sample, position)
    number = np.array([names.index(text) if text in names else -1 for text in levels.texts] + [-1])
    return number[levels.code]


def label_of(asked: Request, name: str) -> str:
    """The name of a column for people."""
    labels = asked.sample.whole.attrs.get("labels", {})
    return str(labels.get(name, name)) if isinstance(labels, dict) else name


# --- one curve ------------------------------------------------------------------------------------


def _of_curve(found: Found, row: xr.Dataset, matters: str, rng: np.random.Generator) -> Words:
    if not row.sizes["bin"]:
        return FLAT
    if _not_estimable(row):
        none: Words = dict.fromkeys(("range", "bias_share", "usual_change"), np.nan)
        none |= {name: [np.nan, np.nan] for name in ("range_ci", "usual_change_ci")}
        why = f"not estimable, {row.attrs.get('not_estimable', 'by the fit')}"
        return FLAT | none | {"shape": "cannot tell", "unreliable": why}
    within = (found.level, found.percentiles)
    inner = inner_of(found.asked, found.curves.effect, row, within, rng)
    span = range_of(inner.curve, inner.half)
    usual_from, usual_to, change, change_ci = inner.usual or NO_CHANGE
    shape, turns = shape_of_curve(row, inner, matters)
    return {
        "range": span.range,
        "range_ci": [span.lower, span.upper],
        "usual_from": usual_from,
        "usual_to": usual_to,
        "usual_change": change,
        "usual_change_ci": list(change_ci),
        "lowest_at": inner.texts[span.lowest],
        "highest_at": inner.texts[span.highest],
        "shape": shape,
        "turns": turns,
        "unreliable": _unreliable(row, numbers.places(row)),
        "bias_share": _bias_share(found, str(row["feature"].values)),
    }


NO_CHANGE = ("", "", np.nan, (np.nan, np.nan))
FLAT: Words = {
    "range": 0.0,
    "range_ci": [0.0, 0.0],
    "usual_from": "",
    "usual_to": "",
    "usual_change": 0.0,
    "usual_change_ci": [0.0, 0.0],
    "lowest_at": "",
    "highest_at": "",
    "shape": "nearly flat",
    "turns": [],
    "unreliable": "",
    "bias_share": np.nan,
}


def _bias_share(found: Found, name: str) -> float:
    check = found.curves.check
    if check is None or name not in check["feature"].values:
        return np.nan
    return float(check["bin_error_share_axis"].sel(feature=name))


def _unreliable(row: xr.Dataset, texts: list[str]) -> str:
    """Stretches where the curve is not known, as text."""
    if is_categorical(row):
        few = [
            text
            for text, n in zip(texts, row["n_level_effective"].values, strict=False)
            if n < FEW_ROWS
        ]
        return f"few rows: {numbers.listed(few)}" if few else ""
    kinds = row["reliable"].values[: row.sizes["bin"]]
    said = []
    for kind in (UNKNOWN, FEW, GAP):
        runs = [f"{texts[begin]} to {texts[end + 1]}" for begin, end in stretches(kinds == kind)]
        if len(runs) == 1 and (kinds == kind).all():
            said.append(f"{kind}: everywhere")
        elif runs:
            said.append(f"{kind}: {numbers.listed(runs, MOST_STRETCHES)}")
    return "; ".join(said)


def _exception(found: Found, row: xr.Dataset, at: int, sizes: Sizes) -> str:
    """Where a feature that hardly matters does: beyond delta from the middle of the curve."""
    if sizes.matters[at] != "hardly" or sizes.rows_differ[at] != "hardly" or not row.sizes["bin"]:
        return ""
    reach = row["curve_band"].transpose("edge", "ci_bound").values
    curve = row["curve"].values
    middle = _median(row, curve)
    far = (reach[:, 0] > middle + found.delta) | (reach[:, 1] < middle - found.delta)
    if is_categorical(row):
        share = row["level_share"].values[: len(far)]
        total = float(share[far].sum())
        names = [text for text, is_far in zip(numbers.places(row), far, strict=True) if is_far]
        if not names or total > RARE:
            return ""
        return f"at {numbers.listed(names)} ({numbers.percent(total)} of the rows)"
    inside = far[:-1] | far[1:]
    share = row["weight_share"].values[: len(inside)]
    runs = stretches(inside)
    total = float(share[inside].sum())
    if not runs or total > RARE:
        return ""
    texts = numbers.places(row)
    begin, end = max(runs, key=lambda run: share[run[0] : run[1] + 1].sum())
    part = float(share[begin : end + 1].sum())
    return f"between {texts[begin]} and {texts[end + 1]} ({numbers.percent(part)} of the rows)"


def _median(row: xr.Dataset, curve: FloatArray) -> float:
    """Median of the curve over the rows: at their levels, or by the middles of the bins."""
    if is_categorical(row):
        value, share = curve, row["level_share"].values[: len(curve)]
    else:
        value = (curve[:-1] + curve[1:]) / 2
        share = row["weight_share"].values[: len(value)]
    order = np.argsort(value)
    return float(value[order][np.searchsorted(np.cumsum(share[order]), share.sum() / 2)])


# --- splits and outcomes --------------------------------------------------------------------------


def _of_splits(found: Found, name: str) -> Words:
    by, rule, drop, pvalue = found.splits.first.get(name, ("", "", np.nan, np.nan))
    out: Words = {
        "split_tried": name in found.splits.first,
        "split_by": by,
        "split_rule": rule,
        "split_drop": drop,
        # The permutation test takes the model as given: it does not go with the other intervals.
        "split_pvalue": np.nan if _has_parameters(found) else pvalue,
    }
    split = next((one for one in found.splits.found if one.feature == name), None)
    between = None if split is None else split.contrast
    if between is None:
        return out | {"apart": np.nan, "apart_ci": [np.nan, np.nan], "apart_at": ""}
    places, apart, *ends = between
    first, second = numbers.axis_texts(places, units_of(found.curves.effect, name), 100)
    return out | {"apart": apart, "apart_ci": ends, "apart_at": f"{second} instead of {first}"}


def _fit_differs(found: Found, name: str) -> str:
    """The place where the model is off most, of those where it is by more than delta."""
    assert found.outcome is not None
    own = found.outcome.dataset.sel(feature=name)
    residual = own["residual"].values
    off = (own["residual_pvalue_adjusted"].values <= 1 - found.level) & (
        np.abs(residual) > found.delta
    )
    if not off.any():
        return ""
    at = int(np.nanargmax(np.where(off, np.abs(residual), np.nan)))
    ends = own["residual_ci"].transpose("place", "ci_bound").values[at]
    size = numbers.estimate(float(residual[at]), ends)
    level = str(own["place_level"].values[at])
    if level:
        return f"at {level} by {size}"
    edges = np.append(own["place_left"].values, own["place_right"].values)
    texts = numbers.axis_texts(edges, units_of(found.curves.effect, name))
    n = len(texts) // 2
    return f"between {texts[at]} and {texts[n + at]} by {size}"
