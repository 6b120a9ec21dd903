"""Sums over rows: what is asked of one chunk of rows, and how answers of several chunks combine.

Rows in memory are one chunk, whose answer is taken as it is. Rows in several chunks are read once
for the reductions of all features together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from rhale_stats.arrays.moments import FloatArray, need_squares

if TYPE_CHECKING:
    from rhale_stats.local.rows import Rows

R = TypeVar("R")


class Reduction(NamedTuple):
    """A function of one chunk of rows, and one that combines the answers of several, in order."""

    map: Callable[[Rows], Any]
    combine: Callable[[Sequence[Any]], Any]


class SortedValues(NamedTuple):
    """Values of one feature with their weights, sorted or not; None if each counts as one row.

    For many rows in chunks these are a summary [97]: some values, with the weight of the rows
    between them.
    """

    x: FloatArray
    weight: FloatArray | None
    frequency: bool
    ordered: bool = False


class Source(Protocol):
    """All rows of the local effects, in memory or in chunks."""

    @property
    def n_rows(self) -> int:
        """Number of rows of positive weight."""

    @property
    def size(self) -> int:
        """Number of local effects."""

    @property
    def unequal(self) -> bool:
        """Whether rows have precision weights that differ."""

    @property
    def largest(self) -> float:
        """Largest precision weight as it was given; weights are divided by it."""

    @property
    def most_rows(self) -> int:
        """Most rows of a chunk that are taken where an answer is made of rows themselves."""

    def ends(self, position: int, name: str) -> tuple[float, float]:
        """Smallest and largest value of a feature; refused where values are not finite."""

    def places(self, position: int) -> SortedValues:
        """Where the rows of a feature are on its axis."""

    def reduced(
        self,
        plan: Callable[[Source, int], Reduction | None],
        done: Callable[[int, Any], R],
        threads: int,
        /,
    ) -> list[R]:
        """Results of ``done`` for the number of every feature and the answer of its reduction.

        ``plan`` gives the reduction of a feature from the places of its rows, in whose order the
        rows come. Without a reduction the answer is None.
        """

    def fingerprints(self, names: Sequence[str], threads: int, /) -> dict[str, str]:
        """The attribute of an effect that tells what every feature of it was made from."""


def unequal(weight: FloatArray | None, *, frequency: bool) -> bool:
    """Whether there are precision weights that differ."""
    return weight is not None and need_squares(weight, frequency=frequency)
