"""Standard errors and covariances of results of several models."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from rhale_stats.ensembles.members import (
    centre_of,
    check_ensemble,
    covariance_of,
    degrees_of,
    estimated,
    facts_of,
    one_row,
    own_errors,
)
from rhale_stats.ensembles.variances import deviations, error_of
from rhale_stats.inference.combinations import Estimates, refuse_beside
from rhale_stats.schema.features import given_feature
from rhale_stats.schema.variables import GRID_VALUE

PARTS = {"rows": "by the rows", "model": "by the model"}


def std_error(
    ensemble: xr.Dataset, local: object, groups: object, fitted: object = None
) -> xr.Dataset:
    """`std_error` of all estimates, with the parts of the model and of the rows."""
    ensemble = check_ensemble(ensemble)
    arguments = {"local": local, "groups": groups, "model": fitted}
    for name, argument in arguments.items():
        if argument is not None:
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
    variables = {}
    for name in estimated(ensemble):
        facts, error = facts_of(ensemble, name, of_rows=True), error_of(ensemble, name)
        text, attributes = f"standard error of the {facts.long_name}", {"target": facts.target}
        attributes = {"units": facts.units, **attributes}
        about = {"long_name": text, **attributes, "source": facts.source}
        variables[f"{name}_se"] = (facts.dims, np.sqrt(error.variance), about)
        sources = {"rows": "rows", "model": facts_of(ensemble, name).source}
        for part, values in (("rows", error.rows), ("model", error.model)):
            if np.isfinite(error.rows).any():
                about = {
                    "long_name": f"{text}, {PARTS[part]}",
                    **attributes,
                    "source": sources[part],
                }
                variables[f"{name}_se_{part}"] = (facts.dims, np.sqrt(values), about)
        if np.isfinite(error.degrees).any():
            about = {"long_name": f"degrees of freedom of the {text}", "units": "1"}
            variables[f"{name}_df"] = (facts.dims, np.asarray(error.degrees), about)
    return ensemble.assign(variables)


def vcov(ensemble: xr.Dataset, feature: str | int | None, what: str) -> xr.DataArray:
    """Covariance of the curve, or of the effect, over (grid, grid_other)."""
    feature = given_feature(feature, "vcov(effect, 'dose')")
    ensemble = with_errors(check_ensemble(ensemble))
    if what not in estimated(ensemble):
        raise ValueError(f"of must be 'curve' for profiles of several models; got {what!r}.")
    row, facts = one_row(ensemble, feature), facts_of(ensemble, what)
    se = own_errors(row.dataset, what)[0]
    covariance = covariance_of(deviations(row.dataset, what)[:, 0], se)
    unknown = np.isnan(se)
    covariance[unknown], covariance[:, unknown] = np.nan, np.nan
    points = np.arange(len(row.z))
    return xr.DataArray(
        covariance,
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


def for_hypotheses(
    ensemble: xr.Dataset, feature: str | int | None, variable: str | None, local: Any, groups: Any
) -> Estimates:
    """The curve of one feature along the grid, for `hypotheses`."""
    refuse_beside("results of several models", local=local, groups=groups)
    ensemble, name = with_errors(check_ensemble(ensemble)), variable or "curve"
    feature = given_feature(feature, "hypotheses(effect, feature='dose')", ensemble)
    covariance, row = vcov(ensemble, feature, name), one_row(ensemble, feature)
    return Estimates(
        row.levels or [f"{value:.6g}" for value in row.z],
        centre_of(row.dataset, name)[0],
        covariance.values,
        degrees_of(row.dataset, name)[0],
        facts_of(ensemble, name).units,
        str(covariance.attrs["source"]),
        f"the curve of {row.name}",
    )
