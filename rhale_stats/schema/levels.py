"""Features that have levels in place of an axis."""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from rhale_stats.arguments.times import as_days

if TYPE_CHECKING:
    from rhale_stats.schema.feature_result import Result

# A kind of feature whose levels have no order of their own.
NOMINAL = "nominal"
# Kinds of features that have levels in place of an axis; ``edge`` is then a level, ``bin`` the step
# from one to the next.
ORDINAL = "ordinal"
CATEGORICAL = (NOMINAL, ORDINAL, "boolean")
# The level of rows without a value, where they are to have one.
MISSING_LEVEL = "missing"


def is_categorical(row: Result) -> bool:
    """Whether one feature, of effects or local effects, has levels in place of an axis."""
    return "feature_kind" in row.coords and str(row.variables["feature_kind"].values) in CATEGORICAL


def categorical_features(dataset: Result) -> list[str]:
    """Features that have levels in place of an axis."""
    if "feature_kind" not in dataset.coords:
        return []
    names, kinds = [
        np.atleast_1d(dataset.variables[name].values) for name in ("feature", "feature_kind")
    ]
    return [str(name) for name, kind in zip(names, kinds, strict=True) if str(kind) in CATEGORICAL]


def refuse_categorical(dataset: Result, what: str) -> None:
    """Raise ``ValueError`` where an estimate along an axis is asked of features with levels."""
    names = categorical_features(dataset)
    if names:
        raise ValueError(
            f"{what} needs features with an axis; got {', '.join(map(repr, names))} with levels. "
            f"Leave them out: .sel(feature=[...]) of the others. Effects of levels are made by "
            f"ale or ale_from_local."
        )


def level_names(row: Result) -> list[str]:
    """Levels of one feature, in their order."""
    return [str(name) for name in row["level"].values[: int(row["n_levels"])]]


def level_text(value: object) -> str:
    """A level as text: whole numbers without a point, durations as days, dates without midnight."""
    if isinstance(value, timedelta | np.timedelta64):
        value = as_days([value])[0]
    if isinstance(value, date | np.datetime64):
        moment = pd.Timestamp(value)
        return str(moment.date() if moment == moment.normalize() else moment)
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)
