"""H-statistics as printed: facts, the order of lines, and notes."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from scipy import stats

import rhale_stats as rs
from rhale_stats.h_statistics.tables import difference_summary, summary
from tests.helpers import summary_body as body
from tests.helpers import summary_facts as facts

MEANING = [
    "H²: share of the variance of the output; of a pair, share of the variance of its joint "
    "effect. Shares of different pairs cannot be compared.",
    "size: root mean square of the interaction, in units of the output. Sizes can be compared.",
]
ABOVE = "H-statistics: interactions in price [EUR]"


def line(name, h2, h, level=0.95):
    """A line of a statistic whose standard errors are a tenth, of 7.5 degrees of freedom."""
    half = 0.1 * stats.t.ppf((1 + level) / 2, 7.5)
    numbers = [
        one
        for value in (h2, h)
        for one in (value, value / 10, value * np.exp(-half), value * np.exp(half))
    ]
    return [name, *(f"{one:.4g}" for one in numbers)]


def bare(known):
    """Without standard errors."""
    return known.drop_vars([name for name in known if str(name).endswith("_se")])


def test_facts_and_lines_by_their_shares(known):
    found = summary(known, None, 0.9)
    title, above = facts(found)
    assert title == ABOVE
    assert above == {
        "Rows:": "12 of 20",
        "Computed from:": "partial dependence",
        "Weights:": "none",
        "Sorted by:": "share",
        "Model calls:": "5",
        "All, H²:": "0.5",
        "Model rows:": "888",
        "All, size:": "2",
        "Uncertainty:": "rows (model as given)",
    }
    heads, *lines = body(found)
    assert heads == [*("H²", "std err", "[0.05", "0.95]"), *("size", "std err", "[0.05", "0.95]")]
    assert lines == [
        line("b", 0.4, 2.0, 0.9),
        line("a", 0.2, 1.0, 0.9),
        line("c", 0.1, 3.0, 0.9),
        line("a:c", 0.6, 0.5, 0.9),
        line("a:b", 0.3, 1.5, 0.9),
        line("b:c", 0.1, 2.5, 0.9),
    ]
    assert found.notes == [
        "Intervals: pointwise, Student's t on the log scale. They say how large an interaction "
        "is, not whether there is one.",
        *MEANING,
        "Rows were drawn at random; seed 7.",
    ]


def test_lines_by_their_sizes_and_of_one_feature(known):
    found = bare(known).assign_attrs(normalize=0, n_rows=20, weight_kind="precision", row_seed=-1)
    printed = summary(found, None, 0.95)
    above = facts(printed)[1]
    assert above["Rows:"] == "20"
    assert above["Sorted by:"] == "size"
    assert above["Weights:"] == "precision"
    assert "Uncertainty:" not in above
    heads, *lines = body(printed)
    assert heads == ["H²", "size"]
    assert [one[0] for one in lines] == ["c", "b", "a", "b:c", "a:b", "a:c"]
    assert lines[0] == ["c", "0.1", "3"]
    assert printed.notes == MEANING
    one = summary(found, "b", 0.95)
    assert body(one)[1:] == [["b", "0.4", "2"], ["b:c", "0.1", "2.5"], ["b:a", "0.3", "1.5"]]


def test_a_seed_of_zero_is_a_seed(known):
    notes = summary(bare(known).assign_attrs(row_seed=0), None, 0.95).notes
    assert notes[-1] == "Rows were drawn at random; seed 0."


@pytest.mark.parametrize("size", [0.0, 1e-6, 1e3])
def test_sizes_that_differ_by_rounding_keep_the_order_of_features(known, size):
    """Their unit does not matter, and without any interaction the order stays."""
    found = bare(known).assign_attrs(normalize=0).drop_vars(["h2_pairwise", "h_pairwise"])
    found["h_overall"][:] = size * np.array([1.0, 1.0 + 1e-12, 1.0 - 1e-12])
    assert [one[0] for one in body(summary(found, None, 0.95))[1:4]] == ["a", "b", "c"]
    found["h_overall"][:] = size * np.array([1.0, 1.0 + 1e-6, 1.0 - 1e-6])
    order = ["b", "a", "c"] if size else ["a", "b", "c"]
    assert [one[0] for one in body(summary(found, None, 0.95))[1:4]] == order


def test_shares_of_more_than_the_whole(known):
    known["h2"][...], known["h2_overall"][0] = 1.5, 1.5
    found = summary(known, None, 0.95)
    assert facts(found)[1]["All, H²:"] == "> 1"
    # They come first.
    assert body(found)[1] == ["a", "> 1", *line("a", 1.0, 1.0)[5:]]
    assert found.notes[0] == (
        "a: its interactions vary more than the output: main effects offset part of them."
    )


def test_what_was_left_out_is_said(known):
    changed = {"n_pairs_left_out": 4, "n_rows_missing": 3, "row_seed": -1}
    notes = summary(bare(known).assign_attrs(changed), None, 0.95).notes
    assert notes == [
        "4 pairs were left out. See n_pairs.",
        *MEANING,
        "3 rows without a value were left out.",
    ]
    ale = {"h_kind": "ale", "bin_rule": "QuantileBins", "bin_parameters": "n_bins=3"}
    found = bare(known).assign_attrs(changed | ale).assign(h_screening=known["h_pairwise"])
    printed = summary(found, None, 0.95)
    assert facts(printed)[1]["Computed from:"] == "ALE"
    assert printed.notes == [
        "4 pairs were left out, which interact least by h_screening, and count as 0 in what is "
        "summed. See n_pairs.",
        *MEANING,
        "3 rows without a value were left out.",
        "Bins: QuantileBins(n_bins=3).",
    ]
    some = bare(known).drop_vars(["h2_pairwise", "h_pairwise"])
    assert summary(some.assign_attrs(row_seed=-1), None, 0.95).notes == [
        *MEANING,
        "Pairs were not computed; see pairwise.",
    ]


@pytest.mark.parametrize("n", [6, 7])
def test_the_fifteen_largest_pairs_are_printed(known, n):
    names = [f"f{number}" for number in range(n)]
    own = np.arange(float(n)) + 1
    pairs = np.where(np.eye(n, dtype=bool), np.nan, np.add.outer(own, own))
    pair = ("feature", "feature_other")
    made = {
        "h2": ((), 0.5),
        "h": ((), 2.0),
        "h2_overall": (("feature",), own / 10),
        "h_overall": (("feature",), own),
        "h2_pairwise": (pair, pairs / 100),
        "h_pairwise": (pair, pairs),
    }
    attrs = known.attrs | {"normalize": 0, "row_seed": -1}
    found = xr.Dataset(made, {"feature": names, "feature_other": names}, attrs)
    printed = summary(found, None, 0.95)
    lines = body(printed)[1:]
    assert len(lines) == n + 15
    sizes = sorted((i + j for i in range(1, n + 1) for j in range(i + 1, n + 1)), reverse=True)
    assert [float(one[2]) for one in lines[n:]] == sizes[:15]
    more = [] if n == 6 else ["The 15 largest of 21 pairs; tidy has all of them."]
    assert printed.notes == [*MEANING, *more]


def with_influences(known, rows_of_each):
    """Influences of ten rows: of the first rows 1 or -1, in turn, of the others 0.

    With k such rows, an even number, the sum of fourth powers over the square of that of squares
    is 1 / k. The limit is 0.1.
    """
    n_rows = 40

    def influence(k):
        out = np.zeros(n_rows)
        out[:k] = np.where(np.arange(k) % 2, 1.0, -1.0)
        return out

    overall, pairs = rows_of_each
    square = np.full((3, 3, n_rows), np.nan)
    for (j, k), n in pairs.items():
        square[j, k] = square[k, j] = influence(n)
    # A constant that is added to all of them is no part of it.
    return known.assign(
        h2_overall_influence=(("feature", "obs"), 5 + np.stack([influence(k) for k in overall])),
        h2_pairwise_influence=(("feature", "feature_other", "obs"), square),
        h2_influence=("obs", influence(2)),
    )


@pytest.mark.parametrize(
    ("overall", "pairs", "said"),
    [
        ((12, 12, 12), (12, 12, 12), ""),
        ((2, 12, 12), (12, 12, 12), "a"),
        ((12, 8, 12), (12, 12, 4), "b, b and c"),
        ((12, 12, 8), (8, 8, 12), "c, a and b, a and c"),
        ((8, 8, 12), (8, 12, 8), "a, b, a and b and 1 more"),
        ((2, 2, 2), (2, 2, 2), "a, b, c and 3 more"),
    ],
)
def test_few_rows_that_decide_on_an_error_are_said(known, overall, pairs, said):
    which = dict(zip([(0, 1), (0, 2), (1, 2)], pairs, strict=True))
    note = summary(with_influences(known, (overall, which)), None, 0.95).notes[0]
    more = (
        f" Those of {said} may be too short, because few rows decide on the errors: see "
        f"docs/validity.md."
    )
    assert note == (
        "Intervals: pointwise, Student's t on the log scale. They say how large an interaction is, "
        f"not whether there is one.{more if said else ''}"
    )


def test_the_limit_of_few_rows_is_a_tenth(known):
    at = {(0, 1): 10, (0, 2): 10, (1, 2): 10}
    notes = summary(with_influences(known, ((10, 10, 8), at)), None, 0.95).notes
    assert "Those of c may" in notes[0]


def test_differences_line_by_line(difference):
    found = difference_summary(difference, None, 0.95)
    (table,) = found.tables
    title, *_ = table.as_text().splitlines()
    assert title.strip() == "H-statistics: difference on price [EUR]"
    heads, *lines = body(found)[1:]
    assert heads == ["a less b", "std err", "P", "P, adj.", "conf low", "conf high"]
    names = ["H², all", "size, all", *(f"{of}, {one}" for of in ("H²", "size") for one in "abc")]
    names += [f"{of}, {one}" for of in ("H²", "size") for one in ("a:b", "a:c", "b:c")]
    for number, (name, one) in enumerate(zip(names, lines, strict=True), 1):
        value = number / 10
        p = (f"{(1.5 - value) / 10:.3f}", f"{(1.5 - value) / 5:.3f}")
        ends = (value - 0.01, value + 0.02)
        assert one == [name, *(f"{n:.4g}" for n in (value, value / 10)), *p,
                       *(f"{n:.4g}" for n in ends)]  # fmt: skip
    assert found.notes == [
        "Uncertainty: pairs of rows (model as given). Intervals: 0.9, pointwise, Student's t.",
        "P, adj.: adjusted (holm) over features, or over pairs, of one statistic.",
    ]
    shown = rs.show(difference, max_features=2).head
    assert shown.tables[0].stubs == ["size, b:c", "size, a:c"]
    assert shown.words == (
        "2 of 14 lines, the most important.",
        "More: summary(result), tidy(result)",
    )
