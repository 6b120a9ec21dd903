"""Results of statsmodels: the regressors of the fit are the features."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.special import softmax

from rhale_stats.arrays.moments import FloatArray
from rhale_stats.models.adapters.adapter import ModelColumns
from rhale_stats.models.offsets import (
    LINEAR,
    columns_of_fit,
    predict_of,
    prediction_function,
    slope_of,
)


def columns(results: Any) -> ModelColumns | None:
    """Columns that the right side of the formula names, or those of the table of the fit.

    Integers are numbers in a formula, unless they are in ``C(...)``. None if no names are known.
    """
    names = columns_of_fit(results)
    if names is not None:
        return ModelColumns(list(map(str, names)))
    formula = getattr(getattr(results, "model", None), "formula", None)
    if not isinstance(formula, str) or "~" not in formula:
        return None
    # Operators of formulas that Python does not have, or binds otherwise.
    right = re.sub(r"[|:~]", "+", formula.split("~", 1)[1]).strip()
    try:
        tree = ast.parse(right, mode="eval")
    except SyntaxError:
        return None
    levels = [
        name
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "C" and node.args
        for name in _names(node.args[0])
    ]
    return ModelColumns(_names(tree), levels, discrete=True)


def line_of(results: Any, data: Any) -> Callable[[Any], Any] | None:
    """Linear predictor of (generalised) linear models, as they predict; None of other models.

    ``data`` is the table that is asked of.
    """
    kind = type(getattr(results, "model", None)).__name__
    if kind not in (*LINEAR, "MNLogit"):
        return None
    linear = {} if slope_of(results.model) is None else {"which": "linear"}
    return predict_of(results, data, partial(prediction_function(results), **linear))[0]


def through_link(model: Any, line: FloatArray, moved: FloatArray) -> FloatArray:
    """Derivatives of the outputs, (row, output), from those of linear predictors."""
    if type(model).__name__ == "MNLogit":
        share = softmax(line, axis=1)
        return np.asarray(share * (moved - np.sum(share * moved, axis=1, keepdims=True)))
    slope = slope_of(model)
    return moved if slope is None else moved * slope(line)


def classes(results: Any) -> list[str] | None:
    """Names of the categories whose probabilities the model predicts, in the order of its outputs.

    Of ``MNLogit`` and ``OrderedModel``; None of other models.
    """
    model = getattr(results, "model", None)
    names = getattr(model, "_ynames_map", None) or getattr(model, "labels", None)
    if names is None or type(model).__name__ not in ("MNLogit", "OrderedModel"):
        return None
    ordered = [names[key] for key in sorted(names)] if isinstance(names, dict) else list(names)
    return [str(name) for name in ordered]


def _names(tree: ast.AST) -> list[str]:
    """Names of variables, and what Q("...") quotes."""
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            names.append(node.id)
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Q":
            names += [
                str(argument.value) for argument in node.args if isinstance(argument, ast.Constant)
            ]
    return list(dict.fromkeys(names))
