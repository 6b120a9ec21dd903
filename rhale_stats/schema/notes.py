"""Printed summaries: tables as text, HTML, LaTeX and CSV, with notes below them."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from io import StringIO
from itertools import chain, cycle, islice, zip_longest

import numpy as np
import pandas as pd
from numpy.typing import NDArray

# Number of notes that are printed below a table.
MAX_NOTES = 5
# Smallest widths of the column of names and of the others, which take theirs in turn.
STUB_WIDTH, WIDTHS = 10, (10, 10, 10, 10, 11, 11)


@dataclass(frozen=True, repr=False)
class PrintedTable:
    """A printed table: lines of texts below their ``heads``, named by ``stubs``.

    Columns are as wide as what they hold, and as their smallest width. Of ``widths`` and of
    ``aligns``, "l" or "r", columns take one each in turn.
    """

    lines: list[list[str]]
    heads: Sequence[str] = ()
    stubs: Sequence[str] = ()
    title: str = ""
    aligns: str = "r"
    stub_width: int = STUB_WIDTH
    widths: Sequence[int] = WIDTHS
    separator: str = " "
    # Gives the sizes of the lines, for those who show the largest first.
    sizes: Callable[[], NDArray[np.float64]] | None = None

    @property
    def rows(self) -> list[list[str]]:
        """All texts, those of the heads first."""
        heads = [[*self.heads]] if self.heads else []
        if not self.stubs:
            return heads + self.lines
        names = [""] * len(heads) + [*self.stubs]
        # A constant feature has a name, and no line.
        return [[name, *row] for name, row in zip(names, heads + self.lines, strict=False)]

    @property
    def width(self) -> int:
        """Number of characters of a line."""
        return len(self.as_text().rpartition("\n")[2])

    def as_text(self) -> str:
        """The table between two rules, below its title."""
        forms = zip(cycle(self.aligns), cycle(self.widths), strict=False)
        named = [("l", self.stub_width)] if self.stubs else []
        columns = []
        for column, (align, width) in zip(
            zip(*self.rows, strict=True), chain(named, forms), strict=False
        ):
            room = max(width, *map(len, column))
            columns.append([f"{text:{'<' if align == 'l' else '>'}{room}}" for text in column])
        texts = [self.separator.join(row) for row in zip(*columns, strict=True)]
        size = len(texts[0])
        if self.heads:
            texts.insert(1, "-" * size)
        title = [self.title.center(size)] if self.title else []
        return "\n".join([*title, "=" * size, *texts, "=" * size])

    __str__ = __repr__ = as_text

    def as_html(self) -> str:
        """The table as HTML, in which its texts are escaped."""
        lines = ['<table class="simpletable">']
        if self.title:
            lines.append(f"<caption>{escape(self.title)}</caption>")
        for number, row in enumerate(self.rows):
            is_head = number == 0 and bool(self.heads)
            cells = [
                f"<{tag}>{escape(text)}</{tag}>"
                for column, text in enumerate(row)
                for tag in ["th" if is_head or (column == 0 and self.stubs) else "td"]
            ]
            lines.append(f"<tr>{' '.join(cells)}</tr>")
        return "\n".join([*lines, "</table>"])

    _repr_html_ = as_html

    def as_latex(self) -> str:
        """The table as LaTeX, for the package booktabs."""
        heads = self.rows[0] if self.heads else None
        frame = pd.DataFrame(self.rows[bool(heads) :], columns=heads)
        style = frame.style.hide(axis="index").format(escape="latex")
        style.format_index(escape="latex", axis="columns")
        if heads is None:
            style.hide(axis="columns")
        n_named = bool(self.stubs)
        forms = islice(cycle(self.aligns), len(self.rows[0]) - n_named)
        column_format = "l" * n_named + "".join(forms)
        caption = self.title or None
        return str(style.to_latex(hrules=True, caption=caption, column_format=column_format))

    def as_csv(self) -> str:
        """The table as comma-separated values, below its title."""
        out = StringIO()
        csv.writer(out, lineterminator="\n").writerows(
            [[self.title]] * bool(self.title) + self.rows
        )
        return out.getvalue()


@dataclass(frozen=True, repr=False)
class Summary:
    """Printed tables with their first notes below them, numbered.

    All ``notes`` come with the most important first; ``words`` stand above them.
    """

    tables: list[PrintedTable]
    notes: list[str]
    words: tuple[str, ...] = ()

    @property
    def lines(self) -> list[str]:
        """What stands below the tables."""
        lines = [f"[{number}] {note}" for number, note in enumerate(self.notes[:MAX_NOTES], 1)]
        rest = len(self.notes) - MAX_NOTES
        if rest > 0:
            lines.append(f"{rest} more note{'s' if rest > 1 else ''}: see summary(...).notes")
        return [*self.words, *(["Notes:"] if lines else []), *lines]

    def as_text(self) -> str:
        """The tables as text, of which each begins with the last rule of the one before."""
        *texts, last = [table.as_text() for table in self.tables]
        texts = [text.rpartition("\n")[0] for text in texts]
        return "\n".join([*texts, last, "", *self.lines])

    __str__ = __repr__ = as_text

    def as_html(self) -> str:
        """The tables as HTML."""
        tables = "\n".join(table.as_html() for table in self.tables)
        return f"{tables}<br/><br/>{'<br/>'.join(map(escape, self.lines))}"

    _repr_html_ = as_html

    def as_latex(self) -> str:
        """The tables as LaTeX, with the notes below them."""
        notes = " \\newline\n ".join(re.sub(r"([#$%&_{}])", r"\\\1", line) for line in self.lines)
        return "\n".join([*[table.as_latex() for table in self.tables], notes])

    def as_csv(self) -> str:
        """The tables as comma-separated values, one below the other, and the notes."""
        return "\n".join([*[table.as_csv() for table in self.tables], *self.lines])


def joint_notes(each: Sequence[Sequence[str]], names: Sequence[str]) -> list[str]:
    """Notes of all parts, in their order; those that not all have with the names that have them."""
    names_of: dict[str, list[str]] = {}
    for at_place in zip_longest(*each):
        for name, note in zip(names, at_place, strict=True):
            if note is not None:
                names_of.setdefault(note, []).append(name)
    everyone = len(names)
    return [n if len(who) == everyone else f"{', '.join(who)}: {n}" for n, who in names_of.items()]
