"""The page of a profile: the features of largest importance."""

from __future__ import annotations

import numpy as np
import pytest

from rhale_stats.profiles.tables import profile_page

MEANT = (
    "importance: standard deviation of the curve over the rows. heterog.: root mean square of the "
    "spread about it. lowest, highest: of the curve."
)


def test_the_most_important_come_first(known):
    page = profile_page(known, 10)
    assert page.title == "Partial dependence: effects on price [EUR]"
    assert page.facts == ("10 rows; 3 features", "Uncertainty: rows (model as given)")
    (table,) = page.tables
    assert table.heads == ["", "importance", "heterog.", "lowest", "highest", "std err up to"]
    assert table.lines == [
        ["k", "3", "0.6", "-0.75", "0.25", "0.08"],
        ["a", "1.5", "0.9", "-1", "2", "0.4"],
        ["one", "constant", "", "", "", ""],
    ]
    assert table.notes == (MEANT,)
    assert page.more == "summary(effect, 'k'), plot(effect, 'k'), tidy(effect)"


@pytest.mark.parametrize("there", [False, True])
def test_few_lines_without_errors(known, there):
    """Errors that are absent, or all unknown."""
    if there:
        known["curve_se"][:] = np.nan
        known["curve_cov"][:] = np.nan
    else:
        known = known.drop_vars(["curve_se", "curve_cov"])
    page = profile_page(known, 2)
    (table,) = page.tables
    assert table.heads == ["", "importance", "heterog.", "lowest", "highest"]
    assert table.lines == [["k", "3", "0.6", "-0.75", "0.25"], ["a", "1.5", "0.9", "-1", "2"]]
    assert table.notes == ("2 of 3 features.", MEANT)
    assert page.facts[1] == (
        "Uncertainty: not estimated yet; std_error(effect) adds standard errors"
    )
