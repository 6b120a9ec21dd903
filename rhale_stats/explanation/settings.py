"""What an explanation calls to matter, and how long it may take."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from rhale_stats.arguments.checks import check_flag, check_number, check_percentiles
from rhale_stats.arguments.words import shown
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
    seconds: float | None = None
    if isinstance(budget, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([a-z]*)\s*", budget.lower())
        if match and match[2] in UNITS:
            seconds = float(match[1]) * UNITS[match[2]]
    elif isinstance(budget, int | float | np.integer | np.floating) and not isinstance(
        budget, bool
    ):
        seconds = float(budget)
    if seconds is None or not seconds > 0:
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
        doublings = max(int(np.floor(np.log2(allowed / MIN_ROWS))), 0) if allowed > 0 else 0
        n_kept = min(MIN_ROWS * 2**doublings, n_rows)
        self.cut.append(f"effects are of {n_kept:,} of {n_rows:,} rows, drawn at random")
        return int(n_kept)

    def curves(self, n_curves: int, asked_per_row: float, row_seconds: float) -> int:
        """Rows whose own curves are made: ``n_curves``, its half, ..., at least 100."""
        n_kept, whole = n_curves, n_curves
        while n_kept > MIN_CURVES and n_kept * asked_per_row * row_seconds > ROWS * self.total:
            n_kept = max(n_kept // 2, MIN_CURVES)
        if n_kept < whole:
            self.cut.append(f"single curves are of {n_kept} rows instead of {whole}")
        return n_kept

    def check_features(self, n_features: int, copied_seconds: float) -> None:
        """Raise ``ValueError`` where so many features take too long, and copies for each of them.

        What the model takes is kept to by fewer rows.
        """
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
        names, used = [], 0.0
        for name in sorted(seconds, key=lambda name: seconds[name]):
            used += seconds[name]
            if used > self.total:
                self.cut.append(f"{name} ({n_levels[name]:,} levels) was left out")
            else:
                names.append(name)
        return names

    def pairs(self, n_features: int, feature_seconds: float) -> int:
        """Features whose splits by every column are looked for, at so many seconds each."""
        n_kept = int(min(PAIRS * self.total / max(feature_seconds, 1e-9), n_features))
        if n_kept < n_features:
            self.cut.append(f"splits by each column are of {n_kept} of {n_features} features")
        return n_kept
