"""Where to cut each axis: one small class a rule, holding its parameters only.

A rule says which fine cells a feature's axis is cut into (`cells`) and which of their edges
become the edges of bins, and perhaps which bins are linear (`choose`). The moments of the cells are
taken once, and serve the cost, the constraint and the final estimates alike, so that no row is ever
in two bins (math [4]).
"""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rhale_stats.arrays import adaptive, binning
from rhale_stats.arrays.moments import (
    Axis,
    Comoments,
    FloatArray,
    IntArray,
    Moments,
    merge,
    n_effective,
    union,
    variance,
)
from rhale_stats.validate import as_edges, check_parameters, is_number, shown

# Bins of one rule, and cells of a search, whose time and memory grow with their square.
MOST_BINS, MOST_CELLS = 1_000_000, 10_000


def _check_most(parameter: str, value: int, most: int) -> None:
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


def cells_of(rule: BinRule, column: Column) -> Axis:
    """The finest cells of one feature: those of the rule, or of the slopes (math [2]).

    No edge of a bin lies inside a cell that a slope was taken across. Rules that search join such
    cells; of others every edge is moved to the nearest one of a cell, and `GivenBins`, whose edges
    are to be kept, are refused where they are not among them.

    Raises
    ------
    ValueError
        Given edges that are none of the cells.
    """
    if column.cells is None:
        return rule.cells(column)
    if isinstance(rule, SEARCHING):
        return binning.variable_axis(column.cells)
    if isinstance(rule, GivenBins):
        return binning.variable_axis(_given_among(rule.edges_of(column.name), column))
    wanted = np.asarray(rule.cells(column).edges)[1:-1]
    nearest = column.cells[_nearest(column.cells, wanted)]
    return binning.variable_axis(np.union1d(nearest, column.cells[[0, -1]]))


def _nearest(edges: FloatArray, wanted: FloatArray) -> IntArray:
    """Numbers of the edges that lie nearest."""
    middle = (edges[:-1] + edges[1:]) / 2
    return np.searchsorted(middle, wanted)


def _given_among(edges: FloatArray, column: Column) -> FloatArray:
    """Given edges as those of the cells that they are, up to rounding."""
    assert column.cells is not None
    cells = column.cells
    inner = edges[(edges > cells[0]) & (edges < cells[-1])]
    nearest = cells[_nearest(cells, inner)]
    off = np.abs(nearest - inner) > 1e-9 * (cells[-1] - cells[0])
    beyond = [end for end in (edges[0] - cells[0], cells[-1] - edges[-1]) if end > 0]
    if off.any() or (beyond and max(beyond) > 1e-9 * (cells[-1] - cells[0])):
        at = float(inner[off][0]) if off.any() else float(edges[0])
        raise ValueError(
            f"edges must be among those of the cells across which slopes of feature "
            f"{column.name!r} were taken; {at:.6g} is none of these {len(cells)} edges, and the "
            f"nearest is {cells[_nearest(cells, np.array([at]))[0]]:.6g}. Take local effects with "
            f"these bins: local_effects(model, X, bins=GivenBins(edges)), or ale(model, X, "
            f"bins=...)."
        )
    return np.union1d(nearest, cells[[0, -1]])


def starts_of(
    rule: BinRule,
    cells: Moments,
    comoments: Comoments | None,
    *,
    name: str,
    low: float,
    high: float,
    resolution: float,
    edges: FloatArray | None = None,
) -> tuple[NDArray[np.bool_], NDArray[np.bool_] | None]:
    """Bins of many problems on one axis: which cells, (problem, cell), begin one, and a linear one.

    The search of regions asks for hundreds at once.
    """
    shape = cells.weight.shape
    if isinstance(rule, EqualWidthBins | QuantileBins | GivenBins):
        return np.ones(shape, dtype=bool), None
    if isinstance(rule, OptimalBins):
        width = np.full(shape[1], (high - low) / shape[1]) if edges is None else np.diff(edges)
        each = np.full(len(cells.weight), resolution)
        return rule.starts(cells, np.broadcast_to(width, shape), each), None
    starts, linear = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
    candidates = []
    for number in range(len(starts)):
        own = Moments(*(part[number] for part in cells))
        products = None if comoments is None else Comoments(*(part[number] for part in comoments))
        candidates.append(Candidates(name, own, low, high, resolution, products, edges))
    for number, found in enumerate(rule.choose(candidates)):
        starts[number, found.starts] = True
        if found.linear is not None:
            linear[number, found.starts] = found.linear
    return starts, linear if make_lines(rule) else None


