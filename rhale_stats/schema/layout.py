"""The two forms of effects in bins: what a result holds, and all that follows from it.

A result is `compact`: its ``moments`` (feature, edge, moment) are those of the rows in the cell to
the right of each edge, and its ``curve`` and ``spread`` are at the same edges. Functions work with
the `complete` form: the curve is at the edges of the bins, cells and bins of the spread have
dimensions of their own, and what follows from the moments is written out.
"""

from __future__ import annotations

import json
import weakref
import zlib
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rhale_stats.arrays import accumulate
from rhale_stats.arrays import cells as cell_kernel
from rhale_stats.arrays import moments as sums
from rhale_stats.arrays import spread as spread_kernel
from rhale_stats.arrays.cell_moments import CellMoments, Line, residual_moments
from rhale_stats.arrays.moments import FloatArray, IntArray, ResidualMoments
from rhale_stats.schema.features import is_of_outcome, stores_errors
from rhale_stats.schema.kinds import EFFECT
from rhale_stats.schema.levels import CATEGORICAL
from rhale_stats.schema.variable_table import EFFECT_VARIABLES
from rhale_stats.schema.variables import (
    COUNTS,
    DIMENSIONS,
    answer_first,
    counted,
    dataset_of,
    variable,
    with_variables,
    without,
)

MOMENTS = "moments"
# What follows from the moments and from the estimates beside them: always, and where it is there.
ALWAYS = (
    *("n_effective", "weight_share", "x_mean", "curve_std", "curve_std_sum", "curve_offset"),
    "heterogeneity_index",
)
OF_SPREAD = (
    *("spread_n_obs", "spread_share", "spread_degrees"),
    *("spread_third_moment", "spread_fourth_moment"),
)
DERIVED = (*ALWAYS, *OF_SPREAD, "cell_effect", "cell_share", "effect_slope_correlation")
# What is left of a difference of covariances is rounding below this share of them.
ROUNDING = 32 * np.finfo(np.float64).eps
# Coordinates of the complete form alone.
NUMBERS = (
    *("n_spread_bins", "cell", "cell_edge", "spread_bin", "spread_edge", "spread_edge_value"),
)
# Coordinate of the features, or an attribute where they have the same.
METHOD = "local_effect_method"
# Attribute with the coordinates of replicates in bins, as JSON.
AS_TEXT = "bin_coordinates"
# Dimensions of cells, which are along their edges in the compact form.
OF_CELLS = {"cell": "edge", "cell_edge": "edge", "cell_edge_other": "edge_other"}


def compact(result: xr.Dataset) -> xr.Dataset:
    """A result as users have it: estimates, and the state from which all else follows."""
    if not {"n_bins", "bin_left"} <= set(result.coords):
        return result
    if MOMENTS in result.data_vars:
        return _along_edges(result)
    if "draw" not in result.dims:
        return result  # such as a true effect
    result = method_as_attribute(result)
    # Along a dimension of their own: numbers of other edges are those of other places.
    result = result.rename({"edge": "bin_edge"} if "edge" in result.dims else {})
    result = without(result, *NUMBERS, "moment")
    return _coordinates_as_text(result) if result.attrs.get("bins") == "fixed" else result


def complete(result: xr.Dataset, parameter: str = "effect") -> xr.Dataset:
    """A result with all that follows from it; any other Dataset as it is.

    Raises
    ------
    ValueError
        Bins and edges that do not belong together; the message names ``parameter``.
    """
    if "bin_edge" in result.dims:
        return _with_coordinates(result).rename(bin_edge="edge")
    coords = {"bin_left", "bin_right", "edge_value", "feature_kind"}
    dims = {"feature", "bin", "edge"}
    if "n_bins" in result.coords or not (coords <= {*result.coords} and dims <= {*result.dims}):
        return result
    # What was taken from a result is named by the checks of functions.
    of_rows = {MOMENTS, "heterogeneity", "curve"} <= {*result.data_vars}
    if "centering" not in result.attrs or not (of_rows or result.attrs.get("method") == "truth"):
        return result
    n_bins = result.variables["bin_left"].notnull().sum("bin")
    n_bins.attrs = {"long_name": "number of bins"}
    result = without(result, "n_bins").assign_coords(n_bins=n_bins)
    return _along_bins(method_by_feature(result), parameter)


