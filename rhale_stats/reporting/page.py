"""The sections of a report, as values that the templates show, and its data files."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, count
from types import MappingProxyType
from typing import Any, TypeAlias
from urllib.parse import quote

import numpy as np
import pandas as pd

from rhale_stats.answers.sentences import (
    HARDLY,
    NOT_SHOWN,
    YES,
    Ends,
    percent,
)
from rhale_stats.arguments.times import are_dates
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.printing.text import count_text, permutation_text, plain, shorter
from rhale_stats.reporting import pictures
from rhale_stats.reporting.reading import (
    MINUS,
    Group,
    ReportContent,
    ReportFeature,
    number_text,
    typeset,
    with_interval,
)

# A spreadsheet reads a cell that begins with one of these as a formula.
FORMULA = ("=", "+", "-", "@", "\t", "\r")
# Characters that stand as they are in an address.
SAFE = ",:;.!*()$=?@/+'~{}[]"
# It tells spreadsheets that a file of CSV is UTF-8.
BYTE_ORDER_MARK = "\ufeff"
Value = str | float | int | bool | None


@dataclass(frozen=True)
class Link:
    """A file behind a link: its name, address, format, size and text."""

    name: str
    href: str
    form: str
    size: str
    text: str = ""


def guarded(value: Value) -> Value:
    """A value for a cell of CSV: texts that would be formulas get an apostrophe."""
    if isinstance(value, str):
        return f"'{value}" if value.lstrip(" ").startswith(FORMULA) else value
    return None if isinstance(value, float) and np.isnan(value) else value


def csv_text(heads: Sequence[str], lines: Sequence[Sequence[Value]]) -> str:
    """A table as CSV; numbers that are not known are empty."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow([guarded(head) for head in heads])
    writer.writerows([[guarded(shorter(value)) for value in line] for line in lines])
    return buffer.getvalue()


def csv_link(name: str, heads: Sequence[str], lines: Sequence[Sequence[Value]]) -> Link:
    """A table as a CSV file behind a link."""
    return _link(name, "csv", "text/csv", csv_text(heads, lines), BYTE_ORDER_MARK)


def json_link(name: str, values: Mapping[str, Any]) -> Link:
    """Values as a JSON file behind a link."""
    how: dict[str, Any] = {"ensure_ascii": False, "allow_nan": False, "separators": (",", ":")}
    return _link(name, "json", "application/json", json.dumps(plain(values, shorter), **how))


def _link(name: str, suffix: str, kind: str, text: str, begin: str = "") -> Link:
    address = f"data:{kind};charset=utf-8,{quote(begin + text, safe=SAFE)}"
    size = f"{max(round(len(text.encode()) / 1000), 1):,} kB"
    return Link(file_name(name, suffix), address, suffix.upper(), size, text)


def file_name(name: str, suffix: str) -> str:
    """A name that every system takes as the name of a file."""
    # A point at its start would hide it.
    return f"{re.sub(r'[^A-Za-z0-9_-]+', '_', name).strip('_')[:60] or 'data'}.{suffix}"


# --- the sections of a report ---------------------------------------------------------------------


# Features with pictures, lines of picture 1 and lines of the table of pairs.
MAX_PICTURES, MAX_PAIRS = 30, 8
# Features whose curves are drawn before the first table.
MAX_FIRST = 3


# What the template of a section shows, by name.
Section: TypeAlias = dict[str, Any]
# What the sections answer.
QUESTIONS = {
    "points": "Main points",
    "trust": "Can the model be trusted on these rows?",
    "which": "Which features matter?",
    "features": "How does each feature act?",
    "together": "Which features act together?",
    "sure": "How sure are these numbers?",
    "again": "Settings and data",
}
# What stands where nothing is known.
NO_VALUE = "–"


def section(anchor: str, **values: Any) -> Section:
    """A section; its anchor is also the name of its question and of its template."""
    return {"anchor": anchor, "question": QUESTIONS[anchor], **values}


@dataclass(frozen=True)
class ReportPage:
    """The whole report."""

    title: str
    about: str
    software: str
    sections: tuple[Section, ...]
    parts: Mapping[str, ReportPage] = field(default_factory=dict)

    @property
    def contents(self) -> list[tuple[str, str]]:
        """Ids and questions of the sections, or ids and names of the outputs."""
        if self.parts:
            return [(f"output-{number}", label) for number, label in enumerate(self.parts, 1)]
        return [(each["anchor"], each["question"]) for each in self.sections]


