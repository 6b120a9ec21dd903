"""Simulated numbers of docs/math-tables.md: the tables run, and what is exact is exact."""

from __future__ import annotations

import numpy as np
import pytest

from studies import formulas

FEW = {"greedy": 40, "box": 10, "chernoff": 200}
# With rules for forty tables of samples: the size of this test is that of `test_size_of_box`.
LONG = "box"


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name == LONG else ())
        for name in formulas.BLOCKS
    ],
)
def test_blocks_print_a_table(name):
    lines = formulas.table(name, FEW.get(name, 4)).splitlines()
    assert len(lines) > 2
    assert len({line.count("|") for line in lines}) == 1
    assert "nan" not in "".join(lines)


def test_noises_have_mean_0_and_their_standard_deviation():
    rng = np.random.default_rng(0)
    for name, draw in formulas.NOISES.items():
        values = draw(rng, (200_000,))
        spread = formulas.SD.get(name, 1.0)
        # Log-normal values and t with 3 degrees of freedom have heavy tails.
        assert abs(values.mean()) < 0.03 * spread, name
        assert abs(values.std() / spread - 1) < 0.1, name


def test_a_share_has_its_binomial_error():
    hits = np.arange(100) < 20
    assert formulas.percent(hits) == f"20.0 ({100 * np.sqrt(0.16 / 99):.1f})"
    assert formulas.average(np.array([1.0, 3.0]), 2) == "2.00 (1.00)"