def method_as_attribute(result: xr.Dataset) -> xr.Dataset:
    """The result with the method of its local effects as an attribute, if they have the same."""
    method = _one_method(result)
    return result.drop_vars(list(method)).assign_attrs(method) if method else result


def _one_method(result: xr.Dataset) -> dict[str, str]:
    """The method of the local effects of all features by its name; empty if they have several."""
    if METHOD not in result.coords:
        return {}
    methods = result.variables[METHOD].values
    return {METHOD: str(methods.flat[0])} if (methods == methods.flat[0]).all() else {}


def method_by_feature(result: xr.Dataset) -> xr.Dataset:
    """The result with the method of its local effects as a coordinate of its features."""
    if METHOD not in result.attrs:
        return result
    result = result.copy()
    method = np.full(result.sizes["feature"], result.attrs.pop(METHOD))
    return result.assign_coords({METHOD: ("feature", method)})


def _coordinates_as_text(replicates: xr.Dataset) -> xr.Dataset:
    """Replicates with what is known of their bins as an attribute.

    It is that of the effect, and ArviZ takes no coordinates that some variables have not.
    """
    coordinates = {name: coord for name, coord in replicates.coords.items() if len(coord.dims) > 1}
    text = {
        str(name): [coord.dims, coord.transpose("feature", ...).values.tolist(), coord.attrs]
        for name, coord in coordinates.items()
        if coord.dims[0] == "feature"
    }
    out = replicates.drop_vars(list(text))
    text["feature"] = [["feature"], replicates["feature"].values.tolist(), {}]
    return out.assign_attrs({AS_TEXT: json.dumps(text)})


def _with_coordinates(replicates: xr.Dataset) -> xr.Dataset:
    """The replicates with their coordinates again, of the features that are left."""
    text = json.loads(replicates.attrs.get(AS_TEXT, "{}"))
    _, names, _ = text.pop("feature", ([], [], {}))
    rows = [names.index(name) for name in replicates["feature"].values] if names else []
    coords = {
        name: (dims, np.array(values)[rows], attrs) for name, (dims, values, attrs) in text.items()
    }
    out = replicates.assign_coords(coords)
    out.attrs.pop(AS_TEXT, None)
    return out


# The complete forms of results that are in use, by the identity of these; and their own identities.
_COMPLETE: dict[int, tuple[weakref.ref[xr.Dataset], Any, xr.Dataset]] = {}
_KEPT: set[int] = set()


def keep_complete(result: xr.Dataset, whole: xr.Dataset) -> None:
    """Keep the complete form of a result as long as the result is there."""
    # Bound, because the names are gone when the program ends.
    number, forms, wholes = id(result), _COMPLETE, _KEPT

    def forget(_: object) -> None:
        if number in forms:
            wholes.discard(id(forms.pop(number)[-1]))

    forget(result)
    forms[number] = weakref.ref(result, forget), _contents(result), whole
    wholes.add(id(whole))


def is_kept(whole: xr.Dataset) -> bool:
    """Whether this is the complete form of a result as a function of the package returned it."""
    return id(whole) in _KEPT


def kept_complete(result: xr.Dataset) -> xr.Dataset | None:
    """The complete form that was kept; None of a result that was changed since."""
    reference, contents, whole = _COMPLETE.get(id(result), (None, None, result))
    is_same = reference is not None and reference() is result and contents == _contents(result)
    return whole if is_same else None


def _contents(result: xr.Dataset) -> Any:
    """What is in a result: checksums of all values, dimensions and attributes."""
    variables = []
    for name, data in result.variables.items():
        values = data.values
        content = repr(values.tolist()).encode() if values.dtype.kind == "O" else values.tobytes()
        variables.append((name, data.dims, zlib.crc32(content), dict(data.attrs)))
    return variables, dict(result.attrs)


def each_result(value: Any, change: Callable[[xr.Dataset], xr.Dataset]) -> Any:
    """A result, tree or collection of results with every Dataset in it changed."""
    if isinstance(value, xr.Dataset):
        return change(value)
    if isinstance(value, xr.DataTree):
        changed = {}
        for node in value.subtree:
            before = node.to_dataset(inherit=False)
            after = change(before)
            if after is not before:
                changed[node.path] = after
        if changed:
            value = value.copy()
            for path, dataset in changed.items():
                value[path].dataset = dataset
        return value
    if type(value) in (list, tuple):
        return type(value)(each_result(element, change) for element in value)
    if type(value) is dict:
        return {key: each_result(element, change) for key, element in value.items()}
    return value