def tables_of(page: ReportPage) -> dict[str, ReportTable]:
    """All tables of a report by the names of their files, those of several outputs in folders.

    Names that are one as names of files, such as "a b" and "a_b", get a number.
    """
    out: dict[str, ReportTable] = {}
    folders: list[str] = []
    for shown in page.sections:
        parts = [shown, *shown.get("features", [])]
        tables = [part["table"] for part in parts if part.get("table")]
        for each in (*tables, *shown.get("tables", [])):
            name = each.link.name if each.link else file_name(each.caption, "csv")
            out[_another(name.removesuffix(".csv"), out)] = each
    for label, part in page.parts.items():
        folders.append(_another(file_name(label, "csv").removesuffix(".csv"), folders))
        out |= {f"{folders[-1]}/{name}": each for name, each in tables_of(part).items()}
    return out


def _another(name: str, others: Collection[str]) -> str:
    """The name, with a number where there is such a one; some systems do not tell cases apart."""
    lower = {other.lower() for other in others}
    numbered = (f"{name}-{number}" for number in count(2))
    return next(each for each in chain([name], numbered) if each.lower() not in lower)


@dataclass(frozen=True)
class Branch:
    """A group of rows in the tree, and those below it."""

    text: str
    below: list[Branch]


def page_of(
    content: ReportContent, names: Collection[str], n_open: int, title: str | None
) -> ReportPage:
    """The sections of a report, in their order; which features are shown in full, and open."""
    shown = [feature for feature in content.features if feature.line.feature in names]
    pictured = tuple(shown[:MAX_PICTURES])
    sections = [
        _points(content),
        *([_trust(content)] if content.trust else []),
        _which(content, pictured),
        _features(content, pictured, n_open),
        _together(content),
        section("sure", terms=list(content.limits.items())),
        _again(content),
    ]
    title = title or f"What moves {content.output}"
    software = str(content.attrs.get("software", "rhale_stats"))
    return ReportPage(title, content.about, software, tuple(sections))


def page_of_outputs(pages: Mapping[str, ReportPage], title: str | None) -> ReportPage:
    """The pages of several outputs as one, the output of each in a part of its own."""
    first = next(iter(pages.values()))
    title = title or f"What moves {', '.join(pages)}"
    return ReportPage(title, first.about, first.software, (), dict(pages))


def _points(content: ReportContent) -> Section:
    model = "the model is taken as given"
    if content.parameters:
        model = "those of effects in the model hold its estimated parameters"
    if content.examined:
        rest = "and " if content.parameters else "for the rest "
        model = f"those of changes in the data hold refits of the model, {rest}{model}"
    matters_of = content.attrs.get("matters_of", "predictions")
    note = (
        f"The report describes the predictions of the model, not causes. Intervals say how far a "
        f"number would move with another sample of rows; {model}. “Matters” means more than "
        f"{content.least}, {percent(content.attrs['matters'])} of the standard deviation of the "
        f"{matters_of}. “Rows” are the cases in the data."
    )
    return section("points", sentences=content.points, note=note)


def _trust(content: ReportContent) -> Section:
    names = ("mean predicted", "mean observed", "observed less predicted")
    heads = [(content.in_units("prediction"), False), ("rows", True)]
    heads += [(content.in_units(name), True) for name in names]
    caption = "Rows sorted by prediction, in groups of equal size"
    tables = [ReportTable(caption, heads, content.calibration)]
    return section("trust", **content.trust, tables=tables)


