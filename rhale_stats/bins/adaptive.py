"""The default rule: edges by an unbiased estimate of the risk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from rhale_stats.arguments.checks import is_number
from rhale_stats.arguments.words import shown
from rhale_stats.arrays import adaptive
from rhale_stats.arrays.moments import Axis
from rhale_stats.bins.rule import (
    MOST_CELLS,
    Candidates,
    Column,
    Partition,
    check_enough_rows,
    check_most,
    equal_cells,
)
from rhale_stats.schema.door import check_parameters


@dataclass(frozen=True)
class AdaptiveBins:
    """As few bins as the data allow, constant or linear (math [22], with the remedies below).

    Bins minimise an estimate of the risk, sum over bins of width * (s^2 + penalty * p * v / n):
    s^2 is the unbiased variance of the residuals in a bin of n rows, p is 1 where the effect is
    constant in the bin and more where it is a line, and v is s^2, or the noise of all bins together
    where that is larger. Found exactly on a grid of ``max_bins`` equal cells; then, exactly again,
    with every edge moved by less than a cell of that grid, on one ten times finer. Last,
    neighbours are joined, the most alike first, while one fit to both is worse by less than
    (penalty + 2) times their noise, a parameter.

    A linear bin has a ``slope``, and its ``heterogeneity`` is the spread of the residuals. With
    ``weighting="rows"`` its ``effect`` is that of the line at the middle of the bin, and the curve
    is a parabola there; with "axis" both come from cells, math [5] and [7].

    Parameters
    ----------
    max_bins : int, default 100
        Number of cells of the grid. 1000 take a third of a second a feature.
    degree : {1, 0}, default 1
        1: each bin is constant or linear, whichever has the smaller risk. 0: constant bins only.
    penalty : float, optional
        How much smaller the risk of more bins must be, in variances of a mean. By default
        2 ln ``max_bins``: it grows with the number of places where an edge may be. The second
        parameter of a line costs 4: a slope is taken from two standard errors on.
    min_obs : int, default 10
        Smallest number of rows of a bin (with precision weights: smallest effective number). At
        least 2 whatever is given.
    refine : bool, default True
        Move edges on the finer grid. Never done where local effects are slopes across cells of
        ``max_bins``: inside a cell there is nothing to be seen.

    Notes
    -----
    The noise of all bins together is at first that of neighbouring cells, then that of the fit.
    Without it a bin of few rows that happen to be alike would cost nothing, and a row far away
    would be cut out; with it, noise whose spread changes along x is joined rather than cut.
    Bins follow the effect, not the heterogeneity: a spread that changes where the effect does not
    is averaged over. The study ``bins`` compares this rule with the others, the study ``penalty``
    what the default was chosen from.

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

    max_bins: int = 100
    degree: int = 1
    penalty: float | None = field(default=None, metadata={"default": "2 ln max_bins"})
    min_obs: int = 10
    refine: bool = True

    def __post_init__(self) -> None:
        check_parameters(self)
        check_most("max_bins", self.max_bins, MOST_CELLS)
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
        """The fine grid: ten cells to one of ``max_bins`` equal cells, or one."""
        return equal_cells(column, self._fine * self.max_bins, "max_bins")

    def choose(self, candidates: Sequence[Candidates]) -> list[Partition]:
        """The bins of smallest risk, for every feature."""
        chosen = []
        for candidate in candidates:
            check_enough_rows(candidate, self.min_obs)
            # Slopes across cells show nothing inside a cell.
            fine = self._fine if candidate.edges is None else 1
            starts, linear = adaptive.adaptive_partition(
                candidate.moments,
                candidate.comoments,
                adaptive.Grid(candidate.low, candidate.high, fine, candidate.edges),
                risk=self._risk(),
                min_obs=self.min_obs,
                resolution=candidate.resolution,
            )
            chosen.append(Partition(starts, linear if self.degree else None))
        return chosen

    @property
    def _fine(self) -> int:
        return adaptive.FINE if self.refine else 1

    def _risk(self) -> adaptive.Risk:
        edge = 2 * np.log(self.max_bins) if self.penalty is None else self.penalty
        return adaptive.Risk(edge=edge, slope=4.0 if self.degree else None, split=edge + 2)
