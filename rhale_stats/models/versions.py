"""Models of statsmodels that answer for many parameters, or with derivatives by them, at once."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd

from rhale_stats.arrays.moments import FloatArray
from rhale_stats.models.table import as_array

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
    kind = type(model._model if isinstance(model, AlongVersions | ManyVersions) else model).__name__
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

    def __init__(self, model: Any, directions: FloatArray) -> None:
        self._model, self._directions = model, directions

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)


class Linear(AlongVersions):
    """A model with a linear predictor whose predictions are derivatives along directions."""

    def predict(self, params: Any, exog: Any = None, *args: Any, **kwargs: Any) -> FloatArray:
        """Change along every direction, and the prediction, (rows, directions + 1)."""
        exog = np.asarray(exog)
        out = np.empty((len(exog), len(self._directions) + 1))
        moved = np.matmul(exog, self._directions.T, out=out[:, :-1])
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
        line = np.einsum("rk,dkj->rjd", exog, self._directions)
        line = np.concatenate([np.zeros_like(line[:, :1]), line], axis=1)
        moved = share[..., None] * (line - np.einsum("rj,rjd->rd", share, line)[:, None])
        return np.concatenate([moved, share[..., None]], axis=-1).reshape(len(exog), -1)


class ManyVersions:
    """A model of statsmodels whose predictions are made at many parameters at once."""

    def __init__(self, model: Any, params: list[FloatArray]) -> None:
        self._model, self._params = model, params

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def predict(self, _params: Any, exog: Any = None, *args: Any, **kwargs: Any) -> FloatArray:
        """Predictions at all parameters instead of ``params``, (rows, outputs x versions)."""
        exog = exog if exog is None else np.asarray(exog)
        answers = [self._model.predict(params, exog, *args, **kwargs) for params in self._params]
        together = stacked(answers)
        return together.reshape(len(together), -1)


def stacked(answers: list[Any]) -> FloatArray:
    """Answers of versions of a model as one array (rows, outputs, versions)."""
    values = [as_array(answer, "model must return", ValueError) for answer in answers]
    return np.stack([array[:, None] if array.ndim == 1 else array for array in values], axis=-1)