def _which(content: ReportContent, pictured: tuple[ReportFeature, ...]) -> Section:
    features = content.features
    lines = [feature.line for feature in features]
    n_in_data = sum(line.in_data == YES for line in lines)
    matter = sum(line.matters == YES for line in lines)
    hidden = sum((line.matters, line.rows_differ) == (HARDLY, YES) for line in lines)
    n_features = count_text(len(features), "feature")
    s = "s" if hidden == 1 else ""
    answer = f"{matter} of {n_features} {'matters' if matter == 1 else 'matter'} on average."
    if content.examined:
        answer = (
            f"{n_in_data} of {n_features} {'has' if n_in_data == 1 else 'have'} an average effect "
            f"in the data. Changes are between the values below which 10 % and 90 % of the rows "
            f"are; the picture shows sizes in the model."
        )
    elif hidden:
        answer += f" {hidden} more hardly matter{s} on average, but matter{s} for single rows."
    parts = {feature.line.feature: feature.anchor for feature in pictured}
    first = pictured[:MAX_FIRST]
    return section(
        "which",
        answer=answer,
        largest=[pictures.largest_picture(feature, content) for feature in first],
        picture=pictures.overview_picture(content, pictured or features[:MAX_PICTURES]),
        table=ranking(content, features, parts, ranking_link(content)),
    )


ALL_FEATURES = "Features, the largest effects first"
# Whether rows differ, and whether new rows confirm it.
CONFIRMED = {(YES, YES): "yes, in the data too", (YES, NOT_SHOWN): "in the model only"}
# Heads of sizes and of the shape, by whether effects in the data were examined.
HEADS = {
    False: ("change in the model", "matters on average?", "shape of the average"),
    True: ("change in the data", "in the data?", "change in the model", "shape in the model"),
}


def ranking(
    content: ReportContent,
    features: Sequence[ReportFeature],
    targets: Mapping[str, str] = MappingProxyType({}),
    link: Link | None = None,
) -> ReportTable:
    """Features in their order, with sizes, verdicts, shape, split and warning."""
    lines = []
    for feature in features:
        line = feature.line
        sizes = (line.in_data_change, line.in_data_ci), (line.usual_change, line.usual_change_ci)
        data, model = (
            Cell(*with_interval(value, ends)) if np.isfinite(value) else NO_VALUE
            for value, ends in sizes
        )
        code = line.feature if line.label != line.feature else ""
        lines.append(
            [
                Cell(line.label, target=targets.get(line.feature, ""), code=code),
                feature.usual or NO_VALUE,
                *([data, line.in_data, model] if content.examined else [model, line.matters]),
                typeset(line.shape) or "levels have no order",
                CONFIRMED.get((line.rows_differ, line.differs_in_data), line.rows_differ),
                feature.split or "no column found",
                typeset(line.unreliable) or "no warning",
            ]
        )
    caption = ALL_FEATURES
    if len(features) < len(content.features):
        caption = f"The first {len(features)} features, the largest effects first"
    heads = ("feature", "from, to", *HEADS[content.examined])
    heads += ("rows differ?", "differ most by", "curve reliable?")
    changes = {head: content.in_units(head) for head in heads if head.startswith("change")}
    columns = [(changes.get(head, head), head in changes) for head in heads]
    return ReportTable(caption, columns, lines, wide=True, link=link)


def ranking_link(content: ReportContent) -> Link:
    """The table of features as CSV."""
    records = [record_of(feature, content.units) for feature in content.features]
    heads = list(records[0])
    return csv_link("features", heads, [[record[head] for head in heads] for record in records])


def record_of(feature: ReportFeature, output_units: str) -> dict[str, Any]:
    """The facts of a feature by name."""
    line = feature.line
    return {
        "feature": line.feature,
        "label": line.label,
        "units": line.feature_units,
        "output_units": output_units,
        "from_to": feature.usual,
        **_size_record("in_data", line.in_data_change, line.in_data_ci),
        "in_data_verdict": line.in_data,
        **_size_record("change", line.usual_change, line.usual_change_ci),
        "differs_in_data": line.differs_in_data,
        **_size_record("importance", line.importance, line.importance_ci),
        "matters": line.matters,
        **_size_record("row_spread", line.row_spread, line.row_spread_ci),
        "rows_differ": line.rows_differ,
        "shape": line.shape,
        "split": feature.split,
        "warning": line.unreliable,
    }


def _size_record(name: str, value: float, ends: Ends) -> dict[str, float]:
    return {name: value, f"{name}_lower": ends[0], f"{name}_upper": ends[1]}