def describe(rule: BinRule) -> tuple[str, str]:
    """Name and parameters of a rule as text, for the attributes of a result."""
    parameters = []
    for parameter in fields(rule):  # type: ignore[arg-type]
        value = getattr(rule, parameter.name)
        text = parameter.metadata.get("default", "None") if value is None else _as_text(value)
        parameters.append(f"{parameter.name}={text}")
    return type(rule).__name__, ", ".join(parameters)


def rule_of(name: str, parameters: str) -> BinRule:
    """The rule that `describe` described; ``ValueError`` where the text does not say it all."""
    kinds = (
        AdaptiveBins,
        BestEqualWidthBins,
        EqualWidthBins,
        GreedyBins,
        OptimalBins,
        QuantileBins,
    )
    known = {kind.__name__: kind for kind in kinds}
    if name not in known:
        raise ValueError(
            f"bins must be of a rule that can be applied again, {', '.join(known)}; got {name}."
        )
    kind = known[name]
    defaults = {parameter.name: parameter.metadata.get("default") for parameter in fields(kind)}
    given: dict[str, Any] = {}
    for entry in parameters.split(", "):
        parameter, text = entry.split("=")
        given[parameter] = None if text == defaults[parameter] else literal_eval(text)
    return kind(**given)


def for_share_of_rows(rule: BinRule, share: float) -> BinRule:
    """The same rule for the same rows where each counts for a ``share`` of a row."""
    min_obs = getattr(rule, "min_obs", None)
    if min_obs is None:
        return rule
    fewer = max(round(min_obs * share), 1)
    return replace(rule, min_obs=fewer)  # type: ignore[type-var]


def _as_text(value: object) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_as_text(edges)}" for key, edges in value.items()) + "}"
    if isinstance(value, tuple):
        return "[" + ", ".join(f"{edge:.6g}" for edge in value) + "]"
    return str(value)


def _all_cells(candidates: Sequence[Candidates]) -> list[Partition]:
    return [Partition(np.arange(len(candidate.moments.weight))) for candidate in candidates]


def _equal_cells(column: Column, n_cells: int, parameter: str) -> Axis:
    if not binning.is_resolved(column.low, column.high, n_cells):
        raise ValueError(
            f"{parameter} must leave cells that floating point can tell apart; {n_cells} cells of "
            f"feature {column.name!r} on [{column.low!r}, {column.high!r}] are too narrow. "
            f"Subtract an offset from the feature, or use fewer cells."
        )
    return binning.regular_axis(column.low, column.high, n_cells)


@dataclass(frozen=True)
class EqualWidthBins:
    """Bins of one width (math [17]), as in ALE and DALE.

    Parameters
    ----------
    n_bins : int
        Number of bins, from 1 to a million. Bins without rows keep NaN estimates.

    Examples
    --------
    >>> import rhale_stats as rs
    >>> rs.EqualWidthBins(20)
    EqualWidthBins(n_bins=20)
    """

    n_bins: int

    def __post_init__(self) -> None:
        check_parameters(self)
        _check_most("n_bins", self.n_bins, MOST_BINS)

    def cells(self, column: Column) -> Axis:
        """``n_bins`` equal cells from the smallest to the largest value."""
        return _equal_cells(column, self.n_bins, "n_bins")

    def choose(self, candidates: Sequence[Candidates]) -> list[Partition]:
        """Every cell is a bin."""
        return _all_cells(candidates)


@dataclass(frozen=True)
class QuantileBins:
    """Bins with equal numbers of rows (math [18]); quantiles that coincide are merged.

    Quantiles are values that occur in the data (R's type 1), so that weights and repeated rows
    give the same edges. With point masses there are fewer bins than asked for, never empty ones.

    Parameters
    ----------
    n_bins : int
        Number of bins, from 1 to a million, before ties are merged.

    Examples
    --------
    >>> import rhale_stats as rs
    >>> rs.QuantileBins(10)
    QuantileBins(n_bins=10)
    """

    n_bins: int

    def __post_init__(self) -> None:
        check_parameters(self)
        _check_most("n_bins", self.n_bins, MOST_BINS)

    def cells(self, column: Column) -> Axis:
        """Cells between the distinct quantiles, out to the ends of the axis."""
        inner = binning.quantile_edges(column.x, self.n_bins, column.counts)[1:-1]
        return binning.variable_axis(np.concatenate([[column.low], inner, [column.high]]))

    def choose(self, candidates: Sequence[Candidates]) -> list[Partition]:
        """Every cell is a bin."""
        return _all_cells(candidates)


