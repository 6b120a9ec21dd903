"""Sentences of an explanation. Each has a rule; where the rule fails there is no sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from rhale_stats.answers.numbers import NOT_EXAMINED, AnswerLine, estimate, listed, number, percent
from rhale_stats.arguments.words import shown

YES, HARDLY, UNKNOWN = "yes", "hardly", "cannot tell"
# Words of `in_data` besides "yes".
NOT_SHOWN, NO = "not shown", "no"
# Verdicts of the average curve and of the rows -> what is said of a feature of the model.
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
IN_DATA_HEADLINES = {
    YES: "{F} has an effect in the data",
    NOT_SHOWN: "{F}: no effect is shown in the data",
    NO: "{F} has no effect in the data that is large enough to matter",
}
STATED = {
    "yes": ", not used to fit the model as the caller stated",
    "no": ", used to fit the model as the caller stated",
}
# Bullets of the main points, at most, and features that have one of their own.
MAX_POINTS, MAX_EFFECTS = 9, 5
# Features that are listed by name, and the letters of their names together.
MAX_NAMES, NAMES_LENGTH = 8, 120
# Share of the variance of local effects from which on bin error is worth a word.
MIN_BIAS = 0.1
MIN_PVALUE = 0.001


def units_of(attrs: Mapping[Any, Any]) -> str:
    """Units of the output after a number; empty if none were given."""
    units = str(attrs.get("shown_units", "") or attrs.get("output_units", ""))
    return f" {units}" if units else ""


def threshold_of(attrs: Mapping[Any, Any]) -> float:
    """What is called to matter, in the units in which numbers are shown."""
    return float(attrs.get("delta", np.nan)) * float(attrs.get("shown_times", 1.0))


def signed(value: float, ends: Sequence[float] = (np.nan, np.nan), **how: Any) -> str:
    """A change with its interval, ``+1.23 [0.98, 1.48]``."""
    text = estimate(value, ends, **how)
    return f"+{text}" if value > 0 else text


def examined(attrs: Mapping[Any, Any]) -> bool:
    """Whether effects on the outcome were estimated."""
    return str(attrs.get("examined", "")) == "yes"


def predicts(attrs: Mapping[Any, Any]) -> bool:
    """Whether the interval of the model's skill on new rows lies above that of no skill."""
    return str(attrs.get("predicts", "yes")) == "yes"


def headline(line: AnswerLine) -> str:
    """One sentence: whether the feature has an effect, and whether for all rows alike."""
    pair = (line.matters, line.rows_differ)
    if line.in_data == NOT_EXAMINED:
        text = HEADLINES[pair]
        if pair == (HARDLY, HARDLY) and line.exception:
            text += f", except {line.exception}"
        return f"{text.replace('{F}', line.label)}."
    text = IN_DATA_HEADLINES[line.in_data].replace("{F}", line.label)
    if line.differs_in_data == YES:
        text += ", and it" if line.in_data == YES else " on average, but its effect"
        text += " differs from row to row"
    elif line.rows_differ == YES:
        text += "; the model treats single rows differently, which new rows do not confirm"
    elif line.matters == YES and line.in_data != YES:
        text += ", though the model uses it"
    return f"{text}."


def sentences(line: AnswerLine, attrs: Mapping[Any, Any]) -> list[str]:
    """All that can be said of one feature after its headline."""
    parts = (
        _in_data(line, attrs),
        _change(line, attrs),
        _range(line, attrs),
        _shape(line),
        _rows(line, attrs),
        _split(line),
        _sides(line, attrs),
        line.unreliable and f"Not reliable everywhere: {line.unreliable}.",
        _bias(line),
        line.fit_differs
        and f"The model is off {line.fit_differs}{units_of(attrs)} on average (observed less "
        f"predicted).",
    )
    return [part for part in parts if part]


def between(line: AnswerLine) -> str:
    """The usual values of a feature, ``age from 21 to 64 years``; its name where there are none."""
    if not line.usual_to:
        return line.label
    units = f" {line.feature_units}" if line.feature_units else ""
    return f"{line.label} from {line.usual_from} to {line.usual_to}{units}"


def _in_data(line: AnswerLine, attrs: Mapping[Any, Any]) -> str:
    if line.in_data == NOT_EXAMINED:
        return ""
    tested = f"P {_equals(line.in_data_p)} of no effect" if np.isfinite(line.in_data_p) else ""
    if not np.isfinite(line.in_data_change):
        return f"In the data its levels are compared together ({tested})." if tested else ""
    size = signed(line.in_data_change, line.in_data_ci)
    tested = f" ({tested} anywhere)" if tested else ""
    return (
        f"In the data, the outcome changes with {between(line)} by {size}{units_of(attrs)}{tested}."
    )


