"""Numbers of a report as files inside it: CSV and JSON behind links, without a network."""

from __future__ import annotations

import csv
import io
import json
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import numpy as np

# A spreadsheet reads a cell that begins with one of these as a formula.
FORMULA = ("=", "+", "-", "@", "\t", "\r")
Value = str | float | int | bool | None


@dataclass(frozen=True)
class Link:
    """A file behind a link: its name, address, format and size."""

    name: str
    href: str
    form: str
    size: str


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
    writer.writerows([[guarded(value) for value in line] for line in lines])
    return buffer.getvalue()


def csv_link(name: str, heads: Sequence[str], lines: Sequence[Sequence[Value]]) -> Link:
    """A table as a CSV file behind a link."""
    text = csv_text(heads, lines)
    # A byte order mark tells spreadsheets that this is UTF-8.
    coded = quote("\ufeff" + text, safe=",:;.!*()$&=?@/+'~ ").replace(" ", "%20")
    address = f"data:text/csv;charset=utf-8,{coded}"
    return Link(file_name(name, "csv"), address, "CSV", size_text(len(text.encode())))


def json_link(name: str, values: Mapping[str, Any]) -> Link:
    """Values as a JSON file behind a link."""
    content = json.dumps(plain(values), ensure_ascii=False, indent=1, allow_nan=False).encode()
    address = f"data:application/json;base64,{b64encode(content).decode()}"
    return Link(file_name(name, "json"), address, "JSON", size_text(len(content)))


def plain(value: Any) -> Any:
    """Arrays as lists, numbers as Python's, what is not finite as None."""
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def file_name(name: str, suffix: str) -> str:
    """A name that every system takes as the name of a file."""
    # A point at its start would hide it.
    return f"{re.sub(r'[^A-Za-z0-9_-]+', '_', name).strip('_')[:60] or 'data'}.{suffix}"


def size_text(n_bytes: int) -> str:
    """A size for readers."""
    return f"{max(round(n_bytes / 1000), 1):,} kB"
