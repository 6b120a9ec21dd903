"""Versions of several columns in one call of the model: fewer and larger calls of small tables."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.models.differences import DifferenceQuotients
from rhale_stats.models.table import Table, Values, as_column

# Rows that a call for several columns has at most: longer calls save nothing, and some models need
# much memory for a row.
MAX_CALL_ROWS = 1 << 14
# Columns that change their type are asked for together with others where at least so many do, if
# the answers to at most so many rows do not depend on the type.
WIDENED, SAME_ROWS = 4, 500

R = TypeVar("R")
Key = TypeVar("Key")


class Versions(NamedTuple):
    """Rows of a table in versions of one column; rows by a mask or by numbers, None for all."""

    position: int
    columns: Sequence[Values]
    rows: NDArray[np.bool_] | IntArray | None = None


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
    answers: dict[int, tuple[NDArray[Any], list[Any]]] = {}
    for index, request in enumerate(requests):
        group = groups.get(index, [])
        if len(group) > 1 and index == group[0] and not quotients.outputs.apart:
            group_answers = _in_one_call(quotients, [requests[number] for number in group])
            answers |= dict(zip(group, group_answers, strict=False))
        if index in answers:
            answer, stored_columns = answers.pop(index)
            yield list(quotients.accepted(answer)), stored_columns
        elif len(request.columns) == 1 and request.rows is not None:
            # Rows may be named several times: no table of all of them is made.
            rows = np.arange(quotients.table.n_rows)[request.rows]
            yield (
                [quotients.versions(request.position, rows, request.columns[0])],
                [*request.columns],
            )
        else:
            part_quotients = quotients if request.rows is None else quotients.take(request.rows)
            yield part_quotients.evaluate(request.position, request.columns)


def _groups(quotients: DifferenceQuotients, requests: Sequence[Versions]) -> dict[int, list[int]]:
    """Numbers of those that are asked for in one call, for each of them that is not alone."""
    most = min(MAX_CALL_ROWS, quotients.batch_rows)
    table = quotients.table
    sizes = [len(request.columns) * len(request.columns[0]) for request in requests]
    keeps_type = [_keeps_type(table, request) for request in requests]
    widened = [
        index
        for index, request in enumerate(requests)
        if not keeps_type[index] and sizes[index] <= most and _is_widened(table, request)
    ]
    positions = sorted({requests[index].position for index in widened})
    if len(positions) < WIDENED or not _same_if_widened(quotients, positions):
        widened = []
    groups: dict[int, list[int]] = {}
    group: list[int] = []
    for index, size in enumerate(sizes):
        if size <= most and (keeps_type[index] or index in widened):
            if sum(sizes[number] for number in group) + size > most:
                group = []
            group.append(index)
            groups[index] = group
    return groups


def _keeps_type(table: Table, request: Versions) -> bool:
    """Whether the column has the type of its versions, so that other rows do not change."""
    if isinstance(table.data, np.ndarray):
        return True
    dtype = table.data.dtypes.iloc[request.position]
    return all(as_column(column).dtype == dtype for column in request.columns)


def _is_widened(table: Table, request: Versions) -> bool:
    """Whether the column holds numbers of another type, none missing, and versions are floats."""
    if table.is_time(request.position) or not table.is_numeric(request.position):
        return False
    floats = all(column.dtype == np.float64 for column in request.columns)
    return floats and not table.series(request.position).isna().any()


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
        n = quotients.table.n_rows
        rows = np.unique(np.linspace(0, n - 1, min(n, SAME_ROWS)).round().astype(np.int64))
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


def _in_one_call(
    quotients: DifferenceQuotients, requests: Sequence[Versions]
) -> list[tuple[NDArray[Any], list[Any]]]:
    """Answers (version, row, output) as the model gave them, and versions as they are held.

    Nothing, if the call raises.
    """
    stack, stored_columns = _stacked(quotients.table, requests)
    try:
        answer = quotients.raw(stack)
    except Exception:  # each is asked for by itself, which says for which column it is
        quotients.outputs.apart = True
        return []
    ends = np.cumsum([len(request.columns) * len(request.columns[0]) for request in requests])
    parts = np.split(answer, ends[:-1])
    return [
        (part.reshape(len(request.columns), -1, answer.shape[1]), columns)
        for request, part, columns in zip(requests, parts, stored_columns, strict=True)
    ]


def _stacked(table: Table, requests: Sequence[Versions]) -> tuple[Any, list[list[Any]]]:
    """All rows in all versions below each other, and the versions as the table holds them."""
    every = np.arange(table.n_rows)
    numbers = np.concatenate(
        [
            np.tile(every if request.rows is None else every[request.rows], len(request.columns))
            for request in requests
        ]
    )
    sizes = [len(request.columns) * len(request.columns[0]) for request in requests]
    begins = np.cumsum([0, *sizes])[:-1]
    places = [slice(begin, begin + size) for begin, size in zip(begins, sizes, strict=True)]
    data = table.data
    if isinstance(data, np.ndarray):
        stack = data[numbers]
        for request, place in zip(requests, places, strict=True):
            stack[place, request.position] = _joined(request.columns)
        if stack.dtype == np.float64:
            return stack, [[*request.columns] for request in requests]
        stored_columns = [
            np.split(stack[place, request.position].astype(np.float64), len(request.columns))
            for request, place in zip(requests, places, strict=True)
        ]
        return stack, stored_columns
    if (data.dtypes == np.float64).all():
        # As one block, which is faster than column by column.
        values = data.to_numpy().T[:, numbers]
        for request, place in zip(requests, places, strict=True):
            values[request.position, place] = _joined(request.columns)
        frame = pd.DataFrame(values.T, columns=data.columns, copy=False)
        frame.attrs = dict(data.attrs)
        return frame, [[*request.columns] for request in requests]
    frame = data.iloc[numbers].reset_index(drop=True)
    by_column: dict[int, list[tuple[Versions, slice]]] = {}
    for request, place in zip(requests, places, strict=True):
        by_column.setdefault(request.position, []).append((request, place))
    for position, some in by_column.items():
        frame[data.columns[position]] = _column(table, position, numbers, some)
    return frame, [[*request.columns] for request in requests]


def _joined(columns: Sequence[Values]) -> NDArray[Any]:
    return np.concatenate([np.asarray(column) for column in columns])


def _column(
    table: Table, position: int, numbers: IntArray, some: Sequence[tuple[Versions, slice]]
) -> Any:
    """A column at these rows, with its versions at their places."""
    if all(isinstance(column, np.ndarray) for request, _ in some for column in request.columns):
        values: Any = table.column(position)[numbers]
    else:
        values = table.series(position).array[numbers].copy()
    for request, place in some:
        joined = [as_column(column) for column in request.columns]
        values[place] = joined[0].array if len(joined) == 1 else pd.concat(joined).array
    values = table.as_held(position, values)
    return values if isinstance(values, np.ndarray) else as_column(values)