# --- dimensions -----------------------------------------------------------------------------------


class _Axes(NamedTuple):
    """Edges of the compact form, of the bins, of the cells and of the bins of the spread.

    Each is (..., edge), ``lead`` are the other dimensions, such as ``feature``. Edges of cells are
    NaN for features without cells, and those of the spread where there is none.
    """

    lead: tuple[str, ...]
    grid: FloatArray
    bins: FloatArray
    cells: FloatArray
    spread: FloatArray

    @property
    def has_cells(self) -> NDArray[np.bool_]:
        """Which curves are accumulated from cells."""
        return np.asarray(np.isfinite(self.cells).any(axis=-1))

    def rows(self) -> Iterator[tuple[tuple[int, ...], FloatArray, FloatArray, FloatArray]]:
        """The place of every feature, and its edges without padding."""
        for place in np.ndindex(*self.bins.shape[:-1]):
            bins, cells, spread = [
                edges[place][np.isfinite(edges[place])]
                for edges in (self.bins, self.cells, self.spread)
            ]
            yield place, bins, cells, spread

    def places(self, n: int, dim: str) -> tuple[IntArray, tuple[str, ...]]:
        """Room for ``n`` positions of every feature, -1 so far, and its dimensions."""
        return np.full((*self.bins.shape[:-1], n), -1), (*self.lead, dim)


def _broadcast(result: xr.Dataset, variable: xr.Variable, dims: Sequence[str]) -> NDArray[Any]:
    if variable.dims == tuple(dims):
        return variable.values
    return _along(variable, {dim: result.sizes[dim] for dim in dims})


def _along(variable: xr.Variable, sizes: Mapping[Any, int]) -> NDArray[Any]:
    """Values along more dimensions, in this order."""
    values: NDArray[Any] = variable.set_dims(sizes).values  # type: ignore[no-untyped-call]
    return values


def _lead(result: xr.Dataset, names: Sequence[str]) -> tuple[str, ...]:
    """Dimensions over which bins differ."""
    present = [result.variables[name] for name in names if name in result.variables]
    dims = {dim for data in present for dim in data.dims}
    along = {"bin", "edge", "cell_edge", "spread_edge"}
    return tuple(dim for dim in DIMENSIONS if dim in dims - along)


def _complete_axes(result: xr.Dataset) -> _Axes:
    names = {"edge_value": "edge", "cell_value": "cell_edge", "spread_edge_value": "spread_edge"}
    lead = _lead(result, list(names))
    shape = tuple(result.sizes[dim] for dim in lead)
    bins, cells, spread = [
        _broadcast(result, result.variables[name], (*lead, dim))
        if name in result.variables
        else np.full((*shape, 0), np.nan)
        for name, dim in names.items()
    ]
    grid = np.full((*shape, max(result.sizes["cell"] + 1, bins.shape[-1])), np.nan)
    grid[..., : bins.shape[-1]] = bins
    axes = _Axes(lead, grid, bins, cells, spread)
    grid[axes.has_cells, : cells.shape[-1]] = cells[axes.has_cells]
    return axes


def _compact_axes(result: xr.Dataset) -> _Axes:
    lead = _lead(result, ("edge_value", "bin_left"))
    left, right = [
        _broadcast(result, result.variables[name], (*lead, "bin"))
        for name in ("bin_left", "bin_right")
    ]
    bins = np.concatenate([left, np.full_like(left[..., :1], np.nan)], axis=-1)
    # The last edge of every feature is the right one of its last bin.
    last = np.isfinite(right).sum(axis=-1, keepdims=True)
    ends = np.take_along_axis(right, np.maximum(last - 1, 0), axis=-1)
    np.put_along_axis(bins, last, np.where(last > 0, ends, np.nan), axis=-1)
    grid = _broadcast(result, result.variables["edge_value"], (*lead, "edge"))
    cells = grid.copy()
    along_axis = result.attrs.get("weighting") == "axis"
    levels = np.isin(result.variables["feature_kind"].values, CATEGORICAL)
    levels = _broadcast(result, xr.Variable("feature", levels), lead)
    cells[levels | (last[..., 0] == 0) | (not along_axis)] = np.nan
    spread = np.full((*cells.shape[:-1], 0), np.nan)
    if "spread" in result.data_vars:
        values = _broadcast(result, result.variables["spread"], (*lead, "edge"))
        begins = _differs(values) & np.isfinite(cells)
        # The last edge ends the last bin.
        ends = np.maximum(np.isfinite(cells).sum(axis=-1, keepdims=True) - 1, 0)
        np.put_along_axis(begins, ends, np.isfinite(cells[..., :1]), axis=-1)
        n = begins.sum(axis=-1).max(initial=1)
        spread = np.full((*cells.shape[:-1], n), np.nan)
        for place in np.ndindex(*spread.shape[:-1]):
            edges = cells[place][begins[place]]
            spread[place][: len(edges)] = edges
    return _Axes(lead, grid, bins, cells, spread)


