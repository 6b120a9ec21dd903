"""Tables of tests."""

import numpy as np
import pytest
import xarray as xr

from rhale_stats.inference.tests import glance, summary, tidy

NAN = np.nan


@pytest.fixture
def tested():
    """Differences of two features at points, the second with one point less and no p-value."""
    difference = np.array([[1.0, 2.0], [3.0, NAN]])
    ends = difference[..., None] + np.array([-1, 2])
    said = {"ci_prob": 0.9, "kind": "pointwise"}
    dims = ("feature", "grid")
    return xr.Dataset(
        {
            "statistic": ("feature", [2.5, NAN]),
            "p_value": ("feature", [0.0123, NAN]),
            "p_value_adjusted": ("feature", [0.0246, NAN]),
            "reason": ("feature", ["", "no error"]),
            "largest": ("feature", [2.0, 3.0]),
            "size": ("feature", [1.5, 3.0], {"long_name": "root mean square"}),
            "size_ci": (("ci_bound", "feature"), [[1.0, 2.0], [2.0, 4.0]], {"ci_prob": 0.95}),
            "difference": (dims, difference),
            "difference_se": (dims, difference / 10),
            "difference_ci": ((*dims, "ci_bound"), ends, said),
            "difference_band": ((*dims, "ci_bound"), 2 * ends, said | {"kind": "simultaneous"}),
        },
        {"feature": ["a", "b"], "grid_value": (dims, [[0.0, 1.0], [5.0, NAN]])},
        {
            "test": "a test",
            "adjust": "holm",
            "null": "nothing",
            "n_rows": 30,
            "source": "rows",
            "output_name": "price",
            "bin_rule": "EqualWidthBins",
            "bin_parameters": "n_bins=2",
        },
    )


def test_a_line_a_feature(tested):
    table = glance(tested, 0.9)
    assert table["term"].tolist() == ["a", "b"]
    assert list(table) == [
        *("term", "statistic", "p_value", "p_value_adjusted", "largest", "size"),
        *("size_low", "size_high", "reason"),
    ]
    assert table["size_low"].tolist() == [1, 2]
    assert table["size_high"].tolist() == [2, 4]
    assert table["reason"].tolist() == ["", "no error"]


def test_reasons_are_left_out_where_there_are_none(tested):
    tested["reason"][:] = ""
    assert "reason" not in glance(tested, 0.9)
    bare = tested.drop_vars(["reason", "size_ci"])
    assert not {"reason", "size_low", "size_high"} & set(glance(bare, 0.9))


def test_a_line_a_point_that_is_known(tested):
    table = tidy(tested, 0.9)
    assert table["term"].tolist() == ["a", "a", "b"]
    assert table["x"].tolist() == [0, 1, 5]
    assert table["estimate"].tolist() == [1, 2, 3]
    assert table["std_error"].tolist() == [0.1, 0.2, 0.3]
    assert table["conf_low"].tolist() == [0, 1, 2]
    assert table["conf_high"].tolist() == [3, 4, 5]
    assert table["band_low"].tolist() == [0, 2, 4]
    assert table["band_high"].tolist() == [6, 8, 10]
    assert table.index.tolist() == [0, 1, 2]


def test_tests_without_differences_have_a_line_a_feature(tested):
    bare = tested.drop_vars(["difference"])
    assert tidy(bare, 0.9).equals(glance(bare, 0.9))


class TestSummary:
    """The table that is printed."""

    def test_facts(self, tested):
        text = str(summary(tested, None, 0.9))
        assert "Test on price: a test" in text
        assert "rows (model as given)" in text
        for part in ("P, adjusted (holm)", "0.012", "0.025", "EqualWidthBins"):
            assert part in text
        flat = " ".join([*text.split(), *summary(tested, None, 0.9).notes])
        assert "Bins: EqualWidthBins(n_bins=2)." in flat
        assert "size: root mean square; low, high: its 95 % interval." in flat
        assert "difference_ci: 0.9, pointwise." in flat
        assert "difference_band: 0.9, simultaneous." in flat
        assert "Null hypothesis: nothing." in flat
        assert "b: no error." in flat
        assert "a: ." not in flat

    def test_rules_of_both(self, tested):
        tested.attrs["bin_rule_b"] = "OptimalBins"
        assert "EqualWidthBins and OptimalBins" in " ".join(str(summary(tested, None, 0.9)).split())
        tested.attrs["bin_rule_b"] = "EqualWidthBins"
        assert "EqualWidthBins and" not in " ".join(str(summary(tested, None, 0.9)).split())

    def test_without_sizes(self, tested):
        without = tested.drop_vars(["size", "size_ci", "difference_ci"])
        text = " ".join(str(summary(without, None, 0.9)).split())
        assert "size:" not in text
        assert "difference_ci:" not in text
        no_interval = " ".join(str(summary(tested.drop_vars("size_ci"), None, 0.9)).split())
        assert "size: root mean square." in no_interval
