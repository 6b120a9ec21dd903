"""The columns that rows may be split by, candidate splits, and which rows are on which side."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from rhale_stats.arguments.checks import check_finite
from rhale_stats.arguments.rows import storable
from rhale_stats.arguments.times import are_dates, as_days, date_texts, is_time, time_units
from rhale_stats.arrays.binning import bin_edges, is_resolved, regular_axis, sorting
from rhale_stats.arrays.moments import BLOCK_ROWS, Axis, FloatArray, IntArray, cell_index, part
from rhale_stats.arrays.regions import (
    Children,
    RowsOfNode,
    all_subsets,
    one_against_rest,
    subset_children,
    threshold_children,
)
from rhale_stats.models.forms import read
from rhale_stats.models.table import as_table, column_names
from rhale_stats.schema.features import feature_names, units_of_all
from rhale_stats.schema.identity import row_labels
from rhale_stats.schema.levels import MISSING_LEVEL

GLANCE = 1000


# --- conditioning columns ------------------------------------------------------------------------


@dataclass(frozen=True)
class Conditioning:
    """One column that splits may use: numbers, or the numbers of its levels."""

    name: str
    kind: str
    values: NDArray[Any]
    levels: tuple[Any, ...] = ()
    units: str = ""

    def take(self, rows: IntArray | NDArray[np.bool_]) -> Conditioning:
        """The column at some rows."""
        return replace(self, values=part(self.values, rows))

    def meets(self, condition: Condition, rows: IntArray) -> NDArray[np.bool_]:
        """Which of the rows are on one side of a split of this column."""
        values = part(self.values, rows)
        if condition.operator in (UP_TO, ABOVE):
            below = (values <= condition.threshold) & (values < np.inf)
            return np.asarray(below if condition.operator == UP_TO else ~below)
        inside = np.array([level in condition.levels for level in self.levels])
        return np.asarray(inside[values])


def conditioning_columns(
    local: xr.Dataset, conditioning: pd.DataFrame | ArrayLike | None, feature: str | None
) -> list[Conditioning]:
    """Columns for splits of the effect of ``feature``: those given, or the other features."""
    names = feature_names(local)
    if conditioning is None:
        table = local["x"].transpose("obs", "feature").values
        units = units_of_all(local)
        columns = [
            _numeric(name, table[:, position], units[position])
            for position, name in enumerate(names)
            if name != feature
        ]
        if not columns:
            raise ValueError(
                f"conditioning must be given: local holds no feature besides {feature!r}. Pass a "
                f"DataFrame with a row for each row of local."
            )
        return columns
    rows = checked_table(local, conditioning)
    labels = column_names(rows, "conditioning")
    columns = [
        _column(name, rows.iloc[:, position])
        for position, name in enumerate(labels)
        if name != feature
    ]
    if not columns:
        raise ValueError(
            f"conditioning must have a column besides {feature!r}; got "
            f"{', '.join(labels) or 'none'}."
        )
    return columns


def checked_table(local: xr.Dataset, conditioning: pd.DataFrame | ArrayLike) -> pd.DataFrame:
    """The table of conditioning columns; refused unless it has the rows of ``local``."""
    rows = frame_of(conditioning, "conditioning")
    if len(rows) != local.sizes["obs"]:
        raise ValueError(
            f"conditioning must have a row for each of the {local.sizes['obs']} rows of local; got "
            f"{len(rows)}."
        )
    obs = row_labels(local)
    if isinstance(conditioning, pd.DataFrame) and obs is not None:
        index, labels = pd.Index(storable(rows.index)), pd.Index(obs)
        numbers = pd.RangeIndex(len(obs))
        # Rows that are only numbered have no labels, unless those of local are numbers as well.
        unlabelled = index.equals(numbers) and not labels.sort_values().equals(numbers)
        if not (index.equals(labels) or unlabelled):
            raise ValueError(
                "conditioning must have the index of the rows of local, in the same order; its "
                "index differs. Reindex it: conditioning.loc[local['obs'].values]."
            )
    return rows


def frame_of(input_table: object, what: str) -> pd.DataFrame:
    """A table with names for its columns; arrays get ``x0``, ``x1``, ..."""
    data, _ = read(input_table, what)
    if isinstance(data, pd.DataFrame):
        return data
    table = as_table(data, what)
    return pd.DataFrame(table.data, columns=table.names)


def _column(name: str, values: pd.Series) -> Conditioning:
    gone = values.isna().to_numpy()
    if gone.all():
        raise ValueError(f"conditioning must have values in column {name!r}; all are missing.")
    dates, truths = is_time(values.dtype), pd.api.types.is_bool_dtype(values.dtype)
    if dates or (pd.api.types.is_numeric_dtype(values.dtype) and not truths):
        numbers = as_days(values.array) if dates else values.to_numpy(np.float64, na_value=np.nan)
        units = time_units(values.dtype) if dates else ""
        column = _numeric(name, numbers[~gone], units)
        if not gone.any():
            return column
        # Beyond all thresholds: the last of them parts these rows from all others.
        values_or_inf = np.where(gone, np.inf, numbers)
        return Conditioning(name, "numeric", values_or_inf, units=units)
    if gone.any():
        values = values.astype(object).map(str).where(~gone, MISSING_LEVEL)
    if isinstance(values.dtype, pd.CategoricalDtype):
        levels = tuple(_plain(level) for level in values.cat.categories)
        if not all(isinstance(level, str | int | float | bool) for level in levels):
            levels = tuple(map(str, levels))  # intervals and dates
        kind = "ordinal" if values.cat.ordered else "nominal"
        return _with_levels(name, kind, np.asarray(values.cat.codes, dtype=np.int64), levels)
    try:
        codes, texts = pd.factorize(values, sort=True)
    except TypeError as error:
        raise TypeError(
            f"conditioning must have columns of numbers, booleans, texts or categories; the values "
            f"of {name!r} cannot be put in order ({error})."
        ) from error
    plain = tuple(_plain(level) for level in texts)
    mixed = len({isinstance(level, str) for level in plain}) > 1
    if mixed or not all(isinstance(level, str | int | float | bool) for level in plain):
        kinds = ", ".join(sorted({type(level).__name__ for level in plain}))
        raise TypeError(
            f"conditioning must have columns of numbers, booleans, texts or categories; "
            f"{name!r} holds {kinds}. Turn all of it into numbers or text."
        )
    return _with_levels(name, "nominal", codes.astype(np.int64), plain)


def _plain(level: Any) -> Any:
    """A level as Python's own, so that it can be stored as text."""
    return level.item() if isinstance(level, np.generic) else level