def _differs(values: FloatArray) -> NDArray[np.bool_]:
    """Where a value is another than the one before it, along the last axis."""
    same = (values[..., 1:] == values[..., :-1]) | (
        np.isnan(values[..., 1:]) & np.isnan(values[..., :-1])
    )
    first = np.ones((*values.shape[:-1], 1), dtype=bool)
    return np.concatenate([first, ~same], axis=-1)


def _renamed(data: xr.Variable, dims: Mapping[str, str]) -> xr.Variable:
    return xr.Variable([dims.get(str(dim), dim) for dim in data.dims], data.values, data.attrs)


def _taken(data: xr.Variable, places: xr.Variable, source: str, name: Hashable) -> xr.Variable:
    """Values at ``places`` along the dimension ``source``, and its twin; missing beyond its ends.

    The last dimension of ``places`` takes its place. Of counts there are 0 where they are missing.
    """
    nothing = 0.0 if name in COUNTS else np.nan
    *lead, target = map(str, places.dims)
    places = places.isel({dim: 0 for dim in lead if dim not in data.dims})
    for twin in ("", "_other"):
        if f"{source}{twin}" not in data.dims:
            continue
        data = _renamed(data, {f"{source}{twin}": f"{target}{twin}"})
        numbers = _renamed(places, {target: f"{target}{twin}"})
        index = _along(numbers, {dim: numbers.sizes.get(dim, 1) for dim in data.dims})
        axis = data.dims.index(f"{target}{twin}")
        size = data.shape[axis]
        missing: Any = {"U": "", "i": 0, "b": False}.get(data.dtype.kind, nothing)
        values = missing
        if size:
            values = np.take_along_axis(data.values, np.clip(index, 0, size - 1), axis=axis)
        is_there = (index >= 0) & (index < size)
        data = xr.Variable(data.dims, np.where(is_there, values, missing), data.attrs)
    return data


def _at_edges(data: xr.Variable, n_edges: int) -> xr.Variable:
    """Values of cells, or of their edges, along so many edges."""
    data = _renamed(data, OF_CELLS)
    shape = [n_edges if "edge" in str(dim) else size for dim, size in data.sizes.items()]
    values = np.full(shape, np.nan)
    values[tuple(map(slice, data.shape))] = data.values
    return xr.Variable(data.dims, values, data.attrs)


def _trim(variables: dict[Hashable, Any], dim: str) -> None:
    """Leave out the end of a dimension along which no feature has a value."""
    along = {name: data for name, data in variables.items() if dim in data.dims}
    places = [
        np.flatnonzero(data.notnull().any([other for other in data.dims if other != dim]).values)
        for data in along.values()
    ]
    if places:
        size = max(int(numbers.max(initial=0)) + 1 for numbers in places)
        variables |= {name: data.isel({dim: slice(size)}) for name, data in along.items()}


def _where(
    which: NDArray[np.bool_], lead: Sequence[str], a: xr.Variable, b: xr.Variable | float
) -> xr.Variable:
    """The first for the features for which ``which`` is true, the second for the others."""
    if which.all():
        return a
    mask = _along(xr.Variable(lead, which), a.sizes)
    other = b.values if isinstance(b, xr.Variable) else b
    return xr.Variable(a.dims, np.where(mask, a.values, other), a.attrs)


def _made(variables: Mapping[Hashable, Any], result: xr.Dataset) -> xr.Dataset:
    """A Dataset of these, with coordinates and attributes as a result has them."""
    coords = {*result.coords, *NUMBERS}
    return dataset_of(
        {name: data for name, data in variables.items() if name not in coords},
        {name: data for name, data in variables.items() if name in coords},
        result.attrs,
    )


