"""Printed surfaces: t and P where the standard errors hold the parameters of a model."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from scipy import stats

import rhale_stats as rs


@pytest.fixture(scope="module", name="surfaces")
def _surfaces():
    rng = np.random.default_rng(9)
    X = pd.DataFrame(rng.uniform(-1, 1, (200, 2)), columns=["a", "b"])
    y = rng.poisson(np.exp(X["a"] + X["a"] * X["b"]))
    model = smf.poisson("y ~ a * b", X.assign(y=y)).fit(disp=0)
    surface = rs.ale2(model, X, ("a", "b"), bins=rs.EqualWidthBins(2))
    return rs.std_error(surface), rs.std_error(surface, model=model, X=X)


def test_corners_are_tested_with_the_model_only(surfaces):
    rows, both = surfaces
    for text in (rs.summary(rows).as_text(), repr(rs.show(rows))):
        assert "model as given" in text
        assert " P " not in text
    text = rs.summary(both).as_text()
    assert "model as given" not in text
    assert "treat the cells as fixed" in text
    t = both["surface"] / both["surface_se"]
    p = 2 * stats.t.sf(np.abs(t), both["surface_df"])
    lines = [line.split() for line in text.splitlines() if line.startswith("a = ")]
    # "a = -0.9884, b = 0.02 estimate ..."
    printed = np.array([[float(one) for one in line[6:]] for line in lines])
    order = np.argsort(t.values.ravel())
    np.testing.assert_allclose(sorted(printed[:, 2]), t.values.ravel()[order], rtol=1e-3, atol=6e-4)
    np.testing.assert_allclose(printed[np.argsort(printed[:, 2]), 3], p.ravel()[order], atol=6e-4)
    page = repr(rs.show(both))
    assert "Uncertainty: rows and parameters" in page
    first = next(line.split() for line in page.splitlines() if line.startswith("a = "))
    # The page starts with the corner farthest from 0.
    at = np.unravel_index(int(np.nanargmax(np.abs(both["surface"].values))), t.shape)
    assert first[-2:] == [f"{float(t.values[at]):.3f}", f"{p[at]:.3f}"]