@dataclass(frozen=True, init=False)
class GivenBins:
    """Bins with given edges.

    Parameters
    ----------
    edges : array_like, or mapping from feature name to array_like
        Strictly increasing edges; they must reach over all rows of the feature. Bins without
        rows keep NaN estimates.

    Examples
    --------
    >>> import rhale_stats as rs
    >>> rs.GivenBins([0, 0.25, 0.5, 1])
    GivenBins(edges=(0.0, 0.25, 0.5, 1.0))
    """

    # Tuples, so that equal rules are equal, and a rule may be the key of a mapping.
    edges: tuple[float, ...] | dict[str, tuple[float, ...]]

    def __init__(self, edges: ArrayLike | Mapping[str, ArrayLike]) -> None:
        if isinstance(edges, Mapping):
            checked: tuple[float, ...] | dict[str, tuple[float, ...]] = {
                str(name): tuple(as_edges(given, f"edges of feature {name!r}").tolist())
                for name, given in edges.items()
            }
        else:
            checked = tuple(as_edges(edges, "edges").tolist())
        object.__setattr__(self, "edges", checked)

    def __hash__(self) -> int:
        if isinstance(self.edges, dict):
            return hash(frozenset(self.edges.items()))
        return hash(self.edges)

    def edges_of(self, name: str) -> FloatArray:
        """Edges of one feature; ``KeyError`` where there are none for it."""
        if not isinstance(self.edges, dict):
            return np.array(self.edges)
        if name not in self.edges:
            raise KeyError(
                f"edges must have an entry for every feature; got none for {name!r} "
                f"(there are entries for {', '.join(map(repr, self.edges))})."
            )
        return np.array(self.edges[name])

    def cells(self, column: Column) -> Axis:
        """The given cells, refused where rows lie outside them."""
        edges = self.edges_of(column.name)
        if column.low < edges[0] or column.high > edges[-1]:
            outside = int(((column.x < edges[0]) | (column.x > edges[-1])).sum())
            raise ValueError(
                f"edges must reach over all rows; for feature {column.name!r} they cover "
                f"[{edges[0]:.6g}, {edges[-1]:.6g}] and {outside} of {len(column.x)} rows lie "
                f"outside, from {column.low:.6g} to {column.high:.6g}. Widen the edges, or select "
                f"the rows first: local.isel(obs=...)."
            )
        return binning.variable_axis(edges)

    def choose(self, candidates: Sequence[Candidates]) -> list[Partition]:
        """Every cell is a bin."""
        return _all_cells(candidates)


@dataclass(frozen=True)
class OptimalBins:
    """The paper's bins: the exact optimum of its criterion (math [21]; RHALE, Eq. 13 and 14).

    Minimises the sum over bins of (1 - discount * n_k / N) * variance_k * width_k, over all
    partitions with at least ``min_obs`` rows a bin and edges on a grid of ``max_bins`` equal
    cells. Partitions whose costs differ by less than 1e-9 of the cost of one bin are ties, and
    ties go to fewer bins, so that a constant derivative gives one bin.

    Parameters
    ----------
    max_bins : int, default 100
        Number of cells of the grid.
    min_obs : int, optional
        Smallest number of rows of a bin (with precision weights: smallest effective number); by
        default a twentieth of all rows. At least 2 whatever is given, since one row has no
        variance.
    discount : float, default 0.2
        The paper's alpha, in [0, 1): how much cheaper a bin with all rows is.
    ddof : {1, 0}, default 1
        Of the variance in the criterion. 0 is there to compare with the authors' code only.

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
        _check_most("max_bins", self.max_bins, MOST_CELLS)
        _check_discount(self.discount)
        _check_ddof(self.ddof)

    def cells(self, column: Column) -> Axis:
        """``max_bins`` equal cells from the smallest to the largest value."""
        return _equal_cells(column, self.max_bins, "max_bins")

    def choose(self, candidates: Sequence[Candidates]) -> list[Partition]:
        """The best partition of every feature."""
        # Features with as many cells are one stack of problems.
        lengths = [len(candidate.moments.weight) for candidate in candidates]
        chosen: dict[int, Partition] = {}
        for length in dict.fromkeys(lengths):
            members = [number for number, own in enumerate(lengths) if own == length]
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
    """Bins grown from left to right, each until one cell more makes it worse (math [20]).

    From the left end on, a bin takes cell after cell of a grid of ``max_bins`` equal cells. It is
    closed where the next cell would multiply (1 - discount * n_k / N) * variance_k by more than
    ``factor``, once it has ``min_obs`` rows. A last bin with fewer joins its neighbour. Costs
    that differ by less than 1e-9 of that of one bin are equal, so that a constant derivative gives
    one bin.

    Parameters
    ----------
    max_bins : int, default 100
        Number of cells of the grid.
    min_obs : int, default 10
        Smallest number of rows of a bin (with precision weights: smallest effective number). At
        least 2 whatever is given. The default is that of the authors' code.
    discount : float, default 0.2
        In [0, 1): how much cheaper a bin with all rows is. 0 in the authors' code.
    factor : float, default 1.05
        At least 1: growth of the cost, from one cell to the next, above which a bin is closed.
    ddof : {1, 0}, default 1
        Of the variance in the cost. 0 is there to compare with the authors' code only.

    Notes
    -----
    The search goes one way: turning the axis round gives other bins, not the mirrored ones. It
    looks one cell ahead and takes nothing back, so that `OptimalBins` is never worse by the paper's
    criterion where both allow the same bins. With few rows a cell, chance alone moves a variance by
    more than 5 %, and noise is cut into bins.

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
        _check_most("max_bins", self.max_bins, MOST_CELLS)
        _check_discount(self.discount)
        if not 1 <= self.factor < np.inf:
            raise ValueError(
                f"factor must be at least 1 and finite; got {self.factor!r}. Below 1 a bin would "
                f"be closed although its loss had not grown."
            )
        _check_ddof(self.ddof)

    def cells(self, column: Column) -> Axis:
        """``max_bins`` equal cells from the smallest to the largest value."""
        return _equal_cells(column, self.max_bins, "max_bins")

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
        _check_most("max_bins", self.max_bins, MOST_CELLS)
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
        return _equal_cells(column, self._fine * self.max_bins, "max_bins")

    def choose(self, candidates: Sequence[Candidates]) -> list[Partition]:
        """The bins of smallest risk, for every feature."""
        chosen = []
        for candidate in candidates:
            check_enough_rows(candidate, self.min_obs)
            starts, linear = adaptive.adaptive_partition(
                candidate.moments,
                candidate.comoments,
                low=candidate.low,
                high=candidate.high,
                risk=self._risk(),
                min_obs=self.min_obs,
                resolution=candidate.resolution,
                # Slopes across cells show nothing inside a cell.
                fine=self._fine if candidate.edges is None else 1,
                edges=candidate.edges,
            )
            chosen.append(Partition(starts, linear if self.degree else None))
        return chosen

    @property
    def _fine(self) -> int:
        return adaptive.FINE if self.refine else 1

    def _risk(self) -> adaptive.Risk:
        edge = 2 * np.log(self.max_bins) if self.penalty is None else self.penalty
        return adaptive.Risk(edge=edge, slope=4.0 if self.degree else None, split=edge + 2)