def _change(line: AnswerLine, attrs: Mapping[Any, Any]) -> str:
    if not np.isfinite(line.usual_change):
        return ""
    size = signed(line.usual_change, line.usual_change_ci)
    return f"The average prediction changes with {between(line)} by {size}{units_of(attrs)}."


def _range(line: AnswerLine, attrs: Mapping[Any, Any]) -> str:
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


def _shape(line: AnswerLine) -> str:
    if line.matters != YES or line.shape.startswith(("high", "no clear", "differs")):
        return ""
    return f"It {line.shape}."


def _rows(line: AnswerLine, attrs: Mapping[Any, Any]) -> str:
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


def _split(line: AnswerLine) -> str:
    if line.split_by:
        tested = ""
        if np.isfinite(line.split_pvalue):
            tested = f" (adjusted P {_equals(line.split_pvalue)})"
        return (
            f"The rows differ most by {line.split_by}: the split {line.split_rule} takes away "
            f"{percent(line.split_drop)} of the variance of the local effects{tested}."
        )
    if line.split_tried and line.rows_differ == YES:
        return "No split of the rows by another column that was tried explains the difference."
    return ""


def pvalue_text(value: float) -> str:
    """A P-value in three decimals."""
    return f"< {MIN_PVALUE}" if value < MIN_PVALUE else f"{value:.3f}"


def _equals(value: float) -> str:
    """A P-value after its sign of equality."""
    return pvalue_text(value) if value < MIN_PVALUE else f"= {pvalue_text(value)}"


def _sides(line: AnswerLine, attrs: Mapping[Any, Any]) -> str:
    if not line.split_by or not np.isfinite(line.apart):
        return ""
    sign = -1.0 if line.apart < 0 else 1.0
    size = estimate(sign * line.apart, sorted(sign * end for end in line.apart_ci))
    return (
        f"With {line.label} = {line.apart_at}, the output changes by {size}{units_of(attrs)} "
        f"{'less' if sign < 0 else 'more'} in rows with {line.split_rule} than in the others."
    )


def _bias(line: AnswerLine) -> str:
    if line.rows_differ != YES or not line.bias_share >= MIN_BIAS:
        return ""
    return (
        f"{percent(line.bias_share)} of the variance of the local effects inside bins is bin "
        f"error, not heterogeneity."
    )


# --- of all features ------------------------------------------------------------------------------


def main_points(lines: list[AnswerLine], attrs: Mapping[Any, Any]) -> list[str]:
    """The answer in a few bullets: of the outcome where it was examined, else of the model."""
    if not lines or not lines[0].movement > 0:
        points = ["No feature moves the predictions."]
    elif examined(attrs):
        points = [*_skill(lines, attrs), *_effects_in_data(lines, attrs)]
        points += _not_in_data(lines, attrs)
    else:
        points = [*_skill(lines, attrs), *_effects_of_model(lines, attrs), *_small(lines)]
    additive = additive_sentence(attrs)
    return [*points, *([additive] if additive else []), *fit_sentences(attrs)][:MAX_POINTS]


def _skill(lines: list[AnswerLine], attrs: Mapping[Any, Any]) -> list[str]:
    """What stands above all others where the model does not predict."""
    if predicts(attrs):
        return []
    says = "what follows describes its noise"
    if any(line.in_data == YES for line in lines):
        # Rows kept from the fits may show an effect which is too weak to be seen in R².
        says = "its curves are largely noise. Effects in the data were found on rows kept from fits"
    return [f"The model does not predict new rows ({skill_text(attrs)}): {says}."]


def skill_text(attrs: Mapping[Any, Any]) -> str:
    """The skill of the model on rows that it did not see, with its interval."""
    names = ("skill_low", "skill", "skill_high")
    low, value, high = (f"{float(attrs[name]):.2f}" for name in names)
    return f"{attrs['skill_name']} {value} [{low}, {high}]"


def _effects_in_data(lines: list[AnswerLine], attrs: Mapping[Any, Any]) -> list[str]:
    """The features with an effect in the data, each with its size, and how rows differ."""
    points, units = [], units_of(attrs)
    in_data = [line for line in lines if line.in_data == YES]
    for line in in_data[:MAX_EFFECTS]:
        turns = f"; the model's curve {_turning(line)}" if _turning(line) else ""
        if not np.isfinite(line.in_data_change):
            points.append(
                f"{line.label}: the outcome differs between its levels (P "
                f"{_equals(line.in_data_p)}); the model's highest is {line.highest_at}, its lowest "
                f"{line.lowest_at}."
            )
            continue
        size = signed(line.in_data_change, line.in_data_ci)
        model = signed(line.usual_change)
        if line.in_data_ci[0] <= 0 <= line.in_data_ci[1]:
            points.append(
                f"{line.label}: an effect in the data (P {_equals(line.in_data_p)}), but none "
                f"shown from {line.usual_from} to {line.usual_to}: {size}{units}, {model} in the "
                f"model{turns}."
            )
            continue
        points.append(f"{between(line)}: {size}{units} in the data, {model} in the model{turns}.")
    points += _of_all(in_data[MAX_EFFECTS:], "Also in the data: {}.")
    return points + _differences(lines, attrs)


