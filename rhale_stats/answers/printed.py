"""The printed answer of an explanation: at most 40 lines of 100 characters; and its table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from textwrap import wrap
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

from rhale_stats.answers.sentences import (
    NOT_EXAMINED,
    NOT_SHOWN,
    YES,
    AnswerLine,
    answers_in,
    examined,
    fit_text,
    headline,
    lines_of,
    main_points,
    number,
    outputs_in,
    percent,
    rows_text,
    sentences,
    signed,
    threshold_of,
    uncertainty_text,
    units_of,
)
from rhale_stats.printing.text import cut_within, output_text, printable
from rhale_stats.schema.features import feature_position

# Columns of `tidy` in their order; intervals become two columns.
COLUMNS = (
    *("in_data", "in_data_change", "in_data_p", "differs_in_data", "usual_from", "usual_to"),
    *("usual_change", "importance", "row_spread", "movement", "matters", "rows_differ", "range"),
    *("lowest_at", "highest_at", "shape", "bias_share", "split_by", "split_rule", "split_drop"),
    *("split_pvalue", "apart", "apart_at", "unreliable", "exception", "permutation_importance"),
    *("fit_differs", "fit_bias"),
)


def tidy(tree: xr.DataTree, _level: float) -> pd.DataFrame:
    """`tidy` of an explanation: a line a feature, the feature that moves the output most first."""
    if several := outputs_in(tree):
        frames = [tidy(part, _level) for part in several.values()]
        for label, frame in zip(several, frames, strict=True):
            frame.insert(0, "output", label)
        return pd.concat(frames, ignore_index=True)
    answers = answers_in(tree)
    table: dict[str, object] = {"term": answers["feature"].values}
    if (answers["label"].values != answers["feature"].values).any():
        table["label"] = answers["label"].values
    for name in COLUMNS:
        if name in answers:
            table[name] = answers[name].values
        if f"{name}_ci" in answers:
            low, high = answers[f"{name}_ci"].transpose("ci_bound", "feature").values
            table |= {f"{name}_low": low, f"{name}_high": high}
    return pd.DataFrame(table)


class Text:
    """A printed answer: ``print(text)``, ``text.as_text()``, ``text.notes``."""

    def __init__(self, lines: list[str], notes: list[str]) -> None:
        self.lines, self.notes = lines, notes

    def as_text(self) -> str:
        """All lines."""
        return "\n".join(self.lines)

    __str__ = __repr__ = as_text


def summary(tree: xr.DataTree, feature: str | int | None, _level: float) -> Text:
    """`summary` of an explanation: what it prints, or all sentences about one feature."""
    if (several := outputs_in(tree)) and feature is not None:
        lines: list[str] = []
        notes = []
        for label, part in several.items():
            text = summary(part, feature, _level)
            lines += ([""] if lines else []) + [rule_of(label), *text.lines]
            notes += text.notes
        return Text(lines, list(dict.fromkeys(notes)))
    notes = [line for line in str(tree.attrs.get("notes", "")).splitlines() if line]
    if feature is None:
        return Text(printed(tree).splitlines(), notes)
    answers = answers_in(tree)
    line = lines_of(answers)[feature_position(answers, feature)]
    texts = (headline(line), *sentences(line, answers.attrs))
    wrapped = (wrap(text, WIDTH, subsequent_indent="  ") for text in texts)
    return Text(list(chain.from_iterable(wrapped)), notes)


def show(tree: xr.DataTree, max_features: int) -> Text:
    """`show` of an explanation: what it prints."""
    return Text(printed(tree, max_features).splitlines(), [])


WIDTH, MAX_LINES = 100, 40
MAX_FEATURES, MIN_FEATURES = 14, 5
MAX_MARKED = 3
# Longest name of a feature, of its usual values, of what the rows differ by, and of a shape.
NAME, VALUES, BY, SHAPE = 24, 24, 22, 20
MARK = " !"
SHORT = {"cannot tell": "?", "goes up and down": "up and down", "no clear shape": "unclear"}


class TextColumn(NamedTuple):
    """A column of the table: its head, its cell of a line, and how narrow words may become."""

    head: str
    cell: Callable[[AnswerLine], str]
    to_right: bool = False
    narrowest: int = 0
    in_middle: bool = False


def printed(
    tree: xr.DataTree,
    max_features: int = MAX_FEATURES,
    thresholds: Sequence[float] | None = None,
) -> str:
    """The answer as text, with so many lines of its table; of every output one after the other.

    What the columns mean is said once, below the last output, with the ``thresholds`` of all.
    """
    if several := outputs_in(tree):
        most = min(max_features, MIN_FEATURES)
        last, of_all = list(several)[-1], [threshold_of(part.attrs) for part in several.values()]
        return "\n\n".join(
            f"{rule_of(label)}\n{printed(part, most, of_all if label == last else [])}"
            for label, part in several.items()
        )
    answers = answers_in(tree)
    attrs, lines = {**answers.attrs, **tree.attrs}, lines_of(answers)
    out = _wrapped(f"What moves {output_text(answers)}: {attrs.get('model', 'model')}")
    out += _wrapped(f"{rows_text(attrs)}, {len(lines)} feature{'' if len(lines) == 1 else 's'}.")
    if fit := fit_text(attrs):
        out += _wrapped(f"{fit}.")
    out.append("")
    for point in main_points(lines, attrs):
        out += _wrapped(f"* {point}", "  ")
    thresholds = [threshold_of(attrs)] if thresholds is None else thresholds
    head, below = _wrapped(_head(attrs)), _wrapped(_legend(attrs, lines, thresholds), "  ")
    below += _wrapped(uncertainty_text(attrs), "  ")
    cut = [left for left in str(attrs.get("cut", "")).splitlines() if left]
    if cut:
        out += _wrapped(
            f"Left out to keep to the budget of {attrs['budget']}: {'; '.join(cut)}.", "  "
        )
    name = lines[0].feature
    plot = f".plot({name!r})" if len(name) <= NAME and name.isprintable() else ".plot(feature)"
    below += ["", f'More, as methods of this result: .report("report.html"), {plot}, .tidy()']
    # Heads, rules and a line for what is left out stand around the lines of the table.
    room = max(MAX_LINES - len(out) - len(head) - len(below) - 5, MIN_FEATURES)
    table = _table(lines, min(room, max_features), attrs)
    if not thresholds:
        below = []
    return "\n".join(line.rstrip() for line in [*out, "", *head, *table, *below])


def rule_of(label: str) -> str:
    """The line above the answer for one of several outputs."""
    return f"── {label} ".ljust(WIDTH, "─")[:WIDTH]


def _wrapped(text: str, indent: str = "") -> list[str]:
    return wrap(printable(text), WIDTH, subsequent_indent=indent)


def _cut(text: str, most: int) -> str:
    text = printable(text)
    if len(text) <= most:
        return text
    mark = MARK if text.endswith(MARK) else ""
    return text[: most - 1 - len(mark)].rstrip() + "…" + mark


def _columns(attrs: Mapping[Any, Any], lines: list[AnswerLine], short: bool) -> list[TextColumn]:
    """What the table shows of each feature; ``short`` intervals have one digit of a half-width."""
    in_model = "in model" if short else "in the model"
    # Names of levels give way, numbers do not.
    numbers = [_usual(line) for line in lines if line.usual_to[-1:].isdigit()]
    how = {"short": True, "digits": 1 if short else 2}
    label = TextColumn("", lambda line: cut_within(line.label, NAME), narrowest=10, in_middle=True)
    values = TextColumn("from, to", _usual, narrowest=max([10, *map(len, numbers)]), in_middle=True)
    rows = TextColumn("rows differ", rows_cell, narrowest=11)
    shape = TextColumn("shape", _shape_cell, narrowest=13)

    def of_model(line: AnswerLine) -> str:
        if not np.isfinite(line.usual_change):
            return number(line.range) if np.isfinite(line.range) else "?"
        return signed(line.usual_change, line.usual_change_ci, **how)

    if not examined(attrs):
        matters = TextColumn("matters", lambda line: SHORT.get(line.matters, line.matters))
        return [label, values, TextColumn(in_model, of_model, True), matters, rows, shape]

    def of_data(line: AnswerLine) -> str:
        if not np.isfinite(line.in_data_change):
            return ""
        return signed(line.in_data_change, line.in_data_ci, **how)

    def model_alone(line: AnswerLine) -> str:
        change = line.usual_change if np.isfinite(line.usual_change) else line.range
        width = float(np.ptp(line.in_data_ci)) / 2
        return f"{'+' if change > 0 else ''}{number(change, width if np.isfinite(width) else None)}"

    return [
        label,
        values,
        TextColumn("in the data", of_data, True),
        TextColumn("", lambda line: "not ex." if line.in_data == NOT_EXAMINED else line.in_data),
        TextColumn(in_model, model_alone, True),
        rows,
        shape,
    ]


def _usual(line: AnswerLine) -> str:
    if not line.usual_to:
        return "levels" if line.shape.startswith(("highest", "differs")) else ""
    return cut_within(f"{line.usual_from}, {line.usual_to}", VALUES)


def rows_cell(line: AnswerLine) -> str:
    """Whether rows differ, in the data or in the model alone, and by which column."""
    if line.rows_differ != YES:
        return SHORT.get(line.rows_differ, line.rows_differ)
    if line.differs_in_data == NOT_SHOWN:
        return "model only"
    return cut_within(f"by {line.split_by}" if line.split_by else YES, BY)


def _shape_cell(line: AnswerLine) -> str:
    """A shape in few words, without where it turns."""
    words = line.shape.split(" (")[0]
    words = SHORT.get(words, words.replace(", then", ","))
    return _cut(words, SHAPE) + (MARK if line.unreliable else "")


def _table(lines: list[AnswerLine], most: int, attrs: Mapping[Any, Any]) -> list[str]:
    shown = lines[:most]
    for short in (False, True):
        columns = _columns(attrs, shown, short)
        cells = [[column.cell(line) for column in columns] for line in shown]
        widths = [
            max(len(column.head), *(len(row[position]) for row in cells))
            for position, column in enumerate(columns)
        ]
        gaps = 2 * (len(columns) - 1)
        if sum(widths) + gaps <= WIDTH:
            break
    # Words give way: first the shape, the rows and the usual values, the name at last.
    for position in reversed(range(len(columns))):
        excess = sum(widths) + gaps - WIDTH
        if excess > 0 and columns[position].narrowest:
            widths[position] -= int(
                np.clip(excess, 0, max(widths[position] - columns[position].narrowest, 0))
            )
    rule = "-" * min(sum(widths) + gaps, WIDTH)

    def text(row: list[str]) -> str:
        padded = (
            cell.rjust(width)
            if column.to_right
            else (cut_within if column.in_middle else _cut)(cell, width).ljust(width)
            for cell, width, column in zip(row, widths, columns, strict=True)
        )
        return "  ".join(padded).rstrip()[:WIDTH]

    out = [text([column.head for column in columns]), rule, *map(text, cells)]
    if len(shown) < len(lines):
        rest = lines[len(shown) :]
        out.append(
            f"… {len(rest)} more, the largest moves predictions by {number(rest[0].movement)}: "
            f".tidy()"
        )
    return [*out, rule]


def _head(attrs: Mapping[Any, Any]) -> str:
    """What the numbers of the table are, in which units, and what their intervals hold."""
    level = 100 * float(attrs.get("level", 0.95))
    units = units_of(attrs)
    units_text = f" in{units}" if units else ""
    if examined(attrs):
        return (
            f"Change{units_text} between usual values (10 % and 90 % of the rows are below them): "
            f"of the outcome, with {level:g} % intervals for rows and learner, and of the average "
            f"prediction."
        )
    included = (
        "rows and parameters" if attrs.get("parameters") == "yes" else "the rows, not the fit"
    )
    return (
        f"Change of the average prediction{units_text} between usual values (10 % and 90 % of the "
        f"rows are below them), with {level:g} % intervals for {included}."
    )


def _legend(attrs: Mapping[Any, Any], lines: list[AnswerLine], thresholds: Sequence[float]) -> str:
    share = float(attrs.get("matters", np.nan))
    reference = "outcome" if str(attrs.get("matters_of", "")) == "outcome" else "predictions"
    least = " or ".join(dict.fromkeys(map(number, thresholds))) + units_of(attrs)
    size = f"{least}, {percent(share)} of the standard deviation of the {reference}"
    if examined(attrs):
        text = (
            f"yes: an effect in the data (P ≤ 0.05 on rows kept from the fit); no: smaller than "
            f"{size}. rows differ: by more than that; model only: not on rows kept from the fit; "
            f"?: cannot tell."
        )
    else:
        text = f"matters, differ: the typical size is more than {size}; ?: cannot tell."
    low, high = attrs.get("percentiles", (0, 100))
    if (low, high) != (0, 100):
        text += f" Shapes are of the inner {high - low:g} % of the rows."
    marked = [f"{line.label} ({line.unreliable})" for line in lines if line.unreliable]
    if marked:
        more = f"; {len(marked) - MAX_MARKED} more" if len(marked) > MAX_MARKED else ""
        text += f" !: not known everywhere: {'; '.join(marked[:MAX_MARKED])}{more}."
    if attrs.get("missing"):
        text += f" Rows without a value are {attrs['missing']}."
    return text
