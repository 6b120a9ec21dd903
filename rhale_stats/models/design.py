"""What a design without full rank leaves open: contrasts that are not estimable, empty cells."""

from __future__ import annotations

import re
from collections.abc import Callable
from copy import copy
from itertools import combinations
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd

from rhale_stats.arguments.words import listed, warn
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.models.adapters import statsmodels
from rhale_stats.models.adapters.statsmodels import AlongVersions, prediction_function

# A gradient is not estimable where this share of its length is outside the row space.
OUTSIDE = 1e-6
# A row whose leverage is as close to 1 is fitted exactly.
EXACT = 1e-8
# Cells or columns that a message lists; levels of a column that makes cells.
LISTED, MAX_LEVELS = 5, 50


class Design(NamedTuple):
    """The null space of the parameters of a fit whose design has not full rank.

    ``null`` (direction, parameter) is in units of each parameter, ``unit``: one over the root mean
    square of its column, so that rank does not depend on units.
    """

    null: FloatArray
    unit: FloatArray

    @classmethod
    def from_results(cls, results: Any) -> Design | None:
        """Of results of statsmodels; None where the rank is full, or the design is not known."""
        inner = getattr(results, "_results", results)
        model: Any = getattr(inner, "model", None)
        shape, design_matrix = np.shape(getattr(inner, "params", ())), getattr(model, "exog", None)
        # Penalties determine what the design does not; inflation has a design of its own.
        other = hasattr(model, "penal") or hasattr(model, "exog_infl")
        if (
            other
            or not isinstance(design_matrix, np.ndarray)
            or not shape
            or design_matrix.shape[1:] > shape
        ):
            return None
        if model not in _KNOWN:
            exog = np.asarray(getattr(model, "wexog", design_matrix), dtype=np.float64)
            size = np.sqrt(np.mean(exog**2, axis=0))
            size[~(size > 0)] = 1.0
            triangle = np.asarray(np.linalg.qr(exog / size, mode="r"))
            triangle = np.pad(triangle, ((0, len(size) - len(triangle)), (0, 0)))
            values, right = np.linalg.svd(triangle)[1:]
            free = values <= values.max(initial=0.0) * max(exog.shape) * np.finfo(float).eps
            # Parameters of several outputs go by output; others, as of spread, come behind.
            outputs = np.eye(shape[1] if shape[1:] else 1)
            null, unit = np.kron(outputs, right[free]), np.tile(1 / size, len(outputs))
            more = int(np.prod(shape)) - len(unit)
            design = cls(
                np.pad(null, ((0, 0), (0, more))), np.pad(unit, (0, more), constant_values=1)
            )
            _KNOWN[model] = design if free.any() else None
        return _KNOWN[model]

    @property
    def inside(self) -> FloatArray:
        """Projection of parameters that keeps what is estimable."""
        return self.unit[:, None] * self._projection / self.unit

    @property
    def _projection(self) -> FloatArray:
        return np.asarray(np.eye(len(self.unit)) - self.null.T @ self.null)

    def inverse(self, information: FloatArray) -> FloatArray:
        """Covariance of what is estimable."""
        square, projection = np.outer(self.unit, self.unit), self._projection
        return (
            np.linalg.pinv(projection @ (information * square) @ projection, 1e-10, hermitian=True)
            * square
        )

    def leaves(self, scaled: FloatArray) -> Any:
        """Which gradients, (parameter, estimate) in their units, leave the row space."""
        outside = np.linalg.norm(self.null[:, : len(scaled)] @ scaled, axis=0)
        return outside > OUTSIDE * np.linalg.norm(scaled, axis=0)

    def reason(self, results: Any, rows: Any) -> str:
        """Why predictions of some ``rows`` are not estimable; empty where all of them are."""
        inner = copy(getattr(results, "_results", results))
        names, frame = inner.model.exog_names, inner.model.data.__dict__.get("frame")
        inner.model, columns = _Rows(inner.model, self.null), statsmodels.columns(results)
        exog = np.asarray(prediction_function(inner)(rows), dtype=np.float64)
        away = self.leaves((exog * self.unit[: exog.shape[1]]).T)
        if not away.any():
            return ""
        factors = []
        if columns is not None and isinstance(frame, pd.DataFrame):
            in_frame = [name for name in columns.names if name in frame]
            factors = [name for name in in_frame if frame[name].nunique() <= MAX_LEVELS]
        words = [set(re.findall(r"\w+", name)) for name in names]
        for some in (
            list(combination) for n in range(1, 5) for combination in combinations(factors, n)
        ):
            if any(set(re.findall(r"\w+", " ".join(some))) <= name_words for name_words in words):
                cells = _absent(frame[some], rows.loc[away, some])
                if cells:
                    return f"no rows with {'; '.join(cells[:LISTED])}"
        dependent = np.asarray(names)[np.abs(self.null[:, : len(names)]).max(axis=0) > OUTSIDE]
        return f"columns of the design are linearly dependent: {listed(dependent.tolist(), LISTED)}"


