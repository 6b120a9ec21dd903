"""How messages show what was passed."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

import numpy as np
import xarray as xr
from numpy.typing import NDArray

# Number of offending rows that a message names.
ROWS_NAMED = 5
# Names of columns that a message lists.
NAMES_LISTED = 20
# A value of more characters than this is named by its type in a message.
LONGEST_SHOWN = 80
PACKAGE, LABELS = str(Path(__file__).parents[1]), str(Path(str(xr.__file__)).parent)
# Files through which the package calls itself: its own, and that of `with` blocks.
WITHIN = (PACKAGE, str(contextlib.__file__))


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the user's line: that of the first caller outside the package."""
    level = 1
    caller: FrameType | None = sys._getframe()
    while caller is not None and caller.f_code.co_filename.startswith(WITHIN):
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


def listed(names: Sequence[object], most: int = NAMES_LISTED) -> str:
    """Names in quotes, the first of many."""
    more = f", ... ({len(names)} in all)" if len(names) > most else ""
    return ", ".join(repr(str(name)) for name in names[:most]) + more


def first_rows(bad: NDArray[np.bool_]) -> str:
    """Positions of the first offending rows, as text."""
    rows = np.flatnonzero(bad)
    listed = ", ".join(str(row) for row in rows[:ROWS_NAMED])
    return listed + (", ..." if len(rows) > ROWS_NAMED else "")


def one_line(error: Exception) -> str:
    """Type and message of an error, without what netCDF refuses: nulls and lone surrogates."""
    # The text of a KeyError is the message in quotes.
    message = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    text = f"{type(error).__name__}: {message}".replace("\0", " ")
    return " ".join(text.encode(errors="replace").decode().split())


def print_warning(message: Warning | str, *_where: object) -> None:
    """Show a warning as one line, above a bar if there is one: a ``warnings.showwarning``."""
    from tqdm import tqdm

    tqdm.write(f"Warning: {' '.join(str(message).split())}", file=sys.stderr)
