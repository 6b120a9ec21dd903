"""What `--json` prints: results as one JSON object."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pandas as pd


def as_json(answer: dict[str, Any]) -> str:
    """One JSON object; missing and infinite numbers are null, dates are text."""
    return json.dumps(plain(answer), allow_nan=False, ensure_ascii=False, indent=1)


def plain(value: Any) -> Any:
    """A value made of what JSON knows: dicts, lists, texts, finite numbers, null."""
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, pd.DataFrame):
        return records(value)
    if isinstance(value, np.ndarray | list | tuple | pd.Series):
        return [plain(entry) for entry in value]
    if isinstance(value, np.generic) and not isinstance(value, np.datetime64 | np.timedelta64):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    text = str(value)
    return None if text in ("NaT", "<NA>") else text


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The lines of a table, each by the names of its columns."""
    columns = {str(name): plain(table[name].tolist()) for name in table.columns}
    return [dict(zip(columns, line, strict=True)) for line in zip(*columns.values(), strict=True)]
