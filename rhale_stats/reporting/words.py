"""The texts around the numbers of a report; a real minus, intervals in words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from rhale_stats.answers.numbers import estimate, number

MINUS = "−"
# A minus before a digit that is not part of a date, a range or a name.
HYPHEN = re.compile(r"(?<![\w.)\]-])-(?=\.?\d)")


def typeset(text: str) -> str:
    """A text with real minus signs before its numbers."""
    return HYPHEN.sub(MINUS, text)


def with_interval(value: float, ends: Sequence[float] | NDArray[np.float64]) -> tuple[str, str]:
    """An estimate and its interval, "low to high", in the same decimals."""
    text, _, rest = estimate(value, ends).partition(" [")
    return typeset(text), typeset(rest.rstrip("]").replace(", ", " to "))


def number_text(value: float, digits: float | None = None) -> str:
    """A number with a real minus."""
    return typeset(number(value, digits))


# --- the texts around the numbers of a report -----------------------------------------------------


# Sentences with facts are those of `explain`; these are heads, keys and explanations.
TEXTS: Final[dict[str, Any]] = {
    "skip": "Skip to the main points",
    "kicker": "Model report",
    "contents": "Contents",
    "title": "What moves {output}",
    "download": "{name} ({form}, {size})",
    "picture": "Picture {number}.",
    "footer": "Sentences with numbers are written by rule from the tables. Made by",
    "points": "Main points",
    "trust": "Can the model be trusted on these rows?",
    "which": "Which features matter?",
    "features": "How does each feature act?",
    "together": "Which features act together?",
    "sure": "How sure are these numbers?",
    "again": "Settings and data",
    "how_to_read": "How to read this.",
    "note": "The report describes the predictions of the model, not causes. Intervals say how "
    "far a number would move with another sample of rows; {model}. "
    "“Matters” means more than {threshold}, {share} of the standard deviation of the "
    "{of}. “Rows” are the cases in the data.",
    "which_key": "below {threshold}: hardly matters",
    "which_caption": "How much each feature moves the predictions: on average, and differently "
    "for single rows, with {level} intervals.",
    "which_alt": "Dot chart of {n}. {first} All values are in the table below.",
    "which_alt_one": "{name}: average {average}, rows {rows}.",
    "which_table": "Features, the largest effects first",
    "which_table_first": "The first {n} features, the largest effects first",
    "average_key": "on average: standard deviation of the average curve over the rows",
    "rows_key": "single rows: how far their curves are from the average curve",
    "features_answer": "Each part says what the model does with one feature. Black and grey "
    "are about the average and how sure it is; colour is about single rows and groups of rows.",
    "rest": "No pictures are shown of {n}: {names}. Their numbers are in the table “{table}”.",
    "band_key": "average of all rows, with its {band}",
    "average_of_level": "average of all rows, with its {band}",
    "group_key": "{rule} ({rows})",
    "few_key": "shape not known: few rows, or none; not drawn at an end",
    "strip_key": "single rows: middle half (wide bar), middle 80 % (narrow bar); blue where "
    "the output rises, orange where it falls; the dot is the average",
    "part_key": "groups of rows",
    "across_key": "single rows: middle half (wide bar), middle 80 % (narrow bar)",
    "all_rows": "all rows",
    "single_rows": "single rows",
    "strip_title": "Change for single rows, +{step}",
    "outcome_title": "Observed (dots), predicted (line)",
    "rows_title": "Rows",
    "two_caption": "Output at {second} less that at {first}: effect of {feature} on {output}.",
    "unknown": "not known",
    "no_value": "–",
    "between": "{first} to {last}",
    "band_name": "simultaneous {level} band",
    "interval_name": "simultaneous {level} interval",
    "rare_level": "a level that few rows have",
    "rare_levels": "levels that few rows have",
    "rare_exception": "at levels that few rows have",
    "levels_left_out": "Levels with fewer than 5 rows are not shown: {n}.",
    "curve_caption": "Effect of {feature} on {output} (accumulated local effects). 0 is the "
    "average prediction.",
    "curve_alt": "{kind} over {feature} from {first} to {last}. Average effect on {output}: "
    "{values}. {width}{groups}All values are in the table below.",
    "width_alt": "Widest half-width of the {band}: {width}. ",
    "group_alt": "Group {rule}: highest {value} at {place}. ",
    "curve_kind": "Line chart",
    "strip_kind": "Line chart with the changes of single rows below it",
    "levels_kind": "Dot chart",
    "values_table": "Values of {feature}",
    "tree_head": "Groups of rows in which {feature} acts differently",
    "panel_caption": "{rule} ({rows}). The thin line is the average of all rows.",
    "panel_alt": "Line chart. Highest {high} at {high_at}, lowest {low} at {low_at}.",
    "together_lead": "Splits of the rows were looked for in {n}, by all other columns. Listed "
    "is the best split of each where its permutation test stands after adjustment for all of "
    "these, with the share of the differences between rows that it takes away.",
    "together_none": "Splits of the rows were looked for in {n}, by all other columns. None "
    "stands by its permutation test.",
    "together_unknown": "No feature's rows differ enough to look for what makes them differ.",
    "together_table": "Strongest pairs",
    "which_answer": "{matter} of {n} matter on average.",
    "which_hidden": "{n} more hardly matter on average, but matter for single rows.",
    "which_hidden_one": "1 more hardly matters on average, but matters for single rows.",
    "which_heads": "feature|from, to|change in the model|matters on average?|"
    "shape of the average|rows differ?|differ most by|curve reliable?",
    "which_heads_in_data": "feature|from, to|change in the data|in the data?|"
    "change in the model|shape in the model|rows differ?|differ most by|curve reliable?",
    "which_numbers": ("change in the data", "change in the model"),
    "which_in_data": "{there} of {n} have an average effect in the data. Changes are between "
    "the values below which 10 % and 90 % of the rows are; the picture shows sizes in the "
    "model.",
    "differs": {"yes": "yes, in the data too", "not shown": "in the model only"},
    "skill": "{name} on rows that the model did not see",
    "skill_note": "by refits without them",
    "no_shape": "levels have no order",
    "no_split": "no column found",
    "no_warning": "no warning",
    "which_data_heads": "feature|label|units|from_to|in_data|in_data_lower|in_data_upper|"
    "in_data_verdict|change|change_lower|change_upper|differs_in_data|importance|importance_lower|importance_upper|"
    "matters|row_spread|row_spread_lower|row_spread_upper|rows_differ|shape|split|warning",
    "calibration": "Rows sorted by prediction, in groups of equal size",
    "calibration_heads": "prediction|rows|mean predicted|mean observed|observed less predicted",
    "scores": {
        "r2": "R² on these rows",
        "mae": "Mean absolute error",
        "auc": "AUC on these rows",
        "log_loss": "Log loss",
        "brier": "Brier score",
        "bias": "Bias",
    },
    "bias_note": "mean of predicted less observed",
    "output": "Output",
    "feature": "Feature",
    "group": "Group of rows",
    "all_parts": "all",
    "place_of": "Place on {feature}",
    "effect": "effect",
    "lower": "{band}, lower",
    "upper": "upper",
    "together_heads": "effect of|differs by|split|share explained|adjusted P",
    "settings_heads": "setting|value",
    "in_intervals": "In the intervals",
    "in_rows": "The sampling of {of}: how far a number would move with another sample of {n} rows.",
    "in_band": "A band along a curve is simultaneous: in {level} of samples it holds the whole "
    "curve. All other intervals hold one number each.",
    "of_rows": "the rows",
    "of_groups": "groups of rows that depend on each other",
    "not_in_intervals": "Not in the intervals",
    "as_given": "the model is taken as given",
    "with_refits": "those of changes in the data hold refits of the model, for the rest "
    "the model is taken as given",
    "with_parameters": "those of effects hold the estimated parameters of the model",
    "in_parameters": "The parameters of the model, in curves of all rows and of groups of rows "
    "and in differences between groups: how far a number would move if the model were fitted "
    "to another sample.",
    "not_parameters": "The choice of the model: which columns it has, and in which form. How "
    "far single rows differ from the average, and splits, have no interval and no P, because "
    "theirs would take the parameters as given.",
    "not_model": "The model. Another fit, to other rows or with another seed, has other "
    "curves; in Python, bootstrap_refit measures by how much.",
    "not_places": "The search for the groups of rows: their curves are drawn from the rows by "
    "which the groups were found. Its test allows for the search.",
    "not_known": "Whether the model was fitted to these rows was not stated. If it was, the "
    "agreement with the outcomes is better than with new rows.",
    "not_claimed": "Not claimed",
    "no_causes": "Causes. A curve says what the model does with a feature, not what would "
    "happen if the feature were changed.",
    "no_values": "That a feature “hardly matters” for every row: the verdicts are about the "
    "rows together, and rare values count little.",
    "rows_as_they_are": "Where the model is asked",
    "asked_average": "The average curves ask the model only for rows moved within their own "
    "bin, so for rows like those in the data (accumulated local effects).",
    "asked_rows": "The spread of single rows asks it for {n} rows moved along the whole axis, "
    "also to combinations of values that may not occur (individual conditional expectations).",
    "cut": "Left out to keep to the budget of {budget}",
    "notes": "Warnings",
    "settings_of": {
        "model": "model",
        "level": "level of intervals",
        "matters": "threshold, share of the standard deviation of the outcome or predictions",
        "held_out": "rows kept from the fit, as the caller stated",
        "groups": "rows in groups",
        "n_rows": "rows",
        "n_rows_given": "rows given",
        "ice_rows": "rows with curves of their own",
        "n_tested": "features in which splits were looked for",
        "n_permutations": "permutations of a test",
        "seed": "seed",
        "budget": "budget of time",
        "seconds": "seconds used",
        "created": "made",
        "software": "software",
        "versions": "libraries",
    },
    "curves": "Curves of the first features",
    "hints": 'rs.report(e, "report.html")   rs.summary(e, feature)   rs.tidy(e)   e.contents',
    "again_answer": "All numbers of this report are inside this file, and need no network.",
    "settings": "The call, settings and versions",
}
# As attributes; templates have them by this name, too.
t: Final[Any] = SimpleNamespace(**TEXTS)
