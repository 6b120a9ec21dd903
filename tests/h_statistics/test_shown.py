"""Pages of H-statistics and of their differences."""

from __future__ import annotations

import numpy as np

from rhale_stats.h_statistics.tables import difference_page, h_statistics_page

MEANT = (
    "H²: share of the variance of the output, or of the joint effect of a pair. size: in units "
    "of the output."
)


def test_the_largest_sizes_come_first(known):
    page = h_statistics_page(known, 10)
    assert page.title == "H-statistics: interactions in price [EUR]"
    assert page.facts == (
        "12 of 20 rows; all interactions: H² 0.5, size 2",
        "Uncertainty: rows (model as given)",
    )
    features, pairs = page.tables
    for table in (features, pairs):
        assert table.heads == ["", "H²", "std err", "size", "std err"]
    assert features.lines == [
        ["c", "0.1", "0.01", "3", "0.3"],
        ["b", "0.4", "0.04", "2", "0.2"],
        ["a", "0.2", "0.02", "1", "0.1"],
    ]
    assert pairs.lines == [
        ["b:c", "0.1", "0.01", "2.5", "0.25"],
        ["a:b", "0.3", "0.03", "1.5", "0.15"],
        ["a:c", "0.6", "0.06", "0.5", "0.05"],
    ]
    assert (features.caption, pairs.caption) == ("Features", "Pairs")
    assert (features.notes, pairs.notes) == ((), (MEANT,))
    assert page.more == "summary(result), plot(result), tidy(result)"


def test_few_lines_of_features_without_errors(known):
    names = [str(name) for name in known if "pairwise" in str(name) or str(name).endswith("_se")]
    page = h_statistics_page(known.drop_vars(names), 2)
    (table,) = page.tables
    assert table.heads == ["", "H²", "size"]
    assert table.lines == [["c", "0.1", "3"], ["b", "0.4", "2"]]
    assert table.notes == ("2 of 3 features.", MEANT)
    both = h_statistics_page(known, 2).tables
    assert [one.notes for one in both] == [("2 of 3 features.",), ("2 of 3 pairs.", MEANT)]
    assert page.facts[1] == (
        "Uncertainty: not estimated yet; std_error(effect) adds standard errors"
    )


def test_shares_above_one_and_unknown_ones(known):
    known["h2"][...] = 1.5
    known["h2_overall"][2], known["h_overall"][2] = 1.5, 3.0
    known["h2_overall"][1] = known["h2_overall_se"][1] = np.nan
    page = h_statistics_page(known, 10)
    assert page.facts[0] == "12 of 20 rows; all interactions: H² > 1, size 2"
    assert page.tables[0].lines == [
        ["c", "> 1", "", "3", "0.3"],
        ["b", "", "", "2", "0.2"],
        ["a", "0.2", "0.02", "1", "0.1"],
    ]


def test_the_smallest_p_values_come_first(difference):
    difference["h2_overall_p_value"][1] = np.nan
    page = difference_page(difference, 3)
    assert page.title == "H-statistics: difference on price [EUR]"
    assert page.facts == ("Uncertainty: pairs of rows (model as given)",)
    (table,) = page.tables
    assert table.heads == ["", "a less b", "std err", "P", "P, holm"]
    assert table.lines == [
        ["size, b:c", "1.4", "0.14", "0.010", "0.020"],
        ["size, a:c", "1.3", "0.13", "0.020", "0.040"],
        ["size, a:b", "1.2", "0.12", "0.030", "0.060"],
    ]
    assert table.notes == ("3 of 14 differences.", "The smallest P first.")
    assert page.more == "summary(result), tidy(result)"
    every = difference_page(difference, 20).tables[0]
    assert every.lines[-2:] == [
        ["H², all", "0.1", "0.01", "0.140", "0.280"],
        ["H², b", "0.4", "0.04", "", "0.220"],
    ]
