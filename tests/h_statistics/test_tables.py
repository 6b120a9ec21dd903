"""H-statistics as frames: columns, intervals, and shares of more than the whole."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from rhale_stats.h_statistics import tables

NAN = np.nan


def ends(value, level):
    """The interval of a statistic whose standard error is a tenth, on the log scale."""
    half = 0.1 * stats.t.ppf((1 + level) / 2, 7.5)
    return value * np.exp([-half, half])


def lines(terms, kind, h2, h, level):
    """Lines of `tidy`."""
    columns = {"term": terms, "kind": kind, "h2": h2, "h": h}
    for stem, values in (("h2", h2), ("h", h)):
        low, high = np.transpose([ends(value, level) for value in values])
        errors = 0.1 * np.asarray(values)
        columns |= {f"{stem}_std_error": errors, f"{stem}_conf_low": low, f"{stem}_conf_high": high}
    return pd.DataFrame(columns)


@pytest.mark.parametrize("level", [0.95, 0.8])
def test_lines_of_features_and_of_pairs(known, level):
    expected = [
        lines(["a", "b", "c"], "overall", [0.2, 0.4, 0.1], [1.0, 2.0, 3.0], level),
        lines(["a:b", "a:c", "b:c"], "pair", [0.3, 0.6, 0.1], [1.5, 0.5, 2.5], level),
    ]
    whole = pd.concat(expected, ignore_index=True)
    pd.testing.assert_frame_equal(tables.tidy(known, level), whole)
    turned = known.transpose("feature_other", "feature")
    pd.testing.assert_frame_equal(tables.tidy(turned, level), whole)
    none = known.drop_vars([name for name in known if str(name).endswith("_se")])
    pd.testing.assert_frame_equal(tables.tidy(none), whole[["term", "kind", "h2", "h"]])
    some = known.drop_vars([name for name in known if "pairwise" in str(name)])
    pd.testing.assert_frame_equal(tables.tidy(some, level), expected[0])


def test_one_line_for_all(known):
    low, high = ends(0.5, 0.95)
    size = ends(2.0, 0.95)
    expected = {
        "h2": 0.5,
        "h": 2.0,
        "h2_std_error": 0.05,
        "h2_conf_low": low,
        "h2_conf_high": high,
        "h_std_error": 0.2,
        "h_conf_low": size[0],
        "h_conf_high": size[1],
        "kind": "pdp",
        "n_features": 3,
        "n_rows": 12,
        "n_rows_total": 20,
        "n_model_calls": 5,
        "n_model_rows": 888,
    }
    pd.testing.assert_frame_equal(tables.glance(known), pd.DataFrame([expected]))
    known["h2"][...] = 1.25
    expected |= dict.fromkeys(["h2", "h2_std_error", "h2_conf_low", "h2_conf_high"], NAN)
    expected["reason"] = (
        "the interactions vary more than the output: main effects offset part of them"
    )
    pd.testing.assert_frame_equal(tables.glance(known), pd.DataFrame([expected]))


def test_intervals_of_the_result_are_taken_at_their_level(known):
    kept = tables.with_intervals(known, 0.9)
    kept["h2_overall_ci"][:] = 77.0
    assert (tables.tidy(kept, 0.9)["h2_conf_low"][:3] == 77).all()
    assert tables.with_intervals(kept, 0.9) is kept
    np.testing.assert_allclose(tables.tidy(kept, 0.8)["h2_conf_low"][0], ends(0.2, 0.8)[0])


def test_a_share_of_more_than_the_whole_is_none(known):
    known["h2_overall"][1] = 1.5
    known["h2_pairwise"][0, 2] = known["h2_pairwise"][2, 0] = 2.0
    # The whole but for rounding is a share.
    known["h2_overall"][0] = 1 + 1e-12
    found = tables.tidy(known)
    own = "its interactions vary more than the output: main effects offset part of them"
    joint = "its joint effect varies less than its interaction: main effects offset part of it"
    assert found["reason"].tolist() == ["", own, "", "", joint, ""]
    gone = found["reason"] != ""
    columns = [name for name in found if str(name).startswith("h2")]
    assert found.loc[gone, columns].isna().all(axis=None)
    assert found.loc[~gone].notna().all(axis=None)
    assert found.loc[gone].drop(columns=columns).notna().all(axis=None)
    np.testing.assert_array_equal(tables.share(np.array([0.0, 1.0, 1.1])), [0.0, 1.0, NAN])


def test_lines_of_differences(difference):
    expected = pd.DataFrame(
        {
            "term": ["all"] * 2 + ["a", "b", "c"] * 2 + ["a:b", "a:c", "b:c"] * 2,
            "kind": ["all"] * 2 + ["overall"] * 6 + ["pair"] * 6,
            "statistic": ["h2", "h", *["h2"] * 3, *["h"] * 3, *["h2"] * 3, *["h"] * 3],
            "estimate": np.arange(1, 15) / 10,
        }
    )
    value = expected["estimate"]
    expected["std_error"] = value / 10
    expected["p_value"], expected["p_value_adjusted"] = (1.5 - value) / 10, (1.5 - value) / 5
    expected["conf_low"], expected["conf_high"] = value - 0.01, value + 0.02
    pd.testing.assert_frame_equal(tables.tidy_difference(difference, 0.95), expected)
    few = difference.drop_vars([name for name in difference if "pairwise" in str(name)])
    pd.testing.assert_frame_equal(tables.tidy_difference(few, 0.95), expected[:8])
