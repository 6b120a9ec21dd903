"""Pipelines whose steps change each column by itself: the columns that each becomes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.models.adapters.sklearn import linear_of, passes, sklearn_name, steps_of
from rhale_stats.models.adapters.trees import trees_of
from rhale_stats.models.trees import Answer, Coefficients, Trees

# Numbers of the columns that each column becomes.
Parts: TypeAlias = list[IntArray]

# Steps by which a column becomes one column, whose values depend on nothing else in the row.
ONE_EACH = (
    *("Binarizer", "KBinsDiscretizer", "MaxAbsScaler", "MinMaxScaler", "OrdinalEncoder"),
    *("PowerTransformer", "QuantileTransformer", "RobustScaler", "SimpleImputer"),
    *("StandardScaler", "TargetEncoder"),
)


def read_model(model: Any, method: str) -> Trees | Coefficients | None:
    """Trees or coefficients of a model, of the best of a search, or of a pipeline; or None."""
    name = sklearn_name(model)
    if name and hasattr(model, "best_estimator_"):
        return read_model(model.best_estimator_, method)
    if name == "TransformedTargetRegressor":
        inner = read_model(model.regressor_, method)
        return None if inner is None else replace(inner, answer=_in_units(model, inner.answer))
    *steps, last_step = steps_of(model)
    last = trees_of(last_step, method) or linear_of(last_step, method)
    if last is None or not steps:
        return last
    parts = None
    with suppress(Exception):  # a version of the library that keeps its columns elsewhere
        parts = _parts(steps, getattr(steps[0], "n_features_in_", 0))
    if parts is None:
        return None
    names = getattr(steps[0], "feature_names_in_", None)

    def inputs(rows: Any) -> FloatArray:
        for step in steps:
            rows = step.transform(rows)
        return last.inputs(rows.toarray() if hasattr(rows, "toarray") else rows)

    return replace(
        last, inputs=inputs, parts=parts, names=None if names is None else list(map(str, names))
    )


def _in_units(model: Any, answer: Answer | None) -> Answer:
    """The answer of a regression of a transformed target, in the units of the target."""
    inverse: Callable[[FloatArray], Any] = model.transformer_.inverse_transform

    def in_units(sums: FloatArray) -> FloatArray:
        return np.asarray(inverse(sums if answer is None else answer(sums)), dtype=np.float64)

    return in_units


def _parts(steps: Sequence[Any], n_columns: int) -> Parts | None:
    """Numbers of the columns that each column becomes by these steps; None if columns mix."""
    parts = [np.array([number]) for number in range(n_columns)]
    for step in steps:
        of_step = _of_columns(step) if sklearn_name(step) == "ColumnTransformer" else _of_step(step)
        if of_step is None:
            return None
        parts = [np.concatenate([of_step[0][:0], *[of_step[k] for k in part]]) for part in parts]
    return parts


def _of_step(step: Any) -> Parts | None:
    name, n_columns = sklearn_name(step), getattr(step, "n_features_in_", 0)
    if name == "OneHotEncoder":
        widths = list(step._n_features_outs)
    elif name == "KBinsDiscretizer" and step.encode != "ordinal":
        widths = list(step._encoder._n_features_outs)
    elif name == "SplineTransformer":
        widths = [step.n_features_out_ // n_columns] * n_columns
    elif name == "SimpleImputer" and step.add_indicator:
        return _with_indicators(step, n_columns)
    elif name in ONE_EACH or (name == "FunctionTransformer" and isinstance(step.func, np.ufunc)):
        widths = [1] * n_columns
    else:
        return None
    ends = np.cumsum([0, *widths])
    # A step that drops columns has fewer.
    if name != "FunctionTransformer" and ends[-1] != _n_outputs(step):
        return None
    return [np.arange(*pair) for pair in pairwise(ends)]


def _with_indicators(step: Any, n_columns: int) -> Parts | None:
    """Those of an imputer, behind whose columns others say which values were missing."""
    parts = [[number] for number in range(n_columns)]
    for number, column in enumerate(step.indicator_.features_):
        parts[column].append(n_columns + number)
    n_outputs = n_columns + len(step.indicator_.features_)
    return [np.array(part) for part in parts] if n_outputs == _n_outputs(step) else None


def _n_outputs(step: Any) -> int:
    return len(step.get_feature_names_out())


def _of_columns(step: Any) -> Parts | None:
    """Those of a ColumnTransformer, whose transformers may share columns, or drop them."""
    parts: list[list[int]] = [[] for _ in range(step.n_features_in_)]
    for name, transformer, _ in step.transformers_:
        outputs = np.arange(step.output_indices_[name].start, step.output_indices_[name].stop)
        columns = step._transformer_to_input_indices[name]
        inner = _parts([] if passes(transformer) else steps_of(transformer), len(columns))
        if inner is None:
            return None
        for column, part in zip(columns, inner, strict=True):
            parts[column].extend(outputs[part].tolist() if len(outputs) else [])
    return [np.array(part, dtype=np.intp) for part in parts]
