"""Thresholds that a reader can take in."""

import numpy as np
import pytest

from rhale_stats.regional.conditions import as_json, of_json, readable


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (-1.0, 2.0, 0.0),
        (0.0, 1.0, 0.0),
        (2.0, 3.0, 2.0),  # 2.5 is rounded to even
        (2.2, 3.0, 2.6),
        (27.31, 27.92, 27.6),
        (151.0, 249.0, 200.0),
        (-0.0341, -0.0339, -0.034),
        (1234.1, 1234.5, 1234.3),
        (0.0, 5e-324, 0.0),
        (1.0, np.nextafter(1.0, 2), 1.0),
    ],
)
def test_the_shortest_number_between_two_values(low, high, expected):
    found = readable(low, high)
    assert found == pytest.approx(expected, rel=1e-15)
    # It parts the rows at the two values as their middle does.
    assert low <= found < high


def test_levels_are_kept_as_text():
    assert of_json(as_json(("a", 1, True))) == ("a", 1, True)
    assert as_json(()) == ""
    assert of_json("") == ()
