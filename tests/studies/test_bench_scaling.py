"""Growth of cost: exponents of known laws, a small run, its figure and its page."""

from __future__ import annotations

import numpy as np
import pytest

from tests.benchmarks import page, scaling
from tests.benchmarks.scaling import Growth


@pytest.mark.parametrize("power", [0.0, 1.0, 2.0])
def test_exponent_of_a_power_law(power):
    sizes = np.array([10, 100, 1000, 10_000])
    assert Growth("rows", "f", sizes, 3.0 * sizes**power).exponent == pytest.approx(power)


def test_a_small_run_has_all_functions_and_its_page(monkeypatch):
    monkeypatch.setattr(scaling, "RUNS", 1)
    sizes = {"rows": (100, 200), "bins": (5, 10), "resamples": (10, 20)}
    times, memory = scaling.growth(sizes)
    table = scaling.exponents(times, memory).set_index("function")
    assert set(table.index) == {"rhale", "ale", "pdp", "regions", "bootstrap"}
    assert all(np.all(one.values > 0) for one in (*times, *memory))
    assert {one.axis for one in memory} == {"rows"}
    line = {"task": "t", "rows": 5, "peer": "p", "ratio": 0.5, "faster": "p"}
    text = page.page("TABLES\n", [line], times, memory)
    assert "In 1 of 1 comparisons" in text
    assert "p\ntakes 0.5 times" in text
    assert scaling.figure(times, memory).axes[4].get_xlabel() == "rows"
