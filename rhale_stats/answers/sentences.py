"""Sentences of an explanation. Each has a rule; where the rule fails there is no sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from rhale_stats.answers.lines import Line
from rhale_stats.answers.numbers import estimate, listed, number, percent
from rhale_stats.arguments.words import shown

YES, HARDLY, UNKNOWN = "yes", "hardly", "cannot tell"
# Verdicts of the average curve and of the rows -> what is said of a feature.
HEADLINES = {
    (YES, YES): "{F} matters, and differently from row to row",
    (YES, HARDLY): "{F} matters, about equally for all rows",
    (YES, UNKNOWN): "{F} matters; cannot tell whether equally for all rows",
    (HARDLY, YES): "{F} hardly matters on average, but matters for single rows",
    (HARDLY, HARDLY): "{F} hardly matters",
    (HARDLY, UNKNOWN): "{F} hardly matters on average; cannot tell whether for single rows",
    (UNKNOWN, YES): "{F} matters for single rows; cannot tell whether on average",
    (UNKNOWN, HARDLY): "{F} matters equally for all rows if at all: cannot tell",
    (UNKNOWN, UNKNOWN): "{F}: cannot tell whether it matters",
}
STATED = {
    "yes": ", not used to fit the model as the caller stated",
    "no": ", used to fit the model as the caller stated",
}
# Bullets of the main points, at most.
MOST_POINTS = 7
MOST_NAMES = 5
# Share of the variance of local effects from which on bin error is worth a word.
LEAST_BIAS = 0.1
LEAST_PVALUE = 0.001


def units_of(attrs: Mapping[Any, Any]) -> str:
    """Units of the output after a number; empty if none were given."""
    units = str(attrs.get("output_units", ""))
    return f" {units}" if units else ""


def headline(line: Line) -> str:
    """One sentence: whether the feature matters, and whether for all rows alike."""
    text = HEADLINES[line.matters, line.rows_differ].replace("{F}", line.label)
    if (line.matters, line.rows_differ) == (HARDLY, HARDLY) and line.exception:
        text += f", except {line.exception}"
    return f"{text}."


def sentences(line: Line, attrs: Mapping[Any, Any]) -> list[str]:
    """All that can be said of one feature after its headline."""
    found = (
        _range(line, attrs),
        _shape(line),
        _rows(line, attrs),
        _split(line),
        _sides(line, attrs),
        _unreliable(line),
        _bias(line),
        _fit(line, attrs),
    )
    return [one for one in found if one]


def _range(line: Line, attrs: Mapping[Any, Any]) -> str:
    if not np.isfinite(line.range_ci).all() or not line.highest_at:
        return ""
    size, units = estimate(line.range, line.range_ci), units_of(attrs)
    if line.matters == HARDLY:
        return f"The average curve spans {size}{units}."
    if line.shape.startswith("higher at"):
        places = f"at {line.highest_at} than at {line.lowest_at}"
        return f"The average curve is {size}{units} higher {places}."
    return (
        f"The average curve is lowest at {line.lowest_at} and highest at {line.highest_at}, a "
        f"difference of {size}{units}."
    )


def _shape(line: Line) -> str:
    if line.matters != YES or line.shape.startswith(("high", "no clear", "differs")):
        return ""
    return f"It {line.shape}."


def _rows(line: Line, attrs: Mapping[Any, Any]) -> str:
    units = units_of(attrs)
    if line.rows_differ == YES:
        size = estimate(line.row_spread, line.row_spread_ci)
        return f"A single row's curve typically differs from the average curve by {size}{units}."
    if line.rows_differ == HARDLY:
        largest = np.nanmax([line.row_spread, line.row_spread_ci[1]])
        upper = number(largest)
        if largest == 0:
            return "The curves of single rows are parallel."
        return f"Single rows follow the average curve within about {upper}{units}."
    return ""


def _split(line: Line) -> str:
    if line.split_by:
        tested = ""
        if np.isfinite(line.split_pvalue):
            equals = "" if line.split_pvalue < LEAST_PVALUE else "= "
            tested = f" (adjusted P {equals}{pvalue_text(line.split_pvalue)})"
        return (
            f"The rows differ most by {line.split_by}: the split {line.split_rule} takes away "
            f"{percent(line.split_drop)} of the variance of the local effects{tested}."
        )
    if line.split_tried and line.rows_differ == YES:
        return "No split of the rows by another column that was tried explains the difference."
    return ""


def pvalue_text(value: float) -> str:
    """A P-value in three decimals."""
    return f"< {LEAST_PVALUE}" if value < LEAST_PVALUE else f"{value:.3f}"


def _sides(line: Line, attrs: Mapping[Any, Any]) -> str:
    if not line.split_by or not np.isfinite(line.apart):
        return ""
    sign = -1.0 if line.apart < 0 else 1.0
    size = estimate(sign * line.apart, sorted(sign * end for end in line.apart_ci))
    return (
        f"With {line.label} = {line.apart_at}, the output changes by {size}{units_of(attrs)} "
        f"{'less' if sign < 0 else 'more'} in rows with {line.split_rule} than in the others."
    )


def _unreliable(line: Line) -> str:
    if not line.unreliable:
        return ""
    return f"Not reliable everywhere: {line.unreliable}."


def _bias(line: Line) -> str:
    if line.rows_differ != YES or not line.bias_share >= LEAST_BIAS:
        return ""
    return (
        f"{percent(line.bias_share)} of the variance of the local effects inside bins is bin "
        f"error, not heterogeneity."
    )


def _fit(line: Line, attrs: Mapping[Any, Any]) -> str:
    if not line.fit_differs:
        return ""
    size = f"{line.fit_differs}{units_of(attrs)}"
    return f"The model is off {size} on average (observed less predicted)."


# --- of all features ------------------------------------------------------------------------------


def main_points(lines: list[Line], attrs: Mapping[Any, Any]) -> list[str]:
    """The answer in a few bullets: first the feature that moves the predictions most."""
    points = [*_first(lines, attrs), *_hidden(lines), *_hardly(lines), *_unknown(lines)]
    additive = additive_sentence(attrs)
    return [*points, *([additive] if additive else []), *fit_sentences(attrs)][:MOST_POINTS]


def _first(lines: list[Line], attrs: Mapping[Any, Any]) -> list[str]:
    """The feature of the largest movement, and the strongest difference between groups."""
    if not lines or not lines[0].movement > 0:
        return ["No feature moves the predictions."]
    top, units, points = lines[0], units_of(attrs), []
    if top.matters == YES and top.highest_at:
        size = estimate(top.range, top.range_ci)
        points.append(
            f"{top.label} moves the predictions most: the average curve is {size}{units} "
            f"higher at {top.highest_at} than at {top.lowest_at}."
        )
    elif top.rows_differ == YES:
        size = estimate(top.row_spread, top.row_spread_ci)
        points.append(
            f"{top.label} moves the predictions most, not on average but for single rows: by "
            f"{size}{units}."
            if top.matters == HARDLY
            else f"{top.label} moves the predictions most, those of single rows by {size}{units}; "
            f"cannot tell by how much on average."
        )
    split = max(
        (one for one in lines if one.split_by and np.isfinite(one.apart)),
        key=lambda one: abs(one.apart),
        default=None,
    )
    if split is not None:
        points.append(
            f"The rows differ in {split.label} by {split.split_by}. {_sides(split, attrs)}"
        )
    return points


def _hidden(lines: list[Line]) -> list[str]:
    hidden = [one.label for one in lines if (one.matters, one.rows_differ) == (HARDLY, YES)]
    if not hidden:
        return []
    verb = (
        "hardly matters on average, but matters"
        if len(hidden) == 1
        else ("hardly matter on average, but matter")
    )
    return [f"{listed(hidden, MOST_NAMES)}: {verb} for single rows."]


def _hardly(lines: list[Line]) -> list[str]:
    hardly = [one for one in lines if (one.matters, one.rows_differ) == (HARDLY, HARDLY)]
    plain = [one.label for one in hardly if not one.exception]
    points = []
    if plain:
        verb = "hardly matters" if len(plain) == 1 else "hardly matter"
        points.append(f"{listed(plain, MOST_NAMES)}: {verb}.")
    points += [
        f"{one.label}: hardly matters, except {one.exception}." for one in hardly if one.exception
    ]
    return points


def _unknown(lines: list[Line]) -> list[str]:
    unknown = [one.label for one in lines if one.matters == UNKNOWN]
    if not unknown:
        return []
    it = "it matters" if len(unknown) == 1 else "they matter"
    return [f"{listed(unknown, MOST_NAMES)}: cannot tell whether {it} on average."]


def additive_sentence(attrs: Mapping[Any, Any]) -> str:
    """How far curves of single features go."""
    share = float(attrs.get("additive_r2", np.nan))
    if not np.isfinite(share):
        return ""
    if share < 0:
        return "Curves of single features do not add up to the predictions."
    if share >= 0.995:
        return "Curves of single features reproduce the predictions: the model is additive."
    return (
        f"Curves of single features reproduce {percent(share)} of the variance of the predictions; "
        f"the rest needs features in combination."
    )


def fit_sentences(attrs: Mapping[Any, Any]) -> list[str]:
    """What the outcomes say of the predictions."""
    out = []
    n = int(attrs.get("n_rows", 0))
    for name, end, word in (("n_below", "y_min", "below"), ("n_above", "y_max", "above")):
        count = int(attrs.get(name, 0))
        if count > 0 and n:
            least = "smallest" if word == "below" else "largest"
            verb = "is" if count == 1 else "are"
            out.append(
                f"{count:,} of {n:,} predictions ({percent(count / n)}) {verb} {word} "
                f"{number(float(attrs[end]))}, the {least} observed value."
            )
    return out


def fit_text(attrs: Mapping[Any, Any]) -> str:
    """How good the model is on these rows, in short; empty without outcomes."""
    if "auc" in attrs:
        return (
            f"AUC {float(attrs['auc']):.2f}, log loss {number(float(attrs['log_loss']))}, Brier "
            f"score {number(float(attrs['brier']))}"
        )
    if "r2" in attrs:
        mae = number(float(attrs["mae"]))
        return f"R² {float(attrs['r2']):.2f} on these rows, mean absolute error {mae}"
    return ""


def rows_text(attrs: Mapping[Any, Any]) -> str:
    """The rows that were used."""
    used, given = int(attrs.get("n_rows", 0)), int(attrs.get("n_rows_given", 0))
    text = f"{used:,} rows" if used == given else f"{used:,} of {given:,} rows"
    return text + STATED.get(str(attrs.get("held_out", "")), "")


def uncertainty_text(attrs: Mapping[Any, Any]) -> str:
    """What is in the intervals, and what is not."""
    of = "sampling of groups of rows" if attrs.get("groups") == "yes" else "sampling of the rows"
    model = ", the model taken as given (bootstrap_refit adds it)"
    if attrs.get("parameters") == "yes":
        model = (
            " and the parameters of the model, in all intervals of effects; the spread between "
            "rows and the splits have neither interval nor P, as theirs would take the model as "
            "given, and agreement with outcomes is that of this fit"
        )
    return f"Uncertainty: {of}{model}. Effects are those of the model, not causes."


def answers_in(tree: Any) -> xr.Dataset:
    """The group of facts of an explanation, else ``TypeError`` or ``ValueError``."""
    if not isinstance(tree, xr.DataTree):
        raise TypeError(f"tree must be the DataTree that explain returned; got {shown(tree)}.")
    if tree.attrs.get("method") != "explain" or "answers" not in tree.children:
        raise ValueError(
            "tree must be what explain(model, X) returned; got a tree without its group 'answers'."
        )
    found: xr.Dataset = tree["answers"].to_dataset()
    return found
