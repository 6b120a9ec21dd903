"""Boosters of xgboost and lightgbm in their native form: columns by the names of the fit."""

from __future__ import annotations

import re
from typing import Any

from rhale_stats.models.adapters.adapter import Adapter, in_order
from rhale_stats.models.forms import in_numpy_types, names_with_spaces


def xgboost(booster: Any) -> Adapter:
    """A Booster of xgboost: its objective's answer, up to the best iteration of early stopping."""
    import xgboost as library

    names = booster.feature_names
    best = booster.attr("best_iteration")
    last = (0, 0) if best is None else (0, int(best) + 1)

    def predict(rows: Any) -> Any:
        rows = rows if names is None else in_order(rows, names, "xgboost")
        table = library.DMatrix(rows, feature_names=names, enable_categorical=True)
        return booster.predict(table, iteration_range=last)

    return Adapter(predict, features=names)


def lightgbm(booster: Any) -> Adapter:
    """A Booster of lightgbm, which itself takes columns in whatever order they come."""
    names = booster.feature_name()
    numbered = all(re.fullmatch(r"Column_\d+", name) for name in names)

    def predict(rows: Any) -> Any:
        if not numbered and hasattr(rows, "columns"):
            rows = in_order(rows, names_with_spaces(names, rows.columns), "lightgbm")
        return booster.predict(in_numpy_types(rows))

    return Adapter(predict)
