"""What an estimator is given, read once: table, weights, columns, options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rhale_stats.arguments.checks import check_percentiles
from rhale_stats.arguments.words import first_rows, warn
from rhale_stats.arrays.answers import inner_range
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.models.adapters.libraries import columns_known_of
from rhale_stats.models.differences import DifferenceQuotients
from rhale_stats.models.options import ModelOptions
from rhale_stats.models.outputs import Model, ModelError
from rhale_stats.models.probes import check_answers
from rhale_stats.models.table import Table, as_table, check_column
from rhale_stats.schema.features import label_facts
from rhale_stats.schema.identity import row_coordinate
from rhale_stats.schema.variables import software

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
        gone = {
            position: self.table.series(position).isna().to_numpy()
            for position in range(len(names))
        }
        gone = {
            position: rows & self.present
            for position, rows in gone.items()
            if (rows & self.present).any()
        }
        model_columns = columns_known_of(model)
        for position in [
            position
            for position in gone
            if model_columns is None or names[position] in model_columns.names
        ]:
            rows = np.flatnonzero(gone[position])
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
    def units(self) -> dict[str, str]:
        """Of columns, where the data say so."""
        return self.whole.units

    @property
    def facts(self) -> dict[str, str]:
        """What every result says of its data, as attributes."""
        scale = self.options.scale
        return {
            **({} if scale == "response" else {"scale": scale}),
            "weight_kind": "none" if self.weight is None else self.options.weight_kind,
            "output_name": str(self._attrs.get("output_name", "output")),
            "output_units": str(self._attrs.get("output_units", "")),
            **label_facts(self._attrs.get("labels"), self.whole.names),
            "software": software(),
        }

    @property
    def obs(self) -> tuple[str, NDArray[Any], dict[str, str]]:
        """The coordinate of the rows."""
        dim, labels, about = row_coordinate(self.whole.index, self.whole.n_rows)
        return dim, labels[self.rows], about

    @property
    def _attrs(self) -> Mapping[Any, Any]:
        return self.whole.attrs

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