# --- from one form to the other -------------------------------------------------------------------


def _along_edges(result: xr.Dataset) -> xr.Dataset:
    """Bins, cells and the spread of a complete result along the edges of the cells."""
    axes = _complete_axes(result)
    n_edges = axes.grid.shape[-1]
    at_bins, dims = axes.places(n_edges, "edge")
    at_spread = at_bins.copy()
    for place, bins, cells, spread in axes.rows():
        at_bins[place][np.searchsorted(axes.grid[place], bins)] = np.arange(len(bins))
        if len(spread) > 1:
            number = np.searchsorted(spread[1:-1], cells[:-1], side="right")
            at_spread[place][: len(number)] = number
    follows, out = _that_follows(result), dict[Hashable, Any]()
    for name, data in result.variables.items():
        if name in {*follows, *NUMBERS, "edge", "edge_value", "cell_value"}:
            continue
        if "cell_edge" in data.dims:
            at_bins_too = str(name).removeprefix("cell_")
            if at_bins_too not in result.variables:
                out[at_bins_too] = _at_edges(data, n_edges)
            continue
        if {"edge", "edge_other"} & set(data.dims):
            fine = result.variables.get(f"cell_{name}")
            if fine is None or not axes.has_cells.all():
                out[name] = _taken(data, xr.Variable(dims, at_bins), "edge", name)
            if fine is not None:
                fine = _at_edges(fine, n_edges)
                fine.attrs = dict(data.attrs)
                out[name] = _where(axes.has_cells, axes.lead, fine, out.get(name, np.nan))
        elif "spread_bin" in data.dims:
            out[name] = _taken(data, xr.Variable(dims, at_spread), "spread_bin", name)
        else:
            out[name] = _at_edges(data, n_edges) if {*OF_CELLS} & set(data.dims) else data
    if not stores_errors(result):
        _trim(out, "edge_other")  # of features with levels alone
    out["edge"] = counted("edge", n_edges, "edge of a cell")
    out["edge_value"] = xr.Variable(dims, axes.grid, result.variables["edge_value"].attrs)
    method, names = _one_method(result), {*result.coords, "edge"}
    order = [*answer_first([name for name in out if name not in names]), "n_bins"]
    coords = {name: out[name] for name in out if name in names - {*method, "n_bins"}}
    return dataset_of({name: out[name] for name in order}, coords, {**result.attrs, **method})


def _that_follows(result: xr.Dataset) -> set[str]:
    """Variables that a result need not hold."""
    if is_of_outcome(result):
        return set()
    follows = {*DERIVED}
    if "debiased" in result.attrs:
        follows -= {"curve_std", "curve_std_sum", "heterogeneity_index"}
    if "squares" in result:
        follows -= {"effect_slope_correlation"}
    # Steps between levels are differences of the curve.
    return follows if stores_errors(result) else follows | {"effect_cov"}


def _check_edges(result: xr.Dataset, axes: _Axes, parameter: str) -> None:
    """Raise ``ValueError`` unless edges rise, and those of the bins are among them."""
    for place, bins, _, _ in axes.rows():
        edges = axes.grid[place][np.isfinite(axes.grid[place])]
        if not (
            (np.diff(bins) > 0).all()
            and (np.diff(edges) > 0).all()
            and np.isin(bins, edges).all()
            and np.array_equal(bins[[0, -1][: len(bins)]], edges[[0, -1][: len(edges)]])
        ):
            name = result["feature"].values[place[axes.lead.index("feature")]]
            raise ValueError(
                f"{parameter} must have all of its bins, in order, between edges that rise; those "
                f"of feature {str(name)!r} are not. Bins must not be selected or sorted: make "
                f"others with rhale(local, bins=...)."
            )