def _differences(lines: list[AnswerLine], attrs: Mapping[Any, Any]) -> list[str]:
    """Whether effects differ between rows: in the data, or only in the model."""
    points = []
    confirmed = [line for line in lines if line.differs_in_data == YES]
    if confirmed:
        top = max(confirmed, key=lambda line: abs(np.nan_to_num(line.apart)))
        by = f" by {top.split_by}" if top.split_by else ""
        rest = [line for line in confirmed if line is not top]
        also = f" So do those of {_names(rest)}." if rest else ""
        sides = f" {_sides(top, attrs)}" if _sides(top, attrs) else ""
        points.append(
            f"The effect of {top.label} differs between rows{by}, in the data too.{sides}{also}"
        )
    alone = [
        line for line in lines if line.rows_differ == YES and line.differs_in_data == NOT_SHOWN
    ]
    text = "Only the model treats single rows differently by {}: new rows do not confirm it."
    return points + _of_all(alone, text)


def _not_in_data(lines: list[AnswerLine], attrs: Mapping[Any, Any]) -> list[str]:
    """Features without an effect in the data, in one line each kind."""
    points = []
    hidden = [line for line in lines if line.in_data == NOT_SHOWN]
    if hidden:
        used = [line for line in hidden if YES in (line.matters, line.rows_differ)]
        uses = ""
        if len(used) == len(hidden):
            uses = ", though the model uses " + ("it" if len(used) == 1 else "them")
        elif used:
            uses = f", though the model uses {_names(used)}"
        points.append(f"No average effect shown in the data: {_names(hidden)}{uses}.")
    none = [line for line in lines if line.in_data == NO]
    size = f"{number(threshold_of(attrs))}{units_of(attrs)}"
    points += _of_all(none, f"No effect in the data as large as {size} on average: {{}}.")
    unknown = [line for line in lines if line.in_data == NOT_EXAMINED]
    return points + _of_all(unknown, "Not examined in the data: {}.")


def _of_all(lines: Sequence[AnswerLine], several: str, single: str = "") -> list[str]:
    """A sentence about features by name, in the singular or the plural; none about none."""
    text = single if single and len(lines) == 1 else several
    return [text.format(_names(lines))] if lines else []


def _names(lines: Sequence[AnswerLine]) -> str:
    """The first features by name: as many as fit in a line or two, at least one."""
    labels = [line.label for line in lines]
    fit = int(np.sum(np.cumsum([len(label) for label in labels]) <= NAMES_LENGTH))
    return listed(labels, int(np.clip(fit, 1, MAX_NAMES)))


def _turning(line: AnswerLine) -> str:
    """How a curve goes that is not told by a change between two values; else empty."""
    return line.shape if "turn" in line.shape else ""


def _effects_of_model(lines: list[AnswerLine], attrs: Mapping[Any, Any]) -> list[str]:
    """The features that move the average prediction most, and the strongest group difference."""
    points, units = [], units_of(attrs)
    large = [line for line in lines if line.matters == YES and line.highest_at]
    for line in large[:MAX_EFFECTS]:
        turns = f"; {_turning(line)}" if _turning(line) else ""
        if np.isfinite(line.usual_change):
            points.append(
                f"{between(line)}: {signed(line.usual_change, line.usual_change_ci)}{units}{turns}."
            )
        else:
            size = estimate(line.range, line.range_ci)
            points.append(
                f"{line.label}: {size}{units} more at {line.highest_at} than at {line.lowest_at}."
            )
    points += _of_all(large[MAX_EFFECTS:], "Smaller effects: {}.")
    split = max(
        (line for line in lines if line.split_by and np.isfinite(line.apart)),
        key=lambda line: abs(line.apart),
        default=None,
    )
    if split is not None:
        points.append(
            f"The rows differ in {split.label} by {split.split_by}. {_sides(split, attrs)}"
        )
    return points


