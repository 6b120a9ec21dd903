"""The only module that calls a model: tables in the user's own form, predictions, differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rhale_stats.arrays import local_effects as kernel
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.validate import check_finite

Model: TypeAlias = Any
Predict: TypeAlias = Callable[[Any], FloatArray]

# A column of numbers with at most so many distinct values, each twice or more on average, is
# discrete: months, not hours.
DISCRETE_LEVELS = 12
# Derivatives are suspected to miss what the model does where this share of them is zero ...
ZERO_SHARE = 0.95
# ... and are refused where slopes over this share of the axis differ from them by more than half.
WIDE_SHARE = 0.02
# Rows that a model is asked for at once where it is asked for many versions of each: some tens of
# megabytes.
BATCH_ROWS = 1 << 17


class ModelError(RuntimeError):
    """The model raised, or did not return one number a row. The cause is chained."""


@dataclass(frozen=True)
class Table:
    """The rows of ``X`` in the form in which the model receives them."""

    data: pd.DataFrame | NDArray[np.floating[Any]]
    names: list[str]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.data)

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

    def is_discrete(self, position: int) -> bool:
        """Whether a column has few distinct values (but more than one), repeated."""
        values = self.column(position)
        if len(np.unique(values[: 100 * DISCRETE_LEVELS])) > DISCRETE_LEVELS:
            return False
        n_levels = len(np.unique(values))
        return 1 < n_levels <= DISCRETE_LEVELS and 2 * n_levels <= len(values)

    def like(self, values: FloatArray) -> pd.DataFrame | NDArray[np.floating[Any]]:
        """Numbers (rows, columns) in the form of this table."""
        if isinstance(self.data, np.ndarray):
            return values.astype(self.data.dtype, copy=False)
        return pd.DataFrame(values, columns=self.data.columns).astype(dict(self.data.dtypes))

    def stacked(self, position: int, columns: Sequence[FloatArray]) -> tuple[Any, list[FloatArray]]:
        """Copies of the rows below each other, each with another version of one column.

        Returns the table, and the columns as its type holds them (single precision rounds).
        """
        values = np.concatenate(columns)
        if isinstance(self.data, np.ndarray):
            stack = np.tile(self.data, (len(columns), 1))
            stack[:, position] = values
            held = stack[:, position].astype(np.float64)
            return stack, np.split(held, len(columns))
        frame = pd.concat([self.data] * len(columns), ignore_index=True)
        frame[self.data.columns[position]] = values
        return frame, list(columns)


def as_table(X: Any) -> Table:
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
                f"X must have distinct column names; got {', '.join(map(repr, repeated))} more "
                f"than once. Rename or drop columns."
            )
        table = Table(X, names)
    else:
        array = np.asarray(X)
        if array.ndim != 2:
            raise ValueError(
                f"X must be a DataFrame or a two-dimensional array of shape (rows, features); "
                f"got shape {array.shape}."
            )
        if not np.issubdtype(array.dtype, np.floating):
            try:
                array = array.astype(np.float64)
            except (TypeError, ValueError) as error:
                raise TypeError(
                    f"X must hold numbers when it is an array; got dtype {array.dtype}. Pass a "
                    f"DataFrame, whose other columns are left out."
                ) from error
        table = Table(array, [f"x{position}" for position in range(array.shape[1])])
    if table.n_rows == 0:
        raise ValueError("X must have at least one row; got none.")
    return table


def predictor(model: Model, table: Table) -> Predict:
    """The model as a function from a table to one number a row.

    Raises
    ------
    TypeError
        ``model`` can neither be called nor predict, is a classifier whose ``predict`` gives
        labels, or is a formula model without a DataFrame.
    """
    formula = getattr(getattr(model, "model", None), "formula", None)
    if formula is not None and not isinstance(table.data, pd.DataFrame):
        raise TypeError(
            f"X must be a DataFrame with the columns of the formula {formula!r}; "
            f"got an array of shape {table.data.shape}."
        )
    if hasattr(model, "predict_proba"):
        raise TypeError(
            f"model must return one number a row; {type(model).__name__}.predict returns class "
            f"labels. Pass the probability of one class, as in "
            f"lambda X: model.predict_proba(X)[:, 1]."
        )
    if hasattr(model, "predict"):
        return _normalised(model.predict)
    if callable(model):
        return _normalised(model)
    raise TypeError(
        f"model must be a function of X, or have a predict method; got {type(model).__name__}."
    )


def _normalised(function: Callable[[Any], Any]) -> Predict:
    def predict(rows: Any) -> FloatArray:
        answer = function(rows)
        if hasattr(answer, "detach"):
            answer = answer.detach()
        values = np.asarray(answer)
        if values.ndim == 2 and values.shape[1] == 1:
            values = values[:, 0]
        if values.shape != (len(rows),):
            raise ModelError(
                f"model must return one number a row, shape ({len(rows)},) for {len(rows)} rows; "
                f"got shape {values.shape}. With several outputs, choose one: "
                f"lambda X: model(X)[:, 0]."
            )
        if not np.issubdtype(values.dtype, np.number):
            raise ModelError(f"model must return numbers; got dtype {values.dtype}.")
        return values

    return predict


def jacobian_columns(
    jacobian: Any, table: Table, positions: Sequence[int]
) -> dict[int, FloatArray]:
    """Columns of the Jacobian, given as a callable of X, an array, or a DataFrame.

    Raises
    ------
    ValueError
        The shape is not that of ``X``.
    ModelError
        The callable raised.
    """
    given = jacobian
    if callable(jacobian):
        try:
            given = jacobian(table.data)
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
        return {p: given[table.names[p]].to_numpy(dtype=np.float64) for p in positions}
    if hasattr(given, "detach"):
        given = given.detach()
    array = np.asarray(given)
    expected = (table.n_rows, len(table.names))
    if array.shape != expected:
        raise ValueError(
            f"jacobian must have the shape of X, {expected}: one derivative for every row and "
            f"column; got {array.shape}."
        )
    return {p: np.array(array[:, p], dtype=np.float64) for p in positions}


@dataclass(frozen=True)
class Differences:
    """Local effects of one feature by differences, and what rounding alone may add to them."""

    local_effect: FloatArray
    error: float


class DifferenceQuotients:
    """Local effects by differences of predictions, at most two calls of the model a feature.

    It remembers the precision in which the model answers: after the first answer in single
    precision, steps are chosen for it. It counts calls of the model, and the rows of these.
    """

    def __init__(self, model: Model, table: Table) -> None:
        self.table = table
        self.predict = predictor(model, table)
        self.n_calls, self.n_rows = 0, 0
        self.precision = float(np.finfo(np.float64).eps)
        if isinstance(table.data, np.ndarray):
            self.precision = float(np.finfo(table.data.dtype).eps)

    def ask(self, rows: Any) -> FloatArray:
        """The model's answer for a table in the form of its own; counted."""
        self.n_calls, self.n_rows = self.n_calls + 1, self.n_rows + len(rows)
        return self.predict(rows)

    def central(self, position: int) -> Differences:
        """math [1] by central differences; refuses models without a useful derivative.

        Raises
        ------
        ModelError
            The model raised or returned something else than one number a row.
        ValueError
            Nearly all derivatives are zero although the model responds to the feature.
        """
        x = self.table.column(position)
        wide = kernel.central_arguments(x, WIDE_SHARE * float(np.ptp(x)))
        arguments = [*kernel.central_arguments(x, kernel.central_step(x, self.precision))]
        outputs, arguments = self._evaluate(position, arguments)
        answered = outputs[0].dtype
        wide_outputs: list[FloatArray] = []
        if np.issubdtype(answered, np.floating) and np.finfo(answered).eps > self.precision:
            self.precision = float(np.finfo(answered).eps)
            arguments = [*kernel.central_arguments(x, kernel.central_step(x, self.precision))]
            outputs, arguments = self._evaluate(position, [*arguments, *wide])
            outputs, wide_outputs = outputs[:2], outputs[2:]
            arguments, wide = arguments[:2], (arguments[2], arguments[3])
        result = self._quotient(outputs, arguments)
        if np.mean(result.local_effect == 0) >= ZERO_SHARE:
            if not wide_outputs:
                wide_outputs, held = self._evaluate(position, wide)
                wide = (held[0], held[1])
            self._check_useful(position, result, self._quotient(wide_outputs, wide))
        return result

    def finite(self, position: int, n_cells: int) -> Differences:
        """math [2] on a grid of equal cells: sees jumps, which derivatives do not."""
        arguments = kernel.cell_arguments(self.table.column(position), n_cells)
        outputs, held = self._evaluate(position, arguments)
        return self._quotient(outputs, held)

    def between(
        self, position: int, lower: FloatArray, upper: FloatArray
    ) -> tuple[FloatArray, float]:
        """Change of the output as one column goes from ``lower`` to ``upper``, row by row.

        Beside it what rounding of the output alone can do to it.
        """
        outputs, _ = self._evaluate(position, [upper, lower])
        precision = self._precision_of(outputs[0])
        f_upper, f_lower = (output.astype(np.float64) for output in outputs)
        one = np.ones_like(f_upper)
        rounding = kernel.rounding_error(f_upper, f_lower, one, 0 * one, precision)
        return f_upper - f_lower, rounding

    def curves(self, position: int, grid: FloatArray) -> tuple[FloatArray, float]:
        """The output of every row as one column goes along a grid, math [41]: (row, grid).

        Beside it what rounding of the output alone can do to it. Points of the grid share a call
        as long as it asks for `BATCH_ROWS` rows at most.
        """
        n_rows, together = self.table.n_rows, max(1, BATCH_ROWS // self.table.n_rows)
        found = np.empty((n_rows, len(grid)))
        precision = self.precision
        for begin in range(0, len(grid), together):
            part = grid[begin : begin + together]
            outputs, _ = self._evaluate(position, [np.full(n_rows, value) for value in part])
            precision = self._precision_of(outputs[0])
            found[:, begin : begin + together] = np.column_stack(outputs)
        one = np.ones(1)
        largest = np.abs(found).max(keepdims=True).ravel()
        return found, kernel.rounding_error(largest, largest, one, 0 * one, precision)

    def _precision_of(self, output: FloatArray) -> float:
        """That of the table or of the model's answer, whichever is the coarser."""
        if np.issubdtype(output.dtype, np.floating):
            return max(self.precision, float(np.finfo(output.dtype).eps))
        return self.precision

    def _quotient(
        self, outputs: Sequence[FloatArray], arguments: Sequence[FloatArray]
    ) -> Differences:
        f_upper, f_lower = (output.astype(np.float64) for output in outputs)
        upper, lower = arguments
        return Differences(
            kernel.difference_quotient(f_upper, f_lower, upper, lower),
            kernel.rounding_error(f_upper, f_lower, upper, lower, self.precision),
        )

    def _evaluate(
        self, position: int, columns: Sequence[FloatArray]
    ) -> tuple[list[FloatArray], list[FloatArray]]:
        rows, held = self.table.stacked(position, columns)
        name = self.table.names[position]
        try:
            outputs = self.ask(rows)
        except ModelError as error:
            raise ModelError(f"Feature {name!r}: {error}") from error.__cause__
        except Exception as error:
            raise ModelError(
                f"model raised {type(error).__name__} for feature {name!r}, called once with "
                f"{len(rows)} rows: rows 0 to {self.table.n_rows - 1} of X, {len(columns)} times, "
                f"with {name!r} from {min(map(np.min, held)):.6g} to {max(map(np.max, held)):.6g}: "
                f"{error}"
            ) from error
        return np.split(outputs, len(columns)), held

    def _check_useful(self, position: int, derivative: Differences, wide: Differences) -> None:
        change = np.abs(wide.local_effect).sum()
        missed = np.abs(wide.local_effect - derivative.local_effect).sum()
        if change > wide.error * len(wide.local_effect) and missed > 0.5 * change:
            name = self.table.names[position]
            zero = np.mean(derivative.local_effect == 0)
            raise ValueError(
                f"model must have a useful derivative; for feature {name!r} it is zero on "
                f"{zero:.1%} of the rows although the output moves with the feature, as trees and "
                f"other step functions do. Use local_effects(..., method='finite_difference')."
            )


def check_column(table: Table, position: int) -> FloatArray:
    """One column of X, refused with its name and rows where it is not finite."""
    column = table.column(position)
    check_finite(column, "X", table.names[position], "Drop or impute these rows before the call.")
    return column
