"""The grid of each feature: which features, which points or levels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from rhale_stats.arguments.words import listed
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.models import table as models
from rhale_stats.schema.features import by_name

GRID_KINDS = ("quantile", "equal_width")
N_GRID = 40
# Points of each of two features together at most, unless others are given, and pairs of points.
N_GRID_OF_PAIR, MAX_PAIRS = 20, 2500
NOMINAL = "nominal"
CENTERINGS = ("mean", "start", "integral", "none")
# What a user may give as a grid: of the only feature, or by its name.
Grid = ArrayLike | Mapping[Any, Any] | None


def size(background: int | pd.DataFrame | ArrayLike, n_rows: int) -> int:
    """Number of background rows: the number asked for, or the rows given."""
    if isinstance(background, int | np.integer):
        return min(int(background), n_rows)
    return int(np.shape(background)[0])


def check_centre(axes: Sequence[ProfileAxis], centering: str) -> None:
    """Raise ``ValueError`` unless the value at which curves are to be 0 is on all axes."""
    if centering in CENTERINGS:
        return
    for axis in axes:
        if axis.levels is not None:
            raise ValueError(
                f"centering must be {' or '.join(map(repr, CENTERINGS))} for features with levels, "
                f"such as {axis.name!r}; got {centering}. Name the others in features=."
            )
        if len(axis.grid) and not axis.grid[0] <= float(centering) <= axis.grid[-1]:
            raise ValueError(
                f"centering must be a value of every feature; {axis.name!r} goes from "
                f"{axis.grid[0]:.6g} to {axis.grid[-1]:.6g}, and {centering} is beyond. Take one "
                f"feature: features={axis.name!r}."
            )


def axis_names(a: ProfileAxis, b: ProfileAxis) -> str:
    """The name of a pair of features."""
    return f"{a.name}:{b.name}"


def split_pairs(features: Any) -> tuple[Any, list[Any]]:
    """Single features, and pairs of them; None or an empty list where there are no single ones."""
    if features is None or isinstance(features, str | int | np.integer):
        return features, []
    each = list(features)
    pairs = [name for name in each if isinstance(name, tuple | list)]
    return [name for name in each if not isinstance(name, tuple | list)], pairs


# --- what is given --------------------------------------------------------------------------------


class ProfileAxis(NamedTuple):
    """One feature: its values in the rows, or numbers of levels, and its grid."""

    name: str
    position: int
    kind: str
    x: FloatArray
    grid: FloatArray
    values: models.Values
    levels: list[str] | None
    pair: tuple[ProfileAxis, ProfileAxis] | None = None

    @classmethod
    def of_pair(cls, a: ProfileAxis, b: ProfileAxis) -> ProfileAxis:
        """Two features together: their grid is of all pairs of points, which stand for levels.

        A row is at the pair of points nearest to its values.
        """
        for axis in (a, b):
            if not len(axis.grid):
                raise ValueError(
                    f"features of a pair must vary; {axis.name!r} has one value. Leave the pair "
                    f"{axis_names(a, b)!r} out."
                )
        n_pairs = len(a.grid) * len(b.grid)
        if n_pairs > MAX_PAIRS:
            raise ValueError(
                f"n_grid must leave at most {MAX_PAIRS:,} pairs of points; {axis_names(a, b)!r} "
                f"has {n_pairs:,}. Take a smaller n_grid, or join levels."
            )
        near_a, near_b = a.nearest(), b.nearest()
        texts = [f"{text}, {other}" for text in a.point_texts() for other in b.point_texts()]
        grid = np.arange(float(n_pairs))
        x, name = near_a * len(b.grid) + near_b, axis_names(a, b)
        return cls(name, a.position, NOMINAL, x, grid, grid, texts, (a, b))

    def nearest(self) -> FloatArray:
        """The number of the point of the grid that every row is nearest to; NaN without a value."""
        if self.levels is not None:
            return self.x
        number = np.searchsorted((self.grid[:-1] + self.grid[1:]) / 2, self.x)
        return np.where(np.isnan(self.x), np.nan, number)

    def point_texts(self) -> list[str]:
        """The points with the name of the feature."""
        points = self.levels or [f"{point:.5g}" for point in self.grid]
        if len(set(points)) < len(points):
            points = [f"{point:.15g}" for point in self.grid]
        return [f"{self.name} = {point}" for point in points]

    @property
    def present(self) -> NDArray[np.bool_]:
        """Rows that have a value, or "missing" as a level."""
        return ~np.isnan(self.x)


def grids(grid: Grid, names: Sequence[str], columns: Sequence[str]) -> dict[str, Any]:
    """Grids of a user's own, by name; ``known`` are the names of all columns."""
    if grid is None:
        return {}
    if isinstance(grid, Mapping):
        pairs = {key: points for key, points in grid.items() if key in names and key not in columns}
        of_features = (
            by_name({key: grid[key] for key in grid if key not in pairs}, columns, "grid") | pairs
        )
        unknown = [name for name in of_features if name not in names]
        if unknown:
            raise KeyError(
                f"grid must be of features among {listed(names)}; got {listed(unknown)}."
            )
        return of_features
    if len(names) > 1:
        raise ValueError(
            f"grid must map names to points where there are several features; got one array for "
            f"{', '.join(map(repr, names))}. Pass grid={{{names[0]!r}: [...]}}."
        )
    return {names[0]: grid}
