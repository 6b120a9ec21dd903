"""The user's table in its own form: frames, arrays, columns by name or number."""

from __future__ import annotations

import datetime as dt
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property, partial
from numbers import Real
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rhale_stats.arguments import times
from rhale_stats.arguments.checks import check_finite, check_size, refuse_chunks
from rhale_stats.arguments.rows import as_array, as_weights
from rhale_stats.arguments.words import listed, warn
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.models import forms
from rhale_stats.models.adapters.adapter import is_real
from rhale_stats.models.forms import ARRAY, TableFormat
from rhale_stats.schema.features import names_of_labels
from rhale_stats.schema.variables import unit_mapping

# Texts for missing values in columns of numbers or dates.
PLACEHOLDERS = frozenset(
    ("", "?", "-", ".", "na", "n/a", "#n/a", "nan", "nat", "null", "none", "missing", "unknown")
)
# Text with at most so many distinct values is levels, whatever it reads.
MAX_CODES = 12


class Reading(NamedTuple):
    """A column as numbers or dates, and how it is turned back."""

    values: pd.Series[Any]
    back: Callable[[pd.Series[Any]], pd.Series[Any]] = pd.Series.copy
    kind: str = "numbers"
    days: bool = False


def readings_of(frame: pd.DataFrame) -> tuple[dict[int, Reading], list[str]]:
    """Columns that hold numbers or dates in another type, by position; a line about each."""
    readings, lines = {}, []
    for position, dtype in enumerate(frame.dtypes):
        column, reading = frame.iloc[:, position], None
        if isinstance(dtype, pd.PeriodDtype):
            dates = column.dt.to_timestamp().astype("datetime64[s]")
            reading = Reading(dates, partial(pd.Series.astype, dtype=dtype), "dates", days=True)
        elif pd.api.types.is_object_dtype(dtype) or isinstance(dtype, pd.StringDtype):
            reading = _reading(column)
        if reading is not None:
            readings[position], gone = reading, reading.values.isna() & column.notna()
            more = f"; {listed(list(column[gone].unique()))} in {gone.sum()} rows is missing"
            name = str(frame.columns[position])
            lines.append(f"Column {name!r} is read as {reading.kind}{more if gone.any() else ''}.")
    return readings, lines


def _reading(column: pd.Series[Any]) -> Reading | None:
    """Placeholders are missing values if most of the distinct values are none."""
    try:
        every = column.dropna().unique().tolist()
    except TypeError:  # values without a hash
        return None
    fill = [
        value for value in every if isinstance(value, str) and value.strip().lower() in PLACEHOLDERS
    ]
    values = [value for value in every if value not in fill]
    if len(values) <= len(fill):
        return None
    plain = column.where(~column.isin(fill)).astype(object)
    reading = (_of_text if isinstance(values[0], str) else _of_objects)(plain, values)
    if reading is None:
        return None
    back, gap = reading.back, fill[0] if fill else None

    def restored(some: pd.Series[Any]) -> pd.Series[Any]:
        return back(some).astype(object).where(some.notna(), gap).astype(column.dtype)

    return reading._replace(back=restored)


def _of_objects(plain: pd.Series[Any], values: list[Any]) -> Reading | None:
    kinds = set(map(type, values))

    def every(*types: type) -> bool:
        return all(issubclass(kind, types) for kind in kinds) and bool not in kinds

    if every(Real, Decimal):
        back = (lambda some: some.map(str).map(Decimal)) if every(Decimal) else pd.Series.copy
        return Reading(plain.astype(np.float64), back)
    if every(dt.datetime, np.datetime64):
        return Reading(pd.to_datetime(plain), kind="dates")
    if kinds == {dt.date}:
        dates = pd.to_datetime(plain).astype("datetime64[s]")
        return Reading(dates, lambda some: some.dt.date, "dates", days=True)
    return None


