"""Results of statsmodels: the regressors of the fit are the features."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import softmax

from rhale_stats.arrays import local_effects as kernel
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.models.adapters.adapter import Gradient, Known
from rhale_stats.models.offsets import columns_of_fit, predict_of
from rhale_stats.models.versions import LINEAR, Line, slope_of


def columns(results: Any) -> Known | None:
    """Columns that the right side of the formula names, or those of the table of the fit.

    Integers are numbers in a formula, unless they are in ``C(...)``. None if no names are known.
    """
    names = columns_of_fit(results)
    if names is not None:
        return Known(list(map(str, names)))
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
    return Known(_names(tree), levels, discrete=True)


def line_of(results: Any, data: Any) -> Callable[[Any], Any] | None:
    """Linear predictor of (generalised) linear models as they predict; None of other models.

    ``data`` is the table that is asked of.
    """
    other = copy(getattr(results, "_results", results))
    if type(getattr(other, "model", None)).__name__ not in (*LINEAR, "MNLogit"):
        return None
    other.model = Line(other.model)
    return predict_of(results, data, other.predict)[0]


def gradient(results: Any, ask: Callable[[Any], Any]) -> Gradient:
    """Derivatives of (generalised) linear models, whose linear predictor ``ask`` gives.

    That of the link is exact. That of the linear predictor along a column is taken by small steps,
    because a formula may hold any function of it.
    """
    model, known = results.model, columns(results)
    slope = slope_of(model)

    def line(rows: Any) -> FloatArray:
        found = ask(rows)
        if hasattr(found, "reindex"):  # without rows that have missing values
            found = found.reindex(rows.index)
        return np.asarray(found, dtype=np.float64).reshape(len(rows), -1)

    def by_column(rows: Any, column: int) -> FloatArray:
        frame = isinstance(rows, pd.DataFrame)
        x = np.asarray(rows.iloc[:, column] if frame else rows[:, column], dtype=np.float64)
        if known is not None and frame and rows.columns[column] in known.levels:
            return np.zeros_like(line(rows))  # between levels there is nothing
        outputs, arguments = [], kernel.three_arguments(x, float(np.finfo(np.float64).eps))
        for values in arguments:
            some = rows.copy()
            if frame:
                some.isetitem(column, values)
            else:
                some[:, column] = values
            outputs.append(line(some))
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.nan_to_num(kernel.parabola_slope(x, arguments, outputs))

    def derivatives(rows: Any, columns: Sequence[int]) -> FloatArray:
        moved = np.stack([by_column(rows, column) for column in columns], axis=-1)
        if type(model).__name__ != "MNLogit":
            return moved if slope is None else moved * slope(line(rows))[..., None]
        # The first output is the reference, whose predictor is 0.
        moved = np.pad(moved, ((0, 0), (1, 0), (0, 0)))
        share = softmax(np.pad(line(rows), ((0, 0), (1, 0))), axis=1)[..., None]
        return np.asarray(share * (moved - np.sum(share * moved, axis=1, keepdims=True)))

    return derivatives


def classes(results: Any) -> list[str] | None:
    """Names of the categories whose probabilities the model predicts, in the order of its outputs.

    Of ``MNLogit`` and ``OrderedModel``; None of other models.
    """
    model = getattr(results, "model", None)
    names = getattr(model, "_ynames_map", None) or getattr(model, "labels", None)
    if names is None or type(model).__name__ not in ("MNLogit", "OrderedModel"):
        return None
    ordered = [names[at] for at in sorted(names)] if isinstance(names, dict) else list(names)
    return [str(one) for one in ordered]


def _names(tree: ast.AST) -> list[str]:
    """Names of variables, and what Q("...") quotes."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            found.append(node.id)
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Q":
            found += [str(one.value) for one in node.args if isinstance(one, ast.Constant)]
    return list(dict.fromkeys(found))
