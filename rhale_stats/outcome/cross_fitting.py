"""Models fitted without each fold of the rows, and what they predict for these (math [114])."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from inspect import signature
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from rhale_stats.arguments.progress import progress_bar
from rhale_stats.arguments.rows import of_rows, row_codes
from rhale_stats.arguments.seeds import seed_of
from rhale_stats.arguments.words import first_rows, shown, warn
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.models.adapters.libraries import columns_known_of
from rhale_stats.models.adapters.statsmodels import classes as categories_of
from rhale_stats.models.differences import DifferenceQuotients
from rhale_stats.models.forms import in_numpy_types, read
from rhale_stats.models.sample import Sample
from rhale_stats.models.table import check_column
from rhale_stats.parallel import in_processes, n_processes

Learner = Callable[[Any, Any, "FloatArray | None", int], Any]
# Words of the models of statsmodels that hold a value for each row.
ROW_ARGUMENTS = ("offset", "exposure", "freq_weights", "var_weights", "sigma")


class NotRefittable(TypeError):
    """There is no way to fit this model again."""


class TooLong(Exception):
    """The fits would take longer than they may, foreseen from the first, which is kept."""

    def __init__(self, seconds: float, first: CrossFits) -> None:
        super().__init__(f"the fits would take about {seconds:.0f} s")
        self.first = first


@dataclass(frozen=True)
class CrossFits:
    """Models without each fold; all arrays are of the rows of ``sample``.

    ``folds`` and the two kinds of predictions are (repeat, row): those of the model that did not
    see the row (NaN where there is none), and of the model of the next fold, which has seen it.
    ``observed`` is the outcome as numbers: for a classifier 1 for the class.
    """

    sample: Sample
    models: tuple[tuple[Any, ...], ...]
    folds: IntArray
    held_out: FloatArray
    other: FloatArray
    observed: FloatArray
    kind: str
    label: str
    groups: IntArray | None
    learner: str

    @property
    def n_folds(self) -> int:
        """Number of folds of a repeat."""
        return len(self.models[0])

    @cached_property
    def models_at_rows(self) -> list[list[tuple[IntArray, DifferenceQuotients]]]:
        """The models by repeat and fold, at the rows of their own fold and of the fold before.

        Every feature asks at the same rows, so that what is read of the models is kept.
        """
        return [
            [self._at_rows(fold, number, model) for number, model in enumerate(models)]
            for fold, models in zip(self.folds, self.models, strict=True)
        ]

    def predicted(self) -> CrossFits:
        """Without the rows for which a model gives no finite number, which a warning names."""
        gone = ~np.isfinite(self.held_out + self.other).all(axis=0)
        if not gone.any():
            return self
        n_rows, used = self.sample.whole.n_rows, np.flatnonzero(~gone)
        lost = np.zeros(n_rows, dtype=bool)
        lost[self.sample.rows[gone]] = True
        what = f"in {int(gone.sum())} of {n_rows} rows ({first_rows(lost)})"
        if not len(used):
            raise ValueError(f"fit must predict finite numbers; its models give none {what}.")
        warn(f"Left out: models that were fitted again give no prediction {what}.")
        return replace(
            self,
            sample=self.sample.take(used),
            folds=self.folds[:, used],
            held_out=self.held_out[:, used],
            other=self.other[:, used],
            observed=self.observed[used],
            groups=None if self.groups is None else pd.factorize(self.groups[used])[0],
        )

    def _at_rows(
        self, fold: IntArray, number: int, model: Any
    ) -> tuple[IntArray, DifferenceQuotients]:
        rows = np.flatnonzero((fold == number) | (fold == (number - 1) % self.n_folds))
        return rows, self.sample.quotients(model, probe=False).take(rows)

    @property
    def columns(self) -> dict[str, FloatArray]:
        """The columns that are held fixed: those that the learner uses, never the outcome."""
        names = self.sample.table.names
        model_columns = columns_known_of(self.models[0][0], names)
        positions = range(len(names)) if model_columns is None else model_columns.positions(names)
        columns = {names[position]: self._numbers(position) for position in positions}
        outcome = [name for name, x in columns.items() if np.array_equal(x, self.observed)]
        if outcome:
            warn(f"Left out, because it is the outcome itself: {', '.join(outcome)}.")
        return {name: x for name, x in columns.items() if name not in outcome}

    def _numbers(self, position: int) -> FloatArray:
        """A column as numbers: its values, or numbers of its levels; NaN is missing."""
        table = self.sample.table
        if table.is_nested(position):
            return np.full(table.n_rows, np.nan)
        if table.is_numeric(position):
            return np.asarray(check_column(table, position, missing="drop"), dtype=np.float64)
        code = table.series(position).astype("category").cat.codes.to_numpy().astype(np.float64)
        return np.where(code >= 0, code, np.nan)


def cross_fit(
    fit: Any,
    sample: Sample,
    y: Any,
    *,
    n_folds: int = 5,
    n_repeats: int = 2,
    groups: IntArray | None = None,
    rng: np.random.Generator,
    n_jobs: int | None = None,
    progress: bool = True,
    most_seconds: float = np.inf,
) -> CrossFits:
    """Fit the learner to all folds but one, for each fold and repeat.

    Raise ``NotRefittable`` where ``fit`` cannot be fitted again, and ``TooLong`` where the first
    fit took so long that all would take more than ``most_seconds``.
    """
    outcome, is_series = np.asarray(y), isinstance(y, pd.Series)
    missing = np.asarray(pd.isna(outcome))
    if missing.any():
        raise ValueError(
            f"y must have a value in every row; {int(missing.sum())} of {len(outcome)} are "
            f"missing. Leave these rows out of X and y."
        )
    n_units = len(outcome) if groups is None else int(groups.max()) + 1
    if n_units < 2 * n_folds:
        what = "rows" if groups is None else "groups"
        raise ValueError(
            f"n_folds must leave at least two {what} in each fold; got {n_folds} folds of "
            f"{n_units} {what}."
        )
    learner, name = learner_of(fit)
    stream = np.random.default_rng(seed_of(rng))
    strata = _strata(outcome, groups)
    folds = np.stack([_folds(strata, groups, n_folds, stream) for _ in range(n_repeats)])
    all_folds = product(range(n_repeats), range(n_folds))
    tasks = [(repeat, fold, int(stream.integers(2**31))) for repeat, fold in all_folds]

    def fitted(task: tuple[int, int, int]) -> Any:
        repeat, fold, number = task
        rows = np.flatnonzero(folds[repeat] != fold)
        part = sample.take(rows)
        # A Series keeps its name and type.
        part_y = y.iloc[rows].reset_index(drop=True) if is_series else outcome[rows]
        return learner(part.table.form.as_given(part.table.copied()), part_y, part.weight, number)

    settings = outcome, groups, name
    processes = n_processes(n_jobs or 1, most=len(tasks))
    with progress_bar(len(tasks), "cross-fitting", "fit", progress=progress) as bar:
        for _ in range(2):  # the first fit may have imported and compiled; the second tells
            begun = time.perf_counter()
            first = fitted(tasks[0])
            seconds = (time.perf_counter() - begun) * len(tasks) / processes
            if seconds <= most_seconds:
                break
        else:
            few = _with_predictions(sample, ((first,),), np.minimum(folds[:1], 1), *settings)
            raise TooLong(seconds, few)
        bar.update(1)
        models = [first, *in_processes(fitted, tasks[1:], processes, lambda _: bar.update(1))]
    of_repeats = tuple(tuple(models[k : k + n_folds]) for k in range(0, len(models), n_folds))
    return _with_predictions(sample, of_repeats, folds, *settings)


def _with_predictions(
    sample: Sample,
    models: tuple[tuple[Any, ...], ...],
    folds: IntArray,
    outcome: NDArray[Any],
    groups: IntArray | None,
    name: str,
) -> CrossFits:
    """What every model predicts for its own fold and for the fold before."""
    n_folds = len(models[0])
    held_out, other = np.full(folds.shape, np.nan), np.full(folds.shape, np.nan)
    label, of_class = "", None
    for repeat, of_repeat in enumerate(models):
        for number, model in enumerate(of_repeat):
            quotients = sample.quotients(model, probe=False)
            for fold, predictions in ((number, held_out), ((number - 1) % n_folds, other)):
                rows = np.flatnonzero(folds[repeat] == fold)
                answers = quotients.take(rows).at_rows()
                if answers.shape[1] > 1:
                    raise ValueError(
                        f"output must name one output of the model; it has "
                        f"{', '.join(map(str, quotients.outputs.labels))}."
                    )
                predictions[repeat, rows] = answers[:, 0]
            label = label or str(quotients.outputs.label)
            of_model = class_of(model, label)
            of_class = of_class or of_model
            if of_model != of_class:
                both = (
                    ", ".join(classes[0]) if classes else "" for classes in (of_model, of_class)
                )
                raise ValueError(
                    "y must have rows of all its classes in every fold; a model of one fold knows "
                    "{} and another {}. Leave rare classes out, or take fewer folds.".format(*both)
                )
    observed, kind = outcome_numbers(outcome, of_class, held_out)
    return CrossFits(sample, models, folds, held_out, other, observed, kind, label, groups, name)


def class_of(model: Any, label: str) -> tuple[list[str], str] | None:
    """Names of the classes of a model, and of that which an output is of; None for numbers."""
    names = getattr(model, "classes_", None)
    if names is not None and label:
        return [str(name) for name in np.ravel(np.asarray(names))], label
    categories = categories_of(model)
    # Outputs of these models are called by their numbers.
    if categories is None or not label.isdecimal() or int(label) >= len(categories):
        return None
    return categories, categories[int(label)]


def outcome_numbers(
    outcome: NDArray[Any], of_class: tuple[list[str], str] | None, predicted: FloatArray
) -> tuple[FloatArray, str]:
    """Outcomes as numbers, and whether they are "numbers" or a "class" whose probability is asked.

    Without names of classes, outcomes of 0 and 1 with predictions between them are a class.
    """
    y = pd.Series(outcome)
    if of_class is not None:
        return _is_class(y, *of_class), "class"
    values = pd.to_numeric(y, errors="coerce").to_numpy(dtype=np.float64)
    if not np.isfinite(values).all():
        raise ValueError(
            f"y must hold finite numbers, or classes of the model; got others in "
            f"{int((~np.isfinite(values)).sum())} of {len(values)} rows."
        )
    shares = np.nanmin(predicted) >= 0 and np.nanmax(predicted) <= 1
    binary = shares and set(np.unique(values)) == {0.0, 1.0}
    return values, "class" if binary else "numbers"


def _is_class(y: pd.Series[Any], names: list[str], label: str) -> FloatArray:
    """1 where the outcome is the class, else 0; numbers are compared as numbers."""
    texts = y.astype(str)
    numbers, values = (pd.to_numeric(column, errors="coerce") for column in (pd.Series(names), y))
    if numbers.notna().all() and values.notna().all():
        written = dict(zip(numbers.astype(float), names, strict=True))
        texts = values.astype(float).map(written).fillna(texts)
    unknown = sorted(set(texts[y.notna()]) - set(names))
    if unknown or y.isna().any():
        raise ValueError(
            f"y must hold classes of the model, {', '.join(sorted(names))}; got "
            f"{', '.join(map(repr, unknown[:3])) or 'missing values'}."
        )
    return np.asarray(texts == label, dtype=np.float64)


def _strata(outcome: NDArray[Any], groups: IntArray | None) -> list[IntArray]:
    """Units that are dealt out evenly: rows of each class, or all rows or groups."""
    if groups is not None:
        return [np.arange(int(groups.max()) + 1)]
    code, values = pd.factorize(outcome)
    if len(values) > 12:
        return [np.arange(len(outcome))]
    return [np.flatnonzero(code == number) for number in range(len(values))]


def _folds(
    strata: list[IntArray], groups: IntArray | None, n_folds: int, rng: np.random.Generator
) -> IntArray:
    """The fold of every row; whole groups are in one fold."""
    order = np.concatenate([rng.permutation(units) for units in strata])
    fold = np.empty(len(order), dtype=np.int64)
    fold[order] = np.arange(len(order)) % n_folds
    return fold if groups is None else fold[groups]


# --- learners -------------------------------------------------------------------------------------


def learner_of(fit: Any) -> tuple[Learner, str]:
    """A function that fits a new model to rows, and its name.

    Raises ``NotRefittable`` where there is none.
    """
    # predict and predict_proba of an estimator stand for it.
    fit = getattr(fit, "__self__", fit) if hasattr(fit, "__func__") else fit
    if isinstance(fit, str):
        return _of_formula(fit), "formula"
    if hasattr(fit, "model") and hasattr(fit, "params"):
        return _of_results(fit), type(fit.model).__name__
    if hasattr(fit, "fit") and not isinstance(fit, type):
        return _of_estimator(fit), type(fit).__name__
    if callable(fit) and _takes_outcomes(fit):
        name = str(getattr(fit, "__name__", type(fit).__name__))
        return (lambda X, y, _weight, _seed: fit(X, y)), "a function" if "<" in name else name
    raise NotRefittable(
        f"fit must be an estimator with a method fit, a formula, or a function of X and y that "
        f"returns a fitted model; got {shown(fit)}, which cannot be fitted again."
    )


def _takes_outcomes(fit: Callable[..., Any]) -> bool:
    """Whether a function can be called with X and y."""
    try:
        signature(fit).bind(None, None)
    except (TypeError, ValueError):
        return False
    return True


def _of_estimator(estimator: Any) -> Learner:
    """Clones of an estimator; a random state that is not set is drawn from the seed."""

    def fit(X: Any, y: Any, weight: FloatArray | None, seed: int) -> Any:
        new = _cloned(estimator)
        if hasattr(new, "get_params"):
            free = {
                name: seed
                for name, value in new.get_params(deep=True).items()
                if name.split("__")[-1] in ("random_state", "random_seed") and value is None
            }
            if free:
                new.set_params(**free)
        fitted = new.fit(X, y, **({} if weight is None else _weights_of(new, weight)))
        return new if fitted is None else fitted

    return fit


def _cloned(estimator: Any) -> Any:
    with suppress(ImportError, TypeError):
        from sklearn.base import clone

        return clone(estimator)
    return deepcopy(estimator)


def _weights_of(estimator: Any, weight: FloatArray) -> dict[str, FloatArray]:
    """The argument by which an estimator, or the last step of a pipeline, takes weights."""
    steps = getattr(estimator, "steps", None)
    last, prefix = (estimator, "") if steps is None else (steps[-1][1], f"{steps[-1][0]}__")
    try:
        takes = "sample_weight" in signature(last.fit).parameters
    except (TypeError, ValueError):
        takes = False
    if takes:
        return {f"{prefix}sample_weight": weight}
    warn(f"{type(last).__name__} takes no weights: it is fitted without them.")
    return {}


def _of_formula(formula: str) -> Learner:
    """Least squares by a formula; logit where the outcome is 0 and 1."""

    def fit(X: Any, y: Any, weight: FloatArray | None, _seed: int) -> Any:
        from patsy import PatsyError
        from statsmodels.formula import api
        from statsmodels.genmod.families import Binomial

        response, separator, right = formula.partition("~")
        name = response.strip() if separator else "outcome"
        if not name.isidentifier():
            raise NotRefittable(
                f"fit must be a formula whose left side is one name; got {formula!r}. Give y on "
                f"the scale that is meant."
            )
        data = _in_pandas(X).assign(**{name: np.asarray(y)})
        text = f"{name} ~ {right if separator else formula}"
        try:
            if set(np.unique(data[name])) <= {0, 1}:
                return api.glm(text, data, family=Binomial(), freq_weights=weight).fit()
            return api.wls(text, data, weights=1.0 if weight is None else weight).fit()
        except PatsyError as error:
            raise ValueError(
                f"fit must be a formula of the columns of X, {', '.join(map(str, data)):.200}; got "
                f"{formula!r}: {str(error).splitlines()[0]}."
            ) from error

    return fit


def _in_pandas(X: Any) -> pd.DataFrame:
    """A table as statsmodels takes it."""
    return pd.DataFrame(in_numpy_types(read(X)[0]))


def _of_results(results: Any) -> Learner:
    """The same model of statsmodels, by its formula or the columns of its fit."""
    model = results.model
    # Those of a GLM are made by its fit.
    weight_argument = ("weights",) if type(model).__name__ == "WLS" else ()
    arguments = {name: getattr(model, name, None) for name in (*ROW_ARGUMENTS, *weight_argument)}
    plain = [
        name
        for name, values in arguments.items()
        if values is not None and np.ptp(np.asarray(values, dtype=np.float64)) > 0
    ]
    if plain:
        raise NotRefittable(
            f"fit must be a model without {' and '.join(plain)} of single rows to be fitted again; "
            f"give a function of X and y that returns the fitted model."
        )
    formula, names = getattr(model, "formula", None), list(model.exog_names or [])
    has_family = "family" in signature(type(model)).parameters
    more = {"family": model.family} if has_family else {}
    quiet = {"disp": 0} if "disp" in signature(model.fit).parameters else {}

    def fit(X: Any, y: Any, weight: FloatArray | None, _seed: int) -> Any:
        table = _in_pandas(X)
        if weight is not None:
            warn(f"{type(model).__name__} is fitted again without weights.")
        if formula is not None:
            name = str(model.endog_names)
            if not name.isidentifier():
                raise NotRefittable(
                    f"fit must be a model whose outcome is a column as it is; got {name}. Give a "
                    f"function of X and y that returns the fitted model."
                )
            data = table.assign(**{name: np.asarray(y)})
            return type(model).from_formula(formula, data, **more).fit(**quiet)
        columns = {"const": 1.0, "Intercept": 1.0}
        exog = table.assign(
            **{name: columns[name] for name in names if name in columns and name not in table}
        )
        exog = exog[names] if set(names) <= set(exog.columns) else exog
        return type(model)(np.asarray(y), exog, **more).fit(**quiet)

    return fit


def name_of_outcome(y: object, columns: Sequence[str]) -> str:
    """Name of an outcome that has one; empty where it is that of one of the ``columns``.

    pandas names a sum after its one column: ``2 * X["age"] + noise`` is "age".
    """
    name = getattr(y, "name", None)
    return name if isinstance(name, str) and name not in columns else ""


def groups_and_outcome(
    sample: Sample, y: ArrayLike | None, groups: ArrayLike | None
) -> tuple[Any, IntArray | None]:
    """Outcomes and groups of the rows of a sample of the whole table, by the index of X.

    Either is None where it is not given.
    """
    table = sample.whole
    labels = table.index
    every = np.ones(table.n_rows, dtype=bool)
    codes = None if groups is None else row_codes(groups, labels, every, "groups", "rows of X")
    outcome: Any = None
    if y is not None:
        outcome = np.asarray(of_rows(y, labels, table.n_rows, "y", "rows of X"))[sample.rows]
        outcome = pd.Series(outcome, name=y.name) if isinstance(y, pd.Series) else outcome
    if codes is not None:
        codes = pd.factorize(codes[sample.rows], sort=True)[0].astype(np.int64)
    return outcome, codes
