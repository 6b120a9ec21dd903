"""Sums over rows: what is asked of one chunk of rows, and how answers of several chunks merge.

An estimate is a generator. It yields what it needs to know of all rows, gets the answers, and
returns its result. Rows in memory are one chunk, whose answer is taken as it is. Rows in several
chunks are read once for all that the estimates of all features ask at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, TypeVar

from rhale_stats.arrays.moments import FloatArray, need_squares
from rhale_stats.parallel import in_threads

if TYPE_CHECKING:
    from rhale_stats.local.rows import Rows

R = TypeVar("R")


class Asked(NamedTuple):
    """A function of one chunk of rows, and one that merges the answers of several, in order."""

    of: Callable[[Rows], Any]
    merge: Callable[[Sequence[Any]], Any]


# Yields questions, is sent their answers, returns an R.
Steps: TypeAlias = Generator[tuple[Asked, ...], tuple[Any, ...], R]


class Places(NamedTuple):
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

    def places(self, position: int) -> Places:
        """Where the rows of a feature are on its axis."""

    def along(self, position: int, estimate: Callable[[Source], Steps[R]], /) -> Steps[R]:
        """An estimate of one feature alone, whose rows may be sorted for it."""

    def one_by_one(
        self,
        estimates: Sequence[Callable[[Source], Steps[R]]],
        names: Sequence[str],
        threads: int,
        /,
    ) -> tuple[list[R], dict[str, str]]:
        """Results of the estimates, a feature each, and the attribute of `fingerprints`."""

    def answered(self, estimates: Sequence[Steps[R]], threads: int, /) -> list[R]:
        """Results of all estimates."""

    def fingerprints(self, names: Sequence[str], threads: int, /) -> dict[str, str]:
        """The attribute of an effect that tells what every feature of it was made from."""


def answered_by(rows: Rows, estimates: Sequence[Steps[R]], threads: int) -> list[R]:
    """Results of estimates from rows in memory, each estimate in one thread."""
    return in_threads(lambda steps: answer_by(rows, steps), estimates, threads)


def answer_by(rows: Rows, steps: Steps[R]) -> R:
    """The result of one estimate from rows in memory."""
    answers: tuple[Any, ...] | None = None
    while True:
        try:
            asked = next(steps) if answers is None else steps.send(answers)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]
        answers = tuple(one.of(rows) for one in asked)


def unequal(weight: FloatArray | None, *, frequency: bool) -> bool:
    """Whether there are precision weights that differ."""
    return weight is not None and need_squares(weight, frequency=frequency)
