"""Columns of levels: which there are, which every row has, in which order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from rhale_stats.arrays.moments import IntArray
from rhale_stats.models.sample import Sample, refuse_gaps
from rhale_stats.models.table import MAX_LEVELS
from rhale_stats.schema.levels import MISSING_LEVEL, level_text


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
    if (gone | weightless).all():
        raise ValueError(
            f"X must have values of feature {name!r}; all {len(gone)} are missing. Leave the "
            f"feature out: features=[...]."
        )
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
