"""Dates as days, and back."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rhale_stats.arguments.rows import as_edges
from rhale_stats.arguments.times import (
    as_days,
    as_values,
    date_texts,
    from_days,
    time_units,
    unit_word,
)

MOMENTS = st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2200, 1, 1))


def test_days_by_hand():
    given_dates = ["1970-01-01 00:00", "1970-01-02 12:00", "1969-12-31 00:00", None]
    for unit in ("s", "ms", "us", "ns"):
        values = pd.Series(pd.to_datetime(given_dates)).dt.as_unit(unit)
        np.testing.assert_array_equal(as_days(values), [0, 1.5, -1, np.nan])
    spans = pd.Series(pd.to_timedelta(["6h", None, "-2D"]))
    np.testing.assert_array_equal(as_days(spans), [0.25, np.nan, -2])


def test_days_of_zones_are_those_of_utc():
    summer = pd.Series(pd.to_datetime(["2024-07-01 02:00"])).dt.tz_localize("Europe/Berlin")
    np.testing.assert_array_equal(as_days(summer), [19905.0])
    assert from_days(np.array([19905.0]), summer.dtype)[0] == summer[0]
    assert date_texts([19905.0], time_units(summer.dtype)) == ["2024-07-01 02:00"]
    short = date_texts([19905.0, 19905.25], time_units(summer.dtype))
    assert short == ["2024-07-01 02:00", "2024-07-01 08:00"]


@pytest.mark.thorough
@settings(max_examples=30, deadline=None)
@given(st.lists(MOMENTS, min_size=1, max_size=5), st.sampled_from(["us", "ns"]))
def test_days_come_back_to_two_microseconds(moments, unit):
    # Days up to 1e5 have steps of 1.5e-11 in double precision: 1.3 microseconds.
    values = pd.Series(pd.DatetimeIndex(moments)).dt.as_unit(unit)
    found = pd.Series(from_days(as_days(values), values.dtype))
    assert found.dtype == values.dtype
    assert (found - values).abs().max() <= pd.Timedelta(2, "us")
    np.testing.assert_array_equal(as_days(found), as_days(values))


def test_seconds_become_microseconds_but_not_for_whole_days():
    kind = np.dtype("datetime64[s]")
    assert from_days(np.array([0.5]), kind).dtype == np.dtype("datetime64[us]")
    found = from_days(np.array([0.6, np.nan]), kind, whole=True)
    assert found.dtype == kind
    assert found[0] == pd.Timestamp("1970-01-02")
    assert found[1] is pd.NaT


@pytest.mark.parametrize(
    "edges",
    [
        [dt.date(1970, 1, 1), dt.date(1970, 1, 3)],
        [pd.Timestamp("1970-01-01"), pd.Timestamp("1970-01-03")],
        np.array(["1970-01-01", "1970-01-03"], dtype="datetime64[D]"),
        pd.DatetimeIndex(["1970-01-01", "1970-01-03"]),
        [0, 2],
    ],
)
def test_edges_may_be_dates(edges):
    np.testing.assert_array_equal(as_edges(edges, "edges"), [0, 2])


def test_other_values_stay():
    text = np.array(["a"])
    assert as_values(text) is text
    assert as_values([]) == []
    assert unit_word("days since 1970-01-01") == "day"
    assert unit_word("m") == "m"
