"""Partial dependence of tables in chunks: moments of ICE curves that merge, in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rhale_stats.arguments.rows import as_edges
from rhale_stats.arguments.words import warn
from rhale_stats.arrays import profile_moments as curves_of
from rhale_stats.arrays import profiles as kernel
from rhale_stats.arrays.binning import quantile_edges
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.chunks import of_all
from rhale_stats.models.chunked import (
    Glance,
    glance,
    places_of,
    weights_of_chunks,
    weights_of_rows,
)
from rhale_stats.models.differences import DifferenceQuotients
from rhale_stats.models.options import ModelOptions
from rhale_stats.models.outputs import Model
from rhale_stats.profiles.given import Given, estimates_of, no_rows
from rhale_stats.profiles.grid import Axis, Grid, check_centre, grids


def pdp_in_chunks(
    model: Model,
    chunks: Sequence[Any],
    features: str | int | Sequence[str | int] | None,
    grid: Grid,
    n_grid: int,
    grid_kind: str,
    centering: str,
    options: ModelOptions,
) -> xr.Dataset:
    """`pdp` of all rows. The sample says only which columns there are, and where curves are."""
    if options.missing not in (None, "raise"):
        raise ValueError(
            f"missing must be 'raise' where X is in chunks; got {options.missing!r}. Drop these "
            f"rows before the call, as in X.dropna()."
        )
    seen = glance(chunks)
    own = replace(options, weights=None)
    given = Given.used(seen.sample, features, own, _numbers)
    _check_numbers(given, seen)
    weights = None
    if options.weights is not None:
        weights = weights_of_rows(options.weights, seen.lengths, options.weight_kind)
    own_grids = grids(grid, given.names, given.table.names)
    axes = _axes(given, seen, chunks, weights, own_grids, n_grid, grid_kind)
    varying = [axis for axis in axes if len(axis.grid)]
    each = list(zip(chunks, weights_of_chunks(weights, seen.lengths), strict=True))
    known = of_all(each, _SharesOf(varying, options.weight_kind), _sums_of_all)
    if known is None:
        raise ValueError("weights must be positive in some row; got none.")
    totals, sums = known
    shares = [one / totals.sums.weight for one in sums]
    asked = given.quotients(model)
    check_centre(axes, centering)
    looks = [_Look.of(given, asked, axis, share, centering)
             for axis, share in zip(varying, shares, strict=True)]  # fmt: skip
    work = _MomentsOf(model, own, looks, centering, precise=not totals.sums.counts)
    found = of_all(each, work, _moments_of_all, "chunks of partial dependence", most=2)
    rows = totals.sums
    by_name = {}
    for at, (look, share) in enumerate(zip(looks, shares, strict=True)):
        of, squares = found.by_weight[at], found.by_squares[at] or [None] * len(found.by_weight[at])
        profiles = [
            curves_of.profile(one, look.axis.grid, rows, float(start), centering, by_squares=by)
            for one, by, start in zip(of, squares, look.origin, strict=True)
        ]
        error = {"output_error": found.error[at]}
        by_name[look.axis.name] = estimates_of(profiles, share) | error
    n_outputs = max(len(asked.outputs.labels), 1)
    nothing = no_rows(n_outputs) | {
        "weight_share": np.zeros(0),
        "output_error": np.zeros(n_outputs),
    }
    n_obs = rows.weight if options.weight_kind == "frequency" and weights is not None else None
    counts = {
        "n_obs": np.array(float(totals.n_rows if n_obs is None else n_obs)),
        "n_effective": np.array(rows.n_effective),
    }
    every = [counts | by_name.get(axis.name, nothing) for axis in axes]
    out = given.labelled(axes, every, asked, method="pdp", centering=centering)
    return out.assign_attrs(
        n_rows=totals.n_rows,
        model_calls=asked.n_calls + found.n_calls,
        model_rows=asked.n_rows + found.n_rows,
        weight_kind="none" if weights is None else options.weight_kind,
        grid_kind=grid_kind,
    )


def _numbers(table: Any) -> list[int]:
    """Columns of numbers; the others, which a warning names, are left out."""
    chosen = [at for at in range(len(table.names)) if table.is_numeric(at)]
    left = [repr(name) for at, name in enumerate(table.names) if at not in chosen]
    if not chosen:
        raise TypeError("X must have a column of numbers where it is in chunks; got none.")
    if left:
        warn(
            f"Left out: {', '.join(left)} (no numbers; X is in chunks). Take a sample of the rows "
            f"for their curves."
        )
    return chosen


def _check_numbers(given: Given, seen: Glance) -> None:
    """Raise for features that are not numbers, or have no value in some row."""
    for name, position in zip(given.names, given.positions, strict=True):
        if not given.table.is_numeric(position):
            raise TypeError(
                f"features must be columns of numbers where X is in chunks; column {name!r} holds "
                f"levels, which need all rows at once. Take a sample of the rows for it."
            )
        if seen.n_bad[position]:
            raise ValueError(
                f"X of feature {name!r} must be finite; got {seen.n_bad[position]} NaN or inf in "
                f"{sum(seen.lengths)} rows. Drop these rows before the call."
            )


def _axes(
    given: Given,
    seen: Glance,
    chunks: Sequence[Any],
    weights: Any,
    own: dict[str, Any],
    n_grid: int,
    grid_kind: str,
) -> list[Axis]:
    """The features with grids from all rows, or from a summary of very many."""
    free = [
        position
        for name, position in zip(given.names, given.positions, strict=True)
        if name not in own and seen.low[position] < seen.high[position]
    ]
    places = places_of(chunks, seen.lengths, free, weights) if free else {}
    out = []
    for name, position in zip(given.names, given.positions, strict=True):
        grid, kind = np.zeros(0), "constant"
        if name in own:
            grid = as_edges(own[name], f"grid of feature {name!r}")
        elif position in places:
            grid = _grid(*places[position], n_grid, grid_kind)
        if len(grid):
            kind = "discrete" if given.table.is_discrete(position) else "continuous"
            grid = given.table.whole(position, grid, integers=name not in own)
        x = given.table.column(position)
        out.append(Axis(name, position, kind, x, grid, given.held(position, grid), None))
    return out


def _grid(x: FloatArray, weight: FloatArray | None, n_grid: int, kind: str) -> FloatArray:
    values = np.unique(x)
    if len(values) <= n_grid:
        return values
    if kind == "equal_width":
        return np.linspace(values[0], values[-1], n_grid)
    return quantile_edges(x, n_grid - 1, weight)


class _Look(NamedTuple):
    """How curves of one feature are looked at: where each is centred, and from where measured."""

    axis: Axis
    alike: FloatArray
    origin: FloatArray

    @classmethod
    def of(
        cls,
        given: Given,
        asked: DifferenceQuotients,
        axis: Axis,
        share: FloatArray,
        centering: str,
    ) -> _Look:
        """A large offset, that of the sample, is taken off before anything is multiplied."""
        kind = "mean" if centering == "none" else centering
        alike = kernel.centre_of(kind, axis.grid, share)
        _, curves, _ = next(given.curves(asked, axis._replace(values=axis.values[:1])))
        return cls(axis, alike, curves[:, 0].mean(axis=1))


# --- in a worker ----------------------------------------------------------------------------------


class _Totals(NamedTuple):
    n_rows: int
    sums: kernel.Totals


@dataclass(frozen=True)
class _SharesOf:
    """Sums of weights of one chunk, and those of its rows at the points of every grid."""

    axes: Sequence[Axis]
    weight_kind: str

    def __call__(self, chunk: Any, weight: Any) -> tuple[_Totals, list[FloatArray]] | None:
        rows = _some(chunk, weight, ModelOptions())
        if rows is None:
            return None
        given, w = rows
        sums = kernel.Totals.of(w, given.table.n_rows, frequency=self.weight_kind == "frequency")
        at = [
            kernel.places(axis.grid, given.table.column(axis.position)).share(w) * sums.weight
            for axis in self.axes
        ]
        return _Totals(given.table.n_rows, sums), at


def _sums_of_all(
    chunks: Sequence[tuple[_Totals, list[FloatArray]]],
) -> tuple[_Totals, list[FloatArray]]:
    totals, at = zip(*chunks, strict=True)
    n_rows, sums = zip(*totals, strict=True)
    return (
        _Totals(sum(n_rows), kernel.Totals.of_parts(sums)),
        [np.sum(one, axis=0) for one in zip(*at, strict=True)],
    )


class _Found(NamedTuple):
    """Moments of all features, output by output, and by squared precision weights; errors."""

    by_weight: list[list[curves_of.Moments]]
    by_squares: list[list[curves_of.Moments]]
    error: list[FloatArray]
    n_calls: int
    n_rows: int


@dataclass(frozen=True)
class _MomentsOf:
    """Moments of the ICE curves of one chunk."""

    model: Any
    options: ModelOptions
    looks: Sequence[_Look]
    centering: str
    precise: bool

    def __call__(self, chunk: Any, weight: Any) -> _Found | None:
        rows = _some(chunk, weight, self.options)
        if rows is None:
            return None
        given, w = rows
        asked = given.quotients(self.model, probe=False)
        found = [self._of(look, given, asked, w) for look in self.looks]
        by_weight, by_squares, error = map(list, zip(*found, strict=True)) if found else ([],) * 3
        return _Found(by_weight, by_squares, error, asked.n_calls, asked.n_rows)

    def _of(
        self, look: _Look, given: Given, asked: DifferenceQuotients, w: FloatArray | None
    ) -> tuple[list[curves_of.Moments], list[curves_of.Moments], FloatArray]:
        axis = look.axis._replace(x=given.table.column(look.axis.position))
        at, levels = given.places(axis), self.centering == "none"
        found: list[curves_of.Moments] = []
        by_squares: list[curves_of.Moments] = []
        largest: FloatArray = np.zeros(1)
        for rows, curves, error in given.curves(asked, axis):
            moved = curves - look.origin[:, None, None]
            constants, own = moved @ look.alike, None if w is None else w[rows]
            blocks = [(found, own)]
            if self.precise and own is not None:
                blocks.append((by_squares, own**2))
            for of, by in blocks:
                block = [
                    curves_of.moments(each, constant, at.of_rows(rows), by, levels=levels)
                    for each, constant in zip(moved, constants, strict=True)
                ]
                of[:] = list(map(curves_of.merged, of, block)) if of else block
            largest = np.maximum(largest, error)
        return found, by_squares, largest


def _moments_of_all(chunks: Sequence[_Found]) -> _Found:
    whole, *others = chunks
    for one in others:
        whole = _Found(
            _both(whole.by_weight, one.by_weight),
            _both(whole.by_squares, one.by_squares),
            list(map(np.maximum, whole.error, one.error)),
            whole.n_calls + one.n_calls,
            whole.n_rows + one.n_rows,
        )
    return whole


def _both(
    first: list[list[curves_of.Moments]], second: list[list[curves_of.Moments]]
) -> list[list[curves_of.Moments]]:
    return [list(map(curves_of.merged, *both)) for both in zip(first, second, strict=True)]


def _some(
    chunk: Any, weight: Any, options: ModelOptions
) -> tuple[Given, NDArray[np.float64] | None] | None:
    """The rows of a chunk that have weight, and their weights; None without any."""
    if not len(chunk):
        return None
    given = Given.from_table(chunk, options)
    if weight is None:
        return given, None
    w = np.asarray(weight, dtype=np.float64)
    there = w > 0
    return (given.take(there), w[there]) if there.any() else None
