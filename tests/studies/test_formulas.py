"""Simulated numbers of docs/math-tables.md: the tables run, and what is exact is exact."""

from __future__ import annotations

import numpy as np
import pytest

from studies import formulas

FEW = {"greedy": 40, "box": 60, "chernoff": 200}


@pytest.mark.parametrize("name", [name for name in formulas.BLOCKS if name != "box"])
def test_blocks_print_a_table(name):
    lines = formulas.table(name, FEW.get(name, 4)).splitlines()
    assert len(lines) > 2
    assert len({line.count("|") for line in lines}) == 1
    assert "nan" not in "".join(lines)


@pytest.mark.slow
def test_the_table_of_wald_tests_has_the_size_of_normal_effects():
    lines = formulas.table("box", FEW["box"]).splitlines()
    size, _ = lines[4].split("|")[2].split("(")
    # 60 samples at 5 %: three Monte-Carlo errors of 2.8 %.
    assert 0 <= float(size) < 5 + 8.4


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