@dataclass(frozen=True)
class BestEqualWidthBins:
    """Bins of one width, as many as give the smallest accumulated spread (math [19]).

    Among the K from 1 to ``max_bins`` for which every bin has ``min_obs`` rows, the one with the
    smallest width * sum of heterogeneity_k (1 - discount * n_k / N). The result keeps the loss of
    every K as ``bin_loss``, infinite where a bin has too few rows. Equal losses go to fewer bins.

    Parameters
    ----------
    max_bins : int, default 100
        Largest number of bins.
    min_obs : int, default 10
        Smallest number of rows of a bin (with precision weights: smallest effective number). At
        least 2 whatever is given.
    discount : float, default 0.2
        In [0, 1): how much cheaper a bin with all rows is.

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
        _check_most("max_bins", self.max_bins, MOST_CELLS)
        _check_discount(self.discount)

    def cells(self, column: Column) -> Axis:
        """Cells between all edges of all numbers of bins, so that one pass serves every one."""
        # Edges of K and of K - 1 bins are this close.
        _equal_cells(column, max(self.max_bins * (self.max_bins - 1), 1), "max_bins")
        fractions = _fractions(self.max_bins)
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
            return np.searchsorted(_fractions(self.max_bins), np.arange(n_bins) / n_bins)
        wanted = candidate.low + np.arange(n_bins) / n_bins * (candidate.high - candidate.low)
        nearest = _nearest(candidate.edges, wanted)
        nearest[0] = 0  # cells may begin far below the rows
        return np.unique(np.minimum(nearest, len(candidate.edges) - 2))


# Rules that join cells, and so can join any.
SEARCHING = (AdaptiveBins, BestEqualWidthBins, GreedyBins, OptimalBins)
# The default of `rhale`, by the study ``weighting``; the paper's is OptimalBins().
DEFAULT_BINS: BinRule = AdaptiveBins()


@lru_cache(maxsize=8)
def _fractions(max_bins: int) -> FloatArray:
    """All j / K up to ``max_bins``, each once: equal fractions are equal floats."""
    return np.unique(np.concatenate([np.arange(k + 1) / k for k in range(1, max_bins + 1)]))


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


def _check_discount(discount: float) -> None:
    if not 0 <= discount < 1:
        raise ValueError(
            f"discount must lie in [0, 1): at 1 a bin with all rows would cost nothing; "
            f"got {discount!r}."
        )


def _check_ddof(ddof: int) -> None:
    if ddof not in (0, 1):
        raise ValueError(f"ddof must be 1 (unbiased), or 0 as in the authors' code; got {ddof!r}.")
