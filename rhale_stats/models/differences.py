"""Finite differences and predictions in batches: here the model is called."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rhale_stats.arguments.checks import MOST_SIZE, check_size
from rhale_stats.arrays import local_effects as kernel
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.models.outputs import Model, ModelError, OutputLabels, Outputs, UnknownOutputError
from rhale_stats.models.table import Table, Values, as_column

# Rows in one call of the model where many versions of each row are needed: some tens of
# megabytes.
BATCH_ROWS = 1 << 17


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
        """Number of rows in all calls of the model."""
        return self.outputs.n_rows

    @property
    def precision(self) -> float:
        """Precision of the outputs of the model, as far as it is known."""
        return self.outputs.precision

    def at(self, rows: NDArray[np.bool_] | NDArray[np.int64]) -> DifferenceQuotients:
        """The same at some rows, by a mask or by their numbers; unchanged for all rows."""
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
        return self.ask_named(self.table.copied(), f"on all {self.table.n_rows} {rows}")

    def ask_named(self, rows: Any, where: str) -> FloatArray:
        """The model's answer; an error of its own says ``where`` the model raised it."""
        try:
            return self.ask(rows)
        except (ModelError, UnknownOutputError):
            raise
        except Exception as error:
            raise ModelError(f"model raised {type(error).__name__} {where}: {error}") from error

    def central(self, position: int) -> Differences:
        """math [1] by central differences."""
        x = self.table.column(position)
        step = kernel.central_step(x, self.precision)
        outputs, held = self.evaluate(position, kernel.central_arguments(x, step, x.min(), x.max()))
        return self.quotient(outputs, held, "central_difference")

    def finite(self, position: int, edges: FloatArray) -> Differences:
        """math [2]: slopes across cells, which include jumps, unlike derivatives."""
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
        table = self.table.holding(rows)
        rows, _ = table.stacked(positions[0], [one for one in first for _ in second])
        other = pd.concat([as_column(one) for one in [*second] * len(first)], ignore_index=True)
        rows, _ = table.holding(rows).stacked(positions[1], [other.array])
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
        """The output of the model; errors say for which feature and how it was called."""
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