def _with_levels(name: str, kind: str, codes: IntArray, levels: tuple[Any, ...]) -> Conditioning:
    """Only the levels that occur."""
    present, codes = np.unique(codes, return_inverse=True)
    return Conditioning(name, kind, codes, tuple(levels[code] for code in present))


def _numeric(name: str, values: FloatArray, units: str) -> Conditioning:
    """Numbers; of two values it is said which, not on which side."""
    values = np.ascontiguousarray(values, dtype=np.float64)
    check_finite(values, "conditioning", name, "Drop these rows, or make them a level.")
    low, high = values.min(), values.max()

    # A few rows settle it for most columns.
    looks = (values[:GLANCE], values)
    if low < high and all(((some == low) | (some == high)).all() for some in looks):
        levels = tuple(int(v) if v == int(v) else float(v) for v in (low, high))
        return Conditioning(name, "nominal", (values == high).astype(np.int64), levels, units)
    return Conditioning(name, "numeric", values, units=units)


# --- one side of a split, in words ----------------------------------------------------------------


ROOT_RULE, OR_MISSING = "all rows", " or missing"
UP_TO, ABOVE, EQUAL, IN = "<=", ">", "==", "in"


class Condition(NamedTuple):
    """One side of a split: an operator with a threshold, or with the levels that it keeps.

    ``text`` is the condition by itself.
    """

    feature: str
    operator: str
    text: str
    threshold: float = np.nan
    levels: tuple[Any, ...] = ()
    units: str = ""

    def holds(self, values: pd.Series) -> NDArray[np.bool_]:
        """Rows that meet the condition; a missing value meets none that does not name it."""
        if is_time(values.dtype):
            values = pd.Series(as_days(values.array))
        if self.operator in (UP_TO, ABOVE):
            try:
                numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
            except (TypeError, ValueError) as error:
                raise TypeError(
                    f"X must have numbers in column {self.feature!r}, which is compared with "
                    f"{self.threshold:.15g}; got {values.dtype} ({error})."
                ) from error
            if self.operator == UP_TO:
                return np.asarray(numbers <= self.threshold)
            return np.asarray((numbers > self.threshold) | (bool(self.levels) & np.isnan(numbers)))
        if set(map(type, self.levels)) == {str}:
            values = values.astype(object).map(str).where(values.notna(), MISSING_LEVEL)
        return values.isin(list(self.levels)).to_numpy()