def _along_bins(result: xr.Dataset, parameter: str) -> xr.Dataset:
    """Bins, cells and the spread of a compact result along dimensions of their own."""
    axes = _compact_axes(result)
    _check_edges(result, axes, parameter)
    n_edges = result.sizes["edge"]
    at_bins, of_bins = axes.places(axes.bins.shape[-1], "edge")
    at_spread, of_spread = axes.places(max(axes.spread.shape[-1] - 1, 0), "spread_bin")
    for place, bins, cells, spread in axes.rows():
        at_bins[place][: len(bins)] = np.searchsorted(axes.grid[place], bins)
        at_spread[place][: max(len(spread) - 1, 0)] = np.searchsorted(cells, spread[:-1])
    has_cells, out = axes.has_cells, dict[Hashable, Any]()
    if result.sizes.get("edge_other", n_edges) < n_edges:
        result = result.pad(edge_other=(0, n_edges - result.sizes["edge_other"]), keep_attrs=True)
    for name, data in result.variables.items():
        if name in ("edge", "edge_value"):
            continue
        if str(name).startswith("spread") and "edge" in data.dims:
            out[name] = _taken(data, xr.Variable(of_spread, at_spread), "edge", name)
        elif name == MOMENTS or (str(name).startswith("cell_") and "edge" in data.dims):
            out[name] = _renamed(data.isel(edge=slice(-1)), {"edge": "cell"})
        elif {"edge", "edge_other"} & set(data.dims):
            out[name] = _taken(data, xr.Variable(of_bins, at_bins), "edge", name)
            fine_name = f"cell_{name}"
            if has_cells.any() and fine_name in EFFECT_VARIABLES:
                fine = _renamed(data, {edge: cell for cell, edge in OF_CELLS.items()})
                fine.attrs = data.attrs | {"long_name": EFFECT_VARIABLES[fine_name][1]}
                fine = _where(has_cells, axes.lead, fine, np.nan)
                # Covariances are stored of levels alone, or of groups of rows.
                if "edge_other" not in data.dims or np.isfinite(fine.values).any():
                    out[fine_name] = fine
        else:
            out[name] = data
    units = result.variables["edge_value"].attrs
    out["edge"] = counted("edge", axes.bins.shape[-1], "edge of a bin")
    out["edge_value"] = xr.Variable(of_bins, axes.bins, units)
    if MOMENTS not in result.data_vars:
        return _made(out, result)
    out["cell"] = counted("cell", n_edges - 1, "cell of the curve")
    if has_cells.any():
        out["cell_edge"] = counted("cell_edge", n_edges, "its edge")
        at_cells = (*axes.lead, "cell_edge")
        out["cell_value"] = variable("cell_value", axes.cells, EFFECT, at_cells)
    if "spread" in result.data_vars:
        n = axes.spread.shape[-1]
        out["spread_bin"] = counted("spread_bin", n - 1, "bin of the spread")
        out["spread_edge"] = counted("spread_edge", n, "edge of a bin of the spread")
        at_spread_edges = (*axes.lead, "spread_edge")
        out["spread_edge_value"] = variable(
            "spread_edge_value", axes.spread, EFFECT, at_spread_edges
        )
        n_spread = (at_spread >= 0).sum(axis=-1)
        out["n_spread_bins"] = variable("n_spread_bins", n_spread, EFFECT, axes.lead)
    whole = _made(out, result)
    return with_variables(whole, _derived(whole, axes))


# --- what follows from the moments ----------------------------------------------------------------


# What its variables say beside their names and units.
FACTS: dict[str, dict[str, str | int]] = {
    "curve_std": {"estimator": "math [9], Eq. 16 of the paper"},
    "curve_std_sum": {"estimator": "math [9], as in the paper's figures"},
    "heterogeneity_index": {"estimator": "math [10]", "ddof": 0},
}


def with_derived(result: xr.Dataset) -> xr.Dataset:
    """A complete result whose variables that follow from its moments are written out."""
    return with_variables(result, _derived(result, _complete_axes(result)))


def bin_residuals(effect: xr.Dataset) -> ResidualMoments:
    """Moments of the local effects about the fits of all bins of a complete result, (feature, bin).

    NaN beyond the bins of a feature.
    """
    state = _State.of_result(effect, _complete_axes(effect))
    cells, _, starts, is_bin = state.runs(state.edges)
    slope = state.values["slope"][is_bin] if "slope" in state.values else None
    flat = residual_moments(cells, starts, slope)
    fields = {name: values for name, values in flat._asdict().items() if values is not None}
    return flat._replace(**{name: _on_runs(values, is_bin) for name, values in fields.items()})


def _derived(result: xr.Dataset, axes: _Axes) -> dict[str, Any]:
    """What follows from the moments and the estimates of a result, and is not in it."""
    state = _State.of_result(result, axes)
    values = state.of_bins()
    if state.has_cells.any():
        values |= state.of_cells()
    if "spread" in result.data_vars:
        values |= state.of_spread()
    out = {}
    for name in [name for name in values if name not in result.variables]:
        array = values[name].reshape(*axes.bins.shape[:-1], *values[name].shape[1:])
        if name in COUNTS:
            array = np.nan_to_num(array)
        rest = EFFECT_VARIABLES[name][0][1:]
        out[name] = variable(name, array, EFFECT, (*axes.lead, *rest), **FACTS.get(name, {}))
    return out


