"""Additive models of pyGAM answer with their mean, classifiers with a probability."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import rhale_stats as rs

pygam = pytest.importorskip("pygam")
X = np.random.default_rng(0).uniform(-1, 1, (300, 2))


# pyGAM inverts booleans by ~, which Python is about to drop.
@pytest.mark.filterwarnings("ignore:Bitwise inversion:DeprecationWarning")
@pytest.mark.parametrize("of", ["LinearGAM", "LogisticGAM"])
def test_means_and_probabilities(of):
    level = np.sin(3 * X[:, 0]) + X[:, 1]
    y = level if of == "LinearGAM" else (level > 0).astype(float)
    model = getattr(pygam, of)(pygam.s(0) + pygam.l(1)).fit(X, y)
    table = pd.DataFrame(X, columns=["a", "b"])
    local = rs.local_effects(model, table)
    inner = np.abs(X[:, 0]) < 0.9
    step = np.array([1e-5, 0])
    slope = (model.predict_mu(X + step) - model.predict_mu(X - step)) / 2e-5
    found = local["local_effect"].sel(feature="a").values
    np.testing.assert_allclose(found[inner], slope[inner], atol=1e-4 * np.abs(slope).max())
