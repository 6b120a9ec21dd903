"""Numbers and places as people read them."""

import numpy as np
import pytest

from rhale_stats.answers.sentences import axis_texts, estimate, listed, number, percent


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (np.nan, "unknown"),
        (1234.5678, "1,235"),
        (0.012345, "0.0123"),
        (-3.0, "-3.00"),
        (1e9, "1e+09"),
        (1e-9, "1e-09"),
        (99.95, "100.0"),
    ],
)
def test_numbers_have_three_digits(value, text):
    assert number(value) == text


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("value", "ends", "text"),
    [
        (123.4, (110.6, 139.2), "123 [111, 139]"),
        (2.44, (0.46, 4.87), "2.4 [0.5, 4.9]"),
        (0.5, (0.498, 0.502), "0.5000 [0.4980, 0.5020]"),
        (3.0, (3.0, 3.0), "3.00"),
        (3.0, (np.nan, 4.0), "3.00"),
        (-0.001, (-2.0, 2.0), "0.0 [-2.0, 2.0]"),
        (1234567.0, (1234000.0, 1235000.0), "1,234,567 [1,234,000, 1,235,000]"),
    ],
)
def test_estimates_and_their_intervals_share_decimals(value, ends, text):
    assert estimate(value, ends) == text


def test_an_interval_never_reads_as_another_verdict():
    """Rounding is symmetric: no number is off by more than half of its last digit."""
    rng = np.random.default_rng(0)
    for _ in range(500):
        lower, upper = np.sort(rng.lognormal(0, 3, 2))
        text = estimate((lower + upper) / 2, (lower, upper))
        low, high = (float(one.replace(",", "")) for one in text[:-1].split(" [")[1].split(", "))
        assert low == pytest.approx(lower, abs=0.06 * (upper - lower) + 1e-9)
        assert high == pytest.approx(upper, abs=0.06 * (upper - lower) + 1e-9)


def test_shares_of_rows():
    assert [percent(one) for one in (0, 0.001, 0.0099, 0.01, 0.5, 1)] == [
        *("0 %", "< 1 %", "< 1 %", "1 %", "50 %", "100 %")
    ]


def test_places_of_an_axis():
    assert axis_texts(np.array([0.0, 0.25, 1.0])) == ["0", "0.25", "1"]
    assert axis_texts(np.array([1990.0, 2000.0])) == ["1990", "2000"]
    assert axis_texts(np.array([0.0, 20000.0])) == ["0", "20,000"]
    assert axis_texts(np.array([0.0, 365.0]), "days since 1970-01-01")[0].startswith("1970")
    assert axis_texts(np.array([2.0])) == ["2"]
    assert axis_texts(np.array([1e-8, 2e-8]))[0] == "1e-08"


def test_lists_are_cut():
    assert listed(["a", "b", "c"]) == "a, b, c"
    assert listed(["a", "b", "c", "d"]) == "a, b, c and 1 more"
