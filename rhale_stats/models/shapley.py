"""Shapley values of a model: exact for trees and lines, else of subsets or of permutations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from tqdm import tqdm

from rhale_stats.arguments.checks import check_finite
from rhale_stats.arguments.progress import progress_bar
from rhale_stats.arguments.rows import aligned, as_numbers
from rhale_stats.arrays import shapley as arrays
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.arrays.shapley import Tree, add_trees
from rhale_stats.models.adapters.statsmodels import UNKNOWN
from rhale_stats.models.differences import DifferenceQuotients
from rhale_stats.models.outputs import Model, ModelError
from rhale_stats.models.table import Table, as_table
from rhale_stats.parallel import ignoring, numpy_state_kept
from rhale_stats.schema.validation import Options

# Rows that stand for all others where Shapley values leave a feature out.
BACKGROUND = 100
# All subsets of so many columns at most.
EXACT_COLUMNS = 10
# Pairs of permutations of a row, at least; and rows explained by the library shap in one call.
PAIRS, ROWS_TOGETHER = 64, 16


@dataclass(frozen=True, eq=False)
class ShapleyOptions(Options):
    """Shapley values that are known, or over which rows they are taken and when they are sampled.

    Parameters
    ----------
    shap_values : array_like of shape (n_rows,) or (n_rows, n_columns), or Explanation, optional
        Shapley values of the only feature or of all columns of ``X``, of one output, or what an
        explainer of the library shap returned. By default they are computed for all rows. They are
        exact for trees of scikit-learn, xgboost, lightgbm and catboost and for linear models, if
        the output is their sum (of a classifier mostly ``scale="logit"``). For other models they
        are exact over all subsets of columns, or sampled. The attribute ``shapley`` of the result
        says which.
    background : int, DataFrame or array_like, default 100
        Rows over which columns that are left out are averaged, or how many rows of ``X`` to draw.
        More rows also mean more permutations where values are sampled.
    max_model_rows : int, default 10_000_000
        Values of models that are neither trees nor linear are taken over all subsets of columns if
        this asks the model for so many rows at most: rows of ``X`` × background × 2^columns, of up
        to 10 columns. Otherwise they are sampled.

    Examples
    --------
    >>> import rhale_stats as rs
    >>> rs.ShapleyOptions(background=50).max_model_rows
    10000000
    """

    shap_values: Any = None
    background: int | pd.DataFrame | ArrayLike = BACKGROUND
    max_model_rows: int = 10**7


class ShapleyValues(NamedTuple):
    """Shapley values (row, column, output), how they were computed, and their error if sampled."""

    values: FloatArray
    how: str
    error: FloatArray | None = None


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
    model: Model,
    quotients: DifferenceQuotients,
    shapley: ShapleyOptions,
    rng: np.random.Generator,
    what: str,
    *,
    progress: bool = False,
) -> ShapleyValues:
    """Shapley values of all columns over a background, and how they were computed."""
    try:
        # Its colour maps are made in a way that Matplotlib is about to drop.
        with ignoring(PendingDeprecationWarning):
            import shap  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"{what} needs the library shap to compute Shapley values: pip install "
            '"rhale-stats[shap]", or pass them as shap_values=.'
        ) from error
    table, background = quotients.table, shapley.background
    if np.shape(table.data)[1] > len(table.names):
        raise ValueError(
            UNKNOWN.format(why="it is not known for rows with columns of the background")
        )
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
    codes = _Codes.from_tables(table, others)
    ends = _Ends(
        codes, _answer(quotients, codes, codes.rows), _answer(quotients, codes, codes.others)
    )
    bar = progress_bar(table.n_rows, "Shapley values", "row", progress=progress)
    with bar:
        for estimator in (model, getattr(model, "__self__", None)):  # or its method
            exact = None
            if not codes.levels:
                exact = of_line(estimator, ends) or of_trees(estimator, ends, bar)
            if exact is not None:
                return ShapleyValues(*exact)
        n_columns = len(table.names)
        n_asked = table.n_rows * others.n_rows * 2.0**n_columns
        if n_columns <= EXACT_COLUMNS and n_asked <= shapley.max_model_rows:
            return _of_subsets(quotients, ends, rng, bar)
        return _of_permutations(quotients, ends, rng, bar)


def _answer(quotients: DifferenceQuotients, codes: _Codes, values: FloatArray) -> FloatArray:
    """The output for rows of numbers, (row, output); finite."""
    answer = quotients.ask_named(
        codes.table(values.copy()), f"on {len(values)} rows of X with columns of the background"
    )
    n_bad = np.count_nonzero(~np.isfinite(answer).all(axis=1))
    if n_bad:
        raise ModelError(
            f"model must return finite numbers; got NaN or infinity in {n_bad} of "
            f"{len(answer)} rows of X with columns of the background."
        )
    return answer.astype(np.float64, copy=False)


def _of_subsets(
    quotients: DifferenceQuotients, ends: _Ends, rng: np.random.Generator, bar: tqdm[Any]
) -> ShapleyValues:
    """Of all subsets of columns, by the library shap."""
    import shap

    codes = ends.codes

    def output(values: NDArray[Any]) -> FloatArray:
        answer = _answer(quotients, codes, values)
        return answer if answer.shape[1] > 1 else answer[:, 0]

    shap_values = np.zeros((*codes.rows.shape, ends.rows.shape[1]))
    # The library fails for a row that equals the whole background; its values are 0.
    rows = np.array([number for number, row in enumerate(codes.rows) if not codes.same(row).all()])
    # The library seeds NumPy's global generator, and draws from it.
    with numpy_state_kept():
        masker = shap.maskers.Independent(codes.others, max_samples=len(codes.others))
        # The library takes values within 1e-5 of each other for the same.
        masker.invariants = codes.same
        seed = int(rng.integers(2**31))
        explainer = shap.Explainer(output, masker, algorithm="exact", seed=seed)
        for begin in range(0, len(rows), ROWS_TOGETHER):
            some = rows[begin : begin + ROWS_TOGETHER]
            values = np.asarray(explainer(codes.rows[some], silent=True).values)
            shap_values[some] = values.reshape(len(some), *shap_values.shape[1:])
            bar.update(len(some))
    return ShapleyValues(shap_values, "exact: all subsets of columns")


def _of_permutations(
    quotients: DifferenceQuotients, ends: _Ends, rng: np.random.Generator, bar: tqdm[Any]
) -> ShapleyValues:
    """math [89]: each row of the background in equally many orders, and these backwards."""
    codes = ends.codes
    n_rows, n_columns = codes.rows.shape
    again = -(-PAIRS // len(codes.others))
    others, first = np.tile(codes.others, (again, 1)), np.tile(ends.others, (again, 1))
    n_asked = len(others) * 2 * (n_columns - 1)
    together = max(1, quotients.block_rows // max(n_asked, 1))
    parts = []
    for begin in range(0, n_rows, together):
        rows = slice(begin, begin + together)
        part_rows, last = codes.rows[rows], ends.rows[rows]
        walks = arrays.Walks.drawn(len(part_rows), len(others), n_columns, rng)
        steps = walks.steps(part_rows, others)
        inner = np.zeros((0, last.shape[1]))
        if n_asked:
            inner = _answer(quotients, codes, steps.reshape(-1, n_columns))
        inner = inner.reshape(*steps.shape[:-1], last.shape[1])
        parts.append(arrays.mean_of_pairs(walks.values(inner, first, last)))
        bar.update(len(part_rows))
    values, error = (np.concatenate(each) for each in zip(*parts, strict=True))
    how = f"sampled: {2 * len(others)} permutations of the columns a row, in pairs"
    return ShapleyValues(values, how, error)


class _Ends(NamedTuple):
    """Rows and background as numbers, and the outputs at both, (row, output)."""

    codes: _Codes
    rows: FloatArray
    others: FloatArray

    def column_of(self, rows: FloatArray, others: FloatArray) -> list[tuple[int, int]] | None:
        """Which column of what was computed each output is, and with which sign; None if none.

        Up to a constant: both are compared as differences from the mean over the background.
        """
        computed = (rows - others.mean(axis=0)).T
        columns = []
        for answer, other in zip(self.rows.T, self.others.T, strict=True):
            change = answer - other.mean()
            alike = [
                (column, sign)
                for column in range(len(computed))
                for sign in (1, -1)
                if _agree(sign * computed[column], change, answer)
            ]
            if not alike:
                return None
            columns.append(alike[0])
        return columns


# What is computed agrees with the model up to so much of the spread of its output, and up to
# rounding of single precision.
AGREEMENT = 1e-4


def _agree(computed: FloatArray, change: FloatArray, answer: FloatArray) -> bool:
    rounding = 64 * float(np.finfo(np.float32).eps) * float(np.abs(answer).max(initial=0.0))
    most = AGREEMENT * float(np.abs(change).max(initial=0.0)) + rounding
    return bool(np.abs(computed - change).max(initial=0.0) <= most)


def of_line(model: Model, ends: _Ends) -> tuple[FloatArray, str] | None:
    """Of a linear model with ``coef_`` whose answers these are; None of others."""
    codes, coef = ends.codes, getattr(model, "coef_", None)
    if not isinstance(coef, np.ndarray) or coef.dtype.kind != "f" or coef.ndim > 2:
        return None
    coef = np.atleast_2d(coef)
    missing = np.isnan(codes.rows).any() or np.isnan(codes.others).any()
    if coef.shape[1] != codes.rows.shape[1] or missing:
        return None
    columns = ends.column_of(codes.rows @ coef.T, codes.others @ coef.T)
    if columns is None:
        return None
    slopes = np.array([sign * coef[column] for column, sign in columns])
    away = codes.rows - codes.others.mean(axis=0)
    return away[:, :, None] * slopes.T, "exact: linear model"


def of_trees(model: Model, ends: _Ends, bar: tqdm[Any]) -> tuple[FloatArray, str] | None:
    """Of trees that the library shap can read and whose sum the answers are; None of others."""
    forest = Forest.read(model, ends.codes.others)
    if forest is None:
        return None
    columns = ends.column_of(*map(forest.predict, (ends.codes.rows, ends.codes.others)))
    if columns is None:
        return None
    values = forest.values(ends.codes.rows, ends.codes.others, bar)
    number, sign = np.array(columns).T
    values = values[..., number] * sign
    # Additivity once more, of the values themselves.
    change = ends.rows - ends.others.mean(axis=0)
    both = zip(values.sum(axis=1).T, change.T, ends.rows.T, strict=True)
    return (values, "exact: trees") if all(_agree(*each) for each in both) else None


class _Codes(NamedTuple):
    """Tables as numbers, which is what the library takes: numbers of levels where they have texts.

    ``levels`` are those of columns that hold no numbers, a missing one among them.
    """

    like: Table
    levels: dict[int, pd.Index[Any]]
    rows: FloatArray
    others: FloatArray

    @classmethod
    def from_tables(cls, table: Table, background: Table) -> _Codes:
        """Rows and background as (row, column)."""
        levels, columns = {}, []
        for position, name in enumerate(table.names):
            if table.is_numeric(position):
                columns.append(
                    np.concatenate([table.column(position), background.column(position)])
                )
                continue
            series, other = table.series(position), background.series(position)
            if isinstance(series.dtype, pd.CategoricalDtype):
                unknown = other.notna() & ~other.isin(series.dtype.categories)
            else:
                unknown = pd.Series(False, other.index)
            if unknown.any():
                raise ValueError(
                    f"background of {name!r} must hold levels of its column in X; got "
                    f"{other[unknown].iloc[0]!r}. Add it to the categories of X."
                )
            both = pd.concat([series, other.astype(series.dtype)])
            codes, uniques = pd.factorize(both, use_na_sentinel=False)
            levels[position] = pd.Index(uniques)
            columns.append(codes.astype(np.float64))
        rows = np.column_stack(columns)
        return cls(table, levels, rows[: table.n_rows], rows[table.n_rows :])

    def same(self, row: FloatArray) -> NDArray[np.bool_]:
        """Where the background, (row, column), has the values of a row."""
        return np.asarray((row == self.others) | (np.isnan(row) & np.isnan(self.others)))

    def table(self, values: FloatArray) -> pd.DataFrame | NDArray[np.floating[Any]]:
        """Numbers as the model receives them."""
        return self.like.like(values, self.levels)


# A leaf costs a row about as much as comparing it, in one tree, with so many background rows by the
# library, which goes down the tree for each of them.
LEAF_COST = 0.2
# Rows explained by the library in one call.
LEAF_ROWS = 256


class Forest(NamedTuple):
    """Trees whose sum is the output of a model, up to a constant."""

    explainer: Any
    trees: list[Tree]

    @classmethod
    def read(cls, model: Any, background: FloatArray) -> Forest | None:
        """Trees of scikit-learn, xgboost, lightgbm and catboost; None of what is no such model."""
        if not hasattr(model, "__dict__") or not hasattr(model, "predict"):
            return None
        import shap

        try:
            with ignoring(Warning), numpy_state_kept():
                explainer = shap.TreeExplainer(
                    model, background, feature_perturbation="interventional"
                )
            ensemble = explainer.model
            if np.any(np.asarray(getattr(ensemble, "threshold_types", 0)) > 0):
                return None  # splits of categories; leaves have -1
            limit = ensemble.tree_limit
            n_trees = len(ensemble.features)
            n_trees = n_trees if limit is None or limit < 0 else min(n_trees, int(limit))
            children = [f"children_{side}" for side in ("left", "right", "default")]
            names = (*children, "features", "thresholds", "values")
            each = [getattr(ensemble, name)[:n_trees] for name in names]
            trees = [Tree(*of_tree) for of_tree in zip(*each, strict=True)]
        except Exception:  # the library refuses what it does not know in many ways
            return None
        return cls(explainer, trees)

    def _rows(self, rows: FloatArray) -> FloatArray:
        """As the trees compare them: many libraries hold single precision."""
        dtype = self.explainer.model.input_dtype
        return rows.astype(dtype).astype(np.float64)

    def predict(self, rows: FloatArray) -> FloatArray:
        """Sum of the trees, (row, output)."""
        with ignoring(Warning):
            total = np.asarray(self.explainer.model.predict(rows), dtype=np.float64)
        return total.reshape(len(rows), -1)

    def values(self, rows: FloatArray, background: FloatArray, bar: tqdm[Any]) -> FloatArray:
        """Shapley values over the background, (row, column, output)."""
        shape = (*rows.shape, self.trees[0].value.shape[1])
        n_leaves = sum(int((tree.left < 0).sum()) for tree in self.trees)
        if LEAF_COST * n_leaves <= len(background) * len(self.trees):
            values = np.zeros(shape)
            rows, background = self._rows(rows), self._rows(background)
            add_trees(values, self.trees, rows, background)
            bar.update(len(rows))
            return values
        parts = []
        for begin in range(0, len(rows), LEAF_ROWS):
            part = rows[begin : begin + LEAF_ROWS]
            with ignoring(Warning), numpy_state_kept():
                part_values = np.asarray(self.explainer.shap_values(part, check_additivity=False))
            parts.append(part_values.reshape(len(part), *shape[1:]))
            bar.update(len(part))
        return np.concatenate(parts)
