"""Pages that show a result: title, facts and tables, as text and as HTML."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from html import escape
from itertools import chain
from textwrap import wrap
from typing import TypeAlias

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from rhale_stats.printing.text import number_cell, number_text, table_lines, uncertainty
from rhale_stats.schema.features import with_units

# Largest number of lines of a table, and of outputs or regions.
MAX_LINES, MAX_PARTS = 10, 4
# Largest number of characters of a line in a terminal, and of a name.
WIDTH, LONGEST_NAME = 100, 28
# Largest number of bytes of HTML in a notebook.
MAX_HTML = 60_000
GAP = "  "
CUT = "…"
NO_ERRORS = "not estimated yet; std_error(effect) adds standard errors"
IMPORTANCE = "importance: standard deviation of the curve over the rows"
STYLE = """\
.rhale-answer .rhale-text{display:none}
.rhale-answer .rhale-body{display:block!important;color:inherit}
.rhale-answer table{border-collapse:collapse;margin:.5em 0;color:inherit;background:none}
.rhale-answer caption{text-align:left;font-style:italic;color:inherit}
.rhale-answer th,.rhale-answer td{padding:.15em .8em;text-align:right;color:inherit}
.rhale-answer th:first-child,.rhale-answer td:first-child{text-align:left}
.rhale-answer thead th{border-bottom:1px solid currentColor}
.rhale-answer p{margin:.25em 0}
.rhale-answer .rhale-title{font-weight:bold}
"""
Line: TypeAlias = list[str]


@dataclass(frozen=True)
class PageTable:
    """A table: heads of columns, and lines. The first column has the names of the lines."""

    heads: Line
    lines: list[Line]
    caption: str = ""
    # Below the table: how many lines are left out, and what the columns mean.
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Page:
    """The parts of a page that shows a result."""

    title: str
    facts: tuple[str, ...]
    tables: tuple[PageTable, ...]
    # What to call next.
    more: str = ""


class Answer:
    """What `show` returns: text in a terminal, HTML in a notebook.

    Parameters
    ----------
    page : Page
        Title, facts, tables, and the functions to call next.
    dataset : Dataset
        The result itself, unchanged.
    """

    def __init__(self, page: Page, dataset: xr.Dataset) -> None:
        self.page, self.dataset = page, dataset

    def __repr__(self) -> str:
        return _text(self.page)

    def _repr_html_(self) -> str:
        return _html(self.page, self.dataset)


# --- a page as text and as HTML -------------------------------------------------------------------


def _clean(text: str, longest: int = LONGEST_NAME) -> str:
    """A label on one line, without characters that move the cursor, cut if it is too long."""
    text = "".join(character if character.isprintable() else " " for character in text)
    return text if len(text) <= longest else text[: longest - 1] + CUT


def _widths(table: PageTable) -> list[int]:
    """Widths of columns that fit a terminal: the widest columns, which hold words, are cut."""
    columns = list(zip(table.heads, *table.lines, strict=True))
    widths = [max(len(_clean(cell, WIDTH)) for cell in column) for column in columns]
    widths[0] = min(widths[0], LONGEST_NAME)
    while (excess := sum(widths) + len(GAP) * (len(widths) - 1) - WIDTH) > 0:
        widest = int(np.argmax(widths))
        widths[widest] = max(widths[widest] - excess, max(widths) // 2, 1)
    return widths


def _text(page: Page) -> str:
    lines = [page.title, *page.facts]
    for table in page.tables:
        widths = _widths(table)
        lines += ["", *([table.caption] if table.caption else [])]
        for cells in (table.heads, *table.lines):
            cut = [_clean(cell, width) for cell, width in zip(cells, widths, strict=True)]
            first = cut[0].ljust(widths[0])
            rest = (cell.rjust(width) for cell, width in zip(cut[1:], widths[1:], strict=True))
            lines.append(GAP.join((first, *rest)).rstrip())
        lines += table.notes
    if page.more:
        lines += ["", f"More: {page.more}"]
    pieces = ([line] if len(line) <= WIDTH else wrap(_clean(line, 2000), WIDTH) for line in lines)
    return "\n".join(chain.from_iterable(pieces))


def _html(page: Page, dataset: xr.Dataset) -> str:
    """The text, which the style hides where it is applied; tables; the Dataset, folded."""

    def paragraph(text: str, kind: str = "") -> str:
        return f"<p{kind}>{escape(_clean(text, 2000))}</p>" if text else ""

    parts = [paragraph(page.title, ' class="rhale-title"'), *map(paragraph, page.facts)]
    for table in page.tables:
        heads = "".join(f"<th>{escape(_clean(head))}</th>" for head in table.heads)
        lines = (
            "<tr>" + "".join(f"<td>{escape(_clean(cell, 60))}</td>" for cell in line) + "</tr>"
            for line in table.lines
        )
        caption = f"<caption>{escape(_clean(table.caption, 200))}</caption>"
        parts.append(
            f"<table>{caption if table.caption else ''}<thead><tr>{heads}</tr></thead>"
            f"<tbody>{''.join(lines)}</tbody></table>"
        )
        parts += map(paragraph, table.notes)
    parts.append(paragraph(f"More: {page.more}" if page.more else ""))
    head = f'<pre class="rhale-text">{escape(_text(page))}</pre><style>{STYLE}</style>'
    body = "".join(parts)
    room = MAX_HTML - len((head + body).encode()) - 200
    whole = str(dataset._repr_html_())
    if len(whole.encode()) > room:
        with xr.set_options(display_max_rows=200):  # type: ignore[no-untyped-call]
            whole = f"<pre>{escape(repr(dataset))}</pre>"
    details = f"<details><summary>Dataset</summary>{whole}</details>"
    if len(details.encode()) > room + 100:
        details = ""
    return (
        f'<div class="rhale-answer">{head}<div class="rhale-body" style="display:none">{body}'
        f"{details}</div></div>"
    )


def table_of(
    heads: Line, lines: list[Line], n: int, what: str, meant: str, caption: str = ""
) -> PageTable:
    """A table that says how many lines it leaves out, and what its columns mean."""
    notes = [f"{len(lines)} of {n} {what}."] if len(lines) < n else []
    return PageTable(heads, lines, caption, (*notes, *([meant] if meant else [])))


def largest_first(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Positions of the values, the largest first, unknown values last."""
    return np.argsort(-np.where(np.isnan(values), -np.inf, values), kind="stable")


