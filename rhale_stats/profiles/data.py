"""What a profile is: a curve of one feature at a time along a grid, as a Dataset."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rhale_stats.profiles.grid import CENTERINGS as CENTERINGS
from rhale_stats.profiles.grid import NOMINAL as NOMINAL
from rhale_stats.schema.dimensions import check_one_part, with_part_facts
from rhale_stats.schema.features import feature_position, own_facts
from rhale_stats.schema.kinds import PROFILE
from rhale_stats.schema.tables.profiles import PROFILE_VARIABLES
from rhale_stats.schema.variables import variable as labelled

# Printed names of the methods.
METHOD_NAMES = {
    "pdp": "Partial dependence",
    "ice": "ICE",
    "m_plot": "M-plot",
    "shap_dependence": "SHAP dependence",
}
VARIABLES = PROFILE_VARIABLES


def variable(
    name: str,
    values: NDArray[np.generic],
    dims: Sequence[str] | None = None,
    **facts: str | int | float,
) -> tuple[tuple[str, ...], NDArray[np.generic], dict[str, str | int | float]]:
    """A variable of a profile with its dims, names, units and facts."""
    return labelled(name, values, PROFILE, dims, **facts)


def check_profile(
    dataset: object,
    parameter: str = "profile",
    *,
    needs: Sequence[str] = (),
    advice: str = "",
) -> xr.Dataset:
    """The argument itself, of one output, with the variables that it needs."""
    if not isinstance(dataset, xr.Dataset):
        raise TypeError(
            f"{parameter} must be the Dataset that pdp, ice, m_plot or shap_dependence returns; "
            f"got {type(dataset).__name__}."
        )
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
