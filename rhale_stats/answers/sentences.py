"""Facts of an explanation in words: numbers and intervals, and sentences, each by a rule.

Where the rule of a sentence fails there is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from rhale_stats.arguments.times import are_dates, date_texts, units_after
from rhale_stats.arguments.words import shown
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.printing.text import permutation_text
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
    fit_bias: float = float("nan")
    fit_bias_ci: Ends = UNKNOWN_ENDS
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


def sentences(line: AnswerLine, attrs: Mapping[Any, Any]) -> Iterator[str]:
    """All that can be said of one feature after its headline."""
    units = units_of(attrs)
    tested = f"P {_equals(line.in_data_p)} of no effect" if np.isfinite(line.in_data_p) else ""
    if np.isfinite(line.in_data_change):
        size = signed(line.in_data_change, line.in_data_ci)
        tested = f" ({tested} anywhere)" if tested else ""
        yield f"In the data, the outcome changes with {between(line)} by {size}{units}{tested}."
    elif tested:
        yield f"In the data its levels are compared together ({tested})."
    if np.isfinite(line.usual_change):
        size = signed(line.usual_change, line.usual_change_ci)
        yield f"The average prediction changes with {between(line)} by {size}{units}."
    if np.isfinite(line.range_ci).all() and line.highest_at:
        size = f"{estimate(line.range, line.range_ci)}{units}"
        if line.matters == HARDLY:
            yield f"The average curve spans {size}."
        elif line.shape.startswith("higher at"):
            places = f"at {line.highest_at} than at {line.lowest_at}"
            yield f"The average curve is {size} higher {places}."
        else:
            yield (
                f"The average curve is lowest at {line.lowest_at} and highest at "
                f"{line.highest_at}, a difference of {size}."
            )
    if line.matters == YES and not line.shape.startswith(("high", "no clear", "differs")):
        yield f"It {line.shape}."
    if line.rows_differ == YES:
        size = estimate(line.row_spread, line.row_spread_ci)
        yield f"A single row's curve typically differs from the average curve by {size}{units}."
    elif line.rows_differ == HARDLY:
        largest = np.nanmax([line.row_spread, line.row_spread_ci[1]])
        within = f"Single rows follow the average curve within about {number(largest)}{units}."
        yield within if largest else "The curves of single rows are parallel."
    if line.split_by:
        p = line.split_pvalue
        tested = f" (adjusted P {_equals(p)})" if np.isfinite(p) else ""
        yield (
            f"The rows differ most by {line.split_by}: the split {line.split_rule} takes away "
            f"{percent(line.split_drop)} of the variance of the local effects{tested}."
        )
    elif line.split_tried and line.rows_differ == YES:
        yield "No split of the rows by another column that was tried explains the difference."
    if sides := _sides(line, attrs):
        yield sides
    if line.unreliable:
        yield f"Not reliable everywhere: {line.unreliable}."
    if line.rows_differ == YES and line.bias_share >= MIN_BIAS:
        yield (
            f"{percent(line.bias_share)} of the variance of the local effects inside bins is bin "
            f"error, not heterogeneity."
        )
    if line.fit_differs:
        size = estimate(line.fit_bias, line.fit_bias_ci)
        yield (
            f"The model is off {line.fit_differs} by {size}{units} on average (observed less "
            f"predicted)."
        )


def between(line: AnswerLine) -> str:
    """The usual values of a feature, ``age from 21 to 64 years``; its name where there are none."""
    if not line.usual_to:
        return line.label
    units = units_after(line.feature_units)
    return f"{line.label} from {line.usual_from} to {line.usual_to}{units}"


def _equals(value: float) -> str:
    """A P-value after its sign of equality."""
    text = permutation_text(value)
    return text if text.startswith("<") else f"= {text}"


def _sides(line: AnswerLine, attrs: Mapping[Any, Any]) -> str:
    if not line.split_by or not np.isfinite(line.apart):
        return ""
    sign = -1.0 if line.apart < 0 else 1.0
    size = estimate(sign * line.apart, sorted(sign * end for end in line.apart_ci))
    return (
        f"With {line.label} = {line.apart_at}, the output changes by {size}{units_of(attrs)} "
        f"{'less' if sign < 0 else 'more'} in rows with {line.split_rule} than in the others."
    )


def main_points(lines: list[AnswerLine], attrs: Mapping[Any, Any]) -> list[str]:
    """The answer in a few bullets: of the outcome where it was examined, else of the model."""
    points = ["No feature moves the predictions."]
    if lines and lines[0].movement > 0:
        of_features = _in_data if examined(attrs) else _in_model
        points = [*_skill(lines, attrs), *of_features(lines, attrs)]
    additive = additive_sentence(attrs)
    return [*points, *([additive] if additive else []), *fit_sentences(attrs)][:MAX_POINTS]


def _skill(lines: list[AnswerLine], attrs: Mapping[Any, Any]) -> Iterator[str]:
    """What stands above all others where the model does not predict."""
    says = "what follows describes its noise"
    if any(line.in_data == YES for line in lines):
        # Rows kept from the fits may show an effect which is too weak to be seen in R².
        says = "its curves are largely noise. Effects in the data were found on rows kept from fits"
    if not predicts(attrs):
        yield f"The model does not predict new rows ({skill_text(attrs)}): {says}."


def skill_text(attrs: Mapping[Any, Any]) -> str:
    """The skill of the model on rows that it did not see, with its interval."""
    names = ("skill_low", "skill", "skill_high")
    low, value, high = (f"{float(attrs[name]):.2f}" for name in names)
    return f"{attrs['skill_name']} {value} [{low}, {high}]"


def _in_data(lines: list[AnswerLine], attrs: Mapping[Any, Any]) -> Iterator[str]:
    """The features with an effect in the data, each with its size, how rows differ, and others."""
    units = units_of(attrs)
    in_data = [line for line in lines if line.in_data == YES]
    for line in in_data[:MAX_EFFECTS]:
        turns = f"; the model's curve {_turning(line)}" if _turning(line) else ""
        size, model = signed(line.in_data_change, line.in_data_ci), signed(line.usual_change)
        if not np.isfinite(line.in_data_change):
            yield (
                f"{line.label}: the outcome differs between its levels (P "
                f"{_equals(line.in_data_p)}); the model's highest is {line.highest_at}, its lowest "
                f"{line.lowest_at}."
            )
        elif line.in_data_ci[0] <= 0 <= line.in_data_ci[1]:
            yield (
                f"{line.label}: an effect in the data (P {_equals(line.in_data_p)}), but none "
                f"shown from {line.usual_from} to {line.usual_to}: {size}{units}, {model} in the "
                f"model{turns}."
            )
        else:
            yield f"{between(line)}: {size}{units} in the data, {model} in the model{turns}."
    yield from _of_all(in_data[MAX_EFFECTS:], "Also in the data: {}.")
    confirmed = [line for line in lines if line.differs_in_data == YES]
    if confirmed:
        top = max(confirmed, key=lambda line: abs(np.nan_to_num(line.apart)))
        by = f" by {top.split_by}" if top.split_by else ""
        rest = [line for line in confirmed if line is not top]
        also = f" So do those of {_names(rest)}." if rest else ""
        sides = f" {_sides(top, attrs)}" if _sides(top, attrs) else ""
        yield f"The effect of {top.label} differs between rows{by}, in the data too.{sides}{also}"
    yield from _of_all(
        [line for line in lines if line.rows_differ == YES and line.differs_in_data == NOT_SHOWN],
        "Only the model treats single rows differently by {}: new rows do not confirm it.",
    )
    hidden = [line for line in lines if line.in_data == NOT_SHOWN]
    used = [line for line in hidden if YES in (line.matters, line.rows_differ)]
    uses = f", though the model uses {_names(used)}" if used else ""
    if used and len(used) == len(hidden):
        uses = ", though the model uses " + ("it" if len(used) == 1 else "them")
    yield from _of_all(hidden, f"No average effect shown in the data: {{}}{uses}.")
    none = [line for line in lines if line.in_data == NO]
    size = f"{number(threshold_of(attrs))}{units}"
    yield from _of_all(none, f"No effect in the data as large as {size} on average: {{}}.")
    unknown = [line for line in lines if line.in_data == NOT_EXAMINED]
    yield from _of_all(unknown, "Not examined in the data: {}.")


def _of_all(lines: Sequence[AnswerLine], several: str, single: str = "") -> list[str]:
    """A sentence about features by name, in the singular or the plural; none about none."""
    text = single if single and len(lines) == 1 else several
    return [text.replace("{}", _names(lines), 1)] if lines else []


def _names(lines: Sequence[AnswerLine]) -> str:
    """The first features by name: as many as fit in a line or two, at least one."""
    labels = [line.label for line in lines]
    fit = int(np.sum(np.cumsum([len(label) for label in labels]) <= NAMES_LENGTH))
    return listed(labels, int(np.clip(fit, 1, MAX_NAMES)))


def _turning(line: AnswerLine) -> str:
    """How a curve goes that is not told by a change between two values; else empty."""
    return line.shape if "turn" in line.shape else ""


def _in_model(lines: list[AnswerLine], attrs: Mapping[Any, Any]) -> Iterator[str]:
    """The features that move the average prediction, the strongest group difference, the others."""
    units = units_of(attrs)
    large = [line for line in lines if line.matters == YES and line.highest_at]
    for line in large[:MAX_EFFECTS]:
        turns = f"; {_turning(line)}" if _turning(line) else ""
        if np.isfinite(line.usual_change):
            size = signed(line.usual_change, line.usual_change_ci)
            yield f"{between(line)}: {size}{units}{turns}."
        else:
            size = estimate(line.range, line.range_ci)
            yield f"{line.label}: {size}{units} more at {line.highest_at} than at {line.lowest_at}."
    yield from _of_all(large[MAX_EFFECTS:], "Smaller effects: {}.")
    split = [line for line in lines if line.split_by and np.isfinite(line.apart)]
    if split:
        top = max(split, key=lambda line: abs(line.apart))
        yield f"The rows differ in {top.label} by {top.split_by}. {_sides(top, attrs)}"
    yield from _of_all(
        [line for line in lines if (line.matters, line.rows_differ) == (HARDLY, YES)],
        "No average effects, but their effects differ between single rows: {}.",
        "No average effect, but its effect differs between single rows: {}.",
    )
    hardly = [line for line in lines if (line.matters, line.rows_differ) == (HARDLY, HARDLY)]
    plain = [line for line in hardly if not line.exception]
    yield from _of_all(plain, "{}: hardly matter.", "{}: hardly matters.")
    for line in hardly:
        if line.exception:
            yield f"{line.label}: hardly matters, except {line.exception}."
    yield from _of_all(
        [line for line in lines if line.matters == UNKNOWN],
        "{}: cannot tell whether they matter on average.",
        "{}: cannot tell whether it matters on average.",
    )


# Shares of the variance: of all but rounding, and of all but what curves leave out in their bins.
ADDITIVE, NEARLY_ALL = 0.9995, 0.99


def additive_sentence(attrs: Mapping[Any, Any]) -> str:
    """How far curves of single features go."""
    share = float(attrs.get("additive_r2", np.nan))
    if not np.isfinite(share):
        return ""
    if share < 0:
        return "Curves of single features do not add up to the predictions."
    if share >= ADDITIVE:
        return "Curves of single features reproduce the predictions: the model is additive."
    nearly_all = share >= NEARLY_ALL
    shown = f"{100 * share:.1f} %" if nearly_all else percent(share)
    rest = "" if nearly_all else "; the rest needs features in combination"
    return f"Curves of single features reproduce {shown} of the variance of the predictions{rest}."


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
    has_parameters = attrs.get("parameters") == "yes"
    none = (
        "; the spread between rows and the splits have neither interval nor P, as theirs would "
        "take the model as given"
    )
    if examined(attrs):
        rest = f"{sampling} alone, the model taken as given, for the rest"
        if has_parameters:
            rest = f"{sampling} and the parameters of the model for effects in the model{none}"
        return (
            f"Uncertainty: {sampling} and the learner for changes in the data (debiased, on rows "
            f"kept from {attrs.get('n_fits', 'the')} fits); {rest}. Effects hold the other columns "
            f"fixed; they are not causes."
        )
    model = ", the model taken as given"
    if has_parameters:
        model = (
            f" and the parameters of the model, in all intervals of effects{none}, and agreement "
            f"with outcomes is that of this fit"
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
