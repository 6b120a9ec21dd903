"""The default rule: edges by penalised least squares, with the noise around them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from rhale_stats.arguments.checks import is_number
from rhale_stats.arguments.words import shown
from rhale_stats.arrays import adaptive, binning
from rhale_stats.arrays import spread as spread_kernel
from rhale_stats.arrays.cells import count_edges
from rhale_stats.arrays.moments import Axis, IntArray
from rhale_stats.bins.rule import (
    MAX_CELLS,
    Candidates,
    Column,
    PackageRule,
    Partition,
    check_enough_rows,
    check_most,
)
from rhale_stats.schema.validation import check_parameters

# Cells of the fine grid in a coarse cell, where there are rows enough.
MAX_FINE = 20
# Fewest degrees of freedom of a bin of the spread; intervals hold from so many on.
SPREAD_ROWS = 30


@dataclass(frozen=True)
class AdaptiveBins(PackageRule):
    """Bins that follow the effect: as few as the data allow, each constant or linear (math [22]).

    Bins minimise the sum of squared residuals, each in units of the noise variance around it, plus
    ``penalty`` for every bin and 4 for each of its parameters, one of a constant and two of a line.
    Where the residuals of a bin exceed the noise, its penalty is larger by as much. Edges may lie
    midway between two neighbouring values, at equal numbers of rows. The search has three steps. It
    finds the exact minimum on a grid of ``max_bins`` cells of equal numbers of rows. It then moves
    every edge by less than a cell on a grid twenty times finer, and finds the exact minimum again.
    Last, it joins neighbouring bins, the most similar first, while one fit to both is worse by less
    than (penalty + 2) noise variances for each parameter that is saved. A gap (math [11]) has an
    edge at either end, and its effect is NaN.

    A linear bin has a ``slope``, and its ``heterogeneity`` is the spread of the residuals. With
    ``weighting="rows"`` its ``effect`` is that of the line at the middle of the bin, and the curve
    is a parabola there; with "axis" both come from cells, math [5] and [7].

    Parameters
    ----------
    max_bins : int, default 100
        Number of cells of the grid. With 1000 cells the search takes a third of a second for each
        feature.
    degree : {1, 0}, default 1
        1: each bin is constant or linear, whichever has the smaller risk. 0: constant bins only.
    penalty : float, optional
        By how much one more edge must lower the squared residuals, in noise variances. The default,
        2 ln ``max_bins``, grows with the number of places where an edge may be. Each parameter
        costs 4 besides: a line is used if its slope exceeds two standard errors.
    min_obs : int, default 10
        Smallest number of rows of a bin (with precision weights: smallest effective number).
        Smaller values than 2 count as 2.
    refine : bool, default True
        Move edges on the finer grid. This has no effect on local effects that are slopes across
        cells, because nothing is known inside such a cell.

    Notes
    -----
    The noise variance of a hundred rows around, or of a twentieth of all, is estimated first from
    neighbouring cells, then from the residuals of the fit. Bins follow the effect and not the
    heterogeneity: where the spread changes and the effect does not, ``heterogeneity`` is averaged,
    and ``spread`` has bins of its own (math [66]), of 30 rows or more. The
    study ``bins`` compares this rule with the others. The study ``penalty`` compares the penalties
    from which the default was chosen.

    Examples
    --------
    >>> import rhale_stats as rs
    >>> example = rs.simulate.Quadratic(sd=0.5)
    >>> local = rs.local_effects(
    ...     None, example.sample(500, rng=0), jacobian=example.jacobian, features="x1"
    ... )
    >>> effect = rs.rhale(local, bins=rs.AdaptiveBins())
    >>> effect["effect"].round(2).values, effect["slope"].round(2).values  # truth: 9 x1
    (array([[4.45]]), array([[9.03]]))
    """

    joins_cells: ClassVar[bool] = True
    places_edges: ClassVar[bool] = True

    max_bins: int = 100
    degree: int = 1
    penalty: float | None = field(default=None, metadata={"default": "2 ln max_bins"})
    min_obs: int = 10
    refine: bool = True

    def __post_init__(self) -> None:
        check_parameters(self)
        check_most("max_bins", self.max_bins, MAX_CELLS)
        if self.degree not in (0, 1):
            raise ValueError(
                f"degree must be 1 (constant and linear bins) or 0 (constant); got {self.degree!r}."
            )
        if self.penalty is not None and not is_number(self.penalty):
            raise TypeError(
                f"penalty must be a number, or None for 2 ln max_bins; got {shown(self.penalty)}."
            )
        if self.penalty is not None and not 0 <= self.penalty < np.inf:
            raise ValueError(
                f"penalty must be at least 0 and finite, or None for 2 ln max_bins; "
                f"got {self.penalty!r}."
            )

    def cells(self, column: Column) -> Axis:
        """The fine grid: cells of equal numbers of rows, some to one of ``max_bins``, and gaps."""
        of_rows, ends = (column.x, column.counts), (column.low, column.high)
        return binning.variable_axis(
            count_edges(*of_rows, *ends, self._most_cells, gaps=column.gaps)
        )

    def choose(self, candidates: Sequence[Candidates]) -> list[Partition]:
        """The bins with the smallest risk, for every feature."""
        chosen = []
        for candidate in candidates:
            check_enough_rows(candidate, self.min_obs)
            n_cells = len(candidate.moments.weight)
            edges = candidate.edges
            if edges is None:
                edges = np.linspace(candidate.low, candidate.high, n_cells + 1)
            starts, linear = adaptive.adaptive_partition(
                candidate.moments,
                adaptive.FineCells(edges, self._fine(n_cells), candidate.gaps),
                penalties=self._penalties(),
                min_obs=self.min_obs,
                resolution=candidate.resolution,
            )
            chosen.append(Partition(starts, linear if self.degree else None))
        return chosen

    def choose_spread(
        self, fine: spread_kernel.Residuals, of_cells: IntArray, *, resolution: float
    ) -> IntArray:
        """First of the ``fine`` cells of the bins of the spread, math [66].

        ``of_cells`` are the first fine cells of the cells between which bins are sought first.
        """
        return spread_kernel.spread_starts(
            fine,
            of_cells,
            # -inf where every edge of the effect is kept.
            penalty=max(self._penalties().split, 0.0),
            min_obs=max(self.min_obs, SPREAD_ROWS),
            resolution=resolution,
        )

    @property
    def _most_cells(self) -> int:
        return (MAX_FINE if self.refine else 1) * self.max_bins

    def _fine(self, n_cells: int) -> int:
        """Number of cells to a coarse one."""
        return max(n_cells // self.max_bins, 1)

    def _penalties(self) -> adaptive.Penalties:
        edge = 2 * np.log(self.max_bins) if self.penalty is None else self.penalty
        return adaptive.Penalties(edge=edge, split=edge + 2, lines=bool(self.degree))
