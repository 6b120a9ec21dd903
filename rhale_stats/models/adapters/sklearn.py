"""Derivatives of scikit-learn's linear models, GLMs and multilayer perceptrons in pipelines.

They are taken backwards: from the derivatives of an output with respect to the inputs of the last
step, (row, input), to those with respect to the inputs of the step before. Steps are known by their
class. With a step that is not here, there is no gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from rhale_stats.models.adapters.adapter import Gradient, numbers
from rhale_stats.models.trees import Coefficients

FloatArray: TypeAlias = NDArray[np.float64]
# From a transformer, its inputs, and derivatives by its outputs, to derivatives by its inputs.
Pull: TypeAlias = Callable[[Any, Any, FloatArray], FloatArray]
# Derivatives of all outputs of the last step by its inputs.
Final: TypeAlias = Callable[[Any, FloatArray, str], list[FloatArray]]

LINEAR = (
    *("ARDRegression", "BayesianRidge", "ElasticNet", "ElasticNetCV", "HuberRegressor", "Lars"),
    *("LarsCV", "Lasso", "LassoCV", "LassoLars", "LassoLarsCV", "LassoLarsIC", "LinearRegression"),
    *("LinearSVR", "OrthogonalMatchingPursuit", "QuantileRegressor", "RANSACRegressor", "Ridge"),
    *("RidgeCV", "SGDRegressor", "TheilSenRegressor"),
)
LINEAR_CLASSIFIERS = (
    *("LinearDiscriminantAnalysis", "LogisticRegression", "LogisticRegressionCV"),
    *("LinearSVC", "RidgeClassifier", "RidgeClassifierCV", "SGDClassifier", "Perceptron"),
)
# Of these probabilities are the logistic or the softmax function of the decision function.
WITH_PROBABILITIES = LINEAR_CLASSIFIERS[:3]
GLMS = ("PoissonRegressor", "GammaRegressor", "TweedieRegressor")
# Encoders do not change with their columns, but at jumps, which are found elsewhere.
ENCODERS = ("OneHotEncoder", "OrdinalEncoder", "TargetEncoder")


def gradient(model: Any, method: str) -> Gradient | None:
    """Derivatives of what a method of a model answers; None where a step has no rule here."""
    steps = steps_of(model)
    final = _final(steps[-1], method)
    if final is None or not all(map(_is_known, steps[:-1])):
        return None

    def derivatives(rows: Any, columns: Sequence[int]) -> FloatArray:
        inputs = [rows]
        for step in steps[:-1]:
            inputs.append(step.transform(inputs[-1]))
        slopes = final(steps[-1], _ordered(steps[-1], inputs.pop()), method)
        outputs = [_pulled(steps[:-1], inputs, slope) for slope in slopes]
        wide = [_in_table(steps[0], rows, output)[:, list(columns)] for output in outputs]
        return np.stack(wide, axis=1)

    return derivatives


def sklearn_name(step: Any) -> str:
    """Name of a class of scikit-learn; empty of others, which may do something else."""
    kind = type(step)
    return kind.__name__ if kind.__module__.partition(".")[0] == "sklearn" else ""


def steps_of(model: Any) -> list[Any]:
    """A model as its steps, without those that pass everything on."""
    if sklearn_name(model) != "Pipeline":
        return [model]
    steps = [inner for _, step in model.steps for inner in steps_of(step)]
    return [step for step in steps if not passes(step)]


def passes(step: Any) -> bool:
    """Whether a step is none: it returns its inputs."""
    if sklearn_name(step) == "FunctionTransformer":
        return step.func is None
    return step is None or isinstance(step, str)


def _is_known(step: Any) -> bool:
    name = sklearn_name(step)
    if name == "ColumnTransformer":
        return hasattr(step, "_transformer_to_input_indices") and all(
            passes(transformer)
            or sklearn_name(transformer) in ENCODERS
            or all(map(_is_known, steps_of(transformer)))
            for _, transformer, _ in step.transformers_
        )
    if name == "MinMaxScaler" and step.clip:
        return False
    if name == "SplineTransformer":
        refuses_missing = getattr(step, "handle_missing", "error") == "error"
        return refuses_missing and step.extrapolation in ("constant", "linear")
    if name == "SimpleImputer":
        return not step.add_indicator and bool(np.isfinite(step.statistics_).all())
    return name in PULLS


def _pulled(steps: Sequence[Any], inputs: Sequence[Any], by: FloatArray) -> FloatArray:
    """Derivatives with respect to the inputs of the first step."""
    for step, x in zip(reversed(steps), reversed(inputs), strict=True):
        by = PULLS[sklearn_name(step)](step, x, by)
    return by


def _ordered(step: Any, x: Any) -> FloatArray:
    """Inputs as an array, in the order of the fit."""
    names = getattr(step, "feature_names_in_", None)
    if names is not None and hasattr(x, "columns") and list(names) != list(x.columns):
        x = x[list(names)]
    return np.asarray(x, dtype=np.float64)


def _in_table(step: Any, rows: Any, by: FloatArray) -> FloatArray:
    """Derivatives by the inputs of the first step in the order of the columns of the table."""
    names = getattr(step, "feature_names_in_", None)
    if sklearn_name(step) == "ColumnTransformer" or names is None or not hasattr(rows, "columns"):
        return by
    out = np.zeros(rows.shape)
    out[:, [list(rows.columns).index(name) for name in names]] = by
    return out


# --- the last step ------------------------------------------------------------------------------


def _final(step: Any, method: str) -> Final | None:
    name = sklearn_name(step)
    if method == "predict":
        if name in GLMS:
            return _glm
        return _linear if name in LINEAR else _network if name == "MLPRegressor" else None
    if method == "predict_proba":
        if name == "MLPClassifier":
            return _network
        several = name in WITH_PROBABILITIES and len(step.classes_) > 2
        one_by_one = several and getattr(step, "solver", "") == "liblinear"
        return _probabilities if name in WITH_PROBABILITIES and not one_by_one else None
    return _linear if name in LINEAR_CLASSIFIERS else None


def _line(step: Any) -> tuple[FloatArray, FloatArray]:
    """Coefficients (output, input), and intercepts."""
    fitted = step.estimator_ if sklearn_name(step) == "RANSACRegressor" else step
    coefficients = np.atleast_2d(np.asarray(fitted.coef_, dtype=np.float64))
    return coefficients, np.ravel(np.asarray(fitted.intercept_, dtype=np.float64))


def linear_of(model: Any, method: str) -> Coefficients | None:
    """The linear predictor of a model that answers by this method; None of others."""
    name, answer = sklearn_name(model), None
    if method == "predict_proba" and name in WITH_PROBABILITIES:
        answer = _two_classes if len(model.classes_) == 2 else lambda sums: softmax(sums, axis=-1)
    elif name not in (LINEAR if method == "predict" else LINEAR_CLASSIFIERS):
        return None
    return Coefficients(*_line(model), lambda rows: numbers(rows, "scikit-learn"), answer)


def _two_classes(sums: FloatArray) -> FloatArray:
    return np.concatenate([expit(-sums), expit(sums)], axis=-1)


def _linear(step: Any, x: FloatArray, _method: str) -> list[FloatArray]:
    return [np.broadcast_to(slope, x.shape) for slope in _line(step)[0]]


def _glm(step: Any, x: FloatArray, method: str) -> list[FloatArray]:
    slope, start = _line(step)
    if sklearn_name(step) == "TweedieRegressor" and (
        step.link == "identity" or (step.link == "auto" and step.power <= 0)
    ):
        return _linear(step, x, method)
    # All other links are logarithms.
    return [np.exp(x @ slope[0] + start)[:, None] * slope[0]]


def _probabilities(step: Any, x: FloatArray, _method: str) -> list[FloatArray]:
    slope, start = _line(step)
    level = x @ slope.T + start
    if len(step.classes_) == 2:
        p = expit(level[:, :1])
        second = p * (1 - p) * slope[0]
        return [-second, second]
    p = softmax(level, axis=1)
    mean = p @ slope
    return [p[:, [number]] * (slope[number] - mean) for number in range(len(slope))]


ACTIVATIONS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    # The function, and its derivative by its value.
    "identity": (lambda z: z, lambda a: np.ones_like(a)),
    "logistic": (expit, lambda a: a * (1 - a)),
    "tanh": (np.tanh, lambda a: 1 - a**2),
    "exp": (np.exp, lambda a: a),
    "relu": (lambda z: np.maximum(z, 0), lambda a: (a > 0).astype(np.float64)),
}


def _network(step: Any, x: FloatArray, method: str) -> list[FloatArray]:
    activation, slope_of = ACTIVATIONS[step.activation]
    layers = [x]
    for weight, shift in zip(step.coefs_[:-1], step.intercepts_[:-1], strict=True):
        layers.append(activation(layers[-1] @ weight + shift))
    last = layers[-1] @ step.coefs_[-1] + step.intercepts_[-1]
    out = []
    for derivative in _through_link(step.out_activation_, last):
        by = derivative @ step.coefs_[-1].T
        for weight, layer in zip(step.coefs_[-2::-1], layers[:0:-1], strict=True):
            by = (by * slope_of(layer)) @ weight.T
        out.append(by)
    if step.out_activation_ == "logistic" and method == "predict_proba" and len(out) == 1:
        return [-out[0], out[0]]
    return out


def _through_link(link: str, last: FloatArray) -> list[FloatArray]:
    """Derivatives of every output by the last layer, (row, unit)."""
    if link == "softmax":
        p = softmax(last, axis=1)
        return [p[:, [unit]] * (np.eye(p.shape[1])[unit] - p) for unit in range(p.shape[1])]
    by = ACTIVATIONS[link][1](ACTIVATIONS[link][0](last))
    return [by[:, [unit]] * np.eye(last.shape[1])[unit] for unit in range(last.shape[1])]


# --- transformers --------------------------------------------------------------------------------


def _principal(step: Any, _x: Any, by: FloatArray) -> FloatArray:
    if step.whiten:
        by = by / np.sqrt(step.explained_variance_)
    return np.asarray(by @ step.components_)


def _polynomial(step: Any, x: Any, by: FloatArray) -> FloatArray:
    x = _ordered(step, x)
    out = np.zeros(x.shape)
    for number, power in enumerate(step.powers_):
        for column in np.flatnonzero(power):
            lower = power - (np.arange(len(power)) == column)
            used = np.flatnonzero(lower)
            out[:, column] += (
                by[:, number] * power[column] * np.prod(x[:, used] ** lower[used], axis=1)
            )
    return out


def _powers(step: Any, x: Any, by: FloatArray) -> FloatArray:
    x, power = _ordered(step, x), step.lambdas_
    if step.method == "box-cox":
        slope = x ** (power - 1)
    else:
        slope = np.where(
            x >= 0, (np.maximum(x, 0) + 1) ** (power - 1), (1 - np.minimum(x, 0)) ** (1 - power)
        )
    return np.asarray(by * slope / (step._scaler.scale_ if step.standardize else 1.0))


def _splines(step: Any, x: Any, by: FloatArray) -> FloatArray:
    x = _ordered(step, x)
    out = np.zeros(x.shape)
    n_splines = by.shape[1] // x.shape[1]
    for position, basis in enumerate(step.bsplines_):
        degree = basis.k
        low, high = basis.t[degree], basis.t[-degree - 1]
        slope = basis.derivative()(np.clip(x[:, position], low, high))[:, :n_splines]
        if step.extrapolation == "constant":
            slope[(x[:, position] < low) | (x[:, position] > high)] = 0.0
        spline_columns = slice(position * n_splines, (position + 1) * n_splines)
        out[:, position] = np.sum(by[:, spline_columns] * slope, axis=1)
    return out


def _by_columns(step: Any, x: Any, by: FloatArray) -> FloatArray:
    """Of a ColumnTransformer, in the order of the columns of ``x``."""
    out = np.zeros(x.shape)
    names = getattr(step, "feature_names_in_", None)
    positions = list(range(x.shape[1]))
    if names is not None and hasattr(x, "columns"):
        positions = [list(x.columns).index(name) for name in names]
    for name, transformer, _ in step.transformers_:
        by_transformed = by[:, step.output_indices_[name]]
        columns = [positions[number] for number in step._transformer_to_input_indices[name]]
        if not by_transformed.shape[1] or sklearn_name(transformer) in ENCODERS:
            continue
        steps = [] if passes(transformer) else steps_of(transformer)
        inputs = [x.iloc[:, columns] if hasattr(x, "iloc") else np.asarray(x)[:, columns]]
        for inner_step in steps[:-1]:
            inputs.append(inner_step.transform(inputs[-1]))
        out[:, columns] += _pulled(steps, inputs[: len(steps)], by_transformed)
    return out


PULLS: dict[str, Pull] = {
    **dict.fromkeys(
        ("StandardScaler", "RobustScaler", "MaxAbsScaler"),
        lambda step, _x, by: by if step.scale_ is None else by / step.scale_,
    ),
    "MinMaxScaler": lambda step, _x, by: by * step.scale_,
    "PCA": _principal,
    "SimpleImputer": lambda step, x, by: np.where(np.isnan(_ordered(step, x)), 0.0, by),
    "PolynomialFeatures": _polynomial,
    "PowerTransformer": _powers,
    "SplineTransformer": _splines,
    "ColumnTransformer": _by_columns,
}