def threshold_text(threshold: float, units: str) -> str:
    """A threshold as text; a date where it is one."""
    if are_dates(units) and np.isfinite(threshold):
        return date_texts([threshold], units)[0]
    return f"{threshold:.15g}"


def rule_text(path: Sequence[Condition]) -> str:
    """All conditions on the way to a node, each column once, in the order of the splits."""
    if not path:
        return ROOT_RULE
    texts = []
    for name in dict.fromkeys(condition.feature for condition in path):
        conditions = [condition for condition in path if condition.feature == name]
        if conditions[-1].operator not in (UP_TO, ABOVE):
            # A later split keeps a part of the levels that remained.
            texts.append(conditions[-1].text)
            continue
        below = min((c.threshold for c in conditions if c.operator == UP_TO), default=np.inf)
        above = max((c.threshold for c in conditions if c.operator == ABOVE), default=-np.inf)
        upper, lower = [threshold_text(end, conditions[-1].units) for end in (below, above)]
        if np.isfinite(below) and np.isfinite(above):
            texts.append(f"{lower} < {name} ≤ {upper}")
        elif np.isfinite(below):
            texts.append(f"{name} ≤ {upper}")
        elif np.isfinite(above):
            missing = OR_MISSING if all(condition.levels for condition in conditions) else ""
            texts.append(f"{name} > {lower}{missing}")
        else:
            texts.append(conditions[-1].text)
    return " and ".join(texts)


def readable(low: float, high: float) -> float:
    """The shortest decimal number in [low, high), near the middle: it parts the same rows."""
    if low <= 0 < high:
        return 0.0
    middle = low + (high - low) / 2
    first = -1 - int(np.floor(np.log10(abs(middle))))
    for digits in range(first, first + 18):
        rounded = round(middle, digits)
        if low <= rounded < high:
            return rounded
    return low


def as_json(levels: tuple[Any, ...]) -> str:
    """Levels as text that can be stored."""
    return json.dumps(list(levels)) if levels else ""


def of_json(text: str) -> tuple[Any, ...]:
    """Levels from text."""
    return tuple(json.loads(text)) if text else ()


# --- candidate splits of each column --------------------------------------------------------------


THRESHOLDS = ("quantile", "equal_width", "exact")
# Up to this number of levels every subset is tried; beyond it, each level against the rest.
SUBSET_LEVELS = 12
# Up to this number of thresholds, direct comparison is faster than a search.
COMPARED = 64
# Rows that stay in the cache of a processor while they are compared.
BLOCK_COMPARED = 1 << 13


