"""Rules that do not look at the local effects: equal widths, quantiles, given edges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from rhale_stats.arguments.checks import check_count, check_number
from rhale_stats.arguments.rows import as_edges
from rhale_stats.arrays import binning
from rhale_stats.arrays.moments import Axis, FloatArray, IntArray, n_effective
from rhale_stats.bins.rule import (
    MAX_BINS,
    Candidates,
    Column,
    Partition,
    all_cells,
    check_most,
    equal_cells,
)
from rhale_stats.schema.layout import complete
from rhale_stats.schema.validation import check_parameters

# Edges of all features, or by feature: tuples, so that rules with the same edges are equal, and a
# rule may be the key of a mapping.
Edges: TypeAlias = tuple[float, ...] | dict[str, tuple[float, ...]]

# Options that are said of a rule only where they are not the default.
DESCRIBED = {"described": "unless default"}


@dataclass(frozen=True, repr=False)
class EqualWidthBins:
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
class QuantileBins:
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
class GivenBins:
    """Bins with the edges that you give.

    Parameters
    ----------
    edges : array_like, mapping from feature name to array_like, or Dataset
        Strictly increasing edges. Rows beyond the first and the last edge are left out of the
        feature, and counted in ``n_beyond``. Estimates of bins without rows are NaN. Of a Dataset
        of effects the edges, and the cells of the curve, are those of its features.
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
                f"outside, from {column.low:.6g} to {column.high:.6g}. Widen the edges, or select "
                f"the rows first: local.isel(obs=...)."
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
    effect = complete(effect, "edges")
    if "edge_value" not in effect.coords or "feature" not in effect.dims:
        raise ValueError(
            "edges must be numbers, or the effects that rhale returned; got a Dataset without "
            "bins of its features."
        )

    def finite_values(name: str) -> dict[str, FloatArray]:
        table = effect[name].transpose("feature", ...).values
        rows = zip(effect["feature"].values, table, strict=True)
        values = {str(feature): row[np.isfinite(row)] for feature, row in rows}
        return {feature: row for feature, row in values.items() if len(row) > 1}

    if cells is None and "cell_value" in effect:
        cells = finite_values("cell_value")
    return finite_values("edge_value"), cells


@lru_cache(maxsize=8)
def equal_fractions(max_bins: int) -> FloatArray:
    """All j / K up to ``max_bins``, each once: equal fractions are equal floats."""
    return np.unique(np.concatenate([np.arange(k + 1) / k for k in range(1, max_bins + 1)]))
