"""What is explained, and in which time: model, settings, rows used, features by their kind."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from rhale_stats.arguments.checks import check_flag, check_number, check_percentiles
from rhale_stats.arguments.words import shown
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.models.adapters.libraries import columns_known_of
from rhale_stats.models.options import ModelOptions
from rhale_stats.models.outputs import Model, ModelError
from rhale_stats.models.parametric import Parametric, parametric
from rhale_stats.models.sample import Sample, columns_and_levels
from rhale_stats.models.table import Table
from rhale_stats.outcome.cross_fitting import groups_and_outcome
from rhale_stats.schema.validation import Options


@dataclass(frozen=True)
class ExplainOptions(Options):
    """Threshold and time of `explain`, and what it says and keeps of the rows.

    Parameters
    ----------
    matters : float, default 0.05
        What is called to matter: a share of the standard deviation of the outcome, or of the
        predictions where no outcomes are given. A feature
        "matters" if the interval of its size lies above, "hardly" if it lies below, and otherwise
        one "cannot tell".
    outcome : {"auto", True, False}
        Whether to examine which effects are in the data and not in the model alone, by ten refits
        (`outcome_effects`). "auto": if ``y`` is given, the model can be fitted again, and the fits
        take at most 30 seconds by the time of the first.
    budget : str, float or None, default "60s"
        Time to keep to, as "30s", "2min" or seconds. What takes longer is made smaller: first the
        rows are thinned at random, then single curves and splits; the attribute ``cut`` of the
        result says what was left out. None is no bound.
    held_out : bool, optional
        Whether the rows were kept from the fit of the model; it is only printed.
    percentiles : pair of float, default (1, 99)
        Between which percentiles of the rows of a feature its average curve counts in sizes, ranges
        and shapes: a few distant rows decide nothing. The curve itself is complete.
    keep_local : bool, default False
        Keep the local effects, as the group "local".

    Raises
    ------
    TypeError, ValueError
        A value that cannot be used.

    Examples
    --------
    >>> import rhale_stats as rs
    >>> rs.ExplainOptions(budget="2min").matters
    0.05
    """

    matters: float = 0.05
    outcome: bool | str = "auto"
    budget: str | float | None = "60s"
    held_out: bool | None = None
    percentiles: tuple[float, float] = (1, 99)
    keep_local: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("matters", self.matters)
        if not 0 < self.matters < 1:
            raise ValueError(
                f"matters must lie in (0, 1): a share of the standard deviation of the "
                f"outcome; got {self.matters!r}."
            )
        text = isinstance(self.outcome, str) and self.outcome == "auto"
        if not text and not isinstance(self.outcome, bool):
            raise ValueError(f"outcome must be 'auto', True or False; got {shown(self.outcome)}.")
        object.__setattr__(self, "percentiles", check_percentiles(self.percentiles))
        seconds_of(self.budget)
        if self.held_out is not None:
            check_flag("held_out", self.held_out)


UNITS = {"": 1.0, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
# Shares of the budget: the effects, the curves of single rows, the splits of pairs of columns, and
# what they leave for trees.
EFFECTS, ROWS, PAIRS = 0.35, 0.2, 0.25
# Seconds of a feature, a level, and a pair of levels; how far an estimate of seconds may be off.
OF_FEATURE, OF_LEVEL, OF_LEVELS, SLACK = 0.025, 3e-3, 8e-6, 1.5
# Rows that effects have at least, and single curves.
MIN_ROWS, MIN_CURVES = 1000, 100


def seconds_of(budget: object) -> float:
    """A budget such as "60s", "2 min" or 60 in seconds; None is no bound."""
    if budget is None:
        return np.inf
    seconds = np.nan
    if isinstance(budget, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([a-z]*)\s*", budget.lower())
        if match and match[2] in UNITS:
            seconds = float(match[1]) * UNITS[match[2]]
    elif not isinstance(budget, bool) and isinstance(budget, Real):
        seconds = float(budget)
    if not seconds > 0:
        raise ValueError(
            f"budget must be a time above 0, as '30s', '2min' or a number of seconds, or None for "
            f"no bound; got {budget!r}."
        )
    return seconds


@dataclass
class Budget:
    """Time that is left, and what was left out for want of it."""

    total: float
    begun: float = field(default_factory=time.perf_counter)
    cut: list[str] = field(default_factory=list)

    @property
    def used(self) -> float:
        """Seconds since the begin."""
        return time.perf_counter() - self.begun

    @property
    def left(self) -> float:
        """Seconds to the end; 0 after it."""
        return max(self.total - self.used, 0.0)

    def rows(self, n_rows: int, asked_per_row: float, row_seconds: float) -> int:
        """Rows of the effects: all, or a power of two times 1,000 that the budget allows.

        ``asked_per_row`` times every row goes to the model, which takes ``row_seconds`` each.
        """
        allowed = EFFECTS * self.total / max(asked_per_row * row_seconds, 1e-12)
        if n_rows <= max(allowed, MIN_ROWS):
            return n_rows
        doublings = int(np.log2(max(allowed / MIN_ROWS, 1)))
        n_kept = min(MIN_ROWS * 2**doublings, n_rows)
        self.cut.append(f"effects are of {n_kept:,} of {n_rows:,} rows, drawn at random")
        return int(n_kept)

    def curves(self, n_curves: int, asked_per_row: float, row_seconds: float) -> int:
        """Rows whose own curves are made: ``n_curves``, its half, ..., at least 100."""
        n_kept = n_curves
        while n_kept > MIN_CURVES and n_kept * asked_per_row * row_seconds > ROWS * self.total:
            n_kept = max(n_kept // 2, MIN_CURVES)
        if n_kept < n_curves:
            self.cut.append(f"single curves are of {n_kept} rows instead of {n_curves}")
        return n_kept

    def check_features(self, n_features: int, copied_seconds: float) -> None:
        """Raise ``ValueError`` where so many features, and copies for each, take too long."""
        needed = n_features * (OF_FEATURE + copied_seconds)
        if needed > SLACK * self.total:
            raise ValueError(
                f"budget must be at least {needed:.0f}s for {n_features:,} features; got "
                f"{self.total:g}s. Give more time, name fewer columns in features=, or take "
                f"budget=None for no bound."
            )

    def columns(self, n_levels: Mapping[str, int]) -> list[str]:
        """Names of columns whose levels fit into the time, those of fewest levels first."""
        seconds = {name: n * (OF_LEVEL + OF_LEVELS * n) for name, n in n_levels.items()}
        names = sorted(seconds, key=lambda name: seconds[name])
        used = np.cumsum([seconds[name] for name in names])
        n_kept = int(np.searchsorted(used, self.total, side="right"))
        self.cut += [f"{name} ({n_levels[name]:,} levels) was left out" for name in names[n_kept:]]
        return names[:n_kept]

    def pairs(self, n_features: int, feature_seconds: float) -> int:
        """Features whose splits by every column are looked for, at so many seconds each."""
        n_kept = int(min(PAIRS * self.total / max(feature_seconds, 1e-9), n_features))
        if n_kept < n_features:
            self.cut.append(f"splits by each column are of {n_kept} of {n_features} features")
        return n_kept


# --- the model and its rows -----------------------------------------------------------------------


# Rows by which the time of the model is measured.
TIMED_ROWS, TIMED_SECONDS = 2000, 0.1
# Seconds that a value of a row takes when the row is copied for the model.
COPIED_SECONDS = 3e-9
# Rows that the model answers for each row and feature: at both edges of its bin, or beside its
# level; and for permutation importance.
ASKED, PERMUTED = 2, 5


@dataclass(frozen=True, kw_only=True)
class ExplainRequest(Sample):
    """The model and the rows of an explanation; ``X`` has the rows used in the form of the user."""

    model: Model
    X: Any
    # Names of the features in the order of the table; those whose values are levels.
    features: list[str]
    levels: list[str]
    discrete: list[str]
    y: FloatArray | NDArray[Any] | None
    groups: IntArray | None
    predicted: FloatArray
    output_label: str
    row_seconds: float

    @cached_property
    def parametric(self) -> Parametric:
        """The model with its parameters, for all errors that hold them."""
        return parametric(self.model)

    @property
    def axes(self) -> list[str]:
        """Features with an axis, in the order of the table."""
        return [name for name in self.features if name not in self.levels]

    @property
    def counts(self) -> FloatArray | None:
        """How often each row counts, where weights are frequencies."""
        return self.weight if self.frequency else None

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
        data = self.table.data
        positions = list(map(self.table.names.index, self.features))
        if isinstance(data, pd.DataFrame):
            return data.iloc[:, positions].set_axis(self.features, axis=1)
        return pd.DataFrame(data[:, positions], columns=self.features)

    def some(self, n_rows: int, rng: np.random.Generator) -> tuple[Any, ModelOptions, IntArray]:
        """Rows drawn at random, in the user's form, with their options; or all."""
        n = self.table.n_rows
        if n_rows >= n:
            return self.X, self.options, np.arange(n)
        rows = np.sort(rng.choice(n, n_rows, replace=False))
        return *_of_rows(self.take(rows)), rows


