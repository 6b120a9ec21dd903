"""What a report shows, as plain values, read from the tree of an explanation."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rhale_stats.answers import sentences
from rhale_stats.answers.sentences import (
    AnswerLine,
    axis_texts,
    estimate,
    lines_of,
    number,
    percent,
    with_labels,
)
from rhale_stats.arguments.times import unit_word
from rhale_stats.arrays.answers import stretches
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.printing.text import count_text
from rhale_stats.schema.feature_result import FeatureResult, one_feature
from rhale_stats.schema.features import with_units
from rhale_stats.schema.levels import NOMINAL, level_names
from rhale_stats.schema.variables import OUTPUT_UNITS

Attrs = Mapping[Any, Any]
MINUS = "−"
# A minus before a digit that is not part of a date, a range or a name.
HYPHEN = re.compile(r"(?<![\w.)\]-])-(?=\.?\d)")


def typeset(text: str) -> str:
    """A text with real minus signs before its numbers."""
    return HYPHEN.sub(MINUS, text)


def number_text(value: float) -> str:
    """A number with a real minus."""
    return typeset(number(value))


def with_interval(value: float, ends: Sequence[float] | NDArray[np.float64]) -> tuple[str, str]:
    """An estimate and its interval, "low to high", in the same decimals."""
    text, _, rest = estimate(value, ends).partition(" [")
    return typeset(text), typeset(rest.rstrip("]").replace(", ", " to "))


# --- what a report shows, as values ---------------------------------------------------------------


@dataclass(frozen=True)
class PictureCurve:
    """A curve over points or levels, with the ends of its band or intervals; NaN is a gap."""

    x: FloatArray
    y: FloatArray
    low: FloatArray
    high: FloatArray

    def take(self, points: NDArray[np.bool_] | slice) -> PictureCurve:
        """The curve at some of its points."""
        return PictureCurve(self.x[points], self.y[points], self.low[points], self.high[points])


class ReportSize(NamedTuple):
    """A number with its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Group:
    """Rows of a region: the condition that parts them from those above, their number and curve.

    Of a feature with two levels ``difference`` is the second less the first.
    """

    condition: str
    n_rows: int
    curve: PictureCurve
    depth: int = 0
    is_leaf: bool = True
    rule: str = ""
    difference: ReportSize | None = None


@dataclass(frozen=True)
class Windows:
    """Changes of single rows along an axis: quantiles (window, quantile) and mean, by window."""

    left: FloatArray
    right: FloatArray
    quantiles: FloatArray
    mean: FloatArray
    # By how much the feature rises, with its units.
    step: str


@dataclass(frozen=True)
class ReportFeature:
    """What a report says of one feature: its facts, texts made of them, and its picture."""

    line: AnswerLine
    anchor: str
    headline: str
    sentences: tuple[str, ...]
    # The usual values, and the column by which rows differ most.
    usual: str
    split: str
    band: str
    curve: PictureCurve
    # Of levels, in the order of the curve; empty for an axis.
    levels: tuple[str, ...] = ()
    ordered: bool = True
    # Numbers of rows between the points of the curve, or at levels.
    counts: FloatArray = field(default_factory=lambda: np.zeros(0))
    windows: Windows | None = None
    # Parts of the axis where the curve cannot be relied on, from left to right.
    stretches: tuple[tuple[float, float], ...] = ()
    groups: tuple[Group, ...] = ()
    # Levels that too few rows have to be shown.
    left_out: int = 0
    # Of two levels: the second less the first, and quantiles of single rows.
    difference: tuple[ReportSize, FloatArray | None] | None = None
    # Means of the observed and predicted output by place: place_left, place_right, observed,
    # predicted.
    outcome: dict[str, FloatArray] = field(default_factory=dict)

    @property
    def shown(self) -> str:
        """Its name for people, and its units."""
        return with_units(self.line.label, self.line.feature_units)

    @property
    def leaves(self) -> tuple[Group, ...]:
        """The groups that no split divides."""
        return tuple(group for group in self.groups if group.is_leaf)


