"""Which part of an interval, and of a variance, is due to the rows."""

import numpy as np
import pytest
import xarray as xr
from numpy.testing import assert_allclose
from scipy import stats

from rhale_stats.inference.notes import is_of_both, parts_note, with_rows_alone

BOTH = "rows and parameters"


def result(source=BOTH, of_interval=BOTH, rows=(0.3, 0.0, np.nan), model=(0.4, 0.5, np.nan)):
    """Two estimates with intervals by Student's t of 7 degrees, and one that is not known."""
    value, rows, model = np.array([1.0, -2.0, np.nan]), np.array(rows), np.array(model)
    se = np.hypot(rows, model)
    half = stats.t.ppf(0.95, 7) * se
    ends = np.column_stack([value - half, value + half])
    return xr.Dataset(
        {
            "effect": ("bin", value),
            "effect_se": ("bin", se, {"source": source}),
            "effect_se_rows": ("bin", rows, {"source": "rows in 9 groups"}),
            "effect_se_model": ("bin", model, {"source": "parameters"}),
            # Another order of dimensions than that of estimates.
            "effect_ci": (("ci_bound", "bin"), ends.T, {"source": of_interval, "ci_prob": 0.9}),
        }
    )


def test_the_interval_of_the_rows_has_the_same_quantile():
    found = with_rows_alone(result())["effect_ci_rows"]
    half = stats.t.ppf(0.95, 7) * np.array([0.3, 0.0, np.nan])
    value = np.array([1.0, -2.0, np.nan])
    assert_allclose(found.transpose("bin", "ci_bound"), np.c_[value - half, value + half])
    assert found.attrs == {"source": "rows in 9 groups", "ci_prob": 0.9}


@pytest.mark.parametrize(
    ("source", "of_interval"),
    [("rows", "rows"), ("parameters", "parameters"), (BOTH, "rows"), (BOTH, "refit")],
)
def test_intervals_of_one_source_or_of_others_have_no_parts(source, of_interval):
    known = result(source, of_interval)
    assert with_rows_alone(known) is known


def test_intervals_without_parts_of_their_errors_have_none():
    for name in ("effect_se_rows", "effect_ci"):
        known = result().drop_vars(name)
        assert with_rows_alone(known) is known


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (BOTH, True),
        ("rows in 40 groups and parameters", True),
        ("rows and refits", True),
        ("rows", False),
        ("parameters", False),
        ("refit", False),
    ],
)
def test_what_is_of_both(source, expected):
    assert is_of_both(source) is expected


class TestNote:
    """The share of the model in the variance, in a sentence."""

    def test_shares_of_all_estimates(self):
        # .4^2 of .5^2 is 64 %; the second has nothing of the rows.
        text = "Of the variance of effects, 64 to 100 % is due to the parameters and the rest to "
        assert parts_note(result(), "effect", "effects") == f"{text}the rows."

    def test_one_share_is_no_range_and_models_are_not_parameters(self):
        one = result("rows and refits", rows=(1.0, 1.0, 1.0), model=(2.0, 2.0, 2.0))
        text = "Of the variance of X, 80 % is due to the model and the rest to the rows."
        assert parts_note(one, "effect", "X") == text

    def test_a_covariance_of_both_is_mentioned(self):
        known = result()
        known["effect_se"] = known["effect_se"].copy(data=[0.6, 0.5, np.nan])
        known["effect_se"].attrs["source"] = BOTH
        assert parts_note(known, "effect", "X").endswith("the rest to the rows, covariance apart.")

    @pytest.mark.parametrize("source", ["rows", "parameters"])
    def test_there_is_none_without_both(self, source):
        assert parts_note(result(source), "effect", "X") == ""
        assert parts_note(result().drop_vars("effect_se_rows"), "effect", "X") == ""

    def test_there_is_none_without_a_variance(self):
        none = (0.0, 0.0, np.nan)
        assert parts_note(result(rows=none, model=none), "effect", "X") == ""
