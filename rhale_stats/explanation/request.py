"""What is explained: the model, the rows that are used, and the features by their kind."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from rhale_stats.arguments.rows import of_rows, row_codes
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.explanation.settings import Budget
from rhale_stats.models.adapters.libraries import columns_known_of
from rhale_stats.models.options import ModelOptions
from rhale_stats.models.outputs import Model, ModelError
from rhale_stats.models.sample import Sample, columns_and_levels
from rhale_stats.models.table import Table
from rhale_stats.schema.identity import row_coordinate

# Rows by which the time of the model is measured.
TIMED_ROWS, TIMED_SECONDS = 2000, 0.1
# Seconds that a value of a row takes when the row is copied for the model.
COPIED_SECONDS = 3e-9
# Rows that the model answers for each row and feature: at both edges of its bin, or beside its
# level; and for permutation importance.
ASKED, PERMUTED = 2, 5


@dataclass(frozen=True)
class ExplainRequest:
    """The model and the rows of an explanation.

    ``X`` are the rows used, in the form in which the user has them; ``rows`` their numbers.
    """

    model: Model
    X: Any
    sample: Sample
    rows: IntArray
    n_rows_given: int
    # Names of the features in the order of the table; those whose values are levels.
    features: list[str]
    levels: list[str]
    discrete: list[str]
    y: FloatArray | NDArray[Any] | None
    groups: IntArray | None
    predicted: FloatArray
    output_label: str
    row_seconds: float

    @property
    def table(self) -> Table:
        """The rows used."""
        return self.sample.table

    @property
    def options(self) -> ModelOptions:
        """Output, scale and weights, of the rows used."""
        return self.sample.options

    @property
    def axes(self) -> list[str]:
        """Features with an axis, in the order of the table."""
        return [name for name in self.features if name not in self.levels]

    @property
    def weight(self) -> FloatArray | None:
        """Weights of the rows used."""
        return self.sample.weight

    @property
    def share(self) -> FloatArray:
        """Weights of the rows that sum to 1."""
        return self.sample.share

    @property
    def counts(self) -> FloatArray | None:
        """How often each row counts, where weights are frequencies."""
        return self.weight if self.sample.frequency else None

    @property
    def n_effective(self) -> float:
        """Effective number of rows."""
        if self.counts is not None:
            return float(self.counts.sum())
        return 1 / float(np.sum(self.share**2))

    @property
    def deviation(self) -> float:
        """Standard deviation of the predictions; what rounding leaves of equal ones is 0."""
        mean = self.share @ self.predicted
        deviation = float(np.sqrt(self.share @ (self.predicted - mean) ** 2))
        return deviation if deviation > 1e-12 * float(np.abs(self.predicted).max()) else 0.0

    def frame(self) -> pd.DataFrame:
        """The features as a DataFrame, by which rows may be split."""
        data, positions = (
            self.table.data,
            [self.table.names.index(feature) for feature in self.features],
        )
        if isinstance(data, pd.DataFrame):
            return data.iloc[:, positions].set_axis(self.features, axis=1)
        return pd.DataFrame(data[:, positions], columns=self.features)

    def some(self, n_rows: int, rng: np.random.Generator) -> tuple[Any, ModelOptions, IntArray]:
        """Rows drawn at random, in the user's form, with their options; or all."""
        n = self.table.n_rows
        if n_rows >= n:
            return self.X, self.options, np.arange(n)
        rows = np.sort(rng.choice(n, n_rows, replace=False))
        return *_of_rows(self.sample.take(rows)), rows


class SeveralOutputsError(ValueError):
    """The model has several outputs, ``labels``, of which each is explained by itself."""

    def __init__(self, labels: Sequence[Any]) -> None:
        self.labels = list(labels)
        super().__init__(
            f"explain answers for one output of a model that is no classifier where y is given; "
            f"it has {', '.join(map(str, labels))}. Choose one: output=..."
        )


class Columns(NamedTuple):
    """What was said of columns: those to explain, and those whose numbers are levels."""

    features: str | int | Sequence[str | int] | None
    categorical: str | int | Sequence[str | int] | None


