"""Numbers, p-values, edges, heads and tables as text; values as JSON; pages that show a result."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import chain, pairwise
from textwrap import wrap
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from rhale_stats.arguments.times import are_dates, date_texts
from rhale_stats.schema.feature_result import Result
from rhale_stats.schema.features import (
    feature_names,
    method_text,
    rows_used,
    units_in,
    with_units,
)
from rhale_stats.schema.levels import is_categorical, level_names
from rhale_stats.schema.notes import PrintedTable, Summary

MAX_DIGITS = 17
COLUMN_SEPARATOR = "   "
# Printed in place of a share above 100 %.
ABOVE_ONE = "> 1"
# Printed before a node, once for every split above it.
INDENT = "|  "
# How a note begins that says what makes a number invalid.
WARNING = "Warning: "
# Lines of a table, the heads of its columns, and the names of its lines.
Body: TypeAlias = tuple[list[list[str]], list[str], list[str]]
# R's marks of p-values.
STARS = ((0.001, "***"), (0.01, "**"), (0.05, "*"), (0.1, "."))
# Sources of a standard error that includes the uncertainty of the model.
MODEL_WORDS = ("parameters", "refit", "refits", "draws", "models")


def text_of(node: xr.Dataset, name: str) -> str:
    """The value of a variable without dims, as text."""
    return str(node[name].values)


def feature_counts(result: xr.Dataset, name: str) -> list[str]:
    """Numbers of rows of the features that have some."""
    if name not in result:
        return []
    counts = zip(feature_names(result), result[name].values, strict=True)
    return [f"{feature}: {count:.0f}" for feature, count in counts if count > 0]


def beyond_notes(result: xr.Dataset, where: str = "the bins") -> list[str]:
    """A note on the rows beyond the outermost bins."""
    counts = ", ".join(feature_counts(result, "n_beyond"))
    return [f"Rows beyond {where}, left out of their feature: {counts}."] if counts else []


def count_text(number: int, noun: str) -> str:
    """A number with its noun, singular or plural."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def share_text(value: float) -> str:
    """A share of a variance as text."""
    return ABOVE_ONE if np.isnan(value) else f"{value:.4g}"


def stars(pvalue: float) -> str:
    """Marks of significance of a p-value; empty where it is not significant."""
    return next((mark for bound, mark in STARS if pvalue <= bound), "")


def region_text(result: Result) -> str:
    """What the rows of one region have, for a title; empty where there are no regions."""
    return f", where {result['region_rule'].values}" if "region_rule" in result.coords else ""


def head_of(effect: Result, title: str, source: str) -> tuple[list[list[str]], str]:
    """The facts above a table, and its title."""
    attrs, title = effect.attrs, f"{title}{region_text(effect)}"
    cells = [
        ["Rows:", f"{rows_used(effect)}", "Local effects:", method_text(effect)],
        ["Weights:", attrs["weight_kind"], "Curve centred at:", attrs["centering"]],
        ["Uncertainty:", uncertainty(source), "", ""],
    ]
    return cells, title


def with_facts(
    cells: list[list[str]],
    title: str,
    lines: list[list[str]],
    heads: list[str],
    stubs: list[str],
    aligns: str = "r",
    sizes: Callable[[], NDArray[np.float64]] | None = None,
) -> list[PrintedTable]:
    """A table below its facts, stretched to their width where that is larger."""
    body = PrintedTable(lines, heads, stubs, aligns=aligns, sizes=sizes)
    header = facts_of(cells, title, body)
    missing = header.width - body.width
    if missing > 0:
        room = max(body.stub_width, *map(len, stubs)) + missing
        body = replace(body, stub_width=room)
    return [header, body]


