"""The facts of one feature, as sentences and tables read them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

Ends = tuple[float, float]
UNKNOWN_ENDS: Ends = (float("nan"), float("nan"))
NOT_EXAMINED = "not examined"
# Facts in units of the output: percentage points where it is a probability.
IN_UNITS = frozenset(
    (
        *("importance", "importance_ci", "row_spread", "row_spread_ci", "movement", "range"),
        *(
            "range_ci",
            "apart",
            "apart_ci",
            "usual_change",
            "usual_change_ci",
            "in_data_change",
            "in_data_ci",
        ),
    )
)


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
    names = [name for name in AnswerLine.__annotations__ if name in answers.variables]
    columns = {name: answers[name].values for name in names}
    if "split_by" in columns:
        columns["split_by"] = np.array([_label(answers, str(by)) for by in columns["split_by"]])
        columns["split_rule"] = np.array(
            [with_labels(answers, str(rule)) for rule in columns["split_rule"]]
        )
    for name in IN_UNITS & columns.keys():
        columns[name] = columns[name] * float(answers.attrs.get("shown_times", 1.0))
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
    names, labels = answers["feature"].values, answers["label"].values
    label_of = {str(name): str(label) for name, label in zip(names, labels, strict=True)}
    changed = [name for name, label in label_of.items() if name != label]
    if not changed:
        return rule
    any_name = "|".join(re.escape(name) for name in sorted(changed, key=len, reverse=True))
    return re.sub(rf"(?<!\w)(?:{any_name})(?!\w)", lambda match: label_of[match[0]], rule)


def _label(answers: xr.Dataset, column: str) -> str:
    """The name for people of a column that may be a feature."""
    names = [str(name) for name in answers["feature"].values]
    return str(answers["label"].values[names.index(column)]) if column in names else column