@dataclass(frozen=True)
class ReportContent:
    """All that a report says; ``attrs`` are those of the explanation."""

    attrs: Attrs
    output: str
    units: str
    about: str
    level: float
    threshold: float
    points: tuple[str, ...]
    # Those that move the predictions most come first.
    features: tuple[ReportFeature, ...]
    # How the model does on the rows, if the outcome is known: ``stats`` (names, values and notes)
    # and ``sentences``; by tenths of the predictions ``calibration``.
    trust: dict[str, Any] = field(default_factory=dict)
    calibration: tuple[tuple[str, ...], ...] = ()
    # Columns that act together, the effect of one differs by the other: feature, by, rule, drop,
    # pvalue.
    pairs: tuple[dict[str, Any], ...] = ()
    # How many were tried.
    n_pairs: int = 0
    limits: dict[str, tuple[str, ...]] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def examined(self) -> bool:
        """Whether effects on the outcome were estimated."""
        return sentences.examined(self.attrs)

    @property
    def parameters(self) -> bool:
        """Whether intervals of average curves hold the parameters of the model."""
        return self.attrs.get("parameters") == "yes"

    @property
    def shown(self) -> str:
        """The output, and its units."""
        return self.in_units(self.output)

    def in_units(self, text: str) -> str:
        """A head or title of numbers in the units of the output, with these."""
        return with_units(text, self.units)

    @property
    def effect_in(self) -> str:
        """What is added to the caption of a small picture."""
        return f"; effect in {self.units}" if self.units else ""

    @property
    def least(self) -> str:
        """The threshold, above which an effect matters, with its units."""
        return f"{number_text(self.threshold)} {self.units}".rstrip()


# --- how it is read -------------------------------------------------------------------------------


# Levels with fewer rows than these have no name in a report: they may point to persons.
MIN_ROWS = 5
# Attributes of an explanation that a report shows.
SETTINGS = {
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
}
# Scores of a model.
SCORES = {
    "r2": "R² on these rows",
    "mae": "Mean absolute error",
    "auc": "AUC on these rows",
    "log_loss": "Log loss",
    "brier": "Brier score",
    "bias": "Bias",
}


def explained(tree: xr.DataTree) -> ReportContent:
    """All that a report says."""
    tree = _in_shown_units(tree)
    answers = sentences.answers_in(tree)
    attrs: Attrs = {**answers.attrs, **tree.attrs}
    effect = tree["effect"].to_dataset()
    regions = regions_of(tree)
    lines = [_private(line, effect) for line in lines_of(answers)]
    features = tuple(
        _feature(line, position, tree, regions.get(line.feature))
        for position, line in enumerate(lines)
    )
    name, units = str(attrs.get("output_name", "output")), str(attrs.get("output_units", ""))
    n_features = count_text(len(lines), "feature")
    about = [f"{attrs.get('model', 'Model')}.", f"{sentences.rows_text(attrs)}, {n_features}."]
    return ReportContent(
        attrs=attrs,
        output=name,
        units=units,
        about=" ".join([*about, *([f"{attrs['created']}."] if attrs.get("created") else [])]),
        level=float(attrs["level"]),
        threshold=float(attrs["delta"]),
        points=tuple(typeset(point) for point in sentences.main_points(lines, attrs)),
        features=features,
        trust=_trust(attrs) if "outcome" in tree.children else {},
        calibration=_calibration(tree),
        pairs=tuple(
            {
                "feature": line.label,
                "by": line.split_by,
                "rule": line.split_rule,
                "drop": line.split_drop,
                "pvalue": line.split_pvalue,
            }
            for line in sorted(lines, key=lambda line: -np.nan_to_num(line.split_drop))
            if line.split_by
        ),
        n_pairs=sum(line.split_tried for line in lines),
        limits=_limits(attrs),
        settings={text: str(attrs[key]) for key, text in SETTINGS.items() if key in attrs},
    )


def _in_shown_units(tree: xr.DataTree) -> xr.DataTree:
    """All groups in the units in which numbers are shown: percentage points of probabilities."""
    times = float(tree.attrs.get("shown_times", 1.0))
    if times == 1.0:
        return tree
    units = str(tree.attrs["shown_units"])
    out = {}
    for node in tree.subtree:
        group = node.to_dataset()
        for name in map(str, group.data_vars):
            variable_units = str(group[name].attrs.get("units", ""))
            if variable_units.startswith(OUTPUT_UNITS) and group[name].dtype.kind == "f":
                group[name] = group[name] * times
        group.attrs |= {"shown_times": 1.0, "output_units": units}
        for name in {"delta", "y_min", "y_max", "bias"} & group.attrs.keys():
            group.attrs[name] = float(group.attrs[name]) * times
        out[node.path] = group
    return xr.DataTree.from_dict(out)


