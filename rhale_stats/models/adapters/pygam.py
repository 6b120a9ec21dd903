"""Generalized additive models of pyGAM: their mean, of classifiers the probability."""

from __future__ import annotations

from typing import Any

from rhale_stats.models.adapters.adapter import Adapter, numbers


def adapter(model: Any) -> Adapter:
    """The mean as a function of rows; predict of a LogisticGAM answers with classes."""
    return Adapter(lambda rows: model.predict_mu(numbers(rows, "pygam")))
