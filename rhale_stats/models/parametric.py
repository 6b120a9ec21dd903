"""Models with parameters that were estimated: predictions at other parameters."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rhale_stats.arrays.moments import FloatArray
from rhale_stats.models.offsets import predict_of
from rhale_stats.models.outputs import log_odds
from rhale_stats.models.table import Table, as_array

# Step along each direction of the parameters, in standard errors. Central differences along x
# leave a relative error of 1e-11, so that 1e-7 is left of it; the third derivative adds 1e-8.
STEP = 1e-4
# Directions with a smaller share of the largest eigenvalue of the correlation are rounding.
LEAST_SHARE = 1e-13


class Parametric:
    r"""A fitted model as a function of its parameters, with their covariance.

    It is a model as any other: ``local_effects(parametric, X)`` calls ``predict(params, X)``. With
    `std_error` it gives the uncertainty of the parameters. Results of statsmodels need none of
    this; they are understood as they are.

    Parameters
    ----------
    predict : callable
        ``predict(params, X)`` with one number a row, or a column for each of several outputs.
    params : array_like of shape (n_params,)
        The estimates.
    cov : array_like of shape (n_params, n_params)
        Their covariance, as it is to be used: model-based, robust, or clustered.
    scores : array_like of shape (n_rows, n_params), optional
        Derivative of the log-likelihood of every row of the fit by the parameters. ``cov`` is then
        the inverse of the information, and ``cov @ scores[i]`` is the influence of row i.

    Raises
    ------
    TypeError
        ``predict`` cannot be called.
    ValueError
        Parameters that are not finite; a covariance of another shape, or one that is not symmetric
        or has negative variances; scores of another number of parameters.

    Examples
    --------
    >>> import numpy as np
    >>> import rhale_stats as rs
    >>> X = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    >>> line = rs.Parametric(lambda b, X: X @ b, [2.0, 0.5], np.diag([0.01, 0.04]))
    >>> local = rs.local_effects(line, X)
    >>> effect = rs.std_error(rs.rhale(local), local, model=line, X=X, uncertainty="parameters")
    >>> effect["average_effect_se"].round(6).values
    array([0.1, 0.2])
    """

    def __init__(
        self,
        predict: Callable[[FloatArray, Any], Any],
        params: ArrayLike,
        cov: ArrayLike,
        scores: ArrayLike | None = None,
    ) -> None:
        if not callable(predict):
            raise TypeError(
                f"predict must be a function predict(params, X); got {type(predict).__name__}."
            )
        self._predict = predict
        self.params = _vector(params)
        self.cov = _covariance(cov, len(self.params))
        self.degrees = np.inf
        self.influence = None if scores is None else _scores(scores, self.params) @ self.cov

    def __call__(self, X: Any) -> Any:
        """Predictions at the estimates."""
        return self._predict(self.params, X)

    def at_all(self, table: Table, params: FloatArray) -> tuple[Callable[[Any], FloatArray], Any]:
        """A function from rows to predictions at all ``params``, and the table to ask it with.

        ``params`` are of shape (versions, n_params), predictions of (rows, outputs, versions).
        """

        def versions(rows: Any) -> FloatArray:
            return _stacked([self._predict(one, rows) for one in params])

        return versions, table.data

    def directions(self) -> FloatArray:
        """Independent directions of the parameters, each one standard error long.

        Shape (directions, n_params); their outer products sum to the covariance.
        """
        scale = np.sqrt(np.diagonal(self.cov))
        known = scale > 0
        correlation = self.cov[np.ix_(known, known)] / np.outer(scale[known], scale[known])
        values, vectors = np.linalg.eigh(correlation)
        kept = values > LEAST_SHARE * values.max(initial=0.0)
        out = np.zeros((int(kept.sum()), len(scale)))
        out[:, known] = (vectors[:, kept] * np.sqrt(values[kept])).T * scale[known]
        return out


class _FromResults(Parametric):
    """Results of statsmodels, with their offsets."""

    def __init__(self, results: Any) -> None:
        self.results = results
        self._inner = getattr(results, "_results", results)
        # Of several outputs the parameters are a table, and its covariance goes column by column.
        self._shape = np.shape(self._inner.params)
        self.params = np.ravel(np.asarray(self._inner.params, dtype=np.float64), order="F")
        self.cov = _of_results(results, len(self.params))
        self.degrees = float(results.df_resid) if getattr(results, "use_t", False) else np.inf
        self.influence = _influence(self._inner, self.params)

    def __call__(self, X: Any) -> Any:
        return self.results.predict(X)

    def at_all(self, table: Table, params: FloatArray) -> tuple[Callable[[Any], FloatArray], Any]:
        shaped = [one.reshape(self._shape, order="F") for one in params]
        many = copy(self._inner)
        many.model = _ManyVersions(self._inner.model, shaped)
        ask, data = predict_of(self.results, table.data, many.predict)

        def versions(rows: Any) -> FloatArray:
            flat = np.asarray(ask(rows), dtype=np.float64)
            return flat.reshape(len(flat), -1, len(shaped))

        return versions, data


class _ManyVersions:
    """A model of statsmodels whose predictions are made at many parameters at once."""

    def __init__(self, model: Any, params: list[FloatArray]) -> None:
        self._model, self._params = model, params

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def predict(self, params: Any, exog: Any = None, *args: Any, **kwargs: Any) -> FloatArray:
        """Predictions at all parameters instead of ``params``, (rows, outputs x versions)."""
        exog = exog if exog is None else np.asarray(exog)
        found = [self._model.predict(one, exog, *args, **kwargs) for one in self._params]
        stacked = _stacked(found)
        return stacked.reshape(len(stacked), -1)


def parametric(model: Any) -> Parametric:
    """The model with its parameters; ``TypeError`` for one that has none."""
    if isinstance(model, Parametric):
        return model
    inner = getattr(model, "_results", model)
    if hasattr(inner, "params") and hasattr(inner, "cov_params") and hasattr(inner, "model"):
        return _FromResults(model)
    raise TypeError(
        f"model must be results of statsmodels, or Parametric(predict, params, cov); got "
        f"{type(model).__name__}, whose parameters have no covariance. Refit it instead: "
        f"bootstrap_refit."
    )


class Versions(NamedTuple):
    """A model whose outputs are its predictions at parameters on both sides of the estimates."""

    ask: Callable[[Any], FloatArray]
    table: Table
    n_directions: int

    @classmethod
    def of(
        cls, model: Parametric, table: Table, output: int = 0, scale: str = "response"
    ) -> Versions:
        """Of one output, by its number, on a scale."""
        directions = STEP * model.directions()
        both = np.concatenate([model.params + directions, model.params - directions])
        ask, data = model.at_all(table, both)

        def versions(rows: Any) -> FloatArray:
            answer = ask(rows)[:, output]
            return log_odds(answer) if scale == "logit" else answer

        return cls(versions, Table(data, table.names), len(directions))

    def derivatives(self, values: FloatArray) -> FloatArray:
        """Change with every direction, (..., direction), from values (..., version)."""
        upper, lower = np.split(values, [self.n_directions], axis=-1)
        return np.asarray((upper - lower) / (2 * STEP))


def _stacked(answers: list[Any]) -> FloatArray:
    """Answers of versions of a model as one array (rows, outputs, versions)."""
    values = [as_array(one, "model must return", ValueError) for one in answers]
    return np.stack([one[:, None] if one.ndim == 1 else one for one in values], axis=-1)


def _vector(params: ArrayLike) -> FloatArray:
    values = np.asarray(params, dtype=np.float64)
    if values.ndim != 1 or not len(values) or not np.isfinite(values).all():
        raise ValueError(
            f"params must be a row of finite numbers; got shape {values.shape}. Flatten tables of "
            f"parameters, in the order of their covariance."
        )
    return values


def _covariance(cov: ArrayLike, n_params: int) -> FloatArray:
    values = np.asarray(cov, dtype=np.float64)
    if values.shape != (n_params, n_params) or not np.isfinite(values).all():
        raise ValueError(
            f"cov must be a table of finite numbers of shape ({n_params}, {n_params}), as params "
            f"has {n_params}; got shape {values.shape}."
        )
    scale = np.abs(np.diagonal(values)).max(initial=0.0)
    if np.abs(values - values.T).max(initial=0.0) > 1e-8 * scale:
        raise ValueError("cov must be symmetric.")
    if np.linalg.eigvalsh(values).min(initial=0.0) < -1e-8 * scale:
        raise ValueError("cov must be a covariance: no combination has a negative variance.")
    return (values + values.T) / 2


def _scores(scores: ArrayLike, params: FloatArray) -> FloatArray:
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 2 or values.shape[1] != len(params) or not np.isfinite(values).all():
        raise ValueError(
            f"scores must be finite, of shape (n_rows, {len(params)}); got shape {values.shape}."
        )
    return values


def _of_results(results: Any, n_params: int) -> FloatArray:
    """Covariance as it was fitted, 0 for parameters that do not enter predictions."""
    fixed = getattr(results.model, "k_fe", None)
    cov = np.asarray(results.cov_params(), dtype=np.float64)
    if fixed is not None:
        # Of mixed models: those of the variances are on another scale, and predict leaves them out.
        own, cov = cov[:fixed, :fixed], np.zeros((n_params, n_params))
        cov[:fixed, :fixed] = own
    return _covariance(cov, n_params)


def _influence(inner: Any, params: FloatArray) -> FloatArray | None:
    """Influence of every row of the fit on the parameters, (rows, n_params); None if unknown."""
    model = inner.model
    if type(model).__name__ in ("OLS", "WLS"):
        residuals = np.asarray(inner.wresid, dtype=np.float64)
        return np.asarray(model.pinv_wexog).T * residuals[:, None]
    if not hasattr(model, "score_obs") or not hasattr(model, "hessian"):
        return None
    try:
        scores = np.asarray(model.score_obs(inner.params), dtype=np.float64)
        information = -np.asarray(model.hessian(inner.params), dtype=np.float64)
        influence: NDArray[np.float64] = np.linalg.solve(information, scores.T).T
    except (NotImplementedError, np.linalg.LinAlgError, ValueError, AttributeError):
        return None
    return influence if influence.shape[1] == len(params) else None


