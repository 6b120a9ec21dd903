"""Numbers as a report writes them: a real minus, intervals in words."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rhale_stats.answers.numbers import estimate, number

MINUS = "−"
# A minus before a digit that is not part of a date, a range or a name.
HYPHEN = re.compile(r"(?<![\w.)\]-])-(?=\.?\d)")


def typeset(text: str) -> str:
    """A text with real minus signs before its numbers."""
    return HYPHEN.sub(MINUS, text)


def with_interval(value: float, ends: Sequence[float] | NDArray[np.float64]) -> tuple[str, str]:
    """An estimate and its interval, "low to high", in the same decimals."""
    text, _, rest = estimate(value, ends).partition(" [")
    return typeset(text), typeset(rest.rstrip("]").replace(", ", " to "))


def number_text(value: float, digits: float | None = None) -> str:
    """A number with a real minus."""
    return typeset(number(value, digits))
