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
from rhale_stats.profiles.data import Grid, ProfileAxis, check_centre, grids
from rhale_stats.profiles.inputs import ProfileInputs, estimates_of, no_rows


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
    without_weights = replace(options, weights=None)
    inputs = ProfileInputs.used(seen.sample, features, without_weights, _numbers)
    _check_numbers(inputs, seen)
    weights = None
    if options.weights is not None:
        weights = weights_of_rows(options.weights, seen.lengths, options.weight_kind)
    own_grids = grids(grid, inputs.names, inputs.table.names)
    axes = _axes(inputs, seen, chunks, weights, own_grids, n_grid, grid_kind)
    varying = [axis for axis in axes if len(axis.grid)]
    each = list(zip(chunks, weights_of_chunks(weights, seen.lengths), strict=True))
    totals_and_sums = of_all(each, _SharesOf(varying, options.weight_kind), _sums_of_all)
    if totals_and_sums is None:
        raise ValueError("weights must be positive in some row; got none.")
    totals, sums = totals_and_sums
    shares = [values / totals.sums.weight for values in sums]
    quotients = inputs.quotients(model)
    check_centre(axes, centering)
    looks = [_Look.from_sample(inputs, quotients, axis, share, centering)
             for axis, share in zip(varying, shares, strict=True)]  # fmt: skip
    work = _MomentsOf(model, without_weights, looks, centering, precise=not totals.sums.counts)
    moments = of_all(each, work, _moments_of_all, "chunks of partial dependence", most=2)
    rows = totals.sums
    by_name = {}
    for number, (look, share) in enumerate(zip(looks, shares, strict=True)):
        by_weight, squares = (
            moments.by_weight[number],
            moments.by_squares[number] or [None] * len(moments.by_weight[number]),
        )
        profiles = [
            curves_of.profile(values, look.axis.grid, rows, float(start), centering, by_squares=by)
            for values, by, start in zip(by_weight, squares, look.origin, strict=True)
        ]
        error = {"output_error": moments.error[number]}
        by_name[look.axis.name] = estimates_of(profiles, share) | error
    n_outputs = max(len(quotients.outputs.labels), 1)
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
    out = inputs.labelled(axes, every, quotients, method="pdp", centering=centering)
    return out.assign_attrs(
        n_rows=totals.n_rows,
        model_calls=quotients.n_calls + moments.n_calls,
        model_rows=quotients.n_rows + moments.n_rows,
        weight_kind="none" if weights is None else options.weight_kind,
        grid_kind=grid_kind,
    )


def _numbers(table: Any) -> list[int]:
    """Columns of numbers; the others, which a warning names, are left out."""
    chosen = [position for position in range(len(table.names)) if table.is_numeric(position)]
    left = [repr(name) for position, name in enumerate(table.names) if position not in chosen]
    if not chosen:
        raise TypeError("X must have a column of numbers where it is in chunks; got none.")
    if left:
        warn(
            f"Left out: {', '.join(left)} (no numbers; X is in chunks). Take a sample of the rows "
            f"for their curves."
        )
    return chosen


def _check_numbers(inputs: ProfileInputs, seen: Glance) -> None:
    """Raise for features that are not numbers, or have no value in some row."""
    for name, position in zip(inputs.names, inputs.positions, strict=True):
        if not inputs.table.is_numeric(position):
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
    inputs: ProfileInputs,
    seen: Glance,
    chunks: Sequence[Any],
    weights: Any,
    own_grids: dict[str, Any],
    n_grid: int,
    grid_kind: str,
) -> list[ProfileAxis]:
    """The features with grids from all rows, or from a summary of very many."""
    free = [
        position
        for name, position in zip(inputs.names, inputs.positions, strict=True)
        if name not in own_grids and seen.low[position] < seen.high[position]
    ]
    places = places_of(chunks, seen.lengths, free, weights) if free else {}
    out = []
    for name, position in zip(inputs.names, inputs.positions, strict=True):
        grid, kind = np.zeros(0), "constant"
        if name in own_grids:
            grid = as_edges(own_grids[name], f"grid of feature {name!r}")
        elif position in places:
            grid = _grid(*places[position], n_grid, grid_kind)
        if len(grid):
            kind = "discrete" if inputs.table.is_discrete(position) else "continuous"
            grid = inputs.table.whole(position, grid, integers=name not in own_grids)
        x = inputs.table.column(position)
        out.append(
            ProfileAxis(name, position, kind, x, grid, inputs.grid_values(position, grid), None)
        )
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

    axis: ProfileAxis
    alike: FloatArray
    origin: FloatArray

    @classmethod
    def from_sample(
        cls,
        inputs: ProfileInputs,
        quotients: DifferenceQuotients,
        axis: ProfileAxis,
        share: FloatArray,
        centering: str,
    ) -> _Look:
        """A large offset, that of the sample, is taken off before anything is multiplied."""
        kind = "mean" if centering == "none" else centering
        alike = kernel.centre_of(kind, axis.grid, share)
        _, curves, _ = next(inputs.curves(quotients, axis._replace(values=axis.values[:1])))
        return cls(axis, alike, curves[:, 0].mean(axis=1))


