"""Which columns of a table are features: those named, or those of the default."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rhale_stats.arguments.words import listed, warn
from rhale_stats.models.adapters.adapter import ModelColumns
from rhale_stats.models.table import MAX_LEVELS, Table
from rhale_stats.schema.features import position_of

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
