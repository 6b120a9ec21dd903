"""Values of the estimates of several models between the points of the grid."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from rhale_stats.arguments.rows import as_numbers
from rhale_stats.ensembles.members import centre_of, check_ensemble, estimated, facts_of, one_row
from rhale_stats.schema.features import given_feature
from rhale_stats.schema.levels import level_text


def predict(
    ensemble: xr.Dataset, x: Any, feature: str | int | None, what: str = "curve"
) -> xr.DataArray:
    """An estimate at values of its feature, straight between grid points; or at levels."""
    feature = given_feature(feature, "predict(effect, x, 'dose')")
    ensemble = check_ensemble(ensemble)
    if what not in estimated(ensemble):
        raise ValueError(f"what must be 'curve' for profiles of several models; got {what!r}.")
    row = one_row(ensemble, feature)
    points = x if isinstance(x, xr.DataArray) else xr.DataArray(np.asarray(x))
    if not isinstance(x, xr.DataArray) and points.ndim == 1:
        points = xr.DataArray(points.values, dims="grid")
    centre = centre_of(row.dataset, what)[0]
    if row.levels:
        values, points = _at_levels(centre, points, row.levels, row.name), points.astype(str)
    elif len(row.z):
        values = np.interp(as_numbers(points.values, "x"), row.z, centre, np.nan, np.nan)
    else:
        values = np.full(points.shape, np.nan)
    facts = facts_of(ensemble, what)
    about = {"long_name": facts.long_name, "units": facts.units, "feature": row.name}
    out = xr.DataArray(values, dims=points.dims, coords=points.coords, name=what, attrs=about)
    return out if "x" in out.coords else out.assign_coords(x=(points.dims, points.values))


def _at_levels(centre: Any, points: xr.DataArray, levels: list[str], name: str) -> Any:
    texts = np.vectorize(level_text, otypes=[str])(points.values)
    unknown = sorted(set(texts.ravel().tolist()) - set(levels))
    if unknown:
        raise ValueError(
            f"x must be levels of feature {name!r}, {', '.join(levels)}; got {', '.join(unknown)}."
        )
    return centre[np.vectorize(levels.index, otypes=[np.intp])(texts)]
