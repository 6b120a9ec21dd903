"""How messages show what was passed."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from types import FrameType

import numpy as np
import xarray as xr
from numpy.typing import NDArray

# So many offending rows are named in a message.
ROWS_NAMED = 5
# A value of more characters than this is named by its type in a message.
LONGEST_SHOWN = 80
PACKAGE, LABELS = (str(Path(file).parent) for file in (__file__, str(xr.__file__)))


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the user's line: that of the first caller outside the package."""
    level = 1
    caller: FrameType | None = sys._getframe()
    while caller is not None and caller.f_code.co_filename.startswith(PACKAGE):
        level, caller = level + 1, caller.f_back
    warnings.warn(message, category, stacklevel=level)


def shown(value: object) -> str:
    """What came, for a message: the value where it is short, its type, the shape of an array."""
    kind = type(value).__name__
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and not isinstance(value, np.generic):
        return f"{kind} of shape {shape}"
    scalar = value is None or isinstance(value, str | bytes | int | float | complex | np.generic)
    if scalar or type(value) in (list, tuple):
        text = repr(value)
        if len(text) <= LONGEST_SHOWN:
            return text if value is None else f"{text} of type {kind}"
    return f"{kind} {value.__name__}" if isinstance(value, type) else f"a {kind}"


def first_rows(bad: NDArray[np.bool_]) -> str:
    """Positions of the first offending rows, as text."""
    rows = np.flatnonzero(bad)
    listed = ", ".join(str(row) for row in rows[:ROWS_NAMED])
    return listed + (", ..." if len(rows) > ROWS_NAMED else "")
