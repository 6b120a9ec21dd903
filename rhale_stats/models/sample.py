"""What an estimator is given, read once: table, weights, features with their levels, options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rhale_stats.arguments.checks import check_percentiles
from rhale_stats.arguments.rows import evenly
from rhale_stats.arguments.words import first_rows, listed, warn
from rhale_stats.arrays.answers import inner_range
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.arrays.probes import differing
from rhale_stats.models.adapters.adapter import ModelColumns
from rhale_stats.models.adapters.libraries import columns_known_of
from rhale_stats.models.differences import DifferenceQuotients
from rhale_stats.models.options import ModelOptions
from rhale_stats.models.outputs import Model, ModelError
from rhale_stats.models.table import (
    MAX_LEVELS,
    Table,
    as_table,
    check_column,
    refuse_without_values,
)
from rhale_stats.schema.features import label_facts, position_of
from rhale_stats.schema.identity import row_coordinate
from rhale_stats.schema.levels import MISSING_LEVEL, level_text
from rhale_stats.schema.variables import software


class Levels(NamedTuple):
    """One column as numbers of its levels, -1 where a value is missing or its row has no weight.

    ``first`` is a row of each level: the model gets levels as the column itself holds them.
    ``unused`` are those without rows that count; ``with_missing`` says whether one of the others is
    of the rows without a value.
    """

    name: str
    kind: str
    code: IntArray
    texts: list[str]
    first: IntArray
    unused: list[str]
    with_missing: bool

    def ordered(self, order: IntArray) -> Levels:
        """The same with levels in another order."""
        number = np.empty(len(order) + 1, dtype=np.int64)
        number[order], number[-1] = np.arange(len(order)), -1
        texts = [self.texts[position] for position in order]
        return self._replace(code=number[self.code], texts=texts, first=self.first[order])


def levels_of(sample: Sample, position: int) -> Levels:
    """Levels of a column that occur, in their own order: that of categories, else sorted.

    With ``missing="bin"`` rows without a value are a level, the last.
    """
    table = sample.table
    is_numeric = table.is_numeric(position)
    return levels_beside(sample, table.names[position], table.series(position), is_numeric)


def levels_beside(sample: Sample, name: str, series: pd.Series[Any], is_numeric: bool) -> Levels:
    """Levels of a column with an entry for every row of the table, which may stand beside it."""
    gone, weightless = series.isna().to_numpy(), ~sample.present
    if gone.any() and sample.missing == "raise":
        refuse_gaps(name, gone)
    refuse_without_values(name, ~(gone | weightless))
    kind, code, names = numbered(series, is_numeric)
    binned = sample.missing == "bin" and bool(gone.any())
    if binned:
        if MISSING_LEVEL in names:
            raise ValueError(
                f"Levels of feature {name!r} must not hold {MISSING_LEVEL!r} with missing='bin', "
                f"because rows without a value get this level; got a level of that name. Rename "
                f"it, or use missing='drop'."
            )
        code, names = np.where(gone, len(names), code), [*names, MISSING_LEVEL]
    absent = weightless if binned else gone | weightless
    occurs, first, occurring_code = np.unique(code[~absent], return_index=True, return_inverse=True)
    out = np.full(len(code), -1)
    out[~absent] = occurring_code
    if len(occurs) > MAX_LEVELS:
        raise ValueError(
            f"features must have at most {MAX_LEVELS:,} levels; column {name!r} has "
            f"{len(occurs):,}: the covariance of its curve has {len(occurs) ** 2:,} numbers, and "
            f"every level in every row makes {len(occurs) * len(code):,} rows for the model. Put "
            f"levels together, or leave the column out: the model still receives it."
        )
    texts = [names[position] for position in occurs]
    if len(set(texts)) < len(texts):
        twice = next(text for text in texts if texts.count(text) > 1)
        raise ValueError(
            f"Levels of feature {name!r} must differ as text; two of them read {twice!r}. Convert "
            f"the column to text."
        )
    unused = []
    if isinstance(series.dtype, pd.CategoricalDtype):
        categories = names[: len(series.cat.categories)]
        unused = [level for position, level in enumerate(categories) if position not in occurs]
    at_first = np.flatnonzero(~absent)[first]
    return Levels(name, kind, out, texts, at_first, unused, MISSING_LEVEL in texts and binned)


def numbered(series: pd.Series[Any], is_numeric: bool) -> tuple[str, IntArray, list[str]]:
    """Kind of a column, the number of the level of every row (-1: none), and levels as text."""
    kind = "nominal"
    if isinstance(series.dtype, pd.CategoricalDtype):
        code, values = series.cat.codes.to_numpy(dtype=np.int64), series.cat.categories
        kind = "ordinal" if series.cat.ordered else kind
    else:
        try:
            code, values = pd.factorize(series, sort=True)
        except TypeError:  # what cannot be compared, as texts and tuples
            code, values = pd.factorize(series.map(level_text, na_action="ignore"), sort=True)
        if pd.api.types.is_bool_dtype(series.dtype) or set(values) <= {True, False}:
            kind = "ordinal" if is_numeric else "boolean"
        elif is_numeric:
            kind = "ordinal"
    return kind, np.asarray(code, dtype=np.int64), [level_text(value) for value in values]


def in_order(order: Sequence[Any], levels: Levels, what: str = "order") -> Levels:
    """Levels in the order of a list, which must have each once; "missing" may be left out."""
    texts = [level_text(level) for level in order]
    if levels.with_missing and MISSING_LEVEL not in texts:
        texts.append(MISSING_LEVEL)
    unknown = [text for text in texts if text not in levels.texts]
    absent = [text for text in levels.texts if text not in texts]
    twice = [text for text in dict.fromkeys(texts) if texts.count(text) > 1]
    for wrong_texts, why in (
        (unknown, "not among the levels with rows"),
        (absent, "left out"),
        (twice, "named twice"),
    ):
        if wrong_texts:
            raise ValueError(
                f"{what} of feature {levels.name!r} must hold each of its levels once, "
                f"{', '.join(map(repr, levels.texts))}; {', '.join(map(repr, wrong_texts))} "
                f"{'is' if len(wrong_texts) == 1 else 'are'} {why}."
            )
    return levels.ordered(np.array([levels.texts.index(text) for text in texts]))


# Rows that the model answers twice.
TWICE = 500
# Steps are longer for answers whose size is so many times their range.
OFFSETS = 100.0, 1e6
# Answers to the same rows may differ by so many units of rounding; with other rows beside them by
# this share, as sums of matrices are taken in another order.
ROUNDINGS, BATCH_TOLERANCE = 64, 1e-3


# --- which columns of a table are features --------------------------------------------------------


# Reasons for which a column is left out, and which naming it does not change.
NESTED = "lists, records or complex numbers"
TOO_MANY = f"more than {MAX_LEVELS:,} levels"


def default_columns(
    table: Table,
    model_columns: ModelColumns | None = None,
    named: Sequence[int] = (),
    *,
    constants: bool = True,
    axes_only: bool = False,
) -> tuple[list[int], list[int]]:
    """Columns of which effects are taken by default, and those of them whose values are levels.

    All that the model uses but identifiers and nested columns, which a warning names, as it does
    constants and levels where these are not wanted. Levels are what is no number, what is
    ``named``, and numbers with few values; of those of a formula only what it has in ``C(...)``.
    """
    names, levels = table.names, list(named)
    left: dict[str, list[str]] = {}
    chosen = list(range(len(names))) if model_columns is None else model_columns.positions(names)
    for p in [p for p in chosen if p not in named]:
        coded = model_columns is not None and names[p] in model_columns.levels
        plain = model_columns is not None and model_columns.discrete
        numeric, why = table.is_numeric(p), ""
        if table.is_nested(p):
            why = NESTED
        elif not constants and table.series(p).nunique() < 2:
            why = "one value"
        elif not (numeric or coded or axes_only) and table.is_key(p):
            why = "more than one level for every two rows"
        elif not (numeric or axes_only) and table.series(p).nunique() > MAX_LEVELS:
            why = TOO_MANY
        elif not numeric or coded or (not plain and table.is_discrete(p)):
            of_numbers = "levels in the formula" if coded else "discrete"
            why = (of_numbers if numeric else "not numeric") if axes_only else ""
            levels.append(p)
        if why:
            left.setdefault(why, []).append(names[p])
    gone = [name for some in left.values() for name in some]
    chosen = [p for p in dict.fromkeys([*chosen, *named]) if names[p] not in gone]
    reasons = "; ".join(f"{listed(some)} ({why})" for why, some in left.items())
    if not chosen:
        what = "at least one continuous numeric column" if axes_only else "a column with an effect"
        raise TypeError(f"X must have {what}; got {reasons}. {_advice(left)}")
    if left:
        warn(f"Left out: {reasons}. {_advice(left)}")
    return chosen, [p for p in chosen if p in levels]


def _advice(left: dict[str, list[str]]) -> str:
    """What to do about columns that were left out, by the reason."""
    if set(left) <= {NESTED, TOO_MANY}:
        return "Make columns of numbers, or of fewer levels, of them."
    if not set(left) - {NESTED, TOO_MANY, "not numeric"}:
        return "ale(model, X) has the effects of their levels, and rhale with categorical=."
    return "Name columns in features= to take them."


def columns_and_levels(
    table: Table,
    features: str | int | Sequence[str | int] | None,
    categorical: str | int | Sequence[str | int] | None,
    model_columns: ModelColumns | None,
    *,
    constants: bool = True,
) -> tuple[list[int], list[int]]:
    """Columns named, or those of the default, and those of them whose values are levels."""
    named = [] if categorical is None else columns_named(table, categorical, "categorical")
    if features is None:
        return default_columns(table, model_columns, named, constants=constants)
    chosen = list(dict.fromkeys([*columns_named(table, features), *named]))
    return chosen, [p for p in chosen if p in named or not table.is_numeric(p)]


def positions_of(
    table: Table,
    features: str | int | Sequence[str | int] | None,
    model_columns: ModelColumns | None = None,
) -> list[int]:
    """Columns chosen by name or number; by default all numeric ones that are not discrete.

    ``model_columns`` are the columns that the model uses.
    """
    if features is None:
        return default_columns(table, model_columns, axes_only=True)[0]
    positions = columns_named(table, features)
    for position in positions:
        if not table.is_numeric(position):
            name = table.names[position]
            raise TypeError(
                f"features must be numeric; column {name!r} is not. Effects of its levels: "
                f"ale(model, X, {name!r}), or rhale(model, X, categorical={name!r})."
            )
    return positions


def columns_named(
    table: Table, selection: str | int | Sequence[str | int], parameter: str = "features"
) -> list[int]:
    """Columns by name or number, each once."""
    several = [selection] if isinstance(selection, str | int | np.integer) else list(selection)
    positions = [position_of(name, table.names, parameter) for name in several]
    nested = [table.names[position] for position in positions if table.is_nested(position)]
    if nested:
        raise TypeError(
            f"{parameter} must hold one plain value a row; column {nested[0]!r} holds lists, "
            f"records or complex numbers. Leave it out: the model still receives it."
        )
    if not positions:
        raise ValueError(f"{parameter} must name at least one column; got none.")
    if len(set(positions)) < len(positions):
        repeated = next(p for p in positions if positions.count(p) > 1)
        raise ValueError(f"{parameter} must be distinct; got {table.names[repeated]!r} twice.")
    return positions


# --- what an estimator is given -------------------------------------------------------------------


# Percentiles that leave no row out.
ALL_ROWS = (0.0, 100.0)


@dataclass(frozen=True)
class Sample:
    """The rows and columns of which effects are estimated, with weights and options.

    ``whole`` is the table as given, ``rows`` are the numbers in it of the rows of ``table``,
    ``positions`` the numbers of the columns in question, ``percentiles`` those of each column that
    its axis lies between.
    """

    whole: Table
    table: Table
    rows: IntArray
    weight: FloatArray | None
    options: ModelOptions
    positions: Sequence[int] = ()
    percentiles: tuple[float, float] = ALL_ROWS

    @classmethod
    def from_table(
        cls, X: Any, options: ModelOptions, percentiles: tuple[float, float] | None = None
    ) -> Self:
        """All rows, checked."""
        table = as_table(X)
        weight = table.weights(options.weights, options.weight_kind)
        bounds = ALL_ROWS if percentiles is None else check_percentiles(percentiles)
        return cls(table, table, np.arange(table.n_rows), weight, options, (), bounds)

    def inner(self, x: FloatArray) -> NDArray[np.bool_]:
        """Which values of a feature are on its axis, between the percentiles; not where missing."""
        if self.percentiles == ALL_ROWS or np.isnan(x).all():
            return ~np.isnan(x)
        low, high = inner_range(x, self.share, self.percentiles)
        return (x >= low) & (x <= high)

    def of_columns(self, positions: Sequence[int]) -> Self:
        """The same rows, of these columns."""
        return replace(self, positions=positions)

    def take(self, rows: NDArray[np.bool_] | IntArray) -> Self:
        """Some of the rows, by a mask or by their numbers."""
        table, weight = self.table.take(rows), self.weight_at(rows)
        return replace(self, table=table, rows=self.rows[rows], weight=weight)

    def weight_at(self, rows: NDArray[np.bool_] | IntArray) -> FloatArray | None:
        """Weights of some of the rows."""
        return None if self.weight is None else self.weight[rows]

    @property
    def names(self) -> list[str]:
        """Of the columns."""
        return [self.table.names[position] for position in self.positions]

    @property
    def present(self) -> NDArray[np.bool_]:
        """Rows that count."""
        n_rows = self.table.n_rows
        return np.ones(n_rows, dtype=bool) if self.weight is None else self.weight > 0

    def gaps(self, position: int, *, numeric: bool) -> NDArray[np.bool_]:
        """Rows that count and have no value of a column; refused with ``missing="raise"``."""
        gaps, some = np.zeros(self.table.n_rows, dtype=bool), self.table.take(self.present)
        if numeric:
            allowed = "raise" if self.missing == "raise" else "drop"
            gone = np.isnan(check_column(some, position, missing=allowed))
        else:
            gone = some.series(position).isna().to_numpy()
        gaps[self.present] = gone
        if gone.any() and self.missing == "raise":
            refuse_gaps(self.table.names[position], gaps)
        return gaps

    @property
    def missing(self) -> str:
        """What is to be done with missing values."""
        return self.options.missing or "raise"

    def answerable(
        self, model: Model, positions: Sequence[int] = ()
    ) -> tuple[NDArray[np.bool_], ModelOptions]:
        """Rows to use where nothing was said of missing values, and the options that say so.

        All but those with a missing value for which the model gives no number; warns of these, and
        of the rows that the effects of ``positions`` leave out. Without these all rows with a
        missing value are left out.
        """
        used, names = np.ones(self.table.n_rows, dtype=bool), self.table.names
        if self.options.missing is not None:
            return used, self.options
        gaps = [self.table.series(p).isna().to_numpy() & self.present for p in range(len(names))]
        gone = {position: rows for position, rows in enumerate(gaps) if rows.any()}
        model_columns = columns_known_of(model, names)
        for position, at_gaps in gone.items():
            if model_columns is not None and names[position] not in model_columns.names:
                continue
            rows = np.flatnonzero(at_gaps)
            if not positions:
                used[rows] = False
                continue
            try:
                answers = self.take(rows).quotients(model, probe=False).at_rows().sum(axis=1)
            except ModelError:
                used[rows] = False
            else:
                used[rows[~np.isfinite(answers)]] = False
        if not (used & self.present).any():
            return np.ones_like(used), self.options  # the model says why it gives no number
        counts = {
            names[position]: int((gone[position] & used).sum())
            for position in positions
            if position in gone
        }
        texts = [f"effects of {name!r}: {n} rows" for name, n in counts.items() if n]
        if not used.all():
            texts.insert(0, f"of all effects: {int((~used).sum())} rows, which have no prediction")
        if texts:
            warn(
                f"Rows with missing values that are left out, of {len(used)}: {'; '.join(texts)}. "
                f"missing= chooses what becomes of them."
            )
        return used, replace(self.options, missing="drop")

    @property
    def share(self) -> FloatArray:
        """Weights of the rows that sum to 1."""
        n, weight = self.table.n_rows, self.weight
        return np.full(n, 1 / n) if weight is None else weight / weight.sum()

    @property
    def frequency(self) -> bool:
        """Whether weights count repeated rows."""
        return self.weight is not None and self.options.weight_kind == "frequency"

    @property
    def multiplicity(self) -> FloatArray:
        """Number of rows that each row represents (math [6]); more than 1 by frequency weights."""
        if self.weight is None or not self.frequency:
            return np.ones(self.table.n_rows)
        return self.weight

    @property
    def units(self) -> dict[str, str]:
        """Of columns, where the data say so."""
        return self.whole.units

    @property
    def facts(self) -> dict[str, str]:
        """What every result says of its data, as attributes."""
        scale, attrs = self.options.scale, self.whole.attrs
        return {
            **({} if scale == "response" else {"scale": scale}),
            "weight_kind": "none" if self.weight is None else self.options.weight_kind,
            "output_name": str(attrs.get("output_name", "output")),
            "output_units": str(attrs.get("output_units", "")),
            **label_facts(attrs.get("labels"), self.whole.names),
            "software": software(),
        }

    @property
    def obs(self) -> tuple[str, NDArray[Any], dict[str, str]]:
        """The coordinate of the rows."""
        dim, labels, about = row_coordinate(self.whole.index, self.whole.n_rows)
        return dim, labels[self.rows], about

    def quotients(
        self, model: Model, *, single: bool = False, probe: bool = True
    ) -> DifferenceQuotients:
        """The model, to be asked at the rows; ``single`` refuses several outputs.

        Refused where its answers to the same rows differ (`check_answers`), unless it is known.
        """
        options = self.options
        quotients = DifferenceQuotients(
            model,
            self.table,
            options.output,
            options.scale,
            single=single,
            batch_rows=options.batch_rows,
            numbers=self.rows,
        )
        if probe:
            check_answers(quotients)
        return quotients


def refuse_gaps(name: str, gone: NDArray[np.bool_]) -> None:
    """Raise ``ValueError`` for rows without a level."""
    raise ValueError(
        f"X of feature {name!r} must have a level in every row; got {int(gone.sum())} missing "
        f"in {len(gone)} rows (first rows: {first_rows(gone)}). Drop or impute these rows, leave "
        f"them out, missing='drop', or make them a level of their own: missing='bin'."
    )


def check_answers(quotients: DifferenceQuotients) -> None:
    """Refuse a model whose answers to the same rows differ.

    ``ModelError`` if they do, from call to call or with the other rows of a call.
    """
    rows = evenly(quotients.table.n_rows, TWICE)
    whole = ~pd.DataFrame(quotients.table.take(rows).data).isna().any(axis=1).to_numpy()
    rows = rows[whole] if whole.any() else rows  # not every model takes missing values
    some = quotients.take(rows)
    first, second = (some.at_rows("rows looked at of X") for _ in range(2))
    sizes = np.abs(first).max(axis=0)
    if np.isfinite(sizes).all():
        ranges = np.ptp(first, axis=0)
        moving = ranges > ROUNDINGS * quotients.precision * sizes
        quotients.outputs.range = float(np.max(ranges[moving], initial=0.0))
        offset = float(np.min(sizes[moving] / ranges[moving], initial=np.inf))
        quotients.outputs.offset = offset if OFFSETS[0] < offset < OFFSETS[1] else 1.0
    differ = differing(first, second, ROUNDINGS * quotients.precision)
    if differ.any():
        worst = int(np.argmax(np.abs(np.nan_to_num(first - second)).max(axis=1)))
        raise ModelError(
            f"model must give the same answer for the same rows; two calls differ in "
            f"{int(differ.sum())} of {len(rows)} rows, by {abs(first - second)[worst].max():.3g} "
            f"in row {rows[worst]}. Set it to evaluation mode (model.eval() in torch), or fix its "
            f"source of random numbers."
        )
    if len(rows) > 3:
        alone = quotients.take(rows[::2]).at_rows("rows looked at of X")
        differ = differing(first[::2], alone, BATCH_TOLERANCE)
        if differ.any():
            raise ModelError(
                f"model must answer row by row; its answer in {int(differ.sum())} of {len(alone)} "
                f"rows depends on the other rows of the call. Set it to evaluation mode (batch "
                f"normalisation), or scale columns before the call."
            )