def _of_text(plain: pd.Series[Any], values: list[Any]) -> Reading | None:
    """Numbers, unless they are codes such as 007, or dates of one format."""
    if len(values) <= MAX_CODES or not all(isinstance(value, str) for value in values):
        return None
    texts, n_known = pd.Series(values), plain.notna().sum()
    numbers = pd.to_numeric(plain, errors="coerce").astype(np.float64)
    if np.isfinite(numbers).sum() == n_known:
        whole = texts.str.fullmatch(r"\s*[+-]?\d+\s*").all()
        back = lambda x: f"{x:.0f}" if whole and x == round(x) else repr(float(x))  # noqa: E731
        codes = texts.str.match(r"\s*[+-]?0\d").any()
        return None if codes else Reading(numbers, lambda some: some.map(back, na_action="ignore"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the day is, or is not, first
        guess = partial(pd.tseries.api.guess_datetime_format, values[0])
        patterns = guess(), guess(dayfirst=True)
    for pattern in filter(None, patterns):
        dates = pd.to_datetime(plain, format=pattern, errors="coerce")
        if dates.notna().sum() == n_known and getattr(dates.dtype, "kind", "") == "M":
            break
    else:
        return None
    days = bool((dates.dropna() == dates.dropna().dt.normalize()).all())
    dates = dates.astype("datetime64[s]") if days else dates
    return Reading(dates, lambda some: some.dt.strftime(pattern), "dates", days)


# --- the user's table in its own form -------------------------------------------------------------


# Values of a column: numbers, or levels.
Values: TypeAlias = NDArray[Any] | pd.api.extensions.ExtensionArray
# A column of numbers with at most so many distinct values, each twice or more on average, is
# discrete: months, not hours.
DISCRETE_LEVELS = 12
# Levels that a feature may have: a curve over them has a covariance of the square of their number.
MAX_LEVELS = 2000
# A table that shares its columns with another is safe from what a model does to it.
COPY_ON_WRITE = int(pd.__version__.partition(".")[0]) >= 3
# Characters of the longest column name.
MAX_NAME = 1_000


class Versions(NamedTuple):
    """Rows of a table in versions of one column; rows by a mask or by numbers, None for all."""

    position: int
    columns: Sequence[Values]
    rows: NDArray[np.bool_] | IntArray | None = None

    @property
    def size(self) -> int:
        """Rows in all versions."""
        return len(self.columns) * len(self.columns[0])


@dataclass(frozen=True)
class Table:
    """The rows of ``X`` as pandas or NumPy hold them, and the form in which the user has them."""

    data: pd.DataFrame | NDArray[np.floating[Any]]
    form: TableFormat
    names: list[str]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.data)

    @property
    def index(self) -> pd.Index[Any] | None:
        """Labels of the rows, where they have some."""
        if isinstance(self.data, pd.DataFrame) and self.form.labelled:
            return self.data.index
        return None

    @property
    def attrs(self) -> Mapping[Any, Any]:
        """What the data say of themselves: units, the name of the output."""
        return self.data.attrs if isinstance(self.data, pd.DataFrame) else {}

    def in_column_type(
        self, position: int, rows: NDArray[np.bool_], values: FloatArray
    ) -> tuple[Values, Values]:
        """Numbers, and what rows hold of a column, both in the type of the column."""
        if isinstance(self.data, np.ndarray):
            return values, self.data[rows, position]
        column_values = self.series(position)[rows].array
        if self.is_time(position):
            return self.of_type(position, values), column_values
        return pd.Series(values).astype(column_values.dtype).array, column_values

    def weights(self, weights: Any, kind: str) -> FloatArray | None:
        """Weights of the rows; a Series goes by the labels of the rows, where they have some."""
        return None if weights is None else as_weights(weights, self.n_rows, kind, self.index)

    def take(self, rows: NDArray[np.bool_] | NDArray[np.int64] | slice) -> Table:
        """Some of the rows, by a mask, numbers or a slice; itself by a mask or slice of all."""
        if isinstance(rows, slice):
            is_whole = rows == slice(0, self.n_rows)
        else:
            is_whole = rows.dtype == bool and bool(rows.all())
        if is_whole:
            return self
        if isinstance(self.data, pd.DataFrame):
            return self.holding(self.data.iloc[rows])
        return self.holding(self.data[rows])

    def holding(self, data: pd.DataFrame | NDArray[np.floating[Any]]) -> Table:
        """A table of other rows of the same columns and form."""
        return replace(self, data=data)

    def copied(self) -> pd.DataFrame | NDArray[np.floating[Any]]:
        """A copy of the rows, numbered from 0, which the model may change."""
        if isinstance(self.data, np.ndarray):
            return self.data.copy()
        return self.data.copy(deep=not COPY_ON_WRITE).reset_index(drop=True)

    @cached_property
    def dtypes(self) -> list[Any]:
        """Types of the columns; one type of an array."""
        if isinstance(self.data, pd.DataFrame):
            return list(self.data.dtypes)
        return [self.data.dtype] * len(self.names)

    def is_numeric(self, position: int) -> bool:
        """Whether a column holds numbers (booleans are not), or dates, which are days."""
        dtype = self.dtypes[position]
        is_number = is_real(dtype) and not pd.api.types.is_bool_dtype(dtype)
        return times.is_time(dtype) or is_number

    def holds_integers(self, position: int) -> bool:
        """Whether a column, or an array as it was given, is of a type of integers."""
        if isinstance(self.data, np.ndarray):
            return self.form is not ARRAY
        return pd.api.types.is_integer_dtype(self.dtypes[position])

    def is_time(self, position: int) -> bool:
        """Whether a column holds dates, times or durations."""
        return times.is_time(self.dtypes[position])

    def in_days(self, position: int) -> bool:
        """Whether a column holds dates without a time of the day."""
        return position in self.form.days or times.is_date(self.dtypes[position])

    def whole(self, position: int, values: FloatArray, *, integers: bool = False) -> FloatArray:
        """Edges or a grid as the column can hold them: whole days of dates without a time.

        With ``integers`` whole numbers of integers as well.
        """
        is_whole = self.in_days(position) or (integers and self.holds_integers(position))
        return np.unique(np.rint(values)) if is_whole else values

    def has_cells(self, position: int, *, slope_of: str | None = None) -> bool:
        """Whether a column has no derivative: few distinct values, or whole days.

        Where derivatives are asked for, of the column ``slope_of``, whole days are refused.
        """
        if slope_of is None:
            return self.is_discrete(position) or self.in_days(position)
        if self.in_days(position):
            raise ValueError(
                f"method must be 'auto' or 'finite_difference' for dates: derivatives need steps "
                f"of less than a day; column {slope_of!r} holds dates without a time. Use one of "
                f"these, or convert it to a datetime."
            )
        return False

    def of_type(self, position: int, values: Values) -> Values:
        """Numbers of a column of dates as these dates; other values as they are."""
        if not self.is_time(position) or not pd.api.types.is_float_dtype(values.dtype):
            return values
        dtype, whole = self.dtypes[position], self.in_days(position)
        dates: Values = times.from_days(np.asarray(values, np.float64), dtype, whole=whole)
        return dates

    @property
    def units(self) -> dict[str, str]:
        """Units of columns, where the data say so, or their types."""
        out = unit_mapping(self.attrs)
        for position, name in enumerate(self.names):
            if self.is_time(position):
                out[name] = times.time_units(self.dtypes[position])
        return out

    def column(self, position: int) -> FloatArray:
        """One column as a contiguous float array; missing values are NaN."""
        if isinstance(self.data, np.ndarray):
            return np.array(self.data[:, position], dtype=np.float64)
        if self.is_time(position):
            return times.as_days(self.data.iloc[:, position].array)
        return self.data.iloc[:, position].to_numpy(dtype=np.float64, na_value=np.nan, copy=True)

    def series(self, position: int) -> pd.Series[Any]:
        """One column in the type in which the table has it."""
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

    def is_nested(self, position: int) -> bool:
        """Whether a column holds lists, records, arrays or complex numbers: it has no effect."""
        column = self.series(position)
        if not pd.api.types.is_object_dtype(column.dtype):
            return pd.api.types.is_complex_dtype(column.dtype)
        values = column.dropna()
        return len(values) > 0 and isinstance(values.iloc[0], list | dict | set | np.ndarray)

    def is_key(self, position: int) -> bool:
        """Whether a column has more than one level for every two rows: an identifier."""
        return bool(2 * self.series(position).nunique() > self.n_rows > 4)

    def kind(self, position: int) -> str:
        """Whether a column has an axis, or values of its own."""
        axis = self.is_numeric(position) and not self.is_discrete(position)
        return "continuous" if axis else "discrete"

    def like(
        self, values: FloatArray, levels: Mapping[int, pd.Index[Any]] = MappingProxyType({})
    ) -> pd.DataFrame | NDArray[np.floating[Any]]:
        """Numbers (rows, columns) as a table of this form; of ``levels`` they are the numbers."""
        if isinstance(self.data, np.ndarray):
            return values.astype(self.data.dtype, copy=False)
        columns: dict[int, Any] = {}
        for position, (x, dtype) in enumerate(zip(values.T, self.dtypes, strict=True)):
            if self.is_time(position):
                columns[position] = self.of_type(position, x)
            elif position in levels:
                level = levels[position].take(x.astype(np.intp))
                columns[position] = pd.Series(level.array, dtype=dtype)
            else:
                columns[position] = pd.Series(x).astype(dtype)
        return pd.DataFrame(columns).set_axis(self.data.columns, axis=1)

    def stacked(self, requests: Sequence[Versions]) -> Any:
        """A table of the rows below each other, those of each request in all of its versions."""
        every, places, n_before = np.arange(self.n_rows), [], 0
        for request in requests:
            places.append(slice(n_before, n_before + request.size))
            n_before += request.size
        numbers = np.concatenate(
            [
                np.tile(every if rows is None else every[rows], len(columns))
                for _, columns, rows in requests
            ]
        )
        # Copies of all rows take a fraction of the time of rows by their numbers.
        are_copies = all(request.rows is None for request in requests)
        n_copies = sum(len(request.columns) for request in requests)
        if isinstance(self.data, np.ndarray):
            stack = np.tile(self.data, (n_copies, 1)) if are_copies else self.data[numbers]
            for (position, columns, _), place in zip(requests, places, strict=True):
                stack[place, position] = np.concatenate([np.asarray(column) for column in columns])
            return stack
        if self.is_of_floats and all(are_floats(columns) for _, columns, _ in requests):
            by_column = self.data.to_numpy().T
            values = np.tile(by_column, n_copies) if are_copies else by_column[:, numbers]
            for (position, columns, _), place in zip(requests, places, strict=True):
                values[position, place] = in_one(columns)
            # As one block: faster than one by one.
            frame = pd.DataFrame(values.T, columns=self.data.columns, copy=False)
            frame.attrs = dict(self.data.attrs)
            return frame
        frame = (
            pd.concat([self.data] * n_copies, ignore_index=True)
            if are_copies
            else self.data.iloc[numbers].reset_index(drop=True)
        )
        for position in dict.fromkeys(request.position for request in requests):
            some = [
                (place, request.columns)
                for request, place in zip(requests, places, strict=True)
                if request.position == position
            ]
            frame[self.data.columns[position]] = self._with_versions(position, numbers, some)
        return frame

    def _with_versions(
        self, position: int, numbers: IntArray, some: Sequence[tuple[slice, Sequence[Values]]]
    ) -> Any:
        """A column at rows, by their numbers, with versions of it at these places."""
        joined: list[Any] = [
            in_one([self.of_type(position, column) for column in columns]) for _, columns in some
        ]
        dtype = self.series(position).dtype
        sparse = dtype if isinstance(dtype, pd.SparseDtype) else None
        if sparse is not None:  # nothing can be written to such a column
            joined, dtype = [np.asarray(versions) for versions in joined], sparse.subtype
        if len(joined[0]) == len(numbers):
            values = joined[0].copy()
        elif all(isinstance(versions, np.ndarray) for versions in joined):
            values = self.column(position)[numbers]
        else:
            values = self.series(position).array[numbers].copy()
        for (place, _), versions in zip(some, joined, strict=True):
            values[place] = versions
        # Whole numbers in the type of a column of integers.
        if pd.api.types.is_integer_dtype(dtype) and pd.api.types.is_float_dtype(values.dtype):
            floats = pd.Series(values).to_numpy(np.float64, na_value=np.nan)
            whole = _whole_as(floats, getattr(dtype, "numpy_dtype", dtype))
            values = values if whole is floats else pd.Series(whole, dtype=dtype).array
        if sparse is not None:
            with np.errstate(invalid="ignore"):
                alike = np.asarray(values).astype(sparse.subtype)
            values = alike if np.array_equal(alike, values) else values
            values = pd.arrays.SparseArray(values, fill_value=sparse.fill_value)
        return as_column(values)

    def stored(self, position: int, columns: Sequence[Values]) -> list[Values]:
        """Versions of a column as the table holds them: single precision rounds; dates are days."""
        if self.is_time(position):
            return [times.as_days(self.of_type(position, column)) for column in columns]
        if not isinstance(self.data, np.ndarray) or self.data.dtype == np.float64:
            return list(columns)
        return [np.asarray(column).astype(self.data.dtype).astype(np.float64) for column in columns]

    @cached_property
    def is_of_floats(self) -> bool:
        """Whether all columns of a DataFrame are of double precision."""
        return isinstance(self.data, pd.DataFrame) and all(
            dtype == np.float64 for dtype in self.dtypes
        )


def are_floats(columns: Sequence[Values]) -> bool:
    """Whether versions of a column are arrays of floating point."""
    return {(type(column), column.dtype.kind) for column in columns} == {(np.ndarray, "f")}


def in_one(columns: Sequence[Values]) -> Any:
    """Parts or versions of a column as one; a Series for each takes longer than most models."""
    if len(columns) == 1:
        return columns[0]
    if {*map(type, columns)} == {np.ndarray}:
        return np.concatenate([np.asarray(column) for column in columns])
    return pd.concat([as_column(column) for column in columns], ignore_index=True).array


def as_column(column: Values) -> pd.Series[Any]:
    """A column of its own type: left to itself pandas makes texts of objects that are texts."""
    return pd.Series(column, dtype=object if str(column.dtype) == "object" else None)


def as_table(X: Any, parameter: str = "X") -> Table:
    """``X`` with names for its columns; arrays get ``x0``, ``x1``, ...

    What is no table of numbers, has no rows, or has two columns of one name is refused.
    """
    refuse_chunks(X, parameter)
    data, form = forms.read(X, parameter)
    if isinstance(data, pd.DataFrame):
        names = column_names(data, parameter)
        table = Table(*_with_readings(data, form), names)
    else:
        if hasattr(data, "toarray"):
            raise TypeError(
                f"{parameter} must be a table with a value in every cell; got the sparse "
                f"{type(data).__name__} of shape {data.shape}. Pass {parameter}.toarray()."
            )
        array, form = as_array(data, f"{parameter} must hold"), ARRAY
        if array.ndim != 2:
            raise ValueError(
                f"{parameter} must be a DataFrame or a two-dimensional array of shape "
                f"(rows, features); got shape {array.shape}."
            )
        if not np.issubdtype(array.dtype, np.floating):
            if array.dtype.kind in "iu":
                form = TableFormat("array", restore=partial(_whole_as, dtype=array.dtype))
            try:
                array = array.astype(np.float64)
            except (TypeError, ValueError) as error:
                raise TypeError(
                    f"{parameter} must hold numbers when it is an array; got dtype "
                    f"{array.dtype}. Pass a DataFrame, whose other columns are left out."
                ) from error
        table = Table(array, form, [f"x{position}" for position in range(array.shape[1])])
    if table.n_rows == 0:
        raise ValueError(f"{parameter} must have at least one row; got none.")
    return table


def _with_readings(data: pd.DataFrame, form: TableFormat) -> tuple[pd.DataFrame, TableFormat]:
    """The table with columns of objects and text as the numbers or dates that they hold.

    The model gets such columns as they were.
    """
    readings, lines = readings_of(data)
    if not readings:
        return data, form
    warn(" ".join(lines) + " The model gets them as they were.")
    read = data.copy(deep=False)
    for position, reading in readings.items():
        read.isetitem(position, reading.values.array)

    def restore(rows: Any) -> Any:
        rows = rows.copy(deep=False)
        for position, reading in readings.items():
            rows.isetitem(position, reading.back(rows.iloc[:, position]))
        return rows

    days = form.days | {position for position, reading in readings.items() if reading.days}
    return read, replace(form, days=days, restore=restore)


def _whole_as(numbers: NDArray[Any], dtype: Any) -> NDArray[Any]:
    """Whole numbers in a type of integers that holds them; others as they are."""
    with np.errstate(invalid="ignore"):
        whole = numbers.astype(dtype)
    return whole if np.array_equal(whole, numbers) else numbers


def column_names(frame: pd.DataFrame, parameter: str) -> list[str]:
    """Names of columns as text; raise ``ValueError`` unless they differ."""
    names = names_of_labels(frame.columns)
    for position, name in enumerate(names):
        if len(name) > MAX_NAME:
            raise ValueError(
                f"{parameter} must have column names of at most {MAX_NAME:,} characters, which "
                f"tables and pictures show; the one of column {position} has {len(name):,}, and "
                f"begins with {name[:20]!r}. Rename it."
            )
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(
            f"{parameter} must have distinct column names; got {', '.join(map(repr, repeated))} "
            f"more than once. Rename or drop columns."
        )
    return names


def check_column(table: Table, position: int, *, missing: str = "raise") -> FloatArray:
    """One column of X, refused with its name and rows where it is not finite.

    With ``missing="drop"`` only infinite values are refused, and a column without any value.
    """
    column, name = table.column(position), table.names[position]
    if missing == "raise":
        check_finite(
            column,
            "X",
            name,
            "Drop or impute these rows, leave them out (missing='drop'), or keep them for a model "
            "that takes missing values (missing='bin').",
        )
        _check_range(column, name)
        return column
    present = ~np.isnan(column)
    refuse_without_values(name, present)
    check_finite(column[present], "X", name, "Drop or bound these rows before the call.")
    _check_range(column[present], name)
    return column


def refuse_without_values(name: str, present: NDArray[np.bool_]) -> None:
    """Raise ``ValueError`` where no row has a value of a column."""
    if not present.any():
        raise ValueError(
            f"X must have values of feature {name!r}; all {len(present)} are missing. Leave the "
            f"feature out: features=[...]."
        )


def _check_range(column: FloatArray, name: str) -> None:
    """Raise ``ValueError`` where squares of a column's range are no numbers, or 0."""
    with np.errstate(over="ignore"):
        size = float(np.ptp(column)) if len(column) else 0.0
    check_size(size, f"The range of feature {name!r} in X", "Take other units for the column.")