def facts_of(cells: list[list[str]], title: str, body: PrintedTable) -> PrintedTable:
    """Two columns of names and values, together as wide as the table below.

    All four are of one width, if that is enough for what they hold.
    """
    width = body.width - 3 * len(COLUMN_SEPARATOR)
    widths = [width // 4, width // 4, width // 4, width - 3 * (width // 4)]
    needed = [max(len(text) for text in column) for column in zip(*cells, strict=True)]
    if any(need > room for need, room in zip(needed, widths, strict=True)):
        room = max(width - sum(needed), 0)
        widths = [needed[0], needed[1] + room // 2, needed[2], needed[3] + room - room // 2]
    return PrintedTable(
        cells, title=title, aligns="lrlr", widths=widths, separator=COLUMN_SEPARATOR
    )


def bin_labels(row: Result) -> list[str]:
    """Names of the lines of bins, as in the table above them."""
    if is_categorical(row):
        names = level_names(row)
        return [f"{level} → {other}" for level, other in pairwise(names)]
    return interval_labels(row.bin_edges, units_in(row)) or [str(row["feature"].values)]


def percent(share: float) -> str:
    """A share in per cent; empty where it is unknown."""
    return "" if np.isnan(share) else f"{share:.0%}"


def pvalue_text(value: float) -> str:
    """A p-value with three decimals; empty if it is not known."""
    return "" if np.isnan(value) else f"{value:.3f}"


def permutation_text(value: float) -> str:
    """A p-value of permutations, which is never 0."""
    return "< 0.001" if value < 0.001 else pvalue_text(value)


def interval_labels(edges: np.ndarray, units: str = "") -> list[str]:
    """Bins as text, with three digits of the narrowest width and four of every edge."""
    if not len(edges):
        return []
    needed = 2 - int(np.floor(np.log10(np.diff(edges).min())))
    text = [_edge_text(float(edge), needed) for edge in edges]
    if are_dates(units):
        text = date_texts(edges, units)
    closing = [")"] * (len(edges) - 2) + ["]"]
    return [
        f"[{left}, {right}{bracket}"
        for left, right, bracket in zip(text[:-1], text[1:], closing, strict=True)
    ]


def _edge_text(edge: float, decimals: int) -> str:
    if edge == 0:
        return "0"
    magnitude = int(np.floor(np.log10(abs(edge))))
    decimals = max(decimals, 3 - magnitude)
    if not -5 < magnitude < 15:
        return f"{edge:.{min(magnitude + decimals + 1, MAX_DIGITS)}g}"
    return np.format_float_positional(edge, max(decimals, 0), trim="-")


def cell(line: pd.Series, column: str) -> str:
    """A number as it is printed, or what is text already."""
    if isinstance(line[column], str):
        return str(line[column])
    forms = {"statistic": _statistic, "p_value": pvalue_text, "p_value_adjusted": pvalue_text}
    return forms.get(column, number_text)(line[column])


def number_cell(line: pd.Series, column: str) -> str:
    """A count in full, a p-value with three decimals, any other number with four digits."""
    if column.startswith("n_"):
        return str(line[column])
    return (pvalue_text if "p_value" in column else number_text)(line[column])


def table_lines(
    table: pd.DataFrame,
    columns: Iterable[str],
    form: Callable[[pd.Series, str], str] = cell,
) -> list[list[str]]:
    """Columns of a data frame as they are printed, line by line."""
    names = list(columns)
    return [[form(line, name) for name in names] for _, line in table.iterrows()]


def bounds_text(level: float) -> list[str]:
    """Heads of the two columns of an interval."""
    tail = (1 - level) / 2
    return [f"[{tail:.3g}", f"{1 - tail:.3g}]"]


def number_text(value: float) -> str:
    """A number with four significant digits; empty if it is not known."""
    return "" if np.isnan(value) else f"{value:.4g}"


def place_texts(values: NDArray[np.float64], units: str, digits: int = 4) -> list[str]:
    """Values of a feature with so many significant digits, or as dates."""
    if are_dates(units):
        return date_texts(values, units)
    return [f"{value:.{digits}g}" for value in values]


def _statistic(value: float) -> str:
    if np.isnan(value):
        return ""
    return f"{value:.3f}" if abs(value) < 1e4 else f"{value:.2e}"


def output_text(result: xr.Dataset) -> str:
    """Name of the output of a result, with its units."""
    attrs = result.attrs
    return with_units(str(attrs.get("output_name", "output")), str(attrs.get("output_units", "")))


def source_of(result: Result, name: str) -> str:
    """The source of the standard errors of an estimate, in words."""
    return str(result[f"{name}_se"].attrs.get("source", "rows"))


def holds_model(source: str) -> bool:
    """Whether a standard error of this source includes the uncertainty of the model.

    Only then t and P are about the feature. A standard error of the rows alone measures how well
    this sample of rows determines an average of the given model.
    """
    return not set(MODEL_WORDS).isdisjoint(re.findall(r"\w+", source))


def uncertainty(source: str) -> str:
    """Source of a standard error in words, for the head of a table."""
    return source if holds_model(source) else f"{source} (model as given)"


# --- the first lines of a summary -----------------------------------------------------------------


# Largest number of lines of a table.
MAX_LINES = 10
# Largest number of characters of a line of words, and of a name.
WIDTH, LONGEST_NAME = 100, 28
CUT = "…"


def printable(text: str) -> str:
    """A text on one line, without characters that move the cursor."""
    return "".join(character if character.isprintable() else " " for character in text)


def cut_within(text: str, most: int) -> str:
    """A name cut in its middle: names often differ at their ends."""
    text, end = printable(text), (most - 1) // 2
    return text if len(text) <= most else f"{text[: most - 1 - end]}{CUT}{text[-end:]}"


def in_lines(text: str, width: int) -> list[str]:
    """A text in lines, broken at spaces; words that are longer than a line are broken after "_"."""
    lines = wrap(text, width, break_long_words=False)
    piece = re.compile(rf".{{1,{width}}}$|.{{1,{width - 1}}}_|.{{1,{width}}}")
    return [part for line in lines for part in piece.findall(line)]


def first_lines(summary: Summary, most: int, more: Iterable[str]) -> Summary:
    """The largest lines of every table, with warnings below them, and ``more``."""
    tables, words = [], [*summary.words]
    for table in summary.tables:
        n, order = len(table.lines), [*range(len(table.lines))]
        if table.sizes is not None:
            order = largest_first(table.sizes()).tolist()
        if table.heads and n > most:
            words.append(f"{most} of {n} lines{', the most important' if table.sizes else ''}.")
            order = order[:most]
        stubs = [cut_within(table.stubs[k], LONGEST_NAME) for k in order] if table.stubs else ()
        lines = [[*map(printable, table.lines[k])] for k in order]
        title = printable(table.title)
        tables.append(replace(table, lines=lines, stubs=stubs, title=title, sizes=None))
    words += [note for note in summary.notes if note.startswith(WARNING)]
    each = [wrap(printable(line), WIDTH) for line in dict.fromkeys((*words, *more))]
    return Summary(tables, [], tuple(chain.from_iterable(each)))


def rows_text(result: xr.Dataset) -> str:
    """The number of rows, the kind of weights and the number of features, in words."""
    attrs = result.attrs
    weights = str(attrs.get("weight_kind", "none"))
    text = f"{attrs['n_rows']} rows" + (f" ({weights} weights)" if weights != "none" else "")
    n = result.sizes.get("feature", 1)
    return f"{text}; {n} feature{'s' if n > 1 else ''}"


def largest_first(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Positions of the values, the largest first, unknown values last."""
    return np.argsort(-np.where(np.isnan(values), -np.inf, values), kind="stable")


def includes_model(result: Result, name: str) -> bool:
    """Whether the standard errors of an estimate include the model: only then have they t and P."""
    return holds_model(source_of(result, name))


def title_of(result: xr.Dataset) -> str:
    """Name of the method of a result, with a capital letter."""
    method = str(result.attrs.get("method", "result"))
    return method[:1].upper() + method[1:]


def variables_table(result: xr.Dataset) -> PrintedTable:
    """A table of the variables of a result: dims, lowest and highest value."""
    lines = []
    for variable in result.data_vars.values():
        ends = ["", ""]
        values = variable.values
        if values.dtype.kind in "fiu" and np.isfinite(values).any():
            ends = [number_text(float(end)) for end in (np.nanmin(values), np.nanmax(values))]
        lines.append([", ".join(map(str, variable.dims)), *ends])
    title = f"{title_of(result)} on {output_text(result)}"
    return PrintedTable(lines, ["over", "lowest", "highest"], [*map(str, result.data_vars)], title)


# --- values as JSON and CSV hold them -------------------------------------------------------------


def plain(value: Any, rounded: Callable[[float], float] = float) -> Any:
    """A value made of what JSON knows: dicts, lists, texts, finite numbers, null.

    A table is a list of its lines, each by the names of the columns.
    """
    if isinstance(value, Mapping):
        return {str(key): plain(entry, rounded) for key, entry in value.items()}
    if isinstance(value, pd.DataFrame):
        return plain(value.to_dict("records"), rounded)
    if isinstance(value, np.ndarray | list | tuple | pd.Series):
        return [plain(entry, rounded) for entry in value]
    if isinstance(value, np.generic) and not isinstance(value, np.datetime64 | np.timedelta64):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return rounded(value) if math.isfinite(value) else None
    text = str(value)
    return None if text in ("NaT", "<NA>") else text


def shorter(value: Any) -> Any:
    """A number with eight digits, and what else as it is."""
    return float(f"{value:.8g}") if isinstance(value, float) else value
