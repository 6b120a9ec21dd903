"""Numbers, places and intervals for people, and the facts of a feature that sentences read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from rhale_stats.arguments.times import are_dates, date_texts
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.schema.feature_result import Result
from rhale_stats.schema.features import units_in
from rhale_stats.schema.levels import is_categorical, level_names
from rhale_stats.schema.variables import OUTPUT_UNITS

Ends = tuple[float, float]
UNKNOWN_ENDS: Ends = (float("nan"), float("nan"))
NOT_EXAMINED = "not examined"


@dataclass(frozen=True)
class AnswerLine:
    """What `explain` found of one feature; see the group ``answers`` in docs/datasets.md."""

    feature: str
    label: str
    importance: float
    importance_ci: Ends
    row_spread: float
    row_spread_ci: Ends
    movement: float
    matters: str
    rows_differ: str
    range: float
    range_ci: Ends
    lowest_at: str
    highest_at: str
    shape: str
    unreliable: str
    bias_share: float
    split_tried: bool
    split_by: str
    split_rule: str
    split_drop: float
    split_pvalue: float
    apart: float
    apart_ci: Ends
    apart_at: str
    exception: str
    fit_differs: str = ""
    permutation_importance: float = float("nan")
    permutation_importance_ci: Ends = UNKNOWN_ENDS
    feature_units: str = ""
    # The usual values, and the change of the model's average prediction between them.
    usual_from: str = ""
    usual_to: str = ""
    usual_change: float = float("nan")
    usual_change_ci: Ends = UNKNOWN_ENDS
    # The same change of the outcome, and what held-out rows say.
    in_data: str = NOT_EXAMINED
    in_data_change: float = float("nan")
    in_data_ci: Ends = UNKNOWN_ENDS
    in_data_p: float = float("nan")
    differs_in_data: str = NOT_EXAMINED


def lines_of(answers: xr.Dataset) -> list[AnswerLine]:
    """The facts of all features in their order, in the units in which people read them."""
    variables = answers.variables
    names = [name for name in AnswerLine.__annotations__ if name in variables]
    columns = {name: variables[name].values for name in names}
    labels = _labels(answers)
    columns["split_by"] = np.array([labels.get(str(by), str(by)) for by in columns["split_by"]])
    rules = [with_labels(answers, str(rule)) for rule in columns["split_rule"]]
    columns["split_rule"] = np.array(rules)
    # Percentage points where the output is a probability.
    times = float(answers.attrs.get("shown_times", 1.0))
    in_units = [name for name in names if variables[name].attrs.get("units") == OUTPUT_UNITS]
    columns |= {name: columns[name] * times for name in in_units}
    return [
        AnswerLine(**{name: _plain(values[position]) for name, values in columns.items()})
        for position in range(answers.sizes["feature"])
    ]


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return tuple(float(entry) for entry in value)
    return value.item() if isinstance(value, np.generic) else value


def with_labels(answers: xr.Dataset, rule: str) -> str:
    """A rule of columns with their names for people."""
    label_of = _labels(answers)
    changed = [name for name, label in label_of.items() if name != label]
    if not changed:
        return rule
    any_name = "|".join(re.escape(name) for name in sorted(changed, key=len, reverse=True))
    return re.sub(rf"(?<!\w)(?:{any_name})(?!\w)", lambda match: label_of[match[0]], rule)


def _labels(answers: xr.Dataset) -> dict[str, str]:
    """Names of features for people, by their names in the table."""
    columns = [answers.variables[name].values for name in ("feature", "label")]
    return dict(zip(*(map(str, values) for values in columns), strict=True))


# --- numbers --------------------------------------------------------------------------------------


# Digits of a half-width, and of a number without interval. Numbers outside are powers of ten.
DIGITS, PLAIN_DIGITS, MAX_DIGITS = 2, 3, 4
MIN_PLAIN, MAX_PLAIN = 1e-4, 1e7
FIVE_DIGITS = 1e4


def _decimals(width: float, digits: int) -> int:
    """Decimals that show so many digits of a width."""
    if not np.isfinite(width) or width <= 0:
        return digits
    return int(np.clip(digits - 1 - np.floor(np.log10(width)), 0, 9))


def _fixed(value: float, decimals: int) -> str:
    text = f"{value:,.{decimals}f}"
    return text[1:] if text.startswith("-") and not text.strip("-0.,") else text


def number(value: float, width: float | None = None) -> str:
    """One number, with the decimals that a half-width asks for, or three digits.

    No more than four digits of the number are shown.
    """
    if not np.isfinite(value):
        return "unknown"
    if value == 0 and not width:
        return "0"
    size = max(abs(value), abs(width or 0.0))
    if size and not MIN_PLAIN <= size < MAX_PLAIN:
        return f"{value:.{PLAIN_DIGITS}g}"
    if width is None or width <= 0:
        return _fixed(value, _decimals(abs(value), PLAIN_DIGITS))
    return _fixed(value, min(_decimals(width, DIGITS), _decimals(size, MAX_DIGITS)))


def estimate(
    value: float,
    ends: Sequence[float] | FloatArray,
    *,
    short: bool = False,
    digits: int = DIGITS,
) -> str:
    """An estimate with its interval, ``1.23 [0.98, 1.48]``, in the same decimals."""
    lower, upper = (float(end) for end in ends)
    if not (np.isfinite(lower) and np.isfinite(upper)):
        return number(value)
    width = (upper - lower) / 2
    # An interval without width is the number itself.
    if width <= abs(value) * 1e-6:
        return number(value)
    # All three in the decimals of the largest.
    size = max(abs(value), abs(lower), abs(upper))
    if short and width / 10 ** np.floor(np.log10(width)) >= 3:
        digits = 1
    most = _decimals(size, MAX_DIGITS - 1 if short else MAX_DIGITS)
    decimals = min(_decimals(width, digits), most)
    if not MIN_PLAIN <= size < MAX_PLAIN:
        return f"{number(value)} [{number(lower)}, {number(upper)}]"
    return f"{_fixed(value, decimals)} [{_fixed(lower, decimals)}, {_fixed(upper, decimals)}]"


def percent(share: float) -> str:
    """A share in whole per cent; below 1 it says so."""
    if 0 < share < 0.01:
        return "< 1 %"
    return f"{100 * share:.0f} %"


def places(row: Result) -> list[str]:
    """The edges of one feature of an effect as text: values with units of people, or levels."""
    if is_categorical(row):
        return level_names(row)
    return axis_texts(row.bin_edges, units_in(row))


def axis_texts(values: FloatArray, units: str = "", steps: int = 1000) -> list[str]:
    """Values of an axis as text, to a part of its length, a thousandth, or as dates."""
    if are_dates(units):
        return date_texts(values, units)
    finite = values[np.isfinite(values)]
    length = float(np.ptp(finite)) if len(finite) else 0.0
    decimals = _decimals(length / steps, 1) if length > 0 else PLAIN_DIGITS
    size = float(np.abs(finite).max(initial=0.0))
    if size and not MIN_PLAIN <= size < MAX_PLAIN:
        return [f"{value:.4g}" for value in values]
    texts = [_fixed(float(value), decimals) for value in values]
    # Four digits have no comma: they may be years.
    if size < FIVE_DIGITS:
        texts = [text.replace(",", "") for text in texts]
    return [text.rstrip("0").rstrip(".") if "." in text else text for text in texts]


def listed(words: Sequence[str], most: int = 3) -> str:
    """Words with commas; of more than ``most`` the number of the others."""
    if len(words) <= most:
        return ", ".join(words)
    return f"{', '.join(words[:most])} and {len(words) - most} more"