class _Runs(NamedTuple):
    """Cells of several features, one behind the other, and runs of them.

    ``has_cell`` (feature, cell) and ``has_run`` (feature, run) are true where these are; ``starts``
    are the first cells of the runs.
    """

    cells: CellMoments
    has_cell: NDArray[np.bool_]
    starts: IntArray
    has_run: NDArray[np.bool_]


class _State(NamedTuple):
    """The moments of the rows (moment, feature, cell), edges and ``values`` of all features."""

    values: dict[str, NDArray[Any]]
    edges: FloatArray
    cell_edges: FloatArray
    spread_edges: FloatArray
    table: FloatArray

    @classmethod
    def of_result(cls, result: xr.Dataset, axes: _Axes) -> _State:
        needed = [MOMENTS, "heterogeneity", "curve", METHOD]
        needed += ["slope", "cell_curve", "curve_cov", "level_share", "effect_slope_correlation"]
        values, n_features = dict[str, NDArray[Any]](), int(np.prod(axes.bins.shape[:-1]))
        for name in filter(result.variables.__contains__, needed):
            data = result.variables[name]
            rest = [str(dim) for dim in data.dims if dim not in axes.lead]
            array = _broadcast(result, data, (*axes.lead, *rest))
            values[name] = array.reshape(n_features, *array.shape[len(axes.lead) :])
        bins, of_cells, spread = (
            part.reshape(n_features, part.shape[-1])
            for part in (axes.bins, axes.cells, axes.spread)
        )
        table = np.moveaxis(values.pop(MOMENTS), -1, 0)
        # Beyond the cells of a feature there are no rows.
        table = np.where(np.isnan(table[1]), 0.0, table)
        return cls(values, bins, of_cells, spread, table)

    @property
    def has_cells(self) -> NDArray[np.bool_]:
        """Which curves are accumulated from cells."""
        return np.asarray(np.isfinite(self.cell_edges).any(axis=-1))

    def runs(self, edges: FloatArray) -> _Runs:
        """Runs of cells between ``edges``, of the features that have some."""
        has_run, has_cells = np.isfinite(edges[:, 1:]), self.has_cells
        n_edges = np.isfinite(self.cell_edges).sum(axis=-1)
        n_bin_edges = np.isfinite(self.edges).sum(axis=-1)
        n_cells = np.where(has_cells, n_edges, n_bin_edges) - 1
        n_cells = np.where(has_run.any(axis=-1), n_cells, 0)
        has_cell = np.arange(self.table.shape[-1]) < n_cells[:, None]
        first = np.tile(np.arange(edges.shape[-1] - 1), (len(edges), 1))
        for number in np.flatnonzero(has_cells):
            first[number] = np.searchsorted(self.cell_edges[number], edges[number, :-1])
        starts = (first + (np.cumsum(n_cells) - n_cells)[:, None])[has_run]
        return _Runs(CellMoments(self.table[:, has_cell]), has_cell, starts, has_run)

    def of_bins(self) -> dict[str, FloatArray]:
        """What follows in bins, and at their edges."""
        values, (cells, has_cell, starts, is_bin) = self.values, self.runs(self.edges)
        table = np.zeros((len(self.table), *is_bin.shape))
        table[:, is_bin] = cells.pooled(starts, degree=2).table
        bins, heterogeneity = CellMoments(table).means(), values["heterogeneity"]
        has_slopes = "slope" in values
        slope = np.nan_to_num(values["slope"]) if has_slopes else np.zeros(is_bin.shape)
        width = np.diff(self.edges)
        with np.errstate(invalid="ignore", divide="ignore"):
            # Of the residuals, as the heterogeneity is (math [6]).
            freedom = bins.weight - (1 + (slope != 0)) * bins.weight_sq / bins.weight
            squares = np.nan_to_num(heterogeneity**2 * freedom)
            index = accumulate.heterogeneity_index(squares, bins.weight, width)
            share = bins.weight / bins.weight.sum(axis=-1, keepdims=True)
        std, std_sum = accumulate.spread_along(values["curve"], heterogeneity, width)
        out = {
            "n_effective": sums.n_effective(bins),
            "weight_share": share,
            "x_mean": bins.x_mean,
            "curve_std": std,
            "curve_std_sum": std_sum,
            "curve_offset": 0.0 - _first_known(values["curve"]),
            "heterogeneity_index": np.where(is_bin.any(axis=-1), index, np.nan),
        }
        if "level_share" in values and values["level_share"].any():
            out |= self._of_levels(share, is_bin)
        if has_slopes and self.has_cells.any() and "effect_slope_correlation" not in values:
            bin_of = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(cells.weight)))
            lines = [part[is_bin][bin_of] for part in Line.through(bins, slope)]
            products = Line(*lines).sums(cells, sums.LEVEL_POWERS)
            width = np.diff(self.cell_edges)[has_cell]
            correlation = cell_kernel.slope_correlation(
                products, width, cells.weight, bin_of, slope[is_bin]
            )
            out["effect_slope_correlation"] = np.where(
                self.has_cells[:, None], _on_runs(correlation, is_bin), np.nan
            )
        return out

    def _of_levels(self, share: FloatArray, is_bin: NDArray[np.bool_]) -> dict[str, FloatArray]:
        """Shares of the rows in steps between levels, and covariances of the steps."""
        levels, covariance = self.values["level_share"], self.values["curve_cov"]
        has_levels = ~self.has_cells & (np.nan_to_num(levels) > 0).any(axis=-1)
        # Rows at a level are in the steps on both sides of it.
        both = np.where(is_bin, levels[:, :-1] + levels[:, 1:], 0.0)
        steps = np.diff(np.diff(covariance, axis=1), axis=2)
        largest = np.nanmax(np.abs(covariance), axis=(1, 2), keepdims=True, initial=0.0)
        steps = np.where(np.abs(steps) <= ROUNDING * largest, 0.0, steps)
        return {
            "weight_share": np.where(has_levels[:, None], both, share),
            "effect_cov": np.where(has_levels[:, None, None], steps, np.nan),
        }

    def of_cells(self) -> dict[str, FloatArray]:
        """What follows in cells of the curve."""
        cells, has_cells = CellMoments(self.table), self.has_cells
        first = [_first_known(self.values[name]) for name in ("cell_curve", "curve")]
        with np.errstate(invalid="ignore"):
            share = cells.weight / cells.weight.sum(axis=-1, keepdims=True)
        return {
            "cell_effect": np.where(has_cells[:, None], cells.means().mean, np.nan),
            "cell_share": np.where(np.isfinite(self.cell_edges[:, 1:]), share, np.nan),
            "curve_offset": 0.0 - np.where(has_cells, *first),
        }

    def of_spread(self) -> dict[str, FloatArray]:
        """What follows in the bins of the spread."""
        cells, has_cell, starts, is_bin = self.runs(self.spread_edges)
        n_cells = has_cell.sum(axis=-1)
        sloped = self.values[METHOD].astype(str) != "finite_difference"
        ends = zip(np.cumsum(n_cells) - n_cells, np.cumsum(n_cells), strict=True)
        parts = [slice(*part) for part, is_sloped in zip(ends, sloped, strict=True) if is_sloped]
        effect = spread_kernel.effect_in_cells(cells, parts)
        bins = spread_kernel.residuals(cells, *effect).merged(starts)
        of_bins = spread_kernel.in_bins(bins)
        out = {name: _on_runs(values, is_bin) for name, values in of_bins.items()}
        weight = out["spread_share"]
        out["spread_share"] = weight / np.nansum(weight, axis=-1, keepdims=True)
        out["spread_n_obs"] = np.rint(np.nan_to_num(out["spread_n_obs"])).astype(np.int64)
        return out


def _on_runs(values: FloatArray, has_run: NDArray[np.bool_]) -> FloatArray:
    """Values of all runs, one behind the other, as (feature, run, ...); NaN where there is none."""
    out = np.full((*has_run.shape, *values.shape[1:]), np.nan)
    out[has_run] = values
    return out


def _first_known(values: FloatArray) -> FloatArray:
    """The first number of every feature, (feature, ...) -> (feature,); NaN where there is none."""
    first = np.argmax(np.isfinite(values), axis=-1)
    return np.take_along_axis(values, first[:, None], axis=-1)[:, 0]
