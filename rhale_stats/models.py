"""The only module that calls a model: tables in the user's own form, predictions, differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rhale_stats.arrays import local_effects as kernel
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.offsets import predict_of
from rhale_stats.schema import position_of
from rhale_stats.validate import (
    MOST_SIZE,
    aligned,
    as_weights,
    check_choice,
    check_finite,
    check_size,
    warn,
)

Model: TypeAlias = Any
OutputLabels: TypeAlias = Any  # one label, a sequence of them, or None
# Values of a column: numbers, or levels.
Values: TypeAlias = NDArray[Any] | pd.api.extensions.ExtensionArray

# What is taken of a classifier: its probabilities, their log-odds, its decision function.
SCALES = ("response", "logit", "decision")

# A column of numbers with at most so many distinct values, each twice or more on average, is
# discrete: months, not hours.
DISCRETE_LEVELS = 12
# Rows that a model is asked for at once where it is asked for many versions of each: some tens of
# megabytes.
BATCH_ROWS = 1 << 17
# A table that shares its columns with another is safe from what a model does to it.
COPY_ON_WRITE = int(pd.__version__.partition(".")[0]) >= 3


class ModelError(RuntimeError):
    """The model raised, or did not return numbers for every row. The cause is chained."""


class UnknownOutputError(KeyError):
    """An output was asked for that the model does not have."""

    def __str__(self) -> str:
        """The message as it is, not in quotes."""
        return str(self.args[0])


@dataclass(frozen=True)
class Table:
    """The rows of ``X`` in the form in which the model receives them."""

    data: pd.DataFrame | NDArray[np.floating[Any]]
    names: list[str]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.data)

    @property
    def index(self) -> pd.Index[Any] | None:
        """Labels of the rows, where they have some."""
        return self.data.index if isinstance(self.data, pd.DataFrame) else None

    def held(
        self, position: int, rows: NDArray[np.bool_], values: FloatArray
    ) -> tuple[Values, Values]:
        """Numbers, and what rows hold of a column, both in the type of the column."""
        if isinstance(self.data, np.ndarray):
            return values, self.data[rows, position]
        own = self.series(position)[rows].array
        return pd.Series(values).astype(own.dtype).array, own

    def weights(self, weights: Any, kind: str) -> FloatArray | None:
        """Weights of the rows; a Series goes by the labels of the rows, where they have some."""
        return None if weights is None else as_weights(weights, self.n_rows, kind, self.index)

    def take(self, rows: NDArray[np.bool_] | NDArray[np.int64]) -> Table:
        """Some of the rows, by a mask or by their numbers."""
        if isinstance(self.data, pd.DataFrame):
            return Table(self.data.iloc[rows], self.names)
        return Table(self.data[rows], self.names)

    def copied(self) -> pd.DataFrame | NDArray[np.floating[Any]]:
        """The rows for a model to do with as it likes, numbered from 0."""
        if isinstance(self.data, np.ndarray):
            return self.data.copy()
        return self.data.copy(deep=not COPY_ON_WRITE).reset_index(drop=True)

    def is_numeric(self, position: int) -> bool:
        """Whether a column holds numbers (booleans are not)."""
        if isinstance(self.data, np.ndarray):
            return True
        dtype = self.data.dtypes.iloc[position]
        return pd.api.types.is_numeric_dtype(dtype) and not (
            pd.api.types.is_bool_dtype(dtype) or pd.api.types.is_complex_dtype(dtype)
        )

    def column(self, position: int) -> FloatArray:
        """One column as a contiguous float array; missing values are NaN."""
        if isinstance(self.data, np.ndarray):
            return np.array(self.data[:, position], dtype=np.float64)
        return self.data.iloc[:, position].to_numpy(dtype=np.float64, na_value=np.nan, copy=True)

    def series(self, position: int) -> pd.Series[Any]:
        """One column as it is held."""
        if isinstance(self.data, pd.DataFrame):
            return self.data.iloc[:, position]
        return pd.Series(self.data[:, position])

    def is_discrete(self, position: int) -> bool:
        """Whether a column has few distinct values (but more than one), repeated."""
        values = self.column(position)
        values = values[~np.isnan(values)]  # a missing value is no level
        if len(np.unique(values[: 100 * DISCRETE_LEVELS])) > DISCRETE_LEVELS:
            return False
        n_levels = len(np.unique(values))
        return 1 < n_levels <= DISCRETE_LEVELS and 2 * n_levels <= len(values)

    def is_key(self, position: int) -> bool:
        """Whether a column has more than one level for every two rows: an identifier."""
        return bool(2 * self.series(position).nunique() > self.n_rows > 4)

    def kind(self, position: int) -> str:
        """Whether a column has an axis, or values of its own."""
        axis = self.is_numeric(position) and not self.is_discrete(position)
        return "continuous" if axis else "discrete"

    def like(self, values: FloatArray) -> pd.DataFrame | NDArray[np.floating[Any]]:
        """Numbers (rows, columns) in the form of this table."""
        if isinstance(self.data, np.ndarray):
            return values.astype(self.data.dtype, copy=False)
        return pd.DataFrame(values, columns=self.data.columns).astype(dict(self.data.dtypes))

    def stacked(self, position: int, columns: Sequence[Values]) -> tuple[Any, list[Any]]:
        """Copies of the rows below each other, each with another version of one column.

        Returns the table, and the columns as its type holds them (single precision rounds).
        """
        if isinstance(self.data, np.ndarray):
            if len(columns) == 1:
                stack = self.data.copy()
                stack[:, position] = np.asarray(columns[0])
            else:
                stack = np.tile(self.data, (len(columns), 1))
                stack[:, position] = np.concatenate([np.asarray(column) for column in columns])
            if stack.dtype == np.float64:
                return stack, list(columns)
            held = stack[:, position].astype(np.float64)
            return stack, np.split(held, len(columns))
        if len(columns) == 1:
            frame = self.data.copy(deep=not COPY_ON_WRITE)
            frame.index = pd.RangeIndex(len(frame))
        else:
            frame = pd.concat([self.data] * len(columns), ignore_index=True)
        plain = [one for one in columns if isinstance(one, np.ndarray) and one.dtype.kind == "f"]
        frame[self.data.columns[position]] = (
            np.concatenate(plain)
            if len(plain) == len(columns)  # a Series for each version takes longer than most models
            else pd.concat([as_column(column) for column in columns], ignore_index=True)
        )
        return frame, list(columns)


def as_column(column: Values) -> pd.Series[Any]:
    """A column of its own type: left to itself pandas makes texts of objects that are texts."""
    return pd.Series(column, dtype=object if str(column.dtype) == "object" else None)


def as_table(X: Any, parameter: str = "X") -> Table:
    """``X`` with names for its columns; arrays get ``x0``, ``x1``, ...

    Raises
    ------
    TypeError, ValueError
        ``X`` is no table of numbers, has no rows, or has two columns of one name.
    """
    if isinstance(X, pd.DataFrame):
        names = [str(name) for name in X.columns]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise ValueError(
                f"{parameter} must have distinct column names; got "
                f"{', '.join(map(repr, repeated))} more than once. Rename or drop columns."
            )
        table = Table(X, names)
    else:
        array = as_array(X, f"{parameter} must hold")
        if array.ndim != 2:
            raise ValueError(
                f"{parameter} must be a DataFrame or a two-dimensional array of shape "
                f"(rows, features); got shape {array.shape}."
            )
        if not np.issubdtype(array.dtype, np.floating):
            try:
                array = array.astype(np.float64)
            except (TypeError, ValueError) as error:
                raise TypeError(
                    f"{parameter} must hold numbers when it is an array; got dtype "
                    f"{array.dtype}. Pass a DataFrame, whose other columns are left out."
                ) from error
        table = Table(array, [f"x{position}" for position in range(array.shape[1])])
    if table.n_rows == 0:
        raise ValueError(f"{parameter} must have at least one row; got none.")
    return table


class Outputs:
    """The model as a function from a table to numbers, (row, output), and what the outputs are.

    ``labels`` and ``names`` of the outputs are known after the first answer, those of classes at
    once. A label selects; a name is what stands on an axis.

    Raises
    ------
    TypeError
        ``model`` can neither be called nor predict, or is a formula model without a DataFrame.
    ValueError, KeyError
        A scale that the model does not have, an output that it does not have.
    """

    def __init__(
        self,
        model: Model,
        table: Table,
        output: OutputLabels = None,
        scale: str = "response",
    ) -> None:
        check_choice("scale", scale, SCALES)
        formula = getattr(getattr(model, "model", None), "formula", None)
        if formula is not None and not isinstance(table.data, pd.DataFrame):
            raise TypeError(
                f"X must be a DataFrame with the columns of the formula {formula!r}; "
                f"got an array of shape {table.data.shape}."
            )
        self.scale = scale
        several = output is not None and not isinstance(output, str) and np.ndim(output) > 0
        self._asked = None if output is None else list(output) if several else [output]
        self._chosen: list[int] | None = None
        self.labels: list[Any] = []
        self.names: list[str] = []
        self._method, self._function = _method_of(model, scale)
        self.table = table
        if self._method == "predict":
            self._function, data = predict_of(model, table.data)
            self.table = Table(data, table.names)
        self.n_calls, self.n_rows, self.largest = 0, 0, 0.0
        self.precision = float(np.finfo(np.float64).eps)
        if isinstance(table.data, np.ndarray):
            self.precision = max(self.precision, float(np.finfo(table.data.dtype).eps))
        # Outlier detectors have decisions, and no classes.
        decides = self._method == "decision_function" and hasattr(model, "classes_")
        if decides or self._method == "predict_proba":
            self._classes(model)

    @property
    def label(self) -> str:
        """Of the one output that was chosen among several; else empty."""
        return str(self.labels[0]) if len(self.labels) == 1 and self.names != [""] else ""

    def __call__(self, rows: Any) -> FloatArray:
        """The outputs that were chosen, (row, output)."""
        self.n_calls, self.n_rows = self.n_calls + 1, self.n_rows + len(rows)
        answer = self._function(rows)
        columns = [str(name) for name in getattr(answer, "columns", [])]
        if isinstance(answer, pd.Series | pd.DataFrame) and isinstance(rows, pd.DataFrame):
            answer = _in_rows_order(answer, rows.index)
        values = as_array(answer, "model must return", ModelError)
        if values.ndim == 1:
            values = values[:, None]
        if values.ndim != 2 or len(values) != len(rows) or not values.shape[1]:
            raise ModelError(
                f"model must return one number a row, shape ({len(rows)},) for {len(rows)} rows, "
                f"or one for each of several outputs, ({len(rows)}, outputs); got shape "
                f"{np.shape(answer)}."
            )
        if not np.issubdtype(values.dtype, np.number):
            raise ModelError(
                f"model must return numbers; got dtype {values.dtype}. Of labels take their "
                f"probability, as in lambda X: model.predict_proba(X)[:, 1]."
            )
        if self._chosen is None:
            self._number(columns or list(range(values.shape[1])))
        if max(self._chosen or [0]) >= values.shape[1]:
            raise ModelError(
                f"model must return as many outputs each time; got {values.shape[1]} after "
                f"{max(self._chosen or [0]) + 1} or more."
            )
        # A copy: some models answer with what they will write to again.
        whole = self._chosen == list(range(values.shape[1]))
        values = values.copy() if whole else values[:, self._chosen]
        self.precision = max(self.precision, kernel.precision_held(values))
        return _log_odds(values.astype(np.float64)) if self.scale == "logit" else values

    def _number(self, labels: list[Any]) -> None:
        """Choose among the outputs of a function."""
        self._choose(labels, {"logit": "log-odds"}.get(self.scale, "output"))
        if len(labels) == 1 and self._asked is None:
            self.names = ["log-odds"] if self.scale == "logit" else [""]

    def _choose(self, labels: list[Any], what: str) -> None:
        asked = labels if self._asked is None else self._asked
        texts = [str(label) for label in labels]
        absent = [label for label in asked if str(label) not in texts]
        if absent or not asked:
            raise UnknownOutputError(
                f"output must be among those of the model, {', '.join(texts)}; got "
                f"{', '.join(map(repr, absent)) or 'none'}."
            )
        if len({str(label) for label in asked}) < len(asked):
            raise ValueError(f"output must name each output once; got {asked!r}.")
        self._chosen = [texts.index(str(label)) for label in asked]
        self.labels = [labels[at] for at in self._chosen]
        self.names = [f"{what} {texts[at]}" for at in self._chosen]

    def _classes(self, model: Model) -> None:
        """Choose among classes: of two by default the second, whose opposite is the first."""
        classes = getattr(model, "classes_", None)
        if classes is None or any(np.ndim(one) for one in classes):
            raise TypeError(
                f"model must be a fitted classifier with one set of classes_; "
                f"{type(model).__name__} is not. Pass a function of X that returns numbers."
            )
        labels = [one.item() if isinstance(one, np.generic) else one for one in classes]
        what = {"response": "probability of", "logit": "log-odds of"}.get(self.scale)
        what = "decision for" if what is None or self._method == "decision_function" else what
        if self._method == "decision_function" and len(labels) == 2:
            labels = labels[1:]  # one number a row, for the second class
        elif self._asked is None and len(labels) == 2:
            self._asked = labels[1:]
        self._choose(labels, what)


def is_classifier(model: object) -> bool:
    """Whether the model has more than one scale to answer on."""
    return hasattr(model, "predict_proba") or hasattr(model, "decision_function")


def _method_of(model: Model, scale: str) -> tuple[str, Callable[[Any], Any]]:
    """What of the model is called, by name."""
    if scale == "decision":
        if not hasattr(model, "decision_function"):
            raise ValueError(
                f"scale='decision' needs a model with a decision_function; {type(model).__name__} "
                f"has none. Use scale='response' or 'logit'."
            )
        return "decision_function", model.decision_function
    for method in ("predict_proba", "decision_function"):
        if hasattr(model, method) and hasattr(model, "predict"):
            if scale == "logit" and method == "decision_function":
                break
            # Outlier detectors have decisions, and no classes.
            if method == "predict_proba" or hasattr(model, "classes_"):
                return method, getattr(model, method)
    if scale == "logit" and hasattr(model, "decision_function"):
        raise ValueError(
            f"scale='logit' needs probabilities; {type(model).__name__} has none. Use "
            f"scale='decision'."
        )
    if hasattr(model, "predict"):
        _refuse_labels(model)
        return "predict", model.predict
    if callable(model):
        if getattr(model, "__name__", "") == "predict":
            _refuse_labels(getattr(model, "__self__", None), "Pass the model itself")
        return "call", model
    raise TypeError(
        f"model must be a function of X, or have a predict method; got {type(model).__name__}."
    )


def _refuse_labels(model: Model, advice: str = "") -> None:
    """Raise ``ValueError`` where ``predict`` answers with names of classes or clusters."""
    try:
        kind = getattr(model, "_estimator_type", None) or model.__sklearn_tags__().estimator_type
    except AttributeError:
        kind = None
    if kind in ("classifier", "clusterer", "outlier_detector") or (
        kind is None and any(hasattr(model, name) for name in ("classes_", "labels_"))
    ):
        if not advice and hasattr(model, "decision_function"):
            advice = "Use scale='decision'"
        advice = advice or (
            "Use a model with probabilities (voting='soft', CalibratedClassifierCV), or pass a "
            "function that answers with a probability or a distance"
        )
        raise ValueError(
            f"model must answer with numbers; predict of {type(model).__name__} answers with "
            f"labels, whose differences mean nothing. {advice}."
        )


def as_array(given: Any, what: str, error: type[Exception] = TypeError) -> NDArray[Any]:
    """Numbers of an array, a tensor or a table as an array; complex and masked ones are refused."""
    if hasattr(given, "detach"):
        given = given.detach()
        given = given.cpu() if hasattr(given, "cpu") else given
    if np.ma.is_masked(given):
        raise error(
            f"{what} plain numbers; got a masked array, "
            f"{int(np.sum(np.ma.getmaskarray(given)))} of {np.size(given)} masked. Fill it or drop "
            f"these rows: its mask would be ignored."
        )
    array = np.asarray(given)
    if np.iscomplexobj(array):
        raise error(
            f"{what} real numbers; got dtype {array.dtype}. Take the real part, or the absolute "
            f"value, before the call."
        )
    return array


def _in_rows_order(
    answer: pd.Series[Any] | pd.DataFrame, index: pd.Index[Any]
) -> pd.Series[Any] | pd.DataFrame:
    """The answer in the order of the rows that the model was given, by their labels."""
    what = "answer of the model"
    try:
        found: pd.Series[Any] | pd.DataFrame = aligned(answer, np.asarray(index), what)
        return found
    except ValueError as error:
        raise ModelError(str(error)) from error


def _log_odds(values: FloatArray) -> FloatArray:
    """Log-odds of probabilities, refused where there are none."""
    inside = (values > 0) & (values < 1)
    if not inside.all():
        bad = values[~inside]
        raise ModelError(
            f"scale='logit' needs probabilities strictly between 0 and 1; the model answers "
            f"{bad[0]:.6g}, and {len(bad)} of {values.size} like it. Calibrate or bound the "
            f"model, or use scale='response'."
        )
    return np.asarray(np.log(values) - np.log1p(-values))


def jacobian_columns(
    jacobian: Any, table: Table, positions: Sequence[int]
) -> dict[int, Differences]:
    """Columns of the Jacobian, given as a callable of X, an array, or a DataFrame.

    Raises
    ------
    ValueError
        The shape is not that of ``X``.
    TypeError
        There is no Jacobian.
    ModelError
        The callable raised.
    """
    if jacobian is None:
        raise TypeError(
            "jacobian must be a function of X or a derivative for each row and column; got None."
        )
    given = jacobian
    if callable(jacobian):
        data = table.data.copy()
        try:
            given = jacobian(data)
        except Exception as error:
            raise ModelError(
                f"jacobian raised {type(error).__name__} on all {table.n_rows} rows of X: {error}"
            ) from error
    if isinstance(given, pd.DataFrame):
        absent = [table.names[p] for p in positions if table.names[p] not in given.columns]
        if absent or len(given) != table.n_rows:
            raise ValueError(
                f"jacobian as a DataFrame must have {table.n_rows} rows and a column for every "
                f"feature; got {len(given)} rows, and no column for {absent}."
            )
        if table.index is not None:
            given = aligned(given, np.asarray(table.index), "jacobian")
        columns = [as_array(given[table.names[p]], "jacobian must hold") for p in positions]
    else:
        array = as_array(given, "jacobian must hold")
        expected = (table.n_rows, len(table.names))
        if array.shape != expected:
            raise ValueError(
                f"jacobian must have the shape of X, {expected}: one derivative for every row and "
                f"column; got {array.shape}."
            )
        columns = [array[:, p] for p in positions]
    return dict(zip(positions, (_derivatives(one) for one in columns), strict=True))


def _derivatives(column: NDArray[Any]) -> Differences:
    """Derivatives as they were given, with the rounding of the precision that holds them."""
    try:
        values = column.astype(np.float64)[:, None]
    except (TypeError, ValueError) as error:
        raise TypeError(f"jacobian must hold numbers; got dtype {column.dtype}.") from error
    precision = kernel.precision_held(column)
    with np.errstate(invalid="ignore"):
        error_size = kernel.typical_error(8 * precision * np.abs(values))
    return Differences(values, error_size, "jacobian", precision=precision)


@dataclass(frozen=True)
class Differences:
    """Local effects of one feature, (row, output), how they were taken, and their error.

    ``edges`` are those of the cells that slopes were taken across, ``precision`` is that of the
    numbers that they come from.
    """

    local_effect: FloatArray
    error: FloatArray
    method: str
    edges: FloatArray | None = None
    precision: float = float(np.finfo(np.float64).eps)

    def at(self, rows: NDArray[np.bool_] | IntArray) -> Differences:
        """The same at some rows, by a mask or by their numbers."""
        return replace(self, local_effect=self.local_effect[rows])


def no_differences(method: str) -> Differences:
    """Of a constant feature."""
    return Differences(np.zeros((0, 1)), np.zeros(1), method)


class DifferenceQuotients:
    """Local effects by differences of predictions.

    It remembers the precision in which the model answers: steps are chosen for it. It counts calls
    of the model, and the rows of these; those at some of the rows as well. What it returns has the
    outputs of the model as its last axis.
    """

    def __init__(
        self,
        model: Model,
        table: Table,
        output: OutputLabels = None,
        scale: str = "response",
        *,
        single: bool = False,
    ) -> None:
        self.outputs = Outputs(model, table, output, scale)
        self.table = self.outputs.table
        self.single = single

    @property
    def n_calls(self) -> int:
        """How often the model was called."""
        return self.outputs.n_calls

    @property
    def n_rows(self) -> int:
        """For how many rows the model was asked in all."""
        return self.outputs.n_rows

    @property
    def precision(self) -> float:
        """In which the model answers, as far as is known."""
        return self.outputs.precision

    def at(self, rows: NDArray[np.bool_] | NDArray[np.int64]) -> DifferenceQuotients:
        """The same at some rows, by a mask or by their numbers; itself at all."""
        n = self.table.n_rows
        if len(rows) == n and (rows.all() if rows.dtype == bool else (rows == np.arange(n)).all()):
            return self
        out = copy(self)
        out.table = self.table.take(rows)
        return out

    def ask(self, rows: Any) -> FloatArray:
        """The model's answer for a table in the form of its own, (row, output); counted."""
        answer = self.outputs(rows)
        if self.single and answer.shape[1] > 1:
            raise ModelError(
                f"model must return one number a row here; it has the outputs "
                f"{', '.join(map(str, self.outputs.labels))}. Choose one, as in "
                f"lambda X: model(X)[:, 0]."
            )
        size = float(np.abs(answer).max(initial=0.0, where=np.isfinite(answer)))
        if size > MOST_SIZE:
            raise ModelError(
                f"model must answer with numbers up to {MOST_SIZE:g}, so that their fourth powers "
                f"stay within floating point; got {size:.3g}. Take other units for the output."
            )
        self.outputs.largest = max(self.outputs.largest, size)
        return answer

    def check_size(self) -> None:
        """Raise ``ValueError`` where powers of the answers so far are all 0."""
        check_size(self.outputs.largest, "Answers of the model", "Take other units for the output.")

    def at_rows(self, rows: str = "rows of X") -> FloatArray:
        """The model's answer at the rows as they are, (row, output); ``rows`` names them."""
        try:
            answers = self.ask(self.table.copied())
        except (ModelError, UnknownOutputError):
            raise
        except Exception as error:
            raise ModelError(
                f"model raised {type(error).__name__} on all {self.table.n_rows} {rows}: {error}"
            ) from error
        return answers

    def central(self, position: int) -> Differences:
        """math [1] by central differences."""
        x = self.table.column(position)
        step = kernel.central_step(x, self.precision)
        outputs, held = self.evaluate(position, kernel.central_arguments(x, step, x.min(), x.max()))
        return self.quotient(outputs, held, "central_difference")

    def finite(self, position: int, edges: FloatArray) -> Differences:
        """math [2]: slopes across cells, which see jumps as derivatives do not."""
        lower, upper = kernel.cell_ends(edges, self.table.column(position))
        outputs, held = self.evaluate(position, [upper, lower])
        return self.quotient(outputs, held, "finite_difference", edges)

    def between(self, position: int, lower: Values, upper: Values) -> tuple[FloatArray, FloatArray]:
        """Change of the output as one column goes from ``lower`` to ``upper``, row by row.

        Beside it what rounding of the output alone can do to it.
        """
        outputs, _ = self.evaluate(position, [upper, lower])
        f_upper, f_lower = (output.astype(np.float64) for output in outputs)
        return f_upper - f_lower, kernel.rounding_error(f_upper, f_lower, 1.0, self.precision)

    def curves(self, position: int, grid: Values) -> tuple[FloatArray, FloatArray]:
        """The output of every row as one column goes along a grid, math [41]: (row, grid, output).

        Beside it what rounding of the output alone can do to it. Points of the grid share a call
        as long as it asks for `BATCH_ROWS` rows at most.
        """
        n_rows, together = self.table.n_rows, max(1, BATCH_ROWS // self.table.n_rows)
        found = []
        for begin in range(0, len(grid), together):
            part = grid[begin : begin + together]
            outputs, _ = self.evaluate(
                position, [_repeated(part, at, n_rows) for at in range(len(part))]
            )
            found += outputs
        ends = [np.maximum(one.max(axis=0), -one.min(axis=0)) for one in found]
        largest = np.max(ends, axis=0)[None].astype(np.float64)
        curves = np.stack(found, axis=1).astype(np.float64, copy=False)
        return curves, kernel.rounding_error(largest, largest, 1.0, self.precision)

    def versions(
        self, position: int, rows: NDArray[np.int64], column: Values
    ) -> tuple[FloatArray, FloatArray]:
        """The output at rows, by their numbers and as often as named, with one column replaced.

        (row, output), and beside it what rounding alone can do to a difference of two. Asks for
        `BATCH_ROWS` rows at a time.
        """
        found = []
        for begin in range(0, len(rows), BATCH_ROWS):
            part = slice(begin, begin + BATCH_ROWS)
            some = copy(self)
            some.table = self.table.take(rows[part])
            outputs, _ = some.evaluate(position, [column[part]], "rows of X with other levels")
            found += outputs
        answer = np.concatenate(found).astype(np.float64, copy=False)
        largest = np.abs(answer).max(axis=0)[None]
        return answer, kernel.rounding_error(largest, largest, 1.0, self.precision)

    def combined(
        self,
        positions: tuple[int, int],
        versions: tuple[Sequence[Values], Sequence[Values]],
        part: slice,
    ) -> tuple[FloatArray, FloatArray]:
        """The output of some rows at all pairs of versions of two columns, in one call.

        Shape (row, version of the first, version of the second, output), and what rounding of the
        output alone can do to it.
        """
        first, second = versions
        names = " and ".join(repr(self.table.names[position]) for position in positions)
        data = self.table.data
        rows = data.iloc[part] if isinstance(data, pd.DataFrame) else data[part]
        table = Table(rows, self.table.names)
        rows, _ = table.stacked(positions[0], [one for one in first for _ in second])
        other = pd.concat([as_column(one) for one in [*second] * len(first)], ignore_index=True)
        rows, _ = Table(rows, table.names).stacked(positions[1], [other.array])
        called = (
            f"called with {len(rows)} rows, {len(first) * len(second)} versions of {table.n_rows}"
        )
        answer = self._answer(rows, f"features {names}", called)
        answer = answer.astype(np.float64, copy=False)
        largest = np.abs(answer).max(axis=0)[None]
        shaped = answer.reshape(len(first), len(second), table.n_rows, -1)
        error_size = kernel.rounding_error(largest, largest, 1.0, self.precision)
        return np.moveaxis(shaped, 2, 0), error_size

    def quotient(
        self,
        outputs: Sequence[FloatArray],
        arguments: Sequence[FloatArray],
        method: str,
        edges: FloatArray | None = None,
    ) -> Differences:
        """Slopes between two arguments, upper and lower, from the outputs at them."""
        f_upper, f_lower = (output.astype(np.float64) for output in outputs)
        step = arguments[0] - arguments[1]
        with np.errstate(invalid="ignore", divide="ignore"):
            quotient = kernel.difference_quotient(f_upper, f_lower, step[:, None])
        error = kernel.quotient_error(f_upper, f_lower, step, self.precision)
        return Differences(quotient, error, method, edges, self.precision)

    def evaluate(
        self, position: int, columns: Sequence[Values], which: str = ""
    ) -> tuple[list[FloatArray], list[Any]]:
        """The outputs at versions of one column, in one call, and the columns as they are held."""
        rows, held = self.table.stacked(position, columns)
        which = which or f"rows 0 to {self.table.n_rows - 1} of X"
        name = self.table.names[position]
        called = f"called once with {len(rows)} rows: {which}, {len(columns)} times, with {name!r}"
        outputs = self._answer(rows, f"feature {name!r}", called, held)
        return np.split(outputs, len(columns)), held

    def _answer(
        self, rows: Any, whose: str, called: str, held: Sequence[Values] = ()
    ) -> FloatArray:
        """The model's answer; what it raises says for whose sake it was called, and how."""
        try:
            return self.ask(rows)
        except ModelError as error:
            raise ModelError(f"{whose[0].upper()}{whose[1:]}: {error}") from error.__cause__
        except UnknownOutputError:
            raise
        except Exception as error:
            values = f" {_values_text(held)}" if held else ""
            raise ModelError(
                f"model raised {type(error).__name__} for {whose}, {called}{values}: {error}"
            ) from error


def _repeated(values: Values, at: int, n: int) -> Values:
    """One of the values, n times."""
    if isinstance(values, np.ndarray):
        return np.full(n, values[at], dtype=values.dtype)
    return values[np.full(n, at)]


def _values_text(columns: Sequence[Values]) -> str:
    """Range of the numbers, or the levels."""
    found = pd.unique(pd.concat([pd.Series(column) for column in columns]))
    if pd.api.types.is_float_dtype(found.dtype) and not pd.isna(found).all():
        return f"from {np.nanmin(found):.6g} to {np.nanmax(found):.6g}"
    return f"in {', '.join(map(str, found[:10]))}{', ...' if len(found) > 10 else ''}"


def check_column(table: Table, position: int, *, missing: str = "raise") -> FloatArray:
    """One column of X, refused with its name and rows where it is not finite.

    With ``missing="drop"`` only infinite values are refused, and a column without any value.
    """
    column, name = table.column(position), table.names[position]
    if missing == "raise":
        check_finite(
            column, "X", name, "Drop or impute these rows, or leave them out: missing='drop'."
        )
        _check_range(column, name)
        return column
    there = ~np.isnan(column)
    if not there.any():
        raise ValueError(
            f"X must have values of feature {name!r}; all {len(column)} are missing. Leave the "
            f"feature out: features=[...]."
        )
    check_finite(column[there], "X", name, "Drop or bound these rows before the call.")
    _check_range(column[there], name)
    return column


def _check_range(column: FloatArray, name: str) -> None:
    """Raise ``ValueError`` where squares of a column's range are no numbers, or 0."""
    with np.errstate(over="ignore"):
        size = float(np.ptp(column)) if len(column) else 0.0
    check_size(size, f"The range of feature {name!r} in X", "Take other units for the column.")


def positions_of(table: Table, features: str | int | Sequence[str | int] | None) -> list[int]:
    """Columns chosen by name or number; by default all numeric ones that are not discrete."""
    everything = range(len(table.names))
    if features is None:
        text = [p for p in everything if not table.is_numeric(p)]
        discrete = [p for p in everything if p not in text and table.is_discrete(p)]
        chosen = [p for p in everything if p not in text and p not in discrete]
        reasons = []
        for left_out, why in ((text, "not numeric"), (discrete, "discrete")):
            if left_out:
                named = ", ".join(repr(table.names[p]) for p in left_out)
                reasons.append(f"{named} ({why})")
        if not chosen:
            raise TypeError(
                f"X must have at least one continuous numeric column; got {'; '.join(reasons)}. "
                f"Name discrete columns in features= to take them all the same."
            )
        if reasons:
            warn(
                f"Left out: {'; '.join(reasons)}. Name discrete columns in features= to take them."
            )
        return chosen
    asked = [features] if isinstance(features, str | int | np.integer) else list(features)
    if not asked:
        raise ValueError("features must name at least one column; got none.")
    positions = []
    for feature in asked:
        position = position_of(feature, table.names)
        if not table.is_numeric(position):
            raise TypeError(
                f"features must be numeric; column {table.names[position]!r} is not. Leave it out: "
                f"the model still receives it."
            )
        if position in positions:
            raise ValueError(f"features must be distinct; got {table.names[position]!r} twice.")
        positions.append(position)
    return positions