def regions_of(tree: xr.DataTree) -> dict[str, xr.DataTree]:
    """Groups of rows by the feature whose effects they part."""
    if "regions" not in tree.children:
        return {}
    return {str(region.attrs["feature"]): region for region in tree["regions"].children.values()}


def _private(line: AnswerLine, effect: xr.Dataset) -> AnswerLine:
    """Without the names of levels that few rows have."""
    row = one_feature(effect, line.feature)
    if not row.is_categorical:
        return line
    rare = set(np.array(level_names(row))[_rare(row)])
    if not rare:
        return line
    hidden = "a level that few rows have"

    def without(text: str) -> str:
        return hidden if text in rare else text

    def unless_named(text: str, other: str) -> str:
        return other if any(name in text for name in rare) else text

    word, separator, level = line.shape.partition(" at ")
    return replace(
        line,
        lowest_at=without(line.lowest_at),
        highest_at=without(line.highest_at),
        shape=f"{word}{separator}{unless_named(level, hidden)}" if separator else line.shape,
        unreliable=unless_named(line.unreliable, "levels that few rows have"),
        exception=unless_named(line.exception, "at levels that few rows have"),
        fit_differs=unless_named(line.fit_differs, ""),
        apart_at=without(line.apart_at),
    )


def _rare(row: FeatureResult) -> np.ndarray:
    return np.asarray(row["n_level"].values[: len(level_names(row))] < MIN_ROWS)


def _feature(
    line: AnswerLine, position: int, tree: xr.DataTree, region: xr.DataTree | None
) -> ReportFeature:
    row = one_feature(tree["effect"].to_dataset(), line.feature)
    levels = row.is_categorical
    attrs: Attrs = {**tree["answers"].attrs, **tree.attrs}
    answers, places = tree["answers"].to_dataset(), () if levels else row.bin_edges
    split = f"{line.split_by} ({percent(line.split_drop)})".replace(" %", "\u00a0%")
    return ReportFeature(
        line=line,
        anchor=f"f-{position}",
        headline=typeset(sentences.headline(line)),
        sentences=tuple(typeset(sentence) for sentence in sentences.sentences(line, attrs)),
        usual=typeset(f"{line.usual_from} to {line.usual_to}") if line.usual_to else "",
        split=split if line.split_by else "",
        band=f"simultaneous {percent(float(attrs['level']))} {'interval' if levels else 'band'}",
        groups=_groups(region, places, answers) if region is not None else (),
        **(_of_levels if levels else _of_axis)(row, tree, line),
    )


def _of_axis(row: FeatureResult, tree: xr.DataTree, line: AnswerLine) -> dict[str, Any]:
    """The curve of a feature with an axis, and what is drawn below it."""
    return {
        "curve": _curve(row, row.bin_edges),
        "counts": row["n_obs"].values.astype(float),
        "windows": _windows(tree, line.feature, line.feature_units),
        "stretches": _stretches(row),
        "outcome": _outcome(tree, line.feature),
    }


def _curve(row: FeatureResult, x: Any) -> PictureCurve:
    low, high = row.at_bins("curve_band").T
    return PictureCurve(np.asarray(x, float), row.at_bins("curve"), low, high)


def _of_levels(row: FeatureResult, tree: xr.DataTree, line: AnswerLine) -> dict[str, Any]:
    """Levels and their values; those that few rows have are left out, and counted."""
    names, difference = level_names(row), None
    curve = _curve(row, np.arange(float(len(names)))) if row.sizes["bin"] else FLAT
    shown = ~_rare(row)[: len(curve.x)]
    shown_curve = curve.take(shown)
    outcome = _outcome(tree, line.feature).items()
    if len(names) == 2 and row.sizes["bin"] and shown.all():
        windows = _windows(tree, line.feature, "")
        difference = _of_first_bin(row), None if windows is None else windows.quantiles[0]
    return {
        "curve": shown_curve,
        "levels": tuple(np.array(names[: len(shown)])[shown].tolist()),
        "ordered": str(row["feature_kind"].values) != NOMINAL,
        "counts": row["n_level"].values[: len(shown)][shown],
        "left_out": int((~shown).sum()),
        "outcome": {name: each[shown] for name, each in outcome if len(each) == len(shown)},
        "difference": difference,
    }


