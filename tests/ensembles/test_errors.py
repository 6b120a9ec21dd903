"""Standard errors of several models: their parts, their words, covariances."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import rhale_stats as rs
from tests.ensembles.made import FOLDS, REFITS, ensemble

CURVES = np.random.default_rng(0).standard_normal((9, 5))


def test_variables_say_what_they_are():
    found = rs.std_error(ensemble(CURVES, se_rows=0.5))
    source, target = "draws of the parameters", "effect of the model over rows like these"
    name = found["curve_se"].attrs["long_name"].removeprefix("standard error of the ")
    units = found["curve_se"].attrs["units"]
    facts = {"units": units, "target": target}
    for ending, words, of in (
        ("", "", f"{source} and rows"),
        ("_rows", ", by the rows", "rows"),
        ("_model", ", by the model", source),
    ):
        about = {"long_name": f"standard error of the {name}{words}", **facts, "source": of}
        assert found[f"curve_se{ending}"].attrs == about
        assert found[f"curve_se{ending}"].dims == ("feature", "grid")
    # Nothing is known of the rows of other estimates, and then nothing is divided.
    assert found["effect_se"].attrs["source"] == source
    assert "effect_se_rows" not in found
    assert "effect_se_model" not in found
    assert "curve_df" not in found
    folds = rs.std_error(ensemble(CURVES, **FOLDS))
    assert_array_equal(folds["importance_df"], [8])
    assert (
        folds["importance_df"].attrs["long_name"].startswith("degrees of freedom of the standard")
    )


def test_covariances_are_labelled():
    estimate = ensemble(CURVES, CURVES**2, se_rows=1.0, **REFITS)
    found = rs.vcov(estimate, "x", of="effect")
    assert found.dims == ("grid", "grid_other")
    assert found.name == "covariance"
    assert_allclose(found, np.cov(CURVES.T**2))
    assert_array_equal(found["grid_value"], np.linspace(0, 1, 5))
    assert_array_equal(found["grid_other"], np.arange(5))
    assert found.attrs["feature"] == "x"
    assert found.attrs["source"] == "refits"
    profile = estimate.drop_vars(["effect", "heterogeneity"])
    with pytest.raises(ValueError, match="of must be 'curve' for profiles .*; got 'effect'"):
        rs.vcov(profile, "x", of="effect")


def test_what_is_refused():
    made = ensemble(CURVES)
    for name in ("local", "groups", "model"):
        given = {name: np.ones(3)} | ({"X": np.ones((3, 1))} if name == "model" else {})
        with pytest.raises((ValueError, TypeError)):
            rs.std_error(made, **given)