def request_of(
    model: Model,
    X: Any,
    y: ArrayLike | None,
    columns: Columns,
    groups: ArrayLike | None,
    options: ModelOptions,
    budget: Budget,
    rng: np.random.Generator,
) -> ExplainRequest:
    """Check what was given, and choose rows and features."""
    whole = Sample.from_table(X, options)
    n_given = whole.table.n_rows
    names, levels, discrete = _features(whole.table, model, columns, budget)
    labels = (
        row_coordinate(whole.table.index, n_given)[1] if whole.table.index is not None else None
    )
    every = np.ones(n_given, dtype=bool)
    codes = None if groups is None else row_codes(groups, labels, every, "groups", "rows of X")
    outcome = None if y is None else np.asarray(of_rows(y, labels, n_given, "y", "rows of X"))
    used_rows, options = whole.answerable(model, [whole.table.names.index(name) for name in names])
    whole = replace(whole, options=options)
    present = np.flatnonzero(whole.present & used_rows)
    seconds = _time_of(whole, present, model)
    answers_per_row = ASKED * len(names) + (PERMUTED * len(names) if y is not None else 0)
    n_rows = budget.rows(len(present), answers_per_row, seconds)
    budget.check_features(len(names), ASKED * n_rows * COPIED_SECONDS * len(whole.table.names))
    rows = present if n_rows == len(present) else np.sort(rng.choice(present, n_rows, False))
    used = whole if len(rows) == n_given else whole.take(rows)
    used_X, used_options = (X, options) if used is whole else _of_rows(used)
    used = replace(used, options=used_options)
    answers = used.quotients(model)
    predicted = answers.at_rows()
    if predicted.shape[1] > 1:
        raise SeveralOutputsError(answers.outputs.labels)
    if not np.isfinite(predicted).all():
        raise ModelError(
            f"model must return finite numbers; got others in "
            f"{int((~np.isfinite(predicted)).sum())} of {len(predicted)} rows."
        )
    return ExplainRequest(
        model,
        used_X,
        used,
        rows,
        n_given,
        names,
        levels,
        discrete,
        None if outcome is None else outcome[rows],
        None if codes is None else pd.factorize(codes[rows], sort=True)[0].astype(np.int64),
        predicted[:, 0].astype(np.float64),
        answers.outputs.label,
        seconds,
    )


def _of_rows(sample: Sample) -> tuple[Any, ModelOptions]:
    """Rows in the form of the user, and the options for these rows."""
    table = sample.table
    return table.form.as_given(table.data), replace(sample.options, weights=sample.weight)


def _time_of(whole: Sample, present: IntArray, model: Model) -> float:
    """Seconds that the model takes for a row, in a call that is long enough to tell."""
    n_rows = TIMED_ROWS
    while True:
        answers = whole.take(np.resize(present[:n_rows], n_rows)).quotients(model, probe=False)
        if n_rows == TIMED_ROWS:
            answers.at_rows()  # the first call compiles and imports
        begun = time.perf_counter()
        answers.at_rows()
        took = time.perf_counter() - begun
        if took > TIMED_SECONDS or n_rows >= len(present):
            return took / n_rows + COPIED_SECONDS * len(whole.table.names)
        n_rows = min(4 * n_rows, len(present))


def _features(
    table: Table,
    model: Model,
    columns: Columns,
    budget: Budget,
) -> tuple[list[str], list[str], list[str]]:
    """Features, those whose values are levels, and those of them that are numbers.

    Levels are of those columns that the budget allows.
    """
    of_model = columns_known_of(model, table.names)
    chosen, levels = columns_and_levels(table, *columns, of_model, constants=False)
    # Numbers with few values are levels in their own order, of a formula too.
    levels += [
        position for position in chosen if position not in levels and table.is_discrete(position)
    ]
    counts = {
        table.names[position]: table.series(position).nunique()
        for position in levels
        if position in chosen
    }
    affordable = [
        *budget.columns(counts),
        *(table.names[position] for position in chosen if position not in levels),
    ]
    if not affordable:
        raise ValueError(
            f"budget must be larger for {max(counts.values()):,} levels; got {budget.total:g}s. "
            f"Give more time, put levels together, or take budget=None for no bound."
        )
    chosen = [position for position in chosen if table.names[position] in affordable]
    discrete = [
        position for position in chosen if position in levels and table.is_numeric(position)
    ]
    levels = [position for position in chosen if position in levels]
    names = table.names
    return (
        [names[position] for position in chosen],
        [names[position] for position in levels],
        [names[position] for position in discrete],
    )
