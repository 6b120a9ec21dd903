"""Standard errors and covariances of results of several models."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rhale_stats.ensembles.members import (
    check_ensemble,
    covariance_of,
    estimated,
    facts_of,
    one_row,
    own_errors,
)
from rhale_stats.ensembles.variances import deviations, error_of
from rhale_stats.schema.features import given_feature
from rhale_stats.schema.variables import GRID_VALUE

PARTS = {"rows": "by the rows", "model": "by the model"}


def std_error(
    ensemble: xr.Dataset, local: object, groups: object, fitted: object = None
) -> xr.Dataset:
    """`std_error` of all estimates, with the parts of the model and of the rows."""
    ensemble = check_ensemble(ensemble)
    given = {"local": local, "groups": groups, "model": fitted}
    for name, one in given.items():
        if one is not None:
            raise ValueError(
                f"{name} must be left out for results of several models, whose spread is the "
                f"error. For groups of rows use bootstrap_refit(fit, data, groups=...)."
            )
    return with_errors(ensemble)


def with_errors(ensemble: xr.Dataset) -> xr.Dataset:
    """The ensemble with its standard errors; the same where it has them.

    Errors of single members by the rows make place for their mean over the members.
    """
    if "curve_se" in ensemble:
        return ensemble
    found = {}
    for name in estimated(ensemble):
        facts, error = facts_of(ensemble, name, of_rows=True), error_of(ensemble, name)
        text, said = f"standard error of the {facts.long_name}", {"target": facts.target}
        said = {"units": facts.units, **said}
        about = {"long_name": text, **said, "source": facts.source}
        found[f"{name}_se"] = (facts.dims, np.sqrt(error.variance), about)
        sources = {"rows": "rows", "model": facts_of(ensemble, name).source}
        for part, values in (("rows", error.rows), ("model", error.model)):
            if np.isfinite(error.rows).any():
                about = {"long_name": f"{text}, {PARTS[part]}", **said, "source": sources[part]}
                found[f"{name}_se_{part}"] = (facts.dims, np.sqrt(values), about)
        if np.isfinite(error.degrees).any():
            about = {"long_name": f"degrees of freedom of the {text}", "units": "1"}
            found[f"{name}_df"] = (facts.dims, np.asarray(error.degrees), about)
    return ensemble.assign(found)


def vcov(ensemble: xr.Dataset, feature: str | int | None, of: str) -> xr.DataArray:
    """Covariance of the curve, or of the effect, over (grid, grid_other)."""
    feature = given_feature(feature, "vcov(effect, 'dose')")
    ensemble = with_errors(check_ensemble(ensemble))
    if of not in estimated(ensemble):
        raise ValueError(f"of must be 'curve' for profiles of several models; got {of!r}.")
    row, facts = one_row(ensemble, feature), facts_of(ensemble, of)
    se = own_errors(row.dataset, of)[0]
    found = covariance_of(deviations(row.dataset, of)[:, 0], se)
    unknown = np.isnan(se)
    found[unknown], found[:, unknown] = np.nan, np.nan
    points = np.arange(len(row.z))
    return xr.DataArray(
        found,
        {"grid": points, "grid_other": points, "grid_value": ("grid", row.z, GRID_VALUE)},
        ("grid", "grid_other"),
        "covariance",
        {
            "long_name": f"covariance of the {facts.long_name}",
            "target": facts.target,
            "source": facts.source,
            "feature": row.name,
        },
    )
