"""Profiles as frames: every column against the Dataset."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from rhale_stats.profiles import tables

CURVE = np.array([-1.0, 0.5, 2.0, 0.25, -0.75])
SE = np.array([0.1, 0.2, 0.4, 0.05, 0.08])
DEGREES = np.array([9, 9, 9, 8, 8])


def expected(level=0.95):
    """Lines of the two features that have a curve."""
    half = stats.t.ppf((1 + level) / 2, DEGREES) * SE
    return pd.DataFrame(
        {
            "term": ["a"] * 3 + ["k"] * 2,
            "x": [1.0, 2.5, 4.0, 0.0, 1.0],
            "level": ["", "", "", "u", "v"],
            "weight_share": [0.25, 0.5, 0.25, 0.4, 0.6],
            "estimate": CURVE,
            "std_error": SE,
            "conf_low": CURVE - half,
            "conf_high": CURVE + half,
            "spread": 10 * SE,
        }
    )


@pytest.mark.parametrize("level", [0.95, 0.5])
def test_a_line_for_every_point(known, level):
    pd.testing.assert_frame_equal(tables.tidy(known, level), expected(level))
    plain = expected().drop(columns="level")
    pd.testing.assert_frame_equal(tables.tidy(known.drop_vars("level"), 0.95), plain)
    bare = known.drop_vars(["curve_se", "curve_cov"])
    errors = ["std_error", "conf_low", "conf_high"]
    pd.testing.assert_frame_equal(tables.tidy(bare, 0.95), expected().drop(columns=errors))


def test_rows_at_every_point_and_tests_of_the_model(known):
    counts = np.array([[2, 5, 3], [4, 5, 0], [0, 0, 0]])
    known["n_obs"] = (("feature", "grid"), counts)
    known["n_effective"] = (("feature", "grid"), counts.astype(float))
    known["curve_se"].attrs["source"] = "rows and parameters"
    found = tables.tidy(known, 0.95)
    degrees = np.array([1, 4, 2, 3, 4])
    assert found["n_obs"].tolist() == [2, 5, 3, 4, 5]
    np.testing.assert_allclose(found["statistic"], CURVE / SE)
    np.testing.assert_allclose(found["p_value"], 2 * stats.t.sf(np.abs(CURVE / SE), degrees))
    np.testing.assert_allclose(found["conf_low"], CURVE - stats.t.ppf(0.975, degrees) * SE)
    names = [*expected().columns]
    names[3:3] = ["n_obs"]
    names[7:7] = ["statistic", "p_value"]
    assert found.columns.tolist() == names
    assert tables.glance(known, 0.95)["n_obs"].tolist() == [10, 9, 0]


def test_a_line_for_every_feature(known):
    whole = pd.DataFrame(
        {
            "term": ["a", "k", "one"],
            "kind": ["continuous", "nominal", "constant"],
            "n_grid": [3, 2, 0],
            "n_obs": [10, 9, 10],
            "importance": [1.5, 3.0, np.nan],
            "heterogeneity_output": [0.9, 0.6, np.nan],
            "curve_min": [-1.0, -0.75, np.nan],
            "curve_max": [2.0, 0.25, np.nan],
        }
    )
    pd.testing.assert_frame_equal(tables.glance(known, 0.95), whole)
    turned = known.transpose("grid", "grid_other", "feature")
    pd.testing.assert_frame_equal(tables.glance(turned, 0.95), whole)
