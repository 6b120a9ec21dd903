"""Shapley values of a model by the library shap, or as they were given."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from rhale_stats import models
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.validate import check_count, check_finite

# Rows that stand for all others where Shapley values leave a feature out.
BACKGROUND = 100
# How they came about, by the class of shap that made them.
ALGORITHMS = {
    "ExactExplainer": "shap, exact: all subsets of columns",
    "PermutationExplainer": "shap, sampled permutations of columns",
}


def given_column(shap_values: Any, table: models.Table, position: int) -> FloatArray:
    """Shapley values of one column, (row,), from what was given for it or for all."""
    values = np.asarray(getattr(shap_values, "values", shap_values), dtype=np.float64)
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
    asked: models.DifferenceQuotients,
    background: int | pd.DataFrame | ArrayLike,
    rng: np.random.Generator,
    what: str,
) -> tuple[FloatArray, str]:
    """Shapley values of all columns, (row, column, output), and how they were computed."""
    try:
        with warnings.catch_warnings():
            # Its colour maps are made in a way that Matplotlib is about to drop.
            warnings.simplefilter("ignore", PendingDeprecationWarning)
            import shap
    except ImportError as error:
        raise ImportError(
            f"{what} needs the library shap to compute Shapley values: pip install "
            '"rhale-stats[shap]", or pass them as shap_values=.'
        ) from error
    table = asked.table
    rows = _numbers(table, "X")
    if isinstance(background, int | np.integer):
        check_count("background", background, 1)
        n = min(int(background), len(rows))
        others = rows[np.sort(rng.choice(len(rows), n, replace=False))]
    else:
        given = models.as_table(background)
        if given.names != table.names:
            raise ValueError(
                f"background must have the columns of X, {', '.join(table.names)}; got "
                f"{', '.join(given.names)}."
            )
        others = _numbers(given, "background")

    def output(values: NDArray[Any]) -> FloatArray:
        answer = asked.ask(table.like(values))
        return answer if answer.shape[1] > 1 else answer[:, 0]

    # It seeds NumPy's global generator.
    state = np.random.get_state()  # noqa: NPY002
    try:
        explainer = shap.Explainer(
            output,
            shap.maskers.Independent(others, max_samples=len(others)),
            seed=int(rng.integers(2**31)),
        )
        found = explainer(rows, silent=True)
    finally:
        np.random.set_state(state)  # noqa: NPY002
    values = np.asarray(found.values, dtype=np.float64)
    name = type(explainer).__name__
    return values.reshape(*rows.shape, -1), ALGORITHMS.get(name, f"shap, {name}")


def _numbers(table: models.Table, what: str) -> FloatArray:
    """All columns as numbers."""
    texts: Sequence[str] = [name for at, name in enumerate(table.names) if not table.is_numeric(at)]
    if texts:
        raise TypeError(
            f"{what} must have numeric columns only for Shapley values to be computed; "
            f"{', '.join(map(repr, texts))} are not. Compute them with the library shap, and pass "
            f"them as shap_values=."
        )
    return np.column_stack([table.column(at) for at in range(len(table.names))])