FLAT = PictureCurve(*(np.zeros(0) for _ in range(4)))


def _of_first_bin(row: FeatureResult) -> ReportSize:
    low, high = row["effect_ci"].transpose("bin", "ci_bound").values[0]
    return ReportSize(float(row["effect"].values[0]), float(low), float(high))


def _windows(tree: xr.DataTree, feature: str, units: str) -> Windows | None:
    if "rows" not in tree.children:
        return None
    rows = tree["rows"].to_dataset()
    if feature not in rows["feature"].values:
        return None
    changes = rows.sel(feature=feature)
    present = np.isfinite(changes["window_left"].values)
    step = f"{float(changes['step']):g}"
    return Windows(
        changes["window_left"].values[present],
        changes["window_right"].values[present],
        changes["change"].transpose("window", "quantile").values[present],
        changes["change_mean"].values[present],
        f"{step} {unit_word(units)}".rstrip(),
    )


def _stretches(row: FeatureResult) -> tuple[tuple[float, float], ...]:
    """Neighbouring bins whose curve is not known for the same reason."""
    edges = row.bin_edges
    kinds = row["reliable"].values[: max(len(edges) - 1, 0)]
    runs = [run for kind in {*kinds} - {"yes"} for run in stretches(kinds == kind)]
    return tuple((float(edges[begin]), float(edges[end + 1])) for begin, end in sorted(runs))


def _groups(region: xr.DataTree, x: Any, answers: xr.Dataset) -> tuple[Group, ...]:
    """The groups of rows, each after the one that it is part of, with curves at ``x``."""
    tree, effect = region["tree"].to_dataset(), region["effect"].to_dataset()
    out = []
    for node in range(1, tree.sizes["node"]):
        branch = tree.isel(node=node)
        region_number = int(branch["region"])
        condition, rule = (
            with_labels(answers, str(branch[name].values)) for name in ("condition", "rule")
        )
        n_rows, depth, is_leaf = int(branch["n_obs"]), int(branch["depth"]) - 1, region_number >= 0
        curve, difference = FLAT, None
        if is_leaf:
            row = one_feature(effect.isel(region=region_number), 0)
            curve = _at(row, np.asarray(x, float)) if len(x) else FLAT
            if not len(x) and row.sizes["bin"] == 1:
                difference = _of_first_bin(row)
        out.append(Group(condition, n_rows, curve, depth, is_leaf, rule, difference))
    return tuple(out)


def _at(row: FeatureResult, x: Any) -> PictureCurve:
    """A group's curve and band at other places than its own edges, which are on straight lines."""
    curve = _curve(row, row.bin_edges)
    if not len(curve.x):
        return PictureCurve(x, *[x * np.nan] * 3)
    values = (curve.y, curve.low, curve.high)
    return PictureCurve(x, *(np.interp(x, curve.x, each, np.nan, np.nan) for each in values))


def _outcome(tree: xr.DataTree, feature: str) -> dict[str, Any]:
    """Observed and predicted means, and the places of these; empty without outcomes."""
    if "outcome" not in tree.children:
        return {}
    outcome = tree["outcome"].to_dataset().sel(feature=feature)
    present = np.isfinite(outcome["place_left"].values)
    names = ("place_left", "place_right", "observed", "predicted")
    return {name: outcome[name].values[present] for name in names}


