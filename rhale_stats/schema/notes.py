"""Notes below printed tables, whose names, levels, labels and units are escaped in HTML."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from html import escape
from itertools import zip_longest
from typing import Any

from statsmodels.iolib.summary import Summary
from statsmodels.iolib.table import SimpleTable


class EscapedTable(SimpleTable):  # type: ignore[misc]
    """A table whose cells and title are escaped in HTML."""

    def as_html(self, **fmt_dict: Any) -> str:
        """The table as HTML."""
        safe = deepcopy(self)
        safe.title = escape(safe.title or "")
        for row in safe:
            for cell in row:
                cell.data = escape(str(cell.data))
        return str(SimpleTable.as_html(safe, **fmt_dict))


class EscapedSummary(Summary):  # type: ignore[misc]
    """Tables and notes, escaped in HTML."""

    def __init__(self, tables: list[SimpleTable]) -> None:
        super().__init__()
        for table in tables:
            table.__class__ = EscapedTable
        self.tables = tables

    def as_html(self) -> str:
        """The tables and the notes below them as HTML."""
        lines = escape(self.extra_txt).splitlines()
        return (
            "\n".join(table.as_html() for table in self.tables) + "<br/><br/>" + "<br/>".join(lines)
        )


# Number of notes that are printed below a table.
MAX_NOTES = 5


def with_notes(tables: list[Any], notes: Sequence[str], words: tuple[str, ...] = ()) -> Summary:
    """Tables with their first notes below them, numbered.

    Notes come with the most important first; all of them are in the attribute ``notes`` of what is
    returned. ``words`` stand above them.
    """
    from rhale_stats.schema.notes import EscapedSummary

    out = EscapedSummary(tables)
    out.notes, out.words = list(notes), words
    lines = [f"[{number}] {note}" for number, note in enumerate(notes[:MAX_NOTES], start=1)]
    rest = len(notes) - MAX_NOTES
    if rest > 0:
        lines.append(f"{rest} more note{'s' if rest > 1 else ''}: see summary(...).notes")
    out.add_extra_txt([*words, "Notes:", *lines])
    return out


def joint_notes(each: Sequence[Sequence[str]], names: Sequence[str]) -> list[str]:
    """Notes of all parts, in their order; those that not all have with the names that have them."""
    names_of: dict[str, list[str]] = {}
    for at_place in zip_longest(*each):
        for name, note in zip(names, at_place, strict=True):
            if note is not None:
                names_of.setdefault(note, []).append(name)
    everyone = len(names)
    return [n if len(who) == everyone else f"{', '.join(who)}: {n}" for n, who in names_of.items()]