def _small(lines: list[AnswerLine]) -> list[str]:
    """Features that hardly matter on average, and those of which one cannot tell."""
    by_verdicts: dict[tuple[str, str], list[AnswerLine]] = {}
    for line in lines:
        by_verdicts.setdefault((line.matters, line.rows_differ), []).append(line)
    hidden, hardly = (by_verdicts.get((HARDLY, rows), []) for rows in (YES, HARDLY))
    exceptions = [line for line in hardly if line.exception]
    between_rows = "between single rows: {}."
    return [
        *_of_all(
            hidden,
            f"No average effects, but their effects differ {between_rows}",
            f"No average effect, but its effect differs {between_rows}",
        ),
        *_of_all(
            [line for line in hardly if not line.exception],
            "{}: hardly matter.",
            "{}: hardly matters.",
        ),
        *(f"{line.label}: hardly matters, except {line.exception}." for line in exceptions),
        *_of_all(
            [line for line in lines if line.matters == UNKNOWN],
            "{}: cannot tell whether they matter on average.",
            "{}: cannot tell whether it matters on average.",
        ),
    ]


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
    """How good the model is, first on rows that it did not see; empty without outcomes."""
    fit = ""
    if "auc" in attrs:
        fit = f"AUC {float(attrs['auc']):.2f}, log loss {number(float(attrs['log_loss']))}"
    elif "r2" in attrs:
        mae = number(float(attrs["mae"]))
        fit = f"R² {float(attrs['r2']):.2f}, mean absolute error {mae}"
    if not fit:
        return ""
    rows = {"yes": "these rows, kept from the fit", "no": "the rows of the fit"}
    unknown = "these rows, which the model may have been fitted to"
    fit = f"On {rows.get(str(attrs.get('held_out', '')), unknown)}: {fit}"
    if "skill" not in attrs:
        return fit
    new = (
        "rows that it did not see"
        if examined(attrs)
        else "a fifth of the rows, by a refit to the rest"
    )
    loss = f", {attrs['skill_loss']} {number(float(attrs['skill_loss_value']))}"
    return f"On {new}: {skill_text(attrs)}{loss}. {fit}"


def rows_text(attrs: Mapping[Any, Any]) -> str:
    """The rows that were used."""
    used, n_given = int(attrs.get("n_rows", 0)), int(attrs.get("n_rows_given", 0))
    text = f"{used:,} rows" if used == n_given else f"{used:,} of {n_given:,} rows"
    return text + STATED.get(str(attrs.get("held_out", "")), "")


def uncertainty_text(attrs: Mapping[Any, Any]) -> str:
    """What is in the intervals, and what is not."""
    sampling = (
        "sampling of groups of rows" if attrs.get("groups") == "yes" else "sampling of the rows"
    )
    if examined(attrs):
        return (
            f"Uncertainty: {sampling} and the learner for changes in the data (debiased, on rows "
            f"kept from {attrs.get('n_fits', 'the')} fits); {sampling} alone, the model taken as "
            f"given, for the rest. Effects hold the other columns fixed; they are not causes."
        )
    model = ", the model taken as given"
    if attrs.get("parameters") == "yes":
        model = (
            " and the parameters of the model, in all intervals of effects; the spread between "
            "rows and the splits have neither interval nor P, as theirs would take the model as "
            "given, and agreement with outcomes is that of this fit"
        )
    why = str(attrs.get("examined", ""))
    not_examined = f" Whether the effects are in the data was not examined: {why}." if why else ""
    return (
        f"Uncertainty: {sampling}{model}. Effects are those of the model, not causes.{not_examined}"
    )


def outputs_in(tree: Any) -> dict[str, xr.DataTree]:
    """Explanations of single outputs by their labels; empty where there is one output."""
    if not isinstance(tree, xr.DataTree) or "outputs" not in tree.attrs:
        return {}
    return {
        str(part.attrs["output_label"]): part.copy(deep=False)
        for part in tree.children.values()
        if part.attrs.get("method") == "explain"
    }


def answers_in(tree: Any) -> xr.Dataset:
    """The group of facts of an explanation, else ``TypeError`` or ``ValueError``."""
    if not isinstance(tree, xr.DataTree):
        raise TypeError(
            f"tree must be the DataTree that explain(model, X, y) returned; got {shown(tree)}."
        )
    if several := outputs_in(tree):
        first = next(iter(several.values())).name
        raise ValueError(
            f"tree must be of one output here; this one is of {', '.join(several)}. Take one: "
            f"tree[{first!r}]."
        )
    if tree.attrs.get("method") != "explain" or "answers" not in tree.children:
        raise ValueError(
            "tree must be what explain(model, X) returned; got a tree without its group 'answers'."
        )
    answers: xr.Dataset = tree["answers"].to_dataset()
    return answers
