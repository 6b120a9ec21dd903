"""Values as JSON and CSV hold them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd


def plain(value: Any, rounded: Callable[[float], float] = float) -> Any:
    """A value made of what JSON knows: dicts, lists, texts, finite numbers, null.

    A table is a list of its lines, each by the names of the columns.
    """
    if isinstance(value, Mapping):
        return {str(key): plain(entry, rounded) for key, entry in value.items()}
    if isinstance(value, pd.DataFrame):
        names = list(map(str, value.columns))
        columns = [plain(value[name].tolist(), rounded) for name in value.columns]
        return [dict(zip(names, line, strict=True)) for line in zip(*columns, strict=True)]
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
