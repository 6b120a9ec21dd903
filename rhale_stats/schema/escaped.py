"""Tables and notes escaped in HTML: a module of its own, because it loads statsmodels."""

from __future__ import annotations

from copy import deepcopy
from html import escape
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
