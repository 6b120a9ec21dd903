"""The sections of a report: what each says, as values that the templates show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from rhale_stats.answers.numbers import percent
from rhale_stats.answers.sentences import pvalue_text
from rhale_stats.arguments.times import are_dates
from rhale_stats.printing.text import count_text
from rhale_stats.reporting.content import Explained, Feature, Group, Size
from rhale_stats.reporting.data import Link, Value, csv_link, json_link
from rhale_stats.reporting.figures import (
    feature_picture,
    group_panels,
    overview_picture,
    place_of,
    rows_text,
)
from rhale_stats.reporting.tables import Cell, Table, table
from rhale_stats.reporting.text import number_text, typeset, with_interval
from rhale_stats.reporting.words import Words

# Features with pictures, lines of picture 1 and lines of the table of pairs.
MOST_PICTURES, MOST_PAIRS = 30, 8


@dataclass(frozen=True)
class Section:
    """A section: its template, its question, and what answers it."""

    anchor: str
    question: str
    values: dict[str, Any] = field(default_factory=dict)

    @property
    def template(self) -> str:
        """File of its template."""
        return f"{self.anchor}.html.j2"

    def __getattr__(self, name: str) -> Any:
        try:
            return self.values[name]
        except KeyError:
            raise AttributeError(name) from None


@dataclass(frozen=True)
class Page:
    """The whole report."""

    title: str
    about: str
    software: str
    sections: tuple[Section, ...]

    @property
    def contents(self) -> list[tuple[str, str]]:
        """Ids and questions of the sections."""
        return [(section.anchor, section.question) for section in self.sections]


@dataclass(frozen=True)
class Branch:
    """A group of rows in the tree, and those below it."""

    text: str
    below: list[Branch]


@dataclass(frozen=True)
class Chosen:
    """Which features a report shows in full, and how many of these are open at first."""

    names: tuple[str, ...] | None
    n_open: int


def page_of(found: Explained, chosen: Chosen, title: str | None, t: Words) -> Page:
    """The sections of a report, in their order."""
    shown = [one for one in found.features if chosen.names is None or one.name in chosen.names]
    pictured = tuple(shown[:MOST_PICTURES])
    sections = [
        _points(found, t),
        *([_trust(found, t)] if found.trust else []),
        _which(found, pictured, t),
        _features(found, pictured, chosen.n_open, t),
        _together(found, t),
        Section("sure", t.sure, {"terms": [(term, texts) for term, texts in found.limits.items()]}),
        _again(found, t),
    ]
    title = title or t.title.format(output=found.output)
    return Page(title, found.about, found.software, tuple(sections))


def _points(found: Explained, t: Words) -> Section:
    note = t.note.format(
        threshold=number_text(found.threshold),
        share=percent(found.threshold_share),
        of=found.matters_of,
        model=t.with_refits
        if found.examined
        else (t.with_parameters if found.parameters else t.as_given),
    )
    return Section("points", t.points, {"sentences": found.points, "note": note})


def _trust(found: Explained, t: Words) -> Section:
    trust = found.trust
    assert trust is not None
    tables = []
    if trust.calibration:
        heads = [(head, k > 0) for k, head in enumerate(t.calibration_heads.split("|"))]
        tables.append(table(t.calibration, heads, trust.calibration))
    values = {"stats": trust.scores, "sentences": trust.sentences, "tables": tables}
    return Section("trust", t.trust, values)


# --- which features -------------------------------------------------------------------------------


def _which(found: Explained, pictured: tuple[Feature, ...], t: Words) -> Section:
    features = found.features
    there = sum(one.in_data is not None and one.in_data.verdict == "yes" for one in features)
    matter = sum(one.average.verdict == "yes" for one in features)
    hidden = sum(one.average.verdict == "hardly" and one.rows.verdict == "yes" for one in features)
    answer = t.which_answer.format(matter=matter, n=count_text(len(features), "feature"))
    if found.examined:
        answer = t.which_in_data.format(there=there, n=count_text(len(features), "feature"))
    elif hidden:
        answer += " " + (t.which_hidden_one if hidden == 1 else t.which_hidden.format(n=hidden))
    picture = overview_picture(found, pictured or features[:MOST_PICTURES], t)
    values = {"answer": answer, "picture": picture, "table": _ranking(found, pictured, t)}
    return Section("which", t.which, values)


def _ranking(found: Explained, pictured: Sequence[Feature], t: Words) -> Table:
    """The table of all features, with links to their parts and to a file."""
    targets = {one.name: one.anchor for one in pictured}
    return ranking(found, found.features, t, targets, ranking_link(found, t))


def ranking(
    found: Explained,
    features: Sequence[Feature],
    t: Words,
    targets: Mapping[str, str] = MappingProxyType({}),
    link: Link | None = None,
) -> Table:
    """Features in their order, with sizes, verdicts, shape, split and warning."""
    lines = [
        [
            Cell(
                one.label,
                target=targets.get(one.name, ""),
                code=one.name if one.label != one.name else "",
            ),
            one.usual or t.no_value,
            *_effects(one, t, of_data=found.examined),
            typeset(one.shape) or t.no_shape,
            _rows_differ(one, t),
            one.split or t.no_split,
            typeset(one.warning) or t.no_warning,
        ]
        for one in features
    ]
    left = len(found.features) - len(features)
    caption = t.which_table if not left else t.which_table_first.format(n=len(features))
    texts = t.which_heads_in_data if found.examined else t.which_heads
    heads = [(text, text in t.which_numbers) for text in texts.split("|")]
    return table(caption, heads, lines, wide=True, link=link)


def _effects(one: Feature, t: Words, *, of_data: bool) -> list[Cell | str]:
    """The change in the data, its verdict and the change in the model; or the latter alone."""
    model = _size(one.change) if one.change and np.isfinite(one.change.value) else t.no_value
    if not of_data:
        return [model, one.average.verdict]
    data = _size(one.in_data) if one.in_data and np.isfinite(one.in_data.value) else t.no_value
    return [data, one.in_data.verdict if one.in_data else "", model]


def _rows_differ(one: Feature, t: Words) -> str:
    """Whether rows differ, and whether new rows confirm it."""
    if one.rows.verdict == "yes" and one.differs_in_data in t.differs:
        return str(t.differs[one.differs_in_data])
    return one.rows.verdict


def _size(size: Size) -> Cell:
    return Cell(*with_interval(size.value, (size.low, size.high)))


def ranking_link(found: Explained, t: Words) -> Link:
    """The table of features as CSV."""
    heads = t.which_data_heads.split("|")
    lines = [[record[head] for head in heads] for record in map(record_of, found.features)]
    return csv_link("features", heads, lines)


def record_of(one: Feature) -> dict[str, Any]:
    """The facts of a feature by name."""
    return {
        "feature": one.name,
        "label": one.label,
        "units": one.units,
        "from_to": one.usual,
        **(_size_record("in_data", one.in_data) if one.in_data else {}),
        "in_data_verdict": one.in_data.verdict if one.in_data else "",
        **(_size_record("change", one.change) if one.change else {}),
        **_size_record("importance", one.average),
        "matters": one.average.verdict,
        **_size_record("row_spread", one.rows),
        "rows_differ": one.rows.verdict,
        "differs_in_data": one.differs_in_data,
        "shape": one.shape,
        "split": one.split,
        "warning": one.warning,
    }


def _size_record(name: str, size: Size) -> dict[str, float]:
    return {name: size.value, f"{name}_lower": size.low, f"{name}_upper": size.high}


# --- how each acts --------------------------------------------------------------------------------


def _features(found: Explained, pictured: tuple[Feature, ...], n_open: int, t: Words) -> Section:
    parts = [
        {
            "anchor": one.anchor,
            "open": k < n_open,
            "headline": one.headline,
            "sentences": one.sentences,
            "picture": feature_picture(one, k + 2, found, t),
            "left_out": t.levels_left_out.format(n=one.left_out) if one.left_out else "",
            "tree": _tree(one, t),
            "table": values_table(one, t),
        }
        for k, one in enumerate(pictured)
    ]
    drawn = {one.name for one in pictured}
    left = [one.label for one in found.features if one.name not in drawn]
    rest = ""
    if left:
        names = ", ".join(left[:MOST_PICTURES]) + (", …" if len(left) > MOST_PICTURES else "")
        count = count_text(len(left), "feature")
        rest = t.rest.format(n=count, names=names, table=t.which_table)
    values = {"answer": t.features_answer, "features": parts, "rest": rest}
    return Section("features", t.features, values)


def values_table(one: Feature, t: Words) -> Table:
    """The values of a picture, also as CSV."""
    curve = one.curve
    heads = [one.shown, t.effect, t.lower.format(band=one.band), t.upper]
    columns: list[Any] = [curve.y, curve.low, curve.high]
    for group in one.leaves:
        if len(group.curve.y) == len(curve.y) and len(curve.y):
            heads.append(group.rule)
            columns.append(group.curve.y)
    lines, data = [], []
    for k in range(len(curve.y)):
        values = [float(column[k]) for column in columns]
        texts = [t.no_value if np.isnan(value) else number_text(value) for value in values]
        lines.append([place_of(one, k), *texts])
        is_text = one.levels or are_dates(one.units)
        data.append([place_of(one, k) if is_text else float(curve.x[k]), *values])
    link = csv_link(one.name, heads, data)
    caption = t.values_table.format(feature=one.label)
    return table(caption, [(head, k > 0) for k, head in enumerate(heads)], lines, link=link)


def _tree(one: Feature, t: Words) -> dict[str, Any] | None:
    """The groups of rows as a tree, with a picture of each leaf."""
    if not one.groups:
        return None
    return {
        "head": t.tree_head.format(feature=one.label),
        "branches": branches(one.groups),
        "panels": () if one.levels else group_panels(one, t),
    }


def branches(groups: Sequence[Group]) -> list[Branch]:
    """Groups listed in order, each after the one that it divides, as a tree."""
    roots: list[Branch] = []
    above: list[tuple[int, Branch]] = []
    for group in groups:
        branch = Branch(f"{group.condition} ({rows_text(group.n_rows)})", [])
        while above and above[-1][0] >= group.depth:
            above.pop()
        (above[-1][1].below if above else roots).append(branch)
        above.append((group.depth, branch))
    return roots


# --- pairs, settings ------------------------------------------------------------------------------


def _together(found: Explained, t: Words) -> Section:
    if found.n_pairs is None:
        return Section("together", t.together, {"answer": t.together_unknown, "table": None})
    if not found.pairs:
        answer = t.together_none.format(n=count_text(found.n_pairs, "feature"))
        return Section("together", t.together, {"answer": answer, "table": None})
    pairs = found.pairs
    # With parameters in the other intervals there is no P.
    n_heads = 4 if found.parameters else 5
    heads = [(head, k > 2) for k, head in enumerate(t.together_heads.split("|"))][:n_heads]
    lines = [
        [one.feature, one.by, one.rule, percent(one.drop), pvalue_text(one.pvalue)][:n_heads]
        for one in pairs[:MOST_PAIRS]
    ]
    data: list[list[Value]] = [
        [one.feature, one.by, one.rule, one.drop, one.pvalue] for one in pairs
    ]
    data = [one[:n_heads] for one in data]
    link = csv_link("pairs", [head for head, _ in heads], data)
    answer = t.together_lead.format(n=count_text(found.n_pairs, "feature"))
    values = {"answer": answer, "table": table(t.together_table, heads, lines, link=link)}
    return Section("together", t.together, values)


def _again(found: Explained, t: Words) -> Section:
    lines = [[name, value] for name, value in found.settings.items()]
    heads = [(head, False) for head in t.settings_heads.split("|")]
    values = {
        "answer": t.again_answer,
        "links": [json_link("report", everything(found)), ranking_link(found, t)],
        "call": found.call,
        "table": table(t.settings, heads, lines),
    }
    return Section("again", t.again, values)


def everything(found: Explained) -> dict[str, Any]:
    """All numbers of a report, as `report.json` holds them."""
    features = {}
    for one in found.features:
        curve = one.curve
        features[one.name] = record_of(one) | {
            "headline": one.headline,
            "sentences": one.sentences,
            "x": one.levels or curve.x,
            "effect": curve.y,
            "lower": curve.low,
            "upper": curve.high,
            "groups": [
                {
                    "rule": group.rule,
                    "rows": group.n_rows,
                    "x": group.curve.x,
                    "effect": group.curve.y,
                    "lower": group.curve.low,
                    "upper": group.curve.high,
                }
                for group in one.leaves
            ],
            **one.outcome,
        }
    return {
        "output": found.output,
        "rows": found.n_rows,
        "threshold": found.threshold,
        "level": found.level,
        "points": found.points,
        "features": features,
        "pairs": [vars(pair) for pair in found.pairs],
        "call": found.call,
        "settings": found.settings,
    }
