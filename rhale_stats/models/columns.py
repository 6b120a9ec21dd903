"""Columns of objects and of text: read as numbers or dates where they hold nothing else."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from rhale_stats.arguments.words import listed

# What stands for a missing value in columns of numbers or dates.
PLACEHOLDERS = frozenset(
    ("", "?", "-", ".", "na", "n/a", "#n/a", "nan", "nat", "null", "none", "missing", "unknown")
)
# Text with at most so many distinct values is levels, whatever it reads.
MOST_CODES = 12


class Reading(NamedTuple):
    """A column as numbers or dates, how it is turned back, and what was done with it."""

    values: pd.Series[Any]
    back: Callable[[pd.Series[Any]], pd.Series[Any]]
    kind: str
    days: bool


def readings_of(frame: pd.DataFrame) -> tuple[dict[int, Reading], list[str]]:
    """Columns that hold numbers or dates in another type, by position; a line about each."""
    found, lines = {}, []
    for at, dtype in enumerate(frame.dtypes):
        column = frame.iloc[:, at]
        one = _reading(column) if isinstance(dtype, pd.PeriodDtype) or _is_open(dtype) else None
        if one is not None:
            found[at] = one
            gone = one.values.isna() & column.notna()
            texts = column[gone].unique()
            more = f"; {listed(texts)} in {int(gone.sum())} rows is missing" if len(texts) else ""
            lines.append(f"Column {str(frame.columns[at])!r} is read as {one.kind}{more}.")
    return found, lines


def _is_open(dtype: Any) -> bool:
    return pd.api.types.is_object_dtype(dtype) or isinstance(dtype, pd.StringDtype)


def is_nested(column: pd.Series[Any]) -> bool:
    """Whether a column holds lists, records or arrays."""
    if column.dtype != object:
        return False
    known = column.dropna()
    return bool(len(known)) and isinstance(known.iloc[0], list | dict | set | np.ndarray)


def _reading(column: pd.Series[Any]) -> Reading | None:
    if isinstance(column.dtype, pd.PeriodDtype):
        freq = column.dtype.freq
        return Reading(
            column.dt.to_timestamp().astype("datetime64[s]"),
            lambda some: some.dt.to_period(freq),
            "dates",
            days=True,
        )
    try:
        every = pd.Series(column.dropna().unique(), dtype=object)
    except TypeError:  # values without a hash
        return None
    texts = every.map(lambda one: isinstance(one, str))
    place = every[texts].map(lambda one: one.strip().lower() in PLACEHOLDERS)
    known = every.drop(place.index[place.astype(bool)])
    if not len(known) or len(known) < len(every) - len(known):
        return None
    plain = column.where(column.isin(known))
    is_text = known.map(lambda one: isinstance(one, str))
    if is_text.all():
        found = _of_text(plain, known) if len(known) > MOST_CODES else None
    else:
        found = None if is_text.any() else _of_objects(plain, known)
    if found is None:
        return None
    fill = every[place.index[place.astype(bool)][0]] if place.any() else None
    own, back = column.dtype, found.back

    def restored(some: pd.Series[Any]) -> pd.Series[Any]:
        return back(some).astype(object).where(some.notna(), fill).astype(own)

    return found._replace(back=restored)


def _of_objects(plain: pd.Series[Any], known: pd.Series[Any]) -> Reading | None:
    """Numbers, or dates, of Python."""

    def every(*kinds: type) -> bool:
        return all(isinstance(one, kinds) and not isinstance(one, bool) for one in known)

    if every(Real, Decimal):
        made: Any = Decimal if every(Decimal) else None
        whole = every(int, np.integer) and not plain.isna().any()
        numbers = plain.astype(np.int64 if whole else np.float64)
        back = (lambda some: some.map(lambda one: made(str(one)))) if made else pd.Series.copy
        return Reading(numbers, back, "numbers", days=False)
    if every(dt.datetime, np.datetime64):
        return Reading(pd.to_datetime(plain), pd.Series.copy, "dates", days=False)
    if every(dt.date) and not any(isinstance(one, dt.datetime) for one in known):
        dates = pd.to_datetime(plain).astype("datetime64[s]")
        return Reading(dates, lambda some: some.dt.date, "dates", days=True)
    return None


def _of_text(plain: pd.Series[Any], known: pd.Series[Any]) -> Reading | None:
    """Numbers, unless they are codes such as 007, or dates of one format."""
    numbers = pd.to_numeric(plain, errors="coerce")
    if numbers.notna().sum() == plain.notna().sum():
        if known.str.match(r"\s*[+-]?0\d").any() or not np.isfinite(numbers.dropna()).all():
            return None
        whole = known.str.fullmatch(r"\s*[+-]?\d+\s*").all()

        def text(one: float) -> str:
            return str(int(one)) if whole and one == int(one) else repr(float(one))

        return Reading(
            numbers.astype(np.float64),
            lambda some: some.map(text, na_action="ignore"),
            "numbers",
            days=False,
        )
    pattern = pd.tseries.api.guess_datetime_format(known.iloc[0])
    dates = pd.to_datetime(plain, format=pattern, errors="coerce") if pattern else None
    if dates is None or dates.notna().sum() < plain.notna().sum() or dates.dt.tz is not None:
        return None
    days = bool((dates.dropna() == dates.dropna().dt.normalize()).all())
    dates = dates.astype("datetime64[s]") if days else dates
    return Reading(dates, lambda some: some.dt.strftime(pattern), "dates", days)