# --- in a worker ----------------------------------------------------------------------------------


class _Totals(NamedTuple):
    n_rows: int
    sums: kernel.Totals


@dataclass(frozen=True)
class _SharesOf:
    """Sums of weights of one chunk, and those of its rows at the points of every grid."""

    axes: Sequence[ProfileAxis]
    weight_kind: str

    def __call__(self, chunk: Any, weight: Any) -> tuple[_Totals, list[FloatArray]] | None:
        rows = _some(chunk, weight, ModelOptions())
        if rows is None:
            return None
        inputs, w = rows
        sums = kernel.Totals.from_weights(
            w, inputs.table.n_rows, frequency=self.weight_kind == "frequency"
        )
        weights_of_points = [
            kernel.places(axis.grid, inputs.table.column(axis.position)).share(w) * sums.weight
            for axis in self.axes
        ]
        return _Totals(inputs.table.n_rows, sums), weights_of_points


def _sums_of_all(
    chunks: Sequence[tuple[_Totals, list[FloatArray]]],
) -> tuple[_Totals, list[FloatArray]]:
    totals, shares = zip(*chunks, strict=True)
    n_rows, sums = zip(*totals, strict=True)
    return (
        _Totals(sum(n_rows), kernel.Totals.merged(sums)),
        [np.sum(share, axis=0) for share in zip(*shares, strict=True)],
    )


class _Found(NamedTuple):
    """Moments of all features, output by output, and by squared precision weights; errors."""

    by_weight: list[list[curves_of.CurveMoments]]
    by_squares: list[list[curves_of.CurveMoments]]
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
        inputs, w = rows
        quotients = inputs.quotients(self.model, probe=False)
        of_looks = [self._of(look, inputs, quotients, w) for look in self.looks]
        by_weight, by_squares, error = (
            map(list, zip(*of_looks, strict=True)) if of_looks else ([],) * 3
        )
        return _Found(by_weight, by_squares, error, quotients.n_calls, quotients.n_rows)

    def _of(
        self,
        look: _Look,
        inputs: ProfileInputs,
        quotients: DifferenceQuotients,
        w: FloatArray | None,
    ) -> tuple[list[curves_of.CurveMoments], list[curves_of.CurveMoments], FloatArray]:
        axis = look.axis._replace(x=inputs.table.column(look.axis.position))
        places, levels = inputs.places(axis), self.centering == "none"
        by_weight: list[curves_of.CurveMoments] = []
        by_squares: list[curves_of.CurveMoments] = []
        largest: FloatArray = np.zeros(1)
        for rows, curves, error in inputs.curves(quotients, axis):
            moved = curves - look.origin[:, None, None]
            constants, weights = moved @ look.alike, None if w is None else w[rows]
            blocks = [(by_weight, weights)]
            if self.precise and weights is not None:
                blocks.append((by_squares, weights**2))
            for merged, by in blocks:
                block = [
                    curves_of.moments(each, constant, places.of_rows(rows), by, levels=levels)
                    for each, constant in zip(moved, constants, strict=True)
                ]
                merged[:] = list(map(curves_of.merged, merged, block)) if merged else block
            largest = np.maximum(largest, error)
        return by_weight, by_squares, largest


def _moments_of_all(chunks: Sequence[_Found]) -> _Found:
    whole, *others = chunks
    for other in others:
        whole = _Found(
            _both(whole.by_weight, other.by_weight),
            _both(whole.by_squares, other.by_squares),
            list(map(np.maximum, whole.error, other.error)),
            whole.n_calls + other.n_calls,
            whole.n_rows + other.n_rows,
        )
    return whole


def _both(
    first: list[list[curves_of.CurveMoments]], second: list[list[curves_of.CurveMoments]]
) -> list[list[curves_of.CurveMoments]]:
    return [list(map(curves_of.merged, *both)) for both in zip(first, second, strict=True)]


def _some(
    chunk: Any, weight: Any, options: ModelOptions
) -> tuple[ProfileInputs, NDArray[np.float64] | None] | None:
    """The rows of a chunk that have weight, and their weights; None without any."""
    if not len(chunk):
        return None
    inputs = ProfileInputs.from_table(chunk, options)
    if weight is None:
        return inputs, None
    w = np.asarray(weight, dtype=np.float64)
    has_weight = w > 0
    return (inputs.take(has_weight), w[has_weight]) if has_weight.any() else None