class SeveralOutputsError(ValueError):
    """The model has several outputs, ``labels``, of which each is explained by itself."""

    def __init__(self, labels: Sequence[Any]) -> None:
        self.labels = list(labels)
        super().__init__(
            f"explain answers for one output of a model that is no classifier where y is given; "
            f"it has {', '.join(map(str, labels))}. Choose one: output=..."
        )


def request_of(
    model: Model,
    X: Any,
    y: ArrayLike | None,
    columns: tuple[Any, Any],
    groups: ArrayLike | None,
    options: ModelOptions,
    budget: Budget,
    rng: np.random.Generator,
) -> ExplainRequest:
    """Check what was given, and choose rows and features."""
    whole = Sample.from_table(X, options)
    names, levels, discrete = _features(whole.table, model, columns, budget)
    outcome, codes = groups_and_outcome(whole, y, groups)
    used_rows, options = whole.answerable(model, list(map(whole.table.names.index, names)))
    whole = replace(whole, options=options)
    present = np.flatnonzero(whole.present & used_rows)
    seconds = _time_of(whole, present, model)
    answers_per_row = ASKED * len(names) + (PERMUTED * len(names) if y is not None else 0)
    n_rows = budget.rows(len(present), answers_per_row, seconds)
    budget.check_features(len(names), ASKED * n_rows * COPIED_SECONDS * len(whole.table.names))
    rows = present if n_rows == len(present) else np.sort(rng.choice(present, n_rows, False))
    used = whole if len(rows) == whole.table.n_rows else whole.take(rows)
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
        **vars(used),
        model=model,
        X=used_X,
        features=names,
        levels=levels,
        discrete=discrete,
        y=None if outcome is None else np.asarray(outcome)[rows],
        groups=None if codes is None else pd.factorize(codes[rows], sort=True)[0].astype(np.int64),
        predicted=predicted[:, 0].astype(np.float64),
        output_label=answers.outputs.label,
        row_seconds=seconds,
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
    table: Table, model: Model, columns: tuple[Any, Any], budget: Budget
) -> tuple[list[str], list[str], list[str]]:
    """Features, those whose values are levels, and those of them that are numbers.

    Levels are of those columns that the budget allows. ``columns`` are those to explain, and those
    whose numbers are levels, as the user named them.
    """
    of_model = columns_known_of(model, table.names)
    chosen, levels = columns_and_levels(table, *columns, of_model, constants=False)
    # Numbers with few values are levels in their own order, of a formula too.
    levels += [
        position for position in chosen if position not in levels and table.is_discrete(position)
    ]
    names = table.names
    counts = {
        names[position]: table.series(position).nunique()
        for position in levels
        if position in chosen
    }
    affordable = budget.columns(counts)
    features = [
        names[position]
        for position in chosen
        if position not in levels or names[position] in affordable
    ]
    if not features:
        raise ValueError(
            f"budget must be larger for {max(counts.values()):,} levels; got {budget.total:g}s. "
            f"Give more time, put levels together, or take budget=None for no bound."
        )
    with_levels = [name for name in features if name in affordable]
    discrete = [name for name in with_levels if table.is_numeric(names.index(name))]
    return features, with_levels, discrete
