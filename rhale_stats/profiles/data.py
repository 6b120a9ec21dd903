"""What a profile is: curves along the grid of each feature, as a Dataset."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from rhale_stats.arguments.words import listed
from rhale_stats.arrays.moments import FloatArray
from rhale_stats.models import table as models
from rhale_stats.schema.checks import check_dataset
from rhale_stats.schema.dimensions import check_one_part, with_part_facts
from rhale_stats.schema.features import by_name, feature_position, own_facts
from rhale_stats.schema.kinds import PROFILE
from rhale_stats.schema.levels import NOMINAL

GRID_KINDS = ("quantile", "equal_width")
N_GRID = 40
# Points of each of two features together at most, unless others are given, and pairs of points.
N_GRID_OF_PAIR, MAX_PAIRS = 20, 2500
CENTERINGS = ("mean", "start", "integral", "none")
# What a user may give as a grid: of the only feature, or by its name.
Grid = ArrayLike | Mapping[Any, Any] | None


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
        name = f"{a.name}:{b.name}"
        for axis in (a, b):
            if not len(axis.grid):
                raise ValueError(
                    f"features of a pair must vary; {axis.name!r} has one value. Leave the pair "
                    f"{name!r} out."
                )
        n_pairs = len(a.grid) * len(b.grid)
        if n_pairs > MAX_PAIRS:
            raise ValueError(
                f"n_grid must leave at most {MAX_PAIRS:,} pairs of points; {name!r} has "
                f"{n_pairs:,}. Take a smaller n_grid, or join levels."
            )
        texts = [f"{text}, {other}" for text in a.point_texts() for other in b.point_texts()]
        grid = np.arange(float(n_pairs))
        x = a.nearest() * len(b.grid) + b.nearest()
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


# --- what a profile is ----------------------------------------------------------------------------


# Printed names of the methods.
METHOD_NAMES = {
    "pdp": "Partial dependence",
    "ice": "ICE",
    "m_plot": "M-plot",
    "shap_dependence": "SHAP dependence",
}


def check_profile(
    dataset: object, parameter: str = "profile", *, needs: Sequence[str] = (), advice: str = ""
) -> xr.Dataset:
    """The argument itself, of one output, with the variables that it needs."""
    dataset = check_dataset(dataset, parameter, "pdp, ice, m_plot or shap_dependence")
    if not PROFILE.holds(dataset) or "curve" not in dataset:
        raise ValueError(
            f"{parameter} must be the Dataset that pdp, ice, m_plot or shap_dependence returns; "
            f"this one holds {', '.join(str(name) for name in dataset.data_vars)}."
        )
    check_one_part(dataset, parameter)
    odd = [str(dim) for dim in dataset["curve"].dims if dim not in ("feature", "grid")]
    if odd:
        raise ValueError(
            f"{parameter} must have a curve over feature and grid; this one also has the dimension "
            f"{odd[0]!r}. Select one: {parameter}.isel({odd[0]}=0)."
        )
    absent = [name for name in needs if name not in dataset]
    if absent:
        raise ValueError(
            f"{parameter} must hold {', '.join(absent)}; this one, of "
            f"{dataset.attrs['method']}, does not. {advice}".rstrip()
        )
    if int(dataset["n_grid"].max()) > dataset.sizes.get("grid", 0):
        raise ValueError(
            f"{parameter} must have its whole grid; points of it were selected. Make another with "
            f"pdp(model, X, grid=...), or select values that predict returns."
        )
    _check_errors(dataset, parameter)
    return with_part_facts(dataset)


def _check_errors(profile: xr.Dataset, parameter: str) -> None:
    """Raise ``ValueError`` after arithmetic on a whole profile; xarray keeps attributes there."""
    if "curve_se" not in profile or "curve_cov" not in profile:
        return
    covariance = profile["curve_cov"].transpose(..., "grid", "grid_other").values
    variance = np.diagonal(covariance, axis1=-2, axis2=-1)
    squares = profile["curve_se"].transpose(..., "grid").values ** 2
    if not np.allclose(np.nan_to_num(variance), np.nan_to_num(squares), rtol=1e-6):
        raise ValueError(
            f"{parameter} must hold the numbers that its function returned; its standard errors "
            f"are not the roots of its variances. Arithmetic on a whole Dataset changes both: use "
            f"single variables, such as 2 * profile['curve']."
        )


def one_profile(profile: xr.Dataset, feature: str | int) -> xr.Dataset:
    """One feature of a profile, without the padding of its grid."""
    row = profile.isel(feature=feature_position(profile, feature))
    n_grid = int(row["n_grid"])
    of_grid: dict[Hashable, slice] = {
        dim: slice(n_grid) for dim in ("grid", "grid_other") if dim in row.dims
    }
    return own_facts(row.isel(of_grid))


def pair_of(row: xr.Dataset) -> list[tuple[str, NDArray[np.generic]]]:
    """Both features of a pair with their points, or levels; empty of a single feature."""
    if "feature_b" not in row.coords or not str(row["feature_b"].values):
        return []
    out: list[tuple[str, NDArray[np.generic]]] = []
    for side in "ab":
        levels = list(dict.fromkeys(str(level) for level in row[f"level_{side}"].values))
        values = np.unique(row[f"grid_value_{side}"].values)
        out.append(
            (str(row[f"feature_{side}"].values), np.array(levels) if any(levels) else values)
        )
    return out


def is_nominal(row: xr.Dataset) -> bool:
    """Whether the grid of one feature is levels of a category."""
    return str(row["feature_kind"].values) == NOMINAL


def levels_in(row: xr.Dataset) -> list[str]:
    """Levels that are the grid of one feature; none where it has an axis."""
    return [str(level) for level in row["level"].values] if is_nominal(row) else []
