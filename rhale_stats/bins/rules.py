"""Rules that choose edges: equal widths, quantiles, given edges, and the searches of the paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import ClassVar, TypeAlias

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from rhale_stats.arguments.checks import check_count, check_number
from rhale_stats.arguments.rows import as_edges
from rhale_stats.arrays import binning
from rhale_stats.arrays.moments import (
    Axis,
    FloatArray,
    IntArray,
    Moments,
    merge,
    n_effective,
    side_by_side,
    union,
    variance,
)
from rhale_stats.bins.rule import (
    MAX_BINS,
    MAX_CELLS,
    Candidates,
    Column,
    PackageRule,
    Partition,
    all_cells,
    check_ddof,
    check_discount,
    check_enough_rows,
    check_most,
    equal_cells,
    nearest_to,
)
from rhale_stats.schema.features import feature_names
from rhale_stats.schema.levels import categorical_features
from rhale_stats.schema.validation import check_parameters


@dataclass(frozen=True)
class OptimalBins(PackageRule):
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

    joins_cells: ClassVar[bool] = True
    places_edges: ClassVar[bool] = True
    equal_widths: ClassVar[bool] = True

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
            stacked = side_by_side([candidate.moments for candidate in some])
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
class GreedyBins(PackageRule):
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

    joins_cells: ClassVar[bool] = True
    equal_widths: ClassVar[bool] = True

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
class BestEqualWidthBins(PackageRule):
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

    joins_cells: ClassVar[bool] = True
    equal_widths: ClassVar[bool] = True

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


# --- rules that do not look at the local effects --------------------------------------------------


# Edges of all features, or by feature: tuples, so that rules with the same edges are equal, and a
# rule may be the key of a mapping.
Edges: TypeAlias = tuple[float, ...] | dict[str, tuple[float, ...]]

# Options that are said of a rule only where they are not the default.
DESCRIBED = {"described": "unless default"}


@dataclass(frozen=True, repr=False)
class EqualWidthBins(PackageRule):
    """Bins of equal width (math [17]), as in DALE.

    Parameters
    ----------
    n_bins : int, optional
        Number of bins, from 1 to a million. Estimates of bins without rows are NaN.
    width : float, optional
        Width of the bins, in place of their number. The first begins at the smallest value; the
        last ends at the largest and is as wide as what is left.
    min_obs : int, default 0
        Rows that a bin has at least: from left to right, cells are joined until they have so many,
        and what is left at the right end belongs to the last bin.

    Raises
    ------
    TypeError, ValueError
        Neither or both of ``n_bins`` and ``width``; a number that is not positive.

    Examples
    --------
    >>> import rhale_stats as rs
    >>> rs.EqualWidthBins(20)
    EqualWidthBins(n_bins=20)
    >>> rs.EqualWidthBins(width=0.5, min_obs=10)
    EqualWidthBins(width=0.5, min_obs=10)
    """

    equal_widths: ClassVar[bool] = True

    n_bins: int | None = field(default=None, metadata=DESCRIBED)
    width: float | None = field(default=None, metadata=DESCRIBED)
    min_obs: int = field(default=0, metadata=DESCRIBED)

    def __post_init__(self) -> None:
        check_count("min_obs", self.min_obs, 0)
        if (self.n_bins is None) == (self.width is None):
            raise TypeError(
                f"n_bins or width must be given, and not both: EqualWidthBins(20) or "
                f"EqualWidthBins(width=0.5); got n_bins={self.n_bins!r} and width={self.width!r}."
            )
        if self.n_bins is not None:
            check_count("n_bins", self.n_bins, 1)
            check_most("n_bins", self.n_bins, MAX_BINS)
        else:
            check_number("width", self.width)
            if not 0 < float(self.width or 0) < np.inf:
                raise ValueError(f"width must be positive and finite; got {self.width!r}.")

    def __repr__(self) -> str:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        defaults = {field.name: field.default for field in fields(self)}
        texts = [f"{name}={value!r}" for name, value in values.items() if value != defaults[name]]
        return f"EqualWidthBins({', '.join(texts)})"

    def cells(self, column: Column) -> Axis:
        """Equal cells from the smallest to the largest value."""
        if self.width is None:
            assert self.n_bins is not None, "one of both is given"
            return equal_cells(column, self.n_bins, "n_bins")
        # What rounding leaves of a width is no bin of its own.
        n_bins = max(int(np.ceil((column.high - column.low) / self.width - 1e-9)), 1)
        check_most("the range of a feature by width", n_bins, MAX_BINS)
        inner = column.low + self.width * np.arange(1, n_bins)
        return binning.variable_axis(np.concatenate([[column.low], inner, [column.high]]))

    def choose(self, candidates: Sequence[Candidates]) -> list[Partition]:
        """Every cell is a bin, or so many neighbours that have ``min_obs`` rows."""
        if not self.min_obs:
            return all_cells(candidates)
        return [
            Partition(_joined(n_effective(candidate.moments), self.min_obs))
            for candidate in candidates
        ]


@dataclass(frozen=True)
class QuantileBins(PackageRule):
    """Bins with equal numbers of rows (math [18]); quantiles that coincide are merged.

    Quantiles are values that occur in the data (R's type 1), so that weights and repeated rows give
    the same edges. If many rows have one value, there are fewer bins than ``n_bins``, and no empty
    ones.

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
        check_most("n_bins", self.n_bins, MAX_BINS)

    def cells(self, column: Column) -> Axis:
        """Cells between the distinct quantiles, out to the ends of the axis."""
        inner = binning.quantile_edges(column.x, self.n_bins, column.counts)[1:-1]
        return binning.variable_axis(np.concatenate([[column.low], inner, [column.high]]))

    def choose(self, candidates: Sequence[Candidates]) -> list[Partition]:
        """Every cell is a bin."""
        return all_cells(candidates)


@dataclass(frozen=True, init=False)
class GivenBins(PackageRule):
    """Bins with the edges that you give.

    Parameters
    ----------
    edges : array_like, mapping from feature name to array_like, or Dataset
        Strictly increasing edges. Rows beyond the first and the last edge are left out of the
        feature, and counted in ``n_beyond``; of a table in chunks they are refused. Estimates of
        bins without rows are NaN. Of a Dataset of effects the edges, and the cells of the curve,
        are those of its features.
    cells : array_like, or mapping from feature name to array_like, optional
        Edges of the cells that the curve is accumulated from, beside the edges of the bins. By
        default they adapt to the rows. Effects of several parts of the rows that `merge` puts
        together need the same cells.

    Examples
    --------
    >>> import rhale_stats as rs
    >>> rs.GivenBins([0, 0.25, 0.5, 1])
    GivenBins(edges=(0.0, 0.25, 0.5, 1.0))
    """

    edges: Edges
    cells_of_curve: Edges | None = field(default=None, repr=False, metadata={"described": False})

    def __init__(
        self,
        edges: ArrayLike | Mapping[str, ArrayLike] | xr.Dataset,
        cells: ArrayLike | Mapping[str, ArrayLike] | None = None,
    ) -> None:
        if isinstance(edges, xr.Dataset):
            edges, cells = _of_effect(edges, cells)
        object.__setattr__(self, "edges", _as_tuples(edges, "edges"))
        curve_cells = None if cells is None else _as_tuples(cells, "cells")
        object.__setattr__(self, "cells_of_curve", curve_cells)

    def __hash__(self) -> int:
        if isinstance(self.edges, dict):
            return hash(frozenset(self.edges.items()))
        return hash(self.edges)

    def edges_of(self, name: str) -> FloatArray:
        """Edges of one feature; ``KeyError`` if none are given for it."""
        if not isinstance(self.edges, dict):
            return np.array(self.edges)
        if name not in self.edges:
            raise KeyError(
                f"edges must have an entry for every feature; got none for {name!r} "
                f"(there are entries for {', '.join(map(repr, self.edges))})."
            )
        return np.array(self.edges[name])

    def cells_of(self, name: str) -> FloatArray | None:
        """Edges of the cells of the curve of one feature, if they are given."""
        if self.cells_of_curve is None or not isinstance(self.cells_of_curve, dict):
            return None if self.cells_of_curve is None else np.array(self.cells_of_curve)
        cells = self.cells_of_curve.get(name)
        return None if cells is None else np.array(cells)

    def limits(self, name: str) -> tuple[float, float]:
        """The first and the last edge of one feature; none where it has no edges."""
        if isinstance(self.edges, dict) and name not in self.edges:
            return -np.inf, np.inf
        edges = self.edges_of(name)
        return float(edges[0]), float(edges[-1])

    def cells(self, column: Column) -> Axis:
        """The given cells, refused where rows lie outside them."""
        edges = self.edges_of(column.name)
        if column.low < edges[0] or column.high > edges[-1]:
            outside = int(((column.x < edges[0]) | (column.x > edges[-1])).sum())
            raise ValueError(
                f"edges must reach over all rows; for feature {column.name!r} they cover "
                f"[{edges[0]:.6g}, {edges[-1]:.6g}] and {outside} of {len(column.x)} rows lie "
                f"outside, from {column.low:.6g} to {column.high:.6g}. Widen the edges, or take "
                f"the rows of X between them first."
            )
        return binning.variable_axis(edges)

    def choose(self, candidates: Sequence[Candidates]) -> list[Partition]:
        """Every cell is a bin."""
        return all_cells(candidates)


def _joined(rows: FloatArray, min_obs: int) -> IntArray:
    """First cells of bins with so many rows each, from left to right."""
    starts, n_rows = [0], 0.0
    for cell, of_cell in enumerate(rows):
        if n_rows >= min_obs:
            starts.append(cell)
            n_rows = 0.0
        n_rows += of_cell
    if n_rows < min_obs and len(starts) > 1:
        starts.pop()
    return np.array(starts)


def _as_tuples(edges: ArrayLike | Mapping[str, ArrayLike], what: str) -> Edges:
    """Checked edges of all features or by feature."""
    if isinstance(edges, Mapping):
        return {
            str(name): tuple(as_edges(feature_edges, f"{what} of feature {name!r}").tolist())
            for name, feature_edges in edges.items()
        }
    return tuple(as_edges(edges, what).tolist())


def _of_effect(
    effect: xr.Dataset, cells: ArrayLike | Mapping[str, ArrayLike] | None
) -> tuple[dict[str, FloatArray], ArrayLike | Mapping[str, ArrayLike] | None]:
    """Edges of the bins of an effect by feature, and of the cells of its curve if it has them."""
    if "edge_value" not in effect.coords or "feature" not in effect.dims:
        raise ValueError(
            "edges must be numbers, or the effects that rhale returned; got a Dataset without "
            "bins of its features."
        )
    for dim in [dim for dim in effect["edge_value"].dims if dim not in ("feature", "edge")]:
        raise ValueError(
            f"edges must be the effects of one {dim}: the bins of others are others; got "
            f"{effect.sizes[dim]}. Select one: GivenBins(effect.isel({dim}=0))."
        )
    bins, axes = dict[str, FloatArray](), dict[str, FloatArray]()
    names = ("bin_left", "bin_right", "edge_value")
    columns = [effect.variables[name].transpose("feature", ...).values for name in names]
    for name, left, right, grid in zip(feature_names(effect), *columns, strict=True):
        n_bins = int(np.isfinite(left).sum())
        if n_bins:
            bins[name] = np.append(left[:n_bins], right[n_bins - 1])
            axes[name] = grid[np.isfinite(grid)]
    has_cells = "moments" in effect and effect.attrs.get("weighting") == "axis"
    if cells is None and has_cells and len(categorical_features(effect)) < len(bins):
        cells = axes
    return bins, cells


@lru_cache(maxsize=8)
def equal_fractions(max_bins: int) -> FloatArray:
    """All j / K up to ``max_bins``, each once: equal fractions are equal floats."""
    return np.unique(np.concatenate([np.arange(k + 1) / k for k in range(1, max_bins + 1)]))
