"""Explanations that many tests read."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest

import rhale_stats as rs

EVIL = '<script>alert("1")</script>'


def mixed(X):
    """A line, a split by `g`, a step and levels; `noise` does nothing."""
    return (
        2 * X["line"]
        + np.where(X["g"] > 0, 5, -5) * X["turned"]
        + (X["city"] == "b") * 1.5
        + X["month"] % 4
    )


def table(n=800, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "line": rng.exponential(size=n),
            "turned": rng.uniform(-1, 1, n),
            "g": rng.integers(0, 2, n),
            "city": rng.choice(["a", "b", "c"], n),
            "month": rng.integers(1, 9, n),
            "noise": rng.normal(size=n),
        }
    )


@pytest.fixture(scope="session")
def explained():
    """An explanation with outcomes, groups of rows, levels and a flat feature."""
    return _of_mixed()


@cache  # The fixture of each folder is made anew.
def _of_mixed():
    X = table()
    X.attrs = {"labels": {"line": "The line"}, "units": {"line": "cm"}, "output_units": "kg"}
    y = mixed(X) + np.random.default_rng(1).normal(size=len(X))
    return rs.explain(
        mixed, X, y.rename("weight"), held_out=True, budget=None, rng=0, progress=False
    )


@pytest.fixture(scope="session")
def explained_many():
    """An explanation of 40 features, of which a report has 30 and a notebook 14."""
    X = np.random.default_rng(0).normal(size=(100, 40))
    return rs.explain(lambda X: X @ np.arange(40.0), X, progress=False, budget=None)
