"""An effect of features of every kind, for tests of tables and pages."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd

import rhale_stats as rs

N = 60
LEVELS = ["u", "v", "w"]


def _model(X):
    return X["a"] ** 2 + X["a"] * X["k"] + (X["l"] == "v") * X["k"] + 3 * X["m"]


@cache
def mixed_effect():
    """With standard errors: of a curve, of a constant feature, of no effect, and of levels.

    Levels ``l`` have no order of their own; both steps between the levels ``m`` are 3.
    """
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "a": rng.uniform(0, 3, N),
            "c": np.ones(N),
            "z": rng.uniform(0, 1, N),
            "l": rng.choice(LEVELS, N),
            "m": rng.choice([1.0, 2.0, 3.0], N),
            "k": rng.uniform(0, 1, N),
        }
    )
    effect = rs.ale(
        _model, X, features=["a", "c", "z", "l", "m"], categorical="m",
        order={"l": LEVELS}, bins=rs.EqualWidthBins(3),
    )  # fmt: skip
    return rs.std_error(effect)
