"""Columns of objects and of text: read as numbers or dates where they hold nothing else."""

from __future__ import annotations

import datetime as dt
import warnings
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from rhale_stats.arguments.words import listed

# Texts for missing values in columns of numbers or dates.
PLACEHOLDERS = frozenset(
    ("", "?", "-", ".", "na", "n/a", "#n/a", "nan", "nat", "null", "none", "missing", "unknown")
)
# Text with at most so many distinct values is levels, whatever it reads.
MAX_CODES = 12


class Reading(NamedTuple):
    """A column as numbers or dates, and how it is turned back."""

    values: pd.Series[Any]
    back: Callable[[pd.Series[Any]], pd.Series[Any]] = pd.Series.copy
    kind: str = "numbers"
    days: bool = False


def readings_of(frame: pd.DataFrame) -> tuple[dict[int, Reading], list[str]]:
    """Columns that hold numbers or dates in another type, by position; a line about each."""
    readings, lines = {}, []
    for position, dtype in enumerate(frame.dtypes):
        column, reading = frame.iloc[:, position], None
        if isinstance(dtype, pd.PeriodDtype):
            dates = column.dt.to_timestamp().astype("datetime64[s]")
            reading = Reading(dates, partial(pd.Series.astype, dtype=dtype), "dates", days=True)
        elif pd.api.types.is_object_dtype(dtype) or isinstance(dtype, pd.StringDtype):
            reading = _reading(column)
        if reading is not None:
            readings[position], gone = reading, reading.values.isna() & column.notna()
            more = f"; {listed(list(column[gone].unique()))} in {gone.sum()} rows is missing"
            name = str(frame.columns[position])
            lines.append(f"Column {name!r} is read as {reading.kind}{more if gone.any() else ''}.")
    return readings, lines


def is_nested(column: pd.Series[Any]) -> bool:
    """Whether a column holds lists, records, arrays or complex numbers."""
    if not pd.api.types.is_object_dtype(column.dtype):
        return pd.api.types.is_complex_dtype(column.dtype)
    values = column.dropna()
    return len(values) > 0 and isinstance(values.iloc[0], list | dict | set | np.ndarray)


def _reading(column: pd.Series[Any]) -> Reading | None:
    """Placeholders are missing values if most of the distinct values are none."""
    try:
        every = column.dropna().unique().tolist()
    except TypeError:  # values without a hash
        return None
    fill = [
        value for value in every if isinstance(value, str) and value.strip().lower() in PLACEHOLDERS
    ]
    values = [value for value in every if value not in fill]
    if len(values) <= len(fill):
        return None
    plain = column.where(~column.isin(fill)).astype(object)
    reading = (_of_text if isinstance(values[0], str) else _of_objects)(plain, values)
    if reading is None:
        return None
    back, gap = reading.back, fill[0] if fill else None

    def restored(some: pd.Series[Any]) -> pd.Series[Any]:
        return back(some).astype(object).where(some.notna(), gap).astype(column.dtype)

    return reading._replace(back=restored)


def _of_objects(plain: pd.Series[Any], values: list[Any]) -> Reading | None:
    kinds = set(map(type, values))

    def every(*types: type) -> bool:
        return all(issubclass(kind, types) for kind in kinds) and bool not in kinds

    if every(Real, Decimal):
        back = (lambda some: some.map(str).map(Decimal)) if every(Decimal) else pd.Series.copy
        return Reading(plain.astype(np.float64), back)
    if every(dt.datetime, np.datetime64):
        return Reading(pd.to_datetime(plain), kind="dates")
    if kinds == {dt.date}:
        dates = pd.to_datetime(plain).astype("datetime64[s]")
        return Reading(dates, lambda some: some.dt.date, "dates", days=True)
    return None


def _of_text(plain: pd.Series[Any], values: list[Any]) -> Reading | None:
    """Numbers, unless they are codes such as 007, or dates of one format."""
    if len(values) <= MAX_CODES or not all(isinstance(value, str) for value in values):
        return None
    texts, n_known = pd.Series(values), plain.notna().sum()
    numbers = pd.to_numeric(plain, errors="coerce").astype(np.float64)
    if np.isfinite(numbers).sum() == n_known:
        whole = texts.str.fullmatch(r"\s*[+-]?\d+\s*").all()
        back = lambda x: f"{x:.0f}" if whole and x == round(x) else repr(float(x))  # noqa: E731
        codes = texts.str.match(r"\s*[+-]?0\d").any()
        return None if codes else Reading(numbers, lambda some: some.map(back, na_action="ignore"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the day is, or is not, first
        guess = partial(pd.tseries.api.guess_datetime_format, values[0])
        patterns = guess(), guess(dayfirst=True)
    for pattern in filter(None, patterns):
        dates = pd.to_datetime(plain, format=pattern, errors="coerce")
        if dates.notna().sum() == n_known and getattr(dates.dtype, "kind", "") == "M":
            break
    else:
        return None
    days = bool((dates.dropna() == dates.dropna().dt.normalize()).all())
    dates = dates.astype("datetime64[s]") if days else dates
    return Reading(dates, lambda some: some.dt.strftime(pattern), "dates", days)
