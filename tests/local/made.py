"""Local effects of twelve rows, with every kind of weights."""

from __future__ import annotations

import numpy as np

from tests.helpers import local_of

RNG = np.random.default_rng(0)
X = RNG.normal(size=(12, 2))
G = RNG.normal(size=(12, 2))
WEIGHT = np.array([0.0, 2, 4, 0, 1, 3, 2, 4, 1, 1, 2, 3])
KINDS = ["none", "frequency", "precision", "ones", "equal"]


def weighted(kind, x=X, g=G):
    """Local effects with such weights; those of two rows are 0, unless all are 1."""
    if kind == "none":
        return local_of(x, g)
    weights = {"ones": np.ones(len(x)), "equal": np.where(WEIGHT > 0, 5.0, 0)}.get(kind, WEIGHT)
    return local_of(x, g, weights=weights, weight_kind="frequency" if kind == "frequency" else
                    "precision")  # fmt: skip
