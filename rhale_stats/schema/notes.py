"""Notes below printed tables: the most important ones, and all of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from statsmodels.iolib.summary import Summary

# Number of notes that are printed below a table.
MAX_NOTES = 5


def with_notes(tables: list[Any], notes: Sequence[str], words: tuple[str, ...] = ()) -> Summary:
    """Tables with their first notes below them, numbered.

    Notes come with the most important first; all of them are in the attribute ``notes`` of what is
    returned. ``words`` stand above them.
    """
    from rhale_stats.schema.escaped import EscapedSummary

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