class SplitCandidates(NamedTuple):
    """Splits of one column in one node: the code of every row, and what each split takes left.

    Without ``subsets``, split k takes codes up to k. ``thresholds`` are those of numbers,
    ``levels`` the numbers of the levels that the codes stand for.
    """

    codes: NDArray[np.integer]
    n_codes: int
    thresholds: FloatArray | None = None
    levels: NDArray[Any] | None = None
    subsets: NDArray[np.bool_] | None = None

    @property
    def n_splits(self) -> int:
        """How many splits there are."""
        return self.n_codes - 1 if self.subsets is None else len(self.subsets)

    def left_codes(self, split: int) -> NDArray[np.bool_]:
        """Codes on the left of one split."""
        if self.subsets is None:
            return np.arange(self.n_codes) <= split
        return np.asarray(self.subsets[split])

    def goes_left(self, split: int) -> NDArray[np.bool_]:
        """Rows on the left of one split."""
        return np.asarray(self.left_codes(split)[self.codes])

    def take(self, rows: IntArray) -> SplitCandidates:
        """The same splits of other rows."""
        return self._replace(codes=self.codes[rows])

    def children(self, rows: RowsOfNode, n_draws: int = 1) -> Iterable[Children]:
        """Sums of rows on both sides of all splits; ``rows`` may be those of several draws."""
        if not self.n_splits:
            return ()
        if self.subsets is None:
            return threshold_children(self.codes, self.n_codes, rows, n_draws)
        return subset_children(self.codes, self.subsets, rows, n_draws)


def _smallest(n_codes: int) -> type[np.integer]:
    return np.uint8 if n_codes <= 256 else np.int32


def candidates_of(
    column: Conditioning, thresholds: str, n_thresholds: int, counts: FloatArray | None = None
) -> SplitCandidates:
    """The splits that are tried; ``counts`` say how often a row occurs."""
    if column.kind != "numeric":
        present, codes = np.unique(column.values, return_inverse=True)
        n_codes, subsets = len(present), None
        if column.kind != "ordinal":
            subsets = (all_subsets if n_codes <= SUBSET_LEVELS else one_against_rest)(n_codes)
        codes = codes.astype(_smallest(n_codes))
        return SplitCandidates(codes, n_codes, levels=present, subsets=subsets)
    values = column.values
    finite = np.isfinite(values)
    if not finite.all():
        finite_values, finite_counts = values[finite], None if counts is None else counts[finite]
        cuts = np.unique(finite_values)
        if thresholds != "exact" and len(cuts) > 1:
            cuts = np.append(quantile_cuts(finite_values, n_thresholds, finite_counts), cuts[-1])
        return thresholds_at(values, cuts)
    low, high = float(values.min()), float(values.max())
    if thresholds == "exact" or not is_resolved(low, high, n_thresholds + 1):
        return thresholds_at(values, np.unique(values)[:-1])
    if thresholds == "equal_width":
        # One compiled pass; an edge is the smallest number on its right.
        axis = regular_axis(low, high, n_thresholds + 1)
        edges = bin_edges(axis, np.arange(n_thresholds + 1), low, high)[1:-1]
        cells = cells_of_rows(axis, values, _smallest(n_thresholds + 1))
        return SplitCandidates(cells, n_thresholds + 1, np.nextafter(edges, -np.inf))
    return thresholds_at(values, quantile_cuts(values, n_thresholds, counts))


def cells_of_rows(axis: Axis, x: FloatArray, dtype: type[np.integer]) -> NDArray[np.integer]:
    """The cell of every row, block by block; the largest value is in the last one."""
    cells = np.empty(len(x), dtype=dtype)
    for begin in range(0, len(x), BLOCK_ROWS):
        block = slice(begin, begin + BLOCK_ROWS)
        cells[block] = np.minimum(cell_index(axis, x[block]), len(axis) - 1)
    return cells


