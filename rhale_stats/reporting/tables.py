"""Tables of a report: cells of text, with what a screen reader needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rhale_stats.reporting.data import Link


@dataclass(frozen=True)
class TableColumn:
    """The head of a column, and whether it holds numbers, which stand right."""

    head: str
    numbers: bool = False


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
    """A table; the first cell of each line is its head."""

    caption: str
    columns: tuple[TableColumn, ...]
    lines: tuple[tuple[Cell, ...], ...]
    # Becomes blocks with labels on small screens.
    wide: bool = False
    link: Link | None = None


def table(
    caption: str,
    heads: Sequence[tuple[str, bool]],
    lines: Sequence[Sequence[Cell | str]],
    *,
    wide: bool = False,
    link: Link | None = None,
) -> ReportTable:
    """A table of cells or plain texts."""
    return ReportTable(
        caption,
        tuple(TableColumn(head, numbers) for head, numbers in heads),
        tuple(
            tuple(cell if isinstance(cell, Cell) else Cell(cell) for cell in line) for line in lines
        ),
        wide,
        link,
    )
