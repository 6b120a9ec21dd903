"""A second-order ALE surface of one output as a labelled Dataset."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rhale_stats.arrays import second_order as kernel
from rhale_stats.arrays.moments import FloatArray, IntArray
from rhale_stats.schema.kinds import SURFACE
from rhale_stats.schema.levels import level_text
from rhale_stats.schema.tables.surfaces import AT_EDGES as AT_EDGES
from rhale_stats.schema.tables.surfaces import IN_CELLS as IN_CELLS
from rhale_stats.schema.variables import variable
from rhale_stats.surfaces.axes import NO_CELL, FeatureAxis, PairGrid


def one_output(
    grid: PairGrid,
    has_cell: NDArray[np.bool_],
    weight: FloatArray | None,
    delta: FloatArray,
    error: float,
    centering: str,
) -> xr.Dataset:
    """Estimates for one output of the model, without attributes of the call.

    ``there`` marks the rows that have a cell; ``delta`` are their second differences.
    """
    cells = grid.cells(delta)
    data: dict[str, Any] = {
        **_in_cells(cells),
        "surface": _surface(grid.surface(cells), cells.supported, centering),
        **_differences(grid, has_cell, delta, error),
    }
    coords: dict[str, Any] = {}
    for side, feature, axis, places in zip(
        "ab", grid.features, grid.axes, grid.places, strict=True
    ):
        coords |= dict(
            _levels(feature, side) if feature.levels is not None else _bins(feature, side)
        )
        coords[f"bin_{side}"] = (f"bin_{side}", np.arange(axis.n_bins))
        coords[f"edge_{side}"] = (f"edge_{side}", np.arange(axis.n_edges))
        data |= dict(_places_of_rows(feature, side, places, has_cell))
    if weight is not None:
        data["weight"] = variable("weight", weight, SURFACE)
    n_empty = int((~cells.supported).sum())
    return xr.Dataset(data, coords, {"n_empty": n_empty, "n_filled": n_empty})


def _in_cells(cells: kernel.SurfaceCells) -> dict[str, Any]:
    """Mean, spread and number of the second differences in every cell."""
    values: dict[str, NDArray[Any]] = {
        "second_effect": np.where(cells.supported, cells.mean, np.nan),
        "heterogeneity": cells.spread(),
        "n_obs": cells.n_obs.astype(np.int64),
        "n_effective": cells.n_effective(),
        "supported": cells.supported.astype(np.int8),
    }
    out = {name: variable(name, array, SURFACE) for name, array in values.items()}
    out["heterogeneity"][2]["ddof"] = 1
    return out


def _surface(
    accumulated: kernel.Surface, supported: NDArray[np.bool_], centering: str
) -> tuple[Any, ...]:
    """The surface at the edges, NaN where no cell beside the edge has rows."""
    pure = centering == "ale"
    values = accumulated.pure if pure else accumulated.start
    supported_values = np.where(kernel.edges_of(supported), values, np.nan)
    more = {} if pure else {"long_name": "accumulated second differences"}
    return variable("surface", supported_values, SURFACE, **more)


def _differences(
    grid: PairGrid, has_cell: NDArray[np.bool_], delta: FloatArray, error: float
) -> dict[str, Any]:
    """Second differences of all rows, NaN of rows without a cell, and their numerical error."""
    rows = np.full((len(has_cell), *delta.shape[1:]), np.nan)
    rows[has_cell] = np.where(grid.cell >= 0, delta, np.nan)
    return {
        "second_difference": variable("second_difference", rows, SURFACE),
        "second_difference_error": variable("second_difference_error", error, SURFACE),
    }


def _levels(feature: FeatureAxis, side: str) -> Iterator[tuple[str, Any]]:
    """Coordinates of a categorical feature: its levels, and the sides of a row."""
    assert feature.levels is not None
    texts = not all(isinstance(level, int | float) for level in feature.levels) or any(
        isinstance(level, bool) for level in feature.levels
    )
    levels = np.array([level_text(level) if texts else level for level in feature.levels])
    yield f"level_{side}", (f"edge_{side}", levels, {"long_name": feature.name})
    yield f"side_{side}", (f"side_{side}", np.array(["below", "above"]))


def _bins(feature: FeatureAxis, side: str) -> Iterator[tuple[str, Any]]:
    """Coordinates of a numeric feature: its edges and bins, and the one side of a row."""
    edges = feature.edges
    assert edges is not None
    for name, values in (
        ("edge_value", edges),
        ("bin_left", edges[:-1]),
        ("bin_right", edges[1:]),
    ):
        dims, array, about = variable(f"{name}_{side}", values, SURFACE)
        about["long_name"] = f"{about['long_name']}, {feature.name}"
        yield f"{name}_{side}", (dims, array, about)
    yield f"side_{side}", (f"side_{side}", np.array(["across"]))


def _places_of_rows(
    feature: FeatureAxis, side: str, places: IntArray, has_cell: NDArray[np.bool_]
) -> Iterator[tuple[str, Any]]:
    """Value of a numeric feature, and bin or level, of every row."""
    if feature.x is not None:
        x = np.full(len(has_cell), np.nan)
        x[has_cell] = feature.x
        text = f"value of {feature.name}"
        yield f"x_{side}", variable(f"x_{side}", x, SURFACE, long_name=text)
    cell = np.full(len(has_cell), NO_CELL, dtype=np.int64)
    cell[has_cell] = places
    more = {} if feature.levels is None else {"long_name": "level of the row"}
    yield f"cell_{side}", variable(f"cell_{side}", cell, SURFACE, **more)
