"""Sizes of effects as tables, by hand."""

import numpy as np
import pytest
import xarray as xr

from rhale_stats.effects.tables import sizes_summary, tidy_sizes

FACTS = {"ci_prob": 0.9, "method": "percentile", "source": "rows"}


@pytest.fixture
def sizes():
    """Two features with a size that has everything, and one that has nothing beside it."""
    return xr.Dataset(
        {
            "importance": ("feature", [1.0, 2.0]),
            "importance_corrected": ("feature", [0.5, 1.5]),
            "importance_p_value": ("feature", [0.01, 0.25]),
            "importance_ci": (("feature", "ci_bound"), [[0.5, 1.5], [1.5, 2.5]], FACTS),
            "aled": ("feature", [3.0, 4.0]),
        },
        {"feature": ["a", "b"]},
        {"output_name": "price", "bin_rule": "R", "bin_parameters": "n=1"},
    )


def test_a_line_a_size(sizes):
    table = tidy_sizes(sizes, 0.9)
    assert list(table) == [
        *("term", "size", "estimate", "corrected", "conf_low", "conf_high", "p_value")
    ]
    assert table["term"].tolist() == ["a", "a", "b", "b"]
    assert table["size"].tolist() == ["importance", "aled"] * 2
    np.testing.assert_array_equal(table["estimate"], [1, 3, 2, 4])
    np.testing.assert_array_equal(table["corrected"], [0.5, np.nan, 1.5, np.nan])
    np.testing.assert_array_equal(table["conf_low"], [0.5, np.nan, 1.5, np.nan])
    np.testing.assert_array_equal(table["conf_high"], [1.5, np.nan, 2.5, np.nan])
    np.testing.assert_array_equal(table["p_value"], [0.01, np.nan, 0.25, np.nan])


def test_sizes_that_are_not_tested(sizes):
    bare = sizes.drop_vars(["importance_p_value", "importance_corrected", "importance_ci"])
    table = tidy_sizes(bare, 0.9)
    assert list(table) == ["term", "size", "estimate", "conf_low", "conf_high"]
    assert table["conf_low"].isna().all()


def by_chance(sizes, chance, failed):
    return sizes.assign(
        importance_threshold=("feature", [0.7, 0.8], {"level": 0.9}),
        importance_chance_p_value=("feature", [0.02, 0.5]),
        failed=("fit", np.arange(5) < failed),
    ).assign_attrs(chance=chance, n_resamples=5)


def test_thresholds_by_chance(sizes):
    table = tidy_sizes(by_chance(sizes, "permuted", 0), 0.9)
    assert table["size"].tolist() == ["importance", "aled"] * 2
    np.testing.assert_array_equal(table["threshold"], [0.7, np.nan, 0.8, np.nan])
    np.testing.assert_array_equal(table["chance_p_value"], [0.02, np.nan, 0.5, np.nan])
    np.testing.assert_array_equal(table["p_value"], [0.01, np.nan, 0.25, np.nan])


def printed(sizes):
    found = sizes_summary(sizes, None, 0.9)
    return " ".join(str(found).split()), found.notes


def test_the_printed_table(sizes):
    text, notes = printed(sizes)
    assert "Sizes of the effects on price" in text
    assert "a: importance 1 0.5 0.5 1.5 0.010" in text
    assert "b: aled 4" in text
    assert notes[0] == "Intervals: 0.9, percentile. They treat the model as given."
    assert notes[1].startswith("corrected: without the part of sampling noise.")
    assert notes[2].endswith(" aled: mean distance of the curve from its mean.")
    assert notes[3].startswith("aler: ")
    assert notes[-1] == "Bins: R(n=1)."
    assert len(notes) == 5


def test_notes_of_what_there_is(sizes):
    sizes["importance_ci"].attrs["source"] = "rows and refits"
    assert printed(sizes)[1][0] == "Intervals: 0.9, percentile."
    bare = sizes.drop_vars(["importance_ci", "importance_corrected", "aled"])
    del bare.attrs["bin_rule"]
    notes = printed(bare)[1]
    assert notes[0] == "importance: standard deviation of the curve over the rows."
    assert notes[1].startswith("heterogeneity_output: ")
    assert len(notes) == 2
    notes = printed(sizes.assign(naled=("feature", [1.0, 2.0])))[1]
    assert any(note.startswith("naled, naler: ") for note in notes)


@pytest.mark.parametrize(
    ("chance", "failed", "text"),
    [
        ("permuted", 0, "sizes in 5 fits of the model with the column permuted; "),
        ("added column", 2, "sizes in 5 fits (2 fits failed) of the model with an added random "),
    ],
)
def test_how_thresholds_were_found(sizes, chance, failed, text):
    note = printed(by_chance(sizes, chance, failed))[1][0]
    assert text in note
    assert "larger sizes than the threshold have P of at most 0.1." in note
