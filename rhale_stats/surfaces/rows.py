"""The rows behind a surface, and their influences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rhale_stats.arrays import second_order as kernel
from rhale_stats.arrays import second_order_groups as by_groups
from rhale_stats.arrays.moments import FloatArray, IntArray

# Numbers of the groups of all rows, where standard errors are of groups; -1 of a row without a
# cell.
GROUP = "group"


class SurfaceRows(NamedTuple):
    """The rows behind a surface, with the grid that they lie in."""

    used: NDArray[np.bool_]
    a: kernel.Axis
    b: kernel.Axis
    place_a: IntArray
    place_b: IntArray
    cell: IntArray
    delta: FloatArray
    weight: FloatArray
    frequency: bool
    cells: kernel.SurfaceCells
    group: IntArray | None

    @classmethod
    def from_surface(cls, surface: xr.Dataset) -> SurfaceRows:
        """Raise ``ValueError`` unless the rows are those that the surface was made from."""
        needed = ("second_difference", "cell_a", "cell_b")
        absent = [name for name in needed if name not in surface]
        if absent:
            raise ValueError(
                f"surface must be the Dataset that ale2(model, X, features) returns, with its "
                f"rows; this one has no {', '.join(absent)}."
            )
        if "chain" in surface.dims:
            raise ValueError(
                "surface must be what ale2 or std_error returned; this one holds replicates."
            )
        a, b = (
            kernel.Axis(
                surface.sizes[f"edge_{side}"], levels=surface.attrs[f"kind_{side}"] == "categorical"
            )
            for side in "ab"
        )
        used = surface["cell_a"].values >= 0
        place_a, place_b = (surface[f"cell_{side}"].values[used].astype(np.int64) for side in "ab")
        delta = surface["second_difference"].transpose("obs", "side_a", "side_b").values[used]
        weight = np.ones(int(used.sum()))
        frequency = surface.attrs["weight_kind"] == "frequency"
        if "weight" in surface:
            weight = surface["weight"].values[used]
        cell = kernel.members(a, b, place_a, place_b)
        cells = kernel.cells(a, b, cell, np.nan_to_num(delta), weight, frequency=frequency)
        if not np.array_equal(cells.n_obs, surface["n_obs"].values):
            raise ValueError(
                f"surface must have the rows that it was made from; its cells count "
                f"{int(surface['n_obs'].sum())} second differences, and its rows have "
                f"{int(cells.n_obs.sum())}. Select rows of X before ale2."
            )
        group = None
        if GROUP in surface.coords:
            group = np.unique(surface[GROUP].values[used], return_inverse=True)[1]
        delta = np.nan_to_num(delta)
        return cls(used, a, b, place_a, place_b, cell, delta, weight, frequency, cells, group)

    def arrays(self) -> tuple[IntArray, IntArray, IntArray, FloatArray, FloatArray]:
        """Places, cells, second differences and weights, as formulas take them."""
        return self.place_a, self.place_b, self.cell, self.delta, self.weight

    def group_sums(self, influence: kernel.Influence) -> by_groups.GroupSums:
        """Sums over groups, where standard errors are of groups."""
        assert self.group is not None, "of groups"
        return by_groups.group_sums(influence, *self.arrays(), self.group, frequency=self.frequency)

    def noise_factors(self, influence: kernel.Influence) -> Iterator[FloatArray]:
        """Blocks whose products add up to the covariance of the surface."""
        if self.group is not None:
            return by_groups.noise_factors(influence, self.group_sums(influence))
        return kernel.noise_factors(influence, *self.arrays(), frequency=self.frequency)

    def cell_covariance(self, influence: kernel.Influence) -> FloatArray:
        """Of the cells' means, (cell, cell)."""
        if self.group is not None:
            return self.group_sums(influence).covariance()
        rows = (self.cell, self.delta, self.weight)
        return kernel.cell_covariance(self.cells, *rows, frequency=self.frequency)

    def influence(self, surface: xr.Dataset) -> kernel.Influence:
        """What every row does to the surface."""
        fill = kernel.filling(self.cells.supported)
        table = kernel.table(self.a, self.b, self.place_a, self.place_b, self.weight)
        mean = kernel.filled(fill, self.cells.mean)
        values = kernel.surface(self.a, self.b, mean, table)
        centred = str(surface.attrs["centering"]) == "ale"
        return kernel.Influence(self.a, self.b, fill, table, values, self.cells, centred)
