"""Rules of the paper that search for edges: optimal, greedy, best equal widths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rhale_stats.arrays import binning
from rhale_stats.arrays.moments import (
    Axis,
    FloatArray,
    IntArray,
    Moments,
    merge,
    n_effective,
    union,
    variance,
)
from rhale_stats.bins.fixed import equal_fractions
from rhale_stats.bins.rule import (
    MAX_CELLS,
    Candidates,
    Column,
    Partition,
    check_ddof,
    check_discount,
    check_enough_rows,
    check_most,
    equal_cells,
    nearest_to,
)
from rhale_stats.schema.validation import check_parameters


@dataclass(frozen=True)
class OptimalBins:
    """The paper's bins: the partition that minimises its criterion (math [21]; Eq. 13 and 14).

    Minimises the sum over bins of (1 - discount * n_k / N) * variance_k * width_k, over all
    partitions with at least ``min_obs`` rows a bin and edges on a grid of ``max_bins`` equal cells.
    If the costs of two partitions differ by less than 1e-9 of the cost of one bin, the partition
    with fewer bins is taken, so that a constant derivative gives one bin.

    Parameters
    ----------
    max_bins : int, default 100
        Number of cells of the grid.
    min_obs : int, optional
        Smallest number of rows of a bin (with precision weights: smallest effective number). The
        default is a twentieth of all rows. Smaller values than 2 count as 2, since one row has no
        variance.
    discount : float, default 0.2
        The paper's alpha, in [0, 1): the share by which the cost of a bin with all rows is reduced.
    ddof : {1, 0}, default 1
        Divisor n - ddof of the variance in the criterion. Use 0 only to compare with the authors'
        code.

    Examples
    --------
    >>> import rhale_stats as rs
    >>> rs.OptimalBins(min_obs=25)
    OptimalBins(max_bins=100, min_obs=25, discount=0.2, ddof=1)
    """

    max_bins: int = 100
    min_obs: int | None = field(default=None, metadata={"default": "N/20"})
    discount: float = 0.2
    ddof: int = 1

    def __post_init__(self) -> None:
        check_parameters(self)
        check_most("max_bins", self.max_bins, MAX_CELLS)
        check_discount(self.discount)
        check_ddof(self.ddof)

    def cells(self, column: Column) -> Axis:
        """``max_bins`` equal cells from the smallest to the largest value."""
        return equal_cells(column, self.max_bins, "max_bins")

    def choose(self, candidates: Sequence[Candidates]) -> list[Partition]:
        """The best partition of every feature."""
        # Features with the same number of cells are solved together.
        lengths = [len(candidate.moments.weight) for candidate in candidates]
        chosen: dict[int, Partition] = {}
        for length in dict.fromkeys(lengths):
            members = [number for number, n_cells in enumerate(lengths) if n_cells == length]
            some = [candidates[number] for number in members]
            stacked = Moments(
                *(np.stack(part) for part in zip(*(c.moments for c in some), strict=True))
            )
            for candidate, needed in zip(some, self._least_rows(stacked), strict=True):
                check_enough_rows(candidate, needed)
            width = np.stack([candidate.width for candidate in some])
            resolution = np.array([candidate.resolution for candidate in some])
            starts = self.starts(stacked, width, resolution)
            chosen |= {
                number: Partition(np.flatnonzero(row))
                for number, row in zip(members, starts, strict=True)
            }
        return [chosen[number] for number in range(len(candidates))]

    def starts(
        self, cells: Moments, width: FloatArray, resolution: FloatArray
    ) -> NDArray[np.bool_]:
        """Which cells of these widths begin a bin, all (problem, cell)."""
        return binning.optimal_starts(
            cells,
            width,
            min_obs=self._least_rows(cells),
            discount=self.discount,
            ddof=self.ddof,
            resolution=resolution,
        )

    def _least_rows(self, cells: Moments) -> FloatArray:
        n_rows = n_effective(union(cells))
        return n_rows / 20 if self.min_obs is None else np.full(len(n_rows), float(self.min_obs))


@dataclass(frozen=True)
class GreedyBins:
    """Bins that grow from left to right, each until one more cell makes it worse (math [20]).

    Beginning at the left end, a bin takes one cell after the other of a grid of ``max_bins`` equal
    cells. It is closed where the next cell would multiply (1 - discount * n_k / N) * variance_k by
    more than ``factor``, once it has ``min_obs`` rows. A last bin with fewer joins its neighbour.
    Costs that differ by less than 1e-9 of that of one bin are equal, so that a constant derivative
    gives one bin.

    Parameters
    ----------
    max_bins : int, default 100
        Number of cells of the grid.
    min_obs : int, default 10
        Smallest number of rows of a bin (with precision weights: smallest effective number).
        Smaller values than 2 count as 2. The default is that of the authors' code.
    discount : float, default 0.2
        In [0, 1): the share by which the cost of a bin with all rows is reduced. It is 0 in the
        authors' code.
    factor : float, default 1.05
        At least 1. A bin is closed if the next cell would multiply its cost by more than this.
    ddof : {1, 0}, default 1
        Divisor n - ddof of the variance in the cost. Use 0 only to compare with the authors' code.

    Notes
    -----
    The search goes from left to right only: on the reversed axis the bins are not the mirrored
    ones. It looks one cell ahead and never revises an edge. `OptimalBins` is therefore at least as
    good by the paper's criterion if both allow the same bins. If cells have few rows, chance alone
    changes a variance by more than 5 %, and noise is cut into several bins.

    Examples
    --------
    >>> import rhale_stats as rs
    >>> rs.GreedyBins(min_obs=25)
    GreedyBins(max_bins=100, min_obs=25, discount=0.2, factor=1.05, ddof=1)
    """

    max_bins: int = 100
    min_obs: int = 10
    discount: float = 0.2
    factor: float = 1.05
    ddof: int = 1

    def __post_init__(self) -> None:
        check_parameters(self)
        check_most("max_bins", self.max_bins, MAX_CELLS)
        check_discount(self.discount)
        if not 1 <= self.factor < np.inf:
            raise ValueError(
                f"factor must be at least 1 and finite; got {self.factor!r}. Below 1 a bin would "
                f"be closed although its loss had not grown."
            )
        check_ddof(self.ddof)

    def cells(self, column: Column) -> Axis:
        """``max_bins`` equal cells from the smallest to the largest value."""
        return equal_cells(column, self.max_bins, "max_bins")

    def choose(self, candidates: Sequence[Candidates]) -> list[Partition]:
        """One sweep over every feature."""
        chosen = []
        for candidate in candidates:
            check_enough_rows(candidate, self.min_obs)
            starts = binning.greedy_partition(
                candidate.moments,
                min_obs=self.min_obs,
                discount=self.discount,
                factor=self.factor,
                ddof=self.ddof,
                resolution=candidate.resolution,
            )
            chosen.append(Partition(starts))
        return chosen


@dataclass(frozen=True)
class BestEqualWidthBins:
    """Bins of equal width, in the number that has the smallest accumulated spread (math [19]).

    K is chosen from 1 to ``max_bins``, among the numbers for which every bin has ``min_obs`` rows.
    It minimises the width of a bin times the sum of heterogeneity_k (1 - discount * n_k / N). If
    losses are equal, the smallest K is taken. The result has the loss of every K as ``bin_loss``,
    infinite where a bin has too few rows.

    Parameters
    ----------
    max_bins : int, default 100
        Largest number of bins.
    min_obs : int, default 10
        Smallest number of rows of a bin (with precision weights: smallest effective number).
        Smaller values than 2 count as 2.
    discount : float, default 0.2
        In [0, 1): the share by which the cost of a bin with all rows is reduced.

    References
    ----------
    Note of June 2021, *Idea in bullets*, section 3, Eq. 4 and 5.

    Examples
    --------
    >>> import rhale_stats as rs
    >>> rs.BestEqualWidthBins(max_bins=40)
    BestEqualWidthBins(max_bins=40, min_obs=10, discount=0.2)
    """

    max_bins: int = 100
    min_obs: int = 10
    discount: float = 0.2

    def __post_init__(self) -> None:
        check_parameters(self)
        check_most("max_bins", self.max_bins, MAX_CELLS)
        check_discount(self.discount)

    def cells(self, column: Column) -> Axis:
        """Cells between the edges of all K, so that one pass over the rows serves every K."""
        # Smallest distance between the edges for K and those for K - 1 bins.
        equal_cells(column, max(self.max_bins * (self.max_bins - 1), 1), "max_bins")
        fractions = equal_fractions(self.max_bins)
        return binning.variable_axis(binning.equal_edges(column.low, column.high, fractions))

    def choose(self, candidates: Sequence[Candidates]) -> list[Partition]:
        """The best number of bins for every feature, and the loss (math [19]) of every number."""
        return [self._best(candidate) for candidate in candidates]

    def _best(self, candidate: Candidates) -> Partition:
        check_enough_rows(candidate, self.min_obs)
        losses = np.array([self._loss(candidate, n + 1) for n in range(self.max_bins)])
        span = candidate.high - candidate.low
        tie = binning.TIE * losses[0] + span * candidate.resolution
        n_bins = 1 + int(np.argmax(losses <= losses.min() + tie))
        return Partition(self._starts(candidate, n_bins), losses=losses)

    def _loss(self, candidate: Candidates, n_bins: int) -> float:
        starts = self._starts(candidate, n_bins)
        bins = merge(candidate.moments, starts)
        if not (n_effective(bins) >= max(self.min_obs, 2) * (1 - 1e-12)).all():
            return np.inf
        span = candidate.high - candidate.low
        width = np.full(n_bins, span / n_bins)
        if candidate.edges is not None:
            width = np.diff(np.append(candidate.edges[starts], candidate.high))
        share = bins.weight / bins.weight.sum()
        spread = np.sqrt(variance(bins, 1))
        return float(np.sum(width * spread * (1 - self.discount * share)))

    def _starts(self, candidate: Candidates, n_bins: int) -> IntArray:
        if candidate.edges is None:
            return np.searchsorted(equal_fractions(self.max_bins), np.arange(n_bins) / n_bins)
        wanted = candidate.low + np.arange(n_bins) / n_bins * (candidate.high - candidate.low)
        nearest = nearest_to(candidate.edges, wanted)
        nearest[0] = 0  # cells may begin far below the smallest value
        return np.unique(np.minimum(nearest, len(candidate.edges) - 2))