def _features(content: ReportContent, pictured: tuple[ReportFeature, ...], n_open: int) -> Section:
    parts = [
        {
            "anchor": feature.anchor,
            "open": k < n_open,
            "label": feature.line.label,
            "headline": feature.headline,
            "sentences": feature.sentences,
            "picture": pictures.feature_picture(feature, k + 2, content),
            "left_out": f"Levels with fewer than 5 rows are not shown: {feature.left_out}."
            if feature.left_out
            else "",
            "tree": {
                "head": f"Groups of rows in which {feature.line.label} acts differently",
                "branches": branches(feature.groups),
                "panels": () if feature.levels else pictures.group_panels(feature, content),
            },
            "rules": [group.rule for group in _with_values(feature)],
            "table": values_table(feature, content),
        }
        for k, feature in enumerate(pictured)
    ]
    drawn = {feature.line.feature for feature in pictured}
    lines = (feature.line for feature in content.features)
    left = [line.label for line in lines if line.feature not in drawn]
    rest = ""
    if left:
        names = ", ".join(left[:MAX_PICTURES]) + (", …" if len(left) > MAX_PICTURES else "")
        rest = (
            f"No pictures are shown of {count_text(len(left), 'feature')}: {names}. Their numbers "
            f"are in the table “{ALL_FEATURES}”."
        )
    answer = (
        "Each part says what the model does with one feature. Black and grey are about the average "
        "and how sure it is; colour is about single rows and groups of rows."
    )
    return section("features", answer=answer, features=parts, rest=rest)


def values_table(feature: ReportFeature, content: ReportContent) -> ReportTable:
    """The values of a picture, also as CSV."""
    curve = feature.curve
    heads = [feature.shown, content.in_units("effect"), f"{feature.band}, lower", "upper"]
    heads.append(pictures.ROWS_TITLE)
    columns: list[Any] = [curve.y, curve.low, curve.high, rows_near(feature)]
    for group in _with_values(feature):
        heads.append(group.rule)
        columns.append(group.curve.y)
    lines, data = [], []
    is_text = feature.levels or are_dates(feature.line.feature_units)
    for place, x, *numbers in zip(pictures.places_of(feature), curve.x, *columns, strict=True):
        values = list(map(float, numbers))
        texts = [NO_VALUE if np.isnan(value) else number_text(value) for value in values]
        if np.isfinite(values[3]):
            texts[3] = f"{values[3]:,.0f}"
        lines.append([place, *texts])
        data.append([place if is_text else float(x), *values])
    link = csv_link(feature.line.feature, heads, data)
    caption = f"Values of {feature.line.label}"
    return ReportTable(caption, [(head, k > 0) for k, head in enumerate(heads)], lines, link=link)


def _with_values(feature: ReportFeature) -> list[Group]:
    """The groups that have a value wherever the average has one."""
    n_places = len(feature.curve.y)
    return [group for group in feature.leaves if 0 < n_places == len(group.curve.y)]


def rows_near(feature: ReportFeature) -> FloatArray:
    """Numbers of rows at levels, or nearer to each place on the axis than to the others."""
    x, counts = feature.curve.x, feature.counts
    if feature.levels or not len(counts):
        return counts
    below = np.append(0.0, np.cumsum(counts))
    ends = np.concatenate([x[:1], (x[:-1] + x[1:]) / 2, x[-1:]])
    return np.asarray(np.rint(np.diff(np.interp(ends, x, below))))


def branches(groups: Sequence[Group]) -> list[Branch]:
    """Groups listed in order, each after the one that it divides, as a tree."""
    roots: list[Branch] = []
    above: list[tuple[int, Branch]] = []
    for group in groups:
        branch = Branch(f"{group.condition} ({pictures.rows_text(group.n_rows)})", [])
        while above and above[-1][0] >= group.depth:
            above.pop()
        (above[-1][1].below if above else roots).append(branch)
        above.append((group.depth, branch))
    return roots


