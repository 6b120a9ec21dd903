"""How average curves go over the inner rows, in words (math [109])."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import xarray as xr
from scipy import stats

from rhale_stats.answers import numbers
from rhale_stats.arrays.answers import half_widths, hidden_in, inner_range, shape_of
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.explanation.curves import GAP, UNKNOWN
from rhale_stats.explanation.request import ExplainRequest
from rhale_stats.generics.uncertainty import vcov
from rhale_stats.outcome.outcome_effects import USUAL
from rhale_stats.schema.curves import interpolation
from rhale_stats.schema.feature_result import FeatureResult
from rhale_stats.schema.features import units_in
from rhale_stats.schema.levels import NOMINAL

# A leg of a shape is longer than this share of the range; "overall" is said where changes of this
# size against the direction of a leg are not excluded.
MIN_LEG = 0.05
# More levels that may be the highest are not named.
MAX_HIGHEST = 3


class Inner(NamedTuple):
    """A curve over the inner rows of its feature, between the percentiles asked for.

    ``half`` are half-widths of intervals of all differences of two of its values (math [109]).
    ``usual`` are the usual values of the feature as text, from and to, and the change of the curve
    between them with the ends of its interval; None for levels without an order.
    """

    places: FloatArray
    texts: list[str]
    curve: FloatArray
    half: FloatArray
    usual: tuple[str, str, float, tuple[float, float]] | None


def inner_of(
    request: ExplainRequest,
    effect: xr.Dataset,
    row: FeatureResult,
    within: tuple[float, tuple[float, float]],
    rng: np.random.Generator,
) -> Inner:
    """Levels and edges beyond the percentiles are left out, and the curve ends at these."""
    name, (level, percentiles) = row.name, within
    numbers_of_edges = row.bin_edge_numbers
    covariance = vcov(effect, name, of="curve").values[np.ix_(numbers_of_edges, numbers_of_edges)]
    curve, edges, units = row["curve"].values, row["edge_value"].values, units_in(row)
    weigh, ends = np.eye(len(curve)), np.zeros((2, len(curve)))
    if not row.is_categorical:
        x = request.table.column(request.table.names.index(name))
        low, high = inner_range(x, request.share, percentiles)
        usual = np.clip(inner_range(x, request.share, USUAL), edges[0], edges[-1])
        ends, usual_texts = interpolation(edges, usual), numbers.axis_texts(usual, units, 100)
        places = np.r_[low, edges[(edges > low) & (edges < high)], high]
        weigh, texts = interpolation(edges, places), numbers.axis_texts(places, units)
        # Bins whose shape is not known take no part.
        reliable = row["reliable"].values[np.clip(np.searchsorted(edges, places[1:]) - 1, 0, None)]
        step = np.where(np.isin(reliable, [UNKNOWN, GAP])[:, None], 0.0, np.diff(weigh, axis=0))
        weigh = np.cumsum(np.vstack([weigh[:1], step]), axis=0)
    else:
        names, places = numbers.places(row), np.arange(float(len(curve)))
        share, ordered = row["level_share"].values, str(row["feature_kind"].values) != NOMINAL
        two = (0, len(curve) - 1) if len(curve) == 2 else inner_range(places, share, USUAL)
        usual_texts = (
            [names[int(position)] for position in two] if ordered or len(curve) == 2 else []
        )
        ends = weigh[np.array(two, dtype=int)]
        if ordered:
            low, high = inner_range(places, share, percentiles)
            places = places[(places >= low) & (places <= high)]
            weigh = weigh[places.astype(int)]
        texts = [names[int(place)] for place in places]
    degrees = np.inf if request.groups is None else float(max(request.groups.max(), 1))
    half = half_widths(weigh @ covariance @ weigh.T, level, rng, degrees)
    usual_change = None
    if usual_texts:
        step = ends[1] - ends[0]
        # Rounding may leave a variance of no change below 0.
        error = np.sqrt(max(float(step @ covariance @ step), 0.0))
        change = float(step @ curve)
        width = float(stats.t.ppf((1 + level) / 2, degrees)) * error
        usual_change = (usual_texts[0], usual_texts[1], change, (change - width, change + width))
    return Inner(places, texts, weigh @ curve, half, usual_change)


def shape_of_curve(row: FeatureResult, inner: Inner, matters: str) -> tuple[str, list[float]]:
    """Words for how the curve goes, and where it turns (math [109])."""
    if matters == "hardly":
        return "nearly flat", []
    if matters == "cannot tell":
        return "cannot tell", []
    curve, half = inner.curve, inner.half
    if row.is_categorical:
        top = int(curve.argmax())
        near = [
            text
            for position, text in enumerate(inner.texts)
            if not curve[top] - curve[position] > half[top, position]
        ]
        if len(numbers.places(row)) == 2:
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