_KNOWN: WeakKeyDictionary[Any, Design | None] = WeakKeyDictionary()


class _Rows(AlongVersions):
    """A model of statsmodels whose predictions are rows of its design."""

    def predict(self, _params: Any, exog: Any = None, *_args: Any, **_kwargs: Any) -> FloatArray:
        """The rows themselves, (row, column)."""
        return np.asarray(exog, dtype=np.float64)


def watched(results: Any, predict: Callable[..., Any], reasons: set[str]) -> Callable[..., Any]:
    """``predict`` that warns once of rows that are not estimable, and notes all ``reasons``."""
    design = Design.from_results(results)
    if design is None:
        return predict

    def of_rows(rows: Any, **offset: Any) -> Any:
        reason = design.reason(results, rows)
        if reason and not reasons:
            warn(
                f"Not estimable: {reason}. Rows are moved there, and the fit does not determine "
                f"their predictions. Leave out the interaction, or these rows."
            )
        reasons.update([reason] * bool(reason))
        return predict(rows, **offset)

    return of_rows


def _absent(fit: pd.DataFrame, rows: pd.DataFrame) -> list[str]:
    """Cells of rows that the fit has not, in words."""
    if fit.shape[1] > 1:  # of levels that the fit has
        rows = rows[rows.isin({name: fit[name].unique() for name in fit}).all(axis=1)]
    elif pd.api.types.is_numeric_dtype(fit.dtypes.iloc[0]):
        return []
    fit_cells, other = (
        dict.fromkeys(frame.itertuples(index=False, name=None)) for frame in (fit, rows)
    )
    return [
        " and ".join(f"{name} = {level!r}" for name, level in zip(fit.columns, cell, strict=True))
        for cell in other
        if cell not in fit_cells
    ]


def influence_of(inner: Any, params: FloatArray, design: Design | None) -> FloatArray | None:
    """Influence of every row of the fit on the parameters, (rows, n_params); None if unknown."""
    model = inner.model
    if type(model).__name__ in ("OLS", "WLS"):
        residuals = np.asarray(inner.wresid, dtype=np.float64)
        influence = np.asarray(model.pinv_wexog).T * residuals[:, None]
        return influence if design is None else influence @ design.inside.T
    if not hasattr(model, "score_obs") or not hasattr(model, "hessian"):
        return None
    try:
        scores = np.asarray(model.score_obs(inner.params), dtype=np.float64)
        information = -np.asarray(model.hessian(inner.params), dtype=np.float64)
        if design is not None:
            return scores @ design.inverse(information)
        influence = np.asarray(np.linalg.solve(information, scores.T).T, dtype=np.float64)
    except (NotImplementedError, np.linalg.LinAlgError, TypeError, ValueError, AttributeError):
        return None
    return influence if influence.shape[1] == len(params) else None


def hc1_factor(n_rows: int, n_parameters: int) -> FloatArray:
    """The factor of HC1, root of n / (n - q), for every row."""
    return np.full(n_rows, np.sqrt(n_rows / max(n_rows - n_parameters, 1)))


def row_factor(inner: Any, n_parameters: int, *, robust: bool) -> FloatArray:
    """Factors of the `influence_of` rows in a robust covariance, (rows,) (math [80]).

    1/(1 - leverage) of least squares, as in HC3; of other models, and beside a ``robust``
    covariance of the fit, the one of HC1. (Where classes of a logit nearly separate, a leverage
    near 1 says nothing of its errors.)
    """
    model = inner.model
    n_rows = len(model.endog)
    design = None if robust else _least_squares(model)
    if design is None:
        return hc1_factor(n_rows, n_parameters)
    leverage = np.einsum("ij,ji->i", design, np.linalg.pinv(design))
    # A row that the fit goes through has no residual that could say anything.
    free = leverage < 1 - EXACT
    return np.asarray(np.divide(1.0, 1 - leverage, out=np.zeros(n_rows), where=free))


def _least_squares(model: Any) -> FloatArray | None:
    """The design of a model fitted by least squares, with roots of weights; None for others."""
    kind = type(model).__name__
    if kind in ("OLS", "WLS"):
        return np.asarray(model.wexog, dtype=np.float64)
    family = getattr(model, "family", None)
    names = (type(family).__name__, type(getattr(family, "link", None)).__name__)
    if kind != "GLM" or names[0] != "Gaussian" or names[1].lower() != "identity":
        return None
    if np.any(model.freq_weights != 1):  # of as many rows, each with a leverage of its own
        return None
    return np.asarray(np.sqrt(model.iweights)[:, None] * model.exog, dtype=np.float64)
