"""Dates, times and durations as numbers of days, and back."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
# Units of features that are dates, as the CF conventions write them. The days are those of UTC; the
# zone in which they are shown follows.
SINCE = "days since 1970-01-01"
SHOWN = ", shown in "
DAY = "day"
# A day in microseconds, the finest step that days in double precision resolve.
MICROSECONDS = 86_400_000_000
HOUR = pd.Timedelta(hours=1)


def is_time(dtype: Any) -> bool:
    """Whether a column holds dates, times or durations."""
    return bool(
        pd.api.types.is_datetime64_any_dtype(dtype)
        or pd.api.types.is_timedelta64_dtype(dtype)
        or is_date(dtype)
    )


def is_date(dtype: Any) -> bool:
    """Whether a column of pandas holds dates without a time of the day, as Arrow does."""
    return isinstance(dtype, pd.ArrowDtype) and str(dtype).startswith("date")


def as_days(values: Any) -> FloatArray:
    """Dates and times as days since 1970 (UTC), durations as days; missing ones as NaN."""
    index = pd.Index(values)
    if is_date(index.dtype):
        index = pd.Index(pd.Series(index).astype("datetime64[us]"))
    elif isinstance(index.dtype, pd.ArrowDtype) or index.dtype == object:
        durations = index.dtype.kind == "m"
        index = pd.Index(index.to_numpy() if durations else pd.to_datetime(index.to_numpy()))
    if isinstance(index, pd.DatetimeIndex) and index.tz is not None:
        index = index.tz_convert("UTC").tz_localize(None)
    native = np.asarray(index.to_numpy())
    gone = np.isnat(native)
    # Microseconds come back from days as they were; parts of them would not.
    whole = native.astype(f"{native.dtype.kind}8[us]").astype(np.int64)
    days, rest = np.divmod(whole, np.int64(MICROSECONDS))
    return np.where(gone, np.nan, days + rest / MICROSECONDS)


def from_days(days: FloatArray, dtype: Any, *, whole: bool = False) -> Any:
    """Days as dates, times or durations of a type, to the microsecond at least.

    ``whole`` days have no time of the day.
    """
    numbers = np.rint(days) if whole else np.asarray(days, dtype=np.float64)
    gone = np.isnan(numbers)
    full = np.floor(np.where(gone, 0.0, numbers))
    micro = np.rint((np.where(gone, 0.0, numbers) - full) * MICROSECONDS).astype(np.int64)
    count = full.astype(np.int64) * MICROSECONDS + micro
    if pd.api.types.is_timedelta64_dtype(dtype):
        durations = count.astype("timedelta64[us]")
        durations[gone] = np.timedelta64("NaT", "us")
        return pd.array(durations).astype(_fine(dtype))
    moments = count.astype("datetime64[us]")
    moments[gone] = np.datetime64("NaT", "us")
    index = pd.DatetimeIndex(moments)
    if isinstance(dtype, pd.DatetimeTZDtype):
        return (
            index.tz_localize("UTC").tz_convert(dtype.tz).as_unit(_unit(dtype, whole=whole)).array
        )
    if isinstance(dtype, pd.ArrowDtype):
        return pd.Series(index).astype(dtype).array
    return index.as_unit(_unit(dtype, whole=whole)).array


def _unit(dtype: Any, *, whole: bool) -> Any:
    unit = dtype.unit if isinstance(dtype, pd.DatetimeTZDtype) else np.datetime_data(dtype)[0]
    return unit if whole or unit == "ns" else "us"


def _fine(dtype: Any) -> Any:
    if isinstance(dtype, np.dtype) and np.datetime_data(dtype)[0] in ("s", "ms"):
        return np.dtype("timedelta64[us]")
    return dtype


def time_units(dtype: Any) -> str:
    """Units of days, with the zone in which they are shown."""
    if pd.api.types.is_timedelta64_dtype(dtype):
        return DAY
    zone = getattr(dtype, "tz", None)
    return SINCE if zone is None else f"{SINCE}{SHOWN}{zone}"


def are_dates(units: str) -> bool:
    """Whether numbers in these units are dates."""
    return units.startswith(SINCE)


def unit_word(units: str) -> str:
    """The unit in which a difference of two values is."""
    return DAY if are_dates(units) else units


def units_after(units: str) -> str:
    """The unit as it is written after a value: none after dates, in the plural after durations."""
    if not units or are_dates(units):
        return ""
    return f" {units}s" if units == DAY else f" {units}"


def zone_of(units: str) -> str | None:
    """The zone in which dates are shown."""
    return units.partition(SHOWN)[2] or None


def as_dates(days: Any, units: str) -> pd.DatetimeIndex:
    """Numbers as the dates that they are, in the zone in which they are shown."""
    index = pd.DatetimeIndex(
        from_days(np.asarray(days, dtype=np.float64), np.dtype("datetime64[us]"))
    )
    zone = zone_of(units)
    return index if zone is None else index.tz_localize("UTC").tz_convert(zone)


def date_texts(days: Any, units: str) -> list[str]:
    """Dates as text: without a time where all are at midnight, with minutes, or with seconds."""
    dates = as_dates(days, units)
    present = dates.dropna()
    form = "%Y-%m-%d"
    if not (present == present.normalize()).all():
        short = present.max() - present.min() <= pd.Timedelta(days=60)
        to_minutes = (present == present.floor("min")).all() or present.max() - present.min() > HOUR
        form += (" %H:%M" if to_minutes else " %H:%M:%S") if short else ""
    return list(pd.Series(dates).dt.strftime(form).fillna(""))


def as_values(values: Any) -> Any:
    """Dates and durations as days, and everything else as it is."""
    dtype = getattr(values, "dtype", None)
    if dtype is None and isinstance(values, list | tuple) and len(values):
        if not isinstance(values[0], datetime.date | datetime.timedelta | np.datetime64):
            return values
        spans = isinstance(values[0], datetime.timedelta)
        values = pd.to_timedelta(values) if spans else pd.DatetimeIndex(values)
        dtype = values.dtype
    if dtype is None or not (is_time(dtype) or getattr(dtype, "kind", "") in "mM"):
        return values
    if isinstance(values, np.ndarray) and values.ndim != 1:
        return as_days(values.ravel()).reshape(values.shape)
    return as_days(values)


def shown_values(days: FloatArray, units: str) -> Any:
    """Values of a feature as a table shows them: dates where they are some."""
    return as_dates(days, units) if are_dates(units) else days
