"""Outputs of a model: which method answers, on which scale, classes by label."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rhale_stats.arguments.checks import check_choice
from rhale_stats.arguments.rows import aligned, as_array
from rhale_stats.arrays import local_effects as kernel
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.models.adapters import sklearn, statsmodels
from rhale_stats.models.adapters.adapter import Adapter, Gradient
from rhale_stats.models.adapters.libraries import adapter_of, is_of_jax, jax_adapter
from rhale_stats.models.adapters.statsmodels import predict_of, prediction_function
from rhale_stats.models.design import watched
from rhale_stats.models.forms import as_is, given_to, plain_answer
from rhale_stats.models.table import Table

Model: TypeAlias = Any
OutputLabels: TypeAlias = Any  # one label, a sequence of them, or None
# Outputs of a classifier: its probabilities, their log-odds, its decision function.
SCALES = ("response", "logit", "decision")
# Rows by which a function of JAX is recognised.
JAX_ROWS = 32
# Methods of scikit-learn whose derivatives are known for some estimators.
GRADIENTS_OF = ("predict", "predict_proba", "decision_function")


class ModelError(RuntimeError):
    """The model raised an error, or did not return numbers for every row; see the cause."""


class UnknownOutputError(KeyError):
    """An output was asked for that the model does not have."""

    def __str__(self) -> str:
        """The message as it is, not in quotes."""
        return str(self.args[0])


class Outputs:
    """The model as a function from a table to numbers, (row, output), and what the outputs are.

    ``labels`` and ``names`` of the outputs are known after the first answer, those of classes at
    once. A label selects; a name is what stands on an axis. ``method`` is the name of the method
    that answers, or "adapter"; ``in_model_form`` brings rows into the form in which the model gets
    them.

    A model that can neither be called nor predict is refused, as are a formula model without a
    DataFrame, and a scale or an output that the model does not have.
    """

    def __init__(
        self,
        model: Model,
        table: Table,
        output: OutputLabels = None,
        scale: str = "response",
    ) -> None:
        check_choice("scale", scale, SCALES)
        formula = getattr(getattr(model, "model", None), "formula", None)
        if formula is not None and not isinstance(table.data, pd.DataFrame):
            raise TypeError(
                f"X must be a DataFrame with the columns of the formula {formula!r}; "
                f"got an array of shape {table.data.shape}."
            )
        self.scale = scale
        several = output is not None and not isinstance(output, str) and np.ndim(output) > 0
        self._asked = None if output is None else list(output) if several else [output]
        self._chosen: list[int] | None = None
        self.labels: list[Any] = []
        self.names: list[str] = []
        self.model, self._adapter = model, adapter_of(model)
        # Linear predictor of results of statsmodels, for exact derivatives.
        self.line: Callable[[Any], Any] | None = None
        if self._adapter is None:
            self.method, self._function = _method_of(model, scale)
        else:
            self.method, self._function = "adapter", self._adapter.predict
            if scale == "decision":
                _refuse_decision(model)
        self.table = table
        if self.method == "predict":
            predict = watched(model, prediction_function(model), set())
            self._function, data = predict_of(model, table.data, predict)
            self.line = statsmodels.line_of(model, table.data)
            self.table = table.holding(data)
        # How the model is given rows: adapters of libraries read pandas and NumPy.
        self.in_model_form: Callable[[Any], Any] = as_is
        if isinstance(model, Adapter):
            self.in_model_form = self.table.form.as_given
        elif self._adapter is None:
            give = given_to(model, self.table.form, self.table.data)
            restore = self.table.form.restore
            self.in_model_form = give if restore is as_is else lambda rows: give(restore(rows))
        self.n_calls, self.n_rows, self.largest, self._width = 0, 0, 0.0, 1
        # Answers that were read from the model, without a call, and from what.
        self.n_read, self.answers_from = 0, "predictions"
        # Range of the answers that were looked at first, and by how much their size exceeds it.
        self.range, self.offset = 0.0, 1.0
        # Rows and answers of a plain function that answers with arrays of JAX.
        self._of_jax: tuple[Any, Any] | None = None
        # Whether calls for several columns raised, and of which columns the type does not matter.
        self.apart = False
        self.alike: dict[frozenset[int], bool] = {}
        self.precision = float(np.finfo(np.float64).eps)
        if isinstance(table.data, np.ndarray):
            self.precision = max(self.precision, float(np.finfo(table.data.dtype).eps))
        # Outlier detectors have decisions, and no classes.
        decides = self.method == "decision_function" and hasattr(model, "classes_")
        if decides or self.method == "predict_proba":
            self._classes(getattr(model, "classes_", None))
        elif self._adapter is not None and self._adapter.classes is not None:
            self._classes(self._adapter.classes)

    @property
    def label(self) -> str:
        """Label of the output that was chosen among several; otherwise empty."""
        return str(self.labels[0]) if len(self.labels) == 1 and self.names != [""] else ""

    @property
    def numbers(self) -> list[int]:
        """Numbers of the outputs that were chosen, after the first answer."""
        return self._chosen or [0]

    def gradient(self) -> Gradient | None:
        """Derivatives as the model gives them, if it does; known after the first answer."""
        if self._adapter is None and self.method in GRADIENTS_OF:
            return sklearn.gradient(self.model, self.method)
        if self._adapter is None and self._of_jax is not None:
            self._adapter = jax_adapter(self.model, *self._of_jax)
            self._of_jax = None  # looked at once
        return None if self._adapter is None else self._adapter.gradient

    def _asked_gradient(
        self, gradient: Gradient, rows: Any, columns: Sequence[int]
    ) -> NDArray[Any]:
        """Derivatives by columns of the table; those that the model does not get have none."""
        # Plain functions, such as those of JAX, get the rows as they are.
        model_rows = rows if self.method == "call" else self.in_model_form(rows)
        if not (isinstance(model_rows, pd.DataFrame) and isinstance(rows, pd.DataFrame)):
            return np.asarray(plain_answer(gradient(model_rows, list(columns))))
        names = list(model_rows.columns)
        column_labels = [rows.columns[column] for column in columns]
        used = [position for position, name in enumerate(column_labels) if name in names]
        derivatives = plain_answer(
            gradient(model_rows, [names.index(column_labels[position]) for position in used])
        )
        derivatives = np.asarray(derivatives)
        if len(used) == len(column_labels):
            return derivatives
        out = np.zeros((*derivatives.shape[:-1], len(column_labels)))
        out[..., used] = derivatives
        return out

    def derivatives(self, gradient: Gradient, rows: Any, columns: Sequence[int]) -> FloatArray:
        """Derivatives of the outputs that were chosen, (row, output, column)."""
        derivatives = self._asked_gradient(gradient, rows, columns)
        derivatives = derivatives[:, None] if derivatives.ndim == 2 else derivatives
        if derivatives.shape != (len(rows), self._width, len(columns)):
            raise ModelError(
                f"gradient of the model must have shape ({len(rows)}, {self._width}, "
                f"{len(columns)}): rows, outputs, columns; got {derivatives.shape}."
            )
        derivatives = derivatives[:, self.numbers]
        if self.scale == "logit":
            answer = plain_answer(self._function(self.in_model_form(rows)))
            answer = as_array(answer, "model must return", ModelError)
            p = answer.reshape(len(rows), -1)[:, self.numbers].astype(np.float64)
            derivatives = derivatives / (p * (1 - p))[..., None]
        return derivatives

    def __call__(self, rows: Any) -> FloatArray:
        """The outputs that were chosen, (row, output), on the scale asked for."""
        return self.finished(self.answer(rows))

    def answer(self, rows: Any) -> NDArray[Any]:
        """The outputs that were chosen as the model gives them, (row, output)."""
        self.n_calls, self.n_rows = self.n_calls + 1, self.n_rows + len(rows)
        answer = plain_answer(self._answer(rows))
        columns = [str(name) for name in getattr(answer, "columns", [])]
        # pandas objects go by the labels of the rows that the model was given.
        index = np.asarray(getattr(rows, "index", np.arange(len(rows))))
        answer = aligned(answer, index, "answer of the model", ModelError)
        values = as_array(answer, "model must return", ModelError)
        if values.ndim == 1:
            values = values[:, None]
        if values.ndim != 2 or len(values) != len(rows) or not values.shape[1]:
            raise ModelError(
                f"model must return one number a row, shape ({len(rows)},) for {len(rows)} rows, "
                f"or one for each of several outputs, ({len(rows)}, outputs); got shape "
                f"{np.shape(answer)}."
            )
        if not np.issubdtype(values.dtype, np.number) or values.dtype.kind == "m":
            raise ModelError(
                f"model must return numbers; got dtype {values.dtype}. Of labels take their "
                f"probability, as in lambda X: model.predict_proba(X)[:, 1]; of durations the days."
            )
        self._width = values.shape[1]
        if self._chosen is None:
            self._number(columns or list(range(self._width)))
        if max(self.numbers) >= values.shape[1]:
            raise ModelError(
                f"model must return as many outputs each time; got {values.shape[1]} after "
                f"{max(self.numbers) + 1} or more."
            )
        # A copy, because some models return an array that they write to again.
        whole = self._chosen == list(range(values.shape[1]))
        return values.copy() if whole else values[:, self._chosen]

    def _answer(self, rows: Any) -> Any:
        """What the model answers; a plain function may be one of JAX, of an array or of columns."""
        first = self.n_calls == 1 and self.method == "call"
        try:
            answer = self._function(self.in_model_form(rows))
        except Exception:
            adapter = jax_adapter(self.model, rows, None) if first else None
            if adapter is None:
                raise
            self.method, self._adapter, self._function = "adapter", adapter, adapter.predict
            self.in_model_form = as_is
            return self._function(rows)
        if first and is_of_jax(answer):
            some = rows.iloc[:JAX_ROWS] if isinstance(rows, pd.DataFrame) else rows[:JAX_ROWS]
            self._of_jax = some.copy(), answer[:JAX_ROWS]
        return answer

    @property
    def step_precision(self) -> float:
        """Precision of the answers in units of their range, by which steps are chosen."""
        return self.precision * self.offset

    def finished(self, values: NDArray[Any]) -> FloatArray:
        """Answers to all rows on the scale asked for; their precision is noted."""
        self.precision = max(self.precision, kernel.precision_held(values))
        return log_odds(values.astype(np.float64)) if self.scale == "logit" else values

    def _number(self, labels: list[Any]) -> None:
        """Choose among the outputs of a function."""
        self._choose(labels, {"logit": "log-odds"}.get(self.scale, "output"))
        if len(labels) == 1 and self._asked is None:
            self.names = ["log-odds"] if self.scale == "logit" else [""]

    def _choose(self, labels: list[Any], what: str) -> None:
        texts = [str(label) for label in labels]
        chosen = labels if self._asked is None else [_as_in(labels, label) for label in self._asked]
        absent = [label for label in chosen if str(label) not in texts]
        if absent or not chosen:
            raise UnknownOutputError(
                f"output must be among those of the model, {', '.join(texts)}; got "
                f"{', '.join(map(repr, absent)) or 'none'}."
            )
        if len({str(label) for label in chosen}) < len(chosen):
            raise ValueError(f"output must name each output once; got {chosen!r}.")
        self._chosen = [texts.index(str(label)) for label in chosen]
        self.labels = [labels[number] for number in self._chosen]
        self.names = [f"{what} {texts[number]}" for number in self._chosen]

    def _classes(self, classes: Any) -> None:
        """Choose among classes: of two by default the second, whose opposite is the first."""
        if classes is None or any(np.ndim(label) for label in classes):
            raise TypeError(
                f"model must be a fitted classifier with one set of classes_; "
                f"{type(self.model).__name__} is not. Pass a function of X that returns numbers."
            )
        labels = [label.item() if isinstance(label, np.generic) else label for label in classes]
        what = {"response": "probability of", "logit": "log-odds of"}.get(self.scale)
        what = "decision for" if what is None or self.method == "decision_function" else what
        if self.method == "decision_function" and len(labels) == 2:
            labels = labels[1:]  # one number a row, for the second class
        elif self._asked is None and len(labels) == 2:
            self._asked = labels[1:]
        self._choose(labels, what)


def _refuse_decision(model: Model) -> None:
    raise ValueError(
        f"scale='decision' needs a model with a decision_function; {type(model).__name__} has "
        f"none. Use scale='response' or 'logit'."
    )


def is_classifier(model: object) -> bool:
    """Whether the model has more than one scale to answer on."""
    return hasattr(model, "predict_proba") or hasattr(model, "decision_function")


def _method_of(model: Model, scale: str) -> tuple[str, Callable[[Any], Any]]:
    """Name of the method of the model that is called."""
    if scale == "decision":
        if not hasattr(model, "decision_function"):
            _refuse_decision(model)
        return "decision_function", model.decision_function
    for method in ("predict_proba", "decision_function"):
        if hasattr(model, method) and hasattr(model, "predict"):
            if scale == "logit" and method == "decision_function":
                break
            # Outlier detectors have decisions, and no classes.
            if method == "predict_proba" or hasattr(model, "classes_"):
                return method, getattr(model, method)
    if scale == "logit" and hasattr(model, "decision_function"):
        raise ValueError(
            f"scale='logit' needs probabilities; {type(model).__name__} has none. Use "
            f"scale='decision'."
        )
    if hasattr(model, "predict"):
        _refuse_labels(model)
        return "predict", model.predict
    if callable(model):
        if getattr(model, "__name__", "") == "predict":
            _refuse_labels(getattr(model, "__self__", None), "Pass the model itself")
        return "call", model
    more = " Of several models: over_models(models, X)." * isinstance(model, list | tuple | dict)
    raise TypeError(
        f"model must be a function of X, or have a predict method; got {type(model).__name__}."
        f"{more}"
    )


def _refuse_labels(model: Model, advice: str = "") -> None:
    """Raise ``ValueError`` where ``predict`` answers with names of classes or clusters."""
    try:
        kind = getattr(model, "_estimator_type", None) or model.__sklearn_tags__().estimator_type
    except AttributeError:
        kind = None
    if kind in ("classifier", "clusterer", "outlier_detector") or (
        # Of a regressor of CatBoost they are there, and empty.
        kind is None and any(np.size(getattr(model, name, ())) for name in ("classes_", "labels_"))
    ):
        if not advice and hasattr(model, "decision_function"):
            advice = "Use scale='decision'"
        advice = advice or (
            "Use a model with probabilities (voting='soft', CalibratedClassifierCV), or pass a "
            "function that answers with a probability or a distance"
        )
        raise ValueError(
            f"model must answer with numbers; predict of {type(model).__name__} answers with "
            f"labels, whose differences mean nothing. {advice}."
        )


def log_odds(values: FloatArray) -> FloatArray:
    """Log-odds of probabilities, refused where there are none."""
    inside = (values > 0) & (values < 1)
    if not inside.all():
        bad = values[~inside]
        raise ModelError(
            f"scale='logit' needs probabilities strictly between 0 and 1; the model answers "
            f"{bad[0]:.6g}, and {len(bad)} of {values.size} like it. Calibrate or bound the "
            f"model, or use scale='response'."
        )
    return np.asarray(np.log(values) - np.log1p(-values))


def _as_in(labels: Sequence[Any], label: Any) -> Any:
    """The label that is the number asked for, 1.0 for 1; else what was asked for."""
    if isinstance(label, bool | str) or not isinstance(label, int | float | np.number):
        return label
    same = (
        candidate
        for candidate in labels
        if isinstance(candidate, int | float | np.number) and candidate == label
    )
    return next((candidate for candidate in same if not isinstance(candidate, bool)), label)
