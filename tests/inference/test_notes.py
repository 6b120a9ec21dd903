"""Notes below printed tables."""

import pandas as pd
import xarray as xr

from rhale_stats.inference.estimate import Facts, interval
from rhale_stats.inference.notes import (
    because,
    bins_note,
    how_made,
    interval_notes,
    reasons_of,
    rows_of,
)


def test_rules_of_both_results_of_a_comparison():
    own = {"bin_rule": "A", "bin_parameters": "n=1"}
    assert bins_note(own) == "Bins: A(n=1)."
    assert (
        bins_note(own | {"bin_rule_b": "B"}) == "Bins: A(n=1) of the first, B(n=1) of the second."
    )
    other = bins_note(own | {"bin_parameters_b": "n=2"})
    assert other == "Bins: A(n=1) of the first, A(n=2) of the second."


def test_rows_of_both_results_of_a_comparison():
    assert rows_of({"n_rows": 30}) == "30"
    assert rows_of({"n_rows": 30, "n_rows_b": 40}) == "30 and 40"


def test_reasons_name_all_lines_that_they_are_given_for():
    assert because(["a", "b", "c", "d"], ["no", "", "other", "no"]) == ["a, d: no.", "c: other."]


def test_tables_without_reasons_have_empty_ones():
    assert reasons_of(pd.DataFrame({"term": ["a", "b"]})) == ["", ""]
    assert reasons_of(pd.DataFrame({"reason": ["no", ""]})) == ["no", ""]


class TestIntervals:
    """Of a result with intervals and a band."""

    facts = Facts(("place",), "the mean", "m", "mean", "rows")
    result = xr.Dataset(
        {
            "mean": ("place", [1.0]),
            "mean_ci": interval(facts, [[0.0, 2.0]], 0.9, "standard errors, Student's t"),
            "sd_ci": interval(facts, [[0.0, 2.0]], 0.9, "standard errors, Student's t"),
            "other_ci": interval(facts, [[0.0, 2.0]], 0.9, "bootstrap, basic"),
        }
    )

    def test_how_those_of_the_level_were_made(self):
        assert how_made(self.result, "mean", 0.9) == "Student's t"
        assert how_made(self.result, "other", 0.9) == "bootstrap, basic"

    def test_others_are_made_for_the_table(self):
        assert how_made(self.result, "other", 0.95) == "Student's t"
        assert how_made(self.result, "none", 0.9) == "Student's t"

    def test_intervals_made_alike_are_named_together(self):
        assert interval_notes(self.result) == [
            "In the result: mean_ci, sd_ci (0.9, pointwise, standard errors, Student's t; rows).",
            "In the result: other_ci (0.9, pointwise, bootstrap, basic; rows).",
        ]
