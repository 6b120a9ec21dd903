"""Averages and hypotheses beside marginaleffects, where that is installed."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from numpy.testing import assert_allclose

import rhale_stats as rs

# Contrast and comparison here, and what asks marginaleffects for the same.
COMPARISONS = [
    ("x", "sd", "difference", {"x": "sd"}, "difference", None),
    ("x", "iqr", "difference", {"x": "iqr"}, "difference", None),
    ("x", "minmax", "ratio", {"x": "minmax"}, "ratioavg", None),
    ("x", (0, 1), "log_ratio", {"x": [0.0, 1.0]}, "lnratioavg", None),
    ("x", (0, 1), "ratio", {"x": [0.0, 1.0]}, "ratioavg", "g"),
    ("g", "reference", "log_odds_ratio", {"g": "reference"}, "lnoravg", None),
    ("g", "pairwise", "difference", {"g": "pairwise"}, "difference", None),
    ("g", "sequential", "ratio", {"g": "sequential"}, "ratioavg", None),
]


@pytest.fixture(scope="module")
def peer():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reason = "marginaleffects is not installed: extra peers"
        return pytest.importorskip("marginaleffects", reason=reason)


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"x": rng.normal(size=150), "z": rng.uniform(1, 3, 150)})
    data["g"] = pd.Categorical(rng.choice(list("abc"), 150))
    z = data["x"] - 0.5 * data["z"] + (data["g"] == "b")
    data["y"] = (rng.uniform(size=150) < 1 / (1 + np.exp(-z))).astype(int)
    return smf.logit("y ~ x * z + g", data).fit(disp=0, tol=1e-12), data


def columns(table):
    """Estimates and standard errors of a result of marginaleffects, by contrast and level."""
    frame = getattr(table, "data", table)
    order = [name for name in ("g", "contrast") if name in frame.columns]
    frame = frame.sort(order)
    return (np.array(frame[name], dtype=float) for name in ("estimate", "std_error"))


@pytest.mark.parametrize(
    ("feature", "contrast", "comparison", "theirs", "name", "by"), COMPARISONS, ids=str
)
@pytest.mark.filterwarnings("ignore")
def test_comparisons_are_theirs(peer, fitted, feature, contrast, comparison, theirs, name, by):
    fit, data = fitted
    options = {} if by is None else {"by": by}
    table = peer.avg_comparisons(fit, variables=theirs, comparison=name, **options)
    estimate, error = columns(table)
    found = rs.averages(
        *(fit, data, feature),
        contrasts=contrast,
        comparison=comparison,
        uncertainty="parameters",
        by=by,
    )
    lines = rs.tidy(found)
    lines = lines[lines["term"] != "prediction"].sort_values("contrast" if by is None else "by")
    assert_allclose(lines["estimate"], estimate, rtol=1e-6)
    assert_allclose(lines["std_error"], error, rtol=1e-4)


@pytest.mark.parametrize("contrast", ["eyex", "eydx"])
@pytest.mark.filterwarnings("ignore")
def test_elasticities_are_theirs(peer, fitted, contrast):
    fit, data = fitted
    # Its own step leaves 1.5e-4 in the error.
    slopes = peer.avg_slopes(fit, variables="x", slope=contrast, eps_vcov=1e-4)
    estimate, error = columns(slopes)
    found = rs.averages(fit, data, "x", contrasts=contrast, uncertainty="parameters")
    assert_allclose(found["average"][1], estimate[0], rtol=1e-6)
    assert_allclose(found["average_se"][1], error[0], rtol=1e-4)


@pytest.mark.filterwarnings("ignore")
def test_hypotheses_are_theirs(peer, fitted):
    """Their numbers of terms begin at 0."""
    fit, data = fitted
    found = rs.averages(fit, data, "g", contrasts="pairwise", uncertainty="parameters")
    found = found.isel(term=slice(1, None))
    for ours, theirs in (("b2 = 2 * b1", "b1 = 2 * b0"), ("b1 / b3", "b0 / b2 = 0")):
        table = peer.avg_comparisons(fit, variables={"g": "pairwise"}, hypothesis=theirs)
        estimate, error = columns(table)
        line = rs.tidy(rs.hypotheses(found, ours)).iloc[0]
        assert_allclose([line["estimate"]], estimate, rtol=1e-6)
        assert_allclose([line["std_error"]], error, rtol=1e-4)


@pytest.mark.filterwarnings("ignore")
def test_equivalence_is_theirs(peer, fitted):
    fit, data = fitted
    table = peer.avg_comparisons(fit, variables={"g": "reference"}, equivalence=[-0.1, 0.3])
    frame = table.data.sort("contrast") if hasattr(table, "data") else table.sort("contrast")
    found = rs.averages(fit, data, "g", uncertainty="parameters").isel(term=slice(1, None))
    ours = rs.hypotheses(found, margin=(-0.1, 0.3))["p_equivalence"]
    assert_allclose(ours, np.array(frame["p_value_equiv"], dtype=float), rtol=1e-4)


@pytest.mark.filterwarnings("ignore")
def test_cells_of_two_columns_are_theirs(peer, fitted):
    fit, data = fitted
    data = data.assign(h=np.where(data["x"] > 0, "u", "v"))
    table = peer.avg_predictions(fit, newdata=data, by=["g", "h"])
    frame = getattr(table, "data", table).sort(["g", "h"])
    found = rs.tidy(rs.averages(fit, data, "x", by=["g", "h"], uncertainty="parameters"))
    lines = found[found["term"] == "prediction"]
    assert_allclose(lines["estimate"], np.array(frame["estimate"], dtype=float), rtol=1e-6)
    assert_allclose(lines["std_error"], np.array(frame["std_error"], dtype=float), rtol=1e-4)


@pytest.mark.parametrize("grid", ["mean", "balanced"])
@pytest.mark.filterwarnings("ignore")
def test_effects_on_grids_are_theirs(peer, fitted, grid):
    fit, _ = fitted
    for theirs, features in (
        # With their own step the error of a slope is 3e-4 from its limit.
        (peer.avg_slopes(fit, variables="x", newdata=grid, eps_vcov=1e-4), {"x": "slope"}),
        (peer.avg_comparisons(fit, variables={"g": "pairwise"}, newdata=grid), {"g": "pairwise"}),
    ):
        found = rs.tidy(rs.averages(fit, grid, features))
        lines = found[found["term"] != "prediction"].sort_values("contrast")
        estimate, error = columns(theirs)
        assert_allclose(lines["estimate"], estimate, rtol=1e-6)
        assert_allclose(lines["std_error"], error, rtol=1e-4)
