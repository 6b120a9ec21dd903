"""Conditions of splits: which rows are on which side, and the conditions as text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rhale_stats.arguments.times import are_dates, as_days, date_texts, is_time
from rhale_stats.schema.levels import MISSING_LEVEL

ROOT_RULE, OR_MISSING = "all rows", " or missing"
UP_TO, ABOVE, EQUAL, UNEQUAL, IN = "<=", ">", "==", "!=", "in"


# --- one side of a split, in words ----------------------------------------------------------------


class Condition(NamedTuple):
    """One side of a split: an operator with a threshold, or with the levels that it keeps.

    ``text`` is the condition by itself.
    """

    feature: str
    operator: str
    text: str
    threshold: float = np.nan
    levels: tuple[Any, ...] = ()
    units: str = ""

    def holds(self, values: pd.Series) -> NDArray[np.bool_]:
        """Rows that meet the condition; a missing value meets none that does not name it."""
        if is_time(values.dtype):
            values = pd.Series(as_days(values.array))
        if self.operator in (UP_TO, ABOVE):
            try:
                numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
            except (TypeError, ValueError) as error:
                raise TypeError(
                    f"X must have numbers in column {self.feature!r}, which is compared with "
                    f"{self.threshold:.15g}; got {values.dtype} ({error})."
                ) from error
            if self.operator == UP_TO:
                return np.asarray(numbers <= self.threshold)
            return np.asarray((numbers > self.threshold) | (bool(self.levels) & np.isnan(numbers)))
        if set(map(type, self.levels)) == {str}:
            texts = values.astype(object).map(str)
            values = texts.where(
                values.notna(), None if self.operator == UNEQUAL else MISSING_LEVEL
            )
        inside = values.isin(list(self.levels)).to_numpy()
        return (
            inside if self.operator != UNEQUAL else np.asarray(~inside & values.notna().to_numpy())
        )


def levels_text(name: str, levels: tuple[Any, ...], order: tuple[Any, ...]) -> str:
    """A condition on the levels of a column, in words."""
    if len(levels) == 1:
        return f"{name} = {levels[0]}"
    if order and levels[0] == order[0]:
        return f"{name} ≤ {levels[-1]}"
    if order and levels[-1] == order[-1]:
        return f"{name} ≥ {levels[0]}"
    if order:
        return f"{levels[0]} ≤ {name} ≤ {levels[-1]}"
    return f"{name} in {{{', '.join(map(str, levels))}}}"


def threshold_text(threshold: float, units: str) -> str:
    """A threshold as text; a date where it is one."""
    if are_dates(units) and np.isfinite(threshold):
        return date_texts([threshold], units)[0]
    return f"{threshold:.15g}"


def rule_text(path: Sequence[Condition]) -> str:
    """All conditions on the way to a node, each column once, in the order of the splits."""
    if not path:
        return ROOT_RULE
    texts = []
    for name in dict.fromkeys(condition.feature for condition in path):
        conditions = [condition for condition in path if condition.feature == name]
        if conditions[-1].operator not in (UP_TO, ABOVE):
            texts.append(
                conditions[-1].text
            )  # a later split keeps a part of the levels that remained
            continue
        below = min((c.threshold for c in conditions if c.operator == UP_TO), default=np.inf)
        above = max((c.threshold for c in conditions if c.operator == ABOVE), default=-np.inf)
        upper, lower = (threshold_text(end, conditions[-1].units) for end in (below, above))
        if np.isfinite(below) and np.isfinite(above):
            texts.append(f"{lower} < {name} ≤ {upper}")
        elif np.isfinite(below):
            texts.append(f"{name} ≤ {upper}")
        elif np.isfinite(above):
            texts.append(
                f"{name} > {lower}{OR_MISSING if all(c.levels for c in conditions) else ''}"
            )
        else:
            texts.append(conditions[-1].text)
    return " and ".join(texts)


def readable(low: float, high: float) -> float:
    """The shortest decimal number in [low, high), near the middle: it parts the same rows."""
    if low <= 0 < high:
        return 0.0
    middle = low + (high - low) / 2
    first = -1 - int(np.floor(np.log10(abs(middle))))
    for digits in range(first, first + 18):
        rounded = round(middle, digits)
        if low <= rounded < high:
            return rounded
    return low


def as_json(levels: tuple[Any, ...]) -> str:
    """Levels as text that can be stored."""
    return json.dumps(list(levels)) if levels else ""


def of_json(text: str) -> tuple[Any, ...]:
    """Levels from text."""
    return tuple(json.loads(text)) if text else ()
