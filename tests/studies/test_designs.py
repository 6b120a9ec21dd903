"""The study of designs: its truths, and what it prints."""

from __future__ import annotations

import numpy as np
import pytest

from studies import designs


@pytest.mark.parametrize("name", designs.NOISES)
def test_noises_have_mean_zero(name):
    drawn = designs.NOISES[name](np.random.default_rng(0), 400_000)
    # Five standard errors.
    assert abs(drawn.mean()) < 5 * drawn.std() / 400_000**0.5


def test_one_sample_of_every_scenario():
    rng = np.random.default_rng(1)
    found = {}
    for draw in designs.SCENARIOS.values():
        found |= draw(designs.NOISES["normal"], rng=rng)
    assert len(found) == 18
    assert set(map(type, found.values())) <= {bool, np.bool_}


def test_the_table_is_printed(capsys):
    designs.main(2, "30 rows a bin")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "| | claim | normal | log-normal | 10:90 |"
    assert lines[2].startswith('| monotone, 30 rows a bin | `wald_test(effect, "increasing")` | ')
    assert len(lines) == 4
