"""Answers of a model to rows in versions of one column that are read from it, not predicted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.models.adapters.adapter import in_order
from rhale_stats.models.adapters.sklearn import linear_of, passes, sklearn_name, steps_of
from rhale_stats.models.adapters.trees import trees_of
from rhale_stats.models.forms import names_with_spaces
from rhale_stats.models.table import Table, Values, Versions
from rhale_stats.models.trees import Coefficients, LeafTable, Trees

if TYPE_CHECKING:
    from rhale_stats.models.outputs import Outputs

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
        if inner is None:
            return None
        before, inverse = inner.answer, model.transformer_.inverse_transform

        def in_units(sums: FloatArray) -> FloatArray:  # of the target
            return np.asarray(inverse(before(sums) if before else sums), dtype=np.float64)

        return replace(inner, answer=in_units)
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
        # Behind the columns others say which values were missing.
        parts = [[number] for number in range(n_columns)]
        for number, column in enumerate(step.indicator_.features_):
            parts[column].append(n_columns + number)
        drops_columns = len(step.get_feature_names_out()) != sum(map(len, parts))
        return None if drops_columns else [np.array(part) for part in parts]
    elif name in ONE_EACH or (name == "FunctionTransformer" and isinstance(step.func, np.ufunc)):
        widths = [1] * n_columns
    else:
        return None
    ends = np.cumsum([0, *widths])
    # A step that drops columns has fewer.
    if name != "FunctionTransformer" and ends[-1] != len(step.get_feature_names_out()):
        return None
    return [np.arange(*pair) for pair in pairwise(ends)]


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


# --- answers that are read ------------------------------------------------------------------------


# Rows whose predictions are compared, and by how many units of rounding these may differ.
N_COMPARED, ROUNDINGS = 200, 64
# Answers to fewer rows take less time to predict than to read.
READ_ROWS = 1 << 12
# Bytes of a table of leaves, beyond which the model is asked.
MAX_BYTES = 1 << 27
# Bytes of what the rows become in a pipeline, beyond which it is asked.
MAX_INPUT_BYTES = 1 << 30


class LinearTerms:
    """A linear predictor, with the methods of a `LeafTable`."""

    n_bytes, source = 0, "its coefficients"

    def __init__(self, model: Coefficients) -> None:
        self._coefficients, self._start = model.coefficients, model.start

    def intervals(self, number: int, x: FloatArray) -> FloatArray:
        """The terms of an input, (sum, value)."""
        return self._coefficients[:, [number]] * x

    def rows(self, x: FloatArray) -> LinearRows:
        """Rows of inputs (row, input) with their sums."""
        columns = np.ascontiguousarray(x.T)
        return LinearRows(columns, self._start[:, None] + self._coefficients @ columns)

    def sums(
        self, rows: LinearRows, moved: Mapping[int, FloatArray], choice: IntArray | None = None
    ) -> FloatArray:
        """Sums of the terms of rows, at versions of those that are moved, as of leaves."""
        inputs, moving = list(moved), sum(moved.values(), np.zeros((1, 1)))
        level = rows.totals - self._coefficients[:, inputs] @ rows.columns[inputs]
        return level[..., None] + (moving[:, None] if choice is None else moving[:, choice])


class LinearRows(NamedTuple):
    """Rows as their inputs, (input, row), and the sums of their terms, (sum, row)."""

    columns: FloatArray
    totals: FloatArray


class ReadModel:
    """A model that is read, and the rows that it was read for last."""

    def __init__(self, outputs: Outputs, model: Trees | Coefficients) -> None:
        self._outputs, self._model = outputs, model
        self._rows: tuple[Any, Any] = None, None
        self._terms: Any = LeafTable(model) if isinstance(model, Trees) else LinearTerms(model)
        self.source: str = self._terms.source

    @classmethod
    def checked(cls, outputs: Outputs, table: Table) -> ReadModel | None:
        """The reading of a model, if it agrees with predictions for rows like those of a table.

        Their columns are mixed, so that no tree goes unseen, and hold the ends of each column and
        a missing value, which some models refuse. Rows that become others column by column must get
        the answers of these, so that no value moves in another column.
        """
        model = read_model(outputs.model, outputs.method)
        if model is None:
            return None
        reading = cls(outputs, model)
        n_inputs = sum(map(len, model.parts or ()))
        if reading._terms.n_bytes > MAX_BYTES or 8 * table.n_rows * n_inputs > MAX_INPUT_BYTES:
            return None
        mixed = table.holding(_mixed(table))
        others = np.roll(np.arange(mixed.n_rows), 1)
        moved = {
            position: mixed.series(position).array[others]
            for position in range(len(mixed.names))
            if not mixed.is_time(position)
        }
        try:
            predictions = outputs.answer(mixed.data).astype(np.float64)
            answers = reading.answers(mixed, {})[..., 0].T
            of_others = reading.answers(mixed, moved, np.arange(mixed.n_rows)[:, None])[..., 0].T
        except Exception:  # such rows may be refused: predictions then say why
            return None
        apart = np.abs([answers - predictions, of_others - predictions[others]]).max()
        size = np.abs(predictions).max()
        return reading if apart <= ROUNDINGS * outputs.precision * size else None

    def answers(
        self, table: Table, versions: Mapping[int, Values], choice: IntArray | None = None
    ) -> FloatArray:
        """Answers to all rows at versions of the values of some columns, (output, row, version).

        With ``choice`` (row, place), numbers of versions, (output, row, place).
        """
        data, rows = self._rows
        if data is not table.data:  # features ask for the same rows one after the other
            rows = self._terms.rows(self._model.inputs(self._given(table.data)))
            self._rows = table.data, rows
        moved = self._moved(table, versions) if versions else {}
        if moved:
            sums: FloatArray = self._terms.sums(rows, moved, choice)
        else:  # columns that the model leaves out
            n_places = max(map(len, versions.values()), default=1)
            n_places = n_places if choice is None else choice.shape[1]
            sums = np.repeat(rows.totals[..., None], n_places, axis=2)
        if self._model.answer is not None:
            flat = np.ascontiguousarray(sums.reshape(len(sums), -1).T)
            sums = self._model.answer(flat).T.reshape(-1, *sums.shape[1:])
        return sums[self._outputs.numbers]

    def _given(self, rows: Any) -> Any:
        """Rows as the model gets them, with its columns in their order."""
        as_given = self._outputs.in_model_form(rows)
        if self._model.names is None or not isinstance(as_given, pd.DataFrame):
            return as_given
        return in_order(as_given, names_with_spaces(self._model.names, as_given.columns), "")

    def _moved(self, table: Table, versions: Mapping[int, Values]) -> dict[int, Any]:
        """Intervals of the values, by the number of the input that has them."""
        n_versions = max(map(len, versions.values()))
        rows = table.take(np.zeros(n_versions, dtype=np.int64))
        for position, values in versions.items():
            rows = rows.holding(rows.stacked([Versions(position, [values])]))
        as_given = self._given(rows.data)
        inputs = list(versions)
        if isinstance(as_given, pd.DataFrame) and isinstance(table.data, pd.DataFrame):
            names, columns = list(as_given.columns), table.data.columns[inputs]
            inputs = [names.index(name) for name in columns if name in names]
        if self._model.parts is not None:
            inputs = [number for column in inputs for number in self._model.parts[column].tolist()]
        x = self._model.inputs(as_given)
        return {number: self._terms.intervals(number, x[:, number]) for number in inputs}


def _mixed(table: Table) -> Any:
    """Rows of values that each column has, which need not occur together."""
    rng, orders = np.random.default_rng(0), []
    for position in range(len(table.names)):
        column = table.series(position)
        places = [int(column.isna().to_numpy().argmax()), 0, 0]
        if table.is_numeric(position):
            x = np.nan_to_num(table.column(position))
            places[1:] = int(x.argmin()), int(x.argmax())
        orders.append([*places, *rng.permutation(table.n_rows)[:N_COMPARED]])
    data = table.data
    if isinstance(data, np.ndarray):
        return data[np.transpose(orders), np.arange(len(orders))]
    columns = zip(data.columns, orders, strict=True)
    return pd.DataFrame({name: data[name].array[order] for name, order in columns})
