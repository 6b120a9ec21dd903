"""Models with parameters that were estimated: predictions at other parameters, and their scales."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from copy import copy
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from rhale_stats.arguments.checks import check_choice
from rhale_stats.arguments.rows import of_rows
from rhale_stats.arguments.survey import GroupsOrDesign, SurveyDesign
from rhale_stats.arguments.words import shown
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.models.adapters.statsmodels import (
    LINEAR,
    Linear,
    ManyVersions,
    OutputShares,
    fitted_values,
    numbers_in_fit,
    predict_of,
    prediction_function,
    stacked,
)
from rhale_stats.models.design import Design, hc1_factor, influence_of, row_factor, watched
from rhale_stats.models.forms import collected, in_numpy_types, plain_answer
from rhale_stats.models.outputs import log_odds
from rhale_stats.models.table import Table, as_table
from rhale_stats.schema.identity import row_labels

# Step of a derivative in the imaginary direction: there is no difference to lose digits in.
IMAGINARY = 1e-30
# Links of models of statsmodels that are not generalised linear models.
LINKS = {
    **dict.fromkeys(("OLS", "WLS", "GLS", "GLSAR", "MixedLM", "QuantReg"), "Identity"),
    **dict.fromkeys(
        ("Poisson", "NegativeBinomial", "NegativeBinomialP", "GeneralizedPoisson"), "Log"
    ),
    "Logit": "Logit",
    "Probit": "Probit",
}


class PredictionScale(NamedTuple):
    """What is said instead of the response, and its derivative by the response."""

    name: str
    value: Callable[[FloatArray], FloatArray]
    derivative: Callable[[FloatArray], FloatArray]

    @classmethod
    def from_option(cls, scale: Any, results: Any) -> PredictionScale | None:
        """Of results of statsmodels; None for the response."""
        if callable(scale):
            derivative = _derivative(scale)
            derivative(np.full(2, 0.5))  # refused before the model is called
            return cls(str(getattr(scale, "__name__", "function")), scale, derivative)
        if scale == "logit":
            return cls("logit", log_odds, lambda share: 1 / (share * (1 - share)))
        if scale == "link":
            link = _link_of(results)
            return cls("link", link, link.deriv)
        return None


def _derivative(function: Callable[[Any], Any]) -> Callable[[FloatArray], FloatArray]:
    """Exact to rounding."""

    def derivative(response: FloatArray) -> FloatArray:
        try:
            moved = np.asarray(function(response + IMAGINARY * 1j))
        except TypeError as error:
            raise TypeError(
                "scale must be a function of NumPy such as numpy.log, which takes complex numbers; "
                f"got {shown(function)}."
            ) from error
        return np.asarray(np.imag(moved) / IMAGINARY)

    return derivative


def _link_of(results: Any) -> Any:
    from statsmodels.genmod.families import links

    model = getattr(results, "model", None)
    family, kind = getattr(model, "family", None), type(model).__name__
    if family is not None:
        return family.link
    if kind not in LINKS:
        raise ValueError(
            f"scale='link' needs a model of statsmodels with a link; got {kind}. Pass the link as "
            f"a function of the response: scale=numpy.log."
        )
    return getattr(links, LINKS[kind])()


# --- models with parameters -----------------------------------------------------------------------


# Step along each direction of the parameters, in standard errors. Central differences along x
# leave a relative error of 1e-11, so that 1e-7 is left of it; the third derivative adds 1e-8.
STEP = 1e-4
# Directions with a smaller share of the largest eigenvalue of the correlation are rounding.
MIN_SHARE = 1e-13
# Rows with which it is tried whether predictions depend on the parameters.
ROWS_TRIED = 100


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
        self.params = np.asarray(params, dtype=np.float64)
        if self.params.ndim != 1 or not self.params.size or not np.isfinite(self.params).all():
            raise ValueError(
                f"params must be a row of finite numbers; got shape {self.params.shape}. Flatten "
                f"tables of parameters, in the order of their covariance."
            )
        self.cov = _covariance(cov, len(self.params))
        self.degrees = np.inf
        self.influence = None if scores is None else _scores(scores, self.params) @ self.cov
        n_rows = 0 if self.influence is None else len(self.influence)
        self.row_factor = hc1_factor(n_rows, len(self.params))
        # Only results know of these: a design without full rank, why rows that were asked for are
        # not estimable, a covariance that was chosen as robust, and its clusters.
        self.design: Design | None = None
        self.reasons: set[str] = set()
        self.robust = False
        self.groups: NDArray[Any] | None = None

    def __call__(self, X: Any) -> Any:
        """Predictions at the estimates."""
        return self._predict(self.params, X)

    @property
    def as_model(self) -> Any:
        """The model as `local_effects` takes it."""
        return self

    def changes(self, table: Table) -> tuple[Callable[[Any], FloatArray], Any]:
        """A function from rows to outputs and their changes, and the table to ask it with.

        Shape (rows, outputs, directions + 1): what one step along every direction of `along` adds,
        to first order, and at the end the output itself. By central differences.
        """
        steps = STEP * self.along()
        around = [self.params + steps, self.params - steps, self.params[None]]
        ask, data = self._at_all(table, np.concatenate(around))

        def changes(rows: Any) -> FloatArray:
            upper, lower, middle = np.split(ask(rows), [len(steps), 2 * len(steps)], axis=-1)
            return np.concatenate([(upper - lower) / (2 * STEP), middle], axis=-1)

        if len(steps):
            first = np.arange(min(table.n_rows, ROWS_TRIED))
            if not changes(table.holding(data).take(first).data)[..., :-1].any():
                # All errors would be 0.
                raise ValueError(
                    f"predict(params, X) must depend on params; got the same predictions for the "
                    f"first {len(first)} rows of X when params were changed along each of the "
                    f"{len(steps)} directions of cov. Check that predict uses its first argument."
                )
        return changes, data

    def _at_all(self, table: Table, params: FloatArray) -> tuple[Callable[[Any], FloatArray], Any]:
        """Predictions at all ``params`` (versions, n_params), (rows, outputs, versions)."""

        def versions(rows: Any) -> FloatArray:
            model_rows = table.form.as_given(rows)
            return stacked([plain_answer(self._predict(version, model_rows)) for version in params])

        return versions, table.data

    def numbers_in_fit(self, X: Any) -> IntArray | None:
        """Which row of the fit each row is, -1 of others; None unless all of the fit are there."""
        n_rows = as_table(X).n_rows
        is_of_fit = self.influence is not None and len(self.influence) == n_rows
        return np.arange(n_rows) if is_of_fit else None

    @cached_property
    def influence_on_directions(self) -> FloatArray | None:
        """Influence of every row of the fit on the `directions`; None where it is not known."""
        if self.influence is None:
            return None
        return np.asarray(self.influence @ np.linalg.pinv(self.directions()))

    def fingerprint(self) -> str:
        """Checksum of the parameters and their covariance."""
        return f"{zlib.crc32(np.ascontiguousarray(np.vstack([self.params, self.cov])).data):08x}"

    def directions(self) -> FloatArray:
        """Independent directions of the parameters, each one standard error long.

        Shape (directions, n_params); their outer products sum to the covariance.
        """
        scale = np.sqrt(np.diagonal(self.cov))
        positive = scale > 0
        correlation = self.cov[np.ix_(positive, positive)] / np.outer(
            scale[positive], scale[positive]
        )
        values, vectors = np.linalg.eigh(correlation)
        large = values > MIN_SHARE * values.max(initial=0.0)
        out = np.zeros((int(large.sum()), len(scale)))
        out[:, positive] = (vectors[:, large] * np.sqrt(values[large])).T * scale[positive]
        return out

    def along(self) -> FloatArray:
        """The `directions`; without full rank also every parameter by itself, for `estimable`."""
        directions = self.directions()
        if self.design is None:
            return directions
        return np.vstack([directions, np.diag(self.design.unit)])

    def estimable(self, change: FloatArray) -> FloatArray:
        """Changes (direction, estimate) along the `directions`, from those `along` all.

        NaN of an estimate that is not estimable: its gradient leaves the row space of the design.
        """
        if self.design is None:
            return change
        direction_change, gradient = np.split(change, [len(change) - len(self.params)])
        return np.where(self.design.leaves(gradient), np.nan, direction_change)

    def facts(self) -> dict[str, str]:
        """Why some estimates are not estimable, as an attribute of a result; empty if all are."""
        return {"not_estimable": "; ".join(sorted(self.reasons))} if self.reasons else {}


class _FromResults(Parametric):
    """Results of statsmodels, with their offsets."""

    def __init__(self, results: Any) -> None:
        self.results = results
        self._inner = getattr(results, "_results", results)
        if getattr(self._inner.model, "exog", results) is None:
            raise ValueError(
                "model must have the data of its fit; these results are without "
                "(remove_data=True). Fit it again, or pass Parametric(predict, params, cov)."
            )
        # Of several outputs the parameters are a table, and its covariance goes column by column.
        self._shape = np.shape(self._inner.params)
        self.params = np.ravel(np.asarray(self._inner.params, dtype=np.float64), order="F")
        self.design, self.reasons = Design.from_results(results), set()
        self.degrees = np.inf
        if getattr(results, "use_t", False):
            # Of clusters, one less than these.
            self.degrees = float(getattr(results, "df_resid_inference", results.df_resid))
        self.robust = getattr(self._inner, "cov_type", "nonrobust") != "nonrobust"
        self.cov = self._covariance()
        self.influence = influence_of(self._inner, self.params, self.design)
        self.row_factor = row_factor(self._inner, len(self.params), robust=self.robust)
        # Clusters that its covariance was made by; None without, or of two.
        groups = (getattr(self._inner, "cov_kwds", None) or {}).get("groups")
        if groups is None and type(self._inner.model).__name__.endswith("GEE"):
            groups = self._inner.model.groups
        self.groups = None if groups is None or np.ndim(groups) != 1 else np.asarray(groups)
        self._asked: tuple[Any, IntArray | None] = None, None

    def _covariance(self) -> FloatArray:
        """Covariance of the parameters, of what is estimable."""
        model, design = self._inner.model, self.design
        if design is not None and not self.robust and "discrete" in type(model).__module__:
            # What they hold is the inverse of a matrix that has none.
            information = -np.asarray(model.hessian(self._inner.params))
            if np.isfinite(information).all():
                return design.inverse(information)
        cov = _of_results(self.results, len(self.params))
        return cov if design is None else np.asarray(design.inside @ cov @ design.inside.T)

    @property
    def as_model(self) -> Any:
        return self.results

    def changes(self, table: Table) -> tuple[Callable[[Any], FloatArray], Any]:
        # Derivatives by parameters of linear predictors are known.
        model, directions = self._inner.model, self.along()
        kind = type(model).__name__
        if kind in LINEAR:
            ask, data = self._asked_of(Linear(model, directions), table)
            return lambda rows: ask(rows)[:, None], data
        if kind == "MNLogit":
            shaped = directions.reshape(-1, *self._shape[::-1]).transpose(0, 2, 1)
            ask, data = self._asked_of(OutputShares(model, shaped), table)
            return lambda rows: _unfolded(ask(rows), len(directions) + 1), data
        return super().changes(table)

    def _at_all(self, table: Table, params: FloatArray) -> tuple[Callable[[Any], FloatArray], Any]:
        shaped = [version.reshape(self._shape, order="F") for version in params]
        ask, data = self._asked_of(ManyVersions(self._inner.model, shaped), table)

        return lambda rows: _unfolded(ask(rows), len(shaped)), data

    def _asked_of(self, model: Any, table: Table) -> tuple[Callable[[Any], FloatArray], Any]:
        """Predictions of another model as this one makes them: by formula, with offsets."""
        other = copy(self._inner)
        other.model = model
        predict = watched(self.results, prediction_function(other), self.reasons)
        ask, data = predict_of(self.results, table.data, predict)
        return lambda rows: np.asarray(ask(rows), dtype=np.float64), data

    def numbers_in_fit(self, X: Any) -> IntArray | None:
        # Asked often of the same table, whose predictions may take long.
        if self._asked[0] is not X:
            ask, data = predict_of(self.results, in_numpy_types(as_table(X).data))
            self._asked = X, numbers_in_fit(self.results, data, ask, fitted_values(self._inner))
        return self._asked[1]


UNCERTAINTY = ("both", "rows", "parameters")
ROW_NUMBER = "row_number"


class Fitted(NamedTuple):
    """A fitted model, the rows that a result was made from, and which uncertainty is wanted."""

    model: Parametric
    X: Any
    uncertainty: str
    # Whether the covariance of the parameters is taken as it was fitted, though rows are added.
    as_fitted: bool = False
    progress: bool = False
    # Group of every row of X; None where rows are independent, or no groups were given.
    codes: NDArray[np.int64] | None = None
    # Whether weights of the result count repeated rows.
    frequency: bool = False

    @classmethod
    def from_model(cls, model: Any, X: Any, uncertainty: str) -> Fitted:
        """Raise ``ValueError`` without ``X``, ``TypeError`` for a model without parameters."""
        check_choice("uncertainty", uncertainty, UNCERTAINTY)
        if X is None:
            raise ValueError(
                "X must come with model: the table that the effects were made from; got None. Pass "
                "both: std_error(effect, local, model=results, X=X)."
            )
        return cls(parametric(model), collected(X), uncertainty)

    def with_groups(self, groups: GroupsOrDesign | None) -> tuple[Fitted, GroupsOrDesign | None]:
        """The groups of the rows, by default those of the covariance, if these are its rows.

        A robust covariance is then taken as it was fitted; with other groups it is made again.
        """
        numbers = None if groups is not None else self.model.numbers_in_fit(self.X)
        if numbers is None:
            return self, groups
        of_fit = self.model.groups if self.uncertainty == "both" else None
        if of_fit is not None:
            # Rows that are not of the fit are groups of their own.
            codes, others = pd.factorize(of_fit)[0], np.arange(len(numbers)) + len(of_fit)
            groups = np.where(numbers >= 0, codes[numbers], others)
        return self._replace(as_fitted=self.model.robust), groups

    def with_codes(
        self, groups: GroupsOrDesign, local: xr.Dataset
    ) -> tuple[Fitted, GroupsOrDesign]:
        """With the groups of all rows of ``X``, and the groups of the rows of local effects."""
        number = local[ROW_NUMBER].values
        if isinstance(groups, SurveyDesign):
            if not np.array_equal(number, np.arange(as_table(self.X).n_rows)):
                raise ValueError(
                    "local must have all rows of X with the design of a survey; got other ones. "
                    "Make it from X."
                )
            return self, groups
        if len(number) == as_table(self.X).n_rows:
            groups = of_rows(groups, row_labels(local), len(number), "groups")
        every = np.asarray(groups)
        codes = pd.factorize(every, use_na_sentinel=False)[0].astype(np.int64)
        return self._replace(codes=codes), every[number]

    def influence_of_rows(self) -> FloatArray | None:
        """Influence of every row of ``X`` on the directions, (row, direction), of the fit's rows.

        None where it is not known, or where the rows are others.
        """
        influence = self.model.influence_on_directions
        numbers = None if influence is None else self.model.numbers_in_fit(self.X)
        if influence is None or numbers is None:
            return None
        return np.where((numbers >= 0)[:, None], influence[numbers], 0.0)

    def row_factor(self) -> FloatArray:
        """Factors of the influences of the rows of ``X``, where these are known."""
        numbers = self.model.numbers_in_fit(self.X)
        assert numbers is not None, "influences are known"
        return np.where(numbers >= 0, self.model.row_factor[numbers], 1.0)

    def numbered(self, local: xr.Dataset, parameter: str = "local") -> xr.Dataset:
        """Local effects, or what else has rows, with the number of every row in ``X``."""
        if "obs" not in local.dims:
            raise ValueError(
                f"{parameter} must hold rows; got what has none. Pass what local_effects or ice "
                f"returned."
            )
        if ROW_NUMBER in local.coords:  # some rows of X, which have their numbers
            return local
        n_obs, n_rows = local.sizes["obs"], as_table(self.X).n_rows
        if n_rows != n_obs:
            raise ValueError(
                f"X must hold the rows of {parameter}; got {n_rows} rows for {n_obs}. Pass the "
                f"table that {parameter} was made from, or the same rows of it."
            )
        return local.assign_coords({ROW_NUMBER: ("obs", np.arange(n_obs))})


def has_parameters(model: Any) -> bool:
    """Whether the model comes with its parameters and their covariance."""
    inner = getattr(model, "_results", model)
    results = all(hasattr(inner, name) for name in ("params", "cov_params", "model"))
    return results or isinstance(model, Parametric)


def parametric(model: Any) -> Parametric:
    """The model with its parameters; ``TypeError`` for one that has none."""
    if isinstance(model, Parametric):
        return model
    if has_parameters(model):
        return _FromResults(model)
    raise TypeError(
        f"model must be results of statsmodels, or Parametric(predict, params, cov); got "
        f"{type(model).__name__}, whose parameters have no covariance. rhale(model, X) "
        f"has its average effects, and bootstrap_refit fits it again."
    )


class ParameterChanges(NamedTuple):
    """A model whose outputs are what every direction of the parameters adds, and the prediction."""

    ask: Callable[[Any], FloatArray]
    table: Table
    n_directions: int

    @classmethod
    def from_model(
        cls, model: Parametric, table: Table, output: int = 0, scale: Any = "response"
    ) -> ParameterChanges:
        """Of one output, by its number, on a scale."""
        ask, data = model.changes(table)
        other = PredictionScale.from_option(scale, getattr(model, "results", None))

        def changes(rows: Any) -> FloatArray:
            answer = ask(rows)[:, output]
            if other is None:
                return answer
            response = answer[:, -1:]
            on_scale = answer * other.derivative(response)
            on_scale[:, -1:] = other.value(response)
            return np.asarray(on_scale)

        return cls(changes, table.holding(data), len(model.along()))


def _unfolded(flat: FloatArray, versions: int) -> FloatArray:
    """Answers (rows, outputs x versions) as (rows, outputs, versions)."""
    return flat.reshape(len(flat), -1, versions)


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
        fixed_cov, cov = cov[:fixed, :fixed], np.zeros((n_params, n_params))
        cov[:fixed, :fixed] = fixed_cov
    return _covariance(cov, n_params)