def _trust(attrs: Attrs) -> dict[str, Any]:
    """Scores of the model, first what holds for new rows, and sentences about it."""
    units, about_bias = str(attrs.get("output_units", "")), "mean of predicted less observed"
    notes = {"mae": units, "bias": f"{units}, {about_bias}" if units else about_bias}
    two_decimals = "{:.2f}".format
    texts: dict[str, Callable[[float], str]] = {"r2": two_decimals, "auc": two_decimals}
    stats = []
    if "skill" in attrs:
        name = attrs["skill_name"]
        text = typeset(sentences.skill_text(attrs).removeprefix(f"{name} "))
        stats = [(f"{name} on rows that the model did not see", text, "by refits without them")]
    stats += [
        (name_shown, typeset(texts.get(name, number)(float(attrs[name]))), notes.get(name, ""))
        for name, name_shown in SCORES.items()
        if name in attrs
    ]
    return {"stats": stats, "sentences": list(map(typeset, sentences.fit_sentences(attrs)))}


def _calibration(tree: xr.DataTree) -> tuple[tuple[str, ...], ...]:
    """Observed and predicted by tenths of the predictions, as text; empty without outcomes."""
    if "outcome" not in tree.children:
        return ()
    outcome = tree["outcome"].to_dataset().transpose("tenth", "ci_bound", ...)
    ends = np.append(outcome["tenth_left"].values, outcome["tenth_right"].values)
    places = np.reshape([typeset(text) for text in axis_texts(ends)], (2, -1)).T
    names = ("n_obs", "predicted", "observed", "residual", "residual_ci")
    columns = [outcome[f"tenth_{name}"].values for name in names]
    return tuple(
        (
            f"{first} to {last}",
            f"{int(n):,}",
            number(float(predicted)),
            number(float(observed)),
            " ".join(with_interval(float(residual), interval)),
        )
        for (first, last), n, predicted, observed, residual, interval in zip(
            places, *columns, strict=True
        )
    )


def _limits(attrs: Attrs) -> dict[str, tuple[str, ...]]:
    """What is in the intervals, what is not, and what is not claimed."""
    in_groups, with_parameters = (attrs.get(name) == "yes" for name in ("groups", "parameters"))
    sampled = "groups of rows that depend on each other" if in_groups else "the rows"
    in_intervals = [
        f"The sampling of {sampled}: how far a number would move with another sample of "
        f"{int(attrs['n_rows']):,} rows.",
        f"A band along a curve is simultaneous: in {percent(float(attrs['level']))} of samples it "
        f"holds the whole curve. All other intervals hold one number each.",
    ]
    model = (
        "The model. Another fit, to other rows or with another seed, has other curves; in Python, "
        "bootstrap_refit measures by how much."
    )
    if with_parameters:
        in_intervals.insert(
            1,
            "The parameters of the model, in curves of all rows and of groups of rows and in "
            "differences between groups: how far a number would move if the model were fitted to "
            "another sample.",
        )
        model = (
            "The choice of the model: which columns it has, and in which form. How far single rows "
            "differ from the average, and splits, have no interval and no P, because theirs would "
            "take the parameters as given."
        )
    not_in_intervals = [
        model,
        "The search for the groups of rows: their curves are drawn from the rows by which the "
        "groups were found. Its test allows for the search.",
    ]
    if str(attrs.get("held_out", "unknown")) == "unknown":
        not_in_intervals.append(
            "Whether the model was fitted to these rows was not stated. If it was, the agreement "
            "with the outcomes is better than with new rows."
        )
    limits: dict[str, tuple[str, ...]] = {
        "In the intervals": tuple(in_intervals),
        "Not in the intervals": tuple(not_in_intervals),
        "Not claimed": (
            "Causes. A curve says what the model does with a feature, not what would happen if the "
            "feature were changed.",
            "That a feature “hardly matters” for every row: the verdicts are about the rows "
            "together, and rare values count little.",
        ),
        "Where the model is asked": (
            "The average curves ask the model only for rows moved within their own bin, so for "
            "rows like those in the data (accumulated local effects).",
            f"The spread of single rows asks it for {int(attrs.get('ice_rows', 0)):,} rows moved "
            f"along the whole axis, also to combinations of values that may not occur (individual "
            f"conditional expectations).",
        ),
    }
    cut = f"Left out to keep to the budget of {attrs.get('budget', '')}"
    for head, name in ((cut, "cut"), ("Warnings", "notes")):
        lines = [line for line in str(attrs.get(name, "")).splitlines() if line]
        if lines:
            limits[head] = tuple(lines)
    return limits