def _together(content: ReportContent) -> Section:
    pairs, n_tried = content.pairs, count_text(content.n_pairs, "feature")
    answer = f"Splits of the rows were looked for in {n_tried}, by all other columns."
    if not content.n_pairs:
        answer = "No feature's rows differ enough to look for what makes them differ."
    elif not pairs:
        answer += " None stands by its permutation test."
    if not pairs:
        return section("together", answer=answer, table=None)
    answer += (
        " Listed is the best split of each where its permutation test stands after adjustment for "
        "all of these, with the share of the differences between rows that it takes away."
    )
    # With parameters in the other intervals there is no P.
    n_heads = 4 if content.parameters else 5
    names = ("effect of", "differs by", "split", "share explained", "adjusted P")
    heads = [(head, k > 2) for k, head in enumerate(names[:n_heads])]
    data = [list(pair.values())[:n_heads] for pair in pairs]
    shown = [
        {**pair, "drop": percent(pair["drop"]), "pvalue": permutation_text(pair["pvalue"])}
        for pair in pairs[:MAX_PAIRS]
    ]
    lines = [list(pair.values())[:n_heads] for pair in shown]
    link = csv_link("pairs", [head for head, _ in heads], data)
    strongest = ReportTable("Strongest pairs", heads, lines, link=link)
    return section("together", answer=answer, table=strongest)


def _again(content: ReportContent) -> Section:
    heads, caption = [("setting", False), ("value", False)], "The call, settings and versions"
    return section(
        "again",
        answer="All numbers of this report are inside this file, and need no network.",
        links=[json_link("report", everything(content)), ranking_link(content)],
        call=str(content.attrs.get("call", "")),
        table=ReportTable(caption, heads, list(content.settings.items())),
    )


def everything(content: ReportContent) -> dict[str, Any]:
    """All numbers of a report, as `report.json` holds them."""
    features = {}
    for feature in content.features:
        curve = feature.curve
        features[feature.line.feature] = record_of(feature, content.units) | {
            "headline": feature.headline,
            "sentences": feature.sentences,
            "x": feature.levels or curve.x,
            "effect": curve.y,
            "lower": curve.low,
            "upper": curve.high,
            "groups": [
                {
                    "rule": group.rule,
                    "rows": group.n_rows,
                    # Mostly they are those of all rows.
                    **({} if np.array_equal(group.curve.x, curve.x) else {"x": group.curve.x}),
                    "effect": group.curve.y,
                    "lower": group.curve.low,
                    "upper": group.curve.high,
                }
                for group in feature.leaves
            ],
            **feature.outcome,
        }
    return {
        "output": content.output,
        "output_units": content.units,
        "rows": int(content.attrs["n_rows"]),
        "threshold": content.threshold,
        "level": content.level,
        "points": content.points,
        "features": features,
        "pairs": content.pairs,
        "call": str(content.attrs.get("call", "")),
        "settings": content.settings,
    }


@dataclass(frozen=True)
class Cell:
    """A text, with a second line for its interval, or the id that it leads to."""

    text: str
    interval: str = ""
    target: str = ""
    # The name of the column in the data, where people have another one for it.
    code: str = ""


@dataclass(frozen=True)
class ReportTable:
    """A table; the first cell of each line is its head.

    Columns have a head, and say whether they hold numbers, which stand right.
    """

    caption: str
    columns: Sequence[tuple[str, bool]]
    lines: Sequence[Sequence[Cell | str]]
    # Becomes blocks with labels on small screens.
    wide: bool = False
    link: Link | None = None

    @property
    def cells(self) -> list[list[Cell]]:
        """The cells of the lines, also of texts alone."""
        return [
            [text if isinstance(text, Cell) else Cell(text) for text in line] for line in self.lines
        ]

    @property
    def of_numbers(self) -> bool:
        """Whether all columns but the first hold numbers."""
        return all(is_number for _, is_number in self.columns[1:])

    def csv(self) -> str:
        """The table as CSV: with eight digits where they are known."""
        if self.link is not None:
            return self.link.text
        texts = [[cell.text for cell in line] for line in self.cells]
        return csv_text([head for head, _ in self.columns], texts)

    def latex(self) -> str:
        """The table as LaTeX, as it is read in the report; it needs the package booktabs."""
        texts = [
            [f"{cell.text} [{cell.interval}]" if cell.interval else cell.text for cell in line]
            for line in self.cells
        ]
        frame = pd.DataFrame(texts, columns=[head for head, _ in self.columns])
        aligned = "".join("r" if is_number else "l" for _, is_number in self.columns)
        return frame.to_latex(
            index=False, escape=True, caption=self.caption, column_format=aligned
        ).replace(MINUS, "$-$")
