"""The input and the output of a bin rule, and checks that all rules share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, is_dataclass
from typing import ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from rhale_stats.arguments.words import shown
from rhale_stats.arrays import binning
from rhale_stats.arrays.moments import (
    Axis,
    FloatArray,
    IntArray,
    Moments,
)

# Largest number of bins of a rule, and of cells of a search, whose time and memory grow with the
# square of their number.
MAX_BINS, MAX_CELLS = 1_000_000, 10_000


def check_most(parameter: str, value: int, most: int) -> None:
    """Raise ``ValueError`` if there would be too many bins for the memory."""
    if value > most:
        raise ValueError(
            f"{parameter} must be at most {most:,}; got {value:,}. More would take too much "
            f"memory and time."
        )


@dataclass(frozen=True)
class Column:
    """One feature, as rules get it: values, range, and weights if the rows have any.

    ``low`` and ``high`` are the ends of the axis. With honest bins the rule gets a part of the rows
    only, and its values need not reach these ends. ``cells`` are the edges of the cells if the
    local effects are slopes across cells (math [2]), of which bins are unions; None if they are
    derivatives. ``gaps`` are the ends of the stretches without rows, known if ``x`` ascends.
    """

    name: str
    x: FloatArray
    low: float
    high: float
    counts: FloatArray | None
    cells: FloatArray | None = None
    gaps: FloatArray | None = None


@dataclass(frozen=True)
class Candidates:
    """The moments of one feature's cells, from which a rule chooses edges.

    ``edges`` are those of the cells, None if these are equal. ``gaps`` are the cells that no row of
    the feature is in, of any region.
    """

    name: str
    moments: Moments
    low: float
    high: float
    resolution: float
    edges: FloatArray | None = None
    gaps: NDArray[np.bool_] | None = None

    @property
    def width(self) -> FloatArray:
        """Widths of the cells, equal unless edges were given."""
        if self.edges is not None:
            return np.diff(self.edges)
        n_cells = len(self.moments.weight)
        return np.full(n_cells, (self.high - self.low) / n_cells)


class Partition(NamedTuple):
    """The bins that a rule chose for one feature, by their first cells.

    ``linear`` says which bins are linear. ``losses`` are the losses of 1, 2, ... bins, infinite if
    not allowed, from a rule that compares numbers of bins.
    """

    starts: IntArray
    linear: NDArray[np.bool_] | None = None
    losses: FloatArray | None = None

    @property
    def is_linear(self) -> NDArray[np.bool_]:
        """Which bins are linear: none where the rule does not say."""
        return np.zeros(len(self.starts), dtype=bool) if self.linear is None else self.linear


@runtime_checkable
class BinRule(Protocol):
    """The methods that `rhale` needs of a rule for bins."""

    def cells(self, column: Column) -> Axis:
        """The finest cells that this rule considers for one feature."""

    def choose(self, candidates: Sequence[Candidates]) -> list[Partition]:
        """The bins of every feature."""


class PackageRule:
    """What is known of the rules of this package, and of no rule of a user.

    ``joins_cells``: it joins cells of any width to bins, by the local effects; ``places_edges``:
    it puts every edge where they ask for one. ``equal_widths``: its cells have one width.
    """

    joins_cells: ClassVar[bool] = False
    places_edges: ClassVar[bool] = False
    equal_widths: ClassVar[bool] = False


def check_rule(rule: object) -> None:
    """Raise ``TypeError`` unless this is a rule for bins."""
    if isinstance(rule, type) or not isinstance(rule, BinRule):
        raise TypeError(
            f"bins must be a rule such as OptimalBins() or EqualWidthBins(20); got {shown(rule)}. "
            f"Edges go into GivenBins(edges)."
        )
    if not is_dataclass(rule):
        raise TypeError(
            f"bins must be a dataclass if it is a rule of your own, because results store its "
            f"fields; got {shown(rule)}. Decorate its class with @dataclass(frozen=True)."
        )


def make_lines(rule: BinRule) -> bool:
    """Whether a rule may choose linear bins, that is, has a ``degree`` other than 0."""
    return int(getattr(rule, "degree", 0)) > 0


def nearest_to(edges: FloatArray, wanted: FloatArray) -> IntArray:
    """Numbers of the edges that are nearest to the given places."""
    middle = (edges[:-1] + edges[1:]) / 2
    return np.searchsorted(middle, wanted)


def among(edges: FloatArray, wanted: FloatArray) -> tuple[FloatArray, NDArray[np.bool_]]:
    """The edges nearest to the given places, and which places are edges, up to rounding."""
    nearest = edges[nearest_to(edges, wanted)]
    return nearest, np.abs(nearest - wanted) <= 1e-9 * (edges[-1] - edges[0])


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
    total, squares = candidate.moments.weight.sum(), candidate.moments.weight_sq.sum()
    rows = float(total**2 / squares) if squares > 0 else 0.0
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
