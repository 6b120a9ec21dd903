"""Models of statsmodels: regressors, answers for many parameters, offset and exposure."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import softmax

from rhale_stats.arguments.rows import as_array
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.models.adapters.adapter import ModelColumns

# Models of statsmodels that predict by an inverse link of X @ params.
LINEAR = ("OLS", "WLS", "GLS", "GLM", "Logit", "Probit", "Poisson")


def slope_of(model: Any) -> Callable[[FloatArray], FloatArray] | None:
    """Derivative of predictions by the linear predictor; None where they are the same."""
    family = getattr(model, "family", None)
    return getattr(model, "pdf", None) if family is None else family.link.inverse_deriv


def prediction_function(results: Any) -> Callable[..., Any]:
    """``results.predict``; of models with one design by a formula it takes 40 % of the time.

    The rest is the search of patsy for missing values in every factor, and tables of pandas.
    """
    model = getattr(results, "model", None)
    kind = type(model._model if isinstance(model, AlongVersions) else model).__name__
    data = getattr(model, "data", None)
    design = getattr(data, "model_spec", None) or getattr(data, "design_info", None)
    if kind not in (*LINEAR, "MNLogit") or type(design).__name__ != "DesignInfo":
        return results.predict  # type: ignore[no-any-return]
    from patsy import NAAction, build_design_matrices

    keep = NAAction(on_NA="raise", NA_types=[])

    def predict(rows: Any, **options: Any) -> Any:
        if isinstance(rows, pd.DataFrame) and not rows.isna().any(axis=None):
            # What patsy refuses, statsmodels refuses in words of its own.
            with suppress(Exception):
                exog = np.asarray(build_design_matrices([design], rows, NA_action=keep)[0])
                if len(exog) == len(rows):
                    rows, options = exog, {"transform": False, **options}
        return results.predict(rows, **options)

    return predict


class AlongVersions:
    """A model of statsmodels, but for its predictions."""

    def __init__(self, model: Any, versions: Any) -> None:
        self._model, self._versions = model, versions

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)


class Linear(AlongVersions):
    """A model with a linear predictor whose predictions are derivatives along directions."""

    def predict(self, params: Any, exog: Any = None, *args: Any, **kwargs: Any) -> FloatArray:
        """Change along every direction, and the prediction, (rows, directions + 1)."""
        exog = np.asarray(exog)
        out = np.empty((len(exog), len(self._versions) + 1))
        moved = np.matmul(exog, self._versions.T, out=out[:, :-1])
        out[:, -1] = self._model.predict(params, exog, *args, **kwargs)
        slope = slope_of(self._model)
        if slope is not None:
            line = self._model.predict(params, exog, *args, which="linear", **kwargs)
            moved *= slope(line)[:, None]
        return out


class OutputShares(AlongVersions):
    """A multinomial logit whose predictions are derivatives along directions."""

    def predict(self, params: Any, exog: Any = None, *args: Any, **kwargs: Any) -> FloatArray:
        """Changes of all shares, and these, (rows, outputs x (directions + 1))."""
        exog = np.asarray(exog)
        share = np.asarray(self._model.predict(params, exog, *args, **kwargs))
        # The first output is the reference, whose predictor is 0.
        line = np.einsum("rk,dkj->rjd", exog, self._versions)
        line = np.concatenate([np.zeros_like(line[:, :1]), line], axis=1)
        moved = share[..., None] * (line - np.einsum("rj,rjd->rd", share, line)[:, None])
        return np.concatenate([moved, share[..., None]], axis=-1).reshape(len(exog), -1)


class ManyVersions(AlongVersions):
    """A model of statsmodels whose predictions are made at many parameters at once."""

    def predict(self, _params: Any, exog: Any = None, *args: Any, **kwargs: Any) -> FloatArray:
        """Predictions at all parameters instead of ``params``, (rows, outputs x versions)."""
        exog = exog if exog is None else np.asarray(exog)
        answers = [self._model.predict(params, exog, *args, **kwargs) for params in self._versions]
        together = stacked(list(map(_values_alone, answers)))
        return together.reshape(len(together), -1)


def _values_alone(answer: Any) -> Any:
    """Predictions without the standard errors that proportional hazards give beside them."""
    return getattr(answer, "predicted_values", answer)


def stacked(answers: list[Any]) -> FloatArray:
    """Answers of versions of a model as one array (rows, outputs, versions)."""
    values = [as_array(answer, "model must return", ValueError) for answer in answers]
    return np.stack([array[:, None] if array.ndim == 1 else array for array in values], axis=-1)


# --- offset and exposure of models of statsmodels -------------------------------------------------


# Name of the column that carries the offset of every row beside the user's own columns.
COLUMN = "offset of the row (rhale_stats)"
# Functions by which an offset is made from a column, up to a constant and a factor.
MADE_BY: tuple[Callable[[FloatArray], FloatArray], ...] = (lambda x: x, np.log)
UNKNOWN = (
    "model was fitted with an offset or exposure, which predict leaves out for new rows; {why}. "
    "Pass a function that adds it, as in lambda X: results.predict(X, offset=np.log(X['years']))."
)


def parts_of(results: Any) -> list[FloatArray]:
    """Offset and logarithm of the exposure of the rows of the fit, those that are not all zero."""
    model = getattr(results, "model", None)
    if model is None or not hasattr(results, "params") or not hasattr(model, "exog"):
        return []
    combined = getattr(model, "_offset_exposure", None)
    values = [getattr(model, name, None) for name in ("offset", "exposure")]
    parts = [np.asarray(value, dtype=np.float64) for value in values if value is not None]
    if combined is not None and np.ndim(combined) == 1 and parts:
        # Generalized estimating equations keep the exposure as it was given.
        total = np.asarray(combined, dtype=np.float64)
        if len(parts) == 1 or not np.allclose(np.sum(parts, axis=0), total):
            parts = [total] if len(parts) == 1 else [parts[0], total - parts[0]]
    return [part for part in parts if part.any()]


def made_from(
    parts: list[FloatArray], results: Any, X: pd.DataFrame
) -> Callable[[pd.DataFrame], FloatArray] | None:
    """The offset as a function of the columns of X, where the fit had these columns."""
    frame = frame_of(results)
    if frame is None or any(len(part) != len(frame) for part in parts):
        return None
    columns = {
        name: _numbers(frame[name])
        for name in frame.columns
        if name in X.columns and pd.api.types.is_numeric_dtype(frame[name].dtype)
    }
    sources = [source for part in parts if (source := _source(part, columns)) is not None]
    if len(sources) < len(parts):
        return None

    def offset(rows: pd.DataFrame) -> FloatArray:
        made = [
            start + factor * make(_numbers(rows[name])) for name, make, start, factor in sources
        ]
        return np.asarray(np.sum(made, axis=0))

    return offset


def _numbers(column: pd.Series[Any]) -> FloatArray:
    return column.to_numpy(dtype=np.float64, na_value=np.nan)


def _source(
    part: FloatArray, columns: dict[Any, FloatArray]
) -> tuple[Any, Callable[[FloatArray], FloatArray], float, float] | None:
    """Column, function, constant and factor that an offset is made by; None if there are none."""
    low, high = int(np.argmin(part)), int(np.argmax(part))
    for name, column in columns.items():
        for make in MADE_BY:
            with np.errstate(invalid="ignore", divide="ignore"):
                made = make(column)
                factor = (part[high] - part[low]) / (made[high] - made[low])
                start = part[low] - factor * made[low]
                if np.allclose(start + factor * made, part, rtol=1e-10, atol=1e-10):
                    return name, make, float(start), float(factor)
    return None


def predict_of(
    results: Any, data: Any, predict: Callable[..., Any] | None = None
) -> tuple[Callable[[Any], Any], Any]:
    """``predict`` with the offset of every row, and the table that it is to be asked with.

    ``predict`` may be another function of rows and offset than that of the results. Raise
    ``ValueError`` where the rows are not those of the fit, and no column holds their offset.
    """
    predict = _of_columns(results, prediction_function(results) if predict is None else predict)
    parts = parts_of(results)
    if not parts:
        return predict, data
    if "offset" not in inspect.signature(results.model.predict).parameters:
        raise ValueError(UNKNOWN.format(why="and its predict takes none"))
    same = sum(float(part[0]) for part in parts if np.ptp(part) == 0)
    moving = [part for part in parts if np.ptp(part) > 0]
    if not moving:
        return lambda rows: predict(rows, offset=np.full(len(rows), same)), data
    if isinstance(data, pd.DataFrame):
        offset = made_from(moving, results, data)
        if offset is not None:
            return lambda rows: predict(rows, offset=same + offset(rows)), data
    of_fit = fitted_values(results, results.model.exog)
    numbers = numbers_in_fit(results, data, _of_columns(results, results.predict), of_fit)
    if numbers is not None and (numbers >= 0).all():
        return _with_column(predict, data, np.sum(parts, axis=0)[numbers])
    why = (
        "X has neither all rows of the fit nor the column that the offset was made from, which may "
        "stand beside those of the formula"
    )
    raise ValueError(UNKNOWN.format(why=why))


def columns_of_fit(results: Any) -> list[str] | None:
    """Columns of the DataFrame that a model was fitted to without a formula; None of others."""
    model = getattr(results, "model", None)
    exog = getattr(getattr(model, "data", None), "orig_exog", None)
    if getattr(model, "formula", None) is not None or getattr(model, "smoother", None) is not None:
        return None
    return list(exog.columns) if isinstance(exog, pd.DataFrame) else None


def _is_of_hazards(results: Any) -> bool:
    return type(getattr(results, "model", None)).__name__ == "PHReg"


def _of_columns(results: Any, predict: Callable[..., Any]) -> Callable[..., Any]:
    """Rows as the model was fitted to them, which itself takes columns in the order they come.

    Generalized additive models take the columns of their splines in an argument of its own. Of
    proportional hazards the rows are not the first argument, and standard errors come as well.
    """
    names, hazards = columns_of_fit(results), _is_of_hazards(results)
    smoother = getattr(getattr(results, "model", None), "smoother", None)
    of_splines = getattr(smoother, "variable_names", None)

    def of_rows(rows: Any, **more: Any) -> Any:
        present = getattr(rows, "columns", ())
        if names is not None and isinstance(rows, pd.DataFrame) and set(names) <= set(present):
            values = rows[names].to_numpy(dtype=np.float64, na_value=np.nan)
            rows = pd.DataFrame(values, rows.index, names)
        if of_splines is not None:
            missing = [name for name in of_splines if name not in present]
            if missing:
                raise ValueError(
                    f"X must be a DataFrame with the columns of the model's splines; "
                    f"{', '.join(map(repr, missing))} is not there."
                )
            more["exog_smooth"] = rows[of_splines]
        if hazards:
            return _values_alone(predict(exog=rows, **more))
        return predict(rows, **more)

    return predict if names is None and of_splines is None and not hazards else of_rows


def _with_column(
    predict: Callable[..., Any], data: Any, total: FloatArray
) -> tuple[Callable[[Any], Any], Any]:
    """Every row keeps its own offset, in a column that the model itself does not get."""
    lost = UNKNOWN.format(why="it is not known for rows that are none of X")
    if isinstance(data, pd.DataFrame):

        def of_frame(rows: pd.DataFrame) -> Any:
            if COLUMN not in rows.columns:
                raise ValueError(lost)
            return predict(rows.drop(columns=COLUMN), offset=rows[COLUMN].to_numpy())

        return of_frame, data.assign(**{COLUMN: total})
    wide = np.column_stack([np.asarray(data, dtype=np.float64), total])

    def of_array(rows: FloatArray) -> Any:
        if rows.shape[1] != wide.shape[1]:
            raise ValueError(lost)
        return predict(rows[:, :-1], offset=rows[:, -1])

    return of_array, wide


def fitted_values(results: Any, *exog: Any) -> Any:
    """Predictions for the rows of the fit; with its ``exog``, without their offsets."""
    only = {"pred_only": True} if _is_of_hazards(results) else {}
    return results.model.predict(results.params, *exog, **only)


def frame_of(results: Any) -> pd.DataFrame | None:
    """The table of a formula with the rows of the fit, those with missing values left out."""
    data = getattr(getattr(results, "model", None), "data", None)
    frame = getattr(data, "frame", None)
    if not isinstance(frame, pd.DataFrame):
        return None
    left_out = _left_out(data)
    return frame.iloc[np.delete(np.arange(len(frame)), left_out)] if left_out else frame


def _left_out(data: Any) -> list[int]:
    """Numbers of the rows that a fit has left out, among those that it was given."""
    return list(getattr(data, "missing_row_idx", None) or [])


def numbers_in_fit(
    results: Any, table: Any, ask: Callable[[Any], Any], of_fit: Any
) -> IntArray | None:
    """Which row of the fit each row of a table is, -1 of others; None without all of the fit.

    They are found by their places or by their labels, and known by their predictions: ``ask`` of
    them gives those ``of_fit``.
    """
    data, of_fit = results.model.data, np.asarray(of_fit)
    n, left_out, candidates = len(of_fit), _left_out(data), []
    if len(table) == n:
        candidates.append(np.arange(n))
    if left_out and len(table) == n + len(left_out):
        numbers = np.full(len(table), -1)
        numbers[np.delete(np.arange(len(table)), left_out)] = np.arange(n)
        candidates.append(numbers)
    labels = getattr(data, "row_labels", None)
    if isinstance(table, pd.DataFrame) and labels is not None and pd.Index(labels).is_unique:
        numbers = pd.Index(labels).get_indexer(table.index)
        if np.array_equal(np.sort(numbers[numbers >= 0]), np.arange(n)):
            candidates.append(numbers)
    for numbers in candidates:
        places = np.flatnonzero(numbers >= 0)
        rows = table.iloc[places] if isinstance(table, pd.DataFrame) else table[places]
        if are_close(ask(rows), of_fit[numbers[places]], 1e-6):
            return numbers
    return None


def are_close(predictions: Any, of_fit: Any, relative: float) -> bool:
    """Whether predictions are those of the fit, row by row."""
    first, second = (np.asarray(each, dtype=np.float64) for each in (predictions, of_fit))
    return first.shape == second.shape and np.allclose(first, second, relative)


# --- results of statsmodels: the regressors of the fit are the features ---------------------------


def columns(results: Any) -> ModelColumns | None:
    """Columns that the right side of the formula names, or those of the table of the fit.

    Integers are numbers in a formula, unless they are in ``C(...)``. None if no names are known.
    """
    names = columns_of_fit(results)
    if names is not None:
        return ModelColumns(list(map(str, names)))
    formula = getattr(getattr(results, "model", None), "formula", None)
    if not isinstance(formula, str) or "~" not in formula:
        return None
    # Operators of formulas that Python does not have, or binds otherwise.
    right = re.sub(r"[|:~]", "+", formula.split("~", 1)[1]).strip()
    try:
        tree = ast.parse(right, mode="eval")
    except SyntaxError:
        return None
    levels = [
        name
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "C" and node.args
        for name in _names(node.args[0])
    ]
    return ModelColumns(_names(tree), levels, discrete=True)


def line_of(results: Any, data: Any) -> Callable[[Any], Any] | None:
    """Linear predictor of (generalised) linear models, as they predict; None of other models.

    ``data`` is the table that is asked of.
    """
    kind = type(getattr(results, "model", None)).__name__
    if kind not in (*LINEAR, "MNLogit"):
        return None
    linear = {} if slope_of(results.model) is None else {"which": "linear"}
    return predict_of(results, data, partial(prediction_function(results), **linear))[0]


def through_link(model: Any, line: FloatArray, moved: FloatArray) -> FloatArray:
    """Derivatives of the outputs, (row, output), from those of linear predictors."""
    if type(model).__name__ == "MNLogit":
        share = softmax(line, axis=1)
        return np.asarray(share * (moved - np.sum(share * moved, axis=1, keepdims=True)))
    slope = slope_of(model)
    return moved if slope is None else moved * slope(line)


def classes(results: Any) -> list[str] | None:
    """Names of the categories whose probabilities the model predicts, in the order of its outputs.

    Of ``MNLogit`` and ``OrderedModel``; None of other models.
    """
    model = getattr(results, "model", None)
    names = getattr(model, "_ynames_map", None) or getattr(model, "labels", None)
    if names is None or type(model).__name__ not in ("MNLogit", "OrderedModel"):
        return None
    ordered = [names[key] for key in sorted(names)] if isinstance(names, dict) else list(names)
    return [str(name) for name in ordered]


def _names(tree: ast.AST) -> list[str]:
    """Names of variables, and what Q("...") quotes."""
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            names.append(node.id)
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Q":
            names += [
                str(argument.value) for argument in node.args if isinstance(argument, ast.Constant)
            ]
    return list(dict.fromkeys(names))
