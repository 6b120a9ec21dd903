"""Shapley values of a model by the library shap, or as they were given."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from rhale_stats.arguments.checks import check_finite
from rhale_stats.arguments.rows import aligned, as_numbers
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.models.differences import DifferenceQuotients
from rhale_stats.models.outputs import ModelError
from rhale_stats.models.table import Table, as_table
from rhale_stats.parallel import ignoring, numpy_state_kept

# Rows that stand for all others where Shapley values leave a feature out.
BACKGROUND = 100
# How the values were computed, by the class of shap.
ALGORITHMS = {
    "ExactExplainer": "shap, exact: all subsets of columns",
    "PermutationExplainer": "shap, sampled permutations of columns",
}


def given_column(shap_values: Any, table: Table, position: int) -> FloatArray:
    """Shapley values of one column, (row,), from what was given for it or for all."""
    shap_values = aligned(shap_values, table.index, "shap_values")
    values = as_numbers(getattr(shap_values, "values", shap_values), "shap_values")
    n_rows, n_columns = table.n_rows, len(table.names)
    if values.shape not in ((n_rows,), (n_rows, n_columns)):
        raise ValueError(
            f"shap_values must have shape ({n_rows},) or ({n_rows}, {n_columns}), a row for each "
            f"row of X; got {values.shape}. With several outputs, choose one: shap_values[..., 0]."
        )
    values = np.ascontiguousarray(values if values.ndim == 1 else values[:, position])
    check_finite(values, "shap_values", table.names[position], "Drop these rows before the call.")
    return values


def shapley_values(
    asked: DifferenceQuotients,
    background: int | pd.DataFrame | ArrayLike,
    rng: np.random.Generator,
    what: str,
) -> tuple[FloatArray, str]:
    """Shapley values of all columns, (row, column, output), and how they were computed."""
    try:
        # Its colour maps are made in a way that Matplotlib is about to drop.
        with ignoring(PendingDeprecationWarning):
            import shap
    except ImportError as error:
        raise ImportError(
            f"{what} needs the library shap to compute Shapley values: pip install "
            '"rhale-stats[shap]", or pass them as shap_values=.'
        ) from error
    table = asked.table
    if isinstance(background, int | np.integer):
        n = min(int(background), table.n_rows)
        others = table.take(np.sort(rng.choice(table.n_rows, n, replace=False)))
    else:
        others = as_table(background, "background")
        if others.names != table.names:
            raise ValueError(
                f"background must have the columns of X, {', '.join(table.names)}; got "
                f"{', '.join(others.names)}."
            )
    codes = _Codes.of(table, others)

    def output(values: NDArray[Any]) -> FloatArray:
        answer = asked.ask_named(
            codes.table(values), f"on {len(values)} rows of X with columns of the background"
        )
        n_bad = np.count_nonzero(~np.isfinite(answer).all(axis=1))
        if n_bad:
            raise ModelError(
                f"model must return finite numbers; got NaN or infinity in {n_bad} of "
                f"{len(answer)} rows of X with columns of the background."
            )
        return answer if answer.shape[1] > 1 else answer[:, 0]

    # The library seeds NumPy's global generator, and draws from it.
    with numpy_state_kept():
        masker = shap.maskers.Independent(codes.others, max_samples=others.n_rows)
        # The library takes values within 1e-5 of each other for the same.
        masker.invariants = codes.same
        explainer = shap.Explainer(output, masker, seed=int(rng.integers(2**31)))
        name = type(explainer).__name__
        # The library fails for a row that equals the whole background; its values are 0.
        rows = np.array([not codes.same(row).all() for row in codes.rows])
        if rows.any():
            found = np.asarray(explainer(codes.rows[rows], silent=True).values, dtype=np.float64)
            found = found.reshape(rows.sum(), len(table.names), -1)
        else:
            found = np.zeros((0, len(table.names), asked.at_rows().shape[1]))
    values = np.zeros((table.n_rows, *found.shape[1:]))
    values[rows] = found
    return values, ALGORITHMS.get(name, f"shap, {name}")


class _Codes(NamedTuple):
    """Tables as numbers, which is what the library takes: numbers of levels where they have texts.

    ``levels`` are those of columns that hold no numbers, a missing one among them.
    """

    like: Table
    levels: dict[int, pd.Index[Any]]
    rows: FloatArray
    others: FloatArray

    @classmethod
    def of(cls, table: Table, background: Table) -> _Codes:
        """Rows and background as (row, column)."""
        levels, columns = {}, []
        for at, name in enumerate(table.names):
            if table.is_numeric(at):
                columns.append(np.concatenate([table.column(at), background.column(at)]))
                continue
            own, other = table.series(at), background.series(at)
            if isinstance(own.dtype, pd.CategoricalDtype):
                unknown = other.notna() & ~other.isin(own.dtype.categories)
            else:
                unknown = pd.Series(False, other.index)
            if unknown.any():
                raise ValueError(
                    f"background of {name!r} must hold levels of its column in X; got "
                    f"{other[unknown].iloc[0]!r}. Add it to the categories of X."
                )
            both = pd.concat([own, other.astype(own.dtype)])
            codes, found = pd.factorize(both, use_na_sentinel=False)
            levels[at] = pd.Index(found)
            columns.append(codes.astype(np.float64))
        rows = np.column_stack(columns)
        return cls(table, levels, rows[: table.n_rows], rows[table.n_rows :])

    def same(self, row: FloatArray) -> NDArray[np.bool_]:
        """Where the background, (row, column), has the values of a row."""
        return np.asarray((row == self.others) | (np.isnan(row) & np.isnan(self.others)))

    def table(self, values: FloatArray) -> pd.DataFrame | NDArray[np.floating[Any]]:
        """Numbers as the model receives them."""
        if not self.levels:
            return self.like.like(values)
        columns: dict[int, Any] = {}
        for at in range(len(self.like.names)):
            own = self.like.series(at)
            if self.like.is_time(at):
                columns[at] = self.like.of_type(at, values[:, at])
            elif at in self.levels:
                level = self.levels[at].take(values[:, at].astype(np.intp))
                columns[at] = pd.Series(level.array, dtype=own.dtype)
            else:
                columns[at] = pd.Series(values[:, at]).astype(own.dtype)
        assert isinstance(self.like.data, pd.DataFrame), "arrays hold numbers"
        return pd.DataFrame(columns).set_axis(self.like.data.columns, axis=1)