def feature_lines(
    table: pd.DataFrame, columns: Iterable[str], size: NDArray[np.float64], most: int
) -> list[Line]:
    """A line of a page for each of the ``most`` largest features of a table of `glance`."""
    shown = table.iloc[largest_first(size)[:most]]
    lines = term_lines(shown, columns)
    for line, kind in zip(lines, shown["kind"], strict=True):
        if kind == "constant":
            line[1] = "constant"
    return lines


def term_lines(
    table: pd.DataFrame,
    columns: Iterable[str],
    form: Callable[[pd.Series, str], str] = number_cell,
) -> list[Line]:
    """Lines of a page: the term of each line of a table, and its columns as they are printed."""
    lines = zip(table["term"], table_lines(table, columns, form), strict=True)
    return [[str(term), *line] for term, line in lines]


def rows_text(result: xr.Dataset) -> str:
    """The number of rows, the kind of weights and the number of features, in words."""
    attrs = result.attrs
    weights = str(attrs.get("weight_kind", "none"))
    text = f"{attrs['n_rows']} rows" + (f" ({weights} weights)" if weights != "none" else "")
    n = result.sizes.get("feature", 1)
    return f"{text}; {n} feature{'s' if n > 1 else ''}"


def uncertainty_line(result: xr.Dataset, standard_error: str, *, estimated: bool) -> str:
    """What the standard errors of a result are of, where they are known."""
    if not estimated:
        return f"Uncertainty: {NO_ERRORS}"
    return f"Uncertainty: {uncertainty(str(result[standard_error].attrs.get('source', 'rows')))}"


def output(result: xr.Dataset) -> str:
    """Name of the output, with its units."""
    attrs = result.attrs
    return with_units(str(attrs.get("output_name", "output")), str(attrs.get("output_units", "")))


def title_of(result: xr.Dataset) -> str:
    """Name of the method of a result, with a capital letter."""
    method = str(result.attrs.get("method", "result"))
    return method[:1].upper() + method[1:]


def variables_table(result: xr.Dataset, most: int) -> PageTable:
    """A table of the variables of a result: dims, lowest and highest value."""
    lines = []
    for name, variable in result.data_vars.items():
        ends = ["", ""]
        values = variable.values
        if values.dtype.kind in "fiu" and np.isfinite(values).any():
            ends = [number_text(float(end)) for end in (np.nanmin(values), np.nanmax(values))]
        lines.append([str(name), ", ".join(map(str, variable.dims)), *ends])
    return table_of(["", "over", "lowest", "highest"], lines[:most], len(lines), "variables", "")
