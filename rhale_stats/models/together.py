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
TOGETHER_ROWS = 1 << 14
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
    found: dict[Key, R] = {}
    waiting: dict[Key, Versions] = {}

    def go_on(key: Key, answer: Answers | None) -> None:
        try:
            waiting[key] = next(steps[key]) if answer is None else steps[key].send(answer)
        except StopIteration as done:
            found[key] = done.value

    for key in steps:
        go_on(key, None)
    while waiting:
        assert quotients is not None, "a model is asked"
        asked, waiting = waiting, {}
        for key, answer in zip(asked, evaluated(quotients, list(asked.values())), strict=True):
            go_on(key, answer)
    return found


def evaluated(quotients: DifferenceQuotients, asked: Sequence[Versions]) -> Iterator[Answers]:
    """Answers to each, in this order, as `DifferenceQuotients.evaluate` gives them.

    Small tables are put below each other, so that one call answers for several columns. If such a
    call raises, the columns are asked for one by one, and the error names one of them.
    """
    groups = _groups(quotients, asked)
    known: dict[int, tuple[NDArray[Any], list[Any]]] = {}
    for at, one in enumerate(asked):
        group = groups.get(at, [])
        if len(group) > 1 and at == group[0] and not quotients.outputs.apart:
            found = _in_one_call(quotients, [asked[number] for number in group])
            known |= dict(zip(group, found, strict=False))
        if at in known:
            answer, held = known.pop(at)
            yield list(quotients.accepted(answer)), held
        elif len(one.columns) == 1 and one.rows is not None:
            # Rows may be named several times: no table of all of them is made.
            rows = np.arange(quotients.table.n_rows)[one.rows]
            yield [quotients.versions(one.position, rows, one.columns[0])], [*one.columns]
        else:
            own = quotients if one.rows is None else quotients.at(one.rows)
            yield own.evaluate(one.position, one.columns)


def _groups(quotients: DifferenceQuotients, asked: Sequence[Versions]) -> dict[int, list[int]]:
    """Numbers of those that are asked for in one call, for each of them that is not alone."""
    most = min(TOGETHER_ROWS, quotients.batch_rows)
    table = quotients.table
    sizes = [len(one.columns) * len(one.columns[0]) for one in asked]
    kept = [_keeps_type(table, one) for one in asked]
    widened = [
        at
        for at, one in enumerate(asked)
        if not kept[at] and sizes[at] <= most and _is_widened(table, one)
    ]
    positions = sorted({asked[at].position for at in widened})
    if len(positions) < WIDENED or not _same_if_widened(quotients, positions):
        widened = []
    groups: dict[int, list[int]] = {}
    group: list[int] = []
    for at, size in enumerate(sizes):
        if size <= most and (kept[at] or at in widened):
            if sum(sizes[number] for number in group) + size > most:
                group = []
            group.append(at)
            groups[at] = group
    return groups


def _keeps_type(table: Table, asked: Versions) -> bool:
    """Whether the column has the type of its versions, so that other rows do not change."""
    if isinstance(table.data, np.ndarray):
        return True
    own = table.data.dtypes.iloc[asked.position]
    return all(as_column(column).dtype == own for column in asked.columns)


def _is_widened(table: Table, asked: Versions) -> bool:
    """Whether the column holds numbers of another type, none missing, and versions are floats."""
    if table.is_time(asked.position) or not table.is_numeric(asked.position):
        return False
    floats = all(column.dtype == np.float64 for column in asked.columns)
    return floats and not table.series(asked.position).isna().any()


def _same_if_widened(quotients: DifferenceQuotients, positions: Sequence[int]) -> bool:
    """Whether the model answers the same, digit by digit, where numbers are held as floats.

    A model that makes texts of whole numbers does not.
    """
    known = quotients.outputs.alike
    for tested, same in known.items():
        if same and tested.issuperset(positions):
            return True
    key = frozenset(positions)
    if key not in known:
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
            known[key] = False
        else:
            known[key] = np.array_equal(*answers)
    return known[key]


def _in_one_call(
    quotients: DifferenceQuotients, asked: Sequence[Versions]
) -> list[tuple[NDArray[Any], list[Any]]]:
    """Answers (version, row, output) as the model gave them, and versions as they are held.

    Nothing, if the call raises.
    """
    stack, held = _stacked(quotients.table, asked)
    try:
        answer = quotients.raw(stack)
    except Exception:  # each is asked for by itself, which says for which column it is
        quotients.outputs.apart = True
        return []
    ends = np.cumsum([len(one.columns) * len(one.columns[0]) for one in asked])
    parts = np.split(answer, ends[:-1])
    return [
        (part.reshape(len(one.columns), -1, answer.shape[1]), own)
        for one, part, own in zip(asked, parts, held, strict=True)
    ]


def _stacked(table: Table, asked: Sequence[Versions]) -> tuple[Any, list[list[Any]]]:
    """All rows in all versions below each other, and the versions as the table holds them."""
    every = np.arange(table.n_rows)
    numbers = np.concatenate(
        [np.tile(every if one.rows is None else every[one.rows], len(one.columns)) for one in asked]
    )
    sizes = [len(one.columns) * len(one.columns[0]) for one in asked]
    begins = np.cumsum([0, *sizes])[:-1]
    places = [slice(begin, begin + size) for begin, size in zip(begins, sizes, strict=True)]
    data = table.data
    if isinstance(data, np.ndarray):
        stack = data[numbers]
        for one, place in zip(asked, places, strict=True):
            stack[place, one.position] = _joined(one.columns)
        if stack.dtype == np.float64:
            return stack, [[*one.columns] for one in asked]
        held = [
            np.split(stack[place, one.position].astype(np.float64), len(one.columns))
            for one, place in zip(asked, places, strict=True)
        ]
        return stack, held
    if (data.dtypes == np.float64).all():
        # As one block, which is faster than column by column.
        values = data.to_numpy().T[:, numbers]
        for one, place in zip(asked, places, strict=True):
            values[one.position, place] = _joined(one.columns)
        frame = pd.DataFrame(values.T, columns=data.columns, copy=False)
        frame.attrs = dict(data.attrs)
        return frame, [[*one.columns] for one in asked]
    frame = data.iloc[numbers].reset_index(drop=True)
    by_column: dict[int, list[tuple[Versions, slice]]] = {}
    for one, place in zip(asked, places, strict=True):
        by_column.setdefault(one.position, []).append((one, place))
    for position, some in by_column.items():
        frame[data.columns[position]] = _column(table, position, numbers, some)
    return frame, [[*one.columns] for one in asked]


def _joined(columns: Sequence[Values]) -> NDArray[Any]:
    return np.concatenate([np.asarray(column) for column in columns])


def _column(
    table: Table, position: int, numbers: IntArray, some: Sequence[tuple[Versions, slice]]
) -> Any:
    """A column at these rows, with its versions at their places."""
    if all(isinstance(column, np.ndarray) for one, _ in some for column in one.columns):
        values: Any = table.column(position)[numbers]
    else:
        values = table.series(position).array[numbers].copy()
    for one, place in some:
        joined = [as_column(column) for column in one.columns]
        values[place] = joined[0].array if len(joined) == 1 else pd.concat(joined).array
    values = table.as_held(position, values)
    return values if isinstance(values, np.ndarray) else as_column(values)
