"""What a bin rule is given and what it returns, and what all rules share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from rhale_stats.arguments.words import shown
from rhale_stats.arrays import binning
from rhale_stats.arrays.moments import (
    Axis,
    Comoments,
    FloatArray,
    IntArray,
    Moments,
    merge,
    n_effective,
)

# Bins of one rule, and cells of a search, whose time and memory grow with their square.
MOST_BINS, MOST_CELLS = 1_000_000, 10_000


def check_most(parameter: str, value: int, most: int) -> None:
    """Raise ``ValueError`` where bins would need more memory than there is."""
    if value > most:
        raise ValueError(
            f"{parameter} must be at most {most:,}; got {value:,}. More would take too much "
            f"memory and time."
        )


@dataclass(frozen=True)
class Column:
    """One feature as a rule sees it: its values, its range, its weights if rows count double.

    ``low`` and ``high`` are the ends of the axis; with honest bins, values near them may be among
    the rows that the rule does not see. ``cells`` are the edges of the cells that local effects are
    slopes across (math [2]): bins are unions of them. None where local effects are derivatives.
    """

    name: str
    x: FloatArray
    low: float
    high: float
    counts: FloatArray | None
    cells: FloatArray | None = None


@dataclass(frozen=True)
class Candidates:
    """The moments of one feature's cells, from which a rule chooses edges.

    ``comoments`` are there for rules that `make_lines`; ``edges`` are those of the cells where
    these are not the rule's own, but those that local effects are slopes across.
    """

    name: str
    moments: Moments
    low: float
    high: float
    resolution: float
    comoments: Comoments | None = None
    edges: FloatArray | None = None

    @property
    def width(self) -> FloatArray:
        """Widths of the cells: equal ones, unless they were given."""
        if self.edges is not None:
            return np.diff(self.edges)
        n_cells = len(self.moments.weight)
        return np.full(n_cells, (self.high - self.low) / n_cells)


class Partition(NamedTuple):
    """What a rule chose for one feature: the first cells of the bins.

    ``linear`` says which bins are linear; ``losses`` are those of 1, 2, ... bins, infinite where
    not allowed, from a rule that compares numbers of bins.
    """

    starts: IntArray
    linear: NDArray[np.bool_] | None = None
    losses: FloatArray | None = None


@runtime_checkable
class BinRule(Protocol):
    """What `rhale` asks of a rule for bins."""

    def cells(self, column: Column) -> Axis:
        """The finest cells that this rule considers for one feature."""

    def choose(self, candidates: Sequence[Candidates]) -> list[Partition]:
        """The bins of every feature."""


def check_rule(rule: object) -> None:
    """Raise ``TypeError`` unless this is a rule for bins."""
    if isinstance(rule, type) or not isinstance(rule, BinRule):
        raise TypeError(
            f"bins must be a rule such as OptimalBins() or EqualWidthBins(20); got {shown(rule)}. "
            f"Edges go into GivenBins(edges)."
        )


def make_lines(rule: BinRule) -> bool:
    """Whether a rule may choose linear bins: it has a ``degree``, and that is not 0."""
    return int(getattr(rule, "degree", 0)) > 0


def nearest_to(edges: FloatArray, wanted: FloatArray) -> IntArray:
    """Numbers of the edges that lie nearest."""
    middle = (edges[:-1] + edges[1:]) / 2
    return np.searchsorted(middle, wanted)


def all_cells(candidates: Sequence[Candidates]) -> list[Partition]:
    """Partitions that keep every cell of its feature as a bin."""
    return [Partition(np.arange(len(candidate.moments.weight))) for candidate in candidates]


def equal_cells(column: Column, n_cells: int, parameter: str) -> Axis:
    """An axis of cells of equal width; raise ``ValueError`` where they are too narrow."""
    if not binning.is_resolved(column.low, column.high, n_cells):
        raise ValueError(
            f"{parameter} must leave cells that floating point can tell apart; {n_cells} cells of "
            f"feature {column.name!r} on [{column.low!r}, {column.high!r}] are too narrow. "
            f"Subtract an offset from the feature, or use fewer cells."
        )
    return binning.regular_axis(column.low, column.high, n_cells)


def check_enough_rows(candidate: Candidates, min_obs: float) -> None:
    """Raise ``ValueError`` unless one bin with all rows is allowed."""
    rows = float(n_effective(merge(candidate.moments, np.array([0])))[0])
    least = max(min_obs, 2)
    if rows < least:
        raise ValueError(
            f"min_obs must not exceed the number of rows, and a variance needs two; "
            f"feature {candidate.name!r} has {rows:g} rows and min_obs is {least:g}. "
            f"Lower min_obs or use more rows."
        )


def check_discount(discount: float) -> None:
    """Raise ``ValueError`` unless the discount lies in [0, 1)."""
    if not 0 <= discount < 1:
        raise ValueError(
            f"discount must lie in [0, 1): at 1 a bin with all rows would cost nothing; "
            f"got {discount!r}."
        )


def check_ddof(ddof: int) -> None:
    """Raise ``ValueError`` unless ``ddof`` is 0 or 1."""
    if ddof not in (0, 1):
        raise ValueError(f"ddof must be 1 (unbiased), or 0 as in the authors' code; got {ddof!r}.")
