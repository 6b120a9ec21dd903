"""An explanation as a table, and as a printed summary."""

from __future__ import annotations

from textwrap import wrap

import pandas as pd
import xarray as xr

from rhale_stats.answers.lines import AnswerLine, lines_of
from rhale_stats.answers.printed import WIDTH, printed, rule_of
from rhale_stats.answers.sentences import answers_in, headline, outputs_in, sentences
from rhale_stats.schema.features import feature_position

# Columns of `tidy` in their order; intervals become two columns.
COLUMNS = (
    *("in_data", "in_data_change", "in_data_p", "differs_in_data", "usual_from", "usual_to"),
    *("usual_change", "importance", "row_spread", "movement", "matters", "rows_differ", "range"),
    *("lowest_at", "highest_at", "shape", "bias_share", "split_by", "split_rule", "split_drop"),
    *("split_pvalue", "apart", "apart_at", "unreliable", "exception", "permutation_importance"),
    "fit_differs",
)


def tidy(tree: xr.DataTree, _level: float) -> pd.DataFrame:
    """`tidy` of an explanation: a line a feature, the feature that moves the output most first.

    Of several outputs one after the other.
    """
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
    return Text(_paragraph(line, answers), notes)


def _paragraph(line: AnswerLine, answers: xr.Dataset) -> list[str]:
    out: list[str] = []
    for sentence in (headline(line), *sentences(line, answers.attrs)):
        out += wrap(sentence, WIDTH, subsequent_indent="  ")
    return out


def show(tree: xr.DataTree, max_features: int) -> Text:
    """`show` of an explanation: what it prints."""
    return Text(printed(tree, max_features).splitlines(), [])
