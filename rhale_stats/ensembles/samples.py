"""Rows of samples and of folds, drawn by rows or by groups, within strata."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from rhale_stats.arguments.rows import row_codes
from rhale_stats.arrays.moments import IntArray
from rhale_stats.inference.draws import in_strata
from rhale_stats.models.form import ARRAY, TableFormat
from rhale_stats.models.forms import read
from rhale_stats.models.table import COPY_ON_WRITE, as_array


class RefitTable(NamedTuple):
    """A user's table as a data frame or an array, and what its rows are drawn by.

    ``unit`` is the unit of every row, None where every row is one; ``strata`` are the units of
    every stratum.
    """

    data: Any
    unit: IntArray | None
    strata: Sequence[IntArray]
    form: TableFormat = ARRAY

    @classmethod
    def read(cls, data: Any, groups: ArrayLike | None, strata: ArrayLike | None) -> RefitTable:
        """Read all three; raise ``TypeError`` or ``ValueError`` where they do not fit."""
        read_data, form = read(data, "data")
        table: Any = (
            read_data
            if isinstance(read_data, pd.DataFrame)
            else as_array(read_data, "data must hold")
        )
        labels = table.index.to_numpy() if form.labelled else None
        used = np.ones(len(table), dtype=bool)
        unit, stratum = (
            None if values is None else row_codes(values, labels, used, name, "rows of data")
            for values, name in ((groups, "groups"), (strata, "strata"))
        )
        n_units = len(table) if unit is None else int(unit.max()) + 1
        return cls(table, unit, in_strata(n_units, unit, stratum), form)

    @property
    def n_units(self) -> int:
        """Number of rows, or of groups, that are drawn."""
        return sum(map(len, self.strata))

    def rows_of(self, units: IntArray) -> IntArray:
        """Rows of these units, one unit after the other."""
        if self.unit is None:
            return units
        order, ends = np.argsort(self.unit, kind="stable"), np.bincount(self.unit).cumsum()
        members = np.split(order, ends[:-1])
        return np.concatenate([members[number] for number in units])

    def take(self, rows: NDArray[np.intp]) -> Any:
        """These rows, in the form of the user's table."""
        if not isinstance(self.data, pd.DataFrame):
            return self.data[rows]
        sample = self.data.iloc[rows].reset_index(drop=True)
        sample.attrs = self.data.attrs
        return self.form.give(sample)

    @property
    def whole(self) -> Any:
        """All rows, in the form of the user's table; a copy, which a function may change."""
        if not isinstance(self.data, pd.DataFrame):
            return self.data.copy()
        return self.form.give(self.data.copy(deep=not COPY_ON_WRITE))

    def resampled(self, rng: np.random.Generator) -> IntArray:
        """Rows of a bootstrap sample: from every stratum as many units as it has, with repeats."""
        return self.rows_of(
            np.concatenate(
                [units[rng.integers(len(units), size=len(units))] for units in self.strata]
            )
        )

    def subsampled(self, sizes: Sequence[int], rng: np.random.Generator) -> IntArray:
        """Rows of a sample without repeats, in the order of the table, of so many units each."""
        return np.sort(
            self.rows_of(
                np.concatenate(
                    [
                        rng.choice(units, size=size, replace=False)
                        for units, size in zip(self.strata, sizes, strict=True)
                    ]
                )
            )
        )

    def folds(self, n_folds: int, rng: np.random.Generator) -> list[IntArray]:
        """Rows of every fold, in the order of the table; strata are dealt out evenly."""
        order = np.concatenate([rng.permutation(units) for units in self.strata])
        return [np.sort(self.rows_of(order[first::n_folds])) for first in range(n_folds)]

    def subsample_sizes(self, share: float) -> list[int]:
        """Units to draw from every stratum: the share of its units, one at least."""
        sizes = [min(max(round(share * len(units)), 1), len(units)) for units in self.strata]
        if sum(sizes) == self.n_units:
            raise ValueError(
                f"sample_size must leave out some of the {self.n_units} rows or groups; a share of "
                f"{share:g} of every stratum leaves out none. Take a smaller share."
            )
        return sizes
