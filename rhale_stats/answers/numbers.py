"""Numbers, places and intervals in sentences and tables for people."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from rhale_stats.arguments.times import are_dates, date_texts
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.schema.features import units_in
from rhale_stats.schema.levels import is_categorical, level_names

# Digits of a half-width, and of a number without interval. Numbers outside are powers of ten.
DIGITS, PLAIN_DIGITS, MAX_DIGITS = 2, 3, 4
MIN_PLAIN, MAX_PLAIN = 1e-4, 1e7
FIVE_DIGITS = 1e4


def _short_digits(width: float) -> int:
    """Digits of a half-width in tables: one where it is 3 or more of its own power of ten."""
    return 1 if width / 10 ** np.floor(np.log10(width)) >= 3 else DIGITS


def _decimals(width: float, digits: int) -> int:
    """Decimals that show so many digits of a width."""
    if not np.isfinite(width) or width <= 0:
        return digits
    return int(np.clip(digits - 1 - np.floor(np.log10(width)), 0, 9))


def _fixed(value: float, decimals: int) -> str:
    text = f"{value:,.{decimals}f}"
    return text[1:] if text.startswith("-") and not text.strip("-0.,") else text


def number(value: float, width: float | None = None) -> str:
    """One number, with the decimals that a half-width asks for, or three digits.

    No more than four digits of the number are shown.
    """
    if not np.isfinite(value):
        return "unknown"
    if value == 0 and not width:
        return "0"
    size = max(abs(value), abs(width or 0.0))
    if size and not MIN_PLAIN <= size < MAX_PLAIN:
        return f"{value:.{PLAIN_DIGITS}g}"
    if width is None or width <= 0:
        return _fixed(value, _decimals(abs(value), PLAIN_DIGITS))
    return _fixed(value, min(_decimals(width, DIGITS), _decimals(size, MAX_DIGITS)))


def estimate(
    value: float,
    ends: Sequence[float] | FloatArray,
    *,
    short: bool = False,
    digits: int = DIGITS,
    at_most: int = 9,
) -> str:
    """An estimate with its interval, ``1.23 [0.98, 1.48]``, in the same decimals."""
    lower, upper = (float(end) for end in ends)
    if not (np.isfinite(lower) and np.isfinite(upper)):
        return number(value)
    width = (upper - lower) / 2
    # An interval without width is the number itself.
    if width <= abs(value) * 1e-6:
        return number(value)
    # All three in the decimals of the largest.
    size = max(abs(value), abs(lower), abs(upper))
    digits = min(_short_digits(width), digits) if short else digits
    most = _decimals(size, MAX_DIGITS - 1 if short else MAX_DIGITS)
    decimals = min(_decimals(width, digits), most, at_most)
    if not MIN_PLAIN <= size < MAX_PLAIN:
        return f"{number(value)} [{number(lower)}, {number(upper)}]"
    return f"{_fixed(value, decimals)} [{_fixed(lower, decimals)}, {_fixed(upper, decimals)}]"


def percent(share: float) -> str:
    """A share in whole per cent; below 1 it says so."""
    if 0 < share < 0.01:
        return "< 1 %"
    return f"{100 * share:.0f} %"


def places(row: xr.Dataset) -> list[str]:
    """The edges of one feature of an effect as text: values with units of people, or levels."""
    if is_categorical(row):
        return level_names(row)
    return axis_texts(row["edge_value"].values, units_in(row))


def axis_texts(values: FloatArray, units: str = "", steps: int = 1000) -> list[str]:
    """Values of an axis as text, to a part of its length, a thousandth, or as dates."""
    if are_dates(units):
        return date_texts(values, units)
    finite = values[np.isfinite(values)]
    length = float(np.ptp(finite)) if len(finite) else 0.0
    decimals = _decimals(length / steps, 1) if length > 0 else PLAIN_DIGITS
    size = float(np.abs(finite).max(initial=0.0))
    if size and not MIN_PLAIN <= size < MAX_PLAIN:
        return [f"{value:.4g}" for value in values]
    texts = [_fixed(float(value), decimals) for value in values]
    # Four digits have no comma: they may be years.
    if size < FIVE_DIGITS:
        texts = [text.replace(",", "") for text in texts]
    return [text.rstrip("0").rstrip(".") if "." in text else text for text in texts]


def listed(words: Sequence[str], most: int = 3) -> str:
    """Words with commas; of more than ``most`` the number of the others."""
    if len(words) <= most:
        return ", ".join(words)
    return f"{', '.join(words[:most])} and {len(words) - most} more"
