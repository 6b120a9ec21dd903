"""Finite differences and predictions in batches: here the model is called."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from tqdm import tqdm

from rhale_stats.arguments.checks import MAX_SIZE, check_size
from rhale_stats.arguments.progress import progress_bar
from rhale_stats.arguments.rows import evenly
from rhale_stats.arrays import local_effects as kernel
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.models.forms import as_is
from rhale_stats.models.outputs import Model, ModelError, OutputLabels, Outputs, UnknownOutputError
from rhale_stats.models.reading import READ_ROWS, ReadModel
from rhale_stats.models.table import Table, Values, Versions, are_floats, as_column, in_one

# Answers to a pair of values of two columns, without which reading these takes longer than calls.
PAIRS = 64
# Unless the user says how many rows a call of the model has at most: so many, in a table of at most
# so many bytes.
BATCH_ROWS, BATCH_BYTES = 1 << 17, 1 << 25


@dataclass(frozen=True)
class Differences:
    """Local effects of one feature, (row, output), how they were taken, and their error.

    ``edges`` are those of the cells that slopes were taken across, ``precision`` is that of the
    numbers that they come from. ``left`` are slopes across the cell to the left of rows on an edge,
    if any. ``bias`` (output,) is the part of the error that a mean over rows keeps.
    """

    local_effect: FloatArray
    error: FloatArray
    method: str
    edges: FloatArray | None = None
    precision: float = float(np.finfo(np.float64).eps)
    left: FloatArray | None = None
    bias: FloatArray | None = None

    def take(self, rows: NDArray[np.bool_] | IntArray) -> Differences:
        """The same at some rows, by a mask or by their numbers."""
        return replace(self, local_effect=self.local_effect[rows])


def no_differences(method: str) -> Differences:
    """Of a constant feature."""
    return Differences(np.zeros((0, 1)), np.zeros(1), method)


class DifferenceQuotients:
    """Local effects by differences of predictions.

    It remembers the precision in which the model answers: steps are chosen for it. It counts calls
    of the model, and the rows of these; those at some of the rows as well. What it returns has the
    outputs of the model as its last axis. No call has more than `batch_rows` rows. What is found
    does not depend on that: precision and log-odds are taken of all answers together.

    ``numbers`` are those of the rows in ``X``, by default 0, 1, ..., for messages.
    """

    def __init__(
        self,
        model: Model,
        table: Table,
        output: OutputLabels = None,
        scale: str = "response",
        *,
        single: bool = False,
        batch_rows: int | None = None,
        numbers: IntArray | None = None,
    ) -> None:
        self.outputs = Outputs(model, table, output, scale)
        self.table = self.outputs.table
        self.single = single
        self.numbers = numbers
        self._bar: tqdm[Any] | None = None
        # Of the model, for all parts of the rows, once it is made.
        self._readings: list[ReadModel | None] = []
        data = self.table.data  # without what its objects refer to
        n_bytes = data.nbytes if isinstance(data, np.ndarray) else data.memory_usage(False).sum()
        self._row_bytes = max(float(n_bytes) / max(self.table.n_rows, 1), 1.0)
        self._batch_rows = batch_rows

    @property
    def precision(self) -> float:
        """Precision of the outputs of the model, as far as it is known."""
        return self.outputs.precision

    @property
    def reading(self) -> ReadModel | None:
        """The model as it is read, if it can be; made when it is first needed."""
        if not self._readings:
            self._readings.append(ReadModel.checked(self.outputs, self.table))
        return self._readings[0]

    @property
    def batch_rows(self) -> int:
        """Number of rows that a call of the model has at most."""
        return self.block_rows if self._batch_rows is None else self._batch_rows

    @property
    def block_rows(self) -> int:
        """Number of rows of a table of bounded memory, whatever the rows of a call."""
        return max(1, min(BATCH_ROWS, int(BATCH_BYTES // self._row_bytes)))

    @contextmanager
    def counted(self, n_rows: int, what: str, *, progress: bool) -> Iterator[None]:
        """A progress bar of the rows that the model is asked for within the block."""
        with progress_bar(n_rows, what, "row", progress=progress, scale=True) as self._bar:
            yield
        self._bar = None

    def take(self, rows: NDArray[np.bool_] | NDArray[np.int64]) -> DifferenceQuotients:
        """The same at some rows, by a mask or by their numbers; unchanged for all rows."""
        n = self.table.n_rows
        if len(rows) == n and (rows.all() if rows.dtype == bool else (rows == np.arange(n)).all()):
            return self
        out = copy(self)
        out.table = self.table.take(rows)
        every = np.arange(n) if self.numbers is None else self.numbers
        out.numbers = every[rows]
        return out

    def ask(self, rows: Any) -> FloatArray:
        """The model's answer for a table in the form of its own, (row, output); counted."""
        return self.accepted(self.raw(rows))

    def raw(self, rows: Any) -> NDArray[Any]:
        """The answer as the model gave it, from as many calls as these rows need."""
        answers = []
        for part in _parts(rows, self.batch_rows):
            answers.append(self.outputs.answer(part))
            if self._bar is not None:
                self._bar.update(len(part))
        return answers[0] if len(answers) == 1 else np.concatenate(answers)

    def accepted(self, answer: NDArray[Any], axis: int = -1) -> FloatArray:
        """Answers to all rows on the scale asked for, refused if unusable; ``axis``: outputs."""
        answer = self.outputs.finished(answer)
        if self.single and answer.shape[axis] > 1:
            raise ModelError(
                f"model must return one number a row here; it has the outputs "
                f"{', '.join(map(str, self.outputs.labels))}. Choose one, as in "
                f"lambda X: model(X)[:, 0]."
            )
        size = max(float(answer.max(initial=0)), -float(answer.min(initial=0)))
        if not np.isfinite(size):  # what is not finite is refused later, with its rows
            size = float(np.abs(answer).max(initial=0, where=np.isfinite(answer)))
        if size > MAX_SIZE:
            raise ModelError(
                f"model must answer with numbers up to {MAX_SIZE:g}, so that their fourth powers "
                f"stay within floating point; got {size:.3g}. Take other units for the output."
            )
        self.outputs.largest = max(self.outputs.largest, size)
        return answer

    def check_size(self) -> None:
        """Raise ``ValueError`` where powers of the answers so far are all 0."""
        check_size(self.outputs.largest, "Answers of the model", "Take other units for the output.")

    def at_rows(self, rows: str = "rows of X") -> FloatArray:
        """The model's answer at the rows as they are, (row, output); ``rows`` names them."""
        n, step = self.table.n_rows, self.batch_rows
        if n <= step:
            return self.ask_named(self.table.copied(), f"on all {n} {rows}")
        answers = []
        for number, part in enumerate(_slices(n, step), 1):
            batch = f"batch {number} of {-(-n // step)}: {self._named_rows(part)}"
            with self._naming(f"on {rows}, {batch}"):
                answers.append(self.raw(self.table.take(part).copied()))
        return self.accepted(np.concatenate(answers))

    def takes_fractions(self, position: int) -> bool:
        """Whether the model answers for values between those of a column of integers."""
        if not self.table.holds_integers(position):
            return True
        first = self.table.take(np.arange(1))
        try:
            between = Versions(position, [first.column(position) + 0.5])
            self.outputs(first.stacked([between]))
        except Exception:  # it looks whole numbers up
            return False
        return True

    def ask_named(self, rows: Any, where: str) -> FloatArray:
        """The model's answer; an error of its own says ``where`` the model raised it."""
        with self._naming(where):
            return self.ask(rows)

    @contextmanager
    def _naming(self, where: str) -> Iterator[None]:
        """Errors of the model say ``where`` it raised them."""
        try:
            yield
        except (ModelError, UnknownOutputError):
            raise
        except Exception as error:
            message = " ".join(str(error).split())
            if self.table.form.restore is not as_is:
                message += (
                    ". It got columns of text as they are. If it was fitted to numbers, make "
                    "numbers of them first, as by pd.to_numeric(X[name], errors='coerce')"
                )
            raise ModelError(f"model raised {type(error).__name__} {where}: {message}") from error

    def central(self, position: int) -> Differences:
        """math [1] by central differences."""
        x = self.table.column(position)
        step = kernel.central_step(x, self.outputs.step_precision)
        outputs, stored_columns = self.evaluate(
            position, kernel.central_arguments(x, step, x.min(), x.max())
        )
        return self.quotient(outputs, stored_columns, "central_difference")

    def finite(self, position: int, edges: FloatArray, x: FloatArray) -> Differences:
        """math [2]: slopes across the cells of values, which include jumps, unlike derivatives."""
        lower, upper = kernel.cell_ends(edges, x)
        outputs, stored_columns = self.evaluate(position, [upper, lower])
        return self.quotient(outputs, stored_columns, "finite_difference", edges)

    def between(self, position: int, lower: Values, upper: Values) -> tuple[FloatArray, FloatArray]:
        """Change of the output as one column goes from ``lower`` to ``upper``, row by row.

        Beside it what rounding of the output alone can do to it.
        """
        outputs, _ = self.evaluate(position, [upper, lower])
        f_upper, f_lower = (output.astype(np.float64, copy=False) for output in outputs)
        with np.errstate(invalid="ignore"):  # infinite answers, which are refused afterwards
            change = f_upper - f_lower
        return change, kernel.rounding_error(f_upper, f_lower, 1.0, self.precision)

    def curves(self, position: int, grid: Values) -> tuple[FloatArray, FloatArray]:
        """The output of every row as one column goes along a grid, math [41]: (row, grid, output).

        Beside it what rounding of the output alone can do to it.
        """
        read = self._read({position: grid})
        if read is not None:
            return self._curves(read)
        n_rows, answers = self.table.n_rows, None

        def columns(points: slice, rows: slice) -> list[Values]:
            n = len(range(*rows.indices(n_rows)))
            return [repeated(grid, point, n) for point in range(*points.indices(len(grid)))]

        for points, rows, answer in self._blocks(position, len(grid), columns):
            # One curve of one output lies in one piece.
            answers = _with_room(answers, answer, (answer.shape[-1], n_rows, len(grid)))
            answers[:, rows, points] = answer.transpose(2, 1, 0)
        assert answers is not None, "a grid has points"
        return self._curves(answers)

    def _curves(self, answers: NDArray[Any]) -> tuple[FloatArray, FloatArray]:
        """Curves (row, grid, output) from answers (output, row, grid), and their rounding."""
        curves = self.accepted(answers, axis=0)
        largest = np.maximum(curves.max(axis=(1, 2)), -curves.min(axis=(1, 2)))[None]
        curves = np.moveaxis(curves.astype(np.float64, copy=False), 0, -1)
        return curves, self.rounding(largest.astype(np.float64))

    def versions(self, position: int, rows: NDArray[np.int64], column: Values) -> FloatArray:
        """The output at rows, by their numbers and as often as named, with one column replaced."""
        read = self.take(rows)._read_versions([position], [[column]])
        if read is not None:
            return self.accepted(read[:, :, 0].T)
        name, answers, n_calls = self.table.names[position], [], -(-len(rows) // self.batch_rows)
        for number, part in enumerate(_slices(len(rows), self.batch_rows), 1):
            request = Versions(position, [column[part]], rows[part])
            stack = self.table.stacked([request])
            batch = "once" if n_calls == 1 else f"in batch {number} of {n_calls}"
            called = f"called {batch} with {len(stack)} rows of X with other levels of {name!r}"
            answers.append(self._named(stack, f"feature {name!r}", called, request))
        return self.accepted(np.concatenate(answers))

    def rounding(self, largest: FloatArray) -> FloatArray:
        """What rounding alone can do to a difference of outputs up to these sizes."""
        return kernel.rounding_error(largest, largest, 1.0, self.precision)

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
        read = self.take(np.arange(*part.indices(self.table.n_rows)))._read_versions(
            positions, versions
        )
        if read is not None:
            answer = self.accepted(read, axis=0)
            largest = np.abs(answer).max(axis=(1, 2))[None]
            shape = (-1, len(first), len(second), len(answer))
            return np.moveaxis(answer, 0, -1).reshape(shape), self.rounding(largest)
        names = " and ".join(repr(self.table.names[position]) for position in positions)
        table = self.table.take(part)
        of_first = [version for version in first for _ in second]
        rows = table.stacked([Versions(positions[0], of_first)])
        of_second = in_one([*second] * len(first))
        rows = table.holding(rows).stacked([Versions(positions[1], [of_second])])
        called = (
            f"called with {len(rows)} rows, {len(first) * len(second)} versions of "
            f"{self._named_rows(part)}"
        )
        answer = self.accepted(self._named(rows, f"features {names}", called))
        answer = answer.astype(np.float64, copy=False)
        shaped = answer.reshape(len(first), len(second), table.n_rows, -1)
        return np.moveaxis(shaped, 2, 0), self.rounding(np.abs(answer).max(axis=0)[None])

    def quotient(
        self,
        outputs: Sequence[FloatArray],
        arguments: Sequence[FloatArray],
        method: str,
        edges: FloatArray | None = None,
    ) -> Differences:
        """Slopes between two arguments, upper and lower, from the outputs at them."""
        f_upper, f_lower = (output.astype(np.float64, copy=False) for output in outputs)
        step = arguments[0] - arguments[1]
        with np.errstate(invalid="ignore", divide="ignore"):
            quotient = kernel.difference_quotient(f_upper, f_lower, step[:, None])
        error = kernel.quotient_error(f_upper, f_lower, step, self.precision)
        return Differences(quotient, error, method, edges, self.precision)

    def evaluate(
        self, position: int, columns: Sequence[Values]
    ) -> tuple[list[FloatArray], list[Any]]:
        """The outputs at versions of one column, and the columns as they are held."""
        answers: Any = self._read_versions([position], [columns])
        if answers is not None:
            answers = answers.T
        else:
            n_rows = self.table.n_rows

            def some(versions: slice, rows: slice) -> list[Values]:
                return [column[rows] for column in columns[versions]]

            for versions, rows, answer in self._blocks(position, len(columns), some):
                answers = _with_room(answers, answer, (len(columns), n_rows, answer.shape[-1]))
                answers[versions, rows] = answer
        return list(self.accepted(answers)), self.table.stored(position, columns)

    def _read(
        self, moved: Mapping[int, Values], choice: IntArray | None = None
    ) -> FloatArray | None:
        """Answers (output, row, version) read from the model; None if it has to be asked.

        Versions are values of one column or several. With ``choice`` (row, place), numbers of
        versions, (output, row, place).
        """
        n_versions = len(next(iter(moved.values())))
        n_answers = self.table.n_rows * n_versions if choice is None else choice.size
        reading = self.reading if n_answers >= READ_ROWS else None
        if reading is None or any(map(self.table.is_time, moved)):
            return None
        try:
            answers = reading.answers(self.table, moved, choice)
        except Exception:  # what the model says of these values, it says when it is asked
            return None
        self.outputs.n_read += n_answers
        self.outputs.answers_from = reading.source
        if self._bar is not None:
            self._bar.update(n_answers)
        return answers

    def _read_versions(
        self, positions: Sequence[int], versions: Sequence[Sequence[Values]]
    ) -> FloatArray | None:
        """Answers (output, row, version) at versions of columns, all with all, that are read."""
        n_rows = self.table.n_rows
        n_answers = n_rows * math.prod(map(len, versions))
        if n_answers < READ_ROWS or self.reading is None:
            return None
        parts = [pd.factorize(in_one([*some]), use_na_sentinel=False) for some in versions]
        shape = [len(values) for _, values in parts]
        if len(shape) > 1 and PAIRS * math.prod(shape) > n_answers:
            return None  # few rows have each pair of values
        choice = np.zeros(n_rows, dtype=np.intp)
        for column, (number, values) in enumerate(parts):
            number = number.reshape(-1, n_rows).T.reshape(n_rows, *[1] * column, -1)
            choice = choice[..., None] * len(values) + number
        every = np.unravel_index(np.arange(math.prod(shape)), shape)
        moved = {
            position: values.take(number)
            for position, (_, values), number in zip(positions, parts, every, strict=True)
        }
        return self._read(moved, choice.reshape(n_rows, -1))

    def _blocks(
        self, position: int, n_versions: int, columns: Any
    ) -> Iterator[tuple[slice, slice, NDArray[Any]]]:
        """Answers to all rows in versions of one column, so many at a time as a call has rows.

        Versions and rows of each call, and the answer (version, row, output); ``columns`` makes
        the values of versions and rows.
        """
        n_rows, name = self.table.n_rows, self.table.names[position]
        together = min(n_versions, self.batch_rows)
        # Whole columns as far as possible: many versions of all rows, or two of many rows.
        if n_rows <= self.batch_rows:
            together = min(together, self.batch_rows // n_rows)
        elif n_versions > 2:
            together = 1
        parts = [
            (versions, rows)
            for rows in _slices(n_rows, self.batch_rows // together)
            for versions in _slices(n_versions, together)
        ]
        for number, (versions, rows) in enumerate(parts, 1):
            request = Versions(position, columns(versions, rows))
            stack = self.table.take(rows).stacked([request])
            batch = "once" if len(parts) == 1 else f"in batch {number} of {len(parts)}"
            called = (
                f"called {batch} with {len(stack)} rows: {self._named_rows(rows)}, "
                f"{len(request.columns)} times, with {name!r}"
            )
            answer = self._named(stack, f"feature {name!r}", called, request)
            yield versions, rows, answer.reshape(len(request.columns), -1, answer.shape[1])

    def _named(
        self, rows: Any, whose: str, called: str, request: Versions | None = None
    ) -> NDArray[Any]:
        """The answer of the model; errors say for which feature and how it was called."""
        try:
            return self.raw(rows)
        except ModelError as error:
            raise ModelError(f"{whose[0].upper()}{whose[1:]}: {error}") from error.__cause__
        except UnknownOutputError:
            raise
        except Exception as error:
            text = ""
            if request is not None:  # the range of numbers, or the levels
                stored = self.table.stored(request.position, request.columns)
                values = pd.unique(pd.concat([pd.Series(column) for column in stored]))
                text = f" in {', '.join(map(str, values[:10]))}{', ...' * (len(values) > 10)}"
                if pd.api.types.is_float_dtype(values.dtype) and not pd.isna(values).all():
                    text = f" from {np.nanmin(values):.6g} to {np.nanmax(values):.6g}"
            raise ModelError(
                f"model raised {type(error).__name__} for {whose}, {called}{text}: {error}"
            ) from error

    def _named_rows(self, part: slice) -> str:
        """Which rows of ``X`` these are."""
        first, last = part.start, min(part.stop, self.table.n_rows) - 1
        low, high = (first, last) if self.numbers is None else self.numbers[[first, last]].tolist()
        n = last - first + 1
        some = "" if high - low + 1 == n else f"{n} of the "
        return f"{some}rows {low} to {high} of X"


def _slices(n: int, step: int) -> Iterator[slice]:
    """Parts of n things, so many each."""
    return (slice(begin, min(begin + step, n)) for begin in range(0, n, step))


def _parts(rows: Any, most: int) -> Iterator[Any]:
    """A table for the model, in parts of so many rows at most, each numbered from 0."""
    if len(rows) <= most:
        yield rows
        return
    for part in _slices(len(rows), most):
        frame = isinstance(rows, pd.DataFrame)
        yield rows.iloc[part].reset_index(drop=True) if frame else rows[part]


def _with_room(
    answers: NDArray[Any] | None, answer: NDArray[Any], shape: tuple[int, ...]
) -> NDArray[Any]:
    """An array for all answers, of a type that holds them and this one."""
    if answers is None:
        return np.empty(shape, answer.dtype)
    dtype = np.result_type(answers, answer)
    return answers if answers.dtype == dtype else answers.astype(dtype)


def repeated(values: Values, position: int, n: int) -> Values:
    """One of the values, n times."""
    if isinstance(values, np.ndarray):
        return np.full(n, values[position], dtype=values.dtype)
    return values[np.full(n, position)]


# --- versions of several columns in one call of the model -----------------------------------------


# Rows that a call for several columns has at most: longer calls save nothing, and some models need
# much memory for a row.
MAX_CALL_ROWS = 1 << 14
# Columns that change their type are asked for together with others where at least so many do, if
# the answers to at most so many rows do not depend on the type.
WIDENED, SAME_ROWS = 4, 500

R = TypeVar("R")
Key = TypeVar("Key")


# The output at every version, each (row, output), and the versions as the table holds them.
Answers: TypeAlias = tuple[list[FloatArray], list[Any]]
# What asks for versions until it has its result.
Steps: TypeAlias = Generator[Versions, Answers, R]


def answered(quotients: DifferenceQuotients | None, steps: Mapping[Key, Steps[R]]) -> dict[Key, R]:
    """Results of all steps; what they ask for at the same time is asked for together.

    Without a model they ask for nothing.
    """
    results: dict[Key, R] = {}
    waiting: dict[Key, Versions] = {}

    def go_on(key: Key, answer: Answers | None) -> None:
        try:
            waiting[key] = next(steps[key]) if answer is None else steps[key].send(answer)
        except StopIteration as done:
            results[key] = done.value

    for key in steps:
        go_on(key, None)
    while waiting:
        assert quotients is not None, "a model is asked"
        requests, waiting = waiting, {}
        for key, answer in zip(
            requests, evaluated(quotients, list(requests.values())), strict=True
        ):
            go_on(key, answer)
    return results


def evaluated(quotients: DifferenceQuotients, requests: Sequence[Versions]) -> Iterator[Answers]:
    """Answers to each, in this order, as `DifferenceQuotients.evaluate` gives them.

    Small tables are put below each other, so that one call answers for several columns. If such a
    call raises, the columns are asked for one by one, and the error names one of them.
    """
    groups = _groups(quotients, requests)
    answers: dict[int, NDArray[Any]] = {}
    for index, request in enumerate(requests):
        position, columns, some = request
        group = groups.get(index, [])
        if len(group) > 1 and index == group[0] and not quotients.outputs.apart:
            some_requests = [requests[number] for number in group]
            try:
                raw = quotients.raw(quotients.table.stacked(some_requests))
            except Exception:  # each is asked for by itself, which says for which column it is
                quotients.outputs.apart = True
            else:
                ends = np.cumsum([request.size for request in some_requests])
                for number, rows in zip(group, np.split(raw, ends[:-1]), strict=True):
                    shape = (len(requests[number].columns), -1, raw.shape[1])
                    answers[number] = rows.reshape(shape)
        if index in answers:
            answer = answers.pop(index)
            yield list(quotients.accepted(answer)), quotients.table.stored(position, columns)
        elif len(columns) == 1 and some is not None:
            # Rows may be named several times: no table of all of them is made.
            named = np.arange(quotients.table.n_rows)[some]
            yield [quotients.versions(position, named, columns[0])], [*columns]
        else:
            part = quotients if some is None else quotients.take(some)
            yield part.evaluate(position, columns)


def _groups(quotients: DifferenceQuotients, requests: Sequence[Versions]) -> dict[int, list[int]]:
    """Numbers of those that are asked for in one call, for each of them that is not alone."""
    most = min(MAX_CALL_ROWS, quotients.batch_rows)
    table = quotients.table
    sizes = [request.size for request in requests]
    keeps_type = [_keeps_type(table, request) for request in requests]
    widened = []
    for index, (position, columns, _) in enumerate(requests):
        # Numbers of another type, none missing, in versions that are floats.
        is_number = table.is_numeric(position) and not table.is_time(position)
        if keeps_type[index] or sizes[index] > most or not is_number:
            continue
        floats = all(column.dtype == np.float64 for column in columns)
        if floats and not table.series(position).isna().any():
            widened.append(index)
    positions = sorted({requests[index].position for index in widened})
    if len(positions) < WIDENED or not _same_if_widened(quotients, positions):
        widened = []
    groups: dict[int, list[int]] = {}
    group: list[int] = []
    for index, size in enumerate(sizes):
        is_read = size >= READ_ROWS and quotients.reading is not None
        if size <= most and not is_read and (keeps_type[index] or index in widened):
            if sum(sizes[number] for number in group) + size > most:
                group = []
            group.append(index)
            groups[index] = group
    return groups


def _keeps_type(table: Table, request: Versions) -> bool:
    """Whether the column has the type of its versions, so that other rows do not change."""
    if isinstance(table.data, np.ndarray):
        return True
    columns = request.columns if are_floats(request.columns) else map(as_column, request.columns)
    return {column.dtype for column in columns} == {table.dtypes[request.position]}


def _same_if_widened(quotients: DifferenceQuotients, positions: Sequence[int]) -> bool:
    """Whether the model answers the same, digit by digit, where numbers are held as floats.

    A model that makes texts of whole numbers does not.
    """
    alike = quotients.outputs.alike
    for tested, same in alike.items():
        if same and tested.issuperset(positions):
            return True
    key = frozenset(positions)
    if key not in alike:
        rows = evenly(quotients.table.n_rows, SAME_ROWS)
        as_given = quotients.table.take(rows).copied()
        floats = as_given.copy()
        assert isinstance(floats, pd.DataFrame), "an array has one type"
        for position in positions:
            floats[floats.columns[position]] = quotients.table.column(position)[rows]
        try:
            answers = quotients.raw(as_given), quotients.raw(floats)
        except Exception:  # what the model says of these types, it need not say of its own
            alike[key] = False
        else:
            alike[key] = np.array_equal(*answers)
    return alike[key]
