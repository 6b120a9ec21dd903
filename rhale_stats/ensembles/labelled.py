"""Effects of several models on one grid, as a Dataset: the layout of all results of ensembles.

A member is the effect, or the profile, of one model. Its estimates are read off at the points of a
grid that all members have in common, or at the levels of a feature.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rhale_stats.arrays.moments import FloatArray
from rhale_stats.effects.evaluate import errors_at, own_error, values_at
from rhale_stats.effects.sizes import importances
from rhale_stats.inference.draws import in_chains
from rhale_stats.profiles.data import check_profile, one_profile
from rhale_stats.schema.checks import check_effect
from rhale_stats.schema.features import feature_names, one_feature
from rhale_stats.schema.kinds import PROFILE
from rhale_stats.schema.levels import is_categorical, level_names
from rhale_stats.schema.variables import EFFECT_VARIABLES, GRID_VALUE, software

ON_GRID = ("effect", "heterogeneity", "curve")
TOTALS = ("average_effect", "importance", "heterogeneity_index", "heterogeneity_output")
OF_STEPS = ("average_effect", "average_effect_se_rows", *TOTALS[2:])
# Attributes that describe one member, and are not those of all.
OF_ONE = ("row_fingerprint", "model_calls", "model_rows", "seed", "honest_seed", "n_groups")
# Coordinates that the estimates of one member are read with, and variables that are not needed.
COORDINATES = (
    *("feature", "feature_kind", "n_bins", "bin_left", "bin_right", "edge_value", "cell_value"),
    *("level", "n_levels", "feature_n_groups"),
)
AS_VARIABLES = ("n_bins", "bin_left", "bin_right", "edge_value", "cell_value")
NOT_READ = ("spread", "n_spread", "curve_std", "curve_skew", "cell_curve_skew", "effect_skew")
# Values of one member by name, over (feature, grid) or (feature,).
Values: TypeAlias = dict[str, FloatArray]
# These, or why there are none.
Member: TypeAlias = Values | str


class MemberGrid(NamedTuple):
    """The points that all members have in common: (feature, grid), NaN beyond the last level.

    ``level`` has the names of the levels of features that have levels in place of an axis.
    """

    names: tuple[str, ...]
    value: FloatArray
    level: NDArray[np.str_]

    def levels(self, number: int) -> list[str]:
        """Levels of one feature; none where it has an axis."""
        return [str(name) for name in self.level[number] if name]


def check_member(effect: object, what: str) -> xr.Dataset:
    """The effect or the profile of one model; raise ``TypeError`` or ``ValueError`` if neither."""
    if PROFILE.holds(effect):
        return check_profile(effect, what)
    return check_effect(effect, what)


def common_grid(effects: Sequence[xr.Dataset], n_grid: int, what: str) -> MemberGrid:
    """Evenly spaced points over the range of all effects, and the levels of all of them.

    Profiles that are on the same points keep them.
    """
    names = tuple(feature_names(effects[0]))
    values, levels = [], []
    for number, name in enumerate(names):
        rows = [_one(effect, number) for effect in effects]
        kinds = {is_categorical(row) for row in rows if _ends(row) is not None}
        if len(kinds) > 1:
            raise ValueError(
                f"{what} must treat feature {name!r} in one way: it has levels in some effects and "
                f"an axis in others."
            )
        feature_levels = (
            list(dict.fromkeys(label for row in rows for label in _levels(row)))
            if True in kinds
            else []
        )
        levels.append(feature_levels)
        values.append(
            np.arange(float(len(feature_levels))) if feature_levels else _axis(rows, n_grid)
        )
    size = max(map(len, values))
    value, level = (
        np.full((len(names), size), np.nan),
        np.full((len(names), size), "", dtype=object),
    )
    for number, points in enumerate(values):
        value[number, : len(points)] = points
        level[number, : len(levels[number])] = levels[number]
    return MemberGrid(names, value, level.astype(np.str_))


def _one(effect: xr.Dataset, number: int) -> xr.Dataset:
    """One feature with little more than what its axis needs: selection of all is slow."""
    if PROFILE.holds(effect):
        return one_profile(effect, number)
    return one_feature(effect[[name for name in ("curve", "cell_value") if name in effect]], number)


def _points(row: xr.Dataset) -> FloatArray:
    return np.asarray(row["grid_value" if "grid" in row.dims else "edge_value"].values)


def _ends(row: xr.Dataset) -> tuple[float, float] | None:
    """First and last point of one feature; None for a constant feature."""
    points = _points(row)
    return (float(points[0]), float(points[-1])) if len(points) else None


def _levels(row: xr.Dataset) -> list[str]:
    """Levels of one feature of an effect or a profile."""
    if not len(_points(row)):
        return []
    return [str(name) for name in row["level"].values] if "grid" in row.dims else level_names(row)


def _axis(rows: Sequence[xr.Dataset], n_grid: int) -> FloatArray:
    """Points of one feature that has an axis; those of its profiles if they are all the same."""
    first = _points(rows[0])
    if all("grid" in row.dims and np.array_equal(_points(row), first) for row in rows):
        return first
    ends = [end for row in rows if (end := _ends(row)) is not None]
    if not ends:
        return np.full(n_grid, np.nan)
    return np.linspace(min(low for low, _ in ends), max(high for _, high in ends), n_grid)


# --- one member -----------------------------------------------------------------------------------


def on_grid(effect: xr.Dataset, grid: MemberGrid) -> Values:
    """Estimates of one member and their standard errors by rows, as far as they are known."""
    if tuple(feature_names(effect)) != grid.names:
        raise ValueError(
            f"the same features are needed in all effects; got {', '.join(grid.names)} for all, "
            f"{', '.join(feature_names(effect))} for some."
        )
    profile = PROFILE.holds(effect)
    effect = effect if profile else _lean(effect)
    out = {
        name: np.full(grid.value.shape, np.nan) for name in (ON_GRID[2:] if profile else ON_GRID)
    }
    others = []
    for number in range(len(grid.names)):
        row = one_profile(effect, number) if profile else one_feature(effect, number)
        if not len(_points(row)):
            continue
        levels = grid.levels(number)
        if levels and not profile and level_names(row) != levels:
            others.append(number)
        of_row = _of_profile if profile else _of_effect
        for name, values in of_row(row, grid.value[number], levels).items():
            out.setdefault(name, np.full((len(grid.names), *np.shape(values)), np.nan))
            out[name][number] = values
    out |= {name: effect[name].values.astype(np.float64) for name in TOTALS if name in effect}
    # Sums over steps between levels are others in another order of the levels.
    for number in others:
        for name in OF_STEPS:
            if name in out:
                out[name][number] = np.nan
    if not profile:
        out["importance"] = importances(effect)
    return out


def _lean(effect: xr.Dataset) -> xr.Dataset:
    """An effect as it is read fast: xarray goes through all variables and coordinates each time."""
    names = [name for name in effect.variables if str(name).startswith(NOT_READ)]
    effect = effect.drop_vars(
        [*names, *(coordinate for coordinate in effect.coords if coordinate not in COORDINATES)]
    )
    return effect.reset_coords([name for name in effect.coords if name in AS_VARIABLES])


def _of_effect(row: xr.Dataset, z: FloatArray, levels: list[str]) -> dict[str, Any]:
    """Estimates and errors of one feature with bins, or with levels."""
    if not levels:
        return {**values_at(row, z), **_named(errors_at(row, z))}
    row_levels = level_names(row)
    positions = np.array([row_levels.index(name) if name in row_levels else -1 for name in levels])
    # Steps from one level to the next, where the two are neighbours here, too.
    step = np.append(np.where(positions[1:] == positions[:-1] + 1, positions[:-1], -1), -1)
    out: dict[str, Any] = {}
    for name, place in (("effect", step), ("heterogeneity", step), ("curve", positions)):
        for variable, key in ((name, name), (f"{name}_se", f"{name}_se_rows")):
            values = _of_levels(row, variable)
            if values is not None:
                out[key] = _taken(values, place, len(z))
    if "average_effect_se" in row:
        out["average_effect_se_rows"] = float(own_error(row, "average_effect_se"))
    return out


def _of_levels(row: xr.Dataset, name: str) -> FloatArray | None:
    """A variable of levels or their steps; its standard error from the stored covariances."""
    covariance = f"{name.removesuffix('_se')}_cov"
    if name in row:
        return own_error(row, name) if name.endswith("_se") else np.asarray(row[name].values)
    if name.endswith("_se") and covariance in row:
        return np.asarray(np.sqrt(np.diagonal(row[covariance].values)))
    return None


def _taken(values: FloatArray, place: NDArray[np.intp], size: int) -> FloatArray:
    """Values at these places, NaN at places -1 and beyond the last."""
    out = np.full(size, np.nan)
    out[: len(place)] = np.where(place >= 0, values[np.maximum(place, 0)], np.nan)
    return out


def _of_profile(row: xr.Dataset, z: FloatArray, levels: list[str]) -> dict[str, Any]:
    """Curve and error of one feature of a profile, straight between the points of its own grid."""
    out = {}
    for name, key in (("curve", "curve"), ("curve_se", "curve_se_rows")):
        if name not in row:
            continue
        if levels:
            row_levels = _levels(row)
            positions = np.array(
                [row_levels.index(level) if level in row_levels else -1 for level in levels]
            )
            out[key] = _taken(row[name].values, positions, len(z))
        else:
            # The error of a mean of two points is at most the mean of their errors.
            out[key] = np.interp(z, _points(row), row[name].values, np.nan, np.nan)
    return out


def _named(errors: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{name}_se_rows": values for name, values in errors.items()}


# --- all members ----------------------------------------------------------------------------------


def labelled(
    members: Sequence[Member],
    grid: MemberGrid,
    whole: xr.Dataset,
    estimate: Mapping[str, FloatArray],
    chains: int,
    facts: Mapping[str, Any],
) -> xr.Dataset:
    """All members over (chain, draw, ...), those that failed as NaN, with the estimates.

    ``whole`` is one of the effects: names, units and what the effects are of come from it.
    ``estimate`` are those of all rows, or means over the members.
    """
    reasons = [member for member in members if isinstance(member, str)]
    sound = [member for member in members if not isinstance(member, str)]
    variables: dict[str, Any] = {}
    for name in dict.fromkeys(name for member in sound for name in member):
        size = next(member[name].shape for member in sound if name in member)
        absent = np.full(size, np.nan)
        values = np.stack(
            [absent if isinstance(member, str) else member.get(name, absent) for member in members]
        )
        dims = ("draw", "feature", "grid")[: values.ndim]
        variables[name] = (dims, values, _about(name))
    for name in (*ON_GRID, *TOTALS):
        if name in estimate:
            dims = ("feature", "grid")[: estimate[name].ndim]
            variables[f"{name}_estimate"] = (dims, estimate[name], _about(f"{name}_estimate"))
    failed = np.array([isinstance(member, str) for member in members], dtype=np.float64)
    variables["failed"] = (("draw",), failed, {"long_name": "the fit raised", "units": "1"})
    attrs = {key: value for key, value in whole.attrs.items() if key not in OF_ONE}
    return in_chains(
        xr.Dataset(
            variables,
            {
                "feature": whole["feature"].variable,
                "feature_kind": whole["feature_kind"].variable,
                "feature_units": whole["feature_units"].variable,
                "grid_value": (("feature", "grid"), grid.value, GRID_VALUE),
                "level": (("feature", "grid"), grid.level, {"long_name": "level"}),
            },
            {
                **attrs,
                "effect_method": str(whole.attrs["method"]),
                **facts,
                "n_failed": len(reasons),
                "first_failure": reasons[0] if reasons else "",
                "software": software(),
            },
        ),
        chains,
    )


def _about(name: str) -> dict[str, str]:
    """Long name and units of a variable of the layout."""
    for ending, words in (
        ("_se_rows", "standard error by the rows of the {}"),
        ("_other_model", "{}, by the model of the next fold"),
        ("_estimate", "{}, estimate"),
    ):
        if name.endswith(ending):
            _, long_name, units = EFFECT_VARIABLES[name.removesuffix(ending)]
            about = {"long_name": words.format(long_name), "units": units}
            return {**about, "source": "rows"} if ending == "_se_rows" else about
    _, long_name, units = EFFECT_VARIABLES[name]
    return {"long_name": long_name, "units": units}