def thresholds_at(values: FloatArray, cuts: FloatArray) -> SplitCandidates:
    """Splits at given thresholds: a value on a threshold is on its left."""
    n_codes = len(cuts) + 1
    if len(cuts) > COMPARED:
        codes = np.searchsorted(cuts, values, side="left").astype(_smallest(n_codes))
        return SplitCandidates(codes, n_codes, cuts)
    above = np.zeros(len(values), dtype=np.uint8)
    for begin in range(0, len(values), BLOCK_COMPARED):
        block = slice(begin, begin + BLOCK_COMPARED)
        for cut in cuts:
            above[block] += values[block] > cut
    return SplitCandidates(above, n_codes, cuts)


def quantile_cuts(values: FloatArray, n: int, counts: FloatArray | None = None) -> FloatArray:
    """Distinct values at the k / (n + 1) quantiles, without the largest: it would split nothing."""
    k, order = np.arange(1, n + 1), sorting(values)
    if counts is None:
        rank = np.maximum(-(-k * len(values) // (n + 1)) - 1, 0)
    else:
        below = np.cumsum(counts[order])
        rank = np.searchsorted(below * (n + 1), k * below[-1])
    cuts = np.unique(values[order[rank]])
    return np.asarray(cuts[cuts < values[order[-1]]])


def sides_of(
    column: Conditioning,
    candidates: SplitCandidates,
    split: int,
    rows: IntArray,
    judge: IntArray | None = None,
) -> tuple[Condition, Condition]:
    """Left and right of a split of the ``rows`` of a column.

    Levels that occur only in rows of ``judge`` join their neighbours; without an order they go
    right.
    """
    if column.kind == "numeric":
        values, left = part(column.values, rows), candidates.goes_left(split)
        below = float(np.max(values, where=left, initial=-np.inf))
        above = float(np.min(values, where=~left, initial=np.inf))
        cut = above if np.isinf(above) else readable(below, above)
        gone = (MISSING_LEVEL,) if np.isinf(values).any() else ()
        cut_text, name = threshold_text(cut, column.units), column.name
        texts = f"{name} ≤ {cut_text}", f"{name} > {cut_text}{OR_MISSING if gone else ''}"
        if np.isinf(cut):
            texts = f"{name} is not missing", f"{name} is missing"
        return (
            Condition(name, UP_TO, texts[0], cut, units=column.units),
            Condition(name, ABOVE, texts[1], cut, gone, column.units),
        )
    assert candidates.levels is not None, "a column of levels has them"
    inside = candidates.left_codes(split)
    levels, inside_levels = candidates.levels, candidates.levels[inside]
    if judge is not None:
        levels = np.union1d(levels, column.values[judge])
    is_left = np.isin(levels, inside_levels)
    if column.kind == "ordinal":
        is_left = levels <= inside_levels.max()
    left, right = levels[is_left], levels[~is_left]
    return _side(column, left, right), _side(column, right, left)


def _side(column: Conditioning, codes: NDArray[Any], rest: NDArray[Any]) -> Condition:
    """The side that keeps these levels, in its shortest form."""
    levels = tuple(column.levels[level] for level in codes)
    order = column.levels if column.kind == "ordinal" else ()
    every = len(codes) + len(rest) == len(column.levels) and MISSING_LEVEL not in column.levels
    name, text = column.name, f"{column.name} in {{{', '.join(map(str, levels))}}}"
    if len(levels) == 1:
        text = f"{name} = {levels[0]}"
    elif len(rest) == 1 and every and not order:
        text = f"{name} ≠ {column.levels[rest[0]]}"
    elif order and levels[0] == order[0]:
        text = f"{name} ≤ {levels[-1]}"
    elif order and levels[-1] == order[-1]:
        text = f"{name} ≥ {levels[0]}"
    elif order:
        text = f"{levels[0]} ≤ {name} ≤ {levels[-1]}"
    return Condition(name, EQUAL if len(codes) == 1 else IN, text, levels=levels)
